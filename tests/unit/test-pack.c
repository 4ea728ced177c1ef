/* SPDX-License-Identifier: MIT */
/*
 * The packed stream of files: any tar reads it, any cut of it reads the same, and a failing link
 * ends it.
 */
#include "config.h"

#include <locale.h>

#include <base/spawn.h>
#include <sync/codec/pack.h>

#include "tests/lib/blocks.h"
#include "tests/lib/unit.h"

/* Bytes that depend on the seed: text-like (shrinks) or noise (does not). */
static uint8_t *
make_data(size_t len, uint32_t seed, bool noise)
{
	uint8_t *d = malloc(len + 1);
	uint32_t x = seed * 2654435761u + 1;

	assert_non_null(d);
	for (size_t i = 0; i < len; i++) {
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
		d[i] = noise ? (uint8_t)(x >> 11) :
			       (uint8_t) "etaoin shrdlu\n{}"[(x >> 9) & (i & 64 ? 3 : 15)];
	}
	return d;
}

static char *
long_path(size_t len, size_t part)
{
	char *p = malloc(len + 1);

	assert_non_null(p);
	for (size_t i = 0; i < len; i++)
		p[i] = i % (part + 1) == part && i + 1 < len ? '/' : (char)('a' + i % 26);
	p[len] = 0;
	return p;
}

static const char *const odd_names[] = {
	"a",
	"caf\xc3\xa9",
	"cafe\xcc\x81",
	"\xff\xfe",
	"new\nline",
	"tab\tname",
	" lead",
	"trail ",
	"-rf",
	"a\\b",
	"*?[",
	"..a",
	"a..",
	".git/x",
	"d/\x01\x1b[31m",
	"@LongLink",
	"PaxHeader/x",
	"GNUSparseFile.0/x",
	("\xe2\x80\xae"
	 "evil"),
	"d/\xc0\x80",
	"\xf0\x9f\x98\x80",
	"=10 path=x",
};

static const size_t odd_sizes[] = { 0, 1, 511, 512, 513, 1023, 1024, 1025, 70000, 1 << 20 };

#define N(a) (sizeof(a) / sizeof(a)[0])

/*
 * Checks that the stream is those names with those sizes (size i for name i), all of it.
 */
static void
check_names(struct blocks *b, char **names, size_t n)
{
	struct sb_error err = { 0 };
	sb_auto(sb_pack_reader) struct sb_pack_reader *r = sb_pack_reader_new(blocks_in, b, &err);
	struct sb_pack_entry e;

	for (size_t i = 0; i < n; i++) {
		size_t len = odd_sizes[i % N(odd_sizes)];
		sb_autofree uint8_t *want = make_data(len, (uint32_t)i, i % 3 == 2);
		const void *got;
		size_t at = 0;
		ssize_t k;

		assert_ok(sb_pack_reader_next(r, &e, &err), &err);
		assert_string_equal(e.path, names[i]);
		assert_int_equal(e.kind, SB_PACK_WHOLE);
		assert_int_equal(e.size, len);
		assert_int_equal(e.file_size, len);
		while ((k = sb_pack_reader_read(r, &got, &err)) > 0) {
			assert_true((size_t)k <= len - at);
			assert_memory_equal(got, want + at, k);
			at += (size_t)k;
		}
		assert_int_equal(k, 0);
		assert_int_equal(at, len);
	}
	assert_int_equal(sb_pack_reader_next(r, &e, &err), 0);
	assert_int_equal(sb_pack_reader_next(r, &e, &err), 0);
}

static char **
all_names(size_t *n)
{
	static const size_t lengths[] = { 99, 100, 101, 155, 156, 255, 256, 257, 300, 1000, 4095,
		9000 };
	char **v = calloc(N(odd_names) + 2 * N(lengths), sizeof *v);

	assert_non_null(v);
	*n = 0;
	for (size_t i = 0; i < N(odd_names); i++)
		v[(*n)++] = strdup(odd_names[i]);
	for (size_t i = 0; i < N(lengths); i++) {
		v[(*n)++] = long_path(lengths[i], 254);
		v[(*n)++] = long_path(lengths[i], 7);
		v[*n - 1][3] = (char)0xff;
	}
	return v;
}

static void
names_and_sizes_round_trip(void **state)
{
	static const struct {
		int level;
		size_t block;
	} ways[] = { { SB_PACK_LEVEL_AUTO, 0 }, { 0, 0 }, { 0, 1 << 14 }, { 1, 4096 }, { 3, 65536 },
		{ 19, 0 }, { 1, 777 } };
	size_t n;
	char **names = all_names(&n);

	(void)state;
	for (size_t w = 0; w < N(ways); w++) {
		struct blocks b;
		struct sb_pack_writer *pw;
		struct sb_error err = { 0 };

		blocks_init(&b);
		pw = blocks_writer(&b, ways[w].level, ways[w].block);
		for (size_t i = 0; i < n; i++) {
			size_t len = odd_sizes[i % N(odd_sizes)];
			sb_autofree uint8_t *d = make_data(len, (uint32_t)i, i % 3 == 2);

			put_whole(pw, names[i], d, len);
		}
		assert_ok(sb_pack_writer_finish(pw, &err), &err);
		sb_pack_writer_free(pw);
		check_names(&b, names, n);
		blocks_free(&b);
	}
	for (size_t i = 0; i < n; i++)
		free(names[i]);
	free(names);
}

/* A program may have set a locale; names are bytes all the same. */
static void
names_are_bytes_in_any_locale(void **state)
{
	if (!setlocale(LC_ALL, "C.UTF-8"))
		skip_because("no locale C.UTF-8");
	names_and_sizes_round_trip(state);
	(void)setlocale(LC_ALL, "C");
}

static void
any_cut_of_the_stream_reads_the_same(void **state)
{
	static const size_t pieces[] = { 1, 2, 3, 7, 511, 512, 513, 4095, 1 << 20 };
	char *names[] = { (char *)"a", (char *)"caf\xc3\xa9", NULL };
	struct blocks b;
	struct sb_pack_writer *pw;
	struct sb_error err = { 0 };
	sb_autofree uint8_t *raw = NULL;
	size_t len;

	(void)state;
	names[2] = long_path(400, 100);
	blocks_init(&b);
	pw = blocks_writer(&b, 3, 0);
	for (size_t i = 0; i < N(names); i++) {
		sb_autofree uint8_t *d = make_data(odd_sizes[i], (uint32_t)i, i % 3 == 2);

		put_whole(pw, names[i], d, odd_sizes[i]);
	}
	assert_ok(sb_pack_writer_finish(pw, &err), &err);
	sb_pack_writer_free(pw);
	raw = blocks_raw(&b, &len);
	assert_int_equal(len % 512, 0);
	for (size_t i = 0; i < N(pieces); i++) {
		struct blocks cut;

		blocks_init(&cut);
		blocks_cut(&cut, raw, len, pieces[i]);
		check_names(&cut, names, N(names));
		blocks_free(&cut);
	}
	blocks_free(&b);
	free(names[2]);
}

static const struct sb_pack_entry kinds[] = {
	{ .path = "p",
		.size = 5,
		.file_size = 9000,
		.kind = SB_PACK_PATCH,
		.base = { { 1, 2, 0xff } } },
	{ .path = "d/\xff",
		.size = 700,
		.file_size = 1ull << 40,
		.kind = SB_PACK_DELTA,
		.base = { { 0xab } } },
	{ .path = "r",
		.size = 100,
		.file_size = (5ull << 30) + 100,
		.kind = SB_PACK_RANGE,
		.base = { { 0xcd, 3 } },
		.offset = 5ull << 30 },
	{ .path = "s", .size = 3, .file_size = INT64_MAX, .kind = SB_PACK_SPARSE },
	{ .path = "w", .size = 4, .file_size = 4, .kind = SB_PACK_WHOLE },
};

static const uint8_t raw_zeros[1000];

static void
kinds_keep_their_attributes(void **state)
{
	struct blocks b;
	struct sb_pack_writer *pw;
	struct sb_pack_reader *r;
	struct sb_error err = { 0 };
	struct sb_pack_entry e;

	(void)state;
	blocks_init(&b);
	pw = blocks_writer(&b, 3, 0);
	for (size_t i = 0; i < N(kinds); i++) {
		assert_ok(sb_pack_writer_begin(pw, &kinds[i], &err), &err);
		assert_ok(sb_pack_writer_data(pw, raw_zeros, kinds[i].size, &err), &err);
		assert_ok(sb_pack_writer_end(pw, &err), &err);
	}
	assert_ok(sb_pack_writer_finish(pw, &err), &err);
	sb_pack_writer_free(pw);
	r = sb_pack_reader_new(blocks_in, &b, &err);
	for (size_t i = 0; i < N(kinds); i++) { /* the data is not read: next skips it */
		assert_int_equal(sb_pack_reader_next(r, &e, &err), 1);
		assert_string_equal(e.path, kinds[i].path);
		assert_int_equal(e.kind, kinds[i].kind);
		assert_true(e.size == kinds[i].size && e.file_size == kinds[i].file_size);
		assert_true(e.offset == kinds[i].offset && sb_digest_eq(&e.base, &kinds[i].base));
	}
	assert_int_equal(sb_pack_reader_next(r, &e, &err), 0);
	sb_pack_reader_free(r);
	blocks_free(&b);
}

static int
have_tar(void)
{
	const char *const argv[] = { "tar", "--version", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;

	o.search_path = true;
	return sb_child_run(argv, &o, NULL, 0, NULL, NULL, NULL, SB_NEVER, NULL) == 0;
}

/* The system's tar lists the stream: every kind of entry, long and odd names, the end. */
static void
any_tar_reads_the_stream(void **state)
{
	const char *const argv[] = { "tar", "--quoting-style=literal", "-tf", "-", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };
	struct blocks b;
	struct sb_pack_writer *pw;
	sb_autofree uint8_t *raw = NULL;
	sb_autofree char *path = NULL;
	sb_auto(sb_buf) struct sb_buf out, want, said;
	size_t len;

	(void)state;
	if (!have_tar())
		skip_because("no tar");
	sb_buf_init(&out, 1 << 16);
	sb_buf_init(&want, 1 << 16);
	sb_buf_init(&said, 1 << 16);
	path = long_path(600, 200);
	blocks_init(&b);
	pw = blocks_writer(&b, 3, 0);
	put_whole(pw, "a/\xff name", "x", 1);
	put_whole(pw, path, "", 0);
	for (size_t i = 0; i < N(kinds); i++) {
		assert_ok(sb_pack_writer_begin(pw, &kinds[i], &err), &err);
		assert_ok(sb_pack_writer_data(pw, raw_zeros, kinds[i].size, &err), &err);
		assert_ok(sb_pack_writer_end(pw, &err), &err);
	}
	assert_ok(sb_pack_writer_finish(pw, &err), &err);
	sb_pack_writer_free(pw);
	sb_buf_addf(&want, "a/\xff name\n%s\np\nd/\xff\nr\ns\nw\n", path);
	raw = blocks_raw(&b, &len);
	o.search_path = true;
	o.io[0] = o.io[1] = o.io[2] = SB_SPAWN_PIPE;
	assert_int_equal(
		sb_child_run(argv, &o, raw, len, &out, &said, NULL, sb_deadline_in(20000), &err),
		0);
	assert_string_equal((char *)out.data, (char *)want.data);
	blocks_free(&b);
}

/* Sizes beyond what ustar and 32 bits can say, looked at without their data. */
static void
large_sizes_fit_the_header(void **state)
{
	static const uint64_t sizes[] = { 5ull << 30, (8ull << 30) - 1, 8ull << 30, 1ull << 45 };

	(void)state;
	for (size_t i = 0; i < N(sizes); i++) {
		struct sb_pack_entry e = { .path = "big", .size = sizes[i], .file_size = sizes[i] };
		struct sb_error err = { 0 };
		struct blocks b;
		struct sb_pack_writer *pw;
		struct sb_pack_reader *r;
		const void *data;
		ssize_t n;
		static const uint8_t some[4096];

		blocks_init(&b);
		pw = blocks_writer(&b, 0, 512);
		assert_ok(sb_pack_writer_begin(pw, &e, &err), &err);
		assert_ok(sb_pack_writer_data(pw, some, sizeof some, &err), &err);
		blocks_wait(&b, 4);
		sb_pack_writer_free(pw);
		r = sb_pack_reader_new(blocks_in, &b, &err);
		assert_int_equal(sb_pack_reader_next(r, &e, &err), 1);
		assert_true(e.size == sizes[i]);
		while ((n = sb_pack_reader_read(r, &data, &err)) > 0)
			;
		assert_int_equal(n, SB_E_PROTO);
		sb_pack_reader_free(r);
		blocks_free(&b);
	}
}

static void
empty_archive_is_fine(void **state)
{
	struct blocks b;
	struct sb_pack_writer *pw;
	struct sb_error err = { 0 };
	size_t entries;

	(void)state;
	blocks_init(&b);
	pw = blocks_writer(&b, SB_PACK_LEVEL_AUTO, 0);
	assert_ok(sb_pack_writer_finish(pw, &err), &err);
	sb_pack_writer_free(pw);
	assert_int_equal(read_all(&b, &entries, &err), 0);
	assert_int_equal(entries, 0);
	blocks_free(&b);
}

static void
noise_is_stored_and_text_shrinks(void **state)
{
	static const int levels[] = { 1, 3, 9 };

	(void)state;
	for (size_t i = 0; i < N(levels); i++) {
		struct blocks b;
		struct sb_pack_writer *pw;
		struct sb_error err = { 0 };
		size_t stored = 0, packed = 0;
		sb_autofree uint8_t *noise = make_data(4 << 20, 1, true);
		sb_autofree uint8_t *text = make_data(4 << 20, 2, false);

		blocks_init(&b);
		pw = blocks_writer(&b, levels[i], 256 << 10);
		put_whole(pw, "noise", noise, 4 << 20);
		put_whole(pw, "text", text, 4 << 20);
		assert_ok(sb_pack_writer_finish(pw, &err), &err);
		sb_pack_writer_free(pw);
		for (size_t k = 0; k < b.n; k++) {
			stored += b.v[k].codec == SB_PACK_STORED;
			packed += b.v[k].codec == SB_PACK_ZSTD;
			assert_true(b.v[k].len <= b.v[k].raw_len);
		}
		assert_in_range(stored, 15, 17);
		assert_in_range(packed, 16, 18);
		blocks_free(&b);
	}
}

static void
lengths_must_be_kept(void **state)
{
	struct sb_pack_entry e = { .path = "x", .size = 10, .file_size = 10 };
	struct sb_error err = { 0 };
	struct blocks b;
	struct sb_pack_writer *pw;

	(void)state;
	blocks_init(&b);
	pw = blocks_writer(&b, 0, 0);
	assert_int_equal(sb_pack_writer_data(pw, "x", 1, &err), SB_E_STATE);
	assert_ok(sb_pack_writer_begin(pw, &e, &err), &err);
	assert_int_equal(sb_pack_writer_begin(pw, &e, &err), SB_E_STATE);
	assert_int_equal(sb_pack_writer_finish(pw, &err), SB_E_STATE);
	assert_int_equal(sb_pack_writer_data(pw, "01234567890", 11, &err), SB_E_INVAL);
	assert_int_equal(sb_pack_writer_end(pw, &err), SB_E_INVAL);
	sb_pack_writer_free(pw);
	pw = blocks_writer(&b, 0, 0);
	assert_ok(sb_pack_writer_begin(pw, &e, &err), &err);
	assert_ok(sb_pack_writer_data(pw, "0123", 4, &err), &err);
	assert_int_equal(sb_pack_writer_end(pw, &err), SB_E_INVAL);
	assert_string_equal(err.msg, "entry ends 6 bytes short");
	assert_int_equal(sb_pack_writer_finish(pw, &err), SB_E_INVAL);
	sb_pack_writer_free(pw);
	blocks_free(&b);
}

static void
failing_link_sticks(void **state)
{
	sb_autofree uint8_t *data = make_data(1 << 20, 5, false);

	(void)state;
	for (size_t at = 0; at < 4; at++) {
		struct sb_pack_entry e = { .path = "x", .size = 1 << 20, .file_size = 1 << 20 };
		struct sb_error err = { 0 };
		struct blocks b;
		struct sb_pack_writer *pw;
		int r = 0;

		blocks_init(&b);
		b.fail_at = at;
		pw = blocks_writer(&b, at % 2 ? 0 : 1, 64 << 10);
		for (int i = 0; i < 20 && r >= 0; i++) {
			r = sb_pack_writer_begin(pw, &e, &err);
			if (r >= 0)
				r = sb_pack_writer_data(pw, data, 1 << 20, &err);
			if (r >= 0)
				r = sb_pack_writer_end(pw, &err);
		}
		assert_int_equal(r, SB_E_CLOSED);
		memset(&err, 0, sizeof err);
		assert_int_equal(sb_pack_writer_finish(pw, &err), SB_E_CLOSED);
		assert_non_null(strstr(err.msg, "the link is gone"));
		assert_int_equal(b.n, at);
		sb_pack_writer_free(pw);
		blocks_free(&b);
	}
}

/* A link that takes nothing until the test is over. */
static int
stuck_out(enum sb_pack_codec codec, size_t raw_len, const void *data, size_t len, void *arg,
	struct sb_error *err)
{
	pthread_mutex_t *held = arg;

	(void)codec;
	(void)raw_len;
	(void)data;
	(void)len;
	pthread_mutex_lock(held);
	pthread_mutex_unlock(held);
	return sb_fail(err, SB_E_CANCELED, "canceled");
}

static void
cancel_ends_the_wait_for_a_stuck_link(void **state)
{
	struct sb_pack_entry e = { .path = "x", .size = 64 << 20, .file_size = 64 << 20 };
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;
	pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;
	struct sb_error err = { 0 };
	struct sb_cancel *cancel = sb_cancel_new(&err);
	struct sb_pack_writer *pw;
	sb_autofree uint8_t *data = make_data(1 << 20, 5, false);
	int r = 0;

	(void)state;
	assert_non_null(cancel);
	pthread_mutex_lock(&held);
	o.out = stuck_out;
	o.arg = &held;
	o.cancel = cancel;
	pw = sb_pack_writer_new(&o, &err);
	assert_ok(sb_pack_writer_begin(pw, &e, &err), &err);
	sb_cancel_request(cancel);
	for (int i = 0; i < 64 && r >= 0; i++)
		r = sb_pack_writer_data(pw, data, 1 << 20, &err);
	assert_int_equal(r, SB_E_CANCELED);
	pthread_mutex_unlock(&held);
	sb_pack_writer_free(pw);
	sb_cancel_free(cancel);
}

static void
bad_level_is_named(void **state)
{
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;
	struct sb_error err = { 0 };

	(void)state;
	o.out = blocks_out;
	o.level = 20;
	assert_null(sb_pack_writer_new(&o, &err));
	assert_int_equal(err.code, SB_E_INVAL);
	assert_string_equal(err.msg, "compression level 20: must be 0 to 19");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_sizes_round_trip),
		cmocka_unit_test(names_are_bytes_in_any_locale),
		cmocka_unit_test(any_cut_of_the_stream_reads_the_same),
		cmocka_unit_test(kinds_keep_their_attributes),
		cmocka_unit_test(any_tar_reads_the_stream),
		cmocka_unit_test(large_sizes_fit_the_header),
		cmocka_unit_test(empty_archive_is_fine),
		cmocka_unit_test(noise_is_stored_and_text_shrinks),
		cmocka_unit_test(lengths_must_be_kept),
		cmocka_unit_test(failing_link_sticks),
		cmocka_unit_test(cancel_ends_the_wait_for_a_stuck_link),
		cmocka_unit_test(bad_level_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
