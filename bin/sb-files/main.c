/* SPDX-License-Identifier: MIT */
/*
 * sb-files: works on the files of one session for the host, in a process of its own that can reach
 * nothing else (lib/host/files/). Started by the host, with a socket as its standard input.
 */
#include "config.h"

#include <stdio.h>
#include <sys/socket.h>

#include <host/files/fileserve.h>

int
main(void)
{
	struct sb_error err = { 0 };
	int type;

	if (getsockopt(0, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof type }) < 0) {
		(void)fprintf(stderr, "sb-files: started by the sandbox host, not by hand\n");
		return 125;
	}
	if (sb_fileserve(0, &err) == 0)
		return 0;
	(void)fprintf(stderr, "sb-files: %s\n", err.msg);
	return 125;
}
