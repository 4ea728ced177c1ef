/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/keep/records.h>

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>

#define FILE_MAX (4u << 20)

struct entry {
	char *id;
	json_t *o;
};

struct sb_records {
	char *dir;
	pthread_mutex_t mu; /* guards all below */
	struct entry *v;
	size_t n;
};

/* With `mu` held. */
static size_t
at(const struct sb_records *r, const char *id)
{
	size_t i = 0;

	while (i < r->n && strcmp(r->v[i].id, id) != 0)
		i++;
	return i;
}

/* Takes `o` when it succeeds. With `mu` held. */
static int
set(struct sb_records *r, const char *id, json_t *o, struct sb_error *err)
{
	size_t i = at(r, id);
	struct entry *v = r->v;
	char *copy;

	if (i < r->n) {
		json_decref(r->v[i].o);
		r->v[i].o = o;
		return 0;
	}
	copy = strdup(id);
	v = copy ? reallocarray(r->v, r->n + 1, sizeof *v) : NULL;
	if (!v) {
		free(copy);
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	r->v = v;
	v[r->n++] = (struct entry){ copy, o };
	return 0;
}

json_t *
sb_records_get(struct sb_records *r, const char *id)
{
	json_t *o = NULL;
	size_t i;

	(void)pthread_mutex_lock(&r->mu);
	i = at(r, id);
	if (i < r->n)
		o = json_incref(r->v[i].o);
	(void)pthread_mutex_unlock(&r->mu);
	return o;
}

int
sb_records_put(struct sb_records *r, const char *id, json_t *o, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s.json", r->dir, id);
	sb_autofree char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	int res = path && text ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	(void)pthread_mutex_lock(&r->mu);
	if (res == 0)
		res = sb_file_replace(AT_FDCWD, path, text, strlen(text), 0600, err);
	if (res == 0)
		res = set(r, id, o, err);
	(void)pthread_mutex_unlock(&r->mu);
	if (res < 0)
		json_decref(o);
	return res;
}

void
sb_records_drop(struct sb_records *r, const char *id)
{
	sb_autofree char *path = sb_str_printf("%s/%s.json", r->dir, id);
	size_t i;

	(void)pthread_mutex_lock(&r->mu);
	i = at(r, id);
	if (i < r->n) {
		json_decref(r->v[i].o);
		free(r->v[i].id);
		r->v[i] = r->v[--r->n];
		if (path)
			(void)unlink(path);
	}
	(void)pthread_mutex_unlock(&r->mu);
}

json_t **
sb_records_all(struct sb_records *r, size_t *n)
{
	json_t **v;

	*n = 0;
	(void)pthread_mutex_lock(&r->mu);
	v = calloc(r->n + 1, sizeof(*v));
	for (size_t i = 0; v && i < r->n; i++)
		v[(*n)++] = json_incref(r->v[i].o);
	(void)pthread_mutex_unlock(&r->mu);
	return v;
}

static int
load(struct sb_records *r, const char *who, const struct sb_log *log,
	bool (*keep)(const char *id, const json_t *o, void *arg), void *arg, struct sb_error *err)
{
	sb_autoclosedir DIR *d = NULL;
	struct dirent *f;
	int res = sb_file_mkdirs(r->dir, 0700, err);

	if (res < 0)
		return res;
	d = opendir(r->dir);
	if (!d)
		return sb_fail_errno(err, "open %s", r->dir);
	while (res == 0 && (f = readdir(d))) {
		sb_auto(sb_buf) struct sb_buf text = { 0 };
		sb_autofree char *id = NULL;
		json_t *o = NULL;

		if (!sb_str_ends(f->d_name, ".json"))
			continue;
		id = strndup(f->d_name, strlen(f->d_name) - 5);
		if (!id)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		if (sb_file_read(dirfd(d), f->d_name, FILE_MAX, &text, NULL) == 0)
			o = json_loadb((char *)text.data, text.len, 0, NULL);
		if (!json_is_object(o)) {
			sb_log(log, SB_LOG_WARN, who, "%s/%s is damaged and left out", r->dir,
				f->d_name);
			json_decref(o);
		} else if (keep && !keep(id, o, arg)) {
			(void)unlinkat(dirfd(d), f->d_name, 0);
			json_decref(o);
		} else {
			res = set(r, id, o, err);
			if (res < 0)
				json_decref(o);
		}
	}
	return res;
}

struct sb_records *
sb_records_open(const char *dir, const char *who, const struct sb_log *log,
	bool (*keep)(const char *id, const json_t *o, void *arg), void *arg, struct sb_error *err)
{
	struct sb_records *r = calloc(1, sizeof *r);

	if (!r || !(r->dir = strdup(dir))) {
		free(r);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&r->mu, NULL);
	if (load(r, who, log, keep, arg, err) == 0)
		return r;
	sb_records_free(r);
	return NULL;
}

void
sb_records_free(struct sb_records *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n; i++) {
		json_decref(r->v[i].o);
		free(r->v[i].id);
	}
	free(r->v);
	free(r->dir);
	(void)pthread_mutex_destroy(&r->mu);
	free(r);
}
