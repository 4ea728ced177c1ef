/* SPDX-License-Identifier: MIT */
/* Which command line of Docker's sandboxes there is, and whether it works (sb/docker.h). */
#include "config.h"

#include <docker/docker-priv.h>

#include <stdlib.h>
#include <string.h>

#define DOCS "https://docs.docker.com/ai/sandboxes/"

struct sb_docker *
sb_docker_new(bool prefer_sbx, struct sb_error *err)
{
	sb_autofree char *sbx = prefer_sbx ? sb_cli_find("sbx") : NULL;
	struct sb_docker *d = calloc(1, sizeof *d);
	int r = d ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");

	if (r < 0)
		return NULL;
	d->sbx = sbx != NULL;
	if (d->sbx) {
		sb_strlist_add(&d->cli.words, "sbx");
		/* Set and empty: sbx takes itself for a plugin of docker otherwise. */
		sb_strlist_add(&d->cli.env, "DOCKER_CLI_PLUGIN_ORIGINAL_CLI_COMMAND=");
	} else {
		sb_strlist_add(&d->cli.words, "docker");
		sb_strlist_add(&d->cli.words, "sandbox");
	}
	r = sb_strlist_check(&d->cli.words, err);
	if (r == 0)
		r = sb_strlist_check(&d->cli.env, err);
	if (r < 0) {
		sb_docker_free(d);
		return NULL;
	}
	return d;
}

void
sb_docker_free(struct sb_docker *d)
{
	if (!d)
		return;
	sb_cli_free(&d->cli);
	free(d);
}

bool
sb_docker_is_sbx(const struct sb_docker *d)
{
	return d->sbx;
}

int
sb_docker_check(struct sb_docker *d, const struct sb_call *call, struct sb_error *err)
{
	const char *const args[] = { "version", NULL };
	struct sb_error why = { 0 };
	sb_autofree char *found = sb_cli_find(d->cli.words.v[0]);
	int r;

	if (!found)
		return sb_fail(err, SB_E_NOTFOUND,
			"%s is not on PATH: sandboxes require Docker Desktop or sbx (" DOCS ")",
			d->cli.words.v[0]);
	r = sb_cli_must(&d->cli, args, NULL, call, &why);
	if (r == SB_E_CHILD)
		return sb_fail(err, SB_E_UNSUPPORTED,
			"sandboxes require Docker Desktop with sandbox support, or a working sbx "
			"(" DOCS "): %s",
			why.msg);
	if (r < 0 && err)
		*err = why;
	return r;
}

/* The help text of a command; "" when it has none. */
static int
help_of(struct sb_docker *d, const char *const *args, struct sb_buf *out,
	const struct sb_call *call, struct sb_error *err)
{
	struct sb_cli_io io = { .out = out, .errors = out };
	int r = sb_cli_run(&d->cli, args, &io, call, err);

	/* Old ones print the help of everything for a command they do not know. */
	if (r > 0)
		sb_buf_reset(out);
	return r < 0 ? r : 0;
}

int
sb_docker_probe(struct sb_docker *d, const struct sb_call *call, struct sb_error *err)
{
	const char *const policy[] = { "policy", "allow", "network", "--help", NULL };
	const char *const proxy[] = { "network", "proxy", "--help", NULL };
	sb_auto(sb_buf) struct sb_buf text;
	int r;

	sb_buf_init(&text, 65536);
	if (d->probed)
		return 0;
	r = help_of(d, policy, &text, call, err);
	if (r == 0 && strstr((const char *)text.data, "--sandbox")) {
		d->era = SB_DOCKER_ERA_C;
	} else if (r == 0 && !d->sbx) {
		sb_buf_reset(&text);
		r = help_of(d, proxy, &text, call, err);
		d->proxies = r == 0 && strstr((const char *)text.data, "--allow-host");
	}
	d->probed = r == 0;
	return r;
}

enum sb_docker_era
sb_docker_era_of(const struct sb_docker *d)
{
	return (enum sb_docker_era)d->era;
}

int
sb_docker_run(struct sb_docker *d, const char *const *args, const struct sb_call *call,
	struct sb_error *err)
{
	return sb_cli_must(&d->cli, args, NULL, call, err);
}

int
sb_docker_output(struct sb_docker *d, const char *const *args, const struct sb_call *call,
	char **out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf text;
	size_t len;
	int r;

	*out = NULL;
	sb_buf_init(&text, SB_DOCKER_OUTPUT_MAX);
	r = sb_cli_must(&d->cli, args, &text, call, err);
	if (r < 0)
		return r;
	*out = (char *)sb_buf_detach(&text, &len);
	return *out ? 0 : sb_fail(err, SB_E_NOMEM, "out of memory");
}
