/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/str.h>

#include <stdarg.h>
#include <string.h>
#include <sys/random.h>

/* Makes room for `n` elements of `size` bytes behind `*v`. */
static int
grow(void **v, size_t *cap, size_t n, size_t size, struct sb_error *err)
{
	size_t want = *cap ? *cap : 8;
	size_t bytes;
	void *grown;

	if (n <= *cap)
		return 0;
	while (want < n) {
		if (__builtin_mul_overflow(want, (size_t)2, &want))
			return sb_fail(err, SB_E_NOMEM, "list of %zu strings: out of memory", n);
	}
	if (__builtin_mul_overflow(want, size, &bytes))
		return sb_fail(err, SB_E_NOMEM, "list of %zu strings: out of memory", n);
	grown = realloc(*v, bytes);
	if (!grown)
		return sb_fail(err, SB_E_NOMEM, "list of %zu strings: out of memory", n);
	*v = grown;
	*cap = want;
	return 0;
}

/* Takes `s` over, also on failure. */
static int
add_owned(struct sb_strlist *l, char *s, struct sb_error *err)
{
	void *v = l->v;
	int r;

	if (!s)
		return sb_fail(err, SB_E_NOMEM, "string: out of memory");
	r = grow(&v, &l->cap, l->n + 2, sizeof *l->v, err);
	l->v = v;
	if (r < 0) {
		free(s);
		return r;
	}
	l->v[l->n++] = s;
	l->v[l->n] = NULL;
	return 0;
}

int
sb_strlist_add(struct sb_strlist *l, const char *s, struct sb_error *err)
{
	return add_owned(l, strdup(s), err);
}

int
sb_strlist_addf(struct sb_strlist *l, struct sb_error *err, const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return add_owned(l, s, err);
}

void
sb_strlist_free(struct sb_strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		free(l->v[i]);
	free(l->v);
	*l = (struct sb_strlist){ 0 };
}

static struct sb_strpair *
find(const struct sb_strmap *m, const char *key)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->v[i].key, key))
			return &m->v[i];
	return NULL;
}

int
sb_strmap_set(struct sb_strmap *m, const char *key, const char *value, struct sb_error *err)
{
	sb_autofree char *val = strdup(value);
	sb_autofree char *k = NULL;
	struct sb_strpair *at = find(m, key);
	void *v = m->v;
	int r;

	if (!val)
		return sb_fail(err, SB_E_NOMEM, "value of %s: out of memory", key);
	if (at) {
		free(at->value);
		at->value = sb_steal(&val);
		return 0;
	}
	k = strdup(key);
	if (!k)
		return sb_fail(err, SB_E_NOMEM, "key %s: out of memory", key);
	r = grow(&v, &m->cap, m->n + 1, sizeof *m->v, err);
	m->v = v;
	if (r < 0)
		return r;
	m->v[m->n++] = (struct sb_strpair){ .key = sb_steal(&k), .value = sb_steal(&val) };
	return 0;
}

const char *
sb_strmap_get(const struct sb_strmap *m, const char *key)
{
	const struct sb_strpair *at = find(m, key);

	return at ? at->value : NULL;
}

bool
sb_strmap_del(struct sb_strmap *m, const char *key)
{
	struct sb_strpair *at = find(m, key);

	if (!at)
		return false;
	free(at->key);
	free(at->value);
	m->n--;
	memmove(at, at + 1, (size_t)(m->v + m->n - at) * sizeof *at);
	return true;
}

void
sb_strmap_free(struct sb_strmap *m)
{
	for (size_t i = 0; i < m->n; i++) {
		free(m->v[i].key);
		free(m->v[i].value);
	}
	free(m->v);
	*m = (struct sb_strmap){ 0 };
}

char *
sb_str_printf(const char *fmt, ...)
{
	va_list ap;
	char *s = NULL;

	va_start(ap, fmt);
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return s;
}

bool
sb_str_to_i64(const char *s, int64_t min, int64_t max, int64_t *out)
{
	bool negative = *s == '-';
	int64_t v = 0;

	if (negative)
		s++;
	if (!*s)
		return false;
	for (; *s; s++) {
		int digit = *s - '0';

		if (digit < 0 || digit > 9 || __builtin_mul_overflow(v, 10, &v) ||
			__builtin_add_overflow(v, negative ? -digit : digit, &v))
			return false;
	}
	if (v < min || v > max)
		return false;
	*out = v;
	return true;
}

char *
sb_str_hex(const uint8_t *in, size_t len, char *out)
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < len; i++) {
		out[2 * i] = digits[in[i] >> 4];
		out[2 * i + 1] = digits[in[i] & 15];
	}
	out[2 * len] = 0;
	return out;
}

static int
nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

bool
sb_str_unhex(const char *hex, uint8_t *out, size_t len)
{
	if (strlen(hex) != 2 * len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (nibble(hex[2 * i]) < 0 || nibble(hex[2 * i + 1]) < 0)
			return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (uint8_t)(nibble(hex[2 * i]) << 4 | nibble(hex[2 * i + 1]));
	return true;
}

bool
sb_str_starts(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

bool
sb_str_ends(const char *s, const char *suffix)
{
	size_t n = strlen(s);
	size_t k = strlen(suffix);

	return n >= k && !memcmp(s + n - k, suffix, k);
}

int
sb_random(void *out, size_t len, struct sb_error *err)
{
	uint8_t *p = out;

	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "random bytes from the kernel");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}
