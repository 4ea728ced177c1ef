/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_LAUNCH_H
#define SB_TOOL_LAUNCH_H

#include <signal.h>

#include <base/buf.h>
#include <base/str.h>
#include <sb/cancel.h>

/*
 * A program run on another machine with its stdin, stdout and stderr on those of the agent that
 * starts it ("sbsync-agent launch"), so that nothing stands between. The agent reads one message
 * (tool/message.h) that says what to run, answers with one message (a code; then its process
 * number, or a text), starts the program with the very descriptors it has, and waits. To stderr it
 * writes a start mark before and an end mark behind, so that the caller knows where the program's
 * own begins, and that an end is an end and not a cut. When nobody reads stdout any more (the
 * connection is gone) it ends the program's group.
 *
 * The environment travels in the message: nothing of it is on a command line.
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
