/* SPDX-License-Identifier: MIT */
/* Archives in a bucket of S3: "s3://BUCKET" or "s3://BUCKET/PREFIX". */
#include "config.h"

#include <host/cold/coldstore.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <cloud/aws/s3.h>

#define SCHEME "s3://"
#define PROBE "probe"
#define PROBE_MS 60000

struct store {
	struct sb_coldstore st;
	struct sb_s3 *s3;
	char *prefix; /* "" or with a slash at its end */
};

static void
s3_close(struct sb_coldstore *st)
{
	struct store *s = (struct store *)st;

	sb_s3_free(s->s3);
	free(s->prefix);
	free(s);
}

static struct sb_rest_wait
wait_of(const struct sb_host_call *call)
{
	return (struct sb_rest_wait){ .cancel = call ? call->cancel : NULL,
		.deadline = call ? call->deadline : SB_NEVER };
}

/* The key in the bucket; NULL when it is none. */
static char *
full(const struct store *s, const char *key, bool prefix, struct sb_error *err)
{
	char *out = NULL;

	if (sb_coldstore_check_key(key, prefix, err) == 0) {
		out = sb_str_printf("%s%s", s->prefix, key);
		if (!out)
			(void)sb_fail(err, SB_E_NOMEM, "cold store");
	}
	return out;
}

static int
s3_put(struct sb_coldstore *st, const char *key, const void *data, size_t len,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct store *s = (struct store *)st;
	const struct sb_rest_wait wait = wait_of(call);
	sb_autofree char *k = full(s, key, false, err);

	return k ? sb_s3_put_new(s->s3, k, data, len, &wait, err) : SB_E_INVAL;
}

static int
s3_get(struct sb_coldstore *st, const char *key, uint64_t at, void *out, size_t len,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct store *s = (struct store *)st;
	const struct sb_rest_wait wait = wait_of(call);
	sb_autofree char *k = full(s, key, false, err);

	return k ? sb_s3_get(s->s3, k, at, out, len, &wait, err) : SB_E_INVAL;
}

static int
s3_size(struct sb_coldstore *st, const char *key, uint64_t *out, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct store *s = (struct store *)st;
	const struct sb_rest_wait wait = wait_of(call);
	sb_autofree char *k = full(s, key, false, err);

	return k ? sb_s3_size(s->s3, k, out, &wait, err) : SB_E_INVAL;
}

static int
s3_remove(struct sb_coldstore *st, const char *key, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct store *s = (struct store *)st;
	const struct sb_rest_wait wait = wait_of(call);
	sb_autofree char *k = full(s, key, false, err);

	return k ? sb_s3_remove(s->s3, k, &wait, err) : SB_E_INVAL;
}

struct listing {
	size_t skip;
	sb_coldstore_entry_fn fn;
	void *arg;
};

static int
on_object(const struct sb_s3_entry *e, void *arg, struct sb_error *err)
{
	const struct listing *l = arg;
	struct sb_coldstore_entry out = { e->key + l->skip, e->size, e->time_s };

	if (strlen(e->key) <= l->skip)
		return 0;
	return l->fn(&out, l->arg, err);
}

static int
s3_list(struct sb_coldstore *st, const char *prefix, sb_coldstore_entry_fn fn, void *arg,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct store *s = (struct store *)st;
	const struct sb_rest_wait wait = wait_of(call);
	struct listing l = { strlen(s->prefix), fn, arg };
	sb_autofree char *k = full(s, prefix, true, err);

	return k ? sb_s3_list(s->s3, k, on_object, &l, &wait, err) : SB_E_INVAL;
}

static const struct sb_coldstore_ops ops = {
	.name = "s3",
	.close = s3_close,
	.put = s3_put,
	.get = s3_get,
	.size = s3_size,
	.list = s3_list,
	.remove = s3_remove,
};

struct sb_coldstore *
sb_coldstore_s3_open(const char *url, const struct sb_log *log, struct sb_error *err)
{
	const char *bucket = url + strlen(SCHEME), *slash = strchr(bucket, '/');
	size_t len = slash ? (size_t)(slash - bucket) : strlen(bucket);
	const struct sb_rest_wait wait = { .deadline = sb_deadline_in(PROBE_MS) };
	struct store *s = calloc(1, sizeof *s);
	sb_autofree char *name = strndup(bucket, len);
	struct sb_s3_opts o = SB_S3_OPTS_INIT;
	sb_autofree char *probe = NULL;
	int r = 0;

	if (!s || !name) {
		free(s);
		(void)sb_fail(err, SB_E_NOMEM, "cold store");
		return NULL;
	}
	s->st.ops = &ops;
	s->prefix = slash && slash[1] ?
		sb_str_printf("%s%s", slash + 1, sb_str_ends(slash, "/") ? "" : "/") :
		strdup("");
	if (!s->prefix)
		r = sb_fail(err, SB_E_NOMEM, "cold store");
	else
		r = sb_coldstore_check_key(s->prefix, true, err);
	o.bucket = name;
	o.log = *log;
	if (r == 0) {
		s->s3 = sb_s3_new(&o, err);
		r = s->s3 ? 0 : SB_E_INVAL;
	}
	probe = r == 0 ? full(s, PROBE, false, err) : NULL;
	if (r == 0)
		r = probe ? sb_s3_probe(s->s3, probe, &wait, err) : SB_E_NOMEM;
	if (r == 0)
		return &s->st;
	(void)sb_wrap(err, r, "cold store %s", url);
	s3_close(&s->st);
	return NULL;
}
