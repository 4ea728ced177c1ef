/* SPDX-License-Identifier: MIT */
/* The agent of an SSH sandbox that dies is started again by the next request. */
#include "config.h"

#include <provider/sshlink.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/str.h>
#include <host/runtime/proctree.h>

#include "tests/lib/tmpdir.h"

#define ROUNDS 40

static bool
kill_it(pid_t pid, int pidfd, void *arg)
{
	(void)pidfd;
	(void)arg;
	return kill(pid, SIGKILL) == 0;
}

/* Who answered is killed; the next request is answered all the same, whenever it comes. */
static void
a_dead_line_is_made_anew(void **state)
{
	struct tmpdir *t = *state;
	sb_autofree char *script = sb_str_printf("%s/rsh", t->path);
	sb_autofree char *rsh = sb_str_printf("rsh=%s", script);
	sb_autofree char *mark = sb_str_printf("test-sshlink/%d", (int)getpid());
	const char *options[] = { "host=here", rsh, NULL };
	struct sb_error err = { 0 };
	struct sb_sshlink *b;

	const char *build = getenv("SB_TOP_BUILDDIR");
	sb_autofree char *agent = sb_str_printf("%s/sbsync-agent", build ? build : ".");
	FILE *f;

	assert_non_null(rsh);
	f = fopen(script, "w");
	assert_non_null(f);
	/* Only what it starts has the mark. */
	assert_true(fprintf(f, "#!/bin/sh\nshift\n%s=%s\nexport %s\nexec sh -c \"$*\"\n",
			    SB_PROCTREE_MARK, mark, SB_PROCTREE_MARK) > 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(script, 0700), 0);
	assert_int_equal(setenv("HOME", t->path, 1), 0);
	assert_int_equal(setenv("SBSYNC_AGENT", agent, 1), 0);
	b = sb_sshlink_new(options, t->path, &err);
	assert_non_null(b);
	for (int i = 0; i < ROUNDS; i++) {
		struct sb_place place = { 0 };

		assert_fails(sb_sshlink_find(b, "sb-none", NULL, NULL, NULL, &place, &err),
			SB_E_SANDBOX_NOT_FOUND, &err);
		assert_true(sb_proctree_visit(mark, 0, kill_it, NULL) > 0);
		if (i % 4 == 3)
			(void)usleep(1000u * (unsigned)i);
	}
	sb_sshlink_unref(b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_dead_line_is_made_anew, tmpdir_setup,
			tmpdir_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
