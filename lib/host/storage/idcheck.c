/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/storage/idcheck.h>

#include <string.h>

#define DATASET_MAX 1024
#define COMPONENT_MAX 255
#define PROCESS_MAX 63

static bool
is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

static bool
is_name_char(char c)
{
	return is_alnum(c) || c == '.' || c == '_' || c == '-';
}

const char *
sb_idcheck_quote(const char *name, char out[SB_IDCHECK_QUOTE_MAX])
{
	size_t len = name ? strnlen(name, SB_IDCHECK_QUOTE_MAX) : 0;

	return sb_escape(name ? name : "", len, out, SB_IDCHECK_QUOTE_MAX);
}

static int
check_short(const char *name, size_t max, const char *what, struct sb_error *err)
{
	char q[SB_IDCHECK_QUOTE_MAX];
	size_t len = name ? strnlen(name, max + 1) : 0;

	if (len == 0)
		return sb_fail(err, SB_E_INVAL, "%s is required", what);
	if (len > max)
		return sb_fail(err, SB_E_INVAL, "invalid %s \"%s...\": longer than %zu bytes", what,
			sb_idcheck_quote(name, q), max);
	if (!is_alnum(name[0]))
		return sb_fail(err, SB_E_INVAL,
			"invalid %s \"%s\": must begin with a letter or digit", what,
			sb_idcheck_quote(name, q));
	for (size_t i = 1; i < len; i++)
		if (!is_name_char(name[i]))
			return sb_fail(err, SB_E_INVAL,
				"invalid %s \"%s\": only letters, digits, '.', '_' and '-' are "
				"allowed",
				what, sb_idcheck_quote(name, q));
	return 0;
}

int
sb_idcheck_session(const char *id, struct sb_error *err)
{
	char q[SB_IDCHECK_QUOTE_MAX];
	int r = check_short(id, SB_HOST_ID_MAX, "session_id", err);

	if (r < 0)
		return r;
	if (strstr(id, ".."))
		return sb_fail(err, SB_E_INVAL, "invalid session_id \"%s\": \"..\" is not allowed",
			sb_idcheck_quote(id, q));
	return 0;
}

int
sb_idcheck_snapshot(const char *name, struct sb_error *err)
{
	return check_short(name, SB_HOST_NAME_MAX, "snapshot name", err);
}

int
sb_idcheck_tag(const char *tag, struct sb_error *err)
{
	return check_short(tag, SB_HOST_NAME_MAX, "hold tag", err);
}

int
sb_idcheck_base_dir(const char *name, struct sb_error *err)
{
	return check_short(name, SB_HOST_NAME_MAX, "base image", err);
}

int
sb_idcheck_process(const char *id, struct sb_error *err)
{
	return check_short(id, PROCESS_MAX, "process_id", err);
}

/* One dataset name of `len` bytes. */
static const char *
dataset_fault(const char *name, size_t len)
{
	size_t component = 0;

	if (len == 0)
		return "is empty";
	if (len > DATASET_MAX)
		return "is too long";
	if (!is_alnum(name[0]))
		return "must begin with a letter or digit";
	for (size_t i = 0; i < len; i++) {
		if (name[i] == '/') {
			if (component == 0)
				return "has an empty component";
			component = 0;
			continue;
		}
		if (!is_name_char(name[i]) && name[i] != ':')
			return "has a character that is not allowed";
		if (name[i] == '.' && i + 1 < len && name[i + 1] == '.')
			return "contains \"..\"";
		if (++component > COMPONENT_MAX)
			return "has too long a component";
	}
	return component == 0 ? "ends with a slash" : NULL;
}

static int
dataset_fail(const char *name, const char *why, struct sb_error *err)
{
	char q[SB_IDCHECK_QUOTE_MAX];

	return sb_fail(err, SB_E_INVAL, "zfs: invalid dataset or snapshot name: \"%s\" %s",
		sb_idcheck_quote(name, q), why);
}

int
sb_idcheck_dataset(const char *name, struct sb_error *err)
{
	const char *why = name ? dataset_fault(name, strnlen(name, DATASET_MAX + 1)) : "is empty";

	return why ? dataset_fail(name, why, err) : 0;
}

int
sb_idcheck_pool(const char *name, struct sb_error *err)
{
	int r = sb_idcheck_dataset(name, err);

	if (r < 0)
		return r;
	return strchr(name, '/') ? dataset_fail(name, "is not a pool", err) : 0;
}

int
sb_idcheck_full_snapshot(const char *name, struct sb_error *err)
{
	size_t max = DATASET_MAX + 1 + SB_HOST_NAME_MAX;
	const char *at = NULL;
	const char *why;

	if (name && strnlen(name, max + 1) <= max)
		at = strchr(name, '@');
	if (!at)
		return dataset_fail(name, "is not of the form dataset@snapshot", err);
	why = dataset_fault(name, (size_t)(at - name));
	if (why)
		return dataset_fail(name, why, err);
	return check_short(at + 1, SB_HOST_NAME_MAX, "snapshot name", err);
}

static int
check_label(const struct sb_host_label *l, struct sb_error *err)
{
	char q[SB_IDCHECK_QUOTE_MAX];
	size_t len = l->key ? strnlen(l->key, SB_HOST_LABEL_KEY_MAX + 1) : 0;

	if (len == 0)
		return sb_fail(err, SB_E_INVAL, "a label has an empty key");
	if (len > SB_HOST_LABEL_KEY_MAX)
		return sb_fail(err, SB_E_INVAL, "label \"%s...\": key longer than %d bytes",
			sb_idcheck_quote(l->key, q), SB_HOST_LABEL_KEY_MAX);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)l->key[i] < 0x20 || l->key[i] == 0x7f)
			return sb_fail(err, SB_E_INVAL, "label \"%s\": control character in key",
				sb_idcheck_quote(l->key, q));
	if (l->value && strnlen(l->value, SB_HOST_LABEL_VALUE_MAX + 1) > SB_HOST_LABEL_VALUE_MAX)
		return sb_fail(err, SB_E_INVAL, "label \"%s\": value longer than %d bytes",
			sb_idcheck_quote(l->key, q), SB_HOST_LABEL_VALUE_MAX);
	return 0;
}

int
sb_idcheck_labels(const struct sb_host_label *labels, size_t n, struct sb_error *err)
{
	char q[SB_IDCHECK_QUOTE_MAX];

	if (n > SB_HOST_LABELS_MAX)
		return sb_fail(err, SB_E_INVAL, "%zu labels, at most %d are allowed", n,
			SB_HOST_LABELS_MAX);
	for (size_t i = 0; i < n; i++) {
		int r = check_label(&labels[i], err);

		if (r < 0)
			return r;
		for (size_t j = 0; j < i; j++)
			if (strcmp(labels[i].key, labels[j].key) == 0)
				return sb_fail(err, SB_E_INVAL, "label \"%s\" is given twice",
					sb_idcheck_quote(labels[i].key, q));
	}
	return 0;
}
