# The commands: sbsync, sbctl, sbhostd.

include bin/sbctl/local.mk
