/* SPDX-License-Identifier: MIT */
/*
 * Turns of a session with sync mode turn-bidirectional while its command runs: whoever works in the
 * sandbox asks for one by running $SB_TURN there; silence of the command, and the end of each tool
 * that somebody calls in the sandbox, count as one if the user wants that.
 */
#include "config.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <bin/sbctl/ctl.h>
#include <sb/env.h>

#define START_MS 20000
#define GRACE_MS 50
#define RETRY_MS 1000
#define PAUSE_MS 200 /* between two turns: a sandbox cannot keep us busy with them */
#define LINE_MAX_BYTES 4096

/*
 * Runs in the sandbox with nothing but a shell. Prints the name of a program that asks for a turn
 * and waits for its end; then a line for each that is asked for, and takes a line as answer.
 */
static const char helper[] =
	"umask 077; d=$(mktemp -d \"${TMPDIR:-/tmp}/sb-turn.XXXXXX\") || exit 1\n"
	"trap 'rm -rf \"$d\"' EXIT; trap 'exit 0' HUP INT TERM\n"
	"mkfifo \"$d/ask\" || exit 1\n"
	"cat >\"$d/turn\" <<'END'\n"
	"#!/bin/sh\n"
	"# Syncs both ways with the directory of the user, and waits until that is done.\n"
	"d=${0%/*}; a=$d/a.$$\n"
	"mkfifo \"$a\" || exit 1\n"
	"echo \"$$\" >\"$d/ask\"; read -r line <\"$a\"; rm -f \"$a\"\n"
	"case $line in ok*) printf '%s\\n' \"${line#ok }\"; exit 0 ;; esac\n"
	"printf '%s\\n' \"$line\" >&2; exit 1\n"
	"END\n"
	"chmod 700 \"$d/turn\"; exec 3<>\"$d/ask\"; printf '%s\\n' \"$d/turn\"\n"
	"while read -r who <&3; do\n"
	"	case $who in ''|*[!0-9]*) continue ;; esac\n"
	"	[ -p \"$d/a.$who\" ] || continue\n"
	"	echo turn; read -r line || exit 0\n"
	"	printf '%s\\n' \"$line\" >\"$d/a.$who\" &\n"
	"done\n";

struct ctl_turns {
	struct ctl *ctl;
	struct sb_sandbox *sb;
	struct sb_handle *h; /* of the helper; NULL: the sandbox cannot run it */
	char *program;       /* in the sandbox */
	struct sb_cancel *cancel;
	pthread_t thread;
	bool running;
	int quit;
	struct sb_env_host *host; /* with --turn-tools; else NULL, as the next */
	struct sb_env *env;
	pthread_t listener;
	bool listening;
	int tools;             /* an eventfd: so many tools have ended since it was read */
	int64_t idle_ms;       /* 0: silence means nothing */
	_Atomic int64_t heard; /* when the command said something last; 0: not since a turn */
};

/* One line of the helper. False: it has ended, or the time is over. */
static bool
read_line(int fd, char *line, size_t size, sb_deadline d)
{
	for (size_t n = 0; n + 1 < size;) {
		struct pollfd p = { .fd = fd, .events = POLLIN };

		if (poll(&p, 1, sb_deadline_poll_ms(d)) <= 0 || read(fd, line + n, 1) != 1)
			return false;
		if (line[n] == '\n') {
			line[n] = '\0';
			return true;
		}
		n++;
	}
	return false;
}

static void
turn(struct ctl_turns *t, bool answer)
{
	sb_auto(sb_sync_result) struct sb_sync_result res = { 0 };
	struct sb_call call = t->ctl->call;
	struct sb_error err = { 0 };
	char line[200];
	int r;

	call.cancel = t->cancel;
	call.deadline = SB_NEVER;
	call.progress = NULL;
	r = sb_sandbox_turn(t->sb, &call, &res, &err);
	if (r < 0 && !t->ctl->a.quiet)
		(void)fprintf(stderr, "sbctl: turn: %s\n", err.msg);
	/* What went wrong here is nothing for the sandbox to know. */
	if (r < 0)
		(void)snprintf(line, sizeof line, "the sync failed\n");
	else
		(void)snprintf(line, sizeof line, "ok %llu files synced, %zu conflicts\n",
			(unsigned long long)res.files_synced, res.conflicts.n);
	if (answer)
		(void)sb_file_write_nosig(sb_handle_stdin(t->h), line, strlen(line));
}

/* How long until silence has lasted long enough; -1: it does not count. */
static int
until_idle(struct ctl_turns *t)
{
	int64_t heard = atomic_load(&t->heard), left;

	if (!t->idle_ms || !heard)
		return t->idle_ms ? 500 : -1;
	left = heard + t->idle_ms - sb_now_ms();
	return left > 500 ? 500 : left > 0 ? (int)left : 0;
}

/* Hears of each tool call that ends, on a thread of its own. */
static bool
on_event(const char *kind, const char *subject, void *arg)
{
	struct ctl_turns *t = arg;

	(void)subject;
	if (strcmp(kind, "tool.done") == 0)
		(void)eventfd_write(t->tools, 1);
	return true;
}

static void *
listen_tools(void *arg)
{
	struct ctl_turns *t = arg;
	const struct sb_host_call call = { .cancel = t->cancel, .deadline = SB_NEVER };
	struct sb_error err = { 0 };

	/* A stream that breaks off is begun anew; what ended meanwhile may have been missed. */
	while (!sb_cancel_requested(t->cancel)) {
		struct pollfd p = { .fd = t->quit, .events = POLLIN };
		int r = sb_env_events(t->env, "tool.done", &call, on_event, t, &err);

		if (sb_cancel_requested(t->cancel))
			break;
		(void)fprintf(stderr, "sbctl: warning: --turn-tools: %s\n",
			r < 0 ? err.msg : "the host ended the stream of events");
		if (poll(&p, 1, RETRY_MS) > 0)
			break;
		(void)eventfd_write(t->tools, 1);
	}
	return NULL;
}

static void *
serve(void *arg)
{
	struct ctl_turns *t = arg;
	int out = t->h ? sb_handle_stdout(t->h) : -1;

	for (;;) {
		struct pollfd p[3] = { { t->quit, POLLIN, 0 }, { out, POLLIN, 0 },
			{ t->tools, POLLIN, 0 } };
		eventfd_t ended;
		char line[16];
		int n = poll(p, 3, until_idle(t));

		if (p[0].revents || sb_cancel_requested(t->cancel))
			break;
		if (n > 0 && p[1].revents) {
			if (!read_line(out, line, sizeof line, sb_deadline_in(START_MS)))
				out = -1;
			else
				turn(t, true);
		} else if (n > 0 && p[2].revents) {
			/* Those that end while it runs make the next one. */
			(void)eventfd_read(t->tools, &ended);
			turn(t, false);
		} else if (t->idle_ms && until_idle(t) == 0) {
			atomic_store(&t->heard, 0);
			turn(t, false);
		} else {
			continue;
		}
		p[0].revents = 0;
		(void)poll(p, 1, PAUSE_MS);
	}
	return NULL;
}

/* Starts the helper. Failure leaves h NULL: turns can still be asked for from outside. */
static void
start_helper(struct ctl_turns *t)
{
	const char *argv[] = { "sh", "-c", helper, NULL };
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_error err = { 0 };
	char line[LINE_MAX_BYTES];

	spec.argv = argv;
	spec.stop_grace_ms = GRACE_MS;
	if (sb_sandbox_launch(t->sb, &spec, &t->ctl->call, &t->h, &err) == 0 &&
		read_line(sb_handle_stdout(t->h), line, sizeof line, sb_deadline_in(START_MS)) &&
		line[0] == '/')
		t->program = strdup(line);
	if (!t->program) {
		(void)fprintf(stderr,
			"sbctl: warning: nobody in the sandbox can ask for a turn: %s\n",
			err.msg[0] ? err.msg : "it has no mktemp or mkfifo");
		sb_handle_free(t->h);
		t->h = NULL;
	}
}

struct ctl_turns *
ctl_turns_begin(struct ctl *ctl, struct sb_sandbox *sb, struct sb_error *err)
{
	struct ctl_turns *t;

	if (sb_sandbox_state(sb)->sync_mode != SB_SYNC_MODE_TURN)
		return NULL;
	t = calloc(1, sizeof *t);
	if (!t)
		return NULL;
	t->ctl = ctl;
	t->sb = sb;
	t->idle_ms = ctl->a.turn_idle;
	t->cancel = sb_cancel_new(err);
	t->quit = eventfd(0, EFD_CLOEXEC);
	t->tools = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	start_helper(t);
	if (ctl->a.turn_tools) {
		sb_autofree char *dir = NULL;

		if (sb_sandbox_env(sb, &ctl->call, &t->host, &t->env, &dir, err) < 0)
			(void)fprintf(stderr, "sbctl: warning: --turn-tools: %s\n", err->msg);
	}
	return t;
}

const char *
ctl_turns_program(const struct ctl_turns *t)
{
	return t ? t->program : NULL;
}

void
ctl_turns_serve(struct ctl_turns *t)
{
	if (t && t->env)
		t->listening = pthread_create(&t->listener, NULL, listen_tools, t) == 0;
	if (t && (t->h || t->idle_ms || t->listening))
		t->running = pthread_create(&t->thread, NULL, serve, t) == 0;
}

void
ctl_turns_heard(struct ctl_turns *t)
{
	if (t)
		atomic_store(&t->heard, sb_now_ms());
}

void
ctl_turns_end(struct ctl_turns *t)
{
	struct sb_call call = sb_call_within(NULL, 3000);

	if (!t)
		return;
	/* The sync back that follows does what a turn under way would have done. */
	sb_cancel_request(t->cancel);
	(void)eventfd_write(t->quit, 1);
	if (t->running)
		(void)pthread_join(t->thread, NULL);
	if (t->listening)
		(void)pthread_join(t->listener, NULL);
	sb_env_free(t->env);
	sb_env_host_free(t->host);
	if (t->h)
		(void)sb_handle_stop(t->h, &call, NULL);
	sb_handle_free(t->h);
	sb_cancel_free(t->cancel);
	(void)close(t->quit);
	(void)close(t->tools);
	free(t->program);
	free(t);
}
