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

# A host: what its operator begins with. The configuration is a sample, which the packages put into
# /etc; installing again must not change one.
EXTRA_DIST += %D%/sbhostd.sysusers %D%/sbhostd.tmpfiles
dist_pkgdata_DATA = %D%/sbhostd.yaml
monitoringdir = $(pkgdatadir)/monitoring
dist_monitoring_DATA = %D%/monitoring/alerts.yaml %D%/monitoring/grafana.json
sysusersdir = $(prefix)/lib/sysusers.d
tmpfilesdir = $(prefix)/lib/tmpfiles.d
nodist_sysusers_DATA = %D%/sysusers/sbhostd.conf
nodist_tmpfiles_DATA = %D%/tmpfiles/sbhostd.conf
CLEANFILES += $(nodist_sysusers_DATA) $(nodist_tmpfiles_DATA)
%D%/sysusers/sbhostd.conf: %D%/sbhostd.sysusers
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(srcdir)/%D%/sbhostd.sysusers $@
%D%/tmpfiles/sbhostd.conf: %D%/sbhostd.tmpfiles
	$(AM_V_GEN)$(MKDIR_P) $(@D) && cp $(srcdir)/%D%/sbhostd.tmpfiles $@
