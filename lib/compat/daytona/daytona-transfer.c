/* SPDX-License-Identifier: MIT */
/* Files to and from a sandbox: one at a time, or many in one body; by signed addresses, too. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <gnutls/crypto.h>

#include <base/base64.h>
#include <base/str.h>
#include <compat/daytona/daytona-priv.h>
#include <compat/http/multipart.h>
#include <compat/http/range.h>
#include <rpc/protocol/field.h>

#define PIECE 65536
#define PATH_BYTES 4096
#define PATHS_MAX 1000

/* "v1_" and the HMAC in base64url, as the vendor's clients make it. */
static bool
sign(const char *key, const char *verb, const char *path, const char *expires, char out[64])
{
	sb_autofree char *text = sb_str_printf("v1:files:%s:%s:%s", verb, path, expires);
	uint8_t mac[32];

	(void)snprintf(out, 64, "v1_");
	if (!text ||
		gnutls_hmac_fast(GNUTLS_MAC_SHA256, key, strlen(key), text, strlen(text), mac) !=
			0 ||
		!sb_base64_encode(mac, sizeof mac, out + 3, 61))
		return false;
	for (char *p = out + 3; *p; p++)
		*p = *p == '+' ? '-' : *p == '/' ? '_' : *p;
	return true;
}

/* A visit, where the caller has a key or a good address. As sb_daytona_visit. */
static int
enter(struct sb_rpc_call *call, const struct sb_query *q, struct sb_daytona_visit *v,
	struct sb_error *err)
{
	const char *signature = sb_query_get(q, "signature"), *path = sb_query_get(q, "path"),
		   *expires = sb_query_get(q, "expires");
	json_t *rec;
	int64_t until = 0;
	char want[64];
	bool ok;

	if (!signature)
		return sb_daytona_visit(call, q, v, err);
	rec = sb_daytona_record_find(sb_rpc_call_arg(call), "sandbox", q->segments.v[1]);
	ok = rec && path && expires &&
		sign(sb_daytona_text(rec, "signingKey"), sb_rpc_http_verb(call), path, expires,
			want) &&
		sb_keys_same(want, signature);
	json_decref(rec);
	if (!ok)
		return sb_daytona_refuse(call, 401, "invalid signature"), 1;
	/* 0: it does not end. */
	if (!sb_str_to_i64(expires, 0, INT64_MAX, &until) || (until > 0 && until < time(NULL)))
		return sb_daytona_refuse(call, 401, "signature is expired"), 1;
	return sb_daytona_visit(call, q, v, err);
}

/* Sends a part of an open file. */
static int
send_bytes(struct sb_rpc_call *call, struct sb_daytona_visit *v, struct sb_guest_stream *s,
	uint64_t from, uint64_t left, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	int r = 0;

	sb_buf_init(&b, SB_GUEST_DATA_MAX);
	while (r == 0 && left > 0) {
		int64_t n;

		sb_buf_reset(&b);
		n = sb_guest_read(s, from, left < SB_GUEST_DATA_MAX ? left : SB_GUEST_DATA_MAX,
			&v->call, &b, err);
		if (n <= 0)
			return n < 0 ? (int)n : sb_fail(err, SB_E_CHANGED, "the file got shorter");
		r = sb_rpc_http_write(call, b.data, (size_t)n, err);
		from += (uint64_t)n;
		left -= (uint64_t)n;
	}
	return r;
}

static int
send_file(struct sb_rpc_call *call, struct sb_daytona_visit *v, struct sb_guest_stream *s,
	uint64_t size, struct sb_error *err)
{
	uint64_t from = 0, left = size;
	enum sb_range how = sb_range_parse(sb_rpc_http_header(call, "Range"), size, &from, &left);
	char text[100];
	int r;

	sb_rpc_http_add_header(call, "Accept-Ranges", "bytes");
	if (how == SB_RANGE_NONE) {
		(void)snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)size);
		sb_rpc_http_add_header(call, "Content-Range", text);
		return sb_daytona_refuse(call, 416, "the range is not in the file");
	}
	if (how == SB_RANGE_PART) {
		(void)snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)from,
			(unsigned long long)(from + left - 1), (unsigned long long)size);
		sb_rpc_http_add_header(call, "Content-Range", text);
	} else {
		from = 0;
		left = size;
	}
	r = sb_rpc_http_begin(call, how == SB_RANGE_PART ? 206 : 200, "application/octet-stream",
		(int64_t)left, err);
	return r < 0 ? r : send_bytes(call, v, s, from, left, err);
}

int
sb_daytona_transfer_download(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	const char *given = sb_query_get(q, "path");
	struct sb_guest_stream *s = NULL;
	sb_autofree char *path = NULL;
	int r = enter(call, q, &v, err);

	if (r == 0 && !(path = sb_daytona_path(&v, given ? given : "", err)))
		return sb_daytona_file_refuse(call, "path", err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = sb_guest_open(v.d->guests, v.id, path, 0, 0, &v.call, &s, &e, err);
	if (r < 0)
		return sb_daytona_file_refuse(call, given ? given : "", err);
	r = send_file(call, &v, s, e.size, err);
	sb_guest_leave(s);
	return r;
}

/* A name between quotes of a header. */
static void
put_quoted(struct sb_buf *out, const char *s)
{
	for (; *s; s++) {
		if (*s == '"' || *s == '\\')
			sb_buf_add_char(out, '\\');
		sb_buf_add_char(out, *s == '\r' || *s == '\n' ? '_' : *s);
	}
}

static int
part_head(struct sb_rpc_call *call, const char *boundary, const char *name, const char *path,
	const char *type, uint64_t size, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	int r;

	sb_buf_init(&b, 8 * PATH_BYTES);
	sb_buf_addf(&b, "--%s\r\nContent-Disposition: form-data; name=\"%s\"; filename=\"",
		boundary, name);
	put_quoted(&b, path);
	/* What is not ASCII is read as it is meant in this form only. */
	sb_buf_add_str(&b, "\"; filename*=UTF-8''");
	sb_query_encode(path, strlen(path), &b);
	sb_buf_addf(&b, "\r\nContent-Type: %s\r\nContent-Length: %llu\r\n\r\n", type,
		(unsigned long long)size);
	r = sb_buf_check(&b, "header", err);
	return r < 0 ? r : sb_rpc_http_write(call, b.data, b.len, err);
}

/* A part with the file, or with what is wrong with it. */
static int
put_part(struct sb_rpc_call *call, struct sb_daytona_visit *v, const char *boundary,
	const char *given, struct sb_error *err)
{
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	struct sb_error why = { 0 };
	sb_autofree char *path = sb_daytona_path(v, given, &why);
	struct sb_guest_stream *s = NULL;
	int r = path ? sb_guest_open(v->d->guests, v->id, path, 0, 0, &v->call, &s, &e, &why) :
		       why.code;

	if (r < 0) {
		const char *code;
		int status;
		json_t *o;
		char *text;

		sb_daytona_file_error(&why, &status, &code);
		o = json_pack("{s:i, s:o, s:s, s:s}", "statusCode", status, "message",
			sb_answer_text(why.msg), "code", code, "source", "DAYTONA_DAEMON");
		text = json_dumps(o, JSON_COMPACT);
		json_decref(o);
		r = text ? part_head(call, boundary, "error", given, "application/json",
				   strlen(text), err) :
			   sb_fail(err, SB_E_NOMEM, "out of memory");
		if (r == 0)
			r = sb_rpc_http_write(call, text, strlen(text), err);
		free(text);
	} else {
		r = part_head(call, boundary, "file", given, "application/octet-stream", e.size,
			err);
		if (r == 0)
			r = send_bytes(call, v, s, 0, e.size, err);
		sb_guest_leave(s);
	}
	return r < 0 ? r : sb_rpc_http_write(call, "\r\n", 2, err);
}

int
sb_daytona_transfer_bulk_download(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	sb_auto(sb_strlist) struct sb_strlist paths = { 0 };
	json_t *in = sb_answer_body(call, err);
	char boundary[41], type[100], end[50];
	struct sb_rpc_fields f;
	int r;

	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	sb_rpc_field_list(&f, "paths", PATHS_MAX, PATH_BYTES, &paths);
	r = sb_rpc_fields_check(&f, err);
	if (r == 0 && paths.n == 0)
		r = sb_fail(err, SB_E_INVAL, "paths is required");
	json_decref(in);
	if (r == 0)
		r = sb_keys_make(boundary, 40, err);
	if (r == 0)
		r = sb_daytona_visit(call, q, &v, err);
	if (r != 0)
		return r < 0 ? r : 0;
	(void)snprintf(type, sizeof type, "multipart/form-data; boundary=%s", boundary);
	(void)snprintf(end, sizeof end, "--%s--\r\n", boundary);
	r = sb_rpc_http_begin(call, 200, type, -1, err);
	for (size_t i = 0; r == 0 && i < paths.n; i++)
		r = put_part(call, &v, boundary, paths.v[i], err);
	return r < 0 ? r : sb_rpc_http_write(call, end, strlen(end), err);
}

/* An upload under way. */
struct upload {
	struct sb_daytona_visit *v;
	bool bulk;
	struct sb_buf path; /* of the part files[i].path, for the next file */
	char name[32];      /* "files[i]" */
	bool in_path;
	char *real;
	uint64_t bytes;
	struct sb_guest_stream *s;
	json_t *files;
	bool refused; /* it is about a file, not about the connection */
};

static int
begin_file(struct upload *u, const char *path, struct sb_error *err)
{
	int r;

	free(u->real);
	u->bytes = 0;
	u->real = sb_daytona_path(u->v, path, err);
	r = u->real ? sb_guest_open(u->v->d->guests, u->v->id, u->real,
			      SB_GUEST_WRITING | SB_GUEST_PARENTS | SB_GUEST_NEW, 0644, &u->v->call,
			      &u->s, NULL, err) :
		      SB_E_INVAL;
	u->refused = r < 0;
	return r;
}

static int
write_file(struct upload *u, const void *data, size_t len, struct sb_error *err)
{
	int r = sb_guest_write(u->s, data, len, &u->v->call, err);

	u->bytes += len;
	u->refused = r < 0;
	return r;
}

static int
end_file(struct upload *u, struct sb_error *err)
{
	int r = sb_guest_flush(u->s, &u->v->call, err);

	sb_guest_leave(u->s);
	u->s = NULL;
	u->refused = r < 0;
	if (r == 0)
		(void)json_array_append_new(u->files,
			json_pack("{s:o, s:I}", "path", sb_daytona_path_shown(u->v, u->real),
				"bytes", (json_int_t)u->bytes));
	return r;
}

/* "files[3].path" and "files[3].file", the path first; or "file" of a single upload. */
static int
on_begin(const struct sb_multipart_part *p, void *arg, struct sb_error *err)
{
	struct upload *u = arg;
	const char *dot = strrchr(p->name, '.');
	size_t n = dot ? (size_t)(dot - p->name) : 0;

	if (!u->bulk)
		return strcmp(p->name, "file") == 0 && !u->s ?
			begin_file(u, (char *)u->path.data, err) :
			0;
	if (!dot || n >= sizeof u->name)
		return 0;
	if (strcmp(dot, ".path") == 0) {
		sb_buf_reset(&u->path);
		(void)snprintf(u->name, sizeof u->name, "%.*s", (int)n, p->name);
		u->in_path = true;
	} else if (strcmp(dot, ".file") == 0) {
		if (u->path.len == 0 || strlen(u->name) != n || strncmp(u->name, p->name, n) != 0)
			return sb_fail(err, SB_E_INVAL, "%.*s.path must come before %.40s", (int)n,
				p->name, p->name);
		return begin_file(u, (char *)u->path.data, err);
	}
	return 0;
}

static int
on_data(const void *data, size_t len, void *arg, struct sb_error *err)
{
	struct upload *u = arg;

	if (u->in_path) {
		sb_buf_add(&u->path, data, len);
		if (memchr(data, '\0', len))
			return sb_fail(err, SB_E_INVAL, "a path with a NUL");
		return u->path.failed ? sb_fail(err, SB_E_INVAL, "the path is too long") : 0;
	}
	return u->s ? write_file(u, data, len, err) : 0;
}

static int
on_end(void *arg, struct sb_error *err)
{
	struct upload *u = arg;

	u->in_path = false;
	return u->s ? end_file(u, err) : 0;
}

static int
receive(struct sb_rpc_call *call, struct upload *u, bool raw, struct sb_error *err)
{
	static const struct sb_multipart_ops ops = { on_begin, on_data, on_end };
	sb_auto(sb_multipart) struct sb_multipart *m = NULL;
	sb_autofree char *piece = malloc(PIECE);
	int64_t n = 0;
	int r = piece ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r == 0 && raw)
		r = begin_file(u, (char *)u->path.data, err);
	else if (r == 0 &&
		!(m = sb_multipart_new(sb_rpc_http_header(call, "Content-Type"), &ops, u, err)))
		r = SB_E_INVAL;
	while (r == 0 && (n = sb_rpc_http_read(call, piece, PIECE, err)) > 0)
		r = raw ? write_file(u, piece, (size_t)n, err) :
			  sb_multipart_feed(m, piece, (size_t)n, err);
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0)
		r = raw ? end_file(u, err) : sb_multipart_finish(m, err);
	return r;
}

/* Reads the body; 0: all is there, `u->files` has what. 1: it is answered. */
static int
upload(struct sb_rpc_call *call, const struct sb_query *q, struct upload *u, bool raw,
	struct sb_error *err)
{
	const char *path = sb_query_get(q, "path");
	int r = enter(call, q, u->v, err);

	if (r != 0)
		return r;
	sb_buf_init(&u->path, PATH_BYTES + 1);
	u->files = json_array();
	if (!u->bulk && (!path || !*path)) {
		(void)sb_daytona_refuse_as(call, 400, "INVALID_FILE_PATH", "path is required");
		return 1;
	}
	if (!u->bulk)
		sb_buf_add_str(&u->path, path);
	if (u->path.failed)
		return sb_fail(err, SB_E_INVAL, "the path is too long");
	r = receive(call, u, raw, err);
	sb_guest_leave(u->s);
	u->s = NULL;
	if (r < 0 && u->refused) {
		if (u->bulk) {
			int res = sb_answer_json(call, 400,
				json_pack("{s:[o], s:O}", "errors",
					json_sprintf("%.*s: %s", (int)u->path.len,
						(char *)u->path.data, err->msg),
					"files", u->files),
				NULL);

			return res < 0 ? res : 1;
		}
		r = sb_daytona_file_refuse(call, path, err);
		return r < 0 ? r : 1;
	}
	if (r == 0 && !u->bulk && json_array_size(u->files) == 0)
		return sb_daytona_refuse(call, 400, "the body has no part named file"), 1;
	return r;
}

static void
upload_free(struct upload *u)
{
	json_decref(u->files);
	sb_buf_free(&u->path);
	free(u->real);
}

static int
answer_one(struct sb_rpc_call *call, const struct upload *u, struct sb_error *err)
{
	const char *slash = strrchr(u->real, '/');

	return sb_answer_json(call, 200,
		json_pack("{s:o, s:O, s:s}", "name", sb_answer_text(slash ? slash + 1 : u->real),
			"path", json_object_get(json_array_get(u->files, 0), "path"), "type",
			"file"),
		err);
}

int
sb_daytona_transfer_upload(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	struct upload u = { .v = &v };
	int r = upload(call, q, &u, false, err);

	if (r == 0)
		r = answer_one(call, &u, err);
	upload_free(&u);
	return r < 0 ? r : 0;
}

int
sb_daytona_transfer_upload_v2(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	struct upload u = { .v = &v };
	const char *type = sb_rpc_http_header(call, "Content-Type");
	int r = upload(call, q, &u, !(type && strncmp(type, "multipart/", 10) == 0), err);

	if (r == 0)
		r = answer_one(call, &u, err);
	upload_free(&u);
	return r < 0 ? r : 0;
}

int
sb_daytona_transfer_bulk_upload(struct sb_rpc_call *call, const struct sb_query *q,
	struct sb_error *err)
{
	sb_auto(sb_daytona_visit) struct sb_daytona_visit v = { 0 };
	struct upload u = { .v = &v, .bulk = true };
	int r = upload(call, q, &u, false, err);

	if (r == 0)
		r = sb_answer_json(call, 200, json_pack("{s:O}", "files", u.files), err);
	upload_free(&u);
	return r < 0 ? r : 0;
}
