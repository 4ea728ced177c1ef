/* SPDX-License-Identifier: MIT */
#ifndef SB_TESTS_ETCD_H
#define SB_TESTS_ETCD_H

#include <stdbool.h>
#include <stddef.h>

#define TEST_ETCD_MAX 8

/* A real etcd cluster started by tests/lib/etcd.sh, in a folder of its own that goes with it. */
struct test_etcd {
	char dir[200];
	char text[TEST_ETCD_MAX][64];
	const char *endpoint[TEST_ETCD_MAX];
	size_t n;
};

/*
 * `args`: "tls" first if wanted, then words for etcd, NULL-terminated; may be NULL. True when it
 * runs; else `why` says why not, and *skip whether that is a matter of this machine.
 */
bool test_etcd_start(struct test_etcd *t, int members, const char *const *args, bool *skip,
	char *why, size_t size);
void test_etcd_stop(struct test_etcd *t);

/* "kill", "revive", "freeze" or "thaw". */
bool test_etcd_do(const struct test_etcd *t, const char *verb, int member);

#endif
