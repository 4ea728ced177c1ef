/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_PROXY_H
#define SB_HOST_PROXY_H

#include <sb/cancel.h>
#include <sb/error.h>

/*
 * A listening address whose connections are handed on, each by a thread of its own, to what `dial`
 * opens. Either side may end its direction first; a connection lives until both have, until an
 * error, or until the proxy stops.
 */
struct sb_proxy;

struct sb_proxy_target {
	/*
	 * Opens the other side; a connection whose dial fails is closed. From any thread, until
	 * `release`.
	 */
	int (*dial)(void *arg, sb_deadline d, int *out_fd, struct sb_error *err);
	/* Called once, when nothing of the proxy is left. */
	void (*release)(void *arg);
	void *arg;
};

#define SB_PROXY_CONNECTIONS_MAX 256

/*
 * Listens on `host` (a numeric address or a name of this machine) and `port` (0: a free one). On
 * failure `release` is not called.
 */
struct sb_proxy *sb_proxy_open(const char *host, unsigned port, const struct sb_proxy_target *to,
	struct sb_error *err);
unsigned sb_proxy_port(const struct sb_proxy *p);

/*
 * Stops listening and cuts every connection; `p` is not to be used afterwards. Does not wait. NULL
 * is allowed.
 */
void sb_proxy_stop(struct sb_proxy *p);

#endif
