/* SPDX-License-Identifier: MIT */
/*
 * Deltas of large files: signature, delta and recipe give the new file, hostile ones are refused,
 * memory and time stay bounded.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <librsync.h>

#include <base/str.h>
#include <sync/codec/recipe.h>
#include <sync/codec/delta.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

#define N(a) (sizeof(a) / sizeof(a)[0])

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* ---- helpers ---- */

static void
noise(uint8_t *to, size_t len, uint32_t seed)
{
	uint32_t x = seed * 2654435761u + 1;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		to[i] = (uint8_t)(x >> 11);
	}
}

static int
file_with(const void *data, size_t len)
{
	FILE *f = tmpfile();
	int fd;

	assert_non_null(f);
	fd = dup(fileno(f));
	(void)fclose(f);
	assert_true(fd >= 0);
	if (len)
		assert_int_equal(pwrite(fd, data, len, 0), len);
	return fd;
}

static int
to_buf(const void *data, size_t len, void *arg, struct sb_error *err)
{
	sb_buf_add(arg, data, len);
	return sb_buf_check(arg, "result", err);
}

static int
to_nothing(const void *data, size_t len, void *arg, struct sb_error *err)
{
	(void)data;
	(void)err;
	*(uint64_t *)arg += len;
	return 0;
}

struct pieces {
	const uint8_t *data;
	size_t len, piece;
};

static ssize_t
from_pieces(const void **out, void *arg, struct sb_error *err)
{
	struct pieces *p = arg;
	size_t n = p->len < p->piece ? p->len : p->piece;

	(void)err;
	*out = p->data;
	p->data += n;
	p->len -= n;
	return (ssize_t)n;
}

static int
apply(int basis, uint64_t size, const void *delta, size_t len, uint64_t max_out, struct sb_buf *out,
	struct sb_error *err)
{
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct pieces p = { delta, len, 7777 };

	b.max_out = max_out;
	sb_buf_init(out, 1 << 28);
	return sb_delta_apply(basis, size, from_pieces, &p, &b, to_buf, out, NULL, err);
}

/* old -> signature -> delta to new -> old + delta = new. Gives the delta's length. */
static size_t
round_trip(const uint8_t *old, size_t old_len, const uint8_t *new, size_t new_len)
{
	struct sb_delta_budget budget = SB_DELTA_BUDGET_INIT;
	struct sb_error err = { 0 };
	sb_autoclose int a = file_with(old, old_len);
	sb_autoclose int b = file_with(new, new_len);
	sb_auto(sb_buf) struct sb_buf sig, delta, back;

	sb_buf_init(&sig, 1 << 24);
	sb_buf_init(&delta, 1 << 28);
	assert_ok(sb_delta_sign(a, old_len, &sig, NULL, &err), &err);
	assert_ok(sb_delta_check_sig(sig.data, sig.len, old_len, &err), &err);
	assert_ok(sb_delta_make(sig.data, sig.len, b, &budget, to_buf, &delta, NULL, &err), &err);
	assert_ok(apply(a, old_len, delta.data, delta.len, new_len, &back, &err), &err);
	assert_int_equal(back.len, new_len);
	assert_memory_equal(back.data, new, new_len);
	return delta.len;
}

/* ---- honest peers ---- */

static void
deltas_give_the_new_file(void **state)
{
	static const size_t sizes[] = { 0, 1, 255, 256, 257, 65536, 300001, 4 << 20 };
	sb_autofree uint8_t *old = malloc(5 << 20), *new = malloc(5 << 20);

	(void)state;
	assert_true(old && new);
	for (size_t i = 0; i < N(sizes); i++) {
		size_t n = sizes[i];

		noise(old, n, (uint32_t)i);
		memcpy(new, old, n / 2);
		memset(new + n / 2, 'x', 100);
		memcpy(new + n / 2 + 100, old + n / 2, n - n / 2);
		assert_true(round_trip(old, n, new, n + 100) < 200 + n / 2 + 1000);
		(void)round_trip(old, n, NULL, 0);
		(void)round_trip(NULL, 0, new, n + 100);
		(void)round_trip(new, n + 100, old, n);
	}
	assert_true(round_trip(old, 4 << 20, old, 4 << 20) < 100);
	/* zeros: many equal blocks */
	memset(old, 0, 5 << 20);
	assert_true(round_trip(old, 5 << 20, old, 4 << 20) < 50000);
}

static void
signature_is_as_advised(void **state)
{
	struct sb_error err = { 0 };
	sb_autofree uint8_t *old = malloc(1 << 20);
	sb_autoclose int fd = -1;
	sb_auto(sb_buf) struct sb_buf sig;

	(void)state;
	assert_non_null(old);
	noise(old, 1 << 20, 1);
	fd = file_with(old, 1 << 20);
	sb_buf_init(&sig, 1 << 20);
	assert_ok(sb_delta_sign(fd, 1 << 20, &sig, NULL, &err), &err);
	assert_int_equal(sig.len, 12 + 1024 * (4 + 7));
	assert_memory_equal(sig.data, "rs\1G\0\0\4\0\0\0\0\7", 12);
}

static void *
many_round_trips(void *arg)
{
	uint8_t *old = malloc(70000), *new = malloc(70000);

	assert_true(old && new);
	for (uint32_t i = 0; i < 5; i++) {
		noise(old, 70000, i + (uint32_t)(uintptr_t)arg);
		memcpy(new, old, 70000);
		new[30000] ^= 1;
		(void)round_trip(old, 70000, new, 70000);
	}
	free(old);
	free(new);
	return NULL;
}

static void
threads_and_ignored_children_do_not_matter(void **state)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, before;
	pthread_t t[4];

	(void)state;
	for (int round = 0; round < 2; round++) {
		for (uintptr_t i = 0; i < N(t); i++)
			assert_int_equal(
				pthread_create(&t[i], NULL, many_round_trips, (void *)(i * 100)),
				0);
		for (size_t i = 0; i < N(t); i++)
			assert_int_equal(pthread_join(t[i], NULL), 0);
		if (round == 0)
			assert_int_equal(sigaction(SIGCHLD, &ignore, &before), 0);
	}
	assert_int_equal(sigaction(SIGCHLD, &before, NULL), 0);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nobody is left */
}

/* ---- hostile signatures ---- */

static size_t
make_sig(uint8_t *to, uint32_t magic, uint32_t block, uint32_t sum, size_t n)
{
	uint32_t head[3] = { magic, block, sum };
	size_t len = 12 + n * (4 + (size_t)sum);

	for (size_t i = 0; i < 12; i++)
		to[i] = (uint8_t)(head[i / 4] >> (24 - 8 * (i % 4)));
	noise(to + 12, len - 12, 7);
	return len;
}

static void
signature_headers_are_checked(void **state)
{
	static const struct {
		uint32_t magic, block, sum;
		size_t n;
		uint64_t size;
		int cut;
		bool good;
	} cases[] = {
		{ 0x72730147, 1024, 8, 10, 10240, 0, true },
		{ 0x72730147, 1024, 8, 10, 9217, 0, true },
		{ 0x72730147, 1024, 8, 10, 9216, 0, false },
		{ 0x72730147, 1024, 8, 10, 10241, 0, false },
		{ 0x72730147, 1024, 8, 0, 0, 0, true },
		{ 0x72730147, 1024, 8, 10, 10240, 1, false },
		{ 0x72730147, 1024, 8, 1, 1024, 10, false },
		{ 0x72730136, 1024, 8, 10, 10240, 0, false },
		{ 0x72730137, 1024, 8, 10, 10240, 0, false },
		{ 0x72730146, 1024, 8, 10, 10240, 0, false },
		{ 0x72730236, 1024, 8, 10, 10240, 0, false },
		{ 0x72730147, 0, 8, 10, 10240, 0, false },
		{ 0x72730147, 1 << 20, 8, 1, 10240, 0, true },
		{ 0x72730147, (1 << 20) + 1, 8, 1, 10240, 0, false },
		{ 0x72730147, 0x7fffffff, 8, 1, 10240, 0, false },
		{ 0x72730147, 0xffffffff, 8, 1, 10240, 0, false },
		{ 0x72730147, 1024, 0, 10, 10240, 0, false },
		{ 0x72730147, 1024, 5, 10, 10240, 0, false },
		{ 0x72730147, 1024, 6, 10, 10240, 0, true },
		{ 0x72730147, 1024, 32, 10, 10240, 0, true },
		{ 0x72730147, 1024, 33, 10, 10240, 0, false },
		{ 0x72730147, 1024, 255, 10, 10240, 0, false },
		{ 0x72730147, 1, 6, 1 << 24, 1 << 24, 0, false },
	};
	sb_autofree uint8_t *sig = malloc(12 + 10 * ((size_t)1 << 24));
	sb_autoclose int fd = file_with("some bytes", 10);

	(void)state;
	assert_non_null(sig);
	for (size_t i = 0; i < N(cases); i++) {
		struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
		struct sb_error err = { 0 };
		uint64_t got = 0;
		size_t len =
			make_sig(sig, cases[i].magic, cases[i].block, cases[i].sum, cases[i].n);
		int r;

		len -= (size_t)cases[i].cut;
		r = sb_delta_check_sig(sig, len, cases[i].size, &err);
		if (r != (cases[i].good ? 0 : SB_E_PROTO))
			fail_msg("case %zu: got %d (%s)", i, r, err.msg);
		r = sb_delta_make(sig, len, fd, &b, to_nothing, &got, NULL, &err);
		if (cases[i].good ? r != 0 || got < 10 : r != 0 && r != SB_E_PROTO)
			fail_msg("case %zu, make: got %d (%s)", i, r, err.msg);
	}
}

/*
 * A segment of 256 bytes whose share of the weak sum is zero: the signs of the Thue-Morse
 * sequence, times `amplitude`, around 128. Blocks made of such segments all have one weak
 * sum.
 */
static void
flood_segment(uint8_t *to, int amplitude)
{
	for (unsigned i = 0; i < 256; i++)
		to[i] = (uint8_t)(128 + (__builtin_parity(i) ? -amplitude : amplitude));
}

static uint8_t *
flood_file(size_t blocks)
{
	uint8_t *d = malloc(blocks * 1024);

	assert_non_null(d);
	for (size_t i = 0; i < blocks; i++) {
		int a[4] = { (int)(i % 100), (int)(i / 100 % 100), (int)(i / 10000), 50 };

		for (size_t k = 0; k < 4; k++)
			flood_segment(d + i * 1024 + k * 256, a[k]);
	}
	return d;
}

static void
sign_with_blocks(const uint8_t *data, size_t len, size_t block, struct sb_buf *out)
{
	rs_job_t *job = rs_sig_begin(block, 8, RS_RK_BLAKE2_SIG_MAGIC);
	rs_buffers_t b = { .next_in = (char *)data, .avail_in = len, .eof_in = 1 };

	sb_buf_init(out, 1 << 26);
	b.avail_out = 12 + (len / block + 1) * 12;
	b.next_out = (char *)sb_buf_reserve(out, b.avail_out);
	assert_non_null(b.next_out);
	assert_int_equal(rs_job_iter(job, &b), RS_DONE);
	sb_buf_grow(out, (size_t)(b.next_out - (char *)out->data));
	rs_job_free(job);
}

static void
flooded_signatures_are_found_and_cost_no_more_than_the_budget(void **state)
{
	static const size_t blocks = 40000;
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct sb_error err = { 0 };
	sb_autofree uint8_t *d = flood_file(blocks);
	sb_auto(sb_buf) struct sb_buf sig;
	sb_autoclose int fd = -1;
	uint64_t got = 0;
	int64_t before;

	(void)state;
	sign_with_blocks(d, blocks * 1024, 1024, &sig);
	assert_memory_equal(sig.data + 12, sig.data + 24, 4); /* the trick works */
	assert_int_equal(sb_delta_check_sig(sig.data, sig.len, blocks * 1024, &err), SB_E_PROTO);
	assert_non_null(strstr(err.msg, "one weak sum"));
	/* Had it not been found: other blocks of the same weak sum, everywhere. */
	for (size_t i = 0; i < 2048; i++)
		flood_segment(d + i * 1024 + 768, 51);
	fd = file_with(d, 2 << 20);
	b.max_ms = 300;
	before = sb_now_ms();
	assert_int_equal(sb_delta_make(sig.data, sig.len, fd, &b, to_nothing, &got, NULL, &err),
		SB_E_LIMIT);
	assert_true(sb_now_ms() - before < 20000);
	assert_non_null(strstr(err.msg, "300 ms"));
}

/* Equal blocks are no flood, and neither are chance twins. */
static void
honest_repetition_is_no_flood(void **state)
{
	struct sb_error err = { 0 };
	sb_autofree uint8_t *d = calloc(20000, 1024);
	sb_auto(sb_buf) struct sb_buf sig;

	(void)state;
	assert_non_null(d);
	for (size_t i = 0; i < 20; i++)
		flood_segment(d + i * 1024, (int)i + 1);
	sign_with_blocks(d, 20000 * 1024, 1024, &sig);
	assert_ok(sb_delta_check_sig(sig.data, sig.len, 20000 * 1024, &err), &err);
}

static void
run_out_of_memory(void)
{
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct sb_error err = { 0 };
	sb_autofree uint8_t *sig = malloc(12 + 12 * 6000000);
	sb_autoclose int fd = file_with("some bytes", 10);
	uint64_t got = 0;
	size_t len;

	assert_non_null(sig);
	len = make_sig(sig, 0x72730147, 1024, 8, 6000000);
	assert_ok(sb_delta_make(sig, len, fd, &b, to_nothing, &got, NULL, &err), &err);
	b.max_memory = 1 << 20; /* and what the parent has free */
	assert_int_equal(sb_delta_make(sig, len, fd, &b, to_nothing, &got, NULL, &err), SB_E_LIMIT);
	assert_non_null(strstr(err.msg, "out of memory"));
}

static void
memory_is_limited(void **state)
{
	(void)state;
	if (SANITIZED)
		skip_because("a sanitizer has its memory reserved before the limit");
	run_out_of_memory();
}

/* ---- hostile deltas ---- */

#define DELTA_HEAD "rs\x02\x36"
/* LITERAL of n < 65: opcode n. COPY with 8-byte offset and length: 0x54. END: 0. */
#define COPY_8_8 "\x54"

static const struct {
	const char *what, *bytes;
	size_t len;
	int want;
} crafted_deltas[] = {
#define CASE(what, bytes, want) \
	{ \
		what, bytes, sizeof(bytes) - 1, want \
	}
	CASE("good",
		DELTA_HEAD "\x03"
			   "abc" COPY_8_8 "\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2"
			   "\0",
		0),
	CASE("no magic", "abcd\0", SB_E_CORRUPT),
	CASE("nothing", "", SB_E_CORRUPT),
	CASE("no end",
		DELTA_HEAD "\x03"
			   "abc",
		SB_E_CORRUPT),
	CASE("cut literal",
		DELTA_HEAD "\x03"
			   "ab",
		SB_E_CORRUPT),
	CASE("cut command", DELTA_HEAD COPY_8_8 "\0\0\0\0", SB_E_CORRUPT),
	CASE("bytes behind the end",
		DELTA_HEAD "\0"
			   "x",
		SB_E_CORRUPT),
	CASE("copy behind the basis",
		DELTA_HEAD COPY_8_8 "\0\0\0\0\0\0\0\7\0\0\0\0\0\0\0\4"
				    "\0",
		SB_E_CORRUPT),
	CASE("copy far behind the basis",
		DELTA_HEAD COPY_8_8 "\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0\1"
				    "\0",
		SB_E_CORRUPT),
	CASE("negative offset",
		DELTA_HEAD COPY_8_8 "\xff\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0\0\1"
				    "\0",
		SB_E_CORRUPT),
	CASE("negative length",
		DELTA_HEAD COPY_8_8 "\0\0\0\0\0\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff"
				    "\0",
		SB_E_CORRUPT),
	CASE("offset plus length overflow",
		DELTA_HEAD COPY_8_8 "\0\0\0\0\0\0\0\5\x7f\xff\xff\xff\xff\xff\xff\xff"
				    "\0",
		SB_E_CORRUPT),
	CASE("reserved command",
		DELTA_HEAD "\x55"
			   "\0",
		SB_E_CORRUPT),
	CASE("reserved command 255",
		DELTA_HEAD "\xff"
			   "\0",
		SB_E_CORRUPT),
	CASE("literal of 2^62",
		DELTA_HEAD "\x44"
			   "\x40\0\0\0\0\0\0\0"
			   "abc",
		SB_E_CORRUPT),
	CASE("literal of -1",
		DELTA_HEAD "\x44"
			   "\xff\xff\xff\xff\xff\xff\xff\xff"
			   "abc",
		SB_E_CORRUPT),
	CASE("empty copies",
		DELTA_HEAD COPY_8_8 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"
				    "\0",
		SB_E_CORRUPT),
	CASE("more than announced",
		DELTA_HEAD "\x0b"
			   "0123456789a"
			   "\0",
		SB_E_LIMIT),
#undef CASE
};

static void
hostile_deltas_are_refused(void **state)
{
	sb_autoclose int basis = file_with("0123456789", 10);

	(void)state;
	for (size_t i = 0; i < N(crafted_deltas); i++) {
		struct sb_error err = { 0 };
		sb_auto(sb_buf) struct sb_buf out;
		int r = apply(basis, 10, crafted_deltas[i].bytes, crafted_deltas[i].len, 10, &out,
			&err);

		if (r != crafted_deltas[i].want)
			fail_msg("%s: got %d (%s), want %d", crafted_deltas[i].what, r, err.msg,
				crafted_deltas[i].want);
		if (i == 0)
			assert_string_equal((char *)out.data, "abc12");
	}
}

static void
basis_that_shrank_is_noticed(void **state)
{
	sb_autoclose int basis = file_with("01234", 5);
	static const char delta[] = DELTA_HEAD COPY_8_8 "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0a";
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf out;

	(void)state;
	assert_int_equal(apply(basis, 10, delta, sizeof delta, 10, &out, &err), SB_E_CORRUPT);
}

/* One short command per 512 bytes of basis, for ever. */
static ssize_t
endless_copies(const void **out, void *arg, struct sb_error *err)
{
	static uint8_t many[5 * 1000];
	bool *begun = arg;

	(void)err;
	if (!*begun) {
		*begun = true;
		*out = DELTA_HEAD;
		return 4;
	}
	for (size_t i = 0; i < sizeof many; i += 5)
		memcpy(many + i, "\x4a\0\0\2\0", 5); /* COPY, 2-byte offset 0, 2-byte length 512 */
	*out = many;
	return (ssize_t)sizeof many;
}

static void
amplification_and_endless_deltas_end(void **state)
{
	/* COPY of the whole basis (256 KiB), 4000 times: 1 GB from 52 KB */
	static uint8_t delta[4 + 4000 * 9 + 1];
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct sb_error err = { 0 };
	sb_autofree uint8_t *old = calloc(1, 256 << 10);
	sb_autoclose int basis = file_with(old, 256 << 10);
	struct pieces p = { delta, sizeof delta, 1000 };
	uint64_t got = 0;
	bool begun = false;

	(void)state;
	memcpy(delta, DELTA_HEAD, 4);
	for (size_t i = 0; i < 4000; i++)
		memcpy(delta + 4 + i * 9, "\x4f\0\0\0\0\0\4\0\0", 9); /* COPY 4+4 bytes */
	b.max_out = 3 << 20;
	assert_int_equal(
		sb_delta_apply(basis, 256 << 10, from_pieces, &p, &b, to_nothing, &got, NULL, &err),
		SB_E_LIMIT);
	assert_true(got <= 3 << 20);
	got = 0;
	b.max_out = UINT64_MAX;
	b.max_ms = 200;
	assert_int_equal(sb_delta_apply(basis, 256 << 10, endless_copies, &begun, &b, to_nothing,
				 &got, NULL, &err),
		SB_E_LIMIT);
	assert_true(got > 0);
}

/* ---- callers ---- */

static int
failing_sink(const void *data, size_t len, void *arg, struct sb_error *err)
{
	(void)data;
	(void)len;
	(void)arg;
	return sb_fail(err, SB_E_NOSPACE, "disk is full");
}

static ssize_t
failing_source(const void **out, void *arg, struct sb_error *err)
{
	(void)out;
	(void)arg;
	return sb_fail(err, SB_E_CLOSED, "link is gone");
}

static void
failures_of_callbacks_pass_through(void **state)
{
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct sb_error err = { 0 };
	struct pieces p = { (const uint8_t *)DELTA_HEAD "\x03"
							"abc",
		9, 100 };
	sb_autoclose int basis = file_with("0123456789", 10);

	(void)state;
	assert_int_equal(
		sb_delta_apply(basis, 10, from_pieces, &p, &b, failing_sink, NULL, NULL, &err),
		SB_E_NOSPACE);
	assert_string_equal(err.msg, "disk is full");
	assert_int_equal(
		sb_delta_apply(basis, 10, failing_source, NULL, &b, failing_sink, NULL, NULL, &err),
		SB_E_CLOSED);
	assert_string_equal(err.msg, "link is gone");
}

struct canceler {
	struct sb_cancel *cancel;
	uint64_t got;
};

static int
cancel_after_some(const void *data, size_t len, void *arg, struct sb_error *err)
{
	struct canceler *c = arg;

	(void)data;
	(void)err;
	c->got += len;
	sb_cancel_request(c->cancel);
	return 0;
}

static void
cancel_ends_it(void **state)
{
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct sb_error err = { 0 };
	struct canceler c = { sb_cancel_new(&err), 0 };
	sb_autofree uint8_t *old = calloc(1, 256 << 10);
	sb_autoclose int basis = file_with(old, 256 << 10);
	sb_auto(sb_buf) struct sb_buf sig;
	bool begun = false;

	(void)state;
	assert_non_null(c.cancel);
	assert_int_equal(sb_delta_apply(basis, 256 << 10, endless_copies, &begun, &b,
				 cancel_after_some, &c, c.cancel, &err),
		SB_E_CANCELED);
	assert_true(c.got > 0);
	sb_buf_init(&sig, 1 << 20);
	assert_int_equal(sb_delta_sign(basis, 256 << 10, &sig, c.cancel, &err), SB_E_CANCELED);
	sb_cancel_free(c.cancel);
}

/* ---- recipes ---- */

/* keep(old) -> delta to new -> old + delta = new. Gives the delta's length. */
static size_t
recipe_trip(const uint8_t *old, size_t old_len, const uint8_t *new, size_t new_len)
{
	struct sb_error err = { 0 };
	struct tmpdir dir;
	struct sb_digest was = sb_digest_of(old, old_len), is = sb_digest_of(new, new_len);
	sb_autoclose int a = file_with(old, old_len);
	sb_autoclose int b = file_with(new, new_len);
	sb_auto(sb_buf) struct sb_buf delta, back;

	tmpdir_make(&dir);
	sb_buf_init(&delta, 1 << 28);
	assert_false(sb_recipe_has(dir.fd, &was));
	assert_int_equal(sb_recipe_delta(dir.fd, &was, b, new_len, SIZE_MAX, &delta, NULL, &err),
		SB_E_NOTFOUND);
	assert_int_equal(delta.len, 0);
	assert_ok(sb_recipe_keep(dir.fd, &was, a, old_len, NULL, NULL, &err), &err);
	assert_true(sb_recipe_has(dir.fd, &was));
	assert_ok(sb_recipe_delta(dir.fd, &was, b, new_len, SIZE_MAX, &delta, NULL, &err), &err);
	assert_ok(apply(a, old_len, delta.data, delta.len, new_len, &back, &err), &err);
	assert_int_equal(back.len, new_len);
	if (new_len)
		assert_memory_equal(back.data, new, new_len);
	/* the next one takes its place */
	assert_ok(sb_recipe_keep(dir.fd, &is, b, new_len, &was, NULL, &err), &err);
	assert_true(sb_recipe_has(dir.fd, &is));
	assert_int_equal(sb_recipe_has(dir.fd, &was), sb_digest_eq(&is, &was));
	tmpdir_remove(&dir);
	return delta.len;
}

static void
recipes_give_the_new_file(void **state)
{
	size_t len = 3 << 20, n;
	sb_autofree uint8_t *old = malloc(len), *new = malloc(2 * len);

	(void)state;
	noise(old, len, 1);
	memcpy(new, old, len);
	assert_true(recipe_trip(old, len, new, len) < 64);
	/* lengths that are no multiple of a block, and next to nothing */
	assert_true(recipe_trip(old, len - 777, new, len - 777) < 64);
	(void)recipe_trip(old, len - 777, new, len);
	(void)recipe_trip(old, len, new, len - 1);
	(void)recipe_trip(old, 10, new, 3000);
	(void)recipe_trip(old, 3000, new, 10);
	(void)recipe_trip(old, 3000, new, 0);
	/* inserts and deletions here and there, one of them at the very beginning */
	n = 0;
	for (size_t at = 0, k = 0; at < len; k++) {
		size_t keep = k ? 90000 + 1000 * k : 0;

		keep = keep < len - at ? keep : len - at;
		memcpy(new + n, old + at, keep);
		n += keep;
		at += keep + (k % 3 == 1 && at + keep + 500 < len ? 500 : 0);
		noise(new + n, 20 + k, 100 + (unsigned)k);
		n += 20 + k;
	}
	assert_true(recipe_trip(old, len - 100, new, n) < 30 * 4096);
	/* halves swapped */
	memcpy(new, old + len / 2, len / 2);
	memcpy(new + len / 2, old, len / 2);
	assert_true(recipe_trip(old, len, new, len) < 256);
	/* nothing in common, and all the same */
	noise(new, len, 2);
	assert_true(recipe_trip(old, len, new, len) > len);
	memset(old, 0, len);
	memset(new, 0, 2 * len);
	assert_true(recipe_trip(old, len, new, 2 * len) < 2 * len / 2048 * 17 + 4096);
}

static void
recipes_are_not_believed(void **state)
{
	struct sb_error err = { 0 };
	struct tmpdir dir;
	size_t len = 200000;
	sb_autofree uint8_t *old = malloc(len);
	sb_auto(sb_buf) struct sb_buf delta;
	struct sb_digest d, other = { { 1 } };
	sb_autoclose int fd = -1, file = -1;
	char name[33];

	(void)state;
	tmpdir_make(&dir);
	noise(old, len, 3);
	d = sb_digest_of(old, len);
	fd = file_with(old, len);
	sb_buf_init(&delta, 1 << 20);
	/* content that is not what was said, or ends early */
	assert_int_equal(sb_recipe_keep(dir.fd, &other, fd, len, NULL, NULL, &err), SB_E_STATE);
	assert_int_equal(sb_recipe_keep(dir.fd, &d, fd, len + 1, NULL, NULL, &err), SB_E_STATE);
	assert_false(sb_recipe_has(dir.fd, &d));
	/* a limit */
	assert_ok(sb_recipe_keep(dir.fd, &d, fd, len, NULL, NULL, &err), &err);
	old[5000] ^= 1;
	(void)close(fd);
	fd = file_with(old, len);
	assert_int_equal(sb_recipe_delta(dir.fd, &d, fd, len, 100, &delta, NULL, &err), SB_E_LIMIT);
	/* a damaged one */
	file = openat(dir.fd, sb_str_hex(d.b, 16, name), O_RDWR);
	assert_true(file >= 0);
	assert_int_equal(pwrite(file, "x", 1, 100), 1);
	assert_int_equal(sb_recipe_delta(dir.fd, &d, fd, len, len, &delta, NULL, &err),
		SB_E_NOTFOUND);
	assert_int_equal(ftruncate(file, 3), 0);
	assert_int_equal(sb_recipe_delta(dir.fd, &d, fd, len, len, &delta, NULL, &err),
		SB_E_NOTFOUND);
	tmpdir_remove(&dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(deltas_give_the_new_file),
		cmocka_unit_test(signature_is_as_advised),
		cmocka_unit_test(threads_and_ignored_children_do_not_matter),
		cmocka_unit_test(signature_headers_are_checked),
		cmocka_unit_test(flooded_signatures_are_found_and_cost_no_more_than_the_budget),
		cmocka_unit_test(honest_repetition_is_no_flood),
		cmocka_unit_test(memory_is_limited),
		cmocka_unit_test(hostile_deltas_are_refused),
		cmocka_unit_test(basis_that_shrank_is_noticed),
		cmocka_unit_test(amplification_and_endless_deltas_end),
		cmocka_unit_test(failures_of_callbacks_pass_through),
		cmocka_unit_test(cancel_ends_it),
		cmocka_unit_test(recipes_give_the_new_file),
		cmocka_unit_test(recipes_are_not_believed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
