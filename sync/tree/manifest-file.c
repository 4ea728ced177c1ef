/* SPDX-License-Identifier: MIT */
/* Manifests as files: loads them, and replaces them atomically. */
#include "config.h"

#include <sync/tree/manifest.h>

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>

/* Our own files: only the checksum and the form are in doubt, not how much they may hold. */
static const struct sb_manifest_limits no_limits = {
	.max_entries = UINT32_MAX,
	.max_depth = UINT32_MAX,
	.max_bytes = SIZE_MAX / 2,
};

struct sb_manifest *
sb_manifest_load(int dirfd, const char *name, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	struct sb_manifest *m;
	int r;

	sb_buf_init(&b, SIZE_MAX / 2);
	r = sb_file_read(dirfd, name, SIZE_MAX / 2, &b, err);
	if (r < 0)
		return NULL;
	m = sb_manifest_decode(b.data, b.len, &no_limits, err);
	if (!m && err)
		(void)sb_wrap(err, err->code, "%s", name);
	return m;
}

/*
 * A crash of the machine may leave a damaged file, which its checksum tells; a crash of the program
 * leaves the old one.
 */
static int
replace_quickly(int dirfd, const char *name, const struct sb_buf *b, struct sb_error *err)
{
	sb_autofree char *tmp = sb_str_printf("%s.%ld.tmp", name, (long)getpid());
	sb_autoclose int fd = -1;
	int r;

	if (!tmp)
		return sb_fail(err, SB_E_NOMEM, "%s: out of memory", name);
	fd = openat(dirfd, tmp, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return sb_fail_errno(err, "create %s", tmp);
	r = sb_file_write_all(fd, b->data, b->len, err);
	if (r == 0 && renameat(dirfd, tmp, dirfd, name) < 0)
		r = sb_fail_errno(err, "rename %s to %s", tmp, name);
	if (r < 0)
		(void)unlinkat(dirfd, tmp, 0);
	return r;
}

int
sb_manifest_save(const struct sb_manifest *m, bool with_stat, bool durable, int dirfd,
	const char *name, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	int r;

	sb_buf_init(&b, SIZE_MAX / 2);
	r = sb_manifest_encode(m, with_stat, &b, err);
	if (r < 0)
		return r;
	if (durable)
		return sb_file_replace(dirfd, name, b.data, b.len, 0600, err);
	return replace_quickly(dirfd, name, &b, err);
}
