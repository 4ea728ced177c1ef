/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PROC_H
#define SB_HOST_PROC_H

#include <host/hsess.h>

struct sb_host;

/*
 * A launched process. It leads a process session of its own and writes its output straight to
 * files, so that it outlives the host; the host knows it again by process id, start time and boot.
 */
struct sb_host_proc {
	atomic_uint refs;
	char id[SB_HOST_PROCESS_ID_MAX + 1];
	uint64_t seq;
	char *binary;
	char *log[2]; /* paths of stdout and stderr */
	char *code;   /* path of the file that gets the exit code, for a host that is not its parent
		       */
	char boot_id[40];
	unsigned port; /* that others may reach; 0: none */
	int pidfd;     /* -1: it was over before we looked */

	/* Guarded by the session's `mu`. */
	enum sb_host_process_status status;
	bool has_exit;
	int exit_code;
	bool killed; /* by KILL, from here */
	int64_t pid, start_ticks, started_ns, ended_ns;
	char *address;          /* where its port is reached; NULL: it has none */
	struct sb_proxy *proxy; /* while it runs */
};

/* A new record with one reference, known to nobody yet. */
struct sb_host_proc *sb_host_proc_new(struct sb_host *h, const struct sb_hsess *s, const char *id,
	uint64_t seq, const char *binary, struct sb_error *err);
struct sb_host_proc *sb_host_proc_ref(struct sb_host_proc *p);
void sb_host_proc_unref(struct sb_host_proc *p);
SB_CLEANUP_PTR(sb_host_proc, sb_host_proc_unref)
bool sb_host_proc_running(const struct sb_host_proc *p);
/*
 * Finds the exit code of a process that ended and was not our child, if there is a way. The caller
 * holds `mu`.
 */
void sb_host_proc_find_code(struct sb_host_proc *p);

/*
 * Adds to the session's list, which takes the reference; drops from list and database. The caller
 * holds `mu`.
 */
int sb_host_proc_add(struct sb_hsess *s, struct sb_host_proc *p, struct sb_error *err);
void sb_host_proc_drop(struct sb_host *h, struct sb_hsess *s, size_t i);

/* The process with a reference, or NULL with SB_E_PROCESS_NOT_FOUND. Takes `mu`. */
struct sb_host_proc *sb_host_proc_find(struct sb_hsess *s, const char *id, struct sb_error *err);

/*
 * Writes the mark of a process or tool call: "<host>/<session row>/", then `what` and `n`. Without
 * `what` it is the prefix of everything in the session.
 */
#define SB_HOST_PROC_MARK_MAX 96
const char *sb_host_proc_mark(const struct sb_host *h, const struct sb_hsess *s, const char *what,
	uint64_t n, char out[SB_HOST_PROC_MARK_MAX]);

/*
 * Reads the processes of a session back from the database and finds those that still run. Before
 * the host is open.
 */
int sb_host_proc_restore(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

/*
 * Ends everything in the session: TERM, after `grace_ms` KILL; waits until all is gone. The caller
 * holds the slot and not `mu`.
 */
void sb_host_proc_kill_all(struct sb_host *h, struct sb_hsess *s, int grace_ms);

/*
 * The same at once and without TERM, and its box stays where the runtime can do that: true. The
 * caller holds the slot and not `mu`.
 */
bool sb_host_proc_clear(struct sb_host *h, struct sb_hsess *s);

/* Stops and continues everything in the session. */
int sb_host_proc_freeze(struct sb_host *h, struct sb_hsess *s, bool freeze, struct sb_error *err);

/* Removes what the processes of a destroyed session left on disk, and the runtime's part of it. */
void sb_host_proc_forget(struct sb_host *h, struct sb_hsess *s);

/*
 * proc-port.c: the way from outside to the port of a process, at the host's advertised address.
 * Opening sets `address`; nobody else may work on the process meanwhile. The probe tells whether
 * the port answers.
 */
int sb_host_proc_port_open(struct sb_host *h, struct sb_hsess *s, struct sb_host_proc *p,
	struct sb_error *err);
void sb_host_proc_port_close(struct sb_hsess *s, struct sb_host_proc *p);
bool sb_host_proc_port_probe(struct sb_host *h, struct sb_hsess *s, const struct sb_host_proc *p);

/* Writes the row. The caller holds `mu`, or nobody else knows the process yet. */
int sb_host_proc_put(struct sb_host *h, const struct sb_hsess *s, const struct sb_host_proc *p,
	struct sb_error *err);

#endif
