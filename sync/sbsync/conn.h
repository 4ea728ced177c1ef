/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_CONN_H
#define SBSYNC_CONN_H

#include <stdbool.h>
#include <stdint.h>

#include <sb/cancel.h>
#include <sb/error.h>
#include <sbsync/sync.h>

/*
 * A connection to the machine of an endpoint. Open it once and use it for any number of commands
 * and syncs: put it into sb_sync_opts.conn of sb_sync_mirror, sb_session_start or sb_session_sync,
 * and all root pairs of that host go over it. The agent that the first sync starts stays alive, so
 * a later sync with nothing to do is one round trip.
 *
 * With libssh2 everything shares one SSH connection. Where only the user's ssh program can connect,
 * each command is a process and a connection of its own (a ControlMaster in the user's
 * configuration avoids that), and only the agent stays. A local endpoint works the same way, with
 * processes of this machine.
 *
 * When the connection broke, the next sync or command that needs it connects again. Thread-safe:
 * any thread may start commands; of two syncs at the same time the second starts an agent of its
 * own on the same connection.
 */
struct sb_conn;

/*
 * Carries commands in this process where a program would be started (rsh of the options, or ssh).
 * `takes` tells by all words of that program, the host and the command line among them, whether
 * they are meant for it; `run` then does what the program would do, on a thread of its own, with
 * `fds` as its three streams, and gives its exit status. It ends soon when `cancel` is requested.
 */
struct sb_carrier {
	bool (*takes)(const char *const *argv);
	int (*run)(const char *const *argv, const int fds[3], const struct sb_cancel *cancel);
};
/*
 * For all connections of this process, until it ends; again for the same one does nothing. Borrowed
 * for ever. False: there are too many.
 */
SB_API bool sb_conn_carry(const struct sb_carrier *c);

/*
 * Connects to the host of `endpoint` ([user@]host:path, ssh://..., or a local path); its path does
 * not matter. Keeps the route of `opts` (port, identity, ssh_config, known_hosts,
 * accept_new_host_key, rsh, token_login, ask_password, never_ask, agent, stall_ms, bwlimit, log);
 * timeout_ms and cancel count for this call only. Errors as for a sync: CONNECT, HOSTKEY, AUTH,
 * TIMEOUT, CANCELED, UNSUPPORTED, PROTO; the message names user, host, port and what to try.
 */
SB_API struct sb_conn *sb_conn_open(const char *endpoint, const struct sb_sync_opts *opts,
	struct sb_error *err);

/*
 * Ends the agent and the connection. No sync may be under way, and every command must have been
 * freed. NULL is allowed.
 */
SB_API void sb_conn_free(struct sb_conn *c);

/*
 * 0 while the connection stands, else why it ended. Sends nothing: it may take a while to notice a
 * peer that just vanished.
 */
SB_API int sb_conn_check(struct sb_conn *c, struct sb_error *err);

/* "user@host port N", for messages. */
SB_API const char *sb_conn_name(const struct sb_conn *c);

/*
 * Bytes on the wire since it was opened; 0 where they cannot be seen (the ssh program, a local
 * endpoint).
 */
SB_API void sb_conn_wire_bytes(struct sb_conn *c, uint64_t *up, uint64_t *down);

/*
 * Is the user asked something on the terminal just now? Whoever draws there must not. Any thread.
 */
SB_API bool sb_conn_asks(void);

/* A command that runs, or ran, on the other side. One thread at a time, but cancel. */
struct sb_conn_exec;

/* How it ended. */
struct sb_conn_exit {
	bool known; /* false: the connection ended before it did */
	int code;   /* exit code, or 128 + signal */
};

/*
 * Starts a command line, which the far user's shell splits. Does not wait until the far side
 * agrees: bytes that you write meanwhile follow right behind. A refusal shows as end of file, and
 * in sb_conn_exec_wait. `cancel` counts only while this call connects again. Up to 64 at once;
 * servers often allow ten (MaxSessions of sshd).
 */
SB_API struct sb_conn_exec *sb_conn_exec(struct sb_conn *c, const char *command,
	const struct sb_cancel *cancel, struct sb_error *err);

/*
 * Starts the agent program over there with `verb` as its argument, and sends the program along if
 * it is missing. stdin and stdout carry only the program's bytes; stderr may begin with words of
 * the log-in shell. SB_E_UNSUPPORTED for a local endpoint, and where it cannot run.
 */
SB_API struct sb_conn_exec *sb_conn_exec_agent(struct sb_conn *c, const char *verb,
	const struct sb_cancel *cancel, sb_deadline d, struct sb_error *err);

/*
 * Descriptors to write its stdin and to read its stdout and stderr, blocking sockets that end with
 * the command. Read both, or it stops. A program that writes must ignore SIGPIPE (or use send with
 * MSG_NOSIGNAL).
 */
SB_API int sb_conn_exec_in(const struct sb_conn_exec *x);
SB_API int sb_conn_exec_out(const struct sb_conn_exec *x);
SB_API int sb_conn_exec_err(const struct sb_conn_exec *x);

/* Its stdin ends. Idempotent. */
SB_API int sb_conn_exec_close_in(struct sb_conn_exec *x, struct sb_error *err);

/*
 * Waits until `d` for the command to end. SB_E_TIMEOUT leaves it running; a lost connection is an
 * error of its own. You may call it again.
 */
SB_API int sb_conn_exec_wait(struct sb_conn_exec *x, sb_deadline d, struct sb_conn_exit *out,
	struct sb_error *err);

/*
 * Gives the command up: reads, writes and waits return. Any thread. The far process sees its pipes
 * close; SSH has no sure way to kill it.
 */
SB_API void sb_conn_exec_cancel(struct sb_conn_exec *x);
SB_API void sb_conn_exec_free(struct sb_conn_exec *x);

#endif
