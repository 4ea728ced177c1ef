/* SPDX-License-Identifier: MIT */
/* What the user is told at the end: results as lines or as JSON, complaints, the exit code. */
#include "config.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include <base/base64.h>
#include <bin/common/progress.h>
#include <bin/common/units.h>
#include <bin/sbsync/sbsync.h>

void
complain(const char *fmt, ...)
{
	va_list ap;

	progress_hide();
	(void)fputs("sbsync: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
}

void
print_json(json_t *j)
{
	/* In ASCII a name writes nothing to a terminal, and is still the name. */
	(void)json_dumpf(j, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	(void)fputc('\n', stdout);
	json_decref(j);
}

int
exit_code(int code)
{
	switch (code) {
	case 0: return EXIT_DONE;
	case SB_E_USAGE: return EXIT_USAGE;
	case SB_E_LOCKED: return EXIT_LOCKED;
	case SB_E_IDENTITY:
	case SB_E_BRAKE: return EXIT_BRAKE;
	default: return EXIT_FAILED;
	}
}

static char *
shown(const char *path, char *buf, size_t size)
{
	return sb_escape(path, strlen(path), buf, size);
}

/* The path as text for people, and its bytes for programs. */
static void
set_bytes(json_t *o, const char *key, const char *path, size_t len)
{
	size_t room = 4 * (len + 3);
	char name[64], *text = malloc(room + 1);

	if (!text)
		return;
	json_object_set_new(o, key, json_string(sb_escape(path, len, text, room + 1)));
	(void)snprintf(name, sizeof name, "%s_base64", key);
	if (sb_base64_encode(path, len, text, room - 3)) {
		size_t n = strlen(text);

		while (n % 4)
			text[n++] = '=';
		text[n] = '\0';
		json_object_set_new(o, name, json_string(text));
	}
	free(text);
}

void
json_set_path(json_t *o, const char *key, const char *path)
{
	size_t len = strlen(path);
	json_t *s = json_stringn(path, len); /* NULL when it is not UTF-8 */

	if (s)
		json_object_set_new(o, key, s);
	else
		set_bytes(o, key, path, len);
}

/* How many rows of a list are printed: a sandbox decides how many there are. */
#define JSON_ROWS 10000
#define TEXT_ROWS 1000

static json_t *
notes_json(const struct sb_sync_notes *l, bool saved)
{
	json_t *a = json_array();

	for (size_t i = 0; i < l->n && i < JSON_ROWS; i++) {
		json_t *o = json_object();

		json_set_path(o, "path", l->v[i].path);
		if (saved && l->v[i].saved_as)
			json_set_path(o, "saved_as", l->v[i].saved_as);
		else if (saved)
			json_object_set_new(o, "saved_as", json_null());
		json_object_set_new(o, "why", json_string(l->v[i].why));
		json_array_append_new(a, o);
	}
	return a;
}

static json_t *
changes_json(const struct sb_sync_result *res)
{
	json_t *a = json_array();

	for (size_t i = 0; i < res->n_changes && i < JSON_ROWS; i++) {
		const struct sb_sync_change *c = &res->changes[i];
		json_t *o = json_object();

		json_set_path(o, "path", c->path);
		json_object_set_new(o, "side", json_string(c->side));
		json_object_set_new(o, "what", json_string(c->what));
		if (c->from)
			json_set_path(o, "from", c->from);
		json_object_set_new(o, "size", json_integer((json_int_t)c->size));
		json_array_append_new(a, o);
	}
	return a;
}

/* What was left out of the lists: how many of each; NULL when none were. */
static json_t *
more_json(const struct sync_args *a, const struct sb_sync_result *res)
{
	const struct {
		const char *key;
		size_t n;
	} lists[] = {
		{ "conflicts", res->conflicts.n },
		{ "merged", res->merged.n },
		{ "skipped", res->skipped.n },
		{ "auto_exec", res->auto_exec.n },
		{ "escaping_links", res->escaping_links.n },
		{ "errors", res->errors.n },
		{ "changes", res->n_changes },
	};
	json_t *o = NULL;

	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		if (lists[i].n <= JSON_ROWS)
			continue;
		o = o ? o : json_object();
		json_object_set_new(o, lists[i].key,
			json_integer((json_int_t)(lists[i].n - JSON_ROWS)));
	}
	return o;
}

static void
print_result(const struct sync_args *a, int code, const struct sb_error *err,
	const struct sb_sync_result *res)
{
	json_t *o = json_object(), *phases = json_object(),
	       *errors = notes_json(&res->errors, false), *more = more_json(a, res);

	json_object_set_new(o, "result",
		json_string(code < 0 || res->errors.n ? "error" :
				res->conflicts.n      ? "conflicts" :
							"ok"));
	json_object_set_new(o, "direction",
		res->direction ? json_string(res->direction) : json_null());
	json_object_set_new(o, "reason", json_string(res->reason));
	json_object_set_new(o, "dry_run", json_boolean(a->dry_run));
	json_object_set_new(o, "entries", json_integer((json_int_t)res->entries));
	json_object_set_new(o, "files_synced", json_integer((json_int_t)res->files_synced));
	json_object_set_new(o, "bytes_transferred",
		json_integer((json_int_t)res->bytes_transferred));
	json_object_set_new(o, "bytes_wire_up", json_integer((json_int_t)res->bytes_wire_up));
	json_object_set_new(o, "bytes_wire_down", json_integer((json_int_t)res->bytes_wire_down));
	json_object_set_new(o, "round_trips", json_integer((json_int_t)res->round_trips));
	json_object_set_new(o, "reconnects", json_integer((json_int_t)res->reconnects));
	json_object_set_new(o, "files_deleted", json_integer((json_int_t)res->files_deleted));
	json_object_set_new(o, "files_moved", json_integer((json_int_t)res->files_moved));
	json_object_set_new(o, "files_delta", json_integer((json_int_t)res->files_delta));
	json_object_set_new(o, "conflicts", notes_json(&res->conflicts, true));
	json_object_set_new(o, "merged", notes_json(&res->merged, false));
	json_object_set_new(o, "skipped", notes_json(&res->skipped, false));
	json_object_set_new(o, "auto_exec", notes_json(&res->auto_exec, false));
	json_object_set_new(o, "escaping_links", notes_json(&res->escaping_links, false));
	json_object_set_new(o, "changes", changes_json(res));
	if (code < 0) {
		json_t *e = json_object();

		json_object_set_new(e, "code", json_string(sb_code_name(code)));
		json_object_set_new(e, "message", json_string(err->msg));
		json_array_insert_new(errors, 0, e);
	}
	json_object_set_new(o, "errors", errors);
	if (more)
		json_object_set_new(o, "more", more);
	json_object_set_new(o, "duration_ms", json_integer(res->duration_ms));
	for (int i = 0; i < SB_STEPS; i++)
		json_object_set_new(phases, sb_step_name((enum sb_step)i),
			json_integer(res->phases_ms[i]));
	json_object_set_new(o, "phases_ms", phases);
	print_json(o);
}

/* `before` and `after` say what became of the version beside a path. */
static void
print_notes(const struct sb_sync_notes *l, const char *word, const char *before, const char *after)
{
	if (l->n > TEXT_ROWS)
		(void)fprintf(stderr, "%s: %zu paths, the first %d of them:\n", word, l->n,
			TEXT_ROWS);
	for (size_t i = 0; i < l->n && i < TEXT_ROWS; i++) {
		char buf[4096], as[4096];

		(void)fprintf(stderr, "%s: %s: %s", word, shown(l->v[i].path, buf, sizeof buf),
			l->v[i].why);
		if (l->v[i].saved_as)
			(void)fprintf(stderr, " (%s%s%s)", before,
				shown(l->v[i].saved_as, as, sizeof as), after);
		(void)fputc('\n', stderr);
	}
}

static void
print_changes(const struct sb_sync_result *res)
{
	for (size_t i = 0; i < res->n_changes; i++) {
		const struct sb_sync_change *c = &res->changes[i];
		char buf[8192], from[8192];

		(void)printf("%s %-7s %s", strcmp(c->side, "local") == 0 ? "<-" : "->", c->what,
			shown(c->path, buf, sizeof buf));
		if (c->from)
			(void)printf(" (from %s)", shown(c->from, from, sizeof from));
		(void)putchar('\n');
	}
}

void
print_done(const struct sb_sync_result *res, FILE *f)
{
	time_t now = time(NULL);
	struct tm tm;
	char at[16] = "";

	if (localtime_r(&now, &tm))
		(void)strftime(at, sizeof at, "%H:%M:%S", &tm);
	for (size_t i = 0; i < res->n_changes && i < SB_SYNC_CHANGES_MAX; i++) {
		const struct sb_sync_change *c = &res->changes[i];
		char buf[8192], from[8192];

		(void)fprintf(f, "%s %s %-7s %s", at, strcmp(c->side, "local") == 0 ? "<-" : "->",
			c->what, shown(c->path, buf, sizeof buf));
		if (c->from)
			(void)fprintf(f, " (from %s)", shown(c->from, from, sizeof from));
		(void)fputc('\n', f);
	}
}

static void
print_stats(const struct sb_sync_result *res)
{
	char up[24], down[24], bytes[24];

	(void)printf("entries %llu, files synced %llu, deleted %llu, moved %llu, sent as patch or "
		     "delta %llu\n",
		(unsigned long long)res->entries, (unsigned long long)res->files_synced,
		(unsigned long long)res->files_deleted, (unsigned long long)res->files_moved,
		(unsigned long long)res->files_delta);
	(void)printf("content %s, on the wire %s up, %s down\n",
		unit_bytes(res->bytes_transferred, bytes, sizeof bytes),
		unit_bytes(res->bytes_wire_up, up, sizeof up),
		unit_bytes(res->bytes_wire_down, down, sizeof down));
	(void)printf("time %lld ms:", (long long)res->duration_ms);
	for (int i = 0; i < SB_STEPS; i++)
		(void)printf(" %s %lld", sb_step_name((enum sb_step)i),
			(long long)res->phases_ms[i]);
	(void)putchar('\n');
}

int
report(const struct sync_args *a, int code, const struct sb_error *err,
	const struct sb_sync_result *res)
{
	bool trouble = res->errors.n > 0;

	if (a->json)
		print_result(a, code, err, res);
	if (code < 0) {
		complain("%s", err->msg);
		return exit_code(code);
	}
	if (!a->json) {
		char bytes[24];

		print_notes(&res->conflicts, "conflict", "kept as ", "");
		if (res->conflicts.n && a->session && !a->quiet)
			(void)fprintf(stderr,
				"sbsync: next: sbsync conflicts --diff %s shows them, sbsync "
				"resolve "
				"decides\n",
				a->session);
		print_notes(&res->errors, "error", "kept as ", "");
		if (!a->quiet) {
			print_notes(&res->merged, "decided", "",
				a->dry_run ? " would go" : " is gone");
			print_notes(&res->skipped, "skipped", "kept as ", "");
			print_notes(&res->auto_exec, "note", "kept as ", "");
			print_notes(&res->escaping_links, "note", "kept as ", "");
		}
		if (!a->dry_run && a->verbose)
			print_done(res, stdout);
		if (a->dry_run)
			print_changes(res);
		else if (!a->quiet && !a->stats)
			(void)printf("%llu files synced (%s), %llu deleted, %llu moved in %.2f s\n",
				(unsigned long long)res->files_synced,
				unit_bytes(res->bytes_transferred, bytes, sizeof bytes),
				(unsigned long long)res->files_deleted,
				(unsigned long long)res->files_moved,
				(double)res->duration_ms / 1000.0);
		if (a->stats)
			print_stats(res);
	}
	if (trouble)
		return EXIT_FAILED;
	return res->conflicts.n ? EXIT_CONFLICTS : EXIT_DONE;
}
