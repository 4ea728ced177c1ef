/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/params.h>

#include <assert.h>
#include <string.h>

int
sb_params_parse(const char *tool, const char *text, size_t len, struct sb_params *out,
	struct sb_error *err)
{
	json_error_t je;
	int r;

	*out = (struct sb_params){ .tool = tool, .spec = sb_toolspec_find(tool) };
	if (!out->spec)
		return sb_fail(err, SB_E_TOOL_UNKNOWN, "%s: %.80s", sb_code_text(SB_E_TOOL_UNKNOWN),
			tool);
	out->v = json_loadb(text, len, JSON_REJECT_DUPLICATES, &je);
	if (!out->v)
		return sb_fail(err, SB_E_INVAL, "params of %s: %s", tool, je.text);
	r = json_is_object(out->v) ? sb_toolspec_check(out->spec, tool, out->v, err) :
				     sb_fail(err, SB_E_INVAL, "params of %s: not an object", tool);
	if (r < 0)
		sb_params_free(out);
	return r;
}

void
sb_params_free(struct sb_params *p)
{
	json_decref(p->v);
	*p = (struct sb_params){ 0 };
}

static const struct sb_toolspec_param *
find(const struct sb_params *p, const char *name)
{
	const struct sb_toolspec_param *t = p->spec->params;

	while (t->name && strcmp(t->name, name) != 0)
		t++;
	assert(t->name);
	return t;
}

const char *
sb_params_str(const struct sb_params *p, const char *name)
{
	return json_string_value(sb_toolspec_value(find(p, name), p->v));
}

int64_t
sb_params_int(const struct sb_params *p, const char *name)
{
	const struct sb_toolspec_param *t = find(p, name);
	const json_t *v = sb_toolspec_value(t, p->v);

	return v ? (int64_t)json_number_value(v) : t->def;
}

bool
sb_params_bool(const struct sb_params *p, const char *name)
{
	return json_is_true(sb_toolspec_value(find(p, name), p->v));
}

const json_t *
sb_params_list(const struct sb_params *p, const char *name)
{
	return sb_toolspec_value(find(p, name), p->v);
}
