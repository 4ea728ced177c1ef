/* SPDX-License-Identifier: MIT */
/* The push of a run: sends what the far side lacks and has it commit. */
#include "config.h"

#include <sync/run/run.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <base/path.h>
#include <base/strlist.h>
#include <base/work.h>
#include <sync/codec/delta.h>
#include <sync/codec/recipe.h>
#include <sync/replica/send.h>
#include <sync/run/partial.h>
#include <sync/run/run-priv.h>
#include <sync/run/sync-result.h>
#include <sync/tree/diff.h>

#define PIECE 4096u
#define SIG_MIN SB_DELTA_MIN_SIZE
#define ANSWER_MAX (1u << 30)
#define ROW_MAX 512u /* of a path in an answer, on the average */

/*
 * Signatures of the receiver's copies, for files that are worth a delta and whose old bytes we do
 * not have.
 */
struct sigs {
	struct sb_strlist paths;
	struct sb_buf blob;
	const uint8_t **sig; /* into the blob */
	size_t *len;
	size_t max; /* bytes that they may take: librsync has at least 256 bytes in a block */
};

static void
sigs_free(struct sigs *s)
{
	sb_strlist_free(&s->paths);
	sb_buf_free(&s->blob);
	free(s->sig);
	free(s->len);
}

static int
request_sigs(struct sb_run *run, const struct sb_plan *plan, struct sigs *s, struct sb_error *err)
{
	struct sb_store *store = run->no_delta ? NULL : sb_replica_store(run->local);
	int recipes = run->no_delta ? -1 : sb_replica_recipes(run->local);
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_cursor c;
	const uint8_t *p;
	size_t len;
	int r;

	for (size_t i = 0; !run->no_delta && i < plan->diff.n; i++) {
		const struct sb_change *ch = &plan->diff.v[i];
		const struct sb_entry *old;

		if (plan->steps[i].method != SB_METHOD_DATA || ch->entry.size < SIG_MIN)
			continue;
		old = sb_manifest_find(run->far.manifest, ch->path);
		if (!old || old->type != SB_ENTRY_FILE || old->size < SIG_MIN ||
			(store && sb_store_has(store, &old->digest)))
			continue;
		if (ch->entry.size > SB_RECIPE_MIN_SIZE && recipes >= 0 &&
			sb_recipe_has(recipes, &old->digest))
			continue;
		sb_strlist_add(&s->paths, ch->path);
		s->max += old->size / 4 < ANSWER_MAX ? (size_t)(old->size / 4) + 1024 : ANSWER_MAX;
		if (s->max > ANSWER_MAX)
			s->max = ANSWER_MAX;
	}
	r = sb_strlist_check(&s->paths, err);
	if (r < 0 || !s->paths.n)
		return r;
	sb_buf_init(&b, 256u << 20);
	sb_proto_paths_encode((const char *const *)s->paths.v, s->paths.n, &b);
	r = sb_buf_check(&b, "SIGREQ", err);
	if (r == 0)
		r = sb_wire_send_blob(run->link->w, SB_MSG_SIGREQ, b.data, b.len, err);
	if (r == 0)
		r = sb_wire_flush(run->link->w, err);
	if (r == 0)
		r = sb_wire_expect(run->link->w, SB_MSG_SIGS, &p, &len, err);
	if (r == 0)
		r = sb_wire_recv_blob(run->link->w, SB_MSG_SIGS, p, len, s->max, &s->blob, err);
	if (r == 0)
		r = sb_wire_expect(run->link->w, SB_MSG_PROOF, &p, &len, err);
	if (r < 0)
		return r;
	s->sig = calloc(s->paths.n, sizeof *s->sig);
	s->len = calloc(s->paths.n, sizeof *s->len);
	if (!s->sig || !s->len)
		return sb_fail(err, SB_E_NOMEM, "signatures: out of memory");
	sb_cursor_init(&c, s->blob.data, s->blob.len);
	for (size_t i = 0; i < s->paths.n; i++)
		s->sig[i] = sb_cursor_bytes(&c, s->blob.len, &s->len[i]);
	return c.bad || sb_cursor_left(&c) ?
		sb_fail(err, SB_E_PROTO, "the far side sent damaged signatures") :
		0;
}

/* What the receiver holds that helps with this file. */
static void
fill_want(struct sb_run *run, const struct sigs *s, const struct sb_partial *parts, size_t *at,
	const struct sb_change *ch, struct sb_want *w)
{
	const struct sb_entry *old = sb_manifest_find(run->far.manifest, ch->path);

	w->path = (char *)ch->path;
	w->source = (char *)sb_run_source(run, ch->path);
	if (old && old->type == SB_ENTRY_FILE) {
		w->base = old->digest;
		w->base_size = old->size;
	}
	/* Paths stand in the order of the plan in both lists. */
	if (*at < s->paths.n && strcmp(s->paths.v[*at], ch->path) == 0) {
		w->sig = s->len[*at] ? (uint8_t *)s->sig[*at] : NULL;
		w->sig_len = s->len[*at];
		(*at)++;
	}
	sb_partial_offer(parts, ch->entry.size, w);
}

static int
send_piece(struct sb_run *run, const struct sb_plan *plan, struct sb_send *s,
	const struct sigs *sigs, const struct sb_partial *parts, size_t *sig_at, size_t from,
	size_t n, struct sb_error *err)
{
	struct sb_diff part = { .v = plan->diff.v + from, .n = n };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 256u << 20);
	r = sb_proto_plan_encode(&part, plan->steps + from, &b, err);
	if (r == 0)
		r = sb_wire_send_blob(run->link->w, SB_MSG_PLAN, b.data, b.len, err);
	for (size_t i = from; r == 0 && i < from + n; i++) {
		struct sb_want w = { 0 };
		struct sb_entry *e;

		if (plan->steps[i].method != SB_METHOD_DATA)
			continue;
		fill_want(run, sigs, parts, sig_at, &plan->diff.v[i], &w);
		e = sb_manifest_find(run->local->scan.manifest, w.source ? w.source : w.path);
		if (e && e->type == SB_ENTRY_FILE)
			r = sb_send_file(s, &w, e, err);
		else
			r = sb_send_skip(s, SB_SENT_VANISHED, err);
	}
	return r;
}

static int
send_all(struct sb_run *run, const struct sb_plan *plan, const struct sigs *sigs,
	struct sb_error *err)
{
	struct sb_send_opts o = SB_SEND_OPTS_INIT;
	sb_auto(sb_partial) struct sb_partial parts = { 0 };
	sb_auto(sb_send) struct sb_send *s = NULL;
	size_t sig_at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < run->far.n_have; i++)
		r = sb_partial_add(&parts, &run->far.have[i].digest, run->far.have[i].size, err);
	if (r < 0)
		return r;
	sb_partial_sort(&parts);

	o.level = run->o->level;
	o.keep_all = run->keep_all;
	o.open = run->near;
	if (run->near && o.level == SB_PACK_LEVEL_AUTO)
		o.level = 0;
	o.no_delta = run->no_delta;
	o.store = run->no_delta ? NULL : sb_replica_store(run->local);
	o.recipes = run->no_delta ? -1 : sb_replica_recipes(run->local);
	o.progress = sb_run_progress;
	o.arg = run;
	s = sb_send_new(run->local, run->link->w, &o, err);
	if (!s)
		return SB_E_NOMEM;
	for (size_t at = 0; r == 0 && at < plan->diff.n;) {
		size_t n = sb_plan_piece_len(plan, at, PIECE);

		r = send_piece(run, plan, s, sigs, &parts, &sig_at, at, n, err);
		at += n;
	}
	if (r == 0)
		r = sb_send_finish(s, err);
	run->res->bytes_transferred += sb_send_stats(s)->bytes;
	run->res->files_delta += sb_send_stats(s)->patches;
	if (sb_send_stats(s)->attrs)
		sb_log(&run->o->log, SB_LOG_WARN, "send",
			"%llu files have extended attributes or access control lists, which are "
			"not "
			"synced",
			(unsigned long long)sb_send_stats(s)->attrs);
	return r;
}

/* Content that could not be made over there from what was there: sent whole now. */
static int
send_needed(struct sb_run *run, const struct sb_strlist *need, struct sb_error *err)
{
	struct sb_send_opts o = SB_SEND_OPTS_INIT;
	sb_auto(sb_send) struct sb_send *s = sb_send_new(run->local, run->link->w, &o, err);
	int r = s ? 0 : SB_E_NOMEM;

	for (size_t i = 0; r == 0 && i < need->n; i++) {
		struct sb_want w = { .path = need->v[i],
			.source = (char *)sb_run_source(run, need->v[i]),
			.whole = true };
		struct sb_entry *e =
			sb_manifest_find(run->local->scan.manifest, w.source ? w.source : w.path);

		/*
		 * In a two-way sync the far side may need what only it had: then it is lost to this
		 * run, not to the next.
		 */
		if (e && e->type == SB_ENTRY_FILE)
			r = sb_send_file(s, &w, e, err);
		else
			r = sb_send_skip(s, SB_SENT_VANISHED, err);
	}
	return r < 0 ? r : sb_send_finish(s, err);
}

static int
send_commit(struct sb_run *run, struct sb_error *err)
{
	struct sb_commit_req req = {
		.durability = (uint8_t)run->o->durability,
		.remember = true,
		.set_root = run->set_root,
		.root_mode = run->local->scan.manifest->root.mode,
		.root_mtime = run->local->scan.manifest->root.mtime,
	};
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 64);
	sb_proto_commit_encode(&req, &b);
	r = sb_buf_check(&b, "COMMIT", err);
	if (r == 0)
		r = sb_wire_send(run->link->w, SB_MSG_COMMIT, b.data, b.len, err);
	return r < 0 ? r : sb_wire_send_proof(run->link->w, err);
}

/* Remembers the large files that were sent, while the far side puts them together. */
static void
keep_recipes(struct sb_run *run, const struct sb_plan *plan)
{
	int recipes = run->no_delta ? -1 : sb_replica_recipes(run->local);

	for (size_t i = 0; recipes >= 0 && i < plan->diff.n; i++) {
		const struct sb_change *ch = &plan->diff.v[i];
		const struct sb_entry *e, *old;
		sb_autoclose int fd = -1;

		if (plan->steps[i].method != SB_METHOD_DATA ||
			ch->entry.size <= SB_RECIPE_MIN_SIZE || sb_run_source(run, ch->path))
			continue;
		e = sb_manifest_find(run->local->scan.manifest, ch->path);
		if (!e || e->type != SB_ENTRY_FILE || !sb_digest_known(&e->digest) ||
			sb_recipe_has(recipes, &e->digest))
			continue;
		old = sb_manifest_find(run->far.manifest, ch->path);
		fd = sb_path_open(run->local->rootfd, ch->path, O_RDONLY | O_NONBLOCK, 0, NULL);
		if (fd >= 0)
			(void)sb_recipe_keep(recipes, &e->digest, fd, e->size,
				old && old->type == SB_ENTRY_FILE ? &old->digest : NULL,
				run->o->cancel, NULL);
	}
}

/* The change at `path`, in a plan in pre-order; NULL when there is none. */
static const struct sb_change *
find_change(const struct sb_plan *plan, const char *path)
{
	size_t lo = 0, hi = plan->diff.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = sb_diff_order(plan->diff.v[mid].path, path);

		/* A deletion may stand before what takes its place. */
		if (c < 0 || (c == 0 && plan->diff.v[mid].del))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < plan->diff.n && strcmp(plan->diff.v[lo].path, path) == 0 ? &plan->diff.v[lo] :
									       NULL;
}

/* What the far side may still need: files whose content it was to have, each of them once. */
static int
check_needed(const struct sb_plan *plan, const struct sb_strlist *need, bool *asked,
	struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < need->n; i++) {
		const struct sb_change *c = find_change(plan, need->v[i]);
		size_t at = c ? (size_t)(c - plan->diff.v) : 0;

		if (!c || c->del || c->entry.type != SB_ENTRY_FILE || asked[at] ||
			(plan->steps[at].method != SB_METHOD_DATA &&
				plan->steps[at].method != SB_METHOD_CLONE &&
				plan->steps[at].method != SB_METHOD_LEFTOVER))
			return sb_fail(err, SB_E_PROTO,
				"the far side asks for a file that it was not to get, or for one "
				"twice");
		asked[at] = true;
		r = sb_work_alive(err);
	}
	return r;
}

/* A result that the plan cannot have had is none. */
static int
check_result(const struct sb_run *run, const struct sb_plan *plan,
	const struct sb_commit_result *res, struct sb_error *err)
{
	uint64_t puts = plan->diff.n, there = run->far.manifest->count, bytes = 0;

	for (size_t i = 0; i < plan->diff.n; i++) {
		uint64_t size = plan->diff.v[i].del || plan->diff.v[i].entry.type != SB_ENTRY_FILE ?
			0 :
			plan->diff.v[i].entry.size;

		bytes = size > UINT64_MAX / 8 - bytes ? UINT64_MAX / 8 : bytes + size;
	}
	/* What was staged in vain and came again counts again. */
	if (res->files > puts || res->dirs > puts || res->moved > puts ||
		res->deleted > there + puts || res->bytes > bytes * 8)
		return sb_fail(err, SB_E_PROTO, "the far side counts more than it was sent");
	return 0;
}

/* The most rows and bytes that an answer to COMMIT has. */
static size_t
most_rows(const struct sb_run *run, const struct sb_plan *plan)
{
	uint64_t n = 2 * ((uint64_t)plan->diff.n + run->far.manifest->count) + 16;

	return n > SIZE_MAX / 2 ? SIZE_MAX / 2 : (size_t)n;
}

static int
take_answer(struct sb_run *run, const struct sb_plan *plan, uint8_t *type, struct sb_buf *b,
	struct sb_error *err)
{
	size_t rows = most_rows(run, plan), len,
	       max = rows < ANSWER_MAX / ROW_MAX ? rows * ROW_MAX : ANSWER_MAX;
	const uint8_t *p;
	int r = sb_wire_recv(run->link->w, type, &p, &len, err);

	if (r < 0)
		return r;
	if (*type != SB_MSG_NEED && *type != SB_MSG_RESULT)
		return sb_fail(err, SB_E_PROTO, "the far side answered the commit with message %u",
			*type);
	r = sb_wire_recv_blob(run->link->w, *type, p, len, max, b, err);
	return r < 0 ? r : sb_wire_expect(run->link->w, SB_MSG_PROOF, &p, &len, err);
}

/* COMMIT until RESULT; each NEED is served. */
static int
finish(struct sb_run *run, const struct sb_plan *plan, struct sb_commit_result *res,
	struct sb_error *err)
{
	sb_autofree bool *asked = calloc(plan->diff.n + 1, sizeof *asked);

	if (!asked)
		return sb_fail(err, SB_E_NOMEM, "push: out of memory");
	for (int round = 0; round < 4; round++) {
		sb_auto(sb_strlist) struct sb_strlist need = { 0 };
		sb_auto(sb_buf) struct sb_buf b = { 0 };
		uint8_t type;
		int r;

		sb_buf_init(&b, 0);
		/* Whoever knows the result before it got everything has made it up. */
		r = sb_wire_idle(run->link->w, err);
		if (r == 0)
			r = send_commit(run, err);
		if (r < 0)
			return sb_run_send_failed(run, r, err);
		if (round == 0)
			keep_recipes(run, plan);
		r = take_answer(run, plan, &type, &b, err);
		if (r == 0 && type == SB_MSG_RESULT)
			r = sb_proto_result_decode(b.data, b.len, most_rows(run, plan), res, err);
		if (r < 0 || type == SB_MSG_RESULT)
			return r < 0 ? r : check_result(run, plan, res, err);
		r = sb_proto_paths_decode(b.data, b.len, &need, err);
		if (r == 0)
			r = check_needed(plan, &need, asked, err);
		/* The far side has staged and verified, and found something missing. */
		sb_step_was(&run->clock, SB_STEP_VERIFY);
		sb_run_step(run, SB_STEP_TRANSFER);
		if (r == 0)
			r = send_needed(run, &need, err);
		sb_run_step(run, SB_STEP_COMMIT);
		if (r < 0)
			return r;
	}
	return sb_fail(err, SB_E_PROTO, "the far side keeps asking for files");
}

int
sb_run_check_tree(const struct sb_run *run, const struct sb_manifest *want,
	const struct sb_commit_result *res, struct sb_error *err)
{
	/* A directory that moves as a whole may bring hard links along that are not known here. */
	if (res->n_left || sb_digest_eq(&res->id, &want->id) || want->n_leaders ||
		run->far.manifest->n_leaders)
		return 0;
	return sb_fail(err, SB_E_PROTO,
		"%s says that its tree is another one than was sent: run it again, with --checksum "
		"if that does not help",
		run->far_name);
}

int
sb_run_plan_push(struct sb_run *run, struct sb_diff *d, struct sb_plan *out, struct sb_error *err)
{
	struct sb_plan_opts po = SB_PLAN_OPTS_INIT;
	int r;

	po.have = run->far.have;
	po.n_have = run->far.n_have;
	r = sb_plan_make(d, run->far.manifest, &po, out, err);
	return r < 0 ? r :
		       sb_plan_check_brake(out, run->far.manifest, run->o->max_delete, true,
			       run->far_name, err);
}

int
sb_run_push(struct sb_run *run, const struct sb_plan *plan, struct sb_commit_result *res,
	struct sb_error *err)
{
	struct sigs sigs = { 0 };
	int r;

	if (plan->data_bytes > run->far.reply.free_bytes && run->far.reply.free_bytes)
		return sb_fail(err, SB_E_NOSPACE,
			"%s needs %llu bytes, %llu are free: make room there; nothing was changed",
			run->far_name, (unsigned long long)plan->data_bytes,
			(unsigned long long)run->far.reply.free_bytes);
	r = sb_sync_result_planned(run->res, plan, run->far.manifest, "runtime", err);
	if (r < 0)
		return r;
	sb_run_expect(run, plan);
	sb_run_step(run, SB_STEP_TRANSFER);
	r = request_sigs(run, plan, &sigs, err);
	if (r == 0) {
		r = send_all(run, plan, &sigs, err);
		if (r < 0)
			r = sb_run_send_failed(run, r, err);
	}
	sigs_free(&sigs);
	if (r < 0)
		return r;
	sb_run_step(run, SB_STEP_COMMIT);
	r = sb_link_before_commit(run->link, err);
	if (r == 0)
		r = finish(run, plan, res, err);
	if (r == 0)
		r = sb_link_after_commit(run->link, err);
	return r < 0 ? r : sb_sync_result_commit(run->res, plan, res, err);
}
