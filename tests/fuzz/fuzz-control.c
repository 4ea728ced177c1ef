/* SPDX-License-Identifier: MIT */
/*
 * Addresses and labels as callers and hosts give them to controls: an address that is accepted has
 * a host and a port and makes a URL that a host can be called by; an accepted label is one pair.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <control/control-priv.h>
#include <control/hostsess.h>

#include "fuzz.h"

static void
check_address(const char *text)
{
	const char *port;
	int64_t number;
	sb_autofree char *http = NULL, *https = NULL;
	struct sb_hostcall *h;
	bool tls = false;

	if (sb_control_address_check(text, NULL) < 0) {
		FUZZ_CHECK(sb_control_address_url(text, false, NULL) == NULL);
		return;
	}
	FUZZ_CHECK(strlen(text) <= SB_CONTROL_ADDRESS_MAX);
	http = sb_control_address_url(text, false, NULL);
	https = sb_control_address_url(text, true, NULL);
	FUZZ_CHECK(http && https);
	if (sb_str_starts(text, "unix:")) {
		FUZZ_CHECK(text[5] == '/' && strcmp(http, text) == 0 && strcmp(https, text) == 0);
		FUZZ_CHECK(sb_control_address_local(text));
		return;
	}
	port = strrchr(text, ':');
	FUZZ_CHECK(port && port > text && sb_str_to_i64(port + 1, 1, 65535, &number));
	FUZZ_CHECK(strpbrk(text, " /@?#%\\\n\r\t") == NULL);
	h = sb_hostcall_new(https, NULL, NULL, NULL);
	FUZZ_CHECK(h && strcmp(sb_hostcall_address(h, &tls), text) == 0 && tls);
	sb_hostcall_free(h);
	FUZZ_CHECK((sb_hostsess_reachable("http://far.example:1", text, NULL) == 0) ==
		!sb_control_address_local(text));
}

static void
check_label(const char *text)
{
	const char *list[] = { text, NULL };
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	char one[SB_CONTROL_DIGEST_LEN + 1], two[SB_CONTROL_DIGEST_LEN + 1];
	const char *eq = strchr(text, '=');

	if (sb_control_request_labels(list, NULL) < 0)
		return;
	FUZZ_CHECK(eq && eq > text && strlen(eq + 1) <= SB_CONTROL_LABEL_VALUE_MAX);
	FUZZ_CHECK(!sb_str_starts(text, SB_CONTROL_LABEL_OWN));
	o.labels = list;
	FUZZ_CHECK(sb_control_request_digest(&o, one, NULL) == 0);
	o.labels = NULL;
	FUZZ_CHECK(sb_control_request_digest(&o, two, NULL) == 0 && strcmp(one, two) != 0);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	sb_autofree char *text = size < 4096 ? strndup((const char *)data, size) : NULL;

	if (!text)
		return 0;
	check_address(text);
	check_label(text);
	return 0;
}
