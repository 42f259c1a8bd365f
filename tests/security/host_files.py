"""Section A with a hand on the host: descriptors, roots, binds and set-id bits."""

import fcntl
import os
import shutil
import socket
import stat
import struct
import subprocess
import time
from pathlib import Path

from race import swapping
from suite import LIMIT, SET_ID, Skipped, check, children, everywhere, needs_root, shorten, test


LEAK = 'exec 3<"$0" 9<"$0" 57<>"$0/secret" 200<"$0"; exec "$@"'


@everywhere
def A4_leaked_descriptors(suite):
    suite.row("A4_descriptors", prefix=("bash", "-c", LEAK, str(suite.top)))


@test
def A4_leaked_with_tty(suite):
    suite.row("A4_descriptors", ["-t"], prefix=("bash", "-c", LEAK, str(suite.top)))


@test
def A4_init_has_only_its_socket(suite):
    process = subprocess.Popen(["bash", "-c", LEAK, str(suite.top),
                                *suite.command((), suite.program, "H_wait")],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=suite.environment())
    try:
        check(b"ready" in process.stdout.readline(), "the box did not start")
        init = children(process.pid)[0]
        if not suite.root:
            return              # an ordinary user cannot look; that is what the row wants
        links = {fd: os.readlink(f"/proc/{init}/fd/{fd}") for fd in os.listdir(f"/proc/{init}/fd")}
        check(all(to.startswith(("socket:", "anon_inode:[signalfd]")) for to in links.values()),
              f"pid 1 holds {links}")
    finally:
        process.kill()
        process.communicate()


@everywhere
def A5_stdout_reopen(suite):
    path = suite.directory("stdout") / "file"
    path.write_text("SECRET BEFORE\n")
    with open(path, "r+b") as file:
        file.seek(0, os.SEEK_END)
        done = suite.box([], suite.program, "A5_stdout_reopen", stdout=file)
    text = path.read_text()
    check(done.returncode == 0 and text == "SECRET BEFORE\nstopped\n",
          f"exit status {done.returncode}: {shorten(text)}")


@everywhere
def A5_stdin_reopen(suite):
    path = suite.directory("stdin") / "file"
    path.write_text("content of the host\n")
    with open(path, "r+b") as file:
        suite.row("A5_stdin_reopen", ["-i"], stdin=file)
    check(path.read_text() == "content of the host\n", "standard input was written to")


@everywhere
def A5_twin_streams(suite):
    path = suite.directory("stdin") / "file"
    path.write_text("content of the host\n")
    with open(path, "rb") as file:
        suite.stopped(suite.box(["-i"], suite.program, "A5_twin_stdin", stdin=file), b"worked")


@test
def A6_workdir_magic_link(suite):
    for place in ("/proc/self/fd/9", "/proc/self/fd/200", "/proc/self/cwd/..", "/proc/1/cwd", "/proc/self/root"):
        done = suite.box(["-w", place], suite.program, "A6_cwd", prefix=("bash", "-c", LEAK, str(suite.top)))
        check(done.returncode == 125 or done.stdout.strip() == b"stopped",
              f"{place}: {shorten(done.stdout + done.stderr)}")


@test
def A9_submount(suite):
    needs_root(suite)
    outer = suite.directory("ro")
    (outer / "sub").mkdir()
    script = 'mount -t tmpfs none "$0/sub" && echo x >"$0/sub/here" && exec "$@"'
    suite.row("A9_submount", ["-v", f"{outer}:/ro:ro"],
              prefix=("unshare", "-m", "sh", "-c", script, str(outer)))


@test
def A11_node_in_bind(suite):
    needs_root(suite)
    workspace = suite.directory("ws")
    os.mknod(workspace / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    os.chmod(workspace / "zero", 0o666)
    suite.row("A11_node_in_bind", ["-v", f"{workspace}:/device"])


@test
def A20_memfd(suite):
    """Root's boxes hold it; where it cannot be had the result says so."""
    options = [word for place in ("/home/sandbox", "/tmp", "/dev/shm") for word in ("--tmpfs", f"{place}:size=8m,noexec")]
    missing = suite.result(options, "/bin/true")["isolation"]["missing"]
    if not any(word.startswith("memfd") for word in missing):
        suite.row("A20_memfd", options)
    else:
        check(not suite.root or not os.path.exists("/proc/sys/vm/memfd_noexec"), f"root's box lacks it: {missing}")


def make_root(suite, name):
    root = suite.directory(name)
    (root / "attack").mkdir()
    shutil.copy2(suite.bin / "px-attack", root / "attack")
    return root


@test
def A14_rootfs_links(suite):
    outside, root = suite.directory("outside"), make_root(suite, "rootfs")
    (outside / "outside").write_text("x")
    for name in ("proc", "dev", "etc", "tmp", "home", "sys", "root", "var", "run", "workspace"):
        (root / name).symlink_to(outside)
    outside.chmod(0o777)
    work = suite.directory("ws")
    suite.row("A14_rootfs_links", ["--rootfs", str(root), "--work-dir", str(work)], bind=False)
    check(os.listdir(outside) == ["outside"], f"made outside: {os.listdir(outside)}")


@test
def A14_rootfs_inner_links(suite):
    outside, root = suite.directory("outside"), make_root(suite, "rootfs")
    (outside / "outside").write_text("x")
    for name in ("dev/pts", "dev/shm", "dev/fd", "home/sandbox", "etc/alternatives", "proc/self", "tmp/x"):
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).symlink_to(outside)
    for name in ("dev/null", "dev/zero", "dev/tty", "dev/ptmx", "dev/stdin", "etc/passwd", "etc/hosts",
                 "etc/resolv.conf", "dev/console"):
        (root / name).symlink_to(outside / "outside")
    outside.chmod(0o777)
    suite.row("A14_rootfs_links", ["--rootfs", str(root)], bind=False)
    check(os.listdir(outside) == ["outside"] and (outside / "outside").read_text() == "x",
          "something was made or written outside")


@test
def A14_bind_target_link(suite):
    """A bind inside another bind, whose place there is a link to a host directory."""
    outside, workspace, more = suite.directory("outside"), suite.directory("ws"), suite.directory("more")
    (workspace / "place").symlink_to(outside)
    done = suite.box(["-v", f"{workspace}:/ws", "-v", f"{more}:/ws/place"], "/bin/sh", "-c",
                     "echo RAN; echo x >/ws/place/made")
    check(done.returncode == 125 and b"RAN" not in done.stdout, f"exit status {done.returncode}")
    check(not os.listdir(outside), "something was made outside")


@test
def A14_rootfs_node(suite):
    needs_root(suite)
    root = make_root(suite, "rootfs")
    os.mknod(root / "zero", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
    os.chmod(root / "zero", 0o666)
    suite.row("A14_rootfs_node", ["--rootfs", str(root)], bind=False)


@test
def A14_twin_rootfs(suite):
    root = make_root(suite, "rootfs")
    (root / "own").write_text("x")
    suite.row("A6_cwd", ["--rootfs", str(root)], bind=False)


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
    suite.row("A15_overlay_xattr", ["--rootfs", str(root)], bind=False)


@test
def A17_propagation(suite):
    mounts = Path("/proc/self/mountinfo").read_text().count(str(suite.top))
    process, _, payload = suite.running(["-v", f"{suite.directory('ws')}:/ws"], suite.program, "H_wait")
    try:
        inside = Path(f"/proc/{payload}/mountinfo").read_text() if suite.root else ""
        check("shared:" not in inside and "master:" not in inside, "a mount of the box propagates")
        check(Path("/proc/self/mountinfo").read_text().count(str(suite.top)) == mounts,
              "a mount of the box is seen on the host")
    finally:
        process.kill()
        process.communicate()


def set_id_program(workspace):
    path = workspace / "setid"
    path.write_bytes(b"#!/bin/sh\n" + b"#" * 8000)
    path.chmod(0o4755)
    return path


def refused(suite, source, target):
    """A box never gets a set-id file to write: through a mapping it could change one that keeps its bit."""
    done = suite.box(["-v", f"{source}:{target}"], "/bin/true")
    check(done.returncode == 125 and b"PX033" in done.stderr, f"exit {done.returncode}: {shorten(done.stderr)}")
    twin = suite.box(["-v", f"{source}:{target}:ro"], "/bin/true")
    check(twin.returncode == 0, f"read-only: exit {twin.returncode}: {shorten(twin.stderr)}")


@test
def A19_existing(suite):
    workspace = suite.directory("ws")
    set_id_program(workspace)
    refused(suite, workspace, "/ws")


@test
def A19_existing_file_bind(suite):
    refused(suite, set_id_program(suite.directory("ws")), "/ws/setid")


@test
def A19_existing_deep(suite):
    workspace = suite.directory("ws")
    deep = workspace.joinpath(*["d"] * 300)
    deep.mkdir(parents=True)
    set_id_program(deep)
    refused(suite, workspace, "/ws")


CAPABILITY = struct.pack("<5I", 0x02000001, 0xc2, 0, 0, 0)     # cap_setuid,cap_setgid,cap_dac_override+ep


def give_capabilities(path):
    try:
        os.setxattr(path, "security.capability", CAPABILITY)
    except OSError as error:
        raise Skipped(f"this file system has no capabilities: {error.strerror}") from None


@test
def A19_existing_capabilities(suite):
    needs_root(suite)
    for place in ("tool", "d/d/d/tool"):
        workspace = suite.directory("ws")
        tool = workspace / place
        tool.parent.mkdir(parents=True, exist_ok=True)
        tool.write_text("x")
        tool.chmod(0o644)
        give_capabilities(tool)
        refused(suite, workspace, "/ws")
        refused(suite, tool, "/tool")


@test
def A19_closed_directory(suite):
    """The box has the id of the caller: a directory that he closed to himself it can open."""
    if suite.root:
        raise Skipped("nothing is closed to root")
    workspace = suite.directory("ws")
    (workspace / "d").mkdir()
    set_id_program(workspace / "d")
    for mode in (0o000, 0o055, 0o111, 0o444):
        (workspace / "d").chmod(mode)
        refused(suite, workspace, "/ws")
        refused(suite, workspace / "d", "/ws")
    (workspace / "d").chmod(0o755)


@test
def A19_closed_by_the_box(suite):
    """A directory that the box closes, for px but not for others, is searched all the same when it ends."""
    workspace = suite.directory("ws")
    (workspace / "d").mkdir()
    path = workspace / "d/tool"
    path.write_text("x")
    path.chmod(0o755)
    held = os.open(path, os.O_RDONLY)
    process = subprocess.Popen(suite.command(["-i", "-v", f"{workspace}:/ws"], "/bin/sh", "-c",
                                             "chmod 055 /ws/d /ws; echo ready; read line"),
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=suite.environment(), cwd=suite.top)
    try:
        check(b"ready" in process.stdout.readline(), "the box did not start")
        os.fchmod(held, 0o4755)         # the box cannot: somebody on the host
        process.communicate(b"\n", timeout=LIMIT)
        check(os.fstat(held).st_mode & SET_ID == 0, "a set-id file is left in a directory that the box has closed")
        check(stat.S_IMODE(workspace.stat().st_mode) == 0o055, "px changed the mode of a directory")
    finally:
        process.kill()
        process.wait()
        os.close(held)
        workspace.chmod(0o755)
        (workspace / "d").chmod(0o755)


@test
def A19_twin_ordinary(suite):
    """Programs and attributes that give nobody anything are no reason to refuse a bind, and stay as they are."""
    workspace = suite.directory("ws")
    (workspace / "tool").write_text("#!/bin/sh\n")
    (workspace / "tool").chmod(0o755)
    (workspace / "read-only").mkdir(mode=0o555)
    try:
        os.setxattr(workspace / "tool", "user.note", b"x")
    except OSError:
        pass                    # a file system without them
    done = suite.box(["-v", f"{workspace}:/ws"], "/bin/sh", "-c", "/ws/tool && echo x >/ws/new && chmod 1755 /ws/new")
    check(done.returncode == 0, f"exit {done.returncode}: {shorten(done.stderr)}")
    check(stat.S_IMODE((workspace / "tool").stat().st_mode) == 0o755, "the mode of a program was changed")


def privileged(path):
    return path.stat().st_mode & SET_ID or "security.capability" in os.listxattr(path)


def reached_by_another(path):
    """Whether an ordinary user who is not the caller could execute it."""
    command = ["setpriv", "--reuid=1201", "--regid=1201", "--clear-groups", "test", "-e", str(path)]
    return subprocess.run(command, check=False).returncode == 0


def once_free(suite, options):
    """The same directory again; what is left of a killed box may hold it for a moment."""
    end = time.monotonic() + LIMIT
    while True:
        done = suite.box(options, suite.program, "list")
        if b"Another box uses it" not in done.stderr or time.monotonic() > end:
            return done
        time.sleep(0.05)


@test
def A19_copy_up(suite):
    """What a box makes of the set-id files and capabilities of its root, while it runs, and after px was killed."""
    root, plain = make_root(suite, "rootfs"), suite.directory("plain")
    needs_overlay(suite, root, f"--overlay={plain}")
    names = ["setid", "tool"] if suite.root else ["setid"]
    for name in names:
        (root / name).write_bytes(b"#" * 8000)
        (root / name).chmod(0o4755 if name == "setid" else 0o755)
    if suite.root:
        give_capabilities(root / "tool")
    for keep in ([], ["--persist"]):
        upper = suite.directory("upper")        # 0755, as anybody makes one
        options = ["--rootfs", str(root), f"--overlay={upper}", *keep, "-e", "A_TARGET=/setid", "-e",
                   "A_MORE=" + ("/tool" if suite.root else "")]
        process, _, _ = suite.running(options, suite.program, "A19_copy_up")
        try:
            for name in names:
                copied = upper / "upper" / name
                check(privileged(copied) and b"of the box" in copied.read_bytes(), "the attack does not work here")
                check(stat.S_IMODE(upper.stat().st_mode) == 0o700, "others can enter the directory of the changes")
                check(not suite.root or not reached_by_another(copied), "another user can reach a file of the box")
            done = suite.box(["-v", f"{suite.top}:/above"], "/bin/true")
            check(done.returncode == 125 and b"PX033" in done.stderr, "another box can move the set-id file elsewhere")
        finally:
            process.kill()
            process.communicate()
        done = once_free(suite, options)
        check(done.returncode == 0, f"exit {done.returncode}: {shorten(done.stderr)}")
        left = [path.name for path in upper.rglob("*") if path.is_file() and privileged(path)]
        check(not left, f"set-id files of a box that was killed are left: {left}")
        check(not keep or (upper / "upper/setid").exists(), "changes that were kept are lost")


@test
def A19_source_swap(suite):
    outer, victim = suite.directory("outer"), suite.directory("victim")
    (outer / "inner").mkdir()
    path = set_id_program(victim)
    suite.row("A19_source_swap", ["-v", f"{outer}:/o", "-v", f"{outer}/inner:/i", "-e",
                                               f"A_VICTIM={victim}"])
    check(path.stat().st_mode & SET_ID == stat.S_ISUID,
          "px changed a file that was never bound, where a link of the box led it")


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
    with swapping(suite.bin / "swapper", top, "file", "socket"):
        for _ in range(250):
            done = suite.box(["-v", f"{top}/file:/it"], suite.program, "A22_source_race")
            check(done.returncode in (0, 125), shorten(done.stdout + done.stderr))


def needs_overlay(suite, root, option):
    """Skips where this kernel or file system cannot hold an upper layer; anything else is the test's business."""
    done = suite.box(["--rootfs", str(root), option], "/attack/px-attack", "list", bind=False)
    if b"attributes of users" in done.stderr or b"id-mapped" in done.stderr:
        raise Skipped("no overlay can be written here")


@test
def A14_overlay_links(suite):
    """The root's author against an overlay that can be written: no link leads px out, and the tree below stays as it is."""
    outside, root = suite.directory("outside"), make_root(suite, "rootfs")
    needs_overlay(suite, root, "--overlay")
    (outside / "outside").write_text("x")
    for name in ("proc", "dev", "etc", "tmp", "home", "sys", "root", "var", "run", "workspace"):
        (root / name).symlink_to(outside)
    outside.chmod(0o777)
    before = sorted(os.listdir(root))
    suite.row("A14_rootfs_links", ["--rootfs", str(root), "--overlay"], bind=False)
    check(os.listdir(outside) == ["outside"], f"made outside: {os.listdir(outside)}")
    check(sorted(os.listdir(root)) == before, "the root was changed")


@test
def A15_overlay_xattr_writable(suite):
    """A redirect in a layer that somebody else made leads nowhere, also where the overlay itself reads attributes of users. (A file
    with a forged metacopy mark cannot be opened at all: the kernel refuses to look for its bytes.)"""
    root = make_root(suite, "rootfs")
    needs_overlay(suite, root, "--overlay")
    for name in ("visible", "elsewhere"):
        (root / name).mkdir()
    (root / "visible/own").write_text("x")
    (root / "elsewhere/hidden").write_text("x")
    (root / "copied").write_text("x")
    os.setxattr(root / "visible", "user.overlay.redirect", b"/elsewhere")
    suite.row("A15_overlay_xattr", ["--rootfs", str(root), "--overlay"], bind=False)


@test
def A16_one_box_to_an_upper(suite):
    """Two boxes on one upper directory: the second is refused while the first runs, and works when it is gone."""
    root, upper = make_root(suite, "rootfs"), suite.directory("upper")
    upper.chmod(0o700)
    option = f"--overlay={upper}"
    needs_overlay(suite, root, option)
    held = os.open(upper, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)        # as a box holds it
        done = suite.box(["--rootfs", str(root), option], "/attack/px-attack", "list", bind=False)
        check(done.returncode == 125 and b"PX042" in done.stderr, f"exit status {done.returncode}")
    finally:
        os.close(held)
    done = suite.box(["--rootfs", str(root), option], "/attack/px-attack", "list", bind=False)
    check(done.returncode == 0 and not os.listdir(upper), f"exit status {done.returncode}, left: {os.listdir(upper)}")


@test
def A16_kept_links(suite):
    """Kept changes that lead out: links where px mounts, and in place of what it keeps for itself."""
    root, outside, top = make_root(suite, "rootfs"), suite.directory("outside"), suite.directory("kept")
    needs_overlay(suite, root, f"--overlay={top / 'try'}")
    (outside / "outside").write_text("x")
    outside.chmod(0o777)
    for place in ("upper", "work", "upper/proc", "upper/dev", "upper/tmp", "upper/home", "upper/sys", ".px-overlay"):
        kept = top / place.replace("/", "-")
        options = ["--rootfs", str(root), f"--overlay={kept}", "--persist"]
        suite.box(options, "/attack/px-attack", "list", bind=False)
        target = kept / place
        if target.is_dir():
            shutil.rmtree(target)
        target.unlink(missing_ok=True)
        target.symlink_to(outside)
        done = suite.box(options, "/attack/px-attack", "A9_write_content", bind=False)
        check(place == "upper/sys" or done.returncode == 125, f"{place}: exit status {done.returncode}")
        check(os.listdir(outside) == ["outside"] and (outside / "outside").read_text() == "x",
              f"{place}: something was made outside")


@test
def A16_below_stays(suite):
    """Whatever a box does to its root, the tree that all share stays as it is."""
    root = make_root(suite, "rootfs")
    needs_overlay(suite, root, "--overlay")


    def listing():
        return sorted((str(p), tuple(p.lstat())[:7], p.lstat().st_mtime_ns) for p in root.rglob("*"))

    before = listing()
    suite.box(["--rootfs", str(root), "--overlay"], "/attack/px-attack", "A9_write_content", bind=False)
    suite.box(["--rootfs", str(root)], "/attack/px-attack", "A9_write_content", bind=False)
    check(listing() == before, "a box wrote into its root")


@test
def B11_fake_proc(suite):
    """A root with a /proc of its own making: px writes ids, limits and labels to the kernel's and never there."""
    root = make_root(suite, "rootfs")
    fakes = ("self/uid_map", "self/gid_map", "self/setgroups", "self/oom_score_adj", "sys/user/max_user_namespaces",
             "thread-self/attr/exec", "1/uid_map", "sysrq-trigger")
    for name in fakes:
        path = root / "proc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("untouched")
        path.chmod(0o666)
    for row in ("E1_map", "D1_max_user_namespaces", "B2_sysrq"):
        suite.row(row, ["--rootfs", str(root)], bind=False)
    wrong = [name for name in fakes if (root / "proc" / name).read_text() != "untouched"]
    check(not wrong, f"px wrote to {wrong}")
