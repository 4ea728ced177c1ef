/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PORTHEAD_H
#define SB_HOST_PORTHEAD_H

#include <stddef.h>

/*
 * The head by which a client of an exposed port shows its token: an HTTP request as for a proxy,
 *
 *     CONNECT anything HTTP/1.1
 *     Proxy-Authorization: Bearer TOKEN
 *
 * with CRLF at the end of each line and an empty line. What follows is for the process. Any program
 * that can use an HTTP proxy can say it; the target's name is not looked at.
 */
#define SB_PORTHEAD_MAX 4096

/*
 * 1: it is whole, `used` bytes long, and `authorization` (SB_PORTHEAD_MAX bytes) has the value of
 * its one Proxy-Authorization. 0: more has to come. -1: it is something else, has no such line or
 * two, or does not end within SB_PORTHEAD_MAX bytes.
 */
int sb_porthead_read(const char *p, size_t len, size_t *used, char *authorization);

#endif
