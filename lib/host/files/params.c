/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/params.h>

#include <string.h>

int
sb_params_parse(const char *tool, const char *text, size_t len, struct sb_params *out,
	struct sb_error *err)
{
	json_error_t je;

	*out = (struct sb_params){ .tool = tool };
	out->v = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	if (!out->v)
		return sb_fail(err, SB_E_INVAL, "params of %s: %s", tool, je.text);
	if (json_is_object(out->v))
		return 0;
	sb_params_free(out);
	return sb_fail(err, SB_E_INVAL, "params of %s: not an object", tool);
}

void
sb_params_free(struct sb_params *p)
{
	json_decref(p->v);
	*p = (struct sb_params){ 0 };
}

int
sb_params_str(const struct sb_params *p, const char *name, const char *alias, bool required,
	const char **out, struct sb_error *err)
{
	const json_t *v = json_object_get(p->v, name);

	if (!v && alias)
		v = json_object_get(p->v, alias);
	*out = json_string_value(v);
	if (v && !json_is_null(v) && (!*out || strlen(*out) != json_string_length(v)))
		return sb_fail(err, SB_E_INVAL, "%s %s must be text", p->tool, name);
	if (required && !*out)
		return sb_fail(err, SB_E_INVAL, "%s %s is required", p->tool, name);
	return 0;
}

int
sb_params_int(const struct sb_params *p, const char *name, int64_t def, int64_t min, int64_t max,
	int64_t *out, struct sb_error *err)
{
	const json_t *v = json_object_get(p->v, name);

	*out = def;
	if (!v || json_is_null(v))
		return 0;
	if (!json_is_number(v) || json_number_value(v) < (double)min ||
		json_number_value(v) > (double)max)
		return sb_fail(err, SB_E_INVAL, "%s %s must be in range [%lld,%lld]", p->tool, name,
			(long long)min, (long long)max);
	*out = (int64_t)json_number_value(v);
	return 0;
}

int
sb_params_bool(const struct sb_params *p, const char *name, bool *out, struct sb_error *err)
{
	const json_t *v = json_object_get(p->v, name);

	*out = json_is_true(v);
	if (v && !json_is_boolean(v) && !json_is_null(v))
		return sb_fail(err, SB_E_INVAL, "%s %s must be true or false", p->tool, name);
	return 0;
}
