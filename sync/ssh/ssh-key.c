/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh-key.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/cursor.h>
#include <base/file.h>
#include <base/str.h>
#include <sb/log.h>

#include <sync/ssh/ssh-hash.h>
#include <sync/ssh/ssh.h>

#define KEY_FILE_MAX (64u << 10)
#define NEW_FORMAT "-----BEGIN OPENSSH PRIVATE KEY-----"
#define NEW_FORMAT_END "-----END OPENSSH PRIVATE KEY-----"
#define NEW_MAGIC "openssh-key-v1"

static const uint8_t *
take_string(struct sb_cursor *c, size_t *len)
{
	const uint8_t *p = sb_cursor_take(c, 4);

	*len = p ? (size_t)p[0] << 24 | (size_t)p[1] << 16 | (size_t)p[2] << 8 | p[3] : 0;
	return sb_cursor_take(c, *len);
}

char *
sb_ssh_key_type(const uint8_t *blob, size_t len, char *out, size_t size)
{
	struct sb_cursor c;
	const uint8_t *type;
	size_t n;

	sb_cursor_init(&c, blob, len);
	type = take_string(&c, &n);
	return sb_escape((const char *)type, type ? n : 0, out, size);
}

bool
sb_ssh_key_needs_program(const char *type)
{
	if (sb_str_starts(type, "sk-") || strstr(type, "-cert-v01@"))
		return true;
	return strcmp(type, "ssh-rsa") == 0 && !sb_ssh_can_rsa();
}

static int
set_blob(struct sb_ssh_key *k, const uint8_t *blob, size_t len, struct sb_error *err)
{
	k->blob = malloc(len + 1);
	if (!k->blob)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	memcpy(k->blob, blob, len);
	k->blob_len = len;
	(void)sb_ssh_key_type(blob, len, k->type, sizeof k->type);
	return 0;
}

/* openssh-key-v1: magic NUL, cipher, kdf, kdf options, uint32 count, public key, secret part. */
static int
inspect_new(const char *path, const char *text, size_t len, struct sb_ssh_key *k,
	struct sb_error *err)
{
	sb_autofree char *flat = malloc(len + 1);
	sb_autofree uint8_t *raw = malloc(len + 1);
	const char *end = strstr(text, NEW_FORMAT_END);
	const uint8_t *cipher, *pub;
	size_t n = 0, cipher_len, pub_len, skip;
	struct sb_cursor c;
	ssize_t raw_len;

	if (!flat || !raw)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (const char *p = text + strlen(NEW_FORMAT); *p && (!end || p < end); p++)
		if (*p != '\n' && *p != '\r' && *p != ' ' && *p != '\t')
			flat[n++] = *p;
	raw_len = sb_ssh_hash_unbase64(flat, n, raw, len);
	if (!end || raw_len < (ssize_t)sizeof NEW_MAGIC ||
		memcmp(raw, NEW_MAGIC, sizeof NEW_MAGIC) != 0)
		return sb_fail(err, SB_E_INVAL, "%s: a damaged private key", path);
	sb_cursor_init(&c, raw + sizeof NEW_MAGIC, (size_t)raw_len - sizeof NEW_MAGIC);
	cipher = take_string(&c, &cipher_len);
	(void)take_string(&c, &skip);
	(void)take_string(&c, &skip);
	(void)sb_cursor_take(&c, 4);
	pub = take_string(&c, &pub_len);
	if (c.bad)
		return sb_fail(err, SB_E_INVAL, "%s: a damaged private key", path);
	k->encrypted = cipher_len != 4 || memcmp(cipher, "none", 4) != 0;
	return set_blob(k, pub, pub_len, err);
}

void
sb_ssh_key_read_public(const char *path, struct sb_ssh_key *k)
{
	sb_autofree char *pub = sb_str_printf("%s.pub", path);
	sb_auto(sb_buf) struct sb_buf b;
	uint8_t raw[8192];
	const char *word;
	size_t len;
	ssize_t n;

	sb_buf_init(&b, 0);
	if (!pub || sb_file_read(AT_FDCWD, pub, KEY_FILE_MAX, &b, NULL) < 0)
		return;
	word = (const char *)b.data + strcspn((const char *)b.data, " ");
	word += strspn(word, " ");
	len = strcspn(word, " \r\n");
	n = sb_ssh_hash_unbase64(word, len, raw, sizeof raw);
	if (n > 0)
		(void)set_blob(k, raw, (size_t)n, NULL);
}

static int
check_mode(const char *path, struct sb_error *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return sb_fail_errno(err, "%s", path);
	if (st.st_uid == getuid() && (st.st_mode & 077) != 0)
		return sb_fail(err, SB_E_DENIED,
			"%s: others can read this private key (mode %03o); chmod 600 it", path,
			(unsigned)(st.st_mode & 0777));
	return 0;
}

int
sb_ssh_key_inspect(const char *path, struct sb_ssh_key *out, struct sb_error *err)
{
	sb_auto(sb_ssh_key) struct sb_ssh_key k = { 0 };
	sb_auto(sb_buf) struct sb_buf b;
	const char *text;
	int r;

	sb_buf_init(&b, 0);
	r = check_mode(path, err);
	if (r >= 0)
		r = sb_file_read(AT_FDCWD, path, KEY_FILE_MAX, &b, err);
	if (r < 0)
		return r;
	text = (const char *)b.data;
	if (sb_str_starts(text, NEW_FORMAT)) {
		r = inspect_new(path, text, b.len, &k, err);
	} else if (strstr(text, "PRIVATE KEY-----")) {
		k.encrypted =
			strstr(text, "Proc-Type: 4,ENCRYPTED") || strstr(text, "BEGIN ENCRYPTED");
		sb_ssh_key_read_public(path, &k);
		if (!k.type[0] && strstr(text, "BEGIN RSA"))
			(void)snprintf(k.type, sizeof k.type, "ssh-rsa");
	} else {
		r = sb_fail(err, SB_E_INVAL, "%s: not a private key", path);
	}
	explicit_bzero(b.data, b.len);
	if (r < 0)
		return r;
	*out = k;
	memset(&k, 0, sizeof k);
	return 0;
}

void
sb_ssh_key_free(struct sb_ssh_key *k)
{
	free(k->blob);
	memset(k, 0, sizeof *k);
}
