/* SPDX-License-Identifier: MIT */
/* Reads the controls of the user's file. They start things on machines: a project's file has none.
 */
#include "config.h"

#include <provider/profiles.h>

#include <stdlib.h>
#include <string.h>

#include <base/buf.h>

#define CONTROLS_MAX 200

void
sb_profiles_controls_free(struct sb_profiles *ps)
{
	for (size_t i = 0; i < ps->n_controls; i++) {
		free(ps->controls[i].name);
		free(ps->controls[i].kind);
		sb_strlist_free(&ps->controls[i].options);
	}
	free(ps->controls);
	free(ps->default_control);
}

/* A control being filled. */
struct body {
	struct sb_profile_control *c;
	const yaml_node_t *values[64]; /* of its options, in order */
};

/* Lists are texts with commas, so that a control's option is always a text. */
static char *
value_text(struct profiles_reader *f, const yaml_node_t *value, const char *name)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	const char *s;
	size_t len;

	if (!value || value->type != YAML_SEQUENCE_NODE) {
		s = sb_profiles_text(f, value, name);
		return s ? strdup(s) : NULL;
	}
	sb_buf_init(&b, 65536);
	sb_profiles_list(f, value, name, &l);
	for (size_t i = 0; i < l.n; i++)
		sb_buf_addf(&b, "%s%s", i ? "," : "", l.v[i]);
	return (char *)sb_buf_detach(&b, &len);
}

static void
one_option(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct body *b = arg;
	sb_autofree char *text = value_text(f, value, name);

	if (!text)
		return;
	if (strcmp(name, "kind") == 0) {
		b->c->kind = strdup(text);
		return;
	}
	if (b->c->options.n == sizeof b->values / sizeof b->values[0]) {
		sb_profiles_mistake(f, key, "too many options");
		return;
	}
	b->values[b->c->options.n] = value;
	sb_strlist_addf(&b->c->options, "%s=%s", name, text);
}

/* Its options are known by its kind, which may come last. */
static void
check_options(struct profiles_reader *f, const yaml_node_t *at, const struct body *b)
{
	const struct sb_profile_control *c = b->c;
	struct sb_error why = { 0 };

	if (!c->kind) {
		sb_profiles_mistake(f, at, "control %s has no kind", c->name);
		return;
	}
	if (!f->o->control_option)
		return;
	if (f->o->control_option(c->kind, NULL, NULL, &why) < 0) {
		sb_profiles_mistake(f, at, "control %s: %s", c->name, why.msg);
		return;
	}
	for (size_t i = 0; i < c->options.n; i++) {
		const char *eq = strchr(c->options.v[i], '=');
		sb_autofree char *key = strndup(c->options.v[i], (size_t)(eq - c->options.v[i]));

		if (key && f->o->control_option(c->kind, key, eq + 1, &why) < 0)
			sb_profiles_mistake(f, b->values[i], "control %s: %s", c->name, why.msg);
	}
}

static void
one_control(struct profiles_reader *f, const yaml_node_t *key, const char *name,
	const yaml_node_t *value, void *arg)
{
	struct sb_profiles *ps = f->ps;
	struct sb_profile_control *grown;
	struct body b = { 0 };

	(void)arg;
	if (!sb_profiles_name_ok(name)) {
		sb_profiles_mistake(f, key,
			"\"%s\" is not a control's name: use letters, digits, '-', '_' and '.'",
			name);
		return;
	}
	grown = ps->n_controls < CONTROLS_MAX ?
		reallocarray(ps->controls, ps->n_controls + 1, sizeof *grown) :
		NULL;
	if (!grown) {
		sb_profiles_mistake(f, key, "more than %d controls", CONTROLS_MAX);
		return;
	}
	ps->controls = grown;
	b.c = &ps->controls[ps->n_controls++];
	*b.c = (struct sb_profile_control){ .name = strdup(name),
		.file = f->file,
		.line = key->start_mark.line + 1 };
	sb_profiles_map(f, value, "a control", one_option, &b);
	if (value && value->type == YAML_MAPPING_NODE)
		check_options(f, key, &b);
	if (!b.c->name || b.c->options.failed)
		sb_profiles_mistake(f, key, "out of memory");
}

void
sb_profiles_controls(struct profiles_reader *f, const yaml_node_t *n)
{
	sb_profiles_map(f, n, "controls", one_control, NULL);
}

static const struct sb_profile_control *
find(const struct sb_profiles *ps, const char *name)
{
	for (size_t i = 0; i < ps->n_controls; i++)
		if (strcmp(ps->controls[i].name, name) == 0)
			return &ps->controls[i];
	return NULL;
}

static int
not_there(const struct sb_profiles *ps, const char *name, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf names = { 0 };
	char text[80];

	sb_buf_init(&names, 256);
	for (size_t i = 0; i < ps->n_controls && !names.failed; i++)
		sb_buf_addf(&names, "%s%s", i ? ", " : "", ps->controls[i].name);
	return sb_fail(err, SB_E_PROFILE_NOT_FOUND, "there is no control \"%s\": there %s%s (%s)",
		sb_escape(name, strlen(name), text, sizeof text),
		ps->n_controls == 1    ? "is " :
			ps->n_controls ? "are " :
					 "are none",
		(const char *)names.data, ps->user_file);
}

int
sb_profiles_controls_end(const struct sb_profiles *ps, const struct sb_profiles_opts *o,
	struct sb_error *first)
{
	struct sb_error why = { 0 };

	if (!ps->default_control || find(ps, ps->default_control))
		return 0;
	(void)not_there(ps, ps->default_control, &why);
	if (first->code == 0)
		(void)sb_fail(first, SB_E_INVAL, "%s:%zu: %s", ps->user_file,
			ps->default_control_line, why.msg);
	if (o->on_mistake)
		o->on_mistake(ps->user_file, ps->default_control_line, why.msg, o->mistake_arg);
	return 1;
}

const struct sb_profile_control *
sb_profiles_control(const struct sb_profiles *ps, const char *name, struct sb_error *err)
{
	const struct sb_profile_control *c;

	name = name ? name : ps->default_control;
	if (!name && ps->n_controls == 1)
		return &ps->controls[0];
	if (!name) {
		(void)sb_fail(err, SB_E_USAGE,
			ps->n_controls ? "say which control: --control NAME, or \"defaults: "
					 "{control: NAME}\" in %s" :
					 "no control is set up: write one into %s, see CONTROLS in "
					 "sbctl(1)",
			ps->user_file);
		return NULL;
	}
	c = find(ps, name);
	if (!c)
		(void)not_there(ps, name, err);
	return c;
}

const struct sb_profile_control *
sb_profiles_control_at(const struct sb_profiles *ps, size_t i)
{
	return i < ps->n_controls ? &ps->controls[i] : NULL;
}
