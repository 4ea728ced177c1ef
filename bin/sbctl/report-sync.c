/* SPDX-License-Identifier: MIT */
/* What a sync did, for people or as JSON. */
#include "config.h"

#include <jansson.h>

#include <bin/common/units.h>
#include <bin/sbctl/ctl.h>

static json_t *
notes_json(const struct sb_sync_notes *l)
{
	json_t *a = json_array();

	for (size_t i = 0; i < l->n; i++) {
		json_t *o = json_object();

		(void)json_object_set_new(o, "path", ctl_json_text(l->v[i].path));
		if (l->v[i].saved_as)
			(void)json_object_set_new(o, "saved_as", ctl_json_text(l->v[i].saved_as));
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
ctl_report_sync(const struct ctl *ctl, const struct sb_state *s, const struct sb_sync_result *r,
	int code, const struct sb_error *err, FILE *f)
{
	char size[24], path[CTL_SHOWN], as[CTL_SHOWN];

	progress_hide();
	if (ctl->a.json) {
		sync_json(s, r, code, err, f);
		return;
	}
	if (code < 0 || ctl->a.quiet)
		return;
	for (size_t i = 0; (ctl->a.dry_run || ctl->a.verbose) && i < r->n_changes; i++)
		(void)fprintf(f, "%s %-6s %s\n", r->changes[i].side, r->changes[i].what,
			ctl_safe(r->changes[i].path, path));
	for (size_t i = 0; i < r->conflicts.n; i++)
		(void)fprintf(f, "conflict: %s (%s)%s%s\n", ctl_safe(r->conflicts.v[i].path, path),
			r->conflicts.v[i].why, r->conflicts.v[i].saved_as ? ", kept as " : "",
			ctl_safe(r->conflicts.v[i].saved_as, as));
	for (size_t i = 0; i < r->auto_exec.n; i++)
		(void)fprintf(f, "look at: %s (%s)\n", ctl_safe(r->auto_exec.v[i].path, path),
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
