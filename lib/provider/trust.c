/* SPDX-License-Identifier: MIT */
/*
 * The record of consent: STATE/trust, one file for each pair of path and digest, named by the hash
 * of both. Its text is three lines: the digest, the time, the path (the rest, any byte).
 */
#include "config.h"

#include <sb/trust.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <gnutls/crypto.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/owndir.h>
#include <base/str.h>
#include <provider/state-dir.h>
#include <provider/trust.h>

#define RECORD_MAX (PATH_MAX + 128)
#define ENTRIES_MAX 10000
#define HEX 64

int
sb_trust_digest(const void *data, size_t len, char out[65], struct sb_error *err)
{
	uint8_t raw[32];

	if (gnutls_hash_fast(GNUTLS_DIG_SHA256, data, len, raw) != 0)
		return sb_fail(err, SB_E_UNSUPPORTED, "SHA-256 is not available");
	(void)sb_str_hex(raw, sizeof raw, out);
	return 0;
}

char *
sb_trust_real_path(const char *file, struct sb_error *err)
{
	const char *slash = strrchr(file, '/');
	sb_autofree char *dir = slash ? strndup(file, (size_t)(slash + 1 - file)) : strdup(".");
	sb_autofree char *real = dir ? realpath(dir, NULL) : NULL;
	char *path;

	if (!real) {
		(void)sb_fail_errno(err, "%s", file);
		return NULL;
	}
	path = sb_str_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, slash ? slash + 1 : file);
	if (!path)
		(void)sb_fail(err, SB_E_NOMEM, "consent: out of memory");
	return path;
}

bool
sb_trust_beneath(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	while (n > 1 && dir[n - 1] == '/')
		n--;
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n] || n == 1);
}

/* A folder that others can write to, or that the workspace brings along, proves nothing. */
static int
check_store(int fd, const char *dir, const char *file, struct sb_error *err)
{
	sb_autofree char *real = realpath(dir, NULL);
	sb_autofree char *root = file ? strdup(file) : NULL;
	struct stat st;

	if (fstat(fd, &st) < 0 || !real)
		return sb_fail_errno(err, "%s", dir);
	if (st.st_uid != geteuid() || (st.st_mode & 0077))
		return sb_fail(err, SB_E_DENIED,
			"%s must belong to you and be closed to others: chown it, chmod 700 it",
			dir);
	if (!root)
		return 0;
	*strrchr(root, '/') = '\0';
	if (sb_trust_beneath(real, root[0] ? root : "/"))
		return sb_fail(err, SB_E_DENIED,
			"%s, where consent is kept, lies in the workspace %s: set SBSYNC_STATE_DIR "
			"to a place outside of it",
			real, root);
	return 0;
}

/* The folder, -1 when there is none and `create` is false, or an error. `file`: a real path. */
static int
open_store(const char *state_dir, const char *file, bool create, int *out, struct sb_error *err)
{
	sb_autofree char *base = state_dir ? strdup(state_dir) : sb_state_dir_default(err);
	sb_autofree char *dir = base ? sb_str_printf("%s/trust", base) : NULL;
	struct sb_error why = { 0 };
	sb_autoclose int fd = -1;
	int r;

	if (!dir)
		return base || state_dir ? sb_fail(err, SB_E_NOMEM, "consent: out of memory") :
					   SB_E_INVAL;
	*out = -1;
	fd = sb_owndir_open(base, "trust", create, &why);
	if (fd == SB_E_NOTFOUND && !create)
		return 0;
	if (fd < 0 && err)
		*err = why;
	if (fd < 0)
		return fd;
	r = check_store(fd, dir, file, err);
	if (r == 0)
		*out = sb_steal_fd(&fd);
	return r;
}

static int
record_name(const char *file, const char *digest, char out[65], struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, RECORD_MAX);
	sb_buf_add(&b, digest, strlen(digest) + 1);
	sb_buf_add(&b, file, strlen(file));
	return b.failed ? sb_fail(err, SB_E_LIMIT, "%s: the path is too long", file) :
			  sb_trust_digest(b.data, b.len, out, err);
}

bool
sb_trust_parse(const char *text, size_t len, struct sb_trust_entry *out)
{
	const char *end = memchr(text, '\n', len), *last;
	uint8_t raw[HEX / 2];
	char digest[HEX + 1], number[24], again[24];
	int64_t at;

	if (!end || end - text != HEX || memchr(text, '\0', len))
		return false;
	memcpy(digest, text, HEX);
	digest[HEX] = '\0';
	last = memchr(end + 1, '\n', len - HEX - 1);
	if (!last || (size_t)(last - end) > sizeof number || !sb_str_unhex(digest, raw, sizeof raw))
		return false;
	(void)sb_str_hex(raw, sizeof raw, digest);
	/* One way to write a record: what differs is not ours. */
	if (memcmp(digest, text, HEX) != 0)
		return false;
	memcpy(number, end + 1, (size_t)(last - end - 1));
	number[last - end - 1] = '\0';
	len -= (size_t)(last + 1 - text);
	if (!sb_str_to_i64(number, 0, INT64_MAX, &at))
		return false;
	(void)snprintf(again, sizeof again, "%lld", (long long)at);
	if (strcmp(again, number) != 0 || len == 0 || last[1] != '/')
		return false;
	out->file = strndup(last + 1, len);
	out->at_s = at;
	memcpy(out->digest, digest, sizeof digest);
	return out->file != NULL;
}

/* One record; false: it is none of ours. */
static bool
load(int store, const char *name, struct sb_trust_entry *out)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_trust_entry e = { 0 };
	char right[HEX + 1];
	struct stat st;

	if (fstatat(store, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		st.st_uid != geteuid() || (st.st_mode & 0022) ||
		sb_file_read(store, name, RECORD_MAX, &b, NULL) < 0 ||
		!sb_trust_parse((const char *)b.data, b.len, &e))
		return false;
	if (record_name(e.file, e.digest, right, NULL) < 0 || strcmp(right, name) != 0) {
		free(e.file);
		return false;
	}
	*out = e;
	return true;
}

static int
order(const void *a, const void *b)
{
	const struct sb_trust_entry *x = a, *y = b;
	int c = strcmp(x->file, y->file);

	return c ? c : (x->at_s > y->at_s) - (x->at_s < y->at_s);
}

void
sb_trust_entries_free(struct sb_trust_entry *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(v[i].file);
	free(v);
}

/* All records of `file`, or of every file when it is NULL. */
static int
read_store(int store, const char *file, struct sb_trust_entry **out, size_t *n,
	struct sb_error *err)
{
	struct sb_trust_entry *v = NULL, *grown, e = { 0 };
	int copy = fcntl(store, F_DUPFD_CLOEXEC, 0);
	sb_autoclosedir DIR *d = copy < 0 ? NULL : fdopendir(copy);
	size_t count = 0, cap = 0;
	struct dirent *de;

	if (!d) {
		int r = sb_fail_errno(err, "the record of consent");

		if (copy >= 0)
			(void)close(copy);
		return r;
	}
	rewinddir(d);
	while ((de = readdir(d)) && count < ENTRIES_MAX) {
		if (strlen(de->d_name) != HEX || !load(store, de->d_name, &e))
			continue;
		if (file && strcmp(e.file, file) != 0) {
			free(e.file);
			continue;
		}
		if (count == cap) {
			cap = cap ? 2 * cap : 16;
			grown = reallocarray(v, cap, sizeof *v);
			if (!grown) {
				free(e.file);
				sb_trust_entries_free(v, count);
				return sb_fail(err, SB_E_NOMEM, "consent: out of memory");
			}
			v = grown;
		}
		v[count++] = e;
	}
	if (count)
		qsort(v, count, sizeof *v, order);
	*out = v;
	*n = count;
	return 0;
}

int
sb_trust_list(const char *state_dir, struct sb_trust_entry **out, size_t *n, struct sb_error *err)
{
	sb_autoclose int store = -1;
	int r = open_store(state_dir, NULL, false, &store, err);

	if (r < 0 || store >= 0)
		return r < 0 ? r : read_store(store, NULL, out, n, err);
	*out = NULL;
	*n = 0;
	return 0;
}

int
sb_trust_check(const char *state_dir, const char *file, const void *data, size_t len,
	enum sb_trust *out, struct sb_error *err)
{
	sb_autofree char *path = sb_trust_real_path(file, err);
	struct sb_trust_entry *v = NULL;
	char digest[HEX + 1];
	sb_autoclose int store = -1;
	size_t n = 0;
	int r = path ? sb_trust_digest(data, len, digest, err) : err ? err->code : SB_E_SYS;

	if (r == 0)
		r = open_store(state_dir, path, false, &store, err);
	if (r == 0 && store >= 0)
		r = read_store(store, path, &v, &n, err);
	if (r < 0)
		return r;
	*out = n ? SB_TRUST_CHANGED : SB_TRUST_NEW;
	for (size_t i = 0; i < n; i++)
		if (strcmp(v[i].digest, digest) == 0)
			*out = SB_TRUST_GIVEN;
	sb_trust_entries_free(v, n);
	return 0;
}

int
sb_trust_give(const char *state_dir, const char *file, const void *data, size_t len,
	struct sb_error *err)
{
	sb_autofree char *path = sb_trust_real_path(file, err);
	sb_autofree char *text = NULL;
	char digest[HEX + 1], name[HEX + 1];
	sb_autoclose int store = -1;
	int r = path ? sb_trust_digest(data, len, digest, err) : err ? err->code : SB_E_SYS;

	if (r == 0)
		r = record_name(path, digest, name, err);
	if (r == 0)
		r = open_store(state_dir, path, true, &store, err);
	if (r < 0)
		return r;
	text = sb_str_printf("%s\n%lld\n%s", digest, (long long)time(NULL), path);
	return text ? sb_file_replace(store, name, text, strlen(text), 0600, err) :
		      sb_fail(err, SB_E_NOMEM, "consent: out of memory");
}

int
sb_trust_revoke(const char *state_dir, const char *file, size_t *out, struct sb_error *err)
{
	/* A directory that is gone has no real path any more but the one on record. */
	sb_autofree char *path = file[0] == '/' && access(file, F_OK) < 0 ?
		strdup(file) :
		sb_trust_real_path(file, err);
	struct sb_trust_entry *v = NULL;
	char name[HEX + 1];
	sb_autoclose int store = -1;
	size_t n = 0;
	int r = path ? open_store(state_dir, NULL, false, &store, err) : err ? err->code : SB_E_SYS;

	if (r == 0 && store >= 0)
		r = read_store(store, path, &v, &n, err);
	for (size_t i = 0; r == 0 && i < n; i++) {
		r = record_name(path, v[i].digest, name, err);
		if (r == 0 && unlinkat(store, name, 0) < 0 && errno != ENOENT)
			r = sb_fail_errno(err, "take consent back");
	}
	sb_trust_entries_free(v, n);
	if (r == 0 && out)
		*out = n;
	return r;
}
