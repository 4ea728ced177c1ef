/* SPDX-License-Identifier: MIT */
/*
 * Scans where something is in the way: depth, limits, permissions, mounts, and others who change
 * the tree meanwhile.
 */
#include "config.h"

#include "tests/lib/unit.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <sync/scan/scan.h>

#include "tests/lib/tree.h"

static const struct sb_scan_opts plain = SB_SCAN_OPTS_INIT;

/*
 * Runs `fn` in a child; its return value is the exit status, which must be 0 (77: not possible
 * here).
 */
static void
in_child(int (*fn)(struct tmpdir *t), struct tmpdir *t)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(fn(t));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		skip_because("needs root, and mounts of its own");
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		fail_msg("the child ended with status %#x", (unsigned)status);
}

/* For children, where cmocka's asserts do not reach: says which one failed. */
#define CHECK(cond) \
	do { \
		if (!(cond)) { \
			(void)fprintf(stderr, "# %s:%d: %s\n", __FILE__, __LINE__, #cond); \
			return 1; \
		} \
	} while (0)

/* A chain of directories, each with a sibling if `wide`; a file at the end. */
static void
make_chain(int fd, const char *name, unsigned depth, bool wide)
{
	int at = dup(fd);

	for (unsigned i = 0; i < depth; i++) {
		int next;

		make_dir(at, name);
		if (wide)
			make_dir(at, "sibling");
		next = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(next >= 0);
		(void)close(at);
		at = next;
	}
	make_file(at, "end", "bottom");
	(void)close(at);
}

struct deepest {
	size_t len;
	uint64_t files;
};

static int
find_deepest(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	struct deepest *d = arg;

	(void)path;
	if (e->type != SB_ENTRY_FILE)
		return 0;
	d->files++;
	if (len > d->len)
		d->len = len;
	return e->flags & SB_ENTRY_UNHASHED ? -1 : 0;
}

static void
depth_is_no_limit(void **state)
{
	struct tmpdir *t = *state;

	make_chain(t->fd, "d", 10000, false);
	for (unsigned jobs = 1; jobs <= 4; jobs += 3) {
		sb_auto(sb_scan) struct sb_scan s = { 0 };
		struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
		struct deepest d = { 0 };

		o.jobs = jobs;
		scan_ok(t->fd, &o, &s);
		assert_int_equal(s.manifest->count, 10001);
		assert_int_equal(sb_manifest_walk(s.manifest, find_deepest, &d), 0);
		assert_int_equal(d.len, 20003);
	}
}

static void
long_paths_are_no_limit(void **state)
{
	struct tmpdir *t = *state;
	sb_auto(sb_scan) struct sb_scan s = { 0 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct deepest d = { 0 };
	struct sb_error err = { 0 };
	char name[256];

	memset(name, 'n', 255);
	name[255] = 0;
	make_chain(t->fd, name, 40, true);
	o.lazy_below = 100;
	scan_ok(t->fd, &o, &s);
	assert_int_equal(s.manifest->count, 81);
	assert_ok(sb_scan_hash_rest(t->fd, &o, &s, NULL, NULL, &err), &err);
	assert_int_equal(sb_manifest_walk(s.manifest, find_deepest, &d), 0);
	assert_int_equal(d.len, 40 * 256 + 3);
}

static int
scan_with_few_descriptors(struct tmpdir *t)
{
	struct rlimit lim = { .rlim_cur = 20, .rlim_max = 20 };
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_scan s = { 0 };
	int r, fd;

	CHECK(setrlimit(RLIMIT_NOFILE, &lim) == 0);
	o.jobs = 8;
	r = sb_scan_run(t->fd, &o, &s, &err);
	if (r < 0)
		(void)fprintf(stderr, "# %s\n", err.msg);
	CHECK(r == 0);
	CHECK(s.manifest->count == 40 * 41 + 2001);
	CHECK(s.n_skipped == 0);
	sb_scan_free(&s);
	/* With none left at all it says so. */
	while ((fd = dup(t->fd)) >= 0)
		;
	CHECK(errno == EMFILE);
	memset(&err, 0, sizeof err);
	r = sb_scan_run(t->fd, &o, &s, &err);
	CHECK(r < 0 && err.sys == EMFILE && !s.manifest);
	for (fd = 19; fd > 17; fd--)
		(void)close(fd);
	/* Two are enough for neither walk nor clean-up to go wrong. */
	r = sb_scan_run(t->fd, &o, &s, &err);
	CHECK(r < 0 && err.sys == EMFILE && !s.manifest);
	return 0;
}

static void
few_descriptors_are_enough(void **state)
{
	struct tmpdir *t = *state;
	char path[64];

	make_chain(t->fd, "deep", 1000, true);
	for (int i = 0; i < 40; i++) {
		(void)snprintf(path, sizeof path, "w%d", i);
		make_dir(t->fd, path);
		for (int k = 0; k < 40; k++) {
			(void)snprintf(path, sizeof path, "w%d/%d", i, k);
			make_dir(t->fd, path);
		}
	}
	in_child(scan_with_few_descriptors, t);
}

static int
scan_as_nobody(struct tmpdir *t)
{
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_scan s = { 0 };

	if (geteuid() == 0)
		CHECK(setgroups(0, NULL) == 0 && setgid(65534) == 0 && setuid(65534) == 0);
	CHECK(sb_scan_run(t->fd, &o, &s, &err) == 0);
	CHECK(skip_of(&s, "file") == SB_SKIP_UNREADABLE);
	CHECK(skip_of(&s, "dir") == SB_SKIP_UNREADABLE);
	CHECK(skip_of(&s, "noread") == SB_SKIP_UNREADABLE);
	CHECK(skip_of(&s, "noenter/f") == SB_SKIP_UNREADABLE);
	CHECK(s.n_skipped == 4);
	CHECK(s.skipped[0].sys == EACCES);
	CHECK(!sb_manifest_find(s.manifest, "file") && !sb_manifest_find(s.manifest, "dir"));
	CHECK(sb_manifest_find(s.manifest, "ok/f") && sb_manifest_find(s.manifest, "noenter"));
	CHECK(s.manifest->count == 3);
	sb_scan_free(&s);
	/* A lazy scan meets the same file later. */
	o.lazy_below = 100;
	CHECK(sb_scan_run(t->fd, &o, &s, &err) == 0);
	CHECK(sb_manifest_find(s.manifest, "file") && skip_of(&s, "file") < 0);
	CHECK(sb_scan_hash_rest(t->fd, &o, &s, NULL, NULL, &err) == 0);
	CHECK(!sb_manifest_find(s.manifest, "file") && skip_of(&s, "file") == SB_SKIP_UNREADABLE);
	sb_scan_free(&s);
	return 0;
}

static void
the_unreadable_is_reported(void **state)
{
	struct tmpdir *t = *state;

	assert_int_equal(fchmod(t->fd, 0755), 0);
	make_dir(t->fd, "ok");
	make_file(t->fd, "ok/f", "x");
	make_file(t->fd, "file", "x");
	make_dir(t->fd, "dir");
	make_file(t->fd, "dir/f", "x");
	make_dir(t->fd, "noread");
	make_dir(t->fd, "noenter");
	make_file(t->fd, "noenter/f", "x");
	assert_int_equal(fchmodat(t->fd, "file", 0, 0), 0);
	assert_int_equal(fchmodat(t->fd, "dir", 0, 0), 0);
	assert_int_equal(fchmodat(t->fd, "noread", 0311, 0), 0);
	assert_int_equal(fchmodat(t->fd, "noenter", 0644, 0), 0);
	in_child(scan_as_nobody, t);
	assert_int_equal(fchmodat(t->fd, "dir", 0700, 0), 0);
	assert_int_equal(fchmodat(t->fd, "noread", 0700, 0), 0);
	assert_int_equal(fchmodat(t->fd, "noenter", 0700, 0), 0);
}

/*
 * Makes statx and openat2 fail with `sys` from now on, as older kernels and container filters do.
 */
static int
deny_new_calls(int sys)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_statx, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat2, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (unsigned)sys),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog prog = { .len = sizeof code / sizeof *code, .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
		prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog) < 0)
		return -1;
	return 0;
}

static int
scan_in_an_old_world(struct tmpdir *t, int sys)
{
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_scan a = { 0 }, b = { 0 };
	const struct sb_entry *x, *y;
	struct statx st;

	CHECK(sb_scan_run(t->fd, &o, &a, &err) == 0);
	if (deny_new_calls(sys) < 0)
		return 77;
	CHECK(syscall(SYS_statx, t->fd, "f", 0, 0, &st) < 0 && errno == sys);
	o.lazy_below = 100;
	CHECK(sb_scan_run(t->fd, &o, &b, &err) == 0);
	CHECK(sb_scan_hash_rest(t->fd, &o, &b, NULL, NULL, &err) == 0);
	CHECK(sb_digest_eq(&a.manifest->id, &b.manifest->id));
	x = sb_manifest_find(a.manifest, "d/f");
	y = sb_manifest_find(b.manifest, "d/f");
	CHECK(x && y && x->ctime == y->ctime && x->ino == y->ino);
	CHECK(a.manifest->root.dir->dev == b.manifest->root.dir->dev);
	sb_scan_free(&a);
	sb_scan_free(&b);
	return 0;
}

static int
scan_without_calls(struct tmpdir *t)
{
	return scan_in_an_old_world(t, ENOSYS);
}

static int
scan_with_calls_denied(struct tmpdir *t)
{
	return scan_in_an_old_world(t, EPERM);
}

static void
older_kernels_and_filters_are_enough(void **state)
{
	struct tmpdir *t = *state;

	make_dir(t->fd, "d");
	make_file(t->fd, "d/f", "x");
	make_file(t->fd, "f", "y");
	assert_int_equal(symlinkat("f", t->fd, "l"), 0);
	in_child(scan_without_calls, t);
	in_child(scan_with_calls_denied, t);
}

static int
scan_over_mounts(struct tmpdir *t)
{
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_scan s = { 0 };

	if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return 77;
	CHECK(chdir(t->path) == 0);
	CHECK(mount("none", "tmp", "tmpfs", 0, NULL) == 0);
	CHECK(close(open("tmp/inside", O_CREAT | O_WRONLY | O_CLOEXEC, 0644)) == 0);
	/* The same file system at another place: its device tells nothing. */
	CHECK(mount("source", "bound", NULL, MS_BIND, NULL) == 0);
	CHECK(mount("source/f", "file", NULL, MS_BIND, NULL) == 0);
	CHECK(sb_scan_run(AT_FDCWD, &o, &s, &err) == 0);
	CHECK(skip_of(&s, "tmp") == SB_SKIP_MOUNT);
	CHECK(skip_of(&s, "bound") == SB_SKIP_MOUNT);
	CHECK(skip_of(&s, "file") == SB_SKIP_MOUNT);
	CHECK(s.n_skipped == 3 && s.manifest->count == 2);
	sb_scan_free(&s);
	o.cross_mounts = true;
	CHECK(sb_scan_run(AT_FDCWD, &o, &s, &err) == 0);
	CHECK(s.n_skipped == 0);
	CHECK(sb_manifest_find(s.manifest, "tmp/inside") &&
		sb_manifest_find(s.manifest, "bound/f"));
	sb_scan_free(&s);
	return 0;
}

static void
mounts_are_not_entered(void **state)
{
	struct tmpdir *t = *state;

	make_dir(t->fd, "tmp");
	make_dir(t->fd, "bound");
	make_dir(t->fd, "source");
	make_file(t->fd, "source/f", "x");
	make_file(t->fd, "file", "y");
	in_child(scan_over_mounts, t);
}

/* Someone who changes the tree while it is scanned. */
struct rival {
	pthread_t id;
	struct tmpdir *t;
	atomic_bool stop;
	atomic_uint_fast64_t rounds;
	void (*act)(struct tmpdir *t, uint64_t round);
};

static void *
rival_main(void *arg)
{
	struct rival *r = arg;

	while (!atomic_load(&r->stop)) {
		r->act(r->t, atomic_load(&r->rounds));
		atomic_fetch_add(&r->rounds, 1);
	}
	return NULL;
}

static void
rival_start(struct rival *r, struct tmpdir *t, void (*act)(struct tmpdir *t, uint64_t round))
{
	*r = (struct rival){ .t = t, .act = act };
	assert_int_equal(pthread_create(&r->id, NULL, rival_main, r), 0);
}

static void
rival_end(struct rival *r)
{
	atomic_store(&r->stop, true);
	assert_int_equal(pthread_join(r->id, NULL), 0);
}

static void
write_a_bit(struct tmpdir *t, uint64_t round)
{
	int f = openat(t->fd, "busy", O_WRONLY | O_CLOEXEC);

	(void)!pwrite(f, &round, sizeof round, (off_t)(round * 4093 % (8 << 20)));
	/* Times are kept in ticks; this makes each write differ. */
	(void)futimens(f,
		(struct timespec[2]){ { .tv_nsec = UTIME_OMIT }, { .tv_sec = (time_t)round } });
	(void)close(f);
}

static void
a_file_that_keeps_changing_is_unstable(void **state)
{
	struct tmpdir *t = *state;
	sb_deadline end = sb_deadline_in(60000);
	bool seen = false;
	struct rival r;
	int f = openat(t->fd, "busy", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	assert_int_equal(ftruncate(f, 64 << 20), 0);
	(void)close(f);
	make_file(t->fd, "calm", "calm");
	assert_int_equal(linkat(t->fd, "busy", t->fd, "other-name", 0), 0);
	rival_start(&r, t, write_a_bit);
	while (!seen && !sb_deadline_passed(end)) {
		sb_auto(sb_scan) struct sb_scan s = { 0 };
		struct sb_entry *a, *b;

		scan_ok(t->fd, &plain, &s);
		assert_content(&s, "calm", "calm");
		a = sb_manifest_find(s.manifest, "busy");
		b = sb_manifest_find(s.manifest, "other-name");
		/* In or reported; two names of one file tell the same. */
		assert_int_equal(a == NULL, skip_of(&s, "busy") == SB_SKIP_UNSTABLE);
		assert_int_equal(b == NULL, skip_of(&s, "other-name") == SB_SKIP_UNSTABLE);
		if (a && b)
			assert_memory_equal(a->digest.b, b->digest.b, 16);
		seen = !a && !b;
	}
	rival_end(&r);
	assert_true(seen);
}

static void
come_and_go(struct tmpdir *t, uint64_t round)
{
	char dir[32], file[64];

	(void)snprintf(dir, sizeof dir, "d%u", (unsigned)(round % 50));
	(void)snprintf(file, sizeof file, "%s/f", dir);
	(void)mkdirat(t->fd, dir, 0755);
	(void)close(openat(t->fd, file, O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
	(void)snprintf(dir, sizeof dir, "d%u", (unsigned)((round + 25) % 50));
	(void)snprintf(file, sizeof file, "%s/f", dir);
	(void)unlinkat(t->fd, file, 0);
	(void)unlinkat(t->fd, dir, AT_REMOVEDIR);
}

static void
what_vanishes_is_just_not_there(void **state)
{
	struct tmpdir *t = *state;
	struct rival r;

	make_file(t->fd, "stays", "x");
	rival_start(&r, t, come_and_go);
	for (int i = 0; i < 150; i++) {
		sb_auto(sb_scan) struct sb_scan s = { 0 };

		scan_ok(t->fd, &plain, &s);
		assert_content(&s, "stays", "x");
		for (size_t k = 0; k < s.n_skipped; k++)
			assert_int_equal(s.skipped[k].reason, SB_SKIP_UNSTABLE);
	}
	rival_end(&r);
}

static void
swap(struct tmpdir *t, uint64_t round)
{
	(void)round;
	(void)syscall(SYS_renameat2, t->fd, "root/d", t->fd, "root/link", RENAME_EXCHANGE);
}

static int
no_secret(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	(void)path;
	(void)len;
	(void)arg;
	return strcmp(e->name, "secret") == 0 ? -1 : 0;
}

/* `d` and `link` change places all the time; what the link points to is never in the manifest. */
static void
a_swapped_symlink_leads_nowhere(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct rival r;
	char path[64];
	int root;

	make_dir(t->fd, "root");
	make_dir(t->fd, "root/d");
	make_dir(t->fd, "root/d/sub");
	make_file(t->fd, "root/d/sub/f", "x");
	make_dir(t->fd, "outside");
	make_dir(t->fd, "outside/sub");
	make_file(t->fd, "outside/secret", "x");
	make_file(t->fd, "outside/sub/secret", "x");
	assert_int_equal(symlinkat("../outside", t->fd, "root/link"), 0);
	/* Something to do meanwhile, so that the directories are not always taken at once. */
	for (int i = 0; i < 50; i++) {
		(void)snprintf(path, sizeof path, "root/c%d", i);
		make_dir(t->fd, path);
	}
	root = openat(t->fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rival_start(&r, t, swap);
	for (int i = 0; i < 400; i++) {
		sb_auto(sb_scan) struct sb_scan s = { 0 };
		struct sb_scan_opts o = SB_SCAN_OPTS_INIT;

		o.lazy_below = i % 2 ? 10 : 0;
		scan_ok(root, &o, &s);
		assert_ok(sb_scan_hash_rest(root, &o, &s, NULL, NULL, &err), &err);
		assert_int_equal(sb_manifest_walk(s.manifest, no_secret, NULL), 0);
	}
	rival_end(&r);
	assert_true(atomic_load(&r.rounds) > 100);
	(void)close(root);
}

static void
cancel_later(uint64_t entries, uint64_t bytes, uint64_t total, void *arg)
{
	(void)entries;
	(void)bytes;
	(void)total;
	sb_cancel_request(arg);
}

static void
a_scan_can_be_canceled(void **state)
{
	struct tmpdir *t = *state;
	struct sb_error err = { 0 };
	struct sb_cancel *before = sb_cancel_new(&err), *during = sb_cancel_new(&err);
	struct sb_scan_opts o = SB_SCAN_OPTS_INIT;
	struct sb_scan s = { 0 };
	int f = openat(t->fd, "endless", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

	/* Hours to read. */
	assert_int_equal(ftruncate(f, 1ll << 43), 0);
	(void)close(f);
	sb_cancel_request(before);
	o.cancel = before;
	assert_fails(sb_scan_run(t->fd, &o, &s, &err), SB_E_CANCELED, &err);
	assert_null(s.manifest);
	o.cancel = during;
	o.progress = cancel_later;
	o.progress_arg = during;
	assert_fails(sb_scan_run(t->fd, &o, &s, &err), SB_E_CANCELED, &err);
	sb_cancel_free(before);
	sb_cancel_free(during);
}

/* Thousands of directories, made and removed: in memory if there is a place for it. */
static int
quick_setup(void **state)
{
	if (!getenv("TMPDIR") && access("/dev/shm", W_OK | X_OK) == 0) {
		int r;

		(void)setenv("TMPDIR", "/dev/shm", 1);
		r = tmpdir_setup(state);
		(void)unsetenv("TMPDIR");
		return r;
	}
	return tmpdir_setup(state);
}

#define WITH_DIR(test) cmocka_unit_test_setup_teardown(test, tmpdir_setup, tmpdir_teardown)
#define WITH_QUICK_DIR(test) cmocka_unit_test_setup_teardown(test, quick_setup, tmpdir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_QUICK_DIR(depth_is_no_limit),
		WITH_DIR(long_paths_are_no_limit),
		WITH_QUICK_DIR(few_descriptors_are_enough),
		WITH_DIR(the_unreadable_is_reported),
		WITH_DIR(older_kernels_and_filters_are_enough),
		WITH_DIR(mounts_are_not_entered),
		WITH_DIR(a_file_that_keeps_changing_is_unstable),
		WITH_DIR(what_vanishes_is_just_not_there),
		WITH_DIR(a_swapped_symlink_leads_nowhere),
		WITH_DIR(a_scan_can_be_canceled),
	};

	return cmocka_run_group_tests_name("scan-hard", tests, NULL, NULL);
}
