/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/roots.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/path.h>
#include <base/str.h>
#include <sb/log.h>

#define LINKS_MAX 40
#define PATH_BYTES_MAX (1u << 20)

/* A lookup under way: `done` has no symlink in it, `rest` is still to come. */
struct roots_walk {
	const struct sb_roots *roots;
	const struct sb_root *root;
	struct sb_buf done;
	struct sb_buf rest;
	unsigned links;
	bool missing; /* `done` does not exist: what follows cannot be a symlink */
	const char *shown;
};

void
sb_roots_close(struct sb_roots *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->v[i].given);
		free(r->v[i].path);
		sb_cleanup_close_(&r->v[i].fd);
	}
	free(r->v);
	*r = (struct sb_roots){ 0 };
}

static bool
blank(const char *s)
{
	return !s || !s[strspn(s, " \t\r\n")];
}

static int
add_root(struct sb_roots *r, const char *path, struct sb_error *err)
{
	struct sb_root *root = &r->v[r->n];
	struct stat st;
	int fd;

	if (*path != '/')
		return sb_fail(err, SB_E_INVAL, "%s: a root must be an absolute path", path);
	fd = sb_path_open_root(path, err);
	if (fd < 0)
		return fd;
	*root = (struct sb_root){ .given = strdup(path), .path = realpath(path, NULL), .fd = fd };
	r->n++;
	if (!root->given || !root->path)
		return sb_fail_errno(err, "%s", path);
	if (fstat(fd, &st) < 0)
		return sb_fail_errno(err, "%s", path);
	while (strlen(root->given) > 1 && sb_str_ends(root->given, "/"))
		root->given[strlen(root->given) - 1] = '\0';
	for (size_t i = 0; i + 1 < r->n; i++)
		if (strcmp(r->v[i].path, root->path) == 0) {
			free(root->given);
			free(root->path);
			sb_cleanup_close_(&root->fd);
			r->n--;
			return 0;
		}
	return 0;
}

int
sb_roots_open(const char *const *paths, size_t n, struct sb_roots *out, struct sb_error *err)
{
	sb_auto(sb_roots) struct sb_roots r = { .v = calloc(n ? n : 1, sizeof *r.v) };
	int code = 0;

	if (!r.v)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; code == 0 && i < n; i++)
		if (!blank(paths[i]))
			code = add_root(&r, paths[i], err);
	if (code == 0 && !r.n)
		code = sb_fail(err, SB_E_INVAL, "tools need a root directory");
	if (code < 0)
		return code;
	*out = r;
	r = (struct sb_roots){ 0 };
	return 0;
}

void
sb_roots_resolved_free(struct sb_roots_resolved *r)
{
	free(r->rel);
	free(r->path);
	*r = (struct sb_roots_resolved){ .fd = -1 };
}

/* What of `path` lies beneath `dir`, or NULL. */
static const char *
beneath(const char *dir, const char *path)
{
	size_t len = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return path + 1;
	if (strncmp(dir, path, len) != 0 || (path[len] && path[len] != '/'))
		return NULL;
	return path[len] ? path + len + 1 : path + len;
}

/* The innermost root that holds an absolute path, however its beginning is spelled. */
static const struct sb_root *
root_of(const struct sb_roots *r, const char *path, const char **rest)
{
	const struct sb_root *best = NULL;
	size_t longest = 0;

	for (size_t i = 0; i < r->n; i++) {
		const char *const names[] = { r->v[i].path, r->v[i].given };

		for (size_t k = 0; k < 2; k++) {
			const char *b = beneath(names[k], path);

			if (b && (!best || strlen(names[k]) > longest)) {
				best = &r->v[i];
				longest = strlen(names[k]);
				*rest = b;
			}
		}
	}
	return best;
}

static int
escapes(const struct roots_walk *w, struct sb_error *err)
{
	return sb_fail(err, SB_E_ESCAPE, "%s leads out of %s", w->shown, w->roots->v[0].path);
}

static void
pop(struct sb_buf *done)
{
	while (done->len && done->data[done->len - 1] != '/')
		done->len--;
	if (done->len)
		done->len--;
	done->data[done->len] = '\0';
}

/* Puts `text` in front of what is still to come. */
static int
push_front(struct roots_walk *w, const char *text, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf next;

	sb_buf_init(&next, PATH_BYTES_MAX);
	sb_buf_addf(&next, "%s/%s", text, (char *)w->rest.data);
	sb_buf_reset(&w->rest);
	sb_buf_add(&w->rest, next.data, next.len);
	return sb_buf_check(&next, "path", err);
}

static int
follow(struct roots_walk *w, struct sb_error *err)
{
	char target[PATH_MAX];
	const char *rest = target;
	sb_autoclose int fd = sb_path_open(w->root->fd, (char *)w->done.data, O_PATH, 0, err);
	ssize_t n;

	if (fd < 0)
		return fd;
	if (++w->links > LINKS_MAX)
		return sb_fail(err, SB_E_ESCAPE, "%s: too many symlinks", w->shown);
	n = readlinkat(fd, "", target, sizeof target - 1);
	if (n < 0)
		return sb_fail_errno(err, "%s", w->shown);
	target[n] = '\0';
	if (*target == '/') {
		w->root = root_of(w->roots, target, &rest);
		if (!w->root)
			return escapes(w, err);
		sb_buf_reset(&w->done);
	} else {
		pop(&w->done);
	}
	return push_front(w, rest, err);
}

/* Takes one component from `rest` to `done`. */
static int
step(struct roots_walk *w, struct sb_error *err)
{
	size_t len = strcspn((char *)w->rest.data, "/");
	char name[NAME_MAX + 1];
	struct stat st;
	int r;

	if (len > NAME_MAX)
		return sb_fail(err, SB_E_INVAL, "a name in the path is longer than %d bytes",
			NAME_MAX);
	memcpy(name, w->rest.data, len);
	name[len] = '\0';
	sb_buf_consume(&w->rest, w->rest.data[len] ? len + 1 : len);
	if (!len || strcmp(name, ".") == 0)
		return 0;
	if (strcmp(name, "..") == 0) {
		if (!w->done.len)
			return escapes(w, err);
		pop(&w->done);
		w->missing = false;
		return 0;
	}
	sb_buf_addf(&w->done, "%s%s", w->done.len ? "/" : "", name);
	r = sb_buf_check(&w->done, "path", err);
	if (r < 0 || w->missing)
		return r;
	r = sb_path_stat(w->root->fd, (char *)w->done.data, &st, err);
	if (r == SB_E_NOTFOUND)
		w->missing = true;
	if (r < 0)
		return r == SB_E_NOTFOUND ? 0 : r;
	return S_ISLNK(st.st_mode) ? follow(w, err) : 0;
}

/*
 * An absolute path that begins outside may still lead inside: /proc/self/cwd, or a link to the
 * root.
 */
static int
canonical(struct roots_walk *w, const char *path, char **out, struct sb_error *err)
{
	sb_autofree char *real = NULL;
	size_t len = strlen(path);

	/* The longest beginning that exists. */
	for (;;) {
		sb_autofree char *head = len ? strndup(path, len) : strdup("/");

		real = head ? realpath(head, NULL) : NULL;
		if (real || !len)
			break;
		while (len && path[--len] != '/')
			;
	}
	if (!real)
		return escapes(w, err);
	*out = sb_str_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, path + len);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

static int
begin(struct roots_walk *w, const char *path, struct sb_error *err)
{
	sb_autofree char *real = NULL;
	const char *rest = path;
	int r;

	w->root = *path == '/' ? root_of(w->roots, path, &rest) : &w->roots->v[0];
	if (!w->root) {
		r = canonical(w, path, &real, err);
		if (r < 0)
			return r;
		w->root = root_of(w->roots, real, &rest);
		if (!w->root)
			return escapes(w, err);
	}
	sb_buf_add_str(&w->rest, rest);
	return sb_buf_check(&w->rest, "path", err);
}

static int
resolve(struct roots_walk *w, const char *path, struct sb_roots_resolved *out, struct sb_error *err)
{
	int r = begin(w, path, err);

	while (r == 0 && w->rest.len)
		r = step(w, err);
	if (r < 0)
		return r;
	out->fd = w->root->fd;
	out->rel = strdup((char *)w->done.data);
	out->path = sb_str_printf("%s%s%s", strcmp(w->root->path, "/") == 0 ? "" : w->root->path,
		w->done.len || strcmp(w->root->path, "/") == 0 ? "/" : "", (char *)w->done.data);
	if (!out->rel || !out->path) {
		sb_roots_resolved_free(out);
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	return 0;
}

int
sb_roots_resolve(const struct sb_roots *roots, const char *path, struct sb_roots_resolved *out,
	struct sb_error *err)
{
	struct roots_walk w = { .roots = roots };
	sb_autofree char *text = NULL;
	char shown[300];
	size_t len;
	int r;

	path += strspn(path, " \t\r\n");
	len = strlen(path);
	while (len && strchr(" \t\r\n", path[len - 1]))
		len--;
	if (!len)
		return sb_fail(err, SB_E_INVAL, "the path is empty");
	text = strndup(path, len);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	w.shown = sb_escape(text, len, shown, sizeof shown);
	sb_buf_init(&w.done, PATH_BYTES_MAX);
	sb_buf_init(&w.rest, PATH_BYTES_MAX);
	r = resolve(&w, text, out, err);
	sb_buf_free(&w.done);
	sb_buf_free(&w.rest);
	return r;
}
