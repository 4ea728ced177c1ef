/* SPDX-License-Identifier: MIT */
/* What a sandbox may reach besides what is allowed to all of them (sb/docker.h). */
#include "config.h"

#include <docker/docker-priv.h>

#include <ctype.h>
#include <string.h>

#include <docker/name.h>

/* The entry without the white space around it; its length. */
static const char *
trim(const char *host, size_t *len)
{
	while (isspace((unsigned char)*host))
		host++;
	*len = strlen(host);
	while (*len && isspace((unsigned char)host[*len - 1]))
		(*len)--;
	return host;
}

/* All are looked at before anything runs. */
static int
take_hosts(const char *const *hosts, struct sb_strlist *out, struct sb_error *err)
{
	for (; hosts && *hosts; hosts++) {
		size_t len;
		const char *host = trim(*hosts, &len);
		char shown[200];

		if (!len)
			continue;
		for (size_t i = 0; i < len; i++)
			if (host[i] == ',' || isspace((unsigned char)host[i]) ||
				iscntrl((unsigned char)host[i]))
				return sb_fail(err, SB_E_INVAL,
					"host '%s' contains a comma or whitespace: give each host "
					"by itself",
					sb_escape(host, len, shown, sizeof shown));
		if (*host == '-')
			return sb_fail(err, SB_E_INVAL, "host '%s' begins with '-'",
				sb_escape(host, len, shown, sizeof shown));
		sb_strlist_addf(out, "%.*s", (int)len, host);
	}
	return sb_strlist_check(out, err);
}

static void
add_joined(struct sb_strlist *args, const struct sb_strlist *hosts)
{
	sb_auto(sb_buf) struct sb_buf b;

	sb_buf_init(&b, 1u << 20);
	for (size_t i = 0; i < hosts->n; i++)
		sb_buf_addf(&b, "%s%s", i ? "," : "", hosts->v[i]);
	if (b.failed)
		args->failed = SB_E_NOMEM;
	sb_strlist_add(args, (const char *)b.data);
}

int
sb_docker_allow_hosts(struct sb_docker *d, const char *name, const char *const *hosts,
	const struct sb_call *call, struct sb_error *err)
{
	sb_auto(sb_strlist) struct sb_strlist list = { 0 };
	sb_auto(sb_strlist) struct sb_strlist args = { 0 };
	int r;

	if (!name || !*name)
		return 0;
	if (!sb_name_ok(name))
		return sb_fail(err, SB_E_INVAL, "'%s' is no name of a sandbox", name);
	r = take_hosts(hosts, &list, err);
	if (r < 0 || !list.n)
		return r;
	r = sb_docker_probe(d, call, err);
	if (r < 0)
		return r;
	if (d->era == SB_DOCKER_ERA_C) {
		sb_strlist_add_all(&args,
			(const char *[]){ "policy", "allow", "network", "--sandbox", name, NULL });
		add_joined(&args, &list);
	} else if (d->sbx || !d->proxies) {
		sb_strlist_add_all(&args,
			(const char *[]){ "policy", "allow", "network", name, NULL });
		add_joined(&args, &list);
	} else {
		sb_strlist_add_all(&args, (const char *[]){ "network", "proxy", name, NULL });
		for (size_t i = 0; i < list.n; i++)
			sb_strlist_add_all(&args,
				(const char *[]){ "--allow-host", list.v[i], NULL });
	}
	r = sb_strlist_check(&args, err);
	return r < 0 ? r : sb_cli_must(&d->cli, sb_strlist_borrow(&args), NULL, call, err);
}
