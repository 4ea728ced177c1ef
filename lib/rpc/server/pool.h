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
/* SB_E_LIMIT when `max` run already and none is idle. */
int sb_rpc_pool_run(struct sb_rpc_pool *p, sb_rpc_task_fn fn, void *arg, struct sb_error *err);
/* Waits for every task to end. */
void sb_rpc_pool_free(struct sb_rpc_pool *p);

#endif
