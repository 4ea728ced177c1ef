/* SPDX-License-Identifier: MIT */
/* Checks of controls: processes in a sandbox. */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/str.h>
#include <conform/control-check-priv.h>

#define PORT 8321

/*
 * A port that nobody has on this machine, which may be the sandbox's, too, and have others at work
 * in it. Somewhere else it is as good as any.
 */
static int
some_port(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof a;
	sb_autoclose int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&a, len) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &len) < 0)
		return PORT;
	return ntohs(a.sin_port);
}

static int
launch(struct sb_control_check *k, struct sb_error *err)
{
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	int r = sb_control_check_plain(k, &s, err);

	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "exit 0", 0, err);
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "exit 7", 7, err);
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, "echo hello >kept", 0, err);
	return r == 0 ? sb_control_check_sh_is(k, s.id, "test hello = \"$(cat kept)\"", 0, err) : r;
}

static int
arguments(struct sb_control_check *k, struct sb_error *err)
{
	static const char *const args[] = { "-c",
		"test $# = 5 && test \"$1\" = '' && test \"$2\" = 'a  b' && test \"$3\" = \"it's\" "
		"&& test \"$4\" = '$(exit 9)`\"\\' && test \"$5\" = 'one\ntwo' && "
		"test \"$SBCHECK\" = \"x y'z\" && test \"${SBCHECK_2+set}\" = set && "
		"test \"$SBCHECK_3\" = 'one\ntwo$HOME'",
		"name", "", "a  b", "it's", "$(exit 9)`\"\\", "one\ntwo", NULL };
	static const char *const env[] = { "SBCHECK=x y'z", "SBCHECK_2=", "SBCHECK_3=one\ntwo$HOME",
		NULL };
	static const char *const bad[] = { "not a name=1", NULL };
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p;
	struct sb_error why = { 0 };
	int r = sb_control_check_plain(k, &s, err);

	if (r < 0)
		return r;
	o.sandbox = s.id;
	o.binary = "sh";
	o.args = args;
	o.env = env;
	r = sb_control_check_launch(k, &o, err);
	if (r > 0)
		return broken(err, "arguments or environment are not what was given (exit %d)", r);
	o.env = bad;
	return r < 0 ? r :
		       sb_control_check_fails(sb_control_launch(k->c, &o, &call, &p, &why),
			       SB_E_INVAL, "a variable's name that is none", &why, err);
}

static int
missing(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p = { 0 };
	int r = sb_control_check_plain(k, &s, err);

	o.sandbox = s.id;
	o.binary = "sbcheck-no-such-program";
	if (r < 0)
		return r;
	/* It may be found out at once, or by the process. */
	r = sb_control_launch(k->c, &o, &call, &p, NULL);
	if (r < 0)
		return 0;
	r = sb_control_check_wait(k, s.id, &p, err);
	return r == 0 && (!p.has_exit || p.exit_code != 127) ?
		broken(err, "a program that is not there ended with %d", p.exit_code) :
		r;
}

static int
forever(struct sb_control_check *k, const char *id, const char *script,
	struct sb_control_process *p, struct sb_error *err)
{
	const char *args[] = { "-c", script, NULL };
	struct sb_control_call call = sb_control_check_call(k);
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	int r;

	o.sandbox = id;
	o.binary = "sh";
	o.args = args;
	r = sb_control_launch(k->c, &o, &call, p, err);
	if (r == 0 && p->status == SB_CONTROL_EXITED)
		r = broken(err, "a process that lasts is told to have exited");
	return r;
}

/* Waits until `script` exits with 0 in the sandbox. */
static int
until(struct sb_control_check *k, const char *id, const char *script, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(k->ms);
	int r;

	do {
		r = sb_control_check_sh(k, id, script, err);
		if (r <= 0)
			return r;
		(void)poll(NULL, 0, 20);
	} while (!sb_deadline_passed(d));
	return broken(err, "'%s' never came true", script);
}

static int
kill_one(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_process p = { 0 }, q = { 0 };
	int r = sb_control_check_plain(k, &s, err);

	if (r == 0)
		r = forever(k, s.id, "exec sleep 1000", &p, err);
	if (r == 0)
		r = forever(k, s.id, "trap 'exit 33' TERM; : >ready; while :; do sleep 0.1; done",
			&q, err);
	if (r == 0)
		r = until(k, s.id, "test -e ready", err);
	if (r == 0)
		r = sb_control_kill(k->c, s.id, q.id, 0, &call, err);
	if (r == 0)
		r = sb_control_check_wait(k, s.id, &q, err);
	if (r == 0 && q.exit_code != 33)
		r = broken(err, "TERM, which was handled, ended it with %d, must be 33",
			q.exit_code);
	if (r == 0)
		r = sb_control_status(k->c, s.id, p.id, &call, &p, err);
	if (r == 0 && p.status != SB_CONTROL_UP)
		r = broken(err, "a process ended that was not killed");
	if (r == 0)
		r = sb_control_kill(k->c, s.id, p.id, 9, &call, err);
	if (r == 0)
		r = sb_control_check_wait(k, s.id, &p, err);
	if (r == 0 && (!p.has_exit || p.exit_code != 137))
		r = broken(err, "KILL ended it with %d, must be 137", p.exit_code);
	return r == 0 ? sb_control_kill(k->c, s.id, p.id, 9, &call, err) : r;
}

static int
process_unknown(struct sb_control_check *k, struct sb_error *err)
{
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 }, t = { 0 };
	struct sb_control_process p = { 0 }, q;
	struct sb_error why = { 0 };
	int r = sb_control_check_plain(k, &s, err);

	if (r == 0)
		r = sb_control_check_plain(k, &t, err);
	if (r == 0)
		r = forever(k, s.id, "exec sleep 1000", &p, err);
	if (r == 0)
		r = sb_control_check_fails(
			sb_control_status(k->c, s.id, "sbcheck-none", &call, &q, &why),
			SB_E_PROCESS_NOT_FOUND, "status of none", &why, err);
	if (r == 0)
		r = sb_control_check_fails(
			sb_control_kill(k->c, s.id, "sbcheck-none", 9, &call, &why),
			SB_E_PROCESS_NOT_FOUND, "kill of none", &why, err);
	/* Another sandbox's process is none. */
	if (r == 0)
		r = sb_control_check_fails(sb_control_kill(k->c, t.id, p.id, 9, &call, &why),
			SB_E_PROCESS_NOT_FOUND, "kill through another sandbox", &why, err);
	if (r == 0)
		r = sb_control_status(k->c, s.id, p.id, &call, &q, err);
	return r == 0 && q.status != SB_CONTROL_UP ?
		broken(err, "it was killed through another sandbox") :
		r;
}

/* Connects to an address as told. */
static int
reach(const char *address, struct sb_error *err)
{
	const char *colon = strrchr(address, ':');
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *all = NULL;
	char host[SB_CONTROL_ADDRESS_MAX + 1];
	int fd = -1, r;

	if (sb_str_starts(address, "unix:")) {
		struct sockaddr_un un = { .sun_family = AF_UNIX };

		memcpy(un.sun_path, address + 5, strnlen(address + 5, sizeof un.sun_path - 1));
		fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd < 0 ? -1 : connect(fd, (struct sockaddr *)&un, sizeof un);
	} else {
		(void)snprintf(host, sizeof host, "%.*s", (int)(colon - address), address);
		if (host[0] == '[') {
			host[strlen(host) - 1] = '\0';
			memmove(host, host + 1, strlen(host));
		}
		if (getaddrinfo(host, colon + 1, &hints, &all) != 0)
			return broken(err, "nobody knows %s", host);
		fd = socket(all->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		r = fd < 0 ? -1 : connect(fd, all->ai_addr, all->ai_addrlen);
		freeaddrinfo(all);
	}
	r = r < 0 ? sb_fail_errno(err, "connect to %s", address) : 0;
	sb_cleanup_close_(&fd);
	return r;
}

static int
port(struct sb_control_check *k, struct sb_error *err)
{
	int at = some_port();
	sb_autofree char *script =
		k->o->listener ? sb_str_printf("PORT=%d; %s", at, k->o->listener) : NULL;
	const char *args[] = { "-c", script, NULL };
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p = { 0 };
	int r;

	if (!script)
		return sb_control_check_skip(err, "no command that listens was given");
	r = sb_control_check_plain(k, &s, err);
	o.sandbox = s.id;
	o.binary = "sh";
	o.args = args;
	o.expose_port = at;
	o.ready_ms = k->ms;
	if (r == 0)
		r = sb_control_launch(k->c, &o, &call, &p, err);
	if (r == 0 && p.status != SB_CONTROL_UP)
		r = broken(err, "it is %s after its port answered",
			sb_control_status_name(p.status));
	if (r == 0)
		r = sb_control_address_check(p.address, err);
	return r == 0 ? reach(p.address, err) : r;
}

/* A launch that does not get ready fails, and leaves nothing running. */
static int
port_never(struct sb_control_check *k, struct sb_error *err)
{
	static const char *const args[] = { "-c",
		"trap '' TERM; while :; do : >alive; sleep 0.05; done", NULL };
	static const char *const ends[] = { "-c", "exit 5", NULL };
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_control_process p;
	struct sb_error why = { 0 };
	int r = sb_control_check_plain(k, &s, err);

	o.sandbox = s.id;
	o.binary = "sh";
	o.args = args;
	o.expose_port = some_port();
	o.ready_ms = 1000;
	if (r == 0)
		r = sb_control_check_fails(sb_control_launch(k->c, &o, &call, &p, &why),
			SB_E_TIMEOUT, "a port that never answers", &why, err);
	/* What lives makes the file again. */
	if (r == 0)
		r = until(k, s.id, "rm -f alive; sleep 0.5; test ! -e alive", err);
	o.args = ends;
	o.ready_ms = k->ms;
	if (r == 0)
		r = sb_control_check_fails(sb_control_launch(k->c, &o, &call, &p, &why), SB_E_CHILD,
			"a process that ends before its port answers", &why, err);
	return r;
}

static void *
cancel_soon(void *arg)
{
	(void)poll(NULL, 0, 300);
	sb_cancel_request(arg);
	return NULL;
}

/* A call that is canceled while it waits ends at once, and leaves nothing running. */
static int
cancel(struct sb_control_check *k, struct sb_error *err)
{
	static const char *const args[] = { "-c", "while :; do : >alive; sleep 0.05; done", NULL };
	struct sb_control_call call = sb_control_check_call(k);
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 };
	struct sb_control_launch_opts o = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_cancel *c = sb_cancel_new(err);
	struct sb_control_process p;
	struct sb_error why = { 0 };
	pthread_t t;
	int r = c ? sb_control_check_plain(k, &s, err) : SB_E_NOMEM;

	o.sandbox = s.id;
	o.binary = "sh";
	o.args = args;
	o.expose_port = some_port();
	o.ready_ms = k->ms;
	call.cancel = c;
	if (r == 0 && pthread_create(&t, NULL, cancel_soon, c) != 0)
		r = sb_fail(err, SB_E_NOMEM, "no thread");
	if (r == 0) {
		r = sb_control_check_fails(sb_control_launch(k->c, &o, &call, &p, &why),
			SB_E_CANCELED, "a launch that is canceled", &why, err);
		(void)pthread_join(t, NULL);
	}
	sb_cancel_free(c);
	return r == 0 ? until(k, s.id, "rm -f alive; sleep 0.5; test ! -e alive", err) : r;
}

static int
apart(struct sb_control_check *k, struct sb_error *err)
{
	sb_auto(sb_control_sandbox) struct sb_control_sandbox s = { 0 }, t = { 0 };
	int r = sb_control_check_plain(k, &s, err);

	if (r == 0)
		r = sb_control_check_plain(k, &t, err);
	if (r == 0)
		r = sb_control_check_sh_is(k, s.id, ": >mine", 0, err);
	return r == 0 ? sb_control_check_sh_is(k, t.id, "test ! -e mine", 0, err) : r;
}

const struct sb_control_check_row sb_control_check_process_rows[] = {
	{ "launch", "runs in the workspace and tells the exit code", launch },
	{ "launch-arguments", "arguments and variables arrive byte for byte", arguments },
	{ "launch-missing", "a program that is not there does not start", missing },
	{ "apart", "two sandboxes have workspaces of their own", apart },
	{ "kill", "TERM by default, any signal, that process alone", kill_one },
	{ "process-unknown", "processes are found in their own sandbox only", process_unknown },
	{ "port", "a port answers at the address that is told", port },
	{ "cancel", "a launch that is canceled ends at once with its process", cancel },
	{ "port-never", "a launch that does not get ready fails and is ended", port_never },
	{ NULL, NULL, NULL },
};
