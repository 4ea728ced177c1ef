/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_TOOLCALL_H
#define SB_HOST_TOOLCALL_H

#include <jansson.h>

#include <host/proc.h>
#include <host/tool/toolrun.h>
#include <tool/roots.h>

#define SB_TOOL_TEXT_MAX (16u << 20) /* of a result */

/* One tool call under way. */
struct sb_toolcall {
	struct sb_host *h;
	struct sb_hsess *s;
	const struct sb_host_tool_request *req;
	const struct sb_host_call *call;
	json_t *params;
	char *workspace;
	char mark[SB_HOST_PROC_MARK_MAX];
	struct sb_hsess_tool run;
	sb_deadline deadline;
};

/*
 * Read a parameter. A wrong type is SB_E_INVAL with "TOOL NAME must be ..."; a missing one is NULL
 * or `def`. `alias` may be NULL.
 */
int sb_toolcall_str(const struct sb_toolcall *c, const char *name, const char *alias, bool required,
	const char **out, struct sb_error *err);
int sb_toolcall_int(const struct sb_toolcall *c, const char *name, int64_t def, int64_t min,
	int64_t max, int64_t *out, struct sb_error *err);
int sb_toolcall_bool(const struct sb_toolcall *c, const char *name, bool *out,
	struct sb_error *err);

/* Opens the workspace as the one root of paths, under the name that commands know it by, too. */
int sb_toolcall_roots(const struct sb_toolcall *c, struct sb_roots *out, struct sb_error *err);
/* SB_E_CANCELED or SB_E_TIMEOUT once the call should end. */
int sb_toolcall_alive(const struct sb_toolcall *c, struct sb_error *err);

/* Makes the text the result; takes it out of the buffer. */
int sb_toolcall_result(struct sb_host_tool_result *out, struct sb_buf *text, bool is_error,
	struct sb_error *err);
/*
 * Turns a failure of the tool into a result with `is_error`, and returns errors of the machine as
 * they are.
 */
int sb_toolcall_failed(struct sb_host_tool_result *out, const struct sb_error *why,
	struct sb_error *err);
int sb_toolcall_says(struct sb_host_tool_result *out, bool is_error, struct sb_error *err,
	const char *fmt, ...) SB_PRINTF(4, 5);

/* Runs a command in the session with bounded output; its time is `timeout_ms` from its start. */
int sb_toolcall_exec(struct sb_toolcall *c, const char *const *argv, const char *const *env,
	int64_t timeout_ms, size_t max_output, struct sb_toolrun_out *run, struct sb_error *err);
/* Copies exit code and flags of a run into the result. */
void sb_toolcall_flags(const struct sb_toolcall *c, const struct sb_toolrun_out *run,
	struct sb_host_tool_result *out);

#endif
