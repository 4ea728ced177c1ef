/* SPDX-License-Identifier: MIT */
/*
 * Storages under kill -9 and power loss; driven by tests/e2e/storage-crash.sh.
 *
 *   storage-crash script KIND DIR          does a fixed list of operations in DIR; after each it
 * says so by one byte more in DIR/acked storage-crash check KIND DIR           what is there must
 * be the state after so many, or one more storage-crash images DIR ROUNDS SEED   DIR is on a file
 * system with reflinks. An overlay storage works on an ext4 image in it; copies of the image are
 * taken at random moments, mounted as after a power loss, and must have every snapshot that was
 * reported, whole
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/child.h>
#include <base/spawn.h>
#include <host/storage/storage-overlay-priv.h>

#define FILES 20

static void SB_PRINTF(1, 2) __attribute__((noreturn)) die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	_exit(1);
}

struct place {
	char sessions[400], bases[400];
	struct sb_host_opts o;
	struct sb_storage *st;
	struct sb_error err;
	bool btrfs;
};

static void
open_storage(struct place *p, const char *kind, const char *dir, const char *boot)
{
	char img[500];

	memset(p, 0, sizeof *p);
	p->btrfs = strcmp(kind, "btrfs") == 0;
	p->o = (struct sb_host_opts)SB_HOST_OPTS_INIT;
	(void)snprintf(p->sessions, sizeof p->sessions, "%s/s", dir);
	(void)snprintf(p->bases, sizeof p->bases, "%s/b", dir);
	(void)snprintf(img, sizeof img, "%s/img", p->bases);
	if (sb_file_mkdirs(img, 0755, &p->err) < 0)
		die("%s", p->err.msg);
	p->o.sessions_root_dir = p->sessions;
	p->o.bases_dir = p->bases;
	p->st = p->btrfs ? sb_storage_btrfs_open(&p->o, &p->err) :
			   sb_storage_overlay_open_as(&p->o, boot, &p->err);
	if (!p->st)
		die("open: %s", p->err.msg);
	if (!p->btrfs) {
		struct sb_storage_overlay *o = (struct sb_storage_overlay *)p->st;

		o->flat_at = 3;
		o->merge_at = 1;
	}
}

static void
fine(struct place *p, int r, const char *what)
{
	if (r < 0)
		die("%s: %s", what, p->err.msg);
}

static void
path_of(struct place *p, const char *id, const char *name, char *out, size_t size)
{
	char *at = NULL;

	fine(p, p->st->ops->mount(p->st, id, &at, &p->err), "mount");
	(void)snprintf(out, size, "%s/%s", at, name);
	free(at);
}

/* Every file of the session says `version`. */
static void
write_version(struct place *p, const char *id, unsigned version)
{
	char path[1000], name[20], text[200];

	for (int i = 0; i < FILES; i++) {
		int fd, n;

		(void)snprintf(name, sizeof name, "f%d", i);
		path_of(p, id, name, path, sizeof path);
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
		n = snprintf(text, sizeof text, "%u %u %u %u\n", version, version, version,
			version);
		if (fd < 0 || pwrite(fd, text, (size_t)n, 0) != n || ftruncate(fd, n) < 0)
			die("write %s: %s", path, strerror(errno));
		(void)close(fd);
	}
}

/* The version that all files have; 0: there are none. */
static unsigned
read_version(struct place *p, const char *id)
{
	char path[1000], name[20], text[200];
	unsigned found = 0;

	for (int i = 0; i < FILES; i++) {
		unsigned v[4] = { 0 };
		ssize_t n;
		int fd;

		(void)snprintf(name, sizeof name, "f%d", i);
		path_of(p, id, name, path, sizeof path);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 && errno == ENOENT && (i == 0 || found == 0))
			continue;
		n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
		if (fd >= 0)
			(void)close(fd);
		text[n > 0 ? n : 0] = '\0';
		if (n <= 0 || sscanf(text, "%u %u %u %u", &v[0], &v[1], &v[2], &v[3]) != 4 ||
			v[0] != v[1] || v[1] != v[2] || v[2] != v[3])
			die("%s: %s is torn: \"%s\"", id, name, text);
		if (i > 0 && v[0] != found)
			die("%s: %s is of version %u, f0 of %u", id, name, v[0], found);
		found = v[0];
	}
	return found;
}

/* The version of a snapshot, by a fork of it. */
static unsigned
snap_version(struct place *p, const char *id, const char *snap)
{
	const struct sb_storage_source src = { .from_id = id, .from_snap = snap, .fd = -1 };
	char *at = NULL;
	unsigned v;

	fine(p, p->st->ops->create(p->st, "look", &src, NULL, &at, &p->err), "fork to look");
	free(at);
	v = read_version(p, "look");
	fine(p, p->st->ops->destroy(p->st, "look", &p->err), "destroy the fork");
	return v;
}

enum what { CREATE, WRITE, SNAP, LIVE, ROLL, FORK, DROP, HOLD, RELEASE, SWEEP, DESTROY };

static const struct step {
	enum what what;
	const char *id, *arg, *arg2;
	unsigned version;
} steps[] = {
	{ CREATE, "one", NULL, NULL, 0 },
	{ WRITE, "one", NULL, NULL, 1 },
	{ SNAP, "one", "a", NULL, 0 },
	{ WRITE, "one", NULL, NULL, 2 },
	{ LIVE, "one", "b", NULL, 0 },
	{ WRITE, "one", NULL, NULL, 3 },
	{ LIVE, "one", "c", NULL, 0 },
	{ SNAP, "one", "d", NULL, 0 },
	{ HOLD, "one", "d", NULL, 0 },
	{ ROLL, "one", "a", NULL, 0 },
	{ WRITE, "one", NULL, NULL, 4 },
	{ SNAP, "one", "e", NULL, 0 },
	{ FORK, "two", "one", "c", 0 },
	{ WRITE, "two", NULL, NULL, 5 },
	{ SNAP, "two", "x", NULL, 0 },
	{ RELEASE, "one", "d", NULL, 0 },
	{ DROP, "one", "c", NULL, 0 },
	{ DROP, "one", "b", NULL, 0 },
	{ DROP, "one", "a", NULL, 0 },
	{ SWEEP, NULL, NULL, NULL, 0 },
	{ WRITE, "one", NULL, NULL, 6 },
	{ SNAP, "one", "g", NULL, 0 },
	{ WRITE, "one", NULL, NULL, 7 },
	{ SNAP, "one", "h", NULL, 0 },
	{ SWEEP, NULL, NULL, NULL, 0 },
	{ ROLL, "one", "d", NULL, 0 },
	{ DESTROY, "two", NULL, NULL, 0 },
	{ SWEEP, NULL, NULL, NULL, 0 },
};
#define STEPS (sizeof steps / sizeof steps[0])

static void
do_create(struct place *p, const struct step *s)
{
	struct sb_storage_source src = { .base = "img", .fd = -1 };
	char *at = NULL;

	if (s->what == FORK)
		src = (struct sb_storage_source){ .from_id = s->arg,
			.from_snap = s->arg2,
			.fd = -1 };
	fine(p, p->st->ops->create(p->st, s->id, &src, NULL, &at, &p->err), "create");
	free(at);
}

static void
do_live(struct place *p, const struct step *s)
{
	char path[1000];
	int fd;

	path_of(p, s->id, "f0", path, sizeof path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	fine(p, p->st->ops->snapshot(p->st, s->id, s->arg, &p->err), "snapshot");
	(void)close(fd);
}

static void
do_step(struct place *p, const struct step *s)
{
	const struct sb_storage_ops *ops = p->st->ops;

	switch (s->what) {
	case CREATE:
	case FORK: do_create(p, s); break;
	case WRITE: write_version(p, s->id, s->version); break;
	case SNAP: fine(p, ops->snapshot(p->st, s->id, s->arg, &p->err), "snapshot"); break;
	case LIVE: do_live(p, s); break;
	case ROLL:
		fine(p, ops->rollback_live(p->st, s->id, s->arg, false, NULL, &p->err), "rollback");
		break;
	case DROP: fine(p, ops->snapshot_delete(p->st, s->id, s->arg, &p->err), "delete"); break;
	case HOLD: fine(p, ops->hold(p->st, s->id, s->arg, "tag", &p->err), "hold"); break;
	case RELEASE: fine(p, ops->release(p->st, s->id, s->arg, "tag", &p->err), "release"); break;
	case SWEEP: fine(p, ops->sweep(p->st, &p->err), "sweep"); break;
	case DESTROY: fine(p, ops->destroy(p->st, s->id, &p->err), "destroy"); break;
	}
}

static int
run_script(const char *kind, const char *dir)
{
	struct place p;
	char path[500];
	int acked;

	(void)snprintf(path, sizeof path, "%s/acked", dir);
	acked = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (acked < 0)
		die("%s: %s", path, strerror(errno));
	open_storage(&p, kind, dir, NULL);
	/* Calls are counted: only this thread may make any. */
	if (!p.btrfs)
		sb_storage_overlay_work_stop((struct sb_storage_overlay *)p.st);
	for (size_t i = 0; i < STEPS; i++) {
		do_step(&p, &steps[i]);
		if (write(acked, ".", 1) != 1)
			die("%s: %s", path, strerror(errno));
	}
	p.st->ops->close(p.st);
	return 0;
}

/* What the steps make of sessions and snapshots. */
struct sim {
	bool there;
	unsigned version;
	struct {
		char name[4];
		unsigned version;
	} snap[8];
	unsigned n;
};

static void
sim_drop(struct sim *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->snap[i].name, name) == 0) {
			memmove(&s->snap[i], &s->snap[i + 1], (--s->n - i) * sizeof s->snap[0]);
			return;
		}
}

static unsigned
sim_version(const struct sim *s, const char *name)
{
	for (unsigned i = 0; i < s->n; i++)
		if (strcmp(s->snap[i].name, name) == 0)
			return s->snap[i].version;
	return 0;
}

static void
simulate(size_t n, struct sim sim[2])
{
	memset(sim, 0, 2 * sizeof sim[0]);
	for (size_t i = 0; i < n; i++) {
		const struct step *st = &steps[i];
		struct sim *s = &sim[st->id && strcmp(st->id, "two") == 0];

		switch (st->what) {
		case CREATE: *s = (struct sim){ .there = true }; break;
		case FORK:
			*s = (struct sim){ .there = true,
				.version = sim_version(&sim[0], st->arg2) };
			break;
		case WRITE: s->version = st->version; break;
		case SNAP:
		case LIVE:
			(void)snprintf(s->snap[s->n].name, sizeof s->snap[0].name, "%s", st->arg);
			s->snap[s->n++].version = s->version;
			break;
		case ROLL: s->version = sim_version(s, st->arg); break;
		case DROP: sim_drop(s, st->arg); break;
		case DESTROY: *s = (struct sim){ 0 }; break;
		default: break;
		}
	}
}

struct found {
	char names[500];
	bool there;
};

static int
on_entry(const struct sb_storage_entry *e, void *arg, struct sb_error *err)
{
	struct found *f = arg;
	size_t len = strlen(f->names);

	(void)err;
	f->there = true;
	if (e->snap)
		(void)snprintf(f->names + len, sizeof f->names - len, "%s ", e->snap);
	return 0;
}

/* NULL: the session is as simulated; else what is not. A step of writing may have got half-way. */
static const char *
differs(struct place *p, const char *id, const struct sim *s, bool writing)
{
	static char why[600];
	char want[500] = "";
	struct found f = { 0 };
	int r = p->st->ops->list(p->st, id, on_entry, &f, &p->err);

	if (r < 0 && r != SB_E_NOTFOUND)
		die("list: %s", p->err.msg);
	if (f.there != s->there)
		return f.there ? "it is there" : "it is not there";
	for (unsigned i = 0; i < s->n; i++)
		(void)snprintf(want + strlen(want), sizeof want - strlen(want), "%s ",
			s->snap[i].name);
	if (strcmp(f.names, want) != 0) {
		(void)snprintf(why, sizeof why, "snapshots are %s", f.names);
		return why;
	}
	if (s->there && !writing && read_version(p, id) != s->version)
		return "its files are of another version";
	for (unsigned i = 0; i < s->n; i++)
		if (snap_version(p, id, s->snap[i].name) != s->snap[i].version) {
			(void)snprintf(why, sizeof why, "snapshot %s is of another version",
				s->snap[i].name);
			return why;
		}
	return NULL;
}

static int
count_mount(const char *rest, uint64_t upper, void *arg, struct sb_error *err)
{
	uint64_t *seen = arg;

	(void)err;
	for (uint64_t i = 1; i <= seen[0]; i++)
		if (seen[i] == upper)
			die("%s: upper %llx is mounted twice", rest, (unsigned long long)upper);
	if (seen[0] < 60)
		seen[++seen[0]] = upper;
	return 0;
}

static size_t
entries(const char *dir, const char *name)
{
	char cmd[1000], out[64] = "0";
	FILE *f;

	(void)snprintf(cmd, sizeof cmd, "ls %s/%s | wc -l", dir, name);
	f = popen(cmd, "re");
	if (f) {
		(void)!fgets(out, sizeof out, f);
		(void)pclose(f);
	}
	return strtoul(out, NULL, 10);
}

/* When all is destroyed, nothing is left. */
static void
check_empty(struct place *p)
{
	const char *const ids[] = { "one", "two" };

	(void)p->st->ops->release(p->st, "one", "d", "tag", NULL);
	for (int i = 0; i < 2; i++)
		fine(p, p->st->ops->destroy(p->st, ids[i], &p->err), "destroy");
	fine(p, p->st->ops->sweep(p->st, &p->err), "sweep");
	if (!p->btrfs &&
		(entries(p->sessions, "layers") || entries(p->sessions, "trash") ||
			entries(p->sessions, "mnt")))
		die("layers or mounts are left over");
	if (p->btrfs && (entries(p->sessions, "") || entries(p->sessions, ".snaps")))
		die("subvolumes are left over");
}

static int
check_script(const char *kind, const char *dir)
{
	static const char *const ids[] = { "one", "two" };
	uint64_t seen[64] = { 0 };
	struct place p;
	struct stat st;
	char path[500];
	size_t n;
	const char *why[2] = { NULL, NULL };

	(void)snprintf(path, sizeof path, "%s/acked", dir);
	n = stat(path, &st) == 0 ? (size_t)st.st_size : 0;
	open_storage(&p, kind, dir, NULL);
	for (int more = 0; more < 2; more++) {
		struct sim sim[2];

		simulate(n + (size_t)more < STEPS ? n + (size_t)more : STEPS, sim);
		why[more] = NULL;
		for (int i = 0; i < 2 && !why[more]; i++) {
			bool writing = n < STEPS && steps[n].what == WRITE &&
				strcmp(steps[n].id, ids[i]) == 0;

			why[more] = differs(&p, ids[i], &sim[i], writing);
		}
		if (!why[more])
			break;
		if (more == 1)
			die("after %zu steps: %s", n, why[1]);
	}
	(void)snprintf(path, sizeof path, "%s/mnt", p.sessions);
	if (!p.btrfs && sb_overlay_mount_each(path, count_mount, seen, &p.err) < 0)
		die("%s", p.err.msg);
	check_empty(&p);
	p.st->ops->close(p.st);
	return 0;
}

#define KEEP 6

/* What the worker has done, for the one who takes the images. */
struct shared {
	_Atomic unsigned taken;    /* snapshots v1 to this one were reported */
	_Atomic unsigned dropping; /* those up to this one may be deleted */
	_Atomic unsigned dropped;  /* and those are */
	_Atomic unsigned stop;
};

static void
work(const char *dir, struct shared *sh)
{
	const struct sb_storage_source src = { .base = "img", .fd = -1 };
	struct place p;
	char name[20], path[1000], *at = NULL;
	int held = -1;

	open_storage(&p, "overlay", dir, "first");
	fine(&p, p.st->ops->create(p.st, "one", &src, NULL, &at, &p.err), "create");
	free(at);
	for (unsigned v = 1; !atomic_load(&sh->stop); v++) {
		write_version(&p, "one", v);
		/* Some are taken while somebody has a file open. */
		if (v % 5 == 2) {
			path_of(&p, "one", "f0", path, sizeof path);
			held = open(path, O_RDONLY | O_CLOEXEC);
		}
		(void)snprintf(name, sizeof name, "v%u", v);
		fine(&p, p.st->ops->snapshot(p.st, "one", name, &p.err), "snapshot");
		atomic_store(&sh->taken, v);
		if (held >= 0 && v % 5 == 4) {
			(void)close(held);
			held = -1;
		}
		if (v > KEEP) {
			(void)snprintf(name, sizeof name, "v%u", v - KEEP);
			atomic_store(&sh->dropping, v - KEEP);
			fine(&p, p.st->ops->snapshot_delete(p.st, "one", name, &p.err), "delete");
			atomic_store(&sh->dropped, v - KEEP);
		}
	}
	p.st->ops->close(p.st);
}

/* In a mount namespace of its own: the image as after a power loss. */
static void
check_image(const char *image, const char *at, unsigned dropped, unsigned dropping, unsigned taken)
{
	const char *const argv[] = { "mount", "-o", "loop", image, at, NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	struct place p;
	char name[20];

	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		die("mount namespace: %s", strerror(errno));
	o.search_path = true;
	if (sb_child_run(argv, &o, NULL, 0, NULL, NULL, NULL, sb_deadline_in(60000), NULL) != 0)
		die("the image cannot be mounted");
	open_storage(&p, "overlay", at, "second");
	for (unsigned v = dropped + 1; v <= taken; v++) {
		struct found f = { 0 };

		(void)snprintf(name, sizeof name, "v%u ", v);
		fine(&p, p.st->ops->list(p.st, "one", on_entry, &f, &p.err), "list");
		if (!strstr(f.names, name)) {
			if (v > dropping)
				die("snapshot %sof %u was reported and is gone: %s", name, taken,
					f.names);
			continue;
		}
		name[strlen(name) - 1] = '\0';
		if (snap_version(&p, "one", name) != v)
			die("snapshot %s is of another version", name);
	}
	/* The workspace is at one of the snapshots, or before the first. */
	(void)read_version(&p, "one");
	fine(&p, p.st->ops->destroy(p.st, "one", &p.err), "destroy");
	fine(&p, p.st->ops->sweep(p.st, &p.err), "sweep");
	if (entries(p.sessions, "layers") || entries(p.sessions, "trash"))
		die("layers are left over");
	p.st->ops->close(p.st);
}

static void
copy_image(const char *from, const char *to)
{
	int a = open(from, O_RDONLY | O_CLOEXEC);
	int b = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	if (a < 0 || b < 0 || ioctl(b, FICLONE, a) < 0)
		die("copy of the image: %s", strerror(errno));
	(void)close(a);
	(void)close(b);
}

static int
run_images(const char *dir, unsigned rounds, unsigned seed)
{
	struct shared *sh =
		mmap(NULL, sizeof *sh, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char image[500], copy[500], live[500], at[500];
	pid_t worker;
	int status, bad = 0;

	(void)snprintf(image, sizeof image, "%s/image", dir);
	(void)snprintf(copy, sizeof copy, "%s/copy", dir);
	(void)snprintf(live, sizeof live, "%s/live", dir);
	(void)snprintf(at, sizeof at, "%s/at", dir);
	srandom(seed);
	if (sh == MAP_FAILED || (worker = fork()) < 0)
		die("start");
	if (worker == 0) {
		work(live, sh);
		_exit(0);
	}
	while (atomic_load(&sh->taken) == 0)
		if (waitpid(worker, &status, WNOHANG) == worker)
			die("the worker ended");
	for (unsigned i = 0; i < rounds && !bad; i++) {
		const struct timespec nap = { .tv_nsec = random() % 30000000 };
		unsigned dropped, taken, dropping;
		pid_t pid;

		(void)nanosleep(&nap, NULL);
		dropped = atomic_load(&sh->dropped);
		taken = atomic_load(&sh->taken);
		copy_image(image, copy);
		dropping = atomic_load(&sh->dropping);
		pid = fork();
		if (pid == 0) {
			check_image(copy, at, dropped, dropping, taken);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
			(void)fprintf(stderr, "image %u, after snapshot %u\n", i, taken);
			bad = 1;
		}
		if (waitpid(worker, &status, WNOHANG) == worker)
			die("the worker ended");
	}
	atomic_store(&sh->stop, 1);
	if (waitpid(worker, &status, 0) != worker || status != 0)
		bad = 1;
	(void)printf("%u images, %u snapshots\n", rounds, atomic_load(&sh->taken));
	return bad;
}

int
main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "script") == 0)
		return run_script(argv[2], argv[3]);
	if (argc == 4 && strcmp(argv[1], "check") == 0)
		return check_script(argv[2], argv[3]);
	if (argc == 5 && strcmp(argv[1], "images") == 0)
		return run_images(argv[2], (unsigned)strtoul(argv[3], NULL, 10),
			(unsigned)strtoul(argv[4], NULL, 10));
	die("usage: storage-crash script|check KIND DIR | images DIR ROUNDS SEED");
}
