/* SPDX-License-Identifier: MIT */
/*
 * Lines of an MCP client: each is a message or is refused with an answer, what was read is what the
 * line says, and an answer is one line.
 */
#include <string.h>

#include <mcp/mcp-message.h>

#include "fuzz.h"

static void
check_answer(json_t *answer, const json_t *id)
{
	char *text = json_dumps(answer, JSON_COMPACT);
	const json_t *code = json_object_get(json_object_get(answer, "error"), "code");

	FUZZ_CHECK(text && !strchr(text, '\n'));
	FUZZ_CHECK(json_is_integer(code) && json_integer_value(code) <= -32600);
	FUZZ_CHECK(json_is_string(json_object_get(json_object_get(answer, "error"), "message")));
	if (id)
		FUZZ_CHECK(json_equal(json_object_get(answer, "id"), id));
	free(text);
	json_decref(answer);
}

static void
check_one(const json_t *v)
{
	struct sb_mcp_message m;
	json_t *refusal = NULL, *note;

	if (!sb_mcp_message_read(v, &m, &refusal)) {
		check_answer(refusal, NULL);
		return;
	}
	FUZZ_CHECK(!refusal && json_is_object(v));
	FUZZ_CHECK(!m.params || json_is_object(m.params));
	switch (m.kind) {
	case SB_MCP_MESSAGE_REQUEST:
		FUZZ_CHECK(m.method && (json_is_string(m.id) || json_is_integer(m.id)));
		check_answer(sb_mcp_message_error(m.id, SB_MCP_METHOD_NOT_FOUND, "%s", m.method),
			m.id);
		break;
	case SB_MCP_MESSAGE_NOTIFICATION:
		FUZZ_CHECK(m.method && !m.id);
		note = sb_mcp_message_note("notifications/x", json_object());
		FUZZ_CHECK(note && sb_mcp_message_read(note, &m, &refusal));
		json_decref(note);
		break;
	case SB_MCP_MESSAGE_ANSWER: FUZZ_CHECK(!m.method && !m.id && !m.params); break;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	json_t *refusal = NULL, *v, *item;
	size_t i;

	if (len > 65536)
		return 0;
	v = sb_mcp_message_parse((const char *)data, len, &refusal);
	if (!v) {
		check_answer(refusal, NULL);
		return 0;
	}
	FUZZ_CHECK(!refusal);
	if (json_is_array(v)) {
		FUZZ_CHECK(json_array_size(v) > 0);
		json_array_foreach(v, i, item)
		{
			check_one(item);
		}
	} else {
		check_one(v);
	}
	json_decref(v);
	return 0;
}
