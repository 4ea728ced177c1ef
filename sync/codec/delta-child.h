/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DELTA_CHILD_H
#define SBSYNC_DELTA_CHILD_H

#include <sync/codec/delta.h>

#include <sync/codec/delta-job.h>

/* What the child does. `io` leads to the parent; its result and message go there too. */
typedef int (
	*sb_delta_task_fn)(const struct sb_delta_io *io, int fd, void *arg, struct sb_error *err);

struct sb_delta_child_opts {
	sb_delta_task_fn task;
	void *task_arg;
	int fd;                 /* the one descriptor the task needs */
	sb_delta_source_fn src; /* what the task reads; NULL: nothing */
	void *src_arg;
	sb_delta_sink_fn sink; /* what it writes */
	void *sink_arg;
	const struct sb_delta_budget *budget;
	const struct sb_cancel *cancel;
};

/*
 * Runs the task in a child process under the budget. SB_E_LIMIT when that is spent (time,
 * output, memory), SB_E_CHILD when it died otherwise, else what the task says.
 */
int sb_delta_child_run(const struct sb_delta_child_opts *o, struct sb_error *err);

#endif
