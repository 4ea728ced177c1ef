/* SPDX-License-Identifier: MIT */
/*
 * The runtime "bwrap". Bubblewrap makes the namespaces of a box once, around the helper as their
 * first process. Every command enters them by the helper (bin/sb-box/enter.c), which gives up all
 * capabilities and installs the filter before it executes anything.
 */
#include "config.h"

#include <host/runtime/box.h>

#include <fcntl.h>
#include <linux/filter.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <host/runtime/box-mount.h>
#include <host/runtime/box-stage.h>
#include <host/runtime/boxfilter.h>
#include <host/runtime/helper-wire.h>
#include <host/runtime/proctree.h>

#define START_MS 20000
#define FREEZE_MS 10000
#define FREEZE_ROUNDS 200
#define CLEAR_MS 5000

/* The filter as a file that bwrap reads from its standard input. */
static int
filter_fd(struct sb_error *err)
{
	size_t n;
	const struct sock_filter *f = sb_boxfilter_program(&n);
	sb_autoclose int fd = memfd_create("filter", MFD_CLOEXEC);

	if (fd < 0)
		return sb_fail_errno(err, "memfd");
	if (sb_file_write_all(fd, f, n * sizeof *f, err) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return SB_E_SYS;
	return sb_steal_fd(&fd);
}

static void
add_groups(struct sb_strlist *l, const struct sb_cgroup *g)
{
	for (int i = 0; i < SB_CGROUP_KINDS; i++) {
		if (!sb_cgroup_distinct(g, i))
			continue;
		sb_strlist_add(l, "-g");
		sb_strlist_add(l, g->dir[i]);
	}
}

/*
 * User 0 of the host is who the kernel asks for in /proc/sys and its like, capabilities or not;
 * bwrap leaves them writable when it runs as that user. What is left of /proc that tells of the
 * machine is empty.
 */
static void
add_proc_covers(struct sb_strlist *l)
{
	static const char *const readonly[] = { "/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
		"/proc/bus", "/proc/fs", NULL };
	static const char *const empty[] = { "/proc/kcore", "/proc/kmsg", "/proc/keys",
		"/proc/timer_list", "/proc/sched_debug", "/proc/latency_stats", "/proc/kpagecount",
		"/proc/kpageflags", "/proc/kpagecgroup", NULL };
	static const char *const dirs[] = { "/proc/acpi", "/proc/scsi", "/proc/asound", NULL };

	for (size_t i = 0; readonly[i]; i++)
		if (access(readonly[i], F_OK) == 0)
			sb_strlist_add_all(l,
				(const char *[]){ "--ro-bind", readonly[i], readonly[i], NULL });
	for (size_t i = 0; empty[i]; i++)
		if (access(empty[i], F_OK) == 0)
			sb_strlist_add_all(l,
				(const char *[]){ "--ro-bind", "/dev/null", empty[i], NULL });
	for (size_t i = 0; dirs[i]; i++)
		if (access(dirs[i], F_OK) == 0)
			sb_strlist_add_all(l,
				(const char *[]){ "--tmpfs", dirs[i], "--remount-ro", dirs[i],
					NULL });
}

static void
add_bind(struct sb_strlist *l, const char *how, struct sb_box_stage *stage, const char *from,
	const char *to)
{
	sb_strlist_add_all(l, (const char *[]){ how, sb_box_stage_add(stage, from), to, NULL });
}

static int
add_mounts(struct sb_box_runtime *b, const struct sb_runtime_cmd *cmd, struct sb_box_stage *stage,
	struct sb_strlist *l, struct sb_error *err)
{
	static const char *const rooms[] = { "/tmp", SB_BOX_HOME, "/run", "/dev/shm" };
	unsigned long long room = b->o->session_tmp_mb ? b->o->session_tmp_mb << 20 : 1ull << 40;
	struct sb_box_root root = { 0 };
	int r;

	add_bind(l, "--ro-bind", stage, b->root, "/");
	sb_strlist_add_all(l, (const char *[]){ "--dev", "/dev", "--proc", "/proc", NULL });
	add_proc_covers(l);
	r = sb_box_root_binds(b, &root, err);
	for (size_t i = 0; i < root.n && r == 0; i++)
		add_bind(l, "--ro-bind", stage, root.v[i].from, root.v[i].to);
	if (sb_box_root_resolv(b, cmd->network))
		add_bind(l, "--ro-bind", stage, sb_box_root_resolv(b, cmd->network),
			"/etc/resolv.conf");
	for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
		sb_strlist_add_all(l,
			(const char *[]){ "--perms", i == 0 || i == 3 ? "1777" : "0755", "--size",
				NULL });
		sb_strlist_addf(l, "%llu", room);
		sb_strlist_add_all(l, (const char *[]){ "--tmpfs", rooms[i], NULL });
	}
	sb_strlist_add_all(l,
		(const char *[]){ "--bind", sb_box_stage_add_work(stage, cmd->workspace),
			SB_BOX_WORKSPACE, "--chdir", "/", NULL });
	sb_box_root_free(&root);
	return r;
}

/* The arguments of bwrap itself. */
static int
bwrap_args(struct sb_box_runtime *b, const struct sb_runtime_cmd *cmd, struct sb_box_stage *stage,
	struct sb_strlist *l, struct sb_error *err)
{
	/*
	 * User 0 inside is the session's user outside, in a namespace that sb-box made; or, where
	 * the host cannot be other users, its own, in one that bwrap makes. It has no capabilities
	 * in either place.
	 */
	static const char *const own_user[] = { "--unshare-user", "--uid", "0", "--gid", "0",
		NULL };
	static const char *const spaces[] = { "--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--unshare-cgroup-try", "--hostname", "sandbox", "--cap-drop", "ALL",
		"--new-session", "--as-pid-1", "--seccomp", "0", "--info-fd", "1", NULL };
	static const char *const init[] = { "--", SB_BOX_HELPER, "init", NULL };
	int r;

	sb_strlist_add(l, b->program);
	if (!stage->owner)
		sb_strlist_add_all(l, own_user);
	sb_strlist_add_all(l, spaces);
	if (cmd->network != SB_HOST_NET_HOST && cmd->network != SB_HOST_NET_SANDBOX)
		sb_strlist_add(l, "--unshare-net");
	r = add_mounts(b, cmd, stage, l, err);
	sb_strlist_add_all(l, init);
	return r < 0 ? r : sb_strlist_check(l, err);
}

static int
bwrap_argv(struct sb_box_runtime *b, struct sb_box *box, const struct sb_runtime_cmd *cmd,
	struct sb_strlist *l, struct sb_error *err)
{
	sb_auto(sb_box_stage) struct sb_box_stage stage = { 0 };
	sb_auto(sb_strlist) struct sb_strlist args = { 0 };
	int r = sb_box_stage_begin(b, cmd, &stage, err);

	if (r == 0)
		r = bwrap_args(b, cmd, &stage, &args, err);
	if (r < 0)
		return r;
	sb_box_stage_argv(b, box, &stage, l);
	if (cmd->network == SB_HOST_NET_SANDBOX)
		sb_strlist_add_all(l, (const char *[]){ "-N", b->o->sandbox_netns, NULL });
	if (stage.owner)
		sb_strlist_addf(l, "-u%u", (unsigned)stage.owner);
	sb_strlist_add(l, "--");
	sb_strlist_add_all(l, (const char *const *)args.v);
	return sb_strlist_check(l, err);
}

/* The number after "child-pid" in what bwrap says of itself; 0 while it is not there. */
static pid_t
child_pid(const struct sb_buf *info)
{
	const char *p = strstr((const char *)info->data, "\"child-pid\":");
	long pid = p ? strtol(p + strlen("\"child-pid\":"), NULL, 10) : 0;

	return strchr((const char *)info->data, '}') && pid > 1 ? (pid_t)pid : 0;
}

/* What is there to be read now. */
static void
read_more(int fd, struct sb_buf *to)
{
	char chunk[512];
	ssize_t n;

	while ((n = read(fd, chunk, sizeof chunk)) > 0)
		sb_buf_add(to, chunk, (size_t)n);
}

/*
 * Reads until the process is known and says that it is there. bwrap stays the parent of its box and
 * must be reaped by who waits for it.
 */
static int
await_box(struct sb_child *c, pid_t *out, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(START_MS);
	sb_auto(sb_buf) struct sb_buf info, said;

	sb_buf_init(&info, 4096);
	sb_buf_init(&said, 4096);
	(void)fcntl(c->out, F_SETFL, O_NONBLOCK);
	(void)fcntl(c->errfd, F_SETFL, O_NONBLOCK);
	while (!sb_deadline_passed(d)) {
		/* bwrap closes `out` when it has said all. */
		struct pollfd p[2] = { { .fd = c->errfd, .events = POLLIN },
			{ .fd = c->pidfd, .events = POLLIN } };
		bool ended = sb_child_ended(c);

		read_more(c->errfd, &said);
		read_more(c->out, &info);
		*out = child_pid(&info);
		if (*out && strstr((const char *)said.data, SB_HELPER_READY))
			return 0;
		if (ended) {
			while (said.len > 0 && said.data[said.len - 1] == '\n')
				said.data[--said.len] = '\0';
			return sb_fail(err, SB_E_RUNTIME, "%.500s",
				said.len ? (const char *)said.data : "it ended at once");
		}
		(void)poll(p, 2, c->pidfd >= 0 ? sb_deadline_poll_ms(d) : 1);
	}
	return sb_fail(err, SB_E_TIMEOUT, "not ready after %d s", START_MS / 1000);
}

/*
 * A program that begins in the box's groups where that can be; else it finds their names among its
 * arguments and goes there first. With the box held.
 */
static int
spawn_in_group(struct sb_box *box, const struct sb_strlist *l, struct sb_spawn_opts *o,
	struct sb_child *out, struct sb_error *err)
{
	const char *group = box->group.v2 ? box->group.dir[SB_CGROUP_FREEZER] : NULL;
	sb_autoclose int dir = group ? open(group, O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;

	o->cgroup = dir >= 0 ? &dir : NULL;
	o->forker = box->forker_control >= 0 ? &box->forker_control : NULL;
	return sb_spawn((const char *const *)l->v, o, out, err);
}

static int
bwrap_create(struct sb_box_runtime *b, struct sb_box *box, const struct sb_runtime_cmd *cmd,
	pid_t *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_autoclose int filter = filter_fd(err);
	struct sb_child c;
	int r = filter < 0 ? filter : bwrap_argv(b, box, cmd, &l, err);

	if (r < 0)
		return r;
	o.io[0] = SB_SPAWN_FD;
	o.fds[0] = filter;
	o.io[1] = o.io[2] = SB_SPAWN_PIPE;
	o.env = env;
	o.cwd = "/";
	o.new_session = true;
	r = spawn_in_group(box, &l, &o, &c, err);
	if (r < 0)
		return r;
	r = await_box(&c, out, err);
	if (r < 0) {
		sb_child_stop(&c, 0);
		return r;
	}
	/* Reaped with the box, which is watched through its own process. */
	box->outer = c.pid;
	(void)close(c.out);
	(void)close(c.errfd);
	if (c.pidfd >= 0)
		(void)close(c.pidfd);
	return 0;
}

/* The helper, up to the command: into the box. */
static void
enter_argv(struct sb_box_runtime *b, const struct sb_box *box, const char *cwd,
	struct sb_strlist *l)
{
	sb_strlist_add_all(l, (const char *[]){ b->helper, "enter", "-C", cwd, NULL });
	sb_strlist_addf(l, "-p%d", (int)box->pid);
	sb_strlist_addf(l, "-t%lld", (long long)box->ticks);
	if (box->network == SB_HOST_NET_HOST)
		sb_strlist_add(l, "-n");
	if (box->network == SB_HOST_NET_SANDBOX)
		sb_strlist_add_all(l, (const char *[]){ "-N", b->o->sandbox_netns, NULL });
	add_groups(l, &box->group);
}

static int
bwrap_start(struct sb_runtime *rt, const struct sb_runtime_cmd *cmd, const struct sb_spawn_opts *io,
	struct sb_child *out, struct sb_error *err)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	sb_auto(sb_strlist) struct sb_strlist l = { 0 }, env = { 0 };
	struct sb_spawn_opts o = *io;
	struct sb_box *box = sb_box_hold(b, cmd, err);
	uid_t owner;
	int r;

	if (!box)
		return err ? err->code : SB_E_RUNTIME;
	if (cmd->status)
		sb_strlist_add_all(&l,
			(const char *[]){ b->helper, "shim", "-s", cmd->status, "--", NULL });
	enter_argv(b, box, SB_BOX_WORKSPACE, &l);
	if (b->o->session_pids && !box->group.dir[SB_CGROUP_PIDS])
		sb_strlist_addf(&l, "-P%llu", (unsigned long long)b->o->session_pids);
	owner = sb_runtime_owner(b->o, cmd->workspace);
	if (owner)
		sb_strlist_addf(&l, "-u%u", (unsigned)owner);
	if (cmd->res.mem_mb)
		sb_strlist_addf(&l, "-m%llu", (unsigned long long)cmd->res.mem_mb << 20);
	if (cmd->leave)
		sb_strlist_add(&l, "-k");
	sb_strlist_add(&l, "--");
	sb_strlist_add_all(&l, cmd->argv);
	r = sb_strlist_check(&l, err);
	if (r == 0)
		r = sb_box_env(cmd, &env, err);
	o.env = (const char *const *)env.v;
	o.cwd = "/";
	o.new_session = true;
	o.search_path = false;
	o.die_with_parent = !cmd->outlive;
	o.leads = true;
	if (r == 0)
		r = spawn_in_group(box, &l, &o, out, err);
	sb_box_release(box);
	if (r == SB_E_NOTFOUND || r == SB_E_DENIED)
		return sb_fail(err, r, "start %.200s in the sandbox: %s", cmd->argv[0],
			sb_code_text(r));
	return r;
}

static size_t
bwrap_signal(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader, int sig)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	struct sb_box *box;

	/* The whole session at once: the end of its first process is the end of all. */
	if (session && sig == SIGKILL && *mark && mark[strlen(mark) - 1] == '/' &&
		(box = sb_box_hold_running(b, session))) {
		sb_box_end(b, box);
		sb_box_release(box);
	}
	return sb_proctree_signal(mark, leader, sig);
}

/*
 * Without a freezer: every process of the namespace is stopped, until a look finds none that runs.
 */
static int
stop_all(const char *session, const char *mark, bool stop, struct sb_error *err)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	size_t before = 0;

	if (!stop) {
		(void)sb_proctree_signal(mark, 0, SIGCONT);
		return 0;
	}
	for (int i = 0; i < FREEZE_ROUNDS; i++) {
		size_t n = sb_proctree_signal(mark, 0, SIGSTOP);

		if (n == before)
			return 0;
		before = n;
		(void)nanosleep(&nap, NULL);
	}
	return sb_fail(err, SB_E_RUNTIME, "%s: processes of session %s keep multiplying",
		sb_code_text(SB_E_RUNTIME), session);
}

static int
bwrap_still(struct sb_runtime *rt, const char *session, const char *mark, bool on,
	struct sb_error *err)
{
	struct sb_box *box = sb_box_hold_running((struct sb_box_runtime *)rt, session);
	int r;

	if (!box)
		return 0;
	r = box->group.dir[SB_CGROUP_FREEZER] ?
		sb_cgroup_freeze(&box->group, on, sb_deadline_in(FREEZE_MS), err) :
		stop_all(session, mark, on, err);
	sb_box_release(box);
	return r;
}

static int
bwrap_freeze(struct sb_runtime *rt, const char *session, const char *mark, bool freeze,
	struct sb_error *err)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	struct sb_box *box = sb_box_hold_running(b, session);
	int r;

	if (!box)
		return 0;
	r = box->group.dir[SB_CGROUP_FREEZER] ?
		sb_cgroup_freeze(&box->group, freeze, sb_deadline_in(FREEZE_MS), err) :
		stop_all(session, mark, freeze, err);
	if (r == 0) {
		box->frozen = freeze;
		r = sb_box_note(box, err);
	}
	sb_box_release(box);
	return r;
}

static int
bwrap_detach(struct sb_runtime *rt, const char *session, bool force, struct sb_error *err)
{
	struct sb_box *box = sb_box_hold_running((struct sb_box_runtime *)rt, session);
	int r;

	if (!box)
		return 0;
	r = geteuid() == 0 ? sb_box_mount_detach(box->pid, force, err) :
			     sb_fail(err, SB_E_UNSUPPORTED, "exchanging mounts needs root");
	sb_box_release(box);
	return r;
}

static int
bwrap_attach(struct sb_runtime *rt, const char *session, const char *path, struct sb_error *err)
{
	struct sb_box *box = sb_box_hold_running((struct sb_box_runtime *)rt, session);
	int r;

	if (!box)
		return 0;
	r = sb_box_mount_attach(box->pid, path, err);
	sb_box_release(box);
	return r;
}

/* The first process of the box stays, and so do bwrap, its parent, and the forker. */
static bool
bwrap_clear(struct sb_runtime *rt, const char *session)
{
	struct sb_box *box = sb_box_hold_running((struct sb_box_runtime *)rt, session);
	bool done;

	if (!box)
		return true;
	done = sb_cgroup_empty(&box->group,
		(const pid_t[]){ box->pid, sb_proctree_parent(box->pid), box->forker.pid }, 3,
		sb_deadline_in(CLEAR_MS));
	if (done && box->frozen) {
		box->frozen = false;
		done = sb_box_note(box, NULL) == 0;
	}
	sb_box_release(box);
	return done;
}

/* Up to a program inside, for the relay of a connection. */
static int
bwrap_lead_in(struct sb_box_runtime *b, const struct sb_box *box, struct sb_strlist *l,
	struct sb_error *err)
{
	/* A relay lasts as long as its connection: it must not hold the workspace. */
	enter_argv(b, box, "/", l);
	sb_strlist_add(l, "--");
	return sb_strlist_check(l, err);
}

static const struct sb_runtime_ops bwrap_ops = {
	SB_BOX_RUNTIME_OPS,
	.name = "bwrap",
	.kind = SB_HOST_RUNTIME_BWRAP,
	.isolation = "namespaces",
	.start = bwrap_start,
	.signal = bwrap_signal,
	.freeze = bwrap_freeze,
	.still = bwrap_still,
	.detach = bwrap_detach,
	.attach = bwrap_attach,
	.clear = bwrap_clear,
};

/* Whether namespaces can be made here at all. */
static int
probe(struct sb_box_runtime *b, bool picky, struct sb_error *err)
{
	const char *const argv[] = { b->program, "--unshare-user", "--unshare-pid", "--unshare-net",
		"--ro-bind", "/", "/", "--proc", "/proc", "--", "/bin/sh", "-c", ":", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf said;
	int r;

	(void)picky;
	sb_buf_init(&said, 400);
	r = sb_child_run(argv, &o, NULL, 0, NULL, &said, NULL, sb_deadline_in(START_MS), err);
	if (r == 0)
		return 0;
	said.data[strcspn((char *)said.data, "\n")] = '\0';
	return r < 0 ? sb_wrap(err, SB_E_UNSUPPORTED, "bwrap") :
		       sb_fail(err, SB_E_UNSUPPORTED, "bwrap: %s", (char *)said.data);
}

static const struct sb_box_kind bwrap_kind = { .probe = probe,
	.watched = true,
	.stocked = true,
	.create = bwrap_create,
	.lead_in = bwrap_lead_in };

struct sb_runtime *
sb_runtime_bwrap_open(const struct sb_runtime_opts *o, struct sb_error *err)
{
	return sb_box_runtime_open(&bwrap_ops, &bwrap_kind, o,
		o->host->bwrap_path ? o->host->bwrap_path : "bwrap", err);
}
