/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/filepool.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/path.h>
#include <base/spawn.h>
#include <host/files/confine.h>
#include <host/files/files-wire.h>

/* How long a worker may take to remove a half-written file when it is told to end. */
#define GRACE_MS 50
/* A wait for a worker looks so often whether the call is still wanted. */
#define LOOK_MS 5
#define SMALL 8192
#define TRIES 3

void
sb_filepool_init(struct sb_filepool *p)
{

	*p = (struct sb_filepool){ 0 };
	(void)pthread_mutex_init(&p->mu, NULL);
	sb_cond_init(&p->cv);
}

void
sb_filepool_free(struct sb_filepool *p)
{
	sb_filepool_end(p);
	(void)pthread_cond_destroy(&p->cv);
	(void)pthread_mutex_destroy(&p->mu);
}

/* Ends the process, and counts it out. */
static void
stop(struct sb_filepool *p, struct sb_filepool_worker *w)
{
	(void)close(w->sock);
	sb_child_stop(&w->child, GRACE_MS);
	free(w);
	(void)pthread_mutex_lock(&p->mu);
	p->n--;
	(void)pthread_cond_broadcast(&p->cv);
	(void)pthread_mutex_unlock(&p->mu);
}

/* Takes those out of the list that have waited since before `than`; all of `mu` held. */
static struct sb_filepool_worker *
take_older(struct sb_filepool *p, int64_t than)
{
	struct sb_filepool_worker *out = NULL, **at = &p->idle;

	while (*at) {
		struct sb_filepool_worker *w = *at;

		if (w->idle_since > than && !sb_child_ended(&w->child)) {
			at = &w->next;
			continue;
		}
		*at = w->next;
		w->next = out;
		out = w;
		p->n_idle--;
	}
	return out;
}

unsigned
sb_filepool_trim(struct sb_filepool *p, int64_t ms)
{
	struct sb_filepool_worker *w, *next;
	unsigned left;

	(void)pthread_mutex_lock(&p->mu);
	w = take_older(p, sb_now_ms() - ms);
	(void)pthread_mutex_unlock(&p->mu);
	/* All are told before one is waited for. */
	for (next = w; next; next = next->next)
		(void)kill(next->child.pid, SIGTERM);
	for (; w; w = next) {
		next = w->next;
		stop(p, w);
	}
	(void)pthread_mutex_lock(&p->mu);
	left = p->n;
	(void)pthread_mutex_unlock(&p->mu);
	return left;
}

void
sb_filepool_renew(struct sb_filepool *p)
{
	(void)pthread_mutex_lock(&p->mu);
	p->gen++;
	(void)pthread_mutex_unlock(&p->mu);
}

void
sb_filepool_end(struct sb_filepool *p)
{
	(void)sb_filepool_trim(p, 0);
}

/* SB_E_CANCELED, SB_E_TIMEOUT, or 0. */
static int
alive(const struct sb_filepool_call *c, struct sb_error *err)
{
	if (sb_cancel_requested(c->kill) || (c->call && sb_cancel_requested(c->call->cancel)))
		return sb_fail(err, SB_E_CANCELED, "tool call: canceled");
	if (sb_deadline_passed(c->deadline) || (c->call && sb_deadline_passed(c->call->deadline)))
		return sb_fail(err, SB_E_TIMEOUT, "tool call: deadline passed");
	return 0;
}

/* Waits for the socket, or for the end of the call. */
static int
await(int sock, short events, const struct sb_filepool_call *c, struct sb_error *err)
{
	sb_deadline d = c->call ? sb_deadline_min(c->deadline, c->call->deadline) : c->deadline;
	struct pollfd p[] = {
		{ .fd = sock, .events = events },
		{ .fd = sb_cancel_fd(c->kill), .events = POLLIN },
		{ .fd = c->call ? sb_cancel_fd(c->call->cancel) : -1, .events = POLLIN },
	};

	if (poll(p, sizeof p / sizeof p[0], sb_deadline_poll_ms(d)) < 0 && errno != EINTR)
		return sb_fail_errno(err, "poll");
	return p[0].revents ? 0 : alive(c, err);
}

static struct sb_filepool_worker *
start(const struct sb_filepool_call *c, struct sb_error *err)
{
	const char *const env[] = { "PATH=/usr/bin:/bin", "LC_ALL=C", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct sb_filepool_worker *w = calloc(1, sizeof *w);
	int pair[2], r;

	if (!w || socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0) {
		(void)sb_fail_errno(err, "start a worker");
		free(w);
		return NULL;
	}
	o.io[0] = SB_SPAWN_FD;
	o.fds[0] = pair[1];
	o.env = env;
	o.cwd = "/";
	o.new_session = true;
	r = sb_spawn(c->argv, &o, &w->child, err);
	(void)close(pair[1]);
	if (r == 0) {
		w->sock = pair[0];
		return w;
	}
	(void)close(pair[0]);
	free(w);
	(void)sb_wrap(err, SB_E_RUNTIME, "start a worker for tools");
	return NULL;
}

/* One that waits, or a new one, or one that another call lets go. */
static struct sb_filepool_worker *
take(struct sb_filepool *p, const struct sb_filepool_call *c, bool *fresh, struct sb_error *err)
{
	struct sb_filepool_worker *w = NULL;
	uint64_t gen;
	int r = alive(c, err);

	(void)pthread_mutex_lock(&p->mu);
	while (r == 0 && !(w = p->idle) && p->n >= SB_FILEPOOL_WORKERS) {
		sb_cond_wait_until(&p->cv, &p->mu, sb_deadline_in(LOOK_MS));
		r = alive(c, err);
	}
	*fresh = r == 0 && !w;
	if (w && r == 0) {
		p->idle = w->next;
		p->n_idle--;
	} else if (*fresh) {
		p->n++;
	}
	gen = p->gen;
	(void)pthread_mutex_unlock(&p->mu);
	if (!*fresh && r == 0 && w->gen != gen) {
		stop(p, w);
		return take(p, c, fresh, err);
	}
	if (!*fresh)
		return r == 0 ? w : NULL;
	w = start(c, err);
	if (w)
		w->gen = gen;
	if (!w) {
		(void)pthread_mutex_lock(&p->mu);
		p->n--;
		(void)pthread_cond_broadcast(&p->cv);
		(void)pthread_mutex_unlock(&p->mu);
	}
	return w;
}

static void
give_back(struct sb_filepool *p, struct sb_filepool_worker *w)
{
	bool keep;

	(void)pthread_mutex_lock(&p->mu);
	keep = p->n_idle < SB_FILEPOOL_IDLE;
	if (keep) {
		w->idle_since = sb_now_ms();
		w->next = p->idle;
		p->idle = w;
		p->n_idle++;
		(void)pthread_cond_signal(&p->cv);
	}
	(void)pthread_mutex_unlock(&p->mu);
	if (!keep)
		stop(p, w);
}

/* Moves past the first `n` bytes. */
static void
advance(struct msghdr *m, size_t n)
{
	while (m->msg_iovlen > 0 && n >= m->msg_iov->iov_len) {
		n -= m->msg_iov->iov_len;
		m->msg_iov++;
		m->msg_iovlen--;
	}
	if (m->msg_iovlen > 0) {
		m->msg_iov->iov_base = (char *)m->msg_iov->iov_base + n;
		m->msg_iov->iov_len -= n;
	}
}

/* SB_E_CLOSED: the worker is gone. */
static int
send_call(const struct sb_filepool_worker *w, const struct sb_filepool_call *c, int dir,
	struct sb_error *err)
{
	sb_deadline d = c->call ? sb_deadline_min(c->deadline, c->call->deadline) : c->deadline;
	struct sb_files_call head = { .magic = SB_FILES_MAGIC,
		.tool_bytes = (uint32_t)strlen(c->tool),
		.root_bytes = (uint32_t)strlen(c->root),
		.dir_bytes = (uint32_t)strlen(c->dir),
		.params_bytes = (uint32_t)strlen(c->params),
		.timeout_ms = d == SB_NEVER ? 0 :
			d > sb_now_ms()     ? d - sb_now_ms() :
					      1,
		.text_max = c->text_max && c->text_max < SB_FILES_TEXT_MAX ? c->text_max :
									     SB_FILES_TEXT_MAX };
	struct iovec v[] = { { &head, sizeof head },
		{ (void *)(uintptr_t)c->tool, head.tool_bytes },
		{ (void *)(uintptr_t)c->root, head.root_bytes },
		{ (void *)(uintptr_t)c->dir, head.dir_bytes },
		{ (void *)(uintptr_t)c->params, head.params_bytes } };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct msghdr m = { .msg_iov = v,
		.msg_iovlen = sizeof v / sizeof v[0],
		.msg_control = &control,
		.msg_controllen = sizeof control };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int r = 0;

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &dir, sizeof dir);
	while (r == 0 && m.msg_iovlen > 0) {
		ssize_t n = sendmsg(w->sock, &m, MSG_NOSIGNAL | MSG_DONTWAIT);

		if (n >= 0) {
			advance(&m, (size_t)n);
			m.msg_control = NULL;
			m.msg_controllen = 0;
		} else if (errno == EAGAIN) {
			r = await(w->sock, POLLOUT, c, err);
		} else if (errno != EINTR) {
			r = sb_fail(err, SB_E_CLOSED, "the worker is gone");
		}
	}
	return r;
}

/* Fills `v` as far as bytes are there, at least `least`. Returns how many, or SB_E_CLOSED. */
static ssize_t
receive(const struct sb_filepool_worker *w, const struct sb_filepool_call *c, struct iovec *v,
	size_t n_v, size_t least, struct sb_error *err)
{
	struct msghdr m = { .msg_iov = v, .msg_iovlen = n_v };
	size_t got = 0;

	while (got < least) {
		ssize_t n;
		int r = await(w->sock, POLLIN, c, err);

		if (r < 0)
			return r;
		n = recvmsg(w->sock, &m, MSG_DONTWAIT);
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (n <= 0)
			return sb_fail(err, SB_E_CLOSED, "the worker is gone");
		got += (size_t)n;
		advance(&m, (size_t)n);
	}
	return (ssize_t)got;
}

/* The codes that a tool may answer with; the host says everything else itself. */
static bool
may_say(int code)
{
	return code == 0 || code == SB_FILES_STALE || code == SB_E_INVAL || code == SB_E_NOMEM ||
		code == SB_E_TIMEOUT || code == SB_E_TOOL_UNKNOWN || code == SB_E_SYS ||
		code == SB_E_DENIED || code == SB_E_NOTFOUND || code == SB_E_FULL;
}

static int
bad_answer(struct sb_error *err)
{
	return sb_fail(err, SB_E_PROTO, "the worker answers nonsense");
}

/* Fills `out`; returns the code of the answer, or an error of the way. */
static int
read_answer(const struct sb_filepool_worker *w, const struct sb_filepool_call *c,
	struct sb_files_answer *a, struct sb_filepool_answer *out, struct sb_error *err)
{
	char small[SMALL];
	struct iovec v[] = { { a, sizeof *a }, { small, sizeof small } };
	ssize_t n = receive(w, c, v, 2, sizeof *a, err);
	size_t have;

	if (n < 0)
		return (int)n;
	have = (size_t)n - sizeof *a;
	if (a->magic != SB_FILES_MAGIC || a->bytes > SB_FILES_TEXT_MAX || have > a->bytes ||
		!may_say(a->code) || (a->code < 0 && a->bytes >= sizeof err->msg))
		return bad_answer(err);
	out->text = malloc((size_t)a->bytes + 1);
	if (!out->text)
		return sb_fail(err, SB_E_NOMEM, "tool call");
	memcpy(out->text, small, have);
	if (have < a->bytes) {
		struct iovec rest = { out->text + have, a->bytes - have };

		n = receive(w, c, &rest, 1, a->bytes - have, err);
		if (n < 0)
			return (int)n;
	}
	out->len = a->bytes;
	out->text[out->len] = '\0';
	out->is_error = a->flags & SB_FILES_IS_ERROR;
	out->truncated = a->flags & SB_FILES_TRUNCATED;
	out->landlock = a->flags & SB_FILES_LANDLOCK;
	out->seccomp = a->flags & SB_FILES_SECCOMP;
	return a->code < 0 ? sb_fail(err, a->code, "%s", out->text) : a->code;
}

/* A worker that ended in the middle of a call: what it ran into is the result of the call. */
static int
died(struct sb_filepool_worker *w, const struct sb_filepool_call *c, struct sb_filepool_answer *out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	int code;

	(void)sb_child_wait(&w->child, NULL, sb_deadline_in(GRACE_MS), NULL);
	code = w->child.reaped ? sb_child_exit_code(&w->child) : 0;
	if (code <= 128)
		return sb_fail(err, SB_E_RUNTIME,
			"the worker of %s could not work (it ended with %d)", c->tool, code);
	sb_buf_init(&text, 512);
	sb_buf_addf(&text,
		"%s was ended by signal %d: it may use %llu MiB of memory; ask for less at once",
		c->tool, code - 128, SB_CONFINE_MEMORY >> 20);
	free(out->text);
	out->text = (char *)sb_buf_detach(&text, &out->len);
	out->is_error = true;
	return out->text ? 0 : sb_fail(err, SB_E_NOMEM, "tool call");
}

/* One worker's try. SB_E_CLOSED and SB_FILES_STALE: another one may do better. */
static int
try_one(struct sb_filepool *p, const struct sb_filepool_call *c, int dir,
	struct sb_filepool_answer *out, struct sb_error *err)
{
	struct sb_files_answer a = { 0 };
	bool fresh = false;
	struct sb_filepool_worker *w = take(p, c, &fresh, err);
	int r;

	if (!w)
		return err->code;
	r = !fresh && sb_child_ended(&w->child) ? sb_fail(err, SB_E_CLOSED, "the worker is gone") :
						  send_call(w, c, dir, err);
	if (r == SB_E_CLOSED && !fresh) {
		stop(p, w);
		return r;
	}
	if (r == 0)
		r = read_answer(w, c, &a, out, err);
	/* One that waited may have been ended before it saw the call. */
	if (r == SB_E_CLOSED && (fresh || !c->again))
		r = died(w, c, out, err);
	else if (a.magic == SB_FILES_MAGIC && r == a.code && r != SB_FILES_STALE &&
		!(a.flags & SB_FILES_LAST)) {
		give_back(p, w);
		return r;
	}
	stop(p, w);
	return r;
}

int
sb_filepool_run(struct sb_filepool *p, const struct sb_filepool_call *c,
	struct sb_filepool_answer *out, struct sb_error *err)
{
	struct sb_error why = { 0 };
	sb_autoclose int dir = -1;
	int r;

	*out = (struct sb_filepool_answer){ 0 };
	if (strlen(c->tool) > SB_FILES_NAME_MAX || strlen(c->root) > SB_FILES_PATH_MAX ||
		strlen(c->dir) > SB_FILES_PATH_MAX || strlen(c->params) > SB_FILES_PARAMS_MAX)
		return sb_fail(err, SB_E_LIMIT, "the parameters of %.64s are too long", c->tool);
	if (c->place)
		(void)pthread_rwlock_rdlock(c->place);
	dir = sb_path_open_root(c->workspace, err);
	if (c->place && (dir < 0 || c->again))
		(void)pthread_rwlock_unlock(c->place);
	if (dir < 0)
		return dir;
	for (int i = 0; i < TRIES; i++) {
		free(out->text);
		*out = (struct sb_filepool_answer){ 0 };
		why = (struct sb_error){ 0 };
		r = try_one(p, c, dir, out, &why);
		if (r != SB_E_CLOSED && r != SB_FILES_STALE)
			break;
	}
	if (c->place && !c->again)
		(void)pthread_rwlock_unlock(c->place);
	if (r == 0)
		return 0;
	free(out->text);
	*out = (struct sb_filepool_answer){ 0 };
	if (r == SB_E_CLOSED || r == SB_FILES_STALE)
		return sb_fail(err, SB_E_RUNTIME, "no worker takes the call");
	if (err)
		*err = why;
	return r;
}
