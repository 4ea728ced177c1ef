/* SPDX-License-Identifier: MIT */
/* The control socket: who started the proxy changes its policy here and reads its decisions. */
#include "config.h"

#include <egress/egress-priv.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/str.h>

#define LINE_MAX_BYTES 256
#define OUT_MAX (256u << 10)

static void
control_close(struct sb_egress_control *c)
{
	sb_source_leave(&c->src, c->e->ep);
	sb_source_close(&c->src);
	sb_buf_free(&c->in);
	sb_buf_free(&c->out);
}

static void
say_error(struct sb_egress_control *c, const char *msg)
{
	char quoted[SB_ERROR_MSG_MAX + 100];

	sb_buf_addf(&c->out, "{\"error\":%s}\n", sb_verdict_quote(msg, quoted, sizeof quoted));
}

static void
take_policy(struct sb_egress_control *c)
{
	struct sb_error err = { 0 };
	struct sb_netpolicy *p = sb_netpolicy_parse((const char *)c->in.data, c->policy_left, &err);

	sb_buf_consume(&c->in, c->policy_left);
	c->in_policy = false;
	if (p)
		sb_buf_addf(&c->out, "{\"ok\":true,\"cut\":%zu}\n", sb_egress_swap(c->e, p));
	else
		say_error(c, err.msg);
}

/* Ends with that process. */
static void
watch(struct sb_egress_control *c, int64_t pid)
{
	struct sb_egress *e = c->e;
	int fd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0);

	if (fd < 0) {
		say_error(c, strerror(errno));
		return;
	}
	sb_source_leave(&e->watch, e->ep);
	sb_source_close(&e->watch);
	e->watch.fd = fd;
	if (sb_source_want(&e->watch, e->ep, EPOLLIN) < 0)
		say_error(c, strerror(errno));
	else
		sb_buf_addf(&c->out, "{\"ok\":true}\n");
}

static void
say_stats(struct sb_egress_control *c)
{
	const struct sb_egress *e = c->e;

	sb_buf_addf(&c->out,
		"{\"connections\":%zu,\"buffered\":%zu,\"opened\":%" PRIu64 ",\"refused\":%" PRIu64
		",\"events\":%" PRIu64 "}\n",
		e->n_conns, e->buffered, e->opened, e->refused, sb_verdict_last(e->verdicts));
}

static void
obey(struct sb_egress_control *c, const char *line)
{
	int64_t n;

	if (strcmp(line, "quit") == 0) {
		c->e->quit = true;
		sb_buf_addf(&c->out, "{\"ok\":true}\n");
	} else if (strcmp(line, "stats") == 0) {
		say_stats(c);
	} else if (strcmp(line, "events") == 0 ||
		(sb_str_starts(line, "events ") && sb_str_to_i64(line + 7, 0, INT64_MAX - 1, &n))) {
		c->seq = line[6] ? (uint64_t)n + 1 : sb_verdict_last(c->e->verdicts) + 1;
		c->events = true;
	} else if (sb_str_starts(line, "watch ") && sb_str_to_i64(line + 6, 2, INT32_MAX, &n)) {
		watch(c, n);
	} else if (sb_str_starts(line, "policy ") &&
		sb_str_to_i64(line + 7, 0, SB_NETPOLICY_TEXT_MAX, &n)) {
		c->in_policy = true;
		c->policy_left = (size_t)n;
	} else {
		say_error(c, "not a command: policy BYTES, watch PID, events [SEQ], stats, quit");
	}
}

static void
obey_all(struct sb_egress_control *c)
{
	for (;;) {
		char *nl;

		if (c->in_policy) {
			if (c->in.len < c->policy_left)
				return;
			take_policy(c);
			continue;
		}
		nl = c->in.len ? memchr(c->in.data, '\n', c->in.len) : NULL;
		if (!nl)
			return;
		*nl = '\0';
		obey(c, (const char *)c->in.data);
		sb_buf_consume(&c->in, (size_t)(nl - (char *)c->in.data) + 1);
	}
}

static void
flush(struct sb_egress_control *c)
{
	while (c->out.len > 0) {
		ssize_t n = send(c->src.fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			control_close(c);
			return;
		}
		sb_buf_consume(&c->out, (size_t)n);
	}
	(void)sb_source_want(&c->src, c->e->ep, EPOLLIN | (c->out.len > 0 ? EPOLLOUT : 0));
}

static void
control_ready(struct sb_source *s, uint32_t events)
{
	struct sb_egress_control *c = (struct sb_egress_control *)s;
	char buf[4096];
	ssize_t n;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR)) {
		n = recv(s->fd, buf, sizeof buf, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
			control_close(c);
			return;
		}
		if (n > 0)
			sb_buf_add(&c->in, buf, (size_t)n);
		obey_all(c);
		/* Neither a line nor a policy is that long. */
		if (c->in.failed || c->out.failed ||
			(!c->in_policy && c->in.len > LINE_MAX_BYTES)) {
			control_close(c);
			return;
		}
	}
	flush(c);
}

void
sb_egress_control_accept(struct sb_source *s, uint32_t events)
{
	struct sb_egress *e = s->owner;
	int fd = accept4(s->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	(void)events;
	for (size_t i = 0; fd >= 0 && i < SB_EGRESS_CONTROLS; i++) {
		struct sb_egress_control *c = &e->control[i];

		if (c->src.fd >= 0)
			continue;
		*c = (struct sb_egress_control){ .src = { .fd = fd, .ready = control_ready },
			.e = e };
		sb_buf_init(&c->in, SB_NETPOLICY_TEXT_MAX + 8192);
		sb_buf_init(&c->out, OUT_MAX);
		e->seen_control = true;
		if (sb_source_want(&c->src, e->ep, EPOLLIN) == 0)
			return;
		control_close(c);
		return;
	}
	if (fd >= 0)
		(void)close(fd);
}

void
sb_egress_control_pump(struct sb_egress *e)
{
	for (size_t i = 0; i < SB_EGRESS_CONTROLS; i++) {
		struct sb_egress_control *c = &e->control[i];
		const char *line;

		if (c->src.fd < 0 || !c->events)
			continue;
		/* Who is behind reads on later; the ring forgets meanwhile. */
		while (c->out.len < OUT_MAX / 2 && (line = sb_verdict_line(e->verdicts, &c->seq))) {
			sb_buf_add_str(&c->out, line);
			c->seq++;
		}
		if (c->out.len > 0)
			flush(c);
	}
}

void
sb_egress_control_close(struct sb_egress *e)
{
	for (size_t i = 0; i < SB_EGRESS_CONTROLS; i++)
		if (e->control[i].src.fd >= 0)
			control_close(&e->control[i]);
}

bool
sb_egress_control_present(const struct sb_egress *e)
{
	for (size_t i = 0; i < SB_EGRESS_CONTROLS; i++)
		if (e->control[i].src.fd >= 0)
			return true;
	return false;
}
