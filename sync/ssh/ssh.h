/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_H
#define SBSYNC_SSH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <base/cleanup.h>
#include <sb/cancel.h>
#include <sb/error.h>
#include <sb/log.h>

struct sb_transport;

/*
 * An SSH connection made with libssh2: one TCP connection, many commands over it, at once or one
 * after another. After sb_ssh_connect a thread of its own drives it, so it stays alive (and answers
 * the server) while nobody uses it. All functions may be called from any thread; sb_ssh_free only
 * when every transport made from it is freed.
 */
struct sb_ssh;

/*
 * What to do with a host key that is not in known_hosts. A changed or revoked key is always
 * refused.
 */
enum sb_ssh_new_key {
	SB_SSH_NEW_REFUSE,
	SB_SSH_NEW_ADD,  /* trust on first use: written to the first known_hosts file */
	SB_SSH_NEW_PASS, /* trust without writing (StrictHostKeyChecking no with a file that cannot
			    be written) */
	SB_SSH_NEW_ASK,  /* ask the user, add on yes; nobody to ask: refuse */
};

enum sb_ssh_ask {
	SB_SSH_ASK_PASSPHRASE, /* of the key file named in the text */
	SB_SSH_ASK_PASSWORD,
	SB_SSH_ASK_HOSTKEY, /* yes, no, or the fingerprint */
	SB_SSH_ASK_ANSWER,  /* keyboard-interactive; the text is the server's, escaped */
};

/*
 * Asks the user. Writes the answer, NUL-terminated, to `answer` (`size` bytes; the caller wipes
 * it). SB_E_CANCELED when there is nobody to ask or the user gives up. `echo` false: do not show
 * what is typed.
 */
typedef int (*sb_ssh_ask_fn)(enum sb_ssh_ask kind, const char *text, bool echo, char *answer,
	size_t size, void *arg);

struct sb_ssh_opts {
	size_t size;      /* sizeof this struct */
	const char *host; /* name or address to connect to */
	int port;
	const char *user;
	const char *known_name; /* name to look up in known_hosts (HostKeyAlias); NULL: host */
	int family;             /* AF_UNSPEC, AF_INET, AF_INET6 */
	const char *const *known_hosts; /* files, the first takes new keys */
	size_t n_known_hosts;
	enum sb_ssh_new_key new_key;
	bool hash_known_hosts;
	const char *const
		*identities; /* private key files, tried in order; missing ones are skipped */
	size_t n_identities;
	bool identities_only; /* from the agent, only keys that are among `identities` */
	const char *agent;    /* socket path; NULL: no agent */
	bool use_none;        /* log in without proof (the user name is a token), also with an empty
				 password */
	bool use_password;    /* password and keyboard-interactive through `ask` */
	sb_ssh_ask_fn ask;    /* NULL: nobody to ask */
	void *ask_arg;
	int connect_ms;
	int handshake_ms; /* key exchange, then again for the log-in; the time a person needs to
			     answer is not counted */
	int stall_ms; /* neither a byte in nor one of ours acknowledged for so long: the connection
			 is dead */
	int alive_ms; /* silence after which the server is asked for a sign of life */
	uint64_t bwlimit;               /* bytes a second each way, 0: none */
	const struct sb_cancel *cancel; /* ends the connection, now or later; outlives it */
	bool cancel_connect_only;       /* `cancel` is forgotten once it is connected */
	struct sb_log log;
};
#define SB_SSH_OPTS_INIT \
	{ \
		.size = sizeof(struct sb_ssh_opts), .port = 22, .connect_ms = 15000, \
		.handshake_ms = 20000, .stall_ms = 30000, .alive_ms = 10000 \
	}

/*
 * Connects, checks the host key and logs in. Errors: SB_E_CONNECT, SB_E_HOSTKEY, SB_E_AUTH,
 * SB_E_TIMEOUT, SB_E_CANCELED, SB_E_UNSUPPORTED (no common algorithm), SB_E_PROTO; the message
 * names user, host, port and what to try. A server whose key did not match gets nothing but the key
 * exchange.
 */
struct sb_ssh *sb_ssh_connect(const struct sb_ssh_opts *opts, sb_deadline d, struct sb_error *err);
void sb_ssh_free(struct sb_ssh *c);
SB_CLEANUP_PTR(sb_ssh, sb_ssh_free)

/*
 * Runs `command` (the far user's shell takes it apart) and returns at once, before the server has
 * agreed: bytes written meanwhile follow right behind the request, which saves a round trip. A
 * refusal shows as end of file and in `wait`. Exit status: libssh2 does not tell a missing one from
 * 0 when the server closes the channel in order, so 0 alone proves nothing; `known` is false when
 * the connection broke. wire_bytes of the transport counts the whole connection.
 */
struct sb_transport *sb_ssh_exec(struct sb_ssh *c, const char *command, struct sb_error *err);
/*
 * The same with the command's stderr at `efd`, which must be read: it shares the channel's window
 * with stdout.
 */
struct sb_transport *sb_ssh_exec_split(struct sb_ssh *c, const char *command, struct sb_error *err);

/* 0 while the connection works, else the error that ended it. */
int sb_ssh_check(struct sb_ssh *c, struct sb_error *err);
void sb_ssh_wire_bytes(const struct sb_ssh *c, uint64_t *up, uint64_t *down);
/* "user@host port N", for messages. */
const char *sb_ssh_name(const struct sb_ssh *c);

/* What the libssh2 in use can do; decides whether the user's ssh program is needed. */
bool sb_ssh_can_rsa(
	void); /* RSA keys with SHA-2 signatures, the only ones servers of today accept */
const char *sb_ssh_library(void); /* "libssh2 1.10.0" */

/*
 * An sb_ssh_ask_fn that uses the terminal of the process; `arg` is a `const struct sb_cancel *` or
 * NULL.
 */
int sb_ssh_ask_tty(enum sb_ssh_ask kind, const char *text, bool echo, char *answer, size_t size,
	void *arg);
/* Does that wait for an answer just now? Any thread. */
bool sb_ssh_tty_busy(void);

#endif
