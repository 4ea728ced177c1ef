/* SPDX-License-Identifier: MIT */
/* Starts a sandbox: record, prepare, sync to the runtime. */
#include "config.h"

#include <session/session-priv.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/secret.h>
#include <base/str.h>
#include <provider/profile-json.h>

static int
set_text(char **to, const char *from, struct sb_error *err)
{
	char *copy = from ? strdup(from) : NULL;

	if (from && !copy)
		return sb_fail(err, SB_E_NOMEM, "sandbox: out of memory");
	free(*to);
	*to = copy;
	return 0;
}

/* Adds an absolute directory that lies outside all others. */
static int
add_dir(struct sb_state *s, const char *dir, struct sb_error *err)
{
	sb_autofree char *real = realpath(dir, NULL);
	struct stat st;
	size_t n;

	if (!real || stat(real, &st) < 0)
		return sb_fail_errno(err, "%s", dir);
	if (!S_ISDIR(st.st_mode))
		return sb_fail(err, SB_E_INVAL, "%s is not a directory", dir);
	n = strlen(real);
	for (size_t i = 0;; i++) {
		const char *other = i == 0   ? s->local_root :
			i <= s->local_dirs.n ? s->local_dirs.v[i - 1] :
					       NULL;
		size_t m = other ? strlen(other) : 0;

		if (!other)
			break;
		if ((strncmp(real, other, m) == 0 && (!real[m] || real[m] == '/' || m == 1)) ||
			(strncmp(other, real, n) == 0 && (!other[n] || other[n] == '/' || n == 1)))
			return sb_fail(err, SB_E_INVAL, "%s and %s lie inside each other", real,
				other);
	}
	if (s->local_root) {
		sb_strlist_add(&s->local_dirs, real);
		return sb_strlist_check(&s->local_dirs, err);
	}
	s->local_root = sb_steal(&real);
	return 0;
}

/* Exclude patterns: the profile's, its exceptions, then the caller's. */
static int
gather_excludes(struct sb_state *s, const struct sb_start_opts *o, struct sb_error *err)
{
	const struct sb_profile *p = o->profile;

	sb_strlist_join(&s->excludes, &p->exclude);
	for (size_t i = 0; i < p->include.n; i++)
		sb_strlist_addf(&s->excludes, "!%s", p->include.v[i]);
	sb_strlist_add_all(&s->excludes, o->excludes);
	return sb_strlist_check(&s->excludes, err);
}

/*
 * Adds environment to a list that goes on record; what looks like a secret does not, and stays with
 * this process.
 */
static int
keep_env(struct sb_sandbox *sb, const char *const *from, struct sb_strlist *to,
	struct sb_error *err)
{
	int r;

	for (size_t i = 0; from && from[i]; i++) {
		size_t n = strcspn(from[i], "=");
		bool secret = sb_secret_name_looks(from[i], n);

		if (secret)
			sb_log(&sb->k->log, SB_LOG_WARN, "session",
				"sandbox %s: %.*s looks like a secret and is not put on record: a "
				"later "
				"process does not have it (secret_env does)",
				sb->state.sandbox_id, (int)n, from[i]);
		sb_strlist_put(secret ? &sb->env : to, from[i]);
	}
	r = sb_strlist_check(&sb->env, err);
	return r < 0 ? r : sb_strlist_check(to, err);
}

/*
 * Copies the caller's options into the state. The instance and the provider's state of an earlier
 * session stay.
 */
static int
describe(struct sb_sandbox *sb, const struct sb_start_opts *o, struct sb_error *err)
{
	struct sb_state *s = &sb->state;
	const struct sb_profile *p = o->profile;
	int r;

	sb_strlist_free(&s->local_dirs);
	sb->had = s->excludes;
	s->excludes = (struct sb_strlist){ 0 };
	sb_strlist_free(&s->options);
	sb_strlist_free(&s->agent_env);
	sb_strlist_free(&s->hook_env);
	free(s->local_root);
	free(s->settings);
	s->local_root = s->settings = NULL;
	s->backend = p->backend;
	s->sync_mode = p->sync_mode;
	s->persist = sb->was_archived && p->persist == SB_PERSIST_TRANSIENT ? SB_PERSIST_ARCHIVE :
									      p->persist;
	s->destroy_on_stop = p->destroy_on_stop && !o->keep && !sb->was_kept;
	s->permissions = p->permissions;
	s->created_at = s->created_at ? s->created_at : time(NULL);
	s->ended_at = 0;
	s->exit_code = -1;
	r = set_text(&s->profile, p->name, err);
	if (r == 0)
		r = set_text(&s->session_id, o->session_id ? o->session_id : s->sandbox_id, err);
	if (r == 0)
		r = set_text(&s->workspace_id, o->workspace_id, err);
	if (r == 0)
		r = set_text(&s->last_error, NULL, err);
	if (r == 0)
		r = set_text(&s->agent_command, o->agent_command, err);
	if (r == 0)
		r = set_text(&s->resume_acp_state, o->resume_acp_state, err);
	sb_strlist_join(&s->options, &p->options);
	if (r == 0)
		r = sb_strlist_check(&s->options, err);
	if (r == 0)
		r = sb_profile_json_encode(p, &s->settings, err);
	if (r == 0)
		r = keep_env(sb, o->agent_env, &s->agent_env, err);
	if (r == 0)
		r = add_dir(s, o->local_root, err);
	for (size_t i = 0; r == 0 && i < p->dirs.n; i++)
		r = add_dir(s, p->dirs.v[i], err);
	for (size_t i = 0; r == 0 && o->local_dirs && o->local_dirs[i]; i++)
		r = add_dir(s, o->local_dirs[i], err);
	return r < 0 ? r : gather_excludes(s, o, err);
}

/* Every required option of the provider is there, none that it does not know. */
static int
check_options(const struct sb_provider *p, const struct sb_profile *profile, struct sb_error *err)
{
	const struct sb_provider_option *o = p->ops->options;
	const char *const *have = sb_strlist_borrow(&profile->options);

	for (; o && o->name; o++)
		if (o->required && !sb_strlist_get(have, o->name))
			return sb_fail(err, SB_E_INVAL,
				"backend %s needs %s=%s (%s): in the profile, or by --set %s=%s",
				sb_backend_name(p->ops->backend), o->name, o->value, o->help,
				o->name, o->value);
	for (size_t i = 0; have && have[i]; i++) {
		size_t n = strcspn(have[i], "=");

		for (o = p->ops->options; o && o->name; o++)
			if (strlen(o->name) == n && strncmp(o->name, have[i], n) == 0)
				break;
		if (!o || !o->name)
			return sb_fail(err, SB_E_INVAL,
				"backend %s has no option \"%.*s\": see sbctl providers",
				sb_backend_name(p->ops->backend), (int)n, have[i]);
		if (o->check && !o->check(have[i] + n + 1))
			return sb_fail(err, SB_E_INVAL, "option %s of backend %s: \"%s\" is not %s",
				o->name, sb_backend_name(p->ops->backend), have[i] + n + 1,
				o->value);
	}
	return 0;
}

/*
 * A sandbox that is on record stays where it is, and the copy of what it is: a start that wants it
 * elsewhere would leave the one there is behind, with all that is in it.
 */
static int
check_same(const struct sb_sandbox *sb, const struct sb_start_opts *o, struct sb_error *err)
{
	const struct sb_state *s = &sb->state;
	const struct sb_provider_option *option = sb->provider->ops->options;
	sb_autofree char *root = realpath(o->local_root, NULL);

	if (!s->created_at || s->life == SB_LIFE_DESTROYED)
		return 0;
	if (s->backend != o->profile->backend)
		return sb_fail(err, SB_E_STATE,
			"sandbox %s is one of backend %s, not %s: use another id, or sbctl destroy "
			"%s first",
			s->sandbox_id, sb_backend_name(s->backend),
			sb_backend_name(o->profile->backend), s->sandbox_id);
	if (root && s->local_root && strcmp(root, s->local_root) != 0)
		return sb_fail(err, SB_E_STATE,
			"sandbox %s has a copy of %s, not of %s: use another id, or sbctl destroy "
			"%s first",
			s->sandbox_id, s->local_root, root, s->sandbox_id);
	for (; option && option->name; option++) {
		const char *was = sb_strlist_get(sb_strlist_borrow(&s->options), option->name);
		const char *now =
			sb_strlist_get(sb_strlist_borrow(&o->profile->options), option->name);

		if (option->place && strcmp(was ? was : "", now ? now : "") != 0)
			return sb_fail(err, SB_E_STATE,
				"sandbox %s was made with %s \"%s\", not \"%s\": use another id, "
				"or "
				"sbctl destroy %s first",
				s->sandbox_id, option->name, was ? was : "", now ? now : "",
				s->sandbox_id);
	}
	return 0;
}

/* Before a sandbox on record starts again: brings back the work that an earlier session left. */
static int
make_way(struct sb_sandbox *sb, const struct sb_call *call, struct sb_error *err)
{
	struct sb_state *s = &sb->state;
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	int r;

	if (sb_state_owned(s) && s->owner_pid != getpid())
		return sb_fail(err, SB_E_LOCKED,
			"process %lld works with sandbox %s: stop that first",
			(long long)s->owner_pid, s->sandbox_id);
	if (s->life == SB_LIFE_ACTIVE || s->life == SB_LIFE_STOPPING ||
		s->life == SB_LIFE_UNSYNCED) {
		struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;

		o.reason = SB_WHEN_CRASH;
		r = sb_record_save(sb, s->life == SB_LIFE_STOPPING ? s->life : SB_LIFE_STOPPING,
			err);
		if (r == 0)
			r = sb_sandbox_sync_held(sb, SB_WAY_FROM_RUNTIME, &o, call, &res, err);
		if (r < 0) {
			(void)sb_record_save(sb, SB_LIFE_UNSYNCED, NULL);
			return sb_wrap(err, SB_E_UNSYNCED,
				"sandbox %s holds work that is not synced back", s->sandbox_id);
		}
		r = sb_record_save(sb, SB_LIFE_STOPPED, err);
		if (r < 0)
			return r;
	}
	if (s->life == SB_LIFE_DESTROYED) {
		/* The sandbox is gone; this start makes a new one. */
		free(s->instance_id);
		free(s->provider_state);
		s->instance_id = s->provider_state = NULL;
		s->prepared_at = s->last_sync_at = 0;
	}
	return 0;
}

static int
enter(struct sb_sandbox *sb, const struct sb_start_opts *o, const struct sb_call *call,
	struct sb_error *err)
{
	char id[SB_SANDBOX_ID_MAX + 1];
	int r = sb_profile_copy(o->profile, &sb->profile, err);

	sb->provider = r < 0 ? NULL : sb_registry_get(sb->k->registry, o->profile->backend, err);
	if (!sb->provider)
		return r < 0 ? r : SB_E_PROVIDER_MISSING;
	r = check_options(sb->provider, o->profile, err);
	if (r == 0)
		r = sb_provider_check_archive(sb->provider, o->profile, err);
	if (r == 0 && o->sandbox_id)
		(void)snprintf(id, sizeof id, "%s", o->sandbox_id);
	else if (r == 0)
		r = sb_sandbox_id_new(id, err);
	if (r == 0 && o->sandbox_id && !sb_sandbox_id_ok(o->sandbox_id))
		r = sb_fail(err, SB_E_INVAL,
			"\"%s\" is not a sandbox id: use at most 64 letters, digits, '-', '_' and "
			"'.'",
			o->sandbox_id);
	if (r == 0)
		r = set_text(&sb->state.sandbox_id, id, err);
	if (r < 0)
		return r;
	sb_record_prune(sb->k);
	sb->dirfd = sb_record_open(sb->k, id, true, err);
	if (sb->dirfd < 0)
		return sb->dirfd;
	r = sb_record_lock(sb, 0, err);
	if (r == 0)
		r = check_same(sb, o, err);
	if (r == 0)
		r = make_way(sb, call, err);
	sb->fresh = !sb->state.instance_id;
	/* What somebody kept, or put away, stays so until somebody destroys it. */
	sb->was_kept = !sb->fresh && !sb->state.destroy_on_stop;
	sb->was_archived =
		!sb->fresh && sb->state.destroy_on_stop && sb->state.persist == SB_PERSIST_ARCHIVE;
	if (r == 0)
		r = describe(sb, o, err);
	return r;
}

/* Copies what the provider filled in into the record and leaves the rest as it was. */
static int
take_prepared(struct sb_sandbox *sb, struct sb_error *err)
{
	struct sb_state *s = &sb->state, *p = &sb->prepared.state;
	int r = sb_state_check(p, err);

	if (r == 0 && strcmp(p->sandbox_id, s->sandbox_id) != 0)
		r = sb_fail(err, SB_E_IDENTITY, "the provider prepared %s instead of %s",
			p->sandbox_id, s->sandbox_id);
	if (r == 0 && (!sb->prepared.launcher || !sb->prepared.tools))
		r = sb_fail(err, SB_E_PROVIDER_NULL, "the provider gave no %s",
			sb->prepared.launcher ? "tool host" : "launcher");
	if (r == 0)
		r = set_text(&s->instance_id, p->instance_id ? p->instance_id : s->instance_id,
			err);
	if (r == 0)
		r = set_text(&s->runtime_root, p->runtime_root, err);
	if (r == 0)
		r = set_text(&s->provider_state, p->provider_state, err);
	if (r < 0)
		return r;
	sb_strlist_free(&s->runtime_dirs);
	sb_strlist_join(&s->runtime_dirs, &p->runtime_dirs);
	s->access_expires_at = p->access_expires_at;
	s->prepared_at = p->prepared_at ? p->prepared_at : time(NULL);
	return sb_strlist_check(&s->runtime_dirs, err);
}

static int
add_answer(struct sb_sandbox *sb, const struct sb_hook_answer *a, struct sb_error *err)
{
	int r;

	/* Each once, however often the sandbox is started again. */
	for (size_t i = 0; i < a->exclude.n; i++)
		if (!sb_strlist_has(sb_strlist_borrow(&sb->state.excludes), a->exclude.v[i]))
			sb_strlist_add(&sb->state.excludes, a->exclude.v[i]);
	r = sb_strlist_check(&sb->state.excludes, err);
	return r < 0 ? r : keep_env(sb, sb_strlist_borrow(&a->env), &sb->state.hook_env, err);
}

static int
prepare(struct sb_sandbox *sb, const struct sb_call *call, struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, sb->profile.prepare_timeout_ms);
	struct sb_prepare_request req;
	struct sb_hook_info info = { .event = "prepare", .state = &sb->state };
	sb_auto(sb_hook_answer) struct sb_hook_answer said = { 0 };
	struct sb_event_span e;
	int r = sb_hook_run(sb, &info, call, &said, err);

	if (r == 0)
		r = add_answer(sb, &said, err);
	if (r < 0)
		return r;
	sb_sandbox_request(sb, &req);
	e = sb_event_begin(sb, "prepare", NULL, NULL);
	r = sb_provider_prepare(sb->provider, &req, &within, &sb->prepared, err);
	if (r == 0)
		r = take_prepared(sb, err);
	return sb_event_end(&e, r, err, NULL);
}

/* The patterns that a sandbox of an earlier session does not know yet. */
static int
new_excludes(const struct sb_sandbox *sb, struct sb_strlist *out, struct sb_error *err)
{
	for (size_t i = 0; !sb->fresh && i < sb->state.excludes.n; i++)
		if (!sb_strlist_has(sb_strlist_borrow(&sb->had), sb->state.excludes.v[i]))
			sb_strlist_add(out, sb->state.excludes.v[i]);
	return sb_strlist_check(out, err);
}

static int
start_held(struct sb_sandbox *sb, const struct sb_call *call, struct sb_sync_result *synced,
	struct sb_error *err)
{
	struct sb_provider_sync so = SB_PROVIDER_SYNC_INIT;
	struct sb_hook_info info = { .event = "ready", .state = &sb->state };
	struct sb_call within = sb_call_within(call, sb->profile.sync_timeout_ms);
	sb_auto(sb_hook_answer) struct sb_hook_answer said = { 0 };
	sb_auto(sb_strlist) struct sb_strlist excludes = { 0 };
	int r;

	sb_state_own(&sb->state, true);
	/* Recorded before the provider is asked, so that recovery finds it after a crash. */
	r = sb_record_save(sb, SB_LIFE_CREATING, err);
	if (r == 0)
		r = prepare(sb, call, err);
	if (r == 0)
		r = sb_record_save(sb, SB_LIFE_PREPARED, err);
	if (r == 0)
		r = new_excludes(sb, &excludes, err);
	if (r == 0) {
		so.reason = SB_WHEN_START;
		so.excludes = sb_strlist_borrow(&excludes);
		r = sb_sandbox_sync_held(sb, SB_WAY_TO_RUNTIME, &so, &within, synced, err);
	}
	if (r == 0)
		r = sb_hook_run(sb, &info, call, &said, err);
	if (r == 0)
		r = add_answer(sb, &said, err);
	/* Recorded as active before anything can run there. */
	return r < 0 ? r : sb_record_save(sb, SB_LIFE_ACTIVE, err);
}

/*
 * Removes what this start made, whatever its policy: nothing ran yet, so it holds only copies. True
 * when nothing of it is left over there.
 */
static bool
remove_fresh(struct sb_sandbox *sb, const struct sb_error *why)
{
	struct sb_call within = sb_call_within(NULL, 10000);
	struct sb_event_span e = sb_event_begin(sb, "destroy", NULL, NULL);
	struct sb_state gone = sb->state;
	struct sb_error err = { 0 };
	int r;

	gone.persist = SB_PERSIST_TRANSIENT;
	r = sb_event_end(&e, sb_provider_destroy(sb->provider, &gone, true, &within, &err), &err,
		NULL);
	/* Nobody ever answered: there is no one who could have made anything. */
	return r == 0 ||
		(!gone.instance_id && sb_record_unreachable(why->code) && sb_record_unreachable(r));
}

static void
take_back(struct sb_sandbox *sb, const struct sb_error *why)
{
	enum sb_life life = sb->state.life;

	free(sb->state.last_error);
	sb->state.last_error = strdup(why->msg);
	sb_state_own(&sb->state, false);
	sb_prepared_free(&sb->prepared);
	if (sb->fresh && (life == SB_LIFE_CREATING || life == SB_LIFE_PREPARED)) {
		if (remove_fresh(sb, why)) {
			sb->state.ended_at = time(NULL);
			life = SB_LIFE_DESTROYED;
		}
	} else if (life == SB_LIFE_PREPARED) {
		life = SB_LIFE_STOPPED;
	}
	if (life != sb->state.life || life == SB_LIFE_CREATING)
		(void)sb_record_save(sb, life, NULL);
}

int
sb_sandbox_start(struct sb_keeper *k, const struct sb_start_opts *o, const struct sb_call *call,
	struct sb_sandbox **out, struct sb_sync_result *synced, struct sb_error *err)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = sb_sandbox_new(k, err);
	sb_auto(sb_sync_result) struct sb_sync_result own = { 0 };
	struct sb_error why = { 0 };
	int r;

	if (synced)
		memset(synced, 0, sizeof *synced);
	if (!sb)
		return SB_E_NOMEM;
	if (!err)
		err = &why;
	r = sb_call_check(call, "start", err);
	if (r == 0)
		r = enter(sb, o, call, err);
	if (r < 0)
		return r;
	r = start_held(sb, call, &own, err);
	if (r < 0)
		take_back(sb, err);
	sb_record_unlock(sb);
	if (r < 0)
		return r;
	if (synced) {
		*synced = own;
		memset(&own, 0, sizeof own);
	}
	*out = sb_steal(&sb);
	return 0;
}
