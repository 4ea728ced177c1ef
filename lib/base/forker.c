/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/forker.h>

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <sb/cancel.h>

#define ANSWER_MS 20000

static void
add_texts(struct sb_buf *b, const char *const *v, uint32_t *n)
{
	for (*n = 0; v[*n]; (*n)++)
		sb_buf_add(b, v[*n], strlen(v[*n]) + 1);
}

static bool
send_head(int sock, const struct sb_forker_order *head, const int *fds)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(SB_FORKER_FDS * sizeof(int))];
	} control = { 0 };
	struct iovec v = { (void *)(uintptr_t)head, sizeof *head };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(SB_FORKER_FDS * sizeof(int));
	memcpy(CMSG_DATA(h), fds, SB_FORKER_FDS * sizeof(int));
	return sendmsg(sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *head;
}

/* Sends or receives all of it, or not. */
static bool
pass(int sock, bool out, void *data, size_t len)
{
	sb_deadline d = sb_deadline_in(ANSWER_MS);
	char *p = data;

	while (len > 0) {
		struct pollfd f = { .fd = sock, .events = out ? POLLOUT : POLLIN };
		ssize_t n = out ? send(sock, p, len, MSG_NOSIGNAL | MSG_DONTWAIT) :
				  recv(sock, p, len, MSG_DONTWAIT);

		if (n > 0) {
			p += n;
			len -= (size_t)n;
		} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
			return false;
		} else if (poll(&f, 1, sb_deadline_poll_ms(d)) == 0 || sb_deadline_passed(d)) {
			return false;
		}
	}
	return true;
}

pid_t
sb_forker_start(int control, const char *const *argv, const char *const *env,
	const int fds[SB_FORKER_FDS], bool leads, bool tied, struct sb_error *err)
{
	struct sb_forker_order head = { .host = (uint32_t)getpid(), .leads = leads, .tied = tied };
	sb_auto(sb_buf) struct sb_buf text;
	int32_t pid;
	int r;

	sb_buf_init(&text, SB_FORKER_BYTES_MAX);
	add_texts(&text, argv, &head.argc);
	add_texts(&text, env, &head.envc);
	r = sb_buf_check(&text, "command", err);
	if (r < 0)
		return r;
	if (head.argc > SB_FORKER_ARGS_MAX || head.envc > SB_FORKER_ARGS_MAX)
		return sb_fail(err, SB_E_LIMIT, "command: more than %u arguments",
			SB_FORKER_ARGS_MAX);
	head.bytes = (uint32_t)text.len;
	if (!send_head(control, &head, fds))
		return sb_fail(err, SB_E_CLOSED, "the forker is gone");
	if (!pass(control, true, text.data, text.len) || !pass(control, false, &pid, sizeof pid))
		return sb_fail(err, SB_E_CHILD, "start %s: the process that starts it went away",
			argv[0]);
	if (pid < 0) {
		errno = -pid;
		return sb_fail_errno(err, "start %s: fork", argv[0]);
	}
	return pid;
}
