/* SPDX-License-Identifier: MIT */
/* Files of a sandbox by its toolbox: listings, moves, modes, searches. */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <base/str.h>
#include <compat/daytona/daytona-priv.h>

#define REPLACE_MAX (16u << 20) /* bytes of a file */
#define REPLACE_FILES 1000
#define FOUND_MAX 10000
#define DEPTH_MAX 64

void
sb_daytona_file_error(const struct sb_error *err, int *status, const char **code)
{
	*status = 400;
	*code = "INVALID_FILE_PATH";
	switch (err->code) {
	case SB_E_NOTFOUND:
		*status = 404;
		*code = "FILE_NOT_FOUND";
		break;
	case SB_E_DENIED:
		*status = 403;
		*code = "FILE_ACCESS_DENIED";
		break;
	case SB_E_EXISTS: *status = 409; break;
	case SB_E_NOSPACE:
	case SB_E_LIMIT:
		*status = 413;
		*code = "FILE_TOO_LARGE";
		break;
	case SB_E_INVAL:
	case SB_E_UNSUPPORTED: break;
	default: *status = 500; *code = "FILE_READ_FAILED";
	}
}

int
sb_daytona_file_refuse(struct sb_rpc_call *call, const char *path, struct sb_error *err)
{
	const char *code;
	int status;

	sb_daytona_file_error(err, &status, &code);
	if (status == 500)
		return err->code;
	if (err->sys == EISDIR)
		return sb_daytona_refuse_as(call, 400, code, "%s is a directory", path);
	return sb_daytona_refuse_as(call, status, code, "%s: %s", path, err->msg);
}

static json_t *
permissions(const struct sb_guest_entry *e)
{
	char text[11] = "-rwxrwxrwx";

	text[0] = e->kind == 'd' ? 'd' : e->kind == 'l' ? 'L' : '-';
	for (int i = 0; i < 9; i++)
		if (!(e->mode & (0400u >> i)))
			text[i + 1] = '-';
	return json_string(text);
}

/* What it belongs to is the one user of the box, who is root there, or nobody of it. */
static json_t *
entry_json(const struct sb_guest_entry *e, const char *name)
{
	const char *owner = e->own ? "root" : "nobody";
	json_t *at = sb_answer_time(e->mtime_s * INT64_C(1000000000) + e->mtime_ns);

	return json_pack("{s:o, s:b, s:I, s:O, s:o, s:o, s:o, s:s, s:s}", "name",
		sb_answer_text(name), "isDir", e->kind == 'd', "size", (json_int_t)e->size,
		"modTime", at, "modifiedAt", at, "mode", permissions(e), "permissions",
		json_sprintf("%04o", e->mode & 07777), "owner", owner, "group", owner);
}

/* A call about one path of the query: the visit and the path, or an answer (1), or an error. */
static int
enter(struct sb_rpc_call *call, const struct sb_query *q, const char *param,
	struct sb_daytona_visit *v, char **path, struct sb_error *err)
{
	const char *given = sb_query_get(q, param);
	int r;

	if (!given && strcmp(param, "path") != 0)
		return sb_daytona_refuse_as(call, 400, "INVALID_FILE_PATH", "%s is required",
			       param),
		       1;
	r = v->rec ? 0 : sb_daytona_visit(call, q, v, err);
	if (r == 0 && !(*path = sb_daytona_path(v, given ? given : "", err)))
		r = sb_daytona_file_refuse(call, "path", err);
	return r == 0 && !*path ? 1 : r;
}

static int
list(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	const char *text = sb_query_get(q, "depth");
	struct sb_guest_entry *e = NULL;
	sb_autofree char *path = NULL;
	json_t *out = json_array();
	int64_t depth = 1;
	size_t n = 0;
	int r = enter(call, q, "path", &v, &path, err);

	if (r == 0 && text && !sb_str_to_i64(text, 1, DEPTH_MAX, &depth)) {
		(void)sb_daytona_refuse_as(call, 400, "INVALID_FILE_PATH",
			"depth must be from 1 to %d", DEPTH_MAX);
		r = 1;
	}
	if (r == 0) {
		r = sb_guest_dir(v.d->guests, v.id, path, (unsigned)depth, &v.call, &e, &n, err);
		if (r < 0)
			r = sb_daytona_file_refuse(call, path, err);
		else
			for (size_t i = 0; i < n; i++)
				(void)json_array_append_new(out, entry_json(&e[i], e[i].name));
		if (r == 0 && !sb_rpc_http_answered(call))
			r = sb_answer_json(call, 200, json_incref(out), err);
		sb_guest_entries_free(e, n);
	}
	json_decref(out);
	return r < 0 ? r : 0;
}

static int
info(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	sb_autofree char *path = NULL;
	int r = enter(call, q, "path", &v, &path, err);

	if (r == 0) {
		r = sb_guest_stat(v.d->guests, v.id, path, &v.call, &e, err);
		if (r < 0)
			r = sb_daytona_file_refuse(call, path, err);
		else
			r = sb_answer_json(call, 200,
				entry_json(&e, strrchr(path, '/') ? strrchr(path, '/') + 1 : path),
				err);
	}
	return r < 0 ? r : 0;
}

/* An octal mode of the query; false: it is none. */
static bool
mode_of(const char *text, unsigned *mode)
{
	char *end;
	unsigned long n = strtoul(text, &end, 8);

	*mode = (unsigned)n;
	return *text >= '0' && *text <= '7' && *end == '\0' && n <= 07777;
}

static int
make_folder(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	const char *mode = sb_query_get(q, "mode");
	sb_autofree char *path = NULL;
	unsigned bits = 0755;
	int r = enter(call, q, "path", &v, &path, err);

	if (r == 0 && mode && *mode && !mode_of(mode, &bits))
		return sb_daytona_refuse_as(call, 400, "INVALID_FILE_PATH", "mode must be octal");
	if (r != 0)
		return r < 0 ? r : 0;
	r = sb_guest_mkdir(v.d->guests, v.id, path, &v.call, NULL, err);
	/* One that is there already is as good. */
	if (r == SB_E_EXISTS)
		r = 0;
	if (r == 0 && mode && *mode)
		r = sb_guest_chmod(v.d->guests, v.id, path, bits, &v.call, NULL, err);
	if (r < 0)
		return sb_daytona_file_refuse(call, path, err);
	sb_rpc_http_reply(call, 201, NULL, NULL, 0);
	return 0;
}

static int
move(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_autofree char *from = NULL, *to = NULL;
	int r = enter(call, q, "source", &v, &from, err);

	if (r == 0)
		r = enter(call, q, "destination", &v, &to, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = sb_guest_move(v.d->guests, v.id, from, to, &v.call, NULL, err);
	if (r < 0)
		return sb_daytona_file_refuse(call, from, err);
	sb_rpc_http_reply(call, 200, NULL, NULL, 0);
	return 0;
}

static int
delete_it(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	const char *deep = sb_query_get(q, "recursive");
	sb_autofree char *path = NULL;
	int r = enter(call, q, "path", &v, &path, err);

	if (r != 0)
		return r < 0 ? r : 0;
	r = sb_guest_stat(v.d->guests, v.id, path, &v.call, &e, err);
	if (r == 0 && e.kind == 'd' && !(deep && strcmp(deep, "true") == 0))
		return sb_daytona_refuse_as(call, 400, "INVALID_FILE_PATH",
			"cannot delete directory without recursive flag");
	if (r == 0)
		r = sb_guest_remove(v.d->guests, v.id, path, &v.call, err);
	if (r < 0)
		return sb_daytona_file_refuse(call, path, err);
	sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	return 0;
}

/* The names that the one user of the box has. */
static bool
own_name(const char *name)
{
	return !name || !*name || strcmp(name, "root") == 0 || strcmp(name, "daytona") == 0 ||
		strcmp(name, "user") == 0;
}

static int
set_permissions(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	const char *mode = sb_query_get(q, "mode");
	sb_autofree char *path = NULL;
	unsigned bits = 0;
	int r = enter(call, q, "path", &v, &path, err);

	if (r != 0)
		return r < 0 ? r : 0;
	if (mode && *mode && !mode_of(mode, &bits))
		return sb_daytona_refuse_as(call, 400, "INVALID_FILE_PATH", "mode must be octal");
	if (!own_name(sb_query_get(q, "owner")) || !own_name(sb_query_get(q, "group")))
		return sb_daytona_refuse_as(call, 400, "INVALID_FILE_PATH",
			"a sandbox has one user: root, whom daytona and user are names of");
	if (mode && *mode)
		r = sb_guest_chmod(v.d->guests, v.id, path, bits, &v.call, NULL, err);
	else
		r = sb_guest_stat(v.d->guests, v.id, path, &v.call, NULL, err);
	if (r < 0)
		return sb_daytona_file_refuse(call, path, err);
	sb_rpc_http_reply(call, 200, NULL, NULL, 0);
	return 0;
}

/* Names by a glob, everywhere beneath: a program inside evaluates what the caller wrote. */
static int
search(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_daytona_run) struct sb_daytona_run run = { .apart = true };
	sb_autofree char *path = NULL;
	const char *pattern = sb_query_get(q, "pattern");
	json_t *files = json_array();
	int r = enter(call, q, "path", &v, &path, err);

	if (r == 0) {
		const char *argv[] = { "find", "-H", path, "-mindepth", "1", "-name",
			pattern ? pattern : "*", "-print0", NULL };

		run.argv = argv;
		run.cwd = "/";
		r = sb_daytona_run(&v, &run, err);
		for (size_t at = 0;
			r == 0 && at < run.out.len && json_array_size(files) < FOUND_MAX;
			at += strlen((char *)run.out.data + at) + 1)
			(void)json_array_append_new(files,
				sb_daytona_path_shown(&v, (char *)run.out.data + at));
		if (r == 0 && run.code != 0 && json_array_size(files) == 0 && run.err.len > 0)
			r = sb_daytona_refuse_as(call, 404, "FILE_NOT_FOUND", "%.200s",
				(char *)run.err.data);
		else if (r == 0)
			r = sb_answer_json(call, 200, json_pack("{s:O}", "files", files), err);
	}
	json_decref(files);
	return r < 0 ? r : 0;
}

/* grep's "NAME\0LINE:TEXT\n" */
static json_t *
matches_json(const struct sb_daytona_visit *v, const struct sb_buf *out)
{
	json_t *list = json_array();
	const char *p = (const char *)out->data, *end = p + out->len;

	while (p < end && json_array_size(list) < FOUND_MAX) {
		const char *line = memchr(p, '\0', (size_t)(end - p));
		const char *colon = line ? memchr(line, ':', (size_t)(end - line)) : NULL;
		const char *stop = colon ? memchr(colon, '\n', (size_t)(end - colon)) : NULL;
		sb_autofree char *name = NULL;

		if (!stop)
			break;
		name = strdup(p);
		(void)json_array_append_new(list,
			json_pack("{s:o, s:I, s:o}", "file",
				sb_daytona_path_shown(v, name ? name : ""), "line",
				(json_int_t)strtoll(line + 1, NULL, 10), "content",
				sb_rpc_json_text(colon + 1, (size_t)(stop - colon - 1))));
		p = stop + 1;
	}
	return list;
}

/* Lines that hold a text, in all text files beneath. */
static int
find(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_daytona_run) struct sb_daytona_run run = { .apart = true };
	sb_autofree char *path = NULL;
	const char *pattern = sb_query_get(q, "pattern");
	int r = enter(call, q, "path", &v, &path, err);

	if (r == 0) {
		const char *argv[] = { "grep", "-rnIFHZ", "-e", pattern ? pattern : "", "--", path,
			NULL };

		run.argv = argv;
		run.cwd = "/";
		r = sb_daytona_run(&v, &run, err);
		if (r == 0 && run.code > 1 && run.out.len == 0)
			r = sb_daytona_refuse_as(call, 404, "FILE_NOT_FOUND", "%.200s",
				run.err.data ? (char *)run.err.data : path);
		else if (r == 0)
			r = sb_answer_json(call, 200, matches_json(&v, &run.out), err);
	}
	return r < 0 ? r : 0;
}

static int
read_whole(struct sb_daytona_visit *v, const char *path, struct sb_buf *out, unsigned *mode,
	struct sb_error *err)
{
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	struct sb_guest_stream *s = NULL;
	int64_t n = 1;
	int r = sb_guest_open(v->d->guests, v->id, path, 0, 0, &v->call, &s, &e, err);

	if (r < 0)
		return r;
	*mode = e.mode & 07777;
	if (e.size > REPLACE_MAX)
		r = sb_fail(err, SB_E_LIMIT, "larger than %u bytes", REPLACE_MAX);
	while (r == 0 && n > 0) {
		n = sb_guest_read(s, out->len, SB_GUEST_DATA_MAX, &v->call, out, err);
		r = n < 0 ? (int)n : sb_buf_check(out, path, err);
	}
	sb_guest_leave(s);
	return r;
}

static int
write_whole(struct sb_daytona_visit *v, const char *path, const struct sb_buf *in, unsigned mode,
	struct sb_error *err)
{
	struct sb_guest_stream *s = NULL;
	int r = sb_guest_open(v->d->guests, v->id, path, SB_GUEST_WRITING | SB_GUEST_NEW, mode,
		&v->call, &s, NULL, err);

	if (r < 0)
		return r;
	r = in->len > 0 ? sb_guest_write(s, in->data, in->len, &v->call, err) : 0;
	if (r == 0)
		r = sb_guest_flush(s, &v->call, err);
	sb_guest_leave(s);
	return r;
}

/* All places of a text in one file. */
static int
replace_one(struct sb_daytona_visit *v, const char *path, const char *old, const char *new,
	struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf in, out;
	size_t n = strlen(old), at = 0;
	bool some = false;
	unsigned mode = 0644;
	int r;

	sb_buf_init(&in, REPLACE_MAX + 1);
	sb_buf_init(&out, 4 * REPLACE_MAX);
	r = read_whole(v, path, &in, &mode, err);
	while (r == 0 && at < in.len) {
		const uint8_t *hit = memmem(in.data + at, in.len - at, old, n);
		size_t end = hit ? (size_t)(hit - in.data) : in.len;

		sb_buf_add(&out, in.data + at, end - at);
		if (hit)
			sb_buf_add_str(&out, new);
		some |= hit != NULL;
		at = hit ? end + n : end;
	}
	if (r == 0)
		r = sb_buf_check(&out, "result", err);
	return r < 0 || !some ? r : write_whole(v, path, &out, mode, err);
}

static int
replace(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_strlist) struct sb_strlist files = { 0 };
	json_t *in = sb_answer_body(call, err), *out = NULL;
	const char *old, *new;
	struct sb_rpc_fields f;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	sb_rpc_field_list(&f, "files", REPLACE_FILES, 4096, &files);
	old = sb_rpc_field_str(&f, "pattern", 1u << 20, SB_RPC_REQUIRED);
	new = sb_rpc_field_str(&f, "newValue", 1u << 20, 0);
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_daytona_visit(call, q, &v, err);
	if (r == 0)
		out = json_array();
	for (size_t i = 0; r == 0 && i < files.n; i++) {
		struct sb_error why = { 0 };
		sb_autofree char *path = sb_daytona_path(&v, files.v[i], &why);
		int one = path ? replace_one(&v, path, old, new, &why) : SB_E_INVAL;

		r = sb_check_alive(v.call.cancel, v.call.deadline, "replace", err);
		(void)json_array_append_new(out,
			one == 0 ? json_pack("{s:o, s:b}", "file", sb_answer_text(files.v[i]),
					   "success", 1) :
				   json_pack("{s:o, s:b, s:o}", "file", sb_answer_text(files.v[i]),
					   "success", 0, "error", sb_answer_text(why.msg)));
	}
	if (r == 0)
		r = sb_answer_json(call, 200, json_incref(out), err);
	json_decref(out);
	json_decref(in);
	return r < 0 ? r : 0;
}

#define ROUTE(verb, path, run, body, how) \
	{ \
		verb, path, run, SB_RPC_HTTP_##body, how, NULL \
	}
const struct sb_daytona_route sb_daytona_file_routes[] = {
	ROUTE("GET", "/files", list, NO_BODY, 0),
	ROUTE("DELETE", "/files", delete_it, NO_BODY, 0),
	ROUTE("GET", "/files/info", info, NO_BODY, 0),
	ROUTE("GET", "/files/search", search, NO_BODY, 0),
	ROUTE("GET", "/files/find", find, NO_BODY, 0),
	ROUTE("POST", "/files/folder", make_folder, NO_BODY, 0),
	ROUTE("POST", "/files/move", move, NO_BODY, 0),
	ROUTE("POST", "/files/permissions", set_permissions, NO_BODY, 0),
	ROUTE("POST", "/files/replace", replace, WHOLE, 0),
	ROUTE("GET", "/files/download", sb_daytona_transfer_download, NO_BODY,
		SB_DAYTONA_LASTS | SB_DAYTONA_SIGNED),
	ROUTE("POST", "/files/upload", sb_daytona_transfer_upload, STREAM, SB_DAYTONA_LASTS),
	ROUTE("POST", "/files/upload-v2", sb_daytona_transfer_upload_v2, STREAM,
		SB_DAYTONA_LASTS | SB_DAYTONA_SIGNED),
	ROUTE("POST", "/files/bulk-upload", sb_daytona_transfer_bulk_upload, STREAM,
		SB_DAYTONA_LASTS),
	ROUTE("POST", "/files/bulk-download", sb_daytona_transfer_bulk_download, WHOLE,
		SB_DAYTONA_LASTS),
	{ NULL, NULL, NULL, SB_RPC_HTTP_NO_BODY, 0, NULL },
};
