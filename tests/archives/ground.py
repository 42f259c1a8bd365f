"""What the tests of archives share: one test's own store and directory, and the programs."""

import io
import os
import shutil
import subprocess
import tarfile

from cases import Problem, Skip, check, test  # noqa: F401  those who use this module take them from here

BUSYBOX = "/bin/busybox"
LIMIT_S = 300


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            raise Skip(f"there is no {program} here")


class Site:
    """One test's own directory, its store, and the programs."""

    def __init__(self, programs, top):
        self.px, self.tool = str(programs / "px"), str(programs / "layer")
        self.top = top
        self.home = top / "home"
        self.env = {"PX_HOME": str(self.home), "PATH": os.environ["PATH"], "TMPDIR": str(top), "LC_ALL": "C.UTF-8"}

    def run(self, *words, **more):
        return subprocess.run(
            [str(word) for word in words],
            env=self.env,
            cwd=self.top,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=LIMIT_S,
            check=False,
            stdin=subprocess.DEVNULL,
            **more,
        )

    def exec(self, archive, *command, options=()):
        return self.run(self.px, "exec", *options, "--rootfs", archive, "--", *(command or ("/bin/true",)))

    def layer(self, *words):
        done = self.run(self.tool, *words)
        check(done.returncode in (0, 1), f"layer {words[0]}: status {done.returncode}, {done.stderr[-300:]}")
        return done.stdout.strip()

    def good(self, *words):
        answer = self.layer(*words)
        check(answer.startswith("ok"), f"{words[0]}: {answer}")
        return answer.split()[1:]

    def write(self, name, data):
        path = self.top / name
        path.write_bytes(data)
        return path

    def fresh(self, name):
        path = self.top / name
        subprocess.run(["rm", "-rf", "--", str(path)], check=True)
        path.mkdir()
        return path

    def unpack(self, data, name="out", whiteouts=False, onto=False, limits=()):
        path = self.top / name if onto else self.fresh(name)
        archive = self.write("archive", data) if isinstance(data, bytes) else data
        return path, self.layer("unpack", archive, path, int(whiteouts), *limits)

    def unzip(self, data, limits=()):
        path = self.fresh("out")
        return path, self.layer("unzip", self.write("archive", data), path, *limits)

    def listing(self, path):
        return self.good("list", path)[0]

    def trees(self):
        place = self.home / "store/trees"
        return sorted(os.listdir(place)) if place.exists() else []

    def left(self):
        """What an unfinished build would have left in the store."""
        place = self.home / "store/tmp"
        return os.listdir(place) if place.exists() else []


def make_root(path):
    if not os.path.exists(BUSYBOX):
        raise Skip(f"there is no {BUSYBOX} here")
    for name in ("bin", "etc", "usr", "tmp", "lib"):
        (path / name).mkdir(parents=True)
    shutil.copyfile(BUSYBOX, path / "bin/busybox")
    (path / "bin/busybox").chmod(0o755)
    for name in ("sh", "true", "cat", "touch", "ls", "sleep"):
        (path / "bin" / name).symlink_to("busybox")
    (path / "etc/word").write_text("from the archive\n")
    (path / "etc/word").chmod(0o644)
    os.link(path / "etc/word", path / "etc/same")
    return path


def tar_of(path, names=None, **options):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", **options) as archive:
        for name in names or sorted(os.listdir(path)):
            archive.add(path / name, name)
    return out.getvalue()


def outside(site):
    """All that lies around the directory that is unpacked into."""
    found = {}
    for name in sorted(os.listdir(site.top)):
        st = os.lstat(site.top / name)
        if name not in ("archive", "out"):
            found[name] = (st.st_mode, st.st_size, st.st_nlink, st.st_mtime_ns)
    return found, sorted(name for name in os.listdir("/tmp") if name.startswith("px-evil"))
