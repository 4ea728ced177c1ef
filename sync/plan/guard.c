/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/plan/guard.h>

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

/* A component of a path: where it begins and how long it is without trailing dots and spaces. */
struct comp {
	const char *p;
	size_t len;
};

#define MAX_COMPS 64

/* The component at `path`, and where the next one begins. */
static struct comp
next_comp(const char **path)
{
	size_t len = strcspn(*path, "/");
	struct comp c = { *path, len };

	while (c.len > 1 && (c.p[c.len - 1] == '.' || c.p[c.len - 1] == ' '))
		c.len--;
	*path += len;
	*path += **path == '/';
	return c;
}

static size_t
split(const char *path, struct comp *out)
{
	size_t n = 0;

	while (*path && n < MAX_COMPS)
		out[n++] = next_comp(&path);
	return n;
}

static bool
is(const struct comp *c, const char *name)
{
	return strlen(name) == c->len && strncasecmp(c->p, name, c->len) == 0;
}

/*
 * .git under any of the spellings that file systems take for it: case, git~1, invisible code points
 * in between.
 */
static bool
is_git(const struct comp *c)
{
	char plain[8];
	size_t n = 0;

	if (is(c, ".git") || is(c, "git~1"))
		return true;
	for (size_t i = 0; i < c->len; i++) {
		unsigned char b = (unsigned char)c->p[i];

		/*
		 * U+200C..U+200F, U+202A..U+202E, U+2060..U+206F, U+FEFF are ignored by some file
		 * systems.
		 */
		if (i + 2 < c->len && b == 0xe2 &&
			((unsigned char)c->p[i + 1] == 0x80 ||
				(unsigned char)c->p[i + 1] == 0x81)) {
			i += 2;
			continue;
		}
		if (i + 2 < c->len && b == 0xef && (unsigned char)c->p[i + 1] == 0xbb &&
			(unsigned char)c->p[i + 2] == 0xbf) {
			i += 2;
			continue;
		}
		if (n == sizeof plain - 1 || b >= 0x80)
			return false;
		plain[n++] = (char)tolower(b);
	}
	plain[n] = 0;
	return strcmp(plain, ".git") == 0;
}

/* Inside a .git directory: what runs code, or sends git to look elsewhere. */
static bool
git_obeys(const struct comp *c, size_t n)
{
	if (n == 0)
		return false;
	if (is(&c[0], "hooks") || is(&c[0], "config") || is(&c[0], "config.worktree") ||
		is(&c[0], "commondir") || is(&c[0], "gitdir") || is(&c[0], "fsmonitor--daemon"))
		return true;
	if (n >= 2 && is(&c[0], "info") && is(&c[1], "attributes"))
		return true;
	if (n >= 3 && is(&c[0], "objects") && is(&c[1], "info") &&
		(is(&c[2], "alternates") || is(&c[2], "http-alternates")))
		return true;
	/*
	 * A submodule's or a worktree's own git directory, at whatever depth its name has; too deep
	 * to look is no.
	 */
	if ((is(&c[0], "modules") || is(&c[0], "worktrees")) && n == MAX_COMPS)
		return true;
	if (is(&c[0], "modules") || is(&c[0], "worktrees"))
		for (size_t i = 1; i < n; i++)
			if (is(&c[i], "config") || is(&c[i], "config.worktree") ||
				is(&c[i], "hooks") || is(&c[i], "commondir") ||
				is(&c[i], "gitdir") ||
				(is(&c[i], "attributes") && is(&c[i - 1], "info")))
				return true;
	return false;
}

static bool
is_one_of(const struct comp *c, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (is(c, names[i]))
			return true;
	return false;
}

/*
 * One table of the names that count at any depth. Project files decide what the next run isolates
 * and what it brings back; tools run or obey the others by themselves, some when their directory is
 * merely entered or opened.
 */
static const char *const project_files[] = { ".sandbox.yaml", ".sbsync.yaml", ".sbsyncignore" };
static const char *const tool_files[] = { ".aider.conf.yml", ".autoenv", ".bash_profile", ".bashrc",
	".clinerules", ".cursorrules", ".devcontainer.json", ".dir-locals.el", ".envrc",
	".exrc", ".gdbinit", ".gitattributes", ".gitconfig", ".gitlab-ci.yml", ".gitmodules",
	".justfile", ".lldbinit", ".lvimrc", ".mcp.json", ".mise.toml", ".npmrc", ".nvim.lua",
	".nvimrc", ".pdbrc", ".pnpmfile.cjs", ".pre-commit-config.yaml", ".profile", ".pryrc",
	".pythonrc.py", ".tool-versions", ".vimrc", ".windsurfrules", ".yarnrc", ".yarnrc.yml",
	".zprofile", ".zshenv", ".zshrc", "AGENTS.md", "CLAUDE.md", "CMakeLists.txt", "GEMINI.md",
	"GNUmakefile", "Jenkinsfile", "Justfile", "Makefile", "Rakefile", "Taskfile.yml",
	"build.gradle", "build.gradle.kts", "build.rs", "conftest.py", "devbox.json", "flake.nix",
	"gradlew", "lefthook.yml", "meson.build", "mise.toml", "mvnw", "noxfile.py", "package.json",
	"pyproject.toml", "setup.py", "shell.nix", "sitecustomize.py", "tox.ini" };
static const char *const tool_dirs[] = { ".circleci", ".claude", ".codex", ".continue", ".cursor",
	".devcontainer", ".fleet", ".gemini", ".githooks", ".husky", ".idea", ".mise", ".mvn",
	".vim", ".vscode", ".windsurf", ".zed" };
static const char *const tool_endings[] = { ".code-workspace", ".sublime-project" };
#define COUNT(list) (sizeof(list) / sizeof(list)[0])

static bool
is_tool_file(const struct comp *dir, const struct comp *leaf)
{
	for (size_t i = 0; i < COUNT(tool_endings); i++) {
		size_t n = strlen(tool_endings[i]);

		if (leaf->len > n && strncasecmp(leaf->p + leaf->len - n, tool_endings[i], n) == 0)
			return true;
	}
	return is_one_of(leaf, tool_files, COUNT(tool_files)) ||
		(is(dir, ".cargo") && (is(leaf, "config.toml") || is(leaf, "config"))) ||
		is(dir, "workflows");
}

enum sb_guard
sb_guard_path(const char *path, bool redirects)
{
	struct comp dir = { "", 0 }, leaf = { "", 0 };
	bool told = false;

	while (*path) {
		struct comp c[MAX_COMPS];

		told = told || is_one_of(&leaf, tool_dirs, COUNT(tool_dirs));
		dir = leaf;
		leaf = next_comp(&path);
		if (!is_git(&leaf))
			continue;
		/* Another spelling of .git is never an honest name. */
		if (leaf.len != 4 || strncmp(leaf.p, ".git", 4) != 0 || leaf.p[4] == '.' ||
			leaf.p[4] == ' ')
			return SB_GUARD_GIT;
		if (!*path)
			return redirects ? SB_GUARD_GIT : SB_GUARD_NONE;
		if (git_obeys(c, split(path, c)))
			return SB_GUARD_GIT;
	}
	if (is_one_of(&leaf, project_files, COUNT(project_files)))
		return SB_GUARD_PROJECT;
	return told || is_tool_file(&dir, &leaf) ? SB_GUARD_AUTOEXEC : SB_GUARD_NONE;
}

bool
sb_guard_escapes(const char *path, const char *target)
{
	long depth = 0;

	if (*target == '/')
		return true;
	for (const char *p = path; (p = strchr(p, '/')); p++)
		depth++;
	while (*target) {
		size_t len = strcspn(target, "/");

		if (len == 2 && memcmp(target, "..", 2) == 0)
			depth--;
		else if (len && !(len == 1 && *target == '.'))
			depth++;
		if (depth < 0)
			return true;
		target += len;
		target += *target == '/';
	}
	return false;
}
