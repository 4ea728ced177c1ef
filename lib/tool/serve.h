/* SPDX-License-Identifier: MIT */
#ifndef SB_TOOL_SERVE_H
#define SB_TOOL_SERVE_H

#include <sb/error.h>

/*
 * Files, terminals and places of this machine for somebody elsewhere ("sbsync-agent tools"):
 * messages (tool/message.h) each way. request  u32 number, u8 operation, then its arguments answer
 * u32 number, svarint code, then a text when the code is negative, else the results Answers come as
 * they are ready, not in order. Integers are little-endian or varints, texts are length and bytes,
 * a list is its count and its texts.
 */
enum sb_serve_op {
	SB_SERVE_ROOTS = 1,    /* texts: the roots of what follows -> */
	SB_SERVE_READ,         /* path, u32 line, u32 limit -> bytes */
	SB_SERVE_WRITE,        /* path, bytes -> */
	SB_SERVE_RESOLVE,      /* path -> path */
	SB_SERVE_TERM_CREATE,  /* command, args, env, cwd, svarint window -> name */
	SB_SERVE_TERM_OUTPUT,  /* name -> bytes, u8 truncated, u8 ended, varint code, varint signal,
				  u8 stopped */
	SB_SERVE_TERM_WAIT,    /* name -> varint code, varint signal, u8 stopped */
	SB_SERVE_TERM_KILL,    /* name -> */
	SB_SERVE_TERM_RELEASE, /* name -> */
	SB_SERVE_SIGNAL, /* varint pid of an agent that launched something, varint signal, u32 value
			    -> */
	SB_SERVE_PLACE_PREPARE, /* id, instance, root, names, labels, u8 may_create -> place */
	SB_SERVE_PLACE_FIND,    /* id, instance, labels -> place */
	SB_SERVE_PLACE_DESTROY, /* id, instance -> */
};
/* A place: id, instance, root, dirs, labels, u8 fresh. */

/* Signals of SB_SERVE_SIGNAL that have no number of their own. */
#define SB_SERVE_SIG_KILL 1000 /* KILL to the group of what was launched */
#define SB_SERVE_SIG_SIZE 1001 /* value: rows << 16 | cols */

/* Serves until the other side closes; then every terminal ends. */
int sb_serve_run(int in_fd, int out_fd, struct sb_error *err);

#endif
