/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <provider/hostlink.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/file.h>
#include <base/owndir.h>
#include <base/path.h>
#include <base/quote.h>
#include <base/str.h>
#include <host/runtime/runtime.h>
#include <provider/beside.h>
#include <provider/toolset.h>
#include <rpc/client/embed.h>
#include <sb/env.h>
#include <sb/rpc.h>

#define SOCKET_PATH_MAX 100
#define TOKEN_MAX 4096

struct sb_hostlink {
	char *address;
	char *token_file, *ca_file;
	struct sb_rpc_embed *embed; /* NULL: somebody else's host */
};

static bool
is_url(const char *text)
{
	return sb_str_starts(text, "unix:/") || sb_str_starts(text, "http://") ||
		sb_str_starts(text, "https://");
}

static const char *const runtimes[] = { "auto", "gvisor", "bwrap", "none", NULL };

const struct sb_provider_option sb_hostlink_options[] = {
	{ .name = "url",
		.value = "URL",
		.help = "a sandbox host (unix:PATH, http://, https://) instead of one in this "
			"process",
		.check = is_url,
		.user_only = true,
		.place = true },
	{ .name = "token_file", .value = "FILE", .help = "bearer token for it", .user_only = true },
	{ .name = "ca_file",
		.value = "FILE",
		.help = "authorities that https is checked with",
		.user_only = true },
	{ .name = "base", .value = "BASE", .help = "base image of a remote host" },
	{ .name = "runtime",
		.value = "NAME",
		.help = "what isolates, without url: the best there is by default",
		.choices = runtimes,
		.user_only = true },
	{ .name = NULL },
};

/*
 * Where embedded hosts are: $SBSYNC_BOX_DIR/host, $XDG_STATE_HOME/sandboxes/host, or in the home
 * directory.
 */
static char *
dir_of(const char *id, struct sb_error *err)
{
	const char *own = getenv("SBSYNC_BOX_DIR"), *xdg = getenv("XDG_STATE_HOME"),
		   *home = getenv("HOME");
	char *dir = NULL;

	if (own && *own == '/')
		dir = sb_str_printf("%s/host/%s", own, id);
	else if (xdg && *xdg == '/')
		dir = sb_str_printf("%s/sandboxes/host/%s", xdg, id);
	else if (home && *home == '/')
		dir = sb_str_printf("%s/.local/state/sandboxes/host/%s", home, id);
	else
		(void)sb_fail(err, SB_E_INVAL,
			"backend host: no place for sandboxes, HOME is not set");
	if (!dir && err && err->code == 0)
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
	return dir;
}

/* AUTO: nothing here isolates. */
static enum sb_host_runtime best = SB_HOST_RUNTIME_AUTO;
static bool best_outbound;

/*
 * Opens a runtime in a scratch directory, which it removes again, and tells its kind and whether
 * lists are enforced in it.
 */
static void
probe(enum sb_host_runtime kind, enum sb_host_runtime *out, bool *outbound)
{
	struct sb_host_opts ho = SB_HOST_OPTS_INIT;
	const struct sb_runtime_opts o = { .host = &ho, .key = "probe" };
	char dir[] = "/tmp/sb-probe-XXXXXX";
	sb_autoclose int tmp = -1;
	struct sb_runtime *rt;

	*outbound = false;
	if (!mkdtemp(dir))
		return;
	ho.state_dir = dir;
	rt = sb_runtime_open(kind, &o, NULL);
	if (rt) {
		*out = rt->ops->kind;
		*outbound = sb_runtime_network_check(rt, &ho, SB_HOST_NET_OUTBOUND, NULL) == 0;
		rt->ops->close(rt);
	}
	tmp = open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (tmp >= 0)
		(void)sb_path_remove_tree(tmp, dir + strlen("/tmp/"), NULL);
}

/* Learns which runtime a host would use here. */
static void
look_for_best(void)
{
	probe(SB_HOST_RUNTIME_AUTO, &best, &best_outbound);
}

/* AUTO where none is named and none isolates, which no host opens with. */
static enum sb_host_runtime
choose_runtime(const char *const *options)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	const char *name = sb_strlist_get(options, "runtime");
	enum sb_host_runtime r = SB_HOST_RUNTIME_AUTO;

	if (name && sb_host_runtime_from(name, &r) && r != SB_HOST_RUNTIME_AUTO)
		return r;
	(void)pthread_once(&once, look_for_best);
	return best;
}

static int
embed(struct sb_hostlink *l, const char *id, const char *const *options, bool make,
	struct sb_error *err)
{
	struct sb_host_opts o = SB_HOST_OPTS_INIT;
	sb_autofree char *dir = dir_of(id, err);
	sb_autofree char *state = dir ? sb_str_printf("%s/state", dir) : NULL;
	sb_autofree char *sessions = dir ? sb_str_printf("%s/sessions", dir) : NULL;
	sb_autofree char *socket = dir ? sb_str_printf("%s/s", dir) : NULL;
	sb_autoclose int fd = -1;
	struct stat st;

	if (!dir)
		return err->code;
	if (!state || !sessions || !socket)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	if (!make && stat(dir, &st) < 0)
		return sb_fail(err, SB_E_SANDBOX_NOT_FOUND, "%s: %s",
			sb_code_text(SB_E_SANDBOX_NOT_FOUND), id);
	if (strlen(socket) > SOCKET_PATH_MAX)
		return sb_fail(err, SB_E_INVAL,
			"backend host: %s is too long for a socket; set XDG_STATE_HOME to a "
			"shorter path",
			socket);
	fd = sb_owndir_open(dir, "", true, err);
	if (fd < 0)
		return fd;
	o.storage = SB_HOST_LOCAL_DISK;
	o.runtime = choose_runtime(options);
	/*
	 * Work in a sandbox that is there already comes back: the host runs it as it was made, and
	 * refuses where that is not possible any more.
	 */
	if (!make && o.runtime == SB_HOST_RUNTIME_AUTO)
		o.runtime = SB_HOST_RUNTIME_NONE;
	o.state_dir = state;
	o.sessions_root_dir = sessions;
	o.allow_host_network = true;
	l->address = sb_str_printf("unix:%s", socket);
	if (!l->address)
		return sb_fail(err, SB_E_NOMEM, "out of memory");
	l->embed = sb_rpc_embed_open(&o, socket, err);
	/* Another process has it and answers. */
	if (!l->embed && err->code != SB_E_LOCKED)
		return err->code;
	return 0;
}

struct sb_hostlink *
sb_hostlink_open(const char *id, const char *const *options, bool make, struct sb_error *err)
{
	const char *url = sb_strlist_get(options, "url"),
		   *token = sb_strlist_get(options, "token_file"),
		   *ca = sb_strlist_get(options, "ca_file");
	struct sb_hostlink *l = calloc(1, sizeof *l);
	struct sb_error why = { 0 };
	int r = l ? 0 : sb_fail(&why, SB_E_NOMEM, "out of memory");

	if (r == 0 && url) {
		l->address = strdup(url);
		l->token_file = token ? strdup(token) : NULL;
		l->ca_file = ca ? strdup(ca) : NULL;
		if (!l->address || (token && !l->token_file) || (ca && !l->ca_file))
			r = sb_fail(&why, SB_E_NOMEM, "out of memory");
	} else if (r == 0) {
		r = embed(l, id, options, make, &why);
	}
	if (r < 0) {
		sb_hostlink_free(l);
		if (err)
			*err = why;
		return NULL;
	}
	return l;
}

void
sb_hostlink_free(struct sb_hostlink *l)
{
	if (!l)
		return;
	sb_rpc_embed_close(l->embed);
	free(l->address);
	free(l->token_file);
	free(l->ca_file);
	free(l);
}

const char *
sb_hostlink_address(const struct sb_hostlink *l)
{
	return l->address;
}

/* The bearer token, or NULL: there is none. `keep` holds it. */
static int
read_token(const struct sb_hostlink *l, struct sb_buf *keep, const char **out, struct sb_error *err)
{
	int r;

	*out = NULL;
	if (!l->token_file)
		return 0;
	r = sb_file_read(AT_FDCWD, l->token_file, TOKEN_MAX, keep, err);
	if (r < 0)
		return r;
	keep->data[strcspn((const char *)keep->data, "\r\n")] = '\0';
	*out = (const char *)keep->data;
	return 0;
}

struct sb_env_host *
sb_hostlink_env(const struct sb_hostlink *l, struct sb_error *err)
{
	struct sb_env_host_opts o = SB_ENV_HOST_OPTS_INIT;
	sb_auto(sb_buf) struct sb_buf token = { 0 };
	struct sb_env_host *h;

	if (read_token(l, &token, &o.token, err) < 0)
		return NULL;
	o.address = l->address;
	o.ca_file = l->ca_file;
	h = sb_env_host_open(&o, err);
	if (token.len > 0)
		explicit_bzero(token.data, token.len);
	return h;
}

int
sb_hostlink_call(struct sb_hostlink *l, const char *method, const char *json,
	const struct sb_call *call, char **out, struct sb_error *err)
{
	struct sb_rpc_client_opts o = SB_RPC_CLIENT_OPTS_INIT;
	struct sb_rpc_wait w = { sb_call_cancel(call), sb_call_deadline(call) };
	sb_auto(sb_buf) struct sb_buf token = { 0 };
	sb_autofree char *answer = NULL;
	struct sb_rpc_client *c;
	size_t len;
	int r;

	o.address = l->address;
	o.ca_file = l->ca_file;
	r = read_token(l, &token, &o.token, err);
	if (r < 0)
		return r;
	c = sb_rpc_client_new(&o, err);
	if (token.len > 0)
		explicit_bzero(token.data, token.len);
	if (!c)
		return SB_E_INVAL;
	r = sb_rpc_client_call(c, method, json, &w, &answer, &len, err);
	sb_rpc_client_free(c);
	if (r == 0 && out)
		*out = sb_steal(&answer);
	return r;
}

/* Quotes a word for sbsync's --rsh. */
static void
add_word(struct sb_buf *b, const char *word)
{
	sb_buf_add_char(b, ' ');
	sb_quote_word(b, word);
}

char *
sb_hostlink_rsh(const struct sb_hostlink *l, struct sb_error *err)
{
	sb_autofree char *program = sb_beside_program("sbctl");
	sb_auto(sb_buf) struct sb_buf b;
	size_t len;

	sb_buf_init(&b, 65536);
	if (!program) {
		(void)sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	add_word(&b, program);
	sb_buf_add_str(&b, " host --host");
	add_word(&b, l->address);
	if (l->token_file) {
		sb_buf_add_str(&b, " --token-file");
		add_word(&b, l->token_file);
	}
	if (l->ca_file) {
		sb_buf_add_str(&b, " --ca-file");
		add_word(&b, l->ca_file);
	}
	sb_buf_add_str(&b, " attach");
	if (sb_buf_check(&b, "remote shell", err) < 0)
		return NULL;
	sb_buf_consume(&b, 1);
	return (char *)sb_buf_detach(&b, &len);
}

int
sb_hostlink_remove(const char *id, const char *const *options, struct sb_error *err)
{
	sb_autofree char *dir = NULL;
	sb_autoclose int parent = -1;
	char *slash;
	int r;

	if (sb_strlist_get(options, "url"))
		return 0;
	dir = dir_of(id, err);
	if (!dir)
		return err ? err->code : SB_E_INVAL;
	slash = strrchr(dir, '/');
	*slash = '\0';
	parent = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, "open %s", dir);
	r = sb_path_remove_tree(parent, slash + 1, err);
	return r == SB_E_NOTFOUND ? 0 : r;
}

const char *
sb_hostlink_isolation(const char *const *options)
{
	if (sb_strlist_get(options, "url"))
		return "none";
	switch (choose_runtime(options)) {
	case SB_HOST_RUNTIME_GVISOR: return "gvisor";
	case SB_HOST_RUNTIME_BWRAP: return "namespace";
	default: return "none";
	}
}

bool
sb_hostlink_lists(const char *const *options)
{
	enum sb_host_runtime kind, found;
	bool works = false;

	if (sb_strlist_get(options, "url"))
		return false;
	kind = choose_runtime(options);
	if (kind == SB_HOST_RUNTIME_NONE || kind == SB_HOST_RUNTIME_AUTO)
		return false;
	/* Found out with the runtime, unless that was named. */
	if (!sb_strlist_get(options, "runtime"))
		return best_outbound;
	probe(kind, &found, &works);
	return works;
}
