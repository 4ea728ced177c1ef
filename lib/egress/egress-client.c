/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/egress-client.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>

#define START_MS 15000
#define ANSWER_MS 10000
#define PROBE_MS 10000
#define STOP_MS 1000
#define LINE_MAX_BYTES 2048
#define SOCKET_NAME "egress.sock"

/* One line, without its end, from a descriptor that may be slow. */
static int
read_line(int fd, char *line, size_t size, sb_deadline d, struct sb_error *err)
{
	size_t n = 0;

	while (n + 1 < size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int ready = poll(&p, 1, sb_deadline_poll_ms(d));
		ssize_t got;

		if (ready == 0)
			return sb_fail(err, SB_E_TIMEOUT, "sb-egress does not answer");
		got = ready > 0 ? read(fd, line + n, 1) : -1;
		if (got == 0)
			return sb_fail(err, SB_E_CLOSED, "sb-egress has gone");
		if (got < 0 && errno != EINTR && errno != EAGAIN)
			return sb_fail_errno(err, "sb-egress");
		if (got == 1 && line[n++] == '\n') {
			line[n - 1] = '\0';
			return 0;
		}
	}
	return sb_fail(err, SB_E_PROTO, "sb-egress says too much");
}

/* By way of the directory's descriptor, as the path of a socket must be short. */
static int
dial(const char *dir, struct sb_error *err)
{
	sb_autoclose int at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	sb_autoclose int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	if (at < 0 || fd < 0)
		return sb_fail_errno(err, "egress proxy of %s", dir);
	(void)snprintf(un.sun_path, sizeof un.sun_path, "/proc/self/fd/%d/" SOCKET_NAME, at);
	if (connect(fd, (struct sockaddr *)&un, sizeof un) < 0)
		return sb_fail(err, SB_E_CLOSED, "egress proxy of %s: %s", dir, strerror(errno));
	return sb_steal_fd(&fd);
}

static int
text_fd(const char *text, struct sb_error *err)
{
	sb_autoclose int fd = memfd_create("policy", MFD_CLOEXEC);

	if (fd < 0)
		return sb_fail_errno(err, "memfd");
	if (sb_file_write_all(fd, text, strlen(text), err) < 0 || lseek(fd, 0, SEEK_SET) < 0)
		return SB_E_SYS;
	return sb_steal_fd(&fd);
}

static int
spawn(const struct sb_egress_client_opts *o, struct sb_child *out, struct sb_error *err)
{
	sb_autoclose int policy = text_fd(o->policy, err);
	struct sb_spawn_opts s = SB_SPAWN_OPTS_INIT;
	const char *const env[] = { "PATH=/usr/bin:/bin", NULL };
	const char *argv[16] = { o->program, "serve", "-s", o->session, "-c", SOCKET_NAME };
	char pid[16];
	size_t n = 6;

	if (policy < 0)
		return policy;
	(void)snprintf(pid, sizeof pid, "%d", (int)o->pid);
	if (o->pid) {
		argv[n++] = "-p";
		argv[n++] = pid;
	}
	if (o->resolver) {
		argv[n++] = "-r";
		argv[n++] = o->resolver;
	}
	s.io[0] = SB_SPAWN_FD;
	s.fds[0] = policy;
	s.io[1] = s.io[2] = SB_SPAWN_PIPE;
	s.env = env;
	s.cwd = o->dir;
	s.new_session = true;
	return sb_spawn(argv, &s, out, err);
}

/* What it said before it gave up, as the error; its name is in it. */
static int
fail_with_words(struct sb_child *c, struct sb_error *err)
{
	char line[300] = "";

	if (c->errfd < 0 ||
		read_line(c->errfd, line, sizeof line, sb_deadline_in(ANSWER_MS), NULL) < 0 ||
		!line[0])
		return sb_fail(err, SB_E_UNSUPPORTED, "sb-egress ended at once");
	return sb_fail(err, SB_E_UNSUPPORTED, "%s", line);
}

int
sb_egress_client_start(struct sb_egress_client *c, const struct sb_egress_client_opts *o,
	char *netns, size_t netns_size, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(START_MS);
	char line[LINE_MAX_BYTES];
	int r, fd;

	sb_egress_client_stop(c);
	r = spawn(o, &c->child, err);
	if (r < 0)
		return r;
	c->ours = true;
	r = read_line(c->child.out, line, sizeof line, d, err);
	if (r == SB_E_CLOSED || (r == 0 && sscanf(line, "ready %d", &fd) != 1))
		r = fail_with_words(&c->child, err);
	if (r == 0)
		r = sb_egress_client_connect(c, o->dir, err);
	if (r < 0) {
		sb_egress_client_stop(c);
		return r;
	}
	(void)close(c->child.out);
	(void)close(c->child.errfd);
	c->child.out = c->child.errfd = -1;
	(void)snprintf(netns, netns_size, "/proc/%d/fd/%d", (int)c->child.pid, fd);
	return 0;
}

int
sb_egress_client_connect(struct sb_egress_client *c, const char *dir, struct sb_error *err)
{
	if (c->control >= 0)
		(void)close(c->control);
	c->control = dial(dir, err);
	return c->control < 0 ? c->control : 0;
}

/* Without a signal when nobody reads any more. */
static int
send_all(int fd, const char *data, size_t len, struct sb_error *err)
{
	while (len > 0) {
		ssize_t n = send(fd, data, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail(err, SB_E_CLOSED, "sb-egress has gone: %s", strerror(errno));
		data += n;
		len -= (size_t)n;
	}
	return 0;
}

/* The answer to a command; one that tells of an error becomes ours. */
static int
ask(struct sb_egress_client *c, const char *head, const char *body, char *line, size_t size,
	struct sb_error *err)
{
	int r = c->control < 0 ? sb_fail(err, SB_E_CLOSED, "sb-egress has gone") :
				 send_all(c->control, head, strlen(head), err);

	if (r == 0 && body)
		r = send_all(c->control, body, strlen(body), err);
	if (r == 0)
		r = read_line(c->control, line, size, sb_deadline_in(ANSWER_MS), err);
	if (r < 0)
		return r;
	return sb_str_starts(line, "{\"ok\":true") ?
		0 :
		sb_fail(err, SB_E_INVAL, "sb-egress: %.400s", line);
}

int
sb_egress_client_watch(struct sb_egress_client *c, pid_t pid, struct sb_error *err)
{
	char line[LINE_MAX_BYTES], head[40];

	(void)snprintf(head, sizeof head, "watch %d\n", (int)pid);
	return ask(c, head, NULL, line, sizeof line, err);
}

int
sb_egress_client_policy(struct sb_egress_client *c, const char *text, size_t *cut,
	struct sb_error *err)
{
	char line[LINE_MAX_BYTES], head[40];
	int r;

	(void)snprintf(head, sizeof head, "policy %zu\n", strlen(text));
	r = ask(c, head, text, line, sizeof line, err);
	*cut = 0;
	if (r == 0)
		(void)sscanf(line, "{\"ok\":true,\"cut\":%zu}", cut);
	return r;
}

int
sb_egress_client_events(const char *dir, bool from_first, struct sb_error *err)
{
	const char *head = from_first ? "events 0\n" : "events\n";
	sb_autoclose int fd = dial(dir, err);

	if (fd < 0 || send_all(fd, head, strlen(head), err) < 0)
		return -1;
	return sb_steal_fd(&fd);
}

bool
sb_egress_client_alive(struct sb_egress_client *c)
{
	char byte;

	if (c->control < 0 || (c->ours && sb_child_ended(&c->child)))
		return false;
	/* Nothing is under way, so a byte would be as odd as an end. */
	return recv(c->control, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

void
sb_egress_client_stop(struct sb_egress_client *c)
{
	char line[LINE_MAX_BYTES];

	if (c->control >= 0)
		(void)ask(c, "quit\n", NULL, line, sizeof line, NULL);
	if (c->ours) {
		(void)sb_child_wait(&c->child, NULL, sb_deadline_in(STOP_MS), NULL);
		sb_child_stop(&c->child, 0);
	}
	c->ours = false;
	c->child = (struct sb_child)SB_CHILD_INIT;
	if (c->control >= 0)
		(void)close(c->control);
	c->control = -1;
}

void
sb_egress_client_leave(struct sb_egress_client *c)
{
	if (c->control >= 0)
		(void)close(c->control);
	if (c->child.pidfd >= 0)
		(void)close(c->child.pidfd);
	*c = (struct sb_egress_client)SB_EGRESS_CLIENT_INIT;
}

int
sb_egress_client_probe(const char *program, struct sb_error *err)
{
	const char *const argv[] = { program, "probe", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf said;
	int r;

	sb_buf_init(&said, 400);
	r = sb_child_run(argv, &o, NULL, 0, NULL, &said, NULL, sb_deadline_in(PROBE_MS), err);
	if (r == 0)
		return 0;
	said.data[strcspn((char *)said.data, "\n")] = '\0';
	return r < 0 ? sb_wrap(err, SB_E_UNSUPPORTED, "sb-egress") :
		       sb_fail(err, SB_E_UNSUPPORTED, "%s", (char *)said.data);
}
