/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/zfs.h>

#include <ctype.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/spawn.h>
#include <base/str.h>

#define ARGS_MAX 32
#define OUT_MAX (256u << 20)
#define STDERR_MAX 8192
#define BUSY_PAUSE_MS 20

/* First match wins; the first eight lines are the contract's order. */
static const struct {
	const char *text;
	int code;
} classes[] = {
	{ "does not exist", SB_E_NOTFOUND },
	{ "no such pool", SB_E_NOTFOUND },
	{ "already exists", SB_E_EXISTS },
	{ "dataset is busy", SB_E_STORAGE_BUSY },
	{ "resource busy", SB_E_STORAGE_BUSY },
	{ "permission denied", SB_E_DENIED },
	{ "operation not permitted", SB_E_DENIED },
	{ "pool is full", SB_E_POOL_FULL },
	{ "no space left", SB_E_NOSPACE },
	{ "out of space", SB_E_NOSPACE },
	{ "quota exceeded", SB_E_NOSPACE },
	{ "device is busy", SB_E_STORAGE_BUSY },
	{ "target is busy", SB_E_STORAGE_BUSY },
	{ "dependent clones", SB_E_SNAPSHOT_IN_USE },
	{ "clones of previous snapshots exist", SB_E_SNAPSHOT_IN_USE },
	{ "no such tag", SB_E_HOLD_NOT_FOUND },
	{ "could not find any snapshots", SB_E_NOTFOUND },
	{ "name is too long", SB_E_INVAL },
	{ "zfs-fuse daemon is running", SB_E_UNAVAILABLE },
	{ "zfs modules", SB_E_UNAVAILABLE },
	{ "zfs module", SB_E_UNAVAILABLE },
};

int
sb_zfs_classify(int exit_code, const char *text)
{
	for (size_t i = 0; i < sizeof classes / sizeof classes[0]; i++)
		if (strcasestr(text, classes[i].text))
			return classes[i].code;
	return exit_code == 127 ? SB_E_UNSUPPORTED : SB_E_STORAGE;
}

/* sudo -n PROGRAM ARGS into `argv`. */
static int
build(const struct sb_zfs *z, bool pool, const char *const *args, const char **argv,
	struct sb_error *err)
{
	size_t n = 0;

	if (z->sudo) {
		argv[n++] = "sudo";
		argv[n++] = "-n";
	}
	argv[n++] = pool ? z->zpool : z->zfs;
	for (size_t i = 0; args[i]; i++) {
		if (n == ARGS_MAX)
			return sb_fail(err, SB_E_LIMIT, "zfs %s: too many arguments", args[0]);
		argv[n++] = args[i];
	}
	argv[n] = NULL;
	return 0;
}

/* Fixed text for parsing, nothing of ours for the program to see. */
static const char *const clean_env[] = {
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL=C", NULL
};

/* Turns the outcome of a command into 0 or its class, with one line about it. */
static int
judge(const struct sb_zfs *z, bool pool, const char *const *args, int r, const struct sb_buf *errs,
	struct sb_error *err)
{
	const char *program = pool ? "zpool" : "zfs";
	char text[300];
	size_t len = errs->len;
	int code;

	if (r == 0)
		return 0;
	atomic_fetch_add(&z->counters->errors, 1);
	if (r == SB_E_NOTFOUND)
		return sb_fail(err, SB_E_UNSUPPORTED, "zfs: zfs/zpool command not found (%s)",
			pool ? z->zpool : z->zfs);
	if (r < 0)
		return sb_wrap(err, r, "%s %s", program, args[0] ? args[0] : "");
	while (len > 0 && isspace(errs->data[len - 1]))
		len--;
	code = sb_zfs_classify(r, (const char *)errs->data);
	sb_log(&z->log, SB_LOG_DEBUG, "zfs", "%s %s: exit %d: %.*s", program,
		args[0] ? args[0] : "", r, (int)(len < 400 ? len : 400), (const char *)errs->data);
	return sb_fail(err, code, "%s %s failed (exit=%d): %s", program, args[0] ? args[0] : "", r,
		sb_escape((const char *)errs->data, len, text, sizeof text));
}

/*
 * zfs-fuse comes to a stand for ever when file systems are mounted and unmounted at the same time:
 * four loops of clone and destroy stop it within 150 rounds, one after the other they never do (and
 * are three times as fast). So what changes anything waits here for its turn; who only asks, sends
 * or receives (nothing is mounted then) does not. Commands that a killed host left are waited for
 * by its lock.
 */
static struct {
	pthread_once_t once;
	pthread_mutex_t mu;
	pthread_cond_t free;
	bool taken;
} turns = { .once = PTHREAD_ONCE_INIT, .mu = PTHREAD_MUTEX_INITIALIZER };

static void
init_turns(void)
{
	sb_cond_init(&turns.free);
}

static bool
take_turn(sb_deadline d)
{
	bool ours;

	(void)pthread_once(&turns.once, init_turns);
	(void)pthread_mutex_lock(&turns.mu);
	while (turns.taken && !sb_deadline_passed(d))
		sb_cond_wait_until(&turns.free, &turns.mu, d);
	ours = !turns.taken;
	turns.taken |= ours;
	(void)pthread_mutex_unlock(&turns.mu);
	return ours;
}

static void
leave_turn(void)
{
	(void)pthread_mutex_lock(&turns.mu);
	turns.taken = false;
	(void)pthread_cond_signal(&turns.free);
	(void)pthread_mutex_unlock(&turns.mu);
}

static bool
takes_turns(const struct sb_zfs *z, const char *verb)
{
	static const char *const asking[] = { "list", "get", "version", "diff", "holds" };

	for (size_t i = 0; i < sizeof asking / sizeof asking[0]; i++)
		if (strcmp(verb, asking[i]) == 0)
			return false;
	return !z->modern;
}

/* sb_child_run, in its turn, for which it waits as long as it may take itself. */
static int
run_in_turn(const struct sb_zfs *z, const char *verb, const char *const *argv,
	const struct sb_spawn_opts *o, struct sb_buf *out, struct sb_buf *errs,
	struct sb_error *err)
{
	bool turn = takes_turns(z, verb);
	int r;

	if (turn && !take_turn(sb_deadline_in(z->timeout_ms)))
		return sb_fail(err, SB_E_TIMEOUT,
			"other commands did not leave zfs-fuse free within %lld ms",
			(long long)z->timeout_ms);
	r = sb_child_run(argv, o, NULL, 0, out, errs, NULL, sb_deadline_in(z->timeout_ms), err);
	if (turn)
		leave_turn();
	return r;
}

int
sb_zfs_run(const struct sb_zfs *z, bool pool, const char *const *args, struct sb_buf *out,
	struct sb_error *err)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf errs;
	const char *argv[ARGS_MAX + 1];
	int r;

	sb_buf_init(&errs, STDERR_MAX);
	if (out)
		sb_buf_init(out, OUT_MAX);
	r = build(z, pool, args, argv, err);
	if (r < 0)
		return r;
	o.env = clean_env;
	o.search_path = true;
	if (z->lock_fd >= 0) {
		o.io[0] = SB_SPAWN_FD;
		o.fds[0] = z->lock_fd;
	}
	atomic_fetch_add(&z->counters->commands, 1);
	r = run_in_turn(z, args[0], argv, &o, out, &errs, err);
	r = judge(z, pool, args, r, &errs, err);
	if (r == 0 && out)
		r = sb_buf_check(out, args[0], err);
	return r;
}

/*
 * zfs-fuse lets go of an unmounted dataset when its last changes reach the disk, which may take
 * many seconds; a change of a property waits for just that.
 */
static void
nudge(const struct sb_zfs *z)
{
	const char *const args[] = { "set", "sbhost:nudge=1", z->nudge, NULL };

	if (z->nudge && !z->modern)
		(void)sb_zfs_run(z, false, args, NULL, NULL);
}

/*
 * zfs-fuse hears of a closed file a little later, and never when the file system is unmounted
 * before: then it waits for that for ever and serves nobody meanwhile. So it is never forced to
 * unmount, and what is on its way is let pass: a question that it must answer comes after it.
 */
static void
settle(const struct sb_zfs *z, const char *mounted)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	struct statvfs v;

	for (int i = 0; !z->modern && mounted && i < 3 && statvfs(mounted, &v) == 0; i++)
		(void)nanosleep(&pause, NULL);
}

int
sb_zfs_run_patient(const struct sb_zfs *z, const char *const *args, const char *mounted,
	int64_t busy_ms, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(busy_ms);
	int64_t pause = BUSY_PAUSE_MS;

	for (;;) {
		struct timespec ts = { .tv_sec = pause / 1000, .tv_nsec = pause % 1000 * 1000000 };
		int r;

		settle(z, mounted);
		r = sb_zfs_run(z, false, args, NULL, err);
		if (r != SB_E_STORAGE_BUSY || sb_deadline_passed(d))
			return r;
		atomic_fetch_add(&z->counters->retries, 1);
		(void)nanosleep(&ts, NULL);
		nudge(z);
		if (pause < 500)
			pause *= 2;
	}
}

int
sb_zfs_stream(const struct sb_zfs *z, const char *const *args, int in, int out, int64_t timeout_ms,
	const struct sb_host_call *call, struct sb_error *err)
{
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_deadline d = sb_deadline_in(timeout_ms);
	sb_auto(sb_buf) struct sb_buf errs;
	const char *argv[ARGS_MAX + 1];
	int r;

	sb_buf_init(&errs, STDERR_MAX);
	r = build(z, false, args, argv, err);
	if (r < 0)
		return r;
	o.env = clean_env;
	o.search_path = true;
	if (in >= 0 || z->lock_fd >= 0) {
		o.io[0] = SB_SPAWN_FD;
		o.fds[0] = in >= 0 ? in : z->lock_fd;
	}
	if (out >= 0) {
		o.io[1] = SB_SPAWN_FD;
		o.fds[1] = out;
	}
	atomic_fetch_add(&z->counters->commands, 1);
	r = sb_child_run(argv, &o, NULL, 0, NULL, &errs, call ? call->cancel : NULL,
		call ? sb_deadline_min(d, call->deadline) : d, err);
	return judge(z, false, args, r, &errs, err);
}

char *
sb_zfs_find(const char *name)
{
	const char *path = getenv("PATH");

	path = path && *path ? path : "/usr/sbin:/sbin:/usr/bin:/bin";
	while (!strchr(name, '/') && *path) {
		size_t len = strcspn(path, ":");
		sb_autofree char *file = NULL;

		/* Relative entries would depend on where the host happens to run. */
		if (*path == '/')
			file = sb_str_printf("%.*s/%s", (int)len, path, name);
		if (file && access(file, X_OK) == 0)
			return sb_steal(&file);
		path += len + (path[len] == ':');
	}
	return strdup(name);
}

int
sb_zfs_probe(struct sb_zfs *z, struct sb_error *err)
{
	static const char *const version[] = { "version", NULL };
	static const char *const list[] = { "list", "-H", "-o", "name", NULL };
	sb_auto(sb_buf) struct sb_buf out;
	sb_auto(sb_buf) struct sb_buf names;
	struct sb_error why = { 0 };
	int r = sb_zfs_run(z, false, version, &out, &why);

	sb_buf_init(&names, 0);
	if (r == SB_E_UNSUPPORTED) {
		if (err)
			*err = why;
		return r;
	}
	z->modern = r == 0;
	r = sb_zfs_run(z, true, list, &names, err);
	return r < 0 ? sb_wrap(err, r, "look for ZFS") : 0;
}

bool
sb_zfs_parse_size(const char *s, uint64_t *out)
{
	static const char units[] = "BKMGTPE";
	char *end;
	double v;
	const char *u;

	if (strcmp(s, "-") == 0 || strcmp(s, "none") == 0) {
		*out = 0;
		return true;
	}
	if (!isdigit((unsigned char)s[0]))
		return false;
	errno = 0;
	*out = strtoull(s, &end, 10);
	if (*end == '\0')
		return errno == 0;
	v = strtod(s, &end);
	u = *end ? strchr(units, toupper((unsigned char)*end)) : NULL;
	if (!u || end[1] != '\0')
		return false;
	for (; u > units; u--)
		v *= 1024;
	if (!(v >= 0 && v < 18446744073709551615.0))
		return false;
	*out = (uint64_t)v;
	return true;
}

bool
sb_zfs_parse_percent(const char *s, double *out)
{
	char *end;
	double v;

	if (strcmp(s, "-") == 0) {
		*out = -1;
		return true;
	}
	if (!isdigit((unsigned char)s[0]))
		return false;
	v = strtod(s, &end);
	if (*end == '%')
		end++;
	if (*end != '\0' || !(v >= 0 && v <= 1000))
		return false;
	*out = v / 100;
	return true;
}

static bool
is_octal(char c)
{
	return c >= '0' && c <= '7';
}

void
sb_zfs_unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && is_octal(s[1]) && is_octal(s[2]) && is_octal(s[3]) &&
			is_octal(s[4])) {
			unsigned v = 0;

			for (int i = 1; i <= 4; i++)
				v = v * 8 + (unsigned)(s[i] - '0');
			*to++ = (char)(v & 0xff);
			s += 5;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

int
sb_zfs_lines(char *text, size_t max, sb_zfs_line_fn fn, void *arg, struct sb_error *err)
{
	char *line, *save = text;
	char *field[16];

	while ((line = strsep(&save, "\n"))) {
		size_t n = 0;
		char *f;
		int r;

		if (!*line)
			continue;
		while (n < max && n < 16 && (f = strsep(&line, "\t")))
			field[n++] = f;
		r = fn(field, n, arg, err);
		if (r < 0)
			return r;
	}
	return 0;
}
