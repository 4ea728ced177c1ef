/* SPDX-License-Identifier: MIT */
/*
 * Tools over a connection: requests and answers of the far side, and the places it makes for
 * sandboxes.
 */
#include "config.h"

#include <tool/far.h>

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/str.h>
#include <provider/marks.h>
#include <tool/place.h>
#include <tool/message.h>
#include <tool/terms.h>

#include "tests/lib/tmpdir.h"

#define LONG 60000

/* A server in a thread and somebody who asks it. */
struct pair {
	struct tmpdir dir;
	int ends[2];
	pthread_t thread;
	struct sb_far *far;
	int served;
};

static void *
serve(void *arg)
{
	struct pair *p = arg;

	p->served = sb_serve_run(p->ends[1], p->ends[1], NULL);
	(void)shutdown(p->ends[1], SHUT_RDWR);
	return NULL;
}

static int
ask(struct pair *p, enum sb_serve_op op, struct sb_buf *args, sb_deadline d, struct sb_buf *reply,
	struct sb_error *err)
{
	return sb_far_ask(p->far, op, args, NULL, d, reply, err);
}

static int
setup(void **state)
{
	struct pair *p = calloc(1, sizeof *p);
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_error err = { 0 };
	const char *root[] = { NULL, NULL };

	sb_buf_init(&args, 4096);
	tmpdir_make(&p->dir);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, p->ends), 0);
	assert_int_equal(pthread_create(&p->thread, NULL, serve, p), 0);
	p->far = sb_far_new(p->ends[0], p->ends[0], &err);
	assert_non_null(p->far);
	root[0] = p->dir.path;
	sb_message_add_texts(&args, root);
	assert_ok(ask(p, SB_SERVE_ROOTS, &args, sb_deadline_in(LONG), &reply, &err), &err);
	*state = p;
	return 0;
}

static int
teardown(void **state)
{
	struct pair *p = *state;

	(void)shutdown(p->ends[0], SHUT_RDWR);
	(void)pthread_join(p->thread, NULL);
	sb_far_free(p->far);
	(void)close(p->ends[0]);
	(void)close(p->ends[1]);
	tmpdir_remove(&p->dir);
	free(p);
	return 0;
}

static int
write_file(struct pair *p, const char *path, const char *text, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;

	sb_buf_init(&args, 1u << 20);
	sb_message_add_text(&args, path);
	sb_buf_add_bytes(&args, text, strlen(text));
	return ask(p, SB_SERVE_WRITE, &args, sb_deadline_in(LONG), &reply, err);
}

static void
read_is(struct pair *p, const char *path, const char *want)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_error err = { 0 };
	struct sb_cursor c;
	const uint8_t *got;
	size_t len;

	sb_buf_init(&args, 4096);
	sb_message_add_text(&args, path);
	sb_buf_add_u32(&args, 0);
	sb_buf_add_u32(&args, 0);
	assert_ok(ask(p, SB_SERVE_READ, &args, sb_deadline_in(LONG), &reply, &err), &err);
	sb_cursor_init(&c, reply.data, reply.len);
	got = sb_cursor_bytes(&c, 1u << 20, &len);
	assert_int_equal(len, strlen(want));
	assert_memory_equal(got, want, len);
}

static void
files_travel(void **state)
{
	struct pair *p = *state;
	struct sb_error err = { 0 };

	assert_ok(write_file(p, "a/b", "text", &err), &err);
	read_is(p, "a/b", "text");
	/* Code and words come back as they were. */
	assert_fails(write_file(p, "../x", "", &err), SB_E_ESCAPE, &err);
	assert_non_null(strstr(err.msg, "../x"));
}

/* Starts a command; its name is in `id`. */
static void
create(struct pair *p, const char *command, char id[SB_TERMS_ID])
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	sb_autofree char *name = NULL;
	struct sb_error err = { 0 };
	struct sb_cursor c;

	sb_buf_init(&args, 4096);
	sb_message_add_text(&args, command);
	sb_message_add_texts(&args, NULL);
	sb_message_add_texts(&args, NULL);
	sb_message_add_text(&args, NULL);
	sb_buf_add_svarint(&args, -1);
	assert_ok(ask(p, SB_SERVE_TERM_CREATE, &args, sb_deadline_in(LONG), &reply, &err), &err);
	sb_cursor_init(&c, reply.data, reply.len);
	name = sb_message_text(&c);
	assert_non_null(name);
	(void)snprintf(id, SB_TERMS_ID, "%s", name);
}

static int
term_op(struct pair *p, enum sb_serve_op op, const char *id, sb_deadline d, int *code,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf args;
	sb_auto(sb_buf) struct sb_buf reply;
	struct sb_cursor c;
	int r;

	sb_buf_init(&args, 4096);
	sb_message_add_text(&args, id);
	r = ask(p, op, &args, d, &reply, err);
	sb_cursor_init(&c, reply.data, reply.len);
	if (r == 0 && code)
		*code = (int)sb_cursor_varint(&c);
	return r;
}

static void
a_wait_holds_up_nobody(void **state)
{
	struct pair *p = *state;
	struct sb_error err = { 0 };
	char id[SB_TERMS_ID];
	int code = -1;

	create(p, "sleep 1000", id);
	/* Given up: the answer that comes later is for nobody. */
	assert_fails(term_op(p, SB_SERVE_TERM_WAIT, id, sb_now_ms() + 20, NULL, &err), SB_E_TIMEOUT,
		&err);
	assert_ok(write_file(p, "meanwhile", "x", &err), &err);
	assert_ok(term_op(p, SB_SERVE_TERM_KILL, id, sb_deadline_in(LONG), NULL, &err), &err);
	assert_ok(term_op(p, SB_SERVE_TERM_WAIT, id, sb_deadline_in(LONG), &code, &err), &err);
	assert_int_equal(code, 128 + SIGKILL);
	assert_ok(term_op(p, SB_SERVE_TERM_RELEASE, id, sb_deadline_in(LONG), NULL, &err), &err);
	assert_fails(term_op(p, SB_SERVE_TERM_KILL, id, sb_deadline_in(LONG), NULL, &err),
		SB_E_TERMINAL_NOT_FOUND, &err);
}

static void *
ask_often(void *arg)
{
	struct pair *p = arg;

	for (int i = 0; i < 50; i++)
		read_is(p, "shared", "all the same");
	return NULL;
}

static void
many_ask_at_once(void **state)
{
	struct pair *p = *state;
	struct sb_error err = { 0 };
	pthread_t t[6];

	assert_ok(write_file(p, "shared", "all the same", &err), &err);
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(pthread_create(&t[i], NULL, ask_often, p), 0);
	for (size_t i = 0; i < 6; i++)
		(void)pthread_join(t[i], NULL);
}

static void
damaged_requests_are_refused(void **state)
{
	struct pair *p = *state;
	sb_auto(sb_buf) struct sb_buf args;
	struct sb_error err = { 0 };

	sb_buf_init(&args, 4096);
	sb_buf_add_varint(&args, 1000);
	for (int op = SB_SERVE_READ; op <= SB_SERVE_PLACE_DESTROY; op++) {
		sb_auto(sb_buf) struct sb_buf reply;

		assert_fails(
			ask(p, (enum sb_serve_op)op, &args, sb_deadline_in(LONG), &reply, &err),
			SB_E_PROTO, &err);
	}
	for (int op = 14; op < 256; op += 60) {
		sb_auto(sb_buf) struct sb_buf reply;

		assert_fails(
			ask(p, (enum sb_serve_op)op, &args, sb_deadline_in(LONG), &reply, &err),
			SB_E_UNSUPPORTED, &err);
	}
	assert_ok(write_file(p, "f", "1", &err), &err);
	read_is(p, "f", "1");
}

static void
a_connection_that_ends_ends_every_call(void **state)
{
	struct pair *p = *state;
	struct sb_error err = { 0 };

	(void)shutdown(p->ends[1], SHUT_RDWR);
	assert_fails(write_file(p, "x", "", &err), SB_E_CLOSED, &err);
	assert_true(sb_far_check(p->far, &err) < 0);
}

/* Places. */
static int
place_setup(void **state)
{
	struct tmpdir *t = calloc(1, sizeof *t);

	tmpdir_make(t);
	assert_int_equal(setenv("SBSYNC_BOX_DIR", t->path, 1), 0);
	*state = t;
	return 0;
}

static void
a_place_is_made_found_and_destroyed(void **state)
{
	const struct tmpdir *t = *state;
	const char *names[] = { "/home/me/data", "/x/..", NULL },
		   *labels[] = { "a=1", "b=2", NULL }, *other[] = { "a=2", NULL };
	struct sb_place_wish w = { .id = "sb-1",
		.names = names,
		.labels = labels,
		.may_create = true };
	struct sb_place place = { 0 }, again = { 0 }, found = { 0 };
	struct sb_error err = { 0 };
	struct stat st;

	assert_fails(sb_place_find("sb-1", NULL, NULL, &found, &err), SB_E_SANDBOX_NOT_FOUND, &err);
	assert_ok(sb_place_prepare(&w, &place, &err), &err);
	assert_true(place.fresh);
	assert_int_equal(place.dirs.n, 2);
	assert_true(sb_str_ends(place.dirs.v[0], "/dirs/01-data"));
	assert_true(sb_str_ends(place.dirs.v[1], "/dirs/02-dir"));
	assert_int_equal(stat(place.root, &st) | stat(place.dirs.v[1], &st), 0);
	/* The same, also when a crash has left nothing but the record. */
	assert_int_equal(rmdir(place.root), 0);
	assert_ok(sb_place_prepare(&w, &again, &err), &err);
	assert_false(again.fresh);
	assert_string_equal(again.instance, place.instance);
	assert_int_equal(stat(place.root, &st), 0);
	assert_ok(sb_place_find("sb-1", place.instance, labels, &found, &err), &err);
	assert_string_equal(found.root, place.root);
	sb_place_free(&found);
	assert_fails(sb_place_find("sb-1", "another", NULL, &found, &err), SB_E_SANDBOX_NOT_FOUND,
		&err);
	assert_fails(sb_place_find("sb-1", NULL, other, &found, &err), SB_E_SANDBOX_NOT_FOUND,
		&err);
	/* Another instance is not ours to remove. */
	assert_ok(sb_place_destroy("sb-1", "another", &err), &err);
	assert_int_equal(stat(place.root, &st), 0);
	assert_ok(sb_place_destroy("sb-1", place.instance, &err), &err);
	assert_ok(sb_place_destroy("sb-1", place.instance, &err), &err);
	assert_int_equal(fstatat(t->fd, "sb-1", &st, 0), -1);
	/* Reattaching does not make a new one unless told. */
	w.instance = place.instance;
	w.may_create = false;
	sb_place_free(&again);
	assert_fails(sb_place_prepare(&w, &again, &err), SB_E_SANDBOX_NOT_FOUND, &err);
	sb_place_free(&place);
}

static void
a_named_root_of_somebody_else_is_refused(void **state)
{
	const struct tmpdir *t = *state;
	sb_autofree char *root = sb_str_printf("%s/named", t->path),
			 *file = sb_str_printf("%s/named/theirs", t->path);
	struct sb_place_wish w = { .id = "sb-2", .root = root, .may_create = true };
	struct sb_place place = { 0 };
	struct sb_error err = { 0 };
	struct stat st;

	assert_int_equal(mkdir(root, 0755), 0);
	assert_ok(sb_file_replace(AT_FDCWD, file, "x", 1, 0644, &err), &err);
	assert_fails(sb_place_prepare(&w, &place, &err), SB_E_EXISTS, &err);
	assert_int_equal(unlink(file), 0);
	assert_ok(sb_place_prepare(&w, &place, &err), &err);
	assert_ok(sb_file_replace(AT_FDCWD, file, "x", 1, 0644, &err), &err);
	sb_place_free(&place);
	assert_ok(sb_place_prepare(&w, &place, &err), &err);
	/* It was there before: it stays, empty. */
	assert_ok(sb_place_destroy("sb-2", place.instance, &err), &err);
	assert_int_equal(stat(file, &st), -1);
	assert_int_equal(stat(root, &st), 0);
	sb_place_free(&place);
}

static void
bad_places_are_refused(void **state)
{
	static const char *const ids[] = { "", "..", ".x", "-x", "a/b", "a b", "\n" };
	const struct tmpdir *t = *state;
	struct sb_place place = { 0 };
	struct sb_error err = { 0 };

	for (size_t i = 0; i < sizeof ids / sizeof *ids; i++) {
		struct sb_place_wish w = { .id = ids[i], .may_create = true };

		assert_fails(sb_place_prepare(&w, &place, &err), SB_E_INVAL, &err);
		assert_fails(sb_place_destroy(ids[i], NULL, &err), SB_E_INVAL, &err);
	}
	assert_int_equal(mkdirat(t->fd, "sb-3", 0700), 0);
	tmpdir_file(t, "sb-3/record", "sandbox 1\nid sb-3\n");
	assert_fails(sb_place_find("sb-3", NULL, NULL, &place, &err), SB_E_CORRUPT, &err);
	/* What it is cannot be read: it is not taken for gone. */
	assert_fails(sb_place_destroy("sb-3", NULL, &err), SB_E_CORRUPT, &err);
	tmpdir_file(t, "sb-3/record", "sandbox 2\n");
	assert_fails(sb_place_find("sb-3", NULL, NULL, &place, &err), SB_E_VERSION, &err);
}

/* Marks around stderr. */
static void
collect(const void *data, size_t len, void *arg)
{
	sb_buf_add(arg, data, len);
}

static void
marks_are_found_however_they_come(void **state)
{
	static const char in[] = "motd\n\0sb-start:abc\0sb-start:abcd\ntext\0and "
				 "\0sb-end:xyz:1:2\n more\0sb-end:abcd:7:0\nrest";
	static const char want[] = "text\0and \0sb-end:xyz:1:2\n more";

	(void)state;
	for (size_t step = 1; step < sizeof in; step += step < 9 ? 1 : 7) {
		sb_auto(sb_buf) struct sb_buf got;
		struct sb_error err = { 0 };
		struct sb_marks m;

		sb_buf_init(&got, 1000);
		assert_ok(sb_marks_init(&m, "abcd", &err), &err);
		for (size_t i = 0; i < sizeof in - 1; i += step)
			sb_marks_feed(&m, in + i,
				sizeof in - 1 - i < step ? sizeof in - 1 - i : step, collect, &got);
		assert_true(m.ended);
		assert_int_equal(m.code, 7);
		assert_int_equal(m.signal, 0);
		assert_int_equal(got.len, sizeof want - 1);
		assert_memory_equal(got.data, want, sizeof want - 1);
		sb_marks_free(&m);
	}
}

/* What is held back for the sake of a mark comes at the end, if there was a beginning. */
static void
what_is_held_back_comes_at_the_end(void **state)
{
	static const struct {
		const char *in, *want;
	} cases[] = { { "motd, and no mark", "" }, { "sb-start:n\ntext", "text" } };

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		sb_auto(sb_buf) struct sb_buf got;
		struct sb_error err = { 0 };
		struct sb_marks m;
		char in[64] = "";

		sb_buf_init(&got, 1000);
		assert_ok(sb_marks_init(&m, "n", &err), &err);
		memcpy(in + 1, cases[i].in, strlen(cases[i].in));
		sb_marks_feed(&m, in, strlen(cases[i].in) + 1, collect, &got);
		sb_marks_flush(&m, collect, &got);
		assert_int_equal(got.len, strlen(cases[i].want));
		assert_memory_equal(got.data, cases[i].want, got.len);
		sb_marks_free(&m);
	}
}

static void
a_cut_is_no_end(void **state)
{
	static const char *const bad[] = { "sb-end:n:", "sb-end:n:1", "sb-end:n:1:0",
		"sb-end:n:x:0\n", "sb-end:n:256:0\n", "sb-end:n:-1:0\n", "sb-end:n:1:999\n",
		"sb-end:n:1:0 \n" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		sb_auto(sb_buf) struct sb_buf got;
		struct sb_error err = { 0 };
		struct sb_marks m;

		sb_buf_init(&got, 1000);
		assert_ok(sb_marks_init(&m, "n", &err), &err);
		sb_marks_feed(&m, "\0sb-start:n\n", 12, collect, &got);
		sb_marks_feed(&m, "\0", 1, collect, &got);
		sb_marks_feed(&m, bad[i], strlen(bad[i]), collect, &got);
		assert_false(m.ended);
		sb_marks_flush(&m, collect, &got);
		/* Then it was text. */
		assert_int_equal(got.len, strlen(bad[i]) + 1);
		sb_marks_free(&m);
	}
}

int
main(void)
{
#define P(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define B(name) cmocka_unit_test_setup_teardown(name, place_setup, tmpdir_teardown)
	const struct CMUnitTest tests[] = {
		P(files_travel),
		P(a_wait_holds_up_nobody),
		P(many_ask_at_once),
		P(damaged_requests_are_refused),
		P(a_connection_that_ends_ends_every_call),
		B(a_place_is_made_found_and_destroyed),
		B(a_named_root_of_somebody_else_is_refused),
		B(bad_places_are_refused),
		cmocka_unit_test(marks_are_found_however_they_come),
		cmocka_unit_test(what_is_held_back_comes_at_the_end),
		cmocka_unit_test(a_cut_is_no_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
