/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/tool/tool-snapshot.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

#include <host/host-snapshot.h>
#include <host/host.h>
#include <host/retention.h>

#define CALL_NAME_MAX 64 /* of a call id in a snapshot name */

/* tool-<call>-<time>-<n>: the number makes it unique, whatever the call id is. */
static void
snapshot_name(struct sb_hsess *s, const char *call_id, char *out, size_t size)
{
	char id[CALL_NAME_MAX + 1];
	time_t now = time(NULL);
	struct tm tm;
	size_t n = 0;

	for (; call_id[n] && n < CALL_NAME_MAX; n++) {
		char ch = call_id[n];
		bool fine = (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') ||
			(ch >= '0' && ch <= '9') || ch == '.' || ch == '_' || ch == '-';

		id[n] = fine ? ch : '_';
	}
	id[n] = '\0';
	(void)gmtime_r(&now, &tm);
	(void)pthread_mutex_lock(&s->mu);
	(void)snprintf(out, size, "tool-%s-%04d%02d%02d-%02d%02d%02d-%llu", id, tm.tm_year + 1900,
		tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec,
		(unsigned long long)++s->snap_seq);
	(void)pthread_mutex_unlock(&s->mu);
}

void
sb_tool_snapshot_take(struct sb_toolcall *c, struct sb_host_tool_result *out)
{
	struct sb_error why = { 0 };
	char name[SB_HOST_NAME_MAX + 1];
	int r;

	if (!sb_host_options(c->h)->per_tool_snapshots || sb_host_snapshot_need(c->h, NULL) < 0 ||
		!c->req->call_id || !*c->req->call_id)
		return;
	r = sb_hsess_enter(c->s, SB_HOST_OP_SNAPSHOT, c->call, &why);
	if (r == 0) {
		snapshot_name(c->s, c->req->call_id, name, sizeof name);
		r = sb_host_snapshot_take(c->h, c->s, name, SB_HOST_SNAP_TOOL, c->s->turn, NULL,
			&why);
		if (r == 0)
			sb_host_retention_apply(c->h, c->s, SB_HOST_SNAP_TOOL);
		sb_hsess_leave(c->s);
	}
	if (r == 0)
		memcpy(out->snapshot, name, sizeof name);
	else
		(void)snprintf(out->snapshot_error, sizeof out->snapshot_error, "%.150s", why.msg);
}
