/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/box.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/procid.h>
#include <base/str.h>
#include <host/runtime/box-egress.h>
#include <host/runtime/box-stock.h>
#include <host/runtime/box-watch.h>

#define GONE_MS 10000
#define RECORD_MAX 512

static int
init(struct sb_box_runtime *b, const struct sb_runtime_opts *o, const struct sb_box_kind *kind,
	const char *program, struct sb_error *err)
{
	b->kind = kind;
	b->o = o->host;
	b->key = o->key;
	(void)pthread_mutex_init(&b->mu, NULL);
	(void)pthread_mutex_init(&b->egress_mu, NULL);
	b->on_network = o->on_network;
	b->network_arg = o->network_arg;
	b->program = sb_runtime_program(program);
	if (!b->program)
		return sb_fail(err, SB_E_UNSUPPORTED, "%s is not installed", program);
	b->helper = sb_runtime_helper(o->host);
	if (!b->helper)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"the helper sb-box is not found (SB_BOX names it)");
	b->root = sb_str_printf("%s/box-root", b->o->state_dir);
	b->etc = sb_str_printf("%s/box-etc", b->o->state_dir);
	b->resolv = sb_str_printf("%s/box-resolv.conf", b->o->state_dir);
	if (!b->root || !b->etc || !b->resolv)
		return sb_fail(err, SB_E_NOMEM, "runtime");
	b->roots = sb_str_printf("%s/control-groups", b->o->state_dir);
	if (!b->roots)
		return sb_fail(err, SB_E_NOMEM, "runtime");
	sb_cgroup_probe(&b->groups);
	return 0;
}

static void
box_free(struct sb_box *box)
{
	if (box->pidfd >= 0)
		(void)close(box->pidfd);
	sb_resident_stop(&box->resident);
	sb_box_stock_end_forker(box);
	sb_egress_client_leave(&box->egress);
	sb_cgroup_clear(&box->group);
	(void)pthread_mutex_destroy(&box->mu);
	free(box->session);
	free(box->dir);
	free(box);
}

void
sb_box_runtime_close(struct sb_runtime *rt)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;

	while (b->first) {
		struct sb_box *box = b->first;

		b->first = box->next;
		box_free(box);
	}
	sb_box_egress_close(b);
	sb_box_watch_stop(b);
	sb_box_stock_stop(b);
	sb_cgroup_clear(&b->groups);
	(void)pthread_mutex_destroy(&b->mu);
	(void)pthread_mutex_destroy(&b->egress_mu);
	free(b->program);
	free(b->helper);
	free(b->root);
	free(b->etc);
	free(b->resolv);
	free(b->roots);
	free(b);
}

struct sb_runtime *
sb_box_runtime_open(const struct sb_runtime_ops *ops, const struct sb_box_kind *kind,
	const struct sb_runtime_opts *o, const char *program, struct sb_error *err)
{
	struct sb_box_runtime *b = calloc(1, sizeof *b);
	int r;

	if (!b) {
		(void)sb_fail(err, SB_E_NOMEM, "runtime");
		return NULL;
	}
	b->rt.ops = ops;
	r = init(b, o, kind, program, err);
	if (r == 0)
		r = kind->probe(b, o->picky, err);
	if (r < 0) {
		sb_box_runtime_close(&b->rt);
		return NULL;
	}
	return &b->rt;
}

static uint64_t
hash(const char *a, const char *b)
{
	uint64_t h = 1469598103934665603u;

	for (; *a; a++)
		h = (h ^ (unsigned char)*a) * 1099511628211u;
	for (; *b; b++)
		h = (h ^ (unsigned char)*b) * 1099511628211u;
	return h;
}

/* The process that was noted, if it is still the same one. */
static void
adopt(struct sb_box *box)
{
	sb_autofree char *path = sb_str_printf("%s/record", box->dir);
	sb_auto(sb_buf) struct sb_buf text;
	char boot[40], was[40] = "";
	long long ticks = 0;
	int pid = 0, network = 0, frozen = 0;
	unsigned user = 0;

	if (!path || sb_file_read(AT_FDCWD, path, RECORD_MAX, &text, NULL) < 0)
		return;
	if (sscanf((const char *)text.data, "%d %lld %39s %d %d %u", &pid, &ticks, was, &network,
		    &frozen, &user) < 5 ||
		pid <= 1 || strcmp(was, sb_procid_boot(boot)) != 0)
		return;
	box->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (box->pidfd >= 0 && sb_procid_start(pid) == ticks) {
		box->pid = pid;
		box->ticks = ticks;
		box->network = (enum sb_host_network)network;
		box->frozen = frozen != 0;
		box->unsure = true;
		box->user = (uid_t)user;
		return;
	}
	if (box->pidfd >= 0)
		(void)close(box->pidfd);
	box->pidfd = -1;
}

int
sb_box_note(struct sb_box *box, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/record", box->dir);
	char text[RECORD_MAX], boot[40];

	(void)snprintf(text, sizeof text, "%d %lld %s %d %d %u\n", (int)box->pid,
		(long long)box->ticks, sb_procid_boot(boot), (int)box->network,
		(int)box->frozen, (unsigned)box->user);
	return path ? sb_file_replace(AT_FDCWD, path, text, strlen(text), 0600, err) :
		      sb_fail(err, SB_E_NOMEM, "sandbox");
}

/* The entry of the session, made when missing. With the list's `mu` held. */
static struct sb_box *
entry(struct sb_box_runtime *b, const char *session)
{
	struct sb_box *box = b->first;

	while (box && (box->gone || strcmp(box->session, session) != 0))
		box = box->next;
	if (box)
		return box;
	box = calloc(1, sizeof *box);
	if (!box)
		return NULL;
	box->pidfd = -1;
	box->resident = (struct sb_resident)SB_RESIDENT_INIT;
	box->forker = (struct sb_child)SB_CHILD_INIT;
	box->forker_control = -1;
	box->egress = (struct sb_egress_client)SB_EGRESS_CLIENT_INIT;
	box->owner = b;
	(void)pthread_mutex_init(&box->mu, NULL);
	box->session = strdup(session);
	box->dir = sb_str_printf("%s/box-%s/%s", b->o->state_dir, b->rt.ops->name, session);
	if (!box->session || !box->dir) {
		box_free(box);
		return NULL;
	}
	(void)snprintf(box->name, sizeof box->name, "sb-%s-%s-%016llx", b->rt.ops->name, b->key,
		(unsigned long long)hash(b->key, session));
	adopt(box);
	/* Its own ones, with their limits, whichever group the host that made it was in. */
	if (box->pid)
		sb_cgroup_of(box->pid, box->name, &box->group);
	box->next = b->first;
	b->first = box;
	return box;
}

static struct sb_box *
lock_entry(struct sb_box_runtime *b, const char *session)
{
	struct sb_box *box;

	(void)pthread_mutex_lock(&b->mu);
	box = entry(b, session);
	if (box)
		box->refs++;
	(void)pthread_mutex_unlock(&b->mu);
	if (!box)
		return NULL;
	(void)pthread_mutex_lock(&box->mu);
	if (!box->gone)
		return box;
	/* Forgotten while we waited: there may be a new one of that name. */
	sb_box_release(box);
	return lock_entry(b, session);
}

static bool
alive(const struct sb_box *box)
{
	return box->pid > 0 && syscall(SYS_pidfd_send_signal, box->pidfd, 0, NULL, 0) == 0 &&
		sb_procid_start(box->pid) == box->ticks;
}

void
sb_box_end(struct sb_box_runtime *b, struct sb_box *box)
{
	const struct timespec nap = { .tv_nsec = 2000000 };
	sb_deadline d = sb_deadline_in(GONE_MS);
	bool all_dead = false;

	if (box->frozen || box->unsure)
		(void)sb_cgroup_freeze(&box->group, false, sb_deadline_in(1000), NULL);
	while (alive(box) && !sb_deadline_passed(d)) {
		(void)syscall(SYS_pidfd_send_signal, box->pidfd, SIGKILL, NULL, 0);
		(void)nanosleep(&nap, NULL);
	}
	while (box->outer && waitpid(box->outer, NULL, WNOHANG) == 0 && !sb_deadline_passed(d))
		(void)nanosleep(&nap, NULL);
	box->outer = 0;
	sb_resident_stop(&box->resident);
	sb_box_egress_end(box);
	if (box->group.dir[0] || box->group.dir[SB_CGROUP_FREEZER]) {
		all_dead = sb_cgroup_remove(&box->group, d);
		if (!all_dead)
			sb_log(&b->o->log, SB_LOG_WARN, "runtime",
				"session %s: its control group stays busy", box->session);
		sb_cgroup_clear(&box->group);
	}
	sb_box_stock_end_forker(box);
	if (b->kind->destroy)
		b->kind->destroy(b, box, all_dead);
	if (box->pidfd >= 0)
		(void)close(box->pidfd);
	box->pidfd = -1;
	box->pid = 0;
	box->frozen = box->unsure = false;
}

struct sb_cgroup_limits
sb_box_limits(const struct sb_box_runtime *b)
{
	const uint64_t pids = b->o->session_pids, each = b->kind->threads ? b->kind->threads : 1;

	return (struct sb_cgroup_limits){ .memory = b->o->session_mem_mb << 20,
		.pids = pids ? pids * each + b->kind->own_threads : 0,
		.cpus = b->o->session_cpus };
}

/* With `mu` held. */
static int
create(struct sb_box_runtime *b, struct sb_box *box, const struct sb_runtime_cmd *cmd,
	struct sb_error *err)
{
	const struct sb_cgroup_limits l = sb_box_limits(b);
	bool outbound;
	int r = 0;

	(void)pthread_mutex_lock(&b->mu);
	if (!b->root_made) {
		r = sb_box_root_make(b, err);
		b->root_made = r == 0;
	}
	(void)pthread_mutex_unlock(&b->mu);
	if (r == 0)
		r = sb_file_mkdirs(box->dir, 0700, err);
	if (r < 0)
		return r;
	r = sb_cgroup_remember(b->roots, &b->groups, err);
	if (r == 0 && !(b->kind->stocked && sb_box_stock_take(b, box)))
		r = sb_cgroup_make(&b->groups, box->name, &l, &box->group, err);
	box->network = cmd->network;
	outbound = box->network == SB_HOST_NET_OUTBOUND;
	if (r == 0 && outbound && b->kind->joins_netns)
		r = sb_box_egress_start(b, box, err);
	if (r == 0)
		r = b->kind->create(b, box, cmd, &box->pid, err);
	if (r == 0 && outbound && !b->kind->joins_netns)
		r = sb_box_egress_start(b, box, err);
	if (r == 0 && outbound)
		r = sb_box_egress_ready(b, box, err);
	if (r == 0) {
		box->pidfd = (int)syscall(SYS_pidfd_open, box->pid, 0);
		box->ticks = sb_procid_start(box->pid);
		r = box->pidfd < 0 || box->ticks == 0 ?
			sb_fail(err, SB_E_RUNTIME, "the sandbox ended at once") :
			sb_box_note(box, err);
	}
	if (r == 0)
		r = sb_box_watch_add(b, box, err);
	if (r < 0)
		sb_box_end(b, box);
	return r < 0 ? sb_wrap(err, SB_E_RUNTIME, "session %s: %s", cmd->session, b->rt.ops->name) :
		       0;
}

struct sb_box *
sb_box_hold(struct sb_box_runtime *b, const struct sb_runtime_cmd *cmd, struct sb_error *err)
{
	struct sb_box *box = lock_entry(b, cmd->session);

	if (!box) {
		(void)sb_fail(err, SB_E_NOMEM, "sandbox");
		return NULL;
	}
	if (!alive(box)) {
		if (box->pid)
			sb_box_end(b, box);
		if (create(b, box, cmd, err) < 0) {
			sb_box_release(box);
			return NULL;
		}
	} else if ((box->network == SB_HOST_NET_OUTBOUND && sb_box_egress_again(b, box, err) < 0) ||
		sb_box_watch_add(b, box, err) < 0) {
		sb_box_release(box);
		return NULL;
	}
	box->seq++;
	return box;
}

struct sb_box *
sb_box_hold_running(struct sb_box_runtime *b, const char *session)
{
	struct sb_box *box = lock_entry(b, session);

	if (box && !alive(box)) {
		sb_box_release(box);
		return NULL;
	}
	return box;
}

void
sb_box_release(struct sb_box *box)
{
	struct sb_box_runtime *b = box->owner;
	struct sb_box **p = &b->first;

	(void)pthread_mutex_unlock(&box->mu);
	(void)pthread_mutex_lock(&b->mu);
	if (--box->refs == 0 && box->gone) {
		while (*p != box)
			p = &(*p)->next;
		*p = box->next;
		box_free(box);
	}
	(void)pthread_mutex_unlock(&b->mu);
}

static void
remove_dir(struct sb_box_runtime *b, const char *session)
{
	sb_autofree char *dir = sb_str_printf("%s/box-%s", b->o->state_dir, b->rt.ops->name);
	sb_autoclose int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd >= 0)
		(void)sb_path_remove_tree(fd, session, NULL);
}

void
sb_box_runtime_forget(struct sb_runtime *rt, const char *session)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	struct sb_box *box = lock_entry(b, session);

	if (!box)
		return;
	/* A group of a box that died by itself is there, too. */
	if (!box->group.dir[0])
		(void)sb_cgroup_make(&b->groups, box->name, NULL, &box->group, NULL);
	sb_box_end(b, box);
	remove_dir(b, session);
	(void)pthread_mutex_lock(&b->mu);
	box->gone = true;
	(void)pthread_mutex_unlock(&b->mu);
	sb_box_release(box);
}

bool
sb_box_runtime_holds(struct sb_runtime *rt, const char *session)
{
	struct sb_box *box = sb_box_hold_running((struct sb_box_runtime *)rt, session);

	if (box)
		sb_box_release(box);
	return box != NULL;
}

/*
 * The kernel counts the processes of a user namespace by themselves since 5.14; user 0 of the
 * machine has no limit.
 */
static bool
counts_processes(const struct sb_box_runtime *b)
{
	struct utsname u;
	int major = 0, minor = 0;

	return b->kind->watched && (geteuid() != 0 || b->o->session_uid_count) && uname(&u) == 0 &&
		sscanf(u.release, "%d.%d", &major, &minor) == 2 &&
		(major > 5 || (major == 5 && minor >= 14));
}

void
sb_box_runtime_limits(struct sb_runtime *rt, struct sb_runtime_limits *out)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;

	out->pids = sb_cgroup_holds(&b->groups, SB_CGROUP_PIDS);
	out->memory = sb_cgroup_holds(&b->groups, SB_CGROUP_MEMORY);
	out->cpus = sb_cgroup_holds(&b->groups, SB_CGROUP_CPU);
	if (!out->pids)
		out->pids = counts_processes(b) ? "rlimit" : "none";
	if (!out->memory)
		out->memory = b->kind->watched ? "watch" : "none";
	if (!out->cpus)
		out->cpus = "none";
}

uint64_t
sb_box_runtime_ooms(struct sb_runtime *rt, const char *session)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	struct sb_box *box = lock_entry(b, session);
	uint64_t n = box ? sb_cgroup_ooms(&box->group) + sb_box_watch_ooms(b, box) : 0;

	if (box)
		sb_box_release(box);
	return n;
}

struct box_sweep {
	struct sb_box_runtime *b;
	const struct sb_cgroup *at;
	const char *prefix;
	struct sb_strlist keep; /* names of groups */
};

static void
sweep_group(const char *name, void *arg)
{
	struct box_sweep *s = arg;
	struct sb_cgroup g;

	for (size_t i = 0; i < s->keep.n; i++)
		if (strcmp(s->keep.v[i], name) == 0)
			return;
	(void)sb_cgroup_make(s->at, name, NULL, &g, NULL);
	(void)sb_cgroup_remove(&g, sb_deadline_in(GONE_MS));
	sb_cgroup_clear(&g);
}

/* Also where hosts of this state directory made groups that were in other groups than we are. */
static void
sweep_place(const struct sb_cgroup *at, void *arg)
{
	struct box_sweep *s = arg;

	s->at = at;
	sb_cgroup_each(at, s->prefix, sweep_group, s);
}

void
sb_box_runtime_sweep(struct sb_runtime *rt, bool (*known)(const char *session, void *arg),
	void *arg)
{
	struct box_sweep s = { .b = (struct sb_box_runtime *)rt };
	sb_autofree char *dir = sb_str_printf("%s/box-%s", s.b->o->state_dir, rt->ops->name);
	sb_autofree char *prefix = sb_str_printf("sb-%s-%s-", rt->ops->name, s.b->key);
	sb_auto(sb_strlist) struct sb_strlist gone = { 0 };
	sb_autoclosedir DIR *d = dir ? opendir(dir) : NULL;
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		if (known(e->d_name, arg)) {
			struct sb_box *box = sb_box_hold_running(s.b, e->d_name);

			if (box) {
				sb_strlist_add(&s.keep, box->name);
				sb_box_release(box);
			}
		} else {
			sb_strlist_add(&gone, e->d_name);
		}
	}
	for (size_t i = 0; i < gone.n; i++)
		sb_box_runtime_forget(rt, gone.v[i]);
	/* Without memory for the whole list, a group that is in use could look left over. */
	s.prefix = prefix;
	if (prefix && !s.keep.failed) {
		sweep_place(&s.b->groups, &s);
		sb_cgroup_recall(s.b->roots, sweep_place, &s);
	}
	sb_strlist_free(&s.keep);
}
