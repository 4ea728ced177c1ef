/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_GUEST_H
#define SB_HOST_GUEST_H

#include <base/buf.h>
#include <base/strlist.h>
#include <host/guest/guest-wire.h>
#include <sb/host-exec.h>

/*
 * Programs with streams, terminals, files and watches in a session, for callers that come and go:
 * what they start belongs to the session, goes on when they leave, and can be joined again, also by
 * a host that was restarted (not with runtime none). All of it happens inside the session's box: by
 * its paths, with its user's rights, behind its links.
 *
 * In the box a guest works (bin/sb-box/guest.h), which the first call starts. Everything that it
 * says is the tenant's word. Calls need an ACTIVE session, else they give its state's error.
 * Thread-safe. Errors of the work itself: SB_E_NOTFOUND, SB_E_EXISTS, SB_E_DENIED, SB_E_NOSPACE,
 * SB_E_PROCESS_NOT_FOUND, SB_E_CLOSED (no input), SB_E_INVAL (`sys`: ENOTDIR, EISDIR, ELOOP, ...);
 * SB_E_RUNTIME when the guest cannot be had or went away.
 */
struct sb_guests;

/* `h` is the caller's and outlives it. */
struct sb_guests *sb_guests_new(struct sb_host *h, struct sb_error *err);
/* Leaves all links; nobody calls any more. What runs goes on. */
void sb_guests_free(struct sb_guests *g);

/* A program, a watch or a file that a caller has to do with. Used by one thread at a time. */
struct sb_guest_stream;

/* How a program is started. */
struct sb_guest_program {
	const char *const *argv; /* NULL-terminated; looked up in the PATH of its environment */
	const char *const *env;  /* KEY=value beside the box's own; NULL-terminated or NULL */
	const char *cwd;         /* absolute */
	const char *tag;         /* a name of the caller's, or NULL */
	bool input;              /* it has some; else /dev/null */
	bool terminal;           /* of `cols` and `rows`; with input */
	unsigned cols, rows;
	int64_t limit_ms; /* it is killed after this, whoever listens; 0: never */
};
int sb_guest_start(struct sb_guests *g, const char *session, const struct sb_guest_program *p,
	const struct sb_host_call *call, struct sb_guest_stream **out, int64_t *out_pid,
	struct sb_error *err);

/* Which program: `pid` as the box counts, or (0) the newest of that tag. */
struct sb_guest_who {
	int64_t pid;
	const char *tag;
};
/* Its output from now on, or how it ended, up to 30 s later. */
int sb_guest_attach(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	const struct sb_host_call *call, struct sb_guest_stream **out, int64_t *out_pid,
	struct sb_error *err);
/* Waits until the program can have it. `terminal` must be what the program has. */
int sb_guest_input(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	bool terminal, const void *data, size_t len, const struct sb_host_call *call,
	struct sb_error *err);
int sb_guest_input_end(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	const struct sb_host_call *call, struct sb_error *err);
/* To it and what it started. */
int sb_guest_signal(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	int sig, const struct sb_host_call *call, struct sb_error *err);
int sb_guest_resize(struct sb_guests *g, const char *session, const struct sb_guest_who *who,
	unsigned cols, unsigned rows, const struct sb_host_call *call, struct sb_error *err);

/* A program that runs. Freed with sb_guest_running_free. */
struct sb_guest_running {
	int64_t pid;
	char *tag, *cwd;
	struct sb_strlist argv, env;
};
int sb_guest_list(struct sb_guests *g, const char *session, const struct sb_host_call *call,
	struct sb_guest_running **out, size_t *out_n, struct sb_error *err);
void sb_guest_running_free(struct sb_guest_running *v, size_t n);

/* What a directory holds, or a path is. */
struct sb_guest_entry {
	char *name; /* of a listing: the path beneath what was listed */
	char kind;  /* 'f' file, 'd' directory, 'l' symlink, 'o' other */
	uint64_t size;
	uint32_t mode; /* with type */
	bool own;      /* of the box's user */
	int64_t mtime_s;
	uint32_t mtime_ns;
	char *target;           /* of a symlink, else "" */
	struct sb_strlist meta; /* "user.NAME=value": attributes */
};
void sb_guest_entry_clear(struct sb_guest_entry *e);
SB_CLEANUP_VALUE(sb_guest_entry, sb_guest_entry_clear)
void sb_guest_entries_free(struct sb_guest_entry *v, size_t n);

enum sb_guest_event_kind { SB_GUEST_EV_OUTPUT, SB_GUEST_EV_END, SB_GUEST_EV_CHANGE };
/* Something of a stream; pointers are good until the next one. */
struct sb_guest_event {
	enum sb_guest_event_kind kind;
	int which; /* OUTPUT: 1 stdout, 2 stderr, 3 terminal */
	const uint8_t *data;
	size_t len;
	int code, sig;                /* END: `sig` 0: it exited with `code` */
	enum sb_guest_change change;  /* CHANGE ... */
	const char *name;             /* ... of this path beneath the watched one */
	struct sb_guest_entry *entry; /* as it is now, or NULL */
};
/*
 * Waits for the next. 1: there is one; 0: `wait_ms` (negative: for ever) passed without one.
 * SB_E_CLOSED when the guest is gone (the session was destroyed, rolled back, ...).
 */
int sb_guest_next(struct sb_guest_stream *s, int64_t wait_ms, const struct sb_host_call *call,
	struct sb_guest_event *ev, struct sb_error *err);
/* Ends the listening, the watch or the file. NULL is allowed. */
void sb_guest_leave(struct sb_guest_stream *s);

/* Files, by absolute paths of the box. `out` may be NULL. */
int sb_guest_stat(struct sb_guests *g, const char *session, const char *path,
	const struct sb_host_call *call, struct sb_guest_entry *out, struct sb_error *err);
/* Down to `depth` levels; at most 10000 entries (SB_E_LIMIT). */
int sb_guest_dir(struct sb_guests *g, const char *session, const char *path, unsigned depth,
	const struct sb_host_call *call, struct sb_guest_entry **out, size_t *out_n,
	struct sb_error *err);
/* With parents. SB_E_EXISTS for a directory, SB_E_INVAL (ENOTDIR) for something else. */
int sb_guest_mkdir(struct sb_guests *g, const char *session, const char *path,
	const struct sb_host_call *call, struct sb_guest_entry *out, struct sb_error *err);
/* With parents of `to`; also to another file system. */
int sb_guest_move(struct sb_guests *g, const char *session, const char *from, const char *to,
	const struct sb_host_call *call, struct sb_guest_entry *out, struct sb_error *err);
/* With all beneath; what is not there is removed already. */
int sb_guest_remove(struct sb_guests *g, const char *session, const char *path,
	const struct sb_host_call *call, struct sb_error *err);
int sb_guest_chmod(struct sb_guests *g, const char *session, const char *path, unsigned mode,
	const struct sb_host_call *call, struct sb_guest_entry *out, struct sb_error *err);
/* Replaces all attributes whose names begin with `prefix` ("user.x.") by these NAME=value. */
int sb_guest_meta(struct sb_guests *g, const char *session, const char *path, const char *prefix,
	const struct sb_strlist *pairs, const struct sb_host_call *call, struct sb_guest_entry *out,
	struct sb_error *err);
/* One file of several, in their order; they go. */
int sb_guest_join(struct sb_guests *g, const char *session, const char *to,
	const struct sb_strlist *from, const struct sb_host_call *call, struct sb_guest_entry *out,
	struct sb_error *err);
/* `flags`: SB_GUEST_DEEP, SB_GUEST_ENTRIES. */
int sb_guest_watch(struct sb_guests *g, const char *session, const char *path, unsigned flags,
	const struct sb_host_call *call, struct sb_guest_stream **out, struct sb_error *err);

/* Opens a regular file; `flags`: SB_GUEST_WRITING, SB_GUEST_PARENTS, SB_GUEST_NEW. */
int sb_guest_open(struct sb_guests *g, const char *session, const char *path, unsigned flags,
	unsigned mode, const struct sb_host_call *call, struct sb_guest_stream **out,
	struct sb_guest_entry *entry, struct sb_error *err);
/* At most SB_GUEST_DATA_MAX bytes, appended to `out`. Returns the count, 0 at the end. */
int64_t sb_guest_read(struct sb_guest_stream *s, uint64_t offset, size_t count,
	const struct sb_host_call *call, struct sb_buf *out, struct sb_error *err);
/* Behind what was written. Some may be under way when it returns: the flush waits for all. */
int sb_guest_write(struct sb_guest_stream *s, const void *data, size_t len,
	const struct sb_host_call *call, struct sb_error *err);
int sb_guest_flush(struct sb_guest_stream *s, const struct sb_host_call *call,
	struct sb_error *err);

#endif
