/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_THREAD_H
#define SB_BASE_THREAD_H

#include <stddef.h>

/*
 * Starts a thread that nobody joins, with every signal blocked (signals are for the program's own
 * threads) and a stack of `stack` bytes (0: the default). Returns 0 or an errno number.
 */
int sb_thread_detached(size_t stack, void *(*fn)(void *), void *arg);

#endif
