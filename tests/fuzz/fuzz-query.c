/* SPDX-License-Identifier: MIT */
/* The target of a request: what was decoded encodes to a target that says the same. */
#include "config.h"

#include <string.h>

#include <compat/http/query.h>
#include <compat/http/range.h>

#include "fuzz.h"

static void
put(struct sb_buf *out, const char *s)
{
	sb_query_encode(s, strlen(s), out);
}

static void
same(const struct sb_strlist *a, const struct sb_strlist *b)
{
	FUZZ_CHECK(a->n == b->n);
	for (size_t i = 0; i < a->n; i++)
		FUZZ_CHECK(strcmp(a->v[i], b->v[i]) == 0);
}

static void
check_target(const char *text)
{
	sb_auto(sb_buf) struct sb_buf again;
	struct sb_query q, r;

	sb_buf_init(&again, 1 << 24);
	if (sb_query_parse(text, &q, NULL) < 0)
		return;
	FUZZ_CHECK(q.segments.n <= SB_QUERY_SEGMENTS_MAX && q.pairs.n % 2 == 0);
	for (size_t i = 0; i < q.segments.n; i++) {
		FUZZ_CHECK(q.segments.v[i][0] != '\0');
		sb_buf_add_char(&again, '/');
		put(&again, q.segments.v[i]);
	}
	for (size_t i = 0; i < q.pairs.n; i += 2) {
		sb_buf_add_char(&again, i ? '&' : '?');
		put(&again, q.pairs.v[i]);
		sb_buf_add_char(&again, '=');
		put(&again, q.pairs.v[i + 1]);
		FUZZ_CHECK(sb_query_get(&q, q.pairs.v[i]) != NULL);
	}
	FUZZ_CHECK(sb_query_parse((const char *)again.data, &r, NULL) == 0);
	same(&q.segments, &r.segments);
	same(&q.pairs, &r.pairs);
	sb_query_free(&q);
	sb_query_free(&r);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_autofree char *text = strndup((const char *)data, len);
	uint64_t from = 0, n = 0, size = len * 1000;

	FUZZ_CHECK(text != NULL);
	check_target(text);
	if (sb_range_parse(text, size, &from, &n) == SB_RANGE_PART)
		FUZZ_CHECK(n > 0 && from < size && n <= size - from);
	return 0;
}
