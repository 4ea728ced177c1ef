/* SPDX-License-Identifier: MIT */
/* What the proxy reads of a session: TLS hellos, HTTP heads and bodies, DNS messages. */
#include "config.h"

#include <string.h>

#include <egress/dns.h>
#include <egress/httpflow.h>
#include <egress/names.h>
#include <egress/tlshello.h>
#include <egress/verdict.h>

#include "tests/lib/unit.h"

/* A hello of TLS with these extensions, in one record. */
static size_t
make_hello(uint8_t *out, const uint8_t *ext, size_t ext_len)
{
	uint8_t *p = out + 9;
	size_t n;

	memset(p, 0, 34);
	p[0] = 3;
	p[1] = 3;
	p += 34;
	*p++ = 0;                       /* session */
	memcpy(p, "\0\2\x13\1\1\0", 6); /* ciphers, compression */
	p += 6;
	*p++ = (uint8_t)(ext_len >> 8);
	*p++ = (uint8_t)ext_len;
	memcpy(p, ext, ext_len);
	p += ext_len;
	n = (size_t)(p - out) - 9;
	memcpy(out, "\x16\3\1", 3);
	out[3] = (uint8_t)((n + 4) >> 8);
	out[4] = (uint8_t)(n + 4);
	out[5] = 1;
	out[6] = 0;
	out[7] = (uint8_t)(n >> 8);
	out[8] = (uint8_t)n;
	return n + 9;
}

static size_t
make_sni(uint8_t *out, const char *name)
{
	size_t n = strlen(name);

	memcpy(out, (uint8_t[]){ 0, 0, 0, (uint8_t)(n + 5), 0, (uint8_t)(n + 3), 0, 0, (uint8_t)n },
		9);
	memcpy(out + 9, name, n);
	return n + 9;
}

static void
a_hello_is_read_however_it_comes(void **state)
{
	uint8_t ext[300], h[600];
	char name[SB_NETNAME_MAX];
	size_t n = make_hello(h, ext, make_sni(ext, "Good.Test"));

	(void)state;
	for (size_t i = 0; i < n; i++)
		assert_int_equal(sb_tlshello_read(h, i, name), SB_TLSHELLO_MORE);
	assert_int_equal(sb_tlshello_read(h, n, name), SB_TLSHELLO_DONE);
	assert_string_equal(name, "good.test");
	n = make_hello(h, ext, 0);
	assert_int_equal(sb_tlshello_read(h, n, name), SB_TLSHELLO_DONE);
	assert_string_equal(name, "");
	assert_int_equal(sb_tlshello_read((const uint8_t *)"GET /", 5, name), SB_TLSHELLO_OTHER);
	assert_int_equal(sb_tlshello_read((const uint8_t *)"\x16\4", 2, name), SB_TLSHELLO_OTHER);
}

static void
hellos_with_two_meanings_are_bad(void **state)
{
	static const char *const names[] = { "good.test.", "1.2.3.4", "", "a b", "a..b" };
	uint8_t ext[700], h[1000], many[SB_TLSHELLO_MAX + 10];
	char name[SB_NETNAME_MAX];
	size_t n, m;

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
		n = make_hello(h, ext, make_sni(ext, names[i]));
		assert_int_equal(sb_tlshello_read(h, n, name), SB_TLSHELLO_BAD);
	}
	/* Two SNIs; two names in one; a list longer than its extension. */
	m = make_sni(ext, "a.test");
	n = make_hello(h, ext, m + make_sni(ext + m, "b.test"));
	assert_int_equal(sb_tlshello_read(h, n, name), SB_TLSHELLO_BAD);
	memcpy(ext, "\0\0\0\x0a\0\x08\0\0\1a\0\0\1b", 14);
	n = make_hello(h, ext, 14);
	assert_int_equal(sb_tlshello_read(h, n, name), SB_TLSHELLO_BAD);
	m = make_sni(ext, "a.test");
	ext[5]++;
	n = make_hello(h, ext, m);
	assert_int_equal(sb_tlshello_read(h, n, name), SB_TLSHELLO_BAD);
	/* An alert first; an empty record; an endless hello. */
	assert_int_equal(sb_tlshello_read((const uint8_t *)"\x15\3\1\0\2", 5, name),
		SB_TLSHELLO_BAD);
	assert_int_equal(sb_tlshello_read((const uint8_t *)"\x16\3\1\0\0", 5, name),
		SB_TLSHELLO_BAD);
	memcpy(many, "\x16\3\1\xff\xff\1\0\xff\xff", 9);
	assert_int_equal(sb_tlshello_read(many, 9, name), SB_TLSHELLO_BAD);
	for (size_t i = 0; i + 6 <= sizeof many; i += 6)
		memcpy(many + i, "\x16\3\1\0\1\1", 6);
	many[11] = 0;
	assert_int_equal(sb_tlshello_read(many, SB_TLSHELLO_MAX, name), SB_TLSHELLO_BAD);
}

static enum sb_httphead_state
head(const char *text, struct sb_httphead *h)
{
	return sb_httphead_read((const uint8_t *)text, strlen(text), h);
}

static void
heads_are_read(void **state)
{
	static const char text[] = "POST /a?b HTTP/1.1\r\nHost: Good.Test:8080\r\nConnection: "
				   "keep-alive\r\nContent-Length: 5\r\nProxy-Authorization: x\r\n"
				   "X: y\r\n\r\nhello";
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_httphead h;

	(void)state;
	for (size_t i = 0; i < strlen(text) - 5; i++)
		assert_int_equal(sb_httphead_read((const uint8_t *)text, i, &h), SB_HTTPHEAD_MORE);
	assert_int_equal(head(text, &h), SB_HTTPHEAD_DONE);
	assert_string_equal(h.host.name, "good.test");
	assert_int_equal(h.host.port, 8080);
	assert_int_equal(h.length, 5);
	assert_int_equal(h.len, strlen(text) - 5);
	sb_buf_init(&out, 1000);
	sb_httphead_write(&h, (const uint8_t *)text, &out);
	assert_string_equal((char *)out.data,
		"POST /a?b HTTP/1.1\r\nHost: Good.Test:8080\r\nContent-Length: 5\r\nX: "
		"y\r\nConnection: close\r\n\r\n");
	assert_int_equal(head("GET http://a.test?q HTTP/1.1\r\nHost: a.test\r\n\r\n", &h),
		SB_HTTPHEAD_DONE);
	sb_buf_reset(&out);
	sb_httphead_write(&h,
		(const uint8_t *)"GET http://a.test?q HTTP/1.1\r\nHost: a.test\r\n\r\n", &out);
	assert_string_equal((char *)out.data,
		"GET /?q HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
	assert_int_equal(head("CONNECT [::1]:443 HTTP/1.1\r\n\r\n", &h), SB_HTTPHEAD_DONE);
	assert_int_equal(h.target, SB_HTTPHEAD_CONNECT);
	assert_int_equal(h.target_peer.addr.family, 6);
}

static void
heads_with_two_meanings_are_bad(void **state)
{
	static const char *const bad[] = { "GET / HTTP/1.1\nHost: a\n\n",
		"\r\nGET / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n",
		"GET / HTTP/1.1\r\nHost : a.test\r\n\r\n",
		"GET / HTTP/1.1\r\nX: y\r\n Host: a.test\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: +1\r\n\r\n",
		"GET / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nTransfer-Encoding: \013chunked\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.test, b.test\r\n\r\n", "GET / HTTP/1.1\r\nHost:\r\n\r\n",
		"GET / HTTP/1.1\r\nX\r\n\r\n", "GET / HTTP/2.0\r\n\r\n", "GET  / HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1 \r\n\r\n", "GET /\r\n\r\n", "GET /\tHTTP/1.1\r\n\r\n",
		"GET http://a@b.test/ HTTP/1.1\r\n\r\n", "GET https://a.test/ HTTP/1.1\r\n\r\n",
		"CONNECT a.test HTTP/1.1\r\n\r\n", "CONNECT a.test:99999 HTTP/1.1\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: a.test\r\rX: y\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: 127.1\r\n\r\n" };
	static const char *const other[] = { "SSH-2.0-x\r\n", "\x80", "0032git-upload-pack /x",
		"EHLO a.test\r\n", "*1\r\n", "RFB 003.008\n" };
	struct sb_httphead h;

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
		if (head(bad[i], &h) != SB_HTTPHEAD_BAD || !h.why)
			fail_msg("taken: %s", bad[i]);
	for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
		if (sb_httphead_read((const uint8_t *)other[i], strlen(other[i]) + (i == 2), &h) !=
			SB_HTTPHEAD_OTHER)
			fail_msg("not other: %s", other[i]);
}

static size_t
passed(const char *headers, const char *body, size_t step)
{
	struct sb_httpflow f;
	struct sb_httphead h;
	char text[300];
	size_t at = 0;

	(void)snprintf(text, sizeof text, "POST / HTTP/1.1\r\n%s\r\n", headers);
	assert_int_equal(head(text, &h), SB_HTTPHEAD_DONE);
	sb_httpflow_init(&f, &h);
	while (at < strlen(body)) {
		size_t n = strlen(body) - at < step ? strlen(body) - at : step;
		size_t p = sb_httpflow_pass(&f, (const uint8_t *)body + at, n);

		at += p;
		if (p < n)
			break;
	}
	return at;
}

static void
nothing_passes_behind_a_body(void **state)
{
	static const char chunked[] = "Transfer-Encoding: chunked\r\n";

	(void)state;
	for (size_t step = 1; step < 50; step++) {
		assert_int_equal(passed("", "GET /", step), 0);
		assert_int_equal(passed("Content-Length: 3\r\n", "abcGET /", step), 3);
		assert_int_equal(passed(chunked, "3\r\nabc\r\n0\r\n\r\nGET", step), 13);
		assert_int_equal(
			passed(chunked, "A;x=y\r\n0123456789\r\n0\r\nT: x\r\n\r\nGET", step), 30);
		/* Broken ones stop at the byte that is wrong. */
		assert_int_equal(passed(chunked, "3\nabc", step), 1);
		assert_int_equal(passed(chunked, "3\r\nabcd\r\n", step), 6);
		assert_int_equal(passed(chunked, "-1\r\n", step), 0);
		assert_int_equal(passed(chunked, " 3\r\n", step), 0);
		assert_int_equal(passed(chunked, "fffffffffffffffff\r\n", step), 15);
		assert_int_equal(passed(chunked, "0\r\n\nGET", step), 3);
	}
}

static const uint8_t question[] = "\x12\x34\1\0\0\1\0\0\0\0\0\0\4Good\4test\0\0\1\0\1";

static void
questions_are_read_and_answered(void **state)
{
	const struct sb_netaddr a = { 4, { 198, 19, 0, 1 } };
	struct sb_dns_query q;
	uint8_t out[SB_DNS_REPLY];
	size_t len = sizeof question - 1, n;
	int rcode;

	(void)state;
	assert_true(sb_dns_read_query(question, len, &q, &rcode));
	assert_int_equal(rcode, SB_DNS_OK);
	assert_string_equal(q.name, "good.test");
	assert_int_equal(q.type, SB_DNS_A);
	n = sb_dns_write_answer(&q, SB_DNS_OK, &a, 30, out);
	assert_int_equal(n, len + 16);
	assert_memory_equal(out + 12, question + 12, len - 12);
	assert_memory_equal(out + n - 4, a.b, 4);
	for (size_t i = 12; i < len; i++) {
		assert_true(sb_dns_read_query(question, i, &q, &rcode));
		assert_int_equal(rcode, SB_DNS_FORMERR);
	}
	assert_false(sb_dns_read_query(question, 11, &q, &rcode));
}

static void
replies_are_believed_only_about_what_was_asked(void **state)
{
	static const uint8_t reply[] = "\x12\x34\x81\x80\0\1\0\3\0\0\0\0\4good\4test\0\0\1\0\1"
				       "\xc0\x0c\0\5\0\1\0\0\0\x3c\0\6\3cdn\xc0\x11"
				       "\xc0\x27\0\1\0\1\0\0\0\x1e\0\4\xcb\0\x71\x0a"
				       "\4evil\4test\0\0\1\0\1\0\0\0\1\0\4\x7f\0\0\1";
	struct sb_dns_reply r;
	uint8_t copy[sizeof reply];
	size_t len = sizeof reply - 1;

	(void)state;
	assert_true(sb_dns_read_reply(reply, len, 0x1234, "good.test", SB_DNS_A, &r));
	assert_int_equal(r.n, 1); /* by the alias; evil.test is nobody's business */
	assert_int_equal(r.v[0].b[3], 10);
	assert_int_equal(r.ttl, 30);
	assert_false(sb_dns_read_reply(reply, len, 0x1235, "good.test", SB_DNS_A, &r));
	assert_false(sb_dns_read_reply(reply, len, 0x1234, "other.test", SB_DNS_A, &r));
	assert_false(sb_dns_read_reply(reply, len, 0x1234, "good.test", SB_DNS_AAAA, &r));
	for (size_t i = 0; i < len; i++)
		assert_false(sb_dns_read_reply(reply, i, 0x1234, "good.test", SB_DNS_A, &r));
	/* A pointer to itself. */
	memcpy(copy, reply, len);
	copy[28] = 27;
	assert_false(sb_dns_read_reply(copy, len, 0x1234, "good.test", SB_DNS_A, &r));
}

static void
aliases_belong_to_one_name(void **state)
{
	struct sb_names *t = sb_names_new();
	struct sb_name *first = sb_names_get(t, "first.test", 1), *held;
	struct sb_netaddr old = first->alias;
	char name[40];

	(void)state;
	held = sb_names_get(t, "held.test", 1);
	held->users++;
	assert_ptr_equal(sb_names_by_alias(t, &old), first);
	for (int i = 0; i < SB_NAMES_MAX + 10; i++) {
		(void)snprintf(name, sizeof name, "n%d.test", i);
		assert_non_null(sb_names_get(t, name, 2 + i));
	}
	/* Pushed out: its address stands for nobody, not for another. */
	assert_null(sb_names_find(t, "first.test"));
	assert_null(sb_names_by_alias(t, &old));
	assert_ptr_equal(sb_names_find(t, "held.test"), held);
	sb_names_free(t);
}

static void
verdicts_are_limited_and_kept(void **state)
{
	struct sb_verdicts *v = sb_verdict_open("s\"1\n");
	const struct sb_verdict what = { .kind = "dns",
		.name = "a\"\\\x01",
		.verdict = "deny",
		.rule = "unlisted" };
	uint64_t seq = 0;
	const char *line;

	(void)state;
	for (int i = 0; i < 1000; i++)
		sb_verdict_note(v, &what, 1000);
	assert_int_equal(sb_verdict_last(v), SB_VERDICT_BURST);
	sb_verdict_note(v, &what, 2000);
	line = sb_verdict_line(v, &seq);
	assert_int_equal(seq, 1);
	assert_non_null(strstr(line, "\"session\":\"s\\\"1\\u000a\""));
	assert_non_null(strstr(line, "\"name\":\"a\\\"\\\\\\u0001\""));
	seq = SB_VERDICT_BURST + 1;
	assert_non_null(strstr(sb_verdict_line(v, &seq), "\"left_out\":900}"));
	for (int i = 0; i < 400; i++)
		sb_verdict_note(v, &what, 100000 + i * 1000);
	seq = 0;
	assert_non_null(sb_verdict_line(v, &seq));
	assert_int_equal(seq, sb_verdict_last(v) - SB_VERDICT_KEPT + 1);
	sb_verdict_close(v);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hello_is_read_however_it_comes),
		cmocka_unit_test(hellos_with_two_meanings_are_bad),
		cmocka_unit_test(heads_are_read),
		cmocka_unit_test(heads_with_two_meanings_are_bad),
		cmocka_unit_test(nothing_passes_behind_a_body),
		cmocka_unit_test(questions_are_read_and_answered),
		cmocka_unit_test(replies_are_believed_only_about_what_was_asked),
		cmocka_unit_test(aliases_belong_to_one_name),
		cmocka_unit_test(verdicts_are_limited_and_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
