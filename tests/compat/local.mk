# The APIs of others: scripts that tests/e2e/e2b.sh and daytona.sh run.
EXTRA_DIST += %D%/e2b.mjs %D%/e2b-hostile.py %D%/bench-e2b.mjs
EXTRA_DIST += %D%/daytona.mjs %D%/daytona-hostile.py %D%/openapi.py \
	%D%/npm/package.json %D%/npm/package-lock.json
EXTRA_DIST += %D%/bench-ssh-gate.sh %D%/ssh-garbage.py %D%/ssh-paramiko.py %D%/ssh-term.py

# Both pinned versions of each vendor's package, every runtime and storage that works here.
.PHONY: check-compat
check-compat:
	SB_COMPAT_FULL=1 $(MAKE) check TEST_TIMEOUT=3600 \
		TESTS="tests/e2e/e2b.sh tests/e2e/daytona.sh"

# SSH into sessions with every runtime that works here, and a thousand silent connections.
.PHONY: check-ssh
check-ssh:
	SB_SSH_RUNTIMES='gvisor none' SB_SSH_IDLE=1000 $(MAKE) check TEST_TIMEOUT=1800 \
		TESTS=tests/e2e/ssh-gate.sh

# Numbers, no verdicts: into a session, against the machine's own sshd.
.PHONY: bench-ssh-gate
bench-ssh-gate: all
	SB_TOP_SRCDIR='$(abs_top_srcdir)' SB_TOP_BUILDDIR='$(abs_top_builddir)' \
		SB_BOX='$(abs_top_builddir)/sb-box' $(SHELL) $(srcdir)/%D%/bench-ssh-gate.sh

# Numbers, no verdicts.
.PHONY: bench-compat
bench-compat: all
	SB_COMPAT_BENCH=1 \
		SB_TOP_SRCDIR='$(abs_top_srcdir)' SB_TOP_BUILDDIR='$(abs_top_builddir)' \
		SB_BOX='$(abs_top_builddir)/sb-box' $(SHELL) $(srcdir)/tests/e2e/e2b.sh
