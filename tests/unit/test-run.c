/* SPDX-License-Identifier: MIT */
/* Running a child to its end with input and output: sb_child_run. */
#include "config.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include <base/spawn.h>
#include <base/str.h>

#include "tests/lib/unit.h"

/* Long enough for a loaded machine; only reached when something is broken. */
#define PATIENCE_MS 60000

static struct sb_error err;
static struct sb_buf out;
static struct sb_buf eout;

static int
setup(void **state)
{
	(void)state;
	sb_buf_init(&out, 1 << 20);
	sb_buf_init(&eout, 1 << 20);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	sb_buf_free(&out);
	sb_buf_free(&eout);
	return 0;
}

static int
run(const struct sb_spawn_opts *o, const char *const *argv)
{
	sb_buf_reset(&out);
	sb_buf_reset(&eout);
	return sb_child_run(argv, o, NULL, 0, &out, &eout, NULL, sb_deadline_in(PATIENCE_MS), &err);
}
#define RUN(o, ...) run(o, (const char *const[]){ __VA_ARGS__, NULL })

static void
assert_out(const char *want)
{
	assert_string_equal((char *)out.data, want);
}

/* The descriptor must come to its end: nobody holds the other side any more. */
static void
assert_eof(int fd)
{
	char c;
	ssize_t n;

	do
		n = read(fd, &c, 1);
	while (n > 0);
	assert_int_equal(n, 0);
}

static void
runs_feeds_and_collects(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "cat; echo oops >&2; exit 3", NULL };

	(void)state;
	assert_int_equal(sb_child_run(argv, NULL, "hello", 5, &out, &eout, NULL, SB_NEVER, &err),
		3);
	assert_out("hello");
	assert_string_equal((char *)eout.data, "oops\n");
	/* Without input it reads an empty file, and what is not collected is dropped. */
	assert_int_equal(sb_child_run(argv, NULL, NULL, 0, NULL, NULL, NULL, SB_NEVER, &err), 3);
	sb_buf_reset(&out);
	assert_int_equal(sb_child_run(argv, NULL, "", 0, &out, NULL, NULL, SB_NEVER, &err), 3);
	assert_out("");
	assert_int_equal(RUN(NULL, "/bin/sh", "-c", "kill -9 $$"), 137);
}

static void
large_input_is_echoed(void **state)
{
	static const char *const argv[] = { "/bin/cat", NULL };
	size_t len = 10 << 20;
	uint8_t *data = malloc(len);
	struct sb_buf big;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < len; i++)
		data[i] = (uint8_t)(i * 2654435761u >> 24);
	sb_buf_init(&big, len);
	assert_int_equal(sb_child_run(argv, NULL, data, len, &big, &eout, NULL,
				 sb_deadline_in(PATIENCE_MS), &err),
		0);
	assert_ok(sb_buf_check(&big, "echo", &err), &err);
	assert_int_equal(big.len, len);
	assert_memory_equal(big.data, data, len);
	/* One that reads nothing must neither stop us nor kill us by SIGPIPE. */
	assert_int_equal(sb_child_run((const char *const[]){ "/bin/true", NULL }, NULL, data, len,
				 NULL, NULL, NULL, sb_deadline_in(PATIENCE_MS), &err),
		0);
	sb_buf_free(&big);
	free(data);
}

static void
a_child_that_closes_its_input_is_no_signal_for_us(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "exec <&-; head -c 3000000 /dev/zero",
		NULL };
	static const char data[1 << 20];
	struct sb_buf big;
	void (*old)(int) = signal(SIGPIPE, SIG_DFL);
	int r;

	(void)state;
	sb_buf_init(&big, 3000000);
	r = sb_child_run(argv, NULL, data, sizeof data, &big, NULL, NULL,
		sb_deadline_in(PATIENCE_MS), &err);
	(void)signal(SIGPIPE, old);
	assert_ok(r, &err);
	assert_int_equal(big.len, 3000000);
	sb_buf_free(&big);
}

static void
do_nothing(int sig)
{
	(void)sig;
}

static void
signals_in_between_do_no_harm(void **state)
{
	static const char *const argv[] = { "/bin/cat", NULL };
	static char data[1 << 20];
	const struct itimerval often = { .it_interval.tv_usec = 500, .it_value.tv_usec = 500 };
	const struct itimerval never = { .it_value.tv_usec = 0 };
	struct sigaction sa = { .sa_handler = do_nothing };
	struct sigaction old;
	int r = 0;

	(void)state;
	memset(data, 'y', sizeof data);
	/* Without SA_RESTART: every call that waits comes back with EINTR now and then. */
	assert_int_equal(sigaction(SIGALRM, &sa, &old), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
	for (int i = 0; i < 5 && r >= 0; i++) {
		sb_buf_reset(&out);
		r = sb_child_run(argv, NULL, data, sizeof data, &out, &eout, NULL,
			sb_deadline_in(PATIENCE_MS), &err);
	}
	(void)setitimer(ITIMER_REAL, &never, NULL);
	(void)sigaction(SIGALRM, &old, NULL);
	assert_ok(r, &err);
	assert_int_equal(out.len, sizeof data);
	assert_memory_equal(out.data, data, sizeof data);
}

static void
full_buffer_does_not_stop_the_child(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c",
		"head -c 1000000 /dev/zero | tr '\\0' x; head -c 300000 /dev/zero >&2; exit 5",
		NULL };
	struct sb_buf small;
	char want[1001] = "";

	(void)state;
	memset(want, 'x', 1000);
	sb_buf_init(&small, 1000);
	assert_int_equal(sb_child_run(argv, NULL, NULL, 0, &small, &eout, NULL,
				 sb_deadline_in(PATIENCE_MS), &err),
		5);
	assert_string_equal((char *)small.data, want);
	assert_int_equal(sb_buf_check(&small, "output", &err), SB_E_FULL);
	assert_int_equal(eout.len, 300000);
	sb_buf_free(&small);
}

static void
something_left_behind_does_not_hold_us(void **state)
{
	int64_t pid;

	(void)state;
	assert_int_equal(RUN(NULL, "/bin/sh", "-c", "sleep 1000 >/dev/null & echo $!"), 0);
	out.data[out.len - 1] = 0;
	assert_true(sb_str_to_i64((char *)out.data, 2, INT32_MAX, &pid));
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
}

static void
deadline_kills_the_whole_group(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "trap '' TERM; sleep 1000 & wait",
		NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	int p[2];

	(void)state;
	/* Everyone in the group holds the pipe; its end is the proof that all are gone. */
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	o.io[2] = SB_SPAWN_FD;
	o.fds[2] = p[1];
	assert_fails(sb_child_run(argv, &o, NULL, 0, &out, NULL, NULL, sb_deadline_in(300), &err),
		SB_E_TIMEOUT, &err);
	assert_string_equal(err.msg, "/bin/sh: deadline passed");
	(void)close(p[1]);
	assert_eof(p[0]);
	(void)close(p[0]);
	assert_fails(sb_child_run(argv, &o, NULL, 0, NULL, NULL, NULL, sb_now_ms() - 1, &err),
		SB_E_TIMEOUT, &err);
}

struct canceler {
	int ready;
	struct sb_cancel *token;
};

/* Cancels as soon as the child has said something. */
static void *
cancel_later(void *arg)
{
	struct canceler *c = arg;
	char said;

	(void)!read(c->ready, &said, 1);
	sb_cancel_request(c->token);
	return NULL;
}

static void
cancel_kills_the_whole_group(void **state)
{
	static const char *const argv[] = { "/bin/sh", "-c", "sleep 1000 & echo x >&2; wait",
		NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct canceler c;
	pthread_t thread;
	int p[2];

	(void)state;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	o.io[2] = SB_SPAWN_FD;
	o.fds[2] = p[1];
	c = (struct canceler){ .ready = p[0], .token = sb_cancel_new(&err) };
	assert_int_equal(pthread_create(&thread, NULL, cancel_later, &c), 0);
	assert_fails(sb_child_run(argv, &o, NULL, 0, &out, NULL, c.token,
			     sb_deadline_in(PATIENCE_MS), &err),
		SB_E_CANCELED, &err);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)close(p[1]);
	assert_eof(p[0]);
	(void)close(p[0]);
	sb_cancel_free(c.token);
}

static void
lost_exit_status_is_an_error(void **state)
{
	(void)state;
	(void)signal(SIGCHLD, SIG_IGN);
	assert_fails(RUN(NULL, "/bin/true"), SB_E_CHILD, &err);
	(void)signal(SIGCHLD, SIG_DFL);
}

static void *
run_many(void *arg)
{
	for (int i = 0; i < 15; i++) {
		static const char *const argv[] = { "/bin/cat", NULL };
		struct sb_buf b;
		int r;

		sb_buf_init(&b, 100);
		r = sb_child_run(argv, NULL, arg, strlen(arg), &b, NULL, NULL,
			sb_deadline_in(PATIENCE_MS), NULL);
		if (r || strcmp((char *)b.data, arg)) {
			sb_buf_free(&b);
			return NULL;
		}
		sb_buf_free(&b);
	}
	return arg;
}

static void
threads_may_spawn_at_once(void **state)
{
	static char texts[4][8] = { "one", "two", "three", "four" };
	pthread_t t[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, run_many, texts[i]), 0);
	for (size_t i = 0; i < 4; i++) {
		void *got = NULL;

		assert_int_equal(pthread_join(t[i], &got), 0);
		assert_ptr_equal(got, texts[i]);
	}
}

int
main(void)
{
#define WITH_BUFFERS(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		WITH_BUFFERS(runs_feeds_and_collects),
		WITH_BUFFERS(large_input_is_echoed),
		WITH_BUFFERS(a_child_that_closes_its_input_is_no_signal_for_us),
		WITH_BUFFERS(signals_in_between_do_no_harm),
		WITH_BUFFERS(full_buffer_does_not_stop_the_child),
		WITH_BUFFERS(something_left_behind_does_not_hold_us),
		WITH_BUFFERS(deadline_kills_the_whole_group),
		WITH_BUFFERS(cancel_kills_the_whole_group),
		WITH_BUFFERS(lost_exit_status_is_an_error),
		WITH_BUFFERS(threads_may_spawn_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
