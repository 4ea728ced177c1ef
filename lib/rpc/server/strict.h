/* SPDX-License-Identifier: MIT */
#ifndef SB_RPC_STRICT_H
#define SB_RPC_STRICT_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What a request's header must be so that every program on its way reads the same request: lines
 * that end in CRLF, no NUL and no other control character, no folded lines, one Host, one length.
 * libmicrohttpd 0.9.75 is lenient with all of that; 0.9.77 and later ones are not. It reads the
 * header in place, though, and says how long it was; so what came can still be told from what it
 * left there.
 */

/* What a header says about its request. */
struct sb_rpc_strict {
	unsigned hosts, lengths, codings;
	bool coding_ok; /* the transfer coding is "chunked" and nothing else */
	bool length_ok; /* the content length is digits only */
};

/*
 * The lines behind the request line, as libmicrohttpd leaves them: "NAME\0 VALUE\0\0" for each,
 * where CRLF became two NULs, and two NULs at the end. NULL: they are good, and `out` is set. Else
 * what is wrong with them, in words.
 */
const char *sb_rpc_strict_lines(const char *lines, size_t len, struct sb_rpc_strict *out);

/* One line; `value` ends in a NUL. */
void sb_rpc_strict_count(struct sb_rpc_strict *s, const char *name, size_t len, const char *value);

/* The target of the request line as it came: printable ASCII without blanks. */
bool sb_rpc_strict_target(const char *target);

/* What is wrong with the request as a whole, NULL: nothing. `version` is "HTTP/1.1". */
const char *sb_rpc_strict_judge(const struct sb_rpc_strict *s, const char *version);

#endif
