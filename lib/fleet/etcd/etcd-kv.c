/* SPDX-License-Identifier: MIT */
/* Keys of etcd: read, listed, counted, changed by transactions. */
#include "config.h"

#include "etcd-priv.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define TXN_MAX 128
#define PAGE 1000

struct one {
	struct sb_buf *out;
	struct sb_etcd_kv *kv;
};

static int
keep_one(const struct sb_etcd_kv *kv, void *arg, struct sb_error *err)
{
	struct one *o = arg;

	if (o->out)
		sb_buf_add(o->out, kv->value, kv->len);
	if (o->kv) {
		*o->kv = *kv;
		o->kv->key = NULL;
		o->kv->value = NULL;
	}
	return o->out ? sb_buf_check(o->out, "value", err) : 0;
}

int
sb_etcd_get(struct sb_etcd *e, const char *key, struct sb_buf *out, struct sb_etcd_kv *kv,
	const struct sb_cancel *cancel, struct sb_error *err)
{
	json_t *answer;
	const json_t *kvs;
	struct one o = { .out = out, .kv = kv };
	int r;

	r = sb_etcd_call(e, "/v3/kv/range", json_pack("{s:o}", "key", sb_etcd_text(key)), true,
		cancel, &answer, err);
	if (r < 0)
		return r;
	kvs = json_object_get(answer, "kvs");
	if (json_array_size(kvs) == 0)
		r = sb_fail(err, SB_E_NOTFOUND, "etcd has no key %s", key);
	else
		r = sb_etcd_kv_take(json_array_get(kvs, 0), keep_one, &o, err);
	json_decref(answer);
	return r;
}

/* A list under way. */
struct paging {
	sb_etcd_kv_fn fn;
	void *arg;
	struct sb_buf last; /* the key that came last */
	int64_t rev;
};

static int
take_listed(const struct sb_etcd_kv *kv, void *arg, struct sb_error *err)
{
	struct paging *p = arg;

	sb_buf_reset(&p->last);
	sb_buf_add(&p->last, kv->key, strlen(kv->key) + 1);
	if (sb_buf_check(&p->last, "key", err) < 0)
		return SB_E_NOMEM;
	return p->fn(kv, p->arg, err);
}

/* One page from `from` (its bytes) on; 1 when there are more. */
static int
list_page(struct sb_etcd *e, const char *prefix, struct paging *p, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	json_t *from = p->last.len > 0 ? sb_etcd_bytes(p->last.data, p->last.len) :
					 sb_etcd_start_of(prefix);
	json_t *answer;
	const json_t *kvs;
	int r;

	/* The key that came last, with a NUL behind it, is the first one that can come next. */
	r = sb_etcd_call(e, "/v3/kv/range",
		json_pack("{s:o, s:o, s:i, s:I}", "key", from, "range_end", sb_etcd_end_of(prefix),
			"limit", PAGE, "revision", (json_int_t)p->rev),
		true, cancel, &answer, err);
	if (r < 0)
		return r;
	if (p->rev == 0 && !sb_etcd_revision(answer, &p->rev))
		r = sb_fail(err, SB_E_PROTO, "etcd: an answer without a revision");
	kvs = json_object_get(answer, "kvs");
	for (size_t i = 0; r == 0 && i < json_array_size(kvs); i++)
		r = sb_etcd_kv_take(json_array_get(kvs, i), take_listed, p, err);
	if (r == 0 && json_is_true(json_object_get(answer, "more")))
		r = json_array_size(kvs) > 0 ?
			1 :
			sb_fail(err, SB_E_PROTO, "etcd: an empty page in a list");
	json_decref(answer);
	return r;
}

int
sb_etcd_list(struct sb_etcd *e, const char *prefix, sb_etcd_kv_fn fn, void *arg, int64_t *rev,
	const struct sb_cancel *cancel, struct sb_error *err)
{
	struct paging p = { .fn = fn, .arg = arg };
	int r;

	sb_buf_init(&p.last, ANSWER_MAX);
	do
		r = list_page(e, prefix, &p, cancel, err);
	while (r > 0);
	sb_buf_free(&p.last);
	if (r == 0 && rev)
		*rev = p.rev;
	return r;
}

int
sb_etcd_count(struct sb_etcd *e, const char *prefix, int64_t *n, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	json_t *answer;
	int r;

	r = sb_etcd_call(e, "/v3/kv/range",
		json_pack("{s:o, s:o, s:b}", "key", sb_etcd_start_of(prefix), "range_end",
			sb_etcd_end_of(prefix), "count_only", 1),
		true, cancel, &answer, err);
	if (r < 0)
		return r;
	if (!sb_etcd_number(answer, "count", n))
		r = sb_fail(err, SB_E_PROTO, "etcd: a damaged count");
	json_decref(answer);
	return r;
}

static json_t *
conditions(const struct sb_etcd_if *ifs, size_t n)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *one = json_pack("{s:o, s:s, s:s, s:I}", "key", sb_etcd_text(ifs[i].key),
			"target", "MOD", "result", "EQUAL", "mod_revision",
			(json_int_t)ifs[i].mod_rev);

		/* With no memory the array stays shorter, which the caller sees. */
		(void)json_array_append_new(all, one);
	}
	return all;
}

static json_t *
changes(const struct sb_etcd_do *dos, size_t n)
{
	json_t *all = json_array();

	for (size_t i = 0; i < n; i++) {
		json_t *key = sb_etcd_text(dos[i].key), *one;

		if (!dos[i].value)
			one = json_pack("{s:{s:o}}", "request_delete_range", "key", key);
		else
			one = json_pack("{s:{s:o, s:o, s:I}}", "request_put", "key", key, "value",
				sb_etcd_bytes(dos[i].value, dos[i].len), "lease",
				(json_int_t)dos[i].lease);
		(void)json_array_append_new(all, one);
	}
	return all;
}

int
sb_etcd_txn(struct sb_etcd *e, const struct sb_etcd_if *ifs, size_t n_ifs,
	const struct sb_etcd_do *dos, size_t n_dos, int64_t *rev, const struct sb_cancel *cancel,
	struct sb_error *err)
{
	json_t *compare = conditions(ifs, n_ifs), *success = changes(dos, n_dos), *answer;
	int64_t at;
	int r;

	assert(n_ifs <= TXN_MAX && n_dos <= TXN_MAX);
	if (json_array_size(compare) != n_ifs || json_array_size(success) != n_dos) {
		json_decref(compare);
		json_decref(success);
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	r = sb_etcd_call(e, "/v3/kv/txn",
		json_pack("{s:o, s:o}", "compare", compare, "success", success), false, cancel,
		&answer, err);
	if (r < 0)
		return r;
	/* What is false is left out. */
	r = json_is_true(json_object_get(answer, "succeeded"));
	if (!sb_etcd_revision(answer, &at))
		r = sb_fail(err, SB_E_PROTO, "etcd: an answer without a revision");
	else if (r && rev)
		*rev = at;
	json_decref(answer);
	return r;
}
