/* SPDX-License-Identifier: MIT */
/* What is in the files that a dry run would change: both versions, side by side as diff -u. */
#include "config.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <bin/common/units.h>
#include <bin/sbsync/sbsync.h>
#include <sbsync/conn.h>

#define TEXT_MAX (1u << 20) /* a longer file is told by its size */
#define FILES_MAX 200
#define WAIT_MS 60000

/* The directory on its machine, as a shell there takes it; free it. */
static char *
far_dir(const char *remote)
{
	const char *path = remote;
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	if (strncmp(remote, "ssh://", 6) == 0)
		path = strchr(remote + 6, '/');
	else if (strchr(remote, ':') && strcspn(remote, ":") < strcspn(remote, "/"))
		path = strchr(remote, ':') + 1;
	if (path && strncmp(path, "/~/", 3) == 0)
		path++;
	sb_buf_init(&b, 64u << 10);
	if (path && path[0] == '~') {
		sb_buf_add_str(&b, "~/");
		path += path[1] == '/' ? 2 : 1;
	}
	sb_buf_add_char(&b, '\'');
	for (const char *p = path ? path : "."; *p; p++)
		sb_buf_add_str(&b, *p == '\'' ? "'\\''" : (char[]){ *p, 0 });
	sb_buf_add_char(&b, '\'');
	sb_buf_add_char(&b, '\0');
	return b.failed ? NULL : strdup((const char *)b.data);
}

/* The beginning of the far file, in memory; -1: there is none. */
static int
fetch(struct sb_conn *c, const char *dir, const char *path, const struct sb_cancel *cancel)
{
	sb_auto(sb_buf) struct sb_buf quoted = { 0 };
	sb_autofree char *command = NULL;
	struct sb_conn_exec *x;
	struct sb_conn_exit end = { 0 };
	char buf[65536];
	ssize_t n = 0;
	size_t all = 0;
	int fd = memfd_create("far", MFD_CLOEXEC), r = -1;

	sb_buf_init(&quoted, 64u << 10);
	for (const char *p = path; *p; p++)
		sb_buf_add_str(&quoted, *p == '\'' ? "'\\''" : (char[]){ *p, 0 });
	sb_buf_add_char(&quoted, '\0');
	if (!quoted.failed)
		command = sb_str_printf("cd %s && head -c %u -- './%s' 2>/dev/null", dir,
			TEXT_MAX + 1, (const char *)quoted.data);
	x = command && fd >= 0 ? sb_conn_exec(c, command, cancel, NULL) : NULL;
	if (x) {
		(void)sb_conn_exec_close_in(x, NULL);
		while (all <= TEXT_MAX && (n = read(sb_conn_exec_out(x), buf, sizeof buf)) > 0) {
			if (sb_file_write_all(fd, buf, (size_t)n, NULL) < 0)
				break;
			all += (size_t)n;
		}
		r = sb_conn_exec_wait(x, sb_deadline_in(WAIT_MS), &end, NULL);
		sb_conn_exec_free(x);
	}
	if (r == 0 && end.known && end.code == 0)
		return fd;
	if (fd >= 0)
		(void)close(fd);
	return -1;
}

static void
show_one(const struct sb_sync_change *ch, const char *local, int far)
{
	sb_autofree char *path = sb_str_printf("%s/%s", local, ch->path);
	bool here = strcmp(ch->side, "local") == 0; /* the old one is ours */
	struct sb_error err = { 0 };
	char shown[4096], from[4200], to[4200];
	int near = path ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK) : -1;

	sb_escape(ch->path, strlen(ch->path), shown, sizeof shown);
	(void)snprintf(from, sizeof from, "%s (%s)", shown, here ? "local" : "runtime");
	(void)snprintf(to, sizeof to, "%s (%s)", shown, here ? "runtime" : "local");
	if (show_diff(from, here ? near : far, to, here ? far : near, &err) < 0)
		complain("%s", err.msg);
	if (near >= 0)
		(void)close(near);
}

void
diff_content(const char *local, const char *remote, const struct sb_sync_opts *o,
	const struct sb_sync_result *res)
{
	struct sb_error err = { 0 };
	sb_autofree char *dir = far_dir(remote);
	struct sb_conn *c = NULL;
	size_t shown = 0, more = 0;

	for (size_t i = 0; dir && i < res->n_changes; i++) {
		const struct sb_sync_change *ch = &res->changes[i];
		bool both = strcmp(ch->what, "update") == 0, gone = strcmp(ch->what, "delete") == 0;
		int far;

		if (!both && !gone && strcmp(ch->what, "create") != 0)
			continue;
		if (++shown > FILES_MAX || sb_cancel_requested(o->cancel)) {
			more++;
			continue;
		}
		if (!c && !(c = sb_conn_open(remote, o, &err))) {
			complain("%s", err.msg);
			return;
		}
		far = fetch(c, dir, ch->path, o->cancel);
		show_one(ch, local, far);
		if (far >= 0)
			(void)close(far);
	}
	if (more)
		(void)printf("and %zu more files\n", more);
	sb_conn_free(c);
}
