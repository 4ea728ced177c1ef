/* SPDX-License-Identifier: MIT */
#ifndef SB_EGRESS_TLSHELLO_H
#define SB_EGRESS_TLSHELLO_H

#include <stddef.h>
#include <stdint.h>

#include <egress/netname.h>

/* The first bytes of a client, as far as they are there. */
enum sb_tlshello {
	SB_TLSHELLO_MORE,  /* could be a hello, not complete yet */
	SB_TLSHELLO_DONE,  /* a whole hello; `name` is its SNI, "" when it has none */
	SB_TLSHELLO_OTHER, /* not TLS */
	SB_TLSHELLO_BAD,   /* TLS, but not a hello that can be judged */
};

/* A hello that is longer than this, with its record headers, is bad. */
#define SB_TLSHELLO_MAX 16384

/* Reads at most `len` bytes and keeps nothing. `name` is written for DONE only. */
enum sb_tlshello sb_tlshello_read(const uint8_t *data, size_t len, char name[SB_NETNAME_MAX]);

#endif
