# SPDX-License-Identifier: MIT
"""Medians, spreads and ratios; the table, the JSON and the chart."""
import html
import json
import os
import statistics

from cases import TARGETS
from place import LINK_TEXT, LINKS

# Half of the runs lie within this share of the median, or no ratio is given.
SPREAD_MAX = 0.25
OURS = "sbsync"


def spread(values):
    """Distance of the quartiles over the median: 0 for a single value."""
    if len(values) < 2:
        return 0.0
    q = statistics.quantiles(values, n=4, method="inclusive")
    m = statistics.median(values)
    return (q[2] - q[0]) / m if m else 0.0


class Result:
    """The runs of one tool in one case over one link."""

    def __init__(self, tool, plain=False, tuned=False):
        self.tool, self.plain, self.tuned = tool, plain, tuned
        self.runs, self.counted, self.error, self.verified = [], None, None, None

    def usable(self):
        return bool(self.runs) and not self.error and self.verified is not False

    def walls(self):
        return [r["wall"] for r in self.runs]

    def median(self, key):
        values = [r[key] for r in self.runs if r.get(key) is not None]
        return statistics.median(values) if values else None

    def wire(self, key=None):
        """Bytes over the link: of the counted run, else the median of the timed ones."""
        keys = (key,) if key else ("up", "down")
        if self.counted:
            return sum(self.counted[k] for k in keys)
        parts = [self.median(k) for k in keys]
        return None if None in parts else sum(parts)

    def as_json(self):
        d = {
            "tool": self.tool,
            "plain": self.plain,
            "tuned": self.tuned,
            "error": self.error,
            "verified": self.verified,
            "runs": [
                {k: v for k, v in r.items() if k not in ("stdout", "stderr")} for r in self.runs
            ],
        }
        if self.runs:
            d.update(
                wall_median=self.median("wall"),
                wall_spread=spread(self.walls()),
                wire_bytes=self.wire(),
                wire_up=self.wire("up"),
                wire_down=self.wire("down"),
            )
        return d


def ratio(ours, other):
    """Ours over theirs, or None when either varied too much to say."""
    if not ours or not other or not ours.usable() or not other.usable():
        return None
    if max(spread(ours.walls()), spread(other.walls())) > SPREAD_MAX:
        return None
    return ours.median("wall") / other.median("wall")


def best(results, wanted):
    chosen = [r for r in results if r.usable() and wanted(r)]
    return min(chosen, key=lambda r: r.median("wall"), default=None)


def size(n):
    if n is None:
        return "-"
    for unit in ("B", "KiB", "MiB"):
        if n < 1000:
            return "%d B" % n if unit == "B" else "%.1f %s" % (n, unit)
        n /= 1024
    return "%.2f GiB" % n


def seconds(v):
    return "-" if v is None else "%.3f" % v if v < 10 else "%.1f" % v


def number(v, form="%.2f"):
    return "-" if v is None else form % v


def rows_of(results):
    ours = next((r for r in results if r.tool == OURS and r.usable()), None)
    for r in results:
        if r.error or r.verified is False:
            yield [
                r.tool,
                "FAILED: " + (r.error or "destination differs from the source"),
                *[""] * 7,
            ]
            continue
        if not r.runs:
            continue
        walls = r.walls()
        wide = spread(walls) > SPREAD_MAX
        against = ratio(ours, r) if r is not ours else None
        yield [
            r.tool,
            seconds(statistics.median(walls)),
            "%.0f %%" % (100 * spread(walls)) + (" !" if wide else ""),
            "%s..%s" % (seconds(min(walls)), seconds(max(walls))),
            "" if r is ours or not ours else number(against) if against else "spread",
            size(r.wire()),
            "%s / %s" % (number(r.median("cpu_local")), number(r.median("cpu_remote"))),
            "%s / %s"
            % tuple(
                number(None if v is None else v / 1024, "%.0f")
                for v in (r.median("rss_local_kib"), r.median("rss_remote_kib"))
            ),
            "yes" if r.verified else "",
        ]


HEAD = [
    "tool",
    "median s",
    "spread",
    "min..max",
    "us/it",
    "wire",
    "CPU s us/far",
    "peak MiB",
    "verified",
]


def table(rows):
    rows = [[str(c) for c in row] for row in rows]
    widths = [
        max((len(r[i]) for r in rows if not r[1].startswith("FAILED")), default=0)
        for i in range(len(rows[0]))
    ]
    return "\n".join("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() for row in rows)


def targets(block, floors):
    """How the block stands against the aims: (aim, limit, reached or None) each."""
    want = TARGETS.get((block["case"], block["link"]))
    results = block["results"]
    ours = next((r for r in results if r.tool.startswith(OURS) and r.usable()), None)
    if not want or not ours:
        return []
    out = []
    if "wall_s" in want:
        out.append(("seconds", want["wall_s"], ours.median("wall")))
    for key, wanted in (
        ("plain", lambda r: r.plain),
        ("tuned", lambda r: r.tuned),
        ("tar", lambda r: r.tool.startswith("tar")),
    ):
        if key in want:
            rival = best(results, wanted)
            name = " (%s)" % rival.tool if rival else ""
            out.append(("wall against %s%s" % (key, name), want[key], ratio(ours, rival)))
    if "wire" in want:
        z = next((r for r in results if r.tool == "rsync-z" and r.usable()), None)
        both = z and ours.wire() is not None and z.wire()
        out.append(
            ("wire bytes against rsync-z", want["wire"], ours.wire() / z.wire() if both else None)
        )
    if "above_kib" in want:
        base = floors.get("links", {}).get(block["link"], {}).get("ssh_true_bytes")
        known = base is not None and ours.wire() is not None
        out.append(
            (
                "KiB above ssh's set-up",
                want["above_kib"],
                (ours.wire() - base) / 1024 if known else None,
            )
        )
    if "rss_mib" in want:
        peak = max(ours.median("rss_local_kib") or 0, ours.median("rss_remote_kib") or 0) / 1024
        out.append(("peak MiB of either side", want["rss_mib"], peak))
    return out


def floor_text(block, floors):
    parts, tree = [], floors.get("trees", {}).get(block["tree"], {})
    link = floors.get("links", {}).get(block["link"], {})
    if "walk_s" in tree:
        parts.append("walk of %d entries %s s" % (tree["entries"], seconds(tree["walk_s"])))
    if "cp_s" in tree:
        parts.append("cp -a %s s" % seconds(tree["cp_s"]))
    if "xxh3_mb_s" in tree:
        parts.append(
            "XXH3 %d MB/s, zstd -1/-3 %d/%d MB/s"
            % tuple(tree[k] for k in ("xxh3_mb_s", "zstd1_mb_s", "zstd3_mb_s"))
        )
    if "ssh_true_s" in link:
        parts.append(
            "ssh true %s s, %s" % (seconds(link["ssh_true_s"]), size(link["ssh_true_bytes"]))
        )
    if "ssh_cat_mb_s" in link:
        parts.append("cat through ssh %d MB/s" % link["ssh_cat_mb_s"])
    shape = LINKS[block["link"]]
    if shape and shape[1]:
        wires = {r.tool: r.wire() for r in block["results"] if r.usable() and r.wire()}
        parts += [
            "%s's bytes at %d Mbit/s %s s" % (t, shape[1], seconds(w * 8 / shape[1] / 1e6))
            for t, w in wires.items()
            if t in (OURS, "rsync-z")
        ]
    return "; ".join(parts)


def as_text(doc):
    m = doc["machine"]
    out = [
        "machine: %s, %s CPUs, %s, kernel %s; load %.1f at the start"
        % (
            m.get("cpu", "?"),
            m.get("cpus"),
            m.get("memory", "?"),
            m.get("kernel"),
            m.get("load", 0),
        ),
        "file system: %s" % doc["filesystem"],
        *("note: " + n for n in doc["notes"]),
        "us/it: our median wall time over theirs; refused where the middle half of the runs "
        "spreads over more than %d %% of the median" % (100 * SPREAD_MAX),
        "",
    ]
    if doc["scale"] != "full":
        out[-1:] = ["the trees are not of full size: the targets are for those", ""]
    for b in doc["blocks"]:
        out += [
            "== %s, %s: %s" % (b["case"], LINK_TEXT[b["link"]], b["help"]),
            table([HEAD, *rows_of(b["results"])]),
        ]
        floor = floor_text(b, doc["floors"])
        if floor:
            out.append("floors: " + floor)
        for what, limit, got in targets(b, doc["floors"]):
            verdict = (
                "not known"
                if got is None
                else "%.3f %s" % (got, "met" if got <= limit else "MISSED")
            )
            out.append("target: %s at most %g: %s" % (what, limit, verdict))
        out.append("")
    return "\n".join(out)


def as_json(doc):
    blocks = [
        dict(
            b,
            results=[r.as_json() for r in b["results"]],
            targets=[
                {"what": w, "limit": l, "reached": g} for w, l, g in targets(b, doc["floors"])
            ],
        )
        for b in doc["blocks"]
    ]
    return json.dumps(dict(doc, blocks=blocks), indent=1)


def bars(block):
    """The four bars of a block: us, plain rsync, tuned rsync, the best of the others."""
    results = block["results"]
    rsync = lambda r: r.tool.startswith("rsync")
    picks = [
        ("sbsync", best(results, lambda r: r.tool.startswith(OURS)), "#1b6ca8"),
        ("rsync", best(results, lambda r: r.plain), "#c8553d"),
        ("rsync, tuned", best(results, lambda r: r.tuned), "#e09f7d"),
        (
            "others",
            best(results, lambda r: not rsync(r) and not r.tool.startswith(OURS)),
            "#8a8d91",
        ),
    ]
    return [(label, r, colour) for label, r, colour in picks if r]


def as_svg(doc):
    """Wall time of each as a share of plain rsync's, one group of bars a case and link."""
    groups = [(b, bars(b)) for b in doc["blocks"]]
    groups = [(b, v) for b, v in groups if v]
    left, width, line = 260, 640, 16
    y, parts = 44, []
    for b, v in groups:
        unit = next(
            (r.median("wall") for label, r, _ in v if label == "rsync"), v[0][1].median("wall")
        )
        parts.append(
            '<text x="%d" y="%d" text-anchor="end" font-weight="bold">%s, %s</text>'
            % (left - 8, y + 12, html.escape(b["case"]), html.escape(b["link"]))
        )
        for label, r, colour in v:
            share = r.median("wall") / unit
            w = max(1, min(share, 1.6) / 1.6 * width)
            name = r.tool if label in ("rsync, tuned", "others", "rsync") else label
            parts.append(
                '<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>'
                % (left, y, w, line - 3, colour)
            )
            parts.append(
                '<text x="%.1f" y="%d">%s %s s (%.2f)</text>'
                % (left + w + 6, y + 11, html.escape(name), seconds(r.median("wall")), share)
            )
            y += line
        y += 10
    one = left + width / 1.6
    head = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="1100" height="%d" '
        'font-family="sans-serif" font-size="12">'
        '<rect width="100%%" height="100%%" fill="white"/>'
        '<text x="16" y="24" font-size="15">'
        "Wall time as a share of plain rsync (medians; shorter is better)</text>"
        '<line x1="%.1f" y1="34" x2="%.1f" y2="%d" stroke="#999" stroke-dasharray="3 3"/>'
        % (y + 10, one, one, y)
    )
    return head + "".join(parts) + "</svg>\n"


def save(doc, out_dir):
    os.makedirs(out_dir, exist_ok=True)
    for name, text in (
        ("bench.json", as_json(doc)),
        ("bench.txt", as_text(doc)),
        ("bench.svg", as_svg(doc)),
    ):
        path = os.path.join(out_dir, name)
        with open(path + ".new", "w") as f:
            f.write(text)
        os.replace(path + ".new", path)
