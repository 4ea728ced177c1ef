/* SPDX-License-Identifier: MIT */
/*
 * A store's files: flags, u16 length of the index, the index, and what is left is
 * pack-00000001. Flag 1 puts right the checksum of the first frame, flag 2 that of the
 * index, which no mutation would find. The store opens, what it gives has the digest that
 * was asked for, and it takes new content.
 */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cursor.h>
#include <base/file.h>
#include <sync/codec/store.h>

#include "scratch.h"

#define FRAME_HEAD 32u
#define FRAME_SUM 24u
#define INDEX_HEAD 24u
#define ITEM_LEN 20u

static void
put_sum(uint8_t *at, uint64_t sum)
{
	for (unsigned i = 0; i < 8; i++)
		at[i] = (uint8_t)(sum >> (8 * i));
}

static void
fix_frame(uint8_t *p, size_t len)
{
	struct sb_cursor c;
	uint64_t head;

	sb_cursor_init(&c, p, len);
	(void)sb_cursor_u32(&c);
	head = FRAME_HEAD + (uint64_t)sb_cursor_u32(&c) * ITEM_LEN;
	if (c.bad || head > len)
		return;
	memset(p + FRAME_SUM, 0, 8);
	put_sum(p + FRAME_SUM, XXH3_64bits(p, (size_t)head));
}

static void
write_file(int dir, const char *name, const uint8_t *p, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_CHECK(fd >= 0 && sb_file_write_all(fd, p, len, NULL) == 0);
	(void)close(fd);
}

static void
use_store(int dir, const uint8_t *digests, size_t len)
{
	struct sb_store_opts o = SB_STORE_OPTS_INIT;
	struct sb_digest mine = sb_digest_of("mine", 4);
	struct sb_store *s;
	sb_auto(sb_buf) struct sb_buf got;

	sb_buf_init(&got, 0);
	o.cap = 1 << 20;
	s = sb_store_open(dir, &o, NULL);
	FUZZ_CHECK(s);
	for (size_t i = 0; i + 16 <= len && i < 400; i += 4) {
		struct sb_digest d, is;
		int r;

		memcpy(d.b, digests + i, sizeof d.b);
		r = sb_store_get(s, &d, &got, NULL);
		FUZZ_CHECK(r == 0 || r == SB_E_NOTFOUND || r == SB_E_NOMEM);
		is = sb_digest_of(got.data, got.len);
		FUZZ_CHECK(r < 0 || sb_digest_eq(&is, &d));
		sb_buf_free(&got);
	}
	FUZZ_CHECK(sb_store_add(s, &mine, "mine", 4, NULL) == 0);
	FUZZ_CHECK(sb_store_flush(s, NULL, NULL, NULL) == 0);
	sb_store_free(s);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *copy, *index, *pack;
	size_t index_len, pack_len;
	int dir;

	if (len < 3)
		return 0;
	(void)fuzz_scratch_make();
	dir = fuzz_scratch_fd;
	copy = malloc(len);
	FUZZ_CHECK(copy);
	memcpy(copy, data, len);
	index_len = (size_t)(copy[1] | copy[2] << 8);
	if (index_len > len - 3)
		index_len = len - 3;
	index = copy + 3;
	pack = index + index_len;
	pack_len = len - 3 - index_len;
	if (copy[0] & 1)
		fix_frame(pack, pack_len);
	if ((copy[0] & 2) && index_len >= INDEX_HEAD)
		put_sum(index + 16, XXH3_64bits(index + INDEX_HEAD, index_len - INDEX_HEAD));
	write_file(dir, "index", index, index_len);
	write_file(dir, "pack-00000001", pack, pack_len);
	use_store(dir, pack, pack_len);
	for (unsigned i = 1; i < 4; i++) {
		char name[] = "pack-00000000";

		name[12] = (char)('0' + i);
		(void)unlinkat(dir, name, 0);
	}
	free(copy);
	return 0;
}
