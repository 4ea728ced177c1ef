/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/remote/doctor.h>

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/quote.h>
#include <base/random.h>
#include <base/str.h>

#include <sync/remote/deploy.h>
#include <sync/remote/remote.h>
#include <sync/wire/transport.h>

#define OUTPUT_MAX (256u << 10)
/* Less than this much room is worth a word. */
#define LOW_KIB (1024 * 1024)
/* File times are compared between the two sides: seconds matter, not milliseconds. */
#define SKEW_S 5

#define KNOWN_KEY "is the one we know"

struct doctor {
	const struct sb_remote_opts *o;
	char place[512];
	const char *path;
	sb_deadline d;
	sb_doctor_fn fn;
	void *arg;
	struct sb_remote *remote;
	int bad;
};

/*
 * Looks at the place: the path itself, or the nearest directory above it that is there. No single
 * quotes, no exclamation mark, one line, as for the agent.
 */
static const char look[] =
	"n=$1; d=$2; m() { printf \"\\nsbsync:%s:%s\\n\" \"$n\" \"$*\"; }; m clock $(date +%s); "
	"until [ -e \"$d\" ]; do case $d in */*) d=${d%/*}; d=${d:-/};; *) d=.;; esac; done; "
	"if [ -d \"$d\" ]; then t=$d/.sbsync-doctor-$n; if ( : >\"$t\" ) 2>/dev/null; then rm -f "
	"\"$t\"; m write yes; else m write no; fi; "
	"else m write file; fi; m place \"$d\"; m free $(df -Pk \"$d\" 2>/dev/null | tail -n 1)";

static void
tell(struct doctor *d, enum sb_doctor_what what, enum sb_doctor_state state, const char *text)
{
	struct sb_doctor_result r = { .what = what, .state = state, .place = d->place };

	(void)snprintf(r.text, sizeof r.text, "%s", text);
	d->bad += state == SB_DOCTOR_BAD;
	d->fn(&r, d->arg);
}

static void
tell_rest(struct doctor *d, enum sb_doctor_what from)
{
	for (int w = from; w < SB_DOCTOR_CHECKS; w++)
		tell(d, (enum sb_doctor_what)w, SB_DOCTOR_SKIPPED, "not tried");
}

/* Which check a failed connection belongs to. */
static enum sb_doctor_what
blame(int code)
{
	if (code == SB_E_HOSTKEY)
		return SB_DOCTOR_KEY;
	return code == SB_E_AUTH ? SB_DOCTOR_LOGIN : SB_DOCTOR_NAME;
}

static void
tell_failed(struct doctor *d, const struct sb_error *why)
{
	enum sb_doctor_what what = blame(why->code);

	if (what > SB_DOCTOR_NAME)
		tell(d, SB_DOCTOR_NAME, SB_DOCTOR_GOOD, "the machine answers");
	if (what > SB_DOCTOR_KEY)
		tell(d, SB_DOCTOR_KEY, SB_DOCTOR_GOOD, KNOWN_KEY);
	tell(d, what, SB_DOCTOR_BAD, why->msg);
	tell_rest(d, what + 1);
}

/* Reads all a command prints; 0 when it ended in order. */
static int
collect(struct doctor *d, struct sb_transport *t, struct sb_buf *out, struct sb_error *err)
{
	struct sb_exit e;
	char buf[4096];
	int r;

	(void)t->ops->close_write(t, NULL);
	for (;;) {
		struct pollfd p[2] = { { .fd = t->rfd, .events = POLLIN },
			{ .fd = sb_cancel_fd(d->o->cancel), .events = POLLIN } };
		ssize_t n;

		r = sb_check_alive(d->o->cancel, d->d, "waiting for the far side", err);
		if (r < 0)
			return r;
		if (poll(p, 2, sb_deadline_poll_ms(d->d)) < 0 && errno != EINTR)
			return sb_fail_errno(err, "poll");
		if (!p[0].revents)
			continue;
		n = read(t->rfd, buf, sizeof buf);
		if (n <= 0)
			break;
		sb_buf_add(out, buf, (size_t)n);
	}
	return t->ops->wait(t, sb_deadline_min(d->d, sb_deadline_in(10000)), &e, err);
}

/*
 * The words behind "sbsync:NONCE:KEY ", up to the line's end, escaped; "" when the line did not
 * come.
 */
static const char *
find(const struct sb_buf *out, const char *nonce, const char *key, char *buf, size_t size)
{
	char mark[80];
	const char *at;

	(void)snprintf(mark, sizeof mark, "sbsync:%s:%s ", nonce, key);
	at = strstr((const char *)out->data, mark);
	if (!at)
		return "";
	at += strlen(mark);
	return sb_escape(at, strcspn(at, "\n"), buf, size);
}

static void
check_agent(struct doctor *d)
{
	static const char *const argv[] = { "--version", NULL };
	struct sb_deploy_opts po = SB_DEPLOY_OPTS_INIT;
	struct sb_deploy_info info = { 0 };
	struct sb_transport *t = NULL;
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_error why = { 0 };
	char version[100], text[300];
	int r;

	sb_buf_init(&out, OUTPUT_MAX);
	po.argv = argv;
	po.deadline = d->d;
	po.cancel = d->o->cancel;
	po.log = d->o->log;
	r = sb_deploy_open(d->remote, &po, &info, &t, &why);
	if (r >= 0)
		r = collect(d, t, &out, &why);
	sb_transport_free(t);
	if (r < 0) {
		/*
		 * Without the agent whole files can still be carried, so this alone is not the end.
		 */
		tell(d, SB_DOCTOR_AGENT, r == SB_E_UNSUPPORTED ? SB_DOCTOR_WARN : SB_DOCTOR_BAD,
			why.msg);
		return;
	}
	(void)sb_escape((char *)out.data, strcspn((char *)out.data, "\n"), version, sizeof version);
	(void)snprintf(text, sizeof text, "%s, %s", version,
		info.uploaded ? "brought there now" : "there already");
	tell(d, SB_DOCTOR_AGENT, SB_DOCTOR_GOOD, text);
}

static void
tell_space(struct doctor *d, const char *df)
{
	/* df -P: device, blocks, used, available, capacity, mount point. */
	unsigned long long total = 0, used = 0, left = 0;
	char text[200];

	if (sscanf(df, "%*s %llu %llu %llu", &total, &used, &left) != 3 || total == 0) {
		tell(d, SB_DOCTOR_SPACE, SB_DOCTOR_WARN,
			"df does not tell how much space is free there");
		return;
	}
	(void)snprintf(text, sizeof text, "%.1f GiB free of %.1f GiB%s", (double)left / 1048576,
		(double)total / 1048576,
		left < LOW_KIB ? "; make room there before a large sync" : "");
	tell(d, SB_DOCTOR_SPACE,
		left == 0              ? SB_DOCTOR_BAD :
			left < LOW_KIB ? SB_DOCTOR_WARN :
					 SB_DOCTOR_GOOD,
		text);
}

static void
tell_clock(struct doctor *d, const char *theirs, time_t before, time_t after)
{
	int64_t there, off;
	char text[200];

	if (!sb_str_to_i64(theirs, 0, INT64_MAX / 2, &there)) {
		tell(d, SB_DOCTOR_CLOCK, SB_DOCTOR_WARN, "date +%s does not tell the time there");
		return;
	}
	off = there < before ? there - before : there > after ? there - after : 0;
	if (off >= -SKEW_S && off <= SKEW_S) {
		tell(d, SB_DOCTOR_CLOCK, SB_DOCTOR_GOOD, "agrees with ours");
		return;
	}
	(void)snprintf(text, sizeof text,
		"%lld s %s ours; file times will look odd and edits be read again: set the clocks "
		"(ntp)",
		(long long)(off < 0 ? -off : off), off < 0 ? "behind" : "ahead of");
	tell(d, SB_DOCTOR_CLOCK, SB_DOCTOR_WARN, text);
}

static void
tell_write(struct doctor *d, const char *answer, const char *place)
{
	char text[SB_ERROR_MSG_MAX];

	if (strcmp(answer, "yes") == 0) {
		(void)snprintf(text, sizeof text, "%.200s can be written", place);
		tell(d, SB_DOCTOR_WRITE, SB_DOCTOR_GOOD, text);
		return;
	}
	if (strcmp(answer, "file") == 0)
		(void)snprintf(text, sizeof text, "%.200s is not a directory; name another path",
			place);
	else
		(void)snprintf(text, sizeof text,
			"%.200s cannot be written by this user; change its owner there, or name "
			"another path",
			place);
	tell(d, SB_DOCTOR_WRITE, SB_DOCTOR_BAD, text);
}

static int
check_place(struct doctor *d, struct sb_error *err)
{
	sb_auto(sb_transport) struct sb_transport *t = NULL;
	sb_auto(sb_buf) struct sb_buf command;
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_error why = { 0 };
	time_t before, after;
	uint8_t random[8];
	char nonce[2 * sizeof random + 1], a[300], b[300];
	int r;

	sb_buf_init(&command, 64u << 10);
	sb_buf_init(&out, OUTPUT_MAX);
	r = sb_random(random, sizeof random, err);
	if (r < 0)
		return r;
	(void)sb_str_hex(random, sizeof random, nonce);
	sb_buf_addf(&command, "exec sh -c '%s' sbsync %s ", look, nonce);
	sb_quote_argument(&command, d->path);
	r = sb_buf_check(&command, "path", err);
	if (r < 0)
		return r;
	before = time(NULL);
	t = sb_remote_exec(d->remote, (char *)command.data, &why);
	r = t ? collect(d, t, &out, &why) : why.code;
	after = time(NULL);
	if (r == SB_E_CANCELED)
		return sb_fail(err, r, "%s", why.msg);
	if (r < 0) {
		tell(d, SB_DOCTOR_WRITE, SB_DOCTOR_BAD, why.msg);
		tell_rest(d, SB_DOCTOR_SPACE);
		return 0;
	}
	tell_write(d, find(&out, nonce, "write", a, sizeof a),
		find(&out, nonce, "place", b, sizeof b));
	tell_space(d, find(&out, nonce, "free", a, sizeof a));
	tell_clock(d, find(&out, nonce, "clock", a, sizeof a), before, after);
	return 0;
}

/*
 * With the ssh program nothing is connected yet: a command that does nothing shows whether it
 * works.
 */
static int
try_program(struct doctor *d, struct sb_error *why)
{
	sb_auto(sb_transport) struct sb_transport *t = sb_remote_exec(d->remote, "true", why);
	sb_auto(sb_buf) struct sb_buf out;

	sb_buf_init(&out, OUTPUT_MAX);
	return t ? collect(d, t, &out, why) : why->code;
}

int
sb_doctor_run(const struct sb_remote_opts *opts, const char *path, sb_deadline deadline,
	sb_doctor_fn fn, void *arg, struct sb_error *err)
{
	struct doctor d = { .o = opts, .path = path, .d = deadline, .fn = fn, .arg = arg };
	sb_auto(sb_remote) struct sb_remote *remote = NULL;
	struct sb_endpoint shown = *opts->to; /* borrows */
	struct sb_error why = { 0 };
	char text[500];
	int r = 0;

	shown.path = (char *)(uintptr_t)path;
	(void)sb_endpoint_show(&shown, d.place, sizeof d.place);
	remote = sb_remote_open(opts, deadline, &why);
	d.remote = remote;
	if (remote && sb_remote_is_program(remote))
		r = try_program(&d, &why);
	if (!remote || r < 0) {
		if (why.code == SB_E_CANCELED || why.code == SB_E_NOMEM)
			return sb_fail(err, why.code, "%s", why.msg);
		tell_failed(&d, &why);
		return d.bad;
	}
	(void)snprintf(text, sizeof text, "%s answers%s", sb_remote_name(remote),
		sb_remote_is_program(remote) ? " (by the ssh program)" : "");
	tell(&d, SB_DOCTOR_NAME, SB_DOCTOR_GOOD, text);
	tell(&d, SB_DOCTOR_KEY, SB_DOCTOR_GOOD, KNOWN_KEY);
	tell(&d, SB_DOCTOR_LOGIN, SB_DOCTOR_GOOD, "works");
	check_agent(&d);
	r = check_place(&d, err);
	return r < 0 ? r : d.bad;
}
