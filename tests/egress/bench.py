# SPDX-License-Identifier: MIT
"""bench.py SB_EGRESS SCRATCH: what the way through sb-egress costs against the direct one."""
import os
import sys
import time

import lab as L

BYTES = 2 << 30
ROUNDS = 300


def pour(c, host):
    block = bytearray(1 << 20)
    for _ in range(BYTES >> 20):
        c.sendall(block)


def rate(s):
    buf, total, begin = bytearray(1 << 20), 0, time.monotonic()
    while True:
        n = s.recv_into(buf)
        if not n:
            s.close()
            return total / (time.monotonic() - begin) / 1e9
        total += n


def latency(connect):
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        s = connect()
        s.sendall(b"\0x")
        s.recv(10)
        times.append(time.perf_counter() - begin)
        s.close()
    return sorted(times)[ROUNDS // 2] * 1e6


def main():
    lab = L.Lab(sys.argv[1], sys.argv[2])
    L.Server(lab.internet, L.GOOD, 9100, pour)
    begin = time.monotonic()
    e = lab.egress(["good.test"])
    print(
        "start of sb-egress until its gate is ready: %.1f ms" % ((time.monotonic() - begin) * 1e3)
    )
    alias = e.alias("good.test")
    ways = {
        "direct": lambda port: lab.world.connect(L.GOOD, port),
        "through sb-egress": lambda port: e.ns.connect(alias, port),
    }
    for name, connect in ways.items():
        rates = sorted(rate(connect(9100)) for _ in range(3))
        median = latency(lambda: connect(9000))
        print("%s: %.2f GB/s; connect and echo %.0f us" % (name, rates[1], median))
    with open("/proc/%d/status" % e.proc.pid, encoding="ascii") as f:
        print("memory: " + [x for x in f if x.startswith("VmHWM")][0].split(":")[1].strip())
    lab.stop()
    os._exit(0)


main()
