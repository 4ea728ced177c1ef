/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/recall.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/stat.h>

#define SLOTS 6 /* a side of a session has three */

struct recall_slot {
	struct sb_recall_tag tag;
	struct sb_manifest *m; /* NULL: free */
	uint64_t given;
};

struct sb_recall {
	pthread_mutex_t mu; /* guards what follows */
	struct recall_slot slots[SLOTS];
	uint64_t count;
};

struct sb_recall *
sb_recall_new(void)
{
	struct sb_recall *c = calloc(1, sizeof *c);

	if (c)
		(void)pthread_mutex_init(&c->mu, NULL);
	return c;
}

void
sb_recall_free(struct sb_recall *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < SLOTS; i++)
		sb_manifest_free(c->slots[i].m);
	(void)pthread_mutex_destroy(&c->mu);
	free(c);
}

static bool
same_file(const struct sb_recall_tag *a, const struct sb_recall_tag *b)
{
	return a->set && b->set && a->dev == b->dev && a->ino == b->ino && a->size == b->size &&
		a->mtime == b->mtime && a->ctime == b->ctime;
}

static struct sb_recall_tag
look(int dirfd, const char *name)
{
	struct sb_recall_tag t = { 0 };
	struct stat st;

	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode))
		return t;
	t.dev = st.st_dev;
	t.ino = st.st_ino;
	t.size = st.st_size;
	t.mtime = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
	t.ctime = (int64_t)st.st_ctim.tv_sec * 1000000000 + st.st_ctim.tv_nsec;
	t.set = true;
	return t;
}

static struct sb_manifest *
take(struct sb_recall *c, const struct sb_recall_tag *tag)
{
	struct sb_manifest *m = NULL;

	pthread_mutex_lock(&c->mu);
	for (size_t i = 0; i < SLOTS && !m; i++)
		if (c->slots[i].m && same_file(&c->slots[i].tag, tag))
			m = sb_steal(&c->slots[i].m);
	pthread_mutex_unlock(&c->mu);
	return m;
}

struct sb_manifest *
sb_recall_load(struct sb_recall *c, int dirfd, const char *name, struct sb_recall_tag *tag,
	struct sb_error *err)
{
	struct sb_recall_tag before = { 0 }, after;
	struct sb_manifest *m;

	*tag = (struct sb_recall_tag){ 0 };
	if (!c)
		return sb_manifest_load(dirfd, name, err);
	before = look(dirfd, name);
	m = take(c, &before);
	if (m) {
		*tag = before;
		return m;
	}
	m = sb_manifest_load(dirfd, name, err);
	after = look(dirfd, name);
	/* Replaced while it was read: nobody knows which of the two this is. */
	if (m && same_file(&before, &after))
		*tag = before;
	return m;
}

void
sb_recall_give(struct sb_recall *c, struct sb_recall_tag *tag, struct sb_manifest *m)
{
	struct recall_slot *to;
	struct sb_manifest *old;

	if (!c || !m || !tag->set || m->count > SB_RECALL_ENTRIES_MAX) {
		sb_manifest_free(m);
		*tag = (struct sb_recall_tag){ 0 };
		return;
	}
	pthread_mutex_lock(&c->mu);
	to = &c->slots[0];
	for (size_t i = 1; i < SLOTS && to->m; i++)
		if (!c->slots[i].m || c->slots[i].given < to->given)
			to = &c->slots[i];
	old = to->m;
	*to = (struct recall_slot){ .tag = *tag, .m = m, .given = ++c->count };
	pthread_mutex_unlock(&c->mu);
	sb_manifest_free(old);
	*tag = (struct sb_recall_tag){ 0 };
}
