/* SPDX-License-Identifier: MIT */
/*
 * The byte streams under the protocol: children and pairs of descriptors, half-closed, canceled,
 * stuck.
 */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <sync/wire/transport.h>
#include <sync/wire/tail.h>

#include "tests/lib/unit.h"

#define SH(script) ((const char *const[]){ "sh", "-c", script, NULL })

/* Reads until end of file or `size` - 1 bytes; returns the count. */
static size_t
slurp(int fd, char *buf, size_t size)
{
	size_t n = 0;

	while (n < size - 1) {
		ssize_t r = read(fd, buf + n, size - 1 - n);

		if (r <= 0)
			break;
		n += (size_t)r;
	}
	buf[n] = '\0';
	return n;
}

static void
child_echoes_and_ends(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = sb_transport_child(SH("cat; exit 3"), &err);
	struct sb_exit e;
	char buf[100];

	(void)state;
	assert_non_null(t);
	assert_int_equal(write(t->wfd, "hello", 5), 5);
	assert_ok(t->ops->close_write(t, &err), &err);
	assert_ok(t->ops->close_write(t, &err), &err);
	assert_int_equal(slurp(t->rfd, buf, sizeof buf), 5);
	assert_string_equal(buf, "hello");
	assert_ok(t->ops->wait(t, sb_deadline_in(10000), &e, &err), &err);
	assert_true(e.known);
	assert_int_equal(e.code, 3);
	assert_string_equal(e.stderr_tail, "");
	assert_ok(t->ops->wait(t, sb_deadline_in(10000), &e, &err), &err);
	assert_int_equal(e.code, 3);
}

static void
child_stderr_tail_is_kept_and_escaped(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = sb_transport_child(
		SH("i=0; while [ $i -lt 20000 ]; do echo 0123456789 >&2; i=$((i+1)); done;"
		   "printf 'end\\033[31m\\n' >&2; kill -9 $$"),
		&err);
	struct sb_exit e;

	(void)state;
	assert_non_null(t);
	assert_ok(t->ops->wait(t, sb_deadline_in(30000), &e, &err), &err);
	assert_int_equal(e.code, 128 + SIGKILL);
	assert_true(strlen(e.stderr_tail) > 500 && strlen(e.stderr_tail) < sizeof e.stderr_tail);
	assert_non_null(strstr(e.stderr_tail, "0123456789\\nend\\x1b[31m"));
	assert_string_equal(e.stderr_tail + strlen(e.stderr_tail) - 11, "end\\x1b[31m");
}

static void
child_that_is_not_there(void **state)
{
	static const char *const argv[] = { "sbsync-no-such-program", NULL };
	struct sb_error err = { 0 };

	(void)state;
	assert_null(sb_transport_child(argv, &err));
	assert_int_equal(err.code, SB_E_NOTFOUND);
	assert_non_null(strstr(err.msg, "sbsync-no-such-program"));
}

static void
wait_times_out_and_leaves_it(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = sb_transport_child(SH("exec cat"), &err);
	struct sb_exit e;
	char buf[10];

	(void)state;
	assert_non_null(t);
	assert_fails(t->ops->wait(t, sb_deadline_in(20), &e, &err), SB_E_TIMEOUT, &err);
	assert_int_equal(write(t->wfd, "x", 1), 1);
	assert_int_equal(read(t->rfd, buf, 1), 1);
}

static void *
cancel_it(void *arg)
{
	struct sb_transport *t = arg;

	t->ops->cancel(t);
	return NULL;
}

static void
cancel_wakes_a_reader(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = sb_transport_child(SH("sleep 1000"), &err);
	struct sb_exit e;
	pthread_t th;
	char buf[10];

	(void)state;
	assert_non_null(t);
	assert_int_equal(pthread_create(&th, NULL, cancel_it, t), 0);
	assert_int_equal(read(t->rfd, buf, sizeof buf), 0);
	assert_int_equal(pthread_join(th, NULL), 0);
	assert_fails(t->ops->wait(t, SB_NEVER, &e, &err), SB_E_CANCELED, &err);
}

static void
cancel_wakes_a_writer(void **state)
{
	static char block[1 << 20];
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = sb_transport_child(SH("sleep 1000"), &err);
	pthread_t th;
	ssize_t n;

	(void)state;
	assert_non_null(t);
	assert_int_equal(pthread_create(&th, NULL, cancel_it, t), 0);
	do
		n = write(t->wfd, block, sizeof block);
	while (n > 0);
	assert_int_equal(errno, EPIPE);
	assert_int_equal(pthread_join(th, NULL), 0);
}

/*
 * A child that leaves a helper behind with its stderr (as ssh with ControlPersist does) must not
 * hold up wait.
 */
static void
stderr_held_open_does_not_block(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = sb_transport_child(
		SH("echo lost >&2; sleep 1000 >/dev/null & echo $!; exit 4"), &err);
	struct sb_exit e;
	char buf[32];
	long pid;

	(void)state;
	assert_non_null(t);
	assert_ok(t->ops->wait(t, sb_deadline_in(20000), &e, &err), &err);
	assert_int_equal(e.code, 4);
	assert_string_equal(e.stderr_tail, "lost");
	assert_true(slurp(t->rfd, buf, sizeof buf) > 0);
	pid = strtol(buf, NULL, 10);
	assert_true(pid > 1);
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
}

static void
free_stops_a_running_child(void **state)
{
	struct sb_error err = { 0 };
	struct sb_transport *t = sb_transport_child(SH("echo $$; exec sleep 1000"), &err);
	char buf[32] = "";
	long pid;

	(void)state;
	assert_non_null(t);
	assert_true(read(t->rfd, buf, sizeof buf - 1) > 0);
	pid = strtol(buf, NULL, 10);
	assert_true(pid > 1);
	sb_transport_free(t);
	assert_int_equal(kill((pid_t)pid, 0), -1);
}

static void
fds_half_close(void **state)
{
	struct sb_error err = { 0 };
	sb_auto(sb_transport) struct sb_transport *t = NULL;
	struct sb_exit e;
	int in[2], out[2];
	char buf[4];

	(void)state;
	assert_int_equal(pipe(in), 0);
	assert_int_equal(pipe(out), 0);
	t = sb_transport_fds(in[0], out[1], &err);
	assert_non_null(t);
	assert_int_equal(write(t->wfd, "ab", 2), 2);
	assert_ok(t->ops->close_write(t, &err), &err);
	assert_ok(t->ops->close_write(t, &err), &err);
	assert_int_equal(slurp(out[0], buf, sizeof buf), 2);
	assert_ok(t->ops->wait(t, SB_NEVER, &e, &err), &err);
	assert_false(e.known);
	for (int i = 0; i < 2; i++) {
		(void)close(in[i]);
		(void)close(out[i]);
	}
}

static void
tail_keeps_the_end(void **state)
{
	struct sb_tail t;
	char out[64];

	(void)state;
	sb_tail_init(&t);
	sb_tail_get(&t, out, sizeof out);
	assert_string_equal(out, "");
	for (int i = 0; i < 1000; i++)
		sb_tail_add(&t, "abcdefg", 7);
	sb_tail_add(&t, "\x01\x02the end\r\n\n", 12);
	sb_tail_get(&t, out, sizeof out);
	assert_non_null(strstr(out, "efg\\x01\\x02the end"));
	assert_true(strlen(out) < sizeof out);
	sb_tail_destroy(&t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(child_echoes_and_ends),
		cmocka_unit_test(child_stderr_tail_is_kept_and_escaped),
		cmocka_unit_test(child_that_is_not_there),
		cmocka_unit_test(wait_times_out_and_leaves_it),
		cmocka_unit_test(cancel_wakes_a_reader),
		cmocka_unit_test(cancel_wakes_a_writer),
		cmocka_unit_test(stderr_held_open_does_not_block),
		cmocka_unit_test(free_stops_a_running_child),
		cmocka_unit_test(fds_half_close),
		cmocka_unit_test(tail_keeps_the_end),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
