/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_TLS_H
#define SB_RPC_TLS_H

#include <base/buf.h>

/*
 * Reads a certificate chain and its key (PEM files) and sees that they belong together. The key
 * must not be readable for everybody. Errors name the file.
 */
int sb_rpc_tls_load(const char *cert, const char *key, struct sb_buf *out_cert,
	struct sb_buf *out_key, struct sb_error *err);
/* The same without keeping them; one that has expired is a mistake, too. */
int sb_rpc_tls_check(const char *cert, const char *key, struct sb_error *err);

#endif
