/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh-socket.h>

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <sb/cancel.h>

#define IN_SIZE (256u << 10)
#define OUT_SIZE (1u << 20)
/*
 * Only answers the peer forces on us (to global requests, say) get the buffer past what the pump
 * puts there.
 */
#define OUT_MAX (4u << 20)

static int64_t
now_us(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec * INT64_C(1000000) + ts.tv_nsec / 1000;
}

static void
bucket_init(struct sb_ssh_bucket *b, uint64_t rate)
{
	b->rate = rate;
	/*
	 * A tenth of a second's worth, but no less than what a packet needs to get through in one
	 * go.
	 */
	b->burst = rate / 10 < 4096 ? 4096 : rate / 10;
	b->tokens = b->burst;
	b->at_us = now_us();
}

/* How many bytes may move now, of `want`. */
static size_t
bucket_allow(struct sb_ssh_bucket *b, size_t want)
{
	int64_t now;
	uint64_t more;

	if (b->rate == 0)
		return want;
	now = now_us();
	/*
	 * A long pause fills the bucket once, whatever its length: this also keeps the product
	 * small.
	 */
	if (now - b->at_us > 1000000)
		b->at_us = now - 1000000;
	more = (uint64_t)(now - b->at_us) * b->rate / 1000000;
	if (more > 0) {
		b->tokens = b->tokens + more > b->burst ? b->burst : b->tokens + more;
		b->at_us = now;
	}
	return b->tokens < want ? (size_t)b->tokens : want;
}

static void
bucket_spend(struct sb_ssh_bucket *b, size_t n)
{
	if (b->rate > 0)
		b->tokens -= n < b->tokens ? n : b->tokens;
}

/* Milliseconds until about a quarter of the burst is there. */
static int
bucket_delay_ms(const struct sb_ssh_bucket *b)
{
	return (int)(b->burst / 4 * 1000 / b->rate) + 1;
}

int
sb_ssh_socket_init(struct sb_ssh_socket *w, int fd, uint64_t bwlimit, struct sb_error *err)
{
	memset(w, 0, sizeof *w);
	w->fd = fd;
	w->in = malloc(IN_SIZE);
	w->out = malloc(OUT_SIZE);
	w->out_cap = OUT_SIZE;
	bucket_init(&w->up, bwlimit);
	bucket_init(&w->down, bwlimit);
	w->progress_ms = sb_now_ms();
	if (!w->in || !w->out)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	return 0;
}

void
sb_ssh_socket_destroy(struct sb_ssh_socket *w)
{
	if (w->fd >= 0)
		(void)close(w->fd);
	free(w->in);
	free(w->out);
	memset(w, 0, sizeof *w);
	w->fd = -1;
}

void
sb_ssh_socket_fill(struct sb_ssh_socket *w)
{
	size_t room;
	ssize_t n;

	if (w->in_len == 0)
		w->in_head = 0;
	room = bucket_allow(&w->down, IN_SIZE - w->in_head - w->in_len);
	if (room == 0 || w->eof || w->sys)
		return;
	n = recv(w->fd, w->in + w->in_head + w->in_len, room, MSG_DONTWAIT);
	if (n > 0) {
		w->in_len += (size_t)n;
		bucket_spend(&w->down, (size_t)n);
		atomic_fetch_add_explicit(&w->bytes_down, (uint64_t)n, memory_order_relaxed);
		w->progress_ms = sb_now_ms();
	} else if (n == 0) {
		w->eof = true;
	} else if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) {
		w->sys = errno;
	}
}

void
sb_ssh_socket_flush(struct sb_ssh_socket *w)
{
	while (w->out_len > 0 && !w->sys) {
		size_t want = bucket_allow(&w->up, w->out_len);
		ssize_t n;

		if (want == 0)
			return;
		n = send(w->fd, w->out + w->out_head, want, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0) {
			if (errno == EINTR)
				continue;
			if (errno != EAGAIN && errno != EWOULDBLOCK)
				w->sys = errno;
			return;
		}
		bucket_spend(&w->up, (size_t)n);
		atomic_fetch_add_explicit(&w->bytes_up, (uint64_t)n, memory_order_relaxed);
		w->out_head += (size_t)n;
		w->out_len -= (size_t)n;
	}
	if (w->out_len == 0)
		w->out_head = 0;
}

short
sb_ssh_socket_events(struct sb_ssh_socket *w, int *out_delay_ms)
{
	const struct sb_ssh_bucket *slow = NULL;
	short events = 0;

	if (w->in_head + w->in_len < IN_SIZE || w->in_len == 0) {
		if (bucket_allow(&w->down, 1) > 0)
			events |= POLLIN;
		else
			slow = &w->down;
	}
	if (w->out_len > 0) {
		if (bucket_allow(&w->up, 1) > 0)
			events |= POLLOUT;
		else
			slow = &w->up;
	}
	if (slow) {
		int ms = bucket_delay_ms(slow);

		if (*out_delay_ms < 0 || ms < *out_delay_ms)
			*out_delay_ms = ms;
	}
	return events;
}

bool
sb_ssh_socket_dead(const struct sb_ssh_socket *w)
{
	return w->sys || w->flooded || (w->eof && w->in_len == 0);
}

const char *
sb_ssh_socket_why(const struct sb_ssh_socket *w, char *buf, size_t size)
{
	char text[128];

	if (w->flooded)
		(void)snprintf(buf, size, "the server floods the connection with requests");
	else if (w->sys)
		(void)snprintf(buf, size, "%s", strerror_r(w->sys, text, sizeof text));
	else
		(void)snprintf(buf, size, "the server closed the connection");
	return buf;
}

int64_t
sb_ssh_socket_silence_ms(struct sb_ssh_socket *w)
{
	int queued = 0;
	int64_t now = sb_now_ms();
	uint64_t up = atomic_load_explicit(&w->bytes_up, memory_order_relaxed);

	if (ioctl(w->fd, SIOCOUTQ, &queued) == 0 && queued >= 0 &&
		up - (uint64_t)queued > w->acked) {
		w->acked = up - (uint64_t)queued;
		w->progress_ms = now;
	}
	return now - w->progress_ms;
}

ptrdiff_t
sb_ssh_socket_recv(struct sb_ssh_socket *w, void *buf, size_t len)
{
	if (w->in_len == 0)
		return w->eof ? 0 : w->sys ? -w->sys : -EAGAIN;
	if (len > w->in_len)
		len = w->in_len;
	memcpy(buf, w->in + w->in_head, len);
	w->in_head += len;
	w->in_len -= len;
	return (ptrdiff_t)len;
}

ptrdiff_t
sb_ssh_socket_send(struct sb_ssh_socket *w, const void *buf, size_t len)
{
	if (w->sys || w->flooded)
		return -EPIPE;
	if (w->out_head + w->out_len + len > w->out_cap) {
		if (w->out_head > 0)
			memmove(w->out, w->out + w->out_head, w->out_len);
		w->out_head = 0;
	}
	if (w->out_len + len > w->out_cap) {
		size_t cap = w->out_cap;
		uint8_t *out;

		while (cap < w->out_len + len)
			cap *= 2;
		out = cap <= OUT_MAX ? realloc(w->out, cap) : NULL;
		if (!out) {
			w->flooded = true;
			return -EPIPE;
		}
		w->out = out;
		w->out_cap = cap;
	}
	memcpy(w->out + w->out_head + w->out_len, buf, len);
	w->out_len += len;
	return (ptrdiff_t)len;
}
