/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_GZIP_H
#define SB_RPC_GZIP_H

#include <stddef.h>

#include <base/buf.h>

/*
 * Appends the uncompressed bytes of one gzip stream to `out`, whose ceiling bounds them: SB_E_LIMIT
 * beyond it, SB_E_INVAL for damaged or cut data or bytes behind the end.
 */
int sb_rpc_gzip_inflate(const void *data, size_t len, struct sb_buf *out, struct sb_error *err);

/* Appends `len` bytes as a gzip stream. */
int sb_rpc_gzip_deflate(const void *data, size_t len, struct sb_buf *out, struct sb_error *err);

#endif
