/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh-agent.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <base/cursor.h>
#include <sb/log.h>

/*
 * Messages: uint32 length, then a type byte and its fields; strings are uint32 length and bytes,
 * all big-endian.
 */
enum {
	AGENT_REQUEST_IDENTITIES = 11,
	AGENT_IDENTITIES_ANSWER = 12,
	AGENT_SIGN_REQUEST = 13,
	AGENT_SIGN_RESPONSE = 14,
};

#define ANSWER_MAX (1u << 20)
#define KEYS_MAX 256

static void
add_be32(struct sb_buf *b, size_t v)
{
	uint8_t be[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v };

	sb_buf_add(b, be, sizeof be);
}

static void
add_string(struct sb_buf *b, const void *data, size_t len)
{
	add_be32(b, len);
	sb_buf_add(b, data, len);
}

static uint32_t
take_be32(struct sb_cursor *c)
{
	const uint8_t *p = sb_cursor_take(c, 4);

	return p ? (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3] : 0;
}

static const uint8_t *
take_string(struct sb_cursor *c, size_t *len)
{
	*len = take_be32(c);
	return sb_cursor_take(c, *len);
}

/* Moves `len` bytes in or out, waiting until `d`. */
static int
move(struct sb_ssh_agent *a, bool out, uint8_t *data, size_t len, sb_deadline d,
	struct sb_error *err)
{
	while (len > 0) {
		struct pollfd p[2] = { { .fd = a->fd, .events = out ? POLLOUT : POLLIN },
			{ .fd = sb_cancel_fd(a->cancel), .events = POLLIN } };
		ssize_t n = out ? send(a->fd, data, len, MSG_DONTWAIT | MSG_NOSIGNAL) :
				  recv(a->fd, data, len, MSG_DONTWAIT);
		int r;

		if (n > 0) {
			data += n;
			len -= (size_t)n;
			continue;
		}
		if (n == 0)
			return sb_fail(err, SB_E_CLOSED, "ssh-agent closed the connection");
		if (errno != EAGAIN && errno != EINTR)
			return sb_fail_errno(err, "ssh-agent");
		r = sb_check_alive(a->cancel, d, "waiting for ssh-agent", err);
		if (r < 0)
			return r;
		(void)poll(p, 2, sb_deadline_poll_ms(d));
	}
	return 0;
}

/*
 * Sends `ask` (type and fields) and reads the answer, which must be of type `want`, into `answer`.
 */
static int
exchange(struct sb_ssh_agent *a, const struct sb_buf *ask, uint8_t want, sb_deadline d,
	struct sb_buf *answer, struct sb_error *err)
{
	uint8_t head[4] = { (uint8_t)(ask->len >> 24), (uint8_t)(ask->len >> 16),
		(uint8_t)(ask->len >> 8), (uint8_t)ask->len };
	struct sb_cursor c;
	uint8_t *at;
	size_t len;
	int r;

	r = move(a, true, head, sizeof head, d, err);
	if (r >= 0)
		r = move(a, true, ask->data, ask->len, d, err);
	if (r >= 0)
		r = move(a, false, head, sizeof head, d, err);
	if (r < 0)
		return r;
	sb_cursor_init(&c, head, sizeof head);
	len = take_be32(&c);
	if (len < 1 || len > ANSWER_MAX)
		return sb_fail(err, SB_E_PROTO, "ssh-agent answers with %zu bytes", len);
	at = sb_buf_reserve(answer, len);
	if (!at)
		return sb_buf_check(answer, "ssh-agent's answer", err);
	r = move(a, false, at, len, d, err);
	if (r < 0)
		return r;
	sb_buf_grow(answer, len);
	if (answer->data[0] != want)
		return sb_fail(err, SB_E_DENIED, "ssh-agent refused (type %u)", answer->data[0]);
	return 0;
}

static int
list_keys(struct sb_ssh_agent *a, sb_deadline d, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf ask;
	sb_auto(sb_buf) struct sb_buf answer;
	struct sb_cursor c;
	uint32_t n;
	int r;

	sb_buf_init(&ask, 64);
	sb_buf_init(&answer, ANSWER_MAX);
	sb_buf_add_u8(&ask, AGENT_REQUEST_IDENTITIES);
	r = exchange(a, &ask, AGENT_IDENTITIES_ANSWER, d, &answer, err);
	if (r < 0)
		return r;
	sb_cursor_init(&c, answer.data + 1, answer.len - 1);
	n = take_be32(&c);
	if (n > KEYS_MAX)
		n = KEYS_MAX;
	a->keys = calloc(n ? n : 1, sizeof *a->keys);
	if (!a->keys)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (uint32_t i = 0; i < n; i++) {
		struct sb_ssh_agent_key *k = &a->keys[i];
		const uint8_t *blob, *comment;
		size_t comment_len;

		blob = take_string(&c, &k->blob_len);
		comment = take_string(&c, &comment_len);
		if (c.bad)
			return sb_fail(err, SB_E_PROTO, "ssh-agent's list of keys is malformed");
		k->blob = malloc(k->blob_len + 1);
		k->comment = malloc(256);
		a->n = i + 1;
		if (!k->blob || !k->comment)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		memcpy(k->blob, blob, k->blob_len);
		(void)sb_escape((const char *)comment, comment_len, k->comment, 256);
	}
	return 0;
}

int
sb_ssh_agent_open(struct sb_ssh_agent *a, const char *path, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_error *err)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int r;

	memset(a, 0, sizeof *a);
	a->fd = -1;
	a->cancel = cancel;
	if (strlen(path) >= sizeof sun.sun_path)
		return sb_fail(err, SB_E_INVAL, "the path of the ssh-agent socket is too long: %s",
			path);
	memcpy(sun.sun_path, path, strlen(path) + 1);
	a->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (a->fd < 0)
		return sb_fail_errno(err, "socket");
	if (connect(a->fd, (struct sockaddr *)&sun, sizeof sun) < 0) {
		sb_fail_errno(err, "ssh-agent at %s", path);
		sb_ssh_agent_close(a);
		return SB_E_NOTFOUND;
	}
	r = list_keys(a, d, err);
	if (r < 0)
		sb_ssh_agent_close(a);
	return r;
}

void
sb_ssh_agent_close(struct sb_ssh_agent *a)
{
	for (size_t i = 0; i < a->n; i++) {
		free(a->keys[i].blob);
		free(a->keys[i].comment);
	}
	free(a->keys);
	if (a->fd >= 0)
		(void)close(a->fd);
	memset(a, 0, sizeof *a);
	a->fd = -1;
}

int
sb_ssh_agent_sign(struct sb_ssh_agent *a, const struct sb_ssh_agent_key *key, const void *data,
	size_t len, uint32_t flags, sb_deadline d, struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf ask;
	sb_auto(sb_buf) struct sb_buf answer;
	struct sb_cursor c;
	const uint8_t *sig;
	size_t n;
	int r;

	sb_buf_init(&ask, ANSWER_MAX);
	sb_buf_init(&answer, ANSWER_MAX);
	sb_buf_add_u8(&ask, AGENT_SIGN_REQUEST);
	add_string(&ask, key->blob, key->blob_len);
	add_string(&ask, data, len);
	add_be32(&ask, flags);
	r = sb_buf_check(&ask, "request to ssh-agent", err);
	if (r >= 0)
		r = exchange(a, &ask, AGENT_SIGN_RESPONSE, d, &answer, err);
	if (r < 0)
		return r;
	sb_cursor_init(&c, answer.data + 1, answer.len - 1);
	sig = take_string(&c, &n);
	sb_cursor_init(&c, sig ? sig : answer.data, sig ? n : 0);
	(void)take_string(&c, &n);
	sig = take_string(&c, &n);
	if (!sig || c.bad)
		return sb_fail(err, SB_E_PROTO, "ssh-agent's signature is malformed");
	sb_buf_add(out, sig, n);
	return sb_buf_check(out, "signature", err);
}
