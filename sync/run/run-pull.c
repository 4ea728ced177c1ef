/* SPDX-License-Identifier: MIT */
/* The pull of a run: brings what is new over there into the stage here and commits it. */
#include "config.h"

#include <sync/run/run.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <base/path.h>
#include <sync/replica/commit.h>
#include <sync/codec/delta.h>
#include <sync/replica/flush-early.h>
#include <sync/replica/inflow.h>
#include <sync/replica/receive.h>
#include <sync/run/partial.h>
#include <sync/run/run-priv.h>
#include <sync/run/sync-result.h>
#include <sync/tree/diff.h>

#define PIECE 4096u
#define HOLES_MAX (64ull << 30) /* sparse files may exceed the free space by this */
#define SPARSE_MIN (64u << 20)  /* smaller ones are taken for solid */

uint16_t
sb_run_mode_mask(void)
{
	mode_t mask = umask(022);

	(void)umask(mask);
	return (uint16_t)(0777 & ~(mask & 0022));
}

/*
 * Offers what we hold: old versions with their signatures, beginnings from an interrupted transfer.
 */
static int
fill_want(struct sb_run *run, const struct sb_partial *parts, const struct sb_change *ch,
	struct sb_want *w, struct sb_error *err)
{
	const struct sb_entry *old = sb_manifest_find(run->local->scan.manifest, ch->path);

	if (old && old->type == SB_ENTRY_FILE && !run->no_delta) {
		w->base = old->digest;
		w->base_size = old->size;
		if (old->size >= SB_DELTA_MIN_SIZE && ch->entry.size >= SB_DELTA_MIN_SIZE) {
			sb_autoclose int fd = sb_path_open(run->local->rootfd, ch->path,
				O_RDONLY | O_NONBLOCK, 0, NULL);
			sb_auto(sb_buf) struct sb_buf sig = { 0 };

			sb_buf_init(&sig, 64u << 20);
			if (fd >= 0 &&
				sb_delta_sign(fd, old->size, &sig, run->o->cancel, NULL) == 0) {
				w->sig = sb_buf_detach(&sig, &w->sig_len);
				if (!w->sig)
					return sb_fail(err, SB_E_NOMEM, "signature: out of memory");
			}
		}
	}
	sb_partial_offer(parts, ch->entry.size, w);
	return 0;
}

static int
set_source(struct sb_run *run, struct sb_want *w, struct sb_error *err)
{
	const char *source = sb_run_source(run, w->path);

	if (source && !(w->source = strdup(source)))
		return sb_fail(err, SB_E_NOMEM, "list of wanted files: out of memory");
	return 0;
}

static int
send_wants(struct sb_run *run, const struct sb_want_list *wants, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 1u << 30);
	sb_proto_want_encode(wants, &b);
	r = sb_buf_check(&b, "list of wanted files", err);
	if (r == 0)
		r = sb_wire_send_blob(run->link->w, SB_MSG_WANT, b.data, b.len, err);
	return r < 0 ? r : sb_wire_flush(run->link->w, err);
}

/* Reads the answer to WANT: rows and data, then the proof. */
static int
take_data(struct sb_run *run, struct sb_receive *recv, struct sb_error *err)
{
	for (;;) {
		const uint8_t *p;
		uint8_t type;
		size_t len;
		int r = sb_wire_recv(run->link->w, &type, &p, &len, err);

		if (r < 0)
			return r;
		switch (type) {
		case SB_MSG_PROOF: return 0;
		case SB_MSG_ROWS: r = sb_receive_rows(recv, p, len, err); break;
		case SB_MSG_DATA: r = sb_inflow_run(run->link->w, recv, false, p, len, err); break;
		default:
			r = sb_fail(err, SB_E_PROTO, "the far side sent message %u instead of data",
				type);
		}
		if (r < 0)
			return r;
	}
}

static int
plan_into(struct sb_run *run, const struct sb_plan *plan, struct sb_receive *recv,
	const struct sb_stage *st, struct sb_want_list *wants, struct sb_error *err)
{
	sb_auto(sb_partial) struct sb_partial parts = { 0 };
	int r = 0;

	for (size_t i = 0; r == 0 && i < st->n_left; i++)
		r = sb_partial_add(&parts, &st->left[i].digest, st->left[i].size, err);
	sb_partial_sort(&parts);

	for (size_t at = 0; r == 0 && at < plan->diff.n;) {
		size_t n = sb_plan_piece_len(plan, at, PIECE);
		struct sb_plan_piece piece = { .diff = { .v = plan->diff.v + at, .n = n },
			.steps = plan->steps + at };

		sb_run_step(run, SB_STEP_STAGE);
		r = sb_receive_plan(recv, &piece, err);
		sb_run_step(run, SB_STEP_TRANSFER);
		for (size_t i = at; r == 0 && i < at + n; i++) {
			struct sb_want *w;

			if (plan->steps[i].method != SB_METHOD_DATA)
				continue;
			r = sb_proto_want_add(wants, plan->diff.v[i].path, &w, err);
			if (r == 0)
				r = set_source(run, w, err);
			if (r == 0)
				r = fill_want(run, &parts, &plan->diff.v[i], w, err);
		}
		at += n;
	}
	return r;
}

static int
transfer(struct sb_run *run, struct sb_receive *recv, struct sb_want_list *wants,
	struct sb_error *err)
{
	int r = 0;

	for (int round = 0; round < 4; round++) {
		sb_auto(sb_strlist) struct sb_strlist need = { 0 };

		sb_run_step(run, SB_STEP_TRANSFER);
		if (wants->n) {
			r = send_wants(run, wants, err);
			if (r == 0)
				r = take_data(run, recv, err);
		}
		sb_run_step(run, SB_STEP_STAGE);
		if (r == 0)
			r = sb_receive_drain(recv, err);
		sb_run_step(run, SB_STEP_VERIFY);
		if (r == 0)
			r = sb_receive_settle(recv, &need, err);
		if (r < 0 || !need.n)
			return r;
		sb_proto_want_free(wants);
		for (size_t i = 0; r == 0 && i < need.n; i++) {
			struct sb_want *w;

			r = sb_proto_want_add(wants, need.v[i], &w, err);
			if (r == 0)
				r = set_source(run, w, err);
			if (r == 0)
				w->whole = true;
		}
	}
	return r < 0 ? r : sb_fail(err, SB_E_PROTO, "some files cannot be brought over");
}

int
sb_run_plan_pull(struct sb_run *run, struct sb_diff *d, const struct sb_stage *st,
	struct sb_plan *out, struct sb_error *err)
{
	struct sb_plan_opts po = SB_PLAN_OPTS_INIT;
	struct sb_have *have = calloc(st->n_left + 1, sizeof *have);
	int r;

	if (!have)
		return sb_fail(err, SB_E_NOMEM, "plan: out of memory");
	for (size_t i = 0; i < st->n_left; i++)
		have[i] = (struct sb_have){ st->left[i].digest, st->left[i].size };
	po.have = have;
	po.n_have = st->n_left;
	r = sb_plan_make(d, run->local->scan.manifest, &po, out, err);
	if (r == 0 && (!run->own_brake || run->o->max_delete >= 0))
		r = sb_plan_check_brake(out, run->local->scan.manifest, run->o->max_delete, false,
			run->near_name, err);
	free(have);
	return r;
}

static enum sb_durability
durability(const struct sb_run *run)
{
	return run->o->durability == SB_SYNC_DURABLE_DEFAULT ?
		SB_DURABLE_FULL :
		(enum sb_durability)run->o->durability;
}

/* What is free where the root is, or will be. */
static uint64_t
room_here(const char *root)
{
	sb_autofree char *at = strdup(root);
	struct statvfs vfs;

	while (at && statvfs(at, &vfs) < 0) {
		char *slash = strrchr(at, '/');

		if (errno != ENOENT || !slash || slash == at)
			return UINT64_MAX;
		*slash = 0;
	}
	return at ? (uint64_t)vfs.f_bavail * vfs.f_frsize : UINT64_MAX;
}

/*
 * The sandbox may announce any size, and holes cost it nothing: the sum must have some relation to
 * the room there is.
 */
static int
check_room(const struct sb_run *run, const struct sb_plan *plan, struct sb_error *err)
{
	uint64_t room = room_here(run->local->root), sum = 0, solid = 0;

	for (size_t i = 0; i < plan->diff.n; i++) {
		uint64_t size =
			plan->steps[i].method == SB_METHOD_DATA ? plan->diff.v[i].entry.size : 0;

		sum = size > UINT64_MAX - sum ? UINT64_MAX : sum + size;
		solid += size < SPARSE_MIN ? size : 0;
	}
	if (solid > room || (sum > room && sum - room > HOLES_MAX))
		return sb_fail(err, SB_E_NOSPACE,
			"%s has files of %llu bytes to send, %llu are free here: make room or "
			"exclude them; nothing was changed",
			run->far_name, (unsigned long long)sum, (unsigned long long)room);
	return 0;
}

static int
pull(struct sb_run *run, const struct sb_plan *plan, struct sb_stage *stage,
	struct sb_commit_result *res, struct sb_error *err)
{
	struct sb_receive_opts ro = SB_RECEIVE_OPTS_INIT;
	sb_auto(sb_want_list) struct sb_want_list wants = { 0 };
	sb_auto(sb_receive) struct sb_receive *recv = NULL;
	sb_auto(sb_flush_early) struct sb_flush_early *flush = NULL;
	int r;

	r = check_room(run, plan, err);
	if (r < 0) {
		sb_stage_free(stage);
		return r;
	}
	r = sb_sync_result_planned(run->res, plan, run->local->scan.manifest, "local", err);
	if (r < 0) {
		sb_stage_free(stage);
		return r;
	}
	sb_run_expect(run, plan);
	sb_run_step(run, SB_STEP_STAGE);
	ro.progress = sb_run_progress;
	ro.arg = run;
	ro.mode_mask = sb_run_mode_mask();
	ro.jobs = run->o->jobs;
	ro.confine = true;
	ro.store = run->keep ? sb_replica_store(run->local) : NULL;
	recv = sb_receive_new(run->local, stage, &ro, err);
	if (!recv)
		return err ? err->code : SB_E_SYS;
	r = plan_into(run, plan, recv, stage, &wants, err);
	if (r == 0 && durability(run) >= SB_DURABLE_BARRIER)
		flush = sb_flush_early_start(run->local->rootfd);
	if (r == 0)
		r = transfer(run, recv, &wants, err);
	if (sb_receive_is_open(recv))
		sb_log(&run->o->log, SB_LOG_INFO, "receive",
			"this kernel cannot confine the process that unpacks (no seccomp)");
	if (r < 0)
		return r;
	/* All of it is here, also what came in another way than the stream. */
	sb_run_progress(plan->n_data, plan->data_bytes, run);
	sb_run_step(run, SB_STEP_COMMIT);
	sb_flush_early_stop(sb_steal(&flush));
	if (run->set_root)
		sb_receive_root_meta(recv, run->far.reply.root_mode, run->far.reply.root_mtime);
	r = sb_receive_commit(recv, durability(run), res, err);
	if (r < 0)
		return r;
	sb_run_step(run, SB_STEP_RECORD);
	run->res->bytes_transferred += plan->data_bytes;
	sb_receive_update_cache(run->local, res);
	return sb_sync_result_commit(run->res, plan, res, err);
}

int
sb_run_pull(struct sb_run *run, const struct sb_plan *plan, struct sb_stage *stage,
	struct sb_commit_result *res, struct sb_error *err)
{
	int r = pull(run, plan, stage, res, err);

	/* What does not fit would only keep the disk full, for this and every other run. */
	if (r == SB_E_NOSPACE && run->local->rootfd >= 0)
		sb_commit_drop_leftovers(run->local->rootfd, &run->local->log);
	return r;
}
