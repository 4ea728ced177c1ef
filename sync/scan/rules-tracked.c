/* SPDX-License-Identifier: MIT */
/*
 * Files that git tracks although its ignore rules match them. A sorted list of texts: "a/b", a
 * file; "a/b/.", a repository of its own; "a/", a directory that git ignores but for what it
 * tracks in it, which the list has too.
 */
#include "config.h"

#include <sync/scan/rules-priv.h>

#include <stdlib.h>
#include <string.h>

/* The first text that is not less than these bytes. */
static size_t
lower_bound(const struct sb_rules_tracked *t, const char *text, size_t len)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strncmp(t->v[mid], text, len);

		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static bool
has(const struct sb_rules_tracked *t, const char *text, size_t len)
{
	size_t i = lower_bound(t, text, len);

	return i < t->n && strncmp(t->v[i], text, len) == 0 && !t->v[i][len];
}

/* Is there anything beneath the directory? */
static bool
has_beneath(const struct sb_rules_tracked *t, const char *dir, size_t len)
{
	size_t lo = 0, hi = t->n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		int c = strncmp(t->v[mid], dir, len);

		if (c < 0 || (c == 0 && (unsigned char)t->v[mid][len] < '/'))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < t->n && strncmp(t->v[lo], dir, len) == 0 && t->v[lo][len] == '/';
}

bool
sb_rules_tracked_has(const struct sb_rules_tracked *t, const char *path, size_t len, bool is_dir)
{
	return is_dir ? has_beneath(t, path, len) : has(t, path, len);
}

bool
sb_rules_tracked_buries(const struct sb_rules_tracked *t, const char *path, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (path[i] == '/' && has(t, path, i + 1))
			return true;
	return false;
}

static bool
text_ok(const char *text, size_t len)
{
	if (len > 2 && text[len - 1] == '.' && text[len - 2] == '/')
		len -= 2;
	else if (len > 1 && text[len - 1] == '/')
		len--;
	return len && sb_rules_dir_ok(text, len);
}

int
sb_rules_set_tracked(struct sb_rules *r, const char *const *texts, size_t n, struct sb_error *err)
{
	struct sb_rules_tracked *t;
	size_t bytes = 0;
	char *to;

	if (n > SB_RULES_COUNT_MAX)
		return sb_fail(err, SB_E_LIMIT,
			"git tracks more than %u files that it would ignore; --gitignore cannot "
			"be used here",
			SB_RULES_COUNT_MAX);
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(texts[i]);

		if (!text_ok(texts[i], len) || len > SB_RULE_TEXT_MAX ||
			(i && strcmp(texts[i - 1], texts[i]) >= 0))
			return sb_fail(err, SB_E_CORRUPT, "exclude rules: bad tracked path");
		bytes += len + 1;
	}
	if (bytes > SB_RULES_BYTES_MAX)
		return sb_fail(err, SB_E_LIMIT,
			"git tracks more than %u MiB of names that it would ignore; --gitignore "
			"cannot be used here",
			SB_RULES_BYTES_MAX >> 20);
	t = malloc(sizeof *t + n * sizeof t->v[0] + bytes);
	if (!t)
		return sb_fail(err, SB_E_NOMEM, "exclude rules: out of memory");
	to = (char *)&t->v[n];
	for (size_t i = 0; i < n; i++) {
		size_t len = strlen(texts[i]) + 1;

		t->v[i] = memcpy(to, texts[i], len);
		to += len;
	}
	t->n = n;
	(void)pthread_rwlock_wrlock(&r->mu);
	t->old = r->tracked;
	r->tracked = t;
	(void)pthread_rwlock_unlock(&r->mu);
	return 0;
}
