/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_PLAINTREE_H
#define SB_TESTS_PLAINTREE_H

#include <stdbool.h>
#include <stddef.h>

/* Small trees of files, listed and compared: no content is longer than PLAINTREE_BYTES. */
#define PLAINTREE_BYTES (64 * BYTES_MAX)
#define BYTES_MAX 3000

struct plaintree_paths {
	char *v[1000];
	size_t n;
};

void plaintree_paths_free(struct plaintree_paths *p);
/* Every path beneath `at` in `root`, sorted when that is ""; directories only with `dirs`. */
void plaintree_walk(int root, const char *at, bool dirs, struct plaintree_paths *out);
/* The bytes of a file; how many. */
size_t plaintree_content(int root, const char *path, char out[PLAINTREE_BYTES]);
/* NULL, or what differs between the entries of that path: type, mode, owner, time, content. */
const char *plaintree_entry_differs(int real, int model, const char *path);
/* Fails the test, which is at `what`, when the trees are not the same. */
void plaintree_assert_same(int real, int model, const char *what);

#endif
