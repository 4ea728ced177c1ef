/* SPDX-License-Identifier: MIT */
/*
 * A disk that loses its power, for tests/fault/power.py.
 *
 *   crashdisk IMAGE DIR
 *
 * mounts, by FUSE, a directory with two files. DIR/disk is the disk: put a loop device on it, and a
 * file system on that. What is written there is kept in memory until it is flushed; only then IMAGE
 * has it. DIR/control takes one line at a time:
 *
 *   arm N HOW SEED PID    the power fails at the N-th write or flush from now on
 *   cut HOW SEED          it fails now
 *   disarm
 *
 * and, read, has "EVENTS PENDING CUT": writes and flushes since the last arm, writes that are not
 * flushed, and whether the power is gone. PID is killed in that moment, before anybody learns that
 * the write failed (negative: the process group; 0: nobody). HOW says what of the unflushed writes
 * got to the disk all the same: 0 nothing; 1 the first of them, up to any one; 2 any blocks of any
 * of them, as a disk does that writes in the order it likes; 3 all. Then IMAGE is what a machine
 * finds that starts again. Every later write fails.
 */
#define FUSE_USE_VERSION 31
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#if __has_include(<fuse3/fuse.h>) /* else it is not built, only looked at */
#include <fuse3/fuse.h>

#define BLOCK 4096 /* a write is torn between two of these, never within one */

enum how { LOSE_ALL, KEEP_FIRST, KEEP_SOME, KEEP_ALL };

struct pending {
	off_t at;
	size_t len;
	uint8_t *data;
};

static struct {
	int fd;        /* what is safe */
	uint8_t *view; /* what the machine sees */
	size_t size;
	struct pending *v;
	size_t n, cap;
	uint64_t events, arm_at, seed;
	enum how how;
	pid_t victim;
	bool cut;
} disk;

static uint64_t
random64(void)
{
	uint64_t z = disk.seed += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* To the disk itself; a test that cannot do that must not go on. */
static void
store(off_t at, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = pwrite(disk.fd, data, len, at);

		if (n <= 0) {
			perror("crashdisk: image");
			_exit(1);
		}
		data += n;
		at += n;
		len -= (size_t)n;
	}
}

static void
forget_pending(void)
{
	for (size_t i = 0; i < disk.n; i++)
		free(disk.v[i].data);
	disk.n = 0;
}

static void
flush_pending(void)
{
	for (size_t i = 0; i < disk.n; i++)
		store(disk.v[i].at, disk.v[i].data, disk.v[i].len);
	forget_pending();
}

static void
store_some(const struct pending *p)
{
	for (size_t at = 0; at < p->len;) {
		size_t n = BLOCK - (size_t)(p->at + (off_t)at) % BLOCK;

		if (n > p->len - at)
			n = p->len - at;
		if (random64() & 1)
			store(p->at + (off_t)at, p->data + at, n);
		at += n;
	}
}

static void
cut_power(void)
{
	size_t first = disk.how == KEEP_ALL ? disk.n :
		disk.how == KEEP_FIRST      ? random64() % (disk.n + 1) :
					      0;

	if (disk.cut)
		return;
	disk.cut = true;
	if (disk.victim)
		(void)kill(disk.victim, SIGKILL);
	for (size_t i = 0; i < first; i++)
		store(disk.v[i].at, disk.v[i].data, disk.v[i].len);
	for (size_t i = 0; disk.how == KEEP_SOME && i < disk.n; i++)
		store_some(&disk.v[i]);
	forget_pending();
}

/* Counts a write or a flush; true: the power is gone. */
static bool
event(void)
{
	disk.events++;
	if (!disk.cut && disk.arm_at && disk.events >= disk.arm_at)
		cut_power();
	return disk.cut;
}

static int
remember(const char *data, size_t len, off_t at)
{
	struct pending *p;
	uint8_t *copy;

	if (disk.n == disk.cap) {
		size_t cap = disk.cap ? 2 * disk.cap : 256;

		p = realloc(disk.v, cap * sizeof *p);
		if (!p)
			return -ENOMEM;
		disk.v = p;
		disk.cap = cap;
	}
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, data, len);
	disk.v[disk.n++] = (struct pending){ .at = at, .len = len, .data = copy };
	memcpy(disk.view + at, data, len);
	return (int)len;
}

static int
obey(const char *line)
{
	unsigned long long n, seed;
	unsigned how;
	int pid;

	if (sscanf(line, "arm %llu %u %llu %d", &n, &how, &seed, &pid) == 4) {
		disk.events = 0;
		disk.arm_at = n;
		disk.how = (enum how)how;
		disk.seed = seed;
		disk.victim = pid;
		return 0;
	}
	if (sscanf(line, "cut %u %llu", &how, &seed) == 2) {
		disk.how = (enum how)how;
		disk.seed = seed;
		disk.victim = 0;
		cut_power();
		return 0;
	}
	if (strncmp(line, "disarm", 6) == 0) {
		disk.arm_at = 0;
		return 0;
	}
	return -EINVAL;
}

static bool
is_disk(const char *path)
{
	return strcmp(path, "/disk") == 0;
}

static int
do_getattr(const char *path, struct stat *st, struct fuse_file_info *fi)
{
	(void)fi;
	memset(st, 0, sizeof *st);
	if (strcmp(path, "/") == 0) {
		st->st_mode = S_IFDIR | 0700;
		st->st_nlink = 2;
	} else if (is_disk(path) || strcmp(path, "/control") == 0) {
		st->st_mode = S_IFREG | 0600;
		st->st_nlink = 1;
		st->st_size = is_disk(path) ? (off_t)disk.size : 0;
	} else {
		return -ENOENT;
	}
	return 0;
}

static int
do_readdir(const char *path, void *buf, fuse_fill_dir_t fill, off_t at, struct fuse_file_info *fi,
	enum fuse_readdir_flags flags)
{
	(void)path;
	(void)at;
	(void)fi;
	(void)flags;
	(void)fill(buf, "disk", NULL, 0, 0);
	(void)fill(buf, "control", NULL, 0, 0);
	return 0;
}

static int
do_open(const char *path, struct fuse_file_info *fi)
{
	fi->direct_io = !is_disk(path);
	return 0;
}

static int
do_read(const char *path, char *buf, size_t len, off_t at, struct fuse_file_info *fi)
{
	char text[100];
	size_t size = disk.size;
	const uint8_t *from = disk.view;

	(void)fi;
	if (!is_disk(path)) {
		size = (size_t)snprintf(text, sizeof text, "%llu %zu %d\n",
			(unsigned long long)disk.events, disk.n, disk.cut);
		from = (const uint8_t *)text;
	}
	if (at < 0 || (size_t)at >= size)
		return 0;
	if (len > size - (size_t)at)
		len = size - (size_t)at;
	memcpy(buf, from + at, len);
	return (int)len;
}

static int
do_write(const char *path, const char *buf, size_t len, off_t at, struct fuse_file_info *fi)
{
	char line[200];
	int r;

	(void)fi;
	if (!is_disk(path)) {
		(void)snprintf(line, sizeof line, "%.*s", (int)len, buf);
		r = obey(line);
		return r < 0 ? r : (int)len;
	}
	if (at < 0 || (size_t)at > disk.size || len > disk.size - (size_t)at)
		return -ENOSPC;
	return event() ? -EIO : remember(buf, len, at);
}

static int
do_fsync(const char *path, int data_only, struct fuse_file_info *fi)
{
	(void)data_only;
	(void)fi;
	if (!is_disk(path))
		return 0;
	if (event())
		return -EIO;
	flush_pending();
	return 0;
}

static int
do_truncate(const char *path, off_t size, struct fuse_file_info *fi)
{
	(void)size;
	(void)fi;
	return is_disk(path) ? -EPERM : 0;
}

static const struct fuse_operations ops = {
	.getattr = do_getattr,
	.readdir = do_readdir,
	.open = do_open,
	.read = do_read,
	.write = do_write,
	.fsync = do_fsync,
	.truncate = do_truncate,
};

int
main(int argc, char **argv)
{
	char *words[] = { argv[0], (char *)"-f", (char *)"-s", argc > 2 ? argv[2] : NULL, NULL };
	struct stat st;

	if (argc != 3) {
		(void)fprintf(stderr, "usage: crashdisk IMAGE DIR\n");
		return 2;
	}
	disk.fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (disk.fd < 0 || fstat(disk.fd, &st) < 0) {
		perror(argv[1]);
		return 1;
	}
	disk.size = (size_t)st.st_size;
	disk.view = mmap(NULL, disk.size, PROT_READ | PROT_WRITE, MAP_PRIVATE, disk.fd, 0);
	if (disk.view == MAP_FAILED) {
		perror("mmap");
		return 1;
	}
	return fuse_main(4, words, &ops, NULL);
}
#endif
