/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_TREE_H
#define SB_TESTS_TREE_H

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <sync/scan/scan.h>

#include "tests/lib/tmpdir.h"

/* Real files beneath a scratch directory, and scans of it. */
static inline void
make_dir(int fd, const char *path)
{
	if (mkdirat(fd, path, 0755) < 0)
		fail_msg("mkdir %s: %s", path, strerror(errno));
}

static inline void
make_file(int fd, const char *path, const char *content)
{
	int f = openat(fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (f < 0 || write(f, content, strlen(content)) != (ssize_t)strlen(content))
		fail_msg("write %s: %s", path, strerror(errno));
	(void)close(f);
}

static inline void
scan_ok(int fd, const struct sb_scan_opts *o, struct sb_scan *out)
{
	struct sb_error err = { 0 };

	assert_ok(sb_scan_run(fd, o, out, &err), &err);
}

/* Finds an entry that must be there. */
static inline struct sb_entry *
entry_of(const struct sb_scan *s, const char *path)
{
	struct sb_entry *e = sb_manifest_find(s->manifest, path);

	if (!e)
		fail_msg("%s is not in the manifest", path);
	return e;
}

static inline void
assert_absent(const struct sb_scan *s, const char *path)
{
	if (sb_manifest_find(s->manifest, path))
		fail_msg("%s is in the manifest", path);
}

static inline void
assert_content(const struct sb_scan *s, const char *path, const char *content)
{
	const struct sb_entry *e = entry_of(s, path);
	struct sb_digest d = sb_digest_of(content, strlen(content));

	assert_int_equal(e->type, SB_ENTRY_FILE);
	assert_int_equal(e->flags & SB_ENTRY_UNHASHED, 0);
	assert_int_equal(e->size, strlen(content));
	if (!sb_digest_eq(&d, &e->digest))
		fail_msg("%s does not have the digest of \"%s\"", path, content);
}

/* Why `path` was skipped; -1: it was not. */
static inline int
skip_of(const struct sb_scan *s, const char *path)
{
	for (size_t i = 0; i < s->n_skipped; i++) {
		if (strcmp(s->skipped[i].path, path) == 0)
			return (int)s->skipped[i].reason;
	}
	return -1;
}

static inline int
count_racy(const char *path, size_t len, struct sb_entry *e, void *arg)
{
	(void)path;
	(void)len;
	*(unsigned *)arg += e->type == SB_ENTRY_FILE && (e->flags & SB_ENTRY_RACY);
	return 0;
}

/* Scans again and again until the clock has left every file's time behind. */
static inline void
scan_settled(int fd, const struct sb_scan_opts *o, struct sb_scan *out)
{
	sb_deadline end = sb_deadline_in(20000);

	for (;;) {
		struct timespec ts = { .tv_nsec = 5000000 };
		unsigned racy = 0;

		scan_ok(fd, o, out);
		assert_int_equal(sb_manifest_walk(out->manifest, count_racy, &racy), 0);
		if (!racy)
			return;
		if (sb_deadline_passed(end))
			fail_msg("%u files stay racy", racy);
		sb_scan_free(out);
		(void)nanosleep(&ts, NULL);
	}
}

#endif
