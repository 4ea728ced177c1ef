/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/profiles.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <provider/trust.h>

#define FILE_BYTES_MAX (1u << 20)
#define PROFILES_MAX 1000

SB_CLEANUP_PTR(sb_profiles, sb_profiles_free)

void
sb_profiles_free(struct sb_profiles *ps)
{
	if (!ps)
		return;
	for (size_t i = 0; i < ps->n; i++)
		sb_profile_free(&ps->v[i].p);
	free(ps->v);
	free(ps->user_file);
	free(ps->project_file);
	sb_profiles_controls_free(ps);
	free(ps->default_name);
	free(ps->project_name);
	sb_strlist_free(&ps->include);
	sb_strlist_free(&ps->exclude);
	free(ps);
}

static const struct profiles_entry *
find(const struct sb_profiles *ps, const char *name)
{
	for (size_t i = 0; i < ps->n; i++)
		if (strcmp(ps->v[i].p.name, name) == 0)
			return &ps->v[i];
	return NULL;
}

bool
sb_profiles_name_ok(const char *s)
{
	return s[0] && strlen(s) <= 64 &&
		strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		strlen(s);
}

static void
one_profile(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct sb_profiles *ps = f->ps;
	struct profiles_entry e = { .file = f->file, .line = key->start_mark.line + 1 }, *grown;
	const struct profiles_entry *other = find(ps, name);

	(void)arg;
	if (!sb_profiles_name_ok(name)) {
		sb_profiles_mistake(f, key,
			"\"%s\" is not a profile's name: use letters, digits, '-', '_' and '.'",
			name);
		return;
	}
	if (other) {
		sb_profiles_mistake(f, key, "profile %s is defined already in %s:%zu", name,
			other->file, other->line);
		return;
	}
	if (ps->n == PROFILES_MAX) {
		sb_profiles_mistake(f, key, "more than %d profiles", PROFILES_MAX);
		return;
	}
	e.p.name = strdup(name);
	grown = e.p.name ? reallocarray(ps->v, ps->n + 1, sizeof *grown) : NULL;
	if (!grown) {
		free(e.p.name);
		sb_profiles_mistake(f, key, "out of memory");
		return;
	}
	ps->v = grown;
	sb_profiles_body(f, value, &e.p);
	ps->v[ps->n++] = e;
}

static void
defaults_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	const char *s;

	(void)arg;
	if (strcmp(name, "control") == 0) {
		s = sb_profiles_text(f, value, name);
		free(f->ps->default_control);
		f->ps->default_control = s ? strdup(s) : NULL;
		f->ps->default_control_line = key->start_mark.line + 1;
		return;
	}
	if (strcmp(name, "sandbox") != 0) {
		sb_profiles_mistake(f, key, "defaults has no \"%s\": use sandbox, control", name);
		return;
	}
	s = sb_profiles_text(f, value, name);
	free(f->ps->default_name);
	f->ps->default_name = s ? strdup(s) : NULL;
	f->ps->default_line = key->start_mark.line + 1;
}

static void
top_pair(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct sb_profiles *ps = f->ps;
	const char *s;

	(void)arg;
	ps->says = ps->says || f->project;
	if (strcmp(name, "profiles") == 0) {
		sb_profiles_map(f, value, name, one_profile, NULL);
	} else if (!f->project && strcmp(name, "defaults") == 0) {
		sb_profiles_map(f, value, name, defaults_pair, NULL);
	} else if (!f->project && strcmp(name, "controls") == 0) {
		sb_profiles_controls(f, value);
	} else if (f->project && strcmp(name, "sandbox") == 0) {
		s = sb_profiles_text(f, value, name);
		ps->project_name = s ? strdup(s) : NULL;
		ps->project_line = key->start_mark.line + 1;
	} else if (f->project && strcmp(name, "disabled") == 0) {
		sb_profiles_bool(f, value, name, &ps->disabled);
	} else if (f->project && strcmp(name, "exclude") == 0) {
		sb_profiles_list(f, value, name, &ps->exclude);
	} else if (f->project && strcmp(name, "include") == 0) {
		sb_profiles_list(f, value, name, &ps->include);
	} else {
		sb_profiles_mistake(f, key, "there is no \"%s\" here: use %s", name,
			f->project ? "sandbox, disabled, exclude, include, profiles" :
				     "defaults, profiles, controls");
	}
}

static void
parse(struct profiles_reader *f, const struct sb_buf *text)
{
	const yaml_node_t *root;
	yaml_parser_t parser;

	if (!yaml_parser_initialize(&parser)) {
		sb_profiles_mistake(f, NULL, "out of memory");
		return;
	}
	yaml_parser_set_input_string(&parser, text->data, text->len);
	if (!yaml_parser_load(&parser, &f->doc)) {
		yaml_node_t at = { .start_mark = parser.problem_mark };

		sb_profiles_mistake(f, &at, "not YAML: %s",
			parser.problem ? parser.problem : "unreadable");
	} else {
		root = yaml_document_get_root_node(&f->doc);
		if (root)
			sb_profiles_map(f, root, "the file", top_pair, NULL);
		yaml_document_delete(&f->doc);
	}
	yaml_parser_delete(&parser);
}

/* Asks for consent to a file without mistakes. `text` is what was read, and nothing is read again.
 */
static int
ask(const struct sb_profiles *ps, const struct sb_profiles_opts *o, const char *path,
	const struct sb_buf *text, struct sb_error *err)
{
	struct sb_consent c = { .size = sizeof c, .file = path };
	sb_autofree char *effects = NULL;
	enum sb_trust trust;
	char digest[65];
	int r = sb_trust_check(o->state_dir, path, text->data, text->len, &trust, err);

	if (r < 0 || trust == SB_TRUST_GIVEN)
		return r;
	effects = sb_profiles_effects_of(ps, path, err);
	r = effects ? sb_trust_digest(text->data, text->len, digest, err) : SB_E_NOMEM;
	if (r < 0)
		return r;
	c.digest = digest;
	c.effects = effects;
	c.changed = trust == SB_TRUST_CHANGED;
	if (o->on_consent && o->on_consent(&c, o->consent_arg))
		return sb_trust_give(o->state_dir, path, text->data, text->len, err);
	return sb_fail(err, SB_E_UNTRUSTED,
		"%s %s: a sandbox may have written it; look at it and say \"sbctl trust\" in its "
		"directory, or leave it out with --no-project",
		path,
		c.changed ? "changed since you consented to it" :
			    "is there, and you did not consent to it");
}

/* Does a file of the user lie in the workspace, where a sandbox may have written it? */
static bool
in_project(const struct sb_profiles_opts *o, const char *path)
{
	sb_autofree char *root = o->project_dir ? realpath(o->project_dir, NULL) : NULL;
	sb_autofree char *real = root ? realpath(path, NULL) : NULL;

	return real && sb_trust_beneath(real, root);
}

/* Returns the number of mistakes, or an error. A default file that is not there is empty. */
static int
read_file(struct sb_profiles *ps, const struct sb_profiles_opts *o, const char *path, bool project,
	bool must, struct sb_error *first, struct sb_error *err)
{
	struct profiles_reader f = { .ps = ps,
		.o = o,
		.file = path,
		.project = project,
		.first = first };
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct stat st;
	int r;

	if (project && lstat(path, &st) == 0 && S_ISLNK(st.st_mode))
		return sb_fail(err, SB_E_DENIED,
			"%s is a symlink: a project's file must be a file in its directory", path);
	r = sb_file_read(AT_FDCWD, path, FILE_BYTES_MAX, &text, err);
	if (r == SB_E_NOTFOUND && !must)
		return 0;
	if (r < 0)
		return sb_wrap(err, r, "profiles");
	parse(&f, &text);
	if (f.mistakes > 0)
		return 1;
	if (project ? !ps->says : !in_project(o, path))
		return 0;
	if (o->inspect && project &&
		sb_trust_check(o->state_dir, path, text.data, text.len, &ps->trust, NULL) < 0)
		ps->trust = SB_TRUST_NEW;
	if (o->inspect)
		return 0;
	return ask(ps, o, path, &text, err);
}

static char *
default_file(void)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");

	if (xdg && xdg[0] == '/')
		return sb_str_printf("%s/sandbox/config.yaml", xdg);
	return home && home[0] == '/' ? sb_str_printf("%s/.config/sandbox/config.yaml", home) :
					strdup("");
}

/* A reference to a profile that is not there is a mistake of its file. */
static int
check_name(const struct sb_profiles *ps, const struct sb_profiles_opts *o, const char *file,
	size_t line, const char *name, struct sb_error *first)
{
	char text[256];

	if (!name || strcmp(name, "local") == 0 || find(ps, name))
		return 0;
	(void)snprintf(text, sizeof text, "there is no profile \"%.64s\"", name);
	if (first->code == 0)
		(void)sb_fail(first, SB_E_INVAL, "%s:%zu: %s", file, line, text);
	if (o->on_mistake)
		o->on_mistake(file, line, text, o->mistake_arg);
	return 1;
}

struct sb_profiles *
sb_profiles_load(const struct sb_profiles_opts *o, struct sb_error *err)
{
	sb_auto(sb_profiles) struct sb_profiles *ps = calloc(1, sizeof *ps);
	struct sb_error first = { 0 };
	int wrong = 0, r = 0;

	if (ps)
		ps->trust = SB_TRUST_GIVEN;
	if (ps)
		ps->user_file = o->user_file ? strdup(o->user_file) : default_file();
	if (!ps || !ps->user_file) {
		(void)sb_fail(err, SB_E_NOMEM, "profiles: out of memory");
		return NULL;
	}
	if (ps->user_file[0])
		r = read_file(ps, o, ps->user_file, false, o->user_file != NULL, &first, err);
	wrong += r > 0;
	if (r >= 0 && o->project_dir) {
		ps->project_file = sb_str_printf("%s/.sandbox.yaml", o->project_dir);
		r = ps->project_file ?
			read_file(ps, o, ps->project_file, true, false, &first, err) :
			sb_fail(err, SB_E_NOMEM, "profiles: out of memory");
		wrong += r > 0;
	}
	if (r < 0)
		return NULL;
	wrong += check_name(ps, o, ps->user_file, ps->default_line, ps->default_name, &first);
	wrong += check_name(ps, o, ps->project_file, ps->project_line, ps->project_name, &first);
	wrong += sb_profiles_controls_end(ps, o, &first);
	if (wrong) {
		if (err)
			*err = first;
		return NULL;
	}
	return sb_steal(&ps);
}

enum sb_trust
sb_profiles_trust(const struct sb_profiles *ps)
{
	return ps->trust;
}

const char *
sb_profiles_chosen(const struct sb_profiles *ps)
{
	return ps->disabled ? "local" : ps->project_name ? ps->project_name : ps->default_name;
}

static int
not_found(const struct sb_profiles *ps, const char *name, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf names = { 0 };
	char text[80];

	sb_buf_init(&names, 256);
	for (size_t i = 0; i < ps->n && !names.failed; i++)
		sb_buf_addf(&names, ", %s", ps->v[i].p.name);
	return sb_fail(err, SB_E_PROFILE_NOT_FOUND,
		"there is no profile \"%s\": there are local%s (%s)",
		sb_escape(name, strlen(name), text, sizeof text), (const char *)names.data,
		ps->user_file);
}

int
sb_profiles_get(const struct sb_profiles *ps, const char *name, struct sb_profile *out,
	struct sb_error *err)
{
	const struct profiles_entry *e;
	struct sb_profile p = { 0 };
	int r;

	if (name && ps->disabled)
		return sb_fail(err, SB_E_STATE,
			"profile %s is asked for, but %s has sandboxes disabled", name,
			ps->project_file);
	name = name ? name : sb_profiles_chosen(ps);
	name = name ? name : "local";
	e = find(ps, name);
	if (!e && strcmp(name, "local") != 0)
		return not_found(ps, name, err);
	r = e ? sb_profile_copy(&e->p, &p, err) :
		sb_profile_default(SB_BACKEND_LOCAL, NULL, &p, err);
	sb_strlist_join(&p.exclude, &ps->exclude);
	sb_strlist_join(&p.include, &ps->include);
	if (r == 0)
		r = sb_strlist_check(&p.exclude, err);
	if (r == 0)
		r = sb_strlist_check(&p.include, err);
	if (r < 0)
		sb_profile_free(&p);
	else
		*out = p;
	return r;
}

size_t
sb_profiles_count(const struct sb_profiles *ps)
{
	return ps->n;
}

const struct sb_profile *
sb_profiles_at(const struct sb_profiles *ps, size_t i, const char **file, size_t *line)
{
	if (file)
		*file = ps->v[i].file;
	if (line)
		*line = ps->v[i].line;
	return &ps->v[i].p;
}
