# What a tree is: entries, manifests, differences, digests.
sync_libsbsync_core_la_SOURCES += \
	%D%/arena.c %D%/arena.h \
	%D%/attrs.c %D%/attrs.h \
	%D%/diff.c %D%/diff.h \
	%D%/diff-apply.c \
	%D%/diff-codec.c \
	%D%/digest.h \
	%D%/entry.c %D%/entry.h \
	%D%/hash.c %D%/hash.h \
	%D%/manifest.c %D%/manifest.h \
	%D%/manifest-codec-priv.h \
	%D%/manifest-decode.c \
	%D%/manifest-encode.c \
	%D%/manifest-file.c \
	%D%/manifest-finish.c \
	%D%/manifest-graft.c \
	%D%/manifest-priv.h \
	%D%/manifest-walk.c \
	%D%/nstime.h \
	%D%/seal.c %D%/seal.h \
	%D%/stage-names.h
