#!/usr/bin/python3
"""images.py [--as UID] [--only NAME...] BUILD - images and registries: what px writes others read, what others write px reads, what is
hostile is refused by name.

The programs are copied to where any user can reach them. Everything waits for a state with a generous bound; nothing is measured.
Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import argparse
import concurrent.futures
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True
import world  # noqa: E402
import formats  # noqa: E402,F401
import hostile  # noqa: E402,F401
import imports  # noqa: E402,F401
import lies  # noqa: E402,F401
import registry  # noqa: E402,F401

PROGRAMS = ("tests/image-tool", "px-layer", "px-fetch", "px", "px-main")
AT_ONCE = 4


def run_one(function, tool):
    top = tempfile.mkdtemp(prefix="images.")
    place = world.World(tool, top)
    try:
        function(place)
        return "ok", ""
    except world.Skip as reason:
        return "skip", str(reason)
    except world.Problem as problem:
        return "not ok", str(problem)
    except Exception:  # noqa: BLE001 - any other failure is the test's
        return "not ok", traceback.format_exc().strip().replace("\n", " | ")[-600:]
    finally:
        place.close()
        subprocess.run(["chmod", "-R", "u+rwX", "--", top], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(top, ignore_errors=True)


def run_number(number, tool):
    return run_one(world.TESTS[number], tool)


def run_all(tool, only):
    """Several at once, each in a process and a directory of its own: most of them wait for servers, some of which are slow on purpose."""
    counts = {"ok": 0, "not ok": 0, "skip": 0}
    chosen = [i for i, function in enumerate(world.TESTS) if not only or any(word in function.__name__ for word in only)]
    with concurrent.futures.ProcessPoolExecutor(AT_ONCE, mp_context=multiprocessing.get_context("fork")) as pool:
        for number, (verdict, why) in zip(chosen, pool.map(run_number, chosen, [tool] * len(chosen))):
            counts[verdict] += 1
            print(f"{verdict} {world.TESTS[number].__name__}" + (f": {why}" if why else ""), flush=True)
    print(f"{counts['ok']} passed, {counts['not ok']} failed, {counts['skip']} skipped")
    return 1 if counts["not ok"] or not counts["ok"] else 0


def publish(build, uid):
    top = Path(tempfile.mkdtemp(prefix="px.images."))
    for program in PROGRAMS:
        shutil.copy(Path(build) / program, top)
    for script in HERE.glob("*.py"):
        shutil.copy(script, top)
    (top / "work").mkdir()
    for path in [top, *top.iterdir()]:
        path.chmod(0o755)
    os.chown(top / "work", uid or os.getuid(), uid or os.getgid())
    return top


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--as", dest="uid", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--published", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("build")
    options = parser.parse_args()
    if options.published:
        return run_all(Path(options.build) / "image-tool", options.only)
    top = publish(options.build, options.uid)
    drop = ["setpriv", "--reuid", str(options.uid), "--regid", str(options.uid), "--clear-groups", "--"] if options.uid else []
    only = ["--only", *options.only] if options.only else []
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    try:
        return subprocess.run([*drop, sys.executable, str(top / "images.py"), "--published", *only, "--", str(top)], check=False, cwd=top,
                              env={**clean, "TMPDIR": str(top / "work"), "PYTHONDONTWRITEBYTECODE": "1"}).returncode
    finally:
        subprocess.run(["rm", "-rf", "--", str(top)], check=False)


if __name__ == "__main__":
    sys.exit(main())
