/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-store.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include <base/file.h>
#include <base/owndir.h>
#include <base/procid.h>
#include <base/str.h>
#include <sync/tree/digest.h>
#include <sync/replica/replica.h>
#include <sync/session/session-conflicts.h>

/*
 * A session's file: lines of "key value", values with the bytes below 0x21, '\' and 0x7f and above
 * as \xNN; the first line names format and version, the last is the XXH3-128 of all before it.
 * Unknown keys are refused only with a newer version.
 */
#define SESSION_VERSION 2 /* 1: no conflict rules, four fields in the list of conflicts */
#define FILE_NAME "session"
#define FILE_MAX (1u << 20)
#define BEAT_NAME "heartbeat"

/* Optional texts. */
static const struct {
	const char *key;
	size_t at;
} texts[] = {
	{ "error", offsetof(struct sb_session, last_error) },
	{ "identity_file", offsetof(struct sb_session, identity_file) },
	{ "ssh_config", offsetof(struct sb_session, ssh_config) },
	{ "known_hosts", offsetof(struct sb_session, known_hosts) },
	{ "rsh", offsetof(struct sb_session, rsh) },
};

static const char *const state_names[] = { "starting", "active", "unsynced", "orphaned",
	"stopped" };

const char *
sb_session_state_name(enum sb_session_state s)
{
	return (unsigned)s < sizeof state_names / sizeof state_names[0] ? state_names[s] :
									  "unknown";
}

void
sb_session_free(struct sb_session *s)
{
	free(s->name);
	for (size_t i = 0; i < s->n_pairs; i++) {
		free(s->pairs[i].local);
		free(s->pairs[i].remote);
	}
	free(s->pairs);
	for (size_t i = 0; i < s->n_rules; i++)
		free(s->rules[i].pattern);
	free(s->rules);
	free(s->last_error);
	free(s->identity_file);
	free(s->ssh_config);
	free(s->known_hosts);
	free(s->rsh);
	sb_strlist_free(&s->labels);
	memset(s, 0, sizeof *s);
}

void
sb_session_list_free(struct sb_session_list *l)
{
	for (size_t i = 0; i < l->n; i++)
		sb_session_free(&l->v[i]);
	free(l->v);
	sb_strlist_free(&l->bad);
	memset(l, 0, sizeof *l);
}

char *
sb_session_dir(const char *given, struct sb_error *err)
{
	char *s = given ? strdup(given) : sb_replica_state_dir(err);

	if (given && !s)
		sb_fail(err, SB_E_NOMEM, "state directory: out of memory");
	return s;
}

bool
sb_session_name_ok(const char *name)
{
	size_t n = strlen(name);

	return n >= 1 && n <= 64 && name[0] != '.' && name[0] != '-' &&
		strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") ==
		n;
}

int
sb_session_open_dir(const char *state_dir, const char *name, bool create, struct sb_error *err)
{
	sb_autofree char *path = NULL;
	int fd;

	if (!sb_session_name_ok(name))
		return sb_fail(err, SB_E_INVAL,
			"'%s' is not a session name: use letters, digits, '-', '_' and '.'", name);
	path = sb_str_printf("sessions/%s", name);
	if (!path)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	/* A session names the command that reaches its runtime: only ours are believed. */
	fd = sb_owndir_open(state_dir, path, create, err);
	if (fd == SB_E_NOTFOUND)
		return sb_fail(err, SB_E_NOTFOUND,
			"there is no session '%s'; 'sbsync ls' lists them", name);
	return fd;
}

uint64_t
sb_session_proc_start(int64_t pid)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	char path[64];
	const char *p;
	unsigned long long start = 0;
	int skip = 19;

	(void)snprintf(path, sizeof path, "/proc/%lld/stat", (long long)pid);
	if (pid <= 0 || sb_file_read(AT_FDCWD, path, 4096, &b, NULL) < 0)
		return 0;
	/* The name in parentheses may hold anything; the start time is the 20th field behind it. */
	p = strrchr((char *)b.data, ')');
	for (p = p ? p + 1 : NULL; p && skip >= 0; skip--) {
		p = strchr(p, ' ');
		p = p ? p + 1 : NULL;
	}
	if (p)
		start = strtoull(p, NULL, 10);
	return start;
}

bool
sb_session_owned(const struct sb_session *s)
{
	if (s->owner_pid)
		/* One that was gone when the session was made has no start, and never will. */
		return s->owner_start && sb_session_proc_start(s->owner_pid) == s->owner_start;
	/* A clock that was set back must not keep it alive for ever. */
	return s->heartbeat && s->heartbeat + SB_SESSION_HEARTBEAT_S > time(NULL) &&
		s->heartbeat <= time(NULL) + 60;
}

/*
 * A heartbeat is a moment of this machine's running time, so that setting the clock does not make
 * it older or younger: the file holds "BOOT-ID SECONDS\n".
 */
static bool
running_time(char boot[SB_PROCID_BOOT_SIZE], int64_t *s)
{
	struct timespec now;

	if (!*sb_procid_boot(boot) || clock_gettime(CLOCK_BOOTTIME, &now) < 0)
		return false;
	*s = now.tv_sec;
	return true;
}

/*
 * The time of the last heartbeat by the clock as it is now; by the file's own time when the machine
 * was started anew since. 0: none.
 */
static int64_t
last_beat(int dirfd)
{
	sb_autoclose int fd = openat(dirfd, BEAT_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	char text[128] = "", boot[SB_PROCID_BOOT_SIZE];
	struct stat st;
	int64_t now, then;
	ssize_t n;
	char *space;

	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	n = read(fd, text, sizeof text - 1);
	text[n < 0 ? 0 : n] = 0;
	space = strchr(text, ' ');
	if (!space || !running_time(boot, &now))
		return st.st_mtime;
	*space = 0;
	then = strtoll(space + 1, NULL, 10);
	return strcmp(text, boot) == 0 && then <= now ? time(NULL) - (now - then) : st.st_mtime;
}

int
sb_session_beat(const struct sb_session *s, const char *state_dir, struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	sb_autoclose int fd = dir ? sb_session_open_dir(dir, s->name, false, err) : -1;
	sb_autoclose int beat = -1;
	char boot[SB_PROCID_BOOT_SIZE], text[128];
	int64_t now;

	if (fd < 0)
		return err ? err->code : SB_E_SYS;
	beat = openat(fd, BEAT_NAME, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (beat < 0 || futimens(beat, NULL) < 0)
		return sb_fail_errno(err, "heartbeat of session '%s'", s->name);
	if (running_time(boot, &now)) {
		int n = snprintf(text, sizeof text, "%s %020lld\n", boot, (long long)now);

		/* Always of one length, so that a reader never sees half of two. */
		if (pwrite(beat, text, (size_t)n, 0) != n || ftruncate(beat, n) < 0)
			return sb_fail_errno(err, "heartbeat of session '%s'", s->name);
	}
	return 0;
}

static void
add_text(struct sb_buf *b, const char *key, const char *value)
{
	sb_buf_addf(b, "%s ", key);
	for (const unsigned char *p = (const unsigned char *)value; *p; p++) {
		if (*p <= 0x20 || *p == '\\' || *p >= 0x7f)
			sb_buf_addf(b, "\\x%02x", *p);
		else
			sb_buf_add_char(b, (char)*p);
	}
	sb_buf_add_char(b, '\n');
}

int
sb_session_save(int dirfd, const struct sb_session *s, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	struct sb_digest d;
	char hex[33];
	int r;

	sb_buf_init(&b, FILE_MAX);
	sb_buf_addf(&b, "sbsync-session %d\n", SESSION_VERSION);
	add_text(&b, "name", s->name);
	add_text(&b, "state", sb_session_state_name(s->state));
	add_text(&b, "identity", sb_str_hex(s->identity, 16, hex));
	sb_buf_addf(&b,
		"created %lld\nlast_sync %lld\nowner %lld %llu\nfailures %u\nnext_try %lld\n",
		(long long)s->created, (long long)s->last_sync, (long long)s->owner_pid,
		(unsigned long long)s->owner_start, s->failures, (long long)s->next_try);
	for (size_t i = 0; i < s->n_pairs; i++) {
		add_text(&b, "pair", sb_str_hex(s->pairs[i].id, 16, hex));
		add_text(&b, "local", s->pairs[i].local);
		add_text(&b, "remote", s->pairs[i].remote);
	}
	sb_buf_addf(&b, "port %lld\n", (long long)s->port);
	add_text(&b, "conflict", sb_session_conflict_name(s->conflict));
	for (size_t i = 0; i < s->n_rules; i++) {
		add_text(&b, "rule", s->rules[i].pattern);
		add_text(&b, "rule_how", sb_session_conflict_name(s->rules[i].how));
	}
	if (s->paused)
		sb_buf_addf(&b, "paused %lld\n", (long long)s->paused);
	for (size_t i = 0; i < s->labels.n; i++)
		add_text(&b, "label", s->labels.v[i]);
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		char *v = *(char *const *)((const char *)s + texts[i].at);

		if (v)
			add_text(&b, texts[i].key, v);
	}
	r = sb_buf_check(&b, "session", err);
	if (r < 0)
		return r;
	d = sb_digest_of(b.data, b.len);
	sb_buf_addf(&b, "sum %s\n", sb_str_hex(d.b, 16, hex));
	r = sb_buf_check(&b, "session", err);
	return r < 0 ? r : sb_file_replace(dirfd, FILE_NAME, b.data, b.len, 0600, err);
}

/* Undoes add_text's escapes in place. */
static bool
plain(char *s)
{
	char *to = s;

	while (*s) {
		uint8_t byte;

		if (*s != '\\') {
			*to++ = *s++;
			continue;
		}
		if (s[1] != 'x' || !s[2] || !s[3])
			return false;
		{
			char two[3] = { s[2], s[3], 0 };

			if (!sb_str_unhex(two, &byte, 1) || !byte)
				return false;
		}
		*to++ = (char)byte;
		s += 4;
	}
	*to = 0;
	return true;
}

static int
add_pair(struct sb_session *s, struct sb_error *err)
{
	struct sb_session_pair *v = realloc(s->pairs, (s->n_pairs + 1) * sizeof *v);

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	s->pairs = v;
	memset(&v[s->n_pairs++], 0, sizeof *v);
	return 0;
}

int
sb_session_add_rule(struct sb_session *s, const char *pattern, enum sb_session_conflict how,
	struct sb_error *err)
{
	struct sb_session_rule *v = realloc(s->rules, (s->n_rules + 1) * sizeof *v);

	if (!v)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	s->rules = v;
	v[s->n_rules].how = how;
	v[s->n_rules].pattern = strdup(pattern);
	if (!v[s->n_rules].pattern)
		return sb_fail(err, SB_E_NOMEM, "session: out of memory");
	s->n_rules++;
	return 0;
}

/* conflict, rule, rule_how, label; 1: it was another key. */
static int
take_conflict(struct sb_session *s, const char *key, char *value, struct sb_error *err)
{
	if (strcmp(key, "rule") == 0)
		return plain(value) ? sb_session_add_rule(s, value, SB_SESSION_KEEP_BOTH, err) :
				      SB_E_CORRUPT;
	if (strcmp(key, "rule_how") == 0)
		return s->n_rules && sb_session_conflict_of(value, &s->rules[s->n_rules - 1].how) ?
			0 :
			SB_E_CORRUPT;
	if (strcmp(key, "label") == 0) {
		if (!plain(value) || !sb_session_label_ok(value))
			return SB_E_CORRUPT;
		sb_strlist_add(&s->labels, value);
		return sb_strlist_check(&s->labels, err);
	}
	if (strcmp(key, "conflict") == 0)
		return sb_session_conflict_of(value, &s->conflict) ? 0 : SB_E_CORRUPT;
	return 1;
}

static int
take_line(struct sb_session *s, const char *key, char *value, struct sb_error *err)
{
	struct sb_session_pair *pair = s->n_pairs ? &s->pairs[s->n_pairs - 1] : NULL;
	char **text = NULL;
	int r = take_conflict(s, key, value, err);

	if (r <= 0)
		return r;

	if (strcmp(key, "name") == 0)
		text = &s->name;
	else if (strcmp(key, "local") == 0 && pair)
		text = &pair->local;
	else if (strcmp(key, "remote") == 0 && pair)
		text = &pair->remote;
	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
		if (strcmp(key, texts[i].key) == 0)
			text = (char **)((char *)s + texts[i].at);
	if (text) {
		free(*text);
		*text = plain(value) ? strdup(value) : NULL;
		return *text ? 0 : SB_E_CORRUPT;
	}
	if (strcmp(key, "pair") == 0)
		return add_pair(s, err) < 0                                  ? SB_E_NOMEM :
			sb_str_unhex(value, s->pairs[s->n_pairs - 1].id, 16) ? 0 :
									       SB_E_CORRUPT;
	if (strcmp(key, "identity") == 0)
		return sb_str_unhex(value, s->identity, 16) ? 0 : SB_E_CORRUPT;
	if (strcmp(key, "state") == 0) {
		for (size_t i = 0; i < sizeof state_names / sizeof state_names[0]; i++)
			if (strcmp(value, state_names[i]) == 0) {
				s->state = (enum sb_session_state)i;
				return 0;
			}
		return SB_E_CORRUPT;
	}
	if (strcmp(key, "port") == 0)
		return sb_str_to_i64(value, 0, 65535, &s->port) ? 0 : SB_E_CORRUPT;
	if (strcmp(key, "created") == 0)
		return sb_str_to_i64(value, 0, INT64_MAX, &s->created) ? 0 : SB_E_CORRUPT;
	if (strcmp(key, "last_sync") == 0)
		return sb_str_to_i64(value, 0, INT64_MAX, &s->last_sync) ? 0 : SB_E_CORRUPT;
	if (strcmp(key, "next_try") == 0)
		return sb_str_to_i64(value, 0, INT64_MAX, &s->next_try) ? 0 : SB_E_CORRUPT;
	if (strcmp(key, "paused") == 0)
		return sb_str_to_i64(value, 0, INT64_MAX, &s->paused) ? 0 : SB_E_CORRUPT;
	if (strcmp(key, "owner") == 0)
		return sscanf(value, "%" SCNd64 " %" SCNu64, &s->owner_pid, &s->owner_start) == 2 ?
			0 :
			SB_E_CORRUPT;
	if (strcmp(key, "failures") == 0)
		return sscanf(value, "%" SCNu32, &s->failures) == 1 ? 0 : SB_E_CORRUPT;
	return 0; /* of an older or a compatible later version */
}

static int
parse(char *text, size_t len, const char *name, struct sb_session *out, struct sb_error *err)
{
	char *sum = len > 4 ? strstr(text, "\nsum ") : NULL, *line = text, *save = NULL;
	uint8_t want[16];
	struct sb_digest d;
	int version = 0;

	if (sscanf(text, "sbsync-session %d", &version) == 1 && version > SESSION_VERSION)
		return sb_fail(err, SB_E_VERSION,
			"session '%s' was made by a newer sbsync (format %d, this one knows %d): "
			"use that one",
			name, version, SESSION_VERSION);
	if (!sum || version < 1)
		return sb_fail(err, SB_E_CORRUPT, "the file of session '%s' is damaged", name);
	d = sb_digest_of(text, (size_t)(sum + 1 - text));
	sum[37] = 0;
	if (!sb_str_unhex(sum + 5, want, 16) || memcmp(want, d.b, 16) != 0)
		return sb_fail(err, SB_E_CORRUPT, "the file of session '%s' is damaged", name);
	sum[1] = 0;
	for (line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *value = strchr(line, ' ');

		if (!value)
			continue;
		*value++ = 0;
		if (take_line(out, line, value, err) < 0)
			return sb_fail(err, SB_E_CORRUPT,
				"the file of session '%s' is damaged at '%s'", name, line);
	}
	for (size_t i = 0; i < out->n_pairs; i++)
		if (!out->pairs[i].local || !out->pairs[i].remote)
			return sb_fail(err, SB_E_CORRUPT, "the file of session '%s' is damaged",
				name);
	if (!out->name || !out->n_pairs || strcmp(out->name, name) != 0)
		return sb_fail(err, SB_E_CORRUPT, "the file of session '%s' is damaged", name);
	return version;
}

static int
load_named(const char *dir, const char *name, struct sb_session *out, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	sb_autoclose int fd = sb_session_open_dir(dir, name, false, err);
	int r;

	if (fd < 0)
		return fd;
	memset(out, 0, sizeof *out);
	r = sb_file_read(fd, FILE_NAME, FILE_MAX, &b, err);
	if (r == SB_E_NOTFOUND)
		return sb_fail(err, r, "there is no session '%s'; 'sbsync ls' lists them", name);
	if (r == 0)
		r = parse((char *)b.data, b.len, name, out, err);
	if (r < 0) {
		sb_session_free(out);
		return r;
	}
	out->heartbeat = last_beat(fd);
	return r;
}

int
sb_session_upgrade(int dirfd, const char *name, struct sb_error *err)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	sb_auto(sb_session) struct sb_session s = { 0 };
	int r = sb_file_read(dirfd, FILE_NAME, FILE_MAX, &b, err);

	if (r < 0)
		return r == SB_E_NOTFOUND ? 0 : r;
	r = parse((char *)b.data, b.len, name, &s, err);
	if (r < 0 || r == SESSION_VERSION)
		return r < 0 ? r : 0;
	/* Its own file is last: until then all of it is done again. */
	r = sb_session_conflicts_upgrade(dirfd, err);
	return r < 0 ? r : sb_session_save(dirfd, &s, err);
}

static int
add_bad(struct sb_session_list *l, const char *line, struct sb_error *err)
{
	int r;

	sb_strlist_add(&l->bad, line);
	r = sb_strlist_check(&l->bad, err);
	if (r < 0)
		sb_session_list_free(l);
	return r;
}

int
sb_session_load_all(const char *state_dir, struct sb_session_list *out, struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	struct sb_error denied = { 0 };
	int fd = dir ? sb_owndir_open(dir, "sessions", false, &denied) : SB_E_NOMEM;
	sb_autoclosedir DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	memset(out, 0, sizeof *out);
	if (fd == SB_E_NOTFOUND)
		return 0;
	if (fd < 0 && dir && err)
		*err = denied;
	if (fd < 0)
		return fd;
	if (!d) {
		(void)close(fd);
		return sb_fail_errno(err, "read the sessions in %s", dir);
	}
	while ((e = readdir(d))) {
		struct sb_error why = { 0 };
		struct sb_session s;
		int r;

		if (!sb_session_name_ok(e->d_name))
			continue;
		r = load_named(dir, e->d_name, &s, &why);
		if (r < 0) {
			/* A folder without its file is one that is being made or removed. */
			if (r != SB_E_NOTFOUND && add_bad(out, why.msg, err) < 0)
				return SB_E_NOMEM;
			continue;
		}
		if (out->n == out->cap) {
			size_t cap = out->cap ? out->cap * 2 : 16;
			struct sb_session *v = realloc(out->v, cap * sizeof *v);

			if (!v) {
				sb_session_free(&s);
				sb_session_list_free(out);
				return sb_fail(err, SB_E_NOMEM, "sessions: out of memory");
			}
			out->v = v;
			out->cap = cap;
		}
		out->v[out->n++] = s;
	}
	return 0;
}

static bool
is_inside(const char *path, const char *root)
{
	size_t n = strlen(root);

	return strncmp(path, root, n) == 0 && (!path[n] || path[n] == '/');
}

int
sb_session_load(const char *state_dir, const char *name, const char *inside, struct sb_session *out,
	struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(state_dir, err);
	sb_auto(sb_session_list) struct sb_session_list all = { 0 };
	struct sb_session *found = NULL;
	char real[PATH_MAX];
	int r;

	if (!dir)
		return err ? err->code : SB_E_NOMEM;
	if (name) {
		r = load_named(dir, name, out, err);
		return r < 0 ? r : 0;
	}
	if (!realpath(inside ? inside : ".", real))
		return sb_fail_errno(err, "current directory");
	r = sb_session_load_all(dir, &all, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < all.n; i++)
		for (size_t k = 0; k < all.v[i].n_pairs; k++) {
			if (all.v[i].state == SB_SESSION_STOPPED ||
				!is_inside(real, all.v[i].pairs[k].local) || found == &all.v[i])
				continue;
			if (found)
				return sb_fail(err, SB_E_INVAL,
					"%s belongs to the sessions '%s' and '%s': name one", real,
					found->name, all.v[i].name);
			found = &all.v[i];
		}
	if (!found)
		return sb_fail(err, SB_E_NOTFOUND,
			"%s is in no open session: name one ('sbsync ls' lists them)", real);
	*out = *found;
	memset(found, 0, sizeof *found);
	return 0;
}
