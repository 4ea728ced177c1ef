/* SPDX-License-Identifier: MIT */
#ifndef SBSYNC_ENDPOINT_H
#define SBSYNC_ENDPOINT_H

#include <stdbool.h>
#include <stddef.h>

#include <base/cleanup.h>
#include <sb/error.h>

/*
 * One side of a sync, as the user writes it:
 *   PATH                               local; a ':' before the first '/' makes it remote,
 *                                      so "./a:b" is local
 *   [USER@]HOST:PATH                   remote; an IPv6 address stands in brackets: [::1]:PATH
 *   ssh://[USER@]HOST[:PORT][/PATH]    remote; user and path may be percent-encoded
 * A remote path that does not begin with '/' (after ssh://HOST/: that begins with "~/") is relative
 * to the login directory; an empty one is that directory ("."). Host and user never begin with '-'
 * and hold no control characters, spaces or characters special to a shell, so they are safe as
 * arguments of another program.
 */
enum sb_endpoint_kind {
	SB_ENDPOINT_LOCAL,
	SB_ENDPOINT_SSH,
};

struct sb_endpoint {
	enum sb_endpoint_kind kind;
	char *user;   /* NULL: not given */
	char *host;   /* NULL for local; without brackets */
	int port;     /* 0: not given */
	char *path;   /* never empty, never "~" or "~/..." */
	bool no_path; /* nothing stood behind the host: `path` is the login directory */
};

/* Fails with SB_E_USAGE and one line that quotes the text (escaped) and names the way out. */
int sb_endpoint_parse(const char *text, struct sb_endpoint *out, struct sb_error *err);
void sb_endpoint_free(struct sb_endpoint *e);
SB_CLEANUP_VALUE(sb_endpoint, sb_endpoint_free)

/*
 * "user@host:path" or the path, escaped for a terminal; a non-default port is shown in ssh:// form.
 * Returns `out`.
 */
char *sb_endpoint_show(const struct sb_endpoint *e, char *out, size_t size);

/*
 * The rules for a host and a user name from other sources (options, configuration). `what` names
 * the source.
 */
int sb_endpoint_check_host(const char *host, const char *what, struct sb_error *err);
int sb_endpoint_check_user(const char *user, const char *what, struct sb_error *err);

/* SB_E_USAGE where nothing stood behind the host: a home directory is not synced unasked. */
int sb_endpoint_check_path(const struct sb_endpoint *e, const char *text, struct sb_error *err);

/*
 * The absolute form of a local path, also of one that is not there yet: its nearest existing
 * directory is resolved, the rest stays as written. A new string, or NULL.
 */
char *sb_endpoint_absolute(const char *path, struct sb_error *err);

#endif
