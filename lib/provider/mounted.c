/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/mounted.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <provider/beside.h>
#include <provider/provider.h>
#include <provider/state-dir.h>
#include <sbsync/session.h>

#define ROOTS_FILE "roots.json"
#define ROOTS_MAX (4u << 20)

SB_CLEANUP_VALUE(sb_session, sb_session_free)

/* Where the copies of one sandbox are, and of what. */
struct copies {
	char *base, *dir, *session, *agent;
	struct sb_strlist roots;
	const char *argv[3]; /* of the sync agent */
};

static void
copies_free(struct copies *c)
{
	free(c->base);
	free(c->dir);
	free(c->session);
	free(c->agent);
	sb_strlist_free(&c->roots);
}
SB_CLEANUP_VALUE(copies, copies_free)

static int
copies_open(const char *id, const char *state_dir, struct copies *c, struct sb_error *err)
{
	sb_autofree char *state = state_dir ? strdup(state_dir) : sb_state_dir_default(err);

	c->base = state ? sb_str_printf("%s/undo", state) : NULL;
	c->dir = c->base ? sb_str_printf("%s/%s", c->base, id) : NULL;
	c->session = sb_str_printf("%s.undo", id);
	c->agent = sb_beside_program("sbsync");
	if (!c->dir || !c->session || !c->agent)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	c->argv[0] = c->agent;
	c->argv[1] = "agent";
	return 0;
}

/* "DIR/before/N" or "DIR/after/N". A new string. */
static char *
copy_of(const struct copies *c, const char *which, size_t i)
{
	return sb_str_printf("%s/%s/%zu", c->dir, which, i);
}

static struct sb_sync_opts
sync_opts(const struct copies *c, const char *state_dir, const struct sb_strlist *excludes,
	const struct sb_call *call)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;

	o.agent = c->argv;
	o.state_dir = state_dir;
	o.exclude = excludes ? sb_strlist_borrow(excludes) : NULL;
	o.max_delete = INT64_MAX;
	/* All of it is the user's own, from before. */
	o.trust_git_config = true;
	o.trust_project_files = true;
	if (call) {
		o.cancel = call->cancel;
		o.log = call->log;
		o.timeout_ms = call->deadline == SB_NEVER ? 0 : call->deadline - sb_now_ms();
		if (call->deadline != SB_NEVER && o.timeout_ms < 1)
			o.timeout_ms = 1;
	}
	return o;
}

static int
save_roots(const struct copies *c, struct sb_error *err)
{
	sb_autoclose int fd = open(c->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	json_t *list = json_array();
	char *text;
	int r;

	if (fd < 0) {
		json_decref(list);
		return sb_fail_errno(err, "%s", c->dir);
	}
	for (size_t i = 0; i < c->roots.n; i++)
		(void)json_array_append_new(list,
			json_stringn_nocheck(c->roots.v[i], strlen(c->roots.v[i])));
	text = json_dumps(list, JSON_COMPACT);
	json_decref(list);
	if (!text)
		return sb_fail(err, SB_E_INVAL, "a path of the sandbox is no UTF-8");
	r = sb_file_replace(fd, ROOTS_FILE, text, strlen(text), 0600, err);
	free(text);
	return r;
}

static int
load_roots(const char *dir, struct sb_strlist *out, struct sb_error *err)
{
	sb_autoclose int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	json_t *list;
	int r = fd < 0 ? sb_fail_errno(err, "%s", dir) :
			 sb_file_read(fd, ROOTS_FILE, ROOTS_MAX, &text, err);

	if (r < 0)
		return r;
	list = json_loadb((const char *)text.data, text.len, 0, NULL);
	for (size_t i = 0; i < json_array_size(list); i++) {
		const char *root = json_string_value(json_array_get(list, i));

		if (root && *root == '/')
			sb_strlist_add(out, root);
	}
	json_decref(list);
	return out->n ? sb_strlist_check(out, err) :
			sb_fail(err, SB_E_CORRUPT, "%s is damaged", dir);
}

static int
drop(const struct copies *c, const char *id, const char *state_dir, struct sb_error *err)
{
	sb_autoclose int base = open(c->base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autofree char *name = sb_str_printf("%s.undo", id);
	sb_auto(sb_session) struct sb_session ses = { 0 };
	int r = name ? sb_session_load(state_dir, name, NULL, &ses, NULL) : SB_E_NOMEM;

	if (r == 0)
		r = sb_session_remove(&ses, state_dir, true, err);
	if (r < 0 && r != SB_E_NOTFOUND)
		return r;
	if (base < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "%s", c->base);
	r = sb_path_remove_tree(base, id, err);
	return r == SB_E_NOTFOUND ? 0 : r;
}

/* Copies of earlier sandboxes of the same directory: only the last one can be taken back. */
static int
drop_older(const struct copies *c, const char *id, const char *state_dir, struct sb_error *err)
{
	sb_autoclosedir DIR *d = opendir(c->base);
	const struct dirent *e;
	int r = 0;

	while (r == 0 && d && (e = readdir(d))) {
		sb_autofree char *dir = sb_str_printf("%s/%s", c->base, e->d_name);
		sb_auto(sb_strlist) struct sb_strlist roots = { 0 };

		if (*e->d_name == '.' || !dir || strcmp(e->d_name, id) == 0)
			continue;
		if (load_roots(dir, &roots, NULL) == 0 && strcmp(roots.v[0], c->roots.v[0]) == 0)
			r = drop(c, e->d_name, state_dir, err);
	}
	return r;
}

/* Puts what one root's run found into the result of all. */
static void
add_result(struct sb_sync_result *all, struct sb_sync_result *one)
{
	struct sb_sync_change *v;

	all->files_synced += one->files_synced;
	all->bytes_transferred += one->bytes_transferred;
	all->files_deleted += one->files_deleted;
	all->files_moved += one->files_moved;
	all->entries += one->entries;
	all->duration_ms += one->duration_ms;
	v = one->n_changes ? realloc(all->changes, (all->n_changes + one->n_changes) * sizeof *v) :
			     NULL;
	if (v) {
		memcpy(v + all->n_changes, one->changes, one->n_changes * sizeof *v);
		all->changes = v;
		all->n_changes += one->n_changes;
		free(one->changes);
		one->changes = NULL;
		one->n_changes = 0;
	}
	sb_sync_result_free(one);
}

static int
mirror_all(const struct copies *c, bool back, bool dry_run, const struct sb_sync_opts *given,
	const char *which, struct sb_sync_result *out, struct sb_error *err)
{
	struct sb_sync_opts o = *given;
	int r = 0;

	o.dry_run = dry_run;
	for (size_t i = 0; r == 0 && i < c->roots.n; i++) {
		sb_autofree char *copy = copy_of(c, which, i);
		sb_autofree char *from = back ? copy_of(c, "before", i) : strdup(c->roots.v[i]);
		struct sb_sync_result one = { 0 };

		if (!copy || !from)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
		r = sb_file_mkdirs(copy, 0700, err);
		if (r == 0)
			r = sb_sync_mirror(from, copy, &o, &one, err);
		add_result(out, &one);
	}
	return r;
}

int
sb_mounted_before(const struct sb_state *s, const char *state_dir, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err)
{
	sb_auto(copies) struct copies c = { 0 };
	struct sb_sync_opts o;
	int r = copies_open(s->sandbox_id, state_dir, &c, err);

	sb_strlist_add(&c.roots, s->local_root);
	sb_strlist_join(&c.roots, &s->local_dirs);
	if (r == 0)
		r = sb_strlist_check(&c.roots, err);
	if (r == 0)
		r = drop_older(&c, s->sandbox_id, state_dir, err);
	if (r == 0)
		r = sb_file_mkdirs(c.dir, 0700, err);
	if (r == 0)
		r = save_roots(&c, err);
	o = sync_opts(&c, state_dir, &s->excludes, call);
	if (r == 0)
		r = mirror_all(&c, false, false, &o, "before", out, err);
	return r < 0 ? sb_wrap(err, r, "copy from before the sandbox") : 0;
}

/* What is there now is what a later undo compares with: edits since then stay. */
static int
remember_after(const struct copies *c, const char *state_dir, const struct sb_sync_opts *o,
	struct sb_error *err)
{
	struct sb_session_start how = SB_SESSION_START_INIT;
	sb_auto(sb_strlist) struct sb_strlist also = { 0 };
	sb_auto(sb_session) struct sb_session old = { 0 };
	struct sb_sync_result res = { 0 };
	sb_autofree char *first = copy_of(c, "after", 0);
	int r = sb_session_load(state_dir, c->session, NULL, &old, NULL);

	if (r == 0)
		(void)sb_session_remove(&old, state_dir, true, NULL);
	r = 0;
	for (size_t i = 0; r == 0 && i < c->roots.n; i++) {
		sb_autofree char *copy = copy_of(c, "after", i);

		r = copy ? sb_file_mkdirs(copy, 0700, err) :
			   sb_fail(err, SB_E_NOMEM, "out of memory");
		if (i > 0 && copy)
			sb_strlist_addf(&also, "%s:%s", c->roots.v[i], copy);
	}
	if (r == 0)
		r = sb_strlist_check(&also, err);
	if (r < 0 || !first)
		return r < 0 ? r : sb_fail(err, SB_E_NOMEM, "out of memory");
	how.name = c->session;
	how.also = sb_strlist_borrow(&also);
	how.owner_pid = SB_SESSION_NO_OWNER;
	r = sb_session_start(c->roots.v[0], first, &how, o, SB_SESSION_KEEP_BOTH, NULL, &res, err);
	sb_sync_result_free(&res);
	return r;
}

int
sb_mounted_after(const struct sb_state *s, const char *state_dir, bool dry_run,
	const struct sb_call *call, struct sb_sync_result *out, struct sb_error *err)
{
	sb_auto(copies) struct copies c = { 0 };
	struct sb_sync_opts o;
	int r = copies_open(s->sandbox_id, state_dir, &c, err);

	if (r == 0)
		r = load_roots(c.dir, &c.roots, err);
	if (r == SB_E_NOTFOUND)
		return 0; /* there was no start, so nothing was worked on */
	o = sync_opts(&c, state_dir, &s->excludes, call);
	if (r == 0)
		r = mirror_all(&c, false, true, &o, "before", out, err);
	for (size_t i = 0; r == 0 && i < out->n_changes; i++) {
		const char *what = out->changes[i].what;

		out->changes[i].side = "local";
		out->files_synced += strcmp(what, "delete") != 0 && strcmp(what, "mkdir") != 0;
		out->files_deleted += strcmp(what, "delete") == 0;
	}
	if (r == 0 && !dry_run)
		r = remember_after(&c, state_dir, &o, err);
	return r;
}

int
sb_mounted_undo(const char *id, const char *state_dir, const struct sb_call *call,
	struct sb_sync_result *out, struct sb_error *err)
{
	sb_auto(copies) struct copies c = { 0 };
	sb_auto(sb_session) struct sb_session ses = { 0 };
	struct sb_sync_result moved = { 0 };
	struct sb_error own = { 0 };
	struct sb_sync_opts o;
	int r;

	memset(out, 0, sizeof *out);
	err = err ? err : &own;
	r = sb_sandbox_id_ok(id) ? copies_open(id, state_dir, &c, err) :
				   sb_fail(err, SB_E_INVAL, "'%s' is no id of a sandbox", id);
	if (r == 0)
		r = load_roots(c.dir, &c.roots, err);
	if (r == 0)
		r = sb_session_load(state_dir, c.session, NULL, &ses, err);
	if (r == SB_E_NOTFOUND)
		return sb_fail(err, SB_E_NOTFOUND,
			"nothing of sandbox %s can be taken back: it did not work in the directory "
			"itself (sync: mounted), or a later one did",
			id);
	o = sync_opts(&c, state_dir, NULL, call);
	if (r == 0)
		r = mirror_all(&c, true, false, &o, "after", &moved, err);
	sb_sync_result_free(&moved);
	return r < 0 ? r :
		       sb_session_sync(&ses, SB_REASON_TURN, &o, SB_SESSION_KEEP_BOTH, out, err);
}

int
sb_mounted_forget(const char *id, const char *state_dir, struct sb_error *err)
{
	sb_auto(copies) struct copies c = { 0 };
	int r = copies_open(id, state_dir, &c, err);

	return r < 0 ? r : drop(&c, id, state_dir, err);
}
