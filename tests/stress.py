#!/usr/bin/python3
"""stress.py [--as UID] [--boxes N] [--commands N] BUILD

Living boxes and the engine under load, under attack and under kill -9; BUILD is what `make` made. The work is done by the
program `stress` (stress.c, stress_attack.c); here it is started, killed, and the machine looked at afterwards. With --as
everything runs as that user. No time is judged; what does not end within a bound that no machine needs is a failure."""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True      # the source tree stays as it was
import leaks                        # noqa: E402

BOUND_S = 600
HOLD = 3            # of stress.c: as many boxes of its own, of the engine's, and ready in the pool


class Stress:
    def __init__(self, build, uid, place):
        self.tally = leaks.Tally()
        self.prefix = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"] if uid else []
        self.px = os.path.join(place, "px")
        self.program = os.path.join(place, "stress")
        # Copies that any user can reach, wherever the repository lies.
        for source in (f"{build}/px", f"{build}/glibc/px-main", f"{build}/glibc/tests/stress"):
            shutil.copy(os.path.realpath(source), os.path.join(place, os.path.basename(source)))
        self.sweep()
        self.before = leaks.look()

    def command(self, *words):
        return [*self.prefix, self.program, self.px, *map(str, words)]

    def sweep(self):
        """The next start removes the groups of whoever was killed."""
        subprocess.run([*self.prefix, self.px, "exec", "--pids", "64", "--", "true"], stdin=subprocess.DEVNULL,
                       capture_output=True, check=False)

    def leaves_nothing(self, name):
        left = leaks.processes_left(60)
        self.sweep()
        self.tally.check(f"{name}: nothing is left", "; ".join(left + leaks.left_since(self.before)))

    def run(self, *words):
        """A run that judges itself: its lines are ours."""
        name = words[0]
        try:
            done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, timeout=BOUND_S, check=False)
            text, status = done.stdout.decode(errors="replace"), done.returncode
        except subprocess.TimeoutExpired as late:
            text, status = (late.stdout or b"").decode(errors="replace"), "none: it hangs"
        sys.stdout.write("".join(f"{line}\n" for line in text.splitlines()))
        if " passed, " not in text:
            self.tally.check(name, f"it did not come to its end, exit status {status}")
        self.leaves_nothing(name)


class Held:
    """Boxes that somebody holds: HOLD of its own, then HOLD of its engine's."""

    def __init__(self, stress):
        self.process = subprocess.Popen(stress.command("hold"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.engine = None
        for line in self.process.stdout:
            if line.startswith("holding "):
                self.engine = int(line.split()[1])
                break

    def own(self):
        return [pid for pid in leaks.children(self.process.pid) if pid != self.engine]

    def lost(self, count):
        """The next so many lines about boxes that ended: how many were its own, how many the engine's."""
        kinds = []
        while len(kinds) < count and (line := self.process.stdout.readline()):
            if line.startswith("lost "):
                kinds.append(line.split()[1])
        return kinds.count("own"), kinds.count("engine")

    def end(self):
        """{word: what it said last}: whether a new box answered, and how many homes live."""
        rest, _ = self.process.communicate(timeout=BOUND_S)
        lines = rest.splitlines()
        return {"afterwards": next((line.split()[1] for line in lines if line.startswith("afterwards ")), "nothing"),
                "lives": sum(line.endswith(" lives") for line in lines),
                "gone": sum(line.endswith(" is gone") for line in lines),
                "status": self.process.returncode}


def kill(pids):
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def differs(found, wanted):
    return "" if found == wanted else f"{found}, not {wanted}"


def kill_engine(stress):
    held = Held(stress)
    kill([held.engine])
    stress.tally.check("kill -9 of the engine: its boxes are reported lost", differs(held.lost(HOLD), (0, HOLD)))
    wanted = {"afterwards": "refused", "lives": HOLD, "gone": HOLD, "status": 0}
    stress.tally.check("kill -9 of the engine: the caller's own boxes live, a new one is refused", differs(held.end(), wanted))
    stress.leaves_nothing("kill -9 of the engine")


def kill_init(stress):
    """One of the caller's own, and every one of the engine's: those in use and those that wait in the pool."""
    held = Held(stress)
    victims = leaks.children(held.engine)
    kill(held.own()[:1] + victims)
    stress.tally.check("kill -9 of pid 1: the boxes are reported lost", differs(held.lost(1 + HOLD), (1, HOLD)))
    deadline = time.monotonic() + BOUND_S       # one that is only about to die could still be handed out
    while set(victims) & set(leaks.children(held.engine)) and time.monotonic() < deadline:
        time.sleep(0.02)
    wanted = {"afterwards": "answered", "lives": HOLD - 1, "gone": HOLD + 1, "status": 0}
    stress.tally.check("kill -9 of pid 1: the other boxes live, the pool makes new ones", differs(held.end(), wanted))
    stress.leaves_nothing("kill -9 of pid 1")


def kill_user(stress):
    held = Held(stress)
    kill([held.process.pid])
    held.process.communicate()
    stress.leaves_nothing("kill -9 of the engine's user")


def kill_at_any_moment(stress, times=30):
    """While boxes are made, handed over, used and freed: by whom does not matter."""
    moments = random.Random(4)
    hung = 0
    for i in range(times):
        process = subprocess.Popen(stress.command("many", 20), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        time.sleep(moments.uniform(0, 0.15))
        victims = leaks.children(process.pid)
        kill(victims[:1] if i % 2 else [process.pid])           # the engine is its first child
        try:
            process.wait(BOUND_S)
        except subprocess.TimeoutExpired:
            hung += 1
            kill([process.pid])
            process.wait()
    stress.tally.check("kill -9 at any moment: nobody hangs", f"{hung} of {times} do" if hung else "")
    stress.leaves_nothing("kill -9 at any moment")


def main():
    parser = argparse.ArgumentParser(prog="stress.py", description="Living boxes and the engine under stress.")
    parser.add_argument("build", metavar="BUILD")
    parser.add_argument("--as", dest="uid", type=int, default=0, metavar="UID")
    parser.add_argument("--boxes", type=int, default=200, metavar="N", help="that stay at once (200)")
    parser.add_argument("--commands", type=int, default=3000, metavar="N", help="through one engine (3000)")
    args = parser.parse_args()
    leaks.become_subreaper()
    sys.stdout.reconfigure(line_buffering=True)
    place = tempfile.mkdtemp(prefix="stress.")
    try:
        os.chmod(place, 0o755)
        stress = Stress(os.path.abspath(args.build), args.uid, place)
        stress.run("many", args.boxes)
        stress.run("commands", args.commands)
        stress.run("hostile")
        for test in (kill_engine, kill_init, kill_user, kill_at_any_moment):
            test(stress)
    finally:
        shutil.rmtree(place)
    tally = stress.tally
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


if __name__ == "__main__":
    sys.exit(main())
