/* SPDX-License-Identifier: MIT */
/*
 * Syncing with machines that have nothing but sh, find and tar: the system's tools, busybox by
 * PATH, busybox alone in a root of its own.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/spawn.h>
#include <base/str.h>
#include <sync/remote/agentless.h>
#include <sync/remote/remote.h>

#include "tests/lib/tmpdir.h"

static struct tmpdir tmp;
static const char *const dir = tmp.path;

/* Runs a command of the shell; its output, up to `size`. */
static int
shell_out(const char *command, char *out, size_t size)
{
	const char *argv[] = { "sh", "-c", command, NULL };
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf b;
	sb_auto(sb_buf) struct sb_buf e;
	int r;

	sb_buf_init(&b, 4u << 20);
	sb_buf_init(&e, 4096);
	so.search_path = true;
	so.cwd = dir;
	r = sb_child_run(argv, &so, NULL, 0, &b, &e, NULL, sb_deadline_in(60000), NULL);
	if (e.len)
		print_message("# %s: %s\n", command, (char *)e.data);
	if (out)
		(void)snprintf(out, size, "%s", (char *)b.data);
	return r;
}

#define SHELL(...) \
	do { \
		sb_autofree char *c_ = sb_str_printf(__VA_ARGS__); \
		assert_int_equal(shell_out(c_, NULL, 0), 0); \
	} while (0)

/*
 * A place to sync with. `base` is where its trees are, seen from here; `prefix` what its own paths
 * begin with.
 */
struct place {
	const char *name;
	char *rsh;
	char base[300];
	char prefix[300];
	bool there;
	struct sb_remote *remote;
	struct sb_endpoint to;
};

static struct place places[3];

static int
set_up(void **state)
{
	static char host[] = "far";
	char out[200];

	(void)state;
	tmpdir_make(&tmp);
	places[0] = (struct place){ .name = "GNU", .there = true };
	places[0].rsh = sb_str_printf("sh -c 'shift; exec sh -c \"$1\"' rsh");
	(void)snprintf(places[0].base, sizeof places[0].base, "%s/gnu", dir);
	places[1] = (struct place){ .name = "busybox by PATH" };
	places[1].rsh =
		sb_str_printf("env PATH=%s/bin busybox sh -c 'shift; exec sh -c \"$1\"' rsh", dir);
	(void)snprintf(places[1].base, sizeof places[1].base, "%s/bb", dir);
	places[2] = (struct place){ .name = "busybox alone in a root" };
	places[2].rsh = sb_str_printf("chroot %s/root /bin/busybox sh -c 'shift; PATH=/bin; export "
				      "PATH; exec sh -c \"$1\"' rsh",
		dir);
	(void)snprintf(places[2].base, sizeof places[2].base, "%s/root/far", dir);
	(void)shell_out("command -v busybox", out, sizeof out);
	if (out[0]) {
		SHELL("mkdir bin && busybox --install -s bin && ln -sf $(command -v busybox) "
		      "bin/busybox");
		places[1].there = true;
		if (getuid() == 0)
			places[2].there = shell_out("mkdir -p root/bin root/dev root/tmp && cp "
						    "$(command -v busybox) root/bin/busybox && "
						    "for l in $(ldd root/bin/busybox 2>/dev/null | "
						    "grep -o '/[^ ]*'); do mkdir -p root$(dirname "
						    "$l) && cp $l root$l; done; "
						    "chroot root /bin/busybox --install -s /bin && "
						    ": >root/dev/null",
						  NULL, 0) == 0;
	}
	for (int i = 0; i < 3; i++) {
		struct place *p = &places[i];
		struct sb_remote_opts o = SB_REMOTE_OPTS_INIT;

		p->to = (struct sb_endpoint){ .kind = SB_ENDPOINT_SSH, .host = host };
		o.to = &p->to;
		o.rsh = p->rsh;
		p->remote = sb_remote_open(&o, SB_NEVER, NULL);
		(void)mkdir(p->base, 0755);
		(void)snprintf(p->prefix, sizeof p->prefix, "%s", i == 2 ? "/far" : p->base);
	}
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		sb_remote_free(places[i].remote);
		free(places[i].rsh);
	}
	tmpdir_remove(&tmp);
	return 0;
}

#define EACH_PLACE(p) \
	for (struct place *p = places; p < places + 3; p++) \
		if (!p->there) \
			print_message("# not tried: %s\n", p->name); \
		else

static void
agentless(struct place *p, const char *name, struct sb_agentless *a, char root[400])
{
	(void)snprintf(root, 400, "%s/%s", p->prefix, name);
	*a = (struct sb_agentless){ .remote = p->remote,
		.root = root,
		.deadline = sb_deadline_in(60000) };
}

/* Everything about two trees is the same. Link times and the root itself are not compared. */
static void
same_trees(const char *a, const char *b)
{
	static char one[1 << 20], two[1 << 20];
	const char *paths[] = { a, b };
	char *outs[] = { one, two };

	for (int i = 0; i < 2; i++) {
		sb_autofree char *c = sb_str_printf(
			"cd '%s' && find . -mindepth 1 -printf '%%P|%%y|%%m|%%l|' "
			"-type f -printf '%%s|%%Ts|' , -printf '\\n' | LC_ALL=C sort; "
			"find . -type f -exec cksum {} + | LC_ALL=C sort",
			paths[i]);

		assert_int_equal(shell_out(c, outs[i], sizeof one), 0);
	}
	if (strcmp(one, two) != 0)
		fail_msg("%s and %s differ:\n%s\n---\n%s", a, b, one, two);
}

/* Names and things of every kind. */
static void
make_tree(const char *path)
{
	SHELL("mkdir -p '%s' && cd '%s' && mkdir -p 'a b/c' ./-d empty ro .hid 'q\"uo' && echo one "
	      ">'a b/c/one' && echo two >./-d/-two && "
	      "printf x >'it'\\''s' && : >none && echo '$HOME' >'$HOME' && echo star >'*' && echo "
	      "b >'back\\\\slash' && "
	      "printf 'caf\\303\\251' >'caf\\303\\251' && head -c 300000 /dev/urandom >big && "
	      "chmod 755 big && ln -s 'a b/c' dirlink && ln -s nowhere dangling && "
	      "ln -s one 'a b/c/l' && echo r >ro/r && chmod 444 ro/r && chmod 555 ro && ln 'a "
	      "b/c/one' hard && mkfifo pipe && touch -d '2001-02-03 04:05:06.789' big",
		path, path);
	SHELL("cd '%s' && printf nl >'new\nline' && ln -s 'to\nthere' 'nl link'", path);
}

static void
fetch_is(struct place *p, const char *name, uint64_t files, uint64_t deleted)
{
	struct sb_agentless a;
	struct sb_agentless_stats st;
	struct sb_error err = { 0 };
	sb_autofree char *shadow = sb_str_printf("%s/shadow-%s-%d", dir, name, (int)(p - places));
	sb_autofree char *record = sb_str_printf("%s.record", shadow);
	char root[400];

	agentless(p, name, &a, root);
	assert_ok(sb_agentless_fetch(&a, shadow, record, &st, &err), &err);
	if (st.files != files || st.deleted != deleted)
		fail_msg("%s: %d files, %d deleted; want %d and %d", p->name, (int)st.files,
			(int)st.deleted, (int)files, (int)deleted);
}

static void
fetch_brings_everything(void **state)
{
	(void)state;
	EACH_PLACE(p)
	{
		sb_autofree char *far = sb_str_printf("%s/t1", p->base);
		sb_autofree char *copy = sb_str_printf("%s/copy1-%d", dir, (int)(p - places));
		sb_autofree char *shadow = sb_str_printf("%s/shadow-t1-%d", dir, (int)(p - places));

		make_tree(far);
		/* Old enough not to be in doubt. */
		SHELL("sleep 1.1");
		fetch_is(p, "t1", 12, 0);
		SHELL("cp -a '%s' '%s' && rm '%s/pipe'", far, copy, copy);
		same_trees(copy, shadow);
		fetch_is(p, "t1", 0, 0);
		SHELL("cd '%s' && echo more >>'a b/c/one' && rm hard none && chmod 755 ro && rm -f "
		      "ro/r && chmod 555 ro && rm dirlink && mkdir dirlink && "
		      "echo in >dirlink/f && rm -rf 'q\"uo' && echo file >'q\"uo' && chmod 600 big "
		      "&& sleep 1.1",
			far);
		fetch_is(p, "t1", 4, 3);
		SHELL("rm -rf '%s' && cp -a '%s' '%s' && rm '%s/pipe'", copy, far, copy, copy);
		same_trees(copy, shadow);
		/* A shadow somebody spoilt is put right when the record is gone. */
		SHELL("rm -f '%s.record' && echo junk >'%s/junk'", shadow, shadow);
		fetch_is(p, "t1", 11, 1);
		same_trees(copy, shadow);
	}
}

static void
push_is(struct place *p, const char *name, const char *shadow, uint64_t files, uint64_t deleted)
{
	struct sb_agentless a;
	struct sb_agentless_stats st;
	struct sb_error err = { 0 };
	sb_autofree char *record = sb_str_printf("%s.record", shadow);
	char root[400];

	agentless(p, name, &a, root);
	assert_ok(sb_agentless_push(&a, shadow, record, false, 1000, &st, &err), &err);
	if (st.files != files || st.deleted != deleted)
		fail_msg("%s: %d sent, %d deleted; want %d and %d", p->name, (int)st.files,
			(int)st.deleted, (int)files, (int)deleted);
}

static void
push_makes_it_equal(void **state)
{
	(void)state;
	EACH_PLACE(p)
	{
		sb_autofree char *far = sb_str_printf("%s/new/t2", p->base);
		sb_autofree char *shadow = sb_str_printf("%s/mine-%d", dir, (int)(p - places));

		make_tree(shadow);
		SHELL("rm '%s/pipe'", shadow);
		push_is(p, "new/t2", shadow, 16, 0);
		same_trees(shadow, far);
		push_is(p, "new/t2", shadow, 0, 0);
		/* Every kind of change, also of type, also in directories that are closed. */
		SHELL("cd '%s' && echo more >>'a b/c/one' && chmod 755 ro && echo n >ro/n && chmod "
		      "444 ro/n && chmod 555 ro && rm -rf 'a b/c' ./-d && "
		      "echo was-dir >./-d && rm dangling && mkdir dangling && echo f >dangling/f "
		      "&& rm dirlink && echo f >dirlink && ln -sf elsewhere \"it's\" && chmod 700 "
		      "big && rm none",
			shadow);
		push_is(p, "new/t2", shadow, 6, 5);
		same_trees(shadow, far);
		push_is(p, "new/t2", shadow, 0, 0);
		SHELL("ls -A '%s' | grep -c sbsync-agentless | grep -qx 0", far);
		/* What others made there goes, special files do not. */
		SHELL("cd '%s' && mkdir -p x/y && echo z >x/y/z && mkfifo p", far);
		push_is(p, "new/t2", shadow, 0, 3);
		SHELL("test -p '%s/p' && rm '%s/p'", far, far);
		same_trees(shadow, far);
	}
}

static void
push_is_careful(void **state)
{
	struct place *p = &places[0];
	struct sb_agentless a;
	struct sb_agentless_stats st;
	struct sb_error err = { 0 };
	char root[500], shadow[300], record[300];

	(void)state;
	(void)snprintf(shadow, sizeof shadow, "%s/careful", dir);
	(void)snprintf(record, sizeof record, "%s/careful.record", dir);
	SHELL("mkdir -p gnu/t3 && cd gnu/t3 && for i in $(seq 150); do echo $i >f$i; done; sleep "
	      "1.1");
	agentless(p, "t3", &a, root);
	assert_ok(sb_agentless_fetch(&a, shadow, record, &st, &err), &err);
	SHELL("cd '%s' && rm f?? && echo mine >f1", shadow);
	/* Somebody else was there: nothing is done. */
	SHELL("echo theirs >gnu/t3/f2");
	assert_fails(sb_agentless_push(&a, shadow, record, true, 1000, &st, &err), SB_E_CHANGED,
		&err);
	assert_non_null(strstr(err.msg, "f2"));
	SHELL("grep -qx 1 gnu/t3/f1 && grep -qx theirs gnu/t3/f2 && test -e gnu/t3/f33");
	/* Too much would go. */
	assert_fails(sb_agentless_push(&a, shadow, record, false, 10, &st, &err), SB_E_BRAKE, &err);
	assert_non_null(strstr(err.msg, "--max-delete"));
	assert_ok(sb_agentless_push(&a, shadow, record, false, 90, &st, &err), &err);
	SHELL("grep -qx mine gnu/t3/f1 && grep -qx 2 gnu/t3/f2 && ! test -e gnu/t3/f33");
	/* With the record of the push, the next one is expected. */
	SHELL("echo again >'%s/f1'", shadow);
	assert_ok(sb_agentless_push(&a, shadow, record, true, 90, &st, &err), &err);
	assert_int_equal(st.files, 1);
}

/* Another file of the same size and time (packers give all files one time) is another file. */
static void
push_knows_what_was_replaced(void **state)
{
	struct sb_agentless_list brought = { 0 };
	struct sb_agentless a;
	struct sb_agentless_stats st;
	struct sb_error err = { 0 };
	char root[500], shadow[300], record[300];
	int fd;

	(void)state;
	(void)snprintf(shadow, sizeof shadow, "%s/twins", dir);
	(void)snprintf(record, sizeof record, "%s/twins.record", dir);
	SHELL("mkdir -p gnu/twins && cd gnu/twins && echo 1 >a && echo 2 >b && touch -d @1000000 a "
	      "b");
	agentless(&places[0], "twins", &a, root);
	assert_ok(sb_agentless_fetch(&a, shadow, record, &st, &err), &err);
	fd = open(shadow, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_ok(sb_agentless_list_local(&a, fd, &brought, &err), &err);
	(void)close(fd);
	SHELL("cd '%s' && mv a b", shadow);
	a.brought = &brought;
	assert_ok(sb_agentless_push(&a, shadow, record, true, 90, &st, &err), &err);
	assert_int_equal(st.files, 1);
	SHELL("grep -qx 1 gnu/twins/b && ! test -e gnu/twins/a");
	assert_ok(sb_agentless_push(&a, shadow, record, true, 90, &st, &err), &err);
	sb_agentless_list_free(&brought);
}

static bool
ignore_x(const char *path, bool is_dir, void *arg)
{
	return strcmp(path, "x") == 0;
}

static void
ignored_paths_are_left_alone(void **state)
{
	struct place *p = &places[0];
	struct sb_agentless a;
	struct sb_agentless_stats st;
	struct sb_error err = { 0 };
	char root[500], shadow[300], record[300];

	(void)state;
	(void)snprintf(shadow, sizeof shadow, "%s/ign", dir);
	(void)snprintf(record, sizeof record, "%s/ign.record", dir);
	SHELL("mkdir -p gnu/t4/x/deep gnu/t4/x-y && echo 1 >gnu/t4/x/deep/f && echo 2 "
	      ">gnu/t4/x-y/f && echo 3 >gnu/t4/z");
	agentless(p, "t4", &a, root);
	a.ignored = ignore_x;
	assert_ok(sb_agentless_fetch(&a, shadow, record, &st, &err), &err);
	assert_int_equal(st.files, 2);
	SHELL("! test -e ign/x && mkdir ign/x && echo mine >ign/x/m && rm ign/z");
	assert_ok(sb_agentless_push(&a, shadow, record, false, 100, &st, &err), &err);
	SHELL("test -e gnu/t4/x/deep/f && ! test -e gnu/t4/x/m && ! test -e gnu/t4/z");
}

static void
what_cannot_be_read_is_an_error(void **state)
{
	struct place *p = &places[0];
	struct sb_agentless a;
	struct sb_agentless_list l;
	struct sb_agentless_stats st;
	struct sb_error err = { 0 };
	char root[400];

	(void)state;
	agentless(p, "not-there", &a, root);
	assert_ok(sb_agentless_list_far(&a, &l, &err), &err);
	assert_true(l.absent);
	assert_fails(sb_agentless_fetch(&a, "/nonexistent/shadow", "/nonexistent/r", &st, &err),
		err.code, &err);
	SHELL("echo x >gnu/file");
	agentless(p, "file", &a, root);
	assert_fails(sb_agentless_list_far(&a, &l, &err), SB_E_PEER, &err);
	assert_non_null(strstr(err.msg, "not a directory"));
	if (getuid() != 0) {
		SHELL("mkdir -p gnu/shut/in && chmod 0 gnu/shut/in");
		agentless(p, "shut", &a, root);
		assert_fails(sb_agentless_list_far(&a, &l, &err), SB_E_PEER, &err);
		SHELL("chmod 700 gnu/shut/in");
	}
}

/* A far side that lies: a find and a tar of its own. */
static void
lying_far_side(void **state)
{
	static const struct {
		const char *names; /* what tar sends, instead of the file "f" that is asked for */
		const char *how;
	} rows[] = {
		{ "../evil", "-P" },
		{ "/tmp/sbagentless-evil", "-P" },
		{ "g", "" },
		{ "d", "" },
		{ "l", "" },
	};
	struct sb_remote_opts o = SB_REMOTE_OPTS_INIT;
	struct sb_endpoint to = { .kind = SB_ENDPOINT_SSH, .host = (char[]){ "far" } };

	(void)state;
	SHELL("mkdir -p lie lie/d liebin evil-in && echo f >lie/f && echo g >lie/g && ln -s "
	      "/etc/passwd lie/l && echo e >evil");
	o.to = &to;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		sb_autofree char *rsh = sb_str_printf(
			"env PATH=%s/liebin:/usr/bin:/bin sh -c 'shift; exec sh -c \"$1\"' rsh",
			dir);
		sb_autofree char *root = sb_str_printf("%s/lie", dir);
		sb_autofree char *shadow = sb_str_printf("%s/lie-shadow%zu", dir, i);
		sb_autofree char *record = sb_str_printf("%s/lie-record%zu", dir, i);
		struct sb_agentless a = { .root = root, .deadline = sb_deadline_in(30000) };
		struct sb_agentless_stats st;
		struct sb_error err = { 0 };
		struct sb_remote *r;

		SHELL("cat >liebin/tar <<'END'\n#!/bin/sh\ncase $1 in --version) echo GNU;; *) cat "
		      ">/dev/null; cd %s/lie && exec /bin/tar %s -cf - %s;; esac\nEND\nchmod 755 "
		      "liebin/tar",
			dir, rows[i].how, rows[i].names);
		o.rsh = rsh;
		r = sb_remote_open(&o, SB_NEVER, &err);
		a.remote = r;
		if (sb_agentless_fetch(&a, shadow, record, &st, &err) >= 0)
			fail_msg("%s was taken", rows[i].names);
		sb_remote_free(r);
		SHELL("! test -e evil-in/evil && ! test -L '%s/f' && ! test -e "
		      "/tmp/sbagentless-evil",
			shadow);
	}
}

static void
listings_are_checked(void **state)
{
#define ROW(s) s, sizeof(s) - 1
	static const struct {
		const char *form;
		const char *data;
		size_t len;
		bool good;
	} rows[] = {
		{ "printf", ROW("d 755 0 1.5 1 7 \0\0"), true },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 5 1.000000001 1 8 a\0\0"), true },
		{ "printf", ROW("d 755 0 1 1 7 \0\0l 777 5 1 1 8 a\0x\0"), true },
		{ "printf", ROW(""), false },
		{ "printf", ROW("f 644 5 1 1 8 a\0\0"), false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 5 1 1 8 ../a\0\0"), false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 5 1 1 8 /a\0\0"), false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 5 1 1 8 a//b\0\0"), false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 5 1 1 8 a/b\0\0"), false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 5 1 1 8 a\0\0f 644 5 1 1 8 a/b\0\0"),
			false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 5 1 1 8 a\0\0f 644 5 1 1 8 a\0\0"),
			false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 -5 1 1 8 a\0\0"), false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0f 644 5 1 1 8 a\0"), false },
		{ "printf", ROW("d 755 0 1 1 7 \0\0l 777 5 1 1 8 a\0\0"), false },
		{ "printf", ROW("d 755 0 99999999999999999999 1 7 \0\0"), false },
		{ "stat",
			ROW(".\0./a\0\0"
			    "41ed 0 1 1 7\n81a4 5 1 1 8\n"),
			true },
		{ "stat",
			ROW(".\0./a\0\0"
			    "41ed 0 1 1 7\na1ff 5 1 1 8\nto\0"),
			true },
		{ "stat",
			ROW(".\0./a\0\0"
			    "41ed 0 1 1 7\n"),
			false },
		{ "stat",
			ROW(".\0./../a\0\0"
			    "41ed 0 1 1 7\n81a4 5 1 1 8\n"),
			false },
		{ "stat",
			ROW(".\0a\0\0"
			    "41ed 0 1 1 7\n81a4 5 1 1 8\n"),
			false },
		{ "stat", ROW(".\0./a\0"), false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		sb_auto(sb_agentless_list) struct sb_agentless_list l = { 0 };
		struct sb_error err = { 0 };
		bool got = sb_agentless_list_parse(rows[i].form, rows[i].data, rows[i].len, &l,
				   &err) >= 0;

		if (got != rows[i].good)
			fail_msg("row %zu: %d (%s)", i, got, err.msg);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(listings_are_checked),
		cmocka_unit_test(fetch_brings_everything),
		cmocka_unit_test(push_makes_it_equal),
		cmocka_unit_test(push_is_careful),
		cmocka_unit_test(push_knows_what_was_replaced),
		cmocka_unit_test(ignored_paths_are_left_alone),
		cmocka_unit_test(what_cannot_be_read_is_an_error),
		cmocka_unit_test(lying_far_side),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
