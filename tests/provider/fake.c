/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/provider/fake.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <base/spawn.h>
#include <base/str.h>
#include <base/strlist.h>
#include <provider/launchers.h>
#include <provider/pairs.h>
#include <provider/provider.h>
#include <provider/toolset.h>
#include <sb/conform.h>
#include <tool/place.h>

struct fake {
	struct sb_provider base;
	char *state_dir;
	char *shared;            /* the one root of all, for a fault */
	struct sb_strlist known; /* sandboxes prepared by this process, for a fault */
};
static pthread_mutex_t known_mu = PTHREAD_MUTEX_INITIALIZER; /* prepares are concurrent */

bool
fake_broken(const char *check)
{
	const char *f = getenv("FAKE_FAULT");

	return f && strcmp(f, check) == 0;
}

/* Shell text about the two roots. Faults need no more. */
static void
shell(const char *script, const struct sb_state *s)
{
	const char *argv[] = { "/bin/sh", "-c", script, "sh", s->local_root, s->runtime_root,
		NULL };

	(void)sb_child_run(argv, NULL, NULL, 0, NULL, NULL, NULL, sb_deadline_in(60000), NULL);
}

static int
fake_capabilities(struct sb_provider *p, const struct sb_profile *profile,
	struct sb_capabilities *out, struct sb_error *err)
{
	(void)p;
	(void)profile;
	(void)err;
	*out = (struct sb_capabilities)SB_CAPABILITIES_INIT;
	out->syncs = out->find = out->tty = out->streaming = out->archive = true;
	if (fake_broken("capabilities"))
		out->isolation = "castle";
	return 0;
}

static int
fill_state(const struct sb_place *place, struct sb_state *s, struct sb_error *err)
{
	char word[40];
	int r;

	(void)snprintf(word, sizeof word, "%lld", (long long)sb_now_ms());
	free(s->instance_id);
	s->instance_id = strdup(fake_broken("prepare-again") ? word : place->instance);
	free(s->provider_state);
	s->provider_state = strdup("{\"version\":1}");
	s->runtime_root = strdup(place->root);
	sb_strlist_free(&s->runtime_dirs);
	sb_strlist_join(&s->runtime_dirs, &place->dirs);
	r = sb_strlist_check(&s->runtime_dirs, err);
	if (fake_broken("sync-extra") && s->runtime_dirs.n) {
		free(s->runtime_dirs.v[0]);
		s->runtime_dirs.v[0] = sb_str_printf("%s/.extra", place->root);
		(void)mkdir(s->runtime_dirs.v[0], 0755);
	}
	return r < 0 || !s->instance_id || !s->runtime_root ? SB_E_NOMEM : 0;
}

static int
make_place(const struct sb_prepare_request *req, struct sb_place *place, struct sb_error *err)
{
	struct sb_place_wish w = { .id = req->sandbox_id,
		.instance = req->instance_id,
		.names = req->local_dirs,
		.may_create = req->may_create };
	sb_autofree char *label = sb_str_printf(SB_LABEL_SESSION "=%s", req->session_id);
	const char *labels[] = { label, NULL };
	struct sb_place old = { 0 };

	/* Does not go on with what a crash left. */
	if (fake_broken("crash") && sb_place_find(req->sandbox_id, NULL, NULL, &old, NULL) == 0) {
		sb_place_free(&old);
		return sb_fail(err, SB_E_EXISTS, "there is one already");
	}
	w.labels = labels;
	return sb_place_prepare(&w, place, err);
}

static int
fake_prepare(struct sb_provider *base, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_prepared *out, struct sb_error *err)
{
	struct fake *f = (struct fake *)base;
	sb_auto(sb_prepared) struct sb_prepared made = { 0 };
	sb_auto(sb_place) struct sb_place place = { 0 };
	struct sb_toolset *tools;
	int r = fake_broken("prepare-refuses") ?
		0 :
		sb_provider_check_request(req, SB_BACKEND_E2B, false, err);

	(void)call;
	if (fake_broken("prepare"))
		return sb_fail(err, SB_E_UNAVAILABLE, "broken on purpose");
	if (r == 0)
		r = make_place(req, &place, err);
	if (r == 0)
		r = sb_state_from_request(req, &made.state, err);
	if (r == 0 && fake_broken("concurrent")) {
		free(place.root);
		place.root = strdup(f->shared);
	}
	if (r == 0)
		r = fill_state(&place, &made.state, err);
	if (r == 0 && fake_broken("prepare-copies")) {
		free(made.state.local_root);
		made.state.local_root = strdup("/");
	}
	if (r == 0 && fake_broken("sync-excludes")) {
		sb_strlist_free(&made.state.excludes);
	}
	if (r == 0)
		r = sb_prepared_launch(req, &made, err);
	if (r < 0)
		return r;
	made.state.prepared_at = time(NULL);
	(void)pthread_mutex_lock(&known_mu);
	sb_strlist_addf(&f->known, "%p", (void *)made.state.sandbox_id);
	(void)pthread_mutex_unlock(&known_mu);
	made.launcher = fake_launcher(sb_launcher_local_new(place.root, err));
	tools = sb_toolset_near(place.root, sb_strlist_borrow(&made.state.runtime_dirs), err);
	if (!made.launcher || !tools)
		return SB_E_NOMEM;
	made.tools =
		fake_tools(sb_tool_host_new(tools,
				   fake_broken("tools-permissions") ? SB_PERM_MODE_APPROVE_ALL :
								      req->permissions,
				   err),
			place.root);
	*out = made;
	made = (struct sb_prepared){ 0 };
	return 0;
}

/* A provider that remembers in memory what belongs into the state. */
static bool
forgot(const struct fake *f, const struct sb_state *s)
{
	char word[40];

	if (!fake_broken("state") && !fake_broken("reattach"))
		return false;
	(void)snprintf(word, sizeof word, "%p", (void *)s->sandbox_id);
	for (size_t i = 0; i < f->known.n; i++)
		if (strcmp(f->known.v[i], word) == 0)
			return false;
	return true;
}

/* Faults of a push before it, and of a pull. */
static void
spoil_before(enum sb_way way, const struct sb_state *s)
{
	if (way == SB_WAY_TO_RUNTIME && fake_broken("sync-user-edits"))
		shell("cd \"$2\" && for f in *; do test -e \"$1/$f\" || rm -rf \"$f\"; done", s);
	if (way == SB_WAY_FROM_RUNTIME &&
		(fake_broken("sync-deletions") || fake_broken("sync-renames")))
		shell("cp -a \"$1\" \"$1.old\"", s);
}

static void
spoil_after(enum sb_way way, const struct sb_state *s)
{
	if (way == SB_WAY_TO_RUNTIME && fake_broken("sync-odd"))
		shell("chmod 600 \"$2/plain\"", s);
	if (way == SB_WAY_TO_RUNTIME)
		return;
	if (fake_broken("sync-deletions") || fake_broken("sync-renames"))
		shell("cp -an \"$1.old/.\" \"$1/\"; rm -rf \"$1.old\"", s);
	if (fake_broken("sync-made-there"))
		shell("rm -f \"$1/link\"", s);
	if (fake_broken("sync-git"))
		shell("test -d \"$1/.git\" && echo junk >\"$1/.git/HEAD\"", s);
}

static int
fake_sync(struct sb_provider *base, const struct sb_state *given, enum sb_way way,
	const struct sb_provider_sync *o, const struct sb_call *call, struct sb_sync_result *out,
	struct sb_error *err)
{
	struct fake *f = (struct fake *)base;
	const char *sbsync = getenv("FAKE_SBSYNC");
	const char *agent[] = { sbsync ? sbsync : "sbsync", "agent", NULL };
	struct sb_sync_opts reach = SB_SYNC_OPTS_INIT;
	struct sb_provider_sync how = *o;
	struct sb_state s = *given;
	struct sb_pairs pairs = { .state = &s, .remote = s.runtime_root, .reach = &reach };
	int r;

	memset(out, 0, sizeof *out);
	reach.agent = agent;
	reach.state_dir = f->state_dir;
	if (forgot(f, given))
		return sb_fail(err, SB_E_NOTFOUND, "never heard of it");
	if (fake_broken("sync-turn") && o->reason == SB_WHEN_TURN)
		return 0;
	if (fake_broken("sync-none"))
		s.sync_mode = SB_SYNC_MODE_SESSION;
	if (fake_broken("sync-dry-run"))
		how.dry_run = false;
	if (fake_broken("sync-conflict"))
		how.take_runtime = true;
	spoil_before(way, given);
	r = sb_pairs_sync(&pairs, way, &how, call, out, err);
	spoil_after(way, given);
	if (r == SB_E_CANCELED && fake_broken("cancel-push"))
		r = SB_E_SYS;
	if (r < 0 && way == SB_WAY_FROM_RUNTIME && fake_broken("failed-back"))
		r = 0;
	if (fake_broken("sync-result"))
		out->files_synced = 0;
	return r;
}

static int
fake_sync_to(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return fake_sync(p, s, SB_WAY_TO_RUNTIME, o, call, out, err);
}

static int
fake_sync_from(struct sb_provider *p, const struct sb_state *s, const struct sb_provider_sync *o,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	return fake_sync(p, s, SB_WAY_FROM_RUNTIME, o, call, out, err);
}

static int
fake_destroy(struct sb_provider *base, const struct sb_state *s, bool discard,
	const struct sb_call *call, struct sb_error *err)
{
	struct fake *f = (struct fake *)base;
	const char *sbsync = getenv("FAKE_SBSYNC");
	const char *agent[] = { sbsync ? sbsync : "sbsync", "agent", NULL };
	struct sb_sync_opts reach = SB_SYNC_OPTS_INIT;
	struct sb_pairs pairs = { .state = s, .remote = s->runtime_root, .reach = &reach };
	struct sb_place place = { 0 };
	int r = sb_place_find(s->sandbox_id, s->instance_id, NULL, &place, err);

	sb_place_free(&place);
	if (r == SB_E_SANDBOX_NOT_FOUND)
		return fake_broken("destroy-twice") ? r : sb_pairs_forget(s, f->state_dir, err);
	if (fake_broken("destroy-discard"))
		return 0;
	if (s->persist == SB_PERSIST_REUSE && !fake_broken("persist-reuse"))
		return r;
	if (s->persist == SB_PERSIST_ARCHIVE && !fake_broken("persist-archive"))
		return r;
	reach.agent = agent;
	reach.state_dir = f->state_dir;
	if (r == 0 && !discard && !fake_broken("destroy-unsynced"))
		r = sb_pairs_check_back(&pairs, call, err);
	if (r == 0)
		r = sb_place_destroy(s->sandbox_id, s->instance_id, err);
	return r < 0 ? r : sb_pairs_forget(s, f->state_dir, err);
}

static int
fake_find(struct sb_provider *p, const struct sb_find_request *req, const struct sb_call *call,
	struct sb_state *out, struct sb_error *err)
{
	struct sb_prepare_request like = SB_PREPARE_REQUEST_INIT;
	sb_auto(sb_place) struct sb_place place = { 0 };
	int r = sb_place_find(req->sandbox_id, req->instance_id,
		fake_broken("labels") ? NULL : req->labels, &place, err);

	(void)p;
	(void)call;
	if (r == SB_E_SANDBOX_NOT_FOUND && fake_broken("find")) {
		place.instance = strdup("x");
		place.root = strdup("/");
		r = 0;
	}
	if (r < 0)
		return r;
	like.sandbox_id = req->sandbox_id;
	like.local_root = req->local_root;
	like.local_dirs = req->local_dirs;
	like.profile = req->profile;
	r = sb_state_from_request(&like, out, err);
	if (r == 0)
		r = fill_state(&place, out, err);
	out->life = SB_LIFE_FOUND;
	return r;
}

static int
fake_snapshot(struct sb_provider *p, const struct sb_state *s, const char *name,
	const struct sb_call *call, struct sb_error *err)
{
	(void)p, (void)s, (void)name, (void)call, (void)err;
	return 0;
}

static void
fake_free(struct sb_provider *p)
{
	struct fake *f = (struct fake *)p;

	sb_strlist_free(&f->known);
	free(f->shared);
	free(f->state_dir);
	free(f);
}

static const struct sb_provider_ops fake_ops = {
	.version = SB_PROVIDER_VERSION,
	.name = "another directory of this machine",
	.backend = SB_BACKEND_E2B,
	.capabilities = fake_capabilities,
	.prepare = fake_prepare,
	.sync_to_runtime = fake_sync_to,
	.sync_from_runtime = fake_sync_from,
	.destroy = fake_destroy,
	.find = fake_find,
	.free = fake_free,
	.state_version = 1,
};

struct sb_provider *
sb_provider_plugin(const struct sb_builtin_opts *o, struct sb_error *err)
{
	static struct sb_provider_ops other;
	struct fake *f = calloc(1, sizeof *f);

	if (!f) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	other = fake_ops;
	if (fake_broken("provider"))
		other.destroy = NULL;
	if (fake_broken("snapshot"))
		other.snapshot = fake_snapshot;
	if (fake_broken("version"))
		other.state_version = 0;
	f->base.ops = &other;
	f->state_dir = o->state_dir ? strdup(o->state_dir) : NULL;
	f->shared = sb_str_printf("%s/shared-root",
		getenv("SBSYNC_BOX_DIR") ? getenv("SBSYNC_BOX_DIR") : "/tmp");
	return &f->base;
}
