/* SPDX-License-Identifier: MIT */
/* Channels: what a client asks for, as frames for the gateway. */
#include "config.h"

#include "door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define INPUT_MAX (1u << 20)
/* A port of the session's own answers at once, or never. */
#define DIAL_MS 10000

struct door_channel *
door_channel_claim(struct door *d)
{
	unsigned n = 0;

	for (size_t i = 0; i < DOOR_CHANNELS_MAX; i++)
		n += d->channels[i].used;
	for (uint32_t i = 0; i < DOOR_CHANNELS_MAX && n < d->max_channels; i++) {
		struct door_channel *c = &d->channels[i];

		if (c->used)
			continue;
		*c = (struct door_channel){ .door = d,
			.id = i,
			.used = true,
			.fd = { -1, -1, -1 } };
		sb_buf_init(&c->env, SB_SSHWIRE_TEXT_MAX / 2);
		sb_buf_init(&c->in, INPUT_MAX);
		return c;
	}
	return NULL;
}

void
door_channel_close(struct door_channel *c)
{
	const struct sb_sshwire_frame f = { .what = SB_SSHWIRE_CLOSE, .id = c->id };

	if (c->ssh) {
		ssh_remove_channel_callbacks(c->ssh, &c->cb);
		(void)ssh_channel_close(c->ssh);
		ssh_channel_free(c->ssh);
		c->ssh = NULL;
	}
	for (int i = 0; i < 3; i++) {
		if (c->fd[i] >= 0)
			(void)close(c->fd[i]);
		c->fd[i] = -1;
	}
	if (c->begun && !c->ended && !c->gone)
		door_tell(c->door, &f);
	c->gone = true;
	/* Its number is free when the gateway has no program of it any more. */
	if (c->begun && !c->ended)
		return;
	sb_buf_free(&c->env);
	sb_buf_free(&c->in);
	c->used = false;
}

static int
begin(struct door_channel *c, uint32_t kind, const char *command)
{
	struct sb_sshwire_frame f = { .what = SB_SSHWIRE_START,
		.id = c->id,
		.kind = kind,
		.x = c->cols,
		.y = c->rows,
		.a = (const uint8_t *)command,
		.a_len = strlen(command),
		.b = c->env.data,
		.b_len = c->env.len };
	sb_auto(sb_buf) struct sb_buf why;
	size_t n = 0;
	int fds[SB_SSHWIRE_FDS_MAX];

	sb_buf_init(&why, 2048);
	if (c->begun || c->env.failed || f.a_len > SB_SSHWIRE_TEXT_MAX)
		return -1;
	c->begun = true;
	if (door_ask(c->door, &f, fds, &n, &why) < 0 || n != 3) {
		while (n > 0)
			(void)close(fds[--n]);
		/* It is told as the program would: on its errors, with a code. */
		c->ended = true;
		c->code = 255;
		(void)ssh_channel_write_stderr(c->ssh, "sbhostd: ", 9);
		(void)ssh_channel_write_stderr(c->ssh, why.data, (uint32_t)why.len);
		(void)ssh_channel_write_stderr(c->ssh, "\r\n", 2);
		return 0;
	}
	for (int i = 0; i < 3; i++) {
		c->fd[i] = fds[i];
		(void)fcntl(fds[i], F_SETFL, O_NONBLOCK);
	}
	c->control = c->cols > 0 || kind == SB_SSHWIRE_SFTP;
	return 0;
}

static int
on_pty(ssh_session s, ssh_channel ch, const char *term, int cols, int rows, int px, int py,
	void *arg)
{
	struct door_channel *c = arg;

	(void)s;
	(void)ch;
	(void)px;
	(void)py;
	if (c->begun || c->cols > 0)
		return -1;
	c->cols = cols > 0 && cols <= (int)SB_SSHWIRE_CELLS_MAX ? (unsigned)cols : 80;
	c->rows = rows > 0 && rows <= (int)SB_SSHWIRE_CELLS_MAX ? (unsigned)rows : 24;
	if (strlen(term) > 0 && strlen(term) < 100)
		sb_buf_addf(&c->env, "TERM=%s%c", term, '\0');
	return 0;
}

static int
on_resize(ssh_session s, ssh_channel ch, int cols, int rows, int px, int py, void *arg)
{
	const struct door_channel *c = arg;
	const int v[4] = { cols, rows, px, py };
	uint8_t record[8];

	(void)s;
	(void)ch;
	for (int i = 0; i < 4; i++) {
		int n = v[i] < 0 ? 0 : v[i] > 65535 ? 65535 : v[i];

		record[2 * i] = (uint8_t)(n >> 8);
		record[2 * i + 1] = (uint8_t)n;
	}
	/* Whole or not at all: the socket holds thousands of them. */
	if (c->cols > 0 && c->fd[2] >= 0)
		(void)!send(c->fd[2], record, sizeof record, MSG_NOSIGNAL | MSG_DONTWAIT);
	return 0;
}

static int
on_env(ssh_session s, ssh_channel ch, const char *name, const char *value, void *arg)
{
	struct door_channel *c = arg;

	(void)s;
	(void)ch;
	/* SSH_... are the gateway's to say. */
	if (c->begun || strchr(name, '=') || strncmp(name, "SSH_", 4) == 0 ||
		c->env.len + strlen(name) + strlen(value) + 2 > 16384)
		return -1;
	sb_buf_addf(&c->env, "%s=%s%c", name, value, '\0');
	return 0;
}

static int
on_shell(ssh_session s, ssh_channel ch, void *arg)
{
	(void)s;
	(void)ch;
	return begin(arg, SB_SSHWIRE_SHELL, "");
}

static int
on_exec(ssh_session s, ssh_channel ch, const char *command, void *arg)
{
	(void)s;
	(void)ch;
	return begin(arg, SB_SSHWIRE_EXEC, command);
}

static int
on_subsystem(ssh_session s, ssh_channel ch, const char *name, void *arg)
{
	(void)s;
	(void)ch;
	return strcmp(name, "sftp") == 0 ? begin(arg, SB_SSHWIRE_SFTP, "") : -1;
}

static void
on_agent(ssh_session s, ssh_channel ch, void *arg)
{
	(void)s;
	(void)ch;
	door_agent_offer(arg);
}

static void
on_signal(ssh_session s, ssh_channel ch, const char *name, void *arg)
{
	static const struct {
		const char *name;
		uint32_t number;
	} signals[] = { { "ABRT", SIGABRT }, { "ALRM", SIGALRM }, { "FPE", SIGFPE },
		{ "HUP", SIGHUP }, { "ILL", SIGILL }, { "INT", SIGINT }, { "KILL", SIGKILL },
		{ "PIPE", SIGPIPE }, { "QUIT", SIGQUIT }, { "SEGV", SIGSEGV }, { "TERM", SIGTERM },
		{ "USR1", SIGUSR1 }, { "USR2", SIGUSR2 } };
	const struct door_channel *c = arg;

	(void)s;
	(void)ch;
	for (size_t i = 0; c->begun && i < sizeof signals / sizeof signals[0]; i++)
		if (strcmp(name, signals[i].name) == 0)
			door_tell(c->door,
				&(struct sb_sshwire_frame){ .what = SB_SSHWIRE_SIGNAL,
					.id = c->id,
					.x = signals[i].number });
}

static void
on_eof(ssh_session s, ssh_channel ch, void *arg)
{
	struct door_channel *c = arg;

	(void)s;
	(void)ch;
	c->door->news = true;
}

/* It stays where it is until there is room for it (pump.c). */
static int
on_data(ssh_session s, ssh_channel ch, void *data, uint32_t len, int is_stderr, void *arg)
{
	const struct door_channel *c = arg;

	(void)s;
	(void)ch;
	(void)data;
	(void)len;
	(void)is_stderr;
	c->door->news = true;
	return 0;
}

static int
on_window(ssh_session s, ssh_channel ch, uint32_t bytes, void *arg)
{
	const struct door_channel *c = arg;

	(void)s;
	(void)ch;
	(void)bytes;
	c->door->news = true;
	return 0;
}

static void
on_close(ssh_session s, ssh_channel ch, void *arg)
{
	struct door_channel *c = arg;

	(void)s;
	(void)ch;
	if (c->begun && !c->ended && !c->gone)
		door_tell(c->door,
			&(struct sb_sshwire_frame){ .what = SB_SSHWIRE_CLOSE, .id = c->id });
	c->gone = c->door->news = true;
}

void
door_channel_watch(struct door_channel *c)
{
	c->cb = (struct ssh_channel_callbacks_struct){ .userdata = c,
		.channel_pty_request_function = on_pty,
		.channel_pty_window_change_function = on_resize,
		.channel_env_request_function = on_env,
		.channel_shell_request_function = on_shell,
		.channel_exec_request_function = on_exec,
		.channel_subsystem_request_function = on_subsystem,
		.channel_signal_function = on_signal,
		.channel_data_function = on_data,
		.channel_write_wontblock_function = on_window,
		.channel_auth_agent_req_function = on_agent,
		.channel_eof_function = on_eof,
		.channel_close_function = on_close };
	ssh_callbacks_init(&c->cb);
	ssh_set_channel_callbacks(c->ssh, &c->cb);
}

ssh_channel
door_channel_open(ssh_session session, void *arg)
{
	struct door *d = arg;
	struct door_channel *c = d->in ? door_channel_claim(d) : NULL;

	if (!c)
		return NULL;
	c->ssh = ssh_channel_new(session);
	if (!c->ssh) {
		door_channel_close(c);
		return NULL;
	}
	door_channel_watch(c);
	return c->ssh;
}

/* The relay in the box says '+' once it is connected. */
static bool
connected(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char plus = 0;

	return poll(&p, 1, DIAL_MS) == 1 && read(fd, &plus, 1) == 1 && plus == '+';
}

static void
dial(struct door *d, ssh_message msg)
{
	const char *host = ssh_message_channel_request_open_destination(msg);
	int port = ssh_message_channel_request_open_destination_port(msg);
	struct door_channel *c = d->in && port > 0 && port < 65536 ? door_channel_claim(d) : NULL;
	struct sb_sshwire_frame f = { .what = SB_SSHWIRE_DIAL, .x = (uint32_t)port };
	int fds[SB_SSHWIRE_FDS_MAX];
	size_t n = 0;

	if (!c || !host || strlen(host) > 255) {
		if (c)
			door_channel_close(c);
		(void)ssh_message_reply_default(msg);
		return;
	}
	f.id = c->id;
	f.a = (const uint8_t *)host;
	f.a_len = strlen(host);
	c->dialed = true;
	c->begun = door_ask(d, &f, fds, &n, NULL) == 0 && n == 1;
	if (n > 0)
		c->fd[0] = fds[0];
	if (c->begun && connected(fds[0]))
		c->ssh = ssh_message_channel_request_open_reply_accept(msg);
	else
		(void)ssh_message_reply_default(msg);
	if (!c->ssh) {
		door_channel_close(c);
		return;
	}
	(void)fcntl(c->fd[0], F_SETFL, O_NONBLOCK);
	c->fd[1] = fcntl(c->fd[0], F_DUPFD_CLOEXEC, 3);
	door_channel_watch(c);
}

/* What no callback took: connections to ports. All else is refused. */
int
door_channel_message(ssh_session session, ssh_message msg, void *arg)
{
	(void)session;
	if (ssh_message_type(msg) != SSH_REQUEST_CHANNEL_OPEN ||
		ssh_message_subtype(msg) != SSH_CHANNEL_DIRECT_TCPIP)
		return 1;
	dial(arg, msg);
	return 0;
}
