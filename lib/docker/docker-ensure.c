/* SPDX-License-Identifier: MIT */
/* A sandbox that has the workspace and everything else that must be mounted (sb/docker.h). */
#include "config.h"

#include <docker/docker-priv.h>

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <docker/name.h>

/* The mounts, as absolute clean paths. */
struct wish {
	char *workspace, *config;
	struct sb_strlist extras;
};

static void
wish_free(struct wish *w)
{
	free(w->workspace);
	free(w->config);
	sb_strlist_free(&w->extras);
}
SB_CLEANUP_VALUE(wish, wish_free)

static int
clean(const char *path, char **out, struct sb_error *err)
{
	*out = sb_name_clean_path(path);
	if (!*out)
		return sb_fail_errno(err, "%s", path);
	/* The programs would take the end of such a name for a mode. */
	if (sb_str_ends(*out, ":ro"))
		return sb_fail(err, SB_E_INVAL,
			"%s: a directory whose name ends in \":ro\" "
			"cannot be mounted: rename it",
			*out);
	return 0;
}

static int
make_wish(const struct sb_docker_ensure *o, struct wish *w, struct sb_error *err)
{
	int r = clean(o->workspace, &w->workspace, err);

	if (r == 0)
		r = clean(o->config_dir, &w->config, err);
	for (size_t i = 0; r == 0 && o->extras && o->extras[i]; i++) {
		sb_autofree char *path = NULL;

		if (!*o->extras[i])
			continue;
		r = clean(o->extras[i], &path, err);
		if (r == 0 && strcmp(path, w->workspace) != 0 &&
			!sb_strlist_has(sb_strlist_borrow(&w->extras), path))
			sb_strlist_add(&w->extras, path);
	}
	return r < 0 ? r : sb_strlist_check(&w->extras, err);
}

static bool
is_of(const struct sb_docker_sandbox *s, const struct wish *w)
{
	return s->workspaces.n && strcmp(s->workspaces.v[0], w->workspace) == 0;
}

/* Whether it has all that is wanted; more does not matter, nor does the mode. */
static bool
fits(const struct sb_docker_sandbox *s, const struct wish *w)
{
	for (size_t i = 0; i < w->extras.n; i++)
		if (!sb_docker_sandbox_has(s, w->extras.v[i]))
			return false;
	return is_of(s, w) && sb_docker_sandbox_has(s, w->config);
}

int
sb_docker_remove(struct sb_docker *d, const char *name, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const plain[] = { "rm", name, NULL };
	const char *const force[] = { "rm", "--force", name, NULL };
	/* The older docker does not know the word, the newer one asks without it. */
	int r = d->sbx ? 0 : sb_docker_probe(d, call, err);

	if (r < 0)
		return r;
	return sb_docker_run(d, d->sbx || d->era == SB_DOCKER_ERA_C ? force : plain, call, err);
}

/* One that does not go is only told: the new one gets another name beside it. */
static int
remove_one(struct sb_docker *d, const char *name, const struct sb_call *call, struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r = sb_docker_remove(d, name, call, &why);

	if (r == SB_E_CHILD) {
		if (call)
			sb_log(&call->log, SB_LOG_WARN, "docker", "%s", why.msg);
		return 0;
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

static int
create(struct sb_docker *d, const struct sb_docker_ensure *o, const struct wish *w,
	const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist args = { 0 };
	struct sb_cli_io io = { .shown = true };
	int r;

	sb_strlist_add(&args, "create");
	if (o->image && *o->image) {
		sb_strlist_add(&args, "-t");
		sb_strlist_add(&args, o->image);
	}
	sb_strlist_add(&args, o->agent ? o->agent : "cagent");
	sb_strlist_add(&args, w->workspace);
	for (size_t i = 0; i < w->extras.n; i++)
		sb_strlist_addf(&args, "%s:ro", w->extras.v[i]);
	sb_strlist_addf(&args, "%s:ro", w->config);
	r = sb_strlist_check(&args, err);
	if (r < 0)
		return r;
	r = sb_cli_run(&d->cli, sb_strlist_borrow(&args), &io, call, err);
	return r > 0 ? sb_fail(err, SB_E_CHILD, "sandbox create failed: exit status %d", r) : r;
}

static int
check_words(const struct sb_docker_ensure *o, struct sb_error *err)
{
	if (!o->workspace || !*o->workspace || !o->config_dir || !*o->config_dir)
		return sb_fail(err, SB_E_INVAL,
			"a sandbox needs a workspace and a config "
			"directory");
	if (o->image && *o->image && !sb_name_image_ok(o->image))
		return sb_fail(err, SB_E_INVAL, "'%s' is no name of a template", o->image);
	if (o->agent && !sb_name_ok(o->agent))
		return sb_fail(err, SB_E_INVAL, "'%s' is no name of an agent", o->agent);
	return 0;
}

static int
give_name(const struct sb_docker_sandbox *s, char **name, struct sb_error *err)
{
	*name = strdup(s->name);
	return *name ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

int
sb_docker_ensure(struct sb_docker *d, const struct sb_docker_ensure *given,
	const struct sb_call *call, char **name, struct sb_error *err)
{
	struct sb_docker_ensure o = SB_DOCKER_ENSURE_INIT;
	sb_auto(sb_docker_list) struct sb_docker_list before = { 0 };
	sb_auto(sb_docker_list) struct sb_docker_list after = { 0 };
	sb_auto(wish) struct wish w = { 0 };
	int r;

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	r = check_words(&o, err);
	if (r == 0)
		r = make_wish(&o, &w, err);
	if (r == 0)
		r = sb_docker_list(d, call, &before, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < before.n; i++)
		if (fits(&before.v[i], &w))
			return give_name(&before.v[i], name, err);
	/* All of them: the program would call the new one NAME-1, NAME-2, ... beside them. */
	for (size_t i = 0; r == 0 && i < before.n; i++)
		if (is_of(&before.v[i], &w))
			r = remove_one(d, before.v[i].name, call, err);
	if (r == 0)
		r = create(d, &o, &w, call, err);
	if (r == 0)
		r = sb_docker_list(d, call, &after, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < after.n; i++)
		if (is_of(&after.v[i], &w))
			return give_name(&after.v[i], name, err);
	return sb_fail(err, SB_E_SANDBOX_NOT_FOUND,
		"a sandbox for %s was created but cannot be found", w.workspace);
}

char *
sb_docker_extra_workspace(const char *dir, const char *agent, sb_docker_lookup_fn alias, void *arg)
{
	sb_autofree char *file = sb_docker_agent_file(agent, alias, arg);
	sb_autofree char *root = NULL;
	char *slash;

	if (!file || !*file)
		return file ? sb_steal(&file) : strdup("");
	root = sb_name_clean_path(dir);
	if (!root)
		return strdup("");
	slash = strrchr(file, '/');
	slash[slash == file] = '\0';
	return sb_name_inside(root, file) ? strdup("") : sb_steal(&file);
}
