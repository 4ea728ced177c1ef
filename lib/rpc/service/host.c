/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/service/host.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/strlist.h>
#include <rpc/service/access.h>
#include <rpc/service/host-priv.h>
#include <sb/version.h>

#define KEEP_RESULTS 4096
#define KEEP_BYTES (64u << 20)
#define KEEP_MS (5 * 60 * 1000)
#define TTL_S 3600
#define TTL_MAX_S (30 * 24 * 3600)
#define NS INT64_C(1000000000)

/* In order of doc/sandbox.proto. */
static const struct sb_rpc_method methods[] = {
	{ "CreateSession", 0, false, sb_rpc_host_create_session, NULL },
	{ "GetSession", SB_RPC_READ | SB_RPC_SCOPED | SB_RPC_INLINE, false, sb_rpc_host_get_session,
		NULL },
	{ "ListSessions", SB_RPC_READ, false, sb_rpc_host_list_sessions, NULL },
	{ "SetLabels", SB_RPC_SCOPED, false, sb_rpc_host_set_labels, NULL },
	/* Not for a session's own token: who is in there must not open the door. */
	{ "SetNetworkPolicy", 0, false, sb_rpc_host_set_network_policy, NULL },
	{ "PauseSession", SB_RPC_SCOPED, false, sb_rpc_host_pause_session, NULL },
	{ "ResumeSession", SB_RPC_SCOPED, false, sb_rpc_host_resume_session, NULL },
	{ "DeepPauseSession", SB_RPC_SCOPED, false, sb_rpc_host_deep_pause_session, NULL },
	/* Nor for this one: what is not here has no token of its own. */
	{ "DeepResumeSession", 0, false, sb_rpc_host_deep_resume_session, NULL },
	{ "DestroySession", SB_RPC_SCOPED, false, sb_rpc_host_destroy_session, NULL },
	{ "Fork", 0, false, sb_rpc_host_fork, NULL },
	{ "ListTools", SB_RPC_READ | SB_RPC_SCOPED, false, sb_rpc_host_list_tools, NULL },
	{ "ExecuteTool", SB_RPC_SCOPED, false, sb_rpc_host_execute_tool, NULL },
	{ "ExecuteToolStream", SB_RPC_SCOPED, true, sb_rpc_host_execute_tool_stream, NULL },
	{ "TurnComplete", SB_RPC_SCOPED, false, sb_rpc_host_turn_complete, NULL },
	{ "CreateSnapshot", SB_RPC_SCOPED, false, sb_rpc_host_create_snapshot, NULL },
	{ "ListSnapshots", SB_RPC_READ | SB_RPC_SCOPED, false, sb_rpc_host_list_snapshots, NULL },
	{ "RollbackSession", SB_RPC_SCOPED, false, sb_rpc_host_rollback_session, NULL },
	{ "DiffSnapshots", SB_RPC_READ | SB_RPC_SCOPED, false, sb_rpc_host_diff_snapshots, NULL },
	{ "DeleteSnapshot", SB_RPC_SCOPED, false, sb_rpc_host_delete_snapshot, NULL },
	{ "HoldSnapshot", SB_RPC_SCOPED, false, sb_rpc_host_hold_snapshot, NULL },
	{ "ReleaseSnapshot", SB_RPC_SCOPED, false, sb_rpc_host_release_snapshot, NULL },
	{ "LaunchProcess", SB_RPC_SCOPED, false, sb_rpc_host_launch_process, NULL },
	{ "KillProcess", SB_RPC_SCOPED, false, sb_rpc_host_kill_process, NULL },
	{ "GetProcessStatus", SB_RPC_READ | SB_RPC_SCOPED, false, sb_rpc_host_get_process_status,
		NULL },
	{ "ListProcesses", SB_RPC_READ | SB_RPC_SCOPED, false, sb_rpc_host_list_processes, NULL },
	{ "StreamProcessLogs", SB_RPC_SCOPED | SB_RPC_ENDLESS, true,
		sb_rpc_host_stream_process_logs, NULL },
	{ "Attach", SB_RPC_READ | SB_RPC_SCOPED | SB_RPC_ENDLESS, false, NULL,
		sb_rpc_host_attach_run },
	{ "HealthCheck", SB_RPC_READ | SB_RPC_ANY_ROLE, false, sb_rpc_host_health_check, NULL },
	{ "GetCapabilities", SB_RPC_READ | SB_RPC_ANY_ROLE, false, sb_rpc_host_get_capabilities,
		NULL },
	{ "ListBases", SB_RPC_READ, false, sb_rpc_host_list_bases, NULL },
	{ "StreamEvents", SB_RPC_SCOPED | SB_RPC_ENDLESS, true, sb_rpc_host_stream_events, NULL },
	{ "IssueSessionToken", 0, false, sb_rpc_host_issue_session_token, NULL },
	{ "CreateSshAccess", 0, false, sb_rpc_host_create_ssh_access, NULL },
	{ "ListSshAccess", SB_RPC_READ, false, sb_rpc_host_list_ssh_access, NULL },
	{ "RevokeSshAccess", 0, false, sb_rpc_host_revoke_ssh_access, NULL },
};

static bool
is_ready(void *arg)
{
	struct sb_rpc_host *h = arg;

	return sb_host_health_ready(h->host);
}

struct sb_rpc_host *
sb_rpc_host_new(const struct sb_rpc_auth *auth, size_t max_message, struct sb_error *err)
{
	struct sb_rpc_host *h = calloc(1, sizeof *h);

	if (!h) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	h->auth = auth;
	h->max_message = max_message;
	h->service = (struct sb_rpc_service){ "rpc.v1.SandboxService", methods,
		sizeof methods / sizeof methods[0], h, sb_rpc_host_metrics, is_ready,
		sb_rpc_host_hide, NULL };
	h->idem = sb_rpc_idem_new(KEEP_RESULTS, KEEP_BYTES, KEEP_MS, err);
	h->events = sb_rpc_events_new(err);
	if (!h->idem || !h->events) {
		sb_rpc_host_free(h);
		return NULL;
	}
	return h;
}

void
sb_rpc_host_free(struct sb_rpc_host *h)
{
	if (!h)
		return;
	sb_rpc_idem_free(h->idem);
	sb_rpc_replay_close(h->replay);
	sb_rpc_events_free(h->events);
	sb_rpc_access_close(h->access);
	free(h);
}

void
sb_rpc_host_use(struct sb_rpc_host *h, struct sb_host *host)
{
	h->host = host;
}

int
sb_rpc_host_remember(struct sb_rpc_host *h, const char *path, struct sb_error *err)
{
	h->replay = sb_rpc_replay_open(path, KEEP_MS / 1000, err);
	return h->replay ? 0 : err ? err->code : SB_E_SYS;
}

int
sb_rpc_host_keep_access(struct sb_rpc_host *h, const char *dir, struct sb_error *err)
{
	h->access = sb_rpc_access_open(dir, err);
	return h->access ? 0 : err ? err->code : SB_E_SYS;
}

struct sb_rpc_access *
sb_rpc_host_access(struct sb_rpc_host *h)
{
	return h->access;
}

void
sb_rpc_host_on_event(const struct sb_host_event *ev, void *arg)
{
	struct sb_rpc_host *h = arg;

	sb_rpc_events_publish(h->events, ev);
}

const struct sb_rpc_service *
sb_rpc_host_service(const struct sb_rpc_host *h)
{
	return &h->service;
}

static json_t *
space_json(const struct sb_host_health *s)
{
	json_t *o = json_object();

	sb_rpc_host_put_int(o, "Size", (int64_t)s->size);
	sb_rpc_host_put_int(o, "Allocated", (int64_t)s->used);
	sb_rpc_host_put_int(o, "Free", (int64_t)s->free);
	(void)json_object_set_new(o, "Capacity", json_real(s->capacity));
	(void)json_object_set_new(o, "Fragmentation",
		s->fragmentation >= 0 ? json_real(s->fragmentation) : json_null());
	return o;
}

int
sb_rpc_host_health_check(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_health s = { 0 };
	json_t *errors = json_array(), *o = json_object();

	(void)in;
	(void)err;
	sb_host_health(h->host, &limits, &s);
	sb_rpc_host_put(o, "Status", sb_host_health_name(s.status));
	sb_rpc_host_put(o, "PoolState", s.pool_state);
	sb_rpc_host_put(o, "Storage", s.storage);
	sb_rpc_host_put(o, "StorageWhy", s.storage_why);
	sb_rpc_host_put_int(o, "SessionCount", (int64_t)s.sessions);
	sb_rpc_host_put_int(o, "ActiveTools", (int64_t)s.active_tools);
	sb_rpc_host_put_int(o, "Uptime", s.uptime_ms * 1000000);
	for (size_t i = 0; i < s.n_reasons; i++) {
		sb_rpc_host_hide(h, sb_rpc_call_who(call), s.reasons[i], sizeof s.reasons[i]);
		(void)json_array_append_new(errors,
			sb_rpc_json_text(s.reasons[i], strlen(s.reasons[i])));
	}
	(void)json_object_set_new(o, "Errors", errors);
	(void)json_object_set_new(o, "PoolSpace", space_json(&s));
	sb_rpc_host_put_int(o, "Processes", (int64_t)s.processes);
	sb_rpc_host_put_int(o, "MaxSessions", s.max_sessions);
	sb_rpc_host_put_int(o, "FreeSessions", s.free_sessions);
	sb_rpc_host_put_int(o, "CPUs", s.cpus);
	sb_rpc_host_put_int(o, "MemMB", (int64_t)s.mem_mb);
	sb_rpc_host_put_int(o, "MemFreeMB", (int64_t)s.mem_free_mb);
	sb_rpc_host_put(o, "Version", sb_version());
	*out = o;
	return 0;
}

int
sb_rpc_host_get_capabilities(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);

	(void)in;
	(void)err;
	*out = sb_rpc_host_wrap("ServerCapabilities", sb_rpc_host_capabilities_json(h->host));
	return 0;
}

int
sb_rpc_host_list_bases(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	sb_auto(sb_strlist) struct sb_strlist bases = { 0 };
	json_t *list;
	int r = sb_host_base_list(h->host, &bases, err);

	(void)in;
	if (r < 0)
		return r;
	list = json_array();
	for (size_t i = 0; i < bases.n; i++)
		(void)json_array_append_new(list, sb_rpc_json_text(bases.v[i], strlen(bases.v[i])));
	*out = sb_rpc_host_wrap("Bases", list);
	return 0;
}

int
sb_rpc_host_issue_session_token(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	char token[SB_RPC_ISSUED_MAX];
	char nonce[SB_HOST_NONCE_LEN + 1];
	struct sb_host_session s;
	struct sb_rpc_fields f;
	int64_t ttl_s, now;
	const char *id;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	ttl_s = (sb_rpc_field_int(&f, "TTL", 0, TTL_MAX_S * NS) + NS - 1) / NS;
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = sb_host_session_get(h->host, id, false, &s, err);
	if (r < 0)
		return r;
	memcpy(nonce, s.nonce, sizeof nonce);
	sb_host_session_clear(&s);
	if (!h->auth)
		return sb_fail(err, SB_E_UNSUPPORTED, "this host has no key for session tokens");
	now = time(NULL);
	ttl_s = ttl_s > 0 ? ttl_s : TTL_S;
	r = sb_rpc_auth_issue(h->auth, id, nonce, now + ttl_s, token, err);
	if (r < 0)
		return r;
	*out = json_object();
	sb_rpc_host_put(*out, "Token", token);
	(void)json_object_set_new(*out, "ExpiresAt", sb_rpc_host_time_json((now + ttl_s) * NS));
	return 0;
}
