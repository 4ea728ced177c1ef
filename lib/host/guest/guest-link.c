/* SPDX-License-Identifier: MIT */
/* The host's end of a session's guest: starts it, or finds it again; frames both ways. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/thread.h>
#include <host/guest/guest-priv.h>
#include <host/host.h>
#include <host/runtime/box.h>
#include <host/runtime/runtime.h>

#define HELLO_MS 20000
#define SLICE_MS 200
/* What a stream may have waiting: what its window allows, or a long listing. */
#define STREAM_MAX (32u << 20)

struct sb_guests *
sb_guests_new(struct sb_host *h, struct sb_error *err)
{
	struct sb_guests *g = calloc(1, sizeof *g);

	if (!g) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	g->host = h;
	(void)pthread_mutex_init(&g->mu, NULL);
	sb_cond_init(&g->cv);
	return g;
}

static void
link_free(struct sb_guest_link *l)
{
	(void)close(l->fd);
	(void)pthread_mutex_destroy(&l->mu);
	(void)pthread_mutex_destroy(&l->send_mu);
	(void)pthread_cond_destroy(&l->cv);
	free(l);
}

/* No more of it: whoever waits for something learns it. */
static void
link_end(struct sb_guest_link *l)
{
	(void)pthread_mutex_lock(&l->mu);
	l->dead = true;
	(void)shutdown(l->fd, SHUT_RDWR);
	(void)pthread_cond_broadcast(&l->cv);
	(void)pthread_mutex_unlock(&l->mu);
}

void
sb_guests_free(struct sb_guests *g)
{
	if (!g)
		return;
	(void)pthread_mutex_lock(&g->mu);
	for (struct sb_guest_link *l = g->links; l; l = l->next)
		link_end(l);
	while (g->links || g->readers > 0)
		(void)pthread_cond_wait(&g->cv, &g->mu);
	(void)pthread_mutex_unlock(&g->mu);
	(void)pthread_mutex_destroy(&g->mu);
	(void)pthread_cond_destroy(&g->cv);
	free(g);
}

/* With the guests' `mu` held: frees a link that nobody needs. */
static void
drop_unused(struct sb_guests *g)
{
	for (struct sb_guest_link **p = &g->links; *p;) {
		struct sb_guest_link *l = *p;
		bool over;

		(void)pthread_mutex_lock(&l->mu);
		over = l->dead && !l->reading && l->users == 0;
		(void)pthread_mutex_unlock(&l->mu);
		if (!over) {
			p = &l->next;
			continue;
		}
		*p = l->next;
		link_free(l);
	}
	(void)pthread_cond_broadcast(&g->cv);
}

void
sb_guest_link_put(struct sb_guests *g, struct sb_guest_link *l)
{
	(void)pthread_mutex_lock(&g->mu);
	l->users--;
	l->used_at = sb_now_ms();
	drop_unused(g);
	(void)pthread_mutex_unlock(&g->mu);
}

/* A whole frame came. False: the guest does not keep the rules. */
static bool
deliver(struct sb_guest_link *l, const uint8_t *p, size_t len)
{
	uint32_t id =
		(uint32_t)p[1] | (uint32_t)p[2] << 8 | (uint32_t)p[3] << 16 | (uint32_t)p[4] << 24;
	struct sb_guest_frame *f;
	bool ok = true;

	if (p[0] == SB_GUEST_HELLO) {
		(void)pthread_mutex_lock(&l->mu);
		l->hello = true;
		(void)pthread_cond_broadcast(&l->cv);
		(void)pthread_mutex_unlock(&l->mu);
		return true;
	}
	f = malloc(sizeof *f + len - 5);
	if (!f)
		return false;
	*f = (struct sb_guest_frame){ .what = p[0], .len = len - 5 };
	memcpy(f->data, p + 5, len - 5);
	(void)pthread_mutex_lock(&l->mu);
	for (struct sb_guest_stream *s = l->streams; s; s = s->next) {
		if (s->id != id)
			continue;
		s->bytes += f->len + sizeof *f;
		ok = s->bytes <= s->max;
		*s->last = f;
		s->last = &f->next;
		f = NULL;
		break;
	}
	(void)pthread_cond_broadcast(&l->cv);
	(void)pthread_mutex_unlock(&l->mu);
	free(f); /* of somebody who has left */
	return ok;
}

struct reader {
	struct sb_guests *g;
	struct sb_guest_link *l;
};

static void
read_frames(struct sb_guest_link *l)
{
	sb_auto(sb_buf) struct sb_buf in;

	sb_buf_init(&in, 2 * SB_GUEST_FRAME_MAX);
	for (;;) {
		uint8_t *room = sb_buf_reserve(&in, SB_GUEST_DATA_MAX);
		ssize_t n = room ? recv(l->fd, room, SB_GUEST_DATA_MAX, 0) : 0;
		size_t at = 0;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return;
		sb_buf_grow(&in, (size_t)n);
		while (in.len - at >= SB_GUEST_HEAD) {
			const uint8_t *p = in.data + at;
			uint32_t len = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
				(uint32_t)p[3] << 24;

			if (len < 5 || len > SB_GUEST_FRAME_MAX)
				return;
			if (in.len - at < 4 + (size_t)len)
				break;
			if (!deliver(l, p + 4, len))
				return;
			at += 4 + (size_t)len;
		}
		sb_buf_consume(&in, at);
	}
}

static void *
read_link(void *arg)
{
	struct reader *r = arg;
	struct sb_guests *g = r->g;
	struct sb_guest_link *l = r->l;

	free(r);
	read_frames(l);
	link_end(l);
	(void)pthread_mutex_lock(&g->mu);
	(void)pthread_mutex_lock(&l->mu);
	l->reading = false;
	(void)pthread_mutex_unlock(&l->mu);
	g->readers--;
	drop_unused(g);
	(void)pthread_mutex_unlock(&g->mu);
	return NULL;
}

/* Has the guest that runs already take `sock` as a link. False: there is none. */
static bool
join_guest(struct sb_guests *g, const char *session, const char *helper, int sock,
	const struct sb_host_call *call)
{
	const char *argv[] = { helper, "guest-link", SB_GUEST_PATH, NULL };
	sb_autoclose int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct sb_host_attach a = SB_HOST_ATTACH_INIT;
	struct sb_host_process *v = NULL;
	bool there = false;
	size_t n = 0;
	int code = -1;

	if (sb_host_process_list(g->host, session, &v, &n, NULL) < 0)
		return false;
	for (size_t i = 0; i < n; i++)
		there |= v[i].status != SB_HOST_PROC_EXITED && strcmp(v[i].binary, helper) == 0;
	sb_host_processes_free(v, n);
	a.session = session;
	a.argv = argv;
	a.fds[0] = sock;
	a.fds[1] = a.fds[2] = null;
	return there && null >= 0 && sb_host_attach(g->host, &a, call, &code, NULL) == 0 &&
		code == 0;
}

static int
start_guest(struct sb_guests *g, const struct sb_host_session *s, int sock,
	const struct sb_host_call *call, struct sb_error *err)
{
	bool boxed = s->runtime != SB_HOST_RUNTIME_NONE;
	sb_autofree char *own = boxed ? NULL : sb_runtime_helper(sb_host_options(g->host));
	const char *helper = boxed ? SB_BOX_HELPER : own;
	const char *args[] = { "guest", boxed ? SB_GUEST_PATH : "-", NULL };
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	struct sb_host_process p;
	int r;

	if (!helper)
		return sb_fail(err, SB_E_UNSUPPORTED, "the helper sb-box is not found");
	if (boxed && join_guest(g, s->id, helper, sock, call))
		return 0;
	l.session = s->id;
	l.binary = helper;
	l.args = args;
	l.input = sock;
	r = sb_host_process_launch(g->host, &l, call, &p, err);
	if (r == 0)
		sb_host_process_clear(&p);
	return r;
}

static int
await_hello(struct sb_guest_link *l, const struct sb_host_call *call, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(HELLO_MS);
	int r = 0;

	(void)pthread_mutex_lock(&l->mu);
	while (r == 0 && !l->hello && !l->dead) {
		sb_cond_wait_until(&l->cv, &l->mu, sb_deadline_in(SLICE_MS));
		r = sb_check_alive(call ? call->cancel : NULL,
			sb_deadline_min(d, call ? call->deadline : SB_NEVER), "guest", err);
	}
	if (r == 0 && !l->hello)
		r = sb_fail(err, SB_E_RUNTIME, "the guest of session %s does not answer",
			l->session);
	(void)pthread_mutex_unlock(&l->mu);
	return r;
}

static int
connect_link(struct sb_guests *g, struct sb_guest_link *l, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct reader *rd = malloc(sizeof *rd);
	struct sb_host_session s;
	int pair[2], r;

	if (!rd)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = sb_host_session_get(g->host, l->session, false, &s, err);
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		sb_host_session_clear(&s);
		r = sb_fail_errno(err, "socket");
	}
	if (r < 0) {
		free(rd);
		return r;
	}
	r = start_guest(g, &s, pair[1], call, err);
	sb_host_session_clear(&s);
	(void)close(pair[1]);
	l->fd = pair[0];
	if (r == 0) {
		*rd = (struct reader){ g, l };
		l->reading = true;
		(void)pthread_mutex_lock(&g->mu);
		g->readers++;
		(void)pthread_mutex_unlock(&g->mu);
		if (sb_thread_detached(256 * 1024, read_link, rd) != 0) {
			l->reading = false;
			(void)pthread_mutex_lock(&g->mu);
			g->readers--;
			(void)pthread_mutex_unlock(&g->mu);
			r = sb_fail(err, SB_E_LIMIT, "cannot start a thread");
		} else {
			rd = NULL;
			r = await_hello(l, call, err);
		}
	}
	free(rd);
	return r;
}

/* With the guests' `mu` held: the link of that session that lives. */
static struct sb_guest_link *
find(struct sb_guests *g, const char *session)
{
	for (struct sb_guest_link *l = g->links; l; l = l->next) {
		bool dead;

		(void)pthread_mutex_lock(&l->mu);
		dead = l->dead;
		(void)pthread_mutex_unlock(&l->mu);
		if (!dead && strcmp(l->session, session) == 0)
			return l;
	}
	return NULL;
}

static struct sb_guest_link *
link_new(struct sb_guests *g, const char *session)
{
	struct sb_guest_link *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	(void)snprintf(l->session, sizeof l->session, "%s", session);
	l->fd = -1;
	l->users = 1;
	l->connecting = true;
	(void)pthread_mutex_init(&l->mu, NULL);
	(void)pthread_mutex_init(&l->send_mu, NULL);
	sb_cond_init(&l->cv);
	l->next = g->links;
	g->links = l;
	return l;
}

/*
 * With the guests' `mu` held, which is let go meanwhile: waits for whoever connects the link. 1
 * when it lives then, 0 when that one gave up or failed.
 */
static int
await_other(struct sb_guests *g, struct sb_guest_link *l, const struct sb_host_call *call,
	struct sb_error *err)
{
	bool dead;
	int r = 0;

	while (r == 0 && l->connecting) {
		sb_cond_wait_until(&g->cv, &g->mu, sb_deadline_in(SLICE_MS));
		r = sb_check_alive(call ? call->cancel : NULL, call ? call->deadline : SB_NEVER,
			"guest", err);
	}
	(void)pthread_mutex_lock(&l->mu);
	dead = l->dead;
	(void)pthread_mutex_unlock(&l->mu);
	return r < 0 ? r : !dead;
}

struct sb_guest_link *
sb_guest_link_get(struct sb_guests *g, const char *session, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct sb_guest_link *l;
	struct sb_error why = { 0 };
	int r = 0;

	(void)pthread_mutex_lock(&g->mu);
	/* What another caller's hang-up ended is begun anew: it says nothing about this one. */
	while ((l = find(g, session)) != NULL) {
		l->users++;
		r = await_other(g, l, call, err);
		(void)pthread_mutex_unlock(&g->mu);
		if (r > 0)
			return l;
		sb_guest_link_put(g, l);
		if (r < 0)
			return NULL;
		(void)pthread_mutex_lock(&g->mu);
	}
	l = link_new(g, session);
	(void)pthread_mutex_unlock(&g->mu);
	if (!l) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	r = connect_link(g, l, call, &why);
	(void)pthread_mutex_lock(&g->mu);
	l->connecting = false;
	if (r < 0)
		link_end(l);
	(void)pthread_cond_broadcast(&g->cv);
	(void)pthread_mutex_unlock(&g->mu);
	if (r == 0)
		return l;
	sb_guest_link_put(g, l);
	if (err)
		*err = why;
	return NULL;
}

struct sb_guest_stream *
sb_guest_link_ask(struct sb_guests *g, struct sb_guest_link *l, struct sb_error *err)
{
	struct sb_guest_stream *s = calloc(1, sizeof *s);

	if (!s) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		sb_guest_link_put(g, l);
		return NULL;
	}
	s->guests = g;
	s->link = l;
	s->last = &s->first;
	s->max = STREAM_MAX;
	(void)pthread_mutex_lock(&l->mu);
	s->id = ++l->last_id ? l->last_id : ++l->last_id;
	s->next = l->streams;
	l->streams = s;
	(void)pthread_mutex_unlock(&l->mu);
	return s;
}

static void
free_frames(struct sb_guest_frame *f)
{
	while (f) {
		struct sb_guest_frame *next = f->next;

		free(f);
		f = next;
	}
}

void
sb_guest_leave(struct sb_guest_stream *s)
{
	struct sb_guest_link *l;
	bool dead;

	if (!s)
		return;
	l = s->link;
	(void)pthread_mutex_lock(&l->mu);
	dead = l->dead;
	for (struct sb_guest_stream **p = &l->streams; *p; p = &(*p)->next)
		if (*p == s) {
			*p = s->next;
			break;
		}
	(void)pthread_mutex_unlock(&l->mu);
	if (!dead && s->max != 0) {
		const struct sb_host_call quick = { .deadline = sb_deadline_in(5000) };

		(void)sb_guest_link_send(l, SB_GUEST_LEAVE, s->id, NULL, 0, &quick, NULL);
	}
	free_frames(s->first);
	free(s->now);
	free(s->name);
	sb_guest_entry_clear(&s->entry);
	sb_guest_link_put(s->guests, l);
	free(s);
}

int
sb_guest_link_send(struct sb_guest_link *l, uint8_t what, uint32_t id, const void *data, size_t len,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	size_t at = 0;
	int r;

	sb_buf_init(&b, SB_GUEST_FRAME_MAX);
	sb_buf_add_u32(&b, (uint32_t)(5 + len));
	sb_buf_add_u8(&b, what);
	sb_buf_add_u32(&b, id);
	sb_buf_add(&b, data, len);
	r = sb_buf_check(&b, "request", err);
	if (r < 0)
		return r;
	(void)pthread_mutex_lock(&l->send_mu);
	while (r == 0 && at < b.len) {
		ssize_t n = send(l->fd, b.data + at, b.len - at, MSG_DONTWAIT | MSG_NOSIGNAL);
		struct pollfd p[] = { { .fd = l->fd, .events = POLLOUT },
			{ .fd = sb_cancel_fd(call ? call->cancel : NULL), .events = POLLIN } };

		if (n > 0) {
			at += (size_t)n;
			continue;
		}
		if (errno != EAGAIN && errno != EINTR) {
			r = sb_fail(err, SB_E_RUNTIME, "the guest of session %s went away",
				l->session);
			break;
		}
		(void)poll(p, 2, sb_deadline_poll_ms(call ? call->deadline : SB_NEVER));
		r = sb_check_alive(call ? call->cancel : NULL, call ? call->deadline : SB_NEVER,
			"request to the guest", err);
	}
	(void)pthread_mutex_unlock(&l->send_mu);
	/* Half a frame cannot be taken back. */
	if (r < 0 && at > 0)
		link_end(l);
	return r;
}

int
sb_guest_link_wait(struct sb_guest_stream *s, sb_deadline d, const struct sb_host_call *call,
	struct sb_guest_frame **out, struct sb_error *err)
{
	struct sb_guest_link *l = s->link;
	int r = 0;

	*out = NULL;
	(void)pthread_mutex_lock(&l->mu);
	while (r == 0 && !s->first && !l->dead && !sb_deadline_passed(d)) {
		sb_cond_wait_until(&l->cv, &l->mu, sb_deadline_min(d, sb_deadline_in(SLICE_MS)));
		r = sb_check_alive(call ? call->cancel : NULL, call ? call->deadline : SB_NEVER,
			"the guest", err);
	}
	if (r == 0 && s->first) {
		*out = s->first;
		s->first = s->first->next;
		if (!s->first)
			s->last = &s->first;
		(*out)->next = NULL;
		s->bytes -= (*out)->len + sizeof **out;
	} else if (r == 0 && l->dead) {
		r = sb_fail(err, SB_E_CLOSED, "the guest of session %s went away", l->session);
	}
	(void)pthread_mutex_unlock(&l->mu);
	return r;
}
