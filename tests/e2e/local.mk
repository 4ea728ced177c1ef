E2E = \
	%D%/attrs.sh \
	%D%/completion.sh \
	%D%/cross-mounts.sh \
	%D%/demo.sh \
	%D%/docker.sh \
	%D%/docker-daemon.sh \
	%D%/docker-rootless.sh \
	%D%/docker-run.sh \
	%D%/docker-kill.sh \
	%D%/e2b-kill.sh \
	%D%/bench.sh \
	%D%/daytona.sh \
	%D%/e2b.sh \
	%D%/example.sh \
	%D%/gitignore.sh \
	%D%/guard.sh \
	%D%/host-crash.sh \
	%D%/host-limits.sh \
	%D%/host-owner.sh \
	%D%/host-btrfs.sh \
	%D%/host-overlay-xfs.sh \
	%D%/cold.sh \
	%D%/cold-s3.sh \
	%D%/host-cold.sh \
	%D%/host-cold-btrfs.sh \
	%D%/host-cold-zfs.sh \
	%D%/host-overlay.sh \
	%D%/host-resume.sh \
	%D%/host-runtimes.sh \
	%D%/host-zfs.sh \
	%D%/install.sh \
	%D%/local-attrs.sh \
	%D%/mirror.sh \
	%D%/mirror-user.sh \
	%D%/network.sh \
	%D%/output.sh \
	%D%/odd-fs.sh \
	%D%/operating.sh \
	%D%/port-token.sh \
	%D%/progress.sh \
	%D%/quickstart.sh \
	%D%/rpc-host.sh \
	%D%/run-test.sh \
	%D%/sbctl-kill.sh \
	%D%/sbctl-run.sh \
	%D%/sbctl-turn.sh \
	%D%/ssh.sh \
	%D%/ssh-agentless.sh \
	%D%/ssh-asks.sh \
	%D%/ssh-cuts.sh \
	%D%/ssh-gate.sh \
	%D%/ssh-ways.sh \
	%D%/session.sh \
	%D%/session-again.sh \
	%D%/session-links.sh \
	%D%/session-aside.sh \
	%D%/session-base.sh \
	%D%/session-care.sh \
	%D%/session-conflicts.sh \
	%D%/session-live.sh \
	%D%/session-stop.sh \
	%D%/session-watch.sh \
	%D%/session-watch-ssh.sh \
	%D%/session-guards.sh \
	%D%/session-ignore.sh \
	%D%/session-faults.sh \
	%D%/state-owner.sh \
	%D%/storage-crash.sh \
	%D%/tool-bombs.sh \
	%D%/trust.sh \
	%D%/undo.sh \
	%D%/units.sh \
	%D%/unstable.sh

TESTS += $(E2E)

# The long run of ssh-cuts.sh.
.PHONY: check-cuts
check-cuts: all tests/lib/relay$(EXEEXT)
	SB_CUT_FILES=50000 SB_CUTS=50 \
		SB_TOP_SRCDIR='$(abs_top_srcdir)' SB_TOP_BUILDDIR='$(abs_top_builddir)' \
		$(SHELL) $(srcdir)/tests/e2e/ssh-cuts.sh
dist_check_SCRIPTS += $(E2E)
EXTRA_DIST += tests/lib/hoststorage.sh tests/lib/hosttests.sh tests/lib/json.sh tests/lib/loop.sh
EXTRA_DIST += tests/lib/rpc.sh tests/lib/zfs.sh
EXTRA_DIST += tests/lib/onterm.py tests/lib/tmux.sh tests/lib/trees.py
EXTRA_DIST += tests/lib/zshtab.py tests/lib/onterm.py tests/lib/trees.py
EXTRA_DIST += tests/lib/sshd.sh
