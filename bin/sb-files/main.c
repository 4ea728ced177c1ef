/* SPDX-License-Identifier: MIT */
/*
 * sb-files: works on the files of one session for the host, in a process of its own that can reach
 * nothing else (lib/host/files/). Started by the host, with a socket as its standard input; -u UID
 * is the session's user.
 */
#include "config.h"

#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <host/files/fileserve.h>

/* The session's files are that user's, and so is what we make of them. */
static int
become(const char *user)
{
	uid_t uid = (uid_t)strtoul(user, NULL, 10);

	return uid == 0 || setgroups(0, NULL) < 0 || setresgid(uid, uid, uid) < 0 ||
			setresuid(uid, uid, uid) < 0 ?
		-1 :
		0;
}

int
main(int argc, char **argv)
{
	struct sb_error err = { 0 };
	int type;

	if (getsockopt(0, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof type }) < 0) {
		(void)fprintf(stderr, "sb-files: started by the sandbox host, not by hand\n");
		return 125;
	}
	if (argc > 2 && (strcmp(argv[1], "-u") != 0 || become(argv[2]) < 0)) {
		(void)fprintf(stderr, "sb-files: cannot become user %s\n", argv[2]);
		return 125;
	}
	if (sb_fileserve(0, &err) == 0)
		return 0;
	(void)fprintf(stderr, "sb-files: %s\n", err.msg);
	return 125;
}
