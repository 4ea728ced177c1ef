/* SPDX-License-Identifier: MIT */
/* Sessions of a host: made, looked at, paused, put back and removed. */
#include "config.h"

#include <control/hostsess.h>

#include <stdlib.h>
#include <string.h>

#include <base/array.h>
#include <base/str.h>
#include <control/control-priv.h>
#include <rpc/protocol/json.h>
#include <sb/host.h>

#define REQUEST_LABEL SB_CONTROL_LABEL_OWN "request"
#define TRIES 5
#define PAGE 200
#define SANDBOXES_MAX 100000
#define CLEAN_UP_MS 10000
#define MB (INT64_C(1) << 20)

static json_t *
request(const char *id)
{
	return json_pack("{s:s}", "SessionID", id);
}

static int
simple(struct sb_hostcall *h, const char *method, const char *id,
	const struct sb_control_call *call, struct sb_error *err)
{
	return sb_hostcall(h, method, request(id), call, NULL, err);
}

int
sb_hostsess_capabilities(struct sb_hostcall *h, const struct sb_control_call *call,
	struct sb_control_caps *out, bool *limits, struct sb_error *err)
{
	json_t *answer = NULL, *c;
	int r = sb_hostcall(h, "GetCapabilities", json_object(), call, &answer, err);

	if (r < 0)
		return r;
	c = json_object_get(answer, "ServerCapabilities");
	out->launch = out->fence = out->bases = true;
	out->snapshots = sb_json_flag(c, "Snapshots");
	out->rollback = sb_json_flag(c, "Rollback");
	out->fork = sb_json_flag(c, "Fork");
	out->pause = out->pause_keeps = sb_json_flag(c, "Pause");
	out->disk = sb_json_flag(c, "Quota");
	out->network = sb_json_flag(c, "NetworkLists");
	out->concurrent_sandboxes = (unsigned)sb_json_int(c, "ConcurrentSessions");
	out->max_lifetime_ms = sb_json_int(c, "MaxSessionDuration") / 1000000;
	(void)snprintf(out->isolation, sizeof out->isolation, "%s",
		sb_json_str(c, "IsolationLevel"));
	if (limits)
		*limits = strcmp(sb_json_str(c, "Limits"), "none") != 0;
	json_decref(answer);
	return 0;
}

static enum sb_control_state
state_of(const char *word)
{
	static const struct {
		const char *word;
		enum sb_control_state state;
	} words[] = { { "creating", SB_CONTROL_CREATING }, { "active", SB_CONTROL_RUNNING },
		{ "paused", SB_CONTROL_PAUSED }, { "destroying", SB_CONTROL_DESTROYING } };

	for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
		if (strcmp(word, words[i].word) == 0)
			return words[i].state;
	return SB_CONTROL_FAILED;
}

/* Where the workspace is for commands. */
static const char *
workspace_of(const json_t *s)
{
	return strcmp(sb_json_str(s, "Runtime"), "none") == 0 ? sb_json_str(s, "Mountpoint") :
								"/workspace";
}

static int
fill(struct sb_hostcall *h, const json_t *s, struct sb_control_sandbox *out, struct sb_error *err)
{
	sb_auto(sb_control_sandbox) struct sb_control_sandbox b = { 0 };
	json_t *labels = json_object_get(s, "Labels"), *value;
	const char *id = sb_json_str(s, "ID"), *why = sb_json_str(s, "Why"), *key;

	if (sb_host_session_id_check(id, NULL) < 0)
		return sb_fail(err, SB_E_PROTO, "the host tells of a session without an id");
	(void)snprintf(b.id, sizeof b.id, "%s", id);
	b.state = state_of(sb_json_str(s, "State"));
	(void)snprintf(b.address, sizeof b.address, "%s", sb_hostcall_address(h, &b.tls));
	b.created_ns = sb_json_time(s, "Created");
	b.expires_ns = sb_json_time(s, "ExpiresAt");
	json_object_foreach(labels, key,
		value) if (!sb_str_starts(key, SB_CONTROL_LABEL_OWN) && json_is_string(value))
		sb_strlist_addf(&b.labels, "%s=%s", key, json_string_value(value));
	b.why = why[0] ? strdup(why) : NULL;
	b.rsh = sb_hostcall_rsh(h, err);
	b.endpoint = sb_str_printf("%s:%s", id, workspace_of(s));
	if (!b.rsh || !b.endpoint || b.labels.failed || (why[0] && !b.why))
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	*out = b;
	b = (struct sb_control_sandbox){ 0 };
	return 0;
}

int
sb_hostsess_get(struct sb_hostcall *h, const char *id, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	json_t *answer = NULL;
	int r = sb_hostcall(h, "GetSession", request(id), call, &answer, err);

	if (r == 0)
		r = fill(h, json_object_get(answer, "Session"), out, err);
	json_decref(answer);
	return r;
}

static void
put_list(json_t *in, const char *key, const char *const *v)
{
	json_t *list = v && v[0] ? json_array() : NULL;

	for (; list && *v; v++)
		(void)json_array_append_new(list, json_string(*v));
	if (list)
		(void)json_object_set_new(in, key, list);
}

static json_t *
labels_json(const char *const *labels, const char *digest)
{
	json_t *o = json_object();

	for (; labels && *labels; labels++) {
		const char *eq = strchr(*labels, '=');

		(void)json_object_setn_new(o, *labels, (size_t)(eq - *labels), json_string(eq + 1));
	}
	(void)json_object_set_new(o, REQUEST_LABEL, json_string(digest));
	return o;
}

static json_t *
create_request(const char *id, const struct sb_control_create_opts *o, const char *digest)
{
	static const char *const networks[] = { "", "none", "outbound" };
	json_t *in = request(id);

	if (o->base)
		(void)json_object_set_new(in, "BaseSnapshot", json_string(o->base));
	else
		(void)json_object_set_new(in, "Empty", json_true());
	if (o->disk_mb)
		(void)json_object_set_new(in, "Quota", json_integer((json_int_t)o->disk_mb * MB));
	if (networks[o->network][0])
		(void)json_object_set_new(in, "Network", json_string(networks[o->network]));
	put_list(in, "Allow", o->allow);
	put_list(in, "Deny", o->deny);
	(void)json_object_set_new(in, "Labels", labels_json(o->labels, digest));
	return in;
}

/* The session that is there already: is it what this request made? Waits until it is made. */
static int
find_made(struct sb_hostcall *h, const char *id, const char *digest,
	const struct sb_control_call *call, struct sb_control_sandbox *out, struct sb_error *err)
{
	for (int64_t wait = 20;; wait = wait < 1000 ? wait * 2 : wait) {
		json_t *answer = NULL, *s;
		const char *state;
		int r = sb_hostcall(h, "GetSession", request(id), call, &answer, err);

		s = json_object_get(answer, "Session");
		state = sb_json_str(s, "State");
		if (r == 0 &&
			strcmp(sb_json_str(json_object_get(s, "Labels"), REQUEST_LABEL), digest) !=
				0)
			r = sb_fail(err, SB_E_CONFLICT,
				"sandbox %s is there, and was made by another request", id);
		else if (r == 0 && strcmp(state, "creating") != 0 &&
			strcmp(state, "destroying") != 0)
			r = fill(h, s, out, err) < 0 ? SB_E_PROTO : 1;
		json_decref(answer);
		if (r != 0)
			return r < 0 ? r : 0;
		r = sb_hostcall_pause(call, wait, err);
		if (r < 0)
			return r;
	}
}

/* A session that nobody will ask for by a key must not stay when its maker gives up. */
static void
clean_up(struct sb_hostcall *h, const char *id, uint64_t fence)
{
	const struct sb_control_call call = { NULL, sb_deadline_in(CLEAN_UP_MS), fence };

	(void)sb_hostsess_destroy(h, id, true, &call, NULL);
}

static int
make(struct sb_hostcall *h, const char *id, const char *method, json_t *in, const char *digest,
	const struct sb_control_call *call, struct sb_control_sandbox *out, struct sb_error *err)
{
	json_t *answer = NULL;
	int r = SB_E_NOMEM;

	for (int try = 0; try < TRIES; try++) {
		r = sb_hostcall(h, method, json_deep_copy(in), call, &answer, err);
		if (r == SB_E_SESSION_EXISTS) {
			r = find_made(h, id, digest, call, out, err);
			/* It went away meanwhile: it is to be made after all. */
			if (r == SB_E_SANDBOX_NOT_FOUND && strcmp(method, "CreateSession") == 0)
				continue;
			break;
		}
		if (r == 0)
			r = fill(h, json_object_get(answer, "Session"), out, err);
		if (!sb_hostcall_transient(r) || try + 1 == TRIES ||
			sb_hostcall_pause(call, INT64_C(100) << try, NULL) < 0)
			break;
	}
	json_decref(answer);
	json_decref(in);
	return r;
}

int
sb_hostsess_create(struct sb_hostcall *h, const char *id, const struct sb_control_create_opts *o,
	const struct sb_control_call *call, struct sb_control_sandbox *out, struct sb_error *err)
{
	char digest[SB_CONTROL_DIGEST_LEN + 1];
	int r = sb_control_request_digest(o, digest, err);

	if (r == 0)
		r = make(h, id, "CreateSession", create_request(id, o, digest), digest, call, out,
			err);
	if (!o->key && (r == SB_E_TIMEOUT || r == SB_E_CANCELED || sb_hostcall_transient(r)))
		clean_up(h, id, call->fence);
	return r;
}

int
sb_hostsess_fork(struct sb_hostcall *h, const char *id, const char *name, const char *new_id,
	const struct sb_control_create_opts *o, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	sb_auto(sb_control_sandbox) struct sb_control_sandbox source = { 0 };
	struct sb_control_create_opts like = *o;
	char digest[SB_CONTROL_DIGEST_LEN + 1];
	json_t *in;
	int r = 0;

	/* The request is known by its labels: the source's own would stand there else. */
	if (!o->labels) {
		r = sb_hostsess_get(h, id, call, &source, err);
		like.labels = sb_strlist_borrow(&source.labels);
	}
	like.base = name ? name : id;
	if (r == 0)
		r = sb_control_request_digest(&like, digest, err);
	if (r < 0)
		return r;
	in = request(id);
	(void)json_object_set_new(in, "NewSessionID", json_string(new_id));
	if (name)
		(void)json_object_set_new(in, "SnapshotID", json_string(name));
	(void)json_object_set_new(in, "Labels", labels_json(like.labels, digest));
	r = make(h, new_id, "Fork", in, digest, call, out, err);
	if (!o->key && (r == SB_E_TIMEOUT || r == SB_E_CANCELED || sb_hostcall_transient(r)))
		clean_up(h, new_id, call->fence);
	return r;
}

int
sb_hostsess_destroy(struct sb_hostcall *h, const char *id, bool force,
	const struct sb_control_call *call, struct sb_error *err)
{
	bool asked = false;
	int r = 0;

	for (int try = 0; try < TRIES; try++) {
		json_t *in = request(id);

		(void)json_object_set_new(in, "Force", json_boolean(force));
		r = sb_hostcall(h, "DestroySession", in, call, NULL, err);
		/* The answer to the first try was lost. */
		if (r == SB_E_SANDBOX_NOT_FOUND && asked)
			return 0;
		asked = asked || r == SB_E_CLOSED;
		if (!sb_hostcall_transient(r) || try + 1 == TRIES ||
			sb_hostcall_pause(call, INT64_C(100) << try, NULL) < 0)
			break;
	}
	return r;
}

struct found {
	struct sb_control_sandbox *v;
	size_t n, cap;
};

static int
take_page(struct sb_hostcall *h, const json_t *sessions, struct found *f, struct sb_error *err)
{
	for (size_t i = 0; i < json_array_size(sessions); i++) {
		void *v = f->v;
		int r;

		if (f->n >= SANDBOXES_MAX)
			return sb_fail(err, SB_E_LIMIT, "more than %d sandboxes", SANDBOXES_MAX);
		if (!sb_array_grow(&v, &f->cap, f->n + 1, sizeof *f->v))
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		f->v = v;
		r = fill(h, json_array_get(sessions, i), &f->v[f->n], err);
		if (r < 0)
			return r;
		f->n++;
	}
	return 0;
}

int
sb_hostsess_list(struct sb_hostcall *h, const struct sb_control_filter *filter,
	const struct sb_control_call *call, struct sb_control_sandbox **out, size_t *out_n,
	struct sb_error *err)
{
	struct found f = { 0 };
	char after[SB_CONTROL_ID_MAX + 1] = "";
	int r;

	do {
		json_t *answer = NULL, *labels = labels_json(filter->labels, ""), *in;
		const char *next;

		(void)json_object_del(labels, REQUEST_LABEL);
		in = json_pack("{s:o,s:s,s:i}", "Labels", labels, "After", after, "Limit", PAGE);
		r = sb_hostcall(h, "ListSessions", in, call, &answer, err);
		if (r == 0)
			r = take_page(h, json_object_get(answer, "Sessions"), &f, err);
		next = sb_json_str(answer, "NextAfter");
		if (r == 0 && next[0] && strcmp(next, after) <= 0)
			r = sb_fail(err, SB_E_PROTO, "the host's list of sessions does not end");
		(void)snprintf(after, sizeof after, "%s", r == 0 ? next : "");
		json_decref(answer);
	} while (r == 0 && after[0]);
	if (r < 0) {
		sb_control_list_free(f.v, f.n);
		return r;
	}
	*out = f.v;
	*out_n = f.n;
	return 0;
}

int
sb_hostsess_pause(struct sb_hostcall *h, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	int r = simple(h, "PauseSession", id, call, err);

	return r == SB_E_SESSION_PAUSED ? 0 : r;
}

int
sb_hostsess_resume(struct sb_hostcall *h, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	int r = simple(h, "ResumeSession", id, call, err);

	if (r == SB_E_INVALID_STATE && sb_hostsess_get(h, id, call, &s, NULL) == 0 &&
		s.state == SB_CONTROL_RUNNING)
		r = 0;
	return r;
}

int
sb_hostsess_snapshot(struct sb_hostcall *h, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err)
{
	return sb_hostcall(h, "CreateSnapshot",
		json_pack("{s:s,s:s}", "SessionID", id, "Name", name), call, NULL, err);
}

int
sb_hostsess_rollback(struct sb_hostcall *h, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err)
{
	return sb_hostcall(h, "RollbackSession",
		json_pack("{s:s,s:s,s:b}", "SessionID", id, "SnapshotID", name, "KillTools", 1),
		call, NULL, err);
}
