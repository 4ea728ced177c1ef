/* SPDX-License-Identifier: MIT */
/*
 * The reader: blocks from a peer -> one zstd frame each (checked before it is decoded,
 * decoded into a buffer of a fixed ceiling) -> libarchive's tar parser -> entries, of
 * which everything but a plain file with our own attributes is refused. libarchive takes
 * the end of input at an entry's border for the end of an archive; here the end must be
 * there as written.
 */
#include "config.h"

#include <sync/codec/pack.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>
#include <zstd.h>

#include <base/path.h>
#include <base/str.h>
#include <base/work.h>

#include <sync/codec/pack-priv.h>
#include <sync/codec/pack-strict.h>
#include <sync/codec/unpack-priv.h>

#define TAR_END 1024u
#define PATH_BYTES_MAX 65535u

struct sb_pack_reader {
	struct sb_unpack *far; /* who does the work instead; NULL: we do */
	sb_pack_in_fn in;
	void *arg;
	struct archive *a;
	ZSTD_DCtx *dctx;
	uint8_t *raw;
	size_t raw_cap;
	struct sb_pack_strict strict;
	uint64_t given; /* bytes libarchive got from us */
	bool opened;    /* opening reads a block, so the first call of next does it */
	bool in_ended;  /* `in` said there is no more */
	bool ended;     /* of the archive */
	bool have_entry;
	uint64_t entry_size, entry_read;
	struct sb_error error; /* sticky, code 0 while all is well */
};

static int
fail_with(const struct sb_pack_reader *r, struct sb_error *err)
{
	if (err)
		*err = r->error;
	return r->error.code;
}

/* ---- blocks ---- */

/*
 * A frame that is not ours: skippable, with a dictionary, a window beyond the largest
 * block, or several of them. The header's second part is the window only when the
 * single-segment flag is not set; then the window is the content, whose length is
 * checked.
 */
static int
check_frame(const uint8_t *data, size_t len, size_t raw_len, struct sb_error *err)
{
	unsigned window_log;

	if (len < 6 || memcmp(data, "\x28\xb5\x2f\xfd", 4) != 0)
		return sb_fail(err, SB_E_PROTO, "block is not a zstd frame");
	if (data[4] & 0x03)
		return sb_fail(err, SB_E_PROTO, "zstd frame wants a dictionary");
	window_log = 10 + (data[5] >> 3);
	if (!(data[4] & 0x20) && (1ull << window_log) > SB_PACK_BLOCK_MAX)
		return sb_fail(err, SB_E_PROTO, "zstd frame with a window of 2^%u bytes",
			window_log);
	if (ZSTD_getFrameContentSize(data, len) != raw_len)
		return sb_fail(err, SB_E_PROTO, "zstd frame does not hold %zu bytes", raw_len);
	if (ZSTD_findFrameCompressedSize(data, len) != len)
		return sb_fail(err, SB_E_PROTO, "zstd frame is damaged or has something behind it");
	return 0;
}

static int
decode_block(struct sb_pack_reader *r, const void *data, size_t len, size_t raw_len)
{
	size_t n;
	int k = check_frame(data, len, raw_len, &r->error);

	if (k < 0)
		return k;
	if (r->raw_cap < raw_len) {
		free(r->raw);
		r->raw_cap = 0;
		r->raw = malloc(raw_len);
		if (!r->raw)
			return sb_fail(&r->error, SB_E_NOMEM, "block of %zu bytes: out of memory",
				raw_len);
		r->raw_cap = raw_len;
	}
	n = ZSTD_decompressDCtx(r->dctx, r->raw, raw_len, data, len);
	if (ZSTD_isError(n))
		return sb_fail(&r->error, SB_E_PROTO, "zstd frame: %s", ZSTD_getErrorName(n));
	if (n != raw_len)
		return sb_fail(&r->error, SB_E_PROTO, "zstd frame gave %zu bytes, not %zu", n,
			raw_len);
	return 0;
}

/* 1 with the next block decoded, 0 at the end, negative with r->error set. */
static int
next_block(struct sb_pack_reader *r, const void **out, size_t *out_len)
{
	enum sb_pack_codec codec = SB_PACK_STORED;
	size_t raw_len = 0, len = 0;
	const void *data = NULL;
	int k;

	if (r->in_ended)
		return 0;
	k = r->in(&codec, &raw_len, &data, &len, r->arg, &r->error);
	if (k < 0) {
		r->error.code = k;
		return k;
	}
	if (k == 0) {
		r->in_ended = true;
		return 0;
	}
	if (!raw_len || raw_len > SB_PACK_BLOCK_MAX)
		return sb_fail(&r->error, SB_E_PROTO, "block of %zu bytes (1 to %u are allowed)",
			raw_len, SB_PACK_BLOCK_MAX);
	*out_len = raw_len;
	switch (codec) {
	case SB_PACK_STORED:
		if (len != raw_len)
			return sb_fail(&r->error, SB_E_PROTO, "stored block of %zu bytes says %zu",
				len, raw_len);
		*out = data;
		return 1;
	case SB_PACK_ZSTD:
		k = decode_block(r, data, len, raw_len);
		*out = r->raw;
		return k < 0 ? k : 1;
	}
	return sb_fail(&r->error, SB_E_PROTO, "block with unknown codec %d", (int)codec);
}

static la_ssize_t
read_block(struct archive *a, void *arg, const void **out)
{
	struct sb_pack_reader *r = arg;
	size_t len = 0;
	int k = next_block(r, out, &len);

	if (k > 0 && sb_pack_strict_feed(&r->strict, *out, len, &r->error) < 0)
		k = r->error.code;
	if (k < 0) {
		archive_set_error(a, EIO, "block stream failed");
		return ARCHIVE_FATAL;
	}
	r->given += len;
	return (la_ssize_t)len;
}

/* ---- entries ---- */

/*
 * Our error if a block was the cause, else what the parser says; the peer is to blame for
 * that.
 */
static int
fail_archive(struct sb_pack_reader *r, const char *what, struct sb_error *err)
{
	const char *why = archive_error_string(r->a);

	if (!r->error.code)
		(void)sb_fail(&r->error, SB_E_PROTO, "tar stream, %s: %s", what,
			why ? why : "damaged");
	return fail_with(r, err);
}

static int
refuse(struct sb_pack_reader *r, const char *what, struct sb_error *err)
{
	(void)sb_fail(&r->error, SB_E_PROTO, "tar stream: %s", what);
	return fail_with(r, err);
}

/* What is wrong with the entry, or NULL. */
static const char *
foreign_feature(struct archive *a, struct archive_entry *ae)
{
	unsigned long set = 0, clear = 0;
	size_t mac_len = 0;
	int format = archive_format(a);

	if (format != ARCHIVE_FORMAT_TAR_USTAR && format != ARCHIVE_FORMAT_TAR_PAX_INTERCHANGE)
		return "an entry in another tar dialect";
	if (archive_entry_hardlink(ae))
		return "a hard link";
	if (archive_entry_filetype(ae) != AE_IFREG || archive_entry_symlink(ae))
		return "an entry that is no plain file";
	if (!archive_entry_size_is_set(ae) || archive_entry_size(ae) < 0)
		return "an entry without a size";
	if (archive_entry_sparse_count(ae))
		return "a sparse map";
	if (archive_entry_acl_types(ae))
		return "an access control list";
	archive_entry_fflags(ae, &set, &clear);
	if (set || clear)
		return "file flags";
	if (archive_entry_mac_metadata(ae, &mac_len))
		return "foreign metadata";
	return NULL;
}

static bool
parse_number(const char *text, size_t len, uint64_t *out)
{
	uint64_t v = 0;

	if (!len || len > 19)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		v = v * 10 + (uint64_t)(text[i] - '0');
	}
	*out = v;
	return v <= INT64_MAX;
}

/* Lower-case digits only, as the writer writes them. */
static bool
parse_digest(const char *text, size_t len, struct sb_digest *out)
{
	char hex[2 * sizeof out->b + 1] = "";

	if (len != sizeof hex - 1)
		return false;
	memcpy(hex, text, len);
	return strspn(hex, "0123456789abcdef") == len && sb_str_unhex(hex, out->b, sizeof out->b);
}

static bool
parse_kind(const char *text, size_t len, enum sb_pack_kind *out)
{
	for (unsigned i = SB_PACK_WHOLE + 1; i < SB_PACK_ATTR_KINDS; i++) {
		if (strlen(sb_pack_attr_kinds[i]) != len ||
			memcmp(sb_pack_attr_kinds[i], text, len) != 0)
			continue;
		*out = (enum sb_pack_kind)i;
		return true;
	}
	return false;
}

enum attr {
	ATTR_KIND = 1,
	ATTR_SIZE = 2,
	ATTR_BASE = 4,
	ATTR_OFFSET = 8,
};

/* The attribute's bit, 0 when it is not one of ours or its value is wrong. */
static unsigned
parse_attr(const char *name, const char *value, size_t len, struct sb_pack_entry *e)
{
	if (strcmp(name, SB_PACK_ATTR_KIND) == 0)
		return parse_kind(value, len, &e->kind) ? ATTR_KIND : 0;
	if (strcmp(name, SB_PACK_ATTR_SIZE) == 0)
		return parse_number(value, len, &e->file_size) ? ATTR_SIZE : 0;
	if (strcmp(name, SB_PACK_ATTR_BASE) == 0)
		return parse_digest(value, len, &e->base) ? ATTR_BASE : 0;
	if (strcmp(name, SB_PACK_ATTR_OFFSET) == 0)
		return parse_number(value, len, &e->offset) ? ATTR_OFFSET : 0;
	return 0;
}

/* Each kind has exactly its attributes, each of them once. */
static bool
parse_attrs(struct archive_entry *ae, struct sb_pack_entry *e)
{
	static const unsigned wanted[SB_PACK_ATTR_KINDS] = {
		[SB_PACK_WHOLE] = 0,
		[SB_PACK_PATCH] = ATTR_KIND | ATTR_SIZE | ATTR_BASE,
		[SB_PACK_DELTA] = ATTR_KIND | ATTR_SIZE | ATTR_BASE,
		[SB_PACK_RANGE] = ATTR_KIND | ATTR_SIZE | ATTR_BASE | ATTR_OFFSET,
		[SB_PACK_SPARSE] = ATTR_KIND | ATTR_SIZE,
	};
	const char *name;
	const void *value;
	size_t len;
	unsigned seen = 0;

	(void)archive_entry_xattr_reset(ae);
	while (archive_entry_xattr_next(ae, &name, &value, &len) == ARCHIVE_OK) {
		unsigned bit = parse_attr(name, value, len, e);

		if (!bit || (seen & bit))
			return false;
		seen |= bit;
	}
	if (seen != wanted[e->kind])
		return false;
	if (e->kind == SB_PACK_WHOLE)
		e->file_size = e->size;
	if (e->kind == SB_PACK_RANGE)
		return e->offset <= e->file_size && e->size == e->file_size - e->offset;
	return true;
}

static int
accept_entry(struct sb_pack_reader *r, struct archive_entry *ae, struct sb_pack_entry *out,
	struct sb_error *err)
{
	struct sb_pack_entry e = { .kind = SB_PACK_WHOLE };
	const char *wrong = foreign_feature(r->a, ae);
	size_t len;

	if (wrong)
		return refuse(r, wrong, err);
	e.path = archive_entry_pathname(ae);
	if (!e.path)
		return refuse(r, "an entry without a name", err);
	len = strlen(e.path);
	if (!len || len > PATH_BYTES_MAX)
		return refuse(r, "an entry with a name of impossible length", err);
	if (sb_path_check(e.path, len, &r->error) < 0) {
		r->error.code = SB_E_PROTO;
		return fail_with(r, err);
	}
	e.size = (uint64_t)archive_entry_size(ae);
	if (!parse_attrs(ae, &e))
		return refuse(r, "an entry with attributes that are not ours", err);
	r->have_entry = true;
	r->entry_size = e.size;
	r->entry_read = 0;
	*out = e;
	return 1;
}

/*
 * libarchive saw the end: it must be the one we write, and the last thing in the stream.
 */
static int
accept_end(struct sb_pack_reader *r, uint64_t before, struct sb_error *err)
{
	const void *more;
	size_t more_len = 0;
	uint64_t pos = (uint64_t)archive_filter_bytes(r->a, 0);
	int k;

	if (pos - before != TAR_END)
		return refuse(r, "ends without the end of the archive", err);
	if (pos != r->given)
		return refuse(r, "something behind the end of the archive", err);
	k = next_block(r, &more, &more_len);
	if (k < 0)
		return fail_with(r, err);
	if (k > 0)
		return refuse(r, "something behind the end of the archive", err);
	r->ended = true;
	return 0;
}

static int
open_tar(struct sb_pack_reader *r, struct sb_error *err)
{
	int k = archive_read_support_format_tar(r->a);

	if (k == ARCHIVE_OK)
		k = archive_read_open(r->a, r, NULL, read_block, NULL);
	if (r->error.code || k != ARCHIVE_OK)
		return fail_archive(r, "beginning", err);
	r->opened = true;
	return 0;
}

int
sb_pack_reader_next(struct sb_pack_reader *r, struct sb_pack_entry *out, struct sb_error *err)
{
	struct archive_entry *ae = NULL;
	uint64_t before;
	int k;

	if (r->far)
		return sb_unpack_next(r->far, out, err);
	if (r->error.code || sb_work_alive(&r->error) < 0)
		return fail_with(r, err);
	if (r->ended)
		return 0;
	if (!r->opened) {
		k = open_tar(r, err);
		if (k < 0)
			return k;
	}
	if (r->have_entry && archive_read_data_skip(r->a) != ARCHIVE_OK)
		return fail_archive(r, "skip data", err);
	r->have_entry = false;
	before = (uint64_t)archive_filter_bytes(r->a, 0);
	k = archive_read_next_header(r->a, &ae);
	if (r->error.code)
		return fail_with(r, err);
	if (k == ARCHIVE_EOF)
		return accept_end(r, before, err);
	if (k != ARCHIVE_OK)
		return fail_archive(r, "entry header", err);
	return accept_entry(r, ae, out, err);
}

ssize_t
sb_pack_reader_read(struct sb_pack_reader *r, const void **out, struct sb_error *err)
{
	la_int64_t offset = 0;
	size_t len = 0;
	int k;

	if (r->far)
		return sb_unpack_read(r->far, out, err);
	if (r->error.code || sb_work_alive(&r->error) < 0)
		return fail_with(r, err);
	if (!r->have_entry)
		return 0;
	k = archive_read_data_block(r->a, out, &len, &offset);
	if (r->error.code)
		return fail_with(r, err);
	if (k == ARCHIVE_EOF) {
		if (r->entry_read != r->entry_size)
			return refuse(r, "an entry shorter than its size", err);
		return 0;
	}
	if (k != ARCHIVE_OK)
		return fail_archive(r, "entry data", err);
	if ((uint64_t)offset != r->entry_read || len == 0 || len > r->entry_size - r->entry_read)
		return refuse(r, "data where none belongs", err);
	r->entry_read += len;
	return (ssize_t)len;
}

/* ---- life ---- */

struct sb_pack_reader *
sb_pack_reader_new(sb_pack_in_fn in, void *arg, struct sb_error *err)
{
	sb_auto(sb_pack_reader) struct sb_pack_reader *r = calloc(1, sizeof *r);

	if (r) {
		sb_pack_strict_init(&r->strict);
		r->in = in;
		r->arg = arg;
		r->a = archive_read_new();
		r->dctx = ZSTD_createDCtx();
	}
	if (!r || !r->a || !r->dctx) {
		(void)sb_fail(err, SB_E_NOMEM, "pack reader: out of memory");
		return NULL;
	}
	return sb_steal(&r);
}

struct sb_pack_reader *
sb_pack_reader_confined(struct sb_unpack *u, sb_pack_in_fn in, void *arg, struct sb_error *err)
{
	struct sb_pack_reader *r = calloc(1, sizeof *r);

	if (!r) {
		(void)sb_fail(err, SB_E_NOMEM, "pack reader: out of memory");
		return NULL;
	}
	if (sb_unpack_begin(u, in, arg, err) < 0) {
		free(r);
		return NULL;
	}
	r->far = u;
	return r;
}

void
sb_pack_reader_free(struct sb_pack_reader *r)
{
	if (!r)
		return;
	if (r->far) {
		sb_unpack_leave(r->far);
		free(r);
		return;
	}
	(void)archive_read_free(r->a);
	(void)ZSTD_freeDCtx(r->dctx);
	sb_pack_strict_free(&r->strict);
	free(r->raw);
	free(r);
}
