/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/session/session-log.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <base/buf.h>
#include <base/cleanup.h>
#include <base/file.h>
#include <base/str.h>
#include <sync/session/session-store.h>

#define LOG_NAME "log"
#define LOG_MAX (8 << 20)
#define LINE_MAX (1u << 20)
#define ROWS 200 /* changes that a line names */

/* As JSON; what is no printable text is escaped, as people are shown it. */
static void
add_text(struct sb_buf *b, const char *text)
{
	size_t room = 4 * strlen(text) + 1;
	sb_autofree char *shown = malloc(room);

	sb_buf_add_char(b, '"');
	for (const char *p = shown ? sb_escape(text, strlen(text), shown, room) : ""; *p; p++) {
		if (*p == '"' || *p == '\\')
			sb_buf_add_char(b, '\\');
		sb_buf_add_char(b, *p);
	}
	sb_buf_add_char(b, '"');
}

static void
add_changes(struct sb_buf *b, const struct sb_sync_result *res)
{
	sb_buf_add_str(b, ",\"changes\":[");
	for (size_t i = 0; i < res->n_changes && i < ROWS; i++) {
		const struct sb_sync_change *c = &res->changes[i];

		sb_buf_addf(b, "%s{\"side\":\"%s\",\"what\":\"%s\",\"path\":", i ? "," : "",
			c->side, c->what);
		add_text(b, c->path);
		if (c->from) {
			sb_buf_add_str(b, ",\"from\":");
			add_text(b, c->from);
		}
		sb_buf_addf(b, ",\"size\":%llu}", (unsigned long long)c->size);
	}
	sb_buf_add_char(b, ']');
	if (res->n_changes > ROWS)
		sb_buf_addf(b, ",\"more_changes\":%zu", res->n_changes - ROWS);
	sb_buf_add_str(b, ",\"kept_aside\":[");
	for (size_t i = 0; i < res->conflicts.n && i < ROWS; i++) {
		sb_buf_add_str(b, i ? "," : "");
		add_text(b, res->conflicts.v[i].path);
	}
	sb_buf_add_char(b, ']');
}

/* Opens it to add a line. */
static int
open_log(int dirfd)
{
	struct stat st;

	if (fstatat(dirfd, LOG_NAME, &st, AT_SYMLINK_NOFOLLOW) == 0 && st.st_size > LOG_MAX)
		(void)renameat(dirfd, LOG_NAME, dirfd, LOG_NAME ".old");
	return openat(dirfd, LOG_NAME, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW,
		0600);
}

void
sb_session_log(int dirfd, const char *reason, int code, const struct sb_error *err,
	const struct sb_sync_result *res)
{
	sb_auto(sb_buf) struct sb_buf b = { 0 };
	sb_autoclose int fd = open_log(dirfd);
	char stamp[32];
	time_t now = time(NULL);
	struct tm tm;

	if (fd < 0)
		return;
	sb_buf_init(&b, LINE_MAX);
	(void)gmtime_r(&now, &tm);
	(void)strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &tm);
	sb_buf_addf(&b,
		"{\"time\":\"%s\",\"reason\":\"%s\",\"result\":\"%s\",\"files_synced\":%llu,"
		"\"bytes_transferred\":%llu,\"files_deleted\":%llu,"
		"\"files_moved\":%llu,\"conflicts\":%zu,\"errors\":%zu,\"duration_ms\":%lld",
		stamp, reason, code < 0 || res->errors.n ? "error" : "ok",
		(unsigned long long)res->files_synced, (unsigned long long)res->bytes_transferred,
		(unsigned long long)res->files_deleted, (unsigned long long)res->files_moved,
		res->conflicts.n, res->errors.n, (long long)res->duration_ms);
	if (code < 0 && err) {
		sb_buf_add_str(&b, ",\"error\":");
		add_text(&b, err->msg);
	} else {
		add_changes(&b, res);
	}
	sb_buf_add_str(&b, "}\n");
	if (!b.failed)
		(void)sb_file_write_all(fd, b.data, b.len, NULL);
}

int
sb_session_log_fd(const struct sb_session *s, struct sb_error *err)
{
	sb_autofree char *dir = sb_session_dir(NULL, err);
	sb_autoclose int fd = dir ? sb_session_open_dir(dir, s->name, false, err) : -1;
	int log;

	if (fd < 0)
		return err ? err->code : SB_E_SYS;
	log = openat(fd, LOG_NAME, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	return log < 0 ? sb_fail_errno(err, "the log of session '%s'", s->name) : log;
}
