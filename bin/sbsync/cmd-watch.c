/* SPDX-License-Identifier: MIT */
/* sbsync watch: both ways, whenever something changes. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bin/common/progress.h>
#include <bin/sbsync/options.h>

struct watching {
	const struct sync_args *a;
	bool conflicts;
	size_t errors; /* in the sync before */
};

/*
 * Prints a line when a sync did something; none when it did nothing, and none again for files that
 * still cannot be synced.
 */
static void
on_sync(const struct sb_session *s, int code, const struct sb_sync_result *res,
	const struct sb_error *err, void *arg)
{
	struct watching *w = arg;
	struct sync_args quiet = *w->a;
	bool news = res->errors.n != w->errors;

	progress_hide();
	quiet.session = s->name;
	if (code < 0)
		return;
	w->errors = res->errors.n;
	if (!news && !res->files_synced && !res->files_deleted && !res->files_moved &&
		!res->conflicts.n)
		return;
	w->conflicts = w->conflicts || res->conflicts.n;
	(void)report(&quiet, code, err, res);
	(void)fflush(stdout);
}

/* What the process in the background said before it ended. */
static void
tell_end(int log)
{
	char text[4096];
	ssize_t n = pread(log, text, sizeof text - 1, 0);

	while (n > 0 && text[n - 1] == '\n')
		n--;
	text[n > 0 ? n : 0] = '\0';
	(void)fprintf(stderr, "%s\n", n > 0 ? text : "sbsync: the watch ended at once");
}

/*
 * Goes on in a process of its own, without terminal. In the caller it returns its exit code, in the
 * new process -1.
 */
static int
detach(const struct sync_args *a, const struct sb_session *s)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	struct sb_error err = { 0 };
	int64_t other = sb_session_watcher(s, NULL);
	int log = other ? -1 : sb_session_watch_log_fd(s, NULL, &err), null, status;
	pid_t pid;

	if (other) {
		complain("process %lld watches session '%s' already; 'sbsync stop %s' or "
			 "'sbsync pause %s' ends it",
			(long long)other, s->name, s->name, s->name);
		return EXIT_LOCKED;
	}
	if (log < 0) {
		complain("%s", err.msg);
		return exit_code(log);
	}
	pid = fork();
	if (pid == 0) {
		(void)setsid();
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		if (dup2(null, STDIN_FILENO) < 0 || dup2(log, STDOUT_FILENO) < 0 ||
			dup2(log, STDERR_FILENO) < 0)
			_exit(EXIT_FAILED);
		(void)close(log);
		return -1;
	}
	while (pid > 0 && sb_session_watcher(s, NULL) != pid) {
		if (waitpid(pid, &status, WNOHANG) == pid) {
			tell_end(log);
			(void)close(log);
			return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_FAILED;
		}
		(void)nanosleep(&nap, NULL);
	}
	(void)close(log);
	if (pid < 0) {
		complain("no process could be started");
		return EXIT_FAILED;
	}
	if (!a->quiet)
		(void)printf("process %lld watches session %s; 'sbsync stop %s' ends both, 'sbsync "
			     "pause %s' the watch\n",
			(long long)pid, s->name, s->name, s->name);
	return EXIT_DONE;
}

static int
watch_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct watching w = { .a = a };
	struct sb_session_watch how = SB_SESSION_WATCH_INIT;
	struct sb_sync_opts o = SB_SYNC_OPTS_INIT;
	struct sb_session s = { 0 };
	struct sb_error err = { 0 };
	int r = sync_args_apply(a, &o);

	if (r == 0 && a->gitignore) {
		complain("--gitignore counts at the start of a session; sbsync ignore add PATTERN "
			 "changes the rules of this one");
		r = EXIT_USAGE;
	}
	if (r)
		return r;
	o.log = stderr_log(a);
	how.every_ms = a->every > 0 ? a->every : how.every_ms;
	how.on_sync = on_sync;
	how.arg = &w;
	r = sb_session_load(o.state_dir, argc ? argv[0] : NULL, NULL, &s, &err);
	if (r == 0 && a->detach) {
		int code = detach(a, &s);

		if (code >= 0) {
			sb_session_free(&s);
			return code;
		}
		o.never_ask = true;
	}
	if (r == 0 && !a->quiet)
		(void)fprintf(stderr, "sbsync: watching session %s; Ctrl-C ends it\n", s.name);
	sync_args_progress(a, &o);
	if (r == 0)
		r = sb_session_watch(&s, &how, &o, (enum sb_session_conflict)a->conflict, &err);
	progress_end();
	if (r < 0)
		complain("%s", err.msg);
	else if (!a->quiet)
		(void)fprintf(stderr, "sbsync: no longer watching; session %s stays open\n",
			s.name);
	sb_session_free(&s);
	return r < 0 ? exit_code(r) : w.conflicts ? EXIT_CONFLICTS : EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPT_TIME(0, "every", every, "TIME", 0, 0,
		"sync this often even if nothing seems to change (default 60s)"),
	OPT_FLAG('d', "detach", detach, "go on in the background, until stop or pause"),
	OPTIONS_CONFLICT,
	OPTIONS_SYNC,
	OPT_END,
};

const struct sb_cmd cmd_watch = {
	.name = "watch",
	.args = "[SESSION]",
	.help = "sync both ways whenever something changes, until Ctrl-C",
	.details = "SESSION may be left out inside the local directory.",
	.opts = options,
	.max_args = 1,
	.run = watch_verb,
};
