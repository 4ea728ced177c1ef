/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/scan/gitindex.h>

#include <string.h>

#include <base/str.h>

#define PATH_SIZE 4097
#define STAT_BYTES 40 /* the last 16 of them: mode, uid, gid, size */
#define EXTENDED 0x4000

struct index_reader {
	const uint8_t *p, *end;
	unsigned version;
	size_t hash_size;
	char path[PATH_SIZE]; /* of the entry before, then of this one */
	size_t len;
};

static uint32_t
be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static int
damaged(struct sb_error *err)
{
	return sb_fail(err, SB_E_CORRUPT, "this is no index of git, or a damaged one");
}

/* Version 4: how many bytes of the path before go, as in offsets of packs; -1: damaged. */
static long
read_strip(struct index_reader *r)
{
	uint64_t n;
	uint8_t c;

	if (r->p == r->end)
		return -1;
	c = *r->p++;
	for (n = c & 127; c & 128; n = ((n + 1) << 7) | (c & 127)) {
		if (r->p == r->end || n > PATH_SIZE)
			return -1;
		c = *r->p++;
	}
	return n > r->len ? -1 : (long)n;
}

/* The path of an entry that begins at `start`; -1: damaged. */
static int
read_path(struct index_reader *r, const uint8_t *start)
{
	size_t keep = 0, n, total;
	const uint8_t *nul;

	if (r->version == 4) {
		long strip = read_strip(r);

		if (strip < 0)
			return -1;
		keep = r->len - (size_t)strip;
	}
	nul = memchr(r->p, 0, (size_t)(r->end - r->p));
	n = nul ? (size_t)(nul - r->p) : 0;
	if (!nul || keep + n >= PATH_SIZE)
		return -1;
	memcpy(r->path + keep, r->p, n);
	r->len = keep + n;
	r->path[r->len] = 0;
	r->p = nul + 1;
	if (r->version == 4)
		return 0;
	/* One to eight zeros fill it up. */
	total = ((size_t)(nul - start) + 8) & ~(size_t)7;
	if (total > (size_t)(r->end - start))
		return -1;
	r->p = start + total;
	return 0;
}

static int
read_entry(struct index_reader *r, sb_gitindex_fn fn, void *arg, struct sb_error *err)
{
	const uint8_t *start = r->p;
	size_t head = STAT_BYTES + r->hash_size + 2;
	struct sb_gitindex_entry e;
	uint32_t type;
	uint16_t flags;

	if ((size_t)(r->end - r->p) < head + 2)
		return damaged(err);
	type = be32(start + 24) >> 12;
	flags = (uint16_t)(start[head - 2] << 8 | start[head - 1]);
	r->p += head;
	if (flags & EXTENDED) {
		if (r->version < 3)
			return damaged(err);
		r->p += 2;
	}
	if (read_path(r, start) < 0)
		return damaged(err);
	/* An entry without a name replaces one of the shared index; one that ends in / is sparse.
	 */
	if (!r->len || r->path[r->len - 1] == '/' || memchr(r->path, 0, r->len))
		return 0;
	e = (struct sb_gitindex_entry){ .path = r->path, .len = r->len, .gitlink = type == 016 };
	return fn(&e, arg);
}

/* What follows the entries; only "link" matters. */
static int
read_extensions(struct index_reader *r, char *shared, struct sb_error *err)
{
	while ((size_t)(r->end - r->p) > r->hash_size) {
		uint32_t n;

		if ((size_t)(r->end - r->p) < 8)
			return damaged(err);
		n = be32(r->p + 4);
		if (n > (size_t)(r->end - r->p) - 8)
			return damaged(err);
		if (memcmp(r->p, "link", 4) == 0 && n >= r->hash_size)
			(void)sb_str_hex(r->p + 8, r->hash_size, shared);
		r->p += 8 + (size_t)n;
	}
	return 0;
}

int
sb_gitindex_read(const uint8_t *data, size_t len, size_t hash_size, sb_gitindex_fn fn, void *arg,
	char *shared, struct sb_error *err)
{
	struct index_reader r = { .p = data + 12, .end = data + len, .hash_size = hash_size };
	uint32_t n;
	int ret = 0;

	shared[0] = 0;
	if (len < 12 + hash_size || memcmp(data, "DIRC", 4) != 0)
		return damaged(err);
	r.version = be32(data + 4);
	n = be32(data + 8);
	if (r.version < 2 || r.version > 4)
		return sb_fail(err, SB_E_VERSION, "an index of version %u", r.version);
	for (uint32_t i = 0; ret == 0 && i < n; i++)
		ret = read_entry(&r, fn, arg, err);
	return ret ? ret : read_extensions(&r, shared, err);
}
