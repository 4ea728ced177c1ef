/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_SFTP_H
#define SB_COMPAT_SFTP_H

#include <base/buf.h>

/*
 * A server of SFTP version 3 (draft-ietf-secsh-filexfer-02) with the extensions of OpenSSH that its
 * clients use: posix-rename, hardlink, fsync, statvfs, limits, lsetstat. It works with the rights
 * and the paths of its process, which is one in a session's box (bin/sb-box): whatever a client
 * says leads nowhere that a command of the session could not go.
 */
struct sb_sftp;

#define SB_SFTP_PACKET_MAX (256u << 10)
#define SB_SFTP_DATA_MAX (SB_SFTP_PACKET_MAX - 1024)
#define SB_SFTP_HANDLES_MAX 256

/* `home`: what relative paths begin at; copied. NULL: out of memory. */
struct sb_sftp *sb_sftp_new(const char *home);
/* Closes what a client left open. NULL is allowed. */
void sb_sftp_free(struct sb_sftp *s);
/*
 * Takes one whole packet off `in`, if there is one, and appends the answer to `out`. 1: taken; 0:
 * more has to come; -1: nobody speaks SFTP there, or out of memory.
 */
int sb_sftp_step(struct sb_sftp *s, struct sb_buf *in, struct sb_buf *out);

#endif
