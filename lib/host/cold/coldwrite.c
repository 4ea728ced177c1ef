/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldwrite.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/random.h>
#include <base/str.h>
#include <host/cold/coldcut.h>

#define PART_MIN ((size_t)8 << 20)
#define PART_MAX (PART_MIN + SB_COLDFRAME_STORED_MAX)
#define WRITERS 4
#define READ_AT_ONCE ((size_t)256 << 10)
#define NEW UINT32_MAX

/* A frame that is known: in the index already, or in an earlier archive. */
struct known {
	struct sb_coldindex_frame f; /* `part`: of `old`, while `mine` is NEW */
	uint32_t mine;               /* its number in the index */
	bool used;
};

/* A part of an earlier archive; its number in the new index once a frame of it is used. */
struct old_part {
	struct sb_coldindex_part p;
	uint32_t mine;
};

struct job {
	struct job *next;
	char name[SB_COLDINDEX_PART_MAX];
	uint8_t *data;
	size_t len;
};

struct sb_coldwrite {
	struct sb_coldwrite_opts o;
	struct sb_coldindex *x;
	struct known *table; /* open addressing, by digest */
	size_t n_table, cap_table;
	struct old_part *old;
	size_t n_old;
	struct sb_buf part, frame;
	char part_name[SB_COLDINDEX_PART_MAX];
	uint32_t part_no;

	pthread_mutex_t mu;
	pthread_cond_t cv;
	struct job *jobs, **tail;
	unsigned waiting, busy, n_threads;
	bool stop;
	struct sb_error failed;
	pthread_t threads[WRITERS];
};

static size_t
slot_of(const struct sb_coldwrite *w, const uint8_t digest[SB_COLDFRAME_DIGEST])
{
	uint64_t h;
	size_t i;

	memcpy(&h, digest, sizeof h);
	i = (size_t)h & (w->cap_table - 1);
	while (w->table[i].used && memcmp(w->table[i].f.digest, digest, SB_COLDFRAME_DIGEST) != 0)
		i = (i + 1) & (w->cap_table - 1);
	return i;
}

/* The place of a digest in the table, which has room for it. */
static struct known *
find(struct sb_coldwrite *w, const uint8_t digest[SB_COLDFRAME_DIGEST], struct sb_error *err)
{
	if (w->n_table * 2 >= w->cap_table) {
		struct known *was = w->table;
		size_t cap = w->cap_table;

		w->cap_table = cap ? cap * 2 : 1024;
		w->table = calloc(w->cap_table, sizeof *w->table);
		if (!w->table) {
			w->table = was;
			w->cap_table = cap;
			(void)sb_fail(err, SB_E_NOMEM, "frames");
			return NULL;
		}
		for (size_t i = 0; i < cap; i++)
			if (was[i].used)
				w->table[slot_of(w, was[i].f.digest)] = was[i];
		free(was);
	}
	return &w->table[slot_of(w, digest)];
}

static void *
write_parts(void *arg)
{
	struct sb_coldwrite *w = arg;

	(void)pthread_mutex_lock(&w->mu);
	for (;;) {
		struct sb_error err = { 0 };
		struct job *j = w->jobs;
		char key[SB_COLDSTORE_KEY_MAX + 1];
		int r;

		if (!j && w->stop)
			break;
		if (!j) {
			(void)pthread_cond_wait(&w->cv, &w->mu);
			continue;
		}
		w->jobs = j->next;
		if (!w->jobs)
			w->tail = &w->jobs;
		w->waiting--;
		w->busy++;
		r = w->failed.code;
		(void)pthread_mutex_unlock(&w->mu);
		(void)snprintf(key, sizeof key, "%s/parts/%s", w->o.space, j->name);
		if (r == 0)
			r = sb_coldpace_take(w->o.pace, j->len, w->o.call, &err);
		if (r == 0)
			r = w->o.store->ops->put(w->o.store, key, j->data, j->len, w->o.call, &err);
		if (r == 0 && w->o.written)
			atomic_fetch_add(w->o.written, j->len);
		free(j->data);
		free(j);
		(void)pthread_mutex_lock(&w->mu);
		w->busy--;
		if (r < 0 && w->failed.code == 0)
			w->failed = err;
		(void)pthread_cond_broadcast(&w->cv);
	}
	(void)pthread_mutex_unlock(&w->mu);
	return NULL;
}

struct sb_coldwrite *
sb_coldwrite_open(const struct sb_coldwrite_opts *o, struct sb_coldindex *x, struct sb_error *err)
{
	sb_auto(sb_coldwrite) struct sb_coldwrite *w = calloc(1, sizeof *w);

	if (!w) {
		(void)sb_fail(err, SB_E_NOMEM, "archive");
		return NULL;
	}
	w->o = *o;
	w->x = x;
	w->tail = &w->jobs;
	sb_buf_init(&w->part, PART_MAX);
	sb_buf_init(&w->frame, SB_COLDFRAME_PLAIN_MAX);
	(void)pthread_mutex_init(&w->mu, NULL);
	(void)pthread_cond_init(&w->cv, NULL);
	while (w->n_threads < WRITERS) {
		if (pthread_create(&w->threads[w->n_threads], NULL, write_parts, w) != 0) {
			(void)sb_fail(err, SB_E_SYS, "start a thread");
			return NULL;
		}
		w->n_threads++;
	}
	return sb_steal(&w);
}

void
sb_coldwrite_close(struct sb_coldwrite *w)
{
	if (!w)
		return;
	(void)pthread_mutex_lock(&w->mu);
	w->stop = true;
	if (w->failed.code == 0 && (w->jobs || w->part.len > 0))
		(void)sb_fail(&w->failed, SB_E_CANCELED, "given up");
	(void)pthread_cond_broadcast(&w->cv);
	(void)pthread_mutex_unlock(&w->mu);
	for (unsigned i = 0; i < w->n_threads; i++)
		(void)pthread_join(w->threads[i], NULL);
	(void)pthread_cond_destroy(&w->cv);
	(void)pthread_mutex_destroy(&w->mu);
	sb_buf_free(&w->part);
	sb_buf_free(&w->frame);
	free(w->table);
	free(w->old);
	free(w);
}

int
sb_coldwrite_know(struct sb_coldwrite *w, const struct sb_coldindex *old, struct sb_error *err)
{
	struct old_part *v;
	size_t first = w->n_old;

	if (strcmp(old->key, w->o.key ? w->o.key->id : "") != 0 || old->n_parts == 0)
		return 0;
	v = reallocarray(w->old, first + old->n_parts, sizeof *v);
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "parts");
	w->old = v;
	for (size_t i = 0; i < old->n_parts; i++)
		v[w->n_old++] = (struct old_part){ old->parts[i], NEW };
	for (size_t i = 0; i < old->n_frames; i++) {
		struct known *k = find(w, old->frames[i].digest, err);

		if (!k)
			return SB_E_NOMEM;
		if (k->used)
			continue;
		*k = (struct known){ .f = old->frames[i], .mine = NEW, .used = true };
		k->f.part += (uint32_t)first;
		w->n_table++;
	}
	return 0;
}

/* Hands the part to the writers, when they have room. */
static int
send_part(struct sb_coldwrite *w, struct sb_error *err)
{
	struct job *j = calloc(1, sizeof *j);
	int r = 0;

	if (!j)
		return sb_fail(err, SB_E_NOMEM, "part");
	memcpy(j->name, w->part_name, sizeof j->name);
	w->x->parts[w->part_no].size = w->part.len;
	j->data = sb_buf_detach(&w->part, &j->len);
	sb_buf_init(&w->part, PART_MAX);
	(void)pthread_mutex_lock(&w->mu);
	while (w->waiting >= WRITERS && w->failed.code == 0)
		(void)pthread_cond_wait(&w->cv, &w->mu);
	r = w->failed.code;
	if (r < 0 && err)
		*err = w->failed;
	if (r == 0) {
		*w->tail = j;
		w->tail = &j->next;
		w->waiting++;
		(void)pthread_cond_broadcast(&w->cv);
	}
	(void)pthread_mutex_unlock(&w->mu);
	if (r < 0) {
		free(j->data);
		free(j);
	}
	return r;
}

static int
begin_part(struct sb_coldwrite *w, struct sb_error *err)
{
	uint8_t rnd[16];
	int64_t no;
	int r = sb_random(rnd, sizeof rnd, err);

	if (r < 0)
		return r;
	(void)sb_str_hex(rnd, sizeof rnd, w->part_name);
	no = sb_coldindex_add_part(w->x, w->part_name, 0, err);
	w->part_no = (uint32_t)no;
	return no < 0 ? (int)no : 0;
}

/* Compresses the frame into the part under way. */
static int
store_frame(struct sb_coldwrite *w, struct sb_coldindex_frame *f, struct sb_error *err)
{
	int r = w->part.len == 0 ? begin_part(w, err) : 0;

	if (r < 0)
		return r;
	f->part = w->part_no;
	f->at = w->part.len;
	r = sb_coldframe_encode(w->frame.data, w->frame.len, w->o.key, &w->part, err);
	f->stored = (uint32_t)(w->part.len - f->at);
	return r;
}

/* A frame of an earlier archive: its part becomes one of this index, too. */
static int
use_old(struct sb_coldwrite *w, struct sb_coldindex_frame *f, struct sb_error *err)
{
	struct old_part *p = &w->old[f->part];

	if (p->mine == NEW) {
		int64_t no = sb_coldindex_add_part(w->x, p->p.name, p->p.size, err);

		if (no < 0)
			return (int)no;
		p->mine = (uint32_t)no;
	}
	f->part = p->mine;
	return 0;
}

/* A frame that is known becomes one of the index. */
static int
adopt_frame(struct sb_coldwrite *w, struct known *k, struct sb_error *err)
{
	struct sb_coldindex_frame f = k->f;
	int64_t no;
	int r = use_old(w, &f, err);

	no = r < 0 ? r : sb_coldindex_add_frame(w->x, &f, err);
	if (no < 0)
		return (int)no;
	k->f = f;
	k->mine = (uint32_t)no;
	return 0;
}

int
sb_coldwrite_reuse(struct sb_coldwrite *w, const struct sb_coldindex *old, size_t stream,
	struct sb_error *err)
{
	const struct sb_coldindex_stream *s = &old->streams[stream];
	int r;

	if (w->cap_table == 0)
		return 0;
	for (size_t i = 0; i < s->n; i++)
		if (!w->table[slot_of(w, old->frames[s->frames[i]].digest)].used)
			return 0;
	r = sb_coldindex_add_stream(w->x, s->snapshot, s->from, err);
	for (size_t i = 0; i < s->n && r == 0; i++) {
		struct known *k = &w->table[slot_of(w, old->frames[s->frames[i]].digest)];

		r = k->mine == NEW ? adopt_frame(w, k, err) : 0;
		if (r == 0)
			r = sb_coldindex_add_use(w->x, k->mine, err);
		if (r == 0 && w->o.read)
			atomic_fetch_add(w->o.read, k->f.size);
	}
	return r < 0 ? r : 1;
}

static int
end_frame(struct sb_coldwrite *w, struct sb_error *err)
{
	struct sb_coldindex_frame f = { .size = (uint32_t)w->frame.len };
	struct known *k;
	int r;

	if (w->frame.len == 0)
		return 0;
	r = sb_coldframe_digest(w->frame.data, w->frame.len, f.digest, err);
	if (r < 0)
		return r;
	k = find(w, f.digest, err);
	if (!k)
		return SB_E_NOMEM;
	if (k->used && k->f.size != f.size)
		return sb_fail(err, SB_E_CORRUPT, "two frames of one digest differ in size");
	if (k->used && k->mine == NEW) {
		r = adopt_frame(w, k, err);
	} else if (!k->used) {
		int64_t no;

		r = store_frame(w, &f, err);
		no = r < 0 ? r : sb_coldindex_add_frame(w->x, &f, err);
		if (no < 0)
			return (int)no;
		w->n_table++;
		*k = (struct known){ .f = f, .mine = (uint32_t)no, .used = true };
	}
	if (r < 0)
		return r;
	if (w->o.read)
		atomic_fetch_add(w->o.read, w->frame.len);
	sb_buf_reset(&w->frame);
	r = sb_coldindex_add_use(w->x, k->mine, err);
	return r == 0 && w->part.len >= PART_MIN ? send_part(w, err) : r;
}

/* Bytes of the stream, once there are some; 0 at its end. */
static ssize_t
read_some(struct sb_coldwrite *w, int fd, uint8_t *buf, struct sb_error *err)
{
	const struct sb_host_call *call = w->o.call;

	for (;;) {
		struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
			{ .fd = call ? sb_cancel_fd(call->cancel) : -1, .events = POLLIN } };
		ssize_t n;
		int r;

		(void)poll(p, 2, sb_deadline_poll_ms(call ? call->deadline : SB_NEVER));
		r = call ? sb_check_alive(call->cancel, call->deadline, "archive", err) : 0;
		if (r < 0)
			return r;
		n = read(fd, buf, READ_AT_ONCE);
		if (n >= 0)
			return n;
		if (errno != EINTR && errno != EAGAIN)
			return sb_fail_errno(err, "read a stream");
	}
}

int
sb_coldwrite_stream(struct sb_coldwrite *w, const char *snapshot, const char *from, int fd,
	struct sb_error *err)
{
	sb_autofree uint8_t *buf = malloc(READ_AT_ONCE);
	struct sb_coldcut cut;
	ssize_t n = 0;
	int r = sb_coldindex_add_stream(w->x, snapshot, from, err);

	sb_coldcut_init(&cut);
	if (r == 0 && !buf)
		r = sb_fail(err, SB_E_NOMEM, "archive");
	while (r == 0 && (n = read_some(w, fd, buf, err)) > 0) {
		for (size_t at = 0; at < (size_t)n && r == 0;) {
			bool ends;
			size_t take = sb_coldcut_next(&cut, buf + at, (size_t)n - at, &ends);

			sb_buf_add(&w->frame, buf + at, take);
			at += take;
			r = sb_buf_check(&w->frame, "frame", err);
			if (r == 0 && ends)
				r = end_frame(w, err);
		}
	}
	if (r == 0 && n < 0)
		r = (int)n;
	return r < 0 ? r : end_frame(w, err);
}

int
sb_coldwrite_end(struct sb_coldwrite *w, struct sb_error *err)
{
	int r = w->part.len > 0 ? send_part(w, err) : 0;

	(void)pthread_mutex_lock(&w->mu);
	while (r == 0 && (w->jobs || w->busy > 0))
		(void)pthread_cond_wait(&w->cv, &w->mu);
	if (w->failed.code < 0) {
		r = w->failed.code;
		if (err)
			*err = w->failed;
	}
	(void)pthread_mutex_unlock(&w->mu);
	return r;
}
