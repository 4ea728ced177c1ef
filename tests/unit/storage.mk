# Storages with snapshots, each on a loop image that the test makes; without root they are skipped.
STORAGEFIX = tests/lib/storagefix.c tests/lib/storagefix.h
PLAINTREE = tests/lib/plaintree.c tests/lib/plaintree.h
STORAGE_TESTS = \
	%D%/test-storage-auto \
	%D%/test-storage-btrfs \
	%D%/test-storage-ext4 \
	%D%/test-storage-model-btrfs \
	%D%/test-storage-model-ext4 \
	%D%/test-storage-model-xfs \
	%D%/test-storage-overlay-ext4 \
	%D%/test-storage-overlay-xfs \
	%D%/test-storage-owner-ext4 \
	%D%/test-storage-owner-xfs \
	%D%/test-storage-xfs
check_PROGRAMS += $(STORAGE_TESTS)
TESTS += $(STORAGE_TESTS)
tests_unit_test_storage_auto_SOURCES = %D%/test-storage-auto.c $(HOSTFIX)
tests_unit_test_storage_auto_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_ext4_SOURCES = %D%/test-storage.c $(STORAGEFIX)
tests_unit_test_storage_ext4_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"overlay-ext4"'
tests_unit_test_storage_ext4_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_xfs_SOURCES = %D%/test-storage.c $(STORAGEFIX)
tests_unit_test_storage_xfs_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"overlay-xfs"'
tests_unit_test_storage_xfs_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_btrfs_SOURCES = %D%/test-storage.c $(STORAGEFIX)
tests_unit_test_storage_btrfs_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"btrfs"'
tests_unit_test_storage_btrfs_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_overlay_ext4_SOURCES = %D%/test-storage-overlay.c $(STORAGEFIX)
tests_unit_test_storage_overlay_ext4_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"overlay-ext4"'
tests_unit_test_storage_overlay_ext4_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_overlay_xfs_SOURCES = %D%/test-storage-overlay.c $(STORAGEFIX)
tests_unit_test_storage_overlay_xfs_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"overlay-xfs"'
tests_unit_test_storage_overlay_xfs_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_model_ext4_SOURCES = %D%/test-storage-model.c $(PLAINTREE) $(STORAGEFIX)
tests_unit_test_storage_model_ext4_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"overlay-ext4"'
tests_unit_test_storage_model_ext4_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_model_xfs_SOURCES = %D%/test-storage-model.c $(PLAINTREE) $(STORAGEFIX)
tests_unit_test_storage_model_xfs_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"overlay-xfs"'
tests_unit_test_storage_model_xfs_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_model_btrfs_SOURCES = %D%/test-storage-model.c $(PLAINTREE) $(STORAGEFIX)
tests_unit_test_storage_model_btrfs_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"btrfs"'
tests_unit_test_storage_model_btrfs_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_owner_ext4_SOURCES = %D%/test-storage-owner.c $(STORAGEFIX)
tests_unit_test_storage_owner_ext4_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"overlay-ext4"'
tests_unit_test_storage_owner_ext4_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_storage_owner_xfs_SOURCES = %D%/test-storage-owner.c $(STORAGEFIX)
tests_unit_test_storage_owner_xfs_CPPFLAGS = $(AM_CPPFLAGS) -DTEST_STORAGE='"overlay-xfs"'
tests_unit_test_storage_owner_xfs_LDADD = $(UNIT_LDADD_SANDBOX)
