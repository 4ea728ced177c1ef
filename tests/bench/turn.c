/* SPDX-License-Identifier: MIT */
/*
 * turn PORT KEY KNOWN-HOSTS NAME LOCAL REMOTE: a session that is open, over one connection that
 * stays. Starts the session (or goes on with it), prints a line; then, for each line on stdin,
 * syncs both ways and prints what that took as a line of JSON. What a daemon does that links the
 * library.
 */
#include "config.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <sbsync/conn.h>
#include <sbsync/session.h>

static double
wall(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double
cpu(void)
{
	struct rusage u;

	(void)getrusage(RUSAGE_SELF, &u);
	return (double)u.ru_utime.tv_sec + (double)u.ru_stime.tv_sec +
		(double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int
fail(const char *what, const struct sb_error *err)
{
	(void)fprintf(stderr, "turn: %s: %s\n", what, err->msg);
	return 1;
}

static int
open_session(const char *const *name_local_remote, const struct sb_sync_opts *o,
	struct sb_session *s, struct sb_error *err)
{
	struct sb_session_start how = SB_SESSION_START_INIT;
	struct sb_sync_result res = { 0 };
	int r = sb_session_load(NULL, name_local_remote[0], NULL, s, err);

	if (r == 0)
		r = sb_session_sync(s, SB_REASON_TURN, o, SB_SESSION_AS_STARTED, &res, err);
	else {
		how.name = name_local_remote[0];
		how.owner_pid = getpid();
		r = sb_session_start(name_local_remote[1], name_local_remote[2], &how, o,
			SB_SESSION_KEEP_BOTH, s, &res, err);
	}
	sb_sync_result_free(&res);
	return r;
}

static int
one_turn(struct sb_session *s, const struct sb_sync_opts *o, struct sb_error *err)
{
	struct sb_sync_result res = { 0 };
	double begin = wall(), used = cpu();
	struct rusage u;
	int r = sb_session_sync(s, SB_REASON_TURN, o, SB_SESSION_AS_STARTED, &res, err);

	begin = wall() - begin;
	used = cpu() - used;
	(void)getrusage(RUSAGE_SELF, &u);
	if (r == 0)
		(void)printf("{\"wall\": %.6f, \"cpu_local\": %.6f, \"rss_local_kib\": %ld, "
			     "\"round_trips\": %" PRIu64 ", \"files_synced\": %" PRIu64 "}\n",
			begin, used, u.ru_maxrss, res.round_trips, res.files_synced);
	(void)fflush(stdout);
	sb_sync_result_free(&res);
	return r;
}

int
main(int argc, char **argv)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	char line[64], *end;
	long port;
	int r;

	if (argc != 7 || (port = strtol(argv[1], &end, 10)) < 1 || *end) {
		(void)fprintf(stderr, "usage: turn PORT KEY KNOWN-HOSTS NAME LOCAL REMOTE\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	o.port = (int)port;
	o.identity = argv[2];
	o.known_hosts = argv[3];
	o.never_ask = true;
	o.conn = sb_conn_open(argv[6], &o, &err);
	if (!o.conn)
		return fail("connect", &err);
	r = open_session((const char *const *)argv + 4, &o, &s, &err);
	if (r < 0)
		return fail("start", &err);
	(void)printf("ready\n");
	(void)fflush(stdout);
	while (r == 0 && fgets(line, sizeof line, stdin))
		r = one_turn(&s, &o, &err);
	sb_conn_free(o.conn);
	sb_session_free(&s);
	return r < 0 ? fail("turn", &err) : 0;
}
