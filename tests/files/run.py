#!/usr/bin/python3
"""files/run.py [--as UID] [--only NAME...] PX - attacks on `px file`, each with the permitted act beside it, and oracles for what it says.

The rows L1 to L7 and L12 of the catalogue of attacks: ways out of a root, races, special files, hard links, huge files and trees,
names that a terminal obeys, writes that are cut short. PX and px-main beside it are copied to where any user can reach them.
Prints `ok NAME`, `not ok NAME: why`, `skip NAME: why`, and last "N passed, N failed, N skipped".
"""

import json
import os
import random
import resource
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TOP = Path(__file__).resolve().parent.parent         # tests/
sys.path.insert(0, str(TOP))
sys.dont_write_bytecode = True
from cases import Problem, Skip, check, drive, test  # noqa: E402
from race import swapping  # noqa: E402

LIMIT_S = 120
ENTRIES = 200000                        # that one call looks at: PX_WALK_ENTRIES
SECRET = "the secret of the host"


class World:
    """in/ is the root `in` (rw), ro/ the root `ro`, outside/ holds what nobody may touch."""

    def __init__(self, px, top):
        self.px, self.top, self.swapper = px, Path(top), Path(px).with_name("swapper")
        self.inside, self.ro, self.outside = (self.top / name for name in ("in", "ro", "outside"))
        for path in (self.inside, self.ro, self.outside):
            path.mkdir()
        (self.outside / "x.md").write_text(SECRET)
        (self.inside / "d").mkdir()
        (self.inside / "d" / "x.md").write_text("mine")

    def command(self, op, *words, options=(), roots=()):
        roots = roots or (f"in={self.inside}:rw", f"ro={self.ro}")
        return [self.px, "--json", "file", op, *(f"--root={root}" for root in roots), *options, "--", *words]

    def raw(self, op, *words, data=None, options=(), roots=(), **more):
        more.setdefault("timeout", LIMIT_S)
        done = subprocess.run(self.command(op, *words, options=options, roots=roots), capture_output=True, check=False,
                              cwd="/", **({"input": data} if data is not None else {"stdin": subprocess.DEVNULL}), **more)
        check(done.returncode in (0, 1, 2), f"{op} {words}: ended with {done.returncode}: {done.stderr[-300:]!r}")
        check(SECRET.encode() not in done.stdout + done.stderr, f"{op} {words}: gave the secret away")
        check(str(self.top).encode() not in done.stdout + done.stderr, f"{op} {words}: shows a path of the host: {done.stdout[-300:]!r}")
        return done

    def ask(self, op, *words, **more):
        answer = json.loads(self.raw(op, *words, **more).stdout)
        check(answer["ok"] or answer["error"]["class"], "an error without a class")
        return answer

    def good(self, op, *words, **more):
        answer = self.ask(op, *words, **more)
        check(answer["ok"], f"{op} {words}: {answer.get('message')}")
        return answer

    def refused(self, op, *words, kind="PathNotInSandboxError", **more):
        answer = self.ask(op, *words, **more)
        check(not answer["ok"], f"{op} {words} was allowed")
        check(answer["error"]["class"] == kind, f"{op} {words}: {answer['error']}")
        return answer

    def untouched(self):
        check(sorted(os.listdir(self.outside)) == ["x.md"], f"outside there is now {os.listdir(self.outside)}")
        check((self.outside / "x.md").read_text() == SECRET, "the secret was changed")

    def no_rest(self):
        left = [path for path in self.inside.rglob(".px-*")]
        check(not left, f"left behind: {left}")


# ---- races: something is swapped for a link, again and again ---------------------------------------------------------

def control(path):
    """Somebody who opens by name does get the secret while this goes on; otherwise the test would prove nothing."""
    end = time.monotonic() + LIMIT_S
    while time.monotonic() < end:
        try:
            if path.read_text() == SECRET:
                return
        except OSError:
            pass
    raise Problem("not even a plain open is led astray")


def attack(world, times=15):
    """Every operation through in/d and in/d/x.md: src/boxes/files/test_race.c does it with a million swaps. How many reads gave our own text."""
    mine = 0
    for i in range(times):
        answer = world.ask("read", "in/d/x.md")
        check(not answer["ok"] or answer["content"] in ("mine", "new"), f"read gave {answer}")
        mine += answer["ok"]
        world.ask("write", "in/d/x.md", options=("--content", "mine"))
        world.ask("write", f"in/d/new{i}/y.md", options=("--content", "new"))
        world.ask("edit", "in/d/x.md", options=("--old", "secret", "--new", "x"))
        world.ask("copy", "in/d/x.md", f"in/d/c{i}.md")
        world.ask("move", f"in/d/c{i}.md", f"in/d/m{i}.md")
        world.ask("delete", f"in/d/m{i}.md")
        world.ask("list", "in/d")
        world.ask("search", "secret", "in")
    return mine


@test
def L2_directory_swapped_for_a_link(world):
    (world.inside / "evil").symlink_to("../outside")
    with swapping(world.swapper, world.inside, "d", "evil"):
        mine, end = attack(world), time.monotonic() + LIMIT_S
        while not mine and time.monotonic() < end:
            mine = attack(world, 1)
        control(world.inside / "d" / "x.md")
    check(mine > 0, "the permitted read never worked")
    world.untouched()


@test
def L2_directory_swapped_for_an_absolute_link(world):
    (world.inside / "evil").symlink_to(world.outside)
    with swapping(world.swapper, world.inside, "d", "evil"):
        attack(world, 8)
        control(world.inside / "d" / "x.md")
    world.untouched()


@test
def L2_file_swapped_for_a_link(world):
    (world.inside / "d" / "evil").symlink_to("../../outside/x.md")
    with swapping(world.swapper, world.inside / "d", "x.md", "evil"):
        control(world.inside / "d" / "x.md")
        for _ in range(15):
            answer = world.ask("read", "in/d/x.md")
            check(not answer["ok"] or answer["content"] == "mine", f"read gave {answer}")
            world.ask("edit", "in/d/x.md", options=("--old", "mine", "--new", "mine"))
            world.ask("search", "secret")
    world.untouched()


@test
def L4_file_swapped_for_a_pipe(world):
    os.mkfifo(world.inside / "d" / "pipe")
    with swapping(world.swapper, world.inside / "d", "x.md", "pipe"):
        for _ in range(60):
            answer = world.ask("read", "in/d/x.md")
            check(not answer["ok"] or answer["content"] == "mine", f"read gave {answer}")
            world.ask("search", "mine")
    world.good("list")


@test
def L2_root_swapped_for_a_link(world):
    """The root is what it was when it was opened: a link in its place later leads nowhere."""
    script = ("import subprocess, sys, os, time\n"
              "p = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
              "while not any(os.readlink(f'/proc/{p.pid}/fd/{n}').endswith('/in') for n in os.listdir(f'/proc/{p.pid}/fd')\n"
              "              if os.path.islink(f'/proc/{p.pid}/fd/{n}')): time.sleep(0.01)\n"
              "os.rename(sys.argv[1] + '/in', sys.argv[1] + '/moved'); os.symlink('outside', sys.argv[1] + '/in')\n"
              "print(p.communicate(b'late')[0].decode())\n")
    command = [word for word in world.command("write", "in/x.md")]
    done = subprocess.run([sys.executable, "-c", script, str(world.top), *command], capture_output=True, timeout=LIMIT_S, check=False)
    check(b'"ok":true' in done.stdout, f"{done.stdout!r} {done.stderr[-300:]!r}")
    check((world.top / "moved" / "x.md").read_text() == "late", "it was written elsewhere")
    world.untouched()


# ---- ways out ------------------------------------------------------------------------------------------------------


@test
def L1_ways_out(world):
    (world.inside / "up").symlink_to("..")
    (world.inside / "abs").symlink_to(world.outside)
    (world.inside / "deep").symlink_to("d/../../outside")
    (world.inside / "proc").symlink_to("/proc/self/root")
    (world.inside / "fd").symlink_to("/proc/self/fd")
    (world.inside / "chain").symlink_to("chain2")
    (world.inside / "chain2").symlink_to("abs")
    for path in ("in/../outside/x.md", "in/up/outside/x.md", "in/abs/x.md", "in/deep/x.md", "in/proc/etc/passwd", "in/fd/3", "in/chain/x.md",
                 "../outside/x.md", "in/d/../../outside/x.md", "in:../outside/x.md", "in:/../outside/x.md",
                 "in/d/../../in/d/x.md", "./../outside/x.md", "./in/../outside/x.md", ".//outside/x.md", "~/x.md", "in\\..\\outside\\x.md"):
        for op, more in (("read", ()), ("write", ("--content", "x")), ("edit", ("--old", "s", "--new", "t")), ("delete", ())):
            world.refused(op, path, options=more)
    for path in ("in/up", "in/abs", "in/deep", "in/chain"):
        world.refused("list", path)
    world.untouched()
    for path in ("in/d/x.md", "./in/d/x.md"):
        check(world.good("read", path)["content"] == "mine", "the permitted twin")


@test
def L1_patterns(world):
    for pattern in ("../*", "**/../*", "/etc/*", "~/*", "d/../../*", ""):
        world.refused("list", options=(f"--pattern={pattern}",), kind="PatternError")
        world.refused("search", "x", options=(f"--exclude={pattern}",), kind="PatternError")
    check(world.good("list", "in", options=("--pattern=**/*.md",))["count"] == 1, "the permitted twin")


@test
def L3_hard_link(world):
    os.link(world.outside / "x.md", world.inside / "hard.md")
    world.good("write", "in/hard.md", options=("--content", "mine"))
    world.untouched()
    os.unlink(world.inside / "hard.md")
    os.link(world.outside / "x.md", world.inside / "hard.md")
    world.good("delete", "in/hard.md")
    world.untouched()


@test
def L4_special_files(world):
    os.mkfifo(world.inside / "pipe.md")
    names = ["in/pipe.md"]
    if os.geteuid() == 0:
        try:
            os.mknod(world.inside / "zero.md", 0o666 | stat.S_IFCHR, os.makedev(1, 5))
            os.mknod(world.inside / "kmsg.md", 0o666 | stat.S_IFCHR, os.makedev(1, 11))
            names += ["in/zero.md", "in/kmsg.md"]
        except PermissionError:
            pass
    for name in names:
        for op, more in (("read", ()), ("write", ("--content", "x")), ("edit", ("--old", "s", "--new", "t")), ("delete", ())):
            answer = world.ask(op, name, options=more)
            check(not answer["ok"] and answer["error"]["class"] in ("NotAFileError", "FileSandboxError"), f"{op} {name}: {answer}")
    check(world.good("search", "mine")["count"] == 1, "the permitted twin")


@test
def L6_modes(world):
    path = world.inside / "d" / "x.md"
    path.chmod(0o6755)
    world.good("write", "in/d/x.md", options=("--content", "new"))
    check(stat.S_IMODE(path.stat().st_mode) == 0o755, oct(path.stat().st_mode))
    world.good("copy", "in/d/x.md", "in/d/y.md")
    path.chmod(0o4755)
    world.good("copy", "in/d/x.md", "in/d/z.md")
    check(stat.S_IMODE((world.inside / "d" / "z.md").stat().st_mode) == 0o755, "a set-id bit was copied")
    if os.geteuid() == 0:
        os.chown(path, 1234, 1235)
        world.good("write", "in/d/x.md", options=("--content", "newer"))
        check((path.stat().st_uid, path.stat().st_gid) == (1234, 1235), "the owner was not kept")


@test
def errors_of_the_system(world):
    if os.geteuid() == 0:
        raise Skip("root may do everything")
    (world.inside / "d").chmod(0o555)
    answer = world.refused("write", "in/d/x.md", options=("--content", "x"), kind="FileSandboxError")
    check("permission denied" in answer["message"].lower(), answer["message"])
    check((world.inside / "d" / "x.md").read_text() == "mine", "it was changed")
    (world.inside / "d").chmod(0o755)
    (world.inside / "d" / "x.md").chmod(0o444)
    world.refused("write", "in/d/x.md", options=("--content", "x"), kind="FileSandboxError")
    world.refused("edit", "in/d/x.md", options=("--old", "mine", "--new", "x"), kind="FileSandboxError")
    check((world.inside / "d" / "x.md").read_text() == "mine", "a read-only file was changed")
    (world.inside / "d" / "x.md").chmod(0)
    world.refused("read", "in/d/x.md", kind="FileSandboxError")
    (world.inside / "closed").mkdir(mode=0)
    answer = world.good("list", "in")
    check(answer["count"] == 1 and answer["truncated_because"] == "a directory cannot be read", str(answer))
    (world.inside / "closed").chmod(0o755)
    world.refused("read", "in/d/none.md", kind="FileNotFoundError")


# ---- sizes ---------------------------------------------------------------------------------------------------------


def big_place(world):
    """Where many files cost little, if there is such a place."""
    return tempfile.mkdtemp(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else world.top)


def little_memory():
    resource.setrlimit(resource.RLIMIT_AS, (256 << 20, 256 << 20))


@test
def L5_huge_files(world):
    with open(world.inside / "huge.md", "wb") as file:
        file.truncate(1 << 40)
    for op, words in (("read", ["in/huge.md"]), ("edit", ["in/huge.md"]), ("copy", ["in/huge.md", "in/copy.md"])):
        options = ("--old", "a", "--new", "b") if op == "edit" else ()
        answer = world.refused(op, *words, options=options, kind="FileTooLargeError", preexec_fn=little_memory)
        check(str(1 << 40) in answer["message"], answer["message"])
    check(world.good("search", "mine", preexec_fn=little_memory)["count"] == 1, "a huge file ends the search")
    check(world.good("stat", "in/huge.md")["size"] == 1 << 40, "its size")
    (world.inside / "fits.md").write_bytes(b"a" * (16 << 20))
    answer = world.good("read", "in/fits.md", options=("--offset", "16000000", "--max-chars", "10"), preexec_fn=little_memory)
    check((answer["content"], answer["total_chars"]) == ("a" * 10, 16 << 20), "a window of a large file")


@test
def L7_deep_tree(world):
    place = big_place(world)
    roots = (f"deep={place}:rw", f"in={world.inside}")
    try:
        here = os.open(place, os.O_RDONLY)
        for _ in range(2500):
            os.mkdir("dir", dir_fd=here)
            below = os.open("dir", os.O_RDONLY, dir_fd=here)
            os.close(here)
            here = below
        os.close(here)
        answer = world.good("list", roots=roots, preexec_fn=little_memory)
        check(answer["truncated"] and answer["truncated_because"] == "too deep", str(answer)[:200])
        check([entry["path"] for entry in answer["entries"]] == ["in/d/x.md"], "the file beside it")
        check(world.good("search", "mine", roots=roots)["count"] == 1, "the file beside it")
        world.refused("read", "deep/" + "dir/" * 3000 + "x", roots=roots, kind="FileSandboxError")
        world.good("write", "deep/" + "dir/" * 1000 + "x", options=("--content", "x"), roots=roots)
    finally:
        subprocess.run(["rm", "-rf", "--", place], check=True)


@test
def L7_wide_tree(world):
    place = big_place(world)
    roots = (f"wide={place}", f"in={world.inside}")
    try:
        here = os.open(place, os.O_RDONLY)
        for i in range(ENTRIES + 10):
            os.close(os.open(str(i), os.O_WRONLY | os.O_CREAT, 0o644, dir_fd=here))
        os.close(here)
        answer = world.good("list", roots=roots, preexec_fn=little_memory)
        check(answer["truncated"] and answer["count"] == 10000, f"{answer['count']} {answer['truncated_because']}")
        answer = world.good("list", roots=roots, options=("--pattern=**/nothing",), preexec_fn=little_memory)
        check(answer["truncated_because"] == "too many entries", str(answer)[:200])
        check(world.good("list", "in/d", roots=roots)["count"] == 1, "the permitted twin")
    finally:
        subprocess.run(["rm", "-rf", "--", place], check=True)


@test
def L7_pattern_bomb(world):
    bomb = world.inside / "bomb"
    bomb.mkdir()
    for i in range(3000):
        (bomb / (f"{i:04}" + "a" * 240)).touch()
    pattern = "/".join(["**", "*" + "a" * 120 + "b"] * 4 + ["**"])
    answer = world.good("list", "in", options=(f"--pattern={pattern}", *(f"--exclude=*{'a' * 100}{n}" for n in range(10))))
    check(answer["count"] == 0, "it matched")
    pattern = "/".join(["*a" * 60 + "b"] * 8)
    check(world.good("list", "in/bomb", options=(f"--pattern={pattern}",))["count"] == 0, "it matched")


@test
def L7_names(world):
    for name in (b"new\nline.md", b"tab\t.md", b"escape\x1b[31m.md", b"bad\xff.md", b"\xe2\x80\xaereverse.md", b"a" * 255, b" .md", b"-rf", b"x.MD",
                 b"X.md", b"\\x41.md", b'"quoted".md'):
        (Path(os.fsdecode(os.fsencode(world.inside) + b"/" + name))).write_text("named")
    listed = {entry["path"] for entry in world.good("list", "in")["entries"]}
    for name in ("in/new\nline.md", "in/tab\t.md", "in/bad\ufffd.md", "in/" + "a" * 255, "in/-rf", "in/x.MD", "in/X.md", 'in/"quoted".md'):
        check(name in listed, f"{name!r} is not listed")
    check(len(listed) == 13, f"{len(listed)} names")
    for name in listed - {"in/d/x.md", "in/bad\ufffd.md"}:
        check(world.good("read", name)["content"] == "named", f"{name!r} cannot be read")
    done = subprocess.run([word for word in world.command("list", "in") if word != "--json"], capture_output=True, check=True)
    check(all(32 <= byte < 127 or byte == 10 for byte in done.stdout), "a person's list has bytes that a terminal obeys")
    check(done.stdout.count(b"\n") == 13, "a name makes two lines of itself")
    world.refused("read", "in/" + "b" * 256, kind="FileSandboxError")
    world.refused("write", "in/" + "b" * 256, options=("--content", "x"), kind="FileSandboxError")


# ---- whole or not at all --------------------------------------------------------------------------------------------


@test
def L6_killed_while_writing(world):
    path, size = world.inside / "big.md", 8 << 20
    path.write_bytes(b"old" * 1000)
    chance = random.Random(7)
    for _ in range(40):
        process = subprocess.Popen(world.command("write", "in/big.md"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        try:
            process.stdin.write(b"n" * size)
            process.stdin.close()
        except BrokenPipeError:
            pass
        time.sleep(chance.random() * 0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
        data = path.read_bytes()
        check(data in (b"old" * 1000, b"n" * size), f"half a file: {len(data)} bytes")
    for rest in world.inside.glob(".px-*.tmp"):         # what a killed writer was at; never under the file's own name
        rest.unlink()
    world.good("write", "in/big.md", options=("--content", "done"))
    world.no_rest()


@test
def L6_many_writers(world):
    """Of one file: always one of the texts, whole, for every reader at any time."""
    texts = [chr(ord("a") + i) * 100000 for i in range(6)]
    (world.inside / "f.md").write_text(texts[0])
    writers = []
    for round_ in range(5):
        for text in texts:
            process = subprocess.Popen(world.command("write", "in/f.md"), stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            process.stdin.write(text.encode())
            process.stdin.close()
            writers.append(process)
        check((world.inside / "f.md").read_text() in texts, f"round {round_}: a mixture")
    for process in writers:
        check(process.wait(LIMIT_S) == 0, "a writer failed")
    check((world.inside / "f.md").read_text() in texts, "a mixture")
    world.no_rest()


@test
def L6_many_editors(world):
    """Either an edit is in the file or its caller was told that it is not."""
    path = world.inside / "f.md"
    path.write_text("".join(f"<{i:02}>\n" for i in range(30)))
    editors = [subprocess.Popen(world.command("edit", "in/f.md", options=("--old", f"<{i:02}>", "--new", f"[{i:02}]")),
                                stdout=subprocess.PIPE) for i in range(30)]
    done = [json.loads(process.communicate(timeout=LIMIT_S)[0])["ok"] for process in editors]
    lines = path.read_text().splitlines()
    check(len(lines) == 30, "lines were lost")
    check(any(done), "no edit worked")
    check(all(line == f"<{i:02}>" or done[i] for i, line in enumerate(lines)), "an edit that failed is there")
    world.no_rest()


@test
def L6_full_disk(world):
    script = ('mount -t tmpfs -o size=256k none "$1" && echo old >"$1/f.md" && shift && exec "$@"')
    isolate = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if subprocess.run([*isolate, "true"], capture_output=True, check=False).returncode:
        raise Skip("no mount namespace can be made here")
    command = [*isolate, "sh", "-c", script + '; :', "sh", str(world.inside)]
    inner = ["sh", "-c", '"$@" <"$0"; cat "$DIR/f.md"; ls -A "$DIR"', str(world.top / "large"), *world.command("write", "in/f.md")]
    (world.top / "large").write_bytes(b"n" * (1 << 20))
    done = subprocess.run([*command, *inner], capture_output=True, timeout=LIMIT_S, check=False, text=True,
                          env={**os.environ, "DIR": str(world.inside)})
    lines = done.stdout.splitlines()
    check(len(lines) == 3 and lines[1:] == ["old", "f.md"], f"{done.stdout[-300:]} {done.stderr[-300:]}")
    check(json.loads(lines[0])["details"]["code"] == "PX311", lines[0])


@test
def moves_between_file_systems(world):
    other = Path("/dev/shm")
    if not other.is_dir() or not os.access(other, os.W_OK) or other.stat().st_dev == world.inside.stat().st_dev:
        raise Skip("there is no second file system")
    with tempfile.TemporaryDirectory(dir=other) as place:
        roots = (f"in={world.inside}:rw", f"shm={place}:rw")
        world.good("move", "in/d/x.md", "shm/new/x.md", roots=roots)
        check((Path(place) / "new" / "x.md").read_text() == "mine", "it did not arrive")
        check(not (world.inside / "d" / "x.md").exists(), "it is still there")
        world.refused("move", "in/d", "shm/d", roots=roots, kind="NotAFileError")
        check(not (Path(place) / "d").exists(), "half a directory")


# ---- oracles -------------------------------------------------------------------------------------------------------


@test
def lists_agree_with_python(world):
    chance = random.Random(11)
    names = ["a", "b", "ab", "a.md", ".h", "b.txt"]
    top = world.inside / "tree"
    top.mkdir()
    for _ in range(200):
        path = top.joinpath(*(chance.choice(names) for _ in range(chance.randrange(1, 5))))
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue
    for pattern in ("*", "**/*", "*.md", "**/*.md", "a/*", "a/**/*", "*/*", "**/a/*", "**/[ab]", "**/[!a]*", "?", "**/?b", "a/**/b/*.md", "*/**/*"):
        wanted = sorted({"in/tree/" + str(p.relative_to(top)) for p in top.glob(pattern) if p.is_file()})
        got = [entry["path"] for entry in world.good("list", "in/tree", options=(f"--pattern={pattern}",))["entries"]]
        check(got == wanted, f"{pattern}: {sorted(set(got) ^ set(wanted))[:5]}")


@test
def diffs_can_be_applied(world):
    if not shutil.which("patch"):
        raise Skip("there is no patch here")
    chance = random.Random(13)
    for i in range(40):
        lines = [chance.choice(["x", "y", "", f"line {n}"]) for n in range(chance.randrange(1, 30))]
        text = "\n".join(lines) + chance.choice(["", "\n"])
        at = chance.randrange(len(text) + 1)
        old, new = text[at:at + chance.randrange(1, 40)], chance.choice(["", "new", "two\nlines\n", "\n"])
        (world.inside / "f.md").write_text(text)
        answer = world.ask("edit", "in/f.md", options=("--dry-run", "--old", old, "--new", new))
        if not old or text.count(old) != 1:
            check(not answer["ok"], f"edit {i} was taken")
            continue
        if not answer["ok"]:            # two places that overlap
            continue
        (world.top / "p").mkdir(exist_ok=True)
        (world.top / "p" / "f.md").write_text(text)
        done = subprocess.run(["patch", "-s", "-p2", "-d", str(world.top / "p")], input=answer["diff"], capture_output=True, text=True, check=False)
        check(done.returncode == 0 or not answer["diff"], f"patch: {done.stdout}{done.stderr}")
        wanted = text.replace(old, new)
        got = (world.top / "p" / "f.md").read_text() if (world.top / "p" / "f.md").exists() else ""
        check(got == wanted, f"edit {i}: {got!r}, not {wanted!r}")
        world.good("edit", "in/f.md", options=("--old", old, "--new", new))
        check((world.inside / "f.md").read_text() == wanted, f"edit {i} itself")


@test
def windows_agree_with_python(world):
    chance = random.Random(17)
    text = "".join(chance.choice(["a", "ä", "€", "😀", "\n", "\0"]) for _ in range(3000))
    (world.inside / "u.md").write_bytes(text.encode())
    for _ in range(40):
        offset, count = chance.randrange(3100), chance.randrange(700)
        answer = world.good("read", "in/u.md", options=(f"--offset={offset}", f"--max-chars={count}"))
        check(answer["content"] == text[offset:offset + count], f"{offset} {count}")
        check(answer["total_chars"] == 3000 and answer["truncated"] == (offset + count < 3000 and offset < 3000), str(answer)[-100:])


# ---- running -------------------------------------------------------------------------------------------------------


if __name__ == "__main__":
    sys.exit(drive("files/run.py", World, scripts=["race.py"], tools=["swapper"]))
