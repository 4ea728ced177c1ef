/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/marks.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tool/launch.h>

/* Noise before the start that is looked at together. */
#define HELD_MAX (64u << 10)

int
sb_marks_init(struct sb_marks *m, const char *nonce, struct sb_error *err)
{
	*m = (struct sb_marks){ 0 };
	if (strlen(nonce) > 32)
		return sb_fail(err, SB_E_INVAL, "a nonce of more than 32 characters");
	sb_buf_init(&m->held, HELD_MAX);
	m->start_len = 1 +
		(size_t)snprintf(m->start + 1, sizeof m->start - 1, SB_LAUNCH_START "%s\n", nonce);
	m->end_len =
		1 + (size_t)snprintf(m->end + 1, sizeof m->end - 1, SB_LAUNCH_END "%s:", nonce);
	return 0;
}

void
sb_marks_free(struct sb_marks *m)
{
	sb_buf_free(&m->held);
}

/* Drops everything up to the start mark. False: it has not come yet. */
static bool
find_start(struct sb_marks *m)
{
	const uint8_t *at = memmem(m->held.data, m->held.len, m->start, m->start_len);

	if (!at) {
		if (m->held.len >= m->start_len)
			sb_buf_consume(&m->held, m->held.len - m->start_len + 1);
		return false;
	}
	sb_buf_consume(&m->held, (size_t)(at - m->held.data) + m->start_len);
	m->started = true;
	return true;
}

/* Reads "CODE:SIGNAL\n". 1: done; 0: more must come; -1: that is no mark. */
static int
read_end(struct sb_marks *m)
{
	const char *p = (const char *)m->held.data + m->end_len;
	size_t left = m->held.len - m->end_len;
	const char *nl = memchr(p, '\n', left);
	char *after;
	long code, sig;

	if (!nl)
		return left < SB_LAUNCH_MARK_MAX ? 0 : -1;
	code = strtol(p, &after, 10);
	if (after == p || *after != ':' || code < 0 || code > 255)
		return -1;
	p = after + 1;
	sig = strtol(p, &after, 10);
	if (after == p || after != nl || sig < 0 || sig > 127)
		return -1;
	m->ended = true;
	m->code = (int)code;
	m->signal = (int)sig;
	sb_buf_reset(&m->held);
	return 1;
}

/* Hands on what cannot be a mark. */
static void
pass_on(struct sb_marks *m, sb_marks_fn fn, void *arg)
{
	while (m->held.len && !m->ended) {
		const uint8_t *nul = memchr(m->held.data, 0, m->held.len);
		size_t plain = nul ? (size_t)(nul - m->held.data) : m->held.len;
		size_t have;

		if (plain) {
			fn(m->held.data, plain, arg);
			sb_buf_consume(&m->held, plain);
			continue;
		}
		have = m->held.len < m->end_len ? m->held.len : m->end_len;
		if (memcmp(m->held.data, m->end, have) == 0) {
			int r = have < m->end_len ? 0 : read_end(m);

			if (r >= 0)
				return;
		}
		fn(m->held.data, 1, arg);
		sb_buf_consume(&m->held, 1);
	}
}

void
sb_marks_feed(struct sb_marks *m, const void *data, size_t len, sb_marks_fn fn, void *arg)
{
	const uint8_t *p = data;

	while (len && !m->ended) {
		size_t part = len < 4096 ? len : 4096;

		sb_buf_add(&m->held, p, part);
		if (m->held.failed)
			sb_buf_reset(&m->held);
		if (m->started || find_start(m))
			pass_on(m, fn, arg);
		p += part;
		len -= part;
	}
}

void
sb_marks_flush(struct sb_marks *m, sb_marks_fn fn, void *arg)
{
	if (m->started && !m->ended && m->held.len)
		fn(m->held.data, m->held.len, arg);
	sb_buf_reset(&m->held);
}
