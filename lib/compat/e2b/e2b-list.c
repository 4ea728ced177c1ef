/* SPDX-License-Identifier: MIT */
/* Lists of sandboxes: by metadata, state and template, page by page. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <compat/e2b/e2b-priv.h>

/* What a list is to have. */
struct filter {
	struct sb_query meta;
	bool running, paused;
	const char *template;
	bool ascending;
	const char *after; /* NANOSECONDS-ID of the last one */
	int64_t limit;
};

/* The metadata is a form, whose names and values are escaped once more. */
static int
read_filter(const struct sb_query *q, struct filter *f, struct sb_error *err)
{
	const char *meta = sb_query_get(q, "metadata"), *state = sb_query_get(q, "state"),
		   *limit = sb_query_get(q, "limit"), *order = sb_query_get(q, "order");
	int r = 0;

	*f = (struct filter){ .limit = 100, .template = sb_query_get(q, "template") };
	if (meta)
		r = sb_query_form(meta, &f->meta, err);
	for (size_t i = 0; r == 0 && i < f->meta.pairs.n; i++) {
		sb_auto(sb_buf) struct sb_buf b;

		sb_buf_init(&b, strlen(f->meta.pairs.v[i]));
		r = sb_query_decode(f->meta.pairs.v[i], strlen(f->meta.pairs.v[i]), false, &b, err);
		/* Never longer than before. */
		if (r == 0)
			memcpy(f->meta.pairs.v[i], b.data, b.len + 1);
	}
	f->running = !state || strstr(state, "running");
	f->paused = !state || strstr(state, "paused");
	f->ascending = order && strcmp(order, "asc") == 0;
	f->after = sb_query_get(q, "nextToken");
	if (r == 0 && limit && !sb_str_to_i64(limit, 1, 1000, &f->limit))
		r = sb_fail(err, SB_E_INVAL, "limit must be from 1 to 1000");
	return r;
}

static bool
wanted(const struct filter *f, const struct sb_e2b_record *r, const struct sb_host_session *s)
{
	if (sb_e2b_sandbox_paused(s) ? !f->paused : !f->running)
		return false;
	if (f->template && strcmp(f->template, r->template) != 0)
		return false;
	for (size_t i = 0; i + 1 < f->meta.pairs.n; i += 2) {
		bool has = false;

		for (size_t k = 0; k < s->n_labels; k++)
			has |= strcmp(s->labels[k].key, f->meta.pairs.v[i]) == 0 &&
				strcmp(s->labels[k].value, f->meta.pairs.v[i + 1]) == 0;
		if (!has)
			return false;
	}
	return true;
}

static int
by_start(const void *a, const void *b)
{
	const struct sb_e2b_record *x = *(struct sb_e2b_record *const *)a,
				   *y = *(struct sb_e2b_record *const *)b;

	if (x->started_ns != y->started_ns)
		return x->started_ns < y->started_ns ? -1 : 1;
	return strcmp(x->id, y->id);
}

static int
list_by(struct sb_rpc_call *call, struct filter *f, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	json_t *out = json_array();
	char token[64] = "";
	bool more = false, past = !f->after;
	size_t n;
	struct sb_e2b_record **v = sb_e2b_record_all(e, false, &n);

	qsort(v, v ? n : 0, sizeof(*v), by_start);
	for (size_t k = 0; v && k < n; k++) {
		struct sb_e2b_record *r = v[f->ascending ? k : n - 1 - k];
		struct sb_host_session s;
		char mine[64];

		(void)snprintf(mine, sizeof mine, "%lld-%s", (long long)r->started_ns, r->id);
		if (!past) {
			/* Also when the last one has gone meanwhile. */
			int64_t at = strtoll(f->after, NULL, 10);

			past = strcmp(mine, f->after) == 0;
			if (past || (f->ascending ? r->started_ns <= at : r->started_ns >= at))
				continue;
			past = true;
		}
		if (sb_host_session_get(e->host, r->id, false, &s, NULL) < 0)
			continue;
		if (s.state != SB_HOST_DESTROYING && wanted(f, r, &s)) {
			more = (int64_t)json_array_size(out) == f->limit;
			if (!more) {
				(void)json_array_append_new(out,
					sb_e2b_sandbox_json(e, r, &s, true));
				memcpy(token, mine, sizeof token);
			}
		}
		sb_host_session_clear(&s);
		if (more)
			break;
	}
	for (size_t i = 0; v && i < n; i++)
		sb_e2b_record_free(v[i]);
	free(v);
	if (more)
		sb_rpc_http_add_header(call, "X-Next-Token", token);
	return sb_answer_json(call, 200, out, err);
}

int
sb_e2b_list_v2(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct filter f;
	int r = read_filter(q, &f, err);

	if (r == 0)
		r = list_by(call, &f, err);
	sb_query_free(&f.meta);
	return r;
}

/* The older list has those that run, all of them. */
int
sb_e2b_list_v1(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct filter f;
	int r = read_filter(q, &f, err);

	f.paused = false;
	f.limit = INT64_MAX;
	if (r == 0)
		r = list_by(call, &f, err);
	sb_query_free(&f.meta);
	return r;
}
