/* SPDX-License-Identifier: MIT */
/* Loads the configuration: defaults, then the file, then the environment, then the flags. */
#include "config.h"

#include <bin/sbhostd/hostd.h>

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define AT(field) offsetof(struct hostd_config, field)

/* The libraries set the defaults where they have one; this program adds only its own options. */
static void
set_defaults(struct hostd_config *c)
{
	const struct sb_host_opts h = SB_HOST_OPTS_INIT;
	const struct sb_rpc_server_opts s = SB_RPC_SERVER_OPTS_INIT;
	const struct sb_sshgate_opts g = SB_SSHGATE_OPTS_INIT;

	*c = (struct hostd_config){
		.completion = -1,
		.socket_mode = "0600",
		.runtime = h.runtime,
		.log_level = SB_LOG_INFO,
		.snapshot_prefix = h.snapshot_prefix,
		.advertise_addr = h.advertise_addr,
		.warn_at = (int64_t)(h.warn_at * 100 + 0.5),
		.critical_at = (int64_t)(h.critical_at * 100 + 0.5),
		.cold_transfers = h.cold_transfers,
		.max_tools = h.max_tools,
		.max_processes = h.max_processes,
		.max_log_bytes = h.max_log_bytes,
		.session_memory = h.session_mem_mb << 20,
		.session_tmp = h.session_tmp_mb << 20,
		.session_pids = (int64_t)h.session_pids,
		.session_uids = h.session_uid_count,
		.session_uid_first = h.session_uid_first,
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
		.ssh_max_connections = g.max_connections,
		.ssh_max_each = g.max_each,
		.ssh_max_channels = g.max_channels,
		.ssh_login_timeout = g.login_ms,
		.ssh_keepalive = g.idle_s * 1000,
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
			o->offset == AT(help) || o->offset == AT(version) ||
			o->offset == AT(completion) || o->offset == AT(show_config))
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
	if (r == 0 && (first.help || first.version || first.completion >= 0)) {
		c->help = first.help;
		c->version = first.version;
		c->completion = first.completion;
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
