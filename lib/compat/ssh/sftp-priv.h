/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_SFTP_PRIV_H
#define SB_COMPAT_SFTP_PRIV_H

#include <dirent.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include <compat/ssh/sftp.h>

enum {
	SFTP_INIT = 1,
	SFTP_VERSION = 2,
	SFTP_OPEN = 3,
	SFTP_CLOSE = 4,
	SFTP_READ = 5,
	SFTP_WRITE = 6,
	SFTP_LSTAT = 7,
	SFTP_FSTAT = 8,
	SFTP_SETSTAT = 9,
	SFTP_FSETSTAT = 10,
	SFTP_OPENDIR = 11,
	SFTP_READDIR = 12,
	SFTP_REMOVE = 13,
	SFTP_MKDIR = 14,
	SFTP_RMDIR = 15,
	SFTP_REALPATH = 16,
	SFTP_STAT = 17,
	SFTP_RENAME = 18,
	SFTP_READLINK = 19,
	SFTP_SYMLINK = 20,
	SFTP_STATUS = 101,
	SFTP_HANDLE = 102,
	SFTP_DATA = 103,
	SFTP_NAME = 104,
	SFTP_ATTRS = 105,
	SFTP_EXTENDED = 200,
	SFTP_EXTENDED_REPLY = 201,
};

/* What is open. */
struct sb_sftp_handle {
	uint32_t serial; /* of its number, so that an old one is not taken for it */
	bool used, append;
	int fd;
	DIR *dir; /* of a directory */
};

struct sb_sftp {
	char home[PATH_MAX];
	bool begun;
	struct sb_sftp_handle handles[SB_SFTP_HANDLES_MAX];
};

/* A request as it is read; `bad` once it is too short. */
struct sb_sftp_ask {
	const uint8_t *p, *end;
	bool bad;
	uint32_t id;
};

struct sb_sftp_attrs {
	bool size_given, owner_given, mode_given, times_given;
	uint64_t size;
	uint32_t uid, gid, mode, atime, mtime;
};

uint32_t sb_sftp_u32(struct sb_sftp_ask *a);
uint64_t sb_sftp_u64(struct sb_sftp_ask *a);
const uint8_t *sb_sftp_bytes(struct sb_sftp_ask *a, size_t *len);
/* A path, absolute, in `out` (PATH_MAX bytes). False, and bad: too long, with a NUL. */
bool sb_sftp_path(const struct sb_sftp *s, struct sb_sftp_ask *a, char *out);
struct sb_sftp_handle *sb_sftp_handle_of(struct sb_sftp *s, struct sb_sftp_ask *a);
void sb_sftp_read_attrs(struct sb_sftp_ask *a, struct sb_sftp_attrs *out);

void sb_sftp_put_u32(struct sb_buf *b, uint32_t v);
void sb_sftp_put_u64(struct sb_buf *b, uint64_t v);
void sb_sftp_put_bytes(struct sb_buf *b, const void *p, size_t len);
void sb_sftp_put_attrs(struct sb_buf *b, const struct stat *st);

/* Answers: an errno (0: done), or what was asked for. */
void sb_sftp_answer(struct sb_buf *out, const struct sb_sftp_ask *a, int sys);
void sb_sftp_answer_end(struct sb_buf *out, const struct sb_sftp_ask *a);
/* An answer of another kind: begins it, and sets its length when all is in. */
size_t sb_sftp_begin(struct sb_buf *out, const struct sb_sftp_ask *a, uint8_t kind);
void sb_sftp_end(struct sb_buf *out, size_t at);

/* sftp-file.c, sftp-dir.c, sftp-more.c: the requests. */
typedef void sb_sftp_fn(struct sb_sftp *s, struct sb_sftp_ask *a, struct sb_buf *out);
sb_sftp_fn sb_sftp_file_open, sb_sftp_file_close, sb_sftp_file_read, sb_sftp_file_write,
	sb_sftp_file_fstat, sb_sftp_file_fsetstat;
sb_sftp_fn sb_sftp_dir_open, sb_sftp_dir_read, sb_sftp_dir_realpath, sb_sftp_dir_readlink;
sb_sftp_fn sb_sftp_more_stat, sb_sftp_more_lstat, sb_sftp_more_setstat, sb_sftp_more_remove,
	sb_sftp_more_mkdir, sb_sftp_more_rmdir, sb_sftp_more_rename, sb_sftp_more_symlink,
	sb_sftp_more_extended;
/* A free handle; NULL: none is. */
struct sb_sftp_handle *sb_sftp_handle_new(struct sb_sftp *s);
void sb_sftp_handle_close(struct sb_sftp_handle *h);
void sb_sftp_answer_handle(struct sb_sftp *s, struct sb_buf *out, const struct sb_sftp_ask *a,
	const struct sb_sftp_handle *h);
/* Sets them on a path (fd -1; not through a link when `nofollow`) or a descriptor. An errno. */
int sb_sftp_apply(const char *path, int fd, bool nofollow, const struct sb_sftp_attrs *v);

#endif
