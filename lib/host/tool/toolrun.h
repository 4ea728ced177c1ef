/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_TOOLRUN_H
#define SB_HOST_TOOLRUN_H

#include <base/buf.h>
#include <host/hsess.h>
#include <host/runtime/runtime.h>

struct sb_host;

/* A command of a tool call, run to its end in the session's runtime. */
struct sb_toolrun_out {
	struct sb_buf out, errs; /* what was kept of the streams */
	bool truncated, timed_out, oom;
	int exit_code;
};

struct sb_toolrun_opts {
	struct sb_host *h;
	struct sb_hsess *s;
	const char *workspace;
	const char *const *argv;
	const char *const *env; /* on top of the runtime's own; may be NULL */
	const char *mark;
	struct sb_host_resources res;
	sb_deadline deadline;            /* of the call: when it passes, that is a result */
	int64_t timeout_ms;              /* of the command from its start on, the same; 0: none */
	const struct sb_host_call *call; /* of the caller: its end is an error */
	const struct sb_cancel *kill;    /* of the session: its end is an error */
	sb_host_progress_fn progress;
	void *arg;
	size_t max_output;
};

/*
 * Fills `out` (initialised here, freed by the caller with sb_toolrun_out_free). SB_E_CANCELED when
 * killed or canceled.
 */
int sb_toolrun_exec(const struct sb_toolrun_opts *o, struct sb_toolrun_out *out,
	struct sb_error *err);
void sb_toolrun_out_free(struct sb_toolrun_out *out);
SB_CLEANUP_VALUE(sb_toolrun_out, sb_toolrun_out_free)

#endif
