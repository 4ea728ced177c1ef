/* SPDX-License-Identifier: MIT */
/* The command lines of Docker's sandboxes, against a stub of both that records every call. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <base/strlist.h>
#include <sb/docker.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

static struct tmpdir *dir;
static char *old_path;

/* A PATH with these stubs alone; their state is the scratch directory. */
static void
install(bool sbx, bool docker)
{
	const char *build = getenv("SB_TOP_BUILDDIR");
	sb_autofree char *stub =
		sb_str_printf("%s/tests/lib/dockerstub", build && *build ? build : ".");
	sb_autofree char *full = realpath(stub, NULL);
	sb_autofree char *path = sb_str_printf("%s/bin:/usr/bin:/bin", dir->path);

	assert_non_null(full);
	assert_int_equal(mkdirat(dir->fd, "bin", 0755), 0);
	if (sbx)
		assert_int_equal(symlinkat(full, dir->fd, "bin/sbx"), 0);
	if (docker)
		assert_int_equal(symlinkat(full, dir->fd, "bin/docker"), 0);
	if (!docker) {
		free(path);
		path = sb_str_printf("%s/bin", dir->path);
	}
	assert_int_equal(setenv("PATH", path, 1), 0);
	assert_int_equal(setenv("STUB_STATE", dir->path, 1), 0);
}

static int
setup(void **state)
{
	int r = tmpdir_setup(state);

	dir = *state;
	old_path = strdup(getenv("PATH"));
	(void)unsetenv("DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND");
	return r;
}

static int
teardown(void **state)
{
	(void)setenv("PATH", old_path, 1);
	free(old_path);
	return tmpdir_teardown(state);
}

static struct sb_docker *
open_stub(bool sbx)
{
	struct sb_error err = { 0 };
	struct sb_docker *d = sb_docker_new(sbx, &err);

	assert_non_null(d);
	assert_int_equal(sb_docker_is_sbx(d), sbx);
	return d;
}

/* The file of the nth call: its items with '|' between them. */
static const char *
call_of(int n, const char *what)
{
	static char text[65536];
	char name[64];
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	(void)snprintf(name, sizeof name, "calls/%03d.%s", n, what);
	if (sb_file_read(dir->fd, name, sizeof text - 1, &b, &err) < 0)
		return "no such call";
	for (size_t i = 0; i < b.len; i++)
		text[i] = b.data[i] ? (char)b.data[i] : '|';
	text[b.len ? b.len - (text[b.len - 1] == '|') : 0] = '\0';
	return text;
}

/* The words of the nth call without the program's path. */
static const char *
words_of(int n)
{
	const char *text = call_of(n, "argv");
	const char *bar = strchr(text, '|');

	return bar ? bar + 1 : text;
}

static bool
has_env(int n, const char *pair)
{
	sb_autofree char *all = sb_str_printf("|%s|", call_of(n, "env"));
	sb_autofree char *want = sb_str_printf("|%s|", pair);

	return strstr(all, want) != NULL;
}

static void
a_box(const char *name, const char *workspaces, size_t len)
{
	sb_autofree char *path = sb_str_printf("boxes/%s", name);
	sb_autofree char *file = sb_str_printf("boxes/%s/workspaces", name);
	struct sb_error err = { 0 };

	assert_true(mkdirat(dir->fd, "boxes", 0700) == 0 || errno == EEXIST);
	assert_int_equal(mkdirat(dir->fd, path, 0700), 0);
	assert_ok(sb_file_replace(dir->fd, file, workspaces, len, 0600, &err), &err);
}

static void
sbx_is_taken_when_wanted_and_there(void **state)
{
	struct sb_error err = { 0 };
	struct sb_docker *d;

	(void)state;
	install(true, true);
	d = sb_docker_new(true, &err);
	assert_true(sb_docker_is_sbx(d));
	assert_ok(sb_docker_check(d, NULL, &err), &err);
	assert_string_equal(words_of(1), "version");
	assert_true(has_env(1, "DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND="));
	sb_docker_free(d);
	d = sb_docker_new(false, &err);
	assert_false(sb_docker_is_sbx(d));
	assert_ok(sb_docker_check(d, NULL, &err), &err);
	assert_string_equal(words_of(2), "sandbox|version");
	assert_false(has_env(2, "DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND="));
	sb_docker_free(d);
	assert_int_equal(unlinkat(dir->fd, "bin/sbx", 0), 0);
	d = sb_docker_new(true, &err);
	assert_false(sb_docker_is_sbx(d));
	sb_docker_free(d);
}

static void
an_inherited_variable_is_overridden(void **state)
{
	struct sb_error err = { 0 };
	struct sb_docker *d;

	(void)state;
	install(true, false);
	assert_int_equal(setenv("DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND", "docker", 1), 0);
	d = open_stub(true);
	assert_ok(sb_docker_check(d, NULL, &err), &err);
	assert_true(has_env(1, "DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND="));
	assert_false(has_env(1, "DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND=docker"));
	sb_docker_free(d);
}

static void
not_installed_and_not_able_are_told_apart(void **state)
{
	struct sb_error err = { 0 };
	struct sb_docker *d;

	(void)state;
	install(false, false);
	d = open_stub(false);
	assert_fails(sb_docker_check(d, NULL, &err), SB_E_NOTFOUND, &err);
	assert_non_null(strstr(err.msg, "require Docker Desktop or sbx"));
	sb_docker_free(d);
	assert_int_equal(unlinkat(dir->fd, "bin", AT_REMOVEDIR), 0);
	install(false, true);
	tmpdir_file(dir, "version", "1");
	d = open_stub(false);
	assert_fails(sb_docker_check(d, NULL, &err), SB_E_UNSUPPORTED, &err);
	assert_non_null(strstr(err.msg, "Docker Desktop with sandbox support"));
	sb_docker_free(d);
}

/* One shape of the list: how many it gives, or the error. */
static void
shape_gives(struct sb_docker *d, const char *shape, int code, size_t n)
{
	struct sb_docker_list l = { 0 };
	struct sb_docker_sandbox one = { 0 };
	struct sb_error err = { 0 };
	int r;

	tmpdir_file(dir, "shape", shape);
	r = sb_docker_list(d, NULL, &l, &err);
	if (r != code || (r == 0 && l.n != n))
		fail_msg("shape %s: %d, %zu (%s)", shape, r, l.n, err.msg);
	assert_int_equal(sb_docker_for_workspace(d, "/w", NULL, &one), n > 0);
	if (n > 0)
		assert_string_equal(one.name, "first");
	sb_docker_sandbox_free(&one);
	sb_docker_list_free(&l);
}

static void
every_shape_of_the_list_is_read(void **state)
{
	static const struct {
		const char *shape;
		int code;
		size_t n;
	} shapes[] = { { "sandboxes", 0, 3 }, { "vms", 0, 3 }, { "array", 0, 3 }, { "noise", 0, 3 },
		{ "huge", SB_E_FULL, 0 }, { "null", 0, 0 }, { "empty", 0, 0 },
		{ "bad", SB_E_PROTO, 0 }, { "type", SB_E_PROTO, 0 }, { "other", SB_E_PROTO, 0 },
		{ "fail", SB_E_CHILD, 0 } };

	(void)state;
	install(true, true);
	a_box("first", "/w\0/extra:ro", 13);
	a_box("second", "/w", 3);
	a_box("third", "", 0);
	for (int sbx = 0; sbx < 2; sbx++) {
		struct sb_docker *d = open_stub(sbx);

		for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
			shape_gives(d, shapes[i].shape, shapes[i].code, shapes[i].n);
		sb_docker_free(d);
	}
	assert_string_equal(words_of(1), "sandbox|ls|--json");
}

/* Texts that programs have printed, or might. */
static void
lists_are_strict_inside(void **state)
{
	static const struct {
		const char *text;
		int code;
		size_t n;
	} cases[] = {
		{ "{\"sandboxes\":[{\"name\":\"a\"}]}", 0, 1 },
		{ "{\"sandboxes\":[{\"name\":\"a\",\"workspaces\":null,\"id\":null}]}", 0, 1 },
		{ "{\"vms\":[{\"name\":\"a\",\"workspaces\":[\"/x\"]}]}", 0, 1 },
		/* sbx 0.32: no id; 0.38: it is back; 0.42: no mount, missing ones told; 0.43. */
		{ "{\"sandboxes\":[{\"name\":\"a\",\"agent\":\"shell\",\"status\":\"stopped\","
		  "\"workspaces\":[\"/x\"]}]}",
			0, 1 },
		{ "Starting sandboxd...\nready\n{\n  \"sandboxes\": [\n    {\n      \"id\": "
		  "\"0a1b\",\n      \"name\": \"a\",\n      \"status\": \"running\",\n      "
		  "\"ports\": [{\"host_ip\": \"127.0.0.1\", \"host_port\": 8080, "
		  "\"sandbox_port\": 80, \"protocol\": \"tcp4\"}],\n      \"workspaces\": []\n"
		  "    }\n  ]\n}\n",
			0, 1 },
		{ "{\"sandboxes\":[{\"name\":\"a\",\"id\":\"x\",\"workspaces\":[\"/x\",\"/y:ro\"],"
		  "\"workspace_missing\":true,\"created_at\":\"2026-09-01T00:00:00Z\","
		  "\"last_used_at\":null}]}",
			0, 1 },
		{ "[]", 0, 0 },
		{ "[{\"name\":\"a-b.c+d\"}]\ntrailing words", 0, 1 },
		{ "[info] x\n[1, 2]\n{\"a\":1}\n  {\"sandboxes\":[]}", 0, 0 },
		{ "", SB_E_PROTO, 0 },
		{ "NAME  STATUS\nfoo   running\n", SB_E_PROTO, 0 },
		{ "{\"sandboxes\":{}}", SB_E_PROTO, 0 },
		{ "{\"sandboxes\":[{}]}", SB_E_PROTO, 0 },
		{ "{\"sandboxes\":[{\"name\":\"--force\"}]}", SB_E_PROTO, 0 },
		{ "{\"sandboxes\":[{\"name\":\"a\\nb\"}]}", SB_E_PROTO, 0 },
		{ "{\"sandboxes\":[{\"name\":\"a\",\"workspaces\":[1]}]}", SB_E_PROTO, 0 },
		{ "{\"sandboxes\":[{\"name\":\"a\",\"workspaces\":\"/x\"}]}", SB_E_PROTO, 0 },
		{ "{\"sandboxes\":[7]}", SB_E_PROTO, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sb_docker_list l = { 0 };
		struct sb_error err = { 0 };
		int r = sb_docker_list_parse(cases[i].text, strlen(cases[i].text), &l, &err);

		if (r != cases[i].code || l.n != cases[i].n)
			fail_msg("%s: %d, %zu (%s)", cases[i].text, r, l.n, err.msg);
		sb_docker_list_free(&l);
	}
}

static void
a_workspace_is_had_whatever_its_mode(void **state)
{
	struct sb_docker_sandbox s = { 0 };

	(void)state;
	sb_strlist_add(&s.workspaces, "/w");
	sb_strlist_add(&s.workspaces, "/extra:ro");
	assert_true(sb_docker_sandbox_has(&s, "/w"));
	assert_true(sb_docker_sandbox_has(&s, "/extra"));
	assert_false(sb_docker_sandbox_has(&s, "/extr"));
	assert_false(sb_docker_sandbox_has(&s, "/extra:r"));
	assert_false(sb_docker_sandbox_has(&s, "/"));
	sb_docker_sandbox_free(&s);
}

static void
ensure_in_every_situation(void **state)
{
	const char *const extras[] = { "", "/e2", "/e1/", "/e2/.", "/w", NULL };
	struct sb_docker_ensure o = SB_DOCKER_ENSURE_INIT;
	struct sb_error err = { 0 };
	struct sb_docker *d;
	char *name = NULL;

	(void)state;
	install(true, true);
	d = open_stub(true);
	o.workspace = "/x/../w/";
	o.extras = extras;
	o.image = "img:1";
	o.config_dir = "/c d,e/";
	/* Made: list, create, list. */
	assert_ok(sb_docker_ensure(d, &o, NULL, &name, &err), &err);
	assert_string_equal(name, "cagent-w");
	free(name);
	assert_string_equal(words_of(2), "create|-t|img:1|cagent|/w|/e2:ro|/e1:ro|/c d,e:ro");
	/* Taken again: one list; the template alone does not matter. */
	o.image = NULL;
	assert_ok(sb_docker_ensure(d, &o, NULL, &name, &err), &err);
	free(name);
	assert_string_equal(words_of(4), "ls|--json");
	assert_string_equal(words_of(5), "no such call");
	/* Another mount is missing: all of the workspace go, then one is made. */
	a_box("zz", "/w\0/c d,e:ro", 13);
	a_box("other", "/other", 7);
	o.extras = (const char *const[]){ "/e3", NULL };
	assert_ok(sb_docker_ensure(d, &o, NULL, &name, &err), &err);
	free(name);
	assert_string_equal(words_of(6), "rm|--force|cagent-w");
	assert_string_equal(words_of(7), "rm|--force|zz");
	assert_string_equal(words_of(8), "create|cagent|/w|/e3:ro|/c d,e:ro");
	assert_string_equal(words_of(9), "ls|--json");
	sb_docker_free(d);
}

static void
ensure_fails_clearly(void **state)
{
	struct sb_docker_ensure o = SB_DOCKER_ENSURE_INIT;
	struct sb_error err = { 0 };
	struct sb_docker *d;
	char *name = NULL;

	(void)state;
	install(false, true);
	d = open_stub(false);
	o.workspace = "/w";
	o.config_dir = "/c";
	tmpdir_file(dir, "lost", "");
	assert_fails(sb_docker_ensure(d, &o, NULL, &name, &err), SB_E_SANDBOX_NOT_FOUND, &err);
	assert_non_null(strstr(err.msg, "created but cannot be found"));
	tmpdir_file(dir, "create", "3");
	assert_fails(sb_docker_ensure(d, &o, NULL, &name, &err), SB_E_CHILD, &err);
	assert_non_null(strstr(err.msg, "sandbox create failed: exit status 3"));
	/* A list that cannot be read makes nothing: there would be two. */
	tmpdir_file(dir, "shape", "bad");
	assert_fails(sb_docker_ensure(d, &o, NULL, &name, &err), SB_E_PROTO, &err);
	assert_non_null(strstr(err.msg, "decoding sandbox list"));
	assert_string_equal(words_of(7), "no such call");
	/* What cannot go is told, and the new one is made beside it. */
	tmpdir_file(dir, "shape", "sandboxes");
	tmpdir_file(dir, "rm", "1");
	a_box("zz", "/w", 3);
	assert_fails(sb_docker_ensure(d, &o, NULL, &name, &err), SB_E_CHILD, &err);
	/* Whether rm needs --force is asked first. */
	assert_string_equal(words_of(8), "sandbox|policy|allow|network|--help");
	assert_string_equal(words_of(10), "sandbox|rm|zz");
	assert_string_equal(words_of(11), "sandbox|create|cagent|/w|/c:ro");
	o.workspace = "/a:ro";
	assert_fails(sb_docker_ensure(d, &o, NULL, &name, &err), SB_E_INVAL, &err);
	o.workspace = "/w";
	o.image = "-rm";
	assert_fails(sb_docker_ensure(d, &o, NULL, &name, &err), SB_E_INVAL, &err);
	assert_string_equal(words_of(12), "no such call");
	sb_docker_free(d);
	/* The newer docker asks without it. */
	tmpdir_file(dir, "era", "c");
	tmpdir_file(dir, "rm", "0");
	d = open_stub(false);
	assert_ok(sb_docker_remove(d, "zz", NULL, &err), &err);
	assert_string_equal(words_of(13), "sandbox|rm|--force|zz");
	sb_docker_free(d);
}

static void
hosts_are_checked_before_anything_runs(void **state)
{
	static const char *const bad[] = { "a,b", "a b", "a\tb", "a\nb", "a\x01", "-g", "--sandbox",
		NULL };
	struct sb_error err = { 0 };
	struct sb_docker *d;

	(void)state;
	install(true, false);
	d = open_stub(true);
	for (size_t i = 0; bad[i]; i++) {
		const char *const hosts[] = { "good.example", bad[i], NULL };

		assert_fails(sb_docker_allow_hosts(d, "box", hosts, NULL, &err), SB_E_INVAL, &err);
	}
	assert_ok(sb_docker_allow_hosts(d, "", (const char *const[]){ "a,b", NULL }, NULL, &err),
		&err);
	assert_ok(sb_docker_allow_hosts(d, "box", (const char *const[]){ "", " \t", NULL }, NULL,
			  &err),
		&err);
	assert_fails(sb_docker_allow_hosts(d, "-x", (const char *const[]){ "a", NULL }, NULL, &err),
		SB_E_INVAL, &err);
	assert_string_equal(words_of(1), "no such call");
	sb_docker_free(d);
}

/* The command that allows two hosts, in each spelling. */
static void
hosts_are_allowed_by_one_command(void **state)
{
	static const struct {
		bool sbx;
		const char *era, *want;
		int nth;
	} cases[] = {
		{ true, "c", "policy|allow|network|--sandbox|box|a.example:443,*.b.example", 2 },
		{ true, "b", "policy|allow|network|box|a.example:443,*.b.example", 2 },
		{ false, "c",
			"sandbox|policy|allow|network|--sandbox|box|a.example:443,*.b.example", 2 },
		{ false, "b",
			"sandbox|network|proxy|box|--allow-host|a.example:443|--allow-host|"
			"*.b.example",
			3 },
	};
	const char *const hosts[] = { " a.example:443\n", "", "*.b.example", NULL };
	int seen = 0;

	(void)state;
	install(true, true);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct sb_error err = { 0 };
		struct sb_docker *d = open_stub(cases[i].sbx);

		tmpdir_file(dir, "era", cases[i].era);
		assert_ok(sb_docker_allow_hosts(d, "box", hosts, NULL, &err), &err);
		seen += cases[i].nth;
		assert_string_equal(words_of(seen), cases[i].want);
		/* Asked once. */
		tmpdir_file(dir, "policy", "4");
		assert_fails(sb_docker_allow_hosts(d, "box", hosts, NULL, &err), SB_E_CHILD, &err);
		assert_non_null(strstr(err.msg, "exit status 4"));
		assert_string_equal(words_of(++seen), cases[i].want);
		assert_int_equal(unlinkat(dir->fd, "policy", 0), 0);
		sb_docker_free(d);
	}
}

static const char *
lookup(const char *name, void *arg)
{
	(void)arg;
	return strcmp(name, "EMPTY") == 0  ? "" :
		strcmp(name, "UNSET") == 0 ? NULL :
					     "va'l \"ue,\n-e X";
}

static void
values_stay_out_of_the_words(void **state)
{
	const char *const names[] = { "MY_KEY", "OPENAI_API_KEY", "EMPTY", "UNSET", "DOCKER_TOKEN",
		"OTHER", NULL };
	const char *const args[] = { "--flag", "a b", "", NULL };
	sb_auto(sb_strlist) struct sb_strlist flags = { 0 };
	sb_auto(sb_strlist) struct sb_strlist vars = { 0 };
	struct sb_docker_command c = { 0 };
	struct sb_error err = { 0 };
	struct sb_docker *d;
	static const char *const want[] = { "docker", "sandbox", "exec", "-it", "-w", "/w d", "-e",
		"MY_KEY", "-e", "OTHER", "-e", "TERM=xterm-256color", "-e", "COLORTERM=truecolor",
		"-e", "LANG=en_US.UTF-8", "box", "docker-agent", "run", "--flag", "a b", "", NULL };

	(void)state;
	install(false, true);
	d = open_stub(false);
	assert_ok(sb_docker_env(names, lookup, NULL, &flags, &vars, &err), &err);
	assert_int_equal(flags.n, 4);
	assert_string_equal(vars.v[0], "MY_KEY=va'l \"ue,\n-e X");
	assert_ok(sb_docker_exec_command(d, "box", "/w d", args, sb_strlist_borrow(&flags),
			  sb_strlist_borrow(&vars), &c, &err),
		&err);
	for (size_t i = 0; want[i]; i++)
		assert_string_equal(c.argv.v[i], want[i]);
	assert_int_equal(c.argv.n, 22);
	assert_string_equal(sb_strlist_get(sb_strlist_borrow(&c.env), "OTHER"), "va'l \"ue,\n-e X");
	sb_docker_command_free(&c);
	assert_fails(sb_docker_exec_command(d, "-it", "/", NULL, NULL, NULL, &c, &err), SB_E_INVAL,
		&err);
	assert_fails(sb_docker_env((const char *const[]){ "A=B", NULL }, lookup, NULL, &flags,
			     &vars, &err),
		SB_E_INVAL, &err);
	/* The newer spelling, once the program was asked. */
	tmpdir_file(dir, "era", "c");
	assert_ok(sb_docker_probe(d, NULL, &err), &err);
	assert_ok(sb_docker_exec_command(d, "box", "", NULL, NULL, NULL, &c, &err), &err);
	assert_string_equal(c.argv.v[3], "-i");
	assert_string_equal(c.argv.v[4], "-e");
	assert_string_equal(c.argv.v[9], "LANG=C.UTF-8");
	sb_docker_command_free(&c);
	sb_docker_free(d);
}

static const char *
alias(const char *name, void *arg)
{
	return strcmp(name, "mine") == 0 ? arg : NULL;
}

static void
extra_gives(const char *agent, const char *want)
{
	char *got = sb_docker_extra_workspace("/work", agent, alias, (void *)"/agents/x.yml");

	if (strcmp(got, want) != 0)
		fail_msg("%s: %s, want %s", agent, got, want);
	free(got);
}

static void
the_agents_directory_is_extra_when_outside(void **state)
{
	(void)state;
	extra_gives("", "");
	extra_gives("default", "");
	extra_gives("docker.io/some/agent:1", "");
	extra_gives("https://example.com/a.yaml", "");
	extra_gives("/other/a.yaml", "/other");
	extra_gives("/other/A.YML", "/other");
	extra_gives("/a.yaml", "/");
	extra_gives("/work/a.yaml", "");
	extra_gives("/work/sub/a.yaml", "");
	extra_gives("/work/../work/sub/a.yaml", "");
	extra_gives("/work/../x/a.yaml", "/x");
	extra_gives("/workspace2/a.yaml", "/workspace2");
	extra_gives("mine", "/agents");
	extra_gives("/dev/fd/7", "/dev/fd");
}

static void
a_command_that_hangs_is_ended(void **state)
{
	struct sb_call call = SB_CALL_INIT;
	struct sb_docker_list l = { 0 };
	struct sb_error err = { 0 };
	struct sb_docker *d;

	(void)state;
	install(true, false);
	tmpdir_file(dir, "hang", "");
	d = open_stub(true);
	call.deadline = sb_deadline_in(200);
	assert_fails(sb_docker_list(d, &call, &l, &err), SB_E_TIMEOUT, &err);
	call = (struct sb_call)SB_CALL_INIT;
	call.cancel = sb_cancel_new(&err);
	sb_cancel_request((struct sb_cancel *)(uintptr_t)call.cancel);
	assert_fails(sb_docker_list(d, &call, &l, &err), SB_E_CANCELED, &err);
	sb_cancel_free((struct sb_cancel *)(uintptr_t)call.cancel);
	sb_docker_free(d);
}

/* Tokens: "one", "two", ... */
static _Atomic int asked;

static char *
next_token(void *arg)
{
	const char *const *list = arg;

	return list[asked] ? strdup(list[asked++]) : NULL;
}

static bool
token_file_is(const char *want)
{
	struct sb_error err = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	return sb_file_read(dir->fd, "conf/sandbox-tokens.json", 4096, &b, &err) == 0 &&
		strcmp((char *)b.data, want) == 0;
}

static void
tokens_are_written_and_removed(void **state)
{
	static const char *const tokens[] = { "one", "two", NULL };
	struct sb_docker_token_opts o = SB_DOCKER_TOKEN_OPTS_INIT;
	sb_autofree char *conf = sb_str_printf("%s/conf", dir->path);
	struct sb_error err = { 0 };
	struct sb_docker_token *t;
	sb_deadline d = sb_deadline_in(10000);
	struct stat st;

	(void)state;
	asked = 0;
	o.dir = conf;
	o.token = next_token;
	o.arg = (void *)(uintptr_t)tokens;
	o.every_ms = 20;
	/* Nothing to do without a gateway. */
	assert_null(sb_docker_token_start(&o, &err));
	assert_int_equal(err.code, 0);
	o.gateway = "https://gateway.example";
	t = sb_docker_token_start(&o, &err);
	assert_non_null(t);
	assert_int_equal(fstatat(dir->fd, "conf/sandbox-tokens.json", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	while (!token_file_is("{\"docker_token\":\"two\"}") && !sb_deadline_passed(d))
		(void)usleep(2000);
	/* A source that fails leaves the file. */
	assert_true(token_file_is("{\"docker_token\":\"two\"}"));
	sb_docker_token_stop(t);
	sb_docker_token_stop(t);
	assert_int_equal(fstatat(dir->fd, "conf/sandbox-tokens.json", &st, 0), -1);
	sb_docker_token_free(t);
}

static void
tokens_follow_no_link(void **state)
{
	static const char *const tokens[] = { "", "x", NULL };
	struct sb_docker_token_opts o = SB_DOCKER_TOKEN_OPTS_INIT;
	sb_autofree char *conf = sb_str_printf("%s/conf", dir->path);
	struct sb_error err = { 0 };
	struct sb_docker_token *t;
	struct stat st;

	(void)state;
	asked = 0;
	o.dir = conf;
	o.gateway = "x";
	o.token = next_token;
	o.arg = (void *)(uintptr_t)tokens;
	assert_int_equal(mkdirat(dir->fd, "conf", 0700), 0);
	tmpdir_file(dir, "conf/sandbox-tokens.json", "old and wide");
	t = sb_docker_token_start(&o, &err);
	assert_non_null(t);
	assert_true(token_file_is("{}"));
	assert_int_equal(fstatat(dir->fd, "conf/sandbox-tokens.json", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	sb_docker_token_free(t);
	tmpdir_file(dir, "victim", "mine");
	assert_int_equal(symlinkat("../victim", dir->fd, "conf/sandbox-tokens.json"), 0);
	assert_null(sb_docker_token_start(&o, &err));
	assert_int_equal(err.code, SB_E_ESCAPE);
	assert_int_equal(fstatat(dir->fd, "victim", &st, 0), 0);
	assert_int_equal(st.st_size, 4);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
int
main(void)
{
	const struct CMUnitTest tests[] = {
		T(sbx_is_taken_when_wanted_and_there),
		T(an_inherited_variable_is_overridden),
		T(not_installed_and_not_able_are_told_apart),
		T(every_shape_of_the_list_is_read),
		T(lists_are_strict_inside),
		T(a_workspace_is_had_whatever_its_mode),
		T(ensure_in_every_situation),
		T(ensure_fails_clearly),
		T(hosts_are_checked_before_anything_runs),
		T(hosts_are_allowed_by_one_command),
		T(values_stay_out_of_the_words),
		T(the_agents_directory_is_extra_when_outside),
		T(a_command_that_hangs_is_ended),
		T(tokens_are_written_and_removed),
		T(tokens_follow_no_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
