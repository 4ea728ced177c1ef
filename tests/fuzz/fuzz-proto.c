/* SPDX-License-Identifier: MIT */
/*
 * The messages of a peer. The first byte names the message (low 4 bits); with bit 128 the
 * checksum of a plan's changes is put right first. What is accepted encodes to bytes that
 * decode to the same again; paths are of the allowed form; only the errors of a bad peer come.
 */
#include "config.h"

#include <string.h>

#include <base/path.h>
#include <base/strlist.h>
#include <sync/wire/proto.h>

#include "fuzz.h"

#define OUT_MAX (64u << 20)

static const struct sb_manifest_limits limits = { .max_entries = 100000,
	.max_depth = 100,
	.max_bytes = 1 << 20 };

static bool
bad_peer(int r)
{
	return r == SB_E_PROTO || r == SB_E_CORRUPT || r == SB_E_LIMIT || r == SB_E_VERSION ||
		r == SB_E_NOMEM;
}

static void
check_path(const char *path)
{
	FUZZ_CHECK(path && *path && sb_path_check(path, strlen(path), NULL) == 0);
}

static int
hello(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	struct sb_hello m;
	int r = sb_proto_hello_decode(p, len, &m, err);

	if (r == 0)
		sb_proto_hello_encode(&m, out);
	return r;
}

static int
begin(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	struct sb_begin m;
	int r = sb_proto_begin_decode(p, len, &m, err);

	FUZZ_CHECK((r == 0) == (m.root != NULL));
	if (r == 0)
		sb_proto_begin_encode(&m, out);
	free(m.root);
	return r;
}

static int
scan_reply(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	struct sb_scan_reply m;
	int r = sb_proto_scan_decode(p, len, &m, err);

	if (r == 0)
		sb_proto_scan_encode(&m, out);
	return r;
}

static int
commit_req(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	struct sb_commit_req m;
	int r = sb_proto_commit_decode(p, len, &m, err);

	if (r == 0)
		sb_proto_commit_encode(&m, out);
	return r;
}

static int
plan(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_plan_piece) struct sb_plan_piece m = { 0 };
	int r = sb_proto_plan_decode(p, len, &limits, &m, err);

	for (size_t i = 0; r == 0 && i < m.diff.n; i++) {
		const struct sb_plan_step *s = &m.steps[i];

		check_path(m.diff.v[i].path);
		FUZZ_CHECK(s->method <= SB_METHOD_DELETE);
		FUZZ_CHECK(m.diff.v[i].del == (s->method == SB_METHOD_DELETE));
		if (s->method == SB_METHOD_CLONE || s->method == SB_METHOD_MOVE)
			check_path(s->from);
	}
	if (r == 0)
		FUZZ_CHECK(sb_proto_plan_encode(&m.diff, m.steps, out, NULL) == 0);
	return r;
}

static int
wants(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_want_list) struct sb_want_list m = { 0 };
	int r = sb_proto_want_decode(p, len, &m, err);

	FUZZ_CHECK(r == 0 || (m.n == 0 && !m.v));
	for (size_t i = 0; i < m.n; i++) {
		check_path(m.v[i].path);
		if (m.v[i].source)
			check_path(m.v[i].source);
		FUZZ_CHECK(m.v[i].sig_len <= len);
	}
	if (r == 0)
		sb_proto_want_encode(&m, out);
	return r;
}

static int
result(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result m = { 0 };
	int r = sb_proto_result_decode(p, len, 1000, &m, err);

	FUZZ_CHECK(r == 0 || (m.n_left == 0 && !m.left));
	for (size_t i = 0; i < m.n_left; i++)
		FUZZ_CHECK(sb_proto_why_text(m.left[i].why)[0]);
	if (r == 0)
		sb_proto_result_encode(&m, out);
	return r;
}

static int
paths(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist m = { 0 };
	int r = sb_proto_paths_decode(p, len, &m, err);

	if (r == 0)
		sb_proto_paths_encode((const char *const *)m.v, m.n, out);
	return r;
}

/* Any number of children, as the answer to LIST has them. */
static int
listing(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err)
{
	struct sb_cursor c;
	int r = 0;

	sb_cursor_init(&c, p, len);
	while (r == 0 && sb_cursor_left(&c)) {
		struct sb_listed m;
		struct sb_dir dir = { 0 };
		sb_autofree char *both = NULL;

		r = sb_proto_listing_take(&c, &m, err);
		if (r < 0)
			break;
		check_path(m.name);
		FUZZ_CHECK(!strchr(m.name, '/'));
		/* A symlink's target stands behind its name. */
		both = malloc(strlen(m.name) + (m.target ? strlen(m.target) : 0) + 2);
		FUZZ_CHECK(both);
		memcpy(both, m.name, strlen(m.name) + 1);
		if (m.target)
			memcpy(both + strlen(m.name) + 1, m.target, strlen(m.target) + 1);
		m.e.name = both;
		dir.total = (uint32_t)m.total;
		if (m.e.type == SB_ENTRY_DIR)
			m.e.dir = &dir;
		sb_proto_listing_add(&m.e, out);
		free(m.name);
		free(m.target);
	}
	return r;
}

typedef int (*message_fn)(const uint8_t *p, size_t len, struct sb_buf *out, struct sb_error *err);

static const message_fn messages[] = { hello, begin, scan_reply, commit_req, plan, wants, result,
	paths, listing };

/* The changes are length-prefixed and end in a checksum that no mutation would find. */
static void
fix_plan(uint8_t *p, size_t len)
{
	struct sb_cursor c;
	const uint8_t *d;
	uint64_t sum;
	size_t n;

	sb_cursor_init(&c, p, len);
	d = sb_cursor_bytes(&c, len, &n);
	if (!d || n < 8)
		return;
	sum = XXH3_64bits(d, n - 8);
	for (unsigned i = 0; i < 8; i++)
		p[(size_t)(d - p) + n - 8 + i] = (uint8_t)(sum >> (8 * i));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_buf) struct sb_buf once = { 0 }, twice = { 0 };
	struct sb_error err = { 0 };
	message_fn fn;
	uint8_t *copy;
	int r;

	if (len < 1)
		return 0;
	fn = messages[(data[0] & 15) % (sizeof messages / sizeof messages[0])];
	copy = malloc(len);
	FUZZ_CHECK(copy);
	memcpy(copy, data + 1, len - 1);
	if ((data[0] & 128) && fn == plan)
		fix_plan(copy, len - 1);
	sb_buf_init(&once, OUT_MAX);
	sb_buf_init(&twice, OUT_MAX);
	r = fn(copy, len - 1, &once, &err);
	FUZZ_CHECK(r == 0 || (bad_peer(r) && err.msg[0]));
	if (r == 0) {
		FUZZ_CHECK(!once.failed && fn(once.data, once.len, &twice, &err) == 0);
		FUZZ_CHECK(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
	}
	free(copy);
	return 0;
}
