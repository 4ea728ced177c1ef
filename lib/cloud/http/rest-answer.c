/* SPDX-License-Identifier: MIT */
/* What is in an answer, and the parts of a target. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include <base/escape.h>
#include <cloud/http/json.h>
#include <cloud/http/rest.h>

#define MESSAGE_MAX 300

void
sb_rest_answer_free(struct sb_rest_answer *a)
{
	sb_strlist_free(&a->headers);
	/* It may hold tokens. */
	if (a->body.len > 0)
		explicit_bzero(a->body.data, a->body.len);
	sb_buf_free(&a->body);
	*a = (struct sb_rest_answer){ 0 };
}

const char *
sb_rest_header(const struct sb_rest_answer *a, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < a->headers.n; i++)
		if (strncmp(a->headers.v[i], name, len) == 0 && a->headers.v[i][len] == ':')
			return a->headers.v[i] + len + 2;
	return NULL;
}

static int
code_of(int status)
{
	switch (status) {
	case 400:
	case 422: return SB_E_INVAL;
	case 401: return SB_E_AUTH;
	case 403: return SB_E_DENIED;
	case 404:
	case 410: return SB_E_NOTFOUND;
	case 409:
	case 412: return SB_E_CONFLICT;
	case 408:
	case 504: return SB_E_TIMEOUT;
	case 429: return SB_E_LIMIT;
	case 507: return SB_E_NOSPACE;
	default: return status >= 500 ? SB_E_UNAVAILABLE : SB_E_PEER;
	}
}

/* The service's own words, escaped; empty when it has none. */
static void
message_of(const struct sb_rest_answer *a, char *out, size_t size)
{
	json_t *v = a->cut ? NULL : sb_json_value(a->body.data, a->body.len, NULL);
	json_t *error = json_object_get(v, "error");
	const char *text = sb_json_get(v, "message");

	if (!text)
		text = json_is_string(error) ? json_string_value(error) :
					       sb_json_get(error, "message");
	if (!text)
		text = sb_json_get(v, "detail");
	out[0] = '\0';
	if (text)
		(void)sb_escape_message(text, strlen(text), out, size);
	json_decref(v);
}

int
sb_rest_check(const struct sb_rest_answer *a, const char *what, struct sb_error *err)
{
	char text[MESSAGE_MAX];

	if (a->status >= 200 && a->status <= 299)
		return 0;
	message_of(a, text, sizeof text);
	return sb_fail(err, code_of(a->status), "%s: HTTP %d%s%s", what, a->status,
		*text ? ": " : "", text);
}

json_t *
sb_rest_json(const struct sb_rest_answer *a, const char *what, struct sb_error *err)
{
	struct sb_error why = { 0 };
	json_t *v = a->body.len > 0 ? sb_json_value(a->body.data, a->body.len, &why) : NULL;

	if (!v)
		(void)sb_fail(err, SB_E_PROTO, "%s: %s", what,
			a->body.len > 0 ? why.msg : "the answer has no body");
	return v;
}

static void
add_escaped(struct sb_buf *b, const char *s)
{
	static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				    "0123456789-._~";

	for (; *s; s++)
		if (strchr(plain, *s))
			sb_buf_add_char(b, *s);
		else
			sb_buf_addf(b, "%%%02X", (unsigned char)*s);
}

void
sb_rest_add_segment(struct sb_buf *target, const char *segment)
{
	sb_buf_add_char(target, '/');
	add_escaped(target, segment);
}

void
sb_rest_add_query(struct sb_buf *target, const char *name, const char *value)
{
	sb_buf_add_char(target,
		target->len > 0 && memchr(target->data, '?', target->len) ? '&' : '?');
	add_escaped(target, name);
	sb_buf_add_char(target, '=');
	add_escaped(target, value);
}
