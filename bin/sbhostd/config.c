/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <bin/sbhostd/hostd.h>

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const char *const storages[] = { "zfs", "local-disk", NULL };
static const char *const runtimes[] = { "none", "bwrap", "gvisor", "auto", NULL };
static const char *const networks[] = { "default", "none", "sandbox", "host", NULL };
static const char *const orphan_ways[] = { "adopt", "report", "destroy", NULL };
static const char *const levels[] = { "error", "warn", "info", "debug", "trace", NULL };
static const char *const formats[] = { "json", "text", NULL };

#define AT(field) offsetof(struct hostd_config, field)
#define DAY_MS (24 * 3600 * 1000)

const struct sb_opt hostd_opts[] = {
	{ 'c', "config", SB_OPT_STRING, AT(config_file), "FILE",
		"read options from a YAML file first", NULL, 0, 0 },
	{ 0, "check", SB_OPT_FLAG, AT(check), NULL, "check the configuration and exit", NULL, 0,
		0 },
	{ 'l', "listen", SB_OPT_LIST, AT(listen), "ADDR", "unix:PATH or HOST:PORT; may be repeated",
		NULL, 0, 0 },
	{ 0, "socket-mode", SB_OPT_STRING, AT(socket_mode), "MODE", "of unix sockets (0600)", NULL,
		0, 0 },
	{ 0, "socket-group", SB_OPT_STRING, AT(socket_group), "GROUP", "group of unix sockets",
		NULL, 0, 0 },
	{ 0, "socket-auth", SB_OPT_FLAG, AT(socket_auth), NULL, "want a token on unix sockets too",
		NULL, 0, 0 },
	{ 0, "tls-cert", SB_OPT_STRING, AT(tls_cert), "FILE", "certificate chain for TCP (PEM)",
		NULL, 0, 0 },
	{ 0, "tls-key", SB_OPT_STRING, AT(tls_key), "FILE", "its private key (PEM)", NULL, 0, 0 },
	{ 0, "token-file", SB_OPT_STRING, AT(token_file), "FILE",
		"file with an admin's bearer token", NULL, 0, 0 },
	{ 0, "token-key-file", SB_OPT_STRING, AT(token_key_file), "FILE",
		"key for session tokens (made in the state directory)", NULL, 0, 0 },
	{ 0, "state-dir", SB_OPT_STRING, AT(state_dir), "DIR", "database and logs of processes",
		NULL, 0, 0 },
	{ 0, "storage-backend", SB_OPT_CHOICE, AT(storage), "NAME", "zfs (default) or local-disk",
		storages, 0, 0 },
	{ 0, "container-runtime", SB_OPT_CHOICE, AT(runtime), "NAME",
		"none (default), bwrap, gvisor or auto", runtimes, 0, 0 },
	{ 0, "rootfs", SB_OPT_STRING, AT(rootfs), "DIR", "root of sandboxes (this machine's /usr)",
		NULL, 0, 0 },
	{ 0, "default-network", SB_OPT_CHOICE, AT(network), "NAME",
		"default, none, sandbox or host", networks, 0, 0 },
	{ 0, "sandbox-netns", SB_OPT_STRING, AT(sandbox_netns), "FILE",
		"network namespace for network sandbox", NULL, 0, 0 },
	{ 0, "allow-host-network", SB_OPT_FLAG, AT(allow_host_network), NULL,
		"sessions may ask for network host", NULL, 0, 0 },
	{ 0, "session-memory", SB_OPT_SIZE, AT(session_memory), "SIZE",
		"of all in one sandbox (4G); 0: none", NULL, 0, INT64_MAX },
	{ 0, "session-tmp", SB_OPT_SIZE, AT(session_tmp), "SIZE", "of its /tmp in memory (512M)",
		NULL, 0, INT64_MAX },
	{ 0, "session-pids", SB_OPT_INT, AT(session_pids), "N",
		"processes in one sandbox (1024); 0: any", NULL, 0, 4194304 },
	{ 0, "session-cpus", SB_OPT_INT, AT(session_cpus), "PERCENT",
		"100: one processor; 0: any (default)", NULL, 0, 25600 },
	{ 0, "box-path", SB_OPT_STRING, AT(box_path), "FILE", "the helper sb-box", NULL, 0, 0 },
	{ 0, "bwrap-path", SB_OPT_STRING, AT(bwrap_path), "FILE", "the bwrap command", NULL, 0, 0 },
	{ 0, "runsc-path", SB_OPT_STRING, AT(runsc_path), "FILE", "the runsc command", NULL, 0, 0 },
	{ 0, "runsc-platform", SB_OPT_STRING, AT(runsc_platform), "NAME",
		"of gVisor (what a probe finds)", NULL, 0, 0 },
	{ 0, "pool", SB_OPT_STRING, AT(pool), "NAME", "zfs: the pool", NULL, 0, 0 },
	{ 0, "bases-dataset", SB_OPT_STRING, AT(bases_dataset), "NAME",
		"zfs: where base images are", NULL, 0, 0 },
	{ 0, "sessions-dataset", SB_OPT_STRING, AT(sessions_dataset), "NAME",
		"zfs: where sessions go", NULL, 0, 0 },
	{ 0, "zfs-path", SB_OPT_STRING, AT(zfs_path), "FILE", "the zfs command", NULL, 0, 0 },
	{ 0, "zpool-path", SB_OPT_STRING, AT(zpool_path), "FILE", "the zpool command", NULL, 0, 0 },
	{ 0, "sudo", SB_OPT_FLAG, AT(sudo), NULL, "run them by sudo -n", NULL, 0, 0 },
	{ 0, "sessions-root-dir", SB_OPT_STRING, AT(sessions_root_dir), "DIR",
		"local-disk: where sessions go", NULL, 0, 0 },
	{ 0, "bases-dir", SB_OPT_STRING, AT(bases_dir), "DIR", "local-disk: where base images are",
		NULL, 0, 0 },
	{ 0, "default-base", SB_OPT_STRING, AT(default_base), "NAME",
		"base image when none is named", NULL, 0, 0 },
	{ 0, "default-quota", SB_OPT_SIZE, AT(default_quota), "SIZE", "of a session; 0: none", NULL,
		0, INT64_MAX },
	{ 0, "max-sessions", SB_OPT_INT, AT(max_sessions), "N", "0: any number", NULL, 0, 1000000 },
	{ 0, "max-tools", SB_OPT_INT, AT(max_tools), "N", "at a time in one session (64)", NULL, 1,
		10000 },
	{ 0, "max-processes", SB_OPT_INT, AT(max_processes), "N", "in one session (64)", NULL, 1,
		10000 },
	{ 0, "max-log-bytes", SB_OPT_SIZE, AT(max_log_bytes), "SIZE", "of one process (16M)", NULL,
		4096, INT64_MAX },
	{ 0, "snapshot-prefix", SB_OPT_STRING, AT(snapshot_prefix), "TEXT",
		"of turn snapshots (turn)", NULL, 0, 0 },
	{ 0, "keep-turn-snapshots", SB_OPT_INT, AT(keep_turn), "N", "newest to keep, 0: all", NULL,
		0, 1000000 },
	{ 0, "keep-named-snapshots", SB_OPT_INT, AT(keep_named), "N", "newest to keep, 0: all",
		NULL, 0, 1000000 },
	{ 0, "keep-tool-snapshots", SB_OPT_INT, AT(keep_tool), "N", "newest to keep, 0: all", NULL,
		0, 1000000 },
	{ 0, "per-tool-snapshots", SB_OPT_FLAG, AT(per_tool_snapshots), NULL,
		"a snapshot after every tool call", NULL, 0, 0 },
	{ 0, "orphans", SB_OPT_CHOICE, AT(orphans), "HOW",
		"unknown data: adopt (default), report, destroy", orphan_ways, 0, 0 },
	{ 0, "no-resume", SB_OPT_FLAG, AT(no_resume), NULL,
		"leave paused what the last shutdown paused", NULL, 0, 0 },
	{ 0, "warn-at", SB_OPT_INT, AT(warn_at), "PERCENT", "storage use that is degraded (85)",
		NULL, 1, 100 },
	{ 0, "critical-at", SB_OPT_INT, AT(critical_at), "PERCENT",
		"storage use that refuses sessions (95)", NULL, 1, 100 },
	{ 0, "advertise-addr", SB_OPT_STRING, AT(advertise_addr), "ADDR",
		"in addresses of ports (127.0.0.1)", NULL, 0, 0 },
	{ 0, "tool-timeout", SB_OPT_TIME, AT(tool_timeout), "TIME", "of one tool call (5m)", NULL,
		1, DAY_MS },
	{ 0, "drain-timeout", SB_OPT_TIME, AT(drain_timeout), "TIME", "pause waits for tools (30s)",
		NULL, 1, DAY_MS },
	{ 0, "shutdown-timeout", SB_OPT_TIME, AT(shutdown_timeout), "TIME",
		"the end waits for calls (30s)", NULL, 1, DAY_MS },
	{ 0, "health-interval", SB_OPT_TIME, AT(health_interval), "TIME",
		"between health checks (30s)", NULL, 100, DAY_MS },
	{ 0, "storage-timeout", SB_OPT_TIME, AT(storage_timeout), "TIME",
		"of one storage command (30s)", NULL, 1, DAY_MS },
	{ 0, "transfer-timeout", SB_OPT_TIME, AT(transfer_timeout), "TIME",
		"of one send or receive (10m)", NULL, 1, DAY_MS },
	{ 0, "rpc-max-message-bytes", SB_OPT_SIZE, AT(max_message), "SIZE", "of one message (16M)",
		NULL, 65536, 1 << 30 },
	{ 0, "api-version", SB_OPT_STRING, AT(api_version), "VN", "told to clients (v1)", NULL, 0,
		0 },
	{ 0, "min-api-version", SB_OPT_STRING, AT(min_api_version), "VN",
		"older clients are refused (v1)", NULL, 0, 0 },
	{ 0, "max-connections", SB_OPT_INT, AT(max_connections), "N", "of each listener (1024)",
		NULL, 2, 100000 },
	{ 0, "max-calls", SB_OPT_INT, AT(max_calls), "N", "running at a time (512)", NULL, 1,
		10000 },
	{ 0, "max-streams", SB_OPT_INT, AT(max_streams), "N", "open at a time (256)", NULL, 1,
		10000 },
	{ 0, "io-threads", SB_OPT_INT, AT(io_threads), "N", "that read and write (2)", NULL, 1,
		64 },
	{ 0, "header-timeout", SB_OPT_TIME, AT(header_timeout), "TIME",
		"for a request's header (10s)", NULL, 1, DAY_MS },
	{ 0, "body-timeout", SB_OPT_TIME, AT(body_timeout), "TIME", "for a request's body (60s)",
		NULL, 1, DAY_MS },
	{ 0, "idle-timeout", SB_OPT_TIME, AT(idle_timeout), "TIME", "between requests (75s)", NULL,
		1, DAY_MS },
	{ 0, "log-level", SB_OPT_CHOICE, AT(log_level), "LEVEL",
		"error, warn, info (default), debug, trace", levels, 0, 0 },
	{ 0, "log-format", SB_OPT_CHOICE, AT(log_format), "FORM",
		"json (default) or text, on stderr", formats, 0, 0 },
	{ 'h', "help", SB_OPT_FLAG, AT(help), NULL, "print this and exit", NULL, 0, 0 },
	{ 0, "version", SB_OPT_FLAG, AT(version), NULL, "print the version and exit", NULL, 0, 0 },
	{ 0, NULL, SB_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0 },
};

/* Where the defaults of the libraries are, this program has no others. */
static void
set_defaults(struct hostd_config *c)
{
	const struct sb_host_opts h = SB_HOST_OPTS_INIT;
	const struct sb_rpc_server_opts s = SB_RPC_SERVER_OPTS_INIT;

	*c = (struct hostd_config){
		.socket_mode = "0600",
		.storage = h.storage == SB_HOST_ZFS ? 0 : 1,
		.log_level = SB_LOG_INFO,
		.snapshot_prefix = h.snapshot_prefix,
		.advertise_addr = h.advertise_addr,
		.warn_at = (int64_t)(h.warn_at * 100 + 0.5),
		.critical_at = (int64_t)(h.critical_at * 100 + 0.5),
		.max_tools = h.max_tools,
		.max_processes = h.max_processes,
		.max_log_bytes = h.max_log_bytes,
		.session_memory = h.session_mem_mb << 20,
		.session_tmp = h.session_tmp_mb << 20,
		.session_pids = (int64_t)h.session_pids,
		.tool_timeout = h.tool_timeout_ms,
		.drain_timeout = h.drain_timeout_ms,
		.shutdown_timeout = h.shutdown_timeout_ms,
		.health_interval = h.health_interval_ms,
		.storage_timeout = h.storage_timeout_ms,
		.transfer_timeout = h.transfer_timeout_ms,
		.max_message = s.max_message,
		.api_version = "v1",
		.min_api_version = "v1",
		.max_connections = s.max_connections,
		.max_calls = s.max_calls,
		.max_streams = s.max_streams,
		.io_threads = s.io_threads,
		.header_timeout = s.header_ms,
		.body_timeout = s.body_ms,
		.idle_timeout = s.idle_ms,
	};
}

void
hostd_config_free(struct hostd_config *c)
{
	for (size_t i = 0; i < c->n_tokens; i++) {
		struct hostd_token *t = &c->tokens[i];

		free(t->name);
		free(t->role);
		free(t->session);
		if (t->token)
			explicit_bzero(t->token, strlen(t->token));
		free(t->token);
		free(t->token_file);
		free(t->sha256);
	}
	free(c->tokens);
	sb_opt_list_free(&c->listen);
	sb_strlist_free(&c->kept);
	*c = (struct hostd_config){ 0 };
}

static const struct sb_opt *
find_option(const char *name)
{
	const struct sb_opt *o = hostd_opts;

	while (o->name && strcmp(o->name, name) != 0)
		o++;
	return o->name ? o : NULL;
}

void
hostd_config_clear_list(struct hostd_config *c, const char *name)
{
	const struct sb_opt *o = find_option(name);

	if (o && o->kind == SB_OPT_LIST)
		sb_opt_list_free((struct sb_opt_list *)((char *)c + o->offset));
}

static int
set_flag(struct hostd_config *c, const struct sb_opt *o, const char *value, struct sb_error *err)
{
	static const char *const yes[] = { "true", "yes", "on", "1" },
				 *const no[] = { "false", "no", "off", "0", "" };
	bool *to = (bool *)((char *)c + o->offset);

	for (size_t i = 0; i < sizeof yes / sizeof yes[0]; i++)
		if (strcasecmp(value, yes[i]) == 0) {
			*to = true;
			return 0;
		}
	for (size_t i = 0; i < sizeof no / sizeof no[0]; i++)
		if (strcasecmp(value, no[i]) == 0) {
			*to = false;
			return 0;
		}
	return sb_fail(err, SB_E_INVAL, "--%s \"%s\": must be true or false", o->name, value);
}

int
hostd_config_set(struct hostd_config *c, const char *name, const char *value, const char *source,
	struct sb_error *err)
{
	const struct sb_opt *o = find_option(name);
	char program[] = "sbhostd", *argv[3] = { program, NULL, NULL };
	char **rest;
	int n, r;

	if (!o)
		return sb_fail(err, SB_E_INVAL, "%s: there is no option %s", source, name);
	if (o->kind == SB_OPT_FLAG) {
		r = set_flag(c, o, value, err);
		return r < 0 ? sb_wrap(err, r, "%s", source) : 0;
	}
	sb_strlist_addf(&c->kept, "--%s=%s", name, value);
	r = sb_strlist_check(&c->kept, err);
	if (r < 0)
		return r;
	argv[1] = c->kept.v[c->kept.n - 1];
	r = sb_opt_parse(hostd_opts, 2, argv, false, c, &rest, &n, err);
	return r < 0 ? sb_wrap(err, r, "%s", source) : 0;
}

/* The variable of an option: SANDBOX_ and its name, but for two that are older than the rule. */
static void
env_name(const struct sb_opt *o, char *out, size_t size)
{
	size_t n;

	if (strcmp(o->name, "listen") == 0)
		n = (size_t)snprintf(out, size, "SANDBOX_HOST_LISTEN");
	else if (strcmp(o->name, "pool") == 0)
		n = (size_t)snprintf(out, size, "SANDBOX_POOL_NAME");
	else
		n = (size_t)snprintf(out, size, "SANDBOX_%s", o->name);
	for (size_t i = 0; i < n && i < size; i++)
		out[i] = out[i] == '-' ? '_' : (char)toupper((unsigned char)out[i]);
}

/* A list in a variable is separated by commas. */
static int
set_list(struct hostd_config *c, const struct sb_opt *o, const char *value, const char *source,
	struct sb_error *err)
{
	sb_autofree char *copy = strdup(value);
	char *at = copy, *part;
	int r = 0;

	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	hostd_config_clear_list(c, o->name);
	while (r == 0 && (part = strsep(&at, ",")) != NULL)
		if (part[0])
			r = hostd_config_set(c, o->name, part, source, err);
	return r;
}

static int
read_environment(struct hostd_config *c, struct sb_error *err)
{
	char name[80];
	int r = 0;

	for (const struct sb_opt *o = hostd_opts; o->name && r == 0; o++) {
		const char *value;

		if (o->offset == AT(config_file) || o->offset == AT(check) ||
			o->offset == AT(help) || o->offset == AT(version))
			continue;
		env_name(o, name, sizeof name);
		value = getenv(name);
		if (!value || !value[0])
			continue;
		r = o->kind == SB_OPT_LIST ? set_list(c, o, value, name, err) :
					     hostd_config_set(c, o->name, value, name, err);
	}
	return r;
}

static int
parse_flags(struct hostd_config *c, int argc, char **argv, struct sb_error *err)
{
	sb_autofree char **copy = calloc((size_t)argc + 1, sizeof *copy);
	char **rest;
	int n, r;

	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	memcpy(copy, argv, (size_t)argc * sizeof *copy);
	r = sb_opt_parse(hostd_opts, argc, copy, false, c, &rest, &n, err);
	if (r == 0 && n > 0)
		return sb_fail(err, SB_E_USAGE, "unexpected argument \"%s\": see --help", rest[0]);
	return r;
}

/*
 * Sources in order; a first look at the flags finds the file and whether they replace the list of
 * addresses.
 */
int
hostd_config_load(struct hostd_config *c, int argc, char **argv, struct sb_error *err)
{
	struct hostd_config first;
	const char *file;
	bool replace;
	int r;

	set_defaults(&first);
	set_defaults(c);
	r = parse_flags(&first, argc, argv, err);
	file = first.config_file ? first.config_file : getenv("SANDBOX_CONFIG");
	replace = first.listen.n > 0;
	if (r == 0 && (first.help || first.version)) {
		c->help = first.help;
		c->version = first.version;
		hostd_config_free(&first);
		return 0;
	}
	hostd_config_free(&first);
	if (r == 0 && file && file[0])
		r = hostd_config_read_file(c, file, err);
	if (r == 0)
		r = read_environment(c, err);
	if (r == 0 && replace)
		hostd_config_clear_list(c, "listen");
	if (r == 0)
		r = parse_flags(c, argc, argv, err);
	return r;
}
