/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_POOL_H
#define SB_RPC_POOL_H

#include <sb/error.h>

/*
 * Threads that run tasks: as many as there are tasks, up to `max`; an idle one stays a few seconds.
 * So a task never waits behind another while fewer than `max` run. Thread-safe.
 */
struct sb_rpc_pool;

typedef void (*sb_rpc_task_fn)(void *arg);

struct sb_rpc_pool *sb_rpc_pool_new(unsigned max, struct sb_error *err);
/* SB_E_LIMIT when `max` run already. */
int sb_rpc_pool_run(struct sb_rpc_pool *p, sb_rpc_task_fn fn, void *arg, struct sb_error *err);
/*
 * The task that calls this is as good as ended and does not count any more. It calls it before its
 * caller can know of its end, so that a client that makes one call after the other has at most one.
 * In a thread of no pool it does nothing.
 */
void sb_rpc_pool_settle(void);
/* Waits for every task to end. */
void sb_rpc_pool_free(struct sb_rpc_pool *p);

#endif
