/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-session.h>

#include <string.h>

#include <base/random.h>
#include <base/str.h>
#include <host/health.h>
#include <host/host-destroy.h>
#include <host/host-map.h>
#include <host/host-network.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/host-runtime.h>
#include <host/owner.h>
#include <host/storage/idcheck.h>
#include <host/worker.h>

static int
set_labels(struct sb_strmap *m, const struct sb_host_label *labels, size_t n, struct sb_error *err)
{
	for (size_t i = 0; i < n; i++) {
		int r = sb_strmap_set(m, labels[i].key, labels[i].value ? labels[i].value : "",
			err);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Random, so that an id can neither be guessed nor meet what an earlier run left. */
static int
make_id(char out[SB_HOST_ID_MAX + 1], struct sb_error *err)
{
	uint8_t rnd[8];
	char hex[17];
	int r = sb_random(rnd, sizeof rnd, err);

	if (r == 0)
		(void)snprintf(out, SB_HOST_ID_MAX + 1, "sess-%s",
			sb_str_hex(rnd, sizeof rnd, hex));
	return r;
}

/* The object of a new session with everything the request says; CREATING, its slot taken. */
static struct sb_hsess *
new_session(const struct sb_host_create_opts *o, const struct sb_host_origin *from,
	struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	char id[SB_HOST_ID_MAX + 1];
	int r;

	if (!o->id || !*o->id) {
		if (make_id(id, err) < 0)
			return NULL;
	} else {
		if (sb_idcheck_session(o->id, err) < 0)
			return NULL;
		(void)snprintf(id, sizeof id, "%s", o->id);
	}
	if (sb_idcheck_labels(o->labels, o->n_labels, err) < 0)
		return NULL;
	s = sb_hsess_new(id, err);
	if (!s)
		return NULL;
	s->state = SB_HOST_CREATING;
	s->slot_taken = true;
	s->created_ns = s->active_ns = sb_host_now_ns();
	s->quota = from->src.quota;
	s->turn = from->turn;
	r = set_labels(&s->labels, o->labels, o->n_labels, err);
	if (r == 0 && from->src.base && !(s->base = strdup(from->src.base)))
		r = sb_fail(err, SB_E_NOMEM, "session %s", id);
	if (r == 0 && from->parent) {
		s->parent_uid = from->parent->uid;
		s->parent_id = strdup(from->parent->id);
		s->parent_snap = strdup(from->parent_snap);
		if (!s->parent_id || !s->parent_snap)
			r = sb_fail(err, SB_E_NOMEM, "session %s", id);
	}
	return r < 0 ? NULL : sb_steal(&s);
}

/* Whoever wants this session waits for the database by its own lock; those who want another do not.
 */
int
sb_host_session_register(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&h->mu);
	if (h->closing)
		r = sb_fail(err, SB_E_SHUTTING_DOWN, "%s", sb_code_text(SB_E_SHUTTING_DOWN));
	else if (h->o.max_sessions > 0 && h->n_sessions >= h->o.max_sessions)
		r = sb_fail(err, SB_E_MAX_SESSIONS, "%s", sb_code_text(SB_E_MAX_SESSIONS));
	if (r == 0)
		r = sb_host_map_add(h, s, err);
	if (r == 0)
		(void)pthread_mutex_lock(&s->mu);
	(void)pthread_mutex_unlock(&h->mu);
	if (r < 0)
		return r;
	r = sb_hostdb_session_insert(h->db, s, err);
	if (r < 0) {
		s->gone = true;
		(void)pthread_cond_broadcast(&s->cv);
	}
	(void)pthread_mutex_unlock(&s->mu);
	if (r < 0) {
		(void)pthread_mutex_lock(&h->mu);
		sb_host_map_remove(h, s);
		(void)pthread_mutex_unlock(&h->mu);
	}
	return r;
}

/* What a session with network outbound may reach: its lists, its origin's, or all that is public.
 */
static int
settle_policy(struct sb_hsess *s, const struct sb_host_create_opts *o,
	const struct sb_host_origin *from, struct sb_error *err)
{
	struct sb_hsess *p = from->parent;
	bool listed = o->n_allow > 0 || o->n_deny > 0;

	if (s->network != SB_HOST_NET_OUTBOUND)
		return listed ?
			sb_fail(err, SB_E_INVAL, "lists need network outbound, not network %s",
				sb_host_network_name(s->network)) :
			0;
	if (p && !listed) {
		(void)pthread_mutex_lock(&p->mu);
		s->policy = p->policy ? strdup(p->policy) : NULL;
		(void)pthread_mutex_unlock(&p->mu);
	}
	return s->policy ? 0 :
			   sb_host_network_text(o->allow, o->n_allow, o->deny, o->n_deny, true,
				   &s->policy, err);
}

/* The storage is ready: active, unless a destroy came first. */
static int
activate(struct sb_host *h, struct sb_hsess *s, char *mountpoint, struct sb_host_session *out,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&s->mu);
	free(s->mountpoint);
	s->mountpoint = mountpoint;
	if (s->state == SB_HOST_CREATING)
		r = sb_host_op_set_state(h, s, SB_HOST_ACTIVE,
			h->o.durability != SB_HOST_DURABLE_NONE, err);
	else
		r = sb_fail(err, SB_E_SESSION_DESTROYING, "%s: %s",
			sb_code_text(SB_E_SESSION_DESTROYING), s->id);
	if (r == 0)
		r = sb_hsess_describe(s, out, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

/*
 * A creation that failed leaves nothing; what cannot be removed now is DESTROYING and removed
 * later.
 */
static void
abandon(struct sb_host *h, struct sb_hsess *s)
{
	struct sb_error why = { 0 };
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	if (s->state != SB_HOST_DESTROYING)
		r = sb_host_op_set_state(h, s, SB_HOST_DESTROYING, false, &why);
	(void)pthread_mutex_unlock(&s->mu);
	if (r == 0)
		r = sb_host_destroy_finish(h, s, &why);
	if (r < 0) {
		sb_log(&h->o.log, SB_LOG_WARN, "host", "session %s: undo of the creation: %s",
			s->id, why.msg);
		sb_host_worker_poke(h);
	}
}

/* What was in the storage before us is not ours to remove: only the record goes. */
static void
drop_record(struct sb_host *h, struct sb_hsess *s)
{
	(void)sb_hostdb_session_delete(h->db, s->uid, NULL);
	sb_host_network_forget(s);
	(void)pthread_mutex_lock(&h->mu);
	(void)pthread_mutex_lock(&s->mu);
	s->gone = true;
	(void)pthread_cond_broadcast(&s->cv);
	(void)pthread_mutex_unlock(&s->mu);
	sb_host_map_remove(h, s);
	(void)pthread_mutex_unlock(&h->mu);
}

/* The storage's part: the workspace, as the property of the session's user where that is easy. */
static int
store(struct sb_host *h, const struct sb_hsess *s, const struct sb_storage_source *from,
	const struct sb_host_call *call, char **mountpoint, struct sb_error *err)
{
	struct sb_storage_source src = *from;

	src.owner = sb_host_owner_of(h, s);
	return h->st->ops->create(h->st, s->id, &src, call, mountpoint, err);
}

int
sb_host_session_make(struct sb_host *h, const struct sb_host_create_opts *o,
	const struct sb_host_origin *from, const struct sb_host_call *call,
	struct sb_host_session *out, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	struct sb_host_create_opts picked;
	struct sb_error why = { 0 };
	struct sb_runtime *rt;
	char *mountpoint = NULL;
	int r;

	if (from->src.quota && !h->st->ops->quota)
		return sb_fail(err, SB_E_UNSUPPORTED, "quota: storage %s cannot enforce one",
			h->st->ops->name);
	picked = *o;
	o = &picked;
	/* Lists say which network is meant. */
	if (picked.network == SB_HOST_NET_DEFAULT && (picked.n_allow > 0 || picked.n_deny > 0))
		picked.network = SB_HOST_NET_OUTBOUND;
	if (from->parent) {
		/* A fork stays where its origin is, unless it asks for something else. */
		if (picked.runtime == SB_HOST_RUNTIME_AUTO)
			picked.runtime = from->parent->rt->ops->kind;
		/* Without isolation there is only the host's network: nothing to hand on. */
		if (picked.network == SB_HOST_NET_DEFAULT && from->parent->rt->ops->isolates)
			picked.network = from->parent->network;
	}
	rt = sb_host_runtime_for(h, o, &why);
	s = rt ? new_session(o, from, &why) : NULL;
	if (s) {
		s->rt = rt;
		s->lasts_ms = h->o.max_session_ms;
		s->runtime = rt->ops->kind;
		s->network = sb_host_runtime_network(h, rt, o->network);
	}
	if (!s || settle_policy(s, o, from, &why) < 0) {
		if (err)
			*err = why;
		return why.code;
	}
	r = sb_host_health_admit(h, err);
	if (r == 0)
		r = sb_host_session_register(h, s, err);
	if (r < 0)
		return r;
	r = sb_host_network_tell(s, &why);
	if (r == 0)
		r = store(h, s, &from->src, call, &mountpoint, &why);
	if (r == SB_E_EXISTS)
		r = sb_fail(&why, SB_E_SESSION_EXISTS,
			"%s: %s (left in the storage, unknown to the host)",
			sb_code_text(SB_E_SESSION_EXISTS), s->id);
	if (r == 0)
		r = sb_host_owner_claim(h, s, mountpoint, call, &why);
	if (r == 0)
		r = activate(h, s, mountpoint, out, &why);
	else
		free(mountpoint);
	if (r < 0) {
		if (r == SB_E_SESSION_EXISTS)
			drop_record(h, s);
		else if (r != SB_E_SESSION_DESTROYING)
			abandon(h, s);
		sb_hsess_leave(s);
		sb_log(&h->o.log, SB_LOG_INFO, "host", "session %s: not created: %s", s->id,
			why.msg);
		if (err)
			*err = why;
		return r;
	}
	atomic_fetch_add(&h->created, 1);
	sb_log(&h->o.log, SB_LOG_INFO, "host", "session %s: created, runtime %s, network %s%s%s",
		s->id, sb_host_runtime_name(s->runtime), sb_host_network_name(s->network),
		from->parent ? ", a fork of " : "", from->parent ? from->parent->id : "");
	sb_host_event_note(h->events, from->parent ? "session.forked" : "session.created", s->id,
		from->parent ? from->parent->id : NULL, SB_HOST_ACTIVE);
	sb_hsess_leave(s);
	return 0;
}

int
sb_host_session_create(struct sb_host *h, const struct sb_host_create_opts *opts,
	const struct sb_host_call *call, struct sb_host_session *out, struct sb_error *err)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	struct sb_host_origin from = { .src.fd = -1 };
	int r;

	memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	r = sb_host_call_begin(h, true, err);
	if (r < 0)
		return r;
	from.src.quota = o.quota ? o.quota : h->o.default_quota;
	if (!o.empty)
		from.src.base = o.base && *o.base ? o.base : h->o.default_base;
	if (!o.empty && !from.src.base && strcmp(h->st->ops->name, "zfs") == 0)
		r = sb_fail(err, SB_E_INVAL, "base snapshot is required for ZFS backend");
	if (r == 0)
		r = sb_host_session_make(h, &o, &from, call, out, err);
	sb_host_call_end(h);
	return r;
}

int
sb_host_session_get(struct sb_host *h, const char *id, bool measure, struct sb_host_session *out,
	struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	struct sb_error why = { 0 };
	uint64_t used = 0;
	int r;

	(void)sb_host_call_begin(h, false, NULL);
	s = sb_host_map_find(h, id, &why);
	if (!s) {
		sb_host_call_end(h);
		if (err)
			*err = why;
		return why.code;
	}
	if (measure && h->st->ops->used(h->st, id, &used, NULL) == 0) {
		(void)pthread_mutex_lock(&s->mu);
		s->space_used = used;
		(void)pthread_mutex_unlock(&s->mu);
	}
	(void)pthread_mutex_lock(&s->mu);
	if (s->gone)
		r = sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SESSION_NOT_FOUND), s->id);
	else
		r = sb_hsess_describe(s, out, err);
	(void)pthread_mutex_unlock(&s->mu);
	if (r == 0 && s->network == SB_HOST_NET_NONE && s->rt->ops->unrouted)
		out->network_refused = s->rt->ops->unrouted(s->rt, s->id);
	sb_host_call_end(h);
	return r;
}

static int
by_id(const void *a, const void *b)
{
	return strcmp((*(struct sb_hsess *const *)a)->id, (*(struct sb_hsess *const *)b)->id);
}

/* With the session's `mu` held. */
static bool
matches(const struct sb_hsess *s, const struct sb_host_filter *f)
{
	if (s->gone || (f->states && !(f->states & (1u << s->state))))
		return false;
	for (size_t i = 0; i < f->n_labels; i++) {
		const char *v = sb_strmap_get(&s->labels, f->labels[i].key);

		if (!v ||
			(f->labels[i].value && *f->labels[i].value &&
				strcmp(v, f->labels[i].value) != 0))
			return false;
	}
	return true;
}

static int
list(struct sb_host *h, const struct sb_host_filter *f, struct sb_host_session **out, size_t *out_n,
	struct sb_error *err)
{
	sb_autofree struct sb_hsess **all = NULL;
	struct sb_host_session *v;
	size_t n_all, n = 0;
	int r = sb_host_map_all(h, &all, &n_all, err);

	if (r < 0)
		return r;
	qsort(all, n_all, sizeof(*all), by_id);
	v = calloc(n_all + 1, sizeof *v);
	if (!v)
		r = sb_fail(err, SB_E_NOMEM, "list of sessions");
	for (size_t i = 0; i < n_all; i++) {
		struct sb_hsess *s = all[i];

		if (r == 0 && (!f->after || strcmp(s->id, f->after) > 0) &&
			(f->limit == 0 || n < f->limit)) {
			(void)pthread_mutex_lock(&s->mu);
			if (matches(s, f)) {
				r = sb_hsess_describe(s, &v[n], err);
				n += r == 0;
			}
			(void)pthread_mutex_unlock(&s->mu);
		}
		sb_hsess_unref(s);
	}
	if (r < 0) {
		sb_host_sessions_free(v, n);
		return r;
	}
	*out = v;
	*out_n = n;
	return 0;
}

int
sb_host_session_list(struct sb_host *h, const struct sb_host_filter *filter,
	struct sb_host_session **out, size_t *out_n, struct sb_error *err)
{
	struct sb_host_filter f = SB_HOST_FILTER_INIT;
	int r;

	if (filter)
		memcpy(&f, filter, filter->size < sizeof f ? filter->size : sizeof f);
	r = sb_idcheck_labels(f.labels, f.n_labels, err);
	if (r < 0)
		return r;
	(void)sb_host_call_begin(h, false, NULL);
	r = list(h, &f, out, out_n, err);
	sb_host_call_end(h);
	return r;
}

int
sb_host_session_set_labels(struct sb_host *h, const char *id, const struct sb_host_label *labels,
	size_t n, struct sb_error *err)
{
	sb_auto(sb_strmap) struct sb_strmap m = { 0 };
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	struct sb_error why = { 0 };
	int r = sb_idcheck_labels(labels, n, &why);

	if (r == 0)
		r = set_labels(&m, labels, n, &why);
	if (r == 0) {
		s = sb_host_map_find(h, id, &why);
		r = s ? sb_host_call_begin(h, true, &why) : why.code;
	}
	if (r == 0) {
		(void)pthread_mutex_lock(&s->mu);
		r = s->gone ? sb_fail(&why, SB_E_SESSION_NOT_FOUND, "%s: %s",
				      sb_code_text(SB_E_SESSION_NOT_FOUND), s->id) :
			      sb_host_state_admit(SB_HOST_OP_LABELS, s->state, s->id, &why);
		if (r == 0)
			r = sb_hostdb_labels_set(h->db, s->uid, &m, &why);
		if (r == 0) {
			struct sb_strmap old = s->labels;

			s->labels = m;
			m = old;
		}
		(void)pthread_mutex_unlock(&s->mu);
		sb_host_call_end(h);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_host_base_list(struct sb_host *h, struct sb_strlist *out, struct sb_error *err)
{
	int r = h->st->ops->bases(h->st, out, err);

	if (r < 0)
		sb_strlist_free(out);
	return r;
}

void
sb_host_session_clear(struct sb_host_session *s)
{
	if (!s)
		return;
	free(s->mountpoint);
	free(s->base);
	free(s->parent);
	free(s->why);
	free(s->policy);
	for (size_t i = 0; i < s->n_labels; i++) {
		free(s->labels[i].key);
		free(s->labels[i].value);
	}
	free(s->labels);
	*s = (struct sb_host_session){ 0 };
}

void
sb_host_sessions_free(struct sb_host_session *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_host_session_clear(&v[i]);
	free(v);
}

int
sb_host_session_id_check(const char *id, struct sb_error *err)
{
	return sb_idcheck_session(id, err);
}

int
sb_host_session_fence(struct sb_host *h, const char *id, uint64_t fence, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	int64_t seen = 0;
	int r = fence ? sb_idcheck_session(id, err) : 0;

	if (r < 0 || !fence)
		return r;
	if (fence > INT64_MAX)
		return sb_fail(err, SB_E_INVAL, "fence %llu is larger than 2^63-1",
			(unsigned long long)fence);
	r = sb_hostdb_fence(h->db, id, (int64_t)fence, sb_host_now_ns(), &seen, err);
	if (r < 0)
		return r;
	s = sb_host_map_find(h, id, NULL);
	if (s) {
		(void)pthread_mutex_lock(&s->mu);
		if ((uint64_t)seen > s->fence)
			s->fence = (uint64_t)seen;
		(void)pthread_mutex_unlock(&s->mu);
	}
	return (uint64_t)seen > fence ?
		sb_fail(err, SB_E_FENCED, "%s: session %s has seen %lld, this call has %llu",
			sb_code_text(SB_E_FENCED), id, (long long)seen, (unsigned long long)fence) :
		0;
}
