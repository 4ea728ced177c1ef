/* SPDX-License-Identifier: MIT */
/* Says in plain words what a file of profiles does, so that a user can consent to it. */
#include "config.h"

#include <provider/profiles.h>

#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <sb/log.h>

#define EFFECTS_MAX (64u << 10)

/* A value is shown to its end: what is cut off could be what matters. */
static void
line(struct sb_buf *b, const char *what, const char *value)
{
	size_t len = value ? strlen(value) : 0, size = 8 * len + 1;
	sb_autofree char *room = len < EFFECTS_MAX ? malloc(size) : NULL;

	if (!room)
		b->failed = b->failed ? b->failed : SB_E_FULL;
	else
		sb_buf_addf(b, "  %s%s%s\n", what, value ? ": " : "",
			value ? sb_escape(value, len, room, size) : "");
}

static void
lines(struct sb_buf *b, const char *what, const struct sb_strlist *l)
{
	for (size_t i = 0; i < l->n; i++)
		line(b, what, l->v[i]);
}

static void
network(struct sb_buf *b, const struct sb_network *w)
{
	if (w->allow_outbound)
		line(b, "  may reach the network", NULL);
	if (w->allow_public_ingress)
		line(b, "  may be reached from the network", NULL);
	lines(b, "  may reach", &w->allow_list);
	lines(b, "  may not reach", &w->deny_list);
}

static void
profile(struct sb_buf *b, const struct sb_profile *p)
{
	line(b, "defines the profile", p->name);
	line(b,
		p->backend == SB_BACKEND_LOCAL ?
			"  runs on this machine with your rights, without a sandbox" :
			"  runs in a sandbox of the backend",
		p->backend == SB_BACKEND_LOCAL ? NULL : sb_backend_name(p->backend));
	lines(b, "  with the option", &p->options);
	if (p->runtime_root)
		line(b, "  in the directory", p->runtime_root);
	if (p->persist != SB_PERSIST_TRANSIENT)
		line(b, "  is kept as", sb_persist_name(p->persist));
	else if (!p->destroy_on_stop)
		line(b, "  is not removed at the end", NULL);
	network(b, &p->network);
	if (p->permissions != SB_PERM_MODE_APPROVE_READS)
		line(b, "  answers requests of the agent by", sb_perm_mode_name(p->permissions));
	if (p->sync_mode == SB_SYNC_MODE_NONE && p->backend != SB_BACKEND_LOCAL)
		line(b, "  syncs nothing, neither there nor back", NULL);
	lines(b, "  does not sync", &p->exclude);
	lines(b, "  syncs nevertheless", &p->include);
	lines(b, "  also syncs the directory", &p->dirs);
	lines(b, "  sets the variable", &p->env);
	lines(b, "  hands out the secret", &p->secret_env);
	for (size_t i = 0; i < p->n_hooks; i++) {
		line(b, "  runs here, on the event", p->hooks[i].event);
		lines(b, "    word", &p->hooks[i].argv);
	}
}

char *
sb_profiles_effects_of(const struct sb_profiles *ps, const char *file, struct sb_error *err)
{
	bool project = ps->project_file && file == ps->project_file;
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	char *text;

	sb_buf_init(&b, EFFECTS_MAX);
	if (project && ps->disabled)
		line(&b, "disables the sandbox: commands run on this machine with your rights",
			NULL);
	if (project && ps->project_name)
		line(&b, "chooses the profile", ps->project_name);
	if (!project && ps->default_name)
		line(&b, "chooses the profile", ps->default_name);
	for (size_t i = 0; i < ps->n; i++)
		if (ps->v[i].file == file)
			profile(&b, &ps->v[i].p);
	if (project)
		lines(&b, "does not sync", &ps->exclude);
	if (project)
		lines(&b, "syncs nevertheless", &ps->include);
	/* What does not fit is a file nobody should consent to unread. */
	if (b.failed) {
		(void)sb_fail(err, SB_E_LIMIT, "%s says too much to be shown: make it shorter",
			file);
		return NULL;
	}
	text = strdup(b.len ? (const char *)b.data : "");
	if (!text)
		(void)sb_fail(err, SB_E_NOMEM, "profiles: out of memory");
	return text;
}

char *
sb_profiles_effects(const struct sb_profiles *ps, struct sb_error *err)
{
	return sb_profiles_effects_of(ps, ps->project_file, err);
}
