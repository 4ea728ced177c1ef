/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <egress/lookup.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/file.h>
#include <base/random.h>
#include <sb/cancel.h>

#define FILE_MAX_BYTES (1u << 20)
/* With addresses of one family there, so long is waited for the other. */
#define OTHER_FAMILY_MS 300
#define PAUSE_MS 100

/* A question of one type, to one server after the other. */
struct query {
	struct sb_source src; /* first */
	struct sb_lookup_job *job;
	uint16_t type, id;
	unsigned tries;
	int64_t again_ms;
	bool done;
	struct sb_dns_reply reply;
};

struct sb_lookup_job {
	struct sb_lookups *owner;
	struct sb_lookup_job *next;
	char name[SB_NETNAME_MAX];
	struct sb_lookup_wait *waits;
	int64_t began_ms;
	struct sb_lookup_server servers[SB_LOOKUP_SERVERS];
	size_t n_servers;
	bool settled; /* answered by the hosts file */
	struct sb_lookup_answer answer;
	struct query q[2];
};

struct sb_lookups {
	struct sb_lookup_opts o;
	struct sb_lookup_job *jobs;
	size_t n;
};

struct sb_lookups *
sb_lookup_open(const struct sb_lookup_opts *o, struct sb_error *err)
{
	struct sb_lookups *l = calloc(1, sizeof *l);

	if (!l) {
		(void)sb_fail(err, SB_E_NOMEM, "lookups");
		return NULL;
	}
	l->o = *o;
	return l;
}

static void
job_free(struct sb_lookup_job *j)
{
	for (int i = 0; i < 2; i++)
		sb_source_close(&j->q[i].src);
	free(j);
}

void
sb_lookup_close(struct sb_lookups *l)
{
	while (l && l->jobs) {
		struct sb_lookup_job *j = l->jobs;

		l->jobs = j->next;
		job_free(j);
	}
	free(l);
}

/* The words of a line, up to a comment, one after the other. */
static bool
next_word(const char **p, const char *end, const char **word, size_t *len)
{
	while (*p < end && (**p == ' ' || **p == '\t' || **p == '\r'))
		(*p)++;
	*word = *p;
	while (*p < end && !strchr(" \t\r#", **p))
		(*p)++;
	*len = (size_t)(*p - *word);
	return *len > 0;
}

static void
each_line_of(const char *text, size_t len, void (*line)(const char *s, const char *end, void *arg),
	void *arg)
{
	for (size_t at = 0; at < len;) {
		const char *s = text + at, *nl = memchr(s, '\n', len - at);
		size_t n = nl ? (size_t)(nl - s) : len - at;

		line(s, s + n, arg);
		at += n + 1;
	}
}

/* Calls `line` for each line of the file; a file that cannot be read has none. */
static void
each_line(const char *path, void (*line)(const char *s, const char *end, void *arg), void *arg)
{
	sb_auto(sb_buf) struct sb_buf text;

	if (sb_file_read(AT_FDCWD, path, FILE_MAX_BYTES, &text, NULL) == 0)
		each_line_of((const char *)text.data, text.len, line, arg);
}

static void
hosts_line(const char *s, const char *end, void *arg)
{
	struct sb_lookup_job *j = arg;
	const char *word;
	size_t len;
	struct sb_netaddr a;

	if (!next_word(&s, end, &word, &len) || !sb_netaddr_parse(word, len, &a))
		return;
	while (next_word(&s, end, &word, &len))
		if (len == strlen(j->name) && strncasecmp(word, j->name, len) == 0 &&
			j->answer.n < sizeof j->answer.v / sizeof j->answer.v[0]) {
			j->answer.v[j->answer.n++] = a;
			j->settled = true;
		}
}

static void
resolv_line(const char *s, const char *end, void *arg)
{
	struct sb_lookup_job *j = arg;
	const char *word;
	size_t len;

	if (!next_word(&s, end, &word, &len) || len != 10 || memcmp(word, "nameserver", 10) != 0 ||
		j->n_servers == SB_LOOKUP_SERVERS || !next_word(&s, end, &word, &len))
		return;
	if (sb_netaddr_parse(word, len, &j->servers[j->n_servers].addr))
		j->servers[j->n_servers++].port = 53;
}

static void
query_finish(struct query *q)
{
	q->done = true;
	sb_source_leave(&q->src, q->job->owner->o.epoll);
	sb_source_close(&q->src);
}

/* This server failed: the next one, at once or after a pause; none after two rounds. */
static void
query_failed(struct query *q)
{
	size_t n = q->job->n_servers;

	q->reply = (struct sb_dns_reply){ .rcode = SB_DNS_SERVFAIL };
	if (q->tries >= 2 * n)
		query_finish(q);
	else
		q->again_ms = sb_now_ms() + (q->tries % n == 0 ? PAUSE_MS : 0);
}

static void
query_ready(struct sb_source *s, uint32_t events)
{
	struct query *q = (struct query *)s;
	uint8_t buf[SB_DNS_MAX];

	(void)events;
	/* Some of what comes may be forged: as many looks as one answer can need. */
	for (int i = 0; i < 16 && !q->done; i++) {
		ssize_t n = recv(q->src.fd, buf, sizeof buf, MSG_DONTWAIT);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0) {
			if (errno != EAGAIN)
				query_failed(q);
			return;
		}
		if (!sb_dns_read_reply(buf, (size_t)n, q->id, q->job->name, q->type, &q->reply))
			continue;
		if (q->reply.rcode == SB_DNS_OK || q->reply.rcode == SB_DNS_NXDOMAIN)
			query_finish(q);
		else
			query_failed(q);
	}
}

/* Asks the next server from a new port with a new number. */
static void
query_send(struct query *q, int64_t now)
{
	struct sb_lookup_job *j = q->job;
	const struct sb_lookup_server *s = &j->servers[q->tries % j->n_servers];
	struct sockaddr_storage ss;
	socklen_t len = sb_netaddr_to_sockaddr(&s->addr, s->port, &ss);
	uint8_t buf[SB_DNS_REPLY];
	size_t n;

	sb_source_leave(&q->src, j->owner->o.epoll);
	sb_source_close(&q->src);
	q->tries++;
	q->again_ms = now + j->owner->o.retry_ms;
	if (sb_random(&q->id, sizeof q->id, NULL) < 0)
		return;
	n = sb_dns_write_query(q->id, j->name, q->type, buf);
	q->src.fd = socket(ss.ss_family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (q->src.fd < 0 || connect(q->src.fd, (struct sockaddr *)&ss, len) < 0 ||
		send(q->src.fd, buf, n, MSG_NOSIGNAL) < 0 ||
		sb_source_want(&q->src, j->owner->o.epoll, EPOLLIN) < 0)
		query_failed(q);
}

static struct sb_lookup_job *
job_new(struct sb_lookups *l, const char *name)
{
	struct sb_lookup_job *j = calloc(1, sizeof *j);

	if (!j)
		return NULL;
	j->owner = l;
	(void)memccpy(j->name, name, '\0', sizeof j->name - 1);
	j->began_ms = sb_now_ms();
	for (int i = 0; i < 2; i++)
		j->q[i] = (struct query){ .src = { .fd = -1, .ready = query_ready },
			.job = j,
			.type = i ? SB_DNS_AAAA : SB_DNS_A };
	if (strcmp(name, SB_NETNAME_HOST) == 0) {
		(void)sb_netaddr_parse("127.0.0.1", 9, &j->answer.v[0]);
		j->answer.n = 1;
		j->settled = true;
	}
	if (!j->settled && l->o.hosts)
		each_line_of(l->o.hosts, strlen(l->o.hosts), hosts_line, j);
	else if (!j->settled)
		each_line("/etc/hosts", hosts_line, j);
	if (j->settled) {
		j->answer.ttl = 60;
		return j;
	}
	memcpy(j->servers, l->o.servers, sizeof j->servers);
	j->n_servers = l->o.n_servers;
	if (j->n_servers == 0)
		each_line(l->o.resolv_conf ? l->o.resolv_conf : "/etc/resolv.conf", resolv_line, j);
	if (j->n_servers == 0) {
		j->settled = true;
		j->answer.why = "the host has no resolver";
	}
	return j;
}

int
sb_lookup_start(struct sb_lookups *l, const char *name, struct sb_lookup_wait *w,
	struct sb_error *err)
{
	struct sb_lookup_job *j = l->jobs;

	while (j && strcmp(j->name, name) != 0)
		j = j->next;
	if (!j) {
		if (l->n >= SB_LOOKUP_JOBS)
			return sb_fail(err, SB_E_LIMIT, "lookup of %s: %d are under way", name,
				SB_LOOKUP_JOBS);
		j = job_new(l, name);
		if (!j)
			return sb_fail(err, SB_E_NOMEM, "lookup of %s", name);
		j->next = l->jobs;
		l->jobs = j;
		l->n++;
	}
	w->job = j;
	w->next = j->waits;
	j->waits = w;
	return 0;
}

void
sb_lookup_cancel(struct sb_lookup_wait *w)
{
	struct sb_lookup_wait **p = w->job ? &w->job->waits : NULL;

	while (p && *p && *p != w)
		p = &(*p)->next;
	if (p && *p)
		*p = w->next;
	w->job = NULL;
}

static void
collect(struct sb_lookup_job *j)
{
	struct sb_lookup_answer *a = &j->answer;
	bool none = false;

	a->ttl = UINT32_MAX;
	for (int i = 0; i < 2; i++) {
		const struct query *q = &j->q[i];

		if (!q->done)
			continue;
		none = none || q->reply.rcode == SB_DNS_NXDOMAIN;
		if (q->reply.n > 0 && q->reply.ttl < a->ttl)
			a->ttl = q->reply.ttl;
		for (size_t k = 0; k < q->reply.n; k++)
			a->v[a->n++] = q->reply.v[k];
	}
	if (a->n > 0)
		return;
	a->nonexistent = none;
	if (none)
		a->why = "no such name";
	else if (j->q[0].reply.rcode == SB_DNS_SERVFAIL || j->q[1].reply.rcode == SB_DNS_SERVFAIL)
		a->why = "the host's resolvers failed";
	else if (j->q[0].done && j->q[1].done)
		a->why = "the name has no address";
	else
		a->why = "the host's resolvers do not answer";
}

/* True when there is nothing more to wait for. */
static bool
job_over(const struct sb_lookup_job *j, int64_t now)
{
	const struct query *q = j->q;
	bool some = (q[0].done && q[0].reply.n > 0) || (q[1].done && q[1].reply.n > 0);

	return j->settled || (q[0].done && q[1].done) ||
		now >= j->began_ms + j->owner->o.total_ms ||
		(some && now >= j->began_ms + OTHER_FAMILY_MS);
}

static void
job_end(struct sb_lookups *l, struct sb_lookup_job *j)
{
	struct sb_lookup_job **p = &l->jobs;

	while (*p != j)
		p = &(*p)->next;
	*p = j->next;
	l->n--;
	for (int i = 0; i < 2; i++)
		sb_source_leave(&j->q[i].src, l->o.epoll);
	if (!j->settled)
		collect(j);
	while (j->waits) {
		struct sb_lookup_wait *w = j->waits;

		j->waits = w->next;
		w->job = NULL;
		w->done(w, &j->answer);
	}
	job_free(j);
}

void
sb_lookup_tick(struct sb_lookups *l, int64_t now_ms)
{
	for (bool again = true; again;) {
		again = false;
		for (struct sb_lookup_job *j = l->jobs; j && !again; j = j->next) {
			for (int i = 0; i < 2 && !job_over(j, now_ms); i++)
				if (!j->q[i].done && now_ms >= j->q[i].again_ms)
					query_send(&j->q[i], now_ms);
			/* A caller may change the list: from the beginning. */
			if (job_over(j, now_ms)) {
				job_end(l, j);
				again = true;
			}
		}
	}
}

int64_t
sb_lookup_due(const struct sb_lookups *l)
{
	int64_t due = SB_NEVER;

	for (const struct sb_lookup_job *j = l->jobs; j; j = j->next) {
		due = sb_deadline_min(due, j->began_ms + l->o.total_ms);
		if (j->settled)
			due = 0;
		for (int i = 0; i < 2; i++)
			if (j->q[i].done && j->q[i].reply.n > 0)
				due = sb_deadline_min(due, j->began_ms + OTHER_FAMILY_MS);
			else if (!j->q[i].done)
				due = sb_deadline_min(due, j->q[i].again_ms);
	}
	return due;
}
