/* SPDX-License-Identifier: MIT */
/* The procedures about processes that a session keeps running. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rpc/service/host-priv.h>

#define ARGS_MAX 1024
#define ARG_LEN_MAX 131071 /* what Linux takes, without the NUL */
#define READY_MAX_NS (INT64_C(600) * 1000000000)
#define ENV_MAX 1024
#define BINARY_MAX 4096
#define LOG_PIECE 32768
#define SIGNAL_MAX 64

static const char *const stream_names[] = { "stdout", "stderr" };

int
sb_rpc_host_launch_process(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_call limits = sb_rpc_host_limits(call);
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	sb_auto(sb_strlist) struct sb_strlist args = { 0 }, env = { 0 };
	struct sb_host_process p = { 0 };
	struct sb_rpc_fields f;
	int r;

	sb_rpc_fields_init(&f, in);
	l.session = sb_rpc_host_session_id(call, &f);
	l.binary = sb_rpc_field_str(&f, "Binary", BINARY_MAX, SB_RPC_REQUIRED);
	sb_rpc_field_list(&f, "Args", ARGS_MAX, ARG_LEN_MAX, &args);
	sb_rpc_field_env(&f, "Env", ENV_MAX, ARG_LEN_MAX, &env);
	l.expose_port = (int)sb_rpc_field_int(&f, "ExposePort", 0, 65535);
	l.ready_timeout_ms =
		(sb_rpc_field_int(&f, "ReadyTimeout", 0, READY_MAX_NS) + 999999) / 1000000;
	sb_rpc_host_resources(&f, &l.res);
	l.args = (const char *const *)args.v;
	l.env = (const char *const *)env.v;
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = sb_host_process_launch(h->host, &l, &limits, &p, err);
	if (r < 0)
		return r;
	*out = json_object();
	sb_rpc_host_put(*out, "ProcessID", p.id);
	sb_rpc_host_put(*out, "Address", p.address);
	sb_rpc_host_put(*out, "Status", sb_host_process_status_name(p.status));
	sb_host_process_clear(&p);
	return 0;
}

int
sb_rpc_host_kill_process(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_rpc_fields f;
	const char *id, *process;
	int sig, r;

	(void)out;
	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	process = sb_rpc_field_str(&f, "ProcessID", SB_HOST_PROCESS_ID_MAX, SB_RPC_REQUIRED);
	sig = (int)sb_rpc_field_int(&f, "Signal", 0, SIGNAL_MAX);
	r = sb_rpc_host_fields_end(call, &f, err);
	return r < 0 ? r : sb_host_process_kill(h->host, id, process, sig, err);
}

static json_t *
exit_json(const struct sb_host_process *p)
{
	return p->has_exit ? json_integer(p->exit_code) : json_null();
}

int
sb_rpc_host_get_process_status(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_process p = { 0 };
	struct sb_rpc_fields f;
	const char *id, *process;
	int r;

	sb_rpc_fields_init(&f, in);
	id = sb_rpc_host_session_id(call, &f);
	process = sb_rpc_field_str(&f, "ProcessID", SB_HOST_PROCESS_ID_MAX, SB_RPC_REQUIRED);
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r == 0)
		r = sb_host_process_get(h->host, id, process, &p, err);
	if (r < 0)
		return r;
	*out = json_object();
	sb_rpc_host_put(*out, "Status", sb_host_process_status_name(p.status));
	(void)json_object_set_new(*out, "ExitCode", exit_json(&p));
	sb_host_process_clear(&p);
	return 0;
}

static json_t *
process_json(const struct sb_host_process *p)
{
	json_t *o = json_object();

	sb_rpc_host_put(o, "ProcessID", p->id);
	sb_rpc_host_put(o, "Binary", p->binary);
	sb_rpc_host_put(o, "Status", sb_host_process_status_name(p->status));
	(void)json_object_set_new(o, "ExitCode", exit_json(p));
	sb_rpc_host_put(o, "Address", p->address);
	sb_rpc_host_put_int(o, "Port", (int64_t)p->port);
	(void)json_object_set_new(o, "Started", sb_rpc_host_time_json(p->started_ns));
	(void)json_object_set_new(o, "Ended", sb_rpc_host_time_json(p->ended_ns));
	sb_rpc_host_put_int(o, "StdoutBytes", (int64_t)p->log_size[0]);
	sb_rpc_host_put_int(o, "StderrBytes", (int64_t)p->log_size[1]);
	return o;
}

int
sb_rpc_host_list_processes(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(call);
	struct sb_host_process *v = NULL;
	const char *id;
	json_t *list;
	size_t n = 0;
	int r = sb_rpc_host_only_session(call, in, &id, err);

	if (r == 0)
		r = sb_host_process_list(h->host, id, &v, &n, err);
	if (r < 0)
		return r;
	list = json_array();
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(list, process_json(&v[i]));
	sb_host_processes_free(v, n);
	*out = sb_rpc_host_wrap("Processes", list);
	return 0;
}

/* One log being sent. */
struct log_job {
	struct sb_rpc_call *call;
	const char *session, *process;
	int which;
	uint64_t offset;
	bool follow;
	struct sb_error err;
	int r;
};

static int
send_log(struct log_job *j)
{
	struct sb_rpc_host *h = sb_rpc_call_arg(j->call);
	struct sb_host_call limits = sb_rpc_host_limits(j->call);
	char piece[LOG_PIECE];
	int64_t n;

	while ((n = sb_host_process_logs(h->host, j->session, j->process, j->which, &j->offset,
			piece, sizeof piece, j->follow, &limits, &j->err)) > 0) {
		json_t *o = json_object();

		sb_rpc_host_put(o, "Stream", stream_names[j->which]);
		(void)json_object_set_new(o, "Data", sb_rpc_host_bytes_json(piece, (size_t)n));
		sb_rpc_host_put_int(o, "Offset", (int64_t)j->offset);
		j->r = sb_rpc_stream_send(j->call, o, &j->err);
		if (j->r < 0)
			return j->r;
	}
	j->r = n < 0 ? (int)n : 0;
	return j->r;
}

static void *
log_thread(void *arg)
{
	(void)send_log(arg);
	return NULL;
}

/* Both at once: stderr on a thread of its own, as following one of them waits. */
static int
send_both(struct log_job *out, struct sb_error *err)
{
	struct log_job errs = *out;
	pthread_t thread;
	struct log_job *bad;

	errs.which = 1;
	if (!out->follow) {
		if (send_log(out) == 0)
			(void)send_log(&errs);
	} else {
		if (pthread_create(&thread, NULL, log_thread, &errs) != 0)
			return sb_fail(err, SB_E_LIMIT, "cannot start a thread");
		(void)send_log(out);
		(void)pthread_join(thread, NULL);
	}
	bad = out->r < 0 ? out : &errs;
	if (bad->r < 0 && err)
		*err = bad->err;
	return bad->r;
}

int
sb_rpc_host_stream_process_logs(struct sb_rpc_call *call, const json_t *in, json_t **out,
	struct sb_error *err)
{
	struct log_job j = { .call = call };
	struct sb_rpc_fields f;
	const char *stream;
	int r;

	(void)out;
	sb_rpc_fields_init(&f, in);
	j.session = sb_rpc_host_session_id(call, &f);
	j.process = sb_rpc_field_str(&f, "ProcessID", SB_HOST_PROCESS_ID_MAX, SB_RPC_REQUIRED);
	stream = sb_rpc_field_str(&f, "Stream", 16, 0);
	j.offset = (uint64_t)sb_rpc_field_int(&f, "Offset", 0, INT64_MAX);
	j.follow = sb_rpc_field_bool(&f, "Follow");
	if (stream[0] && strcmp(stream, "stdout") != 0 && strcmp(stream, "stderr") != 0)
		sb_rpc_field_bad(&f, "Stream", "must be stdout, stderr or empty for both");
	if (!stream[0] && j.offset > 0)
		sb_rpc_field_bad(&f, "Offset", "needs Stream to be stdout or stderr");
	r = sb_rpc_host_fields_end(call, &f, err);
	if (r < 0)
		return r;
	j.which = strcmp(stream, "stderr") == 0;
	if (!stream[0])
		return send_both(&j, err);
	r = send_log(&j);
	if (r < 0 && err)
		*err = j.err;
	return r;
}
