/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/tlshello.h>

#include <stdbool.h>
#include <string.h>

/*
 * A record is type(1) version(2) length(2); the handshake message in one or more of them is
 * type(1) length(3) body; the body of a hello is
 *     version(2) random(32) session(1+n) ciphers(2+n) compression(1+n) extensions(2+n)
 * and an extension is type(2) length(2), server_name: list(2+n) of type(1) name(2+n).
 */
#define RECORD_HANDSHAKE 22
#define RECORD_FIRST 20
#define RECORD_LAST 24
#define MESSAGE_CLIENT_HELLO 1
#define EXTENSION_SERVER_NAME 0

struct view {
	const uint8_t *p;
	size_t left;
	bool bad;
};

static size_t
number(struct view *v, size_t bytes)
{
	size_t n = 0;

	if (v->bad || v->left < bytes) {
		v->bad = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		n = n << 8 | v->p[i];
	v->p += bytes;
	v->left -= bytes;
	return n;
}

static struct view
take(struct view *v, size_t len)
{
	struct view part = { v->p, len, false };

	if (v->bad || v->left < len) {
		v->bad = true;
		return (struct view){ .bad = true };
	}
	v->p += len;
	v->left -= len;
	return part;
}

/* Exactly one name of type host_name: nobody sends more, and servers differ in which they take. */
static bool
read_server_name(struct view *ext, char name[SB_NETNAME_MAX])
{
	struct view list = take(ext, number(ext, 2)), host;
	size_t type = number(&list, 1);

	host = take(&list, number(&list, 2));
	if (list.bad || host.bad || type != 0 || list.left != 0 || ext->left != 0)
		return false;
	/* RFC 6066: without a dot at the end. */
	return host.left > 0 && host.p[host.left - 1] != '.' &&
		sb_netname_check((const char *)host.p, host.left, name);
}

static enum sb_tlshello
read_hello(struct view v, char name[SB_NETNAME_MAX])
{
	bool named = false;
	char sni[SB_NETNAME_MAX] = "";
	struct view exts;

	(void)take(&v, 2 + 32);
	(void)take(&v, number(&v, 1));
	(void)take(&v, number(&v, 2));
	(void)take(&v, number(&v, 1));
	exts = v.left > 0 ? take(&v, number(&v, 2)) : (struct view){ 0 };
	while (!exts.bad && exts.left > 0) {
		size_t type = number(&exts, 2);
		struct view ext = take(&exts, number(&exts, 2));

		if (exts.bad || type != EXTENSION_SERVER_NAME)
			continue;
		if (named || !read_server_name(&ext, sni))
			return SB_TLSHELLO_BAD;
		named = true;
	}
	if (v.bad || exts.bad || v.left != 0)
		return SB_TLSHELLO_BAD;
	memcpy(name, sni, sizeof sni);
	return SB_TLSHELLO_DONE;
}

enum sb_tlshello
sb_tlshello_read(const uint8_t *data, size_t len, char name[SB_NETNAME_MAX])
{
	uint8_t message[SB_TLSHELLO_MAX];
	size_t have = 0, want = 4, at = 0;

	if (len == 0)
		return SB_TLSHELLO_MORE;
	if (data[0] < RECORD_FIRST || data[0] > RECORD_LAST || (len > 1 && data[1] != 3))
		return SB_TLSHELLO_OTHER;
	if (data[0] != RECORD_HANDSHAKE)
		return len > 1 ? SB_TLSHELLO_BAD : SB_TLSHELLO_MORE;
	while (have < want) {
		size_t n, there;

		if (len - at < 5)
			return len >= SB_TLSHELLO_MAX ? SB_TLSHELLO_BAD : SB_TLSHELLO_MORE;
		n = (size_t)data[at + 3] << 8 | data[at + 4];
		if (data[at] != RECORD_HANDSHAKE || data[at + 1] != 3 || n == 0 ||
			n > sizeof message - have)
			return SB_TLSHELLO_BAD;
		there = len - at - 5 < n ? len - at - 5 : n;
		memcpy(message + have, data + at + 5, there);
		have += there;
		at += 5 + there;
		if (have >= 4)
			want = 4 +
				((size_t)message[1] << 16 | (size_t)message[2] << 8 | message[3]);
		if ((have > 0 && message[0] != MESSAGE_CLIENT_HELLO) || want > sizeof message)
			return SB_TLSHELLO_BAD;
		if (there < n && have < want)
			return len >= SB_TLSHELLO_MAX ? SB_TLSHELLO_BAD : SB_TLSHELLO_MORE;
	}
	return read_hello((struct view){ message + 4, want - 4, false }, name);
}
