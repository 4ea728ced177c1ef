# The clients for other languages against a real host.
TESTS += %D%/bindings.sh
dist_check_SCRIPTS += %D%/bindings.sh
EXTRA_DIST += %D%/client.py %D%/client.ts
clean-local-bindings:
	rm -rf %D%/npm
.PHONY: clean-local-bindings
