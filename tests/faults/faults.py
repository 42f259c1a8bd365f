#!/usr/bin/python3
"""faults.py [--as UID] [--only CALL...] [--verbose] INJECT PX - every system call on the way to the payload fails once, and px must notice.

A good run under INJECT (tests/faults/inject.c) tells which calls px and each process of the box make before the payload runs, and
how often. Then each of them is made to fail in turn, in that process alone. The payload must not run, px must end with 125, 126 or
127 and an error, and no process may be left: a restriction is applied or nothing starts. TOLERATED lists the failures that may be
survived, each with its reason, TOLD those that the result has to name.

Once the root is there the payload goes its way, and pid 1 becomes px-init beside it; a failure of pid 1 may find the payload running,
so it is enough there that px ends the box and says so.

Prints `ok CALL (N places)`, `not ok CALL: why`, and last "N passed, N failed, N skipped".
"""

import argparse
import collections
import errno
import json
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
sys.dont_write_bytecode = True
import leaks  # noqa: E402  (the folder above is not a package)

DEADLINE_S = 30
SHOWN_MAX = 8
WORDS = "PAYLOAD RAN"
NUMBERS = "/usr/include/x86_64-linux-gnu/asm/unistd_64.h"

# What makes and confines a box, and what the parent does for it. Calls that only move bytes, wait or give up something are not here.
CALLS = """
    mount_setattr move_mount fsopen fsconfig fsmount open_tree pivot_root umount2 mount setresuid setresgid setgroups capset capget
    getresuid getresgid prctl seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self close_range execve execveat
    dup3 sethostname unshare setns keyctl chdir fchdir getcwd prlimit64 setsid clone3 mkdirat symlinkat open openat openat2
    newfstatat stat lstat fstat statx unlinkat memfd_create fcntl socketpair pipe2 flock write fchown fchownat ioctl socket sendmsg
    rt_sigprocmask
""".split()

# What a root that can be changed needs besides.
OVERLAY_CALLS = ["mount", "mkdirat", "open_tree", "mount_setattr", "setfsuid", "setfsgid", "fsetxattr", "prctl"]

# What a network that is carried needs besides.
NETWORK_CALLS = """
    socket socketpair bind listen setsockopt sendto sendmsg recvfrom unshare ioctl memfd_create ftruncate fcntl dup3 close_range clone3
    execve prctl setsid rt_sigprocmask openat
""".split()

PR_SET_PDEATHSIG, PR_GET_DUMPABLE, PR_SET_DUMPABLE, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC = 1, 3, 4, 1, 2, 3, 4, 1030
PR_GET_NO_NEW_PRIVS, SOL_NETLINK = 39, 270
WRITE_ONLY = 0x80001            # O_WRONLY | O_CLOEXEC
TERMINAL = (0x5401, 0x5402, 0x5413)             # TCGETS, TCSETS, TIOCGWINSZ

# (call, who makes it, a condition on its arguments and text, why it may fail)
TOLERATED = [
    ("landlock_create_ruleset", "px", lambda a, text: a[0] == 0, "the probe: without Landlock the result lists it as missing"),
    ("prctl", "px", lambda a, text: a[0] in (PR_GET_DUMPABLE, PR_SET_DUMPABLE), "px's own mark; the child sets the box's"),
    ("prctl", "px", lambda a, text: a[0] == PR_GET_NO_NEW_PRIVS, "a single id, and the result says so"),
    ("prlimit64", "px", lambda a, text: a[2] == 0, "px's own limit, only looked at"),
    ("openat", "payload", lambda a, text: a[2] & 0x200000, "O_PATH: a Landlock rule that is not added grants nothing"),
    ("stat|newfstatat|fstat", "px", lambda a, text: re.match(r"/(s?bin|lib|etc)", text), "a link or file of the base is left out"),
    ("stat|newfstatat|fstat", "px", lambda a, text: re.match(r"/(bin|lib|usr)", text), "the same"),
    ("open|openat", "px", lambda a, text: text == "/etc", "which settings of Java there are: they are left out"),
    ("close_range", "px", lambda a, text: a[2] != 0, "marks what px inherited; the box closes all of its own again"),
    ("prctl", "helper", lambda a, text: a[0] == PR_SET_PDEATHSIG, "a process that holds a namespace for a moment and sees nothing"),
    ("fcntl", "px", lambda a, text: a[1] in (F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC), "px's own descriptors"),
    ("ioctl", "px", lambda a, text: a[1] in TERMINAL, "the caller's terminal, which may be none"),
    ("rt_sigprocmask", "px", lambda a, text: True, "px's own mask"),
    # Groups: what a killed px left is looked for, and left to the next start where it cannot be looked at; a name that is taken is
    # tried again; the v2 tree of a host whose limits are in v1 only makes killing quicker.
    ("fstat|flock", "px", lambda a, text: True, "a group of another px, or one more attempt"),
    ("openat|openat2|newfstatat|unlinkat|mkdirat", "px", lambda a, text: text == "." or text.startswith("px-"), "the same"),
    ("openat", "px", lambda a, text: text == "cgroup.procs" and a[2] & 3 == 0, "whether the v2 tree can take a limit; else v1 does"),
    ("openat", "px", lambda a, text: text == "/sys/fs/cgroup/unified", "the v2 tree"),
    ("openat", "px", lambda a, text: text == "/proc/sys/kernel/core_pattern", "the result says that it is not known"),
    # For an ordinary user the log has no text of pid 1's calls; root's run tells an overlay from a tmpfs.
    ("mount", "init", lambda a, text: text == "overlay" or (not text and a[0] == a[2]), "the result lists it as missing"),
    ("openat", "px", lambda a, text: text == "/proc/self/fd", "the lock among the threads of one process, and px has one"),
    ("openat", "px", lambda a, text: text in ("/etc/passwd", "/etc/subuid", "/etc/subgid"), "a single id, and the result says so"),
    ("mkdirat", "px", lambda a, text: text == "/run/px", "it is there; if it were not, the next step would fail"),
    ("write", "px", lambda a, text: a[0] in (1, 2), "the caller's own streams"),
    ("write", "init", lambda a, text: a[2] == 1 and text == "0", "pid 1 stays in the group of the memory; the limit holds all the same"),
    ("setsockopt", "payload", lambda a, text: a[1] == SOL_NETLINK, "shorter answers of the kernel"),
    ("open|openat", "px", lambda a, text: text == "/proc/sys", "ports below 1024 stay closed in the box, as they are outside"),
    ("openat", "payload", lambda a, text: text in ("net/ipv4/ip_unprivileged_port_start", "") and a[2] == WRITE_ONLY, "the same"),
    ("write", "payload", lambda a, text: a[2] == 1 and text in ("0", ""), "the same; an ordinary user's log has no text of the payload's"),
    ("openat2", "px", lambda a, text: text == "memory.oom_control", "out of memory, the kernel ends one process and not all of them"),
    ("openat", "px", lambda a, text: text in ("/etc/resolv.conf", "/etc/hosts"), "names do not resolve in the box; more is not reached"),
    ("openat2", "px", lambda a, text: text.startswith("/"), "whether a source's path has links; else lstat looks at each part of it"),
    # A helper, before it is one: its own comfort. It confines itself later.
    ("rt_sigprocmask|setsid", "starting", lambda a, text: True, "a helper takes no signals of a terminal; px ends it"),
    ("prctl", "starting", lambda a, text: a[0] == PR_SET_PDEATHSIG, "px-net ends with its sockets"),
]

# What px goes without, and says so in the result: who makes the call, and how the word in isolation.missing begins. An id-mapped mount that
# cannot be made is one of a container.
TOLD = {("init", "sethostname"): "hostname: ", ("px", "open_tree"): "owners: ", ("px", "mount_setattr"): "owners: "}


def call_numbers():
    text = Path(NUMBERS).read_text(encoding="ascii")
    return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", text)}


# ---- reading a log -------------------------------------------------------------------------------------------------

Call = collections.namedtuple("Call", "process number state args text injected")


def read_log(path):
    calls = []
    for line in Path(path).read_text(errors="replace").splitlines():
        words = line.split(" ", 6)
        if len(words) == 7:
            injected = words[6].endswith(" INJECTED")
            text = words[6].removesuffix(" INJECTED")
            calls.append(Call(int(words[0]), int(words[1]), words[2], tuple(int(w, 16) for w in words[3:6]), text, injected))
    return calls


class GoodRun:
    """Who is who, and which calls are ours."""

    def __init__(self, calls, numbers):
        self.calls = calls
        self.roles = {0: "px"}
        for call in calls:      # the last of a name before a process turned into another program
            if call.state != "inside" and call.process and call.number == numbers["execve"]:
                self.roles[call.process] = "starting" if "/px-" in call.text else "payload"
            if call.state != "inside" and call.process and call.number == numbers["execveat"]:
                self.roles[call.process] = "init"
        self.execve = numbers["execve"]
        self.late = self._late(numbers)

    def _late(self, numbers):
        """Of pid 1: how many calls of each kind come before the root is there, for which the payload waits."""
        mine = [call for call in self.calls if self.roles.get(call.process) == "init" and call.state != "inside"]
        done = [i for i, call in enumerate(mine) if call.number in (numbers["pivot_root"], numbers["umount2"])]
        return collections.Counter(call.number for call in mine[:done[-1] + 1 if done else len(mine)])

    def places(self, wanted):
        """(process, number, nth, late) of every call that is made on the way to the payload.

        Those of px end where the payload's process asks for its program: px waits for that, and what it does then (pid 1
        returns to its group) it does beside the payload. In which order the log has that and the first call of the program
        is chance.
        """
        counts = collections.Counter()
        found, asked = [], False
        for call in self.calls:
            role = self.roles.get(call.process, "helper")
            asked = asked or (role == "payload" and call.number == self.execve and call.state != "inside")
            if call.state == "inside" or (role == "px" and (asked or call.state == "running")):
                continue
            counts[call.process, call.number] += 1
            nth = counts[call.process, call.number]
            late = role == "init" and nth > self.late[call.number]
            if call.number in wanted and not (role == "px" and wanted[call.number] == "execve"):
                found.append((call.process, call.number, nth, late))
        return found


    def is_armed(self, openat):
        """Whether the memory limit of v1 is set twice before the payload asks for its program: with the group, and for good."""
        limits = 0
        for call in self.calls:
            role = self.roles.get(call.process, "helper")
            if role == "payload" and call.number == self.execve and call.state != "inside":
                break
            limits += role == "px" and call.number == openat and call.text == "memory.limit_in_bytes"
        return limits != 1


def is_tolerated(role, name, call):
    return any(re.fullmatch(names, name) and re.fullmatch(whose, role) and condition(call.args, call.text)
               for names, whose, condition, _ in TOLERATED)


# ---- running -------------------------------------------------------------------------------------------------------


def run(setting, words, injection=(), form=()):
    """(status, stderr, whether the payload ran, calls, stdout)."""
    place = tempfile.mkdtemp(dir=setting["work"])
    mark = os.path.join(place, "mark")
    os.mkdir(mark)
    for path in (place, mark):
        os.chmod(path, 0o777)
    log = os.path.join(place, "log")
    payload = ["/usr/bin/busybox", "sh", "-c", f"echo {WORDS}; : >/mark/ran"]
    command = [setting["inject"], log, *map(str, injection), "--", setting["px"], *form, "exec", *words, "-v", f"{mark}:/mark", "--", *payload]
    if setting["uid"]:
        command = ["setpriv", "--reuid", str(setting["uid"]), "--regid", str(setting["uid"]), "--clear-groups", "--", *command]
    try:
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=DEADLINE_S, check=False)
        status, out, err = done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired:
        status, out, err = None, "", "still running"
    ran = WORDS in out or os.path.exists(os.path.join(mark, "ran"))
    calls = read_log(log) if os.path.exists(log) else []
    shutil.rmtree(place, ignore_errors=True)
    return status, err, ran, calls, out


def is_told(setting, words, role, name, injection):
    """The same again, with the result as JSON: whether it says what is missing."""
    if (role, name) not in TOLD:
        return False
    out = run(setting, words, injection, ("--json",))[4]
    return any(word.startswith(TOLD[role, name]) for word in json.loads(out or '{"isolation": {"missing": []}}')["isolation"]["missing"])


def judge(job):
    """(call's name, verdict, text): verdict is ok, not ok, or none where nothing was hit."""
    setting, words, roles, name, place = job
    process, number, nth, late = place
    role = roles.get(process, "helper")
    injection = (process, number, nth, errno.EPERM)
    status, err, ran, calls, _ = run(setting, words, injection)
    left = leaks.processes_left(5)
    hit = next((call for call in calls if call.injected), None)
    where = f"{role} {name} #{nth} ({', '.join(f'{a:x}' for a in hit.args)} {hit.text})" if hit else ""
    refused = status in (125, 126, 127) and re.search(r"^PX\d\d\d  ", err, re.MULTILINE)
    if left:
        return name, "not ok", f"{where}: left {left[0]}"
    if status is None:
        return name, "not ok", f"{where}: px hangs"
    if not hit:
        return name, "none", ""
    if refused and (late or not ran):
        return name, "ok", ""
    if is_tolerated(role, name, hit) or (ran and status == 0 and is_told(setting, words, role, name, injection)):
        return name, "ok", ""
    if ran:
        return name, "not ok", f"{where}: THE PAYLOAD RAN, px ended with {status}"
    return name, "not ok", f"{where}: exit status {status}: {err[:200]!r}"


def configurations(uid, top):
    """Options that make px take other ways, and the calls worth failing there (None: all)."""
    rootfs = os.path.join(top, "rootfs")
    os.makedirs(os.path.join(rootfs, "usr/bin"))
    shutil.copy("/usr/bin/busybox", os.path.join(rootfs, "usr/bin/busybox"))
    mounts = ["fsopen", "fsconfig", "fsmount", "move_mount", "fchdir", "openat", "newfstatat", "pivot_root", "umount2"]
    # Routes, rules and sockets of a network that is carried; 64 sockets for a published port are one like the other.
    carried = (["--allow-net", "good.test"], NETWORK_CALLS)
    if uid or os.geteuid() != 0:        # no control group to be had
        return [(["--net", "loopback"], None), carried]
    return [
        carried,
        (["--memory", "64m", "--net", "loopback", "--disk", "8m"], None),
        (["-t"], ["ioctl", "sendmsg", "openat", "dup3", "setsid"]),
        (["--rootfs", rootfs], mounts),
        (["--rootfs", rootfs, "--overlay"], [*mounts, *OVERLAY_CALLS]),
    ]


def jobs_for(setting, words, wanted):
    numbers = call_numbers()
    status, err, ran, calls, _ = run(setting, words)
    if status != 0 or not ran:
        raise RuntimeError(f"the good run with {words} ended with {status}: {err[:300]}")
    good = GoodRun(calls, numbers)
    if not good.is_armed(numbers["openat"]):
        raise RuntimeError(f"with {words} the payload asks for its program before its memory limit is in force")
    names = {numbers[name]: name for name in wanted if name in numbers}
    return [(setting, words, good.roles, names[place[1]], place) for place in good.places(names)]


def publish(options, top):
    """Copies that any user can run, and a place where any user can write."""
    os.chmod(top, 0o755)
    setting = {"uid": options.uid, "work": os.path.join(top, "work")}
    beside = Path(options.px).resolve().parent
    for name, path in (("px", options.px), ("inject", options.inject), ("px-main", beside / "px-main"), ("px-net", beside / "px-net")):
        setting[name] = os.path.join(top, name)
        shutil.copyfile(path, setting[name])
        os.chmod(setting[name], 0o755)
    os.mkdir(setting["work"])
    os.chmod(setting["work"], 0o777)
    return setting


def cannot(options):
    if not os.path.exists(NUMBERS):
        return "the numbers of the system calls are not to be had (linux-libc-dev)"
    if not os.path.exists("/usr/bin/busybox"):
        return "there is no busybox"
    done = subprocess.run([options.inject, "/dev/null", "--", "/bin/true"], capture_output=True, check=False)
    return "" if done.returncode == 0 else f"processes cannot be traced here: {done.stderr.decode(errors='replace').strip()}"


def show(good, bad):
    for name in sorted(set(good) | set(bad)):
        if name not in bad:
            print(f"ok {name} ({good[name]} places)")
            continue
        print(f"not ok {name}: {len(bad[name])} of {good[name] + len(bad[name])} places")
        for text in bad[name][:SHOWN_MAX]:
            print(f"    | {text}")
        if len(bad[name]) > SHOWN_MAX:
            print(f"    | and {len(bad[name]) - SHOWN_MAX} more")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--as", dest="uid", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("inject")
    parser.add_argument("px")
    options = parser.parse_args()
    reason = cannot(options)
    if reason:
        print(f"skip faults: {reason}\n0 passed, 0 failed, 1 skipped")
        return 0
    good, bad = collections.Counter(), collections.defaultdict(list)
    leaks.become_subreaper()
    with tempfile.TemporaryDirectory(prefix="faults.") as top:
        setting = publish(options, top)
        jobs = []
        for words, wanted in configurations(options.uid, top):
            jobs += jobs_for(setting, words, options.only or wanted or CALLS)
        with multiprocessing.Pool(max(2, os.cpu_count() or 1), leaks.become_subreaper) as pool:
            for name, verdict, text in pool.imap_unordered(judge, jobs, 4):
                if verdict == "ok":
                    good[name] += 1
                elif verdict == "not ok":
                    bad[name].append(text)
                if options.verbose:
                    print(f"# {name}: {verdict} {text}", flush=True)
        if not options.uid and os.geteuid() == 0:       # a px that had to be killed for hanging leaves its groups to the next start
            subprocess.run([options.px, "exec", "--memory", "64m", "--", "true"], capture_output=True, check=False)
    show(good, bad)
    print(f"{len(set(good) - set(bad))} passed, {len(bad)} failed, 0 skipped")
    return 1 if bad or not good else 0


if __name__ == "__main__":
    sys.exit(main())
