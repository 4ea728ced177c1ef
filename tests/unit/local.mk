# cmocka programs: add the name to UNIT_BASE, UNIT_SYNC or UNIT_SANDBOX and the sources as usual.
UNIT_LDADD_BASE = lib/base/libbase.la $(CMOCKA_LIBS)
UNIT_LDADD_SYNC = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS) $(CMOCKA_LIBS)
UNIT_LDADD_SANDBOX = lib/libsandbox-core.la sync/libsbsync-core.la $(SANDBOX_LIBS) $(SYNC_LIBS) \
	$(SSH2_LIBS) $(CMOCKA_LIBS)

check_PROGRAMS += \
	%D%/test-error \
	%D%/test-buf

TESTS += \
	%D%/test-error \
	%D%/test-buf

tests_unit_test_error_SOURCES = %D%/test-error.c
tests_unit_test_error_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_buf_SOURCES = %D%/test-buf.c
tests_unit_test_buf_LDADD = $(UNIT_LDADD_BASE)

include tests/unit/transport.mk

# Every allocation fails once (tests/lib/nomem.h).
NOMEM_WRAP = $(AM_LDFLAGS) -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=reallocarray \
	-Wl,--wrap=strdup,--wrap=strndup,--wrap=asprintf,--wrap=vasprintf,--wrap=free
check_PROGRAMS += %D%/test-nomem
TESTS += %D%/test-nomem
tests_unit_test_nomem_SOURCES = %D%/test-nomem.c tests/lib/nomem.c tests/lib/nomem.h
tests_unit_test_nomem_LDFLAGS = $(NOMEM_WRAP)
tests_unit_test_nomem_LDADD = $(UNIT_LDADD_BASE)
include tests/unit/cloud.mk
include tests/unit/fleet.mk
include tests/unit/codec.mk
include tests/unit/engine.mk

# What the programs share (bin/common).
check_PROGRAMS += %D%/test-progress
TESTS += %D%/test-progress
tests_unit_test_progress_SOURCES = %D%/test-progress.c bin/common/progress.c \
	bin/common/progress.h
tests_unit_test_progress_LDADD = $(UNIT_LDADD_SYNC)
