/* SPDX-License-Identifier: MIT */
/*
 * The state of a sandbox: its table of fields, and copies and checks by it (declared in
 * sb/state.h).
 */
#include "config.h"

#include <sb/state.h>

#include <stdlib.h>
#include <string.h>

#include <provider/provider.h>
#include <provider/state-json.h>

#define AT(f) offsetof(struct sb_state, f)

const struct state_field sb_state_fields[] = {
	{ "sandbox_id", STATE_TEXT, AT(sandbox_id), NULL },
	{ "session_id", STATE_TEXT, AT(session_id), NULL },
	{ "workspace_id", STATE_TEXT, AT(workspace_id), NULL },
	{ "backend", STATE_WORD, AT(backend), sb_backend_words },
	{ "profile", STATE_TEXT, AT(profile), NULL },
	{ "state", STATE_WORD, AT(life), sb_life_words },
	{ "instance_id", STATE_TEXT, AT(instance_id), NULL },
	{ "local_root_dir", STATE_TEXT, AT(local_root), NULL },
	{ "local_additional_dirs", STATE_TEXTS, AT(local_dirs), NULL },
	{ "runtime_root_dir", STATE_TEXT, AT(runtime_root), NULL },
	{ "runtime_additional_dirs", STATE_TEXTS, AT(runtime_dirs), NULL },
	{ "sync_mode", STATE_WORD, AT(sync_mode), sb_sync_mode_words },
	{ "persistence", STATE_WORD, AT(persist), sb_persist_words },
	{ "destroy_on_stop", STATE_BOOL, AT(destroy_on_stop), NULL },
	{ "permissions", STATE_WORD, AT(permissions), sb_perm_mode_words },
	{ "excludes", STATE_TEXTS, AT(excludes), NULL },
	{ "options", STATE_TEXTS, AT(options), NULL },
	{ "settings", STATE_JSON, AT(settings), NULL },
	{ "agent_command", STATE_TEXT, AT(agent_command), NULL },
	{ "agent_env", STATE_TEXTS, AT(agent_env), NULL },
	{ "hook_env", STATE_TEXTS, AT(hook_env), NULL },
	{ "resume_acp_state", STATE_TEXT, AT(resume_acp_state), NULL },
	{ "provider_state", STATE_JSON, AT(provider_state), NULL },
	{ "ssh_access_expires_at", STATE_I64, AT(access_expires_at), NULL },
	{ "created_at", STATE_I64, AT(created_at), NULL },
	{ "prepared_at", STATE_I64, AT(prepared_at), NULL },
	{ "ended_at", STATE_I64, AT(ended_at), NULL },
	{ "last_sync_at", STATE_I64, AT(last_sync_at), NULL },
	{ "last_sync_error", STATE_TEXT, AT(last_sync_error), NULL },
	{ "last_error", STATE_TEXT, AT(last_error), NULL },
	{ "owner_pid", STATE_I64, AT(owner_pid), NULL },
	{ "owner_start", STATE_U64, AT(owner_start), NULL },
	{ "exit_code", STATE_INT, AT(exit_code), NULL },
	{ "command", STATE_TEXT, AT(command), NULL },
	{ NULL, STATE_TEXT, 0, NULL },
};

static bool
is_text(const struct state_field *f)
{
	return f->kind == STATE_TEXT || f->kind == STATE_JSON;
}

void
sb_state_free(struct sb_state *s)
{
	for (const struct state_field *f = sb_state_fields; f->name; f++) {
		void *at = (char *)s + f->at;

		if (is_text(f))
			free(*(char **)at);
		else if (f->kind == STATE_TEXTS)
			sb_strlist_free(at);
	}
	free(s->unknown);
	*s = (struct sb_state)SB_STATE_INIT;
}

static int
copy_text(char *const *from, char **to, struct sb_error *err)
{
	*to = *from ? strdup(*from) : NULL;
	return *from && !*to ? sb_fail(err, SB_E_NOMEM, "state of a sandbox: out of memory") : 0;
}

int
sb_state_copy(const struct sb_state *s, struct sb_state *out, struct sb_error *err)
{
	struct sb_state c = *s;
	int r = copy_text(&s->unknown, &c.unknown, err);

	for (const struct state_field *f = sb_state_fields; f->name; f++) {
		const void *from = (const char *)s + f->at;
		void *to = (char *)&c + f->at;

		/*
		 * After a failure the rest is emptied, so that freeing the copy does not touch the
		 * original.
		 */
		if (is_text(f)) {
			*(char **)to = NULL;
			if (r == 0)
				r = copy_text(from, to, err);
		} else if (f->kind == STATE_TEXTS) {
			*(struct sb_strlist *)to = (struct sb_strlist){ 0 };
			sb_strlist_join(to, from);
			if (r == 0)
				r = sb_strlist_check(to, err);
		}
	}
	if (r < 0)
		sb_state_free(&c);
	else
		*out = c;
	return r;
}

int
sb_state_check(const struct sb_state *s, struct sb_error *err)
{
	size_t here = s->local_dirs.n, there = s->runtime_dirs.n;

	if (!sb_sandbox_id_ok(s->sandbox_id))
		return sb_fail(err, SB_E_INVAL, "state of a sandbox: \"%s\" is not a sandbox id",
			s->sandbox_id ? s->sandbox_id : "");
	if ((unsigned)s->backend >= SB_BACKEND_COUNT)
		return sb_fail(err, SB_E_BACKEND_INVALID, "sandbox %s: backend %d is not known",
			s->sandbox_id, (int)s->backend);
	if (!s->runtime_root || !s->runtime_root[0])
		return sb_fail(err, SB_E_INVAL, "sandbox %s: there is no runtime root",
			s->sandbox_id);
	if (here != there)
		return sb_fail(err, SB_E_INVAL,
			"sandbox %s: %zu local directories for %zu in the runtime", s->sandbox_id,
			here, there);
	return 0;
}

/* A list to copy from; not to be freed. */
static struct sb_strlist
borrowed(const char *const *v)
{
	return (struct sb_strlist){ .v = (char **)(uintptr_t)v, .n = sb_strlist_count(v) };
}

int
sb_state_from_request(const struct sb_prepare_request *req, struct sb_state *out,
	struct sb_error *err)
{
	const struct sb_profile *p = req->profile;
	/* Borrowed for the copy below. */
	struct sb_state s = { .exit_code = -1,
		.backend = p->backend,
		.life = SB_LIFE_READY,
		.sync_mode = p->sync_mode,
		.persist = p->persist,
		.destroy_on_stop = p->destroy_on_stop,
		.permissions = req->permissions };

	s.sandbox_id = (char *)(uintptr_t)req->sandbox_id;
	s.session_id = (char *)(uintptr_t)req->session_id;
	s.workspace_id = (char *)(uintptr_t)req->workspace_id;
	s.instance_id = (char *)(uintptr_t)req->instance_id;
	s.local_root = (char *)(uintptr_t)req->local_root;
	s.local_dirs = borrowed(req->local_dirs);
	s.excludes = borrowed(req->excludes);
	s.agent_command = (char *)(uintptr_t)req->agent_command;
	s.agent_env = borrowed(req->agent_env);
	s.resume_acp_state = (char *)(uintptr_t)req->resume_acp_state;
	s.provider_state = (char *)(uintptr_t)req->provider_state;
	s.profile = p->name;
	s.options = p->options;
	return sb_state_copy(&s, out, err);
}

void
sb_states_free(struct sb_state *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_state_free(&v[i]);
	free(v);
}
