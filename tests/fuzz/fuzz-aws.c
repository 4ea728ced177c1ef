/* SPDX-License-Identifier: MIT */
/*
 * What AWS's files and services say: profiles, temporary credentials, failures. A setting that was
 * taken has a name and is one line; credentials are whole or absent; a text of an answer fits.
 */
#include <stdlib.h>
#include <string.h>

#include <cloud/aws/awscall.h>
#include <cloud/aws/awsmeta.h>
#include <cloud/aws/awsprofile.h>
#include <cloud/aws/s3.h>

#include "fuzz.h"

static void
profile(const uint8_t *data, size_t len)
{
	sb_auto(sb_strmap) struct sb_strmap m = { 0 };
	int r = sb_awsprofile_parse((const char *)data, len, "p", &m, NULL);

	FUZZ_CHECK(r <= 1);
	for (size_t i = 0; i < m.n; i++) {
		FUZZ_CHECK(m.v[i].key[0] && !strpbrk(m.v[i].key, "\n="));
		FUZZ_CHECK(!strchr(m.v[i].value, '\n'));
	}
}

static void
answers(const char *text, size_t len)
{
	sb_auto(sb_awschain_creds) struct sb_awschain_creds c = { 0 };
	char small[9] = "";
	int r = sb_awsmeta_parse(text, len, &c, NULL);

	FUZZ_CHECK((r == 0) == (c.access && c.secret));
	if (sb_awscall_xml_text(text, "Code", small, sizeof small))
		FUZZ_CHECK(strlen(small) < sizeof small);
	(void)sb_awsmeta_url_safe(text);
}

static int
on_object(const struct sb_s3_entry *e, void *arg, struct sb_error *err)
{
	(void)arg;
	(void)err;
	FUZZ_CHECK(e->key && e->key[0] && e->size <= INT64_MAX);
	return 0;
}

static void
listing(const char *text)
{
	char next[64];

	if (sb_s3_list_page(text, on_object, NULL, next, sizeof next, NULL) == 0)
		FUZZ_CHECK(strlen(next) < sizeof next);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1);

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	profile(data, len);
	answers(text, len);
	listing(text);
	free(text);
	return 0;
}
