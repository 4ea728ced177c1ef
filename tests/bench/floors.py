# SPDX-License-Identifier: MIT
"""What the machine itself allows: numbers that stand beside the results and that
no program can go below."""
import json
import os
import shutil
import statistics
import time

from place import LINKS, run

SAMPLE = 64 << 20


def tree_floors(place, src, with_copy):
    """Walk of the tree by one thread; cp -a of it; digest and compression speed on its bytes."""
    walk = [json.loads(run([place.helpers["floor"], "walk", src])) for _ in range(3)]
    out = {"entries": walk[0]["entries"], "walk_s": min(w["seconds"] for w in walk)}
    sample = os.path.join(place.work, "sample")
    with open(sample, "wb") as f:
        for d, dirs, names in os.walk(src):
            dirs.sort()
            for path in (os.path.join(d, n) for n in sorted(names)):
                if not os.path.islink(path) and f.tell() < SAMPLE:
                    with open(path, "rb") as g:
                        f.write(g.read(SAMPLE - f.tell()))
            if f.tell() >= SAMPLE:
                break
    out.update(json.loads(run([place.helpers["floor"], "speed", sample])))
    out.pop("digest", None)
    os.unlink(sample)
    if with_copy:
        copy = os.path.join(place.root, "copy")
        run(["sync", "-f", place.root])
        t = time.monotonic()
        run(["cp", "-a", src, copy])
        out["cp_s"] = time.monotonic() - t
        run(["rm", "-rf", copy])
    return out


def link_floors(place, link, cat_mib):
    """ssh's set-up alone, in time and bytes, and plain bytes through it."""
    if not LINKS[link]:
        return {}
    direct, relay = link == "direct", place.relay(link)
    port = place.port if direct else relay.port
    true = [place.measure(place.ssh(port) + [place.host(), "true"], link, False) for _ in range(3)]
    counted = place.measure(place.ssh(relay.port) + [place.host(), "true"], link, True)
    out = {
        "ssh_true_s": statistics.median(t["wall"] for t in true),
        "ssh_true_bytes": counted["up"] + counted["down"],
    }
    if direct and cat_mib:
        ssh = " ".join(place.ssh(port) + [place.host()])
        script = "head -c %d /dev/zero | %s 'cat >/dev/null'" % (cat_mib << 20, ssh)
        got = place.measure(["bash", "-c", script], link, False)
        out["ssh_cat_mb_s"] = (cat_mib << 20) / 1e6 / max(0.001, got["wall"] - out["ssh_true_s"])
    return out


def machine():
    out = {"cpus": os.cpu_count(), "kernel": os.uname().release}
    for path, key, name in (
        ("/proc/cpuinfo", "model name", "cpu"),
        ("/proc/meminfo", "MemTotal", "memory"),
    ):
        try:
            with open(path) as f:
                out[name] = next(x.split(":", 1)[1].strip() for x in f if x.startswith(key))
        except (OSError, StopIteration):
            pass
    out["load"] = os.getloadavg()[0]
    for program, args in (
        ("rsync", ["--version"]),
        ("unison", ["-version"]),
        ("ssh", ["-V"]),
        ("zstd", ["--version"]),
    ):
        if shutil.which(program):
            text = run(["sh", "-c", "%s %s 2>&1" % (program, " ".join(args))])
            out[program] = text.strip().split("\n")[0].strip("* ")
    return out
