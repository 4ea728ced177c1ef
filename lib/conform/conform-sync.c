/* SPDX-License-Identifier: MIT */
/* Checks of syncs: what travels, what is kept when both sides change, what must not be lost. */
#include "config.h"

#include <conform/conform-priv.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEEDS_SYNC(c, err) \
	do { \
		if (!(c)->caps.syncs) \
			return sb_conform_skip(err, "the runtime has no files of its own"); \
	} while (0)

/*
 * Everything that ordinary and extraordinary workspaces hold. The names have a newline, a tab, a
 * byte that is no UTF-8, and 255 bytes.
 */
static const char make_odd[] =
	"set -e; umask 022\n"
	"printf one >plain; chmod 640 plain; : >empty; printf ro >readonly; chmod 444 readonly\n"
	"printf '#!/bin/sh\\n' >script; chmod 755 script\n"
	"mkdir -p deep/a/b/c/d/e emptydir; printf deep >deep/a/b/c/d/e/file\n"
	"mkdir rodir; printf x >rodir/inside; chmod 555 rodir\n"
	"ln -s plain link; ln -s nowhere dangling; ln -s /etc/hostname absolute; ln -s deep/a "
	"dirlink\n"
	"printf linked >hard1; ln hard1 hard2\n"
	"printf nl >\"$(printf 'new\\nline')\"; printf tab >\"$(printf 'tab\\there')\"; printf "
	"bytes >\"$(printf 'not\\377utf8')\"\n"
	"printf sp >' leading and trailing '; printf dash >-dash; printf q >\"quo'te\\\"s\"\n"
	"long=$(printf '%0255d' 7); printf long >\"$long\"\n"
	"dd if=/dev/zero of=sparse bs=1 count=1 seek=1048575 2>/dev/null\n"
	"head -c 300000 /dev/urandom >random\n"
	"touch -d '2001-02-03 04:05:06.789012345' old\n";

/*
 * A description of the tree that is the same for the same tree: type, mode, time, size, target or
 * sum, name.
 */
static const char describe[] = "find . -mindepth 1 ! -type p ! -type s \\( -type f -printf 'f %m "
			       "%s %T@ %p\\0' -o -type l -printf 'l %l %p\\0' -o "
			       "-printf '%y %m %p\\0' \\) | tr '\\n\\0' '?\\n' | LC_ALL=C sort; "
			       "find . -type f -links +1 | wc -l; "
			       "find . -type f -exec cksum {} + | cut -d' ' -f1,2 | LC_ALL=C sort";

static int
same_tree(struct sb_conform_sandbox *b, const char *when, struct sb_error *err)
{
	sb_autofree char *here = NULL, *there = NULL;
	int r = sb_conform_local_sh(b, describe, &here, err);
	const char *p, *q;

	if (r == 0)
		r = sb_conform_sh(b, describe, &there, err);
	if (r < 0)
		return r;
	if (strcmp(here, there) == 0)
		return 0;
	for (p = here, q = there; *p && *p == *q; p++, q++)
		;
	while (p > here && p[-1] != '\n') {
		p--;
		q--;
	}
	return broken(err, "%s the trees differ: here '%.*s', in the runtime '%.*s'", when,
		(int)strcspn(p, "\n"), p, (int)strcspn(q, "\n"), q);
}

static int
check_odd(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	int r;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_local_sh(b, make_odd, NULL, err) < 0 ||
		sb_conform_local_sh(b, "mkfifo fifo", NULL, err) < 0)
		return SB_E_STATE;
	r = sb_conform_push(b, err);
	if (r == 0)
		r = same_tree(b, "after a push", err);
	if (r == 0)
		r = sb_conform_sh(b,
			    "chmod 755 rodir; rm -rf rodir/inside dirlink; printf changed >>plain; "
			    "chmod 600 script; mv hard1 moved; "
			    "ln -sfn /tmp absolute; rm -f fifo",
			    NULL, err) == 0 ?
			0 :
			broken(err, "the runtime cannot change its files");
	if (r == 0)
		r = sb_conform_pull(b, err);
	if (r == 0)
		r = sb_conform_local_sh(b, "rm -f fifo", NULL, err);
	if (r == 0)
		r = same_tree(b, "after a pull", err);
	if (r == 0)
		r = sb_conform_destroy(b, false, err);
	/* What was not writable must not hinder the removal of the check's own folder. */
	(void)sb_conform_local_sh(b, "chmod -R u+w .", NULL, NULL);
	return r;
}

static int
check_made_there(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	int r;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_push(b, err) < 0)
		return SB_E_STATE;
	r = sb_conform_sh(b, make_odd, NULL, err);
	if (r != 0)
		return r < 0 ? r : broken(err, "the runtime cannot make odd files (exit %d)", r);
	r = sb_conform_pull(b, err);
	if (r == 0)
		r = same_tree(b, "after a pull", err);
	(void)sb_conform_local_sh(b, "chmod -R u+w .", NULL, NULL);
	return r;
}

static int
check_deletions(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b ||
		sb_conform_local_sh(b,
			"mkdir d; echo 1 >a; echo 2 >d/b; echo 3 >keep; echo 4 >mine", NULL,
			err) < 0 ||
		sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "rm -r a d; ls", "keep\nmine\n", err) < 0)
		return SB_E_STATE;
	if (sb_conform_local_sh(b, "rm mine", NULL, err) < 0 || sb_conform_pull(b, err) < 0 ||
		sb_conform_local_is(b, "a", NULL, err) < 0 ||
		sb_conform_local_is(b, "d", NULL, err) < 0 ||
		sb_conform_local_is(b, "keep", "3\n", err) < 0 ||
		sb_conform_local_is(b, "mine", NULL, err) < 0)
		return SB_E_STATE;
	/* And nothing rises from the dead. */
	return sb_conform_push(b, err) < 0 ? SB_E_STATE :
					     sb_conform_sh_is(b, "ls -A", "keep\n", err);
}

static int
check_renames(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b ||
		sb_conform_local_sh(b,
			"mkdir src; for i in 1 2 3; do echo file $i >src/f$i; done; echo x >Case",
			NULL, err) < 0 ||
		sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "mv src lib; mv lib/f1 lib/g1; mv Case case; ls", "case\nlib\n",
			err) < 0 ||
		sb_conform_pull(b, err) < 0)
		return SB_E_STATE;
	if (sb_conform_local_is(b, "src", NULL, err) < 0 ||
		sb_conform_local_is(b, "lib/g1", "file 1\n", err) < 0 ||
		sb_conform_local_is(b, "lib/f1", NULL, err) < 0 ||
		sb_conform_local_is(b, "lib/f2", "file 2\n", err) < 0 ||
		sb_conform_local_is(b, "case", "x\n", err) < 0)
		return SB_E_STATE;
	return sb_conform_local_is(b, "Case", NULL, err);
}

static int
check_conflict(struct sb_conform *c, struct sb_error *err)
{
	struct sb_sync_result res = { 0 };
	sb_autofree char *found = NULL;
	struct sb_conform_sandbox *b;
	size_t n;
	int r;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b ||
		sb_conform_local_sh(b, "echo base >both; echo base >theirs; echo base >mine", NULL,
			err) < 0 ||
		sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "echo runtime >both; echo runtime >theirs", "", err) < 0 ||
		sb_conform_local_sh(b, "echo local >both; echo local >mine", NULL, err) < 0)
		return SB_E_STATE;
	r = sb_conform_sync(b, SB_WAY_FROM_RUNTIME, SB_WHEN_STOP, &res, err);
	n = res.conflicts.n;
	sb_sync_result_free(&res);
	if (r == 0 && n != 1)
		r = broken(err, "%zu conflicts are told, there is 1", n);
	if (r == 0)
		r = sb_conform_local_is(b, "both", "local\n", err);
	if (r == 0)
		r = sb_conform_local_is(b, "theirs", "runtime\n", err);
	if (r == 0)
		r = sb_conform_local_is(b, "mine", "local\n", err);
	if (r == 0)
		r = sb_conform_local_sh(b, "cat both.*", &found, err);
	if (r == 0 && strcmp(found, "runtime\n") != 0)
		r = broken(err, "the runtime's version of a conflict is not kept beside");
	return r;
}

static int
check_user_edits(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_local_sh(b, "echo 1 >untouched; echo 1 >edited", NULL, err) < 0 ||
		sb_conform_push(b, err) < 0 ||
		sb_conform_local_sh(b, "echo 2 >untouched; echo new >added", NULL, err) < 0 ||
		sb_conform_sh_is(b, "echo agent >edited", "", err) < 0 ||
		sb_conform_pull(b, err) < 0)
		return SB_E_STATE;
	if (sb_conform_local_is(b, "untouched", "2\n", err) < 0 ||
		sb_conform_local_is(b, "added", "new\n", err) < 0 ||
		sb_conform_local_is(b, "edited", "agent\n", err) < 0)
		return SB_E_STATE;
	/* A push to a sandbox with work in it brings that work here and overlays none of it. */
	if (sb_conform_sh_is(b, "echo later >there", "", err) < 0 || sb_conform_push(b, err) < 0)
		return SB_E_STATE;
	if (sb_conform_sh_is(b, "cat untouched added there", "2\nnew\nlater\n", err) < 0)
		return SB_E_STATE;
	return sb_conform_local_is(b, "there", "later\n", err);
}

static int
check_turn(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;

	NEEDS_SYNC(c, err);
	b = sb_conform_new(c, false, err);
	if (!b)
		return SB_E_STATE;
	b->profile.sync_mode = SB_SYNC_MODE_TURN;
	if (sb_conform_prepare(b, err) < 0 || sb_conform_local_write(b, "a", "1", err) < 0 ||
		sb_conform_push(b, err) < 0 || sb_conform_sh_is(b, "printf 2 >b", "", err) < 0 ||
		sb_conform_local_write(b, "c", "3", err) < 0 ||
		sb_conform_sync(b, SB_WAY_TO_RUNTIME, SB_WHEN_TURN, NULL, err) < 0)
		return SB_E_STATE;
	if (sb_conform_local_is(b, "b", "2", err) < 0)
		return SB_E_STATE;
	return sb_conform_sh_is(b, "cat a b c", "123", err);
}

/* The provider's own member: the library's function in front of it would not even ask. */
static int
sync_none(struct sb_conform_sandbox *b, enum sb_way way, struct sb_error *err)
{
	const struct sb_provider_ops *ops = b->c->o->provider->ops;
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	struct sb_call call = sb_conform_call(b->c);
	struct sb_sync_result res = { 0 };
	uint64_t moved;
	int r;

	o.reason = way == SB_WAY_TO_RUNTIME ? SB_WHEN_START : SB_WHEN_STOP;
	r = way == SB_WAY_TO_RUNTIME ?
		ops->sync_to_runtime(b->c->o->provider, &b->prepared.state, &o, &call, &res, err) :
		ops->sync_from_runtime(b->c->o->provider, &b->prepared.state, &o, &call, &res, err);
	moved = res.files_synced + res.bytes_transferred + res.files_deleted;
	sb_sync_result_free(&res);
	if (r < 0)
		return sb_wrap(err, r, "sync with mode none");
	return moved ? broken(err, "sync_mode none, yet something is told to have moved") : 0;
}

static int
check_none(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;

	NEEDS_SYNC(c, err);
	b = sb_conform_new(c, false, err);
	if (!b)
		return SB_E_STATE;
	b->profile.sync_mode = SB_SYNC_MODE_NONE;
	if (sb_conform_prepare(b, err) < 0 || sb_conform_local_write(b, "here", "1", err) < 0 ||
		sync_none(b, SB_WAY_TO_RUNTIME, err) < 0 ||
		sb_conform_sh_is(b, "ls -A; echo 2 >there", "", err) < 0 ||
		sync_none(b, SB_WAY_FROM_RUNTIME, err) < 0)
		return SB_E_STATE;
	return sb_conform_local_is(b, "there", NULL, err);
}

static int
check_extra(struct sb_conform *c, struct sb_error *err)
{
	sb_autofree char *list = NULL, *script = NULL, *found = NULL;
	struct sb_conform_sandbox *b = sb_conform_ready(c, true, err);
	const struct sb_state *s;
	int r;

	if (!b || sb_conform_local_write(b, "main", "1", err) < 0 ||
		sb_conform_local_write(b, "../extra-1/more", "2", err) < 0)
		return SB_E_STATE;
	s = &b->prepared.state;
	if (!s->runtime_dirs.n)
		return broken(err, "the further directory has no partner in the runtime");
	if (c->caps.syncs) {
		size_t n = strlen(s->runtime_root), k = strlen(s->runtime_dirs.v[0]);

		if ((strncmp(s->runtime_root, s->runtime_dirs.v[0], n) == 0 &&
			    s->runtime_dirs.v[0][n] == '/') ||
			(strncmp(s->runtime_root, s->runtime_dirs.v[0], k) == 0 &&
				s->runtime_root[k] == '/'))
			return broken(err, "%s and %s lie inside each other", s->runtime_root,
				s->runtime_dirs.v[0]);
	}
	if (sb_conform_push(b, err) < 0)
		return SB_E_STATE;
	script = sb_str_printf("ls -A; cat '%s/more'; echo made >'%s/made'", s->runtime_dirs.v[0],
		s->runtime_dirs.v[0]);
	if (!script || sb_conform_sh_is(b, script, "main\n2", err) < 0 ||
		sb_conform_pull(b, err) < 0)
		return SB_E_STATE;
	r = sb_conform_local_is(b, "../extra-1/made", "made\n", err);
	if (r == 0)
		r = sb_conform_local_sh(b, "ls -A", &list, err);
	if (r == 0 && strcmp(list, "main\n") != 0)
		r = broken(err, "the further directory leaks into the main one: '%.60s'", list);
	if (r == 0)
		r = sb_conform_local_sh(b, "cd ../extra-1 && ls -A", &found, err);
	if (r == 0 && strcmp(found, "made\nmore\n") != 0)
		r = broken(err, "the further directory holds '%.60s'", found);
	return r;
}

static int
check_excludes(struct sb_conform *c, struct sb_error *err)
{
	static const char *const patterns[] = { "*.log", "/cache/", NULL };
	struct sb_conform_sandbox *b;

	NEEDS_SYNC(c, err);
	b = sb_conform_new(c, false, err);
	if (!b)
		return SB_E_STATE;
	b->req.excludes = patterns;
	if (sb_conform_prepare(b, err) < 0 ||
		sb_conform_local_sh(b, "mkdir cache; echo 1 >a.log; echo 2 >cache/x; echo 3 >kept",
			NULL, err) < 0 ||
		sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "ls -A; mkdir cache; echo 4 >b.log; echo 5 >cache/y", "kept\n",
			err) < 0 ||
		sb_conform_pull(b, err) < 0)
		return SB_E_STATE;
	if (sb_conform_local_is(b, "b.log", NULL, err) < 0 ||
		sb_conform_local_is(b, "cache/y", NULL, err) < 0)
		return SB_E_STATE;
	return sb_conform_local_is(b, "a.log", "1\n", err);
}

static int
check_dry_run(struct sb_conform *c, struct sb_error *err)
{
	struct sb_provider_sync o = SB_PROVIDER_SYNC_INIT;
	struct sb_call call = sb_conform_call(c);
	struct sb_sync_result res = { 0 };
	struct sb_conform_sandbox *b;
	size_t n;
	int r;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_local_write(b, "a", "1", err) < 0 || sb_conform_push(b, err) < 0 ||
		sb_conform_sh_is(b, "printf 2 >b", "", err) < 0)
		return SB_E_STATE;
	o.reason = SB_WHEN_STOP;
	o.dry_run = true;
	r = sb_provider_sync(c->o->provider, &b->prepared.state, SB_WAY_FROM_RUNTIME, &o, &call,
		&res, err);
	n = res.n_changes;
	sb_sync_result_free(&res);
	if (r == 0 && n != 1)
		r = broken(err, "a dry run tells %zu changes, there is 1", n);
	if (r == 0)
		r = sb_conform_local_is(b, "b", NULL, err);
	/* It does not count as a sync back either. */
	if (r == 0) {
		struct sb_error why = { 0 };

		r = sb_conform_must_fail(sb_conform_destroy(b, false, &why), SB_E_UNSYNCED,
			"destroy after a dry run", &why, err);
	}
	return r;
}

static int
check_result(struct sb_conform *c, struct sb_error *err)
{
	struct sb_sync_result res = { 0 };
	struct sb_conform_sandbox *b;
	int r;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b || sb_conform_local_sh(b, "echo 1 >a; echo 2 >b; echo 3 >c", NULL, err) < 0)
		return SB_E_STATE;
	r = sb_conform_sync(b, SB_WAY_TO_RUNTIME, SB_WHEN_START, &res, err);
	if (r == 0 && (res.files_synced != 3 || res.bytes_transferred != 6))
		r = broken(err, "3 files of 6 bytes went, %llu of %llu are told",
			(unsigned long long)res.files_synced,
			(unsigned long long)res.bytes_transferred);
	if (r == 0 &&
		(!res.direction || strcmp(res.direction, "to_runtime") != 0 || !res.reason ||
			strcmp(res.reason, "start") != 0))
		r = broken(err, "the result says %s, %s", res.direction ? res.direction : "(null)",
			res.reason ? res.reason : "(null)");
	sb_sync_result_free(&res);
	if (r < 0 || sb_conform_sh_is(b, "rm a; echo 4 >d", "", err) < 0)
		return r < 0 ? r : SB_E_STATE;
	memset(&res, 0, sizeof res);
	r = sb_conform_sync(b, SB_WAY_FROM_RUNTIME, SB_WHEN_CRASH, &res, err);
	if (r == 0 &&
		(res.files_deleted != 1 || res.files_synced < 1 || !res.direction ||
			strcmp(res.direction, "from_runtime") != 0 || !res.reason ||
			strcmp(res.reason, "crash") != 0))
		r = broken(err, "1 file went and 1 came, the result tells %llu and %llu (%s, %s)",
			(unsigned long long)res.files_deleted, (unsigned long long)res.files_synced,
			res.direction ? res.direction : "(null)",
			res.reason ? res.reason : "(null)");
	sb_sync_result_free(&res);
	return r;
}

static int
check_git(struct sb_conform *c, struct sb_error *err)
{
	struct sb_conform_sandbox *b;
	int r;

	NEEDS_SYNC(c, err);
	b = sb_conform_ready(c, false, err);
	if (!b)
		return SB_E_STATE;
	if (sb_conform_local_sh(b, "command -v git", NULL, NULL) < 0)
		return sb_conform_skip(err, "git is not here");
	if (sb_conform_local_sh(b,
		    "export GIT_CONFIG_GLOBAL=/dev/null; git init -q . && git config user.email "
		    "a@b && git config user.name n && echo 1 >f && "
		    "git add f && git commit -qm one",
		    NULL, err) < 0 ||
		sb_conform_push(b, err) < 0)
		return SB_E_STATE;
	r = sb_conform_sh(b,
		"command -v git >/dev/null || exit 9; export GIT_CONFIG_GLOBAL=/dev/null; "
		"echo 2 >>f && git -c safe.directory='*' commit -qam two && git -c "
		"safe.directory='*' rev-list --count HEAD",
		NULL, err);
	if (r == 9)
		return sb_conform_skip(err, "git is not in the runtime");
	if (r != 0)
		return r < 0 ? r : broken(err, "git in the runtime ends with %d", r);
	r = sb_conform_pull(b, err);
	return r < 0 ? r :
		       sb_conform_local_sh(b,
			       "export GIT_CONFIG_GLOBAL=/dev/null; git fsck --strict && test "
			       "\"$(git rev-list --count HEAD)\" = 2 && "
			       "test -z \"$(git status --porcelain)\"",
			       NULL, err);
}

const struct sb_conform_check sb_conform_sync_checks[] = {
	{ "sync-odd", "links, hard links, modes, times, holes, strange names, both ways",
		check_odd },
	{ "sync-made-there", "the same made in the runtime", check_made_there },
	{ "sync-deletions", "what one side deletes goes on the other", check_deletions },
	{ "sync-renames", "files and directories, also of case only", check_renames },
	{ "sync-conflict", "both versions are kept and told", check_conflict },
	{ "sync-user-edits", "edits here during the session stay; work there is never overlaid",
		check_user_edits },
	{ "sync-turn", "both ways in the middle", check_turn },
	{ "sync-none", "mode none moves nothing", check_none },
	{ "sync-extra", "a further directory is a pair of its own", check_extra },
	{ "sync-excludes", "patterns hold both ways", check_excludes },
	{ "sync-dry-run", "tells and does not do", check_dry_run },
	{ "sync-result", "counts, direction and reason are right", check_result },
	{ "sync-git", "a repository comes back whole", check_git },
	{ NULL, NULL, NULL },
};
