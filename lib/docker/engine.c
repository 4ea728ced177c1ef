/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <docker/engine.h>

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

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

int
sb_engine_check(struct sb_engine *e, const struct sb_call *call, struct sb_error *err)
{
	/* The client's version tells nothing about a daemon that is not there. */
	const char *const docker[] = { "version", "--format", "{{.Server.Version}}", NULL };
	const char *const podman[] = { "info", "--format", "{{.Host.Security.Rootless}}", NULL };
	const char *program = e->cli.words.v[0];
	sb_autofree char *found = sb_cli_find(program);
	struct sb_error why = { 0 };
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, TEXT_MAX);
	if (!found)
		return sb_fail(err, SB_E_NOTFOUND, "%s is not installed", program);
	r = sb_cli_must(&e->cli, e->podman ? podman : docker, &text, call, &why);
	if (r == SB_E_CHILD)
		return sb_fail(err, SB_E_UNSUPPORTED, "%s does not work here: %s", program,
			why.msg);
	if (r < 0 && err)
		*err = why;
	e->rootless = e->podman && r == 0 && sb_str_starts((const char *)text.data, "true");
	return r;
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

	return sb_cli_must(&e->cli, args, NULL, call, err);
}

int
sb_engine_stop(const struct sb_engine *e, const char *name, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "stop", "--time", STOP_SECONDS, name, NULL };

	return sb_cli_must(&e->cli, args, NULL, call, err);
}

/* A thing that is not there is what was wanted; the engines say so in many words. */
static int
gone_is_fine(int r, const struct sb_error *why, struct sb_error *err)
{
	static const char *const words[] = { "no such", "No such", "not known", "not found", NULL };

	for (size_t i = 0; r == SB_E_CHILD && words[i]; i++)
		if (strstr(why->msg, words[i]))
			return 0;
	if (r < 0 && err)
		*err = *why;
	return r;
}

int
sb_engine_remove(const struct sb_engine *e, const char *name, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "rm", "--force", "--volumes", name, NULL };
	struct sb_error why = { 0 };

	return gone_is_fine(sb_cli_must(&e->cli, args, NULL, call, &why), &why, err);
}

int
sb_engine_remove_volume(const struct sb_engine *e, const char *volume, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "volume", "rm", "--force", volume, NULL };
	struct sb_error why = { 0 };

	return gone_is_fine(sb_cli_must(&e->cli, args, NULL, call, &why), &why, err);
}

int
sb_engine_commit(const struct sb_engine *e, const char *name, const char *image,
	const struct sb_call *call, struct sb_error *err)
{
	const char *const args[] = { "commit", name, image, NULL };

	return sb_cli_must(&e->cli, args, NULL, call, err);
}

int
sb_engine_has_image(const struct sb_engine *e, const char *image, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "image", "inspect", "--format", "{{.Id}}", image, NULL };
	struct sb_error why = { 0 };
	int r = sb_cli_must(&e->cli, args, NULL, call, &why);

	return r == 0 ? 1 : gone_is_fine(r, &why, err);
}

int
sb_engine_remove_image(const struct sb_engine *e, const char *image, const struct sb_call *call,
	struct sb_error *err)
{
	const char *const args[] = { "image", "rm", "--force", image, NULL };
	struct sb_error why = { 0 };

	return gone_is_fine(sb_cli_must(&e->cli, args, NULL, call, &why), &why, err);
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

int
sb_engine_pid(const struct sb_engine *e, const char *name, const struct sb_call *call, pid_t *out,
	struct sb_error *err)
{
	const char *const args[] = { "inspect", "--type", "container", "--format", "{{.State.Pid}}",
		name, NULL };
	sb_autofree char *text = NULL;
	sb_autofree char *path = NULL;
	int64_t pid;
	int r = inspect(e, args, call, &text, err);

	*out = 0;
	if (r < 0)
		return r;
	if (!sb_str_to_i64(text, 0, INT32_MAX, &pid))
		return sb_fail(err, SB_E_PROTO, "%s: '%s' is no process", e->cli.words.v[0], text);
	path = sb_str_printf("/proc/%d/ns/net", (int)pid);
	if (pid > 0 && path && access(path, F_OK) == 0)
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

	r = r < 0 ? gone_is_fine(r, &why, err) : 0;
	if (r == 0 && !*out)
		*out = strdup("");
	return r == 0 && !*out ? sb_fail(err, SB_E_NOMEM, "out of memory") : r;
}
