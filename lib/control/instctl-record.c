/* SPDX-License-Identifier: MIT */
/* How far the making and removing of a sandbox with an instance of its own has come. */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/owndir.h>
#include <base/str.h>
#include <control/instctl-priv.h>

#define STEP_MS 100

/* Opens and locks the file, unless it was removed by who had it before. 1: try again. */
static int
try_hold(int dir, const char *id, struct sb_instctl_hold *out, struct sb_error *err)
{
	sb_autoclose int fd = openat(dir, id, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat there, mine;
	ssize_t n;
	int r;

	if (fd < 0)
		return sb_fail_errno(err, "record of sandbox %s", id);
	r = sb_file_lock(fd, 0, err);
	if (r < 0)
		return r;
	if (fstat(fd, &mine) < 0 || fstatat(dir, id, &there, AT_SYMLINK_NOFOLLOW) < 0 ||
		mine.st_ino != there.st_ino)
		return 1;
	n = sb_file_read_full(fd, out->phase, sizeof out->phase - 1, err);
	if (n < 0)
		return (int)n;
	out->phase[n] = '\0';
	out->phase[strcspn(out->phase, " \n")] = '\0';
	out->fd = sb_steal_fd(&fd);
	return 0;
}

int
sb_instctl_hold(struct sb_instctl *c, const char *id, bool wait, const struct sb_control_call *call,
	struct sb_instctl_hold *out, struct sb_error *err)
{
	sb_autoclose int dir = -1;
	int r = sb_file_mkdirs(c->dir, 0700, err);

	dir = r == 0 ? sb_owndir_open(c->dir, "records", true, err) : r;
	if (dir < 0)
		return dir;
	if (strchr(id, '/') || id[0] == '.')
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "there is no sandbox %s", id);
	for (;;) {
		r = try_hold(dir, id, out, err);
		if (r == 0 || (r < 0 && (r != SB_E_LOCKED || !wait)))
			return r;
		r = sb_hostcall_pause(call, STEP_MS, err);
		if (r < 0)
			return r;
	}
}

int
sb_instctl_note(struct sb_instctl *c, const char *id, struct sb_instctl_hold *h, const char *phase,
	struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/records/%s", c->dir, id);
	char line[SB_INSTCTL_PHASE_MAX];

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (!phase)
		return unlink(path) < 0 && errno != ENOENT ? sb_fail_errno(err, "%s", path) : 0;
	/* One write of a block that is there: a crash leaves one of the two words. */
	(void)snprintf(line, sizeof line, "%-14s", phase);
	line[14] = '\n';
	if (pwrite(h->fd, line, 15, 0) != 15 || fsync(h->fd) < 0)
		return sb_fail_errno(err, "%s", path);
	(void)snprintf(h->phase, sizeof h->phase, "%s", phase);
	return 0;
}

int
sb_instctl_records(struct sb_instctl *c, struct sb_strlist *out, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/records", c->dir);
	sb_autoclosedir DIR *d = path ? opendir(path) : NULL;
	struct dirent *e;

	if (!d)
		return !path || errno != ENOENT ? sb_fail_errno(err, "records of sandboxes") : 0;
	while ((e = readdir(d)))
		if (e->d_name[0] != '.')
			sb_strlist_add(out, e->d_name);
	return sb_strlist_check(out, err);
}

void
sb_instctl_release(struct sb_instctl_hold *h)
{
	if (h->fd >= 0)
		sb_file_unlock(h->fd);
	h->fd = -1;
}
