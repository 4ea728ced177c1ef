/* SPDX-License-Identifier: MIT */
/* The host's side of its workers: how calls find one, and what a worker that lies can do. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include <base/file.h>
#include <base/str.h>
#include <host/files/filepool.h>
#include <host/files/files-wire.h>

#include "tests/lib/tmpdir.h"

struct fix {
	struct tmpdir t;
	struct sb_filepool pool;
	struct sb_error err;
	const char *argv[4];
};

static int
setup(void **state)
{
	struct fix *f = calloc(1, sizeof *f);
	static char files[4096];
	const char *box = getenv("SB_BOX");

	if (!f || !box)
		return -1;
	tmpdir_make(&f->t);
	sb_filepool_init(&f->pool);
	(void)snprintf(files, sizeof files, "%.*s/sb-files", (int)(strrchr(box, '/') - box), box);
	f->argv[0] = files;
	(void)sb_file_replace(f->t.fd, "file", "one\n", 4, 0644, &f->err);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fix *f = *state;

	sb_filepool_free(&f->pool);
	tmpdir_remove(&f->t);
	free(f);
	return 0;
}

static int
run(struct fix *f, const char *tool, const char *params, int64_t ms, const struct sb_cancel *kill,
	struct sb_filepool_answer *out)
{
	const struct sb_filepool_call c = { .argv = f->argv,
		.workspace = f->t.path,
		.root = "/workspace",
		.dir = "",
		.tool = tool,
		.params = params,
		.again = strcmp(tool, "write_file") != 0,
		.deadline = sb_deadline_in(ms),
		.kill = kill };

	return sb_filepool_run(&f->pool, &c, out, &f->err);
}

static void
reads(struct fix *f)
{
	struct sb_filepool_answer a;

	assert_ok(run(f, "read_file", "{\"path\":\"/workspace/file\"}", 20000, NULL, &a), &f->err);
	assert_string_equal(a.text, "     1\tone\n");
	free(a.text);
}

static void
a_worker_serves_many_calls(void **state)
{
	struct fix *f = *state;
	pid_t first;

	reads(f);
	assert_int_equal(f->pool.n, 1);
	first = f->pool.idle->child.pid;
	for (int i = 0; i < 20; i++)
		reads(f);
	assert_int_equal(f->pool.n, 1);
	/* One that was killed while it waited is replaced, and nobody notices. */
	assert_int_equal(kill(first, SIGKILL), 0);
	reads(f);
	assert_int_equal(f->pool.n, 1);
	assert_int_not_equal(f->pool.idle->child.pid, first);
	assert_int_equal(sb_filepool_trim(&f->pool, 60000), 1);
	assert_int_equal(sb_filepool_trim(&f->pool, 0), 0);
	assert_null(f->pool.idle);
	reads(f);
}

/* A new directory at the same place: the old worker cannot reach it and says so. */
static void
another_directory_takes_another_worker(void **state)
{
	struct fix *f = *state;
	char old[300];
	int top;

	reads(f);
	(void)snprintf(old, sizeof old, "%s.old", f->t.path);
	assert_int_equal(rename(f->t.path, old), 0);
	assert_int_equal(mkdir(f->t.path, 0700), 0);
	(void)close(f->t.fd);
	f->t.fd = open(f->t.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)sb_file_replace(f->t.fd, "file", "one\n", 4, 0644, &f->err);
	reads(f);
	assert_int_equal(f->pool.n, 1);
	*strrchr(old, '/') = '\0';
	top = open(old, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_ok(sb_path_remove_tree(top, old + strlen(old) + 1, &f->err), &f->err);
	(void)close(top);
}

static void *
read_many(void *arg)
{
	for (int i = 0; i < 50; i++)
		reads(arg);
	return NULL;
}

static void
calls_take_turns(void **state)
{
	struct fix *f = *state;
	pthread_t th[16];

	for (size_t i = 0; i < 16; i++)
		assert_int_equal(pthread_create(&th[i], NULL, read_many, f), 0);
	for (size_t i = 0; i < 16; i++)
		(void)pthread_join(th[i], NULL);
	assert_true(f->pool.n <= SB_FILEPOOL_IDLE);
	assert_int_equal(f->pool.n, f->pool.n_idle);
}

/* A shell line in the place of the worker; its input and output are the socket. */
static void
lies(struct fix *f, const char *line, int want)
{
	struct sb_filepool_answer a = { 0 };

	f->argv[0] = "/bin/sh";
	f->argv[1] = "-c";
	f->argv[2] = line;
	assert_fails(run(f, "read_file", "{}", 500, NULL, &a), want, &f->err);
	assert_null(a.text);
	assert_int_equal(f->pool.n, 0);
}

static void
workers_that_lie_are_ended(void **state)
{
	struct fix *f = *state;

	/* magic, code, flags, bytes */
	lies(f, "head -c 100 /dev/zero >&0; sleep 100", SB_E_PROTO);
	lies(f, "printf '1Fbs\\0\\0\\0\\0\\0\\0\\0\\0\\377\\377\\377\\377' >&0; sleep 100",
		SB_E_PROTO);
	lies(f, "printf '1Fbs\\0\\0\\0\\0\\0\\0\\0\\0\\1\\0\\0\\0xyz' >&0; sleep 100", SB_E_PROTO);
	lies(f, "printf '1Fbs\\2\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >&0; sleep 100", SB_E_PROTO);
	lies(f, "printf '1Fbs\\377\\377\\377\\177\\0\\0\\0\\0\\0\\0\\0\\0' >&0; sleep 100",
		SB_E_PROTO);
	lies(f, "printf '1Fbs\\0\\0\\0\\0\\0\\0\\0\\0\\20\\0\\0\\0xyz' >&0; sleep 100",
		SB_E_TIMEOUT);
	lies(f, "sleep 100", SB_E_TIMEOUT);
	lies(f, "exit 3", SB_E_RUNTIME);
	lies(f, "printf '1Fbs\\1\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0' >&0; sleep 100", SB_E_RUNTIME);
	f->argv[0] = "/nonexistent/sb-files";
	f->argv[1] = NULL;
	assert_fails(run(f, "ls", "{}", 500, NULL, &(struct sb_filepool_answer){ 0 }), SB_E_RUNTIME,
		&f->err);
	assert_int_equal(f->pool.n, 0);
}

static void
a_worker_that_is_killed_is_a_result(void **state)
{
	struct fix *f = *state;
	struct sb_filepool_answer a = { 0 };

	f->argv[0] = "/bin/sh";
	f->argv[1] = "-c";
	f->argv[2] = "kill -SEGV $$";
	assert_ok(run(f, "grep", "{}", 5000, NULL, &a), &f->err);
	assert_true(a.is_error);
	assert_non_null(strstr(a.text, "grep was ended by signal 11"));
	free(a.text);
}

static void *
cancel_soon(void *cancel)
{
	const struct timespec soon = { .tv_nsec = 100000000 };

	(void)nanosleep(&soon, NULL);
	sb_cancel_request(cancel);
	return NULL;
}

static void
a_canceled_call_ends_its_worker(void **state)
{
	struct fix *f = *state;
	struct sb_cancel *cancel = sb_cancel_new(&f->err);
	struct sb_filepool_answer a = { 0 };
	pthread_t t;

	f->argv[0] = "/bin/sh";
	f->argv[1] = "-c";
	f->argv[2] = "sleep 100";
	assert_int_equal(pthread_create(&t, NULL, cancel_soon, cancel), 0);
	assert_fails(run(f, "read_file", "{\"path\":\"file\"}", 20000, cancel, &a), SB_E_CANCELED,
		&f->err);
	assert_int_equal(pthread_join(t, NULL), 0);
	assert_int_equal(f->pool.n, 0);
	sb_cancel_free(cancel);
}

/* However fast the worker is; so it is kept. */
static void
a_call_that_is_canceled_before_reaches_no_worker(void **state)
{
	struct fix *f = *state;
	struct sb_cancel *cancel = sb_cancel_new(&f->err);
	struct sb_filepool_answer a = { 0 };

	reads(f);
	assert_int_equal(f->pool.n, 1);
	sb_cancel_request(cancel);
	assert_fails(run(f, "read_file", "{\"path\":\"file\"}", 20000, cancel, &a), SB_E_CANCELED,
		&f->err);
	assert_int_equal(f->pool.n, 1);
	sb_cancel_free(cancel);
	reads(f);
}

/* Ended in the middle of a write, it leaves the old file and nothing beside it. */
static void
no_half_written_file_is_left(void **state)
{
	struct fix *f = *state;
	size_t len = 8u << 20;
	char *params = malloc(len + 64);
	struct stat st;
	DIR *d;
	int entries = 0;

	(void)snprintf(params, 64, "{\"path\":\"file\",\"content\":\"");
	memset(params + strlen(params), 'x', len);
	(void)memcpy(params + len + 20, "\"}", 3);
	for (int i = 0; i < 12; i++) {
		struct sb_filepool_answer a = { 0 };
		int r = run(f, "write_file", params, 5 + 10 * i, NULL, &a);

		assert_true(r == 0 || r == SB_E_TIMEOUT);
		free(a.text);
	}
	free(params);
	assert_int_equal(fstatat(f->t.fd, "file", &st, 0), 0);
	assert_true(st.st_size == 4 || st.st_size > (off_t)(8u << 20) - 64);
	d = opendir(f->t.path);
	assert_non_null(d);
	while (readdir(d))
		entries++;
	(void)closedir(d);
	assert_int_equal(entries, 3);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_worker_serves_many_calls),
		T(another_directory_takes_another_worker),
		T(calls_take_turns),
		T(workers_that_lie_are_ended),
		T(a_worker_that_is_killed_is_a_result),
		T(a_canceled_call_ends_its_worker),
		T(a_call_that_is_canceled_before_reaches_no_worker),
		T(no_half_written_file_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
