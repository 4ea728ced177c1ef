/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_VERDICT_H
#define SB_EGRESS_VERDICT_H

#include <stddef.h>
#include <stdint.h>

#include <egress/netaddr.h>

/*
 * Decisions as lines of JSON, numbered from 1; the last SB_VERDICT_KEPT are kept for who comes to
 * read them. No more than SB_VERDICT_RATE a second are noted after a burst of SB_VERDICT_BURST; how
 * many were not is told by the next line. Not thread-safe.
 */
struct sb_verdicts;

#define SB_VERDICT_KEPT 256
#define SB_VERDICT_RATE 20
#define SB_VERDICT_BURST 100
#define SB_VERDICT_LINE 1024

struct sb_verdict {
	const char *kind;              /* "dns", "tcp", "proxy", "packet" */
	const char *name;              /* NULL or "": none */
	const struct sb_netaddr *addr; /* NULL: none */
	uint16_t port;                 /* 0: none */
	const char *verdict;           /* "allow", "deny", "cut", "error" */
	const char *rule;
};

struct sb_verdicts *sb_verdict_open(const char *session);
void sb_verdict_close(struct sb_verdicts *v);
void sb_verdict_note(struct sb_verdicts *v, const struct sb_verdict *what, int64_t now_ms);
/* The number of the newest line; 0: none yet. */
uint64_t sb_verdict_last(const struct sb_verdicts *v);
/* The line (with its line end) of that number, or of the oldest kept after it, which `seq` then
   is. NULL: none. */
const char *sb_verdict_line(const struct sb_verdicts *v, uint64_t *seq);

/* `s` as a JSON string with its quotes into `out`, cut where it would not fit. Returns `out`. */
char *sb_verdict_quote(const char *s, char *out, size_t size);

#endif
