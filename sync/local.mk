# libsbsync: the delta-sync engine. The core is a convenience library so that tests reach private symbols.
noinst_LTLIBRARIES += %D%/libsbsync-core.la
sync_libsbsync_core_la_SOURCES = \
	%D%/arena.c %D%/arena.h \
	%D%/digest.h \
	%D%/diff.c %D%/diff-apply.c %D%/diff-codec.c \
	%D%/manifest.c %D%/manifest.h %D%/manifest-priv.h %D%/nstime.h \
	%D%/manifest-codec.h %D%/manifest-decode.c %D%/manifest-encode.c \
	%D%/manifest-file.c %D%/manifest-finish.c %D%/manifest-walk.c \
	%D%/ignore.c %D%/ignore.h %D%/ignore-priv.h \
	%D%/ignore-codec.c %D%/ignore-match.c %D%/ignore-parse.c \
	%D%/scan.c %D%/scan.h %D%/scan-priv.h %D%/scan-hash.c %D%/scan-links.c \
	%D%/scan-read.c %D%/scan-stat.c %D%/scan-walk.c \
	%D%/version.c

# The codec: data stream, patches, deltas, base store.
sync_libsbsync_core_la_SOURCES += \
	%D%/delta.c %D%/delta.h \
	%D%/delta-apply.c \
	%D%/delta-recipe.c %D%/delta-recipe.h \
	%D%/delta-child.c %D%/delta-child.h \
	%D%/delta-job.c %D%/delta-job.h \
	%D%/digest.h \
	%D%/pack.h \
	%D%/pack-attr.h \
	%D%/pack-level.c %D%/pack-level.h \
	%D%/pack-pipe.c %D%/pack-pipe.h \
	%D%/pack-read.c \
	%D%/pack-write.c \
	%D%/patch.c \
	%D%/store.c %D%/store.h \
	%D%/store-catalog.c \
	%D%/store-clean.c \
	%D%/store-index.c \
	%D%/store-priv.h \
	%D%/store-segment.c

# The engine: wire, both ends of a sync, commit, orchestration.
sync_libsbsync_core_la_SOURCES += \
	%D%/agent-watch.c %D%/agent-watch.h %D%/watch.c %D%/watch.h \
	%D%/agent.c %D%/agent.h %D%/agent-stdio.c \
	%D%/commit.c %D%/commit.h %D%/commit-ops.c %D%/commit-ops.h \
	%D%/conn.c %D%/conn-int.h \
	%D%/connect.c %D%/connect.h \
	%D%/flush-early.c %D%/flush-early.h \
	%D%/guard.c %D%/guard.h \
	%D%/hash.c %D%/hash.h \
	%D%/inflow.c %D%/inflow.h \
	%D%/journal.c \
	%D%/limit.c %D%/limit.h \
	%D%/link.c %D%/link.h \
	%D%/merge.c %D%/merge.h \
	%D%/mirror.c %D%/mirror-early.c %D%/mirror-int.h %D%/mirror-pull.c %D%/mirror-push.c \
	%D%/plan.c %D%/plan.h \
	%D%/proto.c %D%/proto.h \
	%D%/recall.c %D%/recall.h \
	%D%/receive.c %D%/receive.h %D%/receive-commit.c %D%/receive-data.c \
	%D%/receive-int.h %D%/receive-write.c \
	%D%/reconcile.c %D%/reconcile.h \
	%D%/replica.c %D%/replica.h \
	%D%/result.c %D%/result.h \
	%D%/send.c %D%/send.h \
	%D%/session.c %D%/session-run.c %D%/session-run.h \
	%D%/session-conflicts.c %D%/session-conflicts.h \
	%D%/session-local.c %D%/session-local.h %D%/session-policy.c \
	%D%/session-resolve.c %D%/session-resolve.h \
	%D%/session-watch.c \
	%D%/session-undo.c %D%/session-undo.h %D%/session-undo-run.c \
	%D%/session-store.c %D%/session-store.h \
	%D%/stage.c %D%/stage.h \
	%D%/wire.c %D%/wire.h

sync_libsbsync_core_la_LIBADD = lib/base/libbase.la

lib_LTLIBRARIES += libsbsync.la
libsbsync_la_SOURCES =
libsbsync_la_LIBADD = %D%/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS)
libsbsync_la_LDFLAGS = $(AM_LDFLAGS) -version-info 0:0:0 -no-undefined
pkgconfig_DATA += %D%/libsbsync.pc

sbsyncincludedir = $(includedir)/sbsync
sbsyncinclude_HEADERS = \
	%D%/sbsync/conn.h \
	%D%/sbsync/session.h \
	%D%/sbsync/sync.h \
	%D%/sbsync/version.h

include sync/transport.mk
