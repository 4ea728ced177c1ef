# What to do: three-way rules, the guard, how each change travels, merge of texts.
sync_libsbsync_core_la_SOURCES += \
	%D%/guard.c %D%/guard.h \
	%D%/merge.c %D%/merge.h \
	%D%/plan.c %D%/plan.h \
	%D%/reconcile.c %D%/reconcile.h
