/* SPDX-License-Identifier: MIT */
/* Names that the user gave to agents, and what a reference to an agent means (sb/docker.h). */
#include "config.h"

#include <docker/docker-priv.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <base/str.h>
#include <docker/name.h>
#include <docker/yamldoc.h>

struct sb_docker_alias {
	struct sb_strlist pairs; /* "NAME=REFERENCE" */
};

/* Adds those of one file: maps of a name to a text, or to a map with "path". Not there: none. */
static int
take_file(struct sb_docker_alias *a, const char *dir, const char *file, const char *key,
	struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s", dir, file);
	sb_auto(sb_yamldoc) struct sb_yamldoc d = { .open = false };
	const yaml_node_t *map, *v;
	const char *name;
	struct stat st;
	int r;

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (stat(path, &st) < 0)
		return 0;
	r = sb_yamldoc_read(path, &d, err);
	if (r < 0)
		return r;
	map = sb_yamldoc_root(&d);
	if (key)
		map = sb_yamldoc_get(&d, map, key);
	for (size_t i = 0; (v = sb_yamldoc_nth(&d, map, i, &name)); i++) {
		const char *to = sb_yamldoc_text(v);

		to = to ? to : sb_yamldoc_text_of(&d, v, "path");
		if (name && to && !strchr(name, '='))
			sb_strlist_putf(&a->pairs, "%s=%s", name, to);
	}
	return sb_strlist_check(&a->pairs, err);
}

struct sb_docker_alias *
sb_docker_alias_load(const char *dir, struct sb_error *err)
{
	const char *home = getenv("HOME");
	sb_autofree char *own = dir ? NULL : sb_str_printf("%s/.config/cagent", home ? home : "");
	struct sb_docker_alias *a = calloc(1, sizeof *a);
	int r = a && (dir || own) ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	dir = dir ? dir : own;
	if (r == 0)
		r = take_file(a, dir, "config.yaml", "aliases", err);
	/* The file of older versions counts where the newer one has none. */
	if (r == 0 && !a->pairs.n)
		r = take_file(a, dir, "aliases.yaml", NULL, err);
	if (r < 0) {
		sb_docker_alias_free(a);
		return NULL;
	}
	return a;
}

const char *
sb_docker_alias_find(const char *name, void *arg)
{
	const struct sb_docker_alias *a = arg;

	return a ? sb_strlist_get(sb_strlist_borrow(&a->pairs), name) : NULL;
}

void
sb_docker_alias_free(struct sb_docker_alias *a)
{
	if (!a)
		return;
	sb_strlist_free(&a->pairs);
	free(a);
}

/* Whether the reference means a file of this machine. */
static bool
is_local_file(const char *ref)
{
	static const char *const built_in[] = { "default", "coder", NULL };
	const char *dot = strrchr(ref, '.');
	struct stat st;

	for (size_t i = 0; built_in[i]; i++)
		if (strcmp(built_in[i], ref) == 0)
			return false;
	if (strstr(ref, "://"))
		return false;
	if (dot && (strcasecmp(dot, ".yaml") == 0 || strcasecmp(dot, ".yml") == 0))
		return true;
	return sb_str_starts(ref, "/dev/fd/") || (stat(ref, &st) == 0 && !S_ISDIR(st.st_mode));
}

char *
sb_docker_agent_file(const char *agent, sb_docker_lookup_fn alias, void *arg)
{
	const char *meant = agent && *agent && alias ? alias(agent, arg) : NULL;

	agent = meant ? meant : agent;
	return agent && *agent && is_local_file(agent) ? sb_name_clean_path(agent) : strdup("");
}
