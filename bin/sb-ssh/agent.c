/* SPDX-License-Identifier: MIT */
/*
 * The client's agent: a helper in the box listens for those who ask for it, and each of them gets a
 * channel to the client.
 */
#include "config.h"

#include "door.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include <compat/ssh/sshagent.h>

#define READY_MS 10000
#define PATH_MAX_HERE 100

/* The path that the helper says first, as a variable of `c`. */
static bool
await_path(const struct door_channel *post, struct door_channel *c)
{
	sb_auto(sb_buf) struct sb_buf in;
	struct sb_sshagent_frame f = { 0 };
	int r = 0;

	sb_buf_init(&in, 4096);
	while (r == 0) {
		struct pollfd p = { .fd = post->fd[1], .events = POLLIN };
		uint8_t byte;

		/* By single bytes: what comes behind it is for later. */
		if (poll(&p, 1, READY_MS) != 1 || read(post->fd[1], &byte, 1) != 1)
			return false;
		sb_buf_add(&in, &byte, 1);
		r = in.failed ? -1 : sb_sshagent_next(&in, &f);
	}
	if (r < 0 || f.what != SB_SSHAGENT_PATH || f.len > PATH_MAX_HERE ||
		memchr(f.data, '\0', f.len))
		return false;
	sb_buf_add_str(&c->env, "SSH_AUTH_SOCK=");
	sb_buf_add(&c->env, f.data, f.len);
	sb_buf_add_char(&c->env, '\0');
	return !c->env.failed;
}

void
door_agent_offer(struct door_channel *c)
{
	struct door_channel *post = c->begun || c->door->agent ? NULL : door_channel_claim(c->door);
	struct sb_sshwire_frame f = { .what = SB_SSHWIRE_START, .kind = SB_SSHWIRE_AGENT };
	int fds[SB_SSHWIRE_FDS_MAX];
	size_t n = 0;

	if (!post)
		return;
	f.id = post->id;
	post->kind = DOOR_POST;
	post->begun = door_ask(c->door, &f, fds, &n, NULL) == 0;
	for (size_t i = 0; i < n; i++)
		post->fd[i] = fds[i];
	if (n != 3 || !await_path(post, c)) {
		door_channel_close(post);
		return;
	}
	for (int i = 0; i < 2; i++)
		(void)fcntl(post->fd[i], F_SETFL, O_NONBLOCK);
	c->door->agent = post;
}

static struct door_channel *
caller_of(const struct door *d, uint8_t number)
{
	for (size_t i = 0; i < DOOR_CHANNELS_MAX; i++) {
		const struct door_channel *c = &d->channels[i];

		if (c->used && c->kind == DOOR_CALLER && c->number == number && !c->gone)
			return (struct door_channel *)(uintptr_t)c;
	}
	return NULL;
}

static void
let_go(struct door_channel *c)
{
	const struct door *d = c->door;

	if (d->agent)
		sb_sshagent_put(&d->agent->in, SB_SSHAGENT_CLOSE, c->number, NULL, 0);
	door_channel_close(c);
}

static void
take_frame(struct door *d, const struct sb_sshagent_frame *f)
{
	struct door_channel *c = caller_of(d, f->number);

	if (f->what == SB_SSHAGENT_OPEN && !c) {
		c = door_channel_claim(d);
		if (c)
			c->ssh = ssh_channel_new(d->ssh);
		if (!c || !c->ssh) {
			sb_sshagent_put(&d->agent->in, SB_SSHAGENT_CLOSE, f->number, NULL, 0);
			if (c)
				door_channel_close(c);
			return;
		}
		c->kind = DOOR_CALLER;
		c->number = f->number;
		c->opening = true;
		door_channel_watch(c);
	} else if (c && f->what == SB_SSHAGENT_DATA) {
		if (c->in.len + f->len > SB_SSHAGENT_WAITING_MAX)
			let_go(c);
		else
			sb_buf_add(&c->in, f->data, f->len);
	} else if (c && f->what == SB_SSHAGENT_CLOSE) {
		door_channel_close(c);
	}
}

/* What those in the box say. False: the helper is gone, or talks nonsense. */
static bool
hear(struct door_channel *post)
{
	struct sb_sshagent_frame f;
	int r = 0;

	for (;;) {
		uint8_t *room = sb_buf_reserve(&post->env, DOOR_PIECE);
		ssize_t n = room ? read(post->fd[1], room, DOOR_PIECE) : 0;

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return true;
		if (n <= 0)
			return false;
		sb_buf_grow(&post->env, (size_t)n);
		while ((r = sb_sshagent_next(&post->env, &f)) > 0) {
			take_frame(post->door, &f);
			sb_sshagent_drop(&post->env, &f);
		}
		if (r < 0)
			return false;
	}
}

void
door_agent_post(struct door_channel *post)
{
	ssize_t n = 1;

	while (n > 0 && post->in.len > 0) {
		n = write(post->fd[0], post->in.data, post->in.len);
		if (n > 0)
			sb_buf_consume(&post->in, (size_t)n);
	}
	if (hear(post) && !post->ended && !post->in.failed)
		return;
	post->door->agent = NULL;
	for (uint8_t i = 0; i < SB_SSHAGENT_CONNS_MAX; i++) {
		struct door_channel *c = caller_of(post->door, i);

		if (c)
			door_channel_close(c);
	}
	door_channel_close(post);
}

void
door_agent_caller(struct door_channel *c)
{
	struct door_channel *post = c->door->agent;
	uint8_t piece[SB_SSHAGENT_DATA_MAX];
	int n, r;

	if (c->opening) {
		r = ssh_channel_open_auth_agent(c->ssh);
		c->opening = r == SSH_AGAIN;
		if (r != SSH_OK && r != SSH_AGAIN) {
			let_go(c);
			return;
		}
	}
	while (!c->opening && c->in.len > 0 && ssh_channel_window_size(c->ssh) > 0) {
		uint32_t window = ssh_channel_window_size(c->ssh);

		n = ssh_channel_write(c->ssh, c->in.data,
			c->in.len < window ? (uint32_t)c->in.len : window);
		if (n <= 0)
			break;
		sb_buf_consume(&c->in, (size_t)n);
	}
	while (!c->opening && post && post->in.len < SB_SSHAGENT_WAITING_MAX &&
		(n = ssh_channel_read_nonblocking(c->ssh, piece, sizeof piece, 0)) > 0)
		sb_sshagent_put(&post->in, SB_SSHAGENT_DATA, c->number, piece, (size_t)n);
	if (c->gone || (!c->opening && ssh_channel_is_eof(c->ssh)))
		let_go(c);
}
