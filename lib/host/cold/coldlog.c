/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldlog.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include <base/random.h>
#include <base/str.h>
#include <base/strlist.h>

#define ENTRY_MAX 4096
#define LEAF "log-%08" PRIu32
#define MARK_LEN 16

static const char *const kinds[] = { "none", "cold", "host", "gone" };

static void
key_of(const char *dir, uint32_t n, char out[SB_COLDSTORE_KEY_MAX + 1])
{
	(void)snprintf(out, SB_COLDSTORE_KEY_MAX + 1, "%s/" LEAF, dir, n);
}

struct scan {
	size_t skip;
	uint32_t last;
	uint32_t below; /* of a trim; 0: none */
	struct sb_strlist old;
};

static int
on_entry(const struct sb_coldstore_entry *e, void *arg, struct sb_error *err)
{
	struct scan *s = arg;
	int64_t n;

	(void)err;
	if (strlen(e->key) <= s->skip || !sb_str_to_i64(e->key + s->skip, 1, UINT32_MAX, &n))
		return 0;
	if ((uint32_t)n > s->last)
		s->last = (uint32_t)n;
	if ((uint32_t)n < s->below)
		sb_strlist_add(&s->old, e->key);
	return 0;
}

static int
scan(struct sb_coldstore *st, const char *dir, struct scan *s, const struct sb_host_call *call,
	struct sb_error *err)
{
	char prefix[SB_COLDSTORE_KEY_MAX + 1];

	(void)snprintf(prefix, sizeof prefix, "%s/log-", dir);
	s->skip = strlen(prefix);
	return st->ops->list(st, prefix, on_entry, s, call, err);
}

/* An entry's text; with `mark`, that of its writer, too. */
static int
parse(const char *text, size_t len, struct sb_coldlog *out, char *mark, struct sb_error *err)
{
	json_t *j = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	const char *kind = json_string_value(json_object_get(j, "kind"));
	const char *host = json_string_value(json_object_get(j, "host"));
	const char *index = json_string_value(json_object_get(j, "index"));
	const char *m = json_string_value(json_object_get(j, "mark"));
	int r = 0;

	out->kind = SB_COLDLOG_NONE;
	for (int i = SB_COLDLOG_COLD; kind && i <= SB_COLDLOG_GONE; i++)
		if (strcmp(kind, kinds[i]) == 0)
			out->kind = (enum sb_coldlog_kind)i;
	if (out->kind == SB_COLDLOG_NONE || !host || !index || !m ||
		snprintf(out->host, sizeof out->host, "%s", host) >= (int)sizeof out->host ||
		snprintf(out->index, sizeof out->index, "%s", index) >= (int)sizeof out->index ||
		strchr(index, '/') || strlen(m) != 2 * MARK_LEN)
		r = sb_fail(err, SB_E_CORRUPT, "the entry is damaged");
	else if (mark)
		memcpy(mark, m, 2 * MARK_LEN + 1);
	out->time_s = (int64_t)json_integer_value(json_object_get(j, "time"));
	json_decref(j);
	return r;
}

static int
read_entry(struct sb_coldstore *st, const char *key, struct sb_coldlog *out, char *mark,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_error why = { 0 };
	size_t len;
	sb_autofree uint8_t *text = sb_coldstore_read(st, key, ENTRY_MAX, &len, call, &why);
	int r = text ? parse((char *)text, len, out, mark, &why) : why.code;

	return r < 0 ? sb_fail(err, r, "%s: %s", key, why.msg) : 0;
}

int
sb_coldlog_last(struct sb_coldstore *st, const char *dir, struct sb_coldlog *out,
	const struct sb_host_call *call, struct sb_error *err)
{
	char key[SB_COLDSTORE_KEY_MAX + 1];
	struct scan s = { 0 };
	int r = scan(st, dir, &s, call, err);

	*out = (struct sb_coldlog){ .n = s.last };
	if (r < 0 || s.last == 0)
		return r;
	key_of(dir, s.last, key);
	return read_entry(st, key, out, NULL, call, err);
}

int
sb_coldlog_append(struct sb_coldstore *st, const char *dir, uint32_t after,
	const struct sb_coldlog *e, const struct sb_host_call *call, struct sb_error *err)
{
	char key[SB_COLDSTORE_KEY_MAX + 1], mark[2 * MARK_LEN + 1], theirs[2 * MARK_LEN + 1];
	struct sb_coldlog there;
	struct sb_error why = { 0 };
	uint8_t rnd[MARK_LEN];
	sb_autofree char *text = NULL;
	struct scan s = { 0 };
	json_t *j;
	int r = sb_random(rnd, sizeof rnd, err);

	if (r < 0)
		return r;
	j = json_pack("{s:s, s:s, s:s, s:s, s:I}", "kind", kinds[e->kind], "host", e->host, "index",
		e->index, "mark", sb_str_hex(rnd, sizeof rnd, mark), "time",
		(json_int_t)time(NULL));
	text = j ? json_dumps(j, JSON_COMPACT) : NULL;
	json_decref(j);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "log of a session");
	key_of(dir, after + 1, key);
	r = st->ops->put(st, key, text, strlen(text), call, &why);
	/* Ours may have come through although we were told otherwise. */
	if (r == SB_E_EXISTS && read_entry(st, key, &there, theirs, call, &why) == 0)
		r = strcmp(mark, theirs) == 0 ? 0 : SB_E_EXISTS;
	/* A number that was trimmed long ago is free again: somebody is far ahead of us then. */
	if (r == 0)
		r = scan(st, dir, &s, call, &why);
	if (r == SB_E_EXISTS || (r == 0 && s.last != after + 1))
		return sb_fail(err, SB_E_CONFLICT, "another host was first to write %s", key);
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_coldlog_trim(struct sb_coldstore *st, const char *dir, uint32_t n,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct scan s = { .below = n };
	int r = scan(st, dir, &s, call, err);

	if (r == 0)
		r = sb_strlist_check(&s.old, err);
	for (size_t i = 0; i < s.old.n && r == 0; i++)
		r = st->ops->remove(st, s.old.v[i], call, err);
	sb_strlist_free(&s.old);
	return r;
}
