/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/box.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <bin/sbctl/sbctl.h>
#include <provider/provider.h>
#include <provider/state-json.h>

SB_CLEANUP_PTR(sb_profiles, sb_profiles_free)

static json_t *
options_json(const struct sb_provider_option *o)
{
	json_t *a = json_array();

	for (; o && o->name; o++)
		(void)json_array_append_new(a,
			json_pack("{s:s, s:s, s:s, s:b}", "name", o->name, "value", o->value,
				"help", o->help, "required", o->required));
	return a;
}

static json_t *
provider_json(const struct sb_provider *p, const struct sb_capabilities *c)
{
	return json_pack("{s:s, s:s, s:{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, "
			 "s:b, s:s}, s:o}",
		"backend", sb_backend_name(p->ops->backend), "name", p->ops->name, "capabilities",
		"remote", c->remote, "syncs", c->syncs, "embedded", c->embedded, "find", c->find,
		"archive", c->archive, "snapshots", c->snapshots, "rollback", c->rollback, "fork",
		c->fork, "pause", c->pause, "streaming", c->streaming, "tty", c->tty,
		"enforces_network", c->enforces_network, "isolation", c->isolation, "options",
		options_json(p->ops->options));
}

static int
providers(struct box *b, struct sb_error *err)
{
	struct sb_provider **v = NULL;
	json_t *all = json_array();
	size_t n = 0;
	int r = sb_registry_list(b->registry, &v, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct sb_capabilities c = SB_CAPABILITIES_INIT;

		r = sb_provider_capabilities(v[i], NULL, &c, err);
		if (r < 0)
			break;
		if (b->a.json) {
			(void)json_array_append_new(all, provider_json(v[i], &c));
			continue;
		}
		(void)printf("%-8s %s\n", sb_backend_name(v[i]->ops->backend), v[i]->ops->name);
		(void)printf("         isolation %s%s%s%s%s%s%s\n", c.isolation,
			c.syncs ? ", syncs" : "", c.snapshots ? ", snapshots" : "",
			c.rollback ? ", rollback" : "", c.fork ? ", fork" : "",
			c.pause ? ", pause" : "",
			c.enforces_network ? ", enforces the network policy" : "");
		for (const struct sb_provider_option *o = v[i]->ops->options; o && o->name; o++)
			(void)printf("         %s=%s: %s%s\n", o->name, o->value, o->help,
				o->required ? " (required)" : "");
	}
	if (r == 0 && b->a.json) {
		(void)json_dumpf(all, stdout, JSON_INDENT(2));
		(void)fputc('\n', stdout);
	}
	json_decref(all);
	free(v);
	return r;
}

static void
print_mistake(const char *file, size_t line, const char *text, void *arg)
{
	size_t *n = arg;

	(*n)++;
	(void)fprintf(stderr, "%s:%zu: %s\n", file, line, text);
}

/* How often a call says it goes wrong must not depend on how: one line each, all of them. */
static struct sb_profiles *
load(struct box *b, size_t *mistakes, struct sb_error *err)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;

	o.user_file = b->a.config;
	o.project_dir = b->a.dir ? b->a.dir : ".";
	o.registry = b->registry;
	o.on_mistake = print_mistake;
	o.mistake_arg = mistakes;
	return sb_profiles_load(&o, err);
}

static int
check(struct box *b, struct sb_error *err)
{
	size_t mistakes = 0;
	sb_auto(sb_profiles) struct sb_profiles *ps = load(b, &mistakes, err);

	if (mistakes)
		return BOX_FAILED;
	if (!ps)
		return err->code;
	if (!b->a.quiet)
		(void)printf("%zu profile%s, no mistakes\n", sb_profiles_count(ps),
			sb_profiles_count(ps) == 1 ? "" : "s");
	return 0;
}

static int
list(struct box *b, struct sb_error *err)
{
	size_t mistakes = 0;
	sb_auto(sb_profiles) struct sb_profiles *ps = load(b, &mistakes, err);
	const char *chosen = ps ? sb_profiles_chosen(ps) : NULL;

	if (!ps)
		return mistakes ? BOX_FAILED : err->code;
	for (size_t i = 0; i < sb_profiles_count(ps); i++) {
		const char *file = NULL;
		size_t line = 0;
		const struct sb_profile *p = sb_profiles_at(ps, i, &file, &line);

		(void)printf("%s %-16s %-8s %s:%zu\n",
			chosen && strcmp(chosen, p->name) == 0 ? "*" : " ", p->name,
			sb_backend_name(p->backend), file, line);
	}
	return 0;
}

static void
print_list(const char *name, char **v)
{
	char text[4096];

	for (size_t i = 0; v && v[i]; i++)
		(void)printf("%-15s %s\n", i ? "" : name,
			sb_escape(v[i], strlen(v[i]), text, sizeof text));
}

static int
show(struct box *b, struct sb_error *err)
{
	size_t mistakes = 0;
	sb_auto(sb_profiles) struct sb_profiles *ps = load(b, &mistakes, err);
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	int r = ps ? sb_profiles_get(ps, b->a.n > 1 ? b->a.v[1] : NULL, &p, err) : err->code;

	if (r < 0)
		return mistakes ? BOX_FAILED : r;
	(void)printf("%-15s %s\n%-15s %s\n%-15s %s\n%-15s %s\n%-15s %s\n%-15s %s\n", "profile",
		p.name, "backend", sb_backend_name(p.backend), "sync_mode",
		sb_sync_mode_name(p.sync_mode), "persistence", sb_persist_name(p.persist),
		"destroy_on_stop", p.destroy_on_stop ? "true" : "false", "permissions",
		sb_perm_mode_name(p.permissions));
	print_list("options", p.options);
	print_list("env", p.env);
	print_list("secret_env", p.secret_env);
	print_list("exclude", p.exclude);
	print_list("include", p.include);
	print_list("dirs", p.dirs);
	return 0;
}

static int
profile(struct box *b, struct sb_error *err)
{
	const char *what = b->a.n ? b->a.v[0] : "list";

	if (strcmp(what, "check") == 0)
		return check(b, err);
	if (strcmp(what, "list") == 0)
		return list(b, err);
	if (strcmp(what, "show") == 0)
		return show(b, err);
	return sb_fail(err, SB_E_USAGE, "sbctl profile has no \"%s\": use check, list or show",
		what);
}

static int
providers_main(void *values, int argc, char **argv)
{
	(void)values;
	return box_main(&sbctl_providers, argc, argv, providers);
}

static int
profile_main(void *values, int argc, char **argv)
{
	(void)values;
	return box_main(&sbctl_profile, argc, argv, profile);
}

static const struct sb_opt providers_opts[] = { BOX_COMMON };
static const struct sb_opt profile_opts[] = {
	{ 0, "config", SB_OPT_STRING, BOX_AT(config), "FILE",
		"profiles, instead of the user's file", NULL, 0, 0 },
	{ 'C', "directory", SB_OPT_STRING, BOX_AT(dir), "DIR", "work in DIR instead of here", NULL,
		0, 0 },
	BOX_COMMON,
};

const struct sb_cmd sbctl_providers = { .name = "providers",
	.args = "",
	.help = "the backends there are, and what they can",
	.opts = providers_opts,
	.run = providers_main };
const struct sb_cmd sbctl_profile = { .name = "profile",
	.args = "[list | show [NAME] | check]",
	.help = "profiles: list them, show one, look for mistakes",
	.opts = profile_opts,
	.max_args = 2,
	.run = profile_main };
