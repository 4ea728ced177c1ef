/* SPDX-License-Identifier: MIT */
/*
 * Provisioner "local": sbhostd processes of this machine. Each has a folder with its record, its
 * state and the file "pid", which the process writes itself before it becomes sbhostd: whoever
 * finds the folder finds the process, whenever its starter died.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/procid.h>
#include <base/spawn.h>
#include <base/str.h>
#include <base/strlist.h>
#include <control/hostsess.h>
#include <control/instrec.h>
#include <host/storage/overlay-mount.h>
#include <provider/beside.h>

#define SOCKET_MAX 100
#define PID_MAX_TEXT 200
#define STOP_MS 40000
#define KILLED_MS 10000
#define CLEAN_MS 60000
#define PID_TRIES 4000

struct local {
	struct sb_provisioner base;
	char *dir, *program, *runtime, *storage;
};

/*
 * In a process of its own, which is nobody's child: pid, time of its start and boot go to the file
 * $0, then it becomes "$@".
 */
#define START_SCRIPT \
	"read -r stat </proc/$$/stat && read -r boot </proc/sys/kernel/random/boot_id && " \
	"time=$(set -- ${stat##*) } && echo \"${20}\") && " \
	"echo \"$$ $time $boot\" >\"$0.new\" && mv \"$0.new\" \"$0\" && exec \"$@\""
/* With that script, the pid file, the log and the words of sbhostd. */
#define LEAVE_SCRIPT \
	"start=$1 pid=$2 log=$3; shift 3; " \
	"setsid sh -c \"$start\" \"$pid\" \"$@\" </dev/null >>\"$log\" 2>&1 &"

static char *
path_of(const struct local *l, const char *id, const char *name)
{
	return sb_str_printf("%s/%s/%s", l->dir, id, name);
}

/* The process of an instance, 0: it has none (any more); -1: it never had one. */
static pid_t
process_of(const struct local *l, const char *id)
{
	sb_autofree char *path = path_of(l, id, "pid");
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	char boot[SB_PROCID_BOOT_SIZE], in[SB_PROCID_BOOT_SIZE];
	long pid;
	long long start;

	if (!path || sb_file_read(AT_FDCWD, path, PID_MAX_TEXT, &text, NULL) < 0)
		return -1;
	if (sscanf((const char *)text.data, "%ld %lld %39s", &pid, &start, in) != 3 || pid <= 1 ||
		strcmp(sb_procid_boot(boot), in) != 0)
		return 0;
	return sb_procid_start((pid_t)pid) == start ? (pid_t)pid : 0;
}

static int
local_describe(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_instance *out, struct sb_error *err)
{
	struct local *l = (struct local *)p;
	sb_auto(sb_instrec) struct sb_instrec r = { 0 };
	pid_t pid;
	int code = sb_instrec_read(l->dir, id, &r, err);

	(void)call;
	if (code < 0)
		return code;
	pid = process_of(l, id);
	if (r.i.state == SB_INSTANCE_RUNNING && pid < 0) {
		r.i.state = SB_INSTANCE_PENDING;
	} else if (r.i.state == SB_INSTANCE_RUNNING && pid == 0) {
		r.i.state = SB_INSTANCE_STOPPED;
		r.i.why = sb_str_printf("its process has ended, see %s/%s/log", l->dir, id);
	} else if (r.i.state == SB_INSTANCE_STOPPED && pid > 0) {
		r.i.state = SB_INSTANCE_STOPPING;
	}
	(void)snprintf(r.i.url, sizeof r.i.url, "unix:%s/%s/s", l->dir, id);
	*out = r.i;
	r.i = (struct sb_instance){ 0 };
	return 0;
}

static int
host_words(const struct local *l, const struct sb_instrec *r, struct sb_strlist *out,
	struct sb_error *err)
{
	const char *id = r->i.id;

	sb_strlist_add(out, l->program);
	sb_strlist_add(out, "--listen");
	sb_strlist_addf(out, "unix:%s/%s/s", l->dir, id);
	sb_strlist_add(out, "--state-dir");
	sb_strlist_addf(out, "%s/%s/state", l->dir, id);
	sb_strlist_add(out, "--storage-backend");
	sb_strlist_add(out, l->storage ? l->storage : "auto");
	sb_strlist_add(out, "--sessions-root-dir");
	sb_strlist_addf(out, "%s/%s/sessions", l->dir, id);
	sb_strlist_add(out, "--container-runtime");
	sb_strlist_add(out, l->runtime ? l->runtime : "auto");
	if (r->cpus > 0) {
		sb_strlist_add(out, "--session-cpus");
		sb_strlist_addf(out, "%ld", (long)(r->cpus * 100 + 0.5));
	}
	if (r->mem_mb) {
		sb_strlist_add(out, "--session-memory");
		sb_strlist_addf(out, "%lluM", (unsigned long long)r->mem_mb);
	}
	if (r->lifetime_ms) {
		sb_strlist_add(out, "--max-session-duration");
		sb_strlist_addf(out, "%lldms", (long long)r->lifetime_ms);
	}
	return sb_strlist_check(out, err);
}

/* Starts the process; it writes its own pid file. */
static int
run_host(const struct local *l, const struct sb_instrec *r, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist words = { 0 }, argv = { 0 };
	struct sb_spawn_opts so = SB_SPAWN_OPTS_INIT;
	sb_autofree char *pid = path_of(l, r->i.id, "pid");
	int code = host_words(l, r, &words, err);

	if (!pid)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	/* sh -c LEAVE name START pid-file log words... */
	sb_strlist_add(&argv, "/bin/sh");
	sb_strlist_add(&argv, "-c");
	sb_strlist_add(&argv, LEAVE_SCRIPT);
	sb_strlist_add(&argv, "start");
	sb_strlist_add(&argv, START_SCRIPT);
	sb_strlist_add(&argv, pid);
	sb_strlist_addf(&argv, "%s/%s/log", l->dir, r->i.id);
	sb_strlist_join(&argv, &words);
	if (code == 0)
		code = sb_strlist_check(&argv, err);
	if (code < 0)
		return code;
	so.cwd = "/";
	/* Nobody takes the process that was there before for this one. */
	if (unlink(pid) < 0 && errno != ENOENT)
		return sb_fail_errno(err, "%s", pid);
	code = sb_child_run((const char *const *)argv.v, &so, NULL, 0, NULL, NULL, NULL,
		sb_deadline_in(KILLED_MS), err);
	if (code > 0)
		return sb_fail(err, SB_E_CHILD, "start %s: exit %d", l->program, code);
	/* Under the lock, so that there is never a second one. */
	for (int try = 0; code == 0 && process_of(l, r->i.id) < 0; try++) {
		if (try == PID_TRIES)
			return sb_fail(err, SB_E_CHILD, "instance %s does not start, see %s/%s/log",
				r->i.id, l->dir, r->i.id);
		(void)poll(NULL, 0, 5);
	}
	return code;
}

static int
launch_locked(struct local *l, const struct sb_instance_launch *o, const char *id,
	struct sb_error *err)
{
	sb_auto(sb_instrec) struct sb_instrec r = { 0 };
	struct timespec now;
	int code = sb_instrec_read(l->dir, id, &r, err);

	/* A launch that died between record and process goes on. */
	if (code == 0)
		return r.i.state == SB_INSTANCE_RUNNING && process_of(l, id) < 0 ?
			run_host(l, &r, err) :
			0;
	if (code != SB_E_NOTFOUND)
		return code;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)snprintf(r.i.id, sizeof r.i.id, "%s", id);
	r.i.state = SB_INSTANCE_RUNNING;
	r.i.launched_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
	r.cpus = o->cpus;
	r.mem_mb = o->mem_mb;
	r.lifetime_ms = o->lifetime_ms;
	sb_strlist_add_all(&r.i.tags, o->tags);
	code = sb_strlist_check(&r.i.tags, err);
	if (code == 0)
		code = sb_instrec_write(l->dir, &r, err);
	return code < 0 ? code : run_host(l, &r, err);
}

static int
local_launch(struct sb_provisioner *p, const struct sb_instance_launch *o,
	const struct sb_control_call *call, struct sb_instance *out, struct sb_error *err)
{
	struct local *l = (struct local *)p;
	char id[SB_INSTANCE_ID_MAX + 1];
	int lock, r = sb_instrec_id(o->token, id, err);

	if (r < 0)
		return r;
	if (strlen(l->dir) + strlen(id) + 3 > SOCKET_MAX)
		return sb_fail(err, SB_E_INVAL,
			"%s is too long for sockets in it: set dir to a shorter path", l->dir);
	lock = sb_instrec_lock(l->dir, call, err);
	if (lock < 0)
		return lock;
	r = launch_locked(l, o, id, err);
	sb_file_unlock(lock);
	return r < 0 ? r : local_describe(p, id, call, out, err);
}

/* Asks the process to end, and kills one that does not. */
static int
end_process(const struct local *l, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	sb_deadline kill_at = sb_deadline_in(STOP_MS),
		    give_up = sb_deadline_in(STOP_MS + KILLED_MS);
	pid_t pid = process_of(l, id);

	if (pid > 0)
		(void)kill(pid, SIGTERM);
	for (int ms = 5; (pid = process_of(l, id)) > 0; ms = ms < 200 ? 2 * ms : ms) {
		int r = sb_hostcall_pause(call, ms, err);

		if (r < 0)
			return r;
		if (sb_deadline_passed(kill_at))
			(void)kill(pid, SIGKILL);
		if (sb_deadline_passed(give_up))
			return sb_fail(err, SB_E_TIMEOUT, "instance %s: process %ld does not end",
				id, (long)pid);
	}
	return 0;
}

/* What is wanted goes on record first. */
static int
want(struct local *l, const char *id, enum sb_instance_state state,
	const struct sb_control_call *call, bool run, struct sb_error *err)
{
	sb_auto(sb_instrec) struct sb_instrec r = { 0 };
	int lock = sb_instrec_lock(l->dir, call, err), code;

	if (lock < 0)
		return lock;
	code = sb_instrec_read(l->dir, id, &r, err);
	if (code == 0 && r.i.state != state) {
		r.i.state = state;
		code = sb_instrec_write(l->dir, &r, err);
	}
	if (code == 0 && run && process_of(l, id) <= 0)
		code = run_host(l, &r, err);
	sb_file_unlock(lock);
	return code;
}

static int
local_stop(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct local *l = (struct local *)p;
	pid_t pid;
	int r = want(l, id, SB_INSTANCE_STOPPED, call, false, err);

	pid = r == 0 ? process_of(l, id) : 0;
	if (pid > 0)
		(void)kill(pid, SIGTERM);
	return r;
}

static int
local_start(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct local *l = (struct local *)p;
	sb_auto(sb_instrec) struct sb_instrec rec = { 0 };
	int r = sb_instrec_read(l->dir, id, &rec, err);

	/* One that is being switched off has to be off first. */
	if (r == 0 && rec.i.state == SB_INSTANCE_STOPPED)
		r = end_process(l, id, call, err);
	return r < 0 ? r : want(l, id, SB_INSTANCE_RUNNING, call, true, err);
}

/*
 * What runs in sessions outlasts sbhostd, so that switching it off would leave it: the host ends
 * all sessions first, and one that died is started again for that.
 */
static void
end_sessions(struct local *l, const char *id)
{
	const struct sb_control_call call = { NULL, sb_deadline_in(CLEAN_MS), 0 };
	const struct sb_control_filter all = SB_CONTROL_FILTER_INIT;
	sb_autofree char *url = sb_str_printf("unix:%s/%s/s", l->dir, id);
	struct sb_hostcall *h = url ? sb_hostcall_new(url, NULL, NULL, NULL) : NULL;
	struct sb_control_sandbox *v = NULL;
	size_t n = 0;
	int r = h ? SB_E_CONNECT : SB_E_NOMEM;

	for (int try = 0; h && try < 200 && sb_hostcall_transient(r) && process_of(l, id) > 0;
		try++) {
		r = sb_hostsess_list(h, &all, &call, &v, &n, NULL);
		if (r < 0 && sb_hostcall_pause(&call, 50, NULL) < 0)
			break;
	}
	for (size_t i = 0; r == 0 && i < n; i++)
		(void)sb_hostsess_destroy(h, v[i].id, true, &call, NULL);
	if (r == 0)
		sb_control_list_free(v, n);
	sb_hostcall_free(h);
}

static int
unmount(const char *rest, uint64_t upper, void *arg, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s", (const char *)arg, rest);

	(void)upper;
	return path ? sb_overlay_mount_leave(path, true, err) : SB_E_NOMEM;
}

static int
local_terminate(struct sb_provisioner *p, const char *id, const struct sb_control_call *call,
	struct sb_error *err)
{
	struct local *l = (struct local *)p;
	sb_autofree char *dir = sb_str_printf("%s/%s", l->dir, id);
	int lock, r = want(l, id, SB_INSTANCE_TERMINATING, call, true, err);

	if (r == SB_E_NOTFOUND)
		return 0;
	if (r < 0 || !dir)
		return r < 0 ? r : sb_fail(err, SB_E_NOMEM, "out of memory");
	end_sessions(l, id);
	r = end_process(l, id, call, err);
	if (r == 0)
		(void)sb_overlay_mount_each(dir, unmount, dir, NULL);
	lock = r == 0 ? sb_instrec_lock(l->dir, call, err) : r;
	if (lock < 0)
		return lock;
	r = sb_instrec_remove(l->dir, id, err);
	sb_file_unlock(lock);
	return r;
}

static int
local_list(struct sb_provisioner *p, const struct sb_instance_filter *filter,
	const struct sb_control_call *call, struct sb_instance **out, size_t *out_n,
	struct sb_error *err)
{
	return sb_instrec_list(p, ((struct local *)p)->dir, filter, call, out, out_n, err);
}

static void
local_close(struct sb_provisioner *p)
{
	struct local *l = (struct local *)p;

	free(l->dir);
	free(l->program);
	free(l->runtime);
	free(l->storage);
	free(l);
}

static const struct sb_provisioner_ops ops = {
	.version = SB_PROVISIONER_VERSION,
	.name = "local",
	.sizes = true,
	.lifetimes = true,
	.cheap = true,
	.launch = local_launch,
	.terminate = local_terminate,
	.stop = local_stop,
	.start = local_start,
	.describe = local_describe,
	.list = local_list,
	.close = local_close,
};

struct sb_provisioner *
sb_instance_local(const char *dir, const char *const *options, const struct sb_log *log,
	struct sb_error *err)
{
	const char *program = sb_strlist_get(options, "sbhostd"),
		   *runtime = sb_strlist_get(options, "runtime"),
		   *storage = sb_strlist_get(options, "storage");
	struct local *l = calloc(1, sizeof *l);

	if (l) {
		l->base.ops = &ops;
		l->base.log = log ? *log : (struct sb_log){ 0 };
		l->dir = strdup(dir);
		l->program = program ? strdup(program) : sb_beside_program("sbhostd");
		l->runtime = runtime ? strdup(runtime) : NULL;
		l->storage = storage ? strdup(storage) : NULL;
	}
	if (l && l->dir && l->program && (!runtime || l->runtime) && (!storage || l->storage))
		return &l->base;
	if (l)
		local_close(&l->base);
	(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return NULL;
}
