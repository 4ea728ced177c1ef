/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/secrets.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <base/strlist.h>
#include <sb/profile.h>

#define SECRET_MAX (64 * 1024)
/* Shorter values would blot out ordinary text and hide nothing. */
#define VALUE_MIN 4

/* The value behind one reference; the caller wipes it. */
static int
resolve(const char *key, const char *ref, struct sb_buf *out, struct sb_error *err)
{
	if (sb_str_starts(ref, "env:")) {
		const char *v = getenv(ref + 4);

		if (!v)
			return sb_fail(err, SB_E_SECRET, "secret %s: %s: the variable is not set",
				key, ref);
		sb_buf_init(out, SECRET_MAX);
		sb_buf_add_str(out, v);
		return sb_buf_check(out, key, err);
	}
	if (sb_str_starts(ref, "file:")) {
		struct sb_error why = { 0 };

		if (sb_file_read(AT_FDCWD, ref + 5, SECRET_MAX, out, &why) < 0)
			return sb_fail(err, SB_E_SECRET, "secret %s: %s", key, why.msg);
		/* The line end that an editor leaves is not part of it. */
		while (out->len > 0 &&
			(out->data[out->len - 1] == '\n' || out->data[out->len - 1] == '\r'))
			out->data[--out->len] = '\0';
		if (memchr(out->data, 0, out->len))
			return sb_fail(err, SB_E_SECRET, "secret %s: %s holds a NUL byte", key,
				ref);
		return 0;
	}
	return sb_fail(err, SB_E_SECRET, "secret %s: a reference is env:NAME or file:PATH", key);
}

static int
add_secret(const char *pair, struct sb_strlist *out, struct sb_error *err)
{
	const char *eq = strchr(pair, '=');
	sb_autofree char *key = eq ? strndup(pair, (size_t)(eq - pair)) : NULL;
	sb_auto(sb_buf) struct sb_buf value = { 0 };
	int r;

	if (!key)
		return sb_fail(err, SB_E_SECRET,
			"secret \"%.32s\": a name and a reference are needed", pair);
	r = resolve(key, eq + 1, &value, err);
	if (r == 0) {
		sb_strlist_putf(out, "%s=%s", key, (const char *)value.data);
		r = sb_strlist_check(out, err);
	}
	if (value.data && value.cap > 0)
		explicit_bzero(value.data, value.len);
	return r;
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

int
sb_secrets_resolve(const char *const *secret_env, struct sb_strlist *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist sorted = { 0 };
	int r;

	sb_strlist_add_all(&sorted, secret_env);
	r = sb_strlist_check(&sorted, err);
	if (r == 0 && sorted.n > 1)
		qsort(sorted.v, sorted.n, sizeof *sorted.v, by_key);
	for (size_t i = 0; r == 0 && i < sorted.n; i++)
		r = add_secret(sorted.v[i], out, err);
	if (r < 0)
		sb_secrets_free(out);
	return r;
}

void
sb_secrets_free(struct sb_strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		explicit_bzero(l->v[i], strlen(l->v[i]));
	sb_strlist_free(l);
}

void
sb_secrets_redact(char *text, const char *const *secrets)
{
	for (size_t i = 0; secrets && secrets[i]; i++) {
		const char *value = strchr(secrets[i], '=');
		size_t len = value ? strlen(value + 1) : 0;
		char *at = text;

		if (len < VALUE_MIN)
			continue;
		while ((at = strstr(at, value + 1))) {
			memset(at, '*', len);
			at += len;
		}
	}
}
