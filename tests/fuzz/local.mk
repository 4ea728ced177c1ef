# Fuzz targets. Each is fuzz-NAME.c with LLVMFuzzerTestOneInput and a folder corpus/NAME of small
# inputs, and three lines here: its name in FUZZERS_ALL, its sources, its libraries.
#
# In normal builds replay.c is their main and `make check` feeds them the corpus. With
# --enable-fuzzers they are libFuzzer programs; `make fuzz` builds those below fuzz-build/ and runs
# them.
FUZZERS_ALL = \
	%D%/fuzz-cursor \
	%D%/fuzz-escape \
	%D%/fuzz-opt \
	%D%/fuzz-ignore \
	%D%/fuzz-envd \
	%D%/fuzz-rpc

tests_fuzz_fuzz_cursor_SOURCES = %D%/fuzz-cursor.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_cursor_LDADD = $(FUZZ_LDADD_BASE)
tests_fuzz_fuzz_escape_SOURCES = %D%/fuzz-escape.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_escape_LDADD = $(FUZZ_LDADD_BASE)
tests_fuzz_fuzz_opt_SOURCES = %D%/fuzz-opt.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_opt_LDADD = $(FUZZ_LDADD_BASE)
tests_fuzz_fuzz_ignore_SOURCES = %D%/fuzz-ignore.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_ignore_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_envd_SOURCES = %D%/fuzz-envd.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_envd_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_rpc_SOURCES = %D%/fuzz-rpc.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_rpc_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-cold
tests_fuzz_fuzz_cold_SOURCES = %D%/fuzz-cold.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_cold_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-aws
tests_fuzz_fuzz_aws_SOURCES = %D%/fuzz-aws.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_aws_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-docker %D%/fuzz-dockeragent %D%/fuzz-profile %D%/fuzz-state %D%/fuzz-trust
tests_fuzz_fuzz_trust_SOURCES = %D%/fuzz-trust.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_trust_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_dockeragent_SOURCES = %D%/fuzz-dockeragent.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_dockeragent_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_docker_SOURCES = %D%/fuzz-docker.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_docker_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_profile_SOURCES = %D%/fuzz-profile.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_profile_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_state_SOURCES = %D%/fuzz-state.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_state_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-attach %D%/fuzz-http %D%/fuzz-zfs
tests_fuzz_fuzz_attach_SOURCES = %D%/fuzz-attach.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_attach_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_http_SOURCES = %D%/fuzz-http.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_http_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_zfs_SOURCES = %D%/fuzz-zfs.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_zfs_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-multipart %D%/fuzz-query %D%/fuzz-control
tests_fuzz_fuzz_multipart_SOURCES = %D%/fuzz-multipart.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_multipart_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_control_SOURCES = %D%/fuzz-control.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_control_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_query_SOURCES = %D%/fuzz-query.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_query_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-replyhead %D%/fuzz-wsframe
tests_fuzz_fuzz_replyhead_SOURCES = %D%/fuzz-replyhead.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_replyhead_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_wsframe_SOURCES = %D%/fuzz-wsframe.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_wsframe_LDADD = $(FUZZ_LDADD_SANDBOX)
FUZZERS_ALL += %D%/fuzz-sftp %D%/fuzz-sshagent %D%/fuzz-sshkeys %D%/fuzz-sshwire
tests_fuzz_fuzz_sftp_SOURCES = %D%/fuzz-sftp.c %D%/fuzz-scratch.h $(FUZZ_DRIVER)
tests_fuzz_fuzz_sftp_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_sshagent_SOURCES = %D%/fuzz-sshagent.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_sshagent_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_sshkeys_SOURCES = %D%/fuzz-sshkeys.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_sshkeys_LDADD = $(FUZZ_LDADD_SANDBOX)
tests_fuzz_fuzz_sshwire_SOURCES = %D%/fuzz-sshwire.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_sshwire_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-porthead
tests_fuzz_fuzz_porthead_SOURCES = %D%/fuzz-porthead.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_porthead_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-layers
tests_fuzz_fuzz_layers_SOURCES = %D%/fuzz-layers.c %D%/fuzz-scratch.h $(FUZZ_DRIVER)
tests_fuzz_fuzz_layers_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-mcp
tests_fuzz_fuzz_mcp_SOURCES = %D%/fuzz-mcp.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_mcp_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-tool
tests_fuzz_fuzz_tool_SOURCES = %D%/fuzz-tool.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_tool_LDADD = $(FUZZ_LDADD_SANDBOX)

FUZZERS_ALL += %D%/fuzz-files %D%/fuzz-pattern
tests_fuzz_fuzz_files_SOURCES = %D%/fuzz-files.c %D%/fuzz-scratch.h $(FUZZ_DRIVER)
tests_fuzz_fuzz_files_LDADD = $(FILES_LDADD) $(SB_FUZZ_FLAGS)
tests_fuzz_fuzz_pattern_SOURCES = %D%/fuzz-pattern.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_pattern_LDADD = $(FILES_LDADD) $(SB_FUZZ_FLAGS)

FUZZERS_ALL += %D%/fuzz-diff %D%/fuzz-manifest
tests_fuzz_fuzz_diff_SOURCES = %D%/fuzz-diff.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_diff_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_manifest_SOURCES = %D%/fuzz-manifest.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_manifest_LDADD = $(FUZZ_LDADD_SYNC)

FUZZERS_ALL += %D%/fuzz-unpack
tests_fuzz_fuzz_unpack_SOURCES = %D%/fuzz-unpack.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_unpack_LDADD = $(FUZZ_LDADD_SYNC)

FUZZERS_ALL += %D%/fuzz-delta-apply %D%/fuzz-delta-sig %D%/fuzz-pack %D%/fuzz-patch %D%/fuzz-store
tests_fuzz_fuzz_delta_apply_SOURCES = %D%/fuzz-delta-apply.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_delta_apply_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_delta_sig_SOURCES = %D%/fuzz-delta-sig.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_delta_sig_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_pack_SOURCES = %D%/fuzz-pack.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_pack_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_patch_SOURCES = %D%/fuzz-patch.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_patch_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_store_SOURCES = %D%/fuzz-store.c %D%/scratch.h $(FUZZ_DRIVER)
tests_fuzz_fuzz_store_LDADD = $(FUZZ_LDADD_SYNC)

FUZZERS_ALL += %D%/fuzz-journal %D%/fuzz-listing %D%/fuzz-proto %D%/fuzz-receive %D%/fuzz-wire
tests_fuzz_fuzz_listing_SOURCES = %D%/fuzz-listing.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_listing_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_journal_SOURCES = %D%/fuzz-journal.c %D%/scratch.h $(FUZZ_DRIVER)
tests_fuzz_fuzz_journal_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_proto_SOURCES = %D%/fuzz-proto.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_proto_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_receive_SOURCES = %D%/fuzz-receive.c %D%/scratch.h $(FUZZ_DRIVER)
tests_fuzz_fuzz_receive_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_wire_SOURCES = %D%/fuzz-wire.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_wire_LDADD = $(FUZZ_LDADD_SYNC)

FUZZERS_ALL += %D%/fuzz-attrs
tests_fuzz_fuzz_attrs_SOURCES = %D%/fuzz-attrs.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_attrs_LDADD = $(FUZZ_LDADD_SYNC)

FUZZERS_ALL += %D%/fuzz-gitconfig %D%/fuzz-gitindex
tests_fuzz_fuzz_gitindex_SOURCES = %D%/fuzz-gitindex.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_gitindex_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_gitconfig_SOURCES = %D%/fuzz-gitconfig.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_gitconfig_LDADD = $(FUZZ_LDADD_SYNC)

FUZZERS_ALL += %D%/fuzz-endpoint %D%/fuzz-ssh
tests_fuzz_fuzz_endpoint_SOURCES = %D%/fuzz-endpoint.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_endpoint_LDADD = $(FUZZ_LDADD_SYNC)
tests_fuzz_fuzz_ssh_SOURCES = %D%/fuzz-ssh.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_ssh_LDADD = $(FUZZ_LDADD_SYNC)

FUZZERS_ALL += %D%/fuzz-dns %D%/fuzz-httphead %D%/fuzz-netpolicy %D%/fuzz-tlshello
tests_fuzz_fuzz_dns_SOURCES = %D%/fuzz-dns.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_dns_LDADD = $(FUZZ_LDADD_EGRESS)
tests_fuzz_fuzz_httphead_SOURCES = %D%/fuzz-httphead.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_httphead_LDADD = $(FUZZ_LDADD_EGRESS)
tests_fuzz_fuzz_netpolicy_SOURCES = %D%/fuzz-netpolicy.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_netpolicy_LDADD = $(FUZZ_LDADD_EGRESS)
tests_fuzz_fuzz_tlshello_SOURCES = %D%/fuzz-tlshello.c $(FUZZ_DRIVER)
tests_fuzz_fuzz_tlshello_LDADD = $(FUZZ_LDADD_EGRESS)

FUZZ_LDADD_EGRESS = lib/egress/libegress.la lib/base/libbase.la $(SB_FUZZ_FLAGS)
FUZZ_LDADD_BASE = lib/base/libbase.la $(SB_FUZZ_FLAGS)
FUZZ_LDADD_SYNC = sync/libsbsync-core.la $(SYNC_LIBS) $(SSH2_LIBS) $(SB_FUZZ_FLAGS)
FUZZ_LDADD_SANDBOX = lib/libsandbox-core.la sync/libsbsync-core.la $(SANDBOX_LIBS) $(SYNC_LIBS) \
	$(SSH2_LIBS) $(SB_FUZZ_FLAGS)

EXTRA_DIST += %D%/corpus %D%/run.sh %D%/fuzz.h
if FUZZERS
FUZZ_DRIVER = %D%/fuzz.h
EXTRA_PROGRAMS += $(FUZZERS_ALL)
else
FUZZ_DRIVER = %D%/fuzz.h %D%/replay.c
check_PROGRAMS += $(FUZZERS_ALL)
TESTS += $(FUZZERS_ALL)
endif

# Seconds for each target, which targets (all), how many at once, and with which compiler.
FUZZ_SECONDS = 60
FUZZ_TARGETS =
FUZZ_JOBS = 2
FUZZ_CC = clang-14

.PHONY: fuzz fuzz-programs
fuzz-programs: $(FUZZERS_ALL)

fuzz:
	FUZZ_CC='$(FUZZ_CC)' $(SHELL) $(top_srcdir)/tests/fuzz/run.sh \
		'$(abs_top_srcdir)' fuzz-build '$(FUZZ_SECONDS)' '$(FUZZ_JOBS)' $(FUZZ_TARGETS)
