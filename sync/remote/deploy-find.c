/* SPDX-License-Identifier: MIT */
/* Finds the agent program for a type of machine among the files of this one. */
#include "config.h"

#include <sync/remote/deploy.h>

#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <base/str.h>

static const struct {
	uint16_t elf;
	const char *machine;
} machines[] = {
	{ EM_X86_64, "x86_64" },
	{ EM_386, "i686" },
	{ EM_AARCH64, "aarch64" },
	{ EM_ARM, "armv7l" },
	{ EM_RISCV, "riscv64" },
	{ EM_PPC64, "ppc64le" },
	{ EM_S390, "s390x" },
};

const char *
sb_deploy_machine_of(const void *data, size_t len)
{
	const uint8_t *p = data;
	uint16_t elf;

	if (len < sizeof(Elf32_Ehdr) || memcmp(p, ELFMAG, SELFMAG) != 0)
		return "";
	elf = p[EI_DATA] == ELFDATA2MSB ? (uint16_t)(p[18] << 8 | p[19]) :
					  (uint16_t)(p[19] << 8 | p[18]);
	for (size_t i = 0; i < sizeof machines / sizeof machines[0]; i++)
		if (machines[i].elf == elf)
			return machines[i].machine;
	return "";
}

bool
sb_deploy_machine_runs(const char *machine, const char *type)
{
	if (!*type || strcmp(machine, type) == 0)
		return true;
	if (strcmp(type, "i686") == 0)
		return strcmp(machine, "x86_64") == 0 ||
			(machine[0] == 'i' && strcmp(machine + 2, "86") == 0);
	if (strcmp(type, "x86_64") == 0)
		return strcmp(machine, "amd64") == 0;
	if (strcmp(type, "aarch64") == 0)
		return strcmp(machine, "arm64") == 0;
	if (strcmp(type, "armv7l") == 0)
		return sb_str_starts(machine, "armv7") || sb_str_starts(machine, "armv8");
	return false;
}

/* Takes the file if it is a program that runs on `machine`. */
static bool
usable(const char *path, const char *machine)
{
	sb_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	uint8_t head[sizeof(Elf64_Ehdr)];
	struct stat st;
	ssize_t n;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	n = read(fd, head, sizeof head);
	return n > 0 && sb_deploy_machine_runs(machine, sb_deploy_machine_of(head, (size_t)n));
}

static char *
look_in(const char *dir, const char *machine)
{
	char *path = sb_str_printf("%s/sbsync-agent-%s", dir, machine);

	if (path && usable(path, machine))
		return path;
	free(path);
	path = sb_str_printf("%s/sbsync-agent", dir);
	if (path && usable(path, machine))
		return path;
	free(path);
	return NULL;
}

/* The directory of the running program; with libtool it is one below. */
static bool
own_dir(char *out, size_t size)
{
	ssize_t n = readlink("/proc/self/exe", out, size - 1);
	char *slash;

	if (n <= 0)
		return false;
	out[n] = '\0';
	slash = strrchr(out, '/');
	if (!slash)
		return false;
	*slash = '\0';
	if (sb_str_ends(out, "/.libs"))
		*strrchr(out, '/') = '\0';
	return true;
}

char *
sb_deploy_find(const char *machine, struct sb_error *err)
{
	const char *env = getenv("SBSYNC_AGENT");
	char dir[PATH_MAX];
	struct utsname uts;
	char *path = NULL;

	if (!machine)
		machine = uname(&uts) == 0 ? uts.machine : "";
	if (env && *env && usable(env, machine)) {
		path = strdup(env);
	} else {
		if (own_dir(dir, sizeof dir))
			path = look_in(dir, machine);
		if (!path)
			path = look_in(SB_PKGLIBEXECDIR, machine);
	}
	if (!path)
		sb_fail(err, SB_E_NOTFOUND,
			"no agent program for %s machines (sbsync-agent in %s; SBSYNC_AGENT names "
			"another)",
			machine, SB_PKGLIBEXECDIR);
	return path;
}
