/* SPDX-License-Identifier: MIT */
/*
 * Load on a unix socket: bench-rpc SOCKET METHOD JSON CLIENTS RATE SECONDS. CLIENTS connections
 * stay open. With RATE 0 each sends its next request as soon as it has its answer; else requests
 * are due at RATE a second, spread over the clients, and their time counts from when they were due,
 * sent late or not. ######## in JSON is another number in each request. Prints requests, errors,
 * requests a second and percentiles of the time in milliseconds, as one line of JSON.
 */
#include "config.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define ANSWER_MAX 65536

struct client {
	int fd;
	bool busy;
	int64_t due; /* of the request under way, or of the next */
	size_t got;
	char answer[ANSWER_MAX];
};

static struct client *clients;
static size_t n_clients;
static char request[65536];
static size_t request_len;
static char *place;         /* of the number in it */
static int64_t interval_ns; /* between two requests of one client, 0: none */
static uint32_t *times_us;
static size_t n_times, max_times, errors;

static int64_t
now_ns(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void
die(const char *what)
{
	perror(what);
	exit(1);
}

static void
send_request(struct client *c)
{
	static unsigned n;
	char digits[9];

	if (place) {
		(void)snprintf(digits, sizeof digits, "%08u", n++ % 100000000);
		memcpy(place, digits, 8);
	}
	if (send(c->fd, request, request_len, MSG_NOSIGNAL) != (ssize_t)request_len)
		die("send");
	c->busy = true;
	c->got = 0;
}

/* The length of a whole answer, 0 while it is not all there. */
static size_t
answer_len(struct client *c)
{
	const char *end, *field;

	c->answer[c->got] = '\0';
	end = strstr(c->answer, "\r\n\r\n");
	field = strcasestr(c->answer, "content-length:");
	if (!end || !field)
		return 0;
	return (size_t)(end + 4 - c->answer) + strtoul(field + 15, NULL, 10);
}

static void
read_answer(struct client *c)
{
	ssize_t n = recv(c->fd, c->answer + c->got, sizeof c->answer - 1 - c->got, MSG_DONTWAIT);
	int64_t now = now_ns();
	size_t len;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0)
		die("the server closed a connection");
	c->got += (size_t)n;
	len = answer_len(c);
	if (len == 0 || c->got < len)
		return;
	if (strncmp(c->answer, "HTTP/1.1 200", 12) != 0)
		errors++;
	if (n_times < max_times)
		times_us[n_times++] = (uint32_t)((now - c->due) / 1000);
	c->busy = false;
	c->due = interval_ns > 0 ? c->due + interval_ns : now;
}

static void
connect_all(const char *path, int ep)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	(void)snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
	for (size_t i = 0; i < n_clients; i++) {
		struct epoll_event ev = { .events = EPOLLIN, .data.u64 = i };

		clients[i].fd = socket(AF_UNIX, SOCK_STREAM, 0);
		if (clients[i].fd < 0 ||
			connect(clients[i].fd, (const struct sockaddr *)&a, sizeof a) < 0)
			die(path);
		(void)epoll_ctl(ep, EPOLL_CTL_ADD, clients[i].fd, &ev);
	}
}

static void
run(int ep, int64_t until)
{
	struct epoll_event ev[256];

	for (int64_t now = now_ns(); now < until; now = now_ns()) {
		int64_t next = now + 100000000;
		struct timespec wait;
		int n;

		for (size_t i = 0; i < n_clients; i++) {
			if (clients[i].busy)
				continue;
			if (clients[i].due <= now)
				send_request(&clients[i]);
			else if (clients[i].due < next)
				next = clients[i].due;
		}
		wait.tv_sec = 0;
		wait.tv_nsec = next - now;
		n = epoll_pwait2(ep, ev, 256, &wait, NULL);
		for (int i = 0; i < n; i++)
			read_answer(&clients[ev[i].data.u64]);
	}
}

static int
by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static double
percentile(double p)
{
	return n_times == 0 ? 0 : (double)times_us[(size_t)(p * (double)(n_times - 1))] / 1000;
}

int
main(int argc, char **argv)
{
	double rate, seconds;
	int64_t start;
	int ep = epoll_create1(0);

	if (argc != 7) {
		(void)fprintf(stderr, "usage: bench-rpc SOCKET METHOD JSON CLIENTS RATE SECONDS\n");
		return 2;
	}
	n_clients = strtoul(argv[4], NULL, 10);
	rate = strtod(argv[5], NULL);
	seconds = strtod(argv[6], NULL);
	max_times = 4u << 20;
	clients = calloc(n_clients, sizeof *clients);
	times_us = calloc(max_times, sizeof *times_us);
	if (!clients || !times_us || ep < 0)
		die("memory");
	request_len = (size_t)snprintf(request, sizeof request,
		"POST /rpc.v1.SandboxService/%s HTTP/1.1\r\nHost: x\r\nContent-Type: "
		"application/json\r\n"
		"Content-Length: %zu\r\n\r\n%s",
		argv[2], strlen(argv[3]), argv[3]);
	place = strstr(request, "########");
	/* Wake-ups at the very moment, not 50 microseconds later. */
	(void)prctl(PR_SET_TIMERSLACK, 1);
	connect_all(argv[1], ep);
	start = now_ns();
	if (rate > 0) {
		interval_ns = (int64_t)((double)n_clients / rate * 1e9);
		for (size_t i = 0; i < n_clients; i++)
			clients[i].due = start + (int64_t)((double)i / rate * 1e9);
	} else {
		for (size_t i = 0; i < n_clients; i++)
			clients[i].due = start;
	}
	run(ep, start + (int64_t)(seconds * 1e9));
	qsort(times_us, n_times, sizeof *times_us, by_value);
	(void)printf("{\"clients\":%zu,\"rate\":%.0f,\"requests\":%zu,\"errors\":%zu,\"per_"
		     "second\":%.0f,"
		     "\"p50_ms\":%.3f,\"p90_ms\":%.3f,\"p99_ms\":%.3f,\"max_ms\":%.3f}\n",
		n_clients, rate, n_times, errors, (double)n_times / seconds, percentile(0.5),
		percentile(0.9), percentile(0.99), percentile(1));
	return errors > 0;
}
