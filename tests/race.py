"""Races with tests/swapper.c: a neighbour swaps names with links to a directory outside while a test does what must not follow them.

Used by the drivers of tests/, by tests/security and by the tests of the Python package, so that it raises AssertionError alone.
"""

import collections
import contextlib
import os
import stat
import subprocess
import time

SWAPS = 1_000_000
ENOUGH = 5              # of the rounds, of the sights of a link and of what it replaces, and of what worked: with fewer nothing is proved
SECRET = "what lies outside"
LOOKS = 400             # at a name, in one round
LIMIT_S = 600


def outside_of(top):
    """A new directory outside, with names that px uses itself, and one in it whose mode px would have to change to empty it."""
    outside = top / "outside"
    for name in ("file", "current", "below/file", "closed/file", "closed/sub/0"):
        (outside / name).parent.mkdir(parents=True, exist_ok=True)
        (outside / name).write_text(SECRET)
        (outside / name).chmod(0o640)
    outside.chmod(0o755)
    (outside / "closed").chmod(0o500)
    return outside


def state_of(top):
    """What every change of the directory, or of anything below it, alters: st_ctime_ns is the kernel's own, and nobody can set it."""
    paths = [top, *sorted(top.rglob("*"))]
    found = {path: path.lstat() for path in paths}
    return {str(path): (st.st_ino, oct(st.st_mode), st.st_nlink, st.st_size, st.st_ctime_ns) for path, st in found.items()}


def words_of(program, away, outside, *patterns):
    """The command that swaps what the patterns fit in its working directory."""
    return [str(program), str(SWAPS), str(away), str(outside), *patterns]


@contextlib.contextmanager
def swapping(program, directory, first, second):
    """Two names of a directory are exchanged all the while."""
    with subprocess.Popen([str(program), str(SWAPS), first, second], cwd=directory, stdin=subprocess.PIPE) as process:
        try:
            yield
            assert process.poll() is None, f"the swapper: {process.returncode}"
        finally:
            process.kill()


class Race:
    """`with Race(WORDS, OUTSIDE) as race: for _ in race.rounds(): ...`: the rounds end when all swaps are done and enough was seen."""

    def __init__(self, words, outside, **more):
        self.outside, self.before = outside, state_of(outside)
        self.seen = collections.Counter(round=0, link=0, thing=0, worked=0)
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **more)

    def rounds(self):
        end = time.monotonic() + LIMIT_S
        while self.process.poll() is None:
            yield
            self.seen["round"] += 1
            self.check_outside()
            assert time.monotonic() < end, f"not enough after {LIMIT_S} s: {dict(self.seen)}"
            if min(self.seen.values()) >= ENOUGH and not self.process.stdin.closed:
                self.process.stdin.close()      # from now on it ends with its last swap

    def look(self, path):
        """Counts what is at the path: a link, or what it replaces."""
        for _ in range(LOOKS):
            try:
                self.seen["link" if stat.S_ISLNK(os.lstat(path).st_mode) else "thing"] += 1
            except FileNotFoundError:
                pass

    def check_outside(self):
        now = state_of(self.outside)
        assert now == self.before, f"changed outside: {sorted(set(now.items()) ^ set(self.before.items()))}"

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        self.process.kill()
        with self.process:
            said, errors = self.process.stdout.read(), self.process.stderr.read()
        try:
            if kind is None:
                self.check_outside()
                assert self.process.returncode == 0 and int(said) >= SWAPS, f"the swapper: {self.process.returncode} {said} {errors}"
        finally:
            with contextlib.suppress(FileNotFoundError):
                (self.outside / "closed").chmod(0o700)  # so that its owner can remove it
