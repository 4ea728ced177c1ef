/* SPDX-License-Identifier: MIT */
/*
 * The guest of a session: programs that outlive their callers, terminals, files, watches. Compiled
 * once a runtime, see runtime.mk.
 */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <host/guest/guest.h>

#include "tests/lib/hostfix.h"
#include "tests/lib/unit.h"

#ifndef TEST_RUNTIME
#define TEST_RUNTIME "none"
#endif

static bool works;
static char reason[300];
static struct sb_guests *g;
static char work[300]; /* the workspace as its commands know it */

static int
setup(void **state)
{
	struct sb_host_session s;
	struct hostfix *f;

	assert_int_equal(setenv("SB_TEST_RUNTIME", works ? TEST_RUNTIME : "none", 1), 0);
	if (hostfix_setup(state) != 0)
		return -1;
	f = *state;
	hostfix_create(f, "one", &s);
	(void)snprintf(work, sizeof work, "%s",
		s.runtime == SB_HOST_RUNTIME_NONE ? s.mountpoint : "/workspace");
	sb_host_session_clear(&s);
	g = sb_guests_new(f->h, &f->err);
	return g ? 0 : -1;
}

static int
teardown(void **state)
{
	sb_guests_free(g);
	g = NULL;
	return hostfix_teardown(state);
}

static int
probe(void **state)
{
	struct hostfix f = { 0 };

	(void)state;
	assert_int_equal(setenv("SB_TEST_RUNTIME", TEST_RUNTIME, 1), 0);
	hostfix_prepare(&f);
	f.h = sb_host_open(&f.o, &f.err);
	works = f.h != NULL;
	if (!works)
		(void)snprintf(reason, sizeof reason, "%.290s", f.err.msg);
	sb_host_close(f.h);
	tmpdir_remove(&f.t);
	return 0;
}

#define NEED_RUNTIME \
	do { \
		if (!works) \
			skip_because("%s", reason); \
	} while (0)

static const char *
in_work(const char *name)
{
	static char path[4][700];
	static unsigned at;

	at = (at + 1) % 4;
	(void)snprintf(path[at], sizeof path[at], "%s/%s", work, name);
	return path[at];
}

static struct sb_guest_stream *
start(struct hostfix *f, const char *command, bool input, bool terminal, int64_t *pid)
{
	const char *argv[] = { "/bin/sh", "-c", command, NULL };
	const char *env[] = { "WORD=of mine", NULL };
	struct sb_guest_program p = { .argv = argv,
		.env = env,
		.cwd = work,
		.tag = "t",
		.input = input,
		.terminal = terminal,
		.cols = 91,
		.rows = 33 };
	struct sb_guest_stream *s = NULL;

	assert_ok(sb_guest_start(g, "one", &p, NULL, &s, pid, &f->err), &f->err);
	return s;
}

/* All output, "1:" and "2:" and "3:" before each stream's, up to the end, which is given. */
static struct sb_guest_event
collect(struct hostfix *f, struct sb_guest_stream *s, char *out, size_t size)
{
	struct sb_guest_event ev;
	char part[3][8192] = { "", "", "" };
	int r;

	while ((r = sb_guest_next(s, 60000, NULL, &ev, &f->err)) == 1 &&
		ev.kind == SB_GUEST_EV_OUTPUT)
		(void)strncat(part[ev.which - 1], (const char *)ev.data,
			ev.len < sizeof part[0] - 1 - strlen(part[ev.which - 1]) ?
				ev.len :
				sizeof part[0] - 1 - strlen(part[ev.which - 1]));
	assert_int_equal(r, 1);
	assert_int_equal(ev.kind, SB_GUEST_EV_END);
	(void)snprintf(out, size, "%s|%s|%s", part[0], part[1], part[2]);
	return ev;
}

static void
programs_have_streams_and_codes(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_program missing = { .argv = (const char *[]){ "/no/such", NULL },
		.cwd = work };
	struct sb_guest_stream *s;
	struct sb_guest_event ev;
	char text[30000];
	int64_t pid;

	NEED_RUNTIME;
	s = start(f, "echo out $WORD; echo err >&2; pwd; exit 3", false, false, &pid);
	ev = collect(f, s, text, sizeof text);
	assert_int_equal(ev.code, 3);
	assert_int_equal(ev.sig, 0);
	assert_true(pid > 0);
	assert_non_null(strstr(text, "out of mine\n"));
	assert_non_null(strstr(text, "|err\n|"));
	sb_guest_leave(s);
	s = start(f, "kill -9 $$", false, false, &pid);
	ev = collect(f, s, text, sizeof text);
	assert_int_equal(ev.sig, SIGKILL);
	sb_guest_leave(s);
	assert_fails(sb_guest_start(g, "one", &missing, NULL, &s, &pid, &f->err), SB_E_NOTFOUND,
		&f->err);
}

static void
much_output_waits_for_its_reader(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_stream *s;
	struct sb_guest_event ev;
	uint64_t all = 0;
	int64_t pid;

	NEED_RUNTIME;
	s = start(f, "head -c 5000000 /dev/zero", false, false, &pid);
	/* While nobody reads, others are served. */
	assert_ok(sb_guest_stat(g, "one", work, NULL, NULL, &f->err), &f->err);
	while (sb_guest_next(s, 60000, NULL, &ev, &f->err) == 1 && ev.kind == SB_GUEST_EV_OUTPUT)
		all += ev.len;
	assert_int_equal(ev.kind, SB_GUEST_EV_END);
	assert_int_equal(all, 5000000);
	sb_guest_leave(s);
}

static void
input_arrives_and_ends(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_stream *s;
	struct sb_guest_who who = { 0 };
	char text[30000];

	NEED_RUNTIME;
	s = start(f, "cat; echo over", true, false, &who.pid);
	assert_ok(sb_guest_input(g, "one", &who, false, "hello\n", 6, NULL, &f->err), &f->err);
	who = (struct sb_guest_who){ .tag = "t" };
	assert_ok(sb_guest_input_end(g, "one", &who, NULL, &f->err), &f->err);
	assert_int_equal(collect(f, s, text, sizeof text).code, 0);
	assert_non_null(strstr(text, "hello\nover\n"));
	assert_fails(sb_guest_input(g, "one", &who, false, "x", 1, NULL, &f->err),
		SB_E_PROCESS_NOT_FOUND, &f->err);
	sb_guest_leave(s);
}

static void
terminals_have_a_size(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_stream *s;
	struct sb_guest_who who = { 0 };
	char text[30000];

	NEED_RUNTIME;
	s = start(f, "stty size; read x; stty size; test -t 0 && exit 7", false, true, &who.pid);
	assert_ok(sb_guest_resize(g, "one", &who, 100, 40, NULL, &f->err), &f->err);
	assert_ok(sb_guest_input(g, "one", &who, true, "go\n", 3, NULL, &f->err), &f->err);
	assert_int_equal(collect(f, s, text, sizeof text).code, 7);
	assert_non_null(strstr(text, "40 100"));
	sb_guest_leave(s);
}

static void
programs_are_listed_joined_and_signalled(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_stream *s, *t;
	struct sb_guest_running *v = NULL;
	struct sb_guest_who who = { 0 };
	struct sb_guest_event ev;
	char text[30000];
	int64_t pid;
	size_t n = 0;

	NEED_RUNTIME;
	/* A child of its own, too, which the signal reaches. */
	s = start(f, "sleep 1000 & wait", false, false, &who.pid);
	sb_guest_leave(s);
	assert_ok(sb_guest_list(g, "one", NULL, &v, &n, &f->err), &f->err);
	assert_int_equal(n, 1);
	assert_int_equal(v[0].pid, who.pid);
	assert_string_equal(v[0].tag, "t");
	assert_string_equal(v[0].argv.v[2], "sleep 1000 & wait");
	sb_guest_running_free(v, n);
	assert_ok(sb_guest_attach(g, "one", &who, NULL, &t, &pid, &f->err), &f->err);
	assert_int_equal(pid, who.pid);
	assert_ok(sb_guest_signal(g, "one", &who, SIGTERM, NULL, &f->err), &f->err);
	ev = collect(f, t, text, sizeof text);
	assert_int_equal(ev.sig, SIGTERM);
	sb_guest_leave(t);
	/* How it ended can still be asked for. */
	assert_ok(sb_guest_attach(g, "one", &who, NULL, &t, &pid, &f->err), &f->err);
	assert_int_equal(collect(f, t, text, sizeof text).sig, SIGTERM);
	sb_guest_leave(t);
	who.pid = 999999;
	assert_fails(sb_guest_signal(g, "one", &who, SIGTERM, NULL, &f->err),
		SB_E_PROCESS_NOT_FOUND, &f->err);
}

static void
a_restarted_host_finds_programs_again(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_who who = { 0 };
	struct sb_guest_stream *s;
	char text[30000];
	int64_t pid;

	NEED_RUNTIME;
	if (strcmp(TEST_RUNTIME, "none") == 0)
		skip_because("runtime none has no box that keeps a guest");
	s = start(f, "read x; echo got $x", true, false, &who.pid);
	sb_guest_leave(s);
	sb_guests_free(g);
	hostfix_reopen(f);
	g = sb_guests_new(f->h, &f->err);
	assert_ok(sb_guest_attach(g, "one", &who, NULL, &s, &pid, &f->err), &f->err);
	assert_ok(sb_guest_input(g, "one", &who, false, "it\n", 3, NULL, &f->err), &f->err);
	assert_int_equal(collect(f, s, text, sizeof text).code, 0);
	assert_non_null(strstr(text, "got it\n"));
	sb_guest_leave(s);
}

static void
write_file(struct hostfix *f, const char *path, const char *text, size_t times)
{
	struct sb_guest_stream *s;

	assert_ok(sb_guest_open(g, "one", path, SB_GUEST_WRITING | SB_GUEST_PARENTS | SB_GUEST_NEW,
			  0644, NULL, &s, NULL, &f->err),
		&f->err);
	for (size_t i = 0; i < times; i++)
		assert_ok(sb_guest_write(s, text, strlen(text), NULL, &f->err), &f->err);
	assert_ok(sb_guest_flush(s, NULL, &f->err), &f->err);
	sb_guest_leave(s);
}

static void
files_are_written_read_and_told(void **state)
{
	struct hostfix *f = *state;
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_guest_entry e = { 0 }, *v = NULL;
	struct sb_guest_stream *s;
	size_t n = 0;

	sb_buf_init(&b, 1 << 20);
	NEED_RUNTIME;
	write_file(f, in_work("a/b/c.txt"), "0123456789", 10000);
	assert_ok(sb_guest_open(g, "one", in_work("a/b/c.txt"), 0, 0, NULL, &s, &e, &f->err),
		&f->err);
	assert_int_equal(e.size, 100000);
	assert_string_equal(e.name, "c.txt");
	assert_int_equal(e.kind, 'f');
	assert_int_equal(sb_guest_read(s, 99995, 10, NULL, &b, &f->err), 5);
	assert_memory_equal(b.data, "56789", 5);
	assert_int_equal(sb_guest_read(s, 100000, 10, NULL, &b, &f->err), 0);
	sb_guest_leave(s);
	sb_guest_entry_clear(&e);
	assert_fails(sb_guest_open(g, "one", in_work("nope"), 0, 0, NULL, &s, NULL, &f->err),
		SB_E_NOTFOUND, &f->err);
	assert_fails(sb_guest_open(g, "one", in_work("a"), 0, 0, NULL, &s, NULL, &f->err),
		SB_E_INVAL, &f->err);
	assert_fails(sb_guest_mkdir(g, "one", in_work("a"), NULL, NULL, &f->err), SB_E_EXISTS,
		&f->err);
	assert_ok(sb_guest_dir(g, "one", in_work("a"), 2, NULL, &v, &n, &f->err), &f->err);
	assert_int_equal(n, 2);
	assert_string_equal(v[1].name, "b/c.txt");
	sb_guest_entries_free(v, n);
	assert_ok(
		sb_guest_move(g, "one", in_work("a/b/c.txt"), in_work("x/y"), NULL, NULL, &f->err),
		&f->err);
	assert_ok(sb_guest_move(g, "one", in_work("x"), "/tmp/sb-guest-moved", NULL, NULL, &f->err),
		&f->err);
	assert_ok(sb_guest_stat(g, "one", "/tmp/sb-guest-moved/y", NULL, &e, &f->err), &f->err);
	assert_int_equal(e.size, 100000);
	sb_guest_entry_clear(&e);
	assert_ok(sb_guest_remove(g, "one", "/tmp/sb-guest-moved", NULL, &f->err), &f->err);
	assert_ok(sb_guest_remove(g, "one", "/tmp/sb-guest-moved", NULL, &f->err), &f->err);
	assert_fails(sb_guest_stat(g, "one", "/tmp/sb-guest-moved", NULL, NULL, &f->err),
		SB_E_NOTFOUND, &f->err);
}

static void
links_lead_nowhere_but_inside(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_stream *s;
	char text[30000];
	int64_t pid;

	NEED_RUNTIME;
	if (strcmp(TEST_RUNTIME, "none") == 0)
		skip_because("runtime none has no inside");
	/* The state directory of the host is nowhere in the box. */
	(void)snprintf(text, sizeof text, "ln -s %s there && ln -s / root", f->state_dir);
	s = start(f, text, false, false, &pid);
	assert_int_equal(collect(f, s, text, sizeof text).code, 0);
	sb_guest_leave(s);
	assert_fails(
		sb_guest_open(g, "one", in_work("there/host.db"), 0, 0, NULL, &s, NULL, &f->err),
		SB_E_NOTFOUND, &f->err);
	(void)snprintf(text, sizeof text, "%s/root%s/made", work, f->t.path);
	assert_int_not_equal(
		sb_guest_open(g, "one", text, SB_GUEST_WRITING, 0644, NULL, &s, NULL, &f->err), 0);
	assert_int_not_equal(sb_guest_mkdir(g, "one", "/usr/made", NULL, NULL, &f->err), 0);
}

static void
changes_are_told(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_stream *w;
	struct sb_guest_event ev;
	bool file = false, deep = false, gone = false, entry = false;

	NEED_RUNTIME;
	assert_ok(sb_guest_mkdir(g, "one", in_work("w"), NULL, NULL, &f->err), &f->err);
	assert_ok(sb_guest_watch(g, "one", in_work("w"), SB_GUEST_DEEP | SB_GUEST_ENTRIES, NULL, &w,
			  &f->err),
		&f->err);
	write_file(f, in_work("w/new/f"), "x", 1);
	assert_ok(sb_guest_remove(g, "one", in_work("w/new/f"), NULL, &f->err), &f->err);
	while (!(deep && gone) && sb_guest_next(w, 20000, NULL, &ev, &f->err) == 1) {
		file |= ev.change == SB_GUEST_CREATED && strcmp(ev.name, "new") == 0;
		entry |= file && ev.entry && ev.entry->kind == 'd';
		deep |= ev.change == SB_GUEST_CREATED && strcmp(ev.name, "new/f") == 0;
		gone |= ev.change == SB_GUEST_REMOVED && strcmp(ev.name, "new/f") == 0;
	}
	assert_true(file && deep && gone && entry);
	sb_guest_leave(w);
	assert_fails(sb_guest_watch(g, "one", in_work("nope"), 0, NULL, &w, &f->err), SB_E_NOTFOUND,
		&f->err);
}

static void
a_paused_or_destroyed_session_refuses(void **state)
{
	struct hostfix *f = *state;
	struct sb_guest_stream *s;
	struct sb_guest_event ev;
	int64_t pid;
	int r;

	NEED_RUNTIME;
	s = start(f, "sleep 1000", false, false, &pid);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	/* Its end may still be told. */
	do
		r = sb_guest_next(s, 20000, NULL, &ev, &f->err);
	while (r == 1);
	assert_fails(r, SB_E_CLOSED, &f->err);
	sb_guest_leave(s);
	assert_fails(sb_guest_stat(g, "one", work, NULL, NULL, &f->err), SB_E_SESSION_NOT_FOUND,
		&f->err);
}

/* One who gives up while the guest starts. */
struct leaver {
	const char *session;
	struct sb_cancel *cancel;
};

static void *
ask_and_leave(void *arg)
{
	struct leaver *l = arg;
	struct sb_host_call call = { .cancel = l->cancel, .deadline = SB_NEVER };
	struct sb_guest_running *v = NULL;
	size_t n = 0;

	if (sb_guest_list(g, l->session, &call, &v, &n, NULL) == 0)
		sb_guest_running_free(v, n);
	return NULL;
}

static void
who_leaves_takes_nobody_along(void **state)
{
	struct hostfix *f = *state;

	NEED_RUNTIME;
	for (int i = 0; i < 6; i++) {
		struct leaver l = { .cancel = sb_cancel_new(&f->err) };
		struct sb_guest_running *v = NULL;
		struct sb_host_session s;
		char id[16];
		size_t n = 0;
		pthread_t t;

		(void)snprintf(id, sizeof id, "leave%d", i);
		hostfix_create(f, id, &s);
		sb_host_session_clear(&s);
		l.session = id;
		assert_int_equal(pthread_create(&t, NULL, ask_and_leave, &l), 0);
		/* Later each time, so that some rounds meet the start. */
		(void)usleep(200u << i);
		sb_cancel_request(l.cancel);
		assert_ok(sb_guest_list(g, id, NULL, &v, &n, &f->err), &f->err);
		sb_guest_running_free(v, n);
		(void)pthread_join(t, NULL);
		sb_cancel_free(l.cancel);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(programs_have_streams_and_codes, setup, teardown),
		cmocka_unit_test_setup_teardown(much_output_waits_for_its_reader, setup, teardown),
		cmocka_unit_test_setup_teardown(input_arrives_and_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(terminals_have_a_size, setup, teardown),
		cmocka_unit_test_setup_teardown(programs_are_listed_joined_and_signalled, setup,
			teardown),
		cmocka_unit_test_setup_teardown(a_restarted_host_finds_programs_again, setup,
			teardown),
		cmocka_unit_test_setup_teardown(files_are_written_read_and_told, setup, teardown),
		cmocka_unit_test_setup_teardown(links_lead_nowhere_but_inside, setup, teardown),
		cmocka_unit_test_setup_teardown(changes_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(who_leaves_takes_nobody_along, setup, teardown),
		cmocka_unit_test_setup_teardown(a_paused_or_destroyed_session_refuses, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, probe, NULL);
}
