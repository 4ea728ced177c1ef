/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "tests/lib/nomem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/lib/unit.h"

/* More than this many allocations in one scenario is a mistake of the test. */
#define RUNS_MAX 10000

/* Work under test has threads, too. */
static atomic_uint fail_at; /* 0: never */
static atomic_uint count;   /* allocations since it was armed */
static atomic_long live;    /* blocks handed out and not given back */

void *__real_malloc(size_t n);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t n);
void *__real_reallocarray(void *p, size_t n, size_t size);
char *__real_strdup(const char *s);
char *__real_strndup(const char *s, size_t n);
int __real_vasprintf(char **out, const char *fmt, va_list ap);
void __real_free(void *p);

void *__wrap_malloc(size_t n);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t n);
void *__wrap_reallocarray(void *p, size_t n, size_t size);
char *__wrap_strdup(const char *s);
char *__wrap_strndup(const char *s, size_t n);
int __wrap_asprintf(char **out, const char *fmt, ...) SB_PRINTF(2, 3);
int __wrap_vasprintf(char **out, const char *fmt, va_list ap) SB_PRINTF(2, 0);
void __wrap_free(void *p);

static bool
refused(void)
{
	unsigned at = fail_at;

	if (!at || atomic_fetch_add(&count, 1) + 1 != at)
		return false;
	errno = ENOMEM;
	return true;
}

/* Counts a block that is new. */
static void *
counted(void *p)
{
	live += p != NULL;
	return p;
}

void *
__wrap_malloc(size_t n)
{
	return refused() ? NULL : counted(__real_malloc(n));
}

void *
__wrap_calloc(size_t n, size_t size)
{
	return refused() ? NULL : counted(__real_calloc(n, size));
}

void *
__wrap_realloc(void *p, size_t n)
{
	if (refused())
		return NULL;
	return p ? __real_realloc(p, n) : counted(__real_realloc(p, n));
}

void *
__wrap_reallocarray(void *p, size_t n, size_t size)
{
	if (refused())
		return NULL;
	return p ? __real_reallocarray(p, n, size) : counted(__real_reallocarray(p, n, size));
}

char *
__wrap_strdup(const char *s)
{
	return refused() ? NULL : counted(__real_strdup(s));
}

char *
__wrap_strndup(const char *s, size_t n)
{
	return refused() ? NULL : counted(__real_strndup(s, n));
}

int
__wrap_vasprintf(char **out, const char *fmt, va_list ap)
{
	int n = refused() ? -1 : __real_vasprintf(out, fmt, ap);

	live += n >= 0;
	return n;
}

int
__wrap_asprintf(char **out, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = __wrap_vasprintf(out, fmt, ap);
	va_end(ap);
	return n;
}

void
__wrap_free(void *p)
{
	live -= p != NULL;
	__real_free(p);
}

unsigned
nomem_every(nomem_fn fn, void *arg, int absorbs)
{
	for (unsigned n = 1; n < RUNS_MAX; n++) {
		struct sb_error err = { 0 };
		long before = live;
		bool failed;
		int r;

		count = 0;
		fail_at = n;
		r = fn(arg, &err);
		failed = count >= n;
		fail_at = 0;
		if (live != before)
			fail_msg("failing allocation %u left %ld blocks behind", n, live - before);
		if (!failed) {
			if (r < 0)
				fail_msg("failed without a failing allocation: %s (%d)", err.msg,
					r);
			if (n == 1)
				fail_msg("it allocates nothing, so nothing was tested");
			return n - 1;
		}
		if (r != SB_E_NOMEM && !(absorbs && r >= 0))
			fail_msg("failing allocation %u gave %d (%s)", n, r, err.msg);
	}
	fail_msg("no end after %d allocations", RUNS_MAX);
	return 0;
}
