/* SPDX-License-Identifier: MIT */
/* The sandboxes that a keeper has on record. */
#include "config.h"

#include <session/session-priv.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>

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
