/* SPDX-License-Identifier: MIT */
/* The guest's watches: what changes in a directory, or in all beneath it, as inotify tells. */
#include "config.h"

#include "guest.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include <base/cleanup.h>

#define WATCHES_MAX 256
#define DIRS_MAX 8192 /* of all watches together */
#define MASK \
	(IN_CREATE | IN_MODIFY | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ATTRIB | IN_ONLYDIR)

struct watch {
	struct watch *next;
	struct guest_link *link;
	uint32_t id;
	uint64_t flags;
	char *root;
};

/* A directory of a watch; several may share one of inotify's. */
struct dir {
	struct dir *next;
	struct watch *watch;
	int wd;
	char *below; /* its path beneath the root, "" for itself */
};

static struct watch *watches;
static struct dir *dirs;
static size_t n_watches, n_dirs;
static int notify = -1;

int
guest_watch_fd(void)
{
	return notify;
}

static void
say(const struct watch *w, enum sb_guest_change what, const char *name)
{
	struct sb_buf b, entry;
	char *full = NULL;

	sb_buf_init(&b, SB_GUEST_FRAME_MAX - 16);
	sb_buf_init(&entry, SB_GUEST_FRAME_MAX - 8192);
	sb_buf_add_varint(&b, what);
	sb_buf_add_bytes(&b, name, strlen(name));
	if ((w->flags & SB_GUEST_ENTRIES) && asprintf(&full, "%s/%s", w->root, name) > 0 &&
		guest_file_entry(full, name, &entry) == 0) {
		sb_buf_add_varint(&b, 1);
		sb_buf_add(&b, entry.data, entry.len);
	} else {
		sb_buf_add_varint(&b, 0);
	}
	guest_send_buf(w->link, SB_GUEST_EVENT, w->id, &b);
	free(full);
	sb_buf_free(&b);
	sb_buf_free(&entry);
}

static int add_dir(struct watch *w, const char *below, bool tell);

/* The directories in this one; with `tell`, what is there already is told as new. */
static void
add_beneath(struct watch *w, const char *path, const char *below, bool tell)
{
	sb_autoclosedir DIR *d = opendir(path);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		char *name = NULL;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
			asprintf(&name, "%s%s%s", below, *below ? "/" : "", e->d_name) < 0)
			continue;
		if (tell)
			say(w, SB_GUEST_CREATED, name);
		if (e->d_type == DT_DIR && (w->flags & SB_GUEST_DEEP))
			(void)add_dir(w, name, tell);
		free(name);
	}
}

/* 0, or an errno. */
static int
add_dir(struct watch *w, const char *below, bool tell)
{
	struct dir *d = calloc(1, sizeof *d);
	char *path = NULL;
	int sys = 0;

	if (!d || asprintf(&path, "%s%s%s", w->root, *below ? "/" : "", below) < 0)
		sys = ENOMEM;
	else if (n_dirs >= DIRS_MAX)
		sys = ENOSPC;
	else if ((d->wd = inotify_add_watch(notify, path, MASK)) < 0)
		sys = errno;
	else if (!(d->below = strdup(below)))
		sys = ENOMEM;
	if (sys) {
		free(d);
		free(path);
		return sys;
	}
	d->watch = w;
	d->next = dirs;
	dirs = d;
	n_dirs++;
	if ((w->flags & SB_GUEST_DEEP) || tell)
		add_beneath(w, path, below, tell);
	free(path);
	return 0;
}

static void
drop_dirs(const struct watch *w, int wd)
{
	for (struct dir **p = &dirs; *p;) {
		struct dir *d = *p;
		bool shared = false;

		if ((w && d->watch != w) || (!w && d->wd != wd)) {
			p = &d->next;
			continue;
		}
		*p = d->next;
		for (const struct dir *o = dirs; o; o = o->next)
			shared |= o->wd == d->wd;
		if (w && !shared)
			(void)inotify_rm_watch(notify, d->wd);
		free(d->below);
		free(d);
		n_dirs--;
	}
}

static void
watch_free(struct watch *w)
{
	drop_dirs(w, -1);
	free(w->root);
	free(w);
	n_watches--;
}

void
guest_watch_ask(struct guest_ask *a)
{
	struct watch *w = calloc(1, sizeof *w);
	int sys = 0;

	if (notify < 0)
		notify = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
	if (!w || notify < 0 || n_watches >= WATCHES_MAX) {
		guest_fail(a, !w ? ENOMEM : notify < 0 ? errno : ENOSPC);
		free(w);
		return;
	}
	n_watches++;
	w->link = a->link;
	w->id = a->id;
	w->root = guest_text(&a->c);
	w->flags = sb_cursor_varint(&a->c);
	sys = !w->root || a->c.bad ? EINVAL : add_dir(w, "", false);
	if (sys) {
		guest_fail(a, sys);
		watch_free(w);
		return;
	}
	w->next = watches;
	watches = w;
	guest_send(a->link, SB_GUEST_DONE, a->id, NULL, 0);
}

void
guest_watch_leave(struct guest_link *l, uint32_t id)
{
	for (struct watch **p = &watches; *p;) {
		struct watch *w = *p;

		if (w->link == l && (id == 0 || w->id == id)) {
			*p = w->next;
			watch_free(w);
		} else {
			p = &w->next;
		}
	}
}

static enum sb_guest_change
change_of(uint32_t mask)
{
	return mask & (IN_CREATE | IN_MOVED_TO) ? SB_GUEST_CREATED :
		mask & IN_MODIFY                ? SB_GUEST_WROTE :
		mask & IN_DELETE                ? SB_GUEST_REMOVED :
		mask & IN_MOVED_FROM            ? SB_GUEST_RENAMED :
						  SB_GUEST_CHMODDED;
}

/* The workspace was exchanged beneath it: it is watched again where it is now. */
static void
renew(int wd)
{
	for (struct dir *d = dirs; d; d = d->next)
		if (d->wd == wd && *d->below == '\0') {
			struct watch *w = d->watch;

			drop_dirs(w, -1);
			(void)add_dir(w, "", false);
			renew(wd);
			return;
		}
	drop_dirs(NULL, wd);
}

static void
take(const struct inotify_event *e)
{
	if (e->mask & IN_UNMOUNT) {
		renew(e->wd);
		return;
	}
	if (e->mask & IN_IGNORED) {
		drop_dirs(NULL, e->wd);
		return;
	}
	if (e->len == 0)
		return;
	for (struct dir *d = dirs; d; d = d->next) {
		char *name;

		if (d->wd != e->wd ||
			asprintf(&name, "%s%s%s", d->below, *d->below ? "/" : "", e->name) < 0)
			continue;
		say(d->watch, change_of(e->mask), name);
		/* New ones are put in front, behind us. */
		if ((e->mask & IN_ISDIR) && (e->mask & (IN_CREATE | IN_MOVED_TO)) &&
			(d->watch->flags & SB_GUEST_DEEP))
			(void)add_dir(d->watch, name, true);
		free(name);
	}
}

void
guest_watch_ready(void)
{
	static char events[65536] __attribute__((aligned(__alignof__(struct inotify_event))));
	ssize_t n = read(notify, events, sizeof events);

	for (ssize_t at = 0; at < n;) {
		const struct inotify_event *e = (const struct inotify_event *)(events + at);

		take(e);
		at += (ssize_t)(sizeof *e + e->len);
	}
}
