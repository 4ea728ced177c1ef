/* SPDX-License-Identifier: MIT */
/* Runs the hooks of an event and collects their answers; one that denies stops the step. */
#include "config.h"

#include <session/session-priv.h>

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <base/buf.h>
#include <base/spawn.h>
#include <provider/state-json.h>
#include <tool/environ.h>

#define HOOK_TIMEOUT_MS 30000
#define ANSWER_MAX (1u << 20)
#define STDERR_MAX 4096

SB_CLEANUP_PTR(json_t, json_decref)

void
sb_hook_answer_free(struct sb_hook_answer *a)
{
	free(a->reason);
	sb_strlist_free(&a->exclude);
	sb_strlist_free(&a->env);
	memset(a, 0, sizeof *a);
}

/* The JSON that a hook program reads from stdin. */
static char *
question(const struct sb_hook_info *info, struct sb_error *err)
{
	sb_auto(json_t) json_t *o = json_object();
	json_t *state = sb_state_json(info->state, err);
	char *text = NULL;

	if (o && state) {
		(void)json_object_set_new(o, "event", json_string(info->event));
		(void)json_object_set_new(o, "sandbox", state);
		if (info->reason)
			(void)json_object_set_new(o, "reason", json_string(info->reason));
		if (info->direction)
			(void)json_object_set_new(o, "direction", json_string(info->direction));
		if (info->sync) {
			(void)json_object_set_new(o, "files_synced",
				json_integer((json_int_t)info->sync->files_synced));
			(void)json_object_set_new(o, "files_deleted",
				json_integer((json_int_t)info->sync->files_deleted));
			(void)json_object_set_new(o, "conflicts",
				json_integer((json_int_t)info->sync->conflicts.n));
		}
		if (strcmp(info->event, "stop") == 0)
			(void)json_object_set_new(o, "will_destroy",
				json_boolean(info->will_destroy));
		text = json_dumps(o, JSON_COMPACT);
	} else {
		json_decref(state);
	}
	if (!text)
		(void)sb_fail(err, SB_E_NOMEM, "hook %s: out of memory", info->event);
	return text;
}

static int
take_lists(const json_t *o, struct sb_hook_answer *a, const char *name, struct sb_error *err)
{
	const json_t *exclude = json_object_get(o, "exclude"), *env = json_object_get(o, "env"), *v;
	const char *key;
	size_t i;
	int r;

	if ((exclude && !json_is_array(exclude)) || (env && !json_is_object(env)))
		return sb_fail(err, SB_E_HOOK_DENIED,
			"hook %s: \"exclude\" must be a list and \"env\" an object", name);
	json_array_foreach(exclude, i, v)
	{
		if (!json_is_string(v))
			return sb_fail(err, SB_E_HOOK_DENIED,
				"hook %s: \"exclude\" must be a list of texts", name);
		sb_strlist_add(&a->exclude, json_string_value(v));
	}
	json_object_foreach((json_t *)(uintptr_t)env, key, v)
	{
		if (!json_is_string(v) || !sb_environ_name_ok(key))
			return sb_fail(err, SB_E_HOOK_DENIED,
				"hook %s: \"env\" must be names and texts", name);
		sb_strlist_putf(&a->env, "%s=%s", key, json_string_value(v));
	}
	r = sb_strlist_check(&a->exclude, err);
	return r < 0 ? r : sb_strlist_check(&a->env, err);
}

static int
take_answer(const struct sb_buf *text, struct sb_hook_answer *a, const char *name,
	struct sb_error *err)
{
	sb_auto(json_t) json_t *o = NULL;
	const char *why;

	if (strspn((const char *)text->data, " \t\r\n") == text->len)
		return 0;
	o = json_loadb((const char *)text->data, text->len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(o))
		return sb_fail(err, SB_E_HOOK_DENIED, "hook %s: its answer is not a JSON object",
			name);
	a->deny = json_is_true(json_object_get(o, "deny"));
	why = json_string_value(json_object_get(o, "reason"));
	if (why) {
		free(a->reason);
		a->reason = strdup(why);
	}
	return take_lists(o, a, name, err);
}

static int
run_program(const struct sb_profile_hook *h, const struct sb_hook_info *info,
	const struct sb_call *call, struct sb_hook_answer *a, struct sb_error *err)
{
	struct sb_call within =
		sb_call_within(call, h->timeout_ms > 0 ? h->timeout_ms : HOOK_TIMEOUT_MS);
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_autofree char *in = question(info, err);
	sb_auto(sb_buf) struct sb_buf out = { 0 };
	sb_auto(sb_buf) struct sb_buf complaint = { 0 };
	int code;

	if (!in)
		return err && err->code < 0 ? err->code : SB_E_NOMEM;
	sb_buf_init(&out, ANSWER_MAX);
	sb_buf_init(&complaint, STDERR_MAX);
	o.search_path = true;
	o.cwd = info->state->local_root;
	code = sb_child_run(sb_strlist_borrow(&h->argv), &o, in, strlen(in), &out, &complaint,
		within.cancel, within.deadline, err);
	if (code < 0)
		return sb_wrap(err, code, "hook %s: %s", info->event, h->argv.v[0]);
	if (code > 0) {
		complaint.data[strcspn((const char *)complaint.data, "\r\n")] = '\0';
		return sb_fail(err, SB_E_HOOK_DENIED, "hook %s: %s ended with status %d%s%s",
			info->event, h->argv.v[0], code, complaint.data[0] ? ": " : "",
			(const char *)complaint.data);
	}
	if (out.failed)
		return sb_fail(err, SB_E_HOOK_DENIED, "hook %s: %s answers more than %u bytes",
			info->event, h->argv.v[0], ANSWER_MAX);
	return take_answer(&out, a, h->argv.v[0], err);
}

/* Adds one hook's answer to those of the others. */
static int
merge(struct sb_hook_answer *to, const struct sb_hook_answer *from, struct sb_error *err)
{
	int r = sb_strlist_check(&from->env, err);

	sb_strlist_join(&to->exclude, &from->exclude);
	for (size_t i = 0; r == 0 && i < from->env.n; i++)
		if (strchr(from->env.v[i], '='))
			sb_strlist_put(&to->env, from->env.v[i]);
		else
			r = sb_fail(err, SB_E_INVAL, "hook: \"%s\" is not KEY=value",
				from->env.v[i]);
	if (r == 0)
		r = sb_strlist_check(&to->exclude, err);
	return r < 0 ? r : sb_strlist_check(&to->env, err);
}

/* After each hook: collect, or refuse. */
static int
settle(struct sb_sandbox *sb, const struct sb_hook_info *info, int r, struct sb_hook_answer *one,
	struct sb_hook_answer *all, struct sb_error *err)
{
	if (r == 0 && one->deny)
		r = sb_fail(err, SB_E_HOOK_DENIED, "hook %s refuses%s%s", info->event,
			one->reason ? ": " : "", one->reason ? one->reason : "");
	if (r == 0)
		r = merge(all, one, err);
	if (r < 0)
		sb_event_tell(sb, "sandbox.hook.denied", r, err ? err->msg : NULL, -1);
	sb_hook_answer_free(one);
	return r;
}

int
sb_hook_run(struct sb_sandbox *sb, const struct sb_hook_info *info, const struct sb_call *call,
	struct sb_hook_answer *out, struct sb_error *err)
{
	const struct sb_keeper *k = sb->k;
	int r = 0;

	for (size_t i = 0; r == 0 && i < k->n_hooks; i++) {
		struct sb_hook_answer one = { 0 };

		if (k->hooks[i].event && strcmp(k->hooks[i].event, info->event) != 0)
			continue;
		r = k->hooks[i].fn(info, &one, k->hooks[i].arg, err);
		r = settle(sb, info, r, &one, out, err);
	}
	for (size_t i = 0; r == 0 && i < sb->profile.n_hooks; i++) {
		struct sb_hook_answer one = { 0 };

		if (strcmp(sb->profile.hooks[i].event, info->event) != 0)
			continue;
		r = run_program(&sb->profile.hooks[i], info, call, &one, err);
		r = settle(sb, info, r, &one, out, err);
	}
	return r;
}
