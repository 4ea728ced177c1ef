/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/proc.h>

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/procid.h>
#include <base/str.h>
#include <host/grow.h>
#include <host/host-priv.h>
#include <host/procmon.h>
#include <host/storage/idcheck.h>

/* How long what was killed may take to be gone. */
#define GONE_MS 5000
/* A record of a start that is older than this is of a start that is over. */
#define FRESH_NS (60 * INT64_C(1000000000))
#define EXEC_MS 2000
#define CODE_TEXT_MAX 16

struct sb_host_proc *
sb_host_proc_ref(struct sb_host_proc *p)
{
	atomic_fetch_add(&p->refs, 1);
	return p;
}

void
sb_host_proc_unref(struct sb_host_proc *p)
{
	if (!p || atomic_fetch_sub(&p->refs, 1) != 1)
		return;
	if (p->pidfd >= 0)
		(void)close(p->pidfd);
	free(p->binary);
	free(p->log[0]);
	free(p->log[1]);
	free(p->code);
	free(p->address);
	free(p);
}

bool
sb_host_proc_running(const struct sb_host_proc *p)
{
	return p->status != SB_HOST_PROC_EXITED;
}

void
sb_host_proc_find_code(struct sb_host_proc *p)
{
	sb_auto(sb_buf) struct sb_buf text;
	char *end = NULL;
	long code = -1;

	if (sb_file_read(AT_FDCWD, p->code, CODE_TEXT_MAX, &text, NULL) == 0)
		code = strtol((const char *)text.data, &end, 10);
	/* Who waits for it may have been killed with it. */
	if ((!end || *end != '\n' || code < 0 || code > 255) && p->killed)
		code = 128 + SIGKILL;
	p->has_exit = code >= 0 && code <= 255;
	p->exit_code = p->has_exit ? (int)code : -1;
}

const char *
sb_host_proc_mark(const struct sb_host *h, const struct sb_hsess *s, const char *what, uint64_t n,
	char out[SB_HOST_PROC_MARK_MAX])
{
	int len = snprintf(out, SB_HOST_PROC_MARK_MAX, "%s/%lld/", h->key, (long long)s->uid);

	if (what && len > 0 && len < SB_HOST_PROC_MARK_MAX)
		(void)snprintf(out + len, SB_HOST_PROC_MARK_MAX - (size_t)len, "%s%llu", what,
			(unsigned long long)n);
	return out;
}

struct sb_host_proc *
sb_host_proc_find(struct sb_hsess *s, const char *id, struct sb_error *err)
{
	struct sb_host_proc *found = NULL;

	if (sb_idcheck_process(id, err) < 0)
		return NULL;
	(void)pthread_mutex_lock(&s->mu);
	for (size_t i = 0; i < s->n_procs && !found; i++)
		if (strcmp(s->procs[i]->id, id) == 0)
			found = sb_host_proc_ref(s->procs[i]);
	(void)pthread_mutex_unlock(&s->mu);
	if (!found)
		(void)sb_fail(err, SB_E_PROCESS_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_PROCESS_NOT_FOUND), id);
	return found;
}

int
sb_host_proc_put(struct sb_host *h, const struct sb_hsess *s, const struct sb_host_proc *p,
	struct sb_error *err)
{
	struct sb_hostdb_proc row = { .id = p->id,
		.binary = p->binary,
		.seq = p->seq,
		.status = (int)p->status,
		.has_exit = p->has_exit,
		.exit_code = p->exit_code,
		.pid = p->pid,
		.start_ticks = p->start_ticks,
		.started_ns = p->started_ns,
		.ended_ns = p->ended_ns,
		.boot_id = p->boot_id,
		.port = p->port,
		.address = p->address };

	return sb_hostdb_proc_put(h->db, s, &row, err);
}

struct sb_host_proc *
sb_host_proc_new(struct sb_host *h, const struct sb_hsess *s, const char *id, uint64_t seq,
	const char *binary, struct sb_error *err)
{
	sb_auto(sb_host_proc) struct sb_host_proc *p = calloc(1, sizeof *p);

	if (!p) {
		(void)sb_fail(err, SB_E_NOMEM, "process");
		return NULL;
	}
	atomic_init(&p->refs, 1);
	p->pidfd = -1;
	p->seq = seq;
	(void)snprintf(p->id, sizeof p->id, "%s", id);
	p->binary = strdup(binary);
	for (int i = 0; i < 2; i++)
		p->log[i] = sb_str_printf("%s/logs/%lld/%llu.%s", h->o.state_dir, (long long)s->uid,
			(unsigned long long)seq, i ? "err" : "out");
	p->code = sb_str_printf("%s/logs/%lld/%llu.code", h->o.state_dir, (long long)s->uid,
		(unsigned long long)seq);
	if (!p->binary || !p->log[0] || !p->log[1] || !p->code) {
		(void)sb_fail(err, SB_E_NOMEM, "process");
		return NULL;
	}
	return sb_steal(&p);
}

int
sb_host_proc_add(struct sb_hsess *s, struct sb_host_proc *p, struct sb_error *err)
{
	struct sb_host_proc **v = sb_grow(s->procs, s->n_procs, &s->cap_procs, sizeof(*v));

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "processes of %s", s->id);
	s->procs = v;
	v[s->n_procs++] = p;
	return 0;
}

void
sb_host_proc_drop(struct sb_host *h, struct sb_hsess *s, size_t i)
{
	(void)sb_hostdb_proc_delete(h->db, s->uid, s->procs[i]->id, NULL);
	sb_host_proc_unref(s->procs[i]);
	s->n_procs--;
	memmove(s->procs + i, s->procs + i + 1, (s->n_procs - i) * sizeof s->procs[0]);
}

struct restore {
	struct sb_host *h;
	struct sb_hsess *s;
};

static int
restore_row(const struct sb_hostdb_proc *row, void *arg, struct sb_error *err)
{
	struct restore *r = arg;
	struct sb_host_proc *p;

	if (sb_idcheck_process(row->id, NULL) < 0 || !row->binary)
		return sb_fail(err, SB_E_CORRUPT, "host database: session %s has a bad process",
			r->s->id);
	p = sb_host_proc_new(r->h, r->s, row->id, row->seq, row->binary, err);
	if (!p)
		return SB_E_NOMEM;
	p->status = row->status == SB_HOST_PROC_EXITED ||
			(row->status == SB_HOST_PROC_STARTING && row->port) ?
		(enum sb_host_process_status)row->status :
		SB_HOST_PROC_RUNNING;
	p->port = row->port;
	p->has_exit = row->has_exit;
	p->exit_code = row->exit_code;
	p->pid = row->pid;
	p->start_ticks = row->start_ticks;
	p->started_ns = row->started_ns;
	p->ended_ns = row->ended_ns;
	(void)snprintf(p->boot_id, sizeof p->boot_id, "%s", row->boot_id ? row->boot_id : "");
	if ((row->address && !(p->address = strdup(row->address))) ||
		sb_host_proc_add(r->s, p, err) < 0) {
		sb_host_proc_unref(p);
		return SB_E_NOMEM;
	}
	return 0;
}

/* Is it the same process still? The descriptor comes first, the look second. */
static bool
find_again(struct sb_host_proc *p)
{
	char boot[40];

	if (p->pid <= 0 || strcmp(p->boot_id, sb_procid_boot(boot)) != 0)
		return false;
	p->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)p->pid, 0);
	return p->pidfd >= 0 && sb_procid_start((pid_t)p->pid) == p->start_ticks;
}

/*
 * A host that died between a start and the note of it left a record without a process: what it had
 * forked may be on its way to its program still, and has its mark from then on only. So it is
 * waited for, for a while.
 */
static void
kill_marked(struct sb_host *h, struct sb_hsess *s, const struct sb_host_proc *p)
{
	bool fresh = p->pid <= 0 && sb_host_now_ns() - p->started_ns < FRESH_NS;
	sb_deadline d = sb_deadline_in(EXEC_MS);
	char mark[SB_HOST_PROC_MARK_MAX];

	(void)sb_host_proc_mark(h, s, "p", p->seq, mark);
	while (s->rt->ops->signal(s->rt, s->id, mark, 0, SIGKILL) == 0 && fresh &&
		!sb_deadline_passed(d))
		(void)usleep(20000);
}

int
sb_host_proc_restore(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct restore r = { h, s };
	int res = sb_hostdb_proc_load(h->db, s->uid, restore_row, &r, err);

	for (size_t i = 0; i < s->n_procs && res == 0; i++) {
		struct sb_host_proc *p = s->procs[i];

		if (!sb_host_proc_running(p))
			continue;
		if (find_again(p)) {
			s->ran = true;
			if (p->port && sb_host_proc_port_open(h, s, p, err) < 0 && err)
				sb_log(&h->o.log, SB_LOG_WARN, "host",
					"process %s of session %s: %s", p->id, s->id, err->msg);
			res = p->proxy ? sb_host_proc_put(h, s, p, err) : 0;
			if (res == 0)
				res = sb_procmon_add(h, s, p, err);
			continue;
		}
		/*
		 * It ended while nobody looked, or the host died between its start and the note of
		 * it.
		 */
		kill_marked(h, s, p);
		p->status = SB_HOST_PROC_EXITED;
		sb_host_proc_find_code(p);
		p->pid = 0;
		p->ended_ns = sb_host_now_ns();
		res = sb_host_proc_put(h, s, p, err);
	}
	return res;
}

static bool
any_running(const struct sb_hsess *s)
{
	for (size_t i = 0; i < s->n_procs; i++)
		if (sb_host_proc_running(s->procs[i]))
			return true;
	return false;
}

/* Until no process runs or the time is over. */
static void
wait_ended(struct sb_hsess *s, int64_t ms)
{
	sb_deadline d = sb_deadline_in(ms);

	(void)pthread_mutex_lock(&s->mu);
	while (any_running(s) && !sb_deadline_passed(d))
		(void)sb_hsess_wait(s, NULL, d, "processes", NULL);
	(void)pthread_mutex_unlock(&s->mu);
}

void
sb_host_proc_kill_all(struct sb_host *h, struct sb_hsess *s, int grace_ms)
{
	const struct sb_runtime_ops *ops = s->rt->ops;
	sb_deadline d = sb_deadline_in(GONE_MS);
	char mark[SB_HOST_PROC_MARK_MAX];
	bool ran, running;

	sb_filepool_end(&s->files);
	(void)pthread_mutex_lock(&s->mu);
	ran = s->ran;
	running = any_running(s);
	s->ran = false;
	(void)pthread_mutex_unlock(&s->mu);
	if (!ran && !(ops->holds && ops->holds(s->rt, s->id)))
		return;
	(void)sb_host_proc_mark(h, s, NULL, 0, mark);
	if (running && grace_ms > 0) {
		(void)ops->signal(s->rt, s->id, mark, 0, SIGTERM);
		(void)ops->signal(s->rt, s->id, mark, 0, SIGCONT);
		wait_ended(s, grace_ms);
	}
	while (ops->signal(s->rt, s->id, mark, 0, SIGKILL) > 0 && !sb_deadline_passed(d))
		(void)usleep(2000);
	wait_ended(s, GONE_MS);
}

bool
sb_host_proc_clear(struct sb_host *h, struct sb_hsess *s)
{
	const struct sb_runtime_ops *ops = s->rt->ops;
	bool box = ops->holds && ops->holds(s->rt, s->id);

	if (!ops->clear || !ops->clear(s->rt, s->id)) {
		sb_host_proc_kill_all(h, s, 0);
		return !box;
	}
	/* Of what ran outside of the box nothing is left but who waits for it. */
	wait_ended(s, GONE_MS);
	return true;
}

int
sb_host_proc_freeze(struct sb_host *h, struct sb_hsess *s, bool freeze, struct sb_error *err)
{
	char mark[SB_HOST_PROC_MARK_MAX];
	bool ran;

	(void)pthread_mutex_lock(&s->mu);
	ran = s->ran;
	(void)pthread_mutex_unlock(&s->mu);
	if (!ran && !(s->rt->ops->holds && s->rt->ops->holds(s->rt, s->id)))
		return 0;
	return s->rt->ops->freeze(s->rt, s->id, sb_host_proc_mark(h, s, NULL, 0, mark), freeze,
		err);
}

void
sb_host_proc_forget(struct sb_host *h, struct sb_hsess *s)
{
	sb_autofree char *logs = sb_str_printf("%s/logs", h->o.state_dir);
	sb_autoclose int dir = logs ? open(logs, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	char name[32];

	(void)snprintf(name, sizeof name, "%lld", (long long)s->uid);
	if (dir >= 0)
		(void)sb_path_remove_tree(dir, name, NULL);
	if (s->rt->ops->forget)
		s->rt->ops->forget(s->rt, s->id);
}
