/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_UNIT_H
#define SB_TESTS_UNIT_H

/* cmocka wants these four before itself. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <sb/error.h>

/* The call must succeed; the error message is printed when it does not. */
#define assert_ok(call, err) \
	do { \
		int r_ = (call); \
		if (r_ < 0) \
			fail_msg("%s: %s (%d)", #call, (err)->msg, r_); \
	} while (0)

/* The call must fail with `want`; prints what it did instead. */
#define assert_fails(call, want, err) \
	do { \
		int r_ = (call); \
		if (r_ != (want)) \
			fail_msg("%s: got %d (%s), want %d", #call, r_, (err)->msg, (int)(want)); \
	} while (0)

/*
 * Ends the test as skipped with a reason, which a bare skip() does not have: what is missing here.
 */
#define skip_because(...) \
	do { \
		print_message("# skip: " __VA_ARGS__); \
		print_message("\n"); \
		skip(); \
	} while (0)

#endif
