/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_LEND_TTY_H
#define SBSYNC_LEND_TTY_H

#include <stdbool.h>
#include <termios.h>

/*
 * Lends the terminal to a program that may ask the user something there, such as ssh: in a process
 * group of its own it could neither read an answer nor hide it, and would be stopped for ever. The
 * program takes the terminal when it starts (struct sb_spawn_opts, take_terminal); Ctrl-C goes to
 * it until it is given back. One program at a time.
 */
struct sb_lend_tty {
	int fd; /* -1: nothing is lent */
	struct termios before;
};

enum sb_lend_tty_may {
	SB_LEND_TTY_NONE, /* there is no terminal */
	SB_LEND_TTY_NO,   /* there is one that cannot be lent now: who asks there would hang */
	SB_LEND_TTY_YES,
};

/*
 * Whether the terminal may be lent: this process is in its foreground and reads no single keys.
 * After YES it counts as lent, until the call below.
 */
enum sb_lend_tty_may sb_lend_tty_begin(struct sb_lend_tty *l);
/* Takes it back, as it was. Does nothing when nothing is lent. */
void sb_lend_tty_end(struct sb_lend_tty *l);

#endif
