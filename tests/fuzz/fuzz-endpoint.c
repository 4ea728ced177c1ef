/* SPDX-License-Identifier: MIT */
/*
 * Endpoint texts. Whatever is accepted has a path, a host and user that are safe as arguments of
 * another program, and its message-ready form is free of control characters.
 */
#include <string.h>

#include <base/cleanup.h>
#include <sync/wire/endpoint.h>

#include "fuzz.h"

static void
check_name(const char *s)
{
	FUZZ_CHECK(*s && *s != '-');
	for (; *s; s++)
		FUZZ_CHECK((unsigned char)*s > ' ' && *s != 0x7f && *s != ';' && *s != '`');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };
	sb_autofree char *text = malloc(len + 1);
	struct sb_error err = { 0 };
	char shown[300];

	if (!text)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	if (sb_endpoint_parse(text, &e, &err) < 0) {
		FUZZ_CHECK(err.msg[0] && !e.path && !e.host);
		for (const char *p = err.msg; *p; p++)
			FUZZ_CHECK((unsigned char)*p >= ' ');
		return 0;
	}
	FUZZ_CHECK(e.path && *e.path);
	FUZZ_CHECK((e.kind == SB_ENDPOINT_SSH) == (e.host != NULL));
	FUZZ_CHECK(e.port >= 0 && e.port <= 65535);
	if (e.host)
		check_name(e.host);
	if (e.user)
		check_name(e.user);
	for (const char *p = sb_endpoint_show(&e, shown, sizeof shown); *p; p++)
		FUZZ_CHECK((unsigned char)*p >= ' ');
	return 0;
}
