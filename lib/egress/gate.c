/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/gate.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <egress/gate-net.h>

#define FDS 6

/* What the child tells: an error, or a descriptor for each field of struct sb_gate. */
struct report {
	int code;
	char msg[SB_ERROR_MSG_MAX];
};

static int *
field(struct sb_gate *g, size_t i)
{
	return ((
		int *[FDS]){ &g->session, &g->tcp4, &g->tcp6, &g->udp4, &g->udp6, &g->packets })[i];
}

void
sb_gate_close(struct sb_gate *g)
{
	for (size_t i = 0; i < FDS; i++) {
		if (*field(g, i) >= 0)
			(void)close(*field(g, i));
		*field(g, i) = -1;
	}
}

/* Into the user namespace that owns the network namespace, unless it is ours. */
static int
join_owner(int netns, struct sb_error *err)
{
	sb_autoclose int user = ioctl(netns, NS_GET_USERNS);
	sb_autoclose int ours = open("/proc/self/ns/user", O_RDONLY | O_CLOEXEC);

	if (user < 0 || ours < 0)
		return sb_fail_errno(err, "owner of the session's network namespace");
	/* EINVAL: it is our own already. */
	if (setns(user, CLONE_NEWUSER) < 0 && errno != EINVAL)
		return sb_fail_errno(err, "enter the session's user namespace");
	return 0;
}

static int
open_session(pid_t pid, struct sb_gate *g, struct sb_error *err)
{
	char path[64];

	if (pid == 0) {
		if (unshare(CLONE_NEWNET) < 0)
			return sb_fail_errno(err, "new network namespace");
		g->session = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
		return g->session < 0 ? sb_fail_errno(err, "/proc/self/ns/net") : 0;
	}
	(void)snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	g->session = open(path, O_RDONLY | O_CLOEXEC);
	if (g->session < 0)
		return sb_fail_errno(err, "%s", path);
	if (join_owner(g->session, err) < 0)
		return SB_E_SYS;
	return setns(g->session, CLONE_NEWNET) < 0 ?
		sb_fail_errno(err, "enter the session's network namespace") :
		0;
}

static int
move_to(int netns, struct sb_error *err)
{
	return setns(netns, CLONE_NEWNET) < 0 ? sb_fail_errno(err, "enter a network namespace") : 0;
}

static int
make_in_child(pid_t pid, struct sb_gate *g, struct sb_error *err)
{
	sb_autoclose int gate = -1;
	int r = open_session(pid, g, err);

	if (r == 0)
		r = sb_gate_net_clear(err);
	if (r < 0)
		return r;
	/* The session's side stays as `session`; this process moves on to the gate. */
	if (unshare(CLONE_NEWNET) < 0)
		return sb_fail_errno(err, "new network namespace");
	gate = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	if (gate < 0)
		return sb_fail_errno(err, "/proc/self/ns/net");
	r = sb_gate_net_outside(err);
	if (r == 0)
		r = sb_gate_net_listen(g, err);
	if (r == 0)
		r = sb_gate_net_link(g->session, err);
	if (r == 0)
		r = move_to(g->session, err);
	if (r == 0)
		r = sb_gate_net_inside_up(err);
	if (r == 0)
		r = move_to(gate, err);
	if (r == 0)
		r = sb_gate_net_outside_up(err);
	if (r == 0)
		r = move_to(g->session, err);
	return r < 0 ? r : sb_gate_net_inside(err);
}

static void
send_report(int sock, int r, const struct sb_error *err, struct sb_gate *g)
{
	struct report rep = { .code = r };
	struct iovec iov = { &rep, sizeof rep };
	union {
		char room[CMSG_SPACE(FDS * sizeof(int))];
		struct cmsghdr align;
	} u;
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	memset(&u, 0, sizeof u);
	if (r == 0) {
		struct cmsghdr *c;
		int fds[FDS];

		for (size_t i = 0; i < FDS; i++)
			fds[i] = *field(g, i);
		m.msg_control = u.room;
		m.msg_controllen = sizeof u.room;
		c = CMSG_FIRSTHDR(&m);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof fds);
		memcpy(CMSG_DATA(c), fds, sizeof fds);
	} else {
		(void)snprintf(rep.msg, sizeof rep.msg, "%s", err->msg);
	}
	(void)sendmsg(sock, &m, MSG_NOSIGNAL);
}

static int
take_report(int sock, struct sb_gate *out, struct sb_error *err)
{
	struct report rep = { .code = SB_E_SYS };
	struct iovec iov = { &rep, sizeof rep };
	union {
		char room[CMSG_SPACE(FDS * sizeof(int))];
		struct cmsghdr align;
	} u;
	struct msghdr m = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = u.room,
		.msg_controllen = sizeof u.room };
	struct cmsghdr *c;
	ssize_t n;

	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n != (ssize_t)sizeof rep)
		return sb_fail(err, SB_E_CHILD, "the gate could not be made");
	if (rep.code < 0)
		return sb_fail(err, rep.code, "%s", rep.msg);
	c = CMSG_FIRSTHDR(&m);
	if (!c || c->cmsg_len != CMSG_LEN(FDS * sizeof(int)))
		return sb_fail(err, SB_E_CHILD, "the gate could not be handed over");
	for (size_t i = 0; i < FDS; i++) {
		int *fd = field(out, i), type;
		socklen_t len = sizeof type;

		memcpy(fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
		/* What stands in for a socket that could not be had. */
		if (i > 0 && getsockopt(*fd, SOL_SOCKET, SO_TYPE, &type, &len) < 0) {
			(void)close(*fd);
			*fd = -1;
		}
	}
	return 0;
}

int
sb_gate_make(pid_t pid, struct sb_gate *out, struct sb_error *err)
{
	struct sb_gate g = SB_GATE_INIT;
	int sock[2], r, status;
	pid_t child;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sock) < 0)
		return sb_fail_errno(err, "socketpair");
	child = fork();
	if (child < 0) {
		r = sb_fail_errno(err, "fork");
	} else if (child == 0) {
		struct sb_error why = { 0 };

		r = make_in_child(pid, &g, &why);
		send_report(sock[1], r, &why, &g);
		_exit(0);
	} else {
		(void)close(sock[1]);
		sock[1] = -1;
		r = take_report(sock[0], &g, err);
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
	}
	(void)close(sock[0]);
	if (sock[1] >= 0)
		(void)close(sock[1]);
	if (r < 0)
		sb_gate_close(&g);
	else
		*out = g;
	return r;
}
