/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOST_NETWORK_H
#define SB_HOST_HOST_NETWORK_H

#include <host/hsess.h>
#include <sb/host.h>

struct sb_host;

/* The network policy of sessions with network outbound (doc/NETWORK.md). */

/*
 * Both lists as one text, checked; SB_E_INVAL names the entry that is wrong. `all`: no entry that
 * allows means that all public addresses are allowed. The caller frees `out`.
 */
int sb_host_network_text(const char *const *allow, size_t n_allow, const char *const *deny,
	size_t n_deny, bool all, char **out, struct sb_error *err);
/* Whether the text is an address, with a port or without. */
bool sb_host_network_resolver_ok(const char *text);
/* Tells the runtime what the session may reach; nothing for other networks. */
int sb_host_network_tell(struct sb_hsess *s, struct sb_error *err);
/* The session is gone. */
void sb_host_network_forget(const struct sb_hsess *s);
/*
 * Makes an event of a decision and counts what is refused; `arg` is the host. For struct
 * sb_runtime_opts.
 */
void sb_host_network_event(const char *session, const char *line, void *arg);

#endif
