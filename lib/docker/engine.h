/* SPDX-License-Identifier: MIT */
#ifndef SB_DOCKER_ENGINE_H
#define SB_DOCKER_ENGINE_H

#include <docker/cli.h>
#include <sys/types.h>

/* What sb_engine_check learns of an engine. */
struct sb_engine_facts {
	bool rootless; /* it runs as an ordinary user, who is root in its containers */
	bool remaps;   /* it gives containers other users' numbers (Docker's userns-remap) */
	/* Limits that it would take and not enforce. */
	bool no_memory, no_cpus, no_pids;
};

/* Containers of Docker or Podman, by their command line. Thread-safe. */
struct sb_engine {
	struct sb_cli cli;
	bool podman;
	bool checked; /* `is` is known */
	struct sb_engine_facts is;
};
void sb_engine_free(struct sb_engine *e);
SB_CLEANUP_VALUE(sb_engine, sb_engine_free)

/* Fills in the words for "docker" or "podman"; runs nothing. */
int sb_engine_open(const char *program, struct sb_engine *out, struct sb_error *err);
/*
 * Whether it works here; learns the facts. SB_E_NOTFOUND: not installed; SB_E_UNSUPPORTED: it is,
 * and does not answer.
 */
int sb_engine_check(struct sb_engine *e, const struct sb_call *call, struct sb_error *err);

/* A container of ours. */
struct sb_engine_box {
	char id[72];
	char name[136];
	bool running;
	bool paused;
	char extra[64]; /* value of the label that was asked for, "" when it has none */
};
/*
 * The container that has all of `labels` ("KEY=value"), and what it has for the label `extra`.
 * SB_E_SANDBOX_NOT_FOUND; other errors mean that nobody knows.
 */
int sb_engine_find(const struct sb_engine *e, const char *const *labels, const char *extra,
	const struct sb_call *call, struct sb_engine_box *out, struct sb_error *err);
/* All containers with these labels, as lines "NAME\tVALUE of the label `key`". */
int sb_engine_all(const struct sb_engine *e, const char *const *labels, const char *key,
	const struct sb_call *call, struct sb_strlist *out, struct sb_error *err);

/* What a new container is like. */
struct sb_engine_wish {
	const char *name, *image;
	const char *const *labels;  /* "KEY=value" */
	const char *const *env;     /* "KEY=value"; nothing secret: it is on the command line */
	const char *const *volumes; /* "VOLUME:PATH" of the engine */
	const char *const *mounts;  /* directories of ours, at the same path inside */
	const char *const *files;   /* "FROM:TO" of ours, read-only */
	const char *const *tmpfs;   /* paths */
	const char *network;        /* "none"; NULL: the engine's own */
	const char *user;           /* NULL: the image's */
	const char *runtime;        /* OCI runtime; NULL: the engine's */
	const char *memory, *cpus, *pids;
	const char *const *caps; /* capabilities that it keeps; NULL: none */
	bool read_only;
	int hold;     /* a descriptor that the command keeps open, also when we die; 0: none */
	bool keep_id; /* rootless Podman: our user has the same number inside */
};
/* Makes and starts it. The engine fetches the image if it is not there. */
int sb_engine_make(const struct sb_engine *e, const struct sb_engine_wish *w,
	const struct sb_call *call, struct sb_error *err);

/* One that is stopped, or `paused`. */
int sb_engine_start(const struct sb_engine *e, const char *name, bool paused,
	const struct sb_call *call, struct sb_error *err);
int sb_engine_stop(const struct sb_engine *e, const char *name, const struct sb_call *call,
	struct sb_error *err);
/* With its anonymous volumes. Not there is success. */
int sb_engine_remove(const struct sb_engine *e, const char *name, const struct sb_call *call,
	struct sb_error *err);
/* 1: there; 0: not. */
int sb_engine_has_volume(const struct sb_engine *e, const char *volume, const struct sb_call *call,
	struct sb_error *err);
int sb_engine_remove_volume(const struct sb_engine *e, const char *volume,
	const struct sb_call *call, struct sb_error *err);
/* Keeps its files as an image of that name. */
int sb_engine_commit(const struct sb_engine *e, const char *name, const char *image,
	const struct sb_call *call, struct sb_error *err);
/* 1: there; 0: not. */
int sb_engine_has_image(const struct sb_engine *e, const char *image, const struct sb_call *call,
	struct sb_error *err);
int sb_engine_remove_image(const struct sb_engine *e, const char *image, const struct sb_call *call,
	struct sb_error *err);
/*
 * Its first process, as this machine knows it; 0: on another machine, or it does not run. That it
 * is the one shows by `mark`, a variable ("NAME=value") that the container was made with: the same
 * number may be another process here.
 */
int sb_engine_pid(const struct sb_engine *e, const char *name, const char *mark,
	const struct sb_call *call, pid_t *out, struct sb_error *err);
/* Who its processes are unless told: "USER[:GROUP]", or "". 1: the image is not here yet. */
int sb_engine_image_user(const struct sb_engine *e, const char *image, const struct sb_call *call,
	char **out, struct sb_error *err);

#endif
