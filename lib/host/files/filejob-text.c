/* SPDX-License-Identifier: MIT */
/* The tools that read, write, edit and list files. */
#include "config.h"

#include <host/files/filejob.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/strlist.h>
#include <sb/log.h>

#define FILE_MAX (10u << 20)
#define LINE_MAX 2000
#define SHOWN_LINES 20

/* Everything a file tool works on. */
struct file_place {
	struct sb_roots roots;
	struct sb_roots_resolved at;
	const char *path; /* as the caller wrote it */
};

static void
place_clear(struct file_place *p)
{
	sb_roots_resolved_free(&p->at);
}
SB_CLEANUP_VALUE(file_place, place_clear)

static int
find_place(const struct sb_filejob *j, struct file_place *p, struct sb_error *err)
{
	p->path = sb_params_str(&j->params, "path");
	p->path = p->path && *p->path ? p->path : ".";
	return sb_filejob_resolve(j, p->path, &p->at, err);
}

/* The whole file, if it is one of a size that a model can want. A fifo is not waited for. */
static int
read_all(const struct file_place *p, struct sb_buf *out, struct stat *st, struct sb_error *err)
{
	sb_autoclose int fd =
		sb_path_open(p->at.fd, p->at.rel, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, err);
	uint8_t *to;
	ssize_t n;

	if (fd == SB_E_NOTFOUND)
		return sb_fail(err, SB_E_NOTFOUND, "file not found: %s", p->path);
	if (fd < 0)
		return fd;
	if (fstat(fd, st) < 0)
		return sb_fail_errno(err, "%s", p->path);
	if (S_ISDIR(st->st_mode))
		return sb_fail(err, SB_E_INVAL, "%s is a directory", p->path);
	if (!S_ISREG(st->st_mode))
		return sb_fail(err, SB_E_INVAL, "%s is not a regular file", p->path);
	if (st->st_size > FILE_MAX)
		return sb_fail(err, SB_E_LIMIT, "%s has %lld bytes, at most %u are read", p->path,
			(long long)st->st_size, FILE_MAX);
	/* It may grow meanwhile; one byte more than is allowed tells. */
	to = sb_buf_reserve(out, (size_t)st->st_size + 1);
	if (!to)
		return sb_fail(err, SB_E_NOMEM, "read %s", p->path);
	n = sb_file_read_full(fd, to, (size_t)st->st_size + 1, err);
	if (n < 0)
		return (int)n;
	sb_buf_grow(out, (size_t)n);
	return 0;
}

/* Lines [offset, offset + limit) with their numbers; how many there are in all. */
static int64_t
number_lines(const struct sb_buf *data, int64_t offset, int64_t limit, struct sb_buf *text)
{
	const char *p = (const char *)data->data, *end = p + data->len;
	int64_t line = 0;

	for (; p < end; line++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		size_t len = (size_t)((nl ? nl : end) - p);

		if (line >= offset && line - offset < limit) {
			sb_buf_addf(text, "%6lld\t", (long long)line + 1);
			sb_buf_add(text, p, len < LINE_MAX ? len : LINE_MAX);
			sb_buf_add_str(text, len > LINE_MAX ? "... (truncated)\n" : "\n");
		}
		p = nl ? nl + 1 : end;
	}
	return line;
}

static int
read_run(struct sb_filejob *j, struct sb_error *err)
{
	sb_auto(file_place) struct file_place p = { .at.fd = -1 };
	sb_auto(sb_buf) struct sb_buf data;
	struct sb_error why = { 0 };
	int64_t offset = sb_params_int(&j->params, "offset");
	int64_t limit = sb_params_int(&j->params, "limit"), total, last;
	struct stat st;
	int r;

	sb_buf_init(&data, FILE_MAX + 2);
	r = find_place(j, &p, &why);
	if (r == 0)
		r = read_all(&p, &data, &st, &why);
	if (r < 0)
		return sb_filejob_failed(j, &why, err);
	total = number_lines(&data, offset, limit, &j->text);
	if (total > 0 && offset >= total)
		return sb_filejob_says(j, false, err,
			"(offset %lld is past the end: %s has %lld lines)", (long long)offset,
			p.path, (long long)total);
	last = offset + limit < total ? offset + limit : total;
	if (offset > 0 || last < total) {
		sb_buf_addf(&j->text, "(showing lines %lld-%lld of %lld total)",
			(long long)offset + 1, (long long)last, (long long)total);
		j->truncated = last < total;
	}
	if (j->text.failed == SB_E_FULL)
		return sb_filejob_says(j, true, err,
			"%s: the lines asked for are too long together; ask for fewer", p.path);
	if (total == 0)
		sb_buf_add_str(&j->text, "(empty file)");
	return sb_buf_check(&j->text, "result", err);
}

/* An existing file keeps its mode. */
static int
put_file(const struct file_place *p, const void *data, size_t len, bool dirs, struct sb_error *err)
{
	const char *leaf = NULL;
	sb_autoclose int parent = -1;
	mode_t mode = 0644;
	struct stat st;
	int r;

	if (!*p->at.rel)
		return sb_fail(err, SB_E_INVAL, "%s is a directory", p->path);
	r = sb_path_stat(p->at.fd, p->at.rel, &st, err);
	if (r == 0 && !S_ISREG(st.st_mode))
		return sb_fail(err, SB_E_INVAL, "%s is not a regular file", p->path);
	if (r == 0)
		mode = st.st_mode & 0777;
	if (r < 0 && r != SB_E_NOTFOUND)
		return r;
	if (dirs && strrchr(p->at.rel, '/')) {
		sb_autofree char *dir =
			strndup(p->at.rel, (size_t)(strrchr(p->at.rel, '/') - p->at.rel));

		r = dir ? sb_path_mkdirs(p->at.fd, dir, 0755, err) :
			  sb_fail(err, SB_E_NOMEM, "write %s", p->path);
		if (r < 0)
			return r;
	}
	parent = sb_path_open_parent(p->at.fd, p->at.rel, &leaf, err);
	if (parent == SB_E_NOTFOUND)
		return sb_fail(err, SB_E_NOTFOUND,
			"the directory of %s does not exist (create_dirs makes it)", p->path);
	return parent < 0 ? parent : sb_filejob_put(parent, leaf, data, len, mode, err);
}

static int
write_run(struct sb_filejob *j, struct sb_error *err)
{
	sb_auto(file_place) struct file_place p = { .at.fd = -1 };
	struct sb_error why = { 0 };
	const char *content = sb_params_str(&j->params, "content");
	int r;

	r = find_place(j, &p, &why);
	if (r == 0)
		r = put_file(&p, content, strlen(content),
			sb_params_bool(&j->params, "create_dirs"), &why);
	if (r < 0)
		return sb_filejob_failed(j, &why, err);
	return sb_filejob_says(j, false, err, "wrote %zu bytes to %s", strlen(content), p.path);
}

/*
 * What the text looks like where the first line of what was searched for occurs; all of it when it
 * is short.
 */
static void
show_near(const struct sb_buf *data, const char *wanted, struct sb_buf *text)
{
	const char *p = (const char *)data->data, *end = p + data->len;
	size_t skip = strspn(wanted, " \t\r\n"), len = strcspn(wanted + skip, "\n");
	const char *hit;
	int64_t lines = 0, line = 0;

	while (len > 0 && strchr(" \t\r", wanted[skip + len - 1]))
		len--;
	for (const char *q = p; q < end && (q = memchr(q, '\n', (size_t)(end - q))); q++)
		lines++;
	if (lines <= SHOWN_LINES) {
		sb_buf_add_str(text, "the file is:\n");
		(void)number_lines(data, 0, SHOWN_LINES + 1, text);
		return;
	}
	hit = len ? memmem(p, data->len, wanted + skip, len) : NULL;
	if (!hit) {
		sb_buf_add_str(text, "its first line does not occur either");
		return;
	}
	for (const char *q = p; q < hit && (q = memchr(q, '\n', (size_t)(hit - q))); q++)
		line++;
	sb_buf_add_str(text, "its first line occurs here:\n");
	(void)number_lines(data, line > 2 ? line - 2 : 0, 7, text);
}

static int
edit_run(struct sb_filejob *j, struct sb_error *err)
{
	sb_auto(file_place) struct file_place p = { .at.fd = -1 };
	sb_auto(sb_buf) struct sb_buf data, done;
	struct sb_error why = { 0 };
	const char *from = sb_params_str(&j->params, "old_string");
	const char *to = sb_params_str(&j->params, "new_string"), *at, *end, *hit;
	bool all = sb_params_bool(&j->params, "replace_all");
	size_t n = 0, len;
	struct stat st;
	int r;

	sb_buf_init(&data, FILE_MAX + 2);
	sb_buf_init(&done, 2 * FILE_MAX);
	r = find_place(j, &p, &why);
	if (r == 0)
		r = read_all(&p, &data, &st, &why);
	if (r < 0)
		return sb_filejob_failed(j, &why, err);
	len = strlen(from);
	at = (const char *)data.data;
	end = at + data.len;
	while ((hit = memmem(at, (size_t)(end - at), from, len))) {
		sb_buf_add(&done, at, (size_t)(hit - at));
		sb_buf_add_str(&done, to);
		at = hit + len;
		n++;
	}
	sb_buf_add(&done, at, (size_t)(end - at));
	if (n == 0) {
		sb_buf_addf(&j->text, "old_string not found in %s; ", p.path);
		show_near(&data, from, &j->text);
		j->is_error = true;
		return sb_buf_check(&j->text, "result", err);
	}
	if (n > 1 && !all)
		return sb_filejob_says(j, true, err,
			"old_string occurs %zu times in %s: give more of its surroundings, or "
			"replace_all",
			n, p.path);
	if (sb_buf_check(&done, p.path, &why) == 0)
		r = put_file(&p, done.data, done.len, false, &why);
	if (r < 0 || why.code)
		return sb_filejob_failed(j, &why, err);
	return sb_filejob_says(j, false, err, "edited %s: %zu replacement(s) made", p.path, n);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void
ls_line(int dir, const char *name, struct sb_buf *text)
{
	char shown[1100];
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return;
	(void)sb_escape(name, strlen(name), shown, sizeof shown);
	if (S_ISDIR(st.st_mode))
		sb_buf_addf(text, "%s/\n", shown);
	else if (S_ISLNK(st.st_mode))
		sb_buf_addf(text, "%s@\n", shown);
	else
		sb_buf_addf(text, "%s\t%lld\n", shown, (long long)st.st_size);
}

static int
ls_run(struct sb_filejob *j, struct sb_error *err)
{
	sb_auto(file_place) struct file_place p = { .at.fd = -1 };
	sb_auto(sb_strlist) struct sb_strlist names = { 0 };
	sb_autoclosedir DIR *d = NULL;
	struct sb_error why = { 0 };
	struct dirent *e;
	int64_t max = sb_params_int(&j->params, "max_results");
	int r, fd = -1;

	r = find_place(j, &p, &why);
	if (r == 0)
		r = fd = sb_path_open(p.at.fd, p.at.rel, O_RDONLY | O_DIRECTORY, 0, &why);
	if (r < 0)
		return sb_filejob_failed(j, &why, err);
	d = fdopendir(fd);
	if (!d) {
		(void)close(fd);
		return sb_fail_errno(err, "list %s", p.path);
	}
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			sb_strlist_add(&names, e->d_name);
	r = sb_strlist_check(&names, err);
	if (r < 0)
		return r;
	if (names.n)
		qsort(names.v, names.n, sizeof names.v[0], by_name);
	for (size_t i = 0; i < names.n && i < (size_t)max; i++)
		ls_line(dirfd(d), names.v[i], &j->text);
	if (names.n == 0)
		sb_buf_add_str(&j->text, "(empty directory)");
	if (names.n > (size_t)max) {
		sb_buf_addf(&j->text, "(%zu of %zu entries)", (size_t)max, names.n);
		j->truncated = true;
	}
	return sb_buf_check(&j->text, "result", err);
}

const struct sb_filejob_tool sb_filejob_text_table[] = {
	{ "read_file", NULL, read_run, false },
	{ "write_file", NULL, write_run, false },
	{ "edit_file", NULL, edit_run, false },
	{ "ls", NULL, ls_run, false },
	{ NULL, NULL, NULL, false },
};
