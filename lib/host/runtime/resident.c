/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/resident.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/str.h>
#include <host/runtime/helper-wire.h>
#include <host/runtime/proctree.h>

#define HELLO_MS 20000
#define SEND_MS 20000
#define FDS_MAX 4

/* One byte and descriptors. */
static int
send_fds(int sock, char what, const int *fds, size_t n, struct sb_error *err)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(FDS_MAX * sizeof(int))];
	} control = { 0 };
	struct iovec v = { &what, 1 };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(h), fds, n * sizeof(int));
	/* A box that does not take its calls has a full socket some day. */
	if (sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == 1)
		return 0;
	return sb_fail(err, SB_E_CLOSED, "the sandbox takes no commands: %s", strerror(errno));
}

/* All of it, within SEND_MS. */
static int
send_all(int sock, const void *data, size_t len, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(SEND_MS);
	const char *p = data;

	while (len > 0) {
		struct pollfd f = { .fd = sock, .events = POLLOUT };
		ssize_t n = send(sock, p, len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (errno != EAGAIN && errno != EINTR) {
			return sb_fail(err, SB_E_CLOSED, "the sandbox takes no commands: %s",
				strerror(errno));
		} else if (poll(&f, 1, sb_deadline_poll_ms(d)) == 0 || sb_deadline_passed(d)) {
			return sb_fail(err, SB_E_RUNTIME, "the sandbox does not take the command");
		}
	}
	return 0;
}

/* Whether a descriptor gets through and works inside. */
static int
hello(int control, struct sb_error *err)
{
	struct pollfd f = { .events = POLLIN };
	sb_autoclose int in = -1;
	sb_autoclose int out = -1;
	int p[2], r;
	char c = 0;

	if (pipe2(p, O_CLOEXEC) < 0)
		return sb_fail_errno(err, "pipe");
	f.fd = in = p[0];
	out = p[1];
	r = send_fds(control, SB_HELPER_HELLO, &out, 1, err);
	(void)close(sb_steal_fd(&out));
	if (r == 0 && poll(&f, 1, HELLO_MS) == 1 && read(in, &c, 1) == 1 && c == SB_HELPER_HELLO)
		return 0;
	return sb_fail(err, SB_E_UNSUPPORTED, "the sandbox takes no descriptors");
}

int
sb_resident_start(struct sb_resident *s, const char *const *argv, struct sb_error *err)
{
	const char *const env[] = { "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_autoclose int ours = -1;
	sb_autoclose int theirs = -1;
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return sb_fail_errno(err, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	o.io[0] = SB_SPAWN_FD;
	o.fds[0] = theirs;
	o.env = env;
	o.cwd = "/";
	o.new_session = true;
	r = sb_spawn(argv, &o, &s->led, err);
	if (r < 0)
		return r;
	(void)close(sb_steal_fd(&theirs));
	r = hello(ours, err);
	if (r < 0) {
		sb_child_stop(&s->led, 0);
		s->led = (struct sb_child)SB_CHILD_INIT;
		return r;
	}
	s->control = sb_steal_fd(&ours);
	return 0;
}

void
sb_resident_stop(struct sb_resident *s)
{
	if (s->control < 0)
		return;
	(void)close(s->control);
	sb_child_stop(&s->led, 0);
	*s = (struct sb_resident)SB_RESIDENT_INIT;
}

static void
add_texts(struct sb_buf *b, const char *const *v, uint32_t *n)
{
	for (*n = 0; v[*n]; (*n)++)
		sb_buf_add(b, v[*n], strlen(v[*n]) + 1);
}

/* The command as the helper reads it. */
static int
encode(const struct sb_runtime_cmd *cmd, const struct sb_strlist *env, uint32_t given,
	struct sb_buf *b, struct sb_error *err)
{
	struct sb_helper_call head = { .given = given, .max_memory = cmd->res.mem_mb << 20 };
	int r;

	sb_buf_add(b, &head, sizeof head);
	add_texts(b, cmd->argv, &head.argc);
	add_texts(b, (const char *const *)env->v, &head.envc);
	r = sb_buf_check(b, "command", err);
	if (r < 0)
		return r;
	if (head.argc > SB_HELPER_ARGS_MAX || head.envc > SB_HELPER_ARGS_MAX)
		return sb_fail(err, SB_E_LIMIT, "command: more than %u arguments",
			SB_HELPER_ARGS_MAX);
	head.bytes = (uint32_t)(b->len - sizeof head);
	memcpy(b->data, &head, sizeof head);
	return 0;
}

/*
 * What the command gets as 0 to 2; the ends of pipes that are ours go to `ours`, those to be closed
 * afterwards to `pipes`.
 */
static int
open_stdio(const struct sb_spawn_opts *io, uid_t user, int fds[3], int pipes[3], int ours[3],
	struct sb_error *err)
{
	for (int i = 0; i < 3; i++) {
		int p[2];

		fds[i] = io->io[i] == SB_SPAWN_FD     ? io->fds[i] :
			io->io[i] == SB_SPAWN_INHERIT ? i :
							-1;
		if (io->io[i] != SB_SPAWN_PIPE)
			continue;
		if (pipe2(p, O_CLOEXEC) < 0)
			return sb_fail_errno(err, "pipe");
		fds[i] = pipes[i] = p[i == 0 ? 0 : 1];
		/* So that it may open it by name, too (/dev/stderr). */
		if (user)
			(void)fchown(fds[i], user, user);
		ours[i] = p[i == 0 ? 1 : 0];
	}
	return 0;
}

/* The process that stands for the command. */
static int
stand_in(const char *helper, const char *mark, int channel, struct sb_child *out,
	struct sb_error *err)
{
	sb_autofree char *entry = sb_str_printf("%s=%s", SB_PROCTREE_MARK, mark);
	const char *const argv[] = { helper, "await", NULL }, *const env[] = { entry, NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;

	if (!entry)
		return sb_fail(err, SB_E_NOMEM, "start a command");
	o.io[0] = SB_SPAWN_FD;
	o.fds[0] = channel;
	o.env = env;
	o.cwd = "/";
	o.new_session = true;
	o.die_with_parent = true;
	return sb_spawn(argv, &o, out, err);
}

static void
close_all(int fds[3])
{
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0)
			(void)close(fds[i]);
}

int
sb_resident_call(struct sb_resident *s, const char *helper, const struct sb_runtime_cmd *cmd,
	uid_t user, const struct sb_strlist *env, const struct sb_spawn_opts *io,
	struct sb_child *out, struct sb_error *err)
{
	int fds[3] = { -1, -1, -1 }, pipes[3] = { -1, -1, -1 }, ours[3] = { -1, -1, -1 },
	    sent[FDS_MAX], pair[2];
	sb_autoclose int channel = -1;
	sb_autoclose int theirs = -1;
	sb_auto(sb_buf) struct sb_buf text;
	uint32_t given = cmd->leave ? SB_HELPER_LEAVE : 0;
	size_t n = 0;
	int r;

	sb_buf_init(&text, SB_HELPER_BYTES_MAX);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return sb_fail_errno(err, "socketpair");
	channel = pair[0];
	sent[n++] = theirs = pair[1];
	r = open_stdio(io, user, fds, pipes, ours, err);
	for (int i = 0; i < 3; i++)
		if (fds[i] >= 0) {
			sent[n++] = fds[i];
			given |= 1u << i;
		}
	if (r == 0)
		r = encode(cmd, env, given, &text, err);
	if (r == 0)
		r = send_fds(s->control, SB_HELPER_CALL, sent, n, err);
	(void)close(sb_steal_fd(&theirs));
	close_all(pipes);
	if (r == 0)
		r = send_all(channel, text.data, text.len, err);
	if (r == 0)
		r = stand_in(helper, cmd->mark, channel, out, err);
	if (r < 0) {
		close_all(ours);
		return r;
	}
	out->in = ours[0];
	out->out = ours[1];
	out->errfd = ours[2];
	return 0;
}
