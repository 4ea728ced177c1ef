/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/commit-ops.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <base/path.h>
#include <sync/replica/commit-attrs.h>
#include <sync/replica/commit-names.h>
#include <sync/tree/hash.h>
#include <sync/tree/nstime.h>
#include <sync/tree/stage-names.h>
#include <sync/replica/stage.h>

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1
#define RENAME_EXCHANGE 2
#endif

#define FUSE_MAGIC 0x65735546

static uint8_t
type_of(const struct stat *st)
{
	if (S_ISDIR(st->st_mode))
		return SB_ENTRY_DIR;
	if (S_ISREG(st->st_mode))
		return SB_ENTRY_FILE;
	return S_ISLNK(st->st_mode) ? SB_ENTRY_LINK : 0;
}

int
sb_commit_ops_open(struct sb_commit_ops *c, struct sb_error *err)
{
	struct statfs fs;

	c->newfd = c->trashfd = -1;
	for (size_t i = 0; i < SB_COMMIT_OPS_DIRS; i++)
		c->dirs[i].fd = -1;
	if (mkdirat(c->stagefd, SB_STAGE_NEW, 0700) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "make the stage");
	if (mkdirat(c->stagefd, SB_STAGE_TRASH, 0700) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "make the stage");
	c->newfd =
		openat(c->stagefd, SB_STAGE_NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	c->trashfd =
		openat(c->stagefd, SB_STAGE_TRASH, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (c->newfd < 0 || c->trashfd < 0)
		return sb_fail_errno(err, "open the stage");
	c->vague_ctime = fstatfs(c->rootfd, &fs) == 0 && fs.f_type == FUSE_MAGIC;
	return 0;
}

static void
forget_dirs(struct sb_commit_ops *c)
{
	for (size_t i = 0; i < SB_COMMIT_OPS_DIRS; i++) {
		free(c->dirs[i].path);
		c->dirs[i].path = NULL;
		if (c->dirs[i].fd >= 0)
			(void)close(c->dirs[i].fd);
		c->dirs[i].fd = -1;
		c->dirs[i].used = 0;
	}
}

void
sb_commit_ops_close(struct sb_commit_ops *c)
{
	forget_dirs(c);
	if (c->newfd >= 0)
		(void)close(c->newfd);
	if (c->trashfd >= 0)
		(void)close(c->trashfd);
	c->newfd = c->trashfd = -1;
	sb_strlist_free(&c->uncopied);
	sb_commit_times_free(&c->times);
}

/*
 * The directory that holds `path`, borrowed from the cache, and the last component. Negative with
 * errno's code.
 */
static int
parent_of(struct sb_commit_ops *c, const char *path, const char **leaf, struct sb_error *err)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	size_t slot = 0;
	int fd;

	*leaf = slash ? slash + 1 : path;
	for (size_t i = 0; i < SB_COMMIT_OPS_DIRS; i++) {
		if (c->dirs[i].path && strncmp(c->dirs[i].path, path, len) == 0 &&
			c->dirs[i].path[len] == 0) {
			c->dirs[i].used = ++c->clock;
			return c->dirs[i].fd;
		}
		if (c->dirs[i].used < c->dirs[slot].used)
			slot = i;
	}
	free(c->dirs[slot].path);
	if (c->dirs[slot].fd >= 0)
		(void)close(c->dirs[slot].fd);
	c->dirs[slot].fd = -1;
	c->dirs[slot].used = 0;
	c->dirs[slot].path = strndup(path, len);
	if (!c->dirs[slot].path)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	fd = sb_path_open(c->rootfd, c->dirs[slot].path, O_RDONLY | O_DIRECTORY, 0, err);
	if (fd < 0) {
		free(c->dirs[slot].path);
		c->dirs[slot].path = NULL;
		return fd;
	}
	c->dirs[slot].fd = fd;
	c->dirs[slot].used = ++c->clock;
	return fd;
}

static int
leave(struct sb_commit_ops *c, struct sb_op *op, enum sb_commit_why why, struct sb_error *err)
{
	op->failed = (uint8_t)(1 + why);
	return sb_proto_result_add(c->res, op->path, why, err);
}

/*
 * A system call on this operation failed: is it about this path (leave it) or about the machine
 * (stop)?
 */
static int
refused(struct sb_commit_ops *c, struct sb_op *op, int sys, const char *what, struct sb_error *err)
{
	switch (sys) {
	case ENOENT:
	case ENOTDIR:
	case ELOOP: return leave(c, op, SB_WHY_CHANGED, err);
	case EEXIST:
	case ENOTEMPTY: return leave(c, op, SB_WHY_EXISTS, err);
	case EACCES:
	case EPERM:
	case EBUSY:
	case EXDEV:
	case EISDIR:
	case ETXTBSY:
	/* What this file system cannot do, or a name it does not take. */
	case EINVAL:
	case ENOSYS:
	case EOPNOTSUPP:
	case ENAMETOOLONG:
	case EILSEQ:
	case EMLINK:
	case EOVERFLOW: return leave(c, op, SB_WHY_DENIED, err);
	default: errno = sys; return sb_fail_errno(err, "%s", what);
	}
}

/* The directory is not there (any more), or something else is in its place. */
static bool
is_gone(int code, const struct sb_error *e)
{
	return code == SB_E_NOTFOUND || e->sys == ENOTDIR;
}

static int
no_parent(struct sb_commit_ops *c, struct sb_op *op, int code, struct sb_error *e,
	struct sb_error *err)
{
	if (is_gone(code, e) || code == SB_E_ESCAPE)
		return leave(c, op, SB_WHY_CHANGED, err);
	if (code == SB_E_DENIED)
		return leave(c, op, SB_WHY_DENIED, err);
	if (err)
		*err = *e;
	return code;
}

/*
 * Before we touch it: exactly what the scan saw. File systems in user space tell a ctime that is a
 * second old at times: there the content decides, once it is out of the way.
 */
static bool
is_untouched(const struct sb_commit_ops *c, const struct stat *st, struct sb_journal_seen *old)
{
	if (type_of(st) != old->type || st->st_ino != old->ino)
		return false;
	if (old->type == SB_ENTRY_DIR)
		return true;
	if ((uint64_t)st->st_size != old->size || sb_ns_from(st->st_mtim) != old->mtime)
		return false;
	if (!old->ctime || sb_ns_from(st->st_ctim) == old->ctime)
		return true;
	old->racy = true;
	return c->vague_ctime && old->type == SB_ENTRY_FILE && sb_digest_known(&old->digest);
}

/*
 * After it was swapped out (which changes ctime): still what the scan saw? Content decides where
 * stat cannot. 1: yes, 0: no; an error when it cannot be told now, which is not the same as no.
 */
static int
is_expected(int fd, const char *name, const struct sb_journal_seen *old, struct sb_error *err)
{
	struct sb_error e = { 0 };
	struct sb_digest d;
	struct stat st;
	int r;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	if (type_of(&st) != old->type || st.st_ino != old->ino)
		return 0;
	if (old->type != SB_ENTRY_FILE)
		return 1;
	if ((uint64_t)st.st_size != old->size || sb_ns_from(st.st_mtim) != old->mtime)
		return 0;
	if (!old->racy || !sb_digest_known(&old->digest))
		return 1;
	r = sb_hash_file(fd, name, &d, &e);
	if (r == 0)
		return sb_digest_eq(&d, &old->digest);
	if (r == SB_E_NOTFOUND || r == SB_E_DENIED)
		return 0;
	if (err)
		*err = e;
	return r;
}

static void
refresh(struct sb_commit_ops *c, struct sb_op *op, int fd, const char *leaf)
{
	struct stat st;

	if (c->refresh && fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		op->new_ino = st.st_ino;
		op->new_ctime = sb_ns_from(st.st_ctim);
	}
}

/* The name a file gets when its own is taken by something newer: nothing is thrown away. */
static int
put_beside(int fromfd, const char *name, int fd, const char *leaf, struct sb_error *err)
{
	for (int i = 1; i < 1000; i++) {
		char kept[300];

		(void)snprintf(kept, sizeof kept, "%.230s.sbsync-kept-%d", leaf, i);
		if (sb_commit_names_rename(fromfd, name, fd, kept, RENAME_NOREPLACE) == 0)
			return 0;
		if (errno != EEXIST)
			break;
	}
	return sb_fail_errno(err, "keep what had changed meanwhile beside %s", leaf);
}

/*
 * What was swapped out has its place again, and `staged` is what the operation had put there,
 * unless somebody was at that name in between. Then theirs is the newest, and the other lies beside
 * it.
 */
static int
settle_back(struct sb_commit_ops *c, struct sb_op *op, const char *staged, int fd, const char *leaf,
	struct sb_error *err)
{
	struct stat st;

	if (fstatat(c->newfd, staged, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "look at what was put back");
	if (st.st_ino == op->new_ino &&
		(st.st_ino != c->put.st_ino || op->type != SB_ENTRY_FILE ||
			(st.st_size == c->put.st_size &&
				sb_ns_from(st.st_mtim) == sb_ns_from(c->put.st_mtim))))
		return 0;
	if (sb_commit_names_rename(c->newfd, staged, fd, leaf, RENAME_EXCHANGE) < 0)
		return sb_fail_errno(err, "put back what had changed meanwhile");
	return put_beside(c->newfd, staged, fd, leaf, err);
}

/* What was swapped out goes, or comes back when it is not what was expected. */
static int
settle_swap(struct sb_commit_ops *c, struct sb_op *op, const char *staged, int fd, const char *leaf,
	struct sb_error *err)
{
	bool dir = op->old.type == SB_ENTRY_DIR;
	int same = is_expected(c->newfd, staged, &op->old, err);

	if (same < 0)
		return same;
	if (same) {
		if (unlinkat(c->newfd, staged, dir ? AT_REMOVEDIR : 0) == 0 || errno == ENOENT)
			return 1;
		if (errno != ENOTEMPTY && errno != EEXIST)
			return sb_fail_errno(err, "remove what was replaced");
	}
	if (sb_commit_names_rename(c->newfd, staged, fd, leaf, RENAME_EXCHANGE) < 0)
		return sb_fail_errno(err, "put back what had changed meanwhile");
	same = settle_back(c, op, staged, fd, leaf, err);
	return same < 0 ? same : leave(c, op, dir ? SB_WHY_NOTEMPTY : SB_WHY_CHANGED, err);
}

/* The second link kept by replace_by_link: goes when it is the expected one, else comes back. */
static int
settle_keep(struct sb_commit_ops *c, struct sb_op *op, int fd, const char *leaf,
	struct sb_error *err)
{
	char keep[16];
	struct stat st;
	int same;

	sb_stage_name('o', op->stage, keep);
	if (fstatat(c->newfd, keep, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 1;
	same = is_expected(c->newfd, keep, &op->old, err);
	if (same < 0)
		return same;
	if (same) {
		(void)unlinkat(c->newfd, keep, 0);
		return 1;
	}
	if (op->type == SB_ENTRY_DIR) {
		int r = put_beside(c->newfd, keep, fd, leaf, err);

		return r < 0 ? r : leave(c, op, SB_WHY_CHANGED, err);
	}
	if (sb_commit_names_rename(c->newfd, keep, fd, leaf, 0) < 0)
		return sb_fail_errno(err, "put back what had changed meanwhile");
	return leave(c, op, SB_WHY_CHANGED, err);
}

static bool
cannot_link(int sys)
{
	return sys == EPERM || sys == EOPNOTSUPP || sys == ENOSYS || sys == EINVAL || sys == EMLINK;
}

/*
 * Replacing where two names cannot be swapped: a second link keeps the old one until it is known to
 * be the expected.
 */
static int
replace_by_link(struct sb_commit_ops *c, struct sb_op *op, const char *staged, int fd,
	const char *leaf, struct sb_error *err)
{
	char keep[16];

	sb_stage_name('o', op->stage, keep);
	(void)unlinkat(c->newfd, keep, 0);
	if (op->old.type == SB_ENTRY_DIR) {
		if (sb_commit_names_unlink(fd, leaf, AT_REMOVEDIR) < 0)
			return errno == ENOTEMPTY || errno == EEXIST ?
				leave(c, op, SB_WHY_NOTEMPTY, err) :
				refused(c, op, errno, "remove directory", err);
		if (sb_commit_names_rename(c->newfd, staged, fd, leaf, 0) < 0)
			return refused(c, op, errno, "rename", err);
		return 1;
	}
	/* Where there are no links either, the name is free for a moment. */
	if (linkat(fd, leaf, c->newfd, keep, 0) < 0 &&
		(!cannot_link(errno) || sb_commit_names_rename(fd, leaf, c->newfd, keep, 0) < 0))
		return refused(c, op, errno, "link", err);
	if (op->type == SB_ENTRY_DIR && sb_commit_names_unlink(fd, leaf, 0) < 0 && errno != ENOENT)
		return refused(c, op, errno, "unlink", err);
	if (sb_commit_names_rename(c->newfd, staged, fd, leaf, 0) < 0)
		return refused(c, op, errno, "rename", err);
	return settle_keep(c, op, fd, leaf, err);
}

static int
place_new(struct sb_commit_ops *c, struct sb_op *op, const char *staged, int fd, const char *leaf,
	struct sb_error *err)
{
	if (sb_commit_names_rename(c->newfd, staged, fd, leaf, RENAME_NOREPLACE) == 0)
		return 1;
	return refused(c, op, errno, "rename", err);
}

/* Puts the staged thing at its path: 1 done, 0 left alone. */
static int
place(struct sb_commit_ops *c, struct sb_op *op, const char *staged, int fd, const char *leaf,
	struct sb_error *err)
{
	struct stat st, at;

	if (fstatat(c->newfd, staged, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		if (errno == ENOENT && c->replay)
			return settle_keep(c, op, fd, leaf, err);
		return sb_fail_errno(err, "look at staged %s", staged);
	}
	if (c->replay && st.st_ino != op->new_ino)
		return settle_swap(c, op, staged, fd, leaf, err);
	if (!op->old.type)
		return place_new(c, op, staged, fd, leaf, err);
	if (fstatat(fd, leaf, &at, AT_SYMLINK_NOFOLLOW) < 0) {
		int sys = errno;
		char keep[16];

		/* Between two renames: the old one is kept in the stage, the new one comes now. */
		if (c->replay && sys == ENOENT &&
			fstatat(c->newfd, sb_stage_name('o', op->stage, keep), &at,
				AT_SYMLINK_NOFOLLOW) == 0)
			return sb_commit_names_rename(c->newfd, staged, fd, leaf, 0) < 0 ?
				refused(c, op, errno, "rename", err) :
				settle_keep(c, op, fd, leaf, err);
		return refused(c, op, sys, "stat", err);
	}
	if (c->replay && at.st_ino == op->new_ino)
		return 1;
	if (!is_untouched(c, &at, &op->old))
		return leave(c, op, SB_WHY_CHANGED, err);
	if (op->kind == SB_OP_FILE && op->type == SB_ENTRY_FILE && op->old.type == SB_ENTRY_FILE)
		sb_commit_attrs_keep(c->newfd, staged, fd, leaf, op->mode);
	if (c->no_exchange)
		return replace_by_link(c, op, staged, fd, leaf, err);
	c->put = st;
	if (sb_commit_names_rename(c->newfd, staged, fd, leaf, RENAME_EXCHANGE) == 0)
		return settle_swap(c, op, staged, fd, leaf, err);
	if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
		return refused(c, op, errno, "rename", err);
	c->no_exchange = true;
	return replace_by_link(c, op, staged, fd, leaf, err);
}

static int
apply_staged(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err)
{
	struct sb_error e = { 0 };
	char staged[16];
	const char *leaf;
	int fd = parent_of(c, op->path, &leaf, &e);
	int r;

	if (fd < 0)
		return no_parent(c, op, fd, &e, err);
	sb_stage_name(op->kind == SB_OP_TREE ? 't' : 'f', op->stage, staged);
	r = place(c, op, staged, fd, leaf, err);
	if (r <= 0)
		return r;
	refresh(c, op, fd, leaf);
	if (op->kind == SB_OP_TREE)
		c->res->dirs++;
	else
		c->res->files++;
	return 0;
}

/* Was this path left alone by an operation of this commit? */
static bool
was_left(const struct sb_commit_ops *c, const char *path)
{
	for (size_t i = 0; i < c->res->n_left; i++)
		if (strcmp(c->res->left[i].path, path) == 0)
			return true;
	return false;
}

static int
apply_link(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err)
{
	struct sb_error e = { 0 };
	struct stat lead, st;
	char staged[16];
	const char *leaf, *from;
	int fromfd, fd, r;

	fromfd = parent_of(c, op->from, &from, &e);
	if (fromfd < 0)
		return no_parent(c, op, fromfd, &e, err);
	if (fstatat(fromfd, from, &lead, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(lead.st_mode) ||
		(op->new_ino && lead.st_ino != op->new_ino) || was_left(c, op->from))
		return leave(c, op, SB_WHY_CHANGED, err);
	sb_stage_name('f', op->stage, staged);
	op->new_ino = lead.st_ino;
	/* A staged name with another inode is what was swapped out before a crash. */
	if (fstatat(c->newfd, staged, &st, AT_SYMLINK_NOFOLLOW) < 0 &&
		linkat(fromfd, from, c->newfd, staged, 0) < 0)
		return refused(c, op, errno, "link", err);
	fd = parent_of(c, op->path, &leaf, &e);
	if (fd < 0)
		return no_parent(c, op, fd, &e, err);
	if (fstatat(c->newfd, staged, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino != lead.st_ino) {
		r = settle_swap(c, op, staged, fd, leaf, err);
	} else if (fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_ino == lead.st_ino) {
		(void)unlinkat(c->newfd, staged, 0);
		r = 1;
	} else {
		r = place(c, op, staged, fd, leaf, err);
	}
	if (r <= 0)
		return r;
	refresh(c, op, fd, leaf);
	c->res->files++;
	return 0;
}

/* Sets mode and mtime of what is at `leaf`, following nothing. */
static int
set_meta(int fd, const char *leaf, uint8_t type, uint16_t mode, int64_t mtime)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, sb_ns_to(mtime) };
	sb_autoclose int f = -1;
	char proc[32];

	if (type != SB_ENTRY_LINK) {
		f = openat(fd, leaf, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
		if (f >= 0) {
			if (fchmod(f, mode) < 0)
				return -1;
			return futimens(f, ts);
		}
		if (errno != EACCES)
			return -1;
		f = openat(fd, leaf, O_PATH | O_NOFOLLOW | O_CLOEXEC);
		if (f < 0)
			return -1;
		(void)snprintf(proc, sizeof proc, "/proc/self/fd/%d", f);
		if (chmod(proc, mode) < 0)
			return -1;
	}
	return utimensat(fd, leaf, ts, AT_SYMLINK_NOFOLLOW);
}

static int
apply_meta(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err)
{
	struct sb_error e = { 0 };
	const char *leaf;
	struct stat st;
	int fd = parent_of(c, op->path, &leaf, &e);

	if (fd < 0)
		return no_parent(c, op, fd, &e, err);
	if (fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return refused(c, op, errno, "stat", err);
	if (!is_untouched(c, &st, &op->old)) {
		bool ours = c->replay && st.st_ino == op->old.ino &&
			sb_ns_from(st.st_mtim) == op->mtime;

		if (!ours)
			return leave(c, op, SB_WHY_CHANGED, err);
	}
	if (set_meta(fd, leaf, op->type, op->mode, op->mtime) < 0)
		return refused(c, op, errno, "set mode and time", err);
	refresh(c, op, fd, leaf);
	c->res->files++;
	return sb_commit_times_set(&c->times, &st, op->mtime, err);
}

static int
apply_move(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err)
{
	struct sb_error e = { 0 };
	const char *leaf, *from;
	struct stat st;
	int fromfd, fd, same;

	fd = parent_of(c, op->path, &leaf, &e);
	if (fd < 0)
		return no_parent(c, op, fd, &e, err);
	fromfd = parent_of(c, op->from, &from, &e);
	if (fromfd < 0 && !c->replay)
		return no_parent(c, op, fromfd, &e, err);
	if (fromfd < 0 || fstatat(fromfd, from, &st, AT_SYMLINK_NOFOLLOW) < 0) {
		bool done = c->replay && fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			st.st_ino == op->old.ino;

		if (!done)
			return leave(c, op, SB_WHY_CHANGED, err);
	} else {
		if (!is_untouched(c, &st, &op->old))
			return leave(c, op, SB_WHY_CHANGED, err);
		if (sb_commit_names_rename(fromfd, from, fd, leaf, RENAME_NOREPLACE) < 0)
			return refused(c, op, errno, "rename", err);
		forget_dirs(c);
		fd = parent_of(c, op->path, &leaf, &e);
		if (fd < 0)
			return no_parent(c, op, fd, &e, err);
	}
	/* A write that slipped in came along: it is kept, and its own time with it. */
	same = op->type == SB_ENTRY_FILE ? is_expected(fd, leaf, &op->old, err) : 0;
	if (same < 0)
		return same;
	if (same && set_meta(fd, leaf, op->type, op->mode, op->mtime) < 0)
		return refused(c, op, errno, "set mode and time", err);
	refresh(c, op, fd, leaf);
	c->res->moved++;
	return same ? sb_commit_times_set(&c->times, &st, op->mtime, err) : 0;
}

/* A name in the trash goes for good when it is the expected one, else back where it was. */
static int
settle_trash(struct sb_commit_ops *c, struct sb_op *op, const char *name, int fd, const char *leaf,
	struct sb_error *err)
{
	int same = is_expected(c->trashfd, name, &op->old, err);

	if (same < 0)
		return same;
	if (same) {
		if (unlinkat(c->trashfd, name, 0) < 0 && errno != ENOENT)
			return sb_fail_errno(err, "delete");
		c->res->deleted++;
		return 0;
	}
	if (sb_commit_names_rename(c->trashfd, name, fd, leaf, RENAME_NOREPLACE) < 0) {
		int r = put_beside(c->trashfd, name, fd, leaf, err);

		if (r < 0)
			return r;
	}
	return leave(c, op, SB_WHY_CHANGED, err);
}

static int
apply_del(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err)
{
	struct sb_error e = { 0 };
	char name[16];
	const char *leaf;
	struct stat st;
	int fd = parent_of(c, op->path, &leaf, &e);

	if (fd < 0 && is_gone(fd, &e))
		return 0;
	if (fd < 0)
		return no_parent(c, op, fd, &e, err);
	sb_stage_name('x', op->stage, name);
	if (c->replay && fstatat(c->trashfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0)
		return settle_trash(c, op, name, fd, leaf, err);
	if (fstatat(fd, leaf, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : refused(c, op, errno, "stat", err);
	if (op->old.type == SB_ENTRY_DIR) {
		if (!S_ISDIR(st.st_mode))
			return leave(c, op, SB_WHY_CHANGED, err);
		if (sb_commit_names_unlink(fd, leaf, AT_REMOVEDIR) == 0) {
			c->res->deleted++;
			return 0;
		}
		if (errno == ENOTEMPTY || errno == EEXIST)
			return leave(c, op, SB_WHY_NOTEMPTY, err);
		return refused(c, op, errno, "remove directory", err);
	}
	if (!is_untouched(c, &st, &op->old))
		return leave(c, op, SB_WHY_CHANGED, err);
	if (sb_commit_names_rename(fd, leaf, c->trashfd, name, 0) < 0)
		return refused(c, op, errno, "delete", err);
	return settle_trash(c, op, name, fd, leaf, err);
}

static int
apply_dirmeta(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, sb_ns_to(op->mtime) };
	struct sb_error e = { 0 };
	sb_autoclose int fd = sb_path_open(c->rootfd, op->path, O_RDONLY | O_DIRECTORY, 0, &e);
	const char *leaf;
	int pfd;

	if (fd >= 0) {
		if (fchmod(fd, op->mode) == 0 && futimens(fd, ts) == 0)
			return 0;
		/*
		 * The owner may have given us no right to change it; the content is in place all
		 * the same.
		 */
		if (errno == EPERM || errno == EACCES || errno == EROFS)
			return 0;
		return refused(c, op, errno, "set mode and time", err);
	}
	if (is_gone(fd, &e) || fd == SB_E_ESCAPE)
		return 0;
	if (fd != SB_E_DENIED)
		return no_parent(c, op, fd, &e, err);
	pfd = parent_of(c, op->path, &leaf, &e);
	if (pfd >= 0 && *op->path)
		(void)set_meta(pfd, leaf, SB_ENTRY_DIR, op->mode, op->mtime);
	return 0;
}

/* A copy was to be made of it in this commit and could not: it may be the only one there is. */
static bool
is_only_copy(const struct sb_commit_ops *c, const struct sb_op *op)
{
	for (size_t i = 0; op->old.type && i < c->uncopied.n; i++)
		if (strcmp(c->uncopied.v[i], op->path) == 0)
			return true;
	return false;
}

static int
apply_file(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err)
{
	int r = apply_staged(c, op, err);

	if (r < 0 || !op->failed || !op->from)
		return r;
	sb_strlist_add(&c->uncopied, op->from);
	return sb_strlist_check(&c->uncopied, err);
}

/* Another name of a file whose time this commit set: that time is no change by somebody else. */
static void
expect_our_time(const struct sb_commit_ops *c, struct sb_op *op)
{
	const int64_t *ours = op->old.type == SB_ENTRY_FILE ?
		sb_commit_times_find(&c->times, op->old.ino) :
		NULL;

	if (ours) {
		op->old.mtime = *ours;
		op->old.ctime = 0;
	}
}

int
sb_commit_ops_apply(struct sb_commit_ops *c, struct sb_op *op, struct sb_error *err)
{
	int r;

	expect_our_time(c, op);
	if ((op->kind == SB_OP_FILE || op->kind == SB_OP_LINK || op->kind == SB_OP_DEL) &&
		is_only_copy(c, op))
		return leave(c, op, SB_WHY_DENIED, err);
	switch (op->kind) {
	case SB_OP_TREE: return apply_staged(c, op, err);
	case SB_OP_FILE: return apply_file(c, op, err);
	case SB_OP_MOVE:
		r = apply_move(c, op, err);
		/* What was to go is still there, then. */
		return r < 0 || !op->failed ? r :
					      sb_proto_result_add(c->res, op->from,
						      (enum sb_commit_why)(op->failed - 1), err);
	case SB_OP_LINK: return apply_link(c, op, err);
	case SB_OP_META: return apply_meta(c, op, err);
	case SB_OP_DEL: return apply_del(c, op, err);
	case SB_OP_DIRMETA: return apply_dirmeta(c, op, err);
	default: return sb_fail(err, SB_E_CORRUPT, "unknown operation %u", op->kind);
	}
}
