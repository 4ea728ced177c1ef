/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/mirror-int.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <sync/remote/conn-priv.h>
#include <sync/run/connect.h>
#include <sync/wire/endpoint.h>
#include <sync/wire/limit.h>
#include <sync/tree/diff.h>
#include <sync/remote/exchange.h>

void
mirror_phase(struct mirror *m, enum sb_phase p)
{
	int64_t now = sb_now_ms();

	m->res->phases_ms[m->phase] += now - m->phase_start;
	m->phase_start = now;
	m->phase = p;
	m->progress.phase = p;
	if (m->o->progress && !m->early)
		m->o->progress(&m->progress, m->o->progress_arg);
}

void
mirror_keep_unseen(struct sb_diff *d, const struct sb_skipped *v, size_t n)
{
	size_t kept = 0;

	if (!n)
		return;
	for (size_t i = 0; i < d->n; i++) {
		bool unseen = false;

		for (size_t k = 0; d->v[i].del && k < n && !unseen; k++) {
			size_t len = strlen(v[k].path);

			unseen = strncmp(d->v[i].path, v[k].path, len) == 0 &&
				(!d->v[i].path[len] || d->v[i].path[len] == '/');
		}
		if (!unseen)
			d->v[kept++] = d->v[i];
	}
	d->n = kept;
}

const char *
mirror_source(struct mirror *m, const char *path)
{
	for (size_t i = 0; m->rec && i < m->rec->n_conflicts; i++) {
		const struct sb_conflict *c = &m->rec->conflicts[i];
		size_t n = c->saved_as ? strlen(c->saved_as) : 0;

		if (!n || strncmp(path, c->saved_as, n) != 0)
			continue;
		if (!path[n])
			return c->path;
		if (path[n] != '/')
			continue;
		free(m->source);
		m->source = sb_str_printf("%s%s", c->path, path + n);
		return m->source;
	}
	return NULL;
}

int
mirror_send_failed(struct mirror *m, int code, struct sb_error *err)
{
	int told;

	if (code != SB_E_CLOSED && code != SB_E_SYS)
		return code;
	told = sb_wire_last_words(m->link->w, 10000, err);
	return told < 0 ? told : code;
}

int
mirror_add_rules(const struct sb_sync_opts *o, struct sb_rules *rules, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && o->exclude_from && o->exclude_from[i]; i++) {
		sb_auto(sb_buf) struct sb_buf b = { 0 };

		sb_buf_init(&b, 0);
		r = sb_file_read(AT_FDCWD, o->exclude_from[i], 1u << 20, &b, err);
		if (r == 0)
			r = sb_rules_add_file(rules, SB_RULES_FROM_FILE, "", (const char *)b.data,
				b.len, err);
		if (r < 0)
			return sb_wrap(err, r, "--exclude-from %s", o->exclude_from[i]);
	}
	for (size_t i = 0; r == 0 && o->exclude && o->exclude[i]; i++)
		r = sb_rules_add(rules, SB_RULES_COMMAND, o->exclude[i], err);
	return r;
}

/*
 * The rules of the last run, when they grew from the same options: the agent can begin to scan with
 * them at once.
 */
static struct sb_rules *
last_rules(struct sb_replica *local, const struct sb_digest *given)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 0);
	if (local->statefd < 0 || sb_file_read(local->statefd, "rules", 16u << 20, &b, NULL) < 0 ||
		b.len < 16 || memcmp(b.data, given->b, 16) != 0)
		return NULL;
	return sb_rules_decode(b.data + 16, b.len - 16, NULL);
}

static void
keep_rules(struct sb_replica *local, const struct sb_digest *given, const struct sb_rules *rules)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 16u << 20);
	sb_buf_add(&b, given->b, 16);
	if (local->statefd >= 0 && sb_rules_encode(rules, &b, NULL) == 0 && !b.failed)
		(void)sb_file_replace(local->statefd, "rules", b.data, b.len, 0600, NULL);
}

int
mirror_open_local(struct mirror *m, const char *root, const uint8_t pair[16], bool create,
	bool readonly, struct sb_error *err)
{
	struct sb_replica_opts o = SB_REPLICA_OPTS_INIT;

	o.root = root;
	o.state_dir = m->o->state_dir;
	o.role = "local";
	memcpy(o.pair, pair, sizeof o.pair);
	o.create = create;
	o.readonly = readonly;
	o.recall = m->o->conn ? sb_conn_recall(m->o->conn) : NULL;
	o.cancel = m->o->cancel;
	o.log = m->o->log;
	m->local = sb_replica_open(&o, err);
	return m->local ? 0 : err ? err->code : SB_E_SYS;
}

static void
scan_progress(uint64_t entries, uint64_t bytes, void *arg)
{
	struct mirror *m = arg;
	struct sb_progress p = { .phase = SB_PHASE_SCAN, .files = entries, .bytes = bytes };

	if (m->o->progress)
		m->o->progress(&p, m->o->progress_arg);
}

int
mirror_scan_local(struct mirror *m, bool source, struct sb_error *err)
{
	struct sb_scan_opts so = SB_SCAN_OPTS_INIT;

	so.rules = m->rules;
	so.collect_sbsyncignore = !m->frozen;
	so.collect_gitignore = m->o->gitignore && !m->frozen;
	so.checksum = m->o->checksum;
	so.cross_mounts = m->o->cross_mounts;
	so.jobs = m->o->jobs;
	so.lazy_below = source && !m->o->checksum ? 1u << 20 : 0;
	so.progress = scan_progress;
	so.progress_arg = m;
	return sb_replica_scan(m->local, &so, err);
}

static bool
is_empty_dir(const char *path)
{
	struct stat st;
	sb_autoclosedir DIR *d = NULL;
	struct dirent *e;

	if (lstat(path, &st) < 0)
		return errno == ENOENT;
	d = opendir(path);
	while (d && (e = readdir(d)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			return false;
	return d != NULL;
}

/*
 * Starts the agent on its scan with the best rules known, scans here, then makes sure both used the
 * same rules.
 */
int
mirror_scan_both(struct mirror *m, struct sb_begin *b, bool source, struct sb_error *err)
{
	const struct sb_rules *asked = mirror_given_rules(m);
	sb_auto(sb_rules) struct sb_rules *guess = NULL;
	struct sb_digest given, guessed;
	int r = sb_rules_digest(asked, &given, err);

	if (r < 0)
		return r;
	guess = m->frozen ? NULL : last_rules(m->local, &given);
	r = sb_rules_digest(guess ? guess : asked, &guessed, err);
	if (r < 0)
		return r;
	b->rules = guessed;
	if (m->local->base && sb_digest_eq(&m->local->base_rules, &guessed))
		b->base = m->local->base->id;
	if (!source && is_empty_dir(m->local->root))
		b->flags |= SB_BEGIN_LAZY;
	/*
	 * In a session it is our own agent as well, of a sync that was canceled or killed: the
	 * session's lock is here.
	 */
	if ((m->retry && m->retry->was_lost) || (b->flags & SB_BEGIN_SESSION))
		b->flags |= SB_BEGIN_AGAIN;
	r = sb_exchange_begin(m->link, b, guess ? guess : asked, err);
	if (r < 0)
		return mirror_send_failed(m, r, err);
	mirror_phase(m, SB_PHASE_SCAN);
	r = m->early ? mirror_early_join(m, err) : mirror_scan_local(m, source, err);
	if (r < 0)
		return sb_wrap(err, r, "scan %s", m->local->root);
	mirror_phase(m, SB_PHASE_EXCHANGE);
	r = sb_rules_digest(m->rules, &m->rules_digest, err);
	if (r < 0)
		return r;
	if (!sb_digest_eq(&m->rules_digest, &guessed)) {
		/* An ignore file came, went or changed: once more, with what holds now. */
		sb_auto(sb_exchange) struct sb_exchange old = { 0 };
		struct sb_manifest *known = NULL;

		keep_rules(m->local, &given, m->rules);
		r = sb_exchange_wait(m->link, sb_digest_known(&b->base) ? &m->local->base : &known,
			NULL, &old, err);
		if (r < 0)
			return r;
		sb_manifest_free(sb_steal(&m->local->base));
		b->base = (struct sb_digest){ 0 };
		b->rules = m->rules_digest;
		r = sb_exchange_begin(m->link, b, m->rules, err);
		if (r < 0)
			return r;
	}
	if (!sb_rules_empty(m->rules) && !guess && !m->frozen)
		keep_rules(m->local, &given, m->rules);
	return sb_exchange_wait(m->link, &m->local->base, m->local->scan.manifest, &m->remote, err);
}

static int
run(struct mirror *m, const struct sb_endpoint *src, const struct sb_endpoint *dst,
	struct sb_error *err)
{
	bool push = src->kind == SB_ENDPOINT_LOCAL;
	const struct sb_endpoint *here = push ? src : dst, *there = push ? dst : src;
	struct sb_begin b = { .jobs = m->o->jobs };
	sb_auto(sb_buf) struct sb_buf id = { 0 };
	struct sb_digest pair;
	char show[512];
	int r;

	m->res->direction = there->kind == SB_ENDPOINT_LOCAL ? "local" :
		push                                         ? "to_runtime" :
							       "from_runtime";
	sb_buf_init(&id, 64u << 10);
	sb_buf_addf(&id, "mirror:%d:%s:", push, here->path);
	sb_buf_add_str(&id,
		there->kind == SB_ENDPOINT_LOCAL ? there->path :
						   sb_endpoint_show(there, show, sizeof show));
	r = sb_buf_check(&id, "pair", err);
	if (r < 0)
		return r;
	pair = sb_digest_of(id.data, id.len);
	memcpy(b.pair, pair.b, sizeof b.pair);
	b.root = there->path;
	b.flags = (push ? SB_BEGIN_CREATE : 0) | (push && !m->o->dry_run ? 0 : SB_BEGIN_READONLY) |
		(m->o->checksum ? SB_BEGIN_CHECKSUM : 0) |
		(m->o->cross_mounts ? SB_BEGIN_CROSS : 0);
	/*
	 * Between two directories of one machine nothing is gained by finding out what changed
	 * inside a file.
	 */
	m->near = there->kind == SB_ENDPOINT_LOCAL;
	m->no_delta = m->o->no_delta || (m->near && !m->o->always_delta);
	r = mirror_open_local(m, here->path, b.pair, !push, push || m->o->dry_run, err);
	if (r == 0 && !m->near)
		mirror_early_start(m, push);
	if (r == 0)
		m->link = sb_connect_begin(there, m->o, m->retry, err);
	if (r == 0 && !m->link)
		r = err ? err->code : SB_E_CONNECT;
	if (r == 0)
		r = mirror_scan_both(m, &b, push, err);
	mirror_early_stop(m);
	if (r == 0)
		r = sb_sync_result_skipped(m->res, m->local->scan.skipped, m->local->scan.n_skipped,
			err);
	if (r == 0)
		r = sb_sync_result_skipped(m->res, m->remote.skipped, m->remote.n_skipped, err);
	if (r == 0 && push)
		sb_retry_progress(m->retry, m->remote.n_have);
	if (r == 0)
		r = push ? mirror_push(m, err) : mirror_pull(m, err);
	/* What was read is not read again by the next attempt. */
	if (r < 0 && m->local && m->local->scan.manifest && m->local->scan.hashed_files)
		sb_replica_save_cache(m->local, m->local->scan.manifest);
	r = sb_connect_end(m->link, r, m->res, m->retry, err);
	m->link = NULL;
	mirror_phase(m, SB_PHASE_DONE);
	return r;
}

/*
 * The absolute path of something that may not be there yet: its nearest existing directory
 * resolved, the rest as written.
 */
char *
mirror_absolute(const char *path, struct sb_error *err)
{
	sb_autofree char *given = *path == '/' ? strdup(path) : NULL;
	char cwd[PATH_MAX];
	char *rest, *real, *out = NULL;

	if (!given && getcwd(cwd, sizeof cwd))
		given = sb_str_printf("%s/%s", cwd, path);
	if (!given) {
		sb_fail_errno(err, "resolve %s", path);
		return NULL;
	}
	real = realpath(given, NULL);
	if (real)
		return real;
	for (size_t n = strlen(given); n > 1 && given[n - 1] == '/'; n--)
		given[n - 1] = 0;
	rest = strrchr(given, '/');
	if (!rest || rest == given)
		return strdup(given);
	*rest++ = 0;
	real = mirror_absolute(given, err);
	if (real)
		out = sb_str_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, rest);
	free(real);
	return out;
}

static bool
inside(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	return strncmp(path, dir, n) == 0 &&
		(path[n] == '/' || !path[n] || (n && dir[n - 1] == '/'));
}

static int
check_paths(struct sb_endpoint *src, struct sb_endpoint *dst, struct sb_error *err)
{
	struct stat st;

	if (src->kind == SB_ENDPOINT_SSH && dst->kind == SB_ENDPOINT_SSH)
		return sb_fail(err, SB_E_USAGE,
			"both ends are remote: run sbsync on one of the two machines");
	for (int i = 0; i < 2; i++) {
		struct sb_endpoint *e = i ? dst : src;
		char *abs;

		if (e->kind == SB_ENDPOINT_SSH)
			continue;
		abs = mirror_absolute(e->path, err);
		if (!abs)
			return err ? err->code : SB_E_SYS;
		free(e->path);
		e->path = abs;
	}
	if (src->kind == SB_ENDPOINT_LOCAL) {
		if (stat(src->path, &st) < 0)
			return sb_fail_errno(err, "source %s", src->path);
		if (!S_ISDIR(st.st_mode))
			return sb_fail(err, SB_E_INVAL, "source %s is not a directory", src->path);
	}
	if (dst->kind == SB_ENDPOINT_LOCAL && stat(dst->path, &st) == 0 && !S_ISDIR(st.st_mode))
		return sb_fail(err, SB_E_INVAL, "destination %s is not a directory", dst->path);
	if (src->kind != SB_ENDPOINT_LOCAL || dst->kind != SB_ENDPOINT_LOCAL)
		return 0;
	if (inside(dst->path, src->path))
		return sb_fail(err, SB_E_INVAL, "destination %s is inside source %s", dst->path,
			src->path);
	if (inside(src->path, dst->path))
		return sb_fail(err, SB_E_INVAL, "source %s is inside destination %s", src->path,
			dst->path);
	return 0;
}

static int
attempt(const struct sb_endpoint *from, const struct sb_endpoint *to, struct mirror m,
	struct sb_error *err)
{
	int r;

	m.phase_start = sb_now_ms();
	m.rules = sb_rules_new(err);
	r = m.rules ? mirror_add_rules(m.o, m.rules, err) : SB_E_NOMEM;
	if (r == 0)
		r = run(&m, from, to, err);
	free(m.source);
	sb_plan_free(&m.plan);
	sb_exchange_free(&m.remote);
	sb_replica_free(m.local);
	sb_rules_free(m.rules);
	return r;
}

static int
attempts(const struct sb_endpoint *from, const struct sb_endpoint *to, struct mirror m,
	struct sb_error *err)
{
	int r;

	do
		r = attempt(from, to, m, err);
	while (r < 0 && sb_retry_again(m.retry, r, m.o, err, m.res));
	return r;
}

/*
 * Files that changed while they were read may be calm by now. Not where something at the
 * destination was left alone because it had changed meanwhile: that is for the user to see first.
 */
static int
look_again(const struct sb_endpoint *from, const struct sb_endpoint *to, struct mirror m,
	struct sb_error *err)
{
	struct sb_sync_result before = *m.res;
	int r;

	if (m.o->dry_run || before.conflicts.n || !sb_sync_result_has_unstable(&before))
		return 0;
	memset(m.res, 0, sizeof *m.res);
	m.res->reason = before.reason;
	r = attempts(from, to, m, err);
	if (r == 0)
		return sb_sync_result_after(m.res, &before, err);
	sb_sync_result_free(&before);
	return r;
}

int
sb_sync_mirror(const char *src, const char *dst, const struct sb_sync_opts *opts,
	struct sb_sync_result *out, struct sb_error *err)
{
	struct sb_sync_opts o = *opts;
	struct sb_limit limit;
	struct sb_retry retry = { 0 };
	struct mirror m = { .o = &o,
		.retry = &retry,
		.res = out,
		.near_name = src,
		.far_name = dst };
	sb_auto(sb_endpoint) struct sb_endpoint from = { 0 }, to = { 0 };
	struct sb_error own = { 0 };
	int64_t start = sb_now_ms();
	int r;

	memset(out, 0, sizeof *out);
	out->reason = "mirror";
	if (!err)
		err = &own;
	r = sb_limit_start(&limit, opts->cancel, opts->timeout_ms, err);
	if (r < 0)
		return r;
	o.cancel = sb_limit_cancel(&limit);
	r = sb_endpoint_parse(src, &from, err);
	if (r == 0 && from.kind != SB_ENDPOINT_LOCAL) {
		m.near_name = dst;
		m.far_name = src;
	}
	if (r == 0)
		r = sb_endpoint_parse(dst, &to, err);
	if (r == 0)
		r = check_paths(&from, &to, err);
	if (r == 0)
		r = attempts(&from, &to, m, err);
	if (r == 0)
		r = look_again(&from, &to, m, err);
	out->duration_ms = sb_now_ms() - start;
	return sb_limit_end(&limit, r, err);
}
