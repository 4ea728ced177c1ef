/* SPDX-License-Identifier: MIT */
/* The procedures about snapshots and turns of a session. */
#include "config.h"

#include <string.h>

#include <rpc/service/host-priv.h>

#define DIFF_LIMIT 10000
#define DIFF_LIMIT_MAX \
	20000 /* each change is some values of a message, which has a limit of them */

static int
answer(struct sb_host_snapshot *s, uint64_t turn, json_t **out)
{
	json_t *o = json_object();

	sb_rpc_host_put(o, "SnapshotID", s->name);
	sb_rpc_host_put_int(o, "TurnNumber", (int64_t)turn);
	sb_rpc_host_put_int(o, "SpaceUsed", (int64_t)s->used);
	(void)json_object_set_new(o, "CreatedAt", sb_rpc_host_time_json(s->created_ns));
	(void)json_object_set_new(o, "Unchanged", json_boolean(s->unchanged));
	(void)json_object_set_new(o, "Live", json_boolean(s->live));
	sb_host_snapshot_clear(s);
	*out = o;
	return 0;
}

int
sb_rpc_host_turn_complete(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_snapshot s = { 0 };
	const char *id;
	int r = sb_rpc_host_only_session(call, in, &id, err);

	if (r < 0)
		return r;
	r = sb_host_turn_complete(h->host, id, &limits, &s, err);
	/*
	 * Agents end every turn like this, whatever the storage; without snapshots there is nothing
	 * to do.
	 */
	if (r < 0 && r != SB_E_NO_SNAPSHOTS)
		return r;
	return answer(&s, r < 0 ? 0 : s.turn, out);
}

int
sb_rpc_host_create_snapshot(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_snapshot s = { 0 };
	struct sb_rpc_fields f;
	const char *id, *name;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	name = sb_rpc_field_str(&f, "Name", SB_HOST_NAME_MAX, SB_RPC_REQUIRED);
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = sb_host_snapshot_create(h->host, id, name, &limits, &s, err);
	return r < 0 ? r : answer(&s, 0, out);
}

static json_t *
snapshot_json(struct sb_rpc_call *call, const struct sb_host_snapshot *s)
{
	json_t *o = json_object();

	sb_rpc_host_put(o, "Name", s->name);
	sb_rpc_host_put_hidden(call, o, "Dataset", s->dataset);
	sb_rpc_host_put_int(o, "Used", (int64_t)s->used);
	sb_rpc_host_put_int(o, "Refer", (int64_t)s->referenced);
	(void)json_object_set_new(o, "CreatedAt", sb_rpc_host_time_json(s->created_ns));
	sb_rpc_host_put_int(o, "Holds", s->holds);
	sb_rpc_host_put(o, "Kind", sb_host_snap_kind_name(s->kind));
	sb_rpc_host_put_int(o, "Turn", (int64_t)s->turn);
	sb_rpc_host_put_int(o, "Forks", s->forks);
	sb_rpc_host_put(o, "Parent", s->parent);
	(void)json_object_set_new(o, "Current", json_boolean(s->current));
	return o;
}

int
sb_rpc_host_list_snapshots(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_snapshot *v = NULL;
	const char *id;
	json_t *list;
	size_t n = 0;
	int r = sb_rpc_host_only_session(call, in, &id, err);

	if (r == 0)
		r = sb_host_snapshot_list(h->host, id, &limits, &v, &n, err);
	if (r < 0)
		return r;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, snapshot_json(call, &v[i]));
	sb_host_snapshots_free(v, n);
	*out = sb_rpc_host_wrap("Snapshots", list);
	return 0;
}

int
sb_rpc_host_rollback_session(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_rpc_fields f;
	struct sb_host_rolled rolled = { 0 };
	struct sb_host_session s;
	const char *id, *name;
	unsigned how = 0;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	name = sb_rpc_field_str(&f, "SnapshotID", SB_HOST_NAME_MAX, SB_RPC_REQUIRED);
	if (sb_rpc_field_bool(&f, "KillTools"))
		how |= SB_HOST_KILL_TOOLS;
	if (sb_rpc_field_bool(&f, "DropLater"))
		how |= SB_HOST_DROP_LATER;
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r < 0)
		return r;
	r = sb_host_session_rollback(h->host, id, name, how, &limits, &rolled, err);
	/*
	 * What tools answered before may not be true any more; also when it is unclear how it
	 * ended.
	 */
	sb_rpc_idem_forget(h->idem, id);
	if (h->replay && sb_host_session_get(h->host, id, false, &s, NULL) == 0) {
		sb_rpc_replay_forget(h->replay, s.nonce);
		sb_host_session_clear(&s);
	}
	if (r == 0) {
		*out = json_object();
		(void)json_object_set_new(*out, "BoxRestarted", json_boolean(rolled.restarted));
		sb_rpc_host_put_int(*out, "Kept", (int64_t)rolled.kept);
		sb_rpc_host_put_int(*out, "Dropped", (int64_t)rolled.dropped);
	}
	return r;
}

static const char *
type_name(char type)
{
	switch (type) {
	case 'f': return "file";
	case 'd': return "directory";
	case 'l': return "symlink";
	default: return "other";
	}
}

/* A path as text, and as bytes where the text is not exact. */
static void
put_path(json_t *o, const char *key, const char *raw_key, const char *path)
{
	json_t *text;

	if (!path)
		path = "";
	text = sb_rpc_json_text(path, strlen(path));
	if (text && strcmp(json_string_value(text), path) != 0)
		(void)json_object_set_new(o, raw_key, sb_rpc_host_bytes_json(path, strlen(path)));
	(void)json_object_set_new(o, key, text);
}

static json_t *
change_json(const struct sb_host_change *c)
{
	json_t *o = json_object();

	sb_rpc_host_put(o, "Kind", sb_host_change_name(c->kind));
	sb_rpc_host_put(o, "Type", type_name(c->type));
	put_path(o, "Path", "RawPath", c->path);
	put_path(o, "From", "RawFrom", c->from);
	if (c->old_data)
		(void)json_object_set_new(o, "Old",
			sb_rpc_host_bytes_json(c->old_data, c->old_len));
	if (c->new_data)
		(void)json_object_set_new(o, "New",
			sb_rpc_host_bytes_json(c->new_data, c->new_len));
	if (c->unread)
		sb_rpc_host_put(o, "Unread", c->unread);
	return o;
}

int
sb_rpc_host_diff_snapshots(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_change *v = NULL;
	struct sb_rpc_fields f;
	const char *id, *from, *to;
	size_t n = 0, limit;
	bool more = false, content;
	json_t *list;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	from = sb_rpc_field_str(&f, "From", SB_HOST_NAME_MAX, SB_RPC_REQUIRED);
	to = sb_rpc_field_str(&f, "To", SB_HOST_NAME_MAX, 0);
	limit = (size_t)sb_rpc_field_int(&f, "Limit", 0, DIFF_LIMIT_MAX);
	content = sb_rpc_field_bool(&f, "Content");
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = sb_host_snapshot_diff(h->host, id, from, to, limit > 0 ? limit : DIFF_LIMIT,
			&limits, &v, &n, &more, err);
	if (r == 0 && content)
		r = sb_host_snapshot_contents(h->host, id, from, to, &limits, v, n, err);
	if (r < 0) {
		sb_host_changes_free(v, n);
		return r;
	}
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, change_json(&v[i]));
	sb_host_changes_free(v, n);
	*out = sb_rpc_host_wrap("Changes", list);
	(void)json_object_set_new(*out, "More", json_boolean(more));
	return 0;
}

int
sb_rpc_host_delete_snapshot(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_rpc_fields f;
	const char *id, *name;
	int r;

	(void)out;
	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	name = sb_rpc_field_str(&f, "SnapshotID", SB_HOST_NAME_MAX, SB_RPC_REQUIRED);
	r = sb_rpc_host_fields_end(call, &f, err);
	return r < 0 ? r : sb_host_snapshot_delete(h->host, id, name, &limits, err);
}

static int
hold_or_release(struct sb_rpc_call *call, const json_t *in, bool hold, struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_rpc_fields f;
	const char *id, *name, *tag;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	name = sb_rpc_field_str(&f, "SnapshotID", SB_HOST_NAME_MAX, SB_RPC_REQUIRED);
	tag = sb_rpc_field_str(&f, "Tag", SB_HOST_NAME_MAX, SB_RPC_REQUIRED);
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r < 0)
		return r;
	return hold ? sb_host_snapshot_hold(h->host, id, name, tag, &limits, err) :
		      sb_host_snapshot_release(h->host, id, name, tag, &limits, err);
}

int
sb_rpc_host_hold_snapshot(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	(void)out;
	return hold_or_release(call, in, true, err);
}

int
sb_rpc_host_release_snapshot(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	(void)out;
	return hold_or_release(call, in, false, err);
}
