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

static bool
begins(const struct comp *c, const char *prefix)
{
	return c->len >= strlen(prefix) && strncasecmp(c->p, prefix, strlen(prefix)) == 0;
}

/* What git reads in a git directory and obeys, by the components beneath that directory. */
static enum sb_guard_git
class_of(const struct comp *c, size_t n)
{
	if (is(&c[0], "hooks") || is(&c[0], "config") || is(&c[0], "config.worktree") ||
		begins(&c[0], "fsmonitor--daemon"))
		return SB_GUARD_GIT_CONFIG;
	if (is(&c[0], "commondir") || is(&c[0], "gitdir"))
		return SB_GUARD_GIT_PATH;
	if (is(&c[0], "rebase-merge") || is(&c[0], "rebase-apply") || is(&c[0], "sequencer") ||
		begins(&c[0], "BISECT_"))
		return SB_GUARD_GIT_STATE;
	if (n < 2)
		return SB_GUARD_GIT_NONE;
	/* Remotes as they were before they stood in the configuration. */
	if (is(&c[0], "remotes") || is(&c[0], "branches"))
		return SB_GUARD_GIT_CONFIG;
	if (is(&c[0], "info") && (is(&c[1], "attributes") || is(&c[1], "grafts")))
		return SB_GUARD_GIT_CONFIG;
	if (is(&c[0], "svn") && is(&c[1], ".metadata"))
		return SB_GUARD_GIT_CONFIG;
	if (n >= 3 && is(&c[0], "objects") && is(&c[1], "info") &&
		(is(&c[2], "alternates") || is(&c[2], "http-alternates")))
		return SB_GUARD_GIT_PATH;
	return SB_GUARD_GIT_NONE;
}

/*
 * Beneath modules and worktrees lie git directories of their own, at whatever depth their names
 * have; too deep to look is no.
 */
static enum sb_guard_git
classify(const struct comp *c, size_t n)
{
	enum sb_guard_git g = n ? class_of(c, n) : SB_GUARD_GIT_NONE;

	if (g || !n || (!is(&c[0], "modules") && !is(&c[0], "worktrees")))
		return g;
	if (n == MAX_COMPS)
		return SB_GUARD_GIT_PATH;
	for (size_t i = 1; !g && i < n; i++)
		g = class_of(c + i, n - i);
	return g;
}

enum sb_guard_git
sb_guard_git_class(const char *rel)
{
	struct comp c[MAX_COMPS];

	return classify(c, split(rel, c));
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
	".clinerules", ".cursorrules", ".devcontainer.json", ".dir-locals.el", ".envrc", ".exrc",
	".gdbinit", ".gitattributes", ".gitconfig", ".gitlab-ci.yml", ".gitmodules", ".justfile",
	".lldbinit", ".lvimrc", ".mcp.json", ".mise.toml", ".npmrc", ".nvim.lua", ".nvimrc",
	".pdbrc", ".pnpmfile.cjs", ".pre-commit-config.yaml", ".profile", ".pryrc", ".pythonrc.py",
	".tool-versions", ".vimrc", ".windsurfrules", ".yarnrc", ".yarnrc.yml", ".zprofile",
	".zshenv", ".zshrc", "AGENTS.md", "CLAUDE.md", "CMakeLists.txt", "GEMINI.md", "GNUmakefile",
	"Jenkinsfile", "Justfile", "Makefile", "Rakefile", "Taskfile.yml", "build.gradle",
	"build.gradle.kts", "build.rs", "conftest.py", "devbox.json", "flake.nix", "gradlew",
	"lefthook.yml", "meson.build", "mise.toml", "mvnw", "noxfile.py", "package.json",
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
		(is(dir, ".hg") && is(leaf, "hgrc")) || is(dir, "workflows");
}

/* Another spelling of .git is never an honest name. */
static bool
is_misspelt(const struct comp *c)
{
	return c->len != 4 || strncmp(c->p, ".git", 4) != 0 || c->p[4] == '.' || c->p[4] == ' ';
}

bool
sb_guard_git_name(const char *path, bool redirects)
{
	while (*path) {
		struct comp c = next_comp(&path);

		if (is_git(&c) && (is_misspelt(&c) || (!*path && redirects)))
			return true;
	}
	return false;
}

enum sb_guard
sb_guard_path(const char *path)
{
	struct comp dir = { "", 0 }, leaf = { "", 0 };
	bool told = false;

	while (*path) {
		told = told || is_one_of(&leaf, tool_dirs, COUNT(tool_dirs));
		dir = leaf;
		leaf = next_comp(&path);
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

bool
sb_guard_is_git(const char *leaf)
{
	struct comp c = next_comp(&leaf);

	return is_git(&c);
}

bool
sb_guard_is_named(const char *leaf, const char *name)
{
	struct comp c = next_comp(&leaf);

	return is(&c, name);
}
