/* SPDX-License-Identifier: MIT */
/* Lists a far tree with find and stat, and a local one in the same form. */
#include "config.h"

#include <sync/remote/agentless.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/memory.h>
#include <base/path.h>
#include <base/quote.h>
#include <base/str.h>
#include <base/work.h>

#include <sync/remote/deploy.h>
#include <sync/remote/marker.h>
#include <sync/tree/nstime.h>
#include <sync/remote/remote.h>
#include <sync/wire/transport.h>

#define LISTING_MAX ((size_t)1 << 30)
#define ENTRIES_MAX 10000000u
#define ENTRIES_ALWAYS (1u << 20)
#define ENTRIES_GROWTH 16
#define ENTRY_COST 1024u /* bytes that one takes until it is synced */
#define ENTRY_BYTES 512u /* of one in a listing, on the average */
#define DEPTH_MAX 4096
#define TRIES 3

/*
 * Two forms. With a find that has -printf: "TYPE MODE SIZE MTIME CTIME INO PATH" NUL "TARGET" NUL
 * for each. Without (busybox): all names as "./PATH" NUL, an empty name, a line "HEXMODE SIZE MTIME
 * CTIME INO" for each in the same order, and for each symlink among them its target and a NUL. The
 * last line tells whether everything was readable.
 */
static const char script[] =
	"n=$1; m() { printf \"\\nsbsync:%s:%s\\n\" \"$n\" \"$*\"; }; "
	"c=$(date +%s); g=other; case $(tar --version 2>/dev/null) in *GNU*) g=gnu;; esac; "
	"[ -e \"$2\" ] || { m absent $g; exit 0; }; [ -d \"$2\" ] || { m failed not a directory; "
	"exit 0; }; "
	"cd \"$2\" || { m failed cannot be entered; exit 0; }; "
	"if find . -prune -printf x >/dev/null 2>&1; then m list printf $c $g; "
	"find . -xdev -printf \"%y %m %s %T@ %C@ %i %P\\0%l\\0\"; e=$?; "
	"elif stat -c %i . >/dev/null 2>&1 && find . -prune -print0 >/dev/null 2>&1; then m list "
	"stat $c $g; "
	"find . -xdev -print0; e=$?; printf \"\\0\"; "
	"find . -xdev -exec stat -c \"%f %s %Y %Z %i\" {} + || e=1; "
	"find . -xdev -type l -exec sh -c \"for f; do readlink -n \\\"\\$f\\\"; printf "
	"\\\"\\\\\\\\0\\\"; done\" sh {} + || e=1; "
	"else m failed has neither find -printf nor stat -c; exit 0; fi; m end $e";

void
sb_agentless_list_free(struct sb_agentless_list *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->v[i].path);
		free(l->v[i].target);
	}
	free(l->v);
	memset(l, 0, sizeof *l);
}

/* A new entry at the end, zeroed. */
static struct sb_agentless_entry *
list_add(struct sb_agentless_list *l, struct sb_error *err)
{
	if (l->n >= (l->most ? l->most : ENTRIES_MAX)) {
		sb_fail(err, SB_E_LIMIT,
			"the listing has more than %llu entries; if that is right: --max-entries "
			"%u",
			(unsigned long long)(l->most ? l->most : ENTRIES_MAX), ENTRIES_MAX);
		return NULL;
	}
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 256;
		struct sb_agentless_entry *v = realloc(l->v, cap * sizeof *v);

		if (!v) {
			sb_fail(err, SB_E_NOMEM, "listing: out of memory");
			return NULL;
		}
		l->v = v;
		l->cap = cap;
	}
	memset(&l->v[l->n], 0, sizeof l->v[0]);
	return &l->v[l->n++];
}

/*
 * The order of a walk: a directory, all beneath it, then its neighbours. So '/' comes before every
 * other character.
 */
static int
compare(const void *a, const void *b)
{
	const unsigned char *p =
		(const unsigned char *)((const struct sb_agentless_entry *)a)->path;
	const unsigned char *q =
		(const unsigned char *)((const struct sb_agentless_entry *)b)->path;

	while (*p && *p == *q) {
		p++;
		q++;
	}
	if (*p == *q)
		return 0;
	if (*p == '/')
		return *q ? -1 : 1;
	if (*q == '/')
		return *p ? 1 : -1;
	return *p < *q ? -1 : 1;
}

/* A sort cannot be stopped, but it can be made short; whoever asked for it looks again. */
static int
sort_order(const void *a, const void *b)
{
	return sb_work_alive(NULL) < 0 ? 0 : compare(a, b);
}

const struct sb_agentless_entry *
sb_agentless_list_find(const struct sb_agentless_list *l, const char *path)
{
	const struct sb_agentless_entry key = { .path = (char *)(uintptr_t)path };

	return l->n ? bsearch(&key, l->v, l->n, sizeof key, compare) : NULL;
}

/* "SECONDS" or "SECONDS.FRACTION" as nanoseconds. */
static bool
parse_time(const char *s, size_t len, int64_t *out)
{
	const char *dot = memchr(s, '.', len);
	size_t whole = dot ? (size_t)(dot - s) : len;
	int64_t sec, ns = 0;
	char buf[24];

	if (whole == 0 || whole >= sizeof buf)
		return false;
	memcpy(buf, s, whole);
	buf[whole] = '\0';
	if (!sb_str_to_i64(buf, -4000000000, 9000000000, &sec))
		return false;
	for (size_t i = whole + 1; i < whole + 10; i++) {
		if (i < len && (s[i] < '0' || s[i] > '9'))
			return false;
		ns = ns * 10 + (i < len ? s[i] - '0' : 0);
	}
	*out = sec * 1000000000 + (*s == '-' ? -ns : ns);
	return true;
}

/* The next word before a blank; false at the end. */
static bool
word(const char **at, const char *end, const char **out, size_t *len)
{
	const char *space = memchr(*at, ' ', (size_t)(end - *at));

	*out = *at;
	if (!space)
		space = end;
	*len = (size_t)(space - *at);
	*at = space < end ? space + 1 : end;
	return *len > 0;
}

static bool
word_u64(const char **at, const char *end, int base, uint64_t *out)
{
	char buf[24];
	const char *w;
	size_t len;
	char *stop;

	if (!word(at, end, &w, &len) || len >= sizeof buf || *w == '-' || *w == '+')
		return false;
	memcpy(buf, w, len);
	buf[len] = '\0';
	errno = 0;
	*out = strtoull(buf, &stop, base);
	return errno == 0 && !*stop;
}

static bool
word_time(const char **at, const char *end, int64_t *out)
{
	const char *w;
	size_t len;

	return word(at, end, &w, &len) && parse_time(w, len, out);
}

static int
set_path(struct sb_agentless_entry *e, const char *path, size_t len, struct sb_error *err)
{
	char shown[200];
	int r = sb_path_check(path, len, err);

	if (r < 0)
		return sb_fail(err, SB_E_PROTO, "the far side lists a path that is none: %s",
			sb_escape(path, len, shown, sizeof shown));
	e->path = strndup(path, len);
	return e->path ? 0 : sb_fail(err, SB_E_NOMEM, "listing: out of memory");
}

static char
type_of_mode(uint64_t mode)
{
	return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
}

static int
set_target(struct sb_agentless_entry *e, const char *target, size_t len, struct sb_error *err)
{
	if (e->type != 'l')
		return 0;
	if (len == 0 || len > 4095)
		return sb_fail(err, SB_E_PROTO, "the far side lists a symlink without target");
	e->target = strndup(target, len);
	return e->target ? 0 : sb_fail(err, SB_E_NOMEM, "listing: out of memory");
}

#define DAMAGED "the far side's listing is damaged"

static int
parse_printf(const char *p, const char *end, struct sb_agentless_list *l, struct sb_error *err)
{
	while (p < end) {
		const char *stop = memchr(p, '\0', (size_t)(end - p));
		const char *link = stop ? stop + 1 : end;
		const char *link_end = memchr(link, '\0', (size_t)(end - link));
		struct sb_agentless_entry *e;
		const char *type;
		uint64_t mode;
		size_t len;
		int r;

		if (!stop || !link_end)
			return sb_fail(err, SB_E_PROTO, DAMAGED);
		r = sb_work_alive(err);
		if (r < 0)
			return r;
		e = list_add(l, err);
		if (!e)
			return err ? err->code : SB_E_NOMEM;
		if (!word(&p, stop, &type, &len) || len != 1 || !word_u64(&p, stop, 8, &mode) ||
			!word_u64(&p, stop, 10, &e->size) || !word_time(&p, stop, &e->mtime) ||
			!word_time(&p, stop, &e->ctime) || !word_u64(&p, stop, 10, &e->ino))
			return sb_fail(err, SB_E_PROTO, DAMAGED);
		e->type = strchr("fdl", *type) ? *type : 'o';
		e->mode = mode & 07777;
		r = set_path(e, p, (size_t)(stop - p), err);
		if (r >= 0)
			r = set_target(e, link, (size_t)(link_end - link), err);
		if (r < 0)
			return r;
		p = link_end + 1;
	}
	return 0;
}

/* The names of the second form; `*at` is left behind them. */
static int
parse_names(const char **at, const char *end, struct sb_agentless_list *l, struct sb_error *err)
{
	const char *p = *at;

	for (;;) {
		const char *stop = memchr(p, '\0', (size_t)(end - p));
		struct sb_agentless_entry *e;
		int r;

		if (!stop)
			return sb_fail(err, SB_E_PROTO, DAMAGED);
		if (stop == p) {
			*at = p + 1;
			return 0;
		}
		r = sb_work_alive(err);
		if (r < 0)
			return r;
		e = list_add(l, err);
		if (!e)
			return err ? err->code : SB_E_NOMEM;
		if (*p != '.' || (p[1] != '/' && p[1] != '\0'))
			return sb_fail(err, SB_E_PROTO, DAMAGED);
		p += p[1] == '/' ? 2 : 1;
		r = set_path(e, p, (size_t)(stop - p), err);
		if (r < 0)
			return r;
		p = stop + 1;
	}
}

static int
parse_stat(const char *p, const char *end, struct sb_agentless_list *l, struct sb_error *err)
{
	int r = parse_names(&p, end, l, err);

	for (size_t i = 0; i < l->n && r >= 0; i++) {
		struct sb_agentless_entry *e = &l->v[i];
		const char *nl = memchr(p, '\n', (size_t)(end - p));
		uint64_t mode;

		if (!nl || !word_u64(&p, nl, 16, &mode) || !word_u64(&p, nl, 10, &e->size) ||
			!word_time(&p, nl, &e->mtime) || !word_time(&p, nl, &e->ctime) ||
			!word_u64(&p, nl, 10, &e->ino))
			return sb_fail(err, SB_E_CHANGED,
				"the far tree changed while it was listed");
		e->type = type_of_mode(mode);
		e->mode = mode & 07777;
		p = nl + 1;
		r = sb_work_alive(err);
	}
	for (size_t i = 0; i < l->n && r >= 0; i++) {
		const char *stop;

		if (l->v[i].type != 'l')
			continue;
		stop = memchr(p, '\0', (size_t)(end - p));
		if (!stop)
			return sb_fail(err, SB_E_CHANGED,
				"the far tree changed while it was listed");
		r = set_target(&l->v[i], p, (size_t)(stop - p), err);
		p = stop + 1;
	}
	l->coarse = true;
	return r;
}

static int
depth_of(const char *path)
{
	int n = 0;

	for (; *path; path++)
		n += *path == '/';
	return n;
}

/* Every path once, and in a directory that is listed too. */
static int
check_tree(struct sb_agentless_list *l, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf dir;
	char shown[200];

	sb_buf_init(&dir, 1u << 20);
	if (l->n)
		qsort(l->v, l->n, sizeof *l->v, sort_order);
	if (sb_work_alive(err) < 0)
		return SB_E_CANCELED;
	if (!l->n || l->v[0].path[0] != '\0' || l->v[0].type != 'd')
		return sb_fail(err, SB_E_PROTO, "the far side's listing has no root");
	for (size_t i = 1; i < l->n; i++) {
		struct sb_agentless_entry *e = &l->v[i];
		const struct sb_agentless_entry *up;
		const char *slash = strrchr(e->path, '/');

		sb_buf_reset(&dir);
		sb_buf_add(&dir, e->path, slash ? (size_t)(slash - e->path) : 0);
		if (sb_buf_check(&dir, "path", err) < 0)
			return SB_E_LIMIT;
		if (depth_of(e->path) > DEPTH_MAX)
			return sb_fail(err, SB_E_LIMIT,
				"the far side's listing is more than %d directories deep",
				DEPTH_MAX);
		if (sb_work_alive(err) < 0)
			return SB_E_CANCELED;
		up = sb_agentless_list_find(l, (char *)dir.data);
		if (!up || up->type != 'd' || strcmp(l->v[i - 1].path, e->path) == 0)
			return sb_fail(err, SB_E_PROTO, "the far side lists %s out of place",
				sb_escape(e->path, strlen(e->path), shown, sizeof shown));
	}
	return 0;
}

/* `most`: how many entries are believed; 0: as many as there may ever be. */
static int
parse(const char *form, const char *data, size_t len, uint64_t most, struct sb_agentless_list *out,
	struct sb_error *err)
{
	sb_auto(sb_agentless_list) struct sb_agentless_list l = { .most = most };
	struct sb_error why = { 0 };
	int r;

	r = strcmp(form, "stat") == 0 ? parse_stat(data, data + len, &l, &why) :
					parse_printf(data, data + len, &l, &why);
	if (r >= 0)
		r = check_tree(&l, &why);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	*out = l;
	memset(&l, 0, sizeof l);
	return 0;
}

int
sb_agentless_list_parse(const char *form, const char *data, size_t len,
	struct sb_agentless_list *out, struct sb_error *err)
{
	return parse(form, data, len, 0, out, err);
}

/* As of a tree that an agent lists (exchange.c). */
static uint64_t
most_entries(const struct sb_agentless *a)
{
	uint64_t most =
		a->known > ENTRIES_MAX / ENTRIES_GROWTH ? ENTRIES_MAX : a->known * ENTRIES_GROWTH;
	uint64_t memory = sb_memory_available() / ENTRY_COST;

	if (a->max_entries)
		return a->max_entries;
	if (most < ENTRIES_ALWAYS)
		most = ENTRIES_ALWAYS;
	if (most > memory)
		most = memory;
	return most < a->known + a->known / 4 + 10000 ? a->known + a->known / 4 + 10000 : most;
}

/*
 * Drops what is ignored, and what lies beneath it; sorted order puts a directory before its
 * contents.
 */
static int
drop_ignored(const struct sb_agentless *a, struct sb_agentless_list *l, struct sb_error *err)
{
	sb_autofree char *gone = NULL; /* the directory dropped last */
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct sb_agentless_entry *e = &l->v[i];
		size_t len = gone ? strlen(gone) : 0;

		/* Once canceled, the rest is only moved up: the list is freed next. */
		if (r == 0)
			r = sb_work_alive(err);
		if (r < 0) {
			l->v[kept++] = *e;
			continue;
		}
		if (gone && strncmp(e->path, gone, len) == 0 && e->path[len] == '/') {
			free(e->path);
		} else if (sb_str_starts(e->path, SB_AGENTLESS_STAGE) ||
			(e->path[0] && a->ignored &&
				a->ignored(e->path, e->type == 'd', a->ignored_arg))) {
			free(gone);
			gone = e->path;
		} else {
			l->v[kept++] = *e;
			continue;
		}
		free(e->target);
	}
	l->n = kept;
	return r;
}

/* Everything up to the line "end"; the code it names. */
static int
read_listing(struct sb_marker *m, struct sb_buf *out, int *code, struct sb_error *err)
{
	struct sb_exit e;
	char mark[64];
	const char *at = NULL;
	int r;

	for (;;) {
		uint8_t *p = sb_buf_reserve(out, 65536);
		ssize_t n;

		if (!p)
			return sb_buf_check(out, "the far side's listing", err);
		r = sb_marker_poll(m, m->t->rfd, POLLIN, err);
		if (r < 0)
			return r;
		n = read(m->t->rfd, p, 65536);
		if (n < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (n <= 0)
			break;
		sb_buf_grow(out, (size_t)n);
	}
	r = m->t->ops->wait(m->t, sb_deadline_min(m->deadline, sb_deadline_in(10000)), &e, err);
	if (r < 0)
		return r;
	(void)snprintf(mark, sizeof mark, "\nsbsync:%s:end ", m->nonce);
	if (out->len >= 64)
		at = memmem(out->data + out->len - 64, 64, mark, strlen(mark));
	else
		at = memmem(out->data, out->len, mark, strlen(mark));
	if (!at)
		return sb_fail(err, SB_E_CLOSED, "%s: the listing ended early: %.200s", m->name,
			e.stderr_tail);
	*code = at[strlen(mark)] == '0' ? 0 : 1;
	if (*code)
		(void)sb_fail(err, SB_E_PEER, "%s: not everything there can be read: %.300s",
			m->name, e.stderr_tail);
	out->len = (size_t)(at - (const char *)out->data);
	return 0;
}

static int
list_once(const struct sb_agentless *a, struct sb_agentless_list *out, struct sb_error *err)
{
	sb_auto(sb_transport) struct sb_transport *t = NULL;
	sb_auto(sb_buf) struct sb_buf command;
	sb_auto(sb_buf) struct sb_buf data;
	struct sb_marker m = { .name = sb_remote_name(a->remote),
		.cancel = a->cancel,
		.deadline = a->deadline };
	uint64_t most = most_entries(a);
	char shown[200], form[8];
	int r, code = 0;

	sb_buf_init(&command, 256u << 10);
	sb_buf_init(&data,
		most < LISTING_MAX / ENTRY_BYTES ? (size_t)most * ENTRY_BYTES : LISTING_MAX);
	r = sb_marker_init(&m, err);
	if (r < 0)
		return r;
	sb_buf_addf(&command, "exec sh -c '%s' sbsync %s ", script, m.nonce);
	sb_quote_argument(&command, a->root);
	r = sb_buf_check(&command, "path", err);
	if (r < 0)
		return r;
	t = m.t = sb_remote_exec(a->remote, (char *)command.data, err);
	if (!t)
		return err ? err->code : SB_E_CONNECT;
	(void)t->ops->close_write(t, NULL);
	r = sb_marker_next(&m, err);
	if (r < 0)
		return r;
	if (sb_str_starts(m.line, "absent")) {
		out->absent = true;
		out->gnu_tar = sb_str_ends(m.line, " gnu");
		return 0;
	}
	if (!sb_str_starts(m.line, "list "))
		return sb_fail(err, strstr(m.line, "neither") ? SB_E_UNSUPPORTED : SB_E_PEER,
			"%s: %s %s", m.name, a->root,
			sb_escape(m.line, strlen(m.line), shown, sizeof shown));
	(void)snprintf(form, sizeof form, "%s",
		sb_str_starts(m.line, "list stat") ? "stat" : "printf");
	r = read_listing(&m, &data, &code, err);
	if (r >= 0 && code)
		return SB_E_PEER;
	if (r >= 0)
		r = parse(form, (char *)data.data, data.len, most, out, err);
	if (r >= 0) {
		out->gnu_tar = sb_str_ends(m.line, " gnu");
		out->taken = strtoll(m.line + strcspn(m.line, "0123456789"), NULL, 10);
	}
	return r;
}

int
sb_agentless_list_far(const struct sb_agentless *a, struct sb_agentless_list *out,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	int r = 0;

	memset(out, 0, sizeof *out);
	/* Files that come and go make find stumble: that deserves another look. */
	for (int i = 0; i < TRIES; i++) {
		r = list_once(a, out, &why);
		if (r != SB_E_PEER && r != SB_E_CHANGED)
			break;
	}
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	r = drop_ignored(a, out, err);
	if (r < 0)
		sb_agentless_list_free(out);
	return r;
}

static int list_dir(int fd, const char *path, int depth, struct sb_agentless_list *l,
	struct sb_error *err);

static int
list_one(int dirfd, const char *dir, const char *name, int depth, struct sb_agentless_list *l,
	struct sb_error *err)
{
	sb_autofree char *path = *dir ? sb_str_printf("%s/%s", dir, name) : strdup(name);
	struct sb_agentless_entry *e;
	struct stat st;
	char target[4096];
	ssize_t n;
	int fd;

	if (!path || !(e = list_add(l, err)))
		return sb_fail(err, SB_E_NOMEM, "listing: out of memory");
	if (fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return sb_fail_errno(err, "look at %s", path);
	e->type = type_of_mode(st.st_mode);
	e->mode = st.st_mode & 07777;
	e->size = (uint64_t)st.st_size;
	e->mtime = sb_ns_from(st.st_mtim);
	e->ctime = sb_ns_from(st.st_ctim);
	e->ino = st.st_ino;
	e->path = strdup(path);
	if (!e->path)
		return sb_fail(err, SB_E_NOMEM, "listing: out of memory");
	if (e->type == 'l') {
		n = readlinkat(dirfd, name, target, sizeof target);
		if (n < 0)
			return sb_fail_errno(err, "read the link %s", path);
		return set_target(e, target, (size_t)n, err);
	}
	if (e->type != 'd')
		return 0;
	fd = openat(dirfd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return sb_fail_errno(err, "open %s", path);
	return list_dir(fd, path, depth + 1, l, err);
}

/* Takes `fd` over. */
static int
list_dir(int fd, const char *path, int depth, struct sb_agentless_list *l, struct sb_error *err)
{
	sb_autoclosedir DIR *d = fdopendir(fd);
	struct dirent *de;
	int r = 0;

	if (!d) {
		(void)close(fd);
		return sb_fail_errno(err, "open %s", path);
	}
	if (depth > DEPTH_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %d directories deep", DEPTH_MAX);
	while (r >= 0 && (r = sb_work_alive(err)) >= 0 && (de = readdir(d)))
		if (strcmp(de->d_name, ".") != 0 && strcmp(de->d_name, "..") != 0)
			r = list_one(dirfd(d), path, de->d_name, depth, l, err);
	return r;
}

int
sb_agentless_list_local(const struct sb_agentless *a, int rootfd, struct sb_agentless_list *out,
	struct sb_error *err)
{
	sb_auto(sb_agentless_list) struct sb_agentless_list l = { 0 };
	int fd = openat(rootfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct sb_agentless_entry *root = list_add(&l, err);
	struct stat st;
	int r;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "open the shadow");
	if (!root || !(root->path = strdup(""))) {
		(void)close(fd);
		return sb_fail(err, SB_E_NOMEM, "listing: out of memory");
	}
	root->type = 'd';
	root->mode = st.st_mode & 07777;
	r = list_dir(fd, "", 0, &l, err);
	if (r < 0)
		return r;
	qsort(l.v, l.n, sizeof *l.v, compare);
	r = drop_ignored(a, &l, err);
	if (r < 0)
		return r;
	*out = l;
	memset(&l, 0, sizeof l);
	return 0;
}

bool
sb_agentless_same_file(const struct sb_agentless_entry *a, const struct sb_agentless_entry *b,
	bool coarse)
{
	int64_t unit = coarse ? 1000000000 : 1;

	return a->type == 'f' && b->type == 'f' && a->size == b->size &&
		a->mtime / unit == b->mtime / unit;
}

/* The record is the listing in its first form, behind a line that says so. */
#define RECORD_HEAD "sbsync agentless record 1"

int
sb_agentless_save(const char *record, const struct sb_agentless_list *l, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	int r;

	sb_buf_init(&b, LISTING_MAX);
	sb_buf_addf(&b, RECORD_HEAD " %s %s\n", l->coarse ? "coarse" : "fine",
		l->gnu_tar ? "gnu" : "other");
	for (size_t i = 0; i < l->n; i++) {
		const struct sb_agentless_entry *e = &l->v[i];

		sb_buf_addf(&b,
			"%c %o %" PRIu64 " %" PRId64 ".%09" PRId64 " %" PRId64 ".%09" PRId64
			" %" PRIu64 " %s",
			e->type, e->mode, e->size, e->mtime / 1000000000,
			e->mtime < 0 ? 0 : e->mtime % 1000000000, e->ctime / 1000000000,
			e->ctime < 0 ? 0 : e->ctime % 1000000000, e->ino, e->path);
		sb_buf_add_char(&b, '\0');
		sb_buf_add_str(&b, e->target ? e->target : "");
		sb_buf_add_char(&b, '\0');
	}
	r = sb_buf_check(&b, record, err);
	return r < 0 ? r : sb_file_replace(AT_FDCWD, record, b.data, b.len, 0600, err);
}

int
sb_agentless_load(const char *record, struct sb_agentless_list *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	const char *nl;
	int r = sb_file_read(AT_FDCWD, record, LISTING_MAX, &b, err);

	memset(out, 0, sizeof *out);
	if (r < 0)
		return r;
	nl = memchr(b.data, '\n', b.len);
	if (!nl || !sb_str_starts((char *)b.data, RECORD_HEAD))
		return sb_fail(err, SB_E_CORRUPT, "%s is damaged", record);
	r = sb_agentless_list_parse("printf", nl + 1, b.len - (size_t)(nl + 1 - (char *)b.data),
		out, err);
	if (r < 0)
		return r;
	out->coarse = memmem(b.data, (size_t)(nl - (char *)b.data), " coarse", 7) != NULL;
	out->gnu_tar = memmem(b.data, (size_t)(nl - (char *)b.data), " gnu", 4) != NULL;
	return 0;
}
