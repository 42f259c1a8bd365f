#!/usr/bin/python3
"""images.py [--as UID] [--only NAME...] BUILD - images and registries: what px writes others read, what others write px reads, what is
hostile is refused by name.

The programs are copied to where any user can reach them. Everything waits for a state with a generous bound; nothing is measured.
Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import concurrent.futures
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True
from cases import TESTS, chosen, parser, publish, start_again, tell, verdict_of  # noqa: E402
import world  # noqa: E402
import formats  # noqa: E402,F401
import hostile  # noqa: E402,F401
import imports  # noqa: E402,F401
import lies  # noqa: E402,F401
import registry  # noqa: E402,F401

PROGRAMS = ("tests/image-tool", "px-layer", "px-fetch", "px", "px-main")
AT_ONCE = 4


def run_one(number, tool):
    top = tempfile.mkdtemp(prefix="images.")
    place = world.World(tool, top)
    try:
        return verdict_of(TESTS[number], place)
    finally:
        place.close()
        subprocess.run(["chmod", "-R", "u+rwX", "--", top], check=False, stderr=subprocess.DEVNULL)
        shutil.rmtree(top, ignore_errors=True)


def run_all(tool, only):
    """Several at once, each in a process and a directory of its own: most of them wait for servers, some of which are slow on purpose."""
    numbers = [TESTS.index(function) for function in chosen(TESTS, only)]
    with concurrent.futures.ProcessPoolExecutor(AT_ONCE, mp_context=multiprocessing.get_context("fork")) as pool:
        found = pool.map(run_one, numbers, [tool] * len(numbers))
        return tell((TESTS[number].__name__, *result) for number, result in zip(numbers, found))


def main():
    options = parser("build").parse_args()
    if options.published:
        return run_all(options.build / "image-tool", options.only)
    top = publish("px.images", [options.build / program for program in PROGRAMS], HERE.glob("*.py"), options.uid)
    clean = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
    return start_again(top, "images/images.py", options, environment=clean)


if __name__ == "__main__":
    sys.exit(main())
