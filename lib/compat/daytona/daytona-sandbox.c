/* SPDX-License-Identifier: MIT */
/* The control plane: sandboxes from create to delete, and their settings. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

#define INTERVAL_MAX (10 * 365 * 24 * 60) /* minutes */
#define NETWORK_MAX 16384

json_t *
sb_daytona_sandbox_find(struct sb_rpc_call *call, const char *id_or_name)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	json_t *rec = sb_daytona_record_find(d, "sandbox", id_or_name);
	const char *state = rec ? sb_daytona_state(d, rec) : "destroyed";

	if (strcmp(state, "destroyed") != 0)
		return rec;
	/* Its session was destroyed by others. */
	if (rec)
		sb_daytona_record_drop(d, sb_daytona_text(rec, "id"));
	json_decref(rec);
	(void)sb_daytona_refuse(call, 404, "Sandbox with ID or name %.100s not found", id_or_name);
	return NULL;
}

/* Parts of the vendor's request that this host has nothing for. */
static const char *
cannot(const json_t *in)
{
	static const char *const members[] = { "volumes", "secrets", "linkedSandbox", "kvm", "spot",
		"outboundProxyUrl", "otelEndpointOverride", "gpu", "gpuType", NULL };

	for (size_t i = 0; members[i]; i++) {
		const json_t *v = json_object_get(in, members[i]);

		if (json_is_true(v) || json_integer_value(v) > 0 || json_array_size(v) ||
			json_object_size(v) || (json_is_string(v) && *json_string_value(v)))
			return members[i];
	}
	return NULL;
}

/* What a create is to make. */
struct wish {
	struct sb_strmap labels;
	struct sb_host_label v[SB_HOST_LABELS_MAX];
	struct sb_strlist allow;
	char *base, *from;
	struct sb_host_create_opts o;
};

static void
wish_free(struct wish *w)
{
	sb_strmap_free(&w->labels);
	sb_strlist_free(&w->allow);
	free(w->base);
	free(w->from);
}

static void
set_labels(struct sb_host_label *v, const struct sb_strmap *labels)
{
	for (size_t i = 0; i < labels->n && i < SB_HOST_LABELS_MAX; i++)
		v[i] = (struct sb_host_label){ labels->v[i].key, labels->v[i].value };
}

/* "a, b,c" */
static void
split(const char *text, struct sb_strlist *out)
{
	while (*text) {
		size_t len = strcspn(text += strspn(text, ", \t"), ", \t");

		if (len > 0)
			sb_strlist_addf(out, "%.*s", (int)len, text);
		text += len;
	}
}

/* The lists of the vendor are addresses, networks and names, as ours. */
static void
read_network(struct sb_daytona *d, const json_t *rec, struct wish *w)
{
	struct sb_host_capabilities caps;

	split(sb_daytona_text(rec, "networkAllowList"), &w->allow);
	split(sb_daytona_text(rec, "domainAllowList"), &w->allow);
	if (json_is_true(json_object_get(rec, "networkBlockAll"))) {
		w->o.network = SB_HOST_NET_NONE;
	} else if (w->allow.n > 0) {
		w->o.network = SB_HOST_NET_OUTBOUND;
		w->o.allow = (const char *const *)w->allow.v;
		w->o.n_allow = w->allow.n;
	} else if (sb_host_options(d->host)->default_network == SB_HOST_NET_DEFAULT) {
		/* As the operator has it; where nothing is said, what the lists can hold. */
		sb_host_capabilities(d->host, &caps);
		w->o.network = caps.network_lists ? SB_HOST_NET_OUTBOUND : SB_HOST_NET_DEFAULT;
	}
}

/* A limit that every sandbox has here: more than that cannot be had. */
static int
check_resources(struct sb_daytona *d, struct sb_rpc_fields *f, struct wish *w, struct sb_error *err)
{
	int64_t cpu = sb_rpc_field_int(f, "cpu", 0, 100000),
		memory = sb_rpc_field_int(f, "memory", 0, 100000000),
		disk = sb_rpc_field_int(f, "disk", 0, 100000000);
	struct sb_host_capabilities caps;

	sb_host_capabilities(d->host, &caps);
	if (cpu > (int64_t)sb_daytona_show_cpus(d))
		return sb_fail(err, SB_E_INVAL, "cpu %lld: a sandbox of this host has at most %u",
			(long long)cpu, sb_daytona_show_cpus(d));
	if (memory * 1024 > (int64_t)sb_daytona_show_mem_mb(d))
		return sb_fail(err, SB_E_INVAL,
			"memory %lld: a sandbox of this host has at most %llu MiB",
			(long long)memory, (unsigned long long)sb_daytona_show_mem_mb(d));
	if (disk > 0 && !caps.quota)
		return sb_fail(err, SB_E_INVAL, "disk: the storage of this host has no quotas");
	w->o.quota = (uint64_t)disk << 30;
	return 0;
}

/* A snapshot of ours, a base image of the host's, or nothing: the default. */
static int
choose_source(struct sb_daytona *d, json_t *rec, const char *name, struct wish *w,
	struct sb_error *err)
{
	json_t *snap = *name ? sb_daytona_record_find(d, "snapshot", name) : NULL;
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	size_t len = strlen(name);

	if (snap) {
		w->from = strdup(sb_daytona_text(snap, "id"));
		sb_daytona_set(rec, "snapshot", sb_daytona_text(snap, "name"));
		json_decref(snap);
		return w->from ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	sb_daytona_set(rec, "snapshot", name);
	/* On ZFS a base is NAME@SNAPSHOT; the last of them is meant. */
	if (*name && sb_host_base_list(d->host, &l, NULL) == 0)
		for (size_t i = 0; i < l.n; i++)
			if (strncmp(l.v[i], name, len) == 0 &&
				(l.v[i][len] == '\0' || l.v[i][len] == '@')) {
				free(w->base);
				w->base = strdup(l.v[i]);
			}
	if (*name && !w->base && strcmp(name, "default") != 0)
		return sb_fail(err, SB_E_BASE_NOT_FOUND,
			"Snapshot %.100s not found. Did you add it through the Daytona Dashboard?",
			name);
	w->o.base = w->base;
	w->o.empty = !w->base && !sb_host_options(d->host)->default_base;
	return 0;
}

/* A number of minutes, when it is there. */
static void
take_interval(struct sb_rpc_fields *f, json_t *rec, const char *name, int64_t min)
{
	if (sb_rpc_field(f, name))
		sb_daytona_set_number(rec, name, sb_rpc_field_int(f, name, min, INTERVAL_MAX));
}

static void
take_text(struct sb_rpc_fields *f, json_t *rec, const char *name, size_t max)
{
	const char *s = sb_rpc_field_str(f, name, max, 0);

	if (*s)
		sb_daytona_set(rec, name, s);
}

static bool
known_user(const char *name)
{
	return strcmp(name, "daytona") == 0 || strcmp(name, "root") == 0 ||
		strcmp(name, "user") == 0;
}

static int
read_create(struct sb_daytona *d, const json_t *in, json_t *rec, struct wish *w,
	struct sb_error *err)
{
	const char *user, *not_here = cannot(in);
	struct sb_rpc_fields f;
	int r;

	sb_rpc_fields_init(&f, in);
	take_text(&f, rec, "name", 255);
	user = sb_rpc_field_str(&f, "user", 64, 0);
	sb_daytona_set(rec, "user", *user ? user : "daytona");
	sb_daytona_set(rec, "target", "local");
	take_text(&f, rec, "target", 255);
	sb_rpc_field_map(&f, "labels", SB_HOST_LABELS_MAX, SB_HOST_LABEL_KEY_MAX,
		SB_HOST_LABEL_VALUE_MAX, &w->labels);
	if (sb_rpc_field_object(&f, "env"))
		(void)json_object_set_new(rec, "env",
			json_deep_copy(sb_rpc_field_object(&f, "env")));
	if (sb_rpc_field(&f, "public"))
		(void)json_object_set_new(rec, "public",
			json_boolean(sb_rpc_field_bool(&f, "public")));
	if (sb_rpc_field(&f, "networkBlockAll"))
		(void)json_object_set_new(rec, "networkBlockAll",
			json_boolean(sb_rpc_field_bool(&f, "networkBlockAll")));
	take_text(&f, rec, "networkAllowList", NETWORK_MAX);
	take_text(&f, rec, "domainAllowList", NETWORK_MAX);
	take_interval(&f, rec, "autoStopInterval", 0);
	take_interval(&f, rec, "autoPauseInterval", 0);
	take_interval(&f, rec, "autoArchiveInterval", 0);
	take_interval(&f, rec, "autoDeleteInterval", -1);
	take_interval(&f, rec, "ttlMinutes", 0);
	/* One of the two: what is asked for goes before the default of the other. */
	if (sb_daytona_number(rec, "autoPauseInterval") > 0 &&
		!sb_rpc_field(&f, "autoStopInterval"))
		sb_daytona_set_number(rec, "autoStopInterval", 0);
	r = sb_rpc_fields_check(&f, err);
	if (r == 0 && not_here)
		r = sb_fail(err, SB_E_INVAL, "this host does not support %s", not_here);
	if (r == 0 && sb_rpc_field_object(&f, "buildInfo"))
		r = sb_fail(err, SB_E_INVAL,
			"this host builds no images: name a snapshot or a base image of the host");
	if (r == 0 && !known_user(sb_daytona_text(rec, "user")))
		r = sb_fail(err, SB_E_INVAL,
			"user '%.64s': there are daytona, user and root, "
			"who are one",
			user);
	if (r == 0)
		r = check_resources(d, &f, w, err);
	if (r == 0)
		r = choose_source(d, rec, sb_rpc_field_str(&f, "snapshot", 255, 0), w, err);
	read_network(d, rec, w);
	set_labels(w->v, &w->labels);
	w->o.labels = w->v;
	w->o.n_labels = w->labels.n;
	return r;
}

static int
create(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	json_t *in = sb_answer_body(call, err), *rec;
	struct wish w = { .o = SB_HOST_CREATE_OPTS_INIT };
	int r;

	(void)q;
	if (!in)
		return SB_E_INVAL;
	rec = sb_daytona_record_new("sandbox", err);
	r = rec ? read_create(d, in, rec, &w, err) : SB_E_NOMEM;
	if (r == 0)
		r = sb_daytona_life_create(d, rec, &w.o, w.from, &limits, err);
	if (r == 0)
		r = sb_daytona_show_answer(call, rec, err);
	else if (r == SB_E_BASE_NOT_FOUND)
		r = sb_daytona_refuse(call, 400, "%s", err->msg);
	wish_free(&w);
	json_decref(in);
	json_decref(rec);
	return r;
}

static int
get(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	int r = rec ? sb_daytona_show_answer(call, rec, err) : 0;

	json_decref(rec);
	return r;
}

/* A change of state: from which states, by what, and what its refusal says. */
static int
change(struct sb_rpc_call *call, const struct sb_query *q, const char *from, const char *already,
	int (*life)(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call,
		struct sb_error *err),
	struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	const char *state = rec ? sb_daytona_state(d, rec) : "";
	size_t len = strlen(state);
	const char *in = rec ? strstr(from, state) : NULL;
	int r = 0;

	if (!rec)
		return 0;
	if (already && strcmp(state, already) == 0)
		r = sb_daytona_show_answer(call, rec, err);
	else if (sb_str_ends(state, "ing"))
		r = sb_daytona_refuse(call, 409, "Sandbox state change in progress");
	else if (!in || (in[len] != ' ' && in[len] != '\0'))
		r = sb_daytona_refuse(call, 400, "Sandbox is %s: this works from %s only", state,
			from);
	else if ((r = life(d, rec, &limits, err)) == 0)
		r = sb_daytona_show_answer(call, rec, err);
	json_decref(rec);
	return r;
}

static int
start(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return change(call, q, "stopped archived paused", "started", sb_daytona_life_start, err);
}

/* Programs are ended at once whether or not `force` is asked for. */
static int
stop(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return change(call, q, "started paused", "stopped", sb_daytona_life_stop, err);
}

static int
pause_it(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return change(call, q, "started", "paused", sb_daytona_life_pause, err);
}

static int
archive_it(struct sb_daytona *d, json_t *rec, const struct sb_host_call *call, struct sb_error *err)
{
	(void)call;
	if (sb_daytona_number(rec, "autoDeleteInterval") == 0)
		return sb_fail(err, SB_E_INVAL, "Ephemeral sandboxes cannot be archived");
	return sb_daytona_life_archive(d, rec, err);
}

static int
archive(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	return change(call, q, "stopped", "archived", archive_it, err);
}

/* A failed session is not made whole by trying again. */
static int
recover(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	int r = 0;

	if (rec && strcmp(sb_daytona_state(sb_rpc_call_arg(call), rec), "error") != 0)
		r = sb_daytona_refuse(call, 400, "Sandbox is not in error state");
	else if (rec)
		r = sb_daytona_refuse(call, 400, "Sandbox is not recoverable: see sbhostd(8)");
	json_decref(rec);
	(void)err;
	return r;
}

static int
delete_it(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_answer_limits(call);
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]), *o;
	char base[SB_DAYTONA_BASE_MAX];
	int r;

	if (!rec)
		return 0;
	sb_daytona_base(call, base);
	o = sb_daytona_show(d, rec, base, false);
	r = sb_daytona_life_delete(d, rec, &limits, err);
	if (r == 0) {
		(void)json_object_set_new(o, "state", json_string("destroyed"));
		(void)json_object_set_new(o, "desiredState", json_string("destroyed"));
		r = sb_answer_json(call, 200, json_incref(o), err);
	}
	json_decref(o);
	json_decref(rec);
	return r;
}

static int
put_labels(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	json_t *in = rec ? sb_answer_body(call, err) : NULL;
	struct sb_host_label v[SB_HOST_LABELS_MAX];
	struct sb_strmap labels = { 0 };
	struct sb_rpc_fields f;
	int r = rec ? SB_E_INVAL : 0;

	if (in) {
		sb_rpc_fields_init(&f, in);
		if (!sb_rpc_field_object(&f, "labels"))
			sb_rpc_field_bad(&f, "labels", "is required");
		sb_rpc_field_map(&f, "labels", SB_HOST_LABELS_MAX, SB_HOST_LABEL_KEY_MAX,
			SB_HOST_LABEL_VALUE_MAX, &labels);
		r = sb_rpc_fields_check(&f, err);
		set_labels(v, &labels);
		if (r == 0)
			r = sb_host_session_set_labels(d->host, sb_daytona_text(rec, "id"), v,
				labels.n, err);
		if (r == 0)
			r = sb_answer_json(call, 200,
				json_pack("{s:O}", "labels", json_object_get(in, "labels")), err);
	}
	sb_strmap_free(&labels);
	json_decref(in);
	json_decref(rec);
	return r;
}

/* /sandbox/ID/autostop/15 and its kin. */
static int
set_interval(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	static const char *const names[][2] = { { "autostop", "autoStopInterval" },
		{ "autopause", "autoPauseInterval" }, { "autoarchive", "autoArchiveInterval" },
		{ "autodelete", "autoDeleteInterval" }, { "ttl", "ttlMinutes" } };
	const char *verb = q->segments.v[2];
	bool del = strcmp(verb, "autodelete") == 0;
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]), *changes;
	int64_t n = 0;
	int r;

	if (!rec)
		return 0;
	if (!sb_str_to_i64(q->segments.v[3], del ? INT32_MIN : 0, INTERVAL_MAX, &n)) {
		json_decref(rec);
		return sb_daytona_refuse(call, 400,
			"%s: a number of minutes from 0 to %d is needed", verb, INTERVAL_MAX);
	}
	changes = json_object();
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
		if (strcmp(names[i][0], verb) == 0)
			sb_daytona_set_number(changes, names[i][1], n < -1 ? -1 : n);
	/* Only one of these two can be. */
	if (n > 0 && strcmp(verb, "autopause") == 0)
		sb_daytona_set_number(changes, "autoStopInterval", 0);
	if (n > 0 && strcmp(verb, "autostop") == 0)
		sb_daytona_set_number(changes, "autoPauseInterval", 0);
	r = sb_daytona_record_change(sb_rpc_call_arg(call), rec, changes, err);
	if (r == 0)
		r = sb_daytona_show_answer(call, rec, err);
	json_decref(rec);
	return r;
}

static int
last_activity(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);

	(void)err;
	if (!rec)
		return 0;
	sb_daytona_enter(d, sb_daytona_text(rec, "id"));
	sb_daytona_leave(d, sb_daytona_text(rec, "id"));
	json_decref(rec);
	sb_rpc_http_reply(call, 201, NULL, NULL, 0);
	return 0;
}

static int
set_public(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	const char *word = q->segments.v[3];
	int r = 0;

	if (rec && strcmp(word, "true") != 0 && strcmp(word, "false") != 0) {
		r = sb_daytona_refuse(call, 400, "public must be true or false");
	} else if (rec) {
		r = sb_daytona_record_change(sb_rpc_call_arg(call), rec,
			json_pack("{s:b}", "public", strcmp(word, "true") == 0), err);
		if (r == 0)
			r = sb_daytona_show_answer(call, rec, err);
	}
	json_decref(rec);
	return r;
}

static int
apply_network(struct sb_daytona *d, const json_t *rec, struct sb_error *err)
{
	static const char *const all[] = { "*" };
	sb_auto(sb_strlist) struct sb_strlist allow = { 0 };
	bool none = json_is_true(json_object_get(rec, "networkBlockAll"));
	size_t cut;
	int r;

	split(sb_daytona_text(rec, "networkAllowList"), &allow);
	split(sb_daytona_text(rec, "domainAllowList"), &allow);
	r = sb_strlist_check(&allow, err);
	if (r == 0)
		r = sb_host_network_set(d->host, sb_daytona_text(rec, "id"),
			none                ? NULL :
				allow.n > 0 ? (const char *const *)allow.v :
					      all,
			none                ? 0 :
				allow.n > 0 ? allow.n :
					      1,
			NULL, 0, &cut, err);
	return r;
}

static json_t *
network_members(const json_t *rec)
{
	static const char *const names[] = { "networkBlockAll", "networkAllowList",
		"domainAllowList", NULL };
	json_t *o = json_object();

	for (size_t i = 0; names[i]; i++)
		if (json_object_get(rec, names[i]))
			(void)json_object_set(o, names[i], json_object_get(rec, names[i]));
	return o;
}

static int
set_network(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	struct sb_daytona *d = sb_rpc_call_arg(call);
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	json_t *in = rec ? sb_answer_body(call, err) : NULL;
	struct sb_rpc_fields f;
	int r = rec ? SB_E_INVAL : 0;

	if (in) {
		sb_rpc_fields_init(&f, in);
		if (sb_rpc_field(&f, "networkBlockAll"))
			(void)json_object_set_new(rec, "networkBlockAll",
				json_boolean(sb_rpc_field_bool(&f, "networkBlockAll")));
		if (sb_rpc_field(&f, "networkAllowList"))
			sb_daytona_set(rec, "networkAllowList",
				sb_rpc_field_str(&f, "networkAllowList", NETWORK_MAX, 0));
		if (sb_rpc_field(&f, "domainAllowList"))
			sb_daytona_set(rec, "domainAllowList",
				sb_rpc_field_str(&f, "domainAllowList", NETWORK_MAX, 0));
		r = sb_rpc_fields_check(&f, err);
		if (r == 0)
			r = apply_network(d, rec, err);
		if (r == 0)
			r = sb_daytona_record_change(d, rec, network_members(rec), err);
		if (r == 0)
			r = sb_daytona_show_answer(call, rec, err);
	}
	json_decref(in);
	json_decref(rec);
	return r;
}

/* Every sandbox has the limits of the host, which do not change. */
static int
resize(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);

	(void)err;
	json_decref(rec);
	return rec ? sb_daytona_refuse(call, 422,
			     "this host gives every sandbox the same resources: see sbhostd(8)") :
		     0;
}

static int
toolbox_url(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	char base[SB_DAYTONA_BASE_MAX];

	json_decref(rec);
	sb_daytona_base(call, base);
	return rec ? sb_answer_json(call, 200,
			     json_pack("{s:o}", "url", json_sprintf("%s/toolbox", base)), err) :
		     0;
}

/* The key that addresses of its files are signed with. */
static int
signing_key(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	json_t *rec = sb_daytona_sandbox_find(call, q->segments.v[1]);
	const char *key;
	char made[65];
	int r = 0;

	if (!rec)
		return 0;
	if (q->segments.n > 3) {
		r = sb_keys_make(made, 64, err);
		if (r == 0)
			r = sb_daytona_record_change(sb_rpc_call_arg(call), rec,
				json_pack("{s:s}", "signingKey", made), err);
		explicit_bzero(made, sizeof made);
	}
	key = sb_daytona_text(rec, "signingKey");
	if (r == 0)
		sb_rpc_http_reply(call, 200, "text/plain", key, strlen(key));
	json_decref(rec);
	return r;
}

static int
not_here(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	(void)err;
	return sb_daytona_refuse(call, 501, "this host does not serve %s: see sbhostd(8)",
		q->segments.v[q->segments.n - 1]);
}

#define ROUTE(verb, path, run, body) \
	{ \
		verb, path, run, SB_RPC_HTTP_##body, 0, NULL \
	}
#define ONE "/sandbox/*"
const struct sb_daytona_route sb_daytona_sandbox_routes[] = {
	ROUTE("POST", "/sandbox", create, WHOLE),
	ROUTE("POST", ONE "/start", start, NO_BODY),
	ROUTE("POST", ONE "/stop", stop, NO_BODY),
	ROUTE("POST", ONE "/pause", pause_it, NO_BODY),
	ROUTE("POST", ONE "/archive", archive, NO_BODY),
	ROUTE("POST", ONE "/recover", recover, NO_BODY),
	ROUTE("POST", ONE "/resize", resize, WHOLE),
	ROUTE("POST", ONE "/last-activity", last_activity, NO_BODY),
	ROUTE("POST", ONE "/network-settings", set_network, WHOLE),
	ROUTE("POST", ONE "/backup", not_here, NO_BODY),
	ROUTE("PUT", ONE "/secrets", not_here, WHOLE),
	ROUTE("PUT", ONE "/labels", put_labels, WHOLE),
	ROUTE("GET", ONE "/toolbox-proxy-url", toolbox_url, NO_BODY),
	ROUTE("GET", ONE "/signing-key", signing_key, NO_BODY),
	ROUTE("POST", ONE "/signing-key/rotate", signing_key, NO_BODY),
	ROUTE("POST", ONE "/autostop/*", set_interval, NO_BODY),
	ROUTE("POST", ONE "/autopause/*", set_interval, NO_BODY),
	ROUTE("POST", ONE "/autoarchive/*", set_interval, NO_BODY),
	ROUTE("POST", ONE "/autodelete/*", set_interval, NO_BODY),
	ROUTE("POST", ONE "/ttl/*", set_interval, NO_BODY),
	ROUTE("POST", ONE "/public/*", set_public, NO_BODY),
	ROUTE("DELETE", ONE, delete_it, NO_BODY),
	ROUTE("GET", "/sandbox/for-runner", not_here, NO_BODY),
	ROUTE("GET", "/volumes", not_here, NO_BODY),
	ROUTE("POST", "/volumes", not_here, WHOLE),
	ROUTE("GET", "/secret", not_here, NO_BODY),
	ROUTE("POST", "/secret", not_here, WHOLE),
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};

/* Behind the lists, whose names are no sandboxes'. */
const struct sb_daytona_route sb_daytona_get_routes[] = {
	ROUTE("GET", ONE, get, NO_BODY),
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
