/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_HOSTDB_PRIV_H
#define SB_HOST_HOSTDB_PRIV_H

#include <sqlite3.h>

#include <host/hostdb.h>

/* What hostdb-load.c needs of the connection, which hostdb.c owns. */
typedef int (*sb_hostdb_row_fn)(sqlite3_stmt *stmt, void *arg, struct sb_error *err);

/* Calls `fn` for every row of the query, whose one parameter is `uid`. */
int sb_hostdb_query(struct sb_hostdb *db, const char *text, sb_hostdb_row_fn fn, void *arg,
	int64_t uid, struct sb_error *err);

#endif
