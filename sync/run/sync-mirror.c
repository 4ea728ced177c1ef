/* SPDX-License-Identifier: MIT */
/* The one-way verb: makes the tree at one end equal to the one at the other. */
#include "config.h"

#include <sbsync/sync.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/work.h>
#include <sync/plan/guard.h>
#include <sync/plan/guard-tree.h>
#include <sync/replica/commit.h>
#include <sync/run/run.h>
#include <sync/run/run-attrs.h>
#include <sync/run/run-guard.h>
#include <sync/run/sync-result.h>
#include <sync/wire/endpoint.h>
#include <sync/wire/limit.h>

/* Both sides are equal now: the next run starts from here. */
static int
remember(struct sb_run *run, struct sb_error *err)
{
	struct sb_manifest *copy;

	sb_replica_save_cache(run->local, run->local->scan.manifest);
	copy = run->local->scan.manifest;
	run->local->scan.manifest = NULL;
	return sb_replica_save_base(run->local, copy, &run->rules_digest, err);
}

static bool
root_differs(const struct sb_run *run)
{
	const struct sb_entry *root = &run->local->scan.manifest->root;

	return (run->far.reply.flags & SB_SCAN_MISSING) ||
		run->far.reply.root_mtime != root->mtime || run->far.reply.root_mode != root->mode;
}

/* There is nothing to do over there. */
static int
push_nothing(struct sb_run *run, struct sb_error *err)
{
	int r = sb_run_attrs(run, SB_TO_RUNTIME, NULL, NULL, err);

	sb_run_step(run, SB_STEP_RECORD);
	if (r == 0 && run->local->scan.hashed_files)
		sb_replica_save_cache(run->local, run->local->scan.manifest);
	if (r == 0 && !(run->far.reply.flags & SB_SCAN_BASE_KNOWN) && !run->local->scan.n_skipped) {
		r = sb_wire_send(run->link->w, SB_MSG_REMEMBER, NULL, 0, err);
		if (r == 0)
			r = remember(run, err);
	}
	return r;
}

static int
push_tree(struct sb_run *run, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	sb_auto(sb_plan) struct sb_plan plan = { 0 };
	sb_auto(sb_manifest) struct sb_manifest *with_unseen = NULL;
	int r = sb_run_hash_rest(run, false, err);

	sb_run_step(run, SB_STEP_PLAN);
	if (r == 0)
		r = sb_diff_make(run->far.manifest, run->local->scan.manifest, &d, err);
	if (r < 0)
		return r;
	r = sb_run_keep_unseen(&d, run->local->scan.skipped, run->local->scan.n_skipped, err);
	if (r == 0 && run->local->scan.n_skipped && run->far.manifest->count) {
		/* What could not be read here stays there: that tree is not this one. */
		with_unseen = sb_manifest_copy(run->far.manifest, err);
		r = with_unseen ? sb_diff_apply(with_unseen, &d, err) : SB_E_NOMEM;
	}
	if (r == 0)
		r = sb_run_plan_push(run, &d, &plan, err);
	if (r < 0)
		return r;
	run->res->entries = run->local->scan.manifest->count;
	if (run->o->dry_run)
		return sb_sync_result_changes(run->res, &plan, run->far.manifest, "runtime", err);
	if (!plan.diff.n && !root_differs(run))
		return push_nothing(run, err);
	run->set_root = true;
	r = sb_run_push(run, &plan, &res, err);
	sb_run_step(run, SB_STEP_RECORD);
	/* The plan of a large tree is as large as the manifest, which is encoded next. */
	sb_plan_free(&plan);
	if (r == 0)
		r = sb_manifest_finish(run->local->scan.manifest, err);
	if (r < 0)
		return r;
	run->local->scan.unhashed = 0;
	r = sb_run_check_tree(run, with_unseen ? with_unseen : run->local->scan.manifest, &res,
		err);
	if (r == 0)
		r = sb_run_attrs(run, SB_TO_RUNTIME, NULL, NULL, err);
	if (r < 0)
		return r;
	if (res.n_left || !sb_digest_eq(&res.id, &run->local->scan.manifest->id)) {
		sb_replica_save_cache(run->local, run->local->scan.manifest);
		return 0;
	}
	return remember(run, err);
}

static int
mask_entry(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	(void)path;
	(void)len;
	if (e->type != SB_ENTRY_LINK)
		e->mode &= *(uint16_t *)arg;
	return 0;
}

/*
 * Changes that would make this machine run what the sandbox wants are left out; others of that kind
 * are told.
 */
static int
guard_diff(struct sb_run *run, struct sb_diff *d, struct sb_error *err)
{
	sb_auto(sb_guard_verdicts) struct sb_guard_verdicts v = { 0 };
	struct sb_run_guard here;
	const struct sb_guard_opts o = { .trust_git = run->o->trust_git_config,
		.trust_project = run->o->trust_project_files,
		.no_escaping_links = run->o->no_escaping_links,
		.files = sb_run_guard_files(&here, run->local) };
	int r = sb_guard_tree_check(run->local->scan.manifest, d, &o, &v, err);

	for (size_t i = 0; i < v.n && r == 0; i++)
		r = sb_sync_result_note(v.v[i].kind == SB_CONFLICT_LINK ?
				&run->res->escaping_links :
				&run->res->conflicts,
			v.v[i].path, NULL, sb_reconcile_conflict_text(v.v[i].kind), err);
	sb_guard_tree_drop(d, &v);
	for (size_t i = 0; i < d->n && r == 0; i++) {
		const struct sb_change *c = &d->v[i];

		r = sb_work_alive(err);
		if (r < 0)
			break;
		if (c->del || c->entry.type == SB_ENTRY_DIR)
			continue;
		if (c->entry.type == SB_ENTRY_LINK && sb_guard_escapes(c->path, c->target))
			r = sb_sync_result_note(&run->res->escaping_links, c->path, NULL,
				"leads out of the root", err);
		if (r == 0 && sb_guard_path(c->path) == SB_GUARD_AUTOEXEC)
			r = sb_sync_result_note(&run->res->auto_exec, c->path, NULL,
				"may run by itself", err);
	}
	return r;
}

/*
 * Keeps the far tree as the far side named it, before modes are masked: the next run's exchange
 * starts from it.
 */
static int
remember_far(struct sb_run *run, struct sb_error *err)
{
	struct sb_manifest *copy;
	int r;

	if (run->o->dry_run || (run->far.reply.flags & (SB_SCAN_LAZY | SB_SCAN_BASE_KNOWN)))
		return 0;
	sb_run_step(run, SB_STEP_RECORD);
	copy = sb_manifest_copy(run->far.manifest, err);
	r = copy    ? sb_replica_save_base(run->local, copy, &run->rules_digest, err) :
		err ? err->code :
		      SB_E_NOMEM;
	return r < 0 ? r : sb_wire_send(run->link->w, SB_MSG_REMEMBER, NULL, 0, err);
}

/* What this machine takes of the far tree, as a difference to its own. */
static int
compare(struct sb_run *run, struct sb_diff *d, struct sb_error *err)
{
	uint16_t mask = sb_run_mode_mask();
	int r = sb_manifest_walk(run->far.manifest, mask_entry, &mask);

	if (r == 0)
		r = sb_manifest_finish(run->far.manifest, err);
	if (r == 0)
		r = sb_diff_make(run->local->scan.manifest, run->far.manifest, d, err);
	if (r < 0)
		return r;
	r = sb_run_keep_unseen(d, run->far.skipped, run->far.n_skipped, err);
	return r < 0 ? r : guard_diff(run, d, err);
}

static int
pull_tree(struct sb_run *run, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	sb_auto(sb_stage) struct sb_stage *stage = NULL;
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	sb_auto(sb_plan) struct sb_plan plan = { 0 };
	struct sb_replica *local = run->local;
	int r = remember_far(run, err);

	if (r < 0)
		return r;
	sb_run_step(run, SB_STEP_PLAN);
	r = sb_stage_find(local->readonly ? -1 : local->rootfd, run->o->cancel, &stage, err);
	if (r == 0)
		sb_retry_progress(run->retry, stage->n_left);
	if (r == 0)
		r = compare(run, &d, err);
	if (r == 0)
		r = sb_run_plan_pull(run, &d, stage, &plan, err);
	if (r < 0)
		return r;
	run->res->entries = run->far.manifest->count;
	if (run->o->dry_run)
		return sb_sync_result_changes(run->res, &plan, local->scan.manifest, "local", err);
	if (!plan.diff.n && local->rootfd >= 0 &&
		local->scan.manifest->root.mtime == run->far.reply.root_mtime) {
		sb_run_step(run, SB_STEP_RECORD);
		if (local->scan.hashed_files)
			sb_replica_save_cache(local, local->scan.manifest);
		sb_commit_drop_leftovers(local->rootfd, &local->log);
		return 0;
	}
	run->set_root = true;
	return sb_run_pull(run, &plan, sb_steal(&stage), &res, err);
}

/* The BEGIN of this pair of trees; the same two always have the same name. */
static int
make_begin(const struct sb_run *run, bool push, const char *here, const struct sb_endpoint *there,
	struct sb_begin *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf id = { 0 };
	struct sb_digest pair;
	char show[512];
	int r;

	sb_buf_init(&id, 64u << 10);
	sb_buf_addf(&id, "mirror:%d:%s:", push, here);
	sb_buf_add_str(&id,
		there->kind == SB_ENDPOINT_LOCAL ? there->path :
						   sb_endpoint_show(there, show, sizeof show));
	r = sb_buf_check(&id, "pair", err);
	if (r < 0)
		return r;
	pair = sb_digest_of(id.data, id.len);
	memcpy(out->pair, pair.b, sizeof out->pair);
	out->jobs = run->o->jobs;
	out->root = there->path;
	out->flags = (push ? SB_BEGIN_CREATE : 0) |
		(push && !run->o->dry_run ? 0 : SB_BEGIN_READONLY) |
		(run->o->checksum ? SB_BEGIN_CHECKSUM : 0) |
		(run->o->cross_mounts ? SB_BEGIN_CROSS : 0);
	return 0;
}

static int
mirror(struct sb_run *run, const struct sb_endpoint *src, const struct sb_endpoint *dst,
	struct sb_error *err)
{
	bool push = src->kind == SB_ENDPOINT_LOCAL;
	const struct sb_endpoint *here = push ? src : dst, *there = push ? dst : src;
	struct sb_begin b = { 0 };
	int r;

	/*
	 * Between two directories of one machine nothing is gained by finding out what changed
	 * inside a file.
	 */
	run->near = there->kind == SB_ENDPOINT_LOCAL;
	run->no_delta = run->o->no_delta || (run->near && !run->o->always_delta);
	run->res->direction = run->near ? "local" : push ? "to_runtime" : "from_runtime";
	r = make_begin(run, push, here->path, there, &b, err);
	if (r < 0)
		return r;
	r = sb_run_open_local(run, here->path, b.pair, !push, push || run->o->dry_run, err);
	if (r == 0 && !run->near)
		sb_run_early_start(run, push);
	sb_run_step(run, SB_STEP_CONNECT);
	if (r == 0)
		run->link = sb_run_link_take(there, run->o, run->retry, err);
	if (r == 0 && !run->link)
		r = err ? err->code : SB_E_CONNECT;
	if (r == 0)
		r = sb_run_scan_both(run, &b, push, err);
	sb_run_early_stop(run);
	if (r == 0)
		r = sb_sync_result_skipped(run->res, run->local->scan.skipped,
			run->local->scan.n_skipped, err);
	if (r == 0)
		r = sb_sync_result_skipped(run->res, run->far.skipped, run->far.n_skipped, err);
	if (r == 0 && push)
		sb_retry_progress(run->retry, run->far.n_have);
	if (r == 0)
		r = push ? push_tree(run, err) : pull_tree(run, err);
	if (r == 0 && !push)
		r = sb_run_attrs(run, SB_FROM_RUNTIME, NULL, NULL, err);
	sb_run_step(run, SB_STEP_RECORD);
	/* What was read is not read again by the next attempt. */
	if (r < 0 && run->local && run->local->scan.manifest && run->local->scan.hashed_files) {
		const struct sb_cancel *was = sb_work_under(NULL);

		sb_replica_save_cache(run->local, run->local->scan.manifest);
		(void)sb_work_under(was);
	}
	r = sb_run_link_give(run->link, r, run->res, run->retry, err);
	run->link = NULL;
	return r;
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
		abs = sb_endpoint_absolute(e->path, err);
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
attempt(const struct sb_endpoint *from, const struct sb_endpoint *to, struct sb_run run,
	struct sb_error *err)
{
	const char *here;
	int r;

	sb_run_start(&run);
	run.rules = sb_rules_new(err);
	here = from->kind == SB_ENDPOINT_LOCAL ? from->path : to->path;
	r = run.rules ? sb_run_add_rules(run.o, here, run.rules, err) : SB_E_NOMEM;
	if (r == 0)
		r = mirror(&run, from, to, err);
	sb_run_end(&run);
	return r;
}

static int
attempts(const struct sb_endpoint *from, const struct sb_endpoint *to, struct sb_run run,
	struct sb_error *err)
{
	int r;

	do
		r = attempt(from, to, run, err);
	while (r < 0 && sb_retry_again(run.retry, r, run.o, err, run.res));
	return r;
}

/*
 * Files that changed while they were read may be calm by now. Not where something at the
 * destination was left alone because it had changed meanwhile: that is for the user to see first.
 */
static int
look_again(const struct sb_endpoint *from, const struct sb_endpoint *to, struct sb_run run,
	struct sb_error *err)
{
	struct sb_sync_result before = *run.res;
	int r;

	if (run.o->dry_run || before.conflicts.n || !sb_sync_result_has_unstable(&before))
		return 0;
	memset(run.res, 0, sizeof *run.res);
	run.res->reason = before.reason;
	r = attempts(from, to, run, err);
	if (r == 0)
		return sb_sync_result_after(run.res, &before, err);
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
	struct sb_run run = { .o = &o,
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
		run.near_name = dst;
		run.far_name = src;
	}
	if (r == 0)
		r = sb_endpoint_parse(dst, &to, err);
	if (r == 0)
		r = sb_endpoint_check_path(&from, src, err);
	if (r == 0)
		r = sb_endpoint_check_path(&to, dst, err);
	if (r == 0)
		r = check_paths(&from, &to, err);
	if (r == 0)
		r = attempts(&from, &to, run, err);
	if (r == 0)
		r = look_again(&from, &to, run, err);
	out->duration_ms = sb_now_ms() - start;
	return sb_limit_end(&limit, r, err);
}
