/* SPDX-License-Identifier: MIT */
/* Finds groups again that an earlier host made, whichever group that host was in. */
#include "config.h"

#include <host/runtime/cgroup.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>

#define ROOTS_MAX 65536

void
sb_cgroup_of(pid_t pid, const char *name, struct sb_cgroup *out)
{
	struct sb_cgroup own;

	*out = (struct sb_cgroup){ 0 };
	sb_cgroup_where(pid, &own);
	out->v2 = own.v2;
	for (int i = 0; i < SB_CGROUP_KINDS; i++) {
		const char *slash = own.dir[i] ? strrchr(own.dir[i], '/') : NULL;

		if (slash && strcmp(slash + 1, name) == 0) {
			out->dir[i] = own.dir[i];
			own.dir[i] = NULL;
		}
	}
	sb_cgroup_clear(&own);
}

/* "1 0 DIR": version, kind, where groups were made. */
int
sb_cgroup_remember(const char *file, const struct sb_cgroup *at, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	bool changed = false;
	int r = sb_file_read(AT_FDCWD, file, ROOTS_MAX, &text, NULL);

	if (r < 0)
		sb_buf_init(&text, ROOTS_MAX);
	for (int i = 0; i < SB_CGROUP_KINDS; i++) {
		sb_autofree char *line = sb_cgroup_distinct(at, i) ?
			sb_str_printf("%d %d %s\n", at->v2 ? 2 : 1, i, at->dir[i]) :
			NULL;

		if (!line || (text.len && strstr((const char *)text.data, line)))
			continue;
		sb_buf_add_str(&text, line);
		changed = true;
	}
	r = sb_buf_check(&text, "control groups", err);
	return r < 0 || !changed ? r :
				   sb_file_replace(AT_FDCWD, file, text.data, text.len, 0600, err);
}

void
sb_cgroup_recall(const char *file, void (*fn)(const struct sb_cgroup *at, void *arg), void *arg)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	char *save = NULL;

	if (sb_file_read(AT_FDCWD, file, ROOTS_MAX, &text, NULL) < 0 || !text.len)
		return;
	for (char *l = strtok_r((char *)text.data, "\n", &save); l;
		l = strtok_r(NULL, "\n", &save)) {
		struct sb_cgroup at = { 0 };
		int version = 0, kind = -1, n = 0;

		if (sscanf(l, "%d %d %n", &version, &kind, &n) != 2 || n == 0 || kind < 0 ||
			kind >= SB_CGROUP_KINDS || l[n] != '/')
			continue;
		at.v2 = version == 2;
		for (int i = 0; i < SB_CGROUP_KINDS; i++)
			if (i == kind || at.v2)
				at.dir[i] = l + n;
		fn(&at, arg);
	}
}
