/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/place.h>

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/owndir.h>
#include <base/path.h>
#include <base/random.h>
#include <base/str.h>
#include <sb/log.h>

#define RECORD "record"
#define RECORD_MAX (1u << 20)
#define RECORD_HEAD "sandbox 1"
#define DOOMED "doomed"
#define NAME_KEPT 40 /* bytes of a directory's name that are kept */

void
sb_place_free(struct sb_place *b)
{
	free(b->id);
	free(b->instance);
	free(b->root);
	sb_strlist_free(&b->dirs);
	sb_strlist_free(&b->labels);
	*b = (struct sb_place){ 0 };
}

/* As programs see it who ask where they are: a home may be a link. */
static char *
home_dir(struct sb_error *err)
{
	const char *home = getenv("HOME");
	char *real = home && *home == '/' ? realpath(home, NULL) : NULL;

	if (!real && home && *home == '/')
		real = strdup(home);
	if (!real)
		(void)sb_fail(err, SB_E_NOTFOUND,
			"there is no home directory for sandboxes: set SBSYNC_BOX_DIR");
	return real;
}

char *
sb_place_base(struct sb_error *err)
{
	const char *own = getenv("SBSYNC_BOX_DIR"), *xdg = getenv("XDG_STATE_HOME");
	sb_autofree char *home = NULL;
	char *path;

	if (own && *own == '/')
		path = strdup(own);
	else if (xdg && *xdg == '/')
		path = sb_str_printf("%s/sandboxes", xdg);
	else {
		home = home_dir(err);
		if (!home)
			return NULL;
		path = sb_str_printf("%s/.local/state/sandboxes", home);
	}
	if (!path)
		sb_fail(err, SB_E_NOMEM, "out of memory");
	return path;
}

static int
check_id(const char *id, struct sb_error *err)
{
	size_t n = strlen(id);
	char shown[100];
	bool ok = n > 0 && n <= 64 && *id != '-' && *id != '.';

	for (size_t i = 0; ok && i < n; i++)
		ok = isalnum((unsigned char)id[i]) || strchr("-_.", id[i]);
	return ok ? 0 :
		    sb_fail(err, SB_E_INVAL, "'%s' is no id of a sandbox",
			    sb_escape(id, n, shown, sizeof shown));
}

/*
 * The record: lines "KEY VALUE\n" with values escaped for newline and backslash (paths may hold
 * both).
 */
static void
add_line(struct sb_buf *b, const char *key, const char *value)
{
	sb_buf_addf(b, "%s ", key);
	for (; *value; value++) {
		if (*value == '\n')
			sb_buf_add_str(b, "\\n");
		else if (*value == '\\')
			sb_buf_add_str(b, "\\\\");
		else
			sb_buf_add_char(b, *value);
	}
	sb_buf_add_char(b, '\n');
}

static int
write_record(int dir, const struct sb_place *place, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	int r;

	sb_buf_init(&b, RECORD_MAX);
	sb_buf_add_str(&b, RECORD_HEAD "\n");
	add_line(&b, "id", place->id);
	add_line(&b, "instance", place->instance);
	add_line(&b, "root", place->root);
	add_line(&b, "made", place->made_root ? "yes" : "no");
	for (size_t i = 0; i < place->dirs.n; i++)
		add_line(&b, "dir", place->dirs.v[i]);
	for (size_t i = 0; i < place->labels.n; i++)
		add_line(&b, "label", place->labels.v[i]);
	add_line(&b, "end", "");
	r = sb_buf_check(&b, "the record of a sandbox", err);
	return r < 0 ? r : sb_file_replace(dir, RECORD, b.data, b.len, 0600, err);
}

static void
unescape(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\' && s[1]) {
			s++;
			*to++ = *s == 'n' ? '\n' : *s;
		} else {
			*to++ = *s;
		}
	}
	*to = '\0';
}

static int
take_text(char **to, const char *value, struct sb_error *err)
{
	free(*to);
	*to = strdup(value);
	return *to ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

static int
check_lists(const struct sb_place *place, struct sb_error *err)
{
	int r = sb_strlist_check(&place->dirs, err);

	return r < 0 ? r : sb_strlist_check(&place->labels, err);
}

static int
take_line(struct sb_place *place, const char *key, const char *value, bool *end,
	struct sb_error *err)
{
	if (strcmp(key, "id") == 0)
		return take_text(&place->id, value, err);
	if (strcmp(key, "instance") == 0)
		return take_text(&place->instance, value, err);
	if (strcmp(key, "root") == 0)
		return take_text(&place->root, value, err);
	if (strcmp(key, "dir") == 0)
		sb_strlist_add(&place->dirs, value);
	if (strcmp(key, "label") == 0)
		sb_strlist_add(&place->labels, value);
	if (strcmp(key, "made") == 0)
		place->made_root = strcmp(value, "yes") == 0;
	if (strcmp(key, "end") == 0)
		*end = true;
	return 0;
}

static int
read_record(int dir, struct sb_place *place, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	bool end = false;
	char *line, *next;
	int r = sb_file_read(dir, RECORD, RECORD_MAX, &b, err);

	if (r < 0)
		return r;
	if (!sb_str_starts((char *)b.data, RECORD_HEAD "\n"))
		return sb_fail(err, SB_E_VERSION, "the record of a sandbox is of another version");
	for (line = (char *)b.data + strlen(RECORD_HEAD) + 1; r == 0 && (next = strchr(line, '\n'));
		line = next + 1) {
		char *value = strchr(line, ' ');

		*next = '\0';
		if (!value)
			continue;
		*value++ = '\0';
		unescape(value);
		r = take_line(place, line, value, &end, err);
	}
	if (r == 0)
		r = check_lists(place, err);
	if (r == 0 &&
		(!end || !place->id || !place->instance || !place->root || *place->root != '/'))
		r = sb_fail(err, SB_E_CORRUPT, "the record of a sandbox is damaged");
	return r;
}

/* The folder of places, or of one of them. */
static int
open_base(bool create, char **path, struct sb_error *err)
{
	*path = sb_place_base(err);
	if (!*path)
		return err && err->code ? err->code : SB_E_NOTFOUND;
	return sb_owndir_open(*path, "", create, err);
}

static int
not_found(const char *id, struct sb_error *err)
{
	return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "there is no sandbox '%s' on this machine", id);
}

/* Is this the instance that the caller means? */
static bool
is_meant(const struct sb_place *place, const char *instance)
{
	return !instance || !*instance || strcmp(place->instance, instance) == 0;
}

/* "NN-NAME" with what is unusual in a name replaced. */
static void
add_dir(struct sb_place *place, const char *base, const char *name)
{
	char clean[NAME_KEPT + 1];
	size_t n = 0;
	const char *p = strrchr(name, '/');

	for (p = p ? p + 1 : name; *p && n < NAME_KEPT; p++)
		clean[n++] = isalnum((unsigned char)*p) || strchr("-_.", *p) ? *p : '-';
	while (n && strchr(".-", clean[n - 1]))
		n--;
	clean[n] = '\0';
	p = clean + strspn(clean, ".-");
	sb_strlist_addf(&place->dirs, "%s/%s/dirs/%02zu-%s", base, place->id, place->dirs.n + 1,
		*p ? p : "dir");
}

static int
is_empty(const char *path, struct sb_error *err)
{
	sb_autoclosedir DIR *d = opendir(path);
	const struct dirent *e;

	if (!d)
		return sb_fail_errno(err, "%s", path);
	while ((e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return 0;
	return 1;
}

/* A root that the profile names: not there, or an empty directory. */
static int
check_root(struct sb_place *place, struct sb_error *err)
{
	struct stat st;
	int r;

	if (stat(place->root, &st) < 0) {
		place->made_root = true;
		return errno == ENOENT ? 0 : sb_fail_errno(err, "%s", place->root);
	}
	if (!S_ISDIR(st.st_mode))
		return sb_fail(err, SB_E_EXISTS, "the runtime root '%s' is no directory",
			place->root);
	r = is_empty(place->root, err);
	if (r == 0)
		return sb_fail(err, SB_E_EXISTS,
			"the runtime root '%s' holds files of somebody else: empty it, or name "
			"another",
			place->root);
	return r < 0 ? r : 0;
}

/* The root the profile names, relative ones from the home directory. */
static char *
named_root(const char *root, struct sb_error *err)
{
	sb_autofree char *home = NULL;

	if (*root == '/')
		return strdup(root);
	home = home_dir(err);
	if (!home)
		return NULL;
	if (strcmp(root, "~") == 0 || sb_str_starts(root, "~/"))
		root += root[1] ? 2 : 1;
	return sb_str_printf("%s/%s", home, root);
}

/* Fills in a new place; makes nothing yet. */
static int
design(const struct sb_place_wish *w, const char *base, struct sb_place *place,
	struct sb_error *err)
{
	uint8_t word[12];
	char hex[2 * sizeof word + 1];
	int r = sb_random(word, sizeof word, err);

	place->id = strdup(w->id);
	place->instance = r < 0 ? NULL : strdup(sb_str_hex(word, sizeof word, hex));
	place->root = w->root && *w->root ? named_root(w->root, err) :
					    sb_str_printf("%s/%s/root", base, w->id);
	if (r < 0 || !place->id || !place->instance || !place->root)
		return r < 0             ? r :
			err && err->code ? err->code :
					   sb_fail(err, SB_E_NOMEM, "out of memory");
	r = check_root(place, err);
	for (size_t i = 0; w->names && w->names[i]; i++)
		add_dir(place, base, w->names[i]);
	sb_strlist_add_all(&place->labels, w->labels);
	return r < 0 ? r : check_lists(place, err);
}

/* Makes the directories of the record that are missing, and checks that they can be used. */
static int
make_dirs(const struct sb_place *place, struct sb_error *err)
{
	struct stat st;
	int r = sb_file_mkdirs(place->root, 0755, err);

	for (size_t i = 0; r == 0 && i < place->dirs.n; i++)
		r = sb_file_mkdirs(place->dirs.v[i], 0755, err);
	if (r == 0 && stat(place->root, &st) < 0)
		r = sb_fail_errno(err, "%s", place->root);
	if (r == 0 && access(place->root, R_OK | W_OK | X_OK) < 0)
		r = sb_fail_errno(err, "the runtime root %s", place->root);
	return r;
}

/*
 * An interrupted removal leaves half a tree, and a sync must never read that as deletions by the
 * user. So destroy writes this mark before it removes the first file; from then on only another
 * destroy finds the sandbox.
 */
static bool
is_doomed(int dir)
{
	return faccessat(dir, DOOMED, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int
finish_doomed(int base_fd, int *dir, const char *base, const char *id, struct sb_error *err)
{
	int r;

	if (!is_doomed(*dir))
		return 0;
	r = sb_place_destroy(id, NULL, err);
	if (r < 0)
		return r;
	(void)close(*dir);
	*dir = -1;
	if (mkdirat(base_fd, id, 0700) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "%s/%s", base, id);
	*dir = openat(base_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *dir < 0 ? sb_fail_errno(err, "%s/%s", base, id) : 0;
}

int
sb_place_prepare(const struct sb_place_wish *w, struct sb_place *out, struct sb_error *err)
{
	sb_auto(sb_place) struct sb_place place = { 0 };
	sb_autofree char *base = NULL;
	sb_autoclose int base_fd = -1, dir = -1, lock = -1;
	struct sb_error why = { 0 };
	int r = check_id(w->id, err);

	if (r < 0)
		return r;
	base_fd = open_base(true, &base, err);
	if (base_fd < 0)
		return base_fd;
	if (mkdirat(base_fd, w->id, 0700) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "%s/%s", base, w->id);
	dir = openat(base_fd, w->id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return sb_fail_errno(err, "%s/%s", base, w->id);
	r = finish_doomed(base_fd, &dir, base, w->id, err);
	if (r < 0)
		return r;
	lock = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = lock < 0 ? sb_fail_errno(err, "%s/%s/lock", base, w->id) :
		       sb_file_lock(lock, 10000, err);
	if (r < 0)
		return r;
	r = read_record(dir, &place, &why);
	if (r == 0 && !is_meant(&place, w->instance) && !w->may_create)
		return not_found(w->id, err);
	if (r == SB_E_NOTFOUND) {
		if (!w->may_create && w->instance && *w->instance) {
			(void)sb_path_remove_tree(base_fd, w->id, NULL);
			return not_found(w->id, err);
		}
		r = design(w, base, &place, err);
		if (r == 0)
			r = write_record(dir, &place, err);
		place.fresh = true;
	} else if (r < 0) {
		return sb_fail(err, r, "sandbox '%s': %s", w->id, why.msg);
	}
	if (r == 0)
		r = make_dirs(&place, err);
	if (r < 0)
		return r;
	*out = place;
	place = (struct sb_place){ 0 };
	return 0;
}

/* Opens the folder of a sandbox; `dir` stays -1 when there is none. */
static int
open_folder(const char *id, char **base, int *base_fd, int *dir, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r = check_id(id, err);

	if (r < 0)
		return r;
	*base_fd = open_base(false, base, &why);
	if (*base_fd == SB_E_NOTFOUND)
		return 0;
	if (*base_fd >= 0)
		*dir = openat(*base_fd, id, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return *dir >= 0 || (*base_fd >= 0 && errno == ENOENT) ?
		0 :
		sb_fail_errno(err, "sandbox '%s'", id);
}

static bool
has_label(const struct sb_place *place, const char *label)
{
	for (size_t i = 0; i < place->labels.n; i++)
		if (strcmp(place->labels.v[i], label) == 0)
			return true;
	return false;
}

int
sb_place_find(const char *id, const char *instance, const char *const *labels, struct sb_place *out,
	struct sb_error *err)
{
	sb_auto(sb_place) struct sb_place place = { 0 };
	sb_autofree char *base = NULL;
	sb_autoclose int base_fd = -1, dir = -1;
	struct sb_error why = { 0 };
	bool meant;
	int r = open_folder(id, &base, &base_fd, &dir, err);

	if (dir < 0)
		return r < 0 ? r : not_found(id, err);
	r = is_doomed(dir) ? SB_E_NOTFOUND : read_record(dir, &place, &why);
	if (r < 0)
		return r == SB_E_NOTFOUND ? not_found(id, err) :
					    sb_fail(err, r, "sandbox '%s': %s", id, why.msg);
	meant = is_meant(&place, instance);
	for (; meant && labels && *labels; labels++)
		meant = has_label(&place, *labels);
	if (!meant)
		return not_found(id, err);
	*out = place;
	place = (struct sb_place){ 0 };
	return 0;
}

/* Empties a directory that was there before us; it stays. */
static int
empty_dir(const char *path, struct sb_error *err)
{
	sb_autoclosedir DIR *d = opendir(path);
	const struct dirent *e;
	int r = 0;

	if (!d)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "%s", path);
	while (r == 0 && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = sb_path_remove_tree(dirfd(d), e->d_name, err);
	return r;
}

static int
remove_root(const struct sb_place *place, const char *base, struct sb_error *err)
{
	sb_autofree char *parent = strdup(place->root),
			 *folder = sb_str_printf("%s/%s/", base, place->id);
	char *slash = parent ? strrchr(parent, '/') : NULL;
	sb_autoclose int fd = -1;

	if (!slash || !folder)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	/* Inside its folder it goes with that. */
	if (sb_str_starts(place->root, folder))
		return 0;
	if (!place->made_root)
		return empty_dir(place->root, err);
	*slash = '\0';
	fd = open(*parent ? parent : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "%s", parent);
	return slash[1] ? sb_path_remove_tree(fd, slash + 1, err) :
			  sb_fail(err, SB_E_INVAL, "the root of a sandbox is '/'");
}

/* Removes everything, the record last, so that an interrupted removal can be found and repeated. */
static int
remove_all(int base_fd, int dir, const char *base, const struct sb_place *place, const char *id,
	struct sb_error *err)
{
	int r = sb_file_replace(dir, DOOMED, "", 0, 0600, err);

	if (r == 0)
		r = remove_root(place, base, err);
	if (r == 0)
		r = sb_path_remove_tree(dir, "root", err);
	if (r == 0)
		r = sb_path_remove_tree(dir, "dirs", err);
	return r < 0 ? r : sb_path_remove_tree(base_fd, id, err);
}

int
sb_place_destroy(const char *id, const char *instance, struct sb_error *err)
{
	sb_auto(sb_place) struct sb_place place = { 0 };
	sb_autofree char *base = NULL;
	sb_autoclose int base_fd = -1, dir = -1, lock = -1;
	struct sb_error why = { 0 };
	int r = open_folder(id, &base, &base_fd, &dir, err);

	if (dir < 0)
		return r;
	/* One of a connection that was cut may still be at it. */
	lock = openat(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (lock < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "sandbox '%s'", id);
	r = sb_file_lock(lock, 10000, err);
	if (r < 0)
		return r;
	r = read_record(dir, &place, &why);
	/*
	 * Without a record there is nothing but the folder: it was never made, or is all but gone.
	 */
	if (r == SB_E_NOTFOUND)
		return is_doomed(dir) ? sb_path_remove_tree(base_fd, id, err) : 0;
	if (r < 0)
		return sb_fail(err, r, "sandbox '%s': %s", id, why.msg);
	if (!is_doomed(dir) && !is_meant(&place, instance))
		return 0;
	return remove_all(base_fd, dir, base, &place, id, err);
}
