/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_RUN_ATTRS_H
#define SBSYNC_RUN_ATTRS_H

#include <sync/plan/reconcile.h>
#include <sync/run/run.h>
#include <sync/tree/attrs.h>

/*
 * Carries attributes and access control lists over, as --xattrs and --acls ask, once the contents
 * are the same; asked for nothing, it does nothing. With a `base`, what both sides had, whoever
 * changed a file's set since decides, and where both did, this side; `next` (zeroed by the caller)
 * becomes what both have now. Without one (NULL both) the source decides. What a side refuses or
 * cannot do is told in the result and stays out of `next`.
 */
int sb_run_attrs(struct sb_run *run, enum sb_direction d, const struct sb_attrs *base,
	struct sb_attrs *next, struct sb_error *err);

/*
 * The same between the sides of pair `k` of a session, whose base is a file in the session's
 * folder.
 */
int sb_run_attrs_session(struct sb_run *run, enum sb_direction d, int dirfd, size_t k,
	struct sb_error *err);

#endif
