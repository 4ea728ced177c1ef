/* SPDX-License-Identifier: MIT */
/* Knows the provider of each backend (declared in sb/registry.h). */
#include "config.h"

#include <sb/registry.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <provider/provider.h>

struct sb_registry {
	pthread_mutex_t mu;
	struct sb_provider *by_backend[SB_BACKEND_COUNT];
	struct sb_provider **all; /* replaced ones too: someone may still be using them */
	size_t n_all;
};

SB_CLEANUP_PTR(sb_registry, sb_registry_free)

void
sb_registry_free(struct sb_registry *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_all; i++)
		sb_provider_free(r->all[i]);
	free(r->all);
	(void)pthread_mutex_destroy(&r->mu);
	free(r);
}

/* Checks that the table is complete and of our version. */
static int
check(const struct sb_provider *p, struct sb_error *err)
{
	const struct sb_provider_ops *o = p ? p->ops : NULL;

	if (!o)
		return sb_fail(err, SB_E_PROVIDER_NULL, "provider: %s",
			p ? "it has no table" : "there is none");
	if (o->version != SB_PROVIDER_VERSION)
		return sb_fail(err, SB_E_VERSION,
			"provider \"%s\" is made for version %u of the contract, this is %d",
			o->name ? o->name : "", o->version, SB_PROVIDER_VERSION);
	if ((unsigned)o->backend >= SB_BACKEND_COUNT)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"provider \"%s\": backend %d is not known", o->name ? o->name : "",
			(int)o->backend);
	if (!o->name || !o->capabilities || !o->prepare || !o->sync_to_runtime ||
		!o->sync_from_runtime || !o->destroy)
		return sb_fail(err, SB_E_PROVIDER_NULL,
			"provider of backend %s lacks a required member",
			sb_backend_name(o->backend));
	return 0;
}

static int
add_locked(struct sb_registry *r, struct sb_provider *p, bool replace, struct sb_error *err)
{
	enum sb_backend b = p->ops->backend;
	struct sb_provider **grown;

	if (r->by_backend[b] == p)
		return 0;
	if (r->by_backend[b] && !replace)
		return sb_fail(err, SB_E_PROVIDER_EXISTS, "backend %s has a provider already",
			sb_backend_name(b));
	grown = reallocarray(r->all, r->n_all + 1, sizeof(*grown));
	if (!grown)
		return sb_fail(err, SB_E_NOMEM, "registry: out of memory");
	r->all = grown;
	r->all[r->n_all++] = p;
	r->by_backend[b] = p;
	return 0;
}

int
sb_registry_add(struct sb_registry *r, struct sb_provider *p, bool replace, struct sb_error *err)
{
	int code = check(p, err);

	if (code < 0)
		return code;
	(void)pthread_mutex_lock(&r->mu);
	code = add_locked(r, p, replace, err);
	(void)pthread_mutex_unlock(&r->mu);
	return code;
}

struct sb_registry *
sb_registry_new(struct sb_provider *const *v, size_t n, struct sb_error *err)
{
	sb_auto(sb_registry) struct sb_registry *r = calloc(1, sizeof *r);

	if (!r) {
		(void)sb_fail(err, SB_E_NOMEM, "registry: out of memory");
		return NULL;
	}
	(void)pthread_mutex_init(&r->mu, NULL);
	for (size_t i = 0; i < n; i++)
		if (sb_registry_add(r, v[i], false, err) < 0) {
			r->n_all = 0;
			return NULL;
		}
	return sb_steal(&r);
}

struct sb_provider *
sb_registry_get(struct sb_registry *r, enum sb_backend backend, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf have = { 0 };
	struct sb_provider *p = NULL;

	sb_buf_init(&have, 256);
	if (r) {
		(void)pthread_mutex_lock(&r->mu);
		if ((unsigned)backend < SB_BACKEND_COUNT)
			p = r->by_backend[backend];
		for (int i = 0; i < SB_BACKEND_COUNT; i++)
			if (r->by_backend[i])
				sb_buf_addf(&have, "%s%s", have.len ? ", " : "",
					sb_backend_name((enum sb_backend)i));
		(void)pthread_mutex_unlock(&r->mu);
	}
	if (!p)
		(void)sb_fail(err, SB_E_PROVIDER_MISSING,
			"backend %s is not available here: there %s %s", sb_backend_name(backend),
			have.len ? "are" : "is", have.len ? (const char *)have.data : "none");
	return p;
}

int
sb_registry_list(struct sb_registry *r, struct sb_provider ***out, size_t *out_n,
	struct sb_error *err)
{
	struct sb_provider **v = calloc(SB_BACKEND_COUNT, sizeof(*v));
	size_t n = 0;

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "registry: out of memory");
	if (r) {
		(void)pthread_mutex_lock(&r->mu);
		for (int i = 0; i < SB_BACKEND_COUNT; i++)
			if (r->by_backend[i])
				v[n++] = r->by_backend[i];
		(void)pthread_mutex_unlock(&r->mu);
	}
	*out = v;
	*out_n = n;
	return 0;
}
