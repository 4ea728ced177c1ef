/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of the codec fails once: SB_E_NOMEM, or a way around it, and nothing
 * left behind.
 */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include <sync/codec/delta.h>
#include <sync/codec/pack.h>
#include <sync/codec/store.h>
#include <sync/codec/patch.h>

#include "tests/lib/nomem.h"
#include "tests/lib/tmpdir.h"

/* ---- pack ---- */

/* Blocks in fixed memory, so that the test itself allocates nothing. */
struct stream {
	struct {
		enum sb_pack_codec codec;
		size_t raw_len, len;
		uint8_t data[8192];
	} v[40];
	size_t n, next;
};

static struct stream stream;

static int
keep_block(enum sb_pack_codec codec, size_t raw_len, const void *data, size_t len, void *arg,
	struct sb_error *err)
{
	struct stream *s = arg;

	(void)err;
	assert_true(s->n < 40 && len <= sizeof s->v[0].data);
	s->v[s->n].codec = codec;
	s->v[s->n].raw_len = raw_len;
	s->v[s->n].len = len;
	memcpy(s->v[s->n++].data, data, len);
	return 0;
}

static int
give_block(enum sb_pack_codec *codec, size_t *raw_len, const void **data, size_t *len, void *arg,
	struct sb_error *err)
{
	struct stream *s = arg;

	(void)err;
	if (s->next == s->n)
		return 0;
	*codec = s->v[s->next].codec;
	*raw_len = s->v[s->next].raw_len;
	*data = s->v[s->next].data;
	*len = s->v[s->next++].len;
	return 1;
}

static int
write_stream(void *arg, struct sb_error *err)
{
	static const char text[20000] = "some text";
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;
	sb_auto(sb_pack_writer) struct sb_pack_writer *w = NULL;
	struct sb_pack_entry e = { .path = "file", .size = sizeof text, .file_size = sizeof text };
	int r = 0;

	stream.n = 0;
	o.level = 1;
	o.block_size = 8192;
	o.jobs = 2;
	o.out = keep_block;
	o.arg = &stream;
	w = sb_pack_writer_new(&o, err);
	if (!w)
		return err->code;
	for (int i = 0; i < 3 && r >= 0; i++) {
		e.kind = i == 1 ? SB_PACK_SPARSE : SB_PACK_WHOLE;
		r = sb_pack_writer_begin(w, &e, err);
		if (r >= 0)
			r = sb_pack_writer_data(w, text, sizeof text, err);
		if (r >= 0)
			r = sb_pack_writer_end(w, err);
	}
	return r < 0 ? r : sb_pack_writer_finish(w, err);
}

static int
read_stream(void *arg, struct sb_error *err)
{
	sb_auto(sb_pack_reader) struct sb_pack_reader *r =
		sb_pack_reader_new(give_block, &stream, err);
	struct sb_pack_entry e;
	const void *p;
	ssize_t n;
	int k;

	if (!r)
		return err->code;
	stream.next = 0;
	while ((k = sb_pack_reader_next(r, &e, err)) > 0) {
		while ((n = sb_pack_reader_read(r, &p, err)) > 0)
			;
		if (n < 0)
			return (int)n;
	}
	return k;
}

static void
streams(void **state)
{
	struct sb_error err = { 0 };

	(void)state;
	assert_true(nomem_every(write_stream, NULL, 1) > 5);
	assert_ok(write_stream(NULL, &err), &err);
	assert_true(nomem_every(read_stream, NULL, 0) >= 2);
}

/* ---- patch, signature ---- */

static int
make_patch(void *arg, struct sb_error *err)
{
	static const char base[5000] = "base", data[5000] = "data";
	static char back[5000];
	sb_auto(sb_buf) struct sb_buf p;
	int r;

	sb_buf_init(&p, 1 << 20);
	r = sb_patch_make(base, sizeof base, data, sizeof data, 1, &p, err);
	if (r >= 0)
		r = sb_patch_apply(base, sizeof base, p.data, p.len, back, sizeof back, err);
	return r;
}

static int
make_signature(void *arg, struct sb_error *err)
{
	int fd = *(int *)arg;
	sb_auto(sb_buf) struct sb_buf sig;
	int r;

	sb_buf_init(&sig, 1 << 20);
	r = sb_delta_sign(fd, 100000, &sig, NULL, err);
	if (r >= 0)
		r = sb_delta_check_sig(sig.data, sig.len, 100000, err);
	return r;
}

static void
patches_and_signatures(void **state)
{
	struct tmpdir *t = *state;
	int fd = openat(t->fd, "file", O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	assert_true(fd >= 0 && ftruncate(fd, 100000) == 0);
	assert_true(nomem_every(make_patch, NULL, 0) >= 1);
	assert_true(nomem_every(make_signature, &fd, 0) >= 5);
	(void)close(fd);
}

/* ---- store ---- */

static size_t
content(unsigned i, uint8_t *to)
{
	for (size_t k = 0; k < 3000 + i * 10; k++)
		to[k] = (uint8_t)(k * i >> 3);
	return 3000 + i * 10;
}

static int
use_store(void *arg, struct sb_error *err)
{
	struct tmpdir *t = arg;
	struct sb_store_opts o = SB_STORE_OPTS_INIT;
	static uint8_t data[5000];
	struct sb_store *s;
	int r = 0;

	o.cap = 200000;
	s = sb_store_open(t->fd, &o, err);
	if (!s)
		return err->code;
	for (unsigned i = 0; i < 150 && r >= 0; i++) {
		size_t len = content(i, data);
		struct sb_digest d = sb_digest_of(data, len);
		sb_auto(sb_buf) struct sb_buf got;

		r = sb_store_add(s, &d, data, len, err);
		if (r >= 0)
			r = sb_store_get(s, &d, &got, err);
		else
			sb_buf_init(&got, 0);
		if (r >= 0)
			assert_memory_equal(got.data, data, len);
	}
	if (r >= 0)
		r = sb_store_flush(s, NULL, NULL, err);
	sb_store_free(s);
	return r;
}

static void
stores(void **state)
{
	assert_true(nomem_every(use_store, *state, 1) > 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams),
		cmocka_unit_test_setup_teardown(patches_and_signatures, tmpdir_setup,
			tmpdir_teardown),
		cmocka_unit_test_setup_teardown(stores, tmpdir_setup, tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
