/* SPDX-License-Identifier: MIT */
/* Checks of launchers and handles: streams, signals, terminals, stops and secrets. */
#include "config.h"

#include <conform/conform-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/file.h>

/* Something launched by a check. */
struct launched {
	struct sb_handle *h;
	struct sb_call call;
};

static int
start(struct sb_conform_sandbox *b, const char *script, struct sb_launch_spec *spec,
	struct launched *out, struct sb_error *err)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct sb_launch_spec plain = SB_LAUNCH_SPEC_INIT;
	int r;

	spec = spec ? spec : &plain;
	spec->argv = argv;
	out->call = sb_conform_call(b->c);
	r = sb_launcher_launch(b->prepared.launcher, spec, &out->call, &out->h, err);
	spec->argv = NULL;
	return r < 0 ? sb_wrap(err, r, "launch") : 0;
}

static int
wait_end(struct launched *x, struct sb_ended *how, struct sb_error *err)
{
	int r = sb_handle_wait(x->h, &x->call, how, err);

	return r < 0 ? sb_wrap(err, r, "wait") : 0;
}

/* Reads one line of stdout. */
static int
read_line(struct launched *x, char *out, size_t size, struct sb_error *err)
{
	size_t n = 0;

	while (n + 1 < size) {
		struct pollfd p = { .fd = sb_handle_stdout(x->h), .events = POLLIN };
		ssize_t k;

		if (poll(&p, 1, sb_deadline_poll_ms(x->call.deadline)) == 0)
			return sb_fail(err, SB_E_TIMEOUT, "no line comes from what was launched");
		k = read(p.fd, out + n, 1);
		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return broken(err, "stdout ends before a line");
		if (out[n] == '\n')
			break;
		n++;
	}
	out[n] = '\0';
	if (n && out[n - 1] == '\r')
		out[n - 1] = '\0';
	return 0;
}

/* Reads up to `len` bytes, less only at the end of the stream; not for ever. */
static ssize_t
read_bytes(int fd, void *data, size_t len, sb_deadline d, struct sb_error *err)
{
	size_t n = 0;

	while (n < len) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		ssize_t k;

		if (poll(&p, 1, sb_deadline_poll_ms(d)) == 0)
			return sb_fail(err, SB_E_TIMEOUT, "%zu of %zu bytes come, and then nothing",
				n, len);
		k = read(fd, (uint8_t *)data + n, len - n);
		if (k < 0 && errno == EINTR)
			continue;
		if (k < 0)
			return sb_fail_errno(err, "read");
		if (k == 0)
			break;
		n += (size_t)k;
	}
	return (ssize_t)n;
}

struct feed {
	int fd;
	const uint8_t *data;
	size_t len;
	int r;
};

static void *
feeder(void *arg)
{
	struct feed *f = arg;

	f->r = sb_file_write_all(f->fd, f->data, f->len, NULL);
	return NULL;
}

#define ECHO_BYTES (1u << 20)

static int
echo_all(struct launched *x, uint8_t *in, uint8_t *out, struct sb_error *err)
{
	struct feed f = { .fd = sb_handle_stdin(x->h), .data = in, .len = ECHO_BYTES };
	ssize_t n;
	pthread_t t;
	int r;

	for (size_t i = 0; i < ECHO_BYTES; i++)
		in[i] = (uint8_t)(i * 7 + i / 251);
	if (pthread_create(&t, NULL, feeder, &f) != 0)
		return sb_fail(err, SB_E_SYS, "thread");
	n = read_bytes(sb_handle_stdout(x->h), out, ECHO_BYTES, x->call.deadline, err);
	if (n < (ssize_t)ECHO_BYTES) {
		struct sb_call end = sb_call_within(NULL, 20000);

		(void)sb_handle_stop(x->h, &end, NULL); /* or the feeder would wait on */
	}
	(void)pthread_join(t, NULL);
	if (n < 0)
		return (int)n;
	if (n != (ssize_t)ECHO_BYTES || f.r < 0 || memcmp(in, out, ECHO_BYTES) != 0)
		return broken(err, "1 MiB of all bytes comes back changed (%zd bytes)", n);
	r = sb_handle_close_stdin(x->h, err);
	if (r == 0 && read_bytes(sb_handle_stdout(x->h), out, 1, x->call.deadline, err) != 0)
		r = broken(err, "there is more on stdout than went in");
	return r;
}

static int
check_bytes(struct sb_conform *c, struct sb_error *err)
{
	sb_autofree uint8_t *in = malloc(ECHO_BYTES), *out = malloc(ECHO_BYTES);
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_ended how = { 0 };
	struct launched x = { 0 };
	int r;

	if (!b || !in || !out)
		return SB_E_STATE;
	r = start(b, "cat", NULL, &x, err);
	if (r == 0)
		r = echo_all(&x, in, out, err);
	if (r == 0)
		r = wait_end(&x, &how, err);
	if (r == 0 && (how.code != 0 || how.lost))
		r = broken(err, "cat ended with %d%s", how.code, how.lost ? ", lost" : "");
	sb_handle_free(x.h);
	return r;
}

static int
ends_with(struct sb_conform_sandbox *b, const char *script, int code, int sig, struct sb_error *err)
{
	struct sb_ended how = { 0 };
	struct launched x = { 0 };
	struct pollfd p = { .events = POLLIN };
	int r = start(b, script, NULL, &x, err);

	if (r == 0)
		r = wait_end(&x, &how, err);
	if (r == 0 && (how.code != code || how.signal != sig || how.asked || how.lost))
		r = broken(err, "'%s' ended with %d, signal %d%s%s; must be %d, signal %d", script,
			how.code, how.signal, how.asked ? ", asked" : "", how.lost ? ", lost" : "",
			code, sig);
	p.fd = sb_handle_done_fd(x.h);
	if (r == 0 && poll(&p, 1, 0) != 1)
		r = broken(err, "the done descriptor is not ready after the end");
	sb_handle_free(x.h);
	return r;
}

static int
check_exit(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	const char *none[] = { "no-such-program-here", NULL };
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_call call = sb_conform_call(c);
	struct sb_handle *h = NULL;
	struct sb_error why = { 0 };
	int r;

	if (!b)
		return SB_E_STATE;
	r = ends_with(b, "exit 0", 0, 0, err);
	if (r == 0)
		r = ends_with(b, "exit 7", 7, 0, err);
	if (r == 0)
		r = ends_with(b, "exit 255", 255, 0, err);
	if (r == 0)
		r = ends_with(b, "kill -USR1 $$", 128 + SIGUSR1, SIGUSR1, err);
	if (r < 0)
		return r;
	spec.argv = none;
	r = sb_conform_must_fail(sb_launcher_launch(b->prepared.launcher, &spec, &call, &h, &why),
		SB_E_NOTFOUND, "launch a program that is not there", &why, err);
	sb_handle_free(h);
	h = NULL;
	spec.argv = NULL;
	spec.command = "sh -c 'unclosed";
	if (r == 0)
		r = sb_conform_must_fail(
			sb_launcher_launch(b->prepared.launcher, &spec, &call, &h, &why),
			SB_E_INVAL, "launch with an open quote", &why, err);
	sb_handle_free(h);
	return r;
}

static int
check_env(struct sb_conform *c, struct sb_error *err)
{
	static const char *const env[] = { "CONFORM_WORD=two  words", "CONFORM_EMPTY=", NULL };
	static const char *const secret[] = { "CONFORM_SECRET=sup3r-s3cret-value", NULL };
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_ended how;
	struct launched x = { 0 };
	char line[300];
	int r;

	if (!b)
		return SB_E_STATE;
	spec.env = env;
	spec.secret_env = secret;
	r = start(b,
		"echo \"$CONFORM_WORD|$CONFORM_EMPTY|$CONFORM_SECRET|${CONFORM_EMPTY+set}\"; pwd; "
		"all=$(cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '); "
		"case $all in *\"$CONFORM_SECRET\"*) echo leaked;; *) echo clean;; esac",
		&spec, &x, err);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0 && strcmp(line, "two  words||sup3r-s3cret-value|set") != 0)
		r = broken(err, "the environment of what is launched is '%s'", line);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0 && strcmp(line, b->prepared.state.runtime_root) != 0 &&
		strcmp(line, sb_handle_cwd(x.h)) != 0)
		r = broken(err, "it starts in '%s', must be '%s'", line,
			b->prepared.state.runtime_root);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0 && strcmp(line, "clean") != 0)
		r = broken(err, "a secret is on a command line in the runtime");
	if (r == 0)
		r = wait_end(&x, &how, err);
	sb_handle_free(x.h);
	return r;
}

static int
check_stderr(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	sb_autofree char *tail = NULL;
	static char copy[210000];
	struct sb_ended how;
	struct launched x = { 0 };
	int ends[2] = { -1, -1 }, r;
	ssize_t n = 0;

	if (!b)
		return SB_E_STATE;
	if (pipe(ends) < 0)
		return sb_fail_errno(err, "pipe");
	spec.stderr_fd = ends[1];
	/* 200,000 bytes, the last of them known; on stdout nothing of it. */
	r = start(b,
		"head -c 199990 /dev/zero | tr '\\0' e >&2; printf '0123\\377\\303\\251end' >&2",
		&spec, &x, err);
	if (r == 0) {
		n = read_bytes(ends[0], copy, 200000, x.call.deadline, err);
		r = n < 0 ? (int)n : 0;
	}
	if (r == 0)
		r = wait_end(&x, &how, err);
	if (r == 0)
		tail = sb_handle_stderr_tail(x.h);
	if (r == 0 && (n != 200000 || memcmp(copy + 199990, "0123\377\303\251end", 10) != 0))
		r = broken(err, "stderr does not come byte for byte (%zd bytes)", n);
	if (r == 0 &&
		(!tail || strlen(tail) > SB_STDERR_TAIL_MAX ||
			strlen(tail) < SB_STDERR_TAIL_MAX - 8 ||
			!sb_str_ends(tail, "e0123\xef\xbf\xbd\303\251end")))
		r = broken(err, "the tail of stderr has %zu bytes and ends with '%s'",
			tail ? strlen(tail) : 0,
			tail && strlen(tail) > 12 ? tail + strlen(tail) - 12 : "");
	sb_handle_free(x.h);
	(void)close(ends[0]);
	(void)close(ends[1]);
	return r;
}

static int
check_stop(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_ended how = { 0 };
	struct launched x = { 0 };
	char line[40] = "";
	int r;

	if (!b)
		return SB_E_STATE;
	/* One that goes when its input ends. */
	r = start(b, "echo up; cat >/dev/null; exit 3", NULL, &x, err);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0)
		r = sb_handle_stop(x.h, &x.call, err);
	if (r == 0)
		r = wait_end(&x, &how, err);
	if (r == 0 && (how.code != 3 || !how.asked))
		r = broken(err, "stopped by the end of input, it ended with %d%s", how.code,
			how.asked ? "" : ", not asked");
	if (r == 0)
		r = sb_handle_stop(x.h, &x.call, err);
	sb_handle_free(x.h);
	x.h = NULL;
	/* One that heeds neither that nor TERM, with a child that does neither. */
	spec.stop_grace_ms = 100;
	if (r == 0)
		r = start(b,
			"trap '' TERM; sh -c 'trap \"\" TERM; while :; do sleep 1000; done' & echo "
			"$!; while :; do sleep 1000; done",
			&spec, &x, err);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0)
		r = sb_handle_stop(x.h, &x.call, err);
	if (r == 0)
		r = wait_end(&x, &how, err);
	if (r == 0 && how.signal != SIGKILL)
		r = broken(err, "what ignores TERM ended with %d, signal %d", how.code, how.signal);
	sb_handle_free(x.h);
	if (r == 0) {
		char script[200];

		(void)snprintf(script, sizeof script,
			"case $(cut -d' ' -f3 /proc/%s/stat 2>/dev/null) in ''|Z) echo gone;; *) "
			"echo runs;; esac",
			line);
		r = sb_conform_sh_is(b, script, "gone\n", err);
	}
	return r;
}

static int
check_stop_late(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_error why = { 0 };
	struct sb_ended how = { 0 };
	struct launched x = { 0 };
	struct sb_call late;
	char line[40];
	int r;

	if (!b)
		return SB_E_STATE;
	spec.stop_grace_ms = 200;
	r = start(b, "trap '' TERM; echo up; while :; do sleep 1000; done", &spec, &x, err);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	late = sb_call_within(NULL, 1);
	if (r == 0)
		r = sb_conform_must_fail(sb_handle_wait(x.h, &late, &how, &why), SB_E_TIMEOUT,
			"wait with a deadline", &why, err);
	late = sb_call_within(NULL, 1);
	if (r == 0)
		r = sb_conform_must_fail(sb_handle_stop(x.h, &late, &why), SB_E_TIMEOUT,
			"stop with a deadline", &why, err);
	/* The escalation goes on without the caller. */
	if (r == 0)
		r = wait_end(&x, &how, err);
	if (r == 0 && how.signal != SIGKILL)
		r = broken(err, "after a stop whose caller left, it ended with %d, signal %d",
			how.code, how.signal);
	sb_handle_free(x.h);
	return r;
}

static int
check_signal(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b = sb_conform_ready(c, false, err);
	struct sb_ended how = { 0 };
	struct launched x = { 0 };
	char line[40];
	int r;

	if (!b)
		return SB_E_STATE;
	r = start(b, "trap 'echo got; exit 9' USR1; echo up; while :; do sleep 0.05; done", NULL,
		&x, err);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0)
		r = sb_handle_signal(x.h, SIGUSR1, err);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0)
		r = wait_end(&x, &how, err);
	/* The loop's sleep gets it too: the group is meant. */
	if (r == 0 && how.code != 9 && how.signal != SIGUSR1)
		r = broken(err, "a signal to the group: it ended with %d", how.code);
	if (r == 0)
		r = sb_handle_signal(x.h, SIGUSR1, err);
	sb_handle_free(x.h);
	return r;
}

static int
check_tty(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	struct sb_launch_spec spec = SB_LAUNCH_SPEC_INIT;
	struct sb_ended how = { 0 };
	struct launched x = { 0 };
	char line[100];
	int r;

	if (!c->caps.tty)
		return sb_conform_skip(err, "the provider has no terminals");
	b = sb_conform_ready(c, false, err);
	if (!b)
		return SB_E_STATE;
	spec.tty = true;
	spec.rows = 33;
	spec.cols = 99;
	r = start(b,
		"stty -echo; test -t 0 && test -t 1 && test -t 2 && stty size; read x; stty size; "
		"exit 4",
		&spec, &x, err);
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0 && strcmp(line, "33 99") != 0)
		r = broken(err, "a terminal of 33 x 99 says '%s'", line);
	if (r == 0)
		r = sb_handle_resize(x.h, 10, 20, err);
	/* It may take a moment to arrive; a second size tells. */
	if (r == 0 && write(sb_handle_stdin(x.h), "go\n", 3) != 3)
		r = sb_fail_errno(err, "write to a terminal");
	if (r == 0)
		r = read_line(&x, line, sizeof line, err);
	if (r == 0 && strcmp(line, "10 20") != 0)
		r = broken(err, "after a change to 10 x 20 the terminal says '%s'", line);
	if (r == 0)
		r = wait_end(&x, &how, err);
	if (r == 0 && how.code != 4)
		r = broken(err, "in a terminal, exit 4 is told as %d", how.code);
	sb_handle_free(x.h);
	return r;
}

const struct sb_conform_check sb_conform_launch_checks[] = {
	{ "launch-bytes", "stdin and stdout byte for byte, end of input, nothing added",
		check_bytes },
	{ "launch-exit", "exit codes and signals as they were; what cannot start says why",
		check_exit },
	{ "launch-env", "environment, directory, secrets on no command line", check_env },
	{ "launch-stderr", "stderr byte for byte, its tail bounded and clean", check_stderr },
	{ "launch-stop", "input, TERM, KILL; the whole group", check_stop },
	{ "launch-stop-late", "deadlines; a stop goes on when its caller leaves", check_stop_late },
	{ "launch-signal", "signals reach it", check_signal },
	{ "launch-tty", "a terminal with its size", check_tty },
	{ NULL, NULL, NULL },
};
