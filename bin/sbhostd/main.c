/* SPDX-License-Identifier: MIT */
/* sbhostd: the daemon that serves a sandbox host, from its start to its orderly end. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <jansson.h>

#include <base/cleanup.h>
#include <base/file.h>
#include <bin/common/complete.h>
#include <bin/sbhostd/hostd.h>
#include <sb/daytona.h>
#include <sb/e2b.h>
#include <sb/sshgate.h>
#include <sb/version.h>

#define DESCRIPTORS 65536
/* After the second signal what has begun to end may take this long. */
#define HURRY_S 3

static const struct sb_cmd hostd_cmd = {
	.name = "",
	.args = "",
	.help = "run the sandbox host: sessions with snapshots, served over Connect RPC",
	.details =
		"Options are also read from a YAML file (the same names) and from the environment "
		"(SANDBOX_ and the name: SANDBOX_STATE_DIR); flags win over both. Tokens come from "
		"the file, "
		"from --token-file or from SANDBOX_AUTH_TOKEN.",
	.opts = hostd_opts,
};

/* What runs. */
struct hostd {
	struct hostd_config config;
	struct sb_log log;
	struct sb_rpc_daemon *daemon;
	struct sb_e2b *e2b;
	struct sb_daytona *daytona;
	struct sb_sshgate *ssh;
	const struct sb_access *ssh_access[2]; /* of the Daytona API; NULL-terminated */
	struct sb_cancel *stop;  /* a signal: shut down */
	struct sb_cancel *hurry; /* a second one: do not wait any more */
	sigset_t signals;
	unsigned found; /* mistakes by --check */
};

static const char *const level_names[] = { "error", "warn", "info", "debug", "trace" };

static void
print_time(char *out, size_t size)
{
	struct timespec now;
	struct tm tm;
	char day[32];

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	(void)strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &tm);
	(void)snprintf(out, size, "%s.%03ldZ", day, now.tv_nsec / 1000000);
}

static void
log_json(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	char when[64];
	json_t *o;
	char *line;

	(void)arg;
	print_time(when, sizeof when);
	o = json_pack("{s:s, s:s, s:s, s:s}", "time", when, "level", level_names[level],
		"component", component, "msg", text);
	line = o ? json_dumps(o, JSON_COMPACT) : NULL;
	(void)fprintf(stderr, "%s\n",
		line ? line : "{\"level\":\"error\",\"msg\":\"out of memory\"}");
	free(line);
	json_decref(o);
}

static void
log_text(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	char when[64];

	(void)arg;
	print_time(when, sizeof when);
	(void)fprintf(stderr, "%s %-5s %s: %s\n", when, level_names[level], component, text);
}

/* Tells systemd, when it started us and asked for it. */
static void
notify(const char *state)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	sb_autoclose int fd = -1;
	size_t len = path ? strlen(path) : 0;

	if (len == 0 || len >= sizeof a.sun_path)
		return;
	memcpy(a.sun_path, path, len);
	if (a.sun_path[0] == '@')
		a.sun_path[0] = '\0';
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		(void)sendto(fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

/* A relative path counts from where the daemon was started. */
static int
make_absolute(struct hostd_config *c, const char **path, struct sb_error *err)
{
	sb_autofree char *cwd = NULL;
	int r;

	if (!*path || (*path)[0] == '/')
		return 0;
	cwd = getcwd(NULL, 0);
	if (!cwd)
		return sb_fail_errno(err, "working directory");
	sb_strlist_addf(&c->kept, "%s/%s", cwd, *path);
	r = sb_strlist_check(&c->kept, err);
	if (r == 0)
		*path = c->kept.v[c->kept.n - 1];
	return r;
}

static int
make_state_dir(struct hostd_config *c, struct sb_error *err)
{
	const char *given = getenv("STATE_DIRECTORY");
	int r;

	if (!c->state_dir)
		c->state_dir = given && given[0] ? given : NULL;
	if (!c->state_dir)
		return sb_fail(err, SB_E_USAGE,
			"--state-dir is required: it keeps the sessions' database");
	r = make_absolute(c, &c->state_dir, err);
	if (r == 0)
		r = make_absolute(c, &c->sessions_root_dir, err);
	if (r == 0)
		r = make_absolute(c, &c->bases_dir, err);
	if (r < 0)
		return r;
	if (!c->sessions_root_dir && c->storage != HOSTD_STORAGE_ZFS) {
		sb_strlist_addf(&c->kept, "%s/sessions", c->state_dir);
		r = sb_strlist_check(&c->kept, err);
		if (r < 0)
			return r;
		c->sessions_root_dir = c->kept.v[c->kept.n - 1];
	}
	r = c->check ? 0 : sb_file_mkdirs(c->state_dir, 0700, err);
	return r < 0 ? sb_wrap(err, r, "state directory") : 0;
}

static void
on_found(const char *what, void *arg)
{
	++*(unsigned *)arg;
	(void)fprintf(stderr, "sbhostd: %s\n", what);
}

static struct sb_daytona_opts
daytona_opts(const struct hostd_config *c)
{
	struct sb_daytona_opts o = SB_DAYTONA_OPTS_INIT;

	o.listen = c->daytona_listen;
	o.key_file = c->daytona_key_file;
	o.ssh_gateway = c->daytona_ssh_gateway;
	return o;
}

/* The APIs of others over the same host. */
static int
start_others(struct hostd *d, const struct sb_rpc_server_opts *so, struct sb_error *err)
{
	const struct hostd_config *c = &d->config;

	if (c->e2b_listen) {
		d->e2b = sb_e2b_start(d->daemon, c->e2b_listen, c->e2b_key_file, so, err);
		if (!d->e2b)
			return err->code;
		sb_log(&d->log, SB_LOG_INFO, "sbhostd", "E2B API on %s", c->e2b_listen);
	}
	if (c->daytona_listen) {
		const struct sb_daytona_opts o = daytona_opts(c);

		d->daytona = sb_daytona_start(d->daemon, &o, so, err);
		if (!d->daytona)
			return err->code;
		sb_log(&d->log, SB_LOG_INFO, "sbhostd", "Daytona API on %s", c->daytona_listen);
	}
	if (c->ssh_listen) {
		struct sb_sshgate_opts ssh;

		hostd_config_ssh(c, &ssh);
		ssh.log = so->log;
		if (d->daytona)
			d->ssh_access[0] = sb_daytona_access(d->daytona);
		ssh.access = d->ssh_access;
		d->ssh = sb_sshgate_start(d->daemon, &ssh, err);
		if (!d->ssh)
			return err->code;
		sb_log(&d->log, SB_LOG_INFO, "sbhostd", "SSH on %s", c->ssh_listen);
	}
	return 0;
}

/* Checks the configuration as far as it goes without a host; starts everything unless --check. */
static int
open_parts(struct hostd *d, struct sb_error *err)
{
	struct sb_rpc_server_opts so;
	struct sb_host_opts ho;
	const char **listen = NULL;
	int r;

	d->daemon = sb_rpc_daemon_new(err);
	if (!d->daemon)
		return SB_E_NOMEM;
	r = hostd_config_auth(&d->config, d->daemon, err);
	if (r == 0)
		r = hostd_config_server(&d->config, &so, &listen, err);
	hostd_config_host(&d->config, &ho);
	if (r == 0 && d->config.check) {
		sb_rpc_daemon_check(d->daemon, &ho, &so, on_found, &d->found);
		if (d->config.e2b_listen)
			sb_e2b_check(d->config.e2b_listen, d->config.e2b_key_file, &so, on_found,
				&d->found);
		if (d->config.daytona_listen) {
			const struct sb_daytona_opts o = daytona_opts(&d->config);

			sb_daytona_check(&o, &so, on_found, &d->found);
		}
		if (d->config.ssh_listen) {
			struct sb_sshgate_opts ssh;

			hostd_config_ssh(&d->config, &ssh);
			sb_sshgate_check(&ssh, &ho, on_found, &d->found);
		}
	} else if (r == 0) {
		ho.log = so.log = d->log;
		r = sb_rpc_daemon_start(d->daemon, &ho, &so, err);
		if (r == 0)
			r = start_others(d, &so, err);
		for (size_t i = 0; r == 0 && listen[i]; i++)
			sb_log(&d->log, SB_LOG_INFO, "sbhostd", "listening on %s", listen[i]);
	}
	if (listen && d->config.listen.n == 0)
		free((char *)(uintptr_t)listen[0]);
	free(listen);
	return r;
}

/*
 * Takes the signals from the start of the daemon to its end, whatever the others wait for. The
 * first one asks for a shutdown, the second one ends its waiting; and the process, when something
 * does not come to its end. What is on disk is good for that at any moment.
 */
static void *
signal_thread(void *arg)
{
	struct hostd *d = arg;
	int sig;

	for (int seen = 0; seen < 2;) {
		if (sigwait(&d->signals, &sig) != 0)
			continue;
		if (sig == SIGHUP) {
			sb_log(&d->log, SB_LOG_WARN, "sbhostd",
				"SIGHUP is ignored: restart to read the configuration");
			continue;
		}
		sb_log(&d->log, seen ? SB_LOG_WARN : SB_LOG_INFO, "sbhostd", "signal %d: %s", sig,
			seen ? "the second one, not waiting any more" :
			       "draining, every session is kept");
		sb_cancel_request(seen++ ? d->hurry : d->stop);
	}
	(void)sleep(HURRY_S);
	sb_log(&d->log, SB_LOG_ERROR, "sbhostd", "something does not end: leaving it behind");
	_exit(1);
}

static void
wait_for_signal(struct hostd *d)
{
	struct pollfd p = { .fd = sb_cancel_fd(d->stop), .events = POLLIN };

	while (!sb_cancel_requested(d->stop))
		(void)poll(&p, 1, -1);
}

/* Lets calls end, ends streams, pauses every session and keeps it. */
static int
shut_down(struct hostd *d)
{
	struct sb_error err = { 0 };
	int r;

	notify("STOPPING=1");
	if (d->e2b)
		sb_e2b_stop(d->e2b, d->config.shutdown_timeout, d->hurry);
	if (d->daytona)
		sb_daytona_stop(d->daytona, d->config.shutdown_timeout, d->hurry);
	sb_sshgate_free(d->ssh);
	d->ssh = NULL;
	r = sb_rpc_daemon_stop(d->daemon, d->config.shutdown_timeout, d->hurry, &err);
	if (r < 0)
		sb_log(&d->log, SB_LOG_ERROR, "sbhostd", "shutdown: %s", err.msg);
	else
		sb_log(&d->log, SB_LOG_INFO, "sbhostd", "stopped");
	return r;
}

static void
close_parts(struct hostd *d)
{
	sb_sshgate_free(d->ssh);
	sb_e2b_free(d->e2b);
	sb_daytona_free(d->daytona);
	sb_rpc_daemon_free(d->daemon);
	hostd_config_free(&d->config);
}

static int
complain(const struct sb_error *err)
{
	(void)fprintf(stderr, "sbhostd: %s\n", err->msg);
	return err->code == SB_E_USAGE ? 2 : 1;
}

/*
 * A connection, a call and a child's pipes are descriptors each: take all that is allowed, within
 * reason.
 */
static void
raise_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) < 0)
		return;
	if (l.rlim_cur < DESCRIPTORS && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max < DESCRIPTORS ? l.rlim_max : DESCRIPTORS;
		(void)setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int
set_up_process(struct hostd *d, struct sb_error *err)
{
	pthread_t thread;

	raise_descriptors();
	d->log =
		(struct sb_log){ .fn = d->config.log_format == HOSTD_LOG_JSON ? log_json : log_text,
			.level = (enum sb_log_level)d->config.log_level };
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&d->signals);
	(void)sigaddset(&d->signals, SIGTERM);
	(void)sigaddset(&d->signals, SIGINT);
	(void)sigaddset(&d->signals, SIGHUP);
	/* Before any thread is made, so that all of them leave these to the one that waits. */
	(void)pthread_sigmask(SIG_BLOCK, &d->signals, NULL);
	d->stop = sb_cancel_new(err);
	d->hurry = d->stop ? sb_cancel_new(err) : NULL;
	if (!d->hurry)
		return SB_E_NOMEM;
	if (pthread_create(&thread, NULL, signal_thread, d) != 0)
		return sb_fail(err, SB_E_SYS, "start the thread that takes signals");
	(void)pthread_detach(thread);
	return 0;
}

int
main(int argc, char **argv)
{
	/* Static: the thread that waits for signals outlives main's work. */
	static struct hostd d;
	struct sb_error err = { 0 };
	int r = hostd_config_load(&d.config, argc, argv, &err);

	if (r == 0 && d.config.help) {
		sb_opt_print_help(stdout, "sbhostd", &hostd_cmd);
		return 0;
	}
	if (r == 0 && d.config.completion >= 0) {
		const struct complete_program p = { .name = "sbhostd", .options = hostd_opts };

		complete_print(stdout, &p, (enum complete_shell)d.config.completion);
		return fflush(stdout) == 0 ? 0 : 1;
	}
	if (r == 0 && d.config.show_config)
		return hostd_config_print(&d.config, stdout) == 0 ? 0 : 1;
	if (r == 0 && d.config.version) {
		(void)printf("sbhostd %s\n", sb_version());
		return 0;
	}
	if (r == 0)
		r = make_state_dir(&d.config, &err);
	if (r == 0)
		r = set_up_process(&d, &err);
	if (r < 0)
		return complain(&err);
	r = open_parts(&d, &err);
	if (r < 0 || d.config.check) {
		close_parts(&d);
		return r < 0 ? complain(&err) : d.found > 0;
	}
	notify("READY=1");
	wait_for_signal(&d);
	r = shut_down(&d);
	close_parts(&d);
	return r < 0 ? 1 : 0;
}
