/* SPDX-License-Identifier: MIT */
#ifndef SB_COMPAT_SSHGATE_PRIV_H
#define SB_COMPAT_SSHGATE_PRIV_H

#include <pthread.h>
#include <sys/socket.h>

#include <base/cleanup.h>
#include <base/strlist.h>
#include <compat/keep/access.h>
#include <compat/ssh/sshwire.h>
#include <rpc/server/auth.h>
#include <rpc/service/access.h>
#include <sb/host-exec.h>
#include <sb/sshgate.h>

/* A program of a connection; it has a thread. */
struct sb_sshgate_job {
	struct sb_sshgate_job *next;
	struct sb_sshgate_conn *conn;
	uint32_t id;
	bool terminal;
	struct sb_strlist argv, env;
	int fds[3]; /* the program's; -1 once it has them */
	struct sb_cancel *cancel;
	sb_deadline end_at; /* nobody listens any more: it is canceled then */
	uint64_t number;    /* of sb_host_attach; good once it runs */
	bool runs, done;    /* guarded by the connection's `mu`, as below */
	int early;          /* a signal for when it runs */
};

/* How somebody came in, so that it can be asked again whether they still may. */
enum sb_sshgate_way { SB_SSHGATE_NOBODY, SB_SSHGATE_TOKEN, SB_SSHGATE_ACCESS, SB_SSHGATE_KEY };

struct sb_sshgate_conn {
	struct sb_sshgate_conn *next;     /* guarded by the gateway's `mu`, as the three below */
	char session[SB_HOST_ID_MAX + 1]; /* "": nobody is logged in */
	bool over;                        /* no login any more: the gateway closes */
	int wake;                         /* an eventfd: look at `over` */

	struct sb_sshgate *gate;
	int sock;                 /* of the client; -1 once the door has it */
	int link;                 /* to the door */
	char peer[64], local[64]; /* "ADDRESS PORT" */
	char nonce[SB_HOST_NONCE_LEN + 1];
	enum sb_sshgate_way way;
	char *credential;             /* the token, or the key; wiped at the end */
	const struct sb_access *from; /* the API whose token let them in; or NULL */
	sb_deadline active_at;        /* it is told then that somebody works there */
	unsigned tries;
	sb_deadline login_by;

	pthread_mutex_t mu; /* guards what jobs are told across threads */
	pthread_cond_t cv;
	struct sb_sshgate_job *jobs; /* of its thread */
	unsigned n_jobs;
};

struct sb_sshgate {
	struct sb_host *host;
	const struct sb_rpc_auth *auth;
	struct sb_rpc_access *access;
	struct sb_log log;
	char *door;   /* the program */
	char *helper; /* sb-box on the host, for runtime none */
	char *keys, *session_keys;
	struct sb_sshgate_opts o;
	struct sb_buf host_key;
	int listen[8];
	size_t n_listen;
	struct sb_cancel *stop;
	pthread_t thread;
	bool running;

	pthread_mutex_t mu; /* guards all below */
	pthread_cond_t cv;
	struct sb_sshgate_conn *conns;
	unsigned n_conns, n_strangers; /* all; those not logged in */
};

/* sshgate-listen.c */
int sb_sshgate_listen(struct sb_sshgate *g, const char *where, struct sb_error *err);
/* The host's private key as PEM text, made when there is none and `path` is NULL. */
int sb_sshgate_key(const struct sb_sshgate *g, const char *path, struct sb_buf *out,
	struct sb_error *err);

/* sshgate-conn.c: takes `sock` over. Counted by the caller. */
int sb_sshgate_conn_start(struct sb_sshgate *g, int sock, const char *peer, const char *local,
	struct sb_error *err);

/* sshgate-login.c: a login, and then once a second. 0: yes, SB_E_AUTH: no. */
int sb_sshgate_login(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f,
	struct sb_error *err);
int sb_sshgate_login_again(struct sb_sshgate_conn *c, struct sb_error *err);

/* sshgate-job.c: answers the frame. An error is one of the door's. */
int sb_sshgate_job_start(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f,
	struct sb_error *err);
int sb_sshgate_job_dial(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f,
	struct sb_error *err);
int sb_sshgate_job_signal(struct sb_sshgate_conn *c, const struct sb_sshwire_frame *f);
/* Nobody listens to it: it hears of that, and has a moment to end. */
void sb_sshgate_job_leave(struct sb_sshgate_job *j);
/* Frees what is done, cancels what had its moment. */
void sb_sshgate_job_tidy(struct sb_sshgate_conn *c);
/* Ends all; waits for it. */
void sb_sshgate_job_end(struct sb_sshgate_conn *c);

/* Yes, or no and why; with descriptors. */
int sb_sshgate_answer(struct sb_sshgate_conn *c, bool yes, const char *why, const int *fds,
	size_t n_fds, struct sb_error *err);

#endif
