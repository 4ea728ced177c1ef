/* SPDX-License-Identifier: MIT */
/*
 * The option parser: the input is words divided by NUL bytes; the first byte says whether the first
 * operand ends the options. The words are permuted, never lost; a failure is a usage error of one
 * printable line; numbers that are accepted keep to their limits.
 */
#include <stdbool.h>
#include <string.h>

#include <base/opt.h>

#include "fuzz.h"

#define WORDS_MAX 32

struct values {
	bool flag;
	int count;
	const char *string;
	int64_t number;
	uint64_t size;
	uint64_t any_size;
	int64_t time;
	int choice;
	struct sb_opt_list list;
};

static const char *const choices[] = { "auto", "always", "never", NULL };

static const struct sb_opt table[] = {
	{ 'f', "flag", SB_OPT_FLAG, offsetof(struct values, flag), NULL, "", NULL, 0, 0 },
	{ 'v', "verbose", SB_OPT_COUNT, offsetof(struct values, count), NULL, "", NULL, 0, 0 },
	{ 's', "string", SB_OPT_STRING, offsetof(struct values, string), "S", "", NULL, 0, 0 },
	{ 'n', "number", SB_OPT_INT, offsetof(struct values, number), "N", "", NULL, -5, 500 },
	{ 'b', "bytes", SB_OPT_SIZE, offsetof(struct values, size), "B", "", NULL, 1, 1 << 20 },
	{ 'a', "any", SB_OPT_SIZE, offsetof(struct values, any_size), "B", "", NULL, 0, 0 },
	{ 't', "time", SB_OPT_TIME, offsetof(struct values, time), "T", "", NULL, 0, 0 },
	{ 'c', "choice", SB_OPT_CHOICE, offsetof(struct values, choice), NULL, "", choices, 0, 0 },
	{ 'x', "exclude", SB_OPT_LIST, offsetof(struct values, list), "P", "", NULL, 0, 0 },
	{ 0, NULL, SB_OPT_FLAG, 0, NULL, NULL, NULL, 0, 0 },
};

/* Cuts `text` into words; argv[0] is the program. */
static int
split(char *text, size_t len, char **argv)
{
	static char program[] = "prog";
	char *end = text + len;
	int argc = 0;

	argv[argc++] = program;
	while (text < end && argc < WORDS_MAX) {
		argv[argc++] = text;
		text += strlen(text) + 1;
	}
	argv[argc] = NULL;
	return argc;
}

static int
by_address(const void *a, const void *b)
{
	const char *x = *(char *const *)a;
	const char *y = *(char *const *)b;

	return (x > y) - (x < y);
}

static void
check_same_words(char **before, char **after, int argc)
{
	qsort(before, (size_t)argc, sizeof *before, by_address);
	qsort(after, (size_t)argc, sizeof *after, by_address);
	FUZZ_CHECK(!memcmp(before, after, (size_t)argc * sizeof *before));
}

static void
check_message(const struct sb_error *err)
{
	FUZZ_CHECK(err->code == SB_E_USAGE && err->msg[0]);
	for (const char *p = err->msg; *p; p++)
		FUZZ_CHECK((uint8_t)*p >= 0x20 && *p != 0x7f);
}

static void
check_values(const struct values *v, int argc)
{
	FUZZ_CHECK(v->number >= -5 && v->number <= 500);
	FUZZ_CHECK(v->size <= 1 << 20 && v->time >= 0);
	FUZZ_CHECK(v->choice >= 0 && v->choice < 3);
	FUZZ_CHECK(v->count >= 0 && v->list.n < (size_t)argc);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *argv[WORDS_MAX + 1];
	char *before[WORDS_MAX + 1];
	struct values v = { 0 };
	struct sb_error err = { 0 };
	char **args = NULL;
	int n = -1;
	int argc;
	char *text;
	int r;

	if (len < 1)
		return 0;
	text = malloc(len);
	FUZZ_CHECK(text);
	memcpy(text, data + 1, len - 1);
	text[len - 1] = 0;
	argc = split(text, len - 1, argv);
	memcpy(before, argv, sizeof argv);
	r = sb_opt_parse(table, argc, argv, data[0] & 1, &v, &args, &n, &err);
	if (r < 0)
		check_message(&err);
	else
		FUZZ_CHECK(args == argv + 1 && n >= 0 && n < argc);
	check_values(&v, argc);
	check_same_words(before, argv, argc);
	sb_opt_list_free(&v.list);
	free(text);
	return 0;
}
