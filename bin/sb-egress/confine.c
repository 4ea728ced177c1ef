/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "confine.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/cleanup.h>

#define NOBODY 65534
#define MEMORY_MAX (512u << 20)
#define FILES_MAX 8192
#define CAPS_MAX 63

static void
limit(int what, rlim_t max)
{
	struct rlimit l;

	if (getrlimit((__rlimit_resource_t)what, &l) < 0)
		return;
	if (l.rlim_max == RLIM_INFINITY || l.rlim_max > max)
		l.rlim_max = max;
	l.rlim_cur = l.rlim_max;
	(void)setrlimit((__rlimit_resource_t)what, &l);
}

/* /etc may be read, for the hosts and the resolvers; nothing else may be opened. */
static void
forbid_files(void)
{
	const struct landlock_ruleset_attr all = { .handled_access_fs = (1u << 13) - 1 };
	struct landlock_path_beneath_attr etc = { .allowed_access = LANDLOCK_ACCESS_FS_READ_FILE };
	sb_autoclose int rules = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
	static const char *const places[] = { "/etc", "/run/systemd/resolve", "/run/resolvconf",
		"/run/NetworkManager" };

	if (rules < 0)
		return;
	for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
		sb_autoclose int dir = open(places[i], O_PATH | O_CLOEXEC);

		etc.parent_fd = dir;
		if (dir >= 0)
			(void)syscall(SYS_landlock_add_rule, rules, LANDLOCK_RULE_PATH_BENEATH,
				&etc, 0);
	}
	(void)syscall(SYS_landlock_restrict_self, rules, 0);
}

#define REFUSE(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1), \
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static const struct sock_filter filter[] = {
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
#if defined(__x86_64__)
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
#elif defined(__aarch64__)
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_AARCH64, 1, 0),
#else
#error "the filter of sb-egress does not know this machine"
#endif
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef __x86_64__
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	REFUSE(SYS_fork),
	REFUSE(SYS_vfork),
#endif
	REFUSE(SYS_execve),
	REFUSE(SYS_execveat),
	REFUSE(SYS_clone),
	REFUSE(SYS_clone3),
	REFUSE(SYS_ptrace),
	REFUSE(SYS_process_vm_readv),
	REFUSE(SYS_process_vm_writev),
	REFUSE(SYS_kill),
	REFUSE(SYS_tkill),
	REFUSE(SYS_tgkill),
	REFUSE(SYS_pidfd_send_signal),
	REFUSE(SYS_pidfd_getfd),
	REFUSE(SYS_setns),
	REFUSE(SYS_unshare),
	REFUSE(SYS_mount),
	REFUSE(SYS_umount2),
	REFUSE(SYS_pivot_root),
	REFUSE(SYS_chroot),
	REFUSE(SYS_bpf),
	REFUSE(SYS_perf_event_open),
	REFUSE(SYS_userfaultfd),
	REFUSE(SYS_keyctl),
	REFUSE(SYS_add_key),
	REFUSE(SYS_request_key),
	REFUSE(SYS_io_uring_setup),
	REFUSE(SYS_open_by_handle_at),
	REFUSE(SYS_init_module),
	REFUSE(SYS_finit_module),
	REFUSE(SYS_kexec_load),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
};

static int
give_up_capabilities(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	for (int cap = 0; cap <= CAPS_MAX; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	/* A user namespace need not have a nobody (EINVAL), nor groups to give up (EPERM). */
	if (geteuid() == 0 &&
		((setgroups(0, NULL) < 0 && errno != EPERM) ||
			(setresgid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL) ||
			(setresuid(NOBODY, NOBODY, NOBODY) < 0 && errno != EINVAL)))
		return -1;
	return (int)syscall(SYS_capset, &head, none);
}

int
confine(struct sb_error *err)
{
	const struct sock_fprog prog = { sizeof filter / sizeof filter[0],
		(struct sock_filter *)(void *)filter };

	limit(RLIMIT_NOFILE, FILES_MAX);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	limit(RLIMIT_AS, MEMORY_MAX);
#endif
	if (give_up_capabilities() < 0)
		return sb_fail_errno(err, "give up privileges");
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sb_fail_errno(err, "no new privileges");
	forbid_files();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0)
		return sb_fail_errno(err, "filter of system calls");
	return 0;
}
