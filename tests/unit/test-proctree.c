/* SPDX-License-Identifier: MIT */
/* Finding the processes that belong to a sandbox by the mark in their environment. */
#include "config.h"

#include <host/runtime/proctree.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lib/unit.h"

#define LOOKS 1500

static char *self;
static char mark[64];

/* This program with one argument; argument and mark make it what it is. */
static pid_t
start(const char *what, const char *its_mark)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		if (its_mark)
			(void)setenv(SB_PROCTREE_MARK, its_mark, 1);
		else
			(void)clearenv();
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		(void)execl(self, self, what, (char *)NULL);
		_exit(127);
	}
	return pid;
}

static void
end(pid_t pid)
{
	(void)kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* A process that does nothing but start programs has its mark at every moment. */
static void
seen_between_two_programs(void **state)
{
	pid_t pid = start("again", mark);
	size_t lost = 0;

	(void)state;
	/* Fork and exec come first. */
	for (int i = 0; i < 5000 && sb_proctree_signal(mark, 0, 0) == 0; i++)
		(void)usleep(1000);
	for (int i = 0; i < LOOKS; i++)
		lost += sb_proctree_signal(mark, 0, 0) != 1;
	end(pid);
	assert_int_equal(lost, 0);
}

/* What has no environment at all is nobody's, and looked at once. */
static void
nothing_is_no_mark(void **state)
{
	pid_t pid = start("wait", NULL);

	(void)state;
	(void)usleep(50000);
	for (int i = 0; i < 50; i++)
		assert_int_equal(sb_proctree_signal(mark, 0, 0), 0);
	end(pid);
}

/* A shell may put a mark behind everything else that it hands on. */
static void
a_mark_behind_a_long_environment_is_found(void **state)
{
	static char big[100000];
	pid_t pid;

	(void)state;
	memset(big, 'x', sizeof big - 1);
	(void)setenv("BIG", big, 1);
	pid = start("wait", mark);
	(void)unsetenv("BIG");
	for (int i = 0; i < 5000 && sb_proctree_signal(mark, 0, 0) == 0; i++)
		(void)usleep(1000);
	assert_int_equal(sb_proctree_signal(mark, 0, 0), 1);
	end(pid);
}

static void
marks_are_whole_parts(void **state)
{
	char longer[80], all[80];
	pid_t pid;

	(void)state;
	(void)snprintf(longer, sizeof longer, "%s2/p1", mark);
	(void)snprintf(all, sizeof all, "%s2/", mark);
	pid = start("wait", longer);
	for (int i = 0; i < 5000 && sb_proctree_signal(longer, 0, 0) == 0; i++)
		(void)usleep(1000);
	assert_int_equal(sb_proctree_signal(longer, 0, 0), 1);
	assert_int_equal(sb_proctree_signal(all, 0, 0), 1);
	assert_int_equal(sb_proctree_signal(mark, 0, 0), 0);
	assert_int_equal(sb_proctree_signal(all, 0, SIGKILL), 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(sb_proctree_signal(all, 0, 0), 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(seen_between_two_programs),
		cmocka_unit_test(nothing_is_no_mark),
		cmocka_unit_test(a_mark_behind_a_long_environment_is_found),
		cmocka_unit_test(marks_are_whole_parts),
	};

	self = realpath("/proc/self/exe", NULL);
	if (argc == 2 && argv[1][0] == 'a')
		(void)execl(self, self, argv[1], (char *)NULL);
	if (argc == 2)
		return pause();
	(void)snprintf(mark, sizeof mark, "test-proctree/%d", (int)getpid());
	return cmocka_run_group_tests(tests, NULL, NULL);
}
