# How bytes are packed: tar and zstd, patches, librsync deltas, the base store.
sync_libsbsync_core_la_SOURCES += \
	%D%/confined.c %D%/confined.h \
	%D%/confined-filter.c %D%/confined-filter.h \
	%D%/delta.c %D%/delta.h \
	%D%/delta-apply.c \
	%D%/delta-child.c %D%/delta-child.h \
	%D%/delta-job.c %D%/delta-job.h \
	%D%/pack.h \
	%D%/pack-priv.h \
	%D%/pack-level.c %D%/pack-level.h \
	%D%/pack-pipe.c %D%/pack-pipe.h \
	%D%/pack-read.c \
	%D%/pack-strict.c %D%/pack-strict.h \
	%D%/pack-write.c \
	%D%/patch.c %D%/patch.h \
	%D%/recipe.c %D%/recipe.h \
	%D%/store.c %D%/store.h \
	%D%/store-catalog.c \
	%D%/store-clean.c \
	%D%/store-index.c \
	%D%/store-priv.h \
	%D%/store-segment.c \
	%D%/unpack.c %D%/unpack.h \
	%D%/unpack-child.c %D%/unpack-priv.h
