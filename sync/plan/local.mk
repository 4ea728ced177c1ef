# What to do: three-way rules, the guard, how each change travels, merge of texts.
sync_libsbsync_core_la_SOURCES += \
	%D%/guard.c %D%/guard.h \
	%D%/guard-config.c %D%/guard-config.h \
	%D%/guard-places.c %D%/guard-places.h \
	%D%/guard-tree.c %D%/guard-tree.h \
	%D%/merge.c %D%/merge.h \
	%D%/plan.c %D%/plan.h \
	%D%/reconcile.c %D%/reconcile.h \
	%D%/reconcile-links.c %D%/reconcile-links.h
