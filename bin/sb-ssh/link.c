/* SPDX-License-Identifier: MIT */
/* The door's end of the socket to the gateway. */
#include "config.h"

#include "door.h"

#include <string.h>
#include <unistd.h>

static void
note_end(struct door *d, const struct sb_sshwire_frame *f)
{
	for (size_t i = 0; i < DOOR_CHANNELS_MAX; i++) {
		struct door_channel *c = &d->channels[i];

		if (!c->used || c->id != f->id)
			continue;
		c->ended = d->news = true;
		c->code = f->x;
		/* It never began: the reason is all there is to say. */
		if (f->a_len > 0 && !c->dialed && c->ssh) {
			(void)ssh_channel_write_stderr(c->ssh, "sbhostd: ", 9);
			(void)ssh_channel_write_stderr(c->ssh, f->a, (uint32_t)f->a_len);
			(void)ssh_channel_write_stderr(c->ssh, "\r\n", 2);
		}
	}
}

void
door_tell(struct door *d, const struct sb_sshwire_frame *f)
{
	if (sb_sshwire_send(d->link, f, NULL, 0, NULL) < 0)
		d->lost = true;
}

void
door_take(struct door *d)
{
	struct pollfd p = { .fd = d->link, .events = POLLIN };
	struct sb_sshwire_frame f;

	/* What was there when the loop looked, a question may have taken since. */
	if (poll(&p, 1, 0) <= 0)
		return;
	if (sb_sshwire_receive(d->link, &d->room, &f, NULL, NULL, NULL) < 0)
		d->lost = true;
	else if (f.what == SB_SSHWIRE_EXIT)
		note_end(d, &f);
}

int
door_ask(struct door *d, const struct sb_sshwire_frame *ask, int *fds, size_t *n_fds,
	struct sb_buf *why)
{
	struct sb_sshwire_frame f = { 0 };

	door_tell(d, ask);
	while (!d->lost) {
		if (sb_sshwire_receive(d->link, &d->room, &f, fds, n_fds, NULL) < 0) {
			d->lost = true;
			break;
		}
		if (f.what == SB_SSHWIRE_EXIT)
			note_end(d, &f);
		if (f.what != SB_SSHWIRE_ANSWER)
			continue;
		if (why)
			sb_buf_add(why, f.a, f.a_len);
		return f.x ? 0 : -1;
	}
	return -1;
}
