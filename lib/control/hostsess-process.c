/* SPDX-License-Identifier: MIT */
/* Processes in the sessions of a host. */
#include "config.h"

#include <control/hostsess.h>

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <base/str.h>
#include <control/control-priv.h>
#include <rpc/protocol/json.h>

#define END_MS 10000

int
sb_hostsess_reachable(const char *url, const char *address, struct sb_error *err)
{
	const char *mine = sb_str_starts(url, "http://") ? url + 7 :
		sb_str_starts(url, "https://")           ? url + 8 :
							   url;
	int r = sb_control_address_check(address, err);

	if (r < 0)
		return sb_fail(err, SB_E_PROTO, "the host tells an address that is none: %.100s",
			address);
	if (sb_control_address_local(address) && !sb_control_address_local(mine))
		return sb_fail(err, SB_E_UNSUPPORTED,
			"the host tells %s, which nobody reaches but the host itself: start "
			"sbhostd "
			"with --bind-addr and --advertise-addr",
			address);
	return 0;
}

static int
take_process(const json_t *answer, struct sb_control_process *p, struct sb_error *err)
{
	const char *id = sb_json_str(answer, "ProcessID"), *status = sb_json_str(answer, "Status");
	const json_t *code = json_object_get(answer, "ExitCode");

	if (id[0] && strlen(id) < sizeof p->id)
		(void)snprintf(p->id, sizeof p->id, "%s", id);
	if (strcmp(status, "starting") == 0)
		p->status = SB_CONTROL_STARTING;
	else if (strcmp(status, "running") == 0)
		p->status = SB_CONTROL_UP;
	else if (strcmp(status, "exited") == 0)
		p->status = SB_CONTROL_EXITED;
	else
		return sb_fail(err, SB_E_PROTO, "the host tells of a process without a status");
	p->has_exit = p->status == SB_CONTROL_EXITED && json_is_integer(code);
	p->exit_code = p->has_exit ? (int)json_integer_value(code) : 0;
	return p->id[0] ? 0 : sb_fail(err, SB_E_PROTO, "the host tells of a process without an id");
}

static json_t *
process_request(const char *id, const char *process)
{
	return json_pack("{s:s,s:s}", "SessionID", id, "ProcessID", process);
}

int
sb_hostsess_status(struct sb_hostcall *h, const char *id, const char *process,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err)
{
	struct sb_control_process p = { 0 };
	json_t *answer = NULL;
	int r = sb_hostcall(h, "GetProcessStatus", process_request(id, process), call, &answer,
		err);

	(void)snprintf(p.id, sizeof p.id, "%s", process);
	if (r == 0)
		r = take_process(answer, &p, err);
	json_decref(answer);
	if (r == 0)
		*out = p;
	return r;
}

int
sb_hostsess_kill(struct sb_hostcall *h, const char *id, const char *process, int sig,
	const struct sb_control_call *call, struct sb_error *err)
{
	struct sb_control_process p;
	json_t *in = process_request(id, process);
	int r;

	(void)json_object_set_new(in, "Signal", json_integer(sig));
	r = sb_hostcall(h, "KillProcess", in, call, NULL, err);
	/* One that has ended is as the caller wanted it. */
	if (r < 0 && r != SB_E_FENCED && sb_hostsess_status(h, id, process, call, &p, NULL) == 0 &&
		p.status == SB_CONTROL_EXITED)
		r = 0;
	return r;
}

/* A launch that failed leaves nothing running, also when the caller has no time left. */
static void
end(struct sb_hostcall *h, const char *id, const char *process, uint64_t fence)
{
	const struct sb_control_call call = { NULL, sb_deadline_in(END_MS), fence };

	(void)sb_hostsess_kill(h, id, process, SIGKILL, &call, NULL);
}

/* Waits until the port answers. The process is known by now, so it can be ended whatever happens.
 */
static int
wait_for_port(struct sb_hostcall *h, const struct sb_control_launch_opts *o,
	const struct sb_control_call *call, struct sb_control_process *p, struct sb_error *err)
{
	sb_deadline end = sb_deadline_in(o->ready_ms);
	struct sb_control_process now;
	int r;

	for (int64_t wait = 10; p->status == SB_CONTROL_STARTING;
		wait = wait < 500 ? 2 * wait : wait) {
		if (sb_deadline_passed(end))
			return sb_fail(err, SB_E_TIMEOUT,
				"%s does not answer on port %d after %lld ms; it was ended",
				o->binary, o->expose_port, (long long)o->ready_ms);
		r = sb_hostcall_pause(call, wait, err);
		if (r == 0)
			r = sb_hostsess_status(h, o->sandbox, p->id, call, &now, err);
		if (r < 0)
			return r;
		p->status = now.status;
		p->has_exit = now.has_exit;
		p->exit_code = now.exit_code;
	}
	if (p->status == SB_CONTROL_EXITED)
		return sb_fail(err, SB_E_CHILD, "%s ended with %d before it answered on port %d",
			o->binary, p->exit_code, o->expose_port);
	return 0;
}

static json_t *
launch_request(const struct sb_control_launch_opts *o)
{
	json_t *in = json_pack("{s:s,s:s,s:i}", "SessionID", o->sandbox, "Binary", o->binary,
		"ExposePort", o->expose_port);
	json_t *args = json_array(), *env = json_object(), *res = json_object();

	for (const char *const *a = o->args; a && *a; a++)
		if (json_array_append_new(args, json_string(*a)) < 0)
			goto not_utf8;
	for (const char *const *e = o->env; e && *e; e++) {
		const char *eq = strchr(*e, '=');

		if (json_object_setn_new(env, *e, (size_t)(eq - *e), json_string(eq + 1)) < 0)
			goto not_utf8;
	}
	if (o->cpus > 0)
		(void)json_object_set_new(res, "CPUs", json_real(o->cpus));
	if (o->mem_mb)
		(void)json_object_set_new(res, "MemMB", json_integer((json_int_t)o->mem_mb));
	(void)json_object_set_new(in, "Args", args);
	(void)json_object_set_new(in, "Env", env);
	(void)json_object_set_new(in, "Resources", res);
	return in;

not_utf8:
	json_decref(args);
	json_decref(env);
	json_decref(res);
	json_decref(in);
	return NULL;
}

int
sb_hostsess_launch(struct sb_hostcall *h, const struct sb_control_launch_opts *o,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err)
{
	struct sb_control_process p = { 0 };
	json_t *answer = NULL;
	int r = sb_hostcall(h, "LaunchProcess", launch_request(o), call, &answer, err);

	if (r == 0)
		r = take_process(answer, &p, err);
	/* One that has ended already: with its code, and it has no address. */
	if (r == 0 && p.status == SB_CONTROL_EXITED && !p.has_exit)
		r = sb_hostsess_status(h, o->sandbox, p.id, call, &p, err);
	if (r == 0 && o->expose_port && p.status != SB_CONTROL_EXITED) {
		const char *address = sb_json_str(answer, "Address");

		r = sb_hostsess_reachable(sb_hostcall_url(h), address, err);
		(void)snprintf(p.address, sizeof p.address, "%s", r == 0 ? address : "");
	}
	if (r == 0 && o->ready_ms)
		r = wait_for_port(h, o, call, &p, err);
	if (r < 0 && p.id[0])
		end(h, o->sandbox, p.id, call->fence);
	json_decref(answer);
	if (r == 0)
		*out = p;
	return r;
}
