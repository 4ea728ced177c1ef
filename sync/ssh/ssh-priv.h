/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_PRIV_H
#define SBSYNC_SSH_PRIV_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <libssh2.h>

#include <sync/ssh/ssh.h>
#include <sync/ssh/ssh-known.h>
#include <sync/ssh/ssh-socket.h>

/* The inside of a connection; only the ssh-*.c files include this. */
struct sb_ssh_channel;
union sb_ssh_block;

/* The server's MaxSessions is 10 unless somebody raised it. */
#define SB_SSH_CHANNELS_MAX 64

struct sb_ssh {
	char *host;
	char *user;
	char *known_name;
	int port;
	char name[400];
	struct sb_log log;
	const struct sb_cancel *cancel;
	int stall_ms;
	int alive_ms;

	/* Until the pump runs, the connecting thread's; then the pump's alone. */
	LIBSSH2_SESSION *session;
	struct sb_ssh_socket wire;
	size_t memory; /* bytes libssh2 holds */
	union sb_ssh_block *blocks;
	bool memory_hit;
	void *auth; /* the log-in under way, for its callbacks */
	bool auth_gave_up;
	bool auth_asked;
	char farewell[160]; /* what the server said when it disconnected, escaped */
	bool pinging;
	int64_t ping_at;
	int64_t closed_at;             /* when a channel was closed last */
	struct sb_ssh_channel *opener; /* the channel being opened: libssh2 opens one at a time */
	struct sb_ssh_channel *channels;

	pthread_t thread;
	bool thread_runs;
	int wake_fd;

	pthread_mutex_t mu; /* guards what follows, and the marked fields of channels */
	pthread_cond_t cond;
	struct sb_ssh_channel *arrivals;
	int n_channels;
	bool stop;
	bool broken;
	struct sb_error why; /* once broken */
};

/* The last libssh2 error as text for a message: escaped, bounded. Returns `buf`. */
const char *sb_ssh_conn_last(struct sb_ssh *c, char *buf, size_t size);

/*
 * Why nothing moves any more, in words: the server's own if it left any, else the socket's. Returns
 * `buf`.
 */
const char *sb_ssh_conn_why(struct sb_ssh *c, char *buf, size_t size);
/* Is the connection at its end? */
bool sb_ssh_conn_dead(const struct sb_ssh *c);

/* Memory that libssh2 will free. */
void *sb_ssh_conn_alloc(struct sb_ssh *c, size_t len);

/*
 * One turn of the connecting thread's loop, after a libssh2 call returned `rc`: moves bytes and,
 * for EAGAIN, waits for more until `d`. Returns 1 to call again, 0 when `rc` is final, negative on
 * failure (named with `what`).
 */
int sb_ssh_conn_turn(struct sb_ssh *c, int rc, sb_deadline d, const char *what,
	struct sb_error *err);

/* ssh-auth.c: logs in. `d` does not run while a person is asked. */
int sb_ssh_auth(struct sb_ssh *c, const struct sb_ssh_opts *o, struct sb_error *err);

/* ssh-pump.c */
int sb_ssh_pump_start(struct sb_ssh *c, struct sb_error *err);
/* Ends the thread and frees what is left of the channels. */
void sb_ssh_pump_stop(struct sb_ssh *c);

#endif
