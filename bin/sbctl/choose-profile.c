/* SPDX-License-Identifier: MIT */
/* The profile of `sbctl run`: from the files, changed by the options. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bin/sbctl/ctl.h>

static int
set_option(struct sb_profile *p, const char *pair, struct sb_error *err)
{
	if (!strchr(pair, '=') || *pair == '=')
		return sb_fail(err, SB_E_USAGE, "--set %s: write KEY=VALUE", pair);
	sb_strlist_put(&p->options, pair);
	return sb_strlist_check(&p->options, err);
}

static int
set_host(struct sb_profile *p, const char *host, struct sb_error *err)
{
	const char *at = strrchr(host, '@');

	if (at)
		sb_strlist_putf(&p->options, "user=%.*s", (int)(at - host), host);
	sb_strlist_putf(&p->options, "host=%s", at ? at + 1 : host);
	return sb_strlist_check(&p->options, err);
}

/* Options of the command line win over the profile. */
static int
apply_options(const struct ctl_args *a, struct sb_profile *p, struct sb_error *err)
{
	int r = 0;

	if (a->sync_mode)
		r = sb_sync_mode_parse(a->sync_mode, &p->sync_mode, err);
	if (r == 0 && a->persistence) {
		r = sb_persist_parse(a->persistence, &p->persist, err);
		p->destroy_on_stop = p->persist != SB_PERSIST_REUSE;
	}
	if (r == 0 && a->permissions)
		r = sb_perm_mode_parse(a->permissions, &p->permissions, err);
	if (r < 0)
		return sb_wrap(err, SB_E_USAGE, "options");
	if (a->network)
		r = sb_profile_set_network(p, a->network, err);
	if (r == 0 && a->host)
		r = set_host(p, a->host, err);
	for (size_t i = 0; r == 0 && i < a->set.n; i++)
		r = set_option(p, a->set.v[i], err);
	return r;
}

/* Neither options nor files say where to run: takes the sandbox host if there is one. */
static int
default_profile(struct ctl *ctl, struct sb_profile *out, struct sb_error *err)
{
	if (sb_registry_get(ctl->registry, SB_BACKEND_HOST, NULL))
		return sb_profile_default(SB_BACKEND_HOST, NULL, out, err);
	return sb_fail(err, SB_E_USAGE,
		"say where to run: --profile NAME, --backend ssh --host HOST, or --backend local "
		"(no isolation)");
}

/*
 * A sandbox host that does not isolate is no sandbox: it takes the word "none", of the user here or
 * of the operator there, and is told of even then.
 */
static int
check_isolation(struct ctl *ctl, const struct sb_profile *p, struct sb_error *err)
{
	struct sb_provider *host = p->backend == SB_BACKEND_HOST ?
		sb_registry_get(ctl->registry, SB_BACKEND_HOST, NULL) :
		NULL;
	const char *const *options = sb_strlist_borrow(&p->options);
	const char *runtime = sb_strlist_get(options, "runtime");
	struct sb_capabilities c = SB_CAPABILITIES_INIT;
	bool there = sb_strlist_get(options, "url") != NULL;

	if (!host || sb_provider_capabilities(host, p, &c, NULL) < 0 ||
		strcmp(c.isolation, "none") != 0)
		return 0;
	if (!there && (!runtime || strcmp(runtime, "none") != 0))
		return sb_fail(err, SB_E_UNSUPPORTED,
			"nothing on this machine isolates a command: install bubblewrap, or write "
			"--set runtime=none to run it with your rights, on a copy");
	(void)fprintf(stderr, "sbctl: warning: no isolation: the command runs with %s\n",
		there ? "the rights of that host's daemon" :
			"your rights, on a copy; install bubblewrap for a sandbox");
	return 0;
}

int
ctl_choose_profile(struct ctl *ctl, struct sb_profile *out, struct sb_error *err)
{
	struct sb_profiles_opts o = SB_PROFILES_OPTS_INIT;
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;
	enum sb_backend backend;
	int r;

	if (ctl->a.backend && ctl->a.profile)
		return sb_fail(err, SB_E_USAGE,
			"--profile and --backend exclude each other: a profile names its backend");
	o.user_file = ctl->a.config;
	if (!ctl->a.no_project)
		o.project_dir = ctl->a.dir ? ctl->a.dir : ".";
	o.registry = ctl->registry;
	o.on_consent = ctl_consent_ask;
	o.consent_arg = ctl;
	if (ctl->a.backend) {
		if (sb_backend_parse(ctl->a.backend, &backend, err) < 0)
			return sb_wrap(err, SB_E_USAGE, "--backend");
		r = sb_profile_default(backend, NULL, out, err);
	} else {
		ps = sb_profiles_load(&o, err);
		if (!ps)
			return err->code;
		r = ctl->a.profile || sb_profiles_chosen(ps) ?
			sb_profiles_get(ps, ctl->a.profile, out, err) :
			default_profile(ctl, out, err);
	}
	if (r == 0) {
		r = apply_options(&ctl->a, out, err);
		if (r == 0)
			r = check_isolation(ctl, out, err);
		if (r < 0)
			sb_profile_free(out);
	}
	/* A local sandbox has nothing to remove; ending it keeps it out of later lists. */
	if (r == 0 && out->backend == SB_BACKEND_LOCAL && out->persist == SB_PERSIST_TRANSIENT)
		out->destroy_on_stop = true;
	return r;
}
