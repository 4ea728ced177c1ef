/* SPDX-License-Identifier: MIT */
/* Starts, syncs, recovers and removes sessions. */
#include "config.h"

#include <sbsync/session.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/random.h>
#include <base/str.h>
#include <sync/wire/endpoint.h>
#include <sync/wire/limit.h>
#include <sync/run/run.h>
#include <sync/run/sync-result.h>
#include <sync/session/session-run.h>
#include <sync/session/session-log.h>
#include <sync/session/session-store.h>
#include <sync/session/session-hold.h>
#include <sync/session/session-priv.h>

#define BACKOFF_MIN 60 /* s, after the first failed recovery */
#define BACKOFF_MAX 3600

static int
set_error(struct sb_session *s, int code, const struct sb_error *err)
{
	free(s->last_error);
	s->last_error = code < 0 && err ? strdup(err->msg) : NULL;
	return code;
}

static int
keep_text(char **to, const char *from, bool is_path, struct sb_error *err)
{
	if (!from)
		return 0;
	*to = is_path ? sb_endpoint_absolute(from, err) : strdup(from);
	return *to ? 0 : sb_fail(err, SB_E_NOMEM, "session: out of memory");
}

/* Keeps the route to the far side that the start was given: later calls use it, too. */
static int
keep_route(struct sb_session *s, const struct sb_sync_opts *o, struct sb_error *err)
{
	int r;

	s->port = o->port;
	r = keep_text(&s->identity_file, o->identity, true, err);
	if (r == 0)
		r = keep_text(&s->ssh_config, o->ssh_config, true, err);
	if (r == 0)
		r = keep_text(&s->known_hosts, o->known_hosts, true, err);
	return r < 0 ? r : keep_text(&s->rsh, o->rsh, false, err);
}

void
sb_session_use_route(const struct sb_session *s, struct sb_sync_opts *o)
{
	o->port = o->port ? o->port : (int)s->port;
	o->identity = o->identity ? o->identity : s->identity_file;
	o->ssh_config = o->ssh_config ? o->ssh_config : s->ssh_config;
	o->known_hosts = o->known_hosts ? o->known_hosts : s->known_hosts;
	o->rsh = o->rsh ? o->rsh : s->rsh;
}

/*
 * One attempt at the pairs that are not done yet. What a done one brought stays when a later one is
 * tried again.
 */
static int
try_pairs(struct sb_session_pass *pass, const struct sb_endpoint *there, struct sb_retry *retry,
	size_t *done, struct sb_error *err)
{
	int64_t start = sb_now_ms();
	int r;

	pass->link = sb_run_link_take(there, pass->o, retry, err);
	r = pass->link ? 0 : err->code;
	pass->retry = retry;
	pass->res->phases_ms[SB_STEP_CONNECT] += sb_now_ms() - start;
	while (r == 0 && *done < pass->s->n_pairs) {
		r = sb_session_run_pair(pass, *done, err);
		if (r == 0) {
			(*done)++;
			r = sb_sync_result_add(pass->whole, pass->res, err);
		}
	}
	start = sb_now_ms();
	r = sb_run_link_give(pass->link, r, pass->res, retry, err);
	pass->link = NULL;
	pass->res->phases_ms[SB_STEP_RECORD] += sb_now_ms() - start;
	return r;
}

/* All pairs over one connection, within one time limit; ends at the first that fails. */
static int
run_pairs(struct sb_session_pass *pass, struct sb_error *err)
{
	sb_auto(sb_endpoint) struct sb_endpoint there = { 0 };
	struct sb_sync_opts o = *pass->o;
	struct sb_sync_result part = { 0 }, *res = pass->res;
	struct sb_retry retry = { 0 };
	struct sb_error own = { 0 };
	struct sb_limit limit;
	int64_t start = sb_now_ms();
	size_t done = 0;
	int r;

	if (!err)
		err = &own;
	r = sb_limit_start(&limit, o.cancel, o.timeout_ms, err);

	if (r < 0)
		return r;
	o.cancel = sb_limit_cancel(&limit);
	pass->o = &o;
	pass->res = &part;
	pass->whole = res;
	r = sb_endpoint_parse(pass->s->pairs[0].remote, &there, err);
	if (r == 0) {
		do
			r = try_pairs(pass, &there, &retry, &done, err);
		while (r < 0 && sb_retry_again(&retry, r, &o, err, &part));
	}
	if (sb_sync_result_add(res, &part, r == 0 ? err : NULL) < 0 && r == 0)
		r = SB_E_NOMEM;
	pass->res = res;
	pass->o = NULL;
	pass->res->duration_ms = sb_now_ms() - start;
	return sb_limit_end(&limit, r, err);
}

static const char *const reasons[] = { "turn", "stop", "crash", "push" };

static enum sb_direction
direction_of(enum sb_session_reason reason)
{
	return reason == SB_REASON_TURN  ? SB_BOTH_WAYS :
		reason == SB_REASON_PUSH ? SB_TO_RUNTIME :
					   SB_FROM_RUNTIME;
}

static void
note_outcome(struct sb_session *s, enum sb_session_reason reason, int code,
	const struct sb_error *err)
{
	set_error(s, code, err);
	if (code == 0) {
		s->last_sync = time(NULL);
		s->failures = 0;
		s->next_try = 0;
		s->paused = 0;
		s->state = reason == SB_REASON_STOP ? SB_SESSION_STOPPED :
			reason == SB_REASON_CRASH   ? SB_SESSION_ORPHANED :
						      SB_SESSION_ACTIVE;
		return;
	}
	/* What recovery brought is here; only what came since is not. */
	if ((direction_of(reason) & SB_FROM_RUNTIME) &&
		(reason != SB_REASON_CRASH || s->state != SB_SESSION_ORPHANED))
		s->state = SB_SESSION_UNSYNCED;
	if (reason == SB_REASON_CRASH) {
		int64_t wait = BACKOFF_MIN << (s->failures > 6 ? 6 : s->failures);

		s->failures++;
		s->next_try = time(NULL) + (wait > BACKOFF_MAX ? BACKOFF_MAX : wait);
	}
}

static int
sync_held(struct sb_session_held *h, struct sb_session *s, enum sb_session_reason reason,
	const struct sb_sync_opts *opts, enum sb_session_conflict policy,
	struct sb_sync_result *res, struct sb_error *err)
{
	struct sb_sync_opts o = *opts;
	struct sb_session_policies policies = { 0 };
	struct sb_session_pass pass = { .s = s,
		.dirfd = h->dirfd,
		.o = &o,
		.direction = direction_of(reason),
		.policies = &policies,
		.stamp = sb_session_stamp(),
		.res = res };
	struct sb_error own = { 0 };
	int r, saved;

	memset(res, 0, sizeof *res);
	res->direction = reason == SB_REASON_TURN ? "both" :
		reason == SB_REASON_PUSH          ? "to_runtime" :
						    "from_runtime";
	res->reason = reasons[reason];
	if (!err)
		err = &own;
	if (s->state == SB_SESSION_STOPPED)
		return sb_fail(err, SB_E_STATE,
			"session '%s' is stopped: sbsync start %s %s opens it anew", s->name,
			s->pairs[0].local, s->pairs[0].remote);
	if (s->state == SB_SESSION_STARTING)
		return sb_fail(err, SB_E_STATE,
			"session '%s' was never pushed completely: sbsync start %s %s goes on with "
			"it, sbsync rm %s forgets it",
			s->name, s->pairs[0].local, s->pairs[0].remote, s->name);
	if (s->paused && reason != SB_REASON_STOP && !opts->dry_run)
		return sb_fail(err, SB_E_STATE, "session '%s' is paused: sbsync resume %s", s->name,
			s->name);
	if (reason == SB_REASON_PUSH && s->state == SB_SESSION_UNSYNCED)
		return sb_fail(err, SB_E_STATE,
			"session '%s' has not been synced back yet: sbsync sync %s", s->name,
			s->name);
	sb_session_use_route(s, &o);
	if (reason != SB_REASON_CRASH && !opts->dry_run)
		(void)sb_session_beat(s, opts->state_dir, NULL);
	r = sb_session_policies_make(s, policy, &policies, err);
	if (r == 0)
		r = run_pairs(&pass, err);
	sb_session_policies_free(&policies);
	if (opts->dry_run)
		return r;
	note_outcome(s, reason, r, err);
	saved = sb_session_save(h->dirfd, s, r == 0 ? err : NULL);
	sb_session_log(h->dirfd, reasons[reason], r, err, res);
	return r < 0 ? r : saved;
}

int
sb_session_sync(struct sb_session *s, enum sb_session_reason reason,
	const struct sb_sync_opts *opts, enum sb_session_conflict policy,
	struct sb_sync_result *res, struct sb_error *err)
{
	struct sb_session_held h;
	struct sb_session now;
	int r = sb_session_hold(opts->state_dir, s->name, false, &h, err);

	memset(res, 0, sizeof *res);
	if (r < 0)
		return r;
	/* What another process did since it was loaded counts. */
	r = sb_session_load(opts->state_dir, s->name, NULL, &now, err);
	if (r == 0) {
		sb_session_free(s);
		*s = now;
		r = sync_held(&h, s, reason, opts, policy, res, err);
	}
	sb_session_let_go(&h);
	return r;
}

static int
add_pair(struct sb_session *s, const char *local, const char *remote, struct sb_error *err)
{
	struct sb_session_pair *v = realloc(s->pairs, (s->n_pairs + 1) * sizeof *v), *p;
	struct stat st;

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	s->pairs = v;
	p = &v[s->n_pairs++];
	memset(p, 0, sizeof *p);
	p->local = sb_endpoint_absolute(local, err);
	if (!p->local)
		return err ? err->code : SB_E_SYS;
	if (stat(p->local, &st) < 0)
		return sb_fail_errno(err, "%s", p->local);
	if (!S_ISDIR(st.st_mode))
		return sb_fail(err, SB_E_INVAL, "%s is not a directory", p->local);
	p->remote = strdup(remote);
	if (!p->remote)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	return sb_random(p->id, sizeof p->id, err);
}

static bool
overlap(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);

	return (strncmp(a, b, n) == 0 && (!b[n] || b[n] == '/')) ||
		(strncmp(a, b, m) == 0 && (!a[m] || a[m] == '/'));
}

/* "LOCAL:REMOTE-PATH" becomes a pair on the same host as the first. */
static int
add_also(struct sb_session *s, const char *text, struct sb_error *err)
{
	const char *colon = strrchr(text, ':');
	sb_auto(sb_endpoint) struct sb_endpoint first = { 0 };
	sb_autofree char *local = NULL, *remote = NULL;
	int r;

	if (!colon || colon == text || !colon[1])
		return sb_fail(err, SB_E_USAGE, "--also %s: write LOCAL:REMOTE-PATH", text);
	r = sb_endpoint_parse(s->pairs[0].remote, &first, err);
	if (r < 0)
		return r;
	local = strndup(text, (size_t)(colon - text));
	if (first.kind == SB_ENDPOINT_LOCAL)
		remote = strdup(colon + 1);
	else
		remote = sb_str_printf("ssh://%s%s%s:%d/%s%s", first.user ? first.user : "",
			first.user ? "@" : "", first.host, first.port ? first.port : 22,
			colon[1] == '/' ? "" : "~/", colon[1] == '/' ? colon + 2 : colon + 1);
	if (!local || !remote)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	return add_pair(s, local, remote, err);
}

static int
make_name(struct sb_session *s, const char *wanted, struct sb_error *err)
{
	const char *leaf = strrchr(s->pairs[0].local, '/');
	char *p;

	s->name = wanted ? strdup(wanted) : strndup(leaf && leaf[1] ? leaf + 1 : "root", 48);
	if (!s->name)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	if (wanted && !sb_session_name_ok(wanted))
		return sb_fail(err, SB_E_USAGE,
			"'%s' is not a session name: use letters, digits, '-', '_' and '.'",
			wanted);
	for (p = s->name; !wanted && *p; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.",
			    *p) ||
			(p == s->name && (*p == '.' || *p == '-')))
			*p = '_';
	return 0;
}

/* A local remote path is kept absolute: later commands run elsewhere. */
static int
settle_remote(const char *remote, char **out, struct sb_error *err)
{
	sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };
	int r = sb_endpoint_parse(remote, &e, err);

	if (r == 0)
		r = sb_endpoint_check_path(&e, remote, err);
	if (r < 0)
		return r;
	*out = e.kind == SB_ENDPOINT_LOCAL ? sb_endpoint_absolute(e.path, err) : strdup(remote);
	return *out ? 0 : err && err->code ? err->code : SB_E_NOMEM;
}

static int
describe(const char *local, const char *remote, const struct sb_session_start *how,
	struct sb_session *s, struct sb_error *err)
{
	sb_autofree char *there = NULL;
	int r = settle_remote(remote, &there, err);

	if (r == 0)
		r = add_pair(s, local, there, err);
	for (size_t i = 0; r == 0 && how->also && how->also[i]; i++)
		r = add_also(s, how->also[i], err);
	for (size_t i = 0; r == 0 && i < s->n_pairs; i++)
		for (size_t k = 0; k < s->n_pairs; k++)
			if ((i != k && overlap(s->pairs[i].local, s->pairs[k].local)) ||
				(s->pairs[k].remote[0] == '/' &&
					overlap(s->pairs[i].local, s->pairs[k].remote)))
				return sb_fail(err, SB_E_INVAL, "%s and %s lie inside each other",
					s->pairs[i].local,
					i != k ? s->pairs[k].local : s->pairs[k].remote);
	if (r == 0)
		r = make_name(s, how->name, err);
	if (r == 0)
		r = sb_random(s->identity, sizeof s->identity, err);
	s->created = time(NULL);
	s->owner_pid = how->owner_pid == SB_SESSION_NO_OWNER ? 0 :
		how->owner_pid                               ? how->owner_pid :
							       getppid();
	s->owner_start = sb_session_proc_start(s->owner_pid);
	s->state = SB_SESSION_STARTING;
	return r;
}

/*
 * The same roots as those of a session that ended, or never got through its start: it goes on, with
 * its identity, its base and what else is known about the roots.
 */
static bool
goes_on(const struct sb_session *old, struct sb_session *s)
{
	if (old->n_pairs != s->n_pairs)
		return false;
	for (size_t i = 0; i < s->n_pairs; i++)
		if (strcmp(old->pairs[i].local, s->pairs[i].local) != 0 ||
			strcmp(old->pairs[i].remote, s->pairs[i].remote) != 0)
			return false;
	for (size_t i = 0; i < s->n_pairs; i++)
		memcpy(s->pairs[i].id, old->pairs[i].id, sizeof s->pairs[i].id);
	memcpy(s->identity, old->identity, sizeof s->identity);
	return true;
}

/*
 * One of this name: those that ended go on when they have the same roots, else they make room;
 * others are in the way.
 */
static int
take_name(struct sb_session *s, const struct sb_sync_opts *opts, const char *wanted,
	struct sb_error *err)
{
	for (int n = 2; n < 1000; n++) {
		sb_auto(sb_session) struct sb_session old = { 0 };
		struct sb_error e = { 0 };
		char *next;
		int r = sb_session_load(opts->state_dir, s->name, NULL, &old, &e);

		if (r == SB_E_NOTFOUND)
			return 0;
		if (r == 0 &&
			(old.state == SB_SESSION_STOPPED || old.state == SB_SESSION_STARTING) &&
			goes_on(&old, s))
			return 0;
		if (r == 0 && old.state == SB_SESSION_STOPPED)
			return sb_session_remove(&old, opts->state_dir, false, err);
		if (r == 0 && old.state == SB_SESSION_STARTING &&
			strcmp(old.pairs[0].local, s->pairs[0].local) == 0 &&
			strcmp(old.pairs[0].remote, s->pairs[0].remote) == 0)
			return sb_session_remove(&old, opts->state_dir, true, err);
		if (wanted)
			return sb_fail(err, SB_E_EXISTS,
				"a session '%s' is open: stop it, or choose another --name",
				s->name);
		next = sb_str_printf("%.*s-%d",
			(int)strcspn(s->name, "\n") > 48 ? 48 : (int)strlen(s->name), s->name, n);
		if (!next)
			return sb_fail(err, SB_E_NOMEM, "session: out of memory");
		free(s->name);
		s->name = next;
	}
	return sb_fail(err, SB_E_EXISTS, "too many sessions are called '%s': choose a --name",
		s->name);
}

int
sb_session_start(const char *local, const char *remote, const struct sb_session_start *how,
	const struct sb_sync_opts *opts, enum sb_session_conflict policy, struct sb_session *out,
	struct sb_sync_result *res, struct sb_error *err)
{
	sb_auto(sb_session) struct sb_session s = { 0 };
	struct sb_session_held h = { -1, -1 };
	struct sb_session_policies policies = { 0 };
	struct sb_session_pass pass = { .s = &s,
		.o = opts,
		.direction = SB_TO_RUNTIME,
		.policies = &policies,
		.first = true,
		.stamp = sb_session_stamp(),
		.res = res };
	bool held;
	int r;

	memset(res, 0, sizeof *res);
	res->direction = "to_runtime";
	res->reason = "start";
	r = describe(local, remote, how, &s, err);
	s.conflict = policy == SB_SESSION_AS_STARTED ? SB_SESSION_KEEP_BOTH : policy;
	for (size_t i = 0; r == 0 && how->conflict_rules && how->conflict_rules[i]; i++)
		r = sb_session_take_rule(&s, how->conflict_rules[i], err);
	for (size_t i = 0; r == 0 && how->labels && how->labels[i]; i++)
		r = sb_session_set_label(&s, how->labels[i], err);
	if (r == 0)
		r = sb_session_policies_make(&s, policy, &policies, err);
	if (r == 0)
		r = keep_route(&s, opts, err);
	if (r == 0)
		r = take_name(&s, opts, how->name, err);
	if (r == 0)
		r = sb_session_hold(opts->state_dir, s.name, true, &h, err);
	if (r == 0)
		r = sb_session_save(h.dirfd, &s, err);
	if (r == 0) {
		(void)sb_session_beat(&s, opts->state_dir, NULL);
		pass.dirfd = h.dirfd;
		r = run_pairs(&pass, err);
		set_error(&s, r, err);
		if (r == 0) {
			s.state = SB_SESSION_ACTIVE;
			s.last_sync = time(NULL);
		}
		if (sb_session_save(h.dirfd, &s, r == 0 ? err : NULL) < 0 && r == 0)
			r = err ? err->code : SB_E_SYS;
		sb_session_log(h.dirfd, "start", r, err, res);
	}
	held = h.dirfd >= 0;
	sb_session_let_go(&h);
	/* Nothing ever went over there: there is nothing to go on with. */
	if (r < 0 && held && !res->bytes_wire_up && !res->bytes_wire_down)
		(void)sb_session_remove(&s, opts->state_dir, true, NULL);
	sb_session_policies_free(&policies);
	if (r == 0 && out) {
		*out = s;
		memset(&s, 0, sizeof s);
	}
	return r;
}

/* Whether and why one session is left alone by a recovery; NULL: it is due. */
static const char *
not_due(const struct sb_session *s, bool now)
{
	if (s->state == SB_SESSION_STOPPED || s->state == SB_SESSION_STARTING)
		return "nothing";
	if (s->paused)
		return "paused";
	if (sb_session_owned(s))
		return "owned";
	/*
	 * A time that is further away than any pause was told by a clock that has been set back
	 * since.
	 */
	return !now && s->next_try > time(NULL) && s->next_try <= time(NULL) + BACKOFF_MAX ?
		"later" :
		NULL;
}

/*
 * The word for what a recovery came to. One whose work was brought before is served until it is
 * stopped; that it cannot be reached any more is no failure then.
 */
static const char *
outcome(bool again, int code, const struct sb_sync_result *res)
{
	if (code < 0)
		return again &&
				(code == SB_E_CONNECT || code == SB_E_AUTH ||
					code == SB_E_HOSTKEY) ?
			"away" :
			"failed";
	return again && !res->files_synced && !res->files_deleted && !res->files_moved &&
			!res->conflicts.n ?
		"nothing" :
		"done";
}

static int
recover_one(struct sb_session *s, bool now, const struct sb_sync_opts *opts, sb_recover_fn fn,
	void *arg)
{
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	struct sb_session_held h;
	const char *why = not_due(s, now);
	bool again = false;
	int r = 0;

	if (why) {
		fn(s, why, &res, &err, arg);
		return 0;
	}
	r = sb_session_hold(opts->state_dir, s->name, false, &h, &err);
	if (r == SB_E_LOCKED) {
		fn(s, "busy", &res, &err, arg);
		return 0;
	}
	if (r == 0) {
		struct sb_session fresh = { 0 };

		/* Whoever held it a moment ago may have done the work. */
		r = sb_session_load(opts->state_dir, s->name, NULL, &fresh, &err);
		if (r == 0) {
			sb_session_free(s);
			*s = fresh;
			why = not_due(s, now);
		}
		if (r < 0 || why) {
			sb_session_let_go(&h);
			fn(s, r < 0 ? "failed" : why, &res, &err, arg);
			return r < 0 ? 1 : 0;
		}
		again = s->state == SB_SESSION_ORPHANED;
		r = sync_held(&h, s, SB_REASON_CRASH, opts, SB_SESSION_AS_STARTED, &res, &err);
		sb_session_let_go(&h);
	}
	why = outcome(again, r, &res);
	fn(s, why, &res, &err, arg);
	sb_sync_result_free(&res);
	return strcmp(why, "failed") == 0;
}

/* Timers may start a recovery while a long one is under way: the second has nothing to do. */
static int
lock_recovery(const char *state_dir, struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	sb_autofree char *path = dir ? sb_str_printf("%s/recover.lock", dir) : NULL;
	int fd, r;

	if (!path)
		return err && err->code ? err->code : SB_E_NOMEM;
	r = sb_file_mkdirs(dir, 0700, err);
	if (r < 0)
		return r;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sb_fail_errno(err, "open %s", path);
	r = sb_file_lock(fd, 0, err);
	if (r < 0) {
		(void)close(fd);
		return r == SB_E_LOCKED ?
			sb_fail(err, r, "another recovery of all sessions is under way") :
			r;
	}
	return fd;
}

int
sb_session_recover(const char *name, bool now, const struct sb_sync_opts *opts, sb_recover_fn fn,
	void *arg, struct sb_error *err)
{
	sb_auto(sb_session_list) struct sb_session_list all = { 0 };
	sb_autoclose int lock = -1;
	int r, failed = 0;

	if (name) {
		all.v = calloc(1, sizeof *all.v);
		if (!all.v)
			return sb_fail(err, SB_E_NOMEM, "sessions: out of memory");
		r = sb_session_load(opts->state_dir, name, NULL, &all.v[0], err);
		all.n = r == 0;
	} else {
		lock = lock_recovery(opts->state_dir, err);
		r = lock < 0 ? lock : sb_session_load_all(opts->state_dir, &all, err);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < all.bad.n; i++) {
		struct sb_sync_result none = { 0 };
		struct sb_error why = { 0 };

		(void)sb_fail(&why, SB_E_CORRUPT, "%s", all.bad.v[i]);
		fn(NULL, "failed", &none, &why, arg);
		failed++;
	}
	for (size_t i = 0; i < all.n; i++) {
		r = sb_check_alive(opts->cancel, SB_NEVER, "recover", err);
		if (r < 0)
			return r;
		failed += recover_one(&all.v[i], now, opts, fn, arg);
	}
	return failed;
}

int
sb_session_remove(struct sb_session *s, const char *state_dir, bool discard, struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	sb_autofree char *sessions = dir ? sb_str_printf("%s/sessions", dir) : NULL;
	sb_autofree char *pairs = dir ? sb_str_printf("%s/pairs", dir) : NULL;
	sb_autoclose int fd = -1, pfd = -1;
	struct sb_session_held h;
	int r;

	if (!sessions || !pairs)
		return err && err->code ? err->code : SB_E_NOMEM;
	/* Nobody was told that one of these is there, so nobody worked in it. */
	if (s->state != SB_SESSION_STOPPED && s->state != SB_SESSION_STARTING && !discard)
		return sb_fail(err, SB_E_STATE,
			"session '%s' is %s: 'sbsync stop %s' brings its work back first; "
			"--discard forgets it (what changed in "
			"%s since the last sync stays only there)",
			s->name, sb_session_state_name(s->state), s->name, s->pairs[0].remote);
	r = sb_session_hold(state_dir, s->name, false, &h, err);
	if (r < 0)
		return r;
	fd = open(sessions, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	pfd = open(pairs, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; pfd >= 0 && i < s->n_pairs; i++) {
		char hex[33], name[48];

		(void)snprintf(name, sizeof name, "%s-local", sb_str_hex(s->pairs[i].id, 16, hex));
		(void)sb_path_remove_tree(pfd, name, NULL);
		(void)snprintf(name, sizeof name, "%s-shadow", hex);
		(void)sb_path_remove_tree(pfd, name, NULL);
	}
	r = fd < 0 ? sb_fail_errno(err, "open %s", sessions) :
		     sb_path_remove_tree(fd, s->name, err);
	sb_session_let_go(&h);
	return r;
}
