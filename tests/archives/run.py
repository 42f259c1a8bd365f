#!/usr/bin/python3
"""archives/run.py [--as UID] [--only NAME...] BUILD - archives into trees, trees into layers.

Every hostile archive has to be refused by PX814 with the name of its entry, to leave the store as it was and nothing
outside of it; its permitted twin has to work. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last
"N passed, N failed, N skipped".
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True
import leaks  # noqa: E402
from ground import TESTS, Problem, Site, Skip  # noqa: E402
import roots, formats, hostile, damage, layers, zips  # noqa: E401, E402, F401  each adds its tests


def attempt(function, programs, top):
    place = Path(tempfile.mkdtemp(prefix=function.__name__ + ".", dir=top))
    try:
        function(Site(programs, place))
        verdict, why = "ok", ""
    except Skip as reason:
        verdict, why = "skip", str(reason)
    except (Problem, OSError, ValueError, IndexError, subprocess.SubprocessError) as error:
        verdict, why = "not ok", f"{type(error).__name__}: {error}" if not isinstance(error, Problem) else str(error)
    os.chdir(top)
    left = leaks.processes_left()
    if left and verdict != "not ok":
        verdict, why = "not ok", f"left {left}"
    subprocess.run(["chmod", "-R", "u+rwx", str(place)], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", "--", str(place)], check=False)
    return verdict, why


def run_all(programs, top, only):
    leaks.become_subreaper()
    counts = {"ok": 0, "not ok": 0, "skip": 0}
    for function in TESTS:
        if only and not any(function.__name__.startswith(word) for word in only):
            continue
        verdict, why = attempt(function, programs, top)
        counts[verdict] += 1
        print(f"{verdict} {function.__name__}" + (f": {why}" if why else ""), flush=True)
    print("{ok} passed, {not ok} failed, {skip} skipped".format(**counts))
    return 1 if counts["not ok"] or not counts["ok"] else 0


def publish(build, uid):
    """Copies that any user can read, wherever the repository lies."""
    top = Path(tempfile.mkdtemp(prefix="archives."))
    top.chmod(0o755)
    glibc = build / "glibc" if (build / "glibc").is_dir() else build
    sources = [build / "px", glibc / "px-main", glibc / "px-layer", glibc / "tests/layer"]
    for source in sources:
        shutil.copyfile(source, top / source.name)
        (top / source.name).chmod(0o755)
    (top / "tests").mkdir(mode=0o755)
    for path in (*HERE.glob("*.py"), HERE.parent / "leaks.py"):
        shutil.copyfile(path, top / "tests" / path.name)
        (top / "tests" / path.name).chmod(0o644)
    (top / "work").mkdir()
    if uid:
        os.chown(top / "work", uid, uid)
    (top / "work").chmod(0o755)
    return top


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--as", dest="uid", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--published", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("build", type=Path)
    options = parser.parse_args()
    if options.published:
        return run_all(options.build, options.build / "work", options.only)
    top = publish(options.build.resolve(), options.uid)
    drop = (
        ["setpriv", "--reuid", str(options.uid), "--regid", str(options.uid), "--clear-groups", "--"]
        if options.uid
        else []
    )
    only = ["--only", *options.only] if options.only else []
    try:
        return subprocess.run(
            [*drop, sys.executable, str(top / "tests/run.py"), "--published", *only, "--", str(top)],
            check=False,
            cwd=top / "work",
            env={**os.environ, "TMPDIR": str(top / "work"), "PYTHONDONTWRITEBYTECODE": "1"},
        ).returncode
    finally:
        subprocess.run(["rm", "-rf", "--", str(top)], check=False)


if __name__ == "__main__":
    sys.exit(main())
