/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/wire/proto-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/path.h>
#include <base/strlist.h>

#define PATH_LIMIT (1u << 20)

int
sb_proto_done(const struct sb_cursor *c, const char *what, struct sb_error *err)
{
	if (c->bad || sb_cursor_left(c))
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged %s message", what);
	return 0;
}

void
sb_proto_take_into(struct sb_cursor *c, void *out, size_t len)
{
	const uint8_t *p = sb_cursor_take(c, len);

	if (p)
		memcpy(out, p, len);
	else
		memset(out, 0, len);
}

char *
sb_proto_take_text(struct sb_cursor *c, size_t max)
{
	size_t n;
	const uint8_t *p = sb_cursor_bytes(c, max, &n);
	char *s;

	if (!p || memchr(p, 0, n)) {
		c->bad = true;
		return NULL;
	}
	s = malloc(n + 1);
	if (!s) {
		c->bad = true;
		return NULL;
	}
	memcpy(s, p, n);
	s[n] = 0;
	return s;
}

char *
sb_proto_take_path(struct sb_cursor *c)
{
	char *s = sb_proto_take_text(c, PATH_LIMIT);

	if (s && sb_path_check(s, strlen(s), NULL) < 0) {
		free(s);
		c->bad = true;
		return NULL;
	}
	return s;
}

void
sb_proto_hello_encode(const struct sb_hello *h, struct sb_buf *b)
{
	sb_buf_add_u32(b, h->version);
	sb_buf_add_u32(b, h->min_version);
	sb_buf_add_u32(b, h->features);
	sb_buf_add_bytes(b, h->software, strlen(h->software));
}

int
sb_proto_hello_decode(const uint8_t *p, size_t len, struct sb_hello *out, struct sb_error *err)
{
	struct sb_cursor c;
	const uint8_t *text;
	size_t n;

	sb_cursor_init(&c, p, len);
	memset(out, 0, sizeof *out);
	out->version = sb_cursor_u32(&c);
	out->min_version = sb_cursor_u32(&c);
	out->features = sb_cursor_u32(&c);
	text = sb_cursor_bytes(&c, sizeof out->software - 1, &n);
	if (text)
		memcpy(out->software, text, n);
	/* A later version may send more behind what we know. */
	if (c.bad)
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged greeting");
	return 0;
}

void
sb_proto_paths_encode(const char *const *v, size_t n, struct sb_buf *b)
{
	sb_buf_add_varint(b, n);
	for (size_t i = 0; i < n; i++)
		sb_buf_add_bytes(b, v[i], strlen(v[i]));
}

int
sb_proto_paths_decode(const uint8_t *p, size_t len, struct sb_strlist *out, struct sb_error *err)
{
	struct sb_cursor c;
	uint64_t n;
	int r;

	sb_cursor_init(&c, p, len);
	n = sb_cursor_varint(&c);
	for (uint64_t i = 0; i < n && !c.bad && !out->failed; i++) {
		sb_autofree char *path = sb_proto_take_path(&c);

		if (path)
			sb_strlist_add(out, path);
	}
	r = sb_strlist_check(out, err);
	return r < 0 ? r : sb_proto_done(&c, "path list", err);
}
