/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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

static char *
when(int64_t t, char *out, size_t size)
{
	time_t tt = (time_t)t;
	struct tm tm;

	if (!t || !localtime_r(&tt, &tm) || !strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm))
		(void)snprintf(out, size, "never");
	return out;
}

/* One line, or one object, for each session. */
static void
tell_recovery(const struct sb_session *s, const char *result, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg)
{
	struct recovery *r = arg;
	bool failed = strcmp(result, "failed") == 0, done = strcmp(result, "done") == 0,
	     nothing = strcmp(result, "nothing") == 0;
	char t[32];

	if (r->rows) {
		json_array_append_new(r->rows,
			json_pack("{s:s?, s:s, s:s?, s:s?, s:I, s:I, s:I, s:I}", "session",
				s ? s->name : NULL, "result", result, "state",
				s ? sb_session_state_name(s->state) : NULL, "error",
				failed ? err->msg : NULL, "files_synced",
				(json_int_t)res->files_synced, "files_deleted",
				(json_int_t)res->files_deleted, "conflicts",
				(json_int_t)res->conflicts.n, "next_try",
				(json_int_t)(s ? s->next_try : 0)));
		return;
	}
	if (!s)
		complain("%s", err->msg);
	else if (failed)
		complain("%s: %s; it stays %s, next try at %s", s->name, err->msg,
			sb_session_state_name(s->state), when(s->next_try, t, sizeof t));
	else if (r->a->quiet)
		return;
	else if (done)
		(void)printf("%s: synced back, %llu files, %llu deleted, %zu conflicts\n", s->name,
			(unsigned long long)res->files_synced,
			(unsigned long long)res->files_deleted, res->conflicts.n);
	else if (strcmp(result, "later") == 0)
		(void)printf("%s: %s, next try at %s: %s\n", s->name,
			sb_session_state_name(s->state), when(s->next_try, t, sizeof t),
			s->last_error ? s->last_error : "");
	else if (!nothing || r->a->verbose)
		(void)printf("%s: %s\n", s->name, result);
}

int
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
	/* A timer need not hear that the run before it is still at work. */
	if (n < 0 && !(n == SB_E_LOCKED && a->quiet))
		complain("%s", err.msg);
	return n < 0 ? exit_code(n) : n > 0 ? EXIT_FAILED : EXIT_DONE;
}

static json_t *
session_json(const struct sb_session *s)
{
	json_t *pairs = json_array();

	for (size_t i = 0; i < s->n_pairs; i++)
		json_array_append_new(pairs,
			json_pack("{s:s, s:s}", "local", s->pairs[i].local, "remote",
				s->pairs[i].remote));
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:b, s:I, s:s, s:I, s:I, s:s?}", "name",
		s->name, "state", sb_session_state_name(s->state), "pairs", pairs, "created",
		(json_int_t)s->created, "last_sync", (json_int_t)s->last_sync, "owned",
		sb_session_owned(s), "heartbeat", (json_int_t)s->heartbeat, "conflict",
		sb_session_conflict_name(s->conflict), "failures", (json_int_t)s->failures,
		"next_try", (json_int_t)s->next_try, "last_error", s->last_error);
}

static int
print_json(json_t *j)
{
	(void)json_dumpf(j, stdout, JSON_COMPACT);
	(void)fputc('\n', stdout);
	json_decref(j);
	return EXIT_DONE;
}

int
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
			(void)printf("%-20s %-9s %-19s %s -> %s\n", l.v[i].name,
				sb_session_state_name(l.v[i].state),
				when(l.v[i].last_sync, t, sizeof t),
				sb_escape(l.v[i].pairs[0].local, strlen(l.v[i].pairs[0].local), at,
					sizeof at),
				l.v[i].pairs[0].remote);
	}
	for (size_t i = 0; i < l.n_bad; i++)
		complain("%s", l.bad[i]);
	r = l.n_bad ? EXIT_FAILED : EXIT_DONE;
	sb_session_list_free(&l);
	if (rows)
		(void)print_json(rows);
	return r;
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

int
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
		(void)printf("session   %s\nstate     %s\nlast sync %s\n", s.name,
			sb_session_state_name(s.state), when(s.last_sync, t, sizeof t));
		(void)printf("owner     %s\n",
			!s.owner_pid                 ? "none" :
				sb_session_owned(&s) ? "alive" :
						       "gone");
		for (size_t i = 0; i < s.n_pairs; i++)
			(void)printf("pair      %s -> %s\n", s.pairs[i].local, s.pairs[i].remote);
		if (s.last_error)
			(void)printf("error     %s\n", s.last_error);
	}
	sb_session_free(&s);
	return r;
}

int
run_conflicts(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session_saved_list l = { 0 };
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	json_t *rows = a->json ? json_array() : NULL;
	int r = load(argc, argv, &s);

	if (r)
		return r;
	r = sb_session_conflicts(&s, NULL, &l, &err);
	if (r < 0)
		complain("%s", err.msg);
	for (size_t i = 0; i < l.n; i++) {
		const struct sb_session_saved *c = &l.v[i];
		char root[4096], path[4096], as[4096], t[32];

		sb_escape(c->root, strlen(c->root), root, sizeof root);
		sb_escape(c->path, strlen(c->path), path, sizeof path);
		sb_escape(c->saved_as, strlen(c->saved_as), as, sizeof as);
		if (rows)
			json_array_append_new(rows,
				json_pack("{s:s, s:s, s:s, s:I, s:I, s:s}", "root", root, "path",
					path, "saved_as", as, "size", (json_int_t)c->size, "time",
					(json_int_t)c->when, "why", c->why));
		else
			(void)printf("%s/%s: %s, %s\n  the other version: %s (%llu bytes)\n", root,
				path, when(c->when, t, sizeof t), c->why, as,
				(unsigned long long)c->size);
	}
	if (rows)
		(void)print_json(rows);
	sb_session_saved_free(&l);
	sb_session_free(&s);
	return r < 0 ? exit_code(r) : EXIT_DONE;
}

int
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

#define LOST_SHOWN 10

/* What only the sandbox has: found out there, if it can be reached. */
static void
tell_loss(struct sb_session *s)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_sync_result res = { 0 };
	struct sb_error err = { 0 };
	char t[32], path[4096];

	o.dry_run = true;
	o.max_delete = INT64_MAX;
	o.cancel = signals_cancel();
	if (sb_session_sync(s, SB_REASON_STOP, &o, SB_SESSION_AS_STARTED, &res, &err) < 0) {
		(void)fprintf(stderr,
			"%s cannot be asked what it has: %s\nWhatever changed there since %s stays "
			"only there.\n",
			s->pairs[0].remote, err.msg, when(s->last_sync, t, sizeof t));
	} else if (!res.n_changes && !res.conflicts.n) {
		(void)fprintf(stderr, "Nothing changed in %s since the last sync.\n",
			s->pairs[0].remote);
	} else {
		(void)fprintf(stderr,
			"%zu changes in %s were not synced back and stay only there:\n",
			res.n_changes, s->pairs[0].remote);
		for (size_t i = 0; i < res.n_changes && i < LOST_SHOWN; i++)
			(void)fprintf(stderr, "  %-7s %s\n", res.changes[i].what,
				sb_escape(res.changes[i].path, strlen(res.changes[i].path), path,
					sizeof path));
		if (res.n_changes > LOST_SHOWN)
			(void)fprintf(stderr, "  and %zu more ('sbsync diff %s' lists them)\n",
				res.n_changes - LOST_SHOWN, s->name);
	}
	sb_sync_result_free(&res);
}

/* Is it meant? */
static bool
ask_discard(struct sb_session *s)
{
	char answer[16] = "";

	tell_loss(s);
	if (!isatty(STDIN_FILENO)) {
		complain("nobody is there to ask: 'sbsync rm --discard --yes %s' forgets the "
			 "session",
			s->name);
		return false;
	}
	(void)fprintf(stderr, "Forget session '%s'? [y/N] ", s->name);
	return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

int
run_rm(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = load(argc, argv, &s);

	if (r)
		return r;
	if (a->discard && s.state != SB_SESSION_STOPPED && !a->yes && !ask_discard(&s)) {
		sb_session_free(&s);
		return EXIT_FAILED;
	}
	r = sb_session_remove(&s, NULL, a->discard, &err);
	if (r < 0)
		complain("%s", err.msg);
	sb_session_free(&s);
	return exit_code(r);
}
