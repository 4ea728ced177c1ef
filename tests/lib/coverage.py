#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""coverage.py SRCDIR BUILDDIR: line coverage of lib, sync and bin after a test run in a
--enable-coverage build, one line a file, the least covered first. Shared and static objects of one
source count together."""
import collections
import json
import os
import subprocess
import sys

src, build = (os.path.realpath(p) for p in sys.argv[1:3])
lines = collections.defaultdict(lambda: collections.defaultdict(int))
for where, _, names in os.walk(build):
    data = [os.path.join(where, n) for n in names if n.endswith(".gcda")]
    if not data:
        continue
    out = subprocess.run(
        ["gcov", "--json-format", "--stdout"] + data,
        cwd=where,
        check=True,
        capture_output=True,
        text=True,
    )
    for report in out.stdout.splitlines():
        for f in json.loads(report)["files"]:
            path = os.path.relpath(os.path.realpath(os.path.join(build, f["file"])), src)
            if path.split("/")[0] in ("lib", "sync", "bin"):
                for line in f["lines"]:
                    lines[path][line["line_number"]] += line["count"]

if not lines:
    sys.exit("coverage: no .gcda file below %s: run the tests first" % build)
rows = sorted(
    (sum(1 for n in hit.values() if n) / len(hit), path, hit) for path, hit in lines.items()
)
for part, path, hit in rows:
    print("%5.1f%%  %5d lines  %s" % (100 * part, len(hit), path))
total = sum(len(hit) for _, _, hit in rows)
run = sum(1 for _, _, hit in rows for n in hit.values() if n)
print("%5.1f%%  %5d lines  all" % (100 * run / total, total))
