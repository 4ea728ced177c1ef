/* SPDX-License-Identifier: MIT */
/* The guest's programs: started with pipes or a terminal, fed, listened to, signalled. */
#include "config.h"

#include "guest.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/cleanup.h>

#define PROCS_MAX 1024
#define ARGS_MAX 65536
#define INPUT_HIGH (4u << 20)
/* How a program ended is told to who asks within this time. */
#define KEEP_MS 30000

extern char **environ;

/* Who listens. */
struct ear {
	struct ear *next;
	struct guest_link *link;
	uint32_t id;
	uint64_t window;
};

/* An input that is not all written yet. */
struct due {
	struct due *next;
	struct guest_link *link;
	uint32_t id;
	size_t left; /* of the program's `in`, up to the end of this one */
};

struct proc {
	struct proc *next;
	pid_t pid;
	char *tag, *cwd;
	char **argv, **env;
	bool pty;
	int in, out[2]; /* of a terminal, in and out[0] are two descriptors of one */
	struct sb_buf input;
	struct due *dues;
	bool no_more;
	struct ear *ears;
	bool over, told;
	int status;
	int64_t over_at;
	int64_t kill_at; /* 0: never */
};

static struct proc *procs;
static size_t n_procs;
static struct proc *polled[PROCS_MAX]; /* of the last guest_proc_poll */
static size_t n_polled;

static int64_t
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void
close_fd(int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
	*fd = -1;
}

static void
drop_dues(struct proc *p, int sys)
{
	while (p->dues) {
		struct due *d = p->dues;
		struct guest_ask a = { .link = d->link, .id = d->id };

		p->dues = d->next;
		if (sys)
			guest_fail(&a, sys);
		free(d);
	}
}

static void
proc_free(struct proc *p)
{
	close_fd(&p->in);
	close_fd(&p->out[0]);
	close_fd(&p->out[1]);
	drop_dues(p, 0);
	while (p->ears) {
		struct ear *e = p->ears;

		p->ears = e->next;
		free(e);
	}
	sb_buf_free(&p->input);
	free(p->tag);
	free(p->cwd);
	free(p->argv);
	free(p->env);
	free(p);
}

static struct proc *
find(struct sb_cursor *c)
{
	uint64_t pid = sb_cursor_varint(c);
	sb_autofree char *tag = guest_text(c);

	for (struct proc *p = procs; p && tag; p = p->next)
		if (pid ? (uint64_t)p->pid == pid : *tag && strcmp(p->tag, tag) == 0)
			return p;
	return NULL;
}

/* The environment: ours, then what the request has, the later of a name winning. */
static char **
make_env(char **more)
{
	size_t n = 0, m = 0, k = 0;
	char **v;

	while (environ[n])
		n++;
	while (more[m])
		m++;
	v = calloc(n + m + 1, sizeof *v);
	for (size_t i = 0; v && i < n + m; i++) {
		char *e = i < n ? environ[i] : more[i - n];
		size_t len = strcspn(e, "="), at = 0;

		while (at < k && (strncmp(v[at], e, len) != 0 || v[at][len] != '='))
			at++;
		v[at] = e;
		k = at == k ? k + 1 : k;
	}
	return v;
}

/* The first program of that name in the PATH of `env`. */
static void
exec_in(char **argv, char **env)
{
	const char *path = "/usr/local/bin:/usr/bin:/bin";
	int sys = ENOENT;
	char name[4096];

	for (char **e = env; *e; e++)
		if (strncmp(*e, "PATH=", 5) == 0)
			path = *e + 5;
	if (strchr(argv[0], '/')) {
		(void)execve(argv[0], argv, env);
		return;
	}
	while (*path) {
		size_t len = strcspn(path, ":");

		if (len > 0 && len + strlen(argv[0]) + 2 < sizeof name) {
			memcpy(name, path, len);
			name[len] = '/';
			memcpy(name + len + 1, argv[0], strlen(argv[0]) + 1);
			(void)execve(name, argv, env);
			sys = errno == EACCES ? EACCES : sys;
		}
		path += len + (path[len] == ':');
	}
	errno = sys;
}

struct ends {
	int in[2], out[2], err[2], report[2], slave;
};

/* In the child; never returns. */
static void
become(struct proc *p, const struct ends *e, char **env)
{
	sigset_t none;
	int sys;

	(void)setsid();
	if (p->pty) {
		(void)ioctl(e->slave, TIOCSCTTY, 0);
		for (int i = 0; i < 3; i++)
			(void)dup2(e->slave, i);
	} else {
		if (e->in[0] >= 0)
			(void)dup2(e->in[0], 0);
		(void)dup2(e->out[1], 1);
		(void)dup2(e->err[1], 2);
	}
	for (int s = 1; s < NSIG; s++)
		(void)signal(s, SIG_DFL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	errno = 0;
	if (*p->cwd == '\0' || chdir(p->cwd) == 0)
		exec_in(p->argv, env);
	sys = errno;
	(void)!write(e->report[1], &sys, sizeof sys);
	_exit(127);
}

static int
open_terminal(struct ends *e, int *master, uint64_t cols, uint64_t rows)
{
	struct winsize w = { .ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows };
	char name[64];

	*master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	if (*master < 0 || grantpt(*master) < 0 || unlockpt(*master) < 0 ||
		ptsname_r(*master, name, sizeof name) != 0)
		return -1;
	(void)ioctl(*master, TIOCSWINSZ, &w);
	e->slave = open(name, O_RDWR | O_NOCTTY | O_CLOEXEC);
	return e->slave < 0 ? -1 : 0;
}

static int
open_ends(struct proc *p, struct ends *e, bool want_in, uint64_t cols, uint64_t rows)
{
	*e = (struct ends){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, -1 };
	if (pipe2(e->report, O_CLOEXEC) < 0)
		return -1;
	if (p->pty) {
		if (open_terminal(e, &p->out[0], cols, rows) < 0)
			return -1;
		p->in = fcntl(p->out[0], F_DUPFD_CLOEXEC, 10);
		(void)fcntl(p->out[0], F_SETFL, O_NONBLOCK);
		return p->in < 0 ? -1 : 0;
	}
	if ((want_in && pipe2(e->in, O_CLOEXEC) < 0) || pipe2(e->out, O_CLOEXEC) < 0 ||
		pipe2(e->err, O_CLOEXEC) < 0)
		return -1;
	p->in = e->in[1];
	p->out[0] = e->out[0];
	p->out[1] = e->err[0];
	if (p->in >= 0)
		(void)fcntl(p->in, F_SETFL, O_NONBLOCK);
	(void)fcntl(p->out[0], F_SETFL, O_NONBLOCK);
	(void)fcntl(p->out[1], F_SETFL, O_NONBLOCK);
	return 0;
}

/* Apart, because of what a vfork does to its caller's variables. */
static __attribute__((noinline)) pid_t
split(struct proc *p, const struct ends *e, char **env)
{
	pid_t pid = vfork();

	if (pid == 0)
		become(p, e, env);
	return pid;
}

/* 0, or an errno. */
static int
launch(struct proc *p, bool want_in, uint64_t cols, uint64_t rows)
{
	sb_autofree char **env = make_env(p->env);
	struct ends e;
	int sys = 0;

	if (!env || !p->argv[0])
		return env ? EINVAL : ENOMEM;
	if (open_ends(p, &e, want_in, cols, rows) < 0)
		sys = errno;
	else if ((p->pid = split(p, &e, env)) < 0)
		sys = errno;
	close_fd(&e.in[0]);
	close_fd(&e.out[1]);
	close_fd(&e.err[1]);
	close_fd(&e.report[1]);
	close_fd(&e.slave);
	if (sys == 0 && read(e.report[0], &sys, sizeof sys) == (ssize_t)sizeof sys)
		(void)waitpid(p->pid, NULL, 0);
	else if (sys != 0)
		p->pid = 0;
	close_fd(&e.report[0]);
	return sys;
}

static struct ear *
listen_to(struct proc *p, const struct guest_ask *a)
{
	struct ear *e = calloc(1, sizeof *e);

	if (!e)
		return NULL;
	*e = (struct ear){ p->ears, a->link, a->id, SB_GUEST_WINDOW };
	p->ears = e;
	return e;
}

static void
say_pid(const struct guest_ask *a, pid_t pid)
{
	struct sb_buf b;

	sb_buf_init(&b, 16);
	sb_buf_add_varint(&b, (uint64_t)pid);
	guest_send_buf(a->link, SB_GUEST_DONE, a->id, &b);
	sb_buf_free(&b);
}

static void
start(struct guest_ask *a)
{
	uint64_t flags = sb_cursor_varint(&a->c), cols = sb_cursor_varint(&a->c),
		 rows = sb_cursor_varint(&a->c), limit = sb_cursor_varint(&a->c);
	struct proc *p = calloc(1, sizeof *p);
	int sys = EINVAL;

	if (!p) {
		guest_fail(a, ENOMEM);
		return;
	}
	p->in = p->out[0] = p->out[1] = -1;
	p->pty = flags & SB_GUEST_PTY;
	sb_buf_init(&p->input, INPUT_HIGH + SB_GUEST_FRAME_MAX);
	p->cwd = guest_text(&a->c);
	p->tag = guest_text(&a->c);
	p->argv = guest_list(&a->c, ARGS_MAX);
	p->env = p->argv ? guest_list(&a->c, ARGS_MAX) : NULL;
	if (n_procs >= PROCS_MAX)
		sys = EAGAIN;
	else if (p->cwd && p->tag && p->argv && p->env)
		sys = launch(p, flags & SB_GUEST_STDIN, cols, rows);
	if (sys == 0 && !listen_to(p, a))
		sys = ENOMEM;
	if (sys != 0) {
		guest_fail(a, sys);
		if (p->pid > 0)
			(void)kill(-p->pid, SIGKILL);
		proc_free(p);
		return;
	}
	if (limit > 0 && limit < INT32_MAX)
		p->kill_at = now() + (int64_t)limit;
	p->next = procs;
	procs = p;
	n_procs++;
	say_pid(a, p->pid);
}

static void
tell_end(const struct proc *p, struct guest_link *l, uint32_t id)
{
	struct sb_buf b;

	sb_buf_init(&b, 32);
	sb_buf_add_varint(&b, WIFEXITED(p->status) ? (uint64_t)WEXITSTATUS(p->status) : 0);
	sb_buf_add_varint(&b, WIFSIGNALED(p->status) ? (uint64_t)WTERMSIG(p->status) : 0);
	guest_send_buf(l, SB_GUEST_EXIT, id, &b);
	sb_buf_free(&b);
}

static void
add_input(struct guest_ask *a, struct proc *p)
{
	uint64_t flags = sb_cursor_varint(&a->c);
	size_t len = 0;
	const uint8_t *data = sb_cursor_bytes(&a->c, SB_GUEST_FRAME_MAX, &len);
	struct due *d, **end = &p->dues;

	if (!data || a->c.bad) {
		guest_fail(a, EINVAL);
	} else if (p->over || p->in < 0 || p->no_more || p->pty != !!(flags & SB_GUEST_PTY)) {
		guest_fail(a, EPIPE);
	} else if (p->input.len > INPUT_HIGH || !(d = calloc(1, sizeof *d))) {
		guest_fail(a, EAGAIN);
	} else {
		sb_buf_add(&p->input, data, len);
		*d = (struct due){ NULL, a->link, a->id, p->input.len };
		while (*end)
			end = &(*end)->next;
		*end = d;
	}
}

static void
put_list(struct sb_buf *b, char **v)
{
	size_t n = 0;

	while (v[n])
		n++;
	sb_buf_add_varint(b, n);
	for (size_t i = 0; i < n; i++)
		sb_buf_add_bytes(b, v[i], strlen(v[i]));
}

static void
list(struct guest_ask *a)
{
	for (const struct proc *p = procs; p; p = p->next) {
		struct sb_buf b;

		if (p->over)
			continue;
		sb_buf_init(&b, SB_GUEST_FRAME_MAX - 16);
		sb_buf_add_varint(&b, (uint64_t)p->pid);
		sb_buf_add_bytes(&b, p->tag, strlen(p->tag));
		sb_buf_add_bytes(&b, p->cwd, strlen(p->cwd));
		put_list(&b, p->argv);
		put_list(&b, p->env);
		if (!b.failed)
			guest_send_buf(a->link, SB_GUEST_MORE, a->id, &b);
		sb_buf_free(&b);
	}
	guest_send(a->link, SB_GUEST_DONE, a->id, NULL, 0);
}

static void
attach(struct guest_ask *a, struct proc *p)
{
	if (!listen_to(p, a)) {
		guest_fail(a, ENOMEM);
		return;
	}
	say_pid(a, p->pid);
	if (p->told)
		tell_end(p, a->link, a->id);
}

static void
resize(struct guest_ask *a, const struct proc *p)
{
	struct winsize w = { .ws_col = (unsigned short)sb_cursor_varint(&a->c) };

	w.ws_row = (unsigned short)sb_cursor_varint(&a->c);
	if (!p->pty || p->in < 0 || a->c.bad || ioctl(p->in, TIOCSWINSZ, &w) < 0)
		guest_fail(a, ENOTTY);
	else
		guest_send(a->link, SB_GUEST_DONE, a->id, NULL, 0);
}

static void
end_input(struct guest_ask *a, struct proc *p)
{
	if (p->pty || p->in < 0) {
		guest_fail(a, p->pty ? ENOTTY : EPIPE);
		return;
	}
	p->no_more = true;
	guest_send(a->link, SB_GUEST_DONE, a->id, NULL, 0);
}

void
guest_proc_ask(struct guest_ask *a)
{
	struct proc *p;

	if (a->what == SB_GUEST_START || a->what == SB_GUEST_PROCS) {
		a->what == SB_GUEST_START ? start(a) : list(a);
		return;
	}
	p = find(&a->c);
	if (!p || (p->over && a->what != SB_GUEST_ATTACH)) {
		guest_fail(a, ESRCH);
		return;
	}
	switch (a->what) {
	case SB_GUEST_ATTACH: attach(a, p); break;
	case SB_GUEST_INPUT: add_input(a, p); break;
	case SB_GUEST_NO_MORE: end_input(a, p); break;
	case SB_GUEST_RESIZE: resize(a, p); break;
	default:
		/* What it started is of its group. */
		if (kill(-p->pid, (int)sb_cursor_varint(&a->c)) < 0)
			guest_fail(a, errno);
		else
			guest_send(a->link, SB_GUEST_DONE, a->id, NULL, 0);
	}
}

void
guest_proc_credit(struct guest_link *l, uint32_t id, uint64_t n)
{
	for (struct proc *p = procs; p; p = p->next)
		for (struct ear *e = p->ears; e; e = e->next)
			if (e->link == l && e->id == id)
				e->window += n < SB_GUEST_WINDOW ? n : SB_GUEST_WINDOW;
}

void
guest_proc_leave(struct guest_link *l, uint32_t id)
{
	for (struct proc *p = procs; p; p = p->next) {
		for (struct ear **e = &p->ears; *e;) {
			struct ear *old = *e;

			if (old->link == l && (id == 0 || old->id == id)) {
				*e = old->next;
				free(old);
			} else {
				e = &old->next;
			}
		}
		for (struct due *d = p->dues; d && id == 0; d = d->next)
			if (d->link == l)
				d->id = 0;
	}
}

/* How much may be read of a program's output: as much as the slowest of its ears takes. */
static uint64_t
window(const struct proc *p)
{
	uint64_t w = SB_GUEST_DATA_MAX;

	for (const struct ear *e = p->ears; e; e = e->next)
		w = e->window < w ? e->window : w;
	return w;
}

/* Reads once. False: nothing there, or its end. */
static bool
drain(struct proc *p, int i)
{
	static uint8_t piece[SB_GUEST_DATA_MAX];
	uint64_t most = window(p);
	struct sb_buf b;
	ssize_t n;

	if (p->out[i] < 0 || most == 0)
		return false;
	if (most > SB_GUEST_DATA_MAX - 16)
		most = SB_GUEST_DATA_MAX - 16;
	n = read(p->out[i], piece, most);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		/* A terminal whose last user is gone says EIO. */
		close_fd(&p->out[i]);
		if (p->pty)
			close_fd(&p->in);
		return false;
	}
	sb_buf_init(&b, SB_GUEST_DATA_MAX + 32);
	sb_buf_add_varint(&b, p->pty ? 3 : (uint64_t)i + 1);
	sb_buf_add_bytes(&b, piece, (size_t)n);
	for (struct ear *e = p->ears; e; e = e->next) {
		e->window -= (uint64_t)n;
		guest_send_buf(e->link, SB_GUEST_OUTPUT, e->id, &b);
	}
	sb_buf_free(&b);
	return true;
}

static void
feed(struct proc *p)
{
	ssize_t n = p->input.len > 0 ? write(p->in, p->input.data, p->input.len) : 0;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n < 0) {
		close_fd(&p->in);
		drop_dues(p, EPIPE);
		return;
	}
	sb_buf_consume(&p->input, (size_t)n);
	for (struct due *d = p->dues; d; d = d->next)
		d->left = d->left > (size_t)n ? d->left - (size_t)n : 0;
	while (p->dues && p->dues->left == 0) {
		struct due *d = p->dues;

		p->dues = d->next;
		if (d->id)
			guest_send(d->link, SB_GUEST_DONE, d->id, NULL, 0);
		free(d);
	}
	if (p->no_more && p->input.len == 0)
		close_fd(&p->in);
}

size_t
guest_proc_poll(struct pollfd *v, size_t max)
{
	size_t n = 0;

	n_polled = 0;
	for (struct proc *p = procs; p && n + 3 <= max; p = p->next) {
		bool open = window(p) > 0;
		bool in = p->in >= 0 && (p->input.len > 0 || p->no_more);

		polled[n_polled++] = p;
		v[n++] = (struct pollfd){ .fd = in ? p->in : -1, .events = POLLOUT };
		for (int i = 0; i < 2; i++)
			v[n++] = (struct pollfd){ .fd = open ? p->out[i] : -1, .events = POLLIN };
	}
	return n;
}

void
guest_proc_ready(const struct pollfd *v, size_t n)
{
	/* None of them is freed between the two; new ones are not among them. */
	for (size_t at = 0; at + 3 <= n; at += 3) {
		struct proc *p = polled[at / 3];

		if (v[at].revents && p->in >= 0)
			feed(p);
		for (int i = 0; i < 2; i++)
			if (v[at + 1 + (size_t)i].revents)
				(void)drain(p, i);
	}
}

/* It ended: what it wrote by then goes first, then its end. */
static void
finish(struct proc *p)
{
	while (drain(p, 0) || drain(p, 1))
		;
	if (window(p) == 0 && (p->out[0] >= 0 || p->out[1] >= 0)) {
		struct pollfd v[2] = { { .fd = p->out[0], .events = POLLIN },
			{ .fd = p->out[1], .events = POLLIN } };

		/* Somebody still has to read what there is. */
		if (poll(v, 2, 0) > 0)
			return;
	}
	for (struct ear *e = p->ears; e; e = e->next)
		tell_end(p, e->link, e->id);
	p->told = true;
	p->over_at = now();
	close_fd(&p->in);
	close_fd(&p->out[0]);
	close_fd(&p->out[1]);
	drop_dues(p, EPIPE);
}

void
guest_proc_reap(void)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (struct proc *p = procs; p; p = p->next)
			if (p->pid == pid && !p->over) {
				p->over = true;
				p->status = status;
			}
	for (struct proc **p = &procs; *p;) {
		struct proc *old = *p;

		if (!old->over && old->kill_at && now() >= old->kill_at) {
			(void)kill(-old->pid, SIGKILL);
			old->kill_at = 0;
		}
		if (old->over && !old->told)
			finish(old);
		if (old->told && now() - old->over_at > KEEP_MS) {
			*p = old->next;
			proc_free(old);
			n_procs--;
		} else {
			p = &old->next;
		}
	}
}

int
guest_proc_wait(void)
{
	int64_t next = -1;

	for (const struct proc *p = procs; p; p = p->next) {
		int64_t ms = p->told ? 5000 : p->kill_at && !p->over ? p->kill_at - now() : -1;

		if (!p->told && (!p->kill_at || p->over))
			continue;
		ms = ms > 0 ? ms : 0;
		next = next < 0 || ms < next ? ms : next;
	}
	return (int)next;
}
