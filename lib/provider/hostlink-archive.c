/* SPDX-License-Identifier: MIT */
/* Puts a session of a sandbox host away (declared in provider/hostlink.h). */
#include "config.h"

#include <provider/hostlink.h>

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/host.h>

#define SNAPSHOT "archived"

SB_CLEANUP_PTR(json_t, json_decref)

/* Takes `in`. `out` (may be NULL) gets the answer. */
static int
ask(struct sb_hostlink *l, const char *method, json_t *in, const struct sb_call *call, json_t **out,
	struct sb_error *err)
{
	sb_autofree char *text = in ? json_dumps(in, JSON_COMPACT) : NULL;
	sb_autofree char *answer = NULL;
	int r;

	json_decref(in);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = sb_hostlink_call(l, method, text, call, &answer, err);
	if (r == 0 && out) {
		*out = json_loads(answer, 0, NULL);
		r = *out ? 0 : sb_fail(err, SB_E_PROTO, "%s: the answer is no JSON", method);
	}
	return r;
}

static json_t *
about(const char *id)
{
	return json_pack("{s:s}", "SessionID", id);
}

/* Ends every process of the session that still runs. */
static int
end_processes(struct sb_hostlink *l, const char *id, const struct sb_call *call,
	struct sb_error *err)
{
	sb_auto(json_t) json_t *all = NULL;
	json_t *one;
	size_t i;
	int r = ask(l, "ListProcesses", about(id), call, &all, err);

	json_array_foreach(json_object_get(all, "Processes"), i, one)
	{
		const char *process = json_string_value(json_object_get(one, "ProcessID"));

		if (r < 0 || !process || json_object_get(one, "ExitCode"))
			continue;
		r = ask(l, "KillProcess",
			json_pack("{s:s,s:s,s:i}", "SessionID", id, "ProcessID", process, "Signal",
				SIGKILL),
			call, NULL, err);
		if (r == SB_E_PROCESS_NOT_FOUND)
			r = 0;
	}
	return r;
}

/* The files as they are now under a name, where the host can; an older one makes room. */
static int
keep_files(struct sb_hostlink *l, const char *id, const struct sb_call *call, struct sb_error *err)
{
	sb_auto(json_t) json_t *answer = NULL;
	int r = ask(l, "GetCapabilities", json_object(), call, &answer, err);

	if (r < 0 ||
		!json_is_true(json_object_get(json_object_get(answer, "ServerCapabilities"),
			"Snapshots")))
		return r;
	r = ask(l, "DeleteSnapshot",
		json_pack("{s:s,s:s}", "SessionID", id, "SnapshotID", SNAPSHOT), call, NULL, err);
	if (r < 0 && r != SB_E_SNAPSHOT_NOT_FOUND)
		return r;
	return ask(l, "CreateSnapshot", json_pack("{s:s,s:s}", "SessionID", id, "Name", SNAPSHOT),
		call, NULL, err);
}

/* Adds what finding it needs to the labels there are. */
static int
label(struct sb_hostlink *l, const struct sb_state *s, const json_t *session,
	const struct sb_call *call, struct sb_error *err)
{
	json_t *in = about(s->sandbox_id),
	       *labels = json_deep_copy(json_object_get(session, "Labels"));
	sb_auto(sb_buf) struct sb_buf dirs;

	sb_buf_init(&dirs, SB_HOST_LABEL_VALUE_MAX);
	for (size_t i = 0; i < s->runtime_dirs.n; i++)
		sb_buf_addf(&dirs, "%s\n", s->runtime_dirs.v[i]);
	if (!labels)
		labels = json_object();
	(void)json_object_set_new(labels, SB_HOSTLINK_INSTANCE, json_string(s->instance_id));
	(void)json_object_set_new(labels, SB_HOSTLINK_ROOT, json_string(s->runtime_root));
	if (dirs.len && !dirs.failed)
		(void)json_object_set_new(labels, SB_HOSTLINK_DIRS,
			json_string((const char *)dirs.data));
	(void)json_object_set_new(in, "Labels", labels);
	return ask(l, "SetLabels", in, call, NULL, err);
}

int
sb_hostlink_archive(struct sb_hostlink *l, const struct sb_state *s, const struct sb_call *call,
	struct sb_error *err)
{
	const char *id = s->sandbox_id;
	sb_auto(json_t) json_t *answer = NULL;
	const char *state;
	int r = ask(l, "GetSession", about(id), call, &answer, err);

	state = json_string_value(json_object_get(json_object_get(answer, "Session"), "State"));
	/* Gone, or put away before. */
	if (r == SB_E_SESSION_NOT_FOUND || (state && strcmp(state, "paused") == 0))
		return 0;
	if (r == 0)
		r = label(l, s, json_object_get(answer, "Session"), call, err);
	if (r == 0)
		r = end_processes(l, id, call, err);
	if (r == 0)
		r = keep_files(l, id, call, err);
	return r < 0 ? r : ask(l, "PauseSession", about(id), call, NULL, err);
}
