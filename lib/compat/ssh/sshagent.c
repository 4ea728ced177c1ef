/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/ssh/sshagent.h>

#include <string.h>

#define HEAD 4

int
sb_sshagent_next(const struct sb_buf *in, struct sb_sshagent_frame *out)
{
	const uint8_t *p = in->data;

	if (in->len < HEAD)
		return 0;
	*out = (struct sb_sshagent_frame){ .what = p[0],
		.number = p[1],
		.len = (size_t)p[2] << 8 | p[3],
		.data = p + HEAD };
	if (out->number >= SB_SSHAGENT_CONNS_MAX || out->len > SB_SSHAGENT_DATA_MAX)
		return -1;
	switch ((enum sb_sshagent_what)out->what) {
	case SB_SSHAGENT_PATH:
	case SB_SSHAGENT_DATA:
		if (out->len == 0)
			return -1;
		break;
	case SB_SSHAGENT_OPEN:
	case SB_SSHAGENT_CLOSE:
		if (out->len > 0)
			return -1;
		break;
	default: return -1;
	}
	return in->len >= HEAD + out->len;
}

void
sb_sshagent_drop(struct sb_buf *in, const struct sb_sshagent_frame *f)
{
	sb_buf_consume(in, HEAD + f->len);
}

void
sb_sshagent_put(struct sb_buf *out, uint8_t what, uint8_t number, const void *data, size_t len)
{
	const uint8_t head[HEAD] = { what, number, (uint8_t)(len >> 8), (uint8_t)len };

	sb_buf_add(out, head, sizeof head);
	sb_buf_add(out, data, len);
}
