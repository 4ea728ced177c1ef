/* SPDX-License-Identifier: MIT */
/*
 * A journal that lies in a root, whoever put it there. The first byte: 1 puts right its digest
 * (no mutation would find one), 2 has it replayed in a scratch root too. What is accepted encodes
 * to bytes that decode to the same; a replay never touches what is beside the root and leaves no
 * stage behind that stops the next run.
 */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <sync/replica/commit.h>
#include <sync/scan/scan.h>
#include <sync/tree/stage-names.h>

#include "scratch.h"

#define MAGIC_LEN 8u
#define CANARY "beside the root"

static void
write_file(int dir, const char *name, const void *p, size_t len)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	FUZZ_CHECK(fd >= 0 && sb_file_write_all(fd, p, len, NULL) == 0);
	(void)close(fd);
}

static int
scratch_dir(void)
{
	if (!fuzz_scratch_make())
		return fuzz_scratch_fd;
	FUZZ_CHECK(mkdirat(fuzz_scratch_fd, "out", 0700) == 0);
	write_file(fuzz_scratch_fd, "out/canary", CANARY, sizeof CANARY);
	return fuzz_scratch_fd;
}

static int
make_dir(int at, const char *name)
{
	int fd;

	FUZZ_CHECK(mkdirat(at, name, 0700) == 0);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(fd >= 0);
	return fd;
}

/*
 * A root as an interrupted commit leaves it: some entries, some staged ones, a link that leads out.
 */
static int
make_root(const uint8_t *journal, size_t len)
{
	int root = make_dir(scratch_dir(), "root"), stage, in;

	write_file(root, "a", "old a", 5);
	write_file(root, "b", "old b", 5);
	in = make_dir(root, "d");
	write_file(in, "x", "old x", 5);
	(void)close(in);
	FUZZ_CHECK(symlinkat("../out", root, "l") == 0);
	stage = make_dir(root, SB_STAGE_NAME);
	in = make_dir(stage, SB_STAGE_NEW);
	write_file(in, "f0", "new", 3);
	write_file(in, "f1", "new 1", 5);
	FUZZ_CHECK(mkdirat(in, "t2", 0700) == 0);
	write_file(in, "t2/y", "new y", 5);
	(void)close(in);
	write_file(stage, SB_STAGE_JOURNAL, journal, len);
	(void)close(stage);
	return root;
}

static void
replay(const uint8_t *journal, size_t len)
{
	int root = make_root(journal, len), r;
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_log log = { 0 };
	struct sb_error err = { 0 };

	r = sb_commit_recover(root, &log, &err);
	FUZZ_CHECK(r >= 0 || err.msg[0]);
	if (r == 1)
		FUZZ_CHECK(faccessat(root, SB_STAGE_NAME "/" SB_STAGE_JOURNAL, F_OK,
				   AT_SYMLINK_NOFOLLOW) < 0);
	/* Once more, as after a crash in the middle. */
	r = sb_commit_recover(root, &log, &err);
	FUZZ_CHECK(r >= 0 || err.msg[0]);
	(void)close(root);
	sb_buf_init(&b, 0);
	FUZZ_CHECK(sb_file_read(fuzz_scratch_fd, "out/canary", 100, &b, NULL) == 0 &&
		b.len == sizeof CANARY && memcmp(b.data, CANARY, b.len) == 0);
	FUZZ_CHECK(sb_path_remove_tree(fuzz_scratch_fd, "root", NULL) == 0);
	/* Nothing else appeared there: only "out" with one file is left. */
	FUZZ_CHECK(unlinkat(fuzz_scratch_fd, "out/canary", 0) == 0 &&
		unlinkat(fuzz_scratch_fd, "out", AT_REMOVEDIR) == 0);
	FUZZ_CHECK(rmdir(fuzz_scratch) == 0 && mkdir(fuzz_scratch, 0700) == 0);
	(void)close(fuzz_scratch_fd);
	fuzz_scratch_fd = open(fuzz_scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(fuzz_scratch_fd >= 0 && mkdirat(fuzz_scratch_fd, "out", 0700) == 0);
	write_file(fuzz_scratch_fd, "out/canary", CANARY, sizeof CANARY);
}

static void
decode(const uint8_t *p, size_t len)
{
	sb_auto(sb_journal) struct sb_journal ops = { 0 }, again = { 0 };
	sb_auto(sb_buf) struct sb_buf once = { 0 }, twice = { 0 };
	struct sb_error err = { 0 };
	int r = sb_journal_decode(p, len, &ops, &err);

	sb_buf_init(&once, 64u << 20);
	sb_buf_init(&twice, 64u << 20);
	if (r < 0) {
		FUZZ_CHECK((r == SB_E_CORRUPT || r == SB_E_NOMEM) && !ops.v && err.msg[0]);
		return;
	}
	for (size_t i = 0; i < ops.n; i++) {
		const struct sb_op *o = &ops.v[i];

		FUZZ_CHECK(sb_path_check(o->path, strlen(o->path), NULL) == 0);
		FUZZ_CHECK(!o->from ||
			(*o->from && sb_path_check(o->from, strlen(o->from), NULL) == 0));
	}
	FUZZ_CHECK(sb_journal_encode(&ops, &once, &err) == 0);
	FUZZ_CHECK(sb_journal_decode(once.data, once.len, &again, &err) == 0 && again.n == ops.n);
	FUZZ_CHECK(sb_journal_encode(&again, &twice, &err) == 0);
	FUZZ_CHECK(once.len == twice.len && memcmp(once.data, twice.data, once.len) == 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint8_t *copy;

	if (len < 1)
		return 0;
	copy = malloc(len);
	FUZZ_CHECK(copy);
	memcpy(copy, data + 1, len - 1);
	if ((data[0] & 1) && len - 1 >= MAGIC_LEN + 16) {
		struct sb_digest d = sb_digest_of(copy, len - 1 - 16);

		memcpy(copy + len - 1 - 16, d.b, sizeof d.b);
	}
	decode(copy, len - 1);
	if (data[0] & 2)
		replay(copy, len - 1);
	free(copy);
	return 0;
}
