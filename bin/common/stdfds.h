/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_COMMON_STDFDS_H
#define SB_BIN_COMMON_STDFDS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/*
 * First thing in main: standard input, output and error that the caller closed are opened on
 * /dev/null, so that no file of ours gets their number and is written to by mistake. Writing to a
 * standard output or error that was closed fails as if it still were.
 */
static inline void
stdfds_fill(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		/* open() takes the lowest number that is free, which is this one. */
		if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
			(void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
}

/*
 * Last thing: the exit code, or `failed` in place of 0 (after a line on stderr) when what was
 * printed did not reach standard output: to a full disk, a closed descriptor, a pipe nobody reads.
 */
static inline int
stdfds_end(const char *program, int code, int failed)
{
	errno = 0;
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	/* The write that failed may be long ago: then nothing is known about it. */
	(void)fprintf(stderr, "%s: standard output: %s\n", program,
		errno ? strerror(errno) : "not all of it could be written");
	return code == 0 ? failed : code;
}

#endif
