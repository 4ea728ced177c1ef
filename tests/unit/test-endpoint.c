/* SPDX-License-Identifier: MIT */
/* The forms an endpoint may take on the command line, and what a wrong one is told. */
#include "config.h"

#include <string.h>

#include <sync/wire/endpoint.h>

#include "tests/lib/unit.h"

struct good {
	const char *text;
	const char *user;
	const char *host;
	int port;
	const char *path;
};

static const struct good goods[] = {
	{ ".", NULL, NULL, 0, "." },
	{ "/a/b:c", NULL, NULL, 0, "/a/b:c" },
	{ "./a:b", NULL, NULL, 0, "./a:b" },
	{ "~x", NULL, NULL, 0, "~x" },
	{ "dir/with@at:colon", NULL, NULL, 0, "dir/with@at:colon" },
	{ "[ab]", NULL, NULL, 0, "[ab]" },
	{ "h:p", NULL, "h", 0, "p" },
	{ "h:", NULL, "h", 0, "." },
	{ "h:~", NULL, "h", 0, "." },
	{ "h:~/x/y", NULL, "h", 0, "x/y" },
	{ "h:/x:y", NULL, "h", 0, "/x:y" },
	{ "me@box.example:proj", "me", "box.example", 0, "proj" },
	{ "a@b@box:p", "a@b", "box", 0, "p" },
	{ "[::1]:p", NULL, "::1", 0, "p" },
	{ "me@[fe80::1%eth0]:/p", "me", "fe80::1%eth0", 0, "/p" },
	{ "ssh://h", NULL, "h", 0, "." },
	{ "ssh://h/", NULL, "h", 0, "/" },
	{ "ssh://h:22/p/q", NULL, "h", 22, "/p/q" },
	{ "ssh://h:/p", NULL, "h", 0, "/p" },
	{ "ssh://me@h:2222/~/p", "me", "h", 2222, "p" },
	{ "ssh://me@[::1]:2222/p", "me", "::1", 2222, "/p" },
	{ "ssh://[::1]/p", NULL, "::1", 0, "/p" },
	{ "ssh://a%3Ab@h/sp%20ace", "a:b", "h", 0, "/sp ace" },
};

static void
same(const char *text, const char *what, const char *got, const char *want)
{
	if (!got != !want || (got && strcmp(got, want) != 0))
		fail_msg("'%s': %s is '%s', want '%s'", text, what, got ? got : "(none)",
			want ? want : "(none)");
}

static void
takes_every_form(void **state)
{
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
		const struct good *g = &goods[i];
		sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };

		assert_ok(sb_endpoint_parse(g->text, &e, &err), &err);
		assert_int_equal(e.kind, g->host ? SB_ENDPOINT_SSH : SB_ENDPOINT_LOCAL);
		same(g->text, "user", e.user, g->user);
		same(g->text, "host", e.host, g->host);
		same(g->text, "path", e.path, g->path);
		if (e.port != g->port)
			fail_msg("'%s': port is %d, want %d", g->text, e.port, g->port);
	}
}

static const struct {
	const char *text;
	const char *says;
} bads[] = {
	{ "", "empty path" },
	{ ":p", "no host before ':'; write ./:p" },
	{ "-oProxyCommand=x:p", "begins with '-'" },
	{ "-l@h:p", "begins with '-'" },
	{ "a@-h:p", "begins with '-'" },
	{ "ssh://-h/p", "begins with '-'" },
	{ "ssh://%2Dx@h/p", "begins with '-'" },
	{ "h\n:p", "holds the character '\\n'" },
	{ "h\x1b[0m:p", "'h\\x1b[0m' holds" },
	{ "a b:p", "holds the character ' '" },
	{ "h$(x):p", "holds the character '$'" },
	{ "u`x`@h:p", "holds the character '`'" },
	{ "@h:p", "user name is empty" },
	{ "u@:p", "host name is empty" },
	{ "host::module", "brackets" },
	{ "::1:p", "no host" },
	{ "fe80::1:p", "brackets" },
	{ "ssh://[::1/p", "'[' without" },
	{ "ssh:///p", "host name is empty" },
	{ "ssh://h:0/p", "port must be 1 to 65535" },
	{ "ssh://h:65536/p", "port must be 1 to 65535" },
	{ "ssh://h:2x/p", "port must be 1 to 65535" },
	{ "ssh://u%zz@h/p", "broken %-escape in the user" },
	{ "ssh://h/p%0", "broken %-escape in the path" },
	{ "ssh://h/p%00q", "broken %-escape in the path" },
	{ "ssh://u:secret@h/p", "password is not taken" },
	{ "rsync://h/p", "only ssh:// is known" },
	{ "h:~other/x", "~USER is not expanded" },
};

static void
refuses_with_a_way_out(void **state)
{
	struct sb_error err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++) {
		struct sb_endpoint e = { 0 };

		if (sb_endpoint_parse(bads[i].text, &e, &err) != SB_E_USAGE)
			fail_msg("'%s' was not refused", bads[i].text);
		if (!strstr(err.msg, bads[i].says))
			fail_msg("'%s': message is \"%s\", want \"%s\" in it", bads[i].text,
				err.msg, bads[i].says);
		for (const char *p = err.msg; *p; p++)
			if ((unsigned char)*p < ' ')
				fail_msg("control character in \"%s\"", err.msg);
		assert_null(strstr(err.msg, "secret"));
	}
}

static void
long_names_are_refused(void **state)
{
	struct sb_error err = { 0 };
	struct sb_endpoint e = { 0 };
	char text[600];

	(void)state;
	memset(text, 'h', sizeof text);
	memcpy(text + 500, ":p", 3);
	assert_fails(sb_endpoint_parse(text, &e, &err), SB_E_USAGE, &err);
}

static void
shows_what_it_parsed(void **state)
{
	static const struct {
		const char *text;
		const char *shown;
	} rows[] = {
		{ "me@h:~/p", "me@h:p" },
		{ "ssh://[::1]:22/p", "ssh://[::1]:22/p" },
		{ "ssh://h:22/~/p", "ssh://h:22/~/p" },
		{ "a\x1b", "a\\x1b" },
	};
	struct sb_error err = { 0 };
	char buf[100];

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		sb_auto(sb_endpoint) struct sb_endpoint e = { 0 };

		assert_ok(sb_endpoint_parse(rows[i].text, &e, &err), &err);
		assert_string_equal(sb_endpoint_show(&e, buf, sizeof buf), rows[i].shown);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_every_form),
		cmocka_unit_test(refuses_with_a_way_out),
		cmocka_unit_test(long_names_are_refused),
		cmocka_unit_test(shows_what_it_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
