/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/scan/gitrules.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <base/strlist.h>
#include <base/work.h>
#include <sync/scan/gitconfig.h>
#include <sync/scan/gitindex.h>

#define INDEX_MAX ((size_t)512 << 20)
#define TEXT_MAX ((size_t)1 << 20)
#define REPOS_MAX 1000
#define INCLUDE_DEPTH 10

struct gitrules_work {
	int rootfd;
	struct sb_rules *rules;
	struct sb_rules *scratch; /* with the ignore files on the way to tracked files */
	bool collect;
	const struct sb_log *log;
	struct sb_strlist tops;    /* of working trees; grows by the submodules */
	struct sb_strlist tracked; /* texts for sb_rules_set_tracked */
	char before[4200];         /* the path before */
	size_t buried;             /* of it: so many bytes are a directory that git ignores; 0 */
	const char *top;           /* of the index that is being read */
	struct sb_error *err;
};

/* What the configuration of a repository says. */
struct repo_config {
	bool ignorecase;
	bool sha256;
	char *excludes;
	const char *path; /* of the file that is being read */
	int rootfd;
	unsigned depth;
};

static int
oom(struct sb_error *err)
{
	return sb_fail(err, SB_E_NOMEM, "git's ignore rules: out of memory");
}

/* A file of the root, or an absolute one of the user's; empty when it cannot be read. */
static void
load(int rootfd, const char *path, size_t max, struct sb_buf *out)
{
	(void)sb_file_read(*path == '/' ? AT_FDCWD : rootfd, path, max, out, NULL);
}

/* `text` as it is meant in a file or directory at `dir`. */
static char *
join(const char *dir, const char *text)
{
	const char *home = getenv("HOME");

	if (strncmp(text, "~/", 2) == 0)
		return sb_str_printf("%s/%s", home ? home : "", text + 2);
	return *text == '/' || !*dir ? strdup(text) : sb_str_printf("%s/%s", dir, text);
}

static int read_config(struct repo_config *c, const char *path);

static int
include(struct repo_config *c, const char *text)
{
	const char *path = c->path, *slash = strrchr(path, '/');
	sb_autofree char *dir = strndup(path, slash ? (size_t)(slash - path) : 0);
	sb_autofree char *file = dir ? join(dir, text) : NULL;
	int r;

	if (!file)
		return SB_E_NOMEM;
	if (!c->depth)
		return 0;
	c->depth--;
	r = read_config(c, file);
	c->depth++;
	c->path = path;
	return r;
}

static bool
is_true(const char *value)
{
	return !value || strcasecmp(value, "true") == 0 || strcasecmp(value, "yes") == 0 ||
		strcasecmp(value, "on") == 0 || strcmp(value, "1") == 0;
}

static int
take_var(const struct sb_gitconfig_var *v, void *arg)
{
	struct repo_config *c = arg;
	bool core = strcmp(v->section, "core") == 0 && !v->sub;

	if (core && strcmp(v->name, "ignorecase") == 0)
		c->ignorecase = is_true(v->value);
	if (strcmp(v->section, "extensions") == 0 && strcmp(v->name, "objectformat") == 0)
		c->sha256 = v->value && strcmp(v->value, "sha256") == 0;
	if (strcmp(v->section, "include") == 0 && !v->sub && strcmp(v->name, "path") == 0 &&
		v->value)
		return include(c, v->value);
	if (core && strcmp(v->name, "excludesfile") == 0 && v->value) {
		free(c->excludes);
		c->excludes = join("", v->value);
		return c->excludes ? 0 : SB_E_NOMEM;
	}
	return 0;
}

static int
read_config(struct repo_config *c, const char *path)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };

	load(c->rootfd, path, TEXT_MAX, &text);
	c->path = path;
	return text.len ? sb_gitconfig_read((char *)text.data, text.len, take_var, c, NULL) : 0;
}

static int
read_configs(struct gitrules_work *w, const char *git_dir, struct repo_config *c)
{
	sb_autofree char *own = sb_str_printf("%s/config", git_dir);
	char user[3][PATH_MAX];
	size_t n = sb_gitconfig_user_files(user);
	int r = own ? 0 : SB_E_NOMEM;

	for (size_t i = 0; r == 0 && i < n; i++)
		r = read_config(c, user[i]);
	if (r == 0)
		r = read_config(c, own);
	return r < 0 ? oom(w->err) : 0;
}

/* Adds the patterns of a file to both rule sets. */
static int
add_excludes(struct gitrules_work *w, const char *file)
{
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	int r = 0;

	load(w->rootfd, file, TEXT_MAX, &text);
	if (text.len)
		r = sb_rules_add_file(w->rules, SB_RULES_GITEXCLUDE, w->top, (char *)text.data,
			text.len, w->err);
	if (text.len && r >= 0)
		r = sb_rules_add_file(w->scratch, SB_RULES_GITEXCLUDE, w->top, (char *)text.data,
			text.len, w->err);
	return r < 0 ? sb_wrap(w->err, r, "%s", file) : 0;
}

static int
collect_excludes(struct gitrules_work *w, const char *common, const struct repo_config *c)
{
	const char *xdg = getenv("XDG_CONFIG_HOME");
	sb_autofree char *usual = xdg && *xdg ? sb_str_printf("%s/git/ignore", xdg) :
						join("", "~/.config/git/ignore");
	sb_autofree char *own = sb_str_printf("%s/info/exclude", common);
	int r;

	if (!usual || !own)
		return oom(w->err);
	if (c->ignorecase) {
		sb_rules_fold_git(w->rules);
		sb_rules_fold_git(w->scratch);
	}
	r = add_excludes(w, c->excludes ? c->excludes : usual);
	return r < 0 ? r : add_excludes(w, own);
}

/* The ignore files of a directory on the way to a tracked file. */
static int
take_ignore_files(struct gitrules_work *w, const char *dir)
{
	static const char *const names[] = { ".gitignore", ".sbsyncignore" };
	static const enum sb_rules_source sources[] = { SB_RULES_GITIGNORE, SB_RULES_SBSYNCIGNORE };

	for (size_t i = w->collect ? 0 : 1; i < 2; i++) {
		sb_autofree char *path =
			*dir ? sb_str_printf("%s/%s", dir, names[i]) : strdup(names[i]);
		sb_auto(sb_buf) struct sb_buf text = { 0 };
		sb_autoclose int fd = -1;
		struct stat st;
		ssize_t n;
		uint8_t *to;

		if (!path)
			return oom(w->err);
		sb_buf_init(&text, TEXT_MAX);
		fd = sb_path_open(w->rootfd, path, O_RDONLY | O_NONBLOCK, 0, NULL);
		if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
			(size_t)st.st_size > TEXT_MAX)
			continue;
		to = sb_buf_reserve(&text, (size_t)st.st_size);
		n = to ? sb_file_read_full(fd, to, (size_t)st.st_size, NULL) : -1;
		if (!to)
			return oom(w->err);
		if (n > 0 &&
			sb_rules_add_file(w->scratch, sources[i], dir, (char *)to, (size_t)n,
				w->err) < 0)
			return SB_E_LIMIT;
	}
	return 0;
}

/* Follows the directories of `path` that the path before did not have; finds `buried`. */
static int
go_down(struct gitrules_work *w, char *path)
{
	size_t same = 0;
	int r = 0;

	while (path[same] && path[same] == w->before[same])
		same++;
	if (w->buried && same <= w->buried)
		w->buried = 0;
	for (size_t i = 0; r == 0 && path[i] && !w->buried; i++) {
		if (path[i] != '/' || i < same)
			continue;
		path[i] = 0;
		if (sb_rules_git_ignores(w->scratch, path, true)) {
			w->buried = i;
			sb_strlist_addf(&w->tracked, "%s/", path);
		} else {
			r = take_ignore_files(w, path);
		}
		path[i] = '/';
	}
	return r;
}

static int
note(const struct sb_gitindex_entry *e, void *arg)
{
	struct gitrules_work *w = arg;
	char path[4200];
	int n = snprintf(path, sizeof path, "%s%s%s", w->top, *w->top ? "/" : "", e->path);
	int r = sb_work_alive(w->err);

	if (r < 0 || n < 0 || n > 4000)
		return r;
	r = go_down(w, path);
	if (r < 0)
		return r;
	if (w->buried || sb_rules_git_ignores(w->scratch, path, e->gitlink))
		sb_strlist_addf(&w->tracked, e->gitlink ? "%s/." : "%s", path);
	if (e->gitlink && w->tops.n < REPOS_MAX)
		sb_strlist_add(&w->tops, path);
	memcpy(w->before, path, (size_t)n + 1);
	return 0;
}

static int
read_index(struct gitrules_work *w, const char *git_dir, const char *name, size_t hash, int depth)
{
	sb_autofree char *path = sb_str_printf("%s/%s", git_dir, name);
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_error why = { 0 };
	char shared[65], file[80];
	int r;

	if (!path)
		return oom(w->err);
	load(w->rootfd, path, INDEX_MAX, &b);
	if (!b.len)
		return 0;
	w->before[0] = 0;
	w->buried = 0;
	r = sb_gitindex_read(b.data, b.len, hash, note, w, shared, &why);
	if (r == SB_E_CORRUPT || r == SB_E_VERSION) {
		sb_log(w->log, SB_LOG_WARN, "scan", "%s: %s; what it tracks is not known", path,
			why.msg);
		return 0;
	}
	if (r < 0 || !shared[0] || !depth)
		return r;
	(void)snprintf(file, sizeof file, "sharedindex.%s", shared);
	return read_index(w, git_dir, file, hash, depth - 1);
}

/* The git directory of a working tree; NULL: there is none (or no memory: then it has none). */
static char *
find_git_dir(struct gitrules_work *w, const char *top)
{
	sb_autofree char *dot = *top ? sb_str_printf("%s/.git", top) : strdup(".git");
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	struct stat st;
	char *p;

	if (!dot || fstatat(w->rootfd, dot, &st, 0) < 0)
		return NULL;
	if (S_ISDIR(st.st_mode))
		return sb_steal(&dot);
	load(w->rootfd, dot, 8192, &text);
	p = (char *)text.data;
	if (!text.len || strncmp(p, "gitdir:", 7) != 0)
		return NULL;
	p += 7 + strspn(p + 7, " \t");
	p[strcspn(p, "\r\n")] = 0;
	return join(top, p);
}

static char *
find_common(struct gitrules_work *w, const char *git_dir)
{
	sb_autofree char *file = sb_str_printf("%s/commondir", git_dir);
	sb_auto(sb_buf) struct sb_buf text = { 0 };

	if (!file)
		return NULL;
	load(w->rootfd, file, 8192, &text);
	if (!text.len)
		return strdup(git_dir);
	text.data[strcspn((char *)text.data, "\r\n")] = 0;
	return join(git_dir, (char *)text.data);
}

static int
take_repo(struct gitrules_work *w, const char *top)
{
	sb_autofree char *git_dir = find_git_dir(w, top);
	sb_autofree char *common = git_dir ? find_common(w, git_dir) : NULL;
	struct repo_config c = { .rootfd = w->rootfd, .depth = INCLUDE_DEPTH };
	int r;

	if (!common)
		return 0;
	w->top = top;
	r = read_configs(w, common, &c);
	if (r == 0 && w->collect)
		r = collect_excludes(w, common, &c);
	if (r == 0)
		r = *top ? 0 : take_ignore_files(w, "");
	if (r == 0)
		r = read_index(w, git_dir, "index", c.sha256 ? 32 : 20, 1);
	free(c.excludes);
	return r;
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool
keep_all(enum sb_rules_source src, const char *dir, const char *text, void *arg)
{
	(void)dir;
	(void)text;
	(void)arg;
	return src != SB_RULES_TRACKED;
}

static int
set_tracked(struct gitrules_work *w)
{
	struct sb_strlist *l = &w->tracked;
	int r = sb_strlist_check(l, w->err);
	sb_autofree const char **v = malloc((l->n + 1) * sizeof *v);
	size_t n = 0;

	if (r < 0 || !v)
		return r < 0 ? r : oom(w->err);
	if (l->n)
		qsort(l->v, l->n, sizeof *l->v, by_text);
	for (size_t i = 0; i < l->n; i++)
		if (!n || strcmp(v[n - 1], l->v[i]) != 0)
			v[n++] = l->v[i];
	return sb_rules_set_tracked(w->rules, v, n, w->err);
}

int
sb_gitrules_prepare(int rootfd, struct sb_rules *rules, bool collect, const struct sb_log *log,
	struct sb_error *err)
{
	struct gitrules_work w = { .rootfd = rootfd,
		.rules = rules,
		.collect = collect,
		.log = log,
		.err = err };
	int r = 0;

	w.scratch = sb_rules_filter(rules, keep_all, NULL, err);
	if (!w.scratch)
		return SB_E_NOMEM;
	sb_strlist_add(&w.tops, "");
	for (size_t i = 0; r == 0 && i < w.tops.n && w.tops.v; i++) {
		sb_autofree char *top = strdup(w.tops.v[i]);

		r = top ? take_repo(&w, top) : oom(err);
	}
	if (r == 0)
		r = set_tracked(&w);
	sb_rules_free(w.scratch);
	sb_strlist_free(&w.tops);
	sb_strlist_free(&w.tracked);
	return r;
}
