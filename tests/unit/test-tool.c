/* SPDX-License-Identifier: MIT */
/* The file tools of a sandbox host: read_file, write_file, edit_file, grep, glob, ls and git. */
#include "config.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/str.h>
#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

static int
setup(void **state)
{
	struct hostfix *f;
	struct sb_host_session s;

	(void)hostfix_setup(state);
	f = *state;
	hostfix_create(f, "one", &s);
	sb_host_session_clear(&s);
	return 0;
}

static int
call(struct hostfix *f, const char *tool, const char *params, struct sb_host_tool_result *r)
{
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;

	q.session = "one";
	q.tool = tool;
	q.params = params;
	return sb_host_tool_execute(f->h, &q, NULL, r, &f->err);
}

/* The tool gives exactly this text. */
static void
gives(struct hostfix *f, const char *tool, const char *params, bool is_error, const char *text)
{
	struct sb_host_tool_result r;

	assert_ok(call(f, tool, params, &r), &f->err);
	assert_string_equal(r.text, text);
	assert_int_equal(r.is_error, is_error);
	assert_int_equal(r.tier, 1);
	sb_host_tool_result_clear(&r);
}

static void
contains(struct hostfix *f, const char *tool, const char *params, bool is_error, const char *part)
{
	struct sb_host_tool_result r;

	assert_ok(call(f, tool, params, &r), &f->err);
	if (!strstr(r.text, part))
		fail_msg("%s: \"%s\" is not in \"%s\"", tool, part, r.text);
	assert_int_equal(r.is_error, is_error);
	sb_host_tool_result_clear(&r);
}

static void
refused(struct hostfix *f, const char *tool, const char *params, const char *msg)
{
	struct sb_host_tool_result r;

	assert_fails(call(f, tool, params, &r), SB_E_INVAL, &f->err);
	assert_string_equal(f->err.msg, msg);
}

static void
read_file_numbers_lines(void **state)
{
	struct hostfix *f = *state;
	char *big = malloc(11u << 20);

	hostfix_write(f, "one", "five", "a\nb\nc\nd\ne");
	gives(f, "read_file", "{\"path\":\"hello\"}", false, "     1\thello\n");
	gives(f, "read", "{\"file_path\":\"hello\"}", false, "     1\thello\n");
	gives(f, "read_file", "{\"path\":\"five\",\"offset\":1,\"limit\":2.0}", false,
		"     2\tb\n     3\tc\n(showing lines 2-3 of 5 total)");
	gives(f, "read_file", "{\"path\":\"five\",\"offset\":9}", false,
		"(offset 9 is past the end: five has 5 lines)");
	gives(f, "read_file", "{\"path\":\"link\"}", false, "     1\thello\n");
	gives(f, "read_file", "{\"path\":\"dir/../dir/deep\"}", false, "     1\tdeep\n");
	contains(f, "read_file", "{\"path\":\"dir\"}", true, "is a directory");
	contains(f, "read_file", "{\"path\":\"none\"}", true, "file not found: none");
	refused(f, "read_file", "{}", "read_file path is required");
	refused(f, "read_file", "{\"path\":7}", "read_file path must be text");
	refused(f, "read_file", "{\"path\":\"a\",\"offset\":-1}",
		"read_file offset must be in range [0,2147483647]");
	memset(big, 'x', (11u << 20) - 1);
	big[(11u << 20) - 1] = '\0';
	hostfix_write(f, "one", "big", big);
	contains(f, "read_file", "{\"path\":\"big\"}", true, "at most 10485760 are read");
	big[3000] = '\0';
	hostfix_write(f, "one", "big", big);
	contains(f, "read_file", "{\"path\":\"big\"}", false, "x... (truncated)\n");
	free(big);
	assert_int_equal(mkfifo(hostfix_path(f, "one", "fifo"), 0600), 0);
	contains(f, "read_file", "{\"path\":\"fifo\"}", true, "not a regular file");
}

static void
write_and_edit_keep_what_they_must(void **state)
{
	struct hostfix *f = *state;
	struct stat st;

	gives(f, "write_file", "{\"path\":\"new\",\"content\":\"x\\ny\\n\"}", false,
		"wrote 4 bytes to new");
	assert_true(hostfix_holds(f, "one", "new", "x\ny\n"));
	assert_int_equal(chmod(hostfix_path(f, "one", "new"), 0750), 0);
	gives(f, "write", "{\"path\":\"new\",\"content\":\"a b a\"}", false,
		"wrote 5 bytes to new");
	assert_int_equal(stat(hostfix_path(f, "one", "new"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0750);
	contains(f, "write_file", "{\"path\":\"no/such/x\",\"content\":\"\"}", true,
		"create_dirs makes it");
	gives(f, "write_file", "{\"path\":\"no/such/x\",\"content\":\"\",\"create_dirs\":true}",
		false, "wrote 0 bytes to no/such/x");
	contains(f, "write_file", "{\"path\":\"dir\",\"content\":\"x\"}", true,
		"not a regular file");
	contains(f, "edit_file", "{\"path\":\"new\",\"old_string\":\"a\",\"new_string\":\"c\"}",
		true, "occurs 2 times");
	gives(f, "edit_file",
		"{\"path\":\"new\",\"old_string\":\"a\",\"new_string\":\"cc\",\"replace_all\":"
		"true}",
		false, "edited new: 2 replacement(s) made");
	assert_true(hostfix_holds(f, "one", "new", "cc b cc"));
	gives(f, "edit", "{\"path\":\"new\",\"old_string\":\" b \",\"new_string\":\"\"}", false,
		"edited new: 1 replacement(s) made");
	assert_true(hostfix_holds(f, "one", "new", "cccc"));
	assert_int_equal(stat(hostfix_path(f, "one", "new"), &st), 0);
	assert_int_equal(st.st_mode & 0777, 0750);
	gives(f, "edit_file", "{\"path\":\"hello\",\"old_string\":\"nope\",\"new_string\":\"\"}",
		true, "old_string not found in hello; the file is:\n     1\thello\n");
	refused(f, "edit_file", "{\"path\":\"a\",\"old_string\":\"\",\"new_string\":\"\"}",
		"edit_file old_string is empty");
	refused(f, "write_file", "{\"path\":\"a\"}", "write_file content is required");
}

static void
nothing_leads_out(void **state)
{
	struct hostfix *f = *state;
	char params[600], out[400];

	(void)snprintf(out, sizeof out, "%s/outside", f->t.path);
	assert_int_equal(mkdir(out, 0755), 0);
	(void)snprintf(out, sizeof out, "%s/outside/secret", f->t.path);
	assert_ok(sb_file_replace(AT_FDCWD, out, "secret\n", 7, 0644, &f->err), &f->err);
	assert_int_equal(symlink(out, hostfix_path(f, "one", "abs")), 0);
	assert_int_equal(symlink("../../outside", hostfix_path(f, "one", "rel")), 0);
	assert_int_equal(symlink("/proc/self/root", hostfix_path(f, "one", "magic")), 0);
	contains(f, "read_file", "{\"path\":\"abs\"}", true, "leads out of");
	contains(f, "read_file", "{\"path\":\"rel/secret\"}", true, "leads out of");
	contains(f, "read_file", "{\"path\":\"../../outside/secret\"}", true, "leads out of");
	contains(f, "read_file", "{\"path\":\"magic/etc/passwd\"}", true, "leads out of");
	contains(f, "read_file", "{\"path\":\"/proc/self/environ\"}", true, "leads out of");
	(void)snprintf(params, sizeof params, "{\"path\":\"%s\"}", out);
	contains(f, "read_file", params, true, "leads out of");
	contains(f, "write_file", "{\"path\":\"rel/made\",\"content\":\"x\"}", true,
		"leads out of");
	contains(f, "write_file", "{\"path\":\"abs\",\"content\":\"x\"}", true, "leads out of");
	contains(f, "ls", "{\"path\":\"rel\"}", true, "leads out of");
	contains(f, "grep", "{\"pattern\":\"secret\"}", false, "no matches found");
	contains(f, "grep", "{\"pattern\":\"secret\",\"path\":\"rel\"}", true, "leads out of");
	contains(f, "glob", "{\"pattern\":\"**/secret\"}", false, "no files matched");
}

static atomic_bool swapping;
static atomic_int swaps;

/*
 * A directory becomes a link to the outside and back, as fast as it can; never missing, so that no
 * tool makes it anew.
 */
static void *
swap(void *arg)
{
	struct hostfix *f = arg;
	char dir[400], away[400];

	(void)snprintf(dir, sizeof dir, "%s", hostfix_path(f, "one", "d"));
	(void)snprintf(away, sizeof away, "%s", hostfix_path(f, "one", "d-away"));
	while (atomic_load(&swapping))
		if (renameat2(AT_FDCWD, dir, AT_FDCWD, away, RENAME_EXCHANGE) == 0)
			atomic_fetch_add(&swaps, 1);
	return NULL;
}

static void
swapped_links_lead_nowhere(void **state)
{
	struct hostfix *f = *state;
	char path[400];
	pthread_t th;
	int fine = 0;

	(void)snprintf(path, sizeof path, "%s/outside", f->t.path);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(path, sizeof path, "%s/outside/x", f->t.path);
	assert_ok(sb_file_replace(AT_FDCWD, path, "secret\n", 7, 0644, &f->err), &f->err);
	assert_int_equal(mkdir(hostfix_path(f, "one", "d"), 0755), 0);
	hostfix_write(f, "one", "d/x", "inside\n");
	assert_int_equal(symlink("../../outside", hostfix_path(f, "one", "d-away")), 0);
	atomic_store(&swapping, true);
	assert_int_equal(pthread_create(&th, NULL, swap, f), 0);
	for (int i = 0; i < 1500; i++) {
		struct sb_host_tool_result r;

		assert_ok(call(f, "read_file", "{\"path\":\"d/x\"}", &r), &f->err);
		assert_null(strstr(r.text, "secret"));
		fine += !r.is_error;
		sb_host_tool_result_clear(&r);
		assert_ok(call(f, "write_file", "{\"path\":\"d/y\",\"content\":\"x\"}", &r),
			&f->err);
		sb_host_tool_result_clear(&r);
	}
	atomic_store(&swapping, false);
	(void)pthread_join(th, NULL);
	(void)snprintf(path, sizeof path, "%s/outside/y", f->t.path);
	assert_int_not_equal(access(path, F_OK), 0);
	assert_true(fine > 0);
	assert_true(atomic_load(&swaps) > 100);
}

static void
grep_finds_in_order(void **state)
{
	struct hostfix *f = *state;
	char name[32];

	for (int i = 0; i < 30; i++) {
		(void)snprintf(name, sizeof name, "f%02d.c", i);
		hostfix_write(f, "one", name,
			i % 10 == 3 ? "one\nfoo(12)\nthree\n" : "one\ntwo\nthree\n");
	}
	assert_int_equal(mkdir(hostfix_path(f, "one", ".hidden"), 0755), 0);
	hostfix_write(f, "one", ".hidden/x", "foo(1)\n");
	gives(f, "grep", "{\"pattern\":\"foo(12)\",\"literal\":true}", false,
		"Found 3 match(es)\nf03.c:2: foo(12)\nf13.c:2: foo(12)\nf23.c:2: foo(12)\n");
	gives(f, "grep", "{\"pattern\":\"fo+\\\\(\\\\d{2}\\\\)\",\"max_results\":2}", false,
		"Found 2 match(es)\nf03.c:2: foo(12)\nf13.c:2: foo(12)\n(more matches were left "
		"out)\n");
	gives(f, "grep", "{\"pattern\":\"FOO\",\"include\":\"*.c\"}", false, "no matches found");
	contains(f, "grep", "{\"pattern\":\"(?i)FOO\",\"include\":\"f03*\"}", false,
		"Found 1 match(es)\nf03.c:2: foo(12)\n");
	gives(f, "grep", "{\"pattern\":\"foo\",\"include\":\"f13.c\",\"context_lines\":1}", false,
		"Found 1 match(es)\n    1- one\nf13.c:2: foo(12)\n    3- three\n");
	gives(f, "grep", "{\"pattern\":\"foo\",\"exclude\":\"f[01]*\"}", false,
		"Found 1 match(es)\nf23.c:2: foo(12)\n");
	gives(f, "grep", "{\"pattern\":\"deep\",\"path\":\"dir\"}", false,
		"Found 1 match(es)\ndeep:1: deep\n");
	contains(f, "grep", "{\"pattern\":\"(\"}", true, "grep pattern:");
	contains(f, "grep", "{\"pattern\":\"(a)\\\\1\"}", true,
		"back references are not supported");
	contains(f, "grep", "{\"pattern\":\"((a{200}){200}){200}\"}", true,
		"invalid repetition size");
	refused(f, "grep", "{}", "grep pattern is required");
}

static void
binary_files_are_not_searched(void **state)
{
	struct hostfix *f = *state;
	FILE *file = fopen(hostfix_path(f, "one", "bin"), "w");

	assert_non_null(file);
	(void)fwrite("foo\0foo\n", 1, 8, file);
	(void)fclose(file);
	gives(f, "grep", "{\"pattern\":\"foo\"}", false, "no matches found");
}

static void
glob_and_ls_list(void **state)
{
	struct hostfix *f = *state;

	gives(f, "glob", "{\"pattern\":\"**\"}", false, "Found 2 file(s)\ndir/deep\nhello\n");
	gives(f, "glob", "{\"pattern\":\"**/d*p\"}", false, "Found 1 file(s)\ndir/deep\n");
	gives(f, "glob", "{\"pattern\":\"*\"}", false, "Found 1 file(s)\nhello\n");
	gives(f, "glob", "{\"pattern\":\"dir/*\",\"max_results\":1}", false,
		"Found 1 file(s)\ndir/deep\n");
	gives(f, "glob", "{\"pattern\":\"nope*\"}", false, "no files matched");
	gives(f, "ls", "{}", false, "dir/\nhello\t6\nlink@\n");
	gives(f, "ls", "{\"path\":\"dir\"}", false, "deep\t5\n");
	contains(f, "ls", "{\"path\":\"hello\"}", true, "hello");
	gives(f, "ls", "{\"max_results\":1}", false, "dir/\n(1 of 3 entries)");
}

/* A repository names programs for every occasion; in no runtime may one of them run in the host. */
/* Names and lines that a terminal would obey are shown, not obeyed. */
static void
what_is_found_cannot_write_to_a_terminal(void **state)
{
	static const struct {
		const char *tool, *params;
	} calls[] = {
		{ "grep", "{\"pattern\":\"needle\"}" },
		{ "glob", "{\"pattern\":\"**\"}" },
		{ "ls", "{}" },
	};
	struct hostfix *f = *state;

	hostfix_write(f, "one", "evil\x1b]0;owned\x07\x9b\r", "needle \x1b[2J\x07\x1b[31m end\n");
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		struct sb_host_tool_result r;

		assert_ok(call(f, calls[i].tool, calls[i].params, &r), &f->err);
		assert_non_null(strstr(r.text, "evil"));
		for (const char *c = r.text; *c; c++)
			if (((unsigned char)*c < ' ' && *c != '\n' && *c != '\t') || *c == 0x7f)
				fail_msg("%s gives byte %d", calls[i].tool, *c);
		sb_host_tool_result_clear(&r);
	}
}

static void
git_starts_no_program_of_the_repository(void **state)
{
	static const char *const setup_repo =
		"{\"cmd\":\"rm -rf .git; git init -q . && git config user.email a@b && git config "
		"user.name n && "
		"printf '#!/bin/sh\\ntouch \\\"$TRAP\\\"; cat\\n' >evil && chmod +x evil && sed -i "
		"\\\"s|\\\\$TRAP|$PWD/trapped|\\\" evil && "
		"echo '* filter=f diff=d' >.gitattributes && git config filter.f.clean $PWD/evil "
		"&& git config filter.f.smudge $PWD/evil && "
		"git config diff.external $PWD/evil && git config diff.d.textconv $PWD/evil && git "
		"config core.fsmonitor $PWD/evil && "
		"git config core.pager $PWD/evil && git config core.hooksPath $PWD/hooks && mkdir "
		"-p hooks && cp evil hooks/pre-commit && "
		"cp evil hooks/post-commit\"}";
	struct hostfix *f = *state;
	struct sb_host_tool_result r;

	if (access("/usr/bin/git", X_OK) < 0)
		skip_because("git is not installed");
	assert_ok(call(f, "bash", setup_repo, &r), &f->err);
	assert_string_equal(r.is_error ? r.text : "", "");
	sb_host_tool_result_clear(&r);
	contains(f, "git_add", "{\"paths\":[\"hello\",\"dir\"]}", false, "");
	contains(f, "git_commit", "{\"message\":\"first -m\"}", false, "2 files changed");
	hostfix_write(f, "one", "hello", "changed\n");
	contains(f, "git_status", "{}", false, " M hello\n");
	contains(f, "git_diff", "{}", false, "+changed\n");
	contains(f, "git_diff", "{\"path\":\"dir\"}", false, "(no output)");
	contains(f, "git_log", "{\"n\":1}", false, " first -m\n");
	contains(f, "git_show", "{}", false, "+hello\n");
	contains(f, "git_show", "{\"ref\":\"nope\"}", true, "nope");
	refused(f, "git_show", "{\"ref\":\"--output=x\"}", "git_show ref must not begin with '-'");
	refused(f, "git_push", "{\"args\":[\"--receive-pack=x\"]}",
		"git_push args must not begin with '-'");
	refused(f, "git_commit", "{}", "git_commit message is required");
	assert_int_not_equal(access(hostfix_path(f, "one", "trapped"), F_OK), 0);
	assert_ok(call(f, "git_status", NULL, &r), &f->err);
	assert_true(r.has_exit);
	sb_host_tool_result_clear(&r);
}

/* One table: what is told of a tool is what its calls are checked by. */
static void
what_is_listed_is_what_is_taken(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool *v = NULL;
	size_t n = 0, required = 0;

	assert_ok(sb_host_tool_list(&v, &n, &f->err), &f->err);
	assert_true(n >= 17);
	for (size_t i = 0; i < n; i++) {
		json_t *schema = json_loads(v[i].schema, 0, NULL), *p;
		struct sb_host_tool_result r;
		char expect[300];
		const char *key;

		assert_non_null(schema);
		assert_true(json_is_false(json_object_get(schema, "additionalProperties")));
		assert_true(strlen(v[i].description) > 10);
		(void)snprintf(expect, sizeof expect, "%s has no parameter \"pth\"", v[i].name);
		assert_fails(call(f, v[i].name, "{\"pth\":1}", &r), SB_E_INVAL, &f->err);
		assert_memory_equal(f->err.msg, expect, strlen(expect));
		json_object_foreach(json_object_get(schema, "properties"), key, p)
		{
			sb_autofree char *bad = sb_str_printf("{\"%s\":{}}", key);

			/* Wrong for every type; null is as if it were not there. */
			assert_fails(call(f, v[i].name, bad, &r), SB_E_INVAL, &f->err);
			assert_non_null(json_object_get(p, "description"));
		}
		required += json_array_size(json_object_get(schema, "required"));
		if (json_array_size(json_object_get(schema, "required")) > 0)
			assert_fails(call(f, v[i].name, "{}", &r), SB_E_INVAL, &f->err);
		json_decref(schema);
	}
	assert_true(required >= 10);
	sb_host_tools_free(v, n);
	refused(f, "bash", "{\"cmd\":\"true\",\"command\":\"true\"}",
		"bash cmd is given twice, also as command");
	refused(f, "bash", "{\"cmd\":\"\"}", "bash cmd is empty");
	refused(f, "grep", "{\"pattern\":\"a\",\"max_results\":1.5}",
		"grep max_results must be a whole number");
	refused(f, "git_status", "{\"ref\":\"HEAD\"}",
		"git_status has no parameter \"ref\" (it has none)");
	contains(f, "ls", "{\"path\":null,\"max_results\":null}", false, "hello");
}

/* One default and one limit for every tool that runs a command. */
static void
output_has_one_limit(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;

	q.session = "one";
	q.tool = "bash";
	q.params = "{\"cmd\":\"head -c 300000 /dev/zero | tr '\\\\0' x\"}";
	assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
	assert_true(r.truncated);
	assert_true(
		r.text_len >= SB_HOST_OUTPUT_DEFAULT && r.text_len < SB_HOST_OUTPUT_DEFAULT + 1000);
	sb_host_tool_result_clear(&r);
	q.res.max_output = 400000;
	assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
	assert_true(!r.truncated && r.text_len >= 300000);
	sb_host_tool_result_clear(&r);
	q.tool = "git_status";
	q.params = "{}";
	q.res.max_output = 10;
	assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
	assert_true(r.truncated);
	sb_host_tool_result_clear(&r);
	q.res.max_output = SB_HOST_OUTPUT_MAX + 1;
	assert_fails(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), SB_E_INVAL, &f->err);
	/* Runtime none holds neither processes nor processors: it says so. */
	q.res = (struct sb_host_resources){ .max_pids = 5000 };
	assert_fails(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), SB_E_UNSUPPORTED, &f->err);
	q.res = (struct sb_host_resources){ .cpus = 1 };
	assert_fails(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), SB_E_UNSUPPORTED, &f->err);
}

/* The directory that a call works in. */
static void
a_call_works_where_it_is_told_to(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	static const char *const calls[][3] = {
		{ "read_file", "{\"path\":\"deep\"}", "deep" },
		{ "read_file", "{\"path\":\"../hello\"}", "hello" },
		{ "ls", "{}", "deep" },
		{ "glob", "{\"pattern\":\"deep\"}", "Found 1 file(s)" },
		{ "grep", "{\"pattern\":\"deep\"}", "deep:1: deep" },
		{ "bash", "{\"cmd\":\"basename \\\"$PWD\\\"; cat deep\"}", "dir\ndeep\n" },
		{ "write_file", "{\"path\":\"made\",\"content\":\"x\"}", "wrote 1 bytes to made" },
	};
	struct sb_host_tool_result r;

	q.session = "one";
	q.dir = "dir";
	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
		q.tool = calls[i][0];
		q.params = calls[i][1];
		assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
		if (r.is_error || !strstr(r.text, calls[i][2]))
			fail_msg("%s: \"%s\" is not in \"%s\"", q.tool, calls[i][2], r.text);
		sb_host_tool_result_clear(&r);
	}
	assert_int_equal(access(hostfix_path(f, "one", "dir/made"), F_OK), 0);
	q.tool = "bash";
	q.params = "{\"cmd\":\"true\"}";
	q.dir = "none";
	assert_ok(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), &f->err);
	assert_true(r.is_error);
	sb_host_tool_result_clear(&r);
	for (const char *const *bad = (const char *[]){ "/dir", "..", "dir/../..", "a/..", NULL };
		*bad; bad++) {
		q.dir = *bad;
		assert_fails(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err), SB_E_INVAL,
			&f->err);
	}
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(read_file_numbers_lines),
		T(write_and_edit_keep_what_they_must),
		T(nothing_leads_out),
		T(swapped_links_lead_nowhere),
		T(grep_finds_in_order),
		T(binary_files_are_not_searched),
		T(glob_and_ls_list),
		T(what_is_found_cannot_write_to_a_terminal),
		T(git_starts_no_program_of_the_repository),
		T(what_is_listed_is_what_is_taken),
		T(output_has_one_limit),
		T(a_call_works_where_it_is_told_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
