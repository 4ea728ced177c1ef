/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/linear.h>

#include <cstdio>
#include <mutex>
#include <new>

#include <re2/re2.h>

/* The second one takes a line for bytes; it is made by the first line that is no UTF-8. */
struct sb_linear {
	sb_linear(const re2::StringPiece &text) : pattern(text.data(), text.size())
	{
	}

	std::string pattern;
	RE2 *chars = nullptr;
	RE2 *bytes = nullptr;
	std::once_flag made;
};

static RE2 *
compile(const std::string &text, RE2::Options::Encoding encoding)
{
	RE2::Options o;

	o.set_encoding(encoding);
	o.set_log_errors(false);
	o.set_never_capture(true);
	o.set_max_mem(SB_LINEAR_MEMORY / 2);
	return new (std::nothrow) RE2(text, o);
}

struct sb_linear *
sb_linear_new(const char *text, size_t len, char *why, size_t size)
{
	sb_linear *l = new (std::nothrow) sb_linear(re2::StringPiece(text, len));

	if (l)
		l->chars = compile(l->pattern, RE2::Options::EncodingUTF8);
	if (l && l->chars && l->chars->ok())
		return l;
	(void)snprintf(why, size, "%s", l && l->chars ? l->chars->error().c_str() : "no memory");
	sb_linear_free(l);
	return nullptr;
}

void
sb_linear_free(struct sb_linear *l)
{
	if (!l)
		return;
	delete l->chars;
	delete l->bytes;
	delete l;
}

static bool
matches(const RE2 *re, const re2::StringPiece &line)
{
	return re && re->ok() && re->Match(line, 0, line.size(), RE2::UNANCHORED, nullptr, 0);
}

/* Strict enough to tell text from other encodings. */
static bool
is_utf8(const char *s, size_t len)
{
	const unsigned char *p = reinterpret_cast<const unsigned char *>(s), *end = p + len;

	while (p < end) {
		size_t more = *p < 0x80         ? 0 :
			*p >= 0xc2 && *p < 0xe0 ? 1 :
			*p >= 0xe0 && *p < 0xf0 ? 2 :
			*p >= 0xf0 && *p < 0xf5 ? 3 :
						  4;

		if (more == 4 || static_cast<size_t>(end - p) <= more)
			return false;
		for (p++; more > 0; more--, p++)
			if ((*p & 0xc0) != 0x80)
				return false;
	}
	return true;
}

bool
sb_linear_matches(struct sb_linear *l, const char *line, size_t len)
{
	const re2::StringPiece text(line, len);

	if (matches(l->chars, text))
		return true;
	if (is_utf8(line, len))
		return false;
	std::call_once(l->made,
		[l] { l->bytes = compile(l->pattern, RE2::Options::EncodingLatin1); });
	return matches(l->bytes, text);
}
