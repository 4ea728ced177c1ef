/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/files/confine.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <base/cleanup.h>

#define FILES_MAX 256
#define FILE_BYTES_MAX (96ull << 20)
#define CAPS_MAX 63

/* The kernel's numbers, which old headers lack. */
#define NR_LANDLOCK_CREATE_RULESET 444
#define NR_LANDLOCK_ADD_RULE 445
#define NR_LANDLOCK_RESTRICT_SELF 446
#define NR_OPENAT2 437
#define NR_CLONE3 435
#define NR_RSEQ 334
#define LL_WRITE_FILE (1ull << 1)
#define LL_READ_FILE (1ull << 2)
#define LL_READ_DIR (1ull << 3)
#define LL_REMOVE_FILE (1ull << 5)
#define LL_MAKE_DIR (1ull << 7)
#define LL_MAKE_REG (1ull << 8)
#define LL_TRUNCATE (1ull << 14)
#define LL_NET_ALL 3ull
#define LL_SCOPE_ALL 3ull

struct ll_ruleset {
	uint64_t fs, net, scope;
};

struct ll_beneath {
	uint64_t allowed;
	int32_t dir;
} __attribute__((packed));

/* What the kernel can keep us from, by the version of its interface. */
static size_t
ll_handled(int abi, struct ll_ruleset *out)
{
	const uint64_t first = (1ull << 13) - 1;

	out->fs = first | (abi >= 2 ? 1ull << 13 : 0) | (abi >= 3 ? LL_TRUNCATE : 0) |
		(abi >= 5 ? 1ull << 15 : 0);
	out->net = abi >= 4 ? LL_NET_ALL : 0;
	out->scope = abi >= 6 ? LL_SCOPE_ALL : 0;
	return abi >= 6  ? sizeof *out :
		abi >= 4 ? offsetof(struct ll_ruleset, scope) :
			   offsetof(struct ll_ruleset, net);
}

/* 1: it holds, 0: the kernel has none, negative: error. */
static int
landlock(int dir, struct sb_error *err)
{
	int abi = (int)syscall(NR_LANDLOCK_CREATE_RULESET, NULL, 0, 1);
	struct ll_ruleset rules;
	struct ll_beneath beneath = { .dir = dir };
	sb_autoclose int fd = -1;
	size_t size;

	if (abi < 1)
		return 0;
	size = ll_handled(abi, &rules);
	beneath.allowed = (LL_WRITE_FILE | LL_READ_FILE | LL_READ_DIR | LL_REMOVE_FILE |
				  LL_MAKE_DIR | LL_MAKE_REG | LL_TRUNCATE) &
		rules.fs;
	fd = (int)syscall(NR_LANDLOCK_CREATE_RULESET, &rules, size, 0);
	if (fd < 0 || syscall(NR_LANDLOCK_ADD_RULE, fd, 1, &beneath, 0) < 0 ||
		syscall(NR_LANDLOCK_RESTRICT_SELF, fd, 0) < 0)
		return sb_fail_errno(err, "landlock");
	return 1;
}

static int
drop_capabilities(bool keep_files, struct sb_error *err)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct caps[2] = { 0 }, have[2] = { 0 };
	const uint32_t files =
		1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH | 1u << CAP_FOWNER;

	if (syscall(SYS_capget, &head, have) < 0)
		return sb_fail_errno(err, "capget");
	if (keep_files)
		caps[0].effective = caps[0].permitted = have[0].permitted & files;
	for (int cap = 0; cap <= CAPS_MAX; cap++)
		(void)prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	(void)prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return syscall(SYS_capset, &head, caps) < 0 ? sb_fail_errno(err, "capset") : 0;
}

static int
limit(int what, rlim_t value, struct sb_error *err)
{
	struct rlimit r;

	if (getrlimit((__rlimit_resource_t)what, &r) < 0)
		return sb_fail_errno(err, "getrlimit");
	if (value < r.rlim_max) {
		r.rlim_cur = r.rlim_max = value;
		if (setrlimit((__rlimit_resource_t)what, &r) < 0)
			return sb_fail_errno(err, "setrlimit");
	}
	return 0;
}

static int
limits(struct sb_error *err)
{
	int r = limit(RLIMIT_CORE, 0, err);

	if (r == 0)
		r = limit(RLIMIT_NOFILE, FILES_MAX, err);
	if (r == 0)
		r = limit(RLIMIT_FSIZE, FILE_BYTES_MAX, err);
		/* Sanitizers reserve more of it than a machine has. */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
	if (r == 0)
		r = limit(RLIMIT_AS, SB_CONFINE_MEMORY, err);
#endif
	return r;
}

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif
#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
#define ARG(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define ANSWER(e) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define LET(nr) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), ALLOW
/* Only with none of `bits` in that argument, or only with all of them. */
#define LET_WITHOUT(nr, n, bits) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 4), ARG(n), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), 0, 1), ANSWER(EPERM), ALLOW
#define LET_WITH(nr, n, bit) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 4), ARG(n), \
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bit), 1, 0), ANSWER(EPERM), ALLOW

static const struct sock_filter program[] = {
	FIELD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
	ANSWER(EPERM),
	FIELD(nr),
	LET(SYS_read),
	LET(SYS_write),
	LET(SYS_close),
	LET(SYS_openat),
	LET(NR_OPENAT2),
	LET(SYS_fstat),
	LET(SYS_newfstatat),
	LET(SYS_statx),
	LET(SYS_getdents64),
	LET(SYS_futex),
	LET(SYS_recvmsg),
	LET(SYS_sendmsg),
	LET(SYS_recvfrom),
	LET(SYS_sendto),
	LET(SYS_ppoll),
	LET(SYS_setitimer),
	LET(SYS_readv),
	LET(SYS_writev),
	LET(SYS_pread64),
	LET(SYS_lseek),
	LET(SYS_fcntl),
	LET(SYS_readlinkat),
	LET(SYS_renameat),
	LET(SYS_renameat2),
	LET(SYS_unlinkat),
	LET(SYS_mkdirat),
	LET(SYS_fchmod),
	LET(SYS_fsync),
	LET(SYS_fdatasync),
	LET(SYS_brk),
	LET(SYS_munmap),
	LET(SYS_mremap),
	LET(SYS_madvise),
	LET(SYS_getrandom),
	LET(SYS_clock_gettime),
	LET(SYS_clock_nanosleep),
	LET(SYS_nanosleep),
	LET(SYS_getrusage),
	LET(SYS_getpid),
	LET(SYS_gettid),
	LET(SYS_getcwd),
	LET(SYS_sched_yield),
	LET(SYS_sched_getaffinity),
	LET(SYS_set_robust_list),
	LET(NR_RSEQ),
	LET(SYS_rt_sigaction),
	LET(SYS_rt_sigprocmask),
	LET(SYS_rt_sigreturn),
	LET(SYS_sigaltstack),
	LET(SYS_restart_syscall),
	LET(SYS_exit),
	LET(SYS_exit_group),
#ifdef __x86_64__
	LET(SYS_poll),
	LET(SYS_stat),
	LET(SYS_lstat),
	LET(SYS_readlink),
#endif
	LET_WITHOUT(SYS_mmap, 2, PROT_EXEC),
	LET_WITHOUT(SYS_mprotect, 2, PROT_EXEC),
	/* Threads, and nothing else. */
	LET_WITH(SYS_clone, 0, CLONE_THREAD),
	/* Of all that can be unshared, the table of descriptors. */
	LET_WITHOUT(SYS_unshare, 0, ~(uint32_t)CLONE_FILES),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NR_CLONE3, 0, 1),
	ANSWER(ENOSYS),
	ANSWER(EPERM),
};

static int
filter(struct sb_error *err)
{
	struct sock_fprog p = { .len = (unsigned short)(sizeof program / sizeof program[0]),
		.filter = (struct sock_filter *)(void *)program };

	if (ARCH == 0)
		return 0;
	if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0) == 0)
		return 1;
	return errno == EINVAL || errno == ENOSYS ? 0 : sb_fail_errno(err, "seccomp");
}

int
sb_confine(int dir, struct sb_error *err)
{
	int land, sec, r = limits(err);

	if (r == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		r = sb_fail_errno(err, "no_new_privs");
	if (r < 0)
		return r;
	(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	land = landlock(dir, err);
	if (land < 0)
		return land;
	r = drop_capabilities(land > 0, err);
	if (r < 0)
		return r;
	sec = filter(err);
	if (sec < 0)
		return sec;
	return (land > 0 ? SB_CONFINE_LANDLOCK : 0) | (sec > 0 ? SB_CONFINE_SECCOMP : 0);
}
