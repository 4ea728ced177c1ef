/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/oci.h>

#include <fcntl.h>
#include <jansson.h>
#include <string.h>

#include <base/file.h>
#include <base/str.h>

#define FILES_MAX 65536

static const char *const caps[] = { "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID",
	"CAP_KILL", "CAP_SETGID", "CAP_SETUID", "CAP_SETPCAP", "CAP_NET_BIND_SERVICE",
	"CAP_SYS_CHROOT" };

static json_t *
strings(const char *const *v, size_t n)
{
	json_t *a = json_array();

	/* Bytes that are no text cannot be told to runsc; jansson refuses them. */
	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(a, json_string(v[i]));
	return a;
}

/* True when every string came through. */
static bool
complete(const json_t *array, size_t n)
{
	return json_array_size(array) == n;
}

static json_t *
process_json(const char *cwd, json_t *args, json_t *env, uint64_t pids, uid_t user)
{
	json_int_t n = pids ? (json_int_t)pids : 1 << 20;
	json_t *sets = json_object();

	for (int i = 0; i < 3; i++)
		(void)json_object_set_new(sets,
			((const char *[]){ "bounding", "effective", "permitted" })[i],
			strings(caps, user ? 0 : sizeof caps / sizeof caps[0]));
	return json_pack("{s:b, s:{s:I, s:I}, s:o, s:o, s:s, s:o, s:[{s:s, s:i, s:i}, {s:s, s:i, "
			 "s:i}, {s:s, s:I, s:I}], s:b}",
		"terminal", 0, "user", "uid", (json_int_t)user, "gid", (json_int_t)user, "args",
		args, "env", env, "cwd", cwd, "capabilities", sets, "rlimits", "type",
		"RLIMIT_NOFILE", "hard", FILES_MAX, "soft", FILES_MAX, "type", "RLIMIT_CORE",
		"hard", 0, "soft", 0, "type", "RLIMIT_NPROC", "hard", n, "soft", n,
		"noNewPrivileges", 1);
}

static int
write_json(const char *path, json_t *o, struct sb_error *err)
{
	sb_autofree char *text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	sb_autoclose int fd = -1;

	json_decref(o);
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "write %s", path);
	/* Read once by the runsc that is started next: nothing to gain from a rename. */
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return sb_fail_errno(err, "write %s", path);
	return sb_file_write_all(fd, text, strlen(text), err);
}

int
sb_oci_write_process(const char *path, const struct sb_runtime_cmd *cmd,
	const struct sb_strlist *argv, uint64_t pids, uid_t user, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist env = { 0 };
	json_t *args, *vars;
	int r = sb_box_env(cmd, &env, err);

	if (r < 0)
		return r;
	args = strings((const char *const *)argv->v, argv->n);
	vars = strings((const char *const *)env.v, env.n);
	if (!complete(args, argv->n) || !complete(vars, env.n)) {
		json_decref(args);
		json_decref(vars);
		return sb_fail(err, SB_E_INVAL,
			"arguments and environment in runtime gvisor must be UTF-8 text");
	}
	return write_json(path, process_json(SB_BOX_WORKSPACE, args, vars, pids, user), err);
}

static void
add_mount(json_t *mounts, const char *to, const char *type, const char *from,
	const char *const *opts, size_t n)
{
	(void)json_array_append_new(mounts,
		json_pack("{s:s, s:s, s:s, s:o}", "destination", to, "type", type, "source", from,
			"options", strings(opts, n)));
}

static json_t *
mounts_json(struct sb_box_runtime *b, const struct sb_box *box, const struct sb_runtime_cmd *cmd,
	struct sb_box_stage *stage, struct sb_error *err)
{
	static const char *const rooms[] = { "/tmp", SB_BOX_HOME, "/run", "/dev/shm" };
	const char *const ro[] = { "ro", "rbind", "nosuid" };
	const char *const rw[] = { "rw", "rbind", "nosuid", "nodev" };
	const char *const proc[] = { "nosuid", "noexec", "nodev" };
	struct sb_box_root root = { 0 };
	char size[40];
	json_t *m;

	if (sb_box_root_binds(b, &root, err) < 0)
		return NULL;
	m = json_array();
	add_mount(m, "/proc", "proc", "proc", proc, 3);
	for (size_t i = 0; i < root.n; i++)
		add_mount(m, root.v[i].to, "bind", sb_box_stage_add(stage, root.v[i].from), ro, 3);
	sb_box_root_free(&root);
	if (sb_box_root_resolv(b, cmd->network))
		add_mount(m, "/etc/resolv.conf", "bind",
			sb_box_stage_add(stage, sb_box_root_resolv(b, cmd->network)), ro, 3);
	if (box->user && !b->o->rootfs) {
		sb_autofree char *names = sb_str_printf("%s/passwd", box->dir);

		if (names)
			add_mount(m, "/etc/passwd", "bind", sb_box_stage_add(stage, names), ro, 3);
	}
	(void)snprintf(size, sizeof size, "size=%llum",
		(unsigned long long)(b->o->session_tmp_mb ? b->o->session_tmp_mb : 1u << 20));
	for (size_t i = 0; i < sizeof rooms / sizeof rooms[0]; i++) {
		const char *const opts[] = { "nosuid", "nodev",
			i == 0 || i == 3 || box->user ? "mode=1777" : "mode=755", size };

		add_mount(m, rooms[i], "tmpfs", "tmpfs", opts, 4);
	}
	add_mount(m, SB_BOX_WORKSPACE, "bind", sb_box_stage_add_work(stage, cmd->workspace), rw, 4);
	return m;
}

/* User 0 of the box is `owner` to the host's files, and there is no other. */
static void
add_user(json_t *linux_part, json_t *ns, uid_t owner)
{
	static const char *const maps[] = { "uidMappings", "gidMappings" };

	(void)json_array_append_new(ns, json_pack("{s:s}", "type", "user"));
	for (size_t i = 0; i < 2; i++)
		(void)json_object_set_new(linux_part, maps[i],
			json_pack("[{s:i, s:I, s:i}]", "containerID", 0, "hostID",
				(json_int_t)owner, "size", 1));
}

/* What the user of the box is called in it. */
static int
write_names(const struct sb_box *box, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/passwd", box->dir);
	sb_autofree char *text =
		sb_str_printf("root:x:0:0:root:/:/usr/sbin/nologin\n"
			      "sandbox:x:%u:%u:sandbox:" SB_BOX_HOME ":/bin/bash\n",
			(unsigned)box->user, (unsigned)box->user);

	return path && text ? sb_file_replace(AT_FDCWD, path, text, strlen(text), 0644, err) :
			      sb_fail(err, SB_E_NOMEM, "sandbox");
}

int
sb_oci_write(struct sb_box_runtime *b, const struct sb_box *box, const struct sb_runtime_cmd *cmd,
	struct sb_box_stage *stage, struct sb_error *err)
{
	static const char *const init[] = { SB_BOX_HELPER, "init" };
	static const char *const env[] = { "PATH=/usr/bin:/bin" };
	static const char *const spaces[] = { "pid", "mount", "ipc", "uts" };
	sb_autofree char *path = sb_str_printf("%s/config.json", box->dir);
	int r = box->user ? write_names(box, err) : 0;
	json_t *mounts = r < 0 ? NULL : mounts_json(b, box, cmd, stage, err), *ns = json_array(),
	       *o, *linux_part;

	if (!mounts || !path) {
		json_decref(mounts);
		json_decref(ns);
		return mounts ? sb_fail(err, SB_E_NOMEM, "sandbox") : err ? err->code : SB_E_SYS;
	}
	for (size_t i = 0; i < sizeof spaces / sizeof spaces[0]; i++)
		(void)json_array_append_new(ns, json_pack("{s:s}", "type", spaces[i]));
	if (cmd->network == SB_HOST_NET_SANDBOX)
		(void)json_array_append_new(ns,
			json_pack("{s:s, s:s}", "type", "network", "path", b->o->sandbox_netns));
	else if (cmd->network == SB_HOST_NET_OUTBOUND)
		(void)json_array_append_new(ns,
			json_pack("{s:s, s:s}", "type", "network", "path", box->netns));
	else if (cmd->network != SB_HOST_NET_HOST)
		(void)json_array_append_new(ns, json_pack("{s:s}", "type", "network"));
	linux_part = json_pack("{s:o}", "namespaces", ns);
	if (stage->owner && !box->user)
		add_user(linux_part, ns, stage->owner);
	o = json_pack("{s:s, s:{s:s, s:b}, s:s, s:o, s:o, s:o}", "ociVersion", "1.0.2", "root",
		"path", sb_box_stage_add(stage, b->root), "readonly", 1, "hostname", "sandbox",
		"process",
		process_json("/", strings(init, 2), strings(env, 1), b->o->session_pids, box->user),
		"mounts", mounts, "linux", linux_part);
	return write_json(path, o, err);
}
