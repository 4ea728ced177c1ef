# The programs, one folder each; headers that several of them share are in common/.
EXTRA_DIST += \
	%D%/README.md \
	%D%/common/opt-rows.h \
	%D%/common/stdfds.h \
	%D%/common/units.h

# What programs with option tables print for shells.
COMPLETE_SOURCES = \
	%D%/common/complete.c %D%/common/complete.h \
	%D%/common/complete-bash.c %D%/common/complete-fish.c %D%/common/complete-zsh.c \
	%D%/common/complete-priv.h

include bin/sb-box/local.mk
include bin/sb-files/local.mk
include bin/sb-egress/local.mk
include bin/sb-ssh/local.mk
include bin/sbctl/local.mk
include bin/sbhostd/local.mk
include bin/sbcontrol-check/local.mk
include bin/sbprovider-check/local.mk
include bin/sbsync/local.mk
include bin/sbsync-agent/local.mk

# The scripts with which shells complete the programs' words, printed by the programs.
if !CROSS
bashcompdir = $(datadir)/bash-completion/completions
zshcompdir = $(datadir)/zsh/site-functions
fishcompdir = $(datadir)/fish/vendor_completions.d
nodist_bashcomp_DATA = %D%/completion/sbsync %D%/completion/sbctl %D%/completion/sbhostd
nodist_zshcomp_DATA = %D%/completion/_sbsync %D%/completion/_sbctl %D%/completion/_sbhostd
nodist_fishcomp_DATA = %D%/completion/sbsync.fish %D%/completion/sbctl.fish \
	%D%/completion/sbhostd.fish
COMPLETIONS = $(nodist_bashcomp_DATA) $(nodist_zshcomp_DATA) $(nodist_fishcomp_DATA)
CLEANFILES += $(COMPLETIONS)
%D%/completion/sbsync %D%/completion/_sbsync %D%/completion/sbsync.fish: sbsync$(EXEEXT)
%D%/completion/sbctl %D%/completion/_sbctl %D%/completion/sbctl.fish: sbctl$(EXEEXT)
%D%/completion/sbhostd %D%/completion/_sbhostd %D%/completion/sbhostd.fish: sbhostd$(EXEEXT)
$(COMPLETIONS):
	$(AM_V_GEN)$(MKDIR_P) $(@D) && case $(@F) in \
		*.fish) s=fish ;; _*) s=zsh ;; *) s=bash ;; esac && \
		case $(@F) in \
		*sbhostd*) ./sbhostd$(EXEEXT) --completion $$s ;; \
		*sbctl*) ./sbctl$(EXEEXT) completion $$s ;; \
		*) ./sbsync$(EXEEXT) completion $$s ;; esac >$@.new && mv $@.new $@
endif
