/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/dockerlink.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/file.h>
#include <base/path.h>
#include <base/quote.h>
#include <base/str.h>
#include <provider/state-dir.h>

#define REMOVE_MS 120000
#define UNMAKE_MS 30000
#define LOCK_MS 100 /* between looks at the call */

char *
sb_dockerlink_dir(const struct sb_dockerlink *l, bool make, struct sb_error *err)
{
	sb_autofree char *base = l->state_dir ? strdup(l->state_dir) : sb_state_dir_default(err);
	sb_autofree char *dir = base ? sb_str_printf("%s/docker/%s", base, l->id) : NULL;

	if (!dir) {
		if (base)
			(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	if (make && sb_file_mkdirs(dir, 0700, err) < 0)
		return NULL;
	return sb_steal(&dir);
}

static int
drop_dir(const struct sb_dockerlink *l, struct sb_error *err)
{
	sb_autofree char *dir = sb_dockerlink_dir(l, false, err);
	sb_autoclose int parent = -1;
	char *slash;
	int r;

	if (!dir)
		return SB_E_NOMEM;
	slash = strrchr(dir, '/');
	*slash = '\0';
	parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "%s", dir);
	r = sb_path_remove_tree(parent, slash + 1, err);
	return r == SB_E_NOTFOUND ? 0 : r;
}

/* The lock lies beside the directory, as that comes and goes. */
static char *
lock_path(const struct sb_dockerlink *l, struct sb_error *err)
{
	sb_autofree char *dir = sb_dockerlink_dir(l, false, err);
	char *slash = dir ? strrchr(dir, '/') : NULL;
	char *path = dir ? sb_str_printf("%s.lock", dir) : NULL;

	if (slash)
		*slash = '\0';
	if (path && sb_file_mkdirs(dir, 0700, err) < 0) {
		free(path);
		return NULL;
	}
	return path;
}

int
sb_dockerlink_lock(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err)
{
	sb_autofree char *path = lock_path(l, err);
	int r = SB_E_LOCKED;

	if (!path)
		return SB_E_SYS;
	while (r == SB_E_LOCKED) {
		int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
		struct stat st;

		r = fd < 0 ? sb_fail_errno(err, "%s", path) : sb_file_lock(fd, LOCK_MS, err);
		/* One that its last holder has removed meanwhile locks nobody out. */
		if (r == 0 && (fstat(fd, &st) < 0 || st.st_nlink == 0))
			r = SB_E_LOCKED;
		if (r == 0) {
			l->lock = fd;
			return 0;
		}
		if (fd >= 0)
			(void)close(fd);
		if (r == SB_E_LOCKED && sb_call_check(call, "sandbox", err) < 0)
			return err ? err->code : SB_E_TIMEOUT;
	}
	return r;
}

/* Its file goes first: who waits for it notices and makes another. */
void
sb_dockerlink_unlock(struct sb_dockerlink *l)
{
	sb_autofree char *path = l->lock ? lock_path(l, NULL) : NULL;

	if (path)
		(void)unlink(path);
	if (l->lock)
		sb_file_unlock(l->lock);
	l->lock = 0;
}

/* Of sbx and docker sandbox: by name, as they have no labels. */
static int
find_sandbox(struct sb_dockerlink *l, const struct sb_call *call, bool *running,
	struct sb_error *err)
{
	struct sb_docker_list list = { 0 };
	int r = sb_docker_list(l->docker, call, &list, err);
	bool found = false;

	for (size_t i = 0; r == 0 && i < list.n && !found; i++)
		if (strcmp(list.v[i].name, l->name) == 0) {
			found = true;
			*running = !list.v[i].status || strcmp(list.v[i].status, "running") == 0;
		}
	sb_docker_list_free(&list);
	if (r == 0 && !found)
		r = sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s has no sandbox %s",
			sb_dockerlink_label(l), l->name);
	return r;
}

int
sb_dockerlink_find(struct sb_dockerlink *l, const char *const *labels, const struct sb_call *call,
	bool *running, struct sb_error *err)
{
	struct sb_engine_box box;
	sb_autofree char *own = NULL;
	sb_auto(sb_strlist) struct sb_strlist all = { 0 };
	int r;

	*running = false;
	if (l->kind != SB_DOCKERLINK_CONTAINER)
		return find_sandbox(l, call, running, err);
	sb_strlist_addf(&all, SB_LABEL_SANDBOX "=%s", l->id);
	sb_strlist_add_all(&all, labels);
	r = sb_strlist_check(&all, err);
	if (r == 0)
		r = sb_engine_find(&l->engine, sb_strlist_borrow(&all), SB_DOCKERLINK_MADE, call,
			&box, err);
	if (r < 0)
		return r;
	own = strdup(box.name);
	if (!own)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	free(l->name);
	l->name = sb_steal(&own);
	*running = box.running;
	l->paused = box.paused;
	memcpy(l->made, box.extra, sizeof l->made);
	return 0;
}

int
sb_dockerlink_ensure(struct sb_dockerlink *l, const struct sb_prepare_request *req,
	const struct sb_call *call, struct sb_error *err)
{
	return l->kind == SB_DOCKERLINK_CONTAINER ? sb_dockerlink_engine_ensure(l, req, call, err) :
						    sb_dockerlink_box_ensure(l, req, call, err);
}

char *
sb_dockerlink_archive_name(const struct sb_dockerlink *l)
{
	return sb_str_printf("localhost/sbsync-archive:%s", l->id);
}

/* Before there is one, so that it is not forgotten: "STATE/docker/ID/archived". */
static int
mark_archived(const struct sb_dockerlink *l, struct sb_error *err)
{
	sb_autofree char *dir = sb_dockerlink_dir(l, true, err);
	sb_autoclose int fd = dir ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;

	if (fd < 0)
		return dir ? sb_fail_errno(err, "%s", dir) : SB_E_NOMEM;
	return sb_file_replace(fd, "archived", "", 0, 0600, err);
}

bool
sb_dockerlink_is_archived(const struct sb_dockerlink *l)
{
	sb_autofree char *dir = sb_dockerlink_dir(l, false, NULL);
	sb_autofree char *mark = dir ? sb_str_printf("%s/archived", dir) : NULL;

	return mark && access(mark, F_OK) == 0;
}

int
sb_dockerlink_archive(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err)
{
	sb_autofree char *image = sb_dockerlink_archive_name(l);
	const char *const save[] = { "template", "save", l->name, image ? image : "", NULL };
	const char *const stop[] = { "stop", l->name, NULL };
	bool running;
	int r = image ? sb_dockerlink_find(l, NULL, call, &running, err) :
			sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r == SB_E_SANDBOX_NOT_FOUND)
		return 0;
	/* Put away already. */
	if (r == 0 && !running && sb_dockerlink_is_archived(l))
		return 0;
	if (r == 0)
		r = mark_archived(l, err);
	if (r == 0 && l->kind == SB_DOCKERLINK_CONTAINER) {
		r = sb_engine_commit(&l->engine, l->name, image, call, err);
		if (r == 0 && running)
			r = sb_engine_stop(&l->engine, l->name, call, err);
	} else if (r == 0 && l->kind == SB_DOCKERLINK_SBX) {
		r = sb_docker_run(l->docker, save, call, err);
		if (r == 0)
			r = sb_docker_run(l->docker, stop, call, err);
	} else if (r == 0) {
		r = sb_fail(err, SB_E_UNSUPPORTED, "docker sandbox cannot archive");
	}
	return r;
}

static int
remove_container(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err)
{
	sb_autofree char *image = sb_dockerlink_archive_name(l);
	sb_autofree char *volume = sb_str_printf("%s-work", l->name);
	int r = image && volume ? sb_engine_remove(&l->engine, l->name, call, err) :
				  sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r == 0 && !l->mounted)
		r = sb_engine_remove_volume(&l->engine, volume, call, err);
	if (r == 0 && sb_dockerlink_is_archived(l))
		r = sb_engine_remove_image(&l->engine, image, call, err);
	return r;
}

/* Of sbx, with the template of its archive; one that does not go is told. */
static int
remove_sandbox(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err)
{
	sb_autofree char *archive = sb_dockerlink_archive_name(l);
	const char *const drop[] = { "template", "rm", archive ? archive : "", NULL };
	struct sb_error why = { 0 };
	bool running;
	int r = sb_dockerlink_find(l, NULL, call, &running, err);

	if (r == 0)
		r = sb_docker_remove(l->docker, l->name, call, err);
	if (r < 0 && r != SB_E_SANDBOX_NOT_FOUND)
		return r;
	if (l->kind != SB_DOCKERLINK_SBX || !sb_dockerlink_is_archived(l))
		return 0;
	r = sb_docker_run(l->docker, drop, call, &why);
	if (r == SB_E_CHILD && call)
		sb_log(&call->log, SB_LOG_WARN, "docker", "%s", why.msg);
	if (r < 0 && r != SB_E_CHILD && err)
		*err = why;
	return r == SB_E_CHILD ? 0 : r;
}

void
sb_dockerlink_unmake(struct sb_dockerlink *l, const struct sb_call *call)
{
	struct sb_call within = sb_call_within(call, UNMAKE_MS);
	sb_autofree char *volume = sb_str_printf("%s-work", l->name);

	if (!l->fresh)
		return;
	if (l->kind != SB_DOCKERLINK_CONTAINER) {
		(void)sb_docker_remove(l->docker, l->name, &within, NULL);
		return;
	}
	(void)sb_engine_remove(&l->engine, l->name, &within, NULL);
	if (volume && !l->mounted)
		(void)sb_engine_remove_volume(&l->engine, volume, &within, NULL);
	sb_dockerlink_net_forget(l);
}

int
sb_dockerlink_remove(struct sb_dockerlink *l, const struct sb_call *call, struct sb_error *err)
{
	struct sb_call within = sb_call_within(call, REMOVE_MS);
	int r = l->kind == SB_DOCKERLINK_CONTAINER ? remove_container(l, &within, err) :
						     remove_sandbox(l, &within, err);

	if (r == 0)
		sb_dockerlink_net_forget(l);
	return r < 0 ? r : drop_dir(l, err);
}

/*
 * The ssh provider appends a host and one command line: a shell turns that into the words of an
 * exec. Nothing of it is put into the script: what varies are its arguments.
 */
char *
sb_dockerlink_rsh(const struct sb_dockerlink *l, struct sb_error *err)
{
	static const char *const scripts[] = {
		[SB_DOCKERLINK_SBX] =
			("DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND= exec \"$0\" exec -i "
			 "\"$1\" sh -c \"$2\""),
		[SB_DOCKERLINK_SANDBOX] = "exec \"$0\" sandbox exec -i \"$1\" sh -c \"$2\"",
		[SB_DOCKERLINK_CONTAINER] = "exec \"$0\" exec -i \"$1\" sh -c \"$2\"",
	};
	const char *program = l->kind == SB_DOCKERLINK_SBX ? "sbx" :
		l->kind == SB_DOCKERLINK_SANDBOX           ? "docker" :
							     l->engine.cli.words.v[0];
	sb_auto(sb_buf) struct sb_buf b;
	size_t len;

	sb_buf_init(&b, 65536);
	sb_buf_add_str(&b, "/bin/sh -c ");
	sb_quote_word(&b, scripts[l->kind]);
	sb_buf_addf(&b, " %s", program);
	if (sb_buf_check(&b, "remote shell", err) < 0)
		return NULL;
	return (char *)sb_buf_detach(&b, &len);
}
