/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_HOST_PRIV_H
#define SB_RPC_HOST_PRIV_H

#include <rpc/service/events.h>
#include <rpc/protocol/field.h>
#include <rpc/service/host.h>
#include <rpc/service/idem.h>
#include <rpc/service/replay.h>
#include <sb/host-exec.h>
#include <sb/host-snapshot.h>

/* The procedures share this; each has the form of sb_rpc_method.run. */
struct sb_rpc_host {
	struct sb_host *host;
	const struct sb_rpc_auth *auth;
	size_t max_message;
	struct sb_rpc_idem *idem;
	struct sb_rpc_replay *replay; /* NULL: calls are not remembered over a restart */
	struct sb_rpc_events *events;
	struct sb_rpc_access *access; /* NULL: none are kept */
	struct sb_rpc_service service;
};

typedef int sb_rpc_host_fn(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err);

sb_rpc_host_fn sb_rpc_host_create_session, sb_rpc_host_get_session, sb_rpc_host_list_sessions,
	sb_rpc_host_set_labels, sb_rpc_host_pause_session, sb_rpc_host_resume_session,
	sb_rpc_host_destroy_session, sb_rpc_host_fork, sb_rpc_host_set_network_policy,
	sb_rpc_host_deep_pause_session, sb_rpc_host_deep_resume_session;
sb_rpc_host_fn sb_rpc_host_list_tools, sb_rpc_host_execute_tool, sb_rpc_host_execute_tool_stream;
sb_rpc_host_fn sb_rpc_host_turn_complete, sb_rpc_host_create_snapshot, sb_rpc_host_list_snapshots,
	sb_rpc_host_rollback_session, sb_rpc_host_diff_snapshots, sb_rpc_host_delete_snapshot,
	sb_rpc_host_hold_snapshot, sb_rpc_host_release_snapshot;
sb_rpc_host_fn sb_rpc_host_launch_process, sb_rpc_host_kill_process, sb_rpc_host_get_process_status,
	sb_rpc_host_list_processes, sb_rpc_host_stream_process_logs;
sb_rpc_host_fn sb_rpc_host_health_check, sb_rpc_host_get_capabilities, sb_rpc_host_list_bases,
	sb_rpc_host_stream_events, sb_rpc_host_issue_session_token;
sb_rpc_host_fn sb_rpc_host_create_ssh_access, sb_rpc_host_list_ssh_access,
	sb_rpc_host_revoke_ssh_access;
void sb_rpc_host_metrics(void *arg, struct sb_buf *out);

/*
 * SessionID of a request. A token that was issued for another session of the same id is a
 * mistake, too: it is kept in `f`.
 */
const char *sb_rpc_host_session_id(struct sb_rpc_call *call, struct sb_rpc_fields *f);
/* 0, or the first mistake, whose field is then named in the answer. */
int sb_rpc_host_fields_end(struct sb_rpc_call *call, const struct sb_rpc_fields *f,
	struct sb_error *err);
/* The id of a request that has no other field. */
int sb_rpc_host_only_session(struct sb_rpc_call *call, const json_t *in, const char **out_id,
	struct sb_error *err);
struct sb_host_call sb_rpc_host_limits(const struct sb_rpc_call *call);
/*
 * Labels of a request as the host takes them; `map` keeps the strings. Freed by the caller (array
 * only).
 */
struct sb_host_label *sb_rpc_host_labels(struct sb_rpc_fields *f, struct sb_strmap *map);
/* Allow and Deny of a request; `allow` and `deny` keep the strings. */
void sb_rpc_host_network_lists(struct sb_rpc_fields *f, struct sb_strlist *allow,
	struct sb_strlist *deny, struct sb_host_create_opts *o);
/* A policy as Allow and Deny of an answer. */
void sb_rpc_host_network_put(json_t *obj, const char *policy);
/* Resources of a request. */
void sb_rpc_host_resources(struct sb_rpc_fields *f, struct sb_host_resources *out);

/* Encoders: new references, NULL when out of memory. */
json_t *sb_rpc_host_time_json(int64_t ns); /* 0: null */
json_t *sb_rpc_host_session_json(struct sb_rpc_call *call, const struct sb_host_session *s);
json_t *sb_rpc_host_capabilities_json(const struct sb_host *h);
void sb_rpc_host_put(json_t *obj, const char *key, const char *text);
void sb_rpc_host_put_int(json_t *obj, const char *key, int64_t v);
/* The wrapped object {"key": v}; takes `v`. */
json_t *sb_rpc_host_wrap(const char *key, json_t *v);
/*
 * host-hide.c: replaces the names of the host's own places in a message to somebody who is no
 * admin; an sb_rpc_service.hide.
 */
void sb_rpc_host_hide(void *arg, const struct sb_rpc_who *who, char *text, size_t size);
/* The same for a text of an answer. */
void sb_rpc_host_put_hidden(struct sb_rpc_call *call, json_t *o, const char *key, const char *text);
/* Bytes as base64 text, padded. */
json_t *sb_rpc_host_bytes_json(const void *data, size_t len);

/* Attach: a command over the upgraded connection. */
int sb_rpc_host_attach_run(struct sb_rpc_call *call, const json_t *in, int sock,
	struct sb_error *err);

#endif
