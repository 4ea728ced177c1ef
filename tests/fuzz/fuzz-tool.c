/* SPDX-License-Identifier: MIT */
/*
 * What comes from a program in a sandbox: marks on its stderr give the same whether the bytes come
 * at once or one by one, and a window is valid UTF-8 of at most its size. And command lines: what
 * is split joins to words that split the same.
 */
#include <stdlib.h>
#include <string.h>

#include <provider/marks.h>
#include <tool/window.h>
#include <tool/words.h>

#include "fuzz.h"

#define TEXT_MAX (1u << 20)

static void
collect(const void *data, size_t len, void *arg)
{
	sb_buf_add(arg, data, len);
}

static void
find_marks(const uint8_t *data, size_t size, size_t step, struct sb_marks *m, struct sb_buf *out)
{
	sb_buf_init(out, TEXT_MAX);
	FUZZ_CHECK(sb_marks_init(m, "n", NULL) == 0);
	for (size_t i = 0; i < size; i += step)
		sb_marks_feed(m, data + i, size - i < step ? size - i : step, collect, out);
	sb_marks_flush(m, collect, out);
	sb_marks_free(m);
}

static void
check_marks(const uint8_t *data, size_t size)
{
	struct sb_marks a, b;
	struct sb_buf whole, parts;

	find_marks(data, size, size ? size : 1, &a, &whole);
	find_marks(data, size, 1, &b, &parts);
	FUZZ_CHECK(a.ended == b.ended && a.code == b.code && a.signal == b.signal);
	FUZZ_CHECK(whole.len == parts.len &&
		(!whole.len || memcmp(whole.data, parts.data, whole.len) == 0));
	FUZZ_CHECK(whole.len <= size);
	sb_buf_free(&whole);
	sb_buf_free(&parts);
}

/* Strict UTF-8, written differently from the code it checks. */
static void
check_utf8(const uint8_t *p, size_t len)
{
	for (size_t i = 0; i < len;) {
		uint32_t v = p[i];
		size_t n = v < 0x80 ? 1 : (v & 0xe0) == 0xc0 ? 2 : (v & 0xf0) == 0xe0 ? 3 : 4;

		FUZZ_CHECK(n < 4 || (v & 0xf8) == 0xf0);
		FUZZ_CHECK(i + n <= len);
		v &= n == 1 ? 0x7f : 0xffu >> (n + 1);
		for (size_t k = 1; k < n; k++) {
			FUZZ_CHECK((p[i + k] & 0xc0) == 0x80);
			v = v << 6 | (p[i + k] & 0x3f);
		}
		FUZZ_CHECK(v <= 0x10ffff && (v < 0xd800 || v > 0xdfff));
		FUZZ_CHECK(n == 1 || v >= (n == 2 ? 0x80u : n == 3 ? 0x800u : 0x10000u));
		i += n;
	}
}

static void
check_window(const uint8_t *data, size_t size)
{
	size_t limit = size ? data[0] % 40 : 0;
	struct sb_window w;
	struct sb_buf out;

	sb_window_init(&w, limit);
	sb_buf_init(&out, TEXT_MAX);
	for (size_t i = 0; i < size; i += 3)
		sb_window_add(&w, data + i, size - i < 3 ? size - i : 3);
	(void)sb_window_text(&w, size % 2, &out);
	FUZZ_CHECK(out.len <= limit);
	check_utf8(out.data, out.len);
	sb_window_free(&w);
	sb_buf_free(&out);
}

static void
check_words(const uint8_t *data, size_t size)
{
	char *line = strndup((const char *)data, size);
	struct sb_strlist words = { 0 }, again = { 0 };
	struct sb_buf quoted;

	sb_buf_init(&quoted, TEXT_MAX);
	if (line && sb_words_split(line, &words, NULL) == 0) {
		for (size_t i = 0; i < words.n; i++) {
			sb_buf_add_char(&quoted, '\'');
			for (const char *p = words.v[i]; *p; p++)
				sb_buf_add_str(&quoted,
					*p == '\'' ? "'\\''" : (char[]){ *p, '\0' });
			sb_buf_add_str(&quoted, "' ");
		}
		FUZZ_CHECK(sb_words_split((char *)quoted.data, &again, NULL) == 0 &&
			again.n == words.n);
		for (size_t i = 0; i < words.n; i++)
			FUZZ_CHECK(strcmp(words.v[i], again.v[i]) == 0);
	}
	sb_strlist_free(&words);
	sb_strlist_free(&again);
	sb_buf_free(&quoted);
	free(line);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > 4096)
		return 0;
	check_marks(data, size);
	check_window(data, size);
	check_words(data, size);
	return 0;
}
