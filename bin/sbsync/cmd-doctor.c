/* SPDX-License-Identifier: MIT */
/* sbsync doctor: checks the way to another machine, or this machine. */
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include <base/file.h>
#include <base/str.h>
#include <bin/sbsync/options.h>
#include <sync/remote/deploy.h>
#include <sync/remote/doctor.h>
#include <sync/remote/remote.h>
#include <sync/replica/replica.h>

struct visit {
	const struct sync_args *a;
	json_t *checks; /* NULL: lines on stdout */
	int bad;
};

static const char *const states[] = { "good", "warning", "bad", "skipped" };

static void
tell(struct visit *v, const char *what, enum sb_doctor_state state, const char *text)
{
	v->bad += state == SB_DOCTOR_BAD;
	if (v->checks)
		json_array_append_new(v->checks,
			json_pack("{s:s, s:s, s:s}", "check", what, "state", states[state], "text",
				text));
	else if (state != SB_DOCTOR_GOOD || !v->a->quiet)
		(void)printf("%-8s %-13s %s\n", states[state], what, text);
}

static void
tell_result(const struct sb_doctor_result *r, void *arg)
{
	tell(arg, sb_doctor_name(r->what), r->state, r->text);
}

static void
check_state(struct visit *v)
{
	struct sb_error err = { 0 };
	sb_autofree char *dir = sb_replica_state_dir(&err);
	char text[SB_ERROR_MSG_MAX];
	int r = dir ? sb_file_mkdirs(dir, 0700, &err) : err.code;

	if (r == 0 && access(dir, W_OK) < 0)
		r = sb_fail_errno(&err, "%s", dir);
	if (r == 0)
		(void)snprintf(text, sizeof text, "%.400s can be written", dir);
	else
		(void)snprintf(text, sizeof text,
			"%.380s; set SBSYNC_STATE_DIR to a directory of yours", err.msg);
	tell(v, "state", r == 0 ? SB_DOCTOR_GOOD : SB_DOCTOR_BAD, text);
}

static void
check_here(struct visit *v)
{
	struct sb_error err = { 0 };
	sb_autofree char *agent = sb_deploy_find(NULL, &err);
	const char *sock = getenv("SSH_AUTH_SOCK");
	bool program = false;
	char path[4096];

	check_state(v);
	tell(v, "agent", agent ? SB_DOCTOR_GOOD : SB_DOCTOR_BAD, agent ? agent : err.msg);
	for (const char *p = getenv("PATH"); p && *p && !program;
		p += strcspn(p, ":") + (p[strcspn(p, ":")] == ':')) {
		(void)snprintf(path, sizeof path, "%.*s/ssh", (int)strcspn(p, ":"), p);
		program = access(path, X_OK) == 0;
	}
	tell(v, "ssh", program ? SB_DOCTOR_GOOD : SB_DOCTOR_WARN,
		program ? path :
			  "there is no ssh program: configuration files of ssh are not read, and "
			  "jump hosts and security keys do not work");
	tell(v, "keys", sock && *sock ? SB_DOCTOR_GOOD : SB_DOCTOR_WARN,
		sock && *sock ?
			sock :
			"no ssh-agent runs: keys with a passphrase will ask for it each time");
}

static int
check_there(struct visit *v, const struct sync_args *a, const struct sb_endpoint *e,
	struct sb_error *err)
{
	struct sb_remote_opts ro = SB_REMOTE_OPTS_INIT;
	const char *identity = a->identity;
	int r;

	ro.to = e;
	ro.port = (int)a->port;
	ro.rsh = a->rsh;
	ro.config_file = a->ssh_config;
	ro.identities = &identity;
	ro.n_identities = identity ? 1 : 0;
	ro.known_hosts = a->known_hosts;
	ro.accept_new_host_key = a->accept_new;
	ro.use_password = a->ask_password;
	ro.ask = sb_ssh_ask_tty;
	ro.cancel = signals_cancel();
	ro.log = stderr_log(a);
	r = sb_doctor_run(&ro, e->path, sb_deadline_in(a->timeout ? a->timeout : 60000),
		tell_result, v, err);
	return r < 0 ? r : 0;
}

static int
doctor_verb(void *values, int argc, char **argv)
{
	struct sync_args *a = values;
	struct visit v = { .a = a, .checks = a->json ? json_array() : NULL };
	sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };
	struct sb_error err = { 0 };
	char show[512] = "this machine";
	int r = 0;

	if (argc) {
		r = sb_endpoint_parse(argv[0], &e, &err);
		if (r == 0 && e.kind == SB_ENDPOINT_LOCAL)
			r = sb_fail(&err, SB_E_USAGE,
				"%s is a path here; name another machine: [user@]host:path",
				argv[0]);
		if (r == 0)
			r = check_there(&v, a, &e, &err);
		if (e.host)
			(void)sb_endpoint_show(&e, show, sizeof show);
	} else {
		check_here(&v);
	}
	if (v.checks) {
		json_t *o = json_pack("{s:s, s:s, s:o}", "result",
			r < 0         ? "error" :
				v.bad ? "bad" :
					"ok",
			"place", show, "checks", v.checks);

		if (r < 0)
			json_object_set_new(o, "error", json_string(err.msg));
		print_json(o);
	}
	if (r < 0) {
		complain("%s", err.msg);
		return exit_code(r);
	}
	return v.bad ? EXIT_FAILED : EXIT_DONE;
}

static const struct sb_opt options[] = {
	OPTIONS_SSH,
	OPTIONS_TIMEOUT,
	OPTIONS_JSON,
	OPT_FLAG('q', "quiet", quiet, "print what is wrong only"),
	OPTIONS_VERBOSE,
	OPTIONS_HELP,
	OPT_END,
};

const struct sb_cmd cmd_doctor = {
	.name = "doctor",
	.args = "[REMOTE]",
	.help = "check the way to REMOTE, or this machine; say what to do",
	.details =
		"REMOTE is [user@]host:path or ssh://[user@]host[:port]/path. Nothing is changed\n"
		"there, but the agent is brought there as a sync would do.",
	.opts = options,
	.max_args = 1,
	.run = doctor_verb,
};
