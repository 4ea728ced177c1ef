/* SPDX-License-Identifier: MIT */
/*
 * Reads what "ls --json" says. Real ones print lines before it (a daemon that starts), have called
 * the list "vms" or nothing at all, and leave out members at will.
 */
#include "config.h"

#include <docker/docker-priv.h>

#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <docker/name.h>

#define NOISE_MAX 1000 /* lines that look like JSON and are no list */

void
sb_docker_sandbox_free(struct sb_docker_sandbox *s)
{
	free(s->name);
	free(s->id);
	free(s->status);
	sb_strlist_free(&s->workspaces);
	*s = (struct sb_docker_sandbox){ 0 };
}

void
sb_docker_list_free(struct sb_docker_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		sb_docker_sandbox_free(&l->v[i]);
	free(l->v);
	*l = (struct sb_docker_list){ 0 };
}

bool
sb_docker_sandbox_has(const struct sb_docker_sandbox *s, const char *dir)
{
	size_t len = strlen(dir);

	for (size_t i = 0; i < s->workspaces.n; i++) {
		const char *w = s->workspaces.v[i];

		if (strncmp(w, dir, len) == 0 && (!w[len] || strcmp(w + len, ":ro") == 0))
			return true;
	}
	return false;
}

static int
bad(struct sb_error *err, const char *what)
{
	return sb_fail(err, SB_E_PROTO, "decoding sandbox list: %s", what);
}

/* A text that may be missing or null. */
static int
take_text(const json_t *o, const char *key, char **out, struct sb_error *err)
{
	const json_t *v = json_object_get(o, key);

	if (!v || json_is_null(v))
		return 0;
	if (!json_is_string(v))
		return sb_fail(err, SB_E_PROTO, "decoding sandbox list: \"%s\" is no text", key);
	*out = strdup(json_string_value(v));
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

static int
take_sandbox(const json_t *o, struct sb_docker_sandbox *out, struct sb_error *err)
{
	const json_t *list = json_object_get(o, "workspaces");
	const json_t *w;
	size_t i;
	int r;

	if (!json_is_object(o))
		return bad(err, "an entry is no object");
	r = take_text(o, "name", &out->name, err);
	if (r == 0)
		r = take_text(o, "id", &out->id, err);
	if (r == 0)
		r = take_text(o, "status", &out->status, err);
	if (r < 0)
		return r;
	/* It goes into command lines. */
	if (!out->name || !sb_name_ok(out->name))
		return bad(err, "an entry has no name that could be used");
	if (list && !json_is_null(list) && !json_is_array(list))
		return bad(err, "\"workspaces\" is no list");
	json_array_foreach(list, i, w)
	{
		if (!json_is_string(w))
			return bad(err, "a workspace is no text");
		sb_strlist_add(&out->workspaces, json_string_value(w));
	}
	return sb_strlist_check(&out->workspaces, err);
}

static int
take_list(const json_t *list, struct sb_docker_list *out, struct sb_error *err)
{
	sb_auto(sb_docker_list) struct sb_docker_list l = { 0 };
	size_t n = json_array_size(list);
	int r = 0;

	l.v = calloc(n ? n : 1, sizeof *l.v);
	if (!l.v)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < n; i++) {
		l.n = i + 1;
		r = take_sandbox(json_array_get(list, i), &l.v[i], err);
	}
	if (r < 0)
		return r;
	*out = l;
	l = (struct sb_docker_list){ 0 };
	return 0;
}

/*
 * The list in a document, borrowed. NULL: it has none. `none` becomes true for one that says so: an
 * empty object, or null in place of the list; `old` for one of the first versions.
 */
static const json_t *
list_in(const json_t *doc, bool *none, bool *old)
{
	static const char *const keys[] = { "sandboxes", "vms", NULL };

	if (json_is_array(doc)) {
		const json_t *first = json_array_get(doc, 0);

		return !first || json_is_object(first) ? doc : NULL;
	}
	for (size_t i = 0; keys[i]; i++) {
		const json_t *v = json_object_get(doc, keys[i]);

		*old = i > 0;
		if (v && !json_is_null(v))
			return v;
		if (v)
			*none = true;
	}
	if (json_object_size(doc) == 0)
		*none = true;
	return NULL;
}

int
sb_docker_list_parse(const char *text, size_t len, struct sb_docker_list *out, struct sb_error *err)
{
	const char *end = text + len;
	bool none = false, old = false;
	size_t tries = 0;

	*out = (struct sb_docker_list){ 0 };
	for (const char *line = text; line < end;) {
		const char *p = line, *next = memchr(line, '\n', (size_t)(end - line));
		const json_t *list = NULL;
		json_t *doc = NULL;
		int r = 0;

		while (p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (p < end && (*p == '{' || *p == '[') && tries++ < NOISE_MAX)
			doc = json_loadb(p, (size_t)(end - p), JSON_DISABLE_EOF_CHECK, NULL);
		if (doc)
			list = list_in(doc, &none, &old);
		if (list)
			r = json_is_array(list) ? take_list(list, out, err) :
						  bad(err, "the list is no list");
		json_decref(doc);
		if (list) {
			out->old = r == 0 && old;
			return r;
		}
		line = next ? next + 1 : end;
	}
	return none ? 0 : bad(err, "there is none in the answer");
}

int
sb_docker_list(struct sb_docker *d, const struct sb_call *call, struct sb_docker_list *out,
	struct sb_error *err)
{
	const char *const args[] = { "ls", "--json", NULL };
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	*out = (struct sb_docker_list){ 0 };
	sb_buf_init(&text, SB_DOCKER_OUTPUT_MAX);
	r = sb_cli_must(&d->cli, args, &text, call, err);
	if (r == 0)
		r = sb_docker_list_parse((const char *)text.data, text.len, out, err);
	if (r == 0 && out->old && call && !atomic_exchange(&d->warned, true))
		sb_log(&call->log, SB_LOG_WARN, "docker",
			"this %s is one of the first versions with sandboxes: upgrade it",
			d->sbx ? "sbx" : "Docker Desktop");
	return r;
}

int
sb_docker_for_workspace(struct sb_docker *d, const char *dir, const struct sb_call *call,
	struct sb_docker_sandbox *out)
{
	sb_auto(sb_docker_list) struct sb_docker_list l = { 0 };

	*out = (struct sb_docker_sandbox){ 0 };
	if (sb_docker_list(d, call, &l, NULL) < 0)
		return 0;
	for (size_t i = 0; i < l.n; i++)
		if (l.v[i].workspaces.n && strcmp(l.v[i].workspaces.v[0], dir) == 0) {
			*out = l.v[i];
			l.v[i] = (struct sb_docker_sandbox){ 0 };
			return 1;
		}
	return 0;
}
