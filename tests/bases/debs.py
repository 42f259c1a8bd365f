"""debs.py - packages and a package archive made by hand, for tests that need a distribution but no network.

`tiny()` is a distribution small enough to be built in a second: one essential package with the programs of this machine's own dpkg and
what its scripts need, and empty packages for the other names that px asks for. Only where the host is a Debian of the same release.
"""

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import tarfile
from pathlib import Path

SUITES = ("bookworm", "bookworm-updates", "bookworm-security")
PROGRAMS = ("sh", "dpkg", "dpkg-deb", "dpkg-query", "dpkg-split", "tar", "rm", "mkdir", "chmod", "chown", "find", "sort", "comm", "tr", "xargs", "sed",
            "cat", "ls", "ldconfig", "start-stop-daemon", "diff", "sleep", "ln", "cp", "mv", "touch", "env", "id", "grep")
OTHERS = ("usr-is-merged", "python3", "ca-certificates", "libstdc++6", "tzdata", "netbase")


def architecture():
    return {"x86_64": "amd64", "aarch64": "arm64"}[os.uname().machine]


def add(archive, name, data=b"", mode=0o644, kind=tarfile.REGTYPE, target=""):
    info = tarfile.TarInfo("./" + name)
    info.mode, info.type, info.linkname, info.size = mode, kind, target, len(data)
    info.uname = info.gname = "root"
    archive.addfile(info, io.BytesIO(data))


def tar_gz(entries):
    """entries: name -> bytes, or (bytes, mode), or ("link", target), or None for a directory; directories above are made."""
    out = io.BytesIO()
    with gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0) as packed, tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as archive:
        made = set()
        for name, value in entries.items():
            for parent in reversed(Path(name).parents[:-1]):
                if str(parent) not in made:
                    made.add(str(parent))
                    add(archive, f"{parent}/", mode=0o755, kind=tarfile.DIRTYPE)
            if value is None:
                made.add(name)
                add(archive, name + "/", mode=0o755, kind=tarfile.DIRTYPE)
            elif isinstance(value, tuple) and value[0] == "link":
                add(archive, name, kind=tarfile.SYMTYPE, target=value[1], mode=0o777)
            else:
                data, mode = value if isinstance(value, tuple) else (value, 0o644)
                add(archive, name, data, mode)
    return out.getvalue()


def deb(name, files, version="1.0", depends="", essential=False, scripts=None, arch="all"):
    """(control text, bytes of the .deb)"""
    control = f"Package: {name}\nVersion: {version}\nArchitecture: {arch}\nMaintainer: px <px@example.org>\nDescription: made for a test\n"
    control += f"Depends: {depends}\n" * bool(depends) + "Essential: yes\n" * essential
    members = {"control": control.encode()} | {script: (text.encode(), 0o755) for script, text in (scripts or {}).items()}
    out = b"!<arch>\n"
    for member, data in (("debian-binary", b"2.0\n"), ("control.tar.gz", tar_gz(members)), ("data.tar.gz", tar_gz(files))):
        out += f"{member:<16}{0:<12}{0:<6}{0:<6}{'100644':<8}{len(data):<10}`\n".encode() + data + b"\n" * (len(data) & 1)
    return control, out


class Archive:
    """A mirror in a directory; its address is what PX_APT_MIRROR takes."""

    def __init__(self, top):
        self.top = Path(top)
        self.packages = {}
        self.address = f"[trusted=yes] file://{self.top}"

    def put(self, name, files, **more):
        self.packages[name] = deb(name, files, **more)

    def lie(self, name):
        """What is fetched is not what the index promised."""
        path = self.top / "pool" / f"{name}.deb"
        data = bytearray(path.read_bytes())
        data[-1] ^= 1
        path.write_bytes(bytes(data))

    def publish(self):
        shutil.rmtree(self.top, ignore_errors=True)
        (self.top / "pool").mkdir(parents=True)
        index = ""
        for name, (control, data) in sorted(self.packages.items()):
            (self.top / "pool" / f"{name}.deb").write_bytes(data)
            index += f"{control}Filename: pool/{name}.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n\n"
        for suite in SUITES:
            text = (index if suite == "bookworm" else "").encode()
            path = self.top / "dists" / suite / "main" / f"binary-{architecture()}" / "Packages"
            path.parent.mkdir(parents=True)
            path.write_bytes(text)
            (self.top / "dists" / suite / "Release").write_text(
                f"Origin: Debian\nSuite: {suite}\nCodename: {suite}\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nArchitectures: {architecture()}\n"
                f"Components: main\nSHA256:\n {hashlib.sha256(text).hexdigest()} {len(text)} main/binary-{architecture()}/Packages\n")
        return self


def libraries(path):
    """What the loader would open, and the loader."""
    text = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return [word for line in text.splitlines() for word in line.split() if word.startswith("/")]


def tiny_files():
    files = {}
    for program in PROGRAMS:
        found = shutil.which(program, path="/usr/bin:/usr/sbin:/bin:/sbin")
        if not found:
            raise FileNotFoundError(program)
        files[("bin/" if program == "sh" else "usr/bin/") + program] = (Path(found).read_bytes(), 0o755)
        for library in libraries(found):
            files[library.lstrip("/").removeprefix("usr/")] = (Path(library).read_bytes(), 0o755)
    for name in ("dev", "proc", "sys", "run", "tmp", "home", "root", "var/lib/dpkg", "var/log", "var/cache", "usr/sbin", "usr/share/fonts"):
        files[name] = None
    files |= {
        "usr/lib/os-release": b'ID=debian\nVERSION_ID="12"\nNAME="Tiny"\nPRETTY_NAME="A tiny one"\n',
        "etc/os-release": ("link", "../usr/lib/os-release"),
        "etc/passwd": b"root:x:0:0:root:/root:/bin/sh\n", "etc/group": b"root:x:0:\nshadow:x:42:\n",
        "etc/fixture": b"of the base\n", "etc/doomed": b"a package takes it away\n",
        "usr/bin/su-like": (b"#!/bin/sh\n", 0o4755),
        "usr/share/doc/tiny/copyright": b"anybody may\n", "usr/share/doc/tiny/README": b"left out\n", "usr/share/man/man1/tiny.1": b"left out\n",
        "usr/share/locale/de/tiny.mo": b"left out\n", "usr/bin/sh": ("link", "dash"), "usr/bin/dash": files.pop("bin/sh"),
    }
    return files


# What a package's script may leave that hangs on when, where and by whom it was run.
POSTINST = """#!/bin/sh
set -e
chown root:shadow /etc/fixture
chmod 2755 /usr/bin/su-like
mkdir -p /var/log /var/cache/ldconfig
id -u >/etc/installed-by
cat /proc/net/dev | grep -c : >/etc/interfaces-seen
"""


def tiny(top):
    """The archive of the tiny distribution, published; None if this machine cannot have one."""
    release = Path("/etc/os-release").read_text() if Path("/etc/os-release").exists() else ""
    if "ID=debian" not in release or 'VERSION_ID="12"' not in release or not shutil.which("apt-get"):
        return None
    archive = Archive(top)
    archive.put("px-tiny", tiny_files(), essential=True, arch=architecture(), scripts={"postinst": POSTINST})
    for name in OTHERS:
        archive.put(name, {})
    archive.put("libpq5", {"lib/px-pq/libpq.so.5": b"not really\n", "usr/share/doc/libpq5/copyright": b"ours\n", "usr/share/doc/libpq5/NEWS": b"no\n"},
                depends="libfake1 (>= 1)",
                scripts={"postinst": "#!/bin/sh\nset -e\nrm -f /etc/doomed\nchmod 4755 /lib/px-pq/libpq.so.5\nid -u >/etc/pq\n"})
    archive.put("libfake1", {"usr/lib/libfake.so.1": b"needed\n"}, version="1:2.0~rc1+b1", arch=architecture())
    archive.put("libyaml-0-2", {"usr/lib/libyaml.so": b"yaml\n"})
    return archive.publish()


# ---- with a Python ----

PYTHON = "/usr/bin/python3.11"
NOT_NEEDED = {"__pycache__", "test", "tests", "ensurepip", "idlelib", "tkinter", "lib2to3", "distutils", "pydoc_data", "dist-packages", "turtledemo"}


def python_files():
    """The interpreter of this machine with the modules that small programs need."""
    top = Path("/usr/lib/python3.11")
    files = {"usr/bin/python3.11": (Path(PYTHON).read_bytes(), 0o755), "usr/bin/python3": ("link", "python3.11")}
    for path in sorted(top.rglob("*")):
        parts = path.relative_to(top).parts
        if NOT_NEEDED & set(parts) or parts[0].startswith("config-") or not path.is_file():
            continue
        files[f"usr/lib/python3.11/{path.relative_to(top)}"] = (path.read_bytes(), 0o644)
    for program in (PYTHON, *(str(path) for path in (top / "lib-dynload").glob("_ctypes.*"))):
        for library in libraries(program):
            files[library.lstrip("/").removeprefix("usr/")] = (Path(library).read_bytes(), 0o755)
    there = tiny_files()        # no file is of two packages
    return {name: value for name, value in files.items() if name not in there}


def tiny_with_python(top):
    """The tiny distribution with this machine's Python, and a libpq.so.5 that can be loaded; None if this machine cannot have one."""
    archive = tiny(top) if os.access(PYTHON, os.X_OK) else None
    if not archive:
        return None
    library = next(name for name in libraries(PYTHON) if "/libz.so" in name)
    archive.put("python3", python_files(), arch=architecture())
    archive.put("libpq5", {"lib/libpq.so.5": (Path(library).read_bytes(), 0o644)}, arch=architecture())
    return archive.publish()
