/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/remote/remote.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sync/remote/lend-tty.h>
#include <sync/ssh/ssh-config.h>
#include <sync/ssh/ssh-known.h>
#include <sync/wire/transport.h>

struct sb_remote {
	struct sb_ssh *ssh; /* NULL: the program is used */
	/* For the program: owned copies of what the query points to. */
	struct sb_ssh_query query;
	char *host, *user, *config_file, *known_hosts, *rsh, *program;
	struct sb_strlist identities;
	bool batch;
	char name[400];
};

void
sb_remote_free(struct sb_remote *r)
{
	if (!r)
		return;
	sb_ssh_free(r->ssh);
	free(r->host);
	free(r->user);
	free(r->config_file);
	free(r->known_hosts);
	free(r->rsh);
	free(r->program);
	sb_strlist_free(&r->identities);
	free(r);
}

static bool
copy(char **to, const char *from)
{
	if (!from)
		return true;
	*to = strdup(from);
	return *to != NULL;
}

static struct sb_remote *
remote_new(const struct sb_remote_opts *o, struct sb_error *err)
{
	sb_auto(sb_remote) struct sb_remote *r = calloc(1, sizeof *r);

	if (!r || !copy(&r->host, o->to->host) || !copy(&r->user, o->to->user) ||
		!copy(&r->config_file, o->config_file) || !copy(&r->known_hosts, o->known_hosts) ||
		!copy(&r->rsh, o->rsh) || !copy(&r->program, o->program)) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	/* Without it another key might do, and nobody would know which. */
	for (size_t i = 0; i < o->n_identities; i++) {
		if (access(o->identities[i], R_OK) < 0) {
			sb_fail_errno(err, "the key file %s (-i)", o->identities[i]);
			return NULL;
		}
		sb_strlist_add(&r->identities, o->identities[i]);
	}
	if (sb_strlist_check(&r->identities, err) < 0)
		return NULL;
	r->query = (struct sb_ssh_query){
		.program = r->program,
		.host = r->host,
		.user = r->user,
		.port = o->port ? o->port : o->to->port,
		.config_file = r->config_file,
		.identities = (const char *const *)r->identities.v,
		.n_identities = r->identities.n,
		.known_hosts = r->known_hosts,
		.accept_new = o->accept_new_host_key,
	};
	r->batch = !o->ask;
	(void)snprintf(r->name, sizeof r->name, "%.32s%s%.255s", r->user ? r->user : "",
		r->user ? "@" : "", r->host);
	return sb_steal(&r);
}

static struct sb_ssh *
connect_libssh2(const struct sb_remote_opts *o, const struct sb_ssh_config *config, sb_deadline d,
	struct sb_error *err)
{
	struct sb_ssh_opts so = SB_SSH_OPTS_INIT;

	sb_ssh_config_apply(config, &so);
	so.use_none = o->use_none;
	so.use_password = o->use_password;
	so.ask = o->ask;
	so.ask_arg = o->ask_arg;
	if (o->connect_ms > 0)
		so.connect_ms = o->connect_ms;
	if (o->stall_ms > 0) {
		so.stall_ms = o->stall_ms;
		so.alive_ms = o->stall_ms / 3;
	}
	so.bwlimit = o->bwlimit;
	so.cancel = o->cancel;
	so.cancel_connect_only = o->cancel_connect_only;
	so.log = o->log;
	return sb_ssh_connect(&so, d, err);
}

/* Failures that the ssh program may not have: it knows more algorithms and kinds of keys. */
static bool
program_may_help(const struct sb_ssh_config *config, const struct sb_remote_opts *o,
	const struct sb_error *why)
{
	if (!config->have_program || o->use_none)
		return false;
	if (why->code == SB_E_UNSUPPORTED || why->code == SB_E_PROTO)
		return true;
	return why->code == SB_E_AUTH && strstr(why->msg, "--rsh ssh") != NULL;
}

/* A host that is only known by an authority or an RSA key libssh2 cannot ask for. */
static bool
known_beyond_us(const struct sb_ssh_config *config)
{
	sb_auto(sb_ssh_known) struct sb_ssh_known known = { 0 };
	static const char *const usable[] = { "ssh-ed25519", "ecdsa-sha2-nistp256",
		"ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521" };

	if (sb_ssh_known_load(&known, (const char *const *)config->known_hosts.v,
		    config->known_hosts.n, config->known_name, config->port, NULL) < 0)
		return false;
	for (size_t i = 0; i < sizeof usable / sizeof usable[0]; i++)
		if (sb_ssh_known_has(&known, usable[i]))
			return false;
	return known.has_ca || (sb_ssh_known_has(&known, "ssh-rsa") && !sb_ssh_can_rsa());
}

static int
use_program(struct sb_remote *r, const struct sb_remote_opts *o, const char *because)
{
	sb_log(&o->log, SB_LOG_INFO, "ssh", "%s: using the ssh program (%s)", r->name, because);
	if (o->bwlimit)
		sb_log(&o->log, SB_LOG_WARN, "ssh",
			"%s: --bwlimit has no effect with the ssh program", r->name);
	return 0;
}

static int
decide(struct sb_remote *r, const struct sb_remote_opts *o, sb_deadline d, struct sb_error *err)
{
	sb_auto(sb_ssh_config) struct sb_ssh_config config = { 0 };
	struct sb_error why = { 0 };
	int rc;

	if (o->rsh)
		return use_program(r, o, "--rsh");
	rc = sb_ssh_config_load(&r->query, o->cancel, d, &config, err);
	if (rc < 0)
		return rc;
	if (config.needs[0] && config.have_program && !o->use_none)
		return use_program(r, o, config.needs);
	if (config.have_program && !o->use_none && known_beyond_us(&config))
		return use_program(r, o, "the host is known by a key libssh2 cannot check");
	r->ssh = connect_libssh2(o, &config, d, &why);
	if (r->ssh)
		return 0;
	if (program_may_help(&config, o, &why)) {
		sb_log(&o->log, SB_LOG_DEBUG, "ssh", "%s", why.msg);
		return use_program(r, o, "libssh2 could not connect");
	}
	if (err)
		*err = why;
	return why.code;
}

struct sb_remote *
sb_remote_open(const struct sb_remote_opts *opts, sb_deadline d, struct sb_error *err)
{
	struct sb_remote_opts o = SB_REMOTE_OPTS_INIT;
	sb_auto(sb_remote) struct sb_remote *r = NULL;

	memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	r = remote_new(&o, err);
	if (!r || decide(r, &o, d, err) < 0)
		return NULL;
	return sb_steal(&r);
}

static struct sb_transport *
exec_program(struct sb_remote *r, const char *command, bool split, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 };
	struct sb_lend_tty tty = { .fd = -1 };
	struct sb_transport *t = NULL;
	bool batch = r->batch;

	/* Where it could not be answered, it must not ask. */
	if (!batch && sb_ssh_config_is_ssh(r->rsh))
		batch = sb_lend_tty_begin(&tty) == SB_LEND_TTY_NO;
	if (sb_ssh_config_argv(&r->query, r->rsh, batch, command, &argv, err) == 0)
		t = sb_transport_rsh((const char *const *)argv.v, r->name, split, &tty, err);
	if (!t)
		sb_lend_tty_end(&tty);
	return t;
}

struct sb_transport *
sb_remote_exec(struct sb_remote *r, const char *command, struct sb_error *err)
{
	return r->ssh ? sb_ssh_exec(r->ssh, command, err) : exec_program(r, command, false, err);
}

struct sb_transport *
sb_remote_exec_split(struct sb_remote *r, const char *command, struct sb_error *err)
{
	return r->ssh ? sb_ssh_exec_split(r->ssh, command, err) :
			exec_program(r, command, true, err);
}

int
sb_remote_check(struct sb_remote *r, struct sb_error *err)
{
	return r->ssh ? sb_ssh_check(r->ssh, err) : 0;
}

const char *
sb_remote_name(const struct sb_remote *r)
{
	return r->ssh ? sb_ssh_name(r->ssh) : r->name;
}

bool
sb_remote_is_program(const struct sb_remote *r)
{
	return !r->ssh;
}

void
sb_remote_wire_bytes(const struct sb_remote *r, uint64_t *up, uint64_t *down)
{
	*up = *down = 0;
	if (r->ssh)
		sb_ssh_wire_bytes(r->ssh, up, down);
}
