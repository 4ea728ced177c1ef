#!/bin/sh
# SPDX-License-Identifier: MIT
# What sbsync prints, and its limits: lost output, names in JSON, very long lists, few descriptors.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
need python3

sbsync=$(cd "${SB_TOP_BUILDDIR:-.}" && pwd)/sbsync
cd "$scratch" || exit 1
SBSYNC_STATE_DIR=$scratch/state
export SBSYNC_STATE_DIR

mkdir src && echo one >src/file
for verb in "mirror src dst" "mirror --json src dst" "--version" "--help" "mirror --help" \
	"ls --json"; do
	must_fail "a full standard output fails: $verb" 1 sh -c "'$sbsync' $verb >/dev/full"
	must_fail "a closed standard output fails: $verb" 1 sh -c "'$sbsync' $verb >&-"
done
is "what was synced is synced" "$(cat dst/file)" one
must_fail "a failure stays that failure" 2 sh -c "'$sbsync' mirror --nonsense >/dev/full"
check "without output a full one is no matter" sh -c "'$sbsync' mirror -q src dst >/dev/full"
check "closed input, output and error hurt no file" \
	sh -c "'$sbsync' mirror -q src dst2 <&- >&- 2>&-; cmp src/file dst2/file"

# Names as programs need them: exact, whatever bytes they are of.
cat >names.py <<'END'
import base64, json, os, subprocess, sys
sbsync, top = sys.argv[1], b"odd"
names = [b"plain", b'quote"back\\slash', b"tab\tnew\nline", b"esc\x1b[2J", b"del\x7f",
         b"not\xffutf8", "gr\u00fc\u00df\u202e".encode(), b"\xc3", b"n" * 255]
os.mkdir(top)
for n in names:
    open(os.path.join(top, n), "w").close()
at = os.open(top, os.O_RDONLY)
long = []
for i in range(60):
    os.mkdir(b"d" * 200, dir_fd=at)
    at = os.open(b"d" * 200, os.O_RDONLY, dir_fd=at)
    long.append(b"d" * 200)
os.close(os.open(b"end", os.O_CREAT | os.O_WRONLY, dir_fd=at))
long = b"/".join(long + [b"end"])
out = subprocess.run([sbsync, "mirror", "--json", "-n", top, "nowhere"], stdout=subprocess.PIPE,
                     check=True).stdout
bad = [b for b in out.rstrip(b"\n") if b < 32 or b > 127]
if bad:
    sys.exit("bytes that a terminal obeys: %r" % bad)
got = set()
for c in json.loads(out)["changes"]:
    if "path_base64" in c:
        got.add(base64.b64decode(c["path_base64"]))
    else:
        got.add(c["path"].encode())
for n in names + [long]:
    if n not in got:
        sys.exit("not listed: %r" % n[:80])
END
check "JSON names every file exactly" python3 names.py "$sbsync"

# Lists whose length a sandbox decides (in text: tests/hostile/flood.py).
python3 -c '
import os
os.mkdir("many")
for i in range(10050):
    os.close(os.open("many/f%05d" % i, os.O_CREAT | os.O_WRONLY))'
check "JSON tells how many it left out" sh -c "'$sbsync' mirror -n --json many dst3 2>/dev/null |
	python3 -c 'import json, sys
r = json.load(sys.stdin)
sys.exit(len(r[\"changes\"]) != 10000 or r[\"more\"] != {\"changes\": 50})'"

# Few descriptors and many directories.
python3 -c '
import os
for i in range(3000):
    os.makedirs("wide/d%d" % i)
    with open("wide/d%d/f" % i, "w") as f:
        f.write(str(i))'
few() { (ulimit -n 256 && "$@"); }
check "256 descriptors are enough for 3000 directories" \
	few sh -c "'$sbsync' mirror -q wide wide2 && diff -r wide wide2"
check "and for the way back" \
	few sh -c "rm -rf wide/d1*; '$sbsync' start -q --name w wide wide3 &&
	rm -rf wide && mkdir wide && '$sbsync' rm --discard --yes w >/dev/null &&
	'$sbsync' start -q --name v wide3 wide4 && echo x >wide4/d2/new &&
	for i in 2 3 4 5; do mkdir -p wide4/n\$i/x && cp -r wide4/d\$i* wide4/n\$i/x; done;
	'$sbsync' stop -q v && diff -r wide3 wide4"

# A session whose rules are damaged says what to do.
mkdir local && echo 1 >local/f
check "a session" "$sbsync" start -q --name broken local far
for f in state/sessions/broken/*.rules; do echo nonsense >"$f"; done
must_fail "damaged rules stop a sync" 1 "$sbsync" sync broken
case $output in
*"exclude rules"*"sbsync rm"*"sbsync start"*) ok "and name the way out" ;;
*) not_ok "and name the way out" "$output" ;;
esac
must_fail "damaged rules stop a watch" 1 "$sbsync" watch broken
rm -f state/sessions/broken/*.rules
must_fail "so do rules that are gone" 1 "$sbsync" sync broken
case $output in
*"sbsync rm"*"sbsync start"*) ok "and name the way out, too" ;;
*) not_ok "and name the way out, too" "$output" ;;
esac
finish
