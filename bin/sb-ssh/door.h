/* SPDX-License-Identifier: MIT */
#ifndef SB_SSH_DOOR_H
#define SB_SSH_DOOR_H

#include <poll.h>
#include <stdbool.h>

#include <libssh/callbacks.h>
#include <libssh/libssh.h>
#include <libssh/server.h>

#include <base/buf.h>
#include <compat/ssh/sshwire.h>

/*
 * The door: speaks SSH with one client and has the gateway (sbhostd) do what the client may ask
 * for. It reads what strangers send, so it has given up everything but its two sockets before the
 * first byte. One thread.
 */
#define DOOR_CHANNELS_MAX 512
#define DOOR_PIECE 32768

/* What there is behind a channel. */
enum door_kind {
	DOOR_PROGRAM, /* a program, or a connection to a port (`dialed`) */
	DOOR_POST,    /* the helper that listens for the agent; it has no channel */
	DOOR_CALLER,  /* somebody in the box who asks for the agent */
};

/* A channel, and the program or connection behind it. */
struct door_channel {
	struct door *door;
	enum door_kind kind;
	uint8_t number; /* of a caller */
	bool opening;   /* a caller's channel is not there yet */
	ssh_channel ssh;
	struct ssh_channel_callbacks_struct cb;
	uint32_t id;
	bool used;
	bool begun;  /* it has a program */
	bool dialed; /* it is a connection: there is no exit code */
	bool gone;   /* the client closed it */
	bool ended;  /* the program did, with `code` */
	uint32_t code;
	unsigned cols, rows; /* a terminal was asked for */
	struct sb_buf env;   /* KEY=value, each ended by NUL. Of a post: frames that came */
	int fd[3];           /* its input, output, errors (or the control of a terminal) */
	bool control;        /* fd[2] is that */
	struct sb_buf in;    /* for fd[0]; of a caller: for the client */
};

struct door {
	int link, sock;
	ssh_session ssh;
	struct ssh_server_callbacks_struct cb;
	ssh_event event;
	bool in; /* somebody is logged in */
	bool lost;
	bool news; /* libssh took something in: look at all channels */
	unsigned max_channels, idle_s;
	struct sb_buf room;
	struct door_channel *agent; /* the post; NULL: none */
	struct door_channel channels[DOOR_CHANNELS_MAX];
};

/* confine.c: gives up what the door does not need. */
int door_confine(struct sb_error *err);

/* link.c: asks the gateway and waits for its answer; what ends meanwhile is noted. */
int door_ask(struct door *d, const struct sb_sshwire_frame *f, int *fds, size_t *n_fds,
	struct sb_buf *why);
/* One frame that the gateway sent by itself. */
void door_take(struct door *d);
void door_tell(struct door *d, const struct sb_sshwire_frame *f);

/* login.c */
void door_login_callbacks(struct door *d);

/* channel.c */
ssh_channel door_channel_open(ssh_session session, void *arg);
int door_channel_message(ssh_session session, ssh_message msg, void *arg);
void door_channel_close(struct door_channel *c);
/* A free one; NULL: there are enough. */
struct door_channel *door_channel_claim(struct door *d);
void door_channel_watch(struct door_channel *c);

/* agent.c: the program of `c` may ask for the agent. */
void door_agent_offer(struct door_channel *c);
/* Moves what there is to move. */
void door_agent_post(struct door_channel *post);
void door_agent_caller(struct door_channel *c);

/* pump.c: moves bytes until the connection is over. */
void door_pump(struct door *d);

#endif
