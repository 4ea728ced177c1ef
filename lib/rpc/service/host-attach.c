/* SPDX-License-Identifier: MIT */
/*
 * The host's half of Attach: moves bytes between an upgraded connection and a command in a
 * session.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rpc/protocol/envelope.h>
#include <rpc/protocol/attach-frame.h>
#include <rpc/service/host-priv.h>

#define COMMAND_MAX 65536
#define ENV_MAX 256
#define ENV_LEN_MAX 131071
#define CHUNK 32768
/* Bytes that may wait on either side before reading stops. */
#define HIGH (4 * SB_RPC_ATTACH_FRAME_MAX)

/*
 * The bytes between a connection and a command. Its own thread moves them while the handler's waits
 * for the command.
 */
struct bridge {
	struct sb_rpc_call *call;
	int sock;
	int ours[3];   /* our ends of the command's stdin, stdout, stderr; -1: over */
	int theirs[3]; /* the command's, until it runs */
	int wake[2];   /* a byte is written when the command has ended */
	bool ended;
	bool broken; /* the connection is of no use any more */
	bool in_eof; /* no more for stdin */
	struct sb_buf from, to_cmd, to_client;
};

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void
close_theirs(void *arg)
{
	struct bridge *b = arg;

	for (int i = 0; i < 3; i++)
		close_fd(&b->theirs[i]);
}

/* Takes the frames that came. */
static void
take_frames(struct bridge *b)
{
	enum sb_rpc_attach_frame what;
	const uint8_t *data;
	size_t len;
	int r;

	while ((r = sb_rpc_attach_frame_next(&b->from, &what, &data, &len, NULL)) == 1) {
		if (what == SB_RPC_ATTACH_FRAME_DATA && !b->in_eof)
			sb_buf_add(&b->to_cmd, data, len);
		else if (what == SB_RPC_ATTACH_FRAME_EOF)
			b->in_eof = true;
		else if (what != SB_RPC_ATTACH_FRAME_DATA)
			r = -1;
		if (r < 0)
			break;
		sb_buf_consume(&b->from, SB_RPC_ENVELOPE_SIZE + len);
	}
	if (r < 0 || b->to_cmd.failed)
		b->broken = true;
}

static void
read_client(struct bridge *b)
{
	char chunk[CHUNK];
	ssize_t n = recv(b->sock, chunk, sizeof chunk, MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		b->broken = true;
		return;
	}
	sb_buf_add(&b->from, chunk, (size_t)n);
	if (b->from.failed)
		b->broken = true;
	take_frames(b);
}

static void
read_command(struct bridge *b, int i)
{
	char chunk[CHUNK];
	ssize_t n = read(b->ours[i], chunk, sizeof chunk);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close_fd(&b->ours[i]);
		return;
	}
	sb_rpc_attach_frame_put(&b->to_client,
		i == 1 ? SB_RPC_ATTACH_FRAME_DATA : SB_RPC_ATTACH_FRAME_STDERR, chunk, (size_t)n);
}

/* Writes what fits and drops it. */
static bool
write_some(struct sb_buf *from, int fd, bool sock)
{
	ssize_t n = sock ? send(fd, from->data, from->len, MSG_DONTWAIT | MSG_NOSIGNAL) :
			   write(fd, from->data, from->len);

	if (n > 0)
		sb_buf_consume(from, (size_t)n);
	return n >= 0 || errno == EAGAIN || errno == EINTR;
}

static void
move(struct bridge *b, const struct pollfd *p)
{
	if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
		read_client(b);
	for (int i = 1; i < 3; i++)
		if (b->ours[i] >= 0 && p[i + 1].revents)
			read_command(b, i);
	/* A command that does not read its input is no reason to end. */
	if (b->ours[0] >= 0 && b->to_cmd.len > 0 && p[1].revents &&
		!write_some(&b->to_cmd, b->ours[0], false))
		close_fd(&b->ours[0]);
	if (b->ours[0] < 0)
		b->to_cmd.len = 0;
	if (b->in_eof && b->to_cmd.len == 0)
		close_fd(&b->ours[0]);
	if (b->to_client.len > 0 && !write_some(&b->to_client, b->sock, true))
		b->broken = true;
	if (p[4].revents)
		b->ended = true;
}

/* All the command wrote has been handed on and it is over, or nobody wants it. */
static void *
bridge_thread(void *arg)
{
	struct bridge *b = arg;

	while (!b->broken &&
		!(b->ended && b->ours[1] < 0 && b->ours[2] < 0 && b->to_client.len == 0)) {
		bool room = b->to_client.len < HIGH;
		struct pollfd p[] = {
			{ .fd = b->sock,
				.events = (short)((b->to_cmd.len < HIGH ? POLLIN : 0) |
					(b->to_client.len ? POLLOUT : 0)) },
			{ .fd = b->to_cmd.len > 0 ? b->ours[0] : -1, .events = POLLOUT },
			{ .fd = room ? b->ours[1] : -1, .events = POLLIN },
			{ .fd = room ? b->ours[2] : -1, .events = POLLIN },
			{ .fd = b->ended ? -1 : b->wake[0], .events = POLLIN },
			{ .fd = sb_cancel_fd(sb_rpc_call_cancel(b->call)), .events = POLLIN },
		};

		if ((poll(p, 6, -1) < 0 && errno != EINTR) || p[5].revents)
			b->broken = true;
		else
			move(b, p);
		if (b->to_client.failed)
			b->broken = true;
	}
	/* Nobody is there for its output: the command ends. */
	if (b->broken)
		sb_rpc_call_abort(b->call, SB_E_CANCELED, false);
	return NULL;
}

static int
open_pipes(struct bridge *b, struct sb_error *err)
{
	for (int i = 0; i < 3; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC) < 0)
			return sb_fail_errno(err, "pipe");
		b->theirs[i] = p[i == 0 ? 0 : 1];
		b->ours[i] = p[i == 0 ? 1 : 0];
		(void)fcntl(b->ours[i], F_SETFL, O_NONBLOCK);
	}
	return pipe2(b->wake, O_CLOEXEC) < 0 ? sb_fail_errno(err, "pipe") : 0;
}

/* The last frame, within reason. */
static void
say_last(struct bridge *b, enum sb_rpc_attach_frame what, const void *data, size_t len)
{
	struct pollfd p = { .fd = b->sock, .events = POLLOUT };
	sb_deadline d = sb_deadline_in(5000);

	b->to_client.len = 0;
	sb_rpc_attach_frame_put(&b->to_client, what, data, len);
	while (b->to_client.len > 0 && !b->to_client.failed && !sb_deadline_passed(d) &&
		write_some(&b->to_client, b->sock, true))
		if (b->to_client.len > 0)
			(void)poll(&p, 1, 200);
}

static int
run_bridge(struct bridge *b, struct sb_host_attach *a, const struct sb_host_call *limits,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(b->call);
	pthread_t thread;
	uint8_t code[4];
	int exit_code = 0;
	int r = open_pipes(b, err);

	if (r < 0)
		return r;
	if (pthread_create(&thread, NULL, bridge_thread, b) != 0)
		return sb_fail(err, SB_E_LIMIT, "cannot start a thread");
	memcpy(a->fds, b->theirs, sizeof a->fds);
	a->started = close_theirs;
	a->arg = b;
	r = sb_host_attach(h->host, a, limits, &exit_code, err);
	close_theirs(b);
	(void)!write(b->wake[1], "", 1);
	(void)pthread_join(thread, NULL);
	if (r < 0 || b->broken)
		return r < 0 ? r : sb_fail(err, SB_E_CANCELED, "the client went away");
	for (int i = 0; i < 4; i++)
		code[i] = (uint8_t)((unsigned)exit_code >> (24 - 8 * i));
	say_last(b, SB_RPC_ATTACH_FRAME_EXIT, code, sizeof code);
	return 0;
}

int
sb_rpc_host_attach_run(struct sb_rpc_call *call, const json_t *in, int sock, struct sb_error *err)
{
	struct sb_host_attach a = SB_HOST_ATTACH_INIT;
	struct sb_host_call limits = sb_rpc_host_limits(call);
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	struct bridge b = { .call = call,
		.sock = sock,
		.ours = { -1, -1, -1 },
		.theirs = { -1, -1, -1 },
		.wake = { -1, -1 } };
	const char *argv[] = { "/bin/sh", "-c", NULL, NULL };
	struct sb_rpc_fields f;
	int r;

	sb_buf_init(&b.from, 2 * SB_RPC_ATTACH_FRAME_MAX + CHUNK);
	sb_buf_init(&b.to_cmd, 2 * HIGH);
	sb_buf_init(&b.to_client, 2 * HIGH);
	sb_rpc_fields_init(&f, in);
	a.session = sb_rpc_host_session_id(call, &f);
	argv[2] = sb_rpc_field_str(&f, "Command", COMMAND_MAX, SB_RPC_REQUIRED);
	sb_rpc_field_env(&f, "Env", ENV_MAX, ENV_LEN_MAX, &env);
	a.argv = argv;
	a.env = (const char *const *)env.v;
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = run_bridge(&b, &a, &limits, err);
	for (int i = 0; i < 3; i++) {
		close_fd(&b.ours[i]);
		close_fd(&b.theirs[i]);
		if (i < 2)
			close_fd(&b.wake[i]);
	}
	sb_buf_free(&b.from);
	sb_buf_free(&b.to_cmd);
	sb_buf_free(&b.to_client);
	return r;
}
