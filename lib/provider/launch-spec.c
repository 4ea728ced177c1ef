/* SPDX-License-Identifier: MIT */
/* Takes the command and the environment out of a launch spec (declared in provider/launchers.h). */
#include "config.h"

#include <provider/launchers.h>

#include <sb/profile.h>
#include <tool/environ.h>

int
sb_launch_words(const struct sb_launch_spec *spec, struct sb_strlist *out, struct sb_error *err)
{
	if (spec->argv && spec->argv[0]) {
		sb_strlist_add_all(out, spec->argv);
		return sb_strlist_check(out, err);
	}
	return sb_command_split(spec->command ? spec->command : "", out, err);
}

int
sb_launch_env(const struct sb_launch_spec *spec, struct sb_strlist *out, struct sb_error *err)
{
	const char *const *const lists[] = { spec->env, spec->secret_env };
	int r = 0;

	for (size_t k = 0; r == 0 && k < 2; k++)
		for (const char *const *e = lists[k]; r == 0 && e && *e; e++) {
			if (!sb_environ_valid(*e))
				r = sb_fail(err, SB_E_INVAL,
					"launch: entry %zu of the environment is not NAME=value",
					(size_t)(e - lists[k]) + 1);
			else
				sb_strlist_add(out, *e);
		}
	if (r == 0)
		r = sb_strlist_check(out, err);
	if (r < 0)
		sb_secrets_free(out);
	return r;
}
