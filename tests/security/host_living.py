"""The same attacks in boxes that stay, and those that only such a box invites: pid 1 that listens, neighbours, the keeper."""

import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from pathlib import Path

from race import SECRET, Race, outside_of, words_of
from suite import LIMIT, Failed, Skipped, check, children, fields, marked, shorten, test

ROWS_EACH = 12                  # pid numbers stay small, as some rows want them


class Living:
    """A box with a name in a PX_HOME of its own; gone when the block is left."""

    def __init__(self, suite, *options):
        self.suite = suite
        self.around = suite.directory("around")
        self.home = self.around / "px-home"
        self.home.mkdir(mode=0o700)
        self.options = options

    def px(self, *words, stdin=subprocess.DEVNULL, check_status=None, **more):
        done = subprocess.run([self.suite.px, *words], stdin=stdin, capture_output=True, timeout=LIMIT, check=False, **self.where(), **more)
        if check_status is not None:
            check(done.returncode == check_status, f"px {words[:3]}: exit status {done.returncode}: {shorten(done.stdout + done.stderr)}")
        return done

    def exec(self, *payload, options=()):
        return self.px("box", "exec", "l", *options, "--", *payload)

    def words(self, *payload):
        return [self.suite.px, "box", "exec", "l", "--", *payload]

    def where(self):
        return {"cwd": self.suite.top, "env": {**self.suite.environment(), "PX_HOME": str(self.home)}}

    def start(self, *payload):
        return subprocess.Popen(self.words(*payload), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **self.where())

    def show(self):
        return json.loads(self.px("--json", "box", "show", "l", check_status=0).stdout)

    def __enter__(self):
        values = [word for name, value in self.suite.values.items() for word in ("-e", f"{name}={value}")]
        self.px("box", "start", "--name", "l", "-v", f"{self.suite.bin}:/attack:ro", *values, *self.options, check_status=0)
        return self

    def __exit__(self, *_):
        self.px("box", "stop", "--all")


def plain_rows(suite):
    return [row for row in suite.rows() if row.how == "PLAIN" and row.options == "" and "F" in row.tiers]


@test
def C2_living_rows(suite):
    """Every attack and twin that needs no options, as a command of a box that stays."""
    rows, wrong = plain_rows(suite), []
    for first in range(0, len(rows), ROWS_EACH):
        with Living(suite) as box:
            for row in rows[first:first + ROWS_EACH]:
                done = box.exec("/attack/px-attack", row.name)
                try:
                    suite.stopped(done, b"stopped" if row.kind == "attack" else b"worked")
                except Skipped:
                    continue
                except Failed as why:
                    wrong.append(f"{row.name}: {why}")
    check(not wrong, "; ".join(wrong))


@test
def A19_copy_swap(suite):
    """px copies between a box and a directory that the box can write, all of it or until it gives up; names in there become links."""
    workspace, outside = suite.directory("ws"), outside_of(suite.directory("victim"))
    for name in ("away", "to", "from", "from/d0", "from/d1"):
        (workspace / name).mkdir()
    for name in ("from/d0/file", "from/d1/file"):
        (workspace / name).write_text("of the workspace")
    to = os.open(workspace / "to", os.O_RDONLY | os.O_DIRECTORY)
    with Living(suite, "-v", f"{workspace}:/ws", "--workdir", "/ws") as box:
        made = box.exec("sh", "-c", "cd ~; for d in big/d0 big/d1 big/d2 big/d3 small/d0; do mkdir -p $d; echo 1 >$d/file; done;"
                                    "for d in big/*; do for i in $(seq 80); do head -c 10000 /dev/zero >$d/f$i; done; done")
        check(made.returncode == 0, shorten(made.stderr))
        words = words_of("/attack/swapper", "/ws/away", outside, "to", "to/.*.px-*", "to/.*.px-*/*", "to/.*.px-*/*/d*", "from", "from/d*",
                         "from/d*/file")
        with Race(box.words(*words), outside, **box.where()) as race:
            for _ in race.rounds():
                race.look(workspace / "to")
                done = box.px("box", "copy", "--max-size", "1M", "l:/home/sandbox/big", str(workspace / "to"))
                check(done.returncode != 0 and "big" not in os.listdir(to), "more was copied than allowed")
                done = box.px("box", "copy", "l:/home/sandbox/small", str(workspace / "to"))
                race.seen["worked"] += done.returncode == 0
                box.px("box", "copy", str(workspace / "from"), f"l:/home/sandbox/in{race.seen['round']}")
                for name in os.listdir(to):     # what px could not take away; no link is followed
                    shutil.rmtree(name, ignore_errors=True, dir_fd=to)
        found = box.exec("grep", "-r", SECRET, "/home/sandbox")
        check(found.returncode == 1, f"px copied what a link led to: {shorten(found.stdout + found.stderr)}")
        found = box.exec("grep", "-rq", "of the workspace", "/home/sandbox")
        check(found.returncode == 0, f"px copied nothing: {shorten(found.stdout + found.stderr)}")
    os.close(to)


@test
def C2_living_pid_1(suite):
    """pid 1 waits for requests; nothing in the box can signal, see, trace or name it."""
    script = ("for s in 1 2 9 15 19 17 34; do kill -$s 1 2>/dev/null; done\n"
              "cat /proc/1/cmdline /proc/1/environ /proc/1/maps /proc/1/status 2>/dev/null\n"
              "ls /proc/1/fd /proc/1/ns /proc/1/root/ 2>/dev/null; ls -d /proc/1 2>/dev/null; echo end")
    with Living(suite) as box:
        done = box.exec("/bin/sh", "-c", script)
        check(done.returncode == 0 and done.stdout.strip() == b"end", f"pid 1 shows: {shorten(done.stdout + done.stderr)}")
        check(box.exec("/bin/echo", "alive").stdout == b"alive\n", "pid 1 does not serve any more")


@test
def E4_living_privileges(suite):
    """No command inherits what pid 1 needs to start it: no privilege, no group, no descriptor, and under the same filter."""
    with Living(suite) as box:
        text = box.exec("/bin/sh", "-c", "cat /proc/self/status; ls /proc/self/fd").stdout.decode()
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            check(re.search(rf"^{name}:\s+0+$", text, re.M), f"{name} is not empty")
        check(re.search(r"^NoNewPrivs:\s+1$", text, re.M) and re.search(r"^Seccomp:\s+2$", text, re.M), "no filter")
        check(text.rstrip().endswith("0\n1\n2\n3"), f"descriptors: {shorten(text[-60:])}")


@test
def C3_living_neighbours(suite):
    """Two commands of one box are one user, but neither can reach into pid 1's dealings with the other: no descriptor, no memory
    of the moment before its exec."""
    script = ("while :; do for p in /proc/[0-9]*; do ls -l $p/fd 2>/dev/null; cat $p/maps 2>/dev/null; done | "
              "grep -aE 'px-init|px-text|px-request|px-filters|eventpoll|signalfd' && echo FOUND; done")
    with Living(suite) as box:
        spy = box.start("/bin/sh", "-c", script)
        for _ in range(40):
            check(box.exec("/bin/true").returncode == 0, "a command fails beside a spy")
        spy.terminate()
        out, _ = spy.communicate(timeout=LIMIT)
        check(b"FOUND" not in out, f"a spy saw: {shorten(out)}")


@test
def H4_living_newcomer(suite):
    """A command that stops and kills everything it can, all the time, holds up its own box at most; stopping it always works."""
    mark = suite.mark()
    with Living(suite) as box:
        bully = box.start("/bin/sh", "-c", f": {mark}; while :; do kill -STOP -1; kill -KILL -1; done 2>/dev/null")
        deadline = time.monotonic() + LIMIT
        while not marked(mark) and time.monotonic() < deadline:
            time.sleep(0.02)
        done = box.px("box", "stop", "l")
        check(done.returncode == 0, f"it cannot be stopped: {shorten(done.stderr)}")
        bully.communicate(timeout=LIMIT)
        check(not marked(mark), "the bully is left")


def connect_script(path):
    return ("import socket,sys\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\n"
            f"s.settimeout(20)\ntry:\n s.connect({str(path)!r})\nexcept OSError as e:\n print('refused',e.errno);sys.exit()\n"
            "print('connected')\n"
            "try:\n s.send(b'x'*64)\n print('answer',len(s.recv(65536)))\nexcept OSError as e:\n print('error',e.errno)\n")


@test
def F8_living_keeper(suite):
    """The owner's own directory bound into a box brings the keepers' sockets with it: they answer nobody who lives in a box."""
    if not os.path.exists("/usr/bin/python3"):
        raise Skipped("no python3 for the box")
    box = Living(suite)
    box.options = ("-v", f"{box.around}:/top")
    with box:
        path = Path("/top/px-home/run/boxes/l/socket")
        done = box.exec("/usr/bin/python3", "-c", connect_script(path))
        check(done.returncode == 0 and (b"refused" in done.stdout or b"answer 0" in done.stdout or b"error" in done.stdout),
              f"the keeper answers: {shorten(done.stdout + done.stderr)}")
        check(box.exec("/bin/echo", "alive").stdout == b"alive\n", "the keeper does not serve any more")
        # And not a whole message either: the twin outside gets an answer to the same question.
        inside = box.exec("/usr/bin/python3", "-c", question_script(path))
        check(b"answered" not in inside.stdout, f"the keeper answers a box: {shorten(inside.stdout)}")
        outside = subprocess.run(["/usr/bin/python3", "-c", question_script(box.home / "run/boxes/l/socket")], capture_output=True,
                                 timeout=LIMIT, check=False)
        check(b"answered" in outside.stdout, f"the twin outside gets no answer: {shorten(outside.stdout + outside.stderr)}")


def question_script(path):
    """INFO, as keep.h has it: version, kind, command, number, and room for an error of code, errno and four texts."""
    return ("import socket,struct\ns=socket.socket(socket.AF_UNIX,socket.SOCK_SEQPACKET)\ns.settimeout(20)\n"
            "size=16+4+4+512+512+768+512\n"
            f"try:\n s.connect({str(path)!r})\n s.send(struct.pack('IIIi',1,3,0,0).ljust(size,b'\\0'))\n"
            " print('answered' if len(s.recv(65536))==size else 'nothing')\nexcept OSError as e:\n print('error',e.errno)\n")


@test
def H2_living_keeper_gone(suite):
    """kill -9 of the keeper takes everything in the box along, also what hides in sessions of its own or is stopped."""
    mark = suite.mark()
    box = Living(suite)
    with box:
        box.px("box", "exec", "l", "-d", "--", "/bin/sh", "-c",
               f"setsid sh -c 'sleep 1000; : {mark}' & setsid sh -c 'kill -STOP $$; : {mark}' & sleep 1000; : {mark}", check_status=0)
        user = box.start("/bin/sh", "-c", f"echo inside; sleep 1000; : {mark}")
        check(user.stdout.readline() == b"inside\n", "the command of a user of the box")     # a shell on its way has the mark of another twice
        deadline = time.monotonic() + LIMIT
        while len(marked(mark)) < 5 and time.monotonic() < deadline:
            time.sleep(0.02)
        state = box.show()
        os.kill(state["keeper_pid"], signal.SIGKILL)
        _, err = user.communicate(timeout=LIMIT)
        check(user.returncode == 137, f"a user of the box ends with {user.returncode}: {shorten(err)}")
        while marked(mark) and time.monotonic() < deadline:
            time.sleep(0.02)
        check(not marked(mark), "processes outlive the keeper")
        check(b"PX041" in box.exec("/bin/true").stderr, "the box is still spoken of")
        check(os.listdir(box.home / "run/boxes") == [], "its directory is left")


@test
def I7_living_flood(suite):
    """A box whose commands flood, forget their readers and close nothing: the others in it keep their answers."""
    with Living(suite, "--pids", "200") as box:
        flood = [box.start("/bin/sh", "-c", "yes 2>/dev/null") for _ in range(3)]
        fork = box.start("/bin/sh", "-c", "while :; do sleep 100 & done 2>/dev/null")
        try:
            deadline, good = time.monotonic() + LIMIT, 0
            while good < 5 and time.monotonic() < deadline:      # the process limit may refuse one now and then
                done = box.exec("/bin/echo", "alive")
                good += done.stdout == b"alive\n"
                check(done.returncode in (0, 125, 126), f"exit status {done.returncode}: {shorten(done.stderr)}")
                if done.returncode:
                    fork.terminate()
            check(good == 5, "no command gets through")
            check(box.px("box", "stop", "l").returncode == 0, "it cannot be stopped")
        finally:
            for process in [*flood, fork]:
                process.kill()
                process.communicate()


@test
def C3_living_other_user(suite):
    """Nobody but its owner: not even the name of a box can be learnt, and root's boxes are root's."""
    if not suite.root:
        raise Skipped("needs root to be somebody else")
    with Living(suite) as box:
        other = ["setpriv", "--reuid=1201", "--regid=1201", "--clear-groups", "--"]
        for words in (["box", "list"], ["box", "exec", "l", "--", "true"], ["box", "stop", "l"], ["box", "start", "--name", "x"]):
            done = subprocess.run([*other, suite.px, *words], capture_output=True, timeout=LIMIT, check=False,
                                  env={"PX_HOME": str(box.home), "PATH": os.environ["PATH"]})
            check(done.returncode != 0 and b"PX007" in done.stderr, f"px {words}: {done.returncode} {shorten(done.stderr + done.stdout)}")
        check(box.exec("/bin/echo", "alive").stdout == b"alive\n", "the box is gone")


@test
def H2_living_pid_1_killed(suite):
    """kill -9 of pid 1 from outside: bounded, told, and nothing is left."""
    with Living(suite) as box:
        user = box.start("/bin/sleep", "1000")
        deadline = time.monotonic() + LIMIT
        while box.show()["commands_running"] < 1 and time.monotonic() < deadline:
            time.sleep(0.02)
        state = box.show()
        check("px-init" in Path(f"/proc/{state['pid']}/cmdline").read_text() and fields(state["pid"])["NSpid"][-1] == "1", "not pid 1")
        keeper_children = children(state["keeper_pid"])
        check(keeper_children == [state["pid"]], f"the keeper has other children: {keeper_children}")
        os.kill(state["pid"], signal.SIGKILL)
        _, err = user.communicate(timeout=LIMIT)
        check(user.returncode == 137 and b"pid 1" in err, f"exit status {user.returncode}: {shorten(err)}")
        while os.listdir(box.home / "run/boxes") and time.monotonic() < deadline:
            time.sleep(0.02)
        check(os.listdir(box.home / "run/boxes") == [], "its directory is left")


MANY = 20000


@test
def I12_living_denials(suite):
    """Refused calls without end and of all kinds: counted exactly, in one bounded list, for the command that made them; the others
    in its box and the boxes beside it go on."""
    with Living(suite, "-e", f"A_COUNT={MANY}") as box, Living(suite) as beside:
        def result(*payload, where=box):
            done = where.px("--json", "box", "exec", "l", "--", *payload, check_status=0)
            return json.loads(done.stdout)
        flood = subprocess.Popen([suite.px, "--json", "box", "exec", "l", "--", "/attack/px-attack", "I12_denials"], stdin=subprocess.DEVNULL,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=suite.top,
                                 env={**suite.environment(), "PX_HOME": str(box.home)})
        try:
            for where in (box, beside, box, beside):
                check(result("/bin/echo", "alive", where=where)["denials"] == [], "a neighbour's calls are counted here")
            out, _ = flood.communicate(timeout=LIMIT)
        finally:
            flood.kill()
        found = [(row["target"], row["count"]) for row in json.loads(out)["denials"]]
        check(found == [("unshare", MANY)], f"{found}")
        kinds = result("/attack/px-attack", "I12_kinds")
        check(10 < len(kinds["denials"]) <= 24 and all(row["count"] > 0 for row in kinds["denials"]), f"{len(kinds['denials'])} denials")
        check(box.show()["denials"] == [], "the box has what its commands have")


@test
def H13_living_forged(suite):
    """A command finds no socket of pid 1's, and what it writes on everything it has is output: no answer, no report, no denial."""
    if not os.path.exists("/usr/bin/python3"):
        raise Skipped("no python3 for the box")
    script = ("import os,socket,stat,struct\n"
              "report=struct.pack('iI5QII',0,0,0,0,0,0,0,0,1)+struct.pack('iIQ',165,0,7)*24\n"
              "started=struct.pack('iIIi',0,7,1,2)\n"
              "found=[]\n"
              "for fd in range(1024):\n"
              " try: kind=os.fstat(fd).st_mode\n"
              " except OSError: continue\n"
              " if stat.S_ISSOCK(kind): found.append(fd)\n"
              " for text in (started,report,b'{\"denials\":[{\"target\":\"mount\"}]}'):\n"
              "  try: os.write(fd,text)\n"
              "  except OSError: pass\n"
              "os.write(2,b'sockets %d' % len(found))\n"
              "os._exit(3)\n")
    with Living(suite) as box:
        done = box.px("--json", "box", "exec", "l", "--", "/usr/bin/python3", "-c", script, check_status=3)
        result = json.loads(done.stdout)
        check(result["exit_code"] == 3 and result["denials"] == [] and result["status"] == "nonzero", f"{result['status']} {result['denials']}")
        check("sockets 0" in result["stderr"], f"it holds {result['stderr'][-40:]}")
        check(box.exec("/bin/echo", "alive").stdout == b"alive\n", "the box does not serve any more")


def crowd(box, count, work):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@test
def I1_living_crowd(suite):
    """Many users of one box at once: each gets its own output and its own status, nobody another's."""
    wrong = []
    with Living(suite) as box:
        def work(number):
            done = box.exec("/bin/sh", "-c", f"echo {number}; exit {number}")
            if done.stdout != f"{number}\n".encode() or done.returncode != number:
                wrong.append(f"{number}: {done.returncode} {shorten(done.stdout + done.stderr)}")
        crowd(box, 24, work)
    check(not wrong, "; ".join(wrong))
