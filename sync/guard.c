/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/guard.h>

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

static size_t
split(const char *path, struct comp *out)
{
	size_t n = 0;

	while (*path && n < MAX_COMPS) {
		size_t len = strcspn(path, "/");

		out[n].p = path;
		out[n].len = len;
		while (out[n].len > 1 && (path[out[n].len - 1] == '.' || path[out[n].len - 1] == ' '))
			out[n].len--;
		n++;
		path += len;
		path += *path == '/';
	}
	return n;
}

static bool
is(const struct comp *c, const char *name)
{
	return strlen(name) == c->len && strncasecmp(c->p, name, c->len) == 0;
}

/* .git under any of the spellings that file systems take for it: case, git~1, invisible code points in between. */
static bool
is_git(const struct comp *c)
{
	char plain[8];
	size_t n = 0;

	if (is(c, ".git") || is(c, "git~1"))
		return true;
	for (size_t i = 0; i < c->len; i++) {
		unsigned char b = (unsigned char)c->p[i];

		/* U+200C..U+200F, U+202A..U+202E, U+2060..U+206F, U+FEFF are ignored by some file systems. */
		if (i + 2 < c->len && b == 0xe2 && ((unsigned char)c->p[i + 1] == 0x80 || (unsigned char)c->p[i + 1] == 0x81)) {
			i += 2;
			continue;
		}
		if (i + 2 < c->len && b == 0xef && (unsigned char)c->p[i + 1] == 0xbb && (unsigned char)c->p[i + 2] == 0xbf) {
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
	if (is(&c[0], "hooks") || is(&c[0], "config") || is(&c[0], "config.worktree") || is(&c[0], "commondir") ||
		is(&c[0], "gitdir") || is(&c[0], "fsmonitor--daemon"))
		return true;
	if (n >= 2 && is(&c[0], "info") && (is(&c[1], "attributes") || is(&c[1], "sparse-checkout.lock")))
		return is(&c[1], "attributes");
	if (n >= 3 && is(&c[0], "objects") && is(&c[1], "info") && (is(&c[2], "alternates") || is(&c[2], "http-alternates")))
		return true;
	/* A submodule's or a worktree's own git directory, at whatever depth its name has. */
	if (is(&c[0], "modules") || is(&c[0], "worktrees"))
		for (size_t i = 1; i < n; i++)
			if (is(&c[i], "config") || is(&c[i], "config.worktree") || is(&c[i], "hooks") || is(&c[i], "commondir") ||
				is(&c[i], "gitdir") || (is(&c[i], "attributes") && is(&c[i - 1], "info")))
				return true;
	return false;
}

static bool
runs_by_itself(const struct comp *c, size_t n)
{
	static const char *const anywhere[] = { ".envrc", "Makefile", "GNUmakefile", "package.json", ".npmrc", ".yarnrc", ".yarnrc.yml",
		".pnpmfile.cjs", ".pre-commit-config.yaml", "conftest.py", "build.rs", ".gitmodules", ".gitattributes", "setup.py",
		"lefthook.yml", ".mcp.json", ".justfile", "justfile", "Rakefile", ".bashrc", ".profile", ".zshrc" };
	static const char *const dirs[] = { ".husky", ".githooks", ".devcontainer", ".idea", ".vscode", ".cursor", ".claude" };
	const struct comp *leaf = &c[n - 1];

	for (size_t i = 0; i < sizeof anywhere / sizeof anywhere[0]; i++)
		if (is(leaf, anywhere[i]))
			return true;
	for (size_t i = 0; i + 1 < n; i++)
		for (size_t k = 0; k < sizeof dirs / sizeof dirs[0]; k++)
			if (is(&c[i], dirs[k]))
				return true;
	return n >= 2 && is(&c[n - 2], ".cargo") && (is(leaf, "config.toml") || is(leaf, "config"));
}

enum sb_guard
sb_guard_path(const char *path, bool switches)
{
	struct comp c[MAX_COMPS];
	size_t n = split(path, c);

	for (size_t i = 0; i < n; i++) {
		if (!is_git(&c[i]))
			continue;
		/* Another spelling of .git is never an honest name. */
		if (c[i].len != 4 || strncmp(c[i].p, ".git", 4) != 0 || c[i].p[4] == '.' || c[i].p[4] == ' ')
			return SB_GUARD_GIT;
		if (i + 1 == n)
			return switches ? SB_GUARD_GIT : SB_GUARD_NONE;
		if (git_obeys(c + i + 1, n - i - 1))
			return SB_GUARD_GIT;
	}
	return n && runs_by_itself(c, n) ? SB_GUARD_AUTOEXEC : SB_GUARD_NONE;
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
