/* SPDX-License-Identifier: MIT */
/* One sync, of a mirror or of a session, from its options to its report. */
#include "config.h"

#include <bin/sbsync/sbsync.h>

int
sync_once_mirror(struct sync_args *a, char **argv)
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
	sync_opts_free(&o);
	return r;
}

/* What would not take effect is refused. */
static int
check_rules(const struct sync_args *a, enum sb_session_reason reason)
{
	if (a->gitignore) {
		complain("--gitignore counts at the start of a session; sbsync ignore add PATTERN "
			 "changes the rules of this one");
		return EXIT_USAGE;
	}
	if (reason == SB_REASON_STOP && (a->exclude.n || a->exclude_from.n)) {
		complain("a stop brings everything back before the session closes: sbsync ignore "
			 "add PATTERN leaves something out for good");
		return EXIT_USAGE;
	}
	return 0;
}

int
sync_once_session(struct sync_args *a, int argc, char **argv, enum sb_session_reason reason)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	struct progress *p;
	int r = sync_args_apply(a, &o);

	if (r == 0)
		r = check_rules(a, reason);
	if (r)
		return r;
	o.log = stderr_log(a);
	res.reason = "turn";
	r = sb_session_load(o.state_dir, argc ? argv[0] : NULL, NULL, &s, &err);
	if (r == 0) {
		p = progress_new(a, &o);
		r = sb_session_sync(&s, reason, &o, (enum sb_session_conflict)a->conflict, &res,
			&err);
		progress_end(p);
	}
	r = report(a, r, &err, &res);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	sync_opts_free(&o);
	return r;
}
