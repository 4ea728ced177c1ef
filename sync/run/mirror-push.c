/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/mirror-int.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <base/path.h>
#include <base/strlist.h>
#include <sync/codec/delta.h>
#include <sync/codec/recipe.h>
#include <sync/replica/send.h>
#include <sync/tree/diff.h>

#define PIECE 4096u
#define SIG_MIN SB_DELTA_MIN_SIZE
#define PARTIAL_MIN (1u << 20)

/*
 * Signatures of the receiver's copies, for files that are worth a delta and whose old bytes we do
 * not have.
 */
struct sigs {
	struct sb_strlist paths;
	struct sb_buf blob;
	const uint8_t **sig; /* into the blob */
	size_t *len;
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
request_sigs(struct mirror *m, struct sigs *s, struct sb_error *err)
{
	struct sb_store *store = m->no_delta ? NULL : sb_replica_store(m->local);
	int recipes = m->no_delta ? -1 : sb_replica_recipes(m->local);
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_cursor c;
	const uint8_t *p;
	size_t len;
	int r;

	for (size_t i = 0; !m->no_delta && i < m->plan.diff.n; i++) {
		const struct sb_change *ch = &m->plan.diff.v[i];
		const struct sb_entry *old;

		if (m->plan.steps[i].method != SB_METHOD_DATA || ch->entry.size < SIG_MIN)
			continue;
		old = sb_manifest_find(m->remote.manifest, ch->path);
		if (!old || old->type != SB_ENTRY_FILE || old->size < SIG_MIN ||
			(store && sb_store_has(store, &old->digest)))
			continue;
		if (ch->entry.size > SB_RECIPE_MIN_SIZE && recipes >= 0 &&
			sb_recipe_has(recipes, &old->digest))
			continue;
		sb_strlist_add(&s->paths, ch->path);
	}
	r = sb_strlist_check(&s->paths, err);
	if (r < 0 || !s->paths.n)
		return r;
	sb_buf_init(&b, 256u << 20);
	sb_proto_paths_encode((const char *const *)s->paths.v, s->paths.n, &b);
	r = sb_buf_check(&b, "SIGREQ", err);
	if (r == 0)
		r = sb_wire_send_blob(m->link->w, SB_MSG_SIGREQ, b.data, b.len, err);
	if (r == 0)
		r = sb_wire_flush(m->link->w, err);
	if (r == 0)
		r = sb_wire_expect(m->link->w, SB_MSG_SIGS, &p, &len, err);
	if (r == 0)
		r = sb_wire_recv_blob(m->link->w, SB_MSG_SIGS, p, len, 1u << 30, &s->blob, err);
	if (r == 0)
		r = sb_wire_expect(m->link->w, SB_MSG_PROOF, &p, &len, err);
	if (r < 0)
		return r;
	s->sig = calloc(s->paths.n, sizeof *s->sig);
	s->len = calloc(s->paths.n, sizeof *s->len);
	if (!s->sig || !s->len)
		return sb_fail(err, SB_E_NOMEM, "signatures: out of memory");
	sb_cursor_init(&c, s->blob.data, s->blob.len);
	for (size_t i = 0; i < s->paths.n; i++)
		s->sig[i] = sb_cursor_bytes(&c, s->blob.len, &s->len[i]);
	return c.bad ? sb_fail(err, SB_E_PROTO, "the far side sent damaged signatures") : 0;
}

/* What the receiver holds that helps with this file. */
static void
fill_want(struct mirror *m, const struct sigs *s, size_t *at, const struct sb_change *ch,
	struct sb_want *w)
{
	const struct sb_entry *old = sb_manifest_find(m->remote.manifest, ch->path);

	w->path = (char *)ch->path;
	w->source = (char *)mirror_source(m, ch->path);
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
	if (ch->entry.size <= PARTIAL_MIN)
		return;
	for (size_t i = 0; i < m->remote.n_have; i++)
		if (m->remote.have[i].size >= PARTIAL_MIN &&
			m->remote.have[i].size < ch->entry.size &&
			m->remote.have[i].size > w->have) {
			w->have = m->remote.have[i].size;
			w->have_digest = m->remote.have[i].digest;
		}
}

static void
on_progress(uint64_t files, uint64_t bytes, void *arg)
{
	struct mirror *m = arg;

	m->progress.files = files;
	m->progress.bytes = bytes;
	if (m->o->progress)
		m->o->progress(&m->progress, m->o->progress_arg);
}

static int
send_piece(struct mirror *m, struct sb_send *s, const struct sigs *sigs, size_t *sig_at,
	size_t from, size_t n, struct sb_error *err)
{
	struct sb_diff part = { .v = m->plan.diff.v + from, .n = n };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 256u << 20);
	r = sb_proto_plan_encode(&part, m->plan.steps + from, &b, err);
	if (r == 0)
		r = sb_wire_send_blob(m->link->w, SB_MSG_PLAN, b.data, b.len, err);
	for (size_t i = from; r == 0 && i < from + n; i++) {
		struct sb_want w = { 0 };
		struct sb_entry *e;

		if (m->plan.steps[i].method != SB_METHOD_DATA)
			continue;
		fill_want(m, sigs, sig_at, &m->plan.diff.v[i], &w);
		e = sb_manifest_find(m->local->scan.manifest, w.source ? w.source : w.path);
		if (e && e->type == SB_ENTRY_FILE)
			r = sb_send_file(s, &w, e, err);
		else
			r = sb_send_skip(s, SB_SENT_VANISHED, err);
	}
	return r;
}

static int
send_all(struct mirror *m, const struct sigs *sigs, struct sb_error *err)
{
	struct sb_send_opts o = SB_SEND_OPTS_INIT;
	sb_auto(sb_send) struct sb_send *s = NULL;
	size_t sig_at = 0;
	int r = 0;

	o.level = m->o->level;
	o.keep_all = m->keep_all;
	o.open = m->near;
	if (m->near && o.level == SB_PACK_LEVEL_AUTO)
		o.level = 0;
	o.no_delta = m->no_delta;
	o.store = m->no_delta ? NULL : sb_replica_store(m->local);
	o.recipes = m->no_delta ? -1 : sb_replica_recipes(m->local);
	o.progress = on_progress;
	o.arg = m;
	s = sb_send_new(m->local, m->link->w, &o, err);
	if (!s)
		return SB_E_NOMEM;
	for (size_t at = 0; r == 0 && at < m->plan.diff.n;) {
		size_t n = sb_plan_piece_len(&m->plan, at, PIECE);

		r = send_piece(m, s, sigs, &sig_at, at, n, err);
		at += n;
	}
	if (r == 0)
		r = sb_send_finish(s, err);
	m->res->bytes_transferred += sb_send_stats(s)->bytes;
	m->res->files_delta += sb_send_stats(s)->patches;
	return r;
}

/* Content that could not be made over there from what was there: sent whole now. */
static int
send_needed(struct mirror *m, const struct sb_strlist *need, struct sb_error *err)
{
	struct sb_send_opts o = SB_SEND_OPTS_INIT;
	sb_auto(sb_send) struct sb_send *s = sb_send_new(m->local, m->link->w, &o, err);
	int r = s ? 0 : SB_E_NOMEM;

	for (size_t i = 0; r == 0 && i < need->n; i++) {
		struct sb_want w = { .path = need->v[i],
			.source = (char *)mirror_source(m, need->v[i]),
			.whole = true };
		struct sb_entry *e =
			sb_manifest_find(m->local->scan.manifest, w.source ? w.source : w.path);

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
send_commit(struct mirror *m, struct sb_error *err)
{
	struct sb_commit_req req = {
		.durability = (uint8_t)m->o->durability,
		.remember = true,
		.set_root = m->set_root,
		.root_mode = m->local->scan.manifest->root.mode,
		.root_mtime = m->local->scan.manifest->root.mtime,
	};
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 64);
	sb_proto_commit_encode(&req, &b);
	r = sb_buf_check(&b, "COMMIT", err);
	if (r == 0)
		r = sb_wire_send(m->link->w, SB_MSG_COMMIT, b.data, b.len, err);
	return r < 0 ? r : sb_wire_send_proof(m->link->w, err);
}

/* Remembers the large files that were sent, while the far side puts them together. */
static void
keep_recipes(struct mirror *m)
{
	int recipes = m->no_delta ? -1 : sb_replica_recipes(m->local);

	for (size_t i = 0; recipes >= 0 && i < m->plan.diff.n; i++) {
		const struct sb_change *ch = &m->plan.diff.v[i];
		const struct sb_entry *e, *old;
		sb_autoclose int fd = -1;

		if (m->plan.steps[i].method != SB_METHOD_DATA ||
			ch->entry.size <= SB_RECIPE_MIN_SIZE || mirror_source(m, ch->path))
			continue;
		e = sb_manifest_find(m->local->scan.manifest, ch->path);
		if (!e || e->type != SB_ENTRY_FILE || !sb_digest_known(&e->digest) ||
			sb_recipe_has(recipes, &e->digest))
			continue;
		old = sb_manifest_find(m->remote.manifest, ch->path);
		fd = sb_path_open(m->local->rootfd, ch->path, O_RDONLY | O_NONBLOCK, 0, NULL);
		if (fd >= 0)
			(void)sb_recipe_keep(recipes, &e->digest, fd, e->size,
				old && old->type == SB_ENTRY_FILE ? &old->digest : NULL,
				m->o->cancel, NULL);
	}
}

/* COMMIT until RESULT; each NEED is served. */
static int
finish(struct mirror *m, struct sb_commit_result *res, struct sb_error *err)
{
	for (int round = 0; round < 4; round++) {
		sb_auto(sb_strlist) struct sb_strlist need = { 0 };
		sb_auto(sb_buf) struct sb_buf b = { 0 };
		const uint8_t *p;
		uint8_t type;
		size_t len;
		int r;

		sb_buf_init(&b, 0);
		r = send_commit(m, err);
		if (r < 0)
			return mirror_send_failed(m, r, err);
		if (round == 0)
			keep_recipes(m);
		r = sb_wire_recv(m->link->w, &type, &p, &len, err);
		if (r < 0)
			return r;
		if (type != SB_MSG_NEED && type != SB_MSG_RESULT)
			return sb_fail(err, SB_E_PROTO,
				"the far side answered the commit with message %u", type);
		r = sb_wire_recv_blob(m->link->w, type, p, len, 1u << 30, &b, err);
		if (r == 0)
			r = sb_wire_expect(m->link->w, SB_MSG_PROOF, &p, &len, err);
		if (r < 0)
			return r;
		if (type == SB_MSG_RESULT)
			return sb_proto_result_decode(b.data, b.len, res, err);
		r = sb_proto_paths_decode(b.data, b.len, &need, err);
		if (r == 0)
			r = send_needed(m, &need, err);
		if (r < 0)
			return r;
	}
	return sb_fail(err, SB_E_PROTO, "the far side keeps asking for files");
}

/* Whose bytes do not travel in the stream, and so are not hashed on the way. */
static bool
not_streamed(const char *path, const struct sb_entry *e, void *arg)
{
	(void)path;
	(void)arg;
	return !e->size || e->link;
}

int
mirror_hash_rest(struct mirror *m, struct sb_error *err)
{
	struct sb_scan_opts so = SB_SCAN_OPTS_INIT;
	/* What an interrupted run left is found by its digest. */
	bool all = m->remote.reply.count > 0 || m->remote.n_have;
	int r;

	if (!m->local->scan.unhashed)
		return 0;
	so.cancel = m->o->cancel;
	so.jobs = m->o->jobs;
	r = sb_scan_hash_rest(m->local->rootfd, &so, &m->local->scan, all ? NULL : not_streamed,
		NULL, err);
	if (r == 0 && m->local->scan.unhashed)
		r = sb_manifest_finish(m->local->scan.manifest, err);
	return r;
}

int
mirror_plan_push(struct mirror *m, struct sb_diff *d, struct sb_error *err)
{
	struct sb_plan_opts po = SB_PLAN_OPTS_INIT;
	int r;

	po.have = m->remote.have;
	po.n_have = m->remote.n_have;
	r = sb_plan_make(d, m->remote.manifest, &po, &m->plan, err);
	return r < 0 ? r :
		       sb_plan_check_brake(&m->plan, m->remote.manifest, m->o->max_delete,
			       m->far_name, err);
}

int
mirror_send_plan(struct mirror *m, struct sb_commit_result *res, struct sb_error *err)
{
	struct sigs sigs = { 0 };
	int r;

	if (m->plan.data_bytes > m->remote.reply.free_bytes && m->remote.reply.free_bytes)
		return sb_fail(err, SB_E_NOSPACE,
			"%s needs %llu bytes, %llu are free: make room there; nothing was changed",
			m->far_name, (unsigned long long)m->plan.data_bytes,
			(unsigned long long)m->remote.reply.free_bytes);
	mirror_phase(m, SB_PHASE_TRANSFER);
	m->progress.files_total = m->plan.n_data;
	m->progress.bytes_total = m->plan.data_bytes;
	r = request_sigs(m, &sigs, err);
	if (r == 0) {
		r = send_all(m, &sigs, err);
		if (r < 0)
			r = mirror_send_failed(m, r, err);
	}
	sigs_free(&sigs);
	if (r < 0)
		return r;
	mirror_phase(m, SB_PHASE_COMMIT);
	r = sb_link_before_commit(m->link, err);
	if (r == 0)
		r = finish(m, res, err);
	if (r == 0)
		r = sb_link_after_commit(m->link, err);
	return r < 0 ? r : sb_sync_result_commit(m->res, res, err);
}

/* Both sides are equal now: the next run starts from here. */
static int
remember(struct mirror *m, struct sb_error *err)
{
	struct sb_manifest *copy;

	sb_replica_save_cache(m->local, m->local->scan.manifest);
	copy = m->local->scan.manifest;
	m->local->scan.manifest = NULL;
	return sb_replica_save_base(m->local, copy, &m->rules_digest, err);
}

static bool
root_differs(const struct mirror *m)
{
	const struct sb_entry *root = &m->local->scan.manifest->root;

	return (m->remote.reply.flags & SB_SCAN_MISSING) ||
		m->remote.reply.root_mtime != root->mtime ||
		m->remote.reply.root_mode != root->mode;
}

int
mirror_push(struct mirror *m, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	int r = mirror_hash_rest(m, err);

	if (r == 0)
		r = sb_diff_make(m->remote.manifest, m->local->scan.manifest, &d, err);
	if (r < 0)
		return r;
	mirror_keep_unseen(&d, m->local->scan.skipped, m->local->scan.n_skipped);
	r = mirror_plan_push(m, &d, err);
	if (r < 0)
		return r;
	m->res->entries = m->local->scan.manifest->count;
	if (m->o->dry_run)
		return sb_sync_result_changes(m->res, &m->plan, m->remote.manifest, "runtime", err);
	if (!m->plan.diff.n && !root_differs(m)) {
		if (m->local->scan.hashed_files)
			sb_replica_save_cache(m->local, m->local->scan.manifest);
		if (!(m->remote.reply.flags & SB_SCAN_BASE_KNOWN) && !m->local->scan.n_skipped) {
			r = sb_wire_send(m->link->w, SB_MSG_REMEMBER, NULL, 0, err);
			if (r == 0)
				r = remember(m, err);
		}
		return r;
	}
	m->set_root = true;
	r = mirror_send_plan(m, &res, err);
	sb_plan_free(&m->plan); /* of a large tree it is as large as the manifest, which is encoded
				   next */
	if (r == 0)
		r = sb_manifest_finish(m->local->scan.manifest, err);
	if (r < 0)
		return r;
	m->local->scan.unhashed = 0;
	if (res.n_left || !sb_digest_eq(&res.id, &m->local->scan.manifest->id)) {
		sb_replica_save_cache(m->local, m->local->scan.manifest);
		return 0;
	}
	return remember(m, err);
}
