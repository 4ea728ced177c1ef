/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/httphead.h>

#include <ctype.h>
#include <string.h>
#include <strings.h>

#define METHOD_MAX 32

struct text {
	const char *p;
	size_t len;
};

static bool
is_token(unsigned char c)
{
	return isascii(c) && (isalnum(c) || (c && strchr("!#$%&'*+-.^_`|~", c)));
}

static bool
same(struct text t, const char *word)
{
	return t.len == strlen(word) && strncasecmp(t.p, word, t.len) == 0;
}

static struct text
trim(struct text t)
{
	while (t.len > 0 && (t.p[0] == ' ' || t.p[0] == '\t')) {
		t.p++;
		t.len--;
	}
	while (t.len > 0 && (t.p[t.len - 1] == ' ' || t.p[t.len - 1] == '\t'))
		t.len--;
	return t;
}

static bool
parse_number(const char *s, size_t len, uint64_t max, uint64_t *out)
{
	uint64_t n = 0;

	if (len == 0 || len > 19)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (!isdigit((unsigned char)s[i]))
			return false;
		n = n * 10 + (uint64_t)(s[i] - '0');
	}
	*out = n;
	return n <= max;
}

bool
sb_httphead_parse_peer(const char *s, size_t len, struct sb_httphead_peer *out)
{
	struct sb_httphead_peer peer = { .port = 0 };
	const char *colon, *close = len > 0 && s[0] == '[' ? memchr(s, ']', len) : NULL;
	size_t host = len;
	uint64_t port = 0;

	if (len > 0 && s[0] == '[' && !close)
		return false;
	colon = close ? close + 1 : memchr(s, ':', len);
	if (colon && colon < s + len) {
		host = (size_t)(colon - s);
		if (*colon != ':' || !parse_number(colon + 1, len - host - 1, 65535, &port) ||
			port == 0)
			return false;
	}
	peer.port = (uint16_t)port;
	if (close) {
		if (!memchr(s + 1, ':', host) || !sb_netaddr_parse(s + 1, host - 2, &peer.addr))
			return false;
	} else if (!sb_netaddr_parse(s, host, &peer.addr) &&
		!sb_netname_check(s, host, peer.name)) {
		return false;
	}
	*out = peer;
	return true;
}

bool
sb_httphead_same_peer(const struct sb_httphead_peer *a, const struct sb_httphead_peer *b,
	uint16_t default_port)
{
	uint16_t pa = a->port ? a->port : default_port, pb = b->port ? b->port : default_port;

	if (pa != pb || strcmp(a->name, b->name) != 0)
		return false;
	return a->name[0] || sb_netaddr_equal(&a->addr, &b->addr);
}

/*
 * Whether the bytes so far can begin a request line; decided as early as possible, because other
 * protocols wait for an answer to theirs.
 */
static enum sb_httphead_state
first_line(const uint8_t *data, size_t len, size_t *line)
{
	const uint8_t *lf = memchr(data, '\n', len);
	size_t n = lf ? (size_t)(lf - data) : len, method = 0;

	/* Servers skip empty lines in front of a request. */
	if (len > 0 && (data[0] == '\r' || data[0] == '\n'))
		return SB_HTTPHEAD_BAD;
	while (method < n && is_token(data[method]))
		method++;
	if (method > METHOD_MAX || (method < n && (method == 0 || data[method] != ' ')) ||
		memchr(data, '\0', n))
		return SB_HTTPHEAD_OTHER;
	if (!lf)
		return len > SB_HTTPHEAD_MAX ? SB_HTTPHEAD_OTHER : SB_HTTPHEAD_MORE;
	*line = n;
	if (n > 0 && data[n - 1] == '\r')
		n--;
	for (size_t i = 0; i + 5 <= n; i++)
		if (memcmp(data + i, "HTTP/", 5) == 0)
			return SB_HTTPHEAD_DONE;
	/* HTTP/0.9 has no version. */
	for (size_t i = 0; i < 2; i++)
		if (method == (i ? 4u : 3u) && memcmp(data, i ? "POST" : "GET", method) == 0)
			return SB_HTTPHEAD_BAD;
	return SB_HTTPHEAD_OTHER;
}

static bool
bad(struct sb_httphead *h, const char *why)
{
	h->why = why;
	return false;
}

/* "METHOD SP target SP HTTP/1.x" */
static bool
parse_request(struct text line, struct sb_httphead *h)
{
	const char *sp = memchr(line.p, ' ', line.len);
	const char *end = line.p + line.len, *last = end - 9;
	const char *t = sp + 1, *slash;
	size_t n;

	if (end - t < 10 || memcmp(last, " HTTP/1.", 8) != 0 || (last[8] != '1' && last[8] != '0'))
		return bad(h, "not a request of HTTP/1");
	n = (size_t)(last - t);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)t[i] <= ' ' || (unsigned char)t[i] >= 0x7f)
			return bad(h, "the target has characters that do not belong there");
	if (same((struct text){ line.p, (size_t)(sp - line.p) }, "CONNECT")) {
		h->target = SB_HTTPHEAD_CONNECT;
		return (sb_httphead_parse_peer(t, n, &h->target_peer) && h->target_peer.port) ||
			bad(h, "CONNECT needs HOST:PORT");
	}
	if (t[0] == '/' || (n == 1 && t[0] == '*'))
		return true;
	h->target = SB_HTTPHEAD_ABSOLUTE;
	if (n < 8 || strncasecmp(t, "http://", 7) != 0)
		return bad(h, "only http:// URLs; use CONNECT for others");
	slash = t + 7;
	while (slash < last && *slash != '/' && *slash != '?')
		slash++;
	return sb_httphead_parse_peer(t + 7, (size_t)(slash - t - 7), &h->target_peer) ||
		bad(h, "the URL names no host");
}

static bool
parse_field(struct text name, struct text value, struct sb_httphead *h, unsigned *seen)
{
	if (same(name, "host")) {
		if (h->has_host)
			return bad(h, "two Host lines");
		h->has_host = true;
		return sb_httphead_parse_peer(value.p, value.len, &h->host) ||
			bad(h, "Host names no host");
	}
	if (same(name, "content-length")) {
		if (*seen & 1)
			return bad(h, "two Content-Length lines");
		*seen |= 1;
		return parse_number(value.p, value.len, INT64_MAX, &h->length) ||
			bad(h, "Content-Length is no number");
	}
	if (same(name, "transfer-encoding")) {
		if (*seen & 2)
			return bad(h, "two Transfer-Encoding lines");
		*seen |= 2;
		h->chunked = true;
		return same(value, "chunked") || bad(h, "Transfer-Encoding is not chunked");
	}
	if (same(name, "upgrade")) {
		if (*seen & 4)
			return bad(h, "two Upgrade lines");
		*seen |= 4;
		/* h2c would let the rest of the connection name any host. */
		h->upgrade = same(value, "websocket");
	}
	return true;
}

static bool
parse_line(struct text line, struct sb_httphead *h, unsigned *seen)
{
	size_t n = 0;

	while (n < line.len && is_token((unsigned char)line.p[n]))
		n++;
	if (n == 0 || n == line.len || line.p[n] != ':')
		return bad(h, "a line without a name");
	for (size_t i = n; i < line.len; i++)
		if (((unsigned char)line.p[i] < ' ' && line.p[i] != '\t') || line.p[i] == 0x7f)
			return bad(h, "a control character");
	return parse_field((struct text){ line.p, n },
		trim((struct text){ line.p + n + 1, line.len - n - 1 }), h, seen);
}

/* The line at `at` without its CRLF; false when there is none yet or it ends otherwise. */
static bool
next_line(const uint8_t *data, size_t len, size_t at, struct text *out, bool *whole)
{
	const uint8_t *lf = memchr(data + at, '\n', len - at);

	*whole = lf != NULL;
	if (!lf || lf == data + at || lf[-1] != '\r')
		return false;
	*out = (struct text){ (const char *)data + at, (size_t)(lf - data) - at - 1 };
	return !memchr(out->p, '\r', out->len) && !memchr(out->p, '\0', out->len);
}

static enum sb_httphead_state
read_fields(const uint8_t *data, size_t len, size_t at, struct sb_httphead *h)
{
	unsigned seen = 0;

	for (size_t n = 0;; n++) {
		struct text line = { 0 };
		bool whole;

		if (!next_line(data, len, at, &line, &whole)) {
			h->why = "lines must end with CR LF";
			return whole ? SB_HTTPHEAD_BAD : SB_HTTPHEAD_MORE;
		}
		at += line.len + 2;
		if (line.len == 0)
			break;
		h->why = "too many lines";
		if (n >= SB_HTTPHEAD_FIELDS || !parse_line(line, h, &seen))
			return SB_HTTPHEAD_BAD;
	}
	if ((seen & 3) == 3) {
		h->why = "both Content-Length and Transfer-Encoding";
		return SB_HTTPHEAD_BAD;
	}
	h->upgrade = h->upgrade && !h->chunked && h->length == 0;
	h->len = at;
	h->why = NULL;
	return SB_HTTPHEAD_DONE;
}

enum sb_httphead_state
sb_httphead_read(const uint8_t *data, size_t len, struct sb_httphead *out)
{
	struct sb_httphead h = { .why = "no request line of HTTP/1" };
	size_t line = 0;
	enum sb_httphead_state s = first_line(data, len, &line);
	struct text request;
	bool whole;

	if (s == SB_HTTPHEAD_DONE) {
		s = SB_HTTPHEAD_BAD;
		h.why = "lines must end with CR LF";
		if (next_line(data, len, 0, &request, &whole) && parse_request(request, &h))
			s = read_fields(data, len, line + 1, &h);
		if (s == SB_HTTPHEAD_MORE && len >= SB_HTTPHEAD_MAX) {
			s = SB_HTTPHEAD_BAD;
			h.why = "the head is too long";
		}
	}
	*out = h;
	return s;
}

static bool
dropped(struct text name, bool upgrade)
{
	static const char *const hop[] = { "keep-alive", "proxy-connection", "proxy-authorization",
		"proxy-authenticate" };

	if (same(name, "connection") || same(name, "upgrade"))
		return !upgrade;
	for (size_t i = 0; i < sizeof hop / sizeof hop[0]; i++)
		if (same(name, hop[i]))
			return true;
	return false;
}

static void
write_request(const struct sb_httphead *h, struct text line, struct sb_buf *out)
{
	const char *end = line.p + line.len, *path = line.p;

	if (h->target != SB_HTTPHEAD_ABSOLUTE) {
		sb_buf_add(out, line.p, line.len);
		return;
	}
	path = (const char *)memchr(line.p, ' ', line.len) + 1;
	sb_buf_add(out, line.p, (size_t)(path - line.p));
	path += 7;
	while (path < end && *path != '/' && *path != '?' && *path != ' ')
		path++;
	if (path < end && *path != '/')
		sb_buf_add_char(out, '/');
	sb_buf_add(out, path, (size_t)(end - path));
}

void
sb_httphead_write(const struct sb_httphead *h, const uint8_t *data, struct sb_buf *out)
{
	struct text line;
	size_t at = 0;
	bool whole;

	while (next_line(data, h->len, at, &line, &whole) && line.len > 0) {
		const char *colon = memchr(line.p, ':', line.len);

		if (at == 0)
			write_request(h, line, out);
		else if (colon &&
			!dropped((struct text){ line.p, (size_t)(colon - line.p) }, h->upgrade))
			sb_buf_add(out, line.p, line.len);
		else
			goto next;
		sb_buf_add_str(out, "\r\n");
	next:
		at += line.len + 2;
	}
	if (!h->upgrade)
		sb_buf_add_str(out, "Connection: close\r\n");
	sb_buf_add_str(out, "\r\n");
}
