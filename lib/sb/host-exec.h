/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_EXEC_H
#define SB_HOST_EXEC_H

#include <sb/host.h>

/*
 * Tools and processes inside a session. Both need an ACTIVE session; a paused one gives
 * SB_E_SESSION_PAUSED.
 */

/* Bytes of each stream of a command that a result keeps: when nothing is said, and at most. */
#define SB_HOST_OUTPUT_DEFAULT (256u << 10)
#define SB_HOST_OUTPUT_MAX (4u << 20)

/*
 * What one call may take. What nothing here can hold is refused, SB_E_UNSUPPORTED: control groups
 * hold sessions, not single calls, so processors and processes can be asked for only where the
 * session has a limit that is no higher.
 */
struct sb_host_resources {
	double cpus;         /* 0: the session's limit alone counts */
	uint64_t mem_mb;     /* address space of each process of it; 0: the session's limit alone */
	int64_t timeout_ms;  /* 0: tool_timeout_ms */
	uint64_t max_output; /* 0: SB_HOST_OUTPUT_DEFAULT. Of a tool that runs no command: of its
				text, 0: all */
	uint64_t max_pids;   /* processes and threads; 0: the session's limit alone counts */
};

/*
 * A piece of output as it comes. From the calling thread; it may block (the tool's output waits
 * then).
 */
typedef void (*sb_host_progress_fn)(const void *data, size_t len, bool is_stderr, void *arg);

struct sb_host_tool_request {
	size_t size;
	const char *session;
	const char *call_id; /* for the per-tool snapshot; idempotency is the RPC layer's */
	const char *tool;    /* "bash", ... */
	const char *params;  /* a JSON object as text; NULL: {} */
	/*
	 * Where it works, relative to the workspace and without "..": what relative paths begin
	 * at, and where commands start. NULL or "": the workspace itself.
	 */
	const char *dir;
	struct sb_host_resources res;
	sb_host_progress_fn progress; /* may be NULL */
	void *arg;
};
#define SB_HOST_TOOL_REQUEST_INIT \
	{ \
		.size = sizeof(struct sb_host_tool_request) \
	}

struct sb_host_tool_result {
	char *text; /* what the model sees; NUL-terminated */
	size_t text_len;
	bool is_error; /* the tool failed (a missing file, a bad parameter, a non-zero exit) */
	bool has_exit;
	int exit_code; /* 128+n for a signal, 124 for a timeout */
	bool timed_out, oom, truncated;
	int tier; /* 1 in the host, 2 in the runtime */
	int64_t duration_ns;
	char snapshot[SB_HOST_NAME_MAX + 1]; /* per-tool snapshot or "" */
	char snapshot_error[160];            /* why there is none although it was due, or "" */
};
SB_API void sb_host_tool_result_clear(struct sb_host_tool_result *r);

/*
 * A tool that sessions have, as a model is told of it. `schema` is a JSON Schema of its parameters
 * as text: those of another name are refused. (The names that an older generation of tools had for
 * some of them, and for the tools, are taken but not listed.)
 */
struct sb_host_tool {
	char *name;
	char *description;
	char *schema;
	bool reads;   /* it changes nothing */
	bool network; /* what it does depends on what the session may reach */
};
/* All there are, in an order that stays. Freed with sb_host_tools_free. */
SB_API int sb_host_tool_list(struct sb_host_tool **out, size_t *out_n, struct sb_error *err);
SB_API void sb_host_tools_free(struct sb_host_tool *v, size_t n);

/*
 * Runs a tool to its end. Problems of the tool are a result with `is_error`; errors are those of
 * the session, SB_E_TOOL_UNKNOWN, SB_E_INVAL (params), SB_E_LIMIT (max_tools), SB_E_RUNTIME. A
 * canceled call kills what it started.
 */
SB_API int sb_host_tool_execute(struct sb_host *h, const struct sb_host_tool_request *req,
	const struct sb_host_call *call, struct sb_host_tool_result *out, struct sb_error *err);

/*
 * A command whose standard descriptors are the caller's, byte for byte: for a program that talks to
 * one inside (a sync agent, a shell). Blocks until it ends and gives its exit code (128+n for a
 * signal); it ends with everything it started when `call` does. It is not a tool: it needs an
 * ACTIVE session to start, a pause freezes it, rollback and destroy kill it. SB_E_UNSUPPORTED with
 * a gVisor that hands no descriptors through.
 */
struct sb_host_attach {
	size_t size;
	const char *session;
	const char *const *argv;    /* NULL-terminated */
	const char *const *env;     /* "KEY=value", NULL-terminated or NULL */
	int fds[3];                 /* pipes or sockets; they stay the caller's */
	void (*started)(void *arg); /* it runs: the caller's copies of `fds` may go; may be NULL */
	void *arg;
	bool leave; /* what it left in the background when it ended goes on, as long as the session
		       is active; else it ends with it */
	uint64_t *number; /* for sb_host_attach_signal; set before `started` is called; may be
			     NULL */
};
#define SB_HOST_ATTACH_INIT \
	{ \
		.size = sizeof(struct sb_host_attach), .fds = { -1, -1, -1 } \
	}
SB_API int sb_host_attach(struct sb_host *h, const struct sb_host_attach *a,
	const struct sb_host_call *call, int *out_code, struct sb_error *err);
/* `sig` to such a command and all that it started. Success when it has ended. */
SB_API int sb_host_attach_signal(struct sb_host *h, const char *session, uint64_t number, int sig,
	struct sb_error *err);

#define SB_HOST_PROCESS_ID_MAX 63

enum sb_host_process_status { SB_HOST_PROC_STARTING, SB_HOST_PROC_RUNNING, SB_HOST_PROC_EXITED };
SB_API const char *sb_host_process_status_name(enum sb_host_process_status s);

struct sb_host_process {
	char id[SB_HOST_PROCESS_ID_MAX + 1];
	enum sb_host_process_status status;
	bool has_exit;
	int exit_code; /* 128+n for a signal; -1 and `has_exit` false: it ended with the machine, or
			  who waited for it did */
	int64_t pid;   /* on the host; 0 once gone */
	int64_t started_ns, ended_ns; /* Unix time; 0: not yet */
	char *binary;
	unsigned port;        /* that it exposes; 0: none */
	char *address;        /* where its port is reached while it runs, or "" */
	uint64_t log_size[2]; /* bytes written so far to stdout, stderr */
};
SB_API void sb_host_process_clear(struct sb_host_process *p);
SB_API void sb_host_processes_free(struct sb_host_process *v, size_t n);

struct sb_host_launch {
	size_t size;
	const char *session;
	const char *binary;
	const char *const *args; /* without argv[0]; NULL-terminated or NULL */
	const char *const *env;  /* "KEY=value", NULL-terminated or NULL */
	/*
	 * 0: none. Else a port that the process will listen on (at its loopback address); others
	 * reach it at `address` of the process, and only it, also when another session uses the
	 * same number. The process is STARTING until the port answers. SB_E_UNSUPPORTED where the
	 * runtime cannot tell one session's port from another's.
	 */
	int expose_port;
	struct sb_host_resources res;
	int64_t ready_timeout_ms; /* with a port: wait at most this long for it to answer; `status`
				     tells. 0: do not wait */
	int input; /* a descriptor that becomes its standard input, the caller's; 0: none */
};
#define SB_HOST_LAUNCH_INIT \
	{ \
		.size = sizeof(struct sb_host_launch) \
	}

/*
 * Starts a process of its own in the session. SB_E_LIMIT (max_processes), SB_E_INVAL, SB_E_NOTFOUND
 * (binary).
 */
SB_API int sb_host_process_launch(struct sb_host *h, const struct sb_host_launch *l,
	const struct sb_host_call *call, struct sb_host_process *out, struct sb_error *err);

/*
 * `sig` to the whole process tree; 0: SIGTERM. Success when it has ended already. Any state of the
 * session.
 */
SB_API int sb_host_process_kill(struct sb_host *h, const char *id, const char *process, int sig,
	struct sb_error *err);
SB_API int sb_host_process_get(struct sb_host *h, const char *id, const char *process,
	struct sb_host_process *out, struct sb_error *err);
/* Oldest first; ended ones are kept 10 minutes, their logs until the session is destroyed. */
SB_API int sb_host_process_list(struct sb_host *h, const char *id, struct sb_host_process **out,
	size_t *out_n, struct sb_error *err);

/*
 * Reads at most `size` bytes of a log (`which` 0 stdout, 1 stderr) from `*offset`, which moves on
 * (also past what was dropped). With `follow` it waits for more until `call` ends. Returns the
 * count; 0 means the end (the process ended and all was read), or, without `follow`, nothing more
 * for now.
 */
SB_API int64_t sb_host_process_logs(struct sb_host *h, const char *id, const char *process,
	int which, uint64_t *offset, void *data, size_t size, bool follow,
	const struct sb_host_call *call, struct sb_error *err);

#endif
