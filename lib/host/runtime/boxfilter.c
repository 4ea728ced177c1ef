/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <host/runtime/boxfilter.h>

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define ARCH AUDIT_ARCH_AARCH64
#else
#define ARCH 0
#endif

#define FIELD(name) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, name))
/* The lower half of an argument: these machines are little-endian. */
#define ARG(n) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[n]))
#define ANSWER(e) BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (e))
#define ALLOW BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
/* The call with that number gets that answer. */
#define REFUSE(nr, e) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (nr), 0, 1), ANSWER(e)
#define NEW_NAMESPACES \
	(CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | \
		CLONE_NEWPID | CLONE_NEWNET)

#define NR_OPEN_TREE 428
#define NR_MOVE_MOUNT 429
#define NR_FSOPEN 430
#define NR_FSCONFIG 431
#define NR_FSMOUNT 432
#define NR_FSPICK 433
#define NR_CLONE3 435
#define NR_PIDFD_GETFD 438
#define NR_MOUNT_SETATTR 442
#define NR_IO_URING_SETUP 425
#define NR_IO_URING_ENTER 426
#define NR_IO_URING_REGISTER 427

static const struct sock_filter program[] = {
	FIELD(arch),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ARCH, 1, 0),
	ANSWER(ENOSYS),
	FIELD(nr),
#ifdef __x86_64__
	/* The x32 calls have numbers of their own, from here up. */
	BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1),
	ANSWER(ENOSYS),
#endif
	REFUSE(SYS_mount, EPERM),
	REFUSE(SYS_umount2, EPERM),
	REFUSE(SYS_pivot_root, EPERM),
	REFUSE(SYS_chroot, EPERM),
	REFUSE(NR_OPEN_TREE, EPERM),
	REFUSE(NR_MOVE_MOUNT, EPERM),
	REFUSE(NR_FSOPEN, EPERM),
	REFUSE(NR_FSCONFIG, EPERM),
	REFUSE(NR_FSMOUNT, EPERM),
	REFUSE(NR_FSPICK, EPERM),
	REFUSE(NR_MOUNT_SETATTR, EPERM),
	REFUSE(SYS_unshare, EPERM),
	REFUSE(SYS_setns, EPERM),
	REFUSE(SYS_init_module, EPERM),
	REFUSE(SYS_finit_module, EPERM),
	REFUSE(SYS_delete_module, EPERM),
	REFUSE(SYS_kexec_load, EPERM),
#ifdef SYS_kexec_file_load
	REFUSE(SYS_kexec_file_load, EPERM),
#endif
	REFUSE(SYS_bpf, EPERM),
	REFUSE(SYS_perf_event_open, EPERM),
	REFUSE(SYS_userfaultfd, EPERM),
	REFUSE(SYS_add_key, EPERM),
	REFUSE(SYS_request_key, EPERM),
	REFUSE(SYS_keyctl, EPERM),
	REFUSE(SYS_process_vm_readv, EPERM),
	REFUSE(SYS_process_vm_writev, EPERM),
	REFUSE(SYS_open_by_handle_at, EPERM),
	REFUSE(SYS_name_to_handle_at, EPERM),
	REFUSE(SYS_swapon, EPERM),
	REFUSE(SYS_swapoff, EPERM),
	REFUSE(SYS_reboot, EPERM),
	REFUSE(SYS_syslog, EPERM),
	REFUSE(SYS_acct, EPERM),
	REFUSE(SYS_quotactl, EPERM),
	REFUSE(SYS_settimeofday, EPERM),
	REFUSE(SYS_clock_settime, EPERM),
	REFUSE(SYS_sethostname, EPERM),
	REFUSE(SYS_setdomainname, EPERM),
	REFUSE(SYS_vhangup, EPERM),
	REFUSE(NR_PIDFD_GETFD, EPERM),
#ifdef __x86_64__
	REFUSE(SYS_iopl, EPERM),
	REFUSE(SYS_ioperm, EPERM),
	REFUSE(SYS_modify_ldt, EPERM),
#endif
	REFUSE(NR_CLONE3, ENOSYS),
	REFUSE(NR_IO_URING_SETUP, ENOSYS),
	REFUSE(NR_IO_URING_ENTER, ENOSYS),
	REFUSE(NR_IO_URING_REGISTER, ENOSYS),
	/* New namespaces by clone. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 0, 4),
	ARG(0),
	BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, NEW_NAMESPACES, 0, 1),
	ANSWER(EPERM),
	ALLOW,
	/* Bytes typed into a terminal that somebody else reads. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 5),
	ARG(1),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCSTI, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, TIOCLINUX, 0, 1),
	ANSWER(EPERM),
	ALLOW,
	/* Sockets that leave the network namespace or reach deep. */
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, 5),
	ARG(0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_VSOCK, 2, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_ALG, 1, 0),
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AF_PACKET, 0, 1),
	ANSWER(EPERM),
	ALLOW,
};

const struct sock_filter *
sb_boxfilter_program(size_t *n)
{
	*n = sizeof program / sizeof program[0];
	return program;
}

int
sb_boxfilter_install(void)
{
	struct sock_fprog p = { .len = (unsigned short)(sizeof program / sizeof program[0]),
		.filter = (struct sock_filter *)(void *)program };

	return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0);
}
