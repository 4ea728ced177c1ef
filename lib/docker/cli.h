/* SPDX-License-Identifier: MIT */
#ifndef SB_DOCKER_CLI_H
#define SB_DOCKER_CLI_H

#include <base/buf.h>
#include <base/strlist.h>
#include <sb/sandbox.h>

/*
 * A program that is driven by its command line: words that begin every command, and variables that
 * every command gets besides our environment. No shell is involved anywhere.
 */
struct sb_cli {
	struct sb_strlist words; /* the program first */
	struct sb_strlist env;   /* "NAME=value", also an empty value */
};
void sb_cli_free(struct sb_cli *c);
SB_CLEANUP_VALUE(sb_cli, sb_cli_free)

/* An absolute path of the program on PATH (absolute entries only), or NULL. A new string. */
char *sb_cli_find(const char *program);

/* The whole environment of a command: ours, `more` (may be NULL), then the cli's own. */
int sb_cli_environ(const struct sb_cli *c, const char *const *more, struct sb_strlist *out,
	struct sb_error *err);

/* What to do with a command's streams. */
struct sb_cli_io {
	const void *in; /* stdin; NULL: none */
	size_t in_len;
	struct sb_buf *out, *errors; /* initialised; NULL: discarded */
	int hold; /* stdin is this descriptor, which so stays open as long as the command; 0: not */
	bool shown; /* stdin is ours, output goes to our stderr: for commands that take their time
		     */
};

/*
 * Runs the cli's words and `args`. Returns the exit code, or an error; a call that is over kills
 * the command. `io` may be NULL.
 */
int sb_cli_run(const struct sb_cli *c, const char *const *args, const struct sb_cli_io *io,
	const struct sb_call *call, struct sb_error *err);

/*
 * Runs it and wants exit code 0; else SB_E_CHILD with the command, its exit code and the end of
 * what it said. `out` (may be NULL) gets stdout, at most SB_CLI_OUTPUT_MAX bytes.
 */
#define SB_CLI_OUTPUT_MAX (16u << 20)
int sb_cli_must(const struct sb_cli *c, const char *const *args, struct sb_buf *out,
	const struct sb_call *call, struct sb_error *err);

/* The failure of a command that exited with `code`, as sb_cli_must tells it. */
int sb_cli_failed(const struct sb_cli *c, const char *const *args, int code,
	const struct sb_buf *said, struct sb_error *err);

#endif
