/* SPDX-License-Identifier: MIT */
/*
 * bench-roundtrips ENDPOINT KEY KNOWN_HOSTS SOURCE STATE
 * Times the steps whose cost is round trips; roundtrips.sh runs it over links of 0 and 200 ms.
 * Prints "STEP MILLISECONDS ANSWERS", where ANSWERS is how often the protocol waited for the agent
 * (what sb_sync_result calls round_trips).
 */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <sbsync/conn.h>
#include <sbsync/sync.h>

static int64_t begun;

static void
step(const char *name, long answers)
{
	(void)printf("%s %lld %ld\n", name, (long long)(sb_now_ms() - begun), answers);
}

static int
give_up(const char *what, const struct sb_error *err)
{
	(void)fprintf(stderr, "%s: %s\n", what, err->msg);
	return 1;
}

static int
push(const char *name, char **argv, const struct sb_sync_opts *o)
{
	struct sb_sync_result res;
	struct sb_error err = { 0 };
	int r;

	begun = sb_now_ms();
	r = sb_sync_mirror(argv[4], argv[1], o, &res, &err);
	step(name, (long)res.round_trips);
	sb_sync_result_free(&res);
	return r < 0 ? give_up(name, &err) : 0;
}

static int
run_true(struct sb_conn *c)
{
	struct sb_error err = { 0 };
	struct sb_conn_exit e;
	struct sb_conn_exec *x;
	int r;

	begun = sb_now_ms();
	x = sb_conn_exec(c, "true", NULL, &err);
	r = x ? sb_conn_exec_wait(x, sb_deadline_in(60000), &e, &err) : err.code;
	step("command", 0);
	sb_conn_exec_free(x);
	return r < 0 ? give_up("command", &err) : 0;
}

static int
edit(char **argv, const char *text)
{
	sb_autofree char *path = sb_str_printf("%s/edited", argv[4]);
	struct sb_error err = { 0 };

	return path && sb_file_replace(AT_FDCWD, path, text, strlen(text), 0644, &err) == 0 ?
		0 :
		give_up("edit", &err);
}

int
main(int argc, char **argv)
{
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_conn *c;
	int r;

	if (argc != 6) {
		(void)fprintf(stderr,
			"usage: bench-roundtrips ENDPOINT KEY KNOWN_HOSTS SOURCE STATE\n");
		return 2;
	}
	(void)signal(SIGPIPE, SIG_IGN);
	o.identity = argv[2];
	o.known_hosts = argv[3];
	o.state_dir = argv[5];
	o.ssh_config = "/dev/null";
	o.never_ask = true;
	r = edit(argv, "first\n");
	if (r == 0)
		r = push("first-push-alone", argv, &o);
	if (r == 0)
		r = push("no-op-alone", argv, &o);
	begun = sb_now_ms();
	c = r == 0 ? sb_conn_open(argv[1], &o, &err) : NULL;
	if (!c)
		return give_up("connect", &err);
	step("connect", 0);
	r = run_true(c);
	o.conn = c;
	if (r == 0)
		r = push("live-agent-start", argv, &o);
	if (r == 0)
		r = push("live-no-op", argv, &o);
	if (r == 0)
		r = edit(argv, "second\n");
	if (r == 0)
		r = push("live-edit", argv, &o);
	sb_conn_free(c);
	return r;
}
