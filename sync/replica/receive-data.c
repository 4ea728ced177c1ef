/* SPDX-License-Identifier: MIT */
/* The middle part of receiving: takes entries of the data stream and verifies them. */
#include "config.h"

#include <sync/replica/receive-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <base/work.h>
#include <sync/codec/delta.h>
#include <sync/tree/hash.h>
#include <sync/tree/stage-names.h>
#include <sync/codec/patch.h>

#define TELL_MS 100

/* `part`: bytes of the file at hand. */
static void
tell(struct sb_receive *r, uint64_t part)
{
	int64_t now = r->o.progress ? sb_now_ms() : 0;

	if (!r->o.progress || now - r->told < TELL_MS)
		return;
	r->told = now;
	r->o.progress(r->came_files, r->came_bytes + part, r->o.arg);
}

/*
 * Finds the item this entry is for: entries come in the order of the plan, some may be missing. It
 * stays the current one (items.data_at) until its data is read: plan pieces that come meanwhile may
 * move the list.
 */
static int
match(struct sb_receive *r, const struct sb_pack_entry *e, struct sb_receive_item *out,
	struct sb_error *err)
{
	for (; r->items.data_at < r->items.n; r->items.data_at++) {
		struct sb_receive_item *it = &r->items.v[r->items.data_at];
		int n = sb_work_alive(err);

		if (n < 0)
			return n;

		it->has_data = true;
		if (strcmp(it->path, e->path) == 0) {
			*out = *it;
			return 0;
		}
		/* Not sent: its row must say why. */
		sb_receive_rec(r, it->rec)->state = REC_DROPPED;
	}
	return sb_fail(err, SB_E_PROTO, "the far side sent a file that was not announced");
}

static int
read_all(struct sb_pack_reader *in, uint64_t size, size_t max, struct sb_buf *out,
	struct sb_error *err)
{
	sb_buf_init(out, max);
	if (size > max)
		return sb_fail(err, SB_E_LIMIT, "an entry of %llu bytes is too large",
			(unsigned long long)size);
	if (!sb_buf_reserve(out, size))
		return sb_buf_check(out, "entry", err);
	for (;;) {
		const void *p;
		ssize_t n = sb_pack_reader_read(in, &p, err);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		sb_buf_add(out, p, (size_t)n);
	}
	if (out->len != size)
		return sb_fail(err, SB_E_PROTO, "an entry ended early");
	return sb_buf_check(out, "entry", err);
}

/* Hands `b`'s bytes to a writer. */
static int
queue_write(struct sb_receive *r, const struct sb_receive_item *it, struct sb_buf *b,
	struct sb_error *err)
{
	struct sb_receive_job j = { .kind = JOB_WRITE,
		.rec = sb_receive_rec(r, it->rec),
		.mode = it->mode,
		.mtime = it->mtime };
	const char *leaf;

	j.dir = sb_receive_dir_get(r, it->staged, &leaf, err);
	if (!j.dir)
		return err ? err->code : SB_E_SYS;
	j.leaf = strdup(leaf);
	j.data = sb_buf_detach(b, &j.len);
	if (!j.leaf || !j.data) {
		sb_receive_dir_put(r, j.dir);
		free(j.leaf);
		free(j.data);
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	}
	return sb_receive_pool_add(r, &j, err);
}

/* A file written by this thread in pieces, hashed as it goes. */
struct sink {
	int fd;
	XXH3_state_t *hash;
	uint64_t len;
	uint64_t max;
};

static int
sink_open(struct sb_receive *r, const struct sb_receive_item *it, struct sink *s,
	struct sb_error *err)
{
	const char *leaf;
	struct sb_receive_dir *d = sb_receive_dir_get(r, it->staged, &leaf, err);

	s->fd = -1;
	s->len = 0;
	s->max = it->size;
	s->hash = XXH3_createState();
	if (!d || !s->hash) {
		if (d)
			sb_receive_dir_put(r, d);
		return d    ? sb_fail(err, SB_E_NOMEM, "receive: out of memory") :
			err ? err->code :
			      SB_E_SYS;
	}
	XXH3_128bits_reset(s->hash);
	s->fd = openat(d->fd, leaf, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	sb_receive_dir_put(r, d);
	return s->fd < 0 ? sb_fail_errno(err, "make staged %s", it->staged) : 0;
}

static void
sink_close(struct sink *s)
{
	if (s->fd >= 0)
		(void)close(s->fd);
	XXH3_freeState(s->hash);
}

static int
sink_write(const void *data, size_t len, void *arg, struct sb_error *err)
{
	struct sink *s = arg;

	if (len > s->max - s->len)
		return sb_fail(err, SB_E_PROTO, "a file is longer than announced");
	XXH3_128bits_update(s->hash, data, len);
	s->len += len;
	return sb_file_write_all(s->fd, data, len, err);
}

static int
sink_done(struct sb_receive *r, const struct sb_receive_item *it, struct sink *s,
	struct sb_error *err)
{
	struct sb_receive_rec res = { .got = sb_digest_final(s->hash) };
	int n = sb_receive_finish_file(s->fd, it->mode, it->mtime, &res, err);

	if (n < 0)
		return n;
	sb_receive_judge(r, sb_receive_rec(r, it->rec), &res);
	pthread_mutex_lock(&r->pool.mu);
	r->pool.written_files++;
	r->pool.written_bytes += s->len;
	pthread_mutex_unlock(&r->pool.mu);
	return 0;
}

static int
large_whole(struct sb_receive *r, struct sb_receive_item *it, struct sb_pack_reader *in,
	struct sb_error *err)
{
	struct sink s;
	int n = sink_open(r, it, &s, err);

	while (n == 0) {
		const void *p;
		ssize_t len = sb_pack_reader_read(in, &p, err);

		if (len <= 0) {
			n = (int)len;
			break;
		}
		n = sink_write(p, (size_t)len, &s, err);
		tell(r, s.len);
	}
	if (n == 0)
		n = sink_done(r, it, &s, err);
	sink_close(&s);
	return n;
}

/* The rest of a file whose beginning an interrupted transfer left. */
static int
range(struct sb_receive *r, struct sb_receive_item *it, struct sb_pack_reader *in,
	const struct sb_pack_entry *e, struct sb_error *err)
{
	struct sb_leftover *l = sb_stage_lookup(r->stage, &e->base);
	sb_autofree char *full = sb_str_printf("%s/%s", SB_STAGE_NEW, it->staged);
	struct sb_receive_rec res = { 0 };
	sb_autoclose int fd = -1;
	uint64_t at = e->offset;
	int n;

	if (!full)
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	if (!l || l->size != e->offset || e->offset > it->size ||
		strncmp(l->path, SB_STAGE_NEW "/", 4) == 0)
		return sb_fail(err, SB_E_PROTO, "the far side continues a file that was not begun");
	if (renameat(r->stage->fd, l->path, r->stage->fd, full) < 0)
		return sb_fail_errno(err, "take up %s again", it->path);
	free(l->path);
	l->path = sb_steal(&full);
	fd = sb_path_open(r->stage->fd, l->path, O_RDWR, 0, err);
	if (fd < 0)
		return fd;
	for (;;) {
		const void *p;
		ssize_t len = sb_pack_reader_read(in, &p, err);

		if (len < 0)
			return (int)len;
		if (len == 0)
			break;
		if ((uint64_t)len > it->size - at)
			return sb_fail(err, SB_E_PROTO, "a file is longer than announced");
		if (pwrite(fd, p, (size_t)len, (off_t)at) != len)
			return sb_fail_errno(err, "write staged %s", it->path);
		at += (uint64_t)len;
		tell(r, at);
	}
	n = sb_hash_fd(fd, UINT64_MAX, &res.got, NULL, err);
	if (n == 0)
		n = sb_receive_finish_file(fd, it->mode, it->mtime, &res, err);
	if (n == 0)
		sb_receive_judge(r, sb_receive_rec(r, it->rec), &res);
	return n;
}

/*
 * Opens the file that is at the item's path now and checks that it is the content the sender built
 * on.
 */
static int
open_basis(struct sb_receive *r, const struct sb_receive_item *it, const struct sb_digest *base,
	struct stat *st)
{
	const struct sb_entry *e = sb_manifest_find(r->rep->scan.manifest, it->path);
	int fd;

	if (!e || e->type != SB_ENTRY_FILE || !sb_digest_eq(&e->digest, base))
		return -1;
	fd = sb_path_open(r->rep->rootfd, it->path, O_RDONLY | O_NONBLOCK, 0, NULL);
	if (fd < 0)
		return -1;
	if (fstat(fd, st) < 0 || !S_ISREG(st->st_mode) || (uint64_t)st->st_size != e->size) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* The basis is not what it was: the content will be asked for whole. */
static int
give_up(struct sb_receive *r, const struct sb_receive_item *it, struct sb_error *err)
{
	struct sb_receive_item again = *it;

	sb_receive_rec(r, it->rec)->state = REC_BAD;
	sb_receive_rec(r, it->rec)->again = true;
	again.path = strdup(it->path);
	again.staged = strdup(it->staged);
	if (!again.path || !again.staged) {
		free(again.path);
		free(again.staged);
		return sb_fail(err, SB_E_NOMEM, "receive: out of memory");
	}
	return sb_receive_items_add(&r->risky, &again, err);
}

static int
patch(struct sb_receive *r, struct sb_receive_item *it, struct sb_pack_reader *in,
	const struct sb_pack_entry *e, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf z = { 0 }, base = { 0 }, out = { 0 };
	struct sb_error why = { 0 };
	sb_autoclose int fd = -1;
	struct stat st;
	int n;

	sb_buf_init(&base, SB_PATCH_MAX_SIZE);
	sb_buf_init(&out, SB_PATCH_MAX_SIZE);
	n = read_all(in, e->size, SB_PATCH_MAX_SIZE + (1u << 20), &z, err);
	if (n < 0)
		return n;
	fd = open_basis(r, it, &e->base, &st);
	if (fd < 0 || (uint64_t)st.st_size > SB_PATCH_MAX_SIZE || it->size > SB_PATCH_MAX_SIZE)
		return give_up(r, it, err);
	if (!sb_buf_reserve(&base, (size_t)st.st_size) || !sb_buf_reserve(&out, it->size))
		return sb_fail(err, SB_E_NOMEM, "patch: out of memory");
	if (sb_file_read_full(fd, base.data, (size_t)st.st_size, &why) != st.st_size)
		return give_up(r, it, err);
	sb_buf_grow(&base, (size_t)st.st_size);
	n = r->unpack ?
		sb_unpack_patch(r->unpack, base.data, base.len, z.data, z.len, out.data, it->size,
			&why) :
		sb_patch_apply(base.data, base.len, z.data, z.len, out.data, it->size, &why);
	if (n == SB_E_CANCELED && err)
		*err = why;
	if (n < 0)
		return n == SB_E_CANCELED ? n : give_up(r, it, err);
	sb_buf_grow(&out, it->size);
	if (sb_digest_known(&sb_receive_rec(r, it->rec)->want)) {
		struct sb_digest d = sb_digest_of(out.data, out.len);

		if (!sb_digest_eq(&d, &sb_receive_rec(r, it->rec)->want))
			return give_up(r, it, err);
	}
	return queue_write(r, it, &out, err);
}

static ssize_t
delta_source(const void **out, void *arg, struct sb_error *err)
{
	return sb_pack_reader_read(arg, out, err);
}

static int
delta(struct sb_receive *r, struct sb_receive_item *it, struct sb_pack_reader *in,
	const struct sb_pack_entry *e, struct sb_error *err)
{
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct sb_error why = { 0 };
	sb_autoclose int fd = -1;
	struct sink s;
	struct stat st;
	int n;

	fd = open_basis(r, it, &e->base, &st);
	if (fd < 0)
		return give_up(r, it, err);
	b.max_out = it->size;
	b.max_ms = 10000 + (unsigned)(it->size >> 13);
	n = sink_open(r, it, &s, err);
	if (n == 0) {
		n = sb_delta_apply(fd, (uint64_t)st.st_size, delta_source, in, &b, sink_write, &s,
			r->rep->cancel, &why);
		if (n < 0 && n != SB_E_CANCELED && n != SB_E_NOSPACE && n != SB_E_SYS) {
			const char *leaf;
			struct sb_receive_dir *d = sb_receive_dir_get(r, it->staged, &leaf, err);

			sink_close(&s);
			if (!d)
				return err ? err->code : SB_E_SYS;
			(void)unlinkat(d->fd, leaf, 0);
			sb_receive_dir_put(r, d);
			return give_up(r, it, err);
		}
		if (n < 0 && err)
			*err = why;
		if (n >= 0)
			n = sink_done(r, it, &s, err);
	}
	sink_close(&s);
	return n;
}

/* A file with holes: runs of (varint offset, varint length, bytes), ended by (size, 0). */
struct sparse {
	struct sb_pack_reader *in;
	const uint8_t *p;
	size_t n;
};

static int
sparse_fill(struct sparse *s, struct sb_error *err)
{
	const void *p;
	ssize_t n;

	if (s->n)
		return 0;
	n = sb_pack_reader_read(s->in, &p, err);
	if (n < 0)
		return (int)n;
	if (n == 0)
		return sb_fail(err, SB_E_PROTO, "a sparse file ended early");
	s->p = p;
	s->n = (size_t)n;
	return 0;
}

static int
sparse_varint(struct sparse *s, uint64_t *out, struct sb_error *err)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		int n = sparse_fill(s, err);

		if (n < 0)
			return n;
		v |= (uint64_t)(*s->p & 0x7f) << shift;
		s->n--;
		if (!(*s->p++ & 0x80)) {
			*out = v;
			return 0;
		}
	}
	return sb_fail(err, SB_E_PROTO, "a sparse file's map is damaged");
}

static int
sparse_run(struct sparse *s, int fd, uint64_t off, uint64_t len, struct sb_error *err)
{
	while (len) {
		size_t piece;
		int n = sparse_fill(s, err);

		if (n < 0)
			return n;
		piece = s->n < len ? s->n : (size_t)len;
		if (pwrite(fd, s->p, piece, (off_t)off) != (ssize_t)piece)
			return sb_fail_errno(err, "write a staged sparse file");
		s->p += piece;
		s->n -= piece;
		off += piece;
		len -= piece;
	}
	return 0;
}

static int
sparse(struct sb_receive *r, struct sb_receive_item *it, struct sb_pack_reader *in,
	struct sb_error *err)
{
	struct sparse s = { .in = in };
	struct sb_receive_rec res = { 0 };
	struct sink k;
	uint64_t end = 0, off, len;
	int n = sink_open(r, it, &k, err);

	while (n == 0) {
		n = sparse_varint(&s, &off, err);
		if (n == 0)
			n = sparse_varint(&s, &len, err);
		if (n < 0 || len == 0)
			break;
		if (off < end || off > it->size || len > it->size - off) {
			n = sb_fail(err, SB_E_PROTO, "a sparse file's map is damaged");
			break;
		}
		n = sparse_run(&s, k.fd, off, len, err);
		end = off + len;
	}
	if (n == 0 && ftruncate(k.fd, (off_t)it->size) < 0)
		n = sb_fail_errno(err, "set the length of a staged file");
	if (n == 0)
		n = sb_hash_fd(k.fd, UINT64_MAX, &res.got, NULL, err);
	if (n == 0)
		n = sb_receive_finish_file(k.fd, it->mode, it->mtime, &res, err);
	if (n == 0)
		sb_receive_judge(r, sb_receive_rec(r, it->rec), &res);
	sink_close(&k);
	return n;
}

static int
take_entry(struct sb_receive *r, struct sb_receive_item *it, struct sb_pack_reader *in,
	const struct sb_pack_entry *e, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int n;

	switch (e->kind) {
	case SB_PACK_PATCH: return patch(r, it, in, e, err);
	case SB_PACK_DELTA: return delta(r, it, in, e, err);
	case SB_PACK_RANGE: return range(r, it, in, e, err);
	case SB_PACK_SPARSE: return sparse(r, it, in, err);
	case SB_PACK_WHOLE: break;
	}
	if (e->size != it->size)
		return sb_fail(err, SB_E_PROTO, "%s has %llu bytes instead of %llu", it->path,
			(unsigned long long)e->size, (unsigned long long)it->size);
	if (e->size > SB_RECEIVE_SMALL)
		return large_whole(r, it, in, err);
	n = read_all(in, e->size, SB_RECEIVE_SMALL, &b, err);
	return n < 0 ? n : queue_write(r, it, &b, err);
}

struct sb_pack_reader *
sb_receive_reader(struct sb_receive *r, sb_pack_in_fn in, void *arg, struct sb_error *err)
{
	if (!r->o.confine)
		return sb_pack_reader_new(in, arg, err);
	if (!r->unpack)
		r->unpack = sb_unpack_new(err);
	return r->unpack ? sb_pack_reader_confined(r->unpack, in, arg, err) : NULL;
}

bool
sb_receive_is_open(const struct sb_receive *r)
{
	return r->unpack && !sb_unpack_is_confined(r->unpack);
}

int
sb_receive_entry(struct sb_receive *r, struct sb_pack_reader *in, const struct sb_pack_entry *e,
	struct sb_error *err)
{
	struct sb_receive_item it;
	int n = match(r, e, &it, err);

	/* What the sender gave up on is not read: the reader skips it. */
	if (n == 0 && !it.dropped)
		n = take_entry(r, &it, in, e, err);
	if (n == 0) {
		r->items.data_at++;
		r->came_files++;
		r->came_bytes += it.size;
		tell(r, 0);
	}
	return n;
}

/* A row: u8 status, 0x80 added when a digest follows. */
static int
take_row(struct sb_receive *r, struct sb_receive_item *it, uint8_t status, const uint8_t *digest,
	struct sb_error *err)
{
	struct sb_receive_rec *rec = sb_receive_rec(r, it->rec);
	int n = 0;

	it->has_row = true;
	pthread_mutex_lock(&r->pool.mu);
	if (status != SB_SENT_OK) {
		rec->state = REC_DROPPED;
		rec->unreadable = status == SB_SENT_UNREADABLE;
		it->dropped = true;
	} else if (digest && !sb_digest_known(&rec->want)) {
		memcpy(rec->want.b, digest, sizeof rec->want.b);
		if (rec->state == REC_OK && !sb_digest_eq(&rec->want, &rec->got))
			rec->state = REC_BAD;
	}
	pthread_mutex_unlock(&r->pool.mu);
	if (it->dropped) {
		sb_strlist_add(&r->dropped, it->path);
		sb_strlist_add(&r->dropped_staged, it->staged);
		n = sb_strlist_check(&r->dropped, err);
		if (n == 0)
			n = sb_strlist_check(&r->dropped_staged, err);
	}
	return n;
}

int
sb_receive_rows(struct sb_receive *r, const uint8_t *p, size_t len, struct sb_error *err)
{
	struct sb_cursor c;
	int n = 0;

	sb_cursor_init(&c, p, len);
	while (n == 0 && sb_cursor_left(&c)) {
		uint8_t row = sb_cursor_u8(&c);
		const uint8_t *digest = row & 0x80 ? sb_cursor_take(&c, 16) : NULL;

		if (c.bad || (row & 0x7f) > SB_SENT_UNREADABLE || r->items.row_at >= r->items.n)
			return sb_fail(err, SB_E_PROTO, "the far side sent damaged data rows");
		n = take_row(r, &r->items.v[r->items.row_at++], row & 0x7f, digest, err);
		if (n == 0)
			n = sb_work_alive(err);
	}
	return n;
}

static int
unlink_staged(struct sb_receive *r, const char *staged, struct sb_error *err)
{
	const char *leaf;
	struct sb_receive_dir *d = sb_receive_dir_get(r, staged, &leaf, err);

	if (!d)
		return err ? err->code : SB_E_SYS;
	(void)unlinkat(d->fd, leaf, 0);
	sb_receive_dir_put(r, d);
	return 0;
}

/* Every DATA item has come, as announced. */
static int
check_items(struct sb_receive *r, struct sb_error *err)
{
	for (size_t i = 0; i < r->n_recs; i++) {
		const struct sb_receive_rec *rec = sb_receive_rec(r, (uint32_t)i);

		if (rec->state == REC_OK && !sb_digest_known(&rec->want))
			return sb_fail(err, SB_E_PROTO,
				"the far side did not tell the digest of a file");
	}
	for (size_t i = 0; i < r->items.n; i++) {
		const struct sb_receive_item *it = &r->items.v[i];
		const struct sb_receive_rec *rec = sb_receive_rec(r, it->rec);

		if (!it->has_row)
			return sb_fail(err, SB_E_PROTO, "%s: announced, but never accounted for",
				it->path);
		if (it->dropped || rec->state == REC_OK || rec->again)
			continue;
		if (rec->state == REC_BAD)
			return sb_fail(err, SB_E_CORRUPT,
				"%s: the content does not have the digest that was announced",
				it->path);
		return sb_fail(err, SB_E_PROTO, "%s: announced, but never sent", it->path);
	}
	return 0;
}

int
sb_receive_settle(struct sb_receive *r, struct sb_strlist *need, struct sb_error *err)
{
	struct sb_receive_items again = { 0 };
	int n = sb_receive_drain(r, err);

	if (n == 0)
		n = check_items(r, err);
	sb_receive_items_free(&r->items);
	for (size_t i = 0; n == 0 && i < r->risky.n; i++) {
		struct sb_receive_item *it = &r->risky.v[i];

		if (sb_receive_rec(r, it->rec)->state == REC_OK)
			continue;
		sb_receive_rec(r, it->rec)->state = REC_PENDING;
		sb_receive_rec(r, it->rec)->again = false;
		n = sb_work_alive(err);
		if (n == 0)
			n = unlink_staged(r, it->staged, err);
		sb_strlist_add(need, it->path);
		if (n == 0)
			n = sb_strlist_check(need, err);
		if (n == 0) {
			it->has_row = it->has_data = it->dropped = false;
			n = sb_receive_items_add(&again, it, err);
		}
		if (n == 0)
			it->path = it->staged = NULL;
	}
	sb_receive_items_free(&r->risky);
	r->items = again;
	return n;
}
