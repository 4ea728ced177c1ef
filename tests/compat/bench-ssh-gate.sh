#!/bin/sh
# SPDX-License-Identifier: MIT
# ssh SESSION@host true, and a stream, against the machine's own sshd, by turns in one run.
. "${SB_TOP_SRCDIR:-.}/tests/lib/tap.sh"
. "${SB_TOP_SRCDIR:-.}/tests/lib/rpc.sh"
build=$(cd "$build" && pwd)
need ssh python3
sshd=$src/tests/lib/sshd.sh
sh "$sshd" start "$scratch/sshd" >"$scratch/why" || skip_all "sshd: $(cat "$scratch/why")"
at_exit "sh '$sshd' stop '$scratch/sshd'"
port=$(free_port)
start_host --container-runtime "${BENCH_RUNTIME:-bwrap}" --storage-backend local-disk \
	--sessions-root-dir "$scratch/sess" --ssh-listen "127.0.0.1:$port" \
	--ssh-authorized-keys "$scratch/sshd/authorized_keys"
"$sbctl" host create --id one >/dev/null
at_exit "'$sbctl' host destroy --force one >/dev/null 2>&1"
python3 - "$scratch/sshd" "$port" "${BENCH_ROUNDS:-40}" "${BENCH_MB:-256}" <<'PY'
import statistics, subprocess, sys, time

where, gate, rounds, mb = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
own = open(where + "/port").read().strip()
user = open(where + "/user").read().strip()


def ssh(port, who, command, data=None):
    begun = time.monotonic()
    p = subprocess.run(
        ["ssh", "-F", "none", "-p", port, "-i", where + "/id_ed25519", "-o", "IdentitiesOnly=yes",
         "-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=" + where + "/known-bench",
         "-o", "LogLevel=ERROR", who + "@127.0.0.1", command],
        input=data, stdout=subprocess.DEVNULL, check=True,
    )
    return time.monotonic() - begun


def compare(what, command, n, data=None):
    got = {"sshd": [], "gateway": []}
    for _ in range(n + 1):
        got["sshd"].append(ssh(own, user, command, data))
        got["gateway"].append(ssh(gate, "one", command, data))
    mid = {k: statistics.median(v[1:]) for k, v in got.items()}
    print("%-12s sshd %7.1f ms   gateway %7.1f ms   ratio %.2f"
          % (what, mid["sshd"] * 1000, mid["gateway"] * 1000, mid["gateway"] / mid["sshd"]))


compare("true", "true", rounds)
data = bytes(mb << 20)
compare("%d MiB in" % mb, "cat >/dev/null", 3, data)
compare("%d MiB out" % mb, "head -c %d /dev/zero" % (mb << 20), 3)
PY
