/* SPDX-License-Identifier: MIT */
/*
 * Cancellation: who requests it, from a thread or a signal handler, wakes everyone who waits; and
 * deadlines.
 */
#include "config.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <sb/cancel.h>

#include "tests/lib/unit.h"

static bool
readable(const struct sb_cancel *c)
{
	struct pollfd p = { .fd = sb_cancel_fd(c), .events = POLLIN };

	return poll(&p, 1, 0) == 1 && (p.revents & POLLIN);
}

static void
requested_stays_requested(void **state)
{
	struct sb_error err = { 0 };
	struct sb_cancel *c = sb_cancel_new(&err);

	(void)state;
	assert_non_null(c);
	assert_false(sb_cancel_requested(c));
	assert_false(readable(c));
	errno = ERANGE;
	sb_cancel_request(c);
	assert_int_equal(errno, ERANGE);
	for (int i = 0; i < 3; i++) {
		assert_true(sb_cancel_requested(c));
		assert_true(readable(c));
		sb_cancel_request(c);
	}
	sb_cancel_free(c);
}

static void
null_is_never_requested(void **state)
{
	(void)state;
	assert_false(sb_cancel_requested(NULL));
	assert_int_equal(sb_cancel_fd(NULL), -1);
	sb_cancel_free(NULL);
}

static void *
wait_for_request(void *arg)
{
	struct sb_cancel *c = arg;
	struct pollfd p = { .fd = sb_cancel_fd(c), .events = POLLIN };

	while (poll(&p, 1, 20000) < 0)
		;
	return sb_cancel_requested(c) && (p.revents & POLLIN) ? c : NULL;
}

static void
wakes_every_thread(void **state)
{
	struct sb_error err = { 0 };
	struct sb_cancel *c = sb_cancel_new(&err);
	pthread_t t[4];

	(void)state;
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&t[i], NULL, wait_for_request, c), 0);
	sb_cancel_request(c);
	for (size_t i = 0; i < 4; i++) {
		void *got = NULL;

		assert_int_equal(pthread_join(t[i], &got), 0);
		assert_ptr_equal(got, c);
	}
	sb_cancel_free(c);
}

static struct sb_cancel *signal_token;

static void
on_signal(int sig)
{
	(void)sig;
	sb_cancel_request(signal_token);
}

static void
may_be_requested_from_a_signal_handler(void **state)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct sigaction old;

	(void)state;
	signal_token = sb_cancel_new(NULL);
	assert_int_equal(sigaction(SIGUSR1, &sa, &old), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	assert_true(sb_cancel_requested(signal_token));
	assert_true(readable(signal_token));
	(void)sigaction(SIGUSR1, &old, NULL);
	sb_cancel_free(signal_token);
}

static void
deadlines_count_down(void **state)
{
	int ms;

	(void)state;
	assert_true(sb_deadline_in(0) == SB_NEVER);
	assert_true(sb_deadline_in(-5) == SB_NEVER);
	assert_true(sb_deadline_in(INT64_MAX) == SB_NEVER);
	assert_int_equal(sb_deadline_poll_ms(SB_NEVER), -1);
	assert_int_equal(sb_deadline_poll_ms(sb_now_ms() - 1), 0);
	assert_int_equal(sb_deadline_poll_ms(INT64_MIN), 0);
	assert_int_equal(sb_deadline_poll_ms(INT64_MAX - 1), INT_MAX);
	ms = sb_deadline_poll_ms(sb_deadline_in(60000));
	assert_in_range(ms, 1, 60000);
	assert_false(sb_deadline_passed(SB_NEVER));
	assert_false(sb_deadline_passed(sb_deadline_in(60000)));
	assert_true(sb_deadline_passed(sb_now_ms()));
	assert_true(sb_deadline_min(SB_NEVER, 5) == 5);
	assert_true(sb_deadline_min(5, 6) == 5);
}

static void
check_alive_names_what_ended(void **state)
{
	struct sb_error err = { 0 };
	struct sb_cancel *c = sb_cancel_new(&err);

	(void)state;
	assert_ok(sb_check_alive(NULL, SB_NEVER, "copy", &err), &err);
	assert_ok(sb_check_alive(c, SB_NEVER, "copy", &err), &err);
	assert_fails(sb_check_alive(c, sb_now_ms(), "copy", &err), SB_E_TIMEOUT, &err);
	assert_string_equal(err.msg, "copy: deadline passed");
	sb_cancel_request(c);
	assert_fails(sb_check_alive(c, sb_now_ms(), "copy", &err), SB_E_CANCELED, &err);
	assert_string_equal(err.msg, "copy: canceled");
	assert_int_equal(sb_check_alive(c, SB_NEVER, "copy", NULL), SB_E_CANCELED);
	sb_cancel_free(c);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requested_stays_requested),
		cmocka_unit_test(null_is_never_requested),
		cmocka_unit_test(wakes_every_thread),
		cmocka_unit_test(may_be_requested_from_a_signal_handler),
		cmocka_unit_test(deadlines_count_down),
		cmocka_unit_test(check_alive_names_what_ended),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
