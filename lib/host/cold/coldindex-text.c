/* SPDX-License-Identifier: MIT */
/* The index as an object: a line, then frames that hold JSON. */
#include "config.h"

#include <host/cold/coldindex.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <base/str.h>

#define FORMAT 1
#define HEAD_MAX 160
#define TEXT_MAX ((uint64_t)1 << 30)
#define SHA_HEX (2 * SB_COLDFRAME_DIGEST + 1)

static json_t *
streams_json(const struct sb_coldindex *x)
{
	json_t *all = json_array();

	for (size_t i = 0; i < x->n_streams; i++) {
		const struct sb_coldindex_stream *s = &x->streams[i];
		json_t *f = json_array();

		for (size_t k = 0; k < s->n; k++)
			(void)json_array_append_new(f, json_integer(s->frames[k]));
		(void)json_array_append_new(all,
			json_pack("{s:s, s:s, s:I, s:o}", "snapshot", s->snapshot, "from", s->from,
				"size", (json_int_t)s->size, "frames", f));
	}
	return all;
}

static json_t *
to_json(const struct sb_coldindex *x)
{
	json_t *parts = json_array(), *frames = json_array();

	for (size_t i = 0; i < x->n_parts; i++)
		(void)json_array_append_new(parts,
			json_pack("[s, I]", x->parts[i].name, (json_int_t)x->parts[i].size));
	for (size_t i = 0; i < x->n_frames; i++) {
		const struct sb_coldindex_frame *f = &x->frames[i];
		char hex[SHA_HEX];

		(void)json_array_append_new(frames,
			json_pack("[s, I, I, I, I]", sb_str_hex(f->digest, sizeof f->digest, hex),
				(json_int_t)f->size, (json_int_t)f->part, (json_int_t)f->at,
				(json_int_t)f->stored));
	}
	return json_pack("{s:i, s:O, s:s, s:o, s:o, s:o}", "sbcold", FORMAT, "session", x->session,
		"stream", x->kind, "streams", streams_json(x), "parts", parts, "frames", frames);
}

/* The text in pieces, each a frame with its two lengths in front. */
static int
add_frames(const char *text, size_t len, const struct sb_coldkey *key, struct sb_buf *out,
	struct sb_error *err)
{
	int r = 0;

	for (size_t at = 0; at < len && r == 0; at += SB_COLDFRAME_PLAIN_MAX) {
		size_t n = len - at < SB_COLDFRAME_PLAIN_MAX ? len - at : SB_COLDFRAME_PLAIN_MAX;
		sb_auto(sb_buf) struct sb_buf one;

		sb_buf_init(&one, SB_COLDFRAME_STORED_MAX);
		r = sb_coldframe_encode(text + at, n, key, &one, err);
		if (r < 0)
			return r;
		sb_buf_add_u32(out, (uint32_t)one.len);
		sb_buf_add_u32(out, (uint32_t)n);
		sb_buf_add(out, one.data, one.len);
	}
	return sb_buf_check(out, "index", err);
}

int
sb_coldindex_encode(const struct sb_coldindex *x, const struct sb_coldkey *key, struct sb_buf *out,
	struct sb_error *err)
{
	json_t *j = to_json(x);
	sb_autofree char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	sb_auto(sb_buf) struct sb_buf body;
	uint8_t sum[SB_COLDFRAME_DIGEST];
	char hex[SHA_HEX];
	int r;

	sb_buf_init(&body, SB_COLDINDEX_OBJECT_MAX);
	json_decref(j);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "index");
	r = add_frames(text, strlen(text), key, &body, err);
	if (r == 0)
		r = sb_coldframe_digest(body.data, body.len, sum, err);
	if (r < 0)
		return r;
	sb_buf_addf(out, "sbcold %d %s %zu %s\n", FORMAT, key ? key->id : "-", strlen(text),
		sb_str_hex(sum, sizeof sum, hex));
	sb_buf_add(out, body.data, body.len);
	return sb_buf_check(out, "index", err);
}

static int
bad(struct sb_error *err, const char *what)
{
	return sb_fail(err, SB_E_CORRUPT, "index of an archive: %s", what);
}

/* What the first line says. */
struct head {
	char key[SB_COLDKEY_ID_MAX];
	uint64_t size;
	size_t len; /* of the line */
};

static int
read_head(const uint8_t *data, size_t len, struct head *h, struct sb_error *err)
{
	const uint8_t *nl = memchr(data, '\n', len < HEAD_MAX ? len : HEAD_MAX);
	uint8_t sum[SB_COLDFRAME_DIGEST], want[SB_COLDFRAME_DIGEST];
	char line[HEAD_MAX + 1], hex[SHA_HEX], key[SB_COLDKEY_ID_MAX];
	int version, used = 0;

	if (!nl || memchr(data, '\0', (size_t)(nl - data)))
		return bad(err, "it has no first line");
	h->len = (size_t)(nl - data) + 1;
	memcpy(line, data, h->len - 1);
	line[h->len - 1] = '\0';
	if (sscanf(line, "sbcold %d%n", &version, &used) != 1)
		return bad(err, "it does not begin with \"sbcold\"");
	if (version != FORMAT)
		return sb_fail(err, SB_E_VERSION, "index of an archive: version %d, we know %d",
			version, FORMAT);
	if (sscanf(line + used, " %16[0-9a-f-] %" SCNu64 " %64[0-9a-f]%n", key, &h->size, hex,
		    &version) != 3 ||
		line[used + version] || h->size == 0 || h->size > TEXT_MAX ||
		!sb_str_unhex(hex, want, sizeof want))
		return bad(err, "its first line is damaged");
	(void)snprintf(h->key, sizeof h->key, "%s", strcmp(key, "-") == 0 ? "" : key);
	if (sb_coldframe_digest(data + h->len, len - h->len, sum, err) < 0)
		return SB_E_SYS;
	return memcmp(sum, want, sizeof sum) == 0 ? 0 : bad(err, "its checksum differs");
}

static int
read_text(const uint8_t *data, size_t len, const struct head *h, const struct sb_coldkey *key,
	char **out, struct sb_error *err)
{
	sb_autofree char *text = NULL;
	struct sb_cursor c;
	uint64_t at = 0;

	/* Not more is believed than can be in there. */
	if (h->size / SB_COLDFRAME_PLAIN_MAX > len / 9)
		return bad(err, "its size is wrong");
	text = malloc((size_t)h->size + 1);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "index");
	sb_cursor_init(&c, data, len);
	while (sb_cursor_left(&c) > 0) {
		uint32_t stored = sb_cursor_u32(&c), plain = sb_cursor_u32(&c);
		const uint8_t *p = sb_cursor_take(&c, stored);
		int r;

		if (!p || stored > SB_COLDFRAME_STORED_MAX || plain == 0 ||
			plain > SB_COLDFRAME_PLAIN_MAX || plain > h->size - at)
			return bad(err, "its frames are damaged");
		r = sb_coldframe_decode(p, stored, key, (uint8_t *)text + at, plain, err);
		if (r < 0)
			return sb_wrap(err, r, "index of an archive");
		at += plain;
	}
	if (at != h->size)
		return bad(err, "it is cut");
	text[at] = '\0';
	*out = sb_steal(&text);
	return 0;
}

/* An integer from 0 to `max`; false for anything else. */
static bool
number(const json_t *j, uint64_t max, uint64_t *out)
{
	json_int_t v = json_integer_value(j);

	*out = (uint64_t)v;
	return json_is_integer(j) && v >= 0 && (uint64_t)v <= max;
}

static bool
name_of(const json_t *j, char out[SB_HOST_NAME_MAX + 1])
{
	const char *s = json_string_value(j);

	return s && snprintf(out, SB_HOST_NAME_MAX + 1, "%s", s) <= SB_HOST_NAME_MAX;
}

static int
take_parts(struct sb_coldindex *x, const json_t *j, struct sb_error *err)
{
	size_t i;
	json_t *e;

	json_array_foreach(j, i, e)
	{
		const char *name = json_string_value(json_array_get(e, 0));
		uint8_t raw[16];
		uint64_t size;

		if (json_array_size(e) != 2 || !name || !sb_str_unhex(name, raw, sizeof raw) ||
			!number(json_array_get(e, 1), SB_COLDINDEX_PART_BYTES_MAX, &size))
			return bad(err, "a part");
		if (sb_coldindex_add_part(x, name, size, err) < 0)
			return SB_E_LIMIT;
	}
	return 0;
}

static int
take_frames(struct sb_coldindex *x, const json_t *j, struct sb_error *err)
{
	size_t i;
	json_t *e;

	json_array_foreach(j, i, e)
	{
		struct sb_coldindex_frame f;
		uint64_t size, part, stored;
		const char *hex = json_string_value(json_array_get(e, 0));

		if (json_array_size(e) != 5 || !hex || !sb_str_unhex(hex, f.digest, 32) ||
			!number(json_array_get(e, 1), SB_COLDFRAME_PLAIN_MAX, &size) || size == 0 ||
			!number(json_array_get(e, 2), UINT32_MAX, &part) || part >= x->n_parts ||
			!number(json_array_get(e, 3), SB_COLDINDEX_PART_BYTES_MAX, &f.at) ||
			!number(json_array_get(e, 4), SB_COLDFRAME_STORED_MAX, &stored) ||
			stored == 0 || f.at + stored > x->parts[part].size)
			return bad(err, "a frame");
		f.size = (uint32_t)size;
		f.part = (uint32_t)part;
		f.stored = (uint32_t)stored;
		if (sb_coldindex_add_frame(x, &f, err) < 0)
			return SB_E_LIMIT;
	}
	return 0;
}

/* What a stream stands on has come before it. */
static bool
stands(const struct sb_coldindex *x, const struct sb_coldindex_stream *s)
{
	bool base = s->from[0] == '\0';

	for (const struct sb_coldindex_stream *o = x->streams; o < s; o++) {
		if (strcmp(o->snapshot, s->snapshot) == 0)
			return false;
		base |= strcmp(o->snapshot, s->from) == 0;
	}
	return base;
}

static int
take_streams(struct sb_coldindex *x, const json_t *j, struct sb_error *err)
{
	size_t i, k;
	json_t *e, *n;

	json_array_foreach(j, i, e)
	{
		char snap[SB_HOST_NAME_MAX + 1], from[SB_HOST_NAME_MAX + 1];
		const json_t *list = json_object_get(e, "frames");
		uint64_t size, v;

		if (!name_of(json_object_get(e, "snapshot"), snap) || !json_is_array(list) ||
			!name_of(json_object_get(e, "from"), from) ||
			!number(json_object_get(e, "size"), INT64_MAX, &size))
			return bad(err, "a stream");
		if (sb_coldindex_add_stream(x, snap, from, err) < 0)
			return SB_E_LIMIT;
		if (!stands(x, &x->streams[i]))
			return bad(err, "a stream stands on none");
		json_array_foreach(list, k, n)
		{
			if (!number(n, UINT32_MAX, &v) || v >= x->n_frames)
				return bad(err, "a frame of a stream");
			if (sb_coldindex_add_use(x, (uint32_t)v, err) < 0)
				return SB_E_LIMIT;
		}
		if (x->streams[i].size != size)
			return bad(err, "the size of a stream");
	}
	return 0;
}

static int
take_json(struct sb_coldindex *x, const json_t *j, struct sb_error *err)
{
	static const char *const lists[] = { "streams", "parts", "frames" };
	const char *kind = json_string_value(json_object_get(j, "stream"));
	uint64_t version;
	int r;

	if (!number(json_object_get(j, "sbcold"), FORMAT, &version) || version != FORMAT)
		return bad(err, "its version");
	if (!kind || snprintf(x->kind, sizeof x->kind, "%s", kind) >= (int)sizeof x->kind)
		return bad(err, "the kind of its streams");
	if (!json_is_object(json_object_get(j, "session")))
		return bad(err, "it has no record of a session");
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++)
		if (!json_is_array(json_object_get(j, lists[i])))
			return bad(err, "a list is missing");
	x->session = json_incref(json_object_get(j, "session"));
	r = take_parts(x, json_object_get(j, "parts"), err);
	if (r == 0)
		r = take_frames(x, json_object_get(j, "frames"), err);
	return r < 0 ? r : take_streams(x, json_object_get(j, "streams"), err);
}

int
sb_coldindex_decode(const void *data, size_t len, const struct sb_coldkeys *keys,
	struct sb_coldindex *out, struct sb_error *err)
{
	const struct sb_coldkey *key = NULL;
	sb_autofree char *text = NULL;
	struct head h = { .len = 0 };
	json_t *j = NULL;
	int r = read_head(data, len, &h, err);

	if (r == 0 && h.key[0] && !(key = sb_coldkey_find(keys, h.key)))
		r = sb_fail(err, SB_E_AUTH,
			"the archive is encrypted with key %s, which is not among ours", h.key);
	if (r == 0)
		r = read_text((const uint8_t *)data + h.len, len - h.len, &h, key, &text, err);
	if (r == 0) {
		j = json_loadb(text, (size_t)h.size, JSON_REJECT_DUPLICATES, NULL);
		r = json_is_object(j) ? take_json(out, j, err) : bad(err, "it is no JSON object");
	}
	json_decref(j);
	if (r < 0)
		sb_coldindex_free(out);
	else
		(void)snprintf(out->key, sizeof out->key, "%s", h.key);
	return r;
}
