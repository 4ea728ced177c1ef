/* SPDX-License-Identifier: MIT */
/* Calls the members of a handle, which may be NULL (declared in sb/launcher.h). */
#include "config.h"

#include <sb/launcher.h>

#include <string.h>

int64_t
sb_handle_pid(const struct sb_handle *h)
{
	return h ? h->ops->pid(h) : 0;
}

const char *
sb_handle_cwd(const struct sb_handle *h)
{
	return h ? h->ops->cwd(h) : "";
}

int
sb_handle_stdin(const struct sb_handle *h)
{
	return h ? h->ops->stdin_fd(h) : -1;
}

int
sb_handle_stdout(const struct sb_handle *h)
{
	return h ? h->ops->stdout_fd(h) : -1;
}

int
sb_handle_close_stdin(struct sb_handle *h, struct sb_error *err)
{
	return h ? h->ops->close_stdin(h, err) : 0;
}

char *
sb_handle_stderr_tail(const struct sb_handle *h)
{
	return h ? h->ops->stderr_tail(h) : strdup("");
}

int
sb_handle_done_fd(const struct sb_handle *h)
{
	return h ? h->ops->done_fd(h) : -1;
}

int
sb_handle_wait(struct sb_handle *h, const struct sb_call *call, struct sb_ended *out,
	struct sb_error *err)
{
	if (h)
		return h->ops->wait(h, call, out, err);
	*out = (struct sb_ended){ 0 };
	return 0;
}

int
sb_handle_stop(struct sb_handle *h, const struct sb_call *call, struct sb_error *err)
{
	return h ? h->ops->stop(h, call, err) : 0;
}

int
sb_handle_signal(struct sb_handle *h, int sig, struct sb_error *err)
{
	return h ? h->ops->signal(h, sig, err) : 0;
}

int
sb_handle_resize(struct sb_handle *h, unsigned short rows, unsigned short cols,
	struct sb_error *err)
{
	return h ? h->ops->resize(h, rows, cols, err) : 0;
}

void
sb_handle_free(struct sb_handle *h)
{
	if (h)
		h->ops->free(h);
}
