/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/file.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/escape.h>
#include <base/random.h>
#include <base/str.h>
#include <sb/cancel.h>

#define READ_STEP ((size_t)65536)
#define LOCK_STEP_MS 20

static void
wait_for(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	(void)poll(&p, 1, -1);
}

int
sb_file_write_all(int fd, const void *data, size_t len, struct sb_error *err)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EAGAIN)
			wait_for(fd, POLLOUT);
		else if (n < 0 && errno != EINTR)
			return sb_fail_errno(err, "write %zu bytes", len);
		if (n < 0)
			continue;
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t
sb_file_read_full(int fd, void *data, size_t len, struct sb_error *err)
{
	uint8_t *p = data;
	size_t got = 0;

	while (got < len) {
		ssize_t n = read(fd, p + got, len - got);

		if (n < 0 && errno == EAGAIN)
			wait_for(fd, POLLIN);
		else if (n < 0 && errno != EINTR)
			return sb_fail_errno(err, "read %zu bytes", len - got);
		if (n < 0)
			continue;
		if (!n)
			break;
		got += (size_t)n;
	}
	return (ssize_t)got;
}

ssize_t
sb_file_write_nosig(int fd, const void *data, size_t len)
{
	static const struct timespec now = { 0 };
	sigset_t pipe_set;
	sigset_t old;
	sigset_t pending;
	bool was_pending;
	ssize_t n;
	int sys;

	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, &old);
	was_pending = !sigpending(&pending) && sigismember(&pending, SIGPIPE) == 1;
	n = write(fd, data, len);
	sys = errno;
	/*
	 * The signal is for this thread; taking it back leaves one that was there before
	 * alone. A pipe whose reader goes in the middle of a write gives both a short count and
	 * the signal.
	 */
	if (((n < 0 && sys == EPIPE) || (n >= 0 && (size_t)n < len)) && !was_pending)
		while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
			;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = sys;
	return n;
}

/* Opens the directory that holds `name` and points `out_leaf` at the last component. */
static int
open_dir_of(int dirfd, const char *name, const char **out_leaf, struct sb_error *err)
{
	const char *slash = strrchr(name, '/');
	sb_autofree char *dir = slash ? strndup(name, (size_t)(slash + 1 - name)) : NULL;
	int fd;

	if (slash && !dir)
		return sb_fail(err, SB_E_NOMEM, "directory name: out of memory");
	fd = openat(dirfd, dir ? dir : ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sb_fail_errno(err, "open its directory");
	*out_leaf = slash ? slash + 1 : name;
	return fd;
}

#define TEMP_RANDOM 12

static int
temp_name(char *out, size_t size, struct sb_error *err)
{
	uint8_t random[TEMP_RANDOM];
	char hex[2 * TEMP_RANDOM + 1];
	int r = sb_random(random, sizeof random, err);

	if (r >= 0)
		(void)snprintf(out, size, ".sb-new-%s", sb_str_hex(random, sizeof random, hex));
	return r;
}

static int
fill_temp(int fd, const void *data, size_t len, mode_t mode, struct sb_error *err)
{
	int r = sb_file_write_all(fd, data, len, err);

	if (r < 0)
		return r;
	if (fchmod(fd, mode) < 0)
		return sb_fail_errno(err, "chmod %03o", (unsigned)mode);
	if (fsync(fd) < 0)
		return sb_fail_errno(err, "fsync");
	return 0;
}

/* All that can be short, memory and descriptors, is taken before the rename. */
int
sb_file_replace(int dirfd, const char *name, const void *data, size_t len, mode_t mode,
	struct sb_error *err)
{
	char temp[2 * TEMP_RANDOM + 16];
	sb_autoclose int dir = -1;
	sb_autoclose int fd = -1;
	const char *leaf = NULL;
	struct sb_escape_name s;
	int r = temp_name(temp, sizeof temp, err);

	if (r >= 0)
		r = dir = open_dir_of(dirfd, name, &leaf, err);
	if (r < 0)
		return sb_wrap(err, r, "replace %s", sb_escape_name(name, strlen(name), &s));
	fd = openat(dir, temp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return sb_fail_errno(err, "replace %s: make a temporary file",
			sb_escape_name(name, strlen(name), &s));
	r = fill_temp(fd, data, len, mode, err);
	if (r < 0)
		goto undo_temp;
	if (renameat(dir, temp, dir, leaf) < 0) {
		r = sb_fail_errno(err, "rename");
		goto undo_temp;
	}
	if (fsync(dir) < 0)
		return sb_fail_errno(err, "replace %s: fsync its directory",
			sb_escape_name(name, strlen(name), &s));
	return 0;

undo_temp:
	(void)unlinkat(dir, temp, 0);
	return sb_wrap(err, r, "replace %s", sb_escape_name(name, strlen(name), &s));
}

/* Reads to the end of `fd`; one byte more than allowed tells that there is too much. */
static int
read_to_end(int fd, size_t hint, struct sb_buf *out, struct sb_error *err)
{
	for (;;) {
		size_t left = out->max - out->len;
		size_t want = hint > out->len ? hint - out->len : READ_STEP;
		uint8_t extra;
		uint8_t *to = &extra;
		ssize_t n;

		want = want < left ? want : left;
		if (want && !(to = sb_buf_reserve(out, want)))
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		n = sb_file_read_full(fd, to, want ? want : 1, err);
		if (n < 0)
			return (int)n;
		if (n && !want)
			return sb_fail(err, SB_E_LIMIT, "larger than %zu bytes", out->max);
		if (want)
			sb_buf_grow(out, (size_t)n);
		if (!n)
			return 0;
	}
}

int
sb_file_read(int dirfd, const char *name, size_t max, struct sb_buf *out, struct sb_error *err)
{
	sb_autoclose int fd = -1;
	struct sb_escape_name s;
	struct stat st;
	size_t hint;
	int r;

	sb_buf_init(out, max);
	/*
	 * Non-blocking, so that a fifo does not hold us here; regular files do not care.
	 */
	fd = openat(dirfd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "read %s", sb_escape_name(name, strlen(name), &s));
	if (!S_ISREG(st.st_mode))
		return sb_fail(err, SB_E_INVAL, "read %s: not a regular file",
			sb_escape_name(name, strlen(name), &s));
	if (st.st_size > 0 && (uintmax_t)st.st_size > max)
		return sb_fail(err, SB_E_LIMIT, "read %s: larger than %zu bytes",
			sb_escape_name(name, strlen(name), &s), max);
	hint = (size_t)st.st_size;
	r = read_to_end(fd, hint, out, err);
	if (r < 0) {
		sb_buf_free(out);
		return sb_wrap(err, r, "read %s", sb_escape_name(name, strlen(name), &s));
	}
	return 0;
}

/* mkdir of one directory that may be there already. */
static int
make_one(const char *path, mode_t mode)
{
	struct stat st;
	int sys;

	if (!mkdir(path, mode))
		return 0;
	sys = errno;
	/* A read-only parent says EROFS or EACCES also for what exists. */
	if (sys != ENOENT && !stat(path, &st)) {
		if (S_ISDIR(st.st_mode))
			return 0;
		sys = ENOTDIR;
	}
	errno = sys;
	return -1;
}

int
sb_file_mkdirs(const char *path, mode_t mode, struct sb_error *err)
{
	sb_autofree char *copy = NULL;
	struct sb_escape_name s;

	if (!*path)
		return sb_fail(err, SB_E_INVAL, "make directory: the name is empty");
	if (!make_one(path, mode))
		return 0;
	if (errno != ENOENT)
		return sb_fail_errno(err, "make directory %s",
			sb_escape_name(path, strlen(path), &s));
	copy = strdup(path);
	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "make directory %s: out of memory",
			sb_escape_name(path, strlen(path), &s));
	for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
		*p = 0;
		if (make_one(copy, mode) < 0)
			return sb_fail_errno(err, "make directory %s",
				sb_escape_name(copy, strlen(copy), &s));
		*p = '/';
	}
	if (make_one(path, mode) < 0)
		return sb_fail_errno(err, "make directory %s",
			sb_escape_name(path, strlen(path), &s));
	return 0;
}

/* A kernel without OFD locks (gVisor) has those of flock, which belong to the open file as well. */
static int
set_lock(int fd, short type)
{
	struct flock whole = { .l_type = type, .l_whence = SEEK_SET };
	int r = fcntl(fd, F_OFD_SETLK, &whole);

	if (r < 0 && errno == EINVAL)
		r = flock(fd, type == F_UNLCK ? LOCK_UN : LOCK_EX | LOCK_NB);
	return r;
}

int
sb_file_lock(int fd, int wait_ms, struct sb_error *err)
{
	int64_t until = sb_now_ms() + wait_ms;

	for (;;) {
		struct timespec step = { .tv_nsec = LOCK_STEP_MS * 1000000L };

		if (!set_lock(fd, F_WRLCK))
			return 0;
		if (errno == EINTR)
			continue;
		if (errno != EAGAIN && errno != EACCES)
			return sb_fail_errno(err, "lock");
		if (sb_now_ms() >= until)
			return sb_fail(err, SB_E_LOCKED, "held by another process");
		(void)nanosleep(&step, NULL);
	}
}

void
sb_file_unlock(int fd)
{
	if (fd < 0)
		return;
	(void)set_lock(fd, F_UNLCK);
	(void)close(fd);
}
