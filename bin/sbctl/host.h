/* SPDX-License-Identifier: MIT */
#ifndef SBCTL_HOST_H
#define SBCTL_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include <jansson.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/opt.h>
#include <sb/rpc.h>

/* Values of all options of the verbs of `sbctl host`; each verb takes some. */
struct host_args {
	const char *host, *token_file, *ca_file;
	int64_t timeout, fence;
	bool json, time, help;
	const char *id, *base, *snapshot, *params, *call_id, *stream;
	uint64_t quota;
	const char *runtime, *network;
	struct sb_opt_list allow, deny;
	struct sb_opt_list labels, states, env, kinds;
	bool empty, force, measure, kill_tools, drop_later, content, follow;
	int64_t limit, signal, expose_port, ttl, ready;
	const char **v; /* operands */
	int n;
};

/* How a member of a request is made. What was not given is left out, but for numbers and lists. */
enum host_field_kind {
	HOST_OPERAND,       /* the text of operand `at` */
	HOST_OPERANDS,      /* a list of the operands from `at` on */
	HOST_OPERAND_PAIRS, /* a map of the operands from `at` on, KEY=VALUE each */
	HOST_TEXT,          /* const char * of struct host_args, and so on */
	HOST_FLAG,          /* bool */
	HOST_INT,           /* int64_t */
	HOST_SIZE,          /* uint64_t */
	HOST_TIME,          /* int64_t of milliseconds, told in nanoseconds */
	HOST_LIST,          /* struct sb_opt_list */
	HOST_PAIRS,         /* the same as a map, KEY=VALUE each */
};

struct host_field {
	const char *key; /* as doc/sandbox.proto names it; NULL ends the table */
	enum host_field_kind kind;
	size_t at; /* number of the operand, or offset into struct host_args */
};

/* Such a table: FIELDS(FIELD_OPERAND("SessionID", 0), FIELD(FLAG, "Force", force)). */
/* clang-format off */
#define FIELDS(...) (const struct host_field[]){ __VA_ARGS__, { NULL, HOST_TEXT, 0 } }
#define FIELD(kind, key, field) { key, HOST_##kind, offsetof(struct host_args, field) }
#define FIELD_OPERAND(key, i) { key, HOST_OPERAND, i }
#define FIELD_OPERANDS(key, i) { key, HOST_OPERANDS, i }
#define FIELD_OPERAND_PAIRS(key, i) { key, HOST_OPERAND_PAIRS, i }
/* clang-format on */

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

/*
 * One verb. Its request is made of `fields`. A unary call has `show` (NULL: nothing to print); any
 * other is made by `run`, which gets the request and gives it up.
 */
struct host_verb {
	const char *name, *args, *help;
	const char *opts; /* names of its options besides the common ones, comma-separated */
	int min_args, max_args;
	const char *method; /* "GetSession" */
	const struct host_field *fields;
	void (*show)(const json_t *out);
	int (*run)(struct host_run *r, json_t *in, struct sb_error *err);
};

/* cmd-host-about.c */
extern const struct host_verb cmd_host_health, cmd_host_capabilities, cmd_host_bases,
	cmd_host_tools;
/* cmd-host-session.c */
extern const struct host_verb cmd_host_create, cmd_host_ls, cmd_host_get, cmd_host_label,
	cmd_host_network, cmd_host_pause, cmd_host_resume, cmd_host_deep_pause,
	cmd_host_deep_resume, cmd_host_destroy, cmd_host_fork, cmd_host_token;
/* cmd-host-snapshot.c */
extern const struct host_verb cmd_host_turn, cmd_host_snapshot, cmd_host_snapshots,
	cmd_host_timeline, cmd_host_rollback, cmd_host_diff, cmd_host_rm_snapshot, cmd_host_hold,
	cmd_host_release;
/* cmd-host-process.c */
extern const struct host_verb cmd_host_launch, cmd_host_kill, cmd_host_status, cmd_host_ps;
/* Each in its cmd-host-VERB.c. */
extern const struct host_verb cmd_host_ssh_access; /* cmd-host-ssh.c */
extern const struct host_verb cmd_host_exec, cmd_host_attach, cmd_host_tool, cmd_host_logs,
	cmd_host_events;

/* cmd-host.c: all of them, NULL-terminated. */
extern const struct host_verb *const host_verbs[];

/* host-options.c: all options; the first HOST_OPTIONS_COMMON are every verb's. */
#define HOST_OPTIONS_COMMON 8
#define HOST_OPTIONS_MAX 40
extern const struct sb_opt host_options[];
/* The verb for the option parser and the help printer. `opts` holds HOST_OPTIONS_MAX entries. */
struct sb_cmd host_options_of(const struct host_verb *v, struct sb_opt *opts);

/* host-request.c: the request of a verb; NULL with `err` set. */
json_t *host_request(const struct host_verb *v, const struct host_args *a, struct sb_error *err);
/* "ToolCallID": the one given, else a name that no other call has. */
void host_request_call_id(json_t *in, const struct host_args *a);
/*
 * The operands behind the session as a line of shell: a single word is one already, several are a
 * command with its arguments.
 */
int host_request_command(const struct host_args *a, struct sb_buf *cmd, struct sb_error *err);

/* host-call.c: the bearer token of a file, or of the environment; `keep` holds the first. */
int host_token(const char *file, struct sb_buf *keep, const char **out, struct sb_error *err);
/* Connects and runs the verb. Returns the exit status. */
int host_call_verb(struct host_run *r);
/* Sends the request, which it gives up, and shows the answer. */
int host_call_unary(struct host_run *r, json_t *in, struct sb_error *err);
/* Sends the request, which it gives up, and hands every message, parsed, to `fn`. */
int host_call_stream(struct host_run *r, json_t *in,
	void (*fn)(struct host_run *r, const json_t *msg), struct sb_error *err);

/* host-print.c: a value as one line of safe text; may be `out`. */
const char *host_print_cell(const json_t *v, char *out, size_t size);
/* A column: the field and its heading. Numbers of bytes are printed as they are. */
struct host_column {
	const char *field, *heading;
};
void host_print_table(const json_t *rows, const struct host_column *c, size_t n);
void host_print_fields(const json_t *out);                   /* key and value of each field */
void host_print_line(const json_t *out, const char *member); /* one member, on a line */
void host_print_text(FILE *f, const json_t *text);           /* byte for byte, at once */

/* host-content.c: what changed in the file of that row of a diff, as diff(1) shows it. */
void host_content_print(const json_t *row);

#endif
