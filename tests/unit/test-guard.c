/* SPDX-License-Identifier: MIT */
/* What a sandbox may not put in place, and what it may but is told: attack groups 5, 8 and 28. */
#include "config.h"

#include <string.h>

#include <sync/plan/guard.h>
#include <sync/plan/guard-tree.h>

#include "tests/lib/unit.h"

#define N(a) (sizeof(a) / sizeof(a)[0])

static void
expect(const char *path, enum sb_guard want)
{
	enum sb_guard got = sb_guard_path(path);

	if (got != want)
		fail_msg("%s: %d, want %d", path, (int)got, (int)want);
}

/* Would the guard refuse a new file at this path, in an empty tree? */
static bool
is_refused(const char *path)
{
	sb_auto(sb_manifest) struct sb_manifest *m = sb_manifest_new(NULL);
	sb_auto(sb_guard_verdicts) struct sb_guard_verdicts v = { 0 };
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	const struct sb_guard_opts o = { .trust_project = true };
	struct sb_error err = { 0 };
	struct sb_entry dir = { .type = SB_ENTRY_DIR, .mode = 0755 },
			file = { .type = SB_ENTRY_FILE, .mode = 0644, .size = 1 };
	char part[2048];

	assert_non_null(m);
	assert_ok(sb_manifest_finish(m, &err), &err);
	for (const char *slash = path; (slash = strchr(slash, '/')); slash++) {
		memcpy(part, path, (size_t)(slash - path));
		part[slash - path] = 0;
		assert_ok(sb_diff_add(&d, part, false, &dir, NULL, NULL, &err), &err);
	}
	assert_ok(sb_diff_add(&d, path, false, &file, NULL, NULL, &err), &err);
	assert_ok(sb_guard_tree_check(m, &d, &o, &v, &err), &err);
	return v.n > 0;
}

static void
expect_refused(const char *path, bool want)
{
	if (is_refused(path) != want)
		fail_msg("%s: %s", path, want ? "taken" : "refused");
}

static void
what_git_runs_or_obeys_is_refused(void **state)
{
	static const char *const paths[] = { ".git/config", ".git/config.worktree", ".git/hooks",
		".git/hooks/pre-commit", ".git/hooks/sub/x", ".git/info/attributes",
		".git/objects/info/alternates", ".git/objects/info/http-alternates",
		".git/commondir", ".git/gitdir", ".git/modules/x/config",
		".git/modules/a/b/c/hooks/post-checkout", ".git/modules/x/info/attributes",
		".git/worktrees/w/gitdir", ".git/worktrees/w/commondir",
		".git/worktrees/w/config.worktree", "sub/.git/config", "a/b/.git/hooks/x",
		".git/HOOKS/x", ".git/Config", ".git/config.", ".git/hooks /x",
		".git/rebase-merge/git-rebase-todo", ".git/rebase-apply/0001",
		".git/sequencer/opts", ".git/modules/x/rebase-merge/git-rebase-todo",
		".git/worktrees/w/BISECT_NAMES", ".git/BISECT_LOG", ".git/info/grafts",
		".git/remotes/origin", ".git/branches/x",
		".git/modules/x.runtime-conflict-s/config" };

	(void)state;
	for (size_t i = 0; i < N(paths); i++)
		expect_refused(paths[i], true);
}

static void
other_spellings_of_git_are_refused(void **state)
{
	static const char *const paths[] = { ".GIT", ".Git/x", ".git./config", ".git /config",
		"git~1", "GIT~1/HEAD", ".g\xe2\x80\x8cit/x", ".git\xe2\x80\x8d",
		"\xef\xbb\xbf.git/objects/aa", "a/.gIt/refs" };

	(void)state;
	for (size_t i = 0; i < N(paths); i++)
		expect_refused(paths[i], true);
}

static void
data_of_git_passes(void **state)
{
	static const char *const paths[] = { ".git/HEAD", ".git/index", ".git/refs/heads/config",
		".git/refs/heads/hooks", ".git/objects/aa/bb", ".git/packed-refs", ".git/logs/HEAD",
		".git/info/exclude", "hooks/pre-commit", "config", "git/config", ".gitx/config",
		".gitignore", "src/git~2/x", ".git/modules/x/HEAD", ".git/worktrees/w/HEAD",
		".git/hooks.runtime-conflict-s/x", ".git/config.runtime-conflict-s", "HEAD",
		"x/HEAD", "x/config", "x/objects/y", ".git" };

	(void)state;
	for (size_t i = 0; i + 1 < N(paths); i++)
		expect_refused(paths[i], false);
	expect_refused(".git", true); /* a file of that name */
}

static void
only_a_directory_may_be_called_git(void **state)
{
	(void)state;
	assert_false(sb_guard_redirects(0, SB_ENTRY_DIR));
	assert_false(sb_guard_redirects(SB_ENTRY_DIR, SB_ENTRY_DIR));
	assert_true(sb_guard_redirects(0, SB_ENTRY_FILE));
	assert_true(sb_guard_redirects(0, SB_ENTRY_LINK));
	assert_true(sb_guard_redirects(SB_ENTRY_FILE, SB_ENTRY_FILE));
	assert_true(sb_guard_redirects(SB_ENTRY_FILE, SB_ENTRY_DIR));
	assert_true(sb_guard_redirects(SB_ENTRY_DIR, 0));
	assert_false(sb_guard_git_name(".git", false));
	assert_true(sb_guard_git_name(".git", true));
	assert_true(sb_guard_git_name("sub/deeper/.git", true));
}

/* However deep it lies. */
static void
depth_hides_nothing(void **state)
{
	char path[1024];

	(void)state;
	for (size_t depth = 60; depth < 70; depth++) {
		static const char *const ends[] = { ".git/hooks/x", ".git/config",
			".git/modules/a/b/config", ".GIT/x" };

		for (size_t i = 0; i < N(ends); i++) {
			for (size_t k = 0; k < depth; k++)
				memcpy(path + 2 * k, "d/", 2);
			memcpy(path + 2 * depth, ends[i], strlen(ends[i]) + 1);
			expect_refused(path, true);
		}
		memcpy(path + 2 * depth, ".vscode/tasks.json", 19);
		expect(path, SB_GUARD_AUTOEXEC);
		memcpy(path + 2 * depth, "x", 2);
		expect(path, SB_GUARD_NONE);
	}
	memcpy(path, ".git/modules/", 13);
	for (size_t k = 0; k < 200; k++)
		memcpy(path + 13 + 2 * k, "d/", 2);
	memcpy(path + 13 + 400, "config", 7);
	expect_refused(path, true);
}

static void
what_later_runs_obey_is_refused(void **state)
{
	static const char *const paths[] = { ".sandbox.yaml", "sub/.sandbox.yaml", ".sbsyncignore",
		"a/b/c/.sbsyncignore", ".sbsync.yaml", ".Sandbox.YAML", ".sbsyncignore.",
		".vscode/.sandbox.yaml" };

	(void)state;
	for (size_t i = 0; i < N(paths); i++)
		expect(paths[i], SB_GUARD_PROJECT);
	expect("sandbox.yaml", SB_GUARD_NONE);
	expect(".sandbox.yaml.runtime-conflict-x", SB_GUARD_NONE);
	expect(".sandbox.yaml/x", SB_GUARD_NONE);
}

static void
what_tools_run_is_told(void **state)
{
	static const char *const paths[] = { ".envrc", "sub/.envrc", "Makefile", "package.json",
		"x/package.json", ".npmrc", ".yarnrc.yml", ".pre-commit-config.yaml", "conftest.py",
		"build.rs", ".gitmodules", ".gitattributes", ".husky/_/x", ".githooks/pre-push",
		".vscode/tasks.json", ".vscode/settings.json", ".idea/workspace.xml",
		".devcontainer/devcontainer.json", ".cargo/config.toml", "a/.cargo/config",
		".mcp.json", "CLAUDE.md", "AGENTS.md", ".claude/settings.json", ".vimrc", ".exrc",
		".nvim.lua", ".dir-locals.el", "x.code-workspace", ".zed/settings.json",
		"mise.toml", ".tool-versions", "flake.nix", ".github/workflows/ci.yml" };

	(void)state;
	for (size_t i = 0; i < N(paths); i++)
		expect(paths[i], SB_GUARD_AUTOEXEC);
	expect("cargo/config.toml", SB_GUARD_NONE);
	expect(".code-workspace", SB_GUARD_NONE);
	expect("makefile.txt", SB_GUARD_NONE);
	expect("", SB_GUARD_NONE);
}

static void
links_that_lead_out_are_known(void **state)
{
	(void)state;
	assert_true(sb_guard_escapes("l", "/etc/passwd"));
	assert_true(sb_guard_escapes("l", "../x"));
	assert_true(sb_guard_escapes("a/l", "../../x"));
	assert_true(sb_guard_escapes("a/l", "b/../../../x"));
	assert_true(sb_guard_escapes("l", "/proc/self/root"));
	assert_false(sb_guard_escapes("a/l", "../x"));
	assert_false(sb_guard_escapes("l", "a/../b"));
	assert_false(sb_guard_escapes("l", "l"));
	assert_false(sb_guard_escapes("l", ""));
}

/* One letter that some disks pass over, and others that look like its bytes. */
static void
letters_that_nobody_ignores_make_other_names(void **state)
{
	(void)state;
	assert_true(sb_guard_is_git(".g\xef\xbb\xbfit"));
	assert_false(sb_guard_is_git(".g\xef\xbc\xb9it"));
	assert_false(sb_guard_is_git(".g\xef\xbb\xb9it"));
	assert_false(sb_guard_is_git(".g\xc3\xbb\xbfit"));
}

/* A step that goes nowhere is no step further in. */
static void
empty_steps_do_not_hide_a_way_out(void **state)
{
	(void)state;
	assert_false(sb_guard_escapes("a/b", "./../c"));
	assert_true(sb_guard_escapes("a/b", "./../.."));
	assert_true(sb_guard_escapes("a/b", "x//../../.."));
	assert_false(sb_guard_escapes("a/b", "x/y/../../.."));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(letters_that_nobody_ignores_make_other_names),
		cmocka_unit_test(empty_steps_do_not_hide_a_way_out),
		cmocka_unit_test(what_git_runs_or_obeys_is_refused),
		cmocka_unit_test(other_spellings_of_git_are_refused),
		cmocka_unit_test(data_of_git_passes),
		cmocka_unit_test(only_a_directory_may_be_called_git),
		cmocka_unit_test(depth_hides_nothing),
		cmocka_unit_test(what_later_runs_obey_is_refused),
		cmocka_unit_test(what_tools_run_is_told),
		cmocka_unit_test(links_that_lead_out_are_known),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
