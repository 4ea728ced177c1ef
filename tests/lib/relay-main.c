/* SPDX-License-Identifier: MIT */
/*
 * relay TO_PORT [KEY=VALUE]...   keys: the fields of struct relay_opts (cut_up, stall_down,
 * delay_ms, cuts, cut_max, seed ...) Prints the port it listens on, then relays until its standard
 * input ends; then prints what passed.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/lib/relay.h"

static int
set(struct relay_opts *o, const char *key, size_t len, long long v)
{
	const struct {
		const char *key;
		int64_t *wide;
	} wides[] = { { "cut_up", &o->cut_up }, { "cut_down", &o->cut_down },
		{ "stall_up", &o->stall_up }, { "stall_down", &o->stall_down },
		{ "corrupt_up", &o->corrupt_up }, { "corrupt_down", &o->corrupt_down },
		{ "cut_max", &o->cut_max } };

	for (size_t i = 0; i < sizeof wides / sizeof wides[0]; i++)
		if (strlen(wides[i].key) == len && memcmp(wides[i].key, key, len) == 0) {
			*wides[i].wide = v;
			return 0;
		}
	if (len == 8 && memcmp(key, "delay_ms", 8) == 0)
		o->delay_ms = (int)v;
	else if (len == 4 && memcmp(key, "cuts", 4) == 0)
		o->cuts = (int)v;
	else if (len == 4 && memcmp(key, "seed", 4) == 0)
		o->seed = (unsigned)v;
	else
		return -1;
	return 0;
}

int
main(int argc, char **argv)
{
	struct relay_opts o = RELAY_OPTS_INIT;
	struct relay *r;
	char buf[64];

	if (argc < 2)
		return 2;
	o.cut_max = 1 << 20;
	o.to_port = (int)strtol(argv[1], NULL, 10);
	for (int i = 2; i < argc; i++) {
		char *eq = strchr(argv[i], '=');

		if (!eq ||
			set(&o, argv[i], (size_t)(eq - argv[i]), strtoll(eq + 1, NULL, 10)) < 0) {
			(void)fprintf(stderr, "relay: unknown setting %s\n", argv[i]);
			return 2;
		}
	}
	r = relay_start(&o);
	if (!r) {
		perror("relay");
		return 1;
	}
	(void)printf("%d\n", r->port);
	(void)fflush(stdout);
	while (read(0, buf, sizeof buf) > 0)
		continue;
	(void)printf("connections %d cuts %d up %llu down %llu\n", r->connections, r->cuts_done,
		(unsigned long long)r->bytes_up, (unsigned long long)r->bytes_down);
	relay_stop(r);
	return 0;
}
