/* SPDX-License-Identifier: MIT */
#ifndef SBCTL_HOST_H
#define SBCTL_HOST_H

#include <stdbool.h>

#include <jansson.h>

#include <base/opt.h>
#include <sb/rpc.h>

/* Values of all options of the verbs of `sbctl host`; each verb takes some. */
struct host_args {
	const char *host, *token_file, *ca_file;
	int64_t timeout;
	bool json, help;
	const char *id, *base, *snapshot, *params, *call_id, *stream;
	uint64_t quota;
	const char *runtime, *network;
	struct sb_opt_list labels, states, env, kinds;
	bool empty, force, measure, kill_tools, follow;
	int64_t limit, signal, expose_port, ttl, ready;
	const char **v; /* operands */
	int n;
};

struct host_verb;

/* A call under way. */
struct host_run {
	const struct host_verb *verb;
	struct host_args args;
	struct sb_rpc_client *client;
	struct sb_rpc_client_opts how; /* it was made with; valid while the verb runs */
	struct sb_rpc_wait wait;
	int status; /* exit status of a command that was run over there */
};

/* One verb. Exactly one of `build` with `show` (a unary call), or `run`. */
struct host_verb {
	const char *name, *args, *help;
	const char *opts; /* names of its options besides the common ones, comma-separated */
	int min_args, max_args;
	const char *method; /* "GetSession" */
	/* The request; NULL with `err` set. */
	json_t *(*build)(const struct host_args *a, struct sb_error *err);
	/* Prints the answer; NULL: nothing to print. */
	void (*show)(const json_t *out);
	int (*run)(struct host_run *r, struct sb_error *err);
};

extern const struct host_verb host_verbs[];

/* host-show.c */
void host_show_session(const json_t *out);
void host_show_sessions(const json_t *out);
void host_show_snapshot(const json_t *out);
void host_show_snapshots(const json_t *out);
void host_show_changes(const json_t *out);
void host_show_process(const json_t *out);
void host_show_processes(const json_t *out);
void host_show_fields(const json_t *out); /* key and value of each field */
void host_show_bases(const json_t *out);
void host_show_token(const json_t *out);

/* host-stream.c */
int host_run_exec(struct host_run *r, struct sb_error *err);
int host_run_tool(struct host_run *r, struct sb_error *err);
int host_run_logs(struct host_run *r, struct sb_error *err);
int host_run_events(struct host_run *r, struct sb_error *err);
int host_run_attach(struct host_run *r, struct sb_error *err);

/* {"SessionID": first operand}, {"key": {"K": "V", ...}} from K=V texts. */
json_t *host_session_request(const struct host_args *a);
int host_put_pairs(json_t *o, const char *key, const struct sb_opt_list *l, struct sb_error *err);

#endif
