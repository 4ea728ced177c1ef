/* SPDX-License-Identifier: MIT */
/* Slips of the hand, before they cost a night: what is hardly meant is asked about. */
#include "config.h"

#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <bin/common/units.h>
#include <bin/sbsync/sbsync.h>

#define LARGE ((uint64_t)2 << 30)
#define MANY 500000 /* entries; more are large, whatever they hold */

static const char *const markers[] = { ".git", ".hg", ".svn", ".sbsync.yaml", ".sandbox.yaml",
	".sbsyncignore", "package.json", "Makefile", "configure.ac", "CMakeLists.txt", "Cargo.toml",
	"go.mod", "pyproject.toml", "setup.py", "pom.xml", "build.gradle", "Gemfile",
	"composer.json", "meson.build" };

/* What tools make again, and nobody wants to wait for. */
static const char *const made[] = { "node_modules", "target", "build", ".venv" };

static bool
has(const char *dir, const char *name)
{
	char path[PATH_MAX];
	struct stat st;

	return (size_t)snprintf(path, sizeof path, "%s/%s", dir, name) < sizeof path &&
		lstat(path, &st) == 0;
}

static bool
is_project(const char *dir)
{
	for (size_t i = 0; i < sizeof markers / sizeof markers[0]; i++)
		if (has(dir, markers[i]))
			return true;
	return false;
}

/* Bytes of the tree, counted until they are too many. */
static uint64_t
bytes_below(const char *dir)
{
	char *roots[] = { (char *)dir, NULL };
	FTS *t = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	uint64_t bytes = 0;
	size_t n = 0;
	const FTSENT *e;

	while (t && bytes <= LARGE && n++ < MANY && (e = fts_read(t)))
		if (e->fts_info == FTS_F)
			bytes += (uint64_t)e->fts_statp->st_size;
	if (t)
		(void)fts_close(t);
	return n > MANY ? LARGE + 1 : bytes;
}

static bool
is_mount(const char *dir)
{
	char up[PATH_MAX];
	struct stat here, above;

	return (size_t)snprintf(up, sizeof up, "%s/..", dir) < sizeof up && stat(dir, &here) == 0 &&
		stat(up, &above) == 0 && here.st_dev != above.st_dev;
}

/*
 * Why the directory is hardly meant; NULL: nothing speaks against it. What a program may well mean
 * is asked about on a terminal only.
 */
static const char *
odd(const char *dir, char *text, size_t size)
{
	bool asked = isatty(STDIN_FILENO);
	const char *home = getenv("HOME");
	char real[PATH_MAX];

	if (strcmp(dir, "/") == 0)
		(void)snprintf(text, size, "/ is all of this machine");
	else if (home && realpath(home, real) && strcmp(dir, real) == 0)
		(void)snprintf(text, size, "%s is all of your home directory", dir);
	else if (asked && is_mount(dir) && !is_project(dir))
		(void)snprintf(text, size, "%s is a whole file system", dir);
	else if (asked && !is_project(dir) && bytes_below(dir) > LARGE)
		(void)snprintf(text, size,
			"%s has more than 2 GB (or half a million entries) and no mark of a "
			"project",
			dir);
	else
		return NULL;
	return text;
}

static bool
excluded(const struct sync_args *a, const char *name)
{
	for (size_t i = 0; i < a->exclude.n; i++)
		if (strstr(a->exclude.v[i], name))
			return true;
	return false;
}

static void
hint(const struct sync_args *a, const char *dir)
{
	if (a->quiet || a->json || a->gitignore || a->exclude_from.n || has(dir, ".sbsyncignore"))
		return;
	for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
		if (has(dir, made[i]) && !excluded(a, made[i]))
			(void)fprintf(stderr,
				"sbsync: hint: %s goes along; --gitignore leaves out what git "
				"ignores, --exclude %s just this\n",
				made[i], made[i]);
}

int
guard_target(const struct sync_args *a, const char *remote)
{
	char text[PATH_MAX + 128];
	const char *path =
		strncmp(remote, "ssh://", 6) == 0 ? strchr(remote + 6, '/') : strchr(remote, ':');

	text[0] = '\0';
	if (a->yes || a->dry_run)
		return 0;
	if (isatty(STDIN_FILENO) && !strpbrk(remote, ":/") && strcmp(remote, ".") != 0 &&
		strcmp(remote, "..") != 0 && access(remote, F_OK) < 0)
		(void)snprintf(text, sizeof text,
			"%s would be a new directory here (did you mean %s: on another machine?)",
			remote, remote);
	else if (path && strcmp(path, strncmp(remote, "ssh://", 6) == 0 ? "/" : ":/") == 0)
		(void)snprintf(text, sizeof text, "%s is all of that machine", remote);
	if (!text[0] ||
		ask_yes(text, "--yes goes on, ./ in front of it says that it is a directory here"))
		return 0;
	return EXIT_BRAKE;
}

int
guard_start(const struct sync_args *a, const char *local, const char *remote)
{
	char real[PATH_MAX], text[PATH_MAX + 128];
	int r = guard_target(a, remote);

	/* What is not there is the library's to tell. */
	if (r || !realpath(local, real))
		return r;
	if (!a->yes && !a->dry_run && odd(real, text, sizeof text) &&
		!ask_yes(text, "--yes goes on"))
		return EXIT_BRAKE;
	hint(a, real);
	return 0;
}
