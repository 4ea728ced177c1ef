/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/overlay-log.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/cursor.h>
#include <base/file.h>

#define MAGIC "SBL1"
#define HEAD 16
#define TAIL 8
#define TEXT_MAX 4096
#define PAYLOAD_MAX (16u << 20)
#define LOG_MAX (1ull << 30)
#define NAME "log"
#define NEW_NAME "log.new"

struct sb_overlay_log {
	int dirfd, fd;
	_Atomic uint64_t size;
	uint64_t seq; /* of the next record */
	atomic_bool broken;

	pthread_mutex_t sync_mu; /* guards `fd` against a rewrite, and: */
	uint64_t synced;         /* so many bytes are on the disk */
};

static void
add_text(struct sb_buf *b, const char *s)
{
	sb_buf_add_bytes(b, s ? s : "", s ? strlen(s) + 1 : 1);
}

void
sb_overlay_log_encode(const struct sb_overlay_rec *r, struct sb_buf *b)
{
	const char *const texts[] = { r->sid, r->name, r->parent_name, r->head, r->tag, r->base,
		r->origin_id, r->origin_snap, r->boot };
	const uint64_t numbers[] = { r->node, r->parent, r->layer, r->flat, r->upper, r->bytes,
		r->quota, r->project, r->base_ino, r->durable };

	sb_buf_add_u8(b, r->kind);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		add_text(b, texts[i]);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		sb_buf_add_varint(b, numbers[i]);
	sb_buf_add_svarint(b, r->time_ns);
	sb_buf_add_svarint(b, r->base_btime_ns);
	sb_buf_add_varint(b, r->n_stack);
	for (size_t i = 0; i < r->n_stack; i++)
		sb_buf_add_varint(b, r->stack[i]);
	sb_buf_add_varint(b, r->n_names);
	for (size_t i = 0; i < r->n_names; i++)
		add_text(b, r->names[i]);
	if (r->owner)
		sb_buf_add_varint(b, r->owner);
}

/* A text with its NUL, and no other in it. */
static const char *
take_text(struct sb_cursor *c)
{
	size_t len = 0;
	const char *s = (const char *)sb_cursor_bytes(c, TEXT_MAX, &len);

	if (!s || len == 0 || memchr(s, '\0', len) != s + len - 1) {
		c->bad = true;
		return "";
	}
	return s;
}

int
sb_overlay_log_decode(const void *data, size_t len, struct sb_overlay_rec *r, struct sb_error *err)
{
	struct sb_cursor c;
	const char **texts[] = { &r->sid, &r->name, &r->parent_name, &r->head, &r->tag, &r->base,
		&r->origin_id, &r->origin_snap, &r->boot };
	uint64_t *numbers[] = { &r->node, &r->parent, &r->layer, &r->flat, &r->upper, &r->bytes,
		&r->quota, &r->project, &r->base_ino, &r->durable };
	uint64_t n;

	memset(r, 0, sizeof *r);
	sb_cursor_init(&c, data, len);
	r->kind = sb_cursor_u8(&c);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		*texts[i] = take_text(&c);
	for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
		*numbers[i] = sb_cursor_varint(&c);
	r->time_ns = sb_cursor_svarint(&c);
	r->base_btime_ns = sb_cursor_svarint(&c);
	n = sb_cursor_varint(&c);
	if (n > SB_OVERLAY_STACK_MAX)
		c.bad = true;
	for (uint64_t i = 0; i < n && !c.bad; i++)
		r->stack[r->n_stack++] = sb_cursor_varint(&c);
	n = sb_cursor_varint(&c);
	if (c.bad || n > SB_OVERLAY_NAMES_MAX || n > sb_cursor_left(&c))
		return sb_fail(err, SB_E_CORRUPT, "a record of the log is damaged");
	r->names = n ? calloc(n, sizeof *r->names) : NULL;
	if (n && !r->names)
		return sb_fail(err, SB_E_NOMEM, "log");
	for (uint64_t i = 0; i < n; i++)
		r->names[r->n_names++] = take_text(&c);
	if (sb_cursor_left(&c) > 0) {
		r->owner = sb_cursor_varint(&c);
		c.bad |= r->owner == 0 || r->owner > UINT32_MAX;
	}
	if (c.bad || sb_cursor_left(&c) > 0 || r->kind == 0 || r->kind >= SB_OVERLAY_KINDS) {
		free(r->names);
		r->names = NULL;
		return sb_fail(err, SB_E_CORRUPT, "a record of the log is damaged");
	}
	return 0;
}

/* Whether a whole record begins at `p`; its payload and length with everything around it. */
static bool
record_at(const uint8_t *p, size_t left, uint64_t *seq, size_t *payload, size_t *whole)
{
	struct sb_cursor c;
	uint64_t sum;

	if (left < HEAD + TAIL || memcmp(p, MAGIC, 4) != 0)
		return false;
	sb_cursor_init(&c, p + 4, 12);
	*payload = sb_cursor_u32(&c);
	*seq = sb_cursor_u64(&c);
	if (*payload > PAYLOAD_MAX || *payload > left - HEAD - TAIL)
		return false;
	*whole = HEAD + *payload + TAIL;
	sb_cursor_init(&c, p + HEAD + *payload, TAIL);
	sum = sb_cursor_u64(&c);
	return sum == XXH3_64bits(p, HEAD + *payload);
}

/* True when somewhere in the bytes a good record begins that is not older than `seq`. */
static bool
good_record_in(const uint8_t *p, size_t left, uint64_t seq)
{
	for (size_t i = 0; i + HEAD + TAIL <= left; i++) {
		const uint8_t *at = memchr(p + i, MAGIC[0], left - i);
		uint64_t got;
		size_t payload, whole;

		if (!at)
			return false;
		i = (size_t)(at - p);
		if (record_at(at, left - i, &got, &payload, &whole) && got >= seq)
			return true;
	}
	return false;
}

static int
replay(struct sb_overlay_log *l, sb_overlay_log_fn fn, void *arg, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf all;
	sb_autofree struct sb_overlay_rec *rec = malloc(sizeof *rec);
	size_t at = 0, payload, whole;
	uint64_t seq;
	int r = sb_file_read(l->dirfd, NAME, LOG_MAX, &all, err);

	if (r < 0 || !rec)
		return r < 0 ? r : sb_fail(err, SB_E_NOMEM, "log");
	while (at < all.len && record_at(all.data + at, all.len - at, &seq, &payload, &whole) &&
		(at == 0 || seq == l->seq)) {
		r = sb_overlay_log_decode(all.data + at + HEAD, payload, rec, err);
		if (r == 0) {
			r = fn(rec, arg, err);
			free(rec->names);
		}
		if (r < 0)
			return sb_wrap(err, r, "record at byte %zu of the log", at);
		l->seq = seq + 1;
		at += whole;
	}
	if (at < all.len && good_record_in(all.data + at, all.len - at, l->seq))
		return sb_fail(err, SB_E_CORRUPT,
			"the log is damaged at byte %zu, in front of good records", at);
	if (at < all.len && ftruncate(l->fd, (off_t)at) < 0)
		return sb_fail_errno(err, "cut the torn end of the log");
	l->size = at;
	return 0;
}

struct sb_overlay_log *
sb_overlay_log_open(int dirfd, sb_overlay_log_fn fn, void *arg, struct sb_error *err)
{
	struct sb_overlay_log *l = calloc(1, sizeof *l);
	struct sb_error why = { 0 };
	int r = 0;

	if (!l) {
		(void)sb_fail(err, SB_E_NOMEM, "log");
		return NULL;
	}
	(void)pthread_mutex_init(&l->sync_mu, NULL);
	l->dirfd = dirfd;
	l->seq = 1;
	l->fd = openat(dirfd, NAME, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (l->fd < 0 || fsync(dirfd) < 0)
		r = sb_fail_errno(&why, "open the log");
	(void)unlinkat(dirfd, NEW_NAME, 0);
	if (r == 0)
		r = replay(l, fn, arg, &why);
	if (r < 0) {
		sb_overlay_log_close(l);
		if (err)
			*err = why;
		return NULL;
	}
	return l;
}

void
sb_overlay_log_close(struct sb_overlay_log *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		(void)close(l->fd);
	(void)pthread_mutex_destroy(&l->sync_mu);
	free(l);
}

uint64_t
sb_overlay_log_size(const struct sb_overlay_log *l)
{
	return l->size;
}

/* All at the end of the file, or an error with errno set. */
static bool
write_at(int fd, const uint8_t *p, size_t len, uint64_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, p, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return true;
}

int
sb_overlay_log_append(struct sb_overlay_log *l, const struct sb_overlay_rec *rec,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	uint32_t len;
	int r;

	sb_buf_init(&b, PAYLOAD_MAX);
	if (atomic_load(&l->broken))
		return sb_fail(err, SB_E_STORAGE,
			"the log could not be written; restart the host to find out what is there");
	sb_buf_add(&b, MAGIC, 4);
	sb_buf_add_u32(&b, 0);
	sb_buf_add_u64(&b, l->seq);
	sb_overlay_log_encode(rec, &b);
	r = sb_buf_check(&b, "record of the log", err);
	if (r < 0)
		return r;
	len = (uint32_t)(b.len - HEAD);
	for (int i = 0; i < 4; i++)
		b.data[4 + i] = (uint8_t)(len >> 8 * i);
	sb_buf_add_u64(&b, XXH3_64bits(b.data, b.len));
	r = sb_buf_check(&b, "record of the log", err);
	if (r < 0)
		return r;
	if (!write_at(l->fd, b.data, b.len, l->size)) {
		r = sb_fail_errno(err, "write the log");
		if (ftruncate(l->fd, (off_t)l->size) < 0)
			atomic_store(&l->broken, true);
		return r;
	}
	l->size += b.len;
	l->seq++;
	return 0;
}

int
sb_overlay_log_sync(struct sb_overlay_log *l, struct sb_error *err)
{
	uint64_t want = l->size, have;
	int r = 0;

	(void)pthread_mutex_lock(&l->sync_mu);
	if (l->synced < want) {
		have = l->size;
		if (fdatasync(l->fd) < 0) {
			/* What the kernel could not write it forgets: nobody knows what is there.
			 */
			r = sb_fail_errno(err, "sync the log");
			atomic_store(&l->broken, true);
		} else {
			l->synced = have;
		}
	}
	(void)pthread_mutex_unlock(&l->sync_mu);
	return r;
}

int
sb_overlay_log_rewrite(struct sb_overlay_log *l,
	int (*fill)(struct sb_overlay_log *l, void *arg, struct sb_error *err), void *arg,
	struct sb_error *err)
{
	struct sb_overlay_log n = { .dirfd = l->dirfd, .seq = l->seq };
	int r;

	n.fd = openat(l->dirfd, NEW_NAME, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW,
		0600);
	if (n.fd < 0)
		return sb_fail_errno(err, "make a new log");
	r = fill(&n, arg, err);
	if (r == 0 && fsync(n.fd) < 0)
		r = sb_fail_errno(err, "sync the new log");
	(void)pthread_mutex_lock(&l->sync_mu);
	if (r == 0 && renameat(l->dirfd, NEW_NAME, l->dirfd, NAME) < 0)
		r = sb_fail_errno(err, "put the new log in place");
	if (r < 0) {
		(void)unlinkat(l->dirfd, NEW_NAME, 0);
		(void)close(n.fd);
	} else {
		/* Else a power loss may bring the old file back, without what is appended to this.
		 */
		if (fsync(l->dirfd) < 0)
			atomic_store(&l->broken, true);
		(void)close(l->fd);
		l->fd = n.fd;
		l->size = n.size;
		l->seq = n.seq;
		l->synced = n.size;
	}
	(void)pthread_mutex_unlock(&l->sync_mu);
	return r;
}
