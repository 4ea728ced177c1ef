/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_SSH_CONFIG_H
#define SBSYNC_SSH_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <base/strlist.h>
#include <sb/cancel.h>
#include <sb/error.h>

#include <sync/ssh/ssh.h>

/*
 * How to reach a host: what the user's ssh configuration says about it (`ssh -G`, so that every
 * rule of ssh_config holds), overruled by what the user asked for now. Without an ssh program: the
 * defaults of ssh.
 */
struct sb_ssh_query {
	const char *program;           /* the ssh program, looked up in PATH; NULL: "ssh" */
	const char *host;              /* as typed */
	const char *user;              /* NULL: by configuration */
	int port;                      /* 0: by configuration */
	const char *config_file;       /* -F; NULL: the user's own */
	const char *const *identities; /* -i, before those of the configuration */
	size_t n_identities;
	const char *known_hosts; /* NULL: by configuration */
	bool accept_new;         /* a new host key is taken and recorded */
};

struct sb_ssh_config {
	char *host; /* to connect to */
	char *user;
	int port;
	char *known_name; /* HostKeyAlias, else the HostName, as ssh does */
	struct sb_strlist known_hosts;
	struct sb_strlist identities;
	bool identities_only;
	char *agent; /* NULL: none */
	enum sb_ssh_new_key new_key;
	bool hash_known_hosts;
	int family;
	int connect_ms;    /* 0: not set */
	bool have_program; /* an ssh program is there */
	char needs[64];    /* the setting that needs the ssh program ("ProxyJump"), "" for none */
};

int sb_ssh_config_load(const struct sb_ssh_query *q, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_ssh_config *out, struct sb_error *err);
void sb_ssh_config_free(struct sb_ssh_config *c);
SB_CLEANUP_VALUE(sb_ssh_config, sb_ssh_config_free)

/* Parses the output of `ssh -G` (modified in place) into a zeroed `c`. Apart for tests. */
int sb_ssh_config_parse(char *text, struct sb_ssh_config *c, struct sb_error *err);

/* Fills the options of a connection; the strings stay the configuration's. */
void sb_ssh_config_apply(const struct sb_ssh_config *c, struct sb_ssh_opts *o);

/*
 * argv of the ssh program for running `command` on the host of `q`, with the settings of `q`;
 * `batch` forbids it to ask. `rsh` (NULL: "ssh") is a command line split at blanks, quotes
 * honoured; a program that is not called ssh gets [-p PORT] [-l USER] HOST COMMAND.
 */
int sb_ssh_config_argv(const struct sb_ssh_query *q, const char *rsh, bool batch,
	const char *command, struct sb_strlist *out, struct sb_error *err);
/* Whether `rsh` (NULL: "ssh") is called ssh. */
bool sb_ssh_config_is_ssh(const char *rsh);

#endif
