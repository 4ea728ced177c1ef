/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_FILEPOOL_H
#define SB_HOST_FILEPOOL_H

#include <pthread.h>

#include <base/child.h>
#include <sb/host-exec.h>

/*
 * The workers of one session: processes of bin/sb-files, which run the tools that work on files.
 * The host evaluates nothing of such a call itself. A call has a worker for itself while it runs;
 * the first call starts one, later ones find it waiting. At most SB_FILEPOOL_WORKERS run for a
 * session, more calls wait for their turn. A call that must end ends its worker, at once. Between
 * calls a worker holds nothing of the workspace open. Thread-safe.
 */
#define SB_FILEPOOL_WORKERS 4
#define SB_FILEPOOL_IDLE 2 /* so many wait for the next call */

struct sb_filepool_worker {
	struct sb_filepool_worker *next;
	struct sb_child child;
	int sock;
	int64_t idle_since;
	uint64_t gen; /* of the pool, when it began */
};

struct sb_filepool {
	pthread_mutex_t mu; /* guards all below */
	pthread_cond_t cv;
	struct sb_filepool_worker *idle; /* the latest first */
	unsigned n, n_idle;              /* all of them; those that wait */
	uint64_t gen;                    /* grows with each new workspace */
};

void sb_filepool_init(struct sb_filepool *p);
/* Nobody calls any more. */
void sb_filepool_free(struct sb_filepool *p);

struct sb_filepool_call {
	const char *const *argv; /* starts a worker; NULL-terminated */
	const char *workspace;   /* the directory on the host */
	pthread_rwlock_t *place; /* held, shared, while it is opened; for calls that write
				    (not `again`), until they end. NULL: none */
	const char *root;        /* the absolute path that the caller knows it by */
	const char *dir;         /* what relative paths begin at; "": the workspace */
	const char *tool;
	const char *params;              /* a JSON object as text */
	bool again;                      /* the tool changes nothing: it may be tried twice */
	uint64_t text_max;               /* bytes of the result; 0: the most that there is */
	sb_deadline deadline;            /* of the tool */
	const struct sb_cancel *kill;    /* of the session */
	const struct sb_host_call *call; /* of the caller; may be NULL */
};

/* What holds the worker, as far as the kernel can: see confine.h. */
struct sb_filepool_answer {
	char *text; /* NUL-terminated; the caller's to free */
	size_t len;
	bool is_error, truncated;
	bool landlock, seccomp;
};

/*
 * SB_E_INVAL and the tool's own codes; SB_E_TIMEOUT, SB_E_CANCELED; SB_E_RUNTIME when no worker can
 * be had. A worker that dies of the call is a result with `is_error`.
 */
int sb_filepool_run(struct sb_filepool *p, const struct sb_filepool_call *c,
	struct sb_filepool_answer *out, struct sb_error *err);

/* The workspace is another one: workers that know the old one get no more calls. */
void sb_filepool_renew(struct sb_filepool *p);
/* Ends the workers that wait. */
void sb_filepool_end(struct sb_filepool *p);
/* Ends those that have waited for longer than `ms`. Returns how many workers are left. */
unsigned sb_filepool_trim(struct sb_filepool *p, int64_t ms);

#endif
