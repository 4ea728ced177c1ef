/* SPDX-License-Identifier: MIT */
/* Entries of a network policy, and what they decide. */
#include "config.h"

#include <string.h>

#include <egress/netpolicy.h>

#include "tests/lib/unit.h"

static struct sb_netpolicy *
policy(const char *text)
{
	struct sb_error err = { 0 };
	struct sb_netpolicy *p = sb_netpolicy_parse(text, strlen(text), &err);

	if (!p)
		fail_msg("%s", err.msg);
	return p;
}

static bool
name_ok(const char *text, const char *name, uint16_t port)
{
	sb_auto(sb_netpolicy) struct sb_netpolicy *p = policy(text);
	struct sb_netverdict v;

	return sb_netpolicy_name(p, name, port, &v);
}

static const char *
addr_rule(const char *text, const char *addr, uint16_t port, bool named, bool own)
{
	sb_auto(sb_netpolicy) struct sb_netpolicy *p = policy(text);
	static struct sb_netverdict v;
	struct sb_netaddr a;
	bool allow;

	assert_true(sb_netaddr_parse(addr, strlen(addr), &a));
	allow = sb_netpolicy_addr(p, &a, port, named, own, &v);
	assert_int_equal(allow, v.allow);
	return v.allow ? "yes" : v.rule;
}

static void
names_and_suffixes(void **state)
{
	(void)state;
	assert_true(name_ok("allow Example.COM\n", "example.com", 443));
	assert_false(name_ok("allow example.com\n", "www.example.com", 443));
	assert_false(name_ok("allow example.com\n", "notexample.com", 443));
	assert_true(name_ok("allow *.example.com\n", "a.b.example.com", 443));
	assert_false(name_ok("allow *.example.com\n", "example.com", 443));
	assert_false(name_ok("allow *.example.com\n", "evilexample.com", 443));
	assert_true(name_ok("allow example.com.\n", "example.com", 1));
	assert_false(name_ok("", "example.com", 443));
	assert_true(name_ok("allow *\n", "example.com", 443));
	assert_false(name_ok("allow 1.2.3.4\n", "example.com", 443));
}

static void
ports(void **state)
{
	(void)state;
	assert_true(name_ok("allow a.test:443\n", "a.test", 443));
	assert_false(name_ok("allow a.test:443\n", "a.test", 80));
	assert_true(name_ok("allow a.test:10-20\n", "a.test", 20));
	assert_false(name_ok("allow a.test:10-20\n", "a.test", 21));
	assert_true(name_ok("allow *:22\n", "a.test", 22));
	assert_false(name_ok("allow *:22\n", "a.test", 23));
	/* Port 0 asks for any: a name may be looked up when one port is allowed, and not every
	   port is denied. */
	assert_true(name_ok("allow a.test:443\ndeny a.test:80\n", "a.test", 0));
	assert_false(name_ok("allow a.test:443\ndeny a.test\n", "a.test", 0));
}

static void
deny_wins(void **state)
{
	(void)state;
	assert_false(name_ok("allow *\ndeny *.bad.test\n", "x.bad.test", 443));
	assert_true(name_ok("allow *\ndeny *.bad.test\n", "bad.test", 443));
	assert_false(name_ok("deny a.test\nallow a.test\n", "a.test", 443));
	assert_string_equal(
		addr_rule("allow *\ndeny 203.0.113.0/24\n", "203.0.113.7", 1, true, false),
		"deny 203.0.113.0/24");
	assert_string_equal(addr_rule("allow *\ndeny *:25\n", "203.0.113.7", 25, true, false),
		"deny *:25");
	assert_string_equal(addr_rule("allow *\ndeny *:25\n", "203.0.113.7", 26, true, false),
		"yes");
}

static void
special_addresses_must_be_listed_by_themselves(void **state)
{
	static const char *const special[] = { "127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.0.1",
		"169.254.169.254", "100.64.1.1", "168.63.129.16", "::1", "fe80::1", "fd00::1",
		"fec0::1" };
	static const char *const never[] = { "0.0.0.0", "224.0.0.1", "255.255.255.255",
		"198.18.0.1", "198.19.3.4", "::", "ff02::1", "2002:7f00:1::", "64:ff9b::7f00:1",
		"2001::1", "::7f00:1", "::127.0.0.1" };
	static const char wide[] = "allow *\nallow 0.0.0.0/0\nallow ::/0\nallow 0.0.0.0/1\n";

	(void)state;
	for (size_t i = 0; i < sizeof special / sizeof special[0]; i++) {
		char text[100];

		assert_string_not_equal(addr_rule(wide, special[i], 80, true, false), "yes");
		assert_string_not_equal(addr_rule(wide, special[i], 80, false, false), "yes");
		(void)snprintf(text, sizeof text, "allow [%s]:80\n", special[i]);
		if (!strchr(special[i], ':'))
			(void)snprintf(text, sizeof text, "allow %s:80\n", special[i]);
		assert_string_equal(addr_rule(text, special[i], 80, false, false), "yes");
		assert_string_not_equal(addr_rule(text, special[i], 81, false, false), "yes");
	}
	for (size_t i = 0; i < sizeof never / sizeof never[0]; i++)
		assert_string_not_equal(addr_rule(wide, never[i], 80, true, false), "yes");
	/* ::ffff:127.0.0.1 is 127.0.0.1. */
	assert_string_not_equal(addr_rule(wide, "::ffff:127.0.0.1", 80, false, false), "yes");
	assert_string_equal(addr_rule("allow 127.0.0.1\n", "::ffff:127.0.0.1", 80, false, false),
		"yes");
	/* The host's own public address. */
	assert_string_equal(
		addr_rule("allow *\nallow 203.0.113.0/24\n", "203.0.113.1", 1, true, true),
		"own-address address, not listed");
	assert_string_equal(addr_rule("allow 203.0.113.1\n", "203.0.113.1", 1, false, true), "yes");
}

static void
addresses_and_blocks(void **state)
{
	static const char text[] = "allow 203.0.113.0/25\nallow 2001:db8::/33\nallow "
				   "[2001:db8:8000::1]:443\n";

	(void)state;
	assert_string_equal(addr_rule(text, "203.0.113.127", 9, false, false), "yes");
	assert_string_equal(addr_rule(text, "203.0.113.128", 9, false, false), "unlisted");
	assert_string_equal(addr_rule(text, "2001:db8:7fff::1", 9, false, false), "yes");
	assert_string_equal(addr_rule(text, "2001:db8:8000::1", 443, false, false), "yes");
	assert_string_equal(addr_rule(text, "2001:db8:8000::1", 80, false, false), "unlisted");
}

static void
mistakes_name_the_entry_and_the_way_out(void **state)
{
	static const char *const bad[] = { "", "a b", "http://a.test", "a.test/", "1.2.3.4/33",
		"1.2.3.4/24", "1.2.3/24", "a.test:0", "a.test:65536", "a.test:", "a.test:2-1",
		"a.test:x", "a.test:80x", "a.test:80-", "a.test:80-90x", "[::2]:1\004", "*a.test",
		"a.*.test", "**", "*.", ".a.test", "a..test", "1.2.3.256", "[::1", "[::1]x",
		"[::1]:", "[]:80", "[1.2.3.4]:80", "::1/129", "0x7f.1", "127.1", "a.test:80:90",
		"fe80::1%eth0", "xn--\xc3\xa9.test", "a.test\n", "*:*", "a@b.test" };

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		sb_auto(sb_netpolicy) struct sb_netpolicy *p = sb_netpolicy_new(NULL);
		struct sb_error err = { 0 };

		if (sb_netpolicy_allow(p, bad[i], &err) != SB_E_INVAL)
			fail_msg("\"%s\" was taken", bad[i]);
		assert_non_null(strstr(err.msg, "network entry \""));
		assert_non_null(strstr(err.msg, "use HOST"));
	}
}

static void
what_can_never_be_reached_is_no_entry(void **state)
{
	sb_auto(sb_netpolicy) struct sb_netpolicy *p = sb_netpolicy_new(NULL);
	struct sb_error err = { 0 };

	(void)state;
	assert_fails(sb_netpolicy_allow(p, "224.0.0.1", &err), SB_E_INVAL, &err);
	assert_non_null(strstr(err.msg, "multicast"));
	assert_fails(sb_netpolicy_allow(p, "198.18.0.0/15", &err), SB_E_INVAL, &err);
	assert_ok(sb_netpolicy_deny(p, "224.0.0.0/4", &err), &err);
}

static void
the_text_tells_the_line(void **state)
{
	static const char text[] = "allow a.test\n\ndeny b.test\nforbid c.test\n";
	struct sb_error err = { 0 };

	(void)state;
	assert_null(sb_netpolicy_parse(text, strlen(text), &err));
	assert_non_null(strstr(err.msg, "line 4"));
	assert_null(sb_netpolicy_parse("allow x/y", 9, &err));
	assert_non_null(strstr(err.msg, "x/y"));
}

static void
lists_have_an_end(void **state)
{
	sb_auto(sb_netpolicy) struct sb_netpolicy *p = sb_netpolicy_new(NULL);
	struct sb_error err = { 0 };
	char text[SB_NETPOLICY_ENTRY_MAX + 50];

	(void)state;
	for (int i = 0; i < SB_NETPOLICY_ENTRIES; i++)
		assert_ok(sb_netpolicy_allow(p, "a.test", &err), &err);
	assert_fails(sb_netpolicy_deny(p, "a.test", &err), SB_E_LIMIT, &err);
	sb_netpolicy_free(p);
	p = sb_netpolicy_new(NULL);
	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	assert_fails(sb_netpolicy_allow(p, text, &err), SB_E_INVAL, &err);
}

static void
names_are_checked(void **state)
{
	char out[SB_NETNAME_MAX], label[70], name[300] = "";

	(void)state;
	assert_true(sb_netname_check("A-b_c.TEST.", 11, out));
	assert_string_equal(out, "a-b_c.test");
	assert_false(sb_netname_check("1.2.3.4", 7, out));
	assert_false(sb_netname_check("a.0x10", 6, out));
	assert_false(sb_netname_check("a\0b", 3, out));
	memset(label, 'x', sizeof label);
	assert_true(sb_netname_check(label, 63, out));
	assert_false(sb_netname_check(label, 64, out));
	for (int i = 0; i < 126; i++)
		(void)memcpy(name + 2 * i, "a.", 2);
	(void)memcpy(name + 252, "bc", 2);
	assert_true(sb_netname_check(name, 253, out));
	assert_false(sb_netname_check(name, 254, out));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_and_suffixes),
		cmocka_unit_test(ports),
		cmocka_unit_test(deny_wins),
		cmocka_unit_test(special_addresses_must_be_listed_by_themselves),
		cmocka_unit_test(addresses_and_blocks),
		cmocka_unit_test(mistakes_name_the_entry_and_the_way_out),
		cmocka_unit_test(what_can_never_be_reached_is_no_entry),
		cmocka_unit_test(the_text_tells_the_line),
		cmocka_unit_test(lists_have_an_end),
		cmocka_unit_test(names_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
