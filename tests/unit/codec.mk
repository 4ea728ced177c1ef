# The codec: data stream, patches, deltas, base store.
CODEC_TESTS = \
	%D%/test-codec-nomem \
	%D%/test-delta \
	%D%/test-delta-child \
	%D%/test-pack \
	%D%/test-pack-confined \
	%D%/test-pack-hostile \
	%D%/test-pack-hostile-confined \
	%D%/test-pack-level \
	%D%/test-patch \
	%D%/test-store \
	%D%/test-unpack
check_PROGRAMS += $(CODEC_TESTS)
TESTS += $(CODEC_TESTS)
tests_unit_test_pack_SOURCES = %D%/test-pack.c tests/lib/blocks.h
tests_unit_test_pack_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_pack_hostile_SOURCES = %D%/test-pack-hostile.c tests/lib/blocks.h
tests_unit_test_pack_hostile_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_pack_confined_SOURCES = %D%/test-pack.c tests/lib/blocks.h
tests_unit_test_pack_confined_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_CONFINED
tests_unit_test_pack_confined_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_pack_hostile_confined_SOURCES = %D%/test-pack-hostile.c tests/lib/blocks.h
tests_unit_test_pack_hostile_confined_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_CONFINED
tests_unit_test_pack_hostile_confined_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_unpack_SOURCES = %D%/test-unpack.c tests/lib/blocks.h
tests_unit_test_unpack_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_pack_level_SOURCES = %D%/test-pack-level.c
tests_unit_test_pack_level_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_patch_SOURCES = %D%/test-patch.c
tests_unit_test_patch_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_store_SOURCES = %D%/test-store.c tests/lib/tmpdir.h
tests_unit_test_store_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_delta_SOURCES = %D%/test-delta.c tests/lib/tmpdir.h
tests_unit_test_delta_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_delta_child_SOURCES = %D%/test-delta-child.c
tests_unit_test_delta_child_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_codec_nomem_SOURCES = %D%/test-codec-nomem.c \
	tests/lib/nomem.c tests/lib/nomem.h tests/lib/tmpdir.h
tests_unit_test_codec_nomem_LDFLAGS = $(NOMEM_WRAP)
tests_unit_test_codec_nomem_LDADD = $(UNIT_LDADD_SYNC)
