/* SPDX-License-Identifier: MIT */
/* The options of sbhostd: one table for the flags, the file, the environment and --help. */
#include "config.h"

#include <bin/sbhostd/hostd.h>

#include <stddef.h>

#include <bin/common/opt-rows.h>

static const char *const storages[] = { "zfs", "local-disk", NULL };
static const char *const runtimes[] = { "none", "bwrap", "gvisor", "auto", NULL };
static const char *const networks[] = { "default", "none", "sandbox", "host", NULL };
static const char *const orphan_ways[] = { "adopt", "report", "destroy", NULL };
static const char *const levels[] = { "error", "warn", "info", "debug", "trace", NULL };
static const char *const formats[] = { "json", "text", NULL };

#define OPT_VALUES struct hostd_config
#define DAY_MS (24 * 3600 * 1000)

const struct sb_opt hostd_opts[] = {
	OPT_TEXT('c', "config", config_file, "FILE", "read options from a YAML file first"),
	OPT_FLAG(0, "check", check, "check the configuration and exit"),
	OPT_LIST('l', "listen", listen, "ADDR", "unix:PATH or HOST:PORT; may be repeated"),
	OPT_TEXT(0, "socket-mode", socket_mode, "MODE", "of unix sockets (0600)"),
	OPT_TEXT(0, "socket-group", socket_group, "GROUP", "group of unix sockets"),
	OPT_FLAG(0, "socket-auth", socket_auth, "want a token on unix sockets too"),
	OPT_TEXT(0, "tls-cert", tls_cert, "FILE", "certificate chain for TCP (PEM)"),
	OPT_TEXT(0, "tls-key", tls_key, "FILE", "its private key (PEM)"),
	OPT_TEXT(0, "token-file", token_file, "FILE", "file with an admin's bearer token"),
	OPT_TEXT(0, "token-key-file", token_key_file, "FILE",
		"key for session tokens (made in the state directory)"),
	OPT_TEXT(0, "state-dir", state_dir, "DIR", "database and logs of processes"),
	OPT_CHOICE(0, "storage-backend", storage, "NAME", storages, "zfs (default) or local-disk"),
	OPT_CHOICE(0, "container-runtime", runtime, "NAME", runtimes,
		"none (default), bwrap, gvisor or auto"),
	OPT_TEXT(0, "rootfs", rootfs, "DIR", "root of sandboxes (this machine's /usr)"),
	OPT_CHOICE(0, "default-network", network, "NAME", networks,
		"default, none, sandbox or host"),
	OPT_TEXT(0, "sandbox-netns", sandbox_netns, "FILE",
		"network namespace for network sandbox"),
	OPT_FLAG(0, "allow-host-network", allow_host_network, "sessions may ask for network host"),
	OPT_SIZE(0, "session-memory", session_memory, "SIZE", 0, INT64_MAX,
		"of all in one sandbox (4G); 0: none"),
	OPT_SIZE(0, "session-tmp", session_tmp, "SIZE", 0, INT64_MAX,
		"of its /tmp in memory (512M)"),
	OPT_INT(0, "session-pids", session_pids, "N", 0, 4194304,
		"processes in one sandbox (1024); 0: any"),
	OPT_INT(0, "session-cpus", session_cpus, "PERCENT", 0, 25600,
		"100: one processor; 0: any (default)"),
	OPT_TEXT(0, "box-path", box_path, "FILE", "the helper sb-box"),
	OPT_TEXT(0, "bwrap-path", bwrap_path, "FILE", "the bwrap command"),
	OPT_TEXT(0, "runsc-path", runsc_path, "FILE", "the runsc command"),
	OPT_TEXT(0, "runsc-platform", runsc_platform, "NAME", "of gVisor (what a probe finds)"),
	OPT_TEXT(0, "pool", pool, "NAME", "zfs: the pool"),
	OPT_TEXT(0, "bases-dataset", bases_dataset, "NAME", "zfs: where base images are"),
	OPT_TEXT(0, "sessions-dataset", sessions_dataset, "NAME", "zfs: where sessions go"),
	OPT_TEXT(0, "zfs-path", zfs_path, "FILE", "the zfs command"),
	OPT_TEXT(0, "zpool-path", zpool_path, "FILE", "the zpool command"),
	OPT_FLAG(0, "sudo", sudo, "run them by sudo -n"),
	OPT_TEXT(0, "sessions-root-dir", sessions_root_dir, "DIR", "local-disk: where sessions go"),
	OPT_TEXT(0, "bases-dir", bases_dir, "DIR", "local-disk: where base images are"),
	OPT_TEXT(0, "default-base", default_base, "NAME", "base image when none is named"),
	OPT_SIZE(0, "default-quota", default_quota, "SIZE", 0, INT64_MAX, "of a session; 0: none"),
	OPT_INT(0, "max-sessions", max_sessions, "N", 0, 1000000, "0: any number"),
	OPT_INT(0, "max-tools", max_tools, "N", 1, 10000, "at a time in one session (64)"),
	OPT_INT(0, "max-processes", max_processes, "N", 1, 10000, "in one session (64)"),
	OPT_SIZE(0, "max-log-bytes", max_log_bytes, "SIZE", 4096, INT64_MAX,
		"of one process (16M)"),
	OPT_TEXT(0, "snapshot-prefix", snapshot_prefix, "TEXT", "of turn snapshots (turn)"),
	OPT_INT(0, "keep-turn-snapshots", keep_turn, "N", 0, 1000000, "newest to keep, 0: all"),
	OPT_INT(0, "keep-named-snapshots", keep_named, "N", 0, 1000000, "newest to keep, 0: all"),
	OPT_INT(0, "keep-tool-snapshots", keep_tool, "N", 0, 1000000, "newest to keep, 0: all"),
	OPT_FLAG(0, "per-tool-snapshots", per_tool_snapshots, "a snapshot after every tool call"),
	OPT_CHOICE(0, "orphans", orphans, "HOW", orphan_ways,
		"unknown data: adopt (default), report, destroy"),
	OPT_FLAG(0, "no-resume", no_resume, "leave paused what the last shutdown paused"),
	OPT_INT(0, "warn-at", warn_at, "PERCENT", 1, 100, "storage use that is degraded (85)"),
	OPT_INT(0, "critical-at", critical_at, "PERCENT", 1, 100,
		"storage use that refuses sessions (95)"),
	OPT_TEXT(0, "advertise-addr", advertise_addr, "ADDR", "in addresses of ports (127.0.0.1)"),
	OPT_TIME(0, "tool-timeout", tool_timeout, "TIME", 1, DAY_MS, "of one tool call (5m)"),
	OPT_TIME(0, "drain-timeout", drain_timeout, "TIME", 1, DAY_MS,
		"pause waits for tools (30s)"),
	OPT_TIME(0, "shutdown-timeout", shutdown_timeout, "TIME", 1, DAY_MS,
		"the end waits for calls (30s)"),
	OPT_TIME(0, "health-interval", health_interval, "TIME", 100, DAY_MS,
		"between health checks (30s)"),
	OPT_TIME(0, "storage-timeout", storage_timeout, "TIME", 1, DAY_MS,
		"of one storage command (30s)"),
	OPT_TIME(0, "transfer-timeout", transfer_timeout, "TIME", 1, DAY_MS,
		"of one send or receive (10m)"),
	OPT_SIZE(0, "rpc-max-message-bytes", max_message, "SIZE", 65536, 1 << 30,
		"of one message (16M)"),
	OPT_TEXT(0, "api-version", api_version, "VN", "told to clients (v1)"),
	OPT_TEXT(0, "min-api-version", min_api_version, "VN", "older clients are refused (v1)"),
	OPT_INT(0, "max-connections", max_connections, "N", 2, 100000, "of each listener (1024)"),
	OPT_INT(0, "max-calls", max_calls, "N", 1, 10000, "running at a time (512)"),
	OPT_INT(0, "max-streams", max_streams, "N", 1, 10000, "open at a time (256)"),
	OPT_INT(0, "io-threads", io_threads, "N", 1, 64, "that read and write (2)"),
	OPT_TIME(0, "header-timeout", header_timeout, "TIME", 1, DAY_MS,
		"for a request's header (10s)"),
	OPT_TIME(0, "body-timeout", body_timeout, "TIME", 1, DAY_MS, "for a request's body (60s)"),
	OPT_TIME(0, "idle-timeout", idle_timeout, "TIME", 1, DAY_MS, "between requests (75s)"),
	OPT_CHOICE(0, "log-level", log_level, "LEVEL", levels,
		"error, warn, info (default), debug, trace"),
	OPT_CHOICE(0, "log-format", log_format, "FORM", formats,
		"json (default) or text, on stderr"),
	OPT_FLAG('h', "help", help, "print this and exit"),
	OPT_FLAG(0, "version", version, "print the version and exit"),
	OPT_END,
};
