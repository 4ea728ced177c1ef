/* SPDX-License-Identifier: MIT */
/* Brings a shadow to the state of a far tree, with find and tar on the far machine. */
#include "config.h"

#include <sync/remote/agentless.h>

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/path.h>
#include <base/quote.h>
#include <base/str.h>
#include <base/work.h>

#include <sync/remote/deploy.h>
#include <sync/remote/marker.h>
#include <sync/tree/nstime.h>
#include <sync/remote/remote.h>
#include <sync/wire/transport.h>

#define ROUNDS 4
#define BLOCK (128u << 10)

/*
 * Names come on standard input, a NUL behind each. Without GNU's tar several archives may follow
 * each other.
 */
static const char script[] = "n=$1; m() { printf \"\\nsbsync:%s:%s\\n\" \"$n\" \"$*\"; }; "
			     "cd \"$2\" || { m failed cannot be entered; exit 0; }; m tar; "
			     "if [ \"$3\" = gnu ]; then exec tar --null --no-recursion "
			     "--hard-dereference --format=pax -T - -cf -; fi; "
			     "exec xargs -0 tar -cf -";

struct fetch {
	const struct sb_agentless *a;
	int rootfd; /* of the shadow */
	struct sb_agentless_list now;
	struct sb_agentless_list before;
	const struct sb_agentless_entry **need; /* into `now`, sorted */
	bool *got;
	int64_t *times; /* of directories, as they shall be in the end; of the first round only */
	bool first;
	size_t n_need;
	bool coarse; /* times are whole seconds over there: those here, which are finer, stay */
	struct sb_agentless_stats *stats;
	struct sb_error *err;
	/* The tar stream. */
	struct sb_marker m;
	uint8_t block[BLOCK];
	struct sb_buf names;
};

static int
remove_path(struct fetch *f, const char *path)
{
	const char *leaf;
	sb_autoclose int dir = sb_path_open_parent(f->rootfd, path, &leaf, NULL);

	/* Its directory is gone already, or it was never there. */
	return dir < 0 ? 0 : sb_path_remove_tree(dir, leaf, f->err);
}

/* Is the shadow's file still the one the record speaks of? */
static bool
shadow_has(struct fetch *f, const struct sb_agentless_entry *e)
{
	struct stat st;

	return sb_path_stat(f->rootfd, e->path, &st, NULL) >= 0 && S_ISREG(st.st_mode) &&
		(uint64_t)st.st_size == e->size &&
		(f->coarse ? (int64_t)st.st_mtim.tv_sec == e->mtime / 1000000000 :
			     sb_ns_from(st.st_mtim) == e->mtime);
}

static bool
unchanged(struct fetch *f, const struct sb_agentless_entry *e)
{
	const struct sb_agentless_entry *old = sb_agentless_list_find(&f->before, e->path);

	return old && old->type == 'f' && old->size == e->size && old->mtime == e->mtime &&
		old->ctime == e->ctime && old->ino == e->ino && shadow_has(f, e);
}

static int
make_link(struct fetch *f, const struct sb_agentless_entry *e)
{
	const char *leaf;
	sb_autoclose int dir = sb_path_open_parent(f->rootfd, e->path, &leaf, f->err);
	char old[4096];
	ssize_t n;
	int r;

	if (dir < 0)
		return dir;
	n = readlinkat(dir, leaf, old, sizeof old);
	if (n == (ssize_t)strlen(e->target) && memcmp(old, e->target, (size_t)n) == 0)
		return 0;
	r = sb_path_remove_tree(dir, leaf, f->err);
	if (r < 0)
		return r;
	if (symlinkat(e->target, dir, leaf) < 0)
		return sb_fail_errno(f->err, "make the link %s", e->path);
	return 0;
}

/*
 * Directories that are read-only there are so here; they have to take new files. Parents come
 * first, so each can be reached.
 */
static void
open_dirs(struct fetch *f)
{
	for (size_t i = 0; i < f->before.n; i++) {
		const struct sb_agentless_entry *e = &f->before.v[i];
		const char *leaf;
		sb_autoclose int dir = -1;

		if (e->type != 'd' || !e->path[0] || (e->mode & 0700) == 0700)
			continue;
		dir = sb_path_open_parent(f->rootfd, e->path, &leaf, NULL);
		if (dir >= 0)
			(void)fchmodat(dir, leaf, 0700, AT_SYMLINK_NOFOLLOW);
	}
}

/*
 * A directory whose time did not change over there keeps the one it has here, whatever is done in
 * it.
 */
static void
note_time(struct fetch *f, size_t i)
{
	const struct sb_agentless_entry *e = &f->now.v[i],
					*old = sb_agentless_list_find(&f->before, e->path);
	struct stat st;

	if (!f->times || !f->first)
		return;
	f->times[i] = e->mtime;
	if (old && old->type == 'd' && old->mtime == e->mtime &&
		sb_path_stat(f->rootfd, e->path, &st, NULL) >= 0)
		f->times[i] = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
}

/* The far side may list any size: what comes must have room where the shadow is. */
static int
check_room(struct fetch *f)
{
	uint64_t sum = 0, room;
	struct statvfs vfs;

	if (fstatvfs(f->rootfd, &vfs) < 0)
		return 0;
	room = (uint64_t)vfs.f_bavail * vfs.f_frsize;
	for (size_t i = 0; i < f->n_need; i++)
		sum = f->need[i]->size > UINT64_MAX - sum ? UINT64_MAX : sum + f->need[i]->size;
	if (sum <= room)
		return 0;
	return sb_fail(f->err, SB_E_NOSPACE,
		"%s has files of %llu bytes to send, %llu are free here: make room or exclude "
		"them; "
		"nothing was changed",
		f->m.name, (unsigned long long)sum, (unsigned long long)room);
}

/* Directories and links as listed; files that have to be fetched are noted. */
static int
prepare(struct fetch *f)
{
	int r = 0;

	open_dirs(f);
	free(f->need);
	free(f->got);
	f->need = calloc(f->now.n + 1, sizeof(struct sb_agentless_entry *));
	f->got = calloc(f->now.n + 1, sizeof *f->got);
	f->n_need = 0;
	f->stats->special = 0;
	if (!f->need || !f->got)
		return sb_fail(f->err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; i < f->before.n && r >= 0; i++) {
		const struct sb_agentless_entry *old = &f->before.v[i],
						*e = sb_agentless_list_find(&f->now, old->path);

		if (!e || e->type != old->type) {
			r = remove_path(f, old->path);
			f->stats->deleted += !e;
		}
		if (r >= 0)
			r = sb_work_alive(f->err);
	}
	for (size_t i = 1; i < f->now.n && r >= 0; i++) {
		const struct sb_agentless_entry *e = &f->now.v[i];

		if (e->type == 'd')
			r = sb_path_mkdirs(f->rootfd, e->path, 0700, f->err);
		if (r >= 0 && e->type == 'd')
			note_time(f, i);
		else if (e->type == 'l')
			r = make_link(f, e);
		else if (e->type == 'o')
			f->stats->special++;
		else if (!unchanged(f, e))
			f->need[f->n_need++] = e;
		if (r >= 0)
			r = sb_work_alive(f->err);
	}
	return r < 0 ? r : check_room(f);
}

static void *
send_names(void *arg)
{
	struct fetch *f = arg;

	(void)sb_marker_send(&f->m, f->names.data, f->names.len, NULL);
	(void)f->m.t->ops->close_write(f->m.t, NULL);
	return NULL;
}

static la_ssize_t
read_block(struct archive *ar, void *arg, const void **out)
{
	struct fetch *f = arg;
	ssize_t n;

	do {
		if (sb_marker_poll(&f->m, f->m.t->rfd, POLLIN, f->err) < 0)
			return -1;
		n = read(f->m.t->rfd, f->block, sizeof f->block);
	} while (n < 0 && (errno == EAGAIN || errno == EINTR));
	*out = f->block;
	return n < 0 ? -1 : (la_ssize_t)n;
}

/* The place of a path in the list of needed ones, or -1. */
static ptrdiff_t
find_need(const struct fetch *f, const char *path)
{
	const struct sb_agentless_entry *e;
	size_t lo = 0, hi = f->n_need;

	while (sb_str_starts(path, "./"))
		path += 2;
	e = sb_agentless_list_find(&f->now, path);
	while (e && lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (f->need[mid] == e)
			return (ptrdiff_t)mid;
		if (f->need[mid] < e)
			lo = mid + 1;
		else
			hi = mid;
	}
	return -1;
}

/* Where a file's bytes come from: the archive, or (for a second name) a file that has arrived. */
static int
copy_bytes(struct fetch *f, struct archive *ar, int from, int to, uint64_t size)
{
	uint64_t done = 0;

	while (done < size) {
		char buf[65536];
		size_t want = size - done < sizeof buf ? (size_t)(size - done) : sizeof buf;
		int r = sb_work_alive(f->err);
		ssize_t n;

		if (r < 0)
			return r;
		n = from >= 0 ? read(from, buf, want) : archive_read_data(ar, buf, want);
		if (n <= 0)
			return sb_fail(f->err, SB_E_CLOSED,
				"%s: the far tar ended in the middle of a file", f->m.name);
		r = sb_file_write_all(to, buf, (size_t)n, f->err);
		if (r < 0)
			return r;
		done += (uint64_t)n;
	}
	return 0;
}

#define NEW_NAME ".sbsync-agentless-new"

/*
 * Where only whole seconds are told, a file of the same second keeps the fraction it has here: its
 * content is compared anyway.
 */
static void
keep_fraction(const struct fetch *f, const struct sb_agentless_entry *e, struct timespec *t)
{
	struct stat st;

	if (f->coarse && sb_path_stat(f->rootfd, e->path, &st, NULL) >= 0 && S_ISREG(st.st_mode) &&
		st.st_mtim.tv_sec == t->tv_sec)
		t->tv_nsec = st.st_mtim.tv_nsec;
}

static int
write_file(struct fetch *f, const struct sb_agentless_entry *e, struct archive *ar, int from)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
		{ .tv_sec = e->mtime / 1000000000,
			.tv_nsec = e->mtime < 0 ? 0 : e->mtime % 1000000000 } };
	const char *leaf;
	sb_autoclose int dir = sb_path_open_parent(f->rootfd, e->path, &leaf, f->err);
	sb_autoclose int fd = -1;
	int r;

	if (dir < 0)
		return dir;
	fd = openat(f->rootfd, NEW_NAME, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		0600);
	if (fd < 0)
		return sb_fail_errno(f->err, "write to the shadow");
	r = copy_bytes(f, ar, from, fd, e->size);
	if (r < 0)
		return r;
	keep_fraction(f, e, &times[1]);
	if (fchmod(fd, e->mode & 0777) < 0 || futimens(fd, times) < 0)
		return sb_fail_errno(f->err, "write to the shadow");
	if (renameat(f->rootfd, NEW_NAME, dir, leaf) < 0) {
		r = sb_path_remove_tree(dir, leaf, f->err);
		if (r >= 0 && renameat(f->rootfd, NEW_NAME, dir, leaf) < 0)
			r = sb_fail_errno(f->err, "write to the shadow: %s", e->path);
	}
	return r;
}

static int
take_entry(struct fetch *f, struct archive *ar, struct archive_entry *ae)
{
	const char *path = archive_entry_pathname(ae), *link = archive_entry_hardlink(ae);
	ptrdiff_t at = path ? find_need(f, path) : -1;
	sb_autoclose int from = -1;
	const struct sb_agentless_entry *e;
	char shown[200];
	int r;

	if (at < 0 || f->got[at])
		return sb_fail(f->err, SB_E_PROTO,
			"%s: the far tar sends what was not asked for: %s", f->m.name,
			sb_escape(path ? path : "", path ? strlen(path) : 0, shown, sizeof shown));
	e = f->need[at];
	/* Our tar command makes none: a map of holes says much and sends little. */
	if (archive_entry_sparse_count(ae))
		return sb_fail(f->err, SB_E_PROTO, "%s: the far tar sends a sparse file: %s",
			f->m.name, sb_escape(path, strlen(path), shown, sizeof shown));
	if (link) {
		ptrdiff_t first = find_need(f, link);

		/*
		 * Not in this archive, or not of the listed size: it changed, the next round sees.
		 */
		if (first < 0 || !f->got[first] || f->need[first]->size != e->size)
			return 0;
		from = sb_path_open(f->rootfd, f->need[first]->path, O_RDONLY, 0, f->err);
		if (from < 0)
			return from;
	} else if (archive_entry_filetype(ae) != AE_IFREG ||
		(uint64_t)archive_entry_size(ae) != e->size ||
		archive_entry_mtime(ae) != e->mtime / 1000000000) {
		return 0;
	}
	r = write_file(f, e, ar, from);
	if (r < 0)
		return r;
	f->got[at] = true;
	f->stats->files++;
	f->stats->bytes += e->size;
	return 0;
}

static int
read_tar(struct fetch *f)
{
	struct archive *ar = archive_read_new();
	struct archive_entry *ae;
	int n = ARCHIVE_EOF, r = 0;

	if (!ar || archive_read_support_format_tar(ar) < ARCHIVE_WARN ||
		archive_read_set_options(ar, "tar:read_concatenated_archives") < ARCHIVE_WARN ||
		archive_read_open(ar, f, NULL, read_block, NULL) != ARCHIVE_OK) {
		archive_read_free(ar);
		return f->err->code ? f->err->code :
				      sb_fail(f->err, SB_E_PROTO, "%s: no tar stream", f->m.name);
	}
	while (r >= 0 && (r = sb_work_alive(f->err)) >= 0 &&
		(n = archive_read_next_header(ar, &ae)) >= ARCHIVE_WARN && n != ARCHIVE_EOF)
		r = take_entry(f, ar, ae);
	if (r >= 0 && n != ARCHIVE_EOF)
		r = f->err->code < 0 ?
			f->err->code :
			sb_fail(f->err, SB_E_PROTO, "%s: damaged tar stream", f->m.name);
	archive_read_free(ar);
	return r;
}

static int
run_tar(struct fetch *f)
{
	sb_auto(sb_buf) struct sb_buf command;
	pthread_t thread;
	struct sb_exit e;
	int r;

	sb_buf_init(&command, 256u << 10);
	r = sb_marker_init(&f->m, f->err);
	if (r < 0)
		return r;
	sb_buf_addf(&command, "exec sh -c '%s' sbsync %s ", script, f->m.nonce);
	sb_quote_argument(&command, f->a->root);
	sb_buf_addf(&command, " %s", f->now.gnu_tar ? "gnu" : "other");
	r = sb_buf_check(&command, "path", f->err);
	if (r < 0)
		return r;
	f->m.t = sb_remote_exec(f->a->remote, (char *)command.data, f->err);
	if (!f->m.t)
		return f->err->code;
	r = sb_marker_next(&f->m, f->err);
	if (r >= 0 && strcmp(f->m.line, "tar") != 0)
		r = sb_fail(f->err, SB_E_PEER, "%s: %s cannot be entered", f->m.name, f->a->root);
	if (r >= 0 && pthread_create(&thread, NULL, send_names, f) != 0)
		r = sb_fail(f->err, SB_E_SYS, "start a thread");
	if (r >= 0) {
		r = read_tar(f);
		/*
		 * A tar that read a changing file complains; whether each file is good is known
		 * already.
		 */
		if (r < 0)
			f->m.t->ops->cancel(f->m.t);
		(void)pthread_join(thread, NULL);
		if (r >= 0)
			(void)f->m.t->ops->wait(f->m.t, sb_deadline_in(5000), &e, NULL);
	}
	sb_transport_free(f->m.t);
	f->m.t = NULL;
	return r;
}

static int
write_names(struct fetch *f)
{
	sb_buf_reset(&f->names);
	for (size_t i = 0; i < f->n_need; i++) {
		/* "./" in front keeps a name that begins with a dash from being an option. */
		sb_buf_addf(&f->names, "./%s", f->need[i]->path);
		sb_buf_add_char(&f->names, '\0');
	}
	return sb_buf_check(&f->names, "list of files", f->err);
}

static size_t
missing(const struct fetch *f)
{
	size_t n = 0;

	for (size_t i = 0; i < f->n_need; i++)
		n += !f->got[i];
	return n;
}

/* Modes and times of directories, deepest first: writing into them changed the times. */
static void
finish_dirs(struct fetch *f)
{
	for (size_t i = f->now.n; i-- > 0;) {
		const struct sb_agentless_entry *e = &f->now.v[i];
		/* The agent that works in the shadow has to get into it. */
		mode_t mode = (e->mode & 0777) | (i ? 0 : 0700);
		struct timespec times[2] = { { .tv_nsec = UTIME_OMIT },
			{ .tv_sec = e->mtime / 1000000000,
				.tv_nsec = e->mtime < 0 ? 0 : e->mtime % 1000000000 } };
		sb_autoclose int fd = -1;

		if (e->type != 'd')
			continue;
		if (i && f->first && f->times) {
			times[1].tv_sec = f->times[i] / 1000000000;
			times[1].tv_nsec = f->times[i] < 0 ? 0 : f->times[i] % 1000000000;
		}
		fd = sb_path_open(f->rootfd, e->path, O_RDONLY | O_DIRECTORY, 0, NULL);
		if (fd >= 0) {
			(void)fchmod(fd, mode);
			(void)futimens(fd, times);
		}
	}
}

/*
 * A file changed in the second in which the listing began may change again without its times
 * showing it. It gets an inode number that never was, so that the next fetch brings it again.
 */
static void
distrust_racy(struct fetch *f)
{
	for (size_t i = 0; i < f->now.n; i++)
		if (f->now.v[i].type == 'f' && f->now.v[i].ctime / 1000000000 >= f->now.taken)
			f->now.v[i].ino = 0;
}

static int
fetch_round(struct fetch *f)
{
	struct sb_agentless a = *f->a;
	int r;

	sb_agentless_list_free(&f->now);
	a.known = f->before.n;
	r = sb_agentless_list_far(&a, &f->now, f->err);
	if (r < 0)
		return r;
	if (f->now.absent)
		return sb_fail(f->err, SB_E_NOTFOUND, "%s: %s is not there", f->m.name, f->a->root);
	f->coarse = f->now.coarse || !f->now.gnu_tar;
	if (f->first)
		f->times = calloc(f->now.n + 1, sizeof *f->times);
	r = prepare(f);
	if (r >= 0)
		r = write_names(f);
	if (r >= 0 && f->n_need > 0)
		r = run_tar(f);
	return r;
}

/* What arrived is remembered at once, so that a broken connection costs only what did not. */
static int
remember(struct fetch *f, const char *record, struct sb_error *err)
{
	for (size_t i = 0; i < f->n_need; i++)
		if (!f->got[i]) {
			const struct sb_agentless_entry *e =
				sb_agentless_list_find(&f->now, f->need[i]->path);

			/* As if it had been another file: it will be fetched. */
			((struct sb_agentless_entry *)(uintptr_t)e)->ino = 0;
		}
	return sb_agentless_save(record, &f->now, err);
}

static int
fetch_all(struct fetch *f, const char *record)
{
	int r = 0;

	for (int round = 0; round < ROUNDS; round++) {
		memset(f->err, 0, sizeof *f->err);
		f->first = round == 0;
		r = fetch_round(f);
		if (f->now.n > 0 && f->need) {
			struct sb_error why = { 0 };
			int saved = remember(f, record, &why);

			if (r >= 0 && saved < 0)
				return sb_fail(f->err, saved, "%s", why.msg);
			sb_agentless_list_free(&f->before);
			(void)sb_agentless_load(record, &f->before, NULL);
		}
		if (r < 0)
			return r;
		if (missing(f) == 0) {
			finish_dirs(f);
			distrust_racy(f);
			return sb_agentless_save(record, &f->now, f->err);
		}
	}
	return sb_fail(f->err, SB_E_UNSTABLE, "%s: %zu files of %s keep changing", f->m.name,
		missing(f), f->a->root);
}

int
sb_agentless_fetch(const struct sb_agentless *a, const char *shadow, const char *record,
	struct sb_agentless_stats *stats, struct sb_error *err)
{
	struct fetch *f = calloc(1, sizeof *f);
	struct sb_error why = { 0 };
	int r;

	if (!f)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	memset(stats, 0, sizeof *stats);
	f->a = a;
	f->stats = stats;
	f->err = &why;
	f->m = (struct sb_marker){ .name = sb_remote_name(a->remote),
		.cancel = a->cancel,
		.deadline = a->deadline };
	sb_buf_init(&f->names, (size_t)1 << 30);
	r = sb_file_mkdirs(shadow, 0700, &why);
	f->rootfd = r < 0 ? -1 : sb_path_open_root(shadow, &why);
	if (f->rootfd < 0)
		r = why.code;
	/* Without a record nobody knows what the shadow holds. */
	if (r >= 0 && sb_agentless_load(record, &f->before, NULL) < 0)
		r = sb_agentless_list_local(a, f->rootfd, &f->before, &why);
	if (r >= 0)
		r = fetch_all(f, record);
	if (r < 0 && err)
		*err = why;
	sb_agentless_list_free(&f->now);
	sb_agentless_list_free(&f->before);
	sb_buf_free(&f->names);
	free(f->need);
	free(f->times);
	free(f->got);
	if (f->rootfd >= 0)
		(void)close(f->rootfd);
	free(f);
	return r < 0 ? r : 0;
}
