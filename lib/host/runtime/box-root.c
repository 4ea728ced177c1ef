/* SPDX-License-Identifier: MIT */
/*
 * Builds the read-only root that all boxes of a host share, and the environment of commands in a
 * box.
 */
#include "config.h"

#include <host/runtime/box.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/str.h>
#include <egress/gate.h>

/*
 * Of this machine's own root, when no other was given; and of its /etc what programs need and
 * nobody minds.
 */
static const char *const own_root[] = { "usr", "bin", "sbin", "lib", "lib32", "lib64", "libx32",
	NULL };
static const char *const own_etc[] = { "bash.bashrc", "debian_version", "gai.conf", "ld.so.cache",
	"localtime", "mime.types", "os-release", "profile", "protocols", "resolv.conf", "services",
	"ssl/openssl.cnf", "timezone", NULL };
/* The same, of directories, which are bound instead of copied. */
static const char *const own_etc_dirs[] = { "alternatives", "fonts", "java-17-openjdk", "pki",
	"ssl/certs", "terminfo", NULL };
/* Made by us in every root. */
static const char *const own_dirs[] = { "dev", "proc", "sys", "run", "tmp", "home", "workspace",
	"var", "etc", ".sb", NULL };

static const struct {
	const char *name, *text;
} made_etc[] = {
	{ "passwd",
		"root:x:0:0:sandbox:" SB_BOX_HOME
		":/bin/bash\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n" },
	{ "group", "root:x:0:\nnogroup:x:65534:\n" },
	{ "hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n" },
	{ "nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n" },
	{ "hostname", "sandbox\n" },
};

/* The gate of a box with network outbound answers whichever resolver is asked. */
static const char resolv[] = "nameserver " SB_GATE_OUTSIDE4 "\noptions timeout:6 attempts:2\n";

static bool
in_list(const char *const *list, const char *name)
{
	for (; *list; list++)
		if (strcmp(*list, name) == 0)
			return true;
	return false;
}

/*
 * The old name goes first: what has it open keeps it. Made anew at every start, so it need not
 * reach the disk.
 */
static int
put_file(const char *path, const void *data, size_t len, mode_t mode, struct sb_error *err)
{
	sb_autoclose int fd = -1;

	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
	if (fd < 0 || fchmod(fd, mode) < 0)
		return sb_fail_errno(err, "write %s", path);
	return sb_file_write_all(fd, data, len, err);
}

static int
copy_file(const char *from, const char *to, mode_t mode, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf data;
	int r = sb_file_read(AT_FDCWD, from, 64u << 20, &data, err);

	return r < 0 ? r : put_file(to, data.data, data.len, mode, err);
}

/* One entry of our /etc into the new one; what cannot be read is left out. */
static void
copy_etc(const char *name, const char *to)
{
	sb_autofree char *src = sb_str_printf("/etc/%s", name);
	struct stat st;
	char target[4096];
	ssize_t n;

	if (!src || lstat(src, &st) < 0)
		return;
	if (S_ISLNK(st.st_mode) && (n = readlink(src, target, sizeof target - 1)) > 0) {
		target[n] = '\0';
		/* Into /usr it stays true inside; elsewhere the file is meant. */
		if (sb_str_starts(target, "/usr/") || sb_str_starts(target, "../usr/"))
			(void)symlink(target, to);
		else
			(void)copy_file(src, to, 0644, NULL);
	} else if (S_ISREG(st.st_mode)) {
		(void)copy_file(src, to, 0644, NULL);
	}
}

static int
make_etc(const struct sb_box_runtime *b, struct sb_error *err)
{
	sb_autofree char *ssl = sb_str_printf("%s/ssl", b->etc);
	sb_autofree char *to_resolv = sb_str_printf("%s/resolv.conf", b->etc);
	int r = ssl && to_resolv ? sb_file_mkdirs(ssl, 0755, err) :
				   sb_fail(err, SB_E_NOMEM, "root of sandboxes");

	for (size_t i = 0; own_etc[i] && r == 0; i++) {
		sb_autofree char *to = sb_str_printf("%s/%s", b->etc, own_etc[i]);

		if (to)
			copy_etc(own_etc[i], to);
	}
	/* A place to bind another one at, should this machine have none. */
	if (r == 0 && faccessat(AT_FDCWD, to_resolv, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
		r = put_file(to_resolv, "", 0, 0644, err);
	for (size_t i = 0; own_etc_dirs[i] && r == 0; i++) {
		sb_autofree char *to = sb_str_printf("%s/%s", b->etc, own_etc_dirs[i]);

		r = to ? sb_file_mkdirs(to, 0755, err) :
			 sb_fail(err, SB_E_NOMEM, "root of sandboxes");
	}
	for (size_t i = 0; i < sizeof made_etc / sizeof made_etc[0] && r == 0; i++) {
		sb_autofree char *to = sb_str_printf("%s/%s", b->etc, made_etc[i].name);

		r = to ? put_file(to, made_etc[i].text, strlen(made_etc[i].text), 0644, err) :
			 sb_fail(err, SB_E_NOMEM, "root of sandboxes");
	}
	return r;
}

static int
make_dir(const struct sb_box_runtime *b, const char *name, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s", b->root, name);

	return path ? sb_file_mkdirs(path, 0755, err) :
		      sb_fail(err, SB_E_NOMEM, "root of sandboxes");
}

/* A name of the real root: a place to bind a directory at, or the same link. */
static int
make_entry(const struct sb_box_runtime *b, const char *rootfs, const char *name,
	struct sb_error *err)
{
	sb_autofree char *src = sb_str_printf("%s/%s", rootfs, name);
	sb_autofree char *to = sb_str_printf("%s/%s", b->root, name);
	char target[4096];
	struct stat st;
	ssize_t n;

	if (!src || !to)
		return sb_fail(err, SB_E_NOMEM, "root of sandboxes");
	if (lstat(src, &st) < 0)
		return 0;
	if (S_ISDIR(st.st_mode))
		return make_dir(b, name, err);
	n = S_ISLNK(st.st_mode) ? readlink(src, target, sizeof target - 1) : -1;
	if (n > 0) {
		target[n] = '\0';
		if (symlink(target, to) < 0 && errno != EEXIST)
			return sb_fail_errno(err, "make %s", to);
	}
	return 0;
}

static bool
wanted(const struct sb_box_runtime *b, const char *name)
{
	if (name[0] == '.')
		return false;
	return b->o->rootfs ? !in_list(own_dirs, name) || strcmp(name, "etc") == 0 :
			      in_list(own_root, name);
}

static int
make_entries(struct sb_box_runtime *b, struct sb_error *err)
{
	const char *rootfs = b->o->rootfs ? b->o->rootfs : "/";
	sb_autoclosedir DIR *d = opendir(rootfs);
	struct dirent *e;
	int r = 0;

	if (!d)
		return sb_fail_errno(err, "root file system %s", rootfs);
	while (r == 0 && (e = readdir(d)))
		if (wanted(b, e->d_name))
			r = make_entry(b, rootfs, e->d_name, err);
	return r;
}

/* Where programs written for other hosts take their files to be: names of the workspace. */
static const char *const homes[] = { "user", "daytona", NULL };

static int
make_home(struct sb_box_runtime *b, const char *name, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/home/%s", b->root, name);

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "root of sandboxes");
	if (symlink(SB_BOX_WORKSPACE, path) < 0 && errno != EEXIST)
		return sb_fail_errno(err, "make %s", path);
	return 0;
}

int
sb_box_root_make(struct sb_box_runtime *b, struct sb_error *err)
{
	sb_autoclose int state = open(b->o->state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	sb_autofree char *box = sb_str_printf("%s" SB_BOX_HELPER, b->root);
	sb_autofree char *tmp = sb_str_printf("%s/var/tmp", b->root);
	int r = box && tmp ? 0 : sb_fail(err, SB_E_NOMEM, "root of sandboxes");

	/*
	 * A box of before a restart still has the old files open; names are replaced, not changed.
	 */
	if (r == 0)
		r = sb_path_remove_tree(state, "box-etc", err);
	if (r == 0)
		r = sb_file_mkdirs(b->root, 0755, err);
	for (size_t i = 0; own_dirs[i] && r == 0; i++)
		r = make_dir(b, own_dirs[i], err);
	if (r == 0)
		r = make_dir(b, &SB_BOX_HOME[1], err);
	if (r == 0)
		r = make_entries(b, err);
	if (r == 0 && !b->o->rootfs)
		r = make_etc(b, err);
	if (r == 0 && symlink("/tmp", tmp) < 0 && errno != EEXIST)
		r = sb_fail_errno(err, "make %s", tmp);
	for (size_t i = 0; homes[i] && r == 0; i++)
		r = make_home(b, homes[i], err);
	if (r == 0)
		r = copy_file(b->helper, box, 0755, err);
	if (r == 0)
		r = put_file(b->resolv, resolv, strlen(resolv), 0644, err);
	return r;
}

void
sb_box_root_free(struct sb_box_root *r)
{
	for (size_t i = 0; i < r->n; i++) {
		free(r->v[i].from);
		free(r->v[i].to);
	}
	free(r->v);
}

static int
add_bind(struct sb_box_root *r, const char *from, const char *name, struct sb_error *err)
{
	struct sb_box_bind *v = reallocarray(r->v, r->n + 1, sizeof *v);

	if (v) {
		r->v = v;
		v[r->n] = (struct sb_box_bind){ strdup(from), sb_str_printf("/%s", name) };
		r->n++;
	}
	return v && v[r->n - 1].from && v[r->n - 1].to ?
		0 :
		sb_fail(err, SB_E_NOMEM, "root of sandboxes");
}

int
sb_box_root_binds(const struct sb_box_runtime *b, struct sb_box_root *out, struct sb_error *err)
{
	const char *rootfs = b->o->rootfs ? b->o->rootfs : "";
	sb_autoclosedir DIR *d = opendir(*rootfs ? rootfs : "/");
	struct dirent *e;
	int r = d ? 0 : sb_fail_errno(err, "root file system %s", rootfs);

	*out = (struct sb_box_root){ 0 };
	while (r == 0 && (e = readdir(d))) {
		sb_autofree char *from =
			wanted(b, e->d_name) ? sb_str_printf("%s/%s", rootfs, e->d_name) : NULL;
		struct stat st;

		if (from && lstat(from, &st) == 0 && S_ISDIR(st.st_mode))
			r = add_bind(out, from, e->d_name, err);
	}
	if (r == 0 && !b->o->rootfs)
		r = add_bind(out, b->etc, "etc", err);
	for (size_t i = 0; own_etc_dirs[i] && r == 0 && !b->o->rootfs; i++) {
		sb_autofree char *from = sb_str_printf("/etc/%s", own_etc_dirs[i]);
		struct stat st;

		if (from && stat(from, &st) == 0 && S_ISDIR(st.st_mode))
			r = add_bind(out, from, from + 1, err);
	}
	if (r < 0)
		sb_box_root_free(out);
	return r;
}

const char *
sb_box_root_resolv(const struct sb_box_runtime *b, enum sb_host_network net)
{
	sb_autofree char *there =
		b->o->rootfs ? sb_str_printf("%s/etc/resolv.conf", b->o->rootfs) : NULL;
	struct stat st;

	if (net != SB_HOST_NET_OUTBOUND)
		return NULL;
	/* Nothing can be made in somebody else's root: a file must be there already. */
	if (b->o->rootfs && (!there || lstat(there, &st) < 0 || !S_ISREG(st.st_mode)))
		return NULL;
	return b->resolv;
}

int
sb_box_env(const struct sb_runtime_cmd *cmd, struct sb_strlist *env, struct sb_error *err)
{
	/* Being root without the right to change owners, tar must not try. */
	static const char *const fixed[] = {
		"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8",
		"TERM=xterm-256color", "HOME=" SB_BOX_HOME, "TAR_OPTIONS=--no-same-owner", NULL
	};

	return sb_runtime_env(cmd, fixed, env, err);
}
