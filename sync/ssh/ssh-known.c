/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh-known.h>

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/cursor.h>
#include <base/file.h>
#include <base/random.h>

#include <sync/ssh/ssh-hash.h>

#define FILE_MAX_LEN (16u << 20)
#define BLOB_MAX_LEN 16384
#define KEYS_MAX 1024

struct host_names {
	char full[300]; /* with the port when it is not 22 */
	char bare[260]; /* "" when full is bare already */
};

/* A glob of '*' and '?', case-insensitive as host names are. */
static bool
glob_match(const char *s, const char *pat, size_t len)
{
	const char *star = NULL, *back = NULL;
	const char *p = pat, *end = pat + len;

	while (*s) {
		if (p < end && *p == '*') {
			star = ++p;
			back = s;
		} else if (p < end &&
			(*p == '?' || tolower((unsigned char)*p) == tolower((unsigned char)*s))) {
			p++;
			s++;
		} else if (star) {
			p = star;
			s = ++back;
		} else {
			return false;
		}
	}
	while (p < end && *p == '*')
		p++;
	return p == end;
}

static bool
hashed_match(const char *name, const char *field, size_t len)
{
	uint8_t salt[64], want[SB_SSH_SHA1_LEN + 4], got[SB_SSH_SHA1_LEN];
	const char *bar = memchr(field + 3, '|', len - 3);
	char lower[300];
	ssize_t n;
	size_t i;

	if (!bar)
		return false;
	n = sb_ssh_hash_unbase64(field + 3, (size_t)(bar - field) - 3, salt, sizeof salt);
	if (n <= 0 ||
		sb_ssh_hash_unbase64(bar + 1, len - (size_t)(bar + 1 - field), want, sizeof want) !=
			SB_SSH_SHA1_LEN)
		return false;
	for (i = 0; name[i] && i < sizeof lower - 1; i++)
		lower[i] = (char)tolower((unsigned char)name[i]);
	sb_ssh_hash_hmac_sha1(salt, (size_t)n, lower, i, got);
	return memcmp(got, want, sizeof got) == 0;
}

/* Does the first field of a line name `name`? A matching negated pattern rules it out. */
static bool
field_match(const char *name, const char *field, size_t len)
{
	bool found = false;

	if (!*name)
		return false;
	if (len > 3 && strncmp(field, "|1|", 3) == 0)
		return hashed_match(name, field, len);
	while (len > 0) {
		const char *comma = memchr(field, ',', len);
		size_t n = comma ? (size_t)(comma - field) : len;
		bool negated = n > 0 && *field == '!';

		if (glob_match(name, field + negated, n - negated)) {
			if (negated)
				return false;
			found = true;
		}
		if (!comma)
			break;
		field += n + 1;
		len -= n + 1;
	}
	return found;
}

/* The next word of a line: `*at` moves behind it. */
static const char *
next_word(const char **at, const char *end, size_t *len)
{
	const char *s = *at;
	const char *e;

	while (s < end && (*s == ' ' || *s == '\t'))
		s++;
	for (e = s; e < end && *e != ' ' && *e != '\t';)
		e++;
	*at = e;
	*len = (size_t)(e - s);
	return s;
}

/* Whether the key blob begins with its own type name, as every one does. */
static bool
blob_is(const uint8_t *blob, size_t len, const char *type, size_t type_len)
{
	size_t n;

	if (len < 4)
		return false;
	n = (size_t)blob[0] << 24 | (size_t)blob[1] << 16 | (size_t)blob[2] << 8 | blob[3];
	return n == type_len && n <= len - 4 && memcmp(blob + 4, type, n) == 0;
}

static int
add_key(struct sb_ssh_known *k, const char *file, size_t line, const char *type, size_t type_len,
	const uint8_t *blob, size_t blob_len, bool revoked, bool bare, struct sb_error *err)
{
	struct sb_ssh_known_key *key;

	if (k->n == KEYS_MAX)
		return 0;
	if (k->n == k->cap) {
		size_t cap = k->cap ? 2 * k->cap : 8;
		struct sb_ssh_known_key *v = realloc(k->keys, cap * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "%s: out of memory", file);
		k->keys = v;
		k->cap = cap;
	}
	key = &k->keys[k->n];
	*key = (struct sb_ssh_known_key){ .line = line, .revoked = revoked, .bare = bare };
	key->file = strdup(file);
	key->type = strndup(type, type_len);
	key->blob = malloc(blob_len);
	key->blob_len = blob_len;
	k->n++;
	if (!key->file || !key->type || !key->blob)
		return sb_fail(err, SB_E_NOMEM, "%s: out of memory", file);
	memcpy(key->blob, blob, blob_len);
	return 0;
}

static int
parse_line(struct sb_ssh_known *k, const struct host_names *names, const char *file, size_t no,
	const char *line, const char *end, struct sb_error *err)
{
	uint8_t blob[BLOB_MAX_LEN];
	size_t names_len, type_len, key_len;
	const char *field, *type, *key;
	bool revoked = false, ca = false, full;
	ssize_t n;

	field = next_word(&line, end, &names_len);
	if (names_len == 0 || *field == '#')
		return 0;
	if (*field == '@') {
		revoked = names_len == 8 && memcmp(field, "@revoked", 8) == 0;
		ca = names_len == 15 && memcmp(field, "@cert-authority", 15) == 0;
		if (!revoked && !ca)
			return 0;
		field = next_word(&line, end, &names_len);
	}
	type = next_word(&line, end, &type_len);
	key = next_word(&line, end, &key_len);
	full = field_match(names->full, field, names_len);
	if (!full && !field_match(names->bare, field, names_len))
		return 0;
	if (ca) {
		k->has_ca = true;
		return 0;
	}
	n = sb_ssh_hash_unbase64(key, key_len, blob, sizeof blob);
	if (n <= 0 || !blob_is(blob, (size_t)n, type, type_len))
		return 0;
	return add_key(k, file, no, type, type_len, blob, (size_t)n, revoked, !full, err);
}

int
sb_ssh_known_parse(struct sb_ssh_known *k, const char *text, size_t len, const char *file,
	const char *host, int port, struct sb_error *err)
{
	struct host_names names = { 0 };
	const char *p = text, *end = text + len;
	int r = 0;

	(void)sb_ssh_known_name(host, port, names.full, sizeof names.full);
	if (names.full[0] == '[')
		(void)snprintf(names.bare, sizeof names.bare, "%s", host);
	for (size_t no = 1; p < end && r >= 0; no++) {
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		const char *stop = nl ? nl : end;

		if (stop > p && stop[-1] == '\r')
			stop--;
		r = parse_line(k, &names, file, no, p, stop, err);
		p = nl ? nl + 1 : end;
	}
	return r;
}

char *
sb_ssh_known_name(const char *host, int port, char *out, size_t size)
{
	if (port == 22 || port == 0)
		(void)snprintf(out, size, "%s", host);
	else
		(void)snprintf(out, size, "[%s]:%d", host, port);
	return out;
}

int
sb_ssh_known_load(struct sb_ssh_known *k, const char *const *files, size_t n, const char *host,
	int port, struct sb_error *err)
{
	int r = 0;

	memset(k, 0, sizeof *k);
	for (size_t i = 0; i < n && r >= 0; i++) {
		sb_auto(sb_buf) struct sb_buf b;

		r = sb_file_read(AT_FDCWD, files[i], FILE_MAX_LEN, &b, err);
		/* INVAL: not a regular file; /dev/null is a usual choice for "none". */
		if (r == SB_E_NOTFOUND || r == SB_E_INVAL)
			r = 0;
		else if (r >= 0)
			r = sb_ssh_known_parse(k, (char *)b.data, b.len, files[i], host, port, err);
	}
	if (r < 0)
		sb_ssh_known_free(k);
	return r;
}

void
sb_ssh_known_free(struct sb_ssh_known *k)
{
	for (size_t i = 0; i < k->n; i++) {
		free(k->keys[i].file);
		free(k->keys[i].type);
		free(k->keys[i].blob);
	}
	free(k->keys);
	memset(k, 0, sizeof *k);
}

bool
sb_ssh_known_has(const struct sb_ssh_known *k, const char *type)
{
	for (size_t i = 0; i < k->n; i++)
		if (!k->keys[i].revoked && strcmp(k->keys[i].type, type) == 0)
			return true;
	return false;
}

enum sb_ssh_known_answer
sb_ssh_known_check(const struct sb_ssh_known *k, const uint8_t *blob, size_t blob_len,
	const struct sb_ssh_known_key **out_old)
{
	const struct sb_ssh_known_key *match = NULL, *same_type = NULL, *other = NULL;
	const struct sb_ssh_known_key *dummy;

	if (!out_old)
		out_old = &dummy;
	for (size_t i = 0; i < k->n; i++) {
		const struct sb_ssh_known_key *key = &k->keys[i];
		bool same = key->blob_len == blob_len && memcmp(key->blob, blob, blob_len) == 0;

		if (same && key->revoked) {
			*out_old = key;
			return SB_SSH_KNOWN_REVOKED;
		}
		if (key->revoked)
			continue;
		if (same)
			match = key;
		else if (!key->bare && blob_is(blob, blob_len, key->type, strlen(key->type)))
			same_type = key;
		else if (!key->bare)
			other = key;
	}
	*out_old = match ? match : same_type ? same_type : other;
	if (match)
		return SB_SSH_KNOWN_MATCH;
	return *out_old ? SB_SSH_KNOWN_CHANGED : SB_SSH_KNOWN_NEW;
}

/* The name field of a new line. */
static int
line_name(const char *host, int port, bool hashed, char *out, size_t size, struct sb_error *err)
{
	uint8_t salt[SB_SSH_SHA1_LEN], sum[SB_SSH_SHA1_LEN];
	char salt_text[SB_SSH_BASE64_SIZE(SB_SSH_SHA1_LEN)];
	char sum_text[SB_SSH_BASE64_SIZE(SB_SSH_SHA1_LEN)];
	char name[300];
	int r;

	(void)sb_ssh_known_name(host, port, name, sizeof name);
	for (char *p = name; *p; p++)
		*p = (char)tolower((unsigned char)*p);
	if (!hashed) {
		(void)snprintf(out, size, "%s", name);
		return 0;
	}
	r = sb_random(salt, sizeof salt, err);
	if (r < 0)
		return r;
	sb_ssh_hash_hmac_sha1(salt, sizeof salt, name, strlen(name), sum);
	(void)snprintf(out, size, "|1|%s|%s", sb_ssh_hash_base64(salt, sizeof salt, salt_text),
		sb_ssh_hash_base64(sum, sizeof sum, sum_text));
	return 0;
}

/* Opens for appending; tells whether the file ends in the middle of a line. */
static int
open_append(const char *file, bool *out_torn, struct sb_error *err)
{
	sb_autofree char *dir = strdup(file);
	sb_autoclose int fd = -1;
	struct stat st;
	char *slash;
	char last;
	int r;

	if (!dir)
		return sb_fail(err, SB_E_NOMEM, "%s: out of memory", file);
	slash = strrchr(dir, '/');
	if (slash && slash != dir) {
		*slash = '\0';
		r = sb_file_mkdirs(dir, 0700, err);
		if (r < 0)
			return r;
	}
	fd = open(file, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "open %s", file);
	*out_torn = st.st_size > 0 && pread(fd, &last, 1, st.st_size - 1) == 1 && last != '\n';
	return sb_steal_fd(&fd);
}

int
sb_ssh_known_add(const char *file, const char *host, int port, bool hashed, const uint8_t *blob,
	size_t blob_len, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	sb_autofree char *text = malloc(SB_SSH_BASE64_SIZE(blob_len));
	sb_autoclose int fd = -1;
	struct sb_cursor c;
	const uint8_t *type;
	char name[400];
	size_t type_len;
	bool torn = false;
	int r;

	sb_buf_init(&b, 2 * BLOB_MAX_LEN);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "%s: out of memory", file);
	sb_cursor_init(&c, blob, blob_len);
	type = sb_cursor_take(&c, 4);
	type_len = type ? (size_t)type[2] << 8 | type[3] : 0;
	type = sb_cursor_take(&c, type_len);
	if (!type || blob_len > BLOB_MAX_LEN)
		return sb_fail(err, SB_E_PROTO, "the host key is malformed");
	r = line_name(host, port, hashed, name, sizeof name, err);
	if (r < 0)
		return r;
	fd = open_append(file, &torn, err);
	if (fd < 0)
		return fd;
	/* One write of one line: others who append at the same time do not mix with it. */
	sb_buf_addf(&b, "%s%s %.*s %s\n", torn ? "\n" : "", name, (int)type_len, (const char *)type,
		sb_ssh_hash_base64(blob, blob_len, text));
	r = sb_buf_check(&b, file, err);
	if (r < 0)
		return r;
	r = sb_file_write_all(fd, b.data, b.len, err);
	return r < 0 ? sb_wrap(err, r, "write %s", file) : 0;
}
