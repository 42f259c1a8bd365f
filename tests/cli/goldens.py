#!/usr/bin/python3
"""goldens.py [--as UID] [--jobs N] [--only GROUP/NAME...] PX - run the command-line tests beside this file.

A test is GROUP/NAME.sh, run by bash with lib.sh sourced, `set -eu`, an empty standard input and a fresh directory as the
working directory. What it must do is in the files beside it:

    NAME.stdout.exact, NAME.stderr.exact    the bytes
    NAME.stdout.glob, NAME.stderr.glob      for each line a pattern with * and ?; a line `...` stands for any lines
    NAME.exit                               the exit status, 0 if there is no such file

Without a file for a stream, that stream is not looked at. Exit status 77 skips the test; the last line on stderr says why.
A process that a test leaves behind fails it. The environment of a test is
    PX (the program), TMP (the fresh directory), AS (root or user), and a plain PATH, HOME, LANG.

Prints `ok NAME`, `not ok NAME: why` with the differences below, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import argparse
import difflib
import multiprocessing
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
sys.dont_write_bytecode = True
import leaks  # noqa: E402  (the folder above is not a package)

DEADLINE_S = 60
SKIPPED = 77


# ---- comparing -----------------------------------------------------------------------------------------------------


def line_pattern(line):
    return "".join({"*": "[^\n]*", "?": "[^\n]"}.get(c, re.escape(c)) for c in line)


def glob_matches(pattern, text):
    parts = []
    for line in pattern.splitlines():
        parts.append("(?:[^\n]*\n)*" if line == "..." else line_pattern(line) + "\n")
    return re.fullmatch("".join(parts), text if text.endswith("\n") or not text else text + "\n") is not None


def shown(text):
    lines = text.splitlines()
    return [repr(line)[1:-1][:300] for line in lines[:40]] + (["..."] if len(lines) > 40 else [])


def stream_problem(script, stream, data):
    text = data.decode(errors="surrogateescape")
    exact, glob = (script.with_suffix(f".{stream}.{kind}") for kind in ("exact", "glob"))
    if exact.exists():
        wanted = exact.read_bytes().decode(errors="surrogateescape")
        if wanted != text:
            return "\n".join([f"{stream} differs:", *difflib.unified_diff(shown(wanted), shown(text), "wanted", "got", "", "", 2, "")])
    if glob.exists() and not glob_matches(glob.read_text(), text):
        return "\n".join([f"{stream} does not match {glob.name}:", *(f"  {line}" for line in shown(text))])
    return ""


def wanted_status(script):
    file = script.with_suffix(".exit")
    return int(file.read_text()) if file.exists() else 0


def problems(script, status, out, err):
    if status != wanted_status(script):
        yield "\n".join([f"exit status {status}, not {wanted_status(script)}; stderr:", *(f"  {line}" for line in shown(err.decode(errors="replace")))])
    for stream, data in (("stdout", out), ("stderr", err)):
        problem = stream_problem(script, stream, data)
        if problem:
            yield problem


# ---- running -------------------------------------------------------------------------------------------------------


def command(place, script, uid):
    shell = ["bash", "--noprofile", "--norc", "-eu", "-c", '. "$1/lib.sh"; . "$2"', "bash", str(place), str(script)]
    drop = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--"] if uid else []
    return drop + shell


def run(job):
    """In a worker, which adopts what the test orphans: (name, verdict, text)."""
    place, script, px, uid, top = job
    name = f"{script.parent.name}/{script.stem}"
    tmp = tempfile.mkdtemp(prefix=f"{script.stem}.", dir=top)
    if uid:
        os.chown(tmp, uid, uid)
    os.chmod(tmp, 0o755)
    environment = {
        "PX": px, "TMP": tmp, "TMPDIR": tmp, "HOME": tmp, "AS": "user" if uid or os.geteuid() else "root",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LANG": "C.UTF-8", "TERM": "dumb", "CALLER_SECRET": "hunter2",
    }
    process = subprocess.Popen(command(place, script, uid), cwd=tmp, env=environment, start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        out, err = process.communicate(timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, err = process.communicate()
        err += f"\nstill running after {DEADLINE_S} s".encode()
    left = leaks.processes_left(5)
    shutil.rmtree(tmp, ignore_errors=True)
    if process.returncode == SKIPPED and not left:
        reason = err.decode(errors="replace").strip().splitlines()
        return name, "skip", reason[-1] if reason else "no reason given"
    found = list(problems(script, process.returncode, out, err)) + [f"left {text}" for text in left]
    return name, "not ok" if found else "ok", "\n".join(found)


def find(place, only):
    scripts = sorted(path for path in place.glob("*/*.sh"))
    return [s for s in scripts if not only or any(f"{s.parent.name}/{s.stem}".startswith(word) for word in only)]


def publish(top, px, uid):
    """Copies that any user can read, wherever the repository lies."""
    os.chmod(top, 0o755)
    place = Path(top) / "tests"
    shutil.copytree(HERE, place, ignore=shutil.ignore_patterns("__pycache__"))
    for path in [place, *place.rglob("*")]:
        path.chmod(0o755)
    copy = Path(top) / "px"
    for name in ("px", "px-main", "px-attack", "px-layer", "px-git", "px-net", "px-outside", "px-pasta"):
        shutil.copyfile(Path(px).resolve().with_name(name), copy.with_name(name))
        copy.with_name(name).chmod(0o755)
    work = Path(top) / "work"
    work.mkdir()
    work.chmod(0o755)
    if uid:
        os.chown(work, uid, uid)
    return place, str(copy), str(work)


def show(name, verdict, text):
    lines = text.splitlines()
    print(f"{verdict} {name}" + (f": {lines[0]}" if lines else ""))
    for line in lines[1:]:
        print(f"    | {line}")
    sys.stdout.flush()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--as", dest="uid", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=max(2, (os.cpu_count() or 1)))
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("px")
    options = parser.parse_args()
    counts = {"ok": 0, "not ok": 0, "skip": 0}
    with tempfile.TemporaryDirectory(prefix="goldens.") as top:
        place, px, work = publish(top, options.px, options.uid)
        jobs = [(place, script, px, options.uid, work) for script in find(place, options.only)]
        with multiprocessing.Pool(options.jobs, leaks.become_subreaper) as pool:
            for name, verdict, text in pool.imap(run, jobs):
                counts[verdict] += 1
                show(name, verdict, text)
    print("{ok} passed, {not ok} failed, {skip} skipped".format(**counts))
    return 1 if counts["not ok"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
