/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <rpc/protocol/field.h>

#include <stdio.h>
#include <string.h>

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
		if (depth > SB_RPC_JSON_DEPTH)
			return sb_fail(err, SB_E_INVAL, "message is nested deeper than %d levels",
				SB_RPC_JSON_DEPTH);
		if (values > SB_RPC_JSON_VALUES)
			return sb_fail(err, SB_E_LIMIT, "message has more than %d values",
				SB_RPC_JSON_VALUES);
	}
	return 0;
}

json_t *
sb_rpc_json_parse(const void *data, size_t len, struct sb_error *err)
{
	json_error_t why;
	json_t *obj;

	if (len == 0)
		return json_object();
	if (check_shape(data, len, err) < 0)
		return NULL;
	obj = json_loadb(data, len, 0, &why);
	if (!obj) {
		(void)sb_fail(err, SB_E_INVAL, "message is not JSON: %s (byte %d)", why.text,
			why.position);
		return NULL;
	}
	if (!json_is_object(obj)) {
		json_decref(obj);
		(void)sb_fail(err, SB_E_INVAL, "message must be a JSON object");
		return NULL;
	}
	return obj;
}
