/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_TOOLCALL_H
#define SB_HOST_TOOLCALL_H

#include <host/files/params.h>
#include <host/proc.h>
#include <host/tool/toolrun.h>

#define SB_TOOL_TEXT_MAX (16u << 20) /* of a result */

/* One tool call under way. */
struct sb_toolcall {
	struct sb_host *h;
	struct sb_hsess *s;
	const struct sb_host_tool_request *req;
	const struct sb_host_call *call;
	struct sb_params params;
	char *workspace;
	char mark[SB_HOST_PROC_MARK_MAX];
	struct sb_hsess_tool run;
	sb_deadline deadline;
};

/* Makes the text the result; takes it out of the buffer. */
int sb_toolcall_result(struct sb_host_tool_result *out, struct sb_buf *text, bool is_error,
	struct sb_error *err);
/* Runs a command in the session with bounded output; its time is `timeout_ms` from its start. */
int sb_toolcall_exec(struct sb_toolcall *c, const char *const *argv, const char *const *env,
	int64_t timeout_ms, size_t max_output, struct sb_toolrun_out *run, struct sb_error *err);
/* Bytes of each stream of its command that are kept. */
size_t sb_toolcall_output(const struct sb_toolcall *c);
/* Copies exit code and flags of a run into the result. */
void sb_toolcall_flags(const struct sb_toolcall *c, const struct sb_toolrun_out *run,
	struct sb_host_tool_result *out);

#endif
