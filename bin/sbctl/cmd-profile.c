/* SPDX-License-Identifier: MIT */
/* sbctl profile: lists profiles, shows one, looks for mistakes. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <bin/sbctl/options.h>
#include <sb/control.h>

static void
print_mistake(const char *file, size_t line, const char *text, void *arg)
{
	size_t *n = arg;

	(*n)++;
	(void)fprintf(stderr, "%s:%zu: %s\n", file, line, text);
}

/* Loads the profiles and reports every mistake in them, one a line. */
static struct sb_profiles *
load(struct ctl *ctl, size_t *mistakes, struct sb_error *err)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;

	o.user_file = ctl->a.config;
	if (!ctl->a.no_project)
		o.project_dir = ctl->a.dir ? ctl->a.dir : ".";
	o.registry = ctl->registry;
	o.control_option = sb_control_option_check;
	o.on_mistake = print_mistake;
	o.mistake_arg = mistakes;
	o.inspect = true;
	return sb_profiles_load(&o, err);
}

/* Runs would refuse what is shown here: says so. */
static void
warn_of_no_consent(struct ctl *ctl, const struct sb_profiles *ps)
{
	if (sb_profiles_trust(ps) != SB_TRUST_GIVEN && !ctl->a.quiet)
		(void)fprintf(stderr,
			"sbctl: warning: you did not consent to the project's .sandbox.yaml: no "
			"run takes it before \"sbctl trust\"\n");
}

/* What of the network policy the backend cannot do: a mistake where nothing would start. */
static size_t
check_network(struct ctl *ctl, const struct sb_profiles *ps, size_t i)
{
	const char *file = NULL, *wrong = NULL;
	size_t line = 0;
	const struct sb_profile *p = sb_profiles_at(ps, i, &file, &line);
	const struct sb_network *n = &p->network;
	struct sb_provider *provider = sb_registry_get(ctl->registry, p->backend, NULL);
	struct sb_capabilities c = SB_CAPABILITIES_INIT;
	struct sb_error why = { 0 };

	if (!provider || sb_provider_capabilities(provider, p, &c, &why) < 0) {
		if (!ctl->a.quiet)
			(void)printf("%s: cannot tell what enforces its network policy: %s\n",
				p->name, provider ? why.msg : "there is no such backend");
		return 0;
	}
	if (n->allow_public_ingress)
		wrong = "gives no sandbox a public address (allow_public_ingress)";
	else if ((n->allow_list.n || n->deny_list.n) && !c.enforces_network)
		wrong = "cannot enforce the lists of the network policy here";
	else if (n->required && !c.enforces_network)
		wrong = "cannot enforce the network policy here, which is required";
	if (wrong)
		(void)fprintf(stderr, "%s:%zu: profile %s: backend %s %s: it would not start\n",
			file, line, p->name, sb_backend_name(p->backend), wrong);
	else if (!n->allow_outbound && !c.enforces_network && !ctl->a.quiet)
		(void)printf("%s: backend %s does not keep it off the network\n", p->name,
			sb_backend_name(p->backend));
	return wrong != NULL;
}

static int
check(struct ctl *ctl, struct sb_error *err)
{
	size_t mistakes = 0;
	sb_auto(sb_profiles) struct sb_profiles *ps = load(ctl, &mistakes, err);

	if (mistakes)
		return CTL_FAILED;
	if (!ps)
		return err->code;
	warn_of_no_consent(ctl, ps);
	for (size_t i = 0; i < sb_profiles_count(ps); i++)
		mistakes += check_network(ctl, ps, i);
	if (mistakes)
		return CTL_FAILED;
	if (!ctl->a.quiet)
		(void)printf("%zu profile%s, no mistakes\n", sb_profiles_count(ps),
			sb_profiles_count(ps) == 1 ? "" : "s");
	return 0;
}

static int
list(struct ctl *ctl, struct sb_error *err)
{
	size_t mistakes = 0;
	sb_auto(sb_profiles) struct sb_profiles *ps = load(ctl, &mistakes, err);
	const char *chosen = ps ? sb_profiles_chosen(ps) : NULL;

	if (!ps)
		return mistakes ? CTL_FAILED : err->code;
	warn_of_no_consent(ctl, ps);
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
print_list(const char *name, const struct sb_strlist *l)
{
	char text[4096];

	for (size_t i = 0; i < l->n; i++)
		(void)printf("%-15s %s\n", i ? "" : name,
			sb_escape(l->v[i], strlen(l->v[i]), text, sizeof text));
}

static int
show(struct ctl *ctl, struct sb_error *err)
{
	size_t mistakes = 0;
	sb_auto(sb_profiles) struct sb_profiles *ps = load(ctl, &mistakes, err);
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	int r = ps ? sb_profiles_get(ps, ctl->a.n > 1 ? ctl->a.v[1] : NULL, &p, err) : err->code;

	if (r < 0)
		return mistakes ? CTL_FAILED : r;
	warn_of_no_consent(ctl, ps);
	(void)printf("%-15s %s\n%-15s %s\n%-15s %s\n%-15s %s\n%-15s %s\n%-15s %s\n", "profile",
		p.name, "backend", sb_backend_name(p.backend), "sync_mode",
		sb_sync_mode_name(p.sync_mode), "persistence", sb_persist_name(p.persist),
		"destroy_on_stop", p.destroy_on_stop ? "true" : "false", "permissions",
		sb_perm_mode_name(p.permissions));
	print_list("options", &p.options);
	print_list("env", &p.env);
	print_list("secret_env", &p.secret_env);
	print_list("exclude", &p.exclude);
	print_list("include", &p.include);
	print_list("dirs", &p.dirs);
	(void)printf("%-15s %s%s\n", "network",
		p.network.allow_outbound || p.network.allow_list.n || p.network.deny_list.n ? "on" :
											      "off",
		p.network.required ? ", required" : "");
	print_list("allow_list", &p.network.allow_list);
	print_list("deny_list", &p.network.deny_list);
	return 0;
}

static int
profile_verb(struct ctl *ctl, struct sb_error *err)
{
	const char *what = ctl->a.n ? ctl->a.v[0] : "list";

	if (strcmp(what, "check") == 0)
		return check(ctl, err);
	if (strcmp(what, "list") == 0)
		return list(ctl, err);
	if (strcmp(what, "show") == 0)
		return show(ctl, err);
	return sb_fail(err, SB_E_USAGE, "sbctl profile has no \"%s\": use check, list or show",
		what);
}

static const struct sb_opt options[] = {
	OPTIONS_PROFILES,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_profile = {
	.cmd = {
		.name = "profile",
		.args = "[list | show [NAME] | check]",
		.help = "list profiles, show one, or look for mistakes",
		.opts = options,
		.max_args = 2,
	},
	.run = profile_verb,
};
