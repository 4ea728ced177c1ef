/* SPDX-License-Identifier: MIT */
#ifndef SB_PROVIDER_PROVIDER_H
#define SB_PROVIDER_PROVIDER_H

#include <base/cleanup.h>
#include <sb/provider.h>
#include <sb/registry.h>

SB_CLEANUP_VALUE(sb_state, sb_state_free)
SB_CLEANUP_VALUE(sb_profile, sb_profile_free)
SB_CLEANUP_VALUE(sb_prepared, sb_prepared_free)
SB_CLEANUP_VALUE(sb_sync_result, sb_sync_result_free)

/* The providers of this library: constructors take the options of sb_registry_builtin, copied. NULL with `err` set. */
struct sb_provider *sb_provider_local_new(const struct sb_builtin_opts *o, struct sb_error *err);
struct sb_provider *sb_provider_ssh_new(const struct sb_builtin_opts *o, struct sb_error *err);

#endif
