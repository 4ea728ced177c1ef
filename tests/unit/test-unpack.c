/* SPDX-License-Identifier: MIT */
/*
 * The process that unpacks what a sandbox sent: what it can do, and what becomes of a sync when it
 * dies. That it reads streams as a reader in this process does: test-pack-confined and
 * test-pack-hostile-confined. What it cannot do at all: test-delta-child.
 */
#include "config.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include <base/work.h>
#include <sync/codec/patch.h>
#include <sync/codec/unpack.h>

#include "tests/lib/blocks.h"
#include "tests/lib/unit.h"

static const char text[] = "content of one file, which goes over as it is\n";

static void
stream(struct blocks *b, size_t files)
{
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_pack_writer *w;

	blocks_init(b);
	o.out = blocks_out;
	o.arg = b;
	o.block_size = 4096;
	o.level = 1;
	w = sb_pack_writer_new(&o, &err);
	assert_non_null(w);
	for (size_t i = 0; i < files; i++) {
		char path[40];
		struct sb_pack_entry e = { .path = path,
			.size = sizeof text,
			.file_size = sizeof text };

		(void)snprintf(path, sizeof path, "dir/file-%zu", i);
		assert_ok(sb_pack_writer_begin(w, &e, &err), &err);
		assert_ok(sb_pack_writer_data(w, text, sizeof text, &err), &err);
		assert_ok(sb_pack_writer_end(w, &err), &err);
	}
	assert_ok(sb_pack_writer_finish(w, &err), &err);
	sb_pack_writer_free(w);
}

static long
status_of(int pid, const char *field)
{
	char path[64], line[200];
	long value = -1;
	FILE *f;

	(void)snprintf(path, sizeof path, "/proc/%d/status", pid);
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, field, strlen(field)) == 0)
			value = strtol(line + strlen(field), NULL, 10);
	(void)fclose(f);
	return value;
}

static size_t
descriptors_of(int pid)
{
	char path[64];
	DIR *d;
	size_t n = 0;

	(void)snprintf(path, sizeof path, "/proc/%d/fd", pid);
	d = opendir(path);
	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2;
}

static void
it_is_a_process_that_holds_nothing(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_unpack) struct sb_unpack *u = sb_unpack_new(&err);
	struct sb_pack_reader *r;
	struct sb_pack_entry e;
	struct blocks b;

	(void)state;
	assert_non_null(u);
	assert_int_equal(sb_unpack_pid(u), 0);
	stream(&b, 3);
	r = sb_pack_reader_confined(u, blocks_in, &b, &err);
	assert_non_null(r);
	assert_int_equal(sb_pack_reader_next(r, &e, &err), 1);
	assert_string_equal(e.path, "dir/file-0");
	assert_true(sb_unpack_pid(u) > 0 && sb_unpack_pid(u) != getpid());
	assert_int_equal(status_of(sb_unpack_pid(u), "NoNewPrivs:"), 1);
	assert_int_equal(descriptors_of(sb_unpack_pid(u)), 4); /* its socket, three times null */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && defined(__x86_64__)
	assert_true(sb_unpack_is_confined(u));
	assert_int_equal(status_of(sb_unpack_pid(u), "Seccomp:"), 2);
#endif
	sb_pack_reader_free(r);
	/* Left in the middle, it goes. */
	assert_int_equal(sb_unpack_pid(u), 0);
	blocks_free(&b);
}

static void
one_child_takes_many_streams_and_patches(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_unpack) struct sb_unpack *u = sb_unpack_new(&err);
	sb_auto(sb_buf) struct sb_buf patch = { 0 };
	uint8_t base[5000], new[6000], got[6000];
	int pid = 0;

	(void)state;
	assert_non_null(u);
	for (size_t i = 0; i < sizeof new; i++)
		new[i] = (uint8_t)(i * 7 + i / 300);
	memcpy(base, new + 100, sizeof base);
	sb_buf_init(&patch, 1u << 20);
	assert_ok(sb_patch_make(base, sizeof base, new, sizeof new, 3, &patch, &err), &err);
	for (int round = 0; round < 3; round++) {
		struct sb_pack_reader *r;
		struct sb_pack_entry e;
		struct blocks b;
		size_t n = 0;

		stream(&b, 200);
		r = sb_pack_reader_confined(u, blocks_in, &b, &err);
		assert_non_null(r);
		while (sb_pack_reader_next(r, &e, &err) == 1) {
			const void *data;

			/* In the middle of an entry, of which something is read. */
			assert_int_equal(sb_pack_reader_read(r, &data, &err), sizeof text);
			assert_memory_equal(data, text, sizeof text);
			memset(got, 0, sizeof got);
			assert_ok(sb_unpack_patch(u, base, sizeof base, patch.data, patch.len, got,
					  sizeof got, &err),
				&err);
			assert_memory_equal(got, new, sizeof got);
			n++;
		}
		assert_int_equal(n, 200);
		assert_int_equal(err.code, 0);
		sb_pack_reader_free(r);
		blocks_free(&b);
		assert_true(!pid || pid == sb_unpack_pid(u));
		pid = sb_unpack_pid(u);
	}
	patch.data[patch.len / 2] ^= 0x55;
	if (sb_unpack_patch(u, base, sizeof base, patch.data, patch.len, got, sizeof got, &err) < 0)
		assert_int_equal(err.code, SB_E_CORRUPT);
	assert_fails(sb_unpack_patch(u, base, sizeof base, "x", 1, got, sizeof got, &err),
		SB_E_CORRUPT, &err);
}

static void
its_death_is_an_error_and_the_next_one_works(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_unpack) struct sb_unpack *u = sb_unpack_new(&err);

	(void)state;
	assert_non_null(u);
	for (int round = 0; round < 2; round++) {
		struct sb_pack_reader *r;
		struct sb_pack_entry e;
		struct blocks b;
		int n;

		stream(&b, 500);
		r = sb_pack_reader_confined(u, blocks_in, &b, &err);
		assert_non_null(r);
		assert_int_equal(sb_pack_reader_next(r, &e, &err), 1);
		assert_int_equal(kill(sb_unpack_pid(u), SIGKILL), 0);
		while ((n = sb_pack_reader_next(r, &e, &err)) == 1)
			;
		assert_int_equal(n, SB_E_PROTO);
		assert_non_null(strstr(err.msg, "ended by signal 9"));
		assert_int_equal(sb_pack_reader_next(r, &e, &err), SB_E_PROTO);
		sb_pack_reader_free(r);
		blocks_free(&b);
	}
}

static void
a_cancel_is_heard_while_it_works(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_unpack) struct sb_unpack *u = sb_unpack_new(&err);
	struct sb_cancel *c = sb_cancel_new(&err);
	struct sb_pack_reader *r;
	struct sb_pack_entry e;
	struct blocks b;
	int n;

	(void)state;
	assert_non_null(u);
	assert_non_null(c);
	stream(&b, 500);
	r = sb_pack_reader_confined(u, blocks_in, &b, &err);
	assert_non_null(r);
	assert_int_equal(sb_pack_reader_next(r, &e, &err), 1);
	/* It does not answer any more, as one that was taken over. */
	assert_int_equal(kill(sb_unpack_pid(u), SIGSTOP), 0);
	sb_cancel_request(c);
	(void)sb_work_under(c);
	while ((n = sb_pack_reader_next(r, &e, &err)) == 1)
		;
	(void)sb_work_under(NULL);
	assert_int_equal(n, SB_E_CANCELED);
	sb_pack_reader_free(r);
	blocks_free(&b);
	sb_cancel_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_a_process_that_holds_nothing),
		cmocka_unit_test(one_child_takes_many_streams_and_patches),
		cmocka_unit_test(its_death_is_an_error_and_the_next_one_works),
		cmocka_unit_test(a_cancel_is_heard_while_it_works),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
