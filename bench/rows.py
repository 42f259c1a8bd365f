"""What is measured: the commands of every row, and the goals they are held to.

A row that cannot be run says why in its note and is printed with it, never silently dropped."""
import dataclasses
import json
import os
import shutil
import subprocess

BUSYBOX = "/usr/bin/busybox"
HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
ECHO = "echo hello"
TRUE = [BUSYBOX, "true"]
PASS = [PYTHON, "-c", "pass"]
SLEEP = [BUSYBOX, "sleep", "60"]

# A goal is (figure, sign, limit); the figures are keys of a measured row.
TAIL = ("p99_over_p50", "<=", 2.5)
NO_NET_GOALS = [("x_base", "<=", 2.5), TAIL]
NET_GOALS = [("x_base", "<=", 3.3), ("x_bwrap", "<=", 0.55), TAIL]
PYTHON_GOALS = [("x_base", "<=", 1.12)]
PACKAGE_GOALS = [("x_base", "<=", 1.5)]
POOL_GOALS = [("x_base", "<=", 1.6), TAIL]
WARM_GOALS = [("x_base", "<=", 1.4), TAIL]      # the same without a network namespace to make
LIVING_GOALS = [("x_base", "<=", 1.3), TAIL]
FILE_GOALS = [("x_base", "<=", 1.15)]
TEXT_GOALS = [("x_base", "<=", 2.0)]
LIST_GOALS = [("x_base", "<=", 2.0)]
NEIGHBOUR_GOALS = [("p99_x_alone", "<=", 2.0)]
MEMORY_GOALS = [("pss_kib", "<=", 48)]
TASK_GOALS = [("x_base", "<=", 1.5)]
MANY_GOALS = [("x_boxes", ">=", 0.8), ("grown_kib", "<=", 512)]
CGROUP2_GOALS = [("extra_ms", "<=", 0.2)]
SEAL_GOALS = [("extra_ms", "<=", 2)]
SEAL_FILES = 5000               # of a Debian base

BWRAP = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
         "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev",
         "--tmpfs", "/tmp"]
# OCI runtimes refuse a host that has both kinds of cgroup: the unified mount is hidden from them alone.
HIDE_UNIFIED = ["unshare", "-m", "sh", "-c", 'umount /sys/fs/cgroup/unified 2>/dev/null; exec "$@"', "sh"]


@dataclasses.dataclass
class Row:
    name: str
    command: list = None
    goals: list = dataclasses.field(default_factory=list)
    note: str = ""              # why the row is left out; empty if it is measured
    prefix: list = dataclasses.field(default_factory=list)  # goes before all else and is not timed
    serves: bool = False        # the command answers the requests of bench.h itself
    threads: bool = False       # ... and takes the place of several launchers by -j, its second word
    peer: str = ""              # the row that "x bwrap" refers to


class Site:
    """Where everything is: the build's own programs and those that this script made beside them."""

    def __init__(self, build):
        self.build = build
        self.out = os.path.join(build, "bench")
        self.root = os.path.join(self.out, "root")
        self.launch = os.path.join(self.out, "launch")
        musl = os.path.join(self.out, "limit-musl")
        self.limit = musl if os.path.exists(musl) else os.path.join(self.out, "limit")
        self.libpx_start = os.path.join(self.out, "libpx_start")
        self.libpx_engine = os.path.join(self.out, "libpx_engine")
        self.neighbour = os.path.join(self.out, "neighbour")
        self.stress = os.path.join(build, "glibc", "tests", "stress")
        self.px = os.path.join(build, "px")
        self.px_glibc = os.path.join(build, "glibc", "px")

    def limit_row(self, payload, net):
        kind = "musl" if self.limit.endswith("-musl") else "glibc"
        command = [self.limit, *(["-n"] if net else []), self.root, *payload]
        return Row(f"kernel's limit ({kind}), {'net + lo' if net else 'no net'}", command,
                   peer="bwrap, net" if net else "bwrap, no net")

    def px_row(self, payload, *options, goals=(), px=None, suffix=""):
        peer = "bwrap, no net" if "host" in options else "bwrap, net"
        name = " ".join(["px exec", *options]) + suffix
        px = px or self.px
        note = "" if os.path.exists(px) else "left out: not built"
        return Row(name, [px, "exec", *options, "--", *payload], list(goals), note, peer=peer)

    def bwrap_row(self, payload, net):
        share = [] if net else ["--share-net"]
        note = "" if shutil.which("bwrap") else "not installed"
        return Row("bwrap, net" if net else "bwrap, no net", [*BWRAP, *share, *payload], note=note)

    def oci_row(self, name, *options):
        command = [name, *options, "run", "-b", os.path.join(self.out, "bundle"), "{i}"]
        note = "" if shutil.which(name) else "not installed"
        if not note and os.geteuid() != 0:
            note = "needs root"
        return Row(f"{name}, {'no cgroup' if options else 'cgroup'}", command, note=note, prefix=HIDE_UNIFIED)

    def libpx_row(self, payload, *fields):
        command = [self.libpx_start, *fields, "--", *payload]
        note = "" if os.path.exists(self.libpx_start) else "left out: glibc/libpx.so not built"
        return Row(" ".join(["libpx", *fields]), command, note=note, serves=True,
                   peer="bwrap, no net" if "net=host" in fields else "bwrap, net")

    def engine_row(self, mode, payload, *fields, goals=()):
        """A box of a pool, or one more command in a box that stays."""
        command = [self.libpx_engine, mode, self.px_glibc, *fields, "--", *payload]
        note = "" if os.path.exists(self.libpx_engine) and os.path.exists(self.px_glibc) else "left out: not built"
        return Row(" ".join([f"libpx {mode}", *fields]), command, list(goals), note, serves=True, threads=True,
                   peer="bwrap, no net" if "net=host" in fields else "bwrap, net")

    def hold_row(self, count):
        command = [self.libpx_engine, "hold", "-n", str(count), self.px_glibc, "--", *TRUE]
        note = "" if os.path.exists(self.libpx_engine) and os.path.exists(self.px_glibc) else "left out: not built"
        return Row(f"{count} boxes that stay", command, MEMORY_GOALS, note, serves=True)

    def neighbour_row(self, name, attack, goals=()):
        command = [self.neighbour, self.px_glibc, self.stress, attack, *TRUE]
        note = "" if os.path.exists(self.neighbour) and os.path.exists(self.stress) else "left out: not built"
        return Row(name, command, list(goals), note, serves=True)

    def memory_limit_row(self, payload):
        row = self.px_row(payload, "--memory", "64m")
        if not row.note and os.geteuid() != 0:
            row.note = "needs root"
        return row

    def pool_limit_row(self, payload):
        """With limits: the groups, and on cgroup v1 the move into them, are behind a box that waits."""
        row = self.engine_row("pool", payload, "memory=64m", goals=POOL_GOALS)
        if not row.note and os.geteuid() != 0:
            row.note = "needs root"
        return row

    def start_rows(self):
        rows = [Row("vfork+exec", TRUE), self.limit_row(TRUE, False), self.limit_row(TRUE, True),
                self.px_row(TRUE, "--net", "host", goals=NO_NET_GOALS),
                self.px_row(TRUE, goals=NET_GOALS),
                self.px_row(TRUE, "--net", "loopback", goals=NET_GOALS),
                self.memory_limit_row(TRUE)]
        if os.path.exists(self.px_glibc):
            rows += [self.px_row(TRUE, "--net", "host", px=self.px_glibc, suffix=" (glibc)"),
                     self.px_row(TRUE, px=self.px_glibc, suffix=" (glibc)")]
        rows += [self.engine_row("pool", TRUE, "net=host", goals=WARM_GOALS), self.engine_row("pool", TRUE, goals=POOL_GOALS),
                 self.pool_limit_row(TRUE), self.engine_row("living", TRUE, goals=LIVING_GOALS)]
        return rows + [self.libpx_row(TRUE, "net=host"), self.libpx_row(TRUE), self.bwrap_row(TRUE, False),
                       self.bwrap_row(TRUE, True), self.oci_row("crun", "--cgroup-manager=disabled"),
                       self.oci_row("runc")]

    def root_rows(self):
        """The same command on a tree of one program: as a directory, as an archive that is in the store, and writable."""
        tree, archive, upper = (os.path.join(self.out, name) for name in ("root-tree", "root.tar", "root-upper"))
        os.makedirs(os.path.join(tree, "bin"), exist_ok=True)
        for name in ("busybox", "true"):
            shutil.copy("/bin/busybox", os.path.join(tree, "bin", name))
        subprocess.run(["tar", "-cf", archive, "-C", tree, "."], check=True)
        payload = ["/bin/busybox", "true"]
        return [self.px_row(TRUE), self.px_row(payload, "--rootfs", tree), self.px_row(payload, "--rootfs", archive),
                self.px_row(payload, "--rootfs", self.many_files(tree)), self.px_row(payload, "--rootfs", tree, "--overlay"),
                self.px_row(payload, "--rootfs", tree, f"--overlay={upper}")]

    def many_files(self, tree):
        """An archive of the tree and of as many files as a base has: px looks at each of them at every start."""
        place, archive = os.path.join(self.out, "root-many"), os.path.join(self.out, "root-many.tar")
        shutil.rmtree(place, ignore_errors=True)
        shutil.copytree(tree, place)
        for i in range(SEAL_FILES):
            folder = os.path.join(place, f"usr/share/doc/package-{i // 6}")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, f"file-{i % 6}"), "w", encoding="utf-8") as file:
                file.write("a line\n")
        subprocess.run(["tar", "-cf", archive, "-C", place, "."], check=True)
        shutil.rmtree(place)
        return archive

    def file_rows(self):
        """The same file by a path of the host, through the file sandbox, and as text."""
        program, place = os.path.join(self.out, "files"), os.path.join(self.out, "tree")
        note = "" if os.path.exists(program) else "left out: glibc/libpx.so not built"
        return [Row(name, [program, mode, place], list(goals), note, serves=True)
                for name, mode, goals in (("open, read, close", "plain", ()), ("px_files_open, read, close", "open", FILE_GOALS),
                                          ("px_files_read", "read", TEXT_GOALS))]

    def list_rows(self):
        """50,000 files by find, by the file sandbox, and with their sizes and times."""
        program, place = os.path.join(self.out, "files"), os.path.join(self.out, "many")
        note = "" if os.path.exists(program) else "left out: glibc/libpx.so not built"
        return [Row(name, [program, mode, place], list(goals), note, serves=True)
                for name, mode, goals in (("find -type f", "find", ()), ("px_files_list, names", "names", LIST_GOALS), ("px_files_list", "list", ()))]

    def package_row(self, name, mode, *words, goals=()):
        """A process with an event loop of Python's; the package as `make python` puts it together."""
        place = os.path.join(self.build, "python")
        note = "" if mode == "spawn" or os.path.exists(os.path.join(place, "px", "_px.abi3.so")) else "left out: not built (make python)"
        if mode == "spawn" and not shutil.which(words[0]):
            note = "not installed"
        command = ["env", "PYTHONPATH=" + place, PYTHON, os.path.join(HERE, "package.py"), mode, "--", *words]
        return Row(name, command, list(goals), note, serves=True, peer="bwrap by asyncio")

    def package_rows(self):
        """`bash -c` of a line by the C interface, by the package, and by bubblewrap from the same kind of loop."""
        shell, home, tmp = ["/bin/bash", "-c", ECHO], os.path.join(self.out, "home"), os.path.join(self.out, "tmp")
        for folder in (home, tmp):
            os.makedirs(folder, exist_ok=True)
        base = self.libpx_row(shell, "net=loopback", "work-target=/home/sandbox", f"work-dir={home}", f"bind={tmp}:/tmp")
        base.name = "libpx, the same policy"
        return [base, self.package_row("Sandbox().run()", "sandbox", ECHO, goals=PACKAGE_GOALS),
                self.package_row("Sandbox.run(), one more", "command", ECHO),
                self.package_row("SandboxExecutor.execute(), one more", "executor", ECHO),
                self.package_row("bwrap by asyncio", "spawn", *BWRAP, *shell)]

    def task_rows(self, sizes):
        """One file changed among so many: as an action with its diff and its merge, and by those who read everything."""
        top = os.path.join(self.out, "tasks")
        shutil.rmtree(top, ignore_errors=True)
        os.makedirs(top)
        config = os.path.join(top, "config.yaml")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"work_root: {top}/work\nlogs_dir: {top}/logs\nallowed_binaries: [sh]\n")
        found = []
        for size in sizes:
            trees = [os.path.join(top, f"{name}{size}") for name in ("a", "b")]
            for tree in trees:
                for i in range(0, size, 100):
                    folder = os.path.join(tree, f"d{i // 100}")
                    os.makedirs(folder)
                    for k in range(100):
                        with open(os.path.join(folder, f"f{k}"), "w", encoding="utf-8") as file:
                            file.write("a line\n" * 20)
            with open(os.path.join(trees[1], "d0", "f1"), "a", encoding="utf-8") as file:
                file.write("another\n")
            subprocess.run([self.px, "task", "prepare", f"t{size}", "--config", config, "--from", trees[0]], check=True,
                           stdout=subprocess.DEVNULL)
            act = [self.px, "-q", "task", "apply", f"t{size}", "--config", config, "--", "sh", "-c", "echo $$ >> d0/f1"]
            found.append(Row(f"px task apply, {size} files", act, TASK_GOALS if found else []))
            note = "" if shutil.which("git") else "left out: git is not installed"
            found.append(Row(f"git diff --no-index, {size} files", ["sh", "-c", f"git diff --no-index {trees[0]} {trees[1]} >/dev/null; :"],
                             note=note))
        return found

    def many_rows(self):
        """The same command as actions through one runner, and as boxes alone."""
        command = [BUSYBOX, "sh", "-c", "echo $$ > f"]
        note = "" if os.path.exists(self.libpx_start) else "left out: glibc/libpx.so not built"
        return (Row("px task run --jobs 2", [self.px, "-q", "task", "run", "--jobs", "2", "--from", "-"], MANY_GOALS, note), command,
                Row("libpx, 2 launchers", [self.libpx_start, "work-dir={}", "memory=4096m", "limits=try", "pids=256", "--", *command], note=note, serves=True))

    def python_rows(self):
        return [Row("bare", PASS), self.px_row(PASS, goals=PYTHON_GOALS), self.bwrap_row(PASS, True)]

    def throughput_rows(self):
        return [Row("vfork+exec", TRUE), self.limit_row(TRUE, False), self.limit_row(TRUE, True),
                self.px_row(TRUE, "--net", "host", goals=[("x_bwrap", ">=", 2.5)]),
                self.px_row(TRUE, goals=[("x_bwrap", ">=", 2.0)]),
                self.engine_row("pool", TRUE, "net=host", goals=[("x_bwrap", ">=", 2.5)]),
                self.engine_row("pool", TRUE, goals=[("x_bwrap", ">=", 2.0)]), self.engine_row("living", TRUE),
                self.bwrap_row(TRUE, False), self.bwrap_row(TRUE, True)]

    def memory_rows(self):
        return [self.limit_row(SLEEP, True), self.px_row(SLEEP, goals=MEMORY_GOALS), self.bwrap_row(SLEEP, True)]

    def living_rows(self, counts):
        return [self.hold_row(count) for count in counts]

    def neighbour_rows(self):
        """The first is what the others are held against: nobody beside it."""
        return [self.neighbour_row("nobody", "none")] + [
            self.neighbour_row(name, attack, NEIGHBOUR_GOALS)
            for name, attack in (("floods its output", "flood"), ("forks to its limit", "fork"),
                                 ("executes over and over", "exec"), ("stops itself and its group", "stop-self"),
                                 ("asks for what is denied", "denied"))]

    def make_root(self):
        for name in ("usr", "proc", "dev", "tmp"):
            os.makedirs(os.path.join(self.root, name), exist_ok=True)
        for name in ("bin", "lib", "lib64"):
            link = os.path.join(self.root, name)
            if not os.path.islink(link):
                os.symlink(os.path.join("usr", name), link)

    def make_bundle(self):
        """An OCI bundle that is as much like the bwrap row as the format lets it be."""
        def mount(where, kind, *options):
            source = "/usr" if kind == "bind" else kind
            return {"destination": where, "type": kind, "source": source, "options": list(options)}
        config = {
            "ociVersion": "1.0.2", "hostname": "box", "root": {"path": self.root, "readonly": True},
            "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": TRUE, "env": ["PATH=/usr/bin:/bin"],
                        "cwd": "/", "noNewPrivileges": True,
                        "capabilities": {kind: [] for kind in ("bounding", "effective", "permitted")}},
            "mounts": [mount("/usr", "bind", "bind", "ro", "nosuid"), mount("/proc", "proc"),
                       mount("/dev", "tmpfs", "nosuid", "mode=755"),
                       mount("/dev/pts", "devpts", "nosuid", "noexec", "newinstance", "ptmxmode=0666"),
                       mount("/dev/shm", "tmpfs", "nosuid", "noexec", "nodev"),
                       mount("/tmp", "tmpfs", "nosuid", "nodev")],
            "linux": {"namespaces": [{"type": kind} for kind in ("pid", "network", "ipc", "uts", "mount")]},
        }
        os.makedirs(os.path.join(self.out, "bundle"), exist_ok=True)
        with open(os.path.join(self.out, "bundle", "config.json"), "w", encoding="utf-8") as file:
            json.dump(config, file, indent=1)
