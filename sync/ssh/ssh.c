/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/ssh/ssh.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include <base/cleanup.h>
#include <base/cond.h>
#include <base/str.h>
#include <sync/ssh/ssh-priv.h>
#include <sync/ssh/ssh-hash.h>
#include <sync/ssh/ssh-net.h>

/*
 * What we offer, best first; what libssh2 does not know is dropped. Left out: CBC modes, RC4, MD5,
 * SHA-1 key exchange, DSA. The counter mode is first because the AES-GCM of libssh2 has had memory
 * errors a server could reach, and because with it and a plain MAC the prefix truncation attack
 * (Terrapin) has no hold.
 */
static const struct {
	int type;
	const char *list;
} methods[] = {
	{ LIBSSH2_METHOD_KEX,
		"curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-"
		"nistp384,"
		"ecdh-sha2-nistp521,diffie-hellman-group16-sha512,diffie-hellman-group18-sha512,"
		"diffie-hellman-group-exchange-sha256,diffie-hellman-group14-sha256" },
	{ LIBSSH2_METHOD_CRYPT_CS,
		"aes128-ctr,aes256-ctr,aes192-ctr,aes256-gcm@openssh.com,aes128-gcm@openssh.com,"
		"chacha20-poly1305@openssh.com" },
	{ LIBSSH2_METHOD_CRYPT_SC,
		"aes128-ctr,aes256-ctr,aes192-ctr,aes256-gcm@openssh.com,aes128-gcm@openssh.com,"
		"chacha20-poly1305@openssh.com" },
	{ LIBSSH2_METHOD_MAC_CS,
		"hmac-sha2-256,hmac-sha2-512,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@"
		"openssh.com,"
		"hmac-sha1" },
	{ LIBSSH2_METHOD_MAC_SC,
		"hmac-sha2-256,hmac-sha2-512,hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@"
		"openssh.com,"
		"hmac-sha1" },
};

/* Host key algorithms in our order of preference, and the key type each one belongs to. */
static const struct {
	const char *alg;
	const char *type;
} host_algs[] = {
	{ "ssh-ed25519", "ssh-ed25519" },
	{ "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp256" },
	{ "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp384" },
	{ "ecdsa-sha2-nistp521", "ecdsa-sha2-nistp521" },
	{ "rsa-sha2-512", "ssh-rsa" },
	{ "rsa-sha2-256", "ssh-rsa" },
	{ "ssh-rsa", "ssh-rsa" },
};
#define N_HOST_ALGS (sizeof host_algs / sizeof host_algs[0])

/* More than libssh2 needs for any honest server: windows of channels, packets, keys. */
#define MEMORY_MAX ((size_t)96 << 20)
/* Lines before the server's version, which RFC 4253 allows: more than this is a flood. */
#define BANNER_MAX_BYTES (64u << 10)

static pthread_once_t init_once = PTHREAD_ONCE_INIT;
static int init_result;

static void
init_library(void)
{
	init_result = libssh2_init(0);
}

/*
 * Each block carries its size, so that what a server makes libssh2 hold can be counted and capped,
 * and its neighbours, so that what libssh2 forgets (some in every key exchange) goes with the
 * connection.
 */
union sb_ssh_block {
	struct {
		size_t size;
		union sb_ssh_block *next, **at;
	};
	max_align_t align;
};

static void
block_link(struct sb_ssh *c, union sb_ssh_block *b)
{
	b->next = c->blocks;
	b->at = &c->blocks;
	if (b->next)
		b->next->at = &b->next;
	c->blocks = b;
	c->memory += b->size;
}

static void
block_unlink(struct sb_ssh *c, union sb_ssh_block *b)
{
	*b->at = b->next;
	if (b->next)
		b->next->at = b->at;
	c->memory -= b->size;
}

static LIBSSH2_ALLOC_FUNC(count_alloc)
{
	struct sb_ssh *c = *abstract;
	union sb_ssh_block *b;

	if (count > MEMORY_MAX - c->memory) {
		c->memory_hit = true;
		return NULL;
	}
	b = malloc(sizeof *b + count);
	if (!b)
		return NULL;
	b->size = count;
	block_link(c, b);
	return b + 1;
}

static LIBSSH2_FREE_FUNC(count_free)
{
	union sb_ssh_block *b = ptr;

	if (!b)
		return;
	block_unlink(*abstract, --b);
	free(b);
}

static LIBSSH2_REALLOC_FUNC(count_realloc)
{
	struct sb_ssh *c = *abstract;
	union sb_ssh_block *b = ptr, *moved;

	if (!b)
		return count_alloc(count, abstract);
	b--;
	if (count > MEMORY_MAX - (c->memory - b->size)) {
		c->memory_hit = true;
		return NULL;
	}
	block_unlink(c, b);
	moved = realloc(b, sizeof *b + count);
	if (moved)
		moved->size = count;
	block_link(c, moved ? moved : b);
	return moved ? moved + 1 : NULL;
}

void *
sb_ssh_conn_alloc(struct sb_ssh *c, size_t len)
{
	void *abstract = c;

	return count_alloc(len, &abstract);
}

static LIBSSH2_SEND_FUNC(wire_send)
{
	struct sb_ssh *c = *abstract;

	return sb_ssh_socket_send(&c->wire, buffer, length);
}

static LIBSSH2_RECV_FUNC(wire_recv)
{
	struct sb_ssh *c = *abstract;

	return sb_ssh_socket_recv(&c->wire, buffer, length);
}

const char *
sb_ssh_conn_last(struct sb_ssh *c, char *buf, size_t size)
{
	char *msg = NULL;
	int len = 0;

	(void)libssh2_session_last_error(c->session, &msg, &len, 0);
	if (!msg || len <= 0)
		return sb_escape("no reason given", 15, buf, size);
	return sb_escape(msg, (size_t)len, buf, size);
}

static LIBSSH2_DISCONNECT_FUNC(note_farewell)
{
	struct sb_ssh *c = *abstract;

	(void)sb_escape(message, message_len > 0 ? (size_t)message_len : 0, c->farewell,
		sizeof c->farewell);
	if (!c->farewell[0])
		(void)snprintf(c->farewell, sizeof c->farewell, "reason %d", reason);
}

bool
sb_ssh_conn_dead(const struct sb_ssh *c)
{
	return c->farewell[0] || sb_ssh_socket_dead(&c->wire);
}

const char *
sb_ssh_conn_why(struct sb_ssh *c, char *buf, size_t size)
{
	if (!c->farewell[0])
		return sb_ssh_socket_why(&c->wire, buf, size);
	(void)snprintf(buf, size, "the server ended the connection: %s", c->farewell);
	return buf;
}

int
sb_ssh_conn_turn(struct sb_ssh *c, int rc, sb_deadline d, const char *what, struct sb_error *err)
{
	struct pollfd p[2] = { { .fd = c->wire.fd },
		{ .fd = sb_cancel_fd(c->cancel), .events = POLLIN } };
	char why[220];
	int delay = sb_deadline_poll_ms(d);
	int r;

	sb_ssh_socket_flush(&c->wire);
	if (rc != LIBSSH2_ERROR_EAGAIN)
		return 0;
	if (sb_ssh_socket_dead(&c->wire))
		return sb_fail(err, SB_E_CLOSED, "%s: %s", what,
			sb_ssh_conn_why(c, why, sizeof why));
	r = sb_check_alive(c->cancel, d, what, err);
	if (r < 0)
		return r;
	p[0].events = sb_ssh_socket_events(&c->wire, &delay);
	if (poll(p, 2, delay) < 0 && errno != EINTR)
		return sb_fail_errno(err, "poll");
	sb_ssh_socket_flush(&c->wire);
	if (p[0].revents & (POLLIN | POLLHUP | POLLERR))
		sb_ssh_socket_fill(&c->wire);
	return 1;
}

/*
 * Puts algorithms whose key type is in known_hosts first, so that the server shows the key we can
 * check.
 */
static void
host_alg_list(const struct sb_ssh_known *known, char *out, size_t size)
{
	size_t n = 0;

	for (int pass = 0; pass < 2; pass++)
		for (size_t i = 0; i < N_HOST_ALGS; i++)
			if (sb_ssh_known_has(known, host_algs[i].type) == (pass == 0))
				n += (size_t)snprintf(out + n, n < size ? size - n : 0, "%s%s",
					n ? "," : "", host_algs[i].alg);
}

static bool
is_supported(const char **algs, int n, const char *name, size_t len)
{
	for (int i = 0; i < n; i++)
		if (strlen(algs[i]) == len && memcmp(algs[i], name, len) == 0)
			return true;
	return false;
}

/* Only known names are passed on: libssh2 1.10 drops unknown ones by copying memory over itself. */
static int
set_method(struct sb_ssh *c, int type, const char *list, struct sb_error *err)
{
	const char **algs = NULL;
	char known[600] = "";
	size_t used = 0;
	int n = libssh2_session_supported_algs(c->session, type, &algs);

	for (const char *p = list; n > 0 && *p;) {
		size_t len = strcspn(p, ",");

		if (is_supported(algs, n, p, len) && used + len + 2 < sizeof known)
			used += (size_t)snprintf(known + used, sizeof known - used, "%s%.*s",
				used ? "," : "", (int)len, p);
		p += len + (p[len] == ',');
	}
	if (n > 0)
		libssh2_free(c->session, algs);
	if (!used || libssh2_session_method_pref(c->session, type, known) < 0)
		return sb_fail(err, SB_E_UNSUPPORTED, "%s has none of: %.300s", sb_ssh_library(),
			list);
	return 0;
}

static int
set_methods(struct sb_ssh *c, const struct sb_ssh_known *known, struct sb_error *err)
{
	char algs[400];
	int r = 0;

	for (size_t i = 0; i < sizeof methods / sizeof methods[0] && r >= 0; i++)
		r = set_method(c, methods[i].type, methods[i].list, err);
	host_alg_list(known, algs, sizeof algs);
	return r < 0 ? r : set_method(c, LIBSSH2_METHOD_HOSTKEY, algs, err);
}

/* Has the server's version line come? Lines before it show up here too. */
static bool
has_version(struct sb_ssh *c)
{
	const char *banner = libssh2_session_banner_get(c->session);

	return banner && strncmp(banner, "SSH-", 4) == 0;
}

static int
handshake(struct sb_ssh *c, int ms, struct sb_error *err)
{
	sb_deadline d = sb_deadline_in(ms);
	char why[220];
	int rc, r;

	do {
		rc = libssh2_session_handshake(c->session, c->wire.fd);
		if (rc == LIBSSH2_ERROR_EAGAIN && !has_version(c) &&
			c->wire.bytes_down > BANNER_MAX_BYTES)
			return sb_fail(err, SB_E_PROTO,
				"the server sent %u bytes and no SSH version; is this an SSH port?",
				BANNER_MAX_BYTES);
		r = sb_ssh_conn_turn(c, rc, d, "key exchange", err);
	} while (r > 0);
	if (r < 0)
		return r;
	if (rc == 0)
		return 0;
	if (c->memory_hit)
		return sb_fail(err, SB_E_LIMIT, "the server made libssh2 use too much memory");
	if (!has_version(c) && c->wire.bytes_down > 0) {
		const char *said = libssh2_session_banner_get(c->session);

		(void)sb_escape(said ? said : "", said ? strlen(said) : 0, why, sizeof why);
		return sb_fail(err, SB_E_PROTO,
			"this is not an SSH server (it says \"%.100s\"); is the port right (-p)?",
			why);
	}
	if (rc == LIBSSH2_ERROR_KEX_FAILURE || rc == LIBSSH2_ERROR_METHOD_NONE)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"no algorithm in common with the server (%s; %s); --rsh ssh uses your ssh "
			"program instead",
			sb_ssh_conn_last(c, why, sizeof why), sb_ssh_library());
	if (sb_ssh_conn_dead(c))
		return sb_fail(err, SB_E_CLOSED, "key exchange: %s; see the server's log",
			sb_ssh_conn_why(c, why, sizeof why));
	return sb_fail(err, SB_E_PROTO, "key exchange failed: %s",
		sb_ssh_conn_last(c, why, sizeof why));
}

/* "ssh-ed25519" from a key blob, for messages. */
static const char *
blob_type(const uint8_t *blob, size_t len, char *buf, size_t size)
{
	size_t n = len >= 4 ? (size_t)blob[2] << 8 | blob[3] : 0;

	if (len < 4 || n > len - 4)
		n = 0;
	return sb_escape((const char *)blob + 4, n, buf, size);
}

static int
refuse_changed(struct sb_ssh *c, const uint8_t *blob, size_t len,
	const struct sb_ssh_known_key *old, struct sb_error *err)
{
	char now[SB_SSH_FINGERPRINT_SIZE], was[SB_SSH_FINGERPRINT_SIZE], name[300], type[64];

	return sb_fail(err, SB_E_HOSTKEY,
		"HOST KEY CHANGED: the server shows %s %s, %s line %zu has %s %s; somebody may be "
		"listening in, "
		"or the machine was made anew: if you know it was, run ssh-keygen -R '%s' and "
		"connect again",
		blob_type(blob, len, type, sizeof type), sb_ssh_hash_fingerprint(blob, len, now),
		old->file, old->line, old->type,
		sb_ssh_hash_fingerprint(old->blob, old->blob_len, was),
		sb_ssh_known_name(c->known_name, c->port, name, sizeof name));
}

/* Asks as ssh does. Without a terminal the answer is no. */
static bool
user_takes(struct sb_ssh *c, const struct sb_ssh_opts *o, const char *type, const char *print)
{
	const char *again = "";
	char answer[128];

	for (int i = 0; o->ask && o->n_known_hosts && i < 3; i++) {
		sb_autofree char *text = sb_str_printf(
			"%s%s: the host key %s %s is not known.\nIs it the server's? (yes, no, or "
			"its fingerprint) ",
			again, c->name, type, print);

		if (!text ||
			o->ask(SB_SSH_ASK_HOSTKEY, text, true, answer, sizeof answer, o->ask_arg) <
				0)
			return false;
		if (strcmp(answer, "yes") == 0 || strcmp(answer, print) == 0)
			return true;
		if (strcmp(answer, "no") == 0)
			return false;
		again = "Please answer yes or no. ";
	}
	return false;
}

static int
take_new_key(struct sb_ssh *c, const struct sb_ssh_opts *o, const uint8_t *blob, size_t len,
	struct sb_error *err)
{
	char print[SB_SSH_FINGERPRINT_SIZE], type[64];
	struct sb_error why = { 0 };

	(void)sb_ssh_hash_fingerprint(blob, len, print);
	(void)blob_type(blob, len, type, sizeof type);
	if (o->new_key == SB_SSH_NEW_REFUSE ||
		(o->new_key == SB_SSH_NEW_ASK && !user_takes(c, o, type, print)))
		return sb_fail(err, SB_E_HOSTKEY,
			"the host key %s %s is not in %s; compare it with the server's (ssh-keygen "
			"-lf on its "
			"/etc/ssh/*.pub), then connect once with ssh, or use --accept-new-host-key",
			type, print, o->n_known_hosts ? o->known_hosts[0] : "any known_hosts file");
	if (o->new_key == SB_SSH_NEW_PASS || o->n_known_hosts == 0) {
		sb_log(&c->log, SB_LOG_WARN, "ssh",
			"%s: trusting the host key %s %s without a record", c->name, type, print);
		return 0;
	}
	if (sb_ssh_known_add(o->known_hosts[0], c->known_name, c->port, o->hash_known_hosts, blob,
		    len, &why) < 0)
		return sb_fail(err, SB_E_HOSTKEY, "the new host key %s cannot be recorded: %s",
			print, why.msg);
	sb_log(&c->log, SB_LOG_INFO, "ssh", "%s: new host key %s %s added to %s", c->name, type,
		print, o->known_hosts[0]);
	return 0;
}

static int
check_host_key(struct sb_ssh *c, const struct sb_ssh_opts *o, const struct sb_ssh_known *known,
	struct sb_error *err)
{
	const struct sb_ssh_known_key *old;
	char print[SB_SSH_FINGERPRINT_SIZE];
	size_t len = 0;
	int type;
	const uint8_t *blob = (const uint8_t *)libssh2_session_hostkey(c->session, &len, &type);

	if (!blob || len < 4)
		return sb_fail(err, SB_E_HOSTKEY, "the server showed no host key");
	switch (sb_ssh_known_check(known, blob, len, &old)) {
	case SB_SSH_KNOWN_MATCH:
		sb_log(&c->log, SB_LOG_DEBUG, "ssh", "%s: host key %s matches %s line %zu", c->name,
			sb_ssh_hash_fingerprint(blob, len, print), old->file, old->line);
		return 0;
	case SB_SSH_KNOWN_REVOKED:
		return sb_fail(err, SB_E_HOSTKEY,
			"the host key %s is marked @revoked in %s line %zu",
			sb_ssh_hash_fingerprint(blob, len, print), old->file, old->line);
	case SB_SSH_KNOWN_CHANGED: return refuse_changed(c, blob, len, old, err);
	case SB_SSH_KNOWN_NEW: break;
	}
	return take_new_key(c, o, blob, len, err);
}

static void
conn_destroy(struct sb_ssh *c)
{
	sb_ssh_pump_stop(c);
	if (c->session) {
		(void)libssh2_session_disconnect(c->session, "done");
		sb_ssh_socket_flush(&c->wire);
		/*
		 * From here every read and write fails, so that freeing never waits for the server.
		 */
		c->wire.sys = EPIPE;
		c->wire.eof = true;
		c->wire.in_len = 0;
		(void)libssh2_session_free(c->session);
	}
	while (c->blocks) {
		union sb_ssh_block *b = c->blocks;

		block_unlink(c, b);
		free(b);
	}
	sb_ssh_socket_destroy(&c->wire);
	if (c->wake_fd >= 0)
		(void)close(c->wake_fd);
	(void)pthread_cond_destroy(&c->cond);
	(void)pthread_mutex_destroy(&c->mu);
	free(c->host);
	free(c->user);
	free(c->known_name);
	free(c);
}

static struct sb_ssh *
conn_new(const struct sb_ssh_opts *o, struct sb_error *err)
{
	struct sb_ssh *c = calloc(1, sizeof *c);

	if (!c) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	c->wire.fd = -1;
	c->wake_fd = -1;
	(void)pthread_mutex_init(&c->mu, NULL);
	sb_cond_init(&c->cond);
	c->host = strdup(o->host);
	c->user = strdup(o->user);
	c->known_name = strdup(o->known_name ? o->known_name : o->host);
	c->port = o->port;
	c->log = o->log;
	c->cancel = o->cancel;
	c->stall_ms = o->stall_ms;
	c->alive_ms = o->alive_ms;
	if (!c->host || !c->user || !c->known_name) {
		conn_destroy(c);
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	/* A user name may be a token: a secret, of which messages show only the beginning. */
	(void)snprintf(c->name, sizeof c->name, "%.32s%s@%.255s port %d", c->user,
		strlen(c->user) > 32 ? "..." : "", c->host, c->port);
	return c;
}

static int
session_start(struct sb_ssh *c, const struct sb_ssh_opts *o, sb_deadline d, struct sb_error *err)
{
	sb_auto(sb_ssh_known) struct sb_ssh_known known = { 0 };
	int fd, r;

	r = sb_ssh_known_load(&known, o->known_hosts, o->n_known_hosts, c->known_name, c->port,
		err);
	if (r < 0)
		return r;
	fd = sb_ssh_net_connect(c->host, c->port, o->family, c->cancel,
		sb_deadline_min(d, sb_deadline_in(o->connect_ms)), err);
	if (fd < 0)
		return fd;
	r = sb_ssh_socket_init(&c->wire, fd, o->bwlimit, err);
	if (r < 0)
		return r;
	c->session = libssh2_session_init_ex(count_alloc, count_free, count_realloc, c);
	if (!c->session)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	libssh2_session_set_blocking(c->session, 0);
	(void)libssh2_session_callback_set(c->session, LIBSSH2_CALLBACK_SEND, (void *)wire_send);
	(void)libssh2_session_callback_set(c->session, LIBSSH2_CALLBACK_RECV, (void *)wire_recv);
	(void)libssh2_session_callback_set(c->session, LIBSSH2_CALLBACK_DISCONNECT,
		(void *)note_farewell);
	r = set_methods(c, &known, err);
	if (r < 0)
		return r;
	r = handshake(c, o->handshake_ms, err);
	if (r < 0)
		return r;
	return check_host_key(c, o, &known, err);
}

struct sb_ssh *
sb_ssh_connect(const struct sb_ssh_opts *opts, sb_deadline d, struct sb_error *err)
{
	struct sb_ssh_opts o = SB_SSH_OPTS_INIT;
	struct sb_error why = { 0 };
	struct sb_ssh *c;
	int r;

	memcpy(&o, opts, opts->size < sizeof o ? opts->size : sizeof o);
	(void)pthread_once(&init_once, init_library);
	if (init_result != 0) {
		sb_fail(err, SB_E_UNSUPPORTED, "libssh2 does not start (%d)", init_result);
		return NULL;
	}
	c = conn_new(&o, err);
	if (!c)
		return NULL;
	r = session_start(c, &o, d, &why);
	if (r >= 0)
		r = sb_ssh_auth(c, &o, &why);
	if (o.cancel_connect_only)
		c->cancel = NULL;
	if (r >= 0)
		r = sb_ssh_pump_start(c, &why);
	if (r < 0) {
		if (err)
			*err = why;
		sb_wrap(err, r, "%s", c->name);
		conn_destroy(c);
		return NULL;
	}
	sb_log(&c->log, SB_LOG_INFO, "ssh", "%s: connected (%s, %s)", c->name, sb_ssh_library(),
		libssh2_session_methods(c->session, LIBSSH2_METHOD_CRYPT_CS));
	return c;
}

void
sb_ssh_free(struct sb_ssh *c)
{
	if (c)
		conn_destroy(c);
}

void
sb_ssh_wire_bytes(const struct sb_ssh *c, uint64_t *up, uint64_t *down)
{
	*up = atomic_load_explicit(&c->wire.bytes_up, memory_order_relaxed);
	*down = atomic_load_explicit(&c->wire.bytes_down, memory_order_relaxed);
}

const char *
sb_ssh_name(const struct sb_ssh *c)
{
	return c->name;
}

bool
sb_ssh_can_rsa(void)
{
	return libssh2_version(0x010b00) != NULL;
}

const char *
sb_ssh_library(void)
{
	static char text[32];
	static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;

	(void)pthread_mutex_lock(&mu);
	if (!text[0])
		(void)snprintf(text, sizeof text, "libssh2 %s", libssh2_version(0));
	(void)pthread_mutex_unlock(&mu);
	return text;
}
