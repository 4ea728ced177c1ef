/* SPDX-License-Identifier: MIT */
/* The command that runs an agent in a sandbox, and the variables it gets (sb/docker.h). */
#include "config.h"

#include <docker/docker-priv.h>

#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include <docker/name.h>

void
sb_docker_command_free(struct sb_docker_command *c)
{
	sb_strlist_free(&c->argv);
	sb_strlist_free(&c->env);
}

int
sb_docker_exec_command(const struct sb_docker *d, const char *name, const char *dir,
	const char *const *args, const char *const *env_flags, const char *const *env_vars,
	struct sb_docker_command *out, struct sb_error *err)
{
	bool newer = d->era == SB_DOCKER_ERA_C;
	struct sb_strlist *v = &out->argv;
	int r;

	*out = (struct sb_docker_command){ 0 };
	if (!name || !sb_name_ok(name))
		return sb_fail(err, SB_E_INVAL, "'%s' is no name of a sandbox", name ? name : "");
	sb_strlist_join(v, &d->cli.words);
	sb_strlist_add(v, "exec");
	if (!newer) {
		sb_strlist_add(v, "-it");
	} else {
		sb_strlist_add(v, "-i");
		if (isatty(STDIN_FILENO) && isatty(STDOUT_FILENO))
			sb_strlist_add(v, "-t");
	}
	if (!newer || (dir && *dir)) {
		sb_strlist_add(v, "-w");
		sb_strlist_add(v, dir ? dir : "");
	}
	sb_strlist_add_all(v, env_flags);
	sb_strlist_add_all(v,
		(const char *[]){ "-e", "TERM=xterm-256color", "-e", "COLORTERM=truecolor", "-e",
			newer ? "LANG=C.UTF-8" : "LANG=en_US.UTF-8", name, "docker-agent", "run",
			NULL });
	sb_strlist_add_all(v, args);
	r = sb_strlist_check(v, err);
	if (r == 0)
		r = sb_cli_environ(&d->cli, env_vars, &out->env, err);
	if (r < 0)
		sb_docker_command_free(out);
	return r;
}

bool
sb_docker_env_proxied(const char *name)
{
	static const char *const names[] = { "OPENAI_API_KEY", "ANTHROPIC_API_KEY",
		"GOOGLE_API_KEY", "MISTRAL_API_KEY", "XAI_API_KEY", "NEBIUS_API_KEY",
		"DOCKER_TOKEN", "OPENROUTER_API_KEY", NULL };

	for (size_t i = 0; names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* A name that an environment can have; anything else could be read as an option or a value. */
static bool
is_variable(const char *name)
{
	if (!isalpha((unsigned char)*name) && *name != '_')
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && *name != '_')
			return false;
	return true;
}

int
sb_docker_env(const char *const *names, sb_docker_lookup_fn lookup, void *arg,
	struct sb_strlist *flags, struct sb_strlist *vars, struct sb_error *err)
{
	int r;

	for (; names && *names; names++) {
		const char *value;

		if (!is_variable(*names))
			return sb_fail(err, SB_E_INVAL, "'%s' is no name of a variable", *names);
		value = sb_docker_env_proxied(*names) ? NULL : lookup(*names, arg);
		if (!value || !*value)
			continue;
		sb_strlist_add(flags, "-e");
		sb_strlist_add(flags, *names);
		sb_strlist_addf(vars, "%s=%s", *names, value);
	}
	r = sb_strlist_check(flags, err);
	return r < 0 ? r : sb_strlist_check(vars, err);
}
