/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh-channel.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <base/cond.h>
#include <base/str.h>

/*
 * Receive window, measured with 100 MB down (libssh2 1.10, 2 loaded cores): at 50 ms RTT 1 MiB
 * gives 22 MB/s, 2 MiB 34, 4 MiB 62, 8 MiB 71, 16 MiB 73 with 40 % more CPU; OpenSSH's client 29.
 * Without delay the size does not matter, since the pump drains as bytes come. Upwards the server's
 * window decides (OpenSSH 2 MiB: 36 MB/s at 50 ms).
 */
#define WINDOW (4u << 20)
#define PACKET 32768
#define BUFFER (256u << 10)
#define ERR_BUFFER (32u << 10)
/* Encrypted bytes that may wait for the socket before a channel stops adding to them. */
#define WIRE_HIGH (512u << 10)
/* Rounds of one direction in one step, so that no channel and no direction starves the others. */
#define ROUNDS 16
#define SOCKET_BUFFER (1 << 20)
#define RETRY_MS 50
#define RETRY_FOR_MS 3000

static void
finish(struct sb_ssh_channel *ch, int code, const char *text)
{
	struct sb_ssh *c = ch->conn;

	sb_tail_end(&ch->tail);
	(void)shutdown(ch->in_fd, SHUT_RDWR);
	(void)shutdown(ch->out_fd, SHUT_RDWR);
	if (ch->err_fd >= 0)
		(void)shutdown(ch->err_fd, SHUT_RDWR);
	(void)pthread_mutex_lock(&c->mu);
	if (!ch->done) {
		ch->done = true;
		if (code < 0)
			sb_fail(&ch->why, code, "%s", text);
		(void)pthread_cond_broadcast(&c->cond);
	}
	(void)pthread_mutex_unlock(&c->mu);
	if (c->opener == ch)
		c->opener = NULL;
	ch->state = ch->ch ? CHANNEL_CLOSING : CHANNEL_ENDED;
}

void
sb_ssh_channel_abort(struct sb_ssh_channel *ch, const struct sb_error *why)
{
	finish(ch, why ? why->code : SB_E_CANCELED, why ? why->msg : "canceled");
	ch->state = CHANNEL_ENDED;
}

/* A libssh2 failure on this channel: either the whole connection is gone, or only the channel. */
static void
fail_channel(struct sb_ssh_channel *ch, const char *what)
{
	struct sb_ssh *c = ch->conn;
	char why[220], text[SB_ERROR_MSG_MAX];

	if (sb_ssh_conn_dead(c)) {
		sb_ssh_pump_break(c, SB_E_CLOSED, "%s", sb_ssh_conn_why(c, why, sizeof why));
		return;
	}
	switch (libssh2_session_last_errno(c->session)) {
	case LIBSSH2_ERROR_CHANNEL_FAILURE:
	case LIBSSH2_ERROR_CHANNEL_REQUEST_DENIED:
	case LIBSSH2_ERROR_CHANNEL_CLOSED:
	case LIBSSH2_ERROR_CHANNEL_EOF_SENT:
		(void)snprintf(text, sizeof text, "%.300s: %s: %s", c->name, what,
			sb_ssh_conn_last(c, why, sizeof why));
		finish(ch, SB_E_PEER, text);
		return;
	default:
		sb_ssh_pump_break(c, c->memory_hit ? SB_E_LIMIT : SB_E_PROTO, "%s: %s", what,
			c->memory_hit ? "the server made libssh2 use too much memory" :
					sb_ssh_conn_last(c, why, sizeof why));
	}
}

/*
 * The server counts sessions, and one we have let go of stays on its books until its process is
 * gone. So a refusal is not the last word while others close or have just closed.
 */
static bool
may_retry(const struct sb_ssh_channel *ch)
{
	if (libssh2_session_last_errno(ch->conn->session) != LIBSSH2_ERROR_CHANNEL_FAILURE)
		return false;
	for (const struct sb_ssh_channel *o = ch->conn->channels; o; o = o->next)
		if (o->state == CHANNEL_CLOSING)
			return true;
	return ch->conn->closed_at && sb_now_ms() - ch->conn->closed_at < RETRY_FOR_MS;
}

static bool
open_channel(struct sb_ssh_channel *ch)
{
	struct sb_ssh *c = ch->conn;

	if (ch->state == CHANNEL_WAITING) {
		if (c->opener || c->pinging || ch->retry_at > sb_now_ms())
			return false;
		c->opener = ch;
		ch->state = CHANNEL_OPENING;
	}
	ch->ch = libssh2_channel_open_ex(c->session, "session", 7, WINDOW, PACKET, NULL, 0);
	if (!ch->ch) {
		if (libssh2_session_last_errno(c->session) == LIBSSH2_ERROR_EAGAIN)
			return false;
		c->opener = NULL;
		if (may_retry(ch)) {
			ch->retry_at = sb_now_ms() + RETRY_MS;
			ch->state = CHANNEL_WAITING;
			return false;
		}
		fail_channel(ch, "the server refused another session on this connection");
		return true;
	}
	c->opener = NULL;
	ch->state = CHANNEL_RUNNING;
	ch->starting = true;
	return true;
}

static bool
start_command(struct sb_ssh_channel *ch)
{
	int rc = libssh2_channel_process_startup(ch->ch, "exec", 4, ch->command,
		(unsigned)strlen(ch->command));

	if (rc == LIBSSH2_ERROR_EAGAIN)
		return false;
	ch->starting = false;
	if (rc < 0)
		fail_channel(ch, "the server refused to run the command");
	return true;
}

/* Hands buffered bytes to the reader. False when he is gone. */
static bool
flush_to(int fd, const uint8_t *buf, size_t *head, size_t *len)
{
	while (*len > 0) {
		ssize_t n = send(fd, buf + *head, *len, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN;
		*head += (size_t)n;
		*len -= (size_t)n;
	}
	return true;
}

static bool
pull_stderr(struct sb_ssh_channel *ch)
{
	bool moved = false;
	char text[4096];
	ssize_t n;

	for (int i = 0; i < ROUNDS && ch->state == CHANNEL_RUNNING; i++) {
		if (ch->err_fd >= 0 &&
			!flush_to(ch->err_fd, ch->err, &ch->err_head, &ch->err_len)) {
			/* Its reader is gone: from here on only the tail is kept. */
			sb_cleanup_close_(&ch->err_fd);
			ch->err_fd = -1;
			ch->err_len = 0;
		}
		if (ch->err_len > 0)
			break;
		n = libssh2_channel_read_stderr(ch->ch, ch->err ? (char *)ch->err : text,
			ch->err ? ERR_BUFFER : sizeof text);
		if (n <= 0)
			break;
		sb_tail_add(&ch->tail, ch->err ? (char *)ch->err : text, (size_t)n);
		ch->err_head = 0;
		ch->err_len = ch->err_fd >= 0 ? (size_t)n : 0;
		moved = true;
	}
	return moved;
}

static bool
pull(struct sb_ssh_channel *ch)
{
	bool moved = false;
	ssize_t n;

	for (int i = 0; i < ROUNDS && ch->state == CHANNEL_RUNNING; i++) {
		if (!flush_to(ch->out_fd, ch->out, &ch->out_head, &ch->out_len)) {
			finish(ch, SB_E_CANCELED, "nobody reads the command's output any more");
			return true;
		}
		if (ch->out_len > 0)
			break;
		n = libssh2_channel_read(ch->ch, (char *)ch->out, BUFFER);
		if (n == LIBSSH2_ERROR_EAGAIN || n == 0)
			break;
		if (n < 0) {
			fail_channel(ch, "read");
			return true;
		}
		ch->out_head = 0;
		ch->out_len = (size_t)n;
		moved = true;
	}
	return pull_stderr(ch) || moved;
}

static void
read_in(struct sb_ssh_channel *ch)
{
	ssize_t n = recv(ch->in_fd, ch->in, BUFFER, MSG_DONTWAIT);

	if (n > 0) {
		ch->in_head = 0;
		ch->in_len = (size_t)n;
		/* A short read took all: no need to hear that from another one. */
		ch->in_ready = n == BUFFER;
	} else if (n == 0) {
		ch->in_eof = true;
	} else {
		ch->in_ready = false;
		if (errno != EAGAIN && errno != EINTR)
			ch->in_eof = true;
	}
}

static bool
push(struct sb_ssh_channel *ch)
{
	bool moved = false;

	for (int i = 0; i < ROUNDS && !ch->eof_sent && ch->conn->wire.out_len < WIRE_HIGH; i++) {
		ssize_t n;

		if (ch->in_len == 0 && !ch->in_eof && ch->in_ready)
			read_in(ch);
		if (ch->in_len > 0) {
			n = libssh2_channel_write(ch->ch, (char *)ch->in + ch->in_head, ch->in_len);
			if (n == LIBSSH2_ERROR_EAGAIN || n == 0)
				break;
			if (n < 0) {
				fail_channel(ch, "write");
				return true;
			}
			ch->in_head += (size_t)n;
			ch->in_len -= (size_t)n;
			moved = true;
		} else if (ch->in_eof) {
			int rc = libssh2_channel_send_eof(ch->ch);

			if (rc == LIBSSH2_ERROR_EAGAIN)
				break;
			ch->eof_sent = true;
			if (rc < 0)
				fail_channel(ch, "end of input");
			return true;
		} else {
			break;
		}
	}
	return moved;
}

static int
signal_number(const char *name)
{
	static const struct {
		const char *name;
		int number;
	} table[] = { { "ABRT", SIGABRT }, { "ALRM", SIGALRM }, { "FPE", SIGFPE },
		{ "HUP", SIGHUP }, { "ILL", SIGILL }, { "INT", SIGINT }, { "KILL", SIGKILL },
		{ "PIPE", SIGPIPE }, { "QUIT", SIGQUIT }, { "SEGV", SIGSEGV }, { "TERM", SIGTERM },
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 } };

	for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
		if (strcmp(table[i].name, name) == 0)
			return table[i].number;
	return SIGKILL;
}

static void
take_exit(struct sb_ssh_channel *ch)
{
	struct sb_ssh *c = ch->conn;
	char *sig = NULL;
	int code = libssh2_channel_get_exit_status(ch->ch);

	if (libssh2_channel_get_exit_signal(ch->ch, &sig, NULL, NULL, NULL, NULL, NULL) == 0 &&
		sig) {
		code = 128 + signal_number(sig);
		libssh2_free(c->session, sig);
	}
	(void)pthread_mutex_lock(&c->mu);
	ch->exit_known = true;
	ch->exit_code = code & 0xff;
	(void)pthread_mutex_unlock(&c->mu);
}

/* The end of the output, then the close with the exit status. */
static bool
check_end(struct sb_ssh_channel *ch)
{
	int rc;

	if (!ch->out_shut) {
		if (ch->out_len > 0 || ch->err_len > 0 || libssh2_channel_eof(ch->ch) != 1)
			return false;
		(void)shutdown(ch->out_fd, SHUT_WR);
		if (ch->err_fd >= 0)
			(void)shutdown(ch->err_fd, SHUT_WR);
		ch->out_shut = true;
	}
	rc = libssh2_channel_wait_closed(ch->ch);
	if (rc == LIBSSH2_ERROR_EAGAIN)
		return false;
	if (rc < 0) {
		fail_channel(ch, "end of the command");
		return true;
	}
	take_exit(ch);
	finish(ch, 0, NULL);
	return true;
}

static bool
run_channel(struct sb_ssh_channel *ch)
{
	bool moved = false;

	if (ch->starting)
		moved = start_command(ch);
	/* Input goes first, and at once: it is what somebody waits for the answer to. */
	if (ch->state == CHANNEL_RUNNING && !ch->out_shut && push(ch)) {
		sb_ssh_socket_flush(&ch->conn->wire);
		moved = true;
	}
	if (ch->state == CHANNEL_RUNNING && !ch->out_shut)
		moved |= pull(ch);
	if (ch->state == CHANNEL_RUNNING && !ch->starting)
		moved |= check_end(ch);
	return moved;
}

static bool
close_channel(struct sb_ssh_channel *ch)
{
	if (libssh2_channel_free(ch->ch) == LIBSSH2_ERROR_EAGAIN)
		return false;
	ch->ch = NULL;
	ch->conn->closed_at = sb_now_ms();
	ch->state = CHANNEL_ENDED;
	return true;
}

bool
sb_ssh_channel_step(struct sb_ssh_channel *ch)
{
	bool cancel;

	(void)pthread_mutex_lock(&ch->conn->mu);
	cancel = ch->cancel || ch->released;
	(void)pthread_mutex_unlock(&ch->conn->mu);
	/* A channel being opened is let through first: libssh2 cannot leave that half-way. */
	if (cancel && (ch->state == CHANNEL_WAITING || ch->state == CHANNEL_RUNNING))
		finish(ch, SB_E_CANCELED, "canceled");
	switch (ch->state) {
	case CHANNEL_WAITING:
	case CHANNEL_OPENING: return open_channel(ch);
	case CHANNEL_RUNNING: return run_channel(ch);
	case CHANNEL_CLOSING: return close_channel(ch);
	case CHANNEL_ENDED: break;
	}
	return false;
}

static int
channel_close_write(struct sb_transport *t, struct sb_error *err)
{
	if (shutdown(t->wfd, SHUT_WR) < 0 && errno != ENOTCONN && errno != EPIPE)
		return sb_fail_errno(err, "close the way to the command");
	return 0;
}

static int
channel_wait(struct sb_transport *t, sb_deadline d, struct sb_exit *out, struct sb_error *err)
{
	struct sb_ssh_channel *ch = (struct sb_ssh_channel *)t;
	struct sb_ssh *c = ch->conn;
	int r = 0;

	memset(out, 0, sizeof *out);
	(void)pthread_mutex_lock(&c->mu);
	while (!ch->done && !sb_deadline_passed(d))
		sb_cond_wait_until(&c->cond, &c->mu, d);
	if (!ch->done)
		r = sb_fail(err, SB_E_TIMEOUT, "%s: the command still runs", c->name);
	else if (ch->why.code < 0)
		r = sb_fail(err, ch->why.code, "%s", ch->why.msg);
	out->known = ch->exit_known;
	out->code = ch->exit_code;
	(void)pthread_mutex_unlock(&c->mu);
	sb_tail_get(&ch->tail, out->stderr_tail, sizeof out->stderr_tail);
	return r;
}

static void
channel_cancel(struct sb_transport *t)
{
	struct sb_ssh_channel *ch = (struct sb_ssh_channel *)t;
	struct sb_ssh *c = ch->conn;

	(void)shutdown(t->rfd, SHUT_RDWR);
	(void)shutdown(t->wfd, SHUT_RDWR);
	if (t->efd >= 0)
		(void)shutdown(t->efd, SHUT_RDWR);
	(void)pthread_mutex_lock(&c->mu);
	ch->cancel = true;
	if (!ch->done) {
		ch->done = true;
		sb_fail(&ch->why, SB_E_CANCELED, "%s: canceled", c->name);
		(void)pthread_cond_broadcast(&c->cond);
	}
	(void)pthread_mutex_unlock(&c->mu);
	sb_ssh_pump_wake(c);
}

static void
channel_wire_bytes(const struct sb_transport *t, uint64_t *up, uint64_t *down)
{
	const struct sb_ssh_channel *ch = (const struct sb_ssh_channel *)t;

	sb_ssh_wire_bytes(ch->conn, up, down);
}

/*
 * Lets go of it; the pump closes the channel with the server and frees the rest, now or when the
 * connection ends.
 */
static void
channel_free(struct sb_transport *t)
{
	struct sb_ssh_channel *ch = (struct sb_ssh_channel *)t;
	struct sb_ssh *c = ch->conn;

	(void)close(t->rfd);
	(void)close(t->wfd);
	if (t->efd >= 0)
		(void)close(t->efd);
	(void)pthread_mutex_lock(&c->mu);
	ch->released = true;
	(void)pthread_mutex_unlock(&c->mu);
	sb_ssh_pump_wake(c);
}

static const struct sb_transport_ops channel_ops = {
	.name = "ssh",
	.close_write = channel_close_write,
	.wait = channel_wait,
	.cancel = channel_cancel,
	.wire_bytes = channel_wire_bytes,
	.free = channel_free,
};

void
sb_ssh_channel_destroy(struct sb_ssh_channel *ch)
{
	if (ch->in_fd >= 0)
		(void)close(ch->in_fd);
	if (ch->out_fd >= 0)
		(void)close(ch->out_fd);
	if (ch->err_fd >= 0)
		(void)close(ch->err_fd);
	sb_tail_destroy(&ch->tail);
	free(ch->command);
	free(ch->in);
	free(ch->out);
	free(ch->err);
	free(ch);
}

static int
make_pair(int *ours, int *theirs, struct sb_error *err)
{
	int size = SOCKET_BUFFER;
	int sv[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_fail_errno(err, "make a socket pair");
	for (int i = 0; i < 2; i++)
		if (setsockopt(sv[i], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size) < 0)
			(void)setsockopt(sv[i], SOL_SOCKET, SO_SNDBUF, &size, sizeof size);
	*ours = sv[0];
	*theirs = sv[1];
	return 0;
}

/* Puts a channel that is ready on the list the pump looks at. */
static int
announce(struct sb_ssh *c, struct sb_ssh_channel *ch, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&c->mu);
	if (c->broken) {
		r = c->why.code;
		if (err)
			*err = c->why;
	} else if (c->n_channels >= SB_SSH_CHANNELS_MAX) {
		r = sb_fail(err, SB_E_LIMIT, "%s: more than %d commands at once", c->name,
			SB_SSH_CHANNELS_MAX);
	} else {
		c->n_channels++;
		ch->next = c->arrivals;
		c->arrivals = ch;
	}
	(void)pthread_mutex_unlock(&c->mu);
	return r;
}

static struct sb_transport *
exec_new(struct sb_ssh *c, const char *command, bool split, struct sb_error *err)
{
	struct sb_ssh_channel *ch = calloc(1, sizeof *ch);
	int r;

	if (!ch) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	sb_tail_init(&ch->tail);
	ch->base = (struct sb_transport){ .ops = &channel_ops, .rfd = -1, .wfd = -1, .efd = -1 };
	ch->conn = c;
	ch->in_fd = ch->out_fd = ch->err_fd = -1;
	ch->command = strdup(command);
	ch->in = malloc(BUFFER);
	ch->out = malloc(BUFFER);
	ch->err = split ? malloc(ERR_BUFFER) : NULL;
	r = ch->command && ch->in && ch->out && (ch->err || !split) ?
		0 :
		sb_fail(err, SB_E_NOMEM, "out of memory");
	if (r == 0)
		r = make_pair(&ch->in_fd, &ch->base.wfd, err);
	if (r == 0)
		r = make_pair(&ch->out_fd, &ch->base.rfd, err);
	if (r == 0 && split)
		r = make_pair(&ch->err_fd, &ch->base.efd, err);
	if (r == 0)
		r = announce(c, ch, err);
	if (r < 0) {
		sb_cleanup_close_(&ch->base.rfd);
		sb_cleanup_close_(&ch->base.wfd);
		sb_cleanup_close_(&ch->base.efd);
		sb_ssh_channel_destroy(ch);
		return NULL;
	}
	sb_ssh_pump_wake(c);
	return &ch->base;
}

struct sb_transport *
sb_ssh_exec(struct sb_ssh *c, const char *command, struct sb_error *err)
{
	return exec_new(c, command, false, err);
}

struct sb_transport *
sb_ssh_exec_split(struct sb_ssh *c, const char *command, struct sb_error *err)
{
	return exec_new(c, command, true, err);
}
