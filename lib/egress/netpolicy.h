/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_NETPOLICY_H
#define SB_EGRESS_NETPOLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <egress/netaddr.h>
#include <egress/netname.h>
#include <sb/error.h>

/*
 * What a session may reach: a list of entries that allow and one of entries that deny; deny wins,
 * and what no entry allows is refused. doc/NETWORK.md has the syntax. Not thread-safe; once filled
 * it is only read, and a new one replaces it as a whole.
 */
struct sb_netpolicy;

#define SB_NETPOLICY_ENTRIES 1024 /* of both lists together */
#define SB_NETPOLICY_ENTRY_MAX 300
#define SB_NETPOLICY_TEXT_MAX (SB_NETPOLICY_ENTRIES * (SB_NETPOLICY_ENTRY_MAX + 8))

struct sb_netpolicy *sb_netpolicy_new(struct sb_error *err);
void sb_netpolicy_free(struct sb_netpolicy *p);
SB_CLEANUP_PTR(sb_netpolicy, sb_netpolicy_free)

/* SB_E_INVAL with a message that names the entry and how to write one; SB_E_LIMIT. */
int sb_netpolicy_allow(struct sb_netpolicy *p, const char *entry, struct sb_error *err);
int sb_netpolicy_deny(struct sb_netpolicy *p, const char *entry, struct sb_error *err);

/* Lines of "allow ENTRY" and "deny ENTRY", as sb-egress is told them. NULL: error. */
struct sb_netpolicy *sb_netpolicy_parse(const char *text, size_t len, struct sb_error *err);

/* What was decided and by what: the entry's text, or why there is none ("unlisted", "private"). */
struct sb_netverdict {
	bool allow;
	char rule[SB_NETPOLICY_ENTRY_MAX + 8];
};

/*
 * May the name (already checked by sb_netname_check) be reached at that TCP port? Port 0: at any.
 */
bool sb_netpolicy_name(const struct sb_netpolicy *p, const char *name, uint16_t port,
	struct sb_netverdict *out);
/*
 * May the address? `named`: our own lookup of a name that is allowed gave it, so that only the
 * denials and the special ranges are asked. `own`: it is an address of this host.
 */
bool sb_netpolicy_addr(const struct sb_netpolicy *p, const struct sb_netaddr *a, uint16_t port,
	bool named, bool own, struct sb_netverdict *out);
/* Whether an entry denies the name at that port, whatever is allowed. */
bool sb_netpolicy_denies_name(const struct sb_netpolicy *p, const char *name, uint16_t port,
	struct sb_netverdict *out);
/* Whether there are entries that deny names, and entries that allow them. */
bool sb_netpolicy_has_denied_names(const struct sb_netpolicy *p);
bool sb_netpolicy_has_allowed_names(const struct sb_netpolicy *p);

#endif
