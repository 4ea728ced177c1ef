/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_PACK_PIPE_H
#define SBSYNC_PACK_PIPE_H

#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>
#include <sync/codec/pack.h>

/*
 * Cuts a byte stream into blocks, compresses them on several threads and gives them to `opts->out`
 * in order, from a thread of its own. One thread feeds it. Bounded: a write waits while every block
 * is on its way. A failure sticks.
 */
struct sb_pack_pipe;

struct sb_pack_pipe *sb_pack_pipe_new(const struct sb_pack_writer_opts *opts, struct sb_error *err);
int sb_pack_pipe_write(struct sb_pack_pipe *p, const void *data, size_t len, struct sb_error *err);
/* Sends what is left and waits until `out` took everything. */
int sb_pack_pipe_finish(struct sb_pack_pipe *p, struct sb_error *err);
/* As sb_pack_writer_link_bound. */
bool sb_pack_pipe_link_bound(struct sb_pack_pipe *p);
/* Drops what was not sent yet; waits for a call of `out` that is under way. */
void sb_pack_pipe_free(struct sb_pack_pipe *p);
SB_CLEANUP_PTR(sb_pack_pipe, sb_pack_pipe_free)

#endif
