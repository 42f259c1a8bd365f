"""What all rows share: the objects that lie in reach of an attack, the boxes, the answers.

Rows of data/attacks.def that need nobody outside the box are run as they are. For the others there are functions with the
name of a catalogue row in host_*.py; they raise Failed or Skipped. The suite runs as root, as an ordinary user, and as one
who cannot make a user namespace, so that boxes are of the landlock tier.
Everything is bounded: each box has a time limit, nothing is measured."""

import collections
import concurrent.futures
import ctypes
import hashlib
import json
import os
import resource
import secrets
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

LIMIT = 40                      # seconds that any one box may take before the test gives up on it
PROGRAMS = ("px-attack",)
IN_PLACE = ("PLAIN", "FILTER", "CGROUP", "MEMORY")    # rows of data/attacks.def that need nobody outside the box
SET_ID = stat.S_ISUID | stat.S_ISGID
TESTS = []


Row = collections.namedtuple("Row", "kind name how tiers bare options held_by broken_by")


class Failed(Exception):
    """The boundary did not hold, or a twin did not work."""


class Skipped(Exception):
    """Cannot be tried here."""


def test(function):
    """A function with the name of a catalogue row, for the full tier."""
    function.tiers = "F"
    TESTS.append(function)
    return function


def everywhere(function):
    """The same, for the landlock tier as well."""
    test(function).tiers = "FL"
    return function


def landlock_only(function):
    test(function).tiers = "L"
    return function


def check(condition, why):
    if not condition:
        raise Failed(why)


def shorten(data):
    text = data.decode(errors="replace") if isinstance(data, bytes) else data
    return " ".join(text.split())[:300]


# ---- processes of the host ------------------------------------------------------------------------------------------


def marked(mark):
    """Processes whose command line holds the mark: every process of a box that was started with it, and px itself."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit() and int(entry) != os.getpid():
            try:
                if mark.encode() in Path("/proc", entry, "cmdline").read_bytes():
                    found.append(int(entry))
            except OSError:
                pass
    return found


def gone(mark, seconds=8):
    """Polls until no process carries the mark; the bound is generous, it only ends a wait for something that stays."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        left = marked(mark)
        if not left:
            return []
        time.sleep(0.02)
    return left


def ended(mark):
    """How many processes with this test's own random mark are still there after a while; each is ended by its id, and
    only if it still carries the mark then."""
    left = gone(mark)
    for pid in left:
        try:
            fd = os.pidfd_open(pid)     # from here on the number cannot come to mean another process
            if mark.encode() in Path(f"/proc/{pid}/cmdline").read_bytes():
                signal.pidfd_send_signal(fd, signal.SIGKILL)
            os.close(fd)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return len(left)


def children(pid):
    found = []
    for task in os.listdir(f"/proc/{pid}/task"):
        found += [int(word) for word in Path(f"/proc/{pid}/task/{task}/children").read_text().split()]
    return found


def fields(pid):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {line.split(":", 1)[0]: line.split(":", 1)[1].split() for line in lines}


# ---- what lies in reach ---------------------------------------------------------------------------------------------


class Fixtures:
    """Secrets, servers, IPC objects and a victim, all of the caller's own, that a box must not reach."""

    def __init__(self, top):
        self.mark = "pxmark" + secrets.token_hex(8)
        self.token = "hush-" + secrets.token_hex(16)
        self.secret = top / "secret"
        self.secret.write_text("a secret of the host\n")
        self.secret.chmod(0o644)
        self.files = [Path(where, self.mark) for where in ("/tmp", "/var/tmp", "/dev/shm")]
        for path in self.files:
            path.write_text("x")
        self.tcp = socket.create_server(("0.0.0.0", 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", self.port))
        self.udp.setblocking(False)
        self.abstract = socket.socket(socket.AF_UNIX)
        self.abstract.bind("\0" + self.mark)
        self.abstract.listen()
        self.path_socket = socket.socket(socket.AF_UNIX)
        self.path_socket.bind(str(top / "socket"))
        os.chmod(top / "socket", 0o777)
        self.path_socket.listen()
        # It opens a program of the base's again and again, for who watches it.
        self.victim = subprocess.Popen([sys.executable, "-c", "import time\nfor _ in range(60000):\n"
                                        " open('/usr/bin/env', 'rb').close()\n time.sleep(.01)"])
        self.pty = os.openpty()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.key = secrets.randbelow(1 << 30) + 1
        self.shm = self.libc.shmget(self.key, 4096, 0o1666)
        self.msg = self.libc.msgget(self.key, 0o1666)
        self.sem = self.libc.semget(self.key, 1, 0o1666)
        self.queue = "/" + self.mark
        self.mq = self.libc.mq_open(self.queue.encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
        # In the session keyring, which every process below has unless somebody takes it away.
        self.planted = self.libc.syscall(248, b"user", self.mark.encode(), b"x", ctypes.c_long(1), ctypes.c_long(-3))
        free = socket.create_server(("127.0.0.1", 0))
        self.free = free.getsockname()[1]
        free.close()

    def values(self):
        addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
        return {
            "A_SECRET": self.secret, "A_PID": self.victim.pid, "A_PORT": self.port, "A_KEY": self.key,
                "A_QUEUE": self.queue,
            "A_ADDRESSES": ",".join(a for a in addresses if ":" not in a), "A_MARK": self.mark,
                "A_SOCKET": self.secret.parent / "socket",
            "A_TOKEN": "".join(chr(ord(c) + 1) for c in self.token),
                "A_PTS": os.path.basename(os.ttyname(self.pty[1])), "A_FREE": self.free,
            "A_CORE": resource.getrlimit(resource.RLIMIT_CORE)[1],
            "A_KEYNAME": self.mark if self.planted > 0 else "", "A_PLACES": "/home/sandbox,/tmp,/dev/shm",
        }

    def remove(self):
        self.victim.kill()
        self.victim.wait()
        self.libc.shmctl(self.shm, 0, None)
        self.libc.msgctl(self.msg, 0, None)
        self.libc.semctl(self.sem, 0, 0)
        self.libc.mq_unlink(self.queue.encode())
        if self.planted > 0:
            self.libc.syscall(250, ctypes.c_long(9), ctypes.c_long(self.planted), ctypes.c_long(-3))    # KEYCTL_UNLINK
        for path in self.files + [path.with_name("inside-" + self.mark) for path in self.files]:
            path.unlink(missing_ok=True)


# ---- the suite ------------------------------------------------------------------------------------------------------


class Suite:
    def __init__(self, where, arguments):
        self.where, self.arguments = where, arguments
        self.px, self.bin = str(where / "px"), where / "bin"
        self.root = os.geteuid() == 0
        self.landlock = bool(arguments.landlock)        # nobody can make a user namespace where we are
        self.who = "landlock" if self.landlock else "root" if self.root else "user"
        self.tier = "L" if self.landlock else "F"
        self.program = str(self.bin / "px-attack") if self.landlock else "/attack/px-attack"
        self.counts = [0, 0, 0]
        self.outcomes = {}
        self.lock = threading.Lock()
        self.serial = 0

    # -- answers

    def say(self, name, outcome, why=""):
        word, index = {"ok": ("ok", 0), "fail": ("not ok", 1), "skip": ("skip", 2)}[outcome]
        with self.lock:
            self.counts[index] += 1
            self.outcomes[name] = outcome
            if outcome != "ok" or self.arguments.verbose:
                print(f"{word} {self.who}/{name}" + (f": {why}" if why else ""), flush=True)

    def attempt(self, name, function):
        if not name.startswith(self.arguments.only):
            return
        try:
            function()
            self.say(name, "ok")
        except Skipped as reason:
            self.say(name, "skip", reason)
        except Failed as reason:
            self.say(name, "fail", reason)
        except subprocess.TimeoutExpired:
            self.say(name, "fail", f"still running after {LIMIT} s")
        except Exception as error:  # a bug of the suite must not look like a pass
            self.say(name, "fail", f"{type(error).__name__}: {error}")

    # -- boxes

    def directory(self, name):
        with self.lock:
            self.serial += 1
            path = self.top / f"{name}.{self.serial}"
        path.mkdir()
        path.chmod(0o755)
        return path

    def environment(self):
        return {**os.environ, "PX_ATTACK_TOKEN": self.fixtures.token, "AWS_SECRET_ACCESS_KEY": self.fixtures.token}

    def command(self, options=(), *payload, json_result=False, bind=True, program=None):
        values = [word for name, value in self.values.items() for word in ("-e", f"{name}={value}")]
        binds = ["-v", f"{self.bin}:{os.path.dirname(self.program)}:ro"] if bind else []
        tier = ["--require", "landlock"] if self.landlock else []
        return [program or self.px, *(["--json"] if json_result else []), "exec", *tier, *binds, *values, *options,
                "--", *payload]

    def box(self, options, *payload, prefix=(), stdin=subprocess.DEVNULL, json_result=False, bind=True, **more):
        command = [*prefix, *self.command(options, *payload, json_result=json_result, bind=bind)]
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("cwd", self.top)
        return subprocess.run(command, stdin=stdin, stderr=subprocess.PIPE, env=self.environment(), timeout=LIMIT,
                              check=False, **more)

    def result(self, options, *payload, **more):
        done = self.box(options, *payload, json_result=True, **more)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise Failed(f"no JSON, exit status {done.returncode}: {shorten(done.stdout + done.stderr)}") from None

    def start(self, options, *payload, **more):
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(self.command(options, *payload), stdin=subprocess.DEVNULL, env=self.environment(),
                                cwd=self.top, **more)

    def running(self, options, *payload, word=b"ready"):
        """A box that stays, once its payload has said so; its pid 1 and its payload as the host sees them."""
        process = self.start(options, *payload)
        line = process.stdout.readline()
        if word not in line:
            process.kill()
            raise Failed(f"the box did not start: {shorten(line + process.stderr.read())}")
        try:
            init = children(process.pid)[0]
            payload = children(init)[0]
            end = time.monotonic() + LIMIT
            while not Path(f"/proc/{init}/cmdline").read_bytes().startswith(b"px-init"):     # the payload may be faster
                check(time.monotonic() < end, "pid 1 does not become px-init")
            return process, init, payload
        except (OSError, IndexError, Failed) as error:
            process.kill()
            raise Failed(f"the processes of the box cannot be found: {error}") from None

    def stopped(self, done, word=b"stopped"):
        if done.returncode == 77:
            raise Skipped(shorten(done.stdout))
        check(done.returncode == 0 and done.stdout is not None and done.stdout.strip().endswith(word),
              f"exit status {done.returncode}: {shorten((done.stdout or b'') + done.stderr)}")

    def row(self, name, options=(), **more):
        self.stopped(self.box(options, self.program, name, **more))

    def mark(self):
        return "pxmark" + secrets.token_hex(8)

    # -- rows of data/attacks.def

    def rows(self):
        for program in PROGRAMS:
            listing = subprocess.run([self.bin / program, "list"], capture_output=True, text=True, check=True).stdout
            for line in listing.splitlines():
                yield Row(*line.split("\t"))

    def plain_row(self, row):
        if row.how in ("CGROUP", "MEMORY") and not self.root:
            raise Skipped("needs a cgroup, which an ordinary user has not")
        workspace = self.directory("ws") if "@WS" in row.options else None
        place = str(workspace) if self.landlock else "/ws"
        words = ["--" + word.replace("@WS", str(workspace)).replace("@AT", place).replace("|", " ")
                 for word in row.options.split()]
        words += ["-e", f"A_WS={place}"] if workspace else []
        if row.how == "MEMORY":
            return self.memory_row(row, words)
        self.stopped(self.box(words, self.program, row.name), b"stopped" if row.kind == "attack" else b"worked")
        if workspace:
            harmless(workspace)
        return None

    def memory_row(self, row, words):
        result = self.result(words, self.program, row.name)
        check(result["exit_code"] == 137 or result["stdout"].strip() == "stopped",
              f"status {result['status']}, exit {result['exit_code']}: {shorten(result['stdout'])}")
        check(result["memory_peak_bytes"] <= 80 << 20, f"peak {result['memory_peak_bytes']}")

    def bare_row(self, row):
        environment = {**self.environment(), **{key: str(value) for key, value in self.values.items()}}
        done = subprocess.run([self.bin / "px-attack", row.name], env=environment, capture_output=True, timeout=LIMIT,
                              check=False, cwd=self.top)
        if done.returncode == 0:
            raise Skipped("this host stops it without a box, so it proves nothing here")
        check(done.returncode == 1, f"exit status {done.returncode}: {shorten(done.stdout)}")

    # -- all of it

    def run(self):
        self.top = Path(tempfile.mkdtemp(prefix=f"{self.who}-", dir=self.where if self.root else "/tmp"))
        self.top.chmod(0o755)
        os.environ["PX_HOME"] = str(self.top / "px-home")       # HOME may be another user's
        self.fixtures = Fixtures(self.top)
        self.values = self.fixtures.values()
        self.values["A_HERE"] = os.path.dirname(self.program)
        if self.landlock:
            self.values.update({"A_UID": os.geteuid(), "A_GID": os.getegid()})
        before = self.world()
        try:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for row in self.rows():
                    if self.arguments.control:
                        if row.bare == "bare" and row.kind == "attack":
                            pool.submit(self.attempt, row.name, lambda r=row: self.bare_row(r))
                    elif row.how in IN_PLACE and self.tier in row.tiers:
                        pool.submit(self.attempt, row.name, lambda r=row: self.plain_row(r))
                for function in TESTS:
                    if not self.arguments.control and self.tier in function.tiers:
                        pool.submit(self.attempt, function.__name__, lambda f=function: f(self))
            if not self.arguments.control:
                self.attempt("A20_nothing_left", self.nothing_left)
                self.attempt("B1_world_unchanged", lambda: self.unchanged(before))
        finally:
            if self.landlock:   # takes the homes away of boxes whose px was killed
                subprocess.run(self.command((), "/bin/true"), capture_output=True, timeout=LIMIT, check=False)
            self.fixtures.remove()
            subprocess.run(["rm", "-rf", "--", str(self.top)], check=False)
        return self.counts

    def world(self):
        """What no box may change, whatever it tried."""
        return {
            "core_pattern": Path("/proc/sys/kernel/core_pattern").read_text(),
            "max_user_namespaces": Path("/proc/sys/user/max_user_namespaces").read_text(),
            "px": hashlib.sha256(Path(self.px).read_bytes()).hexdigest(),
            "programs": {name: hashlib.sha256((self.bin / name).read_bytes()).hexdigest() for name in PROGRAMS},
            "hostname": os.uname().nodename,
            "secret": self.fixtures.secret.read_text(),
            "victim": self.fixtures.victim.poll(),
        }

    def unchanged(self, before):
        after = self.world()
        for name, value in before.items():
            check(after[name] == value, f"{name} is not what it was")
        if self.landlock:       # which shares the host's network, and says so
            return
        try:
            got = self.fixtures.udp.recv(100)
        except BlockingIOError:
            return
        raise Failed(f"a datagram came out of a box: {shorten(got)}")

    def nothing_left(self):
        for path in self.fixtures.files:
            inside = path.with_name("inside-" + self.fixtures.mark)
            check(not inside.exists(), f"{inside} was made from inside")
        left = gone(str(self.bin))
        check(not left, f"processes are left: {left}")


def harmless(top):
    """No set-id file, device, privileged attribute or core below a directory that a box could write."""
    for where, _, names in os.walk(top):
        for name in names:
            path = os.path.join(where, name)
            status = os.lstat(path)
            check(not (stat.S_ISREG(status.st_mode) and status.st_mode & SET_ID),
                  f"{name} on the host has mode {status.st_mode:o}")
            check(not stat.S_ISCHR(status.st_mode) and not stat.S_ISBLK(status.st_mode),
                  f"{name} on the host is a device")
            check(not name.startswith("core"), f"{name} on the host is a core dump")
            if stat.S_ISREG(status.st_mode):
                check("security.capability" not in os.listxattr(path, follow_symlinks=False),
                      f"{name} has file capabilities")


def needs_root(suite):
    if not suite.root:
        raise Skipped("needs root to prepare")
