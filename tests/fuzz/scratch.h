/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_FUZZ_SCRATCH_H
#define SB_TESTS_FUZZ_SCRATCH_H

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/path.h>

#include "fuzz.h"

/* The directory of this process beneath $TMPDIR, once fuzz_scratch_make has made it. */
static char fuzz_scratch[256];
static int fuzz_scratch_fd = -1;

static inline void
fuzz_scratch_remove(void)
{
	char *name = strrchr(fuzz_scratch, '/');
	int parent;

	*name++ = '\0';
	parent = open(fuzz_scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(sb_path_remove_tree(parent, name, NULL) == 0);
	(void)close(parent);
}

/* Makes it at the first call, and has it removed when the process ends. True: this was the first.
 */
static inline bool
fuzz_scratch_make(void)
{
	const char *tmp = getenv("TMPDIR");

	if (fuzz_scratch_fd >= 0)
		return false;
	(void)snprintf(fuzz_scratch, sizeof fuzz_scratch, "%s/sb-fuzz-XXXXXX",
		tmp && *tmp ? tmp : "/tmp");
	FUZZ_CHECK(mkdtemp(fuzz_scratch));
	fuzz_scratch_fd = open(fuzz_scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(fuzz_scratch_fd >= 0 && atexit(fuzz_scratch_remove) == 0);
	return true;
}

#endif
