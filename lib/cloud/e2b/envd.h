/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_ENVD_H
#define SB_CLOUD_ENVD_H

#include <cloud/http/rest.h>

/*
 * The plane of one E2B sandbox: programs in it and files of it. Thread-safe. One that is paused or
 * gone answers SB_E_SANDBOX_NOT_FOUND.
 */
struct sb_envd;

struct sb_envd_opts {
	size_t size;
	const char *url, *id;
	const char *token; /* NULL: none */
	const char *ca_file;
	struct sb_log log;
};
#define SB_ENVD_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_envd_opts) \
	}

struct sb_envd *sb_envd_new(const struct sb_envd_opts *o, struct sb_error *err);
void sb_envd_free(struct sb_envd *e);
SB_CLEANUP_PTR(sb_envd, sb_envd_free)

struct sb_envd_run {
	size_t size;
	const char *command; /* a line for sh */
	const char *tag;     /* by which sb_envd_sweep knows it; may be NULL */
	int fds[3];          /* its streams, byte by byte; -1: none. They stay the caller's. */
	/*
	 * Called every `tick_ms` while it runs, on a thread of its own: the place to keep the
	 * sandbox alive. May be NULL.
	 */
	void (*tick)(void *arg, const struct sb_cancel *cancel);
	void *tick_arg;
	int64_t tick_ms;
};
#define SB_ENVD_RUN_INIT \
	{ \
		.size = sizeof(struct sb_envd_run), .fds = { -1, -1, -1 } \
	}

/*
 * Runs a command to its end; `*code` is its exit code, or 128 + signal. The program would outlive a
 * caller that leaves early (cancel, deadline, a stream of the caller's that closes): it gets the
 * end of its input and is asked to end, then killed. A cut is SB_E_CLOSED: bytes may be missing.
 */
int sb_envd_run(struct sb_envd *e, const struct sb_envd_run *o, const struct sb_rest_wait *wait,
	int *code, struct sb_error *err);

/* The same with little input and output at once; `out` (initialised by the caller) has stdout. */
int sb_envd_run_small(struct sb_envd *e, const char *command, const struct sb_rest_wait *wait,
	struct sb_buf *out, int *code, struct sb_error *err);

/* Makes the file `path` of the bytes of `fd`, from its beginning. */
int sb_envd_put(struct sb_envd *e, const char *path, int fd, uint64_t size,
	const struct sb_rest_wait *wait, struct sb_error *err);

/* Ends every program whose tag `gone` says has nobody any more, and waits for their end. */
int sb_envd_sweep(struct sb_envd *e, bool (*gone)(const char *tag, void *arg), void *arg,
	const struct sb_rest_wait *wait, struct sb_error *err);

#endif
