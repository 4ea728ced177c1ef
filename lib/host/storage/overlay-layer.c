/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/overlay-layer.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/path.h>
#include <base/random.h>
#include <base/str.h>

#define DEPTH_MAX 2048
#define XATTR_LIST_MAX 65536
#define XATTR_VALUE_MAX 65536

const char *
sb_overlay_layer_name(uint64_t id, const char *sub, char out[SB_OVERLAY_NAME_MAX])
{
	(void)snprintf(out, SB_OVERLAY_NAME_MAX, "%llx%s%s", (unsigned long long)id, sub ? "/" : "",
		sub ? sub : "");
	return out;
}

bool
sb_overlay_layer_is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

int
sb_overlay_layer_open(int layers, uint64_t id, struct sb_error *err)
{
	char name[SB_OVERLAY_NAME_MAX];
	int fd = openat(layers, sb_overlay_layer_name(id, "fs", name),
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? sb_fail_errno(err, "open layer %s", name) : fd;
}

int
sb_overlay_layer_make(int layers, uint64_t id, int like, struct sb_error *err)
{
	char name[SB_OVERLAY_NAME_MAX];
	sb_autoclose int fs = -1;
	struct stat st;

	/* What an earlier run left under this number is nobody's. */
	if (mkdirat(layers, sb_overlay_layer_name(id, NULL, name), 0700) < 0) {
		int r = errno == EEXIST ? sb_path_remove_tree(layers, name, err) :
					  sb_fail_errno(err, "make layer %s", name);

		if (r < 0)
			return r;
		if (mkdirat(layers, name, 0700) < 0)
			return sb_fail_errno(err, "make layer %s", name);
	}
	if (mkdirat(layers, sb_overlay_layer_name(id, "work", name), 0700) < 0 ||
		mkdirat(layers, sb_overlay_layer_name(id, "fs", name), 0755) < 0)
		return sb_fail_errno(err, "make layer %s", name);
	if (like < 0)
		return 0;
	fs = sb_overlay_layer_open(layers, id, err);
	if (fs < 0)
		return fs;
	if (fstat(like, &st) < 0)
		return sb_fail_errno(err, "stat the root below layer %s", name);
	return sb_overlay_layer_copy_meta(like, fs, &st, false, err);
}

int
sb_overlay_layer_trash(int layers, uint64_t id, int trash, struct sb_error *err)
{
	char name[SB_OVERLAY_NAME_MAX], to[SB_OVERLAY_NAME_MAX + 20], hex[17];
	uint8_t rnd[8];
	int r = sb_random(rnd, sizeof rnd, err);

	if (r < 0)
		return r;
	(void)sb_overlay_layer_name(id, NULL, name);
	(void)snprintf(to, sizeof to, "%s-%s", name, sb_str_hex(rnd, sizeof rnd, hex));
	if (renameat(layers, name, trash, to) < 0 && errno != ENOENT)
		return sb_fail_errno(err, "move layer %s to the trash", name);
	return 0;
}

int
sb_overlay_layer_settle(int layers, uint64_t id, struct sb_error *err)
{
	char name[SB_OVERLAY_NAME_MAX];
	sb_autoclose int dir = openat(layers, sb_overlay_layer_name(id, NULL, name),
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open layer %s", name);
	return sb_path_remove_tree(dir, "work", err);
}

int
sb_overlay_layer_unmark(int layers, uint64_t id, struct sb_error *err)
{
	char name[SB_OVERLAY_NAME_MAX];
	sb_autoclose int dir = openat(layers, sb_overlay_layer_name(id, "work/work", name),
		O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (dir < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open %s", name);
	return sb_path_remove_tree(dir, "incompat", err);
}

/* The attributes by descriptor, or through /proc for what can only be opened as a path. */
static int
copy_xattr(int from, int to, const char *name, char *value, struct sb_error *err)
{
	ssize_t n = fgetxattr(from, name, value, XATTR_VALUE_MAX);

	if (n < 0)
		return errno == ENODATA ? 0 : sb_fail_errno(err, "read attribute %s", name);
	if (fsetxattr(to, name, value, (size_t)n, 0) < 0)
		return sb_fail_errno(err, "set attribute %s", name);
	return 0;
}

static int
copy_xattrs(int from, int to, bool marks, struct sb_error *err)
{
	char few[256];
	sb_autofree char *many = NULL;
	sb_autofree char *value = NULL;
	char *list = few;
	ssize_t n = flistxattr(from, few, sizeof few);
	int r = 0;

	if (n < 0 && errno == ERANGE) {
		list = many = malloc(XATTR_LIST_MAX);
		n = many ? flistxattr(from, many, XATTR_LIST_MAX) : -1;
	}
	if (n < 0)
		return errno == ENOTSUP ? 0 : sb_fail_errno(err, "list attributes");
	for (const char *p = list; p < list + n && r == 0; p += strlen(p) + 1) {
		bool mark = sb_str_starts(p, SB_OVERLAY_XATTR);

		if (mark &&
			(!marks ||
				(strcmp(p, SB_OVERLAY_OPAQUE) != 0 &&
					strcmp(p, SB_OVERLAY_REDIRECT) != 0)))
			continue;
		if (!value && !(value = malloc(XATTR_VALUE_MAX)))
			return sb_fail(err, SB_E_NOMEM, "attributes");
		r = copy_xattr(from, to, p, value, err);
	}
	return r;
}

int
sb_overlay_layer_copy_meta(int from, int to, const struct stat *st, bool marks,
	struct sb_error *err)
{
	const struct timespec times[2] = { st->st_atim, st->st_mtim };
	int r;

	/* Owner before mode: a change of owner clears set-id bits, and file capabilities. */
	if ((st->st_uid != geteuid() || st->st_gid != getegid()) &&
		fchown(to, st->st_uid, st->st_gid) < 0)
		return sb_fail_errno(err, "set owner");
	if (fchmod(to, st->st_mode & 07777) < 0)
		return sb_fail_errno(err, "set mode");
	r = copy_xattrs(from, to, marks, err);
	if (r < 0)
		return r;
	return futimens(to, times) < 0 ? sb_fail_errno(err, "set times") : 0;
}

char *
sb_overlay_layer_mark(int fd, const char *name, bool *bad)
{
	char value[4097];
	ssize_t n = fgetxattr(fd, name, value, sizeof value - 1);

	if (n < 0) {
		*bad = errno != ENODATA && errno != ENOTSUP;
		return NULL;
	}
	value[n] = '\0';
	return strdup(value);
}

struct measure {
	bool sync;
	uint64_t bytes;
	unsigned depth;
};

/* SYNC_FILE_RANGE leaves the metadata to the journal, which the log's own sync commits. */
static int
sync_data(int dir, const char *name, struct sb_error *err)
{
	const unsigned flags =
		SYNC_FILE_RANGE_WAIT_BEFORE | SYNC_FILE_RANGE_WRITE | SYNC_FILE_RANGE_WAIT_AFTER;
	sb_autoclose int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);

	if (fd < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open %s", name);
	return sync_file_range(fd, 0, 0, flags) < 0 ? sb_fail_errno(err, "sync %s", name) : 0;
}

static int measure_dir(struct measure *m, int fd, struct sb_error *err);

static int
measure_entry(struct measure *m, int dir, const char *name, struct sb_error *err)
{
	sb_autoclose int sub = -1;
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "stat %s", name);
	m->bytes += (uint64_t)st.st_blocks * 512;
	if (S_ISREG(st.st_mode) && m->sync && st.st_size > 0)
		return sync_data(dir, name, err);
	if (!S_ISDIR(st.st_mode))
		return 0;
	sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (sub < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open %s", name);
	if (++m->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "directories deeper than %d", DEPTH_MAX);
	r = measure_dir(m, sub, err);
	m->depth--;
	return r;
}

static int
measure_dir(struct measure *m, int fd, struct sb_error *err)
{
	int copy = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = copy >= 0 ? fdopendir(copy) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (copy >= 0)
			(void)close(copy);
		return sb_fail_errno(err, "read a layer");
	}
	while (r == 0 && (errno = 0, e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = measure_entry(m, fd, e->d_name, err);
	return r == 0 && errno ? sb_fail_errno(err, "read a layer") : r;
}

int
sb_overlay_layer_measure(int fs, bool sync, uint64_t *bytes, struct sb_error *err)
{
	struct measure m = { .sync = sync };
	struct stat st;
	int r = fstat(fs, &st) < 0 ? sb_fail_errno(err, "stat a layer") : 0;

	m.bytes = r == 0 ? (uint64_t)st.st_blocks * 512 : 0;
	if (r == 0)
		r = measure_dir(&m, fs, err);
	if (r == 0)
		*bytes = m.bytes;
	return r;
}
