/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/overlay-mount.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/str.h>
#include <host/storage/overlay-layer.h>

/* One page, with its NUL. */
#define OPTIONS_MAX 4095
#define SOURCE "sandbox"

static void
add_layer(struct sb_buf *b, int layers, uint64_t id, const char *sub)
{
	char name[SB_OVERLAY_NAME_MAX];

	sb_buf_addf(b, "/proc/self/fd/%d/%s", layers, sb_overlay_layer_name(id, sub, name));
}

/* By descriptor: short, the same on all kernels, and no character in a path needs quoting. */
static int
options(const struct sb_overlay_mount *m, struct sb_buf *b, struct sb_error *err)
{
	size_t i = 0;

	sb_buf_add_str(b, "redirect_dir=on,index=off,metacopy=off,xino=auto");
	if (m->is_volatile && m->writable)
		sb_buf_add_str(b, ",volatile");
	if (m->writable) {
		sb_buf_add_str(b, ",upperdir=");
		add_layer(b, m->layers, m->stack[0], "fs");
		sb_buf_add_str(b, ",workdir=");
		add_layer(b, m->layers, m->stack[0], "work");
		i = 1;
	}
	sb_buf_add_str(b, ",lowerdir=");
	for (size_t first = i; i < m->n; i++) {
		if (i > first)
			sb_buf_add_char(b, ':');
		add_layer(b, m->layers, m->stack[i], "fs");
	}
	if (m->base >= 0)
		sb_buf_addf(b, "%s/proc/self/fd/%d", m->n > (m->writable ? 1u : 0u) ? ":" : "",
			m->base);
	return sb_buf_check(b, "options of the mount", err);
}

static int
try(const struct sb_overlay_mount *m, const char *path, char *data)
{
	return mount(SOURCE, path, "overlay", MS_NOSUID | MS_NODEV | (m->writable ? 0 : MS_RDONLY),
		data);
}

/* With the base in the file tree for that moment. errno is that of the mount. */
static int
try_placed(const struct sb_overlay_mount *m, const char *path, char *data)
{
	static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
	int r = -1, sys = EINVAL;

	(void)pthread_mutex_lock(&mu);
	(void)mkdir(m->base_place, 0700);
	if (move_mount(m->base, "", AT_FDCWD, m->base_place, MOVE_MOUNT_F_EMPTY_PATH) == 0) {
		r = try(m, path, data);
		sys = errno;
		(void)umount2(m->base_place, MNT_DETACH | UMOUNT_NOFOLLOW);
	}
	(void)rmdir(m->base_place);
	(void)pthread_mutex_unlock(&mu);
	errno = sys;
	return r;
}

int
sb_overlay_mount_at(const struct sb_overlay_mount *m, const char *path, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	int r;

	sb_buf_init(&b, OPTIONS_MAX);
	r = options(m, &b, err);
	if (r < 0)
		return r == SB_E_FULL ? sb_fail(err, SB_E_LIMIT, "%zu layers are too many", m->n) :
					r;
	r = m->place_base && m->base_place ? -1 : try(m, path, (char *)b.data);
	if (r < 0 && m->base_place && (m->place_base || errno == EINVAL))
		r = try_placed(m, path, (char *)b.data);
	return r < 0 ? sb_fail_errno(err, "mount an overlay of %zu layers at %s", m->n, path) : 0;
}

int
sb_overlay_mount_leave(const char *path, bool force, struct sb_error *err)
{
	if (umount2(path, UMOUNT_NOFOLLOW | (force ? MNT_DETACH : 0)) == 0)
		return 0;
	if (errno == EINVAL || errno == ENOENT)
		return 0;
	return errno == EBUSY ? 1 : sb_fail_errno(err, "unmount %s", path);
}

int
sb_overlay_mount_view(const struct sb_overlay_mount *m, const char *place, struct sb_error *err)
{
	int fd, r = sb_overlay_mount_at(m, place, err);

	if (r < 0)
		return r;
	fd = open(place, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		r = sb_fail_errno(err, "open %s", place);
	/* The descriptor keeps it. */
	(void)umount2(place, MNT_DETACH | UMOUNT_NOFOLLOW);
	return r < 0 ? r : fd;
}

/* Octal escapes of a path in mountinfo, in place. */
static void
unescape(char *s)
{
	char *to = s;

	while (*s)
		if (s[0] == '\\' && s[1] >= '0' && s[1] <= '3' && s[2] && s[3]) {
			*to++ = (char)((s[1] - '0') << 6 | (s[2] - '0') << 3 | (s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	*to = '\0';
}

/* The number in ",upperdir=/proc/self/fd/5/1a/fs,", 0 when there is none. */
static uint64_t
upper_of(const char *super)
{
	const char *p = strstr(super, ",upperdir="), *end, *slash;

	if (!p)
		return 0;
	p += strlen(",upperdir=");
	end = p + strcspn(p, ", \n");
	slash = memrchr(p, '/', (size_t)(end - p));
	if (!slash || end - slash != 3 || strncmp(slash, "/fs", 3) != 0)
		return 0;
	for (p = slash; p[-1] != '/' && p[-1] != '='; p--)
		;
	return strtoull(p, NULL, 16);
}

int
sb_overlay_mount_each(const char *root, sb_overlay_mount_fn fn, void *arg, struct sb_error *err)
{
	sb_autofclose FILE *f = fopen("/proc/self/mountinfo", "re");
	sb_autofree char *line = NULL;
	size_t cap = 0, len = strlen(root);
	int r = 0;

	if (!f)
		return sb_fail_errno(err, "read /proc/self/mountinfo");
	while (r >= 0 && getline(&line, &cap, f) > 0) {
		char *save = NULL, *at, *dash = strstr(line, " - ");

		if (!dash || !sb_str_starts(dash, " - overlay "))
			continue;
		*dash = '\0';
		at = strtok_r(line, " ", &save);
		for (int i = 0; i < 4 && at; i++)
			at = strtok_r(NULL, " ", &save);
		if (!at)
			continue;
		unescape(at);
		if (strncmp(at, root, len) == 0 && at[len] == '/')
			r = fn(at + len + 1, upper_of(dash + 1), arg, err);
	}
	return r < 0 ? r : 0;
}
