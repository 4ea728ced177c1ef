dist_man_MANS += \
	%D%/sbctl.1 \
	%D%/sbhostd.8 \
	%D%/sbsync.1 \
	%D%/sbsync-protocol.5
EXTRA_DIST += \
	%D%/ARCHITECTURE.md \
	%D%/BENCHMARKS.md \
	%D%/HACKING.md
dist_doc_DATA += %D%/sandbox.proto
