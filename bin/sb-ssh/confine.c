/* SPDX-License-Identifier: MIT */
/*
 * The door gives up what it does not need: root becomes nobody, no capabilities, no file of the
 * machine, bounded memory and descriptors, and of all system calls those that moving bytes between
 * sockets takes. What the kernel does not know is left out, except for the capabilities and the
 * filter.
 */
#include "config.h"

#include "door.h"

#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/cleanup.h>

#define NOBODY 65534
#define MEMORY_MAX (512u << 20)
#define CAPS_MAX 63
#define NR_LANDLOCK_CREATE_RULESET 444
#define NR_LANDLOCK_RESTRICT_SELF 446
#define NR_RSEQ 334

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

/* Every right over files and the network that this kernel knows, and no exception. */
static void
forbid_files(void)
{
	int abi = (int)syscall(NR_LANDLOCK_CREATE_RULESET, NULL, 0, 1);
	struct {
		uint64_t fs, net;
	} all = { (1u << 13) - 1, 0 };
	sb_autoclose int rules = -1;

	if (abi < 1)
		return;
	all.fs |= (abi >= 2 ? 1u << 13 : 0) | (abi >= 3 ? 1u << 14 : 0) | (abi >= 5 ? 1u << 15 : 0);
	all.net = abi >= 4 ? 3 : 0;
	rules = (int)syscall(NR_LANDLOCK_CREATE_RULESET, &all,
		abi >= 4 ? sizeof all : sizeof all.fs, 0);
	if (rules >= 0)
		(void)syscall(NR_LANDLOCK_RESTRICT_SELF, rules, 0);
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#error "the filter of sb-ssh does not know this machine"
#endif
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ARG(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define REFUSE BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LET(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), ALLOW
#define LET_WITHOUT(nr, n, bits) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 4), ARG(n), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, 1), REFUSE, ALLOW

static const struct sock_filter filter[] = {
	FIELD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
	BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
	FIELD(nr),
	LET(SYS_read),
	LET(SYS_write),
	LET(SYS_readv),
	LET(SYS_writev),
	LET(SYS_recvfrom),
	LET(SYS_sendto),
	LET(SYS_recvmsg),
	LET(SYS_sendmsg),
	LET(SYS_shutdown),
	LET(SYS_ppoll),
	LET(SYS_close),
	LET(SYS_fcntl),
	LET(SYS_fstat),
	LET(SYS_newfstatat),
	LET(SYS_getsockopt),
	LET(SYS_setsockopt),
	LET(SYS_getsockname),
	LET(SYS_getpeername),
	LET(SYS_futex),
	LET(SYS_brk),
	LET(SYS_munmap),
	LET(SYS_mremap),
	LET(SYS_madvise),
	LET(SYS_getrandom),
	LET(SYS_clock_gettime),
	LET(SYS_clock_nanosleep),
	LET(SYS_gettimeofday),
	LET(SYS_getpid),
	LET(SYS_gettid),
	LET(SYS_getuid),
	LET(SYS_geteuid),
	LET(SYS_getgid),
	LET(SYS_getegid),
	LET(SYS_sched_yield),
	LET(NR_RSEQ),
	LET(SYS_rt_sigaction),
	LET(SYS_rt_sigprocmask),
	LET(SYS_rt_sigreturn),
	LET(SYS_restart_syscall),
	LET(SYS_exit),
	LET(SYS_exit_group),
#ifdef __x86_64__
	LET(SYS_poll),
	LET(SYS_time),
#endif
#ifdef __SANITIZE_ADDRESS__
	LET(SYS_sigaltstack),
	LET(SYS_prctl),
	LET(SYS_getrusage),
#endif
	LET_WITHOUT(SYS_mmap, 2, PROT_EXEC),
	LET_WITHOUT(SYS_mprotect, 2, PROT_EXEC),
	REFUSE,
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
door_confine(struct sb_error *err)
{
	const struct sock_fprog prog = { sizeof filter / sizeof filter[0],
		(struct sock_filter *)(void *)filter };

	limit(RLIMIT_NOFILE, 4 * DOOR_CHANNELS_MAX);
	limit(RLIMIT_CORE, 0);
	limit(RLIMIT_FSIZE, 0);
	limit(RLIMIT_NPROC, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	limit(RLIMIT_AS, MEMORY_MAX);
#endif
	if (give_up_capabilities() < 0)
		return sb_fail_errno(err, "give up privileges");
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return sb_fail_errno(err, "no new privileges");
	forbid_files();
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog, 0, 0) < 0)
		return sb_fail_errno(err, "filter of system calls");
	return 0;
}
