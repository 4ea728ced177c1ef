/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_NOMEM_H
#define SB_TESTS_NOMEM_H

#include <sb/error.h>

/*
 * Memory that runs out on demand. A program that uses this links nomem.c and has $(NOMEM_WRAP) in
 * its LDFLAGS; the allocations of all code linked in as objects or archives then go through it
 * (those of shared libraries do not).
 */

/*
 * Does the work under test from scratch, frees all of it, and returns what a function of ours
 * would.
 */
typedef int (*nomem_fn)(void *arg, struct sb_error *err);

/*
 * Calls `fn` with the first allocation failing, then the second, ... until a run has none left to
 * fail; that one must succeed. Each run with a failure must return SB_E_NOMEM (with `absorbs`: or
 * succeed all the same) and leave no block behind. Returns how many allocations were made to fail,
 * which is at least 1. Fails the cmocka test otherwise.
 */
unsigned nomem_every(nomem_fn fn, void *arg, int absorbs);

#endif
