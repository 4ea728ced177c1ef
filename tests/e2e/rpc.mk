# sbhostd driven by the Connect client of npm.
E2E_RPC = \
	%D%/mcp.sh \
	%D%/rpc-attach.sh \
	%D%/rpc-node.sh \
	%D%/rpc-node-zfs.sh \
	%D%/rpc-sbctl-zfs.sh

TESTS += $(E2E_RPC)
dist_check_SCRIPTS += $(E2E_RPC)
EXTRA_DIST += tests/node/bad.mjs tests/node/client.mjs tests/node/every.mjs \
	tests/node/mcp.mjs tests/node/tap.mjs \
	tests/node/package.json tests/node/package-lock.json tests/node/buf.gen.yaml \
	tests/node/.npmrc
