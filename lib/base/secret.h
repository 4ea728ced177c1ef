/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_SECRET_H
#define SB_BASE_SECRET_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Does a variable with this name (`len` bytes) look as if it held a secret? The one rule for all:
 * terminals of an agent do not inherit such variables, and profiles may name them by reference
 * only. In any case of letters:
 *   yes: API_KEY, APIKEY, ACCESS_KEY, PRIVATE_KEY, PRIVATEKEY, TOKEN, SECRET, PASSWORD, PASSWD,
 *        CREDENTIAL, AUTH (but not AUTHOR), BEARER, COOKIE or SESSION anywhere, or _KEY at the end
 *   no:  a name that ends in _FILE, _PATH or _DIR, which says where something is
 */
bool sb_secret_name_looks(const char *name, size_t len);

#endif
