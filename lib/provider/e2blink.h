/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_E2BLINK_H
#define SB_PROVIDER_E2BLINK_H

#include <cloud/e2b/e2bapi.h>
#include <sb/provider.h>

/*
 * The E2B account of a profile, and the way into its sandboxes. The key is looked up when it is
 * used, from where the option `key` says; it is in no state and on no command line.
 */
struct sb_e2blink;

#define SB_E2BLINK_KEY "env:E2B_API_KEY"

extern const struct sb_provider_option sb_e2blink_options[];

/* Options are "key=value" of the profile. Connects nowhere. SB_E_SECRET: there is no key. */
struct sb_e2blink *sb_e2blink_open(const char *const *options, const struct sb_log *log,
	struct sb_error *err);
void sb_e2blink_free(struct sb_e2blink *l);
SB_CLEANUP_PTR(sb_e2blink, sb_e2blink_free)

struct sb_e2bapi *sb_e2blink_api(const struct sb_e2blink *l);
/* The template, and how long a sandbox stays when nobody holds it, in seconds. */
const char *sb_e2blink_template(const struct sb_e2blink *l);
int64_t sb_e2blink_timeout(const struct sb_e2blink *l);

/* The remote shell command into sandboxes of it. A new string. */
char *sb_e2blink_rsh(const struct sb_e2blink *l, struct sb_error *err);

/* From now on this process runs that command itself, wherever the program is, or if it is. */
void sb_e2blink_carry(void);

/*
 * Runs a command line in the sandbox `id` with these streams. While it runs the sandbox is kept
 * from ending by itself. Returns its exit code.
 */
int sb_e2blink_attach(const struct sb_e2blink *l, const char *id, const char *command,
	const int fds[3], const struct sb_cancel *cancel, struct sb_error *err);

/* Ends what earlier processes of this machine left running in the sandbox when they were killed. */
int sb_e2blink_sweep(const struct sb_e2blink *l, const struct sb_e2bapi_box *box,
	const struct sb_rest_wait *wait, struct sb_error *err);

#endif
