# What goes to people who have no compiler: a static tarball, its bill of materials, an RPM spec
# (debian/ is where Debian wants it).
EXTRA_DIST += %D%/README.md %D%/sbom.py %D%/sbsync.spec %D%/static-tarball.sh
.PHONY: sbom static-tarball
if STATIC_AGENT
EXTRA_PROGRAMS += sbsync-static
sbsync_static_SOURCES = $(sbsync_SOURCES)
sbsync_static_LDFLAGS = $(AM_LDFLAGS) -all-static -Wl,--gc-sections -s
STATIC_SYNC_LIBS = -lssh2 -lssl -lcrypto -lgpg-error -ljansson $(STATIC_AGENT_LIBS)
sbsync_static_LDADD = sync/libsbsync-core.la $(STATIC_SYNC_LIBS)
static-tarball: sbsync-static$(EXEEXT) sbsync-agent$(EXEEXT)
	sh $(srcdir)/%D%/static-tarball.sh $(srcdir) . $(VERSION) "$(STATIC_SYNC_LIBS)"
endif
sbom: all
	@python3 $(srcdir)/%D%/sbom.py --version $(VERSION) --static "$(STATIC_AGENT_LIBS) $(RE2_LIBS)" \
		sbsync sbctl sbhostd sb-box sb-files sb-egress sbsync-agent .libs/libsbsync.so.0.0.0 \
		.libs/libsandbox.so.0.0.0
CLEANFILES += sbsync-static$(EXEEXT) sbsync-*-linux-*.tar.xz
