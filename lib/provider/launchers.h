/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_LAUNCHERS_H
#define SB_PROVIDER_LAUNCHERS_H

#include <sb/launcher.h>

struct sb_conn_exec;

/* Runs programs on this machine; `cwd` is where they start unless told. */
struct sb_launcher *sb_launcher_local_new(const char *cwd, struct sb_error *err);

/*
 * A program on the other side of a connection, as a handle: `x` is a command with "sbsync-agent
 * launch" (tool/launch.h) at its other end, which waits for its request. `signal` hands a signal on
 * (tool/serve.h), `let_go` ends the use of `arg`; both may come from any thread.
 */
struct sb_handle_far_opts {
	struct sb_conn_exec *x; /* taken over, also on failure, as is `arg` */
	const char *cwd;        /* in the runtime */
	int (*signal)(void *arg, int64_t pid, int sig, uint32_t value, struct sb_error *err);
	void (*let_go)(void *arg);
	void *arg;
};
int sb_handle_far_start(const struct sb_handle_far_opts *o, const struct sb_launch_spec *spec,
	const struct sb_call *call, struct sb_handle **out, struct sb_error *err);

/* The words of a spec, from `argv` or from `command`. */
int sb_launch_words(const struct sb_launch_spec *spec, struct sb_strlist *out,
	struct sb_error *err);
/* `env` and `secret_env` in one list, checked. Free with sb_secrets_free. */
int sb_launch_env(const struct sb_launch_spec *spec, struct sb_strlist *out, struct sb_error *err);

#endif
