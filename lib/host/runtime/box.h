/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_BOX_H
#define SB_HOST_BOX_H

#include <pthread.h>
#include <stdatomic.h>

#include <base/strlist.h>
#include <egress/egress-client.h>
#include <egress/egress-pump.h>
#include <host/runtime/cgroup.h>
#include <host/runtime/resident.h>
#include <host/runtime/runtime.h>

/*
 * A box is the isolated container that the commands of one session run in. bwrap and gvisor have
 * this in common: the first command of a session makes its box, a restarted host finds it again by
 * a record in the state directory, the end of the session ends it. To the host a box is a process,
 * the first of its namespaces or gVisor's kernel; when that ends, the kernel ends everything in it.
 */
#define SB_BOX_HELPER "/.sb/box" /* where bin/sb-box is inside */
#define SB_BOX_WORKSPACE "/workspace"
#define SB_BOX_HOME "/home/sandbox"

struct sb_box_runtime;

struct sb_box {
	struct sb_box *next;
	struct sb_box_runtime *owner; /* whose `mu` guards these first ones */
	unsigned refs;
	bool gone; /* forgotten: freed with the last reference */
	char *session;
	char name[96]; /* of its group, and of its container: unique on the machine */
	char *dir;     /* record and configuration */

	pthread_mutex_t mu; /* guards all below; held while it is made or ended */
	pid_t pid;          /* 0: there is none */
	int64_t ticks;
	int pidfd;
	pid_t outer; /* a child of ours that ends with the box and must be reaped; 0: none */
	enum sb_host_network network;
	bool frozen;
	bool unsure; /* of that: a host that was killed may not have written it down */
	uint64_t seq;
	uid_t user; /* gvisor: who commands are inside; 0: root, who is another user outside */
	struct sb_cgroup group;
	struct sb_resident resident; /* gvisor */
	struct sb_child forker; /* see box-stock.h; none: commands go into the group themselves */
	int forker_control;     /* -1: there is none */
	struct sb_egress_client egress; /* network outbound */
	char netns[64];                 /* of the session, while the box is made */
};

struct sb_box_kind {
	/*
	 * Checks whether the runtime works here; `picky` as in struct sb_runtime_opts.
	 * SB_E_UNSUPPORTED.
	 */
	int (*probe)(struct sb_box_runtime *b, bool picky, struct sb_error *err);
	/* Makes the box and returns its process. The caller holds `mu` and has made the group. */
	int (*create)(struct sb_box_runtime *b, struct sb_box *box,
		const struct sb_runtime_cmd *cmd, pid_t *out, struct sb_error *err);
	/*
	 * Cleans up after the process of the box was killed; with `all_dead` only files are left.
	 * The caller holds `mu`. May be NULL.
	 */
	void (*destroy)(struct sb_box_runtime *b, struct sb_box *box, bool all_dead);
	/* Adds the arguments that lead into the box, up to a program inside. The caller holds `mu`.
	 */
	int (*lead_in)(struct sb_box_runtime *b, const struct sb_box *box, struct sb_strlist *l,
		struct sb_error *err);
	/*
	 * How many threads of the host a process inside takes (0: one), and the box itself (0:
	 * none).
	 */
	unsigned threads, own_threads;
	bool watched;     /* its processes are processes of the host: see box-watch.h */
	bool stocked;     /* what it starts on the host begins in the box's groups: box-stock.h */
	bool joins_netns; /* create() needs the network namespace (`netns`) beforehand */
};

struct sb_box_runtime {
	struct sb_runtime rt; /* first */
	const struct sb_box_kind *kind;
	const struct sb_host_opts *o;
	const char *key;
	char *helper;  /* bin/sb-box on the host */
	char *program; /* bwrap or runsc */
	char *root;    /* the read-only root that all boxes share */
	char *etc;
	char *resolv;            /* resolv.conf of boxes with network outbound */
	const char *platform;    /* gvisor */
	atomic_bool no_resident; /* gvisor: it hands no descriptors through */
	struct sb_cgroup groups;
	char *roots;        /* file: where hosts made groups, see sb_cgroup_remember */
	pthread_mutex_t mu; /* guards the list, and the making of the root */
	bool root_made;
	struct sb_box *first;

	struct sb_box_watch *watch; /* guarded by `mu`; NULL: nothing needs it */
	struct sb_box_stock *stock; /* guarded by `mu`; NULL: nothing needed it yet */

	pthread_mutex_t egress_mu;             /* guards what follows */
	struct sb_box_egress_policy *policies; /* see box-egress.h */
	struct sb_egress_pump *pump;
	sb_egress_pump_fn on_network; /* set once */
	void *network_arg;
	bool egress_known, egress_works;
	char egress_why[256];
};

/* Opens a runtime of that kind and probes it; looks `program` up in PATH. */
struct sb_runtime *sb_box_runtime_open(const struct sb_runtime_ops *ops,
	const struct sb_box_kind *kind, const struct sb_runtime_opts *o, const char *program,
	struct sb_error *err);
void sb_box_runtime_close(struct sb_runtime *rt);

/*
 * Returns the running box of the session with its `mu` locked, and makes the box when there is
 * none. NULL: error.
 */
struct sb_box *sb_box_hold(struct sb_box_runtime *b, const struct sb_runtime_cmd *cmd,
	struct sb_error *err);
/* The same, but returns NULL when no box runs. */
struct sb_box *sb_box_hold_running(struct sb_box_runtime *b, const char *session);
void sb_box_release(struct sb_box *box);
/* Writes the record again; the caller holds `mu`. */
int sb_box_note(struct sb_box *box, struct sb_error *err);

/* Operations of struct sb_runtime_ops that are the same for both runtimes. */
void sb_box_runtime_forget(struct sb_runtime *rt, const char *session);
bool sb_box_runtime_holds(struct sb_runtime *rt, const char *session);
void sb_box_runtime_limits(struct sb_runtime *rt, struct sb_runtime_limits *out);
uint64_t sb_box_runtime_ooms(struct sb_runtime *rt, const char *session);
void sb_box_runtime_sweep(struct sb_runtime *rt, bool (*known)(const char *session, void *arg),
	void *arg);
/* The relay inside the box lives as long as the connection. SB_E_UNSUPPORTED: shared network. */
int sb_box_runtime_connect(struct sb_runtime *rt, const char *session, const char *mark,
	pid_t leader, unsigned port, sb_deadline d, int *out_fd, struct sb_error *err);

/* The operations about network outbound (box-egress.c). */
int sb_box_egress_check(struct sb_runtime *rt, struct sb_error *err);
int sb_box_egress_policy(struct sb_runtime *rt, const char *session, const char *text, size_t *cut,
	struct sb_error *err);
uint64_t sb_box_egress_unrouted(struct sb_runtime *rt, const char *session);

/* What the tables of both begin with. */
#define SB_BOX_RUNTIME_OPS \
	.version = 1, .isolates = true, .network_policy = true, \
	.networks = 1u << SB_HOST_NET_NONE | 1u << SB_HOST_NET_SANDBOX | 1u << SB_HOST_NET_HOST | \
		1u << SB_HOST_NET_OUTBOUND, \
	.outbound = sb_box_egress_check, .policy = sb_box_egress_policy, \
	.unrouted = sb_box_egress_unrouted, .workspace = SB_BOX_WORKSPACE, \
	.close = sb_box_runtime_close, .connect = sb_box_runtime_connect, \
	.ooms = sb_box_runtime_ooms, .limits = sb_box_runtime_limits, \
	.holds = sb_box_runtime_holds, .forget = sb_box_runtime_forget, \
	.sweep = sb_box_runtime_sweep

/* What a box of this runtime may use. */
struct sb_cgroup_limits sb_box_limits(const struct sb_box_runtime *b);

/* Kills the box and everything in it; the caller holds `mu`. */
void sb_box_end(struct sb_box_runtime *b, struct sb_box *box);

/* What a box sees: `root` with these directories bound into it, all read-only. */
struct sb_box_bind {
	char *from, *to;
};
struct sb_box_root {
	struct sb_box_bind *v;
	size_t n;
};
/* Makes the skeleton of the root; lists what the runtime binds into it. */
int sb_box_root_make(struct sb_box_runtime *b, struct sb_error *err);
int sb_box_root_binds(const struct sb_box_runtime *b, struct sb_box_root *out,
	struct sb_error *err);
void sb_box_root_free(struct sb_box_root *r);
/* The file that is /etc/resolv.conf in a box with that network; NULL: the one that is there. */
const char *sb_box_root_resolv(const struct sb_box_runtime *b, enum sb_host_network net);

/* The environment of a command in a box. */
int sb_box_env(const struct sb_runtime_cmd *cmd, struct sb_strlist *env, struct sb_error *err);

#endif
