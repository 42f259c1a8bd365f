#!/usr/bin/python3
"""archives/run.py [--as UID] [--only NAME...] BUILD - archives into trees, trees into layers.

Every hostile archive has to be refused by PX814 with the name of its entry, to leave the store as it was and nothing
outside of it; its permitted twin has to work. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last
"N passed, N failed, N skipped".
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
sys.dont_write_bytecode = True
import leaks  # noqa: E402
from cases import TESTS, built, chosen, parser, publish, start_again, tell, verdict_of  # noqa: E402
from ground import Site  # noqa: E402
import roots, formats, hostile, damage, layers, zips  # noqa: E401, E402, F401  each adds its tests


def attempt(function, programs, top):
    place = Path(tempfile.mkdtemp(prefix=function.__name__ + ".", dir=top))
    verdict, why = verdict_of(function, Site(programs, place))
    os.chdir(top)
    left = leaks.processes_left()
    if left and verdict != "not ok":
        verdict, why = "not ok", f"left {left}"
    subprocess.run(["chmod", "-R", "u+rwx", str(place)], check=False, stderr=subprocess.DEVNULL)
    subprocess.run(["rm", "-rf", "--", str(place)], check=False)
    return verdict, why


def main():
    options = parser("build").parse_args()
    if options.published:
        leaks.become_subreaper()
        return tell((f.__name__, *attempt(f, options.build, options.build / "work")) for f in chosen(TESTS, options.only))
    programs = built(options.build, "px-main", "px-layer", "tests/layer")
    top = publish("archives", programs, [*HERE.glob("*.py"), HERE.parent / "leaks.py"], options.uid)
    return start_again(top, "archives/run.py", options)


if __name__ == "__main__":
    sys.exit(main())
