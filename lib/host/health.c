/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/health.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <host/host-priv.h>

/* A space figure this old still decides about a new session. */
#define SPACE_FRESH_MS 1000
/*
 * One this old does while the storage was far from full: asking the pool takes as long as making
 * the session.
 */
#define SPACE_CALM_MS 10000
/* With less than this no new session can do anything, however large the storage is. */
#define MIN_FREE (16u << 20)

static int
space(struct sb_host *h, int64_t max_age_ms, struct sb_storage_space *out, struct sb_error *err)
{
	int64_t now = sb_now_ms();
	int r = 0;

	(void)pthread_mutex_lock(&h->space_mu);
	if (h->space_at == 0 || now - h->space_at > max_age_ms) {
		struct sb_storage_space fresh = { 0 };

		r = h->st->ops->space(h->st, &fresh, err);
		if (r == 0) {
			h->space = fresh;
			h->space_at = now;
		}
	}
	if (r == 0)
		*out = h->space;
	(void)pthread_mutex_unlock(&h->space_mu);
	return r;
}

/* The pool, or the directory of the sessions. */
static const char *
place(const struct sb_host *h)
{
	return h->o.storage == SB_HOST_ZFS ? h->o.pool : h->o.sessions_root_dir;
}

int
sb_host_health_admit(struct sb_host *h, struct sb_error *err)
{
	struct sb_storage_space s;
	int r = space(h, SPACE_CALM_MS, &s, err);

	if (r == 0 &&
		(s.capacity >= h->o.warn_at || (s.state[0] && strcmp(s.state, "ONLINE") != 0)))
		r = space(h, SPACE_FRESH_MS, &s, err);
	if (r < 0)
		return sb_wrap(err, r, "space for something new");
	if (s.capacity >= h->o.critical_at)
		return sb_fail(err, SB_E_POOL_FULL, "%s: %.1f%% in use, nothing new from %.1f%% on",
			sb_code_text(SB_E_POOL_FULL), s.capacity * 100, h->o.critical_at * 100);
	if (s.state[0] && strcmp(s.state, "ONLINE") != 0 && strcmp(s.state, "DEGRADED") != 0)
		return sb_fail(err, SB_E_UNAVAILABLE, "%s is %s", place(h), s.state);
	if (s.free < MIN_FREE)
		return sb_fail(err, SB_E_POOL_FULL, "%s: %llu bytes are free",
			sb_code_text(SB_E_POOL_FULL), (unsigned long long)s.free);
	return 0;
}

static void SB_PRINTF(3, 4)
	reason(struct sb_host_health *out, enum sb_host_health_status status, const char *fmt, ...)
{
	va_list ap;

	if (status > out->status)
		out->status = status;
	if (out->n_reasons == SB_HOST_REASONS_MAX)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(out->reasons[out->n_reasons++], sizeof out->reasons[0], fmt, ap);
	va_end(ap);
}

static void
judge_space(struct sb_host *h, const struct sb_storage_space *s, struct sb_host_health *out)
{
	if (strcmp(s->state, "DEGRADED") == 0)
		reason(out, SB_HOST_DEGRADED, "%.100s is DEGRADED", place(h));
	else if (s->state[0] && strcmp(s->state, "ONLINE") != 0)
		reason(out, SB_HOST_UNHEALTHY, "%.100s is %s", place(h), s->state);
	if (s->capacity >= h->o.critical_at)
		reason(out, SB_HOST_UNHEALTHY,
			"%.1f%% of the storage is in use (critical from %.1f%%)", s->capacity * 100,
			h->o.critical_at * 100);
	else if (s->capacity >= h->o.warn_at)
		reason(out, SB_HOST_DEGRADED,
			"%.1f%% of the storage is in use (warning from %.1f%%)", s->capacity * 100,
			h->o.warn_at * 100);
}

/* What the machine has; 0 where it does not tell. */
static void
machine(struct sb_host_health *out)
{
	sb_autofclose FILE *f = fopen("/proc/meminfo", "re");
	unsigned long long kb;
	char line[128];
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	out->cpus = cpus > 0 ? (unsigned)cpus : 0;
	while (f && fgets(line, sizeof line, f)) {
		if (sscanf(line, "MemTotal: %llu kB", &kb) == 1)
			out->mem_mb = kb >> 10;
		else if (sscanf(line, "MemAvailable: %llu kB", &kb) == 1)
			out->mem_free_mb = kb >> 10;
	}
}

void
sb_host_health(struct sb_host *h, const struct sb_host_call *call, struct sb_host_health *out)
{
	struct sb_storage_space s = { .fragmentation = -1 };
	struct sb_error why = { 0 };
	struct sb_host_stats st;

	(void)call;
	*out = (struct sb_host_health){ .status = SB_HOST_HEALTHY,
		.storage = h->st->ops->name,
		.storage_why = h->storage_why };
	if (space(h, 0, &s, &why) < 0)
		reason(out, SB_HOST_UNHEALTHY, "%.150s", why.msg);
	else
		judge_space(h, &s, out);
	(void)snprintf(out->pool_state, sizeof out->pool_state, "%s", s.state);
	out->size = s.size;
	out->used = s.used;
	out->free = s.free;
	out->capacity = s.capacity;
	out->fragmentation = s.fragmentation;
	sb_host_stats(h, &st);
	for (size_t i = 0; i < SB_HOST_STATES; i++)
		out->sessions += st.sessions[i];
	out->active_tools = st.active_tools;
	out->processes = st.running_processes;
	out->uptime_ms = sb_now_ms() - h->started_ms;
	out->max_sessions = h->o.max_sessions;
	if (out->max_sessions > out->sessions)
		out->free_sessions = out->max_sessions - (unsigned)out->sessions;
	machine(out);
}

bool
sb_host_health_ready(struct sb_host *h)
{
	return atomic_load(&h->status) != SB_HOST_UNHEALTHY && !sb_host_closing(h);
}

const char *
sb_host_health_name(enum sb_host_health_status s)
{
	static const char *const names[] = { "healthy", "degraded", "unhealthy" };

	return (unsigned)s < 3 ? names[s] : "unknown";
}
