/* SPDX-License-Identifier: MIT */
#ifndef SB_INSTANCE_H
#define SB_INSTANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sb/control.h>

/*
 * Instances: machines, or what stands for one, that each run a sandbox host (sbhostd). A
 * provisioner makes them in one place; controls put sandboxes on them (doc/CONTROL.md).
 * Thread-safe; every call obeys its deadline and cancel token.
 */
enum sb_instance_state {
	SB_INSTANCE_PENDING, /* asked for; it may come up or not */
	SB_INSTANCE_RUNNING, /* on; its sbhostd may still be starting */
	SB_INSTANCE_STOPPING,
	SB_INSTANCE_STOPPED, /* off, with its disk: start brings it back */
	SB_INSTANCE_TERMINATING,
	SB_INSTANCE_TERMINATED, /* gone; soon nobody knows it any more */
};
#define SB_INSTANCE_STATES 6
/* "pending" to "terminated" */
SB_API const char *sb_instance_state_name(enum sb_instance_state s);

#define SB_INSTANCE_ID_MAX 63
#define SB_INSTANCE_TOKEN_MAX 64

struct sb_instance {
	char id[SB_INSTANCE_ID_MAX + 1];
	enum sb_instance_state state;
	char url[SB_CONTROL_ADDRESS_MAX + 10]; /* of its sbhostd; "" while it has no address */
	struct sb_strlist tags;                /* "KEY=VALUE" */
	char *why;                             /* of the state, if there is a reason; or NULL */
	int64_t launched_ns;                   /* Unix time */
};
SB_API void sb_instance_free(struct sb_instance *i); /* zeroes it */
SB_API void sb_instance_list_free(struct sb_instance *v, size_t n);

struct sb_instance_launch {
	size_t size;
	/*
	 * Makes the launch idempotent: the same token gives the same instance. 1 to 64 characters;
	 * required.
	 */
	const char *token;
	const char *const *tags; /* at least one: what has none could not be told from others' */
	const char *image;       /* NULL: the provisioner's */
	double cpus;             /* 0: the provisioner's choice; so are the others */
	uint64_t mem_mb, disk_mb;
	int64_t lifetime_ms; /* of sessions on it (sbhostd --max-session-duration) */
};
#define SB_INSTANCE_LAUNCH_INIT \
	{ \
		.size = sizeof(struct sb_instance_launch) \
	}

struct sb_instance_filter {
	size_t size;
	const char *const *tags; /* all must match; at least one */
	unsigned states;         /* mask of 1 << state; 0: all but terminated */
};
#define SB_INSTANCE_FILTER_INIT \
	{ \
		.size = sizeof(struct sb_instance_filter) \
	}

struct sb_provisioner;

#define SB_PROVISIONER_VERSION 1
struct sb_provisioner_ops {
	unsigned version;
	const char *name;
	bool sizes;     /* launch takes cpus and mem_mb */
	bool disks;     /* and disk_mb */
	bool images;    /* and image */
	bool lifetimes; /* and lifetime_ms */
	bool keeps;     /* terminate gives a machine back with all that is on it */
	bool cheap;     /* an instance costs nothing: one may be made to ask what they can do */
	/* Does not wait for it to come up. SB_E_LIMIT: there are no more. */
	int (*launch)(struct sb_provisioner *p, const struct sb_instance_launch *l,
		const struct sb_control_call *call, struct sb_instance *out, struct sb_error *err);
	/* Of one that is gone, success. What was on it is gone, too. */
	int (*terminate)(struct sb_provisioner *p, const char *id,
		const struct sb_control_call *call, struct sb_error *err);
	/* Does not wait. May be NULL, both: it cannot be switched off. */
	int (*stop)(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
		struct sb_error *err);
	int (*start)(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
		struct sb_error *err);
	/* SB_E_NOTFOUND: there is none (any more). */
	int (*describe)(struct sb_provisioner *p, const char *id,
		const struct sb_control_call *call, struct sb_instance *out, struct sb_error *err);
	/* SB_E_INVAL without tags: nothing foreign is ever taken for one's own. */
	int (*list)(struct sb_provisioner *p, const struct sb_instance_filter *f,
		const struct sb_control_call *call, struct sb_instance **out, size_t *out_n,
		struct sb_error *err);
	void (*close)(struct sb_provisioner *p);
};

struct sb_provisioner {
	const struct sb_provisioner_ops *ops;
	int64_t settle_ms;                /* so long after a launch `list` may not know of it yet */
	const char *token_file, *ca_file; /* for the hosts on its instances; may be NULL */
	struct sb_log log;
};

/* In front of the calls: a request that breaks the contract is SB_E_INVAL, or SB_E_UNSUPPORTED. */
SB_API int sb_instance_launch(struct sb_provisioner *p, const struct sb_instance_launch *l,
	const struct sb_control_call *call, struct sb_instance *out, struct sb_error *err);
SB_API int sb_instance_terminate(struct sb_provisioner *p, const char *id,
	const struct sb_control_call *call, struct sb_error *err);
SB_API int sb_instance_stop(struct sb_provisioner *p, const char *id,
	const struct sb_control_call *call, struct sb_error *err);
SB_API int sb_instance_start(struct sb_provisioner *p, const char *id,
	const struct sb_control_call *call, struct sb_error *err);
SB_API int sb_instance_describe(struct sb_provisioner *p, const char *id,
	const struct sb_control_call *call, struct sb_instance *out, struct sb_error *err);
SB_API int sb_instance_list(struct sb_provisioner *p, const struct sb_instance_filter *f,
	const struct sb_control_call *call, struct sb_instance **out, size_t *out_n,
	struct sb_error *err);
SB_API void sb_instance_close(struct sb_provisioner *p);

/*
 * "static": machines that are there already, each given to one at a time. "KEY=VALUE" options:
 * addresses (URLs with commas between), token_file, ca_file. `dir` keeps who has which.
 */
SB_API struct sb_provisioner *sb_instance_static(const char *dir, const char *const *options,
	const struct sb_log *log, struct sb_error *err);
/*
 * "local": sbhostd processes of this machine, for development and tests. They live on when this
 * process ends. Options: sbhostd (the program), runtime, storage. `dir` has a folder for each.
 */
SB_API struct sb_provisioner *sb_instance_local(const char *dir, const char *const *options,
	const struct sb_log *log, struct sb_error *err);

#endif
