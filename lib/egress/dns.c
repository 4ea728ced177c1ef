/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/dns.h>

#include <string.h>
#include <strings.h>

#define HEADER 12
#define POINTERS_MAX 32 /* in one name */
#define RECORDS_MAX 128 /* that are looked at in one answer */
#define EDNS_SIZE 1232

#define FLAG_ANSWER 0x8000
#define FLAG_TRUNCATED 0x0200
#define FLAG_RECURSE 0x0100
#define FLAG_RECURSIVE 0x0080

static uint16_t
get16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

static uint8_t *
put16(uint8_t *p, unsigned v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
	return p + 2;
}

/*
 * The name at `*at` as dotted text ("" for the root), through pointers, which must lead backwards.
 * Moves `*at` behind it. Characters are not judged; a dot inside a label makes it no text.
 */
static bool
read_name(const uint8_t *d, size_t len, size_t *at, char out[SB_NETNAME_MAX], bool pointers)
{
	size_t p = *at, n = 0, start = *at;
	bool moved = false, odd = false;

	for (int hops = 0; hops <= POINTERS_MAX;) {
		if (p >= len)
			return false;
		if (d[p] == 0) {
			if (!moved)
				*at = p + 1;
			out[odd ? 0 : n] = '\0';
			return true;
		}
		if ((d[p] & 0xc0) == 0xc0) {
			size_t to;

			if (!pointers || p + 1 >= len)
				return false;
			to = (size_t)(d[p] & 0x3f) << 8 | d[p + 1];
			if (!moved)
				*at = p + 2;
			moved = true;
			if (to >= start)
				return false;
			start = p = to;
			hops++;
			continue;
		}
		if (d[p] > 63 || len - p <= d[p] || n + d[p] + 2 > SB_NETNAME_MAX)
			return false;
		if (n > 0)
			out[n++] = '.';
		memcpy(out + n, d + p + 1, d[p]);
		odd = odd || memchr(d + p + 1, '.', d[p]) || memchr(d + p + 1, '\0', d[p]);
		n += d[p];
		p += (size_t)d[p] + 1;
	}
	return false;
}

bool
sb_dns_read_query(const uint8_t *data, size_t len, struct sb_dns_query *out, int *rcode)
{
	char name[SB_NETNAME_MAX];
	size_t at = HEADER;
	unsigned flags;

	*out = (struct sb_dns_query){ 0 };
	if (len < HEADER || (get16(data + 2) & FLAG_ANSWER))
		return false;
	flags = get16(data + 2);
	out->id = get16(data);
	out->wants_recursion = flags & FLAG_RECURSE;
	*rcode = SB_DNS_NOTIMP;
	if (((flags >> 11) & 15) != 0)
		return true;
	*rcode = SB_DNS_FORMERR;
	if (get16(data + 4) != 1 || get16(data + 6) != 0 ||
		!read_name(data, len, &at, name, false) || len - at < 4)
		return true;
	out->type = get16(data + at);
	out->class = get16(data + at + 2);
	out->question_len = at + 4 - HEADER;
	memcpy(out->question, data + HEADER, out->question_len);
	if (!sb_netname_check(name, strlen(name), out->name))
		out->name[0] = '\0';
	*rcode = SB_DNS_OK;
	return true;
}

size_t
sb_dns_write_answer(const struct sb_dns_query *q, int rcode, const struct sb_netaddr *addr,
	uint32_t ttl, uint8_t out[SB_DNS_REPLY])
{
	size_t size = addr ? (addr->family == 4 ? 4 : 16) : 0;
	uint8_t *p = put16(out, q->id);

	p = put16(p,
		FLAG_ANSWER | FLAG_RECURSIVE | (q->wants_recursion ? FLAG_RECURSE : 0) |
			(unsigned)rcode);
	p = put16(p, q->question_len ? 1 : 0);
	p = put16(p, addr ? 1 : 0);
	p = put16(put16(p, 0), 0);
	memcpy(p, q->question, q->question_len);
	p += q->question_len;
	if (addr) {
		p = put16(p, 0xc000 | HEADER);
		p = put16(p, addr->family == 4 ? SB_DNS_A : SB_DNS_AAAA);
		p = put16(p, 1);
		p = put16(put16(p, ttl >> 16), ttl & 0xffff);
		p = put16(p, (unsigned)size);
		memcpy(p, addr->b, size);
		p += size;
	}
	return (size_t)(p - out);
}

size_t
sb_dns_write_query(uint16_t id, const char *name, uint16_t type, uint8_t out[SB_DNS_REPLY])
{
	char checked[SB_NETNAME_MAX];
	uint8_t *p = put16(put16(out, id), FLAG_RECURSE);

	if (!sb_netname_check(name, strlen(name), checked))
		return 0;
	p = put16(put16(put16(put16(p, 1), 0), 0), 1);
	for (const char *s = checked; *s;) {
		size_t n = strcspn(s, ".");

		*p++ = (uint8_t)n;
		memcpy(p, s, n);
		p += n;
		s += n + (s[n] == '.');
	}
	*p++ = 0;
	p = put16(put16(p, type), 1);
	/* EDNS: more than 512 bytes may come back. */
	*p++ = 0;
	p = put16(put16(p, 41), EDNS_SIZE);
	p = put16(put16(put16(p, 0), 0), 0);
	return (size_t)(p - out);
}

/* One record of the answer. `owner` is whom we follow and moves along an alias. */
static bool
read_record(const uint8_t *d, size_t len, size_t *at, char owner[SB_NETNAME_MAX], uint16_t type,
	struct sb_dns_reply *out)
{
	char name[SB_NETNAME_MAX];
	size_t data, n;
	unsigned t;
	uint32_t ttl;

	if (!read_name(d, len, at, name, true) || len - *at < 10)
		return false;
	t = get16(d + *at);
	ttl = (uint32_t)get16(d + *at + 4) << 16 | get16(d + *at + 6);
	n = get16(d + *at + 8);
	data = *at + 10;
	if (len - data < n)
		return false;
	*at = data + n;
	if (get16(d + data - 8) != 1 || strcasecmp(name, owner) != 0 ||
		(t != type && t != SB_DNS_CNAME))
		return true;
	if (ttl < out->ttl)
		out->ttl = ttl;
	if (t == SB_DNS_CNAME)
		return read_name(d, len, &data, owner, true);
	if (n != (type == SB_DNS_A ? 4u : 16u))
		return false;
	if (out->n < SB_DNS_ADDRS) {
		struct sockaddr_storage ss;
		struct sb_netaddr a = { .family = type == SB_DNS_A ? 4 : 6 };
		uint16_t port;

		/* By way of a socket address, which tells IPv4 in IPv6's clothes. */
		memcpy(a.b, d + data, n);
		(void)sb_netaddr_to_sockaddr(&a, 0, &ss);
		(void)sb_netaddr_from_sockaddr((struct sockaddr *)&ss, &out->v[out->n++], &port);
	}
	return true;
}

bool
sb_dns_read_reply(const uint8_t *data, size_t len, uint16_t id, const char *name, uint16_t type,
	struct sb_dns_reply *out)
{
	char owner[SB_NETNAME_MAX];
	struct sb_dns_reply r = { .ttl = UINT32_MAX };
	size_t at = HEADER, count;

	if (len < HEADER || get16(data) != id || !(get16(data + 2) & FLAG_ANSWER) ||
		get16(data + 4) != 1)
		return false;
	if (!read_name(data, len, &at, owner, false) || len - at < 4 ||
		strcasecmp(owner, name) != 0 || get16(data + at) != type ||
		get16(data + at + 2) != 1)
		return false;
	at += 4;
	r.rcode = get16(data + 2) & 15;
	count = get16(data + 6);
	for (size_t i = 0; i < count && i < RECORDS_MAX; i++) {
		if (read_record(data, len, &at, owner, type, &r))
			continue;
		/* The end of a truncated answer is cut off; what came before it counts. */
		if (!(get16(data + 2) & FLAG_TRUNCATED))
			return false;
		break;
	}
	if (r.n == 0 && r.rcode == SB_DNS_OK)
		r.ttl = 0;
	*out = r;
	return true;
}
