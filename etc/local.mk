# Timers for `sbsync recover --all`: sessions are a user's, so are the units.
systemduserunitdir = $(prefix)/lib/systemd/user
crondir = $(pkgdatadir)
systemduserunit_DATA = %D%/sbsync-recover.service %D%/sbsync-recover.timer
cron_DATA = %D%/sbsync-recover.cron
EXTRA_DIST += %D%/sbsync-recover.service.in %D%/sbsync-recover.timer.in %D%/sbsync-recover.cron.in
CLEANFILES += $(systemduserunit_DATA) $(cron_DATA)

$(systemduserunit_DATA) $(cron_DATA): %: %.in Makefile
	$(AM_V_GEN)$(MKDIR_P) %D% && \
		sed 's|@bindir[@]|$(bindir)|g' $(srcdir)/$@.in >$@.tmp && mv $@.tmp $@
