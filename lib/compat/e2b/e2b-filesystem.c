/* SPDX-License-Identifier: MIT */
/* filesystem.Filesystem: entries, directories, moves and watches of a sandbox. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/random.h>
#include <base/str.h>
#include <compat/e2b/e2b-priv.h>

#define PATH_MAX_BYTES 4096
#define WATCHERS_MAX 64 /* of one sandbox */
#define EVENTS_MAX 10000

/* Taken by one call at a time: `busy`. */
struct sb_e2b_watcher {
	struct sb_e2b_watcher *next;
	char id[33];
	char sandbox[SB_E2B_ID_LEN + 1];
	char *shown;
	struct sb_guest_stream *s;
	bool busy, over;
};

/* A path of the request, both ways. */
static int
read_path(const struct sb_e2b_visit *v, const json_t *in, const char *name, char **shown,
	char **real, struct sb_error *err)
{
	struct sb_rpc_fields f;
	const char *path;
	int r;

	*shown = *real = NULL;
	sb_rpc_fields_init(&f, in);
	path = sb_rpc_field_str(&f, name, PATH_MAX_BYTES, 0);
	r = sb_rpc_fields_check(&f, err);
	return r < 0 ? r : sb_e2b_path(v, path, shown, real, err);
}

/* Which path it was about; the words are the guest's errno's. */
static int
about(struct sb_error *err, int r, const char *shown)
{
	return r < 0 ? sb_wrap(err, r, "path '%.300s'", shown) : r;
}

static json_t *
entry_answer(const struct sb_guest_entry *e, const char *shown)
{
	return json_pack("{s:o}", "entry", sb_e2b_entry(e, shown));
}

static int
run_stat(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	sb_autofree char *shown = NULL, *real = NULL;
	int r = read_path(v, in, "path", &shown, &real, err);

	(void)call;
	if (r == 0)
		r = about(err, sb_guest_stat(v->e->guests, v->r->id, real, &v->call, &e, err),
			shown);
	if (r == 0)
		*out = entry_answer(&e, shown);
	return r;
}

static int
run_mkdir(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	sb_autofree char *shown = NULL, *real = NULL;
	int r = read_path(v, in, "path", &shown, &real, err);

	(void)call;
	if (r == 0)
		r = about(err, sb_guest_mkdir(v->e->guests, v->r->id, real, &v->call, &e, err),
			shown);
	if (r == 0)
		*out = entry_answer(&e, shown);
	return r;
}

static int
run_move(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	sb_autofree char *from = NULL, *from_real = NULL, *to = NULL, *to_real = NULL;
	int r = read_path(v, in, "source", &from, &from_real, err);

	(void)call;
	if (r == 0)
		r = read_path(v, in, "destination", &to, &to_real, err);
	if (r == 0)
		r = about(err,
			sb_guest_move(v->e->guests, v->r->id, from_real, to_real, &v->call, &e,
				err),
			from);
	if (r == 0)
		*out = entry_answer(&e, to);
	return r;
}

static int
run_remove(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	sb_autofree char *shown = NULL, *real = NULL;
	int r = read_path(v, in, "path", &shown, &real, err);

	(void)call;
	(void)out;
	return r < 0 ?
		r :
		about(err, sb_guest_remove(v->e->guests, v->r->id, real, &v->call, err), shown);
}

static int
by_name(const void *a, const void *b)
{
	return strcmp(((const struct sb_guest_entry *)a)->name,
		((const struct sb_guest_entry *)b)->name);
}

static int
run_dir(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	sb_autofree char *shown = NULL, *real = NULL;
	struct sb_guest_entry *e = NULL;
	struct sb_rpc_fields f;
	json_t *list;
	int64_t depth;
	size_t n = 0;
	int r = read_path(v, in, "path", &shown, &real, err);

	(void)call;
	sb_rpc_fields_init(&f, in);
	depth = sb_rpc_field_int(&f, "depth", 0, 1000);
	if (r == 0)
		r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = about(err,
			sb_guest_dir(v->e->guests, v->r->id, real, (unsigned)depth, &v->call, &e,
				&n, err),
			shown);
	if (r < 0)
		return r;
	qsort(e, n, sizeof *e, by_name);
	list = json_array();
	for (size_t i = 0; i < n; i++) {
		sb_autofree char *path =
			sb_str_printf("%s/%s", strcmp(shown, "/") == 0 ? "" : shown, e[i].name);

		if (path)
			(void)json_array_append_new(list, sb_e2b_entry(&e[i], path));
	}
	sb_guest_entries_free(e, n);
	*out = json_pack("{s:o}", "entries", list);
	return 0;
}

static json_t *
change_json(const struct sb_guest_event *ev, const char *shown)
{
	static const char *const names[] = { "EVENT_TYPE_CREATE", "EVENT_TYPE_WRITE",
		"EVENT_TYPE_REMOVE", "EVENT_TYPE_RENAME", "EVENT_TYPE_CHMOD" };
	json_t *o = json_pack("{s:o, s:s}", "name", sb_rpc_json_text(ev->name, strlen(ev->name)),
		"type", names[ev->change - 1]);

	if (ev->entry) {
		sb_autofree char *path = sb_str_printf("%s/%s", shown, ev->name);

		if (path)
			(void)json_object_set_new(o, "entry", sb_e2b_entry(ev->entry, path));
	}
	return o;
}

/* Begins the watch that a request asks for. */
static int
begin_watch(struct sb_e2b_visit *v, const json_t *in, char **shown, struct sb_guest_stream **s,
	struct sb_error *err)
{
	sb_autofree char *real = NULL;
	struct sb_guest_entry e = { 0 };
	struct sb_rpc_fields f;
	unsigned flags;
	int r = read_path(v, in, "path", shown, &real, err);

	sb_rpc_fields_init(&f, in);
	flags = (sb_rpc_field_bool(&f, "recursive") ? SB_GUEST_DEEP : 0) |
		(sb_rpc_field_bool(&f, "includeEntry") ? SB_GUEST_ENTRIES : 0);
	if (r == 0)
		r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_guest_stat(v->e->guests, v->r->id, real, &v->call, &e, err);
	if (r == 0 && e.kind != 'd' && e.kind != 'l') {
		r = sb_fail(err, SB_E_INVAL, "it is not a directory");
		err->sys = ENOTDIR;
	}
	sb_guest_entry_clear(&e);
	if (r == 0)
		r = sb_guest_watch(v->e->guests, v->r->id, real, flags, &v->call, s, err);
	return *shown ? about(err, r, *shown) : r;
}

static int
run_watch(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	sb_autofree char *shown = NULL;
	struct sb_guest_stream *s = NULL;
	int64_t every = sb_e2b_keepalive(call);
	struct sb_guest_event ev;
	int r = begin_watch(v, in, &shown, &s, err);

	(void)out;
	if (r < 0)
		return r;
	r = sb_e2b_send(call, json_pack("{s:{}}", "start"), err);
	while (r == 0) {
		r = sb_guest_next(s, every, &v->call, &ev, err);
		if (r < 0)
			break;
		r = sb_e2b_send(call,
			r == 0 ? json_pack("{s:{}}", "keepalive") :
				 json_pack("{s:o}", "filesystem", change_json(&ev, shown)),
			err);
	}
	sb_guest_leave(s);
	return r;
}

static void
watcher_free(struct sb_e2b_watcher *w)
{
	sb_guest_leave(w->s);
	free(w->shown);
	free(w);
}

static int
run_make_watcher(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_e2b_watcher *w = calloc(1, sizeof *w);
	struct sb_e2b *e = v->e;
	uint8_t random[16];
	size_t n = 0;
	int r = w ? sb_random(random, sizeof random, err) :
		    sb_fail(err, SB_E_NOMEM, "out of memory");

	(void)call;
	if (r == 0)
		r = begin_watch(v, in, &w->shown, &w->s, err);
	if (r == 0) {
		(void)sb_str_hex(random, sizeof random, w->id);
		memcpy(w->sandbox, v->r->id, sizeof w->sandbox);
		(void)pthread_mutex_lock(&e->mu);
		for (const struct sb_e2b_watcher *o = e->watchers; o; o = o->next)
			n += strcmp(o->sandbox, w->sandbox) == 0;
		if (n < WATCHERS_MAX) {
			w->next = e->watchers;
			e->watchers = w;
		}
		(void)pthread_mutex_unlock(&e->mu);
		if (n >= WATCHERS_MAX)
			r = sb_fail(err, SB_E_LIMIT, "the sandbox has %d watchers already",
				WATCHERS_MAX);
		else
			*out = json_pack("{s:s}", "watcherId", w->id);
	}
	if (r < 0 && w)
		watcher_free(w);
	return r;
}

/* The watcher, taken; NULL: there is none, or another call has it. */
static struct sb_e2b_watcher *
take(struct sb_e2b_visit *v, const json_t *in, bool remove, struct sb_error *err)
{
	struct sb_e2b_watcher *w = NULL;
	struct sb_rpc_fields f;
	const char *id;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_field_str(&f, "watcherId", 64, SB_RPC_REQUIRED);
	if (sb_rpc_fields_check(&f, err) < 0)
		return NULL;
	(void)pthread_mutex_lock(&v->e->mu);
	for (struct sb_e2b_watcher **p = &v->e->watchers; *p; p = &(*p)->next)
		if (strcmp((*p)->id, id) == 0 && strcmp((*p)->sandbox, v->r->id) == 0 &&
			!(*p)->busy) {
			w = *p;
			w->busy = true;
			if (remove)
				*p = w->next;
			break;
		}
	(void)pthread_mutex_unlock(&v->e->mu);
	if (!w)
		(void)sb_fail(err, SB_E_NOTFOUND, "watcher %.64s was not found", id);
	return w;
}

static int
run_events(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_e2b_watcher *w = take(v, in, false, err);
	json_t *list = json_array();
	struct sb_guest_event ev;
	int r = w ? 0 : err->code;

	(void)call;
	while (r == 0 && json_array_size(list) < EVENTS_MAX &&
		(r = sb_guest_next(w->s, 0, &v->call, &ev, err)) == 1) {
		(void)json_array_append_new(list, change_json(&ev, w->shown));
		r = 0;
	}
	if (w) {
		bool over;

		(void)pthread_mutex_lock(&v->e->mu);
		w->busy = false;
		over = w->over;
		(void)pthread_mutex_unlock(&v->e->mu);
		if (over)
			watcher_free(w);
	}
	*out = json_pack("{s:o}", "events", list);
	return r;
}

static int
run_drop_watcher(struct sb_rpc_call *call, struct sb_e2b_visit *v, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_e2b_watcher *w = take(v, in, true, err);

	(void)call;
	(void)out;
	if (!w)
		return err->code;
	watcher_free(w);
	return 0;
}

void
sb_e2b_watchers_end(struct sb_e2b *e, const char *id)
{
	struct sb_e2b_watcher *gone = NULL;

	(void)pthread_mutex_lock(&e->mu);
	for (struct sb_e2b_watcher **p = &e->watchers; *p;) {
		struct sb_e2b_watcher *w = *p;

		if (id && strcmp(w->sandbox, id) != 0) {
			p = &w->next;
			continue;
		}
		*p = w->next;
		w->over = true;
		/* Who has it frees it. */
		if (!w->busy) {
			w->next = gone;
			gone = w;
		}
	}
	(void)pthread_mutex_unlock(&e->mu);
	while (gone) {
		struct sb_e2b_watcher *w = gone;

		gone = w->next;
		watcher_free(w);
	}
}

#define METHOD(name, how) \
	static int on_##name(struct sb_rpc_call *call, const struct sb_query *q, \
		struct sb_error *err) \
	{ \
		(void)q; \
		return sb_e2b_##how(call, run_##name, err); \
	}
METHOD(stat, unary)
METHOD(mkdir, unary)
METHOD(move, unary)
METHOD(remove, unary)
METHOD(dir, unary)
METHOD(watch, stream)
METHOD(make_watcher, unary)
METHOD(events, unary)
METHOD(drop_watcher, unary)

#define UNARY(name, run) \
	{ \
		"POST", "/filesystem.Filesystem/" name, SB_E2B_UNARY, run, SB_RPC_HTTP_WHOLE, \
			false, false, false \
	}
const struct sb_e2b_route sb_e2b_filesystem_routes[] = {
	UNARY("Stat", on_stat),
	UNARY("MakeDir", on_mkdir),
	UNARY("Move", on_move),
	UNARY("Remove", on_remove),
	UNARY("ListDir", on_dir),
	{ "POST", "/filesystem.Filesystem/WatchDir", SB_E2B_STREAM, on_watch, SB_RPC_HTTP_WHOLE,
		true, true, false },
	UNARY("CreateWatcher", on_make_watcher),
	UNARY("GetWatcherEvents", on_events),
	UNARY("RemoveWatcher", on_drop_watcher),
	{ NULL, NULL, SB_E2B_UNARY, NULL, SB_RPC_HTTP_NO_BODY, false, false, false },
};
