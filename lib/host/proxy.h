/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PROXY_H
#define SB_HOST_PROXY_H

#include <stdbool.h>

#include <sb/cancel.h>
#include <sb/error.h>

/*
 * Listens at an address and relays each connection, in a thread of its own, to what `dial` opens.
 * Either side may end its direction first; a connection lives until both have, until an error, or
 * until the proxy stops.
 */
struct sb_proxy;

struct sb_proxy_target {
	/*
	 * Opens the other side; when it fails, the proxy closes the connection. Any thread may call
	 * it until `release`.
	 */
	int (*dial)(void *arg, sb_deadline d, int *out_fd, struct sb_error *err);
	/*
	 * May who shows this come in? `authorization` is the value of a header (porthead.h). NULL:
	 * everybody may, and there is no header. Called as dial is.
	 */
	bool (*admit)(void *arg, const char *authorization);
	/* The proxy calls it once, when nothing of the proxy is left. */
	void (*release)(void *arg);
	void *arg;
};

#define SB_PROXY_CONNECTIONS_MAX 256

/*
 * Listens on `host` (a numeric address or a name of this machine) and `port` (0: a free one). On
 * failure nobody calls `release`.
 */
struct sb_proxy *sb_proxy_open(const char *host, unsigned port, const struct sb_proxy_target *to,
	struct sb_error *err);
/*
 * The same on a unix socket at `path`, which only this user may use and which goes with the proxy;
 * one that is left there from before makes room.
 */
struct sb_proxy *sb_proxy_open_unix(const char *path, const struct sb_proxy_target *to,
	struct sb_error *err);
/* 0 for a unix socket. */
unsigned sb_proxy_port(const struct sb_proxy *p);

/*
 * Stops listening and cuts every connection, without waiting; the caller does not use `p`
 * afterwards. `p` may be NULL.
 */
void sb_proxy_stop(struct sb_proxy *p);

#endif
