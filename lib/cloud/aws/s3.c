/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/aws/s3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/random.h>
#include <base/str.h>

#define TARGET_MAX 8192
#define MARK_LEN 16
#define MARK_HEADER "x-amz-meta-sb-mark"
#define GET_SLACK 4096
#define RACES 8

struct sb_s3 {
	struct sb_awschain *chain;
	struct sb_awscall *calls;
	char *bucket;
	bool path_style;
};

/* What AWS's rules allow, and nothing that would be another host or path. */
static int
check_bucket(const char *b, struct sb_error *err)
{
	size_t len = strlen(b);

	if (len < 3 || len > 63 || strspn(b, "abcdefghijklmnopqrstuvwxyz0123456789.-") != len ||
		strstr(b, "..") || strchr(".-", b[0]) || strchr(".-", b[len - 1]))
		return sb_fail(err, SB_E_INVAL, "\"%.80s\" is no name of a bucket", b);
	return 0;
}

static struct sb_awscall *
open_calls(struct sb_s3 *s, const struct sb_s3_opts *o, struct sb_error *err)
{
	struct sb_awscall_opts c = SB_AWSCALL_OPTS_INIT;
	sb_autofree char *configured = NULL;
	sb_autofree char *region = NULL;
	sb_autofree char *base = NULL;

	if (!o->endpoint && sb_awschain_endpoint(s->chain, "S3", &configured, err) < 0)
		return NULL;
	region = o->region ? strdup(o->region) : sb_awschain_region(s->chain, o->cancel, err);
	if (!region)
		return NULL;
	c.service = "s3";
	c.region = region;
	c.chain = s->chain;
	c.cancel = o->cancel;
	c.rest.name = s->bucket;
	c.rest.ca_file = o->ca_file;
	c.rest.log = o->log;
	c.endpoint = o->endpoint ? o->endpoint : configured;
	/* A dot in the name would not fit AWS's certificate. */
	s->path_style = c.endpoint || strchr(s->bucket, '.');
	if (!c.endpoint) {
		base = sb_str_printf("https://%s%ss3.%s.amazonaws.com%s",
			s->path_style ? "" : s->bucket, s->path_style ? "" : ".", region,
			sb_str_starts(region, "cn-") ? ".cn" : "");
		c.endpoint = base;
		if (!base) {
			(void)sb_fail(err, SB_E_NOMEM, "S3");
			return NULL;
		}
	}
	return sb_awscall_new(&c, err);
}

struct sb_s3 *
sb_s3_new(const struct sb_s3_opts *o, struct sb_error *err)
{
	struct sb_awschain_opts co = SB_AWSCHAIN_OPTS_INIT;
	sb_auto(sb_s3) struct sb_s3 *s = NULL;

	if (check_bucket(o->bucket, err) < 0)
		return NULL;
	s = calloc(1, sizeof *s);
	if (!s || !(s->bucket = strdup(o->bucket))) {
		(void)sb_fail(err, SB_E_NOMEM, "S3");
		return NULL;
	}
	co.log = o->log;
	s->chain = sb_awschain_new(&co, err);
	s->calls = s->chain ? open_calls(s, o, err) : NULL;
	return s->calls ? sb_steal(&s) : NULL;
}

void
sb_s3_free(struct sb_s3 *s)
{
	if (!s)
		return;
	sb_awscall_free(s->calls);
	sb_awschain_free(s->chain);
	free(s->bucket);
	free(s);
}

/* "/BUCKET/KEY" or "/KEY", each byte of the key encoded once but for its slashes. */
static int
target_of(const struct sb_s3 *s, const char *key, struct sb_buf *out, struct sb_error *err)
{
	if (s->path_style)
		sb_rest_add_segment(out, s->bucket);
	while (*key) {
		size_t len = strcspn(key, "/");
		sb_autofree char *seg = strndup(key, len);

		if (!seg)
			return sb_fail(err, SB_E_NOMEM, "S3");
		sb_rest_add_segment(out, seg);
		key += len + (key[len] == '/');
	}
	return sb_buf_check(out, "key", err);
}

static int
do_call(struct sb_s3 *s, struct sb_rest_request *q, const char *key,
	const struct sb_rest_wait *wait, struct sb_rest_answer *a, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf target;
	int r;

	sb_buf_init(&target, TARGET_MAX);
	r = target_of(s, key, &target, err);
	if (r < 0)
		return r;
	q->target = (char *)target.data;
	q->again = SB_REST_REPEAT;
	return sb_awscall_do(s->calls, q, NULL, wait, a, err);
}

static int
check(const struct sb_rest_answer *a, const char *what, const char *key, struct sb_error *err)
{
	sb_autofree char *text = sb_str_printf("%s %s", what, key);

	return sb_awscall_check(a, text ? text : what, err);
}

/* Whether what is there was written by us: a call of ours came through, its answer did not. */
static int
is_ours(struct sb_s3 *s, const char *key, const char *mark, const struct sb_rest_wait *wait,
	struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	const char *theirs;
	int r;

	q.method = "HEAD";
	r = do_call(s, &q, key, wait, &a, err);
	if (r == 0)
		r = check(&a, "look at", key, err);
	theirs = r == 0 ? sb_rest_header(&a, MARK_HEADER) : NULL;
	return r < 0 ? r : theirs && strcmp(theirs, mark) == 0;
}

int
sb_s3_put_new(struct sb_s3 *s, const char *key, const void *data, size_t len,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_rest_header h[2] = { { "If-None-Match", "*", false },
		{ MARK_HEADER, NULL, false } };
	char mark[2 * MARK_LEN + 1];
	uint8_t rnd[MARK_LEN];
	int r = sb_random(rnd, sizeof rnd, err);

	if (r < 0)
		return r;
	h[1].value = sb_str_hex(rnd, sizeof rnd, mark);
	q.method = "PUT";
	q.headers = h;
	q.n_headers = 2;
	q.body = data;
	q.body_len = len;
	q.type = "application/octet-stream";
	for (int i = 0; i < RACES; i++) {
		sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };

		r = do_call(s, &q, key, wait, &a, err);
		if (r < 0)
			return r;
		if (a.status == 412) {
			r = is_ours(s, key, mark, wait, err);
			return r < 0 ? r :
				r    ? 0 :
				       sb_fail(err, SB_E_EXISTS, "%s is there already", key);
		}
		/* Two at a time: who is second is told so when both are done. */
		if (a.status != 409)
			return check(&a, "write", key, err);
	}
	return sb_fail(err, SB_E_UNAVAILABLE, "write %s: others keep writing it", key);
}

int
sb_s3_probe(struct sb_s3 *s, const char *key, const struct sb_rest_wait *wait, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r = 0;

	/* The second one must be refused, whoever wrote the first one. */
	for (int i = 0; i < 2 && (r == 0 || (r == SB_E_EXISTS && i == 1)); i++)
		r = sb_s3_put_new(s, key, "x", 1, wait, &why);
	if (r == SB_E_EXISTS)
		return 0;
	if (r < 0 && r != SB_E_UNSUPPORTED) {
		if (err)
			*err = why;
		return r;
	}
	return sb_fail(err, SB_E_UNSUPPORTED,
		"bucket %s: the store does not make objects conditionally (If-None-Match), so two "
		"hosts could take one session: use another one",
		s->bucket);
}

int
sb_s3_get(struct sb_s3 *s, const char *key, uint64_t at, void *out, size_t len,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_rest_header h = { "Range", NULL, false };
	char range[64];
	int r;

	if (len == 0)
		return 0;
	(void)snprintf(range, sizeof range, "bytes=%llu-%llu", (unsigned long long)at,
		(unsigned long long)(at + len - 1));
	h.value = range;
	q.headers = &h;
	q.n_headers = 1;
	q.max_body = len + GET_SLACK;
	r = do_call(s, &q, key, wait, &a, err);
	if (r < 0)
		return r;
	if (a.status == 416)
		return sb_fail(err, SB_E_CORRUPT, "%s is too short", key);
	r = check(&a, "read", key, err);
	if (r < 0)
		return r;
	if (a.status != 206 && !(a.status == 200 && at == 0))
		return sb_fail(err, SB_E_PROTO, "read %s: asked for a range, got HTTP %d", key,
			a.status);
	if (a.body.len != len)
		return sb_fail(err, SB_E_CORRUPT, "read %s: %zu bytes instead of %zu", key,
			a.body.len, len);
	memcpy(out, a.body.data, len);
	return 0;
}

int
sb_s3_size(struct sb_s3 *s, const char *key, uint64_t *out, const struct sb_rest_wait *wait,
	struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	const char *len;
	int64_t v;
	int r;

	q.method = "HEAD";
	r = do_call(s, &q, key, wait, &a, err);
	if (r == 0)
		r = check(&a, "look at", key, err);
	if (r < 0)
		return r;
	len = sb_rest_header(&a, "content-length");
	if (!len || !sb_str_to_i64(len, 0, INT64_MAX, &v))
		return sb_fail(err, SB_E_PROTO, "look at %s: no length", key);
	*out = (uint64_t)v;
	return 0;
}

int
sb_s3_remove(struct sb_s3 *s, const char *key, const struct sb_rest_wait *wait,
	struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	int r;

	q.method = "DELETE";
	r = do_call(s, &q, key, wait, &a, err);
	if (r < 0 || a.status == 404)
		return r;
	return check(&a, "remove", key, err);
}

int
sb_s3_list(struct sb_s3 *s, const char *prefix, sb_s3_entry_fn fn, void *arg,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	char next[SB_S3_TOKEN_MAX] = "";
	int r = 0;

	do {
		sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
		struct sb_rest_request q = SB_REST_REQUEST_INIT;
		sb_auto(sb_buf) struct sb_buf target;

		sb_buf_init(&target, 2 * TARGET_MAX);
		sb_buf_add_char(&target, '/');
		if (s->path_style)
			sb_buf_add_str(&target, s->bucket);
		sb_rest_add_query(&target, "list-type", "2");
		sb_rest_add_query(&target, "encoding-type", "url");
		sb_rest_add_query(&target, "prefix", prefix);
		if (next[0])
			sb_rest_add_query(&target, "continuation-token", next);
		r = sb_buf_check(&target, "listing", err);
		if (r < 0)
			break;
		q.target = (char *)target.data;
		q.again = SB_REST_REPEAT;
		r = sb_awscall_do(s->calls, &q, NULL, wait, &a, err);
		if (r == 0)
			r = check(&a, "list", prefix, err);
		if (r == 0)
			r = sb_s3_list_page((char *)a.body.data, fn, arg, next, sizeof next, err);
	} while (r == 0 && next[0]);
	return r;
}
