/* SPDX-License-Identifier: MIT */
/*
 * The texts SSH set-up reads: known_hosts lines, the output of `ssh -G`, base64, listings of far
 * trees. The first byte chooses. A key found in known_hosts begins with the type its line names,
 * and checking it again finds it. An accepted listing is sorted and has paths beneath its root
 * only.
 */
#include <string.h>

#include <sync/remote/agentless.h>
#include <base/cleanup.h>
#include <base/path.h>
#include <sync/ssh/ssh-config.h>
#include <sync/ssh/ssh-hash.h>
#include <sync/ssh/ssh-known.h>

#include "fuzz.h"

static void
known_hosts(const char *text, size_t len)
{
	sb_auto(sb_ssh_known) struct sb_ssh_known k = { 0 };

	if (sb_ssh_known_parse(&k, text, len, "f", "box", 2222, NULL) < 0)
		return;
	for (size_t i = 0; i < k.n; i++) {
		const struct sb_ssh_known_key *key = &k.keys[i];
		enum sb_ssh_known_answer a;

		FUZZ_CHECK(key->blob_len >= 4 + strlen(key->type));
		FUZZ_CHECK(memcmp(key->blob + 4, key->type, strlen(key->type)) == 0);
		a = sb_ssh_known_check(&k, key->blob, key->blob_len, NULL);
		FUZZ_CHECK(a == SB_SSH_KNOWN_MATCH || a == SB_SSH_KNOWN_REVOKED);
	}
}

static void
config(const char *text, size_t len)
{
	sb_auto(sb_ssh_config) struct sb_ssh_config c = { 0 };
	sb_autofree char *copy = strndup(text, len);

	if (copy && sb_ssh_config_parse(copy, &c, NULL) >= 0)
		FUZZ_CHECK(c.host && c.user && c.port >= 1 && c.port <= 65535);
}

static void
base64(const char *text, size_t len)
{
	uint8_t raw[4096];
	char back[SB_SSH_BASE64_SIZE(sizeof raw)];
	ssize_t n = sb_ssh_hash_unbase64(text, len, raw, sizeof raw);

	if (n < 0)
		return;
	FUZZ_CHECK(strlen(sb_ssh_hash_base64(raw, (size_t)n, back)) == len);
}

static void
listing(const char *form, const char *text, size_t len)
{
	sb_auto(sb_agentless_list) struct sb_agentless_list l = { 0 };

	if (sb_agentless_list_parse(form, text, len, &l, NULL) < 0)
		return;
	FUZZ_CHECK(l.n > 0 && l.v[0].path[0] == '\0' && l.v[0].type == 'd');
	for (size_t i = 0; i < l.n; i++) {
		FUZZ_CHECK(sb_path_check(l.v[i].path, strlen(l.v[i].path), NULL) == 0);
		FUZZ_CHECK(sb_agentless_list_find(&l, l.v[i].path) == &l.v[i]);
		FUZZ_CHECK((l.v[i].type == 'l') == (l.v[i].target != NULL));
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	if (len == 0)
		return 0;
	switch (data[0] % 5) {
	case 0: known_hosts((const char *)data + 1, len - 1); break;
	case 1: config((const char *)data + 1, len - 1); break;
	case 2: base64((const char *)data + 1, len - 1); break;
	case 3: listing("printf", (const char *)data + 1, len - 1); break;
	case 4: listing("stat", (const char *)data + 1, len - 1); break;
	}
	return 0;
}
