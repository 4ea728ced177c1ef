/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/box-egress.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>
#include <egress/netpolicy.h>

struct sb_box_egress_policy {
	struct sb_box_egress_policy *next;
	char *text;
	char session[];
};

/* sb-egress lies beside sb-box, wherever that is. */
static char *
program(const struct sb_box_runtime *b)
{
	const char *slash = strrchr(b->helper, '/');
	char *path = sb_str_printf("%.*s/sb-egress", slash ? (int)(slash - b->helper) : 1,
		slash ? b->helper : ".");

	if (path && access(path, X_OK) < 0) {
		free(path);
		return NULL;
	}
	return path;
}

int
sb_box_egress_check(struct sb_runtime *rt, struct sb_error *err)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	sb_autofree char *file = program(b);
	struct sb_error why = { 0 };
	int r;

	(void)pthread_mutex_lock(&b->egress_mu);
	if (!b->egress_known) {
		r = file ? sb_egress_client_probe(file, &why) :
			   sb_fail(&why, SB_E_UNSUPPORTED, "sb-egress is not beside %s", b->helper);
		b->egress_known = true;
		b->egress_works = r == 0;
		(void)snprintf(b->egress_why, sizeof b->egress_why, "%.250s", why.msg);
	}
	r = b->egress_works ?
		0 :
		sb_fail(err, SB_E_UNSUPPORTED, "network outbound cannot be enforced here: %s",
			b->egress_why);
	(void)pthread_mutex_unlock(&b->egress_mu);
	return r;
}

/* The place of the session's policy in the list; with `egress_mu` held. */
static struct sb_box_egress_policy **
find(struct sb_box_runtime *b, const char *session)
{
	struct sb_box_egress_policy **p = &b->policies;

	while (*p && strcmp((*p)->session, session) != 0)
		p = &(*p)->next;
	return p;
}

static void
forget(struct sb_box_runtime *b, const char *session)
{
	struct sb_box_egress_policy **p, *old;

	(void)pthread_mutex_lock(&b->egress_mu);
	p = find(b, session);
	old = *p;
	if (old)
		*p = old->next;
	(void)pthread_mutex_unlock(&b->egress_mu);
	if (old)
		free(old->text);
	free(old);
}

static int
keep(struct sb_box_runtime *b, const char *session, const char *text, struct sb_error *err)
{
	struct sb_box_egress_policy **p, *fresh = NULL;
	char *copy = strdup(text), *old = NULL;
	bool kept = false;

	(void)pthread_mutex_lock(&b->egress_mu);
	p = find(b, session);
	if (copy && !*p && (fresh = calloc(1, sizeof *fresh + strlen(session) + 1))) {
		memcpy(fresh->session, session, strlen(session) + 1);
		*p = fresh;
	}
	if (copy && *p) {
		old = (*p)->text;
		(*p)->text = copy;
		kept = true;
	}
	(void)pthread_mutex_unlock(&b->egress_mu);
	free(kept ? old : copy);
	return kept ? 0 : sb_fail(err, SB_E_NOMEM, "network policy");
}

int
sb_box_egress_policy(struct sb_runtime *rt, const char *session, const char *text, size_t *cut,
	struct sb_error *err)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	struct sb_box *box;
	int r;

	*cut = 0;
	if (!text) {
		forget(b, session);
		return 0;
	}
	/*
	 * Kept first: a box that is made from now on has it. One that is being made just now is
	 * waited for by the lock below and told.
	 */
	r = keep(b, session, text, err);
	box = r == 0 ? sb_box_hold_running(b, session) : NULL;
	if (!box)
		return r;
	if (box->network == SB_HOST_NET_OUTBOUND) {
		r = sb_box_egress_again(b, box, err);
		if (r == 0)
			r = sb_egress_client_policy(&box->egress, text, cut, err);
	}
	/* A proxy that does not take the policy must not go on with the old one. */
	if (r < 0)
		sb_egress_client_stop(&box->egress);
	sb_box_release(box);
	return r;
}

/* The sum of these columns of /proc/PID/net/snmp, whose first line of a group names them. */
static uint64_t
snmp(const char *text, const char *group, const char *column)
{
	const char *names = strstr(text, group), *values = names ? strchr(names, '\n') : NULL;
	const char *end = values;

	values = values ? values + 1 : NULL;
	while (names && values && *values && names < end) {
		size_t n = strcspn(names, " \n"), m = strcspn(values, " \n");

		if (n == strlen(column) && strncmp(names, column, n) == 0)
			return strtoull(values, NULL, 10);
		names += n + 1;
		values += m + 1;
	}
	return 0;
}

uint64_t
sb_box_egress_unrouted(struct sb_runtime *rt, const char *session)
{
	struct sb_box *box = sb_box_hold_running((struct sb_box_runtime *)rt, session);
	char path[64], text[8192];
	sb_autoclose int fd = -1;
	ssize_t n;

	if (!box)
		return 0;
	(void)snprintf(path, sizeof path, "/proc/%d/net/snmp", (int)box->pid);
	sb_box_release(box);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
	if (n <= 0)
		return 0;
	text[n] = '\0';
	/* A resolver on the loopback of the machine is not there inside. */
	return snmp(text, "Ip:", "OutNoRoutes") + snmp(text, "Udp:", "NoPorts");
}

/* The events of the proxy, from now on or from its first. Their loss is no reason to stop. */
static void
subscribe(struct sb_box_runtime *b, const struct sb_box *box, bool from_first)
{
	struct sb_error err = { 0 };
	int fd = -1, r = 0;

	if (!b->on_network)
		return;
	(void)pthread_mutex_lock(&b->egress_mu);
	if (!b->pump)
		b->pump = sb_egress_pump_open(b->on_network, b->network_arg, &err);
	if (b->pump)
		fd = sb_egress_client_events(box->dir, from_first, &err);
	if (fd >= 0)
		r = sb_egress_pump_add(b->pump, box->session, fd, &err);
	(void)pthread_mutex_unlock(&b->egress_mu);
	if (fd < 0 || r < 0)
		sb_log(&b->o->log, SB_LOG_WARN, "runtime",
			"session %s: no events of its network: %s", box->session, err.msg);
}

int
sb_box_egress_start(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err)
{
	sb_autofree char *file = program(b);
	sb_autofree char *text = NULL;
	struct sb_box_egress_policy *p;
	int r;

	(void)pthread_mutex_lock(&b->egress_mu);
	p = *find(b, box->session);
	text = p ? strdup(p->text) : NULL;
	(void)pthread_mutex_unlock(&b->egress_mu);
	if (!file || !text)
		return sb_fail(err, SB_E_NETWORK_POLICY, "%s",
			file ? "the session has no network policy" : "sb-egress is not installed");
	r = sb_egress_client_start(&box->egress,
		&(struct sb_egress_client_opts){ .program = file,
			.session = box->session,
			.dir = box->dir,
			.policy = text,
			.resolver = b->o->egress_resolver,
			.pid = box->pid },
		box->netns, sizeof box->netns, err);
	if (r == 0)
		subscribe(b, box, true);
	return r;
}

int
sb_box_egress_ready(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err)
{
	(void)b;
	return sb_egress_client_watch(&box->egress, box->pid, err);
}

int
sb_box_egress_again(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err)
{
	int r;

	if (sb_egress_client_alive(&box->egress))
		return 0;
	/* After a restart of the host the proxy is there, only the connection is not. */
	if (box->egress.control < 0 &&
		sb_egress_client_connect(&box->egress, box->dir, NULL) == 0) {
		subscribe(b, box, false);
		return 0;
	}
	sb_log(&b->o->log, SB_LOG_WARN, "runtime",
		"session %s: its egress proxy has gone; another is started", box->session);
	r = sb_box_egress_start(b, box, err);
	return r < 0 ? r : sb_box_egress_ready(b, box, err);
}

void
sb_box_egress_end(struct sb_box *box)
{
	sb_egress_client_stop(&box->egress);
}

void
sb_box_egress_close(struct sb_box_runtime *b)
{
	sb_egress_pump_close(b->pump);
	while (b->policies) {
		struct sb_box_egress_policy *p = b->policies;

		b->policies = p->next;
		free(p->text);
		free(p);
	}
}
