/* SPDX-License-Identifier: MIT */
/* A command in a sandbox with the terminal, or the pipes, of this process. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <base/file.h>
#include <bin/sbctl/ctl.h>

#define CHUNK 65536
#define DRAIN_MS 200     /* for output of what the command left running behind it */
#define PATIENCE_MS 2000 /* for a command to answer a signal that ends us */

/* A command with this process's input and output. */
struct attached {
	struct sb_handle *h;
	bool tty;
	struct termios before;
	int quit; /* ends the thread that reads our input */
	int sigfd;
	struct ctl_turns *turns;
	bool out_gone;       /* nobody reads our output any more */
	int stopping;        /* a stop was asked for */
	sb_deadline stop_at; /* patience ends */
};

/* Copies our input into the command's, until either ends. */
static void *
feed(void *arg)
{
	struct attached *t = arg;
	char *buf = malloc(CHUNK);

	while (buf) {
		struct pollfd p[2] = { { STDIN_FILENO, POLLIN, 0 }, { t->quit, POLLIN, 0 } };
		ssize_t n;
		int to;

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			break;
		if (p[1].revents)
			break;
		if (!p[0].revents)
			continue;
		n = read(STDIN_FILENO, buf, CHUNK);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		to = sb_handle_stdin(t->h);
		if (n <= 0 || to < 0) {
			(void)sb_handle_close_stdin(t->h, NULL);
			break;
		}
		for (ssize_t done = 0; done < n;) {
			ssize_t w = sb_file_write_nosig(to, buf + done, (size_t)(n - done));

			if (w < 0 && errno == EINTR)
				continue;
			if (w <= 0) {
				free(buf);
				return NULL;
			}
			done += w;
		}
	}
	free(buf);
	return NULL;
}

static void
raw_terminal(struct attached *t)
{
	struct termios raw;

	if (!t->tty || tcgetattr(STDIN_FILENO, &t->before) < 0)
		return;
	raw = t->before;
	cfmakeraw(&raw);
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
}

static void
cooked_terminal(const struct attached *t)
{
	if (t->tty)
		(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &t->before);
}

static void
ask_stop(struct attached *t)
{
	struct sb_call call = sb_call_within(NULL, 1);

	/* The stop goes on by itself; its end shows at done_fd. */
	t->stopping++;
	(void)sb_handle_stop(t->h, t->stopping > 1 ? &call : NULL, NULL);
}

static void
on_signal(struct attached *t, int sig)
{
	struct winsize w;

	if (sig == SIGWINCH) {
		if (t->tty && ioctl(STDIN_FILENO, TIOCGWINSZ, &w) == 0)
			(void)sb_handle_resize(t->h, w.ws_row, w.ws_col, NULL);
		return;
	}
	/* The command answers the first signal, as on a terminal of its own: Ctrl-C may mean
	 * something to it. */
	if (!t->stopping++) {
		(void)sb_handle_signal(t->h, sig, NULL);
		if (sig == SIGTERM || sig == SIGHUP)
			t->stop_at = sb_deadline_in(PATIENCE_MS);
		return;
	}
	ask_stop(t);
}

/* One piece of output; false at its end. */
static bool
pass_output(struct attached *t, char *buf)
{
	ssize_t n = read(sb_handle_stdout(t->h), buf, CHUNK);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	if (n <= 0)
		return false;
	ctl_turns_heard(t->turns);
	if (!t->out_gone && sb_file_write_all(STDOUT_FILENO, buf, (size_t)n, NULL) < 0) {
		/* As a shell's pipe: whoever reads us is gone, so the command should go. */
		t->out_gone = true;
		(void)sb_handle_signal(t->h, SIGPIPE, NULL);
		t->stop_at = sb_deadline_in(PATIENCE_MS);
	}
	return true;
}

static int
pump(struct attached *t, struct sb_error *err)
{
	sb_autofree char *buf = malloc(CHUNK);
	bool open = true, done = false;

	if (!buf)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	while (open || !done) {
		struct pollfd p[3] = { { open ? sb_handle_stdout(t->h) : -1, POLLIN, 0 },
			{ done ? -1 : sb_handle_done_fd(t->h), POLLIN, 0 },
			{ t->sigfd, POLLIN, 0 } };
		int n = poll(p, 3, done ? DRAIN_MS : sb_deadline_poll_ms(t->stop_at)), sig;

		if (n < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
		if (!done && sb_deadline_passed(t->stop_at)) {
			t->stop_at = SB_NEVER;
			ask_stop(t);
		} else if (n == 0) {
			break;
		}
		if (n <= 0)
			continue;
		while (p[2].revents && (sig = ctl_signals_take(t->sigfd)))
			on_signal(t, sig);
		if (p[0].revents)
			open = pass_output(t, buf);
		if (p[1].revents)
			done = true;
	}
	return 0;
}

static int
attend(struct attached *t, struct sb_ended *end, struct sb_error *err)
{
	pthread_t feeder;
	uint64_t one = 1;
	int r;

	t->quit = eventfd(0, EFD_CLOEXEC);
	if (t->quit < 0)
		return sb_fail_errno(err, "eventfd");
	raw_terminal(t);
	if (pthread_create(&feeder, NULL, feed, t) != 0) {
		cooked_terminal(t);
		(void)close(t->quit);
		return sb_fail(err, SB_E_SYS, "a thread could not be started");
	}
	ctl_turns_serve(t->turns);
	r = pump(t, err);
	ctl_turns_end(t->turns);
	t->turns = NULL;
	if (write(t->quit, &one, sizeof one) < 0)
		(void)sb_handle_close_stdin(t->h, NULL);
	(void)pthread_join(feeder, NULL);
	cooked_terminal(t);
	(void)close(t->quit);
	return r < 0 ? r : sb_handle_wait(t->h, NULL, end, err);
}

int
ctl_foreground(struct ctl *ctl, struct sb_sandbox *sb, const char *const *argv, int sigfd,
	struct sb_error *err)
{
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct attached t = { .sigfd = sigfd, .stop_at = SB_NEVER };
	struct sb_ended end = { 0 };
	struct winsize w;
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	const char *term = getenv("TERM");
	int r;

	t.tty = !ctl->a.no_tty && isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
	spec.argv = argv;
	spec.tty = t.tty;
	spec.stderr_fd = STDERR_FILENO;
	if (t.tty && ioctl(STDIN_FILENO, TIOCGWINSZ, &w) == 0) {
		spec.rows = w.ws_row;
		spec.cols = w.ws_col;
	}
	if (t.tty && term)
		sb_strlist_addf(&env, "TERM=%s", term);
	for (size_t i = 0; i < ctl->a.env.n; i++)
		sb_strlist_add(&env, ctl->a.env.v[i]);
	t.turns = ctl_turns_begin(ctl, sb, err);
	if (ctl_turns_program(t.turns))
		sb_strlist_addf(&env, "SB_TURN=%s", ctl_turns_program(t.turns));
	spec.env = sb_strlist_borrow(&env);
	r = sb_strlist_check(&env, err);
	if (r == 0)
		r = sb_sandbox_launch(sb, &spec, &ctl->call, &t.h, err);
	if (r < 0)
		ctl_turns_end(t.turns);
	/* As a shell tells it: 127 for one that is not there, 126 for one that may not be run. */
	if (r == SB_E_NOTFOUND || r == SB_E_DENIED) {
		progress_hide();
		(void)fprintf(stderr, "sbctl: %s\n", err->msg);
		return r == SB_E_NOTFOUND ? 127 : 126;
	}
	if (r < 0)
		return r;
	progress_hide();
	ctl_signals_cancel(NULL);
	r = attend(&t, &end, err);
	sb_handle_free(t.h);
	if (r == 0 && end.lost)
		(void)fprintf(stderr,
			"sbctl: the connection to the sandbox was lost while the command ran\n");
	return r < 0 ? r : end.code;
}
