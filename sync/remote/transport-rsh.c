/* SPDX-License-Identifier: MIT */
/* A transport through the ssh program, or what --rsh names instead. */
#include "config.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <sync/remote/lend-tty.h>
#include <sync/remote/remote.h>
#include <sync/wire/transport.h>

/* What ssh itself exits with when it fails; a command that does the same cannot be told apart. */
#define SSH_FAILED 255

struct rsh_transport {
	struct sb_transport base;
	struct sb_transport *child;
	char name[300];
	pthread_mutex_t mu;      /* of `tty` */
	struct sb_lend_tty tty;  /* while it may ask the user something */
	_Atomic bool interrupts; /* it was lent: Ctrl-C was for it */
};

static const struct {
	const char *says;
	int code;
	const char *advice;
} reasons[] = {
	{ "REMOTE HOST IDENTIFICATION HAS CHANGED", SB_E_HOSTKEY, "the host key has changed" },
	{ "Host key verification failed", SB_E_HOSTKEY,
		"the host key is not known; connect once with ssh, or use --accept-new-host-key" },
	{ "Permission denied", SB_E_AUTH, "log-in refused; can you log in with ssh?" },
	{ "Too many authentication failures", SB_E_AUTH,
		"name one key with -i and IdentitiesOnly" },
	{ "Could not resolve", SB_E_CONNECT, "the name cannot be resolved" },
	{ "Connection refused", SB_E_CONNECT,
		"is sshd running there, and is the port right (-p)?" },
	{ "timed out", SB_E_CONNECT, "no answer; check the address and firewalls" },
	{ "No route to host", SB_E_CONNECT, "check the network" },
	{ "not responding", SB_E_TIMEOUT, "no sign of life from the server" },
};

static int
explain(const struct rsh_transport *t, const struct sb_exit *e, struct sb_error *err)
{
	const char *last = e->stderr_tail;
	size_t len = strlen(last);

	/* The end of what ssh says is the reason; the rest is often a banner. */
	if (len > 250)
		last += len - 250;
	for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (strstr(e->stderr_tail, reasons[i].says))
			return sb_fail(err, reasons[i].code, "%s: %s (ssh: %s)", t->name,
				reasons[i].advice, last);
	return sb_fail(err, SB_E_CLOSED, "%s: connection lost (ssh: %s)", t->name,
		*last ? last : "no message");
}

/* Logged in, or over: the terminal comes back. */
static void
rsh_heard(struct sb_transport *t)
{
	struct rsh_transport *r = (struct rsh_transport *)t;

	(void)pthread_mutex_lock(&r->mu);
	sb_lend_tty_end(&r->tty);
	(void)pthread_mutex_unlock(&r->mu);
	atomic_store(&r->interrupts, false);
}

static int
rsh_close_write(struct sb_transport *t, struct sb_error *err)
{
	struct rsh_transport *r = (struct rsh_transport *)t;

	return r->child->ops->close_write(r->child, err);
}

static int
rsh_wait(struct sb_transport *t, sb_deadline d, struct sb_exit *out, struct sb_error *err)
{
	struct rsh_transport *r = (struct rsh_transport *)t;
	int rc = r->child->ops->wait(r->child, d, out, err);

	if (rc == 0) {
		bool asked = atomic_load(&r->interrupts);

		rsh_heard(t);
		if (asked && out->code == 128 + SIGINT)
			return sb_fail(err, SB_E_CANCELED, "%s: interrupted at the log-in",
				r->name);
	}
	if (rc < 0 || out->code != SSH_FAILED)
		return rc;
	out->known = false;
	return explain(r, out, err);
}

static void
rsh_cancel(struct sb_transport *t)
{
	struct rsh_transport *r = (struct rsh_transport *)t;

	r->child->ops->cancel(r->child);
}

static void
rsh_wire_bytes(const struct sb_transport *t, uint64_t *up, uint64_t *down)
{
	*up = 0;
	*down = 0;
}

static void
rsh_free(struct sb_transport *t)
{
	struct rsh_transport *r = (struct rsh_transport *)t;

	sb_transport_free(r->child);
	rsh_heard(t);
	(void)pthread_mutex_destroy(&r->mu);
	free(r);
}

static const struct sb_transport_ops rsh_ops = {
	.name = "rsh",
	.close_write = rsh_close_write,
	.wait = rsh_wait,
	.cancel = rsh_cancel,
	.wire_bytes = rsh_wire_bytes,
	.free = rsh_free,
	.heard = rsh_heard,
};

struct sb_transport *
sb_transport_rsh(const char *const *argv, const char *name, bool split,
	const struct sb_lend_tty *tty, struct sb_error *err)
{
	struct rsh_transport *r = calloc(1, sizeof *r);
	const struct sb_carrier *carrier;

	if (!r) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	(void)snprintf(r->name, sizeof r->name, "%s", name);
	carrier = sb_conn_carry_find(argv);
	r->child = carrier ? sb_transport_carried(carrier, argv, split, err) :
			     sb_transport_child_asking(argv, split, tty->fd >= 0, err);
	if (!r->child) {
		free(r);
		return NULL;
	}
	(void)pthread_mutex_init(&r->mu, NULL);
	r->tty = *tty;
	atomic_init(&r->interrupts, tty->fd >= 0);
	r->base = (struct sb_transport){ .ops = &rsh_ops,
		.rfd = r->child->rfd,
		.wfd = r->child->wfd,
		.efd = r->child->efd };
	return &r->base;
}
