/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_CLEANUP_H
#define SB_BASE_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/*
 * Scope-bound cleanup. Initialise where you declare; hand ownership on with sb_steal / sb_steal_fd.
 *   sb_autofree char *p = NULL;   sb_autoclose int fd = -1;   sb_auto(sb_buf) struct sb_buf b =
 * ...; sb_auto(T) needs `void T_free(T *)` or, for values, SB_CLEANUP_VALUE(T, fn).
 */
#define sb_autofree __attribute__((cleanup(sb_cleanup_free_)))
#define sb_autoclose __attribute__((cleanup(sb_cleanup_close_)))
#define sb_autofclose __attribute__((cleanup(sb_cleanup_fclose_)))
#define sb_autoclosedir __attribute__((cleanup(sb_cleanup_closedir_)))
#define sb_auto(type) __attribute__((cleanup(sb_cleanup_##type##_)))

/* Defines the cleanup of `struct type *p` (pointer) through `fn`, or of `struct type v` (value). */
#define SB_CLEANUP_PTR(type, fn) \
	static inline __attribute__((unused)) void sb_cleanup_##type##_(struct type **p) \
	{ \
		fn(*p); \
	}
#define SB_CLEANUP_VALUE(type, fn) \
	static inline __attribute__((unused)) void sb_cleanup_##type##_(struct type *p) \
	{ \
		fn(p); \
	}

#define sb_steal(pp) \
	({ \
		__typeof__(*(pp)) stolen_ = *(pp); \
		*(pp) = NULL; \
		stolen_; \
	})

static inline int
sb_steal_fd(int *fd)
{
	int f = *fd;

	*fd = -1;
	return f;
}

static inline void
sb_cleanup_free_(void *p)
{
	free(*(void **)p);
}

static inline void
sb_cleanup_close_(int *fd)
{
	int sys = errno;

	if (*fd >= 0)
		(void)close(*fd);
	errno = sys;
}

static inline void
sb_cleanup_fclose_(FILE **f)
{
	if (*f)
		(void)fclose(*f);
}

static inline void
sb_cleanup_closedir_(DIR **d)
{
	if (*d)
		(void)closedir(*d);
}

#endif
