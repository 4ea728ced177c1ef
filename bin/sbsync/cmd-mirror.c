/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>

#include <bin/sbsync/sbsync.h>

static void
to_stderr(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)arg;
	(void)fprintf(stderr, "sbsync: %s%s: %s\n", level == SB_LOG_WARN ? "warning: " : "",
		component, text);
}

struct sb_log
stderr_log(const struct sync_args *a)
{
	struct sb_log l = { .fn = to_stderr,
		.level = a->quiet      ? SB_LOG_ERROR :
			a->verbose > 1 ? SB_LOG_DEBUG :
			a->verbose     ? SB_LOG_INFO :
					 SB_LOG_WARN };

	return l;
}

int
run_sync_mirror(struct sync_args *a, char **argv)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	struct progress *p;
	int r = sync_args_apply(a, &o);

	if (r == 0) {
		o.log = stderr_log(a);
		p = progress_new(a, &o);
		r = sb_sync_mirror(argv[0], argv[1], &o, &res, &err);
		progress_end(p);
		r = report(a, r, &err, &res);
		sb_sync_result_free(&res);
	}
	free((void *)o.exclude);
	free((void *)o.exclude_from);
	return r;
}

int
run_mirror(void *values, int argc, char **argv)
{
	(void)argc;
	return run_sync_mirror(values, argv);
}
