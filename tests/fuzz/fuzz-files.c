/* SPDX-License-Identifier: MIT */
/*
 * A call of a tool that works on files, as a tenant writes it: the first byte chooses the tool, the
 * rest are the parameters. They are run in a small directory of their own. The result keeps to its
 * ceiling, nothing leaves the directory, and what searches show would not move a terminal.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/path.h>
#include <host/files/filejob.h>

#include "fuzz-scratch.h"
#include "fuzz.h"

#define TEXT_MAX 4096

static void
put(int dir, const char *name, const char *text)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	FUZZ_CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)close(fd);
}

/* The directory, made by the first input. What inputs write into it may stay. */
static int
workspace(void)
{
	static int made = -1;

	if (made >= 0)
		return made;
	made = fuzz_scratch();
	FUZZ_CHECK(mkdirat(made, "d", 0755) == 0);
	put(made, "a", "one\ntwo\nthree\n");
	put(made, "d/b", "x\ty\033[31m\nlong\r\n");
	put(made, "odd\nname\033", "a\n");
	FUZZ_CHECK(symlinkat("../../etc/passwd", made, "out") == 0);
	FUZZ_CHECK(symlinkat("d", made, "in") == 0);
	return made;
}

static void
check_text(const char *tool, const struct sb_buf *text)
{
	FUZZ_CHECK(text->len <= TEXT_MAX);
	if (strcmp(tool, "grep") != 0 && strcmp(tool, "glob") != 0)
		return;
	for (size_t i = 0; i < text->len; i++)
		FUZZ_CHECK(text->data[i] >= 0x20 || text->data[i] == '\n' || text->data[i] == '\t');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const tools[] = { "read_file", "write_file", "edit_file", "ls", "grep",
		"glob", "read", "find" };
	const char *tool = size ? tools[data[0] % 8] : "ls";
	struct sb_filejob j = { .deadline = sb_deadline_in(2000) };
	struct sb_error err = { 0 };
	struct sb_root root = { .given = (char *)"/workspace",
		.path = (char *)"/workspace",
		.fd = workspace() };

	if (size < 1 || size > 8192)
		return 0;
	j.roots.v = &root;
	j.roots.n = 1;
	sb_buf_init(&j.text, TEXT_MAX);
	if (sb_params_parse(tool, (const char *)data + 1, size - 1, &j.params, &err) == 0 &&
		sb_filejob_run(&j, &err) == 0) {
		check_text(tool, &j.text);
		/* Nothing of /etc/passwd comes out; what was put in may. */
		FUZZ_CHECK(memmem(data, size, "root:x:", 7) ||
			!memmem(j.text.data, j.text.len, "root:x:", 7));
	} else {
		FUZZ_CHECK(err.code < 0 && *err.msg);
	}
	sb_params_free(&j.params);
	sb_buf_free(&j.text);
	return 0;
}
