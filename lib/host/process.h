/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PROCESS_H
#define SB_HOST_PROCESS_H

#include <base/spawn.h>
#include <host/hsess.h>

struct sb_host;

/*
 * A launched process. It is the leader of a session of its own and writes its output straight to files, so that
 * it outlives the host; the host knows it again by process id, start time and boot.
 */
struct sb_proc {
	atomic_uint refs;
	char id[SB_HOST_PROCESS_ID_MAX + 1];
	uint64_t seq;
	char *binary;
	char *address;
	char *log[2]; /* paths of stdout and stderr */
	struct sb_hsess *session; /* borrowed: a session outlives its processes */
	struct sb_child child; /* ours; pid 0 when it was found again after a restart */
	int pidfd;
	char boot_id[40];

	/* Guarded by the session's `mu`. */
	enum sb_host_process_status status;
	bool has_exit;
	int exit_code;
	int64_t pid, start_ticks, started_ns, ended_ns;
};

void sb_proc_unref(struct sb_proc *p);
bool sb_proc_running(const struct sb_proc *p);

/* Reads the processes of a session back from the database and finds those that still run. */
int sb_proc_restore(struct sb_host *h, struct sb_hsess *s, struct sb_error *err);

/* With the slot held, `mu` not: TERM, `grace_ms`, KILL to every process; waits until they are gone. */
void sb_proc_kill_all(struct sb_host *h, struct sb_hsess *s, int grace_ms);

/* Stops and continues every process of the session. */
int sb_proc_freeze(struct sb_host *h, struct sb_hsess *s, bool freeze, struct sb_error *err);

/* Removes what the processes of a destroyed session left on disk. */
void sb_proc_remove_logs(struct sb_host *h, struct sb_hsess *s);

/* The thread that notices ends; started when first needed. */
void sb_proc_stop_monitor(struct sb_host *h);

#endif
