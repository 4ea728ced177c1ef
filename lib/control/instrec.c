/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <control/instrec.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <base/array.h>
#include <base/file.h>
#include <base/owndir.h>
#include <base/path.h>
#include <base/str.h>
#include <base/strlist.h>
#include <cloud/http/json.h>
#include <sb/trust.h>

#define RECORD_MAX 65536
#define LOCK_MS 600000

void
sb_instrec_free(struct sb_instrec *r)
{
	sb_instance_free(&r->i);
}

static int
open_dir(const char *dir, const char *id, struct sb_error *err)
{
	int r = sb_file_mkdirs(dir, 0700, err);

	return r < 0 ? r : sb_owndir_open(dir, id, true, err);
}

int
sb_instrec_lock(const char *dir, const struct sb_control_call *call, struct sb_error *err)
{
	sb_autoclose int d = open_dir(dir, "", err), fd = -1;
	int r;

	if (d < 0)
		return d;
	fd = openat(d, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return sb_fail_errno(err, "%s/lock", dir);
	/* In small steps, so that a request to cancel is heard. */
	for (int64_t waited = 0; waited < LOCK_MS; waited += 100) {
		r = sb_file_lock(fd, 100, err);
		if (r != SB_E_LOCKED)
			return r < 0 ? r : sb_steal_fd(&fd);
		r = sb_check_alive(call->cancel, call->deadline, "lock of instances", err);
		if (r < 0)
			return r;
	}
	return sb_fail(err, SB_E_LOCKED, "%s/lock is held by another process", dir);
}

static int
decode(const char *dir, const char *id, const struct sb_buf *text, struct sb_instrec *out,
	struct sb_error *err)
{
	json_t *o = sb_json_parse(text->data, text->len, NULL), *tags, *v;
	struct sb_instrec r = { 0 };
	const char *state = sb_json_str(o, "state");
	bool known = false;
	size_t i;

	(void)snprintf(r.i.id, sizeof r.i.id, "%s", id);
	(void)snprintf(r.i.url, sizeof r.i.url, "%s", sb_json_str(o, "url"));
	r.i.launched_ns = sb_json_int(o, "launched_ns");
	for (int s = 0; s < SB_INSTANCE_STATES; s++)
		if (strcmp(state, sb_instance_state_name((enum sb_instance_state)s)) == 0) {
			r.i.state = (enum sb_instance_state)s;
			known = true;
		}
	tags = json_object_get(o, "tags");
	json_array_foreach(tags, i, v) if (json_is_string(v))
		sb_strlist_add(&r.i.tags, json_string_value(v));
	r.cpus = json_number_value(json_object_get(o, "cpus"));
	r.mem_mb = (uint64_t)sb_json_int(o, "mem_mb");
	r.lifetime_ms = sb_json_int(o, "lifetime_ms");
	json_decref(o);
	if (!known || r.i.tags.n == 0 || r.i.tags.failed) {
		sb_instrec_free(&r);
		return sb_fail(err, SB_E_CORRUPT, "%s/%s/record is damaged", dir, id);
	}
	*out = r;
	return 0;
}

int
sb_instrec_read(const char *dir, const char *id, struct sb_instrec *out, struct sb_error *err)
{
	sb_autofree char *path = sb_str_printf("%s/%s/record", dir, id);
	sb_auto(sb_buf) struct sb_buf text = { 0 };
	int r;

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (strchr(id, '/') || id[0] == '.')
		return sb_fail(err, SB_E_NOTFOUND, "there is no instance %s", id);
	r = sb_file_read(AT_FDCWD, path, RECORD_MAX, &text, err);
	if (r == SB_E_NOTFOUND)
		return sb_fail(err, SB_E_NOTFOUND, "there is no instance %s", id);
	return r < 0 ? r : decode(dir, id, &text, out, err);
}

int
sb_instrec_write(const char *dir, const struct sb_instrec *r, struct sb_error *err)
{
	sb_autoclose int d = open_dir(dir, r->i.id, err);
	json_t *tags = json_array(), *o;
	sb_autofree char *text = NULL;

	for (size_t i = 0; i < r->i.tags.n; i++)
		(void)json_array_append_new(tags, json_string(r->i.tags.v[i]));
	o = json_pack("{s:s,s:s,s:o,s:I,s:f,s:I,s:I}", "state", sb_instance_state_name(r->i.state),
		"url", r->i.url, "tags", tags, "launched_ns", (json_int_t)r->i.launched_ns, "cpus",
		r->cpus, "mem_mb", (json_int_t)r->mem_mb, "lifetime_ms",
		(json_int_t)r->lifetime_ms);
	text = o ? json_dumps(o, JSON_INDENT(1)) : NULL;
	json_decref(o);
	if (d < 0)
		return d;
	if (!text)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	return sb_file_replace(d, "record", text, strlen(text), 0600, err);
}

int
sb_instrec_remove(const char *dir, const char *id, struct sb_error *err)
{
	sb_autoclose int d = sb_owndir_open(dir, "", false, err), one = -1;

	if (d < 0)
		return d == SB_E_NOTFOUND ? 0 : d;
	one = openat(d, id, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (one >= 0 && unlinkat(one, "record", 0) < 0 && errno != ENOENT)
		return sb_fail_errno(err, "remove %s/%s/record", dir, id);
	if (one >= 0)
		(void)fsync(one);
	return sb_path_remove_tree(d, id, err);
}

static int
by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int
sb_instrec_all(const char *dir, struct sb_strlist *out, struct sb_error *err)
{
	sb_autoclosedir DIR *d = opendir(dir);
	struct dirent *e;

	if (!d)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "%s", dir);
	while ((e = readdir(d)))
		if (sb_str_starts(e->d_name, "i-") || sb_str_starts(e->d_name, "static-"))
			sb_strlist_add(out, e->d_name);
	if (out->n)
		qsort(out->v, out->n, sizeof *out->v, by_text);
	return sb_strlist_check(out, err);
}

bool
sb_instrec_has(const struct sb_instance *i, const char *const *tags)
{
	for (; tags && *tags; tags++)
		if (!sb_strlist_has(sb_strlist_borrow(&i->tags), *tags))
			return false;
	return true;
}

int
sb_instrec_id(const char *token, char out[SB_INSTANCE_ID_MAX + 1], struct sb_error *err)
{
	char digest[65];
	int r = sb_trust_digest(token, strlen(token), digest, err);

	if (r == 0)
		(void)snprintf(out, SB_INSTANCE_ID_MAX + 1, "i-%.16s", digest);
	return r;
}

int
sb_instrec_list(struct sb_provisioner *p, const char *dir, const struct sb_instance_filter *f,
	const struct sb_control_call *call, struct sb_instance **out, size_t *out_n,
	struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist ids = { 0 };
	unsigned states = f->states ? f->states : ~(1u << SB_INSTANCE_TERMINATED);
	struct sb_instance *v = NULL;
	size_t n = 0;
	int r = sb_instrec_all(dir, &ids, err);

	v = r == 0 ? calloc(ids.n + 1, sizeof *v) : NULL;
	if (r == 0 && !v)
		r = sb_fail(err, SB_E_NOMEM, "out of memory");
	for (size_t i = 0; r == 0 && i < ids.n; i++) {
		struct sb_error why = { 0 };
		int one = p->ops->describe(p, ids.v[i], call, &v[n], &why);

		if (one == 0 && (states & (1u << v[n].state)) && sb_instrec_has(&v[n], f->tags))
			n++;
		else if (one == 0)
			sb_instance_free(&v[n]);
		else if (one == SB_E_CORRUPT)
			sb_log(&p->log, SB_LOG_WARN, "instances", "%s", why.msg);
		else if (one != SB_E_NOTFOUND)
			r = sb_fail(err, one, "%s", why.msg);
	}
	if (r < 0) {
		sb_instance_list_free(v, n);
		return r;
	}
	*out = v;
	*out_n = n;
	return 0;
}
