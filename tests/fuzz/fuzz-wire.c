/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a peer as frames. The first byte: 1 puts right the proofs (no mutation would find
 * one), 2 looks for the greeting first, 4 takes frames from 64 up as blobs. The rest is read to its
 * end: no frame is longer than what came, a blob no longer than its limit, error texts
 * have no control characters, and what goes wrong is the peer's fault.
 */
#include "config.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <base/file.h>
#include <sync/wire/proto.h>
#include <sync/wire/wire.h>

#include "fuzz.h"

#define BLOB_MAX (1u << 20)
#define HEADER 5

static uint32_t
get_u32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static void
put_u64(uint8_t *p, uint64_t v)
{
	for (unsigned i = 0; i < 8; i++)
		p[i] = (uint8_t)(v >> (8 * i));
}

static void
fix_proofs(uint8_t *p, size_t len)
{
	XXH3_state_t *st = XXH3_createState();
	uint64_t frames = 0, bytes = 0;

	FUZZ_CHECK(st);
	XXH3_128bits_reset(st);
	while (len >= HEADER && get_u32(p) <= len - HEADER) {
		size_t n = HEADER + get_u32(p);

		if (p[4] == SB_MSG_PROOF && n >= HEADER + 32) {
			struct sb_digest d = sb_digest_final(st);

			put_u64(p + HEADER, frames);
			put_u64(p + HEADER + 8, bytes);
			memcpy(p + HEADER + 16, d.b, sizeof d.b);
		}
		XXH3_128bits_update(st, p, n);
		frames++;
		bytes += n;
		p += n;
		len -= n;
	}
	XXH3_freeState(st);
}

static void
read_frames(struct sb_wire *w, bool blobs, size_t len)
{
	struct sb_error err = { 0 };
	const uint8_t *p;
	uint8_t type;
	size_t n;
	int r;

	while ((r = sb_wire_recv(w, &type, &p, &n, &err)) == 0) {
		FUZZ_CHECK(type != SB_MSG_PING && type != SB_MSG_ERROR && n <= len);
		if (n) {
			volatile uint8_t last = p[n - 1];

			(void)last;
		}
		if (blobs && type >= SB_MSG_WELCOME) {
			sb_auto(sb_buf) struct sb_buf b = { 0 };

			sb_buf_init(&b, 0);
			r = sb_wire_recv_blob(w, type, p, n, BLOB_MAX, &b, &err);
			FUZZ_CHECK(r < 0 || b.len <= BLOB_MAX);
		}
		if (r < 0)
			break;
	}
	/* An ERROR frame may carry any code of ours. */
	FUZZ_CHECK(strcmp(sb_code_name(r), "UNKNOWN") != 0 && err.msg[0]);
	for (const char *s = err.msg; *s; s++)
		FUZZ_CHECK((uint8_t)*s >= 32 && *s != 127);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct sb_wire_opts o = SB_WIRE_OPTS_INIT;
	struct sb_error err = { 0 };
	struct sb_transport *t;
	struct sb_wire *w;
	uint8_t *copy;
	int rfd, wfd;

	if (len < 1)
		return 0;
	copy = malloc(len);
	FUZZ_CHECK(copy);
	memcpy(copy, data + 1, len - 1);
	if ((data[0] & 1) && !(data[0] & 2))
		fix_proofs(copy, len - 1);
	rfd = memfd_create("peer", MFD_CLOEXEC);
	wfd = memfd_create("mine", MFD_CLOEXEC);
	FUZZ_CHECK(rfd >= 0 && wfd >= 0 && sb_file_write_all(rfd, copy, len - 1, NULL) == 0);
	FUZZ_CHECK(lseek(rfd, 0, SEEK_SET) == 0);
	t = sb_transport_fds(rfd, wfd, NULL);
	FUZZ_CHECK(t);
	o.ping_ms = 0;
	w = sb_wire_new(t, &o, NULL);
	FUZZ_CHECK(w);
	if (!(data[0] & 2) || sb_wire_skip_to(w, SB_PROTO_MARKER, 4096, &err) == 0)
		read_frames(w, data[0] & 4, len);
	else
		FUZZ_CHECK(err.code == SB_E_PROTO || err.code == SB_E_CLOSED);
	sb_wire_free(w);
	sb_transport_free(t);
	(void)close(rfd);
	(void)close(wfd);
	free(copy);
	return 0;
}
