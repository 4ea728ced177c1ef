/* SPDX-License-Identifier: MIT */
/* Lists of sandboxes: by labels, states and more, page by page. */
#include "config.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>

/* What a list is to have. */
struct filter {
	const struct sb_query *q;
	json_t *labels; /* NULL: any */
	const char *sort;
	bool ascending;
	int64_t limit;
};

/* A sandbox with what it is sorted by. */
struct item {
	json_t *rec, *shown;
	char key[300];
};

/* A number or a time of the query; false: it is none. */
static bool
bound(const char *text, bool time, double *out)
{
	char *end;
	struct tm tm = { 0 };

	if (time) {
		end = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
		if (!end)
			return false;
		*out = (double)timegm(&tm) + (*end == '.' ? strtod(end, NULL) : 0);
		return true;
	}
	*out = strtod(text, &end);
	return end != text && *end == '\0' && isfinite(*out);
}

/* The bounds that a list can have: the parameter, what it is about, whether it is the highest. */
static const struct range {
	const char *param, *member;
	bool time, most;
} ranges[] = { { "minCpu", "cpu", false, false }, { "maxCpu", "cpu", false, true },
	{ "minMemoryGiB", "memory", false, false }, { "maxMemoryGiB", "memory", false, true },
	{ "minDiskGiB", "disk", false, false }, { "maxDiskGiB", "disk", false, true },
	{ "createdAtAfter", "createdNs", true, false },
	{ "createdAtBefore", "createdNs", true, true },
	{ "lastEventAfter", "updatedNs", true, false },
	{ "lastEventBefore", "updatedNs", true, true } };

static int
read_filter(const struct sb_query *q, struct filter *f, struct sb_error *err)
{
	const char *labels = sb_query_get(q, "labels"), *limit = sb_query_get(q, "limit"),
		   *order = sb_query_get(q, "order"), *sort = sb_query_get(q, "sort");
	double any;

	*f = (struct filter){ .q = q, .limit = 100, .sort = sort ? sort : "createdAt" };
	f->ascending = order && strcmp(order, "asc") == 0;
	if (limit && !sb_str_to_i64(limit, 1, 200, &f->limit))
		return sb_fail(err, SB_E_INVAL, "limit must be from 1 to 200");
	if (order && strcmp(order, "asc") != 0 && strcmp(order, "desc") != 0)
		return sb_fail(err, SB_E_INVAL, "order must be asc or desc");
	if (strcmp(f->sort, "name") != 0 && strcmp(f->sort, "createdAt") != 0 &&
		strcmp(f->sort, "updatedAt") != 0 && strcmp(f->sort, "lastActivityAt") != 0)
		return sb_fail(err, SB_E_INVAL,
			"sort must be name, createdAt, updatedAt or lastActivityAt");
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
		const char *text = sb_query_get(q, ranges[i].param);

		if (text && !bound(text, ranges[i].time, &any))
			return sb_fail(err, SB_E_INVAL, "%s cannot be read", ranges[i].param);
	}
	if (labels && !(f->labels = sb_rpc_json_parse(labels, strlen(labels), NULL)))
		return sb_fail(err, SB_E_INVAL, "labels must be a JSON object");
	return 0;
}

/* Whether a parameter that may be there several times, or with commas, has that value. */
static bool
among(const struct sb_query *q, const char *param, const char *value)
{
	bool asked = false;
	size_t len = strlen(value);

	for (size_t i = 0; i + 1 < q->pairs.n; i += 2) {
		const char *p = q->pairs.v[i + 1];

		if (strcmp(q->pairs.v[i], param) != 0)
			continue;
		asked = true;
		for (; *p; p += strcspn(p, ",") + (p[strcspn(p, ",")] == ','))
			if (strcspn(p, ",") == len && strncmp(p, value, len) == 0)
				return true;
	}
	return !asked;
}

static bool
in_ranges(const struct filter *f, const struct item *it)
{
	for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++) {
		const char *text = sb_query_get(f->q, ranges[i].param);
		double want, is;

		if (!text || !bound(text, ranges[i].time, &want))
			continue;
		is = ranges[i].time ?
			(double)sb_daytona_number(it->rec, ranges[i].member) / 1e9 :
			json_number_value(json_object_get(it->shown, ranges[i].member));
		if (ranges[i].most ? is > want : is < want)
			return false;
	}
	return true;
}

static bool
is_bool(const struct filter *f, const char *param, bool is)
{
	const char *want = sb_query_get(f->q, param);

	return !want || (strcmp(want, "true") == 0) == is;
}

static bool
wanted(const struct filter *f, const struct item *it)
{
	const json_t *labels = json_object_get(it->shown, "labels"), *value;
	const char *id = sb_query_get(f->q, "id"), *name = sb_query_get(f->q, "name"), *key;
	const char *state = sb_daytona_text(it->shown, "state");

	if (strcmp(state, "destroyed") == 0 || strcmp(state, "destroying") == 0)
		return false;
	if ((id && !sb_str_starts(sb_daytona_text(it->rec, "id"), id)) ||
		(name && !sb_str_starts(sb_daytona_text(it->rec, "name"), name)))
		return false;
	if (!among(f->q, "states", state) ||
		!among(f->q, "snapshots", sb_daytona_text(it->rec, "snapshot")) ||
		!among(f->q, "regionIds", sb_daytona_text(it->rec, "target")) ||
		!among(f->q, "regions", sb_daytona_text(it->rec, "target")) ||
		!among(f->q, "sandboxClasses", "container"))
		return false;
	if (!is_bool(f, "isPublic", json_is_true(json_object_get(it->rec, "public"))) ||
		!is_bool(f, "isRecoverable", false))
		return false;
	json_object_foreach(f->labels, key,
		value) if (!json_equal(json_object_get(labels, key), value)) return false;
	return in_ranges(f, it);
}

static void
set_key(struct item *it, const struct filter *f)
{
	const char *id = sb_daytona_text(it->rec, "id");

	if (strcmp(f->sort, "name") == 0)
		(void)snprintf(it->key, sizeof it->key, "%.255s/%s",
			sb_daytona_text(it->rec, "name"), id);
	else
		(void)snprintf(it->key, sizeof it->key, "%s/%s",
			sb_daytona_text(it->shown,
				strcmp(f->sort, "createdAt") == 0         ? "createdAt" :
					strcmp(f->sort, "updatedAt") == 0 ? "updatedAt" :
									    "lastActivityAt"),
			id);
}

static int
by_key(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->key, ((const struct item *)b)->key);
}

/* All that are wanted, in order. */
static struct item *
collect(struct sb_rpc_call *call, const struct filter *f, bool listed, size_t *out_n)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	char base[SB_DAYTONA_BASE_MAX];
	size_t n, k = 0;
	json_t **v = sb_records_all(d->records, &n);
	struct item *it = v ? calloc(n + 1, sizeof *it) : NULL;

	sb_daytona_base(call, base);
	for (size_t i = 0; v && i < n; i++) {
		if (it && strcmp(sb_daytona_text(v[i], "kind"), "sandbox") == 0) {
			it[k] = (struct item){ .rec = v[i],
				.shown = sb_daytona_show(d, v[i], base, listed) };
			if (wanted(f, &it[k])) {
				set_key(&it[k++], f);
				continue;
			}
			json_decref(it[k].shown);
		}
		json_decref(v[i]);
	}
	free(v);
	if (it)
		qsort(it, k, sizeof *it, by_key);
	for (size_t i = 0; it && !f->ascending && i < k / 2; i++) {
		struct item x = it[i];

		it[i] = it[k - 1 - i];
		it[k - 1 - i] = x;
	}
	*out_n = k;
	return it;
}

static void
items_free(struct item *it, size_t n)
{
	for (size_t i = 0; it && i < n; i++) {
		json_decref(it[i].rec);
		json_decref(it[i].shown);
	}
	free(it);
}

static int
list(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	const char *cursor = sb_query_get(q, "cursor"), *last = NULL;
	json_t *items = json_array(), *next = NULL;
	struct item *it = NULL;
	struct filter f;
	size_t n = 0;
	int r = read_filter(q, &f, err);

	if (r == 0)
		it = collect(call, &f, true, &n);
	for (size_t i = 0; it && i < n && !next; i++) {
		/* The one that the cursor names may have gone meanwhile. */
		int c = cursor ? strcmp(it[i].key, cursor) : f.ascending ? 1 : -1;

		if (f.ascending ? c <= 0 : c >= 0)
			continue;
		if ((int64_t)json_array_size(items) == f.limit)
			next = json_string(last);
		else
			(void)json_array_append(items, it[i].shown);
		last = it[i].key;
	}
	if (r == 0)
		r = sb_answer_json(call, 200,
			json_pack("{s:O, s:o}", "items", items, "nextCursor",
				next ? next : json_null()),
			err);
	items_free(it, n);
	json_decref(items);
	json_decref(f.labels);
	return r;
}

/* The older list: pages by number, with the whole records. */
static int
list_pages(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	const char *text = sb_query_get(q, "page");
	json_t *items = json_array();
	struct item *it = NULL;
	struct filter f;
	int64_t page = 1;
	size_t n = 0;
	int r = read_filter(q, &f, err);

	if (r == 0 && text && !sb_str_to_i64(text, 1, 1000000, &page))
		r = sb_fail(err, SB_E_INVAL, "page must be from 1 to 1000000");
	if (r == 0)
		it = collect(call, &f, false, &n);
	for (size_t i = (size_t)((page - 1) * f.limit); it && i < n && (int64_t)i < page * f.limit;
		i++)
		(void)json_array_append(items, it[i].shown);
	if (r == 0)
		r = sb_answer_json(call, 200,
			json_pack("{s:O, s:I, s:I, s:I}", "items", items, "total", (json_int_t)n,
				"page", (json_int_t)page, "totalPages",
				(json_int_t)(((int64_t)n + f.limit - 1) / f.limit)),
			err);
	items_free(it, n);
	json_decref(items);
	json_decref(f.labels);
	return r;
}

const struct sb_daytona_route sb_daytona_list_routes[] = {
	{ "GET", "/sandbox", list, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ "GET", "/sandbox/paginated", list_pages, SB_RPC_HTTP_NO_BODY, 0, NULL },
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
