/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/reach.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <host/runtime/proctree.h>

#define LISTENERS_MAX 16
#define TCP_LISTEN 0x0a

/* Connects `fd` to the loopback address; it is non-blocking afterwards. */
static int
connect_loopback(int fd, bool v6, unsigned port, sb_deadline d, struct sb_error *err)
{
	struct sockaddr_in a4 = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 a6 = { .sin6_family = AF_INET6,
		.sin6_port = htons((uint16_t)port),
		.sin6_addr = IN6ADDR_LOOPBACK_INIT };
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	socklen_t len = sizeof errno;
	int sys = 0;
	int r = v6 ? connect(fd, (struct sockaddr *)&a6, sizeof a6) :
		     connect(fd, (struct sockaddr *)&a4, sizeof a4);

	if (r < 0 && errno != EINPROGRESS)
		return sb_fail(err, SB_E_UNAVAILABLE, "port %u: %s", port, strerror(errno));
	do
		r = poll(&p, 1, sb_deadline_poll_ms(d));
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return sb_fail(err, SB_E_TIMEOUT, "port %u: no answer in time", port);
	if (r < 0 || getsockopt(fd, SOL_SOCKET, SO_ERROR, &sys, &len) < 0)
		return sb_fail_errno(err, "port %u", port);
	return sys ? sb_fail(err, SB_E_UNAVAILABLE, "port %u: %s", port, strerror(sys)) : 0;
}

static int
open_stream(bool v6, struct sb_error *err)
{
	int fd = socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	return fd < 0 ? sb_fail_errno(err, "socket") : fd;
}

/* A descriptor of the first network namespace among the processes that is not ours. */
struct find_ns {
	struct stat own;
	int fd;
};

static bool
look_ns(pid_t pid, int pidfd, void *arg)
{
	struct find_ns *f = arg;
	char path[64];
	struct stat st;
	int fd;

	(void)pidfd;
	if (f->fd >= 0)
		return false;
	(void)snprintf(path, sizeof path, "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	if (fstat(fd, &st) < 0 || (st.st_ino == f->own.st_ino && st.st_dev == f->own.st_dev)) {
		(void)close(fd);
		return false;
	}
	f->fd = fd;
	return true;
}

/* A thread that enters a namespace never comes back: it makes its socket and ends. */
struct netns_visit {
	int ns;
	int fd;
	int sys;
};

static void *
enter_thread(void *arg)
{
	struct netns_visit *e = arg;

	if (setns(e->ns, CLONE_NEWNET) == 0)
		e->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	e->sys = errno;
	return NULL;
}

int
sb_reach_namespace(const char *mark, pid_t leader, unsigned port, sb_deadline d, int *out_fd,
	struct sb_error *err)
{
	struct find_ns f = { .fd = -1 };
	struct netns_visit e = { .fd = -1 };
	sb_autoclose int ns = -1;
	pthread_t t;
	int r;

	if (stat("/proc/thread-self/ns/net", &f.own) < 0)
		return sb_fail_errno(err, "network namespace");
	(void)sb_proctree_visit(mark, leader, look_ns, &f);
	ns = f.fd;
	if (ns < 0)
		return sb_fail(err, SB_E_UNAVAILABLE,
			"port %u: the command has no network of its own (yet)", port);
	e.ns = ns;
	if (pthread_create(&t, NULL, enter_thread, &e) != 0)
		return sb_fail(err, SB_E_LIMIT, "port %u: cannot start a thread", port);
	(void)pthread_join(t, NULL);
	if (e.fd < 0) {
		errno = e.sys;
		return sb_fail_errno(err, "port %u: enter the network namespace", port);
	}
	r = connect_loopback(e.fd, false, port, d, err);
	if (r < 0) {
		(void)close(e.fd);
		return r;
	}
	*out_fd = e.fd;
	return 0;
}

/* The sockets that would get a connection to the loopback address. */
struct listeners {
	unsigned long inode[LISTENERS_MAX];
	bool owned[LISTENERS_MAX];
	size_t n;
	bool v4, v6, too_many;
};

/*
 * "0: 0100007F:1F90 00000000:0000 0A ... inode"; an address is in host order, in words of 32 bits.
 */
static void
read_line(const char *line, bool v6, unsigned port, struct listeners *l)
{
	static const char any6[] = "00000000000000000000000000000000";
	static const char lo6[] = "00000000000000000000000001000000";
	static const char mapped[] = "0000000000000000FFFF00000100007F";
	char addr[40];
	unsigned at, state;
	unsigned long inode;

	if (sscanf(line, " %*u: %39[0-9A-F]:%x %*[0-9A-F]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu",
		    addr, &at, &state, &inode) != 4 ||
		at != port || state != TCP_LISTEN)
		return;
	if (v6 && strcmp(addr, any6) != 0 && strcmp(addr, lo6) != 0 && strcmp(addr, mapped) != 0)
		return;
	if (!v6 && strcmp(addr, "00000000") != 0 && strcmp(addr + 6, "7F") != 0)
		return;
	/* One that listens to every address of IPv6 usually takes IPv4 too. */
	l->v4 |= !v6 || strcmp(addr, lo6) != 0;
	l->v6 |= v6 && strcmp(addr, mapped) != 0;
	if (l->n == LISTENERS_MAX)
		l->too_many = true;
	else
		l->inode[l->n++] = inode;
}

static void
read_table(const char *path, bool v6, unsigned port, struct listeners *l)
{
	FILE *f = fopen(path, "re");
	char line[512];

	while (f && fgets(line, sizeof line, f))
		read_line(line, v6, port, l);
	if (f)
		(void)fclose(f);
}

static bool
look_sockets(pid_t pid, int pidfd, void *arg)
{
	struct listeners *l = arg;
	char path[64], target[64];
	sb_autoclosedir DIR *d = NULL;
	struct dirent *e;
	bool any = false;

	(void)pidfd;
	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && (e = readdir(d))) {
		ssize_t n = readlinkat(dirfd(d), e->d_name, target, sizeof target - 1);
		unsigned long inode;

		if (n <= 0)
			continue;
		target[n] = '\0';
		if (sscanf(target, "socket:[%lu]", &inode) != 1)
			continue;
		for (size_t i = 0; i < l->n; i++)
			if (l->inode[i] == inode)
				any = l->owned[i] = true;
	}
	return any;
}

int
sb_reach_owned(const char *mark, pid_t leader, unsigned port, sb_deadline d, int *out_fd,
	struct sb_error *err)
{
	struct listeners l = { 0 };
	size_t mine = 0;
	int fd, r;

	read_table("/proc/net/tcp", false, port, &l);
	read_table("/proc/net/tcp6", true, port, &l);
	if (l.n > 0)
		(void)sb_proctree_visit(mark, leader, look_sockets, &l);
	for (size_t i = 0; i < l.n; i++)
		mine += l.owned[i];
	if (l.n > 0 && (mine < l.n || l.too_many))
		return sb_fail(err, SB_E_DENIED,
			"port %u belongs to a process outside this session", port);
	if (l.n == 0)
		return sb_fail(err, SB_E_UNAVAILABLE, "port %u: the command does not listen there",
			port);
	fd = open_stream(!l.v4, err);
	if (fd < 0)
		return fd;
	r = connect_loopback(fd, !l.v4, port, d, err);
	if (r < 0) {
		(void)close(fd);
		return r;
	}
	*out_fd = fd;
	return 0;
}
