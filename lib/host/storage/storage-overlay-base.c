/* SPDX-License-Identifier: MIT */
/* Base images of the overlay storage: directories, used where they are. */
#include "config.h"

#include <host/storage/storage-overlay-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/strlist.h>
#include <host/storage/idcheck.h>
#include <host/storage/idmap.h>

static int
not_found(const char *base, const char *why, struct sb_error *err)
{
	return sb_fail(err, SB_E_BASE_NOT_FOUND, "%s: %s%s", sb_code_text(SB_E_BASE_NOT_FOUND),
		base, why);
}

/* The directory itself. */
static int
open_image(struct sb_storage_overlay *o, const char *base, struct statx *x, struct sb_error *err)
{
	sb_autoclose int fd = -1;
	int r = sb_idcheck_base_dir(base, err);

	if (r < 0)
		return r;
	if (o->basesfd < 0)
		return not_found(base, " (no bases directory is configured)", err);
	fd = openat(o->basesfd, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return not_found(base, "", err);
	if (fd < 0 ||
		statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME | STATX_UID | STATX_GID, x) <
			0)
		return sb_fail_errno(err, "open base image %s", base);
	return sb_steal_fd(&fd);
}

static int64_t
btime_of(const struct statx *x)
{
	return x->stx_mask & STATX_BTIME ? x->stx_btime.tv_sec * 1000000000 + x->stx_btime.tv_nsec :
					   0;
}

int
sb_storage_overlay_base(struct sb_storage_overlay *o, const char *base, uid_t owner, uint64_t *ino,
	int64_t *btime_ns, struct sb_error *err)
{
	sb_autoclose int fd = -1;
	struct statx x;

	if (!base || !*base) {
		*ino = 0;
		*btime_ns = 0;
		fd = fcntl(o->emptyfd, F_DUPFD_CLOEXEC, 0);
		return fd < 0 ? sb_fail_errno(err, "descriptor") : sb_steal_fd(&fd);
	}
	fd = open_image(o, base, &x, err);
	if (fd < 0)
		return fd;
	*ino = x.stx_ino;
	*btime_ns = btime_of(&x);
	if (!owner)
		return sb_steal_fd(&fd);
	return sb_idmap_open(fd, x.stx_uid, x.stx_gid, owner, err);
}

/* Whether all of it has one owner, and a trial shows it as another's. */
static bool
can_be_shown(struct sb_storage_overlay *o, const char *base, int fd, const struct statx *x,
	uid_t owner)
{
	struct sb_error why = { 0 };
	char odd[200];
	int r = sb_idmap_uniform(fd, odd, sizeof odd, &why);
	sb_autoclose int tree = -1;

	if (r == 1)
		r = tree = sb_idmap_open(fd, x->stx_uid, x->stx_gid, owner, &why);
	else if (r == 0)
		r = sb_fail(&why, SB_E_UNSUPPORTED,
			"%s does not belong to user %u and group %u as the rest does", odd,
			(unsigned)x->stx_uid, (unsigned)x->stx_gid);
	if (r >= 0)
		r = sb_storage_overlay_probe(o, sb_storage_overlay_new_id(o), tree, &why);
	if (r < 0)
		sb_log(&o->log_to, SB_LOG_WARN, "storage",
			"base image %s: making a session of it copies every file, to give it to "
			"the session's user: %s",
			base, why.msg);
	return r >= 0;
}

uid_t
sb_storage_overlay_base_owner(struct sb_storage_overlay *o, const char *base, uid_t owner)
{
	struct sb_storage_overlay_image *im, *mine;
	sb_autoclose int fd = -1;
	struct statx x;
	bool known = false, can = false;

	fd = base && *base && owner ? open_image(o, base, &x, NULL) : -1;
	if (fd < 0)
		return 0;
	(void)pthread_mutex_lock(&o->mu);
	for (im = o->images; im && !known; im = im->next)
		if (im->ino == x.stx_ino && im->btime_ns == btime_of(&x)) {
			known = true;
			can = im->can;
		}
	(void)pthread_mutex_unlock(&o->mu);
	if (known)
		return can ? owner : 0;
	can = can_be_shown(o, base, fd, &x, owner);
	mine = malloc(sizeof *mine);
	if (mine) {
		*mine = (struct sb_storage_overlay_image){ .ino = x.stx_ino,
			.btime_ns = btime_of(&x),
			.can = can };
		(void)pthread_mutex_lock(&o->mu);
		mine->next = o->images;
		o->images = mine;
		(void)pthread_mutex_unlock(&o->mu);
	}
	return can ? owner : 0;
}

int
sb_storage_overlay_base_replaced(const char *base, const char *id, struct sb_error *err)
{
	return sb_fail(err, SB_E_STORAGE,
		"base image %s was replaced since session %s was made from it: put the old "
		"directory back",
		base, id);
}

int
sb_storage_overlay_base_of(struct sb_storage_overlay *o, const struct sb_overlay_session *se,
	struct sb_error *err)
{
	uint64_t ino;
	int64_t btime;
	int fd = sb_storage_overlay_base(o, se->base, se->owner, &ino, &btime, err);

	if (fd < 0 || (ino == se->base_ino && btime == se->base_btime_ns))
		return fd;
	(void)close(fd);
	return sb_storage_overlay_base_replaced(se->base, se->id, err);
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
