/* SPDX-License-Identifier: MIT */
/* Logs in: keys of the agent, key files, passwords, in the order OpenSSH tries them. */
#include "config.h"

#include <sync/ssh/ssh-priv.h>

#include <stdio.h>
#include <string.h>

#include <base/buf.h>
#include <base/str.h>

#include <sync/ssh/ssh-agent.h>
#include <sync/ssh/ssh-key.h>

#define TRIES 3
#define ANSWER_SIZE 1024

/* One log-in: what was tried, for the message at its end. */
struct auth {
	struct sb_ssh *c;
	const struct sb_ssh_opts *o;
	sb_deadline d;
	struct sb_buf tried;
	bool needs_program; /* a key was left out that only the ssh program can use */
	struct sb_ssh_agent agent;
	struct sb_error *err;
};

/* Signing by the agent, on behalf of libssh2. */
struct signer {
	struct auth *a;
	const struct sb_ssh_agent_key
		*key; /* NULL: only find out whether the server takes the key */
	bool asked;
};

#define DRIVE(a, rc, call, what, r) \
	do { \
		(rc) = (call); \
		(r) = sb_ssh_conn_turn((a)->c, (rc), (a)->d, (what), (a)->err); \
	} while ((r) > 0)

static void
note(struct auth *a, const char *what, const char *which, const char *remark)
{
	sb_buf_addf(&a->tried, "%s%s%s%s", a->tried.len > 0 ? ", " : "", what, which, remark);
}

/*
 * A definite no to one method is 0, so that the next is tried; yes is 1; a broken connection is an
 * error.
 */
static int
verdict(struct auth *a, int rc)
{
	char why[220];

	if (rc == 0)
		return 1;
	switch (rc) {
	case LIBSSH2_ERROR_AUTHENTICATION_FAILED:
	case LIBSSH2_ERROR_PUBLICKEY_UNVERIFIED:
	case LIBSSH2_ERROR_METHOD_NOT_SUPPORTED:
	case LIBSSH2_ERROR_METHOD_NONE:
	case LIBSSH2_ERROR_FILE: return 0;
	default: break;
	}
	/* A server that has had enough says so or hangs up; a reset is the network's. */
	if (sb_ssh_conn_dead(a->c) && a->c->wire.sys && !a->c->farewell[0])
		return sb_fail(a->err, SB_E_CLOSED, "log-in: %s",
			sb_ssh_conn_why(a->c, why, sizeof why));
	if (sb_ssh_conn_dead(a->c))
		return sb_fail(a->err, SB_E_AUTH,
			"log-in: %s (tried %s); too many keys? name one with -i and IdentitiesOnly",
			sb_ssh_conn_why(a->c, why, sizeof why),
			a->tried.len ? (const char *)a->tried.data : "nothing");
	return sb_fail(a->err, SB_E_PROTO, "log-in failed: %s",
		sb_ssh_conn_last(a->c, why, sizeof why));
}

static LIBSSH2_USERAUTH_PUBLICKEY_SIGN_FUNC(sign_by_agent)
{
	struct signer *s = *abstract;
	sb_auto(sb_buf) struct sb_buf out;
	struct sb_error why = { 0 };
	uint32_t flags = 0;

	sb_buf_init(&out, 64u << 10);
	s->asked = true;
	if (!s->key)
		return -1;
	/* The data to sign names the algorithm; RSA comes in flavours the agent must be told. */
	if (memmem(data, data_len, "rsa-sha2-512", 12))
		flags = 4;
	else if (memmem(data, data_len, "rsa-sha2-256", 12))
		flags = 2;
	/* A person may have to confirm: the clock of the log-in starts again behind it. */
	if (sb_ssh_agent_sign(&s->a->agent, s->key, data, data_len, flags, sb_deadline_in(120000),
		    &out, &why) < 0) {
		sb_log(&s->a->c->log, SB_LOG_WARN, "ssh", "%s: %s", s->key->comment, why.msg);
		return -1;
	}
	s->a->d = sb_deadline_in(s->a->o->handshake_ms);
	*sig = sb_ssh_conn_alloc(s->a->c, out.len);
	if (!*sig)
		return -1;
	memcpy(*sig, out.data, out.len);
	*sig_len = out.len;
	return 0;
}

static int
try_agent_key(struct auth *a, const struct sb_ssh_agent_key *key)
{
	struct signer s = { .a = a, .key = key };
	void *abstract = &s;
	int rc, r;

	note(a, "agent key ", key->comment, "");
	DRIVE(a, rc,
		libssh2_userauth_publickey(a->c->session, a->c->user, key->blob, key->blob_len,
			sign_by_agent, &abstract),
		"log-in with a key of the agent", r);
	return r < 0 ? r : verdict(a, rc);
}

/* Asks the server whether it would take the key, without proving anything. 1, 0 or an error. */
static int
server_takes(struct auth *a, const struct sb_ssh_key *key)
{
	struct signer s = { .a = a };
	void *abstract = &s;
	int rc, r;

	DRIVE(a, rc,
		libssh2_userauth_publickey(a->c->session, a->c->user, key->blob, key->blob_len,
			sign_by_agent, &abstract),
		"log-in with a key file", r);
	if (r < 0)
		return r;
	if (s.asked)
		return 1;
	return verdict(a, rc);
}

static int
ask(struct auth *a, enum sb_ssh_ask kind, const char *text, bool echo, char answer[ANSWER_SIZE])
{
	int r;

	if (!a->o->ask)
		return SB_E_CANCELED;
	r = a->o->ask(kind, text, echo, answer, ANSWER_SIZE, a->o->ask_arg);
	a->d = sb_deadline_in(a->o->handshake_ms);
	return r;
}

static int
try_file(struct auth *a, const char *path, const char *cert, const char *passphrase,
	bool *out_unreadable)
{
	int rc, r;

	DRIVE(a, rc,
		libssh2_userauth_publickey_fromfile_ex(a->c->session, a->c->user,
			(unsigned)strlen(a->c->user), cert, path, passphrase),
		"log-in with a key file", r);
	if (r < 0)
		return r;
	*out_unreadable = rc == LIBSSH2_ERROR_FILE;
	return verdict(a, rc);
}

static int
try_encrypted(struct auth *a, const char *path, const char *cert, const struct sb_ssh_key *key)
{
	sb_autofree char *text = sb_str_printf("Passphrase for key %s: ", path);
	char answer[ANSWER_SIZE];
	bool bad;
	int r;

	if (!a->o->ask) {
		note(a, "", path,
			" skipped (it has a passphrase and there is nobody to ask; ssh-add it)");
		return 0;
	}
	if (key->blob && !cert) {
		r = server_takes(a, key);
		if (r <= 0)
			return r;
	}
	for (int i = 0; i < TRIES; i++) {
		if (!text || ask(a, SB_SSH_ASK_PASSPHRASE, text, false, answer) < 0) {
			note(a, "", path, " skipped (no passphrase)");
			return 0;
		}
		r = try_file(a, path, cert, answer, &bad);
		explicit_bzero(answer, sizeof answer);
		if (r != 0 || !bad)
			return r;
	}
	note(a, "", path, " skipped (wrong passphrase)");
	return 0;
}

static bool
agent_has(const struct auth *a, const struct sb_ssh_key *key)
{
	for (size_t i = 0; key->blob && i < a->agent.n; i++)
		if (a->agent.keys[i].blob_len == key->blob_len &&
			memcmp(a->agent.keys[i].blob, key->blob, key->blob_len) == 0)
			return true;
	return false;
}

/* A certificate beside the key: libssh2 can use those of ECDSA keys. */
static char *
usable_cert(struct auth *a, const char *path, const struct sb_ssh_key *key)
{
	char *cert = sb_str_printf("%s-cert.pub", path);

	if (cert && access(cert, R_OK) == 0) {
		if (sb_str_starts(key->type, "ecdsa-"))
			return cert;
		a->needs_program = true;
	}
	free(cert);
	return NULL;
}

static int
try_identity(struct auth *a, const char *path)
{
	sb_auto(sb_ssh_key) struct sb_ssh_key key = { 0 };
	sb_autofree char *cert = NULL;
	struct sb_error why = { 0 };
	bool bad;
	int r;

	r = sb_ssh_key_inspect(path, &key, &why);
	if (r == SB_E_NOTFOUND)
		return 0;
	if (r < 0) {
		note(a, "", why.msg, "");
		return 0;
	}
	if (agent_has(a, &key))
		return 0;
	if (sb_ssh_key_needs_program(key.type)) {
		a->needs_program = true;
		note(a, "", path, " skipped (this libssh2 cannot use its type)");
		return 0;
	}
	cert = usable_cert(a, path, &key);
	if (key.encrypted)
		return try_encrypted(a, path, cert, &key);
	note(a, "", path, "");
	r = try_file(a, path, cert, NULL, &bad);
	if (r == 0 && cert)
		r = try_file(a, path, NULL, NULL, &bad);
	return r;
}

/*
 * Whether a key of the agent may be used: with identities_only, only when a listed file has its
 * public half.
 */
static bool
agent_key_allowed(const struct auth *a, const struct sb_ssh_agent_key *key)
{
	if (!a->o->identities_only)
		return true;
	for (size_t i = 0; i < a->o->n_identities; i++) {
		sb_auto(sb_ssh_key) struct sb_ssh_key k = { 0 };

		if (sb_ssh_key_inspect(a->o->identities[i], &k, NULL) < 0)
			sb_ssh_key_read_public(a->o->identities[i], &k);
		if (k.blob && k.blob_len == key->blob_len &&
			memcmp(k.blob, key->blob, k.blob_len) == 0)
			return true;
	}
	return false;
}

static int
try_agent(struct auth *a)
{
	struct sb_error why = { 0 };
	char type[64];
	int r;

	if (!a->o->agent || !*a->o->agent)
		return 0;
	r = sb_ssh_agent_open(&a->agent, a->o->agent, a->c->cancel, a->d, &why);
	if (r == SB_E_CANCELED) {
		*a->err = why;
		return r;
	}
	if (r < 0) {
		sb_log(&a->c->log, SB_LOG_DEBUG, "ssh", "%s", why.msg);
		return 0;
	}
	for (size_t i = 0; i < a->agent.n; i++) {
		const struct sb_ssh_agent_key *key = &a->agent.keys[i];

		(void)sb_ssh_key_type(key->blob, key->blob_len, type, sizeof type);
		if (!agent_key_allowed(a, key))
			continue;
		if (sb_ssh_key_needs_program(type)) {
			a->needs_program = true;
			note(a, "agent key ", key->comment,
				" skipped (this libssh2 cannot use its type)");
			continue;
		}
		r = try_agent_key(a, key);
		if (r != 0)
			return r;
	}
	return 0;
}

static int
try_password_once(struct auth *a, const char *password)
{
	int rc, r;

	DRIVE(a, rc,
		libssh2_userauth_password_ex(a->c->session, a->c->user,
			(unsigned)strlen(a->c->user), password, (unsigned)strlen(password), NULL),
		"log-in with a password", r);
	if (r >= 0 && rc == LIBSSH2_ERROR_PASSWORD_EXPIRED)
		return sb_fail(a->err, SB_E_AUTH, "the password has expired; change it with ssh");
	return r < 0 ? r : verdict(a, rc);
}

static int
try_password(struct auth *a)
{
	sb_autofree char *text = sb_str_printf("Password for %s: ", a->c->name);
	char answer[ANSWER_SIZE];
	int r = 0;

	for (int i = 0; i < TRIES && r == 0; i++) {
		if (!text || ask(a, SB_SSH_ASK_PASSWORD, text, false, answer) < 0)
			return 0;
		r = try_password_once(a, answer);
		explicit_bzero(answer, sizeof answer);
		note(a, "a password", "", "");
	}
	return r;
}

static LIBSSH2_USERAUTH_KBDINT_RESPONSE_FUNC(answer_kbdint)
{
	struct sb_ssh *c = *abstract;
	struct auth *a = c->auth;
	char text[400], answer[ANSWER_SIZE];

	for (int i = 0; i < num_prompts; i++) {
		char *copy;
		size_t len;

		c->auth_asked = true;
		(void)sb_escape(prompts[i].text, prompts[i].length, text, sizeof text);
		if (ask(a, SB_SSH_ASK_ANSWER, text, prompts[i].echo != 0, answer) < 0) {
			c->auth_gave_up = true;
			answer[0] = '\0';
		}
		len = strlen(answer);
		copy = sb_ssh_conn_alloc(c, len + 1);
		if (copy) {
			memcpy(copy, answer, len + 1);
			responses[i].text = copy;
			responses[i].length = (unsigned)len;
		}
		explicit_bzero(answer, sizeof answer);
	}
}

static int
try_kbdint(struct auth *a)
{
	int rc, r;

	for (int i = 0; i < TRIES && !a->c->auth_gave_up; i++) {
		/* A server that refuses without a question will do so again. */
		if (i > 0 && !a->c->auth_asked)
			break;
		a->c->auth = a;
		DRIVE(a, rc,
			libssh2_userauth_keyboard_interactive_ex(a->c->session, a->c->user,
				(unsigned)strlen(a->c->user), answer_kbdint),
			"log-in by questions", r);
		a->c->auth = NULL;
		note(a, "keyboard-interactive", "", "");
		if (r < 0)
			return r;
		r = verdict(a, rc);
		if (r != 0)
			return r;
	}
	return 0;
}

/*
 * Asks with the method "none" what the server takes. 1 when that alone let us in. `out` is escaped.
 */
static int
server_methods(struct auth *a, char *out, size_t size)
{
	const char *list;
	int rc, r;

	do {
		list = libssh2_userauth_list(a->c->session, a->c->user,
			(unsigned)strlen(a->c->user));
		rc = list ? 0 : libssh2_session_last_errno(a->c->session);
		r = sb_ssh_conn_turn(a->c, rc, a->d, "log-in", a->err);
	} while (r > 0);
	if (r < 0)
		return r;
	(void)sb_escape(list ? list : "", list ? strlen(list) : 0, out, size);
	if (list)
		return 0;
	return libssh2_userauth_authenticated(a->c->session) ? 1 : verdict(a, rc);
}

static int
fail_auth(struct auth *a, const char *methods)
{
	const char *advice = "check the user name, add your public key to ~/.ssh/authorized_keys "
			     "there, or name a key with -i";

	if (a->needs_program)
		advice = "your ssh program can use the keys left out here: --rsh ssh";
	else if (a->o->use_none)
		advice = "is the token right and not expired?";
	else if (strstr(methods, "password") && !a->o->use_password)
		advice = "add your public key to ~/.ssh/authorized_keys there (ssh-copy-id), or "
			 "name a key with -i";
	return sb_fail(a->err, SB_E_AUTH, "log-in refused (tried %s; the server takes %s); %s",
		a->tried.len ? (const char *)a->tried.data : "no key, there was none",
		*methods ? methods : "nothing it names", advice);
}

static int
log_in(struct auth *a)
{
	char methods[200] = "";
	int r;

	if (a->o->use_none) {
		r = server_methods(a, methods, sizeof methods);
		if (r == 0)
			note(a, "none and an empty password", "", "");
		if (r == 0 && strstr(methods, "password"))
			r = try_password_once(a, "");
		return r != 0 ? r : fail_auth(a, methods);
	}
	r = try_agent(a);
	for (size_t i = 0; i < a->o->n_identities && r == 0; i++)
		r = try_identity(a, a->o->identities[i]);
	if (r != 0)
		return r;
	r = server_methods(a, methods, sizeof methods);
	if (r == 0 && a->o->use_password && a->o->ask && strstr(methods, "keyboard-interactive"))
		r = try_kbdint(a);
	if (r == 0 && a->o->use_password && a->o->ask && strstr(methods, "password") &&
		!a->c->auth_gave_up)
		r = try_password(a);
	return r != 0 ? r : fail_auth(a, methods);
}

int
sb_ssh_auth(struct sb_ssh *c, const struct sb_ssh_opts *o, struct sb_error *err)
{
	struct auth a = { .c = c,
		.o = o,
		.d = sb_deadline_in(o->handshake_ms),
		.agent.fd = -1,
		.err = err };
	int r;

	/* The list of what was tried is for a message; it must not crowd out the rest of it. */
	sb_buf_init(&a.tried, 220);
	r = log_in(&a);
	sb_ssh_agent_close(&a.agent);
	sb_buf_free(&a.tried);
	return r < 0 ? r : 0;
}
