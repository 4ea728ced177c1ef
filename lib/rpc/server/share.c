/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/server/share.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 256
#define KEY_MAX (SB_RPC_WHO_SESSION_MAX + 4)
#define PART 8 /* one tenant has an eighth, and an eighth is left for admins */
#define PART_MIN 4

/* A tenant that has something; it goes when it has nothing any more. */
struct tenant {
	struct tenant *next;
	char key[KEY_MAX];
	size_t has[SB_RPC_SHARES];
};

struct sb_rpc_share {
	pthread_mutex_t mu;
	size_t one[SB_RPC_SHARES], tenants[SB_RPC_SHARES]; /* limits */
	size_t has[SB_RPC_SHARES];                         /* all tenants */
	struct tenant *buckets[BUCKETS];
};

struct sb_rpc_share *
sb_rpc_share_new(const struct sb_rpc_share_limit limits[SB_RPC_SHARES], struct sb_error *err)
{
	struct sb_rpc_share *s = calloc(1, sizeof *s);

	if (!s) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&s->mu, NULL);
	for (size_t i = 0; i < SB_RPC_SHARES; i++) {
		size_t all = limits[i].all, kept = all / PART, one = limits[i].one;

		if (kept == 0 && all > 1)
			kept = 1;
		s->tenants[i] = all - kept;
		if (one == 0)
			one = all / PART > PART_MIN ? all / PART : PART_MIN;
		s->one[i] = one < s->tenants[i] ? one : s->tenants[i];
	}
	return s;
}

void
sb_rpc_share_free(struct sb_rpc_share *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < BUCKETS; i++)
		while (s->buckets[i]) {
			struct tenant *t = s->buckets[i];

			s->buckets[i] = t->next;
			free(t);
		}
	(void)pthread_mutex_destroy(&s->mu);
	free(s);
}

/* With `mu` held: where the tenant's pointer is, or belongs. */
static struct tenant **
find(struct sb_rpc_share *s, const struct sb_rpc_who *who, char key[KEY_MAX])
{
	struct tenant **t;
	unsigned h = 5381;

	if (who->role == SB_RPC_ROLE_SESSION)
		(void)snprintf(key, KEY_MAX, "s:%s", who->session);
	else
		(void)snprintf(key, KEY_MAX, "t:%s", who->name);
	for (const char *p = key; *p; p++)
		h = h * 33 ^ (unsigned char)*p;
	t = &s->buckets[h % BUCKETS];
	while (*t && strcmp((*t)->key, key) != 0)
		t = &(*t)->next;
	return t;
}

static int
refuse(enum sb_rpc_share_of what, bool own, size_t limit, struct sb_error *err)
{
	static const char *const names[SB_RPC_SHARES] = { "calls", "streams",
		"bytes of request bodies" };

	return sb_fail(err, SB_E_LIMIT,
		own ? "this token has %zu %s at a time already: let one end first" :
		      "the tokens of all sessions have %zu %s at a time already, try again",
		limit, names[what]);
}

int
sb_rpc_share_take(struct sb_rpc_share *s, const struct sb_rpc_who *who, enum sb_rpc_share_of what,
	size_t n, struct sb_error *err)
{
	struct tenant **at, *t;
	char key[KEY_MAX];
	int r = 0;

	if (who->role == SB_RPC_ROLE_ADMIN || n == 0)
		return 0;
	(void)pthread_mutex_lock(&s->mu);
	at = find(s, who, key);
	t = *at;
	if (n > s->one[what] - (t ? t->has[what] : 0))
		r = refuse(what, true, s->one[what], err);
	else if (n > s->tenants[what] - s->has[what])
		r = refuse(what, false, s->tenants[what], err);
	else if (!t && !(t = calloc(1, sizeof *t)))
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	if (r == 0) {
		if (!*at) {
			memcpy(t->key, key, sizeof t->key);
			*at = t;
		}
		t->has[what] += n;
		s->has[what] += n;
	}
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

void
sb_rpc_share_give(struct sb_rpc_share *s, const struct sb_rpc_who *who, enum sb_rpc_share_of what,
	size_t n)
{
	struct tenant **at, *t;
	char key[KEY_MAX];
	size_t left = 0;

	if (who->role == SB_RPC_ROLE_ADMIN || n == 0)
		return;
	(void)pthread_mutex_lock(&s->mu);
	at = find(s, who, key);
	t = *at;
	t->has[what] -= n;
	s->has[what] -= n;
	for (size_t i = 0; i < SB_RPC_SHARES; i++)
		left += t->has[i];
	if (left == 0) {
		*at = t->next;
		free(t);
	}
	(void)pthread_mutex_unlock(&s->mu);
}
