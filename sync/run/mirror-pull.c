/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/mirror-int.h>

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
#include <sync/plan/guard.h>
#include <sync/replica/inflow.h>
#include <sync/replica/receive.h>
#include <sync/tree/diff.h>

#define PIECE 4096u
#define PARTIAL_MIN (1u << 20)
#define HOLES_MAX (64ull << 30) /* sparse files may exceed the free space by this */

uint16_t
mirror_mode_mask(void)
{
	mode_t mask = umask(022);

	(void)umask(mask);
	return (uint16_t)(0777 & ~(mask & 0022));
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
guard_diff(struct mirror *m, struct sb_diff *d, struct sb_error *err)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < d->n && r == 0; i++) {
		struct sb_change *c = &d->v[i];
		const struct sb_entry *old = sb_manifest_find(m->local->scan.manifest, c->path);
		bool redirects =
			sb_guard_redirects(old ? old->type : 0, c->del ? 0 : c->entry.type);
		enum sb_guard g = sb_guard_path(c->path, redirects);

		if (g == SB_GUARD_GIT && !m->o->trust_git_config) {
			r = sb_sync_result_note(&m->res->conflicts, c->path, NULL,
				"changes git's configuration or hooks: not taken from a sandbox "
				"(--trust-git-config takes it)",
				err);
			continue;
		}
		if (!c->del && c->entry.type == SB_ENTRY_LINK &&
			sb_guard_escapes(c->path, c->target)) {
			r = sb_sync_result_note(&m->res->escaping_links, c->path, NULL,
				"leads out of the root", err);
			if (m->o->no_escaping_links)
				continue;
		}
		if (r == 0 && g == SB_GUARD_AUTOEXEC && !c->del && c->entry.type != SB_ENTRY_DIR)
			r = sb_sync_result_note(&m->res->auto_exec, c->path, NULL,
				"may run by itself", err);
		d->v[kept++] = *c;
	}
	d->n = kept;
	return r;
}

/*
 * Offers what we hold: old versions with their signatures, beginnings from an interrupted transfer.
 */
static int
fill_want(struct mirror *m, const struct sb_stage *st, const struct sb_change *ch,
	struct sb_want *w, struct sb_error *err)
{
	const struct sb_entry *old = sb_manifest_find(m->local->scan.manifest, ch->path);

	if (old && old->type == SB_ENTRY_FILE && !m->no_delta) {
		w->base = old->digest;
		w->base_size = old->size;
		if (old->size >= SB_DELTA_MIN_SIZE && ch->entry.size >= SB_DELTA_MIN_SIZE) {
			sb_autoclose int fd = sb_path_open(m->local->rootfd, ch->path,
				O_RDONLY | O_NONBLOCK, 0, NULL);
			sb_auto(sb_buf) struct sb_buf sig = { 0 };

			sb_buf_init(&sig, 64u << 20);
			if (fd >= 0 &&
				sb_delta_sign(fd, old->size, &sig, m->o->cancel, NULL) == 0) {
				w->sig = sb_buf_detach(&sig, &w->sig_len);
				if (!w->sig)
					return sb_fail(err, SB_E_NOMEM, "signature: out of memory");
			}
		}
	}
	for (size_t i = 0; ch->entry.size > PARTIAL_MIN && i < st->n_left; i++)
		if (st->left[i].size >= PARTIAL_MIN && st->left[i].size < ch->entry.size &&
			st->left[i].size > w->have) {
			w->have = st->left[i].size;
			w->have_digest = st->left[i].digest;
		}
	return 0;
}

static int
set_source(struct mirror *m, struct sb_want *w, struct sb_error *err)
{
	const char *source = mirror_source(m, w->path);

	if (source && !(w->source = strdup(source)))
		return sb_fail(err, SB_E_NOMEM, "list of wanted files: out of memory");
	return 0;
}

static int
send_wants(struct mirror *m, const struct sb_want_list *wants, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 1u << 30);
	sb_proto_want_encode(wants, &b);
	r = sb_buf_check(&b, "list of wanted files", err);
	if (r == 0)
		r = sb_wire_send_blob(m->link->w, SB_MSG_WANT, b.data, b.len, err);
	return r < 0 ? r : sb_wire_flush(m->link->w, err);
}

/* Reads the answer to WANT: rows and data, then the proof. */
static int
take_data(struct mirror *m, struct sb_receive *recv, struct sb_error *err)
{
	for (;;) {
		const uint8_t *p;
		uint8_t type;
		size_t len;
		int r = sb_wire_recv(m->link->w, &type, &p, &len, err);

		if (r < 0)
			return r;
		switch (type) {
		case SB_MSG_PROOF: return 0;
		case SB_MSG_ROWS: r = sb_receive_rows(recv, p, len, err); break;
		case SB_MSG_DATA: r = sb_inflow_run(m->link->w, recv, false, p, len, err); break;
		default:
			r = sb_fail(err, SB_E_PROTO, "the far side sent message %u instead of data",
				type);
		}
		if (r < 0)
			return r;
	}
}

static int
plan_into(struct mirror *m, struct sb_receive *recv, const struct sb_stage *st,
	struct sb_want_list *wants, struct sb_error *err)
{
	int r = 0;

	for (size_t at = 0; r == 0 && at < m->plan.diff.n;) {
		size_t n = sb_plan_piece_len(&m->plan, at, PIECE);
		struct sb_plan_piece piece = { .diff = { .v = m->plan.diff.v + at, .n = n },
			.steps = m->plan.steps + at };

		r = sb_receive_plan(recv, &piece, err);
		for (size_t i = at; r == 0 && i < at + n; i++) {
			struct sb_want *w;

			if (m->plan.steps[i].method != SB_METHOD_DATA)
				continue;
			r = sb_proto_want_add(wants, m->plan.diff.v[i].path, &w, err);
			if (r == 0)
				r = set_source(m, w, err);
			if (r == 0)
				r = fill_want(m, st, &m->plan.diff.v[i], w, err);
		}
		at += n;
	}
	return r;
}

static int
transfer(struct mirror *m, struct sb_receive *recv, struct sb_want_list *wants,
	struct sb_error *err)
{
	int r = 0;

	for (int round = 0; round < 4; round++) {
		sb_auto(sb_strlist) struct sb_strlist need = { 0 };

		if (wants->n) {
			r = send_wants(m, wants, err);
			if (r == 0)
				r = take_data(m, recv, err);
		}
		if (r == 0)
			r = sb_receive_settle(recv, &need, err);
		if (r < 0 || !need.n)
			return r;
		sb_proto_want_free(wants);
		for (size_t i = 0; r == 0 && i < need.n; i++) {
			struct sb_want *w;

			r = sb_proto_want_add(wants, need.v[i], &w, err);
			if (r == 0)
				r = set_source(m, w, err);
			if (r == 0)
				w->whole = true;
		}
	}
	return r < 0 ? r : sb_fail(err, SB_E_PROTO, "some files cannot be brought over");
}

int
mirror_plan_pull(struct mirror *m, struct sb_diff *d, const struct sb_stage *st,
	struct sb_error *err)
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
	r = sb_plan_make(d, m->local->scan.manifest, &po, &m->plan, err);
	if (r == 0)
		r = sb_plan_check_brake(&m->plan, m->local->scan.manifest, m->o->max_delete,
			m->near_name, err);
	free(have);
	return r;
}

static enum sb_durability
durability(const struct mirror *m)
{
	return m->o->durability == SB_SYNC_DURABLE_DEFAULT ? SB_DURABLE_FULL :
							     (enum sb_durability)m->o->durability;
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
check_room(const struct mirror *m, struct sb_error *err)
{
	uint64_t room = room_here(m->local->root), sum = 0;

	for (size_t i = 0; i < m->plan.diff.n; i++) {
		uint64_t size = m->plan.steps[i].method == SB_METHOD_DATA ?
			m->plan.diff.v[i].entry.size :
			0;

		sum = size > UINT64_MAX - sum ? UINT64_MAX : sum + size;
	}
	if (sum > room && sum - room > HOLES_MAX)
		return sb_fail(err, SB_E_NOSPACE,
			"%s has files of %llu bytes to send, %llu are free here: make room or "
			"exclude them; nothing was changed",
			m->far_name, (unsigned long long)sum, (unsigned long long)room);
	return 0;
}

int
mirror_receive_plan(struct mirror *m, struct sb_stage *stage, struct sb_commit_result *res,
	struct sb_error *err)
{
	struct sb_receive_opts ro = SB_RECEIVE_OPTS_INIT;
	sb_auto(sb_want_list) struct sb_want_list wants = { 0 };
	sb_auto(sb_receive) struct sb_receive *recv = NULL;
	sb_auto(sb_flush_early) struct sb_flush_early *flush = NULL;
	int r;

	r = check_room(m, err);
	if (r < 0) {
		sb_stage_free(stage);
		return r;
	}
	mirror_phase(m, SB_PHASE_TRANSFER);
	m->progress.files_total = m->plan.n_data;
	m->progress.bytes_total = m->plan.data_bytes;
	ro.mode_mask = mirror_mode_mask();
	ro.jobs = m->o->jobs;
	ro.store = m->keep ? sb_replica_store(m->local) : NULL;
	recv = sb_receive_new(m->local, stage, &ro, err);
	if (!recv)
		return err ? err->code : SB_E_SYS;
	r = plan_into(m, recv, stage, &wants, err);
	if (r == 0 && durability(m) >= SB_DURABLE_BARRIER)
		flush = sb_flush_early_start(m->local->rootfd);
	if (r == 0)
		r = transfer(m, recv, &wants, err);
	if (r < 0)
		return r;
	mirror_phase(m, SB_PHASE_COMMIT);
	sb_flush_early_stop(sb_steal(&flush));
	if (m->set_root)
		sb_receive_root_meta(recv, m->remote.reply.root_mode, m->remote.reply.root_mtime);
	r = sb_receive_commit(recv, durability(m), res, err);
	if (r < 0)
		return r;
	m->res->bytes_transferred += m->plan.data_bytes;
	sb_receive_update_cache(m->local, res);
	return sb_sync_result_commit(m->res, res, err);
}

int
mirror_pull(struct mirror *m, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	sb_auto(sb_stage) struct sb_stage *stage = NULL;
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	uint16_t mask = mirror_mode_mask();
	bool known = !(m->remote.reply.flags & SB_SCAN_LAZY);
	int r;

	/*
	 * Kept as the far side named it, before modes are masked: the next run's exchange starts
	 * from it.
	 */
	if (!m->o->dry_run && known && !(m->remote.reply.flags & SB_SCAN_BASE_KNOWN)) {
		struct sb_manifest *copy = sb_manifest_copy(m->remote.manifest, err);

		r = copy ? sb_replica_save_base(m->local, copy, &m->rules_digest, err) : SB_E_NOMEM;
		if (r == 0)
			r = sb_wire_send(m->link->w, SB_MSG_REMEMBER, NULL, 0, err);
		if (r < 0)
			return r;
	}
	r = sb_stage_find(m->local->readonly ? -1 : m->local->rootfd, m->o->cancel, &stage, err);
	if (r == 0)
		sb_retry_progress(m->retry, stage->n_left);
	if (r == 0)
		r = sb_manifest_walk(m->remote.manifest, mask_entry, &mask);
	if (r == 0)
		r = sb_manifest_finish(m->remote.manifest, err);
	if (r == 0)
		r = sb_diff_make(m->local->scan.manifest, m->remote.manifest, &d, err);
	if (r == 0) {
		mirror_keep_unseen(&d, m->remote.skipped, m->remote.n_skipped);
		r = guard_diff(m, &d, err);
	}
	if (r == 0)
		r = mirror_plan_pull(m, &d, stage, err);
	if (r < 0)
		return r;
	m->res->entries = m->remote.manifest->count;
	if (m->o->dry_run)
		return sb_sync_result_changes(m->res, &m->plan, m->local->scan.manifest, "local",
			err);
	if (!m->plan.diff.n && m->local->rootfd >= 0 &&
		m->local->scan.manifest->root.mtime == m->remote.reply.root_mtime) {
		if (m->local->scan.hashed_files)
			sb_replica_save_cache(m->local, m->local->scan.manifest);
		sb_commit_drop_leftovers(m->local->rootfd, &m->local->log);
		return 0;
	}
	m->set_root = true;
	return mirror_receive_plan(m, sb_steal(&stage), &res, err);
}
