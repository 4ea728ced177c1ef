/* SPDX-License-Identifier: MIT */
/*
 * What a peer may send instead of a stream of ours: every case must end as SB_E_PROTO, at
 * once and without harm.
 */
#include "config.h"

#include <errno.h>

#include <archive.h>
#include <archive_entry.h>

#include <base/buf.h>
#include <sync/codec/pack.h>

#include "tests/lib/blocks.h"

#define N(a) (sizeof(a) / sizeof(a)[0])

/* A small good stream: three entries. */
static void
good_stream(struct blocks *b, int level, size_t block_size)
{
	struct sb_error err = { 0 };
	struct sb_pack_writer *w;
	sb_autofree char *text = malloc(20000);
	struct sb_pack_entry p = { .path = "patch",
		.size = 3,
		.file_size = 99,
		.kind = SB_PACK_PATCH };

	assert_non_null(text);
	for (size_t i = 0; i < 20000; i++)
		text[i] = "some text\n"[(i * i / 7) % 10];
	blocks_init(b);
	w = blocks_writer(b, level, block_size);
	put_whole(w, "a", text, 20000);
	assert_ok(sb_pack_writer_begin(w, &p, &err), &err);
	assert_ok(sb_pack_writer_data(w, "abc", 3, &err), &err);
	assert_ok(sb_pack_writer_end(w, &err), &err);
	memset(text, 0, 20000);
	put_whole(w, "zeros", text, 1024);
	assert_ok(sb_pack_writer_finish(w, &err), &err);
	sb_pack_writer_free(w);
}

static void
expect_proto(struct blocks *b, const char *what)
{
	struct sb_error err = { 0 };
	size_t entries;
	int r = read_all(b, &entries, &err);

	if (r != SB_E_PROTO)
		fail_msg("%s: got %d (%s), want SB_E_PROTO", what, r, err.msg);
	assert_true(err.msg[0] != 0);
}

static void
truncation_anywhere_is_noticed(void **state)
{
	struct blocks b;
	size_t all, entries;
	struct sb_error err = { 0 };

	(void)state;
	good_stream(&b, 1, 512);
	assert_int_equal(read_all(&b, &entries, &err), 0);
	assert_int_equal(entries, 3);
	all = b.n;
	for (b.n = 0; b.n < all; b.n++)
		expect_proto(&b, "cut short");
	blocks_free(&b);
}

static void
bytes_behind_the_end_are_refused(void **state)
{
	static const uint8_t zeros[512];
	struct blocks b;
	sb_autofree uint8_t *raw = NULL;
	size_t len;

	(void)state;
	good_stream(&b, 0, 0);
	blocks_add(&b, SB_PACK_STORED, 512, zeros, 512);
	expect_proto(&b, "zeros behind the end, own block");
	raw = blocks_raw(&b, &len);
	blocks_free(&b);
	blocks_init(&b);
	blocks_cut(&b, raw, len, SB_PACK_BLOCK_MAX);
	expect_proto(&b, "zeros behind the end, same block");
	blocks_free(&b);
	blocks_init(&b);
	blocks_cut(&b, raw, len - 1024, SB_PACK_BLOCK_MAX);
	expect_proto(&b, "half an end");
	blocks_free(&b);
}

static void
failures_of_the_source_pass_through(void **state)
{
	struct blocks b;
	struct sb_error err = { 0 };
	size_t all, entries;

	(void)state;
	good_stream(&b, 0, 512);
	all = b.n;
	for (b.fail_at = 0; b.fail_at <= all; b.fail_at++) {
		assert_int_equal(read_all(&b, &entries, &err), SB_E_CLOSED);
		assert_non_null(strstr(err.msg, "the link is gone"));
	}
	blocks_free(&b);
}

static void
block_headers_are_checked(void **state)
{
	struct blocks b;
	size_t raw_len;

	(void)state;
	good_stream(&b, 1, 0);
	assert_int_equal(b.n, 1);
	assert_int_equal(b.v[0].codec, SB_PACK_ZSTD);
	raw_len = b.v[0].raw_len;
	static const size_t wrong[] = { 0, 1, SB_PACK_BLOCK_MAX + 1, SIZE_MAX };
	for (size_t i = 0; i < N(wrong); i++) {
		b.v[0].raw_len = wrong[i];
		expect_proto(&b, "wrong raw_len");
	}
	b.v[0].raw_len = raw_len + 1;
	expect_proto(&b, "raw_len one more");
	b.v[0].raw_len = raw_len - 1;
	expect_proto(&b, "raw_len one less");
	b.v[0].raw_len = raw_len;
	b.v[0].codec = SB_PACK_STORED;
	expect_proto(&b, "stored with wrong length");
	b.v[0].codec = (enum sb_pack_codec)7;
	expect_proto(&b, "unknown codec");
	b.v[0].codec = SB_PACK_ZSTD;
	b.v[0].data[b.v[0].len++] = 0;
	expect_proto(&b, "a byte behind the frame");
	b.v[0].len -= 2;
	expect_proto(&b, "a byte short");
	b.v[0].len = 3;
	expect_proto(&b, "three bytes");
	b.v[0].len = 0;
	expect_proto(&b, "no bytes");
	blocks_free(&b);
}

/*
 * Every byte of a frame flipped in turn: refused, or (a flip inside literals) read as
 * other file content.
 */
static void
flipped_bits_do_no_harm(void **state)
{
	struct blocks b;
	struct sb_error err = { 0 };
	size_t entries, refused = 0;

	(void)state;
	good_stream(&b, 3, 0);
	assert_int_equal(b.n, 1);
	for (size_t i = 0; i < b.v[0].len; i++) {
		for (int bit = 0; bit < 8; bit += 3) {
			int r;

			b.v[0].data[i] ^= (uint8_t)(1 << bit);
			r = read_all(&b, &entries, &err);
			assert_true(r == 0 || r == SB_E_PROTO);
			refused += r == SB_E_PROTO;
			b.v[0].data[i] ^= (uint8_t)(1 << bit);
		}
	}
	assert_true(refused > b.v[0].len / 4);
	assert_int_equal(read_all(&b, &entries, &err), 0);
	blocks_free(&b);
}

static void
add_frame(struct blocks *b, size_t raw_len, const uint8_t *raw, int window_log, bool checksum,
	bool content_size)
{
	ZSTD_CCtx *c = ZSTD_createCCtx();
	size_t cap = ZSTD_compressBound(raw_len) + 64;
	sb_autofree uint8_t *out = malloc(cap);
	ZSTD_outBuffer ob = { out, cap, 0 };
	ZSTD_inBuffer ib = { raw, raw_len, 0 };

	assert_non_null(out);
	if (window_log)
		assert_false(ZSTD_isError(ZSTD_CCtx_setParameter(c, ZSTD_c_windowLog, window_log)));
	ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, checksum);
	ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, content_size);
	if (window_log) /* streaming without a pledged size keeps the window in the header
			 */
		assert_int_equal(ZSTD_compressStream2(c, &ob, &ib, ZSTD_e_flush), 0);
	assert_int_equal(ZSTD_compressStream2(c, &ob, &ib, ZSTD_e_end), 0);
	blocks_add(b, SB_PACK_ZSTD, raw_len, out, ob.pos);
	ZSTD_freeCCtx(c);
}

static void
foreign_frames_are_refused(void **state)
{
	static const uint8_t skippable[] = { 0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4 };
	/*
	 * magic; descriptor: no single segment, 8-byte content size; window 2^31; size
	 * 1024; one RLE block of 1024 zeros
	 */
	static const uint8_t huge_window[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xc0, 0xa8, 0, 4, 0, 0, 0, 0,
		0, 0, 0x03, 0x20, 0, 0 };
	/* single segment, dictionary id 1 */
	static const uint8_t dictionary[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x61, 0x01, 0x00, 0x03, 0x03,
		0x20, 0, 0 };
	/* says 1 GiB of zeros in RLE blocks: content size 2^30 */
	static const uint8_t bomb[] = { 0x28, 0xb5, 0x2f, 0xfd, 0xa0, 0, 0, 0, 0x40, 0x02, 0, 0x10,
		0, 0x03, 0, 0x10, 0 };
	uint8_t zeros[1024] = { 0 };
	struct blocks b;
	struct sb_error err = { 0 };
	size_t entries;

	(void)state;
	blocks_init(&b);
	add_frame(&b, 1024, zeros, 0, false, true);
	assert_int_equal(read_all(&b, &entries, &err), 0); /* that is an empty archive */
	blocks_free(&b);

	blocks_init(&b);
	blocks_add(&b, SB_PACK_ZSTD, 1024, skippable, sizeof skippable);
	expect_proto(&b, "skippable frame");
	blocks_free(&b);

	blocks_init(&b);
	blocks_add(&b, SB_PACK_ZSTD, 1024, huge_window, sizeof huge_window);
	assert_true(ZSTD_getFrameContentSize(huge_window, sizeof huge_window) == 1024);
	expect_proto(&b, "window of 2^31");
	assert_int_equal(read_all(&b, &entries, &err), SB_E_PROTO);
	assert_string_equal(err.msg, "zstd frame with a window of 2^31 bytes");
	blocks_free(&b);

	blocks_init(&b);
	blocks_add(&b, SB_PACK_ZSTD, 1024, dictionary, sizeof dictionary);
	expect_proto(&b, "dictionary");
	blocks_free(&b);

	blocks_init(&b);
	assert_true(ZSTD_getFrameContentSize(bomb, sizeof bomb) == 1u << 30);
	blocks_add(&b, SB_PACK_ZSTD, 1 << 20, bomb, sizeof bomb);
	expect_proto(&b, "bomb with a small announcement");
	b.v[0].raw_len = 1u << 30;
	expect_proto(&b, "bomb with a large announcement");
	blocks_free(&b);

	blocks_init(&b);
	add_frame(&b, 1024, zeros, 0, false, false);
	expect_proto(&b, "no content size");
	blocks_free(&b);

	blocks_init(&b);
	add_frame(&b, 1024, zeros, 24, false, true);
	expect_proto(&b, "window of 2^24, unknown size");
	blocks_free(&b);
}

/* ---- tar features we do not write ---- */

static la_ssize_t
keep_bytes(struct archive *a, void *arg, const void *data, size_t len)
{
	(void)a;
	blocks_cut(arg, data, len, len);
	return (la_ssize_t)len;
}

enum feature {
	F_NONE,
	F_SYMLINK,
	F_HARDLINK,
	F_DIR,
	F_FIFO,
	F_CHR,
	F_BLK,
	F_ABSOLUTE,
	F_DOTDOT,
	F_DOT,
	F_DOUBLE_SLASH,
	F_TRAILING_SLASH,
	F_LONG_NAME,
	F_ACL,
	F_FFLAGS,
	F_FOREIGN_XATTR,
	F_XATTR_TWICE,
	F_BAD_KIND,
	F_WHOLE_WITH_ATTRS,
	F_PATCH_NO_BASE,
	F_BAD_DIGEST,
	F_BAD_NUMBER,
	F_RANGE_LIES,
	F_SPARSE,
	F_COUNT
};

static void
plain_patch(struct archive_entry *e, const char *kind, const char *base)
{
	archive_entry_xattr_add_entry(e, "user.sbsync.kind", kind, strlen(kind));
	archive_entry_xattr_add_entry(e, "user.sbsync.size", "10", 2);
	if (base)
		archive_entry_xattr_add_entry(e, "user.sbsync.base", base, strlen(base));
}

static void
set_name_feature(struct archive_entry *e, enum feature f)
{
	static const char *const names[] = { [F_ABSOLUTE] = "/etc/x",
		[F_DOTDOT] = "a/../../x",
		[F_DOT] = "a/./b",
		[F_DOUBLE_SLASH] = "a//b",
		[F_TRAILING_SLASH] = "a/" };
	char name[301];

	memset(name, 'n', 300);
	name[300] = 0;
	archive_entry_copy_pathname(e, f == F_LONG_NAME ? name : names[f]);
}

static void
set_attr_feature(struct archive_entry *e, enum feature f)
{
	static const char zeros[] = "00000000000000000000000000000000";

	if (f == F_FOREIGN_XATTR)
		archive_entry_xattr_add_entry(e, "security.capability", "x", 1);
	else if (f == F_XATTR_TWICE) {
		plain_patch(e, "sparse", NULL);
		archive_entry_xattr_add_entry(e, "user.sbsync.size", "11", 2);
	} else if (f == F_BAD_KIND)
		plain_patch(e, "symlink", zeros);
	else if (f == F_WHOLE_WITH_ATTRS)
		plain_patch(e, "whole", NULL);
	else if (f == F_PATCH_NO_BASE)
		plain_patch(e, "patch", NULL);
	else if (f == F_BAD_DIGEST)
		plain_patch(e, "patch", "0000000000000000000000000000000G");
	else if (f == F_BAD_NUMBER) {
		archive_entry_xattr_add_entry(e, "user.sbsync.kind", "sparse", 6);
		archive_entry_xattr_add_entry(e, "user.sbsync.size", "99999999999999999999", 20);
	} else if (f == F_RANGE_LIES) {
		plain_patch(e, "range", zeros);
		archive_entry_xattr_add_entry(e, "user.sbsync.offset", "11", 2);
	}
}

static void
set_feature(struct archive_entry *e, enum feature f)
{
	static const mode_t types[] = { [F_SYMLINK] = AE_IFLNK,
		[F_DIR] = AE_IFDIR,
		[F_FIFO] = AE_IFIFO,
		[F_CHR] = AE_IFCHR,
		[F_BLK] = AE_IFBLK };

	if (f == F_HARDLINK)
		archive_entry_copy_hardlink(e, "victim");
	else if (f >= F_SYMLINK && f <= F_BLK)
		archive_entry_set_filetype(e, types[f]);
	else if (f >= F_ABSOLUTE && f <= F_LONG_NAME)
		set_name_feature(e, f);
	else if (f == F_ACL)
		archive_entry_acl_add_entry(e, ARCHIVE_ENTRY_ACL_TYPE_ACCESS, 7,
			ARCHIVE_ENTRY_ACL_USER, 5, "x");
	else if (f == F_FFLAGS)
		archive_entry_set_fflags(e, 0x10, 0); /* immutable */
	else if (f == F_SPARSE)
		archive_entry_sparse_add_entry(e, 4, 2);
	else
		set_attr_feature(e, f);
	if (f == F_SYMLINK)
		archive_entry_copy_symlink(e, "/etc/passwd");
}

static void
foreign_tar(struct blocks *b, enum feature f)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	bool empty = f >= F_SYMLINK && f <= F_BLK;

	blocks_init(b);
	archive_write_set_format_pax(a);
	archive_write_set_bytes_per_block(a, 0);
	assert_int_equal(archive_write_open(a, b, NULL, keep_bytes, NULL), ARCHIVE_OK);
	archive_entry_copy_pathname(e, "file");
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, 04755);
	archive_entry_set_size(e, empty ? 0 : 10);
	set_feature(e, f);
	assert_int_equal(archive_write_header(a, e), ARCHIVE_OK);
	if (!empty)
		assert_int_equal(archive_write_data(a, "0123456789", 10), 10);
	assert_int_equal(archive_write_close(a), ARCHIVE_OK);
	archive_write_free(a);
	archive_entry_free(e);
}

static void
foreign_features_are_refused(void **state)
{
	(void)state;
	for (enum feature f = F_NONE; f < F_COUNT; f++) {
		struct sb_error err = { 0 };
		struct blocks b;
		size_t entries;
		char what[32];

		foreign_tar(&b, f);
		(void)snprintf(what, sizeof what, "feature %d", (int)f);
		if (f == F_NONE)
			assert_int_equal(read_all(&b, &entries, &err), 0);
		else
			expect_proto(&b, what);
		blocks_free(&b);
	}
}

/* ---- raw headers, as no library writes them ---- */

static void
tar_header(uint8_t h[512], const char *name, const char *size, char type, const char *magic)
{
	unsigned sum = 0;

	memset(h, 0, 512);
	memcpy(h, name, strlen(name));
	memcpy(h + 100, "0000644", 8);
	memcpy(h + 108, "0000000", 8);
	memcpy(h + 116, "0000000", 8);
	memcpy(h + 124, size, strlen(size));
	memcpy(h + 136, "00000000000", 12);
	memset(h + 148, ' ', 8);
	h[156] = (uint8_t)type;
	memcpy(h + 257, magic, 8);
	for (int i = 0; i < 512; i++)
		sum += h[i];
	(void)snprintf((char *)h + 148, 8, "%06o", sum);
}

#define USTAR "ustar\00000"
#define GNU "ustar  "

static void
raw_headers_are_checked(void **state)
{
	static const struct {
		const char *what, *name, *size, *magic;
		char type;
		bool good;
	} cases[] = {
		{ "control", "f", "00000000000", USTAR, '0', true },
		{ "GNU dialect", "f", "00000000000", GNU, '0', false },
		{ "old dialect", "f", "00000000000", "\0\0\0\0\0\0\0", '0', false },
		{ "GNU long name", "././@LongLink", "00000000010", GNU, 'L', false },
		{ "GNU long link", "././@LongLink", "00000000010", GNU, 'K', false },
		{ "GNU sparse", "f", "00000000000", GNU, 'S', false },
		{ "GNU volume", "f", "00000000000", GNU, 'V', false },
		{ "GNU multi-volume", "f", "00000000000", GNU, 'M', false },
		{ "contiguous file", "f", "00000000000", USTAR, '7', false },
		{ "unknown type", "f", "00000000000", USTAR, 'Z', false },
		{ "negative size", "f", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", USTAR,
			'0', false },
		{ "size of 2^62", "f", "\x80\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40\x40", USTAR,
			'0', false },
		{ "no name", "", "00000000000", USTAR, '0', false },
		{ "pax header of 1 TiB", "x", "77777777777", USTAR, 'x', false },
		{ "pax header cut off", "x", "00000001000", USTAR, 'x', false },
	};

	(void)state;
	for (size_t i = 0; i < N(cases); i++) {
		struct sb_error err = { 0 };
		struct blocks b;
		size_t entries;
		uint8_t h[512 + 1024] = { 0 };

		blocks_init(&b);
		tar_header(h, cases[i].name, cases[i].size, cases[i].type, cases[i].magic);
		blocks_add(&b, SB_PACK_STORED, sizeof h, h, sizeof h);
		if (cases[i].good)
			assert_int_equal(read_all(&b, &entries, &err), 0);
		else
			expect_proto(&b, cases[i].what);
		blocks_free(&b);
	}
}

/* A chain of extension headers must not be followed for ever (nor by recursion). */
static void
endless_extensions_are_refused(void **state)
{
	static const char types[] = "xgLKAS";

	(void)state;
	for (size_t t = 0; t < sizeof types - 1; t++) {
		struct blocks b;
		uint8_t h[1024] = { 0 };

		blocks_init(&b);
		tar_header(h, "x", "00000000014", types[t],
			types[t] == 'x' || types[t] == 'g' ? USTAR : GNU);
		memcpy(h + 512, "12 path=abc\n", 12);
		for (int i = 0; i < 5000; i++)
			blocks_add(&b, SB_PACK_STORED, sizeof h, h, sizeof h);
		expect_proto(&b, "chain of extensions");
		assert_true(b.next < 200);
		blocks_free(&b);
	}
}

static void
add_header(struct sb_buf *b, const char *name, unsigned size, char type)
{
	uint8_t h[512] = { 0 };
	char octal[16];

	(void)snprintf(octal, sizeof octal, "%011o", size);
	tar_header(h, name, octal, type, USTAR);
	sb_buf_add(b, h, sizeof h);
}

/* A file "a" of three bytes whose pax header has this record. */
static void
one_record(struct blocks *out, const char *record)
{
	static const uint8_t zeros[1024];
	struct sb_buf b;
	char line[300];
	size_t len = strlen(record) + 3;

	if (len >= 10)
		len++;
	if (len >= 100)
		len++;
	(void)snprintf(line, sizeof line, "%zu %s\n", len, record);
	assert_int_equal(strlen(line), len);
	sb_buf_init(&b, 1 << 20);
	add_header(&b, "PaxHeader/a", (unsigned)len, 'x');
	sb_buf_add(&b, line, len);
	sb_buf_add(&b, zeros, 512 - len);
	add_header(&b, "a", 3, '0');
	sb_buf_add(&b, "abc", 3);
	sb_buf_add(&b, zeros, 509);
	sb_buf_add(&b, zeros, 1024);
	blocks_init(out);
	blocks_cut(out, b.data, b.len, SB_PACK_BLOCK_MAX);
	sb_buf_free(&b);
}

static void
pax_records_that_are_not_ours_are_refused(void **state)
{
	static const char *const bad[] = {
		"linkpath=../../etc/passwd",
		"linkpath=b",
		"SCHILY.acl.access=user::rw-,group::r--,other::r--",
		"SCHILY.acl.access=user::rwx,group::rwx,other::rwx,user:0:rwx",
		"SCHILY.acl.default=user::rwx,group::r-x,other::r-x",
		"SCHILY.xattr.user.sbsync.else=1",
		"SCHILY.xattr.security.capability=x",
		"LIBARCHIVE.xattr.user.x=eA",
		"GNU.sparse.size=8589934592",
		"mtime=1.5",
		"uid=0",
		"uname=root",
		"comment=hello",
	};
	struct sb_error err = { 0 };
	struct blocks b;
	size_t entries;

	(void)state;
	one_record(&b, "path=other");
	assert_ok(read_all(&b, &entries, &err), &err);
	assert_int_equal(entries, 1);
	blocks_free(&b);
	for (size_t i = 0; i < N(bad); i++) {
		one_record(&b, bad[i]);
		expect_proto(&b, bad[i]);
		blocks_free(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncation_anywhere_is_noticed),
		cmocka_unit_test(pax_records_that_are_not_ours_are_refused),
		cmocka_unit_test(bytes_behind_the_end_are_refused),
		cmocka_unit_test(failures_of_the_source_pass_through),
		cmocka_unit_test(block_headers_are_checked),
		cmocka_unit_test(flipped_bits_do_no_harm),
		cmocka_unit_test(foreign_frames_are_refused),
		cmocka_unit_test(foreign_features_are_refused),
		cmocka_unit_test(raw_headers_are_checked),
		cmocka_unit_test(endless_extensions_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
