/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sb/provider.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include <base/cleanup.h>
#include <provider/provider.h>

int
sb_provider_check_request(const struct sb_prepare_request *req, enum sb_backend backend,
	bool enforces_network, struct sb_error *err)
{
	const struct sb_network *n = &req->profile->network;
	const char *const *d = req->local_dirs;
	struct stat st;

	if (req->profile->backend != backend)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"the profile \"%s\" is for backend %s, not for %s",
			req->profile->name ? req->profile->name : "",
			sb_backend_name(req->profile->backend), sb_backend_name(backend));
	if (n->allow_public_ingress)
		return sb_fail(err, SB_E_NETWORK_POLICY,
			"backend %s gives no sandbox a public address: take allow_public_ingress "
			"out of the profile",
			sb_backend_name(backend));
	if (n->required && !enforces_network)
		return sb_fail(err, SB_E_NETWORK_POLICY,
			"backend %s cannot enforce a network policy, and the profile requires one",
			sb_backend_name(backend));
	if ((n->allow_list.n || n->deny_list.n) && !enforces_network)
		return sb_fail(err, SB_E_NETWORK_POLICY,
			"backend %s cannot enforce the lists of the network policy here: use "
			"backend host with runtime bwrap or gvisor, or take the lists out of the "
			"profile",
			sb_backend_name(backend));
	for (const char *path = req->local_root; path; path = d ? *d++ : NULL) {
		if (stat(path, &st) < 0)
			return sb_fail_errno(err, "%s", path);
		if (!S_ISDIR(st.st_mode))
			return sb_fail(err, SB_E_INVAL, "%s is no directory", path);
	}
	return 0;
}

/* Refuses what another version of the provider wrote. */
static int
check_version(const struct sb_provider *p, const char *sandbox_id, const char *state,
	struct sb_error *err)
{
	json_int_t version;
	json_t *j;

	if (!p->ops->state_version || !state)
		return 0;
	j = json_loads(state, 0, NULL);
	version = json_integer_value(json_object_get(j, "version"));
	json_decref(j);
	if (version > 0 && version <= (json_int_t)p->ops->state_version)
		return 0;
	return sb_fail(err, SB_E_VERSION,
		"sandbox %s was made by another version of backend %s: its state has version %lld, "
		"this one knows %u",
		sandbox_id, sb_backend_name(p->ops->backend), (long long)version,
		p->ops->state_version);
}

int
sb_provider_capabilities(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err)
{
	struct sb_capabilities c = SB_CAPABILITIES_INIT;
	int r = p->ops->capabilities(p, profile, &c, err);

	if (r == 0)
		*out = c;
	return r;
}

int
sb_provider_check_archive(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_error *err)
{
	struct sb_capabilities c = SB_CAPABILITIES_INIT;
	int r = profile->persist == SB_PERSIST_ARCHIVE ?
		sb_provider_capabilities(p, profile, &c, err) :
		0;

	if (r == 0 && profile->persist == SB_PERSIST_ARCHIVE && !c.archive)
		r = sb_fail(err, SB_E_UNSUPPORTED,
			"persistence archive: backend %s cannot put a sandbox away; use reuse (it "
			"stays as it is) or transient",
			sb_backend_name(profile->backend));
	return r;
}

int
sb_provider_prepare(struct sb_provider *p, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err)
{
	int r = sb_call_check(call, "prepare", err);

	if (r < 0)
		return r;
	if (!sb_sandbox_id_ok(req->sandbox_id))
		return sb_fail(err, SB_E_INVAL, "prepare: \"%s\" is not a sandbox id",
			req->sandbox_id ? req->sandbox_id : "");
	if (!req->profile || req->profile->backend != p->ops->backend)
		return sb_fail(err, SB_E_BACKEND_INVALID,
			"prepare: the profile is for backend \"%s\", this is \"%s\"",
			req->profile ? sb_backend_name(req->profile->backend) : "",
			sb_backend_name(p->ops->backend));
	if (!req->local_root || req->local_root[0] != '/')
		return sb_fail(err, SB_E_INVAL,
			"prepare: local root \"%s\" is not an absolute path",
			req->local_root ? req->local_root : "");
	r = check_version(p, req->sandbox_id, req->provider_state, err);
	if (r == 0)
		r = sb_provider_check_archive(p, req->profile, err);
	if (r < 0)
		return r;
	memset(out, 0, sizeof *out);
	return p->ops->prepare(p, req, call, out, err);
}

int
sb_provider_sync(struct sb_provider *p, const struct sb_state *s, enum sb_way way,
	const struct sb_provider_sync *o, const struct sb_call *call, struct sb_sync_result *out,
	struct sb_error *err)
{
	int r = sb_call_check(call, "sync", err);

	memset(out, 0, sizeof *out);
	out->direction = sb_way_name(way);
	out->reason = sb_when_name(o->reason);
	if (r == 0)
		r = sb_state_check(s, err);
	if (r == 0)
		r = check_version(p, s->sandbox_id, s->provider_state, err);
	if (r < 0 || s->sync_mode == SB_SYNC_MODE_NONE)
		return r;
	return way == SB_WAY_TO_RUNTIME ? p->ops->sync_to_runtime(p, s, o, call, out, err) :
					  p->ops->sync_from_runtime(p, s, o, call, out, err);
}

int
sb_provider_destroy(struct sb_provider *p, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	int r = sb_call_check(call, "destroy", err);

	if (r == 0)
		r = check_version(p, s->sandbox_id, s->provider_state, err);
	if (r < 0)
		return r;
	return p->ops->destroy(p, s, discard, call, err);
}

int
sb_provider_find(struct sb_provider *p, const struct sb_find_request *req,
	const struct sb_call *call, struct sb_state *out, struct sb_error *err)
{
	int r = sb_call_check(call, "find", err);

	if (r < 0)
		return r;
	if (!sb_sandbox_id_ok(req->sandbox_id))
		return sb_fail(err, SB_E_INVAL, "find: \"%s\" is not a sandbox id",
			req->sandbox_id ? req->sandbox_id : "");
	if (!p->ops->find)
		return sb_fail(err, SB_E_UNSUPPORTED, "backend %s cannot search for sandboxes",
			sb_backend_name(p->ops->backend));
	r = check_version(p, req->sandbox_id, req->provider_state, err);
	if (r < 0)
		return r;
	return p->ops->find(p, req, call, out, err);
}

int
sb_provider_snapshot(struct sb_provider *p, const struct sb_state *s, const char *name,
	const struct sb_call *call, struct sb_error *err)
{
	int r = sb_call_check(call, "snapshot", err);

	if (r < 0)
		return r;
	if (!p->ops->snapshot)
		return sb_fail(err, SB_E_UNSUPPORTED, "backend %s has no snapshots",
			sb_backend_name(p->ops->backend));
	r = check_version(p, s->sandbox_id, s->provider_state, err);
	if (r < 0)
		return r;
	return p->ops->snapshot(p, s, name, call, err);
}

int
sb_provider_refused(struct sb_provider *p, const struct sb_state *s, const struct sb_call *call,
	char *out, size_t size, struct sb_error *err)
{
	int r = check_version(p, s->sandbox_id, s->provider_state, err);

	assert(size > 0);
	out[0] = '\0';
	if (r < 0)
		return r;
	return p->ops->refused ? p->ops->refused(p, s, call, out, size, err) : 0;
}

struct sb_env_host *
sb_provider_env_host(struct sb_provider *p, const struct sb_state *s, struct sb_error *err)
{
	if (check_version(p, s->sandbox_id, s->provider_state, err) < 0)
		return NULL;
	if (p->ops->env_host)
		return p->ops->env_host(p, s, err);
	(void)sb_fail(err, SB_E_UNSUPPORTED,
		"sandbox %s is of backend %s: only one of backend host has tools that can be "
		"called "
		"from outside",
		s->sandbox_id, sb_backend_name(s->backend));
	return NULL;
}

void
sb_provider_free(struct sb_provider *p)
{
	if (p && p->ops && p->ops->free)
		p->ops->free(p);
}

void *
sb_provider_common_new(size_t size, const struct sb_provider_ops *ops,
	const struct sb_builtin_opts *o, struct sb_error *err)
{
	struct sb_provider_common *p = calloc(1, size);

	if (p && o->state_dir)
		p->state_dir = strdup(o->state_dir);
	if (!p || (o->state_dir && !p->state_dir)) {
		free(p);
		(void)sb_fail(err, SB_E_NOMEM, "provider: out of memory");
		return NULL;
	}
	p->base.ops = ops;
	(void)pthread_mutex_init(&p->mu, NULL);
	return p;
}

void
sb_provider_common_free(struct sb_provider_common *p)
{
	(void)pthread_mutex_destroy(&p->mu);
	free(p->state_dir);
	free(p);
}
