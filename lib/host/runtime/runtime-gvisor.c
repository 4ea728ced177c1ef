/* SPDX-License-Identifier: MIT */
/*
 * The runtime "gvisor": a box is a container of gVisor. Commands enter it by `runsc exec` through
 * the helper inside, which ends what a command leaves behind and holds a lifeline that breaks with
 * the host. runsc gets pipes, never files, for its output.
 */
#include "config.h"

#include <host/runtime/box.h>
#include <host/runtime/helper-wire.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <host/runtime/oci.h>
#include <host/runtime/proctree.h>

#define PROBE_MS 15000
#define RUN_MS 60000
#define EXEC_MS 20000
#define SIGNAL_MS 2000
#define NOTE_MAX 100
#define STATE_MAX 65536
/* Tool calls, whose environment has nothing secret, take turns with so many files. */
#define EXEC_FILES 256

/* runsc with the options that every call needs. */
static void
runsc_argv(struct sb_box_runtime *b, const struct sb_box *box, struct sb_strlist *l)
{
	const enum sb_host_network net = box->network;
	/*
	 * In a namespace that was prepared, the sandbox uses that namespace's own sockets.
	 */
	const char *mode = net == SB_HOST_NET_NONE || net == SB_HOST_NET_DEFAULT ? "none" : "host";

	sb_strlist_add(l, b->program);
	sb_strlist_addf(l, "--root=%s/runsc", b->o->state_dir);
	sb_strlist_addf(l, "--platform=%s", b->platform);
	sb_strlist_addf(l, "--network=%s", mode);
	sb_strlist_add(l, "--ignore-cgroups");
}

/* A short runsc command about the box. Its exit code, or an error that tells what it said. */
static int
runsc(struct sb_box_runtime *b, const struct sb_box *box, const char *const *verb,
	struct sb_buf *out, int64_t ms, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf said;
	int r;

	sb_buf_init(&said, 1024);
	runsc_argv(b, box, &l);
	sb_strlist_add_all(&l, verb);
	r = sb_strlist_check(&l, err);
	if (r == 0)
		r = sb_child_run((const char *const *)l.v, &o, NULL, 0, out, &said, NULL,
			sb_deadline_in(ms), err);
	if (r <= 0)
		return r;
	said.data[strcspn((char *)said.data, "\n")] = '\0';
	return sb_fail(err, SB_E_RUNTIME, "runsc: %.300s", (char *)said.data);
}

static int
gvisor_create(struct sb_box_runtime *b, struct sb_box *box, const struct sb_runtime_cmd *cmd,
	pid_t *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	sb_autofree char *pid_file = sb_str_printf("%s/pid", box->dir);
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	sb_auto(sb_box_stage) struct sb_box_stage stage = { 0 };
	struct sb_child c = SB_CHILD_INIT;
	int r = sb_box_stage_begin(b, cmd, &stage, err);

	/*
	 * Where runsc uses a network of the host's, it can be no other user: then commands are the
	 * session's user inside, without any capability, and so is what they make.
	 */
	box->user = box->network == SB_HOST_NET_NONE || box->network == SB_HOST_NET_DEFAULT ?
		0 :
		stage.owner;
	if (r == 0)
		r = sb_oci_write(b, box, cmd, &stage, err);
	(void)unlink(pid_file);
	sb_box_stage_argv(b, box, &stage, &l);
	sb_strlist_add(&l, "--");
	runsc_argv(b, box, &l);
	sb_strlist_add_all(&l, (const char *[]){ "run", "--detach", NULL });
	sb_strlist_addf(&l, "--pid-file=%s", pid_file);
	sb_strlist_addf(&l, "--bundle=%s", box->dir);
	sb_strlist_add(&l, box->name);
	if (r == 0)
		r = sb_strlist_check(&l, err);
	o.new_session = true;
	if (r == 0)
		r = sb_spawn((const char *const *)l.v, &o, &c, err);
	if (r == 0)
		r = sb_child_wait(&c, NULL, sb_deadline_in(RUN_MS), err);
	if (r == 0 && sb_child_exit_code(&c) != 0)
		r = sb_fail(err, SB_E_RUNTIME, "runsc run: exit %d", sb_child_exit_code(&c));
	sb_child_stop(&c, 0);
	if (r < 0)
		return r;
	r = sb_file_read(AT_FDCWD, pid_file, 64, &text, err);
	*out = r == 0 ? (pid_t)strtol((const char *)text.data, NULL, 10) : 0;
	return r < 0 || *out > 1 ? r : sb_fail(err, SB_E_RUNTIME, "runsc run: no process");
}

/*
 * `runsc delete` takes seconds to notice that a sandbox is dead. Where a control group has shown
 * that nothing of it is left, only the files remain that runsc remembers it by.
 */
static void
gvisor_destroy(struct sb_box_runtime *b, struct sb_box *box, bool all_dead)
{
	const char *const verb[] = { "delete", "--force", box->name, NULL };
	sb_autofree char *root = sb_str_printf("%s/runsc", b->o->state_dir);
	sb_autoclosedir DIR *d = root && all_dead ? opendir(root) : NULL;
	struct dirent *e;

	if (!all_dead)
		(void)runsc(b, box, verb, NULL, EXEC_MS, NULL);
	while (d && (e = readdir(d)))
		if (sb_str_starts(e->d_name, box->name))
			(void)unlinkat(dirfd(d), e->d_name, 0);
}

/*
 * `runsc exec` of `argv` with the environment of `cmd`; the process is told by a file, as arguments
 * are seen by everybody.
 */
static int
exec_argv(struct sb_box_runtime *b, struct sb_box *box, const struct sb_runtime_cmd *cmd,
	const struct sb_strlist *inner, const char *file, struct sb_strlist *l,
	struct sb_error *err)
{
	int r = sb_oci_write_process(file, cmd, inner, b->o->session_pids, box->user, err);

	runsc_argv(b, box, l);
	sb_strlist_add(l, "exec");
	sb_strlist_addf(l, "--process=%s", file);
	sb_strlist_add(l, box->name);
	return r < 0 ? r : sb_strlist_check(l, err);
}

static int
helper_argv(const struct sb_runtime_cmd *cmd, struct sb_strlist *l, struct sb_error *err)
{
	sb_strlist_add(l, SB_BOX_HELPER);
	sb_strlist_add(l, "run");
	if (!cmd->outlive)
		sb_strlist_add(l, "-l");
	if (cmd->leave)
		sb_strlist_add(l, "-k");
	if (cmd->res.mem_mb)
		sb_strlist_addf(l, "-m%llu", (unsigned long long)cmd->res.mem_mb << 20);
	sb_strlist_add(l, "--");
	sb_strlist_add_all(l, cmd->argv);
	return sb_strlist_check(l, err);
}

/*
 * Every command by a runsc of its own: those that outlive the host, and all where the helper cannot
 * stay inside. With the box held.
 */
static int
lead_in(struct sb_box_runtime *b, struct sb_box *box, const struct sb_runtime_cmd *cmd,
	const struct sb_spawn_opts *io, struct sb_child *out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 }, inner = { 0 };
	sb_autofree char *mark = sb_str_printf("%s=%s", SB_PROCTREE_MARK, cmd->mark);
	const char *const env[] = { mark, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	struct sb_spawn_opts o = *io;
	sb_autofree char *file = NULL;
	int r;

	if (!cmd->outlive && o.io[0] != SB_SPAWN_NULL)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"this gvisor gives a command no input of its own");
	file = sb_str_printf("%s/exec-%llu%s", box->dir,
		(unsigned long long)(box->seq % (cmd->outlive ? UINT64_MAX : EXEC_FILES)),
		cmd->outlive ? "p" : "");
	r = file && mark ? 0 : sb_fail(err, SB_E_NOMEM, "start a command");
	/*
	 * Files get the output through a shim, which also waits for the end when the host does not,
	 * and removes the file.
	 */
	if (r == 0 && cmd->outlive) {
		sb_strlist_add_all(&l, (const char *[]){ b->helper, "shim", "-p", NULL });
		sb_strlist_addf(&l, "-u%s", file);
		if (box->user)
			sb_strlist_addf(&l, "-U%u", (unsigned)box->user);
		if (cmd->status)
			sb_strlist_addf(&l, "-s%s", cmd->status);
		sb_strlist_add(&l, "--");
	}
	if (r == 0)
		r = helper_argv(cmd, &inner, err);
	if (r == 0)
		r = exec_argv(b, box, cmd, &inner, file, &l, err);
	o.env = env;
	o.cwd = "/";
	o.new_session = true;
	o.search_path = false;
	o.die_with_parent = !cmd->outlive;
	if (!cmd->outlive)
		o.io[0] = SB_SPAWN_PIPE;
	if (r == 0)
		r = sb_spawn((const char *const *)l.v, &o, out, err);
	return r;
}

/* The helper that stays inside, started when it is not there. With the box held. */
static int
serve(struct sb_box_runtime *b, struct sb_box *box, struct sb_error *err)
{
	const struct sb_runtime_cmd nobody = { .session = box->session, .mark = "" };
	sb_auto(sb_strlist) struct sb_strlist l = { 0 }, inner = { 0 };
	sb_autofree char *file = sb_str_printf("%s/exec-serve", box->dir);
	int r;

	if (box->resident.control >= 0 && !sb_child_ended(&box->resident.led))
		return 0;
	sb_resident_stop(&box->resident);
	sb_strlist_add(&inner, SB_BOX_HELPER);
	sb_strlist_add(&inner, "serve");
	r = file ? sb_strlist_check(&inner, err) : sb_fail(err, SB_E_NOMEM, "sandbox");
	if (r == 0)
		r = exec_argv(b, box, &nobody, &inner, file, &l, err);
	return r < 0 ? r : sb_resident_start(&box->resident, (const char *const *)l.v, err);
}

/*
 * True when the command was started, or failed to, by the helper inside; else it is to be led in.
 */
static bool
start_inside(struct sb_box_runtime *b, struct sb_box *box, const struct sb_runtime_cmd *cmd,
	const struct sb_spawn_opts *io, struct sb_child *out, int *res, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	struct sb_error why = { 0 };
	int r = sb_box_env(cmd, &env, &why);

	/* A second try for a helper that went away since the last call. */
	for (int i = 0; i < 2 && r == 0; i++) {
		r = serve(b, box, &why);
		if (r == 0)
			r = sb_resident_call(&box->resident, b->helper, cmd, box->user, &env, io,
				out, &why);
		if (r != SB_E_CLOSED)
			break;
		sb_resident_stop(&box->resident);
		r = 0;
	}
	if (r == SB_E_UNSUPPORTED) {
		atomic_store(&b->no_resident, true);
		sb_log(&b->o->log, SB_LOG_WARN, "runtime",
			"gvisor: %s; every command is led in by itself", why.msg);
		return false;
	}
	if (r < 0 && err)
		*err = why;
	*res = r;
	return true;
}

/*
 * Whether the program of a command that is led in is there: runsc cannot tell before it is too
 * late. Where no helper stays inside, its exit code has to tell.
 */
static int
check_program(struct sb_box_runtime *b, struct sb_box *box, const struct sb_runtime_cmd *cmd,
	struct sb_error *err)
{
	const char *const argv[] = { SB_BOX_HELPER, "find", cmd->argv[0], NULL };
	const struct sb_spawn_opts io = SB_SPAWN_OPTS_INIT;
	struct sb_runtime_cmd probe = *cmd;
	struct sb_child child = SB_CHILD_INIT;
	struct sb_error why = { 0 };
	int r = 0, code;

	probe.argv = argv;
	probe.outlive = probe.leave = false;
	probe.status = NULL;
	if (atomic_load(&b->no_resident) || !start_inside(b, box, &probe, &io, &child, &r, &why) ||
		r < 0)
		return 0;
	r = sb_child_wait(&child, NULL, sb_deadline_in(EXEC_MS), &why);
	code = r < 0 ? 0 : sb_child_exit_code(&child);
	sb_child_stop(&child, 0);
	if (code == SB_HELPER_NOTFOUND)
		return sb_fail(err, SB_E_NOTFOUND, "start %s: No such file or directory",
			cmd->argv[0]);
	if (code == SB_HELPER_NOEXEC)
		return sb_fail(err, SB_E_DENIED, "start %s: Permission denied", cmd->argv[0]);
	return 0;
}

static int
gvisor_start(struct sb_runtime *rt, const struct sb_runtime_cmd *cmd,
	const struct sb_spawn_opts *io, struct sb_child *out, struct sb_error *err)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	struct sb_box *box = sb_box_hold(b, cmd, err);
	int r = 0;

	if (!box)
		return err ? err->code : SB_E_RUNTIME;
	if (cmd->outlive)
		r = check_program(b, box, cmd, err);
	if (r < 0) {
		sb_box_release(box);
		return r;
	}
	if (cmd->outlive || atomic_load(&b->no_resident) ||
		!start_inside(b, box, cmd, io, out, &r, err))
		r = lead_in(b, box, cmd, io, out, err);
	sb_box_release(box);
	return r;
}

/* Runs the helper inside; -1 or what it printed as a number. With the box held. */
static long
ask_inside(struct sb_box_runtime *b, struct sb_box *box, const char *const *argv)
{
	const char *const verb[] = { "exec", box->name, SB_BOX_HELPER, argv[0], argv[1], argv[2],
		NULL };
	sb_auto(sb_buf) struct sb_buf out;

	sb_buf_init(&out, 64);
	if (runsc(b, box, verb, &out, EXEC_MS, NULL) != 0)
		return -1;
	return strtol((const char *)out.data, NULL, 10);
}

/* What runsc knows of the box: 1 it is paused, 0 it runs, negative: nothing. */
static int
ask_paused(struct sb_box_runtime *b, struct sb_box *box)
{
	const char *const verb[] = { "state", box->name, NULL };
	sb_auto(sb_buf) struct sb_buf out;

	sb_buf_init(&out, STATE_MAX);
	if (runsc(b, box, verb, &out, EXEC_MS, NULL) != 0)
		return -1;
	return strstr((const char *)out.data, "\"status\": \"paused\"")   ? 1 :
		strstr((const char *)out.data, "\"status\": \"running\"") ? 0 :
									    -1;
}

/*
 * runsc refuses to resume what runs. A host that was killed between its order and its note finds
 * the box other than it was noted.
 */
static int
set_paused(struct sb_box_runtime *b, struct sb_box *box, bool pause, struct sb_error *err)
{
	const char *const verb[] = { pause ? "pause" : "resume", box->name, NULL };
	int is = box->unsure ? ask_paused(b, box) : box->frozen;
	int r = is == (int)pause ? 0 : runsc(b, box, verb, NULL, EXEC_MS, err);

	if (r < 0 && ask_paused(b, box) == (int)pause)
		r = 0;
	if (r == 0) {
		box->frozen = pause;
		box->unsure = false;
	}
	return r;
}

static size_t
gvisor_signal(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader, int sig)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	struct sb_box *box = session ? sb_box_hold_running(b, session) : NULL;
	sb_deadline d = sb_deadline_in(SIGNAL_MS);
	long n = 0;

	if (box && sig == SIGKILL && *mark && mark[strlen(mark) - 1] == '/') {
		sb_box_end(b, box);
	} else if (box) {
		char number[16];
		bool was = box->frozen;

		(void)snprintf(number, sizeof number, "%d", sig);
		/* Nothing moves inside a paused kernel, not even a signal. */
		(void)set_paused(b, box, false, NULL);
		/* While runsc is on its way in, there is nobody to get the signal yet. */
		do
			n = ask_inside(b, box, (const char *[]){ "signal", mark, number });
		while (n == 0 && !sb_deadline_passed(d) && sb_proctree_signal(mark, 0, 0) > 0);
		(void)set_paused(b, box, was, NULL);
	}
	if (box)
		sb_box_release(box);
	/*
	 * On the host there are only runsc and shim; they end by themselves when what they wait for
	 * has.
	 */
	if (n <= 0 && sig == SIGKILL)
		n = (long)sb_proctree_signal(mark, leader, SIGKILL);
	return n > 0 ? (size_t)n : 0;
}

static int
gvisor_freeze(struct sb_runtime *rt, const char *session, const char *mark, bool freeze,
	struct sb_error *err)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	struct sb_box *box = sb_box_hold_running(b, session);
	int r;

	(void)mark;
	if (!box)
		return 0;
	r = set_paused(b, box, freeze, err);
	if (r == 0)
		r = sb_box_note(box, err);
	sb_box_release(box);
	return r;
}

/* The host's processes of the box stand still; what they wrote is in the host's files already. */
static int
gvisor_still(struct sb_runtime *rt, const char *session, const char *mark, bool on,
	struct sb_error *err)
{
	struct sb_box *box = sb_box_hold_running((struct sb_box_runtime *)rt, session);
	bool group = box && box->group.dir[SB_CGROUP_FREEZER];
	int r = group ? sb_cgroup_freeze(&box->group, on, sb_deadline_in(EXEC_MS), err) : 0;

	if (box)
		sb_box_release(box);
	return box && !group ? gvisor_freeze(rt, session, mark, on, err) : r;
}

/* gVisor's own processes hold the directory that the box was made with. */
static int
gvisor_detach(struct sb_runtime *rt, const char *session, bool force, struct sb_error *err)
{
	(void)force;
	if (!sb_box_runtime_holds(rt, session))
		return 0;
	return sb_fail(err, SB_E_UNSUPPORTED, "gvisor holds the workspace");
}

/* Up to a program inside, for the relay of a connection. */
static int
gvisor_lead_in(struct sb_box_runtime *b, const struct sb_box *box, struct sb_strlist *l,
	struct sb_error *err)
{
	runsc_argv(b, box, l);
	sb_strlist_add(l, "exec");
	sb_strlist_add(l, box->name);
	return sb_strlist_check(l, err);
}

static const struct sb_runtime_ops gvisor_ops = {
	SB_BOX_RUNTIME_OPS,
	.name = "gvisor",
	.kind = SB_HOST_RUNTIME_GVISOR,
	.isolation = "kernel",
	.start = gvisor_start,
	.signal = gvisor_signal,
	.freeze = gvisor_freeze,
	.still = gvisor_still,
	.detach = gvisor_detach,
};

static const char *const platforms[] = { "systrap", "ptrace", NULL };

/*
 * Where it is noted which platform worked with which runsc, so that a host that starts again under
 * load need not try.
 */
static char *
note_path(const struct sb_box_runtime *b)
{
	return sb_str_printf("%s/gvisor-platform", b->o->state_dir);
}

static void
note_text(const struct sb_box_runtime *b, const char *platform, char out[NOTE_MAX])
{
	struct stat st = { 0 };

	(void)stat(b->program, &st);
	(void)snprintf(out, NOTE_MAX, "%s %lld %lld\n", platform, (long long)st.st_size,
		(long long)st.st_mtime);
}

/* The platform that worked before, or NULL. */
static const char *
noted(const struct sb_box_runtime *b)
{
	sb_autofree char *path = note_path(b);
	sb_auto(sb_buf) struct sb_buf was;
	char text[NOTE_MAX];

	if (!path || sb_file_read(AT_FDCWD, path, NOTE_MAX, &was, NULL) < 0)
		return NULL;
	for (size_t i = 0; platforms[i]; i++) {
		note_text(b, platforms[i], text);
		if (was.len == strlen(text) && memcmp(was.data, text, was.len) == 0)
			return platforms[i];
	}
	return NULL;
}

static void
note(const struct sb_box_runtime *b)
{
	sb_autofree char *path = note_path(b);
	char text[NOTE_MAX];

	note_text(b, b->platform, text);
	if (path)
		(void)sb_file_replace(AT_FDCWD, path, text, strlen(text), 0600, NULL);
}

/*
 * A platform may hang instead of failing: each gets its time and no more. Older versions refuse a
 * flag that ls and stat of today use, which is no sandbox that anybody wants without having asked
 * for it.
 */
static int
probe(struct sb_box_runtime *b, bool picky, struct sb_error *err)
{
	sb_autofree char *root = sb_str_printf("--root=%s/runsc", b->o->state_dir);
	struct sb_error last = { 0 };

	if (!b->o->runsc_platform && !picky && (b->platform = noted(b)))
		return 0;
	for (size_t i = 0; root && (b->o->runsc_platform ? i < 1 : platforms[i] != NULL); i++) {
		const char *name = b->o->runsc_platform ? b->o->runsc_platform : platforms[i];
		sb_autofree char *platform = sb_str_printf("--platform=%s", name);
		const char *const argv[] = { b->program, root, platform, "--network=none",
			"--ignore-cgroups", "do", "/bin/sh", "-c", picky ? "ls -d /" : ":", NULL };
		struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
		sb_auto(sb_buf) struct sb_buf said;
		int r;

		sb_buf_init(&said, 400);
		r = platform ? sb_child_run(argv, &o, NULL, 0, NULL, &said, NULL,
				       sb_deadline_in(PROBE_MS), &last) :
			       SB_E_NOMEM;
		if (r == 0) {
			b->platform = name;
			note(b);
			return 0;
		}
		said.data[strcspn((char *)said.data, "\n")] = '\0';
		if (r > 0)
			(void)sb_fail(&last, SB_E_UNSUPPORTED, "%.200s", (char *)said.data);
	}
	return sb_fail(err, SB_E_UNSUPPORTED, "gvisor: no platform works here: %.300s", last.msg);
}

/*
 * The kernel inside counts its processes itself; on the host each is a few threads, and the kernel
 * needs some, too.
 */
static const struct sb_box_kind gvisor_kind = { .probe = probe,
	.lead_in = gvisor_lead_in,
	.create = gvisor_create,
	.destroy = gvisor_destroy,
	.threads = 8,
	.own_threads = 512,
	.joins_netns = true };

struct sb_runtime *
sb_runtime_gvisor_open(const struct sb_runtime_opts *o, struct sb_error *err)
{
	return sb_box_runtime_open(&gvisor_ops, &gvisor_kind, o,
		o->host->runsc_path ? o->host->runsc_path : "runsc", err);
}
