/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/environ.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/secret.h>
#include <base/str.h>
#include <sb/log.h>

/* Not those of the locale: a name must mean the same on every machine. */
#define NAME_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_"
#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

/* Where a name that begins at `s` ends; `s` itself when there is none. */
static const char *
name_end(const char *s)
{
	return *s >= '0' && *s <= '9' ? s : s + strspn(s, NAME_LETTERS);
}

bool
sb_environ_name_ok(const char *name)
{
	const char *end = name_end(name);

	return end != name && !*end && end - name <= SB_ENVIRON_NAME_MAX;
}

bool
sb_environ_valid(const char *entry)
{
	const char *end = name_end(entry);

	return end != entry && *end == '=';
}

int
sb_environ_set(struct sb_strlist *env, const char *entry, struct sb_error *err)
{
	if (!sb_environ_valid(entry)) {
		char name[80];

		return sb_fail(err, SB_E_INVAL, "'%s' is no name of an environment variable",
			sb_escape(entry, strcspn(entry, "="), name, sizeof name));
	}
	sb_strlist_put(env, entry);
	return sb_strlist_check(env, err);
}

int
sb_environ_build(bool filtered, const char *const *more, struct sb_strlist *out,
	struct sb_error *err)
{
	int r;

	for (char **e = environ; e && *e; e++)
		if (!filtered || !sb_secret_name_looks(*e, strcspn(*e, "=")))
			sb_strlist_add(out, *e);
	r = sb_strlist_check(out, err);
	for (; r == 0 && more && *more; more++)
		r = sb_environ_set(out, *more, err);
	return r;
}

static bool
executable(const char *file, int *why)
{
	struct stat st;

	if (stat(file, &st) < 0)
		return false;
	if (S_ISREG(st.st_mode) && access(file, X_OK) == 0)
		return true;
	*why = SB_E_DENIED;
	return false;
}

int
sb_environ_find(const struct sb_strlist *env, const char *name, char **out, struct sb_error *err)
{
	const char *path = sb_strlist_get(sb_strlist_borrow(env), "PATH");
	int why = SB_E_NOTFOUND;
	char shown[200];

	if (strchr(name, '/')) {
		*out = strdup(name);
		return *out ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	for (path = path && *path ? path : DEFAULT_PATH; *path;) {
		const char *colon = strchrnul(path, ':');

		if (*path == '/') {
			sb_autofree char *file =
				sb_str_printf("%.*s/%s", (int)(colon - path), path, name);

			if (!file)
				return sb_fail(err, SB_E_NOMEM, "out of memory");
			if (executable(file, &why)) {
				*out = sb_steal(&file);
				return 0;
			}
		}
		path = *colon ? colon + 1 : colon;
	}
	return sb_fail(err, why, "%s: %s", sb_escape(name, strlen(name), shown, sizeof shown),
		why == SB_E_DENIED ? "may not be executed" : "no such program in PATH");
}
