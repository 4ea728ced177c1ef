/* SPDX-License-Identifier: MIT */
/*
 * sb-ssh: one SSH connection for the gateway of sbhostd (lib/compat/ssh/). Started by it as
 * "serve", with the socket to it as standard input and the client's as standard output; "keygen"
 * prints a new host key.
 */
#include "config.h"

#include "door.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAILED 125
#define KEX_S 30

static int
keygen(void)
{
	ssh_key key = NULL;
	char *text = NULL;
	int r = ssh_pki_generate(SSH_KEYTYPE_ED25519, 0, &key);

	if (r == SSH_OK)
		r = ssh_pki_export_privkey_base64(key, NULL, NULL, NULL, &text);
	if (r == SSH_OK && text)
		(void)fputs(text, stdout);
	ssh_string_free_char(text);
	ssh_key_free(key);
	return r == SSH_OK && fflush(stdout) == 0 ? 0 : FAILED;
}

/* What the gateway says first. NULL: nothing that makes sense. */
static ssh_bind
configure(struct door *d)
{
	bool no = false;
	struct sb_sshwire_frame f;
	ssh_key key = NULL;
	ssh_bind b = NULL;
	char *pem;

	if (sb_sshwire_receive(d->link, &d->room, &f, NULL, NULL, NULL) < 0 ||
		f.what != SB_SSHWIRE_CONFIG)
		return NULL;
	d->max_channels = f.kind < DOOR_CHANNELS_MAX ? f.kind : DOOR_CHANNELS_MAX;
	d->idle_s = f.x;
	pem = sb_sshwire_text(f.a, f.a_len);
	if (pem && ssh_pki_import_privkey_base64(pem, NULL, NULL, NULL, &key) == SSH_OK)
		b = ssh_bind_new();
	if (pem)
		explicit_bzero(pem, strlen(pem));
	free(pem);
	explicit_bzero(d->room.data, d->room.len);
	if (!b) {
		(void)fprintf(stderr, "sb-ssh: the SSH host key cannot be read\n");
		ssh_key_free(key);
		return NULL;
	}
	/* No file of the machine has a say. */
	(void)ssh_bind_options_set(b, SSH_BIND_OPTIONS_PROCESS_CONFIG, &no);
	if (ssh_bind_options_set(b, SSH_BIND_OPTIONS_IMPORT_KEY, key) == SSH_OK)
		return b;
	ssh_bind_free(b);
	return NULL;
}

static void
set_socket(int fd)
{
	int on = 1;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
	(void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
}

static int
serve(void)
{
	static struct door d;
	struct sb_error err = { 0 };
	long wait = KEX_S;
	ssh_bind b;
	int type;

	if (getsockopt(0, SOL_SOCKET, SO_TYPE, &type, &(socklen_t){ sizeof type }) < 0 ||
		type != SOCK_SEQPACKET)
		return FAILED;
	/* Elsewhere than where somebody might write a message to. */
	d.link = fcntl(0, F_DUPFD_CLOEXEC, 3);
	d.sock = fcntl(1, F_DUPFD_CLOEXEC, 3);
	(void)close(0);
	(void)close(1);
	if (d.link < 0 || d.sock < 0 || open("/dev/null", O_RDONLY) != 0 ||
		open("/dev/null", O_WRONLY) != 1)
		return FAILED;
	sb_buf_init(&d.room, SB_SSHWIRE_MAX + 1);
	(void)signal(SIGPIPE, SIG_IGN);
	set_socket(d.sock);
	b = configure(&d);
	d.ssh = b ? ssh_new() : NULL;
	d.event = d.ssh ? ssh_event_new() : NULL;
	if (!d.event)
		return FAILED;
	if (door_confine(&err) < 0) {
		(void)fprintf(stderr, "sb-ssh: %s\n", err.msg);
		return FAILED;
	}
	(void)ssh_options_set(d.ssh, SSH_OPTIONS_TIMEOUT, &wait);
	if (ssh_bind_accept_fd(b, d.ssh, d.sock) != SSH_OK)
		return 0;
	door_login_callbacks(&d);
	if (ssh_handle_key_exchange(d.ssh) != SSH_OK)
		return 0;
	ssh_set_blocking(d.ssh, 0);
	(void)ssh_event_add_session(d.event, d.ssh);
	door_pump(&d);
	ssh_disconnect(d.ssh);
	return 0;
}

int
main(int argc, char **argv)
{
	if (ssh_init() != SSH_OK)
		return FAILED;
	if (argc == 2 && strcmp(argv[1], "keygen") == 0)
		return keygen();
	if (argc == 2 && strcmp(argv[1], "serve") == 0)
		return serve();
	(void)fprintf(stderr, "sb-ssh: started by the sandbox host, not by hand\n");
	return FAILED;
}
