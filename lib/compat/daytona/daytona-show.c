/* SPDX-License-Identifier: MIT */
/* A sandbox as the vendor shows it. */
#include "config.h"

#include <string.h>
#include <unistd.h>

#include <compat/daytona/daytona-priv.h>
#include <host/host.h>

unsigned
sb_daytona_show_cpus(struct sb_daytona *d)
{
	double limit = sb_host_options(d->host)->session_cpus;
	long n = limit >= 1 ? (long)limit : sysconf(_SC_NPROCESSORS_ONLN);

	return n > 0 ? (unsigned)n : 1;
}

uint64_t
sb_daytona_show_mem_mb(struct sb_daytona *d)
{
	uint64_t limit = sb_host_options(d->host)->session_mem_mb;

	return limit ?
		limit :
		(uint64_t)sysconf(_SC_PHYS_PAGES) / 1024 * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

uint64_t
sb_daytona_show_disk(struct sb_daytona *d, const struct sb_host_session *s)
{
	struct sb_host_health h;

	if (s->quota)
		return s->quota;
	sb_host_health(d->host, NULL, &h);
	return h.size;
}

static json_t *
labels_of(const struct sb_host_session *s)
{
	json_t *o = json_object();

	for (size_t i = 0; i < s->n_labels; i++)
		(void)json_object_set_new(o, s->labels[i].key, sb_answer_text(s->labels[i].value));
	return o;
}

/* Where it is to end up, by where it is. */
static const char *
desired(const char *state)
{
	static const char *const map[][2] = { { "stopped", "stopped" }, { "stopping", "stopped" },
		{ "paused", "paused" }, { "pausing", "paused" }, { "archived", "archived" },
		{ "archiving", "archived" }, { "destroying", "destroyed" },
		{ "destroyed", "destroyed" } };

	for (size_t i = 0; i < sizeof map / sizeof map[0]; i++)
		if (strcmp(map[i][0], state) == 0)
			return map[i][1];
	return "started";
}

static void
copy_to(json_t *o, const json_t *rec, const char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		if (json_object_get(rec, names[i]))
			(void)json_object_set(o, names[i], json_object_get(rec, names[i]));
}

json_t *
sb_daytona_show(struct sb_daytona *d, const json_t *rec, const char *base, bool listed)
{
	static const char *const both[] = { "id", "name", "snapshot", "user", "target", "public",
		"autoStopInterval", "autoPauseInterval", "autoArchiveInterval",
		"autoDeleteInterval", NULL };
	static const char *const whole[] = { "env", "networkBlockAll", "networkAllowList",
		"domainAllowList", NULL };
	const char *state = sb_daytona_state(d, rec);
	struct sb_host_session s = { 0 };
	json_t *o = json_object();
	int64_t ttl = sb_daytona_number(rec, "ttlMinutes");

	(void)sb_host_session_get(d->host, sb_daytona_text(rec, "id"), false, &s, NULL);
	copy_to(o, rec, both);
	if (!listed) {
		copy_to(o, rec, whole);
		(void)json_object_set_new(o, "volumes", json_array());
	}
	(void)json_object_update_new(o,
		json_pack("{s:s, s:o, s:i, s:i, s:f, s:f, s:s, s:s, s:b, s:s, s:s, s:s, s:o, s:o, "
			  "s:o, s:o}",
			"organizationId", SB_DAYTONA_ORGANIZATION, "labels", labels_of(&s), "cpu",
			(int)sb_daytona_show_cpus(d), "gpu", 0, "memory",
			(double)sb_daytona_show_mem_mb(d) / 1024, "disk",
			(double)(sb_daytona_show_disk(d, &s) >> 20) / 1024, "state", state,
			"desiredState", desired(state), "recoverable", 0, "backupState", "None",
			"sandboxClass", "container", "daemonVersion", SB_DAYTONA_VERSION,
			"createdAt", sb_answer_time(sb_daytona_number(rec, "createdNs")),
			"updatedAt", sb_answer_time(sb_daytona_number(rec, "updatedNs")),
			"lastActivityAt", sb_answer_time(sb_daytona_active(d, rec)),
			"toolboxProxyUrl", json_sprintf("%s/toolbox", base)));
	if (s.why && *s.why)
		(void)json_object_set_new(o, "errorReason", sb_answer_text(s.why));
	if (ttl > 0)
		(void)json_object_set_new(o, "autoDestroyAt",
			sb_answer_time(
				sb_daytona_number(rec, "createdNs") + ttl * SB_DAYTONA_MINUTE));
	sb_host_session_clear(&s);
	return o;
}

int
sb_daytona_show_answer(struct sb_rpc_call *call, const json_t *rec, struct sb_error *err)
{
	char base[SB_DAYTONA_BASE_MAX];

	sb_daytona_base(call, base);
	return sb_answer_json(call, 200, sb_daytona_show(sb_rpc_call_arg(call), rec, base, false),
		err);
}
