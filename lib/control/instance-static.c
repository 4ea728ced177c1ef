/* SPDX-License-Identifier: MIT */
/* Provisioner "static": machines that are there already, each given to one at a time. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/file.h>
#include <base/str.h>
#include <base/strlist.h>
#include <control/hostcall.h>
#include <control/instrec.h>

#define ADDRESSES_MAX 1000

struct fixed {
	struct sb_provisioner base;
	char *dir, *token_file, *ca_file;
	struct sb_strlist urls;
};

/* The id says which address it is, so that a claim is one record of that name. */
static void
id_of(const char *url, size_t n, char out[SB_INSTANCE_ID_MAX + 1])
{
	(void)url;
	(void)snprintf(out, SB_INSTANCE_ID_MAX + 1, "static-%03zu", n + 1);
}

static int
static_describe(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_instance *out, struct sb_error *err)
{
	struct fixed *f = (struct fixed *)p;
	struct sb_instrec r = { 0 };
	int code = sb_instrec_read(f->dir, id, &r, err);

	(void)call;
	if (code == 0)
		*out = r.i;
	return code;
}

/* The claim of a token, if it has one: 1. */
static int
claimed_by(struct fixed *f, const char *tag, struct sb_instance *out, struct sb_error *err)
{
	const char *tags[] = { tag, NULL };
	sb_auto(sb_strlist) struct sb_strlist ids = { 0 };
	int r = sb_instrec_all(f->dir, &ids, err);

	for (size_t i = 0; r == 0 && i < ids.n; i++) {
		sb_auto(sb_instrec) struct sb_instrec rec = { 0 };

		if (sb_instrec_read(f->dir, ids.v[i], &rec, NULL) == 0 &&
			sb_instrec_has(&rec.i, tags)) {
			*out = rec.i;
			rec.i = (struct sb_instance){ 0 };
			return 1;
		}
	}
	return r;
}

static int
claim(struct fixed *f, const struct sb_instance_launch *l, const char *tag, struct sb_instance *out,
	struct sb_error *err)
{
	struct timespec now;
	int r;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	for (size_t i = 0; i < f->urls.n; i++) {
		sb_auto(sb_instrec) struct sb_instrec rec = { 0 };
		char id[SB_INSTANCE_ID_MAX + 1];

		id_of(f->urls.v[i], i, id);
		r = sb_instrec_read(f->dir, id, &rec, err);
		if (r == 0)
			continue;
		if (r != SB_E_NOTFOUND)
			return r;
		(void)snprintf(rec.i.id, sizeof rec.i.id, "%s", id);
		(void)snprintf(rec.i.url, sizeof rec.i.url, "%s", f->urls.v[i]);
		rec.i.state = SB_INSTANCE_RUNNING;
		rec.i.launched_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
		sb_strlist_add_all(&rec.i.tags, l->tags);
		sb_strlist_add(&rec.i.tags, tag);
		r = sb_strlist_check(&rec.i.tags, err);
		if (r == 0)
			r = sb_instrec_write(f->dir, &rec, err);
		if (r == 0) {
			*out = rec.i;
			rec.i = (struct sb_instance){ 0 };
		}
		return r;
	}
	return sb_fail(err, SB_E_LIMIT, "all %zu machines are taken", f->urls.n);
}

static int
static_launch(struct sb_provisioner *p, const struct sb_instance_launch *l,
	const struct sb_control_call *call, struct sb_instance *out, struct sb_error *err)
{
	struct fixed *f = (struct fixed *)p;
	sb_autofree char *tag = sb_str_printf("sb.token=%s", l->token);
	int lock, r;

	if (!tag)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	lock = sb_instrec_lock(f->dir, call, err);
	if (lock < 0)
		return lock;
	r = claimed_by(f, tag, out, err);
	if (r == 0)
		r = claim(f, l, tag, out, err);
	sb_file_unlock(lock);
	return r < 0 ? r : 0;
}

/* The machine stays; it is free for the next. */
static int
static_terminate(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct fixed *f = (struct fixed *)p;
	int lock = sb_instrec_lock(f->dir, call, err), r;

	if (lock < 0)
		return lock;
	r = sb_instrec_remove(f->dir, id, err);
	sb_file_unlock(lock);
	return r;
}

static int
static_list(struct sb_provisioner *p, const struct sb_instance_filter *filter,
	const struct sb_control_call *call, struct sb_instance **out, size_t *out_n,
	struct sb_error *err)
{
	return sb_instrec_list(p, ((struct fixed *)p)->dir, filter, call, out, out_n, err);
}

static void
static_close(struct sb_provisioner *p)
{
	struct fixed *f = (struct fixed *)p;

	free(f->dir);
	free(f->token_file);
	free(f->ca_file);
	sb_strlist_free(&f->urls);
	free(f);
}

static const struct sb_provisioner_ops ops = {
	.version = SB_PROVISIONER_VERSION,
	.name = "static",
	.keeps = true,
	.cheap = true,
	.launch = static_launch,
	.terminate = static_terminate,
	.describe = static_describe,
	.list = static_list,
	.close = static_close,
};

static int
take_urls(struct fixed *f, const char *text, struct sb_error *err)
{
	while (*text) {
		size_t n = strcspn(text, ",");
		sb_autofree char *url = strndup(text, n);
		struct sb_hostcall *h = url ? sb_hostcall_new(url, NULL, NULL, err) : NULL;

		if (!h)
			return SB_E_INVAL;
		sb_hostcall_free(h);
		if (sb_strlist_has(sb_strlist_borrow(&f->urls), url))
			return sb_fail(err, SB_E_INVAL, "address %s comes twice", url);
		sb_strlist_add(&f->urls, url);
		text += n + (text[n] == ',');
	}
	if (f->urls.n == 0 || f->urls.n > ADDRESSES_MAX)
		return sb_fail(err, SB_E_INVAL, "addresses: name 1 to %d", ADDRESSES_MAX);
	return sb_strlist_check(&f->urls, err);
}

struct sb_provisioner *
sb_instance_static(const char *dir, const char *const *options, const struct sb_log *log,
	struct sb_error *err)
{
	const char *addresses = sb_strlist_get(options, "addresses"),
		   *token = sb_strlist_get(options, "token_file"),
		   *ca = sb_strlist_get(options, "ca_file");
	struct fixed *f = calloc(1, sizeof *f);

	if (!f)
		goto no_memory;
	f->base.ops = &ops;
	f->base.log = log ? *log : (struct sb_log){ 0 };
	f->dir = strdup(dir);
	f->base.token_file = f->token_file = token ? strdup(token) : NULL;
	f->base.ca_file = f->ca_file = ca ? strdup(ca) : NULL;
	if (!f->dir || (token && !f->token_file) || (ca && !f->ca_file))
		goto no_memory;
	if (!addresses)
		(void)sb_fail(err, SB_E_INVAL,
			"addresses is missing: the URLs of the machines' sbhostd");
	else if (take_urls(f, addresses, err) == 0)
		return &f->base;
	static_close(&f->base);
	return NULL;

no_memory:
	if (f)
		static_close(&f->base);
	(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return NULL;
}
