/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/box.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <bin/common/units.h>
#include <provider/state-json.h>

#define SHOWN 4096

static const char *
safe(const char *s, char *buf)
{
	return sb_escape(s ? s : "", s ? strlen(s) : 0, buf, SHOWN);
}

#define PROGRESS_AFTER_MS 700 /* short syncs need no line */
#define PROGRESS_EVERY_MS 100

/* One line on stderr. Calls come from any thread of a sync. */
static struct {
	pthread_mutex_t mu;
	int64_t started, drawn;
	bool shown;
} line = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void
on_progress(const struct sb_progress *p, void *arg)
{
	int64_t now = sb_now_ms();
	char size[24];

	(void)arg;
	(void)pthread_mutex_lock(&line.mu);
	if (!line.started)
		line.started = now;
	if (now - line.started >= PROGRESS_AFTER_MS && now - line.drawn >= PROGRESS_EVERY_MS) {
		line.drawn = now;
		line.shown = true;
		(void)fprintf(stderr, "\r%s: %llu files, %s", sb_step_name(p->step),
			(unsigned long long)p->files, unit_bytes(p->bytes, size, sizeof size));
		if (p->bytes_total)
			(void)fprintf(stderr, " of %s",
				unit_bytes(p->bytes_total, size, sizeof size));
		(void)fputs("\033[K", stderr);
		(void)fflush(stderr);
	}
	(void)pthread_mutex_unlock(&line.mu);
}

void
box_progress_begin(struct box *b)
{
	if (!b->a.quiet && !b->a.json && isatty(STDERR_FILENO))
		b->call.progress = on_progress;
}

void
box_progress_end(void)
{
	(void)pthread_mutex_lock(&line.mu);
	if (line.shown)
		(void)fputs("\r\033[K", stderr);
	line.shown = false;
	line.started = 0;
	(void)pthread_mutex_unlock(&line.mu);
}

static json_t *
notes_json(const struct sb_sync_notes *l)
{
	json_t *a = json_array();

	for (size_t i = 0; i < l->n; i++) {
		json_t *o = json_object();

		(void)json_object_set_new(o, "path", sb_state_json_text(l->v[i].path));
		if (l->v[i].saved_as)
			(void)json_object_set_new(o, "saved_as",
				sb_state_json_text(l->v[i].saved_as));
		(void)json_object_set_new(o, "why", json_string(l->v[i].why));
		(void)json_array_append_new(a, o);
	}
	return a;
}

static void
sync_json(const struct sb_state *s, const struct sb_sync_result *r, int code,
	const struct sb_error *err, FILE *f)
{
	json_t *o = json_object(), *errors = notes_json(&r->errors);

	(void)json_object_set_new(o, "result",
		json_string(code < 0           ? "error" :
				r->conflicts.n ? "conflicts" :
						 "ok"));
	(void)json_object_set_new(o, "sandbox_id", json_string(s->sandbox_id));
	(void)json_object_set_new(o, "state", json_string(sb_life_name(s->life)));
	if (s->exit_code >= 0)
		(void)json_object_set_new(o, "exit_code", json_integer(s->exit_code));
	if (r->direction)
		(void)json_object_set_new(o, "direction", json_string(r->direction));
	if (r->reason)
		(void)json_object_set_new(o, "reason", json_string(r->reason));
	(void)json_object_set_new(o, "files_synced", json_integer((json_int_t)r->files_synced));
	(void)json_object_set_new(o, "files_deleted", json_integer((json_int_t)r->files_deleted));
	(void)json_object_set_new(o, "files_moved", json_integer((json_int_t)r->files_moved));
	(void)json_object_set_new(o, "bytes_transferred",
		json_integer((json_int_t)r->bytes_transferred));
	(void)json_object_set_new(o, "bytes_wire_up", json_integer((json_int_t)r->bytes_wire_up));
	(void)json_object_set_new(o, "bytes_wire_down",
		json_integer((json_int_t)r->bytes_wire_down));
	(void)json_object_set_new(o, "conflicts", notes_json(&r->conflicts));
	(void)json_object_set_new(o, "skipped", notes_json(&r->skipped));
	if (code < 0 && err)
		(void)json_array_append_new(errors,
			json_pack("{s:s, s:s}", "error", sb_code_name(code), "why", err->msg));
	(void)json_object_set_new(o, "errors", errors);
	(void)json_object_set_new(o, "duration_ms", json_integer(r->duration_ms));
	(void)json_dumpf(o, f, JSON_COMPACT);
	(void)fputc('\n', f);
	json_decref(o);
}

void
box_report_sync(const struct box *b, const struct sb_state *s, const struct sb_sync_result *r,
	int code, const struct sb_error *err, FILE *f)
{
	char size[24], path[SHOWN], as[SHOWN];

	box_progress_end();
	if (b->a.json) {
		sync_json(s, r, code, err, f);
		return;
	}
	if (code < 0 || b->a.quiet)
		return;
	for (size_t i = 0; i < r->n_changes; i++)
		(void)fprintf(f, "%s %-6s %s\n", r->changes[i].side, r->changes[i].what,
			safe(r->changes[i].path, path));
	for (size_t i = 0; i < r->conflicts.n; i++)
		(void)fprintf(f, "conflict: %s (%s)%s%s\n", safe(r->conflicts.v[i].path, path),
			r->conflicts.v[i].why, r->conflicts.v[i].saved_as ? ", kept as " : "",
			safe(r->conflicts.v[i].saved_as, as));
	for (size_t i = 0; i < r->auto_exec.n; i++)
		(void)fprintf(f, "look at: %s (%s)\n", safe(r->auto_exec.v[i].path, path),
			r->auto_exec.v[i].why);
	if (s->sync_mode == SB_SYNC_MODE_NONE) {
		(void)fprintf(f, "sbctl: %s: nothing to sync; sandbox %s\n", s->sandbox_id,
			sb_life_name(s->life));
		return;
	}
	(void)fprintf(f,
		"sbctl: %s: %llu file%s (%s) synced, %llu deleted, %llu moved, %zu conflict%s; "
		"sandbox %s\n",
		s->sandbox_id, (unsigned long long)r->files_synced, r->files_synced == 1 ? "" : "s",
		unit_bytes(r->bytes_transferred, size, sizeof size),
		(unsigned long long)r->files_deleted, (unsigned long long)r->files_moved,
		r->conflicts.n, r->conflicts.n == 1 ? "" : "s", sb_life_name(s->life));
}

static void
print_time(const char *name, int64_t t)
{
	char text[64];
	time_t when = (time_t)t;
	struct tm tm;

	if (t && gmtime_r(&when, &tm) && strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &tm))
		(void)printf("%-15s %s\n", name, text);
}

static void
print_text(const char *name, const char *value)
{
	char text[SHOWN];

	if (value && value[0])
		(void)printf("%-15s %s\n", name, safe(value, text));
}

void
box_print_state(const struct box *b, const struct sb_state *s)
{
	json_t *o;

	if (b->a.json) {
		o = sb_state_json(s, NULL);
		(void)json_object_set_new(o, "owned", json_boolean(sb_state_owned(s)));
		(void)json_dumpf(o, stdout, JSON_INDENT(2));
		(void)fputc('\n', stdout);
		json_decref(o);
		return;
	}
	print_text("sandbox", s->sandbox_id);
	print_text("state", sb_life_name(s->life));
	print_text("backend", sb_backend_name(s->backend));
	print_text("profile", s->profile);
	print_text("instance", s->instance_id);
	print_text("local", s->local_root);
	print_text("runtime", s->runtime_root);
	for (size_t i = 0; s->local_dirs && s->local_dirs[i]; i++) {
		print_text("also local", s->local_dirs[i]);
		print_text("also runtime",
			s->runtime_dirs &&
					sb_texts_count((const char *const *)s->runtime_dirs) > i ?
				s->runtime_dirs[i] :
				"");
	}
	print_text("sync mode", sb_sync_mode_name(s->sync_mode));
	print_text("persistence", sb_persist_name(s->persist));
	print_text("at the end", s->destroy_on_stop ? "ended by its persistence" : "kept");
	print_text("command", s->command);
	if (s->exit_code >= 0)
		(void)printf("%-15s %d\n", "exit code", s->exit_code);
	if (sb_state_owned(s))
		(void)printf("%-15s process %lld\n", "owner", (long long)s->owner_pid);
	print_time("created", s->created_at);
	print_time("prepared", s->prepared_at);
	print_time("last sync", s->last_sync_at);
	print_text("sync error", s->last_sync_error);
	print_text("error", s->last_error);
	print_time("ended", s->ended_at);
}

void
box_print_states(const struct box *b, const struct sb_state *v, size_t n)
{
	json_t *all;
	char local[SHOWN], command[SHOWN];

	if (b->a.json) {
		all = json_array();
		for (size_t i = 0; i < n; i++) {
			json_t *o = sb_state_json(&v[i], NULL);

			(void)json_object_set_new(o, "owned", json_boolean(sb_state_owned(&v[i])));
			(void)json_array_append_new(all, o);
		}
		(void)json_dumpf(all, stdout, JSON_INDENT(2));
		(void)fputc('\n', stdout);
		json_decref(all);
		return;
	}
	if (n == 0 && !b->a.quiet)
		(void)printf("no sandboxes\n");
	else if (n > 0)
		(void)printf("%-20s %-9s %-8s %-6s %s\n", "SANDBOX", "STATE", "BACKEND", "OWNER",
			"LOCAL / COMMAND");
	for (size_t i = 0; i < n; i++) {
		char owner[24] = "-";

		if (sb_state_owned(&v[i]))
			(void)snprintf(owner, sizeof owner, "%lld", (long long)v[i].owner_pid);
		(void)printf("%-20s %-9s %-8s %-6s %s%s%.40s\n", v[i].sandbox_id,
			sb_life_name(v[i].life), sb_backend_name(v[i].backend), owner,
			safe(v[i].local_root, local), v[i].command ? " / " : "",
			safe(v[i].command, command));
	}
}
