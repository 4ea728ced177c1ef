/* SPDX-License-Identifier: MIT */
/* Requests to a sandbox host, made of a verb's fields, its operands and its options. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/quote.h>
#include <base/random.h>
#include <base/str.h>
#include <bin/sbctl/host.h>

#define COMMAND_MAX (4u << 20)

/* NULL: one of the texts is not UTF-8. */
static json_t *
list_json(const struct sb_opt_list *l)
{
	json_t *v = json_array();

	for (size_t i = 0; i < l->n; i++)
		if (json_array_append_new(v, json_string(l->v[i])) < 0) {
			json_decref(v);
			return NULL;
		}
	return v;
}

/* `v` may be NULL, which is text that JSON cannot hold. */
static int
put(json_t *o, const char *key, json_t *v, struct sb_error *err)
{
	if (json_object_set_new(o, key, v) < 0)
		return sb_fail(err, SB_E_USAGE, "arguments must be UTF-8");
	return 0;
}

/* {"key": {"K": "V", ...}} from K=V texts; nothing from none. */
static int
put_pairs(json_t *o, const char *key, const struct sb_opt_list *l, struct sb_error *err)
{
	json_t *map;

	if (l->n == 0)
		return 0;
	map = json_object();
	(void)json_object_set_new(o, key, map);
	for (size_t i = 0; i < l->n; i++) {
		const char *eq = strchr(l->v[i], '=');
		sb_autofree char *name =
			eq ? strndup(l->v[i], (size_t)(eq - l->v[i])) : strdup(l->v[i]);

		if (!name || !name[0] ||
			json_object_set_new(map, name, json_string(eq ? eq + 1 : "")) < 0)
			return sb_fail(err, SB_E_USAGE, "\"%s\": must be KEY=VALUE in UTF-8",
				l->v[i]);
	}
	return 0;
}

static int
put_operands(json_t *o, const struct host_field *f, const struct host_args *a, struct sb_error *err)
{
	size_t n = (size_t)a->n;
	struct sb_opt_list rest = { .v = a->v + f->at, .n = n > f->at ? n - f->at : 0 };

	if (f->kind == HOST_OPERAND_PAIRS)
		return put_pairs(o, f->key, &rest, err);
	if (f->kind == HOST_OPERANDS)
		return put(o, f->key, list_json(&rest), err);
	return rest.n > 0 ? put(o, f->key, json_string(rest.v[0]), err) : 0;
}

static int
put_field(json_t *o, const struct host_field *f, const struct host_args *a, struct sb_error *err)
{
	const void *from = (const char *)a + f->at;
	const char *text;

	switch (f->kind) {
	case HOST_OPERAND:
	case HOST_OPERANDS:
	case HOST_OPERAND_PAIRS: return put_operands(o, f, a, err);
	case HOST_PAIRS: return put_pairs(o, f->key, from, err);
	case HOST_TEXT:
		text = *(const char *const *)from;
		return text ? put(o, f->key, json_string(text), err) : 0;
	case HOST_FLAG: return put(o, f->key, json_boolean(*(const bool *)from), err);
	case HOST_INT: return put(o, f->key, json_integer(*(const int64_t *)from), err);
	case HOST_SIZE:
		return put(o, f->key, json_integer((json_int_t) * (const uint64_t *)from), err);
	case HOST_TIME: return put(o, f->key, json_integer(*(const int64_t *)from * 1000000), err);
	case HOST_LIST: return put(o, f->key, list_json(from), err);
	}
	return 0;
}

json_t *
host_request(const struct host_verb *v, const struct host_args *a, struct sb_error *err)
{
	json_t *o = json_object();

	for (const struct host_field *f = v->fields; f && f->key; f++)
		if (put_field(o, f, a, err) < 0) {
			json_decref(o);
			return NULL;
		}
	if (a->fence)
		(void)json_object_set_new(o, "Fence", json_integer(a->fence));
	return o;
}

void
host_request_call_id(json_t *in, const struct host_args *a)
{
	uint8_t raw[12];
	char hex[2 * sizeof raw + 1];

	if (a->call_id)
		(void)json_object_set_new(in, "ToolCallID", json_string(a->call_id));
	else if (sb_random(raw, sizeof raw, NULL) == 0)
		(void)json_object_set_new(in, "ToolCallID",
			json_string(sb_str_hex(raw, sizeof raw, hex)));
}

int
host_request_command(const struct host_args *a, struct sb_buf *cmd, struct sb_error *err)
{
	sb_buf_init(cmd, COMMAND_MAX);
	if (a->n == 2)
		sb_buf_add_str(cmd, a->v[1]);
	for (int i = 1; a->n > 2 && i < a->n; i++) {
		if (i > 1)
			sb_buf_add_char(cmd, ' ');
		sb_quote_word(cmd, a->v[i]);
	}
	return sb_buf_check(cmd, "command", err);
}
