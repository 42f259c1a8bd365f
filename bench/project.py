"""A project's program in its sandbox, the second time and later, beside the same box without a project: what finding the
project, its lock, its environment and its image costs."""

import glob
import json
import os
import shutil
import subprocess
import tempfile

import measure
import report
from rows import Row

GOALS = [("extra_ms", "<=", 10)]
PAYLOAD = ["/bin/busybox", "true"]
MANIFEST = '[project]\nname = "bench"\nversion = "1"\nrequires-python = ">=3.11"\ndependencies = []\n\n[tool.px]\n'


class Project:
    """A store with a base of one program, and a project that was run once."""

    def __init__(self, site):
        self.px = site.px_glibc
        self.top = tempfile.mkdtemp(prefix="px-bench-")
        self.dir, self.home, tree = (os.path.join(self.top, name) for name in ("bench", "home", "tree"))
        self.env = {**os.environ, "PX_HOME": self.home}
        os.makedirs(os.path.join(tree, "bin"))
        os.makedirs(os.path.join(tree, "etc"))
        os.mkdir(self.dir)
        shutil.copy("/bin/busybox", os.path.join(tree, "bin", "busybox"))
        with open(os.path.join(tree, "etc", "os-release"), "w", encoding="utf-8") as file:
            file.write('ID=debian\nVERSION_ID="12"\n')
        with open(os.path.join(self.dir, "pyproject.toml"), "w", encoding="utf-8") as file:
            file.write(MANIFEST)
        self.base = json.loads(self.call("--json", "sandbox", "base", "import", "debian-12", tree))
        self.call("sync")
        self.call("run", "--sandbox", *PAYLOAD)

    def call(self, *words):
        return subprocess.run([self.px, *words], cwd=self.dir, env=self.env, check=True, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL).stdout

    def rows(self):
        """Of equal boxes: root, overlay, environment at /px, working tree at /app."""
        trees = os.path.join(self.home, "store", "trees")
        root = os.path.join(trees, self.base["tree"], "root")
        inside = os.path.dirname(os.path.dirname(glob.glob(os.path.join(trees, "*", "root", "env", "manifest.json"))[0]))
        box = ["--preset", "project", "--net", "none", "--rootfs", root, "--overlay", "--work-dir", self.dir,
               "-v", f"{inside}:/px:ro", "-w", "/app", "-i"]
        within = ["env", "-C", self.dir, f"PX_HOME={self.home}"]
        return [Row("px exec, the same box", [self.px, "exec", *box, "--", *PAYLOAD], prefix=within),
                Row("px run --sandbox", [self.px, "run", "--sandbox", *PAYLOAD], prefix=within),
                Row("px status", [self.px, "status"], prefix=within)]

    def close(self):
        shutil.rmtree(self.top, ignore_errors=True)


def extra(results):
    """What px run adds to the box's own time, as a figure of its row."""
    by_name = {result["row"]: result for result in results}
    box, run = by_name["px exec, the same box"], by_name["px run --sandbox"]
    note = "" if "p50_ms" in run and "p50_ms" in box else run["verdict"]
    row = Row("px run --sandbox, over the box's own time", goals=GOALS, note=note)
    result = report.finish(row, None if row.note else {"extra_ms": run["p50_ms"] - box["p50_ms"]})
    report.table([result], [("extra ms", "extra_ms", 2)], "a project's sandbox, warm")
    return result


def bench(site, rounds):
    if not os.path.exists(site.px_glibc):
        print("a project's sandbox: left out: not built\n")
        return []
    project = Project(site)
    try:
        wanted = project.rows()
        results = report.latency_results(wanted, measure.latency(wanted, site, rounds))
        report.latency_table(results, "a project's sandbox", "the box")
        return [*results, extra(results)]
    finally:
        project.close()
