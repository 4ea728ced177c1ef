/* SPDX-License-Identifier: MIT */
/* The doctor's public call: checks of this machine, or the way to another one. */
#include "config.h"

#include <sbsync/doctor.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/file.h>
#include <sync/remote/deploy.h>
#include <sync/remote/doctor.h>
#include <sync/remote/remote.h>
#include <sync/replica/replica.h>

#define PATIENCE_MS 60000

const char *
sb_doctor_name(enum sb_doctor_what what)
{
	static const char *const names[] = { "name", "host key", "log-in", "agent", "write access",
		"free space", "clock", "state", "agent", "ssh", "keys" };

	return names[what];
}

/* Whom results of this machine are told to. */
struct here {
	sb_doctor_fn fn;
	void *arg;
	int bad;
};

static void
tell(struct here *h, enum sb_doctor_what what, enum sb_doctor_state state, const char *text)
{
	struct sb_doctor_result r = { .what = what, .state = state, .place = "this machine" };

	(void)snprintf(r.text, sizeof r.text, "%s", text);
	h->bad += state == SB_DOCTOR_BAD;
	h->fn(&r, h->arg);
}

static void
check_state_dir(struct here *h)
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
	tell(h, SB_DOCTOR_STATE_DIR, r == 0 ? SB_DOCTOR_GOOD : SB_DOCTOR_BAD, text);
}

/* Looks for `name` on PATH; its full path goes to `out`. */
static bool
find_program(const char *name, char *out, size_t size)
{
	for (const char *p = getenv("PATH"); p && *p;
		p += strcspn(p, ":") + (p[strcspn(p, ":")] == ':')) {
		(void)snprintf(out, size, "%.*s/%s", (int)strcspn(p, ":"), p, name);
		if (access(out, X_OK) == 0)
			return true;
	}
	return false;
}

static int
check_here(struct here *h)
{
	struct sb_error err = { 0 };
	sb_autofree char *agent = sb_deploy_find(NULL, &err);
	const char *sock = getenv("SSH_AUTH_SOCK");
	char path[SB_ERROR_MSG_MAX];

	check_state_dir(h);
	tell(h, SB_DOCTOR_OWN_AGENT, agent ? SB_DOCTOR_GOOD : SB_DOCTOR_BAD,
		agent ? agent : err.msg);
	if (find_program("ssh", path, sizeof path))
		tell(h, SB_DOCTOR_SSH, SB_DOCTOR_GOOD, path);
	else
		tell(h, SB_DOCTOR_SSH, SB_DOCTOR_WARN,
			"there is no ssh program: configuration files of ssh are not read, and "
			"jump hosts and security keys do not work");
	if (sock && *sock)
		tell(h, SB_DOCTOR_KEYS, SB_DOCTOR_GOOD, sock);
	else
		tell(h, SB_DOCTOR_KEYS, SB_DOCTOR_WARN,
			"no ssh-agent runs: keys with a passphrase will ask for it each time");
	return h->bad;
}

static int
check_there(const struct sb_endpoint *e, const struct sb_sync_opts *o, sb_doctor_fn fn, void *arg,
	struct sb_error *err)
{
	struct sb_remote_opts ro = SB_REMOTE_OPTS_INIT;

	ro.to = e;
	ro.port = o->port;
	ro.rsh = o->rsh;
	ro.config_file = o->ssh_config;
	ro.identities = &o->identity;
	ro.n_identities = o->identity ? 1 : 0;
	ro.known_hosts = o->known_hosts;
	ro.accept_new_host_key = o->accept_new_host_key;
	ro.use_none = o->token_login;
	ro.use_password = o->ask_password;
	ro.ask = o->never_ask ? NULL : sb_ssh_ask_tty;
	ro.ask_arg = (void *)(uintptr_t)o->cancel;
	ro.cancel = o->cancel;
	ro.log = o->log;
	return sb_doctor_run(&ro, e->path,
		sb_deadline_in(o->timeout_ms ? o->timeout_ms : PATIENCE_MS), fn, arg, err);
}

int
sb_doctor_check(const char *remote, const struct sb_sync_opts *opts, sb_doctor_fn fn, void *arg,
	struct sb_error *err)
{
	sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };
	struct here here = { .fn = fn, .arg = arg };
	int r;

	if (!remote)
		return check_here(&here);
	r = sb_endpoint_parse(remote, &e, err);
	if (r < 0)
		return r;
	if (e.kind == SB_ENDPOINT_LOCAL)
		return sb_fail(err, SB_E_USAGE,
			"%s is a path here; name another machine: [user@]host:path", remote);
	return check_there(&e, opts, fn, arg, err);
}
