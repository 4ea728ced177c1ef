/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/httpflow.h>

#include <ctype.h>

#define LINE_MAX_BYTES 4096
#define TRAILER_MAX 16384

void
sb_httpflow_init(struct sb_httpflow *f, const struct sb_httphead *h)
{
	*f = (struct sb_httpflow){ .step = SB_HTTPFLOW_END };
	if (h->chunked) {
		f->step = SB_HTTPFLOW_SIZE;
		f->in_size = true;
	} else if (h->length > 0) {
		f->step = SB_HTTPFLOW_LENGTH;
		f->left = h->length;
	}
}

static enum sb_httpflow_step
begin_line(struct sb_httpflow *f, enum sb_httpflow_step step)
{
	f->line = 0;
	f->last = 0;
	f->left = step == SB_HTTPFLOW_SIZE ? 0 : f->left;
	f->in_size = step == SB_HTTPFLOW_SIZE;
	return step;
}

/* A line feed only behind a carriage return, and that only before a line feed. */
static bool
line_byte_ok(const struct sb_httpflow *f, uint8_t c)
{
	return (c == '\n') == (f->last == '\r') && c != '\0' && f->line < LINE_MAX_BYTES;
}

static enum sb_httpflow_step
size_byte(struct sb_httpflow *f, uint8_t c)
{
	if (!line_byte_ok(f, c))
		return SB_HTTPFLOW_BAD;
	if (c == '\n') {
		if (f->left == 0)
			return begin_line(f, SB_HTTPFLOW_TRAILER);
		f->left += 2;
		f->last = 0;
		return SB_HTTPFLOW_CHUNK;
	}
	if (f->in_size && isxdigit(c)) {
		if (f->line >= 15)
			return SB_HTTPFLOW_BAD;
		f->left = f->left << 4 | (uint64_t)(isdigit(c) ? c - '0' : tolower(c) - 'a' + 10);
	} else if (f->line == 0 || (f->in_size && c != ';' && c != '\r')) {
		return SB_HTTPFLOW_BAD;
	} else {
		f->in_size = false;
	}
	f->line++;
	f->last = c;
	return SB_HTTPFLOW_SIZE;
}

static enum sb_httpflow_step
trailer_byte(struct sb_httpflow *f, uint8_t c)
{
	if (!line_byte_ok(f, c) || ++f->total > TRAILER_MAX)
		return SB_HTTPFLOW_BAD;
	if (c == '\n') {
		if (f->line == 1)
			return SB_HTTPFLOW_END;
		return begin_line(f, SB_HTTPFLOW_TRAILER);
	}
	f->line++;
	f->last = c;
	return SB_HTTPFLOW_TRAILER;
}

/* The last two bytes of a chunk are its line end. */
static enum sb_httpflow_step
chunk_bytes(struct sb_httpflow *f, const uint8_t *data, size_t len, size_t *used)
{
	size_t n = f->left > 2 ? (size_t)(f->left - 2 < len ? f->left - 2 : len) : 0;

	if (n == 0) {
		n = 1;
		if (data[0] != (f->left == 2 ? '\r' : '\n'))
			return SB_HTTPFLOW_BAD;
	}
	f->left -= n;
	*used = n;
	return f->left == 0 ? begin_line(f, SB_HTTPFLOW_SIZE) : SB_HTTPFLOW_CHUNK;
}

size_t
sb_httpflow_pass(struct sb_httpflow *f, const uint8_t *data, size_t len)
{
	size_t at = 0;

	while (at < len && f->step != SB_HTTPFLOW_END && f->step != SB_HTTPFLOW_BAD) {
		size_t used = 1;

		if (f->step == SB_HTTPFLOW_LENGTH) {
			used = (size_t)(f->left < len - at ? f->left : len - at);
			f->left -= used;
			if (f->left == 0)
				f->step = SB_HTTPFLOW_END;
		} else if (f->step == SB_HTTPFLOW_SIZE) {
			f->step = size_byte(f, data[at]);
		} else if (f->step == SB_HTTPFLOW_CHUNK) {
			f->step = chunk_bytes(f, data + at, len - at, &used);
		} else {
			f->step = trailer_byte(f, data[at]);
		}
		if (f->step == SB_HTTPFLOW_BAD)
			break;
		at += used;
	}
	return at;
}
