/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <fleet/fleet-record.h>

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <cloud/http/json.h>

static const char *const node_states[] = { "joining", "ready", "draining", "gone" };
static const char *const box_states[] = { "creating", "here", "moving", "destroying", "warm" };

#define N_OF(a) (sizeof(a) / sizeof *(a))

bool
sb_fleet_name_ok(const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len <= SB_FLEET_NAME_MAX && name[0] != '-' && name[0] != '.' &&
		strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-.") == len;
}

const char *
sb_fleet_node_state_name(enum sb_fleet_node_state s)
{
	return node_states[s];
}

const char *
sb_fleet_box_state_name(enum sb_fleet_box_state s)
{
	return box_states[s];
}

void
sb_fleet_node_clear(struct sb_fleet_node *n)
{
	free(n->address);
	free(n->e2b);
	free(n->daytona);
	free(n->ssh);
	free(n->instance);
	free(n->why);
	sb_strmap_free(&n->labels);
	sb_strlist_free(&n->templates);
	memset(n, 0, sizeof *n);
}

void
sb_fleet_box_clear(struct sb_fleet_box *b)
{
	free(b->tenant);
	free(b->template);
	sb_strmap_free(&b->labels);
	memset(b, 0, sizeof *b);
}

/* --- writing
 * -------------------------------------------------------------------------------------- */

static int
finish(json_t *o, struct sb_buf *out, struct sb_error *err)
{
	char *text = o ? json_dumps(o, JSON_COMPACT | JSON_SORT_KEYS) : NULL;

	json_decref(o);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	sb_buf_add_str(out, text);
	free(text);
	return sb_buf_check(out, "record", err);
}

/* Members that are NULL are left out. */
static void
set_text(json_t *o, const char *name, const char *value)
{
	if (value && *value)
		(void)json_object_set_new(o, name, json_string(value));
}

static void
set_map(json_t *o, const char *name, const struct sb_strmap *m)
{
	json_t *map = json_object();

	for (size_t i = 0; i < m->n; i++)
		(void)json_object_set_new(map, m->v[i].key, json_string(m->v[i].value));
	(void)json_object_set_new(o, name, map);
}

int
sb_fleet_node_write(const struct sb_fleet_node *n, struct sb_buf *out, struct sb_error *err)
{
	json_t *o = json_pack("{s:s, s:s, s:b, s:I}", "address", n->address, "state",
		node_states[n->state], "cordoned", n->cordoned, "max_sessions",
		(json_int_t)n->max_sessions);
	json_t *templates = json_array();

	set_text(o, "e2b", n->e2b);
	set_text(o, "daytona", n->daytona);
	set_text(o, "ssh", n->ssh);
	set_text(o, "instance", n->instance);
	set_text(o, "why", n->why);
	set_map(o, "labels", &n->labels);
	for (size_t i = 0; i < n->templates.n; i++)
		(void)json_array_append_new(templates, json_string(n->templates.v[i]));
	(void)json_object_set_new(o, "templates", templates);
	return finish(o, out, err);
}

int
sb_fleet_load_write(const struct sb_fleet_load *l, struct sb_buf *out, struct sb_error *err)
{
	return finish(json_pack("{s:b, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "healthy",
			      l->healthy, "sessions", (json_int_t)l->sessions, "max_sessions",
			      (json_int_t)l->max_sessions, "mem_mb", (json_int_t)l->mem_mb,
			      "mem_free_mb", (json_int_t)l->mem_free_mb, "disk",
			      (json_int_t)l->disk, "disk_free", (json_int_t)l->disk_free, "cpus",
			      (json_int_t)l->cpus, "active_tools", (json_int_t)l->active_tools),
		out, err);
}

int
sb_fleet_box_write(const struct sb_fleet_box *b, struct sb_buf *out, struct sb_error *err)
{
	json_t *o = json_pack("{s:s, s:s, s:I}", "node", b->node, "state", box_states[b->state],
		"created_ms", (json_int_t)b->created_ms);

	set_text(o, "to", b->to);
	set_text(o, "tenant", b->tenant);
	set_text(o, "template", b->template);
	if (b->labels.n > 0)
		set_map(o, "labels", &b->labels);
	return finish(o, out, err);
}

/* --- reading
 * -------------------------------------------------------------------------------------- */

/* A record being read: the first mistake sticks, with the name of its member. */
struct reading {
	const json_t *o;
	const char *what;
	struct sb_error *err;
	int r;
};

static void
bad(struct reading *d, const char *name, const char *wants)
{
	if (d->r == 0)
		d->r = sb_fail(d->err, SB_E_CORRUPT, "record of %s: \"%s\" is not %s", d->what,
			name, wants);
}

static void
get_text(struct reading *d, const char *name, bool required, char **out)
{
	const json_t *v = json_object_get(d->o, name);

	if (!v && !required)
		return;
	if (!json_is_string(v) || strlen(json_string_value(v)) != json_string_length(v)) {
		bad(d, name, "a text");
		return;
	}
	*out = strdup(json_string_value(v));
	if (!*out && d->r == 0)
		d->r = sb_fail(d->err, SB_E_NOMEM, "out of memory");
}

static void
get_name(struct reading *d, const char *name, bool required, char *out)
{
	const json_t *v = json_object_get(d->o, name);
	const char *s = json_string_value(v);

	if (!v && !required)
		return;
	if (!s || !sb_fleet_name_ok(s))
		bad(d, name, "a name of a node");
	else
		(void)memcpy(out, s, strlen(s) + 1);
}

static uint64_t
get_number(struct reading *d, const char *name, uint64_t max)
{
	const json_t *v = json_object_get(d->o, name);

	if (!v)
		return 0;
	if (!json_is_integer(v) || json_integer_value(v) < 0 ||
		(uint64_t)json_integer_value(v) > max) {
		bad(d, name, "a number in its limits");
		return 0;
	}
	return (uint64_t)json_integer_value(v);
}

static bool
get_flag(struct reading *d, const char *name)
{
	const json_t *v = json_object_get(d->o, name);

	if (v && !json_is_boolean(v))
		bad(d, name, "true or false");
	return json_is_true(v);
}

static unsigned
get_word(struct reading *d, const char *name, const char *const *words, unsigned n)
{
	const char *s = json_string_value(json_object_get(d->o, name));

	for (unsigned i = 0; s && i < n; i++)
		if (strcmp(s, words[i]) == 0)
			return i;
	bad(d, name, "a state");
	return 0;
}

static void
get_map(struct reading *d, const char *name, struct sb_strmap *out)
{
	const json_t *map = json_object_get(d->o, name), *v;
	const char *key;

	if (!map)
		return;
	if (!json_is_object(map))
		bad(d, name, "an object");
	json_object_foreach((json_t *)map, key, v)
	{
		if (!json_is_string(v))
			bad(d, name, "an object of texts");
		else if (d->r == 0)
			d->r = sb_strmap_set(out, key, json_string_value(v), d->err);
	}
}

static void
get_list(struct reading *d, const char *name, struct sb_strlist *out)
{
	const json_t *list = json_object_get(d->o, name), *v;
	size_t i;

	if (!list)
		return;
	if (!json_is_array(list))
		bad(d, name, "a list");
	json_array_foreach(list, i, v)
	{
		if (!json_is_string(v))
			bad(d, name, "a list of texts");
		else
			sb_strlist_add(out, json_string_value(v));
	}
	if (d->r == 0)
		d->r = sb_strlist_check(out, d->err);
}

static json_t *
begin(struct reading *d, const char *what, const void *data, size_t len, struct sb_error *err)
{
	struct sb_error why = { 0 };
	json_t *o = len > 0 ? sb_json_parse(data, len, &why) : NULL;

	*d = (struct reading){ .o = o, .what = what, .err = err };
	if (!o)
		d->r = sb_fail(err, SB_E_CORRUPT, "record of %s: %s", what,
			len > 0 ? why.msg : "it is empty");
	return o;
}

int
sb_fleet_node_read(struct sb_fleet_node *n, const char *id, const void *data, size_t len,
	struct sb_error *err)
{
	struct reading d;
	json_t *o = begin(&d, "a node", data, len, err);

	memset(n, 0, sizeof *n);
	if (d.r == 0 && !sb_fleet_name_ok(id))
		d.r = sb_fail(err, SB_E_CORRUPT, "record of a node: its key has no name");
	if (d.r == 0) {
		(void)memcpy(n->id, id, strlen(id) + 1);
		get_text(&d, "address", true, &n->address);
		n->state = (enum sb_fleet_node_state)get_word(&d, "state", node_states,
			N_OF(node_states));
		n->cordoned = get_flag(&d, "cordoned");
		n->max_sessions = (uint32_t)get_number(&d, "max_sessions", UINT32_MAX);
		get_text(&d, "e2b", false, &n->e2b);
		get_text(&d, "daytona", false, &n->daytona);
		get_text(&d, "ssh", false, &n->ssh);
		get_text(&d, "instance", false, &n->instance);
		get_text(&d, "why", false, &n->why);
		get_map(&d, "labels", &n->labels);
		get_list(&d, "templates", &n->templates);
	}
	json_decref(o);
	if (d.r < 0)
		sb_fleet_node_clear(n);
	return d.r;
}

int
sb_fleet_load_read(struct sb_fleet_load *l, const void *data, size_t len, struct sb_error *err)
{
	struct reading d;
	json_t *o = begin(&d, "a load", data, len, err);

	memset(l, 0, sizeof *l);
	if (d.r == 0) {
		l->healthy = get_flag(&d, "healthy");
		l->sessions = (uint32_t)get_number(&d, "sessions", UINT32_MAX);
		l->max_sessions = (uint32_t)get_number(&d, "max_sessions", UINT32_MAX);
		l->mem_mb = get_number(&d, "mem_mb", INT64_MAX);
		l->mem_free_mb = get_number(&d, "mem_free_mb", INT64_MAX);
		l->disk = get_number(&d, "disk", INT64_MAX);
		l->disk_free = get_number(&d, "disk_free", INT64_MAX);
		l->cpus = get_number(&d, "cpus", INT64_MAX);
		l->active_tools = (uint32_t)get_number(&d, "active_tools", UINT32_MAX);
	}
	json_decref(o);
	return d.r;
}

int
sb_fleet_box_read(struct sb_fleet_box *b, const void *data, size_t len, struct sb_error *err)
{
	struct reading d;
	json_t *o = begin(&d, "a session", data, len, err);

	memset(b, 0, sizeof *b);
	if (d.r == 0) {
		get_name(&d, "node", true, b->node);
		get_name(&d, "to", false, b->to);
		b->state = (enum sb_fleet_box_state)get_word(&d, "state", box_states,
			N_OF(box_states));
		get_text(&d, "tenant", false, &b->tenant);
		get_text(&d, "template", false, &b->template);
		get_map(&d, "labels", &b->labels);
		b->created_ms = (int64_t)get_number(&d, "created_ms", INT64_MAX);
		if ((b->state == SB_FLEET_MOVING) != (b->to[0] != '\0'))
			bad(&d, "to", "there just where a session moves");
	}
	json_decref(o);
	if (d.r < 0)
		sb_fleet_box_clear(b);
	return d.r;
}
