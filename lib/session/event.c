/* SPDX-License-Identifier: MIT */
/* Tells what happens to a sandbox: a line in its folder, and a call to whoever asked. */
#include "config.h"

#include <session/session-priv.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include <base/buf.h>
#include <base/file.h>
#include <provider/state-json.h>

#define LINE_MAX_BYTES 65536

static int64_t
unix_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
put_text(json_t *o, const char *key, const char *value)
{
	if (value)
		(void)json_object_set_new(o, key, sb_state_json_text(value));
}

static void
put_sync(json_t *o, const struct sb_sync_result *r)
{
	(void)json_object_set_new(o, "files_synced", json_integer((json_int_t)r->files_synced));
	(void)json_object_set_new(o, "files_deleted", json_integer((json_int_t)r->files_deleted));
	(void)json_object_set_new(o, "files_moved", json_integer((json_int_t)r->files_moved));
	(void)json_object_set_new(o, "bytes_transferred",
		json_integer((json_int_t)r->bytes_transferred));
	(void)json_object_set_new(o, "bytes_wire_up", json_integer((json_int_t)r->bytes_wire_up));
	(void)json_object_set_new(o, "bytes_wire_down",
		json_integer((json_int_t)r->bytes_wire_down));
	(void)json_object_set_new(o, "conflicts", json_integer((json_int_t)r->conflicts.n));
	(void)json_object_set_new(o, "skipped", json_integer((json_int_t)r->skipped.n));
}

char *
sb_event_json(const struct sb_event *ev)
{
	json_t *o = json_object();
	char *text;

	if (!o)
		return NULL;
	(void)json_object_set_new(o, "time_ms", json_integer(ev->time_ms));
	put_text(o, "event", ev->kind);
	put_text(o, "sandbox_id", ev->sandbox_id);
	put_text(o, "session_id", ev->session_id);
	put_text(o, "backend", sb_backend_name(ev->backend));
	put_text(o, "profile", ev->profile);
	put_text(o, "reason", ev->reason);
	put_text(o, "direction", ev->direction);
	if (ev->duration_ms >= 0)
		(void)json_object_set_new(o, "duration_ms", json_integer(ev->duration_ms));
	if (ev->code < 0)
		put_text(o, "error_kind", sb_code_name(ev->code));
	put_text(o, "error", ev->error);
	if (ev->exit_code >= 0)
		(void)json_object_set_new(o, "exit_code", json_integer(ev->exit_code));
	if (ev->sync)
		put_sync(o, ev->sync);
	text = json_dumps(o, JSON_COMPACT);
	json_decref(o);
	return text;
}

static void
emit(struct sb_sandbox *sb, struct sb_event *ev)
{
	sb_autoclose int fd = openat(sb->dirfd, "events",
		O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	sb_autofree char *line = NULL;

	ev->time_ms = unix_ms();
	ev->sandbox_id = sb->state.sandbox_id;
	ev->session_id = sb->state.session_id;
	ev->profile = sb->state.profile;
	ev->backend = sb->state.backend;
	line = sb_event_json(ev);
	sb_buf_init(&b, LINE_MAX_BYTES);
	if (line)
		sb_buf_addf(&b, "%s\n", line);
	/* One write, so that lines of several processes do not mix. */
	if (fd >= 0 && !b.failed)
		(void)sb_file_write_all(fd, b.data, b.len, NULL);
	if (sb->k->on_event)
		sb->k->on_event(ev, sb->k->event_arg);
}

void
sb_event_tell(struct sb_sandbox *sb, const char *kind, int code, const char *error, int exit_code)
{
	struct sb_event ev = { .kind = kind,
		.code = code,
		.error = error,
		.exit_code = exit_code,
		.duration_ms = -1 };

	emit(sb, &ev);
}

struct sb_event_span
sb_event_begin(struct sb_sandbox *sb, const char *what, const char *reason, const char *direction)
{
	struct sb_event_span e = { .sb = sb,
		.what = what,
		.reason = reason,
		.direction = direction,
		.start = sb_now_ms() };
	char kind[64];
	struct sb_event ev = { .kind = kind,
		.reason = reason,
		.direction = direction,
		.duration_ms = -1,
		.exit_code = -1 };

	(void)snprintf(kind, sizeof kind, "sandbox.%s.start", what);
	emit(sb, &ev);
	return e;
}

int
sb_event_end(const struct sb_event_span *e, int code, const struct sb_error *err,
	const struct sb_sync_result *res)
{
	char kind[64];
	struct sb_event ev = { .kind = kind,
		.reason = e->reason,
		.direction = e->direction,
		.code = code,
		.duration_ms = sb_now_ms() - e->start,
		.error = code < 0 && err ? err->msg : NULL,
		.sync = code == 0 ? res : NULL,
		.exit_code = -1 };

	(void)snprintf(kind, sizeof kind, "sandbox.%s.%s", e->what,
		code < 0 ? "error" : "complete");
	emit(e->sb, &ev);
	return code;
}
