/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_HOSTSESS_H
#define SB_CONTROL_HOSTSESS_H

#include <control/hostcall.h>

/*
 * Sandboxes that are sessions of a sandbox host: the calls of sb/control.h with the host instead of
 * a control, for every control that has such hosts. The id of a sandbox is that of its session.
 */

/* `limits` (may be NULL): the host enforces limits of processors and memory. */
int sb_hostsess_capabilities(struct sb_hostcall *h, const struct sb_control_call *call,
	struct sb_control_caps *out, bool *limits, struct sb_error *err);

/*
 * Makes the session `id`, or finds it as the same request has made it before: an answer that was
 * lost is asked for again. SB_E_CONFLICT: another request made it. `base` NULL: empty. What the
 * host cannot do for one session (cpus, mem_mb, lifetime_ms) is not looked at.
 */
int sb_hostsess_create(struct sb_hostcall *h, const char *id,
	const struct sb_control_create_opts *o, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err);
int sb_hostsess_destroy(struct sb_hostcall *h, const char *id, bool force,
	const struct sb_control_call *call, struct sb_error *err);
int sb_hostsess_get(struct sb_hostcall *h, const char *id, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err);
int sb_hostsess_list(struct sb_hostcall *h, const struct sb_control_filter *f,
	const struct sb_control_call *call, struct sb_control_sandbox **out, size_t *out_n,
	struct sb_error *err);

int sb_hostsess_launch(struct sb_hostcall *h, const struct sb_control_launch_opts *o,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err);
int sb_hostsess_kill(struct sb_hostcall *h, const char *id, const char *process, int sig,
	const struct sb_control_call *call, struct sb_error *err);
int sb_hostsess_status(struct sb_hostcall *h, const char *id, const char *process,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err);

int sb_hostsess_pause(struct sb_hostcall *h, const char *id, const struct sb_control_call *call,
	struct sb_error *err);
int sb_hostsess_resume(struct sb_hostcall *h, const char *id, const struct sb_control_call *call,
	struct sb_error *err);
int sb_hostsess_snapshot(struct sb_hostcall *h, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err);
int sb_hostsess_rollback(struct sb_hostcall *h, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err);
int sb_hostsess_fork(struct sb_hostcall *h, const char *id, const char *name, const char *new_id,
	const struct sb_control_create_opts *o, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err);

/*
 * An address of a process as a caller of `url` reaches it: SB_E_UNSUPPORTED where the host told one
 * that only the host's own machine reaches, and that is another machine.
 */
int sb_hostsess_reachable(const char *url, const char *address, struct sb_error *err);

#endif
