/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <docker/engine.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <sb/docker.h>

#define TEXT_MAX (4u << 20)
#define STOP_SECONDS "5" /* before KILL */

void
sb_engine_free(struct sb_engine *e)
{
	sb_cli_free(&e->cli);
}

int
sb_engine_open(const char *program, struct sb_engine *out, struct sb_error *err)
{
	*out = (struct sb_engine){ .podman = strcmp(program, "podman") == 0 };
	sb_strlist_add(&out->cli.words, program);
	return sb_strlist_check(&out->cli.words, err);
}

/* Podman: "ROOTLESS VERSION-OF-CGROUPS [CONTROLLER ...]". As root it fails where it cannot limit.
 */
static void
learn_podman(const char *text, struct sb_engine_facts *is)
{
	bool v2 = strstr(text, " v2 ") != NULL;

	is->rootless = sb_str_starts(text, "true");
	is->no_memory = is->rootless && !(v2 && strstr(text, "memory"));
	is->no_cpus = is->rootless && !(v2 && strstr(text, "cpu"));
	is->no_pids = is->rootless && !(v2 && strstr(text, "pids"));
}

/* Docker: "MEMORY CPUS PIDS [OPTION ...]", of which the first three are words true and false. */
static void
learn_docker(const char *text, struct sb_engine_facts *is)
{
	char word[3][8] = { "", "", "" };

	(void)sscanf(text, "%7s %7s %7s", word[0], word[1], word[2]);
	is->no_memory = strcmp(word[0], "true") != 0;
	is->no_cpus = strcmp(word[1], "true") != 0;
	is->no_pids = strcmp(word[2], "true") != 0;
	is->rootless = strstr(text, "name=rootless") != NULL;
	is->remaps = strstr(text, "name=userns") != NULL;
}

int
sb_engine_check(struct sb_engine *e, const struct sb_call *call, struct sb_error *err)
{
	/* The client's version tells nothing about a daemon that is not there. */
	const char *const version[] = { "version", "--format", "{{.Server.Version}}", NULL };
	const char *const docker[] = { "info", "--format",
		"{{.MemoryLimit}} {{.CPUCfsQuota}} {{.PidsLimit}} {{.SecurityOptions}}", NULL };
	const char *const podman[] = { "info", "--format",
		"{{.Host.Security.Rootless}} {{.Host.CgroupsVersion}} {{.Host.CgroupControllers}}",
		NULL };
	const char *program = e->cli.words.v[0];
	sb_autofree char *found = sb_cli_find(program);
	struct sb_error why = { 0 };
	sb_auto(sb_buf) struct sb_buf text;
	int r = 0;

	sb_buf_init(&text, TEXT_MAX);
	if (!found)
		return sb_fail(err, SB_E_NOTFOUND, "%s is not installed", program);
	if (!e->podman)
		r = sb_cli_must(&e->cli, version, NULL, call, &why);
	if (r == 0)
		r = sb_cli_must(&e->cli, e->podman ? podman : docker, &text, call, &why);
	if (r == SB_E_CHILD)
		return sb_fail(err, SB_E_UNSUPPORTED, "%s does not work here: %s", program,
			why.msg);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	(e->podman ? learn_podman : learn_docker)((const char *)text.data, &e->is);
	e->checked = true;
	return 0;
}

int
sb_engine_try(const char *program, const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_engine) struct sb_engine e = { 0 };
	int r = sb_engine_open(program, &e, err);

	return r < 0 ? r : sb_engine_check(&e, call, err);
}

static void
add_filters(struct sb_strlist *args, const char *const *labels)
{
	for (; labels && *labels; labels++) {
		sb_strlist_add(args, "--filter");
		sb_strlist_addf(args, "label=%s", *labels);
	}
}

/* "ps" with a format, of containers with these labels. */
static int
list(const struct sb_engine *e, const char *const *labels, const char *format,
	const struct sb_call *call, struct sb_buf *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist args = { 0 };
	int r;

	sb_buf_init(out, TEXT_MAX);
	sb_strlist_add_all(&args,
		(const char *[]){ "ps", "--all", "--no-trunc", "--format", format, NULL });
	add_filters(&args, labels);
	r = sb_strlist_check(&args, err);
	return r < 0 ? r : sb_cli_must(&e->cli, sb_strlist_borrow(&args), out, call, err);
}

/* What a label is, in a format of "ps". A new string. */
static char *
label_format(const struct sb_engine *e, const char *before, const char *key)
{
	return sb_str_printf(e->podman ? "%s{{index .Labels \"%s\"}}" : "%s{{.Label \"%s\"}}",
		before, key);
}

int
sb_engine_find(const struct sb_engine *e, const char *const *labels, const char *extra,
	const struct sb_call *call, struct sb_engine_box *out, struct sb_error *err)
{
	sb_autofree char *format = label_format(e, "{{.ID}} {{.Names}} ", extra);
	sb_autofree char *full = format ? sb_str_printf("%s {{.State}}", format) : NULL;
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	char state[32] = "";
	int r = full ? list(e, labels, full, call, &text, err) :
		       sb_fail(err, SB_E_NOMEM, "out of memory");

	*out = (struct sb_engine_box){ 0 };
	if (r < 0)
		return r;
	if (sscanf((const char *)text.data, "%71s %135s %63s %31s", out->id, out->name, out->extra,
		    state) != 4)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s has no container with %s",
			e->cli.words.v[0], labels && labels[0] ? labels[0] : "any label");
	/* Podman 4 says "Up 2 minutes ago". */
	out->running = strcmp(state, "running") == 0 || strcmp(state, "Up") == 0;
	out->paused = strcasecmp(state, "paused") == 0;
	return 0;
}

int
sb_engine_all(const struct sb_engine *e, const char *const *labels, const char *key,
	const struct sb_call *call, struct sb_strlist *out, struct sb_error *err)
{
	sb_autofree char *format = label_format(e, "{{.Names}}\t", key);
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	char *line, *next;
	int r = format ? list(e, labels, format, call, &text, err) :
			 sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r < 0)
		return r;
	for (line = (char *)text.data; *line; line = next) {
		size_t n = strcspn(line, "\n");

		next = line + n + (line[n] == '\n');
		line[n] = '\0';
		if (*line)
			sb_strlist_add(out, line);
	}
	return sb_strlist_check(out, err);
}

int
sb_engine_start(const struct sb_engine *e, const char *name, bool paused,
	const struct sb_call *call, struct sb_error *err)
{
	const char *const args[] = { paused ? "unpause" : "start", name, NULL };
	const char *const finish[] = { "stop", "-t", "0", name, NULL };
	struct sb_error why = { 0 };
	int r = sb_cli_must(&e->cli, args, NULL, call, &why);

	/* For Podman a container whose stop was killed is stopping for ever: finish that. */
	if (r == SB_E_CHILD && !paused && sb_cli_must(&e->cli, finish, NULL, call, NULL) == 0)
		return sb_cli_must(&e->cli, args, NULL, call, err);
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_engine_stop(const struct sb_engine *e, const char *name, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "stop", "-t", STOP_SECONDS, name, NULL };

	return sb_cli_must(&e->cli, args, NULL, call, err);
}

/*
 * A removal that failed because the thing was not there is what was wanted. The engines say that in
 * many words, and use the same ones for a daemon that cannot be reached: so what is there is asked.
 * `list` prints the names, a line each.
 */
static int
gone_is_fine(const struct sb_engine *e, int r, const char *const *list, const char *name,
	const struct sb_error *why, const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	size_t len = strlen(name);

	sb_buf_init(&text, TEXT_MAX);
	if (r == SB_E_CHILD && sb_cli_must(&e->cli, list, &text, call, NULL) == 0) {
		const char *line = (const char *)text.data;

		while (*line && !(strncmp(line, name, len) == 0 && strchr("\n", line[len])))
			line += strcspn(line, "\n") + (strchr(line, '\n') != NULL);
		if (!*line)
			return 0;
	}
	if (r < 0 && err)
		*err = *why;
	return r;
}

int
sb_engine_remove(const struct sb_engine *e, const char *name, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "rm", "--force", "--volumes", name, NULL };
	const char *const list[] = { "ps", "--all", "--format", "{{.Names}}", NULL };
	struct sb_error why = { 0 };
	int r = sb_cli_must(&e->cli, args, NULL, call, &why);

	return gone_is_fine(e, r, list, name, &why, call, err);
}

static const char *const volumes[] = { "volume", "ls", "--format", "{{.Name}}", NULL };

int
sb_engine_has_volume(const struct sb_engine *e, const char *volume, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "volume", "inspect", "--format", "{{.Name}}", volume, NULL };
	struct sb_error why = { 0 };
	int r = sb_cli_must(&e->cli, args, NULL, call, &why);

	return r == 0 ? 1 : gone_is_fine(e, r, volumes, volume, &why, call, err);
}

int
sb_engine_remove_volume(const struct sb_engine *e, const char *volume, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "volume", "rm", "--force", volume, NULL };
	struct sb_error why = { 0 };
	int r = sb_cli_must(&e->cli, args, NULL, call, &why);

	return gone_is_fine(e, r, volumes, volume, &why, call, err);
}

int
sb_engine_commit(const struct sb_engine *e, const char *name, const char *image,
	const struct sb_call *call, struct sb_error *err)
{
	const char *const args[] = { "commit", name, image, NULL };

	return sb_cli_must(&e->cli, args, NULL, call, err);
}

static const char *const images[] = { "images", "--format", "{{.Repository}}:{{.Tag}}", NULL };

int
sb_engine_has_image(const struct sb_engine *e, const char *image, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "image", "inspect", "--format", "{{.Id}}", image, NULL };
	struct sb_error why = { 0 };
	int r = sb_cli_must(&e->cli, args, NULL, call, &why);

	return r == 0 ? 1 : gone_is_fine(e, r, images, image, &why, call, err);
}

int
sb_engine_remove_image(const struct sb_engine *e, const char *image, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "image", "rm", "--force", image, NULL };
	struct sb_error why = { 0 };
	int r = sb_cli_must(&e->cli, args, NULL, call, &why);

	return gone_is_fine(e, r, images, image, &why, call, err);
}

/* One line of an inspection. */
static int
inspect(const struct sb_engine *e, const char *const *args, const struct sb_call *call, char **out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	size_t len;
	int r;

	sb_buf_init(&text, TEXT_MAX);
	r = sb_cli_must(&e->cli, args, &text, call, err);
	if (r < 0)
		return r;
	text.len = strcspn((const char *)text.data, "\r\n");
	text.data[text.len] = '\0';
	*out = (char *)sb_buf_detach(&text, &len);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

/* Whether the process was started with that variable; also false when it is not ours to see. */
static bool
has_mark(pid_t pid, const char *mark)
{
	sb_autofree char *dir = sb_str_printf("/proc/%d", (int)pid);
	sb_autoclose int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	sb_auto(sb_buf) struct sb_buf env = { 0 };

	if (fd < 0 || sb_file_read(fd, "environ", TEXT_MAX, &env, NULL) < 0)
		return false;
	for (size_t i = 0; i < env.len; i += strlen((const char *)env.data + i) + 1)
		if (strcmp((const char *)env.data + i, mark) == 0)
			return true;
	return false;
}

int
sb_engine_pid(const struct sb_engine *e, const char *name, const char *mark,
	const struct sb_call *call, pid_t *out, struct sb_error *err)
{
	const char *const args[] = { "inspect", "--type", "container", "--format", "{{.State.Pid}}",
		name, NULL };
	sb_autofree char *text = NULL;
	int64_t pid;
	int r = inspect(e, args, call, &text, err);

	*out = 0;
	if (r < 0)
		return r;
	if (!sb_str_to_i64(text, 0, INT32_MAX, &pid))
		return sb_fail(err, SB_E_PROTO, "%s: '%s' is no process", e->cli.words.v[0], text);
	if (pid > 0 && has_mark((pid_t)pid, mark))
		*out = (pid_t)pid;
	return 0;
}

int
sb_engine_image_user(const struct sb_engine *e, const char *image, const struct sb_call *call,
	char **out, struct sb_error *err)
{
	const char *const args[] = { "image", "inspect", "--format", "{{.Config.User}}", image,
		NULL };
	struct sb_error why = { 0 };
	int r = inspect(e, args, call, out, &why);

	if (r != SB_E_CHILD) {
		if (r < 0 && err)
			*err = why;
		return r;
	}
	/* Not here, or the engine is not: making it will tell. */
	*out = strdup("");
	return *out ? 1 : sb_fail(err, SB_E_NOMEM, "out of memory");
}
