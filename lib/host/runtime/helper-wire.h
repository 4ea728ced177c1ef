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

/*
 * How the host asks the resident helper of a box for a command, so that nothing has to be led into
 * the box for each. The helper's standard input is a stream socket. A byte on it comes with
 * descriptors:
 *
 *   SB_HELPER_HELLO  a pipe, into which the helper writes SB_HELPER_HELLO: descriptors get
 * through to it SB_HELPER_CALL   a socket for this call, then those of stdin, stdout and stderr
 * that `given` names
 *
 * On the call's socket the host sends a struct sb_helper_call and `bytes` of texts, each ended by
 * NUL: `argc` arguments, then `envc` entries of the environment. The helper answers with the exit
 * code in four bytes, after everything that the command left has been ended. The end of that socket
 * ends the command, the end of the helper's own input all of them.
 */
#define SB_HELPER_HELLO 'h'
#define SB_HELPER_CALL 'c'
#define SB_HELPER_BYTES_MAX (8u << 20)
#define SB_HELPER_ARGS_MAX 65536u

struct sb_helper_call {
	uint32_t bytes, argc, envc;
	uint32_t given;      /* bits 1, 2, 4: stdin, stdout, stderr; the others are /dev/null */
	uint64_t max_memory; /* RLIMIT_AS, 0: none */
};

#endif
