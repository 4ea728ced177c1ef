/* SPDX-License-Identifier: MIT */
/*
 * What the codec costs: the data stream of 50,000 small files, the base store of the same
 * files, patches and deltas. Times are processor time of the whole process and its
 * children unless they say "wall", so that other work on the machine distorts them
 * little.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <base/cursor.h>
#include <base/path.h>
#include <sync/codec/delta.h>
#include <sync/codec/pack.h>
#include <sync/codec/store.h>
#include <sync/codec/patch.h>

enum {
	FILES = 50000,
	FILE_LEN = 6700,
	CORPUS = 32 << 20,
	GETS = 500,
};

static uint8_t *corpus;

static double
wall(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double
seconds_of(int who)
{
	struct rusage u;

	(void)getrusage((__rusage_who_t)who, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double
cpu(void)
{
	return seconds_of(RUSAGE_SELF) + seconds_of(RUSAGE_CHILDREN);
}

static void
die(const char *what, const struct sb_error *err)
{
	(void)fprintf(stderr, "bench-codec: %s: %s\n", what, err->msg);
	exit(1);
}

/* Words and numbers, which shrink about as source text does. */
static void
make_corpus(void)
{
	static const char *const words[] = { "static", "int", "return", "struct", "(void)", "for (",
		"if (", " = ", ";\n\t", "->", "NULL", "buffer", "length", "error", "0x", "*/\n",
		"/* ", "const", "{\n", "}\n" };
	uint32_t x = 1;
	size_t at = 0;

	corpus = malloc(CORPUS + 64);
	if (!corpus)
		exit(1);
	while (at < CORPUS) {
		x = x * 1664525u + 1013904223u;
		if ((x >> 28) == 0)
			at += (size_t)snprintf((char *)corpus + at, 16, "name_%x",
				x >> 12 & 0xffff);
		else
			at += (size_t)snprintf((char *)corpus + at, 16, "%s ",
				words[(x >> 16) % 20]);
	}
}

/* ---- stream ---- */

struct block {
	enum sb_pack_codec codec;
	size_t raw_len, len;
	void *data;
};

struct blocks {
	struct block *v;
	size_t n, next, stored;
	uint64_t raw, wire;
	bool keep;
};

static int
take_block(enum sb_pack_codec codec, size_t raw_len, const void *data, size_t len, void *arg,
	struct sb_error *err)
{
	struct blocks *b = arg;

	b->raw += raw_len;
	b->wire += len;
	b->stored += codec == SB_PACK_STORED;
	if (b->keep) {
		struct block o = { codec, raw_len, len, malloc(len) };

		if (!o.data)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		memcpy(o.data, data, len);
		b->v[b->n] = o;
	}
	b->n++;
	return 0;
}

static int
give_block(enum sb_pack_codec *codec, size_t *raw_len, const void **data, size_t *len, void *arg,
	struct sb_error *err)
{
	struct blocks *b = arg;

	(void)err;
	if (b->next == b->n)
		return 0;
	*codec = b->v[b->next].codec;
	*raw_len = b->v[b->next].raw_len;
	*data = b->v[b->next].data;
	*len = b->v[b->next++].len;
	return 1;
}

static void
read_stream(struct blocks *b)
{
	struct sb_error err = { 0 };
	struct sb_pack_reader *r = sb_pack_reader_new(give_block, b, &err);
	struct sb_pack_entry e;
	const void *p;
	double c = cpu();
	int k = -1;

	while (r && (k = sb_pack_reader_next(r, &e, &err)) > 0)
		while (sb_pack_reader_read(r, &p, &err) > 0)
			;
	if (k < 0)
		die("read", &err);
	c = cpu() - c;
	sb_pack_reader_free(r);
	(void)printf("  read: %.0f ns an entry, %.0f MB/s\n", c / FILES * 1e9,
		(double)b->raw / c / 1e6);
}

static void
stream(const char *what, int level, bool keep)
{
	struct blocks b = { .keep = keep, .v = calloc(20000, sizeof(struct block)) };
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_pack_writer *w;
	double c = cpu(), t = wall(), own = seconds_of(RUSAGE_THREAD);

	o.level = level;
	o.out = take_block;
	o.arg = &b;
	w = sb_pack_writer_new(&o, &err);
	for (int i = 0; w && i < FILES; i++) {
		char path[64];
		struct sb_pack_entry e = { .path = path, .size = FILE_LEN, .file_size = FILE_LEN };
		const uint8_t *d = corpus + (size_t)i * FILE_LEN % (CORPUS - FILE_LEN);

		(void)snprintf(path, sizeof path, "source/part%03d/file%05d.c", i / 100, i);
		if (sb_pack_writer_begin(w, &e, &err) < 0 ||
			sb_pack_writer_data(w, d, FILE_LEN, &err) < 0 ||
			sb_pack_writer_end(w, &err) < 0)
			die("write", &err);
	}
	if (!w || sb_pack_writer_finish(w, &err) < 0)
		die("write", &err);
	own = seconds_of(RUSAGE_THREAD) - own;
	(void)printf("%s: %.3f s cpu, %.3f s wall, feeding thread %.0f ns an entry; %.0f "
		     "MB -> %.0f MB, %zu of %zu blocks "
		     "stored\n",
		what, cpu() - c, wall() - t, own / FILES * 1e9, (double)b.raw / 1e6,
		(double)b.wire / 1e6, b.stored, b.n);
	sb_pack_writer_free(w);
	if (keep)
		read_stream(&b);
	for (size_t i = 0; keep && i < b.n; i++)
		free(b.v[i].data);
	free(b.v);
}

/* ---- store ---- */

static size_t
content(int i, uint8_t *to)
{
	memcpy(to, corpus + (size_t)i * FILE_LEN % (CORPUS - FILE_LEN), FILE_LEN);
	memcpy(to, &i, sizeof i);
	return FILE_LEN;
}

static void
look_up(struct sb_store *s, const char *what, int step)
{
	static uint8_t data[FILE_LEN];
	double c = cpu(), t = wall(), spent = 0;

	for (int i = 0; i < GETS; i++) {
		double before = cpu();
		size_t len = content(i * step % FILES, data);
		struct sb_digest d = sb_digest_of(data, len);
		struct sb_error err = { 0 };
		sb_auto(sb_buf) struct sb_buf got;

		spent += cpu() - before;
		if (sb_store_get(s, &d, &got, &err) < 0)
			die("get", &err);
	}
	(void)printf("  get %d %s: %.1f ms cpu, %.1f ms wall\n", GETS, what,
		(cpu() - c - spent) * 1e3, (wall() - t) * 1e3);
}

static void
store(void)
{
	char path[] = "/tmp/sb-bench-codec-XXXXXX";
	static uint8_t data[FILE_LEN];
	struct sb_error err = { 0 };
	int dir = mkdtemp(path) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sb_store *s = sb_store_open(dir, NULL, &err);
	double c = cpu(), t;

	for (int i = 0; s && i < FILES; i++) {
		size_t len = content(i, data);
		struct sb_digest d = sb_digest_of(data, len);

		if (sb_store_add(s, &d, data, len, &err) < 0)
			die("add", &err);
	}
	if (!s || sb_store_flush(s, NULL, NULL, &err) < 0)
		die("store", &err);
	(void)printf("store: add %d files %.3f s cpu, %.0f MB on disk\n", FILES, cpu() - c,
		(double)sb_store_bytes(s) / 1e6);
	sb_store_free(s);
	c = cpu();
	t = wall();
	s = sb_store_open(dir, NULL, &err);
	if (!s)
		die("open", &err);
	(void)printf("  open: %.1f ms cpu, %.1f ms wall\n", (cpu() - c) * 1e3, (wall() - t) * 1e3);
	look_up(s, "scattered", 97 * 103);
	look_up(s, "in order", 1);
	sb_store_free(s);
	(void)close(dir);
	(void)sb_path_remove_tree(tmp, path + 5, NULL);
	(void)close(tmp);
}

/* ---- patch, delta ---- */

/* The first `len` bytes of the corpus with ten insertions. */
static size_t
edited(size_t len, uint8_t *to)
{
	size_t at = 0;

	for (size_t i = 0; i < 10; i++) {
		memcpy(to + at, corpus + len / 10 * i, len / 10);
		at += len / 10;
		memcpy(to + at, "some more", 9);
		at += 9;
	}
	return at;
}

static void
patch(size_t len, int rounds)
{
	sb_autofree uint8_t *new = malloc(len + 100), *back = malloc(len + 100);
	size_t n = new ? edited(len, new) : 0;
	struct sb_error err = { 0 };
	double c = cpu(), made;
	sb_auto(sb_buf) struct sb_buf p;

	sb_buf_init(&p, 1 << 28);
	for (int i = 0; i < rounds; i++) {
		sb_buf_reset(&p);
		if (sb_patch_make(corpus, len, new, n, 3, &p, &err) < 0)
			die("patch", &err);
	}
	made = cpu() - c;
	c = cpu();
	for (int i = 0; i < rounds; i++)
		if (sb_patch_apply(corpus, len, p.data, p.len, back, n, &err) < 0)
			die("patch", &err);
	(void)printf("patch of %zu bytes, 10 edits: %zu bytes, make %.0f us, apply %.0f us\n", n,
		p.len, made / rounds * 1e6, (cpu() - c) / rounds * 1e6);
}

static int
keep(const void *data, size_t len, void *arg, struct sb_error *err)
{
	sb_buf_add(arg, data, len);
	return sb_buf_check(arg, "result", err);
}

static ssize_t
give(const void **out, void *arg, struct sb_error *err)
{
	struct sb_cursor *c = arg;
	size_t n = sb_cursor_left(c) < 65536 ? sb_cursor_left(c) : 65536;

	(void)err;
	*out = sb_cursor_take(c, n);
	return (ssize_t)n;
}

static void
delta(size_t len)
{
	sb_autofree uint8_t *new = malloc(len + 100);
	size_t n = new ? edited(len, new) : 0;
	sb_autoclose int a = memfd_create("old", MFD_CLOEXEC), b = memfd_create("new", MFD_CLOEXEC);
	struct sb_delta_budget budget = SB_DELTA_BUDGET_INIT;
	struct sb_error err = { 0 };
	struct sb_cursor from;
	double t[4];
	sb_auto(sb_buf) struct sb_buf sig, d, back;

	sb_buf_init(&sig, 1 << 28);
	sb_buf_init(&d, 1 << 28);
	sb_buf_init(&back, 1 << 28);
	if (pwrite(a, corpus, len, 0) != (ssize_t)len || pwrite(b, new, n, 0) != (ssize_t)n)
		exit(1);
	t[0] = cpu();
	if (sb_delta_sign(a, len, &sig, NULL, &err) < 0)
		die("sign", &err);
	t[1] = cpu();
	if (sb_delta_make(sig.data, sig.len, b, &budget, keep, &d, NULL, &err) < 0)
		die("delta", &err);
	t[2] = cpu();
	sb_cursor_init(&from, d.data, d.len);
	if (sb_delta_apply(a, len, give, &from, &budget, keep, &back, NULL, &err) < 0)
		die("apply", &err);
	t[3] = cpu();
	(void)printf("delta of %zu bytes, 10 edits: signature %zu, delta %zu bytes; sign "
		     "%.2f ms, make %.2f ms, apply %.2f "
		     "ms\n",
		n, sig.len, d.len, (t[1] - t[0]) * 1e3, (t[2] - t[1]) * 1e3, (t[3] - t[2]) * 1e3);
}

int
main(void)
{
	make_corpus();
	stream("stream, stored", 0, true);
	stream("stream, level 1", 1, true);
	stream("stream, level 3", 3, false);
	stream("stream, automatic, a sink without limit", SB_PACK_LEVEL_AUTO, false);
	store();
	patch(FILE_LEN, 1000);
	patch(1 << 20, 20);
	patch(CORPUS, 1);
	delta(64 << 10);
	delta(1 << 20);
	delta(CORPUS);
	free(corpus);
	return 0;
}
