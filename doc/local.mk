dist_man_MANS += \
	%D%/sbcold.5 \
	%D%/sbctl.1 \
	%D%/sbhostd.8 \
	%D%/sbcontrol-check.1 \
	%D%/sbprovider-check.1 \
	%D%/sbsync.1 \
	%D%/sbsync-protocol.5
EXTRA_DIST += \
	%D%/ARCHITECTURE.md \
	%D%/CONTROL.md \
	%D%/SEEDS.md \
	%D%/STORAGE.md \
	%D%/BENCHMARKS.md \
	%D%/HACKING.md \
	%D%/FLEET.md \
	%D%/NETWORK.md \
	%D%/OPERATING.md \
	%D%/SECURITY.md
dist_doc_DATA += %D%/sandbox.proto

# The examples of the library, with its public headers and exported symbols only;
# tests/e2e/example.sh runs them.
check_PROGRAMS += %D%/agent %D%/example
examplesdir = $(docdir)/examples
dist_examples_DATA = %D%/agent.c %D%/example.c
doc_agent_SOURCES = %D%/agent.c
doc_agent_LDADD = libsandbox.la libsbsync.la
doc_example_SOURCES = %D%/example.c
doc_example_LDADD = libsandbox.la libsbsync.la

# Pages of section 3: one for each public header, and one for each function that leads there.
EXTRA_DIST += %D%/man3.py
PAGES_OF = $(sbinclude_HEADERS) $(sbsyncinclude_HEADERS)
%D%/man3.stamp: $(srcdir)/%D%/man3.py $(PAGES_OF) $(srcdir)/%D%/sbsync.1
	$(AM_V_GEN)$(MKDIR_P) %D% && rm -rf %D%/man3 && \
		date=$$(sed -n 's/^\.Dd //p' $(srcdir)/%D%/sbsync.1) && out=$$(pwd)/%D%/man3 && \
		(cd $(srcdir) && $(PYTHON3) %D%/man3.py --out "$$out" --date "$$date" \
			$(PAGES_OF)) && touch $@
if HAVE_PYTHON3
all-local: %D%/man3.stamp
install-data-local: %D%/man3.stamp
	$(MKDIR_P) $(DESTDIR)$(mandir)/man3
	$(INSTALL_DATA) %D%/man3/*.3 $(DESTDIR)$(mandir)/man3
uninstall-local: %D%/man3.stamp
	cd %D%/man3 && for f in *.3; do rm -f "$(DESTDIR)$(mandir)/man3/$$f"; done
endif
clean-local: clean-local-bindings
	rm -rf %D%/man3 %D%/man3.stamp
