/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/wire/wire.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/file.h>
#include <sb/log.h>
#include <sync/wire/proto.h>

#define GATHER (64u << 10)
#define READ_AHEAD (256u << 10)
#define HEADER 5
#define BUSY_STALLS 120 /* how many stalls' time a far side may be busy */

struct sb_wire {
	struct sb_transport *t;
	struct sb_wire_opts o;

	pthread_mutex_t mu; /* guards the sending side */
	struct sb_buf out;
	XXH3_state_t *out_hash;
	uint64_t out_frames;
	_Atomic uint64_t out_bytes; /* sb_wire_counts reads it without `mu` */
	int64_t last_sent_ms;
	int failed; /* a send failed: every later one does too */
	struct sb_error why;
	double tokens; /* bwlimit */
	int64_t tokens_ms;

	sb_deadline give_up; /* for receiving, whatever comes */
	sb_deadline busy;    /* for the next frame that is not a PING */
	uint8_t *in;
	size_t in_start, in_end, in_cap;
	XXH3_state_t *in_hash;
	uint64_t in_frames;
	_Atomic uint64_t in_bytes; /* likewise */
	_Atomic uint64_t taken; /* bytes read from the transport */
	_Atomic bool spoke;     /* sent something since the last frame came in */
	uint64_t turns;

	pthread_t pinger;
	bool have_pinger;
	bool stop;
	pthread_cond_t wake;
};

/* How much has come from the peer, read or not: it grows while the peer lives. */
static uint64_t
heard(struct sb_wire *w)
{
	int waiting = 0;

	if (ioctl(w->t->rfd, FIONREAD, &waiting) < 0 || waiting < 0)
		waiting = 0;
	return atomic_load_explicit(&w->taken, memory_order_relaxed) + (uint64_t)waiting;
}

/* How long a far side may be alive without getting on. */
static sb_deadline
busy_until(const struct sb_wire *w)
{
	int ms = w->o.busy_ms;

	if (!ms && w->o.stall_ms > 0)
		ms = w->o.stall_ms > INT_MAX / BUSY_STALLS ? INT_MAX : w->o.stall_ms * BUSY_STALLS;
	return ms > 0 ? sb_deadline_in(ms) : SB_NEVER;
}

static int
no_news(struct sb_error *err)
{
	return sb_fail(err, SB_E_TIMEOUT,
		"the far side gave signs of life for long, and nothing else");
}

static int
wait_ready(struct sb_wire *w, int fd, short events, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(w->o.stall_ms),
		    busy = events & POLLIN ? w->busy : busy_until(w);
	uint64_t before = heard(w);

	d = sb_deadline_min(d, busy);
	if (events & POLLIN)
		d = sb_deadline_min(d, w->give_up);
	for (;;) {
		uint64_t now;

		struct pollfd p[2] = {
			{ .fd = fd, .events = events },
			{ .fd = sb_cancel_fd(w->o.cancel), .events = POLLIN },
		};
		int n;

		if (sb_cancel_requested(w->o.cancel))
			return sb_fail(err, SB_E_CANCELED, "canceled");
		n = poll(p, 2, sb_deadline_poll_ms(d));
		if (n < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
		if (n > 0 && p[0].revents)
			return 0;
		if (n != 0 || !sb_deadline_passed(d))
			continue;
		if (sb_deadline_passed(busy))
			return no_news(err);
		/* A peer too busy to take what we send still says so. */
		now = heard(w);
		if (now == before || (events & POLLIN))
			return sb_fail(err, SB_E_TIMEOUT, "no byte from the far side for %d s",
				w->o.stall_ms / 1000);
		before = now;
		d = sb_deadline_min(sb_deadline_in(w->o.stall_ms), busy);
	}
}

/*
 * Lets `len` bytes through at the limit; called with the lock held, which is meant: the limit is
 * one for all senders.
 */
static void
throttle(struct sb_wire *w, size_t len)
{
	int64_t now = sb_now_ms();

	if (!w->o.bwlimit)
		return;
	w->tokens += (double)(now - w->tokens_ms) * (double)w->o.bwlimit / 1000.0;
	w->tokens_ms = now;
	if (w->tokens > (double)w->o.bwlimit / 4)
		w->tokens = (double)w->o.bwlimit / 4;
	w->tokens -= (double)len;
	if (w->tokens < 0) {
		double s = -w->tokens / (double)w->o.bwlimit;
		struct pollfd p = { .fd = sb_cancel_fd(w->o.cancel), .events = POLLIN };

		(void)poll(&p, p.fd >= 0 ? 1 : 0, (int)(s * 1000));
	}
}

/* Without SIGPIPE, which would end a program that links the library when its peer dies. */
static ssize_t
write_some(int fd, const uint8_t *p, size_t len)
{
	ssize_t n = send(fd, p, len, MSG_NOSIGNAL);

	return n < 0 && errno == ENOTSOCK ? sb_file_write_nosig(fd, p, len) : n;
}

static int
write_out(struct sb_wire *w, const uint8_t *p, size_t len, struct sb_error *err)
{
	while (len) {
		size_t piece = w->o.bwlimit && len > 16384 ? 16384 : len;
		ssize_t n;

		throttle(w, piece);
		n = write_some(w->t->wfd, p, piece);
		if (n < 0 && errno == EAGAIN) {
			int r = wait_ready(w, w->t->wfd, POLLOUT, err);

			if (r < 0)
				return r;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EPIPE)
			return sb_fail(err, SB_E_CLOSED, "the far side closed the connection");
		if (n < 0)
			return sb_fail_errno(err, "write to the far side");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

static int use_transport(struct sb_wire *w, struct sb_transport *t, struct sb_error *err);

static int
begin_locked(struct sb_wire *w)
{
	struct sb_transport *t = NULL;
	int r = w->o.start(w->out.data, w->out.len, &t, w->o.start_arg, &w->why);

	return r < 0 ? r : use_transport(w, t, &w->why);
}

static int
flush_locked(struct sb_wire *w, struct sb_error *err)
{
	int r;

	if (w->failed) {
		if (err)
			*err = w->why;
		return w->failed;
	}
	r = w->t ? write_out(w, w->out.data, w->out.len, &w->why) : begin_locked(w);
	if (r < 0) {
		w->failed = r;
		if (err)
			*err = w->why;
		return r;
	}
	sb_buf_reset(&w->out);
	w->last_sent_ms = sb_now_ms();
	return 0;
}

static int
send_locked(struct sb_wire *w, uint8_t type, const void *a, size_t a_len, const void *b,
	size_t b_len, struct sb_error *err)
{
	uint8_t head[HEADER];
	uint32_t len = (uint32_t)(a_len + b_len);
	int r;

	for (int i = 0; i < 4; i++)
		head[i] = (uint8_t)(len >> (8 * i));
	head[4] = type;
	XXH3_128bits_update(w->out_hash, head, sizeof head);
	if (a_len)
		XXH3_128bits_update(w->out_hash, a, a_len);
	if (b_len)
		XXH3_128bits_update(w->out_hash, b, b_len);
	w->out_frames++;
	w->out_bytes += HEADER + len;
	if (type != SB_MSG_PING)
		w->spoke = true;
	sb_buf_add(&w->out, head, sizeof head);
	sb_buf_add(&w->out, a, a_len);
	sb_buf_add(&w->out, b, b_len);
	r = sb_buf_check(&w->out, "frame", err);
	if (r < 0)
		return w->failed = r;
	return w->out.len >= GATHER ? flush_locked(w, err) : 0;
}

int
sb_wire_send2(struct sb_wire *w, uint8_t type, const void *a, size_t a_len, const void *b,
	size_t b_len, struct sb_error *err)
{
	int r;

	if (a_len > SB_WIRE_MAX_PAYLOAD || b_len > SB_WIRE_MAX_PAYLOAD - a_len)
		return sb_fail(err, SB_E_LIMIT, "frame of %zu bytes is too large", a_len + b_len);
	pthread_mutex_lock(&w->mu);
	r = w->failed;
	if (r < 0 && err)
		*err = w->why;
	if (r == 0)
		r = send_locked(w, type, a, a_len, b, b_len, err);
	pthread_mutex_unlock(&w->mu);
	return r;
}

int
sb_wire_send(struct sb_wire *w, uint8_t type, const void *data, size_t len, struct sb_error *err)
{
	return sb_wire_send2(w, type, data, len, NULL, 0, err);
}

int
sb_wire_flush(struct sb_wire *w, struct sb_error *err)
{
	int r;

	pthread_mutex_lock(&w->mu);
	r = flush_locked(w, err);
	pthread_mutex_unlock(&w->mu);
	return r;
}

int
sb_wire_send_proof(struct sb_wire *w, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_digest d;
	int r;

	sb_buf_init(&b, 64);
	pthread_mutex_lock(&w->mu);
	d = sb_digest_final(w->out_hash);
	sb_buf_add_u64(&b, w->out_frames);
	sb_buf_add_u64(&b, w->out_bytes);
	sb_buf_add(&b, d.b, sizeof d.b);
	r = sb_buf_check(&b, "proof", err);
	if (r == 0 && w->failed) {
		r = w->failed;
		if (err)
			*err = w->why;
	}
	if (r == 0)
		r = send_locked(w, SB_MSG_PROOF, b.data, b.len, NULL, 0, err);
	if (r == 0)
		r = flush_locked(w, err);
	pthread_mutex_unlock(&w->mu);
	return r;
}

void
sb_wire_send_error(struct sb_wire *w, const struct sb_error *e)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 2048);
	sb_buf_add_svarint(&b, e->code);
	sb_buf_add_svarint(&b, e->sys);
	sb_buf_add_bytes(&b, e->msg, strlen(e->msg));
	if (sb_wire_send(w, SB_MSG_ERROR, b.data, b.len, NULL) == 0)
		(void)sb_wire_flush(w, NULL);
}

/* Makes at least `want` bytes available behind in_start. */
static int
fill(struct sb_wire *w, size_t want, struct sb_error *err)
{
	if (w->in_start && w->in_cap - w->in_start < want) {
		memmove(w->in, w->in + w->in_start, w->in_end - w->in_start);
		w->in_end -= w->in_start;
		w->in_start = 0;
	}
	if (w->in_cap < want) {
		size_t cap = want + READ_AHEAD;
		uint8_t *p = realloc(w->in, cap);

		if (!p)
			return sb_fail(err, SB_E_NOMEM, "frame of %zu bytes: out of memory", want);
		w->in = p;
		w->in_cap = cap;
	}
	while (w->in_end - w->in_start < want) {
		ssize_t n = read(w->t->rfd, w->in + w->in_end, w->in_cap - w->in_end);

		if (n < 0 && errno == EAGAIN) {
			int r = wait_ready(w, w->t->rfd, POLLIN, err);

			if (r < 0)
				return r;
			continue;
		}
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read from the far side");
		if (n == 0)
			return sb_fail(err, SB_E_CLOSED, "the far side ended the connection early");
		w->in_end += (size_t)n;
		atomic_fetch_add_explicit(&w->taken, (uint64_t)n, memory_order_relaxed);
	}
	return 0;
}

static int
check_proof(struct sb_wire *w, const uint8_t *p, size_t len, struct sb_error *err)
{
	struct sb_digest d = sb_digest_final(w->in_hash);
	struct sb_cursor c;
	uint64_t frames, bytes;
	const uint8_t *got;

	sb_cursor_init(&c, p, len);
	frames = sb_cursor_u64(&c);
	bytes = sb_cursor_u64(&c);
	got = sb_cursor_take(&c, sizeof d.b);
	if (c.bad || sb_cursor_left(&c) || frames != w->in_frames || bytes != w->in_bytes ||
		memcmp(got, d.b, sizeof d.b) != 0)
		return sb_fail(err, SB_E_PROTO,
			"the stream's proof does not match: bytes were lost or changed");
	return 0;
}

static int
peer_error(const uint8_t *p, size_t len, struct sb_error *err)
{
	struct sb_cursor c;
	char text[SB_ERROR_MSG_MAX - 16];
	int64_t code;
	const uint8_t *msg;
	size_t n;

	sb_cursor_init(&c, p, len);
	code = sb_cursor_svarint(&c);
	(void)sb_cursor_svarint(&c);
	msg = sb_cursor_bytes(&c, 1024, &n);
	if (c.bad)
		return sb_fail(err, SB_E_PROTO, "the far side sent an error that cannot be read");
	if (strcmp(sb_code_name((int)code), "UNKNOWN") == 0 || code >= 0 || code < -10000)
		code = SB_E_PEER;
	sb_escape((const char *)msg, n, text, sizeof text);
	return sb_fail(err, (int)code, "far side: %s", text);
}

/* The next frame of any type, checked and counted. */
static int
take_frame(struct sb_wire *w, const uint8_t **out, uint32_t *len, struct sb_error *err)
{
	const uint8_t *p;
	uint32_t n;
	int r;

	/* A peer that always has more to say would never let wait_ready look. */
	if (sb_cancel_requested(w->o.cancel))
		return sb_fail(err, SB_E_CANCELED, "canceled");
	r = fill(w, HEADER, err);
	if (r == 0 && sb_deadline_passed(w->give_up))
		r = sb_fail(err, SB_E_TIMEOUT, "the far side does not come to an end");
	if (r == 0 && sb_deadline_passed(w->busy))
		r = no_news(err);
	if (r < 0)
		return r;
	p = w->in + w->in_start;
	n = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
	if (n > SB_WIRE_MAX_PAYLOAD)
		return sb_fail(err, SB_E_PROTO, "the far side announced a frame of %u bytes", n);
	r = fill(w, HEADER + (size_t)n, err);
	if (r < 0)
		return r;
	p = w->in + w->in_start;
	w->in_start += HEADER + (size_t)n;
	if (p[4] == SB_MSG_PROOF) {
		r = check_proof(w, p + HEADER, n, err);
		if (r < 0)
			return r;
	}
	XXH3_128bits_update(w->in_hash, p, HEADER + (size_t)n);
	w->in_frames++;
	w->in_bytes += HEADER + (uint64_t)n;
	*out = p;
	*len = n;
	return 0;
}

int
sb_wire_recv(struct sb_wire *w, uint8_t *type, const uint8_t **out, size_t *len,
	struct sb_error *err)
{
	const uint8_t *p;
	uint32_t n;
	int r;

	w->busy = busy_until(w);
	do {
		r = take_frame(w, &p, &n, err);
		if (r < 0)
			return r;
	} while (p[4] == SB_MSG_PING);
	if (atomic_exchange(&w->spoke, false))
		w->turns++;
	if (p[4] == SB_MSG_ERROR)
		return peer_error(p + HEADER, n, err);
	*type = p[4];
	*out = p + HEADER;
	*len = n;
	return 0;
}

int
sb_wire_peep(struct sb_wire *w, uint8_t *type, struct sb_error *err)
{
	w->busy = busy_until(w);
	for (;;) {
		struct pollfd p = { .fd = w->t->rfd, .events = POLLIN };
		const uint8_t *frame;
		uint32_t n;
		int r;

		if (w->in_start == w->in_end && poll(&p, 1, 0) <= 0)
			return 0;
		r = take_frame(w, &frame, &n, err);
		if (r < 0)
			return r;
		if (frame[4] == SB_MSG_ERROR)
			return peer_error(frame + HEADER, n, err);
		if (frame[4] == SB_MSG_PING)
			continue;
		*type = frame[4];
		return 1;
	}
}

int
sb_wire_idle(struct sb_wire *w, struct sb_error *err)
{
	uint8_t type;
	int r = sb_wire_peep(w, &type, err);

	return r > 0 ? sb_fail(err, SB_E_PROTO, "the far side sent message %u unasked", type) : r;
}

void
sb_wire_renew(struct sb_wire *w, const struct sb_cancel *cancel, int stall_ms, uint64_t bwlimit)
{
	pthread_mutex_lock(&w->mu);
	w->o.cancel = cancel;
	w->o.stall_ms = stall_ms;
	w->o.bwlimit = bwlimit;
	pthread_mutex_unlock(&w->mu);
}

int
sb_wire_last_words(struct sb_wire *w, int ms, struct sb_error *err)
{
	struct sb_error told = { 0 };
	const uint8_t *p;
	uint8_t type;
	size_t len;
	int failed, r;

	pthread_mutex_lock(&w->mu);
	failed = w->failed;
	pthread_mutex_unlock(&w->mu);
	if (!failed || !w->t)
		return 0;
	w->give_up = sb_deadline_in(ms);
	while ((r = sb_wire_recv(w, &type, &p, &len, &told)) == 0)
		;
	if (r == SB_E_CLOSED || r == SB_E_TIMEOUT || r == SB_E_SYS)
		return 0;
	if (err)
		*err = told;
	return r;
}

int
sb_wire_expect(struct sb_wire *w, uint8_t type, const uint8_t **out, size_t *len,
	struct sb_error *err)
{
	uint8_t got;
	int r = sb_wire_recv(w, &got, out, len, err);

	if (r < 0)
		return r;
	if (got != type)
		return sb_fail(err, SB_E_PROTO, "the far side sent message %u where %u must come",
			got, type);
	return 0;
}

uint64_t
sb_wire_turns(const struct sb_wire *w)
{
	return w->turns;
}

void
sb_wire_counts(const struct sb_wire *w, uint64_t *sent, uint64_t *received)
{
	*sent = w->out_bytes;
	*received = w->in_bytes;
}

int
sb_wire_skip_to(struct sb_wire *w, const char *marker, size_t max, struct sb_error *err)
{
	size_t len = strlen(marker), dropped = 0;

	for (;;) {
		uint8_t *at;
		int r = fill(w, len, err);

		if (r < 0)
			return r;
		at = memmem(w->in + w->in_start, w->in_end - w->in_start, marker, len);
		if (at) {
			w->in_start = (size_t)(at - w->in) + len;
			return 0;
		}
		/* Keep the last len-1 bytes: the marker may be cut. */
		dropped += w->in_end - w->in_start - (len - 1);
		w->in_start = w->in_end - (len - 1);
		if (dropped > max)
			return sb_fail(err, SB_E_PROTO,
				"the far side printed %zu bytes, none of them a greeting", dropped);
	}
}

static void *
ping_loop(void *arg)
{
	struct sb_wire *w = arg;

	pthread_mutex_lock(&w->mu);
	while (!w->stop) {
		int64_t idle;

		sb_cond_wait_until(&w->wake, &w->mu, sb_deadline_in(w->o.ping_ms));
		idle = sb_now_ms() - w->last_sent_ms;
		if (!w->stop && !w->failed && idle >= w->o.ping_ms) {
			struct sb_error e;

			if (send_locked(w, SB_MSG_PING, NULL, 0, NULL, 0, &e) == 0)
				(void)flush_locked(w, &e);
		}
	}
	pthread_mutex_unlock(&w->mu);
	return NULL;
}

/* The transport is there: from now on both sides are told when the other is slow. */
static int
use_transport(struct sb_wire *w, struct sb_transport *t, struct sb_error *err)
{
	int e;

	w->t = t;
	/* So that cancel and the stall deadline reach a blocked read or write. */
	(void)fcntl(t->rfd, F_SETFL, fcntl(t->rfd, F_GETFL) | O_NONBLOCK);
	(void)fcntl(t->wfd, F_SETFL, fcntl(t->wfd, F_GETFL) | O_NONBLOCK);
	if (w->o.ping_ms <= 0)
		return 0;
	e = pthread_create(&w->pinger, NULL, ping_loop, w);
	if (e) {
		errno = e;
		return sb_fail_errno(err, "start a thread");
	}
	w->have_pinger = true;
	return 0;
}

struct sb_wire *
sb_wire_new(struct sb_transport *t, const struct sb_wire_opts *opts, struct sb_error *err)
{
	struct sb_wire *w = calloc(1, sizeof *w);

	if (!w) {
		sb_fail(err, SB_E_NOMEM, "wire: out of memory");
		return NULL;
	}
	w->o = *opts;
	w->give_up = w->busy = SB_NEVER;
	w->tokens_ms = w->last_sent_ms = sb_now_ms();
	sb_buf_init(&w->out, SB_WIRE_MAX_PAYLOAD + GATHER + HEADER);
	pthread_mutex_init(&w->mu, NULL);
	sb_cond_init(&w->wake);
	w->out_hash = XXH3_createState();
	w->in_hash = XXH3_createState();
	if (!w->out_hash || !w->in_hash) {
		sb_fail(err, SB_E_NOMEM, "wire: out of memory");
		sb_wire_free(w);
		return NULL;
	}
	XXH3_128bits_reset(w->out_hash);
	XXH3_128bits_reset(w->in_hash);
	if (t && use_transport(w, t, err) < 0) {
		sb_wire_free(w);
		return NULL;
	}
	return w;
}

void
sb_wire_free(struct sb_wire *w)
{
	if (!w)
		return;
	if (w->have_pinger) {
		pthread_mutex_lock(&w->mu);
		w->stop = true;
		pthread_cond_signal(&w->wake);
		pthread_mutex_unlock(&w->mu);
		pthread_join(w->pinger, NULL);
	}
	pthread_cond_destroy(&w->wake);
	pthread_mutex_destroy(&w->mu);
	XXH3_freeState(w->out_hash);
	XXH3_freeState(w->in_hash);
	sb_buf_free(&w->out);
	free(w->in);
	free(w);
}
