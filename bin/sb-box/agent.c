/* SPDX-License-Identifier: MIT */
/* sb-box agent: a socket in the box for those who ask for the agent of who came by SSH. */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <compat/ssh/sshagent.h>

struct post {
	int listener;
	int conn[SB_SSHAGENT_CONNS_MAX]; /* -1: free */
	struct sb_buf in, out;
};

static void
hang_up(struct post *p, size_t i)
{
	if (p->conn[i] >= 0)
		(void)close(p->conn[i]);
	p->conn[i] = -1;
}

static void
take_caller(struct post *p)
{
	int fd = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC);

	for (size_t i = 0; fd >= 0 && i < SB_SSHAGENT_CONNS_MAX; i++)
		if (p->conn[i] < 0) {
			p->conn[i] = fd;
			sb_sshagent_put(&p->out, SB_SSHAGENT_OPEN, (uint8_t)i, NULL, 0);
			return;
		}
	if (fd >= 0)
		(void)close(fd);
}

static void
take_words(struct post *p, size_t i)
{
	uint8_t piece[SB_SSHAGENT_DATA_MAX];
	ssize_t n = recv(p->conn[i], piece, sizeof piece, 0);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n > 0) {
		sb_sshagent_put(&p->out, SB_SSHAGENT_DATA, (uint8_t)i, piece, (size_t)n);
		return;
	}
	sb_sshagent_put(&p->out, SB_SSHAGENT_CLOSE, (uint8_t)i, NULL, 0);
	hang_up(p, i);
}

/* An answer is read soon by who asked for it, or not at all. */
static bool
say(int fd, const uint8_t *p, size_t len)
{
	while (len > 0) {
		ssize_t n = send(fd, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		struct pollfd w = { .fd = fd, .events = POLLOUT };

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return false;
		if (n < 0 && poll(&w, 1, 2000) == 0)
			return false;
		p += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return true;
}

/* What the door says. False: it is gone. */
static bool
take_frames(struct post *p)
{
	uint8_t *room = sb_buf_reserve(&p->in, 2 * SB_SSHAGENT_DATA_MAX);
	ssize_t n = room ? read(0, room, 2 * SB_SSHAGENT_DATA_MAX) : 0;
	struct sb_sshagent_frame f;
	int r;

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	sb_buf_grow(&p->in, (size_t)n);
	while ((r = sb_sshagent_next(&p->in, &f)) > 0) {
		if (p->conn[f.number] >= 0 &&
			(f.what == SB_SSHAGENT_CLOSE || !say(p->conn[f.number], f.data, f.len))) {
			if (f.what != SB_SSHAGENT_CLOSE)
				sb_sshagent_put(&p->out, SB_SSHAGENT_CLOSE, f.number, NULL, 0);
			hang_up(p, f.number);
		}
		sb_sshagent_drop(&p->in, &f);
	}
	return r == 0;
}

static bool
turn(struct post *p)
{
	struct pollfd v[SB_SSHAGENT_CONNS_MAX + 3] = {
		{ .fd = 0, .events = POLLIN },
		{ .fd = p->out.len > 0 ? 1 : -1, .events = POLLOUT },
		{ .fd = p->listener, .events = POLLIN },
	};
	bool room = p->out.len < SB_SSHAGENT_WAITING_MAX;
	ssize_t n;

	for (size_t i = 0; i < SB_SSHAGENT_CONNS_MAX; i++)
		v[3 + i] = (struct pollfd){ .fd = room ? p->conn[i] : -1, .events = POLLIN };
	if (poll(v, SB_SSHAGENT_CONNS_MAX + 3, -1) < 0)
		return errno == EINTR;
	if (v[1].revents) {
		n = write(1, p->out.data, p->out.len);
		if (n < 0 && errno != EINTR && errno != EAGAIN)
			return false;
		sb_buf_consume(&p->out, n > 0 ? (size_t)n : 0);
	}
	for (size_t i = 0; i < SB_SSHAGENT_CONNS_MAX; i++)
		if (v[3 + i].revents && p->conn[i] >= 0)
			take_words(p, i);
	if (v[2].revents)
		take_caller(p);
	return (!v[0].revents || take_frames(p)) && !p->out.failed;
}

int
helper_main_agent(int argc, char **argv)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	char dir[] = "/tmp/ssh-XXXXXX";
	struct post p = { .listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0) };

	(void)argc;
	(void)argv;
	/* The end of its input is its end: it has a socket to remove. */
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_IGN);
	for (size_t i = 0; i < SB_SSHAGENT_CONNS_MAX; i++)
		p.conn[i] = -1;
	sb_buf_init(&p.in, 8 * SB_SSHAGENT_DATA_MAX);
	sb_buf_init(&p.out, 4 * SB_SSHAGENT_WAITING_MAX);
	if (p.listener < 0 || !mkdtemp(dir))
		return helper_fail("agent");
	(void)snprintf(a.sun_path, sizeof a.sun_path, "%s/agent", dir);
	if (bind(p.listener, (const struct sockaddr *)&a, sizeof a) == 0 &&
		chmod(a.sun_path, 0600) == 0 && listen(p.listener, 8) == 0) {
		sb_sshagent_put(&p.out, SB_SSHAGENT_PATH, 0, a.sun_path, strlen(a.sun_path));
		while (turn(&p))
			;
	}
	(void)unlink(a.sun_path);
	(void)rmdir(dir);
	return 0;
}
