/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_TRANSPORT_H
#define SBSYNC_TRANSPORT_H

#include <stdbool.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>
#include <base/cleanup.h>

/*
 * A two-way byte stream to a running agent. The engine reads `rfd` and writes `wfd` (blocking or
 * with poll, one reader thread and one writer thread at most); behind them the implementation has a
 * child's pipes, an `ssh` program's pipes, or a pump thread that moves bytes between a socket pair
 * and a libssh2 channel. End of file on `rfd` means the peer closed its side, or the connection
 * broke: `wait` tells which.
 */
struct sb_transport;

struct sb_exit {
	bool known;             /* false: the connection ended without an exit status */
	int code;               /* exit code, or 128 + signal */
	char stderr_tail[2048]; /* the last of what the far side wrote to stderr, escaped */
};

struct sb_transport_ops {
	const char *name; /* "child", "ssh", "rsh" */
	/* Half-close: the peer reads end of file. Idempotent. */
	int (*close_write)(struct sb_transport *t, struct sb_error *err);
	/*
	 * Waits for the far side to end, at most until `d`. SB_E_TIMEOUT leaves it running.
	 * Connection failures are errors with their own codes.
	 */
	int (*wait)(struct sb_transport *t, sb_deadline d, struct sb_exit *out,
		struct sb_error *err);
	/* Breaks it at once: blocked reads and writes return. Any thread. */
	void (*cancel)(struct sb_transport *t);
	/*
	 * Bytes on the wire so far in each direction, measured as low as the implementation can:
	 * socket bytes for libssh2. Both 0 where it cannot see them (child, rsh, fds): count what
	 * you read and write.
	 */
	void (*wire_bytes)(const struct sb_transport *t, uint64_t *up, uint64_t *down);
	/* Cancels what still runs and frees everything. */
	void (*free)(struct sb_transport *t);
	/* The far side has spoken: nobody is asked to log in any more. May be NULL. */
	void (*heard)(struct sb_transport *t);
};

struct sb_transport {
	const struct sb_transport_ops *ops;
	int rfd;
	int wfd;
	int efd; /* the far side's stderr where the caller asked for it; -1: only its tail is kept
		  */
};

static inline void
sb_transport_heard(struct sb_transport *t)
{
	if (t->ops->heard)
		t->ops->heard(t);
}

static inline void
sb_transport_free(struct sb_transport *t)
{
	if (t)
		t->ops->free(t);
}
SB_CLEANUP_PTR(sb_transport, sb_transport_free)

/*
 * A child process with argv (argv[0] looked up in PATH); its stderr tail is kept. As for every
 * transport, this program must ignore SIGPIPE, so that a write to a peer that is gone fails with
 * EPIPE.
 */
struct sb_transport *sb_transport_child(const char *const *argv, struct sb_error *err);
/* The same with its stderr at `efd`, which must be read. */
struct sb_transport *sb_transport_child_split(const char *const *argv, struct sb_error *err);
/*
 * Either of them where it may ask the user something (in the foreground of our terminal), or where
 * it cannot (away from it).
 */
struct sb_transport *sb_transport_child_asking(const char *const *argv, bool split, bool may_ask,
	struct sb_error *err);

/* An agent in a thread of this process; see sb_agent_serve. In transport-thread.c. */
struct sb_log;
struct sb_transport *sb_transport_thread(const char *state_dir, const struct sb_log *log,
	struct sb_error *err);

/*
 * The descriptors of an agent's own stdin and stdout: they stay the caller's, wait returns at once
 * with no exit status.
 */
struct sb_transport *sb_transport_fds(int rfd, int wfd, struct sb_error *err);

#endif
