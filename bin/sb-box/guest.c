/* SPDX-License-Identifier: MIT */
/* sb-box guest: stays in a session's box and works there for the host; sb-box guest-link. */
#include "config.h"

#include "guest.h"
#include "helper.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define POLL_MAX 4096
/* Of one link: what waits to be sent, before its requests are left waiting. */
#define OUT_HIGH (8u << 20)
#define OUT_MAX (256u << 20)

pthread_mutex_t guest_mu = PTHREAD_MUTEX_INITIALIZER;
static struct guest_link *links;
static int wake_fd = -1;

void
guest_wake(void)
{
	uint64_t one = 1;

	(void)!write(wake_fd, &one, sizeof one);
}

void
guest_send(struct guest_link *l, uint8_t what, uint32_t id, const void *data, size_t len)
{
	(void)pthread_mutex_lock(&guest_mu);
	if (!l->gone) {
		sb_buf_add_u32(&l->out, (uint32_t)(5 + len));
		sb_buf_add_u8(&l->out, what);
		sb_buf_add_u32(&l->out, id);
		sb_buf_add(&l->out, data, len);
	}
	(void)pthread_mutex_unlock(&guest_mu);
	guest_wake();
}

void
guest_send_buf(struct guest_link *l, uint8_t what, uint32_t id, const struct sb_buf *b)
{
	guest_send(l, what, id, b->data, b->len);
}

void
guest_fail(const struct guest_ask *a, int sys)
{
	struct sb_buf b;
	const char *text = strerror(sys);

	sb_buf_init(&b, 4096);
	sb_buf_add_varint(&b, (uint64_t)sys);
	sb_buf_add_bytes(&b, text, strlen(text));
	guest_send_buf(a->link, SB_GUEST_FAILED, a->id, &b);
	sb_buf_free(&b);
}

char *
guest_text(struct sb_cursor *c)
{
	size_t len = 0;
	const uint8_t *s = sb_cursor_bytes(c, SB_GUEST_FRAME_MAX, &len);

	return s && !c->bad && !memchr(s, 0, len) ? strndup((const char *)s, len) : NULL;
}

char **
guest_list(struct sb_cursor *c, size_t max)
{
	uint64_t n = sb_cursor_varint(c);
	char **v, *text;

	if (c->bad || n > max || n > sb_cursor_left(c))
		return NULL;
	v = malloc((n + 1) * sizeof *v + sb_cursor_left(c) + n);
	if (!v)
		return NULL;
	text = (char *)(v + n + 1);
	for (uint64_t i = 0; i < n; i++) {
		size_t len = 0;
		const uint8_t *s = sb_cursor_bytes(c, SB_GUEST_FRAME_MAX, &len);

		if (!s || c->bad || memchr(s, 0, len)) {
			free(v);
			return NULL;
		}
		memcpy(text, s, len);
		text[len] = '\0';
		v[i] = text;
		text += len + 1;
	}
	v[n] = NULL;
	return v;
}

static void
handle(struct guest_link *l, const uint8_t *data, size_t len)
{
	struct guest_ask a = { .link = l };

	sb_cursor_init(&a.c, data, len);
	a.what = sb_cursor_u8(&a.c);
	a.id = sb_cursor_u32(&a.c);
	if (a.what == SB_GUEST_CREDIT) {
		guest_proc_credit(l, a.id, sb_cursor_varint(&a.c));
	} else if (a.what == SB_GUEST_LEAVE) {
		guest_proc_leave(l, a.id);
		guest_file_leave(l, a.id);
		guest_watch_leave(l, a.id);
	} else if (a.what <= SB_GUEST_PROCS) {
		guest_proc_ask(&a);
	} else if (a.what == SB_GUEST_WATCH) {
		guest_watch_ask(&a);
	} else {
		guest_file_ask(&a);
	}
}

/* False: the link is over. */
static bool
read_link(struct guest_link *l)
{
	uint8_t *room = sb_buf_reserve(&l->in, SB_GUEST_DATA_MAX);
	ssize_t n = room ? recv(l->fd, room, SB_GUEST_DATA_MAX, MSG_DONTWAIT) : 0;
	size_t at = 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return true;
	if (n <= 0)
		return false;
	sb_buf_grow(&l->in, (size_t)n);
	while (l->in.len - at >= SB_GUEST_HEAD) {
		const uint8_t *p = l->in.data + at;
		uint32_t len = (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 |
			(uint32_t)p[3] << 24;

		if (len < 5 || len > SB_GUEST_FRAME_MAX)
			return false;
		if (l->in.len - at < 4 + (size_t)len)
			break;
		handle(l, p + 4, len);
		at += 4 + (size_t)len;
	}
	sb_buf_consume(&l->in, at);
	return true;
}

/* Writes what can be written. False: the link is over. */
static bool
write_link(struct guest_link *l)
{
	bool ok = true;
	ssize_t n;

	(void)pthread_mutex_lock(&guest_mu);
	ok = !l->out.failed;
	while (ok && l->out.len > 0) {
		n = send(l->fd, l->out.data, l->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n <= 0) {
			ok = n < 0 && (errno == EAGAIN || errno == EINTR);
			break;
		}
		sb_buf_consume(&l->out, (size_t)n);
	}
	(void)pthread_mutex_unlock(&guest_mu);
	return ok;
}

static void
add_link(int fd)
{
	struct guest_link *l = calloc(1, sizeof *l);
	struct sb_buf hello;

	if (!l) {
		(void)close(fd);
		return;
	}
	l->fd = fd;
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	sb_buf_init(&l->in, 4 * SB_GUEST_FRAME_MAX);
	sb_buf_init(&l->out, OUT_MAX);
	l->next = links;
	links = l;
	sb_buf_init(&hello, 16);
	sb_buf_add_varint(&hello, SB_GUEST_VERSION);
	guest_send_buf(l, SB_GUEST_HELLO, 0, &hello);
	sb_buf_free(&hello);
}

/* The host has gone: what it had of this link ends, its programs go on. */
static void
end_link(struct guest_link *l)
{
	guest_proc_leave(l, 0);
	guest_file_leave(l, 0);
	guest_watch_leave(l, 0);
	(void)close(l->fd);
	l->fd = -1;
	(void)pthread_mutex_lock(&guest_mu);
	l->gone = true;
	(void)pthread_mutex_unlock(&guest_mu);
}

static void
free_links(void)
{
	for (struct guest_link **p = &links; *p;) {
		struct guest_link *l = *p;
		bool idle;

		(void)pthread_mutex_lock(&guest_mu);
		idle = l->gone && l->refs == 0;
		(void)pthread_mutex_unlock(&guest_mu);
		if (!idle) {
			p = &l->next;
			continue;
		}
		*p = l->next;
		sb_buf_free(&l->in);
		sb_buf_free(&l->out);
		free(l);
	}
}

/* Somebody brings a link along. */
static void
accept_link(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC), got = -1;
	char c;
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} u;
	struct iovec io = { &c, 1 };
	struct msghdr m = { .msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = u.space,
		.msg_controllen = sizeof u.space };
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct cmsghdr *h;
	size_t n = 0;

	if (fd < 0)
		return;
	for (struct guest_link *l = links; l; l = l->next)
		n++;
	/* Who comes sends at once; nobody is waited for. */
	if (n < SB_GUEST_LINKS_MAX && poll(&p, 1, 1000) == 1 &&
		recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC) == 1 && (h = CMSG_FIRSTHDR(&m)) &&
		h->cmsg_type == SCM_RIGHTS)
		memcpy(&got, CMSG_DATA(h), sizeof got);
	if (got >= 0) {
		add_link(got);
		(void)!write(fd, "k", 1);
	}
	(void)close(fd);
}

static bool
address(const char *path, struct sockaddr_un *a)
{
	*a = (struct sockaddr_un){ .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof a->sun_path)
		return false;
	memcpy(a->sun_path, path, strlen(path) + 1);
	return true;
}

/* One round of waiting and working. */
static void
serve_once(int listener, int sigs)
{
	static struct pollfd p[POLL_MAX];
	struct guest_link *of[SB_GUEST_LINKS_MAX + 4];
	size_t n = 0, first, n_procs;
	struct signalfd_siginfo si;
	uint64_t count;

	p[n++] = (struct pollfd){ .fd = listener, .events = POLLIN };
	p[n++] = (struct pollfd){ .fd = sigs, .events = POLLIN };
	p[n++] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	p[n++] = (struct pollfd){ .fd = guest_watch_fd(), .events = POLLIN };
	first = n;
	for (struct guest_link *l = links; l && n - first < SB_GUEST_LINKS_MAX; l = l->next) {
		bool out, full;

		(void)pthread_mutex_lock(&guest_mu);
		out = l->out.len > 0;
		full = l->out.len > OUT_HIGH;
		(void)pthread_mutex_unlock(&guest_mu);
		of[n - first] = l;
		p[n++] = (struct pollfd){ .fd = l->fd,
			.events = (short)((full ? 0 : POLLIN) | (out ? POLLOUT : 0)) };
	}
	n_procs = guest_proc_poll(p + n, POLL_MAX - n);
	if (poll(p, n + n_procs, guest_proc_wait()) < 0)
		return;
	if (p[2].revents)
		(void)!read(wake_fd, &count, sizeof count);
	for (size_t i = first; i < n; i++) {
		struct guest_link *l = of[i - first];
		bool ok = l->fd >= 0;

		if (ok && (p[i].revents & (POLLIN | POLLHUP | POLLERR)))
			ok = read_link(l);
		if (ok)
			ok = write_link(l);
		if (!ok && l->fd >= 0)
			end_link(l);
	}
	guest_proc_ready(p + n, n_procs);
	if (p[1].revents)
		while (read(sigs, &si, sizeof si) == (ssize_t)sizeof si)
			;
	guest_proc_reap();
	if (p[3].revents)
		guest_watch_ready();
	if (p[0].revents)
		accept_link(listener);
	for (struct guest_link *l = links; l; l = l->next)
		if (l->fd >= 0 && !write_link(l))
			end_link(l);
	free_links();
}

/* PATH is "-" where there is no box: it is not found again, and ends with its first link. */
int
helper_main_guest(int argc, char **argv)
{
	struct sockaddr_un a;
	sigset_t set;
	int listener = -1, sigs, null;
	bool alone;

	if (argc != 2 || !address(argv[1], &a))
		return SB_HELPER_FAILED;
	alone = strcmp(argv[1], "-") == 0;
	(void)umask(022);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigprocmask(SIG_SETMASK, &set, NULL);
	sigs = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	/* Nothing of the workspace stays open, so that it can be exchanged. */
	if (sigs < 0 || wake_fd < 0 || chdir("/") < 0)
		return helper_fail("guest");
	if (!alone) {
		(void)unlink(argv[1]);
		listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (listener < 0 || bind(listener, (struct sockaddr *)&a, sizeof a) < 0 ||
			chmod(argv[1], 0600) < 0 || listen(listener, 16) < 0)
			return helper_fail("guest");
	}
	add_link(fcntl(0, F_DUPFD_CLOEXEC, 10));
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || dup2(null, 0) < 0)
		return helper_fail("guest");
	while (!alone || links)
		serve_once(listener, sigs);
	return 0;
}

int
helper_main_guest_link(int argc, char **argv)
{
	struct sockaddr_un a;
	char c = 'l';
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
	} u = { 0 };
	struct iovec io = { &c, 1 };
	struct msghdr m = { .msg_iov = &io,
		.msg_iovlen = 1,
		.msg_control = u.space,
		.msg_controllen = sizeof u.space };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), link = 0;

	if (argc != 2 || !address(argv[1], &a) || fd < 0)
		return SB_HELPER_FAILED;
	if (connect(fd, (struct sockaddr *)&a, sizeof a) < 0)
		return SB_HELPER_NOTFOUND;
	u.head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof link),
		.cmsg_level = SOL_SOCKET,
		.cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(&u.head), &link, sizeof link);
	if (sendmsg(fd, &m, MSG_NOSIGNAL) != 1 || read(fd, &c, 1) != 1)
		return SB_HELPER_NOTFOUND;
	return 0;
}
