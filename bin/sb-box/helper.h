/* SPDX-License-Identifier: MIT */
#ifndef SB_BOX_HELPER_H
#define SB_BOX_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <host/runtime/helper-wire.h>

/*
 * The helper of the host's runtimes: a static program, small enough to be in every box
 * (lib/host/runtime/box.h says where). It carries no secrets: a hostile program in the box that
 * reads or kills it harms that box only.
 */

/* Says "sb-box: WHAT: error of errno" and gives SB_HELPER_FAILED. */
int helper_fail(const char *what);

/* Tells the parent, which started us with `leads`, why the program could not be executed. */
void helper_report(int sys);

/* Joins the network namespace of that file. Returns 0 or -1. */
int helper_join_net(const char *path);

/* Joins the control group of that directory, if we are not in it. Returns 0 or -1. */
int helper_join_group(const char *dir);

/* Reads all of it; false at an early end. */
bool helper_read_all(int fd, void *to, size_t len);

/* How a command runs inside. */
struct helper_job {
	char **argv;
	char **env; /* NULL: ours */
	const char *cwd;
	unsigned long long max_memory; /* RLIMIT_AS, 0: none */
	unsigned long long max_procs;  /* RLIMIT_NPROC of the box's user in there, 0: none */
	int lifeline;                  /* when it ends, so does everything; -1: none */
	bool null_stdin;               /* the command's input is /dev/null */
	bool leave;                    /* what the command leaves behind goes on */
	bool own_stdio; /* its standard descriptors are `stdio`, -1 for /dev/null; else ours */
	int stdio[3];
};

/*
 * Starts the command with no signal blocked and returns its pid, or -1. The caller has blocked all
 * signals.
 */
pid_t helper_start(const struct helper_job *j);
/* Lets SIGCHLD end a wait. */
void helper_catch_child(void);

/*
 * Runs the command to its end and ends what it leaves behind. Returns its exit code, 128+n for a
 * signal.
 */
int helper_supervise(const struct helper_job *j);

/*
 * Sends `sig` to every process in this /proc that carries the mark, or descends from `parent` (0:
 * none). Returns how many there were.
 */
size_t helper_signal(const char *mark, pid_t parent, int sig);

/* The same for processes that carry the mark or are of session `sid`, but not for supervisors. */
size_t helper_signal_session(const char *mark, pid_t sid, int sig);

/* The commands; each returns the exit code. */

/* run [-l] [-k] [-m BYTES] [-C DIR] -- CMD...: supervises the command here. */
int helper_main_run(int argc, char **argv);
/* enter -p PID -t TICKS [-g CGROUP]... [-u UID] [-P N] -- CMD...: as run, in the namespaces of PID.
 */
int helper_main_enter(int argc, char **argv);
/* init: the first process of a box. */
int helper_main_init(int argc, char **argv);
/* dial PORT: joins stdin and stdout to the loopback port. */
int helper_main_dial(int argc, char **argv);
/* shim [-ep] [-s FILE] [-u FILE] [-U UID] -- CMD...: pipes for its output, its code in FILE. */
int helper_main_shim(int argc, char **argv);
/* serve: runs commands for the host, see lib/host/runtime/helper-wire.h. */
int helper_main_serve(int argc, char **argv);
/* forker [-g CGROUP]...: starts programs in these groups for the host, see lib/base/forker.h. */
int helper_main_forker(int argc, char **argv);
/* await: ends as the command whose socket is its stdin. */
int helper_main_await(int argc, char **argv);
/* Ends as a command would whose program is its argument: 0 when that is there and may run. */
int helper_main_find(int argc, char **argv);
/* guest PATH: stays and works for the host (lib/host/guest/guest-wire.h), reached at PATH too. */
int helper_main_guest(int argc, char **argv);
/* guest-link PATH: hands its stdin to that guest as one more link. */
int helper_main_guest_link(int argc, char **argv);
/*
 * shell [-t COLSxROWS] [-c COMMAND]: the box's shell as an SSH server starts it; with -t on a
 * terminal of its own, whose bytes go by stdin and stdout and whose size comes by stderr, in
 * records of SB_HELPER_SIZE_BYTES.
 */
int helper_main_shell(int argc, char **argv);
/* agent: listens for who asks for the agent of an SSH client (lib/compat/ssh/sshagent.h). */
int helper_main_agent(int argc, char **argv);
/* sftp: a server of SFTP on stdin and stdout. */
int helper_main_sftp(int argc, char **argv);
/* signal MARK NUMBER: prints how many processes there were. */
int helper_main_signal(int argc, char **argv);
/*
 * place [-g CGROUP]... [-N NETNS] [-S DIR [-B|-W FILE]...] [-u UID] -- CMD...: executes the command
 * in there, with each FILE at DIR/0, DIR/1 and so on (-W: without set-id bits and devices), as UID,
 * who is user 0 of a new namespace.
 */
int helper_main_place(int argc, char **argv);

#endif
