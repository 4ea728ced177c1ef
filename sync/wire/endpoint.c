/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/wire/endpoint.h>

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>
#include <sb/log.h>

#define HOST_MAX_LEN 255
/* Provider tokens used as user names are long; anything past this is a mistake. */
#define USER_MAX_LEN 8192
#define PATH_MAX_LEN 65536

#define SHOWN 200

static const char *
shown(const char *text, char buf[SHOWN])
{
	return sb_escape(text, strlen(text), buf, SHOWN);
}

/* The first character that may not stand in a host or user name, or 0. */
static unsigned char
bad_char(const char *s, const char *special)
{
	for (const char *p = s; *p; p++) {
		unsigned char c = (unsigned char)*p;

		if (c <= ' ' || c == 0x7f || strchr(special, c))
			return c;
	}
	return 0;
}

static int
check_name(const char *s, const char *what, const char *noun, const char *special, size_t max,
	struct sb_error *err)
{
	char buf[SHOWN], chr[8];
	unsigned char bad;

	if (!*s)
		return sb_fail(err, SB_E_USAGE, "%s: the %s name is empty", what, noun);
	if (strlen(s) > max)
		return sb_fail(err, SB_E_USAGE, "%s: the %s name is longer than %zu bytes", what,
			noun, max);
	if (*s == '-')
		return sb_fail(err, SB_E_USAGE, "%s: the %s name '%s' begins with '-'", what, noun,
			shown(s, buf));
	bad = bad_char(s, special);
	if (bad)
		return sb_fail(err, SB_E_USAGE, "%s: the %s name '%s' holds the character '%s'",
			what, noun, shown(s, buf), sb_escape((char *)&bad, 1, chr, sizeof chr));
	return 0;
}

int
sb_endpoint_check_host(const char *host, const char *what, struct sb_error *err)
{
	return check_name(host, what, "host", "'`\"$\\;&<>|(){}[]/@,*?!#", HOST_MAX_LEN, err);
}

int
sb_endpoint_check_user(const char *user, const char *what, struct sb_error *err)
{
	return check_name(user, what, "user", "'`\"$;&<>|(){}", USER_MAX_LEN, err);
}

/* In place; false for a broken escape or an encoded NUL. */
static bool
percent_decode(char *s)
{
	char *w = s;

	for (char *r = s; *r; r++) {
		if (*r == '%') {
			int hi = sb_str_hex_digit(r[1]);
			int lo = hi < 0 ? -1 : sb_str_hex_digit(r[2]);

			if (lo < 0 || (hi == 0 && lo == 0))
				return false;
			*w++ = (char)(hi << 4 | lo);
			r += 2;
		} else {
			*w++ = *r;
		}
	}
	*w = '\0';
	return true;
}

static int
take_path(struct sb_endpoint *e, const char *path, const char *text, struct sb_error *err)
{
	char buf[SHOWN];

	if (strlen(path) > PATH_MAX_LEN)
		return sb_fail(err, SB_E_USAGE, "the path is longer than %d bytes", PATH_MAX_LEN);
	e->no_path = e->kind == SB_ENDPOINT_SSH && !*path;
	if (e->kind == SB_ENDPOINT_SSH && *path == '~') {
		if (path[1] != '\0' && path[1] != '/')
			return sb_fail(err, SB_E_USAGE,
				"'%s': ~USER is not expanded; write the full path, or ./~NAME for "
				"a file of that name",
				shown(text, buf));
		path++;
		while (*path == '/')
			path++;
	}
	if (e->kind == SB_ENDPOINT_SSH && !*path)
		path = ".";
	e->path = strdup(path);
	return e->path ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

/* `auth` is USER@HOST, HOST or either with HOST in brackets, modified in place. */
static int
take_authority(struct sb_endpoint *e, char *auth, bool decode, const char *text,
	struct sb_error *err)
{
	char buf[SHOWN];
	char *at = strrchr(auth, '@');
	char *host = at ? at + 1 : auth;
	size_t len;
	int r;

	if (at) {
		*at = '\0';
		if (decode && strchr(auth, ':'))
			return sb_fail(err, SB_E_USAGE,
				"ssh://USER:PASSWORD@HOST: a password is not taken from an address "
				"(':' in a user name is %%3A)");
		if (decode && !percent_decode(auth))
			return sb_fail(err, SB_E_USAGE, "'%s': broken %%-escape in the user name",
				shown(text, buf));
		r = sb_endpoint_check_user(auth, shown(text, buf), err);
		if (r < 0)
			return r;
		e->user = strdup(auth);
		if (!e->user)
			return sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	len = strlen(host);
	if (*host == '[') {
		if (len < 3 || host[len - 1] != ']')
			return sb_fail(err, SB_E_USAGE, "'%s': '[' without address and ']'",
				shown(text, buf));
		host[len - 1] = '\0';
		host++;
	}
	r = sb_endpoint_check_host(host, shown(text, buf), err);
	if (r < 0)
		return r;
	e->host = strdup(host);
	return e->host ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

/* Where the authority (with optional port) of an ssh:// text has its port, or NULL. */
static char *
port_colon(char *auth)
{
	char *at = strrchr(auth, '@');
	char *host = at ? at + 1 : auth;

	if (*host == '[')
		host = strchr(host, ']');
	return host ? strchr(host, ':') : NULL;
}

static int
parse_url(struct sb_endpoint *e, const char *text, struct sb_error *err)
{
	sb_autofree char *copy = strdup(text + strlen("ssh://"));
	char buf[SHOWN];
	char *slash, *colon;
	int64_t port;
	int r;

	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	slash = strchr(copy, '/');
	if (slash) {
		e->path = NULL;
		if (!percent_decode(slash))
			return sb_fail(err, SB_E_USAGE, "'%s': broken %%-escape in the path",
				shown(text, buf));
		/* ssh://host/~/x is under the login directory, everything else absolute. */
		r = take_path(e, slash[1] == '~' ? slash + 1 : slash, text, err);
		if (r < 0)
			return r;
		*slash = '\0';
	} else {
		r = take_path(e, "", text, err);
		if (r < 0)
			return r;
	}
	colon = port_colon(copy);
	if (colon) {
		*colon = '\0';
		if (colon[1] && !sb_str_to_i64(colon + 1, 1, 65535, &port))
			return sb_fail(err, SB_E_USAGE, "'%s': the port must be 1 to 65535",
				shown(text, buf));
		e->port = colon[1] ? (int)port : 0;
	}
	return take_authority(e, copy, true, text, err);
}

/* The ':' that ends the host of [USER@]HOST:PATH, or NULL when the text is a local path. */
static const char *
host_colon(const char *text)
{
	size_t upto = strcspn(text, "/");
	const char *open = memchr(text, '[', upto);
	const char *p = text;

	/* A bracketed address: at the start, or right behind the user's '@'. */
	if (open && (open == text || open[-1] == '@')) {
		const char *close = memchr(open, ']', upto - (size_t)(open - text));

		if (close && close[1] == ':')
			return close + 1;
	}
	p = memchr(text, ':', upto);
	return p;
}

static int
parse_remote(struct sb_endpoint *e, const char *text, const char *colon, struct sb_error *err)
{
	sb_autofree char *auth = strndup(text, (size_t)(colon - text));
	char buf[SHOWN];
	int r;

	if (!auth)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (colon == text)
		return sb_fail(err, SB_E_USAGE,
			"'%s': no host before ':'; write ./%s for a local path", shown(text, buf),
			buf);
	if (colon[1] == ':')
		return sb_fail(err, SB_E_USAGE,
			"'%s': '::' is not supported; an IPv6 address stands in brackets: "
			"[::1]:path",
			shown(text, buf));
	r = take_authority(e, auth, false, text, err);
	return r < 0 ? r : take_path(e, colon + 1, text, err);
}

int
sb_endpoint_parse(const char *text, struct sb_endpoint *out, struct sb_error *err)
{
	sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };
	char buf[SHOWN];
	const char *colon;
	int r;

	if (!*text)
		return sb_fail(err, SB_E_USAGE, "an empty path; write . for the current directory");
	if (sb_str_starts(text, "ssh://")) {
		e.kind = SB_ENDPOINT_SSH;
		r = parse_url(&e, text, err);
	} else if (strstr(text, "://") && strcspn(text, "/") == strcspn(text, ":") + 1) {
		r = sb_fail(err, SB_E_USAGE,
			"'%s': only ssh:// is known; write ./%s for a local path of that name",
			shown(text, buf), buf);
	} else if ((colon = host_colon(text))) {
		e.kind = SB_ENDPOINT_SSH;
		r = parse_remote(&e, text, colon, err);
	} else {
		r = take_path(&e, text, text, err);
	}
	if (r < 0)
		return r;
	*out = e;
	memset(&e, 0, sizeof e);
	return 0;
}

void
sb_endpoint_free(struct sb_endpoint *e)
{
	free(e->user);
	free(e->host);
	free(e->path);
	memset(e, 0, sizeof *e);
}

char *
sb_endpoint_show(const struct sb_endpoint *e, char *out, size_t size)
{
	bool v6 = e->host && strchr(e->host, ':');
	sb_autofree char *text = NULL;

	if (e->kind == SB_ENDPOINT_LOCAL)
		return sb_escape(e->path, strlen(e->path), out, size);
	if (e->port)
		text = sb_str_printf("ssh://%s%s%s%s%s:%d%s%s", e->user ? e->user : "",
			e->user ? "@" : "", v6 ? "[" : "", e->host, v6 ? "]" : "", e->port,
			*e->path == '/' ? "" : "/~/", strcmp(e->path, ".") == 0 ? "" : e->path);
	else
		text = sb_str_printf("%s%s%s%s%s:%s", e->user ? e->user : "", e->user ? "@" : "",
			v6 ? "[" : "", e->host, v6 ? "]" : "", e->path);
	if (!text)
		return sb_escape("?", 1, out, size);
	return sb_escape(text, strlen(text), out, size);
}

int
sb_endpoint_check_path(const struct sb_endpoint *e, const char *text, struct sb_error *err)
{
	char buf[SHOWN];

	if (!e->no_path)
		return 0;
	return sb_fail(err, SB_E_USAGE,
		"'%s' names no directory there; write %s:~ if all of the login directory is meant",
		shown(text, buf), e->host);
}

char *
sb_endpoint_absolute(const char *path, struct sb_error *err)
{
	sb_autofree char *given = *path == '/' ? strdup(path) : NULL;
	char cwd[PATH_MAX];
	char *rest, *real, *out = NULL;

	if (!given && getcwd(cwd, sizeof cwd))
		given = sb_str_printf("%s/%s", cwd, path);
	if (!given) {
		sb_fail_errno(err, "resolve %s", path);
		return NULL;
	}
	real = realpath(given, NULL);
	if (real)
		return real;
	for (size_t n = strlen(given); n > 1 && given[n - 1] == '/'; n--)
		given[n - 1] = 0;
	rest = strrchr(given, '/');
	if (!rest || rest == given)
		return strdup(given);
	*rest++ = 0;
	real = sb_endpoint_absolute(given, err);
	if (real)
		out = sb_str_printf("%s/%s", strcmp(real, "/") == 0 ? "" : real, rest);
	free(real);
	return out;
}
