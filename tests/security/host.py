"""The host's half of the suite: what is put in reach of the attacks, and the rows that need somebody outside the box.

Rows of the C programs without `@runner` are run as they are. A function here with the name of a catalogue row drives one that
needs the host; it raises Failed or Skipped. Everything is bounded: each box has a time limit, nothing is measured."""

import concurrent.futures
import ctypes
import hashlib
import json
import os
import re
import secrets
import shutil
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
PROGRAMS = ("attack_fs", "attack_proc", "attack_syscall", "attack_ids", "attack_ipc", "attack_limits")
SET_ID = stat.S_ISUID | stat.S_ISGID
TESTS = []


class Failed(Exception):
    """The boundary did not hold, or a twin did not work."""


class Skipped(Exception):
    """Cannot be tried here."""


def test(function):
    TESTS.append(function)
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
        self.victim = subprocess.Popen(["sleep", "600"])
        self.pty = os.openpty()
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.key = secrets.randbelow(1 << 30) + 1
        self.shm = self.libc.shmget(self.key, 4096, 0o1666)
        self.msg = self.libc.msgget(self.key, 0o1666)
        self.sem = self.libc.semget(self.key, 1, 0o1666)
        self.queue = "/" + self.mark
        self.mq = self.libc.mq_open(self.queue.encode(), os.O_RDWR | os.O_CREAT, 0o666, None)
        free = socket.create_server(("127.0.0.1", 0))
        self.free = free.getsockname()[1]
        free.close()

    def values(self):
        addresses = subprocess.run(["hostname", "-I"], capture_output=True, text=True, check=False).stdout.split()
        return {
            "A_SECRET": self.secret, "A_PID": self.victim.pid, "A_PORT": self.port, "A_KEY": self.key, "A_QUEUE": self.queue,
            "A_ADDRESSES": ",".join(a for a in addresses if ":" not in a), "A_MARK": self.mark, "A_SOCKET": self.secret.parent / "socket",
            "A_TOKEN": "".join(chr(ord(c) + 1) for c in self.token), "A_PTS": os.path.basename(os.ttyname(self.pty[1])), "A_FREE": self.free,
        }

    def remove(self):
        self.victim.kill()
        self.victim.wait()
        self.libc.shmctl(self.shm, 0, None)
        self.libc.msgctl(self.msg, 0, None)
        self.libc.semctl(self.sem, 0, 0)
        self.libc.mq_unlink(self.queue.encode())
        for path in self.files + [path.with_name("inside-" + self.mark) for path in self.files]:
            path.unlink(missing_ok=True)


# ---- the suite ------------------------------------------------------------------------------------------------------


class Suite:
    def __init__(self, where, arguments):
        self.where, self.arguments = where, arguments
        self.px, self.bin = str(where / "px"), where / "bin"
        self.root = os.geteuid() == 0
        self.who = "root" if self.root else "user"
        self.counts = [0, 0, 0]
        self.lock = threading.Lock()
        self.serial = 0

    # -- answers

    def say(self, name, outcome, why=""):
        word, index = {"ok": ("ok", 0), "fail": ("not ok", 1), "skip": ("skip", 2)}[outcome]
        with self.lock:
            self.counts[index] += 1
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
        binds = ["-v", f"{self.bin}:/attack:ro"] if bind else []
        return [program or self.px, *(["--json"] if json_result else []), "exec", *binds, *values, *options, "--", *payload]

    def box(self, options, *payload, prefix=(), stdin=subprocess.DEVNULL, json_result=False, bind=True, **more):
        command = [*prefix, *self.command(options, *payload, json_result=json_result, bind=bind)]
        more.setdefault("stdout", subprocess.PIPE)
        return subprocess.run(command, stdin=stdin, stderr=subprocess.PIPE, env=self.environment(), timeout=LIMIT, check=False,
                              cwd=self.top, **more)

    def result(self, options, *payload, **more):
        done = self.box(options, *payload, json_result=True, **more)
        try:
            return json.loads(done.stdout)
        except ValueError:
            raise Failed(f"no JSON, exit status {done.returncode}: {shorten(done.stdout + done.stderr)}") from None

    def start(self, options, *payload, **more):
        more.setdefault("stdout", subprocess.PIPE)
        more.setdefault("stderr", subprocess.PIPE)
        return subprocess.Popen(self.command(options, *payload), stdin=subprocess.DEVNULL, env=self.environment(), cwd=self.top, **more)

    def running(self, options, *payload, word=b"ready"):
        """A box that stays, once its payload has said so; its pid 1 and its payload as the host sees them."""
        process = self.start(options, *payload)
        line = process.stdout.readline()
        if word not in line:
            process.kill()
            raise Failed(f"the box did not start: {shorten(line + process.stderr.read())}")
        try:
            init = children(process.pid)[0]
            return process, init, children(init)[0]
        except (OSError, IndexError):
            process.kill()
            raise Failed("the processes of the box cannot be found") from None

    def stopped(self, done, word=b"stopped"):
        if done.returncode == 77:
            raise Skipped(shorten(done.stdout))
        check(done.returncode == 0 and done.stdout is not None and done.stdout.strip().endswith(word),
              f"exit status {done.returncode}: {shorten((done.stdout or b'') + done.stderr)}")

    def row(self, program, name, options=(), **more):
        self.stopped(self.box(options, f"/attack/{program}", name, **more))

    def mark(self):
        return "pxmark" + secrets.token_hex(8)

    # -- rows of the C programs

    def rows(self):
        for program in PROGRAMS:
            listing = subprocess.run([self.bin / program, "list"], capture_output=True, text=True, check=True).stdout
            for line in listing.splitlines():
                kind, name, bare, options = line.split("\t")
                yield program, kind, name, bare == "bare", options

    def plain_row(self, program, kind, name, options):
        words = [word.replace("|", " ") for word in options.split()]
        if words[:1] == ["@memory"]:
            return self.memory_row(program, name)
        if words[:1] == ["@root"]:
            if not self.root:
                raise Skipped("needs a cgroup, which an ordinary user has not")
            words = words[1:]
        workspace = self.directory("ws") if any("@WS" in word for word in words) else None
        words = [word.replace("@WS", str(workspace)) for word in words]
        self.stopped(self.box(words, f"/attack/{program}", name), b"stopped" if kind == "attack" else b"worked")
        if workspace:
            harmless(workspace)
        return None

    def memory_row(self, program, name):
        if not self.root:
            raise Skipped("needs a cgroup, which an ordinary user has not")
        result = self.result(["-m", "64m"], f"/attack/{program}", name)
        check(result["status"] == "memory" or result["stdout"].strip() == "stopped",
              f"status {result['status']}, exit {result['exit_code']}: {shorten(result['stdout'])}")
        check(result["memory_peak_bytes"] <= 80 << 20, f"peak {result['memory_peak_bytes']}")

    def bare_row(self, program, kind, name):
        environment = {**self.environment(), **{key: str(value) for key, value in self.values.items()}}
        done = subprocess.run([self.bin / program, name], env=environment, capture_output=True, timeout=LIMIT, check=False, cwd=self.top)
        check(done.returncode == 1, f"says nothing without a box: exit status {done.returncode}, {shorten(done.stdout)}")

    # -- all of it

    def run(self):
        self.top = Path(tempfile.mkdtemp(prefix=f"{self.who}-", dir=self.where if self.root else "/tmp"))
        self.top.chmod(0o755)
        self.fixtures = Fixtures(self.top)
        self.values = self.fixtures.values()
        before = self.world()
        try:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                for program, kind, name, bare, options in self.rows():
                    if self.arguments.control:
                        if bare and kind == "attack":
                            pool.submit(self.attempt, name, lambda p=program, k=kind, n=name: self.bare_row(p, k, n))
                    elif not options.startswith("@runner"):
                        pool.submit(self.attempt, name, lambda p=program, k=kind, n=name, o=options: self.plain_row(p, k, n, o))
                if not self.arguments.control:
                    for function in TESTS:
                        pool.submit(self.attempt, function.__name__, lambda f=function: f(self))
            if not self.arguments.control:
                self.attempt("A20_nothing_left", self.nothing_left)
                self.attempt("B1_world_unchanged", lambda: self.unchanged(before))
        finally:
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
            check(not (stat.S_ISREG(status.st_mode) and status.st_mode & SET_ID), f"{name} on the host has mode {status.st_mode:o}")
            check(not stat.S_ISCHR(status.st_mode) and not stat.S_ISBLK(status.st_mode), f"{name} on the host is a device")
            check(not name.startswith("core"), f"{name} on the host is a core dump")
            if stat.S_ISREG(status.st_mode):
                check("security.capability" not in os.listxattr(path, follow_symlinks=False), f"{name} has file capabilities")


def needs_root(suite):
    if not suite.root:
        raise Skipped("needs root to prepare")


# ---- A: files and mounts --------------------------------------------------------------------------------------------

LEAK = 'exec 3<"$0" 9<"$0" 57<>"$0/secret" 200<"$0"; exec "$@"'


@test
def A4_leaked_descriptors(suite):
    suite.row("attack_fs", "A4_descriptors", prefix=("bash", "-c", LEAK, str(suite.top)))


@test
def A4_leaked_with_tty(suite):
    suite.row("attack_fs", "A4_descriptors", ["-t"], prefix=("bash", "-c", LEAK, str(suite.top)))


@test
def A4_init_has_only_its_socket(suite):
    process = subprocess.Popen(["bash", "-c", LEAK, str(suite.top), *suite.command((), "/attack/attack_limits", "H_wait")],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=suite.environment())
    try:
        check(b"ready" in process.stdout.readline(), "the box did not start")
        init = children(process.pid)[0]
        if not suite.root:
            return              # an ordinary user cannot look; that is what the row wants
        links = {fd: os.readlink(f"/proc/{init}/fd/{fd}") for fd in os.listdir(f"/proc/{init}/fd")}
        check(all(to.startswith(("socket:", "anon_inode:[signalfd]")) for to in links.values()), f"pid 1 holds {links}")
    finally:
        process.kill()
        process.communicate()


@test
def A5_stdout_reopen(suite):
    path = suite.directory("stdout") / "file"
    path.write_text("SECRET BEFORE\n")
    with open(path, "r+b") as file:
        file.seek(0, os.SEEK_END)
        done = suite.box([], "/attack/attack_fs", "A5_stdout_reopen", stdout=file)
    text = path.read_text()
    check(done.returncode == 0 and text == "SECRET BEFORE\nstopped\n", f"exit status {done.returncode}: {shorten(text)}")


@test
def A5_stdin_reopen(suite):
    path = suite.directory("stdin") / "file"
    path.write_text("content of the host\n")
    with open(path, "r+b") as file:
        suite.row("attack_fs", "A5_stdin_reopen", ["-i"], stdin=file)
    check(path.read_text() == "content of the host\n", "standard input was written to")


@test
def A5_twin_streams(suite):
    path = suite.directory("stdin") / "file"
    path.write_text("content of the host\n")
    with open(path, "rb") as file:
        suite.stopped(suite.box(["-i"], "/attack/attack_fs", "A5_twin_stdin", stdin=file), b"worked")


@test
def A6_workdir_magic_link(suite):
    for place in ("/proc/self/fd/9", "/proc/self/fd/200", "/proc/self/cwd/..", "/proc/1/cwd", "/proc/self/root"):
        done = suite.box(["-w", place], "/attack/attack_fs", "A6_cwd", prefix=("bash", "-c", LEAK, str(suite.top)))
        check(done.returncode == 125 or done.stdout.strip() == b"stopped", f"{place}: {shorten(done.stdout + done.stderr)}")


@test
def A9_submount(suite):
    needs_root(suite)
    outer = suite.directory("ro")
    (outer / "sub").mkdir()
    script = 'mount -t tmpfs none "$0/sub" && echo x >"$0/sub/here" && exec "$@"'
    suite.row("attack_fs", "A9_submount", ["-v", f"{outer}:/ro:ro"], prefix=("unshare", "-m", "sh", "-c", script, str(outer)))


@test
def A11_node_in_bind(suite):
    needs_root(suite)
    workspace = suite.directory("ws")
    os.mknod(workspace / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    os.chmod(workspace / "zero", 0o666)
    suite.row("attack_fs", "A11_node_in_bind", ["-v", f"{workspace}:/ws"])


def make_root(suite, name):
    root = suite.directory(name)
    (root / "attack").mkdir()
    shutil.copy2(suite.bin / "attack_fs", root / "attack")
    return root


@test
def A14_rootfs_links(suite):
    outside, root = suite.directory("outside"), make_root(suite, "rootfs")
    (outside / "outside").write_text("x")
    for name in ("proc", "dev", "etc", "tmp", "home", "sys", "root", "var", "run", "workspace"):
        (root / name).symlink_to(outside)
    outside.chmod(0o777)
    work = suite.directory("ws")
    suite.row("attack_fs", "A14_rootfs_links", ["--rootfs", str(root), "--work-dir", str(work)], bind=False)
    check(os.listdir(outside) == ["outside"], f"made outside: {os.listdir(outside)}")


@test
def A14_rootfs_inner_links(suite):
    outside, root = suite.directory("outside"), make_root(suite, "rootfs")
    (outside / "outside").write_text("x")
    for name in ("dev/pts", "dev/shm", "dev/fd", "home/sandbox", "etc/alternatives", "proc/self", "tmp/x"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).symlink_to(outside)
    for name in ("dev/null", "dev/zero", "dev/tty", "dev/ptmx", "dev/stdin", "etc/passwd", "etc/hosts", "etc/resolv.conf", "dev/console"):
        (root / name).symlink_to(outside / "outside")
    outside.chmod(0o777)
    suite.row("attack_fs", "A14_rootfs_links", ["--rootfs", str(root)], bind=False)
    check(os.listdir(outside) == ["outside"] and (outside / "outside").read_text() == "x", "something was made or written outside")


@test
def A14_bind_target_link(suite):
    """A bind inside another bind, whose place there is a link to a host directory."""
    outside, workspace, more = suite.directory("outside"), suite.directory("ws"), suite.directory("more")
    (workspace / "place").symlink_to(outside)
    done = suite.box(["-v", f"{workspace}:/ws", "-v", f"{more}:/ws/place"], "/bin/sh", "-c", "echo RAN; echo x >/ws/place/made")
    check(done.returncode == 125 and b"RAN" not in done.stdout, f"exit status {done.returncode}")
    check(not os.listdir(outside), "something was made outside")


@test
def A14_rootfs_node(suite):
    needs_root(suite)
    root = make_root(suite, "rootfs")
    os.mknod(root / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    os.chmod(root / "zero", 0o666)
    suite.row("attack_fs", "A14_rootfs_node", ["--rootfs", str(root)], bind=False)


@test
def A14_twin_rootfs(suite):
    root = make_root(suite, "rootfs")
    (root / "own").write_text("x")
    suite.row("attack_fs", "A6_cwd", ["--rootfs", str(root)], bind=False)


@test
def A15_overlay_xattr(suite):
    needs_root(suite)
    root = make_root(suite, "rootfs")
    for name in ("visible", "elsewhere"):
        (root / name).mkdir()
    (root / "visible/own").write_text("x")
    (root / "elsewhere/hidden").write_text("x")
    (root / "copied").write_text("x")
    for space in ("trusted", "user"):
        os.setxattr(root / "visible", f"{space}.overlay.redirect", b"/elsewhere")
        os.setxattr(root / "copied", f"{space}.overlay.metacopy", b"")
    suite.row("attack_fs", "A15_overlay_xattr", ["--rootfs", str(root)], bind=False)


@test
def A17_propagation(suite):
    mounts = Path("/proc/self/mountinfo").read_text().count(str(suite.top))
    process, _, payload = suite.running(["-v", f"{suite.directory('ws')}:/ws"], "/attack/attack_limits", "H_wait")
    try:
        inside = Path(f"/proc/{payload}/mountinfo").read_text() if suite.root else ""
        check("shared:" not in inside and "master:" not in inside, "a mount of the box propagates")
        check(Path("/proc/self/mountinfo").read_text().count(str(suite.top)) == mounts, "a mount of the box is seen on the host")
    finally:
        process.kill()
        process.communicate()


def set_id_program(workspace):
    path = workspace / "setid"
    path.write_bytes(b"#!/bin/sh\n" + b"#" * 8000)
    path.chmod(0o4755)
    return path


def not_forged(path):
    status = path.stat()
    forged = path.read_bytes().startswith(b"#!/bin/forged")
    check(not (forged and status.st_mode & SET_ID), f"the host has a set-id program of uid {status.st_uid} with the box's content")


@test
def A19_existing(suite):
    workspace = suite.directory("ws")
    path = set_id_program(workspace)
    suite.row("attack_fs", "A19_existing", ["-v", f"{workspace}:/ws"])
    not_forged(path)


@test
def A19_existing_file_bind(suite):
    workspace = suite.directory("ws")
    path = set_id_program(workspace)
    suite.row("attack_fs", "A19_existing", ["-v", f"{path}:/ws/setid"])
    not_forged(path)


@test
def A19_existing_deep(suite):
    workspace = suite.directory("ws")
    set_id_program(workspace)
    suite.row("attack_fs", "A19_existing_deep", ["-v", f"{workspace}:/ws"])
    not_forged(workspace.joinpath(*["d"] * 70, "setid"))


@test
def A19_existing_killed(suite):
    """The same while the box runs, and after px was killed: nobody is left to clean up."""
    workspace = suite.directory("ws")
    path = set_id_program(workspace)
    process = suite.start(["-v", f"{workspace}:/ws"], "/bin/sh", "-c", "/attack/attack_fs A19_existing; echo done; sleep 30")
    process.stdout.readline()
    process.stdout.readline()
    process.kill()
    process.communicate()
    not_forged(path)


@test
def A19_source_swap(suite):
    outer, victim = suite.directory("outer"), suite.directory("victim")
    (outer / "inner").mkdir()
    path = set_id_program(victim)
    suite.row("attack_fs", "A19_source_swap", ["-v", f"{outer}:/o", "-v", f"{outer}/inner:/i", "-e", f"A_VICTIM={victim}"])
    check(path.stat().st_mode & SET_ID == stat.S_ISUID, "px changed a file that was never bound, where a link of the box led it")


@test
def A21_control_sockets(suite):
    top = suite.directory("sources")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(top / "docker.sock"))
    server.listen()
    (top / "link").symlink_to("docker.sock")
    os.mkfifo(top / "fifo")
    for source in ("docker.sock", "link", "fifo"):
        for mode in ("ro", "rw"):
            done = suite.box(["-v", f"{top}/{source}:/it:{mode}"], "/bin/echo", "RAN")
            check(done.returncode == 125 and b"RAN" not in done.stdout, f"{source} was bound {mode}")
    for source in ("/dev/null", "/dev/kmsg", "/dev/loop0"):
        if os.path.exists(source):
            done = suite.box(["-v", f"{source}:/it"], "/bin/echo", "RAN")
            check(done.returncode == 125 and b"RAN" not in done.stdout, f"{source} was bound")
    for target in ("/proc", "/proc/sys", "/dev", "/dev/mem", "/sys", "/"):
        done = suite.box(["-v", f"{top}:{target}"], "/bin/echo", "RAN")
        check(done.returncode == 125 and b"RAN" not in done.stdout, f"something was bound over {target}")


@test
def A21_twin_file(suite):
    path = suite.directory("sources") / "file"
    path.write_text("content")
    done = suite.box(["-v", f"{path}:/it:ro"], "/bin/cat", "/it")
    check(done.stdout == b"content", shorten(done.stdout + done.stderr))


@test
def A22_source_race(suite):
    """A name that is now a file, now a socket: whatever is bound must have been checked."""
    top = suite.directory("race")
    (top / "file").write_text("x")
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(top / "socket"))
    server.listen()
    racer = subprocess.Popen([suite.bin / "race", top / "file", top / "socket"])
    bound = 0
    try:
        for _ in range(150):
            done = suite.box(["-v", f"{top}/file:/it"], "/attack/attack_fs", "A22_source_race")
            check(done.returncode in (0, 125), shorten(done.stdout + done.stderr))
            bound += done.returncode == 0
    finally:
        racer.kill()
        racer.wait()
    check(bound or racer.returncode == -signal.SIGKILL, "the race did not run")


# ---- B, C: processes and the supervisor -----------------------------------------------------------------------------


@test
def B9_kill_everybody(suite):
    done = suite.box([], "/bin/sh", "-c", "kill -9 -1; kill -9 0")
    check(done.returncode == 137, f"exit status {done.returncode}")
    check(suite.fixtures.victim.poll() is None, "the victim is dead")


@test
def C2_init_not_dumpable(suite):
    if suite.root:
        raise Skipped("the owner of its /proc files tells nothing where pid 1 has the box's id 0")
    process, init, _ = suite.running([], "/attack/attack_limits", "H_wait")
    try:
        check(os.stat(f"/proc/{init}/environ").st_uid == 0, "pid 1 is dumpable: its /proc files belong to the payload's own id")
    finally:
        process.kill()
        process.communicate()


@test
def C2_supervisor_not_dumpable(suite):
    if suite.root:
        raise Skipped("root reads any process")
    process, _, _ = suite.running([], "/attack/attack_limits", "H_wait")
    try:
        check(os.stat(f"/proc/{process.pid}/environ").st_uid == 0, "px is dumpable while a box of the same id runs")
    finally:
        process.kill()
        process.communicate()


@test
def C4_environment_wiped(suite):
    process, init, payload = suite.running([], "/attack/attack_limits", "H_wait")
    try:
        token = suite.fixtures.token.encode()
        for pid in (process.pid, init, payload):
            for name in ("environ", "cmdline"):
                try:
                    data = Path(f"/proc/{pid}/{name}").read_bytes()
                except OSError:
                    data = b""
                check(token not in data, f"/proc/{pid}/{name} holds the caller's secret")
        if suite.root:
            check(Path(f"/proc/{init}/environ").read_bytes() == b"", "pid 1 has an environment")
            for pid in (init, payload):
                check(token not in memory_of(pid), "memory of the box holds the caller's secret")
    finally:
        process.kill()
        process.communicate()


def memory_of(pid):
    data = b""
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
            low, high = (int(word, 16) for word in line.split()[0].split("-"))
            try:
                mem.seek(low)
                data += mem.read(min(high - low, 16 << 20))
            except (OSError, ValueError, OverflowError):
                pass
    return data


@test
def C6_report_through_link(suite):
    """--report into a directory that the box can turn into a link."""
    workspace, victim = suite.directory("ws"), suite.directory("victim")
    (workspace / "out").mkdir()
    suite.box(["-v", f"{workspace}:/ws", "--report", str(workspace / "out/report.json")], "/bin/sh", "-c",
              f"mv /ws/out /ws/moved && ln -s {victim} /ws/out")
    check(not os.listdir(victim), "the report was written where a link of the box led")


@test
def C6_twin_report(suite):
    top = suite.directory("report")
    suite.box(["--report", str(top / "report.json")], "/bin/echo", "hello")
    check(json.loads((top / "report.json").read_text())["status"] == "ok", "no report")


NO_USERNS = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\""


def without_userns():
    prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", NO_USERNS, "sh")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        raise Skipped("cannot make a place without user namespaces")
    return prefix


@test
def C8_fails_closed(suite):
    done = suite.box([], "/bin/echo", "RAN", prefix=without_userns())
    check(done.returncode == 125 and b"RAN" not in done.stdout, f"exit status {done.returncode}: {shorten(done.stdout)}")
    check(b"PX" in done.stderr, "no error was said")


@test
def C8_landlock_tier(suite):
    """Where the weaker tier is asked for by name it says so, and holds what it can hold."""
    prefix = without_userns()
    options = ["--require", "landlock", "-v", f"{suite.bin}:{suite.bin}:ro"]
    result = suite.result(options, "/bin/echo", "RAN", prefix=prefix, bind=False)
    check(result["stdout"] == "RAN\n" and result["isolation"]["tier"] == "landlock", shorten(str(result)))
    check({"namespaces", "root", "net"} <= set(result["isolation"]["missing"]), f"missing: {result['isolation']['missing']}")
    for program, name in (("attack_fs", "A1_absolute_path"), ("attack_syscall", "D1_unshare"), ("attack_syscall", "D6_io_uring"), ("attack_syscall", "D3_int80"),
                          ("attack_syscall", "D10_families"), ("attack_syscall", "D11_ioctls"), ("attack_fs", "A5_kinds"), ("attack_fs", "A4_descriptors"),
                          ("attack_ipc", "F7_abstract"), ("attack_ids", "E6_signals"), ("attack_proc", "C4_secrets")):
        done = suite.box(options, str(suite.bin / program), name, prefix=prefix, bind=False)
        check(done.returncode == 0 and done.stdout.strip() == b"stopped", f"{name}: {shorten(done.stdout + done.stderr)}")


@test
def C8_landlock_tier_victim(suite):
    prefix = without_userns()
    done = suite.box(["--require", "landlock"], "/bin/sh", "-c", f"kill -9 {suite.fixtures.victim.pid}; echo tried", prefix=prefix, bind=False)
    check(b"tried" in done.stdout and suite.fixtures.victim.poll() is None, f"{shorten(done.stdout + done.stderr)}")


@test
def C8_landlock_tier_daemon(suite):
    mark, prefix = suite.mark(), without_userns()
    suite.box(["--require", "landlock", "-v", f"{suite.bin}:{suite.bin}:ro"], str(suite.bin / "attack_limits"), "H1_daemon", mark, prefix=prefix, bind=False)
    left = marked(mark)
    check(not left, f"{len(left)} processes outlive the box")


# Numbers of the calls that build the box; each fails in turn, and the payload must not run.
STEPS = {
    "mount": 165, "umount2": 166, "pivot_root": 155, "open_tree": 428, "move_mount": 429, "fsopen": 430, "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
    "unshare": 272, "sethostname": 170, "setresuid": 117, "setresgid": 119, "capset": 126, "capget": 125, "prctl": 157, "seccomp": 317,
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "keyctl": 250, "prlimit64": 302, "close_range": 436,
    "dup3": 292, "setsid": 112, "chdir": 80, "getcwd": 79, "clone3": 435, "memfd_create": 319, "openat2": 437, "mkdirat": 258, "symlinkat": 266,
    "rt_sigprocmask": 14, "execveat": 322, "socketpair": 53, "pipe2": 293,
}


@test
def C9_every_step_fails_closed(suite):
    bad = []
    for name, number in {**STEPS, **({"setgroups": 116} if suite.root else {})}.items():
        for error in (1, 12, 22):       # EPERM, ENOMEM, EINVAL
            done = suite.box([], "/bin/echo", "RAN", prefix=(suite.bin / "fault", str(number), str(error)))
            if b"RAN" in done.stdout or done.returncode != 125:
                bad.append(f"{name}={error}: exit status {done.returncode}{', payload ran' if b'RAN' in done.stdout else ''}")
    check(not bad, "; ".join(bad))


# ---- E: ids ---------------------------------------------------------------------------------------------------------


def zero_is_not_mapped(pid):
    first = {}
    for name in ("uid_map", "gid_map"):
        for line in Path(f"/proc/{pid}/{name}").read_text().splitlines():
            _, outside, count = (int(word) for word in line.split())
            check(outside > 0 and count > 0, f"{name}: {line}")
            first.setdefault(name, outside)
    return first


@test
def E1_seen_from_the_host(suite):
    for options in ([], ["-v", f"{suite.directory('ws')}:/ws"], ["-u", "1:1"], ["-u", "65533"]):
        process, init, payload = suite.running(options, "/attack/attack_limits", "H_wait")
        try:
            zero_is_not_mapped(init)
            zero_is_not_mapped(payload)
            one, two = fields(init), fields(payload)
            for status in (one, two):
                check("0" not in status["Uid"] and "0" not in status["Gid"], f"{status['Name']} has uid {status['Uid']}")
                check(all(int(status[key][0], 16) == 0 for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")), f"{status['Name']} has privileges")
                check(status["NoNewPrivs"] == ["1"], f"{status['Name']} lacks no_new_privs")
                check(not status["Groups"], f"{status['Name']} has groups {status['Groups']}")
            check(two["Seccomp"] == ["2"], "the payload has no filter")
            check(not suite.root or one["Uid"] != two["Uid"], "pid 1 has the payload's id")
        finally:
            process.kill()
            process.communicate()


@test
def E1_two_boxes_differ(suite):
    needs_root(suite)
    boxes = [suite.running([], "/attack/attack_limits", "H_wait") for _ in range(3)]
    try:
        first = [zero_is_not_mapped(box[2])["uid_map"] for box in boxes]
        check(len(set(first)) == 3, f"two boxes share ids: {first}")
    finally:
        for process, _, _ in boxes:
            process.kill()
            process.communicate()


@test
def E3_groups_dropped_or_told(suite):
    needs_root(suite)
    for ids in (["--groups=4,27"], ["--reuid=1200", "--regid=1200", "--groups=4,27"]):
        result = suite.result([], "/bin/cat", "/proc/self/status", prefix=("setpriv", *ids))
        groups = re.search(r"^Groups:\t(.*)$", result["stdout"], re.M)
        told = any(word.startswith("groups") for word in result["isolation"]["missing"])
        check(groups and (not groups.group(1).strip() or told), f"groups kept and not told: {result['isolation']['missing']}")


@test
def E5_user_field(suite):
    for text in ("0", "0:0", "1000:0", "0:1000", "0x0", "+0", "-1", " 1000", "1000 ", "1e3", "1000:", ":1000", "4294967296", "4294967295", "65536", "01000x", "root", ""):
        done = suite.box(["-u", text], "/bin/echo", "RAN")
        check(done.returncode == 125 and b"RAN" not in done.stdout, f"-u '{text}' was taken")


@test
def E5_twin_user(suite):
    done = suite.box(["-u", "1234:2345"], "/bin/sh", "-c", "id -u; id -g")
    check(done.stdout == b"1234\n2345\n", shorten(done.stdout + done.stderr))


@test
def E6_signals(suite):
    wrapper = ("import os, signal, sys\n"
               "for s in (signal.SIGHUP, signal.SIGUSR2, signal.SIGCHLD, signal.SIGTSTP): signal.signal(s, signal.SIG_IGN)\n"
               "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGTERM, signal.SIGALRM, signal.SIGINT])\n"
               "os.umask(0o077); signal.setitimer(signal.ITIMER_REAL, 50); os.nice(0)\n"
               "os.execv(sys.argv[1], sys.argv[1:])\n")
    suite.row("attack_ids", "E6_signals", prefix=(sys.executable, "-c", wrapper))


@test
def E8_core(suite):
    workspace = suite.directory("ws")
    suite.row("attack_ids", "E8_core", ["-v", f"{workspace}:/ws"], prefix=("bash", "-c", 'ulimit -c unlimited; exec "$@"', "bash"))
    harmless(workspace)


# ---- F, G: terminal, IPC, network -----------------------------------------------------------------------------------


def on_terminal(suite, *command):
    words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
    done = subprocess.run(["script", "-qec", words, "/dev/null"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env=suite.environment(), timeout=LIMIT, check=False, cwd=suite.top)
    check(done.returncode == 0 and done.stdout.strip().endswith(b"stopped"), shorten(done.stdout))


@test
def F1_callers_terminal(suite):
    """px on a terminal of the caller, the box without one: it must not be able to reach the caller's."""
    for program, name in (("attack_ipc", "F3_pts"), ("attack_fs", "A5_kinds"), ("attack_syscall", "D11_ioctls"), ("attack_fs", "A12_dev_list")):
        on_terminal(suite, *suite.command((), f"/attack/{program}", name))


@test
def F1_own_terminal(suite):
    on_terminal(suite, *suite.command(("-t",), "/attack/attack_syscall", "D11_ioctls"))


@test
def F5_control_bytes(suite):
    done = suite.box([], "/usr/bin/printf", r"\033]52;c;eA==\007\033[2J\000\302\233\377\177\r", json_result=True)
    json.loads(done.stdout)
    raw = [byte for byte in done.stdout.rstrip(b"\n") if byte < 0x20 or byte == 0x7f]
    check(not raw and b"\xc2\x9b" not in done.stdout and b"\xff" not in done.stdout, f"control bytes in JSON: {shorten(repr(done.stdout)[-400:])}")


@test
def F9_locks(suite):
    process = suite.start([], "/attack/attack_ipc", "F9_hold")
    try:
        check(b"holding" in process.stdout.readline(), "the box did not start")
        for options in ([], [], ["-m", "64m"] if suite.root else []):
            done = suite.box(options, "/bin/echo", "RAN")
            check(done.stdout == b"RAN\n", f"another box does not start: {shorten(done.stderr)}")
    finally:
        process.kill()
        process.communicate()


@test
def G15_port_stays_inside(suite):
    process = suite.start(["--net", "loopback"], "/attack/attack_ipc", "G15_listen")
    try:
        check(b"listening" in process.stdout.readline(), "the box did not start")
        for address in ("127.0.0.1", "::1"):
            try:
                socket.create_connection((address, suite.fixtures.free), timeout=2).close()
            except OSError:
                continue
            raise Failed(f"the box's port is open on {address}")
    finally:
        process.kill()
        process.communicate()


# ---- H: life and death ----------------------------------------------------------------------------------------------


@test
def H1_daemon(suite):
    mark = suite.mark()
    done = suite.box([], "/attack/attack_limits", "H1_daemon", mark)
    left = marked(mark)
    check(done.returncode == 0 and not left, f"exit status {done.returncode}, {len(left)} processes outlive the box")


@test
def H1_nohup(suite):
    mark = suite.mark()
    suite.box([], "/bin/sh", "-c", f"nohup setsid sh -c 'sleep 50; : {mark}' >/dev/null 2>&1 & sleep 0.1")
    check(not marked(mark), "a process outlives the box")


@test
def H2_px_killed(suite):
    for options in ([], ["-m", "64m"] if suite.root else ["--net", "loopback"]):
        mark = suite.mark()
        process, _, _ = suite.running(options, "/attack/attack_limits", "H2_daemons", mark)
        check(len(marked(mark)) >= 7, "the daemons are not there")
        process.kill()
        process.communicate()
        left = gone(mark)
        check(not left, f"{len(left)} processes live on after px was killed")


@test
def H2_px_killed_stopped(suite):
    mark = suite.mark()
    process, _, _ = suite.running([], "/attack/attack_limits", "H4_stopped", mark)
    process.kill()
    process.communicate()
    check(not gone(mark), "stopped processes live on after px was killed")


@test
def H2_px_killed_during_start(suite):
    """kill -9 at many moments of the start, also before pid 1 has its orders: nothing may be left waiting for ever."""
    mark = suite.mark()
    workspace = suite.directory("ws")
    for step in range(120):
        process = suite.start(["-v", f"{workspace}:/ws"], "/attack/attack_limits", "H_wait", mark, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep((step % 60) * 0.00005)
        process.kill()
        process.wait()
    left = gone(mark)
    where = [Path(f"/proc/{pid}/wchan").read_text() for pid in left[:3]] if suite.root else []
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    check(not left, f"{len(left)} half-made boxes are left waiting for ever {where}")


@test
def H2_cgroup_swept(suite):
    needs_root(suite)
    process, init, _ = suite.running(["-m", "64m"], "/attack/attack_limits", "H_wait")
    name = re.search(r"px-[0-9a-f]+", Path(f"/proc/{init}/cgroup").read_text())
    process.kill()
    process.communicate()
    check(name, "the box has no cgroup")

    def left():
        return [str(path) for path in Path("/sys/fs/cgroup").glob(f"*/{name.group()}")]

    for _ in range(50):         # the group is busy until its last process is reaped
        suite.box(["-m", "64m"], "/bin/true")
        if not left():
            return
        time.sleep(0.1)
    raise Failed(f"{left()} are left")


@test
def H3_term_ignored(suite):
    mark = suite.mark()
    process, _, _ = suite.running([], "/attack/attack_limits", "H3_ignore", mark)
    process.terminate()
    process.communicate(timeout=LIMIT)
    check(process.returncode == 137 and not marked(mark), f"exit status {process.returncode}, {len(marked(mark))} left")


@test
def H3_timeout(suite):
    for row in ("H3_ignore", "H4_hop", "H4_stopped", "H2_daemons"):
        mark = suite.mark()
        done = suite.box(["--timeout", "250ms"], "/attack/attack_limits", row, mark)
        left = marked(mark)
        check(done.returncode == 124 and not left, f"{row}: exit status {done.returncode}, {len(left)} left")


@test
def H4_hop_cgroup(suite):
    needs_root(suite)
    mark = suite.mark()
    done = suite.box(["--timeout", "250ms", "-m", "128m"], "/attack/attack_limits", "H4_hop", mark)
    check(done.returncode == 124 and not marked(mark), f"exit status {done.returncode}")


@test
def H6_pipe_held(suite):
    mark = suite.mark()
    done = suite.box([], "/attack/attack_limits", "H6_pipe_held", mark)
    check(done.returncode == 0 and not marked(mark), f"exit status {done.returncode}")


@test
def H6_pipe_held_json(suite):
    result = suite.result([], "/attack/attack_limits", "H6_pipe_held")
    check(result["status"] == "ok", result["status"])


@test
def H10_timeout_races_exit(suite):
    for _ in range(30):
        result = suite.result(["--timeout", "20ms"], "/bin/sleep", "0.012")
        answer = (result["status"], result["exit_code"], result["timed_out"])
        check(answer in (("ok", 0, False), ("timeout", 124, True)), f"a mixed answer: {answer}")


@test
def H13_forged_verdict(suite):
    done = suite.box([], "/attack/attack_limits", "H13_forge", json_result=True)
    result = json.loads(done.stdout)
    check((result["status"], result["exit_code"], done.returncode) == ("nonzero", 3, 3), f"{result['status']} {result['exit_code']} {done.returncode}")


@test
def H13_twin_status(suite):
    for code in (0, 1, 42, 255):
        check(suite.box([], "/bin/sh", "-c", f"exit {code}").returncode == code, f"status {code} did not come out")
    check(suite.box([], "/bin/sh", "-c", "kill -TERM $$").returncode == 143, "the signal did not come out")


# ---- I: limits ------------------------------------------------------------------------------------------------------


@test
def I2_no_cgroup_fails_closed(suite):
    if suite.root:
        raise Skipped("root has cgroups")
    for preset in (["-m", "64m"], ["--cpus", "0.5"], ["--preset", "untrusted"]):
        done = suite.box(preset, "/bin/echo", "RAN", json_result=True)
        if done.returncode == 0:
            check("memory=cgroup" in done.stdout.decode() or "cpus=cgroup" in done.stdout.decode(), f"{preset}: ran without the limit")
        else:
            check(done.returncode == 125 and b"RAN" not in done.stdout, f"{preset}: exit status {done.returncode}")


def resident(pid):
    return int(fields(pid)["VmRSS"][0]) << 10


def sample(process, seconds=LIMIT):
    """The supervisor's memory while its box floods, from its first answers to its last."""
    seen, end = [], time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        try:
            seen.append(resident(process.pid))
        except (OSError, KeyError):
            break
        time.sleep(0.003)
    return seen


@test
def I7_flood(suite):
    for json_result in (False, True):
        command = suite.command(("--output-limit", "256k") if json_result else (), "/attack/attack_limits", "I7_flood", json_result=json_result)
        with open(os.devnull, "wb") as null:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=null, stderr=null, env=suite.environment())
            seen = sample(process)
        check(process.wait(timeout=LIMIT) == 0, f"exit status {process.returncode}")
        check(len(seen) > 3, "the flood was over before it could be watched")
        check(max(seen) < 24 << 20, f"px grew to {max(seen) >> 20} MiB")


@test
def I7_flood_kept_whole(suite):
    """What px keeps is what the limit says, head and tail, whatever the box writes."""
    result = suite.result(["--output-limit", "64k"], "/attack/attack_limits", "I7_flood")
    check(len(result["stdout"]) < 300000 and result["truncated"]["stdout"] and result["truncated"]["stdout_bytes"] == 100 << 20,
          f"{len(result['stdout'])} kept of {result['truncated']}")


@test
def I7_unread(suite):
    """Nobody reads: the box ends at its time all the same, and px does not grow."""
    mark = suite.mark()
    process = suite.start(["--timeout", "400ms"], "/attack/attack_limits", "I7_flood", mark)
    try:
        end = time.monotonic() + 10
        while time.monotonic() < end and any(pid != process.pid for pid in marked(mark)):
            time.sleep(0.02)
        left = [pid for pid in marked(mark) if pid != process.pid]
        check(not left, "the box lives on because nobody reads")
        if process.poll() is None:
            check(resident(process.pid) < 24 << 20, "px grew")
    finally:
        process.stdout.close()
        process.stderr.close()
    check(process.wait(timeout=LIMIT) == 124, f"exit status {process.returncode}")


@test
def I7_end_at_limit(suite):
    result = suite.result(["--output-limit", "64k", "--output-end"], "/attack/attack_limits", "I7_flood")
    check(result["status"] == "output" and len(result["stdout"]) <= 65536, f"{result['status']}, {len(result['stdout'])} bytes")


@test
def I8_endless(suite):
    check(suite.box(["--timeout", "200ms"], "/attack/attack_limits", "I8_spin").returncode == 124, "no timeout")
    done = suite.box(["--cpu-time", "1s"], "/attack/attack_limits", "I8_spin")
    check(done.returncode in (128 + signal.SIGXCPU, 137), f"processor time: exit status {done.returncode}")


@test
def I11_deep(suite):
    workspace = suite.directory("ws")
    suite.row("attack_limits", "I11_deep", ["-v", f"{workspace}:/ws"])
    check(not (workspace / ".px-hoisted-0").exists(), "px moved directories of the caller's tree")


@test
def I12_denials(suite):
    done = suite.box([], "/attack/attack_limits", "I12_denials")
    check(done.returncode == 0 and len(done.stderr) < 1000, f"exit status {done.returncode}, {len(done.stderr)} bytes of messages")
