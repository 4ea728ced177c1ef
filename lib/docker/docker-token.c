/* SPDX-License-Identifier: MIT */
/* Keeps a token in a file that sandboxes see, as long as somebody wants it (sb/docker.h). */
#include "config.h"

#include <docker/docker-priv.h>

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <base/cond.h>
#include <base/file.h>

#define FILE_NAME "sandbox-tokens.json"
#define EVERY_MS 60000

struct sb_docker_token {
	int dir;
	sb_docker_token_fn token;
	void *arg;
	int64_t every_ms;
	pthread_t thread;
	pthread_mutex_t mu;
	pthread_cond_t wake;
	bool running, ending;
};

/* Docker Desktop's; where there is none, the one that somebody has put into our environment. */
static char *
from_desktop(void *arg)
{
	char *token = sb_docker_desktop_token(arg);
	const char *own = getenv("DOCKER_TOKEN");

	if (!token || *token || !own || !*own)
		return token;
	free(token);
	return strdup(own);
}

/* The file may be there, but as a plain file only. */
static int
check_target(int dir, struct sb_error *err)
{
	struct stat st;

	if (fstatat(dir, FILE_NAME, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : sb_fail_errno(err, FILE_NAME);
	return S_ISREG(st.st_mode) ?
		0 :
		sb_fail(err, SB_E_ESCAPE, FILE_NAME " is there already and is no plain file");
}

static int
write_token(struct sb_docker_token *t, struct sb_error *err)
{
	char *token = t->token(t->arg);
	json_t *o = NULL;
	char *text = NULL;
	int r = 0;

	if (!token)
		return 0;
	o = *token ? json_pack("{s:s}", "docker_token", token) : json_object();
	text = o ? json_dumps(o, JSON_COMPACT) : NULL;
	if (!text)
		r = sb_fail(err, SB_E_INVAL, "the token is no text");
	if (r == 0)
		r = check_target(t->dir, err);
	if (r == 0)
		r = sb_file_replace(t->dir, FILE_NAME, text, strlen(text), 0600, err);
	explicit_bzero(token, strlen(token));
	free(token);
	if (text)
		explicit_bzero(text, strlen(text));
	free(text);
	json_decref(o);
	return r;
}

static void *
refresh(void *arg)
{
	struct sb_docker_token *t = arg;
	(void)pthread_mutex_lock(&t->mu);
	while (!t->ending) {
		sb_deadline at = sb_deadline_in(t->every_ms);

		while (!t->ending && !sb_deadline_passed(at))
			sb_cond_wait_until(&t->wake, &t->mu, at);
		if (t->ending)
			break;
		(void)pthread_mutex_unlock(&t->mu);
		(void)write_token(t, NULL); /* the next one may do better */
		(void)pthread_mutex_lock(&t->mu);
	}
	(void)pthread_mutex_unlock(&t->mu);
	return NULL;
}

static int
open_dir(const char *path, struct sb_error *err)
{
	int r = sb_file_mkdirs(path, 0700, err), fd;

	if (r < 0)
		return r;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? sb_fail_errno(err, "%s", path) : fd;
}

struct sb_docker_token *
sb_docker_token_start(const struct sb_docker_token_opts *given, struct sb_error *err)
{
	struct sb_docker_token_opts o = SB_DOCKER_TOKEN_OPTS_INIT;
	struct sb_docker_token *t;
	int r;

	memcpy(&o, given, given->size < sizeof o ? given->size : sizeof o);
	if (!o.gateway || !*o.gateway)
		return NULL;
	t = calloc(1, sizeof *t);
	if (!t) {
		sb_fail(err, SB_E_NOMEM, "out of memory");
		return NULL;
	}
	t->token = o.token ? o.token : from_desktop;
	t->arg = o.arg;
	t->every_ms = o.every_ms > 0 ? o.every_ms : EVERY_MS;
	(void)pthread_mutex_init(&t->mu, NULL);
	sb_cond_init(&t->wake);
	t->dir = open_dir(o.dir, err);
	r = t->dir < 0 ? t->dir : write_token(t, err);
	if (r == 0 && pthread_create(&t->thread, NULL, refresh, t) != 0)
		r = sb_fail(err, SB_E_NOMEM, "no thread for the token");
	t->running = r == 0;
	if (r < 0) {
		sb_docker_token_free(t);
		return NULL;
	}
	return t;
}

void
sb_docker_token_stop(struct sb_docker_token *t)
{
	if (!t || !t->running)
		return;
	(void)pthread_mutex_lock(&t->mu);
	t->ending = true;
	(void)pthread_cond_signal(&t->wake);
	(void)pthread_mutex_unlock(&t->mu);
	(void)pthread_join(t->thread, NULL);
	t->running = false;
	if (check_target(t->dir, NULL) == 0)
		(void)unlinkat(t->dir, FILE_NAME, 0);
}

void
sb_docker_token_free(struct sb_docker_token *t)
{
	if (!t)
		return;
	sb_docker_token_stop(t);
	if (t->dir >= 0)
		(void)close(t->dir);
	(void)pthread_cond_destroy(&t->wake);
	(void)pthread_mutex_destroy(&t->mu);
	free(t);
}
