/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh-config.h>

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>

#include <base/buf.h>
#include <base/spawn.h>
#include <base/str.h>

#include <sync/wire/endpoint.h>

#define OUTPUT_MAX (1u << 20)
#define PROGRAM_MS 15000

/* The passwd entry of this user; `home` and `name` are copies or NULL. */
struct self {
	char *home;
	char *name;
};

static void
self_get(struct self *s)
{
	struct passwd pw, *found = NULL;
	char buf[8192];

	*s = (struct self){ 0 };
	if (getpwuid_r(getuid(), &pw, buf, sizeof buf, &found) == 0 && found) {
		s->home = strdup(pw.pw_dir);
		s->name = strdup(pw.pw_name);
	}
}

static void
self_drop(struct self *s)
{
	free(s->home);
	free(s->name);
}

static int
set(char **to, const char *value, struct sb_error *err)
{
	char *copy = strdup(value);

	if (!copy)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	free(*to);
	*to = copy;
	return 0;
}

/*
 * "~/x" and the %-tokens that make sense in a file name. NULL: no such file can be meant, or no
 * memory.
 */
static char *
expand(const char *path, const struct sb_ssh_config *c, const struct self *self)
{
	sb_auto(sb_buf) struct sb_buf b;
	char host[256] = "";

	sb_buf_init(&b, 8192);
	(void)gethostname(host, sizeof host - 1);
	if (path[0] == '~' && path[1] == '/') {
		sb_buf_add_str(&b, self->home ? self->home : "");
		path++;
	}
	for (; *path; path++) {
		if (*path != '%') {
			sb_buf_add_char(&b, *path);
			continue;
		}
		switch (*++path) {
		case '%': sb_buf_add_char(&b, '%'); break;
		case 'd': sb_buf_add_str(&b, self->home ? self->home : ""); break;
		case 'u': sb_buf_add_str(&b, self->name ? self->name : ""); break;
		case 'h': sb_buf_add_str(&b, c->host ? c->host : ""); break;
		case 'r': sb_buf_add_str(&b, c->user ? c->user : ""); break;
		case 'p': sb_buf_addf(&b, "%d", c->port); break;
		case 'i': sb_buf_addf(&b, "%u", (unsigned)getuid()); break;
		case 'l': sb_buf_add_str(&b, host); break;
		case 'L': sb_buf_addf(&b, "%.*s", (int)strcspn(host, "."), host); break;
		default: return NULL;
		}
	}
	if (b.failed)
		return NULL;
	return (char *)sb_buf_detach(&b, NULL);
}

static int
add_expanded(struct sb_strlist *l, const char *path, const struct sb_ssh_config *c,
	const struct self *self, struct sb_error *err)
{
	sb_autofree char *full = expand(path, c, self);

	if (full)
		sb_strlist_add(l, full);
	return sb_strlist_check(l, err);
}

/* A list of file names, blanks between them, as ssh -G prints it (it does not quote). */
static int
add_files(struct sb_strlist *l, char *value, const struct sb_ssh_config *c, const struct self *self,
	struct sb_error *err)
{
	int r = 0;

	for (char *w = value + strspn(value, " "); *w && r >= 0;) {
		size_t n = strcspn(w, " ");
		char *next = w + n + strspn(w + n, " ");

		w[n] = '\0';
		if (strcmp(w, "none") != 0)
			r = add_expanded(l, w, c, self, err);
		w = next;
	}
	return r;
}

static bool
truth(const char *v)
{
	return strcmp(v, "yes") == 0 || strcmp(v, "true") == 0;
}

static void
need(struct sb_ssh_config *c, const char *what)
{
	if (!c->needs[0])
		(void)snprintf(c->needs, sizeof c->needs, "%s", what);
}

/* Settings libssh2 cannot fulfil, unless they have this value. */
static const struct {
	const char *key;
	const char *harmless;
	const char *name;
} beyond[] = {
	{ "proxyjump", "none", "ProxyJump" },
	{ "proxycommand", "none", "ProxyCommand" },
	{ "pkcs11provider", "none", "PKCS11Provider" },
	{ "bindaddress", "none", "BindAddress" },
	{ "bindinterface", "none", "BindInterface" },
	{ "knownhostscommand", "none", "KnownHostsCommand" },
	{ "remotecommand", "none", "RemoteCommand" },
	{ "certificatefile", "none", "CertificateFile" },
	{ "hostbasedauthentication", "no", "HostbasedAuthentication" },
};

static int
take_setting(struct sb_ssh_config *c, const char *key, char *value, struct sb_error *err)
{
	int64_t n;

	for (size_t i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
		if (strcmp(key, beyond[i].key) == 0 && strcmp(value, beyond[i].harmless) != 0)
			need(c, beyond[i].name);
	if (strcmp(key, "hostname") == 0)
		return set(&c->host, value, err);
	if (strcmp(key, "user") == 0)
		return set(&c->user, value, err);
	if (strcmp(key, "hostkeyalias") == 0)
		return strcmp(value, "none") == 0 ? 0 : set(&c->known_name, value, err);
	if (strcmp(key, "port") == 0 && sb_str_to_i64(value, 1, 65535, &n))
		c->port = (int)n;
	else if (strcmp(key, "identitiesonly") == 0)
		c->identities_only = truth(value);
	else if (strcmp(key, "hashknownhosts") == 0)
		c->hash_known_hosts = truth(value);
	else if (strcmp(key, "connecttimeout") == 0 && sb_str_to_i64(value, 1, 3600, &n))
		c->connect_ms = (int)n * 1000;
	else if (strcmp(key, "addressfamily") == 0)
		c->family = strcmp(value, "inet") == 0 ? AF_INET :
			strcmp(value, "inet6") == 0    ? AF_INET6 :
							 AF_UNSPEC;
	else if (strcmp(key, "stricthostkeychecking") == 0)
		c->new_key = strcmp(value, "accept-new") == 0 || strcmp(value, "no") == 0 ||
				strcmp(value, "off") == 0 || strcmp(value, "false") == 0 ?
			SB_SSH_NEW_ADD :
			strcmp(value, "ask") == 0 ? SB_SSH_NEW_ASK :
						    SB_SSH_NEW_REFUSE;
	return 0;
}

static int
take_agent(struct sb_ssh_config *c, const char *value, const struct self *self,
	struct sb_error *err)
{
	const char *env = NULL;

	if (strcmp(value, "none") == 0) {
		free(c->agent);
		c->agent = NULL;
		return 0;
	}
	if (*value == '$')
		env = getenv(value + 1);
	else if (strcmp(value, "SSH_AUTH_SOCK") == 0)
		env = getenv(value);
	if (env)
		return set(&c->agent, env, err);
	free(c->agent);
	c->agent = expand(value, c, self);
	return 0;
}

/* The second pass: values that are made of those of the first. */
static int
take_path_setting(struct sb_ssh_config *c, const char *key, char *value, const struct self *self,
	struct sb_error *err)
{
	if (strcmp(key, "identityfile") == 0)
		return strcmp(value, "none") == 0 ?
			0 :
			add_expanded(&c->identities, value, c, self, err);
	if (strcmp(key, "userknownhostsfile") == 0 || strcmp(key, "globalknownhostsfile") == 0)
		return add_files(&c->known_hosts, value, c, self, err);
	if (strcmp(key, "identityagent") == 0)
		return take_agent(c, value, self, err);
	return 0;
}

/* The files where new keys go come first, whatever the order of the output. */
static int
each_line(char *text, struct sb_ssh_config *c, const struct self *self, const char *only,
	struct sb_error *err)
{
	int r = 0;

	for (char *line = text; line && *line && r >= 0;) {
		char *nl = strchr(line, '\n');
		char *space;

		if (nl)
			*nl = '\0';
		space = strchr(line, ' ');
		if (space) {
			sb_autofree char *value = strdup(space + 1);

			*space = '\0';
			if (!value)
				r = sb_fail(err, SB_E_NOMEM, "out of memory");
			else if (!self)
				r = take_setting(c, line, value, err);
			else if (strcmp(line, only) == 0)
				r = take_path_setting(c, line, value, self, err);
			*space = ' ';
		}
		if (nl)
			*nl = '\n';
		line = nl ? nl + 1 : NULL;
	}
	return r;
}

int
sb_ssh_config_parse(char *text, struct sb_ssh_config *c, struct sb_error *err)
{
	static const char *const order[] = { "identityfile", "userknownhostsfile",
		"globalknownhostsfile", "identityagent" };
	const char *sock = getenv("SSH_AUTH_SOCK");
	struct self self;
	int r;

	self_get(&self);
	c->port = 22;
	r = each_line(text, c, NULL, NULL, err);
	if (r >= 0 && sock && *sock)
		r = set(&c->agent, sock, err);
	for (size_t i = 0; i < sizeof order / sizeof order[0] && r >= 0; i++)
		r = each_line(text, c, &self, order[i], err);
	self_drop(&self);
	if (r >= 0 && (!c->host || !c->user))
		r = sb_fail(err, SB_E_INVAL, "the output of ssh -G has no hostname or no user");
	return r;
}

/* What ssh does without any configuration. */
static int
defaults(const struct sb_ssh_query *q, struct sb_ssh_config *c, struct sb_error *err)
{
	static const char *const keys[] = { "id_ed25519", "id_ecdsa", "id_rsa" };
	const char *sock = getenv("SSH_AUTH_SOCK");
	const char *home = getenv("HOME");
	struct self self;
	int r;

	self_get(&self);
	if (!home || !*home)
		home = self.home ? self.home : "";
	c->port = 22;
	r = set(&c->host, q->host, err);
	if (r >= 0)
		r = set(&c->user, self.name ? self.name : "root", err);
	for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
		sb_strlist_addf(&c->identities, "%s/.ssh/%s", home, keys[i]);
	sb_strlist_addf(&c->known_hosts, "%s/.ssh/known_hosts", home);
	sb_strlist_add(&c->known_hosts, "/etc/ssh/ssh_known_hosts");
	if (r >= 0)
		r = sb_strlist_check(&c->identities, err);
	if (r >= 0)
		r = sb_strlist_check(&c->known_hosts, err);
	if (r >= 0 && sock && *sock)
		r = set(&c->agent, sock, err);
	self_drop(&self);
	return r;
}

/* The options of the ssh program that stand for the query. */
static void
query_args(const struct sb_ssh_query *q, struct sb_strlist *l)
{
	if (q->config_file)
		sb_strlist_add_all(l, (const char *[]){ "-F", q->config_file, NULL });
	if (q->port)
		sb_strlist_addf(l, "-p%d", q->port);
	if (q->user)
		sb_strlist_add_all(l, (const char *[]){ "-l", q->user, NULL });
}

/* Runs `ssh ARGS -- HOST`; the exit code, or an error. */
static int
run_program(const struct sb_ssh_query *q, const char *const *first, const struct sb_cancel *cancel,
	sb_deadline d, struct sb_buf *out, struct sb_buf *err_out, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist l = { 0 };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	int r;

	sb_strlist_add(&l, q->program ? q->program : "ssh");
	sb_strlist_add_all(&l, first);
	query_args(q, &l);
	sb_strlist_add(&l, "--");
	sb_strlist_add(&l, q->host);
	r = sb_strlist_check(&l, err);
	if (r < 0)
		return r;
	o.search_path = true;
	return sb_child_run((const char *const *)l.v, &o, NULL, 0, out, err_out, cancel,
		sb_deadline_min(d, sb_deadline_in(PROGRAM_MS)), err);
}

/* A control master that answers makes the ssh program the faster way: no set-up at all. */
static bool
master_lives(const struct sb_ssh_query *q, const char *text, const struct sb_cancel *cancel,
	sb_deadline d)
{
	static const char *const check[] = { "-O", "check", NULL };
	const char *path = strstr(text, "\ncontrolpath ");

	if (!path || strncmp(path, "\ncontrolpath none\n", 18) == 0)
		return false;
	return run_program(q, check, cancel, d, NULL, NULL, NULL) == 0;
}

static int
from_program(const struct sb_ssh_query *q, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_ssh_config *c, struct sb_error *err)
{
	static const char *const dump[] = { "-G", "-T", NULL };
	sb_auto(sb_buf) struct sb_buf out;
	sb_auto(sb_buf) struct sb_buf err_out;
	char why[300];
	int r;

	sb_buf_init(&out, OUTPUT_MAX);
	sb_buf_init(&err_out, 4096);
	r = run_program(q, dump, cancel, d, &out, &err_out, err);
	if (r < 0)
		return r;
	if (r > 0)
		return sb_fail(err, SB_E_INVAL, "your ssh configuration: %s",
			sb_escape((char *)err_out.data, strcspn((char *)err_out.data, "\r\n"), why,
				sizeof why));
	if (out.failed)
		return sb_fail(err, SB_E_LIMIT, "ssh -G says more than %u bytes", OUTPUT_MAX);
	c->have_program = true;
	r = sb_ssh_config_parse((char *)out.data, c, err);
	if (r < 0)
		return r;
	if (master_lives(q, (char *)out.data, cancel, d))
		need(c, "a running ControlMaster");
	return 0;
}

/* What the user asked for now goes before what is written in files. */
static int
overrule(const struct sb_ssh_query *q, struct sb_ssh_config *c, struct sb_error *err)
{
	struct sb_strlist ids = { 0 };
	int r = 0;

	if (q->user)
		r = set(&c->user, q->user, err);
	if (q->port)
		c->port = q->port;
	if (r >= 0 && !c->known_name)
		r = set(&c->known_name, c->host ? c->host : q->host, err);
	if (r >= 0 && q->known_hosts) {
		sb_strlist_free(&c->known_hosts);
		c->known_hosts = (struct sb_strlist){ 0 };
		sb_strlist_add(&c->known_hosts, q->known_hosts);
		r = sb_strlist_check(&c->known_hosts, err);
	}
	if (q->accept_new)
		c->new_key = SB_SSH_NEW_ADD;
	for (size_t i = 0; i < q->n_identities; i++)
		sb_strlist_add(&ids, q->identities[i]);
	sb_strlist_add_all(&ids, (const char *const *)c->identities.v);
	sb_strlist_free(&c->identities);
	c->identities = ids;
	return r < 0 ? r : sb_strlist_check(&ids, err);
}

int
sb_ssh_config_load(const struct sb_ssh_query *q, const struct sb_cancel *cancel, sb_deadline d,
	struct sb_ssh_config *out, struct sb_error *err)
{
	sb_auto(sb_ssh_config) struct sb_ssh_config c = { 0 };
	struct sb_error why = { 0 };
	int r;

	r = sb_endpoint_check_host(q->host, "ssh", err);
	if (r >= 0 && q->user)
		r = sb_endpoint_check_user(q->user, "ssh", err);
	if (r < 0)
		return r;
	r = from_program(q, cancel, d, &c, &why);
	if (r == SB_E_NOTFOUND && !c.have_program)
		r = defaults(q, &c, &why);
	if (r >= 0)
		r = overrule(q, &c, &why);
	if (r >= 0)
		r = sb_endpoint_check_host(c.host, "HostName of your ssh configuration", &why);
	if (r < 0) {
		if (err)
			*err = why;
		return r;
	}
	*out = c;
	memset(&c, 0, sizeof c);
	return 0;
}

void
sb_ssh_config_free(struct sb_ssh_config *c)
{
	free(c->host);
	free(c->user);
	free(c->known_name);
	free(c->agent);
	sb_strlist_free(&c->known_hosts);
	sb_strlist_free(&c->identities);
	memset(c, 0, sizeof *c);
}

void
sb_ssh_config_apply(const struct sb_ssh_config *c, struct sb_ssh_opts *o)
{
	o->host = c->host;
	o->user = c->user;
	o->port = c->port;
	o->known_name = c->known_name;
	o->family = c->family;
	o->known_hosts = (const char *const *)c->known_hosts.v;
	o->n_known_hosts = c->known_hosts.n;
	o->new_key = c->new_key;
	o->hash_known_hosts = c->hash_known_hosts;
	o->identities = (const char *const *)c->identities.v;
	o->n_identities = c->identities.n;
	o->identities_only = c->identities_only;
	o->agent = c->agent;
	if (c->connect_ms > 0)
		o->connect_ms = c->connect_ms;
}

/*
 * Splits a command line at blanks; '...' and "..." keep blanks, a backslash keeps the next
 * character.
 */
static int
split_words(const char *line, struct sb_strlist *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf word;
	bool in_word = false;
	char quote = 0;
	int r;

	sb_buf_init(&word, 4096);
	for (const char *p = line;; p++) {
		if (!*p || (!quote && (*p == ' ' || *p == '\t'))) {
			if (in_word)
				sb_strlist_add(out, (char *)word.data);
			sb_buf_reset(&word);
			in_word = false;
			if (!*p)
				break;
		} else if (quote && *p == quote) {
			quote = 0;
		} else if (!quote && (*p == '\'' || *p == '"')) {
			quote = *p;
			in_word = true;
		} else {
			if (*p == '\\' && quote != '\'' && p[1])
				p++;
			sb_buf_add_char(&word, *p);
			in_word = true;
		}
	}
	r = sb_strlist_check(out, err);
	if (r >= 0 && quote)
		r = sb_fail(err, SB_E_USAGE, "--rsh '%s': a quote is not closed", line);
	if (r >= 0 && out->n == 0)
		r = sb_fail(err, SB_E_USAGE, "--rsh: an empty command");
	return r;
}

static void
ssh_args(const struct sb_ssh_query *q, bool batch, struct sb_strlist *l)
{
	sb_strlist_add(l, "-T");
	if (batch)
		sb_strlist_add(l, "-oBatchMode=yes");
	/*
	 * Dead connections are found in half a minute, as with our own transport. What stands in
	 * --rsh comes first and wins.
	 */
	sb_strlist_add(l, "-oServerAliveInterval=10");
	sb_strlist_add(l, "-oServerAliveCountMax=3");
	for (size_t i = 0; i < q->n_identities; i++) {
		sb_strlist_add(l, "-i");
		sb_strlist_add(l, q->identities[i]);
	}
	if (q->known_hosts)
		sb_strlist_addf(l, "-oUserKnownHostsFile=\"%s\"", q->known_hosts);
	if (q->accept_new)
		sb_strlist_add(l, "-oStrictHostKeyChecking=accept-new");
}

static bool
called_ssh(const char *program)
{
	const char *slash = strrchr(program, '/');

	return strcmp(slash ? slash + 1 : program, "ssh") == 0;
}

bool
sb_ssh_config_is_ssh(const char *rsh)
{
	sb_auto(sb_strlist) struct sb_strlist words = { 0 };

	return !rsh || (split_words(rsh, &words, NULL) == 0 && called_ssh(words.v[0]));
}

int
sb_ssh_config_argv(const struct sb_ssh_query *q, const char *rsh, bool batch, const char *command,
	struct sb_strlist *out, struct sb_error *err)
{
	bool is_ssh;
	int r;

	if (!rsh)
		sb_strlist_add(out, q->program ? q->program : "ssh");
	r = rsh ? split_words(rsh, out, err) : sb_strlist_check(out, err);
	if (r < 0)
		return r;
	is_ssh = !rsh || called_ssh(out->v[0]);
	if (is_ssh) {
		ssh_args(q, batch, out);
		query_args(q, out);
	}
	if (!is_ssh && q->port)
		sb_strlist_addf(out, "-p%d", q->port);
	if (!is_ssh && q->user)
		sb_strlist_add_all(out, (const char *[]){ "-l", q->user, NULL });
	if (is_ssh)
		sb_strlist_add(out, "--");
	sb_strlist_add(out, q->host);
	sb_strlist_add(out, command);
	return sb_strlist_check(out, err);
}
