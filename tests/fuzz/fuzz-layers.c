/* SPDX-License-Identifier: MIT */
/*
 * What the overlay storage reads from disk and from others. The first byte tells what the rest is:
 * 'r' the payload of a record of its log, which must encode to bytes that decode to the same; 'l' a
 * whole log, whose records are applied; 's' a stream of layers, read into a scratch
 * directory: nothing may appear beside it.
 */
#include "config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <host/storage/overlay-state.h>
#include <host/storage/overlay-stream.h>

#include "fuzz-scratch.h"
#include "fuzz.h"

static void
record(const uint8_t *p, size_t len)
{
	static struct sb_overlay_rec a, b;
	struct sb_buf one, two;

	if (sb_overlay_log_decode(p, len, &a, NULL) < 0)
		return;
	sb_buf_init(&one, 64u << 20);
	sb_buf_init(&two, 64u << 20);
	sb_overlay_log_encode(&a, &one);
	FUZZ_CHECK(sb_overlay_log_decode(one.data, one.len, &b, NULL) == 0);
	sb_overlay_log_encode(&b, &two);
	FUZZ_CHECK(one.len == two.len && memcmp(one.data, two.data, one.len) == 0);
	free(a.names);
	free(b.names);
	sb_buf_free(&one);
	sb_buf_free(&two);
}

static int
apply(const struct sb_overlay_rec *rec, void *arg, struct sb_error *err)
{
	return sb_overlay_state_apply(arg, rec, err);
}

static void
whole_log(const uint8_t *p, size_t len)
{
	int dir = fuzz_scratch();
	struct sb_overlay_state s;
	struct sb_overlay_log *l;
	int fd = openat(dir, "log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_CHECK(fd >= 0 && sb_file_write_all(fd, p, len, NULL) == 0);
	(void)close(fd);
	FUZZ_CHECK(sb_overlay_state_init(&s, NULL) == 0);
	l = sb_overlay_log_open(dir, apply, &s, NULL);
	/* What was accepted can be written anew and read again. */
	if (l) {
		FUZZ_CHECK(sb_overlay_log_rewrite(l, sb_overlay_state_dump, &s, NULL) == 0);
		sb_overlay_log_close(l);
		sb_overlay_state_free(&s);
		FUZZ_CHECK(sb_overlay_state_init(&s, NULL) == 0);
		l = sb_overlay_log_open(dir, apply, &s, NULL);
		FUZZ_CHECK(l);
		sb_overlay_log_close(l);
	}
	sb_overlay_state_free(&s);
	(void)unlinkat(dir, "log", 0);
}

static void
stream(const uint8_t *p, size_t len)
{
	int dir = fuzz_scratch(), fd = memfd_create("stream", MFD_CLOEXEC), to;
	struct sb_overlay_reader *r;
	struct sb_overlay_part part;
	struct stat st;

	FUZZ_CHECK(fd >= 0 && sb_file_write_all(fd, p, len, NULL) == 0);
	FUZZ_CHECK(lseek(fd, 0, SEEK_SET) == 0);
	r = sb_overlay_stream_open(fd, NULL, NULL);
	FUZZ_CHECK(r);
	while (sb_overlay_stream_next(r, &part, NULL) == 1) {
		int done;

		FUZZ_CHECK(mkdirat(dir, "to", 0700) == 0);
		to = openat(dir, "to", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		FUZZ_CHECK(to >= 0);
		done = sb_overlay_stream_read(r, &part, to, NULL);
		(void)close(to);
		FUZZ_CHECK(fstat(dir, &st) == 0 && st.st_nlink == 3);
		FUZZ_CHECK(sb_path_remove_tree(dir, "to", NULL) == 0);
		if (done < 0)
			break;
	}
	sb_overlay_stream_close(r);
	(void)close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	switch (data[0]) {
	case 'r': record(data + 1, size - 1); break;
	case 'l': whole_log(data + 1, size - 1); break;
	case 's': stream(data + 1, size - 1); break;
	default: break;
	}
	return 0;
}
