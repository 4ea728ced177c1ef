/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldkey.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sodium.h>

#include <base/file.h>
#include <base/str.h>

#define VARIABLE "SBHOSTD_COLD_KEYS"
#define TEXT_MAX 65536

void
sb_coldkey_free(struct sb_coldkeys *k)
{
	if (k->v)
		explicit_bzero(k->v, k->n * sizeof k->v[0]);
	free(k->v);
	*k = (struct sb_coldkeys){ 0 };
}

static int
add(struct sb_coldkeys *k, const char *hex, struct sb_error *err)
{
	struct sb_coldkey *v, *c;
	uint8_t id[8];

	if (k->n == SB_COLDKEY_COUNT_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %d keys", SB_COLDKEY_COUNT_MAX);
	if (sodium_init() < 0)
		return sb_fail(err, SB_E_SYS, "libsodium does not start");
	v = calloc(k->n + 1, sizeof *v);
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "keys");
	c = &v[k->n];
	if (!sb_str_unhex(hex, c->key, sizeof c->key)) {
		explicit_bzero(v, (k->n + 1) * sizeof *v);
		free(v);
		return sb_fail(err, SB_E_INVAL, "key %zu is not 64 hex digits", k->n + 1);
	}
	(void)crypto_generichash(id, sizeof id, c->key, sizeof c->key, NULL, 0);
	(void)sb_str_hex(id, sizeof id, c->id);
	if (k->v) {
		memcpy(v, k->v, k->n * sizeof *v);
		explicit_bzero(k->v, k->n * sizeof *v);
	}
	free(k->v);
	k->v = v;
	k->n++;
	return 0;
}

int
sb_coldkey_parse(struct sb_coldkeys *k, const char *text, struct sb_error *err)
{
	int r = 0;

	while (*text && r == 0) {
		size_t line = strcspn(text, ",\n");
		size_t len = strcspn(text, "#,\n");
		const char *s = text;

		while (len > 0 && strchr(" \t\r", *s)) {
			s++;
			len--;
		}
		while (len > 0 && strchr(" \t\r", s[len - 1]))
			len--;
		if (len > 0) {
			char hex[2 * SB_COLDKEY_LEN + 1] = "";

			if (len < sizeof hex)
				memcpy(hex, s, len);
			r = add(k, hex, err);
			explicit_bzero(hex, sizeof hex);
		}
		text += line + (text[line] != '\0');
	}
	return r;
}

int
sb_coldkey_load(struct sb_coldkeys *k, const char *file, struct sb_error *err)
{
	const char *text = getenv(VARIABLE);
	sb_auto(sb_buf) struct sb_buf b;
	struct stat st;
	int r;

	sb_buf_init(&b, TEXT_MAX);
	if (!file) {
		r = text && *text ? sb_coldkey_parse(k, text, err) : 0;
		return r < 0 ? sb_wrap(err, r, "%s", VARIABLE) : r;
	}
	if (stat(file, &st) == 0 && (st.st_mode & 077))
		return sb_fail(err, SB_E_DENIED, "others may read the keys in %s: chmod 600 %s",
			file, file);
	r = sb_file_read(AT_FDCWD, file, TEXT_MAX, &b, err);
	if (r == 0)
		r = sb_coldkey_parse(k, (char *)b.data, err);
	if (r == 0 && k->n == 0)
		r = sb_fail(err, SB_E_INVAL, "there is no key");
	explicit_bzero(b.data, b.len);
	return r < 0 ? sb_wrap(err, r, "keys of %s", file) : r;
}

const struct sb_coldkey *
sb_coldkey_find(const struct sb_coldkeys *k, const char *id)
{
	for (size_t i = 0; i < k->n; i++)
		if (strcmp(k->v[i].id, id) == 0)
			return &k->v[i];
	return NULL;
}
