/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sync/codec/confined-filter.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#endif

/* Sanitizers make calls of their own. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#undef ARCH
#endif

#ifdef ARCH
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ANSWER(e) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LET(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), ALLOW
/* Memory that is executed is not for what a sandbox sent. */
#define LET_DATA(nr) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 4), FIELD(args[2]), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 0, 1), ANSWER(EPERM), ALLOW

/* Where `program` compares with our own number. */
#define SELF 6

static const struct sock_filter program[] = {
	FIELD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
	ANSWER(EPERM),
	FIELD(nr),
	/* It may end itself: librsync aborts. Who it is, is written in when it is known. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_tgkill, 0, 4),
	FIELD(args[0]),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 0, 1),
	ALLOW,
	ANSWER(EPERM),
	LET(SYS_read),
	LET(SYS_write),
	LET(SYS_readv),
	LET(SYS_writev),
	LET(SYS_pread64),
	LET(SYS_pwrite64),
	LET(SYS_lseek),
	LET(SYS_fstat),
	LET(SYS_newfstatat),
	LET(SYS_close),
	LET(SYS_brk),
	LET(SYS_munmap),
	LET(SYS_mremap),
	LET(SYS_madvise),
	LET(SYS_futex),
	LET(SYS_getrandom),
	LET(SYS_clock_gettime),
	LET(SYS_sched_yield),
	LET(SYS_getpid),
	LET(SYS_gettid),
	LET(SYS_rt_sigaction),
	LET(SYS_rt_sigprocmask),
	LET(SYS_rt_sigreturn),
	LET(SYS_restart_syscall),
	LET(SYS_exit),
	LET(SYS_exit_group),
	LET_DATA(SYS_mmap),
	LET_DATA(SYS_mprotect),
	ANSWER(EPERM),
};
#endif

/* The kernel's numbers, which old headers lack. */
#define NR_LANDLOCK_CREATE_RULESET 444
#define NR_LANDLOCK_RESTRICT_SELF 446
#define LANDLOCK_VERSION 1u

/* No file and no port, whatever a hole in the filter below may let through. */
static void
close_files(void)
{
	long abi = syscall(NR_LANDLOCK_CREATE_RULESET, NULL, 0, LANDLOCK_VERSION);
	struct {
		uint64_t fs, net, scope;
	} rules = { .fs = (1ull << 13) - 1 };
	size_t size = sizeof rules.fs;
	int fd;

	if (abi < 1)
		return;
	rules.fs |= (abi >= 2 ? 1ull << 13 : 0) | (abi >= 3 ? 1ull << 14 : 0) |
		(abi >= 5 ? 1ull << 15 : 0);
	if (abi >= 4) {
		rules.net = 3;
		size = sizeof rules.fs + sizeof rules.net;
	}
	if (abi >= 6) {
		rules.scope = 3;
		size = sizeof rules;
	}
	fd = (int)syscall(NR_LANDLOCK_CREATE_RULESET, &rules, size, 0);
	if (fd < 0)
		return;
	(void)syscall(NR_LANDLOCK_RESTRICT_SELF, fd, 0);
	(void)close(fd);
}

bool
sb_confined_filter(void)
{
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		return false;
	close_files();
#ifdef ARCH
	struct sock_filter f[sizeof program / sizeof program[0]];
	struct sock_fprog p = { .len = (unsigned short)(sizeof program / sizeof program[0]),
		.filter = f };

	memcpy(f, program, sizeof program);
	f[SELF].k = (uint32_t)getpid();
	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0) == 0;
#else
	return false;
#endif
}
