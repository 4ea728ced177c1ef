/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <bin/sbsync/sbsync.h>
#include <sbsync/session.h>

/* The verbs about sessions: recover, status, ls, conflicts, log, rm. */

struct recovery {
	const struct sync_args *a;
	json_t *rows;
};

static void
tell_recovery(const struct sb_session *s, const char *result, const struct sb_sync_result *res, const struct sb_error *err,
	void *arg)
{
	struct recovery *r = arg;
	bool failed = strcmp(result, "failed") == 0, done = strcmp(result, "done") == 0;

	if (r->rows) {
		json_array_append_new(r->rows, json_pack("{s:s, s:s, s:s?, s:I, s:I, s:I}", "session", s->name, "result", result, "error",
			failed ? err->msg : NULL, "files_synced", (json_int_t)res->files_synced, "files_deleted",
			(json_int_t)res->files_deleted, "conflicts", (json_int_t)res->conflicts.n));
		return;
	}
	if (failed)
		complain("%s: %s; it stays %s and is tried again", s->name, err->msg, sb_session_state_name(s->state));
	else if (done && !r->a->quiet)
		(void)printf("%s: synced back, %llu files, %llu deleted, %zu conflicts\n", s->name, (unsigned long long)res->files_synced,
			(unsigned long long)res->files_deleted, res->conflicts.n);
	else if (!done && r->a->verbose)
		(void)printf("%s: %s\n", s->name, result);
}

static int
run_recover(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct recovery r = { .a = a, .rows = a->json ? json_array() : NULL };
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_error err = { 0 };
	int n = sync_args_apply(a, &o);

	if (n)
		return n;
	if (!argc && !a->all) {
		complain("recover needs a session or --all; try 'sbsync recover --help'");
		return EXIT_USAGE;
	}
	o.log = stderr_log(a);
	n = sb_session_recover(argc ? argv[0] : NULL, a->now || argc, &o, tell_recovery, &r, &err);
	if (r.rows) {
		(void)json_dumpf(r.rows, stdout, JSON_COMPACT);
		(void)fputc('\n', stdout);
		json_decref(r.rows);
	}
	if (n < 0)
		complain("%s", err.msg);
	return n < 0 ? exit_code(n) : n > 0 ? EXIT_FAILED : EXIT_DONE;
}

static char *
when(int64_t t, char *out, size_t size)
{
	time_t tt = (time_t)t;
	struct tm tm;

	if (!t || !localtime_r(&tt, &tm) || !strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm))
		(void)snprintf(out, size, "never");
	return out;
}

static json_t *
session_json(const struct sb_session *s)
{
	json_t *pairs = json_array();

	for (size_t i = 0; i < s->n_pairs; i++)
		json_array_append_new(pairs, json_pack("{s:s, s:s}", "local", s->pairs[i].local, "remote", s->pairs[i].remote));
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:b, s:s?}", "name", s->name, "state", sb_session_state_name(s->state), "pairs",
		pairs, "created", (json_int_t)s->created, "last_sync", (json_int_t)s->last_sync, "owned", sb_session_owned(s), "last_error",
		s->last_error);
}

static int
print_json(json_t *j)
{
	(void)json_dumpf(j, stdout, JSON_COMPACT);
	(void)fputc('\n', stdout);
	json_decref(j);
	return EXIT_DONE;
}

static int
run_ls(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_list l = { 0 };
	struct sb_error err = { 0 };
	json_t *rows = a->json ? json_array() : NULL;
	int r = sb_session_load_all(NULL, &l, &err);

	(void)argc;
	(void)argv;
	if (r < 0) {
		complain("%s", err.msg);
		return exit_code(r);
	}
	for (size_t i = 0; i < l.n; i++) {
		char t[32], at[512];

		if (rows)
			json_array_append_new(rows, session_json(&l.v[i]));
		else
			(void)printf("%-20s %-9s %-19s %s -> %s\n", l.v[i].name, sb_session_state_name(l.v[i].state),
				when(l.v[i].last_sync, t, sizeof t),
				sb_escape(l.v[i].pairs[0].local, strlen(l.v[i].pairs[0].local), at, sizeof at), l.v[i].pairs[0].remote);
	}
	sb_session_list_free(&l);
	return rows ? print_json(rows) : EXIT_DONE;
}

static int
load(int argc, char **argv, struct sb_session *s)
{
	struct sb_error err = { 0 };
	int r = sb_session_load(NULL, argc ? argv[0] : NULL, NULL, s, &err);

	if (r < 0)
		complain("%s", err.msg);
	return r < 0 ? exit_code(r) : 0;
}

static int
run_status(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session s = { 0 };
	char t[32];
	int r = load(argc, argv, &s);

	if (r)
		return r;
	if (a->json) {
		r = print_json(session_json(&s));
	} else {
		(void)printf("session   %s\nstate     %s\nlast sync %s\n", s.name, sb_session_state_name(s.state),
			when(s.last_sync, t, sizeof t));
		(void)printf("owner     %s\n", !s.owner_pid ? "none" : sb_session_owned(&s) ? "alive" : "gone");
		for (size_t i = 0; i < s.n_pairs; i++)
			(void)printf("pair      %s -> %s\n", s.pairs[i].local, s.pairs[i].remote);
		if (s.last_error)
			(void)printf("error     %s\n", s.last_error);
	}
	sb_session_free(&s);
	return r;
}

static int
run_conflicts(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_sync_result res = { 0 };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	json_t *rows = a->json ? json_array() : NULL;
	int r = load(argc, argv, &s);

	if (r)
		return r;
	r = sb_session_conflicts(&s, &res.conflicts, &err);
	if (r < 0)
		complain("%s", err.msg);
	for (size_t i = 0; r == 0 && i < res.conflicts.n; i++) {
		const struct sb_sync_note *n = &res.conflicts.v[i];
		char path[4096], as[4096], t[32];
		struct stat st = { 0 };

		(void)lstat(n->saved_as, &st);
		sb_escape(n->path, strlen(n->path), path, sizeof path);
		sb_escape(n->saved_as, strlen(n->saved_as), as, sizeof as);
		if (rows)
			json_array_append_new(rows, json_pack("{s:s, s:s, s:I, s:I}", "path", path, "saved_as", as, "size",
				(json_int_t)st.st_size, "mtime", (json_int_t)st.st_mtime));
		else
			(void)printf("%s\n  the sandbox's version: %s (%lld bytes, %s)\n", path, as, (long long)st.st_size,
				when(st.st_mtime, t, sizeof t));
	}
	if (rows)
		(void)print_json(rows);
	sb_sync_result_free(&res);
	sb_session_free(&s);
	return r < 0 ? exit_code(r) : EXIT_DONE;
}

static int
run_log(void *values, int argc, char **argv)
{
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	char buf[8192];
	ssize_t n;
	int fd, r = load(argc, argv, &s);

	(void)values;
	if (r)
		return r;
	fd = sb_session_log_fd(&s, &err);
	if (fd < 0)
		complain("%s", err.msg);
	while (fd >= 0 && (n = read(fd, buf, sizeof buf)) > 0)
		(void)fwrite(buf, 1, (size_t)n, stdout);
	if (fd >= 0)
		(void)close(fd);
	sb_session_free(&s);
	return fd < 0 ? exit_code(fd) : EXIT_DONE;
}

static int
run_rm(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = load(argc, argv, &s);

	if (r)
		return r;
	if (a->discard && s.state != SB_SESSION_STOPPED && isatty(STDIN_FILENO)) {
		char answer[16] = "";

		(void)fprintf(stderr, "What changed in %s since the last sync stays only there. Forget session '%s'? [y/N] ",
			s.pairs[0].remote, s.name);
		if (!fgets(answer, sizeof answer, stdin) || (answer[0] != 'y' && answer[0] != 'Y')) {
			sb_session_free(&s);
			return EXIT_FAILED;
		}
	}
	r = sb_session_remove(&s, NULL, a->discard, &err);
	if (r < 0)
		complain("%s", err.msg);
	sb_session_free(&s);
	return exit_code(r);
}

const struct sb_cmd cmd_recover = {
	.name = "recover",
	.args = "[SESSION]",
	.help = "finish what a crash interrupted; for cron",
	.details = "Sessions whose owner is gone are synced back. Those that cannot be reached\nare tried again, less and less often, until they are.",
	.opts = recover_options,
	.min_args = 0,
	.max_args = 1,
	.run = run_recover,
};

const struct sb_cmd cmd_status = { .name = "status", .args = "[SESSION]", .help = "show a session", .opts = list_options,
	.min_args = 0, .max_args = 1, .run = run_status };
const struct sb_cmd cmd_ls = { .name = "ls", .args = "", .help = "list the sessions", .opts = list_options, .min_args = 0,
	.max_args = 0, .run = run_ls };
const struct sb_cmd cmd_conflicts = { .name = "conflicts", .args = "[SESSION]", .help = "list the versions kept aside",
	.opts = list_options, .min_args = 0, .max_args = 1, .run = run_conflicts };
const struct sb_cmd cmd_log = { .name = "log", .args = "[SESSION]", .help = "show what the session's syncs did",
	.opts = list_options, .min_args = 0, .max_args = 1, .run = run_log };
const struct sb_cmd cmd_rm = { .name = "rm", .args = "[SESSION]", .help = "forget a session", .opts = list_options,
	.min_args = 0, .max_args = 1, .run = run_rm };
