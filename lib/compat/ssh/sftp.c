/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <compat/ssh/sftp-priv.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ATTR_SIZE 1u
#define ATTR_OWNER 2u
#define ATTR_MODE 4u
#define ATTR_TIMES 8u
#define ATTR_EXTENDED 0x80000000u
#define EXTENSIONS_MAX 16

struct sb_sftp *
sb_sftp_new(const char *home)
{
	struct sb_sftp *s = calloc(1, sizeof *s);

	if (s && strlen(home) < sizeof s->home - 1)
		memcpy(s->home, home, strlen(home) + 1);
	return s;
}

void
sb_sftp_free(struct sb_sftp *s)
{
	for (size_t i = 0; s && i < SB_SFTP_HANDLES_MAX; i++)
		if (s->handles[i].used)
			sb_sftp_handle_close(&s->handles[i]);
	free(s);
}

uint32_t
sb_sftp_u32(struct sb_sftp_ask *a)
{
	const uint8_t *p = a->p;

	if (a->end - a->p < 4) {
		a->bad = true;
		return 0;
	}
	a->p += 4;
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

uint64_t
sb_sftp_u64(struct sb_sftp_ask *a)
{
	uint64_t high = sb_sftp_u32(a);

	return high << 32 | sb_sftp_u32(a);
}

const uint8_t *
sb_sftp_bytes(struct sb_sftp_ask *a, size_t *len)
{
	const uint8_t *p;

	*len = sb_sftp_u32(a);
	if (a->bad || (size_t)(a->end - a->p) < *len) {
		a->bad = true;
		*len = 0;
		return NULL;
	}
	p = a->p;
	a->p += *len;
	return p;
}

bool
sb_sftp_path(const struct sb_sftp *s, struct sb_sftp_ask *a, char *out)
{
	size_t len, at = 0;
	const uint8_t *p = sb_sftp_bytes(a, &len);

	if (!p || memchr(p, '\0', len) || len + strlen(s->home) + 2 > PATH_MAX) {
		a->bad = true;
		return false;
	}
	if (len == 0 || p[0] != '/') {
		at = strlen(s->home);
		memcpy(out, s->home, at);
		if (len > 0)
			out[at++] = '/';
	}
	memcpy(out + at, p, len);
	out[at + len] = '\0';
	return true;
}

void
sb_sftp_read_attrs(struct sb_sftp_ask *a, struct sb_sftp_attrs *v)
{
	uint32_t flags = sb_sftp_u32(a), n;
	size_t len;

	*v = (struct sb_sftp_attrs){ .size_given = flags & ATTR_SIZE,
		.owner_given = flags & ATTR_OWNER,
		.mode_given = flags & ATTR_MODE,
		.times_given = flags & ATTR_TIMES };
	if (v->size_given)
		v->size = sb_sftp_u64(a);
	if (v->owner_given) {
		v->uid = sb_sftp_u32(a);
		v->gid = sb_sftp_u32(a);
	}
	if (v->mode_given)
		v->mode = sb_sftp_u32(a) & 07777;
	if (v->times_given) {
		v->atime = sb_sftp_u32(a);
		v->mtime = sb_sftp_u32(a);
	}
	n = flags & ATTR_EXTENDED ? sb_sftp_u32(a) : 0;
	if (n > EXTENSIONS_MAX)
		a->bad = true;
	for (uint32_t i = 0; i < n && !a->bad; i++) {
		(void)sb_sftp_bytes(a, &len);
		(void)sb_sftp_bytes(a, &len);
	}
}

void
sb_sftp_put_u32(struct sb_buf *b, uint32_t v)
{
	const uint8_t p[4] = { (uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8),
		(uint8_t)v };

	sb_buf_add(b, p, sizeof p);
}

void
sb_sftp_put_u64(struct sb_buf *b, uint64_t v)
{
	sb_sftp_put_u32(b, (uint32_t)(v >> 32));
	sb_sftp_put_u32(b, (uint32_t)v);
}

void
sb_sftp_put_bytes(struct sb_buf *b, const void *p, size_t len)
{
	sb_sftp_put_u32(b, (uint32_t)len);
	sb_buf_add(b, p, len);
}

void
sb_sftp_put_attrs(struct sb_buf *b, const struct stat *st)
{
	sb_sftp_put_u32(b, ATTR_SIZE | ATTR_OWNER | ATTR_MODE | ATTR_TIMES);
	sb_sftp_put_u64(b, (uint64_t)st->st_size);
	sb_sftp_put_u32(b, st->st_uid);
	sb_sftp_put_u32(b, st->st_gid);
	sb_sftp_put_u32(b, st->st_mode);
	sb_sftp_put_u32(b, (uint32_t)st->st_atime);
	sb_sftp_put_u32(b, (uint32_t)st->st_mtime);
}

size_t
sb_sftp_begin(struct sb_buf *out, const struct sb_sftp_ask *a, uint8_t kind)
{
	size_t at = out->len;

	sb_sftp_put_u32(out, 0);
	sb_buf_add_u8(out, kind);
	sb_sftp_put_u32(out, a->id);
	return at;
}

void
sb_sftp_end(struct sb_buf *out, size_t at)
{
	uint32_t len;

	if (out->failed)
		return;
	len = (uint32_t)(out->len - at - 4);
	out->data[at] = (uint8_t)(len >> 24);
	out->data[at + 1] = (uint8_t)(len >> 16);
	out->data[at + 2] = (uint8_t)(len >> 8);
	out->data[at + 3] = (uint8_t)len;
}

static void
status(struct sb_buf *out, const struct sb_sftp_ask *a, uint32_t code, const char *text)
{
	size_t at = sb_sftp_begin(out, a, SFTP_STATUS);

	sb_sftp_put_u32(out, code);
	sb_sftp_put_bytes(out, text, strlen(text));
	sb_sftp_put_bytes(out, "en", 2);
	sb_sftp_end(out, at);
}

void
sb_sftp_answer(struct sb_buf *out, const struct sb_sftp_ask *a, int sys)
{
	switch (sys) {
	case 0: status(out, a, 0, "Success"); break;
	case ENOENT:
	case ENOTDIR:
	case EBADF:
	case ELOOP: status(out, a, 2, strerror(sys)); break;
	case EPERM:
	case EACCES:
	case EROFS: status(out, a, 3, strerror(sys)); break;
	case EBADMSG: status(out, a, 5, "Bad message"); break;
	case ENOSYS:
	case EOPNOTSUPP: status(out, a, 8, "Operation unsupported"); break;
	default: status(out, a, 4, strerror(sys));
	}
}

void
sb_sftp_answer_end(struct sb_buf *out, const struct sb_sftp_ask *a)
{
	status(out, a, 1, "End of file");
}

static void
hello(struct sb_buf *out)
{
	static const char *const extensions[][2] = { { "posix-rename@openssh.com", "1" },
		{ "statvfs@openssh.com", "2" }, { "fstatvfs@openssh.com", "2" },
		{ "hardlink@openssh.com", "1" }, { "fsync@openssh.com", "1" },
		{ "lsetstat@openssh.com", "1" }, { "limits@openssh.com", "1" } };
	size_t at = out->len;

	sb_sftp_put_u32(out, 0);
	sb_buf_add_u8(out, SFTP_VERSION);
	sb_sftp_put_u32(out, 3);
	for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++)
		for (int k = 0; k < 2; k++)
			sb_sftp_put_bytes(out, extensions[i][k], strlen(extensions[i][k]));
	sb_sftp_end(out, at);
}

static const struct {
	uint8_t kind;
	sb_sftp_fn *run;
} requests[] = {
	{ SFTP_OPEN, sb_sftp_file_open },
	{ SFTP_CLOSE, sb_sftp_file_close },
	{ SFTP_READ, sb_sftp_file_read },
	{ SFTP_WRITE, sb_sftp_file_write },
	{ SFTP_LSTAT, sb_sftp_more_lstat },
	{ SFTP_FSTAT, sb_sftp_file_fstat },
	{ SFTP_SETSTAT, sb_sftp_more_setstat },
	{ SFTP_FSETSTAT, sb_sftp_file_fsetstat },
	{ SFTP_OPENDIR, sb_sftp_dir_open },
	{ SFTP_READDIR, sb_sftp_dir_read },
	{ SFTP_REMOVE, sb_sftp_more_remove },
	{ SFTP_MKDIR, sb_sftp_more_mkdir },
	{ SFTP_RMDIR, sb_sftp_more_rmdir },
	{ SFTP_REALPATH, sb_sftp_dir_realpath },
	{ SFTP_STAT, sb_sftp_more_stat },
	{ SFTP_RENAME, sb_sftp_more_rename },
	{ SFTP_READLINK, sb_sftp_dir_readlink },
	{ SFTP_SYMLINK, sb_sftp_more_symlink },
	{ SFTP_EXTENDED, sb_sftp_more_extended },
};

static bool
serve(struct sb_sftp *s, uint8_t kind, struct sb_sftp_ask *a, struct sb_buf *out)
{
	if (kind == SFTP_INIT || !s->begun) {
		if (kind != SFTP_INIT || s->begun)
			return false;
		s->begun = true;
		hello(out);
		return true;
	}
	a->id = sb_sftp_u32(a);
	if (a->bad)
		return false;
	for (size_t i = 0; i < sizeof requests / sizeof requests[0]; i++)
		if (requests[i].kind == kind) {
			requests[i].run(s, a, out);
			return true;
		}
	sb_sftp_answer(out, a, ENOSYS);
	return true;
}

int
sb_sftp_step(struct sb_sftp *s, struct sb_buf *in, struct sb_buf *out)
{
	struct sb_sftp_ask a = { .p = in->data, .end = in->data + in->len };
	uint32_t len;
	bool ok;

	if (in->len < 4)
		return 0;
	len = sb_sftp_u32(&a);
	if (len < 5 || len > SB_SFTP_PACKET_MAX)
		return -1;
	if (in->len < 4 + (size_t)len)
		return 0;
	a.end = a.p + len;
	a.p++;
	ok = serve(s, a.p[-1], &a, out);
	sb_buf_consume(in, 4 + (size_t)len);
	return ok && !out->failed ? 1 : -1;
}
