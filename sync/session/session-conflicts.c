/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-conflicts.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <sync/session/session-store.h>

/*
 * The file "saved": strings that end in a NUL byte, six a row: time, root, path, saved name, digest
 * and mode of the base's file (hex:octal, or "-"), number of the kind. A torn last row is not
 * taken. Version 1, the file "conflicts", had the first four.
 */
#define FILE_NAME "saved"
#define FILE_NAME_1 "conflicts"
#define FIELDS 6
#define FILE_MAX (64u << 20)

void
sb_session_saved_free(struct sb_session_saved_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].root);
		free(l->v[i].path);
		free(l->v[i].saved_as);
	}
	free(l->v);
	memset(l, 0, sizeof *l);
}

static void
add_field(struct sb_buf *b, const char *s)
{
	sb_buf_add(b, s, strlen(s) + 1);
}

void
sb_session_conflicts_add(int dirfd, const char *root, const struct sb_reconciled *rec,
	const struct sb_manifest *base)
{
	sb_autoclose int fd = -1;
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 16u << 20);
	for (size_t i = 0; i < rec->n_conflicts; i++) {
		const struct sb_conflict *c = &rec->conflicts[i];
		const struct sb_entry *e = sb_manifest_find(base, c->path);
		char text[64], hex[33];

		if (!c->saved_as)
			continue;
		(void)snprintf(text, sizeof text, "%lld", (long long)time(NULL));
		add_field(&b, text);
		add_field(&b, root);
		add_field(&b, c->path);
		add_field(&b, c->saved_as);
		(void)snprintf(text, sizeof text, "-");
		if (e && e->type == SB_ENTRY_FILE)
			(void)snprintf(text, sizeof text, "%s:%o", sb_str_hex(e->digest.b, 16, hex),
				e->mode);
		add_field(&b, text);
		(void)snprintf(text, sizeof text, "%d", (int)c->kind);
		add_field(&b, text);
	}
	if (!b.len || b.failed)
		return;
	fd = openat(dirfd, FILE_NAME, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd >= 0 && sb_file_write_all(fd, b.data, b.len, NULL) == 0)
		(void)fdatasync(fd);
}

/* The next `n` strings; false at the end, or when the last is torn. */
static bool
next_row(const char **p, const char *end, const char **f, int n)
{
	for (int i = 0; i < n; i++) {
		const char *nul = *p < end ? memchr(*p, 0, (size_t)(end - *p)) : NULL;

		if (!nul)
			return false;
		f[i] = *p;
		*p = nul + 1;
	}
	return true;
}

static struct sb_session_saved *
find_row(struct sb_session_saved_list *l, const char *root, const char *saved)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i].root, root) == 0 && strcmp(l->v[i].saved_as, saved) == 0)
			return &l->v[i];
	return NULL;
}

static int
add_row(struct sb_session_saved_list *l, const char *const *f, struct sb_error *err)
{
	sb_autofree char *full = sb_str_printf("%s/%s", f[1], f[3]);
	struct sb_session_saved *row;
	struct stat st;
	int64_t when = 0, kind = 0;

	if (!full)
		return sb_fail(err, SB_E_NOMEM, "conflicts: out of memory");
	if (lstat(full, &st) < 0)
		return 0; /* resolved: the saved version is gone */
	row = find_row(l, f[1], f[3]);
	if (!row) {
		struct sb_session_saved *v = realloc(l->v, (l->n + 1) * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "conflicts: out of memory");
		l->v = v;
		row = &v[l->n++];
		*row = (struct sb_session_saved){ .root = strdup(f[1]),
			.path = strdup(f[2]),
			.saved_as = strdup(f[3]) };
		if (!row->root || !row->path || !row->saved_as)
			return sb_fail(err, SB_E_NOMEM, "conflicts: out of memory");
	}
	(void)sb_str_to_i64(f[0], 0, INT64_MAX, &when);
	(void)sb_str_to_i64(f[5], 0, SB_CONFLICT_KINDS - 1, &kind);
	row->when = when;
	row->size = S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	row->why = sb_reconcile_conflict_text((enum sb_conflict_kind)kind);
	memset(row->base, 0, 16);
	if (strlen(f[4]) > 33 && f[4][32] == ':') {
		char hex[33];

		memcpy(hex, f[4], 32);
		hex[32] = 0;
		if (!sb_str_unhex(hex, row->base, 16))
			memset(row->base, 0, 16);
		row->base_mode = (uint16_t)(strtoul(f[4] + 33, NULL, 8) & 07777);
	}
	return 0;
}

int
sb_session_conflicts_load(int dirfd, struct sb_session_saved_list *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	const char *p, *end, *f[FIELDS];
	int r = sb_file_read(dirfd, FILE_NAME, FILE_MAX, &b, err);

	memset(out, 0, sizeof *out);
	if (r < 0)
		return r == SB_E_NOTFOUND ? 0 : r;
	p = (const char *)b.data;
	end = p + b.len;
	while (r == 0 && next_row(&p, end, f, FIELDS))
		r = add_row(out, f, err);
	if (r < 0)
		sb_session_saved_free(out);
	return r;
}

int
sb_session_conflicts_upgrade(int dirfd, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 }, now = { 0 };
	const char *p, *end, *f[4];
	int r = sb_file_read(dirfd, FILE_NAME_1, FILE_MAX, &b, err);

	if (r < 0)
		return r == SB_E_NOTFOUND ? 0 : r;
	sb_buf_init(&now, 2 * (size_t)FILE_MAX);
	p = (const char *)b.data;
	end = p + b.len;
	while (next_row(&p, end, f, 4)) {
		for (int i = 0; i < 4; i++)
			add_field(&now, f[i]);
		add_field(&now, "-");
		add_field(&now, "0");
	}
	r = sb_buf_check(&now, "list of conflicts", err);
	return r < 0 ? r : sb_file_replace(dirfd, FILE_NAME, now.data, now.len, 0600, err);
}

int
sb_session_conflicts(const struct sb_session *s, const char *state_dir,
	struct sb_session_saved_list *out, struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	sb_autoclose int fd = dir ? sb_session_open_dir(dir, s->name, false, err) : -1;

	memset(out, 0, sizeof *out);
	return fd < 0 ? (err ? err->code : SB_E_SYS) : sb_session_conflicts_load(fd, out, err);
}
