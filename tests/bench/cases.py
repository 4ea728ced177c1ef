# SPDX-License-Identifier: MIT
"""What is measured: trees, cases, and the ratios that issue 9 asks for."""

# tree: kind and arguments of workload.make, at each scale
TREES = {
    "code": {
        "full": ("code", {"files": 50000}),
        "quick": ("code", {"files": 20000}),
        "tiny": ("code", {"files": 300}),
    },
    "code200k": {
        "full": ("code", {"files": 200000, "median": 300}),
        "quick": ("code", {"files": 50000, "median": 300}),
        "tiny": ("code", {"files": 600, "median": 300}),
    },
    "blob": {
        "full": ("blob", {"size": 1 << 30}),
        "quick": ("blob", {"size": 256 << 20}),
        "tiny": ("blob", {"size": 4 << 20}),
    },
    "log": {
        "full": ("log", {"size": 1 << 30}),
        "quick": ("log", {"size": 256 << 20}),
        "tiny": ("log", {"size": 4 << 20}),
    },
    "repo": {
        "full": ("repo", {"files": 3000}),
        "quick": ("repo", {"files": 1000}),
        "tiny": ("repo", {"files": 60}),
    },
    "modules": {
        "full": ("modules", {"files": 30000}),
        "quick": ("modules", {"files": 10000}),
        "tiny": ("modules", {"files": 300}),
    },
    "million": {
        "full": ("code", {"files": 1000000, "median": 40}),
        "quick": ("code", {"files": 100000, "median": 40}),
        "tiny": ("code", {"files": 1000, "median": 40}),
    },
}

RSYNCS = ("sbsync", "rsync", "rsync-z", "rsync-nir", "rsync-nir-z", "rsync-W", "rsync-W-z")
FEW = ("sbsync", "rsync", "rsync-z", "rsync-nir", "rsync-nir-z")
COLD = ("sbsync", "rsync", "rsync-z", "rsync-nir", "tar", "tar-zstd")
# Without rsync as it is: 400 MB at 12.5 MB/s take 33 s, more than three
# times what any of these needs.
COLD_SLOW = ("sbsync", "rsync-z", "rsync-nir-z", "tar-zstd")
NEAR = ("sbsync", "rsync", "rsync-z", "rsync-nir")
FAR = ("sbsync", "rsync", "rsync-nir")
LOCAL = ("sbsync", "rsync", "rsync-nir", "rsync-W")


class Case:
    """`runs`: link -> (rounds, tools). `change`: what happens to the source before each
    round (kind, arguments)."""

    def __init__(
        self,
        name,
        help,
        tree,
        runs,
        change=None,
        cold=False,
        pull=False,
        quick=(),
        minutes=0,
        counted=True,
    ):
        self.name, self.help, self.tree, self.runs = name, help, tree, runs
        self.change, self.cold, self.pull, self.quick = change, cold, pull, quick
        self.minutes = minutes  # that must be left of the budget
        self.counted = counted  # over a direct link: one more run through a relay that counts bytes


CASES = [
    Case(
        "cold-push",
        "push of a code tree into nothing",
        "code",
        cold=True,
        quick=("direct",),
        runs={"direct": (3, COLD), "50ms": (3, COLD_SLOW), "local": (5, LOCAL)},
    ),
    Case(
        "noop",
        "nothing changed",
        "code",
        quick=("direct", "50ms"),
        runs={
            "direct": (5, FEW + ("unison",)),
            "50ms": (4, FEW + ("unison",)),
            "200ms": (2, FAR),
            "local": (5, LOCAL),
        },
    ),
    Case(
        "edit-1pct",
        "1 % of the files edited in place",
        "code",
        change=("edit", {"percent": 1}),
        quick=("50ms",),
        runs={
            "direct": (3, RSYNCS + ("unison",)),
            "50ms": (4, FEW + ("unison",)),
            "200ms": (2, FAR),
            "local": (5, LOCAL),
        },
    ),
    Case(
        "rename",
        "directory with a fifth of the files renamed",
        "code",
        change=("rename", {}),
        quick=("50ms",),
        runs={
            "direct": (3, ("sbsync", "rsync", "rsync-nir")),
            "50ms": (3, ("sbsync", "rsync-z", "rsync-nir-z", "unison")),
        },
    ),
    Case(
        "add-delete",
        "1 % of the files deleted, as many added",
        "code",
        change=("add-delete", {"percent": 1}),
        runs={"direct": (3, ("sbsync", "rsync", "rsync-nir")), "50ms": (3, FEW)},
    ),
    Case(
        "cold-pull",
        "pull of a code tree into nothing",
        "code",
        cold=True,
        pull=True,
        runs={
            "direct": (3, ("sbsync", "rsync", "rsync-z", "tar-zstd")),
            "50ms": (2, ("sbsync", "rsync-z", "tar-zstd")),
        },
    ),
    Case(
        "turn-noop",
        "turn in an open session, nothing changed",
        "code",
        runs={"50ms": (5, ("sbsync-turn",))},
    ),
    Case(
        "turn-edit",
        "turn in an open session, one file edited",
        "code",
        change=("edit", {"count": 1}),
        runs={"50ms": (5, ("sbsync-turn",))},
    ),
    Case(
        "insert",
        "large file with 100 scattered inserts",
        "blob",
        change=("insert", {"count": 100}),
        quick=("direct",),
        runs={"direct": (5, NEAR), "50ms": (5, NEAR)},
    ),
    Case(
        "append",
        "large log with 8 MiB appended",
        "log",
        change=("append", {"size": 8 << 20}),
        runs={
            "direct": (3, ("sbsync", "rsync", "rsync-nir")),
            "50ms": (3, ("sbsync", "rsync", "rsync-z", "rsync-nir-z")),
        },
    ),
    Case(
        "repo-day",
        "git repository, a day of commits later",
        "repo",
        change=("commits", {"count": 15}),
        runs={"direct": (3, FEW + ("unison",)), "50ms": (3, FEW + ("unison",))},
    ),
    Case(
        "modules",
        "push of a node_modules-like tree into nothing",
        "modules",
        cold=True,
        runs={"direct": (3, COLD), "50ms": (3, COLD_SLOW)},
    ),
    Case(
        "noop-200k",
        "nothing changed, 200,000 files",
        "code200k",
        runs={
            "direct": (3, ("sbsync", "rsync", "rsync-nir", "unison")),
            "50ms": (3, ("sbsync", "rsync", "rsync-nir", "unison")),
        },
    ),
    Case(
        "million-cold",
        "push of 1,000,000 files into nothing",
        "million",
        cold=True,
        minutes=6,
        counted=False,
        runs={"direct": (1, ("sbsync",))},
    ),
    Case(
        "million-noop",
        "nothing changed, 1,000,000 files",
        "million",
        minutes=1,
        counted=False,
        runs={"direct": (3, ("sbsync",))},
    ),
]

# (case, link): at most this times plain rsync, tuned rsync, the best tar; bytes on the wire against
# rsync -z; KiB above ssh's set-up; seconds; MiB of either side.
TARGETS = {
    ("cold-push", "direct"): {"plain": 0.70, "tuned": 0.75, "tar": 1.0},
    ("cold-push", "50ms"): {"plain": 0.85, "tuned": 0.85, "wire": 0.85},
    ("noop", "direct"): {"plain": 0.65, "tuned": 0.75, "above_kib": 2},
    ("noop", "50ms"): {"plain": 0.25, "tuned": 0.75, "above_kib": 2},
    ("edit-1pct", "50ms"): {"plain": 0.30, "tuned": 0.75, "wire": 0.25},
    ("rename", "50ms"): {"plain": 0.25, "tuned": 0.5, "wire": 0.02},
    ("insert", "direct"): {"plain": 0.8, "tuned": 0.8, "wire": 1.0},
    ("insert", "50ms"): {"plain": 0.8, "tuned": 0.8, "wire": 1.0},
    ("noop-200k", "50ms"): {"plain": 0.12, "tuned": 0.45, "above_kib": 2},
    ("turn-noop", "50ms"): {"wall_s": 0.35 + 0.05},
    ("turn-edit", "50ms"): {"wall_s": 0.40 + 0.10},
    ("million-cold", "direct"): {"rss_mib": 300},
    ("million-noop", "direct"): {"rss_mib": 300},
    ("cold-push", "local"): {"plain": 0.8},
    ("noop", "local"): {"plain": 0.6},
    ("edit-1pct", "local"): {"plain": 0.7},
}
