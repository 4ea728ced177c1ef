/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/tree/hash.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <base/work.h>

#define CHUNK (256u << 10)

int
sb_hash_fd(int fd, uint64_t len, struct sb_digest *out, uint64_t *out_len, struct sb_error *err)
{
	sb_autofree uint8_t *buf = malloc(CHUNK);
	XXH3_state_t *st = XXH3_createState();
	uint64_t at = 0;
	int r = 0;

	if (!buf || !st) {
		XXH3_freeState(st);
		return sb_fail(err, SB_E_NOMEM, "hash: out of memory");
	}
	XXH3_128bits_reset(st);
	while (at < len && (r = sb_work_alive(err)) == 0) {
		size_t want = len - at < CHUNK ? (size_t)(len - at) : CHUNK;
		ssize_t n = pread(fd, buf, want, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			r = sb_fail_errno(err, "read");
			break;
		}
		if (n == 0)
			break;
		XXH3_128bits_update(st, buf, (size_t)n);
		at += (uint64_t)n;
	}
	*out = sb_digest_final(st);
	if (out_len)
		*out_len = at;
	XXH3_freeState(st);
	return r;
}

int
sb_hash_file(int dirfd, const char *name, struct sb_digest *out, struct sb_error *err)
{
	sb_autoclose int fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return sb_fail_errno(err, "open %s", name);
	if (!S_ISREG(st.st_mode))
		return sb_fail(err, SB_E_INVAL, "%s is not a regular file", name);
	return sb_hash_fd(fd, UINT64_MAX, out, NULL, err);
}
