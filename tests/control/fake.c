/* SPDX-License-Identifier: MIT */
/*
 * A control whose sandboxes are directories of this machine, for the suite itself. FAKE_FAULT names
 * the check that it is to fail.
 */
#include "config.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/quote.h>
#include <base/spawn.h>
#include <base/str.h>
#include <base/strlist.h>
#include <control/control-priv.h>

#define SANDBOXES 64
#define PROCESSES 64

struct process {
	pid_t pid;
	bool starting, exited;
	int code;
};

struct box {
	bool used, paused;
	char id[SB_CONTROL_NEW_ID_MAX], dir[300];
	char digest[SB_CONTROL_DIGEST_LEN + 1];
	struct sb_strlist labels;
	uint64_t fence;
	struct process procs[PROCESSES];
	size_t n_procs;
};

/* What outlasts a control. */
struct world {
	pthread_mutex_t mu;
	struct box boxes[SANDBOXES];
};

struct fake {
	struct sb_control base;
	struct world *w;
};

static bool
is_broken(const char *check)
{
	const char *f = getenv("FAKE_FAULT");

	return f && strcmp(f, check) == 0;
}

static int
shell(const char *script, const char *a, const char *b)
{
	const char *argv[] = { "/bin/sh", "-c", script, "sh", a, b, NULL };

	return sb_child_run(argv, NULL, NULL, 0, NULL, NULL, NULL, sb_deadline_in(30000), NULL);
}

static struct box *
find(struct fake *f, const char *id, const struct sb_control_call *call, int *r,
	struct sb_error *err)
{
	*r = 0;
	for (size_t i = 0; i < SANDBOXES; i++) {
		struct box *b = &f->w->boxes[i];

		if (!b->used || strcmp(b->id, id) != 0)
			continue;
		if (call->fence && call->fence < b->fence && !is_broken("fence")) {
			*r = sb_fail(err, SB_E_FENCED, "fenced");
			return NULL;
		}
		b->fence = call->fence > b->fence ? call->fence : b->fence;
		return b;
	}
	*r = sb_fail(err, is_broken("unknown") ? SB_E_STATE : SB_E_SANDBOX_NOT_FOUND, "no %s", id);
	return NULL;
}

static int
tell(const struct box *b, struct sb_control_sandbox *out, struct sb_error *err)
{
	memset(out, 0, sizeof *out);
	(void)snprintf(out->id, sizeof out->id, "%s", b->id);
	out->state = b->paused || is_broken("create") ? SB_CONTROL_PAUSED : SB_CONTROL_RUNNING;
	(void)snprintf(out->address, sizeof out->address, "127.0.0.1:9");
	sb_strlist_join(&out->labels, &b->labels);
	return sb_strlist_check(&out->labels, err);
}

static int
fake_capabilities(struct sb_control *c, const struct sb_control_call *call,
	struct sb_control_caps *out, struct sb_error *err)
{
	(void)c;
	(void)call;
	(void)err;
	out->launch = out->rollback = out->fork = out->pause = out->pause_keeps = out->fence = true;
	out->snapshots = !is_broken("capabilities");
	return 0;
}

static int
make(struct fake *f, const char *id, const char *digest, const char *const *labels,
	struct box **out, struct sb_error *err)
{
	struct box *b = f->w->boxes;

	while (b < f->w->boxes + SANDBOXES && b->used)
		b++;
	if (b == f->w->boxes + SANDBOXES)
		return sb_fail(err, SB_E_MAX_SESSIONS, "full");
	memset(b, 0, sizeof *b);
	b->used = true;
	(void)snprintf(b->id, sizeof b->id, "%s", id);
	(void)snprintf(b->digest, sizeof b->digest, "%s", digest);
	(void)snprintf(b->dir, sizeof b->dir, "%s/%s", getenv("TMPDIR"),
		is_broken("apart") ? "one" : id);
	(void)mkdir(b->dir, 0755);
	sb_strlist_add_all(&b->labels, labels);
	*out = b;
	return sb_strlist_check(&b->labels, err);
}

static int
create_locked(struct fake *f, const struct sb_control_create_opts *o, const char *id,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	const struct sb_control_call any = SB_CONTROL_CALL_INIT;
	char digest[SB_CONTROL_DIGEST_LEN + 1];
	struct box *b;
	int r = sb_control_request_digest(o, digest, err);

	if (r < 0)
		return r;
	b = find(f, id, &any, &r, NULL);
	if (is_broken("key-race")) {
		(void)pthread_mutex_unlock(&f->w->mu);
		(void)poll(NULL, 0, 300);
		(void)pthread_mutex_lock(&f->w->mu);
	}
	if (b && strcmp(b->digest, digest) != 0)
		return sb_fail(err, SB_E_CONFLICT, "another request");
	r = b ? 0 : make(f, id, digest, o->labels, &b, err);
	return r < 0 ? r : tell(b, out, err);
}

static int
fake_create(struct sb_control *c, const struct sb_control_create_opts *o,
	const struct sb_control_call *call, struct sb_control_sandbox *out, struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	char id[SB_CONTROL_NEW_ID_MAX];
	int r = sb_control_request_id(is_broken("key") ? NULL : o->key, id, err);

	(void)call;
	if (o->base && !is_broken("refuse-request"))
		return sb_fail(err, SB_E_UNSUPPORTED, "no bases");
	if ((o->cpus > 0 || o->mem_mb || o->disk_mb || o->lifetime_ms || o->network) &&
		!is_broken("refuse-limits"))
		return sb_fail(err, SB_E_UNSUPPORTED, "no limits");
	(void)pthread_mutex_lock(&f->w->mu);
	if (r == 0)
		r = create_locked(f, o, id, out, err);
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static int
fake_destroy(struct sb_control *c, const char *id, bool force, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct box *b;
	int r;

	(void)force;
	(void)pthread_mutex_lock(&f->w->mu);
	b = find(f, id, call, &r, err);
	for (size_t i = 0; b && i < b->n_procs; i++)
		if (!b->procs[i].exited)
			(void)kill(-b->procs[i].pid, SIGKILL);
	if (b && !is_broken("destroy")) {
		(void)shell("rm -rf \"$1\" \"$1\".snap-*", b->dir, NULL);
		sb_strlist_free(&b->labels);
		b->used = false;
	}
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static int
fake_get(struct sb_control *c, const char *id, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct box *b;
	int r;

	(void)pthread_mutex_lock(&f->w->mu);
	b = find(f, id, call, &r, err);
	if (b)
		r = tell(b, out, err);
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static int
fake_list(struct sb_control *c, const struct sb_control_filter *filter,
	const struct sb_control_call *call, struct sb_control_sandbox **out, size_t *out_n,
	struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct sb_control_sandbox *v = calloc(SANDBOXES, sizeof *v);
	size_t n = 0;
	int r = v ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	(void)call;
	(void)pthread_mutex_lock(&f->w->mu);
	for (size_t i = 0; r == 0 && i < SANDBOXES; i++) {
		struct box *b = &f->w->boxes[i];
		size_t all = sb_strlist_count(filter->labels), has = 0;

		for (size_t k = 0; k < all; k++)
			has += sb_strlist_has(sb_strlist_borrow(&b->labels), filter->labels[k]);
		if (b->used && (has == all || (has && is_broken("labels"))))
			r = tell(b, &v[n++], err);
	}
	(void)pthread_mutex_unlock(&f->w->mu);
	*out = v;
	*out_n = n;
	return r;
}

static bool
answers(int port)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool yes = connect(fd, (struct sockaddr *)&a, sizeof a) == 0;

	(void)close(fd);
	return yes;
}

static void
look(struct process *p)
{
	int status;

	if (p->exited || waitpid(p->pid, &status, WNOHANG) != p->pid)
		return;
	p->exited = true;
	p->code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	if (is_broken("launch"))
		p->code = 0;
}

static int
begin(struct box *b, const struct sb_control_launch_opts *o, struct process *p,
	struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist argv = { 0 }, env = { 0 };
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	struct sb_child child = SB_CHILD_INIT;
	int r;

	sb_strlist_add(&argv, o->binary);
	sb_strlist_add_all(&argv, o->args);
	if (is_broken("launch-arguments") && argv.n > 4) {
		free(argv.v[4]);
		argv.v[4] = strdup("changed");
	}
	if (is_broken("launch-missing") && strstr(o->binary, "sbcheck")) {
		free(argv.v[0]);
		argv.v[0] = strdup("true");
	}
	sb_strlist_add_all(&env, (const char *const *)environ);
	sb_strlist_add_all(&env, o->env);
	so.env = (const char *const *)env.v;
	so.cwd = b->dir;
	so.search_path = true;
	r = sb_spawn((const char *const *)argv.v, &so, &child, err);
	if (child.pidfd >= 0)
		(void)close(child.pidfd);
	*p = (struct process){ .pid = child.pid };
	return r;
}

static int
wait_ready(const struct sb_control_launch_opts *o, const struct sb_control_call *call,
	struct process *p, struct sb_error *err)
{
	sb_deadline end = sb_deadline_in(o->ready_ms);
	int r = 0;

	while (r == 0 && !answers(o->expose_port)) {
		look(p);
		if (p->exited)
			r = sb_fail(err, SB_E_CHILD, "ended");
		else if (sb_deadline_passed(end))
			r = sb_fail(err, SB_E_TIMEOUT, "not ready");
		else if (!is_broken("cancel"))
			r = sb_check_alive(call->cancel, call->deadline, "launch", err);
		(void)poll(NULL, 0, 20);
	}
	if (r < 0 && !is_broken("port-never"))
		(void)kill(-p->pid, SIGKILL);
	return r;
}

static int
fake_launch(struct sb_control *c, const struct sb_control_launch_opts *o,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct process p = { 0 };
	struct box *b;
	int r;

	(void)pthread_mutex_lock(&f->w->mu);
	b = find(f, o->sandbox, call, &r, err);
	if (b && b->paused && !is_broken("pause"))
		r = sb_fail(err, SB_E_SESSION_PAUSED, "paused");
	if (r == 0)
		r = begin(b, o, &p, err);
	if (r == 0 && o->ready_ms)
		r = wait_ready(o, call, &p, err);
	if (r == 0) {
		memset(out, 0, sizeof *out);
		(void)snprintf(out->id, sizeof out->id, "%s-%zu", b->id, b->n_procs);
		out->status = SB_CONTROL_UP;
		if (o->expose_port)
			(void)snprintf(out->address, sizeof out->address, "127.0.0.1:%d",
				o->expose_port + is_broken("port"));
		b->procs[b->n_procs++ % PROCESSES] = p;
	}
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static struct process *
find_process(struct fake *f, const char *id, const char *process,
	const struct sb_control_call *call, int *r, struct sb_error *err)
{
	struct box *b = find(f, id, call, r, err);
	int64_t n;

	if (b && is_broken("process-unknown"))
		for (size_t i = 0; i < SANDBOXES; i++)
			if (sb_str_starts(process, f->w->boxes[i].id) && f->w->boxes[i].used)
				b = &f->w->boxes[i];
	if (!b)
		return NULL;
	if (sb_str_starts(process, b->id) &&
		sb_str_to_i64(process + strlen(b->id) + 1, 0, (int64_t)b->n_procs - 1, &n))
		return &b->procs[n % PROCESSES];
	*r = sb_fail(err, SB_E_PROCESS_NOT_FOUND, "no %s", process);
	return NULL;
}

static int
fake_kill(struct sb_control *c, const char *id, const char *process, int sig,
	const struct sb_control_call *call, struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct process *p;
	int r;

	(void)pthread_mutex_lock(&f->w->mu);
	p = find_process(f, id, process, call, &r, err);
	if (p)
		look(p);
	if (p && !p->exited)
		(void)kill(-p->pid, is_broken("kill") ? SIGKILL : sig);
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static int
fake_status(struct sb_control *c, const char *id, const char *process,
	const struct sb_control_call *call, struct sb_control_process *out, struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct process *p;
	int r;

	(void)pthread_mutex_lock(&f->w->mu);
	p = find_process(f, id, process, call, &r, err);
	if (p) {
		look(p);
		memset(out, 0, sizeof *out);
		(void)snprintf(out->id, sizeof out->id, "%s", process);
		out->status = p->exited ? SB_CONTROL_EXITED : SB_CONTROL_UP;
		out->has_exit = p->exited;
		out->exit_code = p->code;
	}
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static int
set_paused(struct sb_control *c, const char *id, bool on, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct box *b;
	int r;

	(void)pthread_mutex_lock(&f->w->mu);
	b = find(f, id, call, &r, err);
	for (size_t i = 0; b && i < b->n_procs; i++) {
		look(&b->procs[i]);
		if (!b->procs[i].exited)
			(void)kill(-b->procs[i].pid,
				is_broken("pause-keeps") ? SIGKILL :
					on               ? SIGSTOP :
							   SIGCONT);
		while (is_broken("pause-keeps") && !b->procs[i].exited)
			look(&b->procs[i]);
	}
	if (b)
		b->paused = on;
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static int
fake_pause(struct sb_control *c, const char *id, bool deep, const struct sb_control_call *call,
	struct sb_error *err)
{
	if (deep && !is_broken("refuse-calls"))
		return sb_fail(err, SB_E_UNSUPPORTED, "no deep pause");
	return set_paused(c, id, true, call, err);
}

static int
fake_resume(struct sb_control *c, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	return set_paused(c, id, false, call, err);
}

static int
fake_snapshot(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct box *b;
	int r;

	(void)pthread_mutex_lock(&f->w->mu);
	b = find(f, id, call, &r, err);
	if (b && shell("test ! -e \"$1.snap-$2\" && cp -a \"$1\" \"$1.snap-$2\"", b->dir, name))
		r = sb_fail(err, SB_E_SNAPSHOT_EXISTS, "it is there");
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static int
fake_rollback(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_call *call, struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	struct box *b;
	int r;

	(void)pthread_mutex_lock(&f->w->mu);
	b = find(f, id, call, &r, err);
	if (b && is_broken("rollback"))
		(void)shell("rm -rf \"$1\"/*", b->dir, NULL);
	if (b &&
		shell("test -e \"$1.snap-$2\" && rm -rf \"$1\" && cp -a \"$1.snap-$2\" \"$1\"",
			b->dir, name))
		r = sb_fail(err, SB_E_SNAPSHOT_NOT_FOUND, "no %s", name);
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static int
fake_fork(struct sb_control *c, const char *id, const char *name,
	const struct sb_control_create_opts *o, const struct sb_control_call *call,
	struct sb_control_sandbox *out, struct sb_error *err)
{
	struct fake *f = (struct fake *)c;
	char new_id[SB_CONTROL_NEW_ID_MAX];
	struct box *b, *n = NULL;
	int r;

	(void)name;
	(void)pthread_mutex_lock(&f->w->mu);
	b = find(f, id, call, &r, err);
	if (b)
		r = sb_control_request_id(o->key, new_id, err);
	if (r == 0)
		n = find(f, new_id, call, &r, NULL);
	if (b && !n) {
		r = make(f, new_id, "fork", sb_strlist_borrow(&b->labels), &n, err);
		if (is_broken("fork"))
			(void)shell("rm -rf \"$2\" && ln -s \"$1\" \"$2\"", b->dir, n->dir);
		else
			(void)shell("rm -rf \"$2\" && cp -a \"$1\" \"$2\"", b->dir, n->dir);
	}
	if (r == 0)
		r = tell(n, out, err);
	(void)pthread_mutex_unlock(&f->w->mu);
	return r;
}

static void
fake_close(struct sb_control *c)
{
	free(c);
}

static const struct sb_control_ops ops = {
	.version = SB_CONTROL_VERSION,
	.kind = "fake",
	.capabilities = fake_capabilities,
	.create = fake_create,
	.destroy = fake_destroy,
	.get = fake_get,
	.list = fake_list,
	.launch = fake_launch,
	.kill = fake_kill,
	.status = fake_status,
	.pause = fake_pause,
	.resume = fake_resume,
	.snapshot = fake_snapshot,
	.rollback = fake_rollback,
	.fork = fake_fork,
	.close = fake_close,
};

struct sb_control *
sb_control_plugin(const struct sb_control_open_opts *o, struct sb_error *err)
{
	static struct world worlds[2] = { { .mu = PTHREAD_MUTEX_INITIALIZER },
		{ .mu = PTHREAD_MUTEX_INITIALIZER } };
	static int opened;
	struct fake *f = calloc(1, sizeof *f);

	if (!f || sb_control_begin(&f->base, &ops, o, err) < 0)
		return NULL;
	f->w = &worlds[opened++ && is_broken("again")];
	return &f->base;
}
