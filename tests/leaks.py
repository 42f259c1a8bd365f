#!/usr/bin/python3
"""leaks.py guard [--beside] NAME -- COMMAND...     run a command and report whatever it left on the machine
leaks.py boxes PX [N [AT_ONCE]]     N boxes one after another, then AT_ONCE at the same time, and look after each round

What counts as left: a process (whoever is orphaned below us becomes our child, so none can hide), a mount, a control group
named px-* or $PX_TEST_RUN-* that nobody holds, a file in /run/px, in $TMPDIR, or a home in /tmp that nobody holds. A network
namespace lives as long as a process, a mount or a descriptor of a process holds it, so the processes and the mounts tell of
it; `boxes` also reads the kernel's own count of namespaces where it may.

Others may run boxes and mount things on the same machine. `guard` gives its command a mount namespace, so that every mount
in it is the command's; who may not make one looks at mounts that name $TMPDIR. Groups below those of other sessions do not
count. Of the rest only what stays is reported. With --beside another guarded command runs at the same time: then the groups,
the homes and /run/px may be the other's.

Both print `not ok NAME: why`; `guard` ends with the command's status, or 3 if something was left and the command was content.
"""

import ctypes
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
CLONE_NEWNS, MS_REC, MS_PRIVATE, MS_SHARED = 0x20000, 0x4000, 1 << 18, 1 << 20
PATIENCE_S = 8
SCRATCH = re.compile(r"px-home(s-[0-9]+(-[0-9a-f]+)?(/home-[0-9a-f]+)?|-[0-9a-f]{16})$")


def become_subreaper():
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


# ---- processes -----------------------------------------------------------------------------------------------------


def reap():
    """Takes the dead orphans away."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def children(pid="self"):
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in task.read_text().split()]
        except OSError:
            continue
    return found


def describe(pid):
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
        return f"process {pid} ({words or 'no command line'}, {os.readlink(f'/proc/{pid}/ns/net')})"
    except OSError:
        return f"process {pid}"


def processes_left(patience_s=PATIENCE_S):
    """What still runs below us once it has had time to die; it is killed then, so that the next part starts clean."""
    deadline = time.monotonic() + patience_s
    while True:
        reap()
        left = children()
        if not left or time.monotonic() > deadline:
            break
        time.sleep(0.05)
    texts = [describe(pid) for pid in left]
    for pid in left:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    return texts


# ---- the machine ---------------------------------------------------------------------------------------------------


def mount_lines():
    # The first two numbers name a mount for as long as the kernel runs; the rest says where it is.
    return Path("/proc/self/mountinfo").read_text().splitlines()


def unshare_mounts():
    """A mount namespace for us and the command. Mounts spread in it as they did before, but to nobody outside."""
    libc = ctypes.CDLL(None, use_errno=True)
    shared = any(line.split()[4] == "/" and " shared:" in line for line in mount_lines())
    if os.geteuid() != 0 or libc.unshare(CLONE_NEWNS) != 0:
        return
    for flag in (MS_PRIVATE, MS_SHARED) if shared else (MS_PRIVATE,):
        if libc.mount(None, b"/", None, ctypes.c_ulong(MS_REC | flag), None) != 0:
            raise OSError(ctypes.get_errno(), "mount")
    os.environ["PX_TEST_MOUNTS"] = os.readlink("/proc/self/ns/mnt")


def mounts():
    alone = os.environ.get("PX_TEST_MOUNTS") == os.readlink("/proc/self/ns/mnt")
    return {line for line in mount_lines() if alone or os.environ.get("TMPDIR", "/tmp/px") in line}


def is_held(path):
    """A living px holds a lock on each of its groups."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except FileNotFoundError:
        return True             # gone meanwhile
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def names_in(path):
    try:
        return {os.path.join(path, name) for name in os.listdir(path)}
    except OSError:
        return set()


def own_groups():
    """(our own group, the top) of every hierarchy. px makes its groups below its own, a runtime some below one above."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        names, path = line.split(":", 2)[1:]
        top = Path("/sys/fs/cgroup", names.removeprefix("name=") or "unified")
        if not names and not top.is_dir():
            top = top.parent            # v2 alone
        own = top / path.lstrip("/")
        if top.is_dir():
            yield own if own.is_dir() else top, top


def groups():
    """Not those below a group that is neither ours nor above ours: these are of other sessions."""
    heads = ("px-", os.environ.get("PX_TEST_RUN", "px") + "-")
    found = set()
    for own, top in own_groups():
        found |= {os.path.join(at, name) for at, names, _ in os.walk(own) for name in names}
        found |= {path for at in own.parents if at == top or top in at.parents for path in names_in(at)}
    return {path for path in found if os.path.basename(path).startswith(heads) and not is_held(path)}


def own_files():
    tmp = os.environ.get("TMPDIR", "/tmp")
    return names_in(tmp) if tmp != "/tmp" else set()


def inode_of(path):
    try:
        return os.lstat(path).st_ino
    except FileNotFoundError:
        return None             # gone meanwhile


def locked_inodes():
    return {int(inode) for inode in re.findall(r":([0-9]+) [0-9]+ \S+$", Path("/proc/locks").read_text(), re.MULTILINE)}


def homes(tmp):
    """Homes of boxes of the weaker tiers that no px has a lock on, and the directories that hold no other. The locks are read
    and not tried: a px that makes a home fails when somebody else has the lock."""
    found, held = set(), {*locked_inodes(), None}
    for top in (path for path in names_in(tmp) if SCRATCH.search(path)):
        below = {path for path in names_in(top) if SCRATCH.search(path)}
        left = {path for path in below | {top} if inode_of(path) not in held}
        found |= left - {top} if below - left else left
    return found


def files():
    return own_files() | homes("/tmp") | (names_in("/run/px") - {"/run/px/ids"})


KINDS = {"mount": mounts, "control group": groups, "file": files}
OWN_KINDS = {"mount": mounts, "file": own_files}


def look(kinds=KINDS):
    return {kind: read() for kind, read in kinds.items()}


def left_since(before, kinds=KINDS):
    """What is new and stays."""
    texts = processes_left()
    deadline = time.monotonic() + PATIENCE_S
    while True:
        now = look(kinds)
        left = [f"{kind} {item}" for kind in kinds for item in sorted(now[kind] - before[kind])]
        left += [f"{kind} is gone: {item}" for kind in kinds if kind == "mount" for item in sorted(before[kind] - now[kind])]
        if not left or time.monotonic() > deadline:
            return texts + left
        time.sleep(0.1)


# ---- the commands --------------------------------------------------------------------------------------------------


def guard(name, command, kinds):
    become_subreaper()
    unshare_mounts()
    before = look(kinds)
    status = subprocess.call(command)
    left = left_since(before, kinds)
    for text in left:
        print(f"not ok left behind by {name}: {text}")
    sys.stdout.flush()
    return 3 if left and status == 0 else status


def namespace_objects():
    """How many network namespaces the kernel knows of, alive or on their way out; None where it does not say."""
    try:
        for line in Path("/proc/slabinfo").read_text().splitlines():
            if line.startswith("net_namespace "):
                return int(line.split()[1])
    except OSError:
        pass
    return None


class Tally:
    passed = failed = skipped = 0

    def check(self, name, problem):
        if problem:
            self.failed += 1
            print(f"not ok {name}: {problem}")
        else:
            self.passed += 1
            print(f"ok {name}")

    def skip(self, name, why):
        self.skipped += 1
        print(f"skip {name}: {why}")


# Five kinds of box in turn, all with a loopback of their own: plain, with a bind and a grandchild, killed, timed out, not found; with a cgroup for root.
def box_commands(px, limits):
    tmp = os.environ.get("TMPDIR", "/tmp")
    run = [px, "exec", "--net", "loopback"]
    return [
        ([*run, "--", "true"], 0),
        ([*run, "-v", f"{tmp}:/mnt:ro", "-c", "(sleep 60 &) ; exit 3"], 3),
        ([*run, *limits, "-c", "kill -9 $$"], 137),
        ([*run, "--timeout", "20ms", *limits, "--", "sleep", "60"], 124),
        ([*run, "--", "nosuch"], 127),
    ]


def one_by_one(px, limits, count):
    kinds = box_commands(px, limits)
    for i in range(count):
        command, wanted = kinds[i % len(kinds)]
        done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False)
        if done.returncode != wanted:
            return f"box {i} ({' '.join(command[1:])}) ended with {done.returncode}: {done.stderr.decode(errors='replace')}"
    return ""


def all_at_once(px, limits, count):
    """Half are let go, half lose their px to kill -9; all are seen to run at the same time first."""
    running = [
        subprocess.Popen([px, "exec", "-i", *limits, "-c", "echo up; read -r line; exit 7"],
                         stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for _ in range(count)
    ]
    try:
        silent = [p for p in running if p.stdout.readline() != b"up\n"]
        said = [p.stderr.read().decode(errors="replace") for p in silent]
        for i, p in enumerate(running):
            if i % 2:
                p.kill()
            elif p not in silent:
                os.write(p.stdin.fileno(), b"go\n")
        codes = [p.wait(timeout=60) for p in running]
    finally:
        for p in running:
            p.kill()
            p.wait()
            for stream in (p.stdin, p.stdout, p.stderr):
                stream.close()
    if silent:
        return f"{len(silent)} of {count} boxes did not start: {said[0][:400]}"
    wrong = [code for i, code in enumerate(codes) if code != (-signal.SIGKILL if i % 2 else 7)]
    return f"{len(wrong)} boxes ended with {sorted(set(wrong))}" if wrong else ""


def sweep(px, limits):
    """The next start removes the groups of a px that was killed."""
    if limits:
        subprocess.run([px, "exec", *limits, "--", "true"], stdin=subprocess.DEVNULL, capture_output=True, check=False)


def boxes(px, count=1000, at_once=100):
    become_subreaper()
    tally = Tally()
    limits = ["--memory", "64m"] if os.geteuid() == 0 else []
    before = look()
    objects = namespace_objects()
    tally.check(f"{count} boxes one after another", one_by_one(px, limits, count))
    tally.check(f"{count} boxes one after another leave nothing", "; ".join(left_since(before)))
    tally.check(f"{at_once} boxes at once", all_at_once(px, limits, at_once))
    sweep(px, limits)
    tally.check(f"{at_once} boxes at once leave nothing", "; ".join(left_since(before)))
    if objects is None:
        tally.skip("network namespaces", "/proc/slabinfo cannot be read here")
    else:
        # The kernel takes them apart in its own time; a leak of one for each box would never go away.
        bound = objects + 50 + count // 10
        deadline = time.monotonic() + 30
        while namespace_objects() > bound and time.monotonic() < deadline:
            time.sleep(0.2)
        now = namespace_objects()
        tally.check("network namespaces", f"{now}, there were {objects}" if now > bound else "")
    print(f"{tally.passed} passed, {tally.failed} failed, {tally.skipped} skipped")
    return 1 if tally.failed else 0


def main():
    words = [word for word in sys.argv[2:4] if word != "--beside"] + sys.argv[4:]
    if len(words) > 2 and sys.argv[1] == "guard" and words[1] == "--":
        return guard(words[0], words[2:], OWN_KINDS if len(words) < len(sys.argv) - 2 else KINDS)
    if len(sys.argv) > 2 and sys.argv[1] == "boxes":
        return boxes(sys.argv[2], *(int(word) for word in sys.argv[3:5]))
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
