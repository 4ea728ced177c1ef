/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/keep/keys.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/random.h>

#define KEYS_MAX (1u << 20)

int
sb_keys_load(const char *what, const char *path, struct sb_rpc_auth *auth, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct stat st;
	char *line, *save = NULL;
	int r, n = 0;

	if (!path)
		return sb_fail(err, SB_E_USAGE, "the %s API needs a file with its keys", what);
	if (stat(path, &st) < 0)
		return sb_fail_errno(err, "%s key file %s", what, path);
	if (st.st_mode & (S_IWGRP | S_IRWXO))
		return sb_fail(err, SB_E_DENIED,
			"%s key file %s is open to others: chmod o-rwx,g-w it", what, path);
	r = sb_file_read(AT_FDCWD, path, KEYS_MAX, &text, err);
	for (line = r < 0 ? NULL : strtok_r((char *)text.data, "\r\n", &save); line && r == 0;
		line = strtok_r(NULL, "\r\n", &save)) {
		char name[32];
		char *colon = strchr(line, ':');

		if (*line == '#' || line[strspn(line, " \t")] == '\0')
			continue;
		(void)snprintf(name, sizeof name, "key-%d", ++n);
		if (colon)
			*colon = '\0';
		r = sb_rpc_auth_add(auth, colon ? line : name, SB_RPC_ROLE_ADMIN, NULL,
			colon ? colon + 1 : line, err);
	}
	if (text.data && text.cap)
		explicit_bzero(text.data, text.len);
	if (r == 0 && n == 0)
		r = sb_fail(err, SB_E_INVAL, "it has no key");
	return r < 0 ? sb_wrap(err, r, "%s key file %s", what, path) : 0;
}

bool
sb_keys_same(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned diff = 0;

	if (strlen(b) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		diff |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return !diff;
}

int
sb_keys_make(char *out, size_t len, struct sb_error *err)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
	size_t n = 0;

	while (n < len) {
		uint8_t random[32];
		int r = sb_random(random, sizeof random, err);

		if (r < 0)
			return r;
		/* What would make some letters likelier than others is left out. */
		for (size_t i = 0; i < sizeof random && n < len; i++)
			if (random[i] < 62 * 4)
				out[n++] = letters[random[i] % 62];
		explicit_bzero(random, sizeof random);
	}
	out[n] = '\0';
	return 0;
}
