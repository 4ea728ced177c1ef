/* SPDX-License-Identifier: MIT */
/* Which session a verb is about, and how it is shown. */
#include "config.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <bin/sbsync/sbsync.h>

#define WATCHER_MS 15000

char *
time_text(int64_t t, char *out, size_t size)
{
	time_t tt = (time_t)t;
	struct tm tm;

	if (!t || !localtime_r(&tt, &tm) || !strftime(out, size, "%Y-%m-%d %H:%M:%S", &tm))
		(void)snprintf(out, size, "never");
	return out;
}

json_t *
session_json(const struct sb_session *s)
{
	json_t *pairs = json_array(), *labels = json_object();

	for (size_t i = 0; i < s->n_pairs; i++) {
		json_t *o = json_object();

		json_set_path(o, "local", s->pairs[i].local);
		json_set_path(o, "remote", s->pairs[i].remote);
		json_array_append_new(pairs, o);
	}
	for (size_t i = 0; i < s->labels.n; i++) {
		const char *eq = strchr(s->labels.v[i], '=');
		char key[64] = "";

		(void)snprintf(key, sizeof key, "%.*s", (int)(eq ? eq - s->labels.v[i] : 0),
			s->labels.v[i]);
		json_object_set_new(labels, key, json_string(eq ? eq + 1 : ""));
	}
	return json_pack("{s:s, s:s, s:o, s:I, s:I, s:b, s:I, s:s, s:I, s:I, s:s?, s:I, s:I, s:o}",
		"name", s->name, "state", sb_session_state_name(s->state), "pairs", pairs,
		"created", (json_int_t)s->created, "last_sync", (json_int_t)s->last_sync, "owned",
		sb_session_owned(s), "heartbeat", (json_int_t)s->heartbeat, "conflict",
		sb_session_conflict_name(s->conflict), "failures", (json_int_t)s->failures,
		"next_try", (json_int_t)s->next_try, "last_error", s->last_error, "paused",
		(json_int_t)s->paused, "watcher", (json_int_t)sb_session_watcher(s, NULL), "labels",
		labels);
}

size_t
count_conflicts(const struct sb_session *s)
{
	struct sb_session_saved_list l = { 0 };
	size_t n = sb_session_conflicts(s, NULL, &l, NULL) == 0 ? l.n : 0;

	sb_session_saved_free(&l);
	return n;
}

int
end_watcher(const struct sb_session *s, bool quiet)
{
	int64_t pid = sb_session_watcher(s, NULL);
	sb_deadline until = sb_deadline_in(WATCHER_MS);
	const struct timespec nap = { .tv_nsec = 20000000 };

	if (!pid || kill((pid_t)pid, SIGTERM) < 0)
		return 0;
	while (sb_session_watcher(s, NULL) == pid)
		if (sb_deadline_passed(until)) {
			complain("process %lld watches session '%s' and does not end: kill -9 it",
				(long long)pid, s->name);
			return EXIT_LOCKED;
		} else {
			(void)nanosleep(&nap, NULL);
		}
	if (!quiet)
		(void)fprintf(stderr, "sbsync: ended the watch (process %lld)\n", (long long)pid);
	return 0;
}

json_t *
last_run(const struct sb_session *s)
{
	char buf[65536], *line;
	int fd = sb_session_log_fd(s, NULL);
	off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	ssize_t n = -1;

	if (size > 0)
		n = pread(fd, buf, sizeof buf - 1,
			size > (off_t)sizeof buf - 1 ? size - ((off_t)sizeof buf - 1) : 0);
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return NULL;
	buf[n - 1] = '\0'; /* the last end of line */
	line = strrchr(buf, '\n');
	return json_loads(line ? line + 1 : buf, 0, NULL);
}

int
load_session(int argc, char **argv, struct sb_session *out)
{
	struct sb_error err = { 0 };
	int r = sb_session_load(NULL, argc ? argv[0] : NULL, NULL, out, &err);

	if (r < 0)
		complain("%s", err.msg);
	return r < 0 ? exit_code(r) : 0;
}

int
find_session(const char *name, struct sb_session *out, struct sb_error *err)
{
	struct sb_session_list all = { 0 };
	struct sb_session *found = NULL;
	char real[PATH_MAX];
	int r = sb_session_load(NULL, name, NULL, out, err);

	if (name || r != SB_E_NOTFOUND || !realpath(".", real) ||
		sb_session_load_all(NULL, &all, NULL) < 0)
		return r;
	for (size_t i = 0; i < all.n; i++)
		for (size_t k = 0; k < all.v[i].n_pairs; k++) {
			size_t n = strlen(all.v[i].pairs[k].local);

			if (strncmp(real, all.v[i].pairs[k].local, n) == 0 &&
				(!real[n] || real[n] == '/') &&
				(!found || all.v[i].last_sync > found->last_sync))
				found = &all.v[i];
		}
	if (found) {
		*out = *found;
		memset(found, 0, sizeof *found);
		r = 0;
	}
	sb_session_list_free(&all);
	return r;
}
