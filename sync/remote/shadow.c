/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/remote/shadow.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include <base/file.h>
#include <base/owndir.h>
#include <base/path.h>
#include <base/quote.h>
#include <base/str.h>
#include <sync/remote/agentless.h>
#include <sync/remote/deploy.h>
#include <sync/remote/marker.h>
#include <sync/replica/replica.h>
#include <sync/scan/scan.h>
#include <sync/wire/transport.h>
#include <sync/tree/stage-names.h>

/* Beside the synced files over there, never listed: the identity of the sandbox. */
#define ID_NAME ".sbsync-far-id"
#define ID_HEX 32

struct sb_shadow {
	struct sb_remote *remote;
	char *state_dir;
	const struct sb_cancel *cancel;
	uint64_t max_entries;
	struct sb_log log;
	/* Of the sync under way. */
	int dirfd; /* pairs/PAIR-shadow, locked */
	char *tree, *record, *root;
	struct sb_rules *rules;
	uint32_t flags;
	uint8_t identity[16];
	bool absent;                      /* there was no far root */
	struct sb_agentless_list brought; /* the shadow as the fetch left it */
};

static void
leave(struct sb_shadow *s)
{
	if (s->dirfd >= 0)
		(void)close(s->dirfd);
	s->dirfd = -1;
	free(s->tree);
	free(s->record);
	free(s->root);
	sb_rules_free(s->rules);
	sb_agentless_list_free(&s->brought);
	s->tree = s->record = s->root = NULL;
	s->rules = NULL;
}

void
sb_shadow_free(struct sb_shadow *s)
{
	if (!s)
		return;
	leave(s);
	free(s->state_dir);
	free(s);
}

void
sb_shadow_renew(struct sb_shadow *s, const struct sb_sync_opts *o)
{
	s->cancel = o ? o->cancel : NULL;
	if (o) {
		s->log = o->log;
		s->max_entries = o->max_entries;
	}
}

struct sb_shadow *
sb_shadow_new(struct sb_remote *remote, const struct sb_sync_opts *o, struct sb_error *err)
{
	struct sb_shadow *s = calloc(1, sizeof *s);

	if (!s) {
		sb_fail(err, SB_E_NOMEM, "shadow: out of memory");
		return NULL;
	}
	s->remote = remote;
	s->dirfd = -1;
	sb_shadow_renew(s, o);
	s->state_dir = o->state_dir ? strdup(o->state_dir) : sb_replica_state_dir(err);
	if (!s->state_dir) {
		sb_shadow_free(s);
		return NULL;
	}
	return s;
}

static bool
ignored(const char *path, bool dir, void *arg)
{
	struct sb_shadow *s = arg;

	return sb_stage_holds(path) || strcmp(path, ID_NAME) == 0 ||
		sb_rules_excluded(s->rules, path, dir);
}

static struct sb_agentless
far_tree(struct sb_shadow *s)
{
	return (struct sb_agentless){ .remote = s->remote,
		.root = s->root,
		.ignored = ignored,
		.ignored_arg = s,
		.cancel = s->cancel,
		.deadline = SB_NEVER,
		.max_entries = s->max_entries,
		.log = s->log };
}

/* The folder of the pair, for us alone. */
static int
enter(struct sb_shadow *s, const struct sb_begin *b, struct sb_error *err)
{
	sb_autofree char *dir = NULL;
	char hex[33];

	leave(s);
	s->flags = b->flags;
	memcpy(s->identity, b->identity, sizeof s->identity);
	dir = sb_str_printf("pairs/%s-shadow", sb_str_hex(b->pair, 16, hex));
	s->tree = dir ? sb_str_printf("%s/%s/tree", s->state_dir, dir) : NULL;
	s->record = dir ? sb_str_printf("%s/%s/record", s->state_dir, dir) : NULL;
	s->root = strdup(*b->root ? b->root : ".");
	if (!s->tree || !s->record || !s->root)
		return sb_fail(err, SB_E_NOMEM, "shadow: out of memory");
	s->dirfd = sb_owndir_open(s->state_dir, dir, true, err);
	if (s->dirfd < 0)
		return s->dirfd;
	if (flock(s->dirfd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK)
		return sb_fail(err, SB_E_LOCKED,
			"another sync works with %s: wait for it or stop it", s->root);
	return 0;
}

/* The shadow and what is known about it are worth nothing: begin anew. */
static int
forget(struct sb_shadow *s, struct sb_error *err)
{
	int r;

	(void)unlinkat(s->dirfd, "record", 0);
	r = sb_path_remove_tree(s->dirfd, "tree", err);
	if (r == 0)
		(void)unlinkat(s->dirfd, "dirty", 0);
	return r;
}

/* A few words from a small script there; `out` gets the answer line. */
static int
ask(struct sb_shadow *s, const char *script, const char *arg, char *out, size_t size,
	struct sb_error *err)
{
	struct sb_marker m = { .name = sb_remote_name(s->remote),
		.cancel = s->cancel,
		.deadline = SB_NEVER };
	sb_auto(sb_buf) struct sb_buf command;
	struct sb_error why = { 0 };
	int r;

	sb_buf_init(&command, 64u << 10);
	r = sb_marker_init(&m, err);
	if (r < 0)
		return r;
	sb_buf_addf(&command, "exec sh -c '%s' sbsync %s ", script, m.nonce);
	sb_quote_argument(&command, s->root);
	sb_buf_addf(&command, " %s", arg);
	r = sb_buf_check(&command, "path", err);
	if (r < 0)
		return r;
	m.t = sb_remote_exec(s->remote, (char *)command.data, &why);
	r = m.t ? sb_marker_next(&m, &why) : why.code;
	sb_transport_free(m.t);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	(void)snprintf(out, size, "%.*s", (int)(size - 1), m.line);
	return 0;
}

static int
check_identity(struct sb_shadow *s, struct sb_error *err)
{
	static const char script[] = "n=$1; cd \"$2\" 2>/dev/null || { printf "
				     "\"\\nsbsync:%s:gone\\n\" \"$n\"; exit 0; }; "
				     "i=none; [ -f " ID_NAME " ] && read i <" ID_NAME
				     "; printf \"\\nsbsync:%s:%s\\n\" \"$n\" \"$i\"";
	char line[64], hex[ID_HEX + 1];
	int r;

	if (!(s->flags & SB_BEGIN_SESSION) || (s->flags & SB_BEGIN_CLAIM))
		return 0;
	r = ask(s, script, "-", line, sizeof line, err);
	if (r < 0)
		return r;
	if (strcmp(line, sb_str_hex(s->identity, 16, hex)) == 0)
		return 0;
	return sb_fail(err, SB_E_IDENTITY,
		"%s: %s is not the sandbox this session was started with: it is %s; nothing was "
		"changed",
		sb_remote_name(s->remote), s->root,
		strcmp(line, "gone") == 0 ? "gone" : "another one, or was emptied");
}

static int
write_identity(struct sb_shadow *s, struct sb_error *err)
{
	static const char script[] = "n=$1; umask 077; if cd \"$2\" && echo \"$3\" >" ID_NAME
				     "; then a=done; else a=failed; fi; "
				     "printf \"\\nsbsync:%s:%s\\n\" \"$n\" $a";
	char line[64], hex[ID_HEX + 1];
	int r;

	if (!(s->flags & SB_BEGIN_CLAIM))
		return 0;
	r = ask(s, script, sb_str_hex(s->identity, 16, hex), line, sizeof line, err);
	if (r == 0 && strcmp(line, "done") != 0)
		r = sb_fail(err, SB_E_PEER, "%s: %s/%s cannot be written",
			sb_remote_name(s->remote), s->root, ID_NAME);
	return r;
}

const char *
sb_shadow_begin(struct sb_shadow *s, const struct sb_begin *b, const struct sb_rules *rules,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf enc = { 0 };
	struct sb_agentless_stats stats = { 0 };
	struct sb_error why = { 0 };
	struct sb_agentless a;
	int r = enter(s, b, &why);

	sb_buf_init(&enc, 16u << 20);
	if (r == 0)
		r = sb_rules_encode(rules, &enc, &why);
	if (r == 0) {
		s->rules = sb_rules_decode(enc.data, enc.len, &why);
		r = s->rules ? 0 : why.code;
	}
	if (r == 0)
		r = check_identity(s, &why);
	if (r == 0 && faccessat(s->dirfd, "dirty", F_OK, 0) == 0)
		r = forget(s, &why);
	if (r == 0) {
		a = far_tree(s);
		r = sb_agentless_fetch(&a, s->tree, s->record, &stats, &why);
		s->absent = r == SB_E_NOTFOUND;
		if (s->absent && (b->flags & SB_BEGIN_CREATE))
			r = forget(s, &why);
	}
	if (r == 0) {
		sb_log(&s->log, SB_LOG_INFO, "agentless",
			"%s: %llu files (%llu bytes) of %s brought here", sb_remote_name(s->remote),
			(unsigned long long)stats.files, (unsigned long long)stats.bytes, s->root);
		return s->tree;
	}
	if (err)
		*err = why;
	leave(s);
	return NULL;
}

int
sb_shadow_before(struct sb_shadow *s, struct sb_error *err)
{
	struct sb_agentless a = far_tree(s);
	sb_autoclose int fd = sb_path_open_root(s->tree, NULL);
	int r = 0;

	sb_agentless_list_free(&s->brought);
	if (fd >= 0)
		r = sb_agentless_list_local(&a, fd, &s->brought, err);
	return r < 0 ? r : sb_file_replace(s->dirfd, "dirty", "", 0, 0600, err);
}

int
sb_shadow_after(struct sb_shadow *s, struct sb_error *err)
{
	struct sb_agentless a = far_tree(s);
	struct sb_agentless_stats stats = { 0 };
	/* The brake was looked at when the sync was planned. */
	int r;

	a.brought = &s->brought;
	r = sb_agentless_push(&a, s->tree, s->record, !s->absent, INT64_MAX, &stats, err);
	if (r == 0)
		r = write_identity(s, err);
	if (r < 0)
		return r;
	s->absent = false;
	sb_log(&s->log, SB_LOG_INFO, "agentless",
		"%s: %llu files (%llu bytes) taken to %s, %llu removed", sb_remote_name(s->remote),
		(unsigned long long)stats.files, (unsigned long long)stats.bytes, s->root,
		(unsigned long long)stats.deleted);
	return unlinkat(s->dirfd, "dirty", 0) < 0 ? sb_fail_errno(err, "record the sync") : 0;
}
