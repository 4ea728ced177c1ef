/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/source.h>

#include <sys/epoll.h>
#include <unistd.h>

int
sb_source_want(struct sb_source *s, int epoll, uint32_t mask)
{
	struct epoll_event e = { .events = mask, .data.ptr = s };

	if (s->in && s->mask == mask)
		return 0;
	if (epoll_ctl(epoll, s->in ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &e) < 0)
		return -1;
	s->in = true;
	s->mask = mask;
	return 0;
}

void
sb_source_leave(struct sb_source *s, int epoll)
{
	if (s->in)
		(void)epoll_ctl(epoll, EPOLL_CTL_DEL, s->fd, NULL);
	s->in = false;
	s->mask = 0;
}

void
sb_source_close(struct sb_source *s)
{
	if (s->fd >= 0)
		(void)close(s->fd);
	s->fd = -1;
	s->in = false;
	s->mask = 0;
}
