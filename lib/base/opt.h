/* SPDX-License-Identifier: MIT */
#ifndef SB_BASE_OPT_H
#define SB_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <sb/error.h>

/* What an option's value is and where it goes (offset into the caller's struct). */
enum sb_opt_kind {
	SB_OPT_FLAG,   /* bool, no value */
	SB_OPT_COUNT,  /* int, counted up by each use (-vv) */
	SB_OPT_STRING, /* const char * */
	SB_OPT_INT,    /* int64_t, checked against min and max */
	SB_OPT_SIZE,   /* uint64_t bytes: 10, 10K, 1.5M, 2GiB (powers of 1024; KB, MB of 1000);
			  likewise */
	SB_OPT_TIME, /* int64_t milliseconds: 30, 30s, 5m, 250ms, 2h, 1d (a bare number is seconds);
			likewise */
	SB_OPT_CHOICE, /* int: index into `choices` */
	SB_OPT_LIST,   /* struct sb_opt_list: each use appends */
};

/* NULL ends it; without any entry `v` is NULL. */
struct sb_opt_list {
	const char **v;
	size_t n;
};

struct sb_opt {
	char letter;      /* 0: long form only */
	const char *name; /* without dashes; NULL ends the table */
	enum sb_opt_kind kind;
	size_t offset;
	const char *value; /* name of the value in --help ("N", "FILE"); NULL for flags */
	const char *help;
	const char *const *choices; /* NULL-terminated, SB_OPT_CHOICE */
	int64_t min, max;           /* SB_OPT_INT, SB_OPT_SIZE, SB_OPT_TIME (ms); both 0: any */
};

/* One verb of a command. */
struct sb_cmd {
	const char *name;    /* "mirror" */
	const char *args;    /* "SRC DST" */
	const char *help;    /* one line */
	const char *details; /* further text for its own --help, may be NULL */
	const struct sb_opt *opts;
	int min_args, max_args; /* max_args -1: any */
	int (*run)(void *values, int argc, char **argv);
};

/*
 * Parses argv[1..] against `opts` into `values`: long options (--name VALUE, --name=VALUE, unique
 * prefixes are NOT taken), bundled letters (-nv, -pPORT, -p PORT), "--" ends options. Operands may
 * stand among options unless `stop_at_operand`. On success `out_args`/`out_n` are the operands
 * (pointers into argv, in order; argv is permuted). A mistake is SB_E_USAGE with one line that
 * names the option and what it takes. Lists in `values` are the caller's to free, also then. --help
 * is an option like any other: put it into the table.
 */
int sb_opt_parse(const struct sb_opt *opts, int argc, char **argv, bool stop_at_operand,
	void *values, char ***out_args, int *out_n, struct sb_error *err);
void sb_opt_list_free(struct sb_opt_list *l);
/* All lists that options of the table fill. */
void sb_opt_lists_free(const struct sb_opt *opts, void *values);

/*
 * The values of SB_OPT_SIZE and SB_OPT_TIME, for other places that take them. False: not one, `out`
 * untouched.
 */
bool sb_opt_size(const char *s, uint64_t *out);
bool sb_opt_time(const char *s, int64_t *out_ms);

/* --help of one verb and of a program with verbs: at most 80 columns. */
void sb_opt_print_help(FILE *f, const char *program, const struct sb_cmd *cmd);
void sb_opt_print_usage(FILE *f, const char *program, const char *summary,
	const struct sb_cmd *const *cmds);

#endif
