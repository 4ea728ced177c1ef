/* SPDX-License-Identifier: MIT */
/* The control plane: forks and snapshots of sandboxes, and the host's base images. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

#define PAGE_MAX 200

/* What a fork has of its source. */
static void
inherit(json_t *rec, const json_t *from)
{
	static const char *const names[] = { "snapshot", "env", "user", "target", "public",
		"networkBlockAll", "networkAllowList", "domainAllowList", "autoStopInterval",
		"autoPauseInterval", "autoArchiveInterval", "autoDeleteInterval", NULL };

	for (size_t i = 0; names[i]; i++)
		if (json_object_get(from, names[i]))
			(void)json_object_set_new(rec, names[i],
				json_deep_copy(json_object_get(from, names[i])));
	sb_daytona_set(rec, "parent", sb_daytona_text(from, "id"));
}

/* A session forked from it, of that kind. NULL: error. */
static json_t *
fork_it(struct sb_daytona *d, const json_t *from, const char *kind, const char *name,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;
	json_t *rec = sb_daytona_record_new(kind, err);

	if (!rec)
		return NULL;
	inherit(rec, from);
	if (*name)
		sb_daytona_set(rec, "name", name);
	if (sb_daytona_life_create(d, rec, &o, sb_daytona_text(from, "id"), call, err) == 0)
		return rec;
	json_decref(rec);
	return NULL;
}

/* What a storage without snapshots cannot is the class of sandbox to the vendor. */
static int
refuse(struct sb_rpc_call *call, struct sb_error *err)
{
	if (err->code == SB_E_NO_SNAPSHOTS || err->code == SB_E_UNSUPPORTED)
		return sb_daytona_refuse(call, 422, "%s", err->msg);
	return err->code;
}

/* A name in the body, and the sandbox of the path. 1: answered. */
static int
read_name(struct sb_rpc_call *call, const struct sb_query *q, unsigned flags, json_t **rec,
	char **name, struct sb_error *err)
{
	json_t *in = sb_answer_body(call, err);
	struct sb_rpc_fields f;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	*name = strdup(sb_rpc_field_str(&f, "name", 255, flags));
	if (sb_rpc_field_bool(&f, "includeMemory"))
		sb_rpc_field_bad(&f, "includeMemory",
			"cannot be: snapshots of this host have files only");
	r = sb_rpc_fields_check(&f, err);
	json_decref(in);
	if (r == 0 && !*name)
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	if (r < 0)
		return r;
	*rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	return *rec ? 0 : 1;
}

static int
fork_sandbox(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	json_t *from = NULL, *rec;
	sb_autofree char *name = NULL;
	int r = read_name(call, q, 0, &from, &name, err);

	if (r != 0)
		return r < 0 ? r : 0;
	rec = fork_it(d, from, "sandbox", name, &limits, err);
	r = rec ? sb_daytona_show_answer(call, rec, err) : refuse(call, err);
	json_decref(rec);
	json_decref(from);
	return r;
}

static int
take(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	json_t *from = NULL, *rec;
	sb_autofree char *name = NULL;
	int r = read_name(call, q, SB_RPC_REQUIRED, &from, &name, err);

	if (r != 0)
		return r < 0 ? r : 0;
	rec = fork_it(d, from, "snapshot", name, &limits, err);
	/* Nobody works in it. */
	if (rec)
		(void)sb_host_session_halt(d->host, sb_daytona_text(rec, "id"), &limits, NULL);
	r = rec ? sb_daytona_show_answer(call, from, err) : refuse(call, err);
	json_decref(rec);
	json_decref(from);
	return r;
}

/* `rec`: NULL for a base image of the host, `name`. */
static json_t *
show(struct sb_daytona *d, const json_t *rec, const char *name)
{
	int64_t made = rec ? sb_daytona_number(rec, "createdNs") : 0;
	struct sb_host_session s = { 0 };
	json_t *o;

	if (rec)
		(void)sb_host_session_get(d->host, sb_daytona_text(rec, "id"), false, &s, NULL);
	o = json_pack("{s:s, s:o, s:b, s:s, s:f, s:n, s:i, s:i, s:f, s:i, s:n, s:o, s:o, s:n}",
		"id", rec ? sb_daytona_text(rec, "id") : name, "name", sb_answer_text(name),
		"general", rec == NULL, "state", "active", "size", (double)s.space_used / (1 << 30),
		"entrypoint", "cpu", (int)sb_daytona_show_cpus(d), "gpu", 0, "mem",
		(double)sb_daytona_show_mem_mb(d) / 1024, "disk", 0, "errorReason", "createdAt",
		sb_answer_time(made), "updatedAt", sb_answer_time(made), "lastUsedAt");
	if (rec)
		(void)json_object_set_new(o, "organizationId",
			json_string(SB_DAYTONA_ORGANIZATION));
	sb_host_session_clear(&s);
	return o;
}

static json_t *
all(struct sb_daytona *d, const char *like)
{
	sb_auto(sb_strlist) struct sb_strlist bases = { 0 };
	json_t *out = json_array();
	size_t n;
	json_t **v = sb_records_all(d->records, &n);

	for (size_t i = 0; v && i < n; i++) {
		const char *name = sb_daytona_text(v[i], "name");

		if (strcmp(sb_daytona_text(v[i], "kind"), "snapshot") == 0 &&
			(!like || strstr(name, like)))
			(void)json_array_append_new(out, show(d, v[i], name));
		json_decref(v[i]);
	}
	free(v);
	if (sb_host_base_list(d->host, &bases, NULL) == 0)
		for (size_t i = 0; i < bases.n; i++)
			if (!like || strstr(bases.v[i], like))
				(void)json_array_append_new(out, show(d, NULL, bases.v[i]));
	return out;
}

static int
list(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	const char *page_text = sb_query_get(q, "page"), *limit_text = sb_query_get(q, "limit");
	json_t *v, *items;
	int64_t page = 1, limit = 100, n;

	if ((page_text && !sb_str_to_i64(page_text, 1, 1000000, &page)) ||
		(limit_text && !sb_str_to_i64(limit_text, 1, PAGE_MAX, &limit)))
		return sb_daytona_refuse(call, 400, "page must be from 1 on and limit from 1 to %d",
			PAGE_MAX);
	v = all(sb_rpc_call_arg(call), sb_query_get(q, "name"));
	items = json_array();
	n = (int64_t)json_array_size(v);
	for (int64_t i = (page - 1) * limit; i < n && i < page * limit; i++)
		(void)json_array_append(items, json_array_get(v, (size_t)i));
	json_decref(v);
	return sb_answer_json(call, 200,
		json_pack("{s:o, s:I, s:I, s:I}", "items", items, "total", (json_int_t)n, "page",
			(json_int_t)page, "totalPages", (json_int_t)((n + limit - 1) / limit)),
		err);
}

static int
get(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *v = all(sb_rpc_call_arg(call), NULL), *one, *found = NULL;
	const char *want = q->segments.v[1];
	size_t i;
	int r;

	json_array_foreach(v, i, one) if (strcmp(sb_daytona_text(one, "id"), want) == 0 ||
		strcmp(sb_daytona_text(one, "name"), want) == 0) found = one;
	r = found ? sb_answer_json(call, 200, json_incref(found), err) :
		    sb_daytona_refuse(call, 404, "Snapshot with ID or name %.100s not found", want);
	json_decref(v);
	return r;
}

static int
delete_it(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	json_t *rec = sb_daytona_record_find(d, "snapshot", q->segments.v[1]);
	int r;

	if (!rec)
		return sb_daytona_refuse(call, 404, "Snapshot with ID or name %.100s not found",
			q->segments.v[1]);
	r = sb_host_session_destroy(d->host, sb_daytona_text(rec, "id"), true, &limits, err);
	if (r == 0 || r == SB_E_SESSION_NOT_FOUND) {
		sb_daytona_record_drop(d, sb_daytona_text(rec, "id"));
		sb_rpc_http_reply(call, 200, NULL, NULL, 0);
		r = 0;
	}
	json_decref(rec);
	return r;
}

static int
no_images(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)q;
	(void)err;
	return sb_daytona_refuse(call, 501,
		"this host builds no images: take a snapshot of a sandbox, or see --bases-dir");
}

static int
forks(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]), *out, **v;
	char base[SB_DAYTONA_BASE_MAX];
	size_t n;

	if (!rec)
		return 0;
	sb_daytona_base(call, base);
	out = json_array();
	v = sb_records_all(d->records, &n);
	for (size_t i = 0; v && i < n; i++) {
		if (strcmp(sb_daytona_text(v[i], "kind"), "sandbox") == 0 &&
			strcmp(sb_daytona_text(v[i], "parent"), sb_daytona_text(rec, "id")) == 0)
			(void)json_array_append_new(out, sb_daytona_show(d, v[i], base, false));
		json_decref(v[i]);
	}
	free(v);
	json_decref(rec);
	return sb_answer_json(call, 200, out, err);
}

/* What it was forked from: the last one, or all of them, nearest first. */
static int
parents(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	bool one = strcmp(q->segments.v[2], "parent") == 0;
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]), *out;
	char base[SB_DAYTONA_BASE_MAX];
	int r;

	if (!rec)
		return 0;
	sb_daytona_base(call, base);
	out = json_array();
	while (rec && *sb_daytona_text(rec, "parent")) {
		json_t *up = sb_daytona_record_find(d, "sandbox", sb_daytona_text(rec, "parent"));

		json_decref(rec);
		rec = up;
		if (rec)
			(void)json_array_append_new(out, sb_daytona_show(d, rec, base, false));
	}
	json_decref(rec);
	if (one)
		r = json_array_size(out) ?
			sb_answer_json(call, 200, json_incref(json_array_get(out, 0)), err) :
			sb_daytona_refuse(call, 404, "Sandbox has no parent");
	else
		r = sb_answer_json(call, 200, json_incref(out), err);
	json_decref(out);
	return r;
}

#define ROUTE(verb, path, run, body) \
	{ \
		verb, path, run, SB_RPC_HTTP_##body, 0, NULL \
	}
const struct sb_daytona_route sb_daytona_snapshot_routes[] = {
	ROUTE("POST", "/sandbox/*/fork", fork_sandbox, WHOLE),
	ROUTE("POST", "/sandbox/*/snapshot", take, WHOLE),
	ROUTE("GET", "/sandbox/*/forks", forks, NO_BODY),
	ROUTE("GET", "/sandbox/*/parent", parents, NO_BODY),
	ROUTE("GET", "/sandbox/*/ancestors", parents, NO_BODY),
	ROUTE("GET", "/snapshots", list, NO_BODY),
	ROUTE("POST", "/snapshots", no_images, WHOLE),
	ROUTE("GET", "/snapshots/*", get, NO_BODY),
	ROUTE("DELETE", "/snapshots/*", delete_it, NO_BODY),
	ROUTE("POST", "/snapshots/*/activate", no_images, NO_BODY),
	ROUTE("POST", "/snapshots/*/deactivate", no_images, NO_BODY),
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
