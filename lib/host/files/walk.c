/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/walk.h>

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/path.h>
#include <base/strlist.h>
#include <base/str.h>

#define STACK (1u << 20)
#define DEPTH_MAX 200

struct crew {
	const struct sb_filejob *j;
	int top; /* the directory that is walked */
	sb_walk_want_fn want;
	const void *arg;

	pthread_mutex_t mu; /* guards all below */
	pthread_cond_t cv;
	struct sb_strlist todo; /* a stack of directories */
	unsigned busy;
	int failed;
	struct sb_error err;
	struct sb_walk *out;
};

/* Asked once: a confined process cannot look any more. */
size_t
sb_walk_threads(void)
{
	static atomic_long n;

	if (atomic_load(&n) == 0) {
		long have = sysconf(_SC_NPROCESSORS_ONLN);

		atomic_store(&n,
			have < 1                           ? 1 :
				have > SB_WALK_THREADS_MAX ? SB_WALK_THREADS_MAX :
							     have);
	}
	return (size_t)atomic_load(&n);
}

/* Signals are for the first thread. */
bool
sb_walk_thread(pthread_t *out, void *(*fn)(void *), void *arg)
{
	sigset_t all, before;
	pthread_attr_t a;
	int r;

	(void)pthread_attr_init(&a);
	(void)pthread_attr_setstacksize(&a, STACK);
	(void)sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &before);
	r = pthread_create(out, &a, fn, arg);
	(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	(void)pthread_attr_destroy(&a);
	return r == 0;
}

void
sb_walk_free(struct sb_walk *w)
{
	for (size_t i = 0; i < w->n; i++)
		free(w->v[i].path);
	free(w->v);
	*w = (struct sb_walk){ 0 };
}

static int
keep(struct sb_walk *w, char *path, size_t dir_len)
{
	if (w->n == w->cap) {
		size_t cap = w->cap ? w->cap * 2 : 256;
		struct sb_walk_file *v = reallocarray(w->v, cap, sizeof *v);

		if (!v)
			return SB_E_NOMEM;
		w->v = v;
		w->cap = cap;
	}
	w->v[w->n++] = (struct sb_walk_file){ path, dir_len };
	return 0;
}

static unsigned char
type_of(int dir, const struct dirent *e)
{
	struct stat st;

	if (e->d_type != DT_UNKNOWN)
		return e->d_type;
	if (fstatat(dir, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_UNKNOWN;
	return S_ISDIR(st.st_mode) ? DT_DIR : S_ISREG(st.st_mode) ? DT_REG : DT_UNKNOWN;
}

static size_t
depth_of(const char *rel)
{
	size_t n = 0;

	for (; *rel; rel++)
		n += *rel == '/';
	return n;
}

/* One directory into lists of its own. */
static int
look(struct crew *w, const char *rel, struct sb_walk *files, struct sb_strlist *dirs,
	struct sb_error *err)
{
	int fd = sb_path_open(w->top, rel, O_RDONLY | O_DIRECTORY, 0, NULL);
	sb_autoclosedir DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;
	int r = 0;

	if (!d) {
		if (fd >= 0)
			(void)close(fd);
		files->left_out++;
		return 0;
	}
	while (r == 0 && (e = readdir(d))) {
		unsigned char type = type_of(dirfd(d), e);
		sb_autofree char *path = NULL;

		if ((type != DT_DIR && type != DT_REG) || (type == DT_DIR && e->d_name[0] == '.'))
			continue;
		path = sb_str_printf("%s%s%s", rel, *rel ? "/" : "", e->d_name);
		if (!path)
			return sb_fail(err, SB_E_NOMEM, "walk");
		if (type == DT_DIR && depth_of(rel) > DEPTH_MAX)
			files->left_out++;
		else if (type == DT_DIR)
			sb_strlist_add(dirs, path);
		else if (!w->want || w->want(path, e->d_name, w->arg))
			r = keep(files, path, strlen(rel)) == 0 ? (sb_steal(&path), 0) :
								  sb_fail(err, SB_E_NOMEM, "walk");
	}
	return r < 0 ? r : sb_strlist_check(dirs, err);
}

/* What one directory gave, to all. With `mu` held. */
static int
hand_in(struct crew *w, struct sb_walk *files, struct sb_strlist *dirs, struct sb_error *err)
{
	int r = 0;

	for (size_t i = 0; i < files->n && r == 0; i++) {
		if (w->out->n >= SB_WALK_FILES_MAX) {
			w->out->left_out++;
			continue;
		}
		r = keep(w->out, files->v[i].path, files->v[i].dir_len);
		if (r == 0)
			files->v[i].path = NULL;
	}
	w->out->left_out += files->left_out;
	sb_strlist_add_all(&w->todo, (const char *const *)dirs->v);
	if (r == 0)
		r = sb_strlist_check(&w->todo, err);
	return r == SB_E_NOMEM ? sb_fail(err, SB_E_NOMEM, "walk") : r;
}

static void *
work(void *arg)
{
	struct crew *w = arg;

	(void)pthread_mutex_lock(&w->mu);
	for (;;) {
		sb_auto(sb_walk) struct sb_walk files = { 0 };
		sb_auto(sb_strlist) struct sb_strlist dirs = { 0 };
		sb_autofree char *rel = NULL;
		struct sb_error err = { 0 };
		int r;

		while (!w->todo.n && w->busy && !w->failed)
			(void)pthread_cond_wait(&w->cv, &w->mu);
		if (w->failed || !w->todo.n)
			break;
		rel = w->todo.v[--w->todo.n];
		w->todo.v[w->todo.n] = NULL;
		w->busy++;
		(void)pthread_mutex_unlock(&w->mu);
		r = sb_filejob_alive(w->j, &err);
		if (r == 0)
			r = look(w, rel, &files, &dirs, &err);
		(void)pthread_mutex_lock(&w->mu);
		if (r == 0)
			r = hand_in(w, &files, &dirs, &err);
		w->busy--;
		if (r < 0 && !w->failed) {
			w->failed = r;
			w->err = err;
		}
		(void)pthread_cond_broadcast(&w->cv);
	}
	(void)pthread_cond_broadcast(&w->cv);
	(void)pthread_mutex_unlock(&w->mu);
	return NULL;
}

static int
by_path(const void *a, const void *b)
{
	return strcmp(((const struct sb_walk_file *)a)->path,
		((const struct sb_walk_file *)b)->path);
}

int
sb_walk_files(const struct sb_filejob *j, int rootfd, const char *rel, sb_walk_want_fn want,
	const void *arg, struct sb_walk *out, struct sb_error *err)
{
	sb_autoclose int top = sb_path_open(rootfd, rel, O_RDONLY | O_DIRECTORY, 0, err);
	struct crew w = { .j = j, .top = top, .want = want, .arg = arg, .out = out };
	pthread_t th[SB_WALK_THREADS_MAX];
	size_t n = 0;
	int r;

	*out = (struct sb_walk){ 0 };
	if (top < 0)
		return top;
	(void)pthread_mutex_init(&w.mu, NULL);
	(void)pthread_cond_init(&w.cv, NULL);
	sb_strlist_add(&w.todo, "");
	r = sb_strlist_check(&w.todo, err);
	if (r == 0) {
		while (n + 1 < sb_walk_threads() && sb_walk_thread(&th[n], work, &w))
			n++;
		(void)work(&w);
		for (size_t i = 0; i < n; i++)
			(void)pthread_join(th[i], NULL);
		r = w.failed;
		if (r < 0 && err)
			*err = w.err;
	}
	sb_strlist_free(&w.todo);
	(void)pthread_cond_destroy(&w.cv);
	(void)pthread_mutex_destroy(&w.mu);
	if (r < 0)
		sb_walk_free(out);
	else if (out->n)
		qsort(out->v, out->n, sizeof out->v[0], by_path);
	return r;
}
