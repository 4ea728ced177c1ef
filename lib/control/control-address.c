/* SPDX-License-Identifier: MIT */
/* Addresses of sandboxes and of processes: their form, and what URL they make. */
#include "config.h"

#include <control/control-priv.h>

#include <arpa/inet.h>
#include <string.h>

#include <base/str.h>

#define UNIX_PATH_MAX 107

/* The parts of HOST:PORT; an IPv6 address comes without its brackets. */
struct parts {
	char host[SB_CONTROL_ADDRESS_MAX + 1];
	bool v6;
};

static bool
host_ok(const char *s)
{
	return s[0] && s[0] != '-' && s[0] != '.' &&
		strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		strlen(s);
}

static int
split(const char *address, struct parts *p, struct sb_error *err)
{
	const char *colon = strrchr(address, ':'), *host = address;
	struct in6_addr six;
	char shown[2 * SB_CONTROL_ADDRESS_MAX];
	int64_t port;
	size_t len;

	(void)sb_escape(address, strlen(address), shown, sizeof shown);
	if (strlen(address) > SB_CONTROL_ADDRESS_MAX)
		return sb_fail(err, SB_E_INVAL, "address \"%.40s...\" is longer than %d bytes",
			shown, SB_CONTROL_ADDRESS_MAX);
	if (!colon)
		return sb_fail(err, SB_E_INVAL, "address \"%s\" has no port: write HOST:PORT",
			shown);
	if (!sb_str_to_i64(colon + 1, 1, 65535, &port) || colon[1] == '0')
		return sb_fail(err, SB_E_INVAL, "address \"%s\": \"%s\" is no port (1 to 65535)",
			shown, strrchr(shown, ':') + 1);
	len = (size_t)(colon - address);
	p->v6 = len > 2 && host[0] == '[' && host[len - 1] == ']';
	if (p->v6) {
		host++;
		len -= 2;
	}
	(void)snprintf(p->host, sizeof p->host, "%.*s", (int)len, host);
	if (p->v6 ? inet_pton(AF_INET6, p->host, &six) == 1 : host_ok(p->host))
		return 0;
	if (!p->v6 && strchr(p->host, ':'))
		return sb_fail(err, SB_E_INVAL,
			"address \"%s\": an IPv6 address stands in brackets, [::1]:80", shown);
	return sb_fail(err, SB_E_INVAL, "address \"%s\" names no host", shown);
}

int
sb_control_address_check(const char *address, struct sb_error *err)
{
	struct parts p;
	char shown[400];

	if (!sb_str_starts(address, "unix:"))
		return split(address, &p, err);
	if (address[5] == '/' && strlen(address + 5) <= UNIX_PATH_MAX)
		return 0;
	return sb_fail(err, SB_E_INVAL, "address \"%s\": write unix:/PATH, at most %d bytes",
		sb_escape(address, strlen(address), shown, sizeof shown), UNIX_PATH_MAX);
}

char *
sb_control_address_url(const char *address, bool tls, struct sb_error *err)
{
	char *url;

	if (sb_control_address_check(address, err) < 0)
		return NULL;
	url = sb_str_starts(address, "unix:") ?
		strdup(address) :
		sb_str_printf("%s://%s", tls ? "https" : "http", address);
	if (!url)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return url;
}

bool
sb_control_address_local(const char *address)
{
	struct parts p;
	struct in6_addr six;
	struct in_addr four;

	if (sb_str_starts(address, "unix:"))
		return true;
	if (split(address, &p, NULL) < 0)
		return false;
	if (p.v6)
		return inet_pton(AF_INET6, p.host, &six) == 1 &&
			(IN6_IS_ADDR_LOOPBACK(&six) || IN6_IS_ADDR_UNSPECIFIED(&six));
	if (strcmp(p.host, "localhost") == 0)
		return true;
	return inet_pton(AF_INET, p.host, &four) == 1 &&
		((ntohl(four.s_addr) >> 24) == 127 || four.s_addr == 0);
}
