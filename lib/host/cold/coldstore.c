/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldstore.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>

struct sb_coldstore *
sb_coldstore_open(const char *url, const struct sb_log *log, struct sb_error *err)
{
	if (url[0] == '/')
		return sb_coldstore_dir_open(url, err);
	if (sb_str_starts(url, "s3://"))
		return sb_coldstore_s3_open(url, log, err);
	(void)sb_fail(err, SB_E_INVAL,
		"cold store \"%.100s\": want the path of a directory, or s3://BUCKET[/PREFIX]",
		url);
	return NULL;
}

void
sb_coldstore_close(struct sb_coldstore *st)
{
	if (st)
		st->ops->close(st);
}

int
sb_coldstore_check_key(const char *key, bool prefix, struct sb_error *err)
{
	size_t len = strlen(key), start = 0;

	for (size_t i = 0; i <= len; i++) {
		if (i < len && key[i] != '/') {
			if (!isalnum((unsigned char)key[i]) && !strchr("._-", key[i]))
				return sb_fail(err, SB_E_INVAL, "key \"%.100s\"", key);
			continue;
		}
		if ((i == start && !(prefix && i == len)) ||
			(i - start <= 2 && i > start && strspn(key + start, ".") >= i - start))
			return sb_fail(err, SB_E_INVAL, "key \"%.100s\"", key);
		start = i + 1;
	}
	return len <= SB_COLDSTORE_KEY_MAX ? 0 : sb_fail(err, SB_E_INVAL, "key of %zu bytes", len);
}

uint8_t *
sb_coldstore_read(struct sb_coldstore *st, const char *key, uint64_t max, size_t *out_len,
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_autofree uint8_t *data = NULL;
	uint64_t size;

	if (st->ops->size(st, key, &size, call, err) < 0)
		return NULL;
	if (size > max) {
		(void)sb_fail(err, SB_E_LIMIT, "%s: %llu bytes, more than %llu", key,
			(unsigned long long)size, (unsigned long long)max);
		return NULL;
	}
	data = malloc((size_t)size + 1);
	if (!data) {
		(void)sb_fail(err, SB_E_NOMEM, "read %s", key);
		return NULL;
	}
	if (st->ops->get(st, key, 0, data, (size_t)size, call, err) < 0)
		return NULL;
	data[size] = 0;
	*out_len = (size_t)size;
	return sb_steal(&data);
}
