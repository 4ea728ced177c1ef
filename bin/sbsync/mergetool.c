/* SPDX-License-Identifier: MIT */
/* The two versions of a conflict made one by hand, with the tool that the user has for it. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <bin/sbsync/sbsync.h>

/*
 * How known tools are called. Others have a command in git's configuration, the user's own and that
 * of the machine: not the one of a directory that a sandbox had its hands on.
 */
static const struct {
	const char *name, *command;
} tools[] = {
	{ "vimdiff", "vimdiff \"$MERGED\" \"$REMOTE\"" },
	{ "nvimdiff", "nvim -d \"$MERGED\" \"$REMOTE\"" },
	{ "meld", "meld \"$LOCAL\" \"$MERGED\" \"$REMOTE\"" },
	{ "kdiff3", "kdiff3 -o \"$MERGED\" \"$LOCAL\" \"$REMOTE\"" },
	{ "emerge", "emacs -f emerge-files-command \"$LOCAL\" \"$REMOTE\" \"$MERGED\"" },
	{ "code", "code --wait --diff \"$REMOTE\" \"$MERGED\"" },
};

/* Runs argv, with its output into `out` unless that is NULL. The exit status, or -1. */
static int
run(const char *const *argv, char *out, size_t size)
{
	int p[2], status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	if (out && pipe(p) < 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		if (out && dup2(p[1], STDOUT_FILENO) < 0)
			_exit(127);
		(void)execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	if (out) {
		(void)close(p[1]);
		while (used + 1 < size && (n = read(p[0], out + used, size - 1 - used)) > 0)
			used += (size_t)n;
		(void)close(p[0]);
		while (used && out[used - 1] == '\n')
			used--;
		out[used] = '\0';
	}
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return -1;
	return pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool
git_setting(const char *key, char *out, size_t size)
{
	const char *const global[] = { "git", "config", "--global", "--get", key, NULL };
	const char *const all[] = { "git", "config", "--system", "--get", key, NULL };

	return (run(global, out, size) == 0 && out[0]) || (run(all, out, size) == 0 && out[0]);
}

/* The command to run; a new string, NULL: there is none. */
static char *
command(void)
{
	const char *own = getenv("SBSYNC_MERGETOOL"), *editor = getenv("VISUAL");
	char tool[64] = "", text[4096] = "";
	sb_autofree char *key = NULL;

	if (own && *own)
		return strdup(own);
	if (git_setting("merge.tool", tool, sizeof tool)) {
		key = sb_str_printf("mergetool.%s.cmd", tool);
		if (key && git_setting(key, text, sizeof text))
			return strdup(text);
		for (size_t i = 0; i < sizeof tools / sizeof tools[0]; i++)
			if (strcmp(tools[i].name, tool) == 0)
				return strdup(tools[i].command);
	}
	if (!editor || !*editor)
		editor = getenv("EDITOR");
	return editor && *editor ? sb_str_printf("%s \"$MERGED\" \"$REMOTE\"", editor) : NULL;
}

static int
copy(const char *from, const char *to, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 64u << 20);
	r = sb_file_read(AT_FDCWD, from, 64u << 20, &b, err);
	return r < 0 ? r : sb_file_replace(AT_FDCWD, to, b.data, b.len, 0600, err);
}

static int
put_back(const char *merged, const char *local, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct stat st;
	int r;

	if (lstat(local, &st) < 0 || !S_ISREG(st.st_mode))
		return sb_fail(err, SB_E_CHANGED, "%s is no file any more", local);
	sb_buf_init(&b, 64u << 20);
	r = sb_file_read(AT_FDCWD, merged, 64u << 20, &b, err);
	return r < 0 ? r : sb_file_replace(AT_FDCWD, local, b.data, b.len, st.st_mode & 07777, err);
}

static int
in_folder(const char *dir, const char *tool, const char *local, const char *other)
{
	static const char *const names[] = { "LOCAL", "REMOTE", "MERGED" };
	const char *const argv[] = { "sh", "-c", tool, NULL };
	const char *leaf = strrchr(local, '/');
	char *path[3] = { NULL };
	struct sb_error err = { 0 };
	int r = 0;

	leaf = leaf ? leaf + 1 : local;
	for (int i = 0; r == 0 && i < 3; i++) {
		path[i] = sb_str_printf("%s/%s.%s", dir, names[i], leaf);
		r = path[i] ? copy(i == 1 ? other : local, path[i], &err) : SB_E_NOMEM;
		if (r == 0 && setenv(names[i], path[i], 1) < 0)
			r = SB_E_NOMEM;
	}
	(void)setenv("BASE", "/dev/null", 1);
	if (r < 0) {
		complain("%s", err.msg);
	} else if (run(argv, NULL, 0) != 0) {
		complain("the merge tool gave up (%s): nothing was changed", tool);
		r = SB_E_CANCELED;
	} else if ((r = put_back(path[2], local, &err)) < 0) {
		complain("%s", err.msg);
	}
	for (int i = 0; i < 3; i++) {
		if (path[i])
			(void)unlink(path[i]);
		free(path[i]);
	}
	return r < 0 ? EXIT_FAILED : EXIT_DONE;
}

int
merge_by_hand(const char *local, const char *other)
{
	const char *tmp = getenv("TMPDIR");
	sb_autofree char *tool = command();
	sb_autofree char *dir = sb_str_printf("%s/sbsync-merge.XXXXXX", tmp && *tmp ? tmp : "/tmp");
	int r;

	if (!tool) {
		complain("there is no merge tool: set EDITOR, SBSYNC_MERGETOOL (a command with "
			 "$LOCAL, $REMOTE and $MERGED) or git's merge.tool");
		return EXIT_FAILED;
	}
	if (!dir || !mkdtemp(dir)) {
		complain("%s: %s", dir ? dir : "temporary files", strerror(errno));
		return EXIT_FAILED;
	}
	r = in_folder(dir, tool, local, other);
	(void)rmdir(dir);
	return r;
}
