/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_SOCKET_H
#define SBSYNC_SSH_SOCKET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/error.h>

/*
 * The socket beneath an SSH session, buffered on both sides. libssh2 reads and writes the buffers
 * only, through its callbacks; the owner of the connection moves bytes between buffers and socket.
 * So a send never fails half-way inside libssh2 (which then insists on repeating that very packet
 * before any other), several packets share a system call, and bytes are counted and slowed down in
 * this one place.
 */
struct sb_ssh_bucket {
	uint64_t rate; /* bytes a second, 0: unlimited */
	uint64_t burst;
	uint64_t tokens;
	int64_t at_us;
};

struct sb_ssh_socket {
	int fd;
	uint8_t *in;
	size_t in_head, in_len;
	uint8_t *out;
	size_t out_head, out_len, out_cap;
	struct sb_ssh_bucket up, down;
	bool eof;
	int sys;      /* errno of a failed send or recv, 0 */
	bool flooded; /* the peer made us owe it more than the buffer holds */
	_Atomic uint64_t bytes_up, bytes_down;
	int64_t progress_ms; /* when a byte came in or one of ours was acknowledged last */
	uint64_t acked;
};

/* Takes `fd` (non-blocking) over. `bwlimit` is bytes a second in each direction, 0: none. */
int sb_ssh_socket_init(struct sb_ssh_socket *w, int fd, uint64_t bwlimit, struct sb_error *err);
void sb_ssh_socket_destroy(struct sb_ssh_socket *w);

/* Moves what can be moved without waiting. */
void sb_ssh_socket_fill(struct sb_ssh_socket *w);
void sb_ssh_socket_flush(struct sb_ssh_socket *w);

/*
 * The poll events wanted now; `out_delay_ms` (lowered, never raised; -1: no limit) is when to look
 * again because of the rate.
 */
short sb_ssh_socket_events(struct sb_ssh_socket *w, int *out_delay_ms);

/* True once nothing more will move: the end, an error or a flood. `text` then says which. */
bool sb_ssh_socket_dead(const struct sb_ssh_socket *w);
const char *sb_ssh_socket_why(const struct sb_ssh_socket *w, char *buf, size_t size);

/*
 * Milliseconds since the last sign of life: a byte in, or the peer's kernel acknowledging bytes of
 * ours.
 */
int64_t sb_ssh_socket_silence_ms(struct sb_ssh_socket *w);

/*
 * For the libssh2 callbacks: counts, or -EAGAIN, or another negative errno; 0 from recv is the end.
 */
ptrdiff_t sb_ssh_socket_recv(struct sb_ssh_socket *w, void *buf, size_t len);
ptrdiff_t sb_ssh_socket_send(struct sb_ssh_socket *w, const void *buf, size_t len);

#endif
