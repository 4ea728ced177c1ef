/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/protocol/field.h>

#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <base/str.h>
#include <sb/log.h>

void
sb_rpc_fields_init(struct sb_rpc_fields *f, const json_t *obj)
{
	*f = (struct sb_rpc_fields){ .obj = obj, .prefix = "" };
}

int
sb_rpc_fields_check(const struct sb_rpc_fields *f, struct sb_error *err)
{
	if (f->failed && err)
		*err = f->err;
	return f->failed;
}

void
sb_rpc_field_bad(struct sb_rpc_fields *f, const char *name, const char *fmt, ...)
{
	char what[256];
	va_list ap;

	if (f->failed)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(what, sizeof what, fmt, ap);
	va_end(ap);
	(void)snprintf(f->field, sizeof f->field, "%s%s", f->prefix, name);
	f->failed = sb_fail(&f->err, SB_E_INVAL, "%s%s: %s", f->prefix, name, what);
}

/* What a value is, for a message; short strings are quoted, escaped. */
static const char *
describe(const json_t *v, char *buf, size_t size)
{
	char text[64];

	switch (json_typeof(v)) {
	case JSON_OBJECT: return "an object";
	case JSON_ARRAY: return "an array";
	case JSON_TRUE: return "true";
	case JSON_FALSE: return "false";
	case JSON_NULL: return "null";
	case JSON_STRING:
		if (json_string_length(v) > 32)
			return "a string";
		(void)sb_escape(json_string_value(v), json_string_length(v), text, sizeof text);
		(void)snprintf(buf, size, "\"%s\"", text);
		return buf;
	case JSON_INTEGER:
		(void)snprintf(buf, size, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
		return buf;
	case JSON_REAL: (void)snprintf(buf, size, "%g", json_real_value(v)); return buf;
	}
	return "something else";
}

static void
bad_type(struct sb_rpc_fields *f, const char *name, const char *want, const json_t *got)
{
	char buf[96];

	sb_rpc_field_bad(f, name, "must be %s, not %s", want, describe(got, buf, sizeof buf));
}

static bool
same_name(const char *a, const char *b)
{
	for (;;) {
		while (*a == '_')
			a++;
		while (*b == '_')
			b++;
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
		if (*a == '\0')
			return true;
		a++;
		b++;
	}
}

const json_t *
sb_rpc_field(const struct sb_rpc_fields *f, const char *name)
{
	const json_t *v = json_object_get(f->obj, name);
	const char *key;
	json_t *each;

	if (!v) {
		/* jansson's iterator wants a mutable object but does not change it. */
		json_object_foreach((json_t *)(uintptr_t)f->obj, key,
			each) if (same_name(key, name))
		{
			v = each;
			break;
		}
	}
	return json_is_null(v) ? NULL : v;
}

static bool
check_text(struct sb_rpc_fields *f, const char *name, const json_t *v, size_t max)
{
	if (!json_is_string(v)) {
		bad_type(f, name, "a string", v);
		return false;
	}
	if (json_string_length(v) > max) {
		sb_rpc_field_bad(f, name, "must be at most %zu bytes, not %zu", max,
			json_string_length(v));
		return false;
	}
	return true;
}

const char *
sb_rpc_field_str(struct sb_rpc_fields *f, const char *name, size_t max, unsigned flags)
{
	const json_t *v = sb_rpc_field(f, name);

	if (v && !check_text(f, name, v, max))
		return "";
	if ((flags & SB_RPC_REQUIRED) && (!v || json_string_length(v) == 0)) {
		sb_rpc_field_bad(f, name, "is required");
		return "";
	}
	return v ? json_string_value(v) : "";
}

int64_t
sb_rpc_field_int(struct sb_rpc_fields *f, const char *name, int64_t min, int64_t max)
{
	const json_t *v = sb_rpc_field(f, name);
	int64_t n = 0;

	if (!v)
		return 0;
	if (json_is_integer(v)) {
		n = json_integer_value(v);
	} else if (json_is_real(v) && fabs(json_real_value(v)) <= 9007199254740992.0 &&
		json_real_value(v) == trunc(json_real_value(v))) {
		n = (int64_t)json_real_value(v);
	} else if (!json_is_string(v) ||
		!sb_str_to_i64(json_string_value(v), INT64_MIN, INT64_MAX, &n)) {
		bad_type(f, name, "a whole number", v);
		return 0;
	}
	if (n < min || n > max) {
		sb_rpc_field_bad(f, name, "must be in [%lld, %lld], not %lld", (long long)min,
			(long long)max, (long long)n);
		return 0;
	}
	return n;
}

double
sb_rpc_field_double(struct sb_rpc_fields *f, const char *name, double min, double max)
{
	const json_t *v = sb_rpc_field(f, name);
	double d;

	if (!v)
		return 0;
	if (!json_is_number(v)) {
		bad_type(f, name, "a number", v);
		return 0;
	}
	d = json_number_value(v);
	if (!(d >= min && d <= max)) {
		sb_rpc_field_bad(f, name, "must be in [%g, %g], not %g", min, max, d);
		return 0;
	}
	return d;
}

bool
sb_rpc_field_bool(struct sb_rpc_fields *f, const char *name)
{
	const json_t *v = sb_rpc_field(f, name);

	if (v && !json_is_boolean(v))
		bad_type(f, name, "true or false", v);
	return json_is_true(v);
}

const json_t *
sb_rpc_field_object(struct sb_rpc_fields *f, const char *name)
{
	const json_t *v = sb_rpc_field(f, name);

	if (v && !json_is_object(v)) {
		bad_type(f, name, "an object", v);
		return NULL;
	}
	return v;
}

static void
no_memory(struct sb_rpc_fields *f)
{
	if (!f->failed)
		f->failed = sb_fail(&f->err, SB_E_NOMEM, "out of memory");
}

void
sb_rpc_field_list(struct sb_rpc_fields *f, const char *name, size_t max_n, size_t max_len,
	struct sb_strlist *out)
{
	const json_t *v = sb_rpc_field(f, name), *item;
	char path[SB_RPC_FIELD_MAX];
	size_t i;

	if (!v)
		return;
	if (!json_is_array(v)) {
		bad_type(f, name, "an array of strings", v);
		return;
	}
	if (json_array_size(v) > max_n) {
		sb_rpc_field_bad(f, name, "must have at most %zu items, not %zu", max_n,
			json_array_size(v));
		return;
	}
	json_array_foreach(v, i, item)
	{
		(void)snprintf(path, sizeof path, "%s[%zu]", name, i);
		if (!check_text(f, path, item, max_len))
			return;
		sb_strlist_add(out, json_string_value(item));
	}
	if (out->failed)
		no_memory(f);
}

void
sb_rpc_field_map(struct sb_rpc_fields *f, const char *name, size_t max_n, size_t max_key,
	size_t max_value, struct sb_strmap *out)
{
	const json_t *v = sb_rpc_field_object(f, name);
	char path[SB_RPC_FIELD_MAX], text[40];
	const char *key;
	json_t *item;

	if (!v)
		return;
	if (json_object_size(v) > max_n) {
		sb_rpc_field_bad(f, name, "must have at most %zu entries, not %zu", max_n,
			json_object_size(v));
		return;
	}
	json_object_foreach((json_t *)(uintptr_t)v, key, item)
	{
		(void)snprintf(path, sizeof path, "%s[%s]", name,
			sb_escape(key, strnlen(key, sizeof text), text, sizeof text));
		if (key[0] == '\0' || strlen(key) > max_key) {
			sb_rpc_field_bad(f, path, "key must have 1 to %zu bytes", max_key);
			return;
		}
		if (!check_text(f, path, item, max_value))
			return;
		if (sb_strmap_set(out, key, json_string_value(item), NULL) < 0) {
			no_memory(f);
			return;
		}
	}
}

void
sb_rpc_field_env(struct sb_rpc_fields *f, const char *name, size_t max_n, size_t max_len,
	struct sb_strlist *out)
{
	sb_auto(sb_strmap) struct sb_strmap map = { 0 };

	sb_rpc_field_map(f, name, max_n, max_len, max_len, &map);
	for (size_t i = 0; i < map.n && !f->failed; i++) {
		if (strchr(map.v[i].key, '='))
			sb_rpc_field_bad(f, name, "a name may not contain '='");
		else
			sb_strlist_addf(out, "%s=%s", map.v[i].key, map.v[i].value);
	}
	if (out->failed)
		no_memory(f);
}
