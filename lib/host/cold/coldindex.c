/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/cold/coldindex.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/array.h>
#include <base/str.h>

#define GROW_MIN 64

void
sb_coldindex_free(struct sb_coldindex *x)
{
	json_decref(x->session);
	for (size_t i = 0; i < x->n_streams; i++)
		free(x->streams[i].frames);
	free(x->streams);
	free(x->parts);
	free(x->frames);
	*x = (struct sb_coldindex){ 0 };
}

/* Room for one more of `size` bytes in `*v`. */
static int
grow(void **v, size_t n, size_t *cap, size_t max, size_t size, struct sb_error *err)
{
	size_t more = *cap ? *cap * 2 : GROW_MIN;
	void *p;

	if (n >= max)
		return sb_fail(err, SB_E_LIMIT, "an archive of more than %zu pieces", max);
	if (n < *cap)
		return 0;
	p = reallocarray(*v, more, size);
	if (!p)
		return sb_fail(err, SB_E_NOMEM, "index");
	*v = p;
	*cap = more;
	return 0;
}

int
sb_coldindex_add_stream(struct sb_coldindex *x, const char *snapshot, const char *from,
	struct sb_error *err)
{
	struct sb_coldindex_stream *v, *s;

	if (x->n_streams == SB_COLDINDEX_STREAMS_MAX)
		return sb_fail(err, SB_E_LIMIT, "more than %zu streams", SB_COLDINDEX_STREAMS_MAX);
	v = reallocarray(x->streams, x->n_streams + 1, sizeof *v);
	if (!v)
		return sb_fail(err, SB_E_NOMEM, "index");
	x->streams = v;
	s = &v[x->n_streams++];
	memset(s, 0, sizeof *s);
	(void)snprintf(s->snapshot, sizeof s->snapshot, "%s", snapshot);
	(void)snprintf(s->from, sizeof s->from, "%s", from);
	return 0;
}

int
sb_coldindex_add_use(struct sb_coldindex *x, uint32_t frame, struct sb_error *err)
{
	struct sb_coldindex_stream *s = &x->streams[x->n_streams - 1];
	void *v = s->frames;
	int r = grow(&v, s->n, &s->cap, SB_COLDINDEX_FRAMES_MAX, sizeof *s->frames, err);

	s->frames = v;
	if (r < 0)
		return r;
	s->frames[s->n++] = frame;
	s->size += x->frames[frame].size;
	return 0;
}

int64_t
sb_coldindex_add_part(struct sb_coldindex *x, const char *name, uint64_t size, struct sb_error *err)
{
	void *v = x->parts;
	int r = grow(&v, x->n_parts, &x->cap_parts, SB_COLDINDEX_PARTS_MAX, sizeof *x->parts, err);

	x->parts = v;
	if (r < 0)
		return r;
	(void)snprintf(x->parts[x->n_parts].name, sizeof x->parts->name, "%s", name);
	x->parts[x->n_parts].size = size;
	return (int64_t)x->n_parts++;
}

int64_t
sb_coldindex_add_frame(struct sb_coldindex *x, const struct sb_coldindex_frame *f,
	struct sb_error *err)
{
	void *v = x->frames;
	int r = grow(&v, x->n_frames, &x->cap_frames, SB_COLDINDEX_FRAMES_MAX, sizeof *x->frames,
		err);

	x->frames = v;
	if (r < 0)
		return r;
	x->frames[x->n_frames] = *f;
	return (int64_t)x->n_frames++;
}
