/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_TOOLSET_H
#define SB_PROVIDER_TOOLSET_H

#include <sb/toolhost.h>

struct sb_far;

/*
 * Files and terminals of a runtime, without permission checks: sb_tool_host_new puts the one
 * permission table in front of a toolset. The members have the contracts of struct
 * sb_tool_host_ops.
 */
struct sb_toolset;
struct sb_toolset_ops {
	int (*read)(struct sb_toolset *b, const char *path, const struct sb_call *call, char **out,
		size_t *out_len, struct sb_error *err);
	int (*write)(struct sb_toolset *b, const char *path, const void *data, size_t len,
		const struct sb_call *call, struct sb_error *err);
	int (*resolve)(struct sb_toolset *b, const char *path, const struct sb_call *call,
		char **out, struct sb_error *err);
	int (*create)(struct sb_toolset *b, const struct sb_terminal_spec *spec,
		const struct sb_call *call, char out_id[SB_TERMINAL_ID_MAX + 1],
		struct sb_error *err);
	int (*output)(struct sb_toolset *b, const char *id, const struct sb_call *call,
		struct sb_terminal_output *out, struct sb_error *err);
	int (*wait)(struct sb_toolset *b, const char *id, const struct sb_call *call,
		struct sb_ended *out, struct sb_error *err);
	int (*kill)(struct sb_toolset *b, const char *id, const struct sb_call *call,
		struct sb_error *err);
	int (*release)(struct sb_toolset *b, const char *id, const struct sb_call *call,
		struct sb_error *err);
	void (*free)(struct sb_toolset *b);
};

struct sb_toolset {
	const struct sb_toolset_ops *ops;
};

/* A tool host over a toolset, which it takes over, also on failure. */
struct sb_tool_host *sb_tool_host_new(struct sb_toolset *b, enum sb_perm_mode mode,
	struct sb_error *err);

/* The files and programs of this machine beneath `root` and `dirs` (may be NULL). */
struct sb_toolset *sb_toolset_near(const char *root, const char *const *dirs, struct sb_error *err);

/*
 * Files and terminals of the machine at the other end of a connection (tool/far.h). `take` returns
 * the line to ask, connecting again if need be, with the roots already told; `give` hands it back.
 * `let_go` ends the use of `arg`.
 */
struct sb_toolset_link {
	struct sb_far *(
		*take)(void *arg, const struct sb_call *call, void **token, struct sb_error *err);
	void (*give)(void *arg, void *token);
	void (*let_go)(void *arg);
	void *arg;
};
struct sb_toolset *sb_toolset_far(const struct sb_toolset_link *link, struct sb_error *err);

/* The cancel token and the deadline of a call that may be NULL. */
static inline const struct sb_cancel *
sb_call_cancel(const struct sb_call *call)
{
	return call ? call->cancel : NULL;
}

static inline sb_deadline
sb_call_deadline(const struct sb_call *call)
{
	return call ? call->deadline : SB_NEVER;
}

#endif
