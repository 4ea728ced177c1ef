/* SPDX-License-Identifier: MIT */
/* The door's loop: bytes between the client's channels and their programs. */
#include "config.h"

#include "door.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <sb/cancel.h>

#define FDS (2 + 3 * DOOR_CHANNELS_MAX)

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

/* What the client sent, as far as it fits. The rest waits with libssh, and so does the client. */
static void
take_input(struct door_channel *c)
{
	while (c->ssh && c->fd[0] >= 0 && c->in.len < DOOR_PIECE) {
		uint8_t *room = sb_buf_reserve(&c->in, DOOR_PIECE);
		int n = room ? ssh_channel_read_nonblocking(c->ssh, room, DOOR_PIECE, 0) : 0;

		if (n <= 0)
			return;
		sb_buf_grow(&c->in, (size_t)n);
	}
}

static void
end_input(struct door_channel *c)
{
	/* Of a socket one direction; who has a terminal keeps it until it ends. */
	if (c->dialed || c->control)
		(void)shutdown(c->fd[0], SHUT_WR);
	close_fd(&c->fd[0]);
}

static void
feed(struct door_channel *c)
{
	ssize_t n;

	take_input(c);
	while (c->fd[0] >= 0 && c->in.len > 0) {
		n = write(c->fd[0], c->in.data, c->in.len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0) {
			/* It does not read any more; what comes is dropped. */
			close_fd(&c->fd[0]);
			break;
		}
		sb_buf_consume(&c->in, (size_t)n);
		take_input(c);
	}
	if (c->fd[0] < 0 && c->ssh) {
		uint8_t drop[DOOR_PIECE];

		c->in.len = 0;
		while (ssh_channel_read_nonblocking(c->ssh, drop, sizeof drop, 0) > 0)
			;
	}
	if (c->fd[0] >= 0 && c->in.len == 0 && c->ssh && ssh_channel_is_eof(c->ssh) && c->cols == 0)
		end_input(c);
}

/* Whether the client takes more: by its window, and because it reads what is on its way. */
static bool
has_room(struct door_channel *c)
{
	return c->ssh && ssh_channel_window_size(c->ssh) > 0 &&
		!(ssh_get_status(c->door->ssh) & SSH_WRITE_PENDING);
}

static void
drain(struct door_channel *c, int i)
{
	uint8_t piece[DOOR_PIECE];

	while (c->fd[i] >= 0 && has_room(c)) {
		uint32_t window = ssh_channel_window_size(c->ssh);
		ssize_t n = read(c->fd[i], piece, window < sizeof piece ? window : sizeof piece);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (n <= 0) {
			close_fd(&c->fd[i]);
			return;
		}
		if (i == 1)
			(void)ssh_channel_write(c->ssh, piece, (uint32_t)n);
		else
			(void)ssh_channel_write_stderr(c->ssh, piece, (uint32_t)n);
	}
}

static bool
is_read(const struct door_channel *c, int i)
{
	return c->fd[i] >= 0 && (i == 1 || !c->control);
}

/* The program ended and all it wrote is on its way; or one side of a connection is over. */
static void
finish(struct door_channel *c)
{
	if (c->gone) {
		door_channel_close(c);
		return;
	}
	if (!c->begun || is_read(c, 1) || is_read(c, 2))
		return;
	if (c->dialed) {
		if (c->ssh && c->fd[1] < 0)
			(void)ssh_channel_send_eof(c->ssh);
		if (c->fd[0] < 0 || c->ended)
			door_channel_close(c);
		return;
	}
	if (!c->ended)
		return;
	(void)ssh_channel_request_send_exit_status(c->ssh, (int)c->code);
	(void)ssh_channel_send_eof(c->ssh);
	door_channel_close(c);
}

static nfds_t
gather(struct door *d, struct pollfd *p)
{
	nfds_t n = 2;

	p[0] = (struct pollfd){ .fd = d->sock, .events = POLLIN };
	if (ssh_get_status(d->ssh) & SSH_WRITE_PENDING)
		p[0].events |= POLLOUT;
	p[1] = (struct pollfd){ .fd = d->link, .events = POLLIN };
	for (size_t i = 0; i < DOOR_CHANNELS_MAX; i++) {
		struct door_channel *c = &d->channels[i];

		if (!c->used)
			continue;
		if (c->kind == DOOR_POST && c->fd[1] >= 0)
			p[n++] = (struct pollfd){ .fd = c->fd[1], .events = POLLIN };
		if (c->fd[0] >= 0 && c->in.len > 0)
			p[n++] = (struct pollfd){ .fd = c->fd[0], .events = POLLOUT };
		for (int k = 1; k < 3; k++)
			if (c->kind == DOOR_PROGRAM && is_read(c, k) && has_room(c))
				p[n++] = (struct pollfd){ .fd = c->fd[k], .events = POLLIN };
	}
	return n;
}

static void
move(struct door *d)
{
	for (size_t i = 0; i < DOOR_CHANNELS_MAX; i++) {
		struct door_channel *c = &d->channels[i];

		if (!c->used)
			continue;
		if (c->kind == DOOR_CALLER || (c->kind == DOOR_POST && !c->gone)) {
			c->kind == DOOR_CALLER ? door_agent_caller(c) : door_agent_post(c);
			continue;
		}
		if (c->begun && !c->gone) {
			feed(c);
			for (int k = 1; k < 3; k++)
				if (is_read(c, k))
					drain(c, k);
		}
		finish(c);
	}
}

void
door_pump(struct door *d)
{
	static struct pollfd p[FDS];
	int64_t heard = sb_now_ms(), asked = heard;

	while (!d->lost && ssh_is_connected(d->ssh)) {
		int64_t idle = (int64_t)d->idle_s * 1000, now;
		nfds_t n;

		/* While it writes and reads for one channel, libssh takes in what is for others. */
		do {
			d->news = false;
			move(d);
		} while (d->news);
		n = gather(d, p);
		if (poll(p, n, idle > 0 ? (int)idle / 2 : -1) < 0 && errno != EINTR)
			return;
		now = sb_now_ms();
		if (p[0].revents) {
			heard = now;
			if (ssh_event_dopoll(d->event, 0) == SSH_ERROR)
				return;
		}
		if (p[1].revents)
			door_take(d);
		if (idle > 0 && d->in && now - heard >= idle && now - asked >= idle) {
			asked = now;
			(void)ssh_send_keepalive(d->ssh);
		}
		if (idle > 0 && now - heard >= 3 * idle)
			return;
	}
}
