/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_MEMORY_H
#define SB_BASE_MEMORY_H

#include <stdint.h>

/*
 * Bytes of memory that this process may still take: the least of what the system has available,
 * what its control group allows and what its own limits (ulimit -v) leave. An estimate, for
 * deciding how much to believe a peer; UINT64_MAX when nothing is known.
 */
uint64_t sb_memory_available(void);

#endif
