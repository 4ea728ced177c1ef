/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PARAMS_H
#define SB_HOST_PARAMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/error.h>

/* The parameters of a tool call. */
struct sb_params {
	const char *tool; /* the name that messages begin with; borrowed */
	json_t *v;
};

/* `text` of `len` bytes must be a JSON object. SB_E_INVAL. */
int sb_params_parse(const char *tool, const char *text, size_t len, struct sb_params *out,
	struct sb_error *err);
void sb_params_free(struct sb_params *p);
SB_CLEANUP_VALUE(sb_params, sb_params_free)

/*
 * Read a parameter. A wrong type is SB_E_INVAL with "TOOL NAME must be ..."; a missing one is NULL
 * or `def`. `alias` may be NULL.
 */
int sb_params_str(const struct sb_params *p, const char *name, const char *alias, bool required,
	const char **out, struct sb_error *err);
int sb_params_int(const struct sb_params *p, const char *name, int64_t def, int64_t min,
	int64_t max, int64_t *out, struct sb_error *err);
int sb_params_bool(const struct sb_params *p, const char *name, bool *out, struct sb_error *err);

#endif
