#!/usr/bin/python3
"""box/run.py [--as UID] [--only NAME...] PX - the life of boxes with a name: what stays between commands, what ends when, what is left.

PX, px-main and px-layer beside it are copied to where any user can reach them. Everything waits for a state with a generous bound; nothing
is measured. Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import importlib.util
import io
import json
import os
import resource
import secrets
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent         # tests/
sys.path.insert(0, str(TOP))
sys.dont_write_bytecode = True
import leaks  # noqa: E402
from cases import TESTS, Problem, Skip, check, chosen, parser, publish, start_again, tell, test, tool, verdict_of  # noqa: E402
from race import Race, outside_of, words_of  # noqa: E402

LIMIT_S = 60


def until(condition, why):
    end = time.monotonic() + LIMIT_S
    while not condition():
        check(time.monotonic() < end, why)
        time.sleep(0.02)


def processes():
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            yield int(entry)


def marked(mark):
    """Living processes whose command line holds the mark."""
    found = []
    for pid in processes():
        try:
            if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes() and pid != os.getpid():
                found.append(pid)
        except OSError:
            continue
    return found


def state_of(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "gone"


def alive(pid):
    return state_of(pid) not in ("Z", "gone")


class World:
    """px with a PX_HOME of this test's own."""

    def __init__(self, px, top):
        self.px, self.top = px, Path(top)
        self.home = self.top / "px-home"
        self.mark = "pxbox" + secrets.token_hex(8)
        self.environment = {"PATH": os.environ["PATH"], "HOME": str(top), "TMPDIR": str(top), "PX_HOME": str(self.home), "LANG": "C.UTF-8",
                            "TERM": "xterm", "CALLER_SECRET": "hunter2"}
        self.children = []

    def run(self, *words, status=0, data=None, **more):
        done = subprocess.run([self.px, *words], input=data, stdin=None if data is not None else subprocess.DEVNULL, capture_output=True,
                              timeout=LIMIT_S, check=False, cwd=self.top, env=self.environment, text=True, **more)
        if status is not None:
            check(done.returncode == status, f"px {' '.join(words)[:120]}: exit {done.returncode}: {(done.stdout + done.stderr)[-300:]}")
        return done

    def box(self, *words, **more):
        return self.run("box", *words, **more)

    def out(self, name, text, *options, **more):
        return self.box("exec", name, *options, "-c", text, **more).stdout

    def spawn(self, *words, **more):
        more.setdefault("stdin", subprocess.DEVNULL)
        process = subprocess.Popen([self.px, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=self.top, env=self.environment,
                                   text=True, **more)
        self.children.append(process)
        return process

    def show(self, name):
        return json.loads(self.run("--json", "box", "show", name).stdout)

    def names(self):
        return [box["name"] for box in json.loads(self.run("--json", "box", "list").stdout)["boxes"]]

    def directories(self):
        try:
            return sorted(os.listdir(self.home / "run" / "boxes"))
        except FileNotFoundError:
            return []

    def gone(self, *names):
        until(lambda: not set(names or self.directories()) & set(self.directories()), f"directories are left: {self.directories()}")

    def close(self):
        for process in self.children:
            if process.poll() is None:
                process.kill()
            process.communicate()
        self.run("box", "stop", "--all", status=None)


# ---- what stays, and what does not ----------------------------------------------------------------------------------


@test
def files_stay_and_go(world):
    for _ in range(2):
        world.box("start", "--name", "f")
        check(world.out("f", "ls -A ~ /tmp") == "/home/sandbox:\n\n/tmp:\n", "a new box is not empty")
        world.out("f", "echo one >~/a; echo two >/tmp/b; mkdir ~/d; echo three >~/d/c")
        check(world.out("f", "cat ~/a /tmp/b ~/d/c") == "one\ntwo\nthree\n", "files do not stay")
        world.box("stop", "f")
        check(world.directories() == [], f"left: {world.directories()}")


@test
def background_processes(world):
    world.box("start", "--name", "b")
    pid = int(world.out("b", f"sh -c 'trap \"echo bye >/tmp/said; exit\" TERM; echo up >/tmp/up; : {world.mark}; while :; do sleep 0.1; done' "
                             ">/tmp/log 2>&1 & echo $!"))
    until(lambda: world.out("b", "cat /tmp/up 2>/dev/null; true") == "up\n", "it does not come up")
    state = world.show("b")
    found = [p for p in state["processes"] if p["pid"] == pid]
    check(len(found) == 1 and world.mark in found[0]["command"] and found[0]["parent"] == 1, f"it is not listed: {state['processes']}")
    check(world.mark in world.box("show", "b").stdout, "a person does not see it")
    check(state["commands_running"] == 0, "it counts as a command")
    world.box("signal", "b", "TERM", "--process", str(pid))
    until(lambda: not any(p["pid"] == pid for p in world.show("b")["processes"]), "it does not end")
    check(world.out("b", "cat /tmp/said") == "bye\n", "it was not asked politely")
    done = world.box("signal", "b", "TERM", "--process", str(pid), status=1)
    check("PX040" in done.stderr, f"no PX040: {done.stderr}")


@test
def background_output_does_not_hold(world):
    """A command's own end is its end, whoever else still holds its streams, and however much they write."""
    world.box("start", "--name", "b")
    check(world.out("b", f"yes {world.mark} & echo first; exit 0").startswith(("first", "pxbox")), "no output")
    check(world.out("b", "sleep 1000 & echo x") == "x\n", "the pipe is held")
    check(world.box("exec", "b", "-c", "yes & exit 7", status=7).returncode == 7, "the status is not its own")


@test
def stop_leaves_nothing(world):
    before = leaks.mounts()
    options = ["-m", "64m"] if os.geteuid() == 0 else []
    world.box("start", "--name", "s", "--net", "loopback", *options)
    world.box("exec", "s", "-d", "--", "sh", "-c", f"trap '' TERM HUP; : {world.mark}; while :; do sleep 1; done")
    world.out("s", f"setsid sh -c 'trap \"\" TERM; : {world.mark}; while :; do sleep 1; done' >/dev/null 2>&1 &")
    state = world.show("s")
    check(len(marked(world.mark)) >= 2, "nothing runs")
    world.box("stop", "s")
    check(not marked(world.mark), "processes are left")
    check(world.directories() == [], f"left: {world.directories()}")
    check(leaks.mounts() == before, "mounts are left")
    check(not [g for g in Path("/sys/fs/cgroup").glob(f"*/px-{state['id']}")] + [g for g in Path("/sys/fs/cgroup").glob(f"px-{state['id']}")],
          "a control group is left")
    until(lambda: not alive(state["keeper_pid"]) and not alive(state["pid"]), "the keeper is left")
    check("PX041" in world.box("stop", "s", status=1).stderr, "a second stop says something else")


@test
def politeness(world):
    """SIGTERM first, to all; who ends in time can say something."""
    (world.top / "shared").mkdir()
    world.box("start", "--name", "p", "-v", f"{world.top}/shared:/shared")
    world.box("exec", "p", "-d", "--", "sh", "-c", "trap 'echo done >/shared/a; exit 0' TERM; echo up >/shared/up; while :; do sleep 0.1; done")
    until(lambda: (world.top / "shared/up").exists(), "it does not come up")
    world.box("stop", "p")
    check((world.top / "shared/a").read_text() == "done\n", "it was not asked")


# ---- ends -----------------------------------------------------------------------------------------------------------


@test
def keeper_killed(world):
    options = ["-m", "64m"] if os.geteuid() == 0 else []
    world.box("start", "--name", "k", *options)
    world.box("exec", "k", "-d", "--", "sh", "-c", f"sleep 1000; : {world.mark}")
    user = world.spawn("box", "exec", "k", "--", "sh", "-c", f"echo up; sleep 1000; : {world.mark}")
    check(user.stdout.readline() == "up\n", "a user's command does not start")
    state = world.show("k")
    os.kill(state["keeper_pid"], signal.SIGKILL)
    _, err = user.communicate(timeout=LIMIT_S)
    check(user.returncode == 137 and "its box ended before it" in err, f"the user's command: {user.returncode} {err}")
    until(lambda: not marked(world.mark), "processes outlive the keeper")
    until(lambda: not alive(state["pid"]), "pid 1 outlives the keeper")
    done = world.box("exec", "k", "--", "true", status=125)
    check("PX041" in done.stderr and world.directories() == [], f"{done.stderr}, left: {world.directories()}")
    world.box("start", "--name", "k", *options)       # the name is free, and what the dead one left is swept
    check(world.out("k", "echo again") == "again\n", "the name cannot be used again")


@test
def keeper_killed_list_sweeps(world):
    world.box("start", "--name", "k")
    os.kill(world.show("k")["keeper_pid"], signal.SIGKILL)
    until(lambda: world.names() == [] and world.directories() == [], f"left: {world.directories()}")


@test
def sweeping_follows_no_link(world):
    """What dead boxes have left goes while a neighbour swaps it, and the directories on the way, with links: nothing outside is touched."""
    outside, away, made = outside_of(world.top), world.top / "away", world.top / "made"
    away.mkdir()
    world.box("start", "--name", "k")
    world.box("stop", "k")
    boxes = os.open(world.home / "run" / "boxes", os.O_RDONLY | os.O_DIRECTORY)
    words = words_of(Path(world.px).with_name("swapper"), away, outside, "run", "run/boxes", "run/boxes/dead*", "run/boxes/dead*/d*")
    with Race(words, outside, cwd=world.home) as race:
        for _ in race.rounds():
            name = f"dead{race.seen['round']}"
            for i in range(6):
                (made / f"d{i}" / "sub").mkdir(parents=True)
                (made / f"d{i}").chmod(0o300)
            os.rename(made, name, dst_dir_fd=boxes)
            race.look(world.home / "run" / "boxes" / name)
            world.box("list", status=None)
            race.seen["worked"] += name not in os.listdir(boxes)
    os.close(boxes)
    subprocess.run(["chmod", "-R", "u+rwX", "--", str(world.top)], check=True)


@test
def keeper_stopped(world):
    """A keeper that hangs is told apart from one that is gone, within a bound, and its box can still be ended."""
    world.box("start", "--name", "h")
    keeper = world.show("h")["keeper_pid"]
    os.kill(keeper, signal.SIGSTOP)
    try:
        listed = json.loads(world.run("--json", "box", "list").stdout)["boxes"]
        check([b["state"] for b in listed] == ["unreachable"], f"listed as {listed}")
        check("PX040" in world.box("show", "h", status=1).stderr, "no PX040")
    finally:
        os.kill(keeper, signal.SIGCONT)
    world.box("stop", "h")


@test
def pid_1_killed(world):
    world.box("start", "--name", "p")
    user = world.spawn("box", "exec", "p", "--", "sh", "-c", "echo up; sleep 1000")
    check(user.stdout.readline() == "up\n", "a command does not start")
    os.kill(world.show("p")["pid"], signal.SIGKILL)
    _, err = user.communicate(timeout=LIMIT_S)
    check(user.returncode == 137 and "pid 1" in err, f"{user.returncode} {err}")
    world.gone("p")


@test
def keeper_asked_to_stop(world):
    world.box("start", "--name", "t")
    world.box("exec", "t", "-d", "--", "sh", "-c", f"sleep 1000; : {world.mark}")
    os.kill(world.show("t")["keeper_pid"], signal.SIGTERM)
    world.gone("t")
    check(not marked(world.mark), "processes are left")


@test
def starter_killed(world):
    """kill -9 at many moments of a start: a box that nobody was told of does not stay."""
    for step in range(60):
        process = world.spawn("box", "start", "--name", f"s{step}")
        time.sleep(step * 0.0004)
        process.kill()
        process.communicate()

    def settled():
        told = {f"s{i}" for i, p in enumerate(world.children)}
        return not (set(world.directories()) & told) or all(name in world.names() for name in world.directories())

    until(settled, f"half-made boxes: {world.directories()}")
    for name in world.names():          # started to the end before the kill came: whole, and it works
        check(world.out(name, "echo whole") == "whole\n", f"{name} is half a box")
    world.box("stop", "--all")
    until(lambda: world.directories() == [], f"left: {world.directories()}")


def below(pid):
    """Its descendants, the nearest first."""
    found, queue = [], [pid]
    while queue:
        try:
            children = Path(f"/proc/{queue[0]}/task/{queue[0]}/children").read_text().split()
        except OSError:
            children = []
        del queue[0]
        queue += map(int, children)
        found += map(int, children)
    return found


@test
def half_started_killed(world):
    """kill -9 of the keeper, or of pid 1, while they are being made: the starter ends, says so, and nothing is left."""
    told = 0
    for step in range(60):
        starter = world.spawn("box", "start", "--name", f"h{step}")
        end = time.monotonic() + LIMIT_S
        while len(victims := below(starter.pid)) <= step % 2 and starter.poll() is None:
            check(time.monotonic() < end, "it does not start")
        time.sleep(step * 0.0002)
        for pid in victims[-1:]:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        _, err = starter.communicate(timeout=LIMIT_S)
        check(starter.returncode == 0 or "PX0" in err, f"exit {starter.returncode}: {err}")
        told += starter.returncode != 0
    check(told > 0, "no kill came in time")
    until(lambda: set(world.names()) == set(world.directories()), f"half-made boxes: {world.directories()}")
    for name in world.names():          # whole before the kill came, and pid 1 was not the victim, or not yet dead
        world.box("stop", name, status=None)
    until(lambda: world.names() == [] and world.directories() == [], f"left: {world.directories()}")


@test
def everything_stopped(world):
    """A command stops all that it can: pid 1 is not among it, others can be started, and all of it can be ended."""
    world.box("start", "--name", "s")
    sleeper = world.spawn("box", "exec", "s", "--", "sh", "-c", f"sleep 1000; : {world.mark}")
    until(lambda: set(marked(world.mark)) - {sleeper.pid}, "it does not start")
    stopper = world.spawn("box", "exec", "s", "--", "sh", "-c", f": {world.mark}; kill -STOP 1; kill -STOP -1; kill -STOP $$")
    until(lambda: [state_of(pid) for pid in marked(world.mark)].count("T") >= 2, "nothing is stopped")
    check(world.out("s", "echo alive") == "alive\n", "pid 1 is stopped")
    check(state_of(world.show("s")["pid"]) in "SRD", "pid 1 is stopped")
    world.box("stop", "s")
    check(sleeper.wait(LIMIT_S) > 0 and stopper.wait(LIMIT_S) > 0, "a user waits for ever")
    until(lambda: not marked(world.mark), "stopped processes are left")


@test
def user_killed(world):
    """A command ends with the px that runs it; the box and the others stay."""
    world.box("start", "--name", "u")
    user = world.spawn("box", "exec", "u", "--", "sh", "-c", f"echo up; sleep 1000; : {world.mark}")
    other = world.spawn("box", "exec", "u", "--", "sh", "-c", "echo up; sleep 1000")
    check(user.stdout.readline() == "up\n" and other.stdout.readline() == "up\n", "they do not start")
    user.kill()
    until(lambda: not marked(world.mark), "the command outlives its px")
    until(lambda: world.show("u")["commands_running"] == 1, "it still counts")
    check(other.poll() is None and world.out("u", "echo here") == "here\n", "the others went with it")


@test
def killed_with_all_it_started(world):
    """Whatever ends a command: orphans in sessions of their own, deaf to signals, die with it; what others left behind does not."""
    world.box("start", "--name", "x")
    world.out("x", f"setsid sleep 1000.1 & (setsid sh -c 'sleep 1000; : left {world.mark}' &)")
    escapes = (f"trap '' TERM HUP INT; (setsid sh -c 'trap \"\" TERM HUP INT; (setsid sh -c \"sleep 1000; : mine {world.mark}\" &); "
               f"sleep 1000; : mine {world.mark}' &); echo up; sleep 1000; : mine {world.mark}")

    def gone(how):
        until(lambda: not marked(f"mine {world.mark}"), f"{how}: {len(marked(f'mine {world.mark}'))} are left")

    world.box("exec", "x", "--timeout", "2s", "-c", escapes, status=124)
    check(not marked(f"mine {world.mark}"), "a timeout leaves something")
    user = world.spawn("box", "exec", "x", "-c", escapes)
    check(user.stdout.readline() == "up\n", "it does not start")
    user.kill()
    gone("its px was killed")
    number = json.loads(world.run("--json", "box", "exec", "x", "-d", "-c", escapes).stdout)["command"]
    until(lambda: len(marked(f"mine {world.mark}")) >= 3, "the detached one does not start")
    world.box("signal", "x", "KILL", "--command", str(number))
    gone("SIGKILL")
    check(len(marked(f"left {world.mark}")) == 1, "what another command left behind is gone")


@test
def idle_and_max_life(world):
    world.box("start", "--name", "m", "--max-life", "8s")
    world.box("start", "--name", "i", "--idle", "1s")
    user = world.spawn("box", "exec", "m", "--", "sh", "-c", "echo up; sleep 1000")
    check(user.stdout.readline() == "up\n", "it does not start")
    world.gone("i", "m")
    _, err = user.communicate(timeout=LIMIT_S)          # SIGTERM ends it, or the end of the box does
    check(user.returncode in (137, 143) and (user.returncode == 143 or "max-life" in err), f"{user.returncode} {err}")


@test
def idle_waits_for_commands(world):
    world.box("start", "--name", "w", "--idle", "6s")
    busy = world.spawn("box", "exec", "w", "-i", "--", "sh", "-c", "echo up; read x; echo end", stdin=subprocess.PIPE)
    check(busy.stdout.readline() == "up\n", "it does not start")
    time.sleep(8)                       # longer than the bound: the command must keep it
    check(world.names() == ["w"], "the box ended under a command")
    busy.stdin.write("x\n")
    busy.stdin.flush()
    out, err = busy.communicate(timeout=LIMIT_S)
    check(out == "end\n" and busy.returncode == 0, f"{busy.returncode} {out} {err}")
    world.gone("w")


# ---- several at once ------------------------------------------------------------------------------------------------


@test
def two_at_once(world):
    world.box("start", "--name", "t")
    first = world.spawn("box", "exec", "t", "-i", "--", "sh", "-c", "echo up; read x; echo got $x", stdin=subprocess.PIPE)
    check(first.stdout.readline() == "up\n", "the first does not start")
    check(world.out("t", "echo second") == "second\n", "the second has to wait for the first")
    done = world.box("exec", "t", "--timeout", "500ms", "--", "sh", "-c", f"sleep 1000 & sleep 1000; : {world.mark}", status=124)
    check("timeout" in done.stderr and not marked(world.mark), f"{done.stderr}")
    check(first.poll() is None, "a timeout of one ended the other")
    first.stdin.write("this\n")
    first.stdin.flush()
    check(first.communicate(timeout=LIMIT_S)[0] == "got this\n" and first.returncode == 0, "the first is not what it was")


@test
def twenty_boxes(world):
    wrong = []

    def life(number):
        try:
            name = f"n{number}"
            world.box("start", "--name", name, "-e", f"NUMBER={number}")
            check(world.out(name, "echo $NUMBER >/tmp/x; cat /tmp/x") == f"{number}\n", f"{name} has another's file")
        except Problem as why:
            wrong.append(str(why))

    threads = [threading.Thread(target=life, args=(i,)) for i in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check(not wrong, "; ".join(wrong))
    check(len(world.names()) == 20, f"{len(world.names())} boxes")
    world.box("stop", "--all")
    check(world.names() == [] and world.directories() == [], "some are left")


@test
def one_name_many_starters(world):
    """Ten try to start the same name: one wins, the others are told."""
    starts = [world.spawn("box", "start", "--name", "one") for _ in range(10)]
    results = [(p.communicate(timeout=LIMIT_S), p.returncode) for p in starts]
    won = [r for r in results if r[1] == 0]
    check(len(won) == 1 and all("PX041" in r[0][1] for r in results if r[1]), f"{[(r[1], r[0][1][:80]) for r in results]}")
    check(world.names() == ["one"] and world.out("one", "echo 1") == "1\n", "the winner's box does not work")


# ---- detached commands ----------------------------------------------------------------------------------------------


@test
def detached(world):
    name = world.run("exec", "-d", "--", "sh", "-c", "echo out; echo err >&2; read x; echo got $x; exit 5", status=0).stdout.strip()
    done = world.box("attach", name, status=5)  # without -i its input is /dev/null
    check(done.stdout == "out\ngot\n" and done.stderr == "err\n", f"{done.stdout!r} {done.stderr!r}")
    check(world.box("attach", name, status=5).stdout == "out\ngot\n", "a second look sees something else")
    number = world.box("exec", name, "-d", "-i", "--", "sh", "-c", "read x; echo got $x; cat; exit 6").stdout.strip()
    check(number.isdigit(), f"no number: {number}")
    check(world.box("attach", name, "-i", data="this\nand that\n", status=6).stdout == "got this\nand that\n", "input is lost")
    done = world.box("attach", name, "-i", data="x", status=125)
    check("PX040" in done.stderr and "standard input" in done.stderr, done.stderr)
    listed = world.show(name)["commands"]
    check([(c["detached"], c["running"], c["exit_code"]) for c in listed] == [(True, False, 6), (True, False, 5)], f"{listed}")
    check(json.loads(world.run("--json", "box", "attach", name, status=6).stdout)["exit_code"] == 6, "no result")


@test
def detached_fails(world):
    """A command that cannot be started leaves no box."""
    check("PX031" in world.run("exec", "-d", "--name", "d", "--", "nosuchprogram", status=127).stderr, "no PX031")
    world.gone()
    check(world.names() == [], "the box stays")
    check("PX001" in world.run("exec", "-d", "-t", "--", "true", status=125).stderr, "a terminal for nobody")
    check("PX001" in world.run("exec", "--name", "x", "--", "true", status=125).stderr, "--name without -d")


@test
def logs(world):
    world.box("start", "--name", "l")
    world.box("exec", "l", "-d", "--", "sh", "-c", "i=0; while [ $i -lt 60000 ]; do echo line $i of the log that is long enough; i=$((i+1)); done; echo last")
    world.box("attach", "l")
    size = sum(f.stat().st_size for f in (world.home / "run/boxes/l").iterdir() if f.is_file())
    check(size < 2 << 20, f"the logs take {size} bytes")
    done = world.box("logs", "l")
    lines = done.stdout.splitlines()
    check(lines[-1] == "last" and len(lines) < 60000 and "not there any more" in done.stderr, f"{len(lines)} lines, {done.stderr}")
    numbers = [int(line.split()[1]) for line in lines[1:-1]]
    check(numbers == list(range(numbers[0], 60000)), "lines are missing in between")
    world.box("exec", "l", "-d", "--", "sh", "-c", "echo O; echo E >&2; sleep 1000")
    until(lambda: world.box("logs", "l").stdout == "O\n" and world.box("logs", "l").stderr == "E\n", "no log yet")
    check(world.box("logs", "l", "--stderr").stdout == "E\n" and world.box("logs", "l", "--stdout").stdout == "O\n", "streams are mixed")
    check(world.box("logs", "l", "--command", "1").stdout.endswith("last\n"), "the first one's log is gone")
    follower = world.spawn("box", "logs", "l", "-f")
    check(follower.stdout.readline() == "O\n", "nothing to follow")
    world.box("signal", "l", "TERM", "--command", "2")
    check(follower.communicate(timeout=LIMIT_S)[0] == "" and follower.returncode == 0, "it follows for ever")


@test
def many_detached(world):
    """Old ones are forgotten with their logs; a box does not grow."""
    world.box("start", "--name", "m")
    for i in range(40):
        world.box("exec", "m", "-d", "--", "echo", str(i))
    until(lambda: world.show("m")["commands_running"] == 0, "some do not end")
    state = world.show("m")
    check(len(state["commands"]) == 32 and state["commands_run"] == 40, f"{len(state['commands'])} are remembered of {state['commands_run']}")
    check(len(list((world.home / "run/boxes/m").iterdir())) <= 2 + 64, "logs of forgotten commands are left")


@test
def one_command_too_many(world):
    """512 at once, and a clear word for the next; the box still answers questions and ends."""
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 4096:
        raise Skip("a process may have too few descriptors here for a keeper of so many")
    world.box("start", "--name", "m", "--pids", "4000")
    for _ in range(512):
        world.children.append(subprocess.Popen([world.px, "box", "exec", "m", "--", "sleep", "1000"], stdin=subprocess.DEVNULL,
                                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=world.environment))
    until(lambda: world.show("m")["commands_running"] == 512, "not all of them start")
    done = world.box("exec", "m", "--", "true", status=125)
    check("PX005" in done.stderr and "512 commands" in done.stderr and "another box" in done.stderr, done.stderr)
    done = world.box("exec", "m", "-d", "--", "true", status=125)
    check("PX005" in done.stderr and "512 commands" in done.stderr, done.stderr)
    world.children[0].kill()
    until(lambda: world.show("m")["commands_running"] == 511, "its px is killed, and it runs on")
    world.box("exec", "m", "--", "true")
    world.box("stop", "m")


@test
def one_detached_too_many(world):
    world.box("start", "--name", "m", "--pids", "1000")
    for _ in range(256):
        world.box("exec", "m", "-d", "--", "sleep", "1000")
    done = world.box("exec", "m", "-d", "--", "sleep", "1000", status=125)
    check("PX005" in done.stderr and "256 detached commands" in done.stderr and "px box show m" in done.stderr, done.stderr)
    world.box("signal", "m", "KILL", "--command", "1")
    until(lambda: world.show("m")["commands_running"] == 255, "it does not end")
    world.box("exec", "m", "-d", "--", "sleep", "1000")


# ---- what was refused -----------------------------------------------------------------------------------------------


def denials(result):
    return {row["target"]: row["count"] for row in result["denials"]}


@test
def denials_are_each_commands_own(world):
    """Several at once, one of them without end; a second box is not held up by it, nor is the first."""
    world.box("start", "--name", "a")
    world.box("start", "--name", "b", "--seccomp", "strict")
    flood = world.spawn("--json", "box", "exec", "a", "-c", "echo up >&2; while [ ! -e /tmp/end ]; do unshare -U true; done 2>/dev/null; true")
    until(lambda: world.show("a")["commands_running"] == 1, "the flood does not start")
    for name in ("a", "b", "a", "b"):
        result = json.loads(world.run("--json", "box", "exec", name, "-c", "unshare -U true 2>/dev/null; chroot / true 2>/dev/null; echo done").stdout)
        check(result["stdout"] == "done\n" and denials(result) == {"unshare": 1, "chroot": 1}, f"{name}: {result['denials']}")
    world.box("exec", "a", "--", "touch", "/tmp/end")
    result = json.loads(flood.communicate(timeout=LIMIT_S)[0])
    check(list(denials(result)) == ["unshare"] and result["status"] == "ok", f"the flood: {result['status']} {result['denials']}")
    check(world.show("a")["denials"] == [], "the box has what its commands have")


@test
def denials_without_a_user(world):
    """What a command has left behind is answered, with the same errno, and is the box's; also after a kill -9 of the px of another one."""
    world.box("start", "--name", "o")
    world.out("o", "setsid -f sh -c ': >/tmp/there; until [ -e /tmp/go ]; do sleep 0.05; done; unshare -U true 2>/tmp/said; "
                   "echo >/tmp/done'; until [ -e /tmp/there ]; do sleep 0.05; done")
    user = world.spawn("box", "exec", "o", "-c", "echo up; while :; do unshare -U true; done 2>/dev/null")
    check(user.stdout.readline() == "up\n", "it does not start")
    user.kill()
    until(lambda: world.show("o")["commands_running"] == 0, "it does not end with its px")
    said = world.out("o", ": >/tmp/go; until [ -e /tmp/done ]; do sleep 0.05; done; cat /tmp/said")
    check("not permitted" in said, f"it meets: {said}")
    check("unshare" in denials(world.show("o")), f"the box: {world.show('o')['denials']}")


# ---- files ----------------------------------------------------------------------------------------------------------


@test
def copies(world):
    """A tree with odd names, empty files and one larger than any buffer goes in and comes out as it was."""
    tree = world.top / "tree"
    (tree / "a b" / ("n" * 200) / ("m" * 200)).mkdir(parents=True)
    (tree / "-dash").write_text("dash")
    (tree / "a b" / "new\nline").write_text("x")
    (tree / "empty").write_text("")
    (tree / "a b" / ("n" * 200) / ("m" * 200) / "deep").write_bytes(os.urandom(3_000_001))
    (tree / "run").write_text("#!/bin/sh\n")
    (tree / "run").chmod(0o755)
    world.box("start", "--name", "c")
    world.box("copy", str(tree), "c:/tmp/there")
    world.box("copy", "c:/tmp/there", str(world.top / "back"))
    done = subprocess.run(["diff", "-r", str(tree), str(world.top / "back")], capture_output=True, text=True, check=False)
    check(done.returncode == 0, f"it is not what it was: {done.stdout}{done.stderr}")
    check((world.top / "back/run").stat().st_mode & 0o777 == 0o755, "a mode is lost")
    world.out("c", "mkdir /tmp/h; truncate -s 200m /tmp/h/holes; printf end >>/tmp/h/holes; ln /tmp/h/holes /tmp/h/second")
    world.box("copy", "c:/tmp/h", str(world.top / "h"))
    for name in ("holes", "second"):
        st = (world.top / "h" / name).stat()
        check(st.st_size == (200 << 20) + 3 and st.st_blocks < 4096, f"{name}: {st.st_size} bytes in {st.st_blocks} blocks")
        with open(world.top / "h" / name, "rb") as file:
            file.seek(200 << 20)
            check(file.read() == b"end", f"{name}: its end is lost")
    (world.top / "into").mkdir()
    world.box("start", "--name", "d")
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):        # half a copy is taken back
        world.out("d", "rm -rf /tmp/*; mkdir /tmp/t; head -c 30000000 /dev/zero >/tmp/t/a; mkfifo /tmp/fifo")
        process = world.spawn("box", "copy", "d:/tmp", str(world.top / "into"))
        until(lambda: process.poll() is not None or os.listdir(world.top / "into"), "nothing comes")
        process.send_signal(number)
        process.communicate(timeout=LIMIT_S)
        check(process.returncode == 0 or os.listdir(world.top / "into") == [], f"left {os.listdir(world.top / 'into')}")
        shutil.rmtree(world.top / "into")
        (world.top / "into").mkdir()
    os.mkfifo(tree / "pipe")            # is left out, and nobody waits for it
    world.box("copy", str(tree), "c:/tmp/again")


def archive(*members):
    """tar of (name, type, fields, data)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, kind, fields, data in members:
            info = tarfile.TarInfo(name)
            info.type, info.size, info.mode = kind, len(data), 0o6777
            for key, value in fields.items():
                setattr(info, key, value)
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def no_end():
    """A header of a kind that nobody knows, which announces 8 GiB."""
    header = bytearray(archive(("t/z", tarfile.REGTYPE, {}, b""))[:512])
    header[156:157] = b"Z"
    header[124:136] = b"77777777777\0"
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    return bytes(header)


@test
def hostile_archives(world):
    """The box's own tar is whatever the box wants: nothing it sends leaves the target, and what fails leaves nothing."""
    top = ("t", tarfile.DIRTYPE, {}, b"")
    link = {"linkname": "../../../../etc"}
    endless = bytearray(archive(("t", tarfile.REGTYPE, {}, b"x" * 4096)))
    endless[124:136] = b"77777777777\0"           # 8 GiB announced; the sum is made right again
    endless[148:156] = b" " * 8
    endless[148:156] = b"%06o\0 " % sum(endless[:512])
    refused = {
        "parent": archive(top, ("t/../../escape", tarfile.REGTYPE, {}, b"x")),
        "outside": archive(top, ("../escape", tarfile.REGTYPE, {}, b"x")),
        "absolute": archive(top, (str(world.top / "escape"), tarfile.REGTYPE, {}, b"x")),
        "unasked": archive(top, ("other/escape", tarfile.REGTYPE, {}, b"x")),
        "sibling": archive(top, ("tt", tarfile.REGTYPE, {}, b"x")),
        "hard link out": archive(top, ("t/h", tarfile.LNKTYPE, {"linkname": "../../etc/passwd"}, b"")),
        "hard link absolute": archive(top, ("t/h", tarfile.LNKTYPE, {"linkname": "/etc/passwd"}, b"")),
        "hard link to another": archive(top, ("t/h", tarfile.LNKTYPE, {"linkname": "escape"}, b"")),
        "twice": archive(top, ("t/f", tarfile.REGTYPE, {}, b"1"), ("t/f", tarfile.REGTYPE, {}, b"2")),
        "file as directory": archive(top, ("t/f", tarfile.REGTYPE, {}, b"1"), ("t/f/g", tarfile.REGTYPE, {}, b"2")),
        "nothing": b"",
        "noise": secrets.token_bytes(5000),
        "cut off": archive(top, ("t/f", tarfile.REGTYPE, {}, b"x" * 5000))[:3000],
        "endless": bytes(endless) + b"x" * 2_000_000,
    }
    harmless = archive(top, ("t/l", tarfile.SYMTYPE, link, b""), ("t/l/evil", tarfile.REGTYPE, {}, b"x"), ("t/dev", tarfile.CHRTYPE, {}, b""),
                       ("t/pipe", tarfile.FIFOTYPE, {}, b""), ("t/suid", tarfile.REGTYPE, {}, b"x"))
    world.box("start", "--name", "h", "-e", "PATH=/tmp/bin:/usr/bin:/bin")
    world.out("h", "mkdir /tmp/bin /tmp/t; printf '#!/bin/sh\ncat /tmp/evil\n' >/tmp/bin/tar; chmod 755 /tmp/bin/tar")
    (world.top / "place").mkdir()
    before = sorted(os.listdir(world.top))
    for name, data in [*refused.items(), ("harmless", harmless)]:
        subprocess.run([world.px, "box", "exec", "h", "-i", "-c", "cat >/tmp/evil"], input=data, env=world.environment, cwd=world.top, timeout=LIMIT_S,
                       check=True)
        done = world.box("copy", "--max-size", "1m", "h:/tmp/t", str(world.top / "place"), status=0 if name == "harmless" else 1)
        check(sorted(os.listdir(world.top)) == before, f"{name}: {os.listdir(world.top)}")
        check(name == "harmless" or os.listdir(world.top / "place") == [], f"{name} left {os.listdir(world.top / 'place')}: {done.stderr}")
    floods = {
        "left out without end": ("cat /tmp/evil; cat /dev/zero", archive(top, ("t/z", b"Z", {"size": 0}, b""))[:512] + no_end()),
        "after the end": ("cat /tmp/evil; cat /dev/zero", archive(top)),
        "words": ("yes >&2", b""),
    }
    for name, (script, data) in floods.items():
        subprocess.run([world.px, "box", "exec", "h", "-i", "-c", f"cat >/tmp/evil; printf '#!/bin/sh\\n{script}\\n' >/tmp/bin/tar"], input=data,
                       env=world.environment, cwd=world.top, timeout=LIMIT_S, check=True)
        if name == "words":             # would go on for ever: it is for whoever waits to end it
            process = world.spawn("box", "copy", "h:/tmp/t", str(world.top / "flood"))
            until(lambda: world.show("h")["commands_running"] == 1, "it does not start")
            process.terminate()
            check("PX007" in process.communicate(timeout=LIMIT_S)[1] and process.returncode == 1, "it does not end")
        else:
            world.box("copy", "--max-size", "1m", "h:/tmp/t", str(world.top / "flood"), status=1)
        check(not (world.top / "flood").exists(), f"{name} left something")
    world.out("h", "printf '#!/bin/bash\\nyes\\n' >/tmp/bin/new; chmod 755 /tmp/bin/new; mv /tmp/bin/new /tmp/bin/sh")
    check("PX007" in world.box("copy", "h:/tmp/t", str(world.top / "flood"), status=1).stderr, "a flooding sh is believed")
    got = world.top / "place" / "t"
    check(sorted(os.listdir(got)) == ["l", "suid"] and (got / "l/evil").read_text() == "x", f"{os.listdir(got)}")
    check(not (got / "l").is_symlink() and (got / "suid").stat().st_mode & 0o7000 == 0, "a link or a set-id bit came through")


@test
def memory(world):
    """One command that takes it all is ended and told so; the box and the others in it go on."""
    if os.geteuid() != 0:
        raise Skip("needs a cgroup, which an ordinary user has not")
    world.box("start", "--name", "m", "-m", "64m")
    other = world.spawn("box", "exec", "m", "-i", "--", "sh", "-c", "echo up; read x; echo $x", stdin=subprocess.PIPE)
    check(other.stdout.readline() == "up\n", "it does not start")
    done = world.box("exec", "m", "--", "sh", "-c", "x=$(head -c 100000000 /dev/zero | tr '\\0' x); echo done", status=None)
    check(done.returncode == 137 and "memory limit" in done.stderr, f"{done.returncode} {done.stdout} {done.stderr}")
    other.stdin.write("here\n")
    other.stdin.flush()
    check(other.communicate(timeout=LIMIT_S)[0] == "here\n" and other.returncode == 0, "another command went with it")
    check(world.out("m", "echo still") == "still\n", "the box went with it")


@test
def memory_of_one_process(world):
    """The limit ends a process of a command, not its leader: told where the command was alone, and never blamed on a bystander."""
    if os.geteuid() != 0:
        raise Skip("needs a cgroup, which an ordinary user has not")
    world.box("start", "--name", "m", "-m", "64m", "--seccomp", "strict")
    greedy = "head -c 200m /dev/zero | tail -n 1 >/dev/null"
    result = json.loads(world.run("--json", "box", "exec", "m", "-c", f"{greedy}; exit 9", status=None).stdout)
    check(result["status"] == "memory" and result["oom_killed"] and result["exit_code"] == 9, f"{result['status']} {result['exit_code']}")
    check([row["limit"] for row in result["limits_hit"]] == ["memory"], f"{result['limits_hit']}")
    result = json.loads(world.run("--json", "box", "exec", "m", "-c", f"{greedy}; true").stdout)
    check(result["status"] == "ok" and result["oom_killed"], f"a command that copes: {result['status']} {result['oom_killed']}")
    other = world.spawn("--json", "box", "exec", "m", "-i", "--", "sh", "-c", "read x; exit 3", stdin=subprocess.PIPE)
    until(lambda: world.show("m")["commands_running"] == 1, "it does not start")
    result = json.loads(world.run("--json", "box", "exec", "m", "--", "sh", "-c", f"exec {greedy.split(' | ')[1].split(' >')[0]} </dev/zero",
                                  status=None).stdout)
    check(result["status"] == "memory" and result["signal"] == 9 and result["limits_hit"], f"its own: {result['status']} {result['limits_hit']}")
    result = json.loads(other.communicate("go\n", timeout=LIMIT_S)[0])
    check(result["status"] == "nonzero" and not result["oom_killed"] and not result["limits_hit"], f"a bystander: {result['status']}")
    result = json.loads(world.run("--json", "box", "exec", "m", "--", "false", status=None).stdout)
    check(result["status"] == "nonzero" and not result["oom_killed"], f"a later one: {result['status']}")


# ---- who may --------------------------------------------------------------------------------------------------------


@test
def nothing_of_the_starter(world):
    inherited = os.open("/etc/hostname", os.O_RDONLY)
    os.set_inheritable(inherited, True)
    world.box("start", "--name", "e", "-e", "GIVEN=openly-given", "-e", "CALLER_SECRET", pass_fds=(inherited,))
    os.close(inherited)
    keeper = world.show("e")["keeper_pid"]
    check(world.out("e", "echo $GIVEN $CALLER_SECRET") == "openly-given hunter2\n", "what was passed on is not there")
    if os.geteuid() == 0:               # nobody else can look into it, which is right
        check(b"hunter2" not in Path(f"/proc/{keeper}/environ").read_bytes(), "the environment is kept")
        links = [os.readlink(f"/proc/{keeper}/fd/{fd}") for fd in os.listdir(f"/proc/{keeper}/fd")]
        check(not any("hostname" in link or "pipe:" in link or "/dev/pts" in link for link in links), f"descriptors: {links}")
        check(os.readlink(f"/proc/{keeper}/cwd") == "/", "the directory is kept")
    words = Path(f"/proc/{keeper}/cmdline").read_bytes()
    check(b"openly-given" not in words and b"px-box e" in words, f"its command line: {words}")
    check(os.getsid(keeper) == keeper, "it is in the starter's session")
    check(b"hunter2" not in world.run("--json", "box", "show", "e").stdout.encode(), "values of variables are shown")


@test
def permissions(world):
    world.box("start", "--name", "p")
    for path, mode in ((world.home, 0o700), (world.home / "run", 0o700), (world.home / "run/boxes/p", 0o700), (world.home / "run/boxes/p/socket", 0o600),
                       (world.home / "run/boxes/p/lock", 0o600)):
        check(path.lstat().st_mode & 0o777 == mode, f"{path} has mode {path.lstat().st_mode:o}")
    world.box("stop", "p")
    for path in (world.home, world.home / "run", world.home / "run/boxes"):
        path.chmod(0o777)
        check("chmod 700" in world.box("start", "--name", "p", status=1).stderr, f"{path} of everybody is accepted")
        check("PX007" in world.box("list", status=1).stderr, f"{path} of everybody is read")
        path.chmod(0o700)
    shutil.rmtree(world.home / "run")
    (world.top / "elsewhere").mkdir(mode=0o700)
    (world.home / "run").symlink_to(world.top / "elsewhere")
    check("PX007" in world.box("start", "--name", "p", status=1).stderr, "a link is followed")
    (world.home / "run").unlink()
    check(world.directories() == [], "something was made")


@test
def long_px_home(world):
    deep = world.top / ("d" * 120) / ("e" * 120)
    deep.mkdir(parents=True, mode=0o700)
    world.environment["PX_HOME"] = str(deep)
    world.home = deep
    world.box("start", "--name", "deep")
    check(world.out("deep", "echo down") == "down\n", "no way to it")
    world.box("stop", "deep")
    for bad in ("relative", "/nosuch/dir/px"):
        world.environment["PX_HOME"] = bad
        check("PX007" in world.box("start", status=1).stderr, f"PX_HOME={bad} is accepted")
    world.environment["PX_HOME"] = str(deep)


@test
def terminal(world):
    """-t: a terminal of its own in a box that stays; its size, its keys, and the caller's restored."""
    spec = importlib.util.spec_from_file_location("px_pty", TOP / "cli" / "pty.py")
    if not spec or not (TOP / "cli" / "pty.py").exists():
        raise Skip("there is no pty.py here")
    module = importlib.util.module_from_spec(spec)
    os.environ["PX"] = world.px
    spec.loader.exec_module(module)
    world.box("start", "--name", "t", "-e", "PS1=in-box> ")
    environment = dict(os.environ)
    os.environ["PX_HOME"] = str(world.home)
    shell = module.Terminal("box", "exec", "t", "-t", "--", "sh", rows=31, cols=77)
    try:
        shell.expect("in-box> ")
        shell.send("stty size\n")
        shell.expect("31 77\r\n")
        shell.resize(40, 100)
        shell.send("stty size; tty\n")
        shell.expect("40 100\r\n/dev/pts/0\r\n")
        shell.send("sleep 1000\n")
        shell.expect("sleep 1000\r\n")
        until(lambda: any("sleep 1000" in p["command"] for p in world.show("t")["processes"]), "it does not sleep")
        shell.send("\x03")
        shell.expect("in-box> ")
        check(world.out("t", "echo beside") == "beside\n", "nobody else gets in")
        shell.send("exit 9\n")
        shell.ends_with(9)
        shell.check_restored()
    except module.Problem as why:
        raise Problem(str(why)) from None
    finally:
        shell.close()
        os.environ.clear()
        os.environ.update(environment)


# ---- running --------------------------------------------------------------------------------------------------------


def attempt(function, px, top):
    """(verdict, why), with nothing left behind."""
    place = tempfile.mkdtemp(prefix=function.__name__[:12] + ".", dir=top)
    world = World(px, place)
    verdict, why = verdict_of(function, world)
    try:
        world.close()
    except Exception as error:
        verdict, why = "not ok", f"{why}; cleaning up: {error}"
    left = leaks.processes_left()
    if left and verdict != "not ok":
        verdict, why = "not ok", f"left {left}"
    subprocess.run(["rm", "-rf", "--", place], check=False)
    return verdict, why


def main():
    options = parser("px").parse_args()
    if options.published:
        leaks.become_subreaper()
        return tell((f.__name__, *attempt(f, str(options.px / "px"), str(options.px / "work"))) for f in chosen(TESTS, options.only))
    px = options.px.resolve()
    scripts = [TOP / name for name in ("box/run.py", "leaks.py", "race.py", "cli/pty.py")]
    top = publish("boxes", [*(px.with_name(name) for name in ("px", "px-main", "px-layer")), tool(px, "swapper")], scripts, options.uid)
    return start_again(top, "box/run.py", options)


if __name__ == "__main__":
    sys.exit(main())
