/* SPDX-License-Identifier: MIT */
/* Pages of listings, as XML. */
#include "config.h"

#include <cloud/aws/s3.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <base/str.h>

#define KEY_MAX 4096
#define ITEM_MAX 16384
#define ROOT "<ListBucketResult"

/* In place: %XX and '+', as encoding-type=url writes keys. */
static int
decode(char *s)
{
	char *o = s;

	for (; *s; s++) {
		int hi, lo;

		if (*s != '%') {
			*o++ = *s == '+' ? ' ' : *s;
			continue;
		}
		hi = sb_str_hex_digit(s[1]);
		lo = hi >= 0 ? sb_str_hex_digit(s[2]) : -1;
		if (lo < 0 || (hi | lo) == 0)
			return -1;
		*o++ = (char)(hi << 4 | lo);
		s += 2;
	}
	*o = '\0';
	return 0;
}

/* One <Contents> element. */
static int
item(const char *text, size_t len, sb_s3_entry_fn fn, void *arg, struct sb_error *err)
{
	sb_autofree char *xml = strndup(text, len);
	sb_autofree char *key = malloc(KEY_MAX);
	struct sb_s3_entry e = { 0 };
	char size[32], when[64];
	struct tm tm = { 0 };
	int64_t v;

	if (!xml || !key)
		return sb_fail(err, SB_E_NOMEM, "listing");
	if (!sb_awscall_xml_text(xml, "Key", key, KEY_MAX) || decode(key) < 0 || !key[0] ||
		!sb_awscall_xml_text(xml, "Size", size, sizeof size) ||
		!sb_str_to_i64(size, 0, INT64_MAX, &v) ||
		!sb_awscall_xml_text(xml, "LastModified", when, sizeof when) ||
		!strptime(when, "%Y-%m-%dT%H:%M:%S", &tm))
		return sb_fail(err, SB_E_PROTO, "a listing has an entry without key, size or time");
	e.key = key;
	e.size = (uint64_t)v;
	e.time_s = (int64_t)timegm(&tm);
	return fn(&e, arg, err);
}

int
sb_s3_list_page(const char *xml, sb_s3_entry_fn fn, void *arg, char *next, size_t size,
	struct sb_error *err)
{
	static const char open[] = "<Contents>", close[] = "</Contents>";
	const char *p = xml, *end;
	char more[8] = "";

	next[0] = '\0';
	/* A cut answer could hide entries: it has to come to its end. */
	if (!strstr(xml, ROOT) || strstr(xml, "<!DOCTYPE") || !strstr(xml, "</ListBucketResult>"))
		return sb_fail(err, SB_E_PROTO, "a listing is no ListBucketResult");
	while ((p = strstr(p, open))) {
		int r;

		p += sizeof open - 1;
		end = strstr(p, close);
		if (!end || end - p > ITEM_MAX)
			return sb_fail(err, SB_E_PROTO, "a listing has an entry without an end");
		r = item(p, (size_t)(end - p), fn, arg, err);
		if (r < 0)
			return r;
		p = end + sizeof close - 1;
	}
	if (!sb_awscall_xml_text(xml, "IsTruncated", more, sizeof more))
		return sb_fail(err, SB_E_PROTO, "a listing does not say whether it is complete");
	if (strcmp(more, "true") != 0)
		return 0;
	return sb_awscall_xml_text(xml, "NextContinuationToken", next, size) && next[0] ?
		0 :
		sb_fail(err, SB_E_PROTO, "a listing goes on, but does not say where");
}
