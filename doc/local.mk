dist_man_MANS += \
	%D%/sbsync.1
EXTRA_DIST += \
	%D%/ARCHITECTURE.md \
	%D%/BENCHMARKS.md \
	%D%/HACKING.md
