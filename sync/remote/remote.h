/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_REMOTE_H
#define SBSYNC_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>

#include <sync/wire/endpoint.h>
#include <sync/ssh/ssh.h>

struct sb_transport;

/*
 * A machine where we can run commands: over one libssh2 connection that stays open, or with the ssh
 * program for each command, when the user's configuration needs it (ProxyJump, ProxyCommand,
 * security keys, certificates, a running ControlMaster), libssh2 and the server do not get along,
 * or --rsh says so. Thread-safe as struct sb_ssh is.
 */
struct sb_remote;

struct sb_remote_opts {
	size_t size;                  /* sizeof this struct */
	const struct sb_endpoint *to; /* kind SB_ENDPOINT_SSH; its path is not looked at */
	int port;                     /* --port; 0: the endpoint's, or by configuration */
	const char *rsh;              /* --rsh; NULL: decide */
	const char *program; /* the ssh program for configuration and fallback; NULL: "ssh"; "" :
				never use one */
	const char *config_file;       /* --ssh-config */
	const char *const *identities; /* --identity */
	size_t n_identities;
	const char *known_hosts; /* --known-hosts */
	bool accept_new_host_key;
	bool use_none; /* see struct sb_ssh_opts; never falls back to the program */
	bool use_password;
	sb_ssh_ask_fn ask;
	void *ask_arg;
	int connect_ms;   /* 0: the configuration's, or the default of struct sb_ssh_opts */
	int stall_ms;     /* 0: the default */
	uint64_t bwlimit; /* not applied by the ssh program; logged then */
	const struct sb_cancel *cancel;
	bool cancel_connect_only; /* see struct sb_ssh_opts */
	struct sb_log log;
};
#define SB_REMOTE_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_remote_opts) \
	}

struct sb_remote *sb_remote_open(const struct sb_remote_opts *opts, sb_deadline d,
	struct sb_error *err);
void sb_remote_free(struct sb_remote *r);
SB_CLEANUP_PTR(sb_remote, sb_remote_free)

/* Runs a command line; see sb_ssh_exec. The transport is freed before the remote. */
struct sb_transport *sb_remote_exec(struct sb_remote *r, const char *command, struct sb_error *err);
/* The same with the command's stderr at `efd`, which must be read. */
struct sb_transport *sb_remote_exec_split(struct sb_remote *r, const char *command,
	struct sb_error *err);

/* 0 while commands can be run, else why the connection ended. */
int sb_remote_check(struct sb_remote *r, struct sb_error *err);
/* "user@host port N", or the host for the ssh program. */
const char *sb_remote_name(const struct sb_remote *r);
/* Does the ssh program carry the commands? Then wire bytes are not known. */
bool sb_remote_is_program(const struct sb_remote *r);
void sb_remote_wire_bytes(const struct sb_remote *r, uint64_t *up, uint64_t *down);

/*
 * The ssh program (or what stands for it, a carrier) as a transport: a process whose exit code 255
 * is turned into the connection error its stderr tells. `name` is the host, for messages; `split`:
 * its stderr is at efd. The terminal that is lent to it in `tty` comes back once it is logged in;
 * when this fails it stays the caller's to end. Without one it has none: a jump host's ssh, too,
 * cannot ask then. In transport-rsh.c.
 */
struct sb_lend_tty;
struct sb_carrier;
struct sb_transport *sb_transport_carried(const struct sb_carrier *carrier, const char *const *argv,
	bool split, struct sb_error *err);
/* Who carries such a command in this process; NULL: nobody. In conn-carry.c. */
const struct sb_carrier *sb_conn_carry_find(const char *const *argv);
struct sb_transport *sb_transport_rsh(const char *const *argv, const char *name, bool split,
	const struct sb_lend_tty *tty, struct sb_error *err);

#endif
