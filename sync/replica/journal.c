/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/journal.h>

#include <stdlib.h>
#include <string.h>

#include <base/cursor.h>
#include <base/path.h>
#include <sync/tree/stage-names.h>

/*
 * The journal of a commit:
 *   8 bytes "SBJRNL1\n", varint number of operations, then per operation
 *     u8 kind, u8 type, u16 mode, varint stage, svarint mtime, varint new inode,
 *     path, from (length-prefixed, may be empty),
 *     u8 old type, and when that is not 0:
 *       u8 racy, varint inode, varint size, svarint mtime, svarint ctime, 16 bytes digest
 *   16 bytes XXH3-128 of all before.
 */
static const char magic[8] = "SBJRNL1\n";

void
sb_journal_free(struct sb_journal *o)
{
	for (size_t i = 0; i < o->n; i++) {
		free(o->v[i].path);
		free(o->v[i].from);
	}
	free(o->v);
	memset(o, 0, sizeof *o);
}

struct sb_op *
sb_journal_add(struct sb_journal *o, enum sb_op_kind kind, const char *path, const char *from,
	struct sb_error *err)
{
	struct sb_op *op;

	if (o->n == o->cap) {
		size_t cap = o->cap ? o->cap * 2 : 256;
		struct sb_op *v = realloc(o->v, cap * sizeof *v);

		if (!v)
			goto oom;
		o->v = v;
		o->cap = cap;
	}
	op = &o->v[o->n];
	memset(op, 0, sizeof *op);
	op->kind = (uint8_t)kind;
	op->path = strdup(path);
	op->from = from ? strdup(from) : NULL;
	if (!op->path || (from && !op->from)) {
		free(op->path);
		free(op->from);
		goto oom;
	}
	o->n++;
	return op;
oom:
	sb_fail(err, SB_E_NOMEM, "list of operations: out of memory");
	return NULL;
}

void
sb_journal_seen_from(struct sb_journal_seen *o, const struct sb_entry *e)
{
	*o = (struct sb_journal_seen){
		.type = e->type,
		.racy = (e->flags & SB_ENTRY_RACY) || (e->type == SB_ENTRY_FILE && e->link),
		.ino = e->ino,
		.size = e->type == SB_ENTRY_DIR ? 0 : e->size,
		.mtime = e->mtime,
		/* Each change of one name of a hard-linked file moves the ctime of all. */
		.ctime = e->link ? 0 : e->ctime,
		.digest = e->digest,
	};
}

static void
encode_op(const struct sb_op *op, struct sb_buf *b)
{
	const char *from = op->from ? op->from : "";

	sb_buf_add_u8(b, op->kind);
	sb_buf_add_u8(b, op->type);
	sb_buf_add_u16(b, op->mode);
	sb_buf_add_varint(b, op->stage);
	sb_buf_add_svarint(b, op->mtime);
	sb_buf_add_varint(b, op->new_ino);
	sb_buf_add_bytes(b, op->path, strlen(op->path));
	sb_buf_add_bytes(b, from, strlen(from));
	sb_buf_add_u8(b, op->old.type);
	if (!op->old.type)
		return;
	sb_buf_add_u8(b, op->old.racy);
	sb_buf_add_varint(b, op->old.ino);
	sb_buf_add_varint(b, op->old.size);
	sb_buf_add_svarint(b, op->old.mtime);
	sb_buf_add_svarint(b, op->old.ctime);
	sb_buf_add(b, op->old.digest.b, sizeof op->old.digest.b);
}

int
sb_journal_encode(const struct sb_journal *ops, struct sb_buf *out, struct sb_error *err)
{
	struct sb_digest d;

	sb_buf_add(out, magic, sizeof magic);
	sb_buf_add_varint(out, ops->n);
	for (size_t i = 0; i < ops->n; i++)
		encode_op(&ops->v[i], out);
	if (!out->failed) {
		d = sb_digest_of(out->data, out->len);
		sb_buf_add(out, d.b, sizeof d.b);
	}
	return sb_buf_check(out, "journal", err);
}

static char *
path_text(struct sb_cursor *c, bool may_be_empty)
{
	size_t n;
	const uint8_t *p = sb_cursor_bytes(c, 1u << 20, &n);
	char *s;

	if (!p || (n == 0 && !may_be_empty) || sb_path_check((const char *)p, n, NULL) < 0) {
		c->bad = true;
		return NULL;
	}
	s = malloc(n + 1);
	if (!s) {
		c->bad = true;
		return NULL;
	}
	memcpy(s, p, n);
	s[n] = 0;
	return s;
}

/*
 * The digest says that nothing was lost, not that we wrote it: a tree from elsewhere may bring a
 * journal along.
 */
static bool
is_possible(const struct sb_op *o, const char *path, const char *from)
{
	bool two = o->kind == SB_OP_MOVE || o->kind == SB_OP_LINK,
	     may = two || o->kind == SB_OP_FILE;

	return o->kind >= SB_OP_TREE && o->kind <= SB_OP_DIRMETA && o->type <= SB_ENTRY_LINK &&
		o->old.type <= SB_ENTRY_LINK && o->mode <= 07777 && (*from ? may : !two) &&
		!sb_stage_holds(path) && !sb_stage_holds(from);
}

static int
decode_op(struct sb_cursor *c, struct sb_journal *out, struct sb_error *err)
{
	struct sb_op o = { 0 };
	sb_autofree char *path = NULL;
	sb_autofree char *from = NULL;
	struct sb_op *op;

	o.kind = sb_cursor_u8(c);
	o.type = sb_cursor_u8(c);
	o.mode = sb_cursor_u16(c);
	o.stage = (uint32_t)sb_cursor_varint(c);
	o.mtime = sb_cursor_svarint(c);
	o.new_ino = sb_cursor_varint(c);
	path = path_text(c, o.kind == SB_OP_DIRMETA);
	from = path_text(c, true);
	o.old.type = sb_cursor_u8(c);
	if (o.old.type) {
		const uint8_t *d;

		o.old.racy = sb_cursor_u8(c);
		o.old.ino = sb_cursor_varint(c);
		o.old.size = sb_cursor_varint(c);
		o.old.mtime = sb_cursor_svarint(c);
		o.old.ctime = sb_cursor_svarint(c);
		d = sb_cursor_take(c, sizeof o.old.digest.b);
		if (d)
			memcpy(o.old.digest.b, d, sizeof o.old.digest.b);
	}
	if (c->bad || !is_possible(&o, path, from))
		return sb_fail(err, SB_E_CORRUPT, "the journal is damaged");
	op = sb_journal_add(out, o.kind, path, *from ? from : NULL, err);
	if (!op)
		return SB_E_NOMEM;
	o.path = op->path;
	o.from = op->from;
	*op = o;
	return 0;
}

int
sb_journal_decode(const void *data, size_t len, struct sb_journal *out, struct sb_error *err)
{
	struct sb_cursor c;
	struct sb_digest d;
	uint64_t n;
	int r = 0;

	memset(out, 0, sizeof *out);
	if (len < sizeof magic + sizeof d.b || memcmp(data, magic, sizeof magic) != 0)
		return sb_fail(err, SB_E_CORRUPT, "this is not a journal");
	d = sb_digest_of(data, len - sizeof d.b);
	if (memcmp(d.b, (const uint8_t *)data + len - sizeof d.b, sizeof d.b) != 0)
		return sb_fail(err, SB_E_CORRUPT, "the journal is damaged");
	sb_cursor_init(&c, (const uint8_t *)data + sizeof magic, len - sizeof magic - sizeof d.b);
	n = sb_cursor_varint(&c);
	for (uint64_t i = 0; i < n && r == 0; i++)
		r = decode_op(&c, out, err);
	if (r == 0 && (c.bad || sb_cursor_left(&c)))
		r = sb_fail(err, SB_E_CORRUPT, "the journal is damaged");
	if (r < 0)
		sb_journal_free(out);
	return r;
}
