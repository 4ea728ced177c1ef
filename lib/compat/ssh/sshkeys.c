/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/ssh/sshkeys.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include <base/base64.h>
#include <base/file.h>

#define TYPE_MAX 64
#define KEY_MAX 16384

/* The type as the key itself has it in front: its length in four bytes, then its letters. */
static bool
types_agree(const char *type, size_t type_len, const char *key, size_t key_len)
{
	sb_auto(sb_buf) struct sb_buf raw;

	sb_buf_init(&raw, KEY_MAX);
	return sb_base64_decode(key, key_len, &raw) && raw.len > 4 + type_len && raw.data[0] == 0 &&
		raw.data[1] == 0 && raw.data[2] == 0 && raw.data[3] == type_len &&
		memcmp(raw.data + 4, type, type_len) == 0;
}

/* 1: a key, 0: nothing, -1: a mistake. */
static int
read_line(const char *p, size_t len, const char **key, size_t *key_len)
{
	const char *end = p + len, *type;
	size_t type_len;

	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	if (p == end || *p == '#' || *p == '\r')
		return 0;
	type = p;
	while (p < end && *p != ' ' && *p != '\t')
		p++;
	type_len = (size_t)(p - type);
	while (p < end && (*p == ' ' || *p == '\t'))
		p++;
	*key = p;
	while (p < end && *p != ' ' && *p != '\t' && *p != '\r')
		p++;
	*key_len = (size_t)(p - *key);
	return type_len <= TYPE_MAX && *key_len > 0 && *key_len <= KEY_MAX &&
			types_agree(type, type_len, *key, *key_len) ?
		1 :
		-1;
}

bool
sb_sshkeys_find(const char *text, size_t len, const char *key, unsigned *bad)
{
	const char *p = text, *end = text + len, *k = NULL;
	size_t want = strlen(key), k_len = 0;
	bool found = false;
	unsigned n = 0;

	if (bad)
		*bad = 0;
	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		int r = read_line(p, (size_t)((nl ? nl : end) - p), &k, &k_len);

		n++;
		found |= r > 0 && k_len == want && memcmp(k, key, want) == 0;
		if (r < 0 && bad && *bad == 0)
			*bad = n;
		p = nl ? nl + 1 : end;
	}
	return found;
}

static int
read_keys(const char *path, struct sb_buf *out, struct sb_error *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return sb_fail_errno(err, "authorized keys %s", path);
	if (st.st_mode & (S_IWGRP | S_IWOTH))
		return sb_fail(err, SB_E_DENIED,
			"authorized keys %s can be written by others: chmod go-w it", path);
	return sb_file_read(AT_FDCWD, path, SB_SSHKEYS_FILE_MAX, out, err);
}

int
sb_sshkeys_file(const char *path, const char *key, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, SB_SSHKEYS_FILE_MAX);
	r = read_keys(path, &text, err);
	if (r == SB_E_NOTFOUND)
		return sb_fail(err, SB_E_AUTH, "there is no %s", path);
	if (r < 0)
		return r;
	return sb_sshkeys_find((const char *)text.data, text.len, key, NULL) ?
		0 :
		sb_fail(err, SB_E_AUTH, "the key is not in %s", path);
}

int
sb_sshkeys_check(const char *path, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	unsigned bad;
	int r;

	sb_buf_init(&text, SB_SSHKEYS_FILE_MAX);
	r = read_keys(path, &text, err);
	if (r < 0)
		return r;
	(void)sb_sshkeys_find((const char *)text.data, text.len, "", &bad);
	return bad == 0 ? 0 :
			  sb_fail(err, SB_E_INVAL,
				  "authorized keys %s line %u: must be TYPE BASE64 COMMENT, "
				  "without options",
				  path, bad);
}
