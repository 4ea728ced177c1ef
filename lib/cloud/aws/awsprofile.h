/* SPDX-License-Identifier: MIT */
#ifndef SB_CLOUD_AWS_AWSPROFILE_H
#define SB_CLOUD_AWS_AWSPROFILE_H

#include <stddef.h>

#include <base/strmap.h>

/*
 * The INI files that AWS's tools share: ~/.aws/credentials and ~/.aws/config. Sections in brackets,
 * "key = value" (keys in any case), '#' and ';' at the start of a line, or behind white space,
 * begin a comment. What is indented belongs to the line before it ("s3 =" and its settings): such a
 * setting comes out as "key.sub".
 */
#define SB_AWSPROFILE_TEXT_MAX ((size_t)1 << 20)

/*
 * The settings of section `name` of `text` into `out` (keys in lower case; later ones win). Returns
 * 1, or 0 when there is no such section. SB_E_INVAL names the line that is no INI; values are never
 * in a message.
 */
int sb_awsprofile_parse(const char *text, size_t len, const char *name, struct sb_strmap *out,
	struct sb_error *err);

#endif
