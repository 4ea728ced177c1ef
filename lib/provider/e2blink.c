/* SPDX-License-Identifier: MIT */
/* An E2B account as a profile has it: options, key, programs in its sandboxes. */
#include "config.h"

#include <provider/e2blink.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/procid.h>
#include <base/quote.h>
#include <base/str.h>
#include <base/strlist.h>
#include <cloud/e2b/envd.h>
#include <provider/beside.h>
#include <provider/provider.h>
#include <sbsync/conn.h>

#define TEMPLATE_DEFAULT "base"
#define TIMEOUT_DEFAULT 300
#define TIMEOUT_MAX 86400
#define CONNECT_MS 60000
#define EXTEND_MS 20000
#define TAG "sbsync"

struct sb_e2blink {
	struct sb_e2bapi *api;
	struct sb_strlist options; /* those that are set */
	struct sb_log log;
};

static bool
is_url(const char *text)
{
	return sb_str_starts(text, "http://") || sb_str_starts(text, "https://");
}

static bool
is_reference(const char *text)
{
	return (sb_str_starts(text, "env:") && text[4]) || sb_str_starts(text, "file:/");
}

static bool
is_name(const char *text)
{
	size_t n = strspn(text,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
		"._:/-");

	return n > 0 && n <= 128 && !text[n] && *text != '-';
}

static bool
is_timeout(const char *text)
{
	int64_t v;

	return sb_str_to_i64(text, 15, TIMEOUT_MAX, &v);
}

const struct sb_provider_option sb_e2blink_options[] = {
	{ .name = "key",
		.value = "env:NAME or file:/PATH",
		.help = "where the API key is (" SB_E2BLINK_KEY ")",
		.check = is_reference,
		.user_only = true },
	{ .name = "template",
		.value = "a name of letters, digits and ._:/-",
		.help = "what sandboxes are made of (" TEMPLATE_DEFAULT ")",
		.check = is_name },
	{ .name = "timeout",
		.value = "seconds from 15 to 86400",
		.help = "one that nobody holds is paused then (300)",
		.check = is_timeout },
	{ .name = "domain",
		.value = "a domain name",
		.help = "of the service (" SB_E2BAPI_DOMAIN ")",
		.check = is_name,
		.user_only = true,
		.place = true },
	{ .name = "api_url",
		.value = "http://... or https://...",
		.help = "of the service's API, where it is not api.DOMAIN",
		.check = is_url,
		.user_only = true,
		.place = true },
	{ .name = "sandbox_url",
		.value = "http://... or https://...",
		.help = "of all sandboxes, where they have no names of their own",
		.check = is_url,
		.user_only = true,
		.place = true },
	{ .name = "ca_file",
		.value = "FILE",
		.help = "authorities that https is checked with",
		.user_only = true },
	{ .name = NULL },
};

static const char *
option(const struct sb_e2blink *l, const char *name)
{
	return sb_strlist_get(sb_strlist_borrow(&l->options), name);
}

static int
open_api(struct sb_e2blink *l, struct sb_error *err)
{
	const char *ref = option(l, "key");
	sb_autofree char *pair = sb_str_printf("key=%s", ref ? ref : SB_E2BLINK_KEY);
	const char *const pairs[] = { pair, NULL };
	struct sb_e2bapi_opts o = SB_E2BAPI_OPTS_INIT;
	struct sb_strlist keys = { 0 };
	int r = pair ? sb_secrets_resolve(pairs, &keys, err) :
		       sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r < 0)
		return sb_wrap(err, r, "backend e2b");
	o.api_url = option(l, "api_url");
	o.sandbox_url = option(l, "sandbox_url");
	o.domain = option(l, "domain");
	o.ca_file = option(l, "ca_file");
	o.key = keys.v[0] + strlen("key=");
	o.log = l->log;
	l->api = sb_e2bapi_new(&o, err);
	sb_secrets_free(&keys);
	return l->api ? 0 : SB_E_INVAL;
}

struct sb_e2blink *
sb_e2blink_open(const char *const *options, const struct sb_log *log, struct sb_error *err)
{
	struct sb_e2blink *l = calloc(1, sizeof *l);
	struct sb_error why = { 0 };
	int r = l ? 0 : sb_fail(&why, SB_E_NOMEM, "out of memory");

	if (r == 0) {
		sb_strlist_add_all(&l->options, options);
		if (log)
			l->log = *log;
		r = sb_strlist_check(&l->options, &why);
	}
	if (r == 0)
		r = sb_provider_options_check("e2b", sb_e2blink_options, options, &why);
	if (r == 0)
		r = open_api(l, &why);
	if (r == 0)
		return l;
	sb_e2blink_free(l);
	if (err)
		*err = why;
	return NULL;
}

void
sb_e2blink_free(struct sb_e2blink *l)
{
	if (!l)
		return;
	sb_e2bapi_free(l->api);
	sb_strlist_free(&l->options);
	free(l);
}

struct sb_e2bapi *
sb_e2blink_api(const struct sb_e2blink *l)
{
	return l->api;
}

const char *
sb_e2blink_template(const struct sb_e2blink *l)
{
	const char *t = option(l, "template");

	return t ? t : TEMPLATE_DEFAULT;
}

int64_t
sb_e2blink_timeout(const struct sb_e2blink *l)
{
	const char *t = option(l, "timeout");
	int64_t v = TIMEOUT_DEFAULT;

	if (t)
		(void)sb_str_to_i64(t, 15, TIMEOUT_MAX, &v);
	return v;
}

/* --- who holds a program over there: "sbsync BOOT PID START" --- */

static char *
make_tag(void)
{
	char boot[SB_PROCID_BOOT_SIZE];

	(void)sb_procid_boot(boot);
	return sb_str_printf(TAG " %s %ld %lld", *boot ? boot : "-", (long)getpid(),
		(long long)sb_procid_start(getpid()));
}

/* Of this machine since it was booted, and not there any more. */
static bool
tag_gone(const char *tag, void *arg)
{
	char boot[SB_PROCID_BOOT_SIZE], theirs[40];
	long long start;
	long pid;

	(void)arg;
	return sscanf(tag, TAG " %39s %ld %lld", theirs, &pid, &start) == 3 &&
		strcmp(theirs, sb_procid_boot(boot)) == 0 && sb_procid_start((pid_t)pid) != start;
}

static struct sb_envd *
envd_of(const struct sb_e2blink *l, const struct sb_e2bapi_box *box, struct sb_error *err)
{
	struct sb_envd_opts o = SB_ENVD_OPTS_INIT;

	o.url = box->url;
	o.id = box->id;
	o.token = box->token;
	o.ca_file = option(l, "ca_file");
	o.log = l->log;
	return sb_envd_new(&o, err);
}

int
sb_e2blink_sweep(const struct sb_e2blink *l, const struct sb_e2bapi_box *box,
	const struct sb_rest_wait *wait, struct sb_error *err)
{
	sb_auto(sb_envd) struct sb_envd *e = envd_of(l, box, err);

	return e ? sb_envd_sweep(e, tag_gone, NULL, wait, err) : SB_E_INVAL;
}

/* --- commands --- */

struct keeper {
	const struct sb_e2blink *l;
	const char *id;
};

/* It must not end while somebody works in it. What fails is tried again the next time. */
static void
extend(void *arg, const struct sb_cancel *cancel)
{
	struct keeper *k = arg;
	struct sb_rest_wait w = { cancel, sb_deadline_in(EXTEND_MS) };
	struct sb_error err = { 0 };

	if (sb_e2bapi_extend(k->l->api, k->id, sb_e2blink_timeout(k->l), &w, &err) < 0 &&
		err.code != SB_E_CANCELED)
		sb_log(&k->l->log, SB_LOG_WARN, "e2b",
			"sandbox %s could not be kept for longer: %s", k->id, err.msg);
}

int
sb_e2blink_attach(const struct sb_e2blink *l, const char *id, const char *command, const int fds[3],
	const struct sb_cancel *cancel, struct sb_error *err)
{
	struct sb_rest_wait w = { cancel, sb_deadline_in(CONNECT_MS) };
	sb_auto(sb_e2bapi_box) struct sb_e2bapi_box box = { 0 };
	sb_auto(sb_envd) struct sb_envd *e = NULL;
	sb_autofree char *tag = make_tag();
	struct sb_envd_run run = SB_ENVD_RUN_INIT;
	struct keeper k = { l, id };
	int code = 0, r;

	if (!tag)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = sb_e2bapi_connect(l->api, id, sb_e2blink_timeout(l), &w, &box, err);
	if (r == 0)
		e = envd_of(l, &box, err);
	if (r < 0 || !e)
		return r < 0 ? r : SB_E_INVAL;
	w.deadline = SB_NEVER;
	run.command = command;
	run.tag = tag;
	memcpy(run.fds, fds, sizeof run.fds);
	run.tick = extend;
	run.tick_arg = &k;
	run.tick_ms = sb_e2blink_timeout(l) * 1000 / 3;
	r = sb_envd_run(e, &run, &w, &code, err);
	return r < 0 ? r : code;
}

/* Quotes a word for sbsync's --rsh. */
static void
add_word(struct sb_buf *b, const char *word)
{
	sb_buf_add_char(b, ' ');
	sb_quote_word(b, word);
}

char *
sb_e2blink_rsh(const struct sb_e2blink *l, struct sb_error *err)
{
	sb_autofree char *program = sb_beside_program("sbctl");
	sb_auto(sb_buf) struct sb_buf b;
	size_t len;

	sb_buf_init(&b, 65536);
	if (!program) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	add_word(&b, program);
	sb_buf_add_str(&b, " e2b");
	for (size_t i = 0; i < l->options.n; i++) {
		/* What a sandbox is made of says nothing about the way to it. */
		if (sb_str_starts(l->options.v[i], "template="))
			continue;
		sb_buf_add_str(&b, " -o");
		add_word(&b, l->options.v[i]);
	}
	sb_buf_add_str(&b, " attach");
	if (sb_buf_check(&b, "remote shell", err) < 0)
		return NULL;
	sb_buf_consume(&b, 1);
	return (char *)sb_buf_detach(&b, &len);
}

/* --- the same words, in this process --- */

struct attach_line {
	struct sb_strlist options;
	const char *id, *command;
};

/* "[PATH/]sbctl e2b -o KEY=VALUE... attach ID COMMAND" */
static bool
read_line(const char *const *argv, struct attach_line *out)
{
	const char *base = argv[0] ? strrchr(argv[0], '/') : NULL;
	const char *const *p;

	*out = (struct attach_line){ 0 };
	base = base ? base + 1 : argv[0];
	if (!base || strcmp(base, "sbctl") != 0 || !argv[1] || strcmp(argv[1], "e2b") != 0)
		return false;
	for (p = argv + 2; *p && strcmp(*p, "-o") == 0 && p[1]; p += 2)
		sb_strlist_add(&out->options, p[1]);
	if (!*p || strcmp(*p, "attach") != 0 || !p[1] || !p[2] || p[3]) {
		sb_strlist_free(&out->options);
		return false;
	}
	out->id = p[1];
	out->command = p[2];
	return true;
}

static bool
takes(const char *const *argv)
{
	struct attach_line a;
	bool yes = read_line(argv, &a);

	if (yes)
		sb_strlist_free(&a.options);
	return yes;
}

static int
attach_once(const struct attach_line *a, const int fds[3], const struct sb_cancel *cancel,
	struct sb_error *err)
{
	sb_auto(sb_e2blink) struct sb_e2blink *l =
		sb_e2blink_open(sb_strlist_borrow(&a->options), NULL, err);

	return l ? sb_e2blink_attach(l, a->id, a->command, fds, cancel, err) : err->code;
}

static int
run(const char *const *argv, const int fds[3], const struct sb_cancel *cancel)
{
	struct sb_error err = { 0 };
	struct attach_line a;
	int code = -1;

	if (read_line(argv, &a)) {
		code = attach_once(&a, fds, cancel, &err);
		sb_strlist_free(&a.options);
	}
	if (code < 0) {
		char line[600];

		(void)snprintf(line, sizeof line, "sbctl: %s\n", err.msg);
		(void)sb_file_write_nosig(fds[2], line, strlen(line));
		code = 1;
	}
	return code;
}

void
sb_e2blink_carry(void)
{
	static const struct sb_carrier carrier = { takes, run };

	(void)sb_conn_carry(&carrier);
}
