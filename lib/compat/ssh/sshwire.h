/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_SSHWIRE_H
#define SB_COMPAT_SSHWIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <sb/error.h>

/*
 * What the gateway (sbhostd) and the door (bin/sb-ssh, the process of one SSH connection) say to
 * each other over a socket of whole packets. A packet is one frame; descriptors come with some.
 *
 *   0      1    5      9   13  17      21             +4
 *   +------+----+------+---+---+-------+---- - -+-------+---- - -
 *   | what | id | kind | x | y | bytes | a      | bytes | b       (little-endian)
 *   +------+----+------+---+---+-------+---- - -+-------+---- - -
 *
 * Whatever a frame does not use is 0 or empty. The door believes the gateway. The gateway believes
 * the door nothing: it reads what strangers send.
 */
#define SB_SSHWIRE_MAX (160u << 10)     /* bytes of a frame */
#define SB_SSHWIRE_TEXT_MAX (96u << 10) /* of a command; of an environment */
#define SB_SSHWIRE_USER_MAX 512u
#define SB_SSHWIRE_SECRET_MAX 16384u
#define SB_SSHWIRE_FDS_MAX 3
#define SB_SSHWIRE_CELLS_MAX 10000u /* columns and rows of a terminal */

enum sb_sshwire_what {
	/* From the door. */
	SB_SSHWIRE_LOGIN = 1,  /* kind: how; a: user; b: secret, or the key in base64. ANSWER */
	SB_SSHWIRE_START = 2,  /* id, kind: what; x, y: columns and rows of its terminal, or 0; a:
				  command; b: KEY=value, each ended by NUL. ANSWER with descriptors:
				  its input, output and (errors, or the control of its terminal) */
	SB_SSHWIRE_DIAL = 3,   /* id, x: port; a: host. ANSWER with a descriptor */
	SB_SSHWIRE_SIGNAL = 4, /* id, x: number */
	SB_SSHWIRE_CLOSE = 5,  /* id: nobody listens to it any more */
	/* From the gateway. */
	SB_SSHWIRE_CONFIG = 64, /* kind: channels at most; x: seconds between signs of life; a: the
				   host's private key */
	SB_SSHWIRE_ANSWER = 65, /* x: 1 yes, 0 no; a: why not */
	SB_SSHWIRE_EXIT = 66,   /* id, x: code; a: why it was not started, or empty */
};

enum sb_sshwire_login {
	SB_SSHWIRE_NONE = 1, /* by the user's name alone */
	SB_SSHWIRE_PASSWORD = 2,
	SB_SSHWIRE_OFFER = 3, /* would this key do? */
	SB_SSHWIRE_KEY = 4,   /* its owner has signed */
};

enum sb_sshwire_kind {
	SB_SSHWIRE_SHELL = 1,
	SB_SSHWIRE_EXEC = 2,
	SB_SSHWIRE_SFTP = 3,
	SB_SSHWIRE_AGENT = 4, /* listens for who needs the client's agent */
};

struct sb_sshwire_frame {
	uint8_t what;
	uint32_t id, kind, x, y;
	const uint8_t *a, *b; /* followed by a NUL where it was parsed from a buffer of ours */
	size_t a_len, b_len;
};

/* Points into `data`. SB_E_PROTO for what no door or gateway may say. */
int sb_sshwire_parse(const void *data, size_t len, struct sb_sshwire_frame *out,
	struct sb_error *err);
/* Appends it. */
void sb_sshwire_put(const struct sb_sshwire_frame *f, struct sb_buf *out);
/* A member as a new string; NULL when out of memory. */
char *sb_sshwire_text(const uint8_t *p, size_t len);

/* Sends it, with descriptors; never waits (SB_E_LIMIT). SB_E_CLOSED: nobody is there. */
int sb_sshwire_send(int fd, const struct sb_sshwire_frame *f, const int *fds, size_t n_fds,
	struct sb_error *err);
/*
 * Waits for the next; `room` keeps its bytes. Descriptors that nobody asked for are closed.
 * SB_E_CLOSED at the end.
 */
int sb_sshwire_receive(int fd, struct sb_buf *room, struct sb_sshwire_frame *out, int *fds,
	size_t *n_fds, struct sb_error *err);

#endif
