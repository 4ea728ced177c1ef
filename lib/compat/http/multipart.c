/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/http/multipart.h>

#include <stdbool.h>
#include <string.h>
#include <strings.h>

#include <base/buf.h>
#include <base/str.h>

#define BOUNDARY_MAX 70
#define KEEP_MAX (SB_MULTIPART_HEADER_MAX + 65536)

enum state {
	BEFORE,  /* the first boundary */
	BEHIND,  /* a boundary: its line's end, or "--" */
	HEADER,  /* of a part */
	CONTENT, /* of a part */
	AFTER,   /* the last boundary; what comes is nobody's */
};

struct sb_multipart {
	const struct sb_multipart_ops *ops;
	void *arg;
	enum state state;
	unsigned parts;
	char mark[BOUNDARY_MAX + 5]; /* CR LF -- boundary */
	size_t mark_len;
	struct sb_buf keep; /* what has not been understood yet */
};

/* The value of a parameter: after `name=`, quoted or up to `;`. False: there is none. */
static bool
parameter(const char *s, const char *name, struct sb_buf *out)
{
	size_t n = strlen(name);

	while ((s = strchr(s, ';'))) {
		s += 1 + strspn(s + 1, " \t");
		if (strncasecmp(s, name, n) != 0 || s[n] != '=') {
			/* A quoted value may hold a semicolon. */
			s += strcspn(s, ";\"");
			if (*s == '"') {
				for (s++; *s && *s != '"'; s++)
					if (*s == '\\' && s[1])
						s++;
			}
			continue;
		}
		s += n + 1;
		if (*s != '"') {
			sb_buf_add(out, s, strcspn(s, "; \t"));
			return !out->failed;
		}
		for (s++; *s && *s != '"'; s++) {
			if (*s == '\\' && (s[1] == '"' || s[1] == '\\'))
				s++;
			sb_buf_add_char(out, *s);
		}
		return *s == '"' && !out->failed;
	}
	return false;
}

struct sb_multipart *
sb_multipart_new(const char *type, const struct sb_multipart_ops *ops, void *arg,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_multipart *m;

	sb_buf_init(&b, BOUNDARY_MAX);
	if (!type || strncasecmp(type, "multipart/", 10) != 0 || !parameter(type, "boundary", &b) ||
		b.len == 0 || strlen((char *)b.data) != b.len) {
		(void)sb_fail(err, SB_E_INVAL, "the content type has no boundary of 1 to %d bytes",
			BOUNDARY_MAX);
		return NULL;
	}
	m = calloc(1, sizeof *m);
	if (!m) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	m->ops = ops;
	m->arg = arg;
	m->mark_len = (size_t)snprintf(m->mark, sizeof m->mark, "\r\n--%s", (char *)b.data);
	sb_buf_init(&m->keep, KEEP_MAX + 2);
	/* As if a line had ended before the body: the first boundary needs none. */
	sb_buf_add_str(&m->keep, "\r\n");
	return m;
}

void
sb_multipart_free(struct sb_multipart *m)
{
	if (!m)
		return;
	sb_buf_free(&m->keep);
	free(m);
}

/* %22, %0D and %0A, and nothing else, in place. */
static void
unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (strncasecmp(s, "%22", 3) == 0 || strncasecmp(s, "%0d", 3) == 0 ||
			strncasecmp(s, "%0a", 3) == 0) {
			*to++ = (char)(sb_str_hex_digit(s[1]) * 16 + sb_str_hex_digit(s[2]));
			s += 3;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* The lines of a part's header, which end in CR LF each. */
static int
begin_part(struct sb_multipart *m, char *lines, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf name, file;
	struct sb_multipart_part part = { "", "", "" };

	sb_buf_init(&name, SB_MULTIPART_HEADER_MAX);
	sb_buf_init(&file, SB_MULTIPART_HEADER_MAX);
	if (++m->parts > SB_MULTIPART_PARTS_MAX)
		return sb_fail(err, SB_E_LIMIT, "the body has more than %d parts",
			SB_MULTIPART_PARTS_MAX);
	for (char *line = lines; *line;) {
		char *end = strstr(line, "\r\n");

		if (end)
			*end = '\0';
		if (strncasecmp(line, "content-disposition:", 20) == 0) {
			(void)parameter(line, "name", &name);
			(void)parameter(line, "filename", &file);
		} else if (strncasecmp(line, "content-type:", 13) == 0) {
			part.type = line + 13 + strspn(line + 13, " \t");
		}
		line = end ? end + 2 : line + strlen(line);
	}
	if (name.failed || file.failed)
		return sb_fail(err, SB_E_INVAL, "a part's header is too long");
	unescape((char *)name.data);
	unescape((char *)file.data);
	part.name = (char *)name.data;
	part.filename = (char *)file.data;
	return m->ops->begin(&part, m->arg, err);
}

/* Each returns 1 when it got on, 0 when it needs more bytes. */

static int
before(struct sb_multipart *m)
{
	uint8_t *at = memmem(m->keep.data, m->keep.len, m->mark, m->mark_len);

	if (at) {
		sb_buf_consume(&m->keep, (size_t)(at - m->keep.data) + m->mark_len);
		m->state = BEHIND;
		return 1;
	}
	if (m->keep.len >= m->mark_len)
		sb_buf_consume(&m->keep, m->keep.len - m->mark_len + 1);
	return 0;
}

static int
behind(struct sb_multipart *m, struct sb_error *err)
{
	size_t blank = 0;

	if (m->keep.len < 2)
		return 0;
	if (memcmp(m->keep.data, "--", 2) == 0) {
		m->state = AFTER;
		return 1;
	}
	while (blank < m->keep.len && (m->keep.data[blank] == ' ' || m->keep.data[blank] == '\t'))
		blank++;
	if (blank > 1000)
		return sb_fail(err, SB_E_INVAL, "a boundary's line does not end");
	if (m->keep.len < blank + 2)
		return 0;
	if (memcmp(m->keep.data + blank, "\r\n", 2) != 0)
		return sb_fail(err, SB_E_INVAL, "a boundary is followed by something else");
	/* The line's end stays: it is the one before the empty line of an empty header. */
	sb_buf_consume(&m->keep, blank);
	m->state = HEADER;
	return 1;
}

static int
header(struct sb_multipart *m, struct sb_error *err)
{
	uint8_t *end = memmem(m->keep.data, m->keep.len, "\r\n\r\n", 4);
	size_t len;
	int r;

	if (!end)
		return m->keep.len > SB_MULTIPART_HEADER_MAX ?
			sb_fail(err, SB_E_INVAL, "a part's header is longer than %d bytes",
				SB_MULTIPART_HEADER_MAX) :
			0;
	len = (size_t)(end - m->keep.data);
	if (len > SB_MULTIPART_HEADER_MAX || memchr(m->keep.data, '\0', len))
		return sb_fail(err, SB_E_INVAL, "a part's header is too long or has a NUL");
	*end = '\0';
	r = begin_part(m, len >= 2 ? (char *)m->keep.data + 2 : (char *)end, err);
	if (r < 0)
		return r;
	sb_buf_consume(&m->keep, len + 2);
	/* What is left begins with the empty line's end, which a boundary may follow at once. */
	sb_buf_consume(&m->keep, 2);
	m->state = CONTENT;
	return 1;
}

static int
content(struct sb_multipart *m, struct sb_error *err)
{
	uint8_t *at = memmem(m->keep.data, m->keep.len, m->mark, m->mark_len);
	size_t len = at                    ? (size_t)(at - m->keep.data) :
		m->keep.len >= m->mark_len ? m->keep.len - m->mark_len + 1 :
					     0;
	int r = len > 0 ? m->ops->data(m->keep.data, len, m->arg, err) : 0;

	if (r < 0)
		return r;
	sb_buf_consume(&m->keep, len);
	if (!at)
		return 0;
	sb_buf_consume(&m->keep, m->mark_len);
	m->state = BEHIND;
	r = m->ops->end(m->arg, err);
	return r < 0 ? r : 1;
}

static int
step(struct sb_multipart *m, struct sb_error *err)
{
	switch (m->state) {
	case BEFORE: return before(m);
	case BEHIND: return behind(m, err);
	case HEADER: return header(m, err);
	case CONTENT: return content(m, err);
	case AFTER: break;
	}
	sb_buf_reset(&m->keep);
	return 0;
}

int
sb_multipart_feed(struct sb_multipart *m, const void *data, size_t len, struct sb_error *err)
{
	const uint8_t *p = data;
	int r = 0;

	while (len > 0 && r >= 0) {
		size_t n = KEEP_MAX - m->keep.len;

		n = n < len ? n : len;
		sb_buf_add(&m->keep, p, n);
		r = sb_buf_check(&m->keep, "part", err);
		p += n;
		len -= n;
		while (r >= 0 && (r = step(m, err)) == 1)
			;
	}
	return r < 0 ? r : 0;
}

int
sb_multipart_finish(struct sb_multipart *m, struct sb_error *err)
{
	return m->state == AFTER ?
		0 :
		sb_fail(err, SB_E_INVAL, "the body ends before its last boundary");
}
