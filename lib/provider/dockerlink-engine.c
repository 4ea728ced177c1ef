/* SPDX-License-Identifier: MIT */
/* A sandbox as a container of docker or podman: what a profile means there. */
#include "config.h"

#include <provider/dockerlink.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/str.h>
#include <provider/provider.h>

#define DEFAULT_IMAGE "docker.io/library/buildpack-deps:stable"
#define DEFAULT_PIDS "4096"
#define BOX_DIR "/sandbox"
#define RESOLVER "nameserver 198.18.0.1\n"

/* Everything of a new container; the wish points into it. */
struct plan {
	struct sb_engine_wish w;
	struct sb_strlist labels, env, volumes, mounts, files, tmpfs, caps;
	char *user, *image;
};

static void
plan_free(struct plan *p)
{
	sb_strlist_free(&p->labels);
	sb_strlist_free(&p->env);
	sb_strlist_free(&p->volumes);
	sb_strlist_free(&p->mounts);
	sb_strlist_free(&p->files);
	sb_strlist_free(&p->tmpfs);
	sb_strlist_free(&p->caps);
	free(p->user);
	free(p->image);
}
SB_CLEANUP_VALUE(plan, plan_free)

static const char *
option(const struct sb_dockerlink *l, const char *key)
{
	return sb_strlist_get(sb_strlist_borrow(&l->options), key);
}

/* "none", "lists" (none and a gate), or "engine". */
static const char *
network_of(const struct sb_network *n)
{
	return !sb_dockerlink_net_reaches(n) ? "none" :
		sb_dockerlink_net_lists(n)   ? "lists" :
					       "engine";
}

static int
plan_labels(const struct sb_dockerlink *l, const struct sb_prepare_request *req, struct plan *p,
	struct sb_error *err)
{
	sb_autofree char *dir = sb_dockerlink_dir(l, false, err);

	if (!dir)
		return SB_E_NOMEM;
	sb_strlist_addf(&p->labels, SB_LABEL_SANDBOX "=%s", l->id);
	if (req->session_id)
		sb_strlist_addf(&p->labels, SB_LABEL_SESSION "=%s", req->session_id);
	sb_strlist_addf(&p->labels, SB_DOCKERLINK_MADE "=%s,%s", network_of(&req->profile->network),
		l->mounted ? "mounted" : "synced");
	/* One engine may serve several users and several records. */
	*strrchr(dir, '/') = '\0';
	sb_strlist_addf(&p->labels, SB_DOCKERLINK_OWNER "=%u:%s", (unsigned)geteuid(), dir);
	return sb_strlist_check(&p->labels, err);
}

static bool
is_root(const char *user)
{
	return !user || !*user || strcmp(user, "root") == 0 || strcmp(user, "0") == 0 ||
		sb_str_starts(user, "0:") || sb_str_starts(user, "root:");
}

/*
 * Who works in it. In a directory of ours, it is whoever this machine takes for the directory's
 * owner, so that new files are theirs; else the image decides.
 */
static int
plan_user(const struct sb_dockerlink *l, const struct sb_prepare_request *req,
	const char *image_user, struct plan *p, struct sb_error *err)
{
	const struct sb_engine_facts *is = &l->engine.is;
	const char *user = option(l, "user");
	struct stat st;

	if (l->mounted && is->remaps)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"this docker gives containers other users' numbers (userns-remap), so the "
			"files of a mounted directory would be another user's: use sync: synced");
	if (user && l->mounted && is->rootless)
		return sb_fail(err, SB_E_INVAL,
			"backend docker: user does not go with sync: mounted in rootless %s, "
			"where the files would be another user's",
			l->engine.cli.words.v[0]);
	if (user || !l->mounted) {
		p->user = strdup(user ? user : image_user);
	} else {
		if (stat(req->local_root, &st) < 0)
			return sb_fail_errno(err, "%s", req->local_root);
		/* Rootless: we are root inside; Podman can also leave us our number. */
		p->w.keep_id = is->rootless && l->engine.podman;
		p->user = p->w.keep_id ? strdup("") :
			is->rootless   ? strdup("0:0") :
			st.st_uid == 0 ? strdup("") :
					 sb_str_printf("%u:%u", (unsigned)st.st_uid,
						 (unsigned)st.st_gid);
	}
	return p->user ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

/* A limit that nobody would keep is refused. Without one, a fork bomb ends somewhere, too. */
static int
plan_limits(const struct sb_dockerlink *l, struct plan *p, struct sb_error *err)
{
	const struct sb_engine_facts *is = &l->engine.is;
	const char *cannot = NULL;

	p->w.memory = option(l, "memory");
	p->w.cpus = option(l, "cpus");
	p->w.pids = option(l, "pids");
	if (p->w.memory && is->no_memory)
		cannot = "memory";
	else if (p->w.cpus && is->no_cpus)
		cannot = "cpus";
	else if (p->w.pids && is->no_pids)
		cannot = "pids";
	if (cannot)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"this %s%s cannot limit %s: it has no such control group here; take the "
			"option out, or run the engine as root",
			is->rootless ? "rootless " : "", l->engine.cli.words.v[0], cannot);
	if (!p->w.pids && !is->no_pids)
		p->w.pids = DEFAULT_PIDS;
	return 0;
}

/*
 * Where places go: into a volume, whose files are as fast as those of the machine. It is root's:
 * podman can give it to another user, and with docker another user's files go into the container
 * itself, or into memory when that is read-only.
 */
static int
plan_room(struct sb_dockerlink *l, struct plan *p, struct sb_error *err)
{
	bool root = is_root(p->user) && !p->w.keep_id, volume = root || l->engine.podman;
	const char *dir = volume || p->w.read_only ? BOX_DIR : "/tmp/.sandbox";

	if (l->mounted) /* there are none */
		dir = "/tmp/.sandbox";
	else if (volume)
		sb_strlist_addf(&p->volumes, "%s-work:" BOX_DIR "%s", l->name, root ? "" : ":U");
	else if (p->w.read_only)
		sb_strlist_add(&p->tmpfs, BOX_DIR ":rw,exec,mode=1777");
	if (p->w.read_only)
		sb_strlist_add(&p->tmpfs, "/tmp:rw,exec,mode=1777");
	sb_strlist_addf(&p->env, SB_DOCKERLINK_MARK "%s", l->id);
	sb_strlist_addf(&p->env, "SBSYNC_BOX_DIR=%s", dir);
	sb_strlist_addf(&p->env, "SBSYNC_STATE_DIR=%s/.state", dir);
	/* The home of somebody the image does not know, or cannot write to. */
	if (p->w.read_only || !root)
		sb_strlist_add(&p->env, "HOME=/tmp");
	return sb_strlist_check(&p->env, err);
}

static int
plan_network(struct sb_dockerlink *l, const struct sb_network *n, struct plan *p,
	struct sb_error *err)
{
	const char *network = network_of(n);
	sb_autofree char *dir = NULL;
	sb_autoclose int fd = -1;
	int r;

	l->lists = strcmp(network, "lists") == 0;
	/* A gate is put on it once it runs. */
	p->w.network = strcmp(network, "engine") == 0 ? NULL : "none";
	if (!l->lists)
		return 0;
	dir = sb_dockerlink_dir(l, true, err);
	if (!dir)
		return err->code;
	if (strpbrk(dir, ":,"))
		return sb_fail(err, SB_E_INVAL, "%s: a path with a colon cannot be mounted", dir);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return sb_fail_errno(err, "%s", dir);
	r = sb_file_replace(fd, "resolv.conf", RESOLVER, strlen(RESOLVER), 0644, err);
	sb_strlist_addf(&p->files, "%s/resolv.conf:/etc/resolv.conf", dir);
	return r < 0 ? r : sb_strlist_check(&p->files, err);
}

static int
plan_caps(const struct sb_dockerlink *l, struct plan *p, struct sb_error *err)
{
	const char *list = option(l, "cap_add");

	while (list && *list) {
		size_t n = strcspn(list, ",");

		if (n)
			sb_strlist_addf(&p->caps, "%.*s", (int)n, list);
		list += n + (list[n] == ',');
	}
	return sb_strlist_check(&p->caps, err);
}

/* The image, and who works in it: what an archive has kept of one that is gone, or the profile's.
 */
static int
plan_image(struct sb_dockerlink *l, const struct sb_prepare_request *req, struct plan *p,
	const struct sb_call *call, struct sb_error *err)
{
	sb_autofree char *archived = sb_dockerlink_archive_name(l);
	sb_autofree char *user = NULL;
	const char *image = option(l, "image");
	int r = archived ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r == 0 && req->profile->persist == SB_PERSIST_ARCHIVE)
		r = sb_engine_has_image(&l->engine, archived, call, err);
	if (r < 0)
		return r;
	p->image = r > 0 ? sb_steal(&archived) : strdup(image ? image : DEFAULT_IMAGE);
	if (!p->image)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = sb_engine_image_user(&l->engine, p->image, call, &user, err);
	if (r > 0 && call)
		sb_log(&call->log, SB_LOG_WARN, "docker",
			"image %s is not here: %s fetches it, which may take a while", p->image,
			l->engine.cli.words.v[0]);
	return r < 0 ? r : plan_user(l, req, user, p, err);
}

static int
plan_all(struct sb_dockerlink *l, const struct sb_prepare_request *req, struct plan *p,
	const struct sb_call *call, struct sb_error *err)
{
	int r = sb_dockerlink_learn(&l->engine, call, err);

	p->w.read_only = option(l, "read_only") && strcmp(option(l, "read_only"), "yes") == 0;
	if (r == 0)
		r = plan_limits(l, p, err);
	if (r == 0)
		r = plan_labels(l, req, p, err);
	if (r == 0)
		r = plan_image(l, req, p, call, err);
	if (r == 0)
		r = plan_room(l, p, err);
	if (r == 0)
		r = plan_network(l, &req->profile->network, p, err);
	if (r == 0)
		r = plan_caps(l, p, err);
	if (r < 0)
		return r;
	if (l->mounted) {
		sb_strlist_add(&p->mounts, req->local_root);
		sb_strlist_add_all(&p->mounts, req->local_dirs);
	}
	p->w.name = l->name;
	p->w.image = p->image;
	p->w.labels = sb_strlist_borrow(&p->labels);
	p->w.env = sb_strlist_borrow(&p->env);
	p->w.volumes = sb_strlist_borrow(&p->volumes);
	p->w.mounts = sb_strlist_borrow(&p->mounts);
	p->w.files = sb_strlist_borrow(&p->files);
	p->w.tmpfs = sb_strlist_borrow(&p->tmpfs);
	p->w.caps = sb_strlist_borrow(&p->caps);
	p->w.user = p->user;
	p->w.runtime = option(l, "runtime");
	p->w.hold = l->lock;
	r = sb_strlist_check(&p->mounts, err);
	return r < 0 ? r : sb_strlist_check(&p->tmpfs, err);
}

/*
 * What it was made with stays: another network or way of syncing needs another one. Who says
 * nothing of the network gets the one there is.
 */
static int
check_kept(struct sb_dockerlink *l, const struct sb_prepare_request *req, struct sb_error *err)
{
	const struct sb_network *n = &req->profile->network;
	const char *comma = strchr(l->made, ','), *network = network_of(n),
		   *sync = l->mounted ? "mounted" : "synced";
	size_t len = comma ? (size_t)(comma - l->made) : 0;
	bool same = strlen(network) == len && strncmp(network, l->made, len) == 0;

	if (comma && strcmp(comma + 1, sync) == 0 &&
		(same || (!n->required && !sb_dockerlink_net_reaches(n))))
		return 0;
	return sb_fail(err, SB_E_NETWORK_POLICY,
		"the profile wants network %s and sync: %s, but sandbox %s was made with %s: "
		"destroy it, or use another",
		network, sync, l->id, l->made);
}

static int
make(struct sb_dockerlink *l, const struct sb_prepare_request *req, const struct sb_call *call,
	struct sb_error *err)
{
	sb_auto(plan) struct plan p = { 0 };
	sb_autofree char *volume = sb_str_printf("%s-work", l->name);
	struct sb_error why = { 0 };
	bool running;
	int had, r = plan_all(l, req, &p, call, err);

	if (r < 0 || !volume)
		return r < 0 ? r : sb_fail(err, SB_E_NOMEM, "out of memory");
	had = l->mounted ? 0 : sb_engine_has_volume(&l->engine, volume, call, err);
	if (had < 0)
		return had;
	/* A volume that was there before may hold somebody's work. */
	l->fresh = !had;
	r = sb_engine_make(&l->engine, &p.w, call, &why);
	if (r == 0)
		return 0;
	/* Somebody else made it just now; or it was made and did not start. */
	if (r == SB_E_CHILD && sb_dockerlink_find(l, NULL, call, &running, NULL) == 0 && running) {
		l->fresh = false;
		return 0;
	}
	if (r == SB_E_CHILD && !l->fresh)
		(void)sb_engine_remove(&l->engine, l->name, call, NULL);
	if (err)
		*err = why;
	return r;
}

int
sb_dockerlink_engine_ensure(struct sb_dockerlink *l, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_error *err)
{
	struct sb_error why = { 0 };
	bool running = false;
	int r = sb_dockerlink_find(l, NULL, call, &running, &why);

	if (r == 0) {
		r = check_kept(l, req, err);
		if (r == 0 && !running)
			r = sb_engine_start(&l->engine, l->name, l->paused, call, err);
		l->lists = r == 0 && strncmp(l->made, "lists,", 6) == 0;
	} else if (r == SB_E_SANDBOX_NOT_FOUND && req->may_create) {
		r = make(l, req, call, err);
	} else if (err) {
		*err = why;
	}
	/* Without lists of today those of yesterday go on, as long as the proxy does. */
	if (r == 0 && sb_dockerlink_net_lists(&req->profile->network))
		r = sb_dockerlink_net_open(l, &req->profile->network, call, err);
	return r;
}
