/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_FUZZ_SCRATCH_H
#define SB_TESTS_FUZZ_SCRATCH_H

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/path.h>

#include "fuzz.h"

static char fuzz_scratch_name[512];

static void
fuzz_scratch_remove(void)
{
	char *slash = strrchr(fuzz_scratch_name, '/');
	int parent;

	*slash = '\0';
	parent = open(fuzz_scratch_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)sb_path_remove_tree(parent, slash + 1, NULL);
	(void)close(parent);
}

/*
 * A directory of this program's own, made by the first call and removed at its end. What inputs
 * leave in it stays until then.
 */
static int
fuzz_scratch(void)
{
	static int made = -1;
	const char *tmp = getenv("TMPDIR");

	if (made >= 0)
		return made;
	(void)snprintf(fuzz_scratch_name, sizeof fuzz_scratch_name, "%s/sb-fuzz-XXXXXX",
		tmp && *tmp ? tmp : "/tmp");
	FUZZ_CHECK(mkdtemp(fuzz_scratch_name) != NULL && atexit(fuzz_scratch_remove) == 0);
	made = open(fuzz_scratch_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(made >= 0);
	return made;
}

#endif
