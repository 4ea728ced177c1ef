/* SPDX-License-Identifier: MIT */
/* sb-box sftp: files for who comes by SSH; a server of SFTP on stdin and stdout. */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include <compat/ssh/sftp.h>

#define PIECE 65536u
/* No new request is begun while more answers than this wait. */
#define OUT_HIGH (2u << 20)

static bool
take(struct sb_buf *in)
{
	uint8_t *room = sb_buf_reserve(in, PIECE);
	ssize_t n = room ? read(0, room, PIECE) : 0;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n > 0)
		sb_buf_grow(in, (size_t)n);
	return n > 0;
}

static bool
give(struct sb_buf *out)
{
	ssize_t n = write(1, out->data, out->len);

	if (n > 0)
		sb_buf_consume(out, (size_t)n);
	return n >= 0 || errno == EINTR || errno == EAGAIN;
}

int
helper_main_sftp(int argc, char **argv)
{
	const char *home = getenv("HOME");
	struct sb_sftp *s = sb_sftp_new(home && home[0] == '/' ? home : "/");
	sb_auto(sb_buf) struct sb_buf in, out;
	bool more = true;
	int r = 0;

	(void)argc;
	(void)argv;
	(void)signal(SIGPIPE, SIG_IGN);
	sb_buf_init(&in, SB_SFTP_PACKET_MAX + 2 * PIECE);
	sb_buf_init(&out, OUT_HIGH + 4 * SB_SFTP_PACKET_MAX);
	while (s && r >= 0 && (more || out.len > 0)) {
		struct pollfd p[2] = {
			{ .fd = more && in.len < SB_SFTP_PACKET_MAX + PIECE ? 0 : -1,
				.events = POLLIN },
			{ .fd = out.len > 0 ? 1 : -1, .events = POLLOUT },
		};

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents && !take(&in))
			more = false;
		if (p[1].revents && !give(&out))
			break;
		while (out.len < OUT_HIGH && (r = sb_sftp_step(s, &in, &out)) > 0)
			;
	}
	sb_sftp_free(s);
	return r < 0 ? SB_HELPER_FAILED : 0;
}
