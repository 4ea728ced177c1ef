/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/e2b/e2bapi.h>

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <cloud/http/json.h>

#define ENVD_PORT "49983"
#define ID_MAX 64

struct sb_e2bapi {
	struct sb_rest *rest;
	char *sandbox_url, *domain;
};

struct sb_e2bapi *
sb_e2bapi_new(const struct sb_e2bapi_opts *given, struct sb_error *err)
{
	struct sb_e2bapi_opts o = SB_E2BAPI_OPTS_INIT;
	struct sb_rest_opts ro = SB_REST_OPTS_INIT;
	struct sb_e2bapi *a = calloc(1, sizeof *a);
	sb_autofree char *url = NULL;
	struct sb_rest_header key = { "X-API-Key", NULL, true };
	bool ok;

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	ok = a != NULL;
	if (ok) {
		a->domain = strdup(o.domain ? o.domain : SB_E2BAPI_DOMAIN);
		a->sandbox_url = o.sandbox_url ? strdup(o.sandbox_url) : NULL;
		ok = a->domain && (a->sandbox_url || !o.sandbox_url);
	}
	if (ok)
		url = o.api_url ? strdup(o.api_url) : sb_str_printf("https://api.%s", a->domain);
	if (!ok || !url) {
		sb_e2bapi_free(a);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	key.value = o.key;
	ro.base = url;
	ro.ca_file = o.ca_file;
	ro.headers = &key;
	ro.n_headers = 1;
	ro.log = o.log;
	a->rest = sb_rest_new(&ro, err);
	if (a->rest)
		return a;
	sb_e2bapi_free(a);
	return NULL;
}

void
sb_e2bapi_free(struct sb_e2bapi *a)
{
	if (!a)
		return;
	sb_rest_free(a->rest);
	free(a->sandbox_url);
	free(a->domain);
	free(a);
}

void
sb_e2bapi_box_free(struct sb_e2bapi_box *b)
{
	if (b->token)
		explicit_bzero(b->token, strlen(b->token));
	free(b->id);
	free(b->token);
	free(b->url);
	*b = (struct sb_e2bapi_box){ 0 };
}

/* One request with its error; takes `in`. */
static int
ask(struct sb_e2bapi *a, const char *method, const char *target, json_t *in,
	enum sb_rest_again again, const struct sb_rest_wait *wait, struct sb_rest_answer *out,
	struct sb_error *err)
{
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct sb_error why = { 0 };
	int r;

	q.method = method;
	q.target = target;
	q.json = in;
	q.again = again;
	q.secret = true; /* answers have tokens */
	r = sb_rest_call(a->rest, &q, wait, out, err);
	json_decref(in);
	if (r < 0)
		return r;
	r = sb_rest_check(out, sb_rest_name(a->rest), &why);
	if (r == SB_E_AUTH || r == SB_E_DENIED)
		return sb_fail(err, r, "%s (is the key right, and of this account?)", why.msg);
	if (r == SB_E_NOTFOUND)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SANDBOX_NOT_FOUND), why.msg);
	if (r < 0 && err)
		*err = why;
	return r;
}

/* A new target of the sandbox, or NULL. */
static char *
target_of(const char *id, const char *what)
{
	struct sb_buf b;
	size_t len;

	sb_buf_init(&b, 4096);
	sb_buf_add_str(&b, "/sandboxes");
	sb_rest_add_segment(&b, id);
	sb_buf_add_str(&b, what);
	if (b.failed) {
		sb_buf_free(&b);
		return NULL;
	}
	return (char *)sb_buf_detach(&b, &len);
}

static int
ask_about(struct sb_e2bapi *a, const char *method, const char *id, const char *what, json_t *in,
	enum sb_rest_again again, const struct sb_rest_wait *wait, struct sb_rest_answer *out,
	struct sb_error *err)
{
	sb_autofree char *target = target_of(id, what);

	if (target)
		return ask(a, method, target, in, again, wait, out, err);
	json_decref(in);
	return sb_fail(err, SB_E_NOMEM, "out of memory");
}

/* Ids go into addresses and files: the vendor's have letters and digits. */
static bool
good_id(const char *id)
{
	size_t n = id ? strspn(id,
				"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				"0123456789-_") :
			0;

	return n > 0 && n <= ID_MAX && !id[n];
}

static bool
good_domain(const char *d)
{
	size_t n = strspn(d, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-.:");

	return n > 0 && n <= 253 && !d[n];
}

static int
take_box(const struct sb_e2bapi *a, const struct sb_rest_answer *answer, struct sb_e2bapi_box *out,
	struct sb_error *err)
{
	json_t *v = sb_rest_json(answer, sb_rest_name(a->rest), err);
	const char *id = sb_json_get(v, "sandboxID"), *domain = sb_json_get(v, "domain"),
		   *token = sb_json_get(v, "envdAccessToken");
	struct sb_e2bapi_box b = { 0 };
	int r = 0;

	if (!v)
		return SB_E_PROTO;
	domain = domain && *domain ? domain : a->domain;
	if (!good_id(id) || !good_domain(domain))
		r = sb_fail(err, SB_E_PROTO, "%s: the answer has no sandbox",
			sb_rest_name(a->rest));
	if (r == 0) {
		b.id = strdup(id);
		b.token = token && *token ? strdup(token) : NULL;
		b.url = a->sandbox_url ? strdup(a->sandbox_url) :
					 sb_str_printf("https://" ENVD_PORT "-%s.%s", id, domain);
		if (!b.id || !b.url || (token && *token && !b.token))
			r = sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	json_decref(v);
	if (r < 0)
		sb_e2bapi_box_free(&b);
	else
		*out = b;
	return r;
}

static json_t *
pairs_json(const char *const *v)
{
	json_t *o = json_object();

	for (; v && *v; v++) {
		const char *eq = strchr(*v, '=');

		if (eq)
			(void)json_object_setn_new(o, *v, (size_t)(eq - *v), json_string(eq + 1));
	}
	return o;
}

static json_t *
texts_json(const char *const *v)
{
	json_t *a = json_array();

	for (; v && *v; v++)
		(void)json_array_append_new(a, json_string(*v));
	return a;
}

int
sb_e2bapi_create(struct sb_e2bapi *a, const struct sb_e2bapi_wish *w,
	const struct sb_rest_wait *wait, struct sb_e2bapi_box *out, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };
	/* Its time over must never throw work away. */
	json_t *in = json_pack("{s:s, s:I, s:o, s:b, s:b, s:b}", "templateID", w->template,
		"timeout", (json_int_t)w->timeout_s, "metadata", pairs_json(w->metadata), "secure",
		1, "autoPause", 1, "allow_internet_access", w->internet);
	int r;

	if (!in)
		return sb_fail(err, SB_E_INVAL, "the template or the metadata is not UTF-8");
	if (sb_strlist_count(w->allow) || sb_strlist_count(w->deny))
		(void)json_object_set_new(in, "network",
			json_pack("{s:o, s:o}", "allowOut", texts_json(w->allow), "denyOut",
				texts_json(w->deny)));
	r = ask(a, "POST", "/sandboxes", in, SB_REST_UNSENT, wait, &answer, err);
	/* A 404 is about the template. */
	if (r == SB_E_SANDBOX_NOT_FOUND)
		return sb_fail(err, SB_E_NOTFOUND, "%s: template %s is not there",
			sb_rest_name(a->rest), w->template);
	return r < 0 ? r : take_box(a, &answer, out, err);
}

int
sb_e2bapi_connect(struct sb_e2bapi *a, const char *id, int64_t timeout_s,
	const struct sb_rest_wait *wait, struct sb_e2bapi_box *out, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };
	int r = ask_about(a, "POST", id, "/connect",
		json_pack("{s:I}", "timeout", (json_int_t)timeout_s), SB_REST_REPEAT, wait, &answer,
		err);

	return r < 0 ? r : take_box(a, &answer, out, err);
}

/* Escaped by sb_rest_add_segment, without its slash. */
static const char *
escaped(const char *text, struct sb_buf *room)
{
	sb_buf_reset(room);
	sb_rest_add_segment(room, text);
	return room->failed ? "" : (const char *)room->data + 1;
}

/* Three layers: names and values, the form of them, and the query it stands in. */
static int
metadata_query(const char *const *v, struct sb_buf *target, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf form, once, key, twice;
	int r = 0;

	sb_buf_init(&form, 65536);
	sb_buf_init(&once, 65536);
	sb_buf_init(&key, 8192);
	sb_buf_init(&twice, 65536);
	for (; v && *v && r == 0; v++) {
		size_t n = strcspn(*v, "=");

		sb_buf_reset(&key);
		sb_buf_add(&key, *v, n);
		if (!(*v)[n])
			return sb_fail(err, SB_E_INVAL, "metadata is KEY=value");
		sb_buf_add_str(&form, form.len > 0 ? "&" : "");
		sb_buf_add_str(&form, escaped(escaped((const char *)key.data, &once), &twice));
		sb_buf_add_char(&form, '=');
		sb_buf_add_str(&form, escaped(escaped(*v + n + 1, &once), &twice));
		if (key.failed || once.failed || twice.failed)
			r = sb_fail(err, SB_E_LIMIT, "metadata is too long");
	}
	if (r < 0)
		return r;
	sb_rest_add_query(target, "metadata", (char *)form.data);
	return sb_buf_check(target, "metadata", err);
}

int
sb_e2bapi_find(struct sb_e2bapi *a, const char *const *metadata, const struct sb_rest_wait *wait,
	char **id, bool *running, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };
	sb_auto(sb_buf) struct sb_buf target;
	const char *found, *first = NULL, *started, *earliest = NULL;
	json_t *v, *one;
	size_t i;
	int r;

	sb_buf_init(&target, 65536);
	sb_buf_add_str(&target, "/v2/sandboxes");
	r = metadata_query(metadata, &target, err);
	sb_rest_add_query(&target, "state", "running,paused");
	sb_rest_add_query(&target, "limit", "8");
	if (r == 0)
		r = ask(a, "GET", (char *)target.data, NULL, SB_REST_REPEAT, wait, &answer, err);
	v = r == 0 ? sb_rest_json(&answer, sb_rest_name(a->rest), err) : NULL;
	if (r == 0 && !json_is_array(v))
		r = sb_fail(err, SB_E_PROTO, "%s: the answer is no list", sb_rest_name(a->rest));
	json_array_foreach(v, i, one)
	{
		found = sb_json_get(one, "sandboxID");
		started = sb_json_get(one, "startedAt");
		if (!good_id(found) || !started || (earliest && strcmp(started, earliest) >= 0))
			continue;
		first = found;
		earliest = started;
		*running = strcmp(sb_json_get(one, "state") ? sb_json_get(one, "state") : "",
				   "running") == 0;
	}
	if (r == 0 && !first)
		r = sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s: none at %s has the metadata %s",
			sb_code_text(SB_E_SANDBOX_NOT_FOUND), sb_rest_name(a->rest),
			metadata && *metadata ? *metadata : "");
	if (r == 0) {
		*id = strdup(first);
		r = *id ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	json_decref(v);
	return r;
}

int
sb_e2bapi_get(struct sb_e2bapi *a, const char *id, const struct sb_rest_wait *wait, bool *running,
	json_t **metadata, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };
	int r = ask_about(a, "GET", id, "", NULL, SB_REST_REPEAT, wait, &answer, err);
	json_t *v = r == 0 ? sb_rest_json(&answer, sb_rest_name(a->rest), err) : NULL;
	const char *state = sb_json_get(v, "state");

	if (r == 0 && !state)
		r = v ? sb_fail(err, SB_E_PROTO, "%s: the answer has no state",
				sb_rest_name(a->rest)) :
			SB_E_PROTO;
	if (r == 0) {
		*running = strcmp(state, "running") == 0;
		if (metadata)
			*metadata = json_incref(json_object_get(v, "metadata"));
	}
	json_decref(v);
	return r;
}

int
sb_e2bapi_extend(struct sb_e2bapi *a, const char *id, int64_t timeout_s,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };

	return ask_about(a, "POST", id, "/timeout",
		json_pack("{s:I}", "timeout", (json_int_t)timeout_s), SB_REST_REPEAT, wait, &answer,
		err);
}

int
sb_e2bapi_pause(struct sb_e2bapi *a, const char *id, const struct sb_rest_wait *wait,
	struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };
	struct sb_error why = { 0 };
	int r = ask_about(a, "POST", id, "/pause", json_object(), SB_REST_REPEAT, wait, &answer,
		&why);

	if (r == SB_E_CONFLICT)
		return 0;
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_e2bapi_kill(struct sb_e2bapi *a, const char *id, const struct sb_rest_wait *wait,
	struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };
	struct sb_error why = { 0 };
	int r = ask_about(a, "DELETE", id, "", NULL, SB_REST_REPEAT, wait, &answer, &why);

	if (r == SB_E_SANDBOX_NOT_FOUND)
		return 0;
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_e2bapi_try(struct sb_e2bapi *a, const struct sb_rest_wait *wait, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };

	return ask(a, "GET", "/v2/sandboxes?limit=1", NULL, SB_REST_REPEAT, wait, &answer, err);
}

int
sb_e2bapi_try_template(struct sb_e2bapi *a, const char *name, const struct sb_rest_wait *wait,
	struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer answer = { 0 };
	sb_auto(sb_buf) struct sb_buf target = { 0 };
	int r;

	sb_buf_init(&target, 4096);
	sb_buf_add_str(&target, "/templates/aliases");
	sb_rest_add_segment(&target, name);
	r = sb_buf_check(&target, "template", err);
	if (r == 0)
		r = ask(a, "GET", (char *)target.data, NULL, SB_REST_REPEAT, wait, &answer, err);
	if (r == SB_E_SANDBOX_NOT_FOUND)
		return sb_fail(err, SB_E_NOTFOUND, "%s: template %s is not there",
			sb_rest_name(a->rest), name);
	return r;
}

const char *
sb_e2bapi_name(const struct sb_e2bapi *a)
{
	return sb_rest_name(a->rest);
}
