/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbctl/host.h>

static json_t *
no_fields(const struct host_args *a, struct sb_error *err)
{
	(void)a;
	(void)err;
	return json_object();
}

/* Drops a half-made request. */
static json_t *
checked(json_t *o, int code)
{
	if (code >= 0)
		return o;
	json_decref(o);
	return NULL;
}

static void
put_text(json_t *o, const char *key, const char *text)
{
	if (text)
		(void)json_object_set_new(o, key, json_string(text));
}

static json_t *
list_json(const struct sb_opt_list *l)
{
	json_t *v = json_array();

	for (size_t i = 0; i < l->n; i++)
		(void)json_array_append_new(v, json_string(l->v[i]));
	return v;
}

static json_t *
build_session(const struct host_args *a, struct sb_error *err)
{
	(void)err;
	return host_session_request(a);
}

static json_t *
build_create(const struct host_args *a, struct sb_error *err)
{
	json_t *o = json_object();

	put_text(o, "SessionID", a->id);
	put_text(o, "BaseSnapshot", a->base);
	(void)json_object_set_new(o, "Quota", json_integer((json_int_t)a->quota));
	(void)json_object_set_new(o, "Empty", json_boolean(a->empty));
	put_text(o, "Runtime", a->runtime);
	put_text(o, "Network", a->network);
	return checked(o, host_put_pairs(o, "Labels", &a->labels, err));
}

static json_t *
build_list(const struct host_args *a, struct sb_error *err)
{
	json_t *o = json_object();

	(void)json_object_set_new(o, "States", list_json(&a->states));
	(void)json_object_set_new(o, "Limit", json_integer(a->limit));
	return checked(o, host_put_pairs(o, "Labels", &a->labels, err));
}

static json_t *
build_get(const struct host_args *a, struct sb_error *err)
{
	json_t *o = host_session_request(a);

	(void)err;
	(void)json_object_set_new(o, "Measure", json_boolean(a->measure));
	return o;
}

static json_t *
build_label(const struct host_args *a, struct sb_error *err)
{
	struct sb_opt_list pairs = { .v = a->v + 1, .n = (size_t)a->n - 1 };
	json_t *o = host_session_request(a);

	return checked(o, host_put_pairs(o, "Labels", &pairs, err));
}

static json_t *
build_destroy(const struct host_args *a, struct sb_error *err)
{
	json_t *o = host_session_request(a);

	(void)err;
	(void)json_object_set_new(o, "Force", json_boolean(a->force));
	return o;
}

static json_t *
build_fork(const struct host_args *a, struct sb_error *err)
{
	json_t *o = host_session_request(a);

	put_text(o, "SnapshotID", a->snapshot);
	put_text(o, "NewSessionID", a->id);
	(void)json_object_set_new(o, "Quota", json_integer((json_int_t)a->quota));
	return checked(o, host_put_pairs(o, "Labels", &a->labels, err));
}

static json_t *
build_snapshot(const struct host_args *a, struct sb_error *err)
{
	json_t *o = host_session_request(a);

	(void)err;
	put_text(o, "Name", a->v[1]);
	return o;
}

static json_t *
build_of_snapshot(const struct host_args *a, struct sb_error *err)
{
	json_t *o = host_session_request(a);

	(void)err;
	put_text(o, "SnapshotID", a->v[1]);
	if (a->n > 2)
		put_text(o, "Tag", a->v[2]);
	(void)json_object_set_new(o, "KillTools", json_boolean(a->kill_tools));
	return o;
}

static json_t *
build_diff(const struct host_args *a, struct sb_error *err)
{
	json_t *o = host_session_request(a);

	(void)err;
	put_text(o, "From", a->v[1]);
	if (a->n > 2)
		put_text(o, "To", a->v[2]);
	(void)json_object_set_new(o, "Limit", json_integer(a->limit));
	return o;
}

static json_t *
build_launch(const struct host_args *a, struct sb_error *err)
{
	struct sb_opt_list args = { .v = a->v + 2, .n = (size_t)a->n - 2 };
	json_t *o = host_session_request(a);

	put_text(o, "Binary", a->v[1]);
	(void)json_object_set_new(o, "Args", list_json(&args));
	(void)json_object_set_new(o, "ExposePort", json_integer(a->expose_port));
	(void)json_object_set_new(o, "ReadyTimeout", json_integer(a->ready * 1000000));
	return checked(o, host_put_pairs(o, "Env", &a->env, err));
}

static json_t *
build_process(const struct host_args *a, struct sb_error *err)
{
	json_t *o = host_session_request(a);

	(void)err;
	put_text(o, "ProcessID", a->v[1]);
	(void)json_object_set_new(o, "Signal", json_integer(a->signal));
	return o;
}

static json_t *
build_token(const struct host_args *a, struct sb_error *err)
{
	json_t *o = host_session_request(a);

	(void)err;
	(void)json_object_set_new(o, "TTL", json_integer(a->ttl * 1000000));
	return o;
}

const struct host_verb host_verbs[] = {
	{ "health", "", "is the host well, and how full is it", "", 0, 0, "HealthCheck", no_fields,
		host_show_fields, NULL },
	{ "capabilities", "", "what the host can do", "", 0, 0, "GetCapabilities", no_fields,
		host_show_fields, NULL },
	{ "bases", "", "base images", "", 0, 0, "ListBases", no_fields, host_show_bases, NULL },
	{ "create", "", "make a session and print it", "id,base,empty,quota,label,runtime,network",
		0, 0, "CreateSession", build_create, host_show_session, NULL },
	{ "ls", "", "list sessions", "label,state,limit", 0, 0, "ListSessions", build_list,
		host_show_sessions, NULL },
	{ "get", "SESSION", "print a session", "measure", 1, 1, "GetSession", build_get,
		host_show_session, NULL },
	{ "label", "SESSION [KEY=VALUE]...", "replace a session's labels", "", 1, -1, "SetLabels",
		build_label, host_show_session, NULL },
	{ "pause", "SESSION", "let tools end, freeze processes", "", 1, 1, "PauseSession",
		build_session, NULL, NULL },
	{ "resume", "SESSION", "go on after pause", "", 1, 1, "ResumeSession", build_session, NULL,
		NULL },
	{ "destroy", "SESSION", "remove a session and its workspace", "force", 1, 1,
		"DestroySession", build_destroy, NULL, NULL },
	{ "fork", "SESSION", "a new session from a snapshot or from now", "snapshot,id,quota,label",
		1, 1, "Fork", build_fork, host_show_session, NULL },
	{ "exec", "SESSION COMMAND [ARG]...", "run a command in the session (tool bash)", "call-id",
		2, -1, "ExecuteToolStream", NULL, NULL, host_run_exec },
	{ "attach", "SESSION COMMAND [ARG]...", "run a command with our stdin, stdout and stderr",
		"env", 2, -1, "Attach", NULL, NULL, host_run_attach },
	{ "tool", "SESSION TOOL", "run a tool and print what it says", "params,call-id", 2, 2,
		"ExecuteToolStream", NULL, NULL, host_run_tool },
	{ "turn", "SESSION", "end a turn: take its snapshot", "", 1, 1, "TurnComplete",
		build_session, host_show_snapshot, NULL },
	{ "snapshot", "SESSION NAME", "take a snapshot", "", 2, 2, "CreateSnapshot", build_snapshot,
		host_show_snapshot, NULL },
	{ "snapshots", "SESSION", "list snapshots", "", 1, 1, "ListSnapshots", build_session,
		host_show_snapshots, NULL },
	{ "rollback", "SESSION SNAPSHOT", "put the workspace back; what came later is gone",
		"kill-tools", 2, 2, "RollbackSession", build_of_snapshot, NULL, NULL },
	{ "diff", "SESSION FROM [TO]", "paths that changed between snapshots, or until now",
		"limit", 2, 3, "DiffSnapshots", build_diff, host_show_changes, NULL },
	{ "rm-snapshot", "SESSION SNAPSHOT", "delete a snapshot", "", 2, 2, "DeleteSnapshot",
		build_of_snapshot, NULL, NULL },
	{ "hold", "SESSION SNAPSHOT TAG", "keep a snapshot from being deleted", "", 3, 3,
		"HoldSnapshot", build_of_snapshot, NULL, NULL },
	{ "release", "SESSION SNAPSHOT TAG", "take a hold away", "", 3, 3, "ReleaseSnapshot",
		build_of_snapshot, NULL, NULL },
	{ "launch", "SESSION BINARY [ARG]...", "start a process that lives on",
		"env,expose-port,ready", 2, -1, "LaunchProcess", build_launch, host_show_process,
		NULL },
	{ "kill", "SESSION PROCESS", "signal a process", "signal", 2, 2, "KillProcess",
		build_process, NULL, NULL },
	{ "status", "SESSION PROCESS", "is a process running", "", 2, 2, "GetProcessStatus",
		build_process, host_show_fields, NULL },
	{ "ps", "SESSION", "list processes", "", 1, 1, "ListProcesses", build_session,
		host_show_processes, NULL },
	{ "logs", "SESSION PROCESS", "what a process printed", "follow,stream", 2, 2,
		"StreamProcessLogs", NULL, NULL, host_run_logs },
	{ "events", "[SESSION]", "print what happens, until stopped", "kind", 0, 1, "StreamEvents",
		NULL, NULL, host_run_events },
	{ "token", "SESSION", "a bearer token for this session only", "ttl", 1, 1,
		"IssueSessionToken", build_token, host_show_token, NULL },
	{ NULL, NULL, NULL, NULL, 0, 0, NULL, NULL, NULL, NULL },
};
