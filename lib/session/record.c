/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <session/keeper.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/path.h>
#include <base/str.h>

#define STATE_FILE "state.json"
#define KEEP_ENDED 50 /* destroyed sandboxes that stay on record */

int
sb_record_open(struct sb_keeper *k, const char *id, bool create, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s", k->dir, id);
	int fd, r;

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "sandbox %s: out of memory", id);
	if (!sb_sandbox_id_ok(id))
		return sb_fail(err, SB_E_INVAL,
			"\"%s\" is not a sandbox id: use at most 64 letters, digits, '-', '_' and "
			"'.'",
			id);
	if (create) {
		r = sb_file_mkdirs(path, 0700, err);
		if (r < 0)
			return sb_wrap(err, r, "record of sandbox %s", id);
	}
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0 && errno == ENOENT)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND,
			"there is no sandbox %s on record: see sbctl ls --all", id);
	return fd < 0 ? sb_fail_errno(err, "%s", path) : fd;
}

int
sb_record_load(int dirfd, struct sb_state *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	int r = sb_file_read(dirfd, STATE_FILE, SB_STATE_MAX, &text, err);

	return r < 0 ? r : sb_state_decode((const char *)text.data, text.len, out, err);
}

int
sb_record_lock(struct sb_sandbox *sb, int wait_ms, struct sb_error *err)
{
	sb_autoclose int fd =
		openat(sb->dirfd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct sb_state now = SB_STATE_INIT;
	struct sb_error why = { 0 };
	int r;

	if (fd < 0)
		return sb_fail_errno(err, "lock of sandbox %s",
			sb->state.sandbox_id ? sb->state.sandbox_id : "");
	r = sb_file_lock(fd, wait_ms, err);
	if (r == SB_E_LOCKED)
		return sb_fail(err, r, "another process works on sandbox %s: wait for it",
			sb->state.sandbox_id);
	if (r < 0)
		return r;
	r = sb_record_load(sb->dirfd, &now, &why);
	if (r == 0) {
		sb_state_free(&sb->state);
		sb->state = now;
	} else if (r != SB_E_NOTFOUND) {
		if (err)
			*err = why;
		return sb_wrap(err, r, "record of sandbox %s",
			sb->state.sandbox_id ? sb->state.sandbox_id : "");
	}
	sb->lockfd = sb_steal_fd(&fd);
	return 0;
}

void
sb_record_unlock(struct sb_sandbox *sb)
{
	sb_file_unlock(sb->lockfd);
	sb->lockfd = -1;
}

int
sb_record_save(struct sb_sandbox *sb, enum sb_life life, struct sb_error *err)
{
	sb_autofree char *text = NULL;
	enum sb_life before = sb->state.life;
	int r;

	if (!sb_life_allows(before, life))
		return sb_fail(err, SB_E_STATE, "sandbox %s is %s: it cannot become %s",
			sb->state.sandbox_id, sb_life_name(before), sb_life_name(life));
	sb->state.life = life;
	r = sb_state_encode(&sb->state, &text, err);
	if (r == 0)
		r = sb_file_replace(sb->dirfd, STATE_FILE, text, strlen(text), 0600, err);
	if (r < 0) {
		sb->state.life = before;
		return sb_wrap(err, r, "record of sandbox %s", sb->state.sandbox_id);
	}
	return 0;
}

/* Field 22 of /proc/PID/stat, in clock ticks since boot; 0: no such process. */
static uint64_t
proc_start(int64_t pid)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	char path[64], *p;
	unsigned long long v = 0;

	sb_buf_init(&text, 4096);
	(void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
	{
		sb_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
		char raw[2048];
		ssize_t n = fd < 0 ? -1 : sb_file_read_full(fd, raw, sizeof raw - 1, NULL);

		if (n <= 0)
			return 0;
		sb_buf_add(&text, raw, (size_t)n);
	}
	/* The name in parentheses may hold anything; the fields behind it do not. */
	p = strrchr((char *)text.data, ')');
	for (int i = 0; p && i < 20; i++)
		p = strchr(p + 1, ' ');
	if (p)
		v = strtoull(p + 1, NULL, 10);
	return v;
}

void
sb_record_own(struct sb_state *s, bool own)
{
	s->owner_pid = own ? getpid() : 0;
	s->owner_start = own ? proc_start(s->owner_pid) : 0;
}

bool
sb_state_owned(const struct sb_state *s)
{
	return s->owner_pid > 0 && s->owner_start > 0 && proc_start(s->owner_pid) == s->owner_start;
}

int
sb_keeper_events_fd(struct sb_keeper *k, const char *id, struct sb_error *err)
{
	sb_autoclose int dirfd = sb_record_open(k, id, false, err);
	int fd;

	if (dirfd < 0)
		return dirfd;
	fd = openat(dirfd, "events", O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	return fd < 0 ? sb_fail_errno(err, "events of sandbox %s", id) : fd;
}

static int
by_age(const void *a, const void *b)
{
	const struct sb_state *x = a, *y = b;

	if (x->created_at != y->created_at)
		return x->created_at < y->created_at ? -1 : 1;
	return strcmp(x->sandbox_id, y->sandbox_id);
}

/* Reads one folder; what cannot be read is logged and passed over. */
static int
load_one(struct sb_keeper *k, const char *id, struct sb_state *out)
{
	struct sb_error why = { 0 };
	sb_autoclose int fd = sb_record_open(k, id, false, &why);
	int r = fd < 0 ? fd : sb_record_load(fd, out, &why);

	if (r < 0 && r != SB_E_NOTFOUND)
		sb_log(&k->log, SB_LOG_WARN, "session", "sandbox %s is passed over: %s", id,
			why.msg);
	if (r == 0 && (!out->sandbox_id || strcmp(out->sandbox_id, id) != 0)) {
		sb_log(&k->log, SB_LOG_WARN, "session",
			"sandbox %s is passed over: its record names another", id);
		sb_state_free(out);
		r = SB_E_CORRUPT;
	}
	return r;
}

int
sb_keeper_list(struct sb_keeper *k, struct sb_state **out, size_t *out_n, struct sb_error *err)
{
	sb_autoclosedir DIR *d = opendir(k->dir);
	struct sb_state *v = NULL;
	struct dirent *e;
	size_t n = 0;

	if (!d && errno != ENOENT)
		return sb_fail_errno(err, "%s", k->dir);
	while (d && (e = readdir(d))) {
		struct sb_state s = SB_STATE_INIT, *grown;

		if (!sb_sandbox_id_ok(e->d_name) || load_one(k, e->d_name, &s) < 0)
			continue;
		grown = reallocarray(v, n + 1, sizeof *v);
		if (!grown) {
			sb_state_free(&s);
			sb_states_free(v, n);
			return sb_fail(err, SB_E_NOMEM, "sandboxes: out of memory");
		}
		v = grown;
		v[n++] = s;
	}
	if (n > 1)
		qsort(v, n, sizeof *v, by_age);
	*out = v;
	*out_n = n;
	return 0;
}

void
sb_states_free(struct sb_state *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_state_free(&v[i]);
	free(v);
}

int
sb_keeper_load(struct sb_keeper *k, const char *id, struct sb_state *out, struct sb_error *err)
{
	struct sb_state *v = NULL;
	size_t n = 0, hits = 0, at = 0;
	int r;

	if (!sb_sandbox_id_ok(id))
		return sb_fail(err, SB_E_INVAL, "\"%s\" is not a sandbox id: see sbctl ls", id);
	r = sb_keeper_list(k, &v, &n, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < n; i++) {
		if (strcmp(v[i].sandbox_id, id) == 0) {
			hits = 1;
			at = i;
			break;
		}
		if (sb_str_starts(v[i].sandbox_id, id)) {
			hits++;
			at = i;
		}
	}
	if (hits == 1)
		r = sb_state_copy(&v[at], out, err);
	else
		r = hits ? sb_fail(err, SB_E_INVAL, "%zu sandboxes begin with %s: write more of it",
				   hits, id) :
			   sb_fail(err, SB_E_SANDBOX_NOT_FOUND,
				   "there is no sandbox %s on record: see sbctl ls --all", id);
	sb_states_free(v, n);
	return r;
}

void
sb_record_prune(struct sb_keeper *k)
{
	struct sb_state *v = NULL;
	size_t n = 0, ended = 0;
	sb_autoclose int dirfd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (dirfd < 0 || sb_keeper_list(k, &v, &n, NULL) < 0)
		return;
	for (size_t i = 0; i < n; i++)
		ended += v[i].life == SB_LIFE_DESTROYED;
	for (size_t i = 0; i < n && ended > KEEP_ENDED; i++)
		if (v[i].life == SB_LIFE_DESTROYED && !sb_state_owned(&v[i])) {
			(void)sb_path_remove_tree(dirfd, v[i].sandbox_id, NULL);
			ended--;
		}
	sb_states_free(v, n);
}
