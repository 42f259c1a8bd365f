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
COMMIT = [("p50_ms", "<=", 30)]


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


class Project:
    """A project in a repository on a base of that size: what it costs to pack it when one file has changed."""

    def __init__(self, site, layers):
        self.px = os.path.join(site.build, "px")
        self.tool = os.path.join(site.build, "glibc", "tests", "image-tool")
        self.dir, self.turn, self.bytes = os.path.join(layers.top, "demo"), 0, 0
        self.env = {**os.environ, "PX_HOME": os.path.join(layers.top, "project-home")}
        self.note = self.make(layers)

    def make(self, layers):
        """The reason why it cannot be, or nothing."""
        if not shutil.which("git"):
            return "there is no git"
        os.makedirs(os.path.join(self.dir, "demo"))
        for number in range(200):
            with open(os.path.join(self.dir, f"demo/m{number}.py"), "w", encoding="utf-8") as file:
                file.write(f"value = {number}\n" * 50)
        os.makedirs(os.path.join(layers.tree, "etc"), exist_ok=True)
        shutil.copy("/etc/os-release", os.path.join(layers.tree, "etc/os-release"))
        git = ["git", "-c", "user.name=a", "-c", "user.email=a@b"]
        for words in ([self.px, "sandbox", "base", "import", "debian-12", layers.tree], [self.px, "init"], [self.px, "sync"],
                      [*git, "init", "-q"], [*git, "add", "-A"], [*git, "commit", "-qm", "x"], [self.px, "pack", "image"]):
            done = subprocess.run(words, cwd=self.dir, env=self.env, capture_output=True, text=True, check=False)
            if done.returncode != 0:
                return f"{os.path.basename(words[0])} {words[1]} fails: {done.stderr.strip()[:60]}"
        return ""

    def rows(self):
        return [
            Row("one changed file as a layer: px", [self.tool, "app", self.dir, "gzip"], COMMIT, self.note),
            Row("px pack image, one changed file", [self.px, "pack", "image", "--allow-dirty"], note=self.note),
            Row("px pack image, nothing changed", [self.px, "pack", "image", "--allow-dirty"], note=self.note),
        ]

    def once(self, row):
        self.turn += 1
        if "one changed" in row.name:
            with open(os.path.join(self.dir, "demo/m7.py"), "a", encoding="utf-8") as file:
                file.write(f"# {self.turn}\n")
        begin = time.monotonic_ns()
        done = subprocess.run(row.command, cwd=self.dir, env=self.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        return time.monotonic_ns() - begin if done.returncode == 0 else None


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
        layers.clear()
        project = Project(site, layers)
        rows = project.rows()
        packing = figures(project, rows, measure(project, rows, 9 if quick else 41))
    finally:
        layers.close()
    report.table(
        results,
        [("p50 ms", "p50_ms", 1), ("MB/s of tar", "mb_s", 0), ("x px", "x_px", 2)],
        f"layers of {layers.bytes // 1000000} MB",
    )
    report.table(packing, [("p50 ms", "p50_ms", 1)], "a project of 200 files, on a base of that size")
    return results + packing
