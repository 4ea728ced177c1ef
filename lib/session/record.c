/* SPDX-License-Identifier: MIT */
/* The folder of a sandbox: its lock and its state, written before each step. */
#include "config.h"

#include <session/session-priv.h>

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

bool
sb_record_unreachable(int code)
{
	return code == SB_E_CONNECT || code == SB_E_AUTH || code == SB_E_HOSTKEY;
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
