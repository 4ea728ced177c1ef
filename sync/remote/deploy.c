/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/remote/deploy.h>

#include <archive.h>
#include <archive_entry.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include <base/file.h>
#include <base/str.h>

#include <sync/tree/digest.h>
#include <sync/remote/marker.h>
#include <sync/remote/remote.h>
#include <sync/ssh/ssh-hash.h>
#include <sync/wire/transport.h>

#define AGENT_MAX (64u << 20)

/* One attempt. */
struct deploy {
	struct sb_remote *remote;
	const struct sb_deploy_opts *o;
	struct sb_deploy_info info;
	struct sb_marker m;  /* owns its transport */
	struct sb_buf agent; /* the program */
	char digest[33];
	struct sb_error *err;
};

static la_ssize_t
take_packed(struct archive *a, void *arg, const void *data, size_t len)
{
	sb_buf_add(arg, data, len);
	return (la_ssize_t)len;
}

/* gzip, the one decoder that is everywhere. */
static int
pack(const struct sb_buf *in, struct sb_buf *out, struct sb_error *err)
{
	struct archive *a = archive_write_new();
	struct archive_entry *e = archive_entry_new();
	bool ok;

	if (!a || !e) {
		archive_entry_free(e);
		archive_write_free(a);
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	}
	archive_entry_set_filetype(e, 0100000);
	archive_entry_set_pathname(e, "agent");
	(void)archive_write_set_bytes_in_last_block(a, 1);
	ok = archive_write_add_filter_gzip(a) == ARCHIVE_OK &&
		archive_write_set_options(a, "gzip:compression-level=6,gzip:!timestamp") >=
			ARCHIVE_WARN &&
		archive_write_set_format_raw(a) == ARCHIVE_OK &&
		archive_write_open(a, out, NULL, take_packed, NULL) == ARCHIVE_OK &&
		archive_write_header(a, e) == ARCHIVE_OK &&
		archive_write_data(a, in->data, in->len) == (la_ssize_t)in->len &&
		archive_write_close(a) == ARCHIVE_OK;
	archive_entry_free(e);
	archive_write_free(a);
	if (!ok)
		return sb_fail(err, SB_E_UNSUPPORTED, "cannot compress the agent");
	return sb_buf_check(out, "the compressed agent", err);
}

static int
upload(struct deploy *d, bool gzip)
{
	sb_auto(sb_buf) struct sb_buf packed;
	struct sb_buf *body = &d->agent;
	uint8_t sum[SB_SSH_SHA256_LEN];
	char head[200], hex[2 * sizeof sum + 1];
	int r;

	sb_buf_init(&packed, AGENT_MAX);
	if (gzip && pack(&d->agent, &packed, NULL) >= 0)
		body = &packed;
	sb_ssh_hash_sha256(d->agent.data, d->agent.len, sum);
	(void)snprintf(head, sizeof head, "%s %zu %u %zu %s\n", body == &packed ? "gzip" : "raw",
		body->len, sb_deploy_cksum(d->agent.data, d->agent.len), d->agent.len,
		sb_str_hex(sum, sizeof sum, hex));
	r = sb_marker_send(&d->m, head, strlen(head), d->err);
	if (r >= 0)
		r = sb_marker_send(&d->m, body->data, body->len, d->err);
	if (r < 0)
		return r;
	d->info.uploaded = true;
	d->info.sent = body->len;
	sb_log(&d->o->log, SB_LOG_INFO, "deploy", "%s: agent sent, %zu bytes",
		sb_remote_name(d->remote), body->len);
	return 0;
}

/* Turns a "failed ..." line into words. */
static int
explain_failed(struct deploy *d, const char *what)
{
	const char *name = sb_remote_name(d->remote);
	char text[300];

	(void)sb_escape(what, strlen(what), text, sizeof text);
	if (sb_str_starts(text, "write"))
		return sb_fail(d->err, SB_E_UNSUPPORTED,
			"%s: no place for the agent can be written (~/.cache, $XDG_RUNTIME_DIR, "
			"$TMPDIR, /var/tmp, /dev/shm)",
			name);
	if (sb_str_starts(text, "exec"))
		return sb_fail(d->err, SB_E_UNSUPPORTED,
			"%s: every place for the agent is mounted noexec (~/.cache, "
			"$XDG_RUNTIME_DIR, $TMPDIR, /var/tmp, /dev/shm) and there is no python3",
			name);
	if (sb_str_starts(text, "verify"))
		return sb_fail(d->err, SB_E_CORRUPT,
			"%s: the agent did not arrive whole; is the disk there full?", name);
	if (strstr(text, "format") || strstr(text, "syntax"))
		return sb_fail(d->err, SB_E_UNSUPPORTED,
			"%s: the agent is built for another kind of machine (it is a %s %s): %s",
			name, d->info.system, d->info.machine, text);
	return sb_fail(d->err, SB_E_UNSUPPORTED, "%s: the agent does not run there (%s %s): %s",
		name, d->info.system, d->info.machine, text);
}

static int
load_agent(struct deploy *d, const char *path)
{
	struct sb_digest digest;
	int r;

	sb_buf_free(&d->agent);
	r = sb_file_read(AT_FDCWD, path, AGENT_MAX, &d->agent, d->err);
	if (r < 0)
		return sb_wrap(d->err, r, "agent program");
	digest = sb_digest_of(d->agent.data, d->agent.len);
	(void)sb_str_hex(digest.b, sizeof digest.b, d->digest);
	return 0;
}

static int
start(struct deploy *d)
{
	sb_auto(sb_buf) struct sb_buf command;
	int r;

	sb_buf_init(&command, 64u << 10);
	r = sb_marker_init(&d->m, d->err);
	if (r < 0)
		return r;
	sb_deploy_command(d->m.nonce, d->digest, d->o->first_len, d->o->argv, &command);
	r = sb_buf_check(&command, "the command for the far side", d->err);
	if (r < 0)
		return r;
	sb_transport_free(d->m.t);
	d->m.t = d->o->split ? sb_remote_exec_split(d->remote, (char *)command.data, d->err) :
			       sb_remote_exec(d->remote, (char *)command.data, d->err);
	if (!d->m.t)
		return d->err->code;
	r = sb_marker_send(&d->m, d->o->first, d->o->first_len, d->err);
	return r < 0 ? r : sb_marker_next(&d->m, d->err);
}

/* Takes "absent MACHINE SYSTEM gzip|raw" apart; true when gzip is there. */
static bool
note_machine(struct deploy *d)
{
	const char *p = d->m.line + strlen("absent ");
	size_t n = strcspn(p, " ");

	(void)sb_escape(p, n, d->info.machine, sizeof d->info.machine);
	p += n + strspn(p + n, " ");
	n = strcspn(p, " ");
	(void)sb_escape(p, n, d->info.system, sizeof d->info.system);
	return sb_str_ends(d->m.line, " gzip");
}

/*
 * The agent at hand is for another kind of machine: look for the right one and begin again with it.
 * 1: begin again.
 */
static int
check_machine(struct deploy *d)
{
	const char *type = sb_deploy_machine_of(d->agent.data, d->agent.len);
	sb_autofree char *path = NULL;
	int r;

	if (*type && strcmp(d->info.system, "Linux") != 0)
		return sb_fail(d->err, SB_E_UNSUPPORTED, "%s: the agent runs on Linux, this is %s",
			sb_remote_name(d->remote), d->info.system);
	if (sb_deploy_machine_runs(d->info.machine, type))
		return 0;
	if (!d->o->agent)
		path = sb_deploy_find(d->info.machine, NULL);
	if (!path)
		return sb_fail(d->err, SB_E_UNSUPPORTED,
			"%s is a %s machine, the agent at hand is for %s; install sbsync-agent-%s "
			"beside sbsync",
			sb_remote_name(d->remote), d->info.machine, type, d->info.machine);
	r = load_agent(d, path);
	return r < 0 ? r : 1;
}

static int
run(struct deploy *d)
{
	bool gzip = false, again = false;
	int r;

	r = start(d);
	if (r >= 0 && sb_str_starts(d->m.line, "absent ")) {
		gzip = note_machine(d);
		r = check_machine(d);
		if (r > 0) {
			(void)sb_marker_send(&d->m, "abort\n", 6, d->err);
			r = start(d);
			if (r >= 0 && sb_str_starts(d->m.line, "absent "))
				gzip = note_machine(d);
		}
	}
	if (r >= 0 && sb_str_starts(d->m.line, "absent ")) {
		if (d->o->no_upload)
			return sb_fail(d->err, SB_E_NOTFOUND, "%s: the agent is not there",
				sb_remote_name(d->remote));
		r = upload(d, gzip);
		if (r >= 0)
			r = sb_marker_next(&d->m, d->err);
		again = true;
	}
	if (r < 0)
		return r;
	if (strcmp(d->m.line, "ready") == 0)
		return again ? sb_marker_send(&d->m, d->o->first, d->o->first_len, d->err) : 0;
	if (sb_str_starts(d->m.line, "failed "))
		return explain_failed(d, d->m.line + strlen("failed "));
	return sb_fail(d->err, SB_E_PROTO, "%s: the far side answers nonsense",
		sb_remote_name(d->remote));
}

int
sb_deploy_open(struct sb_remote *r, const struct sb_deploy_opts *opts, struct sb_deploy_info *info,
	struct sb_transport **out, struct sb_error *err)
{
	struct sb_deploy_opts o = SB_DEPLOY_OPTS_INIT;
	struct sb_error why = { 0 };
	struct deploy d = { .remote = r, .o = &o, .err = &why, .m.name = sb_remote_name(r) };
	sb_autofree char *found = NULL;
	int rc = 0;

	memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	d.m.cancel = o.cancel;
	d.m.deadline = o.deadline;
	sb_buf_init(&d.agent, 0);
	if (!o.agent) {
		found = sb_deploy_find(NULL, &why);
		rc = found ? 0 : why.code;
	}
	if (rc >= 0)
		rc = load_agent(&d, found ? found : o.agent);
	if (rc >= 0)
		rc = run(&d);
	sb_buf_free(&d.agent);
	if (info)
		*info = d.info;
	if (rc < 0) {
		sb_transport_free(d.m.t);
		if (err)
			*err = why;
		return rc;
	}
	*out = d.m.t;
	return 0;
}
