/* SPDX-License-Identifier: MIT */
/* The processes of a session as callers see them: launch, kill, get, list. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/file.h>
#include <base/procid.h>
#include <host/host-map.h>
#include <host/host-bounds.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/proc.h>
#include <host/procmon.h>

/* Ended processes are shown this long. */
#define KEEP_ENDED_NS (600 * INT64_C(1000000000))
#define ARGS_MAX 4096
#define ARGS_BYTES_MAX (1u << 20)

static int
check_list(const char *const *v, const char *what, bool env, struct sb_error *err)
{
	size_t bytes = 0;

	for (size_t i = 0; v && v[i]; i++) {
		const char *eq = strchr(v[i], '=');

		bytes += strlen(v[i]) + 1;
		if (i >= ARGS_MAX || bytes > ARGS_BYTES_MAX)
			return sb_fail(err, SB_E_INVAL, "%s: more than %d entries or %u bytes",
				what, ARGS_MAX, ARGS_BYTES_MAX);
		if (env && (!eq || eq == v[i]))
			return sb_fail(err, SB_E_INVAL, "env: entry %zu is not KEY=value", i);
	}
	return 0;
}

static int
check_launch(struct sb_host *h, const struct sb_host_launch *l, struct sb_error *err)
{
	int r;

	if (!l->session || !*l->session)
		return sb_fail(err, SB_E_INVAL, "session_id is required");
	if (!l->binary || !*l->binary)
		return sb_fail(err, SB_E_INVAL, "binary is required");
	if (strnlen(l->binary, 4096) == 4096)
		return sb_fail(err, SB_E_INVAL, "binary is longer than 4095 bytes");
	if (l->expose_port < 0 || l->expose_port > 65535)
		return sb_fail(err, SB_E_INVAL, "expose_port must be in range [0,65535]");
	if (l->expose_port > 0 && !h->rt->ops->connect)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"expose_port: runtime %s has no ports of its own for a session",
			h->rt->ops->name);
	r = check_list(l->args, "args", false, err);
	return r < 0 ? r : check_list(l->env, "env", true, err);
}

/* Forgets ended processes past their time, then counts. With `mu` held. */
static int
admit(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	int64_t old = sb_host_now_ns() - KEEP_ENDED_NS;
	unsigned running = 0;

	for (size_t i = s->n_procs; i-- > 0;) {
		if (sb_host_proc_running(s->procs[i]))
			running++;
		else if (s->procs[i]->ended_ns < old)
			sb_host_proc_drop(h, s, i);
	}
	if (h->o.max_processes && running >= h->o.max_processes)
		return sb_fail(err, SB_E_LIMIT,
			"session %s runs %u processes, at most %u are allowed", s->id, running,
			h->o.max_processes);
	return 0;
}

/* The record first: whatever starts after it can be found again by its mark. */
static struct sb_host_proc *
announce(struct sb_host *h, struct sb_hsess *s, const struct sb_host_launch *l,
	struct sb_error *err)
{
	char id[SB_HOST_PROCESS_ID_MAX + 1];
	struct sb_host_proc *p = NULL;
	int r;

	(void)pthread_mutex_lock(&s->mu);
	r = admit(h, s, err);
	if (r == 0) {
		s->proc_seq++;
		s->ran = true;
		(void)snprintf(id, sizeof id, "proc-%.8s-%llu", s->id,
			(unsigned long long)s->proc_seq);
		p = sb_host_proc_new(h, s, id, s->proc_seq, l->binary, err);
	}
	if (p) {
		p->port = (unsigned)l->expose_port;
		p->started_ns = sb_host_now_ns();
		(void)sb_procid_boot(p->boot_id);
		r = sb_host_proc_put(h, s, p, err);
		if (r == 0)
			r = sb_host_proc_add(s, p, err);
		if (r < 0) {
			(void)sb_hostdb_proc_delete(h->db, s->uid, p->id, NULL);
			sb_host_proc_unref(p);
			p = NULL;
		} else {
			(void)sb_host_proc_ref(p);
		}
	}
	(void)pthread_mutex_unlock(&s->mu);
	return p;
}

static int
open_logs(struct sb_host_proc *p, int fd[2], struct sb_error *err)
{
	sb_autofree char *dir = strdup(p->log[0]);
	int r;

	if (!dir)
		return sb_fail(err, SB_E_NOMEM, "process log");
	*strrchr(dir, '/') = '\0';
	r = sb_file_mkdirs(dir, 0700, err);
	for (int i = 0; i < 2 && r == 0; i++) {
		fd[i] = open(p->log[i], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
		if (fd[i] < 0)
			r = sb_fail_errno(err, "open %s", p->log[i]);
	}
	return r;
}

static int
start(struct sb_host *h, struct sb_hsess *s, struct sb_host_proc *p, const struct sb_host_launch *l,
	struct sb_error *err)
{
	sb_autofree const char **argv = NULL;
	struct sb_spawn_opts io = SB_SPAWN_OPTS_INIT;
	struct sb_runtime_cmd cmd = { .session = s->id,
		.workspace = s->mountpoint,
		.env = l->env,
		.res = l->res,
		.network = s->network,
		.leave = true,
		.outlive = true };
	sb_autoclose int out = -1;
	sb_autoclose int errfd = -1;
	char mark[SB_HOST_PROC_MARK_MAX];
	struct sb_child child;
	int fd[2] = { -1, -1 };
	size_t n = 0;
	int r;

	r = sb_host_bounds_call(&h->o, s->rt, &l->res, err);
	if (r < 0)
		return r;
	while (l->args && l->args[n])
		n++;
	argv = calloc(n + 2, sizeof(*argv));
	if (!argv)
		return sb_fail(err, SB_E_NOMEM, "launch process");
	argv[0] = l->binary;
	for (size_t i = 0; i < n; i++)
		argv[i + 1] = l->args[i];
	r = open_logs(p, fd, err);
	out = fd[0];
	errfd = fd[1];
	if (r < 0)
		return r;
	cmd.argv = argv;
	cmd.mark = sb_host_proc_mark(h, s, "p", p->seq, mark);
	cmd.status = p->code;
	if (l->input > 0) {
		io.io[0] = SB_SPAWN_FD;
		io.fds[0] = l->input;
	}
	io.io[1] = io.io[2] = SB_SPAWN_FD;
	io.fds[1] = out;
	io.fds[2] = errfd;
	r = sb_hsess_start(s, &cmd, &io, &child, err);
	/* Each runtime says it in its own words. */
	if (r == SB_E_NOTFOUND)
		return sb_fail(err, r, "launch process: %s: no such program", l->binary);
	if (r == SB_E_DENIED)
		return sb_fail(err, r, "launch process: %s cannot be executed", l->binary);
	if (r < 0)
		return sb_wrap(err, r, "launch process");
	p->pidfd = child.pidfd >= 0 ? child.pidfd : (int)syscall(SYS_pidfd_open, child.pid, 0);
	(void)pthread_mutex_lock(&s->mu);
	p->pid = child.pid;
	p->start_ticks = sb_procid_start(child.pid);
	p->status = p->port ? SB_HOST_PROC_STARTING : SB_HOST_PROC_RUNNING;
	r = sb_host_proc_put(h, s, p, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

static int
describe(struct sb_hsess *s, const struct sb_host_proc *p, struct sb_host_process *out,
	struct sb_error *err)
{
	struct stat st;

	*out = (struct sb_host_process){ 0 };
	(void)pthread_mutex_lock(&s->mu);
	memcpy(out->id, p->id, sizeof out->id);
	out->status = p->status;
	out->has_exit = p->has_exit;
	out->exit_code = p->exit_code;
	out->pid = sb_host_proc_running(p) ? p->pid : 0;
	out->started_ns = p->started_ns;
	out->ended_ns = p->ended_ns;
	out->port = p->port;
	out->address = strdup(p->address && sb_host_proc_running(p) ? p->address : "");
	(void)pthread_mutex_unlock(&s->mu);
	out->binary = strdup(p->binary);
	for (int i = 0; i < 2; i++)
		if (stat(p->log[i], &st) == 0)
			out->log_size[i] = (uint64_t)st.st_size;
	if (!out->binary || !out->address) {
		sb_host_process_clear(out);
		return sb_fail(err, SB_E_NOMEM, "process");
	}
	return 0;
}

/* Undoes a launch that failed half-way. */
static void
give_up(struct sb_host *h, struct sb_hsess *s, struct sb_host_proc *p)
{
	char mark[SB_HOST_PROC_MARK_MAX];

	(void)s->rt->ops->signal(s->rt, s->id, sb_host_proc_mark(h, s, "p", p->seq, mark), 0,
		SIGKILL);
	sb_host_proc_port_close(s, p);
	(void)pthread_mutex_lock(&s->mu);
	for (size_t i = s->n_procs; i-- > 0;)
		if (s->procs[i] == p)
			sb_host_proc_drop(h, s, i);
	(void)pthread_mutex_unlock(&s->mu);
}

/*
 * Without the slot: others may work on the session meanwhile. Out of time is not an error, `out`
 * tells.
 */
static int
await_ready(struct sb_hsess *s, const struct sb_host_proc *p, int64_t ms,
	const struct sb_host_call *call, struct sb_host_process *out, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(ms);
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	while (r == 0 && p->status == SB_HOST_PROC_STARTING && !s->gone && !sb_deadline_passed(d))
		r = sb_hsess_wait(s, call, d, "the process to be ready", NULL);
	(void)pthread_mutex_unlock(&s->mu);
	sb_host_process_clear(out);
	return describe(s, p, out, err);
}

int
sb_host_process_launch(struct sb_host *h, const struct sb_host_launch *launch,
	const struct sb_host_call *call, struct sb_host_process *out, struct sb_error *err)
{
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	sb_auto(sb_host_proc) struct sb_host_proc *p = NULL;
	struct sb_error why = { 0 };
	struct sb_hsess *s;
	int r;

	memcpy(&l, launch, launch->size < sizeof l ? launch->size : sizeof l);
	r = check_launch(h, &l, err);
	if (r == 0)
		r = sb_host_op_start(h, l.session, SB_HOST_OP_LAUNCH, true, call, &s, err);
	if (r < 0)
		return r;
	p = announce(h, s, &l, &why);
	r = p ? 0 : why.code;
	if (r == 0 && p->port)
		r = sb_host_proc_port_open(h, s, p, &why);
	if (r == 0)
		r = start(h, s, p, &l, &why);
	if (r == 0)
		r = sb_procmon_add(h, s, p, &why);
	if (r == 0)
		r = describe(s, p, out, &why);
	if (r == 0) {
		atomic_fetch_add(&h->launched, 1);
		sb_host_event_note(h->events, "process.started", s->id, p->id, SB_HOST_ACTIVE);
	} else if (p) {
		give_up(h, s, p);
	}
	if (r < 0 && err)
		*err = why;
	if (r == 0 && p->port && l.ready_timeout_ms > 0) {
		(void)sb_hsess_ref(s);
		(void)sb_host_op_done(h, s, 0);
		r = await_ready(s, p, l.ready_timeout_ms, call, out, err);
		sb_hsess_unref(s);
		return r;
	}
	return sb_host_op_done(h, s, r);
}

int
sb_host_process_kill(struct sb_host *h, const char *id, const char *process, int sig,
	struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	sb_auto(sb_host_proc) struct sb_host_proc *p = NULL;
	char mark[SB_HOST_PROC_MARK_MAX];
	struct sb_error why = { 0 };
	pid_t pid = 0;

	if (sig < 0 || sig > SIGRTMAX)
		return sb_fail(err, SB_E_INVAL, "signal %d is not one", sig);
	(void)sb_host_call_begin(h, false, NULL);
	s = sb_host_map_find(h, id, &why);
	p = s ? sb_host_proc_find(s, process, &why) : NULL;
	if (p) {
		(void)pthread_mutex_lock(&s->mu);
		if (sb_host_proc_running(p))
			pid = (pid_t)p->pid;
		p->killed |= pid > 0 && sig == SIGKILL;
		(void)pthread_mutex_unlock(&s->mu);
		if (pid > 0)
			(void)s->rt->ops->signal(s->rt, id,
				sb_host_proc_mark(h, s, "p", p->seq, mark), pid,
				sig ? sig : SIGTERM);
	}
	sb_host_call_end(h);
	if (!p && err)
		*err = why;
	return p ? 0 : why.code;
}

int
sb_host_process_get(struct sb_host *h, const char *id, const char *process,
	struct sb_host_process *out, struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	sb_auto(sb_host_proc) struct sb_host_proc *p = NULL;
	struct sb_error why = { 0 };
	int r;

	(void)sb_host_call_begin(h, false, NULL);
	s = sb_host_map_find(h, id, &why);
	p = s ? sb_host_proc_find(s, process, &why) : NULL;
	r = p ? describe(s, p, out, &why) : why.code;
	sb_host_call_end(h);
	if (r < 0 && err)
		*err = why;
	return r;
}

static int
list(struct sb_hsess *s, struct sb_host_process **out, size_t *out_n, struct sb_error *err)
{
	sb_autofree struct sb_host_proc **v = NULL;
	size_t n, made = 0;
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	n = s->n_procs;
	v = calloc(n + 1, sizeof(*v));
	for (size_t i = 0; v && i < n; i++)
		v[i] = sb_host_proc_ref(s->procs[i]);
	(void)pthread_mutex_unlock(&s->mu);
	*out = v ? calloc(n + 1, sizeof **out) : NULL;
	if (!*out)
		r = sb_fail(err, SB_E_NOMEM, "list of processes");
	for (size_t i = 0; v && i < n; i++) {
		if (r == 0)
			r = describe(s, v[i], &(*out)[i], err);
		made += r == 0;
		sb_host_proc_unref(v[i]);
	}
	if (r < 0)
		sb_host_processes_free(*out, made);
	else
		*out_n = n;
	return r;
}

int
sb_host_process_list(struct sb_host *h, const char *id, struct sb_host_process **out, size_t *out_n,
	struct sb_error *err)
{
	sb_auto(sb_hsess) struct sb_hsess *s = NULL;
	struct sb_error why = { 0 };
	int r;

	(void)sb_host_call_begin(h, false, NULL);
	s = sb_host_map_find(h, id, &why);
	r = s ? list(s, out, out_n, &why) : why.code;
	sb_host_call_end(h);
	if (r < 0 && err)
		*err = why;
	return r;
}

void
sb_host_process_clear(struct sb_host_process *p)
{
	if (!p)
		return;
	free(p->binary);
	free(p->address);
	*p = (struct sb_host_process){ 0 };
}

void
sb_host_processes_free(struct sb_host_process *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sb_host_process_clear(&v[i]);
	free(v);
}

const char *
sb_host_process_status_name(enum sb_host_process_status st)
{
	static const char *const names[] = { "starting", "running", "exited" };

	return (unsigned)st < 3 ? names[st] : "unknown";
}
