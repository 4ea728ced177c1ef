/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/message.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/file.h>

/* A pipe that polls writable takes this much without blocking. */
#define CHUNK 4096

static int
ready(int fd, short events, const struct sb_cancel *cancel, sb_deadline d, struct sb_error *err)
{
	for (;;) {
		struct pollfd p[2] = {
			{ .fd = fd, .events = events },
			{ .fd = sb_cancel_fd(cancel), .events = POLLIN },
		};
		int n = poll(p, 2, sb_deadline_poll_ms(d));
		int r;

		if (n < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
		if (n > 0 && p[0].revents)
			return 0;
		r = sb_check_alive(cancel, d, "talk with the other side", err);
		if (r < 0)
			return r;
	}
}

static ssize_t
push(int fd, const uint8_t *p, size_t len)
{
	ssize_t n = send(fd, p, len, MSG_DONTWAIT | MSG_NOSIGNAL);

	if (n < 0 && errno == ENOTSOCK)
		n = sb_file_write_nosig(fd, p, len < CHUNK ? len : CHUNK);
	return n;
}

int
sb_message_write(int fd, const void *data, size_t len, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err)
{
	const uint8_t *p = data;

	while (len) {
		ssize_t n;
		int r = ready(fd, POLLOUT, cancel, d, err);

		if (r < 0)
			return r;
		n = push(fd, p, len);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n < 0 && (errno == EPIPE || errno == ECONNRESET))
			return sb_fail(err, SB_E_CLOSED, "the other side is gone");
		if (n < 0)
			return sb_fail_errno(err, "write");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

ssize_t
sb_message_read(int fd, void *data, size_t len, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err)
{
	for (;;) {
		ssize_t n;
		int r = ready(fd, POLLIN, cancel, d, err);

		if (r < 0)
			return r;
		n = read(fd, data, len);
		if (n >= 0 || errno == ECONNRESET)
			return n < 0 ? 0 : n;
		if (errno != EINTR && errno != EAGAIN)
			return sb_fail_errno(err, "read");
	}
}

static int
read_full(int fd, uint8_t *p, size_t len, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err)
{
	while (len) {
		ssize_t n = sb_message_read(fd, p, len, cancel, d, err);

		if (n < 0)
			return (int)n;
		if (n == 0)
			return sb_fail(err, SB_E_CLOSED, "the other side is gone");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}

int
sb_message_send(int fd, const struct sb_buf *b, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_error *err)
{
	uint8_t head[4] = { (uint8_t)b->len, (uint8_t)(b->len >> 8), (uint8_t)(b->len >> 16),
		(uint8_t)(b->len >> 24) };
	int r = sb_buf_check(b, "a message", err);

	if (r == 0 && b->len > SB_MESSAGE_MAX)
		r = sb_fail(err, SB_E_LIMIT, "a message of %zu bytes is too large", b->len);
	if (r == 0)
		r = sb_message_write(fd, head, sizeof head, cancel, d, err);
	return r < 0 ? r : sb_message_write(fd, b->data, b->len, cancel, d, err);
}

int
sb_message_recv(int fd, size_t max, struct sb_buf *out, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err)
{
	uint8_t head[4];
	size_t len, got = 0;
	int r = read_full(fd, head, sizeof head, cancel, d, err);

	if (r < 0)
		return r;
	len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
	if (len > max)
		return sb_fail(err, SB_E_PROTO,
			"a message of %zu bytes is announced, at most %zu are allowed", len, max);
	sb_buf_reset(out);
	/* Memory follows what has come, not what was announced. */
	while (r == 0 && got < len) {
		size_t part = len - got < 65536 ? len - got : 65536;
		uint8_t *p = sb_buf_reserve(out, part);

		if (!p)
			return sb_buf_check(out, "a message", err);
		r = read_full(fd, p, part, cancel, d, err);
		sb_buf_grow(out, part);
		got += part;
	}
	return r;
}

void
sb_message_add_text(struct sb_buf *b, const char *s)
{
	sb_buf_add_bytes(b, s ? s : "", s ? strlen(s) : 0);
}

void
sb_message_add_texts(struct sb_buf *b, const char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	sb_buf_add_varint(b, n);
	for (size_t i = 0; i < n; i++)
		sb_message_add_text(b, v[i]);
}

char *
sb_message_text(struct sb_cursor *c)
{
	size_t len;
	const uint8_t *p = sb_cursor_bytes(c, SB_MESSAGE_MAX, &len);

	if (!p || c->bad || memchr(p, 0, len)) {
		c->bad = true;
		return NULL;
	}
	return strndup((const char *)p, len);
}

int
sb_message_texts(struct sb_cursor *c, size_t max, struct sb_strlist *out, struct sb_error *err)
{
	uint64_t n = sb_cursor_varint(c);

	if (c->bad || n > max)
		return sb_fail(err, SB_E_PROTO, "a list in a message is damaged or too long");
	for (uint64_t i = 0; i < n; i++) {
		sb_autofree char *s = sb_message_text(c);

		if (!s)
			return sb_fail(err, SB_E_PROTO, "a text in a message is damaged");
		sb_strlist_add(out, s);
	}
	return sb_strlist_check(out, err);
}
