/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/remote/exchange.h>

#include <stdlib.h>
#include <string.h>

#include <base/memory.h>
#include <base/str.h>
#include <base/strlist.h>
#include <base/work.h>
#include <sync/remote/shadow.h>
#include <sync/tree/manifest.h>
#include <sync/tree/diff.h>

void
sb_exchange_free(struct sb_exchange *r)
{
	sb_manifest_free(r->manifest);
	free(r->have);
	for (size_t i = 0; i < r->n_skipped; i++)
		free(r->skipped[i].path);
	free(r->skipped);
	memset(r, 0, sizeof *r);
}

static int
send_begin(struct sb_link *l, const struct sb_begin *begin, const struct sb_rules *rules,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 }, enc = { 0 };
	struct sb_begin at = *begin;
	struct sb_error own = { 0 };
	int r;

	if (l->shadow) {
		at.root = (char *)(uintptr_t)sb_shadow_begin(l->shadow, begin, rules,
			err ? err : &own);
		if (!at.root)
			return err ? err->code : own.code;
	}
	sb_buf_init(&b, 1u << 20);
	sb_buf_init(&enc, 16u << 20);
	sb_proto_begin_encode(&at, &b);
	r = sb_buf_check(&b, "BEGIN", err);
	if (r == 0)
		r = sb_rules_encode(rules, &enc, err);
	if (r == 0)
		r = sb_wire_send(l->w, SB_MSG_BEGIN, b.data, b.len, err);
	if (r == 0)
		r = sb_wire_send_blob(l->w, SB_MSG_RULES, enc.data, enc.len, err);
	return r < 0 ? r : sb_wire_flush(l->w, err);
}

int
sb_exchange_begin(struct sb_link *l, const struct sb_begin *begin, const struct sb_rules *rules,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r = send_begin(l, begin, rules, &why);

	if (!l->t && l->fall_back && (r == SB_E_UNSUPPORTED || r == SB_E_NOTFOUND)) {
		r = l->fall_back(l, &why);
		if (r == 0)
			r = send_begin(l, begin, rules, &why);
	}
	if (r < 0 && err)
		*err = why;
	return r;
}

/*
 * How much of a far tree is believed. An entry costs the far side a byte or less on the wire, and
 * here half a kilobyte once it is planned and staged. So its number must have some relation to the
 * tree that is here already, and to the memory there is; a tree that is here can always be synced.
 */
#define ENTRIES_ALWAYS (1u << 20)
#define ENTRIES_GROWTH 16
#define ENTRY_COST 1024u
#define ENTRY_BYTES 512u /* of an entry in a list on the wire, its name included */

static uint64_t
most_entries(const struct sb_exchange *x, uint64_t here)
{
	uint64_t most = here > UINT64_MAX / ENTRIES_GROWTH ? UINT64_MAX : here * ENTRIES_GROWTH;
	uint64_t memory = sb_memory_available() / ENTRY_COST;

	if (x->max_entries)
		return x->max_entries;
	if (most < ENTRIES_ALWAYS)
		most = ENTRIES_ALWAYS;
	if (most > memory)
		most = memory;
	if (most < here + here / 4 + 10000)
		most = here + here / 4 + 10000;
	return most;
}

static struct sb_manifest_limits
limits_of(const struct sb_exchange *x)
{
	struct sb_manifest_limits l = SB_MANIFEST_LIMITS_INIT;

	if (x->most < l.max_entries)
		l.max_entries = x->most;
	return l;
}

static int
too_many(const struct sb_exchange *x, uint64_t n, const char *what, struct sb_error *err)
{
	if (n <= x->most)
		return 0;
	return sb_fail(err, SB_E_LIMIT,
		"the far side lists %llu %s, more than the %llu that are believed beside a tree of "
		"%llu and with the memory there is; nothing was changed; if that is right: "
		"--max-entries %llu",
		(unsigned long long)n, what, (unsigned long long)x->most,
		(unsigned long long)x->here, (unsigned long long)n);
}

/* A list of entries as a blob; `x` says how many there may be. */
static int
blob(struct sb_link *l, const struct sb_exchange *x, uint8_t type, struct sb_buf *out,
	struct sb_error *err)
{
	size_t max = x->most < (1u << 30) / ENTRY_BYTES ? (size_t)x->most * ENTRY_BYTES : 1u << 30;
	const uint8_t *p;
	size_t len;
	int r = sb_wire_expect(l->w, type, &p, &len, err);

	return r < 0 ? r : sb_wire_recv_blob(l->w, type, p, len, max, out, err);
}

static int
proof(struct sb_link *l, struct sb_error *err)
{
	const uint8_t *p;
	size_t len;

	return sb_wire_expect(l->w, SB_MSG_PROOF, &p, &len, err);
}

/*
 * A list that comes as a blob: its count, of entries that take `least` bytes each, and a cursor
 * behind it. The caller frees `b`.
 */
static int
read_list(struct sb_link *l, const struct sb_exchange *x, uint8_t type, size_t least,
	struct sb_buf *b, struct sb_cursor *c, uint64_t *n, struct sb_error *err)
{
	int r;

	sb_buf_init(b, 0);
	r = blob(l, x, type, b, err);
	if (r < 0)
		return r;
	sb_cursor_init(c, b->data, b->len);
	*n = sb_cursor_varint(c);
	return *n > b->len / least + 1 ?
		sb_fail(err, SB_E_PROTO, "the far side sent a damaged list") :
		too_many(x, *n, type == SB_MSG_HAVE ? "leftovers" : "entries it cannot read", err);
}

/* All of the list was read, and nothing follows. */
static int
list_ended(const struct sb_cursor *c, struct sb_error *err)
{
	return c->bad || sb_cursor_left(c) ?
		sb_fail(err, SB_E_PROTO, "the far side sent a damaged list") :
		0;
}

static int
read_skipped(struct sb_link *l, struct sb_exchange *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_cursor c;
	uint64_t n;
	int r = read_list(l, out, SB_MSG_SKIPPED, 2, &b, &c, &n, err);

	if (r < 0)
		return r;
	out->skipped = calloc(n + 1, sizeof *out->skipped);
	if (!out->skipped)
		return sb_fail(err, SB_E_NOMEM, "list of skipped entries: out of memory");
	for (uint64_t i = 0; i < n; i++) {
		size_t len;
		const uint8_t *p = sb_cursor_bytes(&c, 1u << 20, &len);
		uint8_t reason = sb_cursor_u8(&c);

		r = sb_work_alive(err);
		if (r < 0)
			return r;
		if (c.bad || memchr(p, 0, len) || reason > SB_SKIP_NAME)
			return sb_fail(err, SB_E_PROTO, "the far side sent a damaged list");
		out->skipped[i].path = strndup((const char *)p, len);
		out->skipped[i].reason = reason;
		if (!out->skipped[i].path)
			return sb_fail(err, SB_E_NOMEM, "list of skipped entries: out of memory");
		out->n_skipped++;
	}
	return list_ended(&c, err);
}

static int
by_digest(const void *a, const void *b)
{
	return memcmp(((const struct sb_have *)a)->digest.b, ((const struct sb_have *)b)->digest.b,
		16);
}

static int
read_have(struct sb_link *l, struct sb_exchange *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_cursor c;
	uint64_t n;
	int r = read_list(l, out, SB_MSG_HAVE, 17, &b, &c, &n, err);

	if (r < 0)
		return r;
	out->have = calloc(n + 1, sizeof *out->have);
	if (!out->have)
		return sb_fail(err, SB_E_NOMEM, "list of leftovers: out of memory");
	for (uint64_t i = 0; i < n; i++) {
		const uint8_t *p = sb_cursor_take(&c, 16);

		if (p)
			memcpy(out->have[i].digest.b, p, 16);
		out->have[i].size = sb_cursor_varint(&c);
		r = sb_work_alive(err);
		if (r < 0)
			return r;
	}
	r = list_ended(&c, err);
	if (r < 0)
		return r;
	out->n_have = n;
	qsort(out->have, n, sizeof *out->have, by_digest);
	return 0;
}

static int
fetch_whole(struct sb_link *l, struct sb_exchange *out, struct sb_error *err)
{
	struct sb_manifest_limits limits = limits_of(out);
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 0);
	r = sb_wire_send(l->w, SB_MSG_GETTREE, NULL, 0, err);
	if (r == 0)
		r = sb_wire_flush(l->w, err);
	if (r == 0)
		r = blob(l, out, SB_MSG_MANIFEST, &b, err);
	if (r == 0)
		r = proof(l, err);
	if (r < 0)
		return r;
	sb_manifest_free(out->manifest);
	out->manifest = sb_manifest_decode(b.data, b.len, &limits, err);
	if (!out->manifest)
		return sb_wrap(err, err ? err->code : SB_E_PROTO, "manifest from the far side");
	return 0;
}

#define DESCENT_ROUNDS 32

/* A Merkle descent under way. */
struct descent {
	struct sb_link *l;
	struct sb_manifest *m;
	const struct sb_manifest *like;
	struct sb_strlist todo; /* directories to list in the next round */
	uint64_t differing;     /* entries beneath them */
	uint64_t seen;          /* entries listed so far, and the bytes of their paths */
	uint64_t path_bytes;
	const struct sb_exchange *x;
	struct sb_error *err;
};

/* What the paths of all entries together may take: shared beginnings cost the far side nothing. */
static int
weigh(struct descent *d, size_t path_len)
{
	d->seen++;
	d->path_bytes += path_len;
	if (d->path_bytes > SB_MANIFEST_PATHS_MAX(d->seen))
		return sb_fail(d->err, SB_E_LIMIT,
			"paths in the far side's listing take more than %llu bytes",
			(unsigned long long)SB_MANIFEST_PATHS_MAX(d->seen));
	return too_many(d->x, d->seen, "entries", d->err);
}

static int
take_child(struct descent *d, const char *dir, const struct sb_listed *c)
{
	sb_autofree char *path = *dir ? sb_str_printf("%s/%s", dir, c->name) : strdup(c->name);
	const struct sb_entry *mine;
	struct sb_entry e = c->e;
	int r;

	if (!path)
		return sb_fail(d->err, SB_E_NOMEM, "manifest: out of memory");
	r = weigh(d, strlen(path));
	if (r < 0)
		return r;
	e.dir = c->e.type == SB_ENTRY_DIR ? NULL : e.dir;
	if (!sb_manifest_put(d->m, path, &e, c->target, d->err))
		return d->err ? d->err->code : SB_E_NOMEM;
	if (c->e.type != SB_ENTRY_DIR)
		return 0;
	mine = sb_manifest_find(d->like, path);
	if (mine && mine->type == SB_ENTRY_DIR && sb_digest_known(&mine->digest) &&
		sb_digest_eq(&mine->digest, &c->e.digest))
		return sb_manifest_graft_dir(d->m, path, mine->dir, true, d->err);
	if (!c->total)
		return 0;
	d->differing += c->total;
	sb_strlist_add(&d->todo, path);
	return sb_strlist_check(&d->todo, d->err);
}

/* The children of one directory; they come in the order of their names. */
static int
take_directory(struct descent *d, const char *dir, struct sb_cursor *c)
{
	uint64_t n = sb_cursor_varint(c);
	sb_autofree char *before = NULL;
	int r = 0;

	for (uint64_t k = 0; r == 0 && k < n; k++) {
		struct sb_listed e;

		r = sb_work_alive(d->err);
		if (r == 0)
			r = sb_proto_listing_take(c, &e, d->err);
		if (r < 0)
			break;
		if (before && strcmp(before, e.name) >= 0)
			r = sb_fail(d->err, SB_E_PROTO,
				"the far side sent a damaged listing: names out of order");
		if (r == 0)
			r = take_child(d, dir, &e);
		free(before);
		before = e.name;
		free(e.target);
	}
	return r;
}

/* One round trip: lists every directory in `now`. */
static int
descend(struct descent *d, const struct sb_strlist *now)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 }, in = { 0 };
	struct sb_cursor c;
	int r;

	sb_buf_init(&in, 0);
	sb_buf_init(&b, 256u << 20);
	sb_proto_paths_encode((const char *const *)now->v, now->n, &b);
	r = sb_buf_check(&b, "LIST", d->err);
	if (r == 0)
		r = sb_wire_send_blob(d->l->w, SB_MSG_LIST, b.data, b.len, d->err);
	if (r == 0)
		r = sb_wire_flush(d->l->w, d->err);
	if (r == 0)
		r = blob(d->l, d->x, SB_MSG_MANIFEST, &in, d->err);
	if (r == 0)
		r = proof(d->l, d->err);
	if (r < 0)
		return r;
	sb_cursor_init(&c, in.data, in.len);
	for (size_t i = 0; r == 0 && i < now->n; i++)
		r = take_directory(d, now->v[i], &c);
	if (r == 0 && (c.bad || sb_cursor_left(&c)))
		r = sb_fail(d->err, SB_E_PROTO, "the far side sent a damaged listing");
	return r;
}

/*
 * No base in common: compare subtrees from the top down while that is less than the whole manifest.
 */
static int
fetch_unknown(struct sb_link *l, const struct sb_manifest *like, struct sb_exchange *out,
	struct sb_error *err)
{
	struct descent d = { .l = l, .like = like, .x = out, .err = err, .differing = 0 };
	unsigned rounds = 0;
	int r;

	if (!like || !sb_digest_known(&like->id) ||
		(out->reply.flags & (SB_SCAN_LINKS | SB_SCAN_LAZY)) || out->reply.count < 200)
		return fetch_whole(l, out, err);
	if (sb_digest_eq(&like->id, &out->reply.id)) {
		out->manifest = sb_manifest_copy(like, err);
		return out->manifest ? 0 : err ? err->code : SB_E_NOMEM;
	}
	d.m = sb_manifest_new(err);
	if (!d.m)
		return err ? err->code : SB_E_NOMEM;
	sb_strlist_add(&d.todo, "");
	r = sb_strlist_check(&d.todo, err);
	while (r == 0 && d.todo.n) {
		struct sb_strlist now = d.todo;

		/* Each level is a round trip: a far change in a deep place is not worth more. */
		if (d.differing > out->reply.count / 4 || rounds++ == DESCENT_ROUNDS)
			break;
		memset(&d.todo, 0, sizeof d.todo);
		d.differing = 0;
		r = descend(&d, &now);
		sb_strlist_free(&now);
	}
	if (r == 0 && d.todo.n)
		r = fetch_whole(l, out, err);
	else if (r == 0) {
		out->manifest = sb_steal(&d.m);
		r = sb_manifest_finish(out->manifest, err);
	}
	sb_strlist_free(&d.todo);
	sb_manifest_free(d.m);
	return r;
}

static int
apply_changes(struct sb_link *l, struct sb_manifest **known, struct sb_exchange *out,
	struct sb_error *err)
{
	struct sb_manifest_limits limits = limits_of(out);
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 0);
	if (!known || !*known)
		return sb_fail(err, SB_E_PROTO, "the far side knows a base that we do not");
	out->manifest = sb_steal(known);
	if (sb_digest_eq(&out->manifest->id, &out->reply.id))
		return 0;
	r = blob(l, out, SB_MSG_CHANGES, &b, err);
	if (r == 0)
		r = sb_diff_decode(b.data, b.len, &limits, &d, err);
	return r < 0 ? r : sb_diff_apply(out->manifest, &d, err);
}

int
sb_exchange_wait(struct sb_link *l, struct sb_manifest **known, const struct sb_manifest *like,
	struct sb_exchange *out, struct sb_error *err)
{
	const uint8_t *p;
	size_t len;
	int r = sb_link_welcome(l, err);

	if (r == 0)
		r = sb_wire_expect(l->w, SB_MSG_SCAN, &p, &len, err);
	if (r == 0)
		r = sb_proto_scan_decode(p, len, &out->reply, err);
	out->here = known && *known ? (*known)->count : 0;
	if (like && like->count > out->here)
		out->here = like->count;
	out->most = most_entries(out, out->here);
	if (r == 0)
		r = too_many(out, out->reply.count, "entries", err);
	if (r == 0 && (out->reply.flags & SB_SCAN_BASE_KNOWN))
		r = apply_changes(l, known, out, err);
	if (r == 0 && (out->reply.flags & SB_SCAN_SKIPS))
		r = read_skipped(l, out, err);
	if (r == 0 && (out->reply.flags & SB_SCAN_LEFTOVERS))
		r = read_have(l, out, err);
	if (r == 0)
		r = proof(l, err);
	if (r == 0 && !out->manifest && !out->reply.count) {
		out->manifest = sb_manifest_new(err);
		r = out->manifest ? sb_manifest_finish(out->manifest, err) : SB_E_NOMEM;
	}
	if (r == 0 && !out->manifest)
		r = fetch_unknown(l, like, out, err);
	if (r < 0)
		return r;
	/*
	 * A listing that is not what was announced is no listing: an incomplete one must never read
	 * as deletions.
	 */
	if (out->manifest->count != out->reply.count ||
		(!(out->reply.flags & SB_SCAN_LAZY) &&
			!sb_digest_eq(&out->manifest->id, &out->reply.id)))
		return sb_fail(err, SB_E_PROTO,
			"the far side's list of files is not the one it announced");
	return 0;
}
