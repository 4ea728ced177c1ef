/* SPDX-License-Identifier: MIT */
/* What the scan asks of the system: statx, opening without side effects, the racy rule. */
#include "config.h"

#include <sync/scan/scan-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include <sync/tree/nstime.h>

#define NS 1000000000ll
/* File systems that keep times in seconds or two of them. */
#define SLACK_COARSE (2 * NS)
/* File systems that stamp with the kernel's coarse clock: some ticks. */
#define SLACK_FINE (50 * 1000000ll)

#ifndef F2FS_SUPER_MAGIC
#define F2FS_SUPER_MAGIC 0xf2f52010
#endif
#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

static int64_t
coarse_now(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_REALTIME_COARSE, &ts);
	return sb_ns_of(ts.tv_sec, (uint32_t)ts.tv_nsec);
}

/*
 * For kernels and system call filters that know no statx. Mount points are then told by their
 * device only.
 */
static int
old_stat(int fd, const char *name, struct sb_scan_stat *out)
{
	struct stat st;
	int r = name ? fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) : fstat(fd, &st);

	if (r < 0)
		return -errno;
	out->dev = st.st_dev;
	out->ino = st.st_ino;
	out->size = (uint64_t)st.st_size;
	out->mtime = sb_ns_of(st.st_mtim.tv_sec, (uint32_t)st.st_mtim.tv_nsec);
	out->ctime = sb_ns_of(st.st_ctim.tv_sec, (uint32_t)st.st_ctim.tv_nsec);
	out->mode = st.st_mode;
	out->nlink = st.st_nlink > UINT32_MAX ? UINT32_MAX : (uint32_t)st.st_nlink;
	out->mount = false;
	return 0;
}

int
sb_scan_stat(int fd, const char *name, struct sb_scan_stat *out)
{
	static atomic_bool no_statx;
	/* gVisor mounts nothing by itself and refuses the flag. */
	static atomic_int still = AT_NO_AUTOMOUNT;
	int flags = AT_SYMLINK_NOFOLLOW | (name ? 0 : AT_EMPTY_PATH);
	struct statx st;

	out->taken = coarse_now();
	if (atomic_load_explicit(&no_statx, memory_order_relaxed))
		return old_stat(fd, name, out);
	if (statx(fd, name ? name : "", flags | atomic_load_explicit(&still, memory_order_relaxed),
		    STATX_TYPE | STATX_MODE | STATX_NLINK | STATX_INO | STATX_SIZE | STATX_MTIME |
			    STATX_CTIME,
		    &st) < 0) {
		if (errno == EINVAL && atomic_exchange(&still, 0) != 0)
			return sb_scan_stat(fd, name, out);
		if (errno != ENOSYS && errno != EPERM)
			return -errno;
		atomic_store_explicit(&no_statx, true, memory_order_relaxed);
		return old_stat(fd, name, out);
	}
	out->dev = makedev(st.stx_dev_major, st.stx_dev_minor);
	out->ino = st.stx_ino;
	out->size = st.stx_size;
	out->mtime = sb_ns_of(st.stx_mtime.tv_sec, st.stx_mtime.tv_nsec);
	out->ctime = sb_ns_of(st.stx_ctime.tv_sec, st.stx_ctime.tv_nsec);
	out->mode = st.stx_mode;
	out->nlink = st.stx_nlink;
	out->mount = (st.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
	return 0;
}

int64_t
sb_scan_slack(int rootfd, bool cross_mounts)
{
	struct statfs fs;

	if (cross_mounts || fstatfs(rootfd, &fs) < 0)
		return SLACK_COARSE;
	switch ((uint32_t)fs.f_type) {
	case EXT4_SUPER_MAGIC:
	case XFS_SUPER_MAGIC:
	case BTRFS_SUPER_MAGIC:
	case TMPFS_MAGIC:
	case F2FS_SUPER_MAGIC:
	case OVERLAYFS_SUPER_MAGIC: return SLACK_FINE;
	default: return SLACK_COARSE;
	}
}

bool
sb_scan_racy(const struct sb_scan_ctx *c, const struct sb_scan_stat *st)
{
	int64_t slack = c->slack;

	/*
	 * No fraction: very likely a file system of whole seconds under a name that can do better
	 * (ext4 with small inodes).
	 */
	if (st->ctime % NS == 0)
		slack = SLACK_COARSE;
	if (st->ctime > st->taken - slack)
		return true;
	/* A time set far into the future is nobody's stamp of a change. */
	return st->mtime > st->taken - slack && st->mtime <= st->taken + slack;
}

void
sb_scan_take_stat(const struct sb_scan_ctx *c, const struct sb_scan_stat *st, struct sb_entry *e)
{
	e->mtime = st->mtime;
	e->ctime = st->ctime;
	e->ino = st->ino;
	e->mode = (uint16_t)(st->mode & 07777);
	if (S_ISREG(st->mode))
		e->size = st->size;
	e->flags &= (uint8_t)~SB_ENTRY_RACY & 0xf;
	if (sb_scan_racy(c, st))
		e->flags |= SB_ENTRY_RACY;
}

int
sb_scan_open(struct sb_scan_worker *w, int dirfd, const char *name, int flags)
{
	int fd;

	flags |= O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	if (w->noatime) {
		fd = openat(dirfd, name, flags | O_NOATIME);
		if (fd >= 0 || errno != EPERM)
			return fd >= 0 ? fd : -errno;
		/* Not ours: it will be the same for its neighbours. */
		w->noatime = false;
	}
	fd = openat(dirfd, name, flags);
	return fd >= 0 ? fd : -errno;
}

bool
sb_scan_explain(int sys, enum sb_skip_reason *out_why)
{
	switch (sys) {
	case EACCES:
	case EPERM: *out_why = SB_SKIP_UNREADABLE; return true;
	case ELOOP:   /* a symlink by now */
	case ENOTDIR: /* no directory any more */
	case EXDEV:   /* moved while the kernel looked */
	case EISDIR:
	case ENXIO: /* a socket or a fifo by now */
	case EINVAL:
	case EAGAIN: /* leased by another process */ *out_why = SB_SKIP_UNSTABLE; return true;
	default: return false;
	}
}
