/* SPDX-License-Identifier: MIT */
/* Who carries commands in this process instead of a program (declared in sbsync/conn.h). */
#include "config.h"

#include <stdatomic.h>
#include <string.h>

#include <sync/remote/conn.h>
#include <sync/remote/remote.h>

#define CARRIERS_MAX 8

static _Atomic(const struct sb_carrier *) carriers[CARRIERS_MAX];

bool
sb_conn_carry(const struct sb_carrier *c)
{
	for (size_t i = 0; i < CARRIERS_MAX; i++) {
		const struct sb_carrier *none = NULL;

		if (atomic_load(&carriers[i]) == c ||
			atomic_compare_exchange_strong(&carriers[i], &none, c))
			return true;
	}
	return false;
}

const struct sb_carrier *
sb_conn_carry_find(const char *const *argv)
{
	for (size_t i = 0; i < CARRIERS_MAX; i++) {
		const struct sb_carrier *c = atomic_load(&carriers[i]);

		if (c && c->takes(argv))
			return c;
	}
	return NULL;
}
