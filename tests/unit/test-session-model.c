/* SPDX-License-Identifier: MIT */
/*
 * The three-way rules on real trees, through the real engine with a real agent, on this machine and
 * behind a real SSH server; and undo of each sync.
 */
#include "config.h"

#include "tests/lib/unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <sbsync/conn.h>
#include <sbsync/session.h>

#include "tests/lib/model.h"
#include "tests/lib/sshd.h"
#include "tests/lib/tmpdir.h"

#define ROUNDS 30     /* SESSION_ROUNDS overrides */
#define SSH_ROUNDS 15 /* SESSION_SSH_ROUNDS overrides */
#define FAR_ROUNDS 5  /* without an agent there; SESSION_FAR_ROUNDS overrides */
#define EPOCH 1000000000

/* One pair of roots with a session between them. */
struct bed {
	struct tmpdir dir;
	char ws[300], runtime[300], state[300], sbsync[600];
	const char *agent[3];
	struct sb_sync_opts o;
	struct sb_session s;
	struct test_sshd sshd;
	bool served;   /* `sshd` runs */
	char why[300]; /* there is none */
	bool far;      /* no agent runs there: times of symlinks stay behind */
	struct sb_conn *conn;
};

/* The session's, where no agent keeps it: a root without it is not the sandbox any more. */
static bool
is_identity(const char *path, const struct FTW *at)
{
	return at->level == 1 && strcmp(path + at->base, ".sbsync-far-id") == 0;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st;
	(void)kind;
	return at->level && !is_identity(path, at) ? remove(path) : 0;
}

static void
set_time(const char *path, uint32_t t)
{
	struct timespec ts[2] = { { .tv_sec = EPOCH + t }, { .tv_sec = EPOCH + t } };

	assert_int_equal(utimensat(AT_FDCWD, path, ts, AT_SYMLINK_NOFOLLOW), 0);
}

/* The first name of the file that row `i` is a name of. */
static size_t
first_name(const struct model_list *l, size_t i)
{
	for (size_t k = 0; l->v[i].n.type == MODEL_FILE && l->v[i].n.link && k < i; k++)
		if (l->v[k].n.type == MODEL_FILE && l->v[k].n.link == l->v[i].n.link)
			return k;
	return i;
}

static void
write_tree(const char *root, const struct model_list *l)
{
	char path[512], to[512], text[32];

	assert_int_equal(nftw(root, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
	for (size_t i = 0; i < l->n; i++) {
		const struct model_node *n = &l->v[i].n;
		size_t first;
		FILE *f;

		(void)snprintf(path, sizeof path, "%s/%s", root, l->v[i].path);
		(void)snprintf(text, sizeof text, "to-%u", n->content);
		if (n->type == MODEL_DIR) {
			assert_int_equal(mkdir(path, n->mode), 0);
			continue;
		}
		first = first_name(l, i);
		if (n->type == MODEL_LINK) {
			assert_int_equal(symlink(text, path), 0);
		} else if (first < i) {
			(void)snprintf(to, sizeof to, "%s/%s", root, l->v[first].path);
			assert_int_equal(link(to, path), 0);
		} else {
			f = fopen(path, "w");
			assert_non_null(f);
			assert_true(fputs(text, f) >= 0);
			assert_int_equal(fclose(f), 0);
			assert_int_equal(chmod(path, n->mode), 0);
		}
		set_time(path, n->mtime);
	}
}

static struct model_list *reading;
static size_t reading_root;

static int
read_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	struct model_row *r = &reading->v[reading->n];
	char text[64] = "";

	(void)kind;
	if (!at->level || is_identity(path, at))
		return 0;
	reading->n++;
	(void)snprintf(r->path, sizeof r->path, "%s", path + reading_root + 1);
	r->n = (struct model_node){ .type = S_ISDIR(st->st_mode) ? MODEL_DIR :
			S_ISLNK(st->st_mode)                     ? MODEL_LINK :
								   MODEL_FILE,
		.mode = st->st_mode & 07777,
		.mtime = (uint32_t)(st->st_mtime - EPOCH),
		.link = S_ISREG(st->st_mode) ? (uint32_t)st->st_ino : 0 };
	if (S_ISLNK(st->st_mode)) {
		assert_true(readlink(path, text, sizeof text - 1) > 0);
	} else if (S_ISREG(st->st_mode)) {
		FILE *f = fopen(path, "r");

		assert_non_null(f);
		assert_non_null(fgets(text, sizeof text, f));
		(void)fclose(f);
	}
	if (r->n.type != MODEL_DIR)
		r->n.content = (uint32_t)strtoul(text + 3, NULL, 10);
	return 0;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct model_row *)a)->path, ((const struct model_row *)b)->path);
}

static void
read_tree(const char *root, struct model_list *out)
{
	reading = out;
	reading_root = strlen(root);
	out->n = 0;
	assert_int_equal(nftw(root, read_one, 16, FTW_PHYS), 0);
	qsort(out->v, out->n, sizeof out->v[0], by_path);
}

/* What the round under way began with and was told, to look at when it fails. */
static struct model_list began[3];
static char told[4096];

static void
tell(const char *what, const struct sb_sync_notes *n)
{
	for (size_t i = 0; i < n->n; i++) {
		size_t len = strlen(told);

		(void)snprintf(told + len, sizeof told - len, "# %s: %s: %s (%s)\n", what,
			n->v[i].path, n->v[i].why, n->v[i].saved_as ? n->v[i].saved_as : "");
	}
}

static void
show(const char *what, const struct model_list *l)
{
	print_message("# %s:\n", what);
	for (size_t i = 0; i < l->n; i++) {
		const struct model_node *n = &l->v[i].n;

		print_message("#   %c %4o %u %-10u %u %s\n", "-dfl"[n->type], n -> mode, n -> mtime,
			n -> content, n -> link, l -> v[i].path);
	}
}

static void
show_round(const char *what, const struct model_list *got, const struct model_list *want)
{
	show("base", &began[0]);
	show("local before", &began[1]);
	show("runtime before", &began[2]);
	show(what, got);
	show("wanted", want);
	print_message("%s", told);
}

static void
drop_link_times(struct model_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		if (l->v[i].n.type == MODEL_LINK)
			l->v[i].n.mtime = 0;
}

static void
must_be(const struct bed *b, const char *root, const struct model_list *want, const char *what,
	uint64_t seed)
{
	struct model_list got, plain = *want;
	char why[512];

	read_tree(root, &got);
	if (b->far) {
		drop_link_times(&got);
		drop_link_times(&plain);
	}
	if (!model_differ(&got, &plain, false, why, sizeof why))
		return;
	show_round(what, &got, want);
	fail_msg("seed %llu: %s: %s", (unsigned long long)seed, what, why);
}

static void
sync_now(struct bed *b, enum sb_session_reason reason, size_t *conflicts, uint64_t seed)
{
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	int r = sb_session_sync(&b->s, reason, &b->o, SB_SESSION_AS_STARTED, &res, &err);

	if (r < 0)
		fail_msg("seed %llu: reason %d: %s", (unsigned long long)seed, reason, err.msg);
	*conflicts = res.conflicts.n;
	(void)snprintf(told, sizeof told, "# reason %d\n", reason);
	tell("conflict", &res.conflicts);
	tell("error", &res.errors);
	tell("skipped", &res.skipped);
	sb_sync_result_free(&res);
}

static void
undo_now(struct bed *b, uint64_t seed)
{
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	int r = sb_session_undo(&b->s, &b->o, &res, &err);

	if (r < 0 || res.errors.n || res.conflicts.n)
		fail_msg("seed %llu: undo: %s, %zu errors, %zu conflicts, %s %s",
			(unsigned long long)seed, r < 0 ? err.msg : "done", res.errors.n,
			res.conflicts.n, res.conflicts.n ? res.conflicts.v[0].path : "",
			res.conflicts.n ? res.conflicts.v[0].why : "");
	sb_sync_result_free(&res);
}

static bool
same(const struct model_list *a, const struct model_list *b)
{
	char why[512];

	return !model_differ(a, b, false, why, sizeof why);
}

static void
one_round(struct bed *b, uint64_t seed, void (*edit)(struct model_tree *, unsigned, uint64_t *))
{
	static const enum sb_session_reason reasons[] = { 0, SB_REASON_PUSH, SB_REASON_CRASH,
		SB_REASON_TURN };
	struct model_tree t[3];
	struct model_list *l = began;
	struct model_result want;
	uint64_t rnd = seed;
	int direction = MODEL_TO + (int)model_below(&rnd, 3);
	size_t conflicts;

	model_make(&t[0], &rnd);
	edit(&t[0], 8, &rnd);
	t[1] = t[2] = t[0];
	edit(&t[1], 8, &rnd);
	edit(&t[2], 8, &rnd);
	for (int i = 0; i < 3; i++)
		model_list_of(&t[i], &l[i]);
	write_tree(b->ws, &l[0]);
	write_tree(b->runtime, &l[0]);
	sync_now(b, SB_REASON_TURN, &conflicts, seed);
	assert_int_equal(conflicts, 0);
	write_tree(b->ws, &l[1]);
	write_tree(b->runtime, &l[2]);
	model_run(&t[0], &t[1], &t[2], direction, MODEL_KEEP_BOTH, &want);
	sync_now(b, reasons[direction], &conflicts, seed);
	must_be(b, b->ws, &want.local, "local", seed);
	must_be(b, b->runtime, &want.runtime, "runtime", seed);
	if (conflicts != want.n_conflicts) {
		show_round("local", &want.local, &want.runtime);
		fail_msg("seed %llu: %zu conflicts instead of %zu", (unsigned long long)seed,
			conflicts, want.n_conflicts);
	}
	if (!(direction & MODEL_FROM) || same(&want.local, &l[1]))
		return;
	undo_now(b, seed);
	must_be(b, b->ws, &l[1], "undone", seed);
	undo_now(b, seed);
	must_be(b, b->ws, &want.local, "undo undone", seed);
}

/* Folders and options; the session is still to be started. */
static struct bed *
make_bed(void)
{
	const char *top = getenv("SB_TOP_BUILDDIR");
	struct bed *b = calloc(1, sizeof *b);

	if (!b)
		return NULL;
	tmpdir_make(&b->dir);
	(void)snprintf(b->ws, sizeof b->ws, "%s/ws", b->dir.path);
	(void)snprintf(b->runtime, sizeof b->runtime, "%s/runtime", b->dir.path);
	(void)snprintf(b->state, sizeof b->state, "%s/state", b->dir.path);
	(void)snprintf(b->sbsync, sizeof b->sbsync, "%s/sbsync", top ? top : ".");
	/* The agent keeps its state there too. */
	(void)setenv("SBSYNC_STATE_DIR", b->state, 1);
	(void)umask(022);
	(void)mkdir(b->ws, 0755);
	b->agent[0] = b->sbsync;
	b->agent[1] = "agent";
	b->o = (struct sb_sync_opts)SB_SYNC_OPTS_INIT;
	b->o.agent = b->agent;
	b->o.state_dir = b->state;
	b->o.max_delete = 1000000;
	b->o.durability = SB_SYNC_DURABLE_NONE;
	return b;
}

static int
start_session(struct bed *b, const char *remote)
{
	struct sb_session_start how = SB_SESSION_START_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	int r;

	how.name = MODEL_LABEL;
	r = sb_session_start(b->ws, remote, &how, &b->o, SB_SESSION_KEEP_BOTH, &b->s, &res, &err);
	if (r < 0)
		print_message("# %s\n", err.msg);
	sb_sync_result_free(&res);
	return r;
}

static int
setup(void **state)
{
	struct bed *b = make_bed();

	*state = b;
	return b ? start_session(b, b->runtime) : -1;
}

/* A program for this machine that none can start: the sync goes on without an agent. */
static int
make_broken_agent(const char *path)
{
	char head[64];
	FILE *from = fopen("/proc/self/exe", "r"), *to = fopen(path, "w");
	bool ok = from && to && fread(head, 1, sizeof head, from) == sizeof head &&
		fwrite(head, 1, sizeof head, to) == sizeof head && fchmod(fileno(to), 0755) == 0;

	if (from)
		(void)fclose(from);
	if (to)
		ok = fclose(to) == 0 && ok;
	return ok ? 0 : -1;
}

/* The program that is brought there: where none is built for that, the whole sbsync is one, too. */
static int
choose_agent(const struct bed *b, bool agent)
{
	const char *top = getenv("SB_TOP_BUILDDIR");
	char path[600];

	if (agent)
		(void)snprintf(path, sizeof path, "%s/sbsync-agent", top ? top : ".");
	else
		(void)snprintf(path, sizeof path, "%s/broken", b->dir.path);
	if (!agent && make_broken_agent(path) < 0)
		return -1;
	return setenv("SBSYNC_AGENT", access(path, X_OK) == 0 ? path : b->sbsync, 1);
}

/* The runtime is on this machine, so that it can be read, and reached only by SSH. */
static int
setup_far(void **state, bool agent)
{
	static const char *const lines[] = {
		"SetEnv XDG_CACHE_HOME=@DIR@/cache SBSYNC_STATE_DIR=@DIR@/state TMPDIR=@DIR@", NULL
	};
	struct bed *b = make_bed();
	struct sb_error err = { 0 };
	char path[600];
	bool skips;

	*state = b;
	if (!b || choose_agent(b, agent) < 0)
		return -1;
	b->far = !agent;
	b->served = test_sshd_start(&b->sshd, "start", NULL, lines, &skips, b->why, sizeof b->why);
	if (!b->served)
		return skips ? 0 : -1;
	(void)snprintf(path, sizeof path, "ssh://%s@127.0.0.1:%d%s", b->sshd.user, b->sshd.port,
		b->runtime);
	b->o.identity = b->sshd.key;
	b->o.known_hosts = b->sshd.known;
	b->conn = sb_conn_open(path, &b->o, &err);
	if (!b->conn) {
		print_message("# %s\n", err.msg);
		return -1;
	}
	b->o.conn = b->conn;
	if (start_session(b, path) < 0)
		return -1;
	(void)snprintf(path, sizeof path, "%s/.sbsync-far-id", b->runtime);
	return (access(path, F_OK) == 0) == !agent ? 0 : -1;
}

static int
setup_ssh(void **state)
{
	return setup_far(state, true);
}

static int
setup_agentless(void **state)
{
	return setup_far(state, false);
}

static int
teardown(void **state)
{
	struct bed *b = *state;

	sb_session_free(&b->s);
	sb_conn_free(b->conn);
	if (b->served)
		test_sshd_stop(&b->sshd);
	tmpdir_remove(&b->dir);
	free(b);
	return 0;
}

static uint64_t
rounds_of(const char *variable, uint64_t usual)
{
	const char *n = getenv(variable);

	return n ? strtoull(n, NULL, 10) : usual;
}

/* Rounds from SESSION_FIRST (1) on: the seed of a finding, divided by the test's `step`. */
static void
rounds_from(struct bed *b, uint64_t n, uint64_t step,
	void (*edit)(struct model_tree *, unsigned, uint64_t *))
{
	uint64_t first = rounds_of("SESSION_FIRST", 1);

	for (uint64_t seed = first; seed < first + n; seed++)
		one_round(b, seed * step, edit);
}

static void
real_trees_follow_the_table(void **state)
{
	rounds_from(*state, rounds_of("SESSION_ROUNDS", ROUNDS), 1000003, model_edit);
}

static void
real_hard_links_follow_the_table(void **state)
{
	rounds_from(*state, rounds_of("SESSION_ROUNDS", ROUNDS), 999979, model_edit_links);
}

static void
hard_links_behind_ssh_follow_the_table(void **state)
{
	struct bed *b = *state;

	if (!b->served)
		skip_because("%s", b->why);
	rounds_from(b, rounds_of("SESSION_SSH_ROUNDS", SSH_ROUNDS), 999961, model_edit_links);
}

/* Hard links become copies there (sync/remote/agentless.h). */
static void
trees_without_an_agent_follow_the_table(void **state)
{
	struct bed *b = *state;

	if (!b->served)
		skip_because("%s", b->why);
	rounds_from(b, rounds_of("SESSION_FAR_ROUNDS", FAR_ROUNDS), 999953, model_edit);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(real_trees_follow_the_table, setup, teardown),
		cmocka_unit_test_setup_teardown(real_hard_links_follow_the_table, setup, teardown),
		cmocka_unit_test_setup_teardown(hard_links_behind_ssh_follow_the_table, setup_ssh,
			teardown),
		cmocka_unit_test_setup_teardown(trees_without_an_agent_follow_the_table,
			setup_agentless, teardown),
	};

	return cmocka_run_group_tests_name("session-model", tests, NULL, NULL);
}
