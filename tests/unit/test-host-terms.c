/* SPDX-License-Identifier: MIT */
/* On what terms a host keeps sessions: who may change them, for how long, how many more fit. */
#include "config.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

static void
make(struct hostfix *f, const char *id)
{
	struct sb_host_session s;

	hostfix_create(f, id, &s);
	sb_host_session_clear(&s);
}

static void
a_lower_token_is_refused(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_call old = { .deadline = SB_NEVER, .fence = 4 };

	make(f, "one");
	assert_ok(sb_host_session_fence(f->h, "one", 5, &f->err), &f->err);
	assert_ok(sb_host_session_fence(f->h, "one", 5, &f->err), &f->err);
	assert_fails(sb_host_session_fence(f->h, "one", 4, &f->err), SB_E_FENCED, &f->err);
	assert_string_equal(f->err.msg,
		"sandbox: fenced off by a newer token: session one has seen 5, this call has 4");
	/* Also where the look at it was passed before: an operation looks again at its turn. */
	assert_fails(sb_host_session_pause(f->h, "one", &old, &f->err), SB_E_FENCED, &f->err);
	assert_int_equal(hostfix_state(f, "one"), SB_HOST_ACTIVE);
	old.fence = 5;
	assert_ok(sb_host_session_pause(f->h, "one", &old, &f->err), &f->err);
	/* Without one nothing is checked; another session has tokens of its own. */
	assert_ok(sb_host_session_resume(f->h, "one", NULL, &f->err), &f->err);
	assert_ok(sb_host_session_fence(f->h, "one", 0, &f->err), &f->err);
	make(f, "two");
	assert_ok(sb_host_session_fence(f->h, "two", 1, &f->err), &f->err);
	assert_fails(sb_host_session_fence(f->h, "a/b", 1, &f->err), SB_E_INVAL, &f->err);
	assert_fails(sb_host_session_fence(f->h, "one", UINT64_MAX, &f->err), SB_E_INVAL, &f->err);
}

static void
a_token_outlives_host_and_session(void **state)
{
	struct hostfix *f = *state;

	make(f, "one");
	assert_ok(sb_host_session_fence(f->h, "one", INT64_MAX - 1, &f->err), &f->err);
	hostfix_reopen(f);
	assert_fails(sb_host_session_fence(f->h, "one", 7, &f->err), SB_E_FENCED, &f->err);
	assert_ok(sb_host_session_destroy(f->h, "one", false, NULL, &f->err), &f->err);
	assert_fails(sb_host_session_fence(f->h, "one", 7, &f->err), SB_E_FENCED, &f->err);
	hostfix_reopen(f);
	assert_fails(sb_host_session_fence(f->h, "one", 7, &f->err), SB_E_FENCED, &f->err);
	assert_ok(sb_host_session_fence(f->h, "one", INT64_MAX, &f->err), &f->err);
}

static bool
becomes(struct hostfix *f, const char *id, enum sb_host_state want)
{
	for (int i = 0; i < 6000; i++) {
		if (hostfix_state(f, id) == want)
			return true;
		(void)usleep(10000);
	}
	return false;
}

/* Its files stay, what runs is stopped, and a resume begins anew. */
static void
a_session_is_paused_when_its_time_is_over(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_capabilities c;
	struct sb_host_session s;
	struct sb_host_tool_request q = SB_HOST_TOOL_REQUEST_INIT;
	struct sb_host_tool_result r;

	f->o.max_session_ms = 1500;
	hostfix_reopen(f);
	sb_host_capabilities(f->h, &c);
	assert_int_equal(c.max_session_ms, 1500);
	assert_ok(sb_host_start(f->h, &f->err), &f->err);
	hostfix_create(f, "one", &s);
	assert_int_equal(s.expires_ns, s.created_ns + INT64_C(1500000000));
	sb_host_session_clear(&s);
	hostfix_write(f, "one", "work", "done\n");
	/* A tool that does not end does not hold it up. */
	q.session = "one";
	q.tool = "bash";
	q.params = "{\"cmd\":\"exec sleep 1000\"}";
	assert_true(sb_host_tool_execute(f->h, &q, NULL, &r, &f->err) < 0);
	assert_true(becomes(f, "one", SB_HOST_PAUSED));
	assert_ok(sb_host_session_get(f->h, "one", false, &s, &f->err), &f->err);
	assert_int_equal(s.expires_ns, 0);
	sb_host_session_clear(&s);
	assert_true(hostfix_holds(f, "one", "work", "done\n"));
	assert_ok(sb_host_session_resume(f->h, "one", NULL, &f->err), &f->err);
	assert_ok(sb_host_session_get(f->h, "one", false, &s, &f->err), &f->err);
	assert_true(s.expires_ns > (int64_t)time(NULL) * 1000000000);
	sb_host_session_clear(&s);
	assert_true(becomes(f, "one", SB_HOST_PAUSED));
}

static void
or_destroyed_where_the_operator_says_so(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_session s;
	int r = 0;

	f->o.max_session_ms = 200;
	f->o.expire_destroys = true;
	hostfix_reopen(f);
	make(f, "one");
	assert_ok(sb_host_start(f->h, &f->err), &f->err);
	for (int i = 0; i < 6000 && r == 0; i++) {
		r = sb_host_session_get(f->h, "one", false, &s, &f->err);
		if (r == 0)
			sb_host_session_clear(&s);
		(void)usleep(10000);
	}
	assert_int_equal(r, SB_E_SESSION_NOT_FOUND);
}

static void
health_tells_how_many_more_fit(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_capabilities c;
	struct sb_host_health s;

	sb_host_health(f->h, NULL, &s);
	assert_int_equal(s.max_sessions, 0);
	assert_int_equal(s.free_sessions, 0);
	assert_int_equal(s.cpus, sysconf(_SC_NPROCESSORS_ONLN));
	assert_true(s.mem_mb > 0 && s.mem_free_mb > 0 && s.mem_free_mb <= s.mem_mb);
	f->o.max_sessions = 3;
	hostfix_reopen(f);
	sb_host_capabilities(f->h, &c);
	assert_int_equal(c.concurrent_sessions, 3);
	make(f, "one");
	make(f, "two");
	sb_host_health(f->h, NULL, &s);
	assert_int_equal(s.max_sessions, 3);
	assert_int_equal(s.free_sessions, 1);
}

static void
ids_can_be_checked_beforehand(void **state)
{
	struct hostfix *f = *state;

	assert_ok(sb_host_session_id_check("a.b_c-1", &f->err), &f->err);
	for (const char *const *bad =
			(const char *[]){ "", "a/b", "..", "a..b", "-a", "a b", "a\n", NULL };
		*bad; bad++)
		assert_fails(sb_host_session_id_check(*bad, &f->err), SB_E_INVAL, &f->err);
	assert_fails(sb_host_session_id_check(NULL, &f->err), SB_E_INVAL, &f->err);
}

/* Where ports listen and where they are said to be are two things. */
static void
ports_listen_here_and_are_told_there(void **state)
{
	struct hostfix *f = *state;
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	struct sb_host_process p;
	struct sb_host *h;

	sb_host_close(f->h);
	f->h = NULL;
	f->o.bind_addr = "0.0.0.0";
	h = sb_host_open(&f->o, &f->err);
	assert_null(h);
	assert_int_equal(f->err.code, SB_E_INVAL);
	f->o.bind_addr = "127.0.0.2";
	f->o.advertise_addr = "far.example";
	hostfix_open(f);
	make(f, "one");
	l.session = "one";
	l.binary = "sleep";
	l.args = (const char *const[]){ "1000", NULL };
	l.expose_port = 18080;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), &f->err);
	assert_int_equal(strncmp(p.address, "far.example:", 12), 0);
	{
		char cmd[200];

		(void)snprintf(cmd, sizeof cmd,
			"grep -q \"$(printf '0200007F:%%04X' %s)\" /proc/net/tcp", p.address + 12);
		assert_int_equal(hostfix_run((const char *const[]){ "/bin/sh", "-c", cmd, NULL }),
			0);
	}
	sb_host_process_clear(&p);
}

int
main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, hostfix_setup, hostfix_teardown)
	const struct CMUnitTest tests[] = {
		T(a_lower_token_is_refused),
		T(a_token_outlives_host_and_session),
		T(a_session_is_paused_when_its_time_is_over),
		T(or_destroyed_where_the_operator_says_so),
		T(health_tells_how_many_more_fit),
		T(ids_can_be_checked_beforehand),
		T(ports_listen_here_and_are_told_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
