/* SPDX-License-Identifier: MIT */
/* The port of a process: opens it at the host's address for ports by a proxy, and probes it. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <host/host-priv.h>
#include <host/proc.h>
#include <host/proxy.h>

/* One look whether the port answers yet. */
#define PROBE_MS 1500

/* What a proxy needs of its process; it may outlive the process by a moment, never the host. */
struct dial {
	struct sb_host *h;
	struct sb_hsess *s;
	struct sb_host_proc *p;
};

static int
connect_to(struct sb_host *h, struct sb_hsess *s, const struct sb_host_proc *p, sb_deadline d,
	int *out_fd, struct sb_error *err)
{
	char mark[SB_HOST_PROC_MARK_MAX];
	pid_t pid = 0;

	(void)pthread_mutex_lock(&s->mu);
	if (sb_host_proc_running(p) && !s->gone)
		pid = (pid_t)p->pid;
	(void)pthread_mutex_unlock(&s->mu);
	if (pid == 0)
		return sb_fail(err, SB_E_UNAVAILABLE, "process %s is not running", p->id);
	return s->rt->ops->connect(s->rt, s->id, sb_host_proc_mark(h, s, "p", p->seq, mark), pid,
		p->port, d, out_fd, err);
}

static int
dial(void *arg, sb_deadline d, int *out_fd, struct sb_error *err)
{
	const struct dial *t = arg;

	return connect_to(t->h, t->s, t->p, d, out_fd, err);
}

static bool
admit(void *arg, const char *authorization)
{
	const struct dial *t = arg;

	return t->h->o.port_admit(t->s->id, t->s->nonce, authorization, t->h->o.port_admit_arg);
}

static void
release(void *arg)
{
	struct dial *t = arg;
	struct sb_host *h = t->h;

	sb_host_proc_unref(t->p);
	sb_hsess_unref(t->s);
	free(t);
	atomic_fetch_sub(&h->proxies, 1);
}

/* "127.0.0.1:40001", "[::1]:40001", "token:127.0.0.1:40001". */
static char *
address_of(const char *host, bool token, unsigned port)
{
	const char *kind = token ? "token:" : "";

	return strchr(host, ':') ? sb_str_printf("%s[%s]:%u", kind, host, port) :
				   sb_str_printf("%s%s:%u", kind, host, port);
}

/* On a unix socket of its own in the directory `dir`. */
static char *
open_unix(const char *dir, const struct sb_hsess *s, struct sb_host_proc *p,
	const struct sb_proxy_target *to, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s.%s", dir, s->id, p->id);
	struct sockaddr_un longest;

	/* A long id is replaced by the number of its record. */
	if (path && strlen(path) >= sizeof longest.sun_path) {
		free(path);
		path = sb_str_printf("%s/%lld.%s", dir, (long long)s->uid, p->id);
	}
	if (!path) {
		(void)sb_fail(err, SB_E_NOMEM, "port of process %s", p->id);
		return NULL;
	}
	if (sb_file_mkdirs(dir, 0700, err) < 0)
		return NULL;
	p->proxy = sb_proxy_open_unix(path, to, err);
	return p->proxy ? sb_str_printf("unix:%s", path) : NULL;
}

/* After a restart of the host where it was, if that is still free. */
static char *
open_tcp(const char *host, const char *told, bool token, struct sb_host_proc *p,
	const struct sb_proxy_target *to, struct sb_error *err)
{
	const char *colon = p->address ? strrchr(p->address, ':') : NULL;
	unsigned before = colon ? (unsigned)strtoul(colon + 1, NULL, 10) : 0;

	if (token)
		host += strlen("token:");
	if (sb_str_starts(told, "token:"))
		told += strlen("token:");
	if (before > 0 && before <= 65535)
		p->proxy = sb_proxy_open(host, before, to, NULL);
	if (!p->proxy)
		p->proxy = sb_proxy_open(host, 0, to, err);
	return p->proxy ? address_of(told, token, sb_proxy_port(p->proxy)) : NULL;
}

int
sb_host_proc_port_open(struct sb_host *h, struct sb_hsess *s, struct sb_host_proc *p,
	struct sb_error *err)
{
	const char *host = h->o.bind_addr, *told = h->o.advertise_addr;
	struct dial *t = calloc(1, sizeof *t);
	struct sb_proxy_target to = { .dial = dial, .release = release, .arg = t };
	bool token = sb_str_starts(host, "token:");
	char *address;

	if (!t)
		return sb_fail(err, SB_E_NOMEM, "port of process %s", p->id);
	*t = (struct dial){ h, sb_hsess_ref(s), sb_host_proc_ref(p) };
	atomic_fetch_add(&h->proxies, 1);
	if (token)
		to.admit = admit;
	address = sb_str_starts(host, "unix:") ?
		open_unix(host + 5, s, p, &to, err) :
		open_tcp(host, told ? told : host, token, p, &to, err);
	if (!p->proxy) {
		release(t);
		return err ? sb_wrap(err, err->code, "set up the port proxy") : SB_E_SYS;
	}
	if (!address) {
		sb_host_proc_port_close(s, p);
		return sb_fail(err, SB_E_NOMEM, "port of process %s", p->id);
	}
	(void)pthread_mutex_lock(&s->mu);
	free(p->address);
	p->address = address;
	(void)pthread_mutex_unlock(&s->mu);
	return 0;
}

void
sb_host_proc_port_close(struct sb_hsess *s, struct sb_host_proc *p)
{
	struct sb_proxy *proxy;

	(void)pthread_mutex_lock(&s->mu);
	proxy = p->proxy;
	p->proxy = NULL;
	(void)pthread_mutex_unlock(&s->mu);
	sb_proxy_stop(proxy);
}

bool
sb_host_proc_port_probe(struct sb_host *h, struct sb_hsess *s, const struct sb_host_proc *p)
{
	int fd = -1;

	if (connect_to(h, s, p, sb_deadline_in(PROBE_MS), &fd, NULL) < 0)
		return false;
	(void)close(fd);
	return true;
}
