/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/path.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/escape.h>

#define COMPONENT_MAX 255
#define SWAP_TRIES 64
#define DIR_FLAGS (O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

static atomic_bool walk_forced;
static atomic_bool no_openat2;

/* A path's beginning, escaped, for a message. */
static const char *
show(const char *rel, size_t len, struct sb_escape_name *room)
{
	return len ? sb_escape_name(rel, len, room) : "the root";
}

void
sb_path_force_walk(bool on)
{
	atomic_store(&walk_forced, on);
}

static const char *
component_fault(const char *c, size_t len)
{
	if (!len)
		return "an empty component";
	if (len == 1 && c[0] == '.')
		return "the component \".\"";
	if (len == 2 && c[0] == '.' && c[1] == '.')
		return "the component \"..\"";
	if (len > COMPONENT_MAX)
		return "a name longer than 255 bytes";
	return NULL;
}

int
sb_path_check(const char *rel, size_t len, struct sb_error *err)
{
	const char *p = rel;
	const char *end = rel + len;
	struct sb_escape_name s;

	if (!len)
		return 0;
	if (rel[0] == '/')
		return sb_fail(err, SB_E_ESCAPE, "%s: an absolute path", show(rel, len, &s));
	if (memchr(rel, 0, len))
		return sb_fail(err, SB_E_ESCAPE, "%s: holds a NUL byte", show(rel, len, &s));
	for (;;) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		const char *stop = slash ? slash : end;
		const char *fault = component_fault(p, (size_t)(stop - p));

		if (fault)
			return sb_fail(err, SB_E_ESCAPE, "%s: holds %s", show(rel, len, &s), fault);
		if (!slash)
			return 0;
		p = slash + 1;
	}
}

int
sb_path_open_root(const char *path, struct sb_error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sb_escape_name s;

	if (fd < 0)
		return sb_fail_errno(err, "open directory %s",
			sb_escape_name(path, strlen(path), &s));
	return fd;
}

/*
 * One component. The kernel says ENOTDIR for a symlink where a directory is wanted;
 * callers must be able to tell the two apart, so a symlink becomes ELOOP here.
 */
static int
open_component(int dirfd, const char *name, int flags, mode_t mode)
{
	for (int tries = 0; tries < SWAP_TRIES; tries++) {
		int fd = openat(dirfd, name, flags | O_NOFOLLOW | O_CLOEXEC, mode);
		struct stat st;

		if (fd >= 0 || errno != ENOTDIR)
			return fd;
		if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return -1;
		if (!S_ISDIR(st.st_mode)) {
			errno = S_ISLNK(st.st_mode) ? ELOOP : ENOTDIR;
			return -1;
		}
	}
	/* Someone keeps changing a directory for something else under our eyes. */
	errno = ELOOP;
	return -1;
}

/* The portable resolver: opens component after component of `piece`, which it cuts up. */
static int
walk(int dirfd, char *piece, int flags, mode_t mode)
{
	sb_autoclose int held = -1;
	char *name = piece;

	for (;;) {
		char *slash = strchr(name, '/');
		int next;

		if (!slash)
			return open_component(dirfd, name, flags, mode);
		*slash = 0;
		next = open_component(dirfd, name, DIR_FLAGS, 0);
		if (next < 0)
			return -1;
		if (held >= 0)
			(void)close(held);
		dirfd = held = next;
		name = slash + 1;
	}
}

/* True when the kernel answered; `*fd` is then its descriptor or -1 with errno. */
static bool
try_openat2(int dirfd, const char *piece, int flags, mode_t mode, int *fd)
{
	struct open_how how = {
		.flags = (uint64_t)(unsigned)(flags | O_NOFOLLOW | O_CLOEXEC),
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};

	if (atomic_load(&walk_forced) || atomic_load(&no_openat2))
		return false;
	/* EAGAIN: something was renamed or mounted while the kernel looked. */
	for (int tries = 0; tries < 16; tries++) {
		*fd = (int)syscall(SYS_openat2, dirfd, piece, &how, sizeof how);
		if (*fd >= 0 || errno != EAGAIN)
			break;
	}
	if (*fd >= 0)
		return true;
	if (errno == ENOSYS)
		atomic_store(&no_openat2, true);
	/*
	 * Older seccomp filters answer EPERM for calls they do not know, and ENOTDIR may
	 * hide a symlink: the walk gives the true answer.
	 */
	return errno != ENOSYS && errno != EPERM && errno != EAGAIN && errno != ENOTDIR;
}

static int
open_piece(int dirfd, const char *rel, size_t len, int flags, mode_t mode)
{
	char piece[PATH_MAX];
	int fd;

	memcpy(piece, rel, len);
	piece[len] = 0;
	if (try_openat2(dirfd, piece, flags, mode, &fd))
		return fd;
	return walk(dirfd, piece, flags, mode);
}

/*
 * Opens a path whose form was checked. -1 and errno on failure; ELOOP or EXDEV for what
 * leads out.
 */
static int
open_beneath(int rootfd, const char *rel, size_t len, int flags, mode_t mode)
{
	sb_autoclose int held = -1;
	int dirfd = rootfd;

	if (!len)
		return openat(rootfd, ".", flags | O_NOFOLLOW | O_CLOEXEC, mode);
	while (len >= PATH_MAX) {
		/* A component has at most 255 bytes, so there is a slash to cut at. */
		const char *cut = memrchr(rel, '/', PATH_MAX - 1);
		int next = open_piece(dirfd, rel, (size_t)(cut - rel), DIR_FLAGS, 0);

		if (next < 0)
			return -1;
		if (held >= 0)
			(void)close(held);
		dirfd = held = next;
		len -= (size_t)(cut + 1 - rel);
		rel = cut + 1;
	}
	return open_piece(dirfd, rel, len, flags, mode);
}

static int
fail_path(struct sb_error *err, const char *what, const char *rel, size_t len)
{
	struct sb_escape_name s;

	if (errno == ELOOP || errno == EXDEV) {
		int sys = errno;

		(void)sb_fail(err, SB_E_ESCAPE, "%s %s: a symlink is on its way", what,
			show(rel, len, &s));
		if (err)
			err->sys = sys;
		return SB_E_ESCAPE;
	}
	return sb_fail_errno(err, "%s %s", what, show(rel, len, &s));
}

int
sb_path_open(int rootfd, const char *rel, int flags, mode_t mode, struct sb_error *err)
{
	size_t len = strlen(rel);
	int r = sb_path_check(rel, len, err);
	int fd;

	if (r < 0)
		return r;
	fd = open_beneath(rootfd, rel, len, flags, mode);
	return fd >= 0 ? fd : fail_path(err, "open", rel, len);
}

/* Splits a checked path into its parent's length and its leaf. */
static size_t
parent_len(const char *rel, size_t len, const char **leaf)
{
	const char *slash = memrchr(rel, '/', len);

	*leaf = slash ? slash + 1 : rel;
	return slash ? (size_t)(slash - rel) : 0;
}

int
sb_path_open_parent(int rootfd, const char *rel, const char **out_leaf, struct sb_error *err)
{
	size_t len = strlen(rel);
	int r = sb_path_check(rel, len, err);
	const char *leaf;
	size_t parent;
	int fd;

	if (r < 0)
		return r;
	parent = parent_len(rel, len, &leaf);
	fd = open_beneath(rootfd, rel, parent, O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fail_path(err, "open directory", rel, parent);
	*out_leaf = len ? leaf : ".";
	return fd;
}

int
sb_path_stat(int rootfd, const char *rel, struct stat *out, struct sb_error *err)
{
	size_t len = strlen(rel);
	int flags = AT_SYMLINK_NOFOLLOW | (len ? 0 : AT_EMPTY_PATH);
	int r = sb_path_check(rel, len, err);
	sb_autoclose int held = -1;
	const char *leaf;
	size_t parent;
	int dirfd = rootfd;
	struct stat st;

	if (r < 0)
		return r;
	parent = parent_len(rel, len, &leaf);
	if (parent) {
		dirfd = held = open_beneath(rootfd, rel, parent, DIR_FLAGS, 0);
		if (held < 0 && errno == ENOTDIR)
			errno = ENOENT;
		if (held < 0)
			return fail_path(err, "stat", rel, len);
	}
	if (fstatat(dirfd, leaf, &st, flags) < 0)
		return fail_path(err, "stat", rel, len);
	*out = st;
	return 0;
}

static int
fail_mkdir(struct sb_error *err, const char *rel, size_t len)
{
	struct sb_escape_name s;

	if (errno == ENOTDIR)
		return sb_fail(err, SB_E_EXISTS, "make directory %s: exists and is not a directory",
			show(rel, len, &s));
	return fail_path(err, "make directory", rel, len);
}

int
sb_path_mkdirs(int rootfd, const char *rel, mode_t mode, struct sb_error *err)
{
	size_t len = strlen(rel);
	int r = sb_path_check(rel, len, err);
	sb_autoclose int held = -1;
	int dirfd = rootfd;

	if (r < 0)
		return r;
	held = open_beneath(rootfd, rel, len, DIR_FLAGS, 0);
	if (held >= 0)
		return 0;
	if (errno != ENOENT)
		return fail_mkdir(err, rel, len);
	for (const char *p = rel; p < rel + len;) {
		const char *stop = strchrnul(p, '/');
		char name[COMPONENT_MAX + 1];
		int next;

		memcpy(name, p, (size_t)(stop - p));
		name[stop - p] = 0;
		if (mkdirat(dirfd, name, mode) < 0 && errno != EEXIST)
			return fail_mkdir(err, rel, (size_t)(stop - rel));
		next = open_component(dirfd, name, DIR_FLAGS, 0);
		if (next < 0)
			return fail_mkdir(err, rel, (size_t)(stop - rel));
		if (held >= 0)
			(void)close(held);
		dirfd = held = next;
		p = *stop ? stop + 1 : stop;
	}
	return 0;
}
