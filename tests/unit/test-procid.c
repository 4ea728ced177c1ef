/* SPDX-License-Identifier: MIT */
/* Processes named so that nobody else can be meant. */
#include "config.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/procid.h>

#include "tests/lib/unit.h"

/* A child that waits for a signal, with a name that looks like the fields behind it. */
static pid_t
child(void)
{
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)prctl(PR_SET_NAME, "a) Z 1 (b");
		(void)!write(ready[1], "x", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	(void)close(ready[0]);
	(void)close(ready[1]);
	return pid;
}

static void
a_start_is_field_22(void **state)
{
	FILE *f = fopen("/proc/self/stat", "re");
	long long want = -1;

	(void)state;
	assert_non_null(f);
	/* Our own name has neither spaces nor parentheses. */
	assert_int_equal(fscanf(f,
				 "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
				 "%*d %*d %*d %*d %*d %lld",
				 &want),
		1);
	(void)fclose(f);
	assert_true(want > 0);
	assert_int_equal(sb_procid_start(getpid()), want);
}

static void
who_has_ended_is_not_there(void **state)
{
	pid_t pid = child();
	siginfo_t si;

	(void)state;
	assert_true(sb_procid_start(pid) >= sb_procid_start(getpid()));
	assert_int_equal(kill(pid, SIGKILL), 0);
	/* Ended, not reaped. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(sb_procid_start(pid), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(sb_procid_start(pid), 0);
	assert_int_equal(sb_procid_start(0), 0);
	assert_int_equal(sb_procid_start(-1), 0);
}

static void
a_boot_has_a_name(void **state)
{
	char a[SB_PROCID_BOOT_SIZE], b[SB_PROCID_BOOT_SIZE];

	(void)state;
	assert_int_equal(strlen(sb_procid_boot(a)), 36);
	assert_string_equal(sb_procid_boot(b), a);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_start_is_field_22),
		cmocka_unit_test(who_has_ended_is_not_there),
		cmocka_unit_test(a_boot_has_a_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
