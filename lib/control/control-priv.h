/* SPDX-License-Identifier: MIT */
#ifndef SB_CONTROL_PRIV_H
#define SB_CONTROL_PRIV_H

#include <base/cleanup.h>
#include <base/strlist.h>
#include <sb/control.h>
#include <sb/provider.h>

SB_CLEANUP_VALUE(sb_control_sandbox, sb_control_sandbox_free)

/* A kind of controls: what sb_control_open and the profile file know of it. */
struct sb_control_kind {
	const char *name;
	const struct sb_provider_option *options;
	/* Options have been checked one by one; `state_dir` of `o` is never NULL. */
	struct sb_control *(*open)(const struct sb_control_open_opts *o, struct sb_error *err);
};
extern const struct sb_control_kind sb_node_kind, sb_instctl_kind;

/* Fills in the first member of a new control. */
int sb_control_begin(struct sb_control *c, const struct sb_control_ops *ops,
	const struct sb_control_open_opts *o, struct sb_error *err);

/* What this control cannot do: SB_E_UNSUPPORTED, "control NAME (KIND) has no WHAT: WHY". */
int sb_control_cannot(const struct sb_control *c, const char *what, const char *why,
	struct sb_error *err);

/*
 * control-request.c: mistakes in requests, SB_E_INVAL with the value.
 */
int sb_control_request_create(const struct sb_control_create_opts *o, struct sb_error *err);
int sb_control_request_launch(const struct sb_control_launch_opts *o, struct sb_error *err);
int sb_control_request_labels(const char *const *labels, struct sb_error *err);

#define SB_CONTROL_DIGEST_LEN 64
/* Tells requests apart that share a key: of everything but the key. */
int sb_control_request_digest(const struct sb_control_create_opts *o,
	char out[SB_CONTROL_DIGEST_LEN + 1], struct sb_error *err);
/* A sandbox id: always the same one for a key, a random one for NULL. */
#define SB_CONTROL_NEW_ID_MAX 40
int sb_control_request_id(const char *key, char out[SB_CONTROL_NEW_ID_MAX], struct sb_error *err);

/* control-address.c: true for an address that only the machine itself reaches. */
bool sb_control_address_local(const char *address);

#endif
