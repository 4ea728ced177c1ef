/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-local.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/strlist.h>
#include <sync/replica/commit.h>
#include <sync/scan/rules.h>
#include <sync/plan/plan.h>
#include <sync/replica/receive.h>
#include <sync/run/run-guard.h>
#include <sync/run/sync-result.h>
#include <sync/session/session-rules.h>
#include <sync/session/session-undo.h>
#include <sync/replica/stage.h>
#include <sync/tree/stage-names.h>
#include <sync/tree/diff.h>

#define PIECE 4096u

int
sb_session_local_open(struct sb_session_local *x, struct sb_error *err)
{
	const struct sb_session_pair *p = &x->s->pairs[x->pair];
	struct sb_replica_opts o = SB_REPLICA_OPTS_INIT;
	struct sb_scan_opts so = SB_SCAN_OPTS_INIT;
	sb_auto(sb_rules) struct sb_rules *rules =
		sb_session_rules_load(x->s, x->dirfd, x->pair, NULL, err);

	sb_step_start(x->clock, x->res, SB_STEP_SCAN);
	if (!rules)
		return err ? err->code : SB_E_CORRUPT;
	o.root = p->local;
	o.state_dir = x->o->state_dir;
	memcpy(o.pair, p->id, sizeof o.pair);
	o.readonly = x->o->dry_run;
	o.cancel = x->o->cancel;
	o.log = x->o->log;
	x->rep = sb_replica_open(&o, err);
	if (!x->rep)
		return err ? err->code : SB_E_SYS;
	so.rules = rules;
	so.checksum = x->o->checksum;
	so.cross_mounts = x->o->cross_mounts;
	so.jobs = x->o->jobs;
	return sb_replica_scan(x->rep, &so, err);
}

void
sb_session_local_close(struct sb_session_local *x)
{
	sb_step_stop(x->clock);
	sb_replica_free(x->rep);
	x->rep = NULL;
}

int
sb_session_local_read(struct sb_session_local *x, const char *path, size_t max, struct sb_buf *out,
	struct sb_error *err)
{
	const struct sb_entry *e = sb_manifest_find(x->rep->scan.manifest, path);
	sb_autoclose int fd = -1;
	sb_autofree uint8_t *data = NULL;
	struct sb_digest d;

	sb_buf_init(out, max + 1);
	if (!e || e->type != SB_ENTRY_FILE)
		return sb_fail(err, SB_E_NOTFOUND, "%s is no file", path);
	if (e->size > max)
		return sb_fail(err, SB_E_LIMIT, "%s is too large", path);
	fd = sb_path_open(x->rep->rootfd, path, O_RDONLY | O_NONBLOCK, 0, err);
	if (fd < 0)
		return fd;
	data = malloc(e->size + 1);
	if (!data)
		return sb_fail(err, SB_E_NOMEM, "%s: out of memory", path);
	if (sb_file_read_full(fd, data, e->size + 1, NULL) != (ssize_t)e->size)
		return sb_fail(err, SB_E_CHANGED, "%s changes just now", path);
	d = sb_digest_of(data, e->size);
	if (!sb_digest_eq(&d, &e->digest))
		return sb_fail(err, SB_E_CHANGED, "%s changes just now", path);
	sb_buf_add(out, data, e->size);
	return sb_buf_check(out, path, err);
}

/* A new file among what the stage keeps. */
static int
open_offer(struct sb_session_local *x, struct sb_error *err)
{
	sb_autoclose int stage = -1, fresh = -1;

	if (mkdirat(x->rep->rootfd, SB_STAGE_NAME, 0700) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "make the stage directory %s", SB_STAGE_NAME);
	stage = openat(x->rep->rootfd, SB_STAGE_NAME,
		O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (stage < 0)
		return sb_fail_errno(err, "open the stage directory %s", SB_STAGE_NAME);
	if (mkdirat(stage, SB_STAGE_NEW, 0700) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "make the stage");
	fresh = openat(stage, SB_STAGE_NEW, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fresh < 0)
		return sb_fail_errno(err, "open the stage");
	for (;;) {
		char name[32];
		int fd;

		(void)snprintf(name, sizeof name, "offer%u", x->offered++);
		fd = openat(fresh, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			0600);
		if (fd >= 0 || errno != EEXIST)
			return fd < 0 ? sb_fail_errno(err, "make a file in the stage") : fd;
	}
}

int
sb_session_local_offer(struct sb_session_local *x, const void *data, size_t len,
	struct sb_digest *out, struct sb_error *err)
{
	sb_autoclose int fd = -1;

	*out = sb_digest_of(data, len);
	if (!len || x->o->dry_run)
		return 0; /* an empty file needs no content */
	fd = open_offer(x, err);
	return fd < 0 ? fd : sb_file_write_all(fd, data, len, err);
}

static int
into_stage(struct sb_session_local *x, struct sb_plan *plan, struct sb_receive *recv,
	struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist need = { 0 };
	int r = 0;

	for (size_t at = 0; r == 0 && at < plan->diff.n;) {
		size_t n = sb_plan_piece_len(plan, at, PIECE);
		struct sb_plan_piece piece = { .diff = { .v = plan->diff.v + at, .n = n },
			.steps = plan->steps + at };

		r = sb_receive_plan(recv, &piece, err);
		at += n;
	}
	if (r == 0)
		r = sb_receive_drain(recv, err);
	sb_step_next(x->clock, SB_STEP_VERIFY);
	if (r == 0)
		r = sb_receive_settle(recv, &need, err);
	if (r == 0 && need.n)
		return sb_fail(err, SB_E_CHANGED,
			"%s: %s changes just now: nothing was changed, run it again",
			x->s->pairs[x->pair].local, need.v[0]);
	return r;
}

static int
commit(struct sb_session_local *x, struct sb_plan *plan, struct sb_stage *stage,
	struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	struct sb_receive_opts ro = SB_RECEIVE_OPTS_INIT;
	sb_auto(sb_receive) struct sb_receive *recv = NULL;
	int r;

	sb_step_next(x->clock, SB_STEP_STAGE);
	ro.jobs = x->o->jobs;
	recv = sb_receive_new(x->rep, stage, &ro, err);
	if (!recv)
		return err ? err->code : SB_E_SYS;
	r = into_stage(x, plan, recv, err);
	for (size_t i = 0; r == 0 && i < x->made.n; i++)
		r = sb_receive_hold(recv, x->made.v[i], x->needed.v[i], err);
	sb_step_next(x->clock, SB_STEP_COMMIT);
	if (r == 0)
		r = sb_receive_commit(recv,
			x->o->durability == SB_SYNC_DURABLE_DEFAULT ?
				SB_DURABLE_FULL :
				(enum sb_durability)x->o->durability,
			&res, err);
	sb_step_next(x->clock, SB_STEP_RECORD);
	if (r < 0)
		return r;
	sb_replica_save_cache(x->rep, x->rep->scan.manifest);
	return sb_sync_result_commit(x->res, plan, &res, err);
}

static int
make_plan(struct sb_session_local *x, struct sb_diff *d, const struct sb_stage *stage,
	struct sb_plan *plan, struct sb_error *err)
{
	struct sb_plan_opts po = SB_PLAN_OPTS_INIT;
	sb_autofree struct sb_have *have = calloc(stage->n_left + 1, sizeof *have);
	int r;

	if (!have)
		return sb_fail(err, SB_E_NOMEM, "plan: out of memory");
	for (size_t i = 0; i < stage->n_left; i++)
		have[i] = (struct sb_have){ stage->left[i].digest, stage->left[i].size };
	po.have = have;
	po.n_have = stage->n_left;
	r = sb_plan_make(d, x->rep->scan.manifest, &po, plan, err);
	if (r == 0 && plan->n_data && !x->o->dry_run)
		return sb_fail(err, SB_E_NOTFOUND, "the content of %llu files is not kept any more",
			(unsigned long long)plan->n_data);
	return r;
}

int
sb_session_local_judge(struct sb_session_local *x, const struct sb_manifest *target,
	struct sb_diff *d, struct sb_guard_verdicts *out, struct sb_error *err)
{
	struct sb_run_guard here;
	const struct sb_guard_opts o = { .trust_git = x->o->trust_git_config,
		.trust_project = x->o->trust_project_files || x->own,
		.files = sb_run_guard_files(&here, x->rep) };
	int r = sb_diff_make(x->rep->scan.manifest, target, d, err);

	return r < 0 ? r : sb_guard_tree_check(x->rep->scan.manifest, d, &o, out, err);
}

int
sb_session_local_apply(struct sb_session_local *x, const struct sb_manifest *target,
	struct sb_error *err)
{
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	sb_auto(sb_plan) struct sb_plan plan = { 0 };
	sb_auto(sb_stage) struct sb_stage *stage = NULL;
	sb_auto(sb_guard_verdicts) struct sb_guard_verdicts v = { 0 };
	int r;

	sb_step_next(x->clock, SB_STEP_PLAN);
	r = sb_session_local_judge(x, target, &d, &v, err);
	if (r < 0 || !d.n)
		return r;
	if (v.n && !x->removes)
		return sb_fail(err, SB_E_BRAKE, "%s: %s; nothing was changed", v.v[0].path,
			sb_reconcile_conflict_text(v.v[0].kind));
	r = sb_stage_find(x->rep->readonly ? -1 : x->rep->rootfd, x->o->cancel, &stage, err);
	sb_step_next(x->clock, SB_STEP_RECORD);
	if (r == 0 && !x->o->dry_run)
		r = sb_session_undo_prepare(x->dirfd, x->pair, x->stamp, x->res->reason, x->rep, &d,
			err);
	sb_step_next(x->clock, SB_STEP_PLAN);
	if (r == 0)
		r = make_plan(x, &d, stage, &plan, err);
	if (r == 0 && x->o->dry_run)
		return sb_sync_result_changes(x->res, &plan, x->rep->scan.manifest, "local", err);
	if (r == 0)
		r = sb_sync_result_planned(x->res, &plan, x->rep->scan.manifest, "local", err);
	if (r == 0)
		r = commit(x, &plan, sb_steal(&stage), err);
	sb_session_undo_settle(x->dirfd, x->pair, x->stamp, x->rep, r == 0);
	return r;
}
