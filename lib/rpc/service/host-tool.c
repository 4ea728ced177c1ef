/* SPDX-License-Identifier: MIT */
/* The procedures that execute a tool, at once or with progress; a repeated call id runs once. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <gnutls/crypto.h>

#include <rpc/service/host-priv.h>

#define CALL_ID_MAX 256
#define TOOL_NAME_MAX 128
#define DIR_MAX 4096
#define PROGRESS_MAX 16384 /* bytes of one progress message */
#define ANSWER_ROOM 65536  /* of a message for what is not the tool's text */
#define TIMEOUT_MAX_NS (24 * 3600 * INT64_C(1000000000))

/* A request as it was read; the strings are the message's. */
struct tool_call {
	const char *session, *id, *tool, *dir;
	char *params;
	bool want_blocks;
	struct sb_host_resources res;
	uint8_t digest[SB_RPC_IDEM_DIGEST];
	char nonce[SB_HOST_NONCE_LEN + 1]; /* of the session, when calls are remembered */
};

void
sb_rpc_host_resources(struct sb_rpc_fields *f, struct sb_host_resources *out)
{
	const json_t *v = sb_rpc_field_object(f, "Resources");
	struct sb_rpc_fields in;

	*out = (struct sb_host_resources){ 0 };
	if (f->failed || !v)
		return;
	sb_rpc_fields_init(&in, v);
	in.prefix = "Resources.";
	out->cpus = sb_rpc_field_double(&in, "CPUs", 0, 256);
	out->mem_mb = (uint64_t)sb_rpc_field_int(&in, "MemMB", 0, 1048576);
	out->timeout_ms = (sb_rpc_field_int(&in, "Timeout", 0, TIMEOUT_MAX_NS) + 999999) / 1000000;
	out->max_output = (uint64_t)sb_rpc_field_int(&in, "MaxOutputBytes", 0, SB_HOST_OUTPUT_MAX);
	out->max_pids = (uint64_t)sb_rpc_field_int(&in, "MaxPIDs", 0, 1 << 22);
	if (in.failed) {
		f->failed = in.failed;
		f->err = in.err;
		memcpy(f->field, in.field, sizeof f->field);
	}
}

static int
digest_call(struct tool_call *t, struct sb_error *err)
{
	gnutls_hash_hd_t hash;

	if (gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) != 0)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	(void)gnutls_hash(hash, t->tool, strlen(t->tool) + 1);
	(void)gnutls_hash(hash, t->dir, strlen(t->dir) + 1);
	(void)gnutls_hash(hash, t->params, strlen(t->params));
	gnutls_hash_deinit(hash, t->digest);
	return 0;
}

static int
read_call(struct sb_rpc_call *call, const json_t *in, struct tool_call *t, struct sb_error *err)
{
	struct sb_rpc_fields f;
	const json_t *params;
	int r;

	sb_rpc_fields_init(&f, in);
	t->session = sb_rpc_host_session_id(call, &f);
	t->id = sb_rpc_field_str(&f, "ToolCallID", CALL_ID_MAX, SB_RPC_REQUIRED);
	t->tool = sb_rpc_field_str(&f, "ToolName", TOOL_NAME_MAX, SB_RPC_REQUIRED);
	params = sb_rpc_field_object(&f, "Params");
	t->dir = sb_rpc_field_str(&f, "Dir", DIR_MAX, 0);
	sb_rpc_host_resources(&f, &t->res);
	t->want_blocks = sb_rpc_field_bool(&f, "WantBlocks");
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r < 0)
		return r;
	t->params = params ? json_dumps(params, JSON_COMPACT | JSON_SORT_KEYS) : strdup("{}");
	if (!t->params)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	return digest_call(t, err);
}

/* How much of the text fits a message once it is escaped; cut at a character. */
static size_t
fitting(const char *s, size_t len, size_t max)
{
	size_t size = 0, i;

	for (i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		size += c < 0x20 || c == 0x7f ? 6 : c == '"' || c == '\\' ? 2 : c >= 0x80 ? 3 : 1;
		if (size > max)
			break;
	}
	if (i == len)
		return len;
	while (i > 0 && ((unsigned char)s[i] & 0xc0) == 0x80)
		i--;
	return i;
}

static json_t *
blocks_json(json_t *text)
{
	return json_pack("[{s:s, s:o}]", "Type", "text", "Text", text);
}

static json_t *
result_json(struct sb_rpc_call *call, const struct tool_call *t,
	const struct sb_host_tool_result *r)
{
	const struct sb_rpc_host *h = sb_rpc_call_arg(call);
	size_t room = h->max_message > 2 * ANSWER_ROOM ? h->max_message - ANSWER_ROOM :
							 h->max_message / 2;
	size_t len = fitting(r->text, r->text_len, room);
	json_t *text = sb_rpc_json_text(r->text ? r->text : "", r->text ? len : 0);
	json_t *o = json_object();

	sb_rpc_host_put(o, "SessionID", t->session);
	sb_rpc_host_put(o, "ToolCallID", t->id);
	sb_rpc_host_put(o, "ToolName", t->tool);
	(void)json_object_set_new(o, "Content", t->want_blocks ? json_string("") : text);
	(void)json_object_set_new(o, "ContentBlocks",
		t->want_blocks ? blocks_json(text) : json_array());
	sb_rpc_host_put(o, "SnapshotID", r->snapshot);
	(void)json_object_set_new(o, "ExitCode",
		r->has_exit ? json_integer(r->exit_code) : json_null());
	sb_rpc_host_put_int(o, "Tier", r->tier);
	sb_rpc_host_put_int(o, "Duration", r->duration_ns);
	(void)json_object_set_new(o, "IsError", json_boolean(r->is_error));
	(void)json_object_set_new(o, "TimedOut", json_boolean(r->timed_out));
	(void)json_object_set_new(o, "OOMKilled", json_boolean(r->oom));
	(void)json_object_set_new(o, "Truncated", json_boolean(r->truncated || len < r->text_len));
	sb_rpc_host_put_hidden(call, o, "SnapshotError", r->snapshot_error);
	(void)json_object_set_new(o, "Replayed", json_false());
	return o;
}

/* Progress of a streamed call. A character cut by a chunk's end waits for its rest. */
struct progress {
	struct sb_rpc_call *call;
	char held[2][4];
	size_t n_held[2];
};

/* Bytes at the end of `s` that begin a character and do not finish it. */
static size_t
cut_tail(const char *s, size_t len)
{
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		unsigned char c = (unsigned char)s[len - back];
		size_t want = c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : c >= 0xc0 ? 2 : 1;

		if ((c & 0xc0) != 0x80)
			return want > back ? back : 0;
	}
	return 0;
}

static void
send_progress(struct progress *p, const char *s, size_t len, bool is_stderr)
{
	json_t *part;

	if (len == 0)
		return;
	part = json_object();
	(void)json_object_set_new(part, "Content", sb_rpc_json_text(s, len));
	(void)json_object_set_new(part, "IsError", json_boolean(is_stderr));
	/* When the client is gone the call is canceled, which ends the tool. */
	(void)sb_rpc_stream_send(p->call, sb_rpc_host_wrap("Progress", part), NULL);
}

static void
on_progress(const void *data, size_t len, bool is_stderr, void *arg)
{
	struct progress *p = arg;
	size_t *n_held = &p->n_held[is_stderr];
	char *held = p->held[is_stderr];
	const char *s = data;
	char piece[PROGRESS_MAX + 4];

	while (len > 0) {
		size_t take = len < PROGRESS_MAX ? len : PROGRESS_MAX;
		size_t n = *n_held + take, tail;

		memcpy(piece, held, *n_held);
		memcpy(piece + *n_held, s, take);
		tail = cut_tail(piece, n);
		send_progress(p, piece, n - tail, is_stderr);
		memcpy(held, piece + n - tail, tail);
		*n_held = tail;
		s += take;
		len -= take;
	}
}

static json_t *
replayed(const char *text, struct sb_error *err)
{
	json_t *o = json_loads(text, JSON_ALLOW_NUL, NULL);

	if (!o)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	else
		(void)json_object_set_new(o, "Replayed", json_true());
	return o;
}

/* The first call of this run of the host: was there one before? As sb_rpc_idem_begin. */
static int
recall(struct sb_rpc_host *h, struct tool_call *t, struct sb_rpc_idem_run *run, char **out_text,
	struct sb_error *err)
{
	struct sb_host_session s;
	int r;

	if (!h->replay)
		return 0;
	r = sb_host_session_get(h->host, t->session, false, &s, err);
	if (r == 0) {
		memcpy(t->nonce, s.nonce, sizeof t->nonce);
		sb_host_session_clear(&s);
		r = sb_rpc_replay_begin(h->replay, t->nonce, t->id, t->digest, out_text, err);
	}
	if (r != 0)
		sb_rpc_idem_end(h->idem, run, r == 1 ? strdup(*out_text) : NULL);
	return r;
}

/* Takes `text`; NULL: the call failed. */
static void
keep(struct sb_rpc_host *h, const struct tool_call *t, struct sb_rpc_idem_run *run, char *text)
{
	if (h->replay)
		sb_rpc_replay_end(h->replay, t->nonce, t->id, text);
	sb_rpc_idem_end(h->idem, run, text);
}

/* Runs the tool, or gives an earlier result of the same call. */
static int
execute(struct sb_rpc_call *call, struct tool_call *t, struct progress *p, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_tool_request req = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_tool_result res = { 0 };
	struct sb_rpc_idem_run *run = NULL;
	sb_autofree char *text = NULL;
	int r;

	r = sb_rpc_idem_begin(h->idem, t->session, t->id, t->digest, limits.cancel, limits.deadline,
		&text, &run, err);
	if (r == 0)
		r = recall(h, t, run, &text, err);
	if (r == 1)
		return (*out = replayed(text, err)) ? 0 : SB_E_NOMEM;
	if (r < 0)
		return r;
	req.session = t->session;
	req.call_id = t->id;
	req.tool = t->tool;
	req.params = t->params;
	req.dir = t->dir;
	req.res = t->res;
	req.progress = p ? on_progress : NULL;
	req.arg = p;
	r = sb_host_tool_execute(h->host, &req, &limits, &res, err);
	if (r < 0) {
		keep(h, t, run, NULL);
		return r;
	}
	*out = result_json(call, t, &res);
	sb_host_tool_result_clear(&res);
	keep(h, t, run, *out ? json_dumps(*out, JSON_COMPACT) : NULL);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

int
sb_rpc_host_execute_tool(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct tool_call t = { 0 };
	int r = read_call(call, in, &t, err);

	if (r == 0)
		r = execute(call, &t, NULL, out, err);
	free(t.params);
	return r;
}

int
sb_rpc_host_execute_tool_stream(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct progress p = { .call = call };
	struct tool_call t = { 0 };
	json_t *res = NULL;
	int r = read_call(call, in, &t, err);

	(void)out;
	if (r == 0)
		r = execute(call, &t, &p, &res, err);
	free(t.params);
	if (r < 0)
		return r;
	for (int i = 0; i < 2; i++)
		send_progress(&p, p.held[i], p.n_held[i], i == 1);
	return sb_rpc_stream_send(call, sb_rpc_host_wrap("Response", res), err);
}

static json_t *
tool_json(const struct sb_host_tool *t)
{
	json_t *o = json_object();

	sb_rpc_host_put(o, "Name", t->name);
	sb_rpc_host_put(o, "Description", t->description);
	(void)json_object_set_new(o, "InputSchema", json_loads(t->schema, 0, NULL));
	(void)json_object_set_new(o, "ReadOnly", json_boolean(t->reads));
	(void)json_object_set_new(o, "Network", json_boolean(t->network));
	return o;
}

int
sb_rpc_host_list_tools(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_tool *v = NULL;
	struct sb_host_session s;
	struct sb_rpc_fields f;
	json_t *list;
	size_t n = 0;
	int r = 0;

	sb_rpc_fields_init(&f, in);
	if (*sb_rpc_field_str(&f, "SessionID", SB_HOST_ID_MAX, 0) || f.failed) {
		const char *id = sb_rpc_host_session_id(call, &f);

		r = sb_rpc_host_fields_end(call, &f, err);
		if (r == 0)
			r = sb_host_session_get(h->host, id, false, &s, err);
		if (r == 0)
			sb_host_session_clear(&s);
	}
	if (r == 0)
		r = sb_host_tool_list(&v, &n, err);
	if (r < 0)
		return r;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, tool_json(&v[i]));
	sb_host_tools_free(v, n);
	*out = sb_rpc_host_wrap("Tools", list);
	return 0;
}
