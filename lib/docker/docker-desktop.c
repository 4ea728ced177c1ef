/* SPDX-License-Identifier: MIT */
/* The token of the account that Docker Desktop is signed in to, by its backend's socket. */
#include "config.h"

#include <docker/docker-priv.h>

#include <curl/curl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <base/str.h>

#define TOKEN_MAX 65536
#define ASK_MS 5000L

static size_t
take(char *data, size_t one, size_t n, void *arg)
{
	struct sb_buf *b = arg;

	(void)one;
	sb_buf_add(b, data, n);
	return b->failed ? 0 : n;
}

/* Where Desktop listens: inside its own machine, or in the user's home. A new string. */
static char *
find_socket(void)
{
	static const char inside[] = "/run/host-services/backend.sock";
	const char *home = getenv("HOME");

	if (access(inside, F_OK) == 0)
		return strdup(inside);
	return home ? sb_str_printf("%s/.docker/desktop/backend.sock", home) : NULL;
}

/* The answer is a JSON string. */
static int
ask(const char *path, struct sb_buf *out)
{
	CURL *c = curl_easy_init();
	long status = 0;
	int r = -1;

	if (!c)
		return -1;
	(void)curl_easy_setopt(c, CURLOPT_UNIX_SOCKET_PATH, path);
	(void)curl_easy_setopt(c, CURLOPT_URL, "http://localhost/registry/token");
	(void)curl_easy_setopt(c, CURLOPT_NOPROXY, "*");
	(void)curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, ASK_MS);
	(void)curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, take);
	(void)curl_easy_setopt(c, CURLOPT_WRITEDATA, out);
	if (curl_easy_perform(c) == CURLE_OK &&
		curl_easy_getinfo(c, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK && status == 200)
		r = 0;
	curl_easy_cleanup(c);
	return r;
}

char *
sb_docker_desktop_token(void *arg)
{
	sb_autofree char *found = arg ? NULL : find_socket();
	const char *path = arg ? arg : found;
	sb_auto(sb_buf) struct sb_buf text;
	json_t *o = NULL;
	char *token;

	sb_buf_init(&text, TOKEN_MAX);
	if (path && access(path, F_OK) == 0 && ask(path, &text) == 0)
		o = json_loadb((const char *)text.data, text.len, JSON_DECODE_ANY, NULL);
	token = strdup(json_is_string(o) ? json_string_value(o) : "");
	json_decref(o);
	if (text.data && text.len)
		explicit_bzero(text.data, text.len);
	return token;
}
