/* SPDX-License-Identifier: MIT */
/* The difference of two files on the terminal, by the diff program. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <bin/common/units.h>
#include <bin/sbsync/sbsync.h>

#define TEXT_MAX (8 << 20)
#define LOOK 8192 /* a NUL in the beginning: no text */

static bool
is_text(int fd, uint64_t *size)
{
	char head[LOOK];
	struct stat st;
	ssize_t n;

	*size = 0;
	if (fd < 0)
		return true;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	*size = (uint64_t)st.st_size;
	n = pread(fd, head, sizeof head, 0);
	return n >= 0 && *size <= TEXT_MAX && !memchr(head, 0, (size_t)n);
}

/* What a sandbox wrote must not speak to the terminal. */
static void
print_line(const char *line, size_t n, bool tty)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)line[i];

		if (tty && ((c < 0x20 && c != '\t' && c != '\n') || c == 0x7f || c == 0x9b))
			(void)printf("\\x%02x", c);
		else
			(void)putchar(c);
	}
}

static int
run_diff(const char *old_name, int old_fd, const char *new_name, int new_fd, struct sb_error *err)
{
	char old_path[32] = "/dev/null", new_path[32] = "/dev/null", *line = NULL;
	bool tty = isatty(STDOUT_FILENO);
	int out[2], status = -1;
	size_t room = 0;
	ssize_t n;
	FILE *f;
	pid_t pid;

	if (old_fd >= 0)
		(void)snprintf(old_path, sizeof old_path, "/proc/self/fd/%d", old_fd);
	if (new_fd >= 0)
		(void)snprintf(new_path, sizeof new_path, "/proc/self/fd/%d", new_fd);
	if (pipe(out) < 0)
		return sb_fail_errno(err, "pipe");
	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		(void)dup2(out[1], STDOUT_FILENO);
		(void)close(out[0]);
		(void)close(out[1]);
		/* The descriptors are close-on-exec where they come from. */
		if (old_fd >= 0)
			(void)snprintf(old_path, sizeof old_path, "/dev/fd/%d", dup(old_fd));
		if (new_fd >= 0)
			(void)snprintf(new_path, sizeof new_path, "/dev/fd/%d", dup(new_fd));
		(void)execlp("diff", "diff", "-u", "--label", old_name, "--label", new_name, "--",
			old_path, new_path, (char *)NULL);
		_exit(127);
	}
	(void)close(out[1]);
	f = fdopen(out[0], "r");
	while (pid > 0 && f && (n = getline(&line, &room, f)) > 0)
		print_line(line, (size_t)n, tty);
	free(line);
	if (f)
		(void)fclose(f);
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		WEXITSTATUS(status) > 1)
		return sb_fail(err, SB_E_CHILD, "%s: the diff program failed", new_name);
	return 0;
}

int
show_diff(const char *old_name, int old_fd, const char *new_name, int new_fd, struct sb_error *err)
{
	uint64_t old_size, new_size;
	bool text = is_text(old_fd, &old_size);
	char a[24], b[24];

	text = is_text(new_fd, &new_size) && text;
	if (text)
		return run_diff(old_name, old_fd, new_name, new_fd, err);
	(void)printf("%s: not shown (no text, or long): %s here, %s there\n", new_name,
		old_fd < 0 ? "nothing" : unit_bytes(old_size, a, sizeof a),
		new_fd < 0 ? "nothing" : unit_bytes(new_size, b, sizeof b));
	return 0;
}
