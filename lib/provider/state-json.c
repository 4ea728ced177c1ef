/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/state-json.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/str.h>

#define LIST_MAX 4096 /* texts of one list */
#define PROVIDER_STATE_MAX (1u << 20)
#define DEPTH_MAX 32
#define VALUES_MAX 65536

SB_CLEANUP_PTR(json_t, json_decref)

json_t *
sb_state_json_text(const char *s)
{
	json_t *j = json_string(s);
	sb_autofree char *hex = NULL;

	if (j)
		return j;
	hex = malloc(2 * strlen(s) + 1);
	return hex ? json_pack("{s:s}", "hex", sb_str_hex((const uint8_t *)s, strlen(s), hex)) :
		     NULL;
}

json_t *
sb_state_json_texts(const char *const *v)
{
	json_t *a = json_array();

	for (size_t i = 0; a && v && v[i]; i++)
		if (json_array_append_new(a, sb_state_json_text(v[i])) < 0) {
			json_decref(a);
			a = NULL;
		}
	return a;
}

/* The value of a field; `skip` is set when it is left out. */
static json_t *
field_json(const struct state_field *f, const void *at, bool *skip)
{
	char number[24];
	int v;

	*skip = false;
	switch (f->kind) {
	case STATE_TEXT:
		*skip = !*(char *const *)at;
		return *skip ? NULL : sb_state_json_text(*(char *const *)at);
	case STATE_TEXTS:
		*skip = ((const struct sb_strlist *)at)->n == 0;
		return *skip ? NULL : sb_state_json_texts(sb_strlist_borrow(at));
	case STATE_WORD: memcpy(&v, at, sizeof v); return json_string(f->words()[v]);
	case STATE_I64:
		*skip = *(const int64_t *)at == 0;
		return *skip ? NULL : json_integer(*(const int64_t *)at);
	case STATE_U64:
		*skip = *(const uint64_t *)at == 0;
		(void)snprintf(number, sizeof number, "%" PRIu64, *(const uint64_t *)at);
		return *skip ? NULL : json_string(number);
	case STATE_INT:
		*skip = *(const int *)at == -1;
		return *skip ? NULL : json_integer(*(const int *)at);
	case STATE_BOOL: *skip = !*(const bool *)at; return *skip ? NULL : json_true();
	case STATE_JSON:
		*skip = !*(char *const *)at;
		return *skip ? NULL : json_loads(*(char *const *)at, JSON_REJECT_DUPLICATES, NULL);
	}
	return NULL;
}

static size_t
words_count(const char *const *v)
{
	size_t n = 0;

	while (v[n])
		n++;
	return n;
}

static int
check_words(const struct sb_state *s, struct sb_error *err)
{
	for (const struct state_field *f = sb_state_fields; f->name; f++) {
		unsigned v;

		if (f->kind != STATE_WORD)
			continue;
		memcpy(&v, (const char *)s + f->at, sizeof v);
		if (v >= words_count(f->words()))
			return sb_fail(err, SB_E_INVAL, "state of a sandbox: %s has no value %u",
				f->name, v);
	}
	return 0;
}

json_t *
sb_state_json(const struct sb_state *s, struct sb_error *err)
{
	sb_auto(json_t) json_t *o = json_object();
	sb_auto(json_t) json_t *unknown = s->unknown ? json_loads(s->unknown, 0, NULL) : NULL;

	if (check_words(s, err) < 0)
		return NULL;
	if (!o || json_object_set_new(o, "version", json_integer(SB_STATE_VERSION)) < 0)
		goto no_memory;
	for (const struct state_field *f = sb_state_fields; f->name; f++) {
		bool skip;
		json_t *v = field_json(f, (const char *)s + f->at, &skip);

		if (skip)
			continue;
		if (!v && f->kind == STATE_JSON) {
			(void)sb_fail(err, SB_E_INVAL,
				"state of a sandbox: %s is not a JSON object", f->name);
			return NULL;
		}
		if (json_object_set_new(o, f->name, v) < 0)
			goto no_memory;
	}
	if (unknown && json_object_update_missing(o, unknown) < 0)
		goto no_memory;
	return sb_steal(&o);
no_memory:
	(void)sb_fail(err, SB_E_NOMEM, "state of a sandbox: out of memory");
	return NULL;
}

int
sb_state_encode(const struct sb_state *s, char **out, struct sb_error *err)
{
	sb_auto(json_t) json_t *o = sb_state_json(s, err);
	sb_autofree char *text = o ? json_dumps(o, JSON_INDENT(2)) : NULL;

	if (!o)
		return err && err->code < 0 ? err->code : SB_E_NOMEM;
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "state of a sandbox: out of memory");
	if (strlen(text) > SB_STATE_MAX)
		return sb_fail(err, SB_E_LIMIT, "state of a sandbox is larger than %u bytes",
			SB_STATE_MAX);
	*out = sb_steal(&text);
	return 0;
}

static int
wrong(const struct state_field *f, const char *need, struct sb_error *err)
{
	return sb_fail(err, SB_E_CORRUPT, "state of a sandbox: %s must be %s", f->name, need);
}

char *
sb_state_json_get_text(const json_t *v)
{
	const char *hex = json_string_value(json_object_get(v, "hex"));
	size_t n = hex ? strlen(hex) / 2 : 0;
	char *raw;

	if (json_is_string(v))
		return strlen(json_string_value(v)) == json_string_length(v) ?
			strdup(json_string_value(v)) :
			NULL;
	raw = hex && n > 0 ? calloc(1, n + 1) : NULL;
	if (raw &&
		(!sb_str_unhex(hex, (uint8_t *)raw, n) || strlen(hex) % 2 || memchr(raw, 0, n))) {
		free(raw);
		return NULL;
	}
	return raw;
}

int
sb_state_json_get_texts(const json_t *v, struct sb_strlist *out, struct sb_error *err)
{
	size_t n = json_array_size(v);

	if (!json_is_array(v) || n > LIST_MAX)
		return sb_fail(err, SB_E_CORRUPT, "not a list of at most %d texts", LIST_MAX);
	for (size_t i = 0; i < n; i++) {
		sb_autofree char *text = sb_state_json_get_text(json_array_get(v, i));

		if (!text)
			return sb_fail(err, SB_E_CORRUPT, "not a list of texts");
		sb_strlist_add(out, text);
	}
	return sb_strlist_check(out, err);
}

static int
get_texts(const struct state_field *f, const json_t *v, struct sb_strlist *out,
	struct sb_error *err)
{
	int r = sb_state_json_get_texts(v, out, err);

	return r == SB_E_CORRUPT ? wrong(f, "a list of at most 4096 texts", err) : r;
}

static int
get_word(const struct state_field *f, const json_t *v, void *at, struct sb_error *err)
{
	const char *s = json_string_value(v);
	const char *const *words = f->words();
	char text[64];

	for (int i = 0; s && words[i]; i++)
		if (strcmp(words[i], s) == 0) {
			memcpy(at, &i, sizeof i);
			return 0;
		}
	return sb_fail(err, SB_E_CORRUPT, "state of a sandbox: %s \"%s\" is not known", f->name,
		sb_escape(s ? s : "", s ? strlen(s) : 0, text, sizeof text));
}

static int
get_number(const struct state_field *f, const json_t *v, void *at, struct sb_error *err)
{
	int64_t n = 0;

	if (f->kind == STATE_U64) {
		if (!json_is_string(v) || !sb_str_to_i64(json_string_value(v), 0, INT64_MAX, &n))
			return wrong(f, "a number in a text", err);
		*(uint64_t *)at = (uint64_t)n;
		return 0;
	}
	if (!json_is_integer(v))
		return wrong(f, "a whole number", err);
	n = json_integer_value(v);
	if (f->kind == STATE_INT) {
		if (n < -1 || n > 1024)
			return wrong(f, "an exit code", err);
		*(int *)at = (int)n;
	} else {
		*(int64_t *)at = n;
	}
	return 0;
}

static int
get_field(const struct state_field *f, const json_t *v, void *at, struct sb_error *err)
{
	switch (f->kind) {
	case STATE_TEXT:
		*(char **)at = sb_state_json_get_text(v);
		return *(char **)at ? 0 : wrong(f, "a text", err);
	case STATE_TEXTS: return get_texts(f, v, at, err);
	case STATE_WORD: return get_word(f, v, at, err);
	case STATE_I64:
	case STATE_U64:
	case STATE_INT: return get_number(f, v, at, err);
	case STATE_BOOL:
		if (!json_is_boolean(v))
			return wrong(f, "true or false", err);
		*(bool *)at = json_is_true(v);
		return 0;
	case STATE_JSON:
		if (!json_is_object(v))
			return wrong(f, "an object", err);
		*(char **)at = json_dumps(v, JSON_COMPACT | JSON_SORT_KEYS);
		if (*(char **)at && strlen(*(char **)at) > PROVIDER_STATE_MAX)
			return sb_fail(err, SB_E_LIMIT,
				"state of a sandbox: %s is larger than %u bytes", f->name,
				PROVIDER_STATE_MAX);
		return *(char **)at ? 0 :
				      sb_fail(err, SB_E_NOMEM, "state of a sandbox: out of memory");
	}
	return 0;
}

/* Bounds what the parser will allocate and how deep it recurses, before it runs. */
static bool
shape_ok(const char *s, size_t len)
{
	size_t depth = 0, values = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		if (in_string) {
			if (s[i] == '\\')
				i++;
			else if (s[i] == '"')
				in_string = false;
		} else if (s[i] == '"') {
			in_string = true;
		} else if (strchr("[{", s[i]) && s[i]) {
			depth++;
			values++;
		} else if ((s[i] == ']' || s[i] == '}') && depth > 0) {
			depth--;
		} else if (s[i] == ',') {
			values++;
		}
		if (depth > DEPTH_MAX || values > VALUES_MAX)
			return false;
	}
	return true;
}

static int
decode_object(json_t *o, struct sb_state *s, struct sb_error *err)
{
	int64_t version = json_integer_value(json_object_get(o, "version"));
	int r = 0;

	if (!json_is_object(o) || version < 1)
		return sb_fail(err, SB_E_CORRUPT, "state of a sandbox: it has no version");
	if (version > SB_STATE_VERSION)
		return sb_fail(err, SB_E_VERSION,
			"state of a sandbox: version %lld was written by a newer program, this one "
			"reads up to %d",
			(long long)version, SB_STATE_VERSION);
	(void)json_object_del(o, "version");
	for (const struct state_field *f = sb_state_fields; f->name && r == 0; f++) {
		const json_t *v = json_object_get(o, f->name);

		if (v && !json_is_null(v))
			r = get_field(f, v, (char *)s + f->at, err);
		(void)json_object_del(o, f->name);
	}
	if (r == 0 && json_object_size(o) > 0) {
		s->unknown = json_dumps(o, JSON_COMPACT);
		if (!s->unknown)
			r = sb_fail(err, SB_E_NOMEM, "state of a sandbox: out of memory");
	}
	return r;
}

int
sb_state_decode(const char *text, size_t len, struct sb_state *out, struct sb_error *err)
{
	sb_auto(json_t) json_t *o = NULL;
	struct sb_state s = SB_STATE_INIT;
	json_error_t why;
	int r;

	if (len > SB_STATE_MAX || !shape_ok(text, len))
		return sb_fail(err, SB_E_LIMIT,
			"state of a sandbox: too large or too deeply nested");
	o = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!o)
		return sb_fail(err, SB_E_CORRUPT, "state of a sandbox: not JSON: %s (line %d)",
			why.text, why.line);
	r = decode_object(o, &s, err);
	if (r < 0)
		sb_state_free(&s);
	else
		*out = s;
	return r;
}
