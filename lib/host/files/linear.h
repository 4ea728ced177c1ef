/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_LINEAR_H
#define SB_HOST_LINEAR_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * An expression in the syntax of RE2, compiled by RE2: matching takes time in proportion to the
 * text, and memory within SB_LINEAR_MEMORY, whatever the expression is. Text is UTF-8; a line that
 * is not is looked at byte by byte, too. Safe from several threads.
 */
#define SB_LINEAR_MEMORY (16u << 20)

struct sb_linear;

/* NULL when it is not an expression; `why` (of `size` bytes) says what is wrong with it. */
struct sb_linear *sb_linear_new(const char *text, size_t len, char *why, size_t size);
void sb_linear_free(struct sb_linear *l);
/* Whether it matches somewhere in the line, which is without its line end. */
bool sb_linear_matches(struct sb_linear *l, const char *line, size_t len);

#ifdef __cplusplus
}
#endif

#endif
