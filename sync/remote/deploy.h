/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_DEPLOY_H
#define SBSYNC_DEPLOY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>

struct sb_remote;
struct sb_transport;

/*
 * Starts the agent on another machine, bringing it there first if need be. One exec: a script of
 * POSIX sh looks for agent-DIGEST in the places below and starts it; if it is nowhere, the script
 * takes it from its standard input (compressed with gzip if that is there), checks it (sha256sum,
 * else cksum, else its size), lets it tell its version, renames it into place (mode 0700) and
 * starts it. Several doing so at once do not disturb each other; copies not renewed for a week are
 * removed when a new one comes.
 *
 * Places, the first that lets us write and execute: $XDG_CACHE_HOME/sbsync or ~/.cache/sbsync,
 * $XDG_RUNTIME_DIR/sbsync, then sbsync-UID (which must be ours alone) in $TMPDIR or /tmp, /var/tmp
 * and /dev/shm; at last, with python3 there, memory (memfd), for machines that execute from
 * nowhere.
 *
 * What the log-in shell prints is skipped up to a limit; the stream begins behind a line with a
 * random word. An agent program answers `--version` with a line that begins with "sbsync".
 */
struct sb_deploy_opts {
	size_t size;             /* sizeof this struct */
	const char *agent;       /* the program; NULL: found by sb_deploy_find */
	const char *const *argv; /* its arguments, NULL-terminated; paths better travel in the
				    stream: shells differ in quoting */
	bool no_upload;          /* only use what is there */
	const void *first; /* the first bytes for the agent: they follow the command at once, which
			      saves a round trip */
	size_t first_len;
	bool split; /* the transport has the agent's stderr apart, at efd */
	sb_deadline deadline;
	const struct sb_cancel *cancel;
	struct sb_log log;
};
#define SB_DEPLOY_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_deploy_opts), .deadline = SB_NEVER \
	}

struct sb_deploy_info {
	bool uploaded;
	uint64_t sent;    /* bytes of the upload, as sent */
	char machine[32]; /* uname -m, known when the agent was not there; escaped */
	char system[32];  /* uname -s */
};

/*
 * The transport's streams begin exactly where the agent's do. Errors: those of the connection;
 * SB_E_NOTFOUND: no agent program on this side; SB_E_UNSUPPORTED: it cannot run there (other
 * machine type, nothing executable, no sh); agentless.h still works. `info` (may be NULL) is filled
 * as far as it got.
 */
int sb_deploy_open(struct sb_remote *r, const struct sb_deploy_opts *opts,
	struct sb_deploy_info *info, struct sb_transport **out, struct sb_error *err);

/*
 * Finds the agent program for a machine type (NULL: this one): $SBSYNC_AGENT, then
 * sbsync-agent-MACHINE and sbsync-agent beside the running program and in the package's libexec
 * directory. A program of another type is not taken. Returns a new string or NULL.
 */
char *sb_deploy_find(const char *machine, struct sb_error *err);

/*
 * The machine type (as uname -m names it) of an ELF program; "" when it is none or of an unknown
 * type.
 */
const char *sb_deploy_machine_of(const void *data, size_t len);
/* Can a machine that calls itself `machine` run it? Scripts ("" type) run anywhere. */
bool sb_deploy_machine_runs(const char *machine, const char *type);

/*
 * The command line; `nonce` and `digest` are hex; `skip` bytes on its input are the agent's.
 * Appends to `out`.
 */
void sb_deploy_command(const char *nonce, const char *digest, size_t skip, const char *const *argv,
	struct sb_buf *out);

/* The CRC of POSIX cksum. */
uint32_t sb_deploy_cksum(const void *data, size_t len);

#endif
