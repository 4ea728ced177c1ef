/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/aws/sigv4.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <gnutls/crypto.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/str.h>

#define SHA 32
#define TEXT_MAX ((size_t)1 << 20)
#define HEADERS_MAX 64
#define PAIRS_MAX 64

/* What every step of one signature needs. */
struct signing {
	const struct sb_sigv4_key *key;
	const struct sb_sigv4_request *q;
	char stamp[20]; /* YYYYMMDDThhmmssZ; its first 8 are the date */
	struct sb_buf names;
};

/* A header, or a pair of the query, to be sorted. */
struct pair {
	char *name;
	char *value;
};

int
sb_sigv4_hash(const void *data, size_t len, char out[SB_SIGV4_HASH_MAX], struct sb_error *err)
{
	uint8_t raw[SHA];

	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data ? data : "", len, raw) != 0)
		return sb_fail(err, SB_E_SYS, "SHA-256 failed");
	(void)sb_str_hex(raw, sizeof raw, out);
	return 0;
}

static int
by_name(const void *a, const void *b)
{
	const struct pair *x = a, *y = b;
	int r = strcmp(x->name, y->name);

	return r ? r : strcmp(x->value, y->value);
}

static void
pairs_free(struct pair *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(v[i].name);
		free(v[i].value);
	}
}

/* `text` decoded and encoded again, so that every spelling of it is signed as the one. */
static char *
encode_again(const char *text, size_t len, struct sb_error *err)
{
	static const char digits[] = "0123456789ABCDEF";
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, TEXT_MAX);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];

		if (c == '%') {
			int hi = i + 2 < len ? sb_str_hex_digit(text[i + 1]) : -1;
			int lo = hi >= 0 ? sb_str_hex_digit(text[i + 2]) : -1;

			if (lo < 0) {
				(void)sb_fail(err, SB_E_INVAL, "a lone '%%' in \"%.100s\"", text);
				return NULL;
			}
			c = (unsigned char)(hi << 4 | lo);
			i += 2;
		} else if (c <= ' ' || c >= 127 || c == '+') {
			(void)sb_fail(err, SB_E_INVAL, "not encoded: \"%.100s\"", text);
			return NULL;
		}
		if (isalnum(c) || c == '-' || c == '_' || c == '.' || c == '~') {
			sb_buf_add_char(&b, (char)c);
		} else {
			sb_buf_add_char(&b, '%');
			sb_buf_add_char(&b, digits[c >> 4]);
			sb_buf_add_char(&b, digits[c & 15]);
		}
	}
	if (sb_buf_check(&b, "query", err) < 0)
		return NULL;
	return (char *)sb_buf_detach(&b, NULL);
}

/* The path, each segment in canonical encoding; twice encoded where the service wants that. */
static int
add_path(struct signing *g, struct sb_buf *out, struct sb_error *err)
{
	const char *p = g->q->target;
	const char *end = p + strcspn(p, "?");
	bool twice = strcmp(g->q->service, "s3") != 0;

	if (*p != '/')
		return sb_fail(err, SB_E_INVAL, "\"%.100s\" is no path", p);
	while (p < end) {
		const char *slash = memchr(p + 1, '/', (size_t)(end - p - 1));
		const char *stop = slash ? slash : end;
		sb_autofree char *seg = encode_again(p + 1, (size_t)(stop - p - 1), err);

		if (!seg)
			return SB_E_INVAL;
		sb_buf_add_char(out, '/');
		for (const char *c = seg; *c; c++) {
			sb_buf_add_char(out, *c);
			if (twice && *c == '%')
				sb_buf_add_str(out, "25");
		}
		p = stop;
	}
	sb_buf_add_char(out, '\n');
	return 0;
}

/* One "name=value" of the query into `v`. */
static int
take_pair(const char *text, size_t len, struct pair *v, struct sb_error *err)
{
	const char *eq = memchr(text, '=', len);
	size_t name = eq ? (size_t)(eq - text) : len;

	v->name = encode_again(text, name, err);
	v->value = eq ? encode_again(eq + 1, len - name - 1, err) : strdup("");
	return v->name && v->value ? 0 : SB_E_INVAL;
}

static int
add_query(struct signing *g, struct sb_buf *out, struct sb_error *err)
{
	const char *p = strchr(g->q->target, '?');
	struct pair v[PAIRS_MAX] = { { 0 } };
	size_t n = 0;
	int r = 0;

	p = p ? p + 1 : "";
	while (*p && r == 0) {
		size_t len = strcspn(p, "&");

		if (n == PAIRS_MAX)
			r = sb_fail(err, SB_E_LIMIT, "more than %d pairs in a query", PAIRS_MAX);
		else if (len > 0)
			r = take_pair(p, len, &v[n++], err);
		p += len + (p[len] == '&');
	}
	if (r == 0 && n > 0)
		qsort(v, n, sizeof v[0], by_name);
	for (size_t i = 0; i < n && r == 0; i++)
		sb_buf_addf(out, "%s%s=%s", i ? "&" : "", v[i].name, v[i].value);
	sb_buf_add_char(out, '\n');
	pairs_free(v, n);
	return r;
}

/* The value without space around it, runs of space folded. */
static char *
fold(const char *value)
{
	char *out = malloc(strlen(value) + 1), *o = out;

	if (!out)
		return NULL;
	while (*value == ' ' || *value == '\t')
		value++;
	for (; *value; value++)
		if (*value != ' ' && *value != '\t')
			*o++ = *value;
		else if (o[-1] != ' ')
			*o++ = ' ';
	while (o > out && o[-1] == ' ')
		o--;
	*o = '\0';
	return out;
}

static int
take_header(struct pair v[HEADERS_MAX], size_t *n, const char *name, const char *value,
	struct sb_error *err)
{
	struct pair *p = &v[*n];

	if (*n == HEADERS_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %d headers to sign", HEADERS_MAX);
	if (value[strcspn(value, "\r\n")])
		return sb_fail(err, SB_E_INVAL, "header %s has a line break", name);
	(*n)++;
	p->name = strdup(name);
	p->value = fold(value);
	if (!p->name || !p->value)
		return sb_fail(err, SB_E_NOMEM, "headers to sign");
	for (char *c = p->name; *c; c++)
		*c = (char)tolower((unsigned char)*c);
	return 0;
}

static int
add_headers(struct signing *g, struct sb_buf *out, struct sb_error *err)
{
	const struct sb_sigv4_request *q = g->q;
	struct pair v[HEADERS_MAX] = { { 0 } };
	size_t n = 0;
	int r = take_header(v, &n, "host", q->host, err);

	if (r == 0)
		r = take_header(v, &n, "x-amz-date", g->stamp, err);
	if (r == 0 && g->key->token && *g->key->token)
		r = take_header(v, &n, "x-amz-security-token", g->key->token, err);
	if (r == 0 && strcmp(q->service, "s3") == 0)
		r = take_header(v, &n, "x-amz-content-sha256", q->payload, err);
	for (size_t i = 0; i < q->n_headers && r == 0; i++)
		r = take_header(v, &n, q->headers[i].name, q->headers[i].value, err);
	if (r == 0)
		qsort(v, n, sizeof v[0], by_name);
	for (size_t i = 0; i < n && r == 0; i++) {
		if (i > 0 && strcmp(v[i].name, v[i - 1].name) == 0)
			r = sb_fail(err, SB_E_INVAL, "header %s twice", v[i].name);
		sb_buf_addf(out, "%s:%s\n", v[i].name, v[i].value);
		sb_buf_addf(&g->names, "%s%s", i ? ";" : "", v[i].name);
	}
	pairs_free(v, n);
	return r;
}

/* Also fills in the date and the names of what is signed. */
static int
canonical(struct signing *g, struct sb_buf *out, struct sb_error *err)
{
	time_t t = (time_t)g->q->time_s;
	struct tm tm;
	int r;

	if (!gmtime_r(&t, &tm) || strftime(g->stamp, sizeof g->stamp, "%Y%m%dT%H%M%SZ", &tm) == 0)
		return sb_fail(err, SB_E_INVAL, "time %lld", (long long)g->q->time_s);
	sb_buf_addf(out, "%s\n", g->q->method);
	r = add_path(g, out, err);
	if (r == 0)
		r = add_query(g, out, err);
	if (r == 0)
		r = add_headers(g, out, err);
	sb_buf_addf(out, "\n%s\n%s", (const char *)g->names.data, g->q->payload);
	if (r == 0)
		r = sb_buf_check(&g->names, "names of headers", err);
	return r < 0 ? r : sb_buf_check(out, "canonical request", err);
}

char *
sb_sigv4_canonical(const struct sb_sigv4_key *key, const struct sb_sigv4_request *q,
	struct sb_error *err)
{
	struct signing g = { .key = key, .q = q };
	sb_auto(sb_buf) struct sb_buf out;
	int r;

	sb_buf_init(&out, TEXT_MAX);
	sb_buf_init(&g.names, TEXT_MAX);
	r = canonical(&g, &out, err);
	sb_buf_free(&g.names);
	return r < 0 ? NULL : (char *)sb_buf_detach(&out, NULL);
}

/* HMAC-SHA-256 of `text` under `key`, into `out`, which may be `key`. */
static int
mac(const void *key, size_t key_len, const char *text, uint8_t out[SHA])
{
	uint8_t raw[SHA];

	if (gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, key_len, text, strlen(text), raw) != 0)
		return SB_E_SYS;
	memcpy(out, raw, sizeof raw);
	return 0;
}

static int
signature(struct signing *g, const char *scope, const char *request, char hex[SB_SIGV4_HASH_MAX],
	struct sb_error *err)
{
	sb_autofree char *first = sb_str_printf("AWS4%s", g->key->secret);
	sb_autofree char *what = NULL;
	char date[9] = "", hash[SB_SIGV4_HASH_MAX];
	uint8_t k[SHA];
	int r = sb_sigv4_hash(request, strlen(request), hash, err);

	if (r < 0)
		return r;
	memcpy(date, g->stamp, sizeof date - 1);
	what = sb_str_printf("AWS4-HMAC-SHA256\n%s\n%s\n%s", g->stamp, scope, hash);
	if (!first || !what)
		return sb_fail(err, SB_E_NOMEM, "signature");
	if (mac(first, strlen(first), date, k) < 0 || mac(k, SHA, g->q->region, k) < 0 ||
		mac(k, SHA, g->q->service, k) < 0 || mac(k, SHA, "aws4_request", k) < 0 ||
		mac(k, SHA, what, k) < 0)
		r = sb_fail(err, SB_E_SYS, "HMAC failed");
	explicit_bzero(first, strlen(first));
	(void)sb_str_hex(k, sizeof k, hex);
	return r;
}

int
sb_sigv4_sign(const struct sb_sigv4_key *key, const struct sb_sigv4_request *q,
	struct sb_strlist *out, struct sb_error *err)
{
	struct signing g = { .key = key, .q = q };
	sb_autofree char *scope = NULL;
	char hex[SB_SIGV4_HASH_MAX];
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, TEXT_MAX);
	sb_buf_init(&g.names, TEXT_MAX);
	r = canonical(&g, &text, err);
	if (r == 0) {
		scope = sb_str_printf("%.8s/%s/%s/aws4_request", g.stamp, q->region, q->service);
		r = scope ? signature(&g, scope, (const char *)text.data, hex, err) :
			    sb_fail(err, SB_E_NOMEM, "signature");
	}
	if (r == 0) {
		sb_strlist_addf(out, "X-Amz-Date: %s", g.stamp);
		if (key->token && *key->token)
			sb_strlist_addf(out, "X-Amz-Security-Token: %s", key->token);
		if (strcmp(q->service, "s3") == 0)
			sb_strlist_addf(out, "X-Amz-Content-Sha256: %s", q->payload);
		sb_strlist_addf(out,
			"Authorization: AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, "
			"Signature=%s",
			key->access, scope, (const char *)g.names.data, hex);
		r = sb_strlist_check(out, err);
	}
	sb_buf_free(&g.names);
	return r;
}
