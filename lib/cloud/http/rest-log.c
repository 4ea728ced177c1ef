/* SPDX-License-Identifier: MIT */
/* What a request leaves in the log: never a secret. */
#include "config.h"

#include <string.h>

#include <base/secret.h>
#include <cloud/http/rest-priv.h>

#define SHOWN_MAX 512 /* of a body */
#define SECRET_MIN 6  /* shorter ones would be found everywhere */

bool
sb_rest_log_secret(const char *name, size_t len)
{
	char words[128];
	size_t n = len < sizeof words ? len : sizeof words;

	for (size_t i = 0; i < n; i++)
		words[i] = name[i] == '-' ? '_' : name[i];
	return sb_secret_name_looks(words, n);
}

void
sb_rest_log_keep(struct sb_strlist *secrets, const char *value)
{
	const char *last = strrchr(value, ' ');

	value = last ? last + 1 : value;
	if (strlen(value) >= SECRET_MIN)
		sb_strlist_add(secrets, value);
}

void
sb_rest_log_redact(const struct sb_strlist *secrets, char *text, size_t len)
{
	for (size_t i = 0; i < secrets->n; i++) {
		size_t n = strlen(secrets->v[i]);
		char *at = text;

		while ((at = memmem(at, len - (size_t)(at - text), secrets->v[i], n)) != NULL) {
			memset(at, '*', n);
			at += n;
		}
	}
}

/* Scheme, host and path. */
static int
shown_len(const char *target)
{
	return (int)strcspn(target, "?");
}

static void
log_body(const struct sb_rest_try *t, const char *which, const void *data, size_t len)
{
	if (len == 0)
		return;
	if (t->q->secret)
		sb_log(&t->client->o.log, SB_LOG_TRACE, "http", "%s body: %zu bytes (secret)",
			which, len);
	else
		sb_log(&t->client->o.log, SB_LOG_TRACE, "http", "%s body: %.*s%s", which,
			(int)(len < SHOWN_MAX ? len : SHOWN_MAX), (const char *)data,
			len > SHOWN_MAX ? "..." : "");
}

static bool
traces(const struct sb_rest_try *t)
{
	return t->client->o.log.fn && t->client->o.log.level >= SB_LOG_TRACE;
}

void
sb_rest_log_sent(const struct sb_rest_try *t)
{
	if (!traces(t))
		return;
	for (const struct curl_slist *l = t->headers; l; l = l->next) {
		size_t name = strcspn(l->data, ":;");
		const char *value = l->data[name] ? l->data + name + 1 : "";
		bool hide = sb_rest_log_secret(l->data, name);

		for (size_t i = 0; i < t->secrets.n && !hide; i++)
			hide = strstr(value, t->secrets.v[i]) != NULL;
		sb_log(&t->client->o.log, SB_LOG_TRACE, "http", "> %.*s:%s", (int)name, l->data,
			hide ? " (secret)" : value);
	}
	log_body(t, "request", t->body, t->body_len);
}

void
sb_rest_log_came(const struct sb_rest_try *t, int r, int64_t ms, int64_t again_ms,
	const struct sb_error *err)
{
	const struct sb_log *log = &t->client->o.log;
	const struct sb_rest_answer *a = t->a;

	if (r < 0)
		sb_log(log, SB_LOG_DEBUG, "http", "%s %s%.*s: %s (%lld ms)", t->q->method,
			t->client->shown, shown_len(t->q->target), t->q->target, err->msg,
			(long long)ms);
	else
		sb_log(log, SB_LOG_DEBUG, "http", "%s %s%.*s: %d, %zu bytes in %lld ms",
			t->q->method, t->client->shown, shown_len(t->q->target), t->q->target,
			a->status, a->body.len, (long long)ms);
	if (again_ms >= 0)
		sb_log(log, SB_LOG_DEBUG, "http", "try %u again in %lld ms", t->n,
			(long long)again_ms);
	if (!traces(t) || r < 0)
		return;
	for (size_t i = 0; i < a->headers.n; i++) {
		size_t name = strcspn(a->headers.v[i], ":");

		sb_log(log, SB_LOG_TRACE, "http", "< %.*s: %s", (int)name, a->headers.v[i],
			sb_rest_log_secret(a->headers.v[i], name) ? "(secret)" :
								    a->headers.v[i] + name + 2);
	}
	log_body(t, "answer", a->body.data, a->body.len);
}
