/* SPDX-License-Identifier: MIT */
/*
 * A client of SFTP that says anything, in a directory that is a thread's root: each packet gets one
 * answer of a form that clients read, with its number. Needs root, for chroot; without it only what
 * comes before the first request is tried.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <compat/ssh/sftp.h>

#include "fuzz-scratch.h"
#include "fuzz.h"

struct input {
	const uint8_t *data;
	size_t len;
};

static uint32_t
u32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void
check_answer(const struct sb_buf *out, const uint8_t *request, bool first)
{
	FUZZ_CHECK(out->len >= 9 && u32(out->data) == out->len - 4);
	FUZZ_CHECK(out->len <= SB_SFTP_PACKET_MAX + 4);
	if (first) {
		FUZZ_CHECK(out->data[4] == 2 && u32(out->data + 5) == 3);
		return;
	}
	FUZZ_CHECK((out->data[4] >= 101 && out->data[4] <= 105) || out->data[4] == 201);
	FUZZ_CHECK(memcmp(out->data + 5, request + 5, 4) == 0);
}

static void *
serve(void *arg)
{
	const struct input *i = arg;
	sb_auto(sb_buf) struct sb_buf in, out;
	struct sb_sftp *s = sb_sftp_new("/home");
	uint8_t head[9] = { 0 };
	bool first = true;
	int r = 0;

	FUZZ_CHECK(s != NULL && unshare(CLONE_FS) == 0 && fchdir(fuzz_scratch()) == 0 &&
		chroot(".") == 0);
	sb_buf_init(&in, 1 << 21);
	sb_buf_init(&out, 1 << 21);
	sb_buf_add(&in, i->data, i->len);
	do {
		memcpy(head, in.data, in.len < sizeof head ? in.len : sizeof head);
		out.len = 0;
		r = sb_sftp_step(s, &in, &out);
		if (r > 0)
			check_answer(&out, head, first);
		first = false;
	} while (r > 0);
	sb_sftp_free(s);
	return NULL;
}

static void
prepare(void)
{
	static bool done;
	int dir = fuzz_scratch();

	if (!done && mkdirat(dir, "home", 0755) == 0) {
		int fd = openat(dir, "home/f", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

		FUZZ_CHECK(fd >= 0 && write(fd, "text\n", 5) == 5 && close(fd) == 0);
	}
	done = true;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct input i = { data, len };
	pthread_t t;

	if (len > 1 << 20 || geteuid() != 0)
		return 0;
	prepare();
	FUZZ_CHECK(pthread_create(&t, NULL, serve, &i) == 0 && pthread_join(t, NULL) == 0);
	return 0;
}
