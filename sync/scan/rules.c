/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/scan/rules.h>

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <xxhash.h>

#include <sync/scan/rules-priv.h>

enum {
	FIRST_BLOCK = 8,
	FIRST_BUCKETS = 64,
};

struct sb_rules *
sb_rules_new(struct sb_error *err)
{
	struct sb_rules *r = calloc(1, sizeof *r);

	if (!r || !(r->buckets = calloc(FIRST_BUCKETS, sizeof(struct sb_rules_dir *)))) {
		free(r);
		(void)sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
		return NULL;
	}
	r->n_buckets = FIRST_BUCKETS;
	/*
	 * A peer chooses the directory names; without a seed it could make them all
	 * meet in one bucket.
	 */
	if (getrandom(&r->seed, sizeof r->seed, GRND_NONBLOCK) != sizeof r->seed)
		r->seed = (uint64_t)(uintptr_t)r;
	if (pthread_rwlock_init(&r->mu, NULL) != 0) {
		free(r->buckets);
		free(r);
		(void)sb_fail(err, SB_E_NOMEM, "exclude rules: no lock");
		return NULL;
	}
	return r;
}

static void
free_blocks(struct sb_rule_block *b)
{
	while (b) {
		struct sb_rule_block *prev = b->prev;

		free(b);
		b = prev;
	}
}

void
sb_rules_free(struct sb_rules *r)
{
	if (!r)
		return;
	free_blocks(r->command);
	free_blocks(r->from_file);
	free_blocks(r->builtin);
	for (size_t i = 0; i < r->n_buckets; i++) {
		while (r->buckets[i]) {
			struct sb_rules_dir *d = r->buckets[i];

			r->buckets[i] = d->next;
			for (size_t k = 0; k < SB_RULES_FILES; k++)
				free_blocks(d->files[k]);
			free(d);
		}
	}
	free(r->buckets);
	while (r->nodes) {
		struct sb_rules_node *n = r->nodes;

		r->nodes = n->next;
		free(n);
	}
	while (r->tracked) {
		struct sb_rules_tracked *t = r->tracked;

		r->tracked = t->old;
		free(t);
	}
	while (r->texts) {
		struct sb_rules_text *t = r->texts;

		r->texts = t->next;
		free(t);
	}
	(void)pthread_rwlock_destroy(&r->mu);
	free(r);
}

bool
sb_rules_dir_ok(const char *dir, size_t len)
{
	const char *p = dir, *end = dir + len;

	if (len == 0)
		return true;
	if (len > SB_RULES_DIR_LEN_MAX || memchr(dir, 0, len))
		return false;
	for (;;) {
		const char *slash = memchr(p, '/', (size_t)(end - p));
		size_t n = (size_t)((slash ? slash : end) - p);

		if (n == 0 || n > 255 || (n == 1 && p[0] == '.') ||
			(n == 2 && p[0] == '.' && p[1] == '.'))
			return false;
		if (!slash)
			return true;
		p = slash + 1;
	}
}

/* The directory's record, or NULL. The lock is held. */
static struct sb_rules_dir *
find_dir(const struct sb_rules *r, const char *dir, size_t len)
{
	uint64_t hash = XXH3_64bits_withSeed(dir, len, r->seed);
	struct sb_rules_dir *d = r->buckets[hash & (r->n_buckets - 1)];

	while (d && (d->hash != hash || d->len != len || memcmp(d->path, dir, len) != 0))
		d = d->next;
	return d;
}

/* A larger table, if there is memory for one; the old one works too. */
static void
grow_buckets(struct sb_rules *r)
{
	size_t n = r->n_buckets * 2;
	struct sb_rules_dir **wider = calloc(n, sizeof(struct sb_rules_dir *));

	if (!wider)
		return;
	for (size_t i = 0; i < r->n_buckets; i++) {
		while (r->buckets[i]) {
			struct sb_rules_dir *d = r->buckets[i];

			r->buckets[i] = d->next;
			d->next = wider[d->hash & (n - 1)];
			wider[d->hash & (n - 1)] = d;
		}
	}
	free(r->buckets);
	r->buckets = wider;
	r->n_buckets = n;
}

static struct sb_rules_dir *
need_dir(struct sb_rules *r, const char *dir, size_t len, struct sb_error *err)
{
	struct sb_rules_dir *d = find_dir(r, dir, len), **bucket;

	if (d)
		return d;
	if (r->n_dirs >= SB_RULES_DIRS_MAX) {
		(void)sb_fail(err, SB_E_LIMIT, "more than %u directories with ignore files",
			SB_RULES_DIRS_MAX);
		return NULL;
	}
	d = calloc(1, sizeof *d + len + 1);
	if (!d) {
		(void)sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
		return NULL;
	}
	if (r->n_dirs >= r->n_buckets)
		grow_buckets(r);
	memcpy(d->path, dir, len);
	d->len = len;
	d->hash = XXH3_64bits_withSeed(dir, len, r->seed);
	bucket = &r->buckets[d->hash & (r->n_buckets - 1)];
	d->next = *bucket;
	*bucket = d;
	r->n_dirs++;
	return d;
}

/*
 * Where the list of a source (and directory) hangs; NULL when out of memory or over the
 * limit.
 */
static struct sb_rule_block **
list_of(struct sb_rules *r, enum sb_rules_source src, const char *dir, size_t dir_len,
	struct sb_error *err)
{
	struct sb_rules_dir *d;
	size_t k = SB_RULES_FILE_GITEXCLUDE;

	switch (src) {
	case SB_RULES_COMMAND: return &r->command;
	case SB_RULES_FROM_FILE: return &r->from_file;
	case SB_RULES_BUILTIN: return &r->builtin;
	case SB_RULES_GITIGNORE: k = SB_RULES_FILE_GIT; break;
	case SB_RULES_SBSYNCIGNORE: k = SB_RULES_FILE_SBSYNC; break;
	case SB_RULES_GITEXCLUDE:
	case SB_RULES_TRACKED:
	case SB_RULES_SOURCES: break;
	}
	d = need_dir(r, dir, dir_len, err);
	return d ? &d->files[k] : NULL;
}

/* Room for `n` more in the last block of the list, by a new block where needed. */
static struct sb_rule_block *
room_for(struct sb_rule_block **list, size_t n)
{
	struct sb_rule_block *b = *list;
	size_t cap;

	if (b && b->cap - b->n >= n)
		return b;
	cap = b ? b->cap * 2 : FIRST_BLOCK;
	if (cap < n)
		cap = n;
	b = calloc(1, sizeof *b + cap * sizeof b->v[0]);
	if (!b)
		return NULL;
	b->cap = cap;
	b->prev = *list;
	*list = b;
	return b;
}

static void
fold(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] | 32) : from[i];
}

/* As git does: letters are small, and every letter is as good as a capital. */
static void
fold_pattern(char *text, size_t len)
{
	fold(text, text, len);
	for (size_t i = 0; len > 8 && i < len - 8; i++)
		if (memcmp(text + i, "[:upper:]", 9) == 0)
			memcpy(text + i, "[:alpha:]", 9);
}

static int
add_locked(struct sb_rules *r, enum sb_rules_source src, const char *dir, size_t dir_len,
	const char *const *texts, const uint16_t *lens, size_t n, size_t bytes,
	struct sb_error *err)
{
	struct sb_rule_block **list, *b;
	struct sb_rules_text *t;
	char *p;

	if (n > SB_RULES_COUNT_MAX - r->n_rules)
		return sb_fail(err, SB_E_LIMIT, "more than %u exclude patterns",
			SB_RULES_COUNT_MAX);
	if (bytes > SB_RULES_BYTES_MAX - r->n_bytes)
		return sb_fail(err, SB_E_LIMIT, "more than %u MiB of exclude patterns",
			SB_RULES_BYTES_MAX >> 20);
	list = list_of(r, src, dir, dir_len, err);
	if (!list)
		return r->n_dirs >= SB_RULES_DIRS_MAX ? SB_E_LIMIT : SB_E_NOMEM;
	t = malloc(sizeof *t + bytes);
	b = t ? room_for(list, n) : NULL;
	if (!b) {
		free(t);
		return sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
	}
	t->next = r->texts;
	r->texts = t;
	p = t->bytes;
	for (size_t i = 0; i < n; i++) {
		memcpy(p, texts[i], lens[i]);
		if (r->fold && (src == SB_RULES_GITIGNORE || src == SB_RULES_GITEXCLUDE))
			fold_pattern(p, lens[i]);
		sb_rules_pattern_compile(&b->v[b->n++], p, lens[i]);
		p += lens[i];
	}
	r->n_rules += n;
	r->n_bytes += bytes;
	return 0;
}

int
sb_rules_add_texts(struct sb_rules *r, enum sb_rules_source src, const char *dir, size_t dir_len,
	const char *const *texts, const uint16_t *lens, size_t n, struct sb_error *err)
{
	size_t bytes = 0;
	int ret;

	if (n == 0)
		return 0;
	for (size_t i = 0; i < n; i++)
		bytes += lens[i];
	(void)pthread_rwlock_wrlock(&r->mu);
	ret = add_locked(r, src, dir, dir_len, texts, lens, n, bytes, err);
	(void)pthread_rwlock_unlock(&r->mu);
	return ret;
}

bool
sb_rules_empty(const struct sb_rules *r)
{
	struct sb_rules *m = (struct sb_rules *)r;
	bool empty;

	(void)pthread_rwlock_rdlock(&m->mu);
	empty = r->n_rules == 0 && !(r->tracked && r->tracked->n);
	(void)pthread_rwlock_unlock(&m->mu);
	return empty;
}

static struct sb_rule_view
view_of(const struct sb_rule_block *b)
{
	return (struct sb_rule_view){ .last = b, .n = b ? b->n : 0 };
}

static bool
view_eq(struct sb_rule_view a, struct sb_rule_view b)
{
	return a.last == b.last && a.n == b.n;
}

/*
 * What `dir`'s node holds beneath `up` right now. `d` may be NULL for a root without
 * ignore files.
 */
static struct sb_rules_node
node_now(const struct sb_rules *r, const struct sb_rules_node *up, const struct sb_rules_dir *d)
{
	struct sb_rules_node n = { .up = up, .dir = d };

	if (d) {
		n.dir_len = d->len;
		for (size_t k = 0; k < SB_RULES_FILES; k++)
			n.files[k] = view_of(d->files[k]);
	}
	n.command = up ? up->command : view_of(r->command);
	n.from_file = up ? up->from_file : view_of(r->from_file);
	n.builtin = up ? up->builtin : view_of(r->builtin);
	n.tracked = up ? up->tracked : r->tracked && r->tracked->n ? r->tracked : NULL;
	n.fold = r->fold;
	return n;
}

static bool
node_eq(const struct sb_rules_node *a, const struct sb_rules_node *b)
{
	for (size_t k = 0; k < SB_RULES_FILES; k++)
		if (!view_eq(a->files[k], b->files[k]))
			return false;
	return a->up == b->up && a->dir == b->dir && view_eq(a->command, b->command) &&
		view_eq(a->from_file, b->from_file) && view_eq(a->builtin, b->builtin) &&
		a->tracked == b->tracked && a->fold == b->fold;
}

/*
 * The node for `want`: the last one made for this directory if nothing was added since,
 * else a new one.
 */
static const struct sb_rules_node *
keep_node(struct sb_rules *r, const struct sb_rules_node *want, struct sb_rules_node **last)
{
	struct sb_rules_node *n = *last;

	if (n && node_eq(n, want))
		return n;
	n = malloc(sizeof *n);
	if (!n)
		return NULL;
	*n = *want;
	n->next = r->nodes;
	r->nodes = n;
	*last = n;
	return n;
}

const struct sb_rules_node *
sb_rules_root(struct sb_rules *r)
{
	const struct sb_rules_node *got;
	struct sb_rules_node want;

	(void)pthread_rwlock_wrlock(&r->mu);
	want = node_now(r, NULL, find_dir(r, "", 0));
	got = keep_node(r, &want, &r->root);
	(void)pthread_rwlock_unlock(&r->mu);
	return got;
}

static const struct sb_rules_node *
enter(struct sb_rules *r, const struct sb_rules_node *n, const char *dir, size_t len)
{
	struct sb_rules_node want;
	struct sb_rules_dir *d;

	(void)pthread_rwlock_rdlock(&r->mu);
	d = r->n_dirs ? find_dir(r, dir, len) : NULL;
	(void)pthread_rwlock_unlock(&r->mu);
	if (!d || n->dir == d)
		return n;
	(void)pthread_rwlock_wrlock(&r->mu);
	want = node_now(r, n, d);
	n = keep_node(r, &want, &d->node);
	(void)pthread_rwlock_unlock(&r->mu);
	return n;
}

const struct sb_rules_node *
sb_rules_enter(struct sb_rules *r, const struct sb_rules_node *n, const char *dir)
{
	return enter(r, n, dir, strlen(dir));
}

/* One entry that is asked about. */
struct rules_entry {
	const char *path;
	size_t len;
	const char *name;
	size_t name_len;
	bool is_dir;
};

enum verdict {
	VERDICT_NONE,
	VERDICT_EXCLUDE,
	VERDICT_INCLUDE,
};

/* The last matching pattern of the list of a directory whose name has `dir_len` bytes. */
static enum verdict
match_view(struct sb_rule_view v, size_t dir_len, const struct rules_entry *e)
{
	size_t skip = dir_len ? dir_len + 1 : 0;
	uint8_t last;

	if (e->len <= skip)
		return VERDICT_NONE;
	last = (uint8_t)e->path[e->len - 1];
	for (const struct sb_rule_block *b = v.last; b; b = b->prev) {
		size_t i = b == v.last ? v.n : b->n;

		while (i-- > 0) {
			const struct sb_rule *rule = &b->v[i];

			if (rule->last && rule->last != last)
				continue;
			if (sb_rules_pattern_match(rule, e->path + skip, e->len - skip, e->name,
				    e->name_len, e->is_dir))
				return rule->negative ? VERDICT_INCLUDE : VERDICT_EXCLUDE;
		}
	}
	return VERDICT_NONE;
}

/* The same entry in small letters, for git's lists. A path too long for that is as it is. */
struct folded_entry {
	struct rules_entry e;
	char path[4200];
};

static const struct rules_entry *
fold_entry(const struct rules_entry *e, struct folded_entry *to)
{
	if (e->len >= sizeof to->path)
		return e;
	fold(to->path, e->path, e->len);
	to->path[e->len] = 0;
	to->e = *e;
	to->e.path = to->path;
	to->e.name = to->path + (e->name - e->path);
	return &to->e;
}

/* git's lists do not exclude what git tracks, but all else in a directory that they exclude. */
static bool
settle(enum verdict v, bool by_git, const struct sb_rules_tracked *t, const struct rules_entry *e)
{
	if (t && (v == VERDICT_NONE || by_git)) {
		if (sb_rules_tracked_has(t, e->path, e->len, e->is_dir))
			return false;
		if (sb_rules_tracked_buries(t, e->path, e->len))
			return true;
	}
	return v == VERDICT_EXCLUDE;
}

static bool
match(const struct sb_rules_node *n, const struct rules_entry *e)
{
	enum verdict v = match_view(n->command, 0, e);
	struct folded_entry small;
	const struct rules_entry *g = n->fold ? fold_entry(e, &small) : e;
	bool by_git = false;

	for (const struct sb_rules_node *d = n; d && v == VERDICT_NONE; d = d->up) {
		v = match_view(d->files[SB_RULES_FILE_SBSYNC], d->dir_len, e);
		if (v != VERDICT_NONE)
			break;
		v = match_view(d->files[SB_RULES_FILE_GIT], d->dir_len, g);
		by_git = v != VERDICT_NONE;
	}
	for (const struct sb_rules_node *d = n; d && v == VERDICT_NONE; d = d->up) {
		v = match_view(d->files[SB_RULES_FILE_GITEXCLUDE], d->dir_len, g);
		by_git = v != VERDICT_NONE;
	}
	if (v == VERDICT_NONE)
		v = match_view(n->from_file, 0, e);
	if (v == VERDICT_NONE)
		v = match_view(n->builtin, 0, e);
	return settle(v, by_git, n->tracked, e);
}

bool
sb_rules_match(const struct sb_rules_node *n, const char *path, const char *name, bool is_dir)
{
	struct rules_entry e = { .path = path,
		.len = strlen(path),
		.name = name,
		.name_len = strlen(name),
		.is_dir = is_dir };

	return match(n, &e);
}

/*
 * What the lists of these kinds say, from the entry's directory up; without nodes: nothing is
 * allocated, so nothing can fail. The lock is held.
 */
static enum verdict
match_up(const struct sb_rules *r, const struct rules_entry *e, const struct rules_entry *g,
	const int *kinds, size_t n, bool *by_git)
{
	size_t dir_len = (size_t)(e->name - e->path);
	enum verdict v = VERDICT_NONE;

	dir_len -= dir_len > 0;
	while (r->n_dirs) {
		const struct sb_rules_dir *d = find_dir(r, e->path, dir_len);

		for (size_t i = 0; d && i < n; i++) {
			bool git = kinds[i] != SB_RULES_FILE_SBSYNC;

			v = match_view(view_of(d->files[kinds[i]]), dir_len, git ? g : e);
			*by_git = git;
			if (v != VERDICT_NONE)
				return v;
		}
		if (dir_len == 0)
			break;
		while (dir_len > 0 && e->path[--dir_len] != '/')
			;
	}
	*by_git = false;
	return v;
}

static const int in_dirs[] = { SB_RULES_FILE_SBSYNC, SB_RULES_FILE_GIT };
static const int beside[] = { SB_RULES_FILE_GITEXCLUDE };

/* What all lists say about one entry. */
static enum verdict
weigh(const struct sb_rules *r, const struct rules_entry *e, bool *by_git)
{
	enum verdict v = match_view(view_of(r->command), 0, e);
	struct folded_entry small;
	const struct rules_entry *g = r->fold ? fold_entry(e, &small) : e;

	*by_git = false;
	if (v == VERDICT_NONE)
		v = match_up(r, e, g, in_dirs, 2, by_git);
	if (v == VERDICT_NONE)
		v = match_up(r, e, g, beside, 1, by_git);
	if (v == VERDICT_NONE)
		v = match_view(view_of(r->from_file), 0, e);
	return v == VERDICT_NONE ? match_view(view_of(r->builtin), 0, e) : v;
}

/* One component of sb_rules_excluded. */
static bool
match_in_dirs(const struct sb_rules *r, const struct rules_entry *e)
{
	bool by_git;
	enum verdict v = weigh(r, e, &by_git);

	return settle(v, by_git, r->tracked && r->tracked->n ? r->tracked : NULL, e);
}

void
sb_rules_fold_git(struct sb_rules *r)
{
	(void)pthread_rwlock_wrlock(&r->mu);
	r->fold = true;
	(void)pthread_rwlock_unlock(&r->mu);
}

bool
sb_rules_has_git(struct sb_rules *r)
{
	bool has = false;

	(void)pthread_rwlock_rdlock(&r->mu);
	for (size_t i = 0; !has && i < r->n_buckets; i++)
		for (const struct sb_rules_dir *d = r->buckets[i]; d; d = d->next)
			has |= d->files[SB_RULES_FILE_GIT] || d->files[SB_RULES_FILE_GITEXCLUDE];
	(void)pthread_rwlock_unlock(&r->mu);
	return has;
}

bool
sb_rules_git_ignores(struct sb_rules *r, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	struct rules_entry e = { .path = path,
		.len = strlen(path),
		.name = slash ? slash + 1 : path,
		.is_dir = is_dir };
	bool by_git;
	enum verdict v;

	e.name_len = e.len - (size_t)(e.name - path);
	(void)pthread_rwlock_rdlock(&r->mu);
	v = weigh(r, &e, &by_git);
	(void)pthread_rwlock_unlock(&r->mu);
	return by_git && v == VERDICT_EXCLUDE;
}

bool
sb_rules_excluded(struct sb_rules *r, const char *path, bool is_dir)
{
	const char *name = path;
	bool out = false;

	if (*path == 0)
		return false;
	(void)pthread_rwlock_rdlock(&r->mu);
	while (!out) {
		const char *slash = strchr(name, '/');
		size_t name_len = slash ? (size_t)(slash - name) : strlen(name);
		struct rules_entry e = { .path = path,
			.len = (size_t)(name - path) + name_len,
			.name = name,
			.name_len = name_len,
			.is_dir = slash || is_dir };

		out = match_in_dirs(r, &e);
		if (!slash)
			break;
		name = slash + 1;
	}
	(void)pthread_rwlock_unlock(&r->mu);
	return out;
}
