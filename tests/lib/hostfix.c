/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/hostfix.h"

#include <dirent.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/spawn.h>
#include <base/strlist.h>
#include <host/storage/storage.h>
#include <sb/host-exec.h>

bool
hostfix_is_zfs(void)
{
	const char *pool = getenv("SB_TEST_POOL");

	return pool && *pool;
}

const char *
hostfix_storage(void)
{
	const char *name = getenv("SB_TEST_STORAGE");

	return hostfix_is_zfs() ? "zfs" : name && *name ? name : "local-disk";
}

bool
hostfix_has_snapshots(void)
{
	return strcmp(hostfix_storage(), "local-disk") != 0;
}

int
hostfix_run(const char *const *argv)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_error err = { 0 };

	o.search_path = true;
	return sb_child_run(argv, &o, NULL, 0, NULL, NULL, NULL, sb_deadline_in(30000), &err);
}

static void
make_image(struct hostfix *f)
{
	char path[400];

	(void)snprintf(path, sizeof path, "%s/img/dir", f->bases);
	assert_ok(sb_file_mkdirs(path, 0755, &f->err), &f->err);
	(void)snprintf(path, sizeof path, "%s/img/hello", f->bases);
	assert_ok(sb_file_replace(AT_FDCWD, path, "hello\n", 6, 0644, &f->err), &f->err);
	(void)snprintf(path, sizeof path, "%s/img/dir/deep", f->bases);
	assert_ok(sb_file_replace(AT_FDCWD, path, "deep\n", 5, 0600, &f->err), &f->err);
	(void)snprintf(path, sizeof path, "%s/img/link", f->bases);
	assert_int_equal(symlink("hello", path), 0);
}

void
hostfix_prepare(struct hostfix *f)
{
	static atomic_uint n;
	const char *pool = getenv("SB_TEST_POOL"), *runtime = getenv("SB_TEST_RUNTIME");

	tmpdir_make(&f->t);
	f->zfs = hostfix_is_zfs();
	f->snaps = hostfix_has_snapshots();
	f->o = (struct sb_host_opts)SB_HOST_OPTS_INIT;
	(void)snprintf(f->state_dir, sizeof f->state_dir, "%s/state", f->t.path);
	f->o.state_dir = f->state_dir;
	f->o.runtime = SB_HOST_RUNTIME_NONE;
	if (runtime && *runtime && !sb_host_runtime_from(runtime, &f->o.runtime))
		fail_msg("SB_TEST_RUNTIME=%s is no runtime", runtime);
	if (f->zfs) {
		f->o.storage = SB_HOST_ZFS;
		f->o.pool = pool;
		(void)snprintf(f->bases, sizeof f->bases, "%s/bases", pool);
		(void)snprintf(f->sessions, sizeof f->sessions, "%s/s%d-%u", pool, (int)getpid(),
			atomic_fetch_add(&n, 1));
		f->o.bases_dataset = f->bases;
		f->o.sessions_dataset = f->sessions;
		f->base = "img@initial";
	} else {
		const char *place = f->snaps ? getenv("SB_TEST_PLACE") : f->t.path;
		unsigned k = atomic_fetch_add(&n, 1);

		assert_non_null(place);
		if (!sb_host_storage_from(hostfix_storage(), &f->o.storage))
			fail_msg("SB_TEST_STORAGE=%s is no storage", hostfix_storage());
		(void)snprintf(f->bases, sizeof f->bases, "%s/b%d-%u", place, (int)getpid(), k);
		(void)snprintf(f->sessions, sizeof f->sessions, "%s/s%d-%u", place, (int)getpid(),
			k);
		f->o.bases_dir = f->bases;
		f->o.sessions_root_dir = f->sessions;
		f->base = "img";
		make_image(f);
	}
}

void
hostfix_open(struct hostfix *f)
{
	struct sb_host_capabilities c;

	f->h = sb_host_open(&f->o, &f->err);
	if (!f->h)
		fail_msg("sb_host_open: %s (%d)", f->err.msg, f->err.code);
	sb_host_capabilities(f->h, &c);
	f->quota = c.quota;
}

void
hostfix_reopen(struct hostfix *f)
{
	sb_host_close(f->h);
	f->h = NULL;
	hostfix_open(f);
}

int
hostfix_setup(void **state)
{
	struct hostfix *f = calloc(1, sizeof *f);

	assert_non_null(f);
	hostfix_prepare(f);
	hostfix_open(f);
	*state = f;
	return 0;
}

/* What a session runs in outlives the host; only the end of the session ends it. */
static void
end_sandboxes(struct hostfix *f)
{
	struct sb_host_session *v = NULL;
	size_t n = 0;

	if (!f->h || sb_host_session_list(f->h, NULL, &v, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		if (f->o.runtime != SB_HOST_RUNTIME_NONE || v[i].processes)
			(void)sb_host_session_destroy(f->h, v[i].id, true, NULL, NULL);
	sb_host_sessions_free(v, n);
}

static int
collect(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	if (!e->snap)
		sb_strlist_add(arg, e->id);
	return sb_strlist_check(arg, err);
}

/* Whatever sessions the host left in its storage, then the directories. */
static void
remove_place(struct hostfix *f)
{
	const char *const argv[] = { "rm", "-rf", f->sessions, f->bases, NULL };
	struct sb_strlist keep = { 0 }, all = { 0 };
	char why[SB_STORAGE_WHY_MAX];
	struct sb_storage *st = NULL;

	/* The struct may have been moved. */
	f->o.sessions_root_dir = f->sessions;
	f->o.bases_dir = f->bases;
	f->o.default_quota = 0;
	/* A daemon that was told to end has it until its disk is in order. */
	for (int i = 0; i < 10; i++) {
		st = sb_storage_open(&f->o, &keep, -1, why, &f->err);
		if (st || f->err.code != SB_E_LOCKED)
			break;
	}
	if (!st) {
		print_message("# %s\n", f->err.msg);
		fail_msg("%s", f->err.msg);
	}
	assert_ok(st->ops->list(st, NULL, collect, &all, &f->err), &f->err);
	for (size_t i = 0; i < all.n; i++)
		assert_ok(st->ops->destroy(st, all.v[i], &f->err), &f->err);
	st->ops->close(st);
	sb_strlist_free(&all);
	sb_strlist_free(&keep);
	assert_int_equal(hostfix_run(argv), 0);
}

int
hostfix_teardown(void **state)
{
	struct hostfix *f = *state;

	end_sandboxes(f);
	sb_host_close(f->h);
	if (f->zfs) {
		/*
		 * A dataset that was just in use says it is busy for a moment. Not -f: see
		 * storage-zfs-grave.c.
		 */
		const char *const argv[] = { "zfs", "destroy", "-R", f->sessions, NULL };

		for (int i = 0; i < 200 && hostfix_run(argv) != 0; i++)
			(void)usleep(50000);
	}
	if (!f->zfs && f->snaps)
		remove_place(f);
	tmpdir_remove(&f->t);
	free(f);
	return 0;
}

void
hostfix_create(struct hostfix *f, const char *id, struct sb_host_session *out)
{
	struct sb_host_create_opts o = SB_HOST_CREATE_OPTS_INIT;

	o.id = id;
	o.base = f->base;
	assert_ok(sb_host_session_create(f->h, &o, NULL, out, &f->err), &f->err);
}

enum sb_host_state
hostfix_state(struct hostfix *f, const char *id)
{
	struct sb_host_session s;
	enum sb_host_state st;

	assert_ok(sb_host_session_get(f->h, id, false, &s, &f->err), &f->err);
	st = s.state;
	sb_host_session_clear(&s);
	return st;
}

const char *
hostfix_path(struct hostfix *f, const char *id, const char *name)
{
	static _Thread_local char path[1024];
	struct sb_host_session s;

	assert_ok(sb_host_session_get(f->h, id, false, &s, &f->err), &f->err);
	(void)snprintf(path, sizeof path, "%s/%s", s.mountpoint, name);
	sb_host_session_clear(&s);
	return path;
}

void
hostfix_write(struct hostfix *f, const char *id, const char *name, const char *text)
{
	const char *path = hostfix_path(f, id, name);

	assert_ok(sb_file_replace(AT_FDCWD, path, text, strlen(text), 0644, &f->err), &f->err);
}

bool
hostfix_holds(struct hostfix *f, const char *id, const char *name, const char *text)
{
	struct sb_buf b;
	bool same;
	int r = sb_file_read(AT_FDCWD, hostfix_path(f, id, name), 1 << 20, &b, &f->err);

	if (r < 0)
		return !text;
	same = text && b.len == strlen(text) && memcmp(b.data, text, b.len) == 0;
	sb_buf_free(&b);
	return same;
}

static size_t
count_datasets(struct hostfix *f)
{
	const char *const argv[] = { "zfs", "list", "-H", "-r", "-t", "filesystem", "-o", "name",
		f->sessions, NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_buf out;
	size_t n = 0;

	o.search_path = true;
	sb_buf_init(&out, 1 << 20);
	(void)sb_child_run(argv, &o, NULL, 0, &out, NULL, NULL, sb_deadline_in(30000), &f->err);
	for (size_t i = 0; i < out.len; i++)
		n += out.data[i] == '\n';
	sb_buf_free(&out);
	return n ? n - 1 : 0;
}

static bool
is_btrfs_own(const char *name)
{
	static const char *const own[] = { ".lock", ".snaps", ".holds", ".quota", ".lines" };

	for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
		if (strcmp(name, own[i]) == 0)
			return true;
	return false;
}

size_t
hostfix_storage_count(struct hostfix *f)
{
	const bool overlay = f->o.storage == SB_HOST_OVERLAY;
	char place[400];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	if (f->zfs)
		return count_datasets(f);
	(void)snprintf(place, sizeof place, "%s%s", f->sessions, overlay ? "/mnt" : "");
	d = opendir(place);
	assert_non_null(d);
	while ((e = readdir(d)))
		n += strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
			(f->o.storage != SB_HOST_BTRFS || !is_btrfs_own(e->d_name));
	(void)closedir(d);
	return n;
}

int
hostfix_bash(struct hostfix *f, const char *session, const char *cmd, char *out, size_t size)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;
	char params[4096];
	int code;

	(void)snprintf(params, sizeof params, "{\"cmd\":\"%s\"}", cmd);
	q.session = session;
	q.tool = "bash";
	q.params = params;
	assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
	if (out)
		(void)snprintf(out, size, "%s", r.text);
	code = r.exit_code;
	sb_host_tool_result_clear(&r);
	return code;
}

void
hostfix_session(struct hostfix *f, const char *id)
{
	struct sb_host_session s;

	hostfix_create(f, id, &s);
	sb_host_session_clear(&s);
}

void
hostfix_turn(struct hostfix *f, const char *id, uint64_t want)
{
	static unsigned n;
	struct sb_host_snapshot sn;
	char name[40];

	/* A turn that changes nothing takes no snapshot. */
	(void)snprintf(name, sizeof name, "%u", ++n);
	hostfix_write(f, id, "of-a-turn", name);
	assert_ok(sb_host_turn_complete(f->h, id, NULL, &sn, &f->err), &f->err);
	assert_false(sn.unchanged);
	(void)snprintf(name, sizeof name, "turn-%04llu", (unsigned long long)want);
	assert_string_equal(sn.name, name);
	assert_int_equal(sn.turn, want);
	sb_host_snapshot_clear(&sn);
}

const char *
hostfix_snaps(struct hostfix *f, const char *id)
{
	static char out[2048];
	struct sb_host_snapshot *v;
	size_t n, len = 0;

	assert_ok(sb_host_snapshot_list(f->h, id, NULL, &v, &n, &f->err), &f->err);
	out[0] = '\0';
	for (size_t i = 0; i < n; i++)
		len += (size_t)snprintf(out + len, sizeof out - len, "%s%s", i ? " " : "",
			v[i].name);
	sb_host_snapshots_free(v, n);
	return out;
}

uint64_t
hostfix_turns(struct hostfix *f, const char *id)
{
	struct sb_host_session s;
	uint64_t n;

	assert_ok(sb_host_session_get(f->h, id, false, &s, &f->err), &f->err);
	n = s.turn_count;
	sb_host_session_clear(&s);
	return n;
}
