/* SPDX-License-Identifier: MIT */
/*
 * A recipe's file: "SBR1", u32 block length, u64 size of the content, then for each whole block u32
 * weak and u64 strong sum and the u64 strong sum of the rest (0 when there is none), u64 XXH3 of
 * all before. Little-endian.
 *
 * The weak sum of a block is made of the sums of its bytes and of the bytes of its first half. Both
 * roll on by one byte with two additions, and making them costs next to nothing (psadbw), unlike
 * the usual ones.
 */
#include "config.h"

#include <sync/codec/recipe.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>

#define MAGIC "SBR1"
#define HEAD 16u
#define ROW 12u
#define BLOCK_MIN 2048u
#define BLOCK_MAX (64u << 10)
#define BLOCKS_WANTED (1u << 17)
#define FILE_MAX (256u << 20)
#define READ_LEN (1u << 20)
/* Blocks of one weak sum that are looked at. */
#define CHAIN_MAX 32u

struct sums {
	uint32_t all, half;
};

static uint32_t
sum_bytes(const uint8_t *p, size_t len)
{
	uint32_t sum = 0;

#ifdef __SSE2__
	__m128i acc = _mm_setzero_si128();

	for (; len >= 16; p += 16, len -= 16)
		acc = _mm_add_epi64(acc,
			_mm_sad_epu8(_mm_loadu_si128((const __m128i *)(const void *)p),
				_mm_setzero_si128()));
	sum = (uint32_t)_mm_cvtsi128_si32(acc) +
		(uint32_t)_mm_cvtsi128_si32(_mm_srli_si128(acc, 8));
#endif
	while (len--)
		sum += *p++;
	return sum;
}

static struct sums
sums_of(const uint8_t *p, size_t block)
{
	struct sums s = { .half = sum_bytes(p, block / 2) };

	s.all = s.half + sum_bytes(p + block / 2, block / 2);
	return s;
}

static uint32_t
weak_of(struct sums s)
{
	uint64_t v = ((uint64_t)s.all << 32 | s.half) * 0x9e3779b97f4a7c15u;

	return (uint32_t)(v >> 32);
}

static size_t
block_for(uint64_t size)
{
	size_t block = BLOCK_MIN;

	while (block < BLOCK_MAX && size / block > BLOCKS_WANTED)
		block *= 2;
	return block;
}

/* ---- keeping ---- */

static ssize_t
read_at(int fd, void *to, size_t len, uint64_t at, struct sb_error *err)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = pread(fd, (uint8_t *)to + done, len - done, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return sb_fail_errno(err, "read");
		if (n == 0)
			break;
		done += (size_t)n;
	}
	return (ssize_t)done;
}

static int
add_sums(int fd, uint64_t size, size_t block, struct sb_buf *b, struct sb_digest *whole,
	const struct sb_cancel *cancel, struct sb_error *err)
{
	sb_autofree uint8_t *buf = malloc(READ_LEN);
	XXH3_state_t *st = XXH3_createState();
	uint64_t rest = 0;
	int r = buf && st ? 0 : sb_fail(err, SB_E_NOMEM, "recipe: out of memory");

	if (st)
		(void)XXH3_128bits_reset(st);
	for (uint64_t at = 0; r == 0 && at < size; at += READ_LEN) {
		size_t want = size - at < READ_LEN ? (size_t)(size - at) : READ_LEN;
		ssize_t n = read_at(fd, buf, want, at, err);

		r = n < 0 ? (int)n : sb_check_alive(cancel, SB_NEVER, "recipe", err);
		if (r == 0 && (size_t)n != want)
			r = sb_fail(err, SB_E_STATE, "recipe: the file has become shorter");
		if (r < 0)
			break;
		(void)XXH3_128bits_update(st, buf, want);
		for (size_t k = 0; k < want; k += block) {
			if (want - k < block) {
				rest = XXH3_64bits(buf + k, want - k);
				break;
			}
			sb_buf_add_u32(b, weak_of(sums_of(buf + k, block)));
			sb_buf_add_u64(b, XXH3_64bits(buf + k, block));
		}
	}
	sb_buf_add_u64(b, rest);
	if (r == 0)
		*whole = sb_digest_final(st);
	(void)XXH3_freeState(st);
	return r < 0 ? r : sb_buf_check(b, "recipe", err);
}

static int
save(int dirfd, const struct sb_digest *d, const struct sb_buf *b, struct sb_error *err)
{
	char name[33];
	sb_autoclose int fd =
		openat(dirfd, "new", O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r = fd < 0 ? sb_fail_errno(err, "make a recipe") :
			 sb_file_write_all(fd, b->data, b->len, err);

	if (r == 0 && renameat(dirfd, "new", dirfd, sb_str_hex(d->b, 16, name)) < 0)
		r = sb_fail_errno(err, "rename a recipe");
	return r;
}

int
sb_recipe_keep(int dirfd, const struct sb_digest *d, int fd, uint64_t size,
	const struct sb_digest *old, const struct sb_cancel *cancel, struct sb_error *err)
{
	size_t block = block_for(size);
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_digest got;
	char name[33];
	int r;

	sb_buf_init(&b, FILE_MAX);
	sb_buf_add(&b, MAGIC, 4);
	sb_buf_add_u32(&b, (uint32_t)block);
	sb_buf_add_u64(&b, size);
	r = add_sums(fd, size, block, &b, &got, cancel, err);
	if (r < 0)
		return r;
	if (!sb_digest_eq(&got, d))
		return sb_fail(err, SB_E_STATE, "recipe: the file has changed");
	sb_buf_add_u64(&b, XXH3_64bits(b.data, b.len));
	r = sb_buf_check(&b, "recipe", err);
	if (r == 0)
		r = save(dirfd, d, &b, err);
	if (r == 0 && old && !sb_digest_eq(old, d))
		(void)unlinkat(dirfd, sb_str_hex(old->b, 16, name), 0);
	return r;
}

bool
sb_recipe_has(int dirfd, const struct sb_digest *d)
{
	struct stat st;
	char name[33];

	return fstatat(dirfd, sb_str_hex(d->b, 16, name), &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		S_ISREG(st.st_mode);
}

/* ---- matching ---- */

struct recipe {
	struct sb_buf b;
	size_t block;
	size_t n;
	uint64_t size;
	const uint8_t *rows;
	uint32_t *slots; /* 1 + block, by weak sum */
	uint32_t *next;  /* 1 + the next block of the same slot */
	size_t mask;
};

static void
recipe_free(struct recipe *p)
{
	sb_buf_free(&p->b);
	free(p->slots);
	free(p->next);
}

static uint64_t
load_le(const uint8_t *p, unsigned bytes)
{
	uint64_t v = 0;

	for (unsigned i = bytes; i-- > 0;)
		v = v << 8 | p[i];
	return v;
}

static uint32_t
weak_at(const struct recipe *p, size_t i)
{
	return (uint32_t)load_le(p->rows + i * ROW, 4);
}

static uint64_t
strong_at(const struct recipe *p, size_t i)
{
	return load_le(p->rows + i * ROW + 4, 8);
}

static int
load(int dirfd, const struct sb_digest *d, struct recipe *p, struct sb_error *err)
{
	char name[33];
	int r = sb_file_read(dirfd, sb_str_hex(d->b, 16, name), FILE_MAX, &p->b, err);
	size_t len = p->b.len;

	if (r < 0)
		return SB_E_NOTFOUND;
	if (len >= HEAD + 16 && memcmp(p->b.data, MAGIC, 4) == 0 &&
		load_le(p->b.data + len - 8, 8) == XXH3_64bits(p->b.data, len - 8)) {
		p->block = (size_t)load_le(p->b.data + 4, 4);
		p->size = load_le(p->b.data + 8, 8);
		p->rows = p->b.data + HEAD;
		p->n = (len - HEAD - 16) / ROW;
	}
	if (p->block < BLOCK_MIN || p->block > BLOCK_MAX || p->size / p->block != p->n ||
		(len - HEAD - 16) % ROW)
		return sb_fail(err, SB_E_NOTFOUND, "a recipe is damaged");
	p->mask = 64;
	while (p->mask < 2 * p->n)
		p->mask *= 2;
	p->slots = calloc(p->mask, sizeof *p->slots);
	p->next = calloc(p->n + 1, sizeof *p->next);
	p->mask--;
	if (!p->slots || !p->next)
		return sb_fail(err, SB_E_NOMEM, "recipe: out of memory");
	/* Backwards, so that the first of equal blocks is found first. */
	for (size_t i = p->n; i-- > 0;) {
		uint32_t *slot = &p->slots[weak_at(p, i) & p->mask];

		p->next[i] = *slot;
		*slot = (uint32_t)i + 1;
	}
	return 0;
}

struct matcher {
	const struct recipe *p;
	int fd;
	uint64_t size;
	uint64_t max;
	struct sb_buf *out;
	const struct sb_cancel *cancel;
	uint8_t *buf; /* holds [base, base + len) */
	uint64_t base;
	size_t len;
	uint64_t at;      /* everything before is decided */
	uint64_t literal; /* bytes from here to `at` are not in the basis */
	uint64_t copy_from, copy_len;
};

static void
put_be(struct sb_buf *b, uint64_t v, unsigned bytes)
{
	while (bytes-- > 0)
		sb_buf_add_u8(b, (uint8_t)(v >> (8 * bytes)));
}

static void
flush_copy(struct matcher *m)
{
	if (!m->copy_len)
		return;
	sb_buf_add_u8(m->out, 0x45 + 4 * 3 + 3);
	put_be(m->out, m->copy_from, 8);
	put_be(m->out, m->copy_len, 8);
	m->copy_len = 0;
}

/* What is undecided and not in the basis goes out as it is; it is in the buffer. */
static int
flush_literal(struct matcher *m, struct sb_error *err)
{
	uint64_t len = m->at - m->literal;

	if (!len)
		return 0;
	flush_copy(m);
	sb_buf_add_u8(m->out, 0x43);
	put_be(m->out, len, 4);
	sb_buf_add(m->out, m->buf + (m->literal - m->base), (size_t)len);
	m->literal = m->at;
	if (m->out->len > m->max)
		return sb_fail(err, SB_E_LIMIT, "delta: longer than %llu bytes",
			(unsigned long long)m->max);
	return sb_buf_check(m->out, "delta", err);
}

static void
take(struct matcher *m, uint64_t from, size_t len)
{
	if (m->copy_len && m->copy_from + m->copy_len == from) {
		m->copy_len += len;
	} else {
		flush_copy(m);
		m->copy_from = from;
		m->copy_len = len;
	}
	m->at += len;
	m->literal = m->at;
}

/* At least `want` bytes behind `at` in the buffer, or all there are. */
static int
ahead(struct matcher *m, size_t want, struct sb_error *err)
{
	size_t keep;
	ssize_t n;
	int r;

	if (m->base + m->len - m->at >= want || m->base + m->len == m->size)
		return 0;
	r = flush_literal(m, err);
	if (r == 0)
		r = sb_check_alive(m->cancel, SB_NEVER, "delta", err);
	if (r < 0)
		return r;
	keep = (size_t)(m->base + m->len - m->at);
	memmove(m->buf, m->buf + (m->at - m->base), keep);
	m->base = m->at;
	m->len = keep;
	n = READ_LEN < m->size - m->base - keep ? READ_LEN : (ssize_t)(m->size - m->base - keep);
	if (read_at(m->fd, m->buf + keep, (size_t)n, m->base + keep, err) != n)
		return sb_fail(err, SB_E_STATE, "delta: the file has become shorter");
	m->len += (size_t)n;
	return 0;
}

static bool
find(const struct matcher *m, struct sums s, const uint8_t *p, size_t *out)
{
	uint32_t weak = weak_of(s);
	uint64_t strong = 0;
	unsigned seen = 0, tried = 0;

	for (uint32_t i = m->p->slots[weak & m->p->mask]; i && tried < CHAIN_MAX;
		i = m->p->next[i - 1], tried++) {
		if (weak_at(m->p, i - 1) != weak)
			continue;
		if (!seen++)
			strong = XXH3_64bits(p, m->p->block);
		if (strong_at(m->p, i - 1) != strong)
			continue;
		*out = i - 1;
		return true;
	}
	return false;
}

/*
 * Looks on, byte by byte, for the next block of the basis. Ends at one, or where less than a block
 * is left.
 */
static int
search(struct matcher *m, size_t *next, struct sb_error *err)
{
	size_t block = m->p->block, half = block / 2;
	struct sums s = { 0 };
	bool have = false;

	for (;;) {
		const uint8_t *p;
		size_t i;
		uint64_t end;
		int r = ahead(m, block + 1, err);

		if (r < 0 || m->base + m->len - m->at < block)
			return r;
		end = m->base + m->len -
			block; /* the last place where a whole block is in the buffer */
		p = m->buf + (m->at - m->base);
		if (!have)
			s = sums_of(p, block);
		have = true;
		for (;; p++) {
			if (find(m, s, p, &i)) {
				r = flush_literal(m, err);
				if (r == 0)
					take(m, (uint64_t)i * block, block);
				*next = i + 1;
				return r;
			}
			if (m->at == end)
				break;
			s.all += (uint32_t)p[block] - p[0];
			s.half += (uint32_t)p[half] - p[0];
			m->at++;
		}
		if (end + block == m->size) {
			m->at++;
			return 0;
		}
		/*
		 * The byte behind the buffer comes with the next fill; the sums begin anew there.
		 */
		have = false;
		m->at++;
	}
}

/* The rest of the basis that is no whole block, at the end of both. */
static void
match_rest(struct matcher *m)
{
	uint64_t rest = m->p->size % m->p->block;
	uint64_t left = m->size - m->at;

	if (!rest || left < rest || m->base + m->len != m->size)
		return;
	if (XXH3_64bits(m->buf + (m->size - rest - m->base), (size_t)rest) !=
		load_le(m->p->rows + m->p->n * ROW, 8))
		return;
	m->at = m->size - rest;
	if (flush_literal(m, NULL) == 0)
		take(m, m->p->size - rest, (size_t)rest);
}

static int
match(struct matcher *m, struct sb_error *err)
{
	size_t block = m->p->block, next = 0;
	int r = 0;

	while (r == 0 && m->size - m->at >= block) {
		r = ahead(m, block, err);
		if (r < 0)
			break;
		if (next < m->p->n &&
			XXH3_64bits(m->buf + (m->at - m->base), block) == strong_at(m->p, next)) {
			take(m, (uint64_t)next * block, block);
			next++;
			continue;
		}
		r = search(m, &next, err);
	}
	if (r == 0)
		r = ahead(m, (size_t)(m->size - m->at), err);
	if (r == 0)
		match_rest(m);
	m->at = m->size;
	if (r == 0)
		r = flush_literal(m, err);
	flush_copy(m);
	sb_buf_add_u8(m->out, 0);
	return r < 0 ? r : sb_buf_check(m->out, "delta", err);
}

int
sb_recipe_delta(int dirfd, const struct sb_digest *base, int fd, uint64_t size, uint64_t max,
	struct sb_buf *out, const struct sb_cancel *cancel, struct sb_error *err)
{
	struct recipe p = { 0 };
	sb_autofree uint8_t *buf = malloc(READ_LEN + 2 * BLOCK_MAX);
	struct matcher m = { .p = &p,
		.fd = fd,
		.size = size,
		.max = max,
		.out = out,
		.cancel = cancel,
		.buf = buf };
	int r;

	sb_buf_init(&p.b, 0);
	r = buf ? load(dirfd, base, &p, err) : sb_fail(err, SB_E_NOMEM, "recipe: out of memory");
	if (r == 0) {
		sb_buf_add(out, "rs\x02\x36", 4);
		r = match(&m, err);
	}
	recipe_free(&p);
	return r;
}
