/* SPDX-License-Identifier: MIT */
/*
 * Programs that a tool host starts: their streams, their end, stopping the whole group, terminals.
 */
#include "config.h"

#include <tool/proc.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include <base/file.h>
#include <base/str.h>
#include <tool/terms.h>

#include "tests/lib/tmpdir.h"

#define LONG 60000 /* ms no wait of these tests takes */

static struct sb_proc *
shell(const char *script, const struct sb_proc_opts *more)
{
	const char *argv[] = { "sh", "-c", script, NULL };
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_proc *p;

	if (more)
		o = *more;
	o.argv = argv;
	p = sb_proc_start(&o, &err);
	if (!p)
		fail_msg("start: %s", err.msg);
	return p;
}

static struct sb_proc_exit
wait_end(struct sb_proc *p)
{
	struct sb_proc_exit how = { 0 };
	struct sb_error err = { 0 };

	assert_ok(sb_proc_wait(p, NULL, sb_deadline_in(LONG), &how, &err), &err);
	return how;
}

static char *
text_of(struct sb_proc *p, bool *cut)
{
	struct sb_buf b;
	size_t len;
	bool c;

	sb_buf_init(&b, 1u << 20);
	c = sb_proc_text(p, &b);
	if (cut)
		*cut = c;
	sb_buf_add(&b, "", 0);
	if (!b.len)
		return strdup("");
	return (char *)sb_buf_detach(&b, &len);
}

/* Reads a line that the program prints, so that it is known to have come so far. */
static void
expect_line(struct sb_proc *p, const char *line)
{
	char got[200] = "";
	size_t n = 0;

	while (n + 1 < sizeof got && !strchr(got, '\n')) {
		ssize_t k = read(sb_proc_stdout(p), got + n, 1);

		if (k <= 0)
			fail_msg("the output ended after '%s'", got);
		n += (size_t)k;
	}
	got[strcspn(got, "\r\n")] = '\0';
	assert_string_equal(got, line);
}

struct feed {
	int fd;
	const uint8_t *data;
	size_t len;
	struct sb_proc *p;
};

static void *
feeder(void *arg)
{
	struct feed *f = arg;

	assert_int_equal(sb_file_write_all(f->fd, f->data, f->len, NULL), 0);
	sb_proc_close_stdin(f->p);
	return NULL;
}

static void
stdio_is_byte_exact(void **state)
{
	static uint8_t in[1 << 20], out[(1 << 20) + 1];
	sb_auto(sb_proc) struct sb_proc *p = shell("cat", NULL);
	struct feed f = { sb_proc_stdin(p), in, sizeof in, p };
	pthread_t t;

	(void)state;
	for (size_t i = 0; i < sizeof in; i++)
		in[i] = (uint8_t)(i * 7 + i / 251);
	assert_int_equal(pthread_create(&t, NULL, feeder, &f), 0);
	assert_int_equal(sb_file_read_full(sb_proc_stdout(p), out, sizeof out, NULL),
		(ssize_t)sizeof in);
	assert_memory_equal(in, out, sizeof in);
	(void)pthread_join(t, NULL);
	assert_int_equal(wait_end(p).code, 0);
}

static void
the_end_is_told_as_it_was(void **state)
{
	sb_auto(sb_proc) struct sb_proc *a = shell("exit 7", NULL);
	sb_auto(sb_proc) struct sb_proc *b = shell("kill -USR1 $$", NULL);
	struct pollfd fd = { .fd = sb_proc_done_fd(a), .events = POLLIN };
	struct sb_proc_exit how = wait_end(a);

	(void)state;
	assert_int_equal(poll(&fd, 1, 0), 1);
	assert_int_equal(how.code, 7);
	assert_int_equal(how.signal, 0);
	assert_false(how.stopped);
	how = wait_end(b);
	assert_int_equal(how.signal, SIGUSR1);
	assert_int_equal(how.code, 128 + SIGUSR1);
}

static void
what_does_not_start_says_why(void **state)
{
	const char *none[] = { "no-such-program-here", NULL };
	const char *sh[] = { "sh", NULL };
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	struct sb_error err = { 0 };

	(void)state;
	o.argv = none;
	assert_null(sb_proc_start(&o, &err));
	assert_int_equal(err.code, SB_E_NOTFOUND);
	o.argv = sh;
	o.cwd = "/no/such/dir";
	assert_null(sb_proc_start(&o, &err));
	assert_int_equal(err.code, SB_E_NOTFOUND);
}

static void
stderr_is_kept_to_a_limit(void **state)
{
	/* 300,000 bytes: a thousand times a hundred three-byte characters. Then a word. */
	sb_auto(sb_proc) struct sb_proc *p =
		shell("e=€€€€€€€€€€; e=$e$e$e$e$e$e$e$e$e$e; i=0; "
		      "while [ $i -lt 1000 ]; do i=$((i+1)); printf '%s' $e; done >&2; "
		      "printf end >&2",
			NULL);
	sb_autofree char *text = NULL;
	bool cut;

	(void)state;
	(void)wait_end(p);
	text = text_of(p, &cut);
	assert_true(cut);
	assert_true(strlen(text) <= SB_PROC_STDERR_MAX && strlen(text) > SB_PROC_STDERR_MAX - 3);
	assert_string_equal(text + strlen(text) - 6, "€end");
	assert_memory_equal(text, "€", 3);
}

static void
stderr_goes_on_to_a_taker_that_waits(void **state)
{
	static char got[200001];
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	struct sb_proc *p;
	int ends[2];

	(void)state;
	assert_int_equal(pipe(ends), 0);
	o.stderr_fd = ends[1];
	p = shell("head -c 200000 /dev/zero | tr '\\0' x >&2", &o);
	/* The pipe holds less than that: it must wait for us. */
	assert_int_equal(sb_file_read_full(ends[0], got, 200000, NULL), 200000);
	for (size_t i = 0; i < 200000; i++)
		assert_int_equal(got[i], 'x');
	(void)wait_end(p);
	sb_proc_free(p);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

static void
a_program_that_reads_to_the_end_stops_by_itself(void **state)
{
	sb_auto(sb_proc) struct sb_proc *p = shell("cat >/dev/null; exit 3", NULL);
	struct sb_error err = { 0 };
	struct sb_proc_exit how;

	(void)state;
	assert_ok(sb_proc_stop(p, NULL, sb_deadline_in(LONG), &err), &err);
	how = wait_end(p);
	assert_int_equal(how.code, 3);
	assert_true(how.stopped);
	/* Its stdin is nobody else's file now. */
	assert_int_equal(sb_file_write_nosig(sb_proc_stdin(p), "x", 1), -1);
	assert_int_equal(errno, EPIPE);
	assert_ok(sb_proc_stop(p, NULL, sb_deadline_in(LONG), &err), &err);
}

static bool
alive(pid_t pid)
{
	return kill(pid, 0) == 0;
}

static void
stop_ends_the_whole_group(void **state)
{
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	sb_auto(sb_proc) struct sb_proc *p = NULL;
	struct sb_error err = { 0 };
	char line[40] = "";
	pid_t child;
	ssize_t n;

	(void)state;
	o.stop_ms = 50;
	/* Neither of the two cares for stdin or TERM. */
	p = shell("trap '' TERM; sh -c 'trap \"\" TERM; echo $$; while :; do sleep 1000; done' & "
		  "while :; do sleep 1000; done",
		&o);
	n = read(sb_proc_stdout(p), line, sizeof line - 1);
	assert_true(n > 0);
	child = (pid_t)strtol(line, NULL, 10);
	assert_true(child > 0 && alive(child));
	assert_ok(sb_proc_stop(p, NULL, sb_deadline_in(LONG), &err), &err);
	assert_int_equal(wait_end(p).signal, SIGKILL);
	/* Adopted by init or by nobody; a zombie at most. */
	if (alive(child)) {
		sb_autofree char *name = sb_str_printf("/proc/%d/stat", (int)child);
		sb_auto(sb_buf) struct sb_buf b = { 0 };

		sb_buf_init(&b, 4096);
		if (sb_file_read(AT_FDCWD, name, 4096, &b, NULL) == 0)
			assert_non_null(strstr((char *)b.data, ") Z"));
	}
}

static void
a_late_caller_does_not_end_the_escalation(void **state)
{
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	sb_auto(sb_proc) struct sb_proc *p = NULL;
	struct sb_cancel *cancel = sb_cancel_new(NULL);
	struct sb_error err = { 0 };

	(void)state;
	o.stop_ms = 100;
	p = shell("trap '' TERM; echo up; while :; do sleep 1000; done", &o);
	expect_line(p, "up");
	assert_fails(sb_proc_stop(p, NULL, sb_now_ms() + 1, &err), SB_E_TIMEOUT, &err);
	assert_int_equal(wait_end(p).signal, SIGKILL);
	sb_cancel_request(cancel);
	assert_fails(sb_proc_stop(p, cancel, SB_NEVER, &err), SB_E_CANCELED, &err);
	sb_cancel_free(cancel);
}

static void
a_wait_can_end_without_the_program(void **state)
{
	sb_auto(sb_proc) struct sb_proc *p = shell("cat", NULL);
	struct sb_cancel *cancel = sb_cancel_new(NULL);
	struct sb_error err = { 0 };

	(void)state;
	assert_fails(sb_proc_wait(p, NULL, sb_now_ms() + 5, NULL, &err), SB_E_TIMEOUT, &err);
	sb_cancel_request(cancel);
	assert_fails(sb_proc_wait(p, cancel, SB_NEVER, NULL, &err), SB_E_CANCELED, &err);
	sb_cancel_free(cancel);
	assert_true(alive(sb_proc_pid(p)));
}

static void
what_a_program_leaves_running_goes_with_it(void **state)
{
	sb_auto(sb_proc) struct sb_proc *p = shell("sleep 1000 & echo $!; exit 5", NULL);
	char line[40] = "";
	pid_t child;

	(void)state;
	assert_true(read(sb_proc_stdout(p), line, sizeof line - 1) > 0);
	child = (pid_t)strtol(line, NULL, 10);
	assert_int_equal(wait_end(p).code, 5);
	if (kill(child, 0) == 0) {
		sb_autofree char *name = sb_str_printf("/proc/%d/stat", (int)child);
		sb_auto(sb_buf) struct sb_buf b = { 0 };

		sb_buf_init(&b, 4096);
		if (sb_file_read(AT_FDCWD, name, 4096, &b, NULL) == 0)
			assert_non_null(strstr((char *)b.data, ") Z"));
	}
}

static void
a_terminal_is_a_terminal(void **state)
{
	static const char *const cat[] = { "cat", NULL };
	struct sb_proc_opts o = SB_PROC_OPTS_INIT;
	sb_auto(sb_proc) struct sb_proc *p = NULL;
	sb_auto(sb_proc) struct sb_proc *plain = NULL;
	struct sb_error err = { 0 };

	(void)state;
	o.tty = true;
	o.rows = 33;
	o.cols = 99;
	p = shell("stty -echo; test -t 0 && test -t 2 && stty size; read x; stty size; cat "
		  ">/dev/null; (: </dev/tty) && echo tty; exit 4",
		&o);
	expect_line(p, "33 99");
	assert_ok(sb_proc_resize(p, 10, 20, &err), &err);
	assert_int_equal(write(sb_proc_stdin(p), "go\n", 3), 3);
	expect_line(p, "10 20");
	sb_proc_close_stdin(p);
	expect_line(p, "tty");
	assert_int_equal(wait_end(p).code, 4);
	/* Not a shell: dash forgets a signal that comes while it starts a program. */
	o = (struct sb_proc_opts)SB_PROC_OPTS_INIT;
	o.argv = cat;
	plain = sb_proc_start(&o, &err);
	assert_non_null(plain);
	assert_fails(sb_proc_resize(plain, 1, 1, &err), SB_E_STATE, &err);
	sb_proc_signal(plain, SIGINT);
	assert_int_equal(wait_end(plain).signal, SIGINT);
}

/* Terminals of a tool host. */
struct host {
	struct tmpdir dir;
	struct sb_roots roots;
	struct sb_terms *t;
};

static int
host_setup(void **state)
{
	struct host *h = calloc(1, sizeof *h);
	const char *root;
	struct sb_error err = { 0 };

	tmpdir_make(&h->dir);
	root = h->dir.path;
	assert_ok(sb_roots_open(&root, 1, &h->roots, &err), &err);
	h->t = sb_terms_new(&h->roots, &err);
	assert_non_null(h->t);
	*state = h;
	return 0;
}

static int
host_teardown(void **state)
{
	struct host *h = *state;

	sb_terms_free(h->t);
	sb_roots_close(&h->roots);
	tmpdir_remove(&h->dir);
	free(h);
	return 0;
}

static void
output_is(struct host *h, const char *id, const char *want, bool want_cut, bool want_ended)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_proc_exit how;
	struct sb_error err = { 0 };
	bool cut, ended;

	sb_buf_init(&b, 1u << 20);
	assert_ok(sb_terms_output(h->t, id, &b, &cut, &ended, &how, &err), &err);
	assert_string_equal(b.len ? (char *)b.data : "", want);
	assert_int_equal(cut, want_cut);
	assert_int_equal(ended, want_ended);
}

static int
term_wait(struct host *h, const char *id)
{
	struct sb_proc_exit how = { 0 };
	struct sb_error err = { 0 };

	assert_ok(sb_terms_wait(h->t, id, NULL, sb_deadline_in(LONG), &how, &err), &err);
	return how.code;
}

static void
a_terminal_runs_and_is_read(void **state)
{
	struct host *h = *state;
	const char *args[] = { "-c", "echo out; echo err >&2; pwd; echo \"$ADDED\"; exit 9", NULL };
	const char *env[] = { "ADDED=a b", NULL };
	struct sb_terms_spec s = { .command = "sh", .args = args, .env = env, .window = -1 };
	sb_autofree char *want = sb_str_printf("out\nerr\n%s\na b\n", h->roots.v[0].path);
	char id[SB_TERMS_ID], id2[SB_TERMS_ID];
	struct sb_error err = { 0 };

	assert_ok(sb_terms_create(h->t, &s, id, &err), &err);
	assert_string_equal(id, "term-1");
	assert_int_equal(term_wait(h, id), 9);
	output_is(h, id, want, false, true);
	s.window = 4;
	assert_ok(sb_terms_create(h->t, &s, id2, &err), &err);
	assert_string_equal(id2, "term-2");
	(void)term_wait(h, id2);
	output_is(h, id2, "a b\n", true, true);
	assert_ok(sb_terms_release(h->t, id, &err), &err);
	assert_fails(sb_terms_release(h->t, id, &err), SB_E_TERMINAL_NOT_FOUND, &err);
	assert_fails(sb_terms_kill(h->t, id, &err), SB_E_TERMINAL_NOT_FOUND, &err);
}

static void
a_killed_terminal_stays_readable(void **state)
{
	struct host *h = *state;
	struct sb_terms_spec s = { .command = "sh -c 'echo up; exec sleep 1000'", .window = -1 };
	char id[SB_TERMS_ID];
	struct sb_error err = { 0 };
	sb_deadline d = sb_deadline_in(LONG);

	assert_ok(sb_terms_create(h->t, &s, id, &err), &err);
	for (;;) {
		sb_auto(sb_buf) struct sb_buf b;
		struct sb_proc_exit how;
		bool cut, ended;

		sb_buf_init(&b, 1000);
		assert_ok(sb_terms_output(h->t, id, &b, &cut, &ended, &how, &err), &err);
		if (b.len)
			break;
		assert_false(sb_deadline_passed(d));
		(void)poll(NULL, 0, 5);
	}
	output_is(h, id, "up\n", false, false);
	assert_ok(sb_terms_kill(h->t, id, &err), &err);
	assert_int_equal(term_wait(h, id), 128 + SIGKILL);
	output_is(h, id, "up\n", false, true);
	assert_ok(sb_terms_kill(h->t, id, &err), &err);
}

static void
bad_terminals_are_refused(void **state)
{
	struct host *h = *state;
	struct sb_terms_spec blank = { .command = " ", .window = -1 };
	struct sb_terms_spec none = { .command = "no-such-program-here", .window = -1 };
	struct sb_terms_spec out = { .command = "true", .cwd = "..", .window = -1 };
	struct sb_terms_spec ok = { .command = "true", .window = 0 };
	char id[SB_TERMS_ID];
	struct sb_error err = { 0 };

	assert_fails(sb_terms_create(h->t, &blank, id, &err), SB_E_INVAL, &err);
	assert_fails(sb_terms_create(h->t, &none, id, &err), SB_E_NOTFOUND, &err);
	assert_fails(sb_terms_create(h->t, &out, id, &err), SB_E_ESCAPE, &err);
	for (int i = 0; i < SB_TERMS_MAX; i++)
		assert_ok(sb_terms_create(h->t, &ok, id, &err), &err);
	assert_fails(sb_terms_create(h->t, &ok, id, &err), SB_E_LIMIT, &err);
	assert_ok(sb_terms_release(h->t, "term-3", &err), &err);
	assert_ok(sb_terms_create(h->t, &ok, id, &err), &err);
}

static void
secrets_of_ours_do_not_reach_a_terminal(void **state)
{
	struct host *h = *state;
	struct sb_terms_spec s = { .command = "sh -c 'echo \"[$MY_API_TOKEN]\"'", .window = -1 };
	char id[SB_TERMS_ID];
	struct sb_error err = { 0 };

	assert_int_equal(setenv("MY_API_TOKEN", "s3cret", 1), 0);
	assert_ok(sb_terms_create(h->t, &s, id, &err), &err);
	(void)term_wait(h, id);
	output_is(h, id, "[]\n", false, true);
}

int
main(void)
{
#define H(name) cmocka_unit_test_setup_teardown(name, host_setup, host_teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stdio_is_byte_exact),
		cmocka_unit_test(the_end_is_told_as_it_was),
		cmocka_unit_test(what_does_not_start_says_why),
		cmocka_unit_test(stderr_is_kept_to_a_limit),
		cmocka_unit_test(stderr_goes_on_to_a_taker_that_waits),
		cmocka_unit_test(a_program_that_reads_to_the_end_stops_by_itself),
		cmocka_unit_test(stop_ends_the_whole_group),
		cmocka_unit_test(a_late_caller_does_not_end_the_escalation),
		cmocka_unit_test(a_wait_can_end_without_the_program),
		cmocka_unit_test(what_a_program_leaves_running_goes_with_it),
		cmocka_unit_test(a_terminal_is_a_terminal),
		H(a_terminal_runs_and_is_read),
		H(a_killed_terminal_stays_readable),
		H(bad_terminals_are_refused),
		H(secrets_of_ours_do_not_reach_a_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
