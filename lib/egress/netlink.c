/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/netlink.h>

#include <errno.h>
#include <linux/netlink.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <base/cleanup.h>

#define ANSWER_S 5

void
sb_netlink_init(struct sb_netlink *n)
{
	memset(n, 0, sizeof *n);
}

static uint8_t *
at(struct sb_netlink *n, size_t offset)
{
	return (uint8_t *)n->buf + offset;
}

/* Zeroed room of a multiple of four bytes; NULL: full. */
static uint8_t *
room(struct sb_netlink *n, size_t len)
{
	uint8_t *p = at(n, n->len);

	len = NLMSG_ALIGN(len);
	if (n->full || len > sizeof n->buf - n->len) {
		n->full = true;
		return NULL;
	}
	memset(p, 0, len);
	n->len += len;
	return p;
}

static void
set_length(struct sb_netlink *n)
{
	struct nlmsghdr h;

	if (n->len == 0)
		return;
	memcpy(&h, at(n, n->begin), sizeof h);
	h.nlmsg_len = (uint32_t)(n->len - n->begin);
	memcpy(at(n, n->begin), &h, sizeof h);
}

void
sb_netlink_begin(struct sb_netlink *n, uint16_t type, uint16_t flags, const void *fixed, size_t len)
{
	struct nlmsghdr h = { .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags };
	uint8_t *p;

	set_length(n);
	n->begin = n->len;
	p = room(n, sizeof h + len);
	if (p) {
		memcpy(p, &h, sizeof h);
		memcpy(p + sizeof h, fixed, len);
	}
}

void
sb_netlink_put(struct sb_netlink *n, uint16_t type, const void *data, size_t len)
{
	struct nlattr a = { .nla_len = (uint16_t)(sizeof a + len), .nla_type = type };
	uint8_t *p = room(n, sizeof a + len);

	if (p) {
		memcpy(p, &a, sizeof a);
		if (len > 0)
			memcpy(p + sizeof a, data, len);
	}
}

void
sb_netlink_put_u32(struct sb_netlink *n, uint16_t type, uint32_t v)
{
	sb_netlink_put(n, type, &v, sizeof v);
}

void
sb_netlink_put_str(struct sb_netlink *n, uint16_t type, const char *s)
{
	sb_netlink_put(n, type, s, strlen(s) + 1);
}

void
sb_netlink_put_raw(struct sb_netlink *n, const void *data, size_t len)
{
	uint8_t *p = room(n, len);

	if (p)
		memcpy(p, data, len);
}

size_t
sb_netlink_open(struct sb_netlink *n, uint16_t type)
{
	size_t mark = n->len;

	sb_netlink_put(n, type | NLA_F_NESTED, NULL, 0);
	return mark;
}

void
sb_netlink_shut(struct sb_netlink *n, size_t mark)
{
	struct nlattr a;

	if (n->full)
		return;
	memcpy(&a, at(n, mark), sizeof a);
	a.nla_len = (uint16_t)(n->len - mark);
	memcpy(at(n, mark), &a, sizeof a);
}

/* Reads answers until `acks` have come or one tells of a failure. */
static int
await(int fd, int acks, const char *what, struct sb_error *err)
{
	uint32_t buf[2048];

	while (acks > 0) {
		ssize_t got = recv(fd, buf, sizeof buf, 0);
		size_t left = got > 0 ? (size_t)got : 0, pos = 0;
		struct nlmsghdr h;
		int code;

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return sb_fail_errno(err, "%s", what);
		for (; left >= sizeof h + sizeof code; acks--) {
			memcpy(&h, (uint8_t *)buf + pos, sizeof h);
			if (h.nlmsg_type != NLMSG_ERROR || h.nlmsg_len < sizeof h ||
				NLMSG_ALIGN(h.nlmsg_len) > left)
				break;
			memcpy(&code, (uint8_t *)buf + pos + sizeof h, sizeof code);
			if (code != 0) {
				errno = -code;
				return sb_fail_errno(err, "%s", what);
			}
			pos += NLMSG_ALIGN(h.nlmsg_len);
			left -= NLMSG_ALIGN(h.nlmsg_len);
		}
	}
	return 0;
}

int
sb_netlink_send(struct sb_netlink *n, int protocol, int acks, const char *what,
	struct sb_error *err)
{
	sb_autoclose int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
	const struct timeval tv = { .tv_sec = ANSWER_S };

	set_length(n);
	if (n->full)
		return sb_fail(err, SB_E_FULL, "%s: message too long", what);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof tv) < 0 ||
		send(fd, n->buf, n->len, 0) != (ssize_t)n->len)
		return sb_fail_errno(err, "%s", what);
	return await(fd, acks, what, err);
}
