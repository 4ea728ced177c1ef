/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/codec/pack-strict.h>

#include <string.h>

#include <sb/log.h>

#define BLOCK 512u
#define PAX_MAX (256u << 10) /* a path of 64 KiB, and our attributes */
#define AT_SIZE 124
#define AT_TYPE 156

static const char *const ours[] = {
	"path",
	"size",
	"hdrcharset",
	"SCHILY.xattr.user.sbsync.kind",
	"SCHILY.xattr.user.sbsync.size",
	"SCHILY.xattr.user.sbsync.base",
	"SCHILY.xattr.user.sbsync.offset",
};

void
sb_pack_strict_init(struct sb_pack_strict *s)
{
	*s = (struct sb_pack_strict){ 0 };
	sb_buf_init(&s->pax, PAX_MAX);
}

void
sb_pack_strict_free(struct sb_pack_strict *s)
{
	sb_buf_free(&s->pax);
}

static int
refuse(const char *what, const uint8_t *name, size_t len, struct sb_error *err)
{
	char shown[100];

	return sb_fail(err, SB_E_PROTO, "tar stream: %s%s", what,
		sb_escape((const char *)name, len < 60 ? len : 60, shown, sizeof shown));
}

static bool
decimal(const uint8_t *p, size_t len, uint64_t *out)
{
	uint64_t v = 0;

	for (size_t i = 0; i < len; i++) {
		if (p[i] < '0' || p[i] > '9' || v > (UINT64_MAX >> 1) / 10)
			return false;
		v = v * 10 + (uint64_t)(p[i] - '0');
	}
	*out = v;
	return len > 0;
}

/* One record, "LENGTH KEY=VALUE\n", at the beginning of `p`; returns its length. */
static int
take_record(struct sb_pack_strict *s, const uint8_t *p, size_t left, struct sb_error *err)
{
	const uint8_t *space = memchr(p, ' ', left < 20 ? left : 20), *key, *eq;
	uint64_t len;
	bool known = false;

	if (!space || !decimal(p, (size_t)(space - p), &len) || len > left ||
		len < (uint64_t)(space - p) + 4 || p[len - 1] != '\n')
		return refuse("a damaged pax record", p, 0, err);
	key = space + 1;
	eq = memchr(key, '=', (size_t)(p + len - key));
	if (!eq)
		return refuse("a damaged pax record", p, 0, err);
	for (size_t i = 0; i < sizeof ours / sizeof ours[0] && !known; i++)
		known = strlen(ours[i]) == (size_t)(eq - key) &&
			memcmp(ours[i], key, (size_t)(eq - key)) == 0;
	if (!known)
		return refuse("a pax record that is not ours: ", key, (size_t)(eq - key), err);
	if ((size_t)(eq - key) == 4 && memcmp(key, "size", 4) == 0) {
		if (!decimal(eq + 1, (size_t)(p + len - 1 - (eq + 1)), &s->size))
			return refuse("a damaged pax record", p, 0, err);
		s->has_size = true;
	}
	return (int)len;
}

static int
take_pax(struct sb_pack_strict *s, struct sb_error *err)
{
	size_t at = 0;

	while (at < s->pax.len) {
		int n = take_record(s, s->pax.data + at, s->pax.len - at, err);

		if (n < 0)
			return n;
		at += (size_t)n;
	}
	sb_buf_reset(&s->pax);
	return 0;
}

/*
 * The size field: octal digits, ended by a blank, a NUL or the field; or, marked by the first bit,
 * a big-endian number, which is how 8 GiB and more are written.
 */
static bool
number(const uint8_t *p, size_t len, uint64_t *out)
{
	uint64_t v = 0;
	size_t i = 0;

	if (p[0] == 0x80) {
		for (i = 1; i < len; i++) {
			if (v >> 55)
				return false;
			v = v << 8 | p[i];
		}
		*out = v;
		return true;
	}
	for (; i < len && p[i] >= '0' && p[i] <= '7'; i++)
		v = v << 3 | (uint64_t)(p[i] - '0');
	*out = v;
	return i > 0 && (i == len || p[i] == ' ' || p[i] == 0);
}

static int
take_header(struct sb_pack_strict *s, struct sb_error *err)
{
	static const uint8_t zeros[BLOCK];
	uint8_t type = s->head[AT_TYPE];
	uint64_t size;

	if (memcmp(s->head, zeros, BLOCK) == 0)
		return 0; /* of the end; the reader sees to it that nothing follows */
	if (type != '0' && type != 'x')
		return refuse("an entry that is neither a plain file nor its pax header", zeros, 0,
			err);
	if (!number(s->head + AT_SIZE, 12, &size))
		return refuse("a header without a size", zeros, 0, err);
	if (type == 'x') {
		if (size > PAX_MAX || !size)
			return refuse("a pax header of impossible size", zeros, 0, err);
		s->pax_left = size;
		s->skip = -size % BLOCK;
		return 0;
	}
	if (s->has_size)
		size = s->size;
	s->has_size = false;
	s->skip = size + -size % BLOCK;
	return 0;
}

int
sb_pack_strict_feed(struct sb_pack_strict *s, const void *data, size_t len, struct sb_error *err)
{
	const uint8_t *p = data;
	int r = 0;

	while (len && r == 0) {
		size_t n;

		if (s->pax_left) {
			n = len < s->pax_left ? len : (size_t)s->pax_left;
			sb_buf_add(&s->pax, p, n);
			s->pax_left -= n;
			r = sb_buf_check(&s->pax, "pax header", err);
			if (r == 0 && !s->pax_left)
				r = take_pax(s, err);
		} else if (s->skip) {
			n = len < s->skip ? len : (size_t)s->skip;
			s->skip -= n;
		} else {
			n = BLOCK - s->have < len ? BLOCK - s->have : len;
			memcpy(s->head + s->have, p, n);
			s->have += n;
			if (s->have == BLOCK) {
				s->have = 0;
				r = take_header(s, err);
			}
		}
		p += n;
		len -= n;
	}
	return r;
}
