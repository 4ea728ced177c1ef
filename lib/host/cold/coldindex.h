/* SPDX-License-Identifier: MIT */
#ifndef SB_HOST_COLDINDEX_H
#define SB_HOST_COLDINDEX_H

#include <stdint.h>

#include <jansson.h>

#include <host/cold/coldframe.h>
#include <sb/host.h>

/*
 * The index of an archive: the last object that a deep pause writes, and what makes the others an
 * archive. It has the record of the session, and for each stream of the storage the frames it is
 * made of, with the part that each one lies in (doc/sbcold.5).
 */
#define SB_COLDINDEX_PART_MAX 33 /* 32 hex digits */
#define SB_COLDINDEX_PARTS_MAX ((size_t)1 << 20)
#define SB_COLDINDEX_FRAMES_MAX ((size_t)1 << 22)
#define SB_COLDINDEX_STREAMS_MAX ((size_t)4096)
#define SB_COLDINDEX_OBJECT_MAX ((uint64_t)512 << 20)
#define SB_COLDINDEX_PART_BYTES_MAX ((uint64_t)1 << 30)

struct sb_coldindex_part {
	char name[SB_COLDINDEX_PART_MAX];
	uint64_t size;
};

struct sb_coldindex_frame {
	uint8_t digest[SB_COLDFRAME_DIGEST];
	uint32_t size, stored; /* plain bytes, bytes in the part */
	uint32_t part;
	uint64_t at;
};

/* What the storage wrote for one snapshot. */
struct sb_coldindex_stream {
	char snapshot[SB_HOST_NAME_MAX + 1];
	char from[SB_HOST_NAME_MAX + 1]; /* the snapshot it stands on; "": it is whole */
	uint64_t size;
	uint32_t *frames; /* in order */
	size_t n, cap;
};

/* Zero-initialise. */
struct sb_coldindex {
	json_t *session; /* the host's record; this room does not look into it */
	char kind[16];   /* of the streams: "layers", "zfs" */
	struct sb_coldindex_stream *streams;
	size_t n_streams;
	struct sb_coldindex_part *parts;
	size_t n_parts, cap_parts;
	struct sb_coldindex_frame *frames;
	size_t n_frames, cap_frames;
	char key[SB_COLDKEY_ID_MAX]; /* "": not encrypted */
};
void sb_coldindex_free(struct sb_coldindex *x);
SB_CLEANUP_VALUE(sb_coldindex, sb_coldindex_free)

int sb_coldindex_add_stream(struct sb_coldindex *x, const char *snapshot, const char *from,
	struct sb_error *err);
/* One more frame at the end of the last stream. */
int sb_coldindex_add_use(struct sb_coldindex *x, uint32_t frame, struct sb_error *err);
/* Their number, or an error. */
int64_t sb_coldindex_add_part(struct sb_coldindex *x, const char *name, uint64_t size,
	struct sb_error *err);
int64_t sb_coldindex_add_frame(struct sb_coldindex *x, const struct sb_coldindex_frame *f,
	struct sb_error *err);

/* The object; `key` NULL: in the clear. */
int sb_coldindex_encode(const struct sb_coldindex *x, const struct sb_coldkey *key,
	struct sb_buf *out, struct sb_error *err);
/*
 * What sb_coldindex_encode wrote, with every number checked. SB_E_CORRUPT, SB_E_VERSION, SB_E_AUTH
 * (names the key that is missing).
 */
int sb_coldindex_decode(const void *data, size_t len, const struct sb_coldkeys *keys,
	struct sb_coldindex *out, struct sb_error *err);

#endif
