/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_FILESERVE_H
#define SB_HOST_FILESERVE_H

#include <sb/error.h>

/*
 * The loop of bin/sb-files: answers the calls that come by the socket (files-wire.h) until it is
 * closed. SIGTERM, and the end of the host, end the process at once, without leaving a half-written
 * file. Returns 0, or an error when the host broke the protocol or the process could not be
 * confined.
 */
int sb_fileserve(int sock, struct sb_error *err);

#endif
