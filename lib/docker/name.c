/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <docker/name.h>

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/str.h>

#define NAME_MAX_LEN 128
#define IMAGE_MAX_LEN 512

static bool
is_made_of(const char *text, const char *also, size_t max)
{
	size_t n = strlen(text);

	if (n == 0 || n > max || !isalnum((unsigned char)*text))
		return false;
	for (; *text; text++)
		if (!isalnum((unsigned char)*text) && !strchr(also, *text))
			return false;
	return true;
}

bool
sb_name_ok(const char *name)
{
	return is_made_of(name, "._+-", NAME_MAX_LEN);
}

bool
sb_name_image_ok(const char *ref)
{
	return is_made_of(ref, "._-/:@", IMAGE_MAX_LEN);
}

char *
sb_name_of_sandbox(const char *id, bool plus)
{
	char *name = sb_str_printf("sbsync-%s", id);

	for (char *p = name; plus && p && *p; p++)
		if (*p == '_')
			*p = '+';
	return name;
}

/* Adds the components of `path` to `b`, which holds a clean absolute path. */
static void
add_parts(struct sb_buf *b, const char *path)
{
	while (*path) {
		size_t n = strcspn(path, "/");

		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (b->len && b->data[b->len - 1] != '/')
				b->len--;
			b->len -= b->len > 0;
		} else if (n && !(n == 1 && *path == '.')) {
			sb_buf_add_char(b, '/');
			sb_buf_add(b, path, n);
		}
		path += n + (path[n] == '/');
	}
}

char *
sb_name_clean_path(const char *path)
{
	sb_autofree char *here = *path == '/' ? NULL : getcwd(NULL, 0);
	sb_auto(sb_buf) struct sb_buf b;
	size_t len;

	sb_buf_init(&b, 1u << 20);
	if (*path != '/' && !here)
		return NULL;
	if (here)
		add_parts(&b, here);
	add_parts(&b, path);
	if (b.len == 0)
		sb_buf_add_char(&b, '/');
	if (sb_buf_check(&b, "path", NULL) < 0)
		return NULL;
	b.data[b.len] = '\0';
	return (char *)sb_buf_detach(&b, &len);
}

bool
sb_name_inside(const char *dir, const char *path)
{
	size_t n = strlen(dir);

	if (strcmp(dir, "/") == 0)
		return *path == '/';
	return strncmp(path, dir, n) == 0 && (path[n] == '\0' || path[n] == '/');
}
