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
#include <base/work.h>
#include <sync/wire/endpoint.h>
#include <sync/plan/guard.h>
#include <sync/replica/commit.h>
#include <sync/run/run.h>
#include <sync/run/run-attrs.h>
#include <sync/run/run-guard.h>
#include <sync/run/sync-result.h>
#include <sync/session/session-base.h>
#include <sync/session/session-brake.h>
#include <sync/session/session-conflicts.h>
#include <sync/session/session-resolve.h>
#include <sync/session/session-rules.h>
#include <sync/session/session-underway.h>
#include <sync/session/session-undo.h>
#include <sync/session/session-unsaved.h>
#include <sync/tree/diff.h>
#include <sync/remote/exchange.h>

/* One pair being synced. */
struct pair_run {
	struct sb_session_pass *pass;
	const struct sb_session_pair *p;
	char base_name[32];
	char rules_name[32];
	struct sb_run run;
	struct sb_session_rules rules; /* not of a first run; its rules are those of `run` */
	struct sb_manifest *base;
	struct sb_recall_tag base_tag;
	struct sb_reconciled rec;
	struct sb_plan local_plan, runtime_plan;
	struct sb_manifest *far_next; /* the runtime's tree as it will be */
	struct sb_stage *stage;
	struct sb_strlist left; /* paths that were left alone: their base entry stays */
	struct sb_diff forward; /* a copy of what is done here, for undo */
	struct sb_diff there;   /* of what is done there, when there are conflicts */
	struct sb_session_brake brake;
	size_t k;
	struct sb_buf underway; /* what this run brings to either side, for the record */
	bool recorded;          /* the base is that of this run */
	bool known;             /* the far side's tree is the one both remembered last time */
	bool last;              /* no other look at files that keep changing follows */
	size_t n_conflicts;     /* in the result before this pair */
};

static int
load_rules(struct pair_run *x, struct sb_error *err)
{
	int r;

	if (x->pass->first) {
		x->run.rules = sb_rules_new(err);
		return x->run.rules ? sb_run_add_rules(x->pass->o, x->p->local, x->run.rules, err) :
				      SB_E_NOMEM;
	}
	r = sb_session_rules_for_run(x->pass->s, x->pass->dirfd, x->k, x->pass->o, &x->rules, err);
	x->run.rules = x->rules.rules;
	x->run.frozen = true;
	return r;
}

static int
freeze_rules(struct pair_run *x, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	if (!x->pass->first)
		return sb_session_rules_save(x->pass->dirfd, x->k, &x->rules, err);
	sb_buf_init(&b, 16u << 20);
	r = sb_rules_encode(x->run.rules, &b, err);
	return r < 0 ? r : sb_file_replace(x->pass->dirfd, x->rules_name, b.data, b.len, 0600, err);
}

/* The base has changed: it is not the one that was loaded. */
static int
save_base(struct pair_run *x, struct sb_error *err)
{
	x->base_tag.set = false;
	return x->pass->o->dry_run ?
		0 :
		sb_manifest_save(x->base, false, true, x->pass->dirfd, x->base_name, err);
}

/* Is there nothing that both sides are known to have in common? */
static bool
begins(const struct pair_run *x)
{
	return x->pass->first && !x->base->count;
}

/* What an earlier run brought before it ended too soon belongs into the base, first of all. */
static int
fold_earlier(struct pair_run *x, struct sb_error *err)
{
	int r = begins(x) ?
		0 :
		sb_session_underway_fold(x->pass->dirfd, x->k, x->base, x->run.local->scan.manifest,
			x->run.far.manifest, sb_run_mode_mask(), err);

	if (r > 0)
		r = save_base(x, err);
	if (r == 0 && !x->pass->o->dry_run)
		sb_session_underway_end(x->pass->dirfd, x->k);
	return r;
}

static int
load_base(struct pair_run *x, struct sb_error *err)
{
	struct sb_error e = { .code = SB_E_NOTFOUND };

	/* A start goes on where a session ended, with the same sandbox and what is in it. */
	if (!x->pass->first ||
		(memcmp(x->run.far.reply.identity, x->pass->s->identity, 16) == 0 &&
			x->run.far.manifest->count))
		x->base = sb_recall_load(x->run.local->recall, x->pass->dirfd, x->base_name,
			&x->base_tag, &e);
	if (x->base)
		return 0;
	if (e.code == SB_E_VERSION)
		return sb_fail(err, e.code,
			"the base of session '%s' was made by a newer sbsync: use that one",
			x->pass->s->name);
	/* A base that is there but cannot be read now is no reason to see conflicts everywhere. */
	if (e.code != SB_E_NOTFOUND && e.code != SB_E_CORRUPT) {
		if (err)
			*err = e;
		return e.code;
	}
	if (e.code != SB_E_NOTFOUND)
		sb_log(&x->pass->o->log, SB_LOG_WARN, "session",
			"%s: the base cannot be used, both versions are kept where they differ",
			e.msg);
	x->base = sb_manifest_new(err);
	return x->base ? sb_manifest_finish(x->base, err) : SB_E_NOMEM;
}

static int
check_identity(const struct pair_run *x, struct sb_error *err)
{
	const struct sb_session *s = x->pass->s;

	if (x->pass->first || memcmp(x->run.far.reply.identity, s->identity, 16) == 0)
		return 0;
	return sb_fail(err, SB_E_IDENTITY,
		"%s is not the sandbox this session was started with: it is %s; nothing was "
		"changed. To push "
		"there anew: sbsync rm --discard --yes %s && sbsync start --name %s %s %s",
		x->p->remote,
		x->run.far.reply.flags & SB_SCAN_MISSING ? "gone" : "another one, or was emptied",
		s->name, s->name, x->p->local, x->p->remote);
}

static bool
recovers(const struct sb_session_pass *pass)
{
	return pass->whole && pass->whole->reason && strcmp(pass->whole->reason, "crash") == 0;
}

/* The command that is under way, for messages that tell how to go on. */
static const char *
verb(const struct sb_session_pass *pass)
{
	return pass->direction == SB_BOTH_WAYS   ? "sync" :
		pass->direction == SB_TO_RUNTIME ? "start" :
		recovers(pass)                   ? "recover" :
						   "stop";
}

/* An emptied side must not read as "everything was deleted". */
static int
check_emptied(const struct pair_run *x, struct sb_error *err)
{
	uint64_t base = x->base->count, l = x->run.local->scan.manifest->count,
		 r = x->run.far.manifest->count;
	bool from = x->pass->direction & SB_FROM_RUNTIME, to = x->pass->direction & SB_TO_RUNTIME;

	if (base < 2 || (x->pass->o->max_delete >= 0 && (uint64_t)x->pass->o->max_delete >= base))
		return 0;
	if ((from && !r && l) || (to && !l && r))
		return sb_fail(err, SB_E_BRAKE,
			"%s was emptied: %llu entries were there at the last sync; nothing was "
			"changed. If that is "
			"meant: sbsync %s --max-delete %llu %s",
			from && !r && l ? x->p->remote : x->p->local, (unsigned long long)base,
			verb(x->pass), (unsigned long long)base, x->pass->s->name);
	return 0;
}

static int
tell_changes(struct pair_run *x, struct sb_error *err)
{
	struct sb_sync_result *res = x->pass->res;
	size_t told = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < x->rec.n_conflicts; i++) {
		const struct sb_conflict *c = &x->rec.conflicts[i];
		struct sb_sync_notes *l;

		l = c->kind == SB_CONFLICT_REVIVED ? &res->skipped : &res->conflicts;
		if (!x->last || !sb_sync_result_is_told(l, &told, c->path, c->saved_as))
			r = sb_sync_result_note(l, c->path, c->saved_as,
				sb_reconcile_conflict_text(c->kind), err);
	}
	for (size_t i = 0; r == 0 && i < x->rec.local.n; i++) {
		const struct sb_change *c = &x->rec.local.v[i];

		if (c->del || c->entry.type == SB_ENTRY_DIR)
			continue;
		if (c->entry.type == SB_ENTRY_LINK && sb_guard_escapes(c->path, c->target))
			r = sb_sync_result_note(&res->escaping_links, c->path, NULL,
				"leads out of the root", err);
		else if (sb_guard_path(c->path) == SB_GUARD_AUTOEXEC)
			r = sb_sync_result_note(&res->auto_exec, c->path, NULL, "may run by itself",
				err);
	}
	return r;
}

/* Did the runtime change it, while it cannot be seen here? */
static bool
is_missed(const struct pair_run *x, const char *path)
{
	for (size_t i = 0; i < x->rec.missed.n; i++)
		if (strcmp(x->rec.missed.v[i], path) == 0)
			return true;
	return false;
}

/* What could not be seen here; of a sync back, only what the runtime changed there is amiss. */
static int
tell_unseen(struct pair_run *x, struct sb_error *err)
{
	const struct sb_scan *l = &x->run.local->scan;
	int r = 0;

	if (x->pass->direction & SB_TO_RUNTIME)
		return sb_sync_result_skipped(x->pass->res, l->skipped, l->n_skipped, err);
	for (size_t i = 0; r == 0 && i < l->n_skipped; i++)
		r = is_missed(x, l->skipped[i].path) ?
			sb_sync_result_skipped(x->pass->res, &l->skipped[i], 1, err) :
			sb_sync_result_note(&x->pass->res->skipped, l->skipped[i].path, NULL,
				sb_scan_skip_text(l->skipped[i].reason), err);
	return r;
}

static int
reconcile(struct pair_run *x, struct sb_error *err)
{
	struct sb_reconcile_opts o = SB_RECONCILE_OPTS_INIT;
	struct sb_scan *l = &x->run.local->scan;
	struct sb_run_guard here;
	int r;

	o.direction = x->pass->direction;
	o.policy_of = sb_session_policy_at;
	o.arg = (void *)x->pass->policies;
	o.label = x->pass->s->name;
	o.mode_mask = sb_run_mode_mask();
	o.trust_git_config = x->pass->o->trust_git_config;
	o.trust_project_files = x->pass->o->trust_project_files;
	o.no_escaping_links = x->pass->o->no_escaping_links;
	o.files = sb_run_guard_files(&here, x->run.local);
	o.unseen[0] = l->skipped;
	o.n_unseen[0] = l->n_skipped;
	o.unseen[1] = x->run.far.skipped;
	o.n_unseen[1] = x->run.far.n_skipped;
	r = sb_reconcile_trees(x->base, l->manifest, x->run.far.manifest, &o, &x->rec, err);
	if (r == 0)
		r = tell_unseen(x, err);
	return r < 0 ? r : tell_changes(x, err);
}

/* The brake's words, with the command that goes on. */
static int
brake(const struct pair_run *x, struct sb_error *err)
{
	uint64_t l = x->run.local->scan.manifest->count, r = x->run.far.manifest->count;
	char old[SB_ERROR_MSG_MAX];

	if (!err || x->pass->first)
		return SB_E_BRAKE;
	memcpy(old, err->msg, sizeof old);
	return sb_fail(err, SB_E_BRAKE,
		"%.*s; nothing was changed. If that is meant: sbsync %s --max-delete %llu %s",
		(int)strcspn(old, ";"), old, verb(x->pass), (unsigned long long)(l > r ? l : r),
		x->pass->s->name);
}

/* Plans for both sides, with their brakes, before anything is touched. */
static int
make_plans(struct pair_run *x, struct sb_error *err)
{
	int r = sb_stage_find(x->run.local->readonly ? -1 : x->run.local->rootfd,
		x->pass->o->cancel, &x->stage, err);

	if (r < 0)
		return r;
	sb_retry_progress(x->pass->retry, x->run.far.n_have + x->stage->n_left);
	/* The plan takes the difference over, and may leave out what moves as a whole. */
	if (!x->pass->o->dry_run)
		r = sb_diff_copy(&x->forward, &x->rec.local, err);
	if (r == 0 && !x->pass->o->dry_run && x->rec.n_conflicts)
		r = sb_diff_copy(&x->there, &x->rec.runtime, err);
	/* A first start has no base to keep, and its files have no digests yet. */
	if (r == 0 && !x->pass->o->dry_run && !begins(x))
		r = sb_session_underway_encode(&x->rec, x->run.local->scan.manifest,
			x->run.far.manifest, &x->underway, err);
	if (r < 0)
		return r;
	/* Only what changes needs to be copied. */
	if (x->rec.runtime.n || x->pass->first || !x->known) {
		x->far_next = sb_manifest_copy(x->run.far.manifest, err);
		if (!x->far_next)
			return err ? err->code : SB_E_NOMEM;
	}
	if (x->rec.runtime.n)
		r = sb_diff_apply(x->far_next, &x->rec.runtime, err);
	if (r == 0 && x->rec.local.n)
		r = sb_session_brake_check(x->pass->dirfd, x->k, x->run.local->scan.manifest,
			&x->rec.local, x->pass->o->max_delete, x->p->local, &x->brake, err);
	if (r == 0)
		r = sb_run_plan_pull(&x->run, &x->rec.local, x->stage, &x->local_plan, err);
	if (r == 0)
		r = sb_run_plan_push(&x->run, &x->rec.runtime, &x->runtime_plan, err);
	return r == SB_E_BRAKE ? brake(x, err) : r;
}

static int
keep_left(struct pair_run *x, const struct sb_commit_result *res, struct sb_error *err)
{
	for (size_t i = 0; i < res->n_left; i++)
		sb_strlist_add(&x->left, res->left[i].path);
	return sb_strlist_check(&x->left, err);
}

/* What could not be put beside a file here stays in its place there, and a conflict. */
static int
keep_unsaved(struct pair_run *x, const struct sb_commit_result *res, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist paths = { 0 };
	int r = sb_session_unsaved_find(&x->rec, res, &paths, err);

	for (size_t i = 0; r == 0 && i < paths.n; i++)
		sb_strlist_add(&x->left, paths.v[i]);
	if (r < 0 || !paths.n || !x->runtime_plan.diff.n)
		return r < 0 ? r : sb_strlist_check(&x->left, err);
	return sb_session_unsaved_replan(&x->run, &x->rec, &x->there, &paths, &x->runtime_plan,
		&x->far_next, &x->left, err);
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
	const struct sb_scan *here = &x->run.local->scan;
	struct missing m = { 0 };

	if (x->pass->direction != SB_FROM_RUNTIME ||
		(!x->last && sb_sync_result_has_unstable(x->pass->res)))
		return 0;
	for (size_t i = 0; res && i < res->n_left; i++)
		if (sb_sync_result_in_way(&x->forward, &res->left[i]))
			miss(&m, res->left[i].path, sb_sync_result_way_text);
		else if (res->left[i].why != SB_WHY_NOTEMPTY)
			miss(&m, res->left[i].path, sb_proto_why_text(res->left[i].why));
	for (size_t i = 0; i < here->n_skipped; i++)
		if (is_missed(x, here->skipped[i].path))
			miss(&m, here->skipped[i].path, sb_scan_skip_text(here->skipped[i].reason));
	for (size_t i = 0; i < x->run.far.n_skipped; i++)
		if (sb_scan_skip_is_loss(x->run.far.skipped[i].reason))
			miss(&m, x->run.far.skipped[i].path,
				sb_scan_skip_text(x->run.far.skipped[i].reason));
	if (!m.n)
		return 0;
	return sb_fail(err, SB_E_STATE, "%.300s: %s%s; the rest is synced back, run it again",
		m.path, m.why, m.n > 1 ? ", and others" : "");
}

static int record_base(struct pair_run *x, struct sb_error *err);

/*
 * What the pull brought is in the base as soon as it is here, whatever happens to the push. Without
 * a push this is the base of the whole run.
 */
static int
record_pulled(struct pair_run *x, struct sb_error *err)
{
	int r;

	if (!x->runtime_plan.diff.n)
		return record_base(x, err);
	r = sb_session_underway_pulled(x->base, &x->forward, x->run.local->scan.manifest,
		x->run.far.manifest, sb_run_mode_mask(), err);
	return r > 0 ? save_base(x, err) : r;
}

static const char *
reason(const struct sb_session_pass *pass)
{
	return pass->whole && pass->whole->reason ? pass->whole->reason : "sync";
}

static int
pull(struct pair_run *x, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	int r;

	if (!x->local_plan.diff.n) {
		/* What an interrupted run left in the stage is of no use to anybody now. */
		if (x->stage->fd >= 0)
			sb_commit_drop_leftovers(x->run.local->rootfd, &x->run.local->log);
		return check_brought(x, NULL, err);
	}
	sb_run_step(&x->run, SB_STEP_RECORD);
	r = sb_session_undo_prepare(x->pass->dirfd, x->k, x->pass->stamp, reason(x->pass),
		x->run.local, &x->forward, err);
	if (r < 0)
		return r;
	x->run.rec = &x->rec;
	x->run.keep = true;
	r = sb_run_pull(&x->run, &x->local_plan, sb_steal(&x->stage), &res, err);
	sb_session_undo_settle(x->pass->dirfd, x->k, x->pass->stamp, x->run.local, r == 0);
	if (r == 0)
		sb_session_brake_made(x->pass->dirfd, x->k, x->run.local->scan.manifest, &x->brake);
	x->run.rec = NULL;
	sb_plan_free(&x->local_plan);
	if (r == 0)
		r = keep_left(x, &res, err);
	if (r == 0)
		r = keep_unsaved(x, &res, err);
	if (r == 0)
		r = record_pulled(x, err);
	return r < 0 ? r : check_brought(x, &res, err);
}

static int
push(struct pair_run *x, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	int r;

	if (!x->runtime_plan.diff.n && !x->pass->first) {
		/* As it was scanned: worth remembering when it is not what both knew. */
		if (x->known || !sb_digest_known(&x->run.far.reply.id) ||
			(x->run.far.reply.flags & SB_SCAN_LAZY))
			return 0;
		sb_run_step(&x->run, SB_STEP_RECORD);
		r = sb_wire_send(x->run.link->w, SB_MSG_REMEMBER, NULL, 0, err);
		if (r == 0)
			r = sb_wire_flush(x->run.link->w, err);
		return r < 0 ? r :
			       sb_replica_save_base(x->run.local, sb_steal(&x->far_next),
				       &x->run.rules_digest, err);
	}
	r = sb_run_push(&x->run, &x->runtime_plan, &res, err);
	sb_run_step(&x->run, SB_STEP_RECORD);
	if (r == 0 && !x->pass->first)
		sb_session_brake_brought(x->pass->dirfd, x->k, &x->runtime_plan.diff);
	sb_plan_free(&x->runtime_plan);
	if (r == 0)
		r = keep_left(x, &res, err);
	if (r == 0 && x->run.local->scan.unhashed) {
		/* A first push: the digests are known now. */
		x->run.local->scan.unhashed = 0;
		r = sb_manifest_finish(x->run.local->scan.manifest, err);
		sb_manifest_free(x->far_next);
		x->far_next = r < 0 ? NULL : sb_manifest_copy(x->run.local->scan.manifest, err);
	}
	if (r < 0)
		return r;
	if (!res.n_left && x->far_next && sb_digest_eq(&x->far_next->id, &res.id))
		return sb_replica_save_base(x->run.local, sb_steal(&x->far_next),
			&x->run.rules_digest, err);
	return 0;
}

static int
build_base(struct pair_run *x, struct sb_error *err)
{
	const struct sb_manifest *from = x->pass->direction == SB_FROM_RUNTIME ?
		x->run.far.manifest :
		x->run.local->scan.manifest;
	sb_auto(sb_manifest) struct sb_manifest *next = NULL;
	int r;

	if (!x->rec.n_unsettled && !x->left.n && sb_digest_eq(&from->id, &x->base->id)) {
		sb_session_underway_end(x->pass->dirfd, x->k);
		return 0;
	}
	next = sb_manifest_copy(from, err);
	r = next ? 0 : err ? err->code : SB_E_NOMEM;
	for (size_t i = 0; r == 0 && i < x->rec.n_unsettled; i++)
		r = sb_session_base_revert(next, x->base, x->rec.unsettled[i], err);
	for (size_t i = 0; r == 0 && i < x->left.n; i++)
		r = sb_session_base_revert(next, x->base, x->left.v[i], err);
	for (size_t i = 0; r == 0 && i < x->left.n; i++)
		r = sb_session_base_drop_gone(next, x->run.local->scan.manifest,
			x->run.far.manifest, x->left.v[i], err);
	if (r == 0 && x->rules.extra)
		r = sb_session_base_retain(next, x->base, x->run.rules, err);
	if (r == 0)
		r = sb_manifest_finish(next, err);
	if (r == 0 && !sb_digest_eq(&next->id, &x->base->id))
		r = sb_manifest_save(next, false, true, x->pass->dirfd, x->base_name, err);
	if (r == 0)
		sb_session_underway_end(x->pass->dirfd, x->k);
	x->recorded = r == 0;
	return r;
}

/* Everything is in its place by now: a cancel does not keep it from being written down. */
static int
record_base(struct pair_run *x, struct sb_error *err)
{
	const struct sb_cancel *under = sb_work_under(NULL);
	int r = build_base(x, err);

	(void)sb_work_under(under);
	return r;
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
			sb_session_policy_at(c->path, (void *)x->pass->policies) != SB_POLICY_MERGE)
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
	struct sb_session_local l = { .s = x->pass->s,
		.o = x->pass->o,
		.dirfd = x->pass->dirfd,
		.pair = x->k,
		.stamp = x->pass->stamp,
		.rep = x->run.local,
		.clock = &x->run.clock,
		.res = x->pass->res };
	sb_autofree struct sb_session_row *rows = calloc(x->rec.n_conflicts + 1, sizeof *rows);
	sb_autofree bool *done = calloc(x->rec.n_conflicts + 1, sizeof *done);
	size_t n;
	int r, count = 0;

	if (!(x->pass->direction & SB_FROM_RUNTIME) || !x->rec.n_conflicts)
		return 0;
	if (!rows || !done)
		return sb_fail(err, SB_E_NOMEM, "merge: out of memory");
	n = mergeable(x, rows);
	r = n ? sb_session_resolve_rows(&l, rows, n, SB_TAKE_MERGED, done, err) : 0;
	for (size_t i = 0; r >= 0 && i < n; i++)
		if (done[i]) {
			sb_sync_result_drop_note(&x->pass->res->conflicts, x->n_conflicts,
				rows[i].path);
			count++;
			r = sb_sync_result_note(&x->pass->res->merged, rows[i].path, NULL, "merged",
				err);
		}
	return r < 0 ? r : count;
}

static int
exchange(struct pair_run *x, struct sb_error *err)
{
	struct sb_session_pass *pass = x->pass;
	sb_auto(sb_endpoint) struct sb_endpoint there = { 0 };
	struct sb_begin b = { .jobs = pass->o->jobs };
	int r = sb_endpoint_parse(x->p->remote, &there, err);

	if (r < 0)
		return r;
	memcpy(b.pair, x->p->id, sizeof b.pair);
	memcpy(b.identity, pass->s->identity, sizeof b.identity);
	b.root = there.path;
	b.flags = SB_BEGIN_SESSION | SB_BEGIN_CREATE | (pass->first ? SB_BEGIN_CLAIM : 0) |
		(pass->o->dry_run ? SB_BEGIN_READONLY : 0) |
		(pass->o->checksum ? SB_BEGIN_CHECKSUM : 0) |
		(pass->o->cross_mounts ? SB_BEGIN_CROSS : 0);
	/* The agent of the run that crashed may not have noticed yet. */
	if (recovers(pass))
		b.flags |= SB_BEGIN_AGAIN;
	x->run.no_delta = pass->o->no_delta;
	x->run.near = there.kind == SB_ENDPOINT_LOCAL;
	x->run.own_brake = true;
	x->run.keep_all = sb_session_policies_merge(pass->policies);
	r = sb_run_open_local(&x->run, x->p->local, b.pair, false, pass->o->dry_run, err);
	if (r == 0)
		r = sb_run_scan_both(&x->run, &b, true, err);
	x->known = r == 0 && (x->run.far.reply.flags & SB_SCAN_BASE_KNOWN) &&
		sb_digest_eq(&b.base, &x->run.far.reply.id);
	if (r == 0)
		r = sb_sync_result_skipped(pass->res, x->run.far.skipped, x->run.far.n_skipped,
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
	if (x->pass->first)
		return sb_fail(err, code,
			"the scan of %s is incomplete: %.300s; nothing was changed. To go on: "
			"sbsync start --name %s %s %s",
			x->p->remote, old, x->pass->s->name, x->p->local, x->p->remote);
	return sb_fail(err, code,
		"the scan of %s is incomplete: %.300s; nothing was changed. To go on: sbsync %s %s",
		x->p->remote, old, verb(x->pass), x->pass->s->name);
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
	sb_run_step(&x->run, SB_STEP_PLAN);
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
		r = sb_run_hash_rest(&x->run, x->base->count > 0, err);
	sb_run_step(&x->run, SB_STEP_PLAN);
	if (r == 0)
		r = fold_earlier(x, err);
	if (r == 0)
		r = reconcile(x, err);
	if (r == 0)
		r = make_plans(x, err);
	if (r < 0)
		return r;
	x->pass->res->entries += x->run.local->scan.manifest->count;
	if (x->pass->o->dry_run) {
		r = sb_sync_result_changes(x->pass->res, &x->local_plan,
			x->run.local->scan.manifest, "local", err);
		return r < 0 ? r :
			       sb_sync_result_changes(x->pass->res, &x->runtime_plan,
				       x->run.far.manifest, "runtime", err);
	}
	sb_run_step(&x->run, SB_STEP_RECORD);
	r = freeze_rules(x, err);
	/* First: a run that dies in between leaves no conflict that nobody knows of. */
	if (r == 0)
		sb_session_conflicts_add(x->pass->dirfd, x->p->local, &x->rec, x->base);
	if (r == 0)
		r = sb_session_underway_begin(x->pass->dirfd, x->k, &x->underway,
			x->local_plan.diff.n > 0, err);
	if (r == 0)
		r = pull(x, err);
	if (r == 0)
		r = push(x, err);
	sb_run_step(&x->run, SB_STEP_RECORD);
	if (r == 0 && !x->recorded)
		r = record_base(x, err);
	if (r == 0)
		r = sb_run_attrs_session(&x->run, x->pass->direction, x->pass->dirfd, x->k, err);
	/* What a commit brought is in the cache already. */
	if (r == 0 && x->pass->first)
		sb_session_brake_made(x->pass->dirfd, x->k, x->run.local->scan.manifest, NULL);
	if (r == 0 && x->pass->first)
		sb_replica_save_cache(x->run.local, x->run.local->scan.manifest);
	else if (r == 0)
		sb_replica_update_cache(x->run.local, x->run.local->scan.hashed_files,
			x->run.local->scan.hashed_bytes);
	return r < 0 ? r : merge_conflicts(x, err);
}

/*
 * What was loaded and is as it was, for the next turn. Nobody changes the base; the tree of the far
 * side is the one we remembered.
 */
static void
give_back(struct pair_run *x)
{
	struct sb_replica *l = x->run.local;

	sb_recall_give(l ? l->recall : NULL, &x->base_tag, x->base);
	if (x->known && !l->base)
		sb_recall_give(l->recall, &l->base_tag, sb_steal(&x->run.far.manifest));
}

static int
run_once(struct sb_session_pass *pass, size_t k, bool last, struct sb_error *err)
{
	struct pair_run x = { .pass = pass,
		.p = &pass->s->pairs[k],
		.k = k,
		.n_conflicts = pass->res->conflicts.n,
		.last = last };
	int r;

	x.run.o = pass->o;
	x.run.res = pass->res;
	x.run.link = pass->link;
	x.run.retry = pass->retry;
	x.run.near_name = x.p->local;
	x.run.far_name = x.p->remote;
	sb_run_start(&x.run);
	(void)snprintf(x.base_name, sizeof x.base_name, "root%zu.base", k);
	(void)snprintf(x.rules_name, sizeof x.rules_name, "root%zu.rules", k);
	r = run_pair(&x, err);
	sb_plan_free(&x.local_plan);
	sb_plan_free(&x.runtime_plan);
	sb_reconcile_free(&x.rec);
	give_back(&x);
	sb_manifest_free(x.far_next);
	sb_stage_free(x.stage);
	sb_strlist_free(&x.left);
	sb_diff_free(&x.forward);
	sb_diff_free(&x.there);
	sb_buf_free(&x.underway);
	sb_run_end(&x.run);
	return r;
}

int
sb_session_run_pair(struct sb_session_pass *pass, size_t k, struct sb_error *err)
{
	int r = run_once(pass, k, false, err);
	bool unstable = r >= 0 && !pass->o->dry_run && sb_sync_result_has_unstable(pass->res);

	/*
	 * What was merged here has to go there; files that changed while they were read may be calm
	 * by now.
	 */
	if (unstable || (r > 0 && (pass->direction & SB_TO_RUNTIME))) {
		sb_sync_result_look_again(pass->res);
		r = run_once(pass, k, true, err);
	}
	return r < 0 ? r : 0;
}
