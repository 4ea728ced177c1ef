/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_INSTCTL_PRIV_H
#define SB_CONTROL_INSTCTL_PRIV_H

#include <control/control-priv.h>
#include <control/hostsess.h>
#include <control/instrec.h>

/*
 * Kind "instance": each sandbox is the one session of an instance of its own. What is true is with
 * the provisioner (tags) and on the instance (its session); on record here is only how far a
 * create or a destroy has come, so that after a crash it is known what may be taken away:
 *
 *   launch    an instance was or is about to be asked for; no session was: it may go
 *   session   a session was asked for: if the host has it, the sandbox is there
 *   ready     it is
 *   destroy   the session is to go; while the host has it, the sandbox is there
 *   gone      the host has removed the session: the instance may go
 *
 * The record is locked while somebody works on it.
 */
struct sb_instctl {
	struct sb_control base;
	struct sb_provisioner *prov;
	char *dir;     /* of the records */
	char *owner;   /* who all this belongs to */
	char *image;   /* NULL: the provisioner's */
	char *base_of; /* base of sandboxes that name none; NULL: they begin empty */
};

#define SB_INSTCTL_PHASE_MAX 16
/* A record that is held. fd -1: none. */
struct sb_instctl_hold {
	int fd;
	char phase[SB_INSTCTL_PHASE_MAX]; /* "" for a new one */
};
#define SB_INSTCTL_HOLD_INIT \
	{ \
		.fd = -1 \
	}
/* Waits for who has it; `wait` false: SB_E_LOCKED. */
int sb_instctl_hold(struct sb_instctl *c, const char *id, bool wait,
	const struct sb_control_call *call, struct sb_instctl_hold *out, struct sb_error *err);
/* Writes down how far it is, before the step behind it. NULL: the record goes. */
int sb_instctl_note(struct sb_instctl *c, const char *id, struct sb_instctl_hold *h,
	const char *phase, struct sb_error *err);
/* The ids of all records. */
int sb_instctl_records(struct sb_instctl *c, struct sb_strlist *out, struct sb_error *err);
void sb_instctl_release(struct sb_instctl_hold *h);
SB_CLEANUP_VALUE(sb_instctl_hold, sb_instctl_release)

/* The tags of an instance of ours. */
#define SB_INSTCTL_TAG_OWNER SB_CONTROL_LABEL_OWN "owner"
#define SB_INSTCTL_TAG_CONTROL SB_CONTROL_LABEL_OWN "control"
#define SB_INSTCTL_TAG_SANDBOX SB_CONTROL_LABEL_OWN "sandbox"
#define SB_INSTCTL_TAG_REQUEST SB_CONTROL_LABEL_OWN "request"
/* Of one that was only made to be asked; its value is the name of its record. */
#define SB_INSTCTL_TAG_PROBE SB_CONTROL_LABEL_OWN "probe"
void sb_instctl_tags(const struct sb_instctl *c, const char *id, struct sb_strlist *out);

/* The instance of a sandbox. SB_E_SANDBOX_NOT_FOUND. */
int sb_instctl_find(struct sb_instctl *c, const char *id, const struct sb_control_call *call,
	struct sb_instance *out, struct sb_error *err);
struct sb_hostcall *sb_instctl_host(struct sb_instctl *c, const struct sb_instance *i,
	struct sb_error *err);
/* Waits until its sbhostd answers. SB_E_STATE: it has ended. */
int sb_instctl_wait(struct sb_instctl *c, const char *instance, const struct sb_control_call *call,
	struct sb_instance *out, struct sb_error *err);

int sb_instctl_create(struct sb_control *c, const struct sb_control_create_opts *o,
	const struct sb_control_call *call, struct sb_control_sandbox *out, struct sb_error *err);
int sb_instctl_destroy(struct sb_control *c, const char *id, bool force,
	const struct sb_control_call *call, struct sb_error *err);
int sb_instctl_recover(struct sb_control *c, const struct sb_control_call *call,
	struct sb_error *err);
int sb_instctl_capabilities(struct sb_control *c, const struct sb_control_call *call,
	struct sb_control_caps *out, struct sb_error *err);

#endif
