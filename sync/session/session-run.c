/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-run.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/file.h>
#include <base/strlist.h>
#include <sync/wire/endpoint.h>
#include <sync/plan/guard.h>
#include <sync/run/mirror-int.h>
#include <sync/session/session-conflicts.h>
#include <sync/session/session-resolve.h>
#include <sync/session/session-undo.h>
#include <sync/tree/diff.h>
#include <sync/remote/exchange.h>

/* One pair being synced. */
struct pair_run {
	struct sb_session_run *run;
	const struct sb_session_pair *p;
	char base_name[32];
	char rules_name[32];
	struct mirror m;
	struct sb_manifest *base;
	struct sb_recall_tag base_tag;
	struct sb_reconciled rec;
	struct sb_plan local_plan, runtime_plan;
	struct sb_manifest *peer_next; /* the runtime's tree as it will be */
	struct sb_stage *stage;
	struct sb_strlist left; /* paths that were left alone: their base entry stays */
	struct sb_diff forward; /* a copy of what is done here, for undo */
	size_t k;
	bool known;         /* the far side's tree is the one both remembered last time */
	bool last;          /* no other look at files that keep changing follows */
	size_t n_conflicts; /* in the result before this pair */
};

static int
load_rules(struct pair_run *x, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	if (x->run->first) {
		x->m.rules = sb_rules_new(err);
		return x->m.rules ? mirror_add_rules(x->run->o, x->m.rules, err) : SB_E_NOMEM;
	}
	r = sb_file_read(x->run->dirfd, x->rules_name, 16u << 20, &b, err);
	if (r < 0)
		return sb_wrap(err, r, "the session's exclude rules");
	x->m.rules = sb_rules_decode(b.data, b.len, err);
	x->m.frozen = true;
	return x->m.rules ? 0 : err ? err->code : SB_E_CORRUPT;
}

static int
freeze_rules(struct pair_run *x, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	if (!x->run->first)
		return 0;
	sb_buf_init(&b, 16u << 20);
	r = sb_rules_encode(x->m.rules, &b, err);
	return r < 0 ? r : sb_file_replace(x->run->dirfd, x->rules_name, b.data, b.len, 0600, err);
}

static int
load_base(struct pair_run *x, struct sb_error *err)
{
	struct sb_error e = { 0 };

	x->base = sb_recall_load(x->m.local->recall, x->run->dirfd, x->base_name, &x->base_tag, &e);
	if (x->base)
		return 0;
	if (e.code == SB_E_VERSION)
		return sb_fail(err, e.code,
			"the base of session '%s' was made by a newer sbsync: use that one",
			x->run->s->name);
	/* A base that is there but cannot be read now is no reason to see conflicts everywhere. */
	if (e.code != SB_E_NOTFOUND && e.code != SB_E_CORRUPT) {
		if (err)
			*err = e;
		return e.code;
	}
	if (e.code != SB_E_NOTFOUND)
		sb_log(&x->run->o->log, SB_LOG_WARN, "session",
			"%s: the base cannot be used, both versions are kept where they differ",
			e.msg);
	x->base = sb_manifest_new(err);
	return x->base ? sb_manifest_finish(x->base, err) : SB_E_NOMEM;
}

static int
check_identity(const struct pair_run *x, struct sb_error *err)
{
	const struct sb_session *s = x->run->s;

	if (x->run->first || memcmp(x->m.remote.reply.identity, s->identity, 16) == 0)
		return 0;
	return sb_fail(err, SB_E_IDENTITY,
		"%s is not the sandbox this session was started with: it is %s; nothing was "
		"changed. To push "
		"there anew: sbsync rm --discard --yes %s && sbsync start --name %s %s %s",
		x->p->remote,
		x->m.remote.reply.flags & SB_SCAN_MISSING ? "gone" : "another one, or was emptied",
		s->name, s->name, x->p->local, x->p->remote);
}

static bool
recovers(const struct sb_session_run *run)
{
	return run->whole && run->whole->reason && strcmp(run->whole->reason, "crash") == 0;
}

/* The command that is under way, for messages that tell how to go on. */
static const char *
verb(const struct sb_session_run *run)
{
	return run->direction == SB_BOTH_WAYS   ? "sync" :
		run->direction == SB_TO_RUNTIME ? "start" :
		recovers(run)                   ? "recover" :
						  "stop";
}

/* An emptied side must not read as "everything was deleted". */
static int
check_emptied(const struct pair_run *x, struct sb_error *err)
{
	uint64_t base = x->base->count, l = x->m.local->scan.manifest->count,
		 r = x->m.remote.manifest->count;
	bool from = x->run->direction & SB_FROM_RUNTIME, to = x->run->direction & SB_TO_RUNTIME;

	if (base < 2 || (x->run->o->max_delete >= 0 && (uint64_t)x->run->o->max_delete >= base))
		return 0;
	if ((from && !r && l) || (to && !l && r))
		return sb_fail(err, SB_E_BRAKE,
			"%s was emptied: %llu entries were there at the last sync; nothing was "
			"changed. If that is "
			"meant: sbsync %s --max-delete %llu %s",
			from && !r && l ? x->p->remote : x->p->local, (unsigned long long)base,
			verb(x->run), (unsigned long long)base, x->run->s->name);
	return 0;
}

static int
tell_changes(struct pair_run *x, struct sb_error *err)
{
	struct sb_sync_result *res = x->run->res;
	int r = 0;

	for (size_t i = 0; r == 0 && i < x->rec.n_conflicts; i++) {
		const struct sb_conflict *c = &x->rec.conflicts[i];

		r = sb_sync_result_note(c->kind == SB_CONFLICT_REVIVED ? &res->skipped :
									 &res->conflicts,
			c->path, c->saved_as, sb_reconcile_conflict_text(c->kind), err);
	}
	for (size_t i = 0; r == 0 && i < x->rec.local.n; i++) {
		const struct sb_change *c = &x->rec.local.v[i];

		if (c->del || c->entry.type == SB_ENTRY_DIR)
			continue;
		if (c->entry.type == SB_ENTRY_LINK && sb_guard_escapes(c->path, c->target))
			r = sb_sync_result_note(&res->escaping_links, c->path, NULL,
				"leads out of the root", err);
		else if (sb_guard_path(c->path, false) == SB_GUARD_AUTOEXEC)
			r = sb_sync_result_note(&res->auto_exec, c->path, NULL, "may run by itself",
				err);
	}
	return r;
}

static int
reconcile(struct pair_run *x, struct sb_error *err)
{
	struct sb_reconcile_opts o = SB_RECONCILE_OPTS_INIT;
	struct sb_scan *l = &x->m.local->scan;
	int r;

	o.direction = x->run->direction;
	o.policy_of = sb_session_policy_at;
	o.arg = (void *)x->run->policies;
	o.label = x->run->s->name;
	o.mode_mask = mirror_mode_mask();
	o.trust_git_config = x->run->o->trust_git_config;
	o.no_escaping_links = x->run->o->no_escaping_links;
	o.unseen[0] = l->skipped;
	o.n_unseen[0] = l->n_skipped;
	o.unseen[1] = x->m.remote.skipped;
	o.n_unseen[1] = x->m.remote.n_skipped;
	r = sb_reconcile_trees(x->base, l->manifest, x->m.remote.manifest, &o, &x->rec, err);
	return r < 0 ? r : tell_changes(x, err);
}

/* The plan takes the difference over, and may leave out what moves as a whole. */
static int
copy_diff(const struct sb_diff *from, struct sb_diff *to, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < from->n; i++) {
		const struct sb_change *c = &from->v[i];

		r = sb_diff_add(to, c->path, c->del, c->del ? NULL : &c->entry, c->target,
			c->leader, err);
	}
	return r;
}

/* The brake's words, with the command that goes on. */
static int
brake(const struct pair_run *x, struct sb_error *err)
{
	uint64_t l = x->m.local->scan.manifest->count, r = x->m.remote.manifest->count;
	char old[SB_ERROR_MSG_MAX];

	if (!err || x->run->first)
		return SB_E_BRAKE;
	memcpy(old, err->msg, sizeof old);
	return sb_fail(err, SB_E_BRAKE,
		"%.*s; nothing was changed. If that is meant: sbsync %s --max-delete %llu %s",
		(int)strcspn(old, ";"), old, verb(x->run), (unsigned long long)(l > r ? l : r),
		x->run->s->name);
}

/* Plans for both sides, with their brakes, before anything is touched. */
static int
make_plans(struct pair_run *x, struct sb_error *err)
{
	int r = sb_stage_find(x->m.local->readonly ? -1 : x->m.local->rootfd, x->run->o->cancel,
		&x->stage, err);

	if (r < 0)
		return r;
	sb_retry_progress(x->run->retry, x->m.remote.n_have + x->stage->n_left);
	if (!x->run->o->dry_run)
		r = copy_diff(&x->rec.local, &x->forward, err);
	if (r < 0)
		return r;
	/* Only what changes needs to be copied. */
	if (x->rec.runtime.n || x->run->first || !x->known) {
		x->peer_next = sb_manifest_copy(x->m.remote.manifest, err);
		if (!x->peer_next)
			return err ? err->code : SB_E_NOMEM;
	}
	if (x->rec.runtime.n)
		r = sb_diff_apply(x->peer_next, &x->rec.runtime, err);
	if (r == 0)
		r = mirror_plan_pull(&x->m, &x->rec.local, x->stage, err);
	x->local_plan = x->m.plan;
	memset(&x->m.plan, 0, sizeof x->m.plan);
	if (r == 0)
		r = mirror_plan_push(&x->m, &x->rec.runtime, err);
	x->runtime_plan = x->m.plan;
	memset(&x->m.plan, 0, sizeof x->m.plan);
	return r == SB_E_BRAKE ? brake(x, err) : r;
}

static int
keep_left(struct pair_run *x, const struct sb_commit_result *res, struct sb_error *err)
{
	for (size_t i = 0; i < res->n_left; i++)
		sb_strlist_add(&x->left, res->left[i].path);
	return sb_strlist_check(&x->left, err);
}

/* What was not brought here, as far as it is known: the first of it, and how many there are. */
struct missing {
	const char *path, *why;
	size_t n;
};

static void
miss(struct missing *m, const char *path, const char *why)
{
	if (!m->n++) {
		m->path = path;
		m->why = why;
	}
}

/*
 * The sandbox may go after a sync back: what could not be brought here, for whatever reason, must
 * not read as done. `res` is NULL when there was nothing to bring.
 */
static int
check_brought(const struct pair_run *x, const struct sb_commit_result *res, struct sb_error *err)
{
	struct missing m = { 0 };

	if (x->run->direction != SB_FROM_RUNTIME ||
		(!x->last && sb_sync_result_has_unstable(x->run->res)))
		return 0;
	for (size_t i = 0; res && i < res->n_left; i++)
		if (res->left[i].why != SB_WHY_NOTEMPTY)
			miss(&m, res->left[i].path, sb_proto_why_text(res->left[i].why));
	for (size_t i = 0; i < x->m.remote.n_skipped; i++)
		if (sb_scan_skip_is_loss(x->m.remote.skipped[i].reason))
			miss(&m, x->m.remote.skipped[i].path,
				sb_scan_skip_text(x->m.remote.skipped[i].reason));
	if (!m.n)
		return 0;
	return sb_fail(err, SB_E_STATE, "%.300s: %s%s; the rest is synced back, run it again",
		m.path, m.why, m.n > 1 ? ", and others" : "");
}

static int
pull(struct pair_run *x, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	int r;

	if (!x->local_plan.diff.n)
		return check_brought(x, NULL, err);
	r = sb_session_undo_prepare(x->run->dirfd, x->k, x->run->stamp, x->m.local, &x->forward,
		err);
	if (r < 0)
		return r;
	x->m.plan = x->local_plan;
	memset(&x->local_plan, 0, sizeof x->local_plan);
	x->m.rec = &x->rec;
	x->m.keep = true;
	r = mirror_receive_plan(&x->m, sb_steal(&x->stage), &res, err);
	sb_session_undo_settle(x->run->dirfd, x->k, r == 0);
	x->m.rec = NULL;
	sb_plan_free(&x->m.plan);
	if (r == 0)
		r = check_brought(x, &res, err);
	return r < 0 ? r : keep_left(x, &res, err);
}

static int
push(struct pair_run *x, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	int r;

	if (!x->runtime_plan.diff.n && !x->run->first) {
		/*
		 * Its tree is as it was scanned: worth remembering when it differs from what both
		 * knew.
		 */
		if (x->known || !sb_digest_known(&x->m.remote.reply.id) ||
			(x->m.remote.reply.flags & SB_SCAN_LAZY))
			return 0;
		r = sb_wire_send(x->m.link->w, SB_MSG_REMEMBER, NULL, 0, err);
		if (r == 0)
			r = sb_wire_flush(x->m.link->w, err);
		return r < 0 ? r :
			       sb_replica_save_base(x->m.local, sb_steal(&x->peer_next),
				       &x->m.rules_digest, err);
	}
	x->m.plan = x->runtime_plan;
	memset(&x->runtime_plan, 0, sizeof x->runtime_plan);
	r = mirror_send_plan(&x->m, &res, err);
	sb_plan_free(&x->m.plan);
	if (r == 0)
		r = keep_left(x, &res, err);
	if (r == 0 && x->m.local->scan.unhashed) {
		/* A first push: the digests are known now. */
		x->m.local->scan.unhashed = 0;
		r = sb_manifest_finish(x->m.local->scan.manifest, err);
		sb_manifest_free(x->peer_next);
		x->peer_next = r < 0 ? NULL : sb_manifest_copy(x->m.local->scan.manifest, err);
	}
	if (r < 0)
		return r;
	if (!res.n_left && x->peer_next && sb_digest_eq(&x->peer_next->id, &res.id))
		return sb_replica_save_base(x->m.local, sb_steal(&x->peer_next), &x->m.rules_digest,
			err);
	return 0;
}

struct graft {
	struct sb_manifest *m;
	struct sb_error *err;
};

static int
graft(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct graft *g = arg;
	struct sb_entry c = *e;

	(void)len;
	c.link = 0;
	return sb_manifest_put(g->m, path, &c, e->type == SB_ENTRY_LINK ? sb_entry_target(e) : NULL,
		       g->err) ?
		0 :
		SB_E_NOMEM;
}

/* The entry of the old base stays at this path. */
static int
revert(struct sb_manifest *m, const struct sb_manifest *base, const char *path,
	struct sb_error *err)
{
	const struct sb_entry *old = sb_manifest_find(base, path);
	struct graft g = { m, err };
	sb_autofree char *parent = NULL;
	char *slash;

	(void)sb_manifest_remove(m, path);
	if (!old)
		return 0;
	parent = strdup(path);
	slash = parent ? strrchr(parent, '/') : NULL;
	if (slash) {
		*slash = 0;
		/*
		 * Its directory may be gone on the side the base is taken from: then there is
		 * nothing to hang it on.
		 */
		if (!sb_manifest_find(m, parent))
			return 0;
	}
	if (graft(path, strlen(path), (struct sb_entry *)old, &g) < 0)
		return SB_E_NOMEM;
	return old->type == SB_ENTRY_DIR ? sb_manifest_walk_dir(old->dir, path, graft, &g) : 0;
}

static int
record_base(struct pair_run *x, struct sb_error *err)
{
	const struct sb_manifest *from = x->run->direction == SB_FROM_RUNTIME ?
		x->m.remote.manifest :
		x->m.local->scan.manifest;
	sb_auto(sb_manifest) struct sb_manifest *next = NULL;
	int r;

	if (!x->rec.n_unsettled && !x->left.n && sb_digest_eq(&from->id, &x->base->id))
		return 0;
	next = sb_manifest_copy(from, err);
	r = next ? 0 : SB_E_NOMEM;
	for (size_t i = 0; r == 0 && i < x->rec.n_unsettled; i++)
		r = revert(next, x->base, x->rec.unsettled[i], err);
	for (size_t i = 0; r == 0 && i < x->left.n; i++)
		r = revert(next, x->base, x->left.v[i], err);
	if (r == 0)
		r = sb_manifest_finish(next, err);
	if (r == 0 && !sb_digest_eq(&next->id, &x->base->id))
		r = sb_manifest_save(next, false, true, x->run->dirfd, x->base_name, err);
	return r;
}

/* A note of this pair that is one no more. */
static void
drop_note(struct pair_run *x, const char *path)
{
	struct sb_sync_notes *l = &x->run->res->conflicts;

	for (size_t i = x->n_conflicts; i < l->n; i++)
		if (strcmp(l->v[i].path, path) == 0) {
			free(l->v[i].path);
			free(l->v[i].saved_as);
			memmove(&l->v[i], &l->v[i + 1], (l->n - i - 1) * sizeof *l->v);
			l->n--;
			return;
		}
}

/* The conflicts that may be merged, now that both versions are here. */
static size_t
mergeable(struct pair_run *x, struct sb_session_row *rows)
{
	size_t n = 0;

	for (size_t i = 0; i < x->rec.n_conflicts; i++) {
		const struct sb_conflict *c = &x->rec.conflicts[i];
		const struct sb_entry *b = sb_manifest_find(x->base, c->path);

		if (c->kind != SB_CONFLICT_EDIT || !c->saved_as || !b || b->type != SB_ENTRY_FILE ||
			sb_session_policy_at(c->path, (void *)x->run->policies) != SB_POLICY_MERGE)
			continue;
		rows[n++] = (struct sb_session_row){ .path = c->path,
			.saved_as = c->saved_as,
			.base = b->digest,
			.base_mode = b->mode };
	}
	return n;
}

/*
 * --conflict merge: both versions are kept first, then those that merge cleanly become one. Returns
 * how many did.
 */
static int
merge_conflicts(struct pair_run *x, struct sb_error *err)
{
	struct sb_session_local l = { .s = x->run->s,
		.o = x->run->o,
		.dirfd = x->run->dirfd,
		.pair = x->k,
		.stamp = x->run->stamp,
		.rep = x->m.local,
		.res = x->run->res };
	sb_autofree struct sb_session_row *rows = calloc(x->rec.n_conflicts + 1, sizeof *rows);
	sb_autofree bool *done = calloc(x->rec.n_conflicts + 1, sizeof *done);
	size_t n;
	int r, count = 0;

	if (!(x->run->direction & SB_FROM_RUNTIME) || !x->rec.n_conflicts)
		return 0;
	if (!rows || !done)
		return sb_fail(err, SB_E_NOMEM, "merge: out of memory");
	n = mergeable(x, rows);
	r = n ? sb_session_resolve_rows(&l, rows, n, SB_TAKE_MERGED, done, err) : 0;
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (done[i]) {
			drop_note(x, rows[i].path);
			count++;
			r = sb_sync_result_note(&x->run->res->merged, rows[i].path, NULL, "merged",
				err);
		}
	return r < 0 ? r : count;
}

static int
exchange(struct pair_run *x, struct sb_error *err)
{
	struct sb_session_run *run = x->run;
	sb_auto(sb_endpoint) struct sb_endpoint there = { 0 };
	struct sb_begin b = { .jobs = run->o->jobs };
	int r = sb_endpoint_parse(x->p->remote, &there, err);

	if (r < 0)
		return r;
	memcpy(b.pair, x->p->id, sizeof b.pair);
	memcpy(b.identity, run->s->identity, sizeof b.identity);
	b.root = there.path;
	b.flags = SB_BEGIN_SESSION | SB_BEGIN_CREATE | (run->first ? SB_BEGIN_CLAIM : 0) |
		(run->o->dry_run ? SB_BEGIN_READONLY : 0) |
		(run->o->checksum ? SB_BEGIN_CHECKSUM : 0) |
		(run->o->cross_mounts ? SB_BEGIN_CROSS : 0);
	/* The agent of the run that crashed may not have noticed yet. */
	if (recovers(run))
		b.flags |= SB_BEGIN_AGAIN;
	x->m.no_delta = run->o->no_delta;
	x->m.near = there.kind == SB_ENDPOINT_LOCAL;
	x->m.keep_all = sb_session_policies_merge(run->policies);
	r = mirror_open_local(&x->m, x->p->local, b.pair, false, run->o->dry_run, err);
	if (r == 0)
		r = mirror_scan_both(&x->m, &b, true, err);
	x->known = r == 0 && (x->m.remote.reply.flags & SB_SCAN_BASE_KNOWN) &&
		sb_digest_eq(&b.base, &x->m.remote.reply.id);
	if (r == 0)
		r = sb_sync_result_skipped(run->res, x->m.local->scan.skipped,
			x->m.local->scan.n_skipped, err);
	if (r == 0)
		r = sb_sync_result_skipped(run->res, x->m.remote.skipped, x->m.remote.n_skipped,
			err);
	return r;
}

/* A list without its end is no list: what it lacks was not deleted. */
static int
incomplete(const struct pair_run *x, int code, struct sb_error *err)
{
	char old[SB_ERROR_MSG_MAX];

	if (!err)
		return code;
	memcpy(old, err->msg, sizeof old);
	if (x->run->first)
		return sb_fail(err, code,
			"the scan of %s is incomplete: %.300s; nothing was changed. To go on: "
			"sbsync start --name %s %s %s",
			x->p->remote, old, x->run->s->name, x->p->local, x->p->remote);
	return sb_fail(err, code,
		"the scan of %s is incomplete: %.300s; nothing was changed. To go on: sbsync %s %s",
		x->p->remote, old, verb(x->run), x->run->s->name);
}

static int
run_pair(struct pair_run *x, struct sb_error *err)
{
	int r = load_rules(x, err);

	if (r == 0)
		r = exchange(x, err);
	if (r == SB_E_CLOSED || r == SB_E_PROTO || r == SB_E_TIMEOUT || r == SB_E_CORRUPT ||
		r == SB_E_PEER)
		r = incomplete(x, r, err);
	if (r == 0)
		r = check_identity(x, err);
	if (r == 0)
		r = load_base(x, err);
	if (r == 0)
		r = check_emptied(x, err);
	/*
	 * A first push into an empty place needs no digests yet; everything else compares contents.
	 */
	if (r == 0)
		r = mirror_hash_rest(&x->m, err);
	if (r == 0)
		r = reconcile(x, err);
	if (r == 0)
		r = make_plans(x, err);
	if (r < 0)
		return r;
	x->run->res->entries += x->m.local->scan.manifest->count;
	if (x->run->o->dry_run) {
		r = sb_sync_result_changes(x->run->res, &x->local_plan, x->m.local->scan.manifest,
			"local", err);
		return r < 0 ? r :
			       sb_sync_result_changes(x->run->res, &x->runtime_plan,
				       x->m.remote.manifest, "runtime", err);
	}
	r = freeze_rules(x, err);
	/*
	 * Listed first: a run that dies in between leaves no conflict that nobody knows of. What
	 * never got saved does not show.
	 */
	if (r == 0)
		sb_session_conflicts_add(x->run->dirfd, x->p->local, &x->rec, x->base);
	if (r == 0)
		r = pull(x, err);
	if (r == 0)
		r = push(x, err);
	if (r == 0)
		r = record_base(x, err);
	/* What a commit brought is in the cache already. */
	if (r == 0 && x->run->first)
		sb_replica_save_cache(x->m.local, x->m.local->scan.manifest);
	else if (r == 0)
		sb_replica_update_cache(x->m.local, x->m.local->scan.hashed_files,
			x->m.local->scan.hashed_bytes);
	return r < 0 ? r : merge_conflicts(x, err);
}

/*
 * What was loaded and is as it was, for the next turn. Nobody changes the base; the tree of the far
 * side is the one we remembered.
 */
static void
give_back(struct pair_run *x)
{
	struct sb_replica *l = x->m.local;

	sb_recall_give(l ? l->recall : NULL, &x->base_tag, x->base);
	if (x->known && !l->base)
		sb_recall_give(l->recall, &l->base_tag, sb_steal(&x->m.remote.manifest));
}

static int
run_once(struct sb_session_run *run, size_t k, bool last, struct sb_error *err)
{
	struct pair_run x = { .run = run,
		.p = &run->s->pairs[k],
		.k = k,
		.n_conflicts = run->res->conflicts.n,
		.last = last };
	int r;

	x.m.o = run->o;
	x.m.res = run->res;
	x.m.link = run->link;
	x.m.retry = run->retry;
	x.m.near_name = x.p->local;
	x.m.far_name = x.p->remote;
	x.m.phase_start = sb_now_ms();
	(void)snprintf(x.base_name, sizeof x.base_name, "root%zu.base", k);
	(void)snprintf(x.rules_name, sizeof x.rules_name, "root%zu.rules", k);
	r = run_pair(&x, err);
	mirror_phase(&x.m, SB_PHASE_DONE);
	sb_plan_free(&x.local_plan);
	sb_plan_free(&x.runtime_plan);
	sb_plan_free(&x.m.plan);
	sb_reconcile_free(&x.rec);
	give_back(&x);
	sb_manifest_free(x.peer_next);
	sb_stage_free(x.stage);
	sb_strlist_free(&x.left);
	sb_diff_free(&x.forward);
	sb_exchange_free(&x.m.remote);
	sb_replica_free(x.m.local);
	sb_rules_free(x.m.rules);
	free(x.m.source);
	return r;
}

int
sb_session_run_pair(struct sb_session_run *run, size_t k, struct sb_error *err)
{
	int r = run_once(run, k, false, err);
	bool unstable = r >= 0 && !run->o->dry_run && sb_sync_result_has_unstable(run->res);

	/*
	 * What was merged here has to go there; files that changed while they were read may be calm
	 * by now.
	 */
	if (unstable || (r > 0 && (run->direction & SB_TO_RUNTIME))) {
		sb_sync_result_look_again(run->res);
		r = run_once(run, k, true, err);
	}
	return r < 0 ? r : 0;
}
