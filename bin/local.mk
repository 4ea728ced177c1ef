# The programs, one folder each; headers that several of them share are in common/.
EXTRA_DIST += \
	%D%/README.md \
	%D%/common/opt-rows.h \
	%D%/common/stdfds.h \
	%D%/common/units.h

include bin/sb-box/local.mk
include bin/sb-files/local.mk
include bin/sb-egress/local.mk
include bin/sbctl/local.mk
include bin/sbhostd/local.mk
include bin/sbprovider-check/local.mk
include bin/sbsync/local.mk
include bin/sbsync-agent/local.mk
