/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_SSHAGENT_H
#define SB_COMPAT_SSHAGENT_H

#include <base/buf.h>

/*
 * What the door and the helper in the box ("sb-box agent") say to each other about those who ask
 * for the client's agent: frames of what, number, two bytes of length (big-endian) and bytes. The
 * helper listens on a socket in the box, whose path it tells first; each who connects gets a number
 * that is free. The box is the tenant's: the door believes it nothing.
 */
#define SB_SSHAGENT_CONNS_MAX 8
#define SB_SSHAGENT_DATA_MAX 16384u
/* So many bytes may wait for one who asks; an agent's message is at most half of it. */
#define SB_SSHAGENT_WAITING_MAX (512u << 10)

enum sb_sshagent_what {
	SB_SSHAGENT_PATH = 'p', /* to the door: where the socket is */
	SB_SSHAGENT_OPEN = 'o', /* to the door: somebody connected */
	SB_SSHAGENT_DATA = 'd',
	SB_SSHAGENT_CLOSE = 'c',
};

struct sb_sshagent_frame {
	uint8_t what, number;
	size_t len;
	const uint8_t *data;
};

/* 1: the first frame of `in`, which is consumed by sb_sshagent_drop; 0: more has to come; -1: none
 * that may be. */
int sb_sshagent_next(const struct sb_buf *in, struct sb_sshagent_frame *out);
void sb_sshagent_drop(struct sb_buf *in, const struct sb_sshagent_frame *f);
void sb_sshagent_put(struct sb_buf *out, uint8_t what, uint8_t number, const void *data,
	size_t len);

#endif
