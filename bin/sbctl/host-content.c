/* SPDX-License-Identifier: MIT */
/*
 * What changed in a file between two snapshots. The host sends both contents; the lines are
 * compared here, by diff(1), and nothing of a sandbox reaches the terminal unescaped.
 */
#include "config.h"

#include <bin/sbctl/host.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/base64.h>
#include <base/escape.h>
#include <base/file.h>
#include <base/spawn.h>

#define CONTENT_MAX (2u << 20)
#define OUTPUT_MAX (16u << 20)
#define DIFF_MS 30000

/* The bytes, also of what is not there; false when the host sent nonsense. */
static bool
decode(const json_t *v, struct sb_buf *out)
{
	sb_buf_init(out, CONTENT_MAX);
	return !json_is_string(v) ||
		(sb_base64_decode(json_string_value(v), json_string_length(v), out) &&
			sb_buf_check(out, "content", NULL) == 0);
}

/* A file without a name that holds it. */
static int
hold(const struct sb_buf *data)
{
	int fd = memfd_create("content", 0);

	if (fd >= 0 && sb_file_write_all(fd, data->data, data->len, NULL) < 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

/* Lines of the sandbox, each escaped; a tab is a tab. */
static void
print_lines(const struct sb_buf *text)
{
	const char *p = (const char *)text->data, *end = p + text->len;

	while (p < end) {
		const char *nl = memchr(p, '\n', (size_t)(end - p)), *stop = nl ? nl : end;

		while (p < stop) {
			const char *tab = memchr(p, '\t', (size_t)(stop - p));
			const char *to = tab ? tab : stop;
			char safe[4096];

			/* An escaped byte is four characters at most; no character is cut. */
			if (to - p > (ptrdiff_t)sizeof safe / 5) {
				to = p + sizeof safe / 5;
				for (int i = 0; i < 3 && ((unsigned char)*to & 0xc0) == 0x80; i++)
					to--;
			}
			(void)fputs(sb_escape_message(p, (size_t)(to - p), safe, sizeof safe),
				stdout);
			if (to == tab) {
				(void)putchar('\t');
				to++;
			}
			p = to;
		}
		(void)putchar('\n');
		p = nl ? nl + 1 : end;
	}
}

static void
compare(const struct sb_buf *a, const struct sb_buf *b, bool was, bool is)
{
	sb_autoclose int old = hold(a);
	sb_autoclose int now = hold(b);
	char old_path[64], now_path[64];
	const char *const argv[] = { "diff", "-u", "-a", "--label", was ? "before" : "/dev/null",
		"--label", is ? "after" : "/dev/null", old_path, now_path, NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_error err = { 0 };

	sb_buf_init(&out, OUTPUT_MAX);
	/* It opens them again by the name that they have in this process. */
	(void)snprintf(old_path, sizeof old_path, "/proc/%d/fd/%d", (int)getpid(), old);
	(void)snprintf(now_path, sizeof now_path, "/proc/%d/fd/%d", (int)getpid(), now);
	o.search_path = true;
	if (old < 0 || now < 0 ||
		sb_child_run(argv, &o, NULL, 0, &out, NULL, NULL, sb_deadline_in(DIFF_MS), &err) <
			0) {
		(void)printf("  (cannot be compared: %s)\n", err.code ? err.msg : "no memory");
		return;
	}
	print_lines(&out);
	if (sb_buf_check(&out, "diff", NULL) < 0)
		(void)printf("  (and more)\n");
}

void
host_content_print(const json_t *row)
{
	const json_t *old = json_object_get(row, "Old"), *now = json_object_get(row, "New");
	const json_t *unread = json_object_get(row, "Unread");
	sb_auto(sb_buf) struct sb_buf a = { 0 }, b = { 0 };
	char why[256];

	if (json_string_length(unread) > 0) {
		(void)printf("  (not shown: %s)\n", host_print_cell(unread, why, sizeof why));
		return;
	}
	if (!old && !now)
		return;
	if (!decode(old, &a) || !decode(now, &b))
		(void)printf("  (not shown: the host sent no content)\n");
	else if (memchr(a.data, '\0', a.len) || memchr(b.data, '\0', b.len))
		(void)printf("  (binary, %zu bytes, was %zu)\n", b.len, a.len);
	else
		compare(&a, &b, old != NULL, now != NULL);
}
