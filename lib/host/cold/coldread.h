/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDREAD_H
#define SB_HOST_COLDREAD_H

#include <stdatomic.h>

#include <host/cold/coldindex.h>
#include <host/cold/coldpace.h>
#include <host/cold/coldstore.h>

/* Archives back into streams. Some threads fetch ahead of who takes the bytes. */
struct sb_coldread_opts {
	struct sb_coldstore *store;
	const char *space;
	const struct sb_coldkeys *keys;
	struct sb_coldpace *pace; /* may be NULL */
	const struct sb_host_call *call;
	atomic_ullong *done; /* plain bytes checked; may be NULL */
};

/* SB_E_NOTFOUND, SB_E_CORRUPT, SB_E_AUTH. `out` is to be freed. */
int sb_coldread_index(const struct sb_coldread_opts *o, const char *key, struct sb_coldindex *out,
	struct sb_error *err);

/* Plain bytes of a stream, in order, every frame checked before it comes. */
typedef int (*sb_coldread_fn)(const void *data, size_t len, void *arg, struct sb_error *err);
/* Stream number `stream` of the archive. */
int sb_coldread_stream(const struct sb_coldread_opts *o, const struct sb_coldindex *x,
	size_t stream, sb_coldread_fn fn, void *arg, struct sb_error *err);

/* Fetches and checks every frame of the archive once. */
int sb_coldread_verify(const struct sb_coldread_opts *o, const struct sb_coldindex *x,
	struct sb_error *err);

#endif
