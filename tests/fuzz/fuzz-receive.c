/* SPDX-License-Identifier: MIT */
/*
 * A peer that announces and sends files: plan pieces, entries of the data stream and rows in any
 * order and with any lies, into a receiver on a scratch root, then a commit. The input is a list of
 * actions
 * (`act`). Nothing beside the root is ever touched, nothing of the root changes without a commit,
 * and set-id bits do not come through where they may not.
 */
#include "config.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <sync/replica/receive.h>
#include <sync/tree/stage-names.h>
#include <sync/tree/diff.h>

#include "scratch.h"

#define N(a) (sizeof(a) / sizeof(a)[0])
#define CANARY "beside the root"
#define ROWS_MAX 12u
#define BIG 70000u
#define ACTIONS_MAX 40u

static const char *const names[] = { "a", "b", "big", "d", "d/new", "d/x", "l", "l/canary", "n",
	"n/p", "n/p/q", "r", "r/f", "z", "z/deep", "../out/canary" };

/* Contents that plans announce and streams bring; the first ones are in the root already. */
static const struct {
	size_t len;
	char fill;
} bodies[] = { { 5, 'a' }, { 5, 'b' }, { BIG, 'c' }, { 9, 'x' }, { 0, 0 }, { 1, 'n' },
	{ 3000, 'o' }, { 1200000, 'p' } };

static struct sb_digest digests[N(bodies)];
static char *body_bytes;

static void
free_bodies(void)
{
	free(body_bytes);
}

static const char *
body(size_t i)
{
	memset(body_bytes, bodies[i].fill, bodies[i].len);
	return body_bytes;
}

static void
put(int dir, const char *name, const void *p, size_t len, mode_t mode)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	FUZZ_CHECK(fd >= 0 && sb_file_write_all(fd, p, len, NULL) == 0);
	(void)close(fd);
}

static void
set_up(void)
{
	if (!fuzz_scratch_make())
		return;
	FUZZ_CHECK(mkdirat(fuzz_scratch_fd, "out", 0700) == 0);
	put(fuzz_scratch_fd, "out/canary", CANARY, sizeof CANARY, 0600);
	body_bytes = malloc(1200000);
	FUZZ_CHECK(body_bytes && atexit(free_bodies) == 0);
	for (size_t i = 0; i < N(bodies); i++)
		digests[i] = sb_digest_of(body(i), bodies[i].len);
}

/*
 * The root, with a link that leads out, a read-only directory, and what an interrupted transfer
 * left.
 */
static void
make_root(void)
{
	int root, k;

	FUZZ_CHECK(mkdirat(fuzz_scratch_fd, "root", 0700) == 0);
	root = openat(fuzz_scratch_fd, "root", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	FUZZ_CHECK(root >= 0);
	put(root, "a", body(0), bodies[0].len, 0600);
	FUZZ_CHECK(linkat(root, "a", root, "b2", 0) == 0);
	put(root, "b", body(1), bodies[1].len, 0600);
	put(root, "big", body(2), bodies[2].len, 0600);
	FUZZ_CHECK(mkdirat(root, "d", 0700) == 0 && mkdirat(root, "r", 0700) == 0);
	put(root, "d/x", body(3), bodies[3].len, 0600);
	put(root, "r/f", body(0), bodies[0].len, 0400);
	FUZZ_CHECK(fchmodat(root, "r", 0500, 0) == 0 && symlinkat("../out", root, "l") == 0);
	k = mkdirat(root, SB_STAGE_NAME, 0700) |
		mkdirat(root, SB_STAGE_NAME "/" SB_STAGE_NEW, 0700);
	FUZZ_CHECK(k == 0);
	put(root, SB_STAGE_NAME "/" SB_STAGE_NEW "/f0", body(6), 1500, 0600);
	put(root, SB_STAGE_NAME "/" SB_STAGE_NEW "/f1", body(6), bodies[6].len, 0600);
	(void)close(root);
}

struct run {
	struct sb_cursor c;
	struct sb_replica *rep;
	struct sb_receive *recv;
	struct sb_error err;
	bool committing;
	/* The blocks of one data stream. */
	struct sb_buf stream;
	bool given;
};

static size_t
pick(struct run *x, size_t n)
{
	return sb_cursor_u8(&x->c) % n;
}

/* Rows in rising order: each name may come once, or as a deletion and again. */
static void
plan_rows(struct run *x, struct sb_diff *d, struct sb_plan_step *steps)
{
	size_t at = 0;

	for (size_t n = 0; n < ROWS_MAX && at < N(names) && sb_cursor_left(&x->c); n++) {
		uint8_t how = sb_cursor_u8(&x->c), more;
		struct sb_entry e = { .type = (uint8_t)(1 + (how >> 4 & 3) % 3),
			.mtime = (int64_t)(how * 1000000007u) };
		struct sb_plan_step *s = &steps[d->n];
		size_t b;

		at += how & 15;
		if (how == 255 || at >= N(names) - 1) /* the last one is not of the allowed form */
			return;
		more = sb_cursor_u8(&x->c);
		b = (more >> 3) % N(bodies);
		s->method = more & 7;
		s->from = s->method == SB_METHOD_CLONE || s->method == SB_METHOD_MOVE ?
			names[pick(x, N(names) - 1)] :
			NULL;
		e.mode = e.type == SB_ENTRY_LINK ? 0777 : how & 128 ? 07777 : 0644;
		if (e.type == SB_ENTRY_FILE) {
			e.size = bodies[b].len;
			e.digest = digests[b];
			if (more & 64)
				e.size++;
			if (how & 64)
				e.flags = SB_ENTRY_UNHASHED;
		}
		if (sb_diff_add(d, names[at], s->method == SB_METHOD_DELETE, &e,
			    e.type == SB_ENTRY_LINK ? "../out" : NULL,
			    s->method == SB_METHOD_HARDLINK ? names[pick(x, N(names) - 1)] : NULL,
			    NULL) < 0)
			return;
		if (s->method != SB_METHOD_DELETE)
			at++;
	}
}

static int
plan(struct run *x)
{
	static const struct sb_manifest_limits limits = SB_MANIFEST_LIMITS_INIT;
	sb_auto(sb_plan_piece) struct sb_plan_piece piece = { 0 };
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_plan_step steps[ROWS_MAX + 1] = { 0 };
	int r;

	sb_buf_init(&b, 1 << 20);
	sb_buf_init(&piece.strings, 0);
	plan_rows(x, &d, steps);
	if (sb_proto_plan_encode(&d, steps, &b, NULL) < 0)
		return 0;
	r = sb_proto_plan_decode(b.data, b.len, &limits, &piece, &x->err);
	if (r < 0) {
		FUZZ_CHECK(r == SB_E_PROTO || r == SB_E_CORRUPT);
		return 0; /* the codec has a target of its own; go on */
	}
	return sb_receive_plan(x->recv, &piece, &x->err);
}

static int
keep_block(enum sb_pack_codec codec, size_t raw_len, const void *data, size_t len, void *arg,
	struct sb_error *err)
{
	struct sb_buf *b = arg;

	(void)codec;
	(void)raw_len;
	sb_buf_add(b, data, len);
	return sb_buf_check(b, "stream", err);
}

static int
give_block(enum sb_pack_codec *codec, size_t *raw_len, const void **data, size_t *len, void *arg,
	struct sb_error *err)
{
	struct run *x = arg;

	(void)err;
	if (x->given || !x->stream.len)
		return 0;
	x->given = true;
	*codec = SB_PACK_STORED;
	*raw_len = *len = x->stream.len;
	*data = x->stream.data;
	return 1;
}

/* One entry: a name, a kind, a body of the table or bytes of the input, and attributes. */
static void
write_entry(struct run *x, struct sb_pack_writer *w)
{
	uint8_t how = sb_cursor_u8(&x->c);
	size_t b = pick(x, N(bodies));
	struct sb_pack_entry e = { .path = names[pick(x, N(names))], .kind = how % 5 };
	const void *p = body(b);
	size_t len = bodies[b].len;

	if (how & 128) {
		len = pick(x, 256);
		if (len > sb_cursor_left(&x->c))
			len = sb_cursor_left(&x->c);
		p = sb_cursor_take(&x->c, len);
	}
	if (e.kind != SB_PACK_WHOLE) {
		e.base = digests[pick(x, N(digests))];
		e.offset = how & 64 ? 1500 : (uint64_t)sb_cursor_u8(&x->c) << (how & 32 ? 56 : 4);
		e.file_size = bodies[b].len;
		if (e.kind == SB_PACK_RANGE) {
			e.base = sb_digest_of(body(6), 1500);
			e.file_size = e.offset + len;
		}
		p = how & 128 ? p : body(b);
	}
	e.size = len;
	if (e.kind == SB_PACK_WHOLE)
		e.file_size = len;
	if (sb_pack_writer_begin(w, &e, NULL) == 0) {
		(void)sb_pack_writer_data(w, p, len, NULL);
		(void)sb_pack_writer_end(w, NULL);
	}
}

static int
stream(struct run *x)
{
	struct sb_pack_writer_opts o = SB_PACK_WRITER_OPTS_INIT;
	sb_auto(sb_pack_reader) struct sb_pack_reader *in = NULL;
	struct sb_pack_entry e;
	struct sb_pack_writer *w;
	int r;

	sb_buf_init(&x->stream, SB_PACK_BLOCK_MAX);
	x->given = false;
	o.level = 0;
	o.block_size = SB_PACK_BLOCK_MAX;
	o.jobs = 1;
	o.out = keep_block;
	o.arg = &x->stream;
	w = sb_pack_writer_new(&o, NULL);
	FUZZ_CHECK(w);
	for (size_t n = 1 + pick(x, 5); n; n--)
		write_entry(x, w);
	(void)sb_pack_writer_finish(w, NULL);
	sb_pack_writer_free(w);
	in = sb_pack_reader_new(give_block, x, &x->err);
	FUZZ_CHECK(in);
	while ((r = sb_pack_reader_next(in, &e, &x->err)) > 0) {
		r = sb_receive_entry(x->recv, in, &e, &x->err);
		if (r < 0)
			break;
	}
	sb_buf_free(&x->stream);
	return r;
}

static int
rows(struct run *x)
{
	size_t len = pick(x, 48);
	const uint8_t *p;

	if (len > sb_cursor_left(&x->c))
		len = sb_cursor_left(&x->c);
	p = sb_cursor_take(&x->c, len);
	return p ? sb_receive_rows(x->recv, p, len, &x->err) : 0;
}

static int
commit(struct run *x)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	sb_auto(sb_strlist) struct sb_strlist need = { 0 };
	int r = sb_receive_settle(x->recv, &need, &x->err);

	if (r < 0 || need.n)
		return r;
	x->committing = true;
	r = sb_receive_commit(x->recv, SB_DURABLE_NONE, &res, &x->err);
	return r < 0 ? r : 1;
}

static int
act(struct run *x)
{
	sb_auto(sb_strlist) struct sb_strlist need = { 0 };

	switch (sb_cursor_u8(&x->c) % 8) {
	case 0:
	case 1: return plan(x);
	case 2:
	case 3: return stream(x);
	case 4: return rows(x);
	case 5: return sb_receive_settle(x->recv, &need, &x->err);
	case 6: sb_receive_root_meta(x->recv, (uint16_t)(07000 | pick(x, 0700)), 0); return 0;
	default: return commit(x);
	}
}

static bool
holds(const char *path, size_t b)
{
	sb_auto(sb_buf) struct sb_buf got = { 0 };

	sb_buf_init(&got, 0);
	return sb_file_read(fuzz_scratch_fd, path, BIG + 1, &got, NULL) == 0 &&
		got.len == bodies[b].len && memcmp(got.data, body(b), got.len) == 0;
}

static void
inspect(const struct run *x, bool masked)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct stat st;

	sb_buf_init(&b, 0);
	FUZZ_CHECK(sb_file_read(fuzz_scratch_fd, "out/canary", 100, &b, NULL) == 0 &&
		b.len == sizeof CANARY && memcmp(b.data, CANARY, b.len) == 0);
	FUZZ_CHECK(fstatat(fuzz_scratch_fd, "out", &st, 0) == 0 && st.st_nlink <= 2 &&
		(st.st_mode & 0777) == 0700);
	if (!x->committing)
		FUZZ_CHECK(holds("root/a", 0) && holds("root/b", 1) && holds("root/big", 2) &&
			holds("root/d/x", 3) && holds("root/r/f", 0) &&
			fstatat(fuzz_scratch_fd, "root/n", &st, AT_SYMLINK_NOFOLLOW) < 0);
	for (size_t i = 0; masked && i < N(names) - 1; i++) {
		char path[64] = "root/";

		memcpy(path + 5, names[i], strlen(names[i]) + 1);
		if (fstatat(fuzz_scratch_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0)
			FUZZ_CHECK(!(st.st_mode & 07000));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_replica_opts ro = SB_REPLICA_OPTS_INIT;
	struct sb_scan_opts so = SB_SCAN_OPTS_INIT;
	struct sb_receive_opts o = SB_RECEIVE_OPTS_INIT;
	struct sb_stage *stage = NULL;
	char root[sizeof fuzz_scratch + 8];
	struct run x = { 0 };
	bool masked;
	int r = 0;

	if (len < 2)
		return 0;
	masked = data[0] & 1;
	set_up();
	make_root();
	(void)snprintf(root, sizeof root, "%s/root", fuzz_scratch);
	ro.root = root;
	so.jobs = 1;
	o.jobs = 1;
	o.max_bytes = 64u << 20;
	if (masked)
		o.mode_mask = 0755;
	x.rep = sb_replica_open(&ro, &x.err);
	FUZZ_CHECK(x.rep && sb_stage_find(x.rep->rootfd, NULL, &stage, &x.err) == 0);
	FUZZ_CHECK(sb_replica_scan(x.rep, &so, &x.err) == 0);
	x.recv = sb_receive_new(x.rep, stage, &o, &x.err);
	FUZZ_CHECK(x.recv);
	sb_cursor_init(&x.c, data + 1, len - 1);
	for (unsigned n = 0; r == 0 && n < ACTIONS_MAX && sb_cursor_left(&x.c); n++)
		r = act(&x);
	FUZZ_CHECK(r >= 0 || x.err.msg[0]);
	sb_receive_free(x.recv);
	sb_replica_free(x.rep);
	inspect(&x, masked);
	FUZZ_CHECK(sb_path_remove_tree(fuzz_scratch_fd, "root", NULL) == 0);
	return 0;
}
