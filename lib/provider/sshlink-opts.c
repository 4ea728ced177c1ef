/* SPDX-License-Identifier: MIT */
/*
 * The options of an ssh profile: checks them and turns them into those of libsbsync (declared in
 * provider/sshlink.h).
 */
#include "config.h"

#include <provider/sshlink.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include <base/buf.h>
#include <base/str.h>

static bool
is_port(const char *text)
{
	int64_t v;

	return sb_str_to_i64(text, 1, 65535, &v);
}

static bool
is_host(const char *text)
{
	return *text && *text != '-' && strlen(text) <= 255 &&
		!strpbrk(text, " \t\n\r@/'\"\\;&|<>$`(){}*?!#~");
}

static bool
is_user(const char *text)
{
	return *text && *text != '-' && strlen(text) <= 255 &&
		!strpbrk(text, " \t\n\r@/:'\"\\;&|<>$`(){}*?!#~");
}

static const char *const yes_no[] = { "yes", "no", NULL };

const struct sb_provider_option sb_sshlink_options[] = {
	{ .name = "host",
		.value = "HOST",
		.help = "machine, as ssh knows it",
		.check = is_host,
		.required = true,
		.place = true },
	{ .name = "user", .value = "USER", .help = "log in as", .check = is_user, .place = true },
	{ .name = "port",
		.value = "PORT",
		.help = "of the SSH server",
		.check = is_port,
		.place = true },
	{ .name = "identity", .value = "FILE", .help = "private key", .user_only = true },
	{ .name = "config",
		.value = "FILE",
		.help = "ssh configuration instead of the user's",
		.user_only = true },
	{ .name = "known_hosts",
		.value = "FILE",
		.help = "host keys instead of the user's",
		.user_only = true },
	{ .name = "rsh",
		.value = "COMMAND",
		.help = "remote shell instead of the built-in SSH",
		.user_only = true },
	{ .name = "accept_new_host_key",
		.value = "yes|no",
		.help = "trust a host on first use",
		.choices = yes_no,
		.user_only = true },
	{ .name = NULL },
};

int
sb_sshlink_sync_opts(const char *const *options, struct sb_sync_opts *out, struct sb_error *err)
{
	const char *host = sb_strlist_get(options, "host"), *user = sb_strlist_get(options, "user"),
		   *port = sb_strlist_get(options, "port"),
		   *accept = sb_strlist_get(options, "accept_new_host_key");
	int64_t number = 0;

	if (!host || !*host)
		return sb_fail(err, SB_E_INVAL,
			"backend ssh: no host is given (option host: HOST)");
	if (!is_host(host))
		return sb_fail(err, SB_E_INVAL, "backend ssh: '%s' is no name of a host", host);
	if (user && !is_user(user))
		return sb_fail(err, SB_E_INVAL, "backend ssh: '%s' is no name of a user", user);
	if (port && !sb_str_to_i64(port, 1, 65535, &number))
		return sb_fail(err, SB_E_INVAL, "backend ssh: port '%s' is not in 1..65535", port);
	out->port = (int)number;
	out->identity = sb_strlist_get(options, "identity");
	out->ssh_config = sb_strlist_get(options, "config");
	out->known_hosts = sb_strlist_get(options, "known_hosts");
	out->rsh = sb_strlist_get(options, "rsh");
	out->accept_new_host_key = accept && strcmp(accept, "yes") == 0;
	return 0;
}

char *
sb_sshlink_endpoint(const char *const *options, const char *path, struct sb_error *err)
{
	const char *host = sb_strlist_get(options, "host"), *user = sb_strlist_get(options, "user"),
		   *port = sb_strlist_get(options, "port");
	bool six = host && strchr(host, ':') && *host != '[';
	sb_auto(sb_buf) struct sb_buf b;
	size_t len;

	sb_buf_init(&b, 65536);
	sb_buf_addf(&b, "ssh://%s%s%s%s%s", user ? user : "", user ? "@" : "", six ? "[" : "",
		host ? host : "", six ? "]" : "");
	if (port)
		sb_buf_addf(&b, ":%s", port);
	for (; *path; path++) {
		if (isalnum((unsigned char)*path) || strchr("/-_.", *path))
			sb_buf_add_char(&b, *path);
		else
			sb_buf_addf(&b, "%%%02X", (unsigned char)*path);
	}
	if (sb_buf_check(&b, "an endpoint", err) < 0)
		return NULL;
	return (char *)sb_buf_detach(&b, &len);
}
