/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/send.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/work.h>
#include <base/str.h>
#include <sync/codec/delta.h>
#include <sync/codec/recipe.h>
#include <sync/tree/hash.h>
#include <sync/tree/nstime.h>
#include <sync/codec/patch.h>

#define SMALL (1u << 20)
#define CHUNK (256u << 10)
#define ROWS_FLUSH 4096u
#define MANY \
	300000u /* entries: a block of each step and its tables would go beyond 300 MiB with a \
		   million */
/* So much of a stream is kept in the store in any case. */
#define KEEP_ALWAYS (16u << 20)

struct sb_send {
	struct sb_replica *rep;
	struct sb_wire *w;
	struct sb_send_opts o;
	struct sb_pack_writer *pack; /* made with the first file */
	struct sb_buf rows;
	struct sb_buf data; /* the file at hand */
	struct sb_buf patch;
	char *dir; /* directory opened last */
	int dirfd;
	struct sb_send_stats stats;
	/* For the progress callback. */
	uint64_t files;
	uint64_t bytes;
	int64_t told;
};

#define TELL_MS 100

/* `part`: bytes of the file at hand. */
static void
tell(struct sb_send *s, uint64_t part, bool anyway)
{
	int64_t now = s->o.progress ? sb_now_ms() : 0;

	if (!s->o.progress || (!anyway && now - s->told < TELL_MS))
		return;
	s->told = now;
	s->o.progress(s->files, s->bytes + part, s->o.arg);
}

static int
put_block(enum sb_pack_codec codec, size_t raw_len, const void *data, size_t len, void *arg,
	struct sb_error *err)
{
	struct sb_send *s = arg;
	uint8_t head[5] = { (uint8_t)codec, (uint8_t)raw_len, (uint8_t)(raw_len >> 8),
		(uint8_t)(raw_len >> 16), (uint8_t)(raw_len >> 24) };

	return sb_wire_send2(s->w, SB_MSG_DATA, head, sizeof head, data, len, err);
}

struct sb_send *
sb_send_new(struct sb_replica *rep, struct sb_wire *w, const struct sb_send_opts *opts,
	struct sb_error *err)
{
	struct sb_send *s = calloc(1, sizeof *s);

	if (!s) {
		sb_fail(err, SB_E_NOMEM, "send: out of memory");
		return NULL;
	}
	s->rep = rep;
	s->w = w;
	s->o = *opts;
	s->dirfd = -1;
	sb_buf_init(&s->rows, 1u << 20);
	sb_buf_init(&s->data, SB_PATCH_MAX_SIZE);
	sb_buf_init(&s->patch, 2 * SB_PATCH_MAX_SIZE);
	return s;
}

void
sb_send_free(struct sb_send *s)
{
	if (!s)
		return;
	sb_pack_writer_free(s->pack);
	sb_buf_free(&s->rows);
	sb_buf_free(&s->data);
	sb_buf_free(&s->patch);
	if (s->dirfd >= 0)
		(void)close(s->dirfd);
	free(s->dir);
	free(s);
}

const struct sb_send_stats *
sb_send_stats(const struct sb_send *s)
{
	return &s->stats;
}

static int
flush_rows(struct sb_send *s, struct sb_error *err)
{
	int r;

	if (!s->rows.len)
		return 0;
	r = sb_buf_check(&s->rows, "rows", err);
	if (r == 0)
		r = sb_wire_send(s->w, SB_MSG_ROWS, s->rows.data, s->rows.len, err);
	sb_buf_reset(&s->rows);
	return r;
}

static int
add_row(struct sb_send *s, enum sb_sent status, const struct sb_digest *digest,
	struct sb_error *err)
{
	sb_buf_add_u8(&s->rows, (uint8_t)(status | (digest ? 0x80 : 0)));
	if (digest)
		sb_buf_add(&s->rows, digest->b, sizeof digest->b);
	if (status != SB_SENT_OK)
		s->stats.lost++;
	return s->rows.len >= ROWS_FLUSH ? flush_rows(s, err) : 0;
}

int
sb_send_skip(struct sb_send *s, enum sb_sent status, struct sb_error *err)
{
	s->files++;
	return add_row(s, status, NULL, err);
}

static bool
many(const struct sb_send *s)
{
	return s->rep->scan.manifest && s->rep->scan.manifest->count > MANY;
}

static int
ready(struct sb_send *s, struct sb_error *err)
{
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;

	if (s->pack)
		return 0;
	o.level = s->o.level;
	o.sealed = !s->o.open;
	/* What is known of so many files takes the memory that there is for all. */
	o.small = many(s);
	o.out = put_block;
	o.arg = s;
	o.cancel = s->rep->cancel;
	s->pack = sb_pack_writer_new(&o, err);
	return s->pack ? 0 : err ? err->code : SB_E_NOMEM;
}

/* Opens the file; files of one directory come together, so that is kept open. */
static int
open_file(struct sb_send *s, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;
	struct sb_error e = { 0 };

	if (!s->dir || strncmp(s->dir, path, len) != 0 || s->dir[len]) {
		if (s->dirfd >= 0)
			(void)close(s->dirfd);
		free(s->dir);
		s->dir = strndup(path, len);
		s->dirfd = s->dir ?
			sb_path_open(s->rep->rootfd, s->dir, O_RDONLY | O_DIRECTORY, 0, &e) :
			-1;
		if (s->dirfd < 0) {
			errno = !s->dir ? ENOMEM : e.sys ? e.sys : ENOENT;
			free(s->dir);
			s->dir = NULL;
			return -1;
		}
	}
	return openat(s->dirfd, slash ? slash + 1 : path,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

/* Is the open file still the one that was scanned? */
static bool
same_stat(const struct stat *st, const struct sb_entry *e)
{
	return S_ISREG(st->st_mode) && (uint64_t)st->st_size == e->size &&
		sb_ns_from(st->st_mtim) == e->mtime && (!e->ino || st->st_ino == e->ino) &&
		(!e->ctime || sb_ns_from(st->st_ctim) == e->ctime);
}

static bool
unchanged(int fd, const struct sb_entry *e)
{
	struct stat st;

	return fstat(fd, &st) == 0 && same_stat(&st, e);
}

static int
emit(struct sb_send *s, const struct sb_pack_entry *pe, const void *data, size_t len,
	struct sb_error *err)
{
	int r = ready(s, err);

	if (r == 0)
		r = sb_pack_writer_begin(s->pack, pe, err);
	if (r == 0 && len)
		r = sb_pack_writer_data(s->pack, data, len, err);
	if (r == 0)
		r = sb_pack_writer_end(s->pack, err);
	return r;
}

/* Tries a patch on the bytes the receiver holds: 1 when it was sent. */
static int
try_patch(struct sb_send *s, const struct sb_want *w, const struct sb_entry *e,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf base = { 0 };
	struct sb_pack_entry pe = { .path = w->path,
		.kind = SB_PACK_PATCH,
		.file_size = e->size,
		.base = w->base };
	int r;

	sb_buf_init(&base, 0);
	if (s->o.no_delta || w->whole || !s->o.store || !sb_digest_known(&w->base) || e->size < 64)
		return 0;
	if (sb_store_get(s->o.store, &w->base, &base, NULL) < 0)
		return 0;
	sb_buf_reset(&s->patch);
	if (sb_patch_make(base.data, base.len, s->data.data, s->data.len, 3, &s->patch, NULL) < 0)
		return 0;
	if (s->patch.len > e->size / 2)
		return 0;
	pe.size = s->patch.len;
	r = emit(s, &pe, s->patch.data, s->patch.len, err);
	if (r == 0)
		s->stats.patches++;
	return r < 0 ? r : 1;
}

struct spool {
	struct sb_buf *to;
};

static int
spool(const void *data, size_t len, void *arg, struct sb_error *err)
{
	struct spool *sp = arg;

	sb_buf_add(sp->to, data, len);
	return sb_buf_check(sp->to, "delta", err);
}

/* Sends what is in s->patch as a delta. */
static int
emit_delta(struct sb_send *s, const struct sb_want *w, const struct sb_entry *e,
	struct sb_error *err)
{
	struct sb_pack_entry pe = { .path = w->path,
		.kind = SB_PACK_DELTA,
		.file_size = e->size,
		.base = w->base };
	int r;

	pe.size = s->patch.len;
	r = emit(s, &pe, s->patch.data, s->patch.len, err);
	if (r == 0)
		s->stats.patches++;
	return r < 0 ? r : 1;
}

static uint64_t
delta_max(const struct sb_send *s, const struct sb_entry *e)
{
	return e->size / 2 < s->patch.max ? e->size / 2 : s->patch.max;
}

/* Tries a delta by what we remember of the receiver's copy: 1 when it was sent. */
static int
try_recipe(struct sb_send *s, const struct sb_want *w, const struct sb_entry *e, int fd,
	struct sb_error *err)
{
	int r;

	if (s->o.no_delta || w->whole || s->o.recipes < 0 || !sb_digest_known(&w->base) ||
		!sb_recipe_has(s->o.recipes, &w->base))
		return 0;
	sb_buf_reset(&s->patch);
	r = sb_recipe_delta(s->o.recipes, &w->base, fd, e->size, delta_max(s, e), &s->patch,
		s->rep->cancel, NULL);
	if (r == SB_E_CANCELED)
		return sb_fail(err, r, "canceled");
	return r < 0 ? 0 : emit_delta(s, w, e, err);
}

/* Tries a librsync delta against the receiver's signature: 1 when it was sent. */
static int
try_delta(struct sb_send *s, const struct sb_want *w, const struct sb_entry *e, int fd,
	struct sb_error *err)
{
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct spool sp = { &s->patch };
	int r;

	if (s->o.no_delta || w->whole || !w->sig ||
		sb_delta_check_sig(w->sig, w->sig_len, w->base_size, NULL) < 0)
		return 0;
	b.max_out = delta_max(s, e);
	b.max_ms = 2000 +
		(unsigned)(e->size >>
			16); /* a sixteenth of a second a MiB more than it should ever take */
	sb_buf_reset(&s->patch);
	if (lseek(fd, 0, SEEK_SET) < 0)
		return 0;
	r = sb_delta_make(w->sig, w->sig_len, fd, &b, spool, &sp, s->rep->cancel, NULL);
	if (r == SB_E_CANCELED)
		return sb_fail(err, r, "canceled");
	return r < 0 ? 0 : emit_delta(s, w, e, err);
}

/*
 * Keeps what was sent, so that its next version can go as a patch. Patches save bytes, and keeping
 * a whole tree costs as much as compressing it: over a link that is no bottleneck only small
 * streams and files that were kept before are worth it. So it is with very many files, for whose
 * index there is no memory.
 */
static void
keep(struct sb_send *s, const struct sb_want *w, const struct sb_digest *d)
{
	if (!s->o.store)
		return;
	if (s->o.keep_all || s->stats.bytes < KEEP_ALWAYS ||
		(!many(s) && sb_pack_writer_link_bound(s->pack)) ||
		(sb_digest_known(&w->base) && sb_store_has(s->o.store, &w->base)))
		(void)sb_store_add(s->o.store, d, s->data.data, s->data.len, NULL);
}

/* A file small enough for memory: read, check, hash, send. */
static int
send_small(struct sb_send *s, const struct sb_want *w, struct sb_entry *e, int fd,
	struct sb_error *err)
{
	struct sb_pack_entry pe = { .path = w->path,
		.kind = SB_PACK_WHOLE,
		.size = e->size,
		.file_size = e->size };
	bool told = sb_digest_known(&e->digest);
	struct sb_digest d;
	int r;

	sb_buf_reset(&s->data);
	if (!sb_buf_reserve(&s->data, e->size))
		return sb_buf_check(&s->data, w->path, err);
	if (e->size && sb_file_read_full(fd, s->data.data, e->size, err) != (ssize_t)e->size)
		return add_row(s, SB_SENT_UNSTABLE, NULL, err);
	sb_buf_grow(&s->data, e->size);
	if (!unchanged(fd, e))
		return add_row(s, SB_SENT_UNSTABLE, NULL, err);
	d = sb_digest_of(s->data.data, s->data.len);
	if (told && !sb_digest_eq(&d, &e->digest))
		return add_row(s, SB_SENT_UNSTABLE, NULL, err);
	e->digest = d;
	e->flags = (uint8_t)(e->flags & ~SB_ENTRY_UNHASHED);
	r = try_patch(s, w, e, err);
	if (r == 0)
		r = try_delta(s, w, e, fd, err);
	if (r == 0)
		r = emit(s, &pe, s->data.data, s->data.len, err);
	if (r < 0)
		return r;
	keep(s, w, &d);
	return add_row(s, SB_SENT_OK, told ? NULL : &d, err);
}

/*
 * Sends bytes [from, size) in pieces; what is missing because the file shrank is filled with zeros
 * (the row tells).
 */
static int
send_range(struct sb_send *s, int fd, uint64_t from, uint64_t size, XXH3_state_t *hash, bool *torn,
	struct sb_error *err)
{
	sb_autofree uint8_t *buf = malloc(CHUNK);

	if (!buf)
		return sb_fail(err, SB_E_NOMEM, "send: out of memory");
	while (from < size) {
		size_t want = size - from < CHUNK ? (size_t)(size - from) : CHUNK;
		ssize_t n = pread(fd, buf, want, (off_t)from);
		int r;

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			memset(buf, 0, want);
			n = (ssize_t)want;
			*torn = true;
		}
		if (hash)
			XXH3_128bits_update(hash, buf, (size_t)n);
		r = sb_pack_writer_data(s->pack, buf, (size_t)n, err);
		if (r == 0)
			r = sb_check_alive(s->rep->cancel, SB_NEVER, "send", err);
		if (r < 0)
			return r;
		from += (uint64_t)n;
		tell(s, from, false);
	}
	return 0;
}

/*
 * The beginning that an interrupted transfer left with the receiver: is it the beginning of this
 * file?
 */
static uint64_t
resume_at(const struct sb_want *w, const struct sb_entry *e, int fd)
{
	struct sb_digest d;
	uint64_t n;

	if (w->whole || !w->have || w->have >= e->size)
		return 0;
	if (sb_hash_fd(fd, w->have, &d, &n, NULL) < 0 || n != w->have ||
		!sb_digest_eq(&d, &w->have_digest))
		return 0;
	return w->have;
}

static bool
has_holes(const struct stat *st)
{
	return st->st_size >= (64 << 10) && st->st_blocks * 512 < st->st_size - st->st_size / 8;
}

/*
 * The runs of data in a file with holes, encoded as SB_PACK_SPARSE wants them; 0 when it has no
 * holes worth it.
 */
static uint64_t
sparse_size(int fd, const struct sb_entry *e, const struct stat *st)
{
	uint64_t total = 0;
	off_t at = 0, end;
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	if (!has_holes(st))
		return 0;
	sb_buf_init(&b, 64);
	while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && (uint64_t)at < e->size) {
		end = lseek(fd, at, SEEK_HOLE);
		if (end < 0 || (uint64_t)end > e->size)
			end = (off_t)e->size;
		sb_buf_reset(&b);
		sb_buf_add_varint(&b, (uint64_t)at);
		sb_buf_add_varint(&b, (uint64_t)(end - at));
		total += b.len + (uint64_t)(end - at);
		at = end;
	}
	sb_buf_reset(&b);
	sb_buf_add_varint(&b, e->size);
	sb_buf_add_varint(&b, 0);
	return total + b.len;
}

static int
send_sparse(struct sb_send *s, int fd, const struct sb_entry *e, uint64_t total, bool *torn,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	uint64_t sent = 0;
	off_t at = 0, end;
	int r = 0;

	sb_buf_init(&b, 64);
	while (r == 0 && (at = lseek(fd, at, SEEK_DATA)) >= 0 && (uint64_t)at < e->size) {
		end = lseek(fd, at, SEEK_HOLE);
		if (end < 0 || (uint64_t)end > e->size)
			end = (off_t)e->size;
		sb_buf_reset(&b);
		sb_buf_add_varint(&b, (uint64_t)at);
		sb_buf_add_varint(&b, (uint64_t)(end - at));
		sent += b.len + (uint64_t)(end - at);
		if (sent > total)
			break;
		r = sb_pack_writer_data(s->pack, b.data, b.len, err);
		if (r == 0)
			r = send_range(s, fd, (uint64_t)at, (uint64_t)end, NULL, torn, err);
		at = end;
	}
	sb_buf_reset(&b);
	sb_buf_add_varint(&b, e->size);
	sb_buf_add_varint(&b, 0);
	if (r == 0 && sent + b.len != total) {
		/* The holes moved while we read: fill up, the receiver throws it away. */
		static const uint8_t zeros[4096];

		*torn = true;
		while (r == 0 && sent < total) {
			size_t n =
				total - sent < sizeof zeros ? (size_t)(total - sent) : sizeof zeros;

			r = sb_pack_writer_data(s->pack, zeros, n, err);
			sent += n;
		}
		return r;
	}
	return r < 0 ? r : sb_pack_writer_data(s->pack, b.data, b.len, err);
}

static int
send_large(struct sb_send *s, const struct sb_want *w, struct sb_entry *e, int fd,
	const struct stat *st, bool told, struct sb_error *err)
{
	struct sb_pack_entry pe = { .path = w->path,
		.kind = SB_PACK_WHOLE,
		.size = e->size,
		.file_size = e->size };
	uint64_t from = resume_at(w, e, fd), holes = from ? 0 : sparse_size(fd, e, st);
	bool torn = false;
	int r = from || holes ? 0 : try_recipe(s, w, e, fd, err);

	if (r == 0 && !from && !holes)
		r = try_delta(s, w, e, fd, err);
	if (r == 0) {
		r = ready(s, err);
		if (from) {
			pe.kind = SB_PACK_RANGE;
			pe.offset = from;
			pe.size = e->size - from;
			pe.base = w->have_digest;
		} else if (holes) {
			pe.kind = SB_PACK_SPARSE;
			pe.size = holes;
		}
		if (r == 0)
			r = sb_pack_writer_begin(s->pack, &pe, err);
		if (r == 0)
			r = holes ? send_sparse(s, fd, e, holes, &torn, err) :
				    send_range(s, fd, from, e->size, NULL, &torn, err);
		if (r == 0)
			r = sb_pack_writer_end(s->pack, err);
	}
	if (r < 0)
		return r;
	if (torn || !unchanged(fd, e))
		return add_row(s, SB_SENT_UNSTABLE, NULL, err);
	return add_row(s, SB_SENT_OK, told ? NULL : &e->digest, err);
}

/*
 * A file that cannot be opened: is it about this path (the row tells) or about the machine (stop)?
 */
static int
not_opened(struct sb_send *s, const char *path, struct sb_error *err)
{
	switch (errno) {
	case EACCES:
	case EPERM: return add_row(s, SB_SENT_UNREADABLE, NULL, err);
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case EXDEV:
	case ENXIO: return add_row(s, SB_SENT_VANISHED, NULL, err);
	default: return sb_fail_errno(err, "open %s", path);
	}
}

/* Has it what its user put there and we do not carry: extended attributes, a list of access? */
static bool
has_attrs(int fd)
{
	char names[1024];
	ssize_t n = flistxattr(fd, names, sizeof names);

	if (n < 0)
		return errno == ERANGE;
	for (const char *p = names; p < names + n; p += strlen(p) + 1)
		if (strncmp(p, "user.", 5) == 0 || strcmp(p, "system.posix_acl_access") == 0)
			return true;
	return false;
}

static int
send_file(struct sb_send *s, const struct sb_want *w, struct sb_entry *e, struct sb_error *err)
{
	sb_autoclose int fd = -1;
	struct stat st;
	int r = sb_work_alive(err);

	if (r < 0)
		return r;
	fd = open_file(s, w->source ? w->source : w->path);
	if (fd < 0)
		return not_opened(s, w->source ? w->source : w->path, err);
	if (fstat(fd, &st) < 0 || !same_stat(&st, e))
		return add_row(s, SB_SENT_UNSTABLE, NULL, err);
	s->stats.attrs += has_attrs(fd);
	if ((e->size <= SMALL && !has_holes(&st)) ||
		(s->o.store && !w->whole && !s->o.no_delta && e->size <= SB_PATCH_MAX_SIZE &&
			sb_digest_known(&w->base) && sb_store_has(s->o.store, &w->base))) {
		r = send_small(s, w, e, fd, err);
	} else {
		bool told = sb_digest_known(&e->digest);

		if (!told) {
			r = sb_hash_fd(fd, e->size, &e->digest, NULL, err);
			if (r < 0 || !unchanged(fd, e))
				return r < 0 ? r : add_row(s, SB_SENT_UNSTABLE, NULL, err);
		}
		r = send_large(s, w, e, fd, &st, told, err);
	}
	if (r < 0)
		return r;
	s->stats.files++;
	s->stats.bytes += e->size;
	return 0;
}

int
sb_send_file(struct sb_send *s, const struct sb_want *w, struct sb_entry *e, struct sb_error *err)
{
	int r = send_file(s, w, e, err);

	s->files++;
	s->bytes += e->size;
	tell(s, 0, false);
	return r;
}

int
sb_send_finish(struct sb_send *s, struct sb_error *err)
{
	bool any = s->pack != NULL;
	int r = s->pack ? sb_pack_writer_finish(s->pack, err) : 0;

	if (r == 0)
		r = flush_rows(s, err);
	if (r == 0 && any)
		r = sb_wire_send(s->w, SB_MSG_DATA_END, NULL, 0, err);
	if (r == 0)
		tell(s, 0, true);
	return r;
}
