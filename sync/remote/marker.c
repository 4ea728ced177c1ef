/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/remote/marker.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <base/cleanup.h>
#include <base/random.h>
#include <base/str.h>
#include <sb/log.h>

#include <sync/wire/transport.h>

int
sb_marker_init(struct sb_marker *m, struct sb_error *err)
{
	uint8_t random[12];
	int r = sb_random(random, sizeof random, err);

	if (r >= 0)
		(void)sb_str_hex(random, sizeof random, m->nonce);
	return r;
}

int
sb_marker_poll(const struct sb_marker *m, int fd, short events, struct sb_error *err)
{
	struct pollfd p[2] = { { .fd = fd, .events = events },
		{ .fd = sb_cancel_fd(m->cancel), .events = POLLIN } };
	int r = sb_check_alive(m->cancel, m->deadline, "waiting for the far side", err);

	if (r < 0)
		return r;
	if (poll(p, 2, sb_deadline_poll_ms(m->deadline)) < 0 && errno != EINTR)
		return sb_fail_errno(err, "poll");
	return 0;
}

/*
 * What the ended command tells: the connection's error, or its exit code with the noise, which
 * holds the shell's complaint when there is no sh.
 */
static int
explain_end(struct sb_marker *m, struct sb_error *err)
{
	struct sb_exit e;
	int r;

	(void)m->t->ops->close_write(m->t, NULL);
	r = m->t->ops->wait(m->t, sb_deadline_min(m->deadline, sb_deadline_in(10000)), &e, err);
	if (r < 0)
		return r;
	return sb_fail(err, SB_E_UNSUPPORTED,
		"%s: the far shell did not do what it was asked (exit %d): %.120s%s%.120s; is this "
		"a log-in that may run commands?",
		m->name, e.code, m->noise, *m->noise && *e.stderr_tail ? " / " : "", e.stderr_tail);
}

/* How many bytes of `data` belong to noise and our line; 0: not whole yet. Fills `line`. */
static size_t
find_line(struct sb_marker *m, const char *data, size_t len)
{
	char mark[48];
	const char *at, *end;
	size_t n;

	(void)snprintf(mark, sizeof mark, "sbsync:%s:", m->nonce);
	at = memmem(data, len, mark, strlen(mark));
	if (!at)
		return 0;
	at += strlen(mark);
	end = memchr(at, '\n', len - (size_t)(at - data));
	if (!end)
		return 0;
	n = (size_t)(end - at);
	if (n >= sizeof m->line)
		n = sizeof m->line - 1;
	memcpy(m->line, at, n);
	m->line[n] = '\0';
	return (size_t)(end + 1 - data);
}

/* Takes exactly `len` bytes out of the stream. */
static int
discard(struct sb_marker *m, size_t len, struct sb_error *err)
{
	char buf[4096];

	while (len > 0) {
		ssize_t n = recv(m->t->rfd, buf, len < sizeof buf ? len : sizeof buf, 0);

		if (n <= 0)
			return sb_fail_errno(err, "read from the far side");
		len -= (size_t)n;
	}
	return 0;
}

/*
 * Reads up to the next line of the script, and not a byte further: the bytes are looked at before
 * they are taken (all transports are sockets). Returns 0 with `line` set.
 */
int
sb_marker_next(struct sb_marker *m, struct sb_error *err)
{
	static const char nothing[] = "";
	sb_autofree char *seen = malloc(SB_MARKER_NOISE_MAX + SB_MARKER_LINE_MAX);
	size_t kept = 0; /* noise taken already, of which the end may be part of the mark */

	if (!seen)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (;;) {
		ssize_t n = recv(m->t->rfd, seen + kept,
			SB_MARKER_NOISE_MAX + SB_MARKER_LINE_MAX - kept, MSG_PEEK | MSG_DONTWAIT);
		size_t taken;
		int r;

		if (n == 0)
			return explain_end(m, err);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return sb_fail_errno(err, "read from the far side");
		if (n > 0) {
			taken = find_line(m, seen, kept + (size_t)n);
			if (taken > 0)
				sb_transport_heard(m->t);
			if (taken > 0)
				return discard(m, taken - kept, err);
			kept += (size_t)n;
			(void)sb_escape(kept ? seen : nothing, kept < 120 ? kept : 120, m->noise,
				sizeof m->noise);
			if (kept >= SB_MARKER_NOISE_MAX)
				return sb_fail(err, SB_E_PROTO,
					"%s: the log-in shell prints more than %u bytes before it "
					"runs a command: %s",
					m->name, SB_MARKER_NOISE_MAX, m->noise);
			r = discard(m, (size_t)n, err);
			if (r < 0)
				return r;
			continue;
		}
		r = sb_marker_poll(m, m->t->rfd, POLLIN, err);
		if (r < 0)
			return r;
	}
}

int
sb_marker_send(struct sb_marker *m, const void *data, size_t len, struct sb_error *err)
{
	const uint8_t *p = data;

	while (len > 0) {
		ssize_t n =
			send(m->t->wfd, p, len < 65536 ? len : 65536, MSG_DONTWAIT | MSG_NOSIGNAL);
		int r;

		if (n > 0) {
			p += n;
			len -= (size_t)n;
			continue;
		}
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return explain_end(m, err);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return sb_fail_errno(err, "send to the far side");
		r = sb_marker_poll(m, m->t->wfd, POLLOUT, err);
		if (r < 0)
			return r;
	}
	return 0;
}
