/* SPDX-License-Identifier: MIT */
/* sb-box dial: connects to a port inside the box and relays it to its own input and output. */
#include "config.h"

#include "helper.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static int
connect_loopback(int port)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd >= 0 && connect(fd, (struct sockaddr *)&a4, sizeof a4) == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&a6, sizeof a6) == 0)
		return fd;
	return -1;
}

/* One piece from `from` to `to`. False at the end of it. */
static bool
pass(int from, int to)
{
	char buf[65536];
	ssize_t n = read(from, buf, sizeof buf);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	for (ssize_t at = 0; at < n;) {
		ssize_t w = write(to, buf + at, (size_t)(n - at));

		/* In gVisor one that is input and output does not wait by itself. */
		if (w < 0 && errno == EAGAIN)
			(void)poll(&(struct pollfd){ .fd = to, .events = POLLOUT }, 1, -1);
		else if (w < 0 && errno != EINTR)
			return false;
		at += w > 0 ? w : 0;
	}
	return n > 0;
}

/* Says '+' once connected, then hands bytes on both ways; each side may end first. */
int
helper_main_dial(int argc, char **argv)
{
	int port = argc == 2 ? (int)strtol(argv[1], NULL, 10) : 0;
	bool in = true, out = true;
	int fd;

	(void)signal(SIGPIPE, SIG_IGN);
	if (port < 1 || port > 65535)
		return SB_HELPER_FAILED;
	fd = connect_loopback(port);
	if (fd < 0)
		return helper_fail("connect");
	if (write(1, "+", 1) != 1)
		return SB_HELPER_FAILED;
	while (out) {
		struct pollfd p[2] = { { .fd = in ? 0 : -1, .events = POLLIN },
			{ .fd = fd, .events = POLLIN } };

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[0].revents && !pass(0, fd)) {
			in = false;
			(void)shutdown(fd, SHUT_WR);
		}
		if (p[1].revents && !pass(fd, 1)) {
			out = false;
			(void)shutdown(1, SHUT_WR);
			(void)close(1);
		}
	}
	/* The other direction may go on after the far side closed its own. */
	while (in && poll(&(struct pollfd){ .fd = 0, .events = POLLIN }, 1, -1) >= 0 && pass(0, fd))
		;
	return 0;
}
