/* SPDX-License-Identifier: MIT */
/* What is on record of sandboxes, for people or as JSON. */
#include "config.h"

#include <stdio.h>
#include <time.h>

#include <bin/sbctl/ctl.h>

static void
print_time(const char *name, int64_t t)
{
	char text[64];
	time_t when = (time_t)t;
	struct tm tm;

	if (t && gmtime_r(&when, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
		(void)printf("%-15s %s\n", name, text);
}

static void
print_text(const char *name, const char *value)
{
	char text[CTL_SHOWN];

	if (value && value[0])
		(void)printf("%-15s %s\n", name, ctl_safe(value, text));
}

/* The state as `sbctl --json` shows it: what is on record, and whether a process works with it. */
static json_t *
state_json(const struct sb_state *s)
{
	sb_autofree char *text = NULL;
	json_t *o = NULL;

	if (sb_state_encode(s, &text, NULL) == 0)
		o = json_loads(text, 0, NULL);
	(void)json_object_set_new(o, "owned", json_boolean(sb_state_owned(s)));
	return o;
}

void
ctl_show_state(const struct ctl *ctl, const struct sb_state *s)
{
	json_t *o;

	if (ctl->a.json) {
		o = state_json(s);
		ctl_print_json(o, stdout);
		json_decref(o);
		return;
	}
	print_text("sandbox", s->sandbox_id);
	print_text("state", sb_life_name(s->life));
	print_text("backend", sb_backend_name(s->backend));
	print_text("profile", s->profile);
	print_text("instance", s->instance_id);
	print_text("local", s->local_root);
	print_text("runtime", s->runtime_root);
	for (size_t i = 0; i < s->local_dirs.n; i++) {
		print_text("also local", s->local_dirs.v[i]);
		print_text("also runtime", i < s->runtime_dirs.n ? s->runtime_dirs.v[i] : "");
	}
	print_text("sync mode", sb_sync_mode_name(s->sync_mode));
	print_text("persistence", sb_persist_name(s->persist));
	print_text("at the end", s->destroy_on_stop ? "ended by its persistence" : "kept");
	print_text("command", s->command);
	if (s->exit_code >= 0)
		(void)printf("%-15s %d\n", "exit code", s->exit_code);
	if (sb_state_owned(s))
		(void)printf("%-15s process %lld\n", "owner", (long long)s->owner_pid);
	print_time("created", s->created_at);
	print_time("prepared", s->prepared_at);
	print_time("last sync", s->last_sync_at);
	print_text("sync error", s->last_sync_error);
	print_text("error", s->last_error);
	print_time("ended", s->ended_at);
}

void
ctl_show_states(const struct ctl *ctl, const struct sb_state *v, size_t n)
{
	json_t *all;
	char local[CTL_SHOWN], command[CTL_SHOWN];

	if (ctl->a.json) {
		all = json_array();
		for (size_t i = 0; i < n; i++)
			(void)json_array_append_new(all, state_json(&v[i]));
		ctl_print_json(all, stdout);
		json_decref(all);
		return;
	}
	if (n == 0 && !ctl->a.quiet)
		(void)printf("no sandboxes\n");
	else if (n > 0)
		(void)printf("%-20s %-9s %-8s %-6s %s\n", "SANDBOX", "STATE", "BACKEND", "OWNER",
			"LOCAL / COMMAND");
	for (size_t i = 0; i < n; i++) {
		char owner[24] = "-";

		if (sb_state_owned(&v[i]))
			(void)snprintf(owner, sizeof owner, "%lld", (long long)v[i].owner_pid);
		(void)printf("%-20s %-9s %-8s %-6s %s%s%.40s\n", v[i].sandbox_id,
			sb_life_name(v[i].life), sb_backend_name(v[i].backend), owner,
			ctl_safe(v[i].local_root, local), v[i].command ? " / " : "",
			ctl_safe(v[i].command, command));
	}
}
