/* SPDX-License-Identifier: MIT */
/* The guest's work on files: by the box's own paths, with the rights of the box's user. */
#include "config.h"

#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <base/cleanup.h>

#define FILES_MAX 256
#define LIST_MAX 10000
#define DEPTH_MAX 64
#define PATH_LEN 4096
#define META_MAX 65536

/* A file that the host reads or writes. */
struct file {
	struct file *next;
	struct guest_link *link;
	uint32_t id;
	int fd;
};

static struct file *files;

/* The attributes of users: NAME=value each. */
static void
put_meta(const char *path, struct sb_buf *out)
{
	sb_autofree char *names = malloc(META_MAX);
	sb_autofree char *value = malloc(META_MAX);
	ssize_t len = names && value ? llistxattr(path, names, META_MAX) : -1;
	size_t count = 0;
	struct sb_buf b;

	sb_buf_init(&b, SB_GUEST_FRAME_MAX);
	for (char *n = names; n && len > 0 && n < names + len; n += strlen(n) + 1) {
		ssize_t v = strncmp(n, "user.", 5) == 0 ? lgetxattr(path, n, value, META_MAX) : -1;
		size_t key = strlen(n);

		if (v < 0)
			continue;
		count++;
		sb_buf_add_varint(&b, key + 1 + (size_t)v);
		sb_buf_add(&b, n, key);
		sb_buf_add_char(&b, '=');
		sb_buf_add(&b, value, (size_t)v);
	}
	if (b.failed)
		count = 0;
	sb_buf_add_varint(out, count);
	if (count > 0)
		sb_buf_add(out, b.data, b.len);
	sb_buf_free(&b);
}

static int
put_stat(const char *path, const char *name, const struct stat *st, struct sb_buf *out)
{
	char target[PATH_LEN];
	ssize_t n = S_ISLNK(st->st_mode) ? readlink(path, target, sizeof target) : 0;

	sb_buf_add_bytes(out, name, strlen(name));
	sb_buf_add_u8(out,
		S_ISREG(st->st_mode)         ? 'f' :
			S_ISDIR(st->st_mode) ? 'd' :
			S_ISLNK(st->st_mode) ? 'l' :
					       'o');
	sb_buf_add_varint(out, (uint64_t)st->st_size);
	sb_buf_add_varint(out, st->st_mode);
	sb_buf_add_varint(out, st->st_uid == geteuid());
	sb_buf_add_varint(out, st->st_mtim.tv_sec > 0 ? (uint64_t)st->st_mtim.tv_sec : 0);
	sb_buf_add_varint(out, (uint64_t)st->st_mtim.tv_nsec);
	sb_buf_add_bytes(out, target, n > 0 ? (size_t)n : 0);
	if (S_ISREG(st->st_mode))
		put_meta(path, out);
	else
		sb_buf_add_varint(out, 0);
	return out->failed ? ENOMEM : 0;
}

int
guest_file_entry(const char *path, const char *name, struct sb_buf *out)
{
	struct stat st;

	return lstat(path, &st) < 0 ? errno : put_stat(path, name, &st, out);
}

static const char *
leaf(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static void
answer_entry(const struct guest_ask *a, const char *path)
{
	struct sb_buf b;
	int sys;

	sb_buf_init(&b, SB_GUEST_FRAME_MAX - 16);
	sys = guest_file_entry(path, leaf(path), &b);
	if (sys)
		guest_fail(a, sys);
	else
		guest_send_buf(a->link, SB_GUEST_DONE, a->id, &b);
	sb_buf_free(&b);
}

/* Makes the directories above the last name. 0, or an errno. */
static int
make_parents(const char *path)
{
	sb_autofree char *copy = strdup(path);

	for (char *p = copy ? copy + 1 : NULL; p && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		if (mkdir(copy, 0755) < 0 && errno != EEXIST && errno != EROFS && errno != EISDIR)
			return errno;
		*p = '/';
	}
	return copy ? 0 : ENOMEM;
}

static void
make_dir(const struct guest_ask *a, const char *path)
{
	struct stat st;
	int sys = make_parents(path);

	if (sys == 0 && mkdir(path, 0755) < 0)
		sys = errno == EEXIST && stat(path, &st) == 0 && !S_ISDIR(st.st_mode) ? ENOTDIR :
											errno;
	if (sys)
		guest_fail(a, sys);
	else
		answer_entry(a, path);
}

/* Everything beneath and the thing itself. */
static int
remove_tree(const char *path)
{
	sb_autoclosedir DIR *d = NULL;
	struct dirent *e;
	int sys = 0;

	if (unlink(path) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return errno;
	d = opendir(path);
	while (d && sys == 0 && (e = readdir(d))) {
		char *sub;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (asprintf(&sub, "%s/%s", path, e->d_name) < 0)
			return ENOMEM;
		sys = remove_tree(sub);
		free(sub);
	}
	if (sys == 0 && rmdir(path) < 0 && errno != ENOENT)
		sys = errno;
	return sys;
}

static int
copy_bytes(int from, int to)
{
	char piece[SB_GUEST_DATA_MAX];
	ssize_t n;

	while ((n = read(from, piece, sizeof piece)) > 0)
		for (ssize_t at = 0; at < n;) {
			ssize_t w = write(to, piece + at, (size_t)(n - at));

			if (w < 0)
				return errno;
			at += w;
		}
	return n < 0 ? errno : 0;
}

/* For a move to another file system. */
static int
copy_tree(const char *from, const char *to)
{
	sb_autoclosedir DIR *d = NULL;
	sb_autoclose int in = -1;
	sb_autoclose int out = -1;
	char target[PATH_LEN];
	struct dirent *e;
	struct stat st;
	int sys = 0;
	ssize_t n;

	if (lstat(from, &st) < 0)
		return errno;
	if (S_ISLNK(st.st_mode)) {
		n = readlink(from, target, sizeof target - 1);
		if (n < 0)
			return errno;
		target[n] = '\0';
		return symlink(target, to) < 0 ? errno : 0;
	}
	if (S_ISREG(st.st_mode)) {
		in = open(from, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
		out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, st.st_mode & 07777);
		return in < 0 || out < 0 ? errno : copy_bytes(in, out);
	}
	if (!S_ISDIR(st.st_mode))
		return EXDEV;
	if (mkdir(to, st.st_mode & 07777) < 0 || !(d = opendir(from)))
		return errno;
	while (sys == 0 && (e = readdir(d))) {
		char *a, *b;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (asprintf(&a, "%s/%s", from, e->d_name) < 0)
			return ENOMEM;
		sys = asprintf(&b, "%s/%s", to, e->d_name) < 0 ? ENOMEM : copy_tree(a, b);
		free(a);
		if (sys != ENOMEM)
			free(b);
	}
	return sys;
}

static void
move(struct guest_ask *a, const char *from)
{
	sb_autofree char *to = guest_text(&a->c);
	struct stat st;
	int sys = to ? make_parents(to) : EINVAL;

	if (sys == 0 && lstat(from, &st) < 0)
		sys = errno;
	if (sys == 0 && rename(from, to) < 0)
		sys = errno;
	if (sys == EXDEV) {
		/* As a rename would: the old one goes, unless it is a directory with something in
		 * it. */
		(void)unlink(to);
		(void)rmdir(to);
		sys = copy_tree(from, to);
		if (sys == 0)
			sys = remove_tree(from);
	}
	if (sys)
		guest_fail(a, sys);
	else
		answer_entry(a, to);
}

struct listing {
	const struct guest_ask *ask;
	struct sb_buf b;
	size_t n;
};

static void
flush(struct listing *l)
{
	if (l->b.len > 0)
		guest_send_buf(l->ask->link, SB_GUEST_MORE, l->ask->id, &l->b);
	sb_buf_reset(&l->b);
}

static int
list_dir(struct listing *l, const char *path, const char *below, uint64_t depth)
{
	sb_autoclosedir DIR *d = opendir(path);
	struct dirent *e;
	int sys = d ? 0 : errno;

	while (sys == 0 && (e = readdir(d))) {
		char *full = NULL, *name = NULL;
		struct stat st;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (asprintf(&full, "%s/%s", path, e->d_name) < 0 ||
			asprintf(&name, "%s%s%s", below, *below ? "/" : "", e->d_name) < 0)
			return ENOMEM;
		/* One that went away meanwhile is none. */
		if (lstat(full, &st) == 0) {
			sys = ++l->n > LIST_MAX ? EOVERFLOW : put_stat(full, name, &st, &l->b);
			if (l->b.len > SB_GUEST_DATA_MAX)
				flush(l);
			if (sys == 0 && S_ISDIR(st.st_mode) && depth > 1)
				(void)list_dir(l, full, name, depth - 1);
			if (l->n > LIST_MAX)
				sys = EOVERFLOW;
		}
		free(full);
		free(name);
	}
	return sys;
}

static void
list(struct guest_ask *a, const char *path)
{
	uint64_t depth = sb_cursor_varint(&a->c);
	struct listing l = { .ask = a };
	int sys;

	sb_buf_init(&l.b, SB_GUEST_FRAME_MAX - 16);
	sys = list_dir(&l, path, "", depth < 1 ? 1 : depth > DEPTH_MAX ? DEPTH_MAX : depth);
	flush(&l);
	if (sys)
		guest_fail(a, sys);
	else
		guest_send(a->link, SB_GUEST_DONE, a->id, NULL, 0);
	sb_buf_free(&l.b);
}

/* One file of several: a new one, which takes the place of the old when it is whole. */
static void
join(struct guest_ask *a, const char *path)
{
	sb_autofree char **v = guest_list(&a->c, LIST_MAX);
	sb_autofree char *part = NULL;
	sb_autoclose int out = -1;
	int sys = v ? make_parents(path) : EINVAL;

	if (sys == 0 && asprintf(&part, "%s.sb-%d-%u", path, (int)getpid(), a->id) < 0) {
		part = NULL;
		sys = ENOMEM;
	}
	if (sys == 0) {
		out = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		sys = out < 0 ? errno : 0;
	}
	for (size_t i = 0; sys == 0 && v[i]; i++) {
		sb_autoclose int in = open(v[i], O_RDONLY | O_CLOEXEC);

		sys = in < 0 ? errno : copy_bytes(in, out);
	}
	if (sys == 0 && rename(part, path) < 0)
		sys = errno;
	if (sys && out >= 0)
		(void)unlink(part);
	for (size_t i = 0; sys == 0 && v[i]; i++)
		if (strcmp(v[i], path) != 0)
			(void)unlink(v[i]);
	if (sys)
		guest_fail(a, sys);
	else
		answer_entry(a, path);
}

/* Replaces the attributes of one prefix. */
static void
set_meta(struct guest_ask *a, const char *path)
{
	sb_autofree char *prefix = guest_text(&a->c);
	sb_autofree char **v = prefix ? guest_list(&a->c, LIST_MAX) : NULL;
	sb_autofree char *names = malloc(META_MAX);
	ssize_t len = names ? listxattr(path, names, META_MAX) : -1;
	int sys = v ? 0 : EINVAL;

	for (char *n = names; n && len > 0 && n < names + len; n += strlen(n) + 1)
		if (v && *prefix && strncmp(n, prefix, strlen(prefix)) == 0)
			(void)removexattr(path, n);
	for (size_t i = 0; sys == 0 && v[i]; i++) {
		size_t key = strcspn(v[i], "=");
		char *name;

		if (asprintf(&name, "%s%.*s", prefix, (int)key, v[i]) < 0) {
			sys = ENOMEM;
			break;
		}
		if (setxattr(path, name, v[i] + key + 1, strlen(v[i] + key + 1), 0) < 0)
			sys = errno;
		free(name);
	}
	if (sys)
		guest_fail(a, sys);
	else
		answer_entry(a, path);
}

static void
change_mode(struct guest_ask *a, const char *path)
{
	if (chmod(path, (mode_t)(sb_cursor_varint(&a->c) & 07777)) < 0)
		guest_fail(a, errno);
	else
		answer_entry(a, path);
}

static void
open_file(struct guest_ask *a, const char *path)
{
	uint64_t flags = sb_cursor_varint(&a->c), mode = sb_cursor_varint(&a->c);
	struct file *f = calloc(1, sizeof *f);
	struct sb_buf b;
	struct stat st;
	size_t n = 0;
	int sys = 0;

	for (const struct file *o = files; o; o = o->next)
		n++;
	if (!f || n >= FILES_MAX)
		sys = f ? EMFILE : ENOMEM;
	if (sys == 0 && (flags & SB_GUEST_PARENTS))
		sys = make_parents(path);
	if (sys == 0) {
		int how = flags & SB_GUEST_WRITING ?
			O_WRONLY | O_CREAT | (flags & SB_GUEST_NEW ? O_TRUNC : O_APPEND) :
			O_RDONLY;

		/* A pipe with nobody at its other end does not keep us waiting. */
		f->fd = open(path, how | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, (mode_t)(mode & 0777));
		sys = f->fd < 0 ? errno : fstat(f->fd, &st) < 0 ? errno : 0;
		if (sys == 0 && !S_ISREG(st.st_mode))
			sys = S_ISDIR(st.st_mode) ? EISDIR : ENODEV;
		if (sys && f->fd >= 0)
			(void)close(f->fd);
	}
	sb_buf_init(&b, SB_GUEST_FRAME_MAX - 16);
	if (sys == 0)
		sys = put_stat(path, leaf(path), &st, &b);
	if (sys) {
		guest_fail(a, sys);
		free(f);
	} else {
		f->link = a->link;
		f->id = a->id;
		f->next = files;
		files = f;
		guest_send_buf(a->link, SB_GUEST_DONE, a->id, &b);
	}
	sb_buf_free(&b);
}

static struct file *
find(const struct guest_ask *a, uint64_t id)
{
	for (struct file *f = files; f; f = f->next)
		if (f->link == a->link && f->id == id)
			return f;
	return NULL;
}

static void
read_file(struct guest_ask *a)
{
	static uint8_t piece[SB_GUEST_DATA_MAX];
	const struct file *f = find(a, sb_cursor_varint(&a->c));
	uint64_t offset = sb_cursor_varint(&a->c), count = sb_cursor_varint(&a->c);
	ssize_t n = -1;

	errno = EBADF;
	if (f && !a->c.bad && offset <= INT64_MAX)
		n = pread(f->fd, piece, count < sizeof piece ? count : sizeof piece, (off_t)offset);
	if (n < 0)
		guest_fail(a, errno);
	else
		guest_send(a->link, SB_GUEST_DONE, a->id, piece, (size_t)n);
}

static void
write_file(struct guest_ask *a)
{
	const struct file *f = find(a, sb_cursor_varint(&a->c));
	size_t len = sb_cursor_left(&a->c);
	const uint8_t *data = sb_cursor_take(&a->c, len);

	while (f && len > 0) {
		ssize_t n = write(f->fd, data, len);

		if (n < 0) {
			guest_fail(a, errno);
			return;
		}
		data += n;
		len -= (size_t)n;
	}
	if (!f)
		guest_fail(a, EBADF);
	else
		guest_send(a->link, SB_GUEST_DONE, a->id, NULL, 0);
}

void
guest_file_leave(struct guest_link *l, uint32_t id)
{
	for (struct file **f = &files; *f;) {
		struct file *old = *f;

		if (old->link == l && (id == 0 || old->id == id)) {
			*f = old->next;
			(void)close(old->fd);
			free(old);
		} else {
			f = &old->next;
		}
	}
}

/* A request that may take long, on a thread of its own. */
struct slow {
	struct guest_ask ask;
	char *path;
	uint8_t data[];
};

static void
run(struct guest_ask *a, const char *path)
{
	int sys;

	switch (a->what) {
	case SB_GUEST_DIR: list(a, path); break;
	case SB_GUEST_MOVE: move(a, path); break;
	case SB_GUEST_JOIN: join(a, path); break;
	default:
		sys = remove_tree(path);
		if (sys)
			guest_fail(a, sys);
		else
			guest_send(a->link, SB_GUEST_DONE, a->id, NULL, 0);
	}
}

static void *
run_slow(void *arg)
{
	struct slow *s = arg;

	run(&s->ask, s->path);
	(void)pthread_mutex_lock(&guest_mu);
	s->ask.link->refs--;
	(void)pthread_mutex_unlock(&guest_mu);
	guest_wake();
	free(s->path);
	free(s);
	return NULL;
}

/* Takes `path`. */
static void
begin_slow(struct guest_ask *a, char *path)
{
	size_t len = sb_cursor_left(&a->c);
	struct slow *s = malloc(sizeof *s + len);
	pthread_attr_t attr;
	pthread_t t;
	int r = ENOMEM;

	if (s) {
		s->ask = *a;
		s->path = path;
		memcpy(s->data, sb_cursor_take(&a->c, len), len);
		sb_cursor_init(&s->ask.c, s->data, len);
		(void)pthread_mutex_lock(&guest_mu);
		a->link->refs++;
		(void)pthread_mutex_unlock(&guest_mu);
		(void)pthread_attr_init(&attr);
		(void)pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
		(void)pthread_attr_setstacksize(&attr, 1 << 20);
		r = pthread_create(&t, &attr, run_slow, s);
		(void)pthread_attr_destroy(&attr);
	}
	if (r != 0) {
		guest_fail(a, r);
		if (s) {
			(void)pthread_mutex_lock(&guest_mu);
			a->link->refs--;
			(void)pthread_mutex_unlock(&guest_mu);
		}
		free(path);
		free(s);
	}
}

void
guest_file_ask(struct guest_ask *a)
{
	char *path;

	if (a->what == SB_GUEST_READ || a->what == SB_GUEST_WRITE) {
		a->what == SB_GUEST_READ ? read_file(a) : write_file(a);
		return;
	}
	path = guest_text(&a->c);
	if (!path || path[0] != '/') {
		guest_fail(a, EINVAL);
		free(path);
		return;
	}
	switch (a->what) {
	case SB_GUEST_STAT: answer_entry(a, path); break;
	case SB_GUEST_MKDIR: make_dir(a, path); break;
	case SB_GUEST_OPEN: open_file(a, path); break;
	case SB_GUEST_META: set_meta(a, path); break;
	case SB_GUEST_CHMOD: change_mode(a, path); break;
	case SB_GUEST_DIR:
	case SB_GUEST_MOVE:
	case SB_GUEST_JOIN:
	case SB_GUEST_REMOVE: begin_slow(a, path); return;
	default: guest_fail(a, ENOSYS);
	}
	free(path);
}
