/* SPDX-License-Identifier: MIT */
#ifndef SBHOSTD_HOSTD_H
#define SBHOSTD_HOSTD_H

#include <stdbool.h>
#include <stdio.h>

#include <base/opt.h>
#include <base/strlist.h>
#include <sb/rpc-daemon.h>
#include <sb/sshgate.h>

enum hostd_log_format { HOSTD_LOG_JSON, HOSTD_LOG_TEXT };

/* A token as the configuration file names it. */
struct hostd_token {
	char *name, *role, *session;
	char *token, *token_file, *sha256; /* one of them */
};

/*
 * Everything that can be configured: one table of options serves the file, the environment and the
 * flags.
 */
struct hostd_config {
	const char *config_file;
	bool check, help, version;
	bool show_config;
	int completion; /* a shell, -1: not asked for */
	struct sb_opt_list listen;
	const char *socket_mode, *socket_group;
	bool socket_auth, plain_tcp;
	const char *tls_cert, *tls_key;
	const char *e2b_listen, *e2b_key_file;
	const char *daytona_listen, *daytona_key_file, *daytona_ssh_gateway;
	const char *ssh_listen, *ssh_host_key, *ssh_authorized_keys, *ssh_session_keys;
	int64_t ssh_max_connections, ssh_max_each, ssh_max_channels, ssh_login_timeout,
		ssh_keepalive;
	const char *token_file, *token_key_file;
	const char *state_dir;
	int storage, durability, runtime, orphans, log_level, log_format, network, session_expiry;
	const char *pool, *bases_dataset, *sessions_dataset, *sessions_root_dir, *bases_dir;
	const char *default_base, *zfs_path, *zpool_path, *advertise_addr, *bind_addr,
		*snapshot_prefix;
	const char *rootfs, *box_path, *bwrap_path, *runsc_path, *runsc_platform, *sandbox_netns,
		*egress_resolver;
	bool sudo, per_tool_snapshots, no_resume, allow_host_network;
	int64_t session_cpus, session_pids, session_uids, session_uid_first;
	uint64_t session_memory, session_tmp;
	int64_t max_sessions, keep_turn, keep_named, keep_tool, warn_at, critical_at, max_tools,
		max_processes;
	uint64_t default_quota, max_log_bytes, max_message;
	const char *cold_store, *cold_space, *cold_key_file;
	uint64_t cold_rate;
	int64_t cold_transfers, cold_after;
	int64_t max_session, tool_timeout, drain_timeout, shutdown_timeout, health_interval,
		storage_timeout, transfer_timeout;
	const char *api_version, *min_api_version;
	int64_t max_connections, max_calls, max_streams, max_calls_each, max_streams_each,
		io_threads;
	int64_t header_timeout, body_timeout, idle_timeout;

	struct hostd_token *tokens;
	size_t n_tokens;
	struct sb_strlist kept; /* strings from file and environment */
};

/* Of the choices of storage-backend. */
#define HOSTD_STORAGE_ZFS 3
extern const struct sb_opt hostd_opts[];

/*
 * Defaults, then the file, then the environment, then the flags. SB_E_USAGE or SB_E_INVAL in one
 * line.
 */
int hostd_config_load(struct hostd_config *c, int argc, char **argv, struct sb_error *err);
void hostd_config_free(struct hostd_config *c);

/*
 * config-apply.c: sets option `name` from text; `source` says where it came from ("FILE:12",
 * "SANDBOX_SUDO").
 */
int hostd_config_set(struct hostd_config *c, const char *name, const char *value,
	const char *source, struct sb_error *err);
/* Empties a list option, so that a later source replaces what an earlier one gave. */
void hostd_config_clear_list(struct hostd_config *c, const char *name);
/* The file's content into `c`. */
int hostd_config_read_file(struct hostd_config *c, const char *path, struct sb_error *err);

/*
 * config-print.c: what counts, as a configuration file would say it; no secrets. -1: not written.
 */
int hostd_config_print(const struct hostd_config *c, FILE *f);

/* The options of the parts. `listen` (NULL-terminated, freed by the caller) is the server's. */
void hostd_config_host(const struct hostd_config *c, struct sb_host_opts *out);
int hostd_config_server(const struct hostd_config *c, struct sb_rpc_server_opts *out,
	const char ***listen, struct sb_error *err);
void hostd_config_ssh(const struct hostd_config *c, struct sb_sshgate_opts *out);
/* Tokens of the file, of --token-file and of SANDBOX_AUTH_TOKEN; the key for session tokens. */
int hostd_config_auth(const struct hostd_config *c, struct sb_rpc_daemon *d, struct sb_error *err);

#endif
