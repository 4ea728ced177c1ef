dist_man_MANS += \
	%D%/sbctl.1 \
	%D%/sbhostd.8 \
	%D%/sbprovider-check.1 \
	%D%/sbsync.1 \
	%D%/sbsync-protocol.5
EXTRA_DIST += \
	%D%/ARCHITECTURE.md \
	%D%/SEEDS.md \
	%D%/STORAGE.md \
	%D%/BENCHMARKS.md \
	%D%/HACKING.md \
	%D%/NETWORK.md \
	%D%/SECURITY.md
dist_doc_DATA += %D%/sandbox.proto

# The examples of the library, with its public headers and exported symbols only;
# tests/e2e/example.sh runs them.
check_PROGRAMS += %D%/agent %D%/example
doc_agent_SOURCES = %D%/agent.c
doc_agent_LDADD = libsandbox.la libsbsync.la
doc_example_SOURCES = %D%/example.c
doc_example_LDADD = libsandbox.la libsbsync.la
