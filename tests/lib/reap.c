/* SPDX-License-Identifier: MIT */
/*
 * reap SECONDS PROGRAM [ARG]...: runs a test under a time limit and lets none of its processes
 * outlive it. It is the parent of whatever the test leaves (subreaper), so a session of its own, a
 * double fork or a cleared environment hide nothing: containers, daemons and boxes are ended, also
 * frozen ones, and control groups that only they were in are removed. What had to be ended is told
 * as "# ended: ..." on stdout. Exit status: the program's, 128 + signal, 124 when the time was
 * over.
 */
#include "config.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PROCS_MAX 65536
#define GROUPS_MAX 4096
#define GRACE_S 10

struct proc {
	pid_t pid, parent;
	bool ours;
};

static struct proc procs[PROCS_MAX];
static size_t n_procs;
static char *groups[GROUPS_MAX]; /* control groups of ended processes, as directories */
static size_t n_groups;
static char own_groups[8192];
static volatile sig_atomic_t got_signal;

static void
on_signal(int sig)
{
	got_signal = sig;
}

static int64_t
now_ms(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static size_t
read_text(const char *path, char *out, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, out, size - 1);

	if (fd >= 0)
		(void)close(fd);
	out[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

static void
list_procs(void)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	n_procs = 0;
	while (d && (e = readdir(d)) && n_procs < PROCS_MAX) {
		char path[300], text[1024], *at;
		int parent;
		char state;

		if (!isdigit((unsigned char)e->d_name[0]))
			continue;
		(void)snprintf(path, sizeof path, "/proc/%s/stat", e->d_name);
		/* "1 (name) S 0 ...": a name may hold anything, so from its end. */
		if (!read_text(path, text, sizeof text) || !(at = strrchr(text, ')')) ||
			sscanf(at + 1, " %c %d", &state, &parent) != 2 || state == 'Z')
			continue;
		procs[n_procs++] = (struct proc){ .pid = (pid_t)strtol(e->d_name, NULL, 10),
			.parent = (pid_t)parent };
	}
	if (d)
		(void)closedir(d);
}

/* Marks all that descends from this process; how many there are. */
static size_t
mark_ours(void)
{
	size_t n = 0;

	for (bool more = true; more;) {
		more = false;
		for (size_t i = 0; i < n_procs; i++) {
			bool child = procs[i].parent == getpid();

			for (size_t k = 0; !child && !procs[i].ours && k < n_procs; k++)
				child = procs[k].ours && procs[k].pid == procs[i].parent;
			if (!child || procs[i].ours)
				continue;
			procs[i].ours = more = true;
			n++;
		}
	}
	return n;
}

/* Each group of the process that is not one of our own, thawed, and noted for its removal. */
static void
take_groups(pid_t pid)
{
	char path[64], text[8192], *line, *save = NULL;

	(void)snprintf(path, sizeof path, "/proc/%d/cgroup", (int)pid);
	(void)read_text(path, text, sizeof text);
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *controllers = strchr(line, ':'), *group, dir[5000], file[5100];
		bool v2;
		int fd;

		group = controllers ? strchr(controllers + 1, ':') : NULL;
		if (!group || strstr(own_groups, controllers))
			continue;
		*group++ = 0;
		v2 = controllers[1] == 0;
		(void)snprintf(dir, sizeof dir, "/sys/fs/cgroup/%s%s",
			strncmp(controllers + 1, "name=", 5) == 0 ? controllers + 6 :
								    controllers + 1,
			group);
		(void)snprintf(file, sizeof file, "%s/%s", dir,
			v2 ? "cgroup.freeze" : "freezer.state");
		fd = open(file, O_WRONLY | O_CLOEXEC);
		if (fd >= 0) {
			(void)!write(fd, v2 ? "0" : "THAWED", v2 ? 1 : 6);
			(void)close(fd);
		}
		for (size_t i = 0; i < n_groups; i++)
			if (strcmp(groups[i], dir) == 0)
				dir[0] = 0;
		if (dir[0] && n_groups < GROUPS_MAX && (groups[n_groups] = strdup(dir)))
			n_groups++;
	}
}

static void
tell(pid_t pid)
{
	char path[64], text[400];
	size_t n;

	(void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
	n = read_text(path, text, sizeof text);
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)text[i] < ' ' || (unsigned char)text[i] == 127)
			text[i] = ' ';
	printf("# ended: %d %.300s\n", (int)pid, text);
}

/* Ends everything that is left; false when something did not end. */
static bool
end_all(void)
{
	int64_t until = now_ms() + GRACE_S * 1000;

	for (bool first = true;; first = false) {
		struct timespec tick = { .tv_nsec = 20000000 };
		size_t n;

		list_procs();
		n = mark_ours();
		for (size_t i = 0; i < n_procs; i++) {
			if (!procs[i].ours)
				continue;
			if (first)
				tell(procs[i].pid);
			take_groups(procs[i].pid);
			(void)kill(procs[i].pid, SIGKILL);
		}
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
		if (!n || now_ms() > until) {
			for (size_t i = n_groups; i-- > 0;)
				(void)rmdir(groups[i]);
			return n == 0;
		}
		(void)nanosleep(&tick, NULL);
	}
}

/* Waits for the program; its exit status, or -1 after `until` or at a signal. */
static int
wait_program(pid_t pid, int64_t until)
{
	while (!got_signal && now_ms() < until) {
		struct timespec tick = { .tv_nsec = 10000000 };
		int status;
		pid_t p = waitpid(-1, &status, WNOHANG);

		if (p == pid)
			return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		if (p == 0)
			(void)nanosleep(&tick, NULL);
	}
	return -1;
}

int
main(int argc, char **argv)
{
	static const int ends[] = { SIGHUP, SIGINT, SIGTERM };
	struct sigaction sa = { .sa_handler = on_signal };
	int status, sig;
	pid_t pid;

	if (argc < 3) {
		(void)fprintf(stderr, "usage: reap SECONDS PROGRAM [ARG]...\n");
		return 2;
	}
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	(void)read_text("/proc/self/cgroup", own_groups, sizeof own_groups);
	pid = fork();
	if (pid == 0) {
		(void)setpgid(0, 0);
		(void)execvp(argv[2], argv + 2);
		(void)fprintf(stderr, "reap: %s: %s\n", argv[2], strerror(errno));
		_exit(127);
	}
	if (pid < 0) {
		perror("reap: fork");
		return 1;
	}
	(void)setpgid(pid, pid);
	for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++)
		(void)sigaction(ends[i], &sa, NULL);
	status = wait_program(pid, now_ms() + strtol(argv[1], NULL, 10) * 1000);
	if (status < 0) {
		sig = got_signal;
		got_signal = 0;
		(void)kill(-pid, SIGTERM);
		(void)kill(-pid, SIGCONT);
		(void)wait_program(pid, now_ms() + GRACE_S * 1000);
		status = sig ? 128 + sig : 124;
	}
	if (!end_all())
		printf("# not ended: some processes of the test do not go\n");
	return status;
}
