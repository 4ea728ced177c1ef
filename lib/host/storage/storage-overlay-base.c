/* SPDX-License-Identifier: MIT */
/* Base images of the overlay storage: directories, used where they are. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/strlist.h>
#include <host/storage/idcheck.h>

static int
not_found(const char *base, const char *why, struct sb_error *err)
{
	return sb_fail(err, SB_E_BASE_NOT_FOUND, "%s: %s%s", sb_code_text(SB_E_BASE_NOT_FOUND),
		base, why);
}

int
sb_storage_overlay_base(struct sb_storage_overlay *o, const char *base, uint64_t *ino,
	int64_t *btime_ns, struct sb_error *err)
{
	sb_autoclose int fd = -1;
	struct statx x;
	int r;

	if (!base || !*base) {
		*ino = 0;
		*btime_ns = 0;
		fd = fcntl(o->emptyfd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? sb_fail_errno(err, "descriptor") : sb_steal_fd(&fd);
	}
	r = sb_idcheck_base_dir(base, err);
	if (r < 0)
		return r;
	if (o->basesfd < 0)
		return not_found(base, " (no bases directory is configured)", err);
	fd = openat(o->basesfd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return not_found(base, "", err);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &x) < 0)
		return sb_fail_errno(err, "open base image %s", base);
	*ino = x.stx_ino;
	*btime_ns = x.stx_mask & STATX_BTIME ?
		x.stx_btime.tv_sec * 1000000000 + x.stx_btime.tv_nsec :
		0;
	return sb_steal_fd(&fd);
}

int
sb_storage_overlay_base_of(struct sb_storage_overlay *o, const struct sb_overlay_session *se,
	struct sb_error *err)
{
	uint64_t ino;
	int64_t btime;
	int fd = sb_storage_overlay_base(o, se->base, &ino, &btime, err);

	if (fd < 0 || (ino == se->base_ino && btime == se->base_btime_ns))
		return fd;
	(void)close(fd);
	return sb_fail(err, SB_E_STORAGE,
		"base image %s was replaced since session %s was made from it: put the old "
		"directory back",
		se->base, se->id);
}

int
sb_storage_overlay_bases(struct sb_storage *st, struct sb_strlist *out, struct sb_error *err)
{
	struct sb_storage_overlay *o = (struct sb_storage_overlay *)st;
	int dup =
		o->basesfd >= 0 ? openat(o->basesfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;

	if (o->basesfd < 0)
		return 0;
	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read %s", o->bases);
	}
	while ((e = readdir(d))) {
		struct stat s;

		if (sb_idcheck_base_dir(e->d_name, NULL) == 0 &&
			fstatat(o->basesfd, e->d_name, &s, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISDIR(s.st_mode))
			sb_strlist_add(out, e->d_name);
	}
	return sb_strlist_check(out, err);
}
