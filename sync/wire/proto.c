/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/wire/proto.h>

#include <stdlib.h>
#include <string.h>

#include <base/path.h>
#include <base/strlist.h>

#define PATH_LIMIT (1u << 20)
#define ROOT_LIMIT 4096u

static int
done(const struct sb_cursor *c, const char *what, struct sb_error *err)
{
	if (c->bad || sb_cursor_left(c))
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged %s message", what);
	return 0;
}

static void
take_into(struct sb_cursor *c, void *out, size_t len)
{
	const uint8_t *p = sb_cursor_take(c, len);

	if (p)
		memcpy(out, p, len);
	else
		memset(out, 0, len);
}

/* A copy of length-prefixed bytes without NUL; NULL and bad otherwise. */
static char *
take_text(struct sb_cursor *c, size_t max)
{
	size_t n;
	const uint8_t *p = sb_cursor_bytes(c, max, &n);
	char *s;

	if (!p || memchr(p, 0, n)) {
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

static char *
take_path(struct sb_cursor *c)
{
	char *s = take_text(c, PATH_LIMIT);

	if (s && sb_path_check(s, strlen(s), NULL) < 0) {
		free(s);
		c->bad = true;
		return NULL;
	}
	return s;
}

void
sb_hello_encode(const struct sb_hello *h, struct sb_buf *b)
{
	sb_buf_add_u32(b, h->version);
	sb_buf_add_u32(b, h->min_version);
	sb_buf_add_u32(b, h->features);
	sb_buf_add_bytes(b, h->software, strlen(h->software));
}

int
sb_hello_decode(const uint8_t *p, size_t len, struct sb_hello *out, struct sb_error *err)
{
	struct sb_cursor c;
	const uint8_t *text;
	size_t n;

	sb_cursor_init(&c, p, len);
	memset(out, 0, sizeof *out);
	out->version = sb_cursor_u32(&c);
	out->min_version = sb_cursor_u32(&c);
	out->features = sb_cursor_u32(&c);
	text = sb_cursor_bytes(&c, sizeof out->software - 1, &n);
	if (text)
		memcpy(out->software, text, n);
	/* A later version may send more behind what we know. */
	if (c.bad)
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged greeting");
	return 0;
}

void
sb_begin_encode(const struct sb_begin *m, struct sb_buf *b)
{
	sb_buf_add_u32(b, m->flags);
	sb_buf_add_varint(b, m->jobs);
	sb_buf_add(b, m->pair, sizeof m->pair);
	sb_buf_add(b, m->identity, sizeof m->identity);
	sb_buf_add(b, m->base.b, sizeof m->base.b);
	sb_buf_add(b, m->rules.b, sizeof m->rules.b);
	sb_buf_add_bytes(b, m->root, strlen(m->root));
}

int
sb_begin_decode(const uint8_t *p, size_t len, struct sb_begin *out, struct sb_error *err)
{
	struct sb_cursor c;
	int r;

	sb_cursor_init(&c, p, len);
	memset(out, 0, sizeof *out);
	out->flags = sb_cursor_u32(&c);
	out->jobs = (uint32_t)sb_cursor_varint(&c);
	take_into(&c, out->pair, sizeof out->pair);
	take_into(&c, out->identity, sizeof out->identity);
	take_into(&c, out->base.b, sizeof out->base.b);
	take_into(&c, out->rules.b, sizeof out->rules.b);
	out->root = take_text(&c, ROOT_LIMIT);
	r = done(&c, "BEGIN", err);
	if (r < 0) {
		free(out->root);
		out->root = NULL;
	}
	return r;
}

void
sb_scan_reply_encode(const struct sb_scan_reply *m, struct sb_buf *b)
{
	sb_buf_add_u32(b, m->flags);
	sb_buf_add_varint(b, m->count);
	sb_buf_add_varint(b, m->bytes_hashed);
	sb_buf_add(b, m->id.b, sizeof m->id.b);
	sb_buf_add(b, m->identity, sizeof m->identity);
	sb_buf_add_varint(b, m->free_bytes);
	sb_buf_add_svarint(b, m->clock_ms);
	sb_buf_add_u16(b, m->root_mode);
	sb_buf_add_svarint(b, m->root_mtime);
	sb_buf_add_varint(b, m->specials);
}

int
sb_scan_reply_decode(const uint8_t *p, size_t len, struct sb_scan_reply *out, struct sb_error *err)
{
	struct sb_cursor c;

	sb_cursor_init(&c, p, len);
	out->flags = sb_cursor_u32(&c);
	out->count = sb_cursor_varint(&c);
	out->bytes_hashed = sb_cursor_varint(&c);
	take_into(&c, out->id.b, sizeof out->id.b);
	take_into(&c, out->identity, sizeof out->identity);
	out->free_bytes = sb_cursor_varint(&c);
	out->clock_ms = sb_cursor_svarint(&c);
	out->root_mode = sb_cursor_u16(&c) & 07777;
	out->root_mtime = sb_cursor_svarint(&c);
	out->specials = sb_cursor_varint(&c);
	return done(&c, "SCAN", err);
}

void
sb_commit_req_encode(const struct sb_commit_req *m, struct sb_buf *b)
{
	sb_buf_add_u8(b, m->durability);
	sb_buf_add_u8(b, (uint8_t)((m->remember ? 1 : 0) | (m->set_root ? 2 : 0)));
	sb_buf_add_u16(b, m->root_mode);
	sb_buf_add_svarint(b, m->root_mtime);
}

int
sb_commit_req_decode(const uint8_t *p, size_t len, struct sb_commit_req *out, struct sb_error *err)
{
	struct sb_cursor c;
	uint8_t flags;

	sb_cursor_init(&c, p, len);
	out->durability = sb_cursor_u8(&c);
	flags = sb_cursor_u8(&c);
	out->remember = flags & 1;
	out->set_root = flags & 2;
	out->root_mode = sb_cursor_u16(&c) & 07777;
	out->root_mtime = sb_cursor_svarint(&c);
	return done(&c, "COMMIT", err);
}

void
sb_plan_piece_free(struct sb_plan_piece *p)
{
	sb_diff_free(&p->diff);
	free(p->steps);
	p->steps = NULL;
	sb_buf_free(&p->strings);
}

/*
 * Plan piece: varint length of the diff, the diff, then per change u8 method and, for CLONE and
 * MOVE, a path.
 */
int
sb_plan_piece_encode(const struct sb_diff *diff, const struct sb_step *steps, struct sb_buf *b,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf d = { 0 };
	int r;

	sb_buf_init(&d, b->max);
	r = sb_diff_encode(diff, &d, err);
	if (r < 0)
		return r;
	sb_buf_add_bytes(b, d.data, d.len);
	for (size_t i = 0; i < diff->n; i++) {
		sb_buf_add_u8(b, steps[i].method);
		if (steps[i].method == SB_METHOD_CLONE || steps[i].method == SB_METHOD_MOVE)
			sb_buf_add_bytes(b, steps[i].from, strlen(steps[i].from));
	}
	return sb_buf_check(b, "plan", err);
}

/* Does this method make sense for this change? The peer may send anything. */
static bool
method_fits(const struct sb_change *ch, uint8_t method)
{
	if (ch->del)
		return method == SB_METHOD_DELETE;
	switch (method) {
	case SB_METHOD_META: return true;
	case SB_METHOD_MAKE: return ch->entry.type != SB_ENTRY_FILE || ch->entry.size == 0;
	case SB_METHOD_MOVE: return ch->entry.type != SB_ENTRY_LINK;
	case SB_METHOD_DATA:
	case SB_METHOD_CLONE:
	case SB_METHOD_LEFTOVER: return ch->entry.type == SB_ENTRY_FILE;
	case SB_METHOD_HARDLINK:
		return ch->entry.type == SB_ENTRY_FILE && ch->leader &&
			strcmp(ch->leader, ch->path) != 0;
	default: return false;
	}
}

int
sb_plan_piece_decode(const uint8_t *p, size_t len, const struct sb_manifest_limits *limits,
	struct sb_plan_piece *out, struct sb_error *err)
{
	struct sb_cursor c;
	const uint8_t *d;
	size_t n;
	int r;

	memset(out, 0, sizeof *out);
	sb_buf_init(&out->strings, len + 1);
	sb_cursor_init(&c, p, len);
	d = sb_cursor_bytes(&c, len, &n);
	if (!d)
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged plan");
	r = sb_diff_decode(d, n, limits, &out->diff, err);
	if (r < 0)
		return sb_wrap(err, r, "plan from the far side");
	out->steps = calloc(out->diff.n + 1, sizeof *out->steps);
	/* Reserved at once so that `from` pointers stay good. */
	if (!out->steps || !sb_buf_reserve(&out->strings, sb_cursor_left(&c))) {
		sb_plan_piece_free(out);
		return sb_fail(err, SB_E_NOMEM, "plan: out of memory");
	}
	for (size_t i = 0; i < out->diff.n && !c.bad; i++) {
		struct sb_step *s = &out->steps[i];

		s->method = sb_cursor_u8(&c);
		if (!method_fits(&out->diff.v[i], s->method))
			c.bad = true;
		if (s->method == SB_METHOD_CLONE || s->method == SB_METHOD_MOVE) {
			sb_autofree char *from = take_path(&c);

			if (!from || !*from) {
				c.bad = true;
				break;
			}
			s->from = (char *)out->strings.data + out->strings.len;
			sb_buf_add(&out->strings, from, strlen(from) + 1);
		}
	}
	r = done(&c, "PLAN", err);
	if (r < 0)
		sb_plan_piece_free(out);
	return r;
}

void
sb_want_list_free(struct sb_want_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].source);
		free(l->v[i].sig);
	}
	free(l->v);
	memset(l, 0, sizeof *l);
}

int
sb_want_list_add(struct sb_want_list *l, const char *path, struct sb_want **out,
	struct sb_error *err)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 64;
		struct sb_want *v = realloc(l->v, cap * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "list of wanted files: out of memory");
		l->v = v;
		l->cap = cap;
	}
	memset(&l->v[l->n], 0, sizeof l->v[l->n]);
	l->v[l->n].path = strdup(path);
	if (!l->v[l->n].path)
		return sb_fail(err, SB_E_NOMEM, "list of wanted files: out of memory");
	*out = &l->v[l->n++];
	return 0;
}

enum {
	WANT_BASE = 1,
	WANT_HAVE = 2,
	WANT_SIG = 4,
	WANT_WHOLE = 8,
	WANT_SOURCE = 16,
};

void
sb_want_list_encode(const struct sb_want_list *l, struct sb_buf *b)
{
	sb_buf_add_varint(b, l->n);
	for (size_t i = 0; i < l->n; i++) {
		const struct sb_want *w = &l->v[i];
		bool base = sb_digest_known(&w->base);

		sb_buf_add_bytes(b, w->path, strlen(w->path));
		sb_buf_add_u8(b,
			(uint8_t)((base ? WANT_BASE : 0) | (w->have ? WANT_HAVE : 0) |
				(w->sig ? WANT_SIG : 0) | (w->whole ? WANT_WHOLE : 0) |
				(w->source ? WANT_SOURCE : 0)));
		if (w->source)
			sb_buf_add_bytes(b, w->source, strlen(w->source));
		if (base) {
			sb_buf_add(b, w->base.b, sizeof w->base.b);
			sb_buf_add_varint(b, w->base_size);
		}
		if (w->have) {
			sb_buf_add_varint(b, w->have);
			sb_buf_add(b, w->have_digest.b, sizeof w->have_digest.b);
		}
		if (w->sig)
			sb_buf_add_bytes(b, w->sig, w->sig_len);
	}
}

static int
want_decode(struct sb_cursor *c, struct sb_want_list *out, struct sb_error *err)
{
	sb_autofree char *path = take_path(c);
	struct sb_want *w;
	uint8_t flags;
	int r;

	if (!path || !*path)
		return sb_fail(err, SB_E_PROTO,
			"the far side asked for a path that is not allowed");
	r = sb_want_list_add(out, path, &w, err);
	if (r < 0)
		return r;
	flags = sb_cursor_u8(c);
	w->whole = flags & WANT_WHOLE;
	if (flags & WANT_SOURCE) {
		w->source = take_path(c);
		if (!w->source || !*w->source)
			return sb_fail(err, SB_E_PROTO,
				"the far side asked for a path that is not allowed");
	}
	if (flags & WANT_BASE) {
		take_into(c, w->base.b, sizeof w->base.b);
		w->base_size = sb_cursor_varint(c);
	}
	if (flags & WANT_HAVE) {
		w->have = sb_cursor_varint(c);
		take_into(c, w->have_digest.b, sizeof w->have_digest.b);
	}
	if (flags & WANT_SIG) {
		const uint8_t *sig = sb_cursor_bytes(c, 64u << 20, &w->sig_len);

		if (!sig)
			return sb_fail(err, SB_E_PROTO, "the far side sent a damaged signature");
		w->sig = malloc(w->sig_len + 1);
		if (!w->sig)
			return sb_fail(err, SB_E_NOMEM, "signature: out of memory");
		memcpy(w->sig, sig, w->sig_len);
	}
	return 0;
}

int
sb_want_list_decode(const uint8_t *p, size_t len, struct sb_want_list *out, struct sb_error *err)
{
	struct sb_cursor c;
	uint64_t n;
	int r = 0;

	memset(out, 0, sizeof *out);
	sb_cursor_init(&c, p, len);
	n = sb_cursor_varint(&c);
	for (uint64_t i = 0; i < n && !c.bad && r == 0; i++)
		r = want_decode(&c, out, err);
	if (r == 0)
		r = done(&c, "WANT", err);
	if (r < 0)
		sb_want_list_free(out);
	return r;
}

void
sb_commit_result_free(struct sb_commit_result *r)
{
	for (size_t i = 0; i < r->n_left; i++)
		free(r->left[i].path);
	free(r->left);
	memset(r, 0, sizeof *r);
}

int
sb_commit_result_add(struct sb_commit_result *r, const char *path, enum sb_commit_why why,
	struct sb_error *err)
{
	if (r->n_left == r->cap_left) {
		size_t cap = r->cap_left ? r->cap_left * 2 : 16;
		struct sb_commit_row *v = realloc(r->left, cap * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "result: out of memory");
		r->left = v;
		r->cap_left = cap;
	}
	r->left[r->n_left].path = strdup(path);
	r->left[r->n_left].why = (uint8_t)why;
	if (!r->left[r->n_left].path)
		return sb_fail(err, SB_E_NOMEM, "result: out of memory");
	r->n_left++;
	return 0;
}

const char *
sb_commit_why_text(enum sb_commit_why why)
{
	switch (why) {
	case SB_WHY_CHANGED: return "changed during the sync";
	case SB_WHY_NOTEMPTY: return "directory not empty";
	case SB_WHY_DENIED: return "permission denied";
	case SB_WHY_SOURCE: return "source vanished or kept changing";
	case SB_WHY_EXISTS: return "appeared during the sync";
	}
	return "unknown reason";
}

void
sb_commit_result_encode(const struct sb_commit_result *r, struct sb_buf *b)
{
	sb_buf_add_varint(b, r->files);
	sb_buf_add_varint(b, r->dirs);
	sb_buf_add_varint(b, r->deleted);
	sb_buf_add_varint(b, r->moved);
	sb_buf_add_varint(b, r->bytes);
	sb_buf_add(b, r->id.b, sizeof r->id.b);
	sb_buf_add_varint(b, r->n_left);
	for (size_t i = 0; i < r->n_left; i++) {
		sb_buf_add_bytes(b, r->left[i].path, strlen(r->left[i].path));
		sb_buf_add_u8(b, r->left[i].why);
	}
}

int
sb_commit_result_decode(const uint8_t *p, size_t len, struct sb_commit_result *out,
	struct sb_error *err)
{
	struct sb_cursor c;
	uint64_t n;
	int r = 0;

	memset(out, 0, sizeof *out);
	sb_cursor_init(&c, p, len);
	out->files = sb_cursor_varint(&c);
	out->dirs = sb_cursor_varint(&c);
	out->deleted = sb_cursor_varint(&c);
	out->moved = sb_cursor_varint(&c);
	out->bytes = sb_cursor_varint(&c);
	take_into(&c, out->id.b, sizeof out->id.b);
	n = sb_cursor_varint(&c);
	for (uint64_t i = 0; i < n && !c.bad && r == 0; i++) {
		sb_autofree char *path = take_path(&c);
		uint8_t why = sb_cursor_u8(&c);

		if (!c.bad)
			r = sb_commit_result_add(out, path, why, err);
	}
	if (r == 0)
		r = done(&c, "RESULT", err);
	if (r < 0)
		sb_commit_result_free(out);
	return r;
}

void
sb_paths_encode(const char *const *v, size_t n, struct sb_buf *b)
{
	sb_buf_add_varint(b, n);
	for (size_t i = 0; i < n; i++)
		sb_buf_add_bytes(b, v[i], strlen(v[i]));
}

int
sb_paths_decode(const uint8_t *p, size_t len, struct sb_strlist *out, struct sb_error *err)
{
	struct sb_cursor c;
	uint64_t n;
	int r;

	sb_cursor_init(&c, p, len);
	n = sb_cursor_varint(&c);
	for (uint64_t i = 0; i < n && !c.bad && !out->failed; i++) {
		sb_autofree char *path = take_path(&c);

		if (path)
			sb_strlist_add(out, path);
	}
	r = sb_strlist_check(out, err);
	return r < 0 ? r : done(&c, "path list", err);
}

void
sb_listing_add(const struct sb_entry *e, struct sb_buf *b)
{
	sb_buf_add_u8(b, e->type);
	sb_buf_add_bytes(b, e->name, strlen(e->name));
	sb_buf_add_u16(b, e->mode);
	sb_buf_add_svarint(b, e->mtime);
	sb_buf_add(b, e->digest.b, sizeof e->digest.b);
	sb_buf_add_varint(b, e->type == SB_ENTRY_DIR ? e->dir->total : e->size);
	if (e->type == SB_ENTRY_LINK)
		sb_buf_add_bytes(b, sb_entry_target(e), e->size);
}

int
sb_listing_take(struct sb_cursor *c, struct sb_listed *out, struct sb_error *err)
{
	uint64_t n;

	memset(out, 0, sizeof *out);
	out->e.type = sb_cursor_u8(c);
	out->name = take_path(c);
	out->e.mode = sb_cursor_u16(c) & 07777;
	out->e.mtime = sb_cursor_svarint(c);
	take_into(c, out->e.digest.b, sizeof out->e.digest.b);
	n = sb_cursor_varint(c);
	if (out->e.type == SB_ENTRY_DIR)
		out->total = n;
	else
		out->e.size = n;
	if (out->e.type == SB_ENTRY_LINK)
		out->target = take_text(c, 4096);
	if (c->bad || !out->name || !*out->name || strchr(out->name, '/') ||
		out->e.type < SB_ENTRY_DIR || out->e.type > SB_ENTRY_LINK ||
		(out->target && strlen(out->target) != n)) {
		free(out->name);
		free(out->target);
		return sb_fail(err, SB_E_PROTO, "the far side sent a damaged listing");
	}
	return 0;
}
