/* SPDX-License-Identifier: MIT */
/* The writers of the receiver: threads that put files into the stage. */
#include "config.h"

#include <sync/replica/receive-priv.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/work.h>
#include <sync/tree/hash.h>
#include <sync/tree/nstime.h>

#define STEP (64u << 20)
#define QUEUE_JOBS 256
#define QUEUE_BYTES (32u << 20)

int
sb_receive_finish_file(int fd, uint16_t mode, int64_t mtime, struct sb_receive_rec *out,
	struct sb_error *err)
{
	struct timespec ts[2] = { { .tv_nsec = UTIME_OMIT }, sb_ns_to(mtime) };
	struct stat st;

	if (futimens(fd, ts) < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "set the time of a staged file");
	if ((st.st_mode & 07777) != mode && (fchmod(fd, mode) < 0 || fstat(fd, &st) < 0))
		return sb_fail_errno(err, "set the mode of a staged file");
	out->ino = st.st_ino;
	out->ctime = sb_ns_from(st.st_ctim);
	return 0;
}

void
sb_receive_judge(struct sb_receive *r, struct sb_receive_rec *rec,
	const struct sb_receive_rec *result)
{
	pthread_mutex_lock(&r->pool.mu);
	rec->got = result->got;
	rec->ino = result->ino;
	rec->ctime = result->ctime;
	if (rec->state != REC_DROPPED)
		rec->state = sb_digest_known(&rec->want) && !sb_digest_eq(&rec->want, &rec->got) ?
			REC_BAD :
			REC_OK;
	pthread_mutex_unlock(&r->pool.mu);
}

static int
create(const struct sb_receive_job *j, struct sb_error *err)
{
	int fd = openat(j->dir->fd, j->leaf, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		j->mode | 0200);

	return fd < 0 ? sb_fail_errno(err, "make staged %s", j->leaf) : fd;
}

static int
do_write(struct sb_receive *r, const struct sb_receive_job *j, struct sb_error *err)
{
	struct sb_receive_rec res = { 0 };
	sb_autoclose int fd = -1;
	int n;

	res.got = sb_digest_of(j->data, j->len);
	fd = create(j, err);
	if (fd < 0)
		return fd;
	n = sb_file_write_all(fd, j->data, j->len, err);
	if (n == 0)
		n = sb_receive_finish_file(fd, j->mode, j->mtime, &res, err);
	if (n < 0)
		return n;
	sb_receive_judge(r, j->rec, &res);
	if (r->pool.store)
		(void)sb_store_add(r->pool.store, &res.got, j->data, j->len, NULL);
	return 0;
}

/*
 * Copies `from` into the new file: shares blocks where the file system can, else copies in the
 * kernel, else here.
 */
static int
copy_data(int from, int to, uint64_t size, struct sb_error *err)
{
	sb_autofree uint8_t *buf = NULL;

	if (ioctl(to, FICLONE, from) == 0)
		return 0;
	while (size) {
		ssize_t n = sb_work_alive(err) < 0 ?
			-1 :
			copy_file_range(from, NULL, to, NULL, size < STEP ? size : STEP, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		size -= (uint64_t)n;
	}
	if (!size)
		return 0;
	buf = malloc(256u << 10);
	if (!buf)
		return sb_fail(err, SB_E_NOMEM, "copy: out of memory");
	for (;;) {
		ssize_t n = sb_work_alive(err);
		int w;

		if (n == 0)
			n = sb_file_read_full(from, buf, 256u << 10, err);
		if (n <= 0)
			return (int)n;
		w = sb_file_write_all(to, buf, (size_t)n, err);
		if (w < 0)
			return w;
	}
}

/*
 * A clone that cannot be made right is not an error: its record is bad and the content will be
 * asked for.
 */
static int
do_clone(struct sb_receive *r, const struct sb_receive_job *j, struct sb_error *err)
{
	struct sb_receive_rec res = { 0 };
	struct sb_error e = { 0 };
	sb_autoclose int from = sb_path_open(j->fromfd, j->from, O_RDONLY | O_NONBLOCK, 0, &e);
	sb_autoclose int to = -1;
	struct stat st;
	int n;

	if (from < 0 || fstat(from, &st) < 0 || !S_ISREG(st.st_mode) ||
		(uint64_t)st.st_size != j->size) {
		sb_receive_judge(r, j->rec, &res);
		return 0;
	}
	to = openat(j->dir->fd, j->leaf, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		j->mode | 0600);
	if (to < 0)
		return sb_fail_errno(err, "make staged %s", j->leaf);
	n = copy_data(from, to, j->size, err);
	if (n == 0)
		n = sb_hash_fd(to, UINT64_MAX, &res.got, NULL, err);
	if (n == 0)
		n = sb_receive_finish_file(to, j->mode, j->mtime, &res, err);
	if (n < 0)
		return n;
	sb_receive_judge(r, j->rec, &res);
	return 0;
}

static void
job_free(struct sb_receive *r, struct sb_receive_job *j)
{
	if (j->dir)
		sb_receive_dir_put(r, j->dir);
	free(j->leaf);
	free(j->data);
	free(j->from);
	free(j);
}

static void *
work(void *arg)
{
	struct sb_receive *r = arg;
	struct sb_receive_pool *p = &r->pool;

	(void)sb_work_under(r->rep->cancel);
	pthread_mutex_lock(&p->mu);
	for (;;) {
		struct sb_error e = { 0 };
		struct sb_receive_job *j;
		bool want;
		int n = 0;

		while (!p->head && !p->stop)
			pthread_cond_wait(&p->more, &p->mu);
		if (!p->head)
			break;
		j = p->head;
		p->head = j->next;
		if (!p->head)
			p->tail = &p->head;
		/* At the end only what came from the far side is still worth writing. */
		want = !p->failed && (!p->stop || j->kind == JOB_WRITE);
		pthread_mutex_unlock(&p->mu);
		if (want)
			n = j->kind == JOB_WRITE ? do_write(r, j, &e) : do_clone(r, j, &e);
		pthread_mutex_lock(&p->mu);
		if (n < 0 && !p->failed) {
			p->failed = n;
			p->why = e;
		}
		p->n_jobs--;
		p->bytes -= j->len;
		p->written_files++;
		p->written_bytes += j->kind == JOB_WRITE ? j->len : j->size;
		pthread_cond_broadcast(&p->less);
		pthread_mutex_unlock(&p->mu);
		job_free(r, j);
		pthread_mutex_lock(&p->mu);
	}
	pthread_mutex_unlock(&p->mu);
	return NULL;
}

/* Each file that waits to be written may keep a directory open: not all descriptors are ours. */
static unsigned
most_dirs(void)
{
	struct rlimit r;
	rlim_t n = getrlimit(RLIMIT_NOFILE, &r) < 0 ? 256 : r.rlim_cur / 4;

	return n < DIRH_MAX + 8 ? DIRH_MAX + 8 : n > 1024 ? 1024 : (unsigned)n;
}

int
sb_receive_pool_start(struct sb_receive *r, unsigned jobs, struct sb_error *err)
{
	struct sb_receive_pool *p = &r->pool;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	if (!jobs)
		jobs = cpus < 1 ? 1 : cpus > 4 ? 4 : (unsigned)cpus;
	if (jobs > sizeof p->threads / sizeof p->threads[0])
		jobs = sizeof p->threads / sizeof p->threads[0];
	pthread_mutex_init(&p->mu, NULL);
	pthread_cond_init(&p->more, NULL);
	pthread_cond_init(&p->less, NULL);
	p->tail = &p->head;
	p->made = true;
	p->store = r->o.store;
	p->max_dirs = most_dirs();
	for (unsigned i = 0; i < jobs; i++) {
		int e = pthread_create(&p->threads[i], NULL, work, r);

		if (e && i == 0) {
			errno = e;
			return sb_fail_errno(err, "start a thread");
		}
		if (e)
			break;
		p->n_threads++;
	}
	return 0;
}

void
sb_receive_pool_stop(struct sb_receive *r)
{
	struct sb_receive_pool *p = &r->pool;

	if (!p->made)
		return;
	pthread_mutex_lock(&p->mu);
	p->stop = true;
	if (!p->failed && sb_cancel_requested(r->rep->cancel))
		p->failed = SB_E_CANCELED;
	pthread_cond_broadcast(&p->more);
	pthread_mutex_unlock(&p->mu);
	for (unsigned i = 0; i < p->n_threads; i++)
		pthread_join(p->threads[i], NULL);
	while (p->head) {
		struct sb_receive_job *j = p->head;

		p->head = j->next;
		job_free(r, j);
	}
	p->n_threads = 0;
}

static int
failure(struct sb_receive_pool *p, struct sb_error *err)
{
	if (p->failed && err)
		*err = p->why;
	return p->failed;
}

int
sb_receive_drain(struct sb_receive *r, struct sb_error *err)
{
	struct sb_receive_pool *p = &r->pool;
	int n;

	pthread_mutex_lock(&p->mu);
	while (p->n_jobs && !p->failed)
		pthread_cond_wait(&p->less, &p->mu);
	n = failure(p, err);
	pthread_mutex_unlock(&p->mu);
	return n;
}

int
sb_receive_pool_add(struct sb_receive *r, const struct sb_receive_job *job, struct sb_error *err)
{
	struct sb_receive_pool *p = &r->pool;
	struct sb_receive_job *j = malloc(sizeof *j);
	int n;

	if (!j) {
		sb_receive_dir_put(r, job->dir);
		free(job->leaf);
		free(job->data);
		free(job->from);
		return sb_fail(err, SB_E_NOMEM, "stage: out of memory");
	}
	*j = *job;
	j->next = NULL;
	pthread_mutex_lock(&p->mu);
	while (!p->failed &&
		(p->n_jobs >= QUEUE_JOBS || (p->n_jobs && p->bytes + j->len > QUEUE_BYTES)))
		pthread_cond_wait(&p->less, &p->mu);
	n = failure(p, err);
	if (n == 0) {
		*p->tail = j;
		p->tail = &j->next;
		p->n_jobs++;
		p->bytes += j->len;
		pthread_cond_signal(&p->more);
	}
	pthread_mutex_unlock(&p->mu);
	if (n < 0)
		job_free(r, j);
	return n;
}

static void
dirh_drop(struct sb_receive_pool *p, struct sb_receive_dir *d)
{
	(void)close(d->fd);
	free(d->path);
	free(d);
	pthread_mutex_lock(&p->mu);
	p->open_dirs--;
	pthread_cond_broadcast(&p->less);
	pthread_mutex_unlock(&p->mu);
}

void
sb_receive_dir_put(struct sb_receive *r, struct sb_receive_dir *d)
{
	bool last;

	pthread_mutex_lock(&r->pool.mu);
	last = --d->refs == 0;
	pthread_mutex_unlock(&r->pool.mu);
	if (last)
		dirh_drop(&r->pool, d);
}

/* Only the driving thread looks into r->dirs; the table itself holds one reference on each. */
struct sb_receive_dir *
sb_receive_dir_get(struct sb_receive *r, const char *staged, const char **leaf,
	struct sb_error *err)
{
	const char *slash = strrchr(staged, '/');
	size_t len = slash ? (size_t)(slash - staged) : 0;
	size_t slot = 0;
	struct sb_receive_dir *d;

	*leaf = slash ? slash + 1 : staged;
	for (size_t i = 0; i < DIRH_MAX; i++) {
		d = r->dirs[i];
		if (d && strncmp(d->path, staged, len) == 0 && d->path[len] == 0) {
			d->used = ++r->clock;
			pthread_mutex_lock(&r->pool.mu);
			d->refs++;
			pthread_mutex_unlock(&r->pool.mu);
			return d;
		}
		if (r->dirs[slot] && (!d || d->used < r->dirs[slot]->used))
			slot = i;
	}
	/* Writers give theirs back one after the other. */
	pthread_mutex_lock(&r->pool.mu);
	while (r->pool.open_dirs >= r->pool.max_dirs && r->pool.n_jobs)
		pthread_cond_wait(&r->pool.less, &r->pool.mu);
	r->pool.open_dirs++;
	pthread_mutex_unlock(&r->pool.mu);
	d = calloc(1, sizeof *d);
	if (d)
		d->path = strndup(staged, len);
	if (d && d->path)
		d->fd = sb_path_open(r->stage->newfd, d->path, O_RDONLY | O_DIRECTORY, 0, err);
	else
		sb_fail(err, SB_E_NOMEM, "stage: out of memory");
	if (!d || !d->path || d->fd < 0) {
		if (d)
			free(d->path);
		free(d);
		pthread_mutex_lock(&r->pool.mu);
		r->pool.open_dirs--;
		pthread_mutex_unlock(&r->pool.mu);
		return NULL;
	}
	d->refs = 2;
	d->used = ++r->clock;
	if (r->dirs[slot])
		sb_receive_dir_put(r, r->dirs[slot]);
	r->dirs[slot] = d;
	return d;
}
