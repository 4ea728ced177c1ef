/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PARAMS_H
#define SB_HOST_PARAMS_H

#include <base/cleanup.h>
#include <host/files/toolspec.h>

/* The parameters of a tool call, checked by what the tool takes. */
struct sb_params {
	const char *tool; /* the name that messages begin with; borrowed */
	const struct sb_toolspec *spec;
	json_t *v;
};

/*
 * `text` of `len` bytes must be a JSON object that fits the tool of that name: SB_E_INVAL, or
 * SB_E_TOOL_UNKNOWN.
 */
int sb_params_parse(const char *tool, const char *text, size_t len, struct sb_params *out,
	struct sb_error *err);
void sb_params_free(struct sb_params *p);
SB_CLEANUP_VALUE(sb_params, sb_params_free)

/*
 * A parameter by its name in the tool's table. One that is not given is NULL, false, or the number
 * that the table says.
 */
const char *sb_params_str(const struct sb_params *p, const char *name);
int64_t sb_params_int(const struct sb_params *p, const char *name);
bool sb_params_bool(const struct sb_params *p, const char *name);
/* A list, or a single text. */
const json_t *sb_params_list(const struct sb_params *p, const char *name);

#endif
