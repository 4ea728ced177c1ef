/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HELPER_WIRE_H
#define SB_HOST_HELPER_WIRE_H

#include <stdint.h>

/*
 * What the host and its helper bin/sb-box agree on.
 *
 * The helper ends with the exit code of the command that it runs, with 128 and the number of the
 * signal that killed it, or with one of these.
 */
#define SB_HELPER_FAILED 125   /* the helper itself failed */
#define SB_HELPER_NOEXEC 126   /* the program cannot be executed */
#define SB_HELPER_NOTFOUND 127 /* there is no such program */

/* The first process of a box says so on its standard error. */
#define SB_HELPER_READY "ready\n"

/*
 * How the host asks the resident helper of a box to run a command. The helper's standard input is a
 * stream socket. The host sends single bytes on it, each with descriptors:
 *
 * - SB_HELPER_HELLO with a pipe, into which the helper writes SB_HELPER_HELLO. So the host knows
 *   that descriptors get through.
 * - SB_HELPER_CALL with a socket for this call, then those of stdin, stdout and stderr that `given`
 *   names.
 *
 * On the call's socket the host sends a struct sb_helper_call and `bytes` of texts, each ended by
 * NUL: `argc` arguments, then `envc` entries of the environment. When the command ended and the
 * helper has killed everything that it left behind, the helper answers with the exit code in four
 * bytes. When the host closes the call's socket, the helper ends that command; when the host closes
 * the helper's input, the helper ends them all.
 */
#define SB_HELPER_HELLO 'h'
#define SB_HELPER_CALL 'c'
#define SB_HELPER_BYTES_MAX (8u << 20)
#define SB_HELPER_ARGS_MAX 65536u
#define SB_HELPER_LEAVE 8u

/* The size of a terminal for "shell -t": columns, rows, both in pixels: 16 bits each, big-endian.
 */
#define SB_HELPER_SIZE_BYTES 8

struct sb_helper_call {
	uint32_t bytes, argc, envc;
	uint32_t given;      /* bits 1, 2, 4: stdin, stdout, stderr; the others are /dev/null.
				SB_HELPER_LEAVE: what it leaves behind goes on */
	uint64_t max_memory; /* RLIMIT_AS, 0: none */
};

#endif
