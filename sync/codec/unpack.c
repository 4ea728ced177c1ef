/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/codec/unpack.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <base/path.h>
#include <base/work.h>
#include <sb/log.h>
#include <sync/codec/confined.h>
#include <sync/codec/unpack-priv.h>

#define MEMORY_MAX (256ull << 20)
#define COPY (256u << 10)
#define GIVE_BACK (8u << 20) /* of the memory for patches, what is not kept */
#define TICK_MS 50

struct sb_unpack {
	struct sb_confined proc;
	int sock; /* -1: there is no child */
	uint8_t *area;
	bool confined;
	bool greeted;

	/* The reader under way. */
	sb_pack_in_fn in;
	void *arg;
	enum sb_unpack_what state; /* the child's last word; BEGIN: nothing said yet */
	size_t at, len;            /* of the records in `out` */
	size_t data_left;          /* of the DATA record at `at` */
	bool have_entry;
	uint64_t entry_left;
	struct sb_error why; /* sticky, code 0 while all is well */
	char *path;
	uint8_t *copy;
};

/* ---- the child ---- */

static void
stop(struct sb_unpack *u)
{
	if (u->sock < 0)
		return;
	(void)close(u->sock);
	u->sock = -1;
	(void)sb_confined_end(&u->proc, true);
}

static int
start(struct sb_unpack *u, struct sb_error *err)
{
	struct sb_confined_opts o = { .keep = { -1, -1, -1, -1 },
		.max_memory = MEMORY_MAX,
		.main = sb_unpack_child,
		.arg = u->area };
	int sv[2], r;

	if (u->sock >= 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv) < 0)
		return sb_fail_errno(err, "make a socket pair");
	o.keep[0] = sv[1];
	r = sb_confined_start(&u->proc, &o, err);
	(void)close(sv[1]);
	if (r < 0) {
		(void)close(sv[0]);
		return r;
	}
	u->sock = sv[0];
	u->greeted = false;
	return 0;
}

/* It did not get to an answer: only what it was given can be the reason. */
static int
died(struct sb_unpack *u, struct sb_error *err)
{
	int status;

	(void)close(u->sock);
	u->sock = -1;
	status = sb_confined_end(&u->proc, true);
	if (status >= 0 && WIFSIGNALED(status))
		return sb_fail(err, SB_E_PROTO,
			"the process that unpacks what the far side sends was ended by signal %d",
			WTERMSIG(status));
	return sb_fail(err, SB_E_PROTO,
		"the process that unpacks what the far side sends ended (status %d)", status);
}

static int
hear(struct sb_unpack *u, struct sb_unpack_msg *m, struct sb_error *err)
{
	for (;;) {
		struct pollfd p = { .fd = u->sock, .events = POLLIN };
		int r = sb_work_alive(err);
		ssize_t n;

		if (r < 0)
			return r;
		r = poll(&p, 1, TICK_MS);
		if (r < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
		if (r <= 0)
			continue;
		n = read(u->sock, m, sizeof *m);
		if (n < 0 && errno == EINTR)
			continue;
		if (n != sizeof *m)
			return died(u, err);
		m->text[sizeof m->text - 1] = 0;
		if (m->what != SB_UNPACK_HELLO || u->greeted)
			return 0;
		u->greeted = true;
		u->confined = m->code;
	}
}

static int
ask(struct sb_unpack *u, struct sb_unpack_msg *m, struct sb_error *err)
{
	ssize_t n;

	do
		n = send(u->sock, m, sizeof *m, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n == sizeof *m ? hear(u, m, err) : died(u, err);
}

/* The child's own words, which may be anything, as an error of the peer. */
static int
told(const struct sb_unpack_msg *m, struct sb_error *err)
{
	char text[sizeof m->text + 40];
	int code = m->code == SB_E_NOMEM || m->code == SB_E_CORRUPT ? m->code : SB_E_PROTO;

	return sb_fail(err, code, "%s",
		*m->text ? sb_escape(m->text, strlen(m->text), text, sizeof text) :
			   "what the far side sent cannot be unpacked");
}

struct sb_unpack *
sb_unpack_new(struct sb_error *err)
{
	struct sb_unpack *u = calloc(1, sizeof *u);

	if (u) {
		u->sock = -1;
		u->path = malloc(SB_UNPACK_PATH_MAX + 1);
		u->copy = malloc(COPY);
		u->area = mmap(NULL, SB_UNPACK_AREA, PROT_READ | PROT_WRITE,
			MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	}
	if (!u || !u->path || !u->copy || u->area == MAP_FAILED) {
		if (u && u->area == MAP_FAILED)
			u->area = NULL;
		sb_unpack_free(u);
		sb_fail(err, SB_E_NOMEM, "unpack: out of memory");
		return NULL;
	}
	return u;
}

void
sb_unpack_free(struct sb_unpack *u)
{
	if (!u)
		return;
	stop(u);
	if (u->area)
		(void)munmap(u->area, SB_UNPACK_AREA);
	free(u->path);
	free(u->copy);
	free(u);
}

bool
sb_unpack_is_confined(const struct sb_unpack *u)
{
	return u->confined;
}

int
sb_unpack_pid(const struct sb_unpack *u)
{
	return u->sock >= 0 ? (int)u->proc.pid : 0;
}

/* ---- archives ---- */

static int
fail_with(const struct sb_unpack *u, struct sb_error *err)
{
	if (err)
		*err = u->why;
	return u->why.code;
}

static int
refuse(struct sb_unpack *u, const char *what, struct sb_error *err)
{
	(void)sb_fail(&u->why, SB_E_PROTO, "unpacking: %s", what);
	return fail_with(u, err);
}

int
sb_unpack_begin(struct sb_unpack *u, sb_pack_in_fn in, void *arg, struct sb_error *err)
{
	int r = start(u, err);

	if (r < 0)
		return r;
	u->in = in;
	u->arg = arg;
	u->state = SB_UNPACK_BEGIN;
	u->at = u->len = u->data_left = 0;
	u->have_entry = false;
	u->entry_left = 0;
	u->why = (struct sb_error){ 0 };
	return 0;
}

void
sb_unpack_leave(struct sb_unpack *u)
{
	if (u->state != SB_UNPACK_BEGIN && u->state != SB_UNPACK_DONE)
		stop(u);
}

/* The next thing to say; 0 when there is nothing more to ask for. */
static int
word(struct sb_unpack *u, struct sb_unpack_msg *m)
{
	enum sb_pack_codec codec = SB_PACK_STORED;
	size_t raw = 0, len = 0;
	const void *data = NULL;
	int r;

	switch (u->state) {
	case SB_UNPACK_BEGIN: m->what = SB_UNPACK_BEGIN; return 1;
	case SB_UNPACK_FULL: m->what = SB_UNPACK_GO_ON; return 1;
	case SB_UNPACK_WANT: break;
	default: return 0;
	}
	r = u->in(&codec, &raw, &data, &len, u->arg, &u->why);
	if (r < 0) {
		u->why.code = r;
		return r;
	}
	m->what = r ? SB_UNPACK_BLOCK : SB_UNPACK_NO_BLOCK;
	m->code = (int)codec;
	m->a = raw;
	m->b = len;
	if (r && len > SB_UNPACK_IN)
		return sb_fail(&u->why, SB_E_PROTO, "block of %zu bytes (1 to %u are allowed)", len,
			SB_PACK_BLOCK_MAX);
	if (r && len)
		memcpy(u->area, data, len);
	return 1;
}

/* More records: 1; 0 at the end of the archive. All that were there have been read. */
static int
fill(struct sb_unpack *u, struct sb_error *err)
{
	struct sb_unpack_msg m = { 0 };
	int r;

	if (u->why.code)
		return fail_with(u, err);
	if (u->state == SB_UNPACK_DONE)
		return 0;
	r = word(u, &m);
	if (r > 0)
		r = ask(u, &m, &u->why);
	if (r < 0)
		return fail_with(u, err);
	if (m.what != SB_UNPACK_WANT && m.what != SB_UNPACK_FULL && m.what != SB_UNPACK_DONE &&
		m.what != SB_UNPACK_FAILED)
		return refuse(u, "an answer that was not asked for", err);
	if (m.a > SB_UNPACK_OUT)
		return refuse(u, "more than there is room for", err);
	u->state = (enum sb_unpack_what)m.what;
	u->at = 0;
	u->len = m.a;
	/* What came before the fault is handed out first. */
	if (m.what == SB_UNPACK_FAILED)
		(void)told(&m, &u->why);
	return u->len ? 1 : m.what == SB_UNPACK_FAILED ? fail_with(u, err) : 1;
}

/* Copies the head of the next record out; 0 at the end of the archive. */
static int
next_record(struct sb_unpack *u, struct sb_unpack_rec *rec, struct sb_error *err)
{
	while (u->at == u->len) {
		int r = fill(u, err);

		if (r <= 0)
			return r;
		if (u->state == SB_UNPACK_DONE && u->at == u->len)
			return 0;
	}
	if (u->len - u->at < sizeof *rec)
		return refuse(u, "a damaged record", err);
	memcpy(rec, u->area + SB_UNPACK_IN + u->at, sizeof *rec);
	u->at += sizeof *rec;
	if (rec->len > u->len - u->at || -rec->len % 8 > u->len - u->at - rec->len)
		return refuse(u, "a damaged record", err);
	return 1;
}

static int
take_entry(struct sb_unpack *u, const struct sb_unpack_rec *rec, struct sb_pack_entry *out,
	struct sb_error *err)
{
	const uint8_t *p = u->area + SB_UNPACK_IN + u->at;
	struct sb_unpack_entry e;

	if (rec->len < sizeof e)
		return refuse(u, "a damaged entry", err);
	memcpy(&e, p, sizeof e);
	if (e.path_len != rec->len - sizeof e || e.path_len > SB_UNPACK_PATH_MAX || !e.path_len ||
		e.kind > SB_PACK_SPARSE || e.size > INT64_MAX || e.file_size > INT64_MAX ||
		(e.kind == SB_PACK_RANGE &&
			(e.offset > e.file_size || e.size != e.file_size - e.offset)))
		return refuse(u, "a damaged entry", err);
	memcpy(u->path, p + sizeof e, e.path_len);
	u->path[e.path_len] = 0;
	u->at += rec->len + -rec->len % 8;
	if (strlen(u->path) != e.path_len || sb_path_check(u->path, e.path_len, NULL) < 0)
		return refuse(u, "an entry with an impossible name", err);
	*out = (struct sb_pack_entry){ .path = u->path,
		.size = e.size,
		.file_size = e.file_size,
		.kind = (enum sb_pack_kind)e.kind,
		.offset = e.offset };
	memcpy(out->base.b, e.base, sizeof out->base.b);
	u->have_entry = true;
	u->entry_left = e.size;
	return 1;
}

/* Moves to the next piece of the entry's data. */
static int
next_data(struct sb_unpack *u, const struct sb_unpack_rec *rec, struct sb_error *err)
{
	if (!u->have_entry || rec->kind != SB_UNPACK_DATA || !rec->len || rec->len > u->entry_left)
		return refuse(u, "data where none belongs", err);
	u->data_left = rec->len;
	u->entry_left -= rec->len;
	return 1;
}

static void
pass_data(struct sb_unpack *u, size_t n)
{
	u->at += n;
	u->data_left -= n;
	if (!u->data_left)
		u->at += -u->at % 8;
}

int
sb_unpack_next(struct sb_unpack *u, struct sb_pack_entry *out, struct sb_error *err)
{
	for (;;) {
		struct sb_unpack_rec rec;
		int r;

		pass_data(u, u->data_left);
		r = next_record(u, &rec, err);
		if (r < 0)
			return r;
		if (u->entry_left && (r == 0 || rec.kind == SB_UNPACK_ENTRY))
			return refuse(u, "an entry shorter than its size", err);
		if (r == 0 || rec.kind == SB_UNPACK_ENTRY) {
			u->have_entry = false;
			return r == 0 ? 0 : take_entry(u, &rec, out, err);
		}
		r = next_data(u, &rec, err);
		if (r < 0)
			return r;
	}
}

ssize_t
sb_unpack_read(struct sb_unpack *u, const void **out, struct sb_error *err)
{
	size_t n;

	if (!u->data_left) {
		struct sb_unpack_rec rec;
		int r;

		if (!u->have_entry || !u->entry_left)
			return 0;
		r = next_record(u, &rec, err);
		if (r == 0)
			r = refuse(u, "an entry shorter than its size", err);
		if (r > 0)
			r = next_data(u, &rec, err);
		if (r < 0)
			return r;
	}
	n = u->data_left < COPY ? u->data_left : COPY;
	memcpy(u->copy, u->area + SB_UNPACK_IN + u->at, n);
	pass_data(u, n);
	*out = u->copy;
	return (ssize_t)n;
}

/* ---- patches ---- */

int
sb_unpack_patch(struct sb_unpack *u, const void *base, size_t base_len, const void *patch,
	size_t patch_len, void *out, size_t new_len, struct sb_error *err)
{
	struct sb_unpack_msg m = { .what = SB_UNPACK_APPLY,
		.a = base_len,
		.b = patch_len,
		.c = new_len };
	uint8_t *area = u->area + SB_UNPACK_IN + SB_UNPACK_OUT;
	size_t used = base_len + patch_len + new_len;
	int r = start(u, err);

	if (r < 0)
		return r;
	if (base_len > SB_UNPACK_PATCH_MAX || patch_len > SB_UNPACK_PATCH_MAX ||
		new_len > SB_UNPACK_PATCH_MAX)
		return sb_fail(err, SB_E_LIMIT, "patch of %zu on %zu bytes", new_len, base_len);
	if (base_len)
		memcpy(area, base, base_len);
	if (patch_len)
		memcpy(area + base_len, patch, patch_len);
	r = ask(u, &m, err);
	if (r == 0 && m.what != SB_UNPACK_APPLIED)
		r = sb_fail(err, SB_E_PROTO, "unpacking: an answer that was not asked for");
	else if (r == 0 && m.code < 0)
		r = told(&m, err);
	if (r == 0 && new_len)
		memcpy(out, area + base_len + patch_len, new_len);
	if (used > GIVE_BACK)
		(void)madvise(area, SB_UNPACK_PATCH, MADV_REMOVE);
	return r;
}
