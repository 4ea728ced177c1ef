/* SPDX-License-Identifier: MIT */
/* Takes the command and the environment out of a launch spec (declared in provider/launchers.h). */
#include "config.h"

#include <provider/launchers.h>

#include <base/buf.h>
#include <base/strlist.h>
#include <sb/profile.h>
#include <tool/environ.h>

#define DIRS "SB_DIRS"
#define DIRS_MAX 65536

int
sb_launch_words(const struct sb_launch_spec *spec, struct sb_strlist *out, struct sb_error *err)
{
	if (spec->argv && spec->argv[0]) {
		sb_strlist_add_all(out, spec->argv);
		return sb_strlist_check(out, err);
	}
	return sb_command_split(spec->command ? spec->command : "", out, err);
}

/* The further directories of the session, one a line. */
static int
add_dirs(const char *const *dirs, struct sb_strlist *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	if (!dirs || !dirs[0])
		return 0;
	sb_buf_init(&b, DIRS_MAX);
	for (size_t i = 0; dirs[i]; i++)
		sb_buf_addf(&b, "%s%s", i ? "\n" : DIRS "=", dirs[i]);
	if (sb_buf_check(&b, "names of directories", err) < 0)
		return err ? err->code : SB_E_LIMIT;
	sb_strlist_add(out, (const char *)b.data);
	return sb_strlist_check(out, err);
}

int
sb_launch_env(const struct sb_launch_spec *spec, struct sb_strlist *out, struct sb_error *err)
{
	const char *const *const lists[] = { spec->env, spec->secret_env };
	int r = sb_strlist_get(spec->env, DIRS) ? 0 : add_dirs(spec->dirs, out, err);

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
