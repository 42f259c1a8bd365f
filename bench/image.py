"""Layers: archives to trees and back, beside the programs that others use for it. All of it lies in memory, so that no
disk is measured."""

import os
import shutil
import subprocess
import tempfile
import time

import report
from rows import Row

SIZE = 283 << 20  # what the goal for packing is about: a base and an environment
SOURCES = ("/usr/lib/python3", "/usr/bin", "/usr/lib/x86_64-linux-gnu", "/usr/share", "/usr/lib", "/usr/sbin")
UNPACK_GZIP = [("mb_s", ">=", 400)]
UNPACK_ZSTD = [("mb_s", ">=", 500)]
PACK = [("mb_s", ">=", 236)]  # 283 MB in 1.2 s


def copy_some(target, most):
    """Files of this machine, as they are, up to a size."""
    total = 0
    for source in SOURCES:
        for folder, folders, files in os.walk(source):
            folders.sort()
            for name in sorted(files):
                path = os.path.join(folder, name)
                size = os.lstat(path).st_size
                if os.path.islink(path) or not os.path.isfile(path) or size > 30 << 20 or not os.access(path, os.R_OK):
                    continue
                place = os.path.join(target, path.lstrip("/"))
                if os.path.exists(place):
                    continue
                os.makedirs(os.path.dirname(place), exist_ok=True)
                shutil.copyfile(path, place)
                total += size
                if total >= most:
                    return


class Layers:
    """The tree, its archives, and a place to work in."""

    def __init__(self, site):
        self.tool = os.path.join(site.build, "glibc", "tests", "layer")
        self.top = tempfile.mkdtemp(prefix="px-bench-", dir="/dev/shm")
        self.tree, self.out, self.home = (os.path.join(self.top, name) for name in ("tree", "out", "home"))
        self.plain, self.gzip, self.zstd = (os.path.join(self.top, name) for name in ("a.tar", "a.tar.gz", "a.tar.zst"))
        self.layout = os.path.join(self.top, "layout")
        os.mkdir(self.tree)
        copy_some(self.tree, SIZE)
        subprocess.run(["tar", "-cf", self.plain, "-C", self.tree, "."], check=True)
        self.bytes = os.path.getsize(self.plain)
        subprocess.run(f"gzip -6 <'{self.plain}' >'{self.gzip}'", shell=True, check=True)
        if shutil.which("zstd"):
            subprocess.run(["zstd", "-q", "-3", self.plain, "-o", self.zstd], check=True)

    def note(self, program, archive=None):
        if not os.path.exists(program) and not shutil.which(program):
            return "not installed"
        return "" if archive is None or os.path.exists(archive) else "there is no zstd"

    def unpack_rows(self):
        rows = []
        for archive, word, goals in ((self.gzip, "gzip", UNPACK_GZIP), (self.zstd, "zstd", UNPACK_ZSTD)):
            rows.append(
                Row(
                    f"unpack {word}: px",
                    [self.tool, "unpack", archive, self.out, "0"],
                    goals,
                    self.note(self.tool, archive),
                )
            )
            rows.append(
                Row(
                    f"unpack {word}: bsdtar",
                    ["bsdtar", "-xf", archive, "-C", self.out],
                    note=self.note("bsdtar", archive),
                )
            )
            rows.append(
                Row(f"unpack {word}: GNU tar", ["tar", "-xf", archive, "-C", self.out], note=self.note("tar", archive))
            )
        return rows

    def pack_rows(self):
        return [
            Row(
                f"pack {word}: px",
                [self.tool, "pack", self.home, self.tree, "", "0", word],
                goals,
                self.note(self.tool),
            )
            for word, goals in (("gzip", PACK), ("zstd", []), ("none", []))
        ] + [
            Row(
                "pack gzip: umoci, a ready tar",
                ["umoci", "raw", "add-layer", "--image", self.layout + ":new", self.plain],
                note=self.note("umoci"),
            )
        ]

    def clear(self):
        """Before every run, and not timed."""
        subprocess.run(["rm", "-rf", "--", self.out, self.home, self.layout], check=True)
        os.mkdir(self.out)
        if shutil.which("umoci"):
            subprocess.run(["umoci", "init", "--layout", self.layout], check=True, capture_output=True)
            subprocess.run(["umoci", "new", "--image", self.layout + ":new"], check=True, capture_output=True)

    def once(self, row):
        self.clear()
        begin = time.monotonic_ns()
        done = subprocess.run(row.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return time.monotonic_ns() - begin if done.returncode == 0 else None

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)


def measure(layers, rows, rounds):
    samples = {row.name: [] for row in rows if not row.note}
    for turn in range(rounds):
        for i in range(len(rows)):
            row = rows[(i + turn) % len(rows)]
            nsec = layers.once(row) if not row.note else None
            if nsec is not None:
                samples[row.name].append(nsec)
    return samples


def figures(layers, rows, samples):
    results = []
    for row in rows:
        values = None
        if samples.get(row.name):
            median = sorted(samples[row.name])[len(samples[row.name]) // 2]
            values = {
                "p50_ms": median / 1e6,
                "mb_s": layers.bytes / (median / 1e9) / 1e6,
                "runs": len(samples[row.name]),
            }
        elif not row.note:
            row.note = "fails: no run went well"
        results.append(report.finish(row, values))
    first = {result["row"].split(":")[0]: result.get("p50_ms") for result in results if result["row"].endswith(": px")}
    for result in results:
        ours = first.get(result["row"].split(":")[0])
        if ours and "p50_ms" in result:
            result["x_px"] = result["p50_ms"] / ours
    return results


def bench(site, quick):
    layers = Layers(site)
    try:
        rows = layers.unpack_rows() + layers.pack_rows()
        results = figures(layers, rows, measure(layers, rows, 3 if quick else 7))
    finally:
        layers.close()
    report.table(
        results,
        [("p50 ms", "p50_ms", 1), ("MB/s of tar", "mb_s", 0), ("x px", "x_px", 2)],
        f"layers of {layers.bytes // 1000000} MB",
    )
    return results
