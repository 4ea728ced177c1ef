# sbhostd: the sandbox host's daemon.
sbin_PROGRAMS = sbhostd
sbhostd_SOURCES = \
	$(COMPLETE_SOURCES) \
	%D%/config.c %D%/hostd.h \
	%D%/config-apply.c \
	%D%/config-print.c \
	%D%/config-yaml.c \
	%D%/main.c \
	%D%/options.c
sbhostd_LDADD = lib/libsandbox-core.la sync/libsbsync-core.la \
	$(SANDBOX_LIBS) $(SYNC_LIBS) $(SSH2_LIBS)

# As root, and as a user of its own.
HOSTD_UNITS = %D%/sbhostd.service %D%/sbhostd-user.service
EXTRA_DIST += %D%/sbhostd.service.in %D%/sbhostd-user.service.in
systemdunitdir = $(prefix)/lib/systemd/system
nodist_systemdunit_DATA = $(HOSTD_UNITS)
CLEANFILES += $(HOSTD_UNITS)
$(HOSTD_UNITS): %: %.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && sed \
		-e 's|@sbindir[@]|$(sbindir)|g' -e 's|@sysconfdir[@]|$(sysconfdir)|g' \
		$(srcdir)/$@.in >$@.new && mv $@.new $@
