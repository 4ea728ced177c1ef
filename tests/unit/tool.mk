# Files and programs on behalf of an agent.
TOOL_TESTS = \
	%D%/test-tool-far \
	%D%/test-tool-proc \
	%D%/test-tool-roots \
	%D%/test-tool-text
check_PROGRAMS += $(TOOL_TESTS)
TESTS += $(TOOL_TESTS)
UNIT_LDADD_TOOL = lib/tool/libtools.la lib/base/libbase.la $(CMOCKA_LIBS)
tests_unit_test_tool_far_SOURCES = %D%/test-tool-far.c
tests_unit_test_tool_far_LDADD = $(UNIT_LDADD_SANDBOX)
tests_unit_test_tool_proc_SOURCES = %D%/test-tool-proc.c
tests_unit_test_tool_proc_LDADD = $(UNIT_LDADD_TOOL)
tests_unit_test_tool_roots_SOURCES = %D%/test-tool-roots.c
tests_unit_test_tool_roots_LDADD = $(UNIT_LDADD_TOOL)
tests_unit_test_tool_text_SOURCES = %D%/test-tool-text.c
tests_unit_test_tool_text_LDADD = $(UNIT_LDADD_TOOL)
