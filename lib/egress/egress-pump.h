/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_PUMP_H
#define SB_EGRESS_PUMP_H

#include <sb/error.h>

/* One thread that reads the decisions of many proxies. Thread-safe. */
struct sb_egress_pump;

/* A decision of that session: one line of JSON, without its end. Called by the pump's thread. */
typedef void (*sb_egress_pump_fn)(const char *session, const char *line, void *arg);

struct sb_egress_pump *sb_egress_pump_open(sb_egress_pump_fn fn, void *arg, struct sb_error *err);
/* Waits for the thread; nobody is called afterwards. `p` may be NULL. */
void sb_egress_pump_close(struct sb_egress_pump *p);
/* Reads `fd` (sb_egress_client_events) until it ends and closes it; it is ours from now on. */
int sb_egress_pump_add(struct sb_egress_pump *p, const char *session, int fd, struct sb_error *err);

#endif
