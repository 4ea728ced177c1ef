/* SPDX-License-Identifier: MIT */
/* The thread that drives an SSH connection: moves bytes between libssh2 and the channels. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

#include <sync/ssh/ssh-channel.h>

/* Turns without a look at the descriptors, as long as something moves. */
#define TURNS 8

void
sb_ssh_pump_wake(struct sb_ssh *c)
{
	uint64_t one = 1;

	(void)!write(c->wake_fd, &one, sizeof one);
}

void
sb_ssh_pump_break(struct sb_ssh *c, int code, const char *fmt, ...)
{
	char text[SB_ERROR_MSG_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	(void)pthread_mutex_lock(&c->mu);
	if (!c->broken) {
		c->broken = true;
		sb_fail(&c->why, code, "%s: connection lost: %.380s", c->name, text);
	}
	(void)pthread_mutex_unlock(&c->mu);
}

static bool
is_broken(struct sb_ssh *c)
{
	bool b;

	(void)pthread_mutex_lock(&c->mu);
	b = c->broken;
	(void)pthread_mutex_unlock(&c->mu);
	return b;
}

/* New channels come in at the end of the list; false when the pump is to stop. */
static bool
take_arrivals(struct sb_ssh *c)
{
	struct sb_ssh_channel *list, *next;
	bool stop;

	(void)pthread_mutex_lock(&c->mu);
	list = c->arrivals;
	c->arrivals = NULL;
	stop = c->stop;
	(void)pthread_mutex_unlock(&c->mu);
	for (; list; list = next) {
		struct sb_ssh_channel **at = &c->channels;

		next = list->next;
		list->next = NULL;
		while (*at)
			at = &(*at)->next;
		*at = list;
	}
	return !stop;
}

static void
reap_channels(struct sb_ssh *c)
{
	struct sb_ssh_channel **at = &c->channels;

	while (*at) {
		struct sb_ssh_channel *ch = *at;
		bool gone;

		(void)pthread_mutex_lock(&c->mu);
		gone = ch->state == CHANNEL_ENDED && ch->released;
		c->n_channels -= gone;
		(void)pthread_mutex_unlock(&c->mu);
		if (gone) {
			*at = ch->next;
			sb_ssh_channel_destroy(ch);
		} else {
			at = &ch->next;
		}
	}
}

/*
 * Asks for a channel of a type no server has: the refusal is the sign of life, and while it is
 * waited for, libssh2 works off whatever the server sends (requests to answer, a new key exchange).
 * Nothing else in libssh2 does that without an open channel, and its own keepalive leaves every
 * answer in a list for ever.
 */
static bool
ping(struct sb_ssh *c)
{
	LIBSSH2_CHANNEL *ch;
	char why[220];

	if (!c->pinging) {
		c->pinging = true;
		c->ping_at = sb_now_ms();
	}
	ch = libssh2_channel_open_ex(c->session, "ping@sbsync", 11, 4096, 4096, NULL, 0);
	if (ch) {
		/* It has one after all. The connection's end frees it. */
		c->pinging = false;
		return true;
	}
	switch (libssh2_session_last_errno(c->session)) {
	case LIBSSH2_ERROR_EAGAIN: return false;
	case LIBSSH2_ERROR_CHANNEL_FAILURE: c->pinging = false; return true;
	default:
		sb_ssh_pump_break(c, SB_E_CLOSED, "%s",
			sb_ssh_conn_dead(c) ? sb_ssh_conn_why(c, why, sizeof why) :
					      sb_ssh_conn_last(c, why, sizeof why));
		return true;
	}
}

/* Lets every channel do what it can, until nothing moves. */
static void
work(struct sb_ssh *c)
{
	bool moved = true;

	for (int i = 0; i < TURNS && moved && !is_broken(c); i++) {
		moved = false;
		for (struct sb_ssh_channel *ch = c->channels; ch && !is_broken(c); ch = ch->next)
			moved |= sb_ssh_channel_step(ch);
		if (c->pinging && !is_broken(c))
			moved |= ping(c);
		sb_ssh_socket_flush(&c->wire);
	}
	/* Bytes nobody asked for: requests of the server while no channel reads. */
	if (!moved && c->wire.in_len > 0 && !c->pinging && !c->opener && !is_broken(c)) {
		(void)ping(c);
		sb_ssh_socket_flush(&c->wire);
	}
}

/* Checks on the server's life; returns in how many milliseconds to check again. */
static int
check_life(struct sb_ssh *c)
{
	int64_t silence = sb_ssh_socket_silence_ms(&c->wire);
	int64_t next;

	if (sb_ssh_conn_dead(c)) {
		char why[220];

		sb_ssh_pump_break(c, SB_E_CLOSED, "%s", sb_ssh_conn_why(c, why, sizeof why));
		return 0;
	}
	if (c->stall_ms > 0 && silence >= c->stall_ms) {
		sb_ssh_pump_break(c, SB_E_TIMEOUT, "no sign of life for %d s", c->stall_ms / 1000);
		return 0;
	}
	if (c->alive_ms > 0 && silence >= c->alive_ms && !c->pinging && !c->opener) {
		(void)ping(c);
		sb_ssh_socket_flush(&c->wire);
	}
	next = c->stall_ms > 0 ? c->stall_ms - silence : 60000;
	if (c->alive_ms > 0 && !c->pinging && silence < c->alive_ms && c->alive_ms - silence < next)
		next = c->alive_ms - silence;
	return (int)(next < 1 ? 1 : next);
}

#define FIXED 3
#define POLLED (FIXED + 3 * SB_SSH_CHANNELS_MAX)

/* Lowers `delay` to the time at which a refused channel asks again. */
static int
retry_delay(const struct sb_ssh *c, int delay)
{
	for (const struct sb_ssh_channel *ch = c->channels; ch; ch = ch->next) {
		int64_t left = ch->retry_at - sb_now_ms();

		if (ch->state == CHANNEL_WAITING && ch->retry_at && left < delay)
			delay = left < 1 ? 1 : (int)left;
	}
	return delay;
}

static void
wait_for_events(struct sb_ssh *c, int delay)
{
	struct pollfd p[POLLED];
	struct sb_ssh_channel *who[POLLED] = { NULL };
	size_t n = FIXED;
	uint64_t count;

	p[0] = (struct pollfd){ .fd = c->wire.fd,
		.events = sb_ssh_socket_events(&c->wire, &delay) };
	p[1] = (struct pollfd){ .fd = c->wake_fd, .events = POLLIN };
	p[2] = (struct pollfd){ .fd = sb_cancel_fd(c->cancel), .events = POLLIN };
	for (struct sb_ssh_channel *ch = c->channels; ch && n + 3 <= POLLED; ch = ch->next) {
		if (ch->state != CHANNEL_RUNNING)
			continue;
		if (ch->in_len == 0 && !ch->in_eof && !ch->in_ready) {
			who[n] = ch;
			p[n++] = (struct pollfd){ .fd = ch->in_fd, .events = POLLIN };
		}
		if (ch->out_len > 0)
			p[n++] = (struct pollfd){ .fd = ch->out_fd, .events = POLLOUT };
		if (ch->err_len > 0)
			p[n++] = (struct pollfd){ .fd = ch->err_fd, .events = POLLOUT };
	}
	if (poll(p, n, delay) < 0)
		return;
	if (p[1].revents)
		(void)!read(c->wake_fd, &count, sizeof count);
	if (p[2].revents)
		sb_ssh_pump_break(c, SB_E_CANCELED, "canceled");
	if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
		sb_ssh_socket_fill(&c->wire);
	for (size_t i = FIXED; i < n; i++)
		if (who[i] && p[i].revents)
			who[i]->in_ready = true;
	sb_ssh_socket_flush(&c->wire);
}

static void *
pump(void *arg)
{
	struct sb_ssh *c = arg;

	while (take_arrivals(c) && !is_broken(c)) {
		int delay;

		work(c);
		reap_channels(c);
		delay = check_life(c);
		if (!is_broken(c))
			wait_for_events(c, retry_delay(c, delay));
	}
	(void)pthread_mutex_lock(&c->mu);
	if (!c->broken) {
		c->broken = true;
		sb_fail(&c->why, SB_E_CLOSED, "%s: connection closed", c->name);
	}
	(void)pthread_mutex_unlock(&c->mu);
	/* No arrivals after this: broken is set, and sb_ssh_exec looks at it under the lock. */
	(void)take_arrivals(c);
	for (struct sb_ssh_channel *ch = c->channels; ch; ch = ch->next)
		if (ch->state != CHANNEL_ENDED)
			sb_ssh_channel_abort(ch, &c->why);
	return NULL;
}

int
sb_ssh_pump_start(struct sb_ssh *c, struct sb_error *err)
{
	int r;

	c->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (c->wake_fd < 0)
		return sb_fail_errno(err, "make an event descriptor");
	r = pthread_create(&c->thread, NULL, pump, c);
	if (r != 0) {
		errno = r;
		return sb_fail_errno(err, "start a thread");
	}
	c->thread_runs = true;
	return 0;
}

void
sb_ssh_pump_stop(struct sb_ssh *c)
{
	struct sb_ssh_channel *next;

	if (c->thread_runs) {
		(void)pthread_mutex_lock(&c->mu);
		c->stop = true;
		(void)pthread_mutex_unlock(&c->mu);
		sb_ssh_pump_wake(c);
		(void)pthread_join(c->thread, NULL);
		c->thread_runs = false;
	}
	for (struct sb_ssh_channel *ch = c->channels; ch; ch = next) {
		next = ch->next;
		sb_ssh_channel_destroy(ch);
	}
	c->channels = NULL;
}

int
sb_ssh_check(struct sb_ssh *c, struct sb_error *err)
{
	int r = 0;

	(void)pthread_mutex_lock(&c->mu);
	if (c->broken) {
		r = c->why.code;
		if (err)
			*err = c->why;
	}
	(void)pthread_mutex_unlock(&c->mu);
	return r;
}
