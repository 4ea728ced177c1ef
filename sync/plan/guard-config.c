/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/plan/guard-config.h>

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include <sync/scan/gitconfig.h>

#define WORDS_MAX 4096

const char *const sb_guard_config_hooks[] = { "applypatch-msg", "pre-applypatch", "post-applypatch",
	"pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
	"pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update",
	"proc-receive", "post-receive", "post-update", "reference-transaction", "push-to-checkout",
	"pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "p4-changelist",
	"p4-prepare-changelist", "p4-post-changelist", "p4-pre-submit", "post-index-change", NULL };

/* Variables, by their last part, whose value git runs or obeys. */
static const char *const obeyed[] = { "alternaterefscommand", "askpass", "attributesfile", "cccmd",
	"clean", "cmd", "command", "defaultkeycommand", "difffilter", "driver", "editor",
	"external", "fsmonitor", "gitproxy", "headercmd", "helper", "packobjectshook", "pager",
	"process", "program", "receivepack", "sendmailcmd", "smudge", "smtpserver", "sshcommand",
	"textconv", "tocmd", "uploadpack", NULL };

void
sb_guard_config_free(struct sb_guard_config *c)
{
	sb_strlist_free(&c->includes);
	sb_strlist_free(&c->hooks);
	sb_strlist_free(&c->words);
	sb_strlist_free(&c->tops);
}

static bool
is_obeyed(const struct sb_gitconfig_var *v)
{
	if (strcmp(v->section, "pager") == 0)
		return true;
	if (strcmp(v->section, "submodule") == 0)
		return strcmp(v->name, "update") == 0;
	if (strcmp(v->name, "path") == 0)
		return strcmp(v->section, "mergetool") == 0 ||
			strcmp(v->section, "difftool") == 0 || strcmp(v->section, "browser") == 0 ||
			strcmp(v->section, "man") == 0 || strcmp(v->section, "lfs") == 0;
	for (size_t i = 0; obeyed[i]; i++)
		if (strcmp(v->name, obeyed[i]) == 0)
			return true;
	return false;
}

/* Adds it unless it is there. */
static void
add(struct sb_guard_config *c, struct sb_strlist *l, const char *word)
{
	for (size_t i = 0; i < l->n; i++)
		if (strcmp(l->v[i], word) == 0)
			return;
	if (c->includes.n + c->hooks.n + c->words.n + c->tops.n < WORDS_MAX)
		sb_strlist_add(l, word);
}

/* The words of a command of the shell, near enough: a part too many does no harm. */
static int
add_words(struct sb_guard_config *c, const char *value)
{
	static const char marks[] = " \t\n\"'`\\;&|()<>{}$!=,";
	sb_autofree char *text = strdup(value);

	if (!text)
		return SB_E_NOMEM;
	for (char *p = text; *p;) {
		size_t n = strcspn(p, marks);
		bool last = !p[n];

		p[n] = 0;
		if (n && *p != '-' && *p != '%')
			add(c, &c->words, p);
		p += n + !last;
	}
	return 0;
}

static int
take(const struct sb_gitconfig_var *v, void *arg)
{
	struct sb_guard_config *c = arg;
	bool core = strcmp(v->section, "core") == 0;

	if (!v->value || !*v->value)
		return 0;
	if (strncmp(v->section, "include", 7) == 0 && strcmp(v->name, "path") == 0)
		add(c, &c->includes, v->value);
	else if ((core && strcmp(v->name, "hookspath") == 0) || strcmp(v->name, "templatedir") == 0)
		add(c, &c->hooks, v->value);
	else if (core && strcmp(v->name, "worktree") == 0)
		add(c, &c->tops, v->value);
	else if (is_obeyed(v))
		return add_words(c, v->value);
	return 0;
}

static int
check(const struct sb_guard_config *c, struct sb_error *err)
{
	const struct sb_strlist *l[] = { &c->includes, &c->hooks, &c->words, &c->tops };
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof l / sizeof l[0]; i++)
		r = sb_strlist_check(l[i], err);
	return r;
}

int
sb_guard_config_join(struct sb_guard_config *c, const struct sb_guard_config *from,
	struct sb_error *err)
{
	for (size_t i = 0; i < from->hooks.n; i++)
		add(c, &c->hooks, from->hooks.v[i]);
	for (size_t i = 0; i < from->words.n; i++)
		add(c, &c->words, from->words.v[i]);
	return check(c, err);
}

int
sb_guard_config_read(struct sb_guard_config *c, const char *text, size_t len, struct sb_error *err)
{
	int r = sb_gitconfig_read(text, len, take, c, err);

	if (r == SB_E_NOMEM)
		return sb_fail(err, r, "guard: out of memory");
	return check(c, err);
}
