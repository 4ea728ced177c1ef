/* SPDX-License-Identifier: MIT */
/* Brings a far tree to the state of a shadow, with sh and tar on the far machine. */
#include "config.h"

#include <sync/remote/agentless.h>

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include <base/buf.h>
#include <base/path.h>
#include <base/quote.h>
#include <base/str.h>

#include <sync/remote/deploy.h>
#include <sync/remote/marker.h>
#include <sync/remote/remote.h>
#include <sync/wire/transport.h>

/* Commands of the commit script are kept below what any sh and kernel takes in one line. */
#define COMMAND_MAX 30000
#define SCRIPT_MAX ((size_t)1 << 30)

/* Takes a tar from standard input into the stage; stages somebody left behind are removed. */
static const char stage_script[] =
	"n=$1; m() { printf \"\\nsbsync:%s:%s\\n\" \"$n\" \"$*\"; }; "
	"mkdir -p \"$2\" && cd \"$2\" || { m failed; exit 0; }; "
	"find . -maxdepth 1 -name \"" SB_AGENTLESS_STAGE
	"*\" -mtime +1 -exec rm -rf {} + 2>/dev/null; "
	"s=" SB_AGENTLESS_STAGE "$n; umask 077; mkdir \"$s\" || { m failed; exit 0; }; "
	/* Not every tar -p gives the modes of the archive whatever the umask; the stage itself lets
	   nobody in. */
	"umask 0; "
	"m tar; tar -xpof - -C \"$s\"; m done $?";

struct push {
	const struct sb_agentless *a;
	int rootfd;
	struct sb_agentless_list far;
	struct sb_agentless_list here;
	bool coarse;
	struct sb_marker m;
	struct sb_buf text; /* the commit script */
	struct sb_agentless_stats *stats;
	struct sb_error *err;
	bool done; /* the far tree shall be as the shadow is, size and times say it */
	/* The command being put together. */
	size_t changes; /* commands of the script that change something */
	const char *verb;
	const char *tail; /* written behind the last argument */
	size_t begun;
};

/* Was this file put into the shadow since the fetch? Commits write no file in place. */
static bool
is_another(const struct push *p, const struct sb_agentless_entry *e)
{
	const struct sb_agentless_entry *old =
		p->a->brought && !p->done ? sb_agentless_list_find(p->a->brought, e->path) : NULL;

	return old && old->ino != e->ino;
}

static bool
same(const struct push *p, const struct sb_agentless_entry *a, const struct sb_agentless_entry *b)
{
	if (!a || !b || a->type != b->type)
		return false;
	if (a->type == 'f')
		return !is_another(p, a) && sb_agentless_same_file(a, b, p->coarse);
	return a->type != 'l' || strcmp(a->target, b->target) == 0;
}

/* Does the far tree look as the record says? */
static int
check_record(struct push *p, const char *record)
{
	sb_auto(sb_agentless_list) struct sb_agentless_list old = { 0 };
	char shown[200];
	int r = sb_agentless_load(record, &old, p->err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < old.n || i < p->far.n; i++) {
		const struct sb_agentless_entry *a = i < old.n ? &old.v[i] : NULL;
		const struct sb_agentless_entry *b = i < p->far.n ? &p->far.v[i] : NULL;
		const char *path = a ? a->path : b->path;

		if (a && b && strcmp(a->path, b->path) == 0 && a->type == b->type &&
			a->mode == b->mode &&
			(a->type != 'f' ||
				(a->size == b->size && a->mtime == b->mtime &&
					(!a->ino || (a->ino == b->ino && a->ctime == b->ctime)))) &&
			(a->type != 'l' || strcmp(a->target, b->target) == 0))
			continue;
		return sb_fail(p->err, SB_E_CHANGED, "%s: %s changed there meanwhile", p->m.name,
			sb_escape(path, strlen(path), shown, sizeof shown));
	}
	return 0;
}

static int
check_brake(struct push *p, int64_t max_delete)
{
	uint64_t gone = 0;

	for (size_t i = 0; i < p->far.n; i++)
		gone += p->far.v[i].type != 'o' &&
			!sb_agentless_list_find(&p->here, p->far.v[i].path);
	p->stats->deleted = gone;
	if (max_delete >= 0 ? gone > (uint64_t)max_delete : p->far.n > 100 && gone > p->far.n / 2)
		return sb_fail(p->err, SB_E_BRAKE,
			"this would delete %llu of %zu entries of %s; nothing was changed; to go "
			"on: --max-delete %llu",
			(unsigned long long)gone, p->far.n, p->a->root, (unsigned long long)gone);
	return 0;
}

static la_ssize_t
send_block(struct archive *ar, void *arg, const void *data, size_t len)
{
	struct push *p = arg;

	return sb_marker_send(&p->m, data, len, p->err) < 0 ? -1 : (la_ssize_t)len;
}

static int
send_content(struct push *p, struct archive *ar, const struct sb_agentless_entry *e)
{
	sb_autoclose int fd = sb_path_open(p->rootfd, e->path, O_RDONLY, 0, p->err);
	uint64_t done = 0;

	if (fd < 0)
		return fd;
	while (done < e->size) {
		char buf[65536];
		size_t want = e->size - done < sizeof buf ? (size_t)(e->size - done) : sizeof buf;
		ssize_t n = read(fd, buf, want);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return sb_fail(p->err, SB_E_CHANGED, "%s changed while it was sent",
				e->path);
		if (archive_write_data(ar, buf, (size_t)n) != n)
			return p->err->code ? p->err->code :
					      sb_fail(p->err, SB_E_CLOSED, "cannot send");
		done += (uint64_t)n;
	}
	return 0;
}

static int
send_entry(struct push *p, struct archive *ar, const struct sb_agentless_entry *e)
{
	struct archive_entry *ae = archive_entry_new();
	int r = 0;

	if (!ae)
		return sb_fail(p->err, SB_E_NOMEM, "out of memory");
	archive_entry_set_pathname(ae, e->path);
	archive_entry_set_filetype(ae, e->type == 'l' ? AE_IFLNK : AE_IFREG);
	archive_entry_set_perm(ae, e->type == 'l' ? 0777 : e->mode & 0777);
	archive_entry_set_mtime(ae, e->mtime / 1000000000,
		e->mtime < 0 ? 0 : (long)(e->mtime % 1000000000));
	archive_entry_set_size(ae, e->type == 'l' ? 0 : (la_int64_t)e->size);
	if (e->type == 'l')
		archive_entry_set_symlink(ae, e->target);
	if (archive_write_header(ar, ae) < ARCHIVE_WARN)
		r = p->err->code ?
			p->err->code :
			sb_fail(p->err, SB_E_UNSUPPORTED, "%s cannot be put into a tar: %s",
				e->path, archive_error_string(ar));
	archive_entry_free(ae);
	if (r >= 0 && e->type == 'f')
		r = send_content(p, ar, e);
	if (r >= 0) {
		p->stats->files++;
		p->stats->bytes += e->type == 'f' ? e->size : 0;
	}
	return r;
}

/* Everything of the shadow that is not there as it is. */
static int
send_tar(struct push *p)
{
	struct archive *ar = archive_write_new();
	int r = 0;

	if (!ar)
		return sb_fail(p->err, SB_E_NOMEM, "out of memory");
	/*
	 * GNU tar understands fractions of seconds; of the others only the old long names are sure.
	 */
	if ((p->far.gnu_tar ? archive_write_set_format_pax(ar) :
			      archive_write_set_format_gnutar(ar)) != ARCHIVE_OK ||
		archive_write_open(ar, p, NULL, send_block, NULL) != ARCHIVE_OK)
		r = sb_fail(p->err, SB_E_NOMEM, "cannot write a tar");
	for (size_t i = 0; i < p->here.n && r >= 0; i++) {
		const struct sb_agentless_entry *e = &p->here.v[i];

		if (strchr("fl", e->type) && !same(p, e, sb_agentless_list_find(&p->far, e->path)))
			r = send_entry(p, ar, e);
	}
	if (r >= 0 && archive_write_close(ar) != ARCHIVE_OK)
		r = p->err->code ? p->err->code : sb_fail(p->err, SB_E_CLOSED, "cannot send");
	if (r < 0)
		(void)archive_write_fail(ar);
	archive_write_free(ar);
	return r;
}

/* Waits for "done 0" from a script whose input has ended. */
static int
await_done(struct push *p, const char *what)
{
	struct sb_exit e = { 0 };
	int r;

	(void)p->m.t->ops->close_write(p->m.t, NULL);
	r = sb_marker_next(&p->m, p->err);
	if (r < 0)
		return r;
	if (strcmp(p->m.line, "done 0") == 0)
		return 0;
	(void)p->m.t->ops->wait(p->m.t, sb_deadline_in(5000), &e, NULL);
	return sb_fail(p->err, SB_E_PEER, "%s: %s failed there: %.300s", p->m.name, what,
		e.stderr_tail);
}

static int
stage(struct push *p)
{
	sb_auto(sb_buf) struct sb_buf command;
	int r;

	sb_buf_init(&command, 256u << 10);
	sb_buf_addf(&command, "exec sh -c '%s' sbsync %s ", stage_script, p->m.nonce);
	sb_quote_argument(&command, p->a->root);
	r = sb_buf_check(&command, "path", p->err);
	if (r < 0)
		return r;
	p->m.t = sb_remote_exec(p->a->remote, (char *)command.data, p->err);
	if (!p->m.t)
		return p->err->code;
	r = sb_marker_next(&p->m, p->err);
	if (r >= 0 && strcmp(p->m.line, "tar") != 0)
		r = sb_fail(p->err, SB_E_PEER, "%s: %s cannot be written", p->m.name, p->a->root);
	if (r >= 0)
		r = send_tar(p);
	if (r >= 0)
		r = await_done(p, "unpacking");
	sb_transport_free(p->m.t);
	p->m.t = NULL;
	return r;
}

static void
end_command(struct push *p)
{
	if (!p->verb)
		return;
	sb_buf_addf(&p->text, "%s\n", p->tail);
	p->verb = NULL;
}

/*
 * Adds PREFIX/PATH to a command "VERB ... TAIL", of which as many as fit share one. Verbs are
 * compared by address.
 */
static void
add_arg(struct push *p, const char *verb, const char *tail, const char *prefix, const char *path)
{
	sb_autofree char *full = sb_str_printf("%s/%s", prefix, path);

	if (p->verb && (p->verb != verb || p->tail != tail || p->text.len - p->begun > COMMAND_MAX))
		end_command(p);
	if (!p->verb) {
		p->begun = p->text.len;
		sb_buf_add_str(&p->text, verb);
		p->verb = verb;
		p->tail = tail;
	}
	p->changes++;
	sb_buf_add_char(&p->text, ' ');
	if (full)
		sb_quote_argument(&p->text, full);
	else
		p->text.failed = SB_E_NOMEM;
}

/* A directory that is to change must let us. */
static bool
is_closed(const struct sb_agentless_entry *e)
{
	return e->type == 'd' && (e->mode & 0700) != 0700;
}

/* Makes every directory writable that is not; write_modes puts that right again. */
static void
write_opening(struct push *p)
{
	for (size_t i = 0; i < p->far.n; i++)
		if (is_closed(&p->far.v[i]))
			add_arg(p, "chmod u+rwx --", "", ".", p->far.v[i].path);
	end_command(p);
	p->changes = 0;
}

/* Is there a directory above this path that becomes something else? */
static bool
beneath_replaced(const struct push *p, const char *path)
{
	for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/')) {
		sb_autofree char *dir = strndup(path, (size_t)(slash - path));
		const struct sb_agentless_entry *h =
			dir ? sb_agentless_list_find(&p->here, dir) : NULL;

		if (h && h->type != 'd')
			return true;
	}
	return false;
}

/*
 * What is in the way of something of another type (`in_way`), or what is to go: files by name, then
 * directories from the deepest up and only when they are empty, because what is excluded or special
 * in them stays.
 */
static void
write_removals(struct push *p, bool in_way)
{
	for (int dirs = 0; dirs < 2; dirs++) {
		for (size_t i = p->far.n; i-- > 1;) {
			const struct sb_agentless_entry *e = &p->far.v[i],
							*h = sb_agentless_list_find(&p->here,
								e->path);
			bool replaced =
				(h && h->type != e->type) || (!h && beneath_replaced(p, e->path));

			if ((e->type == 'd') != dirs || (h && !replaced) || replaced != in_way)
				continue;
			/* Special files stay unless something takes their place. */
			if (e->type == 'o' && !h)
				continue;
			if (dirs)
				add_arg(p, "rmdir --", " 2>/dev/null || :", ".", e->path);
			else
				add_arg(p, "rm -f --", "", ".", e->path);
		}
		end_command(p);
	}
}

static void
write_moves(struct push *p, const char *stage_dir)
{
	const char *dir = NULL;
	sb_autofree char *tail = NULL;
	size_t dir_len = 0;

	for (size_t i = 1; i < p->here.n; i++)
		if (p->here.v[i].type == 'd' &&
			!same(p, &p->here.v[i], sb_agentless_list_find(&p->far, p->here.v[i].path)))
			add_arg(p, "mkdir -p --", "", ".", p->here.v[i].path);
	for (size_t i = 1; i < p->here.n; i++) {
		const struct sb_agentless_entry *e = &p->here.v[i];
		const char *slash = strrchr(e->path, '/');
		size_t len = slash ? (size_t)(slash - e->path) : 0;

		if (!strchr("fl", e->type) || same(p, e, sb_agentless_list_find(&p->far, e->path)))
			continue;
		if (!dir || len != dir_len || strncmp(dir, e->path, len) != 0) {
			sb_auto(sb_buf) struct sb_buf t;
			sb_autofree char *name = strndup(e->path, len);
			sb_autofree char *full = sb_str_printf("./%s", name ? name : "");

			end_command(p);
			sb_buf_init(&t, 65536);
			sb_buf_add_char(&t, ' ');
			sb_quote_argument(&t, full ? full : ".");
			free(tail);
			tail = (char *)sb_buf_detach(&t, NULL);
			dir = e->path;
			dir_len = len;
			if (!name || !full || !tail) {
				p->text.failed = SB_E_NOMEM;
				return;
			}
		}
		add_arg(p, "mv -f --", tail, stage_dir, e->path);
	}
	end_command(p);
}

/* Modes that differ: files whose content is there already, and directories, deepest first. */
static void
write_modes(struct push *p)
{
	for (size_t i = p->here.n; i-- > 0;) {
		const struct sb_agentless_entry *e = &p->here.v[i],
						*f = sb_agentless_list_find(&p->far, e->path);
		sb_autofree char *full = NULL;

		if (e->type != 'd' && (e->type != 'f' || !same(p, e, f)))
			continue;
		if (f && f->type == e->type && (f->mode & 0777) == (e->mode & 0777) &&
			!is_closed(f))
			continue;
		p->changes += !f || (f->mode & 0777) != (e->mode & 0777);
		full = sb_str_printf("./%s", e->path);
		if (!full) {
			p->text.failed = SB_E_NOMEM;
			return;
		}
		sb_buf_addf(&p->text, "chmod %03o -- ", e->mode & 0777);
		sb_quote_argument(&p->text, full);
		sb_buf_add_char(&p->text, '\n');
	}
}

static int
write_script(struct push *p)
{
	char stage_dir[64];

	(void)snprintf(stage_dir, sizeof stage_dir, "%s%s", SB_AGENTLESS_STAGE, p->m.nonce);
	sb_buf_addf(&p->text,
		"trap 'e=$?; printf \"\\nsbsync:%%s:done %%s\\n\" %s $e' 0\nset -e\nmkdir -p -- ",
		p->m.nonce);
	sb_quote_argument(&p->text, p->a->root);
	sb_buf_add_str(&p->text, "\ncd -- ");
	sb_quote_argument(&p->text, p->a->root);
	sb_buf_add_char(&p->text, '\n');
	write_opening(p);
	write_removals(p, true);
	write_moves(p, stage_dir);
	write_removals(p, false);
	write_modes(p);
	sb_buf_addf(&p->text, "rm -rf -- ./%s\n", stage_dir);
	return sb_buf_check(&p->text, "the commit script", p->err);
}

static int
commit(struct push *p)
{
	int r;

	p->m.t = sb_remote_exec(p->a->remote, "exec sh", p->err);
	if (!p->m.t)
		return p->err->code;
	r = sb_marker_send(&p->m, p->text.data, p->text.len, p->err);
	if (r >= 0)
		r = await_done(p, "moving files into place");
	sb_transport_free(p->m.t);
	p->m.t = NULL;
	return r;
}

/* The proof: the far tree is what the shadow is. */
static int
verify(struct push *p, const char *record)
{
	sb_auto(sb_agentless_list) struct sb_agentless_list now = { 0 };
	char shown[200];
	struct sb_agentless a = *p->a;
	int r;

	a.known = p->here.n;
	p->done = true;
	r = sb_agentless_list_far(&a, &now, p->err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p->here.n; i++) {
		const struct sb_agentless_entry *e = &p->here.v[i];

		if (e->type != 'o' && !same(p, e, sb_agentless_list_find(&now, e->path)))
			return sb_fail(p->err, SB_E_CHANGED, "%s: %s is not there as it was sent",
				p->m.name,
				sb_escape(e->path, strlen(e->path), shown, sizeof shown));
	}
	for (size_t i = 0; i < now.n; i++)
		/* A directory may have stayed because of what is excluded in it. */
		if (!strchr("do", now.v[i].type) &&
			!sb_agentless_list_find(&p->here, now.v[i].path))
			return sb_fail(p->err, SB_E_CHANGED, "%s: %s appeared there meanwhile",
				p->m.name,
				sb_escape(now.v[i].path, strlen(now.v[i].path), shown,
					sizeof shown));
	return sb_agentless_save(record, &now, p->err);
}

static bool
anything_to_send(const struct push *p)
{
	for (size_t i = 0; i < p->here.n; i++) {
		const struct sb_agentless_entry *e = &p->here.v[i];

		if (strchr("fl", e->type) && !same(p, e, sb_agentless_list_find(&p->far, e->path)))
			return true;
	}
	return false;
}

static int
push_all(struct push *p, const char *record, bool expect_record, int64_t max_delete)
{
	struct sb_agentless a = *p->a;
	int r = sb_agentless_list_local(p->a, p->rootfd, &p->here, p->err);

	a.known = p->here.n;
	if (r >= 0)
		r = sb_agentless_list_far(&a, &p->far, p->err);
	if (r < 0)
		return r;
	p->coarse = p->far.coarse || !p->far.gnu_tar;
	if (expect_record)
		r = check_record(p, record);
	if (r >= 0)
		r = check_brake(p, max_delete);
	if (r >= 0)
		r = sb_marker_init(&p->m, p->err);
	if (r >= 0)
		r = write_script(p);
	if (r >= 0 && !p->changes && !p->far.absent)
		return sb_agentless_save(record, &p->far, p->err);
	if (r >= 0 && anything_to_send(p))
		r = stage(p);
	if (r >= 0)
		r = commit(p);
	return r < 0 ? r : verify(p, record);
}

int
sb_agentless_push(const struct sb_agentless *a, const char *shadow, const char *record,
	bool expect_record, int64_t max_delete, struct sb_agentless_stats *stats,
	struct sb_error *err)
{
	struct sb_error why = { 0 };
	struct push p = { .a = a, .rootfd = -1, .stats = stats, .err = &why };
	int r = 0;

	memset(stats, 0, sizeof *stats);
	p.m = (struct sb_marker){ .name = sb_remote_name(a->remote),
		.cancel = a->cancel,
		.deadline = a->deadline };
	sb_buf_init(&p.text, SCRIPT_MAX);
	p.rootfd = sb_path_open_root(shadow, &why);
	if (p.rootfd < 0)
		r = p.rootfd;
	if (r >= 0)
		r = push_all(&p, record, expect_record, max_delete);
	if (r < 0 && err)
		*err = why;
	sb_agentless_list_free(&p.far);
	sb_agentless_list_free(&p.here);
	sb_buf_free(&p.text);
	if (p.rootfd >= 0)
		(void)close(p.rootfd);
	return r < 0 ? r : 0;
}
