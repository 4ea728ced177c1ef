/* SPDX-License-Identifier: MIT */
/* What a sandbox of this API has besides its session: one file each. */
#include "config.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <gnutls/crypto.h>

#include <base/base64.h>
#include <base/file.h>
#include <base/random.h>
#include <base/str.h>
#include <compat/e2b/e2b-priv.h>

#define FILE_MAX (4u << 20)

void
sb_e2b_record_free(struct sb_e2b_record *r)
{
	if (!r)
		return;
	free(r->template);
	free(r->name);
	json_decref(r->env);
	explicit_bzero(r->token, sizeof r->token);
	free(r);
}

struct sb_e2b_record *
sb_e2b_record_new(bool snapshot, struct sb_error *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
	struct sb_e2b_record *r = calloc(1, sizeof *r);
	uint8_t random[SB_E2B_ID_LEN + 32];

	if (!r || sb_random(random, sizeof random, err) < 0) {
		if (!r)
			(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		free(r);
		return NULL;
	}
	for (size_t i = 0; i < SB_E2B_ID_LEN; i++)
		r->id[i] = letters[random[i] % 36];
	r->id[0] = letters[random[0] % 26];
	(void)sb_str_hex(random + SB_E2B_ID_LEN, 32, r->token);
	r->snapshot = snapshot;
	r->template = strdup("base");
	r->name = strdup("");
	r->env = json_object();
	r->internet = true;
	if (!r->template || !r->name || !r->env) {
		sb_e2b_record_free(r);
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	return r;
}

static json_t *
to_json(const struct sb_e2b_record *r)
{
	return json_pack("{s:s, s:b, s:s, s:s, s:s, s:s, s:O, s:I, s:I, s:b, s:b, s:b}", "id",
		r->id, "snapshot", r->snapshot, "template", r->template, "name", r->name, "token",
		r->token, "origin", r->origin, "env", r->env, "started_ns",
		(json_int_t)r->started_ns, "end_ns", (json_int_t)r->end_ns, "pause", r->pause,
		"auto_resume", r->auto_resume, "internet", r->internet);
}

static struct sb_e2b_record *
from_json(const json_t *o, struct sb_error *err)
{
	const char *id = NULL, *template = NULL, *name = NULL, *token = NULL, *origin = NULL;
	struct sb_e2b_record *r = calloc(1, sizeof *r);
	json_int_t started = 0, end = 0;
	int snapshot = 0, pause = 0, resume = 0, internet = 0;
	json_t *env = NULL;

	if (!r ||
		json_unpack((json_t *)(uintptr_t)o,
			"{s:s, s:b, s:s, s:s, s:s, s:s, s:o, s:I, s:I, s:b, s:b, s:b}", "id", &id,
			"snapshot", &snapshot, "template", &template, "name", &name, "token",
			&token, "origin", &origin, "env", &env, "started_ns", &started, "end_ns",
			&end, "pause", &pause, "auto_resume", &resume, "internet",
			&internet) != 0 ||
		strlen(id) > SB_E2B_ID_LEN || strlen(token) != 64 ||
		strlen(origin) > SB_E2B_ID_LEN || !json_is_object(env)) {
		free(r);
		(void)sb_fail(err, SB_E_CORRUPT, "the record is damaged");
		return NULL;
	}
	memcpy(r->id, id, strlen(id));
	memcpy(r->token, token, 64);
	memcpy(r->origin, origin, strlen(origin));
	r->snapshot = snapshot;
	r->template = strdup(template);
	r->name = strdup(name);
	r->env = json_incref(env);
	r->started_ns = started;
	r->end_ns = end;
	r->pause = pause;
	r->auto_resume = resume;
	r->internet = internet;
	return r;
}

static struct sb_e2b_record *
copy(const struct sb_e2b_record *r)
{
	struct sb_e2b_record *c = malloc(sizeof *c);

	if (!c)
		return NULL;
	*c = *r;
	c->template = strdup(r->template);
	c->name = strdup(r->name);
	c->env = json_deep_copy(r->env);
	if (!c->template || !c->name || !c->env) {
		sb_e2b_record_free(c);
		return NULL;
	}
	return c;
}

/* With `mu` held. */
static size_t
at(const struct sb_e2b *e, const char *id)
{
	size_t i = 0;

	while (i < e->n && strcmp(e->v[i]->id, id) != 0)
		i++;
	return i;
}

struct sb_e2b_record *
sb_e2b_record_find(struct sb_e2b *e, const char *id)
{
	struct sb_e2b_record *r = NULL;
	size_t i;

	(void)pthread_mutex_lock(&e->mu);
	i = at(e, id);
	if (i < e->n && !e->v[i]->busy)
		r = copy(e->v[i]);
	(void)pthread_mutex_unlock(&e->mu);
	return r;
}

static int
add(struct sb_e2b *e, struct sb_e2b_record *r, struct sb_error *err)
{
	struct sb_e2b_record **v = reallocarray(e->v, e->n + 1, sizeof *v);

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	e->v = v;
	v[e->n++] = r;
	return 0;
}

int
sb_e2b_record_save(struct sb_e2b *e, const struct sb_e2b_record *r, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s.json", e->dir, r->id);
	json_t *o = to_json(r);
	sb_autofree char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	struct sb_e2b_record *c = copy(r);
	size_t i;
	int res = path && text && c ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	json_decref(o);
	(void)pthread_mutex_lock(&e->mu);
	if (res == 0)
		res = sb_file_replace(AT_FDCWD, path, text, strlen(text), 0600, err);
	if (res == 0) {
		i = at(e, r->id);
		if (i < e->n) {
			struct sb_e2b_record *old = e->v[i];

			e->v[i] = c;
			c = old;
		} else {
			res = add(e, c, err);
			c = res == 0 ? NULL : c;
		}
	}
	(void)pthread_mutex_unlock(&e->mu);
	sb_e2b_record_free(c);
	if (res == 0)
		sb_e2b_keeper_wake(e);
	return res;
}

void
sb_e2b_record_drop(struct sb_e2b *e, const char *id)
{
	sb_autofree char *path = sb_str_printf("%s/%s.json", e->dir, id);
	struct sb_e2b_record *old = NULL;
	size_t i;

	(void)pthread_mutex_lock(&e->mu);
	i = at(e, id);
	if (i < e->n) {
		old = e->v[i];
		e->v[i] = e->v[--e->n];
		if (path)
			(void)unlink(path);
	}
	(void)pthread_mutex_unlock(&e->mu);
	sb_e2b_record_free(old);
}

struct sb_e2b_record **
sb_e2b_record_all(struct sb_e2b *e, bool snapshots, size_t *n)
{
	struct sb_e2b_record **v;

	*n = 0;
	(void)pthread_mutex_lock(&e->mu);
	v = calloc(e->n + 1, sizeof(*v));
	for (size_t i = 0; v && i < e->n; i++)
		if (e->v[i]->snapshot == snapshots && !e->v[i]->busy && (v[*n] = copy(e->v[i])))
			++*n;
	(void)pthread_mutex_unlock(&e->mu);
	return v;
}

/* In a time that does not depend on where they differ. */
static bool
same(const char *a, const char *b)
{
	size_t len = strlen(a);
	unsigned diff = 0;

	if (strlen(b) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		diff |= (unsigned char)a[i] ^ (unsigned char)b[i];
	return !diff;
}

bool
sb_e2b_record_signed(struct sb_e2b *e, const char *signature, const char *text, const char *expires,
	char id[SB_E2B_ID_LEN + 1])
{
	bool found = false;

	(void)pthread_mutex_lock(&e->mu);
	for (size_t i = 0; i < e->n; i++) {
		sb_autofree char *all = sb_str_printf("%s:%s%s%s", text, e->v[i]->token,
			expires ? ":" : "", expires ? expires : "");
		uint8_t digest[32];
		char made[64] = "v1_";

		if (e->v[i]->snapshot || !all ||
			gnutls_hash_fast(GNUTLS_DIG_SHA256, all, strlen(all), digest) != 0 ||
			!sb_base64_encode(digest, sizeof digest, made + 3, sizeof made - 3))
			continue;
		if (same(made, signature)) {
			memcpy(id, e->v[i]->id, SB_E2B_ID_LEN + 1);
			found = true;
		}
	}
	(void)pthread_mutex_unlock(&e->mu);
	return found;
}

/* A record whose session is gone was left by a crash, or the session was destroyed elsewhere. */
static bool
has_session(struct sb_e2b *e, const char *id)
{
	struct sb_host_session s;

	if (sb_host_session_get(e->host, id, false, &s, NULL) < 0)
		return false;
	sb_host_session_clear(&s);
	return true;
}

int
sb_e2b_record_load_all(struct sb_e2b *e, struct sb_error *err)
{
	sb_autoclosedir DIR *d = NULL;
	struct dirent *f;
	int r = sb_file_mkdirs(e->dir, 0700, err);

	if (r < 0)
		return r;
	d = opendir(e->dir);
	if (!d)
		return sb_fail_errno(err, "open %s", e->dir);
	while (r == 0 && (f = readdir(d))) {
		sb_auto(sb_buf) struct sb_buf text = { 0 };
		struct sb_e2b_record *rec = NULL;
		struct sb_error why = { 0 };
		json_t *o = NULL;

		if (!sb_str_ends(f->d_name, ".json"))
			continue;
		if (sb_file_read(dirfd(d), f->d_name, FILE_MAX, &text, &why) == 0 &&
			(o = json_loadb((char *)text.data, text.len, 0, NULL)))
			rec = from_json(o, &why);
		json_decref(o);
		if (rec && has_session(e, rec->id)) {
			r = add(e, rec, err);
		} else {
			if (rec)
				(void)unlinkat(dirfd(d), f->d_name, 0);
			else
				sb_log(&e->log, SB_LOG_WARN, "e2b", "%s is left out: %s", f->d_name,
					why.msg[0] ? why.msg : "it is not JSON");
			sb_e2b_record_free(rec);
		}
	}
	return r;
}
