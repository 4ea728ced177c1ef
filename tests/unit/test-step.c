/* SPDX-License-Identifier: MIT */
/* The steps of a run: their names, the clock, and that real runs pass through the right ones. */
#include "config.h"

#include "tests/lib/unit.h"

#include <stdatomic.h>
#include <sys/stat.h>

#include <base/cleanup.h>
#include <base/str.h>
#include <sb/cancel.h>
#include <sbsync/session.h>
#include <sbsync/sync.h>
#include <sync/run/step.h>

#include "tests/lib/tmpdir.h"

static void
names_are_the_nine_words(void **state)
{
	static const char *const words[] = { "connect", "scan", "exchange", "plan", "transfer",
		"stage", "verify", "commit", "record" };

	(void)state;
	assert_int_equal(SB_STEPS, 9);
	for (int i = 0; i < SB_STEPS; i++)
		assert_string_equal(sb_step_name((enum sb_step)i), words[i]);
	assert_string_equal(sb_step_name(SB_STEPS), "unknown");
	assert_string_equal(sb_step_name((enum sb_step) - 1), "unknown");
}

static int64_t
all_steps(const struct sb_sync_result *r)
{
	int64_t sum = 0;

	for (int i = 0; i < SB_STEPS; i++)
		sum += r->phases_ms[i];
	return sum;
}

/* Waits until the clock of the steps has moved on. */
static void
let_time_pass(void)
{
	int64_t start = sb_now_ms();

	while (sb_now_ms() < start + 2)
		;
}

static void
every_moment_belongs_to_one_step(void **state)
{
	struct sb_sync_result r = { 0 };
	struct sb_step_clock c;
	int64_t start;

	(void)state;
	sb_step_start(&c, &r, SB_STEP_SCAN);
	start = c.since;
	let_time_pass();
	sb_step_next(&c, SB_STEP_COMMIT);
	assert_true(r.phases_ms[SB_STEP_SCAN] >= 2);
	let_time_pass();
	/* Told by the answer: it was no commit yet. */
	sb_step_was(&c, SB_STEP_VERIFY);
	sb_step_next(&c, SB_STEP_TRANSFER);
	assert_int_equal(r.phases_ms[SB_STEP_COMMIT], 0);
	assert_true(r.phases_ms[SB_STEP_VERIFY] >= 2);
	let_time_pass();
	sb_step_stop(&c);
	assert_true(r.phases_ms[SB_STEP_TRANSFER] >= 2);
	assert_int_equal(all_steps(&r), c.since - start);
}

struct bed {
	struct tmpdir dir;
	char a[300], b[300], state[300], sbsync[600];
	const char *agent[3];
	struct sb_sync_opts o;
	atomic_uint told; /* bits: which steps the progress callback was told of, by any thread */
	struct sb_progress last[SB_STEPS]; /* the most that was told in each */
};

static void
note_step(const struct sb_progress *p, void *arg)
{
	struct bed *b = arg;

	atomic_fetch_or(&b->told, 1u << p->step);
	if (p->bytes >= b->last[p->step].bytes)
		b->last[p->step] = *p;
	assert_true(!p->bytes_total || p->bytes <= p->bytes_total);
}

static int
setup(void **state)
{
	const char *top = getenv("SB_TOP_BUILDDIR");
	struct bed *b = calloc(1, sizeof *b);

	if (!b)
		return -1;
	*state = b;
	tmpdir_make(&b->dir);
	(void)snprintf(b->a, sizeof b->a, "%s/a", b->dir.path);
	(void)snprintf(b->b, sizeof b->b, "%s/b", b->dir.path);
	(void)snprintf(b->state, sizeof b->state, "%s/state", b->dir.path);
	(void)snprintf(b->sbsync, sizeof b->sbsync, "%s/sbsync", top ? top : ".");
	(void)setenv("SBSYNC_STATE_DIR", b->state, 1);
	b->agent[0] = b->sbsync;
	b->agent[1] = "agent";
	b->o = (struct sb_sync_opts)SB_SYNC_OPTS_INIT;
	b->o.agent = b->agent;
	b->o.state_dir = b->state;
	b->o.durability = SB_SYNC_DURABLE_NONE;
	b->o.progress = note_step;
	b->o.progress_arg = b;
	return mkdir(b->a, 0755);
}

static int
teardown(void **state)
{
	struct bed *b = *state;

	tmpdir_remove(&b->dir);
	free(b);
	return 0;
}

static void
write_file(const char *dir, const char *name, const char *text)
{
	sb_autofree char *path = sb_str_printf("%s/%s", dir, name);
	FILE *f = path ? fopen(path, "w") : NULL;

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Exactly the steps of the mask were told of; those that were not took no time. */
static void
assert_steps(struct bed *b, const struct sb_sync_result *r, unsigned mask)
{
	assert_int_equal(atomic_exchange(&b->told, 0), mask);
	for (int i = 0; i < SB_STEPS; i++)
		if (!(mask >> i & 1))
			assert_int_equal(r->phases_ms[i], 0);
	assert_true(all_steps(r) <= r->duration_ms);
}

#define BIT(step) (1u << SB_STEP_##step)
#define LOOK (BIT(CONNECT) | BIT(SCAN) | BIT(EXCHANGE) | BIT(PLAN) | BIT(RECORD))

static void
a_push_and_one_with_nothing_to_do(void **state)
{
	struct bed *b = *state;
	struct sb_sync_result r;
	struct sb_error err = { 0 };

	write_file(b->a, "f", "one\n");
	assert_ok(sb_sync_mirror(b->a, b->b, &b->o, &r, &err), &err);
	assert_int_equal(r.files_synced, 1);
	assert_steps(b, &r, LOOK | BIT(TRANSFER) | BIT(COMMIT));
	sb_sync_result_free(&r);
	assert_ok(sb_sync_mirror(b->a, b->b, &b->o, &r, &err), &err);
	assert_int_equal(r.files_synced, 0);
	assert_steps(b, &r, LOOK);
	sb_sync_result_free(&r);
}

static void
a_pull_stages_and_verifies_here(void **state)
{
	struct bed *b = *state;
	struct sb_session_start how = SB_SESSION_START_INIT;
	struct sb_session s = { 0 };
	struct sb_sync_result r;
	struct sb_error err = { 0 };

	write_file(b->a, "f", "one\n");
	how.name = "steps";
	assert_ok(sb_session_start(b->a, b->b, &how, &b->o, SB_SESSION_KEEP_BOTH, &s, &r, &err),
		&err);
	assert_steps(b, &r, LOOK | BIT(TRANSFER) | BIT(COMMIT));
	sb_sync_result_free(&r);
	write_file(b->b, "g", "two\n");
	assert_ok(sb_session_sync(&s, SB_REASON_TURN, &b->o, SB_SESSION_AS_STARTED, &r, &err),
		&err);
	assert_int_equal(r.files_synced, 1);
	assert_steps(b, &r, LOOK | BIT(TRANSFER) | BIT(STAGE) | BIT(VERIFY) | BIT(COMMIT));
	sb_sync_result_free(&r);
	sb_session_free(&s);
}

#define HUGE_FILE (24u << 20)

/* A file that takes longer than the callback's interval, with content that does not repeat. */
static void
huge_file(const char *dir, const char *name)
{
	sb_autofree char *path = sb_str_printf("%s/%s", dir, name);
	sb_autofree uint64_t *block = calloc(1u << 17, sizeof *block);
	FILE *f = path ? fopen(path, "w") : NULL;
	uint64_t x = 88172645463325252u;

	assert_non_null(f);
	assert_non_null(block);
	for (size_t at = 0; at < HUGE_FILE; at += 1u << 20) {
		for (size_t i = 0; i < 1u << 17; i++) {
			x ^= x << 13;
			x ^= x >> 7;
			x ^= x << 17;
			block[i] = x;
		}
		assert_int_equal(fwrite(block, 1, 1u << 20, f), 1u << 20);
	}
	assert_int_equal(fclose(f), 0);
}

/* Bytes move within a file, when it is hashed and when it travels; the end is all of it. */
static void
progress_tells_bytes_and_ends_with_all(void **state)
{
	struct bed *b = *state;
	struct sb_session_start how = SB_SESSION_START_INIT;
	struct sb_session s = { 0 };
	struct sb_sync_result r;
	struct sb_error err = { 0 };

	for (int i = 0; i < 101; i++) {
		char name[16];

		(void)snprintf(name, sizeof name, "f%d", i);
		write_file(b->a, name, name);
	}
	huge_file(b->a, "huge");
	how.name = "bytes";
	assert_ok(sb_session_start(b->a, b->b, &how, &b->o, SB_SESSION_KEEP_BOTH, &s, &r, &err),
		&err);
	sb_sync_result_free(&r);
	assert_true(b->last[SB_STEP_SCAN].bytes_total >= HUGE_FILE);
	assert_int_equal(b->last[SB_STEP_SCAN].bytes, b->last[SB_STEP_SCAN].bytes_total);
	assert_int_equal(b->last[SB_STEP_TRANSFER].files, 102);
	assert_int_equal(b->last[SB_STEP_TRANSFER].files_total, 102);
	assert_int_equal(b->last[SB_STEP_TRANSFER].bytes, b->last[SB_STEP_TRANSFER].bytes_total);
	assert_true(b->last[SB_STEP_TRANSFER].bytes > HUGE_FILE);
	write_file(b->b, "back", "another one\n");
	huge_file(b->b, "huge2");
	write_file(b->b, "f7", "changed\n");
	assert_ok(sb_session_sync(&s, SB_REASON_TURN, &b->o, SB_SESSION_AS_STARTED, &r, &err),
		&err);
	sb_sync_result_free(&r);
	assert_int_equal(b->last[SB_STEP_VERIFY].files, b->last[SB_STEP_VERIFY].files_total);
	assert_int_equal(b->last[SB_STEP_VERIFY].bytes, b->last[SB_STEP_VERIFY].bytes_total);
	sb_session_free(&s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_the_nine_words),
		cmocka_unit_test(every_moment_belongs_to_one_step),
		cmocka_unit_test_setup_teardown(a_push_and_one_with_nothing_to_do, setup, teardown),
		cmocka_unit_test_setup_teardown(a_pull_stages_and_verifies_here, setup, teardown),
		cmocka_unit_test_setup_teardown(progress_tells_bytes_and_ends_with_all, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
