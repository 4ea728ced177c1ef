/* SPDX-License-Identifier: MIT */
/*
 * Bytes that a stranger sends to a server, through the real one: it survives, and a request that it
 * takes is one that everybody reads the same way, by rules that are written down here once more.
 */
#include "config.h"

#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <rpc/server/server.h>

#include "fuzz.h"

#define REQUEST_MAX 20000

static int
echo(struct sb_rpc_call *call, const json_t *in, json_t **out, struct sb_error *err)
{
	(void)call;
	(void)err;
	*out = json_deep_copy(in);
	return 0;
}

static const struct sb_rpc_method methods[] = {
	{ "Echo", SB_RPC_READ | SB_RPC_INLINE, false, echo, NULL },
};
static const struct sb_rpc_service service = { .name = "t.T", .methods = methods, .n = 1 };
static struct sockaddr_un where = { .sun_family = AF_UNIX };

static void
forget_socket(void)
{
	(void)unlink(where.sun_path);
}

static void
start(void)
{
	struct sb_rpc_server_opts o = SB_RPC_SERVER_OPTS_INIT;
	const char *dir = getenv("TMPDIR");
	const char *listen[] = { where.sun_path, NULL };

	(void)signal(SIGPIPE, SIG_IGN);
	(void)snprintf(where.sun_path, sizeof where.sun_path, "%.70s/fuzz-http.%d",
		dir && dir[0] ? dir : "/tmp", (int)getpid());
	o.listen = listen;
	o.header_ms = o.body_ms = o.idle_ms = 2000;
	FUZZ_CHECK(sb_rpc_server_start(&o, &service, NULL));
	(void)atexit(forget_socket);
}

/* The answer's first bytes. */
static size_t
ask(const uint8_t *data, size_t len, char *out, size_t size)
{
	struct timeval limit = { .tv_sec = 10 };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t got = 0;
	ssize_t n;

	FUZZ_CHECK(fd >= 0 && connect(fd, (const struct sockaddr *)&where, sizeof where) == 0);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	for (size_t at = 0; at < len; at += (size_t)n)
		if ((n = send(fd, data + at, len - at, MSG_NOSIGNAL)) <= 0)
			break;
	/* Who half closes may get no answer; a moment first, for those who get one at once. */
	(void)poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 2);
	(void)shutdown(fd, SHUT_WR);
	while (got < size && (n = recv(fd, out + got, size - got, 0)) > 0)
		got += (size_t)n;
	(void)close(fd);
	return got;
}

static size_t
named(const char *line, size_t len, const char *name)
{
	size_t n = strlen(name);

	return len > n && line[n] == ':' && strncasecmp(line, name, n) == 0;
}

/* Whether the header of the first request is one by the book. */
static bool
is_strict(const char *p, size_t len)
{
	const char *end = memmem(p, len, "\r\n\r\n", 4);
	size_t hosts = 0, lengths = 0, codings = 0;
	bool old = memmem(p, len, " HTTP/1.0\r\n", 11) != NULL;

	if (!end)
		return false;
	for (const char *q = p; q < end; q++)
		if (*q == '\0' || *q == '\n' || (*q == '\r' && q[1] != '\n'))
			return false;
		else if (*q == '\r')
			q++;
	for (const char *eol; p < end; p = eol + 2) {
		size_t n = 0;

		/* Each line ends in CRLF: that was seen above. */
		while (p[n] != '\r')
			n++;
		eol = p + n;
		hosts += named(p, n, "Host");
		lengths += named(p, n, "Content-Length");
		codings += named(p, n, "Transfer-Encoding");
		if (*p == ' ' || *p == '\t')
			return false;
	}
	return lengths + codings <= 1 && (hosts == 1 || (old && hosts == 0));
}

/* libmicrohttpd before 0.9.77 leaves the same behind of NUL LF as of CRLF; see doc/SECURITY.md. */
static const uint8_t *
copy_lines(const uint8_t *data, size_t len, uint8_t *out)
{
	for (size_t i = 0; i < len; i++)
		out[i] = data[i] == '\0' && i + 1 < len && data[i + 1] == '\n' ? '\r' : data[i];
	return out;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	static bool started;
	static uint8_t copy[REQUEST_MAX];
	char out[512];
	size_t n;

	if (!started)
		start();
	started = true;
	if (len > REQUEST_MAX)
		return 0;
	n = ask(data, len, out, sizeof out);
	data = copy_lines(data, len, copy);
	/* Empty lines in front of a request are skipped. */
	while (len > 0 && (data[0] == '\r' || data[0] == '\n')) {
		data++;
		len--;
	}
	if (n > 12 && memcmp(out, "HTTP/1.", 7) == 0 && out[9] == '2')
		FUZZ_CHECK(is_strict((const char *)data, len));
	return 0;
}
