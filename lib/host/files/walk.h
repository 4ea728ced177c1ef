/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_WALK_H
#define SB_HOST_WALK_H

#include <pthread.h>

#include <host/files/filejob.h>

/*
 * The regular files beneath a directory, without those in directories whose name begins with a dot.
 */
struct sb_walk {
	struct sb_walk_file {
		char *path;     /* beneath the directory */
		size_t dir_len; /* of its directory; 0: the top */
	} * v;
	size_t n, cap;
	size_t left_out; /* directories that could not be read, and files past the limit */
};
#define SB_WALK_FILES_MAX 2000000

typedef bool (*sb_walk_want_fn)(const char *path, const char *name, const void *arg);

/*
 * Walks by several threads and sorts the result. `want` says which files count; any of the threads
 * calls it. SB_E_CANCELED, SB_E_TIMEOUT.
 */
int sb_walk_files(const struct sb_filejob *j, int rootfd, const char *rel, sb_walk_want_fn want,
	const void *arg, struct sb_walk *out, struct sb_error *err);
void sb_walk_free(struct sb_walk *w);
SB_CLEANUP_VALUE(sb_walk, sb_walk_free)
/* How many threads such work should use, and one of them. False: it could not be started. */
#define SB_WALK_THREADS_MAX 8
size_t sb_walk_threads(void);
bool sb_walk_thread(pthread_t *out, void *(*fn)(void *), void *arg);

#endif
