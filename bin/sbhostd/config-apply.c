/* SPDX-License-Identifier: MIT */
/* The configuration as options of the host and of its server, and its tokens. */
#include "config.h"

#include <bin/sbhostd/hostd.h>

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/random.h>
#include <base/str.h>

#define KEY_BYTES 32
#define DEFAULT_SOCKET "sbhostd.sock"

void
hostd_config_host(const struct hostd_config *c, struct sb_host_opts *o)
{
	/* In the order of the option's choices. */
	static const enum sb_host_storage storages[] = { SB_HOST_STORAGE_AUTO, SB_HOST_OVERLAY,
		SB_HOST_BTRFS, SB_HOST_ZFS, SB_HOST_LOCAL_DISK };

	*o = (struct sb_host_opts)SB_HOST_OPTS_INIT;
	o->storage = storages[c->storage];
	o->durability = (enum sb_host_durability)c->durability;
	o->runtime = (enum sb_host_runtime)c->runtime;
	o->default_network = (enum sb_host_network)c->network;
	o->rootfs = c->rootfs;
	o->box_path = c->box_path;
	o->bwrap_path = c->bwrap_path;
	o->runsc_path = c->runsc_path;
	o->runsc_platform = c->runsc_platform;
	o->sandbox_netns = c->sandbox_netns;
	o->egress_resolver = c->egress_resolver;
	o->allow_host_network = c->allow_host_network;
	o->session_mem_mb = c->session_memory >> 20;
	o->session_tmp_mb = c->session_tmp >> 20;
	o->session_pids = (uint64_t)c->session_pids;
	o->session_uid_count = (uint32_t)c->session_uids;
	o->session_uid_first = (uint32_t)c->session_uid_first;
	o->session_cpus = (double)c->session_cpus / 100;
	o->orphans = c->orphans == 2 ? SB_HOST_ORPHANS_DESTROY :
		c->orphans == 1      ? SB_HOST_ORPHANS_REPORT :
				       SB_HOST_ORPHANS_ADOPT;
	o->state_dir = c->state_dir;
	o->pool = c->pool;
	o->bases_dataset = c->bases_dataset;
	o->sessions_dataset = c->sessions_dataset;
	o->sessions_root_dir = c->sessions_root_dir;
	o->bases_dir = c->bases_dir;
	o->zfs_path = c->zfs_path;
	o->zpool_path = c->zpool_path;
	o->sudo = c->sudo;
	o->advertise_addr = c->advertise_addr;
	o->bind_addr = c->bind_addr;
	o->max_session_ms = c->max_session;
	o->cold_store = c->cold_store;
	o->cold_space = c->cold_space;
	o->cold_key_file = c->cold_key_file;
	o->cold_rate = c->cold_rate;
	o->cold_transfers = (unsigned)c->cold_transfers;
	o->cold_after_ms = c->cold_after;
	o->expire_destroys = c->session_expiry == 1;
	o->snapshot_prefix = c->snapshot_prefix;
	o->default_base = c->default_base;
	o->default_quota = c->default_quota;
	o->max_sessions = (unsigned)c->max_sessions;
	o->keep_turn = (unsigned)c->keep_turn;
	o->keep_named = (unsigned)c->keep_named;
	o->keep_tool = (unsigned)c->keep_tool;
	o->per_tool_snapshots = c->per_tool_snapshots;
	o->no_resume = c->no_resume;
	o->warn_at = (double)c->warn_at / 100;
	o->critical_at = (double)c->critical_at / 100;
	o->tool_timeout_ms = c->tool_timeout;
	o->drain_timeout_ms = c->drain_timeout;
	o->shutdown_timeout_ms = c->shutdown_timeout;
	o->health_interval_ms = c->health_interval;
	o->storage_timeout_ms = c->storage_timeout;
	o->transfer_timeout_ms = c->transfer_timeout;
	o->max_tools = (unsigned)c->max_tools;
	o->max_processes = (unsigned)c->max_processes;
	o->max_log_bytes = c->max_log_bytes;
}

void
hostd_config_ssh(const struct hostd_config *c, struct sb_sshgate_opts *o)
{
	*o = (struct sb_sshgate_opts)SB_SSHGATE_OPTS_INIT;
	o->listen = c->ssh_listen;
	o->host_key = c->ssh_host_key;
	o->authorized_keys = c->ssh_authorized_keys;
	o->session_keys = c->ssh_session_keys;
	o->max_connections = (unsigned)c->ssh_max_connections;
	o->max_each = (unsigned)c->ssh_max_each;
	o->max_channels = (unsigned)c->ssh_max_channels;
	o->login_ms = c->ssh_login_timeout;
	o->idle_s = c->ssh_keepalive / 1000;
}

static int
parse_version(const char *text, const char *option, unsigned *out, struct sb_error *err)
{
	int64_t v = 0;

	if (text[0] != 'v' || !sb_str_to_i64(text + 1, 1, 1000000, &v))
		return sb_fail(err, SB_E_USAGE, "--%s \"%s\": must be v and a number", option,
			text);
	*out = (unsigned)v;
	return 0;
}

static int
parse_mode(const char *text, mode_t *out, struct sb_error *err)
{
	unsigned v = 0;
	size_t i;

	for (i = 0; text[i] >= '0' && text[i] <= '7' && i < 5; i++)
		v = v * 8 + (unsigned)(text[i] - '0');
	if (i == 0 || text[i] || v > 0777)
		return sb_fail(err, SB_E_USAGE,
			"--socket-mode \"%s\": must be octal, such as 0600 or 0660", text);
	*out = (mode_t)v;
	return 0;
}

static int
find_group(const char *name, gid_t *out, struct sb_error *err)
{
	const struct group *g;

	if (!name)
		return 0;
	g = getgrnam(name);
	if (!g)
		return sb_fail(err, SB_E_NOTFOUND, "--socket-group %s: there is no such group",
			name);
	*out = g->gr_gid;
	return 0;
}

/*
 * Without an address: a socket in the directory that systemd made for it, or in the state
 * directory.
 */
static char *
default_listen(const struct hostd_config *c)
{
	const char *dir = getenv("RUNTIME_DIRECTORY");

	return sb_str_printf("unix:%s/" DEFAULT_SOCKET, dir && dir[0] ? dir : c->state_dir);
}

int
hostd_config_server(const struct hostd_config *c, struct sb_rpc_server_opts *o,
	const char ***listen, struct sb_error *err)
{
	const char **v = calloc(c->listen.n + 2, sizeof *v);
	int r;

	*o = (struct sb_rpc_server_opts)SB_RPC_SERVER_OPTS_INIT;
	*listen = v;
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; i < c->listen.n; i++)
		v[i] = c->listen.v[i];
	if (c->listen.n == 0 && !(v[0] = default_listen(c)))
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	o->listen = v;
	o->socket_auth = c->socket_auth;
	o->tls_cert = c->tls_cert;
	o->tls_key = c->tls_key;
	o->plain_tcp = c->plain_tcp;
	o->max_message = c->max_message;
	if (o->max_buffered < 4 * o->max_message)
		o->max_buffered = 4 * o->max_message;
	o->max_connections = (unsigned)c->max_connections;
	o->max_calls = (unsigned)c->max_calls;
	o->max_streams = (unsigned)c->max_streams;
	o->max_calls_each = (unsigned)c->max_calls_each;
	o->max_streams_each = (unsigned)c->max_streams_each;
	o->io_threads = (unsigned)c->io_threads;
	o->header_ms = c->header_timeout;
	o->body_ms = c->body_timeout;
	o->idle_ms = c->idle_timeout;
	r = parse_mode(c->socket_mode, &o->socket_mode, err);
	if (r == 0)
		r = find_group(c->socket_group, &o->socket_gid, err);
	if (r == 0)
		r = parse_version(c->api_version, "api-version", &o->api_version, err);
	if (r == 0)
		r = parse_version(c->min_api_version, "min-api-version", &o->min_api_version, err);
	return r;
}

/*
 * A secret in a file: its first line, which becomes the token of `t`. Others on the machine must
 * not be able to read it.
 */
static int
add_token_file(struct sb_rpc_daemon *d, struct sb_rpc_token *t, const char *path,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct stat st;
	int r;

	if (stat(path, &st) < 0)
		return sb_fail_errno(err, "token file %s", path);
	if (st.st_mode & (S_IWGRP | S_IRWXO))
		return sb_fail(err, SB_E_DENIED,
			"token file %s is open to others: chmod o-rwx,g-w it", path);
	r = sb_file_read(AT_FDCWD, path, SB_RPC_TOKEN_MAX + 2, &text, err);
	if (r < 0)
		return sb_wrap(err, r, "token file");
	text.data[strcspn((const char *)text.data, "\r\n")] = '\0';
	t->token = (const char *)text.data;
	r = sb_rpc_daemon_add_token(d, t, err);
	t->token = NULL;
	explicit_bzero(text.data, text.len);
	return r < 0 ? sb_wrap(err, r, "token file %s", path) : 0;
}

static int
add_config_token(struct sb_rpc_daemon *d, const struct hostd_token *c, struct sb_error *err)
{
	struct sb_rpc_token t = {
		.name = c->name,
		.role = c->role,
		.session = c->session,
		.token = c->token,
		.sha256 = c->sha256,
	};

	if (c->token_file)
		return add_token_file(d, &t, c->token_file, err);
	return sb_rpc_daemon_add_token(d, &t, err);
}

/* The key that session tokens are signed with: made at the first start, then kept. */
static int
load_key(struct sb_rpc_daemon *d, const char *path, bool may_make, bool look_only,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf key = { 0 };
	uint8_t fresh[KEY_BYTES];
	struct sb_error why = { 0 };
	struct stat st;
	int r;

	if (stat(path, &st) == 0 && (st.st_mode & (S_IWGRP | S_IRWXO)))
		return sb_fail(err, SB_E_DENIED,
			"key for session tokens %s is open to others: chmod o-rwx,g-w it", path);
	r = sb_file_read(AT_FDCWD, path, 4096, &key, &why);
	if (r == SB_E_NOTFOUND && look_only)
		return 0; /* the start makes it */

	if (r == SB_E_NOTFOUND && may_make) {
		sb_buf_init(&key, 4096);
		r = sb_random(fresh, sizeof fresh, err);
		if (r == 0)
			r = sb_file_replace(AT_FDCWD, path, fresh, sizeof fresh, 0600, err);
		sb_buf_add(&key, fresh, sizeof fresh);
		explicit_bzero(fresh, sizeof fresh);
	} else if (r < 0 && err) {
		*err = why;
	}
	if (r < 0)
		return sb_wrap(err, r, "key for session tokens");
	r = sb_rpc_daemon_set_key(d, key.data, key.len, err);
	explicit_bzero(key.data, key.len);
	return r < 0 ? sb_wrap(err, r, "%s", path) : 0;
}

int
hostd_config_auth(const struct hostd_config *c, struct sb_rpc_daemon *d, struct sb_error *err)
{
	const char *env = getenv("SANDBOX_AUTH_TOKEN");
	struct sb_rpc_token file = { .name = "token-file", .role = "admin" };
	const struct sb_rpc_token variable = {
		.name = "environment",
		.role = "admin",
		.token = env,
	};
	sb_autofree char *key = NULL;
	int r = 0;

	for (size_t i = 0; i < c->n_tokens && r == 0; i++)
		r = add_config_token(d, &c->tokens[i], err);
	if (r == 0 && c->token_file)
		r = add_token_file(d, &file, c->token_file, err);
	if (r == 0 && env && env[0]) {
		r = sb_rpc_daemon_add_token(d, &variable, err);
		if (r < 0)
			return sb_wrap(err, r, "SANDBOX_AUTH_TOKEN");
		/* Nothing that this process starts may see it. */
		(void)unsetenv("SANDBOX_AUTH_TOKEN");
	}
	if (r < 0)
		return r;
	if (c->token_key_file)
		return load_key(d, c->token_key_file, false, false, err);
	key = sb_str_printf("%s/session-token.key", c->state_dir);
	return key ? load_key(d, key, true, c->check, err) :
		     sb_fail(err, SB_E_NOMEM, "out of memory");
}
