/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/scan/scan.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sync/scan/scan-priv.h>

#define JOBS_MAX 8
#define JOBS_LIMIT 64
/*
 * Descriptors a worker may need at once: its directory, the next one, a file, and two on the way
 * along a path.
 */
#define WORKER_FDS 5
/* Left to the rest of the program. */
#define OTHER_FDS 16
#define RETAIN_MAX 512
#define SPECIALS_LISTED 1000
#define PROGRESS_MS 200

const char *
sb_scan_skip_text(enum sb_skip_reason r)
{
	switch (r) {
	case SB_SKIP_SPECIAL: return "socket, fifo or device";
	case SB_SKIP_MOUNT: return "another file system";
	case SB_SKIP_UNREADABLE: return "permission denied";
	case SB_SKIP_UNSTABLE: return "kept changing while it was read";
	case SB_SKIP_NAME: return "name cannot be transferred";
	}
	return "unknown reason";
}

bool
sb_scan_skip_is_loss(enum sb_skip_reason r)
{
	return r == SB_SKIP_UNREADABLE || r == SB_SKIP_UNSTABLE;
}

int
sb_scan_worker_init(struct sb_scan_worker *w, struct sb_scan_ctx *c)
{
	*w = (struct sb_scan_worker){ .c = c, .noatime = true };
	sb_buf_init(&w->names, SIZE_MAX / 2);
	sb_buf_init(&w->path, SIZE_MAX / 2);
	w->buf = malloc(SCAN_BUF);
	w->xxh = XXH3_createState();
	return w->buf && w->xxh ? 0 : -1;
}

void
sb_scan_worker_free(struct sb_scan_worker *w)
{
	free(w->buf);
	(void)XXH3_freeState(w->xxh);
	sb_buf_free(&w->names);
	sb_buf_free(&w->path);
	free(w->items);
	free(w->pending);
}

struct thread {
	pthread_t id;
	struct sb_scan_worker w;
	void (*fn)(struct sb_scan_worker *w);
	bool running;
};

static void *
thread_main(void *arg)
{
	struct thread *t = arg;

	t->fn(&t->w);
	return NULL;
}

/* Starts all but the first; those that cannot be started are done without. */
static void
start_threads(struct sb_scan_ctx *c, struct thread *v)
{
	sigset_t all, before;

	/* Signals are the program's business, on its own threads. */
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	for (unsigned i = 1; i < c->jobs; i++)
		v[i].running = pthread_create(&v[i].id, NULL, thread_main, &v[i]) == 0;
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_mutex_lock(&c->mu);
	for (unsigned i = 1; i < c->jobs; i++)
		c->active -= !v[i].running;
	pthread_cond_broadcast(&c->more);
	pthread_mutex_unlock(&c->mu);
}

int
sb_scan_parallel(struct sb_scan_ctx *c, void (*fn)(struct sb_scan_worker *w),
	struct sb_scan_node *start)
{
	sb_autofree struct thread *v = calloc(c->jobs, sizeof *v);
	bool ok = v != NULL;

	for (unsigned i = 0; v && i < c->jobs; i++) {
		ok = sb_scan_worker_init(&v[i].w, c) == 0 && ok;
		v[i].fn = fn;
	}
	if (ok) {
		v[0].w.start = start;
		c->active = c->jobs;
		start_threads(c, v);
		fn(&v[0].w);
	} else {
		sb_scan_fail_memory(c);
	}
	for (unsigned i = 0; v && i < c->jobs; i++) {
		if (v[i].running)
			(void)pthread_join(v[i].id, NULL);
		sb_scan_worker_free(&v[i].w);
	}
	return c->code;
}

void
sb_scan_fail(struct sb_scan_ctx *c, int code, const struct sb_error *err)
{
	pthread_mutex_lock(&c->mu);
	if (!c->code) {
		c->code = code;
		c->fail = *err;
	}
	atomic_store(&c->stop, true);
	pthread_cond_broadcast(&c->more);
	pthread_mutex_unlock(&c->mu);
}

void
sb_scan_fail_memory(struct sb_scan_ctx *c)
{
	struct sb_error err;

	sb_scan_fail(c, sb_fail(&err, SB_E_NOMEM, "out of memory"), &err);
}

const char *
sb_scan_show(const char *dir, const char *name, struct sb_scan_shown *s)
{
	char *end;

	if (!*dir && !*name)
		return "the root";
	(void)sb_escape(dir, strlen(dir), s->text, sizeof s->text);
	end = s->text + strlen(s->text);
	if (*dir && *name && end < s->text + sizeof s->text - 1)
		*end++ = '/';
	(void)sb_escape(name, strlen(name), end, (size_t)(s->text + sizeof s->text - end));
	return s->text;
}

void
sb_scan_fail_at(struct sb_scan_ctx *c, int sys, const char *what, const char *dir, const char *name)
{
	struct sb_scan_shown s;
	struct sb_error err;

	errno = sys;
	sb_scan_fail(c, sb_fail_errno(&err, "%s %s", what, sb_scan_show(dir, name, &s)), &err);
}

bool
sb_scan_stopped(struct sb_scan_ctx *c)
{
	struct sb_error err;

	if (atomic_load_explicit(&c->stop, memory_order_relaxed))
		return true;
	if (!sb_cancel_requested(c->o.cancel))
		return false;
	sb_scan_fail(c, sb_fail(&err, SB_E_CANCELED, "canceled"), &err);
	return true;
}

void
sb_scan_progress(struct sb_scan_ctx *c)
{
	int_fast64_t now, due;

	if (!c->o.progress)
		return;
	now = sb_now_ms();
	due = atomic_load_explicit(&c->next_progress, memory_order_relaxed);
	/* Whoever moves the time on calls; the others saw it moved. */
	if (now < due ||
		!atomic_compare_exchange_strong(&c->next_progress, &due, now + PROGRESS_MS))
		return;
	sb_scan_tell(c);
}

void
sb_scan_tell(struct sb_scan_ctx *c)
{
	uint64_t hashed = atomic_load_explicit(&c->hashed_bytes, memory_order_relaxed);
	uint64_t all = atomic_load_explicit(&c->to_hash, memory_order_relaxed);

	/* What changed while it was read was read again, and counted again. */
	if (c->o.progress)
		c->o.progress(atomic_load_explicit(&c->entries, memory_order_relaxed),
			hashed < all ? hashed : all, all, c->o.progress_arg);
}

static struct sb_skipped *
grow_skipped(struct sb_scan_ctx *c)
{
	if (c->n_skipped == c->cap_skipped) {
		size_t cap = c->cap_skipped ? c->cap_skipped * 2 : 16;
		struct sb_skipped *grown = reallocarray(c->skipped, cap, sizeof *grown);

		if (!grown)
			return NULL;
		c->skipped = grown;
		c->cap_skipped = cap;
	}
	return &c->skipped[c->n_skipped];
}

void
sb_scan_skip(struct sb_scan_ctx *c, const char *dir, const char *name, enum sb_skip_reason why,
	int sys)
{
	size_t dir_len = strlen(dir), len = strlen(name);
	char *path = malloc(dir_len + 1 + len + 1);
	struct sb_skipped *to = NULL;
	bool listed = true;

	if (path) {
		memcpy(path, dir, dir_len);
		if (dir_len)
			path[dir_len++] = '/';
		memcpy(path + dir_len, name, len + 1);
		sb_log(&c->o.log, SB_LOG_DEBUG, "scan", "skipped %s: %s", path,
			sb_scan_skip_text(why));
	}
	pthread_mutex_lock(&c->mu);
	if (why == SB_SKIP_SPECIAL)
		listed = c->n_specials++ < SPECIALS_LISTED;
	if (listed && path)
		to = grow_skipped(c);
	if (to) {
		*to = (struct sb_skipped){ .path = path, .reason = why, .sys = sys };
		c->n_skipped++;
	}
	pthread_mutex_unlock(&c->mu);
	if (listed && !to)
		sb_scan_fail_memory(c);
	if (!to)
		free(path);
}

void
sb_scan_note_mount(struct sb_scan_ctx *c, const char *path)
{
	pthread_mutex_lock(&c->mu);
	sb_strlist_add(&c->mounts, path);
	pthread_mutex_unlock(&c->mu);
}

/* Mount points of earlier scans that are not even directories any more. */
static void
report_gone_mounts(struct sb_scan_ctx *c)
{
	for (size_t i = 0; c->o.mounts && i < c->o.mounts->n; i++) {
		const char *path = c->o.mounts->v[i];
		bool seen = sb_manifest_find(c->m, path) != NULL;

		for (size_t k = 0; !seen && k < c->n_skipped; k++)
			seen = strcmp(c->skipped[k].path, path) == 0;
		if (!seen)
			sb_scan_skip(c, "", path, SB_SKIP_MOUNT, 0);
	}
}

void
sb_scan_drop(struct sb_scan_ctx *c, struct sb_entry *e)
{
	e->spare |= SPARE_GONE;
	atomic_fetch_add_explicit(&c->removed, 1, memory_order_relaxed);
}

/* Descriptors the process may still open. */
static unsigned
free_fds(void)
{
	struct rlimit lim;
	unsigned used = 0;
	DIR *d;

	if (getrlimit(RLIMIT_NOFILE, &lim) < 0)
		return 0;
	if (lim.rlim_cur > 65536)
		lim.rlim_cur = 65536;
	d = opendir("/proc/self/fd");
	if (!d)
		return lim.rlim_cur > 64 ? (unsigned)lim.rlim_cur - 64 : 0;
	while (readdir(d))
		used++;
	(void)closedir(d);
	return lim.rlim_cur > used ? (unsigned)lim.rlim_cur - used : 0;
}

static unsigned
default_jobs(void)
{
	cpu_set_t set;
	int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;

	return n > JOBS_MAX ? JOBS_MAX : (unsigned)n;
}

static int
ctx_init(struct sb_scan_ctx *c, int rootfd, const struct sb_scan_opts *opts, struct sb_error *err)
{
	unsigned fds = free_fds();

	*c = (struct sb_scan_ctx){ .rootfd = -1 };
	memcpy(&c->o, opts, opts->size < sizeof c->o ? opts->size : sizeof c->o);
	c->jobs = c->o.jobs ? c->o.jobs : default_jobs();
	if (c->jobs > JOBS_LIMIT)
		c->jobs = JOBS_LIMIT;
	while (c->jobs > 1 && c->jobs * WORKER_FDS > fds)
		c->jobs--;
	if (fds > c->jobs * WORKER_FDS + OTHER_FDS)
		c->retain_max = fds - c->jobs * WORKER_FDS - OTHER_FDS;
	if (c->retain_max > RETAIN_MAX)
		c->retain_max = RETAIN_MAX;
	c->rootfd = openat(rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (c->rootfd < 0)
		return sb_fail_errno(err, "open the root");
	c->slack = sb_scan_slack(c->rootfd, c->o.cross_mounts);
	atomic_init(&c->next_progress, sb_now_ms() + PROGRESS_MS);
	(void)pthread_mutex_init(&c->mu, NULL);
	(void)pthread_cond_init(&c->more, NULL);
	return 0;
}

static void
ctx_free(struct sb_scan_ctx *c)
{
	if (c->rootfd < 0)
		return;
	(void)close(c->rootfd);
	(void)pthread_mutex_destroy(&c->mu);
	(void)pthread_cond_destroy(&c->more);
	for (size_t i = 0; i < c->n_skipped; i++)
		free(c->skipped[i].path);
	free(c->skipped);
	free(c->links);
	sb_strlist_free(&c->mounts);
}

static int
start_walk(struct sb_scan_ctx *c)
{
	struct sb_entry *root = &c->m->root;
	struct sb_scan_node *n = malloc(sizeof *n);
	struct sb_scan_stat st;
	struct sb_error err;
	int fd = openat(c->rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r = fd < 0 ? -errno : sb_scan_stat(fd, NULL, &st);

	if (!n || r < 0) {
		free(n);
		if (fd >= 0)
			(void)close(fd);
		errno = n ? -r : ENOMEM;
		r = sb_fail_errno(&err, "open the root");
		sb_scan_fail(c, r, &err);
		return r;
	}
	sb_scan_take_stat(c, &st, root);
	root->dir->dev = st.dev;
	*n = (struct sb_scan_node){ .entry = root,
		.fd = fd,
		.refs = 1,
		.users = 1,
		.cached = c->o.cache ? c->o.cache->root.dir : NULL };
	r = sb_scan_parallel(c, sb_scan_walk, n);
	sb_scan_walk_drain(c);
	return r;
}

/* Takes the dropped entries out; clears what only the scan uses; counts what is left to hash. */
static int
compact(struct sb_scan_ctx *c, uint64_t *out_unhashed, struct sb_error *err)
{
	size_t n;
	sb_autofree struct sb_entry **v = sb_manifest_dirs(&c->m->root, &n, err);

	if (!v)
		return SB_E_NOMEM;
	*out_unhashed = 0;
	/*
	 * Backwards: the list points into arrays of parents, which must not move before their
	 * children are done.
	 */
	for (size_t i = n; i > 0; i--) {
		struct sb_dir *d = v[i - 1]->dir;
		uint32_t kept = 0;

		for (uint32_t k = 0; k < d->n; k++) {
			if (d->entries[k].spare & SPARE_GONE)
				continue;
			if (kept != k)
				d->entries[kept] = d->entries[k];
			d->entries[kept].spare = 0;
			*out_unhashed += (d->entries[kept].flags & SB_ENTRY_UNHASHED) != 0;
			kept++;
		}
		d->n = kept;
	}
	return 0;
}

static int
compare_skipped(const void *a, const void *b)
{
	const struct sb_skipped *x = a, *y = b;

	return strcmp(x->path, y->path);
}

/* Moves what the context collected behind what `s` has. */
static int
take_results(struct sb_scan_ctx *c, struct sb_scan *s, struct sb_error *err)
{
	struct sb_skipped *v = reallocarray(s->skipped, s->n_skipped + c->n_skipped + 1, sizeof *v);

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "list of skipped files: out of memory");
	if (c->n_skipped)
		memcpy(v + s->n_skipped, c->skipped, c->n_skipped * sizeof *v);
	s->skipped = v;
	s->n_skipped += c->n_skipped;
	c->n_skipped = 0;
	qsort(v, s->n_skipped, sizeof *v, compare_skipped);
	s->n_specials += c->n_specials;
	sb_strlist_join(&s->mounts, &c->mounts);
	s->hashed_files += atomic_load(&c->hashed_files);
	s->hashed_bytes += atomic_load(&c->hashed_bytes);
	return 0;
}

/* What follows the parallel work, in a new scan and in one that goes on. */
static int
complete(struct sb_scan_ctx *c, struct sb_scan *s, struct sb_error *err)
{
	int r = c->code ? c->code : sb_scan_settle_links(c);

	if (r < 0) {
		if (err)
			*err = c->fail;
		return sb_wrap(err, r, "scan");
	}
	r = compact(c, &s->unhashed, err);
	if (r == 0)
		r = sb_manifest_finish(c->m, err);
	if (r == 0)
		report_gone_mounts(c);
	if (r == 0)
		r = take_results(c, s, err);
	if (r == 0)
		sb_scan_tell(c);
	return r;
}

int
sb_scan_run(int rootfd, const struct sb_scan_opts *opts, struct sb_scan *out, struct sb_error *err)
{
	sb_auto(sb_scan) struct sb_scan s = { 0 };
	struct sb_scan_ctx c;
	int r = ctx_init(&c, rootfd, opts, err);

	if (r < 0)
		return r;
	s.manifest = c.m = sb_manifest_new(err);
	if (!c.m) {
		ctx_free(&c);
		return SB_E_NOMEM;
	}
	if (start_walk(&c) == 0)
		(void)sb_scan_group_links(&c);
	r = complete(&c, &s, err);
	ctx_free(&c);
	if (r == 0)
		r = sb_strlist_check(&s.mounts, err);
	if (r < 0)
		return r;
	*out = s;
	s = (struct sb_scan){ 0 };
	return 0;
}

void
sb_scan_free(struct sb_scan *s)
{
	for (size_t i = 0; i < s->n_skipped; i++)
		free(s->skipped[i].path);
	free(s->skipped);
	sb_strlist_free(&s->mounts);
	sb_manifest_free(s->manifest);
	*s = (struct sb_scan){ 0 };
}

struct wish {
	struct sb_scan_ctx *c;
	bool (*want)(const char *path, const struct sb_entry *e, void *arg);
	void *arg;
	uint64_t entries;
};

static int
mark_wanted(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct wish *w = arg;

	(void)len;
	w->entries++;
	e->spare = 0;
	if (e->type == SB_ENTRY_FILE && (e->flags & SB_ENTRY_UNHASHED) &&
		(!w->want || w->want(path, e, w->arg)))
		e->spare |= SPARE_WANTED;
	return 0;
}

int
sb_scan_hash_rest(int rootfd, const struct sb_scan_opts *opts, struct sb_scan *s,
	bool (*want)(const char *path, const struct sb_entry *e, void *arg), void *arg,
	struct sb_error *err)
{
	struct sb_scan_ctx c;
	struct wish w = { .c = &c, .want = want, .arg = arg };
	int r = ctx_init(&c, rootfd, opts, err);

	if (r < 0)
		return r;
	c.m = s->manifest;
	c.o.lazy_below = 0;
	r = sb_manifest_walk(c.m, mark_wanted, &w);
	atomic_store(&c.entries, w.entries);
	if (r < 0)
		sb_scan_fail_memory(&c);
	else
		(void)sb_scan_hash_wanted(&c);
	r = complete(&c, s, err);
	ctx_free(&c);
	return r;
}
