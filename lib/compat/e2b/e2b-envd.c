/* SPDX-License-Identifier: MIT */
/* A sandbox's own plane: which one is meant, as whom, by which paths; and its small endpoints. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include <base/base64.h>
#include <base/str.h>
#include <compat/e2b/e2b-priv.h>

const char sb_e2b_meta_prefix[] = "user.e2b.";

static int
not_running(struct sb_rpc_call *call, const char *id)
{
	(void)sb_answer_json(call, 502,
		json_pack("{s:s, s:s, s:i}", "sandboxId", id, "message",
			"The sandbox was not found", "code", 502),
		NULL);
	return 1;
}

/* The user of HTTP Basic with an empty password, "" when none is named. */
static bool
basic_user(struct sb_rpc_call *call, struct sb_e2b_visit *v)
{
	const char *h = sb_rpc_http_header(call, "Authorization");
	sb_auto(sb_buf) struct sb_buf b;
	size_t len;

	v->user = "";
	sb_buf_init(&b, sizeof v->buf - 1);
	if (!h || strncasecmp(h, "Basic ", 6) != 0)
		return true;
	if (!sb_base64_decode(h + 6, strlen(h + 6), &b) || memchr(b.data, 0, b.len))
		return false;
	len = strcspn((char *)b.data, ":");
	memcpy(v->buf, b.data, len);
	v->buf[len] = '\0';
	v->user = v->buf;
	return true;
}

/* Wakes a paused sandbox that is woken by whoever comes. */
static int
wake(struct sb_rpc_call *call, struct sb_e2b_visit *v, struct sb_host_session *s,
	struct sb_error *err)
{
	int r = 0;

	if (sb_e2b_sandbox_paused(s)) {
		if (!v->r->auto_resume)
			r = not_running(call, v->r->id);
		else
			r = sb_e2b_sandbox_resume(v->e, v->r, &v->call, err);
	} else if (s->state == SB_HOST_DESTROYING || s->state == SB_HOST_FAILED) {
		r = not_running(call, v->r->id);
	}
	(void)snprintf(v->home, sizeof v->home, "%s",
		s->runtime == SB_HOST_RUNTIME_NONE ? s->mountpoint : "/workspace");
	sb_host_session_clear(s);
	return r;
}

int
sb_e2b_visit(struct sb_rpc_call *call, const char *user, struct sb_e2b_visit *v,
	struct sb_error *err)
{
	return sb_e2b_visit_to(call, sb_rpc_call_who(call)->session, user, v, err);
}

int
sb_e2b_visit_to(struct sb_rpc_call *call, const char *id, const char *user, struct sb_e2b_visit *v,
	struct sb_error *err)
{
	struct sb_host_session s;
	int r;

	*v = (struct sb_e2b_visit){ .e = sb_rpc_call_arg(call), .call = sb_answer_limits(call) };
	v->r = sb_e2b_record_find(v->e, id);
	if (!v->r || v->r->snapshot || sb_host_session_get(v->e->host, id, false, &s, NULL) < 0)
		return not_running(call, id);
	r = wake(call, v, &s, err);
	if (r != 0)
		return r;
	if (user)
		v->user = user;
	else if (!basic_user(call, v))
		return sb_fail(err, SB_E_AUTH, "the user cannot be read");
	if (*v->user == '\0')
		v->user = "user";
	if (strcmp(v->user, "user") != 0 && strcmp(v->user, "root") != 0)
		return sb_fail(err, SB_E_AUTH, "invalid username: '%.100s'", v->user);
	return 0;
}

void
sb_e2b_visit_end(struct sb_e2b_visit *v)
{
	sb_e2b_record_free(v->r);
	v->r = NULL;
}

/* "/a/./b/../c" as "/a/c". */
static void
clean(const char *path, struct sb_buf *out)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 2 && path[0] == '.' && path[1] == '.') {
			while (out->len > 0 && out->data[--out->len] != '/')
				;
			out->data[out->len] = '\0';
		} else if (len > 0 && !(len == 1 && *path == '.')) {
			sb_buf_add_char(out, '/');
			sb_buf_add(out, path, len);
		}
		path += len + (path[len] == '/');
	}
	if (out->len == 0)
		sb_buf_add_char(out, '/');
}

int
sb_e2b_path(const struct sb_e2b_visit *v, const char *path, char **shown, char **real,
	struct sb_error *err)
{
	static const char home[] = SB_E2B_HOME;
	sb_auto(sb_buf) struct sb_buf whole, b;
	size_t n = sizeof home - 1;

	*shown = *real = NULL;
	sb_buf_init(&whole, 8192);
	sb_buf_init(&b, 8192);
	if (path[0] == '~' && path[1] != '\0' && path[1] != '/')
		return sb_fail(err, SB_E_INVAL, "path '%.200s': only ~ itself is a home", path);
	if (path[0] == '~')
		path++;
	else if (path[0] == '/')
		n = 0;
	sb_buf_add(&whole, home, n);
	sb_buf_add_char(&whole, '/');
	sb_buf_add_str(&whole, path);
	if (whole.failed)
		return sb_fail(err, SB_E_INVAL, "the path is too long");
	clean((char *)whole.data, &b);
	if (b.failed)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	*shown = strdup((char *)b.data);
	n = sizeof home - 1;
	if (strncmp((char *)b.data, home, n) == 0 && (b.data[n] == '/' || b.data[n] == '\0'))
		*real = sb_str_printf("%s%s", v->home, (char *)b.data + n);
	else
		*real = strdup((char *)b.data);
	return *shown && *real ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}

json_t *
sb_e2b_meta(const struct sb_guest_entry *e)
{
	size_t n = strlen(sb_e2b_meta_prefix);
	json_t *o = NULL;

	for (size_t i = 0; i < e->meta.n; i++) {
		const char *pair = e->meta.v[i], *eq = strchr(pair, '=');

		if (!eq || strncmp(pair, sb_e2b_meta_prefix, n) != 0 || eq < pair + n)
			continue;
		o = o ? o : json_object();
		(void)json_object_setn_new(o, pair + n, (size_t)(eq - pair) - n,
			sb_rpc_json_text(eq + 1, strlen(eq + 1)));
	}
	return o;
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

json_t *
sb_e2b_entry(const struct sb_guest_entry *e, const char *shown)
{
	static const char *const kinds[] = { "FILE_TYPE_FILE", "FILE_TYPE_DIRECTORY",
		"FILE_TYPE_SYMLINK", "FILE_TYPE_UNSPECIFIED" };
	const char *slash = strrchr(shown, '/');
	const char *name = slash && slash[1] ? slash + 1 : shown;
	const char *owner = e->own ? "user" : "root";
	char size[32];
	json_t *meta = sb_e2b_meta(e), *o;

	(void)snprintf(size, sizeof size, "%llu", (unsigned long long)e->size);
	o = json_pack("{s:o, s:s, s:o, s:s, s:i, s:o, s:s, s:s, s:o}", "name",
		sb_rpc_json_text(name, strlen(name)), "type",
		kinds[e->kind == 'f'           ? 0 :
				e->kind == 'd' ? 1 :
				e->kind == 'l' ? 2 :
						 3],
		"path", sb_rpc_json_text(shown, strlen(shown)), "size", size, "mode",
		(int)(e->mode & 07777), "permissions", permissions(e), "owner", owner, "group",
		owner, "modifiedTime",
		sb_answer_time(e->mtime_s * INT64_C(1000000000) + e->mtime_ns));
	if (e->kind == 'l')
		(void)json_object_set_new(o, "symlinkTarget",
			sb_rpc_json_text(e->target, strlen(e->target)));
	if (meta)
		(void)json_object_set_new(o, "metadata", meta);
	return o;
}

static int
health(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_e2b_visit) struct sb_e2b_visit v = { 0 };
	int r = sb_e2b_visit(call, "user", &v, err);

	(void)q;
	if (r == 0)
		sb_rpc_http_reply(call, 204, NULL, NULL, 0);
	return r < 0 ? r : 0;
}

static int
envs(struct sb_rpc_call *call, const struct sb_query *q, struct sb_error *err)
{
	sb_auto(sb_e2b_visit) struct sb_e2b_visit v = { 0 };
	int r = sb_e2b_visit(call, "user", &v, err);

	(void)q;
	if (r == 0)
		r = sb_answer_json(call, 200, json_deep_copy(v.r->env), err);
	return r < 0 ? r : 0;
}

#define ENVD SB_E2B_ENVD
const struct sb_e2b_route sb_e2b_envd_routes[] = {
	{ "GET", "/health", ENVD, health, SB_RPC_HTTP_NO_BODY, false, false, true },
	{ "GET", "/envs", ENVD, envs, SB_RPC_HTTP_NO_BODY, false, false, false },
	{ "GET", "/files", ENVD, sb_e2b_file_get, SB_RPC_HTTP_NO_BODY, true, false, true },
	{ "POST", "/files", ENVD, sb_e2b_file_post, SB_RPC_HTTP_STREAM, true, false, true },
	{ "POST", "/files/compose", ENVD, sb_e2b_file_compose, SB_RPC_HTTP_WHOLE, false, false,
		false },
	{ NULL, NULL, ENVD, NULL, SB_RPC_HTTP_NO_BODY, false, false, false },
};
