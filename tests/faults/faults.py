#!/usr/bin/python3
"""faults.py [--as UID] [--only CALL...] [--verbose] PX - every system call on the way to the payload fails once, and px must notice.

A good run under strace tells which calls px and its child make before the payload's exec, and how often. Then each of them is made
to fail in turn (strace -e inject). The payload must not run, px must end with 125, 126 or 127 and an error, and no process may be
left: a restriction is applied or nothing starts. TOLERATED lists the failures that may be survived, each with its reason.

Prints `ok CALL (N places)`, `not ok CALL: why`, and last "N passed, N failed, N skipped".
"""

import argparse
import collections
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import leaks  # noqa: E402  (the folder above is not a package)

DEADLINE_S = 30
WORDS = "PAYLOAD RAN"

# What makes and confines a box, and what the parent does for it. Calls that only move bytes or wait are not here.
CALLS = """
    mount_setattr move_mount fsopen fsconfig fsmount open_tree pivot_root umount2 mount setresuid setresgid setgroups capset capget
    getresuid getresgid prctl seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self close_range execve execveat
    dup3 sethostname unshare setns keyctl chdir fchdir getcwd prlimit64 setsid clone3 mkdirat symlinkat openat openat2 newfstatat stat
    fstat statx unlinkat memfd_create fcntl socketpair pipe2 flock write pwrite64 fchown fchownat chown ioctl socket sendto
    signalfd4 timerfd_create epoll_create1 rt_sigprocmask pidfd_open
""".split()

# (call, what its arguments look like, who makes it, why it may fail). Who: px is the caller's process, box is the child before exec.
TOLERATED = [
    ("landlock_create_ruleset", r"NULL, 0, .*VERSION", "px", "the probe: without Landlock the result lists it as missing"),
    ("prctl", r"PR_(GET|SET)_DUMPABLE", "px", "the supervisor's own mark; the box's is set by the child"),
    ("openat", r"O_PATH", "box", "a Landlock rule that is not added grants nothing"),
    ("stat|newfstatat", r'"/(lib32|libx32|lib64|sbin|bin|lib|etc/[a-z.]+)"', "px", "a link or file of the base that is left out"),
    ("fcntl", r"F_GETFL|F_SETFL|F_GETFD|F_DUPFD_CLOEXEC", "px", "px's own streams"),
    ("ioctl", r"TCGETS|TIOCGWINSZ|TCSETS", "px", "the caller's terminal, which may be none"),
    ("rt_sigprocmask", r"", "px", "px's own mask"),
    ("unlinkat|flock|openat|openat2|fstat|newfstatat|fcntl|mkdirat", r"px-|/sys/fs/cgroup|/proc/self/(mountinfo|cgroup)", "px",
     "sweeping the groups of others"),
    ("write", r"^[12], ", "px", "the caller's own streams"),
    ("openat|newfstatat|fcntl|write|fstat", r"", "after", "the box runs already"),
    ("signalfd4|timerfd_create|epoll_create1|pidfd_open|sendto|statx|prctl|ioctl|rt_sigprocmask|flock|unlinkat|openat2|mkdirat|stat|close_range",
     r"", "after", "the box runs already"),
]

LINE = re.compile(r"^(\d+) +(?:(\w+)\((.*)|<\.\.\. (\w+) resumed>(.*))$")


# ---- reading a trace -----------------------------------------------------------------------------------------------


class Trace:
    """The calls of a run in order: (pid, who, name, arguments, injected). who is px, box, or after (the box runs)."""

    def __init__(self, path):
        self.calls = []
        self.main = None
        self.executed = set()
        self.payload_runs = False
        self.open = {}
        for line in Path(path).read_text(errors="replace").splitlines():
            self._take(line)

    def _take(self, line):
        match = LINE.match(line)
        if not match:
            return
        pid, name, rest = int(match[1]), match[2] or match[4], match[3] or match[5]
        if match[2]:
            self.main = self.main or pid
            self.calls.append([pid, self._who(pid), name, rest, "(INJECTED)" in rest])
            self.open[pid] = len(self.calls) - 1
        elif pid in self.open:
            self.calls[self.open[pid]][3] += rest
            self.calls[self.open[pid]][4] |= "(INJECTED)" in rest
        if name in ("execve", "execveat") and re.search(r"= 0$", rest) and pid != self.main:
            self.executed.add(pid)
            self.payload_runs = True

    def _who(self, pid):
        if pid in self.executed:
            return "inside"
        if pid == self.main:
            return "after" if self.payload_runs else "px"
        return "box"

    def counts(self):
        """How often each call comes at most in one process, before it is none of ours: the counter of strace is per process."""
        most = collections.Counter()
        each = collections.Counter()
        for pid, who, name, _, _ in self.calls:
            each[pid, name] += 1
            if who in ("px", "box"):
                most[name] = max(most[name], each[pid, name])
        return most

    def injected(self):
        return [call for call in self.calls if call[4] and call[1] != "inside"]


def tolerated(call):
    _, who, name, arguments, _ = call
    return any(re.fullmatch(names, name) and who == whose and re.search(pattern, arguments) for names, pattern, whose, _ in TOLERATED)


# ---- running -------------------------------------------------------------------------------------------------------


def run(px, words, uid, top, inject=None):
    """(status, stderr, whether the payload ran, trace)."""
    place = tempfile.mkdtemp(dir=top)
    mark = os.path.join(place, "mark")
    os.mkdir(mark)
    for path in (place, mark):
        os.chmod(path, 0o777)
    trace = os.path.join(place, "trace")
    payload = ["/usr/bin/busybox", "sh", "-c", f"echo {WORDS}; : >/mark/ran"]
    command = ["strace", "-f", "-qq", "-s", "64", "-o", trace, *(["-e", f"inject={inject}"] if inject else []),
               px, "exec", *words, "-v", f"{mark}:/mark", "--", *payload]
    if uid:
        command = ["setpriv", "--reuid", str(uid), "--regid", str(uid), "--clear-groups", "--", *command]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False)
        status, out, err = done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        status, out, err = None, "", "still running"
    ran = WORDS in out or os.path.exists(os.path.join(mark, "ran"))
    seen = Trace(trace) if os.path.exists(trace) else None
    shutil.rmtree(place, ignore_errors=True)
    return status, err, ran, seen


def judge(job):
    """(call, n, verdict, text): verdict is ok, not ok, or none where the failure hit nothing of ours."""
    px, words, uid, top, name, n = job
    status, err, ran, trace = run(px, words, uid, top, f"{name}:error=EPERM:when={n}")
    left = leaks.processes_left(5)
    hits = trace.injected() if trace else []
    where = "; ".join(f"{who} {call}({arguments[:100]}" for _, who, call, arguments, _ in hits)
    if left:
        return name, n, "not ok", f"call {n} [{where}]: left {left[0]}"
    if status is None:
        return name, n, "not ok", f"call {n} [{where}]: px hangs"
    if not hits:
        return name, n, "none", ""
    if ran:
        return name, n, *(("ok", "") if all(tolerated(call) for call in hits) else ("not ok", f"call {n} [{where}]: THE PAYLOAD RAN"))
    if all(tolerated(call) for call in hits) and status in (0, 125, 126, 127):
        return name, n, "ok", ""
    if status not in (125, 126, 127):
        return name, n, "not ok", f"call {n} [{where}]: exit status {status}: {err[:200]!r}"
    if not re.search(r"^PX\d\d\d  ", err, re.MULTILINE):
        return name, n, "not ok", f"call {n} [{where}]: no error was said: {err[:200]!r}"
    return name, n, "ok", ""


def configurations(uid, top):
    """What differs in the calls that it makes."""
    rootfs = os.path.join(top, "rootfs")
    os.makedirs(os.path.join(rootfs, "usr/bin"))
    shutil.copy("/usr/bin/busybox", os.path.join(rootfs, "usr/bin/busybox"))
    few = ["fsopen", "fsconfig", "fsmount", "move_mount", "fchdir", "openat", "newfstatat", "pivot_root"]
    if uid:
        return [(["--net", "loopback"], None)]
    return [
        (["--memory", "64m", "--net", "loopback", "--disk", "8m"], None),
        (["-t"], ["ioctl", "sendmsg", "openat", "dup3", "setsid"]),
        (["--rootfs", rootfs], few),
    ]


def jobs_for(px, words, uid, top, calls):
    status, err, ran, trace = run(px, words, uid, top)
    if status != 0 or not ran:
        raise RuntimeError(f"the good run of {words} ended with {status}: {err[:300]}")
    counts = trace.counts()
    return [(px, words, uid, top, name, n) for name in calls for n in range(1, counts[name] + 1)]


def publish(px, top):
    os.chmod(top, 0o755)
    copy = os.path.join(top, "px")
    shutil.copyfile(px, copy)
    os.chmod(copy, 0o755)
    work = os.path.join(top, "work")
    os.mkdir(work)
    os.chmod(work, 0o777)
    return copy, work


def strace_works():
    try:
        done = subprocess.run(["strace", "-f", "-qq", "-o", "/dev/null", "-e", "inject=getppid:error=EPERM", "true"], capture_output=True, check=False)
    except OSError as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.decode(errors="replace").strip()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--as", dest="uid", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("px")
    options = parser.parse_args()
    problem = strace_works() or ("" if os.path.exists("/usr/bin/busybox") else "there is no busybox")
    if problem:
        print(f"skip faults: {problem}\n0 passed, 0 failed, 1 skipped")
        return 0
    good, bad = collections.Counter(), collections.defaultdict(list)
    leaks.become_subreaper()
    with tempfile.TemporaryDirectory(prefix="faults.") as top:
        px, work = publish(options.px, top)
        jobs = []
        for words, calls in configurations(options.uid, top):
            jobs += jobs_for(px, words, options.uid, work, options.only or calls or CALLS)
        with multiprocessing.Pool(max(2, os.cpu_count() or 1), leaks.become_subreaper) as pool:
            for name, n, verdict, text in pool.imap_unordered(judge, jobs, 4):
                if verdict == "ok":
                    good[name] += 1
                elif verdict == "not ok":
                    bad[name].append(text)
                if options.verbose:
                    print(f"# {name} {n}: {verdict} {text}", flush=True)
    for name in sorted(set(good) | set(bad)):
        print(f"not ok {name}: {len(bad[name])} of {good[name] + len(bad[name])} places" if bad[name] else f"ok {name} ({good[name]} places)")
        for text in bad[name]:
            print(f"    | {text}")
    print(f"{len(set(good) - set(bad))} passed, {len(bad)} failed, 0 skipped")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
