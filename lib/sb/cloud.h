/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_H
#define SB_CLOUD_H

#include <sb/provider.h>

/*
 * Backends in clouds, beside what every provider has (sb/provider.h).
 */

/*
 * Runs a command line in the E2B sandbox `id` (the service's own id) with these three streams.
 * `options` are those of a profile of backend e2b ("key=env:NAME"). While it runs the sandbox does
 * not end by itself; a paused one is resumed. Returns the exit code of the command.
 */
SB_API int sb_cloud_e2b_attach(const char *const *options, const char *id, const char *command,
	const int fds[3], const struct sb_cancel *cancel, struct sb_error *err);

#endif
