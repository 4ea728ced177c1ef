/* SPDX-License-Identifier: MIT */
/* Whether, and when, a request goes out again. */
#include "config.h"

#include <errno.h>
#include <poll.h>
#include <time.h>

#include <base/random.h>
#include <base/str.h>
#include <base/work.h>
#include <cloud/http/rest-priv.h>

#define AFTER_SPREAD_MS 1000 /* who was told the same time does not come at the same moment */

const struct sb_cancel *
sb_rest_again_token(void)
{
	const struct sb_cancel *c = sb_work_under(NULL);

	(void)sb_work_under(c);
	return c;
}

bool
sb_rest_again_body(const struct sb_rest_try *t)
{
	return !t->read_begun || t->q->rewind;
}

static bool
status_again(int status)
{
	return status == 408 || status == 500 || status == 502 || status == 503 || status == 504;
}

static bool
wanted(const struct sb_rest_try *t, int r)
{
	if (t->q->again == SB_REST_ONCE || t->handed_on || !sb_rest_again_body(t))
		return false;
	if (r == 0 && t->a->status == 429)
		return true;
	if (r < 0 && !t->sent)
		return r == SB_E_CONNECT || r == SB_E_CLOSED;
	if (t->q->again != SB_REST_REPEAT)
		return false;
	return r == 0 ? status_again(t->a->status) :
			(r == SB_E_CLOSED || r == SB_E_CONNECT || r == SB_E_TIMEOUT);
}

/* A number from 0 up to `max`. */
static int64_t
any_of(int64_t max)
{
	uint32_t v = 0;

	if (max <= 0 || sb_random(&v, sizeof v, NULL) < 0)
		return 0;
	return (int64_t)(v % ((uint64_t)max + 1));
}

int64_t
sb_rest_again_in(const struct sb_rest_try *t, int r)
{
	const struct sb_rest_opts *o = &t->client->o;
	int64_t after, pause = o->pause_ms;

	/* A callback's mistake is nobody's fault here. */
	if (t->n >= o->tries || t->err.code < 0 || !wanted(t, r))
		return -1;
	after = r == 0 ? sb_rest_retry_after(t->a) : -1;
	if (after >= 0) {
		int64_t spread = after / 10 + 50;

		if (after > o->retry_after_max_ms)
			return -1;
		return after + any_of(spread < AFTER_SPREAD_MS ? spread : AFTER_SPREAD_MS);
	}
	for (unsigned i = 1; i < t->n && pause < o->pause_max_ms; i++)
		pause *= 2;
	if (pause > o->pause_max_ms)
		pause = o->pause_max_ms;
	return pause / 2 + any_of(pause - pause / 2);
}

int
sb_rest_again_pause(int64_t ms, const struct sb_rest_wait *w, const char *what,
	struct sb_error *err)
{
	sb_deadline until = sb_now_ms() + ms;
	const struct sb_cancel *work = sb_rest_again_token();
	struct pollfd fds[2] = { { .fd = sb_cancel_fd(w->cancel), .events = POLLIN },
		{ .fd = sb_cancel_fd(work), .events = POLLIN } };

	for (;;) {
		int r = sb_check_alive(w->cancel, w->deadline, what, err);

		if (r == 0)
			r = sb_work_alive(err);
		if (r < 0 || sb_deadline_passed(until))
			return r;
		(void)poll(fds, 2, sb_deadline_poll_ms(sb_deadline_min(until, w->deadline)));
	}
}

int64_t
sb_rest_retry_after(const struct sb_rest_answer *a)
{
	const char *text = sb_rest_header(a, "retry-after");
	time_t then, now = time(NULL);
	int64_t s;

	if (!text)
		return -1;
	if (sb_str_to_i64(text, 0, 86400 * 365, &s))
		return s * 1000;
	then = curl_getdate(text, NULL);
	if (then < 0)
		return -1;
	return then > now ? (int64_t)(then - now) * 1000 : 0;
}
