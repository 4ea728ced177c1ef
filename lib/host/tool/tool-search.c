/* SPDX-License-Identifier: MIT */
/* The tools that search: grep in files and glob for names, by several threads in the host. */
#include "config.h"

#include <host/tool/tool-table.h>

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/path.h>
#include <host/tool/pattern.h>
#include <host/tool/walk.h>

#define THREADS_MAX 8
#define BINARY_LOOK 8192
#define FILE_MAX (64u << 20)
#define KEEP_BUFFER (1u << 20)
#define MATCH_MAX 500 /* bytes of a line that are shown */
#define CONTEXT_MAX 20
#define RESULTS_MAX 100000
/* After so many files a look at the clock. */
#define LOOK_EVERY 64

struct search_hit {
	char *text; /* the lines of one file as they are shown, or NULL */
	size_t n;   /* matches in it */
};

struct search {
	const struct sb_toolcall *c;
	const struct sb_walk *files;
	struct sb_pattern pattern;
	int top;
	size_t max;
	int context;

	atomic_size_t next; /* file to look at */
	atomic_size_t matches;
	atomic_size_t skipped; /* too large */
	atomic_bool stop;
	struct search_hit *found; /* one a file; each written by one thread */
	pthread_mutex_t mu;       /* guards the failure */
	int failed;
	struct sb_error err;
};

/* A buffer that one thread reads its files into, and the directory it is in. */
struct hand {
	char *data;
	size_t cap;
	int dir;
	const struct sb_walk_file *of; /* a file of that directory */
};

static void
show_line(struct sb_buf *text, const char *path, size_t line, char mark, const char *s, size_t len)
{
	bool cut = len > MATCH_MAX;

	while (len > 0 && s[len - 1] == '\r')
		len--;
	if (mark == ':')
		sb_buf_addf(text, "%s:%zu: ", path, line);
	else
		sb_buf_addf(text, "    %zu- ", line);
	sb_buf_add(text, s, cut ? MATCH_MAX : len);
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
	sb_buf_init(&text, SB_TOOL_TEXT_MAX);
	while (hit && n < s->max) {
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
		{
			size_t cap = (size_t)st.st_size + 1 > h->cap * 2 ? (size_t)st.st_size + 1 :
									   h->cap * 2;
			char *more = realloc(h->data, cap);

			if (!more)
				return -1;
			h->data = more;
			h->cap = cap;
		}
	}
}

static void *
work(void *arg)
{
	struct search *s = arg;
	struct hand h = { .dir = -1, .cap = KEEP_BUFFER };
	size_t seen = 0;

	h.data = malloc(h.cap);
	while (h.data && !atomic_load(&s->stop) && atomic_load(&s->matches) < s->max) {
		size_t i = atomic_fetch_add(&s->next, 1);
		struct sb_error err = { 0 };
		sb_autoclose int fd = -1;
		ssize_t n;

		if (i >= s->files->n)
			break;
		if (seen++ % LOOK_EVERY == 0 && sb_toolcall_alive(s->c, &err) < 0) {
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
	if (n->include && fnmatch(n->include, name, 0) != 0)
		return false;
	return !n->exclude || fnmatch(n->exclude, name, 0) != 0;
}

static int
search_check(const struct sb_toolcall *c, struct sb_error *err)
{
	static const char *const texts[] = { "path", "directory", "include", "exclude", NULL };
	const char *s;
	int64_t n;
	bool b;
	int r = sb_toolcall_str(c, "pattern", NULL, true, &s, err);

	for (size_t i = 0; texts[i] && r == 0; i++)
		r = sb_toolcall_str(c, texts[i], NULL, false, &s, err);
	if (r == 0)
		r = sb_toolcall_int(c, "max_results", 100, 1, RESULTS_MAX, &n, err);
	if (r == 0)
		r = sb_toolcall_int(c, "context_lines", 0, 0, CONTEXT_MAX, &n, err);
	return r < 0 ? r : sb_toolcall_bool(c, "literal", &b, err);
}

/* The files of the directory that is asked for; `out_top` is it. */
static int
list_files(const struct sb_toolcall *c, sb_walk_want_fn want, const void *arg,
	struct sb_walk *files, int *out_top, struct sb_error *err)
{
	sb_auto(sb_roots) struct sb_roots roots = { 0 };
	sb_auto(sb_roots_resolved) struct sb_roots_resolved at = { .fd = -1 };
	const char *path = NULL;
	int r = sb_toolcall_roots(c, &roots, err);

	(void)sb_toolcall_str(c, "path", "directory", false, &path, NULL);
	if (r == 0)
		r = sb_roots_resolve(&roots, path && *path ? path : ".", &at, err);
	if (r == 0)
		r = sb_walk_files(c, at.fd, at.rel, want, arg, files, err);
	if (r == 0)
		r = *out_top = sb_path_open(at.fd, at.rel, O_RDONLY | O_DIRECTORY, 0, err);
	return r < 0 ? r : 0;
}

static void
search_all(struct search *s)
{
	pthread_t th[THREADS_MAX];
	size_t n = 0;

	(void)pthread_mutex_init(&s->mu, NULL);
	for (; n + 1 < sb_walk_threads(); n++)
		if (pthread_create(&th[n], NULL, work, s) != 0)
			break;
	(void)work(s);
	for (size_t i = 0; i < n; i++)
		(void)pthread_join(th[i], NULL);
	(void)pthread_mutex_destroy(&s->mu);
}

/*
 * The first `max` matches in the order of paths: every file before the last one looked at was
 * looked at, too.
 */
static int
grep_text(struct search *s, struct sb_host_tool_result *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	size_t total = atomic_load(&s->matches), shown = 0;
	bool cut = total >= s->max && atomic_load(&s->next) < s->files->n;

	sb_buf_init(&text, SB_TOOL_TEXT_MAX);
	if (total == 0)
		sb_buf_add_str(&text, "no matches found");
	else
		sb_buf_addf(&text, "Found %zu match(es)\n", total < s->max ? total : s->max);
	for (size_t i = 0; i < s->files->n && shown < s->max; i++) {
		const char *p = s->found[i].text;
		size_t n = s->found[i].n;

		if (!p)
			continue;
		if (shown + n > s->max) {
			/*
			 * Only as many of its lines as there is room for; with context the last
			 * block is shown whole.
			 */
			size_t room = s->max - shown;
			const char *q = p;

			while (q && *q && (room > 0 || *q == ' ')) {
				const char *nl = strchr(q, '\n');

				room -= *q != ' ';
				q = nl ? nl + 1 : NULL;
			}
			sb_buf_add(&text, p, q ? (size_t)(q - p) : strlen(p));
			shown = s->max;
			cut = true;
			break;
		}
		sb_buf_add_str(&text, p);
		shown += n;
	}
	if (cut) {
		sb_buf_add_str(&text, "(more matches were left out)\n");
		out->truncated = true;
	}
	if (s->files->left_out + atomic_load(&s->skipped) > 0)
		sb_buf_addf(&text,
			"(%zu directories or files were not searched: unreadable or too large)\n",
			s->files->left_out + atomic_load(&s->skipped));
	if (text.failed == SB_E_FULL)
		return sb_toolcall_says(out, true, err,
			"the matches are too long together; ask for fewer results");
	return sb_toolcall_result(out, &text, false, err);
}

static int
grep_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	sb_auto(sb_walk) struct sb_walk files = { 0 };
	struct search s = { .c = c, .files = &files, .top = -1 };
	struct name_filter names = { 0 };
	struct sb_error why = { 0 };
	const char *pattern = NULL;
	int64_t max = 100, context = 0;
	bool literal = false;
	int r;

	(void)sb_toolcall_str(c, "pattern", NULL, true, &pattern, NULL);
	(void)sb_toolcall_str(c, "include", NULL, false, &names.include, NULL);
	(void)sb_toolcall_str(c, "exclude", NULL, false, &names.exclude, NULL);
	(void)sb_toolcall_int(c, "max_results", 100, 1, RESULTS_MAX, &max, NULL);
	(void)sb_toolcall_int(c, "context_lines", 0, 0, CONTEXT_MAX, &context, NULL);
	(void)sb_toolcall_bool(c, "literal", &literal, NULL);
	s.max = (size_t)max;
	s.context = (int)context;
	r = sb_pattern_make(pattern, literal, &s.pattern, &why);
	if (r == 0)
		r = list_files(c, names.include || names.exclude ? want_name : NULL, &names, &files,
			&s.top, &why);
	if (r == 0 && !(s.found = calloc(files.n + 1, sizeof *s.found)))
		r = sb_fail(&why, SB_E_NOMEM, "grep");
	if (r == 0) {
		search_all(&s);
		r = s.failed;
		why = s.err;
	}
	r = r < 0 ? sb_toolcall_failed(out, &why, err) : grep_text(&s, out, err);
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
	return sb_pattern_glob(arg, path);
}

static int
glob_run(struct sb_toolcall *c, struct sb_host_tool_result *out, struct sb_error *err)
{
	sb_auto(sb_walk) struct sb_walk files = { 0 };
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct sb_error why = { 0 };
	const char *pattern = NULL;
	int64_t max = 200;
	int top = -1, r;

	(void)sb_toolcall_str(c, "pattern", NULL, true, &pattern, NULL);
	(void)sb_toolcall_int(c, "max_results", 200, 1, RESULTS_MAX, &max, NULL);
	r = list_files(c, want_glob, pattern, &files, &top, &why);
	if (top >= 0)
		(void)close(top);
	if (r < 0)
		return sb_toolcall_failed(out, &why, err);
	sb_buf_init(&text, SB_TOOL_TEXT_MAX);
	if (files.n == 0)
		sb_buf_add_str(&text, "no files matched");
	else
		sb_buf_addf(&text, "Found %zu file(s)\n", files.n);
	for (size_t i = 0; i < files.n && i < (size_t)max; i++)
		sb_buf_addf(&text, "%s\n", files.v[i].path);
	if (files.n > (size_t)max) {
		sb_buf_addf(&text, "(%zu more were left out)\n", files.n - (size_t)max);
		out->truncated = true;
	}
	if (files.left_out)
		sb_buf_addf(&text, "(%zu directories or files were not looked at)\n",
			files.left_out);
	return sb_toolcall_result(out, &text, false, err);
}

const struct sb_tool sb_tool_search_table[] = {
	{ "grep", NULL, search_check, grep_run },
	{ "glob", "find", search_check, glob_run },
	{ NULL, NULL, NULL, NULL },
};
