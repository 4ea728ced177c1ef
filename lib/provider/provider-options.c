/* SPDX-License-Identifier: MIT */
/* The options of a profile, as its provider's table has them; and a look without making anything.
 */
#include "config.h"

#include <provider/provider.h>

#include <string.h>

#include <base/buf.h>

static const struct sb_provider_option *
find(const struct sb_provider_option *all, const char *name, size_t len)
{
	for (; all && all->name; all++)
		if (strncmp(all->name, name, len) == 0 && !all->name[len])
			return all;
	return NULL;
}

static bool
is_right(const struct sb_provider_option *o, const char *value)
{
	for (size_t i = 0; o->choices && o->choices[i]; i++)
		if (strcmp(value, o->choices[i]) == 0)
			return true;
	return o->check ? o->check(value) : !o->choices;
}

static int
refuse(const char *backend, const struct sb_provider_option *all,
	const struct sb_provider_option *o, const char *pair, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf allowed = { 0 };
	int len = (int)strcspn(pair, "=");

	sb_buf_init(&allowed, 2048);
	for (; !o && all && all->name; all++)
		sb_buf_addf(&allowed, "%s%s", allowed.len ? ", " : "", all->name);
	for (size_t i = 0; o && o->choices && o->choices[i]; i++)
		sb_buf_addf(&allowed, "%s%s", i ? ", " : "", o->choices[i]);
	if (!o)
		return sb_fail(err, SB_E_INVAL, "%s has no option \"%.*s\": use %s", backend, len,
			pair, (const char *)allowed.data);
	return sb_fail(err, SB_E_INVAL, "option %s of %s is \"%s\": use %s", o->name, backend,
		pair + len + (pair[len] == '='),
		allowed.len ? (const char *)allowed.data : o->value);
}

int
sb_provider_options_check(const char *backend, const struct sb_provider_option *all,
	const char *const *options, struct sb_error *err)
{
	for (; options && *options; options++) {
		size_t len = strcspn(*options, "=");
		const struct sb_provider_option *o = find(all, *options, len);

		if (!o || !(*options)[len] || !is_right(o, *options + len + 1))
			return refuse(backend, all, o, *options, err);
	}
	return 0;
}

int
sb_provider_probe(struct sb_provider *p, const struct sb_profile *profile,
	const struct sb_call *call, struct sb_strlist *out, struct sb_error *err)
{
	const char *backend = sb_backend_name(p->ops->backend);
	int r = profile->backend != p->ops->backend ?
		sb_fail(err, SB_E_BACKEND_INVALID, "the profile is not one of backend %s",
			backend) :
		sb_call_check(call, "probe", err);

	if (r == 0)
		r = sb_provider_options_check(backend, p->ops->options,
			sb_strlist_borrow(&profile->options), err);
	if (r == 0 && !p->ops->probe)
		r = sb_fail(err, SB_E_UNSUPPORTED,
			"backend %s has nothing that could be tried without making a sandbox",
			backend);
	if (r == 0)
		r = p->ops->probe(p, profile, call, out, err);
	return r < 0 ? r : sb_strlist_check(out, err);
}
