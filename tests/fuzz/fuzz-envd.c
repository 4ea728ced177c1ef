/* SPDX-License-Identifier: MIT */
/*
 * The stream of a program in a sandbox of E2B: envelopes with events. What is accepted keeps its
 * bounds, output encodes to base64 that decodes to it, and an end has an exit code.
 */
#include <stdlib.h>
#include <string.h>

#include <base/base64.h>
#include <cloud/e2b/envd-event.h>
#include <rpc/protocol/envelope.h>

#include "fuzz.h"

static void
check_output(const struct sb_envd_event *ev)
{
	size_t size = (ev->data.len + 2) / 3 * 4 + 1;
	sb_auto(sb_buf) struct sb_buf back = { 0 };
	char *text = malloc(size);

	FUZZ_CHECK(text && (ev->fd == 1 || ev->fd == 2) && ev->data.len <= SB_ENVD_EVENT_MAX);
	sb_buf_init(&back, SB_ENVD_EVENT_MAX);
	FUZZ_CHECK(sb_base64_encode_padded(ev->data.data, ev->data.len, text, size));
	FUZZ_CHECK(sb_base64_decode(text, strlen(text), &back));
	FUZZ_CHECK(back.len == ev->data.len && memcmp(back.data, ev->data.data, back.len) == 0);
	free(text);
}

static void
one_event(const uint8_t *msg, size_t len)
{
	sb_auto(sb_envd_event) struct sb_envd_event ev = { 0 };
	struct sb_error err = { 0 };
	int r = sb_envd_event_parse(msg, len, &ev, &err);

	FUZZ_CHECK(r == 0 || (r < 0 && err.code == r && err.msg[0]));
	if (r < 0)
		return;
	FUZZ_CHECK(ev.kind != SB_ENVD_START || ev.pid > 0);
	FUZZ_CHECK(ev.kind != SB_ENVD_END || (ev.code >= 0 && ev.code <= 255));
	if (ev.kind == SB_ENVD_OUTPUT)
		check_output(&ev);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sb_error err = { 0 };
	size_t used = 0, len = 0;
	const uint8_t *msg = NULL;
	uint8_t flags = 0;

	while (sb_rpc_envelope_next(data + used, size - used, SB_ENVD_EVENT_MAX, &flags, &msg, &len,
		       &err) > 0) {
		FUZZ_CHECK(used + SB_RPC_ENVELOPE_SIZE + len <= size);
		if (flags & SB_RPC_FLAG_END) {
			int r = sb_envd_event_last(msg, len, &err);

			FUZZ_CHECK(r <= 0 && (r == 0 || err.code < 0));
		} else {
			one_event(msg, len);
		}
		used += SB_RPC_ENVELOPE_SIZE + len;
	}
	return 0;
}
