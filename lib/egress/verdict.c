/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/verdict.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct sb_verdicts {
	char session[512]; /* quoted */
	char *line[SB_VERDICT_KEPT];
	uint64_t last;
	uint64_t dropped;     /* since the last line */
	int64_t tokens_milli; /* thousandths of a line */
	int64_t filled_ms;
};

char *
sb_verdict_quote(const char *s, char *out, size_t size)
{
	size_t n = 0;

	out[n++] = '"';
	/* The longest escape, the quote and the NUL must fit. */
	for (; *s && n + 8 < size; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\') {
			out[n++] = '\\';
			out[n++] = (char)c;
		} else if (c < 0x20 || c >= 0x7f) {
			n += (size_t)snprintf(out + n, 7, "\\u%04x", c);
		} else {
			out[n++] = (char)c;
		}
	}
	out[n++] = '"';
	out[n] = '\0';
	return out;
}

struct sb_verdicts *
sb_verdict_open(const char *session)
{
	struct sb_verdicts *v = calloc(1, sizeof *v);

	if (v) {
		(void)sb_verdict_quote(session, v->session, sizeof v->session);
		v->tokens_milli = SB_VERDICT_BURST * 1000;
	}
	return v;
}

void
sb_verdict_close(struct sb_verdicts *v)
{
	for (size_t i = 0; v && i < SB_VERDICT_KEPT; i++)
		free(v->line[i]);
	free(v);
}

static int
take_token(struct sb_verdicts *v, int64_t now)
{
	int64_t passed = now - v->filled_ms;

	v->filled_ms = now;
	if (passed > 0)
		v->tokens_milli +=
			passed > 60000 ? SB_VERDICT_BURST * 1000 : passed * SB_VERDICT_RATE;
	if (v->tokens_milli > SB_VERDICT_BURST * 1000)
		v->tokens_milli = SB_VERDICT_BURST * 1000;
	if (v->tokens_milli < 1000)
		return 0;
	v->tokens_milli -= 1000;
	return 1;
}

void
sb_verdict_note(struct sb_verdicts *v, const struct sb_verdict *what, int64_t now_ms)
{
	char name[300], rule[400], addr[SB_NETADDR_TEXT] = "";
	char **slot = &v->line[(v->last + 1) % SB_VERDICT_KEPT], *line;

	if (!take_token(v, now_ms) || !(line = malloc(SB_VERDICT_LINE + 512))) {
		v->dropped++;
		return;
	}
	if (what->addr)
		(void)sb_netaddr_format(what->addr, addr);
	(void)snprintf(line, SB_VERDICT_LINE + 512,
		"{\"seq\":%" PRIu64
		",\"session\":%s,\"kind\":\"%s\",\"name\":%s,\"address\":\"%s\","
		"\"port\":%u,\"verdict\":\"%s\",\"rule\":%s,\"left_out\":%" PRIu64 "}\n",
		v->last + 1, v->session, what->kind,
		sb_verdict_quote(what->name ? what->name : "", name, sizeof name), addr, what->port,
		what->verdict, sb_verdict_quote(what->rule ? what->rule : "", rule, sizeof rule),
		v->dropped);
	v->dropped = 0;
	v->last++;
	free(*slot);
	*slot = line;
}

uint64_t
sb_verdict_last(const struct sb_verdicts *v)
{
	return v->last;
}

const char *
sb_verdict_line(const struct sb_verdicts *v, uint64_t *seq)
{
	uint64_t first = v->last >= SB_VERDICT_KEPT ? v->last - SB_VERDICT_KEPT + 1 : 1;

	if (*seq < first)
		*seq = first;
	return *seq <= v->last ? v->line[*seq % SB_VERDICT_KEPT] : NULL;
}
