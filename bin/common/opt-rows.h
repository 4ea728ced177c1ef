/* SPDX-License-Identifier: MIT */
#ifndef SB_BIN_OPT_ROWS_H
#define SB_BIN_OPT_ROWS_H

#include <base/opt.h>

/*
 * Rows of an option table (base/opt.h), one macro for each kind of value. A program defines
 * OPT_VALUES as the struct that the parser fills; `field` is a member of it:
 *
 *   #define OPT_VALUES struct args
 *   static const struct sb_opt options[] = {
 *           OPT_FLAG('n', "dry-run", dry_run, "change nothing"),
 *           OPT_INT('p', "port", port, "PORT", 1, 65535, "SSH port"),
 *           OPT_END,
 *   };
 *
 * `letter` is 0 for an option without a short form. Limits of 0, 0 allow any number.
 */
/* clang-format off */
#define OPT_ROW(letter, name, kind, field, value, choices, min, max, help) \
	{ letter, name, kind, offsetof(OPT_VALUES, field), value, help, choices, min, max }

#define OPT_FLAG(letter, name, field, help) \
	OPT_ROW(letter, name, SB_OPT_FLAG, field, NULL, NULL, 0, 0, help)
#define OPT_COUNT(letter, name, field, help) \
	OPT_ROW(letter, name, SB_OPT_COUNT, field, NULL, NULL, 0, 0, help)
#define OPT_TEXT(letter, name, field, value, help) \
	OPT_ROW(letter, name, SB_OPT_STRING, field, value, NULL, 0, 0, help)
#define OPT_LIST(letter, name, field, value, help) \
	OPT_ROW(letter, name, SB_OPT_LIST, field, value, NULL, 0, 0, help)
#define OPT_CHOICE(letter, name, field, value, choices, help) \
	OPT_ROW(letter, name, SB_OPT_CHOICE, field, value, choices, 0, 0, help)
#define OPT_INT(letter, name, field, value, min, max, help) \
	OPT_ROW(letter, name, SB_OPT_INT, field, value, NULL, min, max, help)
#define OPT_SIZE(letter, name, field, value, min, max, help) \
	OPT_ROW(letter, name, SB_OPT_SIZE, field, value, NULL, min, max, help)
#define OPT_TIME(letter, name, field, value, min, max, help) \
	OPT_ROW(letter, name, SB_OPT_TIME, field, value, NULL, min, max, help)
#define OPT_END \
	{ 0, NULL, SB_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0 }
/* clang-format on */

#endif
