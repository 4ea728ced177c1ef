/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/service/idem.h>

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <base/cond.h>

#define BUCKETS 256
#define WAIT_MS 20 /* how often a waiting call looks whether it was canceled */

struct sb_rpc_idem_run {
	struct sb_rpc_idem_run *next;          /* in its bucket */
	struct sb_rpc_idem_run *older, *newer; /* in order of ending, once ended */
	char *session, *call_id;
	uint8_t digest[SB_RPC_IDEM_DIGEST];
	bool running;
	bool doomed; /* forgotten while it ran */
	char *text;
	size_t len;
	int64_t ended_ms;
};

struct sb_rpc_idem {
	size_t max_n, max_bytes;
	int64_t ttl_ms;
	pthread_mutex_t mu;
	pthread_cond_t ended;
	struct sb_rpc_idem_run *buckets[BUCKETS];
	struct sb_rpc_idem_run *oldest, *newest;
	size_t n, bytes; /* of ended ones */
};

struct sb_rpc_idem *
sb_rpc_idem_new(size_t max_n, size_t max_bytes, int64_t ttl_ms, struct sb_error *err)
{
	struct sb_rpc_idem *d = calloc(1, sizeof *d);

	if (!d) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	d->max_n = max_n;
	d->max_bytes = max_bytes;
	d->ttl_ms = ttl_ms;
	(void)pthread_mutex_init(&d->mu, NULL);
	sb_cond_init(&d->ended);
	return d;
}

static unsigned
bucket_of(const char *session, const char *call_id)
{
	uint32_t h = 2166136261u;

	for (const char *p = session; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	h *= 16777619u;
	for (const char *p = call_id; *p; p++)
		h = (h ^ (uint8_t)*p) * 16777619u;
	return h % BUCKETS;
}

static void
run_free(struct sb_rpc_idem_run *r)
{
	free(r->session);
	free(r->call_id);
	free(r->text);
	free(r);
}

/* With `mu` held: out of its bucket, and out of the ended ones. */
static void
detach(struct sb_rpc_idem *d, struct sb_rpc_idem_run *r)
{
	struct sb_rpc_idem_run **p = &d->buckets[bucket_of(r->session, r->call_id)];

	while (*p != r)
		p = &(*p)->next;
	*p = r->next;
	if (r->running)
		return;
	*(r->older ? &r->older->newer : &d->oldest) = r->newer;
	*(r->newer ? &r->newer->older : &d->newest) = r->older;
	d->n--;
	d->bytes -= r->len;
}

/* With `mu` held. */
static void
drop_old(struct sb_rpc_idem *d)
{
	int64_t before = sb_now_ms() - d->ttl_ms;

	while (d->oldest &&
		(d->n > d->max_n || d->bytes > d->max_bytes || d->oldest->ended_ms <= before)) {
		struct sb_rpc_idem_run *r = d->oldest;

		detach(d, r);
		run_free(r);
	}
}

void
sb_rpc_idem_free(struct sb_rpc_idem *d)
{
	if (!d)
		return;
	d->max_n = 0;
	drop_old(d);
	(void)pthread_cond_destroy(&d->ended);
	(void)pthread_mutex_destroy(&d->mu);
	free(d);
}

/* With `mu` held. */
static struct sb_rpc_idem_run *
find(struct sb_rpc_idem *d, const char *session, const char *call_id)
{
	struct sb_rpc_idem_run *r = d->buckets[bucket_of(session, call_id)];

	while (r && (strcmp(r->session, session) != 0 || strcmp(r->call_id, call_id) != 0))
		r = r->next;
	return r;
}

/* With `mu` held. */
static struct sb_rpc_idem_run *
add(struct sb_rpc_idem *d, const char *session, const char *call_id, const uint8_t *digest)
{
	struct sb_rpc_idem_run *r = calloc(1, sizeof *r);
	unsigned b = bucket_of(session, call_id);

	if (!r)
		return NULL;
	r->session = strdup(session);
	r->call_id = strdup(call_id);
	if (!r->session || !r->call_id) {
		run_free(r);
		return NULL;
	}
	memcpy(r->digest, digest, sizeof r->digest);
	r->running = true;
	r->next = d->buckets[b];
	d->buckets[b] = r;
	return r;
}

static void
wait_a_little(struct sb_rpc_idem *d)
{
	sb_cond_wait_until(&d->ended, &d->mu, sb_deadline_in(WAIT_MS));
}

static int
begin_locked(struct sb_rpc_idem *d, const char *session, const char *call_id, const uint8_t *digest,
	const struct sb_cancel *cancel, sb_deadline deadline, char **out_text,
	struct sb_rpc_idem_run **out_run, struct sb_error *err)
{
	struct sb_rpc_idem_run *r;
	int alive;

	for (;;) {
		drop_old(d);
		r = find(d, session, call_id);
		if (!r) {
			*out_run = add(d, session, call_id, digest);
			return *out_run ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
		}
		if (memcmp(r->digest, digest, SB_RPC_IDEM_DIGEST) != 0)
			return sb_fail(err, SB_E_INVAL,
				"ToolCallID: was used for another call of this session already");
		if (!r->running) {
			*out_text = strdup(r->text);
			return *out_text ? 1 : sb_fail(err, SB_E_NOMEM, "out of memory");
		}
		alive = sb_check_alive(cancel, deadline, "waiting for the first call", err);
		if (alive < 0)
			return alive;
		wait_a_little(d);
	}
}

int
sb_rpc_idem_begin(struct sb_rpc_idem *d, const char *session, const char *call_id,
	const uint8_t digest[SB_RPC_IDEM_DIGEST], const struct sb_cancel *cancel,
	sb_deadline deadline, char **out_text, struct sb_rpc_idem_run **out_run,
	struct sb_error *err)
{
	int r;

	(void)pthread_mutex_lock(&d->mu);
	r = begin_locked(d, session, call_id, digest, cancel, deadline, out_text, out_run, err);
	(void)pthread_mutex_unlock(&d->mu);
	return r;
}

void
sb_rpc_idem_end(struct sb_rpc_idem *d, struct sb_rpc_idem_run *run, char *text)
{
	(void)pthread_mutex_lock(&d->mu);
	if (!text || run->doomed) {
		if (!run->doomed)
			detach(d, run);
		free(text);
		run_free(run);
	} else {
		run->text = text;
		run->len = strlen(text);
		run->ended_ms = sb_now_ms();
		run->running = false;
		run->older = d->newest;
		*(d->newest ? &d->newest->newer : &d->oldest) = run;
		d->newest = run;
		d->n++;
		d->bytes += run->len;
		drop_old(d);
	}
	(void)pthread_cond_broadcast(&d->ended);
	(void)pthread_mutex_unlock(&d->mu);
}

void
sb_rpc_idem_forget(struct sb_rpc_idem *d, const char *session)
{
	(void)pthread_mutex_lock(&d->mu);
	for (unsigned b = 0; b < BUCKETS; b++) {
		struct sb_rpc_idem_run *r = d->buckets[b], *next;

		for (; r; r = next) {
			next = r->next;
			if (strcmp(r->session, session) != 0)
				continue;
			detach(d, r);
			if (r->running)
				r->doomed = true; /* its own end frees it */
			else
				run_free(r);
		}
	}
	(void)pthread_cond_broadcast(&d->ended);
	(void)pthread_mutex_unlock(&d->mu);
}
