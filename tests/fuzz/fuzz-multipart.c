/* SPDX-License-Identifier: MIT */
/* A multipart body: what its parts are does not depend on the pieces that it comes in. */
#include "config.h"

#include <string.h>

#include <base/buf.h>
#include <compat/http/multipart.h>

#include "fuzz.h"

static int
on_begin(const struct sb_multipart_part *p, void *arg, struct sb_error *err)
{
	struct sb_buf *out = arg;

	(void)err;
	sb_buf_addf(out, "<%s|%s|%s>", p->name, p->filename, p->type);
	return 0;
}

static int
on_data(const void *data, size_t len, void *arg, struct sb_error *err)
{
	(void)err;
	FUZZ_CHECK(len > 0);
	sb_buf_add(arg, data, len);
	return 0;
}

static int
on_end(void *arg, struct sb_error *err)
{
	(void)err;
	sb_buf_add_str(arg, "</>");
	return 0;
}

static int
read_body(const uint8_t *data, size_t len, size_t step, struct sb_buf *out)
{
	static const struct sb_multipart_ops ops = { on_begin, on_data, on_end };
	struct sb_multipart *m =
		sb_multipart_new("multipart/form-data; boundary=\"b;b\"", &ops, out, NULL);
	int r = 0;

	FUZZ_CHECK(m != NULL);
	for (size_t at = 0; at < len && r == 0; at += step)
		r = sb_multipart_feed(m, data + at, len - at < step ? len - at : step, NULL);
	if (r == 0)
		r = sb_multipart_finish(m, NULL);
	sb_multipart_free(m);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_buf) struct sb_buf a, b;
	int r, s;

	sb_buf_init(&a, 1 << 24);
	sb_buf_init(&b, 1 << 24);
	r = read_body(data, len, len + 1, &a);
	s = read_body(data, len, 3, &b);
	FUZZ_CHECK((r == 0) == (s == 0));
	FUZZ_CHECK(r != 0 || (a.len == b.len && memcmp(a.data, b.data, a.len) == 0));
	return 0;
}
