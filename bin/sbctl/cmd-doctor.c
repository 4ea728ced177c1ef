/* SPDX-License-Identifier: MIT */
/* sbctl doctor: tries a backend without making anything. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <base/strlist.h>
#include <bin/sbctl/options.h>

#define DOCTOR_MS 30000

/* What of the environment decides how services are reached. */
static void
tell_environment(void)
{
	static const char *const names[] = { "https_proxy", "HTTPS_PROXY", "http_proxy",
		"all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY", "CURL_CA_BUNDLE", "SSL_CERT_FILE",
		"SSL_CERT_DIR" };

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (getenv(names[i]))
			(void)printf("  %s is set\n", names[i]);
}

static void
tell_json(const struct sb_profile *p, const struct sb_strlist *lines, int r,
	const struct sb_error *err)
{
	json_t *right = json_array(), *o;

	for (size_t i = 0; i < lines->n; i++)
		(void)json_array_append_new(right, json_string(lines->v[i]));
	o = json_pack("{s:s, s:s, s:b, s:o}", "backend", sb_backend_name(p->backend), "profile",
		p->name, "works", r == 0, "right", right);
	if (r < 0)
		(void)json_object_set_new(o, "wrong", json_string(err->msg));
	(void)json_dumpf(o, stdout, JSON_INDENT(2));
	(void)fputc('\n', stdout);
	json_decref(o);
}

static void
tell(const struct sb_profile *p, const struct sb_strlist *lines)
{
	char text[CTL_SHOWN];

	(void)printf("backend %s, profile %s\n", sb_backend_name(p->backend),
		ctl_safe(p->name, text));
	tell_environment();
	for (size_t i = 0; i < lines->n; i++)
		(void)printf("  ok: %s\n", ctl_safe(lines->v[i], text));
	(void)fflush(stdout);
}

static int
probe(struct ctl *ctl, const struct sb_profile *p, struct sb_error *err)
{
	struct sb_provider *provider = sb_registry_get(ctl->registry, p->backend, err);
	struct sb_call call = ctl->call;
	sb_auto(sb_strlist) struct sb_strlist lines = { 0 };
	int r;

	if (!provider)
		return err->code;
	if (ctl->a.timeout <= 0)
		call = sb_call_within(&call, DOCTOR_MS);
	r = sb_provider_probe(provider, p, &call, &lines, err);
	if (ctl->a.json)
		tell_json(p, &lines, r, err);
	else if (!ctl->a.quiet)
		tell(p, &lines);
	return r;
}

static int
doctor_verb(struct ctl *ctl, struct sb_error *err)
{
	sb_auto(sb_profile) struct sb_profile p = { 0 };
	int r = ctl_choose_profile(ctl, &p, err);

	return r < 0 ? r : probe(ctl, &p, err);
}

static const struct sb_opt options[] = {
	OPT_TEXT('P', "profile", profile, "NAME", "profile to try"),
	OPT_TEXT('b', "backend", backend, "NAME", "backend, without a profile"),
	OPT_TEXT('H', "host", host, "[USER@]HOST", "same as --set host= and --set user="),
	OPT_LIST('s', "set", set, "KEY=VALUE", "option of the backend; may be repeated"),
	OPTIONS_PROFILES,
	OPTIONS_TIMEOUT,
	OPTIONS_COMMON,
	OPT_END,
};

const struct ctl_verb cmd_doctor = {
	.cmd = {
		.name = "doctor",
		.args = "",
		.help = "try a backend: key, account, machine; makes and changes nothing",
		.opts = options,
	},
	.run = doctor_verb,
};
