/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-bounds.h>

#include <string.h>
#include <unistd.h>

#include <host/host-priv.h>

static void
limits_of(struct sb_runtime *rt, struct sb_runtime_limits *out)
{
	*out = (struct sb_runtime_limits){ "none", "none", "none" };
	if (rt->ops->limits)
		rt->ops->limits(rt, out);
}

const char *
sb_host_bounds_limits(struct sb_runtime *rt)
{
	struct sb_runtime_limits l;

	limits_of(rt, &l);
	if (strcmp(l.pids, "none") == 0 || strcmp(l.memory, "none") == 0)
		return "none";
	return strcmp(l.memory, "watch") == 0 ? "rlimit" :
		strcmp(l.pids, "rlimit") == 0 ? l.pids :
						l.memory;
}

int
sb_host_bounds_check(const struct sb_host *h, struct sb_error *err)
{
	struct sb_runtime_limits l;

	limits_of(h->rt, &l);
	if (h->o.session_cpus > 0 && strcmp(l.cpus, "none") == 0)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"session-cpus: runtime %s has no control group here to hold it",
			h->rt->ops->name);
	return 0;
}

int
sb_host_bounds_call(const struct sb_host_opts *o, struct sb_runtime *rt,
	const struct sb_host_resources *res, struct sb_error *err)
{
	struct sb_runtime_limits l;

	limits_of(rt, &l);
	if (res->max_output > SB_HOST_OUTPUT_MAX)
		return sb_fail(err, SB_E_INVAL, "%llu bytes of output: at most %u are kept",
			(unsigned long long)res->max_output, SB_HOST_OUTPUT_MAX);
	if (res->max_pids > 0 &&
		(o->session_pids == 0 || o->session_pids > res->max_pids ||
			strcmp(l.pids, "none") == 0))
		return sb_fail(err, SB_E_UNSUPPORTED,
			"%llu processes: a single call has no limit of its own, only its session "
			"has (session-pids)",
			(unsigned long long)res->max_pids);
	if (res->cpus <= 0 ||
		(o->session_cpus > 0 && o->session_cpus <= res->cpus &&
			strcmp(l.cpus, "none") != 0))
		return 0;
	return sb_fail(err, SB_E_UNSUPPORTED,
		"%g CPUs: a single call has no limit of its own, only its session has "
		"(session-cpus)",
		res->cpus);
}

static void
log_limits(const struct sb_host *h)
{
	struct sb_runtime_limits l;
	bool some;

	limits_of(h->rt, &l);
	some = strcmp(l.pids, "none") == 0 || strcmp(l.memory, "none") == 0;
	sb_log(&h->o.log, some ? SB_LOG_WARN : SB_LOG_INFO, "runtime",
		"limits: %s (processes: %s, memory: %s, processors: %s)",
		sb_host_bounds_limits(h->rt), l.pids, l.memory, l.cpus);
}

void
sb_host_bounds_log(const struct sb_host *h)
{
	sb_log(&h->o.log, SB_LOG_INFO, "storage", "sessions are on %s%s: %s", h->st->ops->name,
		h->st->ops->snapshots ? "" : ", which has no snapshots", h->storage_why);
	if (h->rt->ops->isolates) {
		sb_log(&h->o.log, SB_LOG_INFO, "runtime", "sessions run in %s (isolation: %s)",
			h->rt->ops->name, h->rt->ops->isolation);
		if (h->o.session_uid_count)
			sb_log(&h->o.log, SB_LOG_INFO, "runtime",
				"their files and processes belong to users %u to %u",
				(unsigned)h->o.session_uid_first,
				(unsigned)(h->o.session_uid_first + h->o.session_uid_count - 1));
		else
			sb_log(&h->o.log, geteuid() == 0 ? SB_LOG_WARN : SB_LOG_INFO, "runtime",
				"their files and processes belong to user %u: %s",
				(unsigned)geteuid(), h->owner_why);
		log_limits(h);
	} else {
		sb_log(&h->o.log, SB_LOG_WARN, "runtime",
			"runtime none isolates nothing: whatever runs in a session has all rights "
			"of user %u on this machine",
			(unsigned)geteuid());
	}
}
