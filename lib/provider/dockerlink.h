/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_DOCKERLINK_H
#define SB_PROVIDER_DOCKERLINK_H

#include <docker/engine.h>
#include <sb/docker.h>
#include <sb/provider.h>

/* Labels of containers, besides those of sb/provider.h. */
#define SB_DOCKERLINK_MADE "sb_made"
#define SB_DOCKERLINK_OWNER "sb_owner"
/* A variable of its first process, by which that is known; the sandbox's id follows. */
#define SB_DOCKERLINK_MARK "SBSYNC_SANDBOX_ID="

/* How a sandbox of backend `docker` is made, and how its files get there. */
enum sb_dockerlink_kind {
	SB_DOCKERLINK_SBX,       /* "sbx" */
	SB_DOCKERLINK_SANDBOX,   /* "docker sandbox" */
	SB_DOCKERLINK_CONTAINER, /* a container of docker or podman */
};

/* One sandbox: which program keeps it, and under which name. Not shared between threads. */
struct sb_dockerlink {
	enum sb_dockerlink_kind kind;
	bool mounted;            /* the local directories are shared; else they are synced */
	char *id;                /* of the sandbox */
	char *name;              /* of what the program keeps */
	char *why;               /* why this program, for people */
	bool paused;             /* when it was last looked for */
	char made[64];           /* likewise: what it was made with, "NETWORK,SYNC" */
	bool fresh;              /* made by this link, with nothing in it yet */
	bool lists;              /* has a gate: the network policy has lists */
	struct sb_engine engine; /* of containers */
	struct sb_docker *docker;
	struct sb_strlist options;
	char *state_dir; /* NULL: the default */
	int lock;        /* 0: not held */
};
void sb_dockerlink_free(struct sb_dockerlink *l);
SB_CLEANUP_PTR(sb_dockerlink, sb_dockerlink_free)

extern const struct sb_provider_option sb_dockerlink_options[];

/*
 * By the options and what is installed here and works; asks the programs, at most a few seconds.
 * SB_E_UNSUPPORTED says of each program why it was not taken.
 */
struct sb_dockerlink *sb_dockerlink_choose(const char *id, const char *const *options,
	const char *state_dir, const struct sb_call *call, struct sb_error *err);
/* The same by what is on PATH alone, without starting anything; for capabilities. */
enum sb_dockerlink_kind sb_dockerlink_guess(const char *const *options);
/* Asks an engine what it can do, unless it is known. Errors as of sb_engine_check. */
int sb_dockerlink_learn(struct sb_engine *e, const struct sb_call *call, struct sb_error *err);
bool sb_dockerlink_is_mounted(const char *const *options);
/* From what sb_dockerlink_state wrote. */
struct sb_dockerlink *sb_dockerlink_open(const char *id, const char *provider_state,
	const char *const *options, const char *state_dir, struct sb_error *err);
char *sb_dockerlink_state(const struct sb_dockerlink *l, struct sb_error *err);
/* "sbx", "docker sandbox", "podman container": for messages. */
const char *sb_dockerlink_label(const struct sb_dockerlink *l);

/*
 * Nobody else makes or ends this sandbox until the link is freed. A command that makes one keeps
 * the lock, too: when we die, whoever comes next waits until it is known what it made.
 */
int sb_dockerlink_lock(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err);
void sb_dockerlink_unlock(struct sb_dockerlink *l);

/* There and running: 0; SB_E_SANDBOX_NOT_FOUND. `labels` ("KEY=value") as for find. */
int sb_dockerlink_find(struct sb_dockerlink *l, const char *const *labels,
	const struct sb_call *call, bool *running, struct sb_error *err);
/* Makes it, or starts the one there is. */
int sb_dockerlink_ensure(struct sb_dockerlink *l, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_error *err);
/* Takes back a sandbox that this link has made and that holds nobody's work; else does nothing. */
void sb_dockerlink_unmake(struct sb_dockerlink *l, const struct sb_call *call);
/* Puts it away: its files are kept as an image or template, and it stops. */
int sb_dockerlink_archive(struct sb_dockerlink *l, const struct sb_call *call,
	struct sb_error *err);
/* "localhost/sbsync-archive:ID": tags may hold what an id may. A new string. */
char *sb_dockerlink_archive_name(const struct sb_dockerlink *l);
/* Whether it was put away, so that an image or template of that name may be there. */
bool sb_dockerlink_is_archived(const struct sb_dockerlink *l);
/* With the archive, if there is one. Not there is success. */
int sb_dockerlink_remove(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err);

/* The remote shell command into it, for the ssh provider. A new string. */
char *sb_dockerlink_rsh(const struct sb_dockerlink *l, struct sb_error *err);

/* dockerlink-net.c: the network of a container whose policy has lists. */
int sb_dockerlink_net_check(struct sb_error *err); /* can a gate be made here? */
bool sb_dockerlink_net_reaches(const struct sb_network *n);
bool sb_dockerlink_net_lists(const struct sb_network *n);
/* The gate is there and has today's lists afterwards. */
int sb_dockerlink_net_open(struct sb_dockerlink *l, const struct sb_network *n,
	const struct sb_call *call, struct sb_error *err);
void sb_dockerlink_net_forget(struct sb_dockerlink *l);
/* STATE/docker/ID: what is kept here for a sandbox; made if `make`. A new string. */
char *sb_dockerlink_dir(const struct sb_dockerlink *l, bool make, struct sb_error *err);

/* dockerlink-box.c: the kinds sbx and docker-sandbox; dockerlink-engine.c: containers. */
int sb_dockerlink_box_ensure(struct sb_dockerlink *l, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_error *err);
int sb_dockerlink_engine_ensure(struct sb_dockerlink *l, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_error *err);

#endif
