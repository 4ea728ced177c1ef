/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_GUEST_WIRE_H
#define SB_HOST_GUEST_WIRE_H

/*
 * What the host and the guest of a session say to each other. The guest is bin/sb-box as
 * "guest PATH": it stays in the session's box, runs commands and works on files there. Its standard
 * input is the first link, a stream socket; "guest-link PATH", started with another socket as its
 * input, hands that one over as one more link.
 *
 *   0               4      5               9
 *   +---------------+------+---------------+-------------- - -
 *   | length of rest| what | id            | fields              (little-endian)
 *   +---------------+------+---------------+-------------- - -
 *
 * The host chooses the id of a request; the answer has the same one: DONE with fields, or FAILED.
 * START, ATTACH, OPEN and WATCH give their id to what they make: later frames name it by that.
 * Numbers are varints, texts are a varint length and bytes; a list is a count and its members.
 *
 * The guest believes the host. The host believes the guest nothing: it is the tenant's.
 */
#define SB_GUEST_HEAD 9
#define SB_GUEST_FRAME_MAX (1u << 20) /* bytes of one frame */
#define SB_GUEST_DATA_MAX 65536u      /* bytes of one piece of a stream or a file */
#define SB_GUEST_WINDOW (256u * 1024) /* of a stream: bytes that may be under way */
#define SB_GUEST_LINKS_MAX 64
#define SB_GUEST_PATH "/run/.sb-guest" /* its socket, where the runtime has boxes */

enum sb_guest_what {
	/* From the host. */
	SB_GUEST_START = 1,   /* flags, cols, rows, limit in ms (0: none), cwd, tag, list of
				 arguments, list of KEY=value;   answer: pid */
	SB_GUEST_ATTACH = 2,  /* pid (0: by tag), tag; answer: pid */
	SB_GUEST_INPUT = 3,   /* pid, tag, flags, bytes; answered when the program can have them */
	SB_GUEST_NO_MORE = 4, /* pid, tag: the end of its input */
	SB_GUEST_SIGNAL = 5,  /* pid, tag, number */
	SB_GUEST_RESIZE = 6,  /* pid, tag, cols, rows */
	SB_GUEST_PROCS = 7,   /* answer: MORE frames: pid, tag, cwd, arguments, KEY=value */
	SB_GUEST_CREDIT = 8,  /* bytes that may be sent beyond; no answer */
	SB_GUEST_LEAVE = 9,   /* no more of this stream, file or watch; no answer */
	SB_GUEST_STAT = 20,   /* path; answer: an entry */
	SB_GUEST_DIR = 21,    /* path, depth; answer: MORE frames with entries */
	SB_GUEST_MKDIR = 22,  /* path; answer: an entry */
	SB_GUEST_MOVE = 23,   /* path, path; answer: an entry */
	SB_GUEST_REMOVE = 24, /* path, with all beneath */
	SB_GUEST_OPEN = 25,   /* path, flags, mode; answer: an entry */
	SB_GUEST_READ = 26,   /* file, offset, count; answer: bytes */
	SB_GUEST_WRITE = 27,  /* file, bytes at its end */
	SB_GUEST_WATCH = 29,  /* path, flags */
	SB_GUEST_META = 30,   /* path, prefix, list of NAME=value: its attributes of that prefix */
	SB_GUEST_JOIN = 31,   /* path, list of paths: one file of several, which go; an entry */
	SB_GUEST_CHMOD = 32,  /* path, mode; answer: an entry */
	/* From the guest. */
	SB_GUEST_HELLO = 100, /* version: the link works */
	SB_GUEST_DONE = 101,
	SB_GUEST_FAILED = 102, /* errno, words */
	SB_GUEST_MORE = 103,
	SB_GUEST_OUTPUT = 104, /* which (1 stdout, 2 stderr, 3 terminal), bytes */
	SB_GUEST_EXIT = 105,   /* code, signal (0: none) */
	SB_GUEST_EVENT = 106,  /* kind, name, 1 and an entry or 0 */
};

/*
 * An entry: name, kind ('f', 'd', 'l', 'o'), size, mode with type, own (1: of the box's user),
 * mtime in s and ns, target of a link, list of NAME=value: its attributes whose names begin with
 * "user.".
 */

#define SB_GUEST_VERSION 1

enum { SB_GUEST_STDIN = 1, SB_GUEST_PTY = 2 };                         /* START, INPUT */
enum { SB_GUEST_WRITING = 1, SB_GUEST_PARENTS = 2, SB_GUEST_NEW = 4 }; /* OPEN */
enum { SB_GUEST_DEEP = 1, SB_GUEST_ENTRIES = 2 };                      /* WATCH */
enum sb_guest_change {
	SB_GUEST_CREATED = 1,
	SB_GUEST_WROTE = 2,
	SB_GUEST_REMOVED = 3,
	SB_GUEST_RENAMED = 4,
	SB_GUEST_CHMODDED = 5,
};

#endif
