/* SPDX-License-Identifier: MIT */
/*
 * Frames over a pair of pipes: what a far side may do to keep us waiting (attack group 21), proofs,
 * blobs.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <sync/wire/proto.h>
#include <sync/wire/wire.h>

#include "tests/lib/unit.h"

/*
 * A far side in a thread: writes the same bytes again and again, with a pause between, until nobody
 * reads them.
 */
struct far {
	int fd;
	uint8_t bytes[600];
	size_t len;
	useconds_t pause;
	pthread_t thread;
};

struct near {
	struct sb_transport *t;
	struct sb_wire *w;
	int rfd;
	int wfd;
	struct far far;
};

static void *
far_loop(void *arg)
{
	struct far *f = arg;

	while (write(f->fd, f->bytes, f->len) > 0 || errno == EINTR)
		if (f->pause)
			(void)usleep(f->pause);
	return NULL;
}

static void
open_near(struct near *x, int stall_ms, int busy_ms)
{
	struct sb_wire_opts o = SB_WIRE_OPTS_INIT;
	int p[2];

	memset(x, 0, sizeof *x);
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	x->rfd = p[0];
	x->far.fd = p[1];
	x->wfd = open("/dev/null", O_WRONLY | O_CLOEXEC);
	assert_true(x->wfd >= 0);
	o.stall_ms = stall_ms;
	o.busy_ms = busy_ms;
	o.ping_ms = 0;
	x->t = sb_transport_fds(x->rfd, x->wfd, NULL);
	assert_non_null(x->t);
	x->w = sb_wire_new(x->t, &o, NULL);
	assert_non_null(x->w);
}

static void
start_far(struct near *x, const void *bytes, size_t len, useconds_t pause)
{
	memcpy(x->far.bytes, bytes, len);
	x->far.len = len;
	x->far.pause = pause;
	assert_int_equal(pthread_create(&x->far.thread, NULL, far_loop, &x->far), 0);
}

static void
close_near(struct near *x)
{
	sb_wire_free(x->w);
	sb_transport_free(x->t);
	(void)close(x->rfd);
	(void)close(x->wfd);
	if (x->far.len)
		(void)pthread_join(x->far.thread, NULL);
	if (x->far.fd >= 0)
		(void)close(x->far.fd);
}

static const uint8_t ping[5] = { 0, 0, 0, 0, SB_MSG_PING };

/* Alive is not enough: at some point it must say something. */
static void
pings_alone_come_to_an_end(void **state)
{
	struct sb_error err = { 0 };
	const uint8_t *p;
	struct near x;
	uint8_t type;
	size_t len;

	(void)state;
	open_near(&x, 5000, 300);
	start_far(&x, ping, sizeof ping, 10000);
	assert_fails(sb_wire_recv(x.w, &type, &p, &len, &err), SB_E_TIMEOUT, &err);
	assert_non_null(strstr(err.msg, "signs of life"));
	close_near(&x);
}

static void
a_flood_of_pings_comes_to_an_end(void **state)
{
	uint8_t many[600];
	struct sb_error err = { 0 };
	const uint8_t *p;
	struct near x;
	uint8_t type;
	size_t len;

	(void)state;
	for (size_t i = 0; i < sizeof many; i += sizeof ping)
		memcpy(many + i, ping, sizeof ping);
	open_near(&x, 5000, 300);
	start_far(&x, many, sizeof many, 0);
	assert_fails(sb_wire_recv(x.w, &type, &p, &len, &err), SB_E_TIMEOUT, &err);
	close_near(&x);
}

/* A frame of which a byte comes now and then. */
static void
a_frame_that_trickles_comes_to_an_end(void **state)
{
	static const uint8_t head[] = { 0, 0, 16, 0, SB_MSG_SCAN };
	struct sb_error err = { 0 };
	const uint8_t *p;
	struct near x;
	uint8_t type;
	size_t len;

	(void)state;
	open_near(&x, 5000, 300);
	assert_int_equal(write(x.far.fd, head, sizeof head), sizeof head);
	start_far(&x, "x", 1, 10000);
	assert_fails(sb_wire_recv(x.w, &type, &p, &len, &err), SB_E_TIMEOUT, &err);
	close_near(&x);
}

static void
silence_comes_to_an_end(void **state)
{
	struct sb_error err = { 0 };
	const uint8_t *p;
	struct near x;
	uint8_t type;
	size_t len;

	(void)state;
	open_near(&x, 100, 0);
	assert_fails(sb_wire_recv(x.w, &type, &p, &len, &err), SB_E_TIMEOUT, &err);
	assert_non_null(strstr(err.msg, "no byte"));
	close_near(&x);
}

/* Each frame that says something starts the time anew. */
static void
news_start_the_time_anew(void **state)
{
	static const uint8_t news[] = { 1, 0, 0, 0, SB_MSG_ROWS, 0 };
	struct sb_error err = { 0 };
	const uint8_t *p;
	struct near x;
	uint8_t type;
	size_t len;

	(void)state;
	open_near(&x, 5000, 2000);
	start_far(&x, news, sizeof news, 50000);
	/* 50 frames with 50 ms between them take longer than 2 s. */
	for (unsigned i = 0; i < 50; i++) {
		assert_ok(sb_wire_recv(x.w, &type, &p, &len, &err), &err);
		assert_int_equal(type, SB_MSG_ROWS);
		assert_int_equal(len, 1);
	}
	close_near(&x);
}

/* What one wire sends, another reads: frames, blobs, a proof that fits and one that does not. */
static void
what_is_sent_arrives(void **state)
{
	struct sb_wire_opts o = SB_WIRE_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf blob = { 0 }, got = { 0 };
	struct sb_error err = { 0 };
	struct sb_transport *t;
	struct sb_wire *far;
	const uint8_t *p;
	struct near x;
	uint8_t type;
	size_t len;

	(void)state;
	sb_buf_init(&got, 0);
	sb_buf_init(&blob, 1 << 20);
	for (unsigned i = 0; i < 5000; i++)
		sb_buf_addf(&blob, "line %u\n", i);
	open_near(&x, 5000, 0);
	o.ping_ms = 0;
	t = sb_transport_fds(x.wfd, x.far.fd, NULL);
	assert_non_null(t);
	far = sb_wire_new(t, &o, NULL);
	assert_non_null(far);
	assert_ok(sb_wire_send(far, SB_MSG_ROWS, "abc", 3, &err), &err);
	assert_ok(sb_wire_send_blob(far, SB_MSG_MANIFEST, blob.data, blob.len, &err), &err);
	assert_ok(sb_wire_send_proof(far, &err), &err);
	assert_ok(sb_wire_recv(x.w, &type, &p, &len, &err), &err);
	assert_int_equal(len, 3);
	assert_ok(sb_wire_expect(x.w, SB_MSG_MANIFEST, &p, &len, &err), &err);
	assert_ok(sb_wire_recv_blob(x.w, SB_MSG_MANIFEST, p, len, 1 << 20, &got, &err), &err);
	assert_int_equal(got.len, blob.len);
	assert_memory_equal(got.data, blob.data, blob.len);
	assert_ok(sb_wire_expect(x.w, SB_MSG_PROOF, &p, &len, &err), &err);
	assert_ok(sb_wire_send_blob(far, SB_MSG_MANIFEST, blob.data, blob.len, &err), &err);
	assert_ok(sb_wire_send(far, SB_MSG_PROOF, blob.data, 32, &err), &err);
	assert_ok(sb_wire_flush(far, &err), &err);
	assert_ok(sb_wire_expect(x.w, SB_MSG_MANIFEST, &p, &len, &err), &err);
	sb_buf_free(&got);
	assert_fails(sb_wire_recv_blob(x.w, SB_MSG_MANIFEST, p, len, 1000, &got, &err), SB_E_LIMIT,
		&err);
	assert_fails(sb_wire_recv(x.w, &type, &p, &len, &err), SB_E_PROTO, &err);
	sb_wire_free(far);
	sb_transport_free(t);
	close_near(&x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pings_alone_come_to_an_end),
		cmocka_unit_test(a_flood_of_pings_comes_to_an_end),
		cmocka_unit_test(a_frame_that_trickles_comes_to_an_end),
		cmocka_unit_test(silence_comes_to_an_end),
		cmocka_unit_test(news_start_the_time_anew),
		cmocka_unit_test(what_is_sent_arrives),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
