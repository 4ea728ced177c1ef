/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/filejob.h>

#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/escape.h>
#include <base/file.h>
#include <base/random.h>
#include <base/str.h>

#define SHOWN_STEP 256

static const struct sb_filejob_tool *
find(const char *called)
{
	const struct sb_toolspec *spec = sb_toolspec_find(called);
	const char *name = spec ? spec->name : called;
	static const struct sb_filejob_tool *const tables[] = { sb_filejob_text_table,
		sb_filejob_search_table };

	for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
		for (const struct sb_filejob_tool *t = tables[i]; t->name; t++)
			if (strcmp(t->name, name) == 0)
				return t;
	return NULL;
}

bool
sb_filejob_heavy(const char *tool)
{
	const struct sb_filejob_tool *t = find(tool);

	return t && t->heavy;
}

int
sb_filejob_run(struct sb_filejob *j, struct sb_error *err)
{
	const struct sb_filejob_tool *t = find(j->params.tool);
	int r;

	if (!t)
		return sb_fail(err, SB_E_TOOL_UNKNOWN, "%s: %.80s", sb_code_text(SB_E_TOOL_UNKNOWN),
			j->params.tool);
	r = t->check ? t->check(&j->params, err) : 0;

	return r < 0 ? r : t->run(j, err);
}

int
sb_filejob_alive(const struct sb_filejob *j, struct sb_error *err)
{
	return sb_deadline_passed(j->deadline) ?
		sb_fail(err, SB_E_TIMEOUT, "tool call: deadline passed") :
		0;
}

int
sb_filejob_says(struct sb_filejob *j, bool is_error, struct sb_error *err, const char *fmt, ...)
{
	va_list ap;

	sb_buf_reset(&j->text);
	va_start(ap, fmt);
	sb_buf_vaddf(&j->text, fmt, ap);
	va_end(ap);
	j->is_error = is_error;
	return sb_buf_check(&j->text, "result", err);
}

int
sb_filejob_failed(struct sb_filejob *j, const struct sb_error *why, struct sb_error *err)
{
	switch (why->code) {
	case SB_E_NOMEM:
	case SB_E_TIMEOUT:
		if (err)
			*err = *why;
		return why->code;
	default: return sb_filejob_says(j, true, err, "%s", why->msg);
	}
}

int
sb_filejob_resolve(const struct sb_filejob *j, const char *path, struct sb_roots_resolved *out,
	struct sb_error *err)
{
	sb_autofree char *joined = NULL;

	path = path && *path ? path : ".";
	if (*path == '/' || !j->dir || !*j->dir)
		return sb_roots_resolve(&j->roots, path, out, err);
	joined = sb_str_printf("%s/%s", j->dir, path);
	return joined ? sb_roots_resolve(&j->roots, joined, out, err) :
			sb_fail(err, SB_E_NOMEM, "tool call");
}

void
sb_filejob_show(struct sb_buf *text, const char *s, size_t len)
{
	char out[4 * SHOWN_STEP + 1];

	while (len > 0) {
		const char *tab = memchr(s, '\t', len);
		size_t n = tab ? (size_t)(tab - s) : len;

		/* Not in the middle of a character. */
		if (n > SHOWN_STEP)
			for (n = SHOWN_STEP; n > SHOWN_STEP - 4; n--)
				if (((unsigned char)s[n] & 0xc0) != 0x80)
					break;
		sb_buf_add_str(text, sb_escape_message(s, n, out, sizeof out));
		s += n;
		len -= n;
		if (len > 0 && *s == '\t') {
			sb_buf_add_char(text, '\t');
			s++;
			len--;
		}
	}
}

/* Written by the one thread that puts files; read by a signal's handler. */
static struct sb_filejob_temp temp = { .dir = -1 };
static volatile sig_atomic_t has_temp;

void
sb_filejob_drop_temp(void)
{
	if (has_temp)
		(void)unlinkat(temp.dir, temp.name, 0);
}

static int
fill(int fd, const void *data, size_t len, unsigned mode, struct sb_error *err)
{
	int r = sb_file_write_all(fd, data, len, err);

	if (r < 0)
		return r;
	if (fchmod(fd, mode) < 0)
		return sb_fail_errno(err, "chmod %03o", mode);
	return fsync(fd) < 0 ? sb_fail_errno(err, "fsync") : 0;
}

int
sb_filejob_put(int dir, const char *leaf, const void *data, size_t len, unsigned mode,
	struct sb_error *err)
{
	struct sb_escape_name room;
	uint8_t random[12];
	char hex[2 * sizeof random + 1];
	sb_autoclose int fd = -1;
	int r = sb_random(random, sizeof random, err);

	if (r < 0)
		return r;
	temp.dir = dir;
	(void)snprintf(temp.name, sizeof temp.name, ".sb-new-%s",
		sb_str_hex(random, sizeof random, hex));
	has_temp = 1;
	fd = openat(dir, temp.name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	r = fd < 0 ? sb_fail_errno(err, "make a temporary file") : fill(fd, data, len, mode, err);
	if (r == 0 && renameat(dir, temp.name, dir, leaf) < 0)
		r = sb_fail_errno(err, "rename");
	if (r < 0 && fd >= 0)
		(void)unlinkat(dir, temp.name, 0);
	has_temp = 0;
	if (r == 0 && fsync(dir) < 0)
		r = sb_fail_errno(err, "fsync its directory");
	return r < 0 ? sb_wrap(err, r, "replace %s", sb_escape_name(leaf, strlen(leaf), &room)) : 0;
}
