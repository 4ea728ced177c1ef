/* SPDX-License-Identifier: MIT */
/*
 * The provider without a sandbox: programs run on this machine, in the local root itself. It moves
 * no files and removes none.
 */
#include "config.h"

#include <provider/provider.h>

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <provider/launchers.h>
#include <provider/toolset.h>

#define STATE_TEXT "{\"version\":1}"

static int
local_capabilities(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err)
{
	(void)p;
	(void)profile;
	(void)err;
	*out = (struct sb_capabilities)SB_CAPABILITIES_INIT;
	out->embedded = true;
	out->streaming = true;
	out->tty = true;
	return 0;
}

/* What is launched unless told otherwise. */
static int
fill_launch(const struct sb_prepare_request *req, struct sb_prepared *out, struct sb_error *err)
{
	int r = sb_prepared_launch(req, out, err);

	if (r < 0)
		return r;
	out->launcher = sb_launcher_local_new(out->state.runtime_root, err);
	return out->launcher ? 0 : SB_E_NOMEM;
}

/* The runtime is here: each directory is its own partner. */
static int
copy_dirs(const struct sb_prepare_request *req, struct sb_state *s, struct sb_error *err)
{
	sb_strlist_add_all(&s->runtime_dirs, req->local_dirs);
	return sb_strlist_check(&s->runtime_dirs, err);
}

static int
local_prepare(struct sb_provider *p, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err)
{
	sb_auto(sb_prepared) struct sb_prepared made = { 0 };
	struct sb_toolset *set;
	struct sb_error own = { 0 };
	int r;

	(void)p;
	(void)call;
	err = err ? err : &own;
	r = sb_provider_check_request(req, SB_BACKEND_LOCAL, false, err);
	if (r == 0)
		r = sb_state_from_request(req, &made.state, err);
	if (r == 0)
		r = copy_dirs(req, &made.state, err);
	if (r < 0)
		return r;
	made.state.runtime_root = strdup(req->local_root);
	free(made.state.provider_state);
	made.state.provider_state = strdup(STATE_TEXT);
	if (!made.state.runtime_root || !made.state.provider_state)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	made.state.prepared_at = time(NULL);
	r = fill_launch(req, &made, err);
	if (r < 0)
		return r;
	set = sb_toolset_near(made.state.runtime_root, sb_strlist_borrow(&made.state.runtime_dirs),
		err);
	made.tools = set ? sb_tool_host_new(set, req->permissions, err) : NULL;
	if (!made.tools)
		return err->code;
	*out = made;
	made = (struct sb_prepared){ 0 };
	return 0;
}

static int
local_sync(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	(void)p;
	(void)o;
	memset(out, 0, sizeof *out);
	(void)s;
	return sb_call_check(call, "sync", err);
}

static int
local_sync_to(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	int r = local_sync(p, s, o, call, out, err);

	out->direction = sb_way_name(SB_WAY_TO_RUNTIME);
	out->reason = sb_when_name(o->reason);
	return r;
}

static int
local_sync_from(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	int r = local_sync(p, s, o, call, out, err);

	out->direction = sb_way_name(SB_WAY_FROM_RUNTIME);
	out->reason = sb_when_name(o->reason);
	return r;
}

/* Removes nothing: the directory is the user's own. */
static int
local_destroy(struct sb_provider *p, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	(void)p;
	(void)s;
	(void)discard;
	return sb_call_check(call, "destroy", err);
}

static void
local_free(struct sb_provider *p)
{
	free(p);
}

static const struct sb_provider_ops local_ops = {
	.version = SB_PROVIDER_VERSION,
	.name = "this machine, in the directory itself; no isolation, no copies",
	.backend = SB_BACKEND_LOCAL,
	.capabilities = local_capabilities,
	.prepare = local_prepare,
	.sync_to_runtime = local_sync_to,
	.sync_from_runtime = local_sync_from,
	.destroy = local_destroy,
	.free = local_free,
	.state_version = 1,
};

struct sb_provider *
sb_provider_local_new(const struct sb_builtin_opts *o, struct sb_error *err)
{
	struct sb_provider *p = calloc(1, sizeof *p);

	(void)o;
	if (!p) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	p->ops = &local_ops;
	return p;
}
