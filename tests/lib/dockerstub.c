/* SPDX-License-Identifier: MIT */
/*
 * Stands for "sbx" and "docker sandbox": by the name it is called by and the directory
 * $STUB_STATE. Each call is on record there: calls/N.argv, calls/N.env (NUL behind each item) and
 * calls/N.stdin. Files in the directory make it behave as one version or another, or badly:
 *   shape    how "ls --json" answers: sandboxes (default), vms, array, null, empty, noise, bad,
 *            type, other, huge, fail
 *   era      b (default for docker), c, positional: the spelling of policies that it knows
 *   version, create, rm, policy   exit status of that command
 *   lost     create succeeds and registers nothing
 *   mounts   create wants a path (as before 0.42)
 *   merged   exec gives stdout and stderr as one
 *   hang     every command but version waits for ever
 * A sandbox is a directory boxes/NAME with its workspaces; exec runs in it, on this machine.
 */
#include "config.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char state[PATH_MAX];
static bool is_sbx;

static const char *
in_state(const char *name)
{
	static char path[2][2 * PATH_MAX];
	static int turn;

	turn = !turn;
	(void)snprintf(path[turn], sizeof path[turn], "%s/%s", state, name);
	return path[turn];
}

/* The first word of a switch, or `otherwise`. */
static const char *
setting(const char *name, const char *otherwise)
{
	static char word[4][64];
	static int turn;
	FILE *f = fopen(in_state(name), "re");

	turn = (turn + 1) % 4;
	if (!f)
		return otherwise;
	if (fscanf(f, "%63s", word[turn]) != 1)
		word[turn][0] = '\0';
	(void)fclose(f);
	return word[turn];
}

static bool
is_set(const char *name)
{
	return access(in_state(name), F_OK) == 0;
}

static int
code_of(const char *name)
{
	return (int)strtol(setting(name, "0"), NULL, 10);
}

static void
record_list(const char *name, char *const *v)
{
	FILE *f = fopen(in_state(name), "we");

	for (; f && v && *v; v++)
		(void)fwrite(*v, 1, strlen(*v) + 1, f);
	if (f)
		(void)fclose(f);
}

/* A number of its own for each call, however many run at a time. */
static void
record(char **argv, bool eats_input)
{
	char name[64], buf[4096];
	int n = 1, fd, out;
	ssize_t got;

	(void)mkdir(in_state("calls"), 0700);
	do {
		(void)snprintf(name, sizeof name, "calls/%03d.argv", n++);
		fd = open(in_state(name), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	} while (fd < 0 && errno == EEXIST);
	(void)close(fd);
	record_list(name, argv);
	memcpy(name + strlen(name) - 4, "env", 4);
	record_list(name, environ);
	if (!eats_input || isatty(0))
		return;
	(void)snprintf(name + strlen(name) - 3, 8, "stdin");
	out = open(in_state(name), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	while ((got = read(0, buf, sizeof buf)) > 0)
		if (write(out, buf, (size_t)got) != got)
			break;
	(void)close(out);
}

static json_t *
box_json(const char *name)
{
	char file[PATH_MAX], path[PATH_MAX];
	json_t *list = json_array();
	size_t n = 0;
	FILE *f;
	int c;

	(void)snprintf(file, sizeof file, "boxes/%.200s/workspaces", name);
	f = fopen(in_state(file), "re");
	while (f && (c = getc(f)) != EOF) {
		path[n] = (char)c;
		if (c == '\0') {
			(void)json_array_append_new(list, json_string(path));
			n = 0;
		} else if (n + 1 < sizeof path) {
			n++;
		}
	}
	if (f)
		(void)fclose(f);
	return json_pack("{s:s,s:s,s:s,s:s,s:o,s:[{s:s,s:i}]}", "name", name, "id", "abc", "agent",
		"shell", "status", "running", "workspaces", list, "ports", "host_ip", "127.0.0.1",
		"host_port", 1);
}

/* All sandboxes, those made first first. */
static json_t *
boxes(void)
{
	json_t *list = json_array();
	struct dirent **v = NULL;
	int n = scandir(in_state("boxes"), &v, NULL, alphasort);

	for (int i = 0; i < n; i++) {
		if (v[i]->d_name[0] != '.')
			(void)json_array_append_new(list, box_json(v[i]->d_name));
		free(v[i]);
	}
	free(v);
	return list;
}

static int
do_ls(void)
{
	const char *shape = setting("shape", "sandboxes");
	json_t *list, *doc;
	char *text;

	if (strcmp(shape, "fail") == 0) {
		(void)fprintf(stderr, "daemon is not running\n");
		return 1;
	}
	if (strcmp(shape, "bad") == 0)
		return puts("{\"sandboxes\": [") == EOF;
	if (strcmp(shape, "type") == 0)
		return puts("{\"sandboxes\": [{\"name\": 7}]}") == EOF;
	if (strcmp(shape, "other") == 0)
		return puts("{\"error\": \"no\"}") == EOF;
	if (strcmp(shape, "null") == 0)
		return puts("{\"sandboxes\": null}") == EOF;
	if (strcmp(shape, "empty") == 0)
		return puts("{}") == EOF;
	if (strcmp(shape, "huge") == 0) {
		for (int i = 0; i < 300000; i++)
			(void)puts(
				"a line of no use that fills the pipe and more than that, surely");
	}
	if (strcmp(shape, "noise") == 0)
		(void)puts("Starting daemon...\n[info] ready\n{\"level\":\"info\",\"msg\":\"up\"}");
	list = boxes();
	if (strcmp(shape, "array") == 0)
		doc = json_incref(list);
	else
		doc = json_pack("{s:O,s:i}", strcmp(shape, "vms") == 0 ? "vms" : "sandboxes", list,
			"count", (int)json_array_size(list));
	text = json_dumps(doc, JSON_INDENT(2));
	(void)puts(text ? text : "");
	free(text);
	json_decref(doc);
	json_decref(list);
	return 0;
}

static int
help(const char *text)
{
	return puts(text) == EOF;
}

static int
do_create(char **v)
{
	char name[128] = "", path[PATH_MAX];
	const char *agent = NULL;
	char *paths[64] = { 0 };
	size_t n = 0;

	for (; *v; v++) {
		if (strcmp(*v, "--help") == 0)
			return help(is_set("mounts") ? "Usage: create shell PATH [PATH...]\n "
						       "--name --cpus -m, --memory -t" :
						       "Usage: create shell [PATH...]\n --name "
						       "--cpus -m, --memory -t");
		if (strcmp(*v, "--name") == 0 && v[1])
			(void)snprintf(name, sizeof name, "%s", *++v);
		else if ((strcmp(*v, "-t") == 0 || strcmp(*v, "--cpus") == 0 ||
				 strcmp(*v, "-m") == 0) &&
			v[1])
			v++;
		else if (**v == '-')
			return 125;
		else if (!agent)
			agent = *v;
		else if (n < 63)
			paths[n++] = *v;
	}
	if (!agent || (n == 0 && is_set("mounts")) || (n > 0 && paths[0][0] != '/')) {
		(void)fprintf(stderr, "create: an agent and absolute paths\n");
		return 1;
	}
	(void)fprintf(stdout, "Creating...\n");
	if (code_of("create"))
		return code_of("create");
	if (is_set("lost"))
		return 0;
	if (!name[0]) {
		const char *slash = n ? strrchr(paths[0], '/') : "/none";

		(void)snprintf(name, sizeof name, "%s-%.60s", agent, slash + 1);
	}
	(void)mkdir(in_state("boxes"), 0700);
	for (int i = 0;; i++) {
		size_t end = strlen(name);

		(void)snprintf(path, sizeof path, "boxes/%s", name);
		if (i > 0)
			(void)snprintf(path, sizeof path, "boxes/%s-%d", name, i);
		(void)end;
		if (mkdir(in_state(path), 0700) == 0)
			break;
		if (errno != EEXIST)
			return 1;
	}
	(void)strncat(path, "/workspaces", sizeof path - strlen(path) - 1);
	record_list(path, paths);
	return 0;
}

static int
do_rm(char **v)
{
	char path[PATH_MAX], cmd[2 * PATH_MAX + 16];
	bool force = false;

	if (code_of("rm")) {
		(void)fprintf(stderr, "cannot remove\n");
		return code_of("rm");
	}
	for (; *v; v++) {
		if (strcmp(*v, "--force") == 0) {
			force = true;
			continue;
		}
		(void)snprintf(path, sizeof path, "boxes/%.200s", *v);
		if (is_sbx && !force && !isatty(0)) {
			(void)fprintf(stderr, "remove %s? (y/N)\n", *v);
			return 1;
		}
		if (access(in_state(path), F_OK) < 0) {
			(void)fprintf(stderr, "no such sandbox %s\n", *v);
			return 1;
		}
		(void)snprintf(cmd, sizeof cmd, "%s", in_state(path));
		execlp("rm", "rm", "-rf", "--", cmd, (char *)NULL);
	}
	return 1;
}

static int
do_exec(char **v)
{
	char path[PATH_MAX], home[3 * PATH_MAX];
	const char *dir = NULL;

	for (; *v && **v == '-'; v++) {
		if (strcmp(*v, "-w") == 0 && v[1])
			dir = *++v;
		else if (strcmp(*v, "-e") == 0 && v[1]) {
			v++;
			if (strchr(*v, '='))
				(void)putenv(*v);
		} else if (strcmp(*v, "-i") != 0 && strcmp(*v, "-t") != 0 && strcmp(*v, "-it") != 0)
			return 125;
	}
	if (!*v || !v[1])
		return 125;
	(void)snprintf(path, sizeof path, "boxes/%.200s", *v);
	if (access(in_state(path), F_OK) < 0) {
		(void)fprintf(stderr, "no such sandbox %s\n", *v);
		return 1;
	}
	(void)snprintf(home, sizeof home, "%s", in_state(path));
	(void)setenv("HOME", home, 1);
	(void)setenv("SBSYNC_BOX_DIR", home, 1);
	(void)setenv("SANDBOX_NAME", *v, 1);
	(void)unsetenv("XDG_STATE_HOME");
	(void)unsetenv("XDG_CACHE_HOME");
	(void)unsetenv("SBSYNC_STATE_DIR");
	if (chdir(dir ? dir : home) < 0)
		return 126;
	if (is_set("merged"))
		(void)dup2(1, 2);
	execvp(v[1], v + 1);
	return 127;
}

static int
do_policy(char **v)
{
	bool newer = strcmp(setting("era", is_sbx ? "c" : "b"), "c") == 0;

	for (size_t i = 0; v[i]; i++)
		if (strcmp(v[i], "--help") == 0)
			return newer   ? help("Usage: policy allow network [--sandbox NAME] LIST") :
				is_sbx ? help("Usage: policy allow network [-g | SANDBOX] LIST") :
					 125;
	if (newer != (v[2] && strcmp(v[2], "--sandbox") == 0)) {
		(void)fprintf(stderr, "unknown spelling\n");
		return 1;
	}
	return code_of("policy");
}

static int
do_network(char **v)
{
	if (is_sbx || strcmp(setting("era", "b"), "b") != 0)
		return 125;
	for (size_t i = 0; v[i]; i++)
		if (strcmp(v[i], "--help") == 0)
			return help("Usage: network proxy SANDBOX --allow-host --policy");
	return code_of("policy");
}

int
main(int argc, char **argv)
{
	const char *base = strrchr(argv[0], '/'), *where = getenv("STUB_STATE");
	char **v = argv + 1;
	const char *verb;

	is_sbx = strcmp(base ? base + 1 : argv[0], "sbx") == 0;
	if (!where || argc < 2)
		return 125;
	(void)snprintf(state, sizeof state, "%s", where);
	if (!is_sbx && strcmp(*v++, "sandbox") != 0)
		return 125;
	verb = *v ? *v : "";
	record(argv, strcmp(verb, "exec") != 0);
	if (is_set("hang") && strcmp(verb, "version") != 0)
		for (;;)
			(void)pause();
	if (strcmp(verb, "version") == 0)
		return code_of("version");
	if (strcmp(verb, "ls") == 0)
		return v[1] && strcmp(v[1], "--json") == 0 ? do_ls() : 125;
	if (strcmp(verb, "create") == 0)
		return do_create(v + 1);
	if (strcmp(verb, "rm") == 0)
		return do_rm(v + 1);
	if (strcmp(verb, "exec") == 0)
		return do_exec(v + 1);
	if (strcmp(verb, "policy") == 0)
		return do_policy(v + 1);
	if (strcmp(verb, "network") == 0)
		return do_network(v + 1);
	if (strcmp(verb, "stop") == 0 || strcmp(verb, "template") == 0)
		return 0;
	(void)fprintf(stderr, "unknown command\n");
	return 125;
}
