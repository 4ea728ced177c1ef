/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/profile-json.h>

#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/secret.h>
#include <base/strlist.h>
#include <provider/state-json.h>

#define HOOKS_MAX 256

SB_CLEANUP_PTR(json_t, json_decref)

/* A member of struct sb_profile. */
struct member {
	const char *name;
	size_t at;
};

static const struct member lists[] = {
	{ "env", offsetof(struct sb_profile, env) },
	{ "secret_env", offsetof(struct sb_profile, secret_env) },
	{ "allow_list", offsetof(struct sb_profile, network.allow_list) },
	{ "deny_list", offsetof(struct sb_profile, network.deny_list) },
};
static const struct member flags[] = {
	{ "allow_public_ingress", offsetof(struct sb_profile, network.allow_public_ingress) },
	{ "allow_outbound", offsetof(struct sb_profile, network.allow_outbound) },
	{ "network_required", offsetof(struct sb_profile, network.required) },
};
static const struct member times[] = {
	{ "prepare_timeout_ms", offsetof(struct sb_profile, prepare_timeout_ms) },
	{ "sync_timeout_ms", offsetof(struct sb_profile, sync_timeout_ms) },
	{ "destroy_timeout_ms", offsetof(struct sb_profile, destroy_timeout_ms) },
};
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static json_t *
env_json(const struct sb_strlist *l)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < l->n; i++) {
		if (sb_secret_name_looks(l->v[i], strcspn(l->v[i], "=")))
			continue;
		if (json_array_append_new(a, sb_state_json_text(l->v[i])) < 0) {
			json_decref(a);
			a = NULL;
		}
	}
	return a;
}

static json_t *
hooks_json(const struct sb_profile *p)
{
	json_t *a = json_array();

	for (size_t i = 0; a && i < p->n_hooks; i++) {
		const struct sb_profile_hook *h = &p->hooks[i];
		json_t *one = json_pack("{s:o?, s:o?, s:I}", "event", sb_state_json_text(h->event),
			"argv", sb_state_json_texts(sb_strlist_borrow(&h->argv)), "timeout_ms",
			(json_int_t)h->timeout_ms);

		if (json_array_append_new(a, one) < 0) {
			json_decref(a);
			a = NULL;
		}
	}
	return a;
}

int
sb_profile_json_encode(const struct sb_profile *p, char **out, struct sb_error *err)
{
	sb_auto(json_t) json_t *o = json_object();
	const char *base = (const char *)p;
	int r = o ? 0 : -1;

	if (r == 0 && p->runtime_root)
		r = json_object_set_new(o, "runtime_root", sb_state_json_text(p->runtime_root));
	for (size_t i = 0; r == 0 && i < COUNT(lists); i++) {
		const struct sb_strlist *l = (const void *)(base + lists[i].at);

		/* References are kept whatever their name: what they refer to is not here. */
		if (l->n)
			r = json_object_set_new(o, lists[i].name,
				l == &p->env ? env_json(l) :
					       sb_state_json_texts(sb_strlist_borrow(l)));
	}
	for (size_t i = 0; r == 0 && i < COUNT(flags); i++)
		if (*(const bool *)(const void *)(base + flags[i].at))
			r = json_object_set_new(o, flags[i].name, json_true());
	for (size_t i = 0; r == 0 && i < COUNT(times); i++) {
		int64_t ms = *(const int64_t *)(const void *)(base + times[i].at);

		if (ms)
			r = json_object_set_new(o, times[i].name, json_integer(ms));
	}
	if (r == 0 && p->n_hooks)
		r = json_object_set_new(o, "hooks", hooks_json(p));
	*out = r == 0 ? json_dumps(o, JSON_COMPACT) : NULL;
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "profile: out of memory");
}

static int
wrong(const char *name, struct sb_error *err)
{
	return sb_fail(err, SB_E_CORRUPT, "state of a sandbox: settings: %s is damaged", name);
}

static int
get_hooks(const json_t *v, struct sb_profile *p, struct sb_error *err)
{
	size_t n = json_array_size(v);
	int r = 0;

	if (!v)
		return 0;
	if (!json_is_array(v) || n > HOOKS_MAX)
		return wrong("hooks", err);
	p->hooks = n ? calloc(n, sizeof *p->hooks) : NULL;
	if (n && !p->hooks)
		return sb_fail(err, SB_E_NOMEM, "profile: out of memory");
	p->n_hooks = n;
	for (size_t i = 0; r == 0 && i < n; i++) {
		const json_t *o = json_array_get(v, i), *ms = json_object_get(o, "timeout_ms");
		struct sb_profile_hook *h = &p->hooks[i];

		h->event = sb_state_json_get_text(json_object_get(o, "event"));
		h->timeout_ms = json_integer_value(ms);
		r = sb_state_json_get_texts(json_object_get(o, "argv"), &h->argv, err);
		if (r == SB_E_CORRUPT || !h->event || !h->argv.n || !json_is_integer(ms))
			r = wrong("hooks", err);
	}
	return r;
}

static int
get_values(const json_t *o, struct sb_profile *p, struct sb_error *err)
{
	char *base = (char *)p;
	const json_t *v;
	int r = 0;

	for (size_t i = 0; r == 0 && i < COUNT(lists); i++) {
		v = json_object_get(o, lists[i].name);
		if (v && sb_state_json_get_texts(v, (void *)(base + lists[i].at), err) < 0)
			r = wrong(lists[i].name, err);
	}
	for (size_t i = 0; r == 0 && i < COUNT(flags); i++) {
		v = json_object_get(o, flags[i].name);
		if (v && !json_is_boolean(v))
			r = wrong(flags[i].name, err);
		*(bool *)(void *)(base + flags[i].at) = json_is_true(v);
	}
	for (size_t i = 0; r == 0 && i < COUNT(times); i++) {
		v = json_object_get(o, times[i].name);
		if (v && (!json_is_integer(v) || json_integer_value(v) < 0))
			r = wrong(times[i].name, err);
		*(int64_t *)(void *)(base + times[i].at) = json_integer_value(v);
	}
	return r;
}

int
sb_profile_json_decode(const char *text, struct sb_profile *p, struct sb_error *err)
{
	sb_auto(json_t) json_t *o = text ? json_loads(text, JSON_REJECT_DUPLICATES, NULL) : NULL;
	const json_t *root = json_object_get(o, "runtime_root");
	int r;

	if (!text)
		return 0;
	if (!json_is_object(o))
		return wrong("the object", err);
	if (root) {
		p->runtime_root = sb_state_json_get_text(root);
		if (!p->runtime_root)
			return wrong("runtime_root", err);
	}
	r = get_values(o, p, err);
	return r < 0 ? r : get_hooks(json_object_get(o, "hooks"), p, err);
}
