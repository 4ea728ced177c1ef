/* SPDX-License-Identifier: MIT */
/*
 * Snapshots of a session whose processes write all the time: each is a state that existed. A writer
 * does one thing after the other: a line is appended, two pages of a mapping are written, a
 * transaction of SQLite commits, a file is replaced by rename; each carries the number of the
 * round. So at any moment these numbers do not grow from one to the next and differ by one at most.
 * WRITERS_SNAPS says how many snapshots (30). By tests/e2e/host-*.sh, on their storage.
 */
#include "config.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <base/file.h>
#include <base/path.h>
#include <host/host-priv.h>
#include <sb/host-exec.h>

#include "tests/lib/hostfix.h"

#define WRITERS 3
#define PYTHON "/usr/bin/python3"
#define FILE_MAX (64u << 20)

static const char script[] =
	"import mmap, os, sqlite3, struct, sys\n"
	"os.mkdir(sys.argv[1]); os.chdir(sys.argv[1])\n"
	"log = os.open('log', os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)\n"
	"f = open('map', 'w+b'); f.truncate(65536)\n"
	"m = mmap.mmap(f.fileno(), 65536)\n"
	"db = sqlite3.connect('db', isolation_level=None)\n"
	"db.execute('PRAGMA journal_mode=' + ('WAL' if sys.argv[1] == 'w0' else 'DELETE'))\n"
	"db.execute('PRAGMA synchronous=OFF')\n"
	"db.execute('CREATE TABLE a(n)'); db.execute('CREATE TABLE b(n)')\n"
	"db.execute('INSERT INTO a VALUES(0)'); db.execute('INSERT INTO b VALUES(0)')\n"
	"def put(n):\n"
	"    with open('cur.new', 'w') as t: t.write('%d' % n)\n"
	"    os.rename('cur.new', 'cur')\n"
	"put(0)\n"
	"open('ready', 'w').close()\n"
	"n = 0\n"
	"while True:\n"
	"    n += 1\n"
	"    os.write(log, b'%015d\\n' % n)\n"
	"    m[0:8] = struct.pack('<Q', n)\n"
	"    m[32768:32776] = struct.pack('<Q', n)\n"
	"    db.execute('BEGIN IMMEDIATE')\n"
	"    db.execute('UPDATE a SET n = ?', (n,))\n"
	"    db.execute('UPDATE b SET n = ?', (n,))\n"
	"    db.execute('COMMIT')\n"
	"    put(n)\n";

static unsigned
rounds(void)
{
	const char *n = getenv("WRITERS_SNAPS");

	return n ? (unsigned)strtoul(n, NULL, 10) : 30;
}

static void
launch(struct hostfix *f, const char *name)
{
	const char *args[] = { "writer.py", name, NULL };
	struct sb_host_launch l = SB_HOST_LAUNCH_INIT;
	struct sb_host_process p;
	char ready[40];

	l.session = "one";
	l.binary = PYTHON;
	l.args = args;
	assert_ok(sb_host_process_launch(f->h, &l, NULL, &p, &f->err), &f->err);
	sb_host_process_clear(&p);
	(void)snprintf(ready, sizeof ready, "%s/ready", name);
	for (int i = 0; i < 6000 && access(hostfix_path(f, "one", ready), F_OK) < 0; i++)
		(void)usleep(10000);
	assert_int_equal(access(hostfix_path(f, "one", ready), F_OK), 0);
}

/* The file `writer`/`name` of a state. */
static void
load(int dir, const char *writer, const char *name, struct sb_buf *out)
{
	struct sb_error err = { 0 };
	char path[64];

	(void)snprintf(path, sizeof path, "%s/%s", writer, name);
	assert_ok(sb_file_read(dir, path, FILE_MAX, out, &err), &err);
}

/* The last number of the log, whose lines are all whole and without a gap. */
static uint64_t
log_number(int dir, const char *writer)
{
	struct sb_buf b;
	uint64_t n;

	load(dir, writer, "log", &b);
	assert_int_equal(b.len % 16, 0);
	n = b.len / 16;
	if (n > 0)
		assert_int_equal(strtoull((char *)b.data + b.len - 16, NULL, 10), n);
	sb_buf_free(&b);
	return n;
}

static void
map_numbers(int dir, const char *writer, uint64_t out[2])
{
	struct sb_buf b;

	load(dir, writer, "map", &b);
	assert_int_equal(b.len, 65536);
	memcpy(&out[0], b.data, 8);
	memcpy(&out[1], b.data + 32768, 8);
	sb_buf_free(&b);
}

static uint64_t
rename_number(int dir, const char *writer)
{
	struct sb_buf b;
	uint64_t n;

	load(dir, writer, "cur", &b);
	assert_true(b.len > 0);
	n = strtoull((char *)b.data, NULL, 10);
	sb_buf_free(&b);
	return n;
}

static void
copy(int dir, const char *writer, const char *name, const char *to)
{
	char path[64], target[300];
	struct sb_buf b;
	FILE *f;

	(void)snprintf(path, sizeof path, "%s/%s", writer, name);
	(void)snprintf(target, sizeof target, "%s/%s", to, name);
	(void)unlink(target);
	if (faccessat(dir, path, F_OK, 0) < 0)
		return;
	load(dir, writer, name, &b);
	f = fopen(target, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(b.data, 1, b.len, f), b.len);
	assert_int_equal(fclose(f), 0);
	sb_buf_free(&b);
}

static uint64_t
ask(sqlite3 *db, const char *sql)
{
	sqlite3_stmt *s = NULL;
	uint64_t n;

	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(s), SQLITE_ROW);
	n = (uint64_t)sqlite3_column_int64(s, 0);
	assert_int_equal(sqlite3_finalize(s), SQLITE_OK);
	return n;
}

/* As SQLite finds it: what was under way is rolled back. */
static uint64_t
db_number(int dir, const char *writer, const char *scratch)
{
	static const char *const parts[] = { "db", "db-journal", "db-wal" };
	char path[300];
	sqlite3 *db = NULL;
	uint64_t n;

	(void)snprintf(path, sizeof path, "%s/db-shm", scratch);
	(void)unlink(path);
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
		copy(dir, writer, parts[i], scratch);
	(void)snprintf(path, sizeof path, "%s/db", scratch);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(ask(db,
				 "SELECT count(*) FROM pragma_integrity_check "
				 "WHERE integrity_check = 'ok'"),
		1);
	n = ask(db, "SELECT n FROM a");
	assert_int_equal(ask(db, "SELECT n FROM b"), n);
	assert_int_equal(sqlite3_close(db), SQLITE_OK);
	return n;
}

struct looking {
	const char *scratch;
	uint64_t last[WRITERS]; /* numbers of the snapshot before */
	unsigned moved;         /* writers that went on since */
};

static int
look(int old_dir, int new_dir, void *arg, struct sb_error *err)
{
	struct looking *l = arg;

	(void)new_dir;
	(void)err;
	for (unsigned i = 0; i < WRITERS; i++) {
		char name[8];
		uint64_t n[5];

		(void)snprintf(name, sizeof name, "w%u", i);
		n[0] = log_number(old_dir, name);
		map_numbers(old_dir, name, n + 1);
		n[3] = db_number(old_dir, name, l->scratch);
		n[4] = rename_number(old_dir, name);
		for (int k = 1; k < 5; k++)
			if (n[k] > n[k - 1] || n[0] - n[k] > 1)
				fail_msg("writer %u: log %llu, map %llu and %llu, db %llu, file "
					 "%llu",
					i, (unsigned long long)n[0], (unsigned long long)n[1],
					(unsigned long long)n[2], (unsigned long long)n[3],
					(unsigned long long)n[4]);
		assert_true(n[4] >= l->last[i]);
		l->moved += n[4] > l->last[i];
		l->last[i] = n[4];
	}
	return 0;
}

static void
every_snapshot_is_a_state_that_existed(void **state)
{
	struct hostfix *f = *state;
	struct looking l = { 0 };
	char scratch[300], name[20];

	if (access(PYTHON, X_OK) < 0)
		skip_because("%s is not here", PYTHON);
	(void)snprintf(scratch, sizeof scratch, "%s/look", f->t.path);
	assert_int_equal(mkdir(scratch, 0700), 0);
	l.scratch = scratch;
	hostfix_session(f, "one");
	hostfix_write(f, "one", "writer.py", script);
	for (unsigned i = 0; i < WRITERS; i++) {
		(void)snprintf(name, sizeof name, "w%u", i);
		launch(f, name);
	}
	for (unsigned i = 0; i < rounds(); i++) {
		struct sb_host_snapshot sn;

		(void)snprintf(name, sizeof name, "s%u", i);
		assert_ok(sb_host_snapshot_create(f->h, "one", name, NULL, &sn, &f->err), &f->err);
		sb_host_snapshot_clear(&sn);
		(void)usleep(2000);
		assert_ok(f->h->st->ops->look(f->h->st, "one", name, NULL, look, &l, &f->err),
			&f->err);
	}
	/* They really were at work. */
	assert_true(l.moved > rounds());
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(every_snapshot_is_a_state_that_existed,
			hostfix_setup, hostfix_teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
