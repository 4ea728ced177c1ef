/* SPDX-License-Identifier: MIT */
/*
 * slowlink TO_PORT RTT_MS MBIT: a relay on 127.0.0.1 that behaves like a longer and thinner wire
 * and counts what passes.
 *
 * Prints the port it listens on. Each direction is one wire that all connections share: a byte
 * leaves when those before it have left (MBIT, 0: at once) and arrives half a round trip later. A
 * connection costs its round trip for SYN and SYN-ACK. At most two bandwidth-delay products (256
 * KiB at least) are under way in one direction of a connection; then the sender is stopped, as by a
 * full window. Commands on stdin: "stats" prints bytes and connections since the last "reset"; the
 * end of stdin ends the relay. Bytes are TCP payload; headers would add 3 to 4 %.
 */
#include "config.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
	MAX_CONNS = 256,
	BIG_CHUNK = 64 << 10,
	WINDOW_MIN = 256 << 10,
};

/* Bytes on their way, in the order they arrive. The one with len 0 is the end of the stream. */
struct parcel {
	struct parcel *next;
	double due;
	size_t len, sent;
	uint8_t data[];
};

struct wire {
	double free_at;
	uint64_t bytes;
};

struct pipe_end {
	int from, to;
	struct wire *wire;
	struct parcel *first, *last;
	size_t held;
	double not_before; /* nothing leaves earlier: the connection is not there yet */
	bool read_done, done;
};

struct conn {
	bool used;
	int client, server;
	double connect_at; /* > 0: the far side is still to be called */
	struct pipe_end up, down;
};

static struct {
	int to_port;
	double rtt, rate; /* seconds; bytes a second, 0: no limit */
	size_t window, chunk;
	struct wire up, down;
	uint64_t connections;
	struct conn conns[MAX_CONNS];
} g;

static double
now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
tune(int fd)
{
	int one = 1, size = WINDOW_MIN;

	(void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	/* The kernel's own buffers would hide megabytes of queue behind a slow wire. */
	if (g.rate > 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
}

static void
drop(struct conn *c)
{
	struct pipe_end *ends[] = { &c->up, &c->down };

	for (int i = 0; i < 2; i++) {
		while (ends[i]->first) {
			struct parcel *p = ends[i]->first;

			ends[i]->first = p->next;
			free(p);
		}
	}
	(void)close(c->client);
	if (c->server >= 0)
		(void)close(c->server);
	memset(c, 0, sizeof *c);
}

static void
accept_one(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	double t = now();

	if (fd < 0)
		return;
	for (int i = 0; i < MAX_CONNS; i++) {
		struct conn *c = &g.conns[i];

		if (c->used)
			continue;
		tune(fd);
		*c = (struct conn){ .used = true, .client = fd, .server = -1 };
		/*
		 * SYN and SYN-ACK take one round trip; the server's accept sees the ACK half a one
		 * later.
		 */
		c->connect_at = t + g.rtt * 1.5;
		c->up = (struct pipe_end){ .from = fd,
			.to = -1,
			.wire = &g.up,
			.not_before = t + g.rtt };
		c->down = (struct pipe_end){ .from = -1, .to = fd, .wire = &g.down };
		g.connections++;
		return;
	}
	(void)close(fd);
}

static bool
call_server(struct conn *c)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons((uint16_t)g.to_port),
		.sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	c->connect_at = 0;
	if (fd < 0)
		return false;
	c->server = c->up.to = c->down.from = fd;
	tune(fd);
	return connect(fd, (struct sockaddr *)&a, sizeof a) == 0 &&
		fcntl(fd, F_SETFL, O_NONBLOCK) == 0;
}

/* Takes what the sender has and gives it its time of arrival. False: the connection broke. */
static bool
take_in(struct pipe_end *p)
{
	double t;

	while (!p->read_done && p->held < g.window) {
		struct parcel *b = malloc(sizeof *b + g.chunk);
		ssize_t n;

		if (!b)
			return false;
		n = read(p->from, b->data, g.chunk);
		if (n < 0) {
			bool again = errno == EAGAIN || errno == EINTR;

			free(b);
			return again;
		}
		t = now();
		if (t < p->not_before)
			t = p->not_before;
		if (g.rate > 0) {
			p->wire->free_at =
				(p->wire->free_at > t ? p->wire->free_at : t) + (double)n / g.rate;
			t = p->wire->free_at;
		}
		b->next = NULL;
		b->due = t + g.rtt / 2;
		b->len = (size_t)n;
		b->sent = 0;
		*(p->first ? &p->last->next : &p->first) = b;
		p->last = b;
		p->held += (size_t)n;
		p->wire->bytes += (uint64_t)n;
		p->read_done = n == 0;
	}
	return true;
}

/* Delivers what is due. False: the connection broke. */
static bool
give_out(struct pipe_end *p, double t)
{
	while (p->to >= 0 && p->first && p->first->due <= t) {
		struct parcel *b = p->first;

		if (b->len == 0) {
			(void)shutdown(p->to, SHUT_WR);
			p->done = true;
		}
		while (b->sent < b->len) {
			ssize_t n = send(p->to, b->data + b->sent, b->len - b->sent, MSG_NOSIGNAL);

			if (n < 0)
				return errno == EAGAIN || errno == EINTR;
			b->sent += (size_t)n;
			p->held -= (size_t)n;
		}
		p->first = b->next;
		free(b);
	}
	return true;
}

/* What this direction waits for. Lowers `*wake` to its next arrival. */
static void
wait_for(struct pipe_end *p, struct pollfd *from, struct pollfd *to, double t, double *wake)
{
	if (p->from >= 0 && !p->read_done && p->held < g.window)
		from->events |= POLLIN;
	if (!p->first || p->to < 0)
		return;
	if (p->first->due <= t)
		to->events |= POLLOUT;
	else if (p->first->due < *wake)
		*wake = p->first->due;
}

/* Moves everything that can move now. */
static void
serve(struct conn *c)
{
	double t = now();

	if (c->connect_at > 0 && t >= c->connect_at && !call_server(c)) {
		drop(c);
		return;
	}
	if (!take_in(&c->up) || (c->server >= 0 && !take_in(&c->down)) ||
		!give_out(&c->up, now()) || !give_out(&c->down, now()) ||
		(c->up.done && c->down.done))
		drop(c);
}

static bool
command(void)
{
	char buf[256];
	ssize_t n = read(0, buf, sizeof buf - 1);

	if (n <= 0)
		return n < 0 && (errno == EAGAIN || errno == EINTR);
	buf[n] = 0;
	if (strstr(buf, "stats")) {
		printf("{\"up\":%llu,\"down\":%llu,\"connections\":%llu}\n",
			(unsigned long long)g.up.bytes, (unsigned long long)g.down.bytes,
			(unsigned long long)g.connections);
		(void)fflush(stdout);
	}
	if (strstr(buf, "reset")) {
		g.up.bytes = g.down.bytes = 0;
		g.connections = 0;
	}
	return true;
}

static int
run(int listener)
{
	struct pollfd fds[2 + 2 * MAX_CONNS];

	for (;;) {
		double t = now(), wake = t + 3600;
		struct timespec wait;
		nfds_t n = 2;

		fds[0] = (struct pollfd){ .fd = 0, .events = POLLIN };
		fds[1] = (struct pollfd){ .fd = listener, .events = POLLIN };
		for (int i = 0; i < MAX_CONNS; i++) {
			struct conn *c = &g.conns[i];

			if (!c->used)
				continue;
			fds[n] = (struct pollfd){ .fd = c->client };
			fds[n + 1] = (struct pollfd){ .fd = c->server };
			if (c->connect_at > 0 && c->connect_at < wake)
				wake = c->connect_at;
			wait_for(&c->up, &fds[n], &fds[n + 1], t, &wake);
			wait_for(&c->down, &fds[n + 1], &fds[n], t, &wake);
			/*
			 * A descriptor that is done both ways would only wake us with its hang-up.
			 */
			for (int k = 0; k < 2; k++)
				if (!fds[n + (nfds_t)k].events)
					fds[n + (nfds_t)k].fd = -1;
			n += 2;
		}
		t = now();
		wake = wake > t ? wake - t : 0;
		wait = (struct timespec){ .tv_sec = (time_t)wake,
			.tv_nsec = (long)((wake - (double)(time_t)wake) * 1e9) };
		if (ppoll(fds, n, &wait, NULL) < 0 && errno != EINTR)
			return 1;
		if (fds[0].revents && !command())
			return 0;
		if (fds[1].revents)
			accept_one(listener);
		for (int i = 0; i < MAX_CONNS; i++)
			if (g.conns[i].used)
				serve(&g.conns[i]);
	}
}

static int
listen_somewhere(void)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	socklen_t len = sizeof a;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -1;
	tune(fd);
	if (bind(fd, (struct sockaddr *)&a, sizeof a) < 0 || listen(fd, 64) < 0 ||
		getsockname(fd, (struct sockaddr *)&a, &len) < 0) {
		(void)close(fd);
		return -1;
	}
	printf("%d\n", ntohs(a.sin_port));
	(void)fflush(stdout);
	return fd;
}

int
main(int argc, char **argv)
{
	double bdp;
	int fd;

	if (argc != 4) {
		(void)fprintf(stderr, "usage: slowlink TO_PORT RTT_MS MBIT\n");
		return 2;
	}
	g.to_port = (int)strtol(argv[1], NULL, 10);
	g.rtt = strtod(argv[2], NULL) / 1e3;
	g.rate = strtod(argv[3], NULL) * 1e6 / 8;
	bdp = g.rate * g.rtt;
	g.window = 2 * bdp > WINDOW_MIN ? (size_t)(2 * bdp) : WINDOW_MIN;
	/* A parcel is a millisecond of the wire: its last byte decides when it arrives. */
	g.chunk = g.rate > 0 && g.rate / 1e3 < BIG_CHUNK ? (size_t)(g.rate / 1e3) + 1 : BIG_CHUNK;
	if (g.rate <= 0) {
		g.window = 8 << 20;
		g.chunk = BIG_CHUNK;
	}
	fd = listen_somewhere();
	if (fd < 0) {
		(void)fprintf(stderr, "slowlink: listen: %s\n", strerror(errno));
		return 1;
	}
	return run(fd);
}
