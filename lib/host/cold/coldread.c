/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldread.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FETCHERS 4
#define WINDOW (2 * FETCHERS)
#define RUN_MAX ((uint64_t)8 << 20)

/* Frames that lie behind each other in one part, fetched at once. */
struct run {
	size_t first, n; /* of `order` */
	uint64_t at, len;
	uint32_t part;
};

struct slot {
	uint8_t *data;
	bool ready;
};

struct reading {
	const struct sb_coldread_opts *o;
	const struct sb_coldindex *x;
	const struct sb_coldkey *key;
	const uint32_t *order; /* frames to be read */
	size_t n_order;
	struct run *runs;
	size_t n_runs, cap_runs;

	pthread_mutex_t mu;
	pthread_cond_t cv;
	size_t next, taken; /* runs that are fetched or under way; that the caller is done with */
	struct slot slot[WINDOW];
	struct sb_error failed;
};

int
sb_coldread_index(const struct sb_coldread_opts *o, const char *key, struct sb_coldindex *out,
	struct sb_error *err)
{
	size_t len;
	sb_autofree uint8_t *data =
		sb_coldstore_read(o->store, key, SB_COLDINDEX_OBJECT_MAX, &len, o->call, err);
	int r;

	if (!data)
		return err && err->code ? err->code : SB_E_NOTFOUND;
	r = sb_coldindex_decode(data, len, o->keys, out, err);
	return r < 0 ? sb_wrap(err, r, "%s", key) : 0;
}

static int
plan(struct reading *g, struct sb_error *err)
{
	for (size_t i = 0; i < g->n_order; i++) {
		const struct sb_coldindex_frame *f = &g->x->frames[g->order[i]];
		struct run *last = g->n_runs ? &g->runs[g->n_runs - 1] : NULL;

		if (last && last->part == f->part && last->at + last->len == f->at &&
			last->len + f->stored <= RUN_MAX) {
			last->len += f->stored;
			last->n++;
			continue;
		}
		if (g->n_runs == g->cap_runs) {
			size_t cap = g->cap_runs ? g->cap_runs * 2 : 64;
			struct run *v = reallocarray(g->runs, cap, sizeof *v);

			if (!v)
				return sb_fail(err, SB_E_NOMEM, "archive");
			g->runs = v;
			g->cap_runs = cap;
		}
		g->runs[g->n_runs++] = (struct run){ i, 1, f->at, f->stored, f->part };
	}
	return 0;
}

static int
fetch(struct reading *g, const struct run *run, uint8_t **out, struct sb_error *err)
{
	const struct sb_coldread_opts *o = g->o;
	char key[SB_COLDSTORE_KEY_MAX + 1];
	int r = sb_coldpace_take(o->pace, run->len, o->call, err);

	if (r < 0)
		return r;
	*out = malloc(run->len);
	if (!*out)
		return sb_fail(err, SB_E_NOMEM, "archive");
	(void)snprintf(key, sizeof key, "%s/parts/%s", o->space, g->x->parts[run->part].name);
	return o->store->ops->get(o->store, key, run->at, *out, run->len, o->call, err);
}

static void *
fetch_runs(void *arg)
{
	struct reading *g = arg;

	(void)pthread_mutex_lock(&g->mu);
	while (g->failed.code == 0 && g->next < g->n_runs) {
		struct sb_error err = { 0 };
		uint8_t *data = NULL;
		size_t i;
		int r;

		if (g->next >= g->taken + WINDOW) {
			(void)pthread_cond_wait(&g->cv, &g->mu);
			continue;
		}
		i = g->next++;
		(void)pthread_mutex_unlock(&g->mu);
		r = fetch(g, &g->runs[i], &data, &err);
		(void)pthread_mutex_lock(&g->mu);
		g->slot[i % WINDOW] = (struct slot){ data, true };
		if (r < 0 && g->failed.code == 0)
			g->failed = err;
		(void)pthread_cond_broadcast(&g->cv);
	}
	(void)pthread_mutex_unlock(&g->mu);
	return NULL;
}

/* Decodes the frames of a run that has come, checks them, hands them on. */
static int
hand_on(struct reading *g, const struct run *run, const uint8_t *data, uint8_t *plain,
	sb_coldread_fn fn, void *arg, struct sb_error *err)
{
	for (size_t i = run->first; i < run->first + run->n; i++) {
		const struct sb_coldindex_frame *f = &g->x->frames[g->order[i]];
		uint8_t sum[SB_COLDFRAME_DIGEST];
		int r = sb_coldframe_decode(data + (f->at - run->at), f->stored, g->key, plain,
			f->size, err);

		if (r == 0)
			r = sb_coldframe_digest(plain, f->size, sum, err);
		if (r == 0 && memcmp(sum, f->digest, sizeof sum) != 0)
			r = sb_fail(err, SB_E_CORRUPT, "the digest differs");
		if (r < 0)
			return sb_wrap(err, r, "part %s at %llu", g->x->parts[f->part].name,
				(unsigned long long)f->at);
		if (g->o->done)
			atomic_fetch_add(g->o->done, f->size);
		r = fn ? fn(plain, f->size, arg, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

static int
take_runs(struct reading *g, sb_coldread_fn fn, void *arg, struct sb_error *err)
{
	sb_autofree uint8_t *plain = malloc(SB_COLDFRAME_PLAIN_MAX);
	int r = plain ? 0 : sb_fail(err, SB_E_NOMEM, "archive");

	for (size_t i = 0; i < g->n_runs && r == 0; i++) {
		struct slot *s = &g->slot[i % WINDOW];
		uint8_t *data = NULL;

		(void)pthread_mutex_lock(&g->mu);
		while (!s->ready && g->failed.code == 0)
			(void)pthread_cond_wait(&g->cv, &g->mu);
		if (g->failed.code < 0) {
			r = g->failed.code;
			if (err)
				*err = g->failed;
		} else {
			data = s->data;
			*s = (struct slot){ 0 };
		}
		(void)pthread_mutex_unlock(&g->mu);
		if (r == 0)
			r = hand_on(g, &g->runs[i], data, plain, fn, arg, err);
		free(data);
		(void)pthread_mutex_lock(&g->mu);
		g->taken++;
		(void)pthread_cond_broadcast(&g->cv);
		(void)pthread_mutex_unlock(&g->mu);
	}
	return r;
}

static int
run_all(struct reading *g, sb_coldread_fn fn, void *arg, struct sb_error *err)
{
	pthread_t threads[FETCHERS];
	unsigned n = 0;
	int r = plan(g, err);

	(void)pthread_mutex_init(&g->mu, NULL);
	(void)pthread_cond_init(&g->cv, NULL);
	while (r == 0 && n < FETCHERS) {
		if (pthread_create(&threads[n], NULL, fetch_runs, g) != 0)
			r = sb_fail(err, SB_E_SYS, "start a thread");
		else
			n++;
	}
	if (r == 0)
		r = take_runs(g, fn, arg, err);
	(void)pthread_mutex_lock(&g->mu);
	if (r < 0 && g->failed.code == 0)
		g->failed.code = r;
	(void)pthread_cond_broadcast(&g->cv);
	(void)pthread_mutex_unlock(&g->mu);
	for (unsigned i = 0; i < n; i++)
		(void)pthread_join(threads[i], NULL);
	for (size_t i = 0; i < WINDOW; i++)
		free(g->slot[i].data);
	(void)pthread_cond_destroy(&g->cv);
	(void)pthread_mutex_destroy(&g->mu);
	free(g->runs);
	return r;
}

/* The key of the archive; SB_E_AUTH without it. */
static int
find_key(struct reading *g, struct sb_error *err)
{
	g->key = g->x->key[0] ? sb_coldkey_find(g->o->keys, g->x->key) : NULL;
	return g->x->key[0] && !g->key ?
		sb_fail(err, SB_E_AUTH, "the archive needs key %s", g->x->key) :
		0;
}

int
sb_coldread_stream(const struct sb_coldread_opts *o, const struct sb_coldindex *x, size_t stream,
	sb_coldread_fn fn, void *arg, struct sb_error *err)
{
	struct reading g = { .o = o,
		.x = x,
		.order = x->streams[stream].frames,
		.n_order = x->streams[stream].n };
	int r = find_key(&g, err);

	return r < 0 ? r : run_all(&g, fn, arg, err);
}

int
sb_coldread_verify(const struct sb_coldread_opts *o, const struct sb_coldindex *x,
	struct sb_error *err)
{
	sb_autofree uint32_t *order = calloc(x->n_frames + 1, sizeof *order);
	struct reading g = { .o = o, .x = x, .order = order, .n_order = x->n_frames };
	int r = order ? find_key(&g, err) : sb_fail(err, SB_E_NOMEM, "archive");

	for (size_t i = 0; i < x->n_frames && order; i++)
		order[i] = (uint32_t)i;
	return r < 0 ? r : run_all(&g, NULL, NULL, err);
}
