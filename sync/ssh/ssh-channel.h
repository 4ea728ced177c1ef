/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_CHANNEL_H
#define SBSYNC_SSH_CHANNEL_H

#include <sync/ssh/ssh-priv.h>
#include <sync/wire/tail.h>
#include <sync/wire/transport.h>

enum sb_ssh_channel_state {
	CHANNEL_WAITING, /* another one is being opened */
	CHANNEL_OPENING, /* the server has not confirmed yet */
	CHANNEL_RUNNING, /* bytes flow; the answer to the exec request may still be out */
	CHANNEL_CLOSING, /* the outcome is known, libssh2's half is being freed */
	CHANNEL_ENDED,
};

/*
 * One command on a connection. The pump owns all of it but the `base` descriptors and the fields
 * marked.
 */
struct sb_ssh_channel {
	struct sb_transport base;
	struct sb_ssh *conn;
	struct sb_ssh_channel *next;
	char *command;
	enum sb_ssh_channel_state state;
	LIBSSH2_CHANNEL *ch;
	int64_t retry_at; /* when to ask again for a channel; 0: was not refused */
	bool starting;    /* the exec request is not answered yet */
	int in_fd;        /* what the user of the transport wrote */
	int out_fd;       /* what he reads */
	int err_fd;       /* what he reads of stderr; -1: only the tail is kept */
	bool in_ready, in_eof, eof_sent;
	bool out_shut;
	uint8_t *in, *out, *err;
	size_t in_head, in_len, out_head, out_len, err_head, err_len;
	struct sb_tail tail;

	/* Guarded by conn->mu. */
	bool cancel;
	bool released; /* the user freed the transport: the pump frees the rest */
	bool done;
	struct sb_error why; /* code 0: it ended in order */
	bool exit_known;
	int exit_code;
};

/*
 * Does what can be done without waiting; true when something moved. Breaks the connection on its
 * errors.
 */
bool sb_ssh_channel_step(struct sb_ssh_channel *ch);

/* Ends it with an error (NULL: canceled) without talking to the server. For the pump. */
void sb_ssh_channel_abort(struct sb_ssh_channel *ch, const struct sb_error *why);

/* Frees memory and descriptors; the libssh2 half must be gone or about to be. */
void sb_ssh_channel_destroy(struct sb_ssh_channel *ch);

/* The connection is unusable from here on; the first reason stays. For the pump. */
void sb_ssh_pump_break(struct sb_ssh *c, int code, const char *fmt, ...) SB_PRINTF(3, 4);
void sb_ssh_pump_wake(struct sb_ssh *c);

#endif
