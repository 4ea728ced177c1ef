E2E = \
	%D%/demo.sh \
	%D%/bench.sh \
	%D%/host-crash.sh \
	%D%/host-zfs.sh \
	%D%/install.sh \
	%D%/mirror.sh \
	%D%/quickstart.sh \
	%D%/rpc-host.sh \
	%D%/ssh.sh \
	%D%/session.sh

TESTS += $(E2E)
dist_check_SCRIPTS += $(E2E)
EXTRA_DIST += tests/lib/rpc.sh tests/lib/zfs.sh
EXTRA_DIST += tests/lib/trees.py
EXTRA_DIST += tests/lib/sshd.sh
