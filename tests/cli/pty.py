#!/usr/bin/python3
"""pty.py [NAME...] - px on a terminal: programs that need one, window sizes, Ctrl-C, questions, and the terminal restored after all of it.

Each test has a pseudo terminal of its own on the caller's side. PX in the environment is the program.
Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import ctypes
import errno
import fcntl
import os
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time

PX = os.environ.get("PX", "px")
DEADLINE_S = 20


class Problem(Exception):
    """The test failed; the text says how."""


class Skip(Exception):
    """The test cannot be run here; the text says why."""


# ---- a terminal with px on it --------------------------------------------------------------------------------------


class Terminal:
    """The caller's side: we hold the master, px has the other end as its controlling terminal."""

    def __init__(self, *words, rows=24, cols=80, command=None):
        self.seen = b""
        self.master, self.slave = os.openpty()
        self.resize(rows, cols, tell=False)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            self._become(command or [PX, *words])
        self.status = None

    def _become(self, command):
        try:
            os.setsid()
            fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
            for fd in range(3):
                os.dup2(self.slave, fd)
            os.closerange(3, 1024)
            environment = {**os.environ, "TERM": "xterm", "CALLER_SECRET": "hunter2"}
            os.execve(command[0], command, environment)
        finally:
            os._exit(99)

    def resize(self, rows, cols, tell=True):
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))
        if tell:                # the kernel tells the foreground group, which is px alone
            os.kill(self.pid, signal.SIGWINCH)

    def send(self, data):
        os.write(self.master, data if isinstance(data, bytes) else data.encode())

    def _read(self, timeout):
        if not select.select([self.master], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError as error:
            if error.errno == errno.EIO:
                return False
            raise
        self.seen += data
        return bool(data)

    def expect(self, pattern, what=None):
        """Reads until the pattern is there; what was seen up to and with it is used up."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            found = re.search(pattern.encode() if isinstance(pattern, str) else pattern, self.seen)
            if found:
                self.seen = self.seen[found.end():]
                return found
            if time.monotonic() > deadline:
                raise Problem(f"{what or pattern!r} did not come; seen: {self.seen[-300:]!r}")
            self._read(0.2)

    def wait(self):
        """The status of px, as a shell would show it."""
        deadline = time.monotonic() + DEADLINE_S
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                raise Problem(f"px did not end; seen: {self.seen[-300:]!r}")
            else:
                self._read(0.02)
        while self._read(0):
            pass
        return self.status

    def ends_with(self, wanted):
        status = self.wait()
        if status != wanted:
            raise Problem(f"px ended with {status}, not {wanted}; seen: {self.seen[-300:]!r}")

    def check_restored(self):
        now = termios.tcgetattr(self.slave)
        if now != self.before:
            raise Problem(f"the terminal's modes are {now[:4]}, they were {self.before[:4]}")

    def close(self):
        if self.status is None:
            try:
                os.kill(self.pid, signal.SIGKILL)
                os.waitpid(self.pid, 0)
            except (ProcessLookupError, ChildProcessError):
                pass
        os.close(self.master)
        os.close(self.slave)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def shell(*options):
    """bash on a terminal, at its prompt, with a prompt that nothing else prints."""
    t = Terminal("exec", *options, "-t", "--", "bash", "--norc", "--noprofile")
    t.expect(r"\$ ")
    t.send("PS1='re''ady> '; set +o history\n")
    t.expect("ready> ")
    return t


def need(*names):
    for name in names:
        if not shutil.which(name):
            raise Skip(f"there is no {name} here")


def equal(got, wanted, what):
    if got != wanted:
        raise Problem(f"{what}: {got!r}, not {wanted!r}")


# ---- programs ------------------------------------------------------------------------------------------------------


def test_tty_is_the_boxes_own():
    with Terminal("exec", "-t", "--", "sh", "-c", "tty; test -t 0 && test -t 1 && test -t 2 && echo three; ls -1 /dev/pts; echo $TERM; cat /proc/self/stat | cut -d' ' -f7") as t:
        t.expect(r"/dev/pts/0\r\n", "the name of the terminal")
        t.expect(r"three\r\n")
        t.expect(r"0\r\nptmx\r\n", "only its own terminal in /dev/pts")
        t.expect(r"xterm\r\n")
        t.expect(r"34816\r\n", "a controlling terminal")
        t.ends_with(0)
        t.check_restored()


def test_exit_status():
    for text, wanted in (("exit 7", 7), ("kill -9 $$", 137), ("exit 0", 0)):
        with Terminal("exec", "-t", "-c", text) as t:
            t.ends_with(wanted)
            t.check_restored()
    with Terminal("exec", "-t", "--", "nosuch") as t:
        t.expect("PX031")
        t.ends_with(127)
        t.check_restored()


def test_input_is_echoed_once():
    with Terminal("exec", "-t", "-c", "echo up; read -r line; echo \"<$line>\"") as t:
        t.expect("up\r\n")
        t.send("words\n")
        t.expect(r"^words\r\n<words>\r\n", "one echo and the answer")
        t.ends_with(0)


def test_size_and_resize():
    with Terminal("exec", "-t", "-c", "stty size; trap 'stty size' WINCH; echo up; while :; do sleep 0.05; done", rows=33, cols=101) as t:
        t.expect(r"33 101\r\n", "the size at the start")
        t.expect("up")
        t.resize(50, 120)
        t.expect(r"50 120\r\n", "the new size")
        t.resize(10, 20)
        t.expect(r"10 20\r\n", "the next size")


def test_ctrl_c_interrupts_and_the_shell_lives():
    with shell() as t:
        t.send("sleep 1000\n")
        t.expect("sleep 1000\r\n")
        time.sleep(0.3)
        t.send(b"\x03")
        t.expect("ready> ", "the prompt after Ctrl-C")
        t.send("echo status $?\n")
        t.expect(r"status 130\r\n")
        t.send("exit 4\n")
        t.ends_with(4)
        t.check_restored()


def test_ctrl_c_ends_a_plain_command():
    with Terminal("exec", "-t", "-c", "echo up; exec sleep 1000") as t:
        t.expect("up")
        t.send(b"\x03")
        t.ends_with(130)
        t.check_restored()


def test_ctrl_d_is_the_end_of_input():
    with Terminal("exec", "-t", "-c", "echo up; wc -l") as t:
        t.expect("up\r\n")
        t.send(b"one\ntwo\n\x04")
        t.expect(r"\n2\r\n")
        t.ends_with(0)


def test_job_control():
    with shell() as t:
        t.send("sleep 1000 &\n")
        t.expect(r"\[1\] \d+\r\n")
        t.expect("ready> ")
        t.send("jobs\n")
        t.expect(r"Running +sleep 1000 &\r\n")
        t.expect("ready> ")
        t.send("fg\n")
        t.expect(r"sleep 1000\r\n")
        time.sleep(0.3)
        t.send(b"\x1a")
        t.expect(r"Stopped +sleep 1000\r\n", "the job stopped by Ctrl-Z")
        t.expect("ready> ")
        t.send("bg; kill %1; wait %1; echo status $?\n")
        t.expect(r"status 143\r\n")
        t.send("exit\n")
        t.wait()
        t.check_restored()


def test_python_prompt():
    need("python3")
    with Terminal("exec", "-t", "--", "python3", "-q") as t:
        t.expect(">>> ")
        t.send("6 * 7\n")
        t.expect(r"42\r\n")
        t.expect(">>> ")
        t.send("import time; print('as' + 'leep'); [time.sleep(0.05) for _ in iter(int, 1)]\n")
        t.expect(r"asleep\r\n")
        t.send(b"\x03")
        t.expect("KeyboardInterrupt")
        t.expect(">>> ")
        t.send("print('goes', 'on')\n")
        t.expect(r"goes on\r\n")
        t.expect(">>> ")
        t.send(b"\x04")
        t.ends_with(0)
        t.check_restored()


def editor():
    for name in ("vim", "vim.tiny"):
        if shutil.which(name):
            return name
    raise Skip("there is no vim here")


def test_vim_writes_a_file():
    name = editor()
    with tempfile.TemporaryDirectory() as place:
        os.chmod(place, 0o777)
        path = os.path.join(place, "note")
        with Terminal("exec", "-t", "-v", f"{place}:/w", "--", name, "-u", "NONE", "-i", "NONE", "-n", "/w/note", rows=30, cols=90) as t:
            t.expect(r'"/w/note"', "the name at the bottom")
            t.send("ihello from vim")
            t.expect("vim")
            t.send(b"\x1b")
            time.sleep(0.3)
            t.resize(20, 60)
            t.send(":wq\r")
            t.ends_with(0)
            t.check_restored()
        with open(path, encoding="utf-8") as f:
            equal(f.read(), "hello from vim\n", "what vim wrote")


def test_full_screen_output_is_whole():
    """A flood through the terminal loses nothing and px ends."""
    with Terminal("exec", "-t", "-c", "stty -opost; seq 1 20000; echo end") as t:
        t.expect("\n20000\nend\n", "the last line")
        t.ends_with(0)


def test_shell_command():
    with Terminal("shell") as t:
        t.expect(r"\$ ")
        t.send("tty; exit 3\n")
        t.expect("/dev/pts/0")
        t.ends_with(3)
        t.check_restored()


# ---- restored, whatever happens ------------------------------------------------------------------------------------


def raw_at_first(t):
    """px has taken the terminal: no echo, no signals from keys."""
    deadline = time.monotonic() + DEADLINE_S
    while termios.tcgetattr(t.slave)[3] & (termios.ECHO | termios.ISIG):
        if time.monotonic() > deadline:
            raise Problem("the caller's terminal was never made raw")
        time.sleep(0.02)


def test_restored_after_term():
    with Terminal("exec", "-t", "-c", "echo up; exec sleep 1000") as t:
        t.expect("up")
        raw_at_first(t)
        os.kill(t.pid, signal.SIGTERM)
        t.ends_with(143)
        t.check_restored()


def test_restored_after_hangup_and_quit():
    for number in (signal.SIGHUP, signal.SIGQUIT, signal.SIGINT):
        with Terminal("exec", "-t", "-c", "echo up; exec sleep 1000") as t:
            t.expect("up")
            raw_at_first(t)
            os.kill(t.pid, number)
            t.ends_with(128 + number)
            t.check_restored()


def test_restored_after_timeout():
    with Terminal("exec", "-t", "--timeout", "500ms", "-c", "stty raw -echo; echo up; sleep 1000") as t:
        t.ends_with(124)
        t.check_restored()


def test_restored_after_a_violent_end():
    with Terminal("exec", "-t", "-c", "echo up; stty raw; kill -9 $$") as t:
        t.ends_with(137)
        t.check_restored()


def test_restored_when_the_output_is_full():
    with Terminal(command=["/bin/sh", "-c", f"{PX} exec -t -c 'echo up; sleep 0.2; yes' >/dev/full; echo ended"]) as t:
        t.expect("ended")
        t.wait()
        t.check_restored()


# ---- stopped and continued -----------------------------------------------------------------------------------------


def test_background_box_does_not_touch_the_terminal():
    """Without -t and -i a box in the background of a shell goes on although it may not read the terminal."""
    with Terminal(command=["/bin/bash", "--norc", "--noprofile", "-mc", f"{PX} exec -- echo from the box & wait $!; echo status $?"]) as t:
        t.expect(r"from the box\r\n")
        t.expect(r"status 0\r\n")
        t.ends_with(0)


# ---- no terminal on the caller's side ------------------------------------------------------------------------------


def run(*words, **more):
    return subprocess.run([PX, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False, **more)


def test_without_a_terminal_null():
    done = run("exec", "-t", "--", "sh", "-c", "tty; stty size; test -t 1 && echo terminal", stdin=subprocess.DEVNULL)
    equal((done.returncode, done.stdout), (0, b"/dev/pts/0\r\n24 80\r\nterminal\r\n"), "-t with /dev/null as input")


def test_without_a_terminal_pipe():
    done = run("exec", "-t", "--", "sh", "-c", "read -r line; echo \"<$line>\"; cat", input=b"one\ntwo\n")
    text = done.stdout.decode()
    equal((done.returncode, "<one>\r\n" in text, text.rstrip().endswith("two")), (0, True, True), f"-t with a pipe as input ({text!r})")


def test_without_a_terminal_closed():
    done = subprocess.run(["/bin/sh", "-c", f"{PX} exec -t -- tty <&-"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=DEADLINE_S, check=False)
    equal((done.returncode, done.stdout), (0, b"/dev/pts/0\r\n"), "-t with no input at all")


def test_without_a_reader():
    """The reader of the output leaves: the box learns it and px ends."""
    done = subprocess.run(["/bin/sh", "-c", f"{PX} exec -t -- yes </dev/null | head -1"], stdout=subprocess.PIPE, timeout=DEADLINE_S, check=False)
    equal(done.stdout, b"y\r\n", "the first line")


def test_json_on_a_terminal():
    done = run("--json", "exec", "-t", "--", "tty", stdin=subprocess.DEVNULL)
    equal((done.returncode, b'"stdout":"/dev/pts/0\\r\\n"' in done.stdout), (0, True), f"the terminal's output in the result ({done.stdout[:200]!r})")


def test_no_input_injection():
    """TIOCSTI and the other ways to put words into the caller's mouth are closed."""
    need("python3")
    text = ("import fcntl, termios\n"
            "for name, number in (('sti', 0x5412), ('sti-high', 0x5412 | 1 << 32), ('linux', 0x541c), ('cons', 0x541d)):\n"
            "    try: fcntl.ioctl(0, number & 0xffffffff, b'x'); print(name, 'yes')\n"
            "    except OSError as e: print(name, 'no')\n")
    with Terminal("exec", "-t", "--", "python3", "-c", text) as t:
        for name in ("sti", "sti-high", "linux", "cons"):
            t.expect(f"{name} no\r\n")
        t.ends_with(0)


# ---- questions -----------------------------------------------------------------------------------------------------


def worker_file(place):
    with open(os.path.join(place, "w.yaml"), "w", encoding="ascii") as file:
        file.write("sandbox: {paths: {out: {root: ./out, mode: rw}}}\nshell_rules: [{pattern: touch}, {pattern: echo, approval_required: false}]\n")
    return os.path.join(place, "w.yaml")


def test_a_worker_s_command_is_asked_for():
    """Only y and yes mean yes; what was typed before the question does not count."""
    with tempfile.TemporaryDirectory() as place:
        path, made = worker_file(place), os.path.join(place, "out", "f")
        for answer, agreed in (("y\n", True), ("YES\n", True), ("n\n", False), ("\n", False), ("yellow\n", False), ("\x04", False)):
            with Terminal("worker", "shell", path, "--base", place, "--", "touch", "out/f") as t:
                t.expect(re.escape("wants to run: 'touch' 'out/f'\r\nRun it? [y/N] "))
                t.send(answer)
                t.ends_with(0 if agreed else 125)
            equal(os.path.exists(made), agreed, f"whether it ran after {answer!r}")
            if agreed:
                os.unlink(made)
        with Terminal("worker", "shell", path, "--base", place, "--", "echo", "at once") as t:
            t.expect("at once\r\n")
            t.ends_with(0)
        for option, status in (("--approve-all", 0), ("--strict", 125)):
            with Terminal("worker", "shell", path, "--base", place, option, "--", "touch", "out/f") as t:
                t.ends_with(status)
                equal(b"Run it?" in t.seen, False, f"a question in spite of {option}")
            equal(os.path.exists(made), status == 0, option)
            shutil.rmtree(os.path.join(place, "out"))


def test_a_question_shows_the_whole_command():
    """A command cannot hide a part of itself behind what a terminal obeys, or behind its length."""
    with tempfile.TemporaryDirectory() as place:
        path = worker_file(place)
        for word, shown in (("a\x1b[2K\r\x08b", r"a\x1b[2K\x0d\x08b"), ("\u202egpj", r"\xe2\x80\xaegpj"), ("x" * 5000 + "END", "x" * 5000 + "END")):
            with Terminal("worker", "shell", path, "--base", place, "--", "touch", word, cols=200) as t:
                t.expect(re.escape(f"wants to run: 'touch' '{shown}'\r\nRun it? [y/N] "))
                t.send("n\n")
                t.ends_with(125)


# ---- all of them ---------------------------------------------------------------------------------------------------


def children():
    with open("/proc/thread-self/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def leftovers():
    """What a test orphaned is our child now: it has a while to die, and is killed then."""
    deadline = time.monotonic() + 5
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return ""
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)
    for pid in children():
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    leftovers()
    return "a process was left behind"


def main():
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)     # PR_SET_CHILD_SUBREAPER
    names = [name for name in globals() if name.startswith("test_")]
    wanted = [name for name in names if not sys.argv[1:] or any(word in name for word in sys.argv[1:])]
    counts = {"ok": 0, "not ok": 0, "skip": 0}
    for name in wanted:
        verdict, why = "ok", ""
        try:
            globals()[name]()
            why = leftovers()
            verdict = "not ok" if why else "ok"
        except Problem as problem:
            verdict, why = "not ok", str(problem)
            leftovers()
        except Skip as reason:
            verdict, why = "skip", str(reason)
        except (OSError, subprocess.SubprocessError) as error:
            verdict, why = "not ok", repr(error)
            leftovers()
        counts[verdict] += 1
        print(f"{verdict} {name[5:]}" + (f": {why}" if why else ""), flush=True)
    print("{ok} passed, {not ok} failed, {skip} skipped".format(**counts))
    return 1 if counts["not ok"] or not counts["ok"] else 0


if __name__ == "__main__":
    sys.exit(main())
