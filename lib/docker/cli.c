/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <docker/cli.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/child.h>
#include <base/spawn.h>
#include <base/str.h>

#define SAID_MAX 65536
#define SHOWN_WORDS 160 /* of a command in a message */
#define SHOWN_SAID 240  /* of what it said */

void
sb_cli_free(struct sb_cli *c)
{
	sb_strlist_free(&c->words);
	sb_strlist_free(&c->env);
}

char *
sb_cli_find(const char *program)
{
	const char *path = getenv("PATH"), *next;

	if (strchr(program, '/'))
		return access(program, X_OK) == 0 ? strdup(program) : NULL;
	for (; path && *path; path = next) {
		size_t n = strcspn(path, ":");
		sb_autofree char *full = NULL;

		next = path + n + (path[n] == ':');
		if (*path != '/')
			continue;
		full = sb_str_printf("%.*s/%s", (int)n, path, program);
		if (full && access(full, X_OK) == 0)
			return sb_steal(&full);
	}
	return NULL;
}

int
sb_cli_environ(const struct sb_cli *c, const char *const *more, struct sb_strlist *out,
	struct sb_error *err)
{
	sb_strlist_add_all(out, (const char *const *)environ);
	for (; more && *more; more++)
		sb_strlist_put(out, *more);
	for (size_t i = 0; i < c->env.n; i++)
		sb_strlist_put(out, c->env.v[i]);
	return sb_strlist_check(out, err);
}

static int
all_words(const struct sb_cli *c, const char *const *args, struct sb_strlist *out,
	struct sb_error *err)
{
	sb_strlist_join(out, &c->words);
	sb_strlist_add_all(out, args);
	return sb_strlist_check(out, err);
}

int
sb_cli_run(const struct sb_cli *c, const char *const *args, const struct sb_cli_io *io,
	const struct sb_call *call, struct sb_error *err)
{
	static const struct sb_cli_io quiet;
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 };
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	int r = all_words(c, args, &argv, err);

	io = io ? io : &quiet;
	if (r == 0)
		r = sb_cli_environ(c, NULL, &env, err);
	if (r < 0)
		return r;
	o.search_path = true;
	o.env = sb_strlist_borrow(&env);
	if (io->hold) {
		o.io[0] = SB_SPAWN_FD;
		o.fds[0] = io->hold;
	}
	if (io->shown) {
		o.io[0] = SB_SPAWN_INHERIT;
		o.io[1] = SB_SPAWN_FD;
		o.fds[1] = STDERR_FILENO;
		o.io[2] = SB_SPAWN_INHERIT;
		/* It may ask something of the terminal, which only the foreground group may. */
		o.own_group = false;
	}
	return sb_child_run(sb_strlist_borrow(&argv), &o, io->in, io->in_len, io->out, io->errors,
		call ? call->cancel : NULL, call ? call->deadline : SB_NEVER, err);
}

/* The last words of a text, without line ends, for a message. */
static const char *
last_words(const struct sb_buf *said, char *out, size_t size)
{
	const char *text = (const char *)said->data;
	size_t len = said->len;

	while (len && strchr(" \t\r\n", text[len - 1]))
		len--;
	while (len && strchr(" \t\r\n", *text)) {
		text++;
		len--;
	}
	if (len > SHOWN_SAID) {
		text += len - SHOWN_SAID;
		len = SHOWN_SAID;
	}
	return len ? sb_escape(text, len, out, size) : "it said nothing";
}

int
sb_cli_failed(const struct sb_cli *c, const char *const *args, int code, const struct sb_buf *said,
	struct sb_error *err)
{
	char words[2 * SHOWN_WORDS], text[2 * SHOWN_SAID];
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, SHOWN_WORDS);
	for (size_t i = 0; i < c->words.n; i++)
		sb_buf_addf(&b, "%s%s", i ? " " : "", c->words.v[i]);
	for (; args && *args; args++)
		sb_buf_addf(&b, " %s", *args);
	return sb_fail(err, SB_E_CHILD, "%s%s: exit status %d: %s",
		sb_escape((const char *)b.data, b.len, words, sizeof words), b.failed ? " ..." : "",
		code, last_words(said, text, sizeof text));
}

int
sb_cli_must(const struct sb_cli *c, const char *const *args, struct sb_buf *out,
	const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf own;
	sb_auto(sb_buf) struct sb_buf said;
	struct sb_cli_io io = { .out = out ? out : &own, .errors = &said };
	int r;

	sb_buf_init(&own, SAID_MAX);
	sb_buf_init(&said, SAID_MAX);
	r = sb_cli_run(c, args, &io, call, err);
	if (r < 0)
		return r;
	if (r > 0)
		return sb_cli_failed(c, args, r, said.len ? &said : io.out, err);
	return out ? sb_buf_check(out, c->words.v[0], err) : 0;
}
