/* SPDX-License-Identifier: MIT */
/*
 * Stands in for libFuzzer in normal builds: feeds every file of the target's corpus to the target,
 * one TAP line each. The corpus of `fuzz-NAME` is tests/fuzz/corpus/NAME. Files named as arguments
 * are replayed instead, which is how an input that libFuzzer found is looked at in a debugger.
 */
#include <dirent.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fuzz.h"

/* No input may take longer than this; the alarm kills the program and the test fails. */
#define INPUT_SECONDS 60
#define INPUT_MAX (16u << 20)

/*
 * The bytes of `path` in a block of exactly that size, so that ASan sees the first byte past the
 * end.
 */
static uint8_t *
read_input(const char *path, size_t *out_len)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long len;

	if (!f)
		return NULL;
	if (fseek(f, 0, SEEK_END) == 0 && (len = ftell(f)) >= 0 && len <= (long)INPUT_MAX &&
		fseek(f, 0, SEEK_SET) == 0 && (data = malloc(len > 0 ? (size_t)len : 1)) != NULL) {
		if (fread(data, 1, (size_t)len, f) == (size_t)len) {
			*out_len = (size_t)len;
		} else {
			free(data);
			data = NULL;
		}
	}
	fclose(f);
	return data;
}

static int
replay(const char *name, unsigned number)
{
	uint8_t *data;
	size_t len = 0;

	data = read_input(name, &len);
	if (!data) {
		printf("not ok %u - %s\n# cannot read it: %s\n", number, name, strerror(errno));
		return 1;
	}
	printf("# %s, %zu bytes\n", name, len);
	fflush(stdout);
	alarm(INPUT_SECONDS);
	LLVMFuzzerTestOneInput(data, len);
	alarm(0);
	free(data);
	printf("ok %u - %s\n", number, name);
	fflush(stdout);
	return 0;
}

static int
not_hidden(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int
replay_dir(const char *dir)
{
	struct dirent **names;
	int i, n, failed = 0;

	n = chdir(dir) < 0 ? -1 : scandir(".", &names, not_hidden, alphasort);
	if (n <= 0) {
		printf("1..1\nnot ok 1 - corpus\n# %s: %s\n", dir,
			n < 0 ? strerror(errno) : "no files");
		return 1;
	}
	printf("1..%d\n", n);
	for (i = 0; i < n; i++) {
		failed += replay(names[i]->d_name, (unsigned)i + 1);
		free(names[i]);
	}
	free(names);
	return failed != 0;
}

int
main(int argc, char **argv)
{
	const char *top = getenv("SB_TOP_SRCDIR");
	const char *name = strrchr(argv[0], '/');
	const char *dash;
	char dir[4096];
	int i, failed = 0;

	if (argc > 1) {
		printf("1..%d\n", argc - 1);
		for (i = 1; i < argc; i++)
			failed += replay(argv[i], (unsigned)i);
		return failed != 0;
	}
	name = name != NULL ? name + 1 : argv[0];
	dash = strstr(name, "fuzz-");
	if (top == NULL || dash == NULL) {
		fprintf(stderr, "usage: %s FILE...   (or SB_TOP_SRCDIR=DIR %s)\n", name, name);
		return 2;
	}
	snprintf(dir, sizeof dir, "%s/tests/fuzz/corpus/%s", top, dash + 5);
	return replay_dir(dir);
}
