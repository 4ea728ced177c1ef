/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/agent-watch.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <sync/wire/proto.h>
#include <sync/scan/notice.h>

#define QUIET_MS 50
#define BURST_MS 1000

struct sb_agent_watch {
	struct sb_notice *w;   /* NULL: this system cannot watch */
	struct sb_digest list; /* of what is watched */
	struct sb_wire *wire;
	int stopfd;
	pthread_t thread;
	bool running;
};

/*
 * A root that begins with ~/ or is relative counts from the home directory the agent was started
 * in.
 */
static char *
full_root(const uint8_t *p, size_t len)
{
	const char *home = getenv("HOME");
	sb_autofree char *root = strndup((const char *)p, len);

	if (!root)
		return NULL;
	if (strncmp(root, "~/", 2) == 0 || strcmp(root, "~") == 0)
		return sb_str_printf("%s%s", home ? home : "", root + 1);
	return strdup(*root ? root : ".");
}

static int
add_roots(struct sb_agent_watch *a, const struct sb_buf *list, struct sb_error *err)
{
	struct sb_cursor c;
	uint64_t n;
	int r = 0;

	sb_cursor_init(&c, list->data, list->len);
	n = sb_cursor_varint(&c);
	if (c.bad || n > SB_WATCH_ROOTS)
		return sb_fail(err, SB_E_PROTO, "the controller sent a damaged list of roots");
	for (uint64_t i = 0; r == 0 && i < n; i++) {
		size_t path_len, rules_len;
		const uint8_t *path = sb_cursor_bytes(&c, 1u << 20, &path_len);
		const uint8_t *enc = sb_cursor_bytes(&c, 16u << 20, &rules_len);
		sb_autofree char *root = NULL;
		struct sb_rules *rules;

		if (c.bad || memchr(path, 0, path_len))
			return sb_fail(err, SB_E_PROTO,
				"the controller sent a damaged list of roots");
		rules = sb_rules_decode(enc, rules_len, err);
		root = full_root(path, path_len);
		if (!rules || !root) {
			sb_rules_free(rules);
			return rules ? sb_fail(err, SB_E_NOMEM, "watch: out of memory") :
				       SB_E_PROTO;
		}
		if (a->w)
			r = sb_notice_add(a->w, root, rules, err);
		else
			sb_rules_free(rules);
	}
	return r;
}

static void *
look_out(void *arg)
{
	struct sb_agent_watch *a = arg;
	uint8_t partial = !a->w || sb_notice_partial(a->w);

	for (;;) {
		struct pollfd p[2] = { { .fd = a->stopfd, .events = POLLIN },
			{ .fd = a->w ? sb_notice_fd(a->w) : -1, .events = POLLIN } };

		if (poll(p, 2, -1) < 0 && errno != EINTR)
			return NULL;
		if (p[0].revents)
			return NULL;
		if (p[1].revents && sb_notice_take(a->w))
			break;
	}
	sb_notice_settle(a->w, QUIET_MS, BURST_MS, NULL);
	if (sb_wire_send(a->wire, SB_MSG_CHANGED, &partial, 1, NULL) == 0)
		(void)sb_wire_flush(a->wire, NULL);
	return NULL;
}

static void
halt(struct sb_agent_watch *a)
{
	uint64_t one = 1;

	if (!a->running)
		return;
	(void)!write(a->stopfd, &one, sizeof one);
	(void)pthread_join(a->thread, NULL);
	(void)!read(a->stopfd, &one, sizeof one);
	a->running = false;
}

void
sb_agent_watch_free(struct sb_agent_watch *a)
{
	if (!a)
		return;
	halt(a);
	sb_notice_free(a->w);
	if (a->stopfd >= 0)
		(void)close(a->stopfd);
	free(a);
}

static struct sb_agent_watch *
make(struct sb_wire *wire, const struct sb_buf *list, struct sb_error *err)
{
	struct sb_agent_watch *a = calloc(1, sizeof *a);

	if (!a) {
		sb_fail(err, SB_E_NOMEM, "watch: out of memory");
		return NULL;
	}
	a->wire = wire;
	a->list = sb_digest_of(list->data, list->len);
	a->w = sb_notice_new(NULL);
	a->stopfd = eventfd(0, EFD_CLOEXEC);
	if (a->stopfd < 0)
		sb_fail_errno(err, "watch for changes");
	if (a->stopfd < 0 || add_roots(a, list, err) < 0) {
		sb_agent_watch_free(a);
		return NULL;
	}
	return a;
}

int
sb_agent_watch_start(struct sb_agent_watch **w, struct sb_wire *wire, const struct sb_buf *list,
	struct sb_error *err)
{
	struct sb_digest d = sb_digest_of(list->data, list->len);
	int e;

	if (*w)
		halt(*w);
	if (!*w || !sb_digest_eq(&(*w)->list, &d)) {
		sb_agent_watch_free(*w);
		*w = make(wire, list, err);
		if (!*w)
			return err ? err->code : SB_E_NOMEM;
	}
	e = pthread_create(&(*w)->thread, NULL, look_out, *w);
	if (e) {
		errno = e;
		return sb_fail_errno(err, "start a thread");
	}
	(*w)->running = true;
	return 0;
}

int
sb_agent_watch_stop(struct sb_agent_watch *w, struct sb_wire *wire, struct sb_error *err)
{
	uint8_t partial = !w || !w->w || sb_notice_partial(w->w);
	int r;

	if (w)
		halt(w);
	r = sb_wire_send(wire, SB_MSG_WATCHED, &partial, 1, err);
	return r < 0 ? r : sb_wire_send_proof(wire, err);
}
