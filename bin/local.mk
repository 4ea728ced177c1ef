# The commands: sbsync, sbctl, sbhostd.
