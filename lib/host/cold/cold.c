/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/cold.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <base/strlist.h>

#define SUFFIX ".index"

struct sb_cold *
sb_cold_open(const struct sb_cold_opts *opts, struct sb_error *err)
{
	struct sb_cold_opts o = SB_COLD_OPTS_INIT;
	struct sb_cold *c = calloc(1, sizeof *c);
	int r = c ? 0 : sb_fail(err, SB_E_NOMEM, "cold storage");

	memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	if (r < 0)
		return NULL;
	c->log = o.log;
	sb_coldpace_init(&c->pace, o.rate, o.transfers);
	c->space = strdup(o.space && *o.space ? o.space : "default");
	if (!c->space)
		r = sb_fail(err, SB_E_NOMEM, "cold storage");
	else if (strlen(c->space) > 64 || strchr(c->space, '/') ||
		sb_coldstore_check_key(c->space, false, NULL) < 0)
		r = sb_fail(err, SB_E_INVAL,
			"cold space \"%.100s\": want at most 64 of [A-Za-z0-9._-]", c->space);
	if (r == 0)
		r = sb_coldkey_load(&c->keys, o.key_file, err);
	if (r == 0) {
		c->store = sb_coldstore_open(o.url, &c->log, err);
		r = c->store ? 0 : SB_E_INVAL;
	}
	if (r == 0)
		return c;
	sb_cold_close(c);
	return NULL;
}

void
sb_cold_close(struct sb_cold *c)
{
	if (!c)
		return;
	sb_coldstore_close(c->store);
	sb_coldkey_free(&c->keys);
	sb_coldpace_free(&c->pace);
	free(c->space);
	free(c);
}

void
sb_cold_dir(const struct sb_cold *c, const char *id, const char *nonce, char out[SB_COLD_DIR_MAX])
{
	(void)snprintf(out, SB_COLD_DIR_MAX, "%s/sessions/%s.%s", c->space, id, nonce);
}

struct sb_coldread_opts
sb_cold_reading(struct sb_cold *c, const struct sb_host_call *call)
{
	return (struct sb_coldread_opts){ .store = c->store,
		.space = c->space,
		.keys = &c->keys,
		.pace = &c->pace,
		.call = call };
}

/* The folders of sessions, "ID.NONCE" each, as they come in a listing. */
struct folders {
	size_t skip;
	struct sb_strlist *out;
};

static int
on_key(const struct sb_coldstore_entry *e, void *arg, struct sb_error *err)
{
	struct folders *f = arg;
	const char *name = e->key + f->skip;
	size_t len = strcspn(name, "/");
	const char *last = f->out->n ? f->out->v[f->out->n - 1] : "";

	if (name[len] && len > SB_HOST_NONCE_LEN + 1 && name[len - SB_HOST_NONCE_LEN - 1] == '.' &&
		(strncmp(last, name, len) != 0 || last[len]))
		sb_strlist_addf(f->out, "%.*s", (int)len, name);
	return sb_strlist_check(f->out, err);
}

static int
folders(struct sb_cold *c, const char *id, struct sb_strlist *out, const struct sb_host_call *call,
	struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist all = { 0 };
	struct folders f = { .out = &all };
	sb_autofree char *prefix =
		sb_str_printf("%s/sessions/%s%s", c->space, id ? id : "", id ? "." : "");
	int r;

	if (!prefix)
		return sb_fail(err, SB_E_NOMEM, "cold storage");
	f.skip = strlen(c->space) + strlen("/sessions/");
	r = c->store->ops->list(c->store, prefix, on_key, &f, call, err);
	/* "a." is also how the id "a.b" begins. */
	for (size_t i = 0; i < all.n && r == 0; i++)
		if (!id || strlen(all.v[i]) == strlen(id) + 1 + SB_HOST_NONCE_LEN)
			sb_strlist_add(out, all.v[i]);
	return r < 0 ? r : sb_strlist_check(out, err);
}

int
sb_cold_find(struct sb_cold *c, const char *id, char nonce[SB_HOST_NONCE_LEN + 1],
	const struct sb_host_call *call, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist v = { 0 };
	size_t found = 0;
	int r = folders(c, id, &v, call, err);

	for (size_t i = 0; i < v.n && r == 0; i++) {
		const char *n = v.v[i] + strlen(id) + 1;
		char dir[SB_COLD_DIR_MAX];
		struct sb_coldlog last;

		sb_cold_dir(c, id, n, dir);
		r = sb_coldlog_last(c->store, dir, &last, call, err);
		if (r == 0 && (last.kind == SB_COLDLOG_COLD || last.kind == SB_COLDLOG_HOST)) {
			(void)snprintf(nonce, SB_HOST_NONCE_LEN + 1, "%s", n);
			found++;
		}
	}
	if (r < 0)
		return r;
	if (found == 0)
		return sb_fail(err, SB_E_SESSION_NOT_FOUND, "%s: %s (nor is it in cold storage)",
			sb_code_text(SB_E_SESSION_NOT_FOUND), id);
	return found == 1 ? 0 :
			    sb_fail(err, SB_E_CONFLICT,
				    "%zu sessions %s are in cold storage: destroy what is not "
				    "wanted where it was made",
				    found, id);
}

/* What a check found, beside what the log says. */
static int
check_archive(struct sb_cold *c, const char *dir, const struct sb_host_call *call,
	struct sb_cold_entry *e, struct sb_error *err)
{
	sb_auto(sb_coldindex) struct sb_coldindex x = { 0 };
	struct sb_coldread_opts o = sb_cold_reading(c, call);
	sb_autofree char *key = sb_str_printf("%s/%s", dir, e->index);
	const char *id, *nonce;
	int r;

	if (!key)
		return sb_fail(err, SB_E_NOMEM, "check");
	r = sb_coldread_index(&o, key, &x, err);
	if (r < 0)
		return r;
	id = json_string_value(json_object_get(x.session, "id"));
	nonce = json_string_value(json_object_get(x.session, "nonce"));
	if (!id || !nonce || strcmp(id, e->id) != 0 || strcmp(nonce, e->nonce) != 0)
		return sb_fail(err, SB_E_CORRUPT, "%s is of another session", key);
	e->encrypted = x.key[0] != '\0';
	e->snapshots = x.n_streams;
	for (size_t i = 0; i < x.n_streams; i++)
		e->size += x.streams[i].size;
	for (size_t i = 0; i < x.n_frames; i++)
		e->stored += x.frames[i].stored;
	return sb_coldread_verify(&o, &x, err);
}

static int
list_one(struct sb_cold *c, const char *name, bool check, const struct sb_host_call *call,
	sb_cold_entry_fn fn, void *arg, struct sb_error *err)
{
	static const char *const where[] = { "none", "cold", "host", "gone" };
	size_t len = strlen(name) - SB_HOST_NONCE_LEN - 1;
	sb_autofree char *id = strndup(name, len);
	struct sb_error why = { 0 };
	char dir[SB_COLD_DIR_MAX];
	struct sb_coldlog last;
	struct sb_cold_entry e = { .nonce = name + len + 1 };
	int r;

	if (!id)
		return sb_fail(err, SB_E_NOMEM, "cold storage");
	sb_cold_dir(c, id, e.nonce, dir);
	r = sb_coldlog_last(c->store, dir, &last, call, &why);
	/* A deep pause under way, or one that was given up, has written an index, but no entry. */
	if (r == 0 && last.kind == SB_COLDLOG_NONE)
		return 0;
	e.id = id;
	e.where = r < 0 ? "unknown" : where[last.kind];
	e.host = r < 0 ? "" : last.host;
	e.index = r < 0 ? "" : last.index;
	e.time_s = r < 0 ? 0 : last.time_s;
	if (r == 0 && check && last.kind == SB_COLDLOG_COLD)
		r = check_archive(c, dir, call, &e, &why);
	if (r == SB_E_CANCELED || r == SB_E_TIMEOUT) {
		if (err)
			*err = why;
		return r;
	}
	e.wrong = r < 0 ? why.msg : NULL;
	return fn(&e, arg, err);
}

int
sb_cold_list(struct sb_cold *c, const char *id, bool check, const struct sb_host_call *call,
	sb_cold_entry_fn fn, void *arg, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist v = { 0 };
	int r = id ? sb_coldstore_check_key(id, false, err) : 0;

	if (r == 0)
		r = folders(c, id, &v, call, err);
	for (size_t i = 0; i < v.n && r == 0; i++)
		r = list_one(c, v.v[i], check, call, fn, arg, err);
	return r;
}

struct prune {
	const char *keep;
	size_t skip;
	struct sb_strlist old;
};

static int
on_index(const struct sb_coldstore_entry *e, void *arg, struct sb_error *err)
{
	struct prune *p = arg;

	if (sb_str_ends(e->key, SUFFIX) && (!p->keep || strcmp(e->key + p->skip, p->keep) != 0))
		sb_strlist_add(&p->old, e->key);
	return sb_strlist_check(&p->old, err);
}

int
sb_cold_prune(struct sb_cold *c, const char *dir, const char *keep, const struct sb_host_call *call,
	struct sb_error *err)
{
	struct prune p = { .keep = keep, .skip = strlen(dir) + 1 };
	sb_autofree char *prefix = sb_str_printf("%s/", dir);
	int r = prefix ? c->store->ops->list(c->store, prefix, on_index, &p, call, err) :
			 sb_fail(err, SB_E_NOMEM, "cold storage");

	for (size_t i = 0; i < p.old.n && r == 0; i++)
		r = c->store->ops->remove(c->store, p.old.v[i], call, err);
	sb_strlist_free(&p.old);
	return r;
}
