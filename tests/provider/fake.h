/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_FAKE_H
#define SB_TESTS_FAKE_H

#include <stdbool.h>

#include <sb/provider.h>

/*
 * A provider whose runtime is another directory of this machine. It keeps the contract, but for the
 * one thing that FAKE_FAULT names: a check of the suite, which must notice.
 */
bool fake_broken(const char *check);

/*
 * Wrappers that carry the faults of launching and of tools; each takes the inner object over. NULL:
 * no memory.
 */
struct sb_launcher *fake_launcher(struct sb_launcher *inner);
struct sb_tool_host *fake_tools(struct sb_tool_host *inner, const char *root);

#endif
