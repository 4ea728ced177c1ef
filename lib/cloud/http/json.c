/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <cloud/http/json.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <base/buf.h>
#include <base/utf8.h>

/*
 * Bounds what the parser will allocate and how deep it will recurse. It need not understand JSON:
 * every value but the first follows an opening bracket, a comma or a colon, and strings hide such
 * bytes.
 */
static int
check_shape(const char *s, size_t len, struct sb_error *err)
{
	size_t depth = 0, values = 0;
	bool in_string = false;

	for (size_t i = 0; i < len; i++) {
		char c = s[i];

		if (in_string) {
			if (c == '\\')
				i++;
			else if (c == '"')
				in_string = false;
			continue;
		}
		if (c == '"')
			in_string = true;
		else if (c == '[' || c == '{')
			depth++;
		else if ((c == ']' || c == '}') && depth > 0)
			depth--;
		if (c == ',' || c == ':' || c == '[' || c == '{')
			values++;
		if (depth > SB_JSON_DEPTH)
			return sb_fail(err, SB_E_INVAL, "message is nested deeper than %d levels",
				SB_JSON_DEPTH);
		if (values > SB_JSON_VALUES)
			return sb_fail(err, SB_E_LIMIT, "message has more than %d values",
				SB_JSON_VALUES);
	}
	return 0;
}

static json_t *
parse(const void *data, size_t len, size_t flags, struct sb_error *err)
{
	json_error_t why;
	json_t *v;

	if (check_shape(data, len, err) < 0)
		return NULL;
	v = json_loadb(data, len, flags, &why);
	if (!v)
		(void)sb_fail(err, SB_E_INVAL, "message is not JSON: %s (byte %d)", why.text,
			why.position);
	return v;
}

json_t *
sb_json_value(const void *data, size_t len, struct sb_error *err)
{
	return parse(data, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, err);
}

json_t *
sb_json_parse(const void *data, size_t len, struct sb_error *err)
{
	json_t *obj;

	if (len == 0)
		return json_object();
	obj = parse(data, len, 0, err);
	if (!obj)
		return NULL;
	if (!json_is_object(obj)) {
		json_decref(obj);
		(void)sb_fail(err, SB_E_INVAL, "message must be a JSON object");
		return NULL;
	}
	return obj;
}

json_t *
sb_json_text(const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s;
	sb_auto(sb_buf) struct sb_buf b;
	size_t i = 0;
	int n;

	sb_buf_init(&b, 3 * len + 1);
	while (i < len && (n = sb_utf8_next(p + i, len - i, NULL)) > 0)
		i += (size_t)n;
	if (i == len)
		return json_stringn_nocheck(s, len);
	sb_buf_add(&b, s, i);
	while (i < len) {
		n = sb_utf8_next(p + i, len - i, NULL);
		if (n > 0)
			sb_buf_add(&b, s + i, (size_t)n);
		else
			sb_buf_add_str(&b, "\xef\xbf\xbd");
		i += n > 0 ? (size_t)n : 1;
	}
	if (b.failed)
		return NULL;
	return json_stringn_nocheck((const char *)b.data, b.len);
}

const char *
sb_json_get(const json_t *obj, const char *key)
{
	return json_string_value(json_object_get(obj, key));
}

int64_t
sb_json_int(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	return json_is_string(v) ? strtoll(json_string_value(v), NULL, 10) :
				   (int64_t)json_integer_value(v);
}

const char *
sb_json_str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

bool
sb_json_flag(const json_t *o, const char *key)
{
	return json_is_true(json_object_get(o, key));
}

int64_t
sb_json_time(const json_t *o, const char *key)
{
	struct tm tm = { 0 };
	long ns = 0;

	if (sscanf(sb_json_str(o, key), "%4d-%2d-%2dT%2d:%2d:%2d.%9ldZ", &tm.tm_year,
		    &tm.tm_mon, &tm.tm_mday, &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &ns) != 7)
		return 0;
	tm.tm_year -= 1900;
	tm.tm_mon--;
	return (int64_t)timegm(&tm) * 1000000000 + ns;
}
