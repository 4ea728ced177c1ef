/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_LAUNCH_H
#define SB_TOOL_LAUNCH_H

#include <signal.h>

#include <base/buf.h>
#include <base/str.h>
#include <sb/cancel.h>

/*
 * Runs a program on another machine: the agent there ("sbsync-agent launch") gives the program its
 * own stdin, stdout and stderr, so nothing stands between caller and program. The agent reads one
 * message (tool/message.h) with the command, answers with one message (a code; then its process
 * number, or a text), starts the program and waits. It writes a mark to stderr before the program
 * starts and another after its end, so that the caller can tell the program's own output from the
 * log-in shell's, and an end from a cut connection. When nobody reads stdout any more (the
 * connection is gone), or somebody sends it a plain TERM (not a queued one, which is for the
 * program), it ends the program's group.
 *
 * The environment travels in the message, so no command line shows it.
 */
struct sb_launch {
	char nonce[33]; /* of the marks; hex */
	const char *cwd;
	const char *const *argv;
	const char *const *env; /* added to the agent's own */
	bool tty;               /* a terminal of its own between the program and the descriptors */
	unsigned short rows, cols;
};

/* Marks on stderr: "\0sb-start:NONCE\n" and "\0sb-end:NONCE:CODE:SIGNAL\n". */
#define SB_LAUNCH_MARK_MAX 80
#define SB_LAUNCH_START "sb-start:"
#define SB_LAUNCH_END "sb-end:"

/* Signals that the agent hands to the group as they are; these two have a meaning of their own. */
#define SB_LAUNCH_SIG_KILL (SIGRTMIN + 3) /* KILL to the group */
#define SB_LAUNCH_SIG_SIZE (SIGRTMIN + 4) /* with rows << 16 | cols: the terminal's size */

void sb_launch_encode(const struct sb_launch *l, struct sb_buf *out);

/* The agent's side, on descriptors 0 to 2. Returns the exit code of the agent. */
int sb_launch_serve(void);

#endif
