# A second agent, written from sbsync-protocol(5) alone.
TESTS += %D%/interop.sh
dist_check_SCRIPTS += %D%/interop.sh
EXTRA_DIST += %D%/agent.py %D%/commit.py %D%/rules.py %D%/tree.py %D%/sbcold.py %D%/wire.py
