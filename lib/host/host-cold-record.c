/* SPDX-License-Identifier: MIT */
/* The record of a session in an archive: out of the host's memory, and back. */
#include "config.h"

#include <host/host-cold.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <host/host-network.h>
#include <host/host-priv.h>
#include <host/host-runtime.h>
#include <host/host-session.h>
#include <host/host-snapshot.h>
#include <host/storage/idcheck.h>

#define POLICY_MAX 65536

static json_t *
labels_json(const struct sb_strmap *m)
{
	json_t *o = json_object();

	for (size_t i = 0; i < m->n; i++)
		(void)json_object_set_new(o, m->v[i].key, json_string(m->v[i].value));
	return o;
}

static json_t *
snaps_json(const struct sb_hsess *s)
{
	json_t *all = json_array();

	for (size_t i = 0; i < s->n_snaps; i++) {
		const struct sb_snap *snap = s->snaps[i];
		json_t *holds = json_array();

		for (size_t k = 0; k < snap->n_holds; k++)
			(void)json_array_append_new(holds, json_string(snap->holds[k].tag));
		if (snap->intent != SB_INTENT_NONE) {
			json_decref(holds);
			continue;
		}
		(void)json_array_append_new(all,
			json_pack("{s:s, s:s, s:I, s:I, s:o}", "name", snap->name, "kind",
				sb_host_snap_kind_name(snap->kind), "turn", (json_int_t)snap->turn,
				"created_ns", (json_int_t)snap->created_ns, "holds", holds));
	}
	return all;
}

json_t *
sb_host_cold_record(struct sb_host *h, struct sb_hsess *s)
{
	json_t *j;

	(void)pthread_mutex_lock(&s->mu);
	j = json_pack("{s:s, s:s, s:s, s:s*, s:s*, s:I, s:I, s:I, s:I, s:I, s:I}", "id", s->id,
		"nonce", s->nonce, "host", h->cold_host, "base", s->base, "policy", s->policy,
		"turn", (json_int_t)s->turn, "quota", (json_int_t)s->quota, "snap_seq",
		(json_int_t)s->snap_seq, "proc_seq", (json_int_t)s->proc_seq, "created_ns",
		(json_int_t)s->created_ns, "fence", (json_int_t)s->fence);
	if (j) {
		(void)json_object_set_new(j, "runtime",
			json_string(sb_host_runtime_name(s->runtime)));
		(void)json_object_set_new(j, "network",
			json_string(sb_host_network_name(s->network)));
		(void)json_object_set_new(j, "storage", json_string(h->st->ops->name));
		(void)json_object_set_new(j, "labels", labels_json(&s->labels));
		(void)json_object_set_new(j, "snapshots", snaps_json(s));
		if (s->parent_id)
			(void)json_object_set_new(j, "parent",
				json_pack("{s:s, s:s}", "session", s->parent_id, "snapshot",
					s->parent_snap));
	}
	(void)pthread_mutex_unlock(&s->mu);
	return j;
}

static int
bad(struct sb_error *err, const char *what)
{
	return sb_fail(err, SB_E_CORRUPT, "record of an archive: %s", what);
}

/* A number of the record; 0 when it is not there. */
static int
number(const json_t *j, const char *key, int64_t *out, struct sb_error *err)
{
	const json_t *v = json_object_get(j, key);

	*out = (int64_t)json_integer_value(v);
	return (v && !json_is_integer(v)) || *out < 0 ? bad(err, key) : 0;
}

static int
take_text(const json_t *j, const char *key, size_t max, char **out, struct sb_error *err)
{
	const char *v = json_string_value(json_object_get(j, key));

	if (!v)
		return 0;
	if (strlen(v) > max)
		return bad(err, key);
	*out = strdup(v);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "session");
}

static int
take_labels(const json_t *j, struct sb_hsess *s, struct sb_error *err)
{
	struct sb_host_label *v = calloc(SB_HOST_LABELS_MAX, sizeof *v);
	const char *key;
	const json_t *value;
	size_t n = 0;
	int r = v ? 0 : sb_fail(err, SB_E_NOMEM, "labels");

	json_object_foreach((json_t *)j, key, value)
	{
		if (r == 0 && (n == SB_HOST_LABELS_MAX || !json_is_string(value)))
			r = bad(err, "labels");
		if (r < 0)
			break;
		v[n].key = (char *)key;
		v[n++].value = (char *)json_string_value(value);
		r = sb_strmap_set(&s->labels, key, json_string_value(value), err);
	}
	if (r == 0)
		r = sb_idcheck_labels(v, n, err);
	free(v);
	return r;
}

static int
take_snap(const json_t *j, struct sb_hsess *s, struct sb_error *err)
{
	const char *name = json_string_value(json_object_get(j, "name"));
	const char *kind = json_string_value(json_object_get(j, "kind"));
	const json_t *holds = json_object_get(j, "holds");
	sb_auto(sb_snap) struct sb_snap *snap = NULL;
	int64_t turn;
	size_t i;
	json_t *tag;
	int k = 0, r;

	while (kind && k < SB_HOST_SNAP_KINDS &&
		strcmp(kind, sb_host_snap_kind_name((enum sb_host_snap_kind)k)) != 0)
		k++;
	if (!name || sb_idcheck_snapshot(name, NULL) < 0 || !kind || k == SB_HOST_SNAP_KINDS ||
		sb_hsess_snap_find(s, name))
		return bad(err, "a snapshot");
	snap = sb_snap_new(name, (enum sb_host_snap_kind)k, err);
	if (!snap)
		return SB_E_NOMEM;
	r = number(j, "turn", &turn, err);
	snap->turn = (uint64_t)turn;
	if (r == 0)
		r = number(j, "created_ns", &snap->created_ns, err);
	json_array_foreach(holds, i, tag)
	{
		const char *t = json_string_value(tag);

		if (r == 0 && (!t || sb_idcheck_tag(t, NULL) < 0 || sb_snap_hold_find(snap, t)))
			r = bad(err, "a hold");
		/* The storage does not have it yet: whoever brings both in line makes it. */
		if (r == 0)
			r = sb_snap_hold_add(snap, t, SB_INTENT_MAKE, err);
	}
	if (r == 0)
		r = sb_hsess_snap_add(s, snap, err);
	if (r == 0)
		(void)sb_steal(&snap);
	return r;
}

static int
take_numbers(const json_t *j, struct sb_hsess *s, struct sb_error *err)
{
	static const char *const keys[] = { "turn", "quota", "snap_seq", "proc_seq", "created_ns",
		"fence" };
	int64_t v[6];
	int r = 0;

	for (size_t i = 0; i < sizeof keys / sizeof keys[0] && r == 0; i++)
		r = number(j, keys[i], &v[i], err);
	if (r < 0)
		return r;
	s->turn = (uint64_t)v[0];
	s->quota = (uint64_t)v[1];
	s->snap_seq = (uint64_t)v[2];
	s->proc_seq = (uint64_t)v[3];
	s->created_ns = v[4];
	s->fence = (uint64_t)v[5];
	return 0;
}

static int
take_all(const json_t *j, struct sb_hsess *s, struct sb_error *err)
{
	const char *runtime = json_string_value(json_object_get(j, "runtime"));
	const char *network = json_string_value(json_object_get(j, "network"));
	const json_t *parent = json_object_get(j, "parent");
	const char *nonce = json_string_value(json_object_get(j, "nonce"));
	uint8_t raw[SB_HOST_NONCE_LEN / 2];
	size_t i;
	json_t *snap;
	int r = take_numbers(j, s, err);

	if (r == 0 && (!nonce || !sb_str_unhex(nonce, raw, sizeof raw)))
		r = bad(err, "nonce");
	if (r == 0)
		memcpy(s->nonce, nonce, SB_HOST_NONCE_LEN + 1);
	if (r == 0 && (!runtime || !sb_host_runtime_from(runtime, &s->runtime)))
		r = bad(err, "runtime");
	if (r == 0 && (!network || !sb_host_network_from(network, &s->network)))
		r = bad(err, "network");
	if (r == 0)
		r = take_text(j, "base", 4096, &s->base, err);
	if (r == 0)
		r = take_text(j, "policy", POLICY_MAX, &s->policy, err);
	if (r == 0 && parent)
		r = take_text(parent, "session", SB_HOST_ID_MAX, &s->parent_id, err);
	if (r == 0 && parent)
		r = take_text(parent, "snapshot", SB_HOST_NAME_MAX, &s->parent_snap, err);
	if (r == 0 && !s->parent_id != !s->parent_snap)
		r = bad(err, "parent");
	if (r == 0)
		r = take_labels(json_object_get(j, "labels"), s, err);
	json_array_foreach(json_object_get(j, "snapshots"), i, snap)
	{
		if (r == 0)
			r = take_snap(snap, s, err);
	}
	return r;
}

struct sb_hsess *
sb_host_cold_revive(struct sb_host *h, const json_t *record, struct sb_error *err)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;

	if (!id || sb_idcheck_session(id, NULL) < 0) {
		(void)bad(err, "id");
		return NULL;
	}
	s = sb_hsess_new(id, err);
	if (!s || take_all(record, s, err) < 0)
		return NULL;
	s->state = SB_HOST_COLD;
	s->lasts_ms = h->o.max_session_ms;
	s->active_ns = sb_host_now_ns();
	if (s->quota && !h->st->ops->quota) {
		sb_log(&h->o.log, SB_LOG_WARN, "host",
			"session %s: its quota of %llu bytes ends here, storage %s has none", id,
			(unsigned long long)s->quota, h->st->ops->name);
		s->quota = 0;
	}
	return sb_steal(&s);
}

int
sb_host_cold_adopt(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	int64_t seen = 0;
	int r = 0;

	/* As a new session that asks for the same: nobody isolates less by way of an archive. */
	o.runtime = s->runtime;
	o.network = s->network;
	s->rt = sb_host_runtime_for(h, &o, err);
	if (!s->rt)
		return err && err->code ? err->code : SB_E_RUNTIME;
	s->runtime = s->rt->ops->kind;
	s->network = sb_host_runtime_network(h, s->rt, s->network);
	if (s->fence && s->fence <= INT64_MAX)
		r = sb_hostdb_fence(h->db, s->id, (int64_t)s->fence, sb_host_now_ns(), &seen, err);
	if (r == 0 && (uint64_t)seen > s->fence)
		s->fence = (uint64_t)seen;
	if (r == 0)
		r = sb_host_session_register(h, s, err);
	if (r == 0)
		r = sb_host_network_tell(s, err);
	return r;
}

/* Every snapshot of the archive has its record, with its holds. */
static int
put_records(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < s->n_snaps && r == 0; i++) {
		struct sb_snap *snap = s->snaps[i];

		r = sb_hostdb_snap_put(h->db, s, snap, err);
		for (size_t k = 0; k < snap->n_holds && r == 0; k++)
			r = sb_hostdb_hold_put(h->db, s->uid, snap->name, &snap->holds[k], err);
	}
	return r;
}

int
sb_host_cold_merge(struct sb_host *h, struct sb_hsess *s, const json_t *record,
	struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *t = sb_host_cold_revive(h, record, err);
	int r = 0;

	if (!t)
		return err && err->code ? err->code : SB_E_CORRUPT;
	(void)pthread_mutex_lock(&s->mu);
	for (size_t i = 0; i < t->n_snaps && r == 0; i++) {
		struct sb_snap *snap = t->snaps[i];

		if (sb_hsess_snap_find(s, snap->name))
			continue;
		r = sb_hsess_snap_add(s, snap, err);
		if (r == 0)
			t->snaps[i] = NULL;
	}
	if (r == 0)
		r = put_records(h, s, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}
