/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/wire/tail.h>

#include <string.h>

#include <base/cond.h>
#include <sb/log.h>

void
sb_tail_init(struct sb_tail *t)
{

	memset(t, 0, sizeof *t);
	(void)pthread_mutex_init(&t->mu, NULL);
	sb_cond_init(&t->cond);
}

void
sb_tail_destroy(struct sb_tail *t)
{
	(void)pthread_cond_destroy(&t->cond);
	(void)pthread_mutex_destroy(&t->mu);
}

void
sb_tail_add(struct sb_tail *t, const char *data, size_t len)
{
	(void)pthread_mutex_lock(&t->mu);
	if (len > sizeof t->ring) {
		t->total += len - sizeof t->ring;
		data += len - sizeof t->ring;
		len = sizeof t->ring;
	}
	while (len > 0) {
		size_t at = (size_t)(t->total % sizeof t->ring);
		size_t n = sizeof t->ring - at < len ? sizeof t->ring - at : len;

		memcpy(t->ring + at, data, n);
		t->total += n;
		data += n;
		len -= n;
	}
	(void)pthread_mutex_unlock(&t->mu);
}

void
sb_tail_end(struct sb_tail *t)
{
	(void)pthread_mutex_lock(&t->mu);
	t->ended = true;
	(void)pthread_cond_broadcast(&t->cond);
	(void)pthread_mutex_unlock(&t->mu);
}

void
sb_tail_wait_end(struct sb_tail *t, sb_deadline d)
{
	(void)pthread_mutex_lock(&t->mu);
	while (!t->ended && !sb_deadline_passed(d))
		sb_cond_wait_until(&t->cond, &t->mu, d);
	(void)pthread_mutex_unlock(&t->mu);
}

void
sb_tail_get(struct sb_tail *t, char *out, size_t size)
{
	char raw[sizeof t->ring];
	size_t len, from;

	(void)pthread_mutex_lock(&t->mu);
	len = t->total < sizeof raw ? (size_t)t->total : sizeof raw;
	from = (size_t)((t->total - len) % sizeof raw);
	for (size_t i = 0; i < len; i++)
		raw[i] = t->ring[(from + i) % sizeof raw];
	(void)pthread_mutex_unlock(&t->mu);
	while (len > 0 && (raw[len - 1] == '\n' || raw[len - 1] == '\r'))
		len--;
	/* Escaping grows it up to fourfold, and the end is the part worth keeping. */
	from = 0;
	do {
		size_t need = 1;

		for (size_t i = from; i < len; i++)
			need += raw[i] >= ' ' && raw[i] != '\\' && raw[i] != 0x7f ? 1 : 4;
		if (need <= size)
			break;
		from += (need - size + 3) / 4;
	} while (from < len);
	(void)sb_escape(raw + from, len - from, out, size);
}
