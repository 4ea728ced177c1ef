/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <tool/launch.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <tool/environ.h>
#include <tool/message.h>
#include <tool/proc.h>

#define ARGS_MAX 65536
#define SPEC_MAX (16u << 20)
#define SPEC_MS 60000
/* Where nothing tells that the reader is gone, we look. */
#define LOOK_MS 1000

/* What was asked for, decoded. */
struct spec {
	char *nonce, *cwd;
	struct sb_strlist argv, env;
	bool tty;
	unsigned short rows, cols;
};

static void
free_spec(struct spec *s)
{
	free(s->nonce);
	free(s->cwd);
	sb_strlist_free(&s->argv);
	sb_strlist_free(&s->env);
}

void
sb_launch_encode(const struct sb_launch *l, struct sb_buf *out)
{
	sb_message_add_text(out, l->nonce);
	sb_message_add_text(out, l->cwd);
	sb_message_add_texts(out, l->argv);
	sb_message_add_texts(out, l->env);
	sb_buf_add_u8(out, l->tty);
	sb_buf_add_u16(out, l->rows);
	sb_buf_add_u16(out, l->cols);
}

static int
decode(const struct sb_buf *b, struct spec *s, struct sb_error *err)
{
	struct sb_cursor c;
	int r;

	sb_cursor_init(&c, b->data, b->len);
	s->nonce = sb_message_text(&c);
	s->cwd = sb_message_text(&c);
	r = sb_message_texts(&c, ARGS_MAX, &s->argv, err);
	if (r == 0)
		r = sb_message_texts(&c, ARGS_MAX, &s->env, err);
	s->tty = sb_cursor_u8(&c);
	s->rows = sb_cursor_u16(&c);
	s->cols = sb_cursor_u16(&c);
	if (r == 0 && (c.bad || !s->nonce || !s->cwd || !s->argv.n || strlen(s->nonce) > 32))
		r = sb_fail(err, SB_E_PROTO, "the request to launch a program is damaged");
	return r;
}

/* Reads the request and finds the program; what can be known to fail, fails here. */
static int
prepare(struct spec *s, struct sb_strlist *env, struct sb_error *err)
{
	sb_autofree char *file = NULL;
	sb_auto(sb_buf) struct sb_buf b;
	struct stat st;
	int r;

	sb_buf_init(&b, SPEC_MAX);
	r = sb_message_recv(STDIN_FILENO, SPEC_MAX, &b, NULL, sb_deadline_in(SPEC_MS), err);
	if (r == 0)
		r = decode(&b, s, err);
	if (r == 0)
		r = sb_environ_build(false, (const char *const *)s->env.v, env, err);
	if (r == 0 && *s->cwd && chdir(s->cwd) < 0)
		r = sb_fail_errno(err, "%s", s->cwd);
	if (r == 0)
		r = sb_environ_find(env, s->argv.v[0], &file, err);
	if (r == 0 && (stat(file, &st) < 0 || access(file, X_OK) < 0))
		r = sb_fail_errno(err, "%s", s->argv.v[0]);
	if (r == 0 && !S_ISREG(st.st_mode))
		r = sb_fail(err, SB_E_DENIED, "%s is not a program", s->argv.v[0]);
	return r;
}

static int
answer(int code, const struct sb_error *why)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 4096);
	sb_buf_add_svarint(&b, code);
	if (code < 0)
		sb_message_add_text(&b, why->msg);
	else
		sb_buf_add_varint(&b, (uint64_t)getpid());
	return sb_message_send(STDOUT_FILENO, &b, NULL, SB_NEVER, NULL);
}

static void
mark(const char *what, const char *nonce, const char *rest)
{
	char text[SB_LAUNCH_MARK_MAX + 1];
	int n = snprintf(text + 1, sizeof text - 1, "%s%s%s\n", what, nonce, rest);

	text[0] = '\0';
	(void)sb_message_write(STDERR_FILENO, text, (size_t)n + 1, NULL, sb_deadline_in(5000),
		NULL);
}

/* The program under way. */
struct launch_run {
	struct sb_proc *proc;
	sigset_t set; /* the signals we hand on */
	int sig_fd;   /* polls readable when there are some */
	bool gone;    /* nobody is there any more */
};

/* Blocks the signals we hand on and makes a descriptor of them. */
static void
catch_signals(struct launch_run *run)
{
	static const int ours[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM,
		SIGPIPE, SIGCONT, SIGTSTP };

	(void)sigemptyset(&run->set);
	for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
		(void)sigaddset(&run->set, ours[i]);
	(void)sigaddset(&run->set, SB_LAUNCH_SIG_KILL);
	(void)sigaddset(&run->set, SB_LAUNCH_SIG_SIZE);
	(void)pthread_sigmask(SIG_BLOCK, &run->set, NULL);
	run->sig_fd = signalfd(-1, &run->set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/* Nobody listens any more: the program goes. */
static void
abandon(struct launch_run *run)
{
	run->gone = true;
	sb_proc_signal(run->proc, SIGHUP);
	(void)sb_proc_stop(run->proc, NULL, SB_NEVER, NULL);
}

/*
 * The descriptor is not read: what it gives lacks the value of a signal in gVisor. Signals for the
 * program are queued ones; a plain TERM is meant for us.
 */
static void
hand_on(struct launch_run *run)
{
	const struct timespec now = { 0 };
	siginfo_t si;
	int sig;

	while ((sig = sigtimedwait(&run->set, &si, &now)) > 0) {
		unsigned size = (unsigned)si.si_value.sival_int;

		if (sig == SIGTERM && si.si_code == SI_USER)
			abandon(run);
		else if (sig == SB_LAUNCH_SIG_SIZE)
			(void)sb_proc_resize(run->proc, (unsigned short)(size >> 16),
				(unsigned short)size, NULL);
		else
			sb_proc_signal(run->proc, sig == SB_LAUNCH_SIG_KILL ? SIGKILL : sig);
	}
}

/* Without a terminal: only wait, hand signals on, and notice when nobody listens any more. */
static void
watch_plain(struct launch_run *run)
{
	/* Our copy must not keep its input open when the program has closed it. */
	int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)dup2(null, STDIN_FILENO);
	sb_cleanup_close_(&null);
	for (;;) {
		struct pollfd p[3] = {
			{ .fd = sb_proc_done_fd(run->proc), .events = POLLIN },
			{ .fd = run->sig_fd, .events = POLLIN },
			/* Errors and hang-ups only: somebody closed the other end. */
			{ .fd = STDOUT_FILENO, .events = 0 },
		};

		(void)poll(p, 3, LOOK_MS);
		hand_on(run);
		if (p[0].revents)
			return;
		if (p[2].revents) {
			abandon(run);
			return;
		}
	}
}

/* Moves what `from` has to `to`. False: its end, or nobody takes it. */
static bool
pump(int from, int to)
{
	char block[32768];
	ssize_t n = read(from, block, sizeof block);

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return true;
	return n > 0 && sb_message_write(to, block, (size_t)n, NULL, SB_NEVER, NULL) == 0;
}

static void
watch_tty(struct launch_run *run)
{
	bool in = true, out = true;

	while (out) {
		struct pollfd p[4] = {
			{ .fd = in ? STDIN_FILENO : -1, .events = POLLIN },
			{ .fd = sb_proc_stdout(run->proc), .events = POLLIN },
			{ .fd = run->sig_fd, .events = POLLIN },
			{ .fd = STDOUT_FILENO, .events = 0 },
		};
		int n = poll(p, 4, LOOK_MS);

		hand_on(run);
		if (p[1].revents)
			out = pump(sb_proc_stdout(run->proc), STDOUT_FILENO);
		/* Not every kernel (gVisor) tells that nobody has the terminal open any more. */
		else if (n == 0 && sb_proc_wait(run->proc, NULL, sb_now_ms() + 1, NULL, NULL) == 0)
			out = false;
		if (in && p[0].revents && !pump(STDIN_FILENO, sb_proc_stdin(run->proc))) {
			in = false;
			sb_proc_close_stdin(run->proc);
		}
		if (p[3].revents) {
			abandon(run);
			return;
		}
	}
	/* Who has given up the terminal may still run. */
	while (sb_proc_wait(run->proc, NULL, sb_now_ms() + 100, NULL, NULL) == SB_E_TIMEOUT)
		hand_on(run);
}

/* The exit code, or why it did not start. */
static int
run_it(struct launch_run *run, const struct spec *s, const struct sb_strlist *env, int *sig,
	struct sb_error *err)
{
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	struct sb_proc_exit how = { 0 };

	o.argv = (const char *const *)s->argv.v;
	o.env = (const char *const *)env->v;
	o.inherit = !s->tty;
	o.tty = s->tty;
	o.rows = s->rows;
	o.cols = s->cols;
	run->proc = sb_proc_start(&o, err);
	if (!run->proc)
		return err->code;
	if (s->tty)
		watch_tty(run);
	else
		watch_plain(run);
	(void)sb_proc_wait(run->proc, NULL, SB_NEVER, &how, NULL);
	*sig = how.signal;
	return how.code;
}

int
sb_launch_serve(void)
{
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	struct launch_run run = { .sig_fd = -1 };
	struct sb_error err = { 0 };
	struct spec s = { 0 };
	char rest[40];
	int sig = 0, code = prepare(&s, &env, &err);

	if (code < 0) {
		(void)answer(code, &err);
		free_spec(&s);
		return 1;
	}
	catch_signals(&run);
	if (answer(0, NULL) == 0) {
		mark(SB_LAUNCH_START, s.nonce, "");
		code = run_it(&run, &s, &env, &sig, &err);
		if (code < 0) {
			/* Found, yet not to be executed. As a shell would tell it. */
			(void)sb_message_write(STDERR_FILENO, err.msg, strlen(err.msg), NULL,
				sb_deadline_in(5000), NULL);
			code = code == SB_E_NOTFOUND ? 127 : 126;
		}
		(void)snprintf(rest, sizeof rest, ":%d:%d", code, sig);
		if (!run.gone)
			mark(SB_LAUNCH_END, s.nonce, rest);
	}
	sb_proc_free(run.proc);
	sb_cleanup_close_(&run.sig_fd);
	free_spec(&s);
	return code;
}
