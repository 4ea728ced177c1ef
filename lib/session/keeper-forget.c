/* SPDX-License-Identifier: MIT */
/* Takes sandboxes off the record (declared in sb/session.h). */
#include "config.h"

#include <session/session-priv.h>

#include <fcntl.h>
#include <string.h>

#include <base/path.h>
#include <provider/pairs.h>

/* May it be forgotten without a word about what is over there? */
static int
check_harmless(const struct sb_state *s, struct sb_error *err)
{
	if (sb_sandbox_holds_work(s->life))
		return sb_fail(err, SB_E_UNSYNCED,
			"sandbox %s is %s: its work is not synced back (sbctl recover %s); "
			"--discard "
			"forgets it all the same",
			s->sandbox_id, sb_life_name(s->life), s->sandbox_id);
	if (s->instance_id && s->life != SB_LIFE_DESTROYED)
		return sb_fail(err, SB_E_STATE,
			"sandbox %s is kept: sbctl destroy %s removes it; --discard forgets it and "
			"leaves it where it is",
			s->sandbox_id, s->sandbox_id);
	return 0;
}

static int
forget_held(struct sb_keeper *k, struct sb_sandbox *sb, bool discard, struct sb_error *err)
{
	const struct sb_state *s = &sb->state;
	int r;

	if (sb_state_owned(s))
		return sb_fail(err, SB_E_LOCKED,
			"process %lld works with sandbox %s: sbctl stop %s first",
			(long long)s->owner_pid, s->sandbox_id, s->sandbox_id);
	r = discard ? 0 : check_harmless(s, err);
	return r < 0 ? r : sb_pairs_forget(s, k->state_dir, err);
}

static int
remove_folder(struct sb_keeper *k, const char *id, struct sb_error *err)
{
	sb_autoclose int fd = open(k->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? sb_fail_errno(err, "%s", k->dir) : sb_path_remove_tree(fd, id, err);
}

int
sb_keeper_forget(struct sb_keeper *k, const char *id, bool discard, struct sb_error *err)
{
	sb_auto(sb_sandbox) struct sb_sandbox *sb = sb_sandbox_new(k, err);
	struct sb_error why = { 0 };
	int r;

	if (!sb)
		return SB_E_NOMEM;
	r = sb_keeper_load(k, id, &sb->state, &why);
	if (r == SB_E_SANDBOX_NOT_FOUND && discard) {
		/* Perhaps its record cannot be read; then its whole name is needed. */
		sb->dirfd = sb_record_open(k, id, false, err);
		return sb->dirfd < 0 ? sb->dirfd : remove_folder(k, id, err);
	}
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	sb->dirfd = sb_record_open(k, sb->state.sandbox_id, false, err);
	if (sb->dirfd < 0)
		return sb->dirfd;
	r = sb_record_lock(sb, RECORD_LOCK_MS, err);
	if (r == 0)
		r = forget_held(k, sb, discard, err);
	if (r == 0)
		r = remove_folder(k, sb->state.sandbox_id, err);
	return r;
}
