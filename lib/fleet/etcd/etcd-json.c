/* SPDX-License-Identifier: MIT */
/* Keys, values and numbers as etcd's JSON gateway writes them. */
#include "config.h"

#include "etcd-priv.h"

#include <stdlib.h>
#include <string.h>

#include <base/base64.h>
#include <base/str.h>

json_t *
sb_etcd_bytes(const void *data, size_t len)
{
	size_t size = (len + 2) / 3 * 4 + 1;
	char *text = malloc(size);
	json_t *out = NULL;

	if (text && sb_base64_encode_padded(data, len, text, size))
		out = json_string(text);
	free(text);
	return out;
}

json_t *
sb_etcd_text(const char *s)
{
	return sb_etcd_bytes(s, strlen(s));
}

bool
sb_etcd_number(const json_t *o, const char *name, int64_t *out)
{
	const json_t *v = json_object_get(o, name);

	*out = 0;
	if (!v)
		return true;
	if (json_is_integer(v)) {
		*out = json_integer_value(v);
		return true;
	}
	return json_is_string(v) && sb_str_to_i64(json_string_value(v), INT64_MIN, INT64_MAX, out);
}

bool
sb_etcd_revision(const json_t *answer, int64_t *rev)
{
	return sb_etcd_number(json_object_get(answer, "header"), "revision", rev) && *rev > 0;
}

/* A member of base64; there is none: no bytes. */
static int
bytes_of(const json_t *o, const char *name, struct sb_buf *out, struct sb_error *err)
{
	const json_t *v = json_object_get(o, name);

	if (!v)
		return 0;
	if (!json_is_string(v) ||
		!sb_base64_decode(json_string_value(v), json_string_length(v), out))
		return sb_fail(err, SB_E_PROTO, "etcd: %s is not base64", name);
	return sb_buf_check(out, name, err);
}

int
sb_etcd_kv_take(const json_t *o, sb_etcd_kv_fn fn, void *arg, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf key, value;
	struct sb_etcd_kv kv = { 0 };
	int r;

	sb_buf_init(&key, ANSWER_MAX);
	sb_buf_init(&value, ANSWER_MAX);
	r = bytes_of(o, "key", &key, err);
	if (r == 0)
		r = bytes_of(o, "value", &value, err);
	/* The NUL behind an empty buffer is there only once something was added. */
	sb_buf_add(&key, "", 0);
	sb_buf_add(&value, "", 0);
	if (r < 0)
		return r;
	if (!sb_etcd_number(o, "create_revision", &kv.create_rev) ||
		!sb_etcd_number(o, "mod_revision", &kv.mod_rev) ||
		!sb_etcd_number(o, "version", &kv.version) ||
		!sb_etcd_number(o, "lease", &kv.lease))
		return sb_fail(err, SB_E_PROTO, "etcd: a key with a damaged number");
	if (memchr(key.data, 0, key.len))
		return sb_fail(err, SB_E_PROTO, "etcd: a key with a NUL in it");
	kv.key = (const char *)key.data;
	kv.value = value.data;
	kv.len = value.len;
	return fn(&kv, arg, err);
}

json_t *
sb_etcd_start_of(const char *prefix)
{
	return *prefix ? sb_etcd_text(prefix) : sb_etcd_bytes("", 1);
}

json_t *
sb_etcd_end_of(const char *prefix)
{
	size_t len = strlen(prefix);
	unsigned char *end = malloc(len + 1);
	json_t *out;

	if (!end)
		return NULL;
	memcpy(end, prefix, len + 1);
	while (len > 0 && end[len - 1] == 0xff)
		len--;
	if (len == 0) {
		free(end);
		return sb_etcd_bytes("", 1); /* one NUL: everything */
	}
	end[len - 1]++;
	out = sb_etcd_bytes(end, len);
	free(end);
	return out;
}
