/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PROTO_H
#define SBSYNC_PROTO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/cursor.h>
#include <base/strlist.h>
#include <sync/tree/digest.h>
#include <sync/tree/manifest.h>
#include <sync/tree/diff.h>

/*
 * The messages between the controller (the side the user is on) and the agent.
 * doc/sbsync-protocol.5 is the description for people; this file and proto.c are the codec.
 * Integers are little-endian or varints.
 */
#define SB_PROTO_VERSION 1
#define SB_PROTO_MIN 1
#define SB_PROTO_MARKER "\nSBSYNC-AGENT-1\n" /* what the agent prints before its first frame */

enum sb_msg {
	/* either way */
	SB_MSG_PING = 1,  /* I am alive; empty */
	SB_MSG_ERROR = 2, /* I give up: code, errno, text */
	SB_MSG_PROOF = 3, /* frames, bytes and digest of all I sent so far */
	/* controller to agent */
	SB_MSG_HELLO = 16,  /* versions; once a connection */
	SB_MSG_BEGIN = 17,  /* open a root and scan it */
	SB_MSG_RULES = 18,  /* blob: exclude rules; before them the agent hashes nothing */
	SB_MSG_LIST = 19,   /* Merkle descent: these directories, one level (blob) */
	SB_MSG_PLAN = 21,   /* blob: a piece of the changes to make in the agent's root */
	SB_MSG_WANT = 22,   /* blob: a piece of the files to send */
	SB_MSG_SIGREQ = 23, /* blob: sign these files */
	SB_MSG_COMMIT =
		24, /* all PLAN and DATA are out: make it visible; answered by NEED or RESULT */
	SB_MSG_REMEMBER = 25, /* keep your manifest as it is now: the next sync starts from it */
	SB_MSG_GETTREE = 26,  /* send your whole manifest */
	SB_MSG_END = 27,      /* done with this root; another BEGIN may follow */
	SB_MSG_BYE = 28,      /* done with the connection */
	SB_MSG_WATCH = 29,    /* blob: tell me when something changes in these roots; only to peers
				 with SB_FEATURE_WATCH */
	SB_MSG_UNWATCH = 30,  /* no more; answered by WATCHED */
	SB_MSG_GETATTRS = 31, /* u8 kinds: what attributes has your tree? Only to peers with
				 SB_FEATURE_ATTRS; answered by ATTRS */
	SB_MSG_SETATTRS = 32, /* blob: give these files these attributes; answered by ATTRS */
	/* agent to controller */
	SB_MSG_WELCOME = 64,  /* answer to HELLO */
	SB_MSG_SCAN = 65,     /* what the scan found: id, count, base known, identity */
	SB_MSG_CHANGES = 66,  /* blob: diff from the base both hold */
	SB_MSG_MANIFEST = 67, /* blob: answer to LIST and GETTREE */
	SB_MSG_SKIPPED = 68,  /* blob: paths left out and why */
	SB_MSG_HAVE = 69,     /* blob: digests of what an interrupted sync left in the stage */
	SB_MSG_SIGS = 70,     /* blob: answer to SIGREQ */
	SB_MSG_NEED = 71,     /* blob: paths whose content must be sent whole after all */
	SB_MSG_RESULT = 72,   /* blob: what the commit did */
	SB_MSG_CHANGED = 73,  /* something changed; at most once after each WATCH; u8: not all could
				 be watched */
	SB_MSG_WATCHED = 74,  /* answer to UNWATCH; u8 likewise */
	SB_MSG_ATTRS = 75,    /* blob: attributes (tree/attrs.h), or paths that were refused some */
	/* the data stream, from whichever side sends */
	SB_MSG_DATA = 96,     /* u8 codec, u32 raw length, bytes: a block of the tar stream */
	SB_MSG_ROWS = 97,     /* how each announced entry fared, in order: u8 status (0x80: a digest
				 follows) */
	SB_MSG_DATA_END = 98, /* the tar stream is complete */
};

/* What a side can do, in `features`. */
enum {
	SB_FEATURE_WATCH = 1 << 0,
	SB_FEATURE_ATTRS = 1 << 1,
};

/* HELLO and WELCOME. */
struct sb_hello {
	uint32_t version;
	uint32_t min_version;
	uint32_t features;
	char software[64];
};

enum {
	SB_BEGIN_CREATE = 1 << 0,   /* a missing root is an empty one, made at commit */
	SB_BEGIN_CHECKSUM = 1 << 1, /* do not trust the scan cache */
	SB_BEGIN_LAZY = 1 << 2,     /* digests may be left out: the other side is empty */
	SB_BEGIN_RULES = 1 << 3,   /* a RULES message follows when the controller knows its rules */
	SB_BEGIN_CROSS = 1 << 4,   /* cross mount points */
	SB_BEGIN_SESSION = 1 << 5, /* the identity must match, or be written when `claim` is set */
	SB_BEGIN_CLAIM = 1 << 6,   /* first push: write the identity */
	SB_BEGIN_READONLY = 1 << 7, /* I will change nothing there (a dry run, or the source of a
				       mirror): no lock, no recovery */
	SB_BEGIN_AGAIN = 1 << 8, /* an earlier agent of mine may still be busy there (after a lost
				    connection, and in sessions): wait for it */
};

struct sb_begin {
	uint32_t flags;
	uint32_t jobs;
	uint8_t pair[16];       /* names the state kept for this pair of roots */
	uint8_t identity[16];   /* the sandbox id of the session */
	struct sb_digest base;  /* the base the controller holds; zero: none */
	struct sb_digest rules; /* digest of the rules the base was made with */
	char *root;             /* owned when decoded */
};

enum {
	SB_SCAN_BASE_KNOWN = 1 << 0, /* CHANGES follows */
	SB_SCAN_LEFTOVERS = 1 << 1,  /* HAVE follows */
	SB_SCAN_SKIPS = 1 << 2,      /* SKIPPED follows */
	SB_SCAN_MISSING = 1 << 3,    /* there is no root yet */
	SB_SCAN_LAZY = 1 << 4,       /* some digests are unknown; `id` is zero */
	SB_SCAN_RECOVERED = 1 << 5,  /* an interrupted commit was finished first */
	SB_SCAN_LINKS = 1 << 6,      /* there are hard links: no descent, take the whole manifest */
};

struct sb_scan_reply {
	uint32_t flags;
	uint64_t count; /* entries */
	uint64_t bytes_hashed;
	struct sb_digest id;  /* of the agent's manifest */
	uint8_t identity[16]; /* the sandbox id found there, zero: none */
	uint64_t free_bytes;  /* on the root's file system */
	int64_t clock_ms;     /* the agent's wall clock */
	uint16_t root_mode;   /* of the root directory itself */
	int64_t root_mtime;
	uint64_t specials; /* sockets, fifos, devices left out */
};

/* COMMIT. */
struct sb_commit_req {
	uint8_t durability; /* enum sb_durability */
	bool remember;      /* REMEMBER the result when nothing was left alone */
	bool set_root;      /* give the root directory itself this mode and mtime */
	uint16_t root_mode;
	int64_t root_mtime;
};
void sb_proto_commit_encode(const struct sb_commit_req *m, struct sb_buf *b);
int sb_proto_commit_decode(const uint8_t *p, size_t len, struct sb_commit_req *out,
	struct sb_error *err);

/* How the content of a PUT in a plan reaches the receiver. */
enum sb_method {
	SB_METHOD_META,     /* content stays: mode, mtime only */
	SB_METHOD_DATA,     /* an entry of the data stream */
	SB_METHOD_CLONE,    /* copy of the receiver's file `from` */
	SB_METHOD_MOVE,     /* rename of the receiver's file or directory `from` */
	SB_METHOD_LEFTOVER, /* in the stage already, by digest */
	SB_METHOD_MAKE,     /* directory, symlink, empty file: nothing to send */
	SB_METHOD_HARDLINK, /* link to the leader */
	SB_METHOD_DELETE,   /* for DEL */
};

/* How one change of a plan travels; a plan has one for each change, in the same order. */
struct sb_plan_step {
	uint8_t method;
	const char *from; /* CLONE, MOVE; borrowed */
};

/* A plan piece: a diff and its steps. `arena` holds the strings. */
struct sb_plan_piece {
	struct sb_diff diff;
	struct sb_plan_step *steps;
	struct sb_buf strings;
};

void sb_proto_plan_free(struct sb_plan_piece *p);
SB_CLEANUP_VALUE(sb_plan_piece, sb_proto_plan_free)

/* One file the other side is asked to send. */
struct sb_want {
	char *path;            /* its name in the stream */
	char *source;          /* where it is in the sender's tree; NULL: at `path` */
	struct sb_digest base; /* content the asker holds under this path; zero: none */
	uint64_t base_size;
	uint64_t have; /* bytes of the new content the asker has from an interrupted transfer */
	struct sb_digest have_digest;
	uint8_t *sig; /* librsync signature of the asker's copy, or NULL */
	size_t sig_len;
	bool whole; /* no patch, no delta: an earlier try failed */
};

struct sb_want_list {
	struct sb_want *v;
	size_t n;
	size_t cap;
};
void sb_proto_want_free(struct sb_want_list *l);
SB_CLEANUP_VALUE(sb_want_list, sb_proto_want_free)
int sb_proto_want_add(struct sb_want_list *l, const char *path, struct sb_want **out,
	struct sb_error *err);

/* How an entry of the data stream fared at the sender. */
enum sb_sent {
	SB_SENT_OK,
	SB_SENT_VANISHED,
	SB_SENT_UNSTABLE,
	SB_SENT_UNREADABLE,
};

struct sb_sent_row {
	uint8_t status;
	struct sb_digest digest;
};

/* What a commit did. */
struct sb_commit_row {
	char *path;
	uint8_t why; /* enum sb_commit_why */
};

enum sb_commit_why {
	SB_WHY_CHANGED,  /* changed between scan and commit: left alone */
	SB_WHY_NOTEMPTY, /* directory kept: holds excluded or new entries */
	SB_WHY_DENIED,   /* the system refused */
	SB_WHY_SOURCE,   /* its source vanished, kept changing or was unreadable */
	SB_WHY_EXISTS,   /* something appeared where a new entry should go */
};

struct sb_commit_result {
	uint64_t files; /* files and symlinks put in place */
	uint64_t dirs;
	uint64_t deleted;
	uint64_t moved;
	uint64_t bytes;             /* of content written */
	struct sb_digest id;        /* of the manifest after the commit */
	struct sb_commit_row *left; /* what was left alone */
	size_t n_left;
	size_t cap_left;
};
void sb_proto_result_free(struct sb_commit_result *r);
SB_CLEANUP_VALUE(sb_commit_result, sb_proto_result_free)
int sb_proto_result_add(struct sb_commit_result *r, const char *path, enum sb_commit_why why,
	struct sb_error *err);
const char *sb_proto_why_text(enum sb_commit_why why);

void sb_proto_hello_encode(const struct sb_hello *h, struct sb_buf *b);
int sb_proto_hello_decode(const uint8_t *p, size_t len, struct sb_hello *out, struct sb_error *err);
void sb_proto_begin_encode(const struct sb_begin *m, struct sb_buf *b);
int sb_proto_begin_decode(const uint8_t *p, size_t len, struct sb_begin *out, struct sb_error *err);
void sb_proto_scan_encode(const struct sb_scan_reply *m, struct sb_buf *b);
int sb_proto_scan_decode(const uint8_t *p, size_t len, struct sb_scan_reply *out,
	struct sb_error *err);
int sb_proto_plan_encode(const struct sb_diff *diff, const struct sb_plan_step *steps,
	struct sb_buf *b, struct sb_error *err);
int sb_proto_plan_decode(const uint8_t *p, size_t len, const struct sb_manifest_limits *limits,
	struct sb_plan_piece *out, struct sb_error *err);
void sb_proto_want_encode(const struct sb_want_list *l, struct sb_buf *b);
int sb_proto_want_decode(const uint8_t *p, size_t len, struct sb_want_list *out,
	struct sb_error *err);
void sb_proto_result_encode(const struct sb_commit_result *r, struct sb_buf *b);
/* More than `max_left` rows of what was left alone are SB_E_PROTO. */
int sb_proto_result_decode(const uint8_t *p, size_t len, size_t max_left,
	struct sb_commit_result *out, struct sb_error *err);

/* One child in the answer to LIST. */
struct sb_listed {
	struct sb_entry e; /* no name, no dir */
	char *name;
	char *target;
	uint64_t total; /* entries beneath a directory */
};
void sb_proto_listing_add(const struct sb_entry *e, struct sb_buf *b);
/* SB_E_PROTO on anything that is not a valid child; the strings are the caller's. */
int sb_proto_listing_take(struct sb_cursor *c, struct sb_listed *out, struct sb_error *err);

/* Lists of paths (LIST, TREE, NEED, SIGREQ): varint count, then length-prefixed valid paths. */
struct sb_strlist;
void sb_proto_paths_encode(const char *const *v, size_t n, struct sb_buf *b);
int sb_proto_paths_decode(const uint8_t *p, size_t len, struct sb_strlist *out,
	struct sb_error *err);

#endif
