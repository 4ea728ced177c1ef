/* SPDX-License-Identifier: MIT */
/* Writes a manifest in its compact form. */
#include "config.h"

#include <sync/tree/manifest.h>

#include <stdlib.h>
#include <string.h>

#include <sync/tree/manifest-codec-priv.h>
#include <sync/tree/manifest-priv.h>

struct encoder {
	const struct sb_manifest *m;
	struct sb_entry **dirs;
	size_t n_dirs;
	unsigned form;
	struct sb_buf *out;
	uint32_t *groups; /* FORM_SUBTREE: 1 + number in this form by number in the manifest, 0: not
			     in it */
	uint32_t *used;   /* the numbers in the manifest in the order of this form */
	uint32_t n_groups;
	/* Of the column being written: the entry and the value before. */
	const struct sb_entry *before;
	uint64_t last;
	uint16_t modes[KIND_TYPE + 1];
};

typedef void (*entry_fn)(struct encoder *c, const struct sb_entry *e);

static void
add_name(struct encoder *c, const struct sb_entry *e)
{
	size_t same = 0, len = strlen(e->name);

	if (c->before) {
		while (e->name[same] && e->name[same] == c->before->name[same])
			same++;
	}
	sb_buf_add_varint(c->out, same);
	sb_buf_add_bytes(c->out, e->name + same, len - same);
}

/* Remembers the mode by type: in the same way for KINDS and MODES. */
static bool
same_mode(struct encoder *c, const struct sb_entry *e)
{
	bool same = e->type != SB_ENTRY_LINK && c->modes[e->type] == e->mode;

	c->modes[e->type] = e->mode;
	return same;
}

static void
add_kind(struct encoder *c, const struct sb_entry *e)
{
	unsigned kind = e->type;

	if (e->link)
		kind |= KIND_LINKED;
	if (e->type == SB_ENTRY_FILE && (e->flags & SB_ENTRY_UNHASHED))
		kind |= KIND_UNHASHED;
	if ((c->form & FORM_STAT) && (e->flags & SB_ENTRY_RACY))
		kind |= KIND_RACY;
	if (same_mode(c, e))
		kind |= KIND_SAME_MODE;
	sb_buf_add_u8(c->out, (uint8_t)kind);
}

static void
add_mode(struct encoder *c, const struct sb_entry *e)
{
	if (!same_mode(c, e) && e->type != SB_ENTRY_LINK)
		sb_buf_add_varint(c->out, e->mode);
}

static void
add_mtime(struct encoder *c, const struct sb_entry *e)
{
	sb_buf_add_svarint(c->out, (int64_t)((uint64_t)e->mtime - c->last));
	c->last = (uint64_t)e->mtime;
}

static void
add_size(struct encoder *c, const struct sb_entry *e)
{
	if (e->type == SB_ENTRY_FILE)
		sb_buf_add_varint(c->out, e->size);
}

static void
add_digest(struct encoder *c, const struct sb_entry *e)
{
	if (e->type == SB_ENTRY_FILE && !(e->flags & SB_ENTRY_UNHASHED))
		sb_buf_add(c->out, e->digest.b, sizeof e->digest.b);
}

static void
add_target(struct encoder *c, const struct sb_entry *e)
{
	if (e->type == SB_ENTRY_LINK)
		sb_buf_add_bytes(c->out, sb_entry_target(e), e->size);
}

static void
add_link(struct encoder *c, const struct sb_entry *e)
{
	if (e->link)
		sb_buf_add_varint(c->out, (c->groups ? c->groups[e->link - 1] : e->link) - 1);
}

static void
add_inode(struct encoder *c, const struct sb_entry *e)
{
	sb_buf_add_svarint(c->out, (int64_t)(e->ino - c->last));
	c->last = e->ino;
}

static void
add_ctime(struct encoder *c, const struct sb_entry *e)
{
	sb_buf_add_svarint(c->out, (int64_t)((uint64_t)e->ctime - (uint64_t)e->mtime));
}

static void
each_entry(struct encoder *c, entry_fn fn)
{
	c->last = 0;
	memset(c->modes, 0, sizeof c->modes);
	for (size_t i = 0; i < c->n_dirs; i++) {
		const struct sb_dir *d = c->dirs[i]->dir;

		c->before = NULL;
		for (uint32_t k = 0; k < d->n; k++) {
			fn(c, &d->entries[k]);
			c->before = &d->entries[k];
		}
	}
}

static void
add_counts(struct encoder *c)
{
	for (size_t i = 0; i < c->n_dirs; i++)
		sb_buf_add_varint(c->out, c->dirs[i]->dir->n);
}

static void
add_leaders(struct encoder *c)
{
	if (!(c->form & FORM_SUBTREE))
		return;
	for (uint32_t i = 0; i < c->n_groups; i++) {
		const char *path = c->m->leaders[c->used[i]];

		sb_buf_add_bytes(c->out, path, strlen(path));
	}
}

static void
add_devs(struct encoder *c)
{
	uint64_t last = 0;

	for (size_t i = 0; i < c->n_dirs; i++) {
		sb_buf_add_varint(c->out, c->dirs[i]->dir->dev ^ last);
		last = c->dirs[i]->dir->dev;
	}
}

/* One column behind its length. */
static void
add_column(struct encoder *c, enum sb_manifest_column col)
{
	static const entry_fn by_entry[COLUMNS] = {
		[COL_NAMES] = add_name,
		[COL_KINDS] = add_kind,
		[COL_MODES] = add_mode,
		[COL_MTIMES] = add_mtime,
		[COL_SIZES] = add_size,
		[COL_DIGESTS] = add_digest,
		[COL_TARGETS] = add_target,
		[COL_LINKS] = add_link,
		[COL_INODES] = add_inode,
		[COL_CTIMES] = add_ctime,
	};
	size_t start = c->out->len;

	sb_buf_add_u64(c->out, 0);
	if (by_entry[col])
		each_entry(c, by_entry[col]);
	else if (col == COL_COUNTS)
		add_counts(c);
	else if (col == COL_LEADERS)
		add_leaders(c);
	else
		add_devs(c);
	if (c->out->failed)
		return;
	for (unsigned i = 0; i < 8; i++)
		c->out->data[start + i] = (uint8_t)((uint64_t)(c->out->len - start - 8) >> (8 * i));
}

/* Numbers the hard-link groups that have a member in the subtree. */
static int
number_groups(struct encoder *c)
{
	c->groups = calloc((size_t)c->m->n_leaders + 1, sizeof *c->groups);
	c->used = calloc((size_t)c->m->n_leaders + 1, sizeof *c->used);
	if (!c->groups || !c->used)
		return -1;
	for (size_t i = 0; i < c->n_dirs; i++) {
		const struct sb_dir *d = c->dirs[i]->dir;

		for (uint32_t k = 0; k < d->n; k++) {
			uint32_t g = d->entries[k].link;

			if (!g || c->groups[g - 1])
				continue;
			c->used[c->n_groups++] = g - 1;
			c->groups[g - 1] = c->n_groups;
		}
	}
	return 0;
}

static void
add_header(struct encoder *c, const struct sb_entry *root, uint64_t entries)
{
	sb_buf_add(c->out, SB_MANIFEST_MAGIC, 4);
	sb_buf_add_u8(c->out, SB_MANIFEST_VERSION);
	sb_buf_add_u8(c->out, (uint8_t)c->form);
	sb_buf_add_varint(c->out, entries);
	sb_buf_add_varint(c->out, c->n_dirs);
	sb_buf_add_varint(c->out, c->n_groups);
	sb_buf_add_varint(c->out, root->mode);
	sb_buf_add_svarint(c->out, root->mtime);
	if (c->form & FORM_STAT) {
		sb_buf_add_varint(c->out, root->ino);
		sb_buf_add_svarint(c->out,
			(int64_t)((uint64_t)root->ctime - (uint64_t)root->mtime));
	}
}

static int
encode(const struct sb_manifest *m, const struct sb_entry *root, unsigned form, struct sb_buf *out,
	struct sb_error *err)
{
	struct encoder c = { .m = m, .form = form, .out = out, .n_groups = m->n_leaders };
	size_t start = out->len;
	uint64_t entries = 0;

	c.dirs = sb_manifest_dirs(root, &c.n_dirs, err);
	if (!c.dirs)
		return SB_E_NOMEM;
	if (form & FORM_SUBTREE) {
		c.n_groups = 0;
		if (number_groups(&c) < 0) {
			out->failed = SB_E_NOMEM;
			goto out;
		}
	}
	for (size_t i = 0; i < c.n_dirs; i++)
		entries += c.dirs[i]->dir->n;
	add_header(&c, root, entries);
	for (unsigned col = 0; col < COLUMNS; col++) {
		if (col < COL_INODES || (form & FORM_STAT))
			add_column(&c, col);
	}
	if (!out->failed)
		sb_buf_add_u64(out, XXH3_64bits(out->data + start, out->len - start));
out:
	free(c.dirs);
	free(c.groups);
	free(c.used);
	return sb_buf_check(out, "encoded manifest", err);
}

int
sb_manifest_encode(const struct sb_manifest *m, bool with_stat, struct sb_buf *out,
	struct sb_error *err)
{
	return encode(m, &m->root, with_stat ? FORM_STAT : 0, out, err);
}

int
sb_manifest_encode_dir(const struct sb_manifest *m, const struct sb_dir *d, const char *prefix,
	struct sb_buf *out, struct sb_error *err)
{
	const struct sb_entry *e = sb_manifest_find(m, prefix);

	if (!e || e->type != SB_ENTRY_DIR || e->dir != d)
		return sb_fail(err, SB_E_INVAL,
			"subtree of a manifest: not the path of this directory");
	return encode(m, e, FORM_SUBTREE, out, err);
}
