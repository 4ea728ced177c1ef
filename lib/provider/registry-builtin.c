/* SPDX-License-Identifier: MIT */
/* A registry with every provider of this library (sb_registry_builtin of sb/registry.h). */
#include "config.h"

#include <pthread.h>

#include <sb/registry.h>

#include <provider/provider.h>

typedef struct sb_provider *(*make_fn)(const struct sb_builtin_opts *o, struct sb_error *err);

/* A line for each provider of this library. */
static const make_fn makers[] = {
	sb_provider_local_new,
	sb_provider_ssh_new,
	sb_provider_host_new,
	sb_provider_docker_new,
	sb_provider_e2b_new,
	NULL,
};

struct sb_registry *
sb_registry_builtin(const struct sb_builtin_opts *o, struct sb_error *err)
{
	static const struct sb_builtin_opts defaults = SB_BUILTIN_OPTS_INIT;
	struct sb_registry *r = sb_registry_new(NULL, 0, err);

	for (size_t i = 0; r && makers[i]; i++) {
		struct sb_provider *p = makers[i](o ? o : &defaults, err);

		if (!p || sb_registry_add(r, p, false, err) < 0) {
			sb_provider_free(p);
			sb_registry_free(r);
			return NULL;
		}
	}
	return r;
}

struct sb_registry *
sb_registry_default(struct sb_error *err)
{
	static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
	static struct sb_registry *one;
	struct sb_registry *r;

	(void)pthread_mutex_lock(&mu);
	if (!one)
		one = sb_registry_builtin(NULL, err);
	r = one;
	(void)pthread_mutex_unlock(&mu);
	return r;
}
