# lib/base
BASE_TESTS = \
	tests/unit/test-allocfail \
	tests/unit/test-cancel \
	tests/unit/test-file \
	tests/unit/test-log \
	tests/unit/test-nofile \
	tests/unit/test-opt \
	tests/unit/test-path \
	tests/unit/test-path-remove \
	tests/unit/test-procid \
	tests/unit/test-run \
	tests/unit/test-spawn \
	tests/unit/test-secret \
	tests/unit/test-str
check_PROGRAMS += $(BASE_TESTS)
TESTS += $(BASE_TESTS)
tests_unit_test_cancel_SOURCES = tests/unit/test-cancel.c
tests_unit_test_cancel_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_file_SOURCES = tests/unit/test-file.c tests/lib/tmpdir.h
tests_unit_test_file_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_log_SOURCES = tests/unit/test-log.c
tests_unit_test_log_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_path_SOURCES = tests/unit/test-path.c tests/lib/tmpdir.h
tests_unit_test_path_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_procid_SOURCES = tests/unit/test-procid.c
tests_unit_test_procid_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_spawn_SOURCES = tests/unit/test-spawn.c tests/lib/tmpdir.h
tests_unit_test_spawn_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_secret_SOURCES = tests/unit/test-secret.c
tests_unit_test_secret_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_str_SOURCES = tests/unit/test-str.c
tests_unit_test_str_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_opt_SOURCES = tests/unit/test-opt.c
tests_unit_test_opt_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_path_remove_SOURCES = tests/unit/test-path-remove.c tests/lib/tmpdir.h
tests_unit_test_path_remove_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_allocfail_SOURCES = tests/unit/test-allocfail.c tests/lib/tmpdir.h
tests_unit_test_allocfail_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_nofile_SOURCES = tests/unit/test-nofile.c tests/lib/tmpdir.h
tests_unit_test_nofile_LDADD = $(UNIT_LDADD_BASE)
tests_unit_test_run_SOURCES = tests/unit/test-run.c
tests_unit_test_run_LDADD = $(UNIT_LDADD_BASE)
