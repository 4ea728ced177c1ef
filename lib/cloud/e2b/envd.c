/* SPDX-License-Identifier: MIT */
/* Calls to a sandbox: one answer for one request. Streams: envd-run.c. */
#include "config.h"

#include <cloud/e2b/envd.h>

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <unistd.h>

#include <cloud/e2b/envd-priv.h>
#include <cloud/http/json.h>

/* How long a program may take to go: our agents end theirs with patience (SB_PROC_STOP_MS). */
#define SOON_MS 1000 /* for the first word to a service that may be out of reach */
#define TERM_MS 6000
#define KILL_MS 2000
#define STALL_MS 60000

struct sb_envd *
sb_envd_new(const struct sb_envd_opts *given, struct sb_error *err)
{
	struct sb_envd_opts o = SB_ENVD_OPTS_INIT;
	struct sb_rest_opts ro = SB_REST_OPTS_INIT;
	struct sb_envd *e = calloc(1, sizeof *e);
	struct sb_rest_header h[4];

	if (!e) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	h[0] = (struct sb_rest_header){ "E2b-Sandbox-Id", o.id, false };
	h[1] = (struct sb_rest_header){ "E2b-Sandbox-Port", "49983", false };
	h[2] = (struct sb_rest_header){ "Connect-Protocol-Version", "1", false };
	h[3] = (struct sb_rest_header){ "X-Access-Token", o.token, true };
	ro.base = o.url;
	ro.ca_file = o.ca_file;
	ro.headers = h;
	ro.n_headers = o.token ? 4 : 3;
	ro.stall_ms = STALL_MS;
	ro.log = o.log;
	e->rest = sb_rest_new(&ro, err);
	if (!e->rest) {
		free(e);
		return NULL;
	}
	return e;
}

void
sb_envd_free(struct sb_envd *e)
{
	if (!e)
		return;
	sb_rest_free(e->rest);
	free(e);
}

int
sb_envd_check(struct sb_envd *e, const struct sb_rest_answer *a, const char *what,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	json_t *v;
	int r;

	/* What stands before a sandbox says so when there is none behind it. */
	if (a->status == 502)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s: it is gone or paused (%s)",
			sb_code_text(SB_E_SANDBOX_NOT_FOUND), sb_rest_name(e->rest));
	r = sb_rest_check(a, what, &why);
	/* Its word for a program that reads no more. A 500 of anybody else is another thing. */
	v = a->status == 500 ? sb_json_parse(a->body.data, a->body.len, NULL) : NULL;
	if (v && sb_json_get(v, "code") && strcmp(sb_json_get(v, "code"), "internal") == 0)
		r = why.code = SB_E_STATE;
	json_decref(v);
	if (r < 0 && err)
		*err = why;
	return r;
}

int
sb_envd_ask(struct sb_envd *e, const char *method, json_t *in, enum sb_rest_again again,
	const struct sb_rest_wait *wait, json_t **out, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	sb_auto(sb_buf) struct sb_buf target;
	int r;

	sb_buf_init(&target, 256);
	sb_buf_add_str(&target, "/process.Process");
	sb_rest_add_segment(&target, method);
	q.method = "POST";
	q.target = (char *)target.data;
	q.json = in;
	q.again = again;
	q.secret = true; /* what programs are told is nobody's business */
	r = in ? sb_rest_call(e->rest, &q, wait, &a, err) :
		 sb_fail(err, SB_E_NOMEM, "out of memory");
	json_decref(in);
	if (r == 0)
		r = sb_envd_check(e, &a, method, err);
	if (r == 0 && out) {
		*out = sb_rest_json(&a, method, err);
		r = *out ? 0 : SB_E_PROTO;
	}
	return r;
}

/* --- files --- */

struct source {
	int fd;
	off_t at;
};

static ssize_t
read_source(void *buf, size_t len, void *arg, struct sb_error *err)
{
	struct source *s = arg;
	ssize_t n = pread(s->fd, buf, len, s->at);

	if (n < 0)
		return sb_fail_errno(err, "read what is sent");
	s->at += n;
	return n;
}

static int
rewind_source(void *arg, struct sb_error *err)
{
	(void)err;
	((struct source *)arg)->at = 0;
	return 0;
}

int
sb_envd_put(struct sb_envd *e, const char *path, int fd, uint64_t size,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	sb_auto(sb_rest_answer) struct sb_rest_answer a = { 0 };
	struct sb_rest_request q = SB_REST_REQUEST_INIT;
	struct source s = { .fd = fd };
	sb_auto(sb_buf) struct sb_buf target;
	int r;

	sb_buf_init(&target, 16384);
	sb_buf_add_str(&target, "/files");
	sb_rest_add_query(&target, "path", path);
	r = sb_buf_check(&target, "path", err);
	q.method = "POST";
	q.target = (char *)target.data;
	q.type = "application/octet-stream";
	q.read = read_source;
	q.rewind = rewind_source;
	q.read_arg = &s;
	q.body_len = size;
	q.again = SB_REST_REPEAT; /* it makes the same file again */
	q.secret = true;
	if (r == 0)
		r = sb_rest_call(e->rest, &q, wait, &a, err);
	return r < 0 ? r : sb_envd_check(e, &a, path, err);
}

/* --- programs that nobody holds --- */

/* Asks it to end: no more input, then a signal that it can act on. */
static int
ask_to_end(struct sb_envd *e, json_int_t pid, const char *sig, const struct sb_rest_wait *wait,
	struct sb_error *err)
{
	int r = sb_envd_ask(e, "CloseStdin", json_pack("{s:{s:I}}", "process", "pid", pid),
		SB_REST_ONCE, wait, NULL, NULL);

	(void)r; /* a terminal has no end of input; the signal comes in any case */
	r = sb_envd_ask(e, "SendSignal",
		json_pack("{s:{s:I}, s:s}", "process", "pid", pid, "signal", sig), SB_REST_ONCE,
		wait, NULL, err);
	return r == SB_E_NOTFOUND ? 0 : r;
}

/* Whose end is wanted. */
struct ending {
	json_int_t pid;
	bool (*gone)(const char *tag, void *arg); /* NULL: the one with that number */
	void *arg;
};

static bool
is_meant(const struct ending *x, const json_t *one)
{
	const char *tag = sb_json_get(one, "tag");

	return x->gone ? tag && x->gone(tag, x->arg) :
			 json_integer_value(json_object_get(one, "pid")) == x->pid;
}

/* How many of them there are; each gets `sig`, unless that is NULL. */
static int
signal_each(struct sb_envd *e, const struct ending *x, const char *sig,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	json_t *v = NULL, *one;
	size_t i;
	int n = 0, r = sb_envd_ask(e, "List", json_object(), SB_REST_REPEAT, wait, &v, err);

	json_array_foreach(json_object_get(v, "processes"), i, one)
	{
		if (r < 0 || !is_meant(x, one))
			continue;
		n++;
		if (sig)
			r = ask_to_end(e, json_integer_value(json_object_get(one, "pid")), sig,
				wait, err);
	}
	json_decref(v);
	return r < 0 ? r : n;
}

/*
 * A signal reaches the one program only: what that has started ends when it does so itself, as our
 * agents do when they are asked. KILL comes last, so.
 */
static int
end_each(struct sb_envd *e, const struct ending *x, const struct sb_rest_wait *soon,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	const struct timespec nap = { .tv_nsec = 20000000 };
	int n = signal_each(e, x, "SIGNAL_SIGTERM", soon, err);

	for (int i = 0; i < 2 && n > 0; i++) {
		sb_deadline until = sb_deadline_in(i == 0 ? TERM_MS : KILL_MS);

		if (i == 1)
			n = signal_each(e, x, "SIGNAL_SIGKILL", wait, err);
		while (n > 0 && !sb_deadline_passed(until)) {
			(void)nanosleep(&nap, NULL);
			n = signal_each(e, x, NULL, wait, err);
		}
	}
	return n < 0 ? n : 0;
}

int
sb_envd_end_program(struct sb_envd *e, json_int_t pid, struct sb_error *err)
{
	const struct sb_rest_wait soon = { NULL, sb_deadline_in(SOON_MS) };
	const struct sb_rest_wait wait = { NULL, sb_deadline_in(TERM_MS + 2 * KILL_MS) };
	const struct ending x = { .pid = pid };

	return end_each(e, &x, &soon, &wait, err);
}

int
sb_envd_sweep(struct sb_envd *e, bool (*gone)(const char *tag, void *arg), void *arg,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	const struct ending x = { .gone = gone, .arg = arg };

	return end_each(e, &x, wait, wait, err);
}
