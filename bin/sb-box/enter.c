/* SPDX-License-Identifier: MIT */
/*
 * sb-box enter: joins the namespaces of a box of bwrap, gives up every power, and runs a command in
 * there.
 */
#include "config.h"

#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/spawn.h>
#include <host/runtime/boxfilter.h>

#define GROUPS_MAX 8
#define CAPS_MAX 63

/* When the process started, in ticks since boot; 0: not there. */
static long long
start_ticks(pid_t pid)
{
	char path[64], buf[1024], *p;
	long long start = 0;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, sizeof buf - 1) : -1;
	if (fd >= 0)
		(void)close(fd);
	if (n <= 0)
		return 0;
	buf[n] = '\0';
	p = strrchr(buf, ')');
	if (!p ||
		sscanf(p + 1,
			" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d "
			"%*d %lld",
			&start) != 1)
		return 0;
	return start;
}

/*
 * No capability, now or by any program it executes; and no way to the calls that the filter names.
 */
static int
give_up_powers(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	for (int cap = 0; cap <= CAPS_MAX; cap++)
		if (prctl(PR_CAPBSET_DROP, cap, 0, 0, 0) < 0 && errno != EINVAL)
			return -1;
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (syscall(SYS_capset, &head, none) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return -1;
	return sb_boxfilter_install();
}

/*
 * Joins all namespaces of the box in one call, through the process that was checked before: all of
 * them or none.
 */
static int
join_namespaces(pid_t pid, long long ticks, bool net)
{
	int flags = CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
		(net ? CLONE_NEWNET : 0);
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	int r;

	if (fd < 0 || start_ticks(pid) != ticks) {
		errno = ESRCH;
		return -1;
	}
	/* A group namespace of its own is not everywhere. */
	r = setns(fd, flags | CLONE_NEWCGROUP) == 0 ? 0 : setns(fd, flags);
	(void)close(fd);
	return r;
}

/*
 * User 0 of the box is another one outside. What it reads and writes becomes its own, so that it
 * may open it by name, too (/dev/stderr); a terminal and /dev/null stay whose they are.
 */
static int
become_user(uid_t owner)
{
	struct stat st;

	for (int fd = 0; fd < 3 && owner; fd++)
		if (fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISREG(st.st_mode)))
			(void)fchown(fd, owner, owner);
	return setgroups(0, NULL) < 0 && errno != EPERM ? -1 : 0;
}

struct enter_args {
	struct helper_job job;
	uid_t owner; /* of the box's files; 0: us */
	pid_t pid;
	long long ticks;
	bool host_net; /* not the box's own network: ours, or that of `netns` */
	const char *netns;
	const char *groups[GROUPS_MAX];
	size_t n_groups;
};

static int
parse(int argc, char **argv, struct enter_args *e)
{
	int c;

	while ((c = getopt(argc, argv, "+p:t:g:m:C:N:u:P:nk")) != -1)
		switch (c) {
		case 'p': e->pid = (pid_t)strtol(optarg, NULL, 10); break;
		case 't': e->ticks = strtoll(optarg, NULL, 10); break;
		case 'g':
			if (e->n_groups == GROUPS_MAX)
				return -1;
			e->groups[e->n_groups++] = optarg;
			break;
		case 'm': e->job.max_memory = strtoull(optarg, NULL, 10); break;
		case 'P': e->job.max_procs = strtoull(optarg, NULL, 10); break;
		case 'C': e->job.cwd = optarg; break;
		case 'n': e->host_net = true; break;
		case 'N':
			e->host_net = true;
			e->netns = optarg;
			break;
		case 'u': e->owner = (uid_t)strtoul(optarg, NULL, 10); break;
		case 'k': e->job.leave = true; break;
		default: return -1;
		}
	e->job.argv = argv + optind;
	return optind < argc && e->pid > 0 ? 0 : -1;
}

/*
 * Two processes: this one stays in the host's process namespace, where its parent waits for it; the
 * other is the first that is all inside, supervises the command and ends it when this one ends.
 */
int
helper_main_enter(int argc, char **argv)
{
	struct enter_args e = { .job.lifeline = -1 };
	int life[2], status;
	sigset_t all;
	pid_t pid;

	if (parse(argc, argv, &e) < 0)
		return SB_HELPER_FAILED;
	/* Nobody in there may look into us; and the report is closed by the program we lead to. */
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)fcntl(SB_SPAWN_REPORT_FD, F_SETFD, FD_CLOEXEC);
	for (size_t i = 0; i < e.n_groups; i++)
		if (helper_join_group(e.groups[i]) < 0)
			return helper_fail(e.groups[i]);
	if (e.netns && helper_join_net(e.netns) < 0)
		return helper_fail(e.netns);
	if (become_user(e.owner) < 0)
		return helper_fail("groups");
	if (join_namespaces(e.pid, e.ticks, !e.host_net) < 0)
		return helper_fail("the sandbox is gone");
	/* In there; outside it is whoever the namespace says. */
	if (setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return helper_fail("become the sandbox's user");
	if (pipe2(life, O_CLOEXEC) < 0)
		return helper_fail("pipe");
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	pid = fork();
	if (pid < 0)
		return helper_fail("fork");
	if (pid == 0) {
		(void)close(life[1]);
		e.job.lifeline = life[0];
		_exit(give_up_powers() < 0 ? helper_fail("give up privileges") :
					     helper_supervise(&e.job));
	}
	(void)close(life[0]);
	(void)close(SB_SPAWN_REPORT_FD);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}
