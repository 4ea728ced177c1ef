/* SPDX-License-Identifier: MIT */
/* sbctl trust: gives, shows, lists and takes back consent to project files. */
#include "config.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/str.h>
#include <bin/sbctl/options.h>

struct asking {
	struct ctl *ctl;
	bool asked, given;
};

/* The command is the consent, but on a terminal the user sees first what it is to. */
static bool
ask(const struct sb_consent *c, void *arg)
{
	struct asking *a = arg;

	a->asked = true;
	if (a->ctl->a.yes) {
		if (!a->ctl->a.quiet)
			ctl_consent_show(c, stdout);
		a->given = true;
	} else {
		a->given = ctl_consent_ask(c, a->ctl);
	}
	return a->given;
}

static void
set_up(const struct ctl *ctl, struct sb_profiles_opts *o)
{
	*o = (struct sb_profiles_opts)SB_PROFILES_OPTS_INIT;
	o->user_file = ctl->a.config;
	o->project_dir = ctl->a.n ? ctl->a.v[0] : ".";
	o->registry = ctl->registry;
}

static int
give(struct ctl *ctl, struct sb_error *err)
{
	struct asking a = { .ctl = ctl };
	struct sb_profiles_opts o;
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;
	sb_autofree char *effects = NULL;
	const char *what;

	set_up(ctl, &o);
	o.on_consent = ask;
	o.consent_arg = &a;
	ps = sb_profiles_load(&o, err);
	if (!ps && a.asked && !a.given && !isatty(STDIN_FILENO))
		return sb_fail(err, SB_E_UNTRUSTED,
			"there is no terminal to ask on: look at it with --show, then say --yes");
	if (!ps && a.asked && !a.given)
		return sb_fail(err, SB_E_UNTRUSTED, "it is not trusted: nothing changed");
	if (!ps)
		return err->code;
	effects = sb_profiles_effects(ps, err);
	if (!effects)
		return err->code;
	what = a.given     ? "trusted from now on" :
		effects[0] ? "was trusted already" :
			     "there is no .sandbox.yaml that says anything";
	if (!ctl->a.quiet)
		(void)printf("%s: %s\n", o.project_dir, what);
	return 0;
}

static int
show(struct ctl *ctl, struct sb_error *err)
{
	struct sb_profiles_opts o;
	sb_auto(sb_profiles) struct sb_profiles *ps = NULL;
	sb_autofree char *effects = NULL;
	static const char *const words[] = { "not trusted", "not trusted: changed since you were",
		"trusted" };

	set_up(ctl, &o);
	o.inspect = true;
	ps = sb_profiles_load(&o, err);
	effects = ps ? sb_profiles_effects(ps, err) : NULL;
	if (!effects)
		return err->code;
	if (!effects[0])
		(void)printf("%s: there is no .sandbox.yaml that says anything\n", o.project_dir);
	else
		(void)printf("%s/.sandbox.yaml (%s)\n%s", o.project_dir,
			words[sb_profiles_trust(ps)], effects);
	return 0;
}

static int
list(struct ctl *ctl, struct sb_error *err)
{
	struct sb_trust_entry *v = NULL;
	json_t *all = json_array();
	size_t n = 0;
	int r = sb_trust_list(NULL, &v, &n, err);

	for (size_t i = 0; r == 0 && i < n; i++) {
		char when[32] = "", file[CTL_SHOWN];
		time_t at = (time_t)v[i].at_s;
		struct tm tm;

		if (ctl->a.json)
			(void)json_array_append_new(all,
				json_pack("{s:o, s:s, s:I}", "file", ctl_json_text(v[i].file),
					"sha256", v[i].digest, "at", (json_int_t)v[i].at_s));
		else if (gmtime_r(&at, &tm) && strftime(when, sizeof when, "%Y-%m-%d %H:%M", &tm))
			(void)printf("%s  %.12s  %s\n", when, v[i].digest,
				ctl_safe(v[i].file, file));
	}
	if (r == 0 && ctl->a.json)
		ctl_print_json(all, stdout);
	json_decref(all);
	sb_trust_entries_free(v, n);
	return r;
}

static int
take_back(struct ctl *ctl, struct sb_error *err)
{
	sb_autofree char *file = sb_str_printf("%s/.sandbox.yaml", ctl->a.n ? ctl->a.v[0] : ".");
	size_t n = 0;
	int r = file ? sb_trust_revoke(NULL, file, &n, err) :
		       sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r == 0 && !ctl->a.quiet)
		(void)printf("%s: %s\n", file, n ? "not trusted any more" : "was not trusted");
	return r;
}

static int
trust_verb(struct ctl *ctl, struct sb_error *err)
{
	const struct ctl_args *a = &ctl->a;

	if (a->list + a->show + a->revoke + a->yes > 1)
		return sb_fail(err, SB_E_USAGE, "use one of --list, --show, --revoke and --yes");
	return a->list    ? list(ctl, err) :
		a->show   ? show(ctl, err) :
		a->revoke ? take_back(ctl, err) :
			    give(ctl, err);
}

static const struct sb_opt options[] = {
	OPT_FLAG('y', "yes", yes, "do not ask"),
	OPT_FLAG(0, "show", show, "show what the file does and whether it is trusted"),
	OPT_FLAG(0, "revoke", revoke, "take consent back, to every content"),
	OPT_FLAG(0, "list", list, "list what is trusted"),
	OPT_TEXT(0, "config", config, "FILE", "read profiles from FILE, not from the user's file"),
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_trust = {
	.cmd = {
		.name = "trust",
		.args = "[DIR]",
		.help = "consent to the .sandbox.yaml of a directory as it is now",
		.details = "A sandbox shares the workspace and may have written the file, so it "
			   "counts only while it has exactly the content that you consented to.",
		.opts = options,
		.max_args = 1,
	},
	.run = trust_verb,
};
