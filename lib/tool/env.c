/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/env.h>

#include <ctype.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/str.h>
#include <sb/log.h>

#define DEFAULT_PATH "/usr/local/bin:/usr/bin:/bin"

static bool
holds(const char *name, size_t len, const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i + n <= len; i++)
		if (strncasecmp(name + i, word, n) == 0)
			return true;
	return false;
}

bool
sb_env_secret(const char *name, size_t len)
{
	static const char *const words[] = { "API_KEY", "APIKEY", "ACCESS_KEY", "PRIVATE_KEY",
		"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "AUTH", "COOKIE",
		"SESSION" };

	for (size_t i = 0; i < sizeof words / sizeof *words; i++)
		if (holds(name, len, words[i]))
			return true;
	return len >= 4 && strncasecmp(name + len - 4, "_KEY", 4) == 0;
}

bool
sb_env_valid(const char *entry)
{
	const char *p = entry;

	if (!isalpha((unsigned char)*p) && *p != '_')
		return false;
	while (isalnum((unsigned char)*p) || *p == '_')
		p++;
	return *p == '=';
}

/* Where "NAME=" of `len` bytes stands in the list, or its end. */
static size_t
index_of(const struct sb_strlist *env, const char *entry, size_t len)
{
	size_t i = 0;

	while (i < env->n && strncmp(env->v[i], entry, len) != 0)
		i++;
	return i;
}

int
sb_env_set(struct sb_strlist *env, const char *entry, struct sb_error *err)
{
	size_t i;
	char *copy;

	if (!sb_env_valid(entry)) {
		char name[80];

		return sb_fail(err, SB_E_INVAL, "'%s' is no name of an environment variable",
			sb_escape(entry, strcspn(entry, "="), name, sizeof name));
	}
	i = index_of(env, entry, strcspn(entry, "=") + 1);
	if (i == env->n) {
		sb_strlist_add(env, entry);
		return sb_strlist_check(env, err);
	}
	copy = strdup(entry);
	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	free(env->v[i]);
	env->v[i] = copy;
	return 0;
}

const char *
sb_env_get(const struct sb_strlist *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(env->v[i], name, len) == 0 && env->v[i][len] == '=')
			return env->v[i] + len + 1;
	return NULL;
}

int
sb_env_build(bool filtered, const char *const *more, struct sb_strlist *out, struct sb_error *err)
{
	int r;

	for (char **e = environ; e && *e; e++)
		if (!filtered || !sb_env_secret(*e, strcspn(*e, "=")))
			sb_strlist_add(out, *e);
	r = sb_strlist_check(out, err);
	for (; r == 0 && more && *more; more++)
		r = sb_env_set(out, *more, err);
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
sb_env_find(const struct sb_strlist *env, const char *name, char **out, struct sb_error *err)
{
	const char *path = sb_env_get(env, "PATH");
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
