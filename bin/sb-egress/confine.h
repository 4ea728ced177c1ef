/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_CONFINE_H
#define SB_EGRESS_CONFINE_H

#include <sb/error.h>

/*
 * Gives up what the proxy does not need once its sockets are there: root becomes nobody, no
 * capabilities, no new programs or processes, no signals to others, no files but those of /etc to
 * read, bounded memory. What the kernel does not know is left out, except for the capabilities and
 * the filter of system calls.
 */
int confine(struct sb_error *err);

#endif
