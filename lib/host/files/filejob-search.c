/* SPDX-License-Identifier: MIT */
/* The tools that search: grep in files and glob for names, by several threads. */
#include "config.h"

#include <host/files/filejob.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/path.h>
#include <host/files/pathglob.h>
#include <host/files/pattern.h>
#include <host/files/walk.h>

#define BINARY_LOOK 8192
#define FILE_MAX (64u << 20)
#define KEEP_BUFFER (1u << 20)
#define MATCH_MAX 500 /* bytes of a line that are shown */
#define CONTEXT_MAX 20
/* After so many files a look at the clock. */
#define LOOK_EVERY 64

struct search_hit {
	char *text; /* the lines of one file as they are shown, or NULL */
	size_t n;   /* matches in it */
};

struct search {
	const struct sb_filejob *j;
	const struct sb_walk *files;
	struct sb_pattern pattern;
	int top;
	size_t max;
	int context;

	atomic_size_t next; /* file to look at */
	atomic_size_t matches;
	atomic_size_t skipped; /* too large */
	atomic_size_t bytes;   /* of all that was found */
	atomic_bool stop;
	struct search_hit *found; /* one a file; each written by one thread */
	pthread_mutex_t large;    /* one large file at a time */
	pthread_mutex_t mu;       /* guards the failure */
	int failed;
	struct sb_error err;
};

/* A buffer that one thread reads its files into, and the directory it is in. */
struct hand {
	char *data;
	size_t cap;
	bool large; /* holds the lock for a large file */
	int dir;
	const struct sb_walk_file *of; /* a file of that directory */
};

static void
show_line(struct sb_buf *text, const char *path, size_t line, char mark, const char *s, size_t len)
{
	bool cut = len > MATCH_MAX;

	while (len > 0 && s[len - 1] == '\r')
		len--;
	if (mark == ':') {
		sb_filejob_show(text, path, strlen(path));
		sb_buf_addf(text, ":%zu: ", line);
	} else {
		sb_buf_addf(text, "    %zu- ", line);
	}
	sb_filejob_show(text, s, cut ? MATCH_MAX : len);
	sb_buf_add_str(text, cut ? "...\n" : "\n");
}

/* Lines before or after, without what was shown already. */
static void
show_before(struct sb_buf *text, const char *data, const char *at, size_t line, int n,
	const char *shown)
{
	const char *start[CONTEXT_MAX];
	int k = 0;

	while (k < n && at > data && at > shown) {
		const char *nl =
			at - 1 > data ? memrchr(data, '\n', (size_t)(at - 1 - data)) : NULL;

		at = nl ? nl + 1 : data;
		start[k++] = at;
	}
	while (k-- > 0) {
		size_t len = strcspn(start[k], "\n");

		show_line(text, "", line - (size_t)k - 1, '-', start[k], len);
	}
}

static const char *
show_after(struct sb_buf *text, const char *at, const char *end, size_t line, int n,
	const char *next)
{
	for (int k = 0; k < n && at < end && (!next || at < next); k++) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));

		show_line(text, "", line + (size_t)k + 1, '-', at, (size_t)((nl ? nl : end) - at));
		at = nl ? nl + 1 : end;
	}
	return at;
}

static size_t
count_lines(const char *from, const char *to)
{
	size_t n = 0;

	for (; from < to && (from = memchr(from, '\n', (size_t)(to - from))); from++)
		n++;
	return n;
}

static void
search_text(struct search *s, const char *path, const char *data, size_t len,
	struct search_hit *out)
{
	const char *end = data + len, *line_end, *shown = data, *counted = data;
	const char *hit = sb_pattern_find(&s->pattern, data, data, end, &line_end);
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	size_t line = 1, n = 0;

	if (!hit)
		return;
	sb_buf_init(&text, s->j->text.max);
	while (hit && n < s->max && !text.failed) {
		const char *stop = line_end;
		const char *next = stop < end ?
			sb_pattern_find(&s->pattern, data, stop + 1, end, &line_end) :
			NULL;

		line += count_lines(counted, hit);
		counted = hit;
		show_before(&text, data, hit, line, s->context, shown);
		show_line(&text, path, line, ':', hit, (size_t)(stop - hit));
		shown = show_after(&text, stop < end ? stop + 1 : end, end, line, s->context, next);
		n++;
		hit = next;
	}
	/* Past what an answer can hold, more is of no use. */
	if (text.failed || atomic_fetch_add(&s->bytes, text.len) > s->j->text.max)
		atomic_store(&s->stop, true);
	out->text = (char *)sb_buf_detach(&text, &len);
	out->n = n;
	atomic_fetch_add(&s->matches, n);
}

/* Files of one directory come one after the other: it is opened once. */
static int
open_file(struct search *s, struct hand *h, const struct sb_walk_file *f)
{
	if (!h->of || h->of->dir_len != f->dir_len ||
		strncmp(h->of->path, f->path, f->dir_len) != 0) {
		sb_autofree char *dir = strndup(f->path, f->dir_len);

		if (h->dir >= 0)
			(void)close(h->dir);
		h->dir = dir ? sb_path_open(s->top, dir, O_RDONLY | O_DIRECTORY, 0, NULL) : -1;
		h->of = f;
	}
	if (h->dir < 0)
		return -1;
	return openat(h->dir, f->path + f->dir_len + (f->dir_len > 0),
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

static bool
grow(struct search *s, struct hand *h, size_t want)
{
	char *more;

	if (!h->large)
		(void)pthread_mutex_lock(&s->large);
	h->large = true;
	want = want > h->cap * 2 ? want : h->cap * 2;
	more = realloc(h->data, want);
	if (!more)
		return false;
	h->data = more;
	h->cap = want;
	return true;
}

/*
 * A small file is one read; the second, at its end, is saved by having asked for more than there
 * is.
 */
static ssize_t
read_text(struct search *s, struct hand *h, int fd)
{
	size_t got = 0;

	for (;;) {
		ssize_t n = read(fd, h->data + got, h->cap - got);
		struct stat st;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (got == 0 && n > 0 &&
			memchr(h->data, '\0', (size_t)(n < BINARY_LOOK ? n : BINARY_LOOK)))
			return -1;
		got += (size_t)n;
		if (n == 0 || got < h->cap)
			return (ssize_t)got;
		if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
			return -1;
		if ((uint64_t)st.st_size >= FILE_MAX || h->cap >= FILE_MAX) {
			atomic_fetch_add(&s->skipped, 1);
			return -1;
		}
		if (!grow(s, h, (size_t)st.st_size + 1))
			return -1;
	}
}

/* The memory of a large file is given back before the next one. */
static void
let_go(struct search *s, struct hand *h)
{
	char *less = h->large ? realloc(h->data, KEEP_BUFFER) : NULL;

	if (less) {
		h->data = less;
		h->cap = KEEP_BUFFER;
	}
	if (h->large)
		(void)pthread_mutex_unlock(&s->large);
	h->large = false;
}

static void *
work(void *arg)
{
	struct search *s = arg;
	struct hand h = { .dir = -1, .cap = KEEP_BUFFER };
	size_t seen = 0;

	/* A table of descriptors of its own costs less to use than one that is shared. */
	(void)unshare(CLONE_FILES);
	h.data = malloc(h.cap);
	while (h.data && !atomic_load(&s->stop) && atomic_load(&s->matches) < s->max) {
		size_t i = atomic_fetch_add(&s->next, 1);
		struct sb_error err = { 0 };
		sb_autoclose int fd = -1;
		ssize_t n;

		if (i >= s->files->n)
			break;
		if (seen++ % LOOK_EVERY == 0 && sb_filejob_alive(s->j, &err) < 0) {
			(void)pthread_mutex_lock(&s->mu);
			s->failed = err.code;
			s->err = err;
			(void)pthread_mutex_unlock(&s->mu);
			atomic_store(&s->stop, true);
			break;
		}
		fd = open_file(s, &h, &s->files->v[i]);
		n = fd >= 0 ? read_text(s, &h, fd) : -1;
		if (n > 0)
			search_text(s, s->files->v[i].path, h.data, (size_t)n, &s->found[i]);
		let_go(s, &h);
	}
	if (h.dir >= 0)
		(void)close(h.dir);
	free(h.data);
	return NULL;
}

struct name_filter {
	const char *include, *exclude;
};

static bool
want_name(const char *path, const char *name, const void *arg)
{
	const struct name_filter *n = arg;

	(void)path;
	if (n->include && !sb_pathglob_name(n->include, name))
		return false;
	return !n->exclude || !sb_pathglob_name(n->exclude, name);
}

/* A glob that a caller may give. */
static int
check_glob(const struct sb_params *p, const char *name, struct sb_error *err)
{
	const char *s = sb_params_str(p, name);

	return s && strlen(s) > SB_PATHGLOB_MAX ?
		sb_fail(err, SB_E_INVAL, "%s %s is longer than %d bytes", p->tool, name,
			SB_PATHGLOB_MAX) :
		0;
}

static int
grep_check(const struct sb_params *p, struct sb_error *err)
{
	int r = check_glob(p, "include", err);

	return r < 0 ? r : check_glob(p, "exclude", err);
}

static int
glob_check(const struct sb_params *p, struct sb_error *err)
{
	return check_glob(p, "pattern", err);
}

/* The files of the directory that is asked for; `out_top` is it. */
static int
list_files(const struct sb_filejob *j, sb_walk_want_fn want, const void *arg, struct sb_walk *files,
	int *out_top, struct sb_error *err)
{
	sb_auto(sb_roots_resolved) struct sb_roots_resolved at = { .fd = -1 };
	int r = sb_filejob_resolve(j, sb_params_str(&j->params, "path"), &at, err);

	if (r == 0)
		r = sb_walk_files(j, at.fd, at.rel, want, arg, files, err);
	if (r == 0)
		r = *out_top = sb_path_open(at.fd, at.rel, O_RDONLY | O_DIRECTORY, 0, err);
	return r < 0 ? r : 0;
}

static void
search_all(struct search *s)
{
	pthread_t th[SB_WALK_THREADS_MAX];
	size_t n = 0;

	(void)pthread_mutex_init(&s->mu, NULL);
	(void)pthread_mutex_init(&s->large, NULL);
	while (n + 1 < sb_walk_threads() && sb_walk_thread(&th[n], work, s))
		n++;
	(void)work(s);
	for (size_t i = 0; i < n; i++)
		(void)pthread_join(th[i], NULL);
	(void)pthread_mutex_destroy(&s->large);
	(void)pthread_mutex_destroy(&s->mu);
}

/*
 * Of the text of one file, as many lines as there is room for; with context the last block is
 * whole.
 */
static size_t
length_of(const char *text, size_t room)
{
	const char *p = text;

	while (p && *p && (room > 0 || *p == ' ')) {
		const char *nl = strchr(p, '\n');

		room -= *p != ' ';
		p = nl ? nl + 1 : NULL;
	}
	return p ? (size_t)(p - text) : strlen(text);
}

/*
 * The first `max` matches in the order of paths: every file before the last one looked at was
 * looked at, too.
 */
static int
grep_text(struct search *s, struct sb_filejob *j, struct sb_error *err)
{
	size_t total = atomic_load(&s->matches), shown = 0;
	bool cut = total >= s->max && atomic_load(&s->next) < s->files->n;
	struct sb_buf *text = &j->text;

	if (total == 0)
		sb_buf_add_str(text, "no matches found");
	else
		sb_buf_addf(text, "Found %zu match(es)\n", total < s->max ? total : s->max);
	for (size_t i = 0; i < s->files->n && shown < s->max; i++) {
		const char *p = s->found[i].text;
		size_t n = s->found[i].n;

		if (!p)
			continue;
		if (shown + n > s->max) {
			sb_buf_add(text, p, length_of(p, s->max - shown));
			cut = true;
			break;
		}
		sb_buf_add_str(text, p);
		shown += n;
	}
	if (cut)
		sb_buf_add_str(text, "(more matches were left out)\n");
	j->truncated = cut;
	if (s->files->left_out + atomic_load(&s->skipped) > 0)
		sb_buf_addf(text,
			"(%zu directories or files were not searched: unreadable or too large)\n",
			s->files->left_out + atomic_load(&s->skipped));
	if (text->failed == SB_E_FULL || atomic_load(&s->stop))
		return sb_filejob_says(j, true, err,
			"the matches are too long together; ask for fewer results");
	return sb_buf_check(text, "result", err);
}

static int
grep_run(struct sb_filejob *j, struct sb_error *err)
{
	sb_auto(sb_walk) struct sb_walk files = { 0 };
	struct search s = { .j = j, .files = &files, .top = -1 };
	const struct sb_params *p = &j->params;
	struct name_filter names = { sb_params_str(p, "include"), sb_params_str(p, "exclude") };
	struct sb_error why = { 0 };
	int r = sb_pattern_make(sb_params_str(p, "pattern"), sb_params_bool(p, "literal"),
		&s.pattern, &why);

	s.max = (size_t)sb_params_int(p, "max_results");
	s.context = (int)sb_params_int(p, "context_lines");
	if (r == 0)
		r = list_files(j, names.include || names.exclude ? want_name : NULL, &names, &files,
			&s.top, &why);
	if (r == 0 && !(s.found = calloc(files.n + 1, sizeof *s.found)))
		r = sb_fail(&why, SB_E_NOMEM, "grep");
	if (r == 0) {
		search_all(&s);
		r = s.failed;
		why = s.err;
	}
	r = r < 0 ? sb_filejob_failed(j, &why, err) : grep_text(&s, j, err);
	for (size_t i = 0; s.found && i < files.n; i++)
		free(s.found[i].text);
	free(s.found);
	sb_pattern_free(&s.pattern);
	if (s.top >= 0)
		(void)close(s.top);
	return r;
}

static bool
want_glob(const char *path, const char *name, const void *arg)
{
	(void)name;
	return sb_pathglob_path(arg, path);
}

static int
glob_run(struct sb_filejob *j, struct sb_error *err)
{
	sb_auto(sb_walk) struct sb_walk files = { 0 };
	struct sb_error why = { 0 };
	const char *pattern = sb_params_str(&j->params, "pattern");
	int64_t max = sb_params_int(&j->params, "max_results");
	int top = -1;
	int r = list_files(j, want_glob, pattern, &files, &top, &why);
	if (top >= 0)
		(void)close(top);
	if (r < 0)
		return sb_filejob_failed(j, &why, err);
	if (files.n == 0)
		sb_buf_add_str(&j->text, "no files matched");
	else
		sb_buf_addf(&j->text, "Found %zu file(s)\n", files.n);
	for (size_t i = 0; i < files.n && i < (size_t)max; i++) {
		sb_filejob_show(&j->text, files.v[i].path, strlen(files.v[i].path));
		sb_buf_add_char(&j->text, '\n');
	}
	if (files.n > (size_t)max) {
		sb_buf_addf(&j->text, "(%zu more were left out)\n", files.n - (size_t)max);
		j->truncated = true;
	}
	if (files.left_out)
		sb_buf_addf(&j->text, "(%zu directories or files were not looked at)\n",
			files.left_out);
	if (j->text.failed == SB_E_FULL)
		return sb_filejob_says(j, true, err,
			"the names are too long together; ask for fewer results");
	return sb_buf_check(&j->text, "result", err);
}

const struct sb_filejob_tool sb_filejob_search_table[] = {
	{ "grep", grep_check, grep_run, true },
	{ "glob", glob_check, glob_run, true },
	{ NULL, NULL, NULL, false },
};
