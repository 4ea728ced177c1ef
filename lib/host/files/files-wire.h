/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_FILES_WIRE_H
#define SB_HOST_FILES_WIRE_H

#include <stdint.h>

/*
 * What the host and its worker bin/sb-files agree on. The worker's standard input is a stream
 * socket to the host. The host sends a struct sb_files_call with the directory of the workspace as
 * a descriptor, then the texts; it waits for the answer before it sends the next call. The worker
 * answers with a struct sb_files_answer and `bytes` of text. Neither side believes the lengths of
 * the other: the worker ends, and the host ends the worker.
 *
 * Before the first call is looked at, the worker gives up all that it does not need for that one
 * directory (confine.h). A later call with another directory is answered SB_FILES_STALE.
 */
#define SB_FILES_MAGIC 0x73624631u
#define SB_FILES_NAME_MAX 64u
#define SB_FILES_PATH_MAX 8192u
#define SB_FILES_PARAMS_MAX (64u << 20)
#define SB_FILES_TEXT_MAX (16u << 20)

struct sb_files_call {
	uint32_t magic;
	uint32_t tool_bytes;   /* the name of the tool as the caller wrote it; no NUL, as below */
	uint32_t root_bytes;   /* the absolute path that callers know the workspace by */
	uint32_t dir_bytes;    /* where the tool works, relative to it; none: the workspace */
	uint32_t params_bytes; /* a JSON object */
	uint32_t unused;
	int64_t timeout_ms;
	uint64_t text_max; /* bytes of the answer's text */
};

enum {
	SB_FILES_IS_ERROR = 1, /* the tool says that something is wrong */
	SB_FILES_TRUNCATED = 2,
	SB_FILES_LAST = 4,     /* the worker ends now */
	SB_FILES_LANDLOCK = 8, /* what confines it: confine.h */
	SB_FILES_SECCOMP = 16,
};
/* Besides 0 and the codes of sb/error.h. */
#define SB_FILES_STALE 1

struct sb_files_answer {
	uint32_t magic;
	int32_t code; /* negative: the call failed, and the text is the message */
	uint32_t flags;
	uint32_t bytes;
};

#endif
