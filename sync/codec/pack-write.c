/* SPDX-License-Identifier: MIT */
/*
 * The tar side of the writer. libarchive's pax writer costs 2.5 us and 1 KiB of extension
 * for every entry once names are to be taken as they are (hdrcharset=BINARY), its ustar
 * writer 1 us and nothing, and takes any byte in a name. So there are two writers on one
 * stream: ustar for whole files with names and sizes it can express, pax for the rest.
 * Readers see one archive. Neither blocks its output (bytes_per_block 0), so bytes are
 * copied once, into the pipe's block.
 *
 * Attributes of entries other than whole files, as extended attributes with text values:
 *   user.sbsync.kind    "patch", "delta", "range", "sparse"
 *   user.sbsync.size    length of the finished file, decimal
 *   user.sbsync.base    digest of the base in hex (patch, delta), of what is there (range)
 *   user.sbsync.offset  decimal (range)
 */
#include "config.h"

#include <sync/codec/pack.h>

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <archive.h>
#include <archive_entry.h>

#include <sync/codec/pack-priv.h>
#include <sync/codec/pack-pipe.h>

enum writer_state {
	WRITER_BETWEEN, /* begin and finish are allowed */
	WRITER_ENTRY,   /* data and end are allowed */
	WRITER_FINISHED,
	WRITER_FAILED,
};

struct sb_pack_writer {
	enum writer_state state;
	struct sb_error error; /* why it is WRITER_FAILED */
	struct sb_pack_pipe *pipe;
	struct archive *ustar, *pax;
	struct archive *cur;         /* the one that writes the current entry */
	struct archive_entry *plain; /* reused for ustar: only name and size change */
	bool dropped;                /* being freed */
	uint64_t left;               /* bytes the current entry still needs */
};

#define USTAR_SIZE_MAX ((UINT64_C(1) << 33) - 1)

static int
fail_with(struct sb_pack_writer *w, struct sb_error *err)
{
	w->state = WRITER_FAILED;
	if (err)
		*err = w->error;
	return w->error.code;
}

/*
 * What went wrong in a call of libarchive, if anything. A failure of the pipe is kept
 * from it (see write_to_pipe), so that is looked at first.
 */
static int
check_archive(struct sb_pack_writer *w, struct archive *a, bool good, const char *what,
	struct sb_error *err)
{
	if (good && !w->error.code)
		return 0;
	if (!w->error.code)
		(void)sb_fail(&w->error, SB_E_INVAL, "%s: %s", what,
			archive_error_string(a) ? archive_error_string(a) : "tar writer failed");
	return fail_with(w, err);
}

static int
check_state(struct sb_pack_writer *w, enum writer_state want, const char *call,
	struct sb_error *err)
{
	if (w->state == want)
		return 0;
	if (w->state == WRITER_FAILED)
		return fail_with(w, err);
	return sb_fail(err, SB_E_STATE, "pack writer: %s is not allowed now", call);
}

/*
 * A tar writer that met a failure of its output before it is freed loses memory. So a
 * failure waits in w->error, and what is written after it goes nowhere; only when the
 * writer is being freed it fails, lest the rest of an unfinished entry is filled with
 * zeros.
 */
static la_ssize_t
write_to_pipe(struct archive *a, void *arg, const void *data, size_t len)
{
	struct sb_pack_writer *w = arg;
	int r;

	(void)a;
	if (w->dropped)
		return -1;
	if (w->error.code)
		return (la_ssize_t)len;
	r = sb_pack_pipe_write(w->pipe, data, len, &w->error);
	if (r < 0)
		w->error.code = r;
	return (la_ssize_t)len;
}

static struct archive *
open_tar(struct sb_pack_writer *w, int (*set_format)(struct archive *), const char *options)
{
	struct archive *a = archive_write_new();

	if (a && set_format(a) == ARCHIVE_OK && archive_write_add_filter_none(a) == ARCHIVE_OK &&
		archive_write_set_options(a, options) == ARCHIVE_OK &&
		archive_write_set_bytes_per_block(a, 0) == ARCHIVE_OK &&
		archive_write_open(a, w, NULL, write_to_pipe, NULL) == ARCHIVE_OK)
		return a;
	archive_write_free(a);
	return NULL;
}

struct sb_pack_writer *
sb_pack_writer_new(const struct sb_pack_writer_opts *opts, struct sb_error *err)
{
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;
	sb_auto(sb_pack_writer) struct sb_pack_writer *w = calloc(1, sizeof *w);

	assert(opts->size <= sizeof o);
	memcpy(&o, opts, opts->size);
	assert(o.out);
	if (o.level != SB_PACK_LEVEL_AUTO && (o.level < 0 || o.level > 19)) {
		(void)sb_fail(err, SB_E_INVAL, "compression level %d: must be 0 to 19", o.level);
		return NULL;
	}
	if (!w) {
		(void)sb_fail(err, SB_E_NOMEM, "pack writer: out of memory");
		return NULL;
	}
	w->pipe = sb_pack_pipe_new(&o, err);
	if (!w->pipe)
		return NULL;
	w->ustar = open_tar(w, archive_write_set_format_ustar, NULL);
	w->pax = open_tar(w, archive_write_set_format_pax_restricted,
		"hdrcharset=BINARY,xattrheader=SCHILY");
	w->plain = archive_entry_new();
	if (!w->ustar || !w->pax || !w->plain) {
		(void)sb_fail(err, SB_E_NOMEM, "tar writer: out of memory");
		return NULL;
	}
	archive_entry_set_filetype(w->plain, AE_IFREG);
	archive_entry_set_perm(w->plain, 0644);
	return sb_steal(&w);
}

static void
add_number(struct archive_entry *ae, const char *name, uint64_t v)
{
	char text[24];
	int n = snprintf(text, sizeof text, "%" PRIu64, v);

	archive_entry_xattr_add_entry(ae, name, text, (size_t)n);
}

static void
add_attributes(struct archive_entry *ae, const struct sb_pack_entry *e)
{
	const char *kind = sb_pack_attr_kinds[e->kind];

	archive_entry_xattr_add_entry(ae, SB_PACK_ATTR_KIND, kind, strlen(kind));
	add_number(ae, SB_PACK_ATTR_SIZE, e->file_size);
	if (e->kind == SB_PACK_RANGE)
		add_number(ae, SB_PACK_ATTR_OFFSET, e->offset);
	if (e->kind != SB_PACK_SPARSE) {
		char hex[2 * sizeof e->base.b + 1];

		for (size_t i = 0; i < sizeof e->base.b; i++)
			(void)snprintf(hex + 2 * i, 3, "%02x", e->base.b[i]);
		archive_entry_xattr_add_entry(ae, SB_PACK_ATTR_BASE, hex, sizeof hex - 1);
	}
}

static int
begin_pax(struct sb_pack_writer *w, const struct sb_pack_entry *e)
{
	struct archive_entry *ae = archive_entry_new();
	int r;

	if (!ae)
		return ARCHIVE_FATAL;
	archive_entry_set_filetype(ae, AE_IFREG);
	archive_entry_set_perm(ae, 0644);
	archive_entry_copy_pathname(ae, e->path);
	archive_entry_set_size(ae, (la_int64_t)e->size);
	if (e->kind != SB_PACK_WHOLE)
		add_attributes(ae, e);
	r = archive_write_header(w->pax, ae);
	archive_entry_free(ae);
	return r;
}

int
sb_pack_writer_begin(struct sb_pack_writer *w, const struct sb_pack_entry *e, struct sb_error *err)
{
	int r = check_state(w, WRITER_BETWEEN, "begin", err);

	if (r < 0)
		return r;
	assert((unsigned)e->kind < SB_PACK_ATTR_KINDS);
	if (e->size > INT64_MAX / 2)
		return sb_fail(err, SB_E_INVAL, "%s: %" PRIu64 " bytes is too large", e->path,
			e->size);
	r = ARCHIVE_FAILED;
	if (e->kind == SB_PACK_WHOLE && e->size <= USTAR_SIZE_MAX) {
		archive_entry_copy_pathname(w->plain, e->path);
		archive_entry_set_size(w->plain, (la_int64_t)e->size);
		w->cur = w->ustar;
		r = archive_write_header(w->ustar, w->plain);
	}
	/* ARCHIVE_FAILED: nothing was written, the name does not fit. */
	if (r == ARCHIVE_FAILED && !w->error.code) {
		w->cur = w->pax;
		r = begin_pax(w, e);
	}
	r = check_archive(w, w->cur, r == ARCHIVE_OK, e->path, err);
	if (r < 0)
		return r;
	w->left = e->size;
	w->state = WRITER_ENTRY;
	return 0;
}

int
sb_pack_writer_data(struct sb_pack_writer *w, const void *data, size_t len, struct sb_error *err)
{
	int r = check_state(w, WRITER_ENTRY, "data", err);

	if (r < 0)
		return r;
	if (len > w->left) {
		(void)sb_fail(&w->error, SB_E_INVAL,
			"entry is %" PRIu64 " bytes longer than announced",
			(uint64_t)len - w->left);
		return fail_with(w, err);
	}
	if (len) {
		la_ssize_t n = archive_write_data(w->cur, data, len);

		r = check_archive(w, w->cur, n == (la_ssize_t)len, "write data", err);
	}
	w->left -= len;
	return r;
}

int
sb_pack_writer_end(struct sb_pack_writer *w, struct sb_error *err)
{
	int r = check_state(w, WRITER_ENTRY, "end", err);

	if (r < 0)
		return r;
	if (w->left) {
		(void)sb_fail(&w->error, SB_E_INVAL, "entry ends %" PRIu64 " bytes short", w->left);
		return fail_with(w, err);
	}
	r = archive_write_finish_entry(w->cur);
	r = check_archive(w, w->cur, r == ARCHIVE_OK, "end of entry", err);
	if (r < 0)
		return r;
	w->state = WRITER_BETWEEN;
	return 0;
}

int
sb_pack_writer_finish(struct sb_pack_writer *w, struct sb_error *err)
{
	int r = check_state(w, WRITER_BETWEEN, "finish", err);

	if (r < 0)
		return r;
	/*
	 * Closing writes the end of the archive. Once: the pax writer is closed by free.
	 */
	r = archive_write_close(w->ustar);
	r = check_archive(w, w->ustar, r == ARCHIVE_OK, "end of archive", err);
	if (r < 0)
		return r;
	r = sb_pack_pipe_finish(w->pipe, &w->error);
	if (r < 0) {
		w->error.code = r;
		return fail_with(w, err);
	}
	w->state = WRITER_FINISHED;
	return 0;
}

bool
sb_pack_writer_link_bound(struct sb_pack_writer *w)
{
	return sb_pack_pipe_link_bound(w->pipe);
}

void
sb_pack_writer_free(struct sb_pack_writer *w)
{
	if (!w)
		return;
	w->dropped = true;
	(void)archive_write_free(w->ustar);
	(void)archive_write_free(w->pax);
	archive_entry_free(w->plain);
	sb_pack_pipe_free(w->pipe);
	free(w);
}
