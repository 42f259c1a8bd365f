"""What the drivers of tests from outside share: the cases, their verdicts, the counts, and copies that another user can run.

A driver copies its programs and scripts to where any user can reach them and starts itself there once more, as that user. Each case
prints `ok NAME`, `not ok NAME: why` or `skip NAME: why`; the last line is "N passed, N failed, N skipped".
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TESTS = []


# Errors about the words of a command line say what is wrong in their first line; they have no reason of their own.
WITHOUT_REASON = ("PX001", "PX002")


class Problem(Exception):
    """The test failed; the text says how."""


class Skip(Exception):
    """The test cannot be run here; the text says why."""


def test(function):
    TESTS.append(function)
    return function


def check(condition, why):
    if not condition:
        raise Problem(why)


def verdict_of(function, *words):
    """(verdict, why) of one case."""
    try:
        function(*words)
        return "ok", ""
    except Skip as reason:
        return "skip", str(reason)
    except Problem as reason:
        return "not ok", str(reason)
    except Exception as error:  # a bug of the test must not look like a pass
        return "not ok", f"{type(error).__name__}: {str(error)[:600]}"


def chosen(tests, only):
    return [function for function in tests if not only or any(word in function.__name__ for word in only)]


def tell(results):
    """Prints (name, verdict, why) as they come, then the counts; the exit status."""
    counts = {"ok": 0, "not ok": 0, "skip": 0}
    for name, verdict, why in results:
        counts[verdict] += 1
        print(f"{verdict} {name}" + (f": {why}" if why else ""), flush=True)
    print("{ok} passed, {not ok} failed, {skip} skipped".format(**counts))
    return 1 if counts["not ok"] or not counts["ok"] else 0


def parser(place):
    """The options of every driver, and the one word it takes."""
    found = argparse.ArgumentParser()
    found.add_argument("--as", dest="uid", type=int, default=0)
    found.add_argument("--only", nargs="+", default=[])
    found.add_argument("--published", action="store_true", help=argparse.SUPPRESS)
    found.add_argument(place, type=Path)
    return found


def built(build, *names):
    """px of a build, and these programs of it."""
    build = build.resolve()
    glibc = build / "glibc" if (build / "glibc").is_dir() else build
    px = build / "px" if (build / "px").exists() else glibc / "px"
    return [px, *(glibc / name for name in names)]


def tool(px, name):
    """A program of tests/, of the build that px is of."""
    return px.parent.parent / "glibc/tests" / name


def publish(name, programs, scripts, uid):
    """A directory with the programs, the scripts where they lie below tests/, and work/, which is the user's."""
    top = Path(tempfile.mkdtemp(prefix=name + "."))
    copies = [(path, top / path.name, 0o755) for path in programs]
    copies += [(path, top / "tests" / path.relative_to(HERE), 0o644) for path in (*scripts, HERE / "cases.py")]
    for source, target, mode in copies:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        target.chmod(mode)
    (top / "work").mkdir()
    for folder in (top, *(path for path in top.rglob("*") if path.is_dir())):
        folder.chmod(0o755)
    if uid:
        os.chown(top / "work", uid, uid)
    return top


def start_again(top, script, options, *words, environment=None):
    """The driver in its new place, as the user; its exit status. The place is gone afterwards."""
    drop = ["setpriv", "--reuid", str(options.uid), "--regid", str(options.uid), "--clear-groups", "--"] if options.uid else []
    only = ["--only", *options.only] if options.only else []
    try:
        return subprocess.run([*drop, sys.executable, str(top / "tests" / script), "--published", *words, *only, "--", str(top)],
                              check=False, cwd=top / "work",
                              env={**(environment or os.environ), "TMPDIR": str(top / "work"), "PYTHONDONTWRITEBYTECODE": "1"}).returncode
    finally:
        subprocess.run(["rm", "-rf", "--", str(top)], check=False)


def attempt(function, world, px, work):
    """(verdict, why) of a case that has a world and a directory of its own."""
    top = tempfile.mkdtemp(prefix="w.", dir=work)
    try:
        return verdict_of(lambda: function(world(px, top)))
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", "--", top], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--", top], check=False)


def drive(script, world, programs=("px", "px-main"), scripts=(), tools=()):
    """All of a driver whose cases take world(PX, DIRECTORY) and leave no processes that anybody would have to look for."""
    options = parser("px").parse_args()
    if options.published:
        px, work = str(options.px / "px"), str(options.px / "work")
        return tell((f.__name__, *attempt(f, world, px, work)) for f in chosen(TESTS, options.only))
    px = options.px.resolve()
    found = [px.with_name(name) for name in programs] + [tool(px, name) for name in tools]
    top = publish(Path(script).parts[0].removesuffix(".py"), found, [HERE / name for name in (script, *scripts)], options.uid)
    return start_again(top, script, options)
