/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/owner.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <host/host-priv.h>
#include <host/hsess.h>
#include <host/runtime/runtime.h>

#define DEPTH_MAX 512

/* Whether this process can be all users of the range: it may be in a namespace that lacks them. */
static bool
has_users(const char *map, uint64_t first, uint64_t count)
{
	sb_autofclose FILE *f = fopen(map, "re");
	unsigned long long from, outside, n;

	while (f && fscanf(f, "%llu %llu %llu", &from, &outside, &n) == 3)
		if (first >= from && first + count <= from + n)
			return true;
	return false;
}

void
sb_host_owner_settle(struct sb_host_opts *o, char *why, size_t size)
{
	*why = '\0';
	if (o->session_uid_count == 0)
		(void)snprintf(why, size, "session-uids is 0");
	else if (geteuid() != 0)
		(void)snprintf(why, size, "this daemon does not run as root");
	else if (!has_users("/proc/self/uid_map", o->session_uid_first, o->session_uid_count) ||
		!has_users("/proc/self/gid_map", o->session_uid_first, o->session_uid_count))
		(void)snprintf(why, size, "users %u to %u do not exist in this container",
			(unsigned)o->session_uid_first,
			(unsigned)(o->session_uid_first + o->session_uid_count - 1));
	if (*why)
		o->session_uid_count = 0;
}

struct claim {
	const struct sb_host_call *call;
	uid_t owner;
	dev_t dev;
	unsigned depth;
};

static int claim_tree(int dir, struct claim *c, struct sb_error *err);

static int
claim_entry(int dir, const char *name, struct claim *c, struct sb_error *err)
{
	sb_autoclose int sub = -1;
	struct stat st;
	int r;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "%s", name);
	if (st.st_dev != c->dev)
		return 0;
	if (S_ISDIR(st.st_mode)) {
		sub = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (sub < 0)
			return sb_fail_errno(err, "open %s", name);
		r = claim_tree(sub, c, err);
		if (r < 0)
			return r;
	}
	/* It also takes away that a program runs as its owner. */
	if ((st.st_uid != c->owner || st.st_gid != c->owner) &&
		fchownat(dir, name, c->owner, c->owner, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "give away %s", name);
	return 0;
}

static int
claim_tree(int dir, struct claim *c, struct sb_error *err)
{
	int dup = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autoclosedir DIR *d = dup >= 0 ? fdopendir(dup) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (dup >= 0)
			(void)close(dup);
		return sb_fail_errno(err, "read a directory");
	}
	if (++c->depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %d directories deep", DEPTH_MAX);
	while (r == 0 && (e = readdir(d))) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		r = sb_check_alive(c->call ? c->call->cancel : NULL,
			c->call ? c->call->deadline : SB_NEVER, "give the workspace away", err);
		if (r == 0)
			r = claim_entry(dir, e->d_name, c, err);
	}
	c->depth--;
	return r;
}

/* Ids of rows are not used again, so neighbours in time have different users. */
uid_t
sb_host_owner_of(const struct sb_host *h, const struct sb_hsess *s)
{
	uint64_t n = (uint64_t)s->uid;

	if (h->o.session_uid_count == 0 || !s->rt->ops->isolates)
		return 0;

	for (const char *p = h->key; *p; p++)
		n += (n << 5) ^ (unsigned char)*p;
	return (uid_t)(h->o.session_uid_first + n % h->o.session_uid_count);
}

/*
 * A workspace that is a file system of its own: no program of it runs as its owner, no device of it
 * is one, whatever the storage makes of its own properties. Others are covered by their owner.
 */
static void
harden(const char *dir)
{
	static const struct {
		unsigned long has, flag;
	} keep[] = { { ST_RDONLY, MS_RDONLY }, { ST_NOEXEC, MS_NOEXEC }, { ST_NOATIME, MS_NOATIME },
		{ ST_NODIRATIME, MS_NODIRATIME }, { ST_RELATIME, MS_RELATIME } };
	unsigned long flags = MS_BIND | MS_REMOUNT | MS_NOSUID | MS_NODEV;
	struct statvfs v;

	if (geteuid() != 0 || statvfs(dir, &v) < 0 ||
		((v.f_flag & ST_NOSUID) && (v.f_flag & ST_NODEV)))
		return;
	for (size_t i = 0; i < sizeof keep / sizeof keep[0]; i++)
		if (v.f_flag & keep[i].has)
			flags |= keep[i].flag;
	/* EINVAL: it is a directory like others. */
	(void)mount(NULL, dir, NULL, flags, NULL);
}

int
sb_host_owner_claim(struct sb_host *h, const struct sb_hsess *s, const char *dir,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct claim c = { .call = call };
	sb_autoclose int fd = -1;
	struct stat st;
	int r;

	harden(dir);
	if (h->o.session_uid_count == 0 || !s->rt->ops->isolates ||
		sb_runtime_owner(&h->o, dir) != 0)
		return 0;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "workspace of session %s", s->id);
	c.owner = sb_host_owner_of(h, s);
	c.dev = st.st_dev;
	r = claim_tree(fd, &c, err);
	if (r == 0 && fchown(fd, c.owner, c.owner) < 0)
		r = sb_fail_errno(err, "give it away");
	return r < 0 ? sb_wrap(err, r, "workspace of session %s", s->id) : 0;
}
