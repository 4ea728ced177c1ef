/* SPDX-License-Identifier: MIT */
/* Requests that two programs on the way could read as two different ones get a 400 and no more. */
#include <tests/unit/rpc-toy.h>

#include <rpc/server/strict.h>

#define ECHO "POST /toy.v1.Toy/Echo HTTP/1.1\r\n"
#define JSON "Content-Type: application/json\r\n"
#define CLOSE "Connection: close\r\n"
#define BODY "{\"Text\":\"x\"}"
/* What stands behind the first request: it must never be read as one. */
#define NEXT "GET /metrics HTTP/1.1\r\nHost: x\r\n" CLOSE "\r\n"

/* Bytes with NULs in them. */
struct bytes {
	const char *what;
	const char *text;
	size_t len;
};
#define BYTES(what, text) \
	{ \
		what, text, sizeof(text) - 1 \
	}

static void
requests_that_can_be_misread_are_refused(void **state)
{
	static const struct bytes bad[] = {
		BYTES("two lengths",
			ECHO "Host: x\r\n" JSON
			     "Content-Length: 12\r\nContent-Length: 12\r\n\r\n" BODY),
		BYTES("two different lengths",
			ECHO "Host: x\r\n" JSON
			     "Content-Length: 12\r\nContent-Length: 0\r\n\r\n" BODY),
		BYTES("a list of lengths",
			ECHO "Host: x\r\n" JSON "Content-Length: 12, 12\r\n\r\n" BODY),
		BYTES("a signed length",
			ECHO "Host: x\r\n" JSON "Content-Length: +12\r\n\r\n" BODY),
		BYTES("a length of nothing",
			ECHO "Host: x\r\n" JSON "Content-Length:\r\n\r\n" BODY),
		BYTES("a length and a coding",
			ECHO "Host: x\r\n" JSON "Content-Length: 12\r\n"
			     "Transfer-Encoding: chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
		BYTES("a coding and a length",
			ECHO "Host: x\r\n" JSON "Transfer-Encoding: chunked\r\n"
			     "Content-Length: 12\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
		BYTES("two codings",
			ECHO "Host: x\r\n" JSON "Transfer-Encoding: chunked\r\n"
			     "Transfer-Encoding: chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
		BYTES("another coding",
			ECHO "Host: x\r\n" JSON "Transfer-Encoding: xchunked\r\n\r\n" BODY),
		BYTES("a coding in HTTP/1.0",
			"POST /toy.v1.Toy/Echo HTTP/1.0\r\nHost: x\r\n" JSON
			"Transfer-Encoding: chunked\r\n\r\nc\r\n" BODY "\r\n0\r\n\r\n"),
		BYTES("a length in a GET, twice",
			"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n"
			"Content-Length: 0\r\n\r\nabcde"),
		BYTES("two hosts", "GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n"),
		BYTES("the same host twice", "GET /health HTTP/1.1\r\nHost: x\r\nhost: x\r\n\r\n"),
		BYTES("no host", "GET /health HTTP/1.1\r\nX: x\r\n\r\n"),
		BYTES("LF behind the request line", "GET /health HTTP/1.1\nHost: x\r\n\r\n"),
		BYTES("LF behind a header", "GET /health HTTP/1.1\r\nHost: x\nX: y\r\n\r\n"),
		BYTES("LF at the end", "GET /health HTTP/1.1\r\nHost: x\r\n\n"),
		BYTES("LF only", "GET /health HTTP/1.1\nHost: x\n\n"),
		BYTES("CR in a value", "GET /health HTTP/1.1\r\nHost: x\r\nX: a\rY: b\r\n\r\n"),
		BYTES("NUL in a value", "GET /health HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n"),
		BYTES("NUL at a value's end", "GET /health HTTP/1.1\r\nHost: x\r\nX: a\0\r\n\r\n"),
		BYTES("NULs at a value's end",
			"GET /health HTTP/1.1\r\nHost: x\r\nX: a\0\0\r\n\r\n"),
		BYTES("NUL instead of a value", "GET /health HTTP/1.1\r\nX:\0y\r\nHost: x\r\n\r\n"),
		BYTES("NULs between headers",
			"GET /health HTTP/1.1\r\nX: y\0\0Host: z\r\nHost: x\r\n\r\n"),
		BYTES("NUL in a name", "GET /health HTTP/1.1\r\nHost: x\r\nX\0Y: a\r\n\r\n"),
		BYTES("NUL in the target", "GET /health\0x HTTP/1.1\r\nHost: x\r\n\r\n"),
		BYTES("a bell in a value", "GET /health HTTP/1.1\r\nHost: x\r\nX: a\ab\r\n\r\n"),
		BYTES("a folded line", "GET /health HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n"),
		BYTES("a folded first line", "GET /health HTTP/1.1\r\n Host: x\r\nHost: x\r\n\r\n"),
		BYTES("a blank before the colon", "GET /health HTTP/1.1\r\nHost : x\r\n\r\n"),
		BYTES("no name", "GET /health HTTP/1.1\r\nHost: x\r\n: x\r\n\r\n"),
		BYTES("beyond ASCII in the target", "GET /health?\xff HTTP/1.1\r\nHost: x\r\n\r\n"),
	};
	struct rig *r = rig_new(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		sb_auto(sb_buf) struct sb_buf all;
		sb_autofree char *out = NULL;

		sb_buf_init(&all, 8192);
		sb_buf_add(&all, bad[i].text, bad[i].len);
		sb_buf_add_str(&all, NEXT);
		out = rig_raw(r, all.data, all.len);
		if (strncmp(out, "HTTP/1.1 400 ", 13) != 0 || strstr(out, "HTTP/1.1 2") ||
			strstr(out, "rpc_"))
			fail_msg("%s: \"%s\"", bad[i].what, out);
	}
	rig_free(r);
}

static void
other_nonsense_ends_the_connection(void **state)
{
	static const struct bytes bad[] = {
		BYTES("two blanks", "GET  /health HTTP/1.1\r\nHost: x\r\n\r\n"),
		BYTES("a blank in the target", "GET /health x HTTP/1.1\r\nHost: x\r\n\r\n"),
		BYTES("another version", "GET /health HTTP/1.7\r\nHost: x\r\n\r\n"),
		BYTES("no version", "GET /health\r\nHost: x\r\n\r\n"),
		BYTES("a method that is none", "G@T /health HTTP/1.1\r\nHost: x\r\n\r\n"),
		BYTES("TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"),
	};
	struct rig *r = rig_new(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		sb_autofree char *out = rig_raw(r, bad[i].text, bad[i].len);

		if (strstr(out, "HTTP/1.1 2"))
			fail_msg("%s: \"%s\"", bad[i].what, out);
	}
	rig_free(r);
}

static void
ordinary_requests_are_not(void **state)
{
	static const struct bytes good[] = {
		BYTES("a length", ECHO "Host: x\r\n" JSON CLOSE "Content-Length: 12\r\n\r\n" BODY),
		BYTES("chunks",
			ECHO "Host: x\r\n" JSON CLOSE "Transfer-Encoding: chunked\r\n\r\nc\r\n" BODY
			     "\r\n0\r\n\r\n"),
		BYTES("blanks round a value",
			"GET /health HTTP/1.1\r\nHost:x\r\nX:  \t a b \r\n" CLOSE "\r\n"),
		BYTES("an empty value", "GET /health HTTP/1.1\r\nHost: x\r\nX:\r\n" CLOSE "\r\n"),
		BYTES("an empty host", "GET /health HTTP/1.1\r\nHost:\r\n" CLOSE "\r\n"),
		BYTES("cookies",
			"GET /health HTTP/1.1\r\nHost: x\r\nCookie: a=b; c=\"d\"\r\n" CLOSE "\r\n"),
		BYTES("a query with escapes",
			"GET /health?a=%41&b=%00&c HTTP/1.1\r\nHost: x\r\n" CLOSE "\r\n"),
		BYTES("HTTP/1.0", "GET /health HTTP/1.0\r\n\r\n"),
		BYTES("bytes beyond ASCII in a value",
			"GET /health HTTP/1.1\r\nHost: x\r\nX: \xc3\xa4\r\n" CLOSE "\r\n"),
		BYTES("two in one piece",
			"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
			"GET /health HTTP/1.1\r\nHost: x\r\n" CLOSE "\r\n"),
	};
	struct rig *r = rig_new(NULL);

	(void)state;
	for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
		sb_autofree char *out = rig_raw(r, good[i].text, good[i].len);

		if (strncmp(out, "HTTP/1.", 7) != 0 || strncmp(out + 8, " 200 ", 5) != 0)
			fail_msg("%s: \"%s\"", good[i].what, out);
	}
	rig_free(r);
}

/* The header may come in any pieces. */
static void
pieces_make_no_difference(void **state)
{
	static const char text[] =
		ECHO "Host: x\r\n" JSON CLOSE "X: 1\r\nContent-Length: 12\r\n\r\n" BODY;
	struct rig *r = rig_new(NULL);
	char out[1024];
	ssize_t n;

	(void)state;
	for (size_t cut = 1; cut < sizeof text - 1; cut += 7) {
		int fd = rig_connect(r);

		assert_int_equal(send(fd, text, cut, MSG_NOSIGNAL), (ssize_t)cut);
		(void)poll(NULL, 0, 1);
		(void)send(fd, text + cut, sizeof text - 1 - cut, MSG_NOSIGNAL);
		n = recv(fd, out, sizeof out - 1, 0);
		assert_true(n > 0);
		out[n] = '\0';
		assert_has(out, "HTTP/1.1 200 ");
		(void)close(fd);
	}
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_can_be_misread_are_refused),
		cmocka_unit_test(other_nonsense_ends_the_connection),
		cmocka_unit_test(ordinary_requests_are_not),
		cmocka_unit_test(pieces_make_no_difference),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
