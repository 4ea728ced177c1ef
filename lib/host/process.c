/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/process.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <host/host-map.h>
#include <host/host-op.h>
#include <host/host-priv.h>
#include <host/runtime/proctree.h>
#include <host/storage/idcheck.h>

/* Ended processes are shown this long. */
#define KEEP_ENDED_NS (600 * INT64_C(1000000000))
#define ARGS_MAX 4096
#define ARGS_BYTES_MAX (1u << 20)
/* How long what was killed may take to be gone. */
#define GONE_MS 5000
#define FRESH_NS (60 * INT64_C(1000000000)) /* a record of before is of a start that is over */
#define EXEC_MS 2000
#define CODE_TEXT_MAX 16

struct sb_proc *
sb_proc_ref(struct sb_proc *p)
{
	atomic_fetch_add(&p->refs, 1);
	return p;
}

void
sb_proc_unref(struct sb_proc *p)
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
sb_proc_running(const struct sb_proc *p)
{
	return p->status != SB_HOST_PROC_EXITED;
}

void
sb_proc_find_code(struct sb_proc *p)
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
sb_proc_mark(const struct sb_host *h, const struct sb_hsess *s, const char *what, uint64_t n,
	char out[SB_PROC_MARK_MAX])
{
	int len = snprintf(out, SB_PROC_MARK_MAX, "%s/%lld/", h->key, (long long)s->uid);

	if (what && len > 0 && len < SB_PROC_MARK_MAX)
		(void)snprintf(out + len, SB_PROC_MARK_MAX - (size_t)len, "%s%llu", what,
			(unsigned long long)n);
	return out;
}

struct sb_proc *
sb_proc_find(struct sb_hsess *s, const char *id, struct sb_error *err)
{
	struct sb_proc *found = NULL;

	if (sb_idcheck_process(id, err) < 0)
		return NULL;
	(void)pthread_mutex_lock(&s->mu);
	for (size_t i = 0; i < s->n_procs && !found; i++)
		if (strcmp(s->procs[i]->id, id) == 0)
			found = sb_proc_ref(s->procs[i]);
	(void)pthread_mutex_unlock(&s->mu);
	if (!found)
		(void)sb_fail(err, SB_E_PROCESS_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_PROCESS_NOT_FOUND), id);
	return found;
}

int
sb_proc_put(struct sb_host *h, const struct sb_hsess *s, const struct sb_proc *p,
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

static struct sb_proc *
new_proc(struct sb_host *h, const struct sb_hsess *s, const char *id, uint64_t seq,
	const char *binary, struct sb_error *err)
{
	sb_auto(sb_proc) struct sb_proc *p = calloc(1, sizeof *p);

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

/* With `mu` held; the list takes the reference. */
static int
keep(struct sb_hsess *s, struct sb_proc *p, struct sb_error *err)
{
	if (s->n_procs == s->cap_procs) {
		size_t cap = s->cap_procs ? s->cap_procs * 2 : 4;
		struct sb_proc **v = reallocarray(s->procs, cap, sizeof(*v));

		if (!v)
			return sb_fail(err, SB_E_NOMEM, "processes of %s", s->id);
		s->procs = v;
		s->cap_procs = cap;
	}
	s->procs[s->n_procs++] = p;
	return 0;
}

/* With `mu` held. */
static void
drop(struct sb_host *h, struct sb_hsess *s, size_t i)
{
	(void)sb_hostdb_proc_delete(h->db, s->uid, s->procs[i]->id, NULL);
	sb_proc_unref(s->procs[i]);
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
	struct sb_proc *p;

	if (sb_idcheck_process(row->id, NULL) < 0 || !row->binary)
		return sb_fail(err, SB_E_CORRUPT, "host database: session %s has a bad process",
			r->s->id);
	p = new_proc(r->h, r->s, row->id, row->seq, row->binary, err);
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
	if ((row->address && !(p->address = strdup(row->address))) || keep(r->s, p, err) < 0) {
		sb_proc_unref(p);
		return SB_E_NOMEM;
	}
	return 0;
}

/* Is it the same process still? The descriptor comes first, the look second. */
static bool
find_again(struct sb_proc *p)
{
	char boot[40];

	if (p->pid <= 0 || strcmp(p->boot_id, sb_proctree_boot_id(boot)) != 0)
		return false;
	p->pidfd = (int)syscall(SYS_pidfd_open, (pid_t)p->pid, 0);
	return p->pidfd >= 0 && sb_proctree_start_ticks((pid_t)p->pid) == p->start_ticks;
}

/*
 * A host that died between a start and the note of it left a record without a process: what it had
 * forked may be on its way to its program still, and has its mark from then on only. So it is
 * waited for, for a while.
 */
static void
kill_marked(struct sb_host *h, struct sb_hsess *s, const struct sb_proc *p)
{
	bool fresh = p->pid <= 0 && sb_host_now_ns() - p->started_ns < FRESH_NS;
	sb_deadline d = sb_deadline_in(EXEC_MS);
	char mark[SB_PROC_MARK_MAX];

	(void)sb_proc_mark(h, s, "p", p->seq, mark);
	while (s->rt->ops->signal(s->rt, s->id, mark, 0, SIGKILL) == 0 && fresh &&
		!sb_deadline_passed(d))
		(void)usleep(20000);
}

int
sb_proc_restore(struct sb_host *h, struct sb_hsess *s, struct sb_error *err)
{
	struct restore r = { h, s };
	int res = sb_hostdb_proc_load(h->db, s->uid, restore_row, &r, err);

	for (size_t i = 0; i < s->n_procs && res == 0; i++) {
		struct sb_proc *p = s->procs[i];

		if (!sb_proc_running(p))
			continue;
		if (find_again(p)) {
			s->ran = true;
			if (p->port && sb_proc_port_open(h, s, p, err) < 0 && err)
				sb_log(&h->o.log, SB_LOG_WARN, "host",
					"process %s of session %s: %s", p->id, s->id, err->msg);
			res = p->proxy ? sb_proc_put(h, s, p, err) : 0;
			if (res == 0)
				res = sb_procmon_watch(h, s, p, err);
			continue;
		}
		/*
		 * It ended while nobody looked, or the host died between its start and the note of
		 * it.
		 */
		kill_marked(h, s, p);
		p->status = SB_HOST_PROC_EXITED;
		sb_proc_find_code(p);
		p->pid = 0;
		p->ended_ns = sb_host_now_ns();
		res = sb_proc_put(h, s, p, err);
	}
	return res;
}

static bool
any_running(const struct sb_hsess *s)
{
	for (size_t i = 0; i < s->n_procs; i++)
		if (sb_proc_running(s->procs[i]))
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
sb_proc_kill_all(struct sb_host *h, struct sb_hsess *s, int grace_ms)
{
	const struct sb_runtime_ops *ops = s->rt->ops;
	sb_deadline d = sb_deadline_in(GONE_MS);
	char mark[SB_PROC_MARK_MAX];
	bool ran, running;

	(void)pthread_mutex_lock(&s->mu);
	ran = s->ran;
	running = any_running(s);
	s->ran = false;
	(void)pthread_mutex_unlock(&s->mu);
	if (!ran && !(ops->holds && ops->holds(s->rt, s->id)))
		return;
	(void)sb_proc_mark(h, s, NULL, 0, mark);
	if (running && grace_ms > 0) {
		(void)ops->signal(s->rt, s->id, mark, 0, SIGTERM);
		(void)ops->signal(s->rt, s->id, mark, 0, SIGCONT);
		wait_ended(s, grace_ms);
	}
	while (ops->signal(s->rt, s->id, mark, 0, SIGKILL) > 0 && !sb_deadline_passed(d))
		(void)usleep(2000);
	wait_ended(s, GONE_MS);
}

int
sb_proc_freeze(struct sb_host *h, struct sb_hsess *s, bool freeze, struct sb_error *err)
{
	char mark[SB_PROC_MARK_MAX];
	bool ran;

	(void)pthread_mutex_lock(&s->mu);
	ran = s->ran;
	(void)pthread_mutex_unlock(&s->mu);
	if (!ran && !(s->rt->ops->holds && s->rt->ops->holds(s->rt, s->id)))
		return 0;
	return s->rt->ops->freeze(s->rt, s->id, sb_proc_mark(h, s, NULL, 0, mark), freeze, err);
}

void
sb_proc_forget(struct sb_host *h, struct sb_hsess *s)
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
		if (sb_proc_running(s->procs[i]))
			running++;
		else if (s->procs[i]->ended_ns < old)
			drop(h, s, i);
	}
	if (h->o.max_processes && running >= h->o.max_processes)
		return sb_fail(err, SB_E_LIMIT,
			"session %s runs %u processes, at most %u are allowed", s->id, running,
			h->o.max_processes);
	return 0;
}

/* The record first: whatever starts after it can be found again by its mark. */
static struct sb_proc *
announce(struct sb_host *h, struct sb_hsess *s, const struct sb_host_launch *l,
	struct sb_error *err)
{
	char id[SB_HOST_PROCESS_ID_MAX + 1];
	struct sb_proc *p = NULL;
	int r;

	(void)pthread_mutex_lock(&s->mu);
	r = admit(h, s, err);
	if (r == 0) {
		s->proc_seq++;
		s->ran = true;
		(void)snprintf(id, sizeof id, "proc-%.8s-%llu", s->id,
			(unsigned long long)s->proc_seq);
		p = new_proc(h, s, id, s->proc_seq, l->binary, err);
	}
	if (p) {
		p->port = (unsigned)l->expose_port;
		p->started_ns = sb_host_now_ns();
		(void)sb_proctree_boot_id(p->boot_id);
		r = sb_proc_put(h, s, p, err);
		if (r == 0)
			r = keep(s, p, err);
		if (r < 0) {
			(void)sb_hostdb_proc_delete(h->db, s->uid, p->id, NULL);
			sb_proc_unref(p);
			p = NULL;
		} else {
			(void)sb_proc_ref(p);
		}
	}
	(void)pthread_mutex_unlock(&s->mu);
	return p;
}

static int
open_logs(struct sb_proc *p, int fd[2], struct sb_error *err)
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
start(struct sb_host *h, struct sb_hsess *s, struct sb_proc *p, const struct sb_host_launch *l,
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
	char mark[SB_PROC_MARK_MAX];
	struct sb_child child;
	int fd[2] = { -1, -1 };
	size_t n = 0;
	int r;

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
	cmd.mark = sb_proc_mark(h, s, "p", p->seq, mark);
	cmd.status = p->code;
	io.io[1] = io.io[2] = SB_SPAWN_FD;
	io.fds[1] = out;
	io.fds[2] = errfd;
	r = s->rt->ops->start(s->rt, &cmd, &io, &child, err);
	if (r < 0)
		return sb_wrap(err, r, "launch process");
	p->pidfd = child.pidfd >= 0 ? child.pidfd : (int)syscall(SYS_pidfd_open, child.pid, 0);
	(void)pthread_mutex_lock(&s->mu);
	p->pid = child.pid;
	p->start_ticks = sb_proctree_start_ticks(child.pid);
	p->status = p->port ? SB_HOST_PROC_STARTING : SB_HOST_PROC_RUNNING;
	r = sb_proc_put(h, s, p, err);
	(void)pthread_mutex_unlock(&s->mu);
	return r;
}

static int
describe(struct sb_hsess *s, const struct sb_proc *p, struct sb_host_process *out,
	struct sb_error *err)
{
	struct stat st;

	*out = (struct sb_host_process){ 0 };
	(void)pthread_mutex_lock(&s->mu);
	memcpy(out->id, p->id, sizeof out->id);
	out->status = p->status;
	out->has_exit = p->has_exit;
	out->exit_code = p->exit_code;
	out->pid = sb_proc_running(p) ? p->pid : 0;
	out->started_ns = p->started_ns;
	out->ended_ns = p->ended_ns;
	out->port = p->port;
	out->address = strdup(p->address && sb_proc_running(p) ? p->address : "");
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
give_up(struct sb_host *h, struct sb_hsess *s, struct sb_proc *p)
{
	char mark[SB_PROC_MARK_MAX];

	(void)s->rt->ops->signal(s->rt, s->id, sb_proc_mark(h, s, "p", p->seq, mark), 0, SIGKILL);
	sb_proc_port_close(s, p);
	(void)pthread_mutex_lock(&s->mu);
	for (size_t i = s->n_procs; i-- > 0;)
		if (s->procs[i] == p)
			drop(h, s, i);
	(void)pthread_mutex_unlock(&s->mu);
}

/*
 * Without the slot: others may work on the session meanwhile. Out of time is not an error, `out`
 * tells.
 */
static int
await_ready(struct sb_hsess *s, const struct sb_proc *p, int64_t ms,
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
	sb_auto(sb_proc) struct sb_proc *p = NULL;
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
		r = sb_proc_port_open(h, s, p, &why);
	if (r == 0)
		r = start(h, s, p, &l, &why);
	if (r == 0)
		r = sb_procmon_watch(h, s, p, &why);
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
	sb_auto(sb_proc) struct sb_proc *p = NULL;
	char mark[SB_PROC_MARK_MAX];
	struct sb_error why = { 0 };
	pid_t pid = 0;

	if (sig < 0 || sig > SIGRTMAX)
		return sb_fail(err, SB_E_INVAL, "signal %d is not one", sig);
	(void)sb_host_call_begin(h, false, NULL);
	s = sb_host_map_find(h, id, &why);
	p = s ? sb_proc_find(s, process, &why) : NULL;
	if (p) {
		(void)pthread_mutex_lock(&s->mu);
		if (sb_proc_running(p))
			pid = (pid_t)p->pid;
		p->killed |= pid > 0 && sig == SIGKILL;
		(void)pthread_mutex_unlock(&s->mu);
		if (pid > 0)
			(void)s->rt->ops->signal(s->rt, id, sb_proc_mark(h, s, "p", p->seq, mark),
				pid, sig ? sig : SIGTERM);
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
	sb_auto(sb_proc) struct sb_proc *p = NULL;
	struct sb_error why = { 0 };
	int r;

	(void)sb_host_call_begin(h, false, NULL);
	s = sb_host_map_find(h, id, &why);
	p = s ? sb_proc_find(s, process, &why) : NULL;
	r = p ? describe(s, p, out, &why) : why.code;
	sb_host_call_end(h);
	if (r < 0 && err)
		*err = why;
	return r;
}

static int
list(struct sb_hsess *s, struct sb_host_process **out, size_t *out_n, struct sb_error *err)
{
	sb_autofree struct sb_proc **v = NULL;
	size_t n, made = 0;
	int r = 0;

	(void)pthread_mutex_lock(&s->mu);
	n = s->n_procs;
	v = calloc(n + 1, sizeof(*v));
	for (size_t i = 0; v && i < n; i++)
		v[i] = sb_proc_ref(s->procs[i]);
	(void)pthread_mutex_unlock(&s->mu);
	*out = v ? calloc(n + 1, sizeof **out) : NULL;
	if (!*out)
		r = sb_fail(err, SB_E_NOMEM, "list of processes");
	for (size_t i = 0; v && i < n; i++) {
		if (r == 0)
			r = describe(s, v[i], &(*out)[i], err);
		made += r == 0;
		sb_proc_unref(v[i]);
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
