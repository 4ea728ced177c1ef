# Clients in other languages; what is typed of them is made from doc/sandbox.proto and kept here, so
# that they can be used from a clone.
EXTRA_DIST += %D%/generate.py \
	%D%/python/README.md %D%/python/pyproject.toml \
	%D%/python/sbsync/__init__.py %D%/python/sbsync/api.py %D%/python/sbsync/host.py \
	%D%/python/sbsync/py.typed %D%/python/sbsync/sync.py \
	%D%/ts/README.md %D%/ts/api.d.ts %D%/ts/api.js %D%/ts/index.d.ts %D%/ts/index.js \
	%D%/ts/package.json
.PHONY: bindings
bindings:
	cd $(srcdir)/%D% && python3 generate.py ../doc/sandbox.proto ts >ts/api.d.ts && \
		python3 generate.py ../doc/sandbox.proto js >ts/api.js && \
		python3 generate.py ../doc/sandbox.proto python >python/sbsync/api.py
