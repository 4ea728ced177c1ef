/* SPDX-License-Identifier: MIT */
/* The child that works on what a sandbox sent reaches nothing but what it was given. */
#include "config.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <base/cleanup.h>
#include <sync/codec/delta-child.h>

#include "tests/lib/unit.h"

/* What it tries must fail; a message says what did not. */
static int
break_out(const struct sb_delta_io *io, int fd, void *arg, struct sb_error *err)
{
	pid_t pid;

	(void)io;
	(void)arg;
	if (open("/etc/passwd", O_RDONLY) >= 0 || open("/tmp/out", O_WRONLY | O_CREAT, 0600) >= 0)
		return sb_fail(err, SB_E_DENIED, "it opened a file");
	if (socket(AF_UNIX, SOCK_STREAM, 0) >= 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0)
		return sb_fail(err, SB_E_DENIED, "it has a socket");
	if (kill(getppid(), 0) == 0)
		return sb_fail(err, SB_E_DENIED, "it signals");
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) !=
		MAP_FAILED)
		return sb_fail(err, SB_E_DENIED, "it has memory to execute");
	pid = fork();
	if (pid == 0)
		_exit(0);
	return pid > 0 || lseek(fd, 0, SEEK_END) < 0 ?
		sb_fail(err, SB_E_DENIED, "it forks, or has not its file") :
		0;
}

static int
drop(const void *data, size_t len, void *arg, struct sb_error *err)
{
	(void)data;
	(void)len;
	(void)arg;
	(void)err;
	return 0;
}

static void
the_child_reaches_nothing(void **state)
{
	struct sb_delta_budget b = SB_DELTA_BUDGET_INIT;
	struct sb_delta_child_opts o = { .task = break_out, .sink = drop, .budget = &b };
	struct sb_error err = { 0 };
	sb_autoclose int fd = open("/dev/zero", O_RDONLY | O_CLOEXEC);

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || \
	(!defined(__x86_64__) && !defined(__aarch64__))
	skip_because("it is not confined in this build");
#endif
	o.fd = fd;
	assert_ok(sb_delta_child_run(&o, &err), &err);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(the_child_reaches_nothing) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
