/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/ssh/sshwire.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/cursor.h>

#define ID_MAX 1023u
#define PORT_MAX 65535u
#define SIGNAL_MAX 64u
#define CODE_MAX 255u
#define REASON_MAX 1024u

/* What each frame may hold; kinds count from 1 when there are any. */
static const struct rule {
	uint8_t what;
	uint32_t id, kind, x, y;
	size_t a, b;
	bool b_list; /* texts, each ended by NUL */
} rules[] = {
	{ SB_SSHWIRE_LOGIN, 0, SB_SSHWIRE_KEY, 0, 0, SB_SSHWIRE_USER_MAX, SB_SSHWIRE_SECRET_MAX,
		false },
	{ SB_SSHWIRE_START, ID_MAX, SB_SSHWIRE_AGENT, SB_SSHWIRE_CELLS_MAX, SB_SSHWIRE_CELLS_MAX,
		SB_SSHWIRE_TEXT_MAX, SB_SSHWIRE_TEXT_MAX / 2, true },
	{ SB_SSHWIRE_DIAL, ID_MAX, 0, PORT_MAX, 0, 255, 0, false },
	{ SB_SSHWIRE_SIGNAL, ID_MAX, 0, SIGNAL_MAX, 0, 0, 0, false },
	{ SB_SSHWIRE_CLOSE, ID_MAX, 0, 0, 0, 0, 0, false },
	{ SB_SSHWIRE_CONFIG, 0, ID_MAX, 86400, 0, SB_SSHWIRE_SECRET_MAX, 0, false },
	{ SB_SSHWIRE_ANSWER, 0, 0, 1, 0, REASON_MAX, 0, false },
	{ SB_SSHWIRE_EXIT, ID_MAX, 0, CODE_MAX, 0, REASON_MAX, 0, false },
};

static bool
holds(const struct rule *r, const struct sb_sshwire_frame *f)
{
	if (f->id > r->id || f->kind > r->kind || (r->kind > 0) != (f->kind > 0) || f->x > r->x ||
		f->y > r->y || f->a_len > r->a || f->b_len > r->b)
		return false;
	if (f->what == SB_SSHWIRE_START && (f->x > 0) != (f->y > 0))
		return false;
	if (memchr(f->a, '\0', f->a_len))
		return false;
	return r->b_list ? f->b_len == 0 || f->b[f->b_len - 1] == '\0' :
			   !memchr(f->b, '\0', f->b_len);
}

int
sb_sshwire_parse(const void *data, size_t len, struct sb_sshwire_frame *f, struct sb_error *err)
{
	struct sb_cursor c;

	sb_cursor_init(&c, data, len);
	*f = (struct sb_sshwire_frame){ .what = sb_cursor_u8(&c) };
	f->id = sb_cursor_u32(&c);
	f->kind = sb_cursor_u32(&c);
	f->x = sb_cursor_u32(&c);
	f->y = sb_cursor_u32(&c);
	f->a_len = sb_cursor_u32(&c);
	f->a = sb_cursor_take(&c, c.bad ? 0 : f->a_len);
	f->b_len = sb_cursor_u32(&c);
	f->b = sb_cursor_take(&c, c.bad ? 0 : f->b_len);
	if (!c.bad && sb_cursor_left(&c) == 0)
		for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
			if (rules[i].what == f->what && holds(&rules[i], f))
				return 0;
	return sb_fail(err, SB_E_PROTO, "frame %u of %zu bytes is not what it may be", f->what,
		len);
}

void
sb_sshwire_put(const struct sb_sshwire_frame *f, struct sb_buf *out)
{
	sb_buf_add_u8(out, f->what);
	sb_buf_add_u32(out, f->id);
	sb_buf_add_u32(out, f->kind);
	sb_buf_add_u32(out, f->x);
	sb_buf_add_u32(out, f->y);
	sb_buf_add_u32(out, (uint32_t)f->a_len);
	sb_buf_add(out, f->a, f->a_len);
	sb_buf_add_u32(out, (uint32_t)f->b_len);
	sb_buf_add(out, f->b, f->b_len);
}

char *
sb_sshwire_text(const uint8_t *p, size_t len)
{
	char *s = malloc(len + 1);

	if (s) {
		memcpy(s, p, len);
		s[len] = '\0';
	}
	return s;
}

union control {
	struct cmsghdr head;
	char room[CMSG_SPACE(SB_SSHWIRE_FDS_MAX * sizeof(int))];
};

int
sb_sshwire_send(int fd, const struct sb_sshwire_frame *f, const int *fds, size_t n_fds,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	union control control = { 0 };
	struct iovec v;
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	ssize_t n;
	int r;

	sb_buf_init(&b, SB_SSHWIRE_MAX);
	sb_sshwire_put(f, &b);
	r = sb_buf_check(&b, "frame", err);
	if (r < 0)
		return r;
	v = (struct iovec){ b.data, b.len };
	if (n_fds > 0 && n_fds <= SB_SSHWIRE_FDS_MAX) {
		struct cmsghdr *h = &control.head;

		m.msg_control = &control;
		m.msg_controllen = CMSG_SPACE(n_fds * sizeof(int));
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(n_fds * sizeof(int));
		memcpy(CMSG_DATA(h), fds, n_fds * sizeof(int));
	}
	do
		n = sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	explicit_bzero(b.data, b.len);
	if (n < 0 && errno == EAGAIN)
		return sb_fail(err, SB_E_LIMIT, "the other side does not read");
	return n < 0 ? sb_fail(err, SB_E_CLOSED, "the other side is gone") : 0;
}

/* Keeps at most `max` of those that came. */
static void
take_fds(struct msghdr *m, int *fds, size_t max, size_t *n)
{
	struct cmsghdr *h = CMSG_FIRSTHDR(m);
	int got[SB_SSHWIRE_FDS_MAX];
	size_t count = 0;

	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS)
		count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	if (count > 0)
		memcpy(got, CMSG_DATA(h), count * sizeof(int));
	for (size_t i = 0; i < count; i++) {
		if (fds && *n < max)
			fds[(*n)++] = got[i];
		else
			(void)close(got[i]);
	}
}

int
sb_sshwire_receive(int fd, struct sb_buf *room, struct sb_sshwire_frame *out, int *fds,
	size_t *n_fds, struct sb_error *err)
{
	union control control;
	struct iovec v;
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	size_t count = 0;
	ssize_t n;
	int r;

	sb_buf_reset(room);
	v = (struct iovec){ sb_buf_reserve(room, SB_SSHWIRE_MAX), SB_SSHWIRE_MAX };
	if (!v.iov_base)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return sb_fail(err, SB_E_CLOSED, "the other side is gone");
	take_fds(&m, fds, SB_SSHWIRE_FDS_MAX, &count);
	sb_buf_grow(room, (size_t)n);
	r = m.msg_flags & MSG_TRUNC ?
		sb_fail(err, SB_E_PROTO, "a frame is longer than %u bytes", SB_SSHWIRE_MAX) :
		sb_sshwire_parse(room->data, room->len, out, err);
	if (r < 0)
		while (count > 0)
			(void)close(fds[--count]);
	if (n_fds)
		*n_fds = count;
	return r;
}
