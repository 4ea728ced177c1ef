/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/fileserve.h>

#include <errno.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include <host/files/confine.h>
#include <host/files/filejob.h>
#include <host/files/files-wire.h>
#include <host/files/walk.h>

/* A job looks so often whether the host is still there. */
#define LOOK_S 1
/* Past this the worker ends after its answer: the next one begins small. */
#define RESIDENT_KB (64 << 10)

struct server {
	int sock;
	int confined; /* negative: not yet */
	dev_t dev;    /* of the one directory */
	ino_t ino;
	char *texts;
	size_t texts_cap;
};

/* For the handlers. */
static int host_socket = -1;

static void
on_term(int sig)
{
	sb_filejob_drop_temp();
	_exit(128 + sig);
}

static void
on_alarm(int sig)
{
	struct pollfd p = { .fd = host_socket, .events = POLLRDHUP };
	int before = errno;

	(void)sig;
	if (poll(&p, 1, 0) > 0)
		on_term(SIGTERM);
	errno = before;
}

static void
catch_signals(void)
{
	struct sigaction term = { .sa_handler = on_term };
	struct sigaction look = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };

	(void)sigaction(SIGTERM, &term, NULL);
	(void)sigaction(SIGALRM, &look, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)signal(SIGXFSZ, SIG_IGN);
}

static void
look_every(time_t seconds)
{
	const struct itimerval t = { .it_interval.tv_sec = seconds, .it_value.tv_sec = seconds };

	(void)setitimer(ITIMER_REAL, &t, NULL);
}

/* All of it. False at the end. */
static bool
read_all(int fd, void *to, size_t len)
{
	char *p = to;

	while (len > 0) {
		ssize_t n = read(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

static bool
write_all(int fd, const void *from, size_t len)
{
	const char *p = from;

	while (len > 0) {
		ssize_t n = write(fd, p, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		p += n;
		len -= (size_t)n;
	}
	return true;
}

/* The head of a call with its descriptor. 1, 0 at the end, negative: nonsense. */
static int
receive(int sock, struct sb_files_call *c, int *out_dir, struct sb_error *err)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { 0 };
	struct iovec v = { c, sizeof *c };
	struct msghdr m = { .msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control };
	struct cmsghdr *h;
	ssize_t n;

	*out_dir = -1;
	do
		n = recvmsg(sock, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n <= 0)
		return 0;
	h = CMSG_FIRSTHDR(&m);
	if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS &&
		h->cmsg_len == CMSG_LEN(sizeof(int)))
		memcpy(out_dir, CMSG_DATA(h), sizeof(int));
	if ((size_t)n < sizeof *c && !read_all(sock, (char *)c + n, sizeof *c - (size_t)n))
		return 0;
	if (*out_dir < 0 || c->magic != SB_FILES_MAGIC || c->tool_bytes > SB_FILES_NAME_MAX ||
		c->root_bytes > SB_FILES_PATH_MAX || c->dir_bytes > SB_FILES_PATH_MAX ||
		c->params_bytes > SB_FILES_PARAMS_MAX)
		return sb_fail(err, SB_E_PROTO, "a call that is none");
	return 1;
}

/* Tool, root, directory and parameters behind each other, with a NUL behind each of the first. */
static bool
read_texts(struct server *s, const struct sb_files_call *c)
{
	const size_t parts[] = { c->tool_bytes, c->root_bytes, c->dir_bytes, c->params_bytes };
	size_t need = parts[0] + parts[1] + parts[2] + parts[3] + 3;
	char *p;

	if (need > s->texts_cap) {
		p = realloc(s->texts, need);
		if (!p)
			return false;
		s->texts = p;
		s->texts_cap = need;
	}
	p = s->texts;
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		if (!read_all(s->sock, p, parts[i]))
			return false;
		p += parts[i];
		if (i < 3)
			*p++ = '\0';
	}
	return true;
}

static int
set_roots(struct sb_filejob *j, const char *path, int *dir, struct sb_error *err)
{
	j->roots.v = calloc(1, sizeof *j->roots.v);
	if (!j->roots.v)
		return sb_fail(err, SB_E_NOMEM, "tool call");
	j->roots.n = 1;
	j->roots.v[0] = (struct sb_root){ .given = strdup(path),
		.path = strdup(path),
		.fd = sb_steal_fd(dir) };
	return j->roots.v[0].given && j->roots.v[0].path ? 0 :
							   sb_fail(err, SB_E_NOMEM, "tool call");
}

static bool
is_fat(void)
{
	struct rusage u;

	return getrusage(RUSAGE_SELF, &u) == 0 && u.ru_maxrss > RESIDENT_KB;
}

/* Sends what a job gave. False: there is no use in going on. */
static bool
answer(const struct server *s, int code, const struct sb_filejob *j, const char *msg, bool heavy)
{
	bool last = heavy && is_fat();
	const void *text = code < 0 ? (const void *)msg : j->text.data;
	struct sb_files_answer a = { .magic = SB_FILES_MAGIC,
		.code = code,
		.bytes = (uint32_t)(code < 0 ? strlen(msg) :
				code > 0     ? 0 :
					       j->text.len) };
	struct iovec v[] = { { &a, sizeof a }, { (void *)(uintptr_t)text, a.bytes } };
	struct msghdr m = { .msg_iov = v, .msg_iovlen = 2 };
	ssize_t n;

	a.flags = (s->confined & SB_CONFINE_LANDLOCK ? SB_FILES_LANDLOCK : 0u) |
		(s->confined & SB_CONFINE_SECCOMP ? SB_FILES_SECCOMP : 0u) |
		(last ? SB_FILES_LAST : 0u);
	if (code == 0)
		a.flags |= (j->is_error ? SB_FILES_IS_ERROR : 0u) |
			(j->truncated ? SB_FILES_TRUNCATED : 0u);
	n = sendmsg(s->sock, &m, MSG_NOSIGNAL);
	if (n < (ssize_t)sizeof a)
		return false;
	n -= (ssize_t)sizeof a;
	return write_all(s->sock, (const char *)text + n, a.bytes - (size_t)n) && !last;
}

static bool
work(struct server *s, const struct sb_files_call *c, int *dir)
{
	const char *tool = s->texts, *root = tool + c->tool_bytes + 1,
		   *dir_text = root + c->root_bytes + 1, *params = dir_text + c->dir_bytes + 1;
	struct sb_filejob j = { .deadline = sb_deadline_in(c->timeout_ms), .dir = dir_text };
	struct sb_error why = { 0 };
	bool on, heavy = sb_filejob_heavy(tool);
	int r;

	sb_buf_init(&j.text, c->text_max < SB_FILES_TEXT_MAX ? c->text_max : SB_FILES_TEXT_MAX);
	if (heavy)
		look_every(LOOK_S);
	r = set_roots(&j, root, dir, &why);
	if (r == 0)
		r = sb_params_parse(tool, params, c->params_bytes, &j.params, &why);
	if (r == 0)
		r = sb_filejob_run(&j, &why);
	if (heavy)
		look_every(0);
	/* Who gets the answer may find the workspace free of us. */
	sb_roots_close(&j.roots);
	on = answer(s, r, &j, why.msg, heavy || j.text.len > RESIDENT_KB);
	sb_params_free(&j.params);
	sb_buf_free(&j.text);
	return on;
}

/* The first call says which directory it is about; from then on there is no other. */
static int
admit(struct server *s, int dir, bool *stale, struct sb_error *err)
{
	struct stat st;

	if (fstat(dir, &st) < 0 || !S_ISDIR(st.st_mode))
		return sb_fail(err, SB_E_PROTO, "a call without a directory");
	if (s->confined < 0) {
		/* What looks at the machine's files must look now. */
		(void)sb_walk_threads();
		s->dev = st.st_dev;
		s->ino = st.st_ino;
		s->confined = sb_confine(dir, err);
		if (s->confined < 0)
			return s->confined;
	}
	*stale = st.st_dev != s->dev || st.st_ino != s->ino;
	return 0;
}

int
sb_fileserve(int sock, struct sb_error *err)
{
	struct server s = { .sock = sock, .confined = -1 };
	bool on = true;
	int r = 0;

	host_socket = sock;
	catch_signals();
	(void)mallopt(M_ARENA_MAX, 2);
	while (on && r >= 0) {
		struct sb_filejob none = { 0 };
		struct sb_files_call c;
		sb_autoclose int dir = -1;
		bool stale = false;

		r = receive(sock, &c, &dir, err);
		if (r <= 0)
			break;
		r = admit(&s, dir, &stale, err);
		if (r < 0)
			break;
		on = read_texts(&s, &c) &&
			(stale ? answer(&s, SB_FILES_STALE, &none, "", false) : work(&s, &c, &dir));
	}
	free(s.texts);
	return r < 0 ? r : 0;
}
