/* SPDX-License-Identifier: MIT */
/* One sync, of a mirror or of a session, from its options to its report. */
#include "config.h"

#include <string.h>

#include <bin/common/progress.h>
#include <bin/sbsync/sbsync.h>

/* Does it name another machine? */
static bool
is_far(const char *endpoint)
{
	return strncmp(endpoint, "ssh://", 6) == 0 ||
		strcspn(endpoint, ":") < strcspn(endpoint, "/");
}

int
sync_once_mirror(struct sync_args *a, char **argv)
{
	bool far = is_far(argv[0]);
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	int r = sync_args_apply(a, &o);

	if (r == 0) {
		o.log = stderr_log(a);
		sync_args_progress(a, &o);
		r = sb_sync_mirror(argv[0], argv[1], &o, &res, &err);
		progress_end();
		r = report(a, r, &err, &res);
		if (a->content && res.n_changes)
			diff_content(far ? argv[1] : argv[0], far ? argv[0] : argv[1], &o, &res);
		sb_sync_result_free(&res);
	}
	return r;
}

/* The way that the session was started with, where the options say nothing else. */
static void
use_route(const struct sb_session *s, struct sb_sync_opts *o)
{
	o->port = o->port ? o->port : (int)s->port;
	o->identity = o->identity ? o->identity : s->identity_file;
	o->ssh_config = o->ssh_config ? o->ssh_config : s->ssh_config;
	o->known_hosts = o->known_hosts ? o->known_hosts : s->known_hosts;
	o->rsh = o->rsh ? o->rsh : s->rsh;
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
	int r = sync_args_apply(a, &o);

	if (r == 0)
		r = check_rules(a, reason);
	if (r)
		return r;
	o.log = stderr_log(a);
	res.reason = "turn";
	r = sb_session_load(o.state_dir, argc ? argv[0] : NULL, NULL, &s, &err);
	if (r == 0 && reason == SB_REASON_STOP && !a->dry_run) {
		int code = end_watcher(&s, a->quiet || a->json);

		if (code) {
			sb_session_free(&s);
			return code;
		}
	}
	if (r == 0) {
		sync_args_progress(a, &o);
		r = sb_session_sync(&s, reason, &o, (enum sb_session_conflict)a->conflict, &res,
			&err);
		progress_end();
	}
	a->session = a->dry_run ? NULL : s.name;
	r = report(a, r, &err, &res);
	if (a->content && res.n_changes && s.n_pairs == 1) {
		use_route(&s, &o);
		diff_content(s.pairs[0].local, s.pairs[0].remote, &o, &res);
	} else if (a->content && res.n_changes) {
		complain("--content shows sessions of one pair of directories; this has %zu",
			s.n_pairs);
	}
	sb_sync_result_free(&res);
	sb_session_free(&s);
	return r;
}
