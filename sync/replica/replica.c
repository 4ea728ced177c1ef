/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/replica.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/owndir.h>
#include <base/path.h>
#include <base/str.h>
#include <base/work.h>
#include <sync/replica/commit.h>

#define BASE_FILE "base"
#define RULES_FILE "base-rules"
#define MOUNTS_FILE "mounts"
#define CACHE_FILE "cache"
#define LOCK_STEP_MS 20

char *
sb_replica_state_dir(struct sb_error *err)
{
	const char *own = getenv("SBSYNC_STATE_DIR");
	const char *xdg = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");
	char *s = NULL;

	if (own && *own)
		s = strdup(own);
	else if (xdg && *xdg)
		s = sb_str_printf("%s/sbsync", xdg);
	else if (home && *home)
		s = sb_str_printf("%s/.local/state/sbsync", home);
	else {
		sb_fail(err, SB_E_NOTFOUND, "no place for state: set SBSYNC_STATE_DIR or HOME");
		return NULL;
	}
	if (!s)
		sb_fail(err, SB_E_NOMEM, "state directory: out of memory");
	return s;
}

/*
 * The state folder of this pair and role; -1 (and a log line) when there can be none: state is
 * never needed. One that is not ours is not used; where the user is, that is a reason to stop.
 */
static int
open_state(const struct sb_replica_opts *o, int *out, struct sb_error *err)
{
	static const uint8_t none[16];
	struct sb_error e = { 0 };
	sb_autofree char *dir = o->state_dir ? strdup(o->state_dir) : sb_replica_state_dir(&e);
	sb_autofree char *path = NULL;
	char hex[33];
	int fd;

	*out = -1;
	if (memcmp(o->pair, none, sizeof none) == 0)
		return 0;
	if (dir)
		path = sb_str_printf("pairs/%s-%s", sb_str_hex(o->pair, 16, hex), o->role);
	fd = path ? sb_owndir_open(dir, path, true, &e) : SB_E_NOMEM;
	if (fd == SB_E_DENIED && e.sys == 0 && strcmp(o->role, "local") == 0) {
		if (err)
			*err = e;
		return fd;
	}
	if (fd < 0)
		sb_log(&o->log, SB_LOG_WARN, "state", "working without state: %s", e.msg);
	else
		*out = fd;
	return 0;
}

/* A pause before the lock is tried again; false when there is no more waiting. */
static bool
wait_for_lock(const struct sb_replica *r, sb_deadline until)
{
	struct pollfd p[2] = { { .fd = sb_cancel_fd(r->cancel), .events = POLLIN },
		{ .fd = r->peer } };

	return !sb_deadline_passed(until) && poll(p, 2, LOCK_STEP_MS) <= 0;
}

static int
lock_root(struct sb_replica *r, struct sb_error *err)
{
	sb_deadline until = sb_deadline_in(r->lock_ms);
	int n;

	if (r->readonly)
		return 0;
	do
		n = flock(r->rootfd, LOCK_EX | LOCK_NB);
	while (n < 0 && errno == EWOULDBLOCK && r->lock_ms && wait_for_lock(r, until));
	if (n == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return sb_fail(err, SB_E_LOCKED, "another sync works on %s: wait for it or stop it",
			r->root);
	/* A file system without locks: go on, the commit still checks every file. */
	sb_log(&r->log, SB_LOG_WARN, "state", "cannot lock %s: %m", r->root);
	return 0;
}

static int
open_root(struct sb_replica *r, struct sb_error *err)
{
	struct stat st;

	r->rootfd = open(r->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r->rootfd < 0 && errno == ENOENT && r->create)
		return 0;
	if (r->rootfd < 0 && errno == ENOTDIR && stat(r->root, &st) == 0)
		return sb_fail(err, SB_E_INVAL, "%s is not a directory", r->root);
	if (r->rootfd < 0)
		return sb_fail_errno(err, "open %s", r->root);
	return lock_root(r, err);
}

static void
load_base(struct sb_replica *r)
{
	struct sb_error e = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 0);
	if (r->statefd < 0)
		return;
	r->base = sb_recall_load(r->recall, r->statefd, BASE_FILE, &r->base_tag, &e);
	if (!r->base) {
		if (e.code != SB_E_NOTFOUND)
			sb_log(&r->log, SB_LOG_WARN, "state", "the base cannot be used: %s", e.msg);
		return;
	}
	if (sb_file_read(r->statefd, RULES_FILE, 16, &b, &e) == 0 && b.len == 16)
		memcpy(r->base_rules.b, b.data, 16);
}

struct sb_replica *
sb_replica_open(const struct sb_replica_opts *opts, struct sb_error *err)
{
	sb_auto(sb_replica) struct sb_replica *r = calloc(1, sizeof *r);

	if (!r || !(r->root = strdup(opts->root))) {
		sb_fail(err, SB_E_NOMEM, "replica: out of memory");
		return NULL;
	}
	r->rootfd = r->statefd = r->recipefd = -1;
	r->create = opts->create;
	r->readonly = opts->readonly;
	r->recall = opts->recall;
	r->lock_ms = opts->lock_ms;
	r->peer = opts->peer;
	r->cancel = opts->cancel;
	r->log = opts->log;
	if (open_root(r, err) < 0)
		return NULL;
	if (r->rootfd >= 0 && !r->readonly) {
		int n = sb_commit_recover(r->rootfd, &r->log, err);

		if (n < 0) {
			sb_wrap(err, n, "finish the interrupted sync of %s", r->root);
			return NULL;
		}
		r->recovered = n > 0;
	}
	if (open_state(opts, &r->statefd, err) < 0)
		return NULL;
	load_base(r);
	return sb_steal(&r);
}

void
sb_replica_free(struct sb_replica *r)
{
	if (!r)
		return;
	sb_store_free(r->store);
	sb_recall_give(r->recall, &r->base_tag, r->base);
	sb_scan_free(&r->scan);
	if (r->rootfd >= 0) {
		/*
		 * Not left to the close: a child forked by another thread may hold a copy until its
		 * exec.
		 */
		(void)flock(r->rootfd, LOCK_UN);
		(void)close(r->rootfd);
	}
	if (r->statefd >= 0)
		(void)close(r->statefd);
	if (r->recipefd >= 0)
		(void)close(r->recipefd);
	free(r->root);
	free(r);
}

int
sb_replica_make_root(struct sb_replica *r, struct sb_error *err)
{
	int n;

	if (r->rootfd >= 0)
		return 0;
	n = sb_file_mkdirs(r->root, 0777, err);
	if (n < 0)
		return n;
	return open_root(r, err);
}

/* The mount points that scans of this root crossed: paths with a NUL behind each. */
static void
load_mounts(const struct sb_replica *r, struct sb_strlist *out)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	if (r->statefd < 0 || sb_file_read(r->statefd, MOUNTS_FILE, 1u << 20, &b, NULL) < 0)
		return;
	for (size_t at = 0; at < b.len; at += strlen((char *)b.data + at) + 1)
		sb_strlist_add(out, (char *)b.data + at);
}

/* Those of now and of before: what is out of sight stays on record. */
static int
save_mounts(const struct sb_replica *r, const struct sb_strlist *old, struct sb_error *err)
{
	const struct sb_strlist *now = &r->scan.mounts;
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	size_t added = 0;

	sb_buf_init(&b, 1u << 20);
	for (size_t i = 0; i < old->n; i++)
		sb_buf_add(&b, old->v[i], strlen(old->v[i]) + 1);
	for (size_t i = 0; i < now->n; i++) {
		bool known = false;

		for (size_t k = 0; !known && k < old->n; k++)
			known = strcmp(old->v[k], now->v[i]) == 0;
		if (!known)
			sb_buf_add(&b, now->v[i], strlen(now->v[i]) + 1);
		added += !known;
	}
	if (!added || r->statefd < 0 || r->readonly)
		return 0;
	if (b.failed)
		return sb_fail(err, SB_E_LIMIT, "%s: too many mount points to cross", r->root);
	return sb_file_replace(r->statefd, MOUNTS_FILE, b.data, b.len, 0600, err);
}

int
sb_replica_scan(struct sb_replica *r, struct sb_scan_opts *o, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist mounts = { 0 };
	struct sb_manifest *cache = NULL;
	struct sb_recall_tag tag = { 0 };
	struct sb_error e = { 0 };
	int n;

	sb_scan_free(&r->scan);
	memset(&r->scan, 0, sizeof r->scan);
	if (r->rootfd < 0) {
		r->scan.manifest = sb_manifest_new(err);
		return r->scan.manifest ? sb_manifest_finish(r->scan.manifest, err) :
			err             ? err->code :
					  SB_E_NOMEM;
	}
	if (r->statefd >= 0)
		cache = sb_recall_load(r->recall, r->statefd, CACHE_FILE, &tag, &e);
	load_mounts(r, &mounts);
	n = sb_strlist_check(&mounts, err);
	o->cache = cache;
	o->mounts = &mounts;
	o->cancel = r->cancel;
	o->log = r->log;
	if (n == 0)
		n = sb_scan_run(r->rootfd, o, &r->scan, err);
	if (n == 0 && o->cross_mounts)
		n = save_mounts(r, &mounts, err);
	o->cache = NULL;
	o->mounts = NULL;
	sb_recall_give(r->recall, &tag, cache);
	return n;
}

void
sb_replica_save_cache(struct sb_replica *r, const struct sb_manifest *m)
{
	struct sb_error e = { 0 };

	if (r->statefd < 0)
		return;
	if (sb_manifest_save(m, true, false, r->statefd, CACHE_FILE, &e) < 0)
		sb_log(&r->log, SB_LOG_WARN, "state", "the scan cache was not saved: %s", e.msg);
}

void
sb_replica_update_cache(struct sb_replica *r, uint64_t files, uint64_t bytes)
{
	/*
	 * An entry takes a third of a microsecond to write; a file some 15 to read again, and a
	 * millisecond a MiB.
	 */
	if (files > r->scan.manifest->count / 256 || bytes / 256 > r->scan.manifest->count)
		sb_replica_save_cache(r, r->scan.manifest);
}

static int
write_base(struct sb_replica *r, const struct sb_manifest *m, const struct sb_digest *rules,
	struct sb_error *err)
{
	const struct sb_cancel *under = sb_work_under(NULL);
	int n = sb_manifest_save(m, false, true, r->statefd, BASE_FILE, err);

	(void)sb_work_under(under);
	return n < 0 ?
		n :
		sb_file_replace(r->statefd, RULES_FILE, rules->b, sizeof rules->b, 0600, err);
}

int
sb_replica_write_base(struct sb_replica *r, const struct sb_manifest *m,
	const struct sb_digest *rules, struct sb_error *err)
{
	sb_manifest_free(sb_steal(&r->base));
	r->base_tag = (struct sb_recall_tag){ 0 };
	return r->statefd >= 0 ? write_base(r, m, rules, err) : 0;
}

int
sb_replica_save_base(struct sb_replica *r, struct sb_manifest *m, const struct sb_digest *rules,
	struct sb_error *err)
{
	int n = 0;

	if (r->statefd >= 0 && m) {
		n = write_base(r, m, rules, err);
	} else if (r->statefd >= 0) {
		(void)unlinkat(r->statefd, BASE_FILE, 0);
	}
	if (m != r->base)
		sb_manifest_free(r->base);
	r->base = m;
	r->base_tag = (struct sb_recall_tag){ 0 };
	r->base_rules = *rules;
	return n;
}

struct sb_store *
sb_replica_store(struct sb_replica *r)
{
	struct sb_store_opts o = SB_STORE_OPTS_INIT;
	struct sb_error e = { 0 };
	sb_autoclose int fd = -1;

	if (r->store || r->statefd < 0)
		return r->store;
	if (mkdirat(r->statefd, "store", 0700) < 0 && errno != EEXIST)
		return NULL;
	fd = openat(r->statefd, "store", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return NULL;
	r->store = sb_store_open(fd, &o, &e);
	if (!r->store)
		sb_log(&r->log, SB_LOG_WARN, "store", "no base store: %s", e.msg);
	return r->store;
}

int
sb_replica_recipes(struct sb_replica *r)
{
	if (r->recipefd >= 0 || r->statefd < 0)
		return r->recipefd;
	if (mkdirat(r->statefd, "recipes", 0700) == 0 || errno == EEXIST)
		r->recipefd = openat(r->statefd, "recipes",
			O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	return r->recipefd;
}
