/* SPDX-License-Identifier: MIT */
/* Turns what the host tells into the JSON of its answers. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/base64.h>
#include <rpc/service/host-priv.h>

#define EXACT_MAX (INT64_C(1) << 53)

void
sb_rpc_host_put(json_t *obj, const char *key, const char *text)
{
	if (!text)
		text = "";
	(void)json_object_set_new_nocheck(obj, key, sb_rpc_json_text(text, strlen(text)));
}

/*
 * Beyond what a double holds exactly a number would be changed or refused by JavaScript: there it
 * is text.
 */
void
sb_rpc_host_put_int(json_t *obj, const char *key, int64_t v)
{
	char text[24];

	if (v >= -EXACT_MAX && v <= EXACT_MAX) {
		(void)json_object_set_new_nocheck(obj, key, json_integer(v));
		return;
	}
	(void)snprintf(text, sizeof text, "%lld", (long long)v);
	(void)json_object_set_new_nocheck(obj, key, json_string_nocheck(text));
}

static void
put_bool(json_t *obj, const char *key, bool v)
{
	(void)json_object_set_new_nocheck(obj, key, json_boolean(v));
}

json_t *
sb_rpc_host_wrap(const char *key, json_t *v)
{
	json_t *obj = json_object();

	if (json_object_set_new_nocheck(obj, key, v) < 0) {
		json_decref(obj);
		return NULL;
	}
	return obj;
}

json_t *
sb_rpc_host_bytes_json(const void *data, size_t len)
{
	size_t size = len / 3 * 4 + 8;
	sb_autofree char *text = malloc(size);

	if (!text || !sb_base64_encode_padded(data, len, text, size))
		return NULL;
	return json_string_nocheck(text);
}

json_t *
sb_rpc_host_time_json(int64_t ns)
{
	time_t s = (time_t)(ns / 1000000000);
	struct tm tm;
	char day[32], text[64];

	if (ns <= 0 || !gmtime_r(&s, &tm))
		return json_null();
	(void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(text, sizeof text, "%s.%09lldZ", day, (long long)(ns % 1000000000));
	return json_string_nocheck(text);
}

static json_t *
labels_json(const struct sb_host_label *v, size_t n)
{
	json_t *obj;

	if (n == 0)
		return json_null();
	obj = json_object();
	for (size_t i = 0; i < n; i++)
		(void)json_object_set_new(obj, v[i].key,
			sb_rpc_json_text(v[i].value, strlen(v[i].value)));
	return obj;
}

json_t *
sb_rpc_host_session_json(struct sb_rpc_call *call, const struct sb_host_session *s)
{
	json_t *o = json_object();

	sb_rpc_host_put(o, "ID", s->id);
	sb_rpc_host_put(o, "State", sb_host_state_wire(s->state));
	sb_rpc_host_put_hidden(call, o, "Mountpoint", s->mountpoint);
	sb_rpc_host_put_int(o, "TurnCount", (int64_t)s->turn_count);
	sb_rpc_host_put_int(o, "SnapCount", (int64_t)s->snap_count);
	(void)json_object_set_new_nocheck(o, "Created", sb_rpc_host_time_json(s->created_ns));
	(void)json_object_set_new_nocheck(o, "ExpiresAt", sb_rpc_host_time_json(s->expires_ns));
	(void)json_object_set_new_nocheck(o, "Labels", labels_json(s->labels, s->n_labels));
	sb_rpc_host_put_int(o, "SpaceUsed", (int64_t)s->space_used);
	sb_rpc_host_put(o, "Phase", sb_host_state_name(s->state));
	sb_rpc_host_put(o, "Base", s->base);
	sb_rpc_host_put(o, "Parent", s->parent);
	sb_rpc_host_put_hidden(call, o, "Why", s->why);
	sb_rpc_host_put_int(o, "Quota", (int64_t)s->quota);
	sb_rpc_host_put_int(o, "ActiveTools", s->active_tools);
	sb_rpc_host_put_int(o, "Processes", s->processes);
	sb_rpc_host_put(o, "Runtime", sb_host_runtime_name(s->runtime));
	sb_rpc_host_put(o, "Network", sb_host_network_name(s->network));
	sb_rpc_host_network_put(o, s->policy);
	sb_rpc_host_put_int(o, "NetworkRefused", (int64_t)s->network_refused);
	sb_rpc_host_put(o, "NetworkLast", s->network_last);
	return o;
}

json_t *
sb_rpc_host_capabilities_json(const struct sb_host *h)
{
	struct sb_host_capabilities c = { 0 };
	json_t *o = json_object();

	sb_host_capabilities(h, &c);
	put_bool(o, "Snapshots", c.snapshots);
	put_bool(o, "Rollback", c.rollback);
	put_bool(o, "Pause", c.pause);
	put_bool(o, "DeepPause", c.deep_pause);
	put_bool(o, "StreamingProgress", c.streaming_progress);
	put_bool(o, "TierRouting", c.tier_routing);
	put_bool(o, "Fork", c.fork);
	put_bool(o, "Diff", c.diff);
	put_bool(o, "Quota", c.quota);
	sb_rpc_host_put_int(o, "ConcurrentSessions", c.concurrent_sessions);
	sb_rpc_host_put_int(o, "MaxSessionDuration", c.max_session_ms * 1000000);
	put_bool(o, "Isolation", c.isolation);
	put_bool(o, "NetworkPolicy", c.network_policy);
	put_bool(o, "NetworkLists", c.network_lists);
	sb_rpc_host_put(o, "NetworkWhy", c.network_why);
	sb_rpc_host_put(o, "Storage", c.storage);
	sb_rpc_host_put(o, "StorageWhy", c.storage_why);
	sb_rpc_host_put(o, "Runtime", c.runtime);
	sb_rpc_host_put(o, "IsolationLevel", c.isolation_level);
	put_bool(o, "Ports", c.ports);
	sb_rpc_host_put(o, "Limits", c.limits);
	return o;
}
