/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <host/grow.h>
#include <host/host-priv.h>
#include <host/procmon.h>

/* How often the sizes of logs are looked at. */
#define LOG_LOOK_MS 1000
/* How often a port that does not answer yet is tried. */
#define READY_LOOK_MS 50
#define LOG_BLOCK 4096u

struct watched {
	struct sb_hsess *s;
	struct sb_host_proc *p;
};

struct sb_procmon {
	struct sb_host *h;
	pthread_t thread;
	int wake;
	pthread_mutex_t mu; /* guards all below */
	bool stop;
	struct watched *v;
	size_t n, cap;
};

/* waitid works for our own children only; others have left their code in a file. */
static void
ended(struct sb_host *h, struct sb_hsess *s, struct sb_host_proc *p)
{
	siginfo_t si = { 0 };
	bool known = p->pidfd >= 0 &&
		waitid(P_PIDFD, (id_t)p->pidfd, &si, WEXITED | WNOHANG) == 0 && si.si_pid != 0;
	char mark[SB_HOST_PROC_MARK_MAX];
	bool killed;

	(void)pthread_mutex_lock(&s->mu);
	killed = p->killed || (known && si.si_code != CLD_EXITED);
	(void)pthread_mutex_unlock(&s->mu);
	/*
	 * The record comes after the end of the whole tree: a host that died in between would not
	 * look for the rest.
	 */
	if (killed)
		(void)s->rt->ops->signal(s->rt, s->id, sb_host_proc_mark(h, s, "p", p->seq, mark),
			0, SIGKILL);
	(void)pthread_mutex_lock(&s->mu);
	p->status = SB_HOST_PROC_EXITED;
	p->has_exit = known;
	p->exit_code = si.si_code == CLD_EXITED ? si.si_status : 128 + si.si_status;
	if (!known)
		sb_host_proc_find_code(p);
	p->ended_ns = sb_host_now_ns();
	if (!s->gone)
		(void)sb_host_proc_put(h, s, p, NULL);
	sb_host_event_note(h->events, "process.exited", s->id, p->id, s->state);
	(void)pthread_cond_broadcast(&s->cv);
	(void)pthread_mutex_unlock(&s->mu);
	sb_host_proc_port_close(s, p);
}

/* True while its port does not answer yet. */
static bool
not_ready(struct sb_host *h, struct sb_hsess *s, struct sb_host_proc *p)
{
	bool starting;

	(void)pthread_mutex_lock(&s->mu);
	starting = p->status == SB_HOST_PROC_STARTING;
	(void)pthread_mutex_unlock(&s->mu);
	if (!starting || !p->port || !sb_host_proc_port_probe(h, s, p))
		return starting && p->port;
	(void)pthread_mutex_lock(&s->mu);
	if (p->status == SB_HOST_PROC_STARTING) {
		p->status = SB_HOST_PROC_RUNNING;
		if (!s->gone)
			(void)sb_host_proc_put(h, s, p, NULL);
		sb_host_event_note(h->events, "process.ready", s->id, p->id, s->state);
		(void)pthread_cond_broadcast(&s->cv);
	}
	(void)pthread_mutex_unlock(&s->mu);
	return false;
}

/* The oldest part of a long log is given back to the disk; offsets in it stay what they were. */
static void
trim(const struct sb_host *h, const struct sb_host_proc *p)
{
	uint64_t max = h->o.max_log_bytes;

	for (int i = 0; i < 2 && max > 0; i++) {
		sb_autoclose int fd = -1;
		struct stat st;
		uint64_t cut;

		if (stat(p->log[i], &st) < 0 || (uint64_t)st.st_blocks * 512 <= max + LOG_BLOCK)
			continue;
		fd = open(p->log[i], O_WRONLY | O_CLOEXEC);
		cut = ((uint64_t)st.st_size - max / 2) / LOG_BLOCK * LOG_BLOCK;
		if (fd >= 0 && (uint64_t)st.st_size > max / 2 && cut > 0)
			(void)fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				(off_t)cut);
	}
}

/* What to poll, copied so that the list may change meanwhile. The first is the wake-up. */
static struct pollfd *
gather(struct sb_procmon *m, struct watched **out, size_t *n, bool *stop)
{
	struct pollfd *fds;

	(void)pthread_mutex_lock(&m->mu);
	*stop = m->stop;
	*n = m->n;
	fds = calloc(m->n + 1, sizeof *fds);
	*out = calloc(m->n + 1, sizeof **out);
	if (!fds || !*out) {
		free(fds);
		free(*out);
		*out = NULL;
		fds = NULL;
	}
	for (size_t i = 0; fds && i < m->n; i++) {
		(*out)[i] = m->v[i];
		fds[i + 1] = (struct pollfd){ .fd = m->v[i].p->pidfd, .events = POLLIN };
	}
	(void)pthread_mutex_unlock(&m->mu);
	if (fds)
		fds[0] = (struct pollfd){ .fd = m->wake, .events = POLLIN };
	return fds;
}

static void
forget(struct sb_procmon *m, const struct watched *w)
{
	(void)pthread_mutex_lock(&m->mu);
	for (size_t i = 0; i < m->n; i++)
		if (m->v[i].p == w->p) {
			m->v[i] = m->v[--m->n];
			break;
		}
	(void)pthread_mutex_unlock(&m->mu);
	sb_host_proc_unref(w->p);
	sb_hsess_unref(w->s);
}

static void *
monitor(void *arg)
{
	struct sb_procmon *m = arg;
	int64_t look_at = sb_now_ms() + LOG_LOOK_MS;
	bool stop = false, waiting = false;

	while (!stop) {
		sb_autofree struct watched *v = NULL;
		size_t n = 0;
		sb_autofree struct pollfd *fds = gather(m, &v, &n, &stop);
		uint64_t drain;

		if (stop)
			break;
		if (!fds) {
			(void)usleep(100000);
			continue;
		}
		(void)poll(fds, n + 1, waiting ? READY_LOOK_MS : n ? LOG_LOOK_MS : -1);
		if (fds[0].revents && read(m->wake, &drain, sizeof drain) < 0 && errno != EAGAIN)
			break;
		for (size_t i = 0; i < n; i++)
			if (fds[i + 1].revents || v[i].p->pidfd < 0) {
				ended(m->h, v[i].s, v[i].p);
				forget(m, &v[i]);
				v[i].p = NULL;
			}
		waiting = false;
		for (size_t i = 0; i < n; i++)
			waiting |= v[i].p && not_ready(m->h, v[i].s, v[i].p);
		sb_host_event_flush(m->h->events);
		if (sb_now_ms() < look_at)
			continue;
		look_at = sb_now_ms() + LOG_LOOK_MS;
		for (size_t i = 0; i < n; i++)
			if (v[i].p)
				trim(m->h, v[i].p);
	}
	return NULL;
}

static struct sb_procmon *
start(struct sb_host *h, struct sb_error *err)
{
	struct sb_procmon *m = calloc(1, sizeof *m);

	if (!m) {
		(void)sb_fail(err, SB_E_NOMEM, "process monitor");
		return NULL;
	}
	m->h = h;
	m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	(void)pthread_mutex_init(&m->mu, NULL);
	if (m->wake < 0 || pthread_create(&m->thread, NULL, monitor, m) != 0) {
		(void)sb_fail_errno(err, "start the process monitor");
		if (m->wake >= 0)
			(void)close(m->wake);
		(void)pthread_mutex_destroy(&m->mu);
		free(m);
		return NULL;
	}
	return m;
}

static void
wake(struct sb_procmon *m)
{
	const uint64_t one = 1;

	(void)!write(m->wake, &one, sizeof one);
}

int
sb_procmon_add(struct sb_host *h, struct sb_hsess *s, struct sb_host_proc *p, struct sb_error *err)
{
	struct sb_procmon *m;
	struct watched *v;
	int r = 0;

	(void)pthread_mutex_lock(&h->mu);
	if (!h->monitor)
		h->monitor = start(h, err);
	m = h->monitor;
	(void)pthread_mutex_unlock(&h->mu);
	if (!m)
		return err ? err->code : SB_E_SYS;
	(void)pthread_mutex_lock(&m->mu);
	v = sb_grow(m->v, m->n, &m->cap, sizeof *v);
	if (v)
		m->v = v;
	else
		r = sb_fail(err, SB_E_NOMEM, "process monitor");
	if (r == 0)
		v[m->n++] = (struct watched){ sb_hsess_ref(s), sb_host_proc_ref(p) };
	(void)pthread_mutex_unlock(&m->mu);
	wake(m);
	return r;
}

static void
stop_monitor(struct sb_procmon *m)
{
	(void)pthread_mutex_lock(&m->mu);
	m->stop = true;
	(void)pthread_mutex_unlock(&m->mu);
	wake(m);
	(void)pthread_join(m->thread, NULL);
	for (size_t i = 0; i < m->n; i++) {
		sb_host_proc_port_close(m->v[i].s, m->v[i].p);
		sb_host_proc_unref(m->v[i].p);
		sb_hsess_unref(m->v[i].s);
	}
	(void)close(m->wake);
	(void)pthread_mutex_destroy(&m->mu);
	free(m->v);
	free(m);
}

void
sb_procmon_stop(struct sb_host *h)
{
	struct sb_procmon *m = h->monitor;

	if (m)
		stop_monitor(m);
	h->monitor = NULL;
	while (atomic_load(&h->proxies) > 0)
		(void)usleep(1000);
}
