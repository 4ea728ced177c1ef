/* SPDX-License-Identifier: MIT */
/* Files of a sandbox by HTTP: downloads with ranges, uploads in parts or plain, signed addresses.
 */
#include "config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include <zlib.h>

#include <base/str.h>
#include <compat/e2b/e2b-priv.h>
#include <compat/http/multipart.h>
#include <compat/http/range.h>

#define PIECE 65536
#define META_MAX 64

/* 404 and so on, as the vendor's file endpoints say it. */
static int
refuse(struct sb_rpc_call *call, const char *shown, struct sb_error *err)
{
	int status;

	switch (err->code) {
	case SB_E_NOTFOUND: status = 404; break;
	case SB_E_NOSPACE: status = 507; break;
	case SB_E_DENIED: status = 403; break;
	case SB_E_INVAL:
	case SB_E_UNSUPPORTED: status = 400; break;
	default: return err->code;
	}
	if (err->sys == EISDIR)
		return sb_e2b_refuse(call, 400, "path '%s' is a directory", shown);
	return sb_e2b_refuse(call, status, "path '%s': %s", shown, err->msg);
}

/*
 * Who may: the holder of the sandbox's token, or of an address that it signed. 0: go on as the user
 * of the query; 1: it is answered.
 */
static int
enter(struct sb_rpc_call *call, const struct sb_query *q, const char *operation,
	struct sb_e2b_visit *v, struct sb_error *err)
{
	struct sb_e2b *e = sb_rpc_call_arg(call);
	const char *token = sb_rpc_http_header(call, "X-Access-Token");
	const char *signature = sb_query_get(q, "signature"), *path = sb_query_get(q, "path"),
		   *user = sb_query_get(q, "username"),
		   *expires = sb_query_get(q, "signature_expiration");
	const struct sb_rpc_who *who = sb_rpc_call_who(call);
	char id[SB_E2B_ID_LEN + 1] = "";
	int r;

	if (signature) {
		sb_autofree char *text =
			sb_str_printf("%s:%s:%s", path ? path : "", operation, user ? user : "");
		int64_t until = 0;

		if (!text || !sb_e2b_record_signed(e, signature, text, expires, id) ||
			(*who->session && strcmp(who->session, id) != 0))
			return sb_e2b_refuse(call, 401, "invalid signature"), 1;
		if (expires &&
			(!sb_str_to_i64(expires, 0, INT64_MAX, &until) || until < time(NULL)))
			return sb_e2b_refuse(call, 401, "signature is already expired"), 1;
	}
	r = sb_e2b_visit_to(call, signature ? id : who->session, user ? user : "", v, err);
	if (r != 0)
		return r;
	if (!signature && (!token || strcmp(token, v->r->token) != 0))
		return sb_e2b_refuse(call, 401, "missing or invalid access token"), 1;
	return 0;
}

static int
send_file(struct sb_rpc_call *call, struct sb_e2b_visit *v, struct sb_guest_stream *s,
	const struct sb_guest_entry *entry, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b;
	uint64_t from = 0, left = entry->size;
	enum sb_range how =
		sb_range_parse(sb_rpc_http_header(call, "Range"), entry->size, &from, &left);
	char text[100];
	int r;

	sb_buf_init(&b, SB_GUEST_DATA_MAX);
	sb_rpc_http_add_header(call, "Accept-Ranges", "bytes");
	if (how == SB_RANGE_NONE) {
		(void)snprintf(text, sizeof text, "bytes */%llu", (unsigned long long)entry->size);
		sb_rpc_http_add_header(call, "Content-Range", text);
		return sb_e2b_refuse(call, 416, "the range is not in the file");
	}
	if (how == SB_RANGE_PART) {
		(void)snprintf(text, sizeof text, "bytes %llu-%llu/%llu", (unsigned long long)from,
			(unsigned long long)(from + left - 1), (unsigned long long)entry->size);
		sb_rpc_http_add_header(call, "Content-Range", text);
	} else {
		from = 0;
		left = entry->size;
	}
	r = sb_rpc_http_begin(call, how == SB_RANGE_PART ? 206 : 200, "application/octet-stream",
		(int64_t)left, err);
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

int
sb_e2b_file_get(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_e2b_visit) struct sb_e2b_visit v = { 0 };
	sb_auto(sb_guest_entry) struct sb_guest_entry entry = { 0 };
	sb_autofree char *shown = NULL, *real = NULL;
	struct sb_guest_stream *s = NULL;
	const char *path = sb_query_get(q, "path");
	int r = enter(call, q, "read", &v, err);

	if (r == 0)
		r = sb_e2b_path(&v, path ? path : "", &shown, &real, err);
	if (r != 0)
		return r < 0 ? r : 0;
	r = sb_guest_open(v.e->guests, v.r->id, real, 0, 0, &v.call, &s, &entry, err);
	if (r < 0)
		return refuse(call, shown, err);
	r = send_file(call, &v, s, &entry, err);
	sb_guest_leave(s);
	return r;
}

/* An upload under way. */
struct upload {
	struct sb_e2b_visit *v;
	const char *path; /* of the query: for every file; NULL: their own names */
	struct sb_strlist meta, done;
	struct sb_guest_stream *s;
	char *shown, *real;
	json_t *out;
	z_stream z;
	bool gzip, ended;
	bool refused; /* `why` is about a file, not about the connection */
};

static int
begin_file(struct upload *u, const char *path, struct sb_error *err)
{
	int r;

	free(u->shown);
	free(u->real);
	r = sb_e2b_path(u->v, path, &u->shown, &u->real, err);
	for (size_t i = 0; r == 0 && i < u->done.n; i++)
		if (strcmp(u->done.v[i], u->real) == 0)
			r = sb_fail(err, SB_E_INVAL, "you cannot upload multiple files to it");
	if (r == 0)
		r = sb_guest_open(u->v->e->guests, u->v->r->id, u->real,
			SB_GUEST_WRITING | SB_GUEST_PARENTS | SB_GUEST_NEW, 0644, &u->v->call,
			&u->s, NULL, err);
	if (r == 0)
		sb_strlist_add(&u->done, u->real);
	u->refused = r < 0;
	return r;
}

static int
write_file(struct upload *u, const void *data, size_t len, struct sb_error *err)
{
	int r = sb_guest_write(u->s, data, len, &u->v->call, err);

	u->refused = r < 0;
	return r;
}

static int
end_file(struct upload *u, struct sb_error *err)
{
	sb_auto(sb_guest_entry) struct sb_guest_entry e = { 0 };
	const char *slash = strrchr(u->shown, '/');
	const char *name = slash ? slash + 1 : u->shown;
	json_t *o, *meta;
	int r = sb_guest_flush(u->s, &u->v->call, err);

	sb_guest_leave(u->s);
	u->s = NULL;
	if (r == 0)
		r = u->meta.n > 0 ? sb_guest_meta(u->v->e->guests, u->v->r->id, u->real,
					    sb_e2b_meta_prefix, &u->meta, &u->v->call, &e, err) :
				    0;
	u->refused = r < 0;
	if (r < 0)
		return r;
	o = json_pack("{s:o, s:o, s:s}", "path", sb_rpc_json_text(u->shown, strlen(u->shown)),
		"name", sb_rpc_json_text(name, strlen(name)), "type", "file");
	meta = u->meta.n > 0 ? sb_e2b_meta(&e) : NULL;
	if (meta)
		(void)json_object_set_new(o, "metadata", meta);
	(void)json_array_append_new(u->out, o);
	return 0;
}

static int
on_begin(const struct sb_multipart_part *p, void *arg, struct sb_error *err)
{
	struct upload *u = arg;

	/* Parts of other names are nobody's. */
	return strcmp(p->name, "file") == 0 ? begin_file(u, u->path ? u->path : p->filename, err) :
					      0;
}

static int
on_data(const void *data, size_t len, void *arg, struct sb_error *err)
{
	struct upload *u = arg;

	return u->s ? write_file(u, data, len, err) : 0;
}

static int
on_end(void *arg, struct sb_error *err)
{
	struct upload *u = arg;

	return u->s ? end_file(u, err) : 0;
}

/* One piece of the body as it came, or unpacked. */
static int
feed(struct upload *u, struct sb_multipart *m, const void *data, size_t len, struct sb_error *err)
{
	return m ? sb_multipart_feed(m, data, len, err) : write_file(u, data, len, err);
}

static int
unpack(struct upload *u, struct sb_multipart *m, const char *data, size_t len, struct sb_error *err)
{
	unsigned char out[PIECE];
	int r = 0;

	u->z.next_in = (unsigned char *)(uintptr_t)data;
	u->z.avail_in = (unsigned)len;
	while (r == 0 && u->z.avail_in > 0) {
		int zr;

		if (u->ended)
			return sb_fail(err, SB_E_INVAL, "bytes behind the end of the gzip stream");
		u->z.next_out = out;
		u->z.avail_out = sizeof out;
		zr = inflate(&u->z, Z_NO_FLUSH);
		if (zr != Z_OK && zr != Z_STREAM_END && zr != Z_BUF_ERROR)
			return sb_fail(err, SB_E_INVAL, "the gzip stream is damaged");
		u->ended = zr == Z_STREAM_END;
		if (sizeof out - u->z.avail_out > 0)
			r = feed(u, m, out, sizeof out - u->z.avail_out, err);
	}
	return r;
}

static int
read_all(struct sb_rpc_call *call, struct upload *u, struct sb_multipart *m, struct sb_error *err)
{
	sb_autofree char *piece = malloc(PIECE);
	int64_t n = 0;
	int r = piece ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	while (r == 0 && (n = sb_rpc_http_read(call, piece, PIECE, err)) > 0)
		r = u->gzip ? unpack(u, m, piece, (size_t)n, err) :
			      feed(u, m, piece, (size_t)n, err);
	if (r == 0 && n < 0)
		r = (int)n;
	if (r == 0 && u->gzip && !u->ended)
		r = sb_fail(err, SB_E_INVAL, "the gzip stream breaks off");
	return r == 0 && m ? sb_multipart_finish(m, err) : r;
}

static void
read_meta(struct sb_rpc_call *call, struct upload *u)
{
	for (size_t i = 0; i < sb_rpc_http_headers(call) && u->meta.n < META_MAX; i++) {
		const char *value, *name = sb_rpc_http_header_at(call, i, &value);
		char key[200];
		size_t n = 0;

		if (strncasecmp(name, "X-Metadata-", 11) != 0)
			continue;
		for (const char *p = name + 11; *p && n < sizeof key - 1; p++)
			key[n++] = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
		key[n] = '\0';
		sb_strlist_addf(&u->meta, "%s=%s", key, value);
	}
}

static int
receive(struct sb_rpc_call *call, struct upload *u, struct sb_error *err)
{
	static const struct sb_multipart_ops ops = { on_begin, on_data, on_end };
	const char *type = sb_rpc_http_header(call, "Content-Type"),
		   *coding = sb_rpc_http_header(call, "Content-Encoding");
	sb_auto(sb_multipart) struct sb_multipart *m = NULL;
	int r = 0;

	u->gzip = coding && strcasecmp(coding, "gzip") == 0;
	if (coding && !u->gzip && strcasecmp(coding, "identity") != 0)
		return sb_fail(err, SB_E_INVAL, "content encoding %.50s is unknown", coding);
	if (u->gzip && inflateInit2(&u->z, 15 + 16) != Z_OK)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (type && strncasecmp(type, "application/octet-stream", 24) == 0) {
		r = u->path ? begin_file(u, u->path, err) :
			      sb_fail(err, SB_E_INVAL, "the query parameter path is required");
	} else {
		m = sb_multipart_new(type, &ops, u, err);
		r = m ? 0 : SB_E_INVAL;
	}
	if (r == 0)
		r = read_all(call, u, m, err);
	if (r == 0 && u->s)
		r = end_file(u, err);
	if (u->gzip)
		(void)inflateEnd(&u->z);
	return r;
}

int
sb_e2b_file_post(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_e2b_visit) struct sb_e2b_visit v = { 0 };
	struct upload u = { .v = &v, .path = sb_query_get(q, "path") };
	int r = enter(call, q, "write", &v, err);

	if (r != 0)
		return r < 0 ? r : 0;
	u.out = json_array();
	read_meta(call, &u);
	r = receive(call, &u, err);
	sb_guest_leave(u.s);
	if (r == 0)
		r = sb_answer_json(call, 200, json_incref(u.out), err);
	else if (u.refused)
		r = refuse(call, u.shown ? u.shown : "", err);
	json_decref(u.out);
	sb_strlist_free(&u.meta);
	sb_strlist_free(&u.done);
	free(u.shown);
	free(u.real);
	return r;
}

int
sb_e2b_file_compose(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_e2b_visit) struct sb_e2b_visit v = { 0 };
	sb_auto(sb_strlist) struct sb_strlist given = { 0 }, from = { 0 };
	sb_autofree char *shown = NULL, *real = NULL;
	json_t *in = sb_answer_body(call, err);
	struct sb_rpc_fields f;
	const char *to, *name;
	int r;

	(void)q;
	if (!in)
		return SB_E_INVAL;
	sb_rpc_fields_init(&f, in);
	sb_rpc_field_list(&f, "source_paths", 1000, 4096, &given);
	to = sb_rpc_field_str(&f, "destination", 4096, SB_RPC_REQUIRED);
	name = sb_rpc_field_str(&f, "username", 100, 0);
	r = sb_rpc_fields_check(&f, err);
	if (r == 0)
		r = sb_e2b_visit(call, name, &v, err);
	if (r == 0)
		r = sb_e2b_path(&v, to, &shown, &real, err);
	for (size_t i = 0; r == 0 && i < given.n; i++) {
		sb_autofree char *a = NULL, *b = NULL;

		r = sb_e2b_path(&v, given.v[i], &a, &b, err);
		if (r == 0)
			sb_strlist_add(&from, b);
	}
	if (r == 0) {
		r = sb_guest_join(v.e->guests, v.r->id, real, &from, &v.call, NULL, err);
		if (r < 0)
			r = refuse(call, shown, err);
		else
			r = sb_answer_json(call, 200,
				json_pack("{s:s, s:s, s:s}", "path", shown, "name",
					strrchr(shown, '/') + 1, "type", "file"),
				err);
	}
	json_decref(in);
	return r < 0 ? r : 0;
}
