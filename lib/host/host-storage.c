/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/host-storage.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/str.h>
#include <host/host-priv.h>

/* In the state directory: the name of the storage that the sessions are on. */
#define NOTE "storage"
#define NOTE_MAX 64

/* What was noted; AUTO: nothing. */
static int
read_note(const char *path, enum sb_host_storage *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct sb_error why = { 0 };
	int r = sb_file_read(AT_FDCWD, path, NOTE_MAX, &text, &why);

	*out = SB_HOST_STORAGE_AUTO;
	if (r == SB_E_NOTFOUND)
		return 0;
	if (r < 0)
		return sb_fail(err, r, "%s", why.msg);
	text.data[strcspn((char *)text.data, "\n")] = '\0';
	return sb_host_storage_from((char *)text.data, out) ?
		0 :
		sb_fail(err, SB_E_CORRUPT, "%s names no storage", path);
}

/* Sessions on one storage are not looked for on another. */
static int
stay(struct sb_host *h, enum sb_host_storage was, bool *stays, struct sb_error *err)
{
	int64_t n = 0;
	int r = sb_hostdb_session_count(h->db, &n, err);

	*stays = false;
	if (r < 0 || n == 0 || was == SB_HOST_STORAGE_AUTO || was == h->o.storage)
		return r;
	if (h->o.storage != SB_HOST_STORAGE_AUTO)
		return sb_fail(err, SB_E_INVAL,
			"this host has %lld sessions on storage %s: start it with that, or destroy "
			"them before it goes on with %s",
			(long long)n, sb_host_storage_name(was),
			sb_host_storage_name(h->o.storage));
	*stays = true;
	return 0;
}

/* AUTO for a host with sessions; only the look of sb_storage_open finds the names of datasets. */
static int
open_again(struct sb_host *h, enum sb_host_storage was, struct sb_error *err)
{
	if (was != SB_HOST_ZFS) {
		if (!h->o.sessions_root_dir) {
			sb_strlist_addf(&h->strings, "%s/sessions", h->o.state_dir);
			if (sb_strlist_check(&h->strings, err) < 0)
				return SB_E_NOMEM;
			h->o.sessions_root_dir = h->strings.v[h->strings.n - 1];
		}
		h->o.storage = was;
	}
	h->st = sb_storage_open(&h->o, &h->strings, h->ops_fd, h->storage_why, err);
	if (h->st && h->o.storage != was)
		return sb_fail(err, SB_E_INVAL,
			"this host has sessions on storage %s, but is told of no pool",
			sb_host_storage_name(was));
	(void)snprintf(h->storage_why, sizeof h->storage_why, "this host's sessions are on it");
	return 0;
}

int
sb_host_storage_open(struct sb_host *h, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/" NOTE, h->o.state_dir);
	sb_autofree char *text = NULL;
	enum sb_host_storage was;
	bool stays;
	int r = path ? read_note(path, &was, err) : sb_fail(err, SB_E_NOMEM, "storage");

	if (r == 0)
		r = stay(h, was, &stays, err);
	if (r == 0 && stays)
		r = open_again(h, was, err);
	else if (r == 0)
		h->st = sb_storage_open(&h->o, &h->strings, h->ops_fd, h->storage_why, err);
	if (r == 0 && !h->st)
		r = err && err->code ? err->code : SB_E_STORAGE;
	if (r < 0)
		return r;
	text = sb_str_printf("%s\n", sb_host_storage_name(h->o.storage));
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "storage");
	return was == h->o.storage ? 0 :
				     sb_file_replace(AT_FDCWD, path, text, strlen(text), 0600, err);
}
