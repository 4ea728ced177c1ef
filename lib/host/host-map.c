/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-map.h>

#include <string.h>

#include <host/host-priv.h>
#include <host/storage/idcheck.h>

static size_t
hash(const char *id)
{
	uint64_t h = 1469598103934665603u;

	for (; *id; id++)
		h = (h ^ (unsigned char)*id) * 1099511628211u;
	return (size_t)(h ^ (h >> 32));
}

struct sb_hsess *
sb_host_map_get(struct sb_host *h, const char *id)
{
	struct sb_hsess *s = h->bucket[hash(id) % h->n_buckets];

	while (s && strcmp(s->id, id) != 0)
		s = s->next;
	return s;
}

/* Twice the buckets; without memory the chains just get longer. */
static void
grow(struct sb_host *h)
{
	size_t n = h->n_buckets * 2;
	struct sb_hsess **v = calloc(n, sizeof(*v));

	if (!v)
		return;
	for (size_t i = 0; i < h->n_buckets; i++)
		while (h->bucket[i]) {
			struct sb_hsess *s = h->bucket[i];
			size_t to = hash(s->id) % n;

			h->bucket[i] = s->next;
			s->next = v[to];
			v[to] = s;
		}
	free(h->bucket);
	h->bucket = v;
	h->n_buckets = n;
}

int
sb_host_map_add(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	size_t i;

	if (sb_host_map_get(h, s->id))
		return sb_fail(err, SB_E_SESSION_EXISTS, "%s: %s",
			sb_code_text(SB_E_SESSION_EXISTS), s->id);
	if (h->n_sessions >= h->n_buckets)
		grow(h);
	i = hash(s->id) % h->n_buckets;
	s->next = h->bucket[i];
	h->bucket[i] = sb_hsess_ref(s);
	h->n_sessions++;
	return 0;
}

void
sb_host_map_remove(struct sb_host *h, struct sb_hsess *s)
{
	struct sb_hsess **p = &h->bucket[hash(s->id) % h->n_buckets];

	while (*p && *p != s)
		p = &(*p)->next;
	if (!*p)
		return;
	*p = s->next;
	h->n_sessions--;
	sb_hsess_unref(s);
}

struct sb_hsess *
sb_host_map_find(struct sb_host *h, const char *id, struct sb_error *err)
{
	struct sb_hsess *s;

	if (sb_idcheck_session(id, err) < 0)
		return NULL;
	(void)pthread_mutex_lock(&h->mu);
	s = sb_host_map_get(h, id);
	if (s)
		(void)sb_hsess_ref(s);
	(void)pthread_mutex_unlock(&h->mu);
	if (!s)
		(void)sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SESSION_NOT_FOUND), id);
	return s;
}

struct sb_hsess *
sb_host_map_find_uid(struct sb_host *h, int64_t uid)
{
	struct sb_hsess *found = NULL;

	(void)pthread_mutex_lock(&h->mu);
	for (size_t i = 0; i < h->n_buckets && !found; i++)
		for (struct sb_hsess *s = h->bucket[i]; s && !found; s = s->next)
			if (s->uid == uid)
				found = sb_hsess_ref(s);
	(void)pthread_mutex_unlock(&h->mu);
	return found;
}

unsigned
sb_host_map_forks(struct sb_host *h, int64_t uid, const char *snap)
{
	unsigned n = 0;

	(void)pthread_mutex_lock(&h->mu);
	for (size_t i = 0; i < h->n_buckets; i++)
		for (struct sb_hsess *s = h->bucket[i]; s; s = s->next)
			n += s->parent_uid == uid && strcmp(s->parent_snap, snap) == 0;
	(void)pthread_mutex_unlock(&h->mu);
	return n;
}

int
sb_host_map_all(struct sb_host *h, struct sb_hsess ***out, size_t *out_n, struct sb_error *err)
{
	struct sb_hsess **v;
	size_t n = 0;

	(void)pthread_mutex_lock(&h->mu);
	v = calloc(h->n_sessions + 1, sizeof(*v));
	for (size_t i = 0; v && i < h->n_buckets; i++)
		for (struct sb_hsess *s = h->bucket[i]; s; s = s->next)
			v[n++] = sb_hsess_ref(s);
	(void)pthread_mutex_unlock(&h->mu);
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "list of sessions");
	*out = v;
	*out_n = n;
	return 0;
}
