/* SPDX-License-Identifier: MIT */
/* Addresses, requests and options of controls; the calls are tried by tests/control. */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <control/control-priv.h>
#include <control/hostsess.h>

#include "tests/lib/tmpdir.h"
#include "tests/lib/unit.h"

static void
addresses_are_checked_and_make_urls(void **state)
{
	static const struct {
		const char *address, *http, *https;
	} good[] = {
		{ "box:80", "http://box:80", "https://box:80" },
		{ "10.0.0.1:65535", "http://10.0.0.1:65535", "https://10.0.0.1:65535" },
		{ "[::1]:1", "http://[::1]:1", "https://[::1]:1" },
		{ "[2001:db8::7]:9100", "http://[2001:db8::7]:9100", "https://[2001:db8::7]:9100" },
		{ "unix:/run/s", "unix:/run/s", "unix:/run/s" },
	};
	static const char *const bad[] = { "", "box", "box:", ":80", "box:0", "box:080",
		"box:65536", "box:-1", "box: 80", "box:80 ", "::1:80", "2001:db8::7:80", "[::1]",
		"[box]:80", "[::1:80", "::1]:80", "[]:80", "a b:80", "a/b:80", "me@box:80",
		"http://box:80", "-box:80", "box\n:80", "box:80\n", "unix:", "unix:rel", "\xff:80",
		"box:99999999999" };
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		sb_autofree char *http = sb_control_address_url(good[i].address, false, &err);
		sb_autofree char *https = sb_control_address_url(good[i].address, true, &err);

		assert_string_equal(http, good[i].http);
		assert_string_equal(https, good[i].https);
	}
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		assert_fails(sb_control_address_check(bad[i], &err), SB_E_INVAL, &err);
		assert_null(sb_control_address_url(bad[i], false, &err));
	}
}

static void
an_address_of_the_far_machine_alone_is_no_answer(void **state)
{
	struct sb_error err = { 0 };

	(void)state;
	assert_ok(sb_hostsess_reachable("unix:/s", "127.0.0.1:80", &err), &err);
	assert_ok(sb_hostsess_reachable("http://127.0.0.1:1", "127.0.0.1:80", &err), &err);
	assert_ok(sb_hostsess_reachable("https://box:1", "box:80", &err), &err);
	assert_fails(sb_hostsess_reachable("https://box:1", "127.0.0.1:80", &err), SB_E_UNSUPPORTED,
		&err);
	assert_non_null(strstr(err.msg, "--advertise-addr"));
	assert_fails(sb_hostsess_reachable("http://box:1", "[::1]:80", &err), SB_E_UNSUPPORTED,
		&err);
	assert_fails(sb_hostsess_reachable("http://box:1", "0.0.0.0:80", &err), SB_E_UNSUPPORTED,
		&err);
	assert_fails(sb_hostsess_reachable("http://box:1", "unix:/x", &err), SB_E_UNSUPPORTED,
		&err);
	assert_fails(sb_hostsess_reachable("http://box:1", "nonsense", &err), SB_E_PROTO, &err);
}

static void
requests_are_told_apart(void **state)
{
	static const char *const ab[] = { "a=1", "b=2", NULL },
				 *const ba[] = { "b=2", "a=1", NULL },
				 *const joined[] = { "a=1b=2", NULL };
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT;
	char one[SB_CONTROL_DIGEST_LEN + 1], two[SB_CONTROL_DIGEST_LEN + 1];
	char id[SB_CONTROL_NEW_ID_MAX], again[SB_CONTROL_NEW_ID_MAX];
	struct sb_error err = { 0 };

	(void)state;
	o.labels = ab;
	assert_ok(sb_control_request_digest(&o, one, &err), &err);
	o.labels = ba;
	o.key = "another";
	assert_ok(sb_control_request_digest(&o, two, &err), &err);
	assert_string_equal(one, two);
	o.labels = joined;
	assert_ok(sb_control_request_digest(&o, two, &err), &err);
	assert_string_not_equal(one, two);
	o.labels = ab;
	o.mem_mb = 1;
	assert_ok(sb_control_request_digest(&o, two, &err), &err);
	assert_string_not_equal(one, two);
	assert_ok(sb_control_request_id("job/17", id, &err), &err);
	assert_ok(sb_control_request_id("job/17", again, &err), &err);
	assert_string_equal(id, again);
	assert_ok(sb_control_request_id(NULL, again, &err), &err);
	assert_string_not_equal(id, again);
}

static void
mistakes_in_requests_name_the_value(void **state)
{
	static const char *const none[] = { "novalue", NULL },
				 *const twice[] = { "a=1", "a=2", NULL },
				 *const own[] = { "sb.x=1", NULL },
				 *const control[] = { "a=\x01", NULL },
				 *const secret[] = { "BAD NAME=hunter2", NULL };
	struct sb_control_create_opts o = SB_CONTROL_CREATE_OPTS_INIT, n = o;
	struct sb_control_launch_opts l = SB_CONTROL_LAUNCH_OPTS_INIT;
	struct sb_error err = { 0 };
	char *many[SB_CONTROL_LABELS_MAX + 2] = { NULL };

	(void)state;
	o.labels = none;
	assert_fails(sb_control_request_create(&o, &err), SB_E_INVAL, &err);
	assert_non_null(strstr(err.msg, "novalue"));
	o.labels = twice;
	assert_fails(sb_control_request_create(&o, &err), SB_E_INVAL, &err);
	o.labels = own;
	assert_fails(sb_control_request_create(&o, &err), SB_E_INVAL, &err);
	o.labels = control;
	assert_fails(sb_control_request_create(&o, &err), SB_E_INVAL, &err);
	for (size_t i = 0; i <= SB_CONTROL_LABELS_MAX; i++)
		many[i] = sb_str_printf("k%zu=", i);
	o.labels = (const char *const *)many;
	assert_fails(sb_control_request_create(&o, &err), SB_E_INVAL, &err);
	free(many[SB_CONTROL_LABELS_MAX]);
	many[SB_CONTROL_LABELS_MAX] = NULL;
	assert_ok(sb_control_request_create(&o, &err), &err);
	for (size_t i = 0; many[i]; i++)
		free(many[i]);
	o = n;
	o.cpus = -1;
	assert_fails(sb_control_request_create(&o, &err), SB_E_INVAL, &err);
	o = n;
	o.key = "a\tb";
	assert_fails(sb_control_request_create(&o, &err), SB_E_INVAL, &err);
	l.sandbox = "x";
	l.binary = "x";
	l.env = secret;
	assert_fails(sb_control_request_launch(&l, &err), SB_E_INVAL, &err);
	assert_null(strstr(err.msg, "hunter2"));
	l.env = NULL;
	l.ready_ms = 5;
	assert_fails(sb_control_request_launch(&l, &err), SB_E_INVAL, &err);
}

static void
options_of_kinds_are_checked(void **state)
{
	static const char *const url[] = { "url=unix:/nowhere", NULL },
				 *const wrong[] = { "url=ftp://x", NULL };
	struct sb_control_open_opts o = SB_CONTROL_OPEN_OPTS_INIT;
	struct sb_control *c;
	struct sb_error err = { 0 };

	(void)state;
	o.state_dir = "/nonexistent";
	o.kind = "nodes";
	assert_null(sb_control_open(&o, &err));
	assert_non_null(strstr(err.msg, "use node, instance"));
	o.kind = "node";
	o.name = "box";
	assert_null(sb_control_open(&o, &err));
	assert_string_equal(err.msg, "control box: url is missing: where sbhostd listens");
	o.options = wrong;
	assert_null(sb_control_open(&o, &err));
	assert_non_null(strstr(err.msg, "use http://HOST:PORT"));
	assert_fails(sb_control_option_check("node", "urls", "x", &err), SB_E_INVAL, &err);
	assert_non_null(strstr(err.msg, "use url, token_file"));
	assert_fails(sb_control_option_check("node", "ask_timeout", "soon", &err), SB_E_INVAL,
		&err);
	o.options = url;
	c = sb_control_open(&o, &err);
	assert_non_null(c);
	sb_control_close(c);
	sb_control_close(NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_are_checked_and_make_urls),
		cmocka_unit_test(an_address_of_the_far_machine_alone_is_no_answer),
		cmocka_unit_test(requests_are_told_apart),
		cmocka_unit_test(mistakes_in_requests_name_the_value),
		cmocka_unit_test(options_of_kinds_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
