/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/replica/agent.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <base/strlist.h>
#include <base/work.h>
#include <sync/replica/agent-watch.h>
#include <sync/replica/attrs-tree.h>
#include <sync/codec/delta.h>
#include <sync/replica/inflow.h>
#include <sync/wire/proto.h>
#include <sync/replica/receive.h>
#include <sync/replica/replica.h>
#include <sync/replica/send.h>
#include <sync/wire/wire.h>
#include <sync/tree/diff.h>

#define RULES_MAX (16u << 20)
#define LIST_MAX (256u << 20)
/* What waits in a pipe survives a connection that breaks; what waits in sshd does not. */
#define PIPE_LEN (1u << 20)
#define AGAIN_MS 10000

struct agent {
	const struct sb_agent_opts *o;
	struct sb_wire *w;
	int peer; /* what the controller is read from */
	struct sb_begin begin;
	struct sb_rules *rules;
	struct sb_replica *rep;
	struct sb_stage *stage;
	struct sb_receive *recv;
	pthread_t sender;
	bool sending;
	struct sb_want_list wants;
	int send_result;
	struct sb_error send_error;
	struct sb_agent_watch *watch;
	struct sb_recall *recall; /* for a controller that keeps the connection */
};

static void
close_root(struct agent *a)
{
	if (a->sending) {
		pthread_join(a->sender, NULL);
		a->sending = false;
	}
	sb_proto_want_free(&a->wants);
	sb_receive_free(a->recv);
	a->recv = NULL;
	sb_stage_free(a->stage);
	a->stage = NULL;
	sb_replica_free(a->rep);
	a->rep = NULL;
	sb_rules_free(a->rules);
	a->rules = NULL;
	free(a->begin.root);
	memset(&a->begin, 0, sizeof a->begin);
}

static int
greet(struct agent *a, struct sb_error *err)
{
	struct sb_hello me = { .version = SB_PROTO_VERSION,
		.min_version = SB_PROTO_MIN,
		.features = SB_FEATURE_WATCH | SB_FEATURE_ATTRS,
		.software = "sbsync " PACKAGE_VERSION };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_hello you;
	const uint8_t *p;
	size_t len;
	int r = sb_wire_expect(a->w, SB_MSG_HELLO, &p, &len, err);

	if (r == 0)
		r = sb_proto_hello_decode(p, len, &you, err);
	if (r < 0)
		return r;
	if (you.min_version > SB_PROTO_VERSION || you.version < SB_PROTO_MIN)
		return sb_fail(err, SB_E_VERSION,
			"this agent speaks protocol %d to %d, the caller %u to %u: use the same "
			"version of sbsync",
			SB_PROTO_MIN, SB_PROTO_VERSION, you.min_version, you.version);
	sb_buf_init(&b, 1024);
	sb_proto_hello_encode(&me, &b);
	r = sb_buf_check(&b, "greeting", err);
	return r < 0 ? r : sb_wire_send(a->w, SB_MSG_WELCOME, b.data, b.len, err);
}

/*
 * A root that begins with ~/ or is relative counts from the home directory the agent was started
 * in.
 */
static int
open_replica(struct agent *a, struct sb_error *err)
{
	struct sb_replica_opts o = SB_REPLICA_OPTS_INIT;
	const char *root = a->begin.root, *home = getenv("HOME");
	sb_autofree char *full = NULL;

	if (strncmp(root, "~/", 2) == 0 || strcmp(root, "~") == 0) {
		if (!home)
			return sb_fail(err, SB_E_INVAL, "%s: there is no home directory here",
				root);
		full = sb_str_printf("%s%s", home, root + 1);
		if (!full)
			return sb_fail(err, SB_E_NOMEM, "root: out of memory");
		root = full;
	}
	if (!*root)
		root = ".";
	o.root = root;
	o.state_dir = a->o->state_dir;
	o.role = "runtime";
	memcpy(o.pair, a->begin.pair, sizeof o.pair);
	o.create = a->begin.flags & SB_BEGIN_CREATE;
	o.readonly = a->begin.flags & SB_BEGIN_READONLY;
	o.recall = a->recall;
	if (a->begin.flags & SB_BEGIN_AGAIN) {
		o.lock_ms = AGAIN_MS;
		o.peer = a->peer;
	}
	o.cancel = a->o->cancel;
	o.log = a->o->log;
	a->rep = sb_replica_open(&o, err);
	return a->rep ? 0 : err ? err->code : SB_E_SYS;
}

static int
send_skipped(struct agent *a, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	const struct sb_scan *s = &a->rep->scan;
	int r;

	sb_buf_init(&b, LIST_MAX);
	sb_buf_add_varint(&b, s->n_skipped);
	for (size_t i = 0; i < s->n_skipped; i++) {
		sb_buf_add_bytes(&b, s->skipped[i].path, strlen(s->skipped[i].path));
		sb_buf_add_u8(&b, (uint8_t)s->skipped[i].reason);
	}
	r = sb_buf_check(&b, "list of skipped entries", err);
	return r < 0 ? r : sb_wire_send_blob(a->w, SB_MSG_SKIPPED, b.data, b.len, err);
}

static int
send_have(struct agent *a, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, LIST_MAX);
	sb_buf_add_varint(&b, a->stage->n_left);
	for (size_t i = 0; i < a->stage->n_left; i++) {
		sb_buf_add(&b, a->stage->left[i].digest.b, 16);
		sb_buf_add_varint(&b, a->stage->left[i].size);
	}
	r = sb_buf_check(&b, "list of leftovers", err);
	return r < 0 ? r : sb_wire_send_blob(a->w, SB_MSG_HAVE, b.data, b.len, err);
}

static int
send_changes(struct agent *a, struct sb_error *err)
{
	sb_auto(sb_diff) struct sb_diff d = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r = sb_diff_make(a->rep->base, a->rep->scan.manifest, &d, err);

	sb_buf_init(&b, 4ull << 30);
	if (r == 0)
		r = sb_diff_encode(&d, &b, err);
	return r < 0 ? r : sb_wire_send_blob(a->w, SB_MSG_CHANGES, b.data, b.len, err);
}

/*
 * The sandbox's identity is an attribute of the root directory itself: it goes where the directory
 * goes, and an emptied or replaced one does not have it. Where there are no attributes it is a file
 * in our state folder.
 */
#define ID_XATTR "user.sbsync.id"
#define ID_FILE "identity"

static void
read_identity(struct sb_replica *rep, uint8_t out[16])
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };

	memset(out, 0, 16);
	if (rep->rootfd < 0 || fgetxattr(rep->rootfd, ID_XATTR, out, 16) == 16)
		return;
	memset(out, 0, 16);
	if (rep->statefd >= 0 && sb_file_read(rep->statefd, ID_FILE, 16, &b, NULL) == 0 &&
		b.len == 16)
		memcpy(out, b.data, 16);
}

static int
write_identity(struct sb_replica *rep, const uint8_t id[16], struct sb_error *err)
{
	if (fsetxattr(rep->rootfd, ID_XATTR, id, 16, 0) == 0)
		return 0;
	if (rep->statefd < 0)
		return sb_fail_errno(err, "write the sandbox's identity");
	return sb_file_replace(rep->statefd, ID_FILE, id, 16, 0600, err);
}

static void
describe(struct agent *a, struct sb_scan_reply *m)
{
	struct sb_replica *rep = a->rep;
	struct timespec now;
	struct statvfs vfs;
	struct stat st;

	clock_gettime(CLOCK_REALTIME, &now);
	m->clock_ms = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
	if (rep->rootfd < 0) {
		m->flags |= SB_SCAN_MISSING;
	} else {
		if (fstatvfs(rep->rootfd, &vfs) == 0)
			m->free_bytes = (uint64_t)vfs.f_bavail * vfs.f_frsize;
		if (fstat(rep->rootfd, &st) == 0) {
			m->root_mode = st.st_mode & 07777;
			m->root_mtime = rep->scan.manifest->root.mtime;
		}
	}
	read_identity(rep, m->identity);
	if (rep->scan.manifest->n_leaders)
		m->flags |= SB_SCAN_LINKS;
	if (rep->recovered)
		m->flags |= SB_SCAN_RECOVERED;
	m->count = rep->scan.manifest->count;
	m->bytes_hashed = rep->scan.hashed_bytes;
	m->specials = rep->scan.n_specials;
	if (rep->scan.unhashed)
		m->flags |= SB_SCAN_LAZY;
	else
		m->id = rep->scan.manifest->id;
}

static int
reply_scan(struct agent *a, struct sb_error *err)
{
	struct sb_scan_reply m = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_replica *rep = a->rep;
	bool base;
	int r;

	describe(a, &m);
	base = rep->base && !rep->scan.unhashed && sb_digest_known(&a->begin.base) &&
		sb_digest_eq(&a->begin.base, &rep->base->id) &&
		sb_digest_eq(&a->begin.rules, &rep->base_rules);
	if (base)
		m.flags |= SB_SCAN_BASE_KNOWN;
	if (rep->scan.n_skipped)
		m.flags |= SB_SCAN_SKIPS;
	if (a->stage->n_left)
		m.flags |= SB_SCAN_LEFTOVERS;
	sb_buf_init(&b, 1024);
	sb_proto_scan_encode(&m, &b);
	r = sb_buf_check(&b, "scan reply", err);
	if (r == 0)
		r = sb_wire_send(a->w, SB_MSG_SCAN, b.data, b.len, err);
	if (r == 0 && base && !sb_digest_eq(&rep->base->id, &rep->scan.manifest->id))
		r = send_changes(a, err);
	if (r == 0 && (m.flags & SB_SCAN_SKIPS))
		r = send_skipped(a, err);
	if (r == 0 && (m.flags & SB_SCAN_LEFTOVERS))
		r = send_have(a, err);
	return r < 0 ? r : sb_wire_send_proof(a->w, err);
}

/* Whose bytes do not travel in the stream, and so are not hashed on the way. */
static bool
not_streamed(const char *path, const struct sb_entry *e, void *arg)
{
	(void)path;
	(void)arg;
	return !e->size || e->link;
}

/* BEGIN, then RULES: open, recover, scan, tell. */
static int
begin(struct agent *a, const uint8_t *p, size_t len, struct sb_error *err)
{
	struct sb_scan_opts so = SB_SCAN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 0);
	close_root(a);
	r = sb_proto_begin_decode(p, len, &a->begin, err);
	if (r == 0)
		r = sb_wire_expect(a->w, SB_MSG_RULES, &p, &len, err);
	if (r == 0)
		r = sb_wire_recv_blob(a->w, SB_MSG_RULES, p, len, RULES_MAX, &b, err);
	if (r < 0)
		return r;
	a->rules = sb_rules_decode(b.data, b.len, err);
	if (!a->rules)
		return err ? err->code : SB_E_PROTO;
	r = open_replica(a, err);
	if (r == 0)
		r = sb_stage_find(a->begin.flags & SB_BEGIN_READONLY ? -1 : a->rep->rootfd,
			a->o->cancel, &a->stage, err);
	if (r < 0)
		return r;
	so.rules = a->rules;
	so.checksum = a->begin.flags & SB_BEGIN_CHECKSUM;
	so.cross_mounts = a->begin.flags & SB_BEGIN_CROSS;
	so.lazy_below = a->begin.flags & SB_BEGIN_LAZY ? 1u << 20 : 0;
	so.jobs = a->begin.jobs > 64 ? 64 : a->begin.jobs;
	r = sb_replica_scan(a->rep, &so, err);
	if (r == 0 && a->rep->scan.unhashed)
		r = sb_scan_hash_rest(a->rep->rootfd, &so, &a->rep->scan, not_streamed, NULL, err);
	if (r < 0)
		return sb_wrap(err, r, "scan %s", a->begin.root);
	sb_replica_update_cache(a->rep, a->rep->scan.hashed_files, a->rep->scan.hashed_bytes);
	return reply_scan(a, err);
}

static int
need_root(const struct agent *a, struct sb_error *err)
{
	return a->rep ? 0 : sb_fail(err, SB_E_PROTO, "the controller names no root");
}

static int
ready_to_receive(struct agent *a, struct sb_error *err)
{
	struct sb_receive_opts o = SB_RECEIVE_OPTS_INIT;
	int r = need_root(a, err);

	if (r < 0 || a->recv)
		return r;
	if (a->begin.flags & SB_BEGIN_READONLY)
		return sb_fail(err, SB_E_PROTO,
			"the controller changes a root it opened for reading");
	if (!a->stage)
		return sb_fail(err, SB_E_PROTO,
			"the controller changes a root again that it has committed");
	o.jobs = a->begin.jobs;
	o.store = a->begin.flags & SB_BEGIN_SESSION ? sb_replica_store(a->rep) : NULL;
	a->recv = sb_receive_new(a->rep, sb_steal(&a->stage), &o, err);
	return a->recv ? 0 : err ? err->code : SB_E_SYS;
}

static int
send_tree(struct agent *a, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r = need_root(a, err);

	sb_buf_init(&b, 4ull << 30);
	if (r == 0)
		r = sb_manifest_encode(a->rep->scan.manifest, false, &b, err);
	if (r == 0)
		r = sb_wire_send_blob(a->w, SB_MSG_MANIFEST, b.data, b.len, err);
	return r < 0 ? r : sb_wire_send_proof(a->w, err);
}

/* The paths that a message of the type names, which begins with `p`. */
static int
recv_paths(struct agent *a, uint8_t type, const uint8_t *p, size_t len, struct sb_strlist *out,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf in = { 0 };
	int r = need_root(a, err);

	sb_buf_init(&in, 0);
	if (r == 0)
		r = sb_wire_recv_blob(a->w, type, p, len, LIST_MAX, &in, err);
	return r < 0 ? r : sb_proto_paths_decode(in.data, in.len, out, err);
}

/*
 * One level of some directories: per directory the number of children, then per child type, name,
 * mode, mtime, size, digest, how much is beneath, target.
 */
static int
send_lists(struct agent *a, const uint8_t *p, size_t len, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist paths = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r = recv_paths(a, SB_MSG_LIST, p, len, &paths, err);

	sb_buf_init(&b, 4ull << 30);
	for (size_t i = 0; r == 0 && i < paths.n; i++) {
		const struct sb_entry *e = sb_manifest_find(a->rep->scan.manifest, paths.v[i]);

		if (!e || e->type != SB_ENTRY_DIR)
			return sb_fail(err, SB_E_PROTO,
				"the controller asks for a directory that is not there");
		sb_buf_add_varint(&b, e->dir->n);
		for (uint32_t k = 0; k < e->dir->n; k++) {
			const struct sb_entry *c = &e->dir->entries[k];

			sb_proto_listing_add(c, &b);
		}
	}
	if (r == 0)
		r = sb_buf_check(&b, "listing", err);
	if (r == 0)
		r = sb_wire_send_blob(a->w, SB_MSG_MANIFEST, b.data, b.len, err);
	return r < 0 ? r : sb_wire_send_proof(a->w, err);
}

static int
commit(struct agent *a, const uint8_t *p, size_t len, struct sb_error *err)
{
	sb_auto(sb_commit_result) struct sb_commit_result res = { 0 };
	sb_auto(sb_strlist) struct sb_strlist need = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_commit_req req;
	int r = ready_to_receive(a, err);

	sb_buf_init(&b, 4ull << 30);
	if (r == 0)
		r = sb_proto_commit_decode(p, len, &req, err);
	if (r == 0)
		r = sb_receive_settle(a->recv, &need, err);
	if (r < 0)
		return r;
	if (need.n) {
		sb_proto_paths_encode((const char *const *)need.v, need.n, &b);
		r = sb_buf_check(&b, "list of missing files", err);
		if (r == 0)
			r = sb_wire_send_blob(a->w, SB_MSG_NEED, b.data, b.len, err);
		return r < 0 ? r : sb_wire_send_proof(a->w, err);
	}
	if (req.set_root)
		sb_receive_root_meta(a->recv, req.root_mode, req.root_mtime);
	r = sb_receive_commit(a->recv,
		req.durability == SB_DURABLE_DEFAULT ? SB_DURABLE_NONE : req.durability, &res, err);
	if (r < 0)
		return r;
	sb_receive_free(sb_steal(&a->recv));
	if (a->begin.flags & SB_BEGIN_CLAIM) {
		r = write_identity(a->rep, a->begin.identity, err);
		if (r < 0)
			return r;
	}
	sb_receive_update_cache(a->rep, &res);
	if (req.remember && !res.n_left)
		(void)sb_replica_write_base(a->rep, a->rep->scan.manifest, &a->begin.rules, NULL);
	sb_proto_result_encode(&res, &b);
	r = sb_buf_check(&b, "result", err);
	if (r == 0)
		r = sb_wire_send_blob(a->w, SB_MSG_RESULT, b.data, b.len, err);
	return r < 0 ? r : sb_wire_send_proof(a->w, err);
}

/* Runs beside the main loop, which may be receiving. */
static void *
send_wanted(void *arg)
{
	struct agent *a = arg;
	struct sb_send_opts o = SB_SEND_OPTS_INIT;
	struct sb_error *err = &a->send_error;
	sb_auto(sb_send) struct sb_send *s = NULL;
	int r = 0;

	(void)sb_work_under(a->o->cancel);
	o.store = a->begin.flags & SB_BEGIN_SESSION ? sb_replica_store(a->rep) : NULL;
	s = sb_send_new(a->rep, a->w, &o, err);
	r = s ? 0 : SB_E_NOMEM;
	for (size_t i = 0; r == 0 && i < a->wants.n; i++) {
		const struct sb_want *w = &a->wants.v[i];
		struct sb_entry *e =
			sb_manifest_find(a->rep->scan.manifest, w->source ? w->source : w->path);

		if (!e || e->type != SB_ENTRY_FILE)
			r = sb_send_skip(s, SB_SENT_VANISHED, err);
		else
			r = sb_send_file(s, w, e, err);
	}
	if (r == 0)
		r = sb_send_finish(s, err);
	if (r == 0)
		r = sb_wire_send_proof(a->w, err);
	if (r < 0)
		sb_wire_send_error(a->w, err);
	a->send_result = r;
	return NULL;
}

static int
want(struct agent *a, const uint8_t *p, size_t len, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r = need_root(a, err), e;

	sb_buf_init(&b, 0);
	if (r == 0)
		r = sb_wire_recv_blob(a->w, SB_MSG_WANT, p, len, 1u << 30, &b, err);
	if (r < 0)
		return r;
	if (a->sending) {
		pthread_join(a->sender, NULL);
		a->sending = false;
	}
	sb_proto_want_free(&a->wants);
	r = sb_proto_want_decode(b.data, b.len, &a->wants, err);
	if (r < 0)
		return r;
	e = pthread_create(&a->sender, NULL, send_wanted, a);
	if (e) {
		errno = e;
		return sb_fail_errno(err, "start a thread");
	}
	a->sending = true;
	return 0;
}

/* Signatures of files the controller has newer versions of. */
static int
sign(struct agent *a, const uint8_t *p, size_t len, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist paths = { 0 };
	sb_auto(sb_buf) struct sb_buf out = { 0 };
	int r = recv_paths(a, SB_MSG_SIGREQ, p, len, &paths, err);

	sb_buf_init(&out, 1u << 30);
	for (size_t i = 0; r == 0 && i < paths.n; i++) {
		const struct sb_entry *e = sb_manifest_find(a->rep->scan.manifest, paths.v[i]);
		sb_auto(sb_buf) struct sb_buf sig = { 0 };
		sb_autoclose int fd = -1;

		sb_buf_init(&sig, 256u << 20);
		if (e && e->type == SB_ENTRY_FILE)
			fd = sb_path_open(a->rep->rootfd, paths.v[i], O_RDONLY | O_NONBLOCK, 0,
				NULL);
		if (fd < 0 || sb_delta_sign(fd, e->size, &sig, a->o->cancel, NULL) < 0)
			sb_buf_reset(&sig);
		sb_buf_add_bytes(&out, sig.data, sig.len);
	}
	if (r == 0)
		r = sb_buf_check(&out, "signatures", err);
	if (r == 0)
		r = sb_wire_send_blob(a->w, SB_MSG_SIGS, out.data, out.len, err);
	return r < 0 ? r : sb_wire_send_proof(a->w, err);
}

static int
remember(struct agent *a, struct sb_error *err)
{
	int r = need_root(a, err);

	if (r < 0 || a->rep->scan.unhashed)
		return r;
	sb_replica_save_cache(a->rep, a->rep->scan.manifest);
	(void)sb_replica_write_base(a->rep, a->rep->scan.manifest, &a->begin.rules, NULL);
	return 0;
}

static int
get_attrs(struct agent *a, const uint8_t *p, size_t len, struct sb_error *err)
{
	sb_auto(sb_attrs) struct sb_attrs all = { 0 };
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r = need_root(a, err);

	if (r == 0 && (len != 1 || !p[0] || p[0] & ~SB_ATTRS_ALL))
		r = sb_fail(err, SB_E_PROTO, "the controller asks for attributes of no known kind");
	if (r == 0)
		r = sb_attrs_tree_read(a->rep->rootfd, a->rep->scan.manifest, p[0], &all, err);
	sb_buf_init(&b, SB_ATTRS_BYTES_MAX);
	if (r == 0)
		r = sb_attrs_encode(&all, &b, err);
	if (r == 0)
		r = sb_wire_send_blob(a->w, SB_MSG_ATTRS, b.data, b.len, err);
	return r < 0 ? r : sb_wire_send_proof(a->w, err);
}

static int
set_attrs(struct agent *a, const uint8_t *p, size_t len, struct sb_error *err)
{
	sb_auto(sb_attrs) struct sb_attrs want = { 0 };
	sb_auto(sb_strlist) struct sb_strlist refused = { 0 };
	sb_auto(sb_buf) struct sb_buf in = { 0 }, out = { 0 };
	int r = need_root(a, err);

	sb_buf_init(&in, 0);
	sb_buf_init(&out, SB_ATTRS_BYTES_MAX);
	if (r == 0 && (a->begin.flags & SB_BEGIN_READONLY))
		r = sb_fail(err, SB_E_PROTO, "the controller changes a root it opened for reading");
	if (r == 0)
		r = sb_wire_recv_blob(a->w, SB_MSG_SETATTRS, p, len, SB_ATTRS_BYTES_MAX, &in, err);
	if (r == 0)
		r = sb_attrs_decode(in.data, in.len, UINT64_MAX, &want, err);
	if (r == 0)
		r = sb_attrs_tree_write(a->rep->rootfd, a->rep->scan.manifest, &want, &refused,
			err);
	if (r < 0)
		return r;
	sb_proto_paths_encode((const char *const *)refused.v, refused.n, &out);
	r = sb_buf_check(&out, "refused attributes", err);
	if (r == 0)
		r = sb_wire_send_blob(a->w, SB_MSG_ATTRS, out.data, out.len, err);
	return r < 0 ? r : sb_wire_send_proof(a->w, err);
}

/* The sync went well without a commit here: what an interrupted one left is of no more use. */
static void
drop_leftovers(struct agent *a)
{
	if (a->rep && a->rep->rootfd >= 0 && a->stage && a->stage->fd >= 0 &&
		!(a->begin.flags & SB_BEGIN_READONLY))
		sb_commit_drop_leftovers(a->rep->rootfd, &a->rep->log);
}

/* The root of the last sync is let go: others may work on it while we only look. */
static int
watch(struct agent *a, const uint8_t *p, size_t len, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	int r;

	sb_buf_init(&b, 0);
	close_root(a);
	r = sb_wire_recv_blob(a->w, SB_MSG_WATCH, p, len, SB_WATCH_LIST_MAX, &b, err);
	return r < 0 ? r : sb_agent_watch_start(&a->watch, a->w, &b, err);
}

static int
dispatch(struct agent *a, uint8_t type, const uint8_t *p, size_t len, struct sb_error *err)
{
	int r;

	switch (type) {
	case SB_MSG_BEGIN: return begin(a, p, len, err);
	case SB_MSG_GETTREE: return send_tree(a, err);
	case SB_MSG_LIST: return send_lists(a, p, len, err);
	case SB_MSG_SIGREQ: return sign(a, p, len, err);
	case SB_MSG_WANT: return want(a, p, len, err);
	case SB_MSG_COMMIT: return commit(a, p, len, err);
	case SB_MSG_REMEMBER: return remember(a, err);
	case SB_MSG_GETATTRS: return get_attrs(a, p, len, err);
	case SB_MSG_SETATTRS: return set_attrs(a, p, len, err);
	case SB_MSG_WATCH: return watch(a, p, len, err);
	case SB_MSG_UNWATCH: return sb_agent_watch_stop(a->watch, a->w, err);
	case SB_MSG_PROOF: return 0;
	case SB_MSG_END:
		drop_leftovers(a);
		close_root(a);
		return 0;
	case SB_MSG_PLAN:
		r = ready_to_receive(a, err);
		return r < 0 ? r : sb_inflow_plan(a->w, a->recv, p, len, err);
	case SB_MSG_ROWS:
		r = ready_to_receive(a, err);
		return r < 0 ? r : sb_receive_rows(a->recv, p, len, err);
	case SB_MSG_DATA:
		r = ready_to_receive(a, err);
		return r < 0 ? r : sb_inflow_run(a->w, a->recv, true, p, len, err);
	default: return sb_fail(err, SB_E_PROTO, "message %u is not known here", type);
	}
}

static int
serve(struct agent *a, struct sb_error *err)
{
	int r = greet(a, err);

	while (r == 0) {
		const uint8_t *p;
		uint8_t type;
		size_t len;

		r = sb_wire_flush(a->w, err);
		if (r == 0)
			r = sb_wire_recv(a->w, &type, &p, &len, err);
		if (r < 0)
			break;
		if (type == SB_MSG_BYE) {
			drop_leftovers(a);
			return sb_wire_send_proof(a->w, err);
		}
		r = dispatch(a, type, p, len, err);
	}
	return r;
}

int
sb_agent_serve(struct sb_transport *t, const struct sb_agent_opts *opts, struct sb_error *err)
{
	struct sb_wire_opts wo = SB_WIRE_OPTS_INIT;
	struct agent a = { .o = opts, .peer = t->rfd };
	const struct sb_cancel *before;
	struct sb_error e = { 0 };
	int r;

	r = sb_file_write_all(t->wfd, SB_PROTO_MARKER, strlen(SB_PROTO_MARKER), err);
	if (r < 0)
		return r;
	(void)fcntl(t->rfd, F_SETPIPE_SZ, PIPE_LEN);
	wo.cancel = opts->cancel;
	wo.stall_ms = opts->stall_ms;
	wo.busy_ms = -1; /* a controller may keep the connection for its next sync */
	a.w = sb_wire_new(t, &wo, err);
	if (!a.w)
		return err ? err->code : SB_E_NOMEM;
	a.recall = sb_recall_new();
	before = sb_work_under(opts->cancel);
	r = serve(&a, &e);
	(void)sb_work_under(before);
	if (r < 0 && r != SB_E_CLOSED)
		sb_wire_send_error(a.w, &e);
	sb_agent_watch_free(a.watch);
	close_root(&a);
	sb_recall_free(a.recall);
	sb_wire_free(a.w);
	if (r < 0 && err)
		*err = e;
	return r;
}
