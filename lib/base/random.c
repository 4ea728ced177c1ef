/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <base/random.h>

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

int
sb_random(void *out, size_t len, struct sb_error *err)
{
	uint8_t *p = out;

	while (len) {
		ssize_t n = getrandom(p, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "random bytes from the kernel");
		p += n;
		len -= (size_t)n;
	}
	return 0;
}
