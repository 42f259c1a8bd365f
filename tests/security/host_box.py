"""Sections B, C, E, F and G with a hand on the host: pid 1, the supervisor, ids, terminals, the network."""

import fcntl
import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

from suite import (LIMIT, Failed, Skipped, check, everywhere, fields, harmless, landlock_only, needs_root, shorten, test)


# ---- B, C: processes and the supervisor -----------------------------------------------------------------------------


@test
def B9_kill_everybody(suite):
    done = suite.box([], "/bin/sh", "-c", "[ $$ -lt 100 ] && kill -9 -1; kill -9 $$")
    check(done.returncode == 137, f"exit status {done.returncode}")
    check(suite.fixtures.victim.poll() is None, "the victim is dead")


@test
def C1_init_is_sealed(suite):
    if not suite.root:
        raise Skipped("only root can look at the program of pid 1")
    process, init, _ = suite.running([], suite.program, "H_wait")
    try:
        fd = os.open(f"/proc/{init}/exe", os.O_RDONLY)
        seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
        os.close(fd)
        wanted = fcntl.F_SEAL_SEAL | fcntl.F_SEAL_WRITE | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SHRINK
        check(seals & wanted == wanted, f"the program of pid 1 can be changed: seals {seals:x}")
        try:
            os.close(os.open(f"/proc/{init}/exe", os.O_WRONLY))
        except OSError:
            return
        raise Failed("the program of pid 1 opens for writing")
    finally:
        process.kill()
        process.communicate()


@everywhere
def C2_init_not_dumpable(suite):
    if suite.root:
        raise Skipped("the owner of its /proc files tells nothing where pid 1 has the box's id 0")
    process, init, _ = suite.running([], suite.program, "H_wait")
    try:
        check(os.stat(f"/proc/{init}/environ").st_uid != os.geteuid(),
              "pid 1 is dumpable: its /proc files belong to the payload's own id")
    finally:
        process.kill()
        process.communicate()


@everywhere
def C2_supervisor_not_dumpable(suite):
    if suite.root:
        raise Skipped("root reads any process")
    process, _, _ = suite.running([], suite.program, "H_wait")
    try:
        check(os.stat(f"/proc/{process.pid}/environ").st_uid != os.geteuid(), "px is dumpable while a box of the same id runs")
    finally:
        process.kill()
        process.communicate()


@everywhere
def C4_environment_wiped(suite):
    process, init, payload = suite.running([], suite.program, "H_wait")
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


@everywhere
def C6_twin_report(suite):
    top = suite.directory("report")
    suite.box(["--report", str(top / "report.json")], "/bin/echo", "hello")
    check(json.loads((top / "report.json").read_text())["status"] == "ok", "no report")


NO_USERNS = "echo 0 >/proc/sys/user/max_user_namespaces && exec \"$@\""


@test
def C8_fails_closed(suite):
    prefix = ("unshare", "--user", "--map-root-user", "sh", "-c", NO_USERNS, "sh")
    if subprocess.run([*prefix, "true"], capture_output=True, check=False).returncode:
        raise Skipped("cannot make a place without user namespaces")
    done = suite.box([], "/bin/echo", "RAN", prefix=prefix)
    check(done.returncode == 125 and b"RAN" not in done.stdout,
          f"exit status {done.returncode}: {shorten(done.stdout)}")
    check(b"PX" in done.stderr, "no error was said")


@landlock_only
def C8_landlock_tier(suite):
    """Where the weaker tier is asked for by name it says so; the rows of data/attacks.def show what it holds."""
    result = suite.result([], "/bin/echo", "RAN")
    check(result["stdout"] == "RAN\n" and result["isolation"]["tier"] == "landlock", shorten(str(result)))
    missing = {word.split(":")[0] for word in result["isolation"]["missing"]}
    check({"namespaces", "root", "ids", "tmpfs"} <= missing and "net" not in missing, f"missing: {missing}")
    result = suite.result(["--net", "host"], "/bin/echo", "RAN")
    check(any(word.startswith("net:") for word in result["isolation"]["missing"]), f"missing: {result['isolation']['missing']}")


@landlock_only
def C8_landlock_not_by_itself(suite):
    """Nobody gets the weaker tier who did not ask for it."""
    done = subprocess.run([suite.px, "exec", "--", "/bin/echo", "RAN"], capture_output=True, timeout=LIMIT, check=False,
                          env=suite.environment())
    check(done.returncode == 125 and b"RAN" not in done.stdout and b"PX010" in done.stderr,
          f"exit status {done.returncode}: {shorten(done.stdout + done.stderr)}")


@landlock_only
def C8_landlock_swept(suite):
    """The home of a box whose px was killed goes with the next box."""
    process, _, payload = suite.running([], suite.program, "H_wait")
    homes = {str(path) for path in Path(os.environ.get("TMPDIR", "/tmp")).glob("px-homes-*/home-*")}
    process.kill()
    process.communicate()
    check(homes, "the box has no home")
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:       # px-init holds it until it has ended the tree
        suite.box([], "/bin/true")
        left = [path for path in homes if os.path.exists(path) and not in_use(path)]
        if not left:
            return
    raise Failed(f"{left} are left")


def in_use(path):
    try:
        fd = os.open(path, os.O_RDONLY)
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    os.close(fd)
    return False


# Numbers of the calls that build the box; each fails in turn, and the payload must not run.
STEPS = {
    "mount": 165, "umount2": 166, "pivot_root": 155, "open_tree": 428, "move_mount": 429, "fsopen": 430,
         "fsconfig": 431, "fsmount": 432, "mount_setattr": 442,
    "unshare": 272, "sethostname": 170, "setresuid": 117, "setresgid": 119, "capset": 126, "capget": 125,
         "prctl": 157, "seccomp": 317,
    "landlock_create_ruleset": 444, "landlock_add_rule": 445, "landlock_restrict_self": 446, "keyctl": 250,
         "prlimit64": 302, "close_range": 436,
    "dup3": 292, "setsid": 112, "chdir": 80, "getcwd": 79, "clone3": 435, "memfd_create": 319,
         "mkdirat": 258, "symlinkat": 266,
    "rt_sigprocmask": 14, "execveat": 322, "socketpair": 53, "pipe2": 293,
}


TOLD = {"landlock_create_ruleset": "landlock", "sethostname": "hostname: "}


@test
def C9_every_step_fails_closed(suite):
    bad = []
    for name, number in {**STEPS, **({"setgroups": 116, "openat2": 437} if suite.root else {})}.items():
        for error in (1, 12, 22):       # EPERM, ENOMEM, EINVAL
            done = suite.box([], "/bin/echo", "RAN", prefix=(suite.bin / "fault", str(number), str(error)))
            if b"RAN" in done.stdout and name in TOLD:  # may be absent, and then is told
                done = suite.box([], "/bin/echo", "RAN", prefix=(suite.bin / "fault", str(number), str(error)),
                                 json_result=True)
                if any(word.startswith(TOLD[name]) for word in json.loads(done.stdout)["isolation"]["missing"]):
                    continue
            if b"RAN" in done.stdout or done.returncode not in (125, 126):
                ran = ", payload ran" if b"RAN" in done.stdout else ""
                bad.append(f"{name}={error}: exit status {done.returncode}{ran}")
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
        process, init, payload = suite.running(options, suite.program, "H_wait")
        try:
            zero_is_not_mapped(init)
            zero_is_not_mapped(payload)
            one, two = fields(init), fields(payload)
            for status in (one, two):
                check("0" not in status["Uid"] and "0" not in status["Gid"],
                      f"{status['Name']} has uid {status['Uid']}")
                check(all(int(status[key][0], 16) == 0 for key in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")),
                      f"{status['Name']} has privileges")
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
    boxes = [suite.running([], suite.program, "H_wait") for _ in range(3)]
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
        check(groups and (not groups.group(1).strip() or told),
              f"groups kept and not told: {result['isolation']['missing']}")


@test
def E5_user_field(suite):
    for text in ("0", "0:0", "1000:0", "0:1000", "0x0", "+0", "-1", " 1000", "1000 ", "1e3", "1000:", ":1000",
                 "4294967296", "4294967295", "65536", "01000x", "root", ""):
        done = suite.box(["-u", text], "/bin/echo", "RAN")
        check(done.returncode == 125 and b"RAN" not in done.stdout, f"-u '{text}' was taken")


@test
def E5_twin_user(suite):
    done = suite.box(["-u", "1234:2345"], "/bin/sh", "-c", "id -u; id -g")
    check(done.stdout == b"1234\n2345\n", shorten(done.stdout + done.stderr))


def started_with(suite, statements):
    """The row E6_signals under a caller in an odd state."""
    wrapper = f"import os, signal, sys\n{statements}\nos.execv(sys.argv[1], sys.argv[1:])\n"
    suite.row("E6_signals", ["--timeout", "10s"], prefix=(sys.executable, "-c", wrapper))


@everywhere
def E6_signals_ignored(suite):
    started_with(suite, "for s in (1, 12, 13, 15, 20): signal.signal(s, signal.SIG_IGN)")    # HUP USR2 PIPE TERM TSTP


@everywhere
def E6_signals_blocked(suite):
    started_with(suite, "signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 64))")


@everywhere
def E6_sigchld_ignored(suite):
    started_with(suite, "signal.signal(signal.SIGCHLD, signal.SIG_IGN)")


@everywhere
def E6_timer(suite):
    started_with(suite, "signal.setitimer(signal.ITIMER_REAL, 50)")


@everywhere
def E6_umask(suite):
    for mask in (0o077, 0o777, 0):
        started_with(suite, f"os.umask({mask})")


@test
def B8_watch_base_told(suite):
    """File systems mounted below /usr, which no overlay shows: they are seen, and the result says what that costs."""
    mounted = 'mount -t tmpfs none /usr/local/share && : >/usr/local/share/here && exec "$@"'
    prefix = ("unshare", "--user", "--map-root-user", "--mount") if not suite.root else ("unshare", "--mount")
    if subprocess.run([*prefix, "sh", "-c", mounted, "sh", "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("nothing can be mounted here")
    result = suite.result([], "/bin/ls", "/usr/local/share", prefix=(*prefix, "sh", "-c", mounted, "sh"))
    check(result["stdout"] == "here\n", f"the mount below /usr is not there: {result['stdout']!r}")
    check(any(word.startswith("inotify: ") for word in result["isolation"]["missing"]), f"{result['isolation']['missing']}")


@test
def E8_core(suite):
    workspace = suite.directory("ws")
    suite.row("E8_core", ["-v", f"{workspace}:/ws"],
              prefix=("bash", "-c", 'ulimit -c unlimited; exec "$@"', "bash"))
    harmless(workspace)


# ---- F, G: terminal, IPC, network -----------------------------------------------------------------------------------


def on_terminal(suite, *command):
    words = " ".join("'" + word.replace("'", "'\\''") + "'" for word in command)
    done = subprocess.run(["script", "-qec", words, "/dev/null"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT,
                          env=suite.environment(), timeout=LIMIT, check=False, cwd=suite.top)
    check(done.returncode == 0 and b"stopped" in done.stdout, shorten(done.stdout))


@test
def F1_callers_terminal(suite):
    """px on a terminal of the caller, the box without one: it must not be able to reach the caller's."""
    for name in ("F3_pts", "A5_kinds", "D11_ioctls", "A12_dev_list"):
        on_terminal(suite, *suite.command((), suite.program, name))


@test
def F1_own_terminal(suite):
    on_terminal(suite, *suite.command(("-t",), suite.program, "D11_ioctls"))


@everywhere
def F5_control_bytes(suite):
    done = suite.box([], "/usr/bin/printf", r"\033]52;c;eA==\007\033[2J\000\302\233\377\177\r", json_result=True)
    json.loads(done.stdout)
    raw = [byte for byte in done.stdout.rstrip(b"\n") if byte < 0x20 or byte == 0x7f]
    check(not raw and b"\xc2\x9b" not in done.stdout and b"\xff" not in done.stdout,
          f"control bytes in JSON: {shorten(repr(done.stdout)[-400:])}")


@everywhere
def F9_locks(suite):
    process = suite.start([], suite.program, "F9_hold")
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
    process = suite.start(["--net", "loopback"], suite.program, "G15_listen")
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
