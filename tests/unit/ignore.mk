# Exclude rules, also against git itself.
check_PROGRAMS += %D%/test-ignore %D%/test-ignore-git
TESTS += %D%/test-ignore %D%/test-ignore-git
tests_unit_test_ignore_SOURCES = %D%/test-ignore.c
tests_unit_test_ignore_LDADD = $(UNIT_LDADD_SYNC)
tests_unit_test_ignore_git_SOURCES = %D%/test-ignore-git.c
tests_unit_test_ignore_git_LDADD = $(UNIT_LDADD_SYNC)

check_PROGRAMS += %D%/test-gitconfig
TESTS += %D%/test-gitconfig
tests_unit_test_gitconfig_SOURCES = %D%/test-gitconfig.c
tests_unit_test_gitconfig_LDADD = $(UNIT_LDADD_SYNC)
