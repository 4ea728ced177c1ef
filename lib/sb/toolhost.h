/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOLHOST_H
#define SB_TOOLHOST_H

#include <sb/sandbox.h>

#define SB_TOOLHOST_VERSION 1
#define SB_TOOLHOST_FILE_MAX (64u << 20)       /* bytes of a file that is read or written */
#define SB_TERMINAL_OUTPUT_DEFAULT (64 * 1024) /* bytes of output that are kept */
#define SB_TERMINAL_ID_MAX 31
#define SB_TERMINALS_MAX 64 /* of one tool host at a time */

/* One permission table for all providers. SB_E_DENIED names operation and mode. */
SB_API int sb_permission_authorize(enum sb_perm_mode mode, enum sb_perm_op op,
	struct sb_error *err);
/*
 * The decision for a tool of `kind` ("read", "edit", ...; NULL: unknown) whose locations all lie
 * inside: approve-all allows once; approve-reads allows "read" once, else pending with
 * `interactive`; deny-all rejects once.
 */
SB_API enum sb_decision sb_permission_decide(enum sb_perm_mode mode, const char *kind,
	bool *interactive);

struct sb_permission_request {
	size_t size;
	const char *kind;             /* of the tool */
	const char *const *locations; /* paths it names; any that leads out rejects the request */
};
#define SB_PERMISSION_REQUEST_INIT \
	{ \
		.size = sizeof(struct sb_permission_request) \
	}

struct sb_terminal_spec {
	size_t size;
	const char *command;     /* split by the shell's quoting rules */
	const char *const *args; /* appended; may be NULL */
	const char *cwd;         /* must lie inside; NULL: the root */
	const char *const *env;  /* "KEY=value" over the filtered environment */
	int64_t output_limit; /* bytes kept; negative: SB_TERMINAL_OUTPUT_DEFAULT; 0 keeps nothing
			       */
};
#define SB_TERMINAL_SPEC_INIT \
	{ \
		.size = sizeof(struct sb_terminal_spec), .output_limit = -1 \
	}

struct sb_terminal_output {
	char *text; /* stdout and stderr as they came, the last bytes of it, starting at a
		       character; owned */
	size_t len;
	bool truncated; /* the beginning was dropped */
	bool ended;
	struct sb_ended how; /* once ended */
};
SB_API void sb_terminal_output_free(struct sb_terminal_output *o);

struct sb_tool_host;

/*
 * Files and terminals of a runtime on behalf of an agent. Paths are absolute in the runtime or
 * relative to its root, and stay beneath the session's roots whatever symlinks say: resolution is
 * by descriptor, so a swap between check and use changes nothing. SB_E_INVAL: empty, with a NUL.
 * SB_E_ESCAPE: leads out. SB_E_DENIED: the mode forbids it. Any thread may call any member except
 * `free`. No member may be NULL.
 */
struct sb_tool_host_ops {
	unsigned version; /* SB_TOOLHOST_VERSION */
	/*
	 * The whole file, NUL-terminated behind `out_len`. SB_E_NOTFOUND, SB_E_LIMIT; SB_E_INVAL
	 * for what is no regular file.
	 */
	int (*read_text_file)(struct sb_tool_host *t, const char *path, const struct sb_call *call,
		char **out, size_t *out_len, struct sb_error *err);
	/*
	 * Makes missing parents (0755); atomic; keeps the mode of what is there, 0600 for a new
	 * file.
	 */
	int (*write_text_file)(struct sb_tool_host *t, const char *path, const void *data,
		size_t len, const struct sb_call *call, struct sb_error *err);
	/*
	 * The absolute path in the runtime that `path` means, all links resolved; it need not
	 * exist.
	 */
	int (*resolve_path)(struct sb_tool_host *t, const char *path, const struct sb_call *call,
		char **out, struct sb_error *err);
	int (*authorize)(struct sb_tool_host *t, enum sb_perm_op op, struct sb_error *err);
	int (*permission_decision)(struct sb_tool_host *t, const struct sb_permission_request *req,
		const struct sb_call *call, enum sb_decision *out, bool *interactive,
		struct sb_error *err);
	/*
	 * Starts a command in a group of its own: "term-1", "term-2", ... SB_E_LIMIT past
	 * SB_TERMINALS_MAX.
	 */
	int (*terminal_create)(struct sb_tool_host *t, const struct sb_terminal_spec *spec,
		const struct sb_call *call, char out_id[SB_TERMINAL_ID_MAX + 1],
		struct sb_error *err);
	/* The rest: SB_E_TERMINAL_NOT_FOUND for an id that is not there or was released. */
	int (*terminal_output)(struct sb_tool_host *t, const char *id, const struct sb_call *call,
		struct sb_terminal_output *out, struct sb_error *err);
	/* A bad exit is no error. */
	int (*terminal_wait)(struct sb_tool_host *t, const char *id, const struct sb_call *call,
		struct sb_ended *out, struct sb_error *err);
	/* KILL to the group; the output stays readable. Success when it has ended. */
	int (*terminal_kill)(struct sb_tool_host *t, const char *id, const struct sb_call *call,
		struct sb_error *err);
	/* Kill and forget. */
	int (*terminal_release)(struct sb_tool_host *t, const char *id, const struct sb_call *call,
		struct sb_error *err);
	/* Kills and forgets all terminals, and itself. */
	void (*free)(struct sb_tool_host *t);
};

/* Implementations embed it as their first member. */
struct sb_tool_host {
	const struct sb_tool_host_ops *ops;
};

SB_API void sb_tool_host_free(struct sb_tool_host *t); /* NULL is allowed */

#endif
