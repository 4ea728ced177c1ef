/* SPDX-License-Identifier: MIT */
/* Connects the host to a port inside a box, by a relay that the helper runs in there. */
#include "config.h"

#include <host/runtime/box.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/str.h>
#include <host/runtime/proctree.h>

/* 0, or SB_E_UNSUPPORTED: the session shares its network with others. */
static int
own_network(const struct sb_box *box, struct sb_error *err)
{
	if (box->network != SB_HOST_NET_HOST && box->network != SB_HOST_NET_SANDBOX)
		return 0;
	return sb_fail(err, SB_E_UNSUPPORTED, "with network %s a session has no ports of its own",
		sb_host_network_name(box->network));
}

static void *
reap(void *arg)
{
	struct sb_child *c = arg;

	(void)sb_child_wait(c, NULL, SB_NEVER, NULL);
	sb_child_stop(c, 0);
	free(c);
	return NULL;
}

/* The relay ends with its connection, whenever that is: a thread waits for it. */
static int
reap_later(const struct sb_child *c, struct sb_error *err)
{
	struct sb_child *copy = malloc(sizeof *copy);
	pthread_t th;

	if (copy) {
		*copy = *c;
		if (pthread_create(&th, NULL, reap, copy) == 0) {
			(void)pthread_detach(th);
			return 0;
		}
		free(copy);
	}
	return sb_fail(err, SB_E_NOMEM, "connect");
}

/* The relay says '+' once it is connected. */
static int
await_plus(int fd, unsigned port, sb_deadline d, struct sb_error *err)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char c = 0;
	int r;

	do
		r = poll(&p, 1, sb_deadline_poll_ms(d));
	while (r < 0 && errno == EINTR);
	if (r == 0)
		return sb_fail(err, SB_E_TIMEOUT, "port %u of the session does not answer", port);
	if (read(fd, &c, 1) != 1 || c != '+')
		return sb_fail(err, SB_E_UNAVAILABLE, "nothing listens on port %u of the session",
			port);
	return 0;
}

/* `l` leads into the box; adds what dials and relays there, and starts it. */
static int
dial(struct sb_strlist *l, const char *mark, unsigned port, sb_deadline d, int *out_fd,
	struct sb_error *err)
{
	sb_autofree char *env_mark = sb_str_printf("%s=%s", SB_PROCTREE_MARK, mark ? mark : "");
	const char *const env[] = { env_mark, "PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_autoclose int ours = -1;
	sb_autoclose int theirs = -1;
	struct sb_child c;
	int pair[2], r;

	sb_strlist_add_all(l, (const char *[]){ SB_BOX_HELPER, "dial", NULL });
	sb_strlist_addf(l, "%u", port);
	r = env_mark ? sb_strlist_check(l, err) : sb_fail(err, SB_E_NOMEM, "connect");
	if (r == 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		r = sb_fail_errno(err, "socketpair");
	if (r < 0)
		return r;
	ours = pair[0];
	theirs = pair[1];
	o.io[0] = o.io[1] = SB_SPAWN_FD;
	o.fds[0] = o.fds[1] = theirs;
	o.env = env;
	o.cwd = "/";
	o.new_session = true;
	o.search_path = false;
	r = sb_spawn((const char *const *)l->v, &o, &c, err);
	if (r < 0)
		return r;
	r = reap_later(&c, err);
	if (r < 0) {
		sb_child_stop(&c, 0);
		return r;
	}
	(void)close(sb_steal_fd(&theirs));
	r = await_plus(ours, port, d, err);
	if (r == 0)
		*out_fd = sb_steal_fd(&ours);
	return r;
}

int
sb_box_runtime_connect(struct sb_runtime *rt, const char *session, const char *mark, pid_t leader,
	unsigned port, sb_deadline d, int *out_fd, struct sb_error *err)
{
	struct sb_box_runtime *b = (struct sb_box_runtime *)rt;
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	struct sb_box *box = sb_box_hold_running(b, session);
	int r;

	(void)leader;
	if (!box)
		return sb_fail(err, SB_E_UNAVAILABLE, "session %s runs nothing", session);
	r = own_network(box, err);
	if (r == 0)
		r = b->kind->lead_in(b, box, &l, err);
	sb_box_release(box);
	return r < 0 ? r : dial(&l, mark, port, d, out_fd, err);
}
