/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/hsess.h>

#include <errno.h>
#include <string.h>

#include <base/cond.h>
#include <base/random.h>
#include <base/str.h>
#include <host/grow.h>
#include <host/proc.h>
#include <host/runtime/runtime.h>

/* How long a wait may sleep before it looks at a cancel token, which cannot wake a condition. */
#define WAIT_SLICE_MS 20

struct sb_hsess *
sb_hsess_new(const char *id, struct sb_error *err)
{
	uint8_t nonce[SB_HOST_NONCE_LEN / 2];
	struct sb_hsess *s;
	pthread_rwlockattr_t first;

	if (sb_random(nonce, sizeof nonce, err) < 0)
		return NULL;
	s = calloc(1, sizeof *s);
	if (!s) {
		(void)sb_fail(err, SB_E_NOMEM, "session %s", id);
		return NULL;
	}
	(void)snprintf(s->id, sizeof s->id, "%s", id);
	(void)sb_str_hex(nonce, sizeof nonce, s->nonce);
	atomic_init(&s->refs, 1);
	(void)pthread_mutex_init(&s->mu, NULL);
	(void)pthread_mutex_init(&s->network_mu, NULL);
	/* Who exchanges the workspace is not kept waiting by who comes later. */
	(void)pthread_rwlockattr_init(&first);
	(void)pthread_rwlockattr_setkind_np(&first, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
	(void)pthread_rwlock_init(&s->place, &first);
	(void)pthread_rwlockattr_destroy(&first);
	sb_cond_init(&s->cv);
	sb_filepool_init(&s->files);
	return s;
}

struct sb_hsess *
sb_hsess_ref(struct sb_hsess *s)
{
	atomic_fetch_add(&s->refs, 1);
	return s;
}

void
sb_hsess_unref(struct sb_hsess *s)
{
	if (!s || atomic_fetch_sub(&s->refs, 1) != 1)
		return;
	for (size_t i = 0; i < s->n_snaps; i++)
		sb_snap_free(s->snaps[i]);
	for (size_t i = 0; i < s->n_procs; i++)
		sb_host_proc_unref(s->procs[i]);
	free(s->snaps);
	free(s->procs);
	free(s->mountpoint);
	free(s->base);
	free(s->parent_id);
	free(s->parent_snap);
	free(s->why);
	free(s->rollback_to);
	free(s->policy);
	free(s->cold);
	sb_strmap_free(&s->labels);
	sb_filepool_free(&s->files);
	(void)pthread_cond_destroy(&s->cv);
	(void)pthread_mutex_destroy(&s->mu);
	(void)pthread_mutex_destroy(&s->network_mu);
	(void)pthread_rwlock_destroy(&s->place);
	free(s);
}

int
sb_hsess_wait(struct sb_hsess *s, const struct sb_host_call *call, sb_deadline d, const char *what,
	struct sb_error *err)
{
	const struct sb_cancel *cancel = call ? call->cancel : NULL;
	sb_deadline end = call ? sb_deadline_min(call->deadline, d) : d;
	int r = sb_check_alive(cancel, end, what, err);

	if (r < 0)
		return r;
	if (cancel)
		end = sb_deadline_min(end, sb_deadline_in(WAIT_SLICE_MS));
	sb_cond_wait_until(&s->cv, &s->mu, end);
	return 0;
}

static int
not_found(const struct sb_hsess *s, struct sb_error *err)
{
	return sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s", sb_code_text(SB_E_SESSION_NOT_FOUND),
		s->id);
}

int
sb_hsess_enter(struct sb_hsess *s, enum sb_host_op op, const struct sb_host_call *call,
	struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	for (;;) {
		if (s->gone)
			r = not_found(s, err);
		else
			r = sb_host_state_admit(op, s->state, s->id, err);
		if (r < 0 || !s->slot_taken)
			break;
		r = sb_hsess_wait(s, call, SB_NEVER, "another operation of the session", err);
		if (r < 0)
			break;
	}
	/* Somebody newer may have come while we waited. */
	if (r == 0 && call && call->fence && call->fence < s->fence)
		r = sb_fail(err, SB_E_FENCED, "%s: session %s has seen %llu, this call has %llu",
			sb_code_text(SB_E_FENCED), s->id, (unsigned long long)s->fence,
			(unsigned long long)call->fence);
	if (r == 0)
		s->slot_taken = true;
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

void
sb_hsess_leave(struct sb_hsess *s)
{
	(void)pthread_mutex_lock(&s->mu);
	s->slot_taken = false;
	(void)pthread_cond_broadcast(&s->cv);
	(void)pthread_mutex_unlock(&s->mu);
}

int
sb_hsess_drain(struct sb_hsess *s, const struct sb_host_call *call, sb_deadline d,
	struct sb_error *err)
{
	while (s->active_tools > 0) {
		int r;

		if (sb_deadline_passed(d))
			return sb_fail(err, SB_E_TOOLS_IN_FLIGHT,
				"%s: timed out waiting for %u in-flight tools",
				sb_code_text(SB_E_TOOLS_IN_FLIGHT), s->active_tools);
		r = sb_hsess_wait(s, call, d, "running tools", err);
		if (r < 0 && !sb_deadline_passed(d))
			return r;
	}
	return 0;
}

void
sb_hsess_kill_tools(struct sb_hsess *s)
{
	for (struct sb_hsess_tool *t = s->tools; t; t = t->next)
		sb_cancel_request(t->kill);
}

void
sb_hsess_kill_looks(struct sb_hsess *s)
{
	for (struct sb_hsess_tool *t = s->tools; t; t = t->next)
		if (t->again)
			sb_cancel_request(t->kill);
}

struct sb_snap *
sb_hsess_snap_find(const struct sb_hsess *s, const char *name)
{
	for (size_t i = s->n_snaps; i-- > 0;)
		if (strcmp(s->snaps[i]->name, name) == 0)
			return s->snaps[i];
	return NULL;
}

int
sb_hsess_snap_add(struct sb_hsess *s, struct sb_snap *snap, struct sb_error *err)
{
	struct sb_snap **v = sb_grow(s->snaps, s->n_snaps, &s->cap_snaps, sizeof *v);

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "snapshots of %s", s->id);
	s->snaps = v;
	v[s->n_snaps++] = snap;
	return 0;
}

void
sb_hsess_snap_drop(struct sb_hsess *s, struct sb_snap *snap)
{
	for (size_t i = 0; i < s->n_snaps; i++)
		if (s->snaps[i] == snap) {
			s->n_snaps--;
			memmove(s->snaps + i, s->snaps + i + 1,
				(s->n_snaps - i) * sizeof s->snaps[0]);
			break;
		}
	sb_snap_free(snap);
}

static int
copy_labels(const struct sb_strmap *m, struct sb_host_session *out)
{
	out->labels = m->n ? calloc(m->n, sizeof *out->labels) : NULL;
	if (m->n && !out->labels)
		return -1;
	for (size_t i = 0; i < m->n; i++) {
		out->labels[i].key = strdup(m->v[i].key);
		out->labels[i].value = strdup(m->v[i].value);
		out->n_labels = i + 1;
		if (!out->labels[i].key || !out->labels[i].value)
			return -1;
	}
	return 0;
}

int
sb_hsess_describe(const struct sb_hsess *s, struct sb_host_session *out, struct sb_error *err)
{
	struct sb_host_session o = { .state = s->state,
		.turn_count = s->turn,
		.created_ns = s->created_ns,
		.expires_ns = s->lasts_ms && s->state == SB_HOST_ACTIVE ?
			s->active_ns + s->lasts_ms * 1000000 :
			0,
		.quota = s->quota,
		.space_used = s->space_used,
		.active_tools = s->active_tools,
		.runtime = s->runtime,
		.network = s->network,
		.network_refused = s->refused };

	memcpy(o.id, s->id, sizeof o.id);
	memcpy(o.nonce, s->nonce, sizeof o.nonce);
	memcpy(o.network_last, s->refused_last, sizeof o.network_last);
	o.mountpoint = strdup(s->mountpoint ? s->mountpoint : "");
	o.base = strdup(s->base ? s->base : "");
	o.parent = s->parent_id ? sb_str_printf("%s@%s", s->parent_id, s->parent_snap) : strdup("");
	o.why = strdup(s->why ? s->why : "");
	o.policy = strdup(s->policy ? s->policy : "");
	for (size_t i = 0; i < s->n_snaps; i++)
		o.snap_count += s->snaps[i]->intent == SB_INTENT_NONE;
	for (size_t i = 0; i < s->n_procs; i++)
		o.processes += sb_host_proc_running(s->procs[i]);
	if (!o.mountpoint || !o.base || !o.parent || !o.why || !o.policy ||
		copy_labels(&s->labels, &o) < 0) {
		sb_host_session_clear(&o);
		return sb_fail(err, SB_E_NOMEM, "session %s", s->id);
	}
	*out = o;
	return 0;
}

int
sb_hsess_start(struct sb_hsess *s, const struct sb_runtime_cmd *cmd, const struct sb_spawn_opts *io,
	struct sb_child *out, struct sb_error *err)
{
	int r;

	(void)pthread_rwlock_rdlock(&s->place);
	r = s->rt->ops->start(s->rt, cmd, io, out, err);
	(void)pthread_rwlock_unlock(&s->place);
	return r;
}
