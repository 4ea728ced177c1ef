/* SPDX-License-Identifier: MIT */
/*
 * LD_PRELOAD library of the fault tests: counts the calls that change the file system in one
 * process of a sync and makes the n-th of them go wrong. Environment: FAULT_WHO    agent or
 * controller (told apart by the command line; any other process is left alone) FAULT_N      which
 * call, from 1; 0: only count FAULT_HOW    kill (in the middle of a write, before anything else),
 * pause, or an errno number FAULT_SPAN   how many calls fail from there on, 0: all (errno), or are
 * paused at (the second has PATH.here.1 and PATH.go.1, and so on)
 *   FAULT_EXE    the name of another program that is meant, whatever its command line
 *   FAULT_OPENS  count every open instead of what changes something: for EMFILE
 *   FAULT_LOG    16 bytes: calls counted, calls hit (little-endian u64); then the name of the call
 * that was hit FAULT_PAUSE  path: PATH.here is made at the n-th call, which waits until PATH.go is
 * there FAULT_CLOCK  seconds that the wall clock of every process is ahead (or, negative, behind)
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

struct log {
	_Atomic uint64_t calls;
	_Atomic uint64_t hits;
	char name[48];
};

enum how {
	HOW_ERRNO,
	HOW_KILL,
	HOW_PAUSE,
};

static struct log *out;
static uint64_t at, span;
static enum how how;
static int number;
static bool opens;
static const char *pause_path;
static long clock_shift;

static bool
is_agent(void)
{
	char line[4096];
	long fd = syscall(SYS_openat, AT_FDCWD, "/proc/self/cmdline", O_RDONLY);
	ssize_t n = fd < 0 ? 0 : read((int)fd, line, sizeof line - 1);

	if (fd >= 0)
		(void)close((int)fd);
	for (ssize_t i = 0; i < n; i += (ssize_t)strlen(line + i) + 1) {
		line[n] = 0;
		if (i && strcmp(line + i, "agent") == 0)
			return true;
	}
	return false;
}

static bool
is_program(const char *name)
{
	char exe[4096];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof exe - 1);
	char *base;

	if (n < 0)
		return false;
	exe[n] = 0;
	base = strrchr(exe, '/');
	return base && strcmp(base + 1, name) == 0;
}

__attribute__((constructor)) static void
start(void)
{
	const char *who = getenv("FAULT_WHO"), *path = getenv("FAULT_LOG"),
		   *v = getenv("FAULT_CLOCK"), *exe = getenv("FAULT_EXE");
	long fd;
	void *p;

	clock_shift = v ? strtol(v, NULL, 10) : 0;
	if (!path ||
		(exe ? !is_program(exe) :
		       !who || !is_program("sbsync") || is_agent() != (strcmp(who, "agent") == 0)))
		return;
	v = getenv("FAULT_N");
	at = v ? strtoull(v, NULL, 10) : 0;
	v = getenv("FAULT_SPAN");
	span = v ? strtoull(v, NULL, 10) : 1;
	v = getenv("FAULT_HOW");
	how = !v || strcmp(v, "kill") == 0 ? HOW_KILL :
		strcmp(v, "pause") == 0    ? HOW_PAUSE :
					     HOW_ERRNO;
	number = v ? (int)strtol(v, NULL, 10) : 0;
	opens = getenv("FAULT_OPENS") != NULL;
	pause_path = getenv("FAULT_PAUSE");
	fd = syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return;
	p = mmap(NULL, sizeof *out, PROT_READ | PROT_WRITE, MAP_SHARED, (int)fd, 0);
	(void)close((int)fd);
	if (p != MAP_FAILED)
		out = p;
}

static void
wait_for_go(uint64_t which)
{
	char path[4096], nth[24] = "";
	struct timespec ts = { .tv_nsec = 2000000 };
	long fd;

	if (which)
		(void)snprintf(nth, sizeof nth, ".%u", (unsigned)which);
	(void)snprintf(path, sizeof path, "%s.here%s", pause_path, nth);
	fd = syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	if (fd >= 0)
		(void)close((int)fd);
	(void)snprintf(path, sizeof path, "%s.go%s", pause_path, nth);
	for (int i = 0; i < 10000 && access(path, F_OK) < 0; i++)
		nanosleep(&ts, NULL);
}

/*
 * Counts one call; true: it must fail, with errno set. A write that is killed has half its bytes
 * out.
 */
static bool
hit(const char *name, int fd, const void *data, size_t len)
{
	uint64_t n;

	if (!out)
		return false;
	n = atomic_fetch_add(&out->calls, 1) + 1;
	if (!at || n < at || (how == HOW_KILL ? n != at : span && n >= at + span))
		return false;
	if (atomic_fetch_add(&out->hits, 1) == 0)
		(void)snprintf(out->name, sizeof out->name, "%s", name);
	if (how == HOW_PAUSE) {
		wait_for_go(n - at);
		return false;
	}
	if (how == HOW_KILL) {
		if (data && len > 1)
			(void)syscall(SYS_write, fd, data, len / 2);
		(void)syscall(SYS_kill, getpid(), SIGKILL);
	}
	errno = number;
	return true;
}

static bool
changes(const char *name)
{
	return !opens && hit(name, -1, NULL, 0);
}

static bool
is_regular(int fd)
{
	struct stat st;
	int keep = errno;
	bool yes = fstat(fd, &st) == 0 && S_ISREG(st.st_mode);

	errno = keep;
	return yes;
}

static bool
open_hit(const char *name, int flags)
{
	if (opens)
		return hit(name, -1, NULL, 0);
	return (flags & (O_CREAT | O_TRUNC)) && hit(name, -1, NULL, 0);
}

#define OPENAT(fn) \
	int fn(int dirfd, const char *path, int flags, ...) \
	{ \
		mode_t mode = 0; \
		if (flags & (O_CREAT | __O_TMPFILE)) { \
			va_list ap; \
			va_start(ap, flags); \
			mode = va_arg(ap, mode_t); \
			va_end(ap); \
		} \
		if (open_hit(#fn, flags)) \
			return -1; \
		return (int)syscall(SYS_openat, dirfd, path, flags | O_LARGEFILE, mode); \
	}
OPENAT(openat)
OPENAT(openat64)

#define OPEN(fn) \
	int fn(const char *path, int flags, ...) \
	{ \
		mode_t mode = 0; \
		if (flags & (O_CREAT | __O_TMPFILE)) { \
			va_list ap; \
			va_start(ap, flags); \
			mode = va_arg(ap, mode_t); \
			va_end(ap); \
		} \
		if (open_hit(#fn, flags)) \
			return -1; \
		return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_LARGEFILE, mode); \
	}
OPEN(open)
OPEN(open64)

/* What a fortified openat becomes. */
int __openat_2(int dirfd, const char *path, int flags);
int __openat64_2(int dirfd, const char *path, int flags);

int
__openat_2(int dirfd, const char *path, int flags)
{
	return open_hit("openat", flags) ?
		-1 :
		(int)syscall(SYS_openat, dirfd, path, flags | O_LARGEFILE, 0);
}

int
__openat64_2(int dirfd, const char *path, int flags)
{
	return __openat_2(dirfd, path, flags);
}

/* openat2 has no function of its own in libc. */
long
syscall(long nr, ...)
{
	static long (*next)(long, ...);
	long a[6];
	va_list ap;

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	va_start(ap, nr);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (nr == SYS_openat2 && open_hit("openat2", (int)((const struct open_how *)a[2])->flags))
		return -1;
	if (nr == SYS_renameat2 && changes("renameat2"))
		return -1;
	return next(nr, a[0], a[1], a[2], a[3], a[4], a[5]);
}

ssize_t
write(int fd, const void *data, size_t len)
{
	if (!opens && out && is_regular(fd) && hit("write", fd, data, len))
		return -1;
	return syscall(SYS_write, fd, data, len);
}

#define PWRITE(fn) \
	ssize_t fn(int fd, const void *data, size_t len, off_t pos) \
	{ \
		if (!opens && out && is_regular(fd) && hit(#fn, fd, NULL, 0)) \
			return -1; \
		return syscall(SYS_pwrite64, fd, data, len, pos); \
	}
PWRITE(pwrite)
PWRITE(pwrite64)

ssize_t
copy_file_range(int in, off64_t *in_at, int to, off64_t *to_at, size_t len, unsigned flags)
{
	return changes("copy_file_range") ?
		-1 :
		syscall(SYS_copy_file_range, in, in_at, to, to_at, len, flags);
}

#define CHANGE(ret, fn, params, nr, ...) \
	ret fn params \
	{ \
		return changes(#fn) ? -1 : (ret)syscall(nr, __VA_ARGS__); \
	}

CHANGE(int, mkdir, (const char *path, mode_t mode), SYS_mkdirat, AT_FDCWD, path, mode)
CHANGE(int, mkdirat, (int fd, const char *path, mode_t mode), SYS_mkdirat, fd, path, mode)
CHANGE(int, rename, (const char *a, const char *b), SYS_renameat, AT_FDCWD, a, AT_FDCWD, b)
CHANGE(int, renameat, (int fa, const char *a, int fb, const char *b), SYS_renameat, fa, a, fb, b)
CHANGE(int, unlink, (const char *path), SYS_unlinkat, AT_FDCWD, path, 0)
CHANGE(int, rmdir, (const char *path), SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)
CHANGE(int, unlinkat, (int fd, const char *path, int flags), SYS_unlinkat, fd, path, flags)
CHANGE(int, linkat, (int fa, const char *a, int fb, const char *b, int flags), SYS_linkat, fa, a,
	fb, b, flags)
CHANGE(int, symlinkat, (const char *to, int fd, const char *path), SYS_symlinkat, to, fd, path)
CHANGE(int, ftruncate, (int fd, off_t len), SYS_ftruncate, fd, len)
CHANGE(int, ftruncate64, (int fd, off64_t len), SYS_ftruncate, fd, len)
CHANGE(int, fchmod, (int fd, mode_t mode), SYS_fchmod, fd, mode)
CHANGE(int, chmod, (const char *path, mode_t mode), SYS_fchmodat, AT_FDCWD, path, mode)
CHANGE(int, futimens, (int fd, const struct timespec ts[2]), SYS_utimensat, fd, NULL, ts, 0)
CHANGE(int, utimensat, (int fd, const char *path, const struct timespec ts[2], int flags),
	SYS_utimensat, fd, path, ts, flags)
CHANGE(int, mknodat, (int fd, const char *path, mode_t mode, dev_t dev), SYS_mknodat, fd, path,
	mode, (unsigned)dev)
CHANGE(int, fchown, (int fd, uid_t u, gid_t g), SYS_fchown, fd, u, g)
CHANGE(int, fchownat, (int fd, const char *path, uid_t u, gid_t g, int flags), SYS_fchownat, fd,
	path, u, g, flags)
CHANGE(int, fsetxattr, (int fd, const char *name, const void *value, size_t size, int flags),
	SYS_fsetxattr, fd, name, value, size, flags)
CHANGE(int, mount,
	(const char *from, const char *to, const char *type, unsigned long flags, const void *data),
	SYS_mount, from, to, type, flags, data)
CHANGE(int, umount2, (const char *path, int flags), SYS_umount2, path, flags)
CHANGE(int, sync_file_range, (int fd, off64_t from, off64_t n, unsigned flags), SYS_sync_file_range,
	fd, from, n, flags)
CHANGE(int, fsync, (int fd), SYS_fsync, fd)
CHANGE(int, fdatasync, (int fd), SYS_fdatasync, fd)
CHANGE(int, syncfs, (int fd), SYS_syncfs, fd)

/* Of all ioctls only those of btrfs that make or remove something. */
int
ioctl(int fd, unsigned long nr, ...)
{
	const unsigned long changing[] = { 14, 15, 23, 24, 63 };
	va_list ap;
	void *arg;

	va_start(ap, nr);
	arg = va_arg(ap, void *);
	va_end(ap);
	for (size_t i = 0; i < sizeof changing / sizeof changing[0]; i++)
		if ((nr >> 8 & 0xff) == 0x94 && (nr & 0xff) == changing[i] && changes("ioctl"))
			return -1;
	return (int)syscall(SYS_ioctl, fd, nr, arg);
}

/* The library's own does AT_SYMLINK_NOFOLLOW by other calls, which are not seen here. */
int
fchmodat(int fd, const char *path, mode_t mode, int flags)
{
	static int (*next)(int, const char *, mode_t, int);

	if (!next)
		*(void **)&next = dlsym(RTLD_NEXT, "fchmodat");
	return changes("fchmodat") ? -1 : next(fd, path, mode, flags);
}

/* `syscall` counts it. */
int
renameat2(int fa, const char *a, int fb, const char *b, unsigned flags)
{
	return (int)syscall(SYS_renameat2, fa, a, fb, b, flags);
}

/* The wall clock. File times are the kernel's and stay true. */
int
clock_gettime(clockid_t id, struct timespec *ts)
{
	int r = (int)syscall(SYS_clock_gettime, id, ts);

	if (r == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE))
		ts->tv_sec += clock_shift;
	return r;
}

time_t
time(time_t *to)
{
	struct timespec ts = { 0 };

	(void)clock_gettime(CLOCK_REALTIME, &ts);
	if (to)
		*to = ts.tv_sec;
	return ts.tv_sec;
}
