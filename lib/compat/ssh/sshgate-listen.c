/* SPDX-License-Identifier: MIT */
/* What the SSH gateway needs before anybody comes: an address, and the host's key. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/child.h>
#include <base/file.h>
#include <base/spawn.h>
#include <base/str.h>
#include <compat/ssh/sshgate-priv.h>
#include <compat/ssh/sshkeys.h>
#include <host/host.h>
#include <host/runtime/runtime.h>

#define BACKLOG 128
#define MAKE_MS 20000
#define KEY_NAME "ssh_host_ed25519_key"

/* "HOST:PORT", "[::1]:22", ":22". The parts point into `copy`. */
static int
split(char *copy, const char **host, const char **port, struct sb_error *err)
{
	char *colon = strrchr(copy, ':');
	int64_t n;

	if (!colon || !sb_str_to_i64(colon + 1, 0, 65535, &n))
		return sb_fail(err, SB_E_USAGE, "--ssh-listen %s: must be HOST:PORT", copy);
	*colon = '\0';
	*port = colon + 1;
	*host = *copy ? copy : NULL;
	if (*copy == '[' && colon[-1] == ']') {
		colon[-1] = '\0';
		*host = copy + 1;
	}
	return 0;
}

static int
listen_at(const struct addrinfo *ai)
{
	int on = 1;
	int fd = socket(ai->ai_family, ai->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		ai->ai_protocol);

	if (fd < 0)
		return -1;
	(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (ai->ai_family == AF_INET6)
		(void)setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
	if (bind(fd, ai->ai_addr, ai->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

int
sb_sshgate_listen(struct sb_sshgate *g, const char *where, struct sb_error *err)
{
	const struct addrinfo hints = { .ai_flags = AI_PASSIVE, .ai_socktype = SOCK_STREAM };
	sb_autofree char *copy = strdup(where);
	struct addrinfo *list = NULL;
	const char *host, *port;
	int r = copy ? split(copy, &host, &port, err) : sb_fail(err, SB_E_NOMEM, "out of memory");
	int sys;

	if (r < 0)
		return r;
	sys = getaddrinfo(host, port, &hints, &list);
	if (sys != 0)
		return sb_fail(err, SB_E_INVAL, "--ssh-listen %s: %s", where, gai_strerror(sys));
	errno = 0;
	for (const struct addrinfo *ai = list;
		ai && g->n_listen < sizeof g->listen / sizeof g->listen[0]; ai = ai->ai_next) {
		int fd = listen_at(ai);

		if (fd >= 0)
			g->listen[g->n_listen++] = fd;
	}
	freeaddrinfo(list);
	return g->n_listen > 0 ? 0 : sb_fail_errno(err, "listen on %s", where);
}

static int
check_mode(const char *path, struct sb_error *err)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == ENOENT ? SB_E_NOTFOUND :
					 sb_fail_errno(err, "SSH host key %s", path);
	if (st.st_mode & (S_IRWXG | S_IRWXO))
		return sb_fail(err, SB_E_DENIED,
			"SSH host key %s is open to others: chmod go-rwx it", path);
	return 0;
}

/* sb-ssh makes one: nothing here knows what a key is. */
static int
make_key(const char *door, const char *path, struct sb_error *err)
{
	const char *const argv[] = { door, "keygen", NULL };
	struct sb_spawn_opts o = SB_SPAWN_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf key;
	int r;

	sb_buf_init(&key, SB_SSHWIRE_SECRET_MAX);
	o.search_path = false;
	r = sb_child_run(argv, &o, NULL, 0, &key, NULL, NULL, sb_deadline_in(MAKE_MS), err);
	if (r > 0 || (r == 0 && key.len == 0))
		r = sb_fail(err, SB_E_SYS, "sb-ssh made no SSH host key");
	if (r == 0)
		r = sb_file_replace(AT_FDCWD, path, key.data, key.len, 0600, err);
	explicit_bzero(key.data, key.len);
	return r;
}

int
sb_sshgate_key(const struct sb_sshgate *g, const char *given, struct sb_buf *out,
	struct sb_error *err)
{
	sb_autofree char *path = given ?
		strdup(given) :
		sb_str_printf("%s/" KEY_NAME, sb_host_options(g->host)->state_dir);
	int r;

	if (!path)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	r = check_mode(path, err);
	if (r == SB_E_NOTFOUND && given)
		return sb_fail(err, SB_E_NOTFOUND, "SSH host key %s is not there", path);
	if (r == SB_E_NOTFOUND)
		r = make_key(g->door, path, err);
	if (r < 0)
		return r;
	r = sb_file_read(AT_FDCWD, path, SB_SSHWIRE_SECRET_MAX - 1, out, err);
	if (r == 0 && (out->len == 0 || memchr(out->data, '\0', out->len)))
		r = sb_fail(err, SB_E_INVAL, "SSH host key %s is no PEM text", path);
	return r;
}

void
sb_sshgate_check(const struct sb_sshgate_opts *o, const struct sb_host_opts *host,
	void (*found)(const char *what, void *arg), void *arg)
{
	sb_autofree char *door = sb_runtime_helper_of(host, "sb-ssh");
	sb_autofree char *copy = strdup(o->listen);
	struct sb_error err = { 0 };
	const char *h, *p;

	if (!door)
		found("--ssh-listen: this build has no SSH gateway: configure it where libssh is "
		      "(Debian: libssh-dev)",
			arg);
	if (!copy || split(copy, &h, &p, &err) < 0)
		found(err.msg, arg);
	err = (struct sb_error){ 0 };
	if (o->host_key && check_mode(o->host_key, &err) < 0) {
		if (!err.msg[0])
			(void)sb_fail(&err, SB_E_NOTFOUND, "SSH host key %s is not there",
				o->host_key);
		found(err.msg, arg);
	}
	err = (struct sb_error){ 0 };
	if (o->authorized_keys && sb_sshkeys_check(o->authorized_keys, &err) < 0)
		found(err.msg, arg);
}
