/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/run-attrs.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/file.h>
#include <base/memory.h>
#include <base/strlist.h>
#include <base/work.h>
#include <sync/replica/attrs-tree.h>
#include <sync/run/sync-result.h>
#include <sync/tree/diff.h>

/* What is to be done, and what both sides have after it. */
struct attrs_work {
	struct sb_run *run;
	enum sb_direction d;
	const struct sb_attrs *base; /* NULL: none */
	struct sb_attrs here, there; /* as they are */
	struct sb_attrs to_here, to_there;
	struct sb_attrs *next;
	struct sb_error *err;
};

static uint8_t
kinds_of(const struct sb_sync_opts *o)
{
	return (uint8_t)((o->xattrs ? SB_ATTRS_USER : 0) | (o->acls ? SB_ATTRS_ACL : 0));
}

/* `max`: what the answer may take, unpacked. */
static int
ask(struct attrs_work *w, uint8_t type, const struct sb_buf *blob, const uint8_t *byte, size_t max,
	struct sb_buf *out)
{
	struct sb_wire *wire = w->run->link->w;
	const uint8_t *p;
	size_t len;
	int r = blob ? sb_wire_send_blob(wire, type, blob->data, blob->len, w->err) :
		       sb_wire_send(wire, type, byte, 1, w->err);

	if (r == 0)
		r = sb_wire_flush(wire, w->err);
	if (r == 0)
		r = sb_wire_expect(wire, SB_MSG_ATTRS, &p, &len, w->err);
	if (r == 0)
		r = sb_wire_recv_blob(wire, SB_MSG_ATTRS, p, len, max, out, w->err);
	return r < 0 ? r : sb_wire_expect(wire, SB_MSG_PROOF, &p, &len, w->err);
}

/* No more files than both trees have, no more bytes than there is memory for. */
static size_t
most_bytes(uint64_t rows)
{
	uint64_t most = (16u << 20) + rows * 4096, memory = sb_memory_available() / 4;

	most = most < SB_ATTRS_BYTES_MAX ? most : SB_ATTRS_BYTES_MAX;
	return (size_t)(most < memory ? most : memory);
}

static int
look(struct attrs_work *w, uint8_t kinds)
{
	const struct sb_manifest *here = w->run->local->scan.manifest;
	uint64_t rows = here->count + (w->run->far.manifest ? w->run->far.manifest->count : 0);
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 0);
	r = ask(w, SB_MSG_GETATTRS, NULL, &kinds, most_bytes(rows), &b);
	if (r == 0)
		r = sb_attrs_decode(b.data, b.len, rows, &w->there, w->err);
	if (r == 0 && w->there.kinds & ~kinds)
		r = sb_fail(w->err, SB_E_PROTO,
			"attributes from the far side: not those asked for");
	return r < 0 ? r : sb_attrs_tree_read(w->run->local->rootfd, here, kinds, &w->here, w->err);
}

static bool
same(const struct sb_attrs_row *a, const struct sb_attrs_row *b)
{
	size_t n = a ? a->len : 0;

	return n == (b ? b->len : 0) && (!n || memcmp(a->set, b->set, n) == 0);
}

static int
put(struct sb_attrs *to, const char *path, const struct sb_attrs_row *row, struct sb_error *err)
{
	return to ? sb_attrs_add(to, path, row ? row->set : NULL, row ? row->len : 0, err) : 0;
}

/* One path that any of the three has. */
static int
settle(struct attrs_work *w, const char *path, const struct sb_attrs_row *l,
	const struct sb_attrs_row *r, const struct sb_attrs_row *b)
{
	bool to = w->d & SB_TO_RUNTIME, from = w->d & SB_FROM_RUNTIME;
	bool local = w->base ? !same(l, b) : to, far = w->base ? !same(r, b) : from;
	int n = 0;

	/* What is not here cannot get any; it may have been left out on purpose. */
	if (same(l, r) || !sb_manifest_find(w->run->local->scan.manifest, path))
		return put(w->next, path, same(l, r) ? l : b, w->err);
	if (local && far)
		n = sb_sync_result_note(&w->run->res->skipped, path, NULL,
			"attributes changed on both sides: the local ones count", w->err);
	if (n == 0 && local && to) {
		n = put(&w->to_there, path, l, w->err);
		return n < 0 ? n : put(w->next, path, l, w->err);
	}
	if (n == 0 && !local && from) {
		n = put(&w->to_here, path, r, w->err);
		return n < 0 ? n : put(w->next, path, r, w->err);
	}
	return n < 0 ? n : put(w->next, path, b, w->err);
}

/* The first of the three lists that comes next, path by path. */
static int
settle_all(struct attrs_work *w)
{
	const struct sb_attrs none = { 0 };
	const struct sb_attrs *l[3] = { &w->here, &w->there, w->base ? w->base : &none };
	size_t at[3] = { 0 };
	int n = 0;

	while (n == 0 && (n = sb_work_alive(w->err)) == 0) {
		const struct sb_attrs_row *row[3] = { NULL };
		const char *path = NULL;

		for (int i = 0; i < 3; i++)
			if (at[i] < l[i]->n &&
				(!path || sb_diff_path_order(l[i]->v[at[i]].path, path) < 0))
				path = l[i]->v[at[i]].path;
		if (!path)
			break;
		for (int i = 0; i < 3; i++)
			if (at[i] < l[i]->n && strcmp(l[i]->v[at[i]].path, path) == 0)
				row[i] = &l[i]->v[at[i]++];
		n = settle(w, path, row[0], row[1], row[2]);
	}
	return n;
}

/* It has not come: what both have is what they had. */
static int
refused(struct attrs_work *w, const struct sb_strlist *paths, const char *why)
{
	int n = 0;

	for (size_t i = 0; n == 0 && i < paths->n; i++) {
		const struct sb_attrs_row *b = w->base ? sb_attrs_find(w->base, paths->v[i]) : NULL;
		struct sb_attrs_row *row = w->next ?
			(struct sb_attrs_row *)(uintptr_t)sb_attrs_find(w->next, paths->v[i]) :
			NULL;

		n = sb_sync_result_note(&w->run->res->skipped, paths->v[i], NULL, why, w->err);
		if (n < 0 || !row)
			continue;
		free(row->set);
		row->len = b ? b->len : 0;
		row->set = malloc(row->len + 1);
		if (!row->set)
			return sb_fail(w->err, SB_E_NOMEM, "attributes: out of memory");
		if (row->len)
			memcpy(row->set, b->set, row->len);
	}
	return n;
}

static int
set_here(struct attrs_work *w, uint8_t kinds)
{
	sb_auto(sb_strlist) struct sb_strlist bad = { 0 };
	int n;

	w->to_here.kinds = kinds;
	n = !w->to_here.n ? 0 :
			    sb_attrs_tree_write(w->run->local->rootfd, w->run->local->scan.manifest,
				    &w->to_here, &bad, w->err);
	return n < 0 ? n : refused(w, &bad, "its attributes cannot be set here");
}

static int
set_there(struct attrs_work *w, uint8_t kinds)
{
	sb_auto(sb_strlist) struct sb_strlist bad = { 0 };
	sb_auto(sb_buf) struct sb_buf out = { 0 }, in = { 0 };
	int n;

	w->to_there.kinds = kinds;
	if (!w->to_there.n)
		return 0;
	sb_buf_init(&out, SB_ATTRS_BYTES_MAX);
	sb_buf_init(&in, 0);
	n = sb_attrs_encode(&w->to_there, &out, w->err);
	if (n == 0)
		n = ask(w, SB_MSG_SETATTRS, &out, NULL, out.len + 1024, &in);
	if (n == 0)
		n = sb_proto_paths_decode(in.data, in.len, &bad, w->err);
	if (n == 0 && bad.n > w->to_there.n)
		n = sb_fail(w->err, SB_E_PROTO, "refused attributes: more than were sent");
	return n < 0 ? n : refused(w, &bad, "its attributes cannot be set on the other side");
}

static int
carry(struct attrs_work *w, uint8_t kinds)
{
	int n = look(w, kinds);

	if (n == 0)
		n = settle_all(w);
	if (n == 0)
		n = set_here(w, kinds);
	return n < 0 ? n : set_there(w, kinds);
}

int
sb_run_attrs(struct sb_run *run, enum sb_direction d, const struct sb_attrs *base,
	struct sb_attrs *next, struct sb_error *err)
{
	uint8_t kinds = kinds_of(run->o);
	struct attrs_work w = { .run = run, .d = d, .base = base, .next = next, .err = err };
	int n;

	if (!kinds || run->o->dry_run || !run->local->scan.manifest)
		return 0;
	if (run->link->shadow || !(run->link->peer.features & SB_FEATURE_ATTRS))
		return sb_sync_result_note(&run->res->errors, run->far_name, NULL,
			run->link->shadow ? "attributes are not carried where no agent can run" :
					    "the agent there carries no attributes: it is too old",
			err);
	if (next)
		next->kinds = kinds;
	n = carry(&w, kinds);
	sb_attrs_free(&w.here);
	sb_attrs_free(&w.there);
	sb_attrs_free(&w.to_here);
	sb_attrs_free(&w.to_there);
	return n;
}

/* A base of other kinds, or a damaged one, is none: then what one side alone has goes over. */
static void
load(int dirfd, const char *name, uint8_t kinds, struct sb_attrs *out)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	sb_buf_init(&b, 0);
	if (sb_file_read(dirfd, name, SB_ATTRS_BYTES_MAX, &b, NULL) < 0 ||
		sb_attrs_decode(b.data, b.len, UINT64_MAX, out, NULL) < 0)
		return;
	if (out->kinds != kinds)
		sb_attrs_free(out);
}

int
sb_run_attrs_session(struct sb_run *run, enum sb_direction d, int dirfd, size_t k,
	struct sb_error *err)
{
	sb_auto(sb_attrs) struct sb_attrs base = { 0 }, next = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	char name[32];
	int n;

	if (!kinds_of(run->o))
		return 0;
	(void)snprintf(name, sizeof name, "root%zu.attrs", k);
	load(dirfd, name, kinds_of(run->o), &base);
	n = sb_run_attrs(run, d, &base, &next, err);
	if (n < 0 || !next.kinds)
		return n;
	sb_buf_init(&b, SB_ATTRS_BYTES_MAX);
	n = sb_attrs_encode(&next, &b, err);
	return n < 0 ? n : sb_file_replace(dirfd, name, b.data, b.len, 0600, err);
}
