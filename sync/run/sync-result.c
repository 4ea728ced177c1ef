/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/run/sync-result.h>
#include <sync/tree/diff.h>

#include <stdlib.h>
#include <string.h>

#include <base/cleanup.h>
#include <base/work.h>

static void
notes_free(struct sb_sync_notes *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].saved_as);
	}
	free(l->v);
	memset(l, 0, sizeof *l);
}

void
sb_sync_result_free(struct sb_sync_result *r)
{
	notes_free(&r->conflicts);
	notes_free(&r->skipped);
	notes_free(&r->errors);
	notes_free(&r->auto_exec);
	notes_free(&r->escaping_links);
	notes_free(&r->merged);
	for (size_t i = 0; i < r->n_changes; i++) {
		free(r->changes[i].path);
		free(r->changes[i].from);
	}
	free(r->changes);
	memset(r, 0, sizeof *r);
}

int
sb_sync_result_note(struct sb_sync_notes *l, const char *path, const char *saved_as,
	const char *why, struct sb_error *err)
{
	if (l->n == l->cap) {
		size_t cap = l->cap ? l->cap * 2 : 16;
		struct sb_sync_note *v = realloc(l->v, cap * sizeof *v);

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "result: out of memory");
		l->v = v;
		l->cap = cap;
	}
	l->v[l->n].path = strdup(path);
	l->v[l->n].saved_as = saved_as ? strdup(saved_as) : NULL;
	l->v[l->n].why = why;
	if (!l->v[l->n].path || (saved_as && !l->v[l->n].saved_as)) {
		free(l->v[l->n].path);
		return sb_fail(err, SB_E_NOMEM, "result: out of memory");
	}
	l->n++;
	return 0;
}

bool
sb_sync_result_is_told(const struct sb_sync_notes *l, size_t *at, const char *path,
	const char *saved_as)
{
	for (size_t i = *at; i < l->n; i++)
		if (strcmp(l->v[i].path, path) == 0 && l->v[i].saved_as && saved_as &&
			strcmp(l->v[i].saved_as, saved_as) == 0) {
			*at = i + 1;
			return true;
		}
	return false;
}

void
sb_sync_result_drop_note(struct sb_sync_notes *l, size_t from, const char *path)
{
	for (size_t i = from; i < l->n; i++)
		if (strcmp(l->v[i].path, path) == 0) {
			free(l->v[i].path);
			free(l->v[i].saved_as);
			memmove(&l->v[i], &l->v[i + 1], (l->n - i - 1) * sizeof *l->v);
			l->n--;
			return;
		}
}

static const char *
what_of(const struct sb_change *c, const struct sb_plan_step *s, const struct sb_manifest *at)
{
	bool there = sb_manifest_find(at, c->path) != NULL;

	switch (s->method) {
	case SB_METHOD_DELETE: return "delete";
	case SB_METHOD_META: return "meta";
	case SB_METHOD_MOVE: return "move";
	case SB_METHOD_CLONE: return "copy";
	case SB_METHOD_HARDLINK: return "link";
	default: break;
	}
	if (c->entry.type == SB_ENTRY_DIR)
		return "mkdir";
	return there ? "update" : "create";
}

static int
add_changes(struct sb_sync_result *res, const struct sb_plan *p, size_t n,
	const struct sb_manifest *at, const char *side, struct sb_error *err)
{
	struct sb_sync_change *v = realloc(res->changes, (res->n_changes + n + 1) * sizeof *v);

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "result: out of memory");
	memset(v + res->n_changes, 0, (n + 1) * sizeof *v);
	res->changes = v;
	for (size_t i = 0; i < n; i++) {
		struct sb_sync_change *c = &res->changes[res->n_changes];

		if (sb_work_alive(err) < 0)
			return SB_E_CANCELED;
		c->side = side;
		c->what = what_of(&p->diff.v[i], &p->steps[i], at);
		c->size = p->diff.v[i].entry.type == SB_ENTRY_FILE ? p->diff.v[i].entry.size : 0;
		c->path = strdup(p->diff.v[i].path);
		c->from = p->steps[i].from ? strdup(p->steps[i].from) : NULL;
		res->n_changes++;
		if (!c->path || (p->steps[i].from && !c->from))
			return sb_fail(err, SB_E_NOMEM, "result: out of memory");
	}
	return 0;
}

int
sb_sync_result_changes(struct sb_sync_result *res, const struct sb_plan *p,
	const struct sb_manifest *at, const char *side, struct sb_error *err)
{
	return add_changes(res, p, p->diff.n, at, side, err);
}

int
sb_sync_result_planned(struct sb_sync_result *res, const struct sb_plan *p,
	const struct sb_manifest *at, const char *side, struct sb_error *err)
{
	size_t n = p->diff.n < SB_SYNC_CHANGES_MAX ? p->diff.n : SB_SYNC_CHANGES_MAX;

	res->n_planned = res->n_changes;
	return add_changes(res, p, n, at, side, err);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What was planned last and left alone did not happen. */
static int
drop_left(struct sb_sync_result *res, const struct sb_commit_result *c, struct sb_error *err)
{
	sb_autofree const char **left = c->n_left ? calloc(c->n_left, sizeof *left) : NULL;
	size_t kept = res->n_planned;

	if (!c->n_left)
		return 0;
	if (!left)
		return sb_fail(err, SB_E_NOMEM, "result: out of memory");
	for (size_t i = 0; i < c->n_left; i++)
		left[i] = c->left[i].path;
	qsort(left, c->n_left, sizeof *left, by_text);
	for (size_t i = kept; i < res->n_changes; i++) {
		struct sb_sync_change *v = &res->changes[i];
		const char *path = v->path;

		if (!bsearch(&path, left, c->n_left, sizeof *left, by_text)) {
			res->changes[kept++] = *v;
			continue;
		}
		free(v->path);
		free(v->from);
	}
	res->n_changes = kept;
	return 0;
}

const char sb_sync_result_way_text[] =
	"a directory is in its place and holds what is not synced: move that away";

bool
sb_sync_result_in_way(const struct sb_diff *planned, const struct sb_commit_row *left)
{
	const struct sb_change *c =
		left->why == SB_WHY_NOTEMPTY ? sb_diff_find_put(planned, left->path) : NULL;

	return c && c->entry.type != SB_ENTRY_DIR;
}

int
sb_sync_result_commit(struct sb_sync_result *res, const struct sb_plan *p,
	const struct sb_commit_result *c, struct sb_error *err)
{
	int r = drop_left(res, c, err);

	res->files_synced += c->files;
	res->files_deleted += c->deleted;
	res->files_moved += c->moved;
	for (size_t i = 0; i < c->n_left && r == 0; i++) {
		enum sb_commit_why why = c->left[i].why;
		struct sb_sync_notes *l = &res->conflicts;

		if (sb_sync_result_in_way(&p->diff, &c->left[i])) {
			r = sb_sync_result_note(&res->errors, c->left[i].path, NULL,
				sb_sync_result_way_text, err);
			continue;
		}
		if (why == SB_WHY_NOTEMPTY)
			l = &res->skipped;
		else if (why == SB_WHY_DENIED || why == SB_WHY_SOURCE)
			l = &res->errors;
		r = sb_sync_result_note(l, c->left[i].path, NULL, sb_proto_why_text(why), err);
	}
	return r;
}

int
sb_sync_result_skipped(struct sb_sync_result *res, const struct sb_skipped *v, size_t n,
	struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = sb_sync_result_note(sb_scan_skip_is_loss(v[i].reason) ? &res->errors :
									    &res->skipped,
			v[i].path, NULL, sb_scan_skip_text(v[i].reason), err);
	return r;
}

void
sb_sync_result_restart(struct sb_sync_result *res)
{
	struct sb_sync_result kept = {
		.direction = res->direction,
		.reason = res->reason,
		.bytes_transferred = res->bytes_transferred,
		.bytes_wire_up = res->bytes_wire_up,
		.bytes_wire_down = res->bytes_wire_down,
		.round_trips = res->round_trips,
		.reconnects = res->reconnects,
	};

	memcpy(kept.phases_ms, res->phases_ms, sizeof kept.phases_ms);
	sb_sync_result_free(res);
	*res = kept;
}

static int
notes_move(struct sb_sync_notes *to, struct sb_sync_notes *from, struct sb_error *err)
{
	struct sb_sync_note *v;

	if (!from->n)
		return 0;
	v = realloc(to->v, (to->n + from->n) * sizeof *v);
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "result: out of memory");
	memcpy(v + to->n, from->v, from->n * sizeof *v);
	to->v = v;
	to->n += from->n;
	to->cap = to->n;
	from->n = 0;
	return 0;
}

int
sb_sync_result_add(struct sb_sync_result *res, struct sb_sync_result *part, struct sb_error *err)
{
	struct sb_sync_change *v;
	int r;

	res->files_synced += part->files_synced;
	res->bytes_transferred += part->bytes_transferred;
	res->bytes_wire_up += part->bytes_wire_up;
	res->bytes_wire_down += part->bytes_wire_down;
	res->round_trips += part->round_trips;
	res->reconnects += part->reconnects;
	res->files_deleted += part->files_deleted;
	res->files_moved += part->files_moved;
	res->files_delta += part->files_delta;
	res->entries += part->entries;
	for (int i = 0; i < SB_STEPS; i++)
		res->phases_ms[i] += part->phases_ms[i];
	r = notes_move(&res->conflicts, &part->conflicts, err);
	if (r == 0)
		r = notes_move(&res->skipped, &part->skipped, err);
	if (r == 0)
		r = notes_move(&res->errors, &part->errors, err);
	if (r == 0)
		r = notes_move(&res->auto_exec, &part->auto_exec, err);
	if (r == 0)
		r = notes_move(&res->escaping_links, &part->escaping_links, err);
	if (r == 0)
		r = notes_move(&res->merged, &part->merged, err);
	if (r == 0 && part->n_changes) {
		v = realloc(res->changes, (res->n_changes + part->n_changes) * sizeof *v);
		r = v ? 0 : sb_fail(err, SB_E_NOMEM, "result: out of memory");
		if (v) {
			memcpy(v + res->n_changes, part->changes, part->n_changes * sizeof *v);
			res->changes = v;
			res->n_changes += part->n_changes;
			part->n_changes = 0;
		}
	}
	sb_sync_result_free(part);
	return r;
}

bool
sb_sync_result_has_unstable(const struct sb_sync_result *r)
{
	const char *left = sb_proto_why_text(SB_WHY_SOURCE),
		   *seen = sb_scan_skip_text(SB_SKIP_UNSTABLE);

	for (size_t i = 0; i < r->errors.n; i++)
		if (strcmp(r->errors.v[i].why, left) == 0 || strcmp(r->errors.v[i].why, seen) == 0)
			return true;
	return false;
}

static bool
will_be_found_again(const char *why)
{
	if (strcmp(why, sb_proto_why_text(SB_WHY_SOURCE)) == 0)
		return true;
	for (int i = SB_SKIP_SPECIAL; i <= SB_SKIP_NAME; i++)
		if (strcmp(why, sb_scan_skip_text((enum sb_skip_reason)i)) == 0)
			return true;
	return false;
}

static void
notes_look_again(struct sb_sync_notes *l)
{
	size_t kept = 0;

	for (size_t i = 0; i < l->n; i++) {
		if (!will_be_found_again(l->v[i].why)) {
			l->v[kept++] = l->v[i];
			continue;
		}
		free(l->v[i].path);
		free(l->v[i].saved_as);
	}
	l->n = kept;
}

void
sb_sync_result_look_again(struct sb_sync_result *r)
{
	notes_look_again(&r->skipped);
	notes_look_again(&r->errors);
	r->entries = 0;
}

int
sb_sync_result_after(struct sb_sync_result *res, struct sb_sync_result *before,
	struct sb_error *err)
{
	notes_free(&before->skipped);
	notes_free(&before->errors);
	before->entries = 0;
	return sb_sync_result_add(res, before, err);
}
