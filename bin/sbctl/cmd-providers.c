/* SPDX-License-Identifier: MIT */
/* sbctl providers: the backends and their capabilities. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <bin/sbctl/options.h>

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

/* The user's profiles; NULL where they cannot be read, which is told. */
static struct sb_profiles *
load_profiles(struct ctl *ctl)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_profiles *ps;

	o.registry = ctl->registry;
	o.inspect = true;
	ps = sb_profiles_load(&o, &err);
	if (!ps)
		(void)fprintf(stderr, "sbctl: warning: %s\n", err.msg);
	return ps;
}

/* The names of the profiles of that backend. */
static json_t *
configured(const struct sb_profiles *ps, enum sb_backend backend)
{
	json_t *names = json_array();

	for (size_t i = 0; ps && i < sb_profiles_count(ps); i++) {
		const struct sb_profile *p = sb_profiles_at(ps, i, NULL, NULL);

		if (p->backend == backend)
			(void)json_array_append_new(names, json_string(p->name));
	}
	return names;
}

static void
print_configured(const struct sb_profiles *ps, enum sb_backend backend)
{
	json_t *names = configured(ps, backend), *one;
	char text[CTL_SHOWN];
	size_t i;

	json_array_foreach(names, i, one)(void) printf("%s%s%s",
		i ? ", " : "         profiles: ", ctl_safe(json_string_value(one), text),
		i + 1 == json_array_size(names) ? "\n" : "");
	json_decref(names);
}

static json_t *
provider_json(const struct sb_provider *p, const struct sb_capabilities *c,
	const struct sb_profiles *ps)
{
	return json_pack("{s:s, s:s, s:{s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, s:b, "
			 "s:b, s:b, s:s}, s:o, s:o}",
		"backend", sb_backend_name(p->ops->backend), "name", p->ops->name, "capabilities",
		"remote", c->remote, "syncs", c->syncs, "embedded", c->embedded, "find", c->find,
		"archive", c->archive, "snapshots", c->snapshots, "rollback", c->rollback, "fork",
		c->fork, "pause", c->pause, "streaming", c->streaming, "tty", c->tty,
		"enforces_network", c->enforces_network, "enforces_lists", c->enforces_lists,
		"isolation", c->isolation, "options", options_json(p->ops->options), "profiles",
		configured(ps, p->ops->backend));
}

static int
providers_verb(struct ctl *ctl, struct sb_error *err)
{
	struct sb_provider **v = NULL;
	sb_auto(sb_profiles) struct sb_profiles *ps = load_profiles(ctl);
	json_t *all = json_array();
	size_t n = 0;
	int r = sb_registry_list(ctl->registry, &v, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		struct sb_capabilities c = SB_CAPABILITIES_INIT;

		r = sb_provider_capabilities(v[i], NULL, &c, err);
		if (r < 0)
			break;
		if (ctl->a.json) {
			(void)json_array_append_new(all, provider_json(v[i], &c, ps));
			continue;
		}
		(void)printf("%-8s %s\n", sb_backend_name(v[i]->ops->backend), v[i]->ops->name);
		(void)printf("         isolation %s%s%s%s%s%s%s%s\n", c.isolation,
			c.syncs ? ", syncs" : "", c.snapshots ? ", snapshots" : "",
			c.rollback ? ", rollback" : "", c.fork ? ", fork" : "",
			c.pause ? ", pause" : "",
			c.enforces_network ? ", can keep a sandbox off the network" : "",
			c.enforces_lists ? ", enforces network lists" : "");
		print_configured(ps, v[i]->ops->backend);
		for (const struct sb_provider_option *o = v[i]->ops->options; o && o->name; o++)
			(void)printf("         %s=%s: %s%s\n", o->name, o->value, o->help,
				o->required ? " (required)" : "");
	}
	if (r == 0 && ctl->a.json) {
		(void)json_dumpf(all, stdout, JSON_INDENT(2));
		(void)fputc('\n', stdout);
	}
	json_decref(all);
	free(v);
	return r;
}

static const struct sb_opt options[] = {
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_providers = {
	.cmd = {
		.name = "providers",
		.args = "",
		.help = "list the backends and what each can do",
		.opts = options,
	},
	.run = providers_verb,
};
