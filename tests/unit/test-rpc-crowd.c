/* SPDX-License-Identifier: MIT */
/*
 * Many connections, streams, calls and bodies at a time: one tenant does not keep the others out,
 * all of them do not keep the admins out, and strangers keep nobody out.
 */
#include <tests/unit/rpc-toy.h>

#include <linux/sockios.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include <rpc/server/share.h>

#define MANY 64
#define SECOND "second-token-0123456789"

/* Lines of the server's log. */
static struct {
	pthread_mutex_t mu;
	char text[65536];
	size_t len;
	int logins;
} lines = { .mu = PTHREAD_MUTEX_INITIALIZER };

static void
on_line(enum sb_log_level level, const char *component, const char *text, void *arg)
{
	(void)component;
	(void)arg;
	(void)pthread_mutex_lock(&lines.mu);
	if (level <= SB_LOG_INFO && strncmp(text, "failed login", 12) == 0)
		lines.logins++;
	if (lines.len + strlen(text) + 2 < sizeof lines.text)
		lines.len += (size_t)snprintf(lines.text + lines.len, sizeof lines.text - lines.len,
			"%s\n", text);
	(void)pthread_mutex_unlock(&lines.mu);
}

static void
small(struct sb_rpc_server_opts *o)
{
	o->max_calls = 32;
	o->max_streams = 32;
	o->max_connections = 200;
	o->max_message = 65536;
	o->max_buffered = 8 * 2 * 65536;
	o->log = (struct sb_log){ .fn = on_line, .level = SB_LOG_INFO };
}

static struct rig *
crowd_new(void)
{
	struct rig *r = rig_new(small);
	struct sb_error err = { 0 };

	/* The server reads the list as it is; nobody calls yet. */
	assert_ok(sb_rpc_auth_add(r->auth, "b", SB_RPC_ROLE_SESSION, "s2", SECOND, &err), &err);
	for (int i = 0; i < 8; i++) {
		char name[32], token[64], session[32];

		(void)snprintf(name, sizeof name, "t%d", i);
		(void)snprintf(session, sizeof session, "x%d", i);
		(void)snprintf(token, sizeof token, "tenant-%d-token-0123456789", i);
		assert_ok(sb_rpc_auth_add(r->auth, name, SB_RPC_ROLE_SESSION, session, token, &err),
			&err);
	}
	return r;
}

/* A connection with a call under way: an answer that does not end. */
static int
begin(const struct rig *r, const char *method, const char *token, const char *session)
{
	bool stream = strcmp(method, "Follow") == 0;
	char body[128], text[600];
	int n = snprintf(body + 5, sizeof body - 5, "{\"SessionID\":\"%s\"}", session);
	size_t from = stream ? 0 : 5;
	int fd = rig_connect(r), head;

	memset(body, 0, 4);
	body[4] = (char)n;
	head = snprintf(text, sizeof text,
		"POST /toy.v1.Toy/%s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nAuthorization: "
		"Bearer %s\r\nContent-Length: %d\r\n\r\n",
		method, stream ? "application/connect+json" : "application/json", token,
		n + (stream ? 5 : 0));
	assert_int_equal(send(fd, text, (size_t)head, MSG_NOSIGNAL), head);
	assert_true(send(fd, body + from, (size_t)n + 5 - from, MSG_NOSIGNAL) > 0);
	return fd;
}

/* The same, refused: the answer. */
static char *
refused(const struct rig *r, const char *method, const char *token, const char *session)
{
	int fd = begin(r, method, token, session);
	struct timeval limit = { .tv_sec = 8 };
	char *out = calloc(1, 4096);
	size_t len = 0;
	ssize_t n;

	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	while (!strstr(out, "resource_exhausted") && len < 4000 &&
		(n = recv(fd, out + len, 4000 - len, 0)) > 0) {
		len += (size_t)n;
		for (size_t i = 0; i < len; i++)
			out[i] = out[i] ? out[i] : '.';
	}
	(void)close(fd);
	return out;
}

/*
 * The same, when a call has just ended: it counts a moment longer than its handler runs, so a
 * refusal is followed by another try. `waiting` is how many run when this one does.
 */
static int
begin_when_free(struct rig *r, const char *method, const char *token, const char *session,
	int waiting)
{
	for (int tries = 0; tries < 1000; tries++) {
		struct pollfd answer = { .fd = begin(r, method, token, session), .events = POLLIN };

		for (int i = 0; i < 4000 && atomic_load(&r->toy.waiting) != waiting; i++)
			if (poll(&answer, 1, 2) > 0 && answer.revents)
				break;
		if (atomic_load(&r->toy.waiting) == waiting)
			return answer.fd;
		(void)close(answer.fd);
	}
	fail_msg("no room after a call has ended");
	return -1;
}

static void
fill(struct rig *r, const char *method)
{
	int fd[MANY], n = 0;
	sb_autofree char *out = NULL, *crowd = NULL;

	/* An eighth for one ... */
	for (; n < 4; n++)
		fd[n] = begin(r, method, TOY_AGENT, "s1");
	rig_until(&r->toy.waiting, 4);
	out = refused(r, method, TOY_AGENT, "s1");
	assert_has(out, "this token has 4");
	/* ... which is no other's business ... */
	for (; n < 8; n++)
		fd[n] = begin(r, method, SECOND, "s2");
	rig_until(&r->toy.waiting, 8);
	/* ... and seven eighths for all of them. */
	for (int i = 0; i < 5; i++)
		for (int k = 0; k < 4; k++) {
			char token[64], session[32];

			(void)snprintf(session, sizeof session, "x%d", i);
			(void)snprintf(token, sizeof token, "tenant-%d-token-0123456789", i);
			fd[n++] = begin(r, method, token, session);
		}
	rig_until(&r->toy.waiting, 28);
	crowd = refused(r, method, "tenant-7-token-0123456789", "x7");
	assert_has(crowd, "the tokens of all sessions have 28");
	/* The rest is for who runs the place. */
	for (int i = 0; i < 4; i++)
		fd[n++] = begin(r, method, TOY_ADMIN, "s1");
	rig_until(&r->toy.waiting, 32);
	/* What ends makes room. */
	(void)close(fd[0]);
	rig_until(&r->toy.waiting, 31);
	fd[0] = begin_when_free(r, method, TOY_AGENT, "s1", 32);
	for (int i = 0; i < n; i++)
		(void)close(fd[i]);
	rig_until(&r->toy.waiting, 0);
}

static void
one_tenant_leaves_streams_for_others(void **state)
{
	struct rig *r = crowd_new();

	(void)state;
	fill(r, "Follow");
	rig_free(r);
}

static void
one_tenant_leaves_calls_for_others(void **state)
{
	struct rig *r = crowd_new();

	(void)state;
	fill(r, "Wait");
	rig_free(r);
}

/* Until the server has read what was sent. */
static void
until_read(int fd)
{
	int left = 1;

	for (int i = 0; i < 4000 && ioctl(fd, SIOCOUTQ, &left) == 0 && left > 0; i++)
		(void)poll(NULL, 0, 2);
	assert_int_equal(left, 0);
}

/* Bodies that do not come to their end: the bytes of a tenant are bounded, and so is their number.
 */
static void
one_tenant_leaves_room_for_bodies(void **state)
{
	struct rig *r = crowd_new();
	static char part[40000];
	char head[400], answer[2048] = "";
	int fd[4], n;

	(void)state;
	memset(part, ' ', sizeof part);
	n = snprintf(head, sizeof head,
		"POST /toy.v1.Toy/Echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
		"Authorization: Bearer %s\r\nContent-Length: 60000\r\n\r\n",
		TOY_AGENT);
	for (int i = 0; i < 4; i++) {
		fd[i] = rig_connect(r);
		assert_int_equal(send(fd[i], head, (size_t)n, MSG_NOSIGNAL), n);
		assert_true(send(fd[i], part, sizeof part, MSG_NOSIGNAL) > 0);
	}
	for (int i = 0; i < 4; i++)
		until_read(fd[i]);
	/* 128 KiB of the 1 MiB: one of the four has too much, and hears of it at its end. */
	for (int i = 0; i < 4; i++)
		(void)send(fd[i], part, 20000, MSG_NOSIGNAL);
	for (int i = 0; i < 4; i++) {
		char one[512];
		ssize_t got = recv(fd[i], one, sizeof one - 1, 0);

		assert_true(got > 0);
		one[got] = '\0';
		(void)strncat(answer, one, sizeof answer - strlen(answer) - 1);
		(void)close(fd[i]);
	}
	assert_has(answer, "HTTP/1.1 429 ");
	assert_has(answer, "this token has 131072 bytes of request bodies");
	/* Another one is served. */
	{
		sb_autofree char *out = NULL;
		char text[500];

		(void)snprintf(text, sizeof text,
			"POST /toy.v1.Toy/Echo HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
			"Content-Type: application/json\r\nAuthorization: Bearer %s\r\n"
			"Content-Length: 18\r\n\r\n{\"SessionID\":\"s2\"}",
			SECOND);
		out = rig_text(r, text);
		assert_has(out, "HTTP/1.1 200 ");
	}
	rig_free(r);
}

static void
silent_connections_make_room(void **state)
{
	struct rig *r = crowd_new();
	struct sb_rpc_wait wait = { NULL, sb_deadline_in(8000) };
	struct sb_error err = { 0 };
	int fd[400];

	(void)state;
	/* More than there is room for: silent ones, half a header, and ones that asked before. */
	for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++) {
		fd[i] = rig_connect(r);
		if (i % 3 == 1)
			(void)send(fd[i], "GET /hea", 8, MSG_NOSIGNAL);
		if (i % 3 == 2)
			(void)send(fd[i], "GET /health HTTP/1.1\r\nHost: x\r\n\r\n", 34,
				MSG_NOSIGNAL);
	}
	for (int i = 0; i < 20; i++) {
		char *answer = NULL;
		size_t len;
		struct sb_rpc_client *c = rig_client(r->socket, NULL, NULL);

		assert_ok(sb_rpc_client_call(c, "Echo", "{}", &wait, &answer, &len, &err), &err);
		free(answer);
		sb_rpc_client_free(c);
	}
	for (size_t i = 0; i < sizeof fd / sizeof fd[0]; i++)
		(void)close(fd[i]);
	rig_free(r);
}

#define STRANGER \
	"POST /toy.v1.Toy/Echo HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" \
	"Authorization: Bearer nobody-knows-this-token\r\n"

/* Who is not logged in does not hold a connection by a body that does not come. */
static void
strangers_are_sent_away(void **state)
{
	struct rig *r = crowd_new();
	sb_autofree char *large = rig_text(r, STRANGER "Content-Length: 60000000\r\n\r\n");
	sb_autofree char *small_one = rig_text(r, STRANGER "Content-Length: 2\r\n\r\n{}");
	struct timeval limit = { .tv_sec = 30 };
	char out[512];
	int fd;

	(void)state;
	assert_has(large, "HTTP/1.1 401 ");
	assert_has(small_one, "HTTP/1.1 401 ");
	assert_has(small_one, "Connection: close");
	fd = rig_connect(r);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	(void)send(fd, STRANGER "Content-Length: 100\r\n\r\n", sizeof STRANGER + 22, MSG_NOSIGNAL);
	/* Its body may take 60 seconds; it is closed long before. */
	assert_int_equal(recv(fd, out, sizeof out, 0), 0);
	(void)close(fd);
	rig_free(r);
}

static void
failed_logins_are_logged_and_do_not_fill_the_log(void **state)
{
	struct rig *r = crowd_new();
	char want[64];

	(void)state;
	(void)pthread_mutex_lock(&lines.mu);
	lines.len = 0;
	lines.logins = 0;
	(void)pthread_mutex_unlock(&lines.mu);
	for (int i = 0; i < 60; i++) {
		sb_autofree char *out = rig_text(r, STRANGER "Content-Length: 2\r\n\r\n{}");

		assert_has(out, "HTTP/1.1 401 ");
	}
	(void)snprintf(want, sizeof want, "failed login from user %u, process ",
		(unsigned)getuid());
	(void)pthread_mutex_lock(&lines.mu);
	assert_has(lines.text, want);
	assert_null(strstr(lines.text, "nobody-knows"));
	assert_in_range(lines.logins, 20, 40);
	(void)pthread_mutex_unlock(&lines.mu);
	rig_free(r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_tenant_leaves_streams_for_others),
		cmocka_unit_test(one_tenant_leaves_calls_for_others),
		cmocka_unit_test(one_tenant_leaves_room_for_bodies),
		cmocka_unit_test(silent_connections_make_room),
		cmocka_unit_test(strangers_are_sent_away),
		cmocka_unit_test(failed_logins_are_logged_and_do_not_fill_the_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
